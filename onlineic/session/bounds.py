"""How far the answers of a session may be from the truth: by its tests, its numbers and its first tables.

Proof: docs/theory/accuracy.md, 6.0, 6.2, 6.3; docs/theory/certificates.md, 8.2; docs/theory/hypothesis.md,
6.7; docs/theory/ledger-and-restarts.md, 5.4.
"""

import copy
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.budget import Charge
from onlineic.known_noise.estimates import Family
from onlineic.known_noise.instalments import Instalments
from onlineic.ledger.records import Easy, EasyBatch, Forfeited, Ledger
from onlineic.noise.laws import normal_quantile
from onlineic.plan.plan import ALL_EASY, ALL_HARD, EASY_OR_HARD, Plan
from onlineic.plan.spending import Spent
from onlineic.queries.answers import Answer
from onlineic.queries.counted import Counted
from onlineic.queries.marginals import BoundMarginal, Guess, Question
from onlineic.queries.partitions import Measurement, Partition, block_weights
from onlineic.queries.query import Query
from onlineic.queries.within import Within
from onlineic.session.columns import cut, known_bound, of_all
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.gumbel import GumbelSparse

MOST_TESTS = 10**30  # so many that a union over them says nothing


@final
@attrs.frozen
class _Weighed:
    """The largest bound of an easy answer, all at once, among the leading records."""

    records: int
    spent: Spent
    worst: float = 0.0


