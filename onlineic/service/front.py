"""One login for several tables, each of which has a process of its own that this one hands requests on to.

A process a table is the safest: each holds one table, one ledger and one thread that answers. One that
crashes, runs out of memory or cannot write its ledger ends alone, and no fault in one can show what another
holds. This process holds no table. It knows who asks, and tells the others by a header on sockets in a folder
that nobody else can enter; what a client sends under that name is left out.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import final

import attrs
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onlineic.errors import OnlineICError
from onlineic.service import logs
from onlineic.service.app import ADDED, http_problem, let_in, refused, shown
from onlineic.service.bodies import body_of
from onlineic.service.gate import Gate, Limits
from onlineic.service.page import rendered
from onlineic.service.refusals import Problem, RefusedError
from onlineic.service.site import FILES, KIND, entered, left
from onlineic.service.users import User, Users

HEADER = "x-onlineic-user"  # that names who asks, to the process of a table
# of the connection to the client, and of who asks. A body that came in chunks goes on as a whole: one that
# said so too would be read in other parts than were looked at here
OWN = {
    "authorization",
    "cookie",
    "content-length",
    "content-type",
    "connection",
    "expect",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
NOT_BACK = {"connection", "keep-alive", "transfer-encoding"}
PIECE = 2**16
LONGEST_HEAD = 2**16


@final
@attrs.frozen
class Table:
    """A table, as the front knows it.

    Attributes:
        label: As people call it.
        socket: Path at which its process listens.
    """

    label: str
    socket: str

    async def up(self) -> bool:
        """Return whether its process takes requests."""
        try:
            _, writer = await asyncio.open_unix_connection(self.socket)
        except OSError:
            return False
        writer.close()
        return True


@final
class Front:
    """The routes of several tables.

    Args:
        tables: By the name that stands before each of its paths.
        users: Who may log in, of the event loop's thread.
    """

    def __init__(self, tables: Mapping[str, Table], users: Users, limits: Limits) -> None:
        self._tables, self._limits, self._gate = tables, limits, Gate(users, limits)
        both = ["GET", "POST"]
        self._app = Starlette(
            routes=[
                Route("/", self.chooser, methods=["GET"]),
                Route("/health", lambda _: PlainTextResponse("ok\n"), methods=["GET"]),
                Route("/ready", self.ready, methods=["GET"]),
                *(Route(path, self.file, methods=["GET"]) for path in FILES),
                Route("/login", self.login, methods=["POST"]),
                Route("/logout", self.logout, methods=["POST"]),
                Route("/{table}", self.slash, methods=["GET"]),
                Route("/{table}/login", self.login, methods=["POST"]),
                Route("/{table}/logout", self.logout, methods=["POST"]),
                Route("/{table}/{path:path}", self.handed_on, methods=both),
            ],
            exception_handlers={
                HTTPException: http_problem,
                RefusedError: refused,
                OnlineICError: refused,
                Exception: _unexpected,
            },
        )
        self._app.router.redirect_slashes = False

    def app(self) -> ASGIApp:
        """Return the application."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            named = logs.begin()

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    known = {name for name, _ in message["headers"]}
                    own = [*ADDED, (b"x-request-id", named.name.encode())]
                    more = [(name, value) for name, value in own if name not in known]
                    message = {**message, "headers": [*message["headers"], *more]}
                    logs.log.info("%s %d", scope["method"], message["status"])
                await send(message)

            await let_in(self._app, self._limits, scope, receive, sending)

        return guarded

    async def chooser(self, request: Request) -> Response:
        """Show the tables, and which of them are served now."""
        user = self._gate.visitor(request)
        if user is None:
            return Response(rendered("login.html", problem="", next=""), media_type=KIND)
        rows = [(name, table.label, await table.up()) for name, table in self._tables.items()]
        return Response(rendered("tables.html", tables=rows, you=user.name), media_type=KIND)

    async def ready(self, request: Request) -> Response:
        """Tell whether all tables are served."""
        up = all([await table.up() for table in self._tables.values()])
        return PlainTextResponse("ready\n") if up else PlainTextResponse("not ready\n", 503)

    async def file(self, request: Request) -> Response:
        """Hand out the script, the looks or the icon."""
        content, kind = FILES[request.url.path]
        return Response(content, media_type=kind)

    async def slash(self, request: Request) -> Response:
        """Lead to the page of a table."""
        self._table(request)
        return RedirectResponse(f"{request.path_params['table']}/", 303)

    async def login(self, request: Request) -> Response:
        """Begin a visit of all tables."""
        return await entered(self._gate, request, path="/")

    async def logout(self, request: Request) -> Response:
        """End a visit."""
        return left(self._gate, request, path="/")

    def _table(self, request: Request) -> Table:
        name = request.path_params["table"]
        found, raw = self._tables.get(name), request.scope["raw_path"].decode("latin-1")
        if found is None or not (raw + "/").startswith(f"/{name}/"):
            raise RefusedError(404, "not-found", "no table has this name.")
        return found

    async def handed_on(self, request: Request) -> Response:
        """Hand a request on to the process of its table, and its reply back."""
        table, body = self._table(request), await body_of(request)
        try:
            user: User | None = self._gate.user(request)
        except RefusedError as error:
            if error.status != 401:
                raise
            user = None  # the process of the table says where to log in
        try:
            reader, writer = await asyncio.open_unix_connection(table.socket, limit=LONGEST_HEAD)
        except OSError:
            raise RefusedError(
                503, "unready", "this table is not served now; others are.", **{"Retry-After": "60"}
            ) from None
        try:
            writer.write(_head(request, user, len(body)) + body)
            await writer.drain()
            status, headers = await _headed(reader)
        except BaseException as error:
            writer.close()
            if isinstance(error, OSError | EOFError | ValueError | asyncio.LimitOverrunError):
                raise RefusedError(503, "unready", "this table has not answered; ask again.") from None
            raise
        chunked = ("transfer-encoding", "chunked") in headers
        length = next((int(value) for name, value in headers if name == "content-length"), None)
        pieces = _pieces(reader, writer, length, chunked=chunked)
        response = StreamingResponse(pieces, status)
        back = [(name, value) for name, value in headers if name not in NOT_BACK]
        response.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in back]
        return response


