"""A session that is served, with the face of one that is at hand: the standard library alone.

Means, quantiles, groups and statements are worked out here, of the same linear questions that a session at
hand would be asked; so what they say is equal, bounds included.
"""

import http.client
import json
import math
import os
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from fractions import Fraction
from typing import Any, Literal, NoReturn, final
from urllib.parse import urlencode, urlsplit

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.budget import Budget
from onlineic.ask.bind import check_many
from onlineic.ask.json import within_read, within_written
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.errors import (
    BudgetError,
    DomainMismatchError,
    InvalidParameterError,
    InvalidQueryError,
    LedgerError,
    LedgerWriteError,
    MissingExtraError,
    OnlineICError,
    SessionExhaustedError,
    SessionSealedError,
    SessionStateError,
    TooFewRecordsError,
    TooFineWishError,
    TooLargeError,
    checked_list,
    shown,
)
from onlineic.known_noise.estimates import Family
from onlineic.noise.sources import SystemNoise
from onlineic.progress import Progress, advance, checked_progress, reporting
from onlineic.queries.answers import Answer
from onlineic.queries.batch import Queries
from onlineic.queries.counted import Counted
from onlineic.queries.expressions import Expression
from onlineic.queries.marginals import Marginal, Question
from onlineic.queries.within import Within, checked_within
from onlineic.questions.derived import Answering
from onlineic.questions.linear import PublicFacts
from onlineic.questions.synthetic import Synthetic
from onlineic.service.wire import from_wire, to_wire
from onlineic.session.explain import Explanation, bound_of, meeting
from onlineic.session.statistics import SessionStatistics
from onlineic.slips import public

AT_ONCE = 256  # questions of a request
TRIES = 8  # seven seconds in all, in which a server can start again
LONGEST_PAUSE = 60.0  # seconds before a request that came too soon is sent again
LOOK = 1.0  # seconds between looks at how far a request is
KINDS = (  # what a session at hand raises too
    BudgetError, DomainMismatchError, InvalidParameterError, InvalidQueryError, LedgerError, LedgerWriteError,
    MissingExtraError, SessionExhaustedError, SessionSealedError, SessionStateError, TooFewRecordsError,
    TooFineWishError, TooLargeError,
)  # fmt: skip
CODES: dict[str, type[OnlineICError]] = {kind.code: kind for kind in KINDS}


NOT_SERVED = {  # what a session at hand has besides, and what to do instead
    "account": "see statistics()",
    "bind": "ask it: what cannot be asked is refused, and nothing is spent",
    "closed": "the curator closes it",
    "durability": "what a server has told always comes back",
    "hypothesis": "draw rows from it by synthetic(rows), or see summary()",
    "paid_by": "who pays stands in the token",
    "plan": "see statistics() and summary()",
    "receipt": "the curator has it",
    "copy_to": "the curator has the ledger",
    "reserved": "see statistics()",
    "resume": "connect again",
    "textbook": "the curator chooses the session",
    "together": "one request is answered together",
    "told": "ask it: what was told is told again, and free",
    "transcript": "see released()",
    "view": "see statistics() and released()",
}


class NotServedError(OnlineICError, AttributeError):
    """A served session does not have what a session at hand has; the message says what to do instead."""


class RemoteError(OnlineICError):
    """A server cannot be reached, or refuses for a reason that no session has.

    Attributes:
        status: Of HTTP; 0: it was not reached.
    """

    status = 0


