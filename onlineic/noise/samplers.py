"""Exact samplers of integer noise: stateless, integers only, every random bit from a byte source.

Each function returns `size` >= 0 values, made of the uniform bytes of `source`. No float takes part in a
decision; floats only size the first guess of how many lanes to try.

Canonne, Kamath & Steinke (2020), "The Discrete Gaussian for Differential Privacy", Algorithms 1 to 3.
Deviations: lanes are tried in arrays and surplus lanes are dropped, in order; the runs of successes of the
coin of bias 1/e are read off one sequence of coins; a product of such coins is one geometric draw.

Proof: docs/theory/noise.md, 3.6.
"""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from onlineic._typing import Bools, Ints, Words
from onlineic.errors import InternalError

ByteSource = Callable[[int], bytes]


"""`source(size)` returns `size` fresh independent uniform bytes, as `os.urandom` does."""


_LANES: Final = ("u1",) * 9 + ("<u2",) * 8 + ("<u4",) * 16 + ("<u8",) * 32  # by the number of bits needed
_WIDE: Final = 1 << 31  # offset whose square may overflow int64: probability below 1e-14 at the largest sigma
_NEVER: Final = 1 << 62  # no counted run of coins is ever this long


def words(size: int, source: ByteSource) -> Words:
    """Return independent uniform 64-bit words."""
    return np.frombuffer(source(8 * size), "<u8").astype(np.uint64)


def uniform_below(limit: int, size: int, source: ByteSource) -> Ints:
    """Return exact uniforms on {0, ..., limit - 1}: masked lanes, rejected when too large.

    Args:
        limit: In [1, 2^63]. Number of equally likely values. Nothing is read from `source` when it is 1.
    """
    if limit == 1:
        return np.zeros(size, np.int64)
    bits = (limit - 1).bit_length()
    lane = _LANES[bits]
    width = int(lane[-1])
    mask = (1 << bits) - 1
    if limit == mask + 1:
        return (np.frombuffer(source(size * width), lane) & mask).astype(np.int64)
    values = np.empty(0, np.int64)
    while values.size < size:
        need = size - values.size
        # 2^bits / limit lanes give one value on average; 2 % and 8 lanes more make one round the rule.
        lanes = ((need << bits) * 51) // (limit * 50) + 8
        fresh = np.frombuffer(source(lanes * width), lane) & mask
        fresh = fresh[fresh < limit][:need].astype(np.int64)
        values = np.concatenate([values, fresh]) if values.size else fresh
    return values


def bernoulli_exp(numerators: Ints, denominator: int, source: ByteSource) -> Bools:
    """Return independent coins, the i-th True with probability exp(-numerators[i] / denominator).

    Canonne, Kamath & Steinke (2020), Algorithm 1.

    Args:
        numerators: Shape (m,), in [0, denominator]. One exponent for each lane, times `denominator`.
        denominator: In [1, 2^53]. Common denominator of the exponents.

    Raises:
        InternalError: If a lane is undecided when `denominator` times the step reaches 2^63: at the largest
            denominator this has probability below 1 / 1023!.
    """
    accepted = np.ones(numerators.size, np.bool_)
    active = np.arange(numerators.size)
    step = 1
    while active.size:
        limit = denominator * step
        if limit >= 1 << 63:
            raise InternalError("a coin of bias exp(-x) was undecided after 2^63 / denominator steps.")
        passed = uniform_below(limit, active.size, source) < numerators
        active, numerators = active[passed], numerators[passed]
        # A lane that stops at an odd step is accepted: who passes `step` stops at step + 1 or later.
        accepted[active] = step % 2 == 0
        step += 1
    return accepted


def geometric_e1(size: int, source: ByteSource) -> Ints:
    """Return V with P(v) = (1 - 1/e) e^-v, v >= 0: runs of successes of the coin of bias 1/e."""
    ends = [np.empty(0, np.int64)]
    tossed = 0
    need = size
    while need > 0:
        coins = _lanes(need, 1 - 1 / math.e)
        heads = bernoulli_exp(np.ones(coins, np.int64), 1, source)
        ends.append(np.flatnonzero(~heads)[:need] + tossed)
        tossed += coins
        need -= ends[-1].size
    runs = np.concatenate(ends)
    runs[1:] -= runs[:-1] + 1
    return runs


def geometric(numerator: int, denominator: int, size: int, source: ByteSource) -> Ints:
    """Return Y >= 0 with P(y) proportional to exp(-y / scale), scale = numerator / denominator.

    Canonne, Kamath & Steinke (2020), Algorithm 2, before the sign.

    Args:
        numerator, denominator: In [1, 2^48). The scale.
    """

    def propose(lanes: int) -> Ints:
        low = uniform_below(numerator, lanes, source)
        low = low[bernoulli_exp(low, numerator, source)]
        high: Ints = low + numerator * geometric_e1(low.size, source)
        return high // denominator

    return _first(size, math.expm1(-1) / (numerator * math.expm1(-1 / numerator)), propose)


def discrete_laplace(numerator: int, denominator: int, size: int, source: ByteSource) -> Ints:
    """Return X with P(x) proportional to exp(-|x| / scale), scale = numerator / denominator.

    Canonne, Kamath & Steinke (2020), Algorithm 2.

    Args:
        numerator, denominator: In [1, 2^48). The scale.
    """

    def propose(lanes: int) -> Ints:
        values = geometric(numerator, denominator, lanes, source)
        negative: Bools = uniform_below(2, lanes, source) == 1
        once: Bools = ~negative | (values != 0)  # zero has two signs: one of them is thrown away
        np.negative(values, out=values, where=negative)
        return values[once]

    return _first(size, (1 + math.exp(-denominator / numerator)) / 2, propose)


def discrete_gaussian(sigma: int, size: int, source: ByteSource) -> Ints:
    """Return X with P(x) proportional to exp(-x^2 / (2 sigma^2)).

    Canonne, Kamath & Steinke (2020), Algorithm 3 with integer sigma: a proposal of scale sigma is accepted
    with probability exp(-(|y| - sigma)^2 / (2 sigma^2)).

    Args:
        sigma: In [1, 2^26]. Scale.
    """
    double = 2 * sigma * sigma

    def propose(lanes: int) -> Ints:
        values = discrete_laplace(sigma, 1, lanes, source)
        offset = np.abs(values) - sigma
        whole, part = np.divmod(offset * offset, double)
        for lane in np.flatnonzero(offset >= _WIDE).tolist():  # the square may have wrapped around
            exact, part[lane] = divmod(int(offset[lane]) ** 2, double)
            whole[lane] = min(exact, _NEVER)
        # exp(-whole): that many coins of bias 1/e all succeed, so their run is at least that long.
        tested = np.flatnonzero(whole)
        accepted = bernoulli_exp(part, double, source)
        accepted[tested] &= geometric_e1(tested.size, source) >= whole[tested]
        return values[accepted]

    return _first(size, 0.7, propose)  # 0.70 at sigma = 1, 0.76 at large sigma


def _lanes(need: int, rate: float) -> int:
    """Lanes that give `need` values at acceptance `rate` in one round, but for 3 standard deviations."""
    return math.ceil((need + 3 * math.sqrt(need * (1 - min(rate, 1.0)))) / rate)


def _first(size: int, rate: float, propose: Callable[[int], Ints]) -> Ints:
    """First `size` values that the independent proposals accept, in the order of their lanes."""
    pieces = [np.empty(0, np.int64)]
    need = size
    while need > 0:
        pieces.append(propose(_lanes(need, rate))[:need])
        need -= pieces[-1].size
    return np.concatenate(pieces)
