"""The only source of randomness: exact integer noise, drawn in blocks, over the system's entropy.

Every law lives on the integers and is sampled exactly (`onlineic.noise.samplers`), so that no float takes
part in a private comparison or release. Values are drawn ahead in blocks of a fixed size for each
(method, scale) and handed out by a counter: the time of a draw does not depend on its value.

Scales are rationals in grid units, of at most 2^48 over 2^48; round up to one with `scale_at_least`.

Proof: docs/theory/noise.md, 3.6; docs/theory/sparse.md, 3.3.
"""

import abc
import math
import os
import weakref
from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Final, NoReturn, final

import attrs
import numpy as np

from onlineic._typing import Ints, Words
from onlineic.errors import ForkedSessionError, InvalidParameterError, checked_integer, is_number_of
from onlineic.noise.blocks import Blocks, Key
from onlineic.noise.samplers import ByteSource, discrete_gaussian, discrete_laplace, geometric, words
from onlineic.slips import public

_WORDS, _GEOMETRIC, _LAPLACE, _GAUSSIAN = range(4)


_WORD_KEY: Final = (_WORDS, 1, 1)
_WORD_MASK: Final = (1 << 64) - 1  # blocks hold words as signed integers
_PUBLIC: Final = 4  # names the stream of `public_generator` among those of one seed
_BLOCK: Final = (4096, 4096, 4096, 1024)  # values of one refill, by method; part of what a seed means
_KINDS_HELD: Final = 256  # (method, scale) pairs whose blocks are held: 8 MB
RATIO_LIMIT: Final = 1 << 48  # above both terms of a scale that the samplers draw
SIGMA_LIMIT: Final = 1 << 26  # the largest sigma of the discrete Gaussian sampler
_FINE: Final = 1 << 16  # denominator of the scales below 2^16


class Noise(abc.ABC):
    """A source of exact integer noise; interface only.

    Each method returns a fresh array of `size` >= 0 values. Scales are in grid units: rationals above 0 with
    numerator and denominator below 2^48, sigma an integer in [1, 2^26].
    """

    __slots__ = ()

    @property
    @abc.abstractmethod
    def simulated(self) -> bool:
        """Whether the values can be predicted: whatever uses such noise is not private."""

    @abc.abstractmethod
    def words(self, size: int) -> Words:
        """Return independent uniform 64-bit words.

        Raises:
            ForkedSessionError: If the process was forked after the source was made (also in the other
                methods).
        """

    def next_word(self) -> int:
        """Return one word as an integer: the next that `words` would return."""
        return int(self.words(1)[0])

    @abc.abstractmethod
    def geometric(self, scale: Fraction, size: int) -> Ints:
        """Return Z >= 0 with P(z) proportional to exp(-z / scale)."""

    @abc.abstractmethod
    def discrete_laplace(self, scale: Fraction, size: int) -> Ints:
        """Return X with P(x) proportional to exp(-|x| / scale)."""

    @abc.abstractmethod
    def discrete_gaussian(self, sigma: int, size: int) -> Ints:
        """Return X with P(x) proportional to exp(-x^2 / (2 sigma^2))."""

    @property
    @abc.abstractmethod
    def calls(self) -> int:
        """How many calls have drawn so far: `unread` tells by it which call it is about."""

    @abc.abstractmethod
    def unread(self, count: int, since: int) -> None:
        """Give back the last values of a call: nobody looked at them.

        They come first in the next call of the same method with the same scale. All others of that call count
        as used and are forgotten; so do all of it if anything was drawn after that call, by another thread or
        by a signal's handler.

        Args:
            count: In [0, size of the call]. Values given back. A second `unread` of the same call can give
                back none.
            since: `calls` before the call.
        """

    def check_outside(self) -> None:  # noqa: B027  (a source that anyone may draw from at any time)
        """Raise `SessionStateError` in the middle of a draw of the same thread: a handler would draw there.

        A session that is asked by a handler asks this before it spends anything.
        """


