"""Exact draws of an index: P(i) proportional to n_i q^k_i, q = e^(-1/scale), on one uniform number.

U, uniform on [0, 1), picks the index i with C_(i-1) <= U W < C_i, where C_i = w_0 + ... + w_i and W is the
sum of all weights. One 64-bit word holds the first 64 bits of U; floats with a proven margin decide all but
a fraction m 2^-42 of the words (m < 2^15), and interval arithmetic on the SAME bits, 64 more at a time,
decides the rest. A fresh word for an undecided one would be biased: it is undecided because of its value.
So without counts the work depends on m and the scale, and on the exponents only in that fraction of draws;
with counts also on their lengths and on the exponents.

The relative error of a float weight is below 2^-45:

* without counts x = k/scale has three roundings, together below 2^-45.5 since x is cut at 60, which adds
  less than m 2^-86 to the sum; `exp_ieee` errs by 2^-47.
* with counts x is reduced in integers: n e^-x = f 2^e with f = (n/2^bits) e^-r, 0 <= r < ln 2, and x - r a
  multiple of ln 2. With 128 bits of x and of ln 2, r errs by less than 2^-60 wherever f 2^e counts.

The largest weight is in [1/4, 1], and the sums are exact: weights are split at 2^-26 into two integers, the
lower one rounded at 2^-62. So C_i/W errs by less than 2^-44 + 2^-50 + m 2^-60; the margin has twice that.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import ldexp

import numpy as np

from onlineic._typing import Floats, Ints, Words
from onlineic.errors import InternalError
from onlineic.noise.exp import decay_bounds, exp_ieee
from onlineic.noise.sources import RATIO_LIMIT, Noise

MARGIN = 2.0**-43
GUARD = 32  # extra bits of the interval beyond those of U and of the counts
TRIES = 32  # of a uniform number at a time
LONGEST = 2**26  # candidates: their sums stay below 2^53
_LN2 = 0xB17217F7D1CF79ABC9E3B39803F2F6AF  # floor(2^128 ln 2)


def draw(
    exponents: Sequence[int] | Ints | Words,
    scale: Fraction,
    noise: Noise,
    counts: Sequence[int] | None = None,
    *,
    margin: float = MARGIN,
) -> int:
    """Return i with P(i) proportional to counts[i] e^(-exponents[i]/scale), exactly.

    Args:
        exponents: Shape (m,), at least 0. Differences to the best score. PRIVATE. With counts Python integers
            of any size, else below 2^64.
        scale: Above 0, numerator and denominator below 2^48. Score units.
        noise: Gives one word, and one more for each 64 bits that are needed to decide.
        counts: Shape (m,), at least 1. How many candidates each index stands for. One each by
            default. They may be PRIVATE, and m with them (`threshold_database`): the law is exact for any,
            and no error tells them apart. Only the time does.
        margin: At least 2^-43. Larger values only send more draws to the exact path (tests).
    """
    numbers = None if counts is None else [int(count) for count in counts]
    _check(len(exponents), scale, numbers)
    if numbers is None:
        weights = _weights(np.asarray(exponents), scale)
    else:
        weights = _counted_weights([int(power) for power in exponents], scale, numbers)
    bounds = _inner_boundaries(weights)
    word = int(noise.words(1)[0])
    u, slack = (word >> 11) * 2.0**-53, margin + len(weights) * 2.0**-59
    below = int(np.count_nonzero(bounds + slack <= u))
    if below == np.count_nonzero(bounds - slack < u + 2.0**-53):  # each boundary is certainly <= U or > U
        return below
    return draw_exactly(word, [int(power) for power in exponents], scale, noise, numbers)


def uniform_below(limit: int, noise: Noise) -> int:
    """Return an exact uniform integer on 0, ..., limit - 1; many tries at once, so that time tells little."""
    bits = (limit - 1).bit_length()
    words = max(1, -(-bits // 64))
    while True:
        drawn = noise.words(TRIES * words).astype(object).reshape(TRIES, words)
        tries = [sum(int(word) << 64 * place for place, word in enumerate(row)) for row in drawn]
        kept = [value for value in (one & ((1 << bits) - 1) for one in tries) if value < limit]
        if kept:
            return kept[0]


def draw_exactly(
    word: int, exponents: Sequence[int], scale: Fraction, noise: Noise, counts: Sequence[int] | None = None
) -> int:
    """Count the boundaries <= U in integers, U starting with `word`; ends with probability 1."""
    drawn, bits = word, 64
    while True:
        lows, highs = _cumulated(exponents, scale, counts, bits + GUARD)
        below = sum(drawn * lows[-1] >= high << bits for high in highs[:-1])
        if below == sum((drawn + 1) * highs[-1] > low << bits for low in lows[:-1]):
            return below
        drawn, bits = drawn << 64 | int(noise.words(1)[0]), bits + 64


def _weights(exponents: Ints | Words, scale: Fraction) -> Floats:
    """Weights e^(-k/scale) relative to the largest, within 2^-45."""
    ahead = (exponents - exponents.min()).astype(np.float64)
    return exp_ieee(-np.minimum(ahead * scale.denominator / float(scale.numerator), 60.0))


def _counted_weights(exponents: list[int], scale: Fraction, counts: list[int]) -> Floats:
    """Weights n e^(-k/scale) times a common power of two, in [0, 1], within 2^-45."""
    t, s, least = scale.numerator, scale.denominator, min(exponents)
    halvings, rests = zip(*(divmod(((k - least) * s << 128) // t, _LN2) for k in exponents), strict=True)
    mantissas = np.array([n / (1 << n.bit_length()) for n in counts])
    fractions = mantissas * exp_ieee(np.array([-(rest / (1 << 128)) for rest in rests]))
    powers = [n.bit_length() - halving for n, halving in zip(counts, halvings, strict=True)]
    top = max(powers)
    return np.array([ldexp(f, power - top) for f, power in zip(fractions.tolist(), powers, strict=True)])


def _inner_boundaries(weights: Floats) -> Floats:
    """C_0/W, ..., C_(m-2)/W; the sums are exact."""
    coarse = np.floor(weights * 2.0**26)
    fine = np.rint((weights * 2.0**26 - coarse) * 2.0**36)
    sums = np.cumsum(coarse.astype(np.int64)) * 2.0**-26 + np.cumsum(fine.astype(np.int64)) * 2.0**-62
    return np.asarray(sums[:-1] / sums[-1])


def _cumulated(
    exponents: Sequence[int], scale: Fraction, counts: Sequence[int] | None, bits: int
) -> tuple[list[int], list[int]]:
    """Lower and upper bounds of all C_i, in units of 2^-bits or less of the largest weight."""
    numbers, least = [1] * len(exponents) if counts is None else counts, min(exponents)
    bits += max(numbers).bit_length()
    known = {power: decay_bounds((power - least) / scale, bits) for power in set(exponents)}
    weights = [(number, known[power]) for power, number in zip(exponents, numbers, strict=True)]
    lows = accumulate(number * low for number, (low, _) in weights)
    highs = accumulate(number * high for number, (_, high) in weights)
    return list(lows), list(highs)


def _check(candidates: int, scale: Fraction, counts: list[int] | None) -> None:
    """Refuse what the proof of the margin does not cover; nothing private is looked at."""
    if not (0 < scale.numerator < RATIO_LIMIT and scale.denominator < RATIO_LIMIT):
        raise InternalError("The scale of a draw left its range; please report this.")
    if not 1 <= candidates <= LONGEST or (
        counts is not None and (len(counts) != candidates or min(counts) < 1)
    ):
        raise InternalError("The candidates of a draw must be 1 to 2^26, each counted once or more.")
