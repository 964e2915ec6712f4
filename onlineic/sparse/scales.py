"""Scales and predicted margins of `GumbelSparse` and `ExponentialSparse`, for planning: floats, in counts.

Nothing here decides what is private: the classes round every scale up and price it exactly.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.bounds import Margins
from onlineic.errors import InfeasibleAccuracyError, checked_integer, checked_real

__all__ = [
    "GumbelScale",
    "exponential_margins",
    "exponential_resolution",
    "exponential_scales",
    "gumbel_margins",
    "gumbel_resolution",
    "gumbel_scale",
    "hits_paid",
]

GUMBEL_FALSE_HITS = 0.2  # tolerated false hits for each planned true one
EXPONENTIAL_FALSE_HITS = 0.05
RATIO = 2.0  # sigma / b: the fresh answer then costs 8 % of b


@final
@attrs.frozen
class GumbelScale:
    """Least Gumbel scale that pays for a number of hard answers, and the Renyi order that allows it.

    Attributes
    ----------
    scale : float
        b, counts.
    order : float
        alpha.
    """

    scale: float
    order: float


def hits_paid(hard_answers: int, false_hits: float) -> int:
    """Return c' = ceil(c (1 + rho)): planned true hard answers and the tolerated false ones."""
    return math.ceil(hard_answers * (1.0 + false_hits) - 1e-9)


@lru_cache(maxsize=4096)
def gumbel_scale(
    count: int,
    epsilon: float,
    delta: float,
    *,
    ratio: float = RATIO,
    squared_sensitivity: float = 1.0,
    reserved: float = 0.0,
) -> GumbelScale:
    """Return the least b with count * charge(alpha; 1, b, ratio b, L) <= (1 - reserved) R(alpha), and alpha.

    Parameters
    ----------
    count : int, >= 1
        c', hard answers that must be payable.
    epsilon : float, > 0
    delta : float, in (0, 1)
    ratio : float, > 0
        sigma / b of the fresh answer; inf for none.
    squared_sensitivity : float, > 0
        L in counts^2: 1 for a number, 2 for a partition.
    reserved : float, in [0, 1)
        Share of the capacity kept for other releases of the same filter.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.
    InfeasibleAccuracyError
        If epsilon is so small that no order up to 10^5 has any capacity.

    References
    ----------
    Calibrates the session-wide Renyi filter that stands in for Theorem 3.28 of Dwork & Roth (2014). The
    order is searched on 400 points of ln(alpha - 1) in [ln 1e-3, ln 1e5], then between neighbours.
    """
    count = checked_integer("count", count, at_least=1)
    epsilon = checked_real("epsilon", epsilon, above=0.0)
    delta = checked_real("delta", delta, above=0.0, below=1.0)
    ratio = checked_real("ratio", ratio, above=0.0) if ratio != math.inf else math.inf
    squared = checked_real("squared_sensitivity", squared_sensitivity, above=0.0) / ratio**2
    reserved = checked_real("reserved", reserved, at_least=0.0, below=1.0)
    low, high = math.log(1e-3), math.log(1e5)
    for _ in range(4):
        grid = np.linspace(low, high, 400)
        scales = _least_scales(np.exp(grid), count, epsilon, delta, squared, reserved)
        best = int(np.argmin(scales))
        low, high = grid[max(0, best - 1)], grid[min(399, best + 1)]
    if not math.isfinite(scales[best]):
        raise InfeasibleAccuracyError(
            f"epsilon must be larger for delta={delta}, got epsilon={epsilon}: no Renyi order up to 1e5 "
            "has any capacity; raise epsilon or delta."
        )
    return GumbelScale(float(scales[best]), 1.0 + math.exp(grid[best]))


def scale_at_order(
    order: float, count: int, epsilon: float, delta: float, squared: float, reserved: float
) -> float:
    """The least b at one order; `squared` is L / ratio^2."""
    return float(_least_scales(np.array([order - 1.0]), count, epsilon, delta, squared, reserved)[0])


def ratio_at_scale(
    order: float, scale: float, count: int, epsilon: float, delta: float, squared: float, reserved: float
) -> float:
    """The least sigma / b with count * charge = capacity at a scale with room to spare; L = squared."""
    less, eta = order - 1.0, 1.0 / scale
    test = -eta - math.log1p(-less * math.expm1(eta)) / less
    left = _capacity(np.array([less]), epsilon, delta).item() * (1.0 - reserved) / count - test
    return math.sqrt(order * squared / (2.0 * left)) / scale


def _capacity(less: Floats, epsilon: float, delta: float) -> Floats:
    """R at the orders 1 + less, not below 0."""
    return np.maximum(epsilon + np.log1p(1.0 / less) + (math.log(delta) + np.log1p(less)) / less, 0.0)


def _least_scales(
    less: Floats, count: int, epsilon: float, delta: float, squared: float, reserved: float
) -> Floats:
    """Root b of count * charge = capacity for each alpha - 1; inf where there is no capacity.

    Newton's method in eta = 1/b from above the root: the charge is increasing and convex in eta, and at
    least alpha (eta^2/2)(1 + squared), so the iterates fall to the root.
    """
    order = 1.0 + less
    share = _capacity(less, epsilon, delta) * (1.0 - reserved) / count
    pole = np.log1p(1.0 / less)  # x = 1
    eta = np.minimum(np.sqrt(2.0 * share / (order * (1.0 + squared))), pole * (1.0 - 1e-12))
    for _ in range(100):
        free = 1.0 - less * np.expm1(eta)
        value = -eta - np.log(free) / less + order * squared * eta**2 / 2.0 - share
        slope = -1.0 + np.exp(eta) / free + order * squared * eta
        step = np.divide(value, slope, out=np.zeros_like(eta), where=eta > 0.0)
        eta = np.clip(eta - step, 0.0, pole * (1.0 - 1e-12))
        if np.all(np.abs(step) <= 1e-15 * eta):
            break
    with np.errstate(divide="ignore"):
        return 1.0 / eta


