"""Contractions and summed-area tables, shared by the private counts and the public histogram."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Protocol, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from onlineic._typing import Floats, Ints
from onlineic.errors import set_fields

CACHE_BYTES = 2**28  # of all tables that are kept between queries
CORNER_AXES = 6  # a box has 2^axes corners: above, slices are cheaper and lose fewer bits
FEW = 8  # slabs that are added one by one
UNTHREADED = 2304 * 4  # entries below which OpenBLAS multiplies a matrix by a vector in one thread
UNTHREADED_PRODUCTS = 2**18  # .. products of entries up to which it multiplies two matrices so
UNSHARED = 128  # .. length of the sums in it, so that blocks are wide and tall
WIDE = 256  # entries of a slab from which on adding slab to slab beats cumsum


Number = TypeVar("Number", bound=np.generic)


def contract(cells: Floats, keep: tuple[int, ...]) -> Floats:
    """Return the table of `cells` over the axes `keep`: the sum over all others, in a fresh array.

    Adjacent axes of one kind (kept, summed) are merged into runs, and the longest summed run goes first:
    up to 23 times faster than a multi-axis `sum`. One thread does it, however many BLAS may have.
    """
    array = cells
    for blocks in _sums(cells.shape, keep):
        array = _sum_run(array.reshape(blocks))
    return (np.array(cells, copy=True) if array is cells else array).reshape(
        [cells.shape[axis] for axis in keep]
    )


@lru_cache(2**14)  # a fit sums the same small tables over the same axes a hundred times
def _sums(shape: tuple[int, ...], keep: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return the (A, n, B) whose middle is summed one after another, for a table of this shape."""
    runs = [(kept, [*axes]) for kept, axes in groupby(range(len(shape)), key=lambda axis: axis in keep)]
    sizes = [math.prod(shape[axis] for axis in axes) for _, axes in runs]
    kinds, found = [kept for kept, _ in runs], list[tuple[int, int, int]]()
    while False in kinds:
        axis = max((axis for axis, kept in enumerate(kinds) if not kept), key=lambda axis: sizes[axis])
        found.append((math.prod(sizes[:axis]), sizes[axis], math.prod(sizes[axis + 1 :])))
        del kinds[axis], sizes[axis]
    return tuple(found)


def _sum_run(block: Floats) -> Floats:
    """Sum over the middle axis of (A, n, B)."""
    _, length, columns = block.shape
    result: Floats
    if length <= FEW:
        result = block[:, 0].copy()
        for slab in range(1, length):
            result += block[:, slab]
    elif columns >= 32 and length * columns <= UNTHREADED:
        ones = np.ones(length, np.result_type(block, np.float32))
        result = np.matmul(ones, block)  # the fastest, but BLAS shares large ones among threads
    else:
        result = np.einsum("anb->ab", block)
    return result


def dot(left: Floats, right: Floats) -> float:
    """Return the sum of products of two arrays of one shape, in one thread."""
    return float(np.einsum("i,i->", left.ravel(), right.ravel()))


