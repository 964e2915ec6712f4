"""What values an attribute takes: labels, a range of integers, or a number cut into bins.

A kind knows its size, the code of each label, and how to encode a column of records. The cell for
missing values, where there is one, is always the last.
"""

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property
from typing import Any, TypeGuard, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.domain.hints import inside, nearest, no_missing_cell
from onlineic.errors import InvalidDataError, InvalidDomainError, InvalidQueryError

Column = np.ndarray[Any, Any]


Label = str | int | bool | float | None


SHOWN = 6  # labels quoted in a message


LARGEST = 2**62  # ends of integer ranges: differences of codes stay inside int64


@final
@attrs.frozen
class Categorical:
    """Finitely many labels without an order; all str, all int or all bool.

    Parameters
    ----------
    labels : tuple
        The distinct labels; a label's code is its position.
    missing : bool
        Whether a last cell holds missing values (None, NaN, NA).
    """

    labels: tuple[str | int | bool, ...] = attrs.field(eq=lambda labels: (*map(type, labels[:1]), labels))
    missing: bool = False
    ordered = False

    def __attrs_post_init__(self) -> None:
        kinds = {type(label) for label in self.labels}
        if len(kinds) != 1 or not kinds <= {str, int, bool}:
            raise InvalidDomainError(
                "labels must be one or more values of one type among str, int and bool, "
                f"got types {sorted(kind.__name__ for kind in kinds)}; convert the labels."
            )
        if len(set(self.labels)) < len(self.labels):
            twice = next(label for label in self.labels if self.labels.count(label) > 1)
            raise InvalidDomainError(f"labels must be distinct, got {twice!r} twice; remove one.")

    @property
    def size(self) -> int:
        return len(self.labels) + self.missing

    @cached_property
    def _codes(self) -> dict[Label, int]:
        return {label: code for code, label in enumerate(self.labels)}

    def label(self, code: int) -> Label:
        """Return the label of a code, None for the missing cell."""
        return self.labels[code] if code < len(self.labels) else None

    def code(self, name: str, label: Label) -> int:
        """Return the code of a label; the lookup is strict about types: True is not 1."""
        if label is None and self.missing:
            return len(self.labels)
        code = self._codes.get(label) if type(label) is type(self.labels[0]) else None
        if code is not None:
            return code
        if label is None:
            raise no_missing_cell(name)
        near = nearest(label, self.labels)
        some = ", ".join(repr(known) for known in self.labels[:SHOWN])
        raise InvalidQueryError(
            f"{name} must be one of its {self.size} values ({some}{', ...' * (self.size > SHOWN)}), "
            f"got {name}={shown(label)}; {'see the domain.' if near is None else f'did you mean {near!r}?'}"
        )

    def encode(self, name: str, column: Column) -> Ints:
        """Return the codes of a column's values."""
        kind, table = type(self.labels[0]), self._codes

        def lookup(value: object) -> int:
            if isinstance(value, np.generic):
                value = value.item()
            if kind is int and isinstance(value, float) and value.is_integer():
                value = int(value)  # a column of ints with a missing value arrives as floats
            return table.get(value, -1) if type(value) is kind else -1

        return _encode_distinct(self, name, column, lookup)


@final
@attrs.frozen
class IntegerRange:
    """The integers start, ..., stop - 1, in order; the code of v is v - start."""

    start: int
    stop: int
    missing: bool = False
    ordered = True

    def __attrs_post_init__(self) -> None:
        if not all(type(end) is int and abs(end) <= LARGEST for end in (self.start, self.stop)):
            raise InvalidDomainError(
                f"range must have integers of at most 2^62 as ends, got range({shown(self.start)}, "
                f"{shown(self.stop)}); shift the values."
            )
        if self.stop <= self.start:
            raise InvalidDomainError(
                f"range must hold at least one integer, got range({self.start}, {self.stop}); raise its end."
            )

    @property
    def size(self) -> int:
        return self.stop - self.start + self.missing

    def label(self, code: int) -> Label:
        """Return the integer of a code, None for the missing cell."""
        return self.start + int(code) if code < self.stop - self.start else None

    def code(self, name: str, label: Label) -> int:
        """Return the code of an integer of the range."""
        if label is None and self.missing:
            return self.stop - self.start
        if label is None:
            raise no_missing_cell(name)
        whole = _whole(label)
        if whole is None or not self.start <= whole < self.stop:
            raise InvalidQueryError(
                f"{name} must be an integer in [{self.start}, {self.stop - 1}], got "
                f"{name}={shown(label)}; ask inside the domain."
            )
        return whole - self.start

    def interval(self, name: str, low: float, high: float, closed: bool) -> tuple[int, int]:
        """Return the half-open code range of [low, high] (closed) or [low, high) inside the range."""
        first = self.start if low == -math.inf else math.ceil(low)
        last = self.stop if high == math.inf else (math.floor(high) + 1 if closed else math.ceil(high))
        if self.start <= first <= self.stop and self.start <= last <= self.stop:
            return first - self.start, (first if last < first else last) - self.start
        outside = low if first < self.start or first > self.stop else high
        near = inside(low, high, self.start, self.stop - 1, closed)
        raise InvalidQueryError(
            f"{name} must be cut inside [{self.start}, {self.stop - 1}], got {outside!r}; write "
            f"{near}, or at_least or below for one side."
        )

    def encode(self, name: str, column: Column) -> Ints:
        """Return the codes of a column of whole numbers."""
        if column.dtype.kind in "iu" and not np.ma.isMaskedArray(column):
            _refuse(name, column, (column < self.start) | (column >= self.stop))
            return column.astype(np.int64) - self.start

        def lookup(value: object) -> int:
            whole = _whole(value.item() if isinstance(value, np.generic) else value)
            return -1 if whole is None or not self.start <= whole < self.stop else whole - self.start

        return _encode_distinct(self, name, column, lookup)


