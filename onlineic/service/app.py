"""The routes for programs: what is let in, in which form, and what leaves; the scheduler answers.

Order of every request: host, method, who asks, rate, size, form; only then a question. What is refused is
refused with a stable code, as problem+json or as a page, and changes nothing. Nothing of a body, a token or a
value is logged.
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, final

import attrs
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onlineic.ask.json import is_share, shared, within_read, within_written, without_wish
from onlineic.ask.json_keys import Share
from onlineic.display.plain import strict
from onlineic.errors import InvalidQueryError, OnlineICError, TooLargeError
from onlineic.ledger.settings import package_version
from onlineic.queries.answers import Answer
from onlineic.queries.within import Within
from onlineic.questions.synthetic import synthetic
from onlineic.service import logs
from onlineic.service.bodies import body_of, member, number, parsed
from onlineic.service.face import ALL, NO_WISH, Grown, Servable, Span, over, span_of
from onlineic.service.forms import EXPLAINED
from onlineic.service.gate import Gate, Limits
from onlineic.service.metrics import metrics_of
from onlineic.service.office import Office
from onlineic.service.openapi import openapi
from onlineic.service.refusals import Problem, RefusedError
from onlineic.service.replies import encoded, written_answers
from onlineic.service.results import SHEET_OF_ANSWERS, sheet, sheet_of_answers, told
from onlineic.service.scheduler import CELLS, Job, LimitedSession, Scheduler
from onlineic.service.site import Site, problem_page
from onlineic.service.users import User, Users
from onlineic.service.wire import cost_of, costed
from onlineic.session.asking import Outcome

MOST_QUESTIONS = 256  # of a request
MOST_COST = 4096  # plain questions that those of a request may cost as much as
LONGEST_TEXT = 4096  # letters of a condition or a statement
MOST_ROWS = 10_000  # of synthetic records
PAGE_OF_RECORDS = 256
LETTERS, FEW = 2048, 16  # of a body, and its questions, that are read and told in the loop
TICK = 0.5  # seconds between looks for something new, for those who listen to events
QUIET = 15.0  # seconds after which a listener is told that the line stands
MOST_LISTENING = 8  # streams of events of one user
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
_log = logs.log


@final
@attrs.frozen
class Read:
    """Questions of a request, as far as they can be asked.

    Attributes:
        refused: What is told of the others, by their place.
    """

    questions: list[Any]
    costs: list[int]
    wishes: list[Within | None]
    refused: dict[int, Outcome]

    @classmethod
    def of(cls, asked: list[Any], bound: Callable[[Any], tuple[Any, int, Within | None]]) -> "Read":
        """Return what can be asked of what was sent, up to the cost of a request."""
        found, total = cls([], [], [], {}), 0
        for place, one in enumerate(asked):
            try:
                question, own, wish = bound(one)
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
                found.wishes.append(wish)
                total += own
        return found

    def merged(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Return the outcomes of all, in the order in which they were sent."""
        answered, many = iter(outcomes), len(outcomes) + len(self.refused)
        return [self.refused[at] if at in self.refused else next(answered) for at in range(many)]


