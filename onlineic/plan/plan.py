"""All that a session fixes before the data are touched: its plan, a function of public facts.

Proof: docs/theory/accounting.md, 4.10; docs/theory/accuracy.md, 6.0; docs/theory/session.md, 4.5.
"""

from fractions import Fraction
from functools import cached_property
from typing import Any, final

import attrs

from onlineic.accounting.budget import Budget, Filter
from onlineic.display.html import card, facts
from onlineic.display.text import probability, records, shortened, upward
from onlineic.domain.unit import Unit, persons_of, whose
from onlineic.errors import checked_integer, checked_real
from onlineic.plan.calibration import rounded_down, weight_bits
from onlineic.plan.defaults import EASY_OR_HARD as EASY_OR_HARD
from onlineic.plan.demand import opens_with
from onlineic.plan.older import BoughtBefore
from onlineic.plan.purchase import Purchase
from onlineic.plan.purchase_rule import PurchaseRule, TestsOnly, planned_by
from onlineic.plan.spending import Spending
from onlineic.queries.partitions import PartitionRule
from onlineic.queries.within import Within
from onlineic.sparse.base import NumericSparse
from onlineic.updates.base import UpdateRule

Rule = UpdateRule[Any]

# beta is divided once between the ways in which answers can fail (theory 6.0): one answer is easy or hard,
# and each may fail in half of it; of all answers at once the easy ones take .9, the hard ones the rest
ALL_EASY, ALL_HARD = 0.9, 0.1
# where first tables are bought, those are shares of what is left beside the bounds of their noise
KNOWN = 0.3
# .. and of a session with a wish: each fresh number has the rest, and would be dearer
KNOWN_WITHIN = 0.1

TRIVIAL = 0.5  # what the constant answer 1/2 errs by at most

LEAST, MOST = 1e-100, 2**63 - 1
MOST_EPSILON = 1e3  # promises nothing any more
MOST_HARD = 10**9


@final
@attrs.frozen
class Plan:
    """All that a session fixes at its start, a function of public facts.

    Attributes:
        alpha: Gap that an update may rely on, fraction of records.
        beta: Failure probability of the accuracy statements.
        max_queries: Q, the length of the stream that `error_bound` speaks of. Privacy does not depend on it.
        hard_answers: c, hard answers planned for; false hits may use up more than that, and are paid for too.
        error_bound: Bound on every easy answer of the first Q queries at once, and with a certificate on
            every answer, with probability 1 - beta. Where prices fall (`next_share`), on those before the
            first hit or restart: of all that was answered speaks `SessionStatistics.error_bound`.
        certified: Whether it is proven that the hard answers cannot run out in that event: T(alpha) counts
            them, or each of the first Q questions is paid.
        textbook: Whether answers carry the theorem's own bound, 3 alpha.
        partitions: Which partition a hard query releases; None: its number alone.
        hit_price: Of a planned hit, in the unit of the account.
        next_share: The most of what is left that a hit may cost once there was one; None: prices stay as they
            are.
        reserve, least_price: Of a session of numbers whose file is older than the rule that buys them, in
            the unit of the account: what is kept for questions beyond those announced, and what a number must
            cost to be of use.
        restarts: How many restarts are paid for besides the hard answers.
        purchases: What is bought without a test, and when.
        within: How exact each answer is to be, if that was said.
    """

    sparse: NumericSparse
    update: Rule
    alpha: float
    beta: float
    max_queries: int
    hard_answers: int
    error_bound: float
    certified: bool
    textbook: bool = False
    partitions: PartitionRule | None = None
    hit_price: Fraction = Fraction(0)
    next_share: Fraction | None = None
    reserve: Fraction | None = None
    least_price: Fraction = Fraction(0)
    restarts: int = 0
    purchases: PurchaseRule[Any] = attrs.field(factory=TestsOnly)
    within: Within | None = attrs.field(default=None, metadata={"later": True})

    @property
    def first_tables(self) -> Purchase | None:
        """The tables that come with the first question, before any hit, where they are settled."""
        return opens_with(self.purchases)

    @cached_property
    def spending(self) -> Spending:
        """Which mechanism tests, by what the record has spent."""
        return Spending(
            self.sparse,
            planned_by(self.purchases, self.sparse.account()),
            self.hit_price,
            self.next_share,
            self.reserve,
            self.least_price,
            self.restarts,
        )

    @property
    def weight_bits(self) -> int:
        """Grid of the weights of queries: fine enough that rounding moves less than half a record in all.

        It follows n, as far as counts stay exact floats. Noise may be on a coarser grid, to which exact
        counts are rounded down. A certificate, and the theorem of the book, speak of the grid of the tests.
        """
        if self.certified or self.textbook:
            return self.sparse.grid_bits
        return weight_bits(self.sparse)

    @property
    def steps(self) -> float:
        """What rounding counts down to the grid of the noise can move a test or a number by, a fraction."""
        return 0.0 if self.certified or self.textbook else rounded_down(self.sparse)

    @property
    def drawn(self) -> Filter:
        """The account as a total of the table pays it: with what other rules saved on first tables (4.10)."""
        account, rule = self.sparse.account(), self.purchases
        saved = rule.saved if isinstance(rule, BoughtBefore) else 0
        return attrs.evolve(account, capacity=account.capacity + saved)

    @property
    def tested_beta(self) -> float:
        """The part of beta for tests and hard answers: what the noise of the first tables leaves."""
        return self.beta * (1.0 - self.known) if self.buys else self.beta

    @property
    def known(self) -> float:
        """The part of beta that the noise of tables has, which holds once for all that is read from them."""
        return KNOWN if self.within is None else KNOWN_WITHIN

    @property
    def buys(self) -> bool:
        """Whether tables are bought whose noise bounds answers beside the tests."""
        return not isinstance(self.purchases, TestsOnly)

    def _repr_html_(self) -> str:
        return card(f"Plan for {self.sparse.n:,} records", facts(plan_facts(self)))


