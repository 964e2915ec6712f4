"""What values an attribute takes: labels, a range of integers, a number cut into bins, or dates.

A kind knows its size, the code of each label, and how to read a column of records. The cell for
missing values, where there is one, is always the last.

Proof: docs/theory/queries.md, 1.8.
"""

import bisect
import math
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from numbers import Real
from typing import Any, Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.domain.columns import (
    OUTSIDE,
    STRANGE,
    Column,
    absent,
    as_float,
    is_number,
    plain,
    read_distinct,
    settled,
    short,
    whole,
)
from onlineic.domain.dates import Dates
from onlineic.domain.edges import beside, decimals, edge_at, even, is_at, rounded
from onlineic.domain.hints import in_place_of, inside, no_missing_cell
from onlineic.domain.written import Numerals, check_clock, checked_written
from onlineic.errors import (
    InvalidDomainError,
    InvalidParameterError,
    InvalidQueryError,
    checked_integer,
    checked_list,
    is_number_of,
    set_fields,
    shown,
)
from onlineic.slips import nearest, public

Clock = Literal["hours", "minutes", "seconds"]
Label = str | int | bool | float | None
Word = str | int | bool | float


SHOWN = 6  # labels quoted in a message
MOST_BINS = 2**20  # of a number, of equal width
EXACT = 2**53  # below, a double holds every whole number
LARGEST = 2**62  # ends of integer ranges: differences of codes stay inside int64

OF_TEXTS = (
    "convert the column, or declare how its texts are written: written='1,234.5', clock='hours', or "
    "optional(.., missing=['NA']) for gaps"
)


