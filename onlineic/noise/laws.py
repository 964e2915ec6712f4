"""The laws of the noise as values: what is drawn, how widely it spreads, and radii that hold but for beta.

All of them live on the integers. Scales are in grid units, and so is all that comes out.
"""

import math
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.errors import checked_integer, checked_real
from onlineic.noise.sources import Noise

TILTS = np.geomspace(1e-5, 0.98, 96)  # at which Chernoff bounds of Laplace sums are tried, over 1/scale


@final
@attrs.frozen
class DiscreteLaplace:
    """P(z) = (1 - q)/(1 + q) q^|z| with q = e^(-1/scale): the law of `Noise.discrete_laplace`.

    Args:
        scale: Above 0.
    """

    scale: Fraction

    @property
    def deviation(self) -> float:
        """Standard deviation of the continuous law, never below that of the discrete one."""
        return math.sqrt(2.0) * float(self.scale)

    def draw(self, noise: Noise, size: int) -> Ints:
        """Return `size` fresh values."""
        return noise.discrete_laplace(self.scale, size)

    def tail(self, distance: int) -> float:
        """Return P(|Z| >= t) = 2 q^t/(1 + q) for t >= 1; half of it on each side."""
        distance = checked_integer("distance", distance, at_least=0)
        scale = _float_up(self.scale)
        return 1.0 if distance == 0 else 2 * math.exp(-distance / scale) / (1 + math.exp(-1 / scale))

    def radius(self, beta: float) -> int:
        """Return the least t >= 0 with P(|Z| > t) = 2 q^(t+1)/(1 + q) <= beta."""
        scale, beta = _float_up(self.scale), checked_beta(beta)
        guess = math.floor(scale * (math.log(2) - math.log(beta) - math.log1p(math.exp(-1 / scale)))) - 1
        radius = max(0, guess - 1)
        while self.tail(radius + 1) > beta:
            radius += 1
        return radius

    def sum_radius(self, weights: Floats, beta: float) -> float:
        """Return r with P(|sum w_i Z_i| > r) <= beta for independent values.

        Chernoff: r = (ln(2/beta) + sum ln M(t w_i)) / t with M(u) = (1-q)^2 / ((1 - q e^u)(1 - q e^-u)),
        at the best of some t: every t gives a valid bound.
        """
        beta = checked_beta(beta)
        weights = np.asarray(weights, np.float64)
        largest = float(np.abs(weights).max(initial=0.0))
        if largest == 0.0:
            return 0.0
        inverse = 1.0 / float(self.scale)  # M is finite below it
        least = math.inf
        for share in np.linspace(0.02, 0.98, 49):
            tilt = share * inverse / largest
            least = min(least, (math.log(2.0 / beta) + float(self.log_moments(tilt * weights).sum())) / tilt)
        return least * (1.0 + 1e-9)

    def log_moments(self, tilts: Floats) -> Floats:
        """Return ln E e^(uZ) for tilts u between -1/scale and 1/scale, an array of any shape."""
        inverse = 1.0 / float(self.scale)
        # -ln(1 - q e^u) + ln(1 - q), stable for small 1/scale
        found: Floats = 2.0 * np.log(-np.expm1(-inverse)) - np.log(
            np.expm1(tilts - inverse) * np.expm1(-tilts - inverse)
        )
        return found

    def excess_radius(self, threshold: int, count: int, beta: float, sides: int = 1) -> float:
        """Return r with P(sum of (Z_i - t)_+ > r) <= beta for independent values and a threshold t >= 0.

        Of two `sides` it is the sum of (|Z_i| - t)_+. Chernoff with E e^(u (Z - t)_+) = 1 + q^(t+1)/(1 + q)
        (e^u - 1)/(1 - q e^u), the excess twice for two sides, at the best of some u: every u is valid.
        """
        beta, count = checked_tail(beta, count)
        threshold = checked_integer("threshold", threshold, at_least=0)
        sides = checked_integer("sides", sides, at_least=1, at_most=2)
        scale = _float_up(self.scale)
        tilts = np.minimum(TILTS / scale, 500.0)  # e^u of more is no number
        over = sides * math.exp(-(threshold + 1) / scale) / (1.0 + math.exp(-1.0 / scale))
        moments = np.log1p(over * np.expm1(tilts) / -np.expm1(tilts - 1.0 / scale))
        return float(((math.log(1.0 / beta) + count * moments) / tilts).min()) * (1.0 + 1e-9)


