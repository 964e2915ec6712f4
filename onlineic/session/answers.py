"""What a session hands out, with the bound that its mechanism proves for it: a fold over its record."""

import contextlib
import math
import sys
import warnings
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, final

import attrs
import numpy as np

from onlineic.accounting.budget import Budget
from onlineic.errors import SessionStateError, UpdateFailedWarning, WideBoundWarning
from onlineic.hypothesis.base import block_guesses, grid_guesses
from onlineic.hypothesis.estimates import Estimates, Family, TableDesign
from onlineic.ledger.records import Burned, Easy, Hard, Ledger, Opened, Record, UpdateFailed
from onlineic.queries.answers import Answer, AnswerMemory, Status
from onlineic.queries.ask import Guess, Question
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.partitions import Measurement, Partition, derived
from onlineic.queries.query import Query
from onlineic.session.belief import Belief, measured
from onlineic.session.defaults import AGREEING
from onlineic.session.plan import ALL_EASY, ALL_HARD, EASY_OR_HARD, KNOWN, Plan
from onlineic.sparse.base import NumericSparse

WIDE = 0.1  # a bound of a tenth of all records, or more, says next to nothing


MOST_TESTS = 10**30  # so many that a union over them says nothing


@final
@attrs.frozen
class SessionStatistics:
    """A snapshot of a session: public facts only.

    Attributes
    ----------
    asked, easy, hard, repeat, untested : int
        Answers by status.
    hard_left : int
        Hard answers of the largest price that can still be paid, at the price of the next; cheaper ones
        leave more, and so do falling prices.
    spent : float
        Share of the budget that is used up or reserved, in [0, 1].
    budget : Budget
    threshold : float
        Gap at which the next query is hard, before noise; fraction of records.
    alpha : float
        Gap that an update relies on; in textbook mode the theorem's alpha.
    error_bound : float
        Bound on all tested answers at once with probability 1 - beta: where first tables were bought, on
        those given so far, else on all of the stream. inf once more than max_queries were asked, or a
        certified session has measured a table.
    certified : bool
        Whether the hard answers cannot run out in that event: T(alpha) counts them, of single queries, and
        if every update succeeds; or each question announced is paid.
    update_failures : int
    sealed : bool
        Whether nothing is tested any more, because a test was interrupted before its record; what was
        released is still answered.
    private : bool
        False: simulated noise, NOT PRIVATE.
    family : Family or None
        The queries that the noise of the first tables bounds all at once, whichever of them are asked.
    """

    asked: int
    easy: int
    hard: int
    repeat: int
    untested: int
    hard_left: int
    spent: float
    budget: Budget
    threshold: float
    alpha: float
    beta: float
    error_bound: float
    certified: bool
    update_failures: int
    sealed: bool
    private: bool
    family: Family | None = None


@final
@attrs.frozen(eq=False)
class _Taken:
    """What was made of the leading records: replaced as a whole, so that an interrupt loses none."""

    belief: Belief
    records: int = 0
    easy: int = 0
    hard: int = 0
    first: tuple[Measurement, ...] = ()  # the first tables
    spent: Fraction = Fraction(0)  # on releases: it settles which mechanism tested what comes next


