"""Which of several values reach their threshold, with noisy values of those that do.

Thresholds and sensitivities are exact, what is told are floats: what none can hold is refused before a read.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, final

import attrs
import numpy as np

from onlineic.accounting.rounding import float_up
from onlineic.errors import InvalidParameterError, shown
from onlineic.offline.release import Release, Result
from onlineic.sparse.values import ValueSparse

FARTHEST = 2**62  # sensitivities that a noisy value is above or below its threshold, at most


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Compared(Result):
    """Which values were found to reach their threshold.

    Attributes:
        above: Indices of the hits, increasing, at most `cutoff`.
        tested: The values 0, ..., tested - 1 were compared; those after the last hit allowed were not.
        radii: For each value, in its units: with probability 1 - beta every hit has value >= threshold -
            radius, and every other one that was compared value < threshold + radius.
    """

    above: tuple[int, ...]
    tested: int
    radii: tuple[float, ...]

    @property
    def not_reached(self) -> range:
        """Values that were not compared: nothing is said of them."""
        return range(self.tested, len(self.radii))

    @property
    def _compared(self) -> str:
        return f"{self.tested} of {len(self.radii)} compared"


@final
@attrs.frozen
class NoisyValues:
    """What a run of `ValueSparse` tells, in the units of each value.

    Attributes:
        values: Of the hits, with noise.
        bounds: For each value: how far it is off, if it was released.
    """

    above: tuple[int, ...]
    tested: int
    radii: tuple[float, ...]
    values: tuple[float, ...]
    bounds: tuple[float, ...]


def number(name: str, value: Any) -> Fraction:
    """Return a finite number exactly: a float is the rational that it stands for.

    Raises:
        InvalidParameterError: If it is no finite number.
    """
    if isinstance(value, Rational) and not isinstance(value, np.timedelta64):
        return Fraction(int(value.numerator), int(value.denominator))  # numpy integers would overflow
    if isinstance(value, Real) and math.isfinite(value):
        return Fraction(float(value))
    raise InvalidParameterError(f"{name} must hold finite numbers, got {shown(value)}.")


def noisy_values(
    release: Release,
    sparse: ValueSparse,
    levels: Sequence[Fraction],
    units: Sequence[Fraction],
    scores: Callable[[], Iterable[int]],
) -> NoisyValues:
    """Return which values reach their level, and noisy values of those that do.

    Args:
        levels, units: Threshold and sensitivity of each value.
        scores: Yields `sparse.score` of each exact value, PRIVATE.

    Raises:
        InvalidParameterError: If epsilon is too small for any radius, or a number too large for a float.
    """
    tests, numbers = _radii(sparse, release.beta, levels, units)
    found = release.read(lambda: sparse.select(scores(), release.noise))
    above = tuple(place for place, _ in found)
    noisy = {place: levels[place] + units[place] * Fraction(multiple) for place, multiple in found}
    return NoisyValues(
        above=above,
        tested=above[-1] + 1 if len(above) == sparse.cutoff else len(units),
        radii=tuple(float_up(tests * unit) for unit in units),
        values=tuple(map(float, noisy.values())),
        bounds=tuple(
            float_up(numbers * unit + _rounded_by(noisy.get(place, Fraction(0))))
            for place, unit in enumerate(units)
        ),
    )


def _radii(
    sparse: ValueSparse, beta: float, levels: Sequence[Fraction], units: Sequence[Fraction]
) -> tuple[Fraction, Fraction]:
    """Return the radii of tests and of numbers, in sensitivities, if all that may be told is a float."""
    found = sparse.radii(len(units), beta)
    if not all(map(math.isfinite, found)):
        raise InvalidParameterError(
            f"epsilon must be larger for {len(units)} values, got noise beyond which no bound holds; take a "
            "larger budget, or fewer values."
        )
    tests, numbers = map(Fraction, found)
    farthest = max(Fraction(FARTHEST), tests, numbers)
    largest = Fraction(sys.float_info.max) / 2
    if any(abs(level) + unit * farthest > largest for level, unit in zip(levels, units, strict=True)):
        raise InvalidParameterError(
            "threshold and sensitivities must be such that noisy values are floats, got a larger one; take "
            "another unit."
        )
    return tests, numbers


def _rounded_by(exact: Fraction) -> Fraction:
    """Return how far the nearest float is: far from 0 that is more than small noise."""
    return abs(Fraction(float(exact)) - exact)