@final
@attrs.frozen
class Categorical:
    """Finitely many labels without an order; all str, all int or all bool.

    Args:
        labels: The distinct labels; a label's code is its position.
        missing: Whether a last cell holds missing values (None, NaN, NA).
        other: Name of a cell, after those of the labels, for every value of their type that is not listed.
        synonyms: Each (value, label). What else stands for a label; kept sorted, since it is a mapping.
        markers: Texts that stand for a missing value.
        others: Whether every value that fits nowhere counts as missing.
    """

    labels: tuple[str | int | bool, ...] = attrs.field(eq=lambda labels: (*map(type, labels[:1]), labels))
    missing: bool = False
    other: str | None = None
    synonyms: tuple[tuple[Word, str | int | bool], ...] = attrs.field(default=(), eq=repr)  # True is not 1
    markers: tuple[str, ...] = ()
    others: bool = attrs.field(default=False, kw_only=True)
    column: str | None = attrs.field(default=None, kw_only=True)
    ordered = False

    def __attrs_post_init__(self) -> None:
        given: object = self.labels  # whatever was given
        kinds = {type(label) for label in self.labels} if isinstance(given, tuple | list) else set()
        if len(kinds) != 1 or not kinds <= {str, int, bool}:
            types = f"types {', '.join(sorted(kind.__name__ for kind in kinds))}" if kinds else "none"
            raise InvalidDomainError(
                "labels must be one or more values of one type among str, int and bool, "
                f"got {types}; {_of_labels(kinds)}."
            )
        set_fields(self, labels=tuple(self.labels))
        if len(set(self.labels)) < len(self.labels):
            twice = next(label for label in self.labels if self.labels.count(label) > 1)
            raise InvalidDomainError(f"labels must be distinct, got {shown(twice)} twice; remove one.")
        if self.other is not None and (type(self.other) is not str or self.other in self.labels):
            raise InvalidDomainError(
                f"other must be True or a name that is no label, got {shown(self.other)}; choose another."
            )
        kind = type(self.labels[0])
        known: set[tuple[type, Any]] = {(type(label), label) for label in self.labels}
        if self.other is not None:
            known.add((str, self.other))
        for word, label in self.synonyms:
            plain_word = type(word) in (str, int, bool, float) and word == word  # NaN is a missing value
            if (type(label), label) not in known or not plain_word:
                raise InvalidDomainError(
                    f"synonyms must lead from plain values to labels, got {shown(word)} to {shown(label)}; "
                    f"write {{value: label}} with {kind.__name__} labels of the list."
                )
        words: list[tuple[type, Any]] = [*known, *((type(word), word) for word, _ in self.synonyms)]
        words += [(str, marker) for marker in self.markers]
        if len(set(words)) < len(words):
            again = next(word for _, word in words if words.count((type(word), word)) > 1)
            raise InvalidDomainError(
                f"labels, synonyms and texts of missing values must be distinct, got {shown(again)} twice; "
                "remove one."
            )
        # in one order, by which equal domains are known: a file gives back a mapping in an order of its own
        pairs = sorted(self.synonyms, key=lambda pair: (type(pair[0]).__name__, pair[0]))
        set_fields(self, synonyms=tuple(map(tuple, pairs)))

    @property
    def size(self) -> int:
        return len(self.labels) + (self.other is not None) + self.missing

    @property
    def rule(self) -> str:
        """What a value must be, in words."""
        return f"one of {self._some}"

    @property
    def wider(self) -> str:
        """How the domain takes more values."""
        return "list it, give it in synonyms={...}, declare other=True, or clean the table"

    @property
    def form(self) -> str:
        """What a column must hold, in words."""
        return {str: "texts", int: "whole numbers", bool: "true or false"}[type(self.labels[0])]

    @property
    def _some(self) -> str:
        """The labels, the first few of many."""
        return ", ".join(map(repr, self.labels[:SHOWN])) + ", ..." * (len(self.labels) > SHOWN)

    @cached_property
    def _codes(self) -> dict[Label, int]:
        return {label: code for code, label in enumerate(self.labels)}

    @cached_property
    def _synonyms(self) -> dict[tuple[type, Word], int]:
        codes = self._codes if self.other is None else {**self._codes, self.other: len(self.labels)}
        return {(type(word), word): codes[label] for word, label in self.synonyms}

    def label(self, code: int) -> Label:
        """Return the label of a code, None for the missing cell."""
        if code < len(self.labels):
            return self.labels[code]
        return self.other if code == len(self.labels) else None

    def code(self, name: str, label: Label) -> int:
        """Return the code of a label or a synonym; the lookup is strict about types: True is not 1."""
        if label is None and self.missing:
            return self.size - 1
        code = self._code(label)
        if code is not None:
            return code
        if label is None:
            raise no_missing_cell(name)
        near = nearest(label, self.labels)
        others = "" if self.other is None else f", and {shown(self.other)} for others"
        raise InvalidQueryError(
            f"{name} must be one of its {self.size} values ({self._some}{others}), "
            f"got {name}={shown(label)}; "
            f"{'see the domain.' if near is None else f'did you mean {shown(near)}?'}"
        )

    def _code(self, value: Any) -> int | None:
        if type(value) is type(self.labels[0]) and value in self._codes:
            return self._codes[value]
        if self.other is not None and type(value) is str and value == self.other:
            return len(self.labels)
        return self._synonyms.get((type(value), value)) if isinstance(value, Word) else None

    def read(self, column: Column) -> Ints:
        """Return the codes of a column, marks where a value does not fit."""
        missing = absent(column, self.markers)
        cell = self.size - 1 if self.missing else None
        return settled(read_distinct(column, self._lookup), missing, cell, self.others)

    def _lookup(self, value: Any) -> int:
        value, kind = plain(value), type(self.labels[0])
        code = self._code(value)
        if code is None and kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)  # a column of ints with a missing value arrives as floats
            code = self._code(value)
        if code is not None:
            return code
        if type(value) is not kind:
            return STRANGE
        return OUTSIDE if self.other is None else len(self.labels)