@final
@attrs.define(eq=False, repr=False, getstate_setstate=False)
class SystemNoise(Noise):
    """Noise from the operating system's entropy: the source of every private session.

    It has no seed. It cannot be copied or pickled, and neither side of a fork but the parent may go on
    with it, because two holders of one block would add the same noise to different answers. It may
    be shared between threads and sessions.
    """

    _blocks: Blocks = attrs.field(init=False)
    _owner: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._blocks = Blocks(lambda key: _refill(key, os.urandom), held=_KINDS_HELD)
        self._owner = os.getpid()
        _SYSTEM_SOURCES.add(self)

    @property
    def simulated(self) -> bool:
        return False

    def words(self, size: int) -> Words:
        return self._owned().take(_WORD_KEY, size).view(np.uint64)

    def next_word(self) -> int:
        return self._owned().take_one(_WORD_KEY) & _WORD_MASK

    def geometric(self, scale: Fraction, size: int) -> Ints:
        return self._owned().take(_ratio_key(_GEOMETRIC, scale), size)

    def discrete_laplace(self, scale: Fraction, size: int) -> Ints:
        return self._owned().take(_ratio_key(_LAPLACE, scale), size)

    def discrete_gaussian(self, sigma: int, size: int) -> Ints:
        return self._owned().take(_sigma_key(sigma), size)

    @property
    def calls(self) -> int:
        return self._blocks.calls

    def unread(self, count: int, since: int) -> None:
        self._owned().unread(count, since)

    def check_outside(self) -> None:
        self._blocks.lock.check()

    def __repr__(self) -> str:
        return "SystemNoise(<hidden>)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("SystemNoise cannot be copied: the copy would draw the same noise again.")

    def _owned(self) -> Blocks:
        """Blocks of this process, or `ForkedSessionError`."""
        if self._owner != os.getpid():
            raise ForkedSessionError(
                "noise must be used by the process that made it, got a forked process; "
                "make the noise and its session after the fork."
            )
        return self._blocks

    def _disown(self) -> None:
        """Drop what a fork has duplicated; process ids are reused, so none is trusted again."""
        self._owner = -1
        self._blocks.drop()


def _seed(value: int) -> int:
    return checked_integer("seed", value, at_least=0)


@public
@final
@attrs.define(eq=False, repr=False, getstate_setstate=False)
class SimulatedNoise(Noise):
    """The samplers of `SystemNoise` over a seeded byte stream, for experiments: not private.

    Each (method, scale) has its own stream, a function of the seed: the values of one scale depend
    neither on how calls are chunked nor on what is drawn in between. All streams are held.

    Args:
        seed: At least 0. Equal seeds give equal values.
    """

    seed: int = attrs.field(converter=_seed, on_setattr=attrs.setters.frozen)
    _blocks: Blocks = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        seed = self.seed
        self._blocks = Blocks(lambda key: _refill(key, _stream(seed, key)), held=None)

    @property
    def simulated(self) -> bool:
        return True

    def words(self, size: int) -> Words:
        return self._blocks.take(_WORD_KEY, size).view(np.uint64)

    def next_word(self) -> int:
        return self._blocks.take_one(_WORD_KEY) & _WORD_MASK

    def geometric(self, scale: Fraction, size: int) -> Ints:
        return self._blocks.take(_ratio_key(_GEOMETRIC, scale), size)

    def discrete_laplace(self, scale: Fraction, size: int) -> Ints:
        return self._blocks.take(_ratio_key(_LAPLACE, scale), size)

    def discrete_gaussian(self, sigma: int, size: int) -> Ints:
        return self._blocks.take(_sigma_key(sigma), size)

    @property
    def calls(self) -> int:
        return self._blocks.calls

    def unread(self, count: int, since: int) -> None:
        self._blocks.unread(count, since)

    def check_outside(self) -> None:
        self._blocks.lock.check()

    def __repr__(self) -> str:
        return f"SimulatedNoise(seed={self.seed})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("SimulatedNoise cannot be copied: make another from a seed of its own.")


