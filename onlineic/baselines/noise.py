"""Noise of the baselines: discrete laws calibrated at the full budget, and exact radii of their sums.

Laws live on the grid of 2^-grid_bits counts. Everything here is a function of public facts.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import gaussian_mu
from onlineic.domain.domain import Domain
from onlineic.errors import InfeasibleAccuracyError, InvalidParameterError, shown
from onlineic.noise.laws import DiscreteGaussian, DiscreteLaplace, normal_quantile
from onlineic.noise.sources import RATIO_LIMIT, SIGMA_LIMIT, Noise, scale_at_least
from onlineic.queries.query import Query, session_grid_bits

SIGMA_BITS, SCALE_BITS = SIGMA_LIMIT.bit_length() - 1, RATIO_LIMIT.bit_length() - 2
EXACT_SUPPORTS = 16
LEAST_DELTA = 1e-200
LEAST_TAIL = 1e-12  # below, what floats lose in the inversion is no small part of a tail

Name = Literal["laplace", "gaussian"]
Choice = Literal["laplace", "gaussian", "best"]


@final
@attrs.frozen
class GridNoise:
    """One law, drawn independently for every released number, in counts.

    Attributes:
        law: In grid units.
        grid_bits: A grid unit is 2^-grid_bits counts.
    """

    law: DiscreteLaplace | DiscreteGaussian
    grid_bits: int

    @property
    def name(self) -> Name:
        """Of the law."""
        return "laplace" if isinstance(self.law, DiscreteLaplace) else "gaussian"

    @property
    def deviation(self) -> float:
        """Standard deviation of the continuous law, never below that of the discrete one."""
        return math.ldexp(self.law.deviation, -self.grid_bits)

    def draw(self, noise: Noise, size: int) -> Ints:
        """Return `size` values in grid units."""
        return self.law.draw(noise, size)

    def radius(self, beta: float) -> float:
        """Return r with P(|Z| > r) <= beta for one value Z."""
        return math.ldexp(self.law.radius(beta), -self.grid_bits)

    def sum_radius(self, beta: float, squares: float, support: int | None, cells: int) -> float:
        """Return r with P(|sum of w_i Z_i| > r) <= beta for centred weights of one query.

        Gaussian: exact. Laplace on 0/1 queries: `laplace_sum_quantile`, at the worse of the two supports
        around s that are solved for. Laplace otherwise, and for beta below 1e-12: Bernstein's inequality for
        sub-gamma variables (Boucheron, Lugosi & Massart 2013, section 2.4). Discrete values differ from
        continuous ones by less than a grid unit each.

        Args:
            squares: Sum of w_i^2.
            support: s, if the query's weights are 1 on s cells and 0 elsewhere, so that w is 1 - s/C or -s/C.
            cells: C, the number of values.
        """
        if squares <= 0.0:
            return 0.0
        spread = self.deviation * math.sqrt(squares)
        if self.name == "gaussian":
            wide = normal_quantile(beta / 2.0)
        elif support is None or beta < LEAST_TAIL:
            logs = math.log(2.0 / beta)
            wide = math.sqrt(2.0 * logs) + logs / math.sqrt(2.0 * squares)
        else:
            low, high = _neighbours(min(support, cells - support), cells)
            wide = max(laplace_sum_quantile(s, cells, beta) for s in (low, high))
        return spread * wide + math.ldexp(math.sqrt(cells * squares), -self.grid_bits)


@lru_cache(maxsize=256)
def least_noise(n: int, budget: Budget, moved: int, name: str, squared: int | None = None) -> GridNoise:
    """Return the law at which released counts that a neighbour moves so far use the whole budget.

    k numbers have L1 sensitivity k and squared L2 sensitivity k; m tables have 2m and 2m.

    Laplace: Dwork & Roth (2014), Theorem 3.6. Gaussian: Balle & Wang (2018), Theorem 8, with what the
    discrete law adds to epsilon and delta (theory 9.2).

    Args:
        n: Number of records, public.
        moved: At least 1. L1 sensitivity, counts.
        name: "laplace", "gaussian" or "best". Laplace of scale moved/epsilon: pure. Gaussian of sigma =
            sqrt(squared)/mu: (epsilon, delta). Best: the smaller deviation, a choice made from public facts.
        squared: At least 1. Squared L2 sensitivity. None: `moved`, of counts that move by one each.

    Raises:
        InvalidParameterError: If another law is asked for, or the Gaussian one with delta < 1e-200.
        InfeasibleAccuracyError: If the noise would leave the samplers' range.
    """
    if squared is None:
        squared = moved
    if name == "best":
        names = ("laplace", "gaussian") if budget.delta >= LEAST_DELTA else ("laplace",)
        return min(
            (least_noise(n, budget, moved, each, squared) for each in names), key=lambda law: law.deviation
        )
    if name == "laplace":
        counts = Fraction(moved) / budget.epsilon_exact
        bits = min(session_grid_bits(n), SCALE_BITS - math.ceil(math.log2(counts)))
        _check_range(bits, budget, float(counts))
        return GridNoise(DiscreteLaplace(scale_at_least(counts * 2**bits)), bits)
    if name != "gaussian":
        raise InvalidParameterError(
            f"noise_law must be 'laplace', 'gaussian' or 'best', got noise_law={shown(name)}."
        )
    if budget.delta < LEAST_DELTA:
        raise InvalidParameterError(
            f"delta must be >= {LEAST_DELTA:g} for Gaussian noise, got delta={budget.delta}; use Laplace."
        )
    widest = math.sqrt(squared) / gaussian_mu(budget.epsilon, budget.delta)
    # a quarter of a bit is more than enough for what eta adds
    bits = min(session_grid_bits(n), math.floor(SIGMA_BITS - 0.25 - math.log2(widest)))
    _check_range(bits, budget, widest)
    eta = 201.0 * moved / math.ldexp(widest, bits) ** 2
    if 4.0 * eta > budget.epsilon:
        raise InfeasibleAccuracyError(
            f"epsilon must be larger for the grid of {n} records, got epsilon={budget.epsilon}."
        )
    mu = gaussian_mu(budget.epsilon - 2.0 * eta, budget.delta * math.exp(-eta) * (1.0 - 2.0**-40))
    square = Fraction(squared * 4**bits) / Fraction(mu) ** 2
    return GridNoise(DiscreteGaussian(math.isqrt(math.ceil(square)) + 1), bits)


def _check_range(bits: int, budget: Budget, counts: float) -> None:
    if bits < 0:
        raise InfeasibleAccuracyError(
            f"epsilon must be larger for so many numbers, got epsilon={budget.epsilon}: the noise would have "
            f"scale {counts:.3g} records."
        )


def _neighbours(support: int, cells: int) -> tuple[int, int]:
    """Supports around s at which the quantile is solved for: it lies between theirs."""
    if support <= EXACT_SUPPORTS:
        return support, support
    low = 1 << (support.bit_length() - 1)
    return low, min(2 * low, cells // 2)


@lru_cache(maxsize=4096)
def laplace_sum_quantile(support: int, cells: int, beta: float) -> float:
    """Return x with P(|X| > x sd) = beta, X = (1 - s/C) (sum of s Laplace) - (s/C) (sum of C - s Laplace).

    Inversion of the characteristic function prod 1/(1 + (w_i t)^2) (Gil-Pelaez 1951) by the trapezoid
    rule at steps of 0.05 sd, whose error is a mass beyond 100 sd.

    Args:
        support, cells: 1 <= s < C.
        beta: In (0, 1).
    """
    inside, outside = 1.0 - support / cells, support / cells
    deviation = math.sqrt(2.0 * support * inside)
    points = 2**10
    while True:
        nodes = (np.arange(points) + 0.5) * 0.05
        squares: Floats = np.square(nodes / deviation)
        logs: Floats = -support * np.log1p(inside**2 * squares)
        logs -= (cells - support) * np.log1p(outside**2 * squares)
        if logs[-1] < -32.0 or points >= 2**20:
            break
        points *= 4
    keep = logs > -40.0
    nodes, density = nodes[keep], np.exp(logs[keep]) / nodes[keep]

    def beyond(x: float) -> float:
        return 1.0 - 0.1 / math.pi * float(np.sin(nodes * x) @ density)

    low, high = 0.0, -math.log(beta) + 3.0
    while high - low > 1e-7:
        middle = (low + high) / 2.0
        low, high = (middle, high) if beyond(middle) > beta else (low, middle)
    return high


def moments(query: Query) -> tuple[float, float]:
    """Return the means of f and f^2 over the cells, f the product of the factors (no complement)."""
    mean = squares = 1.0
    for factor in query.factors:
        weights = np.ldexp(factor.weights(query.domain).astype(np.float64), -factor.bits)
        mean *= float(weights.mean())
        squares *= float((weights**2).mean())
    return mean, squares


def moved_to(query: Query, axes: tuple[int, ...], domain: Domain) -> Query:
    """Return the query over a table's own domain."""
    place = {axis: index for index, axis in enumerate(axes)}
    factors = tuple(
        attrs.evolve(factor, axes=tuple(place[axis] for axis in factor.axes)) for factor in query.factors
    )
    return attrs.evolve(query, domain=domain, factors=factors, axes=tuple(place[axis] for axis in query.axes))
