"""The routes of the page: asked by a form, shown by an address that can be kept, sent on and reloaded.

A question is asked by POST alone, and its answer stands at the address of the question: to GET it asks
nothing, and shows what was told, if it was told.
"""

import datetime
import json
from collections.abc import Awaitable, Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from onlineic.domain.unit import whose
from onlineic.errors import OnlineICError, TooFineWishError
from onlineic.queries.answers import Answer
from onlineic.service.bodies import body_of
from onlineic.service.face import ALL, Grown, Shown, over
from onlineic.service.forms import AskedForm, FieldError, fields_of, in_plain_words, query_of, read_form
from onlineic.service.gate import COOKIE, Gate, check_origin
from onlineic.service.office import Office
from onlineic.service.page import (
    attributes_of,
    bare,
    cost_said,
    exactness_of,
    explained_of,
    form_of,
    gauge_of,
    history_rows,
    periods_of,
    problem_of,
    record_rows,
    rendered,
    title_of,
    told_of,
    too_fine,
)
from onlineic.service.refusals import Problem, RefusedError
from onlineic.service.results import Results, columns_of, sheet, told
from onlineic.service.scheduler import Job
from onlineic.service.users import MOST_REMEMBERED, Put, User

LONGEST_ADDRESS = 2000  # letters of a query that an answer is shown at
LISTED, SHOWN = 12, 8  # of the record, and of one's own questions, that are shown
LOOKED_AT = 5  # times as many records among which some no longer stand
PAGE_READS = 4  # that a page counts for
KIND = "text/html; charset=utf-8"
_folder = Path(__file__).parent
_icon = ((_folder / "icon.svg").read_bytes(), "image/svg+xml")
FILES = {
    "/page.js": ((_folder / "page.js").read_bytes(), "text/javascript"),
    "/page.css": ((_folder / "page.css").read_bytes(), "text/css"),
    "/icon.svg": _icon,
    "/favicon.ico": _icon,
}
Handled = Callable[[Request], Awaitable[Response]]


