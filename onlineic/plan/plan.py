"""All that a session fixes before the data are touched: its plan, a function of public facts.

Proof: docs/theory/accuracy.md, 6.0; docs/theory/session.md, 4.2, 4.5, 4.9.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, final

import attrs

from onlineic.accounting.budget import Budget, Filter
from onlineic.display.html import card, facts
from onlineic.display.text import probability, records, shortened, upward
from onlineic.domain.unit import Unit, persons_of, whose
from onlineic.errors import checked_integer, checked_real
from onlineic.ledger.records import Opened, Record
from onlineic.plan.calibration import rounded_down, weight_bits
from onlineic.plan.first_tables import FirstTables
from onlineic.plan.kinds import is_dense, is_range
from onlineic.plan.later_tables import Asked, LaterTables
from onlineic.plan.purchases import PurchaseRule
from onlineic.plan.spending import Spending
from onlineic.queries.marginals import Question
from onlineic.queries.partitions import PartitionRule
from onlineic.sparse.base import NumericSparse
from onlineic.updates.base import UpdateRule

Rule = UpdateRule[Any]

# beta is divided once between the ways in which answers can fail (theory 6.0): one answer is easy or hard,
# and each may fail in half of it; of all answers at once the easy ones take .9, the hard ones the rest
EASY_OR_HARD, ALL_EASY, ALL_HARD = 0.5, 0.9, 0.1
# where first tables are bought, those are shares of what is left beside the bounds of their noise
KNOWN = 0.3

TRIVIAL = 0.5  # what the constant answer 1/2 errs by at most

LEAST, MOST = 1e-100, 2**63 - 1
MOST_EPSILON = 1e3  # promises nothing any more
MOST_HARD = 10**9


@final
@attrs.frozen
class Plan:
    """All that a session fixes at its start, a function of public facts.

    Attributes
    ----------
    sparse : NumericSparse
    update : UpdateRule
    alpha : float
        Gap that an update may rely on, fraction of records.
    beta : float
        Failure probability of the accuracy statements.
    max_queries : int
        Q, the length of the stream that `error_bound` speaks of. Privacy does not depend on it.
    hard_answers : int
        c, hard answers planned for; false hits may use up more than that, and are paid for too.
    error_bound : float
        Bound on every easy answer of the first Q queries at once, and with a certificate on every answer,
        with probability 1 - beta. Where prices fall (`next_share`), on those before the first hit or
        restart: of all that was answered speaks `SessionStatistics.error_bound`.
    certified : bool
        Whether it is proven that the hard answers cannot run out in that event: T(alpha) counts them, or each
        of the first Q questions is paid.
    textbook : bool
        Whether answers carry the theorem's own bound, 3 alpha.
    partitions : PartitionRule or None
        Which partition a hard query releases; None: its number alone.
    first_tables : FirstTables or None
        Tables released at the start; None: none are.
    dense_tables : FirstTables or None
        What is released in their place, at the charge of all tables, if the first question is a dense one.
    later_tables : LaterTables or None
        Released behind the first ones, once the questions tell which.
    range_tables : FirstTables or None
        What is released in their place, at the same charge, if the first question is a range of codes.
    hit_price : Fraction
        Of a planned hit, in the unit of the account.
    next_share : Fraction or None
        The most of what is left that a hit may cost once there was one; None: prices stay as they are.
    reserve, least_price : Fraction or None, Fraction
        Of a session of numbers, in the unit of the account: what is kept for questions beyond those
        announced, and what a number must cost to be of use.
    restarts : int or None
        How many restarts are paid for besides the hard answers. None: the plan of an older file.
    purchases : PurchaseRule or None
        What else is bought, in the place of all these tables, as questions come.
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
    first_tables: FirstTables | None = None
    hit_price: Fraction = Fraction(0)
    next_share: Fraction | None = None
    reserve: Fraction | None = None
    least_price: Fraction = Fraction(0)
    dense_tables: FirstTables | None = None
    later_tables: LaterTables | None = attrs.field(default=None, metadata={"later": True})
    range_tables: FirstTables | None = attrs.field(default=None, metadata={"later": True})
    restarts: int | None = attrs.field(default=None, metadata={"later": True})
    purchases: PurchaseRule[Any] | None = attrs.field(default=None, metadata={"later": True})

    @property
    def openings(self) -> tuple[FirstTables, ...]:
        """What may be released at the start: one of these."""
        held = (self.first_tables, self.dense_tables, self.range_tables)
        return tuple(one for one in held if one is not None)

    def opening(self, question: Question | None) -> FirstTables | None:
        """Return what is released before this question, as the first, or before there is any."""
        if self.dense_tables is not None and question is not None and is_dense(question):
            return self.dense_tables
        if self.range_tables is not None and question is not None and is_range(question):
            return self.range_tables
        return self.first_tables

    def opening_of(self, record: Opened) -> FirstTables | None:
        """Return which of the openings a record holds, if it is one."""
        return next((one for one in self.openings if _is_of(record, one, self.sparse.n)), None)

    def later(self, asked: Asked) -> FirstTables | None:
        """Return what is released behind what was asked, besides the first tables, or None."""
        if self.later_tables is None or self.first_tables is None:
            return None
        return self.later_tables.tables(asked, self.first_tables)

    def heard(self, so_far: Asked, record: Record) -> Asked:
        """Return what was asked and bought with one more record, as far as purchases go by it."""
        if self.later_tables is not None:
            return self.later_tables.behind(so_far, record)
        if isinstance(record, Opened):
            return so_far.with_release(record)
        return so_far

    def due_at(self, heard: Asked, questions: Iterable[Question]) -> int | None:
        """Return after how many of these questions later tables are bought; None: not before the last."""
        later = self.later_tables
        if later is None or not later.waits(heard) or later.due(heard):
            return None
        return later.due_at(heard, questions)

    def owed(self, heard: Asked, account: Filter) -> Fraction:
        """Return the charge of tables that questions will buy."""
        if not heard.releases:
            return Fraction(0) if self.first_tables is None or account.spent else self.spending.bought
        later = self.later_tables
        payable = later is not None and later.waits(heard) and later.charge.amount <= account.left
        return later.charge.amount if later is not None and payable else Fraction(0)

    def released(self, record: Opened, asked: Asked) -> FirstTables | None:
        """Return which tables of this plan a record holds, behind what was asked, if any."""
        if not asked.releases:
            return self.opening_of(record)
        later = self.later(asked)
        return later if later is not None and _is_of(record, later, self.sparse.n) else None

    @property
    def spending(self) -> Spending:
        """Which mechanism tests, by what the record has spent."""
        planned = [one.charge.amount for one in (self.first_tables, self.later_tables) if one is not None]
        bought = (
            sum(planned, Fraction(0))
            if self.purchases is None
            else self.purchases.planned(self.sparse.account())
        )
        return Spending(
            self.sparse,
            bought,
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
        """The account as a total of the table pays it: with what first tables cost wherever they come."""
        account = self.sparse.account()
        saved = (one.cost - one.charge.amount for one in self.openings)
        return attrs.evolve(account, capacity=account.capacity + max([Fraction(0), *saved]))

    @property
    def tested_beta(self) -> float:
        """What tests and hard answers share: all of beta, but for what the noise of first tables takes."""
        return self.beta * (1.0 - KNOWN) if self.buys else self.beta

    @property
    def buys(self) -> bool:
        """Whether tables are bought whose noise bounds answers beside the tests."""
        return self.first_tables is not None or self.purchases is not None

    def _repr_html_(self) -> str:
        return card(f"Plan for {self.sparse.n:,} records", facts(plan_facts(self)))


def _is_of(record: Opened, tables: FirstTables, n: int) -> bool:
    """Whether a record holds these tables."""
    targets = tuple(one.target for one in record.measurements)
    scales = tuple(one.scale for one in record.measurements)
    return (tables.targets, tables.charge, tables.deviations(n)) == (targets, record.charge, scales)


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


def tested_beta(beta: float, first_tables: FirstTables | None) -> float:
    """Return what tests and hard answers share: all of beta, but for what the noise of first tables takes."""
    return beta if first_tables is None else beta * (1.0 - KNOWN)


def plan_facts(plan: Plan, unit: Unit | None = None) -> list[tuple[str, str]]:
    """Return what a plan settles, in words; of a table of persons, whose parts are its records, `unit`."""
    n = persons_of(plan.sparse.n, unit)
    threshold = plan.sparse.threshold / (plan.sparse.n << plan.sparse.grid_bits)
    falls = plan.next_share is not None and plan.reserve is None  # behind a hit tests have more noise
    said = [
        ("tests", f"{type(plan.sparse).__name__}: an answer that misses by more than about "
         f"{records(n * threshold)} {whose(unit)} is measured{', at first' * falls}"),
        ("learns by", shortened(repr(plan.update), 120)),
    ]  # fmt: skip
    if plan.first_tables is not None:
        part = float(plan.first_tables.charge.amount / plan.sparse.account().capacity)
        many, when = f"{len(plan.first_tables.targets)} of counts", "at the start"
        if plan.dense_tables is not None:
            many = f"{many}, or {len(plan.dense_tables.targets)} of all cells where that is a dense question"
            when = "behind the first question"
        if plan.range_tables is not None:
            many = f"{many}, coarse ones with less noise where that is a range"
            when = "behind the first question"
        said.append(("first tables", f"released {when} for {part:.0%} of the budget: {many}"))
    if plan.purchases is not None:
        part = float(plan.spending.bought / plan.sparse.account().capacity)
        said.append(("tables", f"bought as questions come, for up to {part:.0%} of the budget"))
    if plan.later_tables is not None:
        later = plan.later_tables
        part = float(later.charge.amount / plan.sparse.account().capacity)
        when = f"once {later.joint} questions have joined three attributes"
        again = f"of pairs again, once {later.patience} questions came without that"
        said.append(("later tables", f"released for {part:.0%}: of triples, {when}; or {again}"))
    released = "a whole table of counts" if plan.partitions is not None else "one number"
    said.append(("a measured answer", f"releases {released}; planned for {plan.hard_answers:,}"))
    promise = "every answer but cross tables" if plan.certified else "every easy answer"
    if falls:
        promise += " before the first measured one or restart"
    bound = f"{promise}, of the first {plan.max_queries:,}, at once within ± {upward(plan.error_bound)}"
    said.append(("promise", f"{bound}, with probability {probability(1.0 - plan.beta)}"))
    if plan.textbook:
        said.append(("mode", "textbook: the theorem's own bound, 3 alpha, on every answer"))
    return said
