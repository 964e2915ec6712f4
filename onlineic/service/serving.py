"""The process: one worker, deadlines for slow clients, TLS or this machine alone, and an end in order."""

import asyncio
import contextlib
import errno
import ipaddress
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from onlineic.errors import InvalidParameterError, OnlineICError, checked_integer, shown
from onlineic.service.app import Service
from onlineic.service.face import Servable
from onlineic.service.front import Front, Table
from onlineic.service.gate import Limits
from onlineic.service.scheduler import Scheduler
from onlineic.service.trust import Trusted
from onlineic.service.users import Users

SWITCH = 1e-3  # seconds that the thread of the session keeps the loop waiting for, of Python's own code
DEADLINE = 10.0  # seconds for a whole request, headers and body
MOST_HEADERS = 16_384  # bytes
MOST_REQUEST = 2**19  # bytes, with what stands around its parts
BACKLOG = 512  # connections that wait to be taken
SOCKET = "unix:"  # before the path of a socket
MOST_AHEAD = 8  # requests that a connection may send before the first of them is answered


@final
class Deadlined(HttpToolsProtocol):
    """HTTP/1.1 that ends a connection whose request is not whole in time, or is longer than any may be.

    uvicorn would wait for ever, keep whatever is sent of a head or after a body, and line up as many
    requests as come before the first of them is answered.
    """

    deadline = DEADLINE
    _timer: asyncio.TimerHandle | None = None
    _since = 0.0  # when the client was to send something
    _read = 0  # bytes of the request, but for those that came with the end of the one before

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since = self.loop.time()
        self._timer = self.loop.call_later(self.deadline, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._read += len(data)
        if self._read > MOST_REQUEST:
            self.transport.abort()
        else:
            super().data_received(data)

    def on_message_begin(self) -> None:
        self._read = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        # after a head that asks for another protocol the parser reads no body and no further request
        if size > MOST_HEADERS or len(self.pipeline) >= MOST_AHEAD or self.parser.should_upgrade():
            raise ValueError  # the parser makes 400 of it
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def _look(self) -> None:
        """End the connection if the client is late; else look again when it can be."""
        asked: Any = self.cycle  # None before the first request
        answering = asked is not None and not (asked.more_body or asked.response_complete)
        left = self._since + self.deadline - self.loop.time()
        if not answering and left <= 0.0:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(left if left > 0.0 else self.deadline, self._look)


@final
class _Telling(uvicorn.Server):
    """A server that says when it takes requests."""

    def __init__(self, config: uvicorn.Config, begun: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._begun = begun

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._begun is not None and self.started and sockets:
            self._begun(_address(sockets[0].getsockname()))


def _address(name: Any) -> str:
    if isinstance(name, str):
        return SOCKET + name
    host, port, *_ = name
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_and_port(listen: str, *, tls: bool, behind_proxy: bool) -> tuple[str, int]:
    """Return host and port of "HOST:PORT"; of "unix:PATH" that, and 0.

    Raises:
        InvalidParameterError: If it is none, or another machine could reach it without TLS.
    """
    if listen.startswith(SOCKET) and len(listen) > len(SOCKET):
        return listen, 0
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if not host or not (port.isascii() and port.isdigit()):
        raise InvalidParameterError(f"listen must be HOST:PORT, got {shown(listen)}; write 127.0.0.1:8765.")
    number = checked_integer("port", int(port), at_least=0, at_most=65535)
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not (loopback or tls or behind_proxy):
        raise InvalidParameterError(
            f"listen must be an address of this machine without TLS, got {shown(host)}: tokens would cross "
            "the network in clear. Give --ssl-certfile and --ssl-keyfile, or --behind-proxy."
        )
    return host, number


def bound(host: str, port: int) -> socket.socket:
    """Return a socket at an address, before anything is read or made for whoever comes there.

    Raises:
        InvalidParameterError: If the address is taken, or is none of this machine.
    """
    if host.startswith(SOCKET):
        return _bound_socket(host.removeprefix(SOCKET))
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _not_free(host, port, error) from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)  # nobody is let in before the session is open
    except OSError as error:
        made.close()
        raise _not_free(host, port, error) from None
    return made


def _bound_socket(path: str) -> socket.socket:
    """Return a socket at a path, for this user and group; one that nobody listens at is replaced."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.exists(path):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
                if not stat.S_ISSOCK(os.stat(path).st_mode) or tried.connect_ex(path) == 0:
                    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            os.unlink(path)
        made.bind(path)
        os.chmod(path, 0o660)  # before anybody is let in
    except OSError as error:
        made.close()
        raise _not_free(path, None, error) from None
    return made


def _not_free(host: str, port: int | None, error: OSError) -> InvalidParameterError:
    where = host if port is None else f"{host}:{port}"
    return InvalidParameterError(
        f"listen must be an address of this machine that is free, got {shown(where, 200)}, "
        f"{(error.strerror or 'which is none').lower()}; end what listens there, or write another port."
    )


def serve(
    session: Servable,
    users: str | os.PathLike[str],
    *,
    listen: str = "127.0.0.1:8765",
    line: socket.socket | None = None,
    begun: Callable[[str], None] | None = None,
    hosts: tuple[str, ...] = (),
    ssl_certfile: str | None = None,
    ssl_keyfile: str | None = None,
    behind_proxy: bool = False,
    after_crashes: bool = False,
    curators: tuple[str, ...] = (),
    trusted: Trusted | None = None,
) -> None:
    """Serve a session until the process is told to end; what waits is answered first, and the session closed.

    Args:
        session: A session, or periods, with a ledger file, durability "all" and the system's noise.
        listen: "HOST:PORT", where port 0 is any that is free; or "unix:PATH", which a proxy reaches.
        line: Socket. As `bound` made it for that address.
        begun: Told the address once requests are taken.
        hosts: Further names that requests may call the server by.
        behind_proxy: A proxy ends TLS, and nobody else reaches this port.
        after_crashes: Start although the last three starts answered nothing.
        curators: Names of users whose page tells of all users.
        trusted: What a proxy may say of who asks.

    Raises:
        InvalidParameterError, SessionStateError: Before anything is served.
    """
    host, port = host_and_port(listen, tls=ssl_certfile is not None, behind_proxy=behind_proxy)
    check_served(session)
    on_socket = host.startswith(SOCKET)
    secure = ssl_certfile is not None or behind_proxy or on_socket
    names = frozenset({*Limits().hosts, host.lower(), *map(str.lower, hosts)})
    limits = Limits(names, secure, frozenset(curators), trusted)
    with contextlib.closing(
        bound(host, port) if line is None else line
    ) as line:  # also where no server begins
        with contextlib.closing(Users(users)) as held:
            for name in curators:
                held.one(name)
            held.begin(after_crashes=after_crashes)
        sys.setswitchinterval(SWITCH)
        with (
            ending_in_order(),
            standing(session, users, host, port, limits, ssl_certfile, ssl_keyfile, begun) as server,
        ):
            try:
                server.run(sockets=[line])
            finally:
                if on_socket:
                    with contextlib.suppress(OSError):
                        os.unlink(host.removeprefix(SOCKET))


@contextlib.contextmanager
def ending_in_order() -> Iterator[None]:
    """Let signals that end the process do so after what must be closed: uvicorn raises them once more."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held = {one: signal.signal(one, lambda *_: None) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, handler in held.items():
            signal.signal(one, handler)


@contextlib.contextmanager
def standing(
    session: Servable,
    users: str | os.PathLike[str],
    host: str,
    port: int,
    limits: Limits,
    ssl_certfile: str | None = None,
    ssl_keyfile: str | None = None,
    begun: Callable[[str], None] | None = None,
) -> Iterator[uvicorn.Server]:
    """Return a server that can be run, and at the end answer what waits and close the session."""
    held, scheduler = Users(users, waits=0.02), Scheduler(session, users)  # in the event loop nobody waits
    service = Service(session, scheduler, held, limits)
    config = configured(service.app(), host, port, ssl_certfile, ssl_keyfile)
    scheduler.start()
    try:
        server = _Telling(config, begun)
        service.ending = lambda: server.should_exit
        yield server
    finally:
        scheduler.stop()
        with contextlib.suppress(OnlineICError):  # the session is closed whatever becomes of that file
            held.good()
        held.close()
        session.close()


def configured(
    app: ASGIApp, host: str, port: int, ssl_certfile: str | None = None, ssl_keyfile: str | None = None
) -> uvicorn.Config:
    """Return how any of these servers runs."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        workers=1,
        http=Deadlined,
        ws="none",
        lifespan="off",
        log_config=None,  # as the command says
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=30,
        backlog=BACKLOG,
        ssl_certfile=ssl_certfile,
        ssl_keyfile=ssl_keyfile,
    )


def serve_tables(
    tables: Mapping[str, Table],
    users: str | os.PathLike[str],
    *,
    listen: str,
    line: socket.socket,
    begun: Callable[[str], None],
    hosts: tuple[str, ...] = (),
    ssl_certfile: str | None = None,
    ssl_keyfile: str | None = None,
    behind_proxy: bool = False,
) -> None:
    """Let users into several tables, each of which is served by another process, until told to end."""
    host, port = host_and_port(listen, tls=ssl_certfile is not None, behind_proxy=behind_proxy)
    secure = ssl_certfile is not None or behind_proxy or host.startswith(SOCKET)
    names = frozenset({*Limits().hosts, host.lower(), *map(str.lower, hosts)})
    with contextlib.closing(Users(users, waits=0.02)) as held, ending_in_order():
        app = Front(tables, held, Limits(names, secure)).app()
        _Telling(configured(app, host, port, ssl_certfile, ssl_keyfile), begun).run(sockets=[line])


def check_served(session: Servable) -> None:
    """Raise `InvalidParameterError` unless what is answered comes back after a crash, and is private."""
    view = session.view()
    if not view.statistics.private:
        raise InvalidParameterError(
            "session must have the system's noise to be served, got simulated noise, which is not private."
        )
    if session.durability != "all":
        raise InvalidParameterError(
            "session must have a ledger file and durability='all' to be served, got another: an answer that "
            "left could come back with another number."
        )
