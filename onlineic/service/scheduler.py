"""The one thread that owns the session: it takes parts of what waits, fairly, and replies when all stands.

Whatever a question makes the session spend is known before it is read, and paid by its asker's quota. What
one asker sends is cut into parts, so that nobody waits for more than one of them: the asker who has had the
least comes next, counted by what was asked. Answers of several askers become durable in one write, and no
reply leaves before that. After each turn a frozen view is swapped, which readers take without waiting.

The order in which askers are served rests on what they sent and on the record alone, never on a private
number: so whoever orders them is one adaptive analyst (docs/theory/session.md, 4.11). The clock ends turns,
which decides when a reply leaves, and nothing else.
"""

import asyncio
import contextlib
import hashlib
import logging
import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from fractions import Fraction
from typing import Any, TypeVar, final

import attrs

from onlineic._typing import Floats
from onlineic.ask.bind import check_many
from onlineic.domain.domain import Domain
from onlineic.errors import InternalError, LedgerError, OnlineICError, TooLargeError, checked_list
from onlineic.queries.answers import Answer
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.within import Within
from onlineic.questions.derived import Answering
from onlineic.questions.linear import PublicFacts
from onlineic.service.face import ALL, Servable, Shown, Span, Spanned, over
from onlineic.service.face import Asked as Face
from onlineic.service.lanes import BusyError, Lane, told
from onlineic.service.refusals import RevokedError, UnreadyError
from onlineic.service.users import Asked, Put, User, Users
from onlineic.session.asking import Outcome
from onlineic.session.quota import Quota

TURN = 0.02  # seconds after which a turn ends
PART, LONG_PART = 16, 64  # cost of a part, and of one that is answered as a batch: nobody waits for more
CELLS = 64  # of a table, that cost as much as a plain question
MOST_WAITING = 512  # cost that may wait of one asker, unless it is one request
MOST_QUESTIONS = 4096  # that one derived question may become
READERS, MOST_READING = 4, 16  # threads that look at views; looks of one asker that may wait
WORKERS, MOST_WORKING = 32, 16  # threads that work out derived questions; of one asker that may wait
FLUSHED = 0.25  # seconds for which lines of the log, and counts of repeats, may wait for a turn
MOST_TOLD = 256  # answers told from views that do not wait so long
MOST_LINES = 10_000  # of the log that are kept while it cannot be written
PACED = 0.2  # part of the latest turn in the pace that waits are estimated by
_log = logging.getLogger("onlineic.service")
T = TypeVar("T")
Act = Callable[[Any, Any], Any]  # of the asker's face and the session, in the thread that owns it


@final
@attrs.define(eq=False)
class Job:
    """What one asker sent, which becomes one or several batches of parts.

    Attributes:
        digest: Of what was sent, for the log.
        asked, done: Cost so far of what it became, and of what of that was answered.
        found: Statuses and codes.
        left: Whether nobody waits for it any more: what of it was not asked yet is not asked.
        paid: What it has cost who asked, as a part of the budget; None before it is asked, and of periods.
    """

    user: User
    digest: str
    span: Span = ALL
    asked: int = 0
    done: int = 0
    started: int | None = None
    stopped: int = 0
    left: bool = False
    paid: Fraction | None = None
    found: Counter[str] = attrs.field(factory=Counter)

    @classmethod
    def of(cls, user: User, sent: bytes, span: Span = ALL) -> "Job":
        """Return the job of a request."""
        return cls(user, hashlib.sha256(sent).hexdigest(), span)

    def line(self) -> Asked:
        """Return its line of the log."""
        start = self.stopped if self.started is None else self.started
        return Asked(self.user.name, self.digest, start, self.stopped, _counts(self.found))


@final
@attrs.define(eq=False)
class Batch:
    """Parts of a job that are told together.

    Attributes:
        parts: What is left of them, each with its cost.
        future: Told once all are durable.
        last: Whether the job ends with it.
    """

    job: Job
    parts: deque[tuple[int, Act]]
    future: Future[list[Any]]
    last: bool
    results: list[Any] = attrs.field(factory=list)
    error: OnlineICError | None = None

    @property
    def cost(self) -> int:
        """Of what is left."""
        return sum(cost for cost, _ in self.parts)