@final
@attrs.frozen
class Binned:
    """A number cut at public edges into bins [e_0, e_1), [e_1, e_2), ...; the code is the bin.

    Parameters
    ----------
    edges : tuple of float
        At least two, strictly increasing; the first may be -inf and the last inf.
    integer : bool
        Whether the column and the finite edges are whole numbers only; then every comparison with a number
        v has an exact form at v or v + 1. Otherwise conditions must be cut with `span`, `at_least`, `below`.
    """

    edges: tuple[float, ...]
    integer: bool = False
    missing: bool = False
    ordered = True

    def __attrs_post_init__(self) -> None:
        if all(map(_is_number, self.edges)):  # a narrow number would compare, and be written, otherwise
            object.__setattr__(self, "edges", tuple(map(_python_number, self.edges)))
        rising = all(map(_is_number, self.edges)) and all(
            low < high for low, high in zip(self.edges, self.edges[1:], strict=False)
        )
        if len(self.edges) < 2 or not rising:  # NaN compares false
            raise InvalidDomainError(
                "edges must be two or more strictly increasing numbers, got "
                f"{shown(list(self.edges))}; sort them and remove repeats."
            )
        if self.integer and not all(math.isinf(edge) or float(edge).is_integer() for edge in self.edges):
            raise InvalidDomainError(
                "edges must be whole numbers where integer=True, got a fraction; round up."
            )

    @property
    def size(self) -> int:
        return len(self.edges) - 1 + self.missing

    def label(self, code: int) -> Label:
        """Return the bin of a code as text, None for the missing cell."""
        if code >= len(self.edges) - 1:
            return None
        return f"[{_short(self.edges[code])}, {_short(self.edges[code + 1])})"

    def code(self, name: str, label: Label) -> int:
        """Return the code of the missing cell (None), or of a bin written as by `label`."""
        if label is None and self.missing:
            return len(self.edges) - 1
        if label is None:
            raise no_missing_cell(name)
        for code in range(len(self.edges) - 1):
            if label == self.label(code):
                return code
        raise InvalidQueryError(
            f"{name} must be asked by a range on its bin edges, got {name}={shown(label)}; "
            f"write e.g. span({_short(self.edges[0])}, {_short(self.edges[1])})."
        )

    def interval(self, name: str, low: float, high: float, closed: bool) -> tuple[int, int]:
        """Return the half-open bin range of [low, high] (closed) or [low, high), exact or refused."""
        if self.integer:
            low = low if math.isinf(low) else math.ceil(low)
            high = high if math.isinf(high) else (math.floor(high) + 1 if closed else math.ceil(high))
        elif closed and high != math.inf:
            raise InvalidQueryError(
                f"{name} must be cut half-open, its bins are [a, b), got a closed end at {_short(high)}; "
                f"write span({_short(low)}, {_short(high)}), or declare integer=True for whole numbers."
            )
        first, last = self._cut(name, low), self._cut(name, high)
        return first, max(first, last)

    def _cut(self, name: str, value: float) -> int:
        if math.isinf(value):
            return 0 if value < 0 else len(self.edges) - 1
        if value in self.edges:
            return self.edges.index(value)
        nearest = sorted(self.edges, key=lambda edge: abs(edge - value))[:2]
        raise InvalidQueryError(
            f"{name} must be cut at a bin edge, got {_short(value)}; the nearest edges are "
            f"{' and '.join(map(_short, sorted(nearest)))}."
        )

    def encode(self, name: str, column: Column) -> Ints:
        """Return the bins of a numeric column."""
        absent, kind = _absent(column), column.dtype.kind
        try:  # numpy would read the text "1", True and 1 + 0j as numbers
            if kind not in "iuf" and not (kind == "O" and all(map(_is_number, column[~absent]))):
                raise TypeError
            values = np.where(absent, np.nan, column).astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InvalidDataError(f"{name} must be a column of numbers, got other values.") from None
        edges = np.asarray(self.edges)
        codes = np.searchsorted(edges, values, side="right").astype(np.int64) - 1
        codes[values == math.inf] = len(edges) - 2 if self.edges[-1] == math.inf else len(edges) - 1
        outside = ~absent & ((codes < 0) | (codes > len(edges) - 2))
        if self.integer:
            outside |= ~absent & np.isfinite(values) & (values != np.rint(values))
        return _finish(self, name, column, codes, absent, outside)


