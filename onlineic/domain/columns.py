"""Columns of records: one array each, whose values keep their types, some of them missing.

What the kinds of attributes share: which values are numbers, which are missing, and how a column is read
through its distinct values.
"""

import datetime
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from decimal import Decimal
from typing import Any, TypeGuard

import numpy as np

from onlineic._typing import Bools, Ints
from onlineic.errors import InvalidDataError

Column = np.ndarray[Any, Any]

LARGEST = 2**128  # decimals beyond it are taken for floats

# in the place of a code: what is wrong with a value
ABSENT = -1  # missing, where no cell was declared for it
OUTSIDE = -2  # of the right type, and not in the domain
STRANGE = -3  # of another type
MARKS = (STRANGE, OUTSIDE, ABSENT)


def column_array(name: str, values: Any) -> Column:
    """Return a one-dimensional array that keeps each value's own type."""
    if isinstance(values, np.ma.MaskedArray):
        array = np.array(values.data, dtype=object)
        array[np.ma.getmaskarray(values)] = None  # ma.filled(.., None) would write "?"
    elif isinstance(values, np.ndarray):
        array = values
    elif (
        isinstance(values, (str, bytes, Mapping, Set))
        or not isinstance(values, Iterable)
        or getattr(values, "ndim", 1) != 1  # a frame, where two columns have one name, lists its names
    ):
        raise InvalidDataError(
            f"{name} must be a column (array or list), got a {type(values).__name__}; give a list with one "
            "value a record."
        )
    elif isinstance(getattr(values, "dtype", None), np.dtype) and values.dtype.kind in "biufM":  # type: ignore[attr-defined]
        array = np.asarray(values)  # a column of a data frame that is an array inside
    else:
        listed = list(values)  # once: it may be a generator
        kinds = set(map(type, listed))
        # numpy would turn [1, "a"] into strings, and a list of texts into fields as wide as the longest
        array = np.array(listed, dtype=None if len(kinds) == 1 and kinds <= {int, float, bool} else object)
        if kinds == {int} and array.dtype.kind != "i":  # [2**63, 2**53 + 1] became floats, or worse
            array = np.array(listed, dtype=object)
    if array.ndim != 1:
        raise InvalidDataError(
            f"{name} must be a column of one dimension, got {array.ndim}; give one value a record."
        )
    if array.dtype.kind == "T":  # numpy takes its missing texts for others, or cannot compare them
        array = array.astype(object)
    elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    return decimals_read(array)


def decimals_read(column: Column) -> Column:
    """Return a column whose decimals are numbers: ints where they are whole, else the nearest floats.

    The text of a CSV file is read the same way.
    """
    if column.dtype.kind != "O" or not any(isinstance(value, Decimal) for value in column):
        return column
    result = column.copy()
    for row, value in enumerate(column):
        if isinstance(value, Decimal):
            result[row] = decimal_read(value)
    return result


def decimal_read(value: Decimal) -> float | None:
    """Return a decimal as int where it is whole, else as the nearest float; None of NaN."""
    if value.is_nan():
        return None
    if -LARGEST < value < LARGEST and value == value.to_integral_value():
        return int(value)
    return float(value)


def absent(column: Column, markers: Collection[str] = ()) -> Bools:
    """Return which values are missing: None, NaN, NaT, NA, and the texts that stand for it."""
    if column.dtype.kind in "fmM":
        return np.asarray(np.isnan(column))
    if column.dtype.kind == "U" and markers:
        return np.isin(column, list(markers))
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=bool)
    if markers:
        missing = (is_missing(value) or (isinstance(value, str) and value in markers) for value in column)
        return np.fromiter(missing, bool, len(column))
    return np.fromiter((is_missing(value) for value in column), bool, len(column))


def is_missing(value: object) -> bool:
    """Whether a value says that there is none."""
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_number(value: object) -> TypeGuard[float | np.integer[Any] | np.floating[Any]]:
    """Whether a value is a number; bools and text are none."""
    spans = (bool, np.timedelta64)  # numpy takes a span of time for an integer
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, spans)


def whole(value: object) -> int | None:
    """Return a whole number as int; None for anything else."""
    if not is_number(value):
        return None
    if isinstance(value, (int, np.integer)):
        return int(value)
    number = float(value)  # long floats are read as the nearest of these
    return int(number) if number.is_integer() else None


def plain(value: Any) -> Any:
    """Return numpy's scalars as Python's, others as they are; a time of nanoseconds is no integer."""
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        return value.item()
    return value


def short(value: float) -> str:
    """Return a number as short text that tells it from every other."""
    text = f"{value:g}"
    return text if float(text) == value else repr(value)


def keyed(values: Collection[Any]) -> list[tuple[Any, ...]]:
    """Return keys that tell values apart by type too: {1: 0}.get(True) is 0.

    Both passes through the hour that clocks repeat in autumn are equal to Python, where their zone is one
    object.
    """
    kinds = [*map(type, values)]
    if any(issubclass(kind, datetime.datetime) for kind in set(kinds)):
        return [(kind, value, getattr(value, "fold", 0)) for kind, value in zip(kinds, values, strict=True)]
    return [*zip(kinds, values, strict=True)]


def read_distinct(column: Column, lookup: Callable[[Any], int]) -> Ints:
    """Return what `lookup` says of every value, so that Python code runs once a value, not once a record."""
    if column.dtype.kind != "O":
        distinct, inverse = np.unique(column, return_inverse=True)
        return np.array([lookup(value) for value in distinct], dtype=np.int64)[inverse]
    keys = keyed(column)
    try:
        distinct_keys = set(keys)
    except (TypeError, ValueError):  # lists and others
        return np.fromiter(map(lookup, column), np.int64, len(column))
    table = {key: lookup(key[1]) for key in distinct_keys}
    return np.fromiter(map(table.__getitem__, keys), np.int64, len(column))


def source_of(name: str, kind: Any) -> str:
    """Return the column of a table that fills an attribute: of its name, unless its kind names another."""
    return getattr(kind, "column", None) or name


def settled(codes: Ints, missing: Bools, cell: int | None, others: bool = False) -> Ints:
    """Return codes with the missing values in their cell, or marked where there is none.

    With `others` every value that does not fit is a missing one.
    """
    codes[missing] = ABSENT if cell is None else cell
    if others and cell is not None:
        codes[codes < 0] = cell
    return codes


def as_float(value: Any) -> float:
    """Return a number as float; one beyond all floats is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
