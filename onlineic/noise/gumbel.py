"""Exact decisions of tests with Gumbel noise, as a pure function of uniform words.

A test with hazard e^x, x = (d - T)/b rational, is easy with probability p(x) = exp(-e^x). With U
uniform on [0, 1) it fires iff U >= p(x). One 64-bit word holds the first 64 bits of U; a float
filter with a proven margin decides all but a fraction 2^-40 of the words, and interval arithmetic
on the SAME bits decides the rest. A fresh coin for an undecided word would be biased: the word is
undecided because of its value.

The error of the float part is proven, not measured:

* `exp_ieee` has relative error < 2^-47 (`onlineic.noise.exp`).
* numerator and denominator are exact below 2^53, so x has one rounding; with |x| <= 60 the computed
  p is within 2^-46 of p(x), clipping x to [-60, 6] moves p by < 1e-25, and the sums round by 2^-53.
  The margin 2^-42 is 15 times what is needed.
* The series 1 - x + x^2/2 - .16 x^3 + .04 x^4 is below e^-x for x < 0, and rounds by less than 2^-48 of
  itself with x: where it says 1 - U - margin > 1/series, U < 1 - e^x < p(x), half the margin to spare.

Proof: docs/theory/noise.md, 3.5.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from onlineic._typing import Ints, Words
from onlineic.errors import InternalError
from onlineic.noise.exp import decay_bounds, exp_down, exp_ieee, exp_ieee_one, exp_up

MARGIN = 2.0**-42
GUARD = 32  # extra bits of the interval beyond those of U
SCALE_LIMIT = 2**46  # 64 (t + s) must stay below 2^53


More = Callable[[], int]


def screen(words: Words, numerators: Ints, denominator: Fraction, margin: float = MARGIN) -> Ints:
    """Decide lanes by the float filter: 1 fires, 0 easy, -1 undecided (ask `fires_exactly`).

    Args:
        words: Shape (m,). First 64 bits of each lane's uniform.
        numerators: Shape (m,). d - T of each lane, grid units.
        denominator: Above 0. Scale b = t/s, grid units; t and s below 2^46.
        margin: At least 2^-42. Larger values only send more lanes to the exact path (tests).
    """
    t, s = denominator.numerator, denominator.denominator
    _check_scale(t, s)
    reach = -(-t // s)
    # Clamped before the product with s, which would wrap at n = 2^39 and s = 2^16.
    x = (np.clip(numerators, -64 * reach, 8 * reach) * s) / float(t)
    p = exp_ieee(-exp_ieee(np.clip(x, -60.0, 6.0)))
    u = (words >> np.uint64(11)) * 2.0**-53
    verdict = np.full(u.shape, -1, dtype=np.int64)
    verdict[u >= p + margin] = 1
    verdict[u + 2.0**-53 <= p - margin] = 0
    return verdict


def fires_one(word: int, numerator: int, denominator: Fraction, more: More, margin: float = MARGIN) -> bool:
    """Decide one test: the decision of `screen` and `fires_exactly` on the same bits, without arrays."""
    t, s = denominator.as_integer_ratio()
    if not (0 < t < SCALE_LIMIT and s < SCALE_LIMIT):  # as it asks itself: of each test, without a call
        _check_scale(t, s)
    x = numerator * s / t  # whole numbers of Python do not wrap: clipped after the product
    u = (word >> 11) * 2.0**-53
    # p > 1 - e^x, and e^-x is above its series: of most tests this decides, without an exponential
    if x < 0.0 and (1.0 - u - margin) * (1.0 - x * (1.0 - x * (0.5 - x * (0.16 - x * 0.04)))) > 1.0:
        return False
    p = exp_ieee_one(-exp_ieee_one(-60.0 if x < -60.0 else 6.0 if x > 6.0 else x))
    if u >= p + margin:
        return True
    if u + 2.0**-53 <= p - margin:
        return False
    return fires_exactly(word, numerator, denominator, more)


def fires_exactly(word: int, numerator: int, denominator: Fraction, more: More) -> bool:
    """Compare U with p(x) in integers, 64 more bits of U at a time; ends with probability 1."""
    x = numerator / denominator
    drawn, bits = word, 64
    while True:
        low, high = silence_bounds(x, bits + GUARD)
        if drawn << GUARD >= high:
            return True
        if (drawn + 1) << GUARD <= low:
            return False
        drawn, bits = drawn << 64 | more(), bits + 64


def silence_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low <= 2^bits exp(-e^x) <= high; directed rounding throughout.

    Args:
        x: Any size, either sign.
        bits: At least 1. Fixed-point bits.
    """
    if x >= 64:  # e^64 > bits, so p < 2^-bits
        return 0, 1
    one = 1 << bits
    if x >= 0:
        units = x.numerator << bits
        rate_low = exp_down(units // x.denominator, bits)
        rate_high = exp_up(-(-units // x.denominator), bits)
    else:
        rate_low, rate_high = decay_bounds(-x, bits)
    if rate_low >= bits << bits:  # e^-bits < 2^-bits
        return 0, 1
    return (one << bits) // exp_up(rate_high, bits), -((-one << bits) // exp_down(rate_low, bits))


def _check_scale(t: int, s: int) -> None:
    """Refuse a scale at which the float filter would not be exact."""
    if not (0 < t < SCALE_LIMIT and s < SCALE_LIMIT):
        raise InternalError("The scale of a Gumbel test left its range; please report this.")
