"""The one thread that owns the session: it takes what waits, fairly, answers it together, and replies.

Whatever a question makes the session spend is known before it is read, and paid by its asker's purse. Easy
answers of several askers become durable in one write, and no reply leaves before that. After each turn a
frozen view is swapped, which readers take without waiting.

The order in which askers are served rests on what they sent and on the record alone, never on a private
number: so whoever orders them is one adaptive analyst (docs/theory/session.md, 4.11).
"""

import asyncio
import contextlib
import hashlib
import logging
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any, TypeVar, final

import attrs

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.errors import InternalError, LedgerError, OnlineICError, TooLargeError
from onlineic.queries.answers import Answer
from onlineic.questions.derived import Answering
from onlineic.service.face import ALL, Servable, Shown, Span, over
from onlineic.service.face import Asked as Face
from onlineic.service.users import Asked, User, Users
from onlineic.session.asking import Outcome
from onlineic.session.purse import Purse

LINES = 256  # of the log that wait for a turn behind which nobody waits
TURN = 64  # cost that is answered together
MOST_WAITING = 512  # cost that may wait of one asker
MOST_READING = 8  # looks at the view that may wait of one asker
MOST_QUESTIONS = 4096  # that one derived question may become
_log = logging.getLogger("onlineic.service")
T = TypeVar("T")


class BusyError(OnlineICError):
    """Too much waits of this asker already; nothing was asked."""


class UnreadyError(OnlineICError):
    """The server cannot answer now: it stops, or its ledger could not be written."""


class RevokedError(OnlineICError):
    """The token of who asks was revoked or renewed while the question waited; nothing was asked."""


@final
@attrs.define(eq=False)
class Job:
    """What one asker waits for.

    Attributes
    ----------
    user : User
    cost : int
        About how many plain questions it is.
    act : (Asking) -> result
        Run in the writer's thread.
    digest : str
        Of what was sent, for the log.
    future : asyncio.Future
    """

    user: User
    cost: int
    act: Callable[["Capped"], Any]
    digest: str
    future: "asyncio.Future[Any]"
    result: Any = None
    error: OnlineICError | None = None
    started: int = 0
    stopped: int = 0
    found: Counter[str] = attrs.field(factory=Counter)  # statuses and codes


@final
class Capped(Answering):
    """A session as an asker has it, that refuses a derived question which becomes too many."""

    def __init__(self, asking: Face, session: Servable, most: int = MOST_QUESTIONS) -> None:
        self.asking, self.session, self._left, self.statuses = asking, session, most, Counter[str]()

    @property
    def domain(self) -> Domain:
        return self.asking.domain

    @property
    def n(self) -> int:
        return self.asking.n

    @property
    def n_bound(self) -> int:
        return self.asking.n_bound

    @property
    def rounded_in(self) -> Unit | None:
        return self.asking.rounded_in

    @property
    def beta(self) -> float:
        return self.asking.beta

    @property
    def answers_tables(self) -> bool:
        return self.asking.answers_tables

    def over(self, span: Span) -> "Capped":
        """Return it over some periods; what is asked counts together."""
        found = Capped(over(self.asking, span), self.session, self._left)
        found.statuses = self.statuses
        return found

    def _take(self, count: int) -> None:
        if count > self._left:
            raise TooLargeError(
                f"a question must become at most {MOST_QUESTIONS:,} questions, got more; ask fewer groups."
            )
        self._left -= count

    def answer(self, query: Any) -> Answer:
        self._take(1)
        found = self.asking.answer(query)
        self.statuses[found.status] += 1
        return found

    def answer_many(self, queries: Any) -> Any:
        asked = list(queries)
        self._take(len(asked))
        found = self.asking.answer_many(asked)
        self.statuses.update(one.status for one in found)
        return found

    def count(self, told: Sequence[Answer]) -> None:
        """Count answers that were told from a view."""
        self.asking.count(told)
        self.statuses.update(one.status for one in told)

    def outcomes(self, questions: Iterable[Any]) -> list[Outcome]:
        """Answer each by itself."""
        found = self.asking.outcomes(questions)
        for one in found:
            self.statuses[
                one.answer.status if one.answer is not None else getattr(one.error, "code", "")
            ] += 1
        return found

    def told(self, questions: Iterable[Any]) -> list[dict[str, Any]]:
        """Answer each by itself, as plain values: in the thread that owns the session, as bounds are made."""
        return [one.to_dict() for one in self.outcomes(questions)]

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        return self.asking.joint_bounds(queries, answers)

    def snapshot(self, queries: Iterable[Any], answers: Iterable[Answer]) -> list[Answer]:
        return self.asking.snapshot(queries, answers)