@final
class Service:
    """The routes of one session.

    Args:
        session: With a ledger file and durability "all": an answer that left must come back after a crash.
        users: Of the event loop's thread.
    """

    def __init__(self, session: Servable, scheduler: Scheduler, users: Users, limits: Limits) -> None:
        self._session, self._scheduler, self._limits = session, scheduler, limits
        self._gate = Gate(users, limits)
        self._office = Office(session, scheduler, self._gate)
        self._requests: Counter[int] = Counter()
        self._listening: Counter[str] = Counter()  # streams of events, by user
        self.ending: Callable[[], bool] = lambda: False  # whether the server goes down, and streams must end
        self._about = self._told(ALL)
        get, post = ["GET"], ["POST"]
        self.routes = [
            Route("/v1/about", self._known(self.about), methods=get),
            Route("/v1/answers", self._known(self.answers), methods=post),
            Route("/v1/sql", self._known(self.sql), methods=post),
            Route("/v1/share", self._known(self.share), methods=post),
            Route("/v1/explain", self._known(self.explain), methods=post),
            Route("/v1/prospects", self._known(self.prospects), methods=post),
            Route("/v1/bounds", self._known(self.bounds), methods=post),
            Route("/v1/snapshot", self._known(self.snapshot), methods=post),
            Route("/v1/statistics", self._known(self.statistics), methods=get),
            Route("/v1/progress", self._known(self.progress), methods=get),
            Route("/v1/events", self._known(self.events), methods=get),
            Route("/v1/transcript", self._known(self.transcript), methods=get),
            Route("/v1/answers.csv", self._known(self.sheet), methods=get),
            Route("/v1/summary", self._known(self.summary), methods=get),
            Route("/v1/synthetic.csv", self._known(self.synthetic), methods=get),
            Route("/v1/synthetic.json", self._known(self.synthetic), methods=get),
            Route("/v1/openapi.json", self.described, methods=get),
            Route("/health", self.health, methods=get),
            Route("/ready", self.ready, methods=get),
            Route("/metrics", self._known(self.metrics), methods=get),
            *Site(self._office).routes(self._known),
        ]
        self._app = Starlette(
            routes=self.routes,
            exception_handlers={
                HTTPException: http_problem,
                RefusedError: refused,
                OnlineICError: refused,
                ClientDisconnect: _gone,
                Exception: _unexpected,
            },
        )
        self._app.router.redirect_slashes = False  # behind a proxy it would lead away from TLS

    def app(self) -> ASGIApp:
        """Return the application: the routes behind the checks that hold for all of them."""
        paths = frozenset(route.path for route in self.routes)

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await self._app(scope, receive, send)
                return

            named = logs.begin()

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._requests[message["status"]] += 1
                    own = (b"x-request-id", named.name.encode())
                    message = {**message, "headers": [*message["headers"], *ADDED, own]}
                    # never the query, which can be a question, and no path but those that there are
                    path = scope["path"] if scope["path"] in paths else "-"
                    _log.info("%s %s %d", scope["method"], path, message["status"])
                await send(message)

            await let_in(self._app, self._limits, scope, receive, sending)

        return guarded

    def _known(
        self, endpoint: Callable[[Request, User], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that is handed who asks."""

        async def known(request: Request) -> Response:
            return await endpoint(request, self._gate.user(request))

        return known

    # -- questions ------------------------------------------------------------------------------------------

    def _told(self, span: Span) -> dict[str, Any]:
        session, view = over(self._session, span), self._scheduler.view
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
            "unit": None if statistics.unit is None else attrs.asdict(statistics.unit),
            "plan": {"hard_answers": view.plan.hard_answers, "max_queries": view.plan.max_queries},
            "version": package_version(),
        }

    async def about(self, request: Request, user: User) -> Response:
        """Tell what is asked about, over some periods if they are named."""
        span = _span(request)
        told, wish = self._about if span == ALL else self._told(span), self._scheduler.wish(user, None)
        return JSONResponse({**told, **_wished(wish), "finest": user.finest})

    async def answers(self, request: Request, user: User) -> Response:
        """Answer questions, each by itself."""
        raw = await body_of(request)
        sent = parsed(raw)
        asked, span = member(sent, "questions", list), span_of(sent)
        face, wish = over(self._session, span), self._wish(sent, user)
        if len(asked) > MOST_QUESTIONS:
            raise TooLargeError(f"questions must be at most {MOST_QUESTIONS}, got {len(asked):,}.")

        def bound(one: Any) -> tuple[Any, int, Within | None]:
            question, own = self._own_wish(one, face, user)
            return *self._bound(question, face), own or wish or self._scheduler.wish(user, None)

        async def answered(job: Job) -> Response:
            self._gate.ask(user, max(1, len(asked)))
            light = len(raw) <= LETTERS and len(asked) <= FEW
            read = partial(Read.of, asked, bound)
            found = read() if light else await self._scheduler.reading.run(user.name, read)
            self._gate.owe(user, sum(found.costs) - len(found.costs))
            outcomes = []
            if found.questions:
                outcomes = await self._scheduler.outcomes(job, found.questions, found.costs, found.wishes)
            more = {**self._office.payment(job)(), **_wished(wish)}
            rendered = partial(written_answers, found.merged(outcomes), more)
            if len(asked) <= FEW and sum(found.costs) <= FEW:
                return _json(rendered())
            return _json(await self._scheduler.reading.run(user.name, rendered))

        return await self._office.once(user, request.headers.get("idempotency-key"), raw, span, answered)

    def _wish(self, sent: Any, user: User) -> Within | None:
        """Return how exact the answers to a request are to be, where it says that."""
        if not isinstance(sent, dict) or sent.get("within") is None:
            return None
        if self._scheduler.spanned:
            raise InvalidQueryError(NO_WISH)
        return self._scheduler.wish(user, within_read(sent["within"]))

    def _own_wish(self, sent: Any, face: Any, user: User) -> tuple[Any, Within | None]:
        """Return a question that was sent, and how exact its answer is to be, where it says that itself."""
        question, wish = without_wish(sent, face.domain)
        if wish is not None and self._scheduler.spanned:
            raise InvalidQueryError(NO_WISH)
        return question, None if wish is None else self._scheduler.wish(user, wish)

    def _read(self, sent: Any, face: Any) -> Any:
        """Return a question that was sent."""
        return self._costed(sent, face)[0]

    def _costed(self, sent: Any, face: Any) -> tuple[Any, int]:
        """Return a question that was sent, and its cost."""
        if isinstance(sent, str) and len(sent) > LONGEST_TEXT:
            raise TooLargeError(f"a text must have at most {LONGEST_TEXT:,} letters, got {len(sent):,}.")
        return costed(sent, face.domain)

    def _bound(self, sent: Any, face: Any) -> tuple[Any, int]:
        """Return the same as it would be tested, if it can be asked, and its cost.

        Periods take a question by its conditions, and bind what they ask of each.
        """
        question, cost = self._costed(sent, face)
        bound = face.bind(question)
        return question if self._scheduler.spanned else bound, cost

    async def sql(self, request: Request, user: User) -> Response:
        """Answer a statement."""
        raw = await body_of(request)
        sent = parsed(raw)
        text, span, wish = member(sent, "sql", str), span_of(sent), self._wish(sent, user)
        if len(text) > LONGEST_TEXT:
            raise TooLargeError(f"a text must have at most {LONGEST_TEXT:,} letters, got {len(text):,}.")

        async def answered(job: Job) -> Response:
            paid = self._office.payment(job)

            def stated(to: LimitedSession) -> bytes:
                found = told(to.sql(text, within=wish))
                return encoded({**found, **paid(), **_wished(wish)})

            return _json(await self._office.worked(job, stated))

        return await self._office.once(user, request.headers.get("idempotency-key"), raw, span, answered)

    async def share(self, request: Request, user: User) -> Response:
        """Answer a rate, by group or not."""
        raw = await body_of(request)
        sent = parsed(raw)
        span = span_of(sent)
        asked = self._shared(sent, over(self._session, span))

        async def answered(job: Job) -> Response:
            paid = self._office.payment(job)

            def rated(to: LimitedSession) -> bytes:
                found = told(asked.asked(to))
                return encoded({**found, **paid()})

            return _json(await self._office.worked(job, rated))

        return await self._office.once(user, request.headers.get("idempotency-key"), raw, span, answered)

    def _shared(self, sent: Any, face: Any) -> Share:
        """Return a rate that was sent, with the periods that it is over or not."""
        inner = sent
        if isinstance(sent, dict):
            inner = {name: one for name, one in sent.items() if name not in ("since", "until")}
        cost_of(inner, face.domain)
        return shared(inner, face.domain)

    # -- what was not asked ---------------------------------------------------------------------------------

    async def explain(self, request: Request, user: User) -> Response:
        """Tell what a question, or each of several together, may cost who asks."""
        sent = parsed(await body_of(request))
        asked = sent.get("question", sent.get("questions")) if isinstance(sent, dict) else None
        self._gate.read(user)
        statement = isinstance(asked, str) and asked.lstrip()[:6].upper() == "SELECT"
        if statement and len(str(asked)) > LONGEST_TEXT:
            raise TooLargeError(f"a text must have at most {LONGEST_TEXT:,} letters.")
        span = span_of(sent)
        face, quota, wish = over(self._session, span), self._office.quota(user), self._wish(sent, user)
        rate = not statement and is_share(asked, face.domain)

        def explained(view: Any) -> dict[str, Any]:
            question, own = asked, wish
            if isinstance(asked, list):
                question = [self._read(one, face) for one in asked[: EXPLAINED + 1]]
            elif rate:
                question = self._shared(asked, face)
            elif not statement:
                question, exact = self._own_wish(asked, face, user)
                question, own = self._read(question, face), exact or wish
            found: dict[str, Any] = over(view, span).explain(question, EXPLAINED, quota, own).to_dict()
            return {**found, **_wished(own)}

        found = await self._scheduler.look(user, explained)
        self._gate.owe_reads(user, found["answers"] - 1)
        return JSONResponse(found)

    async def prospects(self, request: Request, user: User) -> Response:
        """Tell what each question would be answered if its test turned out easy: for explanations alone."""
        sent = parsed(await body_of(request))
        asked, span = member(sent, "questions", list), span_of(sent)
        if len(asked) > MOST_QUESTIONS:
            raise TooLargeError(f"questions must be at most {MOST_QUESTIONS}, got {len(asked):,}.")
        self._gate.read(user, max(1, len(asked)))
        if self._scheduler.spanned:
            raise InvalidQueryError(
                "a function must be explained of a session without periods, got periods; explain a statement."
            )
        face, quota = over(self._session, span), self._office.quota(user)

        def looked(view: Any) -> bytes:
            seen = over(view, span)
            found = [seen.preview(self._read(one, face), quota) for one in asked]
            said = [{"answer": Outcome(one.answer).to_dict(), "joint": _finite(one.joint)} for one in found]
            return encoded({"prospects": said})

        return _json(await self._scheduler.look(user, looked))

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
        raw = await body_of(request)
        sent = parsed(raw)
        asked, values, statuses = (member(sent, name, list) for name in ("questions", "values", "statuses"))
        bounds = member(sent, "bounds", list) if "bounds" in sent else [None] * len(asked)
        if not len(asked) == len(values) == len(statuses) == len(bounds) <= 4 * MOST_QUESTIONS:
            raise InvalidQueryError("values and statuses must be one of each question, got other numbers.")
        self._gate.read(user, max(1, len(asked)))
        span = span_of(sent)
        face = over(self._session, span)

        def read() -> tuple[list[tuple[Any, int]], list[Answer]]:
            each = [self._bound(one, face) for one in asked]
            return each, [_given(*one) for one in zip(values, statuses, bounds, strict=True)]

        if not self._scheduler.spanned:

            def looked(view: Any) -> list[Any]:
                questions, answers = read()
                return work(view, [one for one, _ in questions], answers)

            return await self._scheduler.look(user, looked)
        questions, answers = await self._scheduler.reading.run(user.name, read)

        def act(to: Any, session: Any) -> list[Any]:
            return work(to, [one for one, _ in questions], answers)

        cost = max(1, sum(own for _, own in questions) // 8)
        (found,) = await self._scheduler.parts(Job.of(user, raw, span), [(cost, act)])
        said: list[Any] = found
        return said

    # -- what is public -------------------------------------------------------------------------------------

    async def statistics(self, request: Request, user: User) -> Response:
        """Tell public facts of now; waits for nobody."""
        facts, family = self._office.facts(user), self._scheduler.view.statistics.family
        if family is None or not request.query_params.get("family"):
            return JSONResponse(facts)
        self._gate.read(user, 1 + len(family.sets) // 256)
        return JSONResponse({**facts, "family": attrs.asdict(family)})

    async def progress(self, request: Request, user: User) -> Response:
        """Tell how far a request with a key has come; waits for nobody."""
        return JSONResponse(self._office.progress(user, request.query_params.get("key", "")))

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
                user = self._gate.visitor(request)  # a token can be revoked meanwhile, and a visit ends
                if user is None or user.name != name:
                    return
                facts = json.dumps(self._office.facts(user), allow_nan=False)
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
        start = number(request, "from", 0)
        limit = min(number(request, "limit", PAGE_OF_RECORDS), PAGE_OF_RECORDS)
        if not limit:
            raise InvalidQueryError("limit must be at least 1, got 0.")
        self._gate.read(user, 1 + limit // 8)

        def rendered(view: Any) -> bytes:
            rows = [{"at": at, **answer.to_dict()} for at, answer in view.released(start, start + limit)]
            after = min(start + limit, view.length)
            more = {"next": after if after < view.length else None, "length": view.length}
            return encoded({"answers": rows, **more})

        return _json(await self._scheduler.look(user, rendered))

    async def sheet(self, request: Request, user: User) -> Response:
        """Tell what was released as CSV, one row a number: all of it, a part at a time."""
        start, view = number(request, "from", 0), self._scheduler.view
        self._gate.read(user)

        def part(view: Any, at: int) -> str:
            return sheet_of_answers(view.released(at, min(at + PAGE_OF_RECORDS, view.length)))

        async def sheets() -> AsyncIterator[str]:
            yield ",".join(SHEET_OF_ANSWERS) + "\n"
            for at in range(start, view.length, PAGE_OF_RECORDS):
                if self.ending():
                    raise ClientDisconnect  # cut before its end, which a client sees
                self._gate.owe_reads(user, PAGE_OF_RECORDS // 8)
                yield await self._scheduler.look(user, partial(part, at=at), view)

        headers = {"content-disposition": 'attachment; filename="answers.csv"'}
        return StreamingResponse(sheets(), headers=headers, media_type="text/csv; charset=utf-8")

    async def summary(self, request: Request, user: User) -> Response:
        """Tell the session on a page."""
        answers = min(number(request, "answers", 20), PAGE_OF_RECORDS)
        self._gate.read(user, 16 + answers)

        async def written() -> bytes:
            found = await self._office.summary(user, answers)

            def rendered() -> bytes:
                return encoded({"text": str(found), "markdown": found.to_markdown(), "html": found.to_html()})

            return await self._scheduler.reading.run(user.name, rendered)

        return _json(await self._office.shared(("written", answers), written))

    async def synthetic(self, request: Request, user: User) -> Response:
        """Hand out synthetic rows, stamped as such: before anything was asked, of the public start."""
        rows, seed, span = number(request, "rows", 1000), number(request, "seed", 0), _span(request)
        if rows > MOST_ROWS:
            raise TooLargeError(f"rows must be at most {MOST_ROWS:,}, got {rows:,}.")
        self._gate.read(user, 16 + rows // 16)
        view: Any = self._scheduler.view
        begun = isinstance(view, Grown) or bool(view.account.spent)
        if isinstance(view, Grown):
            act = (16 + rows // 64, lambda to, session: over(session, span).synthetic(rows, seed))
            (drawn,) = await self._scheduler.parts(Job.of(user, b"synthetic"), [act])
        else:
            over(self._session, span)
            drawn = None

        plain = request.url.path.endswith(".json")

        def written() -> bytes:
            found = drawn
            if found is None:
                found = synthetic(view.hypothesis, rows, seed, view.statistics.private)
            if plain:
                more = {"seed": found.seed, "private": found.private, "learned": begun}
                return encoded({"columns": found.columns, **more})
            return sheet(found.to_dict()).encode()

        name = "synthetic.csv" if begun else "synthetic-nothing-learned-yet.csv"
        text = await self._scheduler.reading.run(user.name, written)
        if plain:
            return _json(text)
        headers = {"content-disposition": f'attachment; filename="{name}"', "x-learned": str(begun).lower()}
        return Response(text, headers=headers, media_type="text/csv; charset=utf-8")

    async def described(self, request: Request) -> Response:
        """Describe the routes: nothing of it is about the data, so it needs no token."""
        return JSONResponse(openapi())

    async def health(self, request: Request) -> Response:
        """Tell that the process lives."""
        return PlainTextResponse("ok\n")

    async def ready(self, request: Request) -> Response:
        """Tell whether questions can be answered."""
        return (
            PlainTextResponse("ready\n") if self._scheduler.ready else PlainTextResponse("not ready\n", 503)
        )

    async def metrics(self, request: Request, user: User) -> Response:
        """Tell numbers in the text form of Prometheus: all of them public."""
        return PlainTextResponse(
            metrics_of(self._scheduler, self._requests), media_type="text/plain; version=0.0.4; charset=utf-8"
        )


async def let_in(app: ASGIApp, limits: Limits, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request while its asker listens, if it calls the server by one of its names."""
    if host_of(scope) not in limits.hosts:
        problem = Problem(400, "host", "the host must be one that this server is called by.")
        await shown(Request(scope), problem)(scope, receive, send)
        return
    try:
        await while_heard(app, scope, receive, send)
    except Exception as error:  # Starlette raises again what it has answered as 500
        _log.error("request failed: %s", type(error).__name__)


async def while_heard(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run an application until its client goes: a request without a key is given up then."""
    whole = asyncio.Event()

    async def receiving() -> Message:
        message = await receive()
        if not message.get("more_body"):
            whole.set()
        return message

    async def going() -> None:
        await whole.wait()
        while (await receive())["type"] != "http.disconnect":
            pass

    if scope["method"] != "POST":
        await app(scope, receive, send)
        return
    act, gone = asyncio.ensure_future(app(scope, receiving, send)), asyncio.ensure_future(going())
    try:
        await asyncio.wait({act, gone}, return_when=asyncio.FIRST_COMPLETED)
        if act.done():
            await act
    finally:
        for one in (act, gone):
            one.cancel()
        await asyncio.gather(act, gone, return_exceptions=True)


# -- refusals -----------------------------------------------------------------------------------------------


def shown(request: Request, problem: Problem) -> Response:
    """Return a refusal as a page for those who read pages, else as problem+json."""
    html = "text/html" in request.headers.get("accept", "")
    return problem_page(problem, request.url.path) if html else problem.json()


async def refused(request: Request, error: Exception) -> Response:
    """Return what an error is told as."""
    return shown(request, Problem.of(error))


async def http_problem(request: Request, error: Exception) -> Response:
    """Return what no route is told as."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    code = {404: "not-found", 405: "method", 400: "form"}.get(status, "http")
    return shown(request, Problem(status, code, headers=headers))


async def _gone(request: Request, error: Exception) -> Response:
    return Problem(400, "gone").json()


async def _unexpected(request: Request, error: Exception) -> Response:
    _log.error("request failed: %s", type(error).__name__)
    return shown(request, Problem(500, "internal"))


# -- forms --------------------------------------------------------------------------------------------------


def _span(request: Request) -> Span:
    return span_of({name: request.query_params.get(name) for name in ("since", "until")})


def _grown(view: Grown) -> dict[str, Any]:
    """Return the public facts of periods as plain values."""
    rows: list[dict[str, Any]] = [
        {"label": label, "n": n, "level": level, "late": late} for label, n, level, _, late in view.rows()
    ]
    return {"levels": list(view.levels), "protects": view.protects, "periods": rows}


def _wished(within: Within | None) -> dict[str, Any]:
    """Return the member of a reply that says how exact its answers were to be."""
    return {} if within is None else {"within": within_written(within)}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


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


def host_of(scope: Scope) -> str:
    """Return the name that a request calls the server by, without its port; "" where it is not one."""
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    header = hosts[0] if len(hosts) == 1 else ""
    host = header.rsplit(":", 1)[0] if header.rsplit(":", 1)[-1].isdigit() and ":" in header else header
    return host.lower()


def _json(written: bytes) -> Response:
    return Response(written, media_type="application/json")
