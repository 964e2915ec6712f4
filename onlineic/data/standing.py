"""Tables that stay where they live: counted there, one set of attributes at a time, and kept as counts.

PRIVATE. What is counted, when, in which order, what is kept and what is let go follows from the domain, the
number of records and the questions: a table is taken to be as large as it can be, min(cells, n), never as it
is. No row comes here.

Proof: docs/theory/session.md, 4.12.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.data.rows import Column, narrowest
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidDataError, TooLargeError
from onlineic.queries.partitions import Partition
from onlineic.queries.reach import Axes, Reach
from onlineic.queries.tables import Tables, contract

MOST_ENTRIES = 2**22  # of one table: min(cells, n)
SMALL = 2**18  # cells up to which a table is an array, however few records there are
KEPT_BYTES = 2**27  # of what is counted on demand
LOADED_BYTES = 2**26  # of what is counted at load, and stays
MOST_SETS = 1024  # that are counted at load
TOGETHER = 64  # sets that are counted on demand by one statement
JOINED = 2**16  # cells of a table from which those of smaller sets are summed
UNLIMITED = 2**62

Groups = tuple[list[Column], Ints]  # codes of every attribute of a set, and the records of every group


@final
@attrs.frozen(eq=False, repr=False)
class Source:
    """One immutable snapshot of a table, in the engine that holds it.

    Attributes:
        rows: Asks the engine for the number of records.
        count: (sets of attributes) -> groups of each. Asks the engine for the groups of equal records over
            each set, and their numbers.
        version: What tells this snapshot from any other: it stays in this process. None: nothing does, and
            the table is counted once.
    """

    domain: Domain
    rows: Callable[[], int]
    count: Callable[[Sequence[Axes]], list[Groups]]
    version: Callable[[], Hashable] | None


@final
class StandingTables:
    """Sums over boxes and weighted boxes of a table that another engine holds, from counts of sets.

    Args:
        announced: Sets of attributes that are counted at load, besides all of two.
        on_demand: Whether other sets are counted as questions ask for them.

    Attributes:
        n: Number of records.
        reach: What can be counted.

    Raises:
        TooLargeError: If what is to be counted at load is too much, or an announced set is too large.
        InvalidDataError: If there are no records, or the table changed meanwhile.
    """

    __slots__ = (
        "_blocks", "_bytes", "_counts", "_held", "_loaded", "_needed", "_shape", "_source", "_version",
        "n", "reach",
    )  # fmt: skip

    def __init__(self, source: Source, announced: Sequence[Axes], on_demand: bool) -> None:
        self._source, self._shape = source, source.domain.shape
        self._held: OrderedDict[Axes, Tables | _Groups] = OrderedDict()  # the one used last comes last
        self._loaded: dict[Axes, Tables | _Groups] = {}
        self._needed = set[Axes]()  # sets that the next read rests on, until others are fetched
        self._blocks: dict[Partition, Ints] = {}
        self._bytes = 0
        self._counts = 0
        self._version = None if source.version is None else source.version()
        self.n = source.rows()
        if not self.n:
            raise InvalidDataError("records must be one or more, got none; load some.")
        self.reach = Reach(MOST_ENTRIES if self.n > MOST_ENTRIES else UNLIMITED)
        self._load(self._chosen(announced))
        if not on_demand:
            self.reach = attrs.evolve(self.reach, sets=tuple(self._loaded))

    @property
    def counts(self) -> int:
        """How many statements were sent to the engine."""
        return self._counts

    def booked(self, axes: Axes) -> int:
        """Return the bytes that the table of a set is taken to need, whatever it holds."""
        cells = self._cells(axes)
        if self._is_array(cells):
            return 16 * cells  # and its prefix sums
        return self.n * (8 + sum(narrowest(self._shape[axis]).itemsize for axis in axes))

    def fetch(self, sets: Iterable[Axes], partitions: Sequence[Partition] = ()) -> None:
        """Have the tables of these sets, and the blocks of partitions, counted, unless they are kept already.

        Every set must be one that `reach` holds. What the engine raises leaves nothing changed.
        """
        self._needed.clear()
        wanted = self._absent(sets)
        for part in self._parts(wanted):
            for axes, table in zip(part, self._counted(part), strict=True):
                self._keep(axes, table)
        blocks = {one: one.axes for one in partitions if one not in self._blocks}
        absent = self._absent(blocks.values())
        found: dict[Partition, Ints] = {
            one: self._sums(axes).measure(one) for one, axes in blocks.items() if axes not in absent
        }
        for part in self._parts(absent):
            for axes, table in zip(part, self._counted(part), strict=True):
                # let go once its blocks are known
                found |= {one: _Sums(table).measure(one) for one, held in blocks.items() if held == axes}
        self._blocks |= found

    def fitting(self, sets: Iterable[Axes]) -> int:
        """Return of how many of the leading sets tables are kept together; at least of one."""
        room, seen, count = KEPT_BYTES // 2, set[Axes](), 0
        for axes in sets:
            if axes not in seen and axes not in self._loaded:
                seen.add(axes)
                room -= self.booked(axes)
                if count and (room < 0 or len(seen) > TOGETHER):
                    break
            count += 1
        return max(1, count)

    # ---- what a query asks

    def box(self, axes: Axes, low: tuple[int, ...], high: tuple[int, ...]) -> float:
        """Return the number of records with low <= code < high along `axes`."""
        return self._sums(axes).table.box(_places(axes), low, high)

    def boxes(self, axes: Axes, low: Ints, high: Ints) -> Floats:
        """Return the numbers of records in many boxes; low, high: (m, axes)."""
        return self._sums(axes).table.boxes(_places(axes), low, high)

    def weighted(self, axes: Axes, parts: Sequence[tuple[Axes, Floats | tuple[int, int]]]) -> float:
        """Return the sum over all records of a product of weights: (axes, array) or (axes, interval) each."""
        placed = [(tuple(axes.index(axis) for axis in held), part) for held, part in parts]
        return self._sums(axes).table.weighted(_places(axes), placed)

    def measure(self, partition: Partition) -> Ints:
        """Return the number of records in every block, (blocks,); what was counted for it is let go."""
        found = self._blocks.pop(partition, None)
        return self._sums(partition.axes).measure(partition) if found is None else found

    # ---- what is kept

    def _chosen(self, announced: Sequence[Axes]) -> list[Axes]:
        """Return the sets to count at load: all of two attributes that can be, and those announced."""
        free = [axis for axis, size in enumerate(self._shape) if size > 1]
        pairs: Iterator[Axes] = combinations(free, 2) if len(free) > 1 else iter([tuple(free)])
        sets = [axes for axes in pairs if self.reach.holds(self._shape, axes)]
        covered = {axis for axes in sets for axis in axes}
        sets += [(axis,) for axis in free if axis not in covered and self.reach.holds(self._shape, (axis,))]
        for axes in announced:
            if not self.reach.holds(self._shape, axes):
                raise TooLargeError(
                    f"sets must have at most {self.reach.cells:,} cells each to be counted, got one of "
                    f"{self._cells(axes):,}; announce fewer attributes, or bin them."
                )
        sets += [axes for axes in dict.fromkeys(announced) if axes not in sets]
        needed = sum(map(self.booked, sets))
        if len(sets) > MOST_SETS or needed > LOADED_BYTES:
            raise TooLargeError(
                f"sets that are counted at load must be at most {MOST_SETS:,}, of {LOADED_BYTES:,} bytes, "
                f"got {len(sets):,} of {needed:,}; load fewer attributes, or longer ones in bins."
            )
        return sets

    def _load(self, sets: list[Axes]) -> None:
        self._loaded |= zip(sets, self._counted(sets), strict=True)

    def _counted(self, sets: Sequence[Axes]) -> "list[Tables | _Groups]":
        """Return the tables of sets, by one statement about few larger ones that hold them.

        An engine passes its rows once for every set that it groups by: several small ones cost what one does.
        """
        covers = covering(sets, self._shape)
        found = self._asked(covers)
        larger = {axes: self._made(axes, groups) for axes, groups in zip(covers, found, strict=True)}
        result = []
        for axes in sets:
            above = next(one for one in covers if {*axes} <= {*one})
            result.append(larger[axes] if axes in larger else self._summed(larger[above], above, axes))
        return result

    def _asked(self, sets: Sequence[Axes]) -> list[Groups]:
        """Return what the engine counts of the one snapshot: asked for before and after."""
        self._check_version()
        self._counts += 1
        found = self._source.count(sets)
        self._check_version()
        return found

    def _check_version(self) -> None:
        if self._source.version is not None and self._source.version() != self._version:
            raise InvalidDataError("table must stay as it was loaded, got another version; load it anew.")

    def _parts(self, sets: Sequence[Axes]) -> Iterator[Sequence[Axes]]:
        """Yield sets that are counted by one statement."""
        while sets:
            count = self.fitting(sets[:TOGETHER])
            yield sets[:count]
            sets = sets[count:]

    def _made(self, axes: Axes, groups: Groups) -> "Tables | _Groups":
        """Return the table of a set from its groups."""
        columns, records = groups
        if int(records.sum()) != self.n:
            raise InvalidDataError("table must stay as it was loaded, got other records; load it anew.")
        sizes = tuple(self._shape[axis] for axis in axes)
        if not self._is_array(math.prod(sizes)):
            return _Groups.padded(columns, records, sizes, self.n)
        cells = np.zeros(math.prod(sizes))
        np.add.at(cells, np.ravel_multi_index(columns, sizes), records)
        table = Tables(cells.reshape(sizes), MOST_ENTRIES)
        table.table(_places(axes))  # and its prefix sums, now and not when it is asked
        return table

    def _absent(self, sets: Iterable[Axes]) -> list[Axes]:
        """Return the sets that must be counted, each once; note which sets the next read needs."""
        found = {axes: axes if axes in self._held else self._above(axes) for axes in sets}
        for axes, above in found.items():
            self._needed.add(above or axes)
            if above is not None and above in self._held:
                self._held.move_to_end(above)
        return [axes for axes, above in found.items() if above is None]

    def _above(self, axes: Axes) -> Axes | None:
        """Return the set with fewest cells that is kept and holds these attributes."""
        held = (one for one in (*self._loaded, *self._held) if {*axes} <= {*one})
        return min(held, key=lambda one: (self._cells(one), one), default=None)

    def _sums(self, axes: Axes) -> "_Sums":
        table = self._loaded.get(axes)
        if table is None and axes in self._held:
            self._held.move_to_end(axes)
            table = self._held[axes]
        if table is None:
            above = self._above(axes)
            if above is None:  # fetched, and let go by another session of this table: it is paid by now
                (table,) = self._counted([axes])
            else:
                table = self._summed(self._sums(above).table, above, axes)
            self._keep(axes, table)
        return _Sums(table)

    def _summed(self, table: "Tables | _Groups", above: Axes, axes: Axes) -> "Tables | _Groups":
        """Return the table of fewer attributes."""
        keep = tuple(above.index(axis) for axis in axes)
        if isinstance(table, Tables):
            summed = Tables(contract(table.table(_places(above)), keep), MOST_ENTRIES)
            summed.table(_places(axes))
            return summed
        return self._made(axes, table.over(keep))

    def _keep(self, axes: Axes, table: "Tables | _Groups") -> None:
        """Keep a table, in place of those that were not used for longest and are not needed now."""
        self._held[axes] = table
        self._bytes += self.booked(axes)
        for oldest in [one for one in self._held if one != axes and one not in self._needed]:
            if self._bytes <= KEPT_BYTES:
                break
            del self._held[oldest]
            self._bytes -= self.booked(oldest)

    def _cells(self, axes: Axes) -> int:
        return math.prod(self._shape[axis] for axis in axes)

    def _is_array(self, cells: int) -> bool:
        return cells <= max(SMALL, min(self.n, MOST_ENTRIES))


def covering(sets: Sequence[Axes], shape: tuple[int, ...]) -> list[Axes]:
    """Return few sets that hold all of these, each of `JOINED` cells at most or one of them itself.

    A public rule: the attribute joins that brings most sets which none holds yet, the first on ties.
    """
    left, result = [*dict.fromkeys(sets)], list[Axes]()
    while left:
        held = {*left[0]}
        cells = math.prod(shape[axis] for axis in held)
        while True:
            gains = dict[int, int]()
            for one in left:
                beside = {*one} - held
                if len(beside) == 1:
                    axis = min(beside)
                    gains[axis] = gains.get(axis, 0) + (cells * shape[axis] <= JOINED)
            best = max(gains, key=lambda axis: (gains[axis], -axis), default=-1)
            if gains.get(best, 0) == 0:
                break
            held.add(best)
            cells *= shape[best]
        result.append(tuple(sorted(held)))
        left = [one for one in left if not {*one} <= held]
    return result


@final
@attrs.frozen(eq=False, repr=False)
class _Sums:
    """The table of one set of attributes."""

    table: "Tables | _Groups"

    def measure(self, partition: Partition) -> Ints:
        """Return the number of records in every block of a partition of these attributes."""
        if isinstance(self.table, Tables):
            cells = self.table.table(_places(partition.axes))
            for place, cut in enumerate(partition.cuts):
                cells = cut.sums(cells, place)
            return np.rint(cells.ravel()).astype(np.int64)
        return self.table.blocks(partition)


@final
@attrs.frozen(eq=False, repr=False)
class _Groups:
    """The groups of equal records over a set with more cells than records, padded to as many as records.

    Attributes:
        columns: Each of shape (n,).
        records: Whole numbers, shape (n,). 0 for what was added.
    """

    columns: list[Column]
    records: Floats
    sizes: tuple[int, ...]

    @classmethod
    def padded(cls, columns: Sequence[Column], records: Ints, sizes: tuple[int, ...], n: int) -> "_Groups":
        held = np.zeros(n)
        held[: len(records)] = records
        wide = []
        for codes, size in zip(columns, sizes, strict=True):
            column = np.zeros(n, narrowest(size))
            column[: len(records)] = codes
            wide.append(column)
        return cls(wide, held, sizes)

    def box(self, axes: Axes, low: tuple[int, ...], high: tuple[int, ...]) -> float:
        """Return the number of records in a box; no group is skipped."""
        inside = np.ones(len(self.records), np.bool_)
        for column, first, last, size in zip(self.columns, low, high, self.sizes, strict=True):
            if last - first < size:  # in one comparison: what is below wraps around
                inside &= (column - column.dtype.type(first)) < column.dtype.type(last - first)
        return float(self.records @ inside)

    def boxes(self, axes: Axes, low: Ints, high: Ints) -> Floats:
        """Return the numbers of records in many boxes."""
        ends = zip(low.tolist(), high.tolist(), strict=True)
        return np.array([self.box(axes, *end) for end in ends], np.float64)

    def weighted(self, axes: Axes, parts: Sequence[tuple[Axes, Floats | tuple[int, int]]]) -> float:
        """Return the sum of records times a product of weights."""
        product = self.records.copy()
        for held, part in parts:
            if isinstance(part, tuple):
                codes = self.columns[held[0]].astype(np.int64)
                product *= (codes >= part[0]) & (codes < part[1])
            else:
                product *= part[tuple(self.columns[place] for place in held)]
        return float(product.sum())  # of integers below 2^53: exact in any order

    def blocks(self, partition: Partition) -> Ints:
        """Return the number of records in every block of a partition of these attributes."""
        code = np.zeros(len(self.records), np.int64)
        for column, cut in zip(self.columns, partition.cuts, strict=True):
            code *= cut.parts
            code += cut.of_codes(column)
        return np.rint(np.bincount(code, self.records, partition.blocks)).astype(np.int64)

    def over(self, keep: Axes) -> Groups:
        """Return the codes of some attributes, and the records."""
        return [self.columns[place] for place in keep], np.rint(self.records).astype(np.int64)


def _places(axes: Axes) -> Axes:
    return tuple(range(len(axes)))