def _head(request: Request, user: User | None, length: int) -> bytes:
    """Return the head of a request, with who asks, and without what a client says of that."""
    path = "/" + request.scope["raw_path"].decode("latin-1").split("/", 2)[2]
    query = request.scope["query_string"].decode("latin-1")
    lines = [f"{request.method} {path}{'?' + query if query else ''} HTTP/1.1"]
    kept = [(name, value) for name, value in request.headers.items() if name not in OWN and name != HEADER]
    if (kind := request.headers.get("content-type")) is not None:
        kept.append(("content-type", kind))
    if user is not None:
        kept.append((HEADER, user.name.encode().decode("latin-1")))
        if "authorization" in request.headers and request.method != "GET":
            # a token is shown by no browser by itself: to the process it is a page of its own
            kept = [(name, value) for name, value in kept if name not in ("origin", "sec-fetch-site")]
            kept.append(("sec-fetch-site", "same-origin"))
    lines += [f"{name}: {value}" for name, value in kept]
    lines += [f"content-length: {length}", "connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def _headed(reader: asyncio.StreamReader) -> tuple[int, list[tuple[str, str]]]:
    """Return status and headers of a reply."""
    first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    pairs = (line.split(":", 1) for line in rest)
    return int(first.split()[1]), [(name.lower().strip(), value.strip()) for name, value in pairs]


async def _pieces(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None, *, chunked: bool
) -> AsyncIterator[bytes]:
    """Hand on the body of a reply as it comes; one that is cut short is cut short here too."""
    try:
        if chunked:
            while size := int(await reader.readline(), 16):
                yield await reader.readexactly(size)
                await reader.readexactly(2)
            return
        left_over = length
        while left_over is None or left_over > 0:
            piece = await reader.read(PIECE if left_over is None else min(PIECE, left_over))
            if not piece:
                return
            left_over = None if left_over is None else left_over - len(piece)
            yield piece
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _unexpected(request: Request, error: Exception) -> Response:
    logs.log.error("request failed: %s", type(error).__name__)
    return shown(request, Problem(500, "internal"))


def socket_of(folder: str, name: str) -> str:
    """Return where the process of a table listens."""
    return os.path.join(folder, f"{name}.sock")