@final
@attrs.frozen
class RemoteSummary:
    """The summary of a served session."""

    text: str
    markdown: str
    html: str

    def __str__(self) -> str:
        return self.text

    def to_markdown(self) -> str:
        """Return the summary as Markdown."""
        return self.markdown

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the summary as a whole page without scripts, and write it to `path`, if there is one."""
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.html)
        return self.html

    def _repr_html_(self) -> str:
        return self.html


@public
def connect(
    url: str,
    token: str | None = None,
    *,
    timeout: float = 120.0,
    progress: Progress | Literal["bar"] | None = None,
) -> "Remote":
    """Return a served session, to be asked like one that is at hand.

    Args:
        url: Such as "https://private.example.org" or "http://127.0.0.1:8765".
        token: By default the environment variable ONLINEIC_TOKEN.
        timeout: Seconds that one reply may take.
        progress: Called with (stage, done, total), or "bar". As of `OnlineIC`: told how many of a long list
            of questions are answered. A server takes so many questions a minute of each of its users, and the
            client waits where that is reached.

    Raises:
        InvalidParameterError: If the address is none, or crosses the network without TLS, or there is no
            token, or `progress` is none of these.
        MissingExtraError: If a bar was asked for, and tqdm is not installed.
        RemoteError: If the server cannot be reached, or does not know the token.
    """
    token = os.environ.get("ONLINEIC_TOKEN") if token is None else token
    if not isinstance(token, str) or not token.strip() or not token.isascii():
        raise InvalidParameterError("token must be a text, got none; give token=, or set ONLINEIC_TOKEN.")
    return Remote(url, token.strip(), timeout, checked_progress(progress))


@public
@final
class Remote(Answering):
    """A served session; made by `connect`.

    Requests are sent again when a connection is lost or the server says that it is busy. Each has a key, by
    which the server knows it again: it is asked once, and its reply told again. After a restart of the server
    what was told and did not arrive comes back as a repeat. Nothing is paid twice.

    One thread at a time may use it. There is no twin of it for asyncio, since means and statements are worked
    out in steps that wait for answers: write `await asyncio.to_thread(session.mean, "age")`, with a `Remote`
    for each thread.
    """

    def __init__(self, url: str, token: str, timeout: float, progress: Progress | None = None) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except (ValueError, AttributeError, TypeError):
            host = None
        if host is None or parts.scheme not in ("http", "https"):
            raise InvalidParameterError(
                f"url must be that of a server, got {shown(url, 200)}; write https://HOST or http://127.0.0.1:8765."
            )
        if parts.scheme == "http" and host not in ("127.0.0.1", "localhost", "::1"):
            raise InvalidParameterError(
                f"url must begin with https:// for another machine, got {shown(url, 200)}: the token would "
                "cross the network in clear."
            )
        self._host, self._port, self._tls, self._path = (
            host,
            port,
            parts.scheme == "https",
            parts.path.rstrip("/"),
        )
        self._token, self._timeout, self._progress = token, timeout, progress
        self._open: list[http.client.HTTPConnection] = []  # one or none, shared by ranges of it
        self._domain = Domain.of(unknown=1)
        self._facts = PublicFacts(self._domain, 0, 1.0, answers_tables=False)
        self._unit: Unit | None = None
        self._grown = False
        self._span: dict[str, str] = {}
        self._learn()

    def over(self, since: str | None = None, until: str | None = None) -> "Remote":
        """Return a table that grows over the periods from one to another, as `Periods.over`.

        Args:
            since, until: Both included and of any level; by default the first and the last period of all.

        Raises:
            InvalidQueryError, InvalidParameterError: If it is no table that grows, or has no such period.
        """
        ends = {name: end for name, end in (("since", since), ("until", until)) if end is not None}
        found = Remote.__new__(Remote)
        found.__dict__.update(self.__dict__, _span=ends)
        found._learn()
        return found

    def _learn(self) -> None:
        """Take what the server says that it is asked about."""
        ends = f"?{urlencode(self._span)}" if self._span else ""
        try:
            about = self._call("GET", f"/v1/about{ends}")
        except BaseException:
            self.close()
            raise
        self._domain, self._grown = Domain.from_json(json.dumps(about["domain"])), "periods" in about
        unit = about.get("rounded_in")  # of a server of 0.1.0 none
        self._facts = PublicFacts(
            self._domain,
            int(about["n"]),
            float(about["beta"]),
            int(about["n_bound"]),
            bool(about["answers_tables"]),
            None if unit is None else Unit(**unit),
            within_read(about["within"]) if "within" in about else None,
            float(about.get("finest", 0.0)),
        )
        person = about.get("unit")
        self._unit = None if person is None else Unit(**person)

    # -- the face of a session ------------------------------------------------------------------------------

    @property
    def facts(self) -> PublicFacts:
        return self._facts

    @property
    def unit(self) -> Unit | None:
        """Who is protected, as of `OnlineIC`."""
        return self._unit

    def answer(self, query: Any, *, within: float | Within | None = None) -> Answer:
        """Answer one query, as `OnlineIC.answer`: weights of one's own are not taken."""
        return self.answer_many([query], within=within)[0]

    def answer_within(self, queries: Iterable[Any], within: Within) -> list[Answer]:
        """Answer the queries of one call, each within a wish, as `OnlineIC.answer_within`."""
        return self.answer_many([*queries], within=within)

    def answer_many(self, queries: Any, *, within: float | Within | None = None) -> list[Answer]:
        """Answer queries in order, as `OnlineIC.answer_many`: all are checked before the first is sent.

        Of more than 256 each 256 are one call.
        """
        check_many(queries)
        wish = {} if within is None else {"within": within_written(checked_within(within))}
        asked = checked_list("queries", queries, remedy="write [query, ...]")
        sent = [to_wire(one, self._domain) for one in asked]
        bound = [self._bound(one) for one in sent]
        found: list[Answer] = []
        with reporting(self._progress):
            for start in range(0, len(sent), AT_ONCE):
                part = sent[start : start + AT_ONCE]
                body = {**self._span, **wish, "questions": part}
                told = self._call("POST", "/v1/answers", body)["answers"]
                for one, question in zip(told, bound[start : start + AT_ONCE], strict=True):
                    if "error" in one:
                        raise _error(one["error"]["code"], one["error"]["message"], 422, tuple(found))
                    found.append(_answer(one, question, self.beta))
                if len(sent) > AT_ONCE:
                    advance("answers", len(found), len(sent))
        return found

    def _bound(self, sent: Any) -> Question:
        question = from_wire(sent, self._domain)
        bound: Question = question.bind(self._domain)
        return bound

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds that hold for these answers all at once, as `OnlineIC.joint_bounds`."""
        found: list[float] = []
        for _, body in self._given(queries, answers):
            told = self._call("POST", "/v1/bounds", body)["bounds"]
            found += [math.inf if one is None else one for one in told]
        return np.array(found, np.float64)

    def snapshot(self, queries: Iterable[Any], answers: Iterable[Answer]) -> list[Answer]:
        """Return answers as the hypothesis says all of them now, as `OnlineIC.snapshot`."""
        found: list[Answer] = []
        for given, body in self._given(queries, answers):
            bounds = [None if math.isinf(one.error_bound) else one.error_bound for one in given]
            told = self._call("POST", "/v1/snapshot", {**body, "bounds": bounds})["answers"]
            questions = map(self._bound, body["questions"])
            found += [
                before if one is None else _answer({**one, **_estimated(before)}, question, self.beta)
                for before, one, question in zip(given, told, questions, strict=True)
            ]
        return found

    def _given(
        self, queries: Iterable[Any], answers: Iterable[Answer]
    ) -> Iterator[tuple[list[Answer], dict[str, Any]]]:
        """Yield answers in parts, each with the body that gives them back to the server."""
        sent = [to_wire(one, self._domain) for one in checked_list("queries", queries)]
        given = checked_list("answers", answers)
        if len(given) != len(sent) or not all(isinstance(one, Answer) for one in given):
            raise InvalidParameterError(
                f"answers must be the answers to these {len(sent)} queries, got {len(given)} objects; give "
                "one Answer a query, in their order."
            )
        for start in range(0, len(sent), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            values = [one.value for one in given[part]]
            yield (
                given[part],
                {
                    **self._span,
                    "questions": sent[part],
                    "values": [one.tolist() if isinstance(one, np.ndarray) else one for one in values],
                    "statuses": [one.status for one in given[part]],
                },
            )

    def believed(self, queries: Iterable[Any]) -> list[float]:
        """Return what the hypothesis says of each query, as `OnlineIC.believed`; one half over periods."""
        sent = [to_wire(one, self._domain) for one in queries]
        if self._span or self._grown:
            return [0.5 for _ in sent]
        return [float(np.max(answer.value)) for answer, _ in self.prospects(sent)]

    def explain(self, question: Any, *, within: float | Within | None = None) -> Explanation:
        """Return what a question may cost you and what it is worth, as `OnlineIC.explain`.

        A function of a session is called with a stand-in that answers as if all tests turned out easy.
        """
        wish = None if within is None else checked_within(within)
        if callable(question) and not isinstance(question, Expression | Marginal):
            return self._explained_steps(question, wish)
        body: dict[str, Any] = {} if wish is None else {"within": within_written(wish)}
        if isinstance(question, list | tuple | Queries):
            sent = [to_wire(one, self._domain) for one in question]
            return self._explanation({"questions": sent, **body}, shown(question, 80), None)
        select = isinstance(question, str) and question.lstrip()[:6].upper() == "SELECT"
        one = question if select else to_wire(question, self._domain)
        return self._explanation({"question": one, **body}, shown(question, 80), None)

    def _explained_steps(self, ask: Any, within: Within | None) -> Explanation:
        steps = _Rehearsed(self, within)
        name, bound = "a function of a session", None
        try:
            result = ask(steps)
        except TooFewRecordsError:
            name, bound = "a question over too few records", math.inf
        else:
            name, bound = getattr(result, "name", name), bound_of(result)
        if len(steps.wishes) > 1:
            raise InvalidQueryError(
                "a function must be explained under one wish for all that it asks, got several; explain each "
                "question by itself."
            )
        (wish,) = steps.wishes or {within}
        body = {} if wish is None else {"within": within_written(wish)}
        return self._explanation({"questions": steps.sent, **body}, name, bound)

    def _explanation(self, body: dict[str, Any], asked: str, bound: float | None) -> Explanation:
        told = self._call("POST", "/v1/explain", {**self._span, **body})
        told.pop("free", None)
        told.pop("within", None)
        if told.pop("few_records", False):  # over too few records: infinite, for which JSON has no number
            told["bound_derived"] = math.inf
        if bound is not None:
            told["bound_derived"] = bound
        told["attributes"], told["asked"] = tuple(told["attributes"]), asked
        for name in ("bound_easy", "bound_hard"):
            told[name] = math.inf if told[name] is None else told[name]
        return Explanation(**told)

    def prospects(self, sent: list[Any]) -> list[tuple[Answer, float]]:
        """Return what questions would be answered if no test fired, and their bounds together.

        For explanations alone: nothing is asked, and nothing of it is guaranteed.
        """
        bound = [self._bound(one) for one in sent]
        found: list[tuple[Answer, float]] = []
        for start in range(0, len(sent), AT_ONCE):
            body = {**self._span, "questions": sent[start : start + AT_ONCE]}
            told = self._call("POST", "/v1/prospects", body)["prospects"]
            for one, question in zip(told, bound[start : start + AT_ONCE], strict=True):
                joint = math.inf if one["joint"] is None else one["joint"]
                found.append((_answer(one["answer"], question, self.beta), joint))
        return found

    def synthetic(self, rows: int, seed: int = 0) -> Synthetic:
        """Return synthetic records, as `OnlineIC.synthetic`: at most 10,000, and nothing is bought before.

        Before anything was asked they are drawn from all possible records alike.
        """
        ends = urlencode({"rows": int(rows), "seed": int(seed), **self._span})
        told = self._call("GET", f"/v1/synthetic.json?{ends}")
        return Synthetic(told["columns"], told["seed"], told["private"])

    def statistics(self) -> SessionStatistics:
        """Return public facts of now, as `OnlineIC.statistics`."""
        told = self._call("GET", "/v1/statistics?family=1")
        facts = {one.name: told[one.name] for one in attrs.fields(SessionStatistics) if one.name in told}
        facts["budget"] = Budget(**facts["budget"])
        if (unit := facts.get("unit")) is not None:
            facts["unit"] = Unit(**unit)
        if (counted := facts.pop("counted", None)) is not None:
            noise = {"private": facts["private"], "draws": counted["draws"]}
            facts["counted"] = Counted(counted["n"], Fraction(counted["scale"]), counted["beta"], **noise)
        if (family := facts.get("family")) is not None:
            sets = tuple(map(tuple, family["sets"]))
            facts["family"] = Family(sets, family["size"], family["products"], family["cells"])
        for name in ("error_bound", "threshold", "alpha"):
            facts[name] = math.inf if facts[name] is None else facts[name]
        return SessionStatistics(**facts)

    def part(self) -> dict[str, Any]:
        """Return your name and share, and what of it you have paid and have left, of what hits can spend."""
        found: dict[str, Any] = self._call("GET", "/v1/statistics")["you"]
        return found

    def summary(self, answers: int = 20) -> RemoteSummary:
        """Return a page about the session that can be handed on."""
        told = self._call("GET", f"/v1/summary?answers={int(answers)}")
        return RemoteSummary(told["text"], told["markdown"], told["html"])

    def released(self, start: int = 0) -> list[dict[str, Any]]:
        """Return all that was released from a place in the record on, as plain values."""
        found: list[dict[str, Any]] = []
        at: int | None = start
        while at is not None:
            told = self._call("GET", f"/v1/transcript?from={at}")
            found += told["answers"]
            at = told["next"]
        return found

    def close(self) -> None:
        """Let the connection go."""
        while self._open:
            self._open.pop().close()

    def __enter__(self) -> "Remote":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Remote({self._host}, n={self.n:,}, {' x '.join(map(str, self._domain.shape))} cells)"

    def __getattr__(self, name: str) -> NoReturn:
        if name in NOT_SERVED:
            raise NotServedError(
                f"{name} must be asked of a session at hand, got a served one; {NOT_SERVED[name]}."
            )
        raise AttributeError(f"Remote has no attribute {shown(name)}")

    def __reduce__(self) -> NoReturn:
        raise TypeError("Remote cannot be pickled: its token would be written down; connect again.")

    # -- the network ----------------------------------------------------------------------------------------

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of a reply; asked again where the connection is lost or the server is busy.

        Who waits long is told how far it is.
        """
        sent = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        key = ""
        if sent is not None:
            key = SystemNoise().words(2).tobytes().hex()
            headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            try:
                status, raw, wait = self._watched(method, self._path + path, sent, headers, key)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if last or isinstance(error, ssl.SSLCertVerificationError):
                    raise RemoteError(
                        f"url must be that of a server that runs, got {type(error).__name__} from "
                        f"{shown(self._host)}; look whether it is up."
                    ) from None
                time.sleep(min(2.0, 0.1 * 2**attempt))
                continue
            if status in (429, 503) and not last:
                self._pause(min(LONGEST_PAUSE, wait))
                continue
            return self._read(status, raw)
        raise SessionStateError("the server must answer, got none; ask later.")

    def _pause(self, seconds: float) -> None:
        """Wait before a request is sent again."""
        with reporting(self._progress):
            for second in range(math.ceil(seconds)):
                advance("pause", second, math.ceil(seconds))
                time.sleep(min(1.0, seconds - second))

    def _watched(
        self, method: str, path: str, sent: bytes | None, headers: dict[str, str], key: str
    ) -> tuple[int, bytes, float]:
        """Send a request once; with a callback, tell it how far the server is, once that takes a while."""
        if self._progress is None or not key:
            return self._once(method, path, sent, headers)
        found: Future[tuple[int, bytes, float]] = Future()

        def send() -> None:
            try:
                found.set_result(self._once(method, path, sent, headers))
            except Exception as error:
                found.set_exception(error)

        threading.Thread(target=send, name="onlineic-request", daemon=True).start()
        with reporting(self._progress):
            try:
                while not wait([found], timeout=LOOK).done:
                    if (told := self._look(key)) is not None and told.get("asked"):
                        advance("turn", told["done"], told["asked"])
            except BaseException:  # who waited no longer does: the line is in the middle of a reply
                self.close()
                raise
        return found.result()

    def _look(self, key: str) -> dict[str, Any] | None:
        """Return how far a request is, by a line of its own; None if nobody says."""
        line = self._line(LOOK)
        try:
            headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
            line.request("GET", f"{self._path}/v1/progress?key={key}", headers=headers)
            reply = line.getresponse()
            told = json.loads(reply.read()) if reply.status == 200 else None
            return told if isinstance(told, dict) else None
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            line.close()

    def _line(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _once(
        self, method: str, path: str, sent: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, float]:
        if not self._open:
            self._open.append(self._line(self._timeout))
        self._open[0].request(method, path, sent, headers)
        reply = self._open[0].getresponse()
        raw, after = reply.read(), reply.headers.get("Retry-After", "1")
        if reply.will_close:
            self.close()
        return reply.status, raw, float(after) if after.isdigit() else 1.0

    def _read(self, status: int, raw: bytes) -> Any:
        try:
            told = json.loads(raw)
        except ValueError:
            told = None
        if status == 200 and told is not None:
            return told
        told = told if isinstance(told, dict) else {}
        raise _error(str(told.get("type", "http")), str(told.get("detail", "")), status)


@final
class _Rehearsed(Answering):
    """Answers as if every test were easy, by what a server expects, and remembers what it was asked."""

    def __init__(self, remote: Remote, within: Within | None) -> None:
        self._remote, self._within = remote, within
        self.sent: list[Any] = []
        self.wishes: set[Within | None] = set()
        self._joint: dict[Any, float] = {}

    @property
    def facts(self) -> PublicFacts:
        facts = attrs.evolve(self._remote.facts, rounded_in=None)
        return facts if self._within is None else attrs.evolve(facts, within=self._within)

    def answer(self, query: Any) -> Answer:
        return self.answer_many([query])[0]

    def answer_within(self, queries: Iterable[Any], within: Within) -> list[Answer]:
        self.wishes.add(within)
        return [meeting(one, within) for one in self._answered(queries)]

    def believed(self, queries: Iterable[Any]) -> list[float]:
        return self._remote.believed(queries)

    def answer_many(self, queries: Any) -> list[Answer]:
        if (wish := self.facts.within) is not None:
            return self.answer_within(queries, wish)
        self.wishes.add(None)
        return self._answered(queries)

    def _answered(self, queries: Iterable[Any]) -> list[Answer]:
        sent = [to_wire(one, self.domain) for one in queries]
        self.sent += sent
        found = self._remote.prospects(sent)
        for answer, joint in found:
            self._joint[self._key(answer.query)] = joint
        return [answer for answer, _ in found]

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        return np.array([self._joint[self._key(one.bind(self.domain))] for one in queries], np.float64)

    @staticmethod
    def _key(question: Any) -> Any:
        return question.key, question.complement


def _answer(told: dict[str, Any], question: Question, beta: float) -> Answer:
    """Return the answer that was told."""
    value, count = told["value"], told["count"]
    if isinstance(value, list):
        value, count = np.array(value, np.float64), np.array(count, np.float64)
    bound = math.inf if told["error_bound"] is None else told["error_bound"]
    error = told.get("expected_error")  # of an older server none
    return Answer(
        value,
        count,
        told["status"],
        bound,
        told["private"],
        told["estimate"],
        told["standard_error"],
        question,
        told["n"],
        told["left"],
        told["law"],
        told.get("n_bound", 0),
        told.get("of_what", "records"),
        told.get("reason"),  # of a server of 0.1.0 none
        np.array(error, np.float64) if isinstance(error, list) else error,
        beta,
        told.get("cost"),
    )


def _estimated(answer: Answer) -> dict[str, Any]:
    """Return what released tables estimate of an answer, whatever the hypothesis says of it now."""
    return {"estimate": answer.estimate, "standard_error": answer.standard_error, "law": answer.law}


def _error(code: str, message: str, status: int, answers: tuple[Answer, ...] = ()) -> OnlineICError:
    """Return the exception that a session at hand would have raised."""
    kind = CODES.get(code, RemoteError)
    error = kind(message or f"the server must answer, got {status} {shown(code)}.")
    if isinstance(error, RemoteError):
        error.status = status
    if answers and hasattr(error, "answers"):
        error.answers = answers
    return error