@final
@attrs.frozen
class IntegerRange:
    """The integers start, ..., stop - 1, in order; the code of v is v - start.

    Args:
        missing: Whether a last cell holds missing values.
        clip: Whether smaller numbers count as the first integer and larger ones as the last.
        markers: Texts that stand for a missing value.
        round: Whether a number with a fraction counts as the nearest integer, a half as the even one.
        others: Whether every value that fits nowhere counts as missing.
        written: How texts write the number 1234.5: see `integers`.
        clock: Unit in which a time of day is read: see `integers`.
    """

    start: int
    stop: int
    missing: bool = False
    clip: bool = False
    markers: tuple[str, ...] = ()
    round: bool = attrs.field(default=False, kw_only=True)
    others: bool = attrs.field(default=False, kw_only=True)
    column: str | None = attrs.field(default=None, kw_only=True)
    written: tuple[str, ...] = attrs.field(default=(), converter=checked_written, kw_only=True)
    clock: str | None = attrs.field(default=None, kw_only=True)
    ordered = True
    readable = OF_TEXTS

    def __attrs_post_init__(self) -> None:
        check_clock(self.clock, self.written)
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

    @property
    def rule(self) -> str:
        """What a value must be, in words."""
        return f"a whole number from {self.start} to {self.stop - 1}"

    @property
    def wider(self) -> str:
        """How the domain takes more values."""
        return "widen the range, declare clip=True, or clean the table"

    @property
    def form(self) -> str:
        """What a column must hold, in words."""
        return _of_form("numbers" if self.round else "whole numbers", self.written, self.clock)

    @cached_property
    def numerals(self) -> Numerals:
        """What texts stand for as numbers."""
        return Numerals(self.written, self.clock, floor=True)

    def label(self, code: int) -> Label:
        """Return the integer of a code, None for the missing cell."""
        return self.start + int(code) if code < self.stop - self.start else None

    def code(self, name: str, label: Label) -> int:
        """Return the code of an integer of the range."""
        if label is None and self.missing:
            return self.stop - self.start
        if label is None:
            raise no_missing_cell(name)
        number = label if type(label) is int else whole(label)
        if number is None or not self.start <= number < self.stop:
            raise InvalidQueryError(
                f"{name} must be an integer in [{self.start}, {self.stop - 1}], got "
                f"{name}={shown(label)}; {in_place_of(name, label, 'between') or 'ask inside the domain'}."
            )
        return number - self.start

    def interval(self, name: str, low: float, high: float, closed: bool) -> tuple[int, int]:
        """Return the half-open code range of [low, high] (closed) or [low, high) inside the range."""
        _check_numbers(name, low, high)
        first = self.start if low == -math.inf else math.ceil(low)
        last = self.stop if high == math.inf else (math.floor(high) + 1 if closed else math.ceil(high))
        if self.start <= first <= self.stop and self.start <= last <= self.stop:
            return first - self.start, (first if last < first else last) - self.start
        outside = low if first < self.start or first > self.stop else high
        near = inside(low, high, self.start, self.stop - 1, closed)
        raise InvalidQueryError(
            f"{name} must be cut inside [{self.start}, {self.stop - 1}], got {shown(outside)}; write "
            f"{near}, or at_least or below for one side."
        )

    def read(self, column: Column) -> Ints:
        """Return the codes of a column, marks where a value does not fit."""
        if column.dtype.kind in "iu":
            below, above = column < self.start, column >= self.stop
            codes: Ints = column.astype(np.int64) - self.start  # of those inside; others wrap around
            codes[below] = 0 if self.clip else OUTSIDE
            codes[above] = self.stop - self.start - 1 if self.clip else OUTSIDE
            return settled(codes, absent(column), self.size - 1, self.others)
        missing = absent(column, self.markers)
        cell = self.size - 1 if self.missing else None
        column = self.numerals.column(column)
        return settled(read_distinct(column, self._lookup), missing, cell, self.others)

    def _lookup(self, value: Any) -> int:
        value = plain(value)
        number = whole(value)
        if number is None and self.round and is_number(value) and math.isfinite(value):
            number = round(float(value))
        if number is None:
            if not is_number(value) or not math.isinf(value):
                return STRANGE
            number = self.start - 1 if value < 0 else self.stop
        if self.clip:
            number = min(max(number, self.start), self.stop - 1)
        return number - self.start if self.start <= number < self.stop else OUTSIDE