def checked_facts(n: int, budget: Budget, max_queries: int, beta: float) -> tuple[int, Budget, int, float]:
    """Return what all plans share, checked; the outer limits keep every formula inside the floats."""
    epsilon = checked_real("epsilon", budget.epsilon, at_least=LEAST, at_most=MOST_EPSILON)
    return (
        checked_integer("n", n, at_least=1),
        attrs.evolve(budget, epsilon=epsilon),
        checked_integer("max_queries", max_queries, at_least=1, at_most=MOST),
        checked_real("beta", beta, at_least=LEAST, below=1.0),
    )


def restarts_text(left: int) -> str:
    """Return how often a session can be resumed, in words."""
    return f"{left:,}: each costs what a new secret threshold costs, out of the measured answers left"


def tested_beta(beta: float, first_tables: Purchase | None) -> float:
    """Return the part of beta for tests and hard answers: what the noise of the first tables leaves."""
    return beta if first_tables is None else beta * (1.0 - KNOWN)


def plan_facts(plan: Plan, unit: Unit | None = None) -> list[tuple[str, str]]:
    """Return what a plan settles, in words; of a table of persons, whose parts are its records, `unit`."""
    n = persons_of(plan.sparse.n, unit)
    if (wish := plan.within) is not None:  # what is bought, and tested, is what it needs
        sure = "for certain" if wish.certain else "as is expected of 95 in 100"
        return [
            ("wish", f"each answer within {upward(wish.radius)} of all {whose(unit)}, {sure}"),
            ("learns by", shortened(repr(plan.update), 120)),
        ]
    threshold = plan.sparse.threshold / (plan.sparse.n << plan.sparse.grid_bits)
    falls = plan.next_share is not None and plan.reserve is None  # after a hit tests have more noise
    said = [
        ("tests", f"{type(plan.sparse).__name__}: an answer that misses by more than about "
         f"{records(n * threshold)} {whose(unit)} is measured{', at first' * falls}"),
        ("learns by", shortened(repr(plan.update), 120)),
    ]  # fmt: skip
    said += [(name, text) for name, text in plan.purchases.described(plan.sparse.account())]
    released = "a whole table of counts" if plan.partitions is not None else "one number"
    said.append(("a measured answer", f"releases {released}; planned for {plan.hard_answers:,}"))
    held = plan.certified and not plan.purchases.ended
    promise = "every answer but cross tables" if held else "every easy answer"
    if falls:
        promise += " before the first measured one or restart"
    bound = f"{promise}, of the first {plan.max_queries:,}, at once within ± {upward(plan.error_bound)}"
    said.append(("promise", f"{bound}, with probability {probability(1.0 - plan.beta)}"))
    if plan.textbook:
        said.append(("mode", "textbook: the theorem's own bound, 3 alpha, on every answer"))
    return said
