"""Records as columns of small integers: exact counts where the domain has too many cells to hold.

PRIVATE. Every count is a sum over all rows: no row is skipped, none is looked for, and no step is left out
for what was found. Which bitmaps and summed-area tables are kept depends on the queries asked, the domain and
the number of rows. (What the processor's own caches tell about the values of records, this cannot hide.)
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import Any, final

import numpy as np

from onlineic._typing import Bools, Floats, Ints
from onlineic.queries.partitions import Partition
from onlineic.queries.tables import CORNER_AXES, SummedArea, summed_area

BLOCK = 2**18  # rows that are taken together: what is made on the way stays in the processor's cache
CACHE_BYTES = 2**28  # of all summed-area tables
LARGEST_TABLE = 2**24  # cells of one
SMALL_TABLE = 2**18  # cells of one that is counted and summed up in 3 ms, besides its rows
MASKS, SHARE = 40, 16  # a table costs so many masks of its rows, and one more for so many cells a row
TOGETHER = 3  # most attributes of the tables that are made besides the one that is due
ROWS_A_SUM = 4  # of what is counted for them: then the rows take most of the time
COUNTED, CANDIDATES = 6, 24  # attributes that a pass counts at most, of so many that are looked at
PASSES = 40  # which make the tables of all sets of so many attributes: where it takes more, none is shared
OWN_BYTES = 1024, 112  # of a table, and of a row of bitmaps, besides their numbers
BITMAP_BYTES = 2**27  # of all bitmaps
QUERIES_A_CUT = 0.125  # on an attribute, from which on its bitmaps are made: a sixteenth of what they cost

Column = np.ndarray[Any, Any]
Bits = np.ndarray[Any, np.dtype[np.uint64]]
Interval = tuple[int, int]


def narrowest(size: int) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds the codes 0 .. size - 1."""
    return np.dtype(np.min_scalar_type(size - 1))