@final
@attrs.frozen
class Binned:
    """A number cut at public edges into bins [e_0, e_1), [e_1, e_2), ...; the code is the bin.

    Args:
        edges: At least two, strictly increasing; the first may be -inf and the last inf.
        integer: Whether the column and the finite edges are whole numbers only; then every comparison with a
            number v has an exact form at v or v + 1. Otherwise conditions must be cut with `span`,
            `at_least`, `below`.
        missing: Whether a last cell holds missing values.
        clip: Whether smaller numbers count in the first bin and larger ones in the last, infinite ones too.
            An infinite number is else in a bin with that infinite edge, and nowhere if there is none.
        markers: Texts that stand for a missing value.
        others: Whether every value that fits nowhere counts as missing.
        ends: Whether a record is shared out between the two ends of its bin, so that their mean is its value:
            see `number`. Every bin has two cells then, first that of its lower end.
        written: How texts write the number 1234.5: see `number`.
        clock: Unit in which a time of day is read: see `number`.
    """

    edges: tuple[float, ...]
    integer: bool = False
    missing: bool = False
    clip: bool = False
    markers: tuple[str, ...] = ()
    others: bool = attrs.field(default=False, kw_only=True)
    column: str | None = attrs.field(default=None, kw_only=True)
    ends: bool = attrs.field(default=False, kw_only=True)
    written: tuple[str, ...] = attrs.field(default=(), converter=checked_written, kw_only=True)
    clock: str | None = attrs.field(default=None, kw_only=True)
    ordered = True
    readable = OF_TEXTS

    def __attrs_post_init__(self) -> None:
        check_clock(self.clock, self.written)
        given: object = self.edges  # whatever was given
        if not isinstance(given, tuple | list):
            raise InvalidDomainError(
                f"edges must be a tuple, got a {type(self.edges).__name__}; write binned([..])."
            )
        if all(map(is_number, self.edges)):  # others would compare, and be written, otherwise
            set_fields(self, edges=_floats(self.edges))
        rising = all(map(is_number, self.edges)) and all(
            low < high for low, high in zip(self.edges, self.edges[1:], strict=False)
        )
        if len(self.edges) < 2 or not rising:  # NaN compares false
            raise InvalidDomainError(
                "edges must be two or more strictly increasing numbers, got "
                f"{shown(list(self.edges))}; sort them, remove repeats, and write inf where there is no end."
            )
        if self.integer and not all(math.isinf(edge) or float(edge).is_integer() for edge in self.edges):
            raise InvalidDomainError(
                "edges must be whole numbers where integer=True, got a fraction; round it up, or "
                "leave integer out."
            )
        if self.ends and (math.isinf(self.edges[0]) or math.isinf(self.edges[-1]) or not self.clip):
            raise InvalidDomainError(
                "a number with ends must have finite edges and clip what lies beyond, got "
                f"{short(self.edges[0])} to {short(self.edges[-1])}; write number(low, high)."
            )

    @property
    def cells(self) -> int:
        """Cells of a bin: two ends, or one."""
        return 1 + self.ends

    @property
    def size(self) -> int:
        return self.cells * (len(self.edges) - 1) + self.missing

    @property
    def rule(self) -> str:
        """What a value must be, in words."""
        return f"a number in [{short(self.edges[0])}, {short(self.edges[-1])})"

    @property
    def wider(self) -> str:
        """How the domain takes more values."""
        return "add edges (inf may end them), declare clip=True, or clean the table"

    @property
    def form(self) -> str:
        """What a column must hold, in words."""
        return _of_form("whole numbers" if self.integer else "numbers", self.written, self.clock)

    @cached_property
    def numerals(self) -> Numerals:
        """What texts stand for as numbers."""
        return Numerals(self.written, self.clock, floor=self.integer)

    def label(self, code: int) -> Label:
        """Return the bin of a code as text, with its end where it has two; None for the missing cell."""
        at, end = divmod(code, self.cells)
        bin_of = self.bin_label(code)
        return f"{bin_of} at {short(self.edges[at + end])}" if self.ends and bin_of is not None else bin_of

    def bin_label(self, code: int) -> str | None:
        """Return the bin of a code as text, whichever of its ends that is; None for the missing cell."""
        at = code // self.cells
        if at >= len(self.edges) - 1:
            return None
        return f"[{short(self.edges[at])}, {short(self.edges[at + 1])})"

    def code(self, name: str, label: Label) -> int:
        """Return the code of the missing cell (None), or of a bin written as by `label`."""
        if label is None and self.missing:
            return self.size - 1
        if label is None:
            raise no_missing_cell(name)
        for code in range(self.size - self.missing):
            if label == self.label(code):
                return code
        at = 0
        if is_number_of(label, Real) and self.edges[0] <= label < self.edges[-1]:  # type: ignore[operator]
            at = bisect.bisect_right(self.edges, label) - 1
        remedy = in_place_of(name, label, "span")
        raise InvalidQueryError(
            f"{name} must be asked by a range on its bin edges, got {name}={shown(label)}; "
            f"{remedy or f'write e.g. span({short(self.edges[at])}, {short(self.edges[at + 1])})'}."
        )

    def interval(self, name: str, low: float, high: float, closed: bool) -> tuple[int, int]:
        """Return the half-open bin range of [low, high] (closed) or [low, high), exact or refused."""
        _check_numbers(name, low, high)
        if self.integer:
            low = low if math.isinf(low) else math.ceil(low)
            high = high if math.isinf(high) else (math.floor(high) + 1 if closed else math.ceil(high))
        elif closed and high != math.inf:
            raise InvalidQueryError(
                f"{name} must be cut half-open, its bins are [a, b), got a closed end at {short(high)}; "
                f"write span({short(low)}, {short(high)})"
                f"{'' if self.ends else ', or declare integer=True for whole numbers'}."
            )
        first, last = self._cut(name, low), self._cut(name, high)
        return self.cells * first, self.cells * max(first, last)

    def _cut(self, name: str, value: float) -> int:
        if math.isinf(value):
            return 0 if value < 0 else len(self.edges) - 1
        at = edge_at(self.edges, value)
        if at is not None:
            return at
        raise InvalidQueryError(
            f"{name} must be cut at a bin edge, got {short(value)}; the nearest edges are "
            f"{' and '.join(map(short, beside(self.edges, value)))}."
        )

    def read(self, column: Column) -> Ints:
        """Return the bins of a column, marks where a value does not fit; of two ends the nearer one."""
        if self.ends:
            return FineBins(self, 1).read(column)
        missing = absent(column, self.markers)
        column = self.numerals.column(column)
        bins, kind = len(self.edges) - 1, column.dtype.kind
        if kind in "iu":
            return settled(self._inside(self._of_integers(column)), missing, bins, self.others)
        if kind == "f":
            strange, values = np.zeros(len(column), bool), column.astype(np.float64)
        elif kind == "O":  # numpy would read the text "1", True and 1 + 0j as numbers
            strange = ~np.fromiter(map(is_number, column), bool, len(column))
            values = np.fromiter(map(as_float, np.where(strange, math.nan, column)), float, len(column))
        else:
            strange, values = np.ones(len(column), bool), np.full(len(column), math.nan)
        codes: Ints = np.searchsorted(np.asarray(self.edges), values, side="right").astype(np.int64) - 1
        codes[values == math.inf] = bins - 1 if self.edges[-1] == math.inf else bins
        for row in np.flatnonzero(np.abs(values) >= EXACT) if kind == "O" else ():
            number = whole(column[row])
            if number is not None:
                codes[row] = bisect.bisect_right(self.edges, number) - 1
        codes = self._inside(codes)
        if self.integer:
            strange |= np.isfinite(values) & (values != np.rint(values))
        codes[strange] = STRANGE
        return settled(codes, missing, bins if self.missing else None, self.others)

    def _of_integers(self, column: Column) -> Ints:
        """Return the bins of whole numbers, each compared exactly: as doubles some would reach an edge."""
        most = np.iinfo(column.dtype)
        first = [math.ceil(max(min(edge, 2.0**64), -(2.0**64))) for edge in self.edges]  # of each bin
        below = sum(number <= most.min for number in first)
        inner = [number for number in first if most.min < number <= most.max]
        return below - 1 + np.searchsorted(np.array(inner, column.dtype), column, side="right")

    def _inside(self, codes: Ints) -> Ints:
        """Return bins, those below and above all edges in the end bins or marked."""
        bins = len(self.edges) - 1
        if self.clip:
            return np.clip(codes, 0, bins - 1)
        codes[(codes < 0) | (codes >= bins)] = OUTSIDE
        return codes


