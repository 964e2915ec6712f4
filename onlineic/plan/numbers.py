"""What a number that is bought costs: its noise, and how far a neighbour moves it.

Its count is rounded down to multiples of 2^-8 of a record, and its noise lies on these.

Proof: docs/theory/session.md, 4.9d.
"""

import math
from fractions import Fraction

from onlineic.accounting.neighbours import Neighbours
from onlineic.accounting.renyi import TICK, gaussian_charge
from onlineic.noise.laws import DiscreteGaussian, DiscreteLaplace
from onlineic.noise.sources import SIGMA_LIMIT, scale_at_least
from onlineic.queries.query import Query
from onlineic.sparse.base import steps_up

NUMBER_BITS = 8  # grid of the noise of a number: with fewer its weights would be rounded too coarsely


def number_law(scale: Fraction, pure: bool) -> DiscreteGaussian | DiscreteLaplace:
    """Return the law of the noise of a number of this scale, records, in units of 2^-8 of one."""
    units = scale * (1 << NUMBER_BITS)
    return DiscreteLaplace(units) if pure else DiscreteGaussian(units.numerator // units.denominator)


def number_price(order: Fraction | None, query: Query, scale: Fraction, neighbours: Neighbours) -> Fraction:
    """Return what a number costs with Gaussian noise of this scale in ticks, or with Laplace in epsilon."""
    unit = 1 << NUMBER_BITS
    moved = _moved(query, neighbours)
    if order is None:
        return moved / (scale * unit)
    sigma = math.floor(scale * unit)  # what is drawn is whole
    return Fraction(gaussian_charge(order, Fraction(max(1, sigma)), moved**2))


def _moved(query: Query, neighbours: Neighbours) -> int:
    """Return how far a neighbour moves a number that was rounded down to multiples of 2^-8 of a record."""
    rows, moved = neighbours.rows, neighbours.number(query.lowest, query.highest)
    return rows * steps_up(-(-moved // rows), query.grid_bits, NUMBER_BITS)


def least_number(
    order: Fraction | None, most: Fraction, query: Query, neighbours: Neighbours
) -> Fraction | None:
    """Return the least scale, records, with which a number costs at most so much, or None."""
    moved, unit = _moved(query, neighbours), 1 << NUMBER_BITS
    if most <= 0 or moved <= 0:
        return None
    if order is None:
        return None if moved > most * SIGMA_LIMIT else scale_at_least(moved / (most * unit))
    if most < 1:
        return None
    sigma = max(1, math.floor(math.sqrt(float(order * moved**2 / (2 * most * TICK)))) - 2)
    while sigma <= SIGMA_LIMIT and number_price(order, query, Fraction(sigma, unit), neighbours) > most:
        sigma += 1
    return Fraction(sigma, unit) if sigma <= SIGMA_LIMIT else None
