"""What a session hands out: a fold over its record.

Proof: docs/theory/accuracy.md, 6.0, 6.2; docs/theory/hypothesis.md, 6.7; docs/theory/ledger-and-restarts.md,
5.4; docs/theory/session.md, 4.1, 4.9a, 4.9b, 4.9c;
docs/theory/within.md, 14.1, 14.3, 14.5.
"""

import contextlib
import copy
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Charge
from onlineic.domain.domain import Domain
from onlineic.errors import InternalError, SessionExhaustedError
from onlineic.hypothesis.base import batch_guesses, block_guesses, grid_guess, grid_guesses
from onlineic.hypothesis.histogram import Histogram
from onlineic.interactions.predictor import Predictor
from onlineic.known_noise.estimates import Family
from onlineic.known_noise.instalments import Instalments
from onlineic.ledger.records import (
    IN_ORDER,
    Bought,
    BoughtTables,
    Certified,
    Closed,
    Easy,
    EasyBatch,
    Forfeited,
    Hard,
    Ledger,
    Record,
    Resumed,
    Single,
    UpdateFailed,
    measured,
)
from onlineic.ledger.transcript import Transcript
from onlineic.plan.plan import Plan
from onlineic.plan.purchase import Purchase
from onlineic.plan.singles import Singles
from onlineic.plan.spending import Spent, hits_left
from onlineic.plan.within import tester_within
from onlineic.queries.answers import Answer, Reason, Stated, Status
from onlineic.queries.batch import Queries
from onlineic.queries.counted import Counted
from onlineic.queries.marginals import BoundMarginal, Guess, Question
from onlineic.queries.memory import AnswerMemory, Recalled, Remembered
from onlineic.queries.partitions import AxisSets, Measurement, Partition, derived, sets_of
from onlineic.queries.query import Query
from onlineic.queries.within import Within
from onlineic.questions.linear import Estimate
from onlineic.session.belief import Belief
from onlineic.session.bounds import Bounds, stated_value
from onlineic.session.checkpoints import Checkpoints
from onlineic.session.columns import (
    BOUGHT,
    COVERED,
    Answers,
    Columns,
    SessionContext,
    Worked,
    cut,
    stated,
    stated_again,
)
from onlineic.session.expected import Expectations, Measured, tested
from onlineic.session.notices import Notices
from onlineic.session.quota import paid_after

FIRST = 256  # answers that a summary looks at: it takes no longer the more was asked
CHUNK = 64  # records that are looked at together for the latest answers


@final
@attrs.define(eq=False)  # never written to; frozen it would take three times as long to make, once an answer
class State:
    """What the leading records say of what comes next: replaced as a whole, so that an interrupt loses none.

    Attributes:
        belief: What they have taught.
        heard: (how many, what the purchase rule makes of so many): fewer where it has failed on the next one.
        spent: By it the mechanism and the price of the next test are settled.
        records, easy, hard: Of them; answers among them.
        instalments, bought: Releases of tables among them, and what these cost.
        alone: What numbers and tables that were bought by themselves cost.
        singles: What was bought by itself.
        held: Sets of attributes of which a table was released.
        paid: What each quota has paid, by its name.
        lost: The most easy answers that killed processes gave, and no record holds.
    """

    belief: Belief
    heard: tuple[int, Any]
    spent: Spent
    records: int = 0
    easy: int = 0
    hard: int = 0
    instalments: int = 0
    bought: Fraction = Fraction(0)
    alone: Fraction = Fraction(0)
    singles: Singles = attrs.field(factory=Singles)
    held: AxisSets = frozenset()
    paid: Mapping[str, Fraction] = attrs.field(factory=dict)
    lost: int = 0