@final
class Rows:
    """One column of codes for each attribute, and how many records each row stands for.

    What `Query.total` asks of a table, it answers from the rows: boxes by comparing whole columns; for
    attributes that are asked often, from bitmaps of the rows below each code; and for sets of attributes that
    are, by the corners of a summed-area table. All give the same integers.

    Args:
        columns: Each of shape (rows,). Codes inside the domain; not copied.
        weights: Whole numbers, shape (rows,). Records of every row, of a sum below 2^53; None: one each.
        shape: Of the domain.
    """

    __slots__ = (
        "_areas", "_asked", "_below", "_bitmap_bytes", "_bytes", "_columns", "_cut", "_fitting", "_passes",
        "_rows", "_scans", "_shape", "_type", "_weights",
    )  # fmt: skip

    def __init__(self, columns: Sequence[Column], weights: Floats | None, shape: tuple[int, ...]) -> None:
        self._columns, self._weights, self._shape = tuple(columns), weights, shape
        self._rows = len(columns[0])
        records = self._rows if weights is None else float(weights.sum())
        self._type = np.int32 if records < 2**31 else np.int64
        self._areas: OrderedDict[tuple[int, ...], SummedArea] = OrderedDict()  # the one used last comes last
        self._asked: dict[tuple[int, ...], int] = {}  # queries by attributes, where there is no table yet,
        self._scans = self._passes = 0  # or, since the last one was made, of all sets that share passes
        self._fitting = self._fitting_together()
        self._bytes = 0
        self._below: dict[int, list[Bits]] = {}  # by axis: which rows are below code 0, 1, .. size
        self._cut = [0] * len(shape)  # queries by attribute, where there are no bitmaps yet
        self._bitmap_bytes = 0

    def beside(self, others: "Sequence[Rows]") -> "Rows":
        """Return the rows of this table and of others of its shape, one below the other."""
        every = [self, *others]
        columns = [np.concatenate(held) for held in zip(*(one._columns for one in every), strict=True)]
        weights = None
        if any(one._weights is not None for one in every):
            weights = np.concatenate(
                [np.ones(one._rows) if one._weights is None else one._weights for one in every]
            )
        return Rows(columns, weights, self._shape)

    def columns(self, axes: Sequence[int]) -> tuple[list[Column], Ints | None]:
        """Return the codes of some attributes, and how many records each row stands for."""
        weights = None if self._weights is None else np.rint(self._weights).astype(np.int64)
        return [self._columns[axis] for axis in axes], weights

    def box(self, axes: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> float:
        """Return the number of records with low <= code < high along `axes`."""
        area = self._areas.get(axes)
        if area is None:
            area = self._area(axes, 1)
            return self._scanned(axes, low, high) if area is None else area.box(low, high)
        self._areas.move_to_end(axes)
        return area.box(low, high)

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        """Return the numbers of records in many boxes; low, high: (m, axes)."""
        area = self._area(axes, len(low))
        if area is None:
            ends = zip(low.tolist(), high.tolist(), strict=True)
            return np.array([self._scanned(axes, *end) for end in ends], np.float64)
        return area.boxes(low, high)

    def weighted(
        self, axes: tuple[int, ...], parts: Sequence[tuple[tuple[int, ...], Floats | tuple[int, int]]]
    ) -> float:
        """Return the sum over all records of a product of weights: (axes, array) or (axes, interval) each."""
        result = 0.0
        for rows in self._blocks():
            product = np.ones(rows.stop - rows.start) if self._weights is None else self._weights[rows].copy()
            for held, part in parts:
                if isinstance(part, tuple):
                    product *= self._inside(rows, held[0], *part)
                else:
                    product *= part.ravel()[self._codes(rows, held, part.shape)]
            result += float(product.sum())  # of integers below 2^53: exact in any order
        return result

    def measure(self, partition: Partition) -> Ints:
        """Return the number of records in every block, (blocks,).

        Where it is small, or no longer than the rows, from the table of its attributes, which is then kept:
        that is hardly slower, and what is measured is what will be asked about.
        """
        axes = partition.axes
        most = max(SMALL_TABLE, self._rows)
        if math.prod(self._sizes(axes)) <= most and self._tabled(axes):
            if axes in self._areas:
                self._areas.move_to_end(axes)
            table = (self._areas.get(axes) or self._made(axes)).table()
            for place, cut in enumerate(partition.cuts):
                table = cut.sums(table, place)
            return np.asarray(table.ravel(), np.int64)
        result = np.zeros(partition.blocks)
        for rows in self._blocks():
            code = np.zeros(rows.stop - rows.start, np.int64)
            for axis, cut in zip(partition.axes, partition.cuts, strict=True):
                code *= cut.parts
                code += cut.of_codes(self._columns[axis][rows])
            self._count(result, code, rows)
        return np.rint(result).astype(np.int64)

    def _blocks(self) -> Iterator[slice]:
        for start in range(0, self._rows, BLOCK):
            yield slice(start, min(start + BLOCK, self._rows))

    def _inside(self, rows: slice, axis: int, low: int, high: int) -> Bools:
        """Return which rows have low <= code < high, in one comparison: what is below wraps around."""
        column = self._columns[axis][rows]
        if high - low == self._shape[axis]:  # does not fit the type, if the column fills it
            return np.ones(len(column), bool)
        return np.asarray((column - column.dtype.type(low)) < column.dtype.type(high - low))

    def _scanned(self, axes: tuple[int, ...], low: Sequence[int], high: Sequence[int]) -> float:
        """Return the number of records in a box, from all rows."""
        if not self._has_bitmaps(axes):
            return self._masked(axes, low, high)
        below = self._below[axes[0]]
        inside = below[high[0]] ^ below[low[0]]
        for axis, first, last in zip(axes[1:], low[1:], high[1:], strict=True):
            below = self._below[axis]
            inside &= below[last] ^ below[first]
        # bitmaps fit of fewer rows than 2^32
        return float(np.add.reduce(np.bitwise_count(inside), dtype=np.uint32))

    def _has_bitmaps(self, axes: tuple[int, ...]) -> bool:
        return all(map(self._below.__contains__, axes))

    def _ask(self, axes: tuple[int, ...], asked: int) -> None:
        """Count the queries of each attribute, and make the bitmaps of those that are asked often."""
        if self._weights is not None:
            return
        words = -(-self._rows // 64)
        for axis in axes:
            size = self._shape[axis]
            self._cut[axis] += asked
            if axis in self._below or self._cut[axis] < QUERIES_A_CUT * size:
                continue
            needed = (8 * words + OWN_BYTES[1]) * (size + 1)
            if self._bitmap_bytes + needed <= BITMAP_BYTES:
                self._below[axis] = [*self._bitmaps(axis, words)]
                self._bitmap_bytes += needed

    def _bitmaps(self, axis: int, words: int) -> Bits:
        """Return which rows are below each code, 0 .. size of them: (size + 1, words)."""
        column, size = self._columns[axis], self._shape[axis]
        bits = np.zeros((size + 1, 8 * words), np.uint8)
        used = -(-self._rows // 8)
        for code in range(1, size):
            bits[code, :used] = np.packbits(column < column.dtype.type(code))
        bits[size, :used] = np.packbits(np.ones(self._rows, bool))
        return bits.view(np.uint64)

    def _masked(self, axes: tuple[int, ...], low: Sequence[int], high: Sequence[int]) -> float:
        """Return the number of records in a box, from the columns."""
        result = 0.0
        for rows in self._blocks():
            mask = self._inside(rows, axes[0], low[0], high[0])
            for axis, first, last in zip(axes[1:], low[1:], high[1:], strict=True):
                mask &= self._inside(rows, axis, first, last)
            if self._weights is None:
                result += np.count_nonzero(mask)
            else:
                result += float(self._weights[rows] @ mask)
        return result

    def _codes(self, rows: slice, axes: tuple[int, ...], shape: tuple[int, ...]) -> Ints:
        """Return the cell of every row in a table over the axes."""
        code = self._columns[axes[0]][rows].astype(np.int64)
        for axis, size in zip(axes[1:], shape[1:], strict=True):
            code *= size
            code += self._columns[axis][rows]
        return code

    def _count(self, table: Floats, code: Ints, rows: slice) -> None:
        """Add a block of rows to a table of counts."""
        weights = None if self._weights is None else self._weights[rows]
        if table.size <= BLOCK:
            table += np.bincount(code, weights, table.size)
        else:
            np.add.at(table, code, 1.0 if weights is None else weights)

    def _area(self, axes: tuple[int, ...], asked: int) -> SummedArea | None:
        """Return the summed-area table of the axes, if it is worth its price."""
        held = self._areas.get(axes)
        if held is not None:
            self._areas.move_to_end(axes)
            return held
        if not self._has_bitmaps(axes):
            self._ask(axes, asked)
        return self._made(axes) if self._tabled(axes) and self._due(axes, asked) else None

    def _due(self, axes: tuple[int, ...], asked: int) -> bool:
        """Return whether queries so far have taken as long as a table that serves them: a public rule.

        Where a few passes make the tables of all sets of as many attributes, queries of any of them count,
        for so many passes.
        """
        sets, made = (math.comb(count, len(axes)) for count in self._fitting)
        shared = len(axes) <= TOGETHER and self._room(axes) > 2 and sets <= PASSES * made
        shared = shared and self._passes < PASSES
        if shared:
            self._scans += asked
            paid = self._scans
        else:
            paid = self._asked[axes] = self._asked.get(axes, 0) + asked
        due = paid * self._rows >= MASKS * self._rows + SHARE * math.prod(self._sizes(axes))
        self._passes += shared and due
        return due

    def _room(self, axes: tuple[int, ...]) -> int:
        """Return how many times as large a table may be than that over the axes, to be counted with it."""
        most = min(SMALL_TABLE, self._rows // ROWS_A_SUM)
        return most // math.prod(size + 1 for size in self._sizes(axes))

    def _fitting_together(self) -> tuple[int, int]:
        """Return how many attributes have two codes or more, and how many of them can be counted together."""
        sizes = sorted(size for size in self._shape if size > 1)
        room, count = self._room(()), 0
        for size in sizes:
            room //= size + 1
            count += room > 0
        return len(sizes), min(count, COUNTED)

    def _sizes(self, axes: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._shape[axis] for axis in axes)

    def _tabled(self, axes: tuple[int, ...]) -> bool:
        """Return whether a table over the axes can be kept."""
        return 0 < len(axes) <= CORNER_AXES and math.prod(self._sizes(axes)) <= LARGEST_TABLE

    def _made(self, axes: tuple[int, ...]) -> SummedArea:
        """Return the summed-area table of the axes, and keep it.

        The rows are passed once for it and for those of all sets of a few of the attributes that can be
        counted beside: the corners of a box that is open along an axis stand at its end.
        """
        self._scans = 0
        counted = self._counted_with(axes)
        sums = summed_area(self._table(counted)).astype(self._type)
        fewer = (combinations(counted, count) for count in range(1, TOGETHER + 1))
        for chosen in (*chain.from_iterable(fewer), axes):  # last what is used now
            if chosen not in self._areas:
                part = sums[tuple(slice(None) if axis in chosen else -1 for axis in counted)]
                self._keep(chosen, part if chosen == counted else part.copy())
        return self._areas[axes]

    def _counted_with(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes, and those that are counted in the same pass: a public rule.

        As many as fit, one after the other, of which most pairs, or else most triples, have no table yet.
        """
        counted, room = list(axes), self._room(axes)
        behind = (*range(axes[-1] + 1, len(self._shape)), *range(axes[-1]))
        free = [axis for axis in behind if axis not in axes and 1 < self._shape[axis] < room][:CANDIDATES]
        while True:
            gains: dict[int, int] = {}
            for count in range(1, TOGETHER):
                others = [*combinations(counted, count)]
                for axis in free:
                    sets = (tuple(sorted((axis, *chosen))) for chosen in others)
                    gains[axis] = sum(chosen not in self._areas for chosen in sets)
                if any(gains.values()):
                    break
            best = max(gains, key=gains.__getitem__, default=-1)
            if len(counted) >= COUNTED or gains.get(best, 0) == 0:
                return tuple(sorted(counted))
            counted.append(best)
            room //= self._shape[best] + 1
            free = [axis for axis in free if axis != best and self._shape[axis] < room]

    def _table(self, axes: tuple[int, ...]) -> Floats:
        """Return the number of records in every cell over the axes, counted from the rows."""
        shape = self._sizes(axes)
        table = np.zeros(math.prod(shape))
        for rows in self._blocks():
            self._count(table, self._codes(rows, axes, shape), rows)
        return table.reshape(shape)

    def _keep(self, axes: tuple[int, ...], sums: Column) -> None:
        """Keep the prefix sums of a table, in place of those that were not used for longest."""
        area = SummedArea.held(sums)
        self._bytes += area.sums.nbytes + OWN_BYTES[0]
        self._areas[axes] = area
        self._asked.pop(axes, None)
        while self._bytes > CACHE_BYTES and len(self._areas) > 1:
            _, oldest = self._areas.popitem(last=False)
            self._bytes -= oldest.sums.nbytes + OWN_BYTES[0]