@final
@attrs.frozen
class FineBins:
    """How far a number lies from the lower end of its bin to the upper one, in so many steps: for loaders.

    Args:
        kind: With two ends a bin.
        steps: At least 1. The code of bin b and of j steps, 0 <= j <= steps, is (steps + 1) b + j; the last
            one is missing.
    """

    kind: Binned
    steps: int

    def __attrs_post_init__(self) -> None:
        set_fields(self, steps=checked_integer("steps", self.steps, at_least=1))

    @property
    def size(self) -> int:
        return (self.steps + 1) * (len(self.kind.edges) - 1) + 1

    @property
    def missing(self) -> bool:
        return self.kind.missing

    @property
    def markers(self) -> tuple[str, ...]:
        return self.kind.markers

    @property
    def numerals(self) -> Numerals:
        """What texts stand for as numbers."""
        return self.kind.numerals

    @property
    def readable(self) -> str:
        """How the domain takes a column of other texts."""
        return self.kind.readable

    @property
    def rule(self) -> str:
        """What a value must be, in words."""
        return self.kind.rule

    @property
    def wider(self) -> str:
        """How the domain takes more values."""
        return self.kind.wider

    @property
    def form(self) -> str:
        """What a column must hold, in words."""
        return self.kind.form

    def read(self, column: Column) -> Ints:
        """Return the fine codes of a column, marks where a value does not fit."""
        edges = np.asarray(self.kind.edges)
        codes = attrs.evolve(self.kind, ends=False).read(column)
        inside, missing = (codes >= 0) & (codes < len(edges) - 1), codes == len(edges) - 1
        bins, column = codes[inside], self.kind.numerals.column(column)
        if column.dtype.kind == "O":
            values = np.fromiter(map(as_float, column[inside]), float, len(bins))
        else:
            values = column[inside].astype(np.float64)
        low, high = edges[bins], edges[bins + 1]
        steps = np.rint((np.clip(values, low, high) - low) / (high - low) * self.steps).astype(np.int64)
        codes[inside] = (self.steps + 1) * bins + steps
        codes[missing] = self.size - 1
        return codes


