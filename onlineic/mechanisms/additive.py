"""One-shot releases: Laplace, Gaussian, and the selection of a best candidate. Exact integers in and out.

Values and scores are integers in grid units, 1/(n 2^k) of a fraction; a query with weights in [0, 1] has
sensitivity 2^k of them. Scales are exact rationals, rounded up.

Proof: docs/theory/mechanisms.md, 9.1.
"""

import math
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import gaussian_delta, gaussian_mu, zcdp_rho
from onlineic.errors import checked_integer, checked_real, set_fields
from onlineic.mechanisms.selection import checked_epsilon, checked_sensitivity, exact_integers
from onlineic.noise.laws import DiscreteGaussian, DiscreteLaplace
from onlineic.noise.sources import SIGMA_LIMIT, Noise, checked_source, scale_at_least

SUMMED_SIGMA = 4096  # up to here delta is summed term by term


@final
@attrs.frozen
class LaplaceMechanism:
    """S + Z with P(z) proportional to exp(-|z| epsilon/sensitivity) is (epsilon, 0)-private.

    Dwork & Roth (2014), Definition 3.3 and Theorem 3.6, with discrete Laplace noise on the integer grid.

    Args:
        epsilon: In (0, 20]. Of one release, all its values together.
        sensitivity: At least 1. L1, grid units: 2^k for one query, m 2^k for m queries at once, 2^(k+1) for a
            partition.

    Attributes:
        scale: sensitivity/epsilon, rounded up to what the sampler can draw.
    """

    epsilon: float = attrs.field(converter=checked_epsilon)
    sensitivity: int = attrs.field(default=1, converter=checked_sensitivity)
    scale: Fraction = attrs.field(init=False)

    @scale.default
    def _scale(self) -> Fraction:
        return scale_at_least(self.sensitivity / Fraction(self.epsilon))

    def release(self, values: int | Ints, noise: Noise) -> Ints:
        """Return the values (PRIVATE; an int or (m,) int64) plus fresh noise, (m,) int64."""
        exact = exact_integers("values", values)
        return exact + checked_source(noise).discrete_laplace(self.scale, exact.size)

    def tail(self, distance: int) -> float:
        """Return P(|Z| > t) = 2 q^(t+1)/(1 + q), q = e^(-1/scale), exactly, for one value.

        Raises:
            InvalidParameterError: If `distance` is not an integer >= 0.
        """
        return DiscreteLaplace(self.scale).tail(checked_integer("distance", distance, at_least=0) + 1)

    def radius(self, beta: float, count: int = 1) -> int:
        """Return the least t with count P(|Z| > t) <= beta, grid units: all of `count` values are within t.

        For one value and a scale of many units it is ln(1/beta) sensitivity/epsilon, see `laplace_bound`;
        near scale 1 that formula is visibly wrong.
        """
        beta = checked_real("beta", beta, above=0.0, below=1.0)
        return DiscreteLaplace(self.scale).radius(beta / checked_integer("count", count, at_least=1))


