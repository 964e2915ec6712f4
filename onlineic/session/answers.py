"""What a session hands out, with the bound that its mechanism proves for it: a fold over its record.

Proof: docs/theory/accuracy.md, 6.0, 6.2, 6.3; docs/theory/certificates.md, 8.2a; docs/theory/hypothesis.md,
6.7; docs/theory/ledger-and-restarts.md, 5.4; docs/theory/session.md, 4.1.
"""

import contextlib
import itertools
import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget
from onlineic.display.plain import strict
from onlineic.display.text import upward
from onlineic.domain.domain import Domain
from onlineic.errors import MoreThanAnnouncedWarning, UpdateFailedWarning, WideBoundWarning
from onlineic.hypothesis.base import batch_guesses, block_guesses, grid_guess, grid_guesses
from onlineic.known_noise.estimates import Estimates, Family, TableDesign
from onlineic.ledger.records import (
    Burned,
    Checkpoint,
    Closed,
    Easy,
    EasyBatch,
    Hard,
    Ledger,
    Opened,
    Record,
    Resumed,
    Told,
    UpdateFailed,
)
from onlineic.ledger.transcript import Transcript
from onlineic.plan.defaults import AGREEING, CHOSEN, SPACING
from onlineic.plan.first_tables import FirstTables
from onlineic.plan.plan import ALL_EASY, ALL_HARD, EASY_OR_HARD, KNOWN, Plan
from onlineic.plan.spending import Spent, hits_left
from onlineic.queries.answers import Answer, Stated, Status
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal, Guess, Question
from onlineic.queries.memory import AnswerMemory, Recalled
from onlineic.queries.partitions import Measurement, Partition, block_weights, derived
from onlineic.queries.query import Query
from onlineic.session.belief import Belief, measured
from onlineic.session.columns import Answers, Columns, Settled, cut, known_bound, stated, stated_again
from onlineic.sparse.base import NumericSparse
from onlineic.updates.base import HasParameters

