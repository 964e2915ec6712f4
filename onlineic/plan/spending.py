"""What the next hit may cost, from the public record alone: a share of what is left, so that some always is.

The first hit costs what the plan says, however often the session was restarted before it. Later ones cost a
fixed share of the budget that is left, if that is less: their tests have more noise and a higher threshold,
and tests never stop for want of budget. Numbers that are announced all cost the same; those beyond fall as
the square of how many there were. Which mechanism tests is a function of the plan and of the record, settled
before the test; instances of one Renyi order share one filter, and pure ones keep the threshold noise of
their run (theory 4.5). Whoever reads the record can work out the noise of every test and every number in it.

Proof: docs/theory/ledger-and-restarts.md, 5.4; docs/theory/session.md, 4.5.
"""

from fractions import Fraction
from functools import lru_cache
from typing import final

import attrs
import numpy as np

from onlineic.domain.domain import Domain
from onlineic.ledger.records import Bought, Forfeited, Hard, Record, Resumed
from onlineic.plan.calibration import weight_bits
from onlineic.queries.partitions import one_way, whole
from onlineic.queries.query import canonical
from onlineic.sparse.base import NumericSparse


@final
@attrs.frozen
class Spent:
    """Summary of the record that prices depend on.

    Attributes:
        amount: Of all charges, in the unit of the account.
        hit: Whether anything was measured because its test fired.
        restarts: How many runs began again, of a mechanism whose runs cost something.
        due: What the next hit pays besides its price: the threshold of a run that it is the first of.
        version: How many records have changed any of it.
    """

    amount: Fraction = Fraction(0)
    hit: bool = False
    restarts: int = 0
    due: Fraction = Fraction(0)
    version: int = 0


@final
@attrs.frozen
class Spending:
    """Which mechanism tests the next question.

    Attributes:
        sparse: The plan's, whose prices are the highest.
        bought: What the tables that are planned cost, the first ones and later ones, in the unit of its
            account.
        price: Of a planned hit of `sparse`, in that unit.
        share: The most of what is left that a hit may cost, once there was one; None: prices stay.
        reserve: Of a session of numbers: what is kept for questions beyond those announced. As long as more
            is left, prices stay; then a number costs left^2/reserve times the share, so that the j-th
            question beyond m announced ones costs about (m/(m + j))^2 of the first.
        least: Below which no hit is worth its noise; once less is left, nothing is tested.
        restarts: How many restarts are set aside.
    """

    sparse: NumericSparse
    bought: Fraction = Fraction(0)
    price: Fraction = Fraction(0)
    share: Fraction | None = None
    reserve: Fraction | None = None
    least: Fraction = Fraction(0)
    restarts: int = 0

    @property
    def unspent(self) -> Spent:
        """The summary of an empty record."""
        return Spent(due=self._start)

    def after(self, spent: Spent, record: Record) -> Spent:
        """Return the summary with one more record; the same object if nothing in it changes."""
        version = spent.version + 1
        if isinstance(record, Hard):
            return Spent(spent.amount + record.charge.amount, True, spent.restarts, version=version)
        if isinstance(record, Bought | Forfeited):
            # a run that ends in order burns what its tests have used up, where each hit ends a run
            ended = isinstance(record, Forfeited) and record.reason == "closed" and not self._start
            amount, restarts = spent.amount + record.charge.amount, spent.restarts + ended
            # a threshold that was paid when tables were bought serves on, and is not paid again
            paid = isinstance(record, Forfeited) and record.reason == "bought"
            due = Fraction(0) if paid else spent.due
            return attrs.evolve(spent, amount=amount, restarts=restarts, due=due, version=version)
        if isinstance(record, Resumed) and self._start:
            return attrs.evolve(spent, restarts=spent.restarts + 1, due=self._start, version=version)
        return spent

    def at(self, spent: Spent) -> NumericSparse:
        """Return the mechanism of the next test."""
        if self.share is None or spent.amount <= self.bought:
            return self.sparse
        left = self.sparse.account().capacity - spent.amount - self.set_aside(spent)
        if spent.hit:
            return _mechanism(self, self._most(left))
        return _mechanism(self, left - self.sparse.restart_price())  # all that is left may pay the first hit

    def set_aside(self, spent: Spent) -> Fraction:
        """Return what is kept for restarts that were planned and have not come."""
        return max(0, self.restarts - spent.restarts) * self.sparse.restart_price()

    def _most(self, left: Fraction) -> Fraction:
        """Return the most that a hit may cost, once there was one."""
        most = left * (self.share or 1)
        if self.reserve is not None:
            within = left - self.price >= self.reserve
            most = self.price if within else most * min(Fraction(1), left / self.reserve)
        return max(most, self.least)

    @property
    def _start(self) -> Fraction:
        """What a run costs besides its hits: 0 unless one threshold serves all of it."""
        start = self.sparse.start_charge()
        return Fraction(0) if start is None else start.amount


@lru_cache(maxsize=4096)
def _mechanism(spending: Spending, most: Fraction) -> NumericSparse:
    """Return the mechanism whose hits cost at most so much, no more than planned."""
    if most >= spending.price or most <= 0:
        return spending.sparse
    return spending.sparse.stretched(spending.price / most)


def hit_price(sparse: NumericSparse, domain: Domain, partition: bool) -> Fraction:
    """Return what a hit costs, of a partition or of a 0/1 query's number."""
    small = _small(domain)
    if partition:
        return sparse.price(whole(small)).amount
    if small.size == 1:
        return Fraction(0)  # every query is constant: none is tested
    return sparse.price(one_way(small, 0).block(0)).amount


def _small(domain: Domain) -> Domain:
    """Return a small domain with the same prices: they depend on weights, not on the number of codes."""
    return Domain.of(code=min(3, max(domain.shape)))


def dearest_hit(sparse: NumericSparse, domain: Domain, partition: bool) -> Fraction:
    """Return the largest price of a hit of a single query: what is left is counted in such ones."""
    small = _small(domain)
    size, bits = small.size, weight_bits(sparse)
    table = sparse.price(whole(small)).amount if partition else Fraction(0)
    if size == 1:  # every query is constant: none is ever tested, but by a cross table
        return table if partition else sparse.account().capacity + 1
    # noise is rounded up to whole units of a query's own grid: least on the finest, which weights may exceed
    finest = np.zeros(size)
    finest[0], finest[1] = 1.0, 0.5**bits
    fine = canonical(small, False, {(0,): finest}, max(bits, 1))
    numbers = [
        sparse.price(query).amount for query in (one_way(small, 0).block(0), fine) if query.constant is None
    ]
    return max(table, *numbers)


def hits_left(spending: Spending, domain: Domain, partition: bool, spent: Spent, owed: Fraction) -> int:
    """Return how many hits of the largest price can at least be paid after these charges: prices only fall.

    Args:
        spent: By the record.
        owed: For tables that questions will buy.
    """
    left = spending.sparse.account().capacity - spent.amount - spent.due - owed - spending.set_aside(spent)
    return max(0, int(left // dearest_hit(spending.at(spent), domain, partition)))


def restarts_left(
    spending: Spending, domain: Domain, partition: bool, spent: Spent, owed: Fraction
) -> int | None:
    """Return how often a session can be closed and resumed until no hit can be paid; None: any number.

    Each time counts as one in which something was tested. The parameters are those of `hits_left`.
    """
    cost = spending.sparse.restart_price()
    if not cost:
        return None
    left = spending.sparse.account().capacity - spent.amount - spent.due - owed
    return max(0, int((left - dearest_hit(spending.at(spent), domain, partition)) // cost))