def gumbel_margins(
    *, n: int, max_queries: int, epsilon: float, delta: float, beta: float = 0.05, ratio: float = RATIO
) -> Margins:
    """Return c -> (a_hit, a_miss, a_num) of `GumbelSparse` calibrated for c hard answers, fractions.

    a_hit = b ln(Q/(.8 beta)), a_miss = b ln ln(Q/(.1 beta)), a_num = ratio b z with z the normal quantile
    at 1 - .1 beta/(2c). Continuous noise: on a grid add one unit to each.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.

    References
    ----------
    Tails of one Gumbel variable per test, by a union over Q tests; Theorem 5.14 of Dwork & Roth (2014)
    with these margins in place of its alpha.
    """
    n, (beta, tests) = checked_integer("n", n, at_least=1), checked_tail(beta, max_queries)

    def margins(cutoff: int) -> tuple[float, float, float]:
        cutoff = checked_integer("cutoff", cutoff, at_least=1)
        scale = gumbel_scale(cutoff, epsilon, delta, ratio=ratio).scale / n
        return (
            scale * math.log(tests / (0.8 * beta)),
            scale * math.log(math.log(tests / (0.1 * beta))),
            scale * ratio * normal_quantile(0.1 * beta / (2 * cutoff)),
        )

    return margins


def exponential_scales(count: int, epsilon: float) -> tuple[float, float]:
    """Return (b1, b2), counts: threshold and test scale with 1/b1 + 2 count/b2 = epsilon.

    Split 1 : (2 count)^(2/3) between one threshold and all hits: within 2 % of the best.

    Parameters
    ----------
    count : int, >= 1
        c', hard answers that must be payable.
    epsilon : float, > 0

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.
    """
    count = checked_integer("count", count, at_least=1)
    epsilon = checked_real("epsilon", epsilon, above=0.0)
    weight = (2.0 * count) ** (2.0 / 3.0)
    threshold_part = epsilon / (1.0 + weight)
    return 1.0 / threshold_part, 2.0 * count / (threshold_part * weight)


def exponential_margins(*, n: int, max_queries: int, epsilon: float, beta: float = 0.05) -> Margins:
    """Return c -> (a_hit, a_miss, a_num) of `ExponentialSparse` calibrated for c hard answers, fractions.

    a_hit = b2 ln(2 Q b2/((b1 + b2) .95 beta)), a_miss = b1 ln(1/(.05 beta)) for all tests at once, and
    a_num for the free gap centred at its mean. Continuous noise: on a grid add one unit to each.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.

    References
    ----------
    The test noise is fresh and the kept threshold noise one-sided, so both tails hold for every adaptive
    analyst: a hit needs nu >= a + rho, whatever is known of rho; an easy answer needs rho > a.
    """
    n, (beta, tests) = checked_integer("n", n, at_least=1), checked_tail(beta, max_queries)

    def margins(cutoff: int) -> tuple[float, float, float]:
        b1, b2 = exponential_scales(checked_integer("cutoff", cutoff, at_least=1), epsilon)
        hit = b2 * math.log(2.0 * tests * b2 / ((b1 + b2) * 0.95 * beta))
        miss = b1 * math.log(1.0 / (0.05 * beta))
        centre = b2 - b1
        return hit / n, miss / n, max(hit - centre, miss + centre) / n

    return margins


def gumbel_resolution(hard_answers: int, max_queries: int, epsilon: float, delta: float) -> float:
    """Return G, counts: a gap that is found with 95 % at the threshold of few false hits (default choice).

    G = b (ln(k/(.2 c)) + ln ln 20), b calibrated for ceil(1.2 c) hard answers.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.
    """
    hard_answers = checked_integer("hard_answers", hard_answers, at_least=1)
    count = hits_paid(hard_answers, GUMBEL_FALSE_HITS)
    tests = checked_integer("max_queries", max_queries, at_least=1)
    scale = gumbel_scale(count, epsilon, delta).scale
    return scale * (math.log(tests / (GUMBEL_FALSE_HITS * hard_answers)) + math.log(math.log(20.0)))


def exponential_resolution(hard_answers: int, max_queries: int, epsilon: float) -> float:
    """Return the same G of `ExponentialSparse`, counts.

    G = T + b1 ln(b1/((b1 + b2) .05)) with T = b2 ln(2 k b2/((b1 + b2) .05 c)), calibrated for
    ceil(1.05 c) hard answers.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.
    """
    hard_answers = checked_integer("hard_answers", hard_answers, at_least=1)
    count = hits_paid(hard_answers, EXPONENTIAL_FALSE_HITS)
    tests = checked_integer("max_queries", max_queries, at_least=1)
    b1, b2 = exponential_scales(count, epsilon)
    threshold = b2 * math.log(2.0 * tests * b2 / ((b1 + b2) * EXPONENTIAL_FALSE_HITS * hard_answers))
    missed = b1 / ((b1 + b2) * 0.05)  # P(rho - nu > x) = (b1/(b1 + b2)) e^(-x/b1)
    return threshold + (b1 * math.log(missed) if missed >= 1.0 else b2 * math.log(0.95 * (b1 + b2) / b2))


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