WIDE = 0.1  # a bound of a tenth of all records, or more, says next to nothing
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # times squares, also every third or tenth, it fills [0, 1) evenly
CHUNK = 64  # records that are looked at together for the latest answers
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
        Hard answers that can at least be paid, of the largest price: as many as at the price of the next.
        Mostly far more can, at falling prices and with more noise: where each costs at most a twentieth of
        what is left, this number stays near 20 until noise ends. Cheaper ones leave more too.
    restarts_left : int or None
        How often the session can be closed and resumed until no hard answer can be paid, if something is
        tested each time: a kept threshold is paid for again, which `hard_left` falls by. None: as often as
        one likes.
    spent : float
        Share of the budget that is used up or reserved, in [0, 1].
    budget : Budget
        As it was given: that of a person with `rows_per_person` rows.
    threshold : float
        Gap at which the next query is hard, before noise; fraction of records.
    alpha : float
        Gap that an update relies on; in textbook mode the theorem's alpha.
    error_bound : float
        Bound on all tested answers at once with probability 1 - beta: where first tables were bought, on
        those given so far, else on all of the stream. inf once more than max_queries were asked (of each
        killed process 256 more, which its ledger file may have lost), or a certified session has measured
        a table. With a ledger file each kept threshold has a part of beta.
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
        The queries that the noise of the first tables bounds all at once, whichever of them are asked, and
        their number: conjunctions, products of sets of labels, of a table of all cells every query.
    rows_per_person : int
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
    restarts_left: int | None = None
    rows_per_person: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return all but the family as plain values, which `json.dumps` takes; None for an infinite bound."""
        told = {one.name: getattr(self, one.name) for one in attrs.fields(type(self)) if one.name != "family"}
        told["budget"] = {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        found: dict[str, Any] = strict(told)
        return found


@final
@attrs.define(eq=False)  # never written to; frozen it would take three times as long to make, once an answer
class _Taken:
    """What was made of the leading records: replaced as a whole, so that an interrupt loses none."""

    belief: Belief
    records: int = 0
    easy: int = 0
    hard: int = 0
    first: tuple[Measurement, ...] = ()  # the first tables
    spent: Spent = attrs.field(factory=Spent)  # settles which mechanism tested what comes next


@final
@attrs.frozen
class _Weighed:
    """The largest bound of an easy answer, all at once, among the leading records."""

    records: int = 0
    spent: Spent = attrs.field(factory=Spent)
    worst: float = 0.0


@final
class AnswerBook:
    """The public half of a session: takes in its records one by one; learns, answers, counts and remembers.

    A record is taken as a whole or not at all: after an interrupt or a failure anywhere `take` goes on with
    the same one, and what it then makes of it is the same.

    Parameters
    ----------
    plan : Plan
    domain : Domain
    n : int
    ledger : Ledger
    belief : Belief
        Before the first record.
    private : bool
        Stamped on every answer.
    """

    __slots__ = (
        "_awaited", "_burned", "_design", "_domain", "_easy_radius", "_estimates", "_fitted", "_kept",
        "_ledger", "_lost", "_memory", "_more", "_n", "_payable", "_plan", "_private", "_radii",
        "_restoring", "_rounding", "_runs", "_seen", "_settled", "_spending", "_table", "_taken",
        "_trivial", "_untaken", "_warned", "_weighed", "_worst",
    )  # fmt: skip

    def __init__(
        self, plan: Plan, domain: Domain, n: int, ledger: Ledger, belief: Belief, private: bool
    ) -> None:
        self._plan = plan
        self._domain = domain
        self._n = n
        self._ledger = ledger
        self._private = private
        self._taken = _Taken(belief, spent=plan.spending.unspent)
        self._untaken: dict[Status, int] = {"easy": 0, "repeat": 0, "untested": 0}  # answers without a record
        self._memory = AnswerMemory(lasting=not plan.textbook)
        self._spending = plan.spending
        self._burned = False  # in this process: nothing is tested any more
        self._settled: tuple[Spent | None, Settled] = (None, Settled(n, private, None, int))
        # only a file outlives its process, and only what is kept for a whole run is drawn again with it
        self._runs = ledger.lasting and plan.sparse.start_charge() is not None
        self._easy_radius = lru_cache(256)(partial(_easy_radii, plan))
        self._radii: tuple[Spent, tuple[float, float]] | None = None  # of the tests at what was spent
        self._payable = plan.sparse.account().capacity  # what all hits together can cost
        self._design: TableDesign | None = None
        self._estimates: Estimates | None = None
        if plan.first_tables is not None:
            self._payable -= plan.first_tables.charge.amount
            self._design = _design(plan.first_tables)
        # largest so far, of any tested answer; taking a record twice does not change them
        self._weighed = _Weighed(spent=plan.spending.unspent)  # of the easy ones: when it is asked for
        self._worst = 0.0  # bound of a hard answer, all at once
        self._rounding = 0.0  # distance of an answered query from the one written
        self._trivial = 1.0  # distance of a value from the far end of [0, 1]
        self._table = False  # whether one was measured
        self._warned = False  # of a wide bound
        self._more = False  # whether it was said that more was asked than announced
        # by axes of queries, or names of a table's attributes: answers that tests alone bound widely
        self._seen: dict[tuple[Any, ...], int] = {}
        self._fitted: dict[int, float] = {}  # by record, what was learned of a hard query: for checkpoints
        self._kept = (0, 0)  # records and updates that checkpoints follow from
        later = plan.later_tables  # what they will cost, until it is known that they are bought, or never
        self._awaited = Fraction(0) if later is None else later.charge.amount
        self._lost = False  # whether a test that failed has used up what was certified
        self._restoring = 0  # records whose updates a checkpoint makes needless

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
        planned = self._taken.spent.restarts <= (self._plan.restarts or 0)
        kept = planned and not self._table and not self._lost
        return self._plan.certified and kept and not self.belief.failures

    @property
    def family(self) -> Family | None:
        """The queries that the noise of the first tables bounds all at once, in one event a family."""
        return None if self._design is None else self._design.family

    def catch_up(self) -> None:
        """Take in what an interrupted call, or the opening, left in the ledger: post-processing."""
        while self._taken.records < len(self._ledger):
            self.take()

    def take(self) -> tuple[Question, Answer] | None:
        """Take in the next record, and return the question and answer that it is, if it is one.

        Of a batch the answers are its columns, with the radius that `easy_radius` gave before.
        """
        at = self._taken
        record = self._ledger.record(at.records)
        if type(record) is Easy:
            answer = self._easy(record.query, record.guess)
            self._taken = _Taken(at.belief, at.records + 1, at.easy + 1, at.hard, at.first, at.spent)
            return record.query, answer
        if isinstance(record, EasyBatch):
            self._easy_batch(record)
            easy = at.easy + len(record)
            self._taken = _Taken(at.belief, at.records + 1, easy, at.hard, at.first, at.spent)
            return None
        if isinstance(record, Closed):
            counted = {"easy": record.constants, "repeat": record.repeats, "untested": record.untested}
            self._untaken = {status: counted[status] for status in self._untaken}
            self._rounding = max(self._rounding, record.rounding)
        # a reservation that was burned is missing in the hard answers that were certified
        self._lost = self._lost or (isinstance(record, Burned) and record.reason != "closed")
        later = self._ledger.records(at.records + 1, at.records + 2)
        belief, failed = self._learned(record, isinstance(later[0] if later else None, UpdateFailed))
        if isinstance(record, Hard | Burned | Resumed):
            self._burned = isinstance(record, Burned)
        hard = (record.query, self._hard(record, belief)) if isinstance(record, Hard) else None
        # what is bought later is bought because of the noise of the first: it must not enter (theory 6.7)
        first = at.first
        if isinstance(record, Opened) and first:
            self._awaited = Fraction(0)
        elif isinstance(record, Opened):
            first = record.measurements
            bought = self._plan.opening_of(record)
            if bought is not None and bought is not self._plan.first_tables:
                self._design, self._awaited = _design(bought), Fraction(0)
        self._taken = _Taken(
            belief,
            at.records + 1,
            at.easy,
            at.hard + (hard is not None),
            first,
            self._spending.after(at.spent, record),
        )
        if failed:
            with contextlib.suppress(UpdateFailedWarning):  # not even as an error may it stop the answer
                warnings.warn(
                    f"{type(self._plan.update).__name__} failed on a release; the old hypothesis is kept.",
                    UpdateFailedWarning,
                    stacklevel=2,
                )
        if measured(record):
            self._keep()
        if hard is not None and not self._warned:
            self._warn_if_wide(hard[1].error_bound)
        return hard

    def answered(self) -> Answer:
        """Take in what was recorded, and return the answer that it is."""
        while (released := self.take()) is None:
            pass
        return released[1]

    def _keep(self) -> None:
        """Keep a checkpoint once there are enough updates that resuming would have to repeat."""
        version = self.belief.version
        if version == 1 or version - self._kept[1] >= max(2, version // SPACING):
            self.keep_checkpoint()

    def keep_checkpoint(self) -> None:
        """Let the ledger keep what follows from the records so far, if it outlives the process."""
        taken, belief = self._taken.records, self.belief
        if not self._ledger.lasting or taken <= max(self._kept[0], self._restoring):
            return
        fitted = [held for place, held in sorted(self._fitted.items()) if self._kept[0] <= place < taken]
        self._ledger.keep(
            Checkpoint(
                records=taken,
                values=np.array(fitted, np.float64),
                version=belief.version,
                failures=belief.failures,
                parameters=None if belief.version == self._kept[1] else self.parameters(),
            )
        )
        self._kept = (taken, belief.version)

    def parameters(self) -> tuple[Floats, ...] | None:
        """Return the numbers that the rule makes this hypothesis of again, or None: it repeats updates."""
        rule = self._plan.update
        return (rule.parameters(self.belief.hypothesis) or None) if isinstance(rule, HasParameters) else None

    @property
    def fitted(self) -> dict[int, float]:
        """By record, what the hypothesis behind a hard answer says of its query, or NaN."""
        return dict(self._fitted)

    def restore(self) -> None:
        """Take the leading records of which checkpoints know what they taught; `take` goes on behind them."""
        known, start = self._ledger.checkpoints, self.belief
        if not known:
            return
        records = self._ledger.records(0, known[-1].records)
        stated = itertools.chain.from_iterable(one.values.tolist() for one in known)
        self._fitted = {
            place: next(stated) for place, record in enumerate(records) if isinstance(record, Hard)
        }
        self._restoring, warned = len(records), self._warned
        self._warned = True  # who was asked then was told
        while self._taken.records < self._restoring:
            self.take()
        self._warned = warned
        # a checkpoint says no parameters again that the one before has said
        said = [one.parameters for one in known if one.parameters and one.version == known[-1].version]
        made = attrs.evolve(known[-1], parameters=said[-1] if said else None)
        belief = start.restored(records, self._plan.update, self._plan.alpha, made)
        self._taken = attrs.evolve(self._taken, belief=belief)
        self._kept = (len(records), belief.version)

    def closing(self) -> Closed:
        """Return what a clean close records: how many answers have no record of their own."""
        untaken = self._untaken
        return Closed(untaken["easy"], untaken["repeat"], untaken["untested"], self._rounding)

    def _warn_if_wide(self, bound: float) -> None:
        """Say once that bounds are wide: behind the answer, which nothing may stop.

        The theorem's own bound is known when a textbook session opens, and wide at any usual n.
        """
        if bound > WIDE and not self._warned and not self._plan.textbook:
            self._warned = True
            with contextlib.suppress(WideBoundWarning):
                warnings.warn(
                    f"error_bound must be <= {WIDE} to say much, got {upward(bound, 2)} of all: "
                    "raise epsilon or n, or lower max_queries or hard_answers. Said once a session.",
                    WideBoundWarning,
                    stacklevel=2,
                )

    def warn_if_more(self) -> None:
        """Say once that more was asked than announced: behind the answers, which nothing may stop."""
        if not self._more and self._told() > self._plan.max_queries:
            self._more = True
            with contextlib.suppress(MoreThanAnnouncedWarning):
                warnings.warn(
                    f"max_queries must be at least the number of answers for a bound on all of them at once, "
                    f"got max_queries={self._plan.max_queries:,} and more answers: that bound is inf from "
                    "here on, and m answers that make one number hold together with probability "
                    "1 - m beta. Each answer keeps its own bound. Announce more in the next session. Said "
                    "once a session.",
                    MoreThanAnnouncedWarning,
                    stacklevel=2,
                )

    def _learned(self, record: Record, known: bool) -> tuple[Belief, bool]:
        """Return the belief behind a record, and whether its update failed now (`known`: did before)."""
        belief, released = self._taken.belief, measured(record)
        if not released:
            return belief, False
        if known:
            return belief.unmoved(released), False
        if self._taken.records < self._restoring:  # what it taught is made of parameters, once for all
            return belief.behind(released), False
        try:
            return belief.learned(released, self._plan.update, self._plan.alpha), False
        except Exception as error:  # paid and public already: the answer stands, the old hypothesis is kept
            self._ledger.commit([UpdateFailed(type(error).__name__)])
            return belief.unmoved(released), True

    def recalled(self, question: Question) -> Answer | None:
        """Return the answer of a question that needs no test, a constant or a repeat, or None."""
        if question.constant is not None:
            return self._without_test(question, question.constant / (1 << question.grid_bits), "easy", 0.0)
        known = self._memory.recall(question, self._taken.belief.version)
        if known is None:
            return None
        value, _ = known.again(question)
        self._rounding = max(self._rounding, question.rounding)
        self._untaken["repeat"] += 1
        held = self._settled
        settled = held[1] if held[0] is self._taken.spent else self.settled
        return Answer.deferred(value, "repeat", settled, known, question)

    def prospect(self, question: Question, target: Query | Partition) -> tuple[Answer, float, float, bool]:
        """Return (answer, bound if hard, joint bound, whether it is known) of a question that is not asked.

        The answer is what it would be if its test turned out easy. Nothing is counted or remembered.

        Parameters
        ----------
        target : Query or Partition
            What a hit would release.
        """
        if question.constant is not None:
            value = question.constant / (1 << question.grid_bits)
            bound = cut(value, question.rounding)
            return Answer(value, self._n * value, "easy", bound, self._private), bound, bound, True
        estimates, together = self._estimates_now(), self.error_bound()
        known = self._memory.recall(question, self.belief.version)
        if known is not None:
            value, _ = known.again(question)
            said = stated_again(estimates, question, value, known.question, known.value, known.radius)
            answer = self._stating(question, value, "repeat", said)
            return answer, answer.error_bound, self.joint_bounds([question], [answer])[0], True
        value = self._value(question, self.guesses([question])[0])
        in_theorem = self.left_in_theorem and isinstance(question, Query)
        easy, jointly = self._settled_radii()
        wide = self._plan.error_bound if in_theorem else easy
        said = stated(estimates, question, value, wide)
        if self._design is not None and estimates is None:  # the tables that come first will move the value
            said = (min(1.0, wide + question.rounding), *said[1:])
        answer = self._stating(question, value, "easy", said)
        hard = self._plan.error_bound if in_theorem else self._prospect_if_hard(question, target)
        joint = min(
            max(together, jointly + question.rounding), self._known(question, value) + question.rounding
        )
        return answer, min(hard + question.rounding, 1.0), min(joint, 1.0), False

    def _prospect_if_hard(self, question: Question, target: Query | Partition) -> float:
        """Return the largest bound that `_hard` can state, before it is cut and the rounding is added."""
        beta, sparse = EASY_OR_HARD * self._plan.tested_beta, self._spending.at(self._taken.spent)
        noise = sparse.noise_of(target)
        if isinstance(target, Partition) and isinstance(question, Query):
            weights = block_weights(question, target)
            weights = weights - weights.mean()
            radius = sparse.sum_radius(target, weights, beta)
            noise *= float(np.linalg.norm(weights))
        else:
            radius = sparse.hard_radius(target, beta, tests=self._plan.max_queries) + self._plan.steps
        if isinstance(question, BoundMarginal) or not self._is_fitted(target):
            return radius
        first = self._estimates_now()
        estimate = None if first is None else first.point(question)
        if estimate is None or estimate[1] >= noise:
            return radius + AGREEING * noise
        value, error = estimate
        farthest = CHOSEN * math.hypot(error, noise) + AGREEING * error
        return min(radius + farthest, self._known(question, value) + AGREEING * error)

    def untested(self, question: Question) -> Answer:
        """Return the hypothesis's answer, bounded by the first tables alone."""
        value = self._value(question, self.guesses([question])[0])
        return self._without_test(question, value, "untested", math.inf)

    def _without_test(self, question: Question, value: Any, status: Status, radius: float) -> Answer:
        if status != "untested":
            self._rounding = max(self._rounding, question.rounding)
        self._untaken[status] += 1
        return Answer.deferred(value, status, self.settled, radius, question)

    def recalled_many(self, queries: Queries) -> Recalled:
        """Return what is remembered of a batch."""
        return self._memory.recall_many(queries, self.belief.version)

    def count_untaken(self, counts: dict[Status, int], rounding: float) -> None:
        """Count answers of a batch that no record tells of, and the largest rounding of the known ones."""
        for status, count in counts.items():
            self._untaken[status] += count
        self._rounding = max(self._rounding, rounding)

    def guesses(self, questions: Sequence[Question]) -> Sequence[Guess]:
        """Return the public integers of a query, or of a cross table, that is tested or released."""
        hypothesis, first = self._taken.belief.hypothesis, questions[0]
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
        return Answers.of(queries, columns, self._private, self._n, self._estimates_now())

    def easy_radius(self) -> float:
        """Return the radius of the next easy answer: settled by the record before its test."""
        return self._plan.error_bound if self.left_in_theorem else self._settled_radii()[0]

    @property
    def left_in_theorem(self) -> int:
        """How many more answers the theorem's bound is stated for, in textbook mode; else 0."""
        return max(0, self._plan.max_queries - self._told()) if self._plan.textbook else 0

    def _told(self) -> int:
        """Return how many answers were tested, those counted that a killed process may have lost.

        What was known already, or answered without a test, has no noise of its own that a bound could miss.
        """
        return self._taken.easy + self._taken.hard + self._ledger.lost(self._taken.records)

    def _settled_radii(self) -> tuple[float, float]:
        spent = self._taken.spent
        if self._radii is None or self._radii[0] is not spent:
            self._radii = (spent, self._radii_at(spent))
        return self._radii[1]

    def _radii_at(self, spent: Spent) -> tuple[float, float]:
        return self._easy_radius(self._spending.at(spent), self._share(spent))

    def _share(self, spent: Spent) -> float:
        """Return the part of beta that the present run has of what is said of all answers at once.

        Its kept threshold is drawn anew, and can fail anew: run k = 1, 2, .. gets 1/(k (k + 1)), which sums
        to 1 however many there will be. How many is not fixed beforehand, and may follow from the answers.
        """
        run = spent.restarts + 1
        return 1.0 / (run * (run + 1)) if self._runs else 1.0

    def _easy(self, question: Question, guess: Guess) -> Answer:
        """Return the guess that was tested."""
        spent, held = self._taken.spent, self._radii
        radius, _ = held[1] if held is not None and held[0] is spent else self._settled_radii()
        value = self._value(question, guess)
        answer = self._released(question, "easy", value, radius, spent)
        if radius + question.rounding > WIDE and not self._warned and not self._plan.textbook:
            of = question.axes if isinstance(question, Query) else question.names
            number = self._seen[of] = self._seen.get(of, 0) + 1
            if _is_looked_at(number):
                self._warn_if_wide(answer.error_bound)
        return answer

    def _easy_batch(self, record: EasyBatch) -> None:
        """Remember the guesses that were tested."""
        queries, radius = record.queries, self.easy_radius()
        values = record.guesses / (np.int64(self._n) << queries.grid_bits)
        self._memory.remember_many(queries, values, radius, self.belief.version)
        rounding = queries.rounding
        self._rounding = max(self._rounding, rounding)
        if not self._plan.textbook and radius + rounding > WIDE:
            asked = [(group.axes, group.places) for group in queries.boxes]
            asked += [(query.axes, np.array([place])) for place, query in queries.others]
            looked: list[int] = []
            for axes, places in asked:
                before = self._seen.get(axes, 0)
                self._seen[axes] = before + len(places)
                looked += places[_is_looked_at(before + np.arange(1, len(places) + 1))].tolist()
            for place in looked:
                if self._warned:
                    break
                bound, *_ = stated(self._estimates_now(), queries[place], float(values[place]), radius)
                self._warn_if_wide(bound)

    def _hard(self, record: Hard, learned: Belief) -> Answer:
        """Return a measured number or table, the sum of the measured blocks, or what was learned from it.

        A query that was hard by the noise of its test alone is often measured with more noise than the
        hypothesis, fitted to all tables, errs by. What is known best is the sum of the measured blocks, or
        the estimate from the first tables where it has less noise; unless the two are so far apart that the
        query must have been chosen by the noise of these tables. Where the guess that was tested and what was
        learned both agree with it, the latter is returned. The bound grows by the distance from what was
        measured; all are public. What another process has told is not worked out again: its rules may have
        been others.
        """
        question, measurement, moved = record.query, record.measurement, 0.0
        self._fitted.setdefault(self._taken.records, math.nan)
        sparse = self._spending.at(self._taken.spent)  # whose test fired: settled before it was made
        target, weights = measurement.target, None
        value: Any
        if isinstance(question, BoundMarginal):
            self._table = True
            value = question.table(measurement.values)
        else:
            value, weights = derived(question, measurement)
            if self._is_fitted(target):
                released = (value, measurement.scale * float(np.linalg.norm(weights)))
                first = self._estimates_now()
                estimate = (None if first is None else first.point(question)) or released
                if abs(estimate[0] - value) > CHOSEN * math.hypot(estimate[1], released[1]):
                    estimate = released
                best, deviation = min(released, estimate, key=lambda one: one[1])
                value = value if best == value else min(1.0, max(0.0, best))
                tested, agreeing = self._value(question, record.guess), AGREEING * deviation
                with contextlib.suppress(Exception):  # paid and recorded: not lost with a failing hypothesis
                    fitted = self._learned_of(question, learned)
                    if abs(tested - best) <= agreeing and abs(fitted - best) <= agreeing:  # never with NaN
                        value = fitted
                value = self._said(value)
                moved = abs(value - released[0])

        def radius(beta: float, answers: int) -> float:
            if weights is not None and isinstance(target, Partition):
                return sparse.sum_radius(target, weights, beta / answers)
            return sparse.hard_radius(target, beta, answers, tests=self._plan.max_queries) + self._plan.steps

        # of all hits: each may fail with 1/m of what all may; cheap ones can be many, so m has its price
        sharing = max(2, math.ceil(self._payable / sparse.price(target).amount))
        beta, known = self._plan.tested_beta, self._known(question, value)
        together = self._share(self._taken.spent) * ALL_HARD * beta
        self._worst = max(self._worst, min(known, moved + radius(together, sharing)))
        spent = self._spending.after(self._taken.spent, record)  # what is left is told with this hit
        return self._released(question, "hard", value, moved + radius(EASY_OR_HARD * beta, 1), spent)

    def _is_fitted(self, target: Query | Partition) -> bool:
        """Whether what was learned of this target may be released in the place of what was measured."""
        return isinstance(target, Partition) or (
            self._plan.first_tables is not None and not self._plan.certified
        )

    def _said(self, value: float) -> float:
        """Return the number of the hard answer that is being taken in: as it was told, if it was before."""
        place, told = self._taken.records, self._ledger.told
        if place not in told and self._ledger.lasting:
            self._ledger.keep(Told(place, value))
        return told.get(place, value)

    def _learned_of(self, question: Query, learned: Belief) -> float:
        """Return what was learned of a query that is being taken in, or what a checkpoint says of that."""
        place = self._taken.records
        if place < self._restoring:
            return self._fitted[place]
        self._fitted[place] = float(learned.hypothesis.evaluate(question))
        return self._fitted[place]

    def _known(self, question: Question, value: Any) -> float:
        """Return what the noise of the first tables leaves as a bound, for their families at once, or inf."""
        return known_bound(self._estimates_now(), question, value)

    def _estimates_now(self) -> Estimates | None:
        """Return what the first tables say, once they are taken in."""
        if self._estimates is None and self._design is not None and self._taken.first:
            values = [bought.values for bought in self._taken.first]
            self._estimates = Estimates(self._design, values, self._n, KNOWN * self._plan.beta)
        return self._estimates

    def error_bound(self) -> float:
        """Return the bound on all tested answers at once, or inf where none is proven.

        So it is once more than max_queries were asked, those counted that a killed process may have lost, or
        a certified session has measured a table. Of answers that a killed process may have lost it does not
        know by how much their weights were rounded.
        """
        if self._told() > self._plan.max_queries:
            return math.inf
        if self._plan.certified and self._table:
            return math.inf
        begun = self._design is not None and self._taken.easy + self._taken.hard > 0
        worst = self._weigh()
        coming = self._settled_radii()[1] if self._runs else self._plan.error_bound
        easy = worst if begun else max(coming, worst)
        # numbers err by less than a certificate's bound, but not by less than its first tables leave of it
        bound = easy if self.certified and not begun else max(easy, self._worst)
        return min(bound + self._rounding, self._trivial)

    def joint_bounds(self, questions: Sequence[Question], answers: Sequence[Answer]) -> Floats:
        """Return bounds on these answers that hold in the event of `error_bound`, (m,)."""
        together, lost = self.error_bound(), self._ledger.lost(self._taken.records) > 0
        bounds = np.zeros(len(questions))
        for place, (question, answer) in enumerate(zip(questions, answers, strict=True)):
            if question.constant is not None:  # the same whatever the data, but for what it was rounded by
                bounds[place] = cut(answer.value, question.rounding)
            else:
                tested = math.inf if answer.status == "untested" else together + lost * question.rounding
                known = self._known(question, answer.value) + question.rounding
                bound = min(tested, known)
                bounds[place] = cut(answer.value, bound) if bound < math.inf else bound
        return bounds

    def _weigh(self) -> float:
        """Return the largest bound of an easy answer, all at once: of what came since it was last asked for.

        Where the first tables bound some answers better than tests do, each costs a while, and none that
        cannot change the result is looked at.
        """
        at = self._weighed
        last, spent, worst = self._taken.records, at.spent, at.worst
        lost = self._ledger.lost(last) > 0
        for record in self._ledger.merged(at.records, last):
            if lost and isinstance(record, Burned) and record.reason == "restarted":
                # of easy answers that the killed process gave, and no record holds
                worst = max(worst, self._radii_at(spent)[1])
            if isinstance(record, Easy | EasyBatch):
                joint = self._radii_at(spent)[1]
                for easy in [record] if isinstance(record, Easy) else record:
                    if worst >= joint:
                        break
                    known = self._known(easy.query, self._value(easy.query, easy.guess))
                    worst = max(worst, min(joint, known))
            spent = self._spending.after(spent, record)
        self._weighed = _Weighed(last, spent, worst)
        return worst

    @property
    def estimates(self) -> Estimates | None:
        """What the first tables say."""
        return self._estimates_now()

    def released(self, start: int, stop: int) -> list[tuple[int, Answer]]:
        """Return (place, answer) of what these records released and still stands, oldest first."""
        found = []
        for place, record in enumerate(self._ledger.records(start, min(stop, self._taken.records)), start):
            for one in record if isinstance(record, EasyBatch) else (record,):
                answer = self._again(one)
                if answer is not None:
                    found.append((place, answer))
        return found

    def latest(self, count: int) -> tuple[Answer, ...]:
        """Return up to `count` of the latest tested answers that still stand, oldest first; nothing is asked.

        What was left then is not told.
        """
        found: list[Answer] = []
        stop = self._taken.records
        while stop and len(found) < count:
            start = max(0, stop - max(count, CHUNK))
            part = Transcript(self._ledger.records(start, stop))
            for place in range(len(part) - 1, -1, -1):
                answer = self._again(part[place])
                if answer is not None:
                    found.append(answer)
                if len(found) >= count:
                    break
            stop = start
        return tuple(reversed(found))

    def _again(self, record: Record) -> Answer | None:
        """Return the answer that a record released, if it still stands."""
        if not isinstance(record, Easy | Hard):
            return None
        query = record.query
        known = self._memory.recall(query, self.belief.version)
        if known is None:
            return None
        value, _ = known.again(query)
        said = stated_again(self._estimates_now(), query, value, known.question, known.value, known.radius)
        return self._stating(query, value, "hard" if isinstance(record, Hard) else "easy", said)

    def _stating(self, question: Question, value: Any, status: Status, said: Stated) -> Answer:
        """Return an answer of which all is known now, but for what was left then."""
        bound, estimate, error, law = said
        return Answer(
            value,
            self._n * value,
            status,
            bound,
            self._private,
            estimate,
            error,
            question,
            self._n,
            None,
            law,
        )

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

    def _released(
        self, question: Question, status: Status, value: Any, radius: float, spent: Spent
    ) -> Answer:
        """Return and remember what a record released, under the belief that was tested."""
        in_theorem = self._plan.textbook and self.left_in_theorem and isinstance(question, Query)
        wide = self._plan.error_bound if in_theorem else radius
        self._memory.remember(question, value, wide, self._taken.belief.version)
        self._rounding = max(self._rounding, question.rounding)
        if status != "easy" or isinstance(question, BoundMarginal):  # what is easy lies in [0, 1]
            self._trivial = max(self._trivial, cut(value, math.inf))
        held = self._settled
        settled = held[1] if held[0] is spent else self._settle(spent)
        return Answer.deferred(value, status, settled, wide, question)

    @property
    def settled(self) -> Settled:
        """What an answer that is given now rests on: the same object until something is released."""
        held, spent = self._settled, self._taken.spent
        return held[1] if held[0] is spent else self._settle(spent)

    def _settle(self, spent: Spent) -> Settled:
        whole, owed = self._plan.partitions is not None, self._awaited
        if not self._taken.first:  # nothing is bought: all of it is owed
            owed = max(Fraction(0), self._spending.bought - spent.amount)
        elif owed > self._spending.sparse.account().capacity - spent.amount:
            owed = Fraction(0)  # it cannot be paid any more
        left = partial(hits_left, self._spending, self._domain, whole, spent, owed)
        settled = Settled(self._n, self._private, self._estimates_now(), int if self._burned else left)
        self._settled = (spent, settled)
        return settled


