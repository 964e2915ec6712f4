"""The routes: what is let in, in which form, and what leaves; all that answers stands behind the desk.

Order of every request: host, method, who asks, rate, size, form; only then a question. What is refused is
refused as problem+json with a stable code, and changes nothing. Nothing of a body, a token or a value is
logged.
"""

import asyncio
import csv
import datetime
import io
import json
import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, final
from urllib.parse import parse_qsl, urlsplit

import attrs
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onlineic.ask.json import is_share, shared
from onlineic.ask.json_keys import Share
from onlineic.ask.places import without_python
from onlineic.display.plain import csv_field, strict
from onlineic.errors import InvalidQueryError, OnlineICError, SessionStateError, TooLargeError, shown
from onlineic.ledger.settings import package_version
from onlineic.noise.sources import SystemNoise
from onlineic.queries.answers import Answer
from onlineic.questions.groups import Groups
from onlineic.questions.means import Derived
from onlineic.questions.statements import AnswerTable
from onlineic.service.desk import CELLS, Capped, Desk, Job
from onlineic.service.face import ALL, Grown, Servable, Span, over, span_of
from onlineic.service.openapi import openapi
from onlineic.service.page import EXPLAINED, curator_page, login_page, page_of, problem_block, read_form
from onlineic.service.rates import Rates
from onlineic.service.refusals import Problem, RefusedError, UnreadyError
from onlineic.service.replies import encoded, written_answers
from onlineic.service.users import User, Users, digest_of
from onlineic.service.wire import cost_of, from_wire
from onlineic.session.asking import Outcome
from onlineic.session.purse import Purse

MOST_BYTES = 2**16  # of a body
MOST_QUESTIONS = 256  # of a request
MOST_COST = 4096  # plain questions that those of a request may cost as much as
LONGEST_TEXT = 4096  # letters of a condition or a statement
MOST_ROWS = 10_000  # of synthetic records
PAGE_OF_RECORDS = 256
READS, LEAST_READS = 10, 1200  # that a user may do a minute for each question that they may ask, and at least
VISIT = 12 * 3600.0  # seconds that a login lasts
MOST_VISITS = 10_000
LETTERS, FEW = 2048, 16  # of a body, and its questions, that are read and told in the loop
TICK = 0.5  # seconds between looks for something new, for those who listen to events
QUIET = 15.0  # seconds after which a listener is told that the line stands
MOST_LISTENING = 8  # streams of events of one user
COOKIE = "onlineic"
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none browsers send no origin of a form
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
ADDED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_log = logging.getLogger("onlineic.service")


@final
@attrs.frozen
class Limits:
    """What a server lets in.

    Attributes
    ----------
    hosts : frozenset of str
        Names that a request may call it by, without ports.
    secure : bool
        Whether browsers reach it by TLS: cookies are then sent by no other way.
    curators : frozenset of str
        Names of users whose page tells of all users.
    clock : callable
        Seconds, by which rates and visits are counted.
    """

    hosts: frozenset[str] = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})
    secure: bool = False
    curators: frozenset[str] = frozenset()
    clock: Callable[[], float] = time.monotonic


