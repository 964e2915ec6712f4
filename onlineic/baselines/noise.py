"""Noise of the baselines: discrete laws calibrated at the full budget, and exact radii of their sums.

Laws live on the grid of 2^-grid_bits counts. Everything here is a function of public facts.
"""

import math
from fractions import Fraction
from functools import lru_cache

import attrs
import numpy as np

from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import gaussian_mu
from onlineic.domain.domain import Domain
from onlineic.errors import InfeasibleAccuracyError, InvalidParameterError
from onlineic.noise.laws import Law
from onlineic.noise.sources import scale_at_least
from onlineic.queries.query import Query, session_grid_bits

__all__ = ["calibrated", "moments", "moved_to"]

SIGMA_BITS, SCALE_BITS = 26, 47  # limits of the samplers


LEAST_DELTA = 1e-200


@lru_cache(maxsize=256)
def calibrated(n: int, budget: Budget, moved: int, name: str) -> Law:
    """Return the law at which `moved` released counts, each off by at most one, use the whole budget.

    Replacing one record changes every paid number by at most 1: k numbers have L1 sensitivity k and
    squared L2 sensitivity k; m tables have 2m changed cells, L1 sensitivity 2m and squared L2 2m.

    Parameters
    ----------
    n : int
        Number of records, public.
    moved : int, >= 1
        k, or 2m.
    name : "laplace", "gaussian" or "best"
        Laplace of scale moved/epsilon: pure. Gaussian of sigma = sqrt(moved)/mu: (epsilon, delta). Best: the
        smaller deviation, a choice made from public facts.

    Raises
    ------
    InvalidParameterError
        If another law is asked for, or the Gaussian one with delta < 1e-200.
    InfeasibleAccuracyError
        If the noise would leave the samplers' range.

    References
    ----------
    Laplace: Dwork & Roth (2014), Theorem 3.6. Gaussian: Balle & Wang (2018), Theorem 8, and adaptive
    composition of Gaussian trade-offs (Dong, Roth & Su 2022, Corollary 3.3). The discrete law is within
    e^(+-200/sigma^2) of the rounded continuous one wherever |x| <= 40 sigma (else mass below 1e-340), since
    the mean of e^(-(2xu + u^2)/(2 sigma^2)) over |u| <= 1/2 is. So is, by 201 moved/sigma^2 = eta, the law of
    all numbers that a replaced record can change: mu is solved for epsilon - 2 eta, delta e^-eta.
    """
    if name == "best":
        names = ("laplace", "gaussian") if budget.delta >= LEAST_DELTA else ("laplace",)
        return min((calibrated(n, budget, moved, each) for each in names), key=lambda law: law.deviation)
    if name == "laplace":
        counts = Fraction(moved) / budget.epsilon_exact
        bits = min(session_grid_bits(n), SCALE_BITS - math.ceil(math.log2(counts)))
        _check_range(bits, budget, float(counts))
        return Law("laplace", scale_at_least(counts * 2**bits), bits)
    if name != "gaussian":
        raise InvalidParameterError(
            f"noise_law must be 'laplace', 'gaussian' or 'best', got noise_law={name!r:.60}."
        )
    if budget.delta < LEAST_DELTA:
        raise InvalidParameterError(
            f"delta must be >= {LEAST_DELTA:g} for Gaussian noise, got delta={budget.delta}; use Laplace."
        )
    widest = math.sqrt(moved) / gaussian_mu(budget.epsilon, budget.delta)
    # a quarter of a bit is more than enough for what eta adds
    bits = min(session_grid_bits(n), math.floor(SIGMA_BITS - 0.25 - math.log2(widest)))
    _check_range(bits, budget, widest)
    eta = 201.0 * moved / math.ldexp(widest, bits) ** 2
    if 4.0 * eta > budget.epsilon:
        raise InfeasibleAccuracyError(
            f"epsilon must be larger for the grid of {n} records, got epsilon={budget.epsilon}."
        )
    mu = gaussian_mu(budget.epsilon - 2.0 * eta, budget.delta * math.exp(-eta) * (1.0 - 2.0**-40))
    squared = Fraction(moved * 4**bits) / Fraction(mu) ** 2
    return Law("gaussian", Fraction(math.isqrt(math.ceil(squared)) + 1), bits)


def _check_range(bits: int, budget: Budget, counts: float) -> None:
    if bits < 0:
        raise InfeasibleAccuracyError(
            f"epsilon must be larger for so many numbers, got epsilon={budget.epsilon}: the noise would have "
            f"scale {counts:.3g} records."
        )


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