def _design(tables: FirstTables) -> TableDesign:
    """Return what is known of their noise."""
    return TableDesign(tables.targets, [*map(float, tables.scales)], tables.pure)


def _is_looked_at(number: Any) -> Any:
    """Return whether the answers of these numbers, one or more, tell if bounds are wide: one takes a while.

    The first six over a set of attributes, and later the i-th at a rate of 6 / i, in no rhythm of streams.
    """
    return number * number * GOLDEN % 1.0 < 6.0 / number


def _easy_radii(plan: Plan, sparse: NumericSparse, share: float) -> tuple[float, float]:
    """Return the radius of one easy answer, and of it among all of them at once.

    Parameters
    ----------
    share : float
        The part of beta that the run has of the second.
    """
    steps = plan.steps
    if plan.next_share is None:
        together = plan.error_bound
        if share < 1.0:
            _, missed, number = sparse.margins(plan.max_queries, share * plan.tested_beta, plan.hard_answers)
            threshold = sparse.threshold / (sparse.n << sparse.grid_bits) + steps
            number = 0.0 if plan.partitions is not None else number + steps
            together = max(together, threshold + missed, number)
        return sparse.easy_radius(EASY_OR_HARD * plan.tested_beta) + steps, together
    # Hits depend on a kept threshold, and choose the scales of later tests: what is left is that its own
    # noise is that large, which fails all tests at once, whatever their scales.
    one, tests = (1, plan.max_queries) if sparse.start_charge() is None else (MOST_TESTS, MOST_TESTS)
    return (
        sparse.easy_radius(EASY_OR_HARD * plan.tested_beta, one) + steps,
        sparse.easy_radius(share * ALL_EASY * plan.tested_beta, tests) + steps,
    )
