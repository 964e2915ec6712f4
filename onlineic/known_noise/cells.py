"""What the noise of a table of all cells says of every query at once, dense ones and sets of labels.

A query with weights w in [0, 1] is w.y of the noisy cells y, but for w.z of their noise z. Families of them
are bounded by an event each: products of a set of labels of each attribute, and sets of cells of small
marginals, by a union over all of them; and all weights there are, by what the largest noises sum to. The sum
of all noise is known, since n is public.
"""

import math
from collections import Counter
from fractions import Fraction
from typing import final

import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.noise.laws import TILTS, DiscreteLaplace
from onlineic.queries.query import Query
from onlineic.queries.tables import Tables, spread

SMALL_MARGINAL = 64  # cells of a marginal of which any sets are bounded
MOST_STEPS = 128  # distinct weights of a query along one attribute: each is a set
HALVINGS = 16  # thresholds of large noises: each is passed by half as many as the one before
ROUNDED_UP, ROUNDED_OFF = 1.0 + 1e-9, 1e-13  # more than what floats lose in a radius and in a sum of cells
PREFIX_CELLS = 2**16  # of a marginal whose prefix sums are kept
Bracket = tuple[float, float]


def log_products(sizes: tuple[int, ...]) -> float:
    """Return ln of the number of products of a set of codes of each attribute, none of them empty."""
    return math.fsum(size * math.log(2.0) + math.log1p(-(2.0**-size)) for size in sizes)


def small_marginals(sizes: tuple[int, ...]) -> Counter[int]:
    """Return the numbers of marginals by their cells, small ones alone; none where there is one attribute."""
    found, long = Counter({1: 1}), [size for size in sizes if size > 1]
    for size in long if len(long) > 1 else ():
        for cells, count in [*found.items()]:
            if cells * size <= SMALL_MARGINAL:
                found[cells * size] += count
    return found - Counter({1: 1})


def log_sets(sizes: tuple[int, ...]) -> float:
    """Return ln of the number of products of sets of codes and of sets of cells of small marginals."""
    logs = [math.log(count) + cells * math.log(2.0) for cells, count in small_marginals(sizes).items()]
    return float(np.logaddexp.reduce([log_products(sizes), *logs]))


