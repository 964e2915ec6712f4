"""What the next hit may cost, from the public record alone: a share of what is left, so that some always is.

The first hits cost what the plan says. Later ones cost a fixed share of the budget that is left, if that is
less: their tests have more noise and a higher threshold, and tests never stop for want of budget. Numbers
that are announced all cost the same; those beyond fall as the square of how many there were. Which mechanism
tests is a function of the plan and of what the releases in the record have cost, settled before the
test; instances of one Renyi order share one filter, and pure ones keep the threshold noise of their run
(theory 4.5). Whoever reads the record can work out the noise of every test and every number in it.
"""

from fractions import Fraction
from functools import lru_cache
from typing import final

import attrs
import numpy as np

from onlineic.domain.domain import Domain
from onlineic.queries.partitions import one_way
from onlineic.queries.query import canonical
from onlineic.session.calibration import weight_bits
from onlineic.sparse.base import NumericSparse


@final
@attrs.frozen
class Spending:
    """Which mechanism tests the next question.

    Attributes
    ----------
    sparse : NumericSparse
        The plan's, whose prices are the highest.
    bought : Fraction
        What the tables that are planned cost, the first ones and later ones, in the unit of its account.
    price : Fraction
        Of a planned hit of `sparse`, in that unit.
    share : Fraction or None
        The most of what is left that a hit may cost, once there was one; None: prices stay.
    reserve : Fraction or None
        Of a session of numbers: what is kept for questions beyond those announced. As long as more is left,
        prices stay; then a number costs left^2/reserve times the share, so that the j-th question beyond m
        announced ones costs about (m/(m + j))^2 of the first.
    least : Fraction
        Below which no hit is worth its noise; once less is left, nothing is tested.
    """

    sparse: NumericSparse
    bought: Fraction = Fraction(0)
    price: Fraction = Fraction(0)
    share: Fraction | None = None
    reserve: Fraction | None = None
    least: Fraction = Fraction(0)

    def at(self, spent: Fraction) -> NumericSparse:
        """Return the mechanism of the next test, when the releases so far have cost `spent`."""
        if self.share is None or spent <= self.bought:
            return self.sparse
        return _mechanism(self, spent)


@lru_cache(maxsize=4096)
def _mechanism(spending: Spending, spent: Fraction) -> NumericSparse:
    left = spending.sparse.account().capacity - spent
    most = left * (spending.share or 1)
    if spending.reserve is not None:
        within = left - spending.price >= spending.reserve
        most = spending.price if within else most * min(Fraction(1), left / spending.reserve)
    most = max(most, spending.least)
    if most >= spending.price or most <= 0:
        return spending.sparse
    return spending.sparse.stretched(spending.price / most)


def hit_price(sparse: NumericSparse, domain: Domain, partition: bool) -> Fraction:
    """Return what a hit costs, of a partition or of a 0/1 query's number."""
    longest = one_way(domain, max(range(len(domain.shape)), key=domain.shape.__getitem__))
    if not partition and longest.blocks == 1:
        return Fraction(0)  # every query is constant: none is tested
    return sparse.price(longest if partition else longest.block(0)).amount


def dearest_hit(sparse: NumericSparse, domain: Domain, partition: bool) -> Fraction:
    """Return the largest price of a hit of a single query: what is left is counted in such ones."""
    axis = max(range(len(domain.shape)), key=domain.shape.__getitem__)
    size = domain.shape[axis]
    bits = weight_bits(sparse)
    table = sparse.price(one_way(domain, 0)).amount if partition else Fraction(0)
    if size == 1:  # every query is constant: none is ever tested, but by a cross table
        return table if partition else sparse.account().capacity + 1
    # noise is rounded up to whole units of a query's own grid: least on the finest, which weights may exceed
    finest = np.zeros(size)
    finest[0], finest[1] = 1.0, 0.5**bits
    fine = canonical(domain, False, {(axis,): finest}, max(bits, 1))
    numbers = [
        sparse.price(query).amount for query in (one_way(domain, axis).block(0), fine) if query.sensitivity
    ]
    return max(table, *numbers)


def hits_left(
    spending: Spending, domain: Domain, partition: bool, spent: Fraction, due: Fraction, owed: Fraction
) -> int:
    """Return how many hits of the largest price can at least be paid behind these charges: prices only fall.

    Parameters
    ----------
    spent : Fraction
        By the record.
    due : Fraction
        What the next hit pays besides its price, for the threshold of its run.
    owed : Fraction
        For tables that questions will buy.
    """
    left = spending.sparse.account().capacity - spent - owed - due
    return int(left // dearest_hit(spending.at(spent), domain, partition))