Attribute = Categorical | IntegerRange | Binned


def binned(edges: Iterable[float], *, integer: bool = False) -> Binned:
    """Return the kind of a numeric attribute cut into bins [edge, next edge)."""
    try:
        given = list(edges)
    except TypeError:
        given = []
    if not given or not all(map(_is_number, given)):
        raise InvalidDomainError(f"edges must be a list of numbers, got {shown(edges)}.")
    return Binned(tuple(float(edge) + 0.0 for edge in given), integer)  # -0.0 becomes 0.0


def column_array(name: str, values: Any) -> Column:
    """Return a one-dimensional array that keeps each value's own type."""
    if isinstance(values, np.ma.MaskedArray):
        array = np.array(values.data, dtype=object)
        array[np.ma.getmaskarray(values)] = None  # ma.filled(.., None) would write "?"
    elif isinstance(values, np.ndarray):
        array = values
    elif isinstance(values, (str, bytes, Mapping, Set)) or not isinstance(values, Iterable):
        raise InvalidDataError(f"{name} must be a column (array or list), got a {type(values).__name__}.")
    else:
        listed = list(values)  # once: it may be a generator
        kinds = set(map(type, listed))
        # numpy would turn [1, "a"] into strings, and a list of texts into fields as wide as the longest
        array = np.array(listed, dtype=None if len(kinds) == 1 and kinds <= {int, float, bool} else object)
    if array.ndim != 1:
        raise InvalidDataError(f"{name} must be a column of shape (n,), got shape {array.shape}.")
    return array


def _whole(value: object) -> int | None:
    """Return a whole number as int; None for anything else (bools and text are no numbers)."""
    if _is_number(value) and (isinstance(value, (int, np.integer)) or float(value).is_integer()):
        return int(value)
    return None


def _absent(column: Column) -> Column:
    """Mask of missing values: None, NaN, NaT and NA."""
    if column.dtype.kind in "fmM":
        return np.asarray(np.isnan(column))
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=bool)
    return np.fromiter((_is_missing(value) for value in column), bool, len(column))


def _is_missing(value: object) -> bool:
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_number(value: object) -> TypeGuard[float | np.integer[Any] | np.floating[Any]]:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _python_number(value: Any) -> Any:
    """Return numpy's numbers as Python's, others as they are."""
    if isinstance(value, np.generic):
        return int(value) if isinstance(value, np.integer) else float(value)
    return value


def shown(value: object) -> str:
    """Return short text of a caller's value."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an int of thousands of digits has no text
        return f"a {type(value).__name__} beyond all bounds"


def _short(value: float) -> str:
    """Return a number as short text that tells it from every other."""
    text = f"{value:g}"
    return text if float(text) == value else repr(value)


def _encode_distinct(kind: Attribute, name: str, column: Column, lookup: Callable[[object], int]) -> Ints:
    """Encode through the distinct values, so that Python code runs once a value, not once a record."""
    absent = _absent(column)
    if column.dtype.kind == "O":
        try:  # {1: 0}.get(True) is 0: the type is part of the key
            distinct_keys = set(zip(map(type, column), column, strict=True))
        except TypeError:
            raise InvalidDataError(f"{name} must be a column of plain values, got lists or others.") from None
        table = {key: lookup(key[1]) for key in distinct_keys}
        codes = np.fromiter(
            map(table.__getitem__, zip(map(type, column), column, strict=True)), np.int64, len(column)
        )
    else:
        distinct, inverse = np.unique(column, return_inverse=True)
        codes = np.array([lookup(value) for value in distinct], dtype=np.int64)[inverse]
    return _finish(kind, name, column, codes, absent, ~absent & (codes < 0))


def _finish(
    kind: Attribute,
    name: str,
    column: Column,
    codes: Ints,
    absent: Column,
    outside: Column,
) -> Ints:
    if kind.missing:
        codes[absent] = kind.size - 1
    else:
        _refuse(name, column, absent, "declare it optional(...)")
    _refuse(name, column, outside)
    return codes


def _refuse(name: str, column: Column, bad: Column, remedy: str = "") -> None:
    if bad.any():
        row = int(np.argmax(bad))
        value = column[row].item() if isinstance(column[row], np.generic) else column[row]
        raise outside_error(name, int(bad.sum()), row, value, remedy)


def outside_error(name: str, count: int, row: int, value: object, remedy: str = "") -> InvalidDataError:
    """Return what to raise of a column with `count` values outside the domain, the first at `row`."""
    return InvalidDataError(
        f"{name} must lie in the domain, got {count} rows outside, the first at row {row} "
        f"with {shown(value)}; {remedy or 'extend the domain or clean the table'}."
    )