@final
class CellNoise:
    """Brackets from one table of all cells with discrete Laplace noise.

    docs/theory/hypothesis.md, 6.7a and 6.7b.

    Args:
        cells: Shape (cells,). The released table, noisy fractions of records, in the domain's order.
        scale: Of the noise, records.
        sets: Probability that a bracket of any product of sets fails, or of any set of cells of a small
            marginal.
        every: Probability that one fails which speaks of all weights at once.
    """

    def __init__(
        self, domain: Domain, cells: Floats, scale: float, n: int, sets: float, every: float
    ) -> None:
        self._domain, self._n, self._size = domain, n, domain.size
        self._law = DiscreteLaplace(Fraction(scale))
        self._tables = Tables(cells.reshape(domain.shape), PREFIX_CELLS)
        self._mass = float(cells.sum())
        marginals = small_marginals(domain.shape).total()
        self._product_nats = self._marginal_nats = math.inf
        if sets > 0.0:
            self._product_nats = math.log(2.0 / sets * (1 + (marginals > 0))) + log_products(domain.shape)
        if sets > 0.0 and marginals:  # half of the share
            self._marginal_nats = math.log(2.0 / sets * 2 * marginals)
        # half of the share bounds the sum of all |z|, the rest what large ones exceed thresholds by, on each
        # side: thresholds that about one in 4, 8, .. of the noises passes on its side
        steps = range(1, min(HALVINGS, int(math.log2(self._size))))
        thresholds = sorted({round(step * math.log(2.0) * scale) for step in steps} - {0})
        one = every / (4.0 * max(1, len(thresholds)))
        self._absolute = self._law.excess_radius(0, self._size, every / 2.0, sides=2)
        self._excess = [(t, self._law.excess_radius(t, self._size, one)) for t in thresholds]

    def bracket(self, query: Query) -> Bracket | None:
        """Return (low, high) that holds the exact fraction, or None where the query is constant."""
        least, most = _ends(query)
        if not least < most:
            return None
        value, mean = query.total(self._tables, self._mass) / (1 << query.grid_bits), self._mean(query)
        span = most - least
        below, above = self._reach(self._size * (mean - least) / span)
        low, high = value - least * self._surplus - span * above, value - least * self._surplus + span * below
        radius = self._set_radius(query)
        if radius < math.inf:
            centre = value - mean * self._surplus
            low, high = max(low, centre - radius), min(high, centre + radius)
        lost = ROUNDED_OFF + self._size * 2.0**-52  # by floats, in sums of so many cells
        return low - lost, high + lost

    def point(self, query: Query) -> tuple[float, float] | None:
        """Return (estimate, standard error), of a query that was chosen before the table was released."""
        squares = math.prod(
            float(np.square(factor.weights(self._domain) / (1 << factor.bits)).mean())
            for factor in query.factors
        )
        mean = self._mean(query)
        product = 1.0 - mean if query.complement else mean
        if query.constant is not None or not squares > product**2:
            return None
        value = query.total(self._tables, self._mass) / (1 << query.grid_bits) - mean * self._surplus
        return value, self._law.deviation * math.sqrt(self._size * (squares - product**2)) / self._n

    @property
    def _surplus(self) -> float:
        """What all noises sum to, fraction of records: known, as the cells sum to 1."""
        return self._mass - 1.0

    def _mean(self, query: Query) -> float:
        """Return the mean weight of a cell."""
        mean = math.prod(
            float(factor.weights(self._domain).mean()) / (1 << factor.bits) for factor in query.factors
        )
        return 1.0 - mean if query.complement else mean

    def _reach(self, held: float) -> tuple[float, float]:
        """Return the most that weights in [0, 1] of this sum can make of the noise, below and above 0.

        v.z <= t sum(v) + sum (z - t)_+ for every t, and v.z = sum(z) - (1 - v).z; fractions of records.
        """
        total, left = self._n * self._surplus, self._size - held
        above, below = (self._absolute + total) / 2.0, (self._absolute - total) / 2.0
        for threshold, excess in self._excess:
            some, others = held * threshold + excess, left * threshold + excess
            above, below = min(above, some, others + total), min(below, some, others - total)
        return below * ROUNDED_UP / self._n, above * ROUNDED_UP / self._n

    def _set_radius(self, query: Query) -> float:
        """Return the radius of a product of sets, or of a set of cells of a small marginal, or inf.

        Weights along one attribute of a product, or of a small marginal, are the sum, over their distinct
        values, of the rise to that value times the set that reaches it: their radius is the mean of those.
        """
        least, factors = math.inf, query.factors
        weighted = [factor for factor in factors if factor.bits]
        if all(len(factor.axes) == 1 for factor in factors) and len(weighted) < 2:
            tables = [factor.weights(self._domain) for factor in factors]
            share = math.prod(
                float(table.mean()) for table, one in zip(tables, factors, strict=True) if not one.bits
            )
            weights = weighted[0].weights(self._domain) / (1 << weighted[0].bits) if weighted else np.ones(1)
            least = self._mixed(weights, share, self._product_nats)
        cells = math.prod(self._domain.shape[axis] for axis in query.axes)
        if cells <= SMALL_MARGINAL:
            weights = np.ones([1] * len(self._domain.shape))
            for factor in factors:
                table = factor.weights(self._domain) / (1 << factor.bits)
                weights = weights * spread(table, factor.axes, weights.ndim)
            least = min(least, self._mixed(weights.ravel(), 1.0, self._marginal_nats + cells * math.log(2.0)))
        return least

    def _mixed(self, weights: Floats, share: float, nats: float) -> float:
        """Return the radius of weights on a share of the cells, of sets that fail with 2 e^-nats each."""
        values = np.unique(np.append(0.0, weights))
        if len(values) > MOST_STEPS or not math.isfinite(nats):
            return math.inf
        means = share * (weights[:, None] >= values[1:]).mean(axis=0)
        return float(np.diff(values) @ self._radii(means, nats)) / self._n

    def _radii(self, means: Floats, nats: float) -> Floats:
        """Return r with P(|sum (w_i - mean) Z_i| > r) <= 2 e^-nats for sets of these shares of the cells."""
        tilts = TILTS[:, None] / float(self._law.scale) / np.maximum(means, 1.0 - means)
        inside, outside = self._law.log_moments(tilts * (1.0 - means)), self._law.log_moments(tilts * means)
        moments = self._size * (means * inside + (1.0 - means) * outside)
        radii: Floats = ((nats + moments) / tilts).min(axis=0) * ROUNDED_UP
        return np.where((means > 0.0) & (means < 1.0), radii, 0.0)


def _ends(query: Query) -> Bracket:
    """Return the least and the largest weight, as fractions."""
    if query.constant is not None:
        return 0.0, 0.0
    least = most = 1.0
    for factor in query.factors:
        if factor.table is None:
            least = 0.0
        else:
            least *= float(factor.table.min()) / (1 << factor.bits)
            most *= float(factor.table.max()) / (1 << factor.bits)
    return (1.0 - most, 1.0 - least) if query.complement else (least, most)