def _floats(edges: Iterable[Any]) -> tuple[float, ...]:
    """Return edges as floats, without -0.0."""
    try:
        return tuple(float(edge) + 0.0 for edge in edges)
    except OverflowError:  # an integer beyond them
        raise InvalidDomainError(
            f"edges must be numbers that floats can hold, got {shown(edges)}; write inf for no end."
        ) from None


def _of_form(what: str, written: tuple[str, ...], clock: str | None) -> str:
    """Return what a column must hold, with the texts that stand for it."""
    if clock is not None:
        return f"times of day such as 18:05:28, or {what} of {clock}"
    return f"{what}, or texts as {' or '.join(map(shown, written))}" if written else what


Attribute = Categorical | IntegerRange | Binned | Dates


@public
def categorical(
    labels: Iterable[Any], *, other: bool | str = False, synonyms: Mapping[Any, Any] | None = None
) -> Categorical:
    """Return the kind of a value that is one of some labels.

    Args:
        labels: Distinct, of one type.
        other: Whether one more cell counts every value of that type that is not listed: a public cell, so
            that a table may hold labels that nobody knew of. A text names it; True names it "other".
        synonyms: Value -> label that it stands for, such as {"male": "M"}.

    Raises:
        InvalidDomainError: If labels and synonyms are not distinct, of other types, or lead nowhere.

    Examples:
        >>> kind = categorical(["F", "M"], other=True, synonyms={"female": "F"})
        >>> kind.size, kind.code("sex", "female"), kind.label(2)
        (3, 0, 'other')
    """
    if isinstance(labels, (str, bytes, Mapping, set, frozenset)) or not isinstance(labels, Iterable):
        raise InvalidDomainError(f"labels must be a list of labels, got {shown(labels)}; write a list.")
    if synonyms is not None and not isinstance(synonyms, Mapping):
        raise InvalidDomainError(
            f"synonyms must be a mapping of value to label, got {shown(synonyms)}; write {{'male': 'M'}}."
        )
    if type(other) not in (bool, str):
        raise InvalidDomainError(
            f"other must be True, False or a name, got {shown(other)}; write other=True."
        )
    pairs = tuple((plain(word), plain(label)) for word, label in (synonyms or {}).items())
    name = ("other" if other else None) if isinstance(other, bool) else other
    listed = checked_list("labels", labels, remedy="write a list")
    return Categorical(tuple(map(plain, listed)), other=name, synonyms=pairs)