@final
@attrs.frozen
class DiscreteGaussian:
    """P(z) proportional to e^(-z^2/(2 sigma^2)): the law of `Noise.discrete_gaussian`.

    Args:
        sigma: At least 1.
    """

    sigma: int

    @property
    def deviation(self) -> float:
        """Standard deviation of the continuous law, never below that of the discrete one."""
        return float(self.sigma)

    def draw(self, noise: Noise, size: int) -> Ints:
        """Return `size` fresh values."""
        return noise.discrete_gaussian(self.sigma, size)

    def radius(self, beta: float) -> int:
        """Return t = ceil(sigma z) with P(|Z| > t) <= beta, z the normal quantile at 1 - beta/2.

        Each term beyond t lies below the integral over the unit before it, and the discrete normaliser is
        above the continuous one.
        """
        return math.ceil(max(0.0, self.sigma * normal_quantile(checked_beta(beta) / 2.0) * (1.0 + 1e-12)))

    def sum_radius(self, weights: Floats, beta: float) -> float:
        """Return r with P(|sum w_i Z_i| > r) <= beta for independent values: the lesser of two bounds.

        sigma |w|_2 sqrt(2 ln(2/beta)), since Z is sub-Gaussian with its own scale; and the normal quantile
        sigma |w|_2 z(beta e^(-m/(24 sigma^2))/2) + |w|_1/2 for m weights that are not 0, since P(Z = z) is
        at most e^(1/(24 sigma^2)) times the probability that a normal value rounds to z (theory 6.2a).
        """
        beta, weights = checked_beta(beta), np.asarray(weights, np.float64)
        norm = self.sigma * math.sqrt(float(weights @ weights))
        least = norm * math.sqrt(2.0 * math.log(2.0 / beta))
        tail = beta / 2.0 * math.exp(-np.count_nonzero(weights) / (24.0 * self.sigma**2))
        if tail > 1e-300:
            rounded = float(np.abs(weights).sum()) / 2.0
            least = min(least, norm * normal_quantile(tail) * (1.0 + 1e-12) + rounded)
        return least


@final
@attrs.frozen
class Geometric:
    """P(z) = (1 - q) q^z, z >= 0, with q = e^(-1/scale): the law of `Noise.geometric`.

    Args:
        scale: Above 0.
    """

    scale: Fraction

    @property
    def mean(self) -> float:
        """1/(e^(1/scale) - 1)."""
        return 1.0 / math.expm1(1.0 / self.scale)

    @property
    def deviation(self) -> float:
        """sqrt(q)/(1 - q)."""
        return math.exp(-0.5 / self.scale) / -math.expm1(-1.0 / self.scale)


def normal_quantile(tail: float) -> float:
    """Return z with P(N(0, 1) > z) = tail."""
    from statistics import NormalDist  # 5 ms of import time

    return -NormalDist().inv_cdf(tail)


def checked_beta(beta: float) -> float:
    """Checked failure probability."""
    return checked_real("beta", beta, above=0.0, below=1.0)


def checked_tail(beta: float, count: int) -> tuple[float, int]:
    """Return (beta, count) inside their ranges."""
    return checked_beta(beta), checked_integer("count", count, at_least=1)


def _float_up(scale: Fraction) -> float:
    """Return the least float that is not below a scale: radii and tails never a hair too small."""
    near = checked_real("scale", scale, above=0.0)
    return near if near >= scale else math.nextafter(near, math.inf)