def multiply(left: Floats, right: Floats) -> Floats:
    """Return the products of stacks of matrices, (b, m, k) by (b, k, n), in one thread, block by block."""
    (count, rows, inner), columns = left.shape, right.shape[2]
    inside = min(inner, UNSHARED)
    wide = min(columns, UNTHREADED // inside)
    tall = min(rows, UNTHREADED // inside, UNTHREADED_PRODUCTS // (inside * wide))
    if (inside, wide, tall) == (inner, columns, rows):
        return np.asarray(np.matmul(left, right))
    result = np.zeros((count, rows, columns), left.dtype)
    for k in range(0, inner, inside):
        for i in range(0, rows, tall):
            for j in range(0, columns, wide):
                one, other = left[:, i : i + tall, k : k + inside], right[:, k : k + inside, j : j + wide]
                result[:, i : i + tall, j : j + wide] += np.matmul(one, other)
    return result


def accumulate(array: Floats, axis: int) -> None:
    """Replace an array by its running sums along one axis, in place."""
    length = array.shape[axis]
    if array.size < WIDE * length:
        np.cumsum(array, axis=axis, out=array)
        return
    slabs = np.moveaxis(array, axis, 0)
    for slab in range(1, length):  # the same sums as those of cumsum, up to ten times faster
        np.add(slabs[slab - 1], slabs[slab], out=slabs[slab])


def sum_classes(array: Floats, classes: Ints, axis: int) -> Floats:
    """Return the sums over the classes of the codes along one axis: classes 0, 1, .. without gaps."""
    count = int(classes.max()) + 1
    if count == classes.size and (classes[:-1] < classes[1:]).all():
        return array
    if (classes[:-1] > classes[1:]).any():
        order = np.argsort(classes, kind="stable")
        array, classes = array.take(order, axis=axis), classes[order]
    return np.asarray(np.add.reduceat(array, np.searchsorted(classes, np.arange(count)), axis=axis))


def immutable(array: NDArray[Number]) -> NDArray[Number]:
    """Return a plain array of these numbers over memory that nobody can write to.

    A flag alone can be taken back: `setflags(write=True)` is refused where the memory is that of bytes.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if type(owner) is bytes and type(array) is np.ndarray:
        return array
    plain = np.asarray(array)
    return np.ndarray(plain.shape, plain.dtype, plain.tobytes())


def spread(array: Any, axes: tuple[int, ...], dimensions: int) -> Any:
    """View an array over `axes` as one over all axes, of length 1 elsewhere."""
    shape = [1] * dimensions
    for axis, length in zip(axes, array.shape, strict=True):
        shape[axis] = length
    return array.reshape(shape)


def summed_area(table: Floats) -> Floats:
    """Return the table of prefix sums with a zero border: entry (i, j, ..) sums all indices below."""
    result = np.zeros([length + 1 for length in table.shape])
    inner = result[(slice(1, None),) * table.ndim]
    inner[...] = table
    for axis in range(table.ndim):
        accumulate(inner, axis)
    return result


@final
@attrs.frozen(eq=False, repr=False)
class SummedArea:
    """Prefix sums of a table, flattened: the sum over any box follows from its 2^axes corners.

    One box alone and many at once take the same path, so that their results agree to the last bit.

    Args:
        sums: Array of numbers, shape (entries,). As `summed_area` returns them, contiguous.
        steps: From an entry to the next along each axis.
    """

    sums: Any
    steps: tuple[int, ...]
    _entries: memoryview = attrs.field(init=False)  # single ones are read five times faster than of an array

    def __attrs_post_init__(self) -> None:
        set_fields(self, _entries=self.sums.data)

    def __reduce__(self) -> tuple[Any, ...]:
        return SummedArea, (self.sums, self.steps)  # a view cannot be copied

    @classmethod
    def of(cls, table: Floats, kind: Any = np.float64) -> "SummedArea":
        """Return the prefix sums of a table, held as numbers of this type."""
        return cls.held(summed_area(table).astype(kind, copy=False))

    @classmethod
    def held(cls, sums: Any) -> "SummedArea":
        """Return it of prefix sums as `summed_area` returns them, copied where they are not contiguous."""
        sums = np.ascontiguousarray(sums)
        return cls(sums.ravel(), tuple(stride // sums.itemsize for stride in sums.strides))

    def table(self) -> Any:
        """Return what was summed up, as numbers of the same type."""
        ends = (len(self.sums), *self.steps)
        sums = self.sums.reshape([ends[place] // ends[place + 1] for place in range(len(self.steps))])
        for axis in range(sums.ndim):
            sums = np.diff(sums, axis=axis)
        return sums

    def box(self, low: Sequence[int], high: Sequence[int]) -> float:
        """Return the sum over low <= code < high. The commonest boxes of a stream are written out."""
        entries, steps = self._entries, self.steps
        result: float
        if len(steps) == 2:
            step, last = steps
            upper, lower, top, bottom = high[0] * step, low[0] * step, high[1] * last, low[1] * last
            result = (
                entries[upper + top]
                - entries[lower + top]
                - entries[upper + bottom]
                + entries[lower + bottom]
            )
        elif len(steps) == 1:
            result = entries[high[0]] - entries[low[0]]
        elif len(steps) == 3:
            far, step, last = steps
            upper, lower, top, bottom = high[1] * step, low[1] * step, high[2] * last, low[2] * last
            right, left = high[0] * far, low[0] * far
            result = (
                entries[right + upper + top]
                - entries[left + upper + top]
                - entries[right + lower + top]
                + entries[left + lower + top]
                - entries[right + upper + bottom]
                + entries[left + upper + bottom]
                + entries[right + lower + bottom]
                - entries[left + lower + bottom]
            )
        else:
            corners, signs, result = [0], [1], 0
            for first, end, step in zip(low, high, steps, strict=True):
                upper, lower = end * step, first * step
                corners = [entry + upper for entry in corners] + [entry + lower for entry in corners]
                signs += [-one for one in signs]
            for sign, entry in zip(signs, corners, strict=True):
                result += sign * entries[entry]
        return float(result)

    def boxes(self, low: Ints, high: Ints) -> Floats:
        """Return the sums over many boxes; low, high: (m, axes)."""
        upper, lower = high * np.array(self.steps, np.int64), low * np.array(self.steps, np.int64)
        result = np.zeros(len(low), np.result_type(self.sums, np.int64))
        for corner in range(1 << len(self.steps)):
            entry = np.zeros(len(low), np.int64)
            for axis in range(len(self.steps)):
                entry += (lower if corner >> axis & 1 else upper)[:, axis]
            result += (1 - 2 * (corner.bit_count() & 1)) * self.sums[entry]
        return result.astype(np.float64, copy=False)


class Sums(Protocol):
    """Sums of cells over boxes and weighted boxes: what a query is evaluated on."""

    def box(self, axes: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> float:
        """Return the sum over low <= code < high along `axes`."""

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        """Return the sums over many boxes; low, high: (m, axes)."""

    def weighted(
        self, axes: tuple[int, ...], parts: Sequence[tuple[tuple[int, ...], Floats | tuple[int, int]]]
    ) -> float:
        """Return the sum of cells times a product of weights: (axes, array) or (axes, interval) each."""


@final
@attrs.define(eq=False, repr=False)
class Tables:
    """Sums over boxes and weighted boxes of one array of cells: marginal tables, made on first use.

    A query over the axes S is answered from the table of S, which has far fewer cells than the array:
    boxes by the corners of its summed-area table, weights by contraction. One query alone and many at once
    take the same path, so that their results agree to the last bit.

    Args:
        cells: Not copied; must not change while the tables are used. Where all cells are integers with a sum
            below 2^53, every result is an exact integer.
        prefix_cells: Largest table for which a summed-area table is made; above, and for more than 6 axes,
            boxes are sliced.
        plane_cells: The same for tables of two axes or one, where it is larger.
    """

    _cells: Floats
    _prefix_cells: int
    _plane_cells: int = 0
    _entries: dict[tuple[int, ...], tuple[Floats, SummedArea | None]] = attrs.field(init=False, factory=dict)
    _spent_bytes: int = attrs.field(init=False, default=0)

    def table(self, axes: tuple[int, ...]) -> Floats:
        """Return the marginal table over `axes`; a cache, not to be written to."""
        return self._entry(axes)[0]

    def total(self) -> float:
        """Return the sum of all cells."""
        return float(self._entry(())[0])

    def box(self, axes: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> float:
        """Return the sum over low <= code < high along `axes`."""
        table, area = self._entries.get(axes) or self._entry(axes)
        if area is None:
            return float(table[tuple(map(slice, low, high))].sum())
        return area.box(low, high)

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        """Return the sums over many boxes; low, high: (m, axes)."""
        table, area = self._entry(axes)
        if area is None:
            return np.array([table[tuple(map(slice, *ends))].sum() for ends in zip(low, high, strict=True)])
        return area.boxes(low, high)

    def weighted(
        self, axes: tuple[int, ...], parts: Sequence[tuple[tuple[int, ...], Floats | tuple[int, int]]]
    ) -> float:
        """Return the sum of cells times a product of weights: (axes, array) or (axes, interval) each."""
        table = self._entry(axes)[0]
        left = list(axes)
        for held, part in parts:
            places = [left.index(axis) for axis in held]
            if isinstance(part, tuple):
                table = table[(slice(None),) * places[0] + (slice(*part),)].sum(axis=places[0])
            elif places == [table.ndim - 1]:
                table = table.dot(part)
            else:
                table = np.tensordot(table, part, axes=(places, range(part.ndim)))
            left = [axis for axis in left if axis not in held]
        return float(table)

    def _entry(self, axes: tuple[int, ...]) -> tuple[Floats, SummedArea | None]:
        entry = self._entries.get(axes)
        if entry is not None:
            return entry
        table = contract(self._cells, axes) if len(axes) < self._cells.ndim else self._cells
        most = max(self._prefix_cells, self._plane_cells if len(axes) <= 2 else 0)
        area = SummedArea.of(table) if 0 < len(axes) <= CORNER_AXES and table.size <= most else None
        self._spent_bytes += (0 if table is self._cells else table.nbytes) + (
            0 if area is None else area.sums.nbytes
        )
        if self._spent_bytes > CACHE_BYTES:  # drop all: which tables exist depends on the queries alone
            self._entries.clear()
            self._spent_bytes = 0
        self._entries[axes] = (table, area)
        return self._entries[axes]