@public
def boolean(true: Any = (), false: Any = ()) -> Categorical:
    """Return the kind of a value that is true or false; its mean is a rate.

    True and False, 1 and 0 and the texts true and false are read as they are, with any case.

    Args:
        true: A word or a number of the table that stands for True, or a list of them, such as "yes".
        false: Such as "no"; numbers that are given replace 1 and 0.

    Raises:
        InvalidDomainError: If a word stands for both, or for none that a table could hold.

    Examples:
        >>> boolean("yes", "no").code("smokes", "yes")
        1
        >>> boolean(1, 2).code("smokes", 2)
        0
    """
    told = {True: _words("true", true), False: _words("false", false)}
    numbers = any(type(word) is not str for words in told.values() for word in words)
    synonyms: list[tuple[Word, bool]] = []
    for label, words in told.items():
        text = str(label)
        given = [*words, text, text.lower(), text.upper()]
        given += [] if numbers else [int(label)]
        # a CSV file holds a number as a text
        given += [str(word) for word in given if type(word) is int]
        synonyms += [(word, label) for word in dict.fromkeys(given)]
    return Categorical((False, True), synonyms=tuple(synonyms))


def _words(name: str, given: Any) -> list[Word]:
    """Return the words that stand for one of two values."""
    alone = isinstance(given, str | int | float) or not isinstance(given, Iterable)
    listed = [plain(word) for word in ([given] if alone else given)]
    if not all(type(word) in (str, int) for word in listed):
        raise InvalidDomainError(
            f"{name} must be a word or a whole number of the table, got {shown(given)}; write "
            "boolean('yes', 'no')."
        )
    return listed


@public
def integers(
    first: int,
    last: int,
    *,
    clip: bool = False,
    round: bool = False,
    written: str | Iterable[str] = (),
    clock: Clock | None = None,
) -> IntegerRange:
    """Return the kind of a whole number from `first` to `last`, both included.

    Args:
        first, last: Public ends, of at most 2^62.
        clip: Whether smaller numbers count as `first` and larger ones as `last`; else they are refused.
        round: Whether a number with a fraction counts as the nearest integer, a half as the even one; else it
            is refused.
        written: How texts of the table write the number 1234 (or 1234.5): "1,234", "1.234 €", "$1,234.5". A
            text must have the signs of the example; of several examples those of one. "(1,234)" reads what is
            below 0.
        clock: Unit in which a time of day, such as 18:05:28, is read: the whole ones since midnight.

    Raises:
        InvalidDomainError: If an end is no integer, the ends are swapped, or an example is no 1234.

    Examples:
        >>> integers(17, 90).size
        74
    """
    ends = plain(first), plain(last)
    if not all(type(end) is int for end in ends):
        raise InvalidDomainError(
            f"integers must have integers as ends, got {shown(first)} and {shown(last)}; write "
            "integers(17, 90)."
        )
    if ends[1] < ends[0]:
        raise InvalidDomainError(
            f"integers must run upwards, got {ends[0]} to {ends[1]}; write integers({ends[1]}, {ends[0]})."
        )
    return IntegerRange(ends[0], ends[1] + 1, clip=clip, round=round, written=written, clock=clock)


@public
def binned(
    edges: Iterable[float],
    *,
    integer: bool = False,
    clip: bool = False,
    written: str | Iterable[str] = (),
    clock: Clock | None = None,
) -> Binned:
    """Return the kind of a numeric attribute cut into bins [edge, next edge).

    Args:
        edges: Public, strictly increasing; the first may be -inf and the last inf, and infinite numbers are
            then in the bin that ends there. What arithmetic made, as of `np.arange(0, 1, 0.1)`, stands for
            its decimal: .30000000000000004 for .3.
        integer: Whether the column holds whole numbers only.
        clip: Whether numbers beyond the edges count in the first and the last bin; else they are refused.
        written: How texts of the table write the number 1234.5, as of `number`.
        clock: Unit in which a time of day is read, as of `number`.
    """
    try:
        given = checked_list("edges", edges)
    except InvalidParameterError:
        given = []
    if not given or not all(map(is_number, given)):
        raise InvalidDomainError(
            f"edges must be a list of numbers, got {shown(edges)}; write e.g. binned([0, 20, 35, 50])."
        )
    return Binned(decimals(_floats(given)), integer, clip=clip, written=written, clock=clock)