@final
@attrs.frozen
class GaussianMechanism:
    """S + Z with P(z) proportional to exp(-z^2/(2 sigma^2)) is (epsilon, delta)-private.

    Balle & Wang (2018), Theorem 8, for the first guess; Canonne, Kamath & Steinke (2020), Theorem 7 (exact
    for one value) and Proposition 5 with 12 (several values). The discrete law is not always as private as
    the continuous one of the same sigma, hence the check. Theorem A.1 of Dwork & Roth (2014) needs epsilon <
    1.

    Args:
        epsilon: In (0, 20].
        delta: In [1e-200, 1).
        sensitivity: At least 1. How far one record moves a value, grid units.
        moved: At least 1. How many values one record can move: 1 for a query, 2 for a partition, m for m
            queries.

    Attributes:
        sigma: Grid units. moved = 1: sensitivity/mu with the exact mu, rounded up, and raised until
            `discrete_gaussian_delta` <= delta. moved > 1: sensitivity sqrt(moved/(2 rho)), rounded up.

    Raises:
        InvalidParameterError: If a parameter is outside its range, or sigma would exceed 2^26.
    """

    epsilon: float
    delta: float
    sensitivity: int = 1
    moved: int = 1
    sigma: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        budget = Budget(self.epsilon, self.delta)
        delta = checked_real("delta", budget.delta, at_least=1e-200, remedy="delta=0 needs LaplaceMechanism")
        units = checked_integer("sensitivity", self.sensitivity, at_least=1, at_most=SIGMA_LIMIT)
        moved = checked_integer("moved", self.moved, at_least=1)
        if moved == 1:
            sigma = _least_sigma(units / Fraction(gaussian_mu(budget.epsilon, delta)))
            while discrete_gaussian_delta(sigma, units, budget.epsilon) > delta:
                sigma = _least_sigma(Fraction(sigma + max(1, sigma >> 12)))
        else:
            square = moved * units**2 / (2 * Fraction(zcdp_rho(budget.epsilon, delta)))
            root = math.isqrt(math.ceil(square) - 1) + 1  # ceil of the square root
            sigma = _least_sigma(Fraction(root))
        set_fields(self, epsilon=budget.epsilon, delta=delta, sensitivity=units, moved=moved, sigma=sigma)

    def release(self, values: int | Ints, noise: Noise) -> Ints:
        """Return the values (PRIVATE; an int or (m,) int64) plus fresh noise, (m,) int64.

        With moved = 1 only one value is one release.
        """
        exact = exact_integers("values", values)
        return exact + checked_source(noise).discrete_gaussian(self.sigma, exact.size)

    def radius(self, beta: float, count: int = 1) -> int:
        """Return t with P(some of `count` values is off by more than t) <= beta, grid units."""
        beta = checked_real("beta", beta, above=0.0, below=1.0)
        return DiscreteGaussian(self.sigma).radius(beta / checked_integer("count", count, at_least=1))


def discrete_gaussian_delta(sigma: int, shift: int, epsilon: float) -> float:
    """Return sum over x of max(0, p(x) - exp(epsilon) p(x + shift)), rounded up.

    p(x) is proportional to exp(-x^2/(2 sigma^2)) on the integers. It is the delta of one release whose
    sensitivity is `shift`: Canonne, Kamath & Steinke (2020), Theorem 7. Above sigma = 4096 the sum is bounded
    by the integral, `gaussian_delta`, plus the largest term (theory 9.2).

    Args:
        sigma: In [1, 2^26].
        shift: At least 1. Grid units.
        epsilon: In (0, 600].
    """
    sigma = checked_integer("sigma", sigma, at_least=1, at_most=SIGMA_LIMIT)
    shift = checked_integer("shift", shift, at_least=1)
    epsilon = checked_real("epsilon", epsilon, above=0.0, at_most=600.0)
    start = epsilon * sigma / shift * sigma - shift / 2  # the terms are positive from here on
    if sigma > SUMMED_SIGMA:
        largest = math.exp(-0.5 * (max(start, 0.0) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
        if start > 0:  # max over y of y shift/sigma^2 exp(-start y/sigma^2)
            largest *= min(1.0, shift / (math.e * start))
        return min(1.0, gaussian_delta(shift / sigma * (1 + 2.0**-50), epsilon) + largest * (1 + 2.0**-30))
    first = math.floor(start) - 1
    if first > 37 * sigma:  # beyond: less than the least normal float
        return 1e-290
    x = np.arange(max(first, -40 * sigma), 40 * sigma + 1, dtype=np.float64)
    here, there = -0.5 * (x / sigma) ** 2, epsilon - 0.5 * ((x + shift) / sigma) ** 2
    gains = np.where(there < here, np.exp(here) * -np.expm1(np.minimum(there - here, 0.0)), 0.0)
    whole = np.exp(-0.5 * (np.arange(-40 * sigma, 40 * sigma + 1) / sigma) ** 2).sum()
    return min(1.0, float(gains.sum() / whole) * (1 + 2.0**-30) + 1e-290)


def _least_sigma(sigma: Fraction) -> int:
    """Least integer not below, within the sampler's range."""
    return checked_integer(
        "sigma", math.ceil(sigma), at_least=1, at_most=SIGMA_LIMIT, remedy="lower grid_bits"
    )
