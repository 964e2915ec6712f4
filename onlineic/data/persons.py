"""Persons in parts: whose row it is, and how a person is shared out over cells, and over ends of bins.

PRIVATE. Which parts a person has follows from that person's rows, their identifier and public constants
alone. At which ends of a bin they lie is rounded for all that is in a cell, or for all records that are
equal, so that a person more adds their own parts to the table, and moves no others.

Proof: docs/theory/queries.md, 1.7, 1.8.
"""

import copy
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard, final

import numpy as np

from onlineic._typing import Ints
from onlineic.data.rows import Column
from onlineic.domain.attributes import Attribute, Binned, FineBins
from onlineic.domain.columns import OUTSIDE, STRANGE, absent, is_number, plain, read_distinct, whole
from onlineic.domain.domain import Domain, Records, codes_of
from onlineic.domain.unit import Unit
from onlineic.errors import InvalidParameterError

MANY = 2**40  # identifiers that a column may hold
PUBLIC = b"onlineic persons"  # of the hash: the same at every load
STEPS = 2**20  # of a number from one end of its bin to the other
CHUNK = 2**19  # parts that are held at a time


@final
class Persons:
    """The column of identifiers, read as an attribute is: persons are numbered as they come.

    An identifier is a whole number or a text without the white space at its ends; 7, "7" and "7 " are one. A
    float stands for one whole number only below the power of two up to which its type has them all: two
    persons could be one number beyond.
    """

    size, missing, ordered, markers = MANY, False, False, ()
    rule = "a person's number or name, never missing,"
    wider = "give every row its person, and leave out what is nobody's (check takes the unit, too)"
    form = "whole numbers, of floats those that are exact, or texts"
    readable = "convert the column to texts"

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def read(self, column: Column) -> Ints:
        """Return the number of every row's person, marks where there is none."""
        floats = column.dtype if column.dtype.kind == "f" else np.dtype(float)
        exact = 2 ** (np.finfo(floats).nmant + 1)
        codes = read_distinct(column, lambda value: self._number(value, exact))
        codes[absent(column)] = OUTSIDE
        return codes

    def _number(self, value: Any, exact: int) -> int:
        value = plain(value)
        if isinstance(value, float) and abs(value) >= exact:
            return STRANGE
        number = whole(value) if is_number(value) else None
        if number is not None:
            value = str(number)
        if type(value) is not str:
            return STRANGE
        name = value.strip()  # of a column of fixed width, say: one person would be protected as two
        return self._known.setdefault(name, len(self._known)) if name else OUTSIDE

    def offsets(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Return a public hash of each person's identifier, in [0, 2^64)."""
        digests = (
            hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8, person=PUBLIC).digest()
            for name in self._known
        )
        return np.frombuffer(b"".join(digests), "<u8")


@final
class Parted:
    """A domain as loaders see it: numbers with two ends are finer, and a column of identifiers is the
    last.
    """

    def __init__(self, domain: Domain, unit: Unit) -> None:
        self.unit, person = unit, unit.person
        kinds = [FineBins(kind, STEPS) if has_ends(kind) else kind for kind in domain.attributes]
        self.domain, self.persons = domain, None if person is None else Persons()
        self.names = domain.names if person is None else (*domain.names, person)
        self.columns = domain.columns if person is None else (*domain.columns, person)
        self.attributes: tuple[Any, ...] = tuple(kinds if person is None else [*kinds, self.persons])
        self.size = domain.size
        if unit.at_most is not None and any(map(has_ends, domain.attributes)):
            raise InvalidParameterError(
                "weigh must be 'persons' with a number between two ends, whose parts rows do not have, got "
                "weigh='rows'; leave it out, or bin the number by binned(..)."
            )

    def __iter__(self) -> Iterator[tuple[str, Attribute]]:
        return iter(zip(self.names, self.attributes, strict=True))

    def cut_into(self, unit: Unit) -> "Parted":
        """Return the same domain with the same persons, in the parts of another unit of theirs."""
        other = copy.copy(self)
        other.unit = unit
        return other

    def encoded(self, columns: Records) -> list[Column]:
        """Return the codes of records, attribute by attribute, those of persons last."""
        return [*codes_of(self, self.domain.columns_of(columns, self.unit.person))]

    def parts(self, columns: Sequence[Column], rows: Ints | None) -> tuple[list[Column], Ints]:
        """Return the cells of the domain on which parts lie, and how many lie there; all is as was read.

        Every person, or every record where nobody is named, has exactly `units` parts. With `at_most` rows of
        a person each of these is one, of as many as there are, or as may count.
        """
        units, weight = self.unit.units, np.ones(len(columns[0]), np.int64) if rows is None else rows
        if self.unit.at_most is not None:
            *cells, persons = columns
            counted = np.bincount(persons.astype(np.int64), weight, len(self.persons or ())).astype(np.int64)
            most = np.minimum(counted, self.unit.at_most)
            offsets = np.zeros(0) if self.persons is None else self.persons.offsets()
            held, parts, _ = shared_out(cells, rows, persons, offsets, most)
            return held, parts
        axes = [axis for axis, kind in enumerate(self.domain.attributes) if has_ends(kind)]
        if self.persons is not None:
            *cells, persons = columns
            offsets = self.persons.offsets()
            held, parts, owner = shared_out(cells, rows, persons, offsets, units)
            times = np.ones(len(offsets), np.int64)
        else:
            held, parts, owner = list(columns), np.full(len(weight), units), np.arange(len(weight))
            offsets, times = np.zeros(0, np.uint64), weight
            if len(axes) > 1:
                held, parts, owner, offsets, times = _equal_together(held, weight, units)
        if len(axes) > 1:
            held, parts = in_runs(held, parts, owner, offsets, times, axes[:-1])
        else:
            parts = parts * times[owner]
        return ended(held, parts, axes[-1]) if axes else (held, parts)