@final
class Site:
    """The routes of the page."""

    def __init__(self, office: Office) -> None:
        self._office, self._gate, self._scheduler = office, office.gate, office.scheduler
        self._results = Results()
        self._attributes = attributes_of(office.session.domain)

    def routes(
        self, known: Callable[[Callable[[Request, User], Awaitable[Response]]], Handled]
    ) -> list[Route]:
        """Return the routes.

        Args:
            known: Makes an endpoint of one that is handed who asks.
        """
        get, post = ["GET"], ["POST"]
        return [
            Route("/", self.home, methods=get),
            Route("/ask", self.ask, methods=post),
            Route("/ask", self.asked, methods=get),
            Route("/result.csv", known(self.as_sheet), methods=get),
            Route("/result.json", known(self.as_json), methods=get),
            Route("/mine", known(self.mine), methods=get),
            Route("/help", self.help, methods=get),
            Route("/curator", known(self.curator), methods=get),
            Route("/login", self.login, methods=post),
            Route("/login", self.asked, methods=get),
            Route("/logout", self.logout, methods=post),
            *(Route(path, self.file, methods=get) for path in FILES),
        ]

    # -- questions ------------------------------------------------------------------------------------------

    async def home(self, request: Request) -> Response:
        """Show the page, with the question of the address: its answer, if it was told, or an explanation."""
        user = self._gate.visitor(request)
        if user is None:
            return _html(rendered("login.html", problem="", next=query_of(fields_of(request.url.query))))
        form = fields_of(request.url.query)
        if not form:
            return await self._page(user, form)
        try:
            asked = self._read(form)
            if request.query_params.get("act") == "explain":
                self._gate.read(user)
                return await self._page(user, form, asked=asked, explained=await self._explained(user, asked))
            found = self._results.get(user.name, asked.query)
            if found is None:
                found = await self._scheduler.look(user, lambda view: self._recalled(view, asked))
            return await self._page(user, form, asked=asked, found=found)
        except (OnlineICError, RefusedError) as error:
            return await self._refused(user, form, error)

    async def ask(self, request: Request) -> Response:
        """Ask, or explain, what the form says, and lead to the address of the answer."""
        raw = await body_of(request)
        form = fields_of_body(raw)
        user = self._gate.visitor(request)
        if user is None:
            self._gate_or_login(request)
            said = "Please log in again: the last visit has ended."
            return _html(rendered("login.html", problem=said, next=query_of(form)), 401)
        try:
            asked = self._read(form)
            if form.get("act") == "explain":
                if len(asked.query) <= LONGEST_ADDRESS:
                    return RedirectResponse(f"./?{asked.query}&act=explain", 303)
                self._gate.read(user)
                return await self._page(user, form, asked=asked, explained=await self._explained(user, asked))

            async def answered(job: Job) -> Response:
                payment = self._office.payment(job)
                found = await self._office.worked(job, asked.of)
                self._results.keep(user.name, asked.query, found, payment())
                self._scheduler.remember(Put(user.name, asked.query, asked.title))
                if len(asked.query) > LONGEST_ADDRESS:
                    return await self._page(user, form, asked=asked, found=found)
                return RedirectResponse(f"./?{asked.query}", 303)

            return await self._office.once(user, form.get("key"), raw, asked.span, answered)
        except (OnlineICError, RefusedError) as error:
            return await self._refused(user, form, error)

    def _gate_or_login(self, request: Request) -> None:
        """Raise what is wrong with a request but that nobody has logged in."""
        try:
            self._gate.user(request)
        except RefusedError as error:
            if error.status != 401:
                raise

    async def asked(self, request: Request) -> Response:
        """Lead to the form: the address of a question that was sent is no page."""
        query = query_of(fields_of(request.url.query))
        return RedirectResponse(f"./?{query}" if query else "./", 303)

    def _read(self, form: Mapping[str, str]) -> AskedForm:
        span = (form.get("since") or None, form.get("until") or None)
        if self._scheduler.spanned and form.get("exact", "").strip():
            raise FieldError("exact", "Leave this empty: how exact cannot be asked over periods.")
        face = over(self._office.session, span)
        return read_form(form, face.domain, face.n)

    async def _explained(self, user: User, asked: AskedForm) -> list[str]:
        quota, beta = self._office.quota(user), self._office.session.beta

        def explained(view: Any) -> Any:
            seen = over(view, asked.span)
            return asked.explained(seen, quota), seen.n

        found, n = await self._scheduler.look(user, explained)
        self._gate.owe_reads(user, found.answers)
        return explained_of(found, n, beta, asked.wish, wishes=not self._scheduler.spanned)

    def _recalled(self, view: Any, asked: AskedForm) -> Any:
        """Return what was told of a question, worked out of what stands in the record, or None."""
        rounded_in = getattr(self._office.session, "rounded_in", None)
        return over(view, asked.span).recalled(asked.of, rounded_in)

    # -- what it is shown as --------------------------------------------------------------------------------

    async def _refused(self, user: User, form: Mapping[str, str], error: Exception) -> Response:
        """Show the form again, with what is wrong beside its field."""
        problem = Problem.of(error)
        if isinstance(error, TooFineWishError) and form.get("exact"):
            n = over(self._office.session, ALL).n
            return await self._page(user, form, errors={"exact": too_fine(user.finest, n)}, status=422)
        if isinstance(error, FieldError):
            return await self._page(user, form, errors={error.field: str(error)}, status=422)
        said = problem_of(problem)
        said["detail"] = in_plain_words(said["detail"])
        return await self._page(user, form, refused=said, status=problem.status, headers=problem.headers)

    async def _page(
        self,
        user: User,
        form: Mapping[str, str],
        *,
        asked: AskedForm | None = None,
        found: Any = None,
        explained: list[str] | None = None,
        refused: Mapping[str, str] | None = None,
        errors: Mapping[str, str] | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if not (errors or refused):
            self._gate.read(user, PAGE_READS)
        facts, session = self._office.facts(user), self._office.session
        history, beta = self._history(user, SHOWN), session.beta

        def made(view: Any) -> str:
            latest = latest_of(view)
            grown = view if isinstance(view, Grown) else None
            seen = view if asked is None else over(view, asked.span)
            shown = None if found is None or asked is None else told_of(asked, found, seen.n, beta)
            paid = {} if asked is None else self._results.paid(user.name, asked.query)
            return rendered(
                "page.html",
                title=title_of(view),
                private=view.statistics.private,
                unit=whose(view.statistics.unit),
                you=facts["you"],
                curator=self._gate.curator(user),
                form=form_of(session.domain, form, grown),
                errors=errors or {},
                filled=bool(form),
                refused=refused,
                explained=explained,
                told=shown,
                cost="" if shown is None else cost_said(paid, shown.status),
                exactness=exactness_of(session.facts.of_asker(user.finest), self._scheduler.spanned),
                asked=asked,
                query="" if asked is None else asked.query,
                gauge=gauge_of(view, facts["you"]),
                periods=None if grown is None else periods_of(grown),
                history=history,
                record=record_rows(latest),
                length=view.length,
                begun=bool(view.account.spent),
                attributes=self._attributes,
            )

        return _html(await self._scheduler.look(user, made), status, headers)

    def _history(self, user: User, most: int) -> list[dict[str, str]]:
        """Return a user's latest questions, each once."""
        found: dict[str, Put] = {}
        try:
            held = self._gate.users.history(user.name, most)
        except OnlineICError:  # the file is away: what was asked lately is shown
            held = []
        for one in [*self._scheduler.remembered(user.name), *held]:
            found.setdefault(one.query, one)
        return history_rows([*found.values()][:most], lambda query: self._headline(user, query))

    def _headline(self, user: User, query: str) -> str:
        found = self._results.get(user.name, query)
        if found is None:
            return ""
        try:
            asked = self._read(fields_of(query))
        except OnlineICError:
            return ""
        return told_of(asked, found, 0, self._office.session.beta).headline

    async def mine(self, request: Request, user: User) -> Response:
        """Show the questions that a user put on the page."""
        self._gate.read(user, PAGE_READS)
        return _html(
            rendered("mine.html", history=self._history(user, MOST_REMEMBERED), most=MOST_REMEMBERED)
        )

    async def help(self, request: Request) -> Response:
        """Show what the words mean."""
        unit = self._scheduler.view.statistics.unit
        return _html(rendered("help.html", who="record" if unit is None else "person"))

    async def _result(self, request: Request, user: User) -> tuple[AskedForm, Any]:
        """Return the result of the question of an address, if it was told."""
        self._gate.read(user)
        asked = self._read(fields_of(request.url.query))
        found = self._results.get(user.name, asked.query)
        if found is None:
            found = await self._scheduler.look(user, lambda view: self._recalled(view, asked))
        if found is None:
            raise RefusedError(
                404, "not-told", "This question was not asked yet, or not answered: ask it first."
            )
        return asked, found

    async def as_sheet(self, request: Request, user: User) -> Response:
        """Hand out the result of a question as CSV."""
        _, found = await self._result(request, user)
        text = await self._scheduler.reading.run(user.name, lambda: sheet(columns_of(found)))
        return _file(text, "result.csv", "text/csv; charset=utf-8")

    async def as_json(self, request: Request, user: User) -> Response:
        """Hand out the result of a question as JSON."""
        asked, found = await self._result(request, user)

        def written() -> str:
            said = {"question": asked.said, "sql": asked.statement or None, "result": told(found)}
            return json.dumps(said, ensure_ascii=False, allow_nan=False, indent=1)

        return _file(await self._scheduler.reading.run(user.name, written), "result.json", "application/json")

    async def curator(self, request: Request, user: User) -> Response:
        """Show who may ask, who has paid and who asked last, to those who are named as curators."""
        if user.name not in self._gate.limits.curators:
            raise RefusedError(403, "forbidden", "this page is for users whom serve --curator names.")
        view, pool, users = self._scheduler.view, self._scheduler.pool(), self._gate.users
        active, visits = users.active, self._gate.visits()
        rows = []
        for one in users.list():
            part, paid = one.part(active), view.paid.get(one.name, Fraction(0))
            spent, left = (paid / pool, max(Fraction(0), part - paid / pool)) if pool else (0, 0)
            state = "may ask" if one.revoked is None else "revoked"
            shares = (f"{float(each):.1%}" for each in (part, spent, left))
            more = (f"{one.per_minute:,}", str(visits[one.name]), _moment(one.created)[:10])
            rows.append((one.name, state, *shares, *more))
        lines = [*self._scheduler.unwritten(), *(line for _, line in users.logged(20))][:20]
        log = [
            (_moment(line.when), line.user, line.digest[:12], f"{line.start} to {line.stop}", line.statuses)
            for line in lines
        ]
        summary = bare(str((await self._office.summary(user, 20))._repr_html_()))
        private = view.statistics.private
        return _html(rendered("curator.html", users=rows, log=log, summary=summary, private=private))

    # -- visits, and files ----------------------------------------------------------------------------------

    async def login(self, request: Request) -> Response:
        """Begin a visit."""
        return await entered(self._gate, request)

    async def logout(self, request: Request) -> Response:
        """End a visit."""
        return left(self._gate, request)

    async def file(self, request: Request) -> Response:
        """Hand out the script, the looks or the icon."""
        content, kind = FILES[request.url.path]
        return Response(content, media_type=kind)


async def entered(gate: Gate, request: Request, path: str | None = None) -> Response:
    """Begin a visit: the cookie is another secret than the token, and ends with this process.

    Args:
        path: Of the cookie; None: the folder that the login lies in, whatever a proxy puts before it.
    """
    check_origin(request)
    form = fields_of_body(await body_of(request))
    following = query_of(fields_of(form.get("next", "")))
    secret = gate.enter(form.get("token", ""))
    if secret is None:
        return _html(rendered("login.html", problem="This token is not valid.", next=following), 401)
    response = RedirectResponse(f"./?{following}" if following else "./", 303)
    secure = gate.limits.secure
    response.set_cookie(COOKIE, secret, httponly=True, samesite="strict", secure=secure, path=path)
    return response


def left(gate: Gate, request: Request, path: str | None = None) -> Response:
    """End a visit."""
    check_origin(request)
    gate.leave(request)
    response = RedirectResponse("./", 303)
    response.set_cookie(COOKIE, "", max_age=0, path=path)
    return response


def latest_of(view: Shown) -> list[tuple[int, Answer]]:
    """Return the latest answers that stand, oldest first; of a long record only its end is looked at."""
    found: list[tuple[int, Answer]] = []
    stop = view.length
    while stop > max(0, view.length - LOOKED_AT * LISTED) and len(found) < LISTED:
        start = max(0, stop - LISTED)
        found = [*view.released(start, stop), *found]
        stop = start
    return found[-LISTED:]


def problem_page(problem: Problem, path: str = "/") -> Response:
    """Return a refusal as a page; of one who is not known, where to log in.

    Args:
        path: Of the request: links lead back from there, whatever a proxy puts before it.
    """
    root = "../" * (path.count("/") - 1)
    if problem.status == 401:
        said = "Please log in." if problem.code == "unauthorized" else problem.detail
        return _html(rendered("login.html", problem=said, next="", root=root), 401, problem.headers)
    if problem.code == "forbidden" and "from this page" in problem.detail:
        detail = (
            "The browser sent this from another address than the server is called by. Open the page anew by "
            "its own address. Behind a proxy, the proxy must hand on the Host that the browser used."
        )
        return _html(
            rendered("problem.html", title="This page cannot do that", detail=detail, root=root),
            403,
            problem.headers,
        )
    said_of = problem_of(problem)
    return _html(rendered("problem.html", **said_of, root=root), problem.status, problem.headers)


def fields_of_body(raw: bytes) -> dict[str, str]:
    """Return the fields of a form that was sent."""
    try:
        return dict(parse_qsl(raw.decode("utf-8"), keep_blank_values=True, max_num_fields=200))
    except ValueError:
        raise RefusedError(400, "form", "the body must be a form in UTF-8.") from None


def _moment(when: float) -> str:
    return f"{datetime.datetime.fromtimestamp(when, datetime.UTC):%Y-%m-%d %H:%M:%S}"


def _html(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(text, status, headers, media_type=KIND)


def _file(text: str, name: str, kind: str) -> Response:
    return Response(text, headers={"content-disposition": f'attachment; filename="{name}"'}, media_type=kind)
