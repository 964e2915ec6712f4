"""What programs and the page share: a question is let in, and worked out once, and says how far it is."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from fractions import Fraction
from typing import Any, TypeVar, final

import attrs
from starlette.responses import Response

from onlineic.errors import InvalidQueryError
from onlineic.service.face import Servable, Span, over
from onlineic.service.gate import Gate
from onlineic.service.scheduler import Job, LimitedSession, Scheduler
from onlineic.service.users import User, digest_of
from onlineic.session.quota import Quota

MOST_KEYS, LONGEST_KEY, LONGEST_REPLY = 256, 80, 2**16  # of replies that are kept to be given again
MOST_SHARED = 16
T = TypeVar("T")


@final
@attrs.define(eq=False)
class Once:
    """A request that is answered once, however often it is sent.

    Attributes:
        digest: Of what was sent.
        job: How far it has come.
        task: That makes the reply.
    """

    digest: str
    job: Job
    task: "asyncio.Future[Response]"


@final
class Office:
    """A session, the scheduler in front of it, and the gate."""

    def __init__(self, session: Servable, scheduler: Scheduler, gate: Gate) -> None:
        self.session, self.scheduler, self.gate = session, scheduler, gate
        self._once: OrderedDict[tuple[str, str], Once] = OrderedDict()
        self._shared: dict[tuple[str, int], tuple[Any, asyncio.Task[Any]]] = {}  # and of which facts

    def quota(self, user: User) -> Quota:
        """Return what a user may spend, as their next question finds it."""
        return self.scheduler.quota(user, self.gate.users.active)

    def payment(self, job: Job) -> Callable[[], dict[str, float]]:
        """Return what tells, in any thread, what a job has cost who asked: of the budget, and of their part.

        Of periods, which have a budget each, it tells nothing.
        """
        part, whole = self.quota(job.user).limit, self.scheduler.view.account.capacity

        def told() -> dict[str, float]:
            if self.scheduler.spanned:
                return {}
            paid = job.paid or Fraction(0)
            return {"paid": float(paid), "paid_of_part": float(paid * whole / part) if part else 0.0}

        return told

    def facts(self, user: User) -> dict[str, Any]:
        """Return public facts of now, and what is left of a user's part."""
        view, pool, quota = self.scheduler.view, self.scheduler.pool(), self.quota(user)
        paid = view.paid.get(user.name, Fraction(0))
        own = {
            "name": user.name,
            "share": float(user.part(self.gate.users.active)),
            "paid": float(paid / pool) if pool else 0.0,
            "left": float(max(Fraction(0), quota.limit - paid) / pool) if pool else 0.0,
            "hard_left": view.hits_left(quota),
            "finest": user.finest,
        }
        return {**view.to_dict(), "measured_left": view.hits_left(None), "you": own}

    async def worked(self, job: Job, act: Callable[[LimitedSession], Any]) -> Any:
        """Return what is worked out of answers, each of which counts as a question of the asker."""
        user = job.user
        over(self.session, job.span)
        self.gate.ask(user, 0)  # it is counted as it begins
        return await self.scheduler.work(
            job, act, lambda: self.gate.ask(user), lambda count: self.gate.owe(user, count)
        )

    async def summary(self, user: User, answers: int) -> Any:
        """Return the summary of now."""

        async def summed_up() -> Any:
            act = (8 + answers // 4, lambda to, session: session.summary(answers))
            return (await self.scheduler.parts(Job.of(user, b"summary"), [act]))[0]

        return await self.shared(("summary", answers), summed_up)

    async def shared(self, name: tuple[str, int], make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what is made once for all who ask for it before something public changes."""
        now = (self.scheduler.view.length, self.scheduler.view.statistics)
        held = self._shared.pop(name, None)
        if held is None or held[0] != now or _failed(held[1]):
            held = (now, asyncio.ensure_future(make()))
            held[1].add_done_callback(_failed)  # somebody is told: whoever waits, if anybody does
        self._shared[name] = held
        while len(self._shared) > MOST_SHARED:
            self._shared.pop(next(iter(self._shared)))
        found: T = await asyncio.shield(held[1])
        return found

    # -- requests that may come twice -----------------------------------------------------------------------

    async def once(
        self,
        user: User,
        key: str | None,
        raw: bytes,
        span: Span,
        act: Callable[[Job], Awaitable[Response]],
    ) -> Response:
        """Return the reply to a request; one with the same key is the same request, and has the same reply.

        What fails is not kept: sent again, it is tried again. After a restart keys are forgotten, and what
        was told is a repeat.

        Raises:
            InvalidQueryError: If a key was used for something else.
        """
        job = Job.of(user, raw, span)
        if not key:
            return await act(job)
        if len(key) > LONGEST_KEY:
            raise InvalidQueryError(f"a key must have at most {LONGEST_KEY} letters, got {len(key):,}.")
        name = (user.name, digest_of(key))
        held = self._once.get(name)
        if held is not None and held.digest != job.digest:
            raise InvalidQueryError("a key must stand for one request, got it with another; make a new one.")
        if held is None:
            held = self._once[name] = Once(job.digest, job, asyncio.ensure_future(act(job)))
            held.task.add_done_callback(lambda task: self._ended(name, task))
        return await asyncio.shield(held.task)

    def _ended(self, name: tuple[str, str], task: "asyncio.Future[Response]") -> None:
        failed = task.cancelled() or task.exception() is not None
        if failed or len(task.result().body) > LONGEST_REPLY:
            self._once.pop(name, None)
        while len(self._once) > MOST_KEYS:
            self._once.popitem(last=False)

    def progress(self, user: User, key: str) -> dict[str, Any]:
        """Return how far a request has come: what is answered before it, and how much of it is answered."""
        held = self._once.get((user.name, digest_of(key)))
        if held is None:
            return {"state": "unknown"}
        if held.task.done():
            return {"state": "done"}
        job, before = held.job, self.scheduler.before(user.name)
        seconds = before / self.scheduler.pace if self.scheduler.pace else None
        state = "asking" if job.done else "waiting"
        return {"state": state, "before": before, "asked": job.asked, "done": job.done, "seconds": seconds}


def _failed(task: "asyncio.Task[Any]") -> bool:
    """Return whether a task has ended without a result."""
    return task.done() and (task.cancelled() or task.exception() is not None)
