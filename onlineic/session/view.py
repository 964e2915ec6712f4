"""What is public of a session at one moment: frozen, so that readers wait for nobody."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar, final

import attrs

from onlineic._typing import Floats
from onlineic.accounting.budget import Charge, Filter
from onlineic.display.plain import strict
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.hypothesis.base import Hypothesis
from onlineic.plan.plan import Plan
from onlineic.queries.answers import Answer
from onlineic.queries.marginals import Question
from onlineic.queries.within import Within
from onlineic.questions.derived import Answering
from onlineic.session.asking import Outcome, Places, check_answers
from onlineic.session.explain import Explanation, NotToldError, Preview, Previewer, Recalling
from onlineic.session.quota import Quota
from onlineic.session.statistics import SessionStatistics

T = TypeVar("T")


@final
@attrs.frozen(eq=False, repr=False)
class View:
    """Public facts of a session, as they were when it was taken.

    Attributes:
        hypothesis: Without any guarantee.
        account: Without the standing reservation.
        owed: The charge of tables and numbers that questions will buy, in the unit of the account.
        owed_alone: The part of it that the asker pays: for numbers that are bought for one question.
        paid: What each quota has paid, in the unit of the account.
        length: Records in the transcript.
    """

    domain: Domain
    n: int
    plan: Plan
    statistics: SessionStatistics
    hypothesis: Hypothesis
    answers_tables: bool
    account: Filter
    reserved: Charge | None
    owed: Fraction
    owed_alone: Fraction
    paid: Mapping[str, Fraction]
    length: int
    _previewer: Previewer
    _places: Places
    _gate: Any = attrs.field(factory=threading.Lock, init=False)  # while a thread takes its own

    @property
    def pool(self) -> Fraction:
        """The capacity that quotas divide: without what serves everybody, spent or still to come."""
        shared = self.account.spent - sum(self.paid.values(), Fraction(0)) + self.owed - self.owed_alone
        return max(Fraction(0), self.account.capacity - shared)

    def explain(
        self,
        question: Any,
        most: int | None = None,
        quota: Quota | None = None,
        within: Within | None = None,
    ) -> Explanation:
        """Return what `OnlineIC.explain` said then; waits for no call of the session, nor for other threads.

        Args:
            question: As of `OnlineIC.explain`.
            most: How many questions it may become.
            quota: Of who asks: prices and bounds are theirs; None: they may spend all of the budget.
            within: As of `OnlineIC.explain`.

        Raises:
            TooLargeError: If it becomes more.
            TooFineWishError: If the owner of the quota may have no such wish.
        """
        return self._of(quota).explained(question, most, within)

    def believed(self, queries: Iterable[Any]) -> list[float]:
        """Return what `OnlineIC.believed` said then."""
        previewer = self._of(None)
        return [previewer.book.said(previewer.bound(query)) for query in queries]

    def recalled(self, ask: Callable[[Answering], T], rounded_in: Unit | None = None) -> T | None:
        """Return what is worked out of answers that were told then, or None if one of them was not.

        Args:
            ask: A function of a session.
            rounded_in: As of the session.
        """
        previewer = self._of(None)
        try:
            return ask(Recalling(previewer, rounded_in))
        except NotToldError:
            return None

    def joint_bounds(self, queries: Iterable[Any], answers: Sequence[Answer]) -> Floats:
        """Return what `OnlineIC.joint_bounds` said then."""
        previewer = self._of(None)
        bound = [previewer.bound(query) for query in queries]
        check_answers(bound, answers)
        return previewer.book.joint_bounds(bound, answers)

    def snapshot(self, queries: Iterable[Any], answers: Sequence[Answer]) -> list[Answer]:
        """Return what `OnlineIC.snapshot` said then."""
        previewer = self._of(None)
        bound = [previewer.bound(query) for query in queries]
        check_answers(bound, answers)
        return previewer.book.snapshot(bound, answers)

    def hits_left(self, quota: Quota | None) -> int:
        """Return how many hits of the largest price a quota can still pay, or numbers by themselves."""
        return self._of(quota).measured_left

    def _of(self, quota: Quota | None) -> Previewer:
        paid = Fraction(0) if quota is None else self.paid.get(quota.name, Fraction(0))
        with self._gate:
            return self._previewer.apart().of_asker(quota, paid)

    def preview(self, question: Any, quota: Quota | None = None) -> Preview:
        """Return what was known then of one question before it is asked, by the owner of a quota.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If it cannot be asked.
        """
        previewer = self._of(quota)
        return previewer.preview(previewer.bound(question))

    def known(self, question: Any, within: Within | None = None) -> Outcome | None:
        """Return what was told of a question that needed no test then, a constant or a repeat, or None.

        Waits for nobody: not for `explain` either.

        Args:
            within: How exact it is to be: what was told less exactly is not told again.

        Raises:
            InvalidQueryError, DomainMismatchError, TooLargeError: If it cannot be asked.
        """
        bound = self._previewer.bound(question)
        if not self.holds(bound) or (answer := self._previewer.book.recalled(bound, within)) is None:
            return None
        constant = bound.constant is not None
        return Outcome(answer, None if constant else self._places.before(self.length, bound.key))

    def holds(self, bound: Question) -> bool:
        """Return whether a bound question was released then, or is a constant: else `known` is None."""
        return bound.constant is not None or self._places.before(self.length, bound.key) is not None

    def released(self, start: int = 0, stop: int | None = None) -> list[tuple[int, Answer]]:
        """Return what `OnlineIC.released` said then."""
        return self._of(None).book.released(start, self.length if stop is None else stop)

    def to_dict(self) -> dict[str, Any]:
        """Return n, statistics and length as plain values, which `json.dumps` takes."""
        found: dict[str, Any] = strict({"n": self.n, **self.statistics.to_dict(), "length": self.length})
        return found

    def __repr__(self) -> str:
        return f"View(n={self.n:,}, {self.length:,} records)"