@final
class Desk:
    """Takes jobs from the event loop, and answers them in a thread of its own.

    Parameters
    ----------
    session : Servable
    users : str or path
        The users file, for the log and the purses.
    """

    def __init__(self, session: Servable, users: str | os.PathLike[str]) -> None:
        self._session, self._users = session, users
        self._waiting: dict[str, deque[Job]] = {}
        self._cost: Counter[str] = Counter()  # that waits, by asker
        self._served: dict[str, float] = {}  # virtual time of each asker
        self._clock = 0.0
        self._wake = threading.Condition()
        self._stopping = False
        self.broken = False
        self.answered: Counter[str] = Counter()  # by status or code
        self.turns = 0
        self._lines: list[Asked] = []  # of the log, not written yet
        self.view: Shown = session.view()
        self._reading: Counter[str] = Counter()  # looks at the view, by asker
        self._reader = ThreadPoolExecutor(1, "onlineic-reader")
        self._thread = threading.Thread(target=self._work, name="onlineic-writer", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what waits, and end."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()
        self._reader.shutdown()

    @property
    def waiting(self) -> int:
        """Cost of all that waits."""
        return sum(self._cost.values())

    @property
    def ready(self) -> bool:
        """Whether questions can be answered."""
        return not (self.broken or self._stopping or self.view.statistics.sealed)

    def pool(self) -> Fraction:
        """What purses are parts of: the capacity but for what serves everybody, spent and to come."""
        view = self.view
        shared = view.account.spent - sum(view.paid.values(), Fraction(0)) + view.owed
        return max(Fraction(0), view.account.capacity - shared)

    async def do(self, user: User, cost: int, act: Callable[[Capped], Any], sent: bytes) -> Any:
        """Return what an act returns that is run for a user when their turn comes.

        Raises
        ------
        BusyError
            If too much of theirs waits.
        UnreadyError
            If the server stops, or nothing more can be recorded.
        """
        return await self._put(user, cost, act, sent)

    def _put(
        self, user: User, cost: int, act: Callable[["Capped"], Any], sent: bytes
    ) -> "asyncio.Future[Any]":
        """Let an act wait for its asker's turn."""
        if self.broken or self._stopping:
            raise UnreadyError(
                "the server must be able to record what it answers, got one that cannot; ask later."
            )
        digest = hashlib.sha256(sent).hexdigest()
        job = Job(user, cost, act, digest, asyncio.get_running_loop().create_future())
        with self._wake:
            if self._cost[user.name] and self._cost[user.name] + cost > MOST_WAITING:
                raise BusyError(
                    f"at most {MOST_WAITING} questions of one asker may wait, got more; ask later."
                )
            line = self._waiting.setdefault(user.name, deque())
            if not line:  # who comes back has no claim to the time that they did not use
                self._served[user.name] = max(self._served.get(user.name, 0.0), self._clock)
            line.append(job)
            self._cost[user.name] += cost
            self._wake.notify()
        return job.future

    async def look(self, user: User, act: Callable[[Any], T], view: Shown | None = None) -> T:
        """Return what an act makes of the view, in a thread beside that which answers: it waits for no refit.

        Raises
        ------
        BusyError
            If too many looks of theirs wait.
        """
        if self._reading[user.name] >= MOST_READING:
            raise BusyError(f"at most {MOST_READING} requests of one asker may wait, got more; ask later.")
        self._reading[user.name] += 1
        try:
            seen = self.view if view is None else view
            return await asyncio.get_running_loop().run_in_executor(self._reader, act, seen)
        finally:
            self._reading[user.name] -= 1

    async def outcomes(
        self, user: User, questions: list[Any], cost: int, sent: bytes, span: Span = ALL
    ) -> list[dict[str, Any]]:
        """Return the outcome of each bound question; where all are known, without waiting for a turn.

        These are told from the view, unless too much else is, and counted and logged when their turn comes.
        """
        view, free = self.view, self._reading[user.name] < MOST_READING
        if self.ready and free and all(map(view.holds, questions)):
            known = await self.look(user, lambda view: _known(view, questions), view)
            if known is not None:
                answers = [one.answer for one, _ in known if one.answer is not None]
                self._put(user, cost, lambda to: to.count(answers), sent)
                return [told for _, told in known]
        turn = self._put(user, cost, lambda to: to.over(span).told(questions), sent)
        found: list[dict[str, Any]] = await turn
        return found

    def _turn(self) -> list[Job]:
        """Wait for jobs, and return those of the next turn: of the asker first who has had the least."""
        with self._wake:
            while not self._waiting and not self._stopping:
                self._wake.wait()
            taken: list[Job] = []
            cost = 0
            while self._waiting and cost < TURN:
                name = min(self._waiting, key=lambda one: self._served[one])
                job = self._waiting[name].popleft()
                if not self._waiting[name]:
                    del self._waiting[name]
                self._clock = max(self._clock, self._served[name])
                self._served[name] += job.cost
                self._cost[name] -= job.cost
                cost += job.cost
                taken.append(job)
            return taken

    def _work(self) -> None:
        users = Users(self._users)
        good = False
        while jobs := self._turn():
            self._answer(jobs, users)
            if not good and not self.broken:
                good = True
                with contextlib.suppress(OnlineICError):
                    users.good()
        users.close()

    def _answer(self, jobs: list[Job], users: Users) -> None:
        """Answer the jobs of one turn, make all durable, and reply."""
        self.turns += 1
        try:
            digests = users.digests()
        except OnlineICError as error:  # nothing was asked
            for job in jobs:
                job.error = error
        else:
            self._together(jobs, digests)
        for job in jobs:
            self.answered.update(job.found)
        self._lines += [
            Asked(job.user.name, job.digest, job.started, job.stopped, _counts(job.found))
            for job in jobs
            if job.found
        ]
        if not self._waiting or len(self._lines) >= LINES or self._stopping:
            try:
                users.log(self._lines)
            except OnlineICError as error:
                _log.error("log not written: %s", error.code)
            self._lines = []
        with contextlib.suppress(RuntimeError):  # a loop that is closed: nobody waits any more
            jobs[0].future.get_loop().call_soon_threadsafe(_reply, jobs)

    def _together(self, jobs: list[Job], digests: frozenset[str]) -> None:
        """Answer the jobs, make all durable in one write, and swap the view.

        Where that fails, nothing that was answered may leave, by a reply or by a view: it is not recorded.
        """
        try:
            pool = self.pool()
            with self._session.together():
                for job in jobs:
                    self._one(job, digests, pool)
            if not self.broken:
                self.view = self._session.view()
        except BaseException as error:  # whatever it is, who waits is told, and this thread goes on
            self.broken = True
            _log.error("turn failed: %s", type(error).__name__)
        if self.broken:
            for job in jobs:
                job.error = UnreadyError(
                    "what was answered could not be recorded, and is not told; ask later."
                )

    def _one(self, job: Job, digests: frozenset[str], pool: Fraction) -> None:
        """Run one job: what fails of it is its own."""
        capped = None
        try:
            if job.user.digest not in digests:
                raise RevokedError("a token must be given that is valid.")
            limit = job.user.part(len(digests)) * pool
            capped = Capped(self._session.paid_by(Purse(job.user.name, limit)), self._session)
            job.started = capped.asking.length
            job.result = job.act(capped)
        except LedgerError as error:
            job.error, self.broken = error, True
        except OnlineICError as error:
            job.error = error
            job.found[error.code] += 1
        except BaseException as error:  # never its text, which could hold anything
            _log.error("job failed: %s", type(error).__name__)
            job.error = InternalError("the question could not be answered; ask another.")
            job.found[job.error.code] += 1
        if capped is not None:
            job.found.update(capped.statuses)
            job.stopped = capped.asking.length


def _known(view: Shown, questions: Iterable[Any]) -> list[tuple[Outcome, dict[str, Any]]] | None:
    """Return the outcomes of questions none of which needed a test at the moment of a view, or None."""
    found = []
    for question in questions:
        if (one := view.known(question)) is None:
            return None
        found.append((one, one.to_dict()))
    return found


def _counts(found: Counter[str]) -> str:
    return " ".join(f"{name}:{count}" for name, count in sorted(found.items()))


def _reply(jobs: Iterable[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue  # who asked has gone: what was answered is recorded, and a repeat
        if job.error is not None:
            job.future.set_exception(job.error)
            job.future.exception()  # nobody may wait for it any more
        else:
            job.future.set_result(job.result)
