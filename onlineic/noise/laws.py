"""noise.laws."""

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.errors import checked_integer, checked_real
from onlineic.noise.sources import Noise

__all__ = ["Choice", "Law", "Name", "laplace_sum_quantile"]

EXACT_SUPPORTS = 16


Name = Literal["laplace", "gaussian"]


Choice = Literal["laplace", "gaussian", "best"]


@final
@attrs.frozen
class Law:
    """One discrete law, drawn independently for every released number.

    Attributes
    ----------
    name : "laplace" or "gaussian"
    scale : Fraction
        In grid units; an integer for the Gaussian law.
    grid_bits : int
        A grid unit is 2^-grid_bits counts.
    """

    name: Name
    scale: Fraction
    grid_bits: int

    @property
    def deviation(self) -> float:
        """Standard deviation in counts of the continuous law, never below that of the discrete one."""
        unit = math.ldexp(float(self.scale), -self.grid_bits)
        return unit * math.sqrt(2.0) if self.name == "laplace" else unit

    def draw(self, noise: Noise, size: int) -> Ints:
        """Return `size` values in grid units."""
        if self.name == "laplace":
            return noise.discrete_laplace(self.scale, size)
        return noise.discrete_gaussian(int(self.scale), size)

    def radius(self, beta: float) -> float:
        """Return r in counts with P(|Z| > r) <= beta for one value Z.

        Laplace: Z is the difference of two geometrics, P(|Z| > t) = 2 q^(t+1)/(1+q) with q = e^(-1/s).
        Gaussian: the lattice sum beyond t is at most the integral from t on.
        """
        scale = float(self.scale)
        if self.name == "laplace":
            steps = scale * (math.log(2.0 / beta) - math.log1p(math.exp(-1.0 / scale))) - 1.0
        else:
            steps = -scale * NormalDist().inv_cdf(beta / 2.0)
        return math.ldexp(max(0, math.ceil(steps)), -self.grid_bits)

    def sum_radius(self, beta: float, squares: float, support: int | None, cells: int) -> float:
        """Return r in counts with P(|sum of w_i Z_i| > r) <= beta for centred weights of one query.

        Parameters
        ----------
        squares : float
            Sum of w_i^2.
        support : int or None
            s, if the query's weights are 1 on s cells and 0 elsewhere, so that w is 1 - s/C or -s/C.
        cells : int
            C, the number of values.

        References
        ----------
        Gaussian: exact. Laplace on 0/1 queries: `laplace_sum_quantile`, at the worse of the two supports
        around s that are solved for. Laplace otherwise: Bernstein's inequality for sub-gamma variables
        (Boucheron, Lugosi & Massart 2013, section 2.4), since ln E e^(tZ) <= (t b)^2/(1 - t b).
        Discrete values differ from continuous ones by less than a grid unit each: geometric is the floor
        of exponential, so that the sum moves by at most sum |w_i| <= sqrt(C squares).
        """
        if squares <= 0.0:
            return 0.0
        spread = self.deviation * math.sqrt(squares)
        if self.name == "gaussian":
            wide = -NormalDist().inv_cdf(beta / 2.0)
        elif support is None:
            logs = math.log(2.0 / beta)
            wide = math.sqrt(2.0 * logs) + logs / math.sqrt(2.0 * squares)
        else:
            low, high = _neighbours(min(support, cells - support), cells)
            wide = max(laplace_sum_quantile(s, cells, beta) for s in (low, high))
        return spread * wide + math.ldexp(math.sqrt(cells * squares), -self.grid_bits)


def _neighbours(support: int, cells: int) -> tuple[int, int]:
    """Supports around s at which the quantile is solved for: it lies between theirs."""
    if support <= EXACT_SUPPORTS:
        return support, support
    low = 1 << (support.bit_length() - 1)
    return low, min(2 * low, cells // 2)


@lru_cache(maxsize=4096)
def laplace_sum_quantile(support: int, cells: int, beta: float) -> float:
    """Return x with P(|X| > x sd) = beta, X = (1 - s/C) (sum of s Laplace) - (s/C) (sum of C - s Laplace).

    Parameters
    ----------
    support, cells : int, 1 <= s < C
    beta : float, in (0, 1)

    References
    ----------
    Inversion of the characteristic function prod 1/(1 + (w_i t)^2) (Gil-Pelaez 1951) by the trapezoid
    rule at steps of 0.05 sd, whose error is a mass beyond 100 sd.
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


def discrete_laplace_tail(distance: int, scale: float) -> float:
    """Return P(|Z| >= t) = 2 q^t/(1 + q) for t >= 1, q = e^(-1/s); half of it on each side.

    References
    ----------
    Summed from P(z) = (1 - q)/(1 + q) q^|z|, the law of `Noise.discrete_laplace`.
    """
    steps = _ratio(checked_integer("distance", distance, at_least=0), scale)
    return 1.0 if distance == 0 else 2 * math.exp(-steps) / (1 + math.exp(-1 / float(scale)))


def discrete_laplace_radius(scale: float, beta: float) -> int:
    """Return the least t >= 0 with P(|Z| > t) = 2 q^(t+1)/(1 + q) <= beta, q = e^(-1/s).

    References
    ----------
    Inverse of `discrete_laplace_tail`.
    """
    scale, beta = checked_real("scale", scale, above=0.0), checked_beta(beta)
    guess = math.floor(scale * (math.log(2) - math.log(beta) - math.log1p(math.exp(-1 / scale)))) - 1
    radius = max(0, guess - 1)
    while discrete_laplace_tail(radius + 1, scale) > beta:
        radius += 1
    return radius


def _ratio(distance: float, scale: float) -> float:
    """Checked t/s."""
    return checked_real("distance", distance, at_least=0.0) / checked_real("scale", scale, above=0.0)


def checked_beta(beta: float) -> float:
    """Checked failure probability."""
    return checked_real("beta", beta, above=0.0, below=1.0)


def laplace_sum_radius(scale: Fraction, weights: Floats, beta: float) -> float:
    """Return r with P(|sum w_i Z_i| > r) <= beta for independent discrete Laplace noises of one scale.

    Chernoff: r = (ln(2/beta) + sum ln M(t w_i)) / t with M(u) = (1-q)^2 / ((1 - q e^u)(1 - q e^-u)),
    q = e^(-1/scale), at the best of some t: every t gives a valid bound.
    """
    beta = checked_real("beta", beta, above=0.0, below=1.0)
    weights = np.asarray(weights, np.float64)
    largest = float(np.abs(weights).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    inverse = 1.0 / float(scale)  # M is finite below it
    least = math.inf
    for share in np.linspace(0.02, 0.98, 49):
        tilt = share * inverse / largest
        tilted = tilt * weights
        # -ln(1 - q e^u) + ln(1 - q), stable for small 1/scale
        moments = 2.0 * np.log(-np.expm1(-inverse)) - np.log(
            np.expm1(tilted - inverse) * np.expm1(-tilted - inverse)
        )
        least = min(least, (math.log(2.0 / beta) + float(moments.sum())) / tilt)
    return least * (1.0 + 1e-9)


def normal_quantile(tail: float) -> float:
    """Return z with P(N(0, 1) > z) = tail."""
    from statistics import NormalDist  # 5 ms of import time

    return -NormalDist().inv_cdf(tail)


def checked_tail(beta: float, count: int) -> tuple[float, int]:
    """Return (beta, count) inside their ranges."""
    return checked_real("beta", beta, above=0.0, below=1.0), checked_integer("count", count, at_least=1)
