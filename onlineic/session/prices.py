"""What the next hit costs and what is set aside for it: public, from the plan and the record alone.

Nothing here reads the table. Whoever holds the record works out the same prices.

Proof: docs/theory/session.md, 4.1, 4.5.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import Charge, Filter
from onlineic.domain.domain import Domain
from onlineic.ledger.records import Bought, Certified, Easy, EasyBatch, Ledger, measured
from onlineic.plan.spending import Spending, Spent, dearest_hit, restarts_left
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.partitions import AxisSets, Partition, PartitionRule, sets_of, whole
from onlineic.queries.query import Query
from onlineic.sparse.base import NumericSparse


@final
@attrs.frozen(eq=False)
class _Standing:
    """What the next test rests on, at a version of the record.

    Attributes:
        version: How many records have changed account, reservation or prices.
        reserved: Of the ledger: after a Ctrl-C only it knows. A wish sets its own price aside.
        due: What the first hit pays besides its price.
        sparse: The mechanism of the next test.
        covered: The dearest hit that the reservation pays.
        serving: The same of single queries, 0 if it is reserved for a cross table. A hit uses up all that was
            set aside: hits of single queries would become as dear as those of the table, so less is set aside
            anew.
        pays: Dict of (least weight, largest weight, grid bits) to bool. Whether it serves single queries of
            each kind, as far as it was asked.
    """

    version: int
    reserved: Charge | None
    due: Fraction
    sparse: NumericSparse
    covered: Fraction
    serving: Fraction
    pays: dict[tuple[int, int, int], bool] = attrs.field(factory=dict)


@final
@attrs.define(eq=False)  # never written to
class _Taken:
    """What prices take from the leading records; replaced as a whole."""

    records: int = 0
    version: int = 0
    spent: Spent = attrs.field(factory=Spent)
    held: AxisSets = frozenset()  # attribute sets of which a table was released
    bought: Fraction = Fraction(0)  # for tables without a test


@final
class Prices:
    """Prices of hits, and the reservations that cover them.

    Args:
        spending: Which mechanism tests next.
        ledger: Claimed for the account of that mechanism.
        partitions: Which partition a hard query releases; None: its number alone.
    """

    __slots__ = (
        "_dearest_of", "_domain", "_ledger", "_partitions", "_priced", "_set_aside", "_spending", "_standing",
        "_taken",
    )  # fmt: skip

    def __init__(
        self, spending: Spending, ledger: Ledger, domain: Domain, partitions: PartitionRule | None
    ) -> None:
        self._spending, self._ledger, self._domain = spending, ledger, domain
        self._partitions = partitions
        # a mechanism and its prices, replaced together: another thread may ask for a repr at any time
        self._priced: tuple[NumericSparse, dict[tuple[int, int, int], Fraction]] = (spending.sparse, {})
        self._standing: _Standing | None = None  # each test asks for it several times
        self._set_aside: Charge | None = None  # for these prices: what a wish has left serves no other test
        self._dearest_of: tuple[NumericSparse | None, Fraction] = (None, Fraction(0))
        # how many records were taken in, and what of them: replaced together, for the same reason
        self._taken = _Taken(spent=spending.unspent)
        # whatever the record holds, the threshold of this process is a new one
        taken = self._caught_up()
        self._taken = attrs.evolve(taken, spent=attrs.evolve(taken.spent, due=spending.unspent.due))

    def _caught_up(self) -> "_Taken":
        """Take in what the record has grown by; return it, whatever another thread takes in meanwhile."""
        taken = self._taken
        records = self._ledger.records(taken.records)
        version, spent, held, bought = taken.version, taken.spent, taken.held, taken.bought
        for record in records:
            if isinstance(record, Easy | Certified | EasyBatch):
                continue
            version, spent = version + 1, self._spending.after(spent, record)
            if isinstance(record, Bought):
                bought += record.charge.amount
            targets = [one.target for one in measured(record) if isinstance(one.target, Partition)]
            held = held.union(*map(sets_of, targets))
        self._taken = taken = _Taken(taken.records + len(records), version, spent, held, bought)
        return taken

    def frozen(self, ledger: Ledger) -> "Prices":
        """Return the prices of now, by a ledger that grows no more; what is reserved stands as it is."""
        self._now()
        other = copy.copy(self)
        other._ledger = ledger
        return other

    @property
    def spent(self) -> Spent:
        """Summary of the record that prices depend on."""
        return self._caught_up().spent

    @property
    def bought(self) -> Fraction:
        """What tables that were bought without a test have cost, in the unit of the account."""
        return self._caught_up().bought

    @property
    def sparse(self) -> NumericSparse:
        """The mechanism of the next test."""
        return self._now().sparse

    def target(self, question: Question) -> Query | Partition:
        """Return what a hit releases: settled before its test by the question and the record alone."""
        if isinstance(question, BoundMarginal):
            return question.partition
        if self._partitions is None or question.constant is not None:
            return question
        chosen = self._partitions.partition(question, self._caught_up().held)
        return question if chosen is None else chosen

    def cover(self, questions: Sequence[Question]) -> list[bool]:
        """Reserve a hit, and return which of the leading questions may be tested.

        A standing reservation serves every test until a hit uses it up, and is topped up for the first
        payable question, if that is dearer. The list ends before the next one that is dearer still: so a
        batch pays what its questions pay one at a time.
        """
        standing, first = self._now(), questions[0]
        if len(questions) == 1 and self._pays(standing, first):
            return [True]
        level = covered = standing.covered if isinstance(first, BoundMarginal) else standing.serving
        if all(price <= level for price in self._kinds(standing.sparse, questions)):
            return [True] * len(questions)
        prices = self._prices(standing.sparse, questions)
        left = self._free(standing)
        payable: list[bool] = []
        for price in prices:
            if level < price <= left:
                if any(payable):
                    break
                level = price
            payable.append(price <= left)
        if any(payable) and (self._ledger.reserved is None or level > covered):
            account, event = self._ledger.account, "one hard answer with its tests"
            self._set_aside = Charge(level + standing.due, event, account.unit, account.order)
            self._ledger.reserve(self._set_aside)
        return payable

    def affords(self, question: Question) -> bool:
        """Return whether a hit of this question can be paid, from what stands reserved or what is left."""
        standing = self._now()
        return self._pays(standing, question) or self._price(standing.sparse, question) <= self._free(
            standing
        )

    def covers(self, questions: Sequence[Question]) -> bool:
        """Return whether the standing reservation pays a hit of each."""
        standing = self._now()
        if len(questions) == 1:
            return self._pays(standing, questions[0])
        dearest = max(self._kinds(standing.sparse, questions))
        return standing.reserved is not None and dearest <= standing.covered

    def cost(self, question: Question) -> Fraction:
        """Return what a hit would cost now, with what it owes besides its price, in the unit of the account.

        A hit uses up all that stands reserved, also what a dearer question before it has left standing.
        """
        standing = self._now()
        if standing.reserved is not None and self._pays(standing, question):
            return standing.reserved.amount
        return self._price(standing.sparse, question) + standing.due

    def threshold(self) -> float:
        """Return the threshold of the next test, fraction of records."""
        sparse = self._now().sparse
        return sparse.threshold / (sparse.n << sparse.grid_bits)

    def hard_left(self, owed: Fraction = Fraction(0), account: Filter | None = None) -> int:
        """Return how many hits of the largest price can still be paid, at the price of the next one.

        Args:
            owed: For tables that are not bought yet.
            account: That of the ledger, unless it is not claimed for this mechanism yet.
        """
        standing = self._now()
        left = (self._ledger.account if account is None else account).left - standing.due - owed
        left -= self._spending.set_aside(self.spent)
        return max(0, int(left // self._dearest(standing.sparse)))

    def restarts_left(self, owed: Fraction = Fraction(0)) -> int | None:
        """Return how often the session can be closed and resumed; None: any number, or it cannot be."""
        if not self._ledger.lasting:
            return None
        return restarts_left(self._spending, self._domain, self._partitions is not None, self.spent, owed)

    def unfinished(self, drawn: bool) -> Charge | None:
        """Return what easy tests of a kept threshold have used up of the standing reservation, or None.

        It is paid when their process ends in order, and when something else is reserved in its place.

        Args:
            drawn: Whether the noise of a kept threshold was drawn.
        """
        standing = self._ledger.reserved
        if standing is None or not drawn:
            return None
        amount = self.sparse.unfinished(standing.amount, self.spent.due)
        event = "easy tests of a run that was closed"
        return attrs.evolve(standing, amount=amount, event=event) if amount else None

    def _now(self) -> _Standing:
        """Return what the next test rests on."""
        taken, held = self._taken, self._standing
        if taken.records < len(self._ledger):
            taken = self._caught_up()
        # a test that is made for a wish sets its own price aside
        if held is None or held.version != taken.version or held.reserved is not self._ledger.reserved:
            reserved, spent = self._ledger.reserved, taken.spent
            sparse, level, serving = self._spending.at(spent), Fraction(0), Fraction(0)
            if reserved is not None and reserved is self._set_aside:
                level = reserved.amount - spent.due
                serving = level if level <= self._dearest(sparse) else Fraction(0)
            self._standing = held = _Standing(taken.version, reserved, spent.due, sparse, level, serving)
        return held

    def _free(self, standing: _Standing) -> Fraction:
        """Return what is left of the account for hits, in its unit."""
        return self._ledger.account.left - standing.due - self._spending.set_aside(self.spent)

    def _kinds(self, sparse: NumericSparse, questions: Sequence[Question]) -> Iterator[Fraction]:
        """Yield the price of each kind of question among these: most of a batch have one."""
        alike: Iterable[Question] = questions
        if isinstance(questions, Queries):
            if questions.boxes:
                yield self._price(sparse, questions[int(questions.boxes[0].places[0])])
            alike = (query for _, query in questions.others)
        for question in alike:
            yield self._price(sparse, question)

    def _prices(self, sparse: NumericSparse, questions: Sequence[Question]) -> list[Fraction]:
        """Return the price of each."""
        if not isinstance(questions, Queries):
            return [self._price(sparse, question) for question in questions]
        prices = [next(self._kinds(sparse, questions))] * len(questions)
        for place, query in questions.others:
            prices[place] = self._price(sparse, query)
        return prices

    def _pays(self, standing: _Standing, question: Question) -> bool:
        """Return whether the standing reservation serves this question and pays its hit."""
        if standing.reserved is None:
            return False
        if isinstance(question, BoundMarginal):
            return self._price(standing.sparse, question) <= standing.covered
        kind = (question.lowest, question.highest, question.grid_bits)
        known = standing.pays.get(kind)
        if known is None:
            known = standing.pays[kind] = self._price(standing.sparse, question) <= standing.serving
        return known

    def _dearest(self, sparse: NumericSparse) -> Fraction:
        held = self._dearest_of
        if held[0] is not sparse:
            price = dearest_hit(sparse, self._domain, self._partitions is not None)
            self._dearest_of = held = (sparse, price)
        return held[1]

    def _price(self, sparse: NumericSparse, question: Question) -> Fraction:
        if isinstance(question, BoundMarginal):
            return sparse.price(question.partition).amount
        held, prices = self._priced
        if held is not sparse:
            prices = {}
            self._priced = (sparse, prices)
        key = (question.lowest, question.highest, question.grid_bits)
        if key not in prices:
            number = sparse.price(question).amount
            # a hit of a partition session costs what a partition does, or the number that is released
            # instead: which of the two, no test can change
            prices[key] = number if self._partitions is None else max(number, self._table_price(sparse))
        return prices[key]

    def _table_price(self, sparse: NumericSparse) -> Fraction:
        return sparse.price(whole(self._domain)).amount