def seen_by(domain: Domain, unit: Unit | None) -> Domain | Parted:
    """Return how a table is read: by its domain or, where records are in parts, by a `Parted` one."""
    if unit is None and any(map(has_ends, domain.attributes)):
        unit = Unit(None)
    return domain if unit is None else Parted(domain, unit)


def columns_read(domain: Domain, unit: Unit | None) -> list[tuple[str, Any]]:
    """Return the columns that a table of this unit must have, with what their values must be."""
    person = None if unit is None else unit.person
    return [*domain, *([] if person is None else [(person, Persons())])]


def has_ends(kind: Attribute) -> TypeGuard[Binned]:
    """Return whether records are shared out between the two ends of a bin."""
    return isinstance(kind, Binned) and kind.ends


def _equal_together(
    columns: list[Column], weight: Ints, units: int
) -> tuple[list[Column], Ints, Ints, Any, Ints]:
    """Return rows, parts, runs, a public hash of each run and how often it is there, of unnamed records.

    Equal records are one run, as long as all of their parts. It begins again after `STEPS` parts, where the
    steps of all numbers sum up to whole parts: these cycles are alike, and are looked at once.
    """
    columns, weight = _merged(columns, weight)
    cycles, rest = np.divmod(weight, STEPS // units)
    whole, some = np.flatnonzero(cycles), np.flatnonzero(rest)
    rows = np.concatenate([whole, some])
    parts = np.concatenate([np.full(len(whole), STEPS), units * rest[some]])
    times = np.concatenate([cycles[whole], np.ones(len(some), np.int64)])
    held = [column[rows] for column in columns]
    return held, parts, np.arange(len(rows)), _mixed(held), times


def in_runs(
    columns: Sequence[Column], parts: Ints, owner: Ints, offsets: Any, times: Ints, axes: Sequence[int]
) -> tuple[list[Column], Ints]:
    """Return rows and parts with all numbers but the last on their ends, systematically drawn from every run.

    The first j parts of a run are to lie so many steps in all above their lower ends, S_j of STEPS; that many
    of them lie at upper ends is floor((S_j + V) / STEPS), with V in [0, STEPS) by the run's hash.

    Args:
        columns: Each of shape (rows,). Run by run.
        parts, owner: Shape (rows,). Of each row, how many parts it has, and of which run.
        offsets: Shape (runs,). A public hash of each.
        times: Shape (runs,). How many runs it stands for.
        axes: Of the numbers.
    """
    found: list[list[Column]] = []
    for rows in _whole_runs(parts, owner):
        many, runs = parts[rows], owner[rows]
        row = np.repeat(np.arange(len(many)), many)
        starts = np.flatnonzero(np.diff(runs, prepend=-1))  # rows where runs begin
        lengths = np.add.reduceat(many, starts)
        begin, hashes = np.cumsum(lengths) - lengths, offsets[runs[starts]]
        which, uppers = row, list[Ints]()  # which: one number for a row and the ends on which a part lies
        for axis in axes:
            steps = (columns[axis][rows].astype(np.int64) % (STEPS + 1))[row]
            before = np.cumsum(steps) - steps
            shift = (_scrambled(hashes * np.uint64(2 * axis + 1)) % np.uint64(STEPS)).astype(np.int64)
            before += np.repeat(shift - before[begin], lengths)
            uppers.append((before + steps) // STEPS - before // STEPS)
            which = 2 * which + uppers[-1]
            if len(uppers) % 16 == 0:  # so that it does not grow beyond an integer
                which = np.unique(which, return_inverse=True)[1]
        _, one, counts = np.unique(which, return_index=True, return_counts=True)
        row = row[one]
        held = [column[rows][row] for column in columns]
        for axis, upper in zip(axes, uppers, strict=True):
            held[axis] = 2 * (held[axis].astype(np.int64) // (STEPS + 1)) + upper[one]
        found.append([*held, counts * times[runs[row]]])
    if not found:  # of nobody
        return list(columns), parts
    *cells, counts = [np.concatenate(column) for column in zip(*found, strict=True)]
    return cells, counts


def _whole_runs(parts: Ints, owner: Ints) -> Iterator[slice]:
    """Yield slices of rows that hold whole runs, not too many parts at a time."""
    ends = np.flatnonzero(np.diff(owner, append=-1)) + 1
    upto, first, start, before = np.cumsum(parts)[ends - 1], 0, 0, 0
    while first < len(ends):
        last = max(first + 1, int(np.searchsorted(upto, before + CHUNK, side="right")))
        yield slice(start, int(ends[last - 1]))
        first, start, before = last, int(ends[last - 1]), int(upto[last - 1])


def ended(columns: Sequence[Column], parts: Ints, axis: int) -> tuple[list[Column], Ints]:
    """Return cells and parts with the last number on its ends: all parts of a cell are shared out together.

    They are to lie so many steps in all above the lower end, S of STEPS; that many of them lie at the upper
    end is floor((S + V) / STEPS), with V in [0, STEPS) by a public hash of the cell.
    """
    bins, steps = np.divmod(columns[axis].astype(np.int64), STEPS + 1)
    rounds, rest = np.divmod(parts, STEPS)
    whole, rest = np.divmod(rest * steps, STEPS)
    held = [bins if place == axis else column for place, column in enumerate(columns)]
    held, parts, whole, rest = _merged(held, parts, rounds * steps + whole, rest)
    upper = whole + (rest + (_mixed(held) % np.uint64(STEPS)).astype(np.int64)) // STEPS
    held[axis] = 2 * held[axis]
    cells = [np.concatenate([column, column + (place == axis)]) for place, column in enumerate(held)]
    counts = np.concatenate([parts - upper, upper])
    some = counts > 0
    return [column[some] for column in cells], counts[some]


def _merged(columns: Sequence[Column], *sums: Ints) -> Any:
    """Return the rows that differ, as a list of columns, and sums over those that are equal."""
    if not len(columns[0]):
        return [*columns], *sums
    order = np.lexsort(tuple(columns))
    held = [column[order] for column in columns]
    other = np.zeros(len(order), bool)
    other[0] = True
    for column in held:
        other[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(other)
    return [column[first] for column in held], *(np.add.reduceat(one[order], first) for one in sums)


def _mixed(columns: Sequence[Column]) -> Any:
    """Return a public hash of the codes of every row, (rows,) uint64."""
    keys = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        keys = _scrambled(keys + column.astype(np.uint64))
    return keys


def _scrambled(keys: Any) -> Any:
    """Return a public hash of integers: the finalizer of splitmix64."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def shared_out(
    columns: Sequence[Column], rows: Ints | None, persons: Ints, offsets: Any, units: int | Ints
) -> tuple[list[Column], Ints, Ints]:
    """Return cells and whole parts of all persons: each has exactly `units` of them.

    A person's R rows lie one after the other in the order of their cells, and the person's parts are drawn
    from them systematically: the first t rows get floor((units t + V) / R) of them, with V in [0, R) by the
    hash. Every cell, and every run of cells, gets its share rounded up or down; over V, the share itself.

    Args:
        columns: Each of shape (rows,). Codes of one attribute each.
        rows: Shape (rows,). How many equal rows each stands for; None: one.
        persons: Shape (rows,). The number of each row's person.
        offsets: Shape (persons,). A public hash of each.
        units: One number, or shape (persons,). Of each. Where there are no more than the person has rows, no
            row has two.

    Returns:
        Rows that have some, person by person.
    """
    order = np.lexsort((*reversed(columns), persons))
    owner = persons[order].astype(np.int64)
    weight = np.ones(len(owner), np.int64) if rows is None else rows[order].astype(np.int64)
    ends = np.cumsum(weight)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    before = np.zeros(len(offsets), np.int64)
    before[owner[first]] = ends[first] - weight[first]
    total = np.zeros(len(offsets), np.int64)
    np.add.at(total, owner, weight)
    whole_rows = total[owner]
    shift = (offsets[owner] % whole_rows.astype(np.uint64)).astype(np.int64)
    upper = ends - before[owner]
    units = units[owner] if isinstance(units, np.ndarray) else units
    parts = (units * upper + shift) // whole_rows - (units * (upper - weight) + shift) // whole_rows
    some = parts > 0
    return [column[order][some] for column in columns], parts[some], owner[some]