@final
class AnswerBook:
    """The public half of a session: takes in its records one by one; learns, answers, counts and remembers.

    A record is taken as a whole or not at all: after an interrupt or a failure anywhere `take` goes on with
    the same one, and what it then makes of it is the same. It is the one fold: prices, purchases and quotas
    go by its `state`.

    Args:
        belief: Before the first record.
        private: Stamped on every answer.
        persons: How many persons n parts are: by them answers count. None: n.
        raises: Whether a question that cannot be paid raises an error; else it is answered untested.
        counted: What is known of the number of persons, or records, where it is private.
        of_what: What answers count: "records" or "persons".

    Attributes:
        state: After the records taken so far.
    """

    __slots__ = (
        "_bounds",
        "_burned",
        "_checkpoints",
        "_context",
        "_counted",
        "_domain",
        "_expectations",
        "_heard",
        "_lost",
        "_memory",
        "_n",
        "_notices",
        "_of_what",
        "_persons",
        "_private",
        "_spending",
        "_untaken",
        "_wishes",
        "ledger",
        "plan",
        "raises",
        "state",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        domain: Domain,
        n: int,
        ledger: Ledger,
        belief: Belief,
        private: bool,
        persons: int | None = None,
        raises: bool = False,
        counted: Counted | None = None,
        of_what: str = "records",
    ) -> None:
        self.plan, self._domain, self._n, self._counted = plan, domain, n, counted
        self._persons, self.raises = n if persons is None else persons, raises
        self._of_what = of_what
        self.ledger, self._private, self._spending = ledger, private, plan.spending
        self.state = State(belief, (0, plan.purchases.start()), plan.spending.unspent)
        self._untaken: dict[Status, int] = {"easy": 0, "repeat": 0, "untested": 0}  # answers without a record
        self._memory = AnswerMemory(lasting=not plan.textbook)
        self._heard = AnswerMemory(lasting=True)  # questions that tables were bought for
        self._wishes: dict[Any, Within] = {}  # by key: for which an answer was measured, if for one
        self._expectations = Expectations.begun(plan, domain, counted)
        self._bounds, self._notices = Bounds(plan, n, ledger, counted), Notices(plan)
        self._checkpoints = Checkpoints(ledger, plan.update, plan.alpha)
        self._burned = False  # in this process: nothing is tested any more
        self._lost = False  # whether a test that failed has used up what was certified
        self._context: tuple[int, SessionContext] | None = None  # at a version of what is spent

    @property
    def belief(self) -> Belief:
        """What the records taken so far have taught."""
        return self.state.belief

    @property
    def heard(self) -> Any:
        """The state of the purchase rule; raises what the rule raises."""
        count, heard = self.state.heard
        if count < self.state.records:  # where it has failed it is asked again
            for record in self.ledger.records(count, self.state.records):
                heard = self.plan.purchases.heard(heard, record)
        return heard

    @property
    def _stands(self) -> int:
        """The version of what an answer is told by: of the hypothesis in textbook mode, else of purchases.

        The book tells an answer again only while the hypothesis is the same.
        """
        return self.state.belief.version if self.plan.textbook else self.state.instalments

    @property
    def slack(self) -> float:
        """How far n may be from the number of records, fraction of n: 0 where n is public."""
        return self._bounds.slack

    @property
    def pending(self) -> bool:
        """Whether the ledger holds records that were not taken in."""
        return self.state.records < len(self.ledger)

    @property
    def counts(self) -> dict[Status, int]:
        """Answers by status."""
        easy = self.state.easy + self._untaken["easy"]
        return {**self._untaken, "easy": easy, "hard": self.state.hard}

    @property
    def certified(self) -> bool:
        """Whether T(alpha) still bounds the hard answers: of single queries, learned from one by one."""
        planned = self.state.spent.restarts <= self.plan.restarts
        kept = planned and not self._bounds.tables and not self._lost
        return self.plan.certified and kept and not self.belief.failures

    @property
    def family(self) -> Family | None:
        """The queries that the noise of the first tables bounds all at once, in one event a family."""
        return self._bounds.family

    @property
    def estimates(self) -> Instalments | None:
        """What the noise of tables bounds."""
        return self._bounds.estimates

    def frozen(self, ledger: Ledger) -> "AnswerBook":
        """Return a copy that goes on saying what this book says now, whatever is recorded later."""
        other = copy.copy(self)
        other.ledger, other._bounds = ledger, self._bounds.frozen(ledger)
        other._memory, other._untaken = self._memory.copy(), dict(self._untaken)
        other._heard, other._expectations = self._heard.copy(), self._expectations.frozen()
        other._wishes = dict(self._wishes)
        if isinstance(
            hypothesis := self.belief.hypothesis, Histogram
        ):  # the next update takes over its array
            belief = attrs.evolve(self.belief, hypothesis=copy.copy(hypothesis))  # repeats its own, if asked
            other.state = attrs.evolve(self.state, belief=belief)
        return other

    # -- the fold --

    def catch_up(self) -> Answer | None:
        """Take in all new records; return the answer of the last one, or None if it holds none."""
        released = None
        while self.state.records < len(self.ledger):
            released = self.take()
        return None if released is None else released[1]

    def answered(self) -> Answer:
        """Take in new records up to the first that holds an answer, and return that answer."""
        while (released := self.take()) is None:
            pass
        return released[1]

    def take(self) -> tuple[Question, Answer] | None:
        """Take in the next record; return its question and answer, or None if it holds no single answer.

        Of a batch the answers are its columns, with the radius that `easy_radius` gave before.
        """
        at = self.state
        record = self.ledger.record(at.records)
        if type(record) is Easy:
            value = stated_value(record.query, record.guess, self._n)
            answer = self._released(record.query, "easy", value, self._bounds.easy(at.spent)[0], at.spent)
            self.state = State(
                at.belief,
                self._heard_after(at, record),
                at.spent,
                at.records + 1,
                at.easy + 1,
                at.hard,
                at.instalments,
                at.bought,
                at.alone,
                at.singles,
                at.held,
                at.paid,
                at.lost,
            )
            return record.query, answer
        heard = self._heard_after(at, record)
        if isinstance(record, EasyBatch):
            queries, values = record.queries, record.guesses / (np.int64(self._n) << record.queries.grid_bits)
            self._memory.remember_many(queries, values, self.easy_radius(), self._stands)
            self._bounds.rounding = max(self._bounds.rounding, queries.rounding)
            self.state = attrs.evolve(at, heard=heard, records=at.records + 1, easy=at.easy + len(record))
            return None
        if isinstance(record, Certified):
            value = stated_value(record.query, record.guess, self._n)
            answer = self._released(record.query, "easy", value, self._radii(record)[0], at.spent)
            self._wishes[record.query.key] = record.within
            self.state = attrs.evolve(at, heard=heard, records=at.records + 1, easy=at.easy + 1)
            return record.query, answer
        if isinstance(record, Closed):
            counted = {"easy": record.constants, "repeat": record.repeats, "untested": record.untested}
            self._untaken = {status: counted[status] for status in self._untaken}
            self._bounds.rounding = max(self._bounds.rounding, record.rounding)
        # a reservation that was forfeited is missing in the hard answers that were certified
        self._lost = self._lost or (isinstance(record, Forfeited) and record.reason not in IN_ORDER)
        later = self.ledger.records(at.records + 1, at.records + 2)
        belief, failed = self._learned(record, isinstance(later[0] if later else None, UpdateFailed))
        if isinstance(record, Hard | Forfeited | Resumed):
            self._burned = isinstance(record, Forfeited) and record.reason != "bought"
        hard = (record.query, self._hard(record, belief)) if isinstance(record, Hard) else None
        tables, singles = measured(record) if isinstance(record, Bought) else (), at.singles
        cost = record.charge.amount if isinstance(record, Bought) else Fraction(0)
        if isinstance(record, Bought) and tables:  # first: what is told from here on rests on them
            self._opened(record, tables, at.instalments, belief.failures == at.belief.failures)
        if isinstance(record, Single):
            singles, answer = self._single(record)
            hard = record.query, answer
        if isinstance(record, Hard | Single):
            self._wishes.pop(record.query.key, None)
            if record.within is not None:
                self._wishes[record.query.key] = record.within
        released = [one.target for one in measured(record) if isinstance(one.target, Partition)]
        self.state = State(
            belief,
            heard,
            self._spending.after(at.spent, record),
            at.records + 1,
            at.easy,
            at.hard + (hard is not None),
            at.instalments + bool(tables),
            at.bought + (0 if isinstance(record, Single) else cost),
            at.alone + (cost if isinstance(record, Single) else 0),
            singles,
            at.held.union(*map(sets_of, released)) if released else at.held,
            paid_after(at.paid, record, self.ledger.paid.get(at.records)),
            self.ledger.lost(at.records + 1),
        )
        if failed:
            self._notices.failed()
        if measured(record):
            self._checkpoints.keep_if_due(at.records + 1, belief)
        return hard

    def _heard_after(self, at: State, record: Record) -> tuple[int, Any]:
        """Return what the purchase rule makes of one more record, which stands also if the rule fails."""
        count, heard = at.heard
        try:
            return (count + 1, self.plan.purchases.heard(heard, record)) if count == at.records else at.heard
        except Exception:
            return at.heard

    def _opened(
        self, record: BoughtTables | Single, tables: tuple[Measurement, ...], before: int, followed: bool
    ) -> None:
        """Take in tables, which a hypothesis that failed has not followed."""
        self._expectations = self._expectations.after(before, tables, followed)
        if self.plan.first_tables is None:  # those that are settled are paid from the start ..
            heard = record.heard if isinstance(record, BoughtTables) else ()
            for question in heard:  # .. and bought whatever is asked
                self._heard.remember(question, 0.0, 0.0, 0)
        if self.plan.first_tables is None and isinstance(record, BoughtTables):
            # what was bought by itself may fail with a share that its charge has of the account, as hits
            self._bounds.pay_tables(self.state.bought + record.charge.amount)
        pure = self.plan.purchases.laplace(record, before, self.plan.sparse.account())
        self._bounds.buy_instalment(before, tables, pure)
        if isinstance(record, BoughtTables) and record.within is not None and record.within.certain:
            for question in record.heard if len(record.heard) > 1 else ():
                self._of_call(question, record.within, before + 1)

    def _of_call(self, question: Question, within: Within, version: int) -> None:
        """Take in what the tables of a call say of one of its questions."""
        found = self._bounds.of_call(question, within) if isinstance(question, Query) else None
        if found is not None:
            value, deviation, radius = found
            self._measured_by(question, Measured(radius, deviation, fitted=False))
            self._memory.remember(question, value, radius, version)
            self._wishes[question.key] = within

    def _measured_by(self, question: Question, number: Measured) -> None:
        """Take in how a question was measured; of what was told of it before, what is expected stays."""
        if self._memory.recall(question, self._stands) is not None:
            self._expectations = self._expectations.frozen()
        self._expectations.numbers[question.key] = number

    def _learned(self, record: Record, known: bool) -> tuple[Belief, bool]:
        """Return the belief after a record, and whether its update failed now (`known`: did before)."""
        belief, released = self.state.belief, measured(record)
        if not released:
            return belief, False
        if known:
            return belief.unmoved(released), False
        if self.state.records < self._checkpoints.restoring:  # what it taught is made once for all
            return belief.after(released), False
        try:
            return belief.learned(released, self.plan.update, self.plan.alpha), False
        except Exception as error:  # paid and public already: the answer stands, the old hypothesis is kept
            self.ledger.commit([UpdateFailed(type(error).__name__)])
            return belief.unmoved(released), True

    def _hard(self, record: Hard, learned: Belief) -> Answer:
        """Return a measured number or table, or what a rule that fits all measurements has learned of it.

        What is hard by the noise of its test alone is often measured with more noise than the hypothesis,
        fitted to all tables, errs by. So a number, or cell, is what was learned wherever that lies within the
        noise of what was measured. The bound grows by the distance from what was measured; both are public.
        What another process has told is not worked out again: its rules may have been others.
        """
        question, measurement = record.query, record.measurement
        place, spent = self.state.records, self.state.spent
        self._checkpoints.hard_at(place)
        target, weights = measurement.target, None
        released: Any
        if isinstance(question, BoundMarginal):
            self._bounds.tables = True
            released = question.table(measurement.values)
        else:
            released, weights = derived(question, measurement)
        value = released
        # of a wish the number itself is told, whose bound was settled before it was drawn
        if fits := record.within is None and self._bounds.is_fitted(target):
            within = self._bounds.measured_together(target, weights, spent)
            with contextlib.suppress(Exception):  # paid and recorded: not lost with a failing hypothesis
                fitted = self._checkpoints.learned_of(place, question, learned, self._n)
                value = np.where(np.abs(fitted - released) <= within, fitted, released)  # never NaN
                value = value if isinstance(question, BoundMarginal) else float(value)
        value = self._checkpoints.told(place, value, fits)
        apart = float(np.abs(value - released).max())
        if record.within is None:
            radius = self._bounds.hard(question, target, weights, value, apart, spent)
        else:
            self._bounds.single(question, measurement, record.charge, value, apart)  # of all at once
            radius = self._radii(record)[1]
        spread = 1.0 if weights is None else float(np.linalg.norm(weights))
        number = Measured(radius, spread * measurement.scale, fitted=apart > 0.0)
        self._measured_by(question, number)
        # what is left is told with this hit
        after = self._spending.after(spent, record)
        return self._released(question, "hard", value, radius, after, number, charge=record.charge)

    def _radii(self, record: Certified | Hard) -> tuple[float, float]:
        """Return the radii of an easy and a measured answer of a test that was made for a wish."""
        query, within = record.query, record.within
        if isinstance(query, Query) and within is not None:
            tester = tester_within(self.plan.sparse, query, within, self.plan.tested_beta)
            if tester is not None:
                return self._bounds.certified(tester, query, within)
        raise InternalError("a test that was made for a wish must have a height.")

    def _single(self, record: Single) -> tuple[Singles, Answer]:
        """Return what is known of numbers with this one, and the answer that it is."""
        question, measurement, at = record.query, record.measurement, self.state
        if isinstance(question, BoundMarginal):
            released: Any = question.table(measurement.values)
            self._bounds.tables = True
        else:
            released = float(measurement.values[0])
        said = stated_value(question, record.guess, self._n)
        predicted, singles = self._expectations.in_the_mean(question, at.instalments), at.singles
        taken: Any = 1.0  # where nothing is predicted, what was said counts for nothing
        if predicted is not None:
            singles = singles.after(released - said, measurement.scale, predicted)
            taken = singles.taken(measurement.scale, predicted)
        # on the grid of what was said: counts of records are whole
        unit = self._n << (question.grid_bits if isinstance(question, Query) else 0)
        value = np.round((said + taken * (released - said)) * unit) / unit
        if record.within is not None and record.within.certain:
            taken, value = 1.0, released  # the bound is of the number itself
        value = value if isinstance(question, BoundMarginal) else float(value)
        value = self._checkpoints.told(at.records, value, True)
        apart = float(np.abs(value - released).max())
        radius = self._bounds.single(question, measurement, record.charge, value, apart, record.within)
        number = Measured(radius, measurement.scale * np.sqrt(taken), fitted=False)
        self._measured_by(question, number)
        spent = self._spending.after(at.spent, record)
        told = self._released(question, "hard", value, radius, spent, number, "bought", record.charge)
        return singles, told

    def _released(
        self,
        question: Question,
        status: Status,
        value: Any,
        radius: float,
        spent: Spent,
        number: Measured | None = None,
        reason: Reason | None = None,
        charge: Charge | None = None,
    ) -> Answer:
        """Return and remember what a record released, under the belief that was tested."""
        in_theorem = self.plan.textbook and self.left_in_theorem and isinstance(question, Query)
        wide = self.plan.error_bound if in_theorem else radius
        self._memory.remember(question, value, wide, self._stands)
        self._bounds.state(question, value, inside=status == "easy")
        rest = wide if number is None else attrs.evolve(number, radius=wide)
        context, reason = self._context_at(spent), reason or self._reason(question, status)
        cost = 0.0 if charge is None else self._part_of(charge)
        return Answer.deferred(value, status, context, rest, question, reason, cost)

    def _part_of(self, charge: Charge) -> float:
        """Return which part of the budget a charge is."""
        return float(charge.amount / self.ledger.account.capacity)

    def _reason(self, question: Question, status: Status) -> Reason:
        """Return why a record says what it says of a question."""
        if status == "hard":
            return "test"
        return "covered" if self._heard.recall(question, 0) is None else "bought"

    def reasons(self, queries: Queries) -> Any:
        """Return the reason of each answer, should its test be easy: places in `REASONS`, (m,)."""
        return np.where(self._heard.recall_many(queries, 0).known, BOUGHT, COVERED)

    # -- what is expected --

    @property
    def predictor(self) -> Predictor | None:
        """Predicts errors from what was released; None if the update rule does not fit all releases."""
        return self._expectations.predictor

    def expected(self, question: Question, predictor: Predictor, payable: bool) -> float:
        """Return the error expected of an answer: of what was told, and will be told again, or by this.

        Args:
            payable: Whether it will be tested; the test is taken to be easy.
        """
        if question.constant is not None:
            return predictor.error(question)
        error = self._expected_again(question)
        if error is not None:
            return float(np.max(error))
        new = self._memory.recall(question, self._stands) is None
        if not new:
            return 1.0
        return float(tested(predictor.error(question), self.easy_radius() if payable else math.inf))

    def _expected_again(self, question: Question) -> Any:
        """Return the error expected of what was told of a question, None where nothing was, or is known."""
        known = self._memory.recall(question, self._stands)
        return None if known is None else self._expectations.again(question, known.again(question)[0], known)

    def expected_of_told(self) -> float | None:
        """Return the root-mean-square error expected of the first answers; None where one is unknown."""
        asked: list[Question] = []
        for record in self.ledger.merged(0, self.state.records):
            if isinstance(record, EasyBatch | Easy | Certified | Hard | Single):
                held = record.queries if isinstance(record, EasyBatch) else (record.query,)
                asked.extend(itertools.islice(held, FIRST - len(asked)))
            if len(asked) == FIRST:
                break
        found = [self._expected_again(question) for question in asked]
        if not found or any(error is None for error in found):
            return None
        return math.sqrt(math.fsum(float(np.mean(np.square(error))) for error in found) / len(found))

    # -- what was told --

    def told(self, question: Question) -> Answer | None:
        """Return the earlier answer of a question, as a repeat, or None if there is none."""
        known = self._memory.recall(question, self._stands)
        return None if known is None else self._repeated(question, known)

    def _repeated(
        self, question: Question, known: Remembered, status: Status = "repeat", reason: Reason = "known"
    ) -> Answer:
        """Return an answer that stands, stated now."""
        value, _ = known.again(question)
        said = stated_again(
            self.estimates, question, value, known.question, known.value, known.radius, self._bounds.slack
        )
        return self._stating(question, value, status, said, reason, known)

    def snapshot(self, questions: Sequence[Question], answers: Sequence[Answer]) -> list[Answer]:
        """Return these answers with the values of the present hypothesis; measured and untested ones stay."""
        result, measured_ones = [*answers], self._expectations.numbers
        places = [
            place
            for place, (question, answer) in enumerate(zip(questions, answers, strict=True))
            if isinstance(question, Query) and question.constant is None
            and answer.status in ("easy", "repeat") and question.key not in measured_ones
            and not isinstance(answer.value, np.ndarray)  # who gives it back may give anything
        ]  # fmt: skip
        if self._expectations.predictor is None:
            return result
        guesses = self.guesses([questions[place] for place in places]) if places else []
        for place, guess in zip(places, guesses, strict=True):
            question, told = questions[place], answers[place]
            value = stated_value(question, guess, self._n)
            if value == told.value:
                continue
            known = self._bounds.known(question, value) + question.rounding
            bound = cut(value, min(told.error_bound + abs(value - told.value), known), self._bounds.slack)
            said = Stated(bound, told.estimate, told.standard_error, told.law)
            result[place] = self._stating(question, value, "untested", said, None)
        return result

    # -- answers without a test --

    def remembers(self, question: Question) -> bool:
        """Return whether a question needs no test: it is a constant, or its answer stands."""
        return question.constant is not None or self._memory.recall(question, self._stands) is not None

    def recalled(self, question: Question, within: Within | None = None) -> Answer | None:
        """Return the answer of a question that needs no test, or None: a constant or a repeat in a wish."""
        if question.constant is not None:
            value = question.constant / (1 << question.grid_bits)
            return self._without_test(question, value, "easy", 0.0, "known")
        if within is not None and not self._told_within(question, within):
            return None
        known = self._memory.recall(question, self._stands)
        if known is None:
            return None
        return self._without_test(question, known.again(question)[0], "repeat", known, "known")

    def said(self, question: Question) -> float:
        """Return what the hypothesis says of a query now."""
        if question.constant is not None:
            return float(question.constant / (1 << question.grid_bits))
        return float(np.max(stated_value(question, self.guesses([question])[0], self._n)))

    def meets(self, question: Question, within: Within) -> bool:
        """Return whether what was released answers a question as exactly as is wished."""
        return (
            question.constant is not None
            or self._told_within(question, within)
            or self._known_within(question, within)
        )

    def _told_within(self, question: Question, within: Within) -> bool:
        """Return whether an answer that stands meets a wish, by a bound that fails with no larger part."""
        told, made = self.told(question), self._wishes.get(question.key)
        if told is None or within.parts > (1 if made is None else made.parts):
            return False
        if within.certain:
            return within.meets(told.error_bound, None)
        # a number that lay far off is expected to err more than was predicted: its wish is paid all the same
        alike = made is not None and not made.certain and made.radius <= within.radius
        known = self._memory.recall(question, self._stands)
        return alike or within.meets(math.inf, self._expectations.wished(question, told.value, known))

    def _known_within(self, question: Question, within: Within) -> bool:
        value = stated_value(question, self.guesses([question])[0], self._n)
        if within.certain:
            bound = stated(self.estimates, question, value, math.inf, self._bounds.slack).error_bound
            return within.meets(bound, None)
        return within.meets(math.inf, self._expectations.wished(question, value))

    def within(self, question: Question, within: Within) -> Answer | None:
        """Return an answer that meets a wish by what was released, or None."""
        if question.constant is not None or self._told_within(question, within):
            return self.recalled(question)
        if not self._known_within(question, within):
            return None
        value = stated_value(question, self.guesses([question])[0], self._n)
        rest: float | Measured = math.inf
        if not within.certain:  # it says what its wish was met by
            rest = Measured(math.inf, self._expectations.wished(question, value), fitted=False)
        return self._without_test(question, value, "untested", rest, "within")

    def wide(self, question: Question) -> Answer:
        """Return the answer that stands, else the hypothesis's, where a wish cannot be paid.

        Raises:
            SessionExhaustedError: Where nothing is answered that way.
        """
        if self.raises:
            raise SessionExhaustedError(self.used_up())
        if (known := self._memory.recall(question, self._stands)) is not None:  # what was paid is not lost
            return self._without_test(question, known.again(question)[0], "repeat", known, "budget")
        value = stated_value(question, self.guesses([question])[0], self._n)
        return self._without_test(question, value, "untested", math.inf, "budget")

    def untested(self, question: Question) -> Answer:
        """Return the hypothesis's answer, bounded by the first tables alone.

        Raises:
            SessionExhaustedError: Where nothing is answered without a test.
        """
        if self.raises:
            raise SessionExhaustedError(self.used_up())
        value = stated_value(question, self.guesses([question])[0], self._n)
        return self._without_test(question, value, "untested", math.inf)

    def _without_test(
        self, question: Question, value: Any, status: Status, rest: Any, reason: Reason | None = None
    ) -> Answer:
        if status != "untested":
            self._bounds.rounding = max(self._bounds.rounding, question.rounding)
        self._untaken[status] += 1
        return Answer.deferred(value, status, self.context, rest, question, reason)

    def recalled_many(self, queries: Queries) -> Recalled:
        """Return what is remembered of a batch."""
        return self._memory.recall_many(queries, self._stands)

    def count_untaken(self, counts: Mapping[Status, int], rounding: float) -> None:
        """Count answers of a batch that no record tells of, and the largest rounding of the known ones."""
        for status, count in counts.items():
            self._untaken[status] += count
        self._bounds.rounding = max(self._bounds.rounding, rounding)

    def guesses(self, questions: Sequence[Question]) -> Sequence[Guess]:
        """Return the public integers of a query, or of a cross table, that is tested or released."""
        hypothesis, first = self.state.belief.hypothesis, questions[0]
        if type(first) is Query and len(questions) == 1:
            return [grid_guess(hypothesis, first, self._n)]
        if isinstance(first, BoundMarginal):
            return [block_guesses(hypothesis, first.partition, self._n)]
        return grid_guesses(hypothesis, [query for query in questions if type(query) is Query], self._n)

    def guesses_many(self, queries: Queries) -> Ints:
        """Return the public integers of a batch, (m,)."""
        return batch_guesses(self.belief.hypothesis, queries, self._n)

    def answers(self, queries: Queries, columns: Columns) -> Answers:
        """Return answers of the session to all of these."""
        return Answers.of(queries, columns, self.context)

    @property
    def context(self) -> SessionContext:
        """What an answer that is given now rests on: the same object until something is released."""
        return self._context_at(self.state.spent)

    def _context_at(self, spent: Spent) -> SessionContext:
        held = self._context
        if held is not None and held[0] == spent.version:
            return held[1]
        whole, owed = self.plan.partitions is not None, Fraction(0)
        if not self.plan.purchases.ended:
            owed = max(owed, self._spending.bought - self.state.bought - self.state.alone)
            first = None if self.state.instalments else self.plan.first_tables
            left = self._spending.sparse.account().capacity - spent.amount
            if first is not None and first.charge.amount > left:
                owed = Fraction(0)  # it was forfeited, and is not bought
        hits = int if self._burned else partial(hits_left, self._spending, self._domain, whole, spent, owed)
        context = SessionContext(
            self._persons,
            self._private,
            self._bounds.estimates,
            hits,
            self._notices.looked_at,
            self._counted,
            self._of_what,
            self._expectations,
            self.plan.beta + (0.0 if self._counted is None else self._counted.beta),
        )
        self._context = (spent.version, context)
        return context

    def unprojected(self, question: Question) -> Estimate | None:
        """Return the linear estimate of a query from released tables, if there is one."""
        known = self.estimates
        if known is None or not isinstance(question, Query) or question.constant is not None:
            return None
        point, ends = known.point(question), known.bracket(question)
        if point is None or ends is None:
            return None
        value, error, _ = point
        reach = max(0.0, value - ends[0], ends[1] - value) + question.rounding
        return Estimate(value, error, reach)

    # -- bounds --

    def easy_radius(self) -> float:
        """Return the radius of the next easy answer: settled by the record before its test."""
        return self.plan.error_bound if self.left_in_theorem else self._bounds.easy(self.state.spent)[0]

    @property
    def left_in_theorem(self) -> int:
        """How many more answers the theorem's bound is stated for, in textbook mode; else 0."""
        return max(0, self.plan.max_queries - self._told()) if self.plan.textbook else 0

    def _told(self) -> int:
        """Return how many answers were tested, those counted that a killed process may have lost.

        What was known already, or answered without a test, has no noise of its own that a bound could miss.
        """
        return self.state.easy + self.state.hard + self.state.lost

    def radius_alone(self, bought: Purchase) -> float:
        """Return the radius that a single purchase would have, by its noise."""
        (target,), (deviation,) = bought.targets, bought.deviations(self.plan.sparse.n)
        blocks = target.blocks if isinstance(target, Partition) else 1
        return self._bounds.of_noise(deviation, blocks, self.plan.tested_beta)

    def warn_if_more(self) -> None:
        """Say once that more was asked than announced: after the answers, which nothing may stop."""
        at = self.state
        if at.easy + at.hard + at.lost > self.plan.max_queries:
            self._notices.asked()

    def error_bound(self) -> float:
        """Return the bound on all tested answers at once, or inf where none is proven.

        So it is once more than max_queries were asked, those counted that a killed process may have lost, or
        a certified session has measured a table.
        """
        at = self.state
        if self._told() > self.plan.max_queries or (self.plan.certified and self._bounds.tables):
            return math.inf
        begun = at.easy + at.hard > 0
        return self._bounds.together(at.records, at.spent, begun=begun, certified=self.certified)

    def joint_bounds(self, questions: Sequence[Question], answers: Sequence[Answer]) -> Floats:
        """Return bounds on these answers that hold in the event of `error_bound`, (m,)."""
        lost = self.state.lost > 0
        return self._bounds.of_each(questions, answers, self.error_bound(), lost)

    def preview(self, question: Question, target: Query | Partition) -> tuple[Answer, float, float, bool]:
        """Return (answer, bound if hard, joint bound, whether it is known) of a question that is not asked.

        The answer is what it would be if its test turned out easy. Nothing is counted or remembered.

        Args:
            target: What a hit would release.
        """
        if question.constant is not None:
            value = question.constant / (1 << question.grid_bits)
            bound = stated(None, question, value, 0.0, self._bounds.slack).error_bound
            answer = self._stating(question, value, "easy", Stated(bound), "known")
            return answer, bound, bound, True
        bounds = self._bounds
        known = self._memory.recall(question, self._stands)
        if known is not None:
            answer = self._repeated(question, known)
            return answer, answer.error_bound, self.joint_bounds([question], [answer])[0], True
        value = stated_value(question, self.guesses([question])[0], self._n)
        in_theorem = self.left_in_theorem and isinstance(question, Query)
        easy, jointly = bounds.easy(self.state.spent)
        wide = self.plan.error_bound if in_theorem else easy
        said = stated(self.estimates, question, value, wide, bounds.slack)
        if bounds.awaits_tables:  # they will move the value
            said = said._replace(error_bound=min(1.0 + bounds.slack, wide + question.rounding))
        answer = self._stating(question, value, "easy", said, "covered", wide)
        hard = self.plan.error_bound if in_theorem else bounds.if_hard(question, target, self.state.spent)
        joint = max(self.error_bound(), jointly + question.rounding)
        joint = min(joint, bounds.known(question, value) + question.rounding)
        # the hypothesis lies in [0, 1], and the count over n in [0, 1 + slack]; a measured number anywhere
        return answer, hard + question.rounding, min(joint, 1.0 + bounds.slack), False

    def unpaid(self, question: Question) -> Answer:
        """Return the answer that a question gets without a test; nothing is counted."""
        value = stated_value(question, self.guesses([question])[0], self._n)
        said = stated(self.estimates, question, value, math.inf, self._bounds.slack)
        return self._stating(question, value, "untested", said, None)

    # -- what was told, and what is kept --

    def released(self, start: int, stop: int) -> list[tuple[int, Answer]]:
        """Return (place, answer) of each answer in these records that still stands, oldest first."""
        found = []
        for place, record in enumerate(self.ledger.records(start, min(stop, self.state.records)), start):
            for one in record if isinstance(record, EasyBatch) else (record,):
                answer = self._again(one, place)
                if answer is not None:
                    found.append((place, answer))
        return found

    def latest(self, count: int) -> tuple[Answer, ...]:
        """Return up to `count` of the latest tested answers that still stand, oldest first; nothing is asked.

        How many measured answers were left then is not known.
        """
        found: list[Answer] = []
        stop = self.state.records
        while stop and len(found) < count:
            start = max(0, stop - max(count, CHUNK))
            for place, record in reversed([*enumerate(self.ledger.records(start, stop), start)]):
                part = Transcript((record,))
                answers = (self._again(part[row], place) for row in range(len(part) - 1, -1, -1))
                told = (answer for answer in answers if answer is not None)
                found.extend(itertools.islice(told, count - len(found)))
            stop = start
        return tuple(reversed(found))

    def _again(self, record: Record, place: int) -> Answer | None:
        """Return the answer that the record at this place released, if it still stands."""
        if not isinstance(record, Easy | Certified | Hard | Single):
            return None
        query = record.query
        known = self._memory.recall(query, self._stands)
        if known is None:
            return None
        status: Status = "hard" if isinstance(record, Hard | Single) else "easy"
        reason: Reason = "bought" if isinstance(record, Single) else self._reason(query, status)
        told = self._repeated(query, known, status, reason)
        return told.costing(self._part_of(record.charge)) if isinstance(record, Hard | Single) else told

    def _stating(
        self,
        question: Question,
        value: Any,
        status: Status,
        said: Stated,
        reason: Reason | None,
        rest: float | Remembered = math.inf,
    ) -> Answer:
        """Return an answer of which all is known now, but for what was left then.

        Args:
            rest: What was remembered of it, where it was told before; else the radius of its test.
        """
        return Answer.deferred(value, status, Worked(self.context), (said, rest), question, reason)

    def used_up(self) -> str:
        """Say that no hard answer is left."""
        ledger = self.ledger
        return (
            "the next hard answer must be paid, got a budget of which "
            f"{float(ledger.spent / ledger.account.capacity):.1%} is used up, by {self.state.hard} hard "
            "answers and what was bought at the start; open a session with a larger budget, or "
            "exhausted='untested'."
        )

    def restore(self) -> None:
        """Take in the records that a checkpoint covers, without repeating their updates."""
        start, known = self.belief, self._checkpoints.begin()
        if not known:
            return
        while self.state.records < known:
            self.take()
        self.state = attrs.evolve(self.state, belief=self._checkpoints.end(start))

    def keep_checkpoint(self) -> None:
        """Let the ledger keep what follows from the records so far, if it outlives the process."""
        self._checkpoints.keep(self.state.records, self.belief)

    @property
    def fitted(self) -> dict[int, float]:
        """By record, what the hypothesis behind a hard answer says of its query, or NaN."""
        return self._checkpoints.fitted

    def parameters(self) -> tuple[Floats, ...] | None:
        """Return the numbers from which the rule rebuilds this hypothesis; None if it repeats updates."""
        return self._checkpoints.parameters(self.belief)

    def closing(self) -> Closed:
        """Return what a clean close records: how many answers have no record of their own."""
        untaken = self._untaken
        return Closed(untaken["easy"], untaken["repeat"], untaken["untested"], self._bounds.rounding)