@public
def number(
    low: float,
    high: float,
    *,
    bins: int | Iterable[float] | None = None,
    written: str | Iterable[str] = (),
    clock: Clock | None = None,
) -> Binned:
    """Return the kind of a real number whose sums and means need no midpoints, between two public ends.

    It is cut into bins, and each record is shared out between the two ends of its bin, so that their mean is
    its value: sums need no midpoints. What lies beyond
    `low` and `high` counts as them. It can be cut at the edges of bins alone. A table with such an attribute
    is loaded in parts, 64 a record (see `Unit`): what lies in one cell is rounded to them together, by a
    public hash, up as often as down. `bias` of a mean or a sum says how much that can be, for every table: of
    a mean at most 1/64 of a bin where it is the only number and each record is a person of its own. What
    sharing out the rows of a person with several can do it does not say. Counts at a single end are counts of
    parts. Only sessions ask it.

    Args:
        low, high: Public: never the least and the largest number of the table.
        bins: A number of them, at least 1, or the values themselves. So many bins of equal width, or their
            public edges from `low` to `high`. By default about 64, cut at multiples of a width 1, 2 or 5
            times a power of ten. Every bin has two cells. More bins can be cut finer, and make sums no more
            accurate.
        written: How texts of the table write the number 1234.5: "1,234.5", "1.234,5 €", "$1,234.5", "1234,5",
            "1234.5%". A text must have the signs of the example, of several examples those of one; what
            stands around the digits is left out, so that 45% is 45. "(1,234.5)" reads what is below 0.
        clock: Unit in which a time of day is read: 18:05:28, 6:05 pm, or a time of Python. 18:30 is 18.5
            hours.

    Raises:
        InvalidDomainError: If the ends are no finite rising numbers, the edges lead elsewhere, or an example
            is no 1234.5.

    Examples:
        >>> number(0, 1000, bins=10).size
        20
        >>> number(0, 50_000).edges[:4]
        (0.0, 1000.0, 2000.0, 3000.0)
    """
    if not (is_number(low) and is_number(high)) or not -math.inf < low < high < math.inf:
        raise InvalidDomainError(
            f"number must have two finite ends that rise, got {shown(low)} and {shown(high)}; write "
            "number(0, 1000)."
        )
    if bins is None:
        return Binned(rounded(low, high), clip=True, ends=True, written=written, clock=clock)
    whole_bins = whole(bins)
    if whole_bins is None and not isinstance(bins, Iterable):
        raise InvalidDomainError(f"bins must be a number of bins or their edges, got {shown(bins)}.")
    if whole_bins is not None:
        if not 1 <= whole_bins <= MOST_BINS:
            raise InvalidDomainError(
                f"bins must be from 1 to {MOST_BINS:,}, got bins={shown(bins)}; change it."
            )
        edges = even(low, high, whole_bins)
    else:
        edges = binned(bins, clip=True).edges  # type: ignore[arg-type]  # no number
        if not (is_at(low, edges[0]) and is_at(high, edges[-1])):
            raise InvalidDomainError(
                f"bins must have edges from low to high, got {short(edges[0])} to {short(edges[-1])} for "
                f"{short(float(low))} to {short(float(high))}; add the ends."
            )
    return Binned(edges, clip=True, ends=True, written=written, clock=clock)


def _of_labels(kinds: Collection[type]) -> str:
    """Return what to do about labels of such types."""
    if not kinds:
        return "list what the column may hold"
    if type(None) in kinds:
        return "leave None out, and declare optional([..])"
    return "write binned([..]) for numbers" if kinds == {float} else "convert them to one type"


def _check_numbers(name: str, low: Any, high: Any) -> None:
    """Refuse dates as ends of a range of numbers."""
    if type(low) is str or type(high) is str:
        end = low if type(low) is str else high
        raise InvalidQueryError(f"{name} must be cut at numbers, got {shown(end)}; write numbers.")
