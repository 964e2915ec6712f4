"""Composition of mechanisms that are fixed in advance; every result is rounded to the private side.

Losses that are computed go up, parameters that may be used go down.

Proof: docs/theory/accounting.md, 2.8; docs/theory/mechanisms.md, 9.2.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from onlineic.accounting.rounding import _float_conversion, conversion, float_down, float_up
from onlineic.errors import InvalidParameterError, checked_integer, checked_real

LARGEST_COUNT = 10**6
SLACK = 2.0**-40  # relative; far above the rounding of the float formulas it covers

LARGEST_EPSILON = 600.0  # of `gaussian_delta`: its exponential is a number, and tails have their digits
LEAST_DELTA = 2.0**-1070  # which `gaussian_delta` adds, however small mu is: for the rounding near 0


def advanced_composition(epsilon: float, delta_prime: float, count: int) -> float:
    """Return sqrt(2k ln(1/d')) e + k e (exp(e) - 1), rounded up, for k mechanisms of epsilon each.

    Dwork & Roth (2014), Theorem 3.20.

    Args:
        epsilon: In (0, 700]. Of each mechanism.
        delta_prime: In (0, 1). The total delta is k times that of each mechanism plus delta_prime.
        count: At least 1. k, number of mechanisms, adaptive.
    """
    epsilon, delta_prime, count = _checked_parts(epsilon, delta_prime, count)
    with localcontext(Context(prec=60)):
        share, spread = Decimal(epsilon), (-2 * count * Decimal(delta_prime).ln()).sqrt()
        return float_up(spread * share + count * share * (share.exp() - 1))


def advanced_share(epsilon: float, delta_prime: float, count: int) -> float:
    """Return e0 = e / (2 sqrt(2k ln(1/d'))), rounded down, if k such mechanisms really cost <= e.

    Dwork & Roth (2014), Corollary 3.21, which states no upper limit on epsilon and delta_prime and
    is false without one: (10, .01, 1) costs 11.91. Hence the check.

    Args:
        epsilon, delta_prime, count: Total epsilon, the delta paid for composing, and k; ranges as in
            `advanced_composition`.

    Raises:
        InvalidParameterError: Also if Theorem 3.20 at e0 exceeds epsilon.
    """
    epsilon, delta_prime, count = _checked_parts(epsilon, delta_prime, count)
    with localcontext(Context(prec=60)):
        share = float_down(Decimal(epsilon) / (2 * (-2 * count * Decimal(delta_prime).ln()).sqrt()))
    cost = advanced_composition(share, delta_prime, count) if share <= 700.0 else math.inf
    if cost > epsilon:
        raise InvalidParameterError(
            f"epsilon must be small enough for Corollary 3.21, got epsilon={epsilon}, "
            f"delta_prime={delta_prime}, count={count}, which cost {cost:.4g}; "
            "use exact_share, or lower epsilon or delta_prime."
        )
    return share


def exact_delta(share: float, count: int, epsilon: float) -> float:
    """Return the least delta at which k pure mechanisms of e0 each are (epsilon, delta), rounded up.

    sum over j of Binom(k, j; p) max(0, 1 - exp(epsilon - L_j)) with L_j = e0 (2j - k) and
    p = e^e0 / (1 + e^e0): k randomised responses, the worst k pure mechanisms.

    Kairouz, Oh & Viswanath (2015), Theorem 3.3.

    Args:
        share: In [0, 300]. e0, epsilon of each mechanism.
        count: In [1, 10^6]. k, number of mechanisms, adaptive.
        epsilon: At least 0.
    """
    share = checked_real("share", share, at_least=0.0, at_most=300.0)
    count = checked_integer("count", count, at_least=1, at_most=LARGEST_COUNT)
    epsilon = checked_real("epsilon", epsilon, at_least=0.0)
    if Fraction(share) * count <= Fraction(epsilon):
        return 0.0
    j = max(0, math.floor((count + epsilon / share) / 2) - 1)  # the first term with L_j near epsilon
    miss = math.exp(-share)
    logs = [math.lgamma(count + 1), -math.lgamma(j + 1), -math.lgamma(count - j + 1)]
    logs += [-share * (count - j), -count * math.log1p(miss)]
    # Terms are kept relative to the first, whose logarithm may lie below the float range.
    first, ratio, total = math.fsum(logs), 1.0, 0.0
    while j <= count:
        loss = share * (2 * j - count)
        total += ratio * -math.expm1(min(0.0, epsilon - loss - abs(loss) * 2.0**-52))
        step = (count - j) / ((j + 1) * miss)
        if step < 0.5 and ratio < total * 2.0**-60:  # the rest is below 2^-59 of the total
            break
        ratio, j = ratio * step, j + 1
        if ratio > 1e150:
            first, total, ratio = first + math.log(ratio), total / ratio, 1.0
    if total == 0.0:
        return 0.0
    rounding = 2.0**-49 * (sum(abs(term) for term in logs) + count)  # lgamma is good to some ulp
    exact = math.exp(min(0.0, first + math.log(total) + rounding))
    return min(1.0, exact * (1 + SLACK) + math.ulp(0.0))  # below the least float too it is not 0


def exact_share(epsilon: float, delta: float, count: int) -> float:
    """Return the largest e0, rounded down, such that k mechanisms of e0 each are (epsilon, delta).

    Kairouz, Oh & Viswanath (2015), Theorem 3.3; it is never below Corollary 3.21 of Dwork & Roth.

    Args:
        epsilon: In (0, 200].
        delta: In [0, 1).
        count: In [1, 10^6]. k, number of mechanisms, adaptive.
    """
    epsilon = checked_real("epsilon", epsilon, above=0.0, at_most=200.0)
    delta = checked_real("delta", delta, at_least=0.0, below=1.0)
    count = checked_integer("count", count, at_least=1, at_most=LARGEST_COUNT)
    low = float_down(Fraction(epsilon) / count)
    if delta == 0.0:
        return low
    high = low
    while high < 300.0 and exact_delta(high, count, epsilon) <= delta:
        low, high = high, min(300.0, 2 * high)
    return _largest(lambda share: exact_delta(share, count, epsilon) <= delta, low, high)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return min over a > 1 of exp((a-1)(a rho - epsilon)) (1 - 1/a)^a / (a-1), rounded up.

    A pure e0 is (e0^2/2)-zCDP, Gaussian noise sigma at L2 sensitivity d is d^2/(2 sigma^2); rho adds.

    Canonne, Kamath & Steinke (2020), Proposition 12; every order a gives a valid bound. rho > 0, epsilon >=
    0.
    """
    rho = checked_real("rho", rho, above=0.0)
    epsilon = checked_real("epsilon", epsilon, at_least=0.0)
    order = _best_order(
        lambda less: -(less * ((1 + less) * rho - epsilon - math.log1p(1 / less)) - math.log1p(less))
    )
    with localcontext(Context(prec=60)):
        less, exact = Decimal(order) - 1, Decimal(order)
        exponent = less * (exact * Decimal(rho) - Decimal(epsilon) + (less / exact).ln()) - exact.ln()
        return min(1.0, max(math.ulp(0.0), float_up(min(exponent, Decimal(0)).exp())))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho, rounded down, such that rho-zCDP is (epsilon, delta).

    Canonne, Kamath & Steinke (2020), Proposition 12, solved for rho. epsilon > 0, delta in (0, 1).
    """
    epsilon = checked_real("epsilon", epsilon, above=0.0)
    delta = checked_real("delta", delta, above=0.0, below=1.0)
    order = _best_order(lambda less: (epsilon + _float_conversion(less, delta)) / (1 + less))
    with localcontext(Context(prec=60)):
        return float_down((Decimal(epsilon) + conversion(Fraction(order), delta)) / Decimal(order))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return nearly the least epsilon such that `zcdp_rho` of it and delta is rho: its inverse."""
    rho = checked_real("rho", rho, above=0.0)
    low = high = rho + 2.0 * math.sqrt(rho * -math.log(delta))  # Bun & Steinke (2016), Proposition 1.3
    while low > math.ulp(0.0) and zcdp_rho(low, delta) >= rho:
        low /= 2.0
    return _largest(lambda epsilon: zcdp_rho(epsilon, delta) < rho, low, high)


def zcdp_order(epsilon: float, delta: float) -> Fraction:
    """Return the Renyi order, a multiple of 1/64, whose filter pays for about the most Gaussian noise.

    The order at which Proposition 12 of Canonne, Kamath & Steinke (2020) is tight for `zcdp_rho`.
    """
    epsilon = checked_real("epsilon", epsilon, above=0.0)
    delta = checked_real("delta", delta, above=0.0, below=1.0)
    order = _best_order(lambda less: (epsilon + _float_conversion(less, delta)) / (1 + less))
    return Fraction(max(65, round(64 * order)), 64)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu), rounded up.

    The exact delta of Gaussian noise sigma at L2 sensitivity d, mu = d/sigma; mu^2 adds.

    Balle & Wang (2018), Theorem 8; Dong, Roth & Su (2022), Corollary 2.13. mu > 0, epsilon in [0, 600].
    """
    mu = checked_real("mu", mu, above=0.0)
    epsilon = checked_real("epsilon", epsilon, at_least=0.0, at_most=LARGEST_EPSILON)
    upper, lower = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    first = math.erfc(upper / math.sqrt(2)) / 2
    tail = math.erfc(lower / math.sqrt(2)) / 2
    second = math.exp(epsilon) * tail if tail > 1e-300 else 0.0  # a subnormal tail has lost its digits
    # An argument's relative error u moves its tail by up to (1 + x^2) u; a tail is 0 beyond x = 100.
    moved = first * (4 + min(upper * upper, 1e4)) + second * (4 + min(lower * lower, 1e4) + epsilon)
    rounding = 2.0**-50 * moved + LEAST_DELTA
    return min(1.0, max(first - second, 0.0) + rounding)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu, rounded down, whose Gaussian release is (epsilon, delta).

    One release of L2 sensitivity d then has sigma = d/mu, m equal ones sqrt(m) d/mu. Beyond 600 it is that of
    epsilon = 600, which is more private.

    Balle & Wang (2018), Theorem 8 (a fixed set of Gaussian releases; not a filter). delta in [2^-1070, 1).
    """
    epsilon = min(checked_real("epsilon", epsilon, above=0.0), LARGEST_EPSILON)
    delta = checked_real("delta", delta, at_least=LEAST_DELTA, below=1.0, remedy="raise it, or write 0")
    high = 1.0
    while gaussian_delta(high, epsilon) <= delta:
        high *= 2
    low = high
    while gaussian_delta(low, epsilon) > delta:
        low /= 2
    return _largest(lambda mu: gaussian_delta(mu, epsilon) <= delta, low, high)


def _checked_parts(epsilon: float, delta_prime: float, count: int) -> tuple[float, float, int]:
    """What Theorem 3.20 and its corollary take, inside its range."""
    return (
        checked_real("epsilon", epsilon, above=0.0, at_most=700.0),
        checked_real("delta_prime", delta_prime, above=0.0, below=1.0),
        checked_integer("count", count, at_least=1),
    )


def _best_order(value: Callable[[float], float]) -> float:
    """Order a that nearly maximises value(a - 1): grid in ln(a - 1), then golden section."""
    width = 0.1
    start = max((width * i for i in range(-90, 370)), key=lambda log: value(math.exp(log)))
    low, high = start - width, start + width
    for _ in range(40):
        left, right = high - (high - low) * 0.6180339887498949, low + (high - low) * 0.6180339887498949
        low, high = (low, right) if value(math.exp(left)) >= value(math.exp(right)) else (left, high)
    return 1 + math.exp((low + high) / 2)


def _largest(feasible: Callable[[float], bool], low: float, high: float) -> float:
    """Nearly largest feasible number: bisection from a feasible low, returns a feasible one."""
    while high - low > low * 2.0**-44:
        middle = (low + high) / 2
        low, high = (middle, high) if feasible(middle) else (low, middle)
    return low
