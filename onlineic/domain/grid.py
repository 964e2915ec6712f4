"""Real numbers on a public grid: codes in, numbers with their error out.

Proof: docs/theory/offline.md, 12.2, 12.3.
"""

import sys
from fractions import Fraction
from functools import cached_property
from numbers import Rational
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.attributes import LARGEST
from onlineic.domain.columns import as_float, column_array, is_number
from onlineic.errors import (
    InvalidDataError,
    InvalidDomainError,
    checked_integer,
    checked_ratio,
    checked_real,
    is_number_of,
)
from onlineic.slips import public

FLOATS = 2.0**-49  # relative error of the few float operations between a number and its code


def _end(name: str, end: Any) -> Fraction:
    """Return an end exactly; a float stands for its shortest decimal."""
    if isinstance(end, Rational) and is_number_of(end, Rational):
        return Fraction(int(end.numerator), int(end.denominator))
    return Fraction(repr(checked_real(name, end)))


def _low(end: Any) -> Fraction:
    return _end("low", end)


def _high(end: Any) -> Fraction:
    return _end("high", end)


@public
@final
@attrs.frozen
class Grid:
    """The points low, low + step, ..., high: each real number is rounded to the nearest.

    Write it down from public knowledge, like a domain: `range(grid.points)` is the attribute, `codes` its
    column. One record is rounded at a time, so that what is private for codes is private for the numbers.

    Args:
        low, high: Public ends, low < high. A float is read as the decimal that it prints as: .1 is 1/10.
        points: In [2, 2^62].

    Attributes:
        step: (high - low)/(points - 1).
        rounding: How far a number may be from its point: step/2, and a little for floats.

    Raises:
        InvalidDomainError: If low >= high, or floats hold neither the ends nor the step.
        InvalidParameterError: If another parameter is outside its range.

    Examples:
        >>> import numpy as np, onlineic as ic
        >>> from onlineic.offline import mean
        >>> grid = ic.Grid(-1.0, 1.0, points=201)
        >>> column = {"score": grid.codes(np.sin(np.arange(100_000)))}
        >>> data = ic.PrivateData.from_records(column, ic.Domain.of(score=range(grid.points)))
        >>> released = mean(data, "score", epsilon=1.0)
        >>> value, error_bound = grid.restored(released.value, released.error_bound)
        >>> abs(value) < 0.01, round(error_bound, 5)  # .00006 by noise, half a step by rounding
        (True, 0.00506)
    """

    low: Fraction = attrs.field(converter=_low)
    high: Fraction = attrs.field(converter=_high)
    points: int

    def __attrs_post_init__(self) -> None:
        if max(abs(self.low), abs(self.high), self.high - self.low) > 2**1023:
            raise InvalidDomainError(
                "low and high must be floats with a difference that is one, got numbers beyond them; write "
                "the column in a larger unit."
            )
        if not self.low < self.high:
            raise InvalidDomainError(
                f"low must be below high, got low={float(self.low):g}, high={float(self.high):g}; swap them."
            )
        remedy = "take a coarser grid"
        points = checked_integer("points", self.points, at_least=2, at_most=LARGEST, remedy=remedy)
        object.__setattr__(self, "points", points)
        if self.step < Fraction(sys.float_info.min):
            raise InvalidDomainError(
                "low and high must be further apart, got a step below all floats; write the column in a "
                "smaller unit."
            )

    def __repr__(self) -> str:
        return f"Grid({float(self.low):g} .. {float(self.high):g}, {self.points} points)"

    @property
    def step(self) -> Fraction:
        return (self.high - self.low) / (self.points - 1)

    @cached_property
    def rounding(self) -> float:
        return float(self.step / 2) + FLOATS * float(max(abs(self.low), abs(self.high)))

    @property
    def values(self) -> Floats:
        """The points as numbers, (points,) float64: weights of an attribute, see `queries.rescaled`."""
        return np.asarray(float(self.low) + float(self.step) * np.arange(self.points), np.float64)

    def codes(self, column: Any, *, clip: bool = False) -> Ints:
        """Return the nearest point of each number, (n,) int64 in [0, points).

        Args:
            column: Numbers, shape (n,).
            clip: Take numbers outside of [low, high] as its ends; else they are refused.

        Raises:
            InvalidDataError: If the column holds something else, or a missing number; at loading, like a
                domain's.
        """
        array = column_array("column", column)
        if array.dtype.kind not in "iuf" and not (array.dtype.kind == "O" and all(map(is_number, array))):
            raise InvalidDataError("column must hold numbers, got other values; convert it.")
        if array.dtype.kind == "O":  # integers beyond the floats are beyond the grid
            numbers = np.fromiter(map(as_float, array), float, len(array))
        else:
            numbers = array.astype(np.float64)
        low, high = float(self.low), float(self.high)
        if clip:
            numbers = np.clip(numbers, low, high)
        outside = ~((numbers >= low) & (numbers <= high))  # NaN is outside
        if outside.any():
            raise InvalidDataError(
                f"column must lie in [{low:g}, {high:g}], got numbers outside or missing; widen the grid, or "
                "write clip=True."
            )
        nearest = np.rint((numbers - low) / float(self.step))
        codes: Ints = np.minimum(nearest, float(self.points - 1)).astype(np.int64)
        return np.minimum(codes, self.points - 1)  # the float of points - 1 may be points

    def value(self, code: float) -> float:
        """Return low + step code."""
        return float(self.low + self.step * checked_ratio("code", code))

    def restored(self, value: float, error_bound: float) -> tuple[float, float]:
        """Return a mean or a value of codes, and its error bound, in the units of the column.

        The bound then holds for the numbers before they were rounded: no mean moves by more than `rounding`.
        """
        there = self.value(value)
        bound = float(self.step) * float(error_bound) * (1.0 + FLOATS) + self.rounding
        return there, bound + FLOATS * abs(there)