@final
class LimitedSession(Answering):
    """A session as an asker has it who works out a derived question: it refuses one that becomes too many.

    It is used in a thread of the asker's; each list of questions waits for turns of the session's thread.

    Args:
        owe: Told what the question becomes beyond one.
    """

    def __init__(
        self, scheduler: "Scheduler", job: Job, owe: Callable[[int], None], most: int = MOST_QUESTIONS
    ) -> None:
        self.scheduler, self.job, self._owe, self._left = scheduler, job, owe, most
        self._known = over(scheduler.session, job.span)
        self._bound: dict[int, tuple[Any, Any]] = {}  # what is asked, and its bound form, by id
        self._free = 1  # questions that were counted when the request was let in

    @property
    def facts(self) -> PublicFacts:
        found: PublicFacts = self._known.facts
        return found.of_asker(self.job.user.finest)

    @property
    def domain(self) -> Domain:
        found: Domain = self._known.domain  # without all other facts
        return found

    def answer(self, query: Any) -> Answer:
        if (wish := self.facts.within) is not None:
            return self.answer_within([query], wish)[0]
        found: Answer = self._answered([query], lambda face, part: [face.answer(part[0])])[0]
        return found

    def answer_many(self, queries: Any) -> Any:
        check_many(queries)
        asked = checked_list("queries", queries, remedy="write [query, ...]")
        if (wish := self.facts.within) is not None:
            return self.answer_within(asked, wish)
        return self._answered(asked, lambda face, part: face.answer_many(part))

    def answer_within(self, queries: Iterable[Any], within: Within) -> list[Answer]:
        """Answer the queries of one call, each within a wish; of periods as `AnsweringLinear` refuses it."""
        if self.scheduler.spanned:
            return super().answer_within(queries, within)

        tables = dict[Any, float]()

        def each(face: Any, part: list[Any]) -> list[Answer]:
            return [
                face.answer(one, within=within).costing(tables.pop(getattr(one, "key", None), None))
                for one in part
            ]

        return self._answered([*queries], each, lambda bound: [of_call(bound, within, tables)])

    def believed(self, queries: Iterable[Any]) -> list[float]:
        """Return what the hypothesis of the view says of each query."""
        view: Any = self.scheduler.view
        if self.scheduler.spanned:
            return super().believed(queries)
        found: list[float] = view.believed([self._as_bound(one) for one in queries])
        return found

    def _answered(
        self,
        asked: list[Any],
        ask: Callable[[Any, list[Any]], Any],
        before: Callable[[list[Any]], list[tuple[int, Act]]] = lambda bound: [],
    ) -> list[Answer]:
        bound = [self._as_bound(one) for one in asked]  # all are checked before the first is asked
        costs = [cost_of_bound(one) for one in bound]
        self._take(sum(costs))
        job = self.job

        def act(part: list[Any]) -> Act:
            def run(face: Any, session: Any) -> list[Answer]:
                found = list(ask(face, part))
                job.found.update(one.status for one in found)
                return found

            return run

        parts = [(cost, act(part)) for cost, part in in_parts(bound, costs, LONG_PART)]
        batch = self.scheduler.put(job, [*before(bound), *parts], last=False)
        try:
            return [one for found in batch.future.result() for one in found]
        except OnlineICError as error:
            if batch.results and hasattr(error, "answers"):
                error.answers = (*(one for found in batch.results for one in found), *error.answers)
            raise

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds that hold at once, by the view: it was swapped before these answers were told."""
        bound, given = [self._as_bound(one) for one in queries], list(answers)
        found: Floats = self._read(lambda to: to.joint_bounds(bound, given), len(bound))
        return found

    def snapshot(self, queries: Iterable[Any], answers: Iterable[Answer]) -> list[Answer]:
        """Return these answers as the hypothesis says all of them now."""
        bound, given = [self._as_bound(one) for one in queries], list(answers)
        now: list[Answer] = self._read(lambda to: to.snapshot(bound, given), len(bound))
        return now

    def _read(self, look: Callable[[Any], T], size: int) -> T:
        """Return what a look at given answers finds: of periods in the session's thread."""
        if not self.scheduler.spanned:
            return look(self.scheduler.view)
        part = (max(1, size // 8), lambda face, session: look(face))
        found: T = self.scheduler.put(self.job, [part], last=False).future.result()[0]
        return found

    def _as_bound(self, query: Any) -> Any:
        """Return a question as it is tested; periods take one by its conditions, and bind it to each."""
        if self.scheduler.spanned:
            return query
        known = self._bound.get(id(query))
        if known is None or known[0] is not query:
            known = self._bound[id(query)] = (query, self.scheduler.session.bind(query))
        return known[1]

    def _take(self, count: int) -> None:
        if count > self._left:
            raise TooLargeError(
                f"a question must become at most {MOST_QUESTIONS} questions, got more; ask fewer groups."
            )
        self._left -= count
        self._owe(count - self._free)
        self._free = 0


@final
class Scheduler:
    """Takes what askers send from the event loop, and answers it in a thread of its own.

    Args:
        users: The users file, for the log and the quotas.
        clock: Seconds, by which turns end.
    """

    def __init__(
        self,
        session: Servable,
        users: str | os.PathLike[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session, self._clock = session, clock
        self._users = Users(users, waits=0.1)
        self.spanned = isinstance(session, Spanned)
        self._waiting: dict[str, deque[Batch]] = {}
        self._cost: Counter[str] = Counter()  # that waits, by asker
        self._served: dict[str, float] = {}  # virtual time of each asker
        self._now = 0.0  # virtual time
        self._wake = threading.Condition()
        self._closing = self._stopping = False
        self.broken = False
        self.unrecorded = False  # whether the latest questions were refused since the ledger is away
        self.answered: Counter[str] = Counter()  # by status or code
        self.turns = 0
        self.pace = 0.0  # cost a second, of the latest turns
        self._told: list[tuple[Job, list[Answer]]] = []  # from views, not counted yet
        self._lines: list[Asked] = []  # of the log, not written yet
        self._put: list[Put] = []  # questions of histories, not written yet
        self._flushed = self._clock()
        self._good = False
        self.view: Shown = session.view()
        self.reading = Lane("reader", READERS, MOST_READING)
        self.working = Lane("worker", WORKERS, MOST_WORKING)
        self._thread = threading.Thread(target=self._work, name="onlineic-writer", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """End with the part that is answered now: whoever waited was told before, or has gone."""
        self._closing = True
        self._reply(self._give_up(), UnreadyError("the server must go on to answer, got one that ends."))
        self.working.stop()
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()
        self.reading.stop()

    @property
    def waiting(self) -> int:
        """Cost of all that waits."""
        return sum(self._cost.values())

    @property
    def uncounted(self) -> int:
        """How many requests that were told from views are not counted yet."""
        return len(self._told)

    @property
    def ready(self) -> bool:
        """Whether questions can be answered."""
        ended = self.broken or self._closing or not self._thread.is_alive()
        return not (ended or self.unrecorded or self.view.statistics.sealed)

    def before(self, name: str) -> int:
        """Return about how much is answered before all that waits of an asker: by virtual time."""
        with self._wake:
            if name not in self._waiting:
                return 0
            until = self._served[name] + self._cost[name]
            others = [other for other in self._waiting if other != name]
            return int(
                sum(min(self._cost[one], max(0.0, until - self._served[one])) for one in others)
                + self._cost[name]
            )

    def remember(self, put: Put) -> None:
        """Put a question into the history of its user."""
        with self._wake:
            self._put.append(put)
            self._wake.notify()

    def remembered(self, name: str) -> list[Put]:
        """Return what the users file does not hold yet of a user's history, newest first."""
        with self._wake:
            return [one for one in self._put[::-1] if one.user == name]

    def unwritten(self) -> list[Asked]:
        """Return the latest lines of the log that its file does not hold yet, newest first."""
        with self._wake:
            return self._lines[::-1]

    def pool(self) -> Fraction:
        """The capacity that quotas divide, of the table as it was seen last."""
        return self.view.pool

    def quota(self, user: User, active: int) -> Quota:
        """Return what a user may spend, where so many may ask."""
        return Quota(user.name, user.part(active) * self.pool(), user.finest)

    def wish(self, user: User, within: Within | None) -> Within | None:
        """Return how exact answers are to be for a user: as they wish, or as the session does.

        Raises:
            TooFineWishError: If they may have no such wish.
        """
        if within is None:
            return self.session.facts.of_asker(user.finest).within
        Quota(user.name, Fraction(0), user.finest).check(within)
        return within

    # -- what is sent: in the event loop --------------------------------------------------------------------

    async def outcomes(
        self, job: Job, questions: list[Any], costs: Sequence[int], wishes: Sequence[Within | None]
    ) -> list[Outcome]:
        """Return the outcome of each bound question; where all are known, without waiting for a turn.

        These are told from the view, and counted and logged within the next turns.

        Args:
            wishes: How exact each is to be: those with the same wish are one call.
        """
        view = self.view
        if self.ready and all(map(view.holds, questions)):
            known = [view.known(*pair) for pair in zip(questions, wishes, strict=True)]
            found = [one for one in known if one is not None]
            if len(found) == len(questions):
                self._count(job, [one.answer for one in found if one.answer is not None])
                return found

        def act(part: list[Any]) -> Act:
            asked, exact = map(list, zip(*part, strict=True))

            def run(face: Any, session: Any) -> list[Outcome]:
                found: list[Outcome] = face.outcomes(asked, exact) if any(exact) else face.outcomes(asked)
                if tables:
                    found = [_with_tables(one, tables) for one in found]
                self.unrecorded = any(isinstance(one.error, LedgerError) for one in found)
                job.found.update(map(_status, found))
                return found

            return run

        tables = dict[Any, float]()
        calls = {wish: list[Any]() for wish in wishes if wish is not None}
        for question, wish in zip(questions, wishes, strict=True):
            if wish is not None:
                calls[wish].append(question)
        pairs = [*zip(questions, wishes, strict=True)]
        parts = [of_call(call, wish, tables) for wish, call in calls.items() if len(call) > 1]
        parts += [(cost, act(part)) for cost, part in in_parts(pairs, costs, PART)]
        return [one for part in await self._run(job, parts) for one in part]

    async def parts(self, job: Job, parts: list[tuple[int, Act]]) -> list[Any]:
        """Return what acts return that are run, each with its cost, when turns of a user come.

        Raises:
            BusyError: If too much of theirs waits.
            UnreadyError: If the server stops, or nothing more can be recorded.
        """
        return await self._run(job, parts)

    async def work(
        self,
        job: Job,
        act: Callable[[LimitedSession], T],
        admit: Callable[[], None],
        owe: Callable[[int], None],
    ) -> T:
        """Return what an act works out of answers, in a thread of its asker's.

        Args:
            job: Which tells meanwhile how far it has come.
            admit: Called before it begins; what it raises is raised here.
            owe: Told what it becomes beyond one question.

        Raises:
            BusyError: If too many of theirs wait.
        """
        self._check_open()

        def run() -> T:
            admit()
            try:
                return act(LimitedSession(self, job, owe))
            except OnlineICError as error:
                job.found[error.code] += 1
                raise
            finally:
                self._end(job)

        try:
            return await self.working.run(job.user.name, run)
        except asyncio.CancelledError:
            job.left = True
            raise

    async def look(self, user: User, act: Callable[[Any], T], view: Shown | None = None) -> T:
        """Return what an act makes of the view, in a thread beside that which answers: it waits for no refit.

        Raises:
            BusyError: If too many looks of theirs wait.
        """
        seen = self.view if view is None else view
        return await self.reading.run(user.name, lambda: act(seen))

    # -- lines ----------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.broken or self._closing:
            raise UnreadyError(
                "the server must be able to record what it answers, got one that cannot; ask later."
            )

    async def _run(self, job: Job, parts: list[tuple[int, Act]]) -> list[Any]:
        self._check_open()
        cost = sum(cost for cost, _ in parts)
        if self._cost[job.user.name] and self._cost[job.user.name] + cost > MOST_WAITING:
            raise BusyError(f"at most {MOST_WAITING} questions of one asker may wait, got more; ask later.")
        return await told(self.put(job, parts, last=True).future)

    def put(self, job: Job, parts: Iterable[tuple[int, Act]], *, last: bool) -> Batch:
        """Let parts of a job wait for turns of their asker; its future is told when they are durable."""
        batch = Batch(job, deque(parts), Future(), last)
        name, cost = job.user.name, batch.cost
        job.asked += cost
        with self._wake:
            if self.broken or self._stopping or (self._closing and not last):
                raise UnreadyError("the server must go on to answer, got one that ends; ask later.")
            if not batch.parts:
                batch.future.set_result([])
                return batch
            line = self._waiting.setdefault(name, deque())
            if not line:  # who comes back has no claim to the time that they did not use
                self._served[name] = max(self._served.get(name, 0.0), self._now)
            line.append(batch)
            self._cost[name] += cost
            self._wake.notify()
        return batch

    def _count(self, job: Job, answers: list[Answer]) -> None:
        """Let the next turn count what was told from a view."""
        with self._wake:
            self._told.append((job, answers))
            if len(self._told) == 1 or len(self._told) >= MOST_TOLD:
                self._wake.notify()

    def _end(self, job: Job) -> None:
        """Count and log a job that has ended."""
        with self._wake:
            self.answered.update(job.found)
            if job.found:
                self._lines.append(job.line())
                self._wake.notify()

    def _next(self, most: float) -> tuple[Batch, int, Act] | None:
        """Take the next part if it costs no more: of the asker who has had the least, in their order."""
        with self._wake:
            while self._waiting:
                name = min(self._waiting, key=lambda one: self._served[one])
                batch = self._waiting[name][0]
                if batch.future.cancelled() or batch.job.left:  # nobody waits for it any more
                    self._cost[name] -= batch.cost
                    batch.parts.clear()
                    self._leave(name)
                    with contextlib.suppress(InvalidStateError):  # a thread that works it out ends
                        batch.future.set_exception(UnreadyError("who asked has gone; nothing was asked."))
                    continue
                if batch.parts[0][0] > most:
                    return None
                cost, act = batch.parts.popleft()
                if not batch.parts:
                    self._leave(name)
                self._now = max(self._now, self._served[name])
                self._served[name] += cost
                self._cost[name] -= cost
                return batch, cost, act
            return None

    def _leave(self, name: str) -> None:
        self._waiting[name].popleft()
        if not self._waiting[name]:
            del self._waiting[name]

    def _give_up(self) -> list[Batch]:
        """Take all that waits away."""
        with self._wake:
            found = [batch for line in self._waiting.values() for batch in line]
            self._waiting.clear()
            self._cost.clear()
        return found

    # -- turns: in the thread that owns the session ---------------------------------------------------------

    def _work(self) -> None:
        try:
            with contextlib.closing(self._users):
                while self._wait():
                    self._turn()
        except BaseException as error:  # nobody may wait for what never comes
            _log.error("the answering thread ended: %s", type(error).__name__)
        finally:
            self.broken = self.broken or not self._stopping
            self._reply(self._give_up(), UnreadyError("the server must go on to answer, got one that ended."))

    def _wait(self) -> bool:
        """Wait for something to do; return whether there is."""
        with self._wake:
            while not (self._waiting or self._stopping):
                if not (self._told or self._lines or self._put):
                    self._wake.wait()
                    continue
                left = self._flushed + FLUSHED - self._clock()
                if left <= 0.0 or len(self._told) >= MOST_TOLD:
                    break
                self._wake.wait(left)
            return bool(self._waiting or self._told or self._lines or self._put)

    def _turn(self) -> None:
        """Answer parts until the time of a turn is over, make all durable, and reply."""
        self.turns += 1
        begun, cost, batches = self._clock(), 0, list[Batch]()
        if self._waiting or self._told:
            cost = self._together(batches, begun + TURN)
        if self.broken:
            said = "what was answered could not be recorded, and is not told; ask later."
            self._reply([*batches, *self._give_up()], UnreadyError(said))
            self._told.clear()
        else:
            self._reply([batch for batch in batches if not batch.parts])
        if (taken := self._clock() - begun) > 0.0 and cost:
            self.pace += PACED * (cost / taken - self.pace) if self.pace else cost / taken
        self._write()

    def _together(self, batches: list[Batch], end: float) -> int:
        """Answer parts, make all durable in one write, and swap the view; return what they cost.

        Where that fails, nothing that was answered may leave, by a reply or by a view: it is not recorded.
        """
        cost = 0
        try:
            with self.session.together():
                # a part that is dearer than all before it would make these wait for its own time
                while not self.broken and (taken := self._next(cost or math.inf)) is not None:
                    batch, own, act = taken
                    if batch not in batches:
                        batches.append(batch)
                    self._one(batch, own, act)
                    cost += own
                    if self._clock() >= end:
                        break
                self._count_told()
            if not self.broken:
                self.view = self.session.view()
        except BaseException as error:  # whatever it is, who waits is told, and this thread goes on
            self.broken = True
            _log.error("turn failed: %s", type(error).__name__)
        return cost

    def _one(self, batch: Batch, cost: int, act: Act) -> None:
        """Run one part: what fails of it is its own, and ends its batch."""
        job, asking = batch.job, None
        try:
            digests = self._allowed()
            if job.user.digest not in digests:
                raise RevokedError("a token must be given that is valid.")
            asking = self.session.paid_by(self.quota(job.user, len(digests)))
            if job.started is None:
                job.started = asking.length
            before = asking.paid
            try:
                batch.results.append(act(over(asking, job.span), self.session))
            finally:
                if before is not None and (after := asking.paid) is not None:
                    job.paid = (job.paid or Fraction(0)) + after - before
            job.done += cost
        except LedgerError as error:
            batch.error, self.broken = error, True
        except OnlineICError as error:
            batch.error = error
            if batch.last:
                job.found[error.code] += 1
        except BaseException as error:  # never its text, which could hold anything
            _log.error("job failed: %s", type(error).__name__)
            batch.error = InternalError("the question could not be answered; ask another.")
            if batch.last:
                job.found[batch.error.code] += 1
        if asking is not None:
            job.stopped = asking.length
        if batch.error is not None and batch.parts:
            with self._wake:
                self._cost[job.user.name] -= batch.cost
                batch.parts.clear()
                self._leave(job.user.name)

    def _allowed(self) -> frozenset[str]:
        """Return the tokens that are worth something now: in a long turn one can be revoked."""
        try:
            return self._users.digests()
        except OnlineICError as error:  # nothing is asked
            _log.error("users not read: %s", error.code)
            raise UnreadyError("who may ask must be known, got no users; ask later.") from None

    def _count_told(self) -> None:
        """Count what was told from views: nothing of it is asked."""
        with self._wake:
            told, self._told = self._told, []
        for job, answers in told:
            asking: Face = self.session.paid_by(None)
            job.started = job.stopped = asking.length
            asking.count(answers)
            job.found.update(one.status for one in answers)
            self._end(job)

    def _reply(self, batches: Iterable[Batch], error: OnlineICError | None = None) -> None:
        """Tell those who wait: who has gone meanwhile finds it in the record, as a repeat."""
        for batch in batches:
            if batch.last:
                self._end(batch.job)
            with contextlib.suppress(InvalidStateError):  # nobody waits any more
                if (said := error or batch.error) is not None:
                    batch.future.set_exception(said)
                else:
                    batch.future.set_result(batch.results)

    def _write(self) -> None:
        """Write the log, now and then; what cannot be written now is tried again."""
        now = self._clock()
        if not self._stopping and now - self._flushed < FLUSHED:
            return
        self._flushed = now
        with self._wake:
            lines, self._lines = self._lines, []
            put = list(self._put)  # shown until the file holds them
        try:
            if lines or put:
                self._users.log(lines, put)
            if not self._good and not self.broken:
                self._users.good()
                self._good = True
        except OnlineICError as error:
            _log.error("log not written: %s", error.code)
            if not self._stopping:
                with self._wake:
                    self._lines = [*lines, *self._lines][-MOST_LINES:]
                return
        with self._wake:
            del self._put[: len(put)]


def in_parts(asked: Sequence[Any], costs: Sequence[int], most: int) -> list[tuple[int, list[Any]]]:
    """Return questions in parts of at most this cost, or one question, each with its cost."""
    found: list[tuple[int, list[Any]]] = []
    for one, cost in zip(asked, costs, strict=True):
        if found and found[-1][0] + cost <= most:
            found[-1] = (found[-1][0] + cost, found[-1][1])
            found[-1][1].append(one)
        else:
            found.append((cost, [one]))
    return found


def of_call(questions: list[Any], within: Within, tables: dict[Any, float]) -> tuple[int, Act]:
    """Return the part that buys what a call needs as a whole, with its cost: it tells nothing.

    Args:
        tables: Gets what was spent of the budget, by the keys of the questions.
    """

    def bought(face: Any, session: Any) -> list[Any]:
        tables.update(face.buy_call(questions, within))
        return []

    return max(1, len(questions) // 8), bought


def _with_tables(outcome: Outcome, tables: dict[Any, float]) -> Outcome:
    """Return an outcome whose answer costs also its part of the tables of its call."""
    answer = outcome.answer
    if answer is None or answer.query is None:
        return outcome
    return attrs.evolve(outcome, answer=answer.costing(tables.pop(answer.query.key, None)))


def cost_of_bound(question: Any) -> int:
    """Return about how many plain questions a bound question is as long to answer and to tell as."""
    return max(1, question.cells.size // CELLS) if isinstance(question, BoundMarginal) else 1


def _status(outcome: Outcome) -> str:
    if outcome.answer is not None:
        return outcome.answer.status
    return getattr(outcome.error, "code", "")


def _counts(found: Counter[str]) -> str:
    return " ".join(f"{name}:{count}" for name, count in sorted(found.items()))