@final
class Bounds:
    """Bounds of one answer and of all at once: each number is a function of the plan and the record.

    Taking in the same record twice changes nothing.

    Args:
        counted: What is known of n, where it is private: bounds are of fractions of n (theory 1.9).

    Attributes:
        rounding: The largest distance of an answered query from the one written.
        tables: Whether a cross table was measured.
    """

    __slots__ = (
        "_counted", "_easy", "_farthest", "_hardest", "_instalments",
        "_ledger", "_n", "_now", "_payable", "_plan", "_runs", "_spending", "_weighed", "rounding",
        "tables",
    )  # fmt: skip

    def __init__(self, plan: Plan, n: int, ledger: Ledger, counted: Counted | None = None) -> None:
        self._counted = counted
        self._plan, self._n, self._ledger, self._spending = plan, n, ledger, plan.spending
        # only a file outlives its process, and only what is kept for a whole run is drawn again with it
        self._runs = ledger.lasting and plan.sparse.start_charge() is not None
        self._easy = lru_cache(256)(partial(_easy_radii, plan))
        self._now: tuple[int, tuple[float, float]] = (-1, (0.0, 0.0))  # of the tests, at a version of spent
        self._payable = plan.sparse.account().capacity  # what hits to come can cost, with those before
        first = plan.first_tables
        if first is not None:  # they come before any hit
            self._payable -= first.charge.amount
        self._instalments = Instalments(slack=self.slack, deviation=self._deviation)
        self._weighed = _Weighed(0, plan.spending.unspent)  # of the easy ones: when it is asked for
        self._hardest = 0.0  # bound of a hard answer, all at once
        self._farthest = 1.0  # distance of a value from the far end of [0, 1]
        self.rounding = 0.0
        self.tables = False

    @property
    def slack(self) -> float:
        """How far n may be from the number of records, fraction of n: 0 where n is public."""
        return 0.0 if self._counted is None else self._counted.slack

    @property
    def _deviation(self) -> float:
        return 0.0 if self._counted is None else self._counted.deviation

    def frozen(self, ledger: Ledger) -> "Bounds":
        """Return the bounds of now, by a ledger that grows no more."""
        other = copy.copy(self)
        other._ledger = ledger
        return other

    # -- tables --

    def pay_tables(self, bought: Fraction) -> None:
        """Take in what tables have cost so far, where none were settled: hits cannot spend it."""
        self._payable = self._plan.sparse.account().capacity - bought

    def buy_instalment(self, before: int, released: tuple[Measurement, ...], pure: bool) -> None:
        """Take in tables bought after `before` instalments; each has a bound of its own (theory 6.7c).

        Args:
            pure: Whether their noise is Laplace.
        """
        beta = self._plan.known * self._plan.beta
        self._instalments = self._instalments.after(before).then(released, self._n, beta, pure)

    @property
    def family(self) -> Family | None:
        """The queries that the noise of the first tables bounds all at once, in one event a family."""
        return self._instalments.family

    @property
    def estimates(self) -> Instalments | None:
        """What the noise of tables bounds, once some are taken in."""
        return self._instalments if self._instalments.estimates else None

    @property
    def awaits_tables(self) -> bool:
        """Whether first tables, not bought yet, will change the values that the hypothesis has now."""
        return self._plan.buys and not self._plan.purchases.ended and self.estimates is None

    def known(self, question: Question, value: Any) -> float:
        """Return the bound that the noise of bought tables gives, for all their families at once, or inf."""
        return known_bound(self.estimates, question, value)

    # -- tests --

    def easy(self, spent: Spent) -> tuple[float, float]:
        """Return the radius of one easy answer, and that of all easy answers at once, at this spending."""
        if self._now[0] != spent.version:
            self._now = (spent.version, self._easy_at(spent))
        return self._now[1]

    def _easy_at(self, spent: Spent) -> tuple[float, float]:
        return self._easy(self._spending.at(spent), self._share(spent))

    def _share(self, spent: Spent) -> float:
        """Return the part of beta that the present run has of what is said of all answers at once.

        Its kept threshold is drawn anew, and can fail anew: run k = 1, 2, .. gets 1/(k (k + 1)), which sums
        to 1 however many there will be. How many is not fixed beforehand, and may follow from the answers.
        """
        run = spent.restarts + 1
        return 1.0 / (run * (run + 1)) if self._runs else 1.0

    # -- numbers and tables --

    def is_fitted(self, target: Query | Partition) -> bool:
        """Return whether what was learned of a target may be released in the place of what was measured."""
        plan = self._plan
        return plan.update.fits_all and not plan.certified and (isinstance(target, Partition) or plan.buys)

    def measured(self, target: Query | Partition, weights: Floats | None, spent: Spent) -> float:
        """Return the radius of one measured target at this spending, by its noise alone."""
        return self._radius(target, weights, spent, EASY_OR_HARD * self._plan.tested_beta, 1)

    def measured_together(
        self, target: Query | Partition, weights: Floats | None, spent: Spent, share: float = 1.0
    ) -> float:
        """Return the same for all hits at once: a `share` of beta is divided among the m that can be paid.

        Cheap ones can be many, so m follows the price.
        """
        sharing = max(2, math.ceil(self._payable / self._spending.at(spent).price(target).amount))
        beta = share * ALL_HARD * self._plan.tested_beta
        return self._radius(target, weights, spent, beta, sharing)

    def _radius(
        self, target: Query | Partition, weights: Floats | None, spent: Spent, beta: float, answers: int
    ) -> float:
        """Return by how much the noise of so many answers moves each, or less, with probability 1 - beta."""
        sparse = self._spending.at(spent)
        if weights is not None and isinstance(target, Partition):
            return sparse.sum_radius(target, weights, beta / answers)
        return sparse.hard_radius(target, beta, answers, tests=self._plan.max_queries) + self._plan.steps

    def hard(
        self, question: Question, target: Query | Partition, weights: Floats | None, value: Any,
        moved: float, spent: Spent,
    ) -> float:  # fmt: skip
        """Return the radius of a hard answer, and keep its radius for all hits at once.

        Args:
            target: What was measured.
            weights: Shape (blocks,). Of the measured blocks in the answer.
            value: A number or an array. As it is released.
            moved: Its distance from what was measured.
            spent: Before the hit.
        """
        if isinstance(question, Query) and isinstance(target, Partition) and self.slack:
            # the blocks that are left out are taken from n
            moved += self.slack * float(block_weights(question, target).mean())

        together = moved + self.measured_together(target, weights, spent, self._share(spent))
        self._hardest = max(self._hardest, min(self.known(question, value), together))
        return moved + self.measured(target, weights, spent)

    def single(
        self,
        question: Question,
        measurement: Measurement,
        charge: Charge,
        value: Any,
        moved: float,
        within: Within | None = None,
    ) -> float:
        """Return the radius of a single purchase, and keep its radius for all answers at once.

        Args:
            charge: Its own: so many can be bought that all charges together are the account.
            value: A number or an array. As it is told.
            moved: Its distance from what was measured.
        """
        beta, account = self._plan.tested_beta, self._plan.sparse.account()
        part = float(charge.amount / account.capacity)
        deviation, values = measurement.scale, len(measurement.values)
        together = moved + self.of_noise(deviation, values, ALL_HARD * beta * part)
        self._hardest = max(self._hardest, min(self.known(question, value), together))
        if within is not None:
            return moved + self.within(deviation, values, within)
        return moved + self.of_noise(deviation, values, beta)

    def within(self, deviation: float, values: int, within: Within) -> float:
        """Return the radius of so many numbers at once that were bought for a wish."""
        return self.of_noise(deviation, values, self._plan.tested_beta / within.parts)

    def certified(self, tester: GumbelSparse, question: Query, within: Within) -> tuple[float, float]:
        """Return the radius of an easy answer of a test that was made for a wish, and of a measured one.

        Keeps that of the first among all at once, as tests of the plan have it.
        """
        beta, steps, plan = EASY_OR_HARD * self._plan.tested_beta / within.parts, self._plan.steps, self._plan
        together = tester.easy_radius(ALL_EASY * plan.tested_beta, plan.max_queries) + steps
        self._hardest = max(self._hardest, together)
        return tester.easy_radius(beta) + steps, tester.hard_radius(question, beta) + steps

    def of_call(self, question: Query, within: Within) -> tuple[float, float, float] | None:
        """Return (value, deviation, radius) of a question of the call that the latest tables were bought for.

        They were fixed before its noise was drawn, so each holds by itself; None where these tables do not
        hold the question. A private n was drawn before: of what it is off by the bound is added.
        """
        found = self._instalments.estimates[-1].own_noise(question)
        if found is None:
            return None
        value, own, whole = found
        self._hardest = max(self._hardest, self.known(question, value))
        radius = self.within(own, 1, within) + self.slack * whole
        return value, math.hypot(own, self._deviation * whole), radius

    def of_noise(self, deviation: float, values: int, beta: float) -> float:
        """Return a bound on the noise in all of so many values, except with probability beta.

        One record is added for the rounding of noise and weights.
        """
        each = beta / values
        if self._plan.sparse.account().order is None:
            return deviation / math.sqrt(2.0) * -math.log(each) + 1.0 / self._n
        return deviation * normal_quantile(each / 2.0) * (1.0 + 1e-12) + 1.0 / self._n

    def if_hard(self, question: Question, target: Query | Partition, spent: Spent) -> float:
        """Return the largest radius that a hard answer can have, should its test fire."""
        weights, left_out = None, 0.0
        if isinstance(target, Partition) and isinstance(question, Query):
            weights = block_weights(question, target)
            mean = float(weights.mean())
            weights, left_out = weights - mean, self.slack * mean
        radius = self.measured(target, weights, spent) + left_out
        return radius + self.measured_together(target, weights, spent) if self.is_fitted(target) else radius

    # -- all at once --

    def state(self, question: Question, value: Any, *, inside: bool) -> None:
        """Take in that this is stated of a question; `inside` is whether a number lies in [0, 1]."""
        self.rounding = max(self.rounding, question.rounding)
        if not inside or isinstance(question, BoundMarginal):
            self._farthest = max(self._farthest, cut(value, math.inf, self.slack))

    def together(self, records: int, spent: Spent, *, begun: bool, certified: bool) -> float:
        """Return the bound on all tested answers of so many records at once.

        Of answers that a killed process may have lost it does not know how much their weights were rounded.
        """
        worst = self._weigh(records)
        coming = self.easy(spent)[1] if self._runs else self._plan.error_bound
        easy = worst if begun and self._plan.buys else max(coming, worst)
        # numbers err by less than a certificate's bound
        bound = easy if certified else max(easy, self._hardest)
        return min(bound + self.rounding, self._farthest + self.slack)

    def of_each(
        self, questions: Sequence[Question], answers: Sequence[Answer], together: float, lost: bool
    ) -> Floats:
        """Return bounds on these answers that hold in the event of `together`, (m,)."""
        bounds = np.zeros(len(questions))
        for place, (question, answer) in enumerate(zip(questions, answers, strict=True)):
            if question.constant is not None:  # the same whatever the data, but for what it was rounded by
                bounds[place] = cut(
                    answer.value, question.rounding + of_all(question, self.slack), self.slack
                )
            else:
                tested = math.inf if answer.status == "untested" else together + lost * question.rounding
                tested += self.slack * (answer.status == "repeat")  # it may be one minus what was released
                known = self.known(question, answer.value) + question.rounding
                bound = min(tested, known)
                bounds[place] = cut(answer.value, bound, self.slack) if bound < math.inf else bound
        return bounds

    def _weigh(self, last: int) -> float:
        """Return the largest bound of an easy answer, all at once: of what came since it was last asked for.

        Where the first tables bound some answers better than tests do, each costs a while, and none that
        cannot change the result is looked at.
        """
        at = self._weighed
        spent, worst = at.spent, at.worst
        lost = self._ledger.lost(last) > 0
        for record in self._ledger.merged(at.records, last):
            if lost and isinstance(record, Forfeited) and record.reason == "restarted":
                # of easy answers that the killed process gave, and no record holds
                worst = max(worst, self._easy_at(spent)[1])
            if isinstance(record, Easy | EasyBatch):
                joint = self.easy(spent)[1]
                for easy in [record] if isinstance(record, Easy) else record:
                    if worst >= joint:
                        break
                    known = self.known(easy.query, stated_value(easy.query, easy.guess, self._n))
                    worst = max(worst, min(joint, known))
            spent = self._spending.after(spent, record)
        self._weighed = _Weighed(last, spent, worst)
        return worst


def stated_value(question: Question, guess: Guess, n: int) -> Any:
    """Return tested integers as an answer: the fraction, or the table."""
    if isinstance(question, BoundMarginal):
        return question.table(np.array(guess) / n)
    tested = guess if isinstance(guess, int) else 0  # a query has one
    return tested / (n << question.grid_bits)


def _easy_radii(plan: Plan, sparse: NumericSparse, share: float) -> tuple[float, float]:
    """Return the radius of one easy answer, and of it among all of them at once.

    Args:
        share: The part of beta that the run has of the second.
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
