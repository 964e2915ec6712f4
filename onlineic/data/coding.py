"""Columns of values to columns of codes, many rows at a time: every distinct value is encoded once.

PRIVATE. Whatever a table comes from, its values meet the domain here, by `read` of the attribute: the source
only says which values there are, and which row has which.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from onlineic._typing import Ints
from onlineic.data.persons import Parted
from onlineic.data.rows import Column, narrowest
from onlineic.domain.attributes import Attribute
from onlineic.domain.columns import MARKS, decimals_read, keyed
from onlineic.domain.domain import Domain
from onlineic.domain.misfits import Misfit, misfits, reading, refuse
from onlineic.errors import InvalidDataError

REMEMBERED = 2**18  # distinct values of one column

Places = tuple[Sequence[Any], Ints]  # distinct values, and for every row which of them it has


class Batch(NamedTuple):
    """Some rows of a table, or some groups of equal rows.

    Attributes:
        columns: Sequence of arrays of numbers, or of distinct values with places. One for every attribute of
            the domain, in its order.
        records: Shape (rows,). How many records every row stands for; None: one each.
        total: Number of records of the whole table, as its source counted them, apart from the groups.
    """

    columns: Sequence[Column | Places]
    records: Ints | None
    total: int


def coded(batches: Iterable[Batch], domain: Domain | Parted) -> tuple[list[Column], Ints | None]:
    """Return the column of codes of every attribute, and the number of records of every row.

    Raises:
        InvalidDataError: If a value lies outside the domain (the message names every column that does not
            fit), the records are not as many as the source counted: nothing is dropped on the way.
    """
    columns = [_Coded(name, kind) for name, kind in domain]
    counts: list[Ints] = []
    seen = total = 0
    for batch in batches:
        for column, values in zip(columns, batch.columns, strict=True):
            rows = column.take(values)
        total = batch.total
        if batch.records is not None:
            counts.append(batch.records)
        seen += rows if batch.records is None else int(batch.records.sum())
    if seen != total:
        raise InvalidDataError(
            "table must not change while it is read, got groups of another sum than its number of rows; "
            "load a copy."
        )
    refuse([misfit for column in columns for misfit in column.codes.misfits()])
    return [column.codes.array() for column in columns], np.concatenate(counts) if counts else None


def places(values: Sequence[Any]) -> Places:
    """Return the distinct values, told apart by type too, and which of them every row has."""
    known: dict[Any, int] = {}
    try:
        keys = keyed(values)
        found = np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64, len(values))
    except TypeError:  # lists and the like, which no attribute takes
        return values, np.arange(len(values))
    return [key[1] for key in known], found


def integers(column: Column | Places) -> Ints:
    """Return a column of integers that are never missing as an array."""
    if isinstance(column, np.ndarray):
        return column.astype(np.int64)
    values, found = column
    return np.array(values, np.int64)[found]


@final
class Codes:
    """The codes of one column, many rows at a time, and what is wrong with its values."""

    def __init__(self, name: str, kind: Any) -> None:
        self._name, self._kind, self._type = name, kind, narrowest(kind.size)
        self._parts: list[Column] = []
        self._marks: set[int] = set()

    def keep(self, codes: Ints) -> None:
        """Keep the codes of the next rows, or marks in their place."""
        if codes.size and codes.min() < 0:
            self._marks |= {mark for mark in MARKS if np.any(codes == mark)}
        self._parts.append(codes.astype(self._type))  # marks wrap around, and are raised before anybody looks

    def misfits(self) -> list[Misfit]:
        """Return the rules that some value broke."""
        return misfits(self._name, self._kind, np.array([*self._marks], np.int64))

    def array(self) -> Column:
        """Return the codes of all rows, which are let go."""
        parts, self._parts = self._parts, []
        return np.concatenate(parts) if parts else np.zeros(0, self._type)


@final
class _Coded:
    """One attribute's column, as it is read."""

    def __init__(self, name: str, kind: Attribute) -> None:
        self._name, self._kind, self.codes = name, kind, Codes(name, kind)
        self._known: dict[Any, int] = {}

    def take(self, values: Column | Places) -> int:
        """Take the next rows, as an array of numbers or as distinct values; return how many."""
        with reading(self._name):
            if isinstance(values, np.ndarray):
                codes = self._kind.read(values)
            else:
                distinct, found = values
                codes = self._read(distinct)[found]  # of those that no row has, nothing is asked further
        self.codes.keep(codes)
        return len(codes)

    def _read(self, values: Sequence[Any]) -> Ints:
        if len(self._known) > REMEMBERED:
            self._known.clear()
        try:
            keys = keyed(values)
            new = [at for at, key in enumerate(keys) if key not in self._known]
        except TypeError:  # lists and the like, which no attribute takes
            return self._kind.read(decimals_read(_objects(values)))
        fresh = self._kind.read(decimals_read(_objects([values[at] for at in new])))
        codes = np.array([self._known.get(key, 0) for key in keys], np.int64)
        codes[new] = fresh
        self._known |= zip([keys[at] for at in new], fresh.tolist(), strict=True)
        return codes


def _objects(values: Sequence[Any]) -> Column:
    """Return a column that keeps each value as it is."""
    column = np.empty(len(values), object)
    for at, value in enumerate(values):  # a slice would unpack values that have a length
        column[at] = value
    return column