@final
class AnswerBook:
    """The public half of a session: takes in its records one by one; learns, answers, counts and remembers.

    A record is taken as a whole or not at all: after an interrupt or a failure anywhere `take` goes on with
    the same one, and what it then makes of it is the same.

    Parameters
    ----------
    plan : Plan
    n : int
    ledger : Ledger
    belief : Belief
        Before the first record.
    private : bool
        Stamped on every answer.
    """

    __slots__ = (
        "_design", "_easy_radius", "_estimates", "_ledger", "_memory", "_n", "_payable", "_plan", "_private",
        "_rounding", "_spending", "_table", "_taken", "_trivial", "_untaken", "_warned", "_worst",
        "_worst_easy",
    )  # fmt: skip

    def __init__(self, plan: Plan, n: int, ledger: Ledger, belief: Belief, private: bool) -> None:
        self._plan = plan
        self._n = n
        self._ledger = ledger
        self._private = private
        self._taken = _Taken(belief)
        self._untaken: dict[Status, int] = {"easy": 0, "repeat": 0, "untested": 0}  # answers without a record
        self._memory = AnswerMemory(lasting=not plan.textbook)
        self._spending = plan.spending
        self._easy_radius = lru_cache(256)(partial(_easy_radii, plan))
        self._payable = plan.sparse.account().capacity  # what all hits together can cost
        self._design: TableDesign | None = None
        self._estimates: Estimates | None = None
        if plan.first_tables is not None:
            self._payable -= plan.first_tables.charge.amount
            tables = plan.first_tables
            self._design = TableDesign(tables.targets, [*map(float, tables.scales)], tables.pure)
        # largest so far, of any tested answer; taking a record twice does not change them
        self._worst_easy, self._worst = 0.0, 0.0  # bound of an easy and of a hard answer, all at once
        self._rounding = 0.0  # distance of an answered query from the one written
        self._trivial = 1.0  # distance of a value from the far end of [0, 1]
        self._table = False  # whether one was measured
        self._warned = False  # of a wide bound

    @property
    def belief(self) -> Belief:
        """What the records taken so far have taught."""
        return self._taken.belief

    @property
    def pending(self) -> bool:
        """Whether the ledger holds records that were not taken in."""
        return self._taken.records < len(self._ledger)

    @property
    def counts(self) -> dict[Status, int]:
        """Answers by status."""
        easy = self._taken.easy + self._untaken["easy"]
        return {**self._untaken, "easy": easy, "hard": self._taken.hard}

    @property
    def certified(self) -> bool:
        """Whether T(alpha) still bounds the hard answers: of single queries, learned from one by one."""
        return self._plan.certified and not self._table and not self.belief.failures

    @property
    def family(self) -> Family | None:
        """The queries that the noise of the first tables bounds all at once."""
        return None if self._design is None else self._design.family

    def take(self) -> tuple[Question, Answer] | None:
        """Take in the next record, and return the question and answer that it is, if it is one."""
        at = self._taken
        record, *later = self._ledger.records(at.records, at.records + 2)
        if isinstance(record, Easy):
            answer = self._easy(record.query, record.guess)
            self._taken = attrs.evolve(at, records=at.records + 1, easy=at.easy + 1)
            self._warn_if_wide(answer)
            return record.query, answer
        if self._asked_by_rule():
            raise SessionStateError(
                "session must not be asked by its own update rule, but was; mend the rule."
            )
        belief, failed = self._learned(record, isinstance(later[0] if later else None, UpdateFailed))
        hard = (record.query, self._hard(record, belief)) if isinstance(record, Hard) else None
        # what is bought later is bought because of the noise of the first: it must not enter (theory 6.7)
        first = record.measurements if isinstance(record, Opened) and not at.first else at.first
        spent = at.spent + (record.charge.amount if isinstance(record, Hard | Opened | Burned) else 0)
        self._taken = _Taken(belief, at.records + 1, at.easy, at.hard + (hard is not None), first, spent)
        if failed:
            with contextlib.suppress(UpdateFailedWarning):  # not even as an error may it stop the answer
                warnings.warn(
                    f"{type(self._plan.update).__name__} failed on a release; the old hypothesis is kept.",
                    UpdateFailedWarning,
                    stacklevel=2,
                )
        if hard is not None:
            self._warn_if_wide(hard[1])
        return hard

    def _warn_if_wide(self, answer: Answer) -> None:
        """Say once that bounds are wide: behind the answer, which nothing may stop.

        The theorem's own bound is known when a textbook session opens, and wide at any usual n.
        """
        if answer.error_bound > WIDE and not self._warned and not self._plan.textbook:
            self._warned = True
            with contextlib.suppress(WideBoundWarning):
                warnings.warn(
                    f"error_bound must be <= {WIDE} to say much, got {answer.error_bound:.2g} of all: "
                    "raise epsilon or n, or lower max_queries or hard_answers. Said once a session.",
                    WideBoundWarning,
                    stacklevel=2,
                )

    def _learned(self, record: Record, known: bool) -> tuple[Belief, bool]:
        """Return the belief behind a record, and whether its update failed now (`known`: did before)."""
        belief, released = self._taken.belief, measured(record)
        if not released:
            return belief, False
        if known:
            return belief.unmoved(released), False
        try:
            return belief.learned(released, self._plan.update, self._plan.alpha), False
        except Exception as error:  # paid and public already: the answer stands, the old hypothesis is kept
            self._ledger.commit([UpdateFailed(type(error).__name__)])
            return belief.unmoved(released), True

    def _asked_by_rule(self) -> bool:
        """Whether a record is being taken further up: a flag would be left behind by an interrupt."""
        frame = sys._getframe(1)
        while frame.f_back is not None:
            frame = frame.f_back
            if frame.f_code is AnswerBook.take.__code__ and frame.f_locals["self"] is self:
                return True
        return False

    def known(self, question: Question) -> bool:
        """Whether the question needs no test: a constant, or remembered."""
        recalled = self._memory.recall(question, self.belief.version)
        return question.constant is not None or recalled is not None

    def guesses(self, questions: Sequence[Question]) -> Sequence[Guess]:
        """Return the public integers of queries, or of one cross table, that are tested or released."""
        hypothesis = self.belief.hypothesis
        if isinstance(questions[0], BoundMarginal):
            return [block_guesses(hypothesis, questions[0].partition, self._n)]
        return grid_guesses(hypothesis, [query for query in questions if isinstance(query, Query)], self._n)

    def without_test(self, question: Question) -> Answer:
        """Return a constant, a repeat, or the hypothesis's answer, bounded by the first tables alone."""
        status: Status = "untested"
        known = self._memory.recall(question, self.belief.version)
        if question.constant is not None:
            status, value = "easy", question.constant / (1 << question.grid_bits)
            bound = _cut(value, question.rounding)
        elif known is not None:
            status, value, bound = "repeat", known[0], _cut(*known)
        else:
            value = self._value(question, self.guesses([question])[0])
            bound = self._known(question, value)
            if bound < math.inf:
                bound = _cut(value, bound + question.rounding)
        if status != "untested":
            self._rounding = max(self._rounding, question.rounding)
        self._untaken[status] += 1
        return self._answer(question, value, status, bound)

    def _easy(self, question: Question, guess: Guess) -> Answer:
        """Return the guess that was tested."""
        value = self._value(question, guess)
        radius, joint = self._easy_radius(self._spending.at(self._taken.spent))
        known = self._known(question, value)
        self._worst_easy = max(self._worst_easy, min(joint, known))
        return self._released(question, "easy", value, min(radius, known))

    def _hard(self, record: Hard, learned: Belief) -> Answer:
        """Return a measured number or table, the sum of the measured blocks, or what was learned from it.

        A query that was hard by the noise of its test alone is often measured with more noise than the
        hypothesis, fitted to all tables, errs by. Where the guess that was tested and what was learned both
        agree with the sum of blocks, the latter is returned. The bound grows by its distance from the sum;
        all are public.
        """
        plan, question, measurement, moved = self._plan, record.query, record.measurement, 0.0
        sparse = self._spending.at(self._taken.spent)  # whose test fired: settled before it was made
        target, weights = measurement.target, None
        value: Any
        if isinstance(question, BoundMarginal):
            self._table = True
            value = question.table(measurement.values)
        else:
            value, weights = derived(question, measurement)
            if isinstance(target, Partition) or (plan.first_tables is not None and not plan.certified):
                agreeing = AGREEING * measurement.scale * float(np.linalg.norm(weights))
                tested = self._value(question, record.guess)
                with contextlib.suppress(Exception):  # paid and recorded: not lost with a failing hypothesis
                    fitted = float(learned.hypothesis.evaluate(question))
                    if abs(tested - value) <= agreeing and abs(fitted - value) <= agreeing:  # never with NaN
                        value, moved = fitted, abs(fitted - value)

        def radius(beta: float, answers: int) -> float:
            if weights is not None and isinstance(target, Partition):
                return sparse.sum_radius(target, weights, beta / answers)
            return sparse.hard_radius(target, beta, answers, tests=self._plan.max_queries)

        # of all hits: each may fail with 1/m of what all may; cheap ones can be many, so m has its price
        sharing = max(2, math.ceil(self._payable / sparse.price(target).amount))
        beta, known = self._plan.tested_beta, self._known(question, value)
        self._worst = max(self._worst, min(known, moved + radius(ALL_HARD * beta, sharing)))
        return self._released(question, "hard", value, min(known, moved + radius(EASY_OR_HARD * beta, 1)))

    def _known(self, question: Question, value: Any) -> float:
        """Return what the noise of the first tables leaves as a bound, for their family at once, or inf.

        The truth lies in a bracket around their estimate, whatever was tested, fitted or bought since.
        """
        known = self._estimates_now()
        if known is None:
            return math.inf
        if isinstance(question, BoundMarginal):
            found: Any = known.table_brackets(question)
        else:
            found = known.bracket(question)
        if found is None:
            return math.inf
        low, high = found
        return max(0.0, float(np.max(value - low)), float(np.max(high - value)))

    def _estimates_now(self) -> Estimates | None:
        """Return what the first tables say, once they are taken in."""
        if self._estimates is None and self._design is not None and self._taken.first:
            values = [bought.values for bought in self._taken.first]
            self._estimates = Estimates(self._design, values, self._n, KNOWN * self._plan.beta)
        return self._estimates

    def error_bound(self) -> float:
        """Return the bound on all tested answers at once, or inf where none is proven.

        So it is once more than max_queries were asked, or a certified session has measured a table.
        """
        if sum(self.counts.values()) > self._plan.max_queries or (self._plan.certified and self._table):
            return math.inf
        begun = self._design is not None and self._taken.easy + self._taken.hard > 0
        easy = self._worst_easy if begun else max(self._plan.error_bound, self._worst_easy)
        # numbers err by less than a certificate's bound, but not by less than its first tables leave of it
        bound = easy if self.certified and not begun else max(easy, self._worst)
        return min(bound + self._rounding, self._trivial)

    def used_up(self) -> str:
        """Say that no hard answer is left."""
        ledger = self._ledger
        return (
            "the next hard answer must be paid, got a budget of which "
            f"{float(ledger.spent / ledger.account.capacity):.1%} is used up, by {self._taken.hard} hard "
            "answers and what was bought at the start; open a session with a larger budget, or "
            "exhausted='untested'."
        )

    def _value(self, question: Question, guess: Guess) -> Any:
        """Return tested integers as an answer: the fraction, or the table."""
        if isinstance(question, BoundMarginal):
            return question.table(np.array(guess) / self._n)
        tested = guess if isinstance(guess, int) else 0  # a query has one
        return tested / (self._n << question.grid_bits)

    def _released(self, question: Question, status: Status, value: Any, bound: float) -> Answer:
        """Return and remember what a record released, under the belief that was tested."""
        in_theorem = self._plan.textbook and sum(self.counts.values()) < self._plan.max_queries
        wide = self._plan.error_bound if in_theorem and isinstance(question, Query) else bound
        answer = self._answer(question, value, status, _cut(value, wide + question.rounding))
        self._memory.remember(question, answer, self.belief.version)
        self._rounding = max(self._rounding, question.rounding)
        self._trivial = max(self._trivial, _cut(value, math.inf))
        return answer

    def _answer(self, question: Question, value: Any, status: Status, bound: float) -> Answer:
        known = self._estimates_now()
        point = known.point(question) if known is not None and isinstance(question, Query) else None
        estimate, error = (None, None) if point is None else point
        return Answer(value, self._n * value, status, bound, self._private, estimate, error)


def _easy_radii(plan: Plan, sparse: NumericSparse) -> tuple[float, float]:
    """Return the radius of one easy answer, and of it among all of them at once."""
    if plan.next_share is None:
        return sparse.easy_radius(EASY_OR_HARD * plan.tested_beta), plan.error_bound
    # Hits depend on a kept threshold, and choose the scales of later tests: what is left is that its own
    # noise is that large, which fails all tests at once, whatever their scales.
    one, tests = (1, plan.max_queries) if sparse.start_charge() is None else (MOST_TESTS, MOST_TESTS)
    return (
        sparse.easy_radius(EASY_OR_HARD * plan.tested_beta, one),
        sparse.easy_radius(ALL_EASY * plan.tested_beta, tests),
    )


def _cut(value: Any, bound: float) -> float:
    """Return the bound, or the distance to the far end of [0, 1] where that is less."""
    if isinstance(value, np.ndarray):
        return min(bound, max(float(value.max()), 1.0 - float(value.min())))
    return float(min(bound, max(value, 1.0 - value)))
