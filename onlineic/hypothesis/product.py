"""A distribution in product form: a table over classes of codes, and how each class divides among its codes.

``h(x) = R(c(x)) * prod_a w_a(x_a)``: R holds the mass of every class cell, w_a the share of its class that a
code has. Maximum entropy from a product prior has this form, with classes that only joint tables cut: so a
domain of 10^18 cells is held by as many numbers as the classes and the codes need.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, set_fields
from onlineic.hypothesis.base import OverDomain, cells_of_all, check_cells, check_size
from onlineic.hypothesis.histogram import (
    PLANE_CELLS,
    PREFIX_CELLS,
    SMALLEST,
    Histogram,
    checked_prior,
    fractions,
)
from onlineic.noise.sources import public_generator
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import CORNER_AXES, SummedArea, Sums, contract, spread, sum_classes

_End = tuple[int, memoryview, memoryview | None]  # along an axis: step, places and parts, see `_CutArea`
SHARED_CELLS = 2**18  # of a marginal table of R from which smaller ones are summed
CUT_AXES = 4  # a box has up to 4^axes corners where its ends lie within classes


@final
class ProductHistogram(OverDomain):
    """A probability distribution over a domain of any size, in product form; never changes.

    Queries are evaluated without writing cells: boxes by the corners of the prefix sums of R, which are
    linear between its classes in the shares of the codes.

    Args:
        domain: Of any size, with at most 2^26 codes in all attributes together.
        factors: One entry a code, each above 0. One distribution for each attribute, normalised here: their
            product. None is the uniform one. What is fitted to joint tables ties attributes together as well.

    Raises:
        TooLargeError: If the codes are more than a histogram may have cells.
        InvalidParameterError: If `factors` are not so.
    """

    __slots__ = ("_axes", "_classes", "_density", "_sums", "_within", "domain")

    def __init__(self, domain: Domain, factors: Sequence[Any] | None = None) -> None:
        check_cells(sum(domain.shape))
        if factors is None:
            within = [np.full(size, 1.0 / size) for size in domain.shape]
        elif len(factors) != len(domain.shape):
            raise InvalidParameterError(
                f"factors must be {len(domain.shape)}, one an attribute, got {len(factors)}."
            )
        else:
            within = [
                checked_prior(domain.project(name), factor)
                for name, factor in zip(domain.names, factors, strict=True)
            ]
        self._hold(
            domain, (), np.ones(()), tuple(np.zeros(size, np.int64) for size in domain.shape), (*within,)
        )

    @classmethod
    def _tied(
        cls,
        domain: Domain,
        axes: tuple[int, ...],
        density: Floats,
        classes: tuple[Ints, ...],
        within: tuple[Floats, ...],
    ) -> "ProductHistogram":
        """Return R, over the classes of `axes`, and the class of every code with its share, by attribute.

        The axes may come in any order: a large R would take as long to turn as to write.
        """
        check_cells(density.size + sum(domain.shape))
        result = object.__new__(cls)
        result._hold(domain, axes, density, classes, within)
        return result

    def _hold(
        self,
        domain: Domain,
        axes: tuple[int, ...],
        density: Floats,
        classes: tuple[Ints, ...],
        within: tuple[Floats, ...],
    ) -> None:
        self.domain = domain
        self._axes, self._density, self._classes, self._within = axes, density, classes, within
        self._sums = _ClassSums(axes, density, classes, within)

    @property
    def sums(self) -> Sums:
        """What queries are evaluated on, of total mass 1."""
        return self._sums

    def moved(self, domain: Domain, divided: Mapping[int, tuple[Ints, Floats]]) -> "ProductHistogram":
        """Return the same over a domain some of whose codes are parts of those of this one.

        Args:
            divided: By attribute, of every finer code the one that it is part of, and its share of that.
        """
        classes, within = [*self._classes], [*self._within]
        for axis, (place, shares) in divided.items():
            classes[axis], within[axis] = classes[axis][place], within[axis][place] * shares
        return ProductHistogram._tied(domain, self._axes, self._density, tuple(classes), tuple(within))

    @classmethod
    def of_factors(cls, domain: Domain, factors: tuple[Floats, ...]) -> "ProductHistogram":
        """Return the product of distributions, one an attribute, that are taken as they are."""
        classes = tuple(np.zeros(len(one), np.int64) for one in factors)
        return cls._tied(domain, (), np.ones(()), classes, factors)

    @property
    def factors(self) -> tuple[Floats, ...] | None:
        """The distribution of each attribute if they are independent, with one class each; else None."""
        return None if self._axes else self._within

    def evaluate(self, query: Query) -> float:
        value = query.total(self._sums, 1.0) / (1 << query.grid_bits)
        return value if 0.0 <= value <= 1.0 else min(max(value, 0.0), 1.0)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        return np.clip(fractions(queries, self._sums, 1.0), 0.0, 1.0)

    def probabilities(self) -> Floats:
        """Return the cell probabilities, shape of the domain.

        Raises:
            TooLargeError: If the domain has more cells than a histogram may have.
        """
        check_size(self.domain)
        return self._sums.table(tuple(range(len(self.domain.shape))))

    def dense(self) -> Histogram:
        """Return the same distribution with every cell written, each of at least 1e-88.

        Raises:
            TooLargeError: If the domain has more cells than a histogram may have.
        """
        return Histogram(self.domain, np.maximum(self.probabilities(), SMALLEST))

    def marginal(self, *names: str) -> Floats:
        """Return the marginal table over these attributes, in domain order. Public, no guarantee."""
        return self._sums.table(self.domain.project_axes(*names))

    def blocks(self, partition: Partition) -> Floats:
        """Return the fraction of records in every block, shape (blocks,)."""
        return self._sums.blocks(partition)

    def sample(self, size: int, seed: int) -> dict[str, list[Any]]:
        """Return synthetic records as columns of labels; the seed is public, the privacy noise has none."""
        generator = public_generator(seed)
        masses = np.maximum(self._density.ravel(), 0.0)
        cells = generator.choice(masses.size, size, p=masses / masses.sum())
        places = np.unravel_index(cells, self._density.shape) if self._axes else ()
        held = dict(zip(self._axes, places, strict=True))
        columns: dict[str, list[Any]] = {}
        for axis, (name, kind) in enumerate(self.domain):
            order = np.argsort(self._classes[axis], kind="stable")
            cumulated = np.cumsum(self._within[axis][order])
            last = np.append(np.flatnonzero(np.diff(self._classes[axis][order])), len(order) - 1)
            ends = cumulated[last]
            chosen = held.get(axis, np.zeros(size, np.int64))
            begins = np.append(0.0, ends)[chosen]
            point = begins + generator.random(size) * (ends[chosen] - begins)
            codes = order[np.minimum(np.searchsorted(cumulated, point, side="right"), last[chosen])]
            columns[name] = [kind.label(code) for code in codes.tolist()]
        return columns

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self._density.shape)) or "1"
        return f"ProductHistogram({' x '.join(map(str, self.domain.shape))} cells, {shape} classes)"

    def __getstate__(self) -> tuple[Any, ...]:
        return self.domain, self._axes, self._density, self._classes, self._within

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._hold(*state)


@final
@attrs.frozen(eq=False)
class _CutArea:
    """Prefix sums of a table of classes, and where the ends of a box lie in them.

    An end at a code lies at `places[code]`, and by the share `parts[code]` further on; None: nowhere further.
    One box alone and many at once take the same path, so that their results agree to the last bit.
    """

    sums: Floats  # flattened
    steps: tuple[int, ...]
    places: tuple[Ints, ...]
    parts: tuple[Floats | None, ...]
    # the same for single entries, which are read five times faster so
    _entries: memoryview = attrs.field(init=False)
    _ends: list[_End] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        parts = [None if part is None else part.data for part in self.parts]
        ends = [*zip(self.steps, [one.data for one in self.places], parts, strict=True)]
        set_fields(self, _entries=self.sums.data, _ends=ends)

    def __reduce__(self) -> tuple[Any, ...]:
        return _CutArea, (self.sums, self.steps, self.places, self.parts)  # a view cannot be copied

    def box(self, low: tuple[int, ...], high: tuple[int, ...]) -> float:
        """Return the sum over low <= code < high."""
        # where to look in the sums, and with what weight
        *others, last = map(_points, low, high, self._ends)
        pairs = others[0] if others else [(0, 1.0)]
        for points in others[1:]:
            pairs = [(at + more, one * factor) for more, factor in points for at, one in pairs]
        result, entries = 0.0, self._entries
        for more, factor in last:
            for at, one in pairs:
                result += one * factor * entries[at + more]
        return result

    def boxes(self, low: Ints, high: Ints) -> Floats:
        """Return the sums over many boxes; low, high: (m, axes)."""
        corners, weights = [np.zeros(len(low), np.int64)], [np.ones(len(low))]
        for place, (step, places, parts) in enumerate(zip(self.steps, self.places, self.parts, strict=True)):
            ends: list[tuple[Ints, Floats | float]] = []
            for codes, sign in ((high[:, place], 1.0), (low[:, place], -1.0)):
                entry = places[codes] * step
                if parts is None:
                    ends.append((entry, sign))
                else:
                    part = parts[codes]
                    ends += [(entry, sign * (1.0 - part)), (entry + step * (part > 0.0), sign * part)]
            corners = [entry + more for more, _ in ends for entry in corners]
            weights = [one * factor for _, factor in ends for one in weights]
        result = np.zeros(len(low))
        for one, entry in zip(weights, corners, strict=True):
            result += one * self.sums[entry]
        return result


def _points(low: int, high: int, end: _End) -> list[tuple[int, float]]:
    """Return where the ends of an interval lie along an axis, and with what weights."""
    step, places, parts = end
    upper, lower = places[high] * step, places[low] * step
    if parts is None:
        return [(upper, 1.0), (lower, -1.0)]
    above, below = parts[high], parts[low]
    points = [(upper, 1.0 - above)]
    if above:
        points.append((upper + step, above))
    points.append((lower, below - 1.0))
    if below:
        points.append((lower + step, -below))
    return points


@final
@attrs.define(eq=False, repr=False)
class _ClassSums:
    """Sums over boxes and weighted boxes of a distribution in product form: tables made on first use."""

    _axes: tuple[int, ...]
    _density: Floats
    _classes: tuple[Ints, ...]
    _within: tuple[Floats, ...]
    _prefix_cells: int = PREFIX_CELLS  # of a table over codes that is written out in any case
    _together: int = PLANE_CELLS  # of the tables over sets of so many attributes, up to which all of them are
    _coarse: dict[tuple[int, ...], Floats] = attrs.field(init=False, factory=dict)
    _areas: dict[tuple[int, ...], SummedArea | _CutArea | None] = attrs.field(init=False, factory=dict)

    def coarse(self, axes: tuple[int, ...]) -> Floats:
        """Return the marginal table over the classes of `axes`; a cache, not to be written to."""
        table = self._coarse.get(axes)
        if table is None:
            held = tuple(axis for axis in sorted(self._axes) if axis in axes)
            table = self._summed_to(held)
            sizes = dict(zip(held, table.shape, strict=True))
            self._coarse[axes] = table = table.reshape([sizes.get(axis, 1) for axis in axes])
        return table

    def _summed_to(self, axes: tuple[int, ...]) -> Floats:
        """Return the table over the classes of `axes`, of those of R: from a larger one that others share.

        Which larger one does not depend on what was asked before, so neither do the last bits.
        """
        sizes = dict(zip(self._axes, self._density.shape, strict=True))
        around, cells = {*axes}, math.prod(sizes[axis] for axis in axes)
        for axis in sorted(self._axes):
            if axis not in around and cells * sizes[axis] <= SHARED_CELLS:
                around.add(axis)
                cells *= sizes[axis]
        shared = tuple(sorted(around))
        if len(axes) < len(shared) < len(self._axes):
            return contract(self.coarse(shared), tuple(map(shared.index, axes)))
        table, held = self._density, self._axes
        if len(axes) < len(held):
            table = contract(table, tuple(place for place, axis in enumerate(held) if axis in axes))
            held = tuple(axis for axis in held if axis in axes)
        return table if held == axes else np.ascontiguousarray(table.transpose(list(map(held.index, axes))))

    def table(self, axes: tuple[int, ...]) -> Floats:
        """Return the marginal table over the codes of `axes`, a fresh array."""
        check_cells(math.prod(len(self._classes[axis]) for axis in axes))
        result = self.coarse(axes)
        for place, axis in enumerate(axes):
            shares = spread(self._within[axis], (place,), len(axes))
            result = result.take(self._classes[axis], axis=place) * shares
        return result if axes else result.copy()

    def blocks(self, partition: Partition) -> Floats:
        """Return the mass of every block, shape (blocks,)."""
        table = self.coarse(partition.axes)
        for place, (axis, labels) in enumerate(zip(partition.axes, partition.classes, strict=True)):
            count = int(labels.max()) + 1  # pieces: what is in one class and in one block
            pieces, codes = np.unique(self._classes[axis] * count + labels, return_inverse=True)
            shares = np.bincount(codes, self._within[axis])
            table = table.take(pieces // count, axis=place) * spread(shares, (place,), table.ndim)
            table = sum_classes(table, pieces % count, place)
        return table.ravel()

    def box(self, axes: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> float:
        area = self._areas.get(axes) or self._area(axes)
        if area is None:
            ends = zip(axes, low, high, strict=True)
            return self.weighted(axes, [((axis,), (first, last)) for axis, first, last in ends])
        return area.box(low, high)

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        area = self._area(axes)
        if area is None:
            return np.array([self.box(axes, *ends) for ends in zip(low.tolist(), high.tolist(), strict=True)])
        return area.boxes(low, high)

    def weighted(
        self, axes: tuple[int, ...], parts: Sequence[tuple[tuple[int, ...], Floats | tuple[int, int]]]
    ) -> float:
        table = self.coarse(axes)
        left = list(axes)
        for held, part in parts:
            weights = self._class_weights(held, part)
            table = np.tensordot(table, weights, axes=([left.index(axis) for axis in held], range(len(held))))
            left = [axis for axis in left if axis not in held]
        return float(table)

    def _class_weights(self, axes: tuple[int, ...], part: Floats | tuple[int, int]) -> Floats:
        """Return the mean weight of every class cell."""
        if isinstance(part, tuple):
            codes, count = slice(*part), int(self._classes[axes[0]].max()) + 1
            inside = np.bincount(self._classes[axes[0]][codes], self._within[axes[0]][codes], count)
            return inside.astype(np.float64)
        means = part
        for place, axis in enumerate(axes):
            means = means * spread(self._within[axis], (place,), len(axes))
            means = sum_classes(means, self._classes[axis], place)
        return means

    def _area(self, axes: tuple[int, ...]) -> SummedArea | _CutArea | None:
        """Return the prefix sums over `axes`, or None where a box has too many corners."""
        if axes not in self._areas:
            self._areas[axes] = self._summed(axes)
        return self._areas[axes]

    def _summed(self, axes: tuple[int, ...]) -> SummedArea | _CutArea | None:
        whole = math.prod(len(self._classes[axis]) for axis in axes) <= self._prefix_cells
        whole = whole or cells_of_all(tuple(map(len, self._classes)), len(axes)) <= self._together
        if len(axes) > (CORNER_AXES if whole else CUT_AXES):
            return None
        if whole:
            return SummedArea.of(self.table(axes))
        places: list[Ints] = []
        parts: list[Floats | None] = []
        table = self.coarse(axes)
        for place, axis in enumerate(axes):
            classes, within = self._classes[axis], self._within[axis]
            starts = np.flatnonzero(np.diff(classes, prepend=-1))  # of runs of one class
            runs = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(classes)))
            if len(starts) > table.shape[place]:
                masses = np.bincount(runs, within)
                table = table.take(classes[starts], axis=place)
                table = table * spread(masses, (place,), len(axes))
                within = within / np.where(masses > 0.0, masses, 1.0)[runs]
            before = np.cumsum(within) - within
            before -= before[starts][runs]
            before[starts] = 0.0
            places.append(np.append(runs, len(starts)))
            parts.append(np.append(np.clip(before, 0.0, 1.0), 0.0) if before.any() else None)
        check_cells(table.size)
        area = SummedArea.of(table)
        return _CutArea(area.sums, area.steps, tuple(places), tuple(parts))