@final
@attrs.frozen
class Read:
    """Questions of a request, as far as they can be asked.

    Attributes:
        refused: What is told of the others, by their place.
    """

    questions: list[Any]
    costs: list[int]
    refused: dict[int, Outcome]

    @classmethod
    def of(cls, asked: list[Any], bound: Callable[[Any], tuple[Any, int]]) -> "Read":
        """Return what can be asked of what was sent, up to the cost of a request."""
        found, total = cls([], [], {}), 0
        for place, one in enumerate(asked):
            try:
                question, own = bound(one)
                if total + own > MOST_COST:
                    raise TooLargeError(
                        f"a request must cost at most {MOST_COST:,} plain questions, got more: a table costs "
                        f"one for {CELLS} cells; ask the rest in another request, or a smaller table."
                    )
            except OnlineICError as error:
                found.refused[place] = Outcome(error=error)
            else:
                found.questions.append(question)
                found.costs.append(own)
                total += own
        return found

    def merged(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Return the outcomes of all, in the order in which they were sent."""
        answered, many = iter(outcomes), len(outcomes) + len(self.refused)
        return [self.refused[at] if at in self.refused else next(answered) for at in range(many)]


@final
class Service:
    """The routes of one session.

    Parameters
    ----------
    session : Servable
        A session, or periods, with a ledger file and durability "all": an answer that left must come back
        after a crash.
    desk : Desk
    users : Users
        Of the event loop's thread.
    limits : Limits
    """

    def __init__(self, session: Servable, desk: Desk, users: Users, limits: Limits) -> None:
        self._session, self._desk, self._users, self._limits = session, desk, users, limits
        self._visits: OrderedDict[str, tuple[str, float]] = OrderedDict()  # digests of cookie and token, end
        self._asking, self._reading = Rates("questions", limits.clock), Rates("reads", limits.clock)
        self._requests: dict[int, int] = {}
        self._summaries: dict[int, tuple[Any, Any]] = {}  # by answers: the view that it was made of, and it
        self._listening: Counter[str] = Counter()  # streams of events, by user
        self.ending: Callable[[], bool] = lambda: False  # whether the server goes down, and streams must end
        self._about = self._told(ALL)
        folder = Path(__file__).parent
        self._script = (folder / "page.js").read_bytes()
        self._looks = (folder / "page.css").read_bytes()
        get, post = ["GET"], ["POST"]
        self.routes = [
            Route("/v1/about", self._answered(self.about), methods=get),
            Route("/v1/answers", self._answered(self.answers), methods=post),
            Route("/v1/sql", self._answered(self.sql), methods=post),
            Route("/v1/share", self._answered(self.share), methods=post),
            Route("/v1/explain", self._answered(self.explain), methods=post),
            Route("/v1/bounds", self._answered(self.bounds), methods=post),
            Route("/v1/snapshot", self._answered(self.snapshot), methods=post),
            Route("/v1/statistics", self._answered(self.statistics), methods=get),
            Route("/v1/events", self._answered(self.events), methods=get),
            Route("/v1/transcript", self._answered(self.transcript), methods=get),
            Route("/v1/answers.csv", self._answered(self.sheet), methods=get),
            Route("/v1/summary", self._answered(self.summary), methods=get),
            Route("/v1/synthetic.csv", self._answered(self.synthetic), methods=get),
            Route("/v1/openapi.json", self._answered(self.described), methods=get),
            Route("/health", self.health, methods=get),
            Route("/ready", self.ready, methods=get),
            Route("/metrics", self._answered(self.metrics), methods=get),
            Route("/", self.home, methods=get),
            Route("/curator", self._answered(self.curator), methods=get),
            Route("/login", self.login, methods=post),
            Route("/logout", self.logout, methods=post),
            Route("/ask", self._answered(self.ask), methods=post),
            Route("/page.js", self.script, methods=get),
            Route("/page.css", self.looks, methods=get),
        ]
        self._app = Starlette(
            routes=self.routes,
            exception_handlers={
                HTTPException: _http_problem,
                RefusedError: _refusal,
                ClientDisconnect: _gone,
                Exception: _unexpected,
            },
        )

    def app(self) -> ASGIApp:
        """Return the application: the routes behind the checks that hold for all of them."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await self._app(scope, receive, send)
                return

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = message["status"]
                    self._requests[status] = self._requests.get(status, 0) + 1
                    message = {**message, "headers": [*message["headers"], *ADDED]}
                await send(message)

            hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            if len(hosts) != 1 or _host(hosts[0]) not in self._limits.hosts:
                problem = Problem(400, "host", "the host must be one that this server is called by.")
                await problem.json()(scope, receive, sending)
                return
            try:
                await self._app(scope, receive, sending)
            except Exception as error:  # Starlette raises again what it has answered as 500
                _log.error("request failed: %s", type(error).__name__)

        return guarded

    # -- who asks -------------------------------------------------------------------------------------------

    def _user(self, request: Request) -> User:
        """Return who asks, by the token of a program or the cookie of a visit."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            user = self._users.by_token(token.strip()) if kind.lower() == "bearer" else None
            if user is None and (cookie := request.cookies.get(COOKIE)) is not None:
                token, end = self._visits.get(digest_of(cookie), ("", 0.0))
                if end > self._limits.clock():
                    if request.method != "GET" and not _same_origin(request):
                        raise RefusedError(403, "forbidden", "the request must come from this page.")
                    user = self._users.by_digest(token)
        except OnlineICError as error:  # of the file: where it lies is nobody's business
            _log.error("users not read: %s", error.code)
            raise UnreadyError("who may ask must be known, got no users; ask later.") from None
        if user is None:
            said = {"WWW-Authenticate": "Bearer"}
            raise RefusedError(401, "unauthorized", "a token must be given that is valid.", **said)
        return user

    def _visitor(self, request: Request) -> User | None:
        try:
            return self._user(request)
        except RefusedError:
            return None

    def _reads(self, user: User, count: int = 1) -> None:
        """Refuse more reading a minute than a user may do: about so many milliseconds of the processor."""
        self._reading.admit(user.name, max(LEAST_READS, READS * user.per_minute), count)

    def _owes(self, user: User) -> Callable[[int], None]:
        return lambda count: self._asking.owe(user.name, user.per_minute, count)

    async def _worked(self, user: User, act: Callable[[Capped], Any], raw: bytes, span: Span) -> Any:
        """Return what is worked out of answers, each of which counts as a question."""
        over(self._session, span)
        self._asking.admit(user.name, user.per_minute, 0)  # it is counted as it begins

        def admit() -> None:
            self._asking.admit(user.name, user.per_minute)

        return await self._desk.work(Job.of(user, raw, span), act, admit, self._owes(user))

    def _answered(
        self, endpoint: Callable[[Request, User], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that knows who asks, and tells the package's refusals as problems."""

        async def known(request: Request) -> Response:
            try:
                return await endpoint(request, self._user(request))
            except OnlineICError as error:
                return Problem.of(error).json()

        return known

    # -- programs -------------------------------------------------------------------------------------------

    def _told(self, span: Span) -> dict[str, Any]:
        session, view = over(self._session, span), self._desk.view
        statistics = view.statistics
        grown = {"periods": _grown(view)} if isinstance(view, Grown) else {}
        return {
            **grown,
            "domain": json.loads(session.domain.to_json()),
            "n": session.n,
            "n_bound": session.n_bound,
            "beta": session.beta,
            "answers_tables": session.answers_tables,
            "rounded_in": None
            if (unit := getattr(session, "rounded_in", None)) is None
            else attrs.asdict(unit),
            "budget": {"epsilon": statistics.budget.epsilon, "delta": statistics.budget.delta},
            "rows_per_person": statistics.rows_per_person,
            "plan": {"hard_answers": view.plan.hard_answers, "max_queries": view.plan.max_queries},
            "version": package_version(),
        }

    async def about(self, request: Request, user: User) -> Response:
        """Tell what is asked about, over some periods if they are named."""
        span = span_of({name: request.query_params.get(name) for name in ("since", "until")})
        return JSONResponse(self._about if span == ALL else self._told(span))

    async def answers(self, request: Request, user: User) -> Response:
        """Answer questions, each by itself."""
        raw = await _body(request)
        sent = _parsed(raw)
        asked, span = _member(sent, "questions", list), span_of(sent)
        face = over(self._session, span)
        if len(asked) > MOST_QUESTIONS:
            raise TooLargeError(f"questions must be at most {MOST_QUESTIONS}, got {len(asked):,}.")
        self._asking.admit(user.name, user.per_minute, max(1, len(asked)))

        def read() -> Read:
            return Read.of(asked, lambda one: self._bound(one, face))

        light = len(raw) <= LETTERS and len(asked) <= FEW
        found = read() if light else await self._desk.reading.run(user.name, read)
        self._asking.owe(user.name, user.per_minute, sum(found.costs) - len(found.costs))
        questions = found.questions
        outcomes = await self._desk.outcomes(user, questions, found.costs, raw, span) if questions else []

        def rendered() -> bytes:
            return written_answers(found.merged(outcomes))

        if len(asked) <= FEW and sum(found.costs) <= FEW:
            return _json(rendered())
        return _json(await self._desk.reading.run(user.name, rendered))

    def _read(self, sent: Any, face: Any) -> Any:
        """Return a question that was sent."""
        if isinstance(sent, str) and len(sent) > LONGEST_TEXT:
            raise TooLargeError(f"a text must have at most {LONGEST_TEXT:,} letters, got {len(sent):,}.")
        return from_wire(sent, face.domain)

    def _bound(self, sent: Any, face: Any) -> tuple[Any, int]:
        """Return the same as it would be tested, if it can be asked, and its cost.

        Periods take a question by its conditions, and bind what they ask of each.
        """
        question = self._read(sent, face)
        bound = face.bind(question)
        return question if self._desk.spanned else bound, cost_of(sent, face.domain)

    async def sql(self, request: Request, user: User) -> Response:
        """Answer a statement."""
        raw = await _body(request)
        sent = _parsed(raw)
        text, span = _member(sent, "sql", str), span_of(sent)
        if len(text) > LONGEST_TEXT:
            raise TooLargeError(f"a text must have at most {LONGEST_TEXT:,} letters, got {len(text):,}.")
        return _json(await self._worked(user, lambda to: encoded(told(to.sql(text))), raw, span))

    async def share(self, request: Request, user: User) -> Response:
        """Answer a rate, by group or not."""
        raw = await _body(request)
        sent = _parsed(raw)
        span = span_of(sent)
        face = over(self._session, span)
        asked = self._shared(sent, face)
        return _json(await self._worked(user, lambda to: encoded(told(asked.asked(to))), raw, span))

    def _shared(self, sent: Any, face: Any) -> Share:
        """Return a rate that was sent, with the periods that it is over or not."""
        inner = {name: one for name, one in sent.items() if name not in ("since", "until")}
        cost_of(inner, face.domain)
        return shared(inner, face.domain)

    async def explain(self, request: Request, user: User) -> Response:
        """Tell what a question may cost."""
        raw = await _body(request)
        sent = _parsed(raw)
        asked = sent.get("question") if isinstance(sent, dict) else None
        self._reads(user)
        statement = isinstance(asked, str) and asked.lstrip()[:6].upper() == "SELECT"
        if statement and len(str(asked)) > LONGEST_TEXT:
            raise TooLargeError(f"a text must have at most {LONGEST_TEXT:,} letters.")
        span = span_of(sent)
        face, purse = over(self._session, span), self._purse(user)
        rate = not statement and is_share(asked, face.domain)

        def explained(view: Any) -> dict[str, Any]:
            question = asked if statement else self._shared(asked, face) if rate else self._read(asked, face)
            found: dict[str, Any] = over(view, span).explain(question, EXPLAINED, purse).to_dict()
            return found

        found = await self._desk.look(user, explained)
        self._owe_reads(user, found["answers"] - 1)
        return JSONResponse(found)

    def _owe_reads(self, user: User, count: int) -> None:
        self._reading.owe(user.name, max(LEAST_READS, READS * user.per_minute), count)

    async def bounds(self, request: Request, user: User) -> Response:
        """Bound given answers jointly."""

        def bounded(to: Any, questions: list[Any], answers: list[Answer]) -> list[float]:
            found: list[float] = to.joint_bounds(questions, answers).tolist()
            return found

        return JSONResponse({"bounds": strict(await self._of_given(request, user, bounded))})

    async def snapshot(self, request: Request, user: User) -> Response:
        """Tell given answers as the hypothesis says them now, null where one stays."""

        def read(to: Any, questions: list[Any], answers: list[Answer]) -> list[dict[str, Any] | None]:
            now = to.snapshot(questions, answers)
            return [
                None if one is told else Outcome(one).to_dict()
                for one, told in zip(now, answers, strict=True)
            ]

        return JSONResponse({"answers": await self._of_given(request, user, read)})

    async def _of_given(
        self, request: Request, user: User, work: Callable[[Any, list[Any], list[Answer]], list[Any]]
    ) -> list[Any]:
        """Return what a session says of answers that a program gives back, over their periods."""
        raw = await _body(request)
        sent = _parsed(raw)
        asked, values, statuses = (_member(sent, name, list) for name in ("questions", "values", "statuses"))
        bounds = _member(sent, "bounds", list) if "bounds" in sent else [None] * len(asked)
        if not len(asked) == len(values) == len(statuses) == len(bounds) <= 4 * MOST_QUESTIONS:
            raise InvalidQueryError("values and statuses must be one of each question, got other numbers.")
        self._reads(user, max(1, len(asked)))
        span = span_of(sent)
        face = over(self._session, span)

        def read() -> tuple[list[tuple[Any, int]], list[Answer]]:
            each = [self._bound(one, face) for one in asked]
            return each, [_given(*one) for one in zip(values, statuses, bounds, strict=True)]

        questions, answers = await self._desk.reading.run(user.name, read)

        def act(part: slice) -> Callable[[Any, Any], list[Any]]:
            return lambda to, session: work(to, [one for one, _ in questions[part]], answers[part])

        # a snapshot is of one moment; what a program gives back in one request is short enough for one part
        cost = max(1, sum(own for _, own in questions) // 8)
        (found,) = await self._desk.parts(user, [(cost, act(slice(None)))], raw, span)
        told: list[Any] = found
        return told

    def _purse(self, user: User) -> Purse:
        """Return what a user may spend, as their next question finds it."""
        return self._desk.purse(user, self._users.active)

    def _facts(self, user: User) -> dict[str, Any]:
        """Return public facts of now, and what is left of a user's part."""
        view, pool, purse = self._desk.view, self._desk.pool(), self._purse(user)
        paid = view.paid.get(user.name, Fraction(0))
        own = {
            "name": user.name,
            "share": float(user.part(self._users.active)),
            "paid": float(paid / pool) if pool else 0.0,
            "left": float(max(Fraction(0), purse.limit - paid) / pool) if pool else 0.0,
            "hard_left": view.hits_left(purse),
        }
        return {**view.to_dict(), "you": own}

    async def statistics(self, request: Request, user: User) -> Response:
        """Tell public facts of now; waits for nobody."""
        return JSONResponse(self._facts(user))

    async def events(self, request: Request, user: User) -> Response:
        """Tell public facts of now, again and again: until who listens goes, or may ask no more."""
        if self._listening[user.name] >= MOST_LISTENING:
            detail = f"at most {MOST_LISTENING} streams of one user may be open; close one."
            raise RefusedError(429, "rate", detail, **{"Retry-After": "15"})
        self._listening[user.name] += 1  # before the stream begins: many could come at once
        return StreamingResponse(
            self._stream(request, user.name),
            media_type="text/event-stream",
            headers={"x-accel-buffering": "no"},
        )

    async def _stream(self, request: Request, name: str) -> AsyncIterator[str]:
        told, quiet = "", 0.0
        try:
            while not self.ending():
                user = self._visitor(request)  # a token can be revoked meanwhile, and a visit ends
                if user is None or user.name != name:
                    return
                facts = json.dumps(self._facts(user), allow_nan=False)
                if facts != told:
                    yield f"event: facts\ndata: {facts}\n\n"
                    told, quiet = facts, 0.0
                elif quiet >= QUIET:
                    yield ": nothing new\n\n"
                    quiet = 0.0
                await asyncio.sleep(TICK)
                quiet += TICK
        finally:
            self._listening[name] -= 1

    async def transcript(self, request: Request, user: User) -> Response:
        """Tell what was released."""
        start = _number(request, "from", 0)
        limit = min(_number(request, "limit", PAGE_OF_RECORDS), PAGE_OF_RECORDS)
        if not limit:
            raise InvalidQueryError("limit must be at least 1, got 0.")
        self._reads(user, 1 + limit // 8)

        def rendered(view: Any) -> bytes:
            rows = [{"at": at, **answer.to_dict()} for at, answer in view.released(start, start + limit)]
            after = min(start + limit, view.length)
            more = {"next": after if after < view.length else None, "length": view.length}
            return encoded({"answers": rows, **more})

        return _json(await self._desk.look(user, rendered))

    async def _released(self, user: User, start: int, many: int) -> list[tuple[int, Answer]]:
        return await self._desk.look(user, lambda view: view.released(start, start + many))

    async def sheet(self, request: Request, user: User) -> Response:
        """Tell what was released as CSV, one row a number: all of it, a part at a time."""
        start, view = _number(request, "from", 0), self._desk.view
        self._reads(user)

        def part(view: Any, at: int) -> str:
            return sheet_of(view.released(at, min(at + PAGE_OF_RECORDS, view.length)))

        async def sheets() -> AsyncIterator[str]:
            yield sheet_head()
            for at in range(start, view.length, PAGE_OF_RECORDS):
                if self.ending():
                    return  # cut before its end, which a client sees
                self._owe_reads(user, PAGE_OF_RECORDS // 8)
                yield await self._desk.look(user, partial(part, at=at), view)

        headers = {"content-disposition": 'attachment; filename="answers.csv"'}
        return StreamingResponse(sheets(), headers=headers, media_type="text/csv; charset=utf-8")

    async def summary(self, request: Request, user: User) -> Response:
        """Tell the session on a page."""
        answers = min(_number(request, "answers", 20), PAGE_OF_RECORDS)
        self._reads(user, 16 + answers)
        found = await self._summary(user, answers)

        def rendered() -> bytes:
            return encoded({"text": str(found), "markdown": found.to_markdown(), "html": found.to_html()})

        return _json(await self._desk.reading.run(user.name, rendered))

    async def _summary(self, user: User, answers: int) -> Any:
        """Return the summary of now, made once for all who ask for it before something changes."""
        key, view = (answers, user.name), self._desk.view
        if (held := self._summaries.get(answers)) is not None and held[0] is view:
            return held[1]
        parts = [(8 + answers // 4, lambda to, session: session.summary(answers))]
        (found,) = await self._desk.parts(user, parts, repr(key).encode())
        self._summaries[answers] = (view, found)
        while len(self._summaries) > FEW:
            self._summaries.pop(next(iter(self._summaries)))
        return found

    async def synthetic(self, request: Request, user: User) -> Response:
        """Hand out synthetic rows, stamped as such."""
        rows, seed = _number(request, "rows", 1000), _number(request, "seed", 0)
        span = span_of({name: request.query_params.get(name) for name in ("since", "until")})
        if rows > MOST_ROWS:
            raise TooLargeError(f"rows must be at most {MOST_ROWS:,}, got {rows:,}.")
        if not isinstance(self._desk.view, Grown) and not self._desk.view.account.spent:
            raise SessionStateError("something must be asked before rows can be drawn from what was learned.")
        self._reads(user, 16 + rows // 16)

        def drawn(to: Any, session: Any) -> Any:
            return over(session, span).synthetic(rows, seed)

        (found,) = await self._desk.parts(user, [(16 + rows // 64, drawn)], b"synthetic")

        def written() -> str:
            columns = found.to_dict()
            text = io.StringIO()
            out = csv.writer(text, lineterminator="\n")
            out.writerow(map(csv_field, columns))
            for row in zip(*columns.values(), strict=True):
                out.writerow("" if one is None else csv_field(one) for one in row)
            return text.getvalue()

        return _file(await self._desk.reading.run(user.name, written), "synthetic.csv")

    async def described(self, request: Request, user: User) -> Response:
        """Describe the routes."""
        return JSONResponse(openapi())

    async def health(self, request: Request) -> Response:
        """Tell that the process lives."""
        return PlainTextResponse("ok\n")

    async def ready(self, request: Request) -> Response:
        """Tell whether questions can be answered."""
        return PlainTextResponse("ready\n") if self._desk.ready else PlainTextResponse("not ready\n", 503)

    async def metrics(self, request: Request, user: User) -> Response:
        """Tell numbers in the text form of Prometheus: all of them public."""
        desk, statistics = self._desk, self._desk.view.statistics
        lines = ["# TYPE onlineic_answers_total counter"]
        given, replies = sorted(desk.answered.items()), sorted(self._requests.items())
        lines += [f'onlineic_answers_total{{status="{name}"}} {many}' for name, many in given]

        lines.append("# TYPE onlineic_responses_total counter")
        lines += [f'onlineic_responses_total{{code="{code}"}} {many}' for code, many in replies]

        for name, kind, value in (
            ("waiting", "gauge", desk.waiting),
            ("turns_total", "counter", desk.turns),
            ("records", "gauge", desk.view.length),
            ("budget_spent", "gauge", statistics.spent),
            ("measured_answers_left", "gauge", statistics.hard_left),
            ("sealed", "gauge", int(statistics.sealed)),
            ("ready", "gauge", int(desk.ready)),
        ):
            lines += [f"# TYPE onlineic_{name} {kind}", f"onlineic_{name} {value}"]
        return PlainTextResponse("\n".join([*lines, ""]))

    # -- the page -------------------------------------------------------------------------------------------

    async def home(self, request: Request) -> Response:
        """Show the page, or where to log in."""
        user = self._visitor(request)
        if user is None:
            return _html(login_page())
        return await self._page(user)

    async def _page(self, user: User, form: Mapping[str, str] | None = None, result: str = "") -> Response:
        start = max(0, self._desk.view.length - 60)
        try:
            latest = (await self._released(user, start, 60))[-20:]
        except OnlineICError:
            latest = []
        facts, domain, view = self._facts(user), self._session.domain, self._desk.view
        curator = user.name in self._limits.curators
        return _html(page_of(domain, view, facts, latest, form or {}, result, curator))

    async def curator(self, request: Request, user: User) -> Response:
        """Show who may ask, who has paid and who asked last, to those who are named as curators."""
        if user.name not in self._limits.curators:
            raise RefusedError(403, "forbidden", "this page is for users whom serve --curator names.")
        view, pool, active = self._desk.view, self._desk.pool(), self._users.active
        rows = []
        for one in self._users.list():
            part, paid = one.part(active), view.paid.get(one.name, Fraction(0))
            spent, left = (paid / pool, max(Fraction(0), part - paid / pool)) if pool else (0, 0)
            state = "may ask" if one.revoked is None else "revoked"
            shares = (f"{float(each):.1%}" for each in (part, spent, left))
            rows.append((one.name, state, *shares, f"{one.per_minute:,}", _day(one.created)))
        log = [
            (_moment(when), line.user, line.digest[:12], f"{line.start} to {line.stop}", line.statuses)
            for when, line in [
                *((line.when, line) for line in self._desk.unwritten()),
                *self._users.logged(20),
            ][:20]
        ]
        summary = str((await self._summary(user, 20))._repr_html_())
        return _html(curator_page(rows, log, summary, view.statistics.private))

    async def login(self, request: Request) -> Response:
        """Begin a visit: the cookie is another secret than the token, and ends with this process."""
        if not _same_origin(request):
            raise RefusedError(403, "forbidden", "the request must come from this page.")
        form = _fields(await _body(request))
        token = digest_of(form.get("token", "").strip())
        if self._users.by_digest(token) is None:
            return _html(login_page("This token is not valid."), 401)
        secret = SystemNoise().words(4).tobytes().hex()
        self._visits[digest_of(secret)] = (token, self._limits.clock() + VISIT)
        while len(self._visits) > MOST_VISITS:
            self._visits.popitem(last=False)
        response = RedirectResponse("/", 303)
        response.set_cookie(COOKIE, secret, httponly=True, samesite="strict", secure=self._limits.secure)

        return response

    async def logout(self, request: Request) -> Response:
        """End a visit."""
        if not _same_origin(request):
            raise RefusedError(403, "forbidden", "the request must come from this page.")
        self._visits.pop(digest_of(request.cookies.get(COOKIE, "")), None)
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE, path="/")
        return response

    async def ask(self, request: Request, user: User) -> Response:
        """Ask, or explain, what the form says, and show the page with it."""
        raw = await _body(request)
        form = _fields(raw)
        try:
            span = span_of({name: form.get(name) or None for name in ("since", "until")})
            asked = read_form(form, over(self._session, span).domain)
            if len(asked.text) > LONGEST_TEXT:
                raise TooLargeError(f"a text must have at most {LONGEST_TEXT:,} letters.")
            if form.get("act") == "explain":
                self._reads(user)
                purse = self._purse(user)
                result = await self._desk.look(user, lambda view: asked.explained(over(view, span), purse))
            else:
                result = await self._worked(user, asked.answered, raw, span)
        except OnlineICError as error:
            result = asked_problem(error)
        except RefusedError as error:
            result = asked_problem(OnlineICError(error.detail))
        return await self._page(user, form, result)

    async def script(self, request: Request) -> Response:
        """Hand out the script."""
        return Response(self._script, media_type="text/javascript")

    async def looks(self, request: Request) -> Response:
        """Hand out the looks."""
        return Response(self._looks, media_type="text/css")


def asked_problem(error: OnlineICError) -> str:
    """Return a refusal as a block of the page."""
    return problem_block(error.code, without_python(str(error)))


def told(found: Answer | Derived | AnswerTable | Groups) -> dict[str, Any]:
    """Return what a statement or a rate found as plain values."""
    said: dict[str, Any] = strict(found.to_dict())
    if isinstance(found, Groups):
        return {"columns": said, "confidence": found.confidence, "name": found.name, "private": found.private}
    if isinstance(found, AnswerTable):
        sure, off = (dict(zip(found.names, each, strict=True)) for each in (found.confidences, found.biases))
        more = {"chosen": found.chosen} if found.chosen else {}
        return {"columns": said, "confidences": sure, "biases": off, "private": found.private, **more}
    return said


def sheet_head() -> str:
    """Return the first line of a sheet of answers."""
    return "at,question,cell,value,count,low,high,status,expected_error\n"


def sheet_of(found: Iterable[tuple[int, Answer]]) -> str:
    """Return answers as lines of a sheet, one a number."""
    rows = io.StringIO()
    out = csv.writer(rows, lineterminator="\n")
    for at, answer in found:
        held = answer.columns()
        label = (
            held.pop("query", [""] * len(held["status"])) if not answer.labels else [""] * len(held["status"])
        )
        said = answer.to_dict()["query"] if answer.labels else ""
        for place in range(len(held["status"])):
            cell = " x ".join(str(held[name][place]) for name in answer.labels) if answer.labels else ""
            numbers = [np.ravel(part)[place] for part in (answer.value, answer.count, *answer.bracket)]
            error = held["expected_error"][place]
            row = (at, said or label[place], cell, *map(float, numbers), answer.status, error)
            out.writerow(map(csv_field, row))
    return rows.getvalue()


async def _refusal(request: Request, error: Exception) -> Response:
    return Problem.of(error).json()


async def _http_problem(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    code = {404: "not-found", 405: "method", 400: "form"}.get(status, "http")
    return Problem(status, code, headers=headers).json()


async def _gone(request: Request, error: Exception) -> Response:
    return Problem(400, "gone").json()


async def _unexpected(request: Request, error: Exception) -> Response:
    _log.error("request failed: %s", type(error).__name__)
    return Problem(500, "internal").json()


async def _body(request: Request) -> bytes:
    """Return the body, of at most 64 kB whatever its header says."""
    try:
        told = int(request.headers.get("content-length", "0"))
    except ValueError:
        raise RefusedError(400, "form", "the length of the body must be a number.") from None
    parts, size = [], 0
    if told <= MOST_BYTES:
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                break
            parts.append(part)
    if max(told, size) > MOST_BYTES:
        raise RefusedError(
            413, "too-large", f"a body must have at most {MOST_BYTES:,} bytes.", Connection="close"
        )
    return b"".join(parts)


def _parsed(raw: bytes) -> Any:
    """Return the JSON of a body."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise InvalidQueryError("an object must name each member once, got one twice.")
        return dict(pairs)

    def none(text: str) -> Any:
        raise ValueError(text)

    try:
        return json.loads(raw, object_pairs_hook=distinct, parse_constant=none)
    except InvalidQueryError:
        raise
    except (ValueError, RecursionError):
        raise RefusedError(400, "form", "the body must be JSON in UTF-8, with finite numbers.") from None


def _grown(view: Grown) -> dict[str, Any]:
    """Return the public facts of periods as plain values."""
    rows: list[dict[str, Any]] = [
        {"label": label, "n": n, "level": level, "late": late} for label, n, level, _, late in view.rows()
    ]
    return {"levels": list(view.levels), "protects": view.protects, "periods": rows}


def _member(sent: Any, name: str, kind: type[Any]) -> Any:
    if not isinstance(sent, dict) or not isinstance(sent.get(name), kind):
        raise InvalidQueryError(f"the body must be an object with a {kind.__name__} called {shown(name)}.")
    return sent[name]


def _given(value: Any, status: Any, bound: Any) -> Answer:
    """Return an answer as it was told, for its bounds alone; one without a bound has an infinite one."""
    try:
        number, wide = np.array(value, np.float64), math.inf if bound is None else float(bound)
        if (
            not np.isfinite(number).all()
            or not wide >= 0.0
            or status not in ("easy", "hard", "repeat", "untested")
        ):
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise InvalidQueryError(
            "values must be finite numbers, bounds at least 0, and statuses those of answers."
        ) from None
    said: Any = float(number) if number.ndim == 0 else number
    return Answer(said, said, status, wide)


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise InvalidQueryError(f"{name} must be a whole number, got {shown(text)}.")
    return int(text)


def _fields(raw: bytes) -> dict[str, str]:
    """Return the fields of a form."""
    try:
        return dict(parse_qsl(raw.decode("utf-8"), keep_blank_values=True, max_num_fields=200))
    except ValueError:
        raise RefusedError(400, "form", "the body must be a form in UTF-8.") from None


def _host(header: str) -> str:
    host = header.rsplit(":", 1)[0] if header.rsplit(":", 1)[-1].isdigit() and ":" in header else header
    return host.lower()


def _same_origin(request: Request) -> bool:
    """Whether a browser sent a request from a page of this server, or no browser did."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site != "same-origin":
        return False
    if origin is None:
        return site is not None
    try:
        sent = urlsplit(origin).netloc.lower()
    except ValueError:  # an address that is none
        return False
    return sent == request.headers.get("host", "").lower()


def _moment(when: float) -> str:
    return f"{datetime.datetime.fromtimestamp(when, datetime.UTC):%Y-%m-%d %H:%M:%S}"


def _day(when: float) -> str:
    return _moment(when)[:10]


def _html(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="text/html; charset=utf-8")


def _json(written: bytes) -> Response:
    return Response(written, media_type="application/json")


def _file(text: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, headers=headers, media_type="text/csv; charset=utf-8")