def checked_source(noise: object) -> "Noise":
    """Return the source if it is one: numpy's generators have methods of the same names and other laws.

    Raises:
        InvalidParameterError: If it is no `Noise`.
    """
    if isinstance(noise, Noise):
        return noise
    raise InvalidParameterError(
        f"noise must be a Noise, got a {type(noise).__name__}; write SystemNoise(), or SimulatedNoise(seed) "
        "for what need not be private."
    )


def public_generator(seed: int) -> "np.random.Generator":
    """Return a generator for public sampling (synthetic rows, particles), independent of all noise.

    Args:
        seed: At least 0. Public; equal seeds give equal generators.
    """
    return _generator(_seed(seed), _PUBLIC)


def scale_at_least(scale: Fraction) -> Fraction:
    """Return the least representable scale that is not below `scale`.

    Representable are the multiples of 2^-16 below 2^16 and the integers from there to 2^48 - 1.

    Args:
        scale: In (0, 2^48 - 1]. Scale in grid units; a float is refused.
    """
    exact = _exact(scale)
    steps = _FINE if exact < _FINE else 1
    rounded = Fraction(math.ceil(exact * steps), steps)
    if not 0 < rounded < RATIO_LIMIT:
        raise InvalidParameterError(
            f"scale must be in (0, 2^48 - 1], got scale={_shown_ratio(exact)}; "
            "raise epsilon or lower grid_bits."
        )
    return rounded


def _refill(key: Key, source: ByteSource) -> Callable[[], Ints]:
    """Draw of one block; `key` is the method and the numerator and denominator of the scale."""
    method, numerator, denominator = key
    size = _BLOCK[method]
    if method == _WORDS:
        return lambda: words(size, source).view(np.int64)
    if method == _GAUSSIAN:
        return lambda: discrete_gaussian(numerator, size, source)
    _check_ratio(numerator, denominator)
    sampler = geometric if method == _GEOMETRIC else discrete_laplace
    return lambda: sampler(numerator, denominator, size, source)


def _ratio_key(method: int, scale: Fraction) -> Key:
    if type(scale) is not Fraction:
        scale = _exact(scale)
    return method, int(scale.numerator), int(scale.denominator)  # a Fraction keeps numpy's integers


def _sigma_key(sigma: int) -> Key:
    if type(sigma) is not int or not 1 <= sigma <= SIGMA_LIMIT:
        sigma = checked_integer("sigma", sigma, at_least=1, at_most=SIGMA_LIMIT, remedy="lower grid_bits")
    return _GAUSSIAN, sigma, 1


def _exact(scale: object) -> Fraction:
    """The caller's scale as a Fraction; floats are refused, since they hide how they were rounded."""
    if isinstance(scale, Rational) and is_number_of(scale, Rational):
        return Fraction(int(scale.numerator), int(scale.denominator))
    got = repr(scale) if isinstance(scale, (float, str, bool, type(None))) else f"a {type(scale).__name__}"
    raise InvalidParameterError(
        f"scale must be a Fraction, got scale={got[:60]}; pass scale_at_least(Fraction(scale))."
    )


def _check_ratio(numerator: int, denominator: int) -> None:
    if not (0 < numerator < RATIO_LIMIT and denominator < RATIO_LIMIT):
        raise InvalidParameterError(
            "scale must be positive with numerator and denominator below 2^48, "
            f"got scale={_shown_ratio(Fraction(numerator, denominator))}; round it up with scale_at_least."
        )


def _shown_ratio(ratio: Fraction) -> str:
    bits = max(ratio.numerator.bit_length(), ratio.denominator.bit_length())
    return str(ratio) if bits <= 96 else f"a ratio of {bits}-bit integers"


def _stream(seed: int, key: Key) -> ByteSource:
    """Seeded bytes of one (method, scale)."""
    method, *ratio = key
    return _generator(
        seed, method, *(part >> shift & 0xFFFFFFFF for part in ratio for shift in (0, 32))
    ).bytes


def _generator(seed: int, *name: int) -> "np.random.Generator":  # numpy loads it when first asked
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=name)))


def _drop_in_child() -> None:
    for source in list(_SYSTEM_SOURCES):
        source._disown()


_SYSTEM_SOURCES: weakref.WeakSet[SystemNoise] = weakref.WeakSet()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_in_child)
