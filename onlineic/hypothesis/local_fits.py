"""Every few attributes by themselves: maximum entropy of what was released of them, without a joint table.

For tables with so many strong links that no mixture of a size to be fitted holds them at so little noise.
The distribution of a set of attributes is the one with most entropy that has the released tables of its
pairs, and of more of them, as its margins: exact of a Markov chain, where pairs alone tie any three.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.hypothesis.mixture import Mixture, by_columns
from onlineic.queries.batch import Queries
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import Tables, spread

LOCAL_CELLS = 2**14  # of a set of attributes that is fitted by itself: a millisecond or less
ALL_CELLS = 2**24  # of all sets that are kept; then they are made again
ROUNDS = 30  # over all tables of a set; they agree with each other but for their noise
LEAST = 1e-12  # of a margin that is divided by, so that what was emptied can be filled

Goal = tuple[tuple[int, ...], tuple[Ints, ...], Floats]  # places in the set, classes of each, the margin


@final
@attrs.frozen(eq=False, repr=False)
class LocalFits:
    """A distribution for each set of few attributes, from the tables released of them; others by a mixture.

    A set is fitted by itself when it is first asked for, if a table was released of each of its pairs (of one
    attribute: any that holds it), and it has at most 2^14 cells. Two sets agree on the attributes that they
    share but for the noise of the tables: this is no joint distribution, and records are drawn from the
    mixture.

    Parameters
    ----------
    mixture : Mixture
        Fitted to the first of the measurements, or to all.
    measurements : tuple of Measurement
        All so far; those of single queries are left to the mixture.
    """

    mixture: Mixture
    measurements: tuple[Measurement, ...]
    _held: dict[tuple[int, ...], Tables | None] = attrs.field(init=False, factory=dict)
    _cells: list[int] = attrs.field(init=False, factory=lambda: [0])

    @property
    def domain(self) -> Domain:
        """The domain of the queries."""
        return self.mixture.domain

    @property
    def fitted(self) -> int:
        """Measurements that it was fitted to."""
        return len(self.measurements)

    def holds(self, target: Query | Partition) -> bool:
        """Return whether the attributes of a released table, and so any of them, are fitted by themselves."""
        return isinstance(target, Partition) and self._table(target.axes) is not None

    def supports(self, query: Query) -> bool:
        return query.domain is self.domain or query.domain == self.domain

    def evaluate(self, query: Query) -> float:
        held = self._table(query.axes)
        if held is None:
            return self.mixture.evaluate(query)
        return min(1.0, max(0.0, query.total(held, 1.0) / (1 << query.grid_bits)))

    def supports_many(self, queries: Queries) -> bool:
        return queries.domain == self.domain

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        return by_columns(self, queries, self.boxes)

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        """Return the masses of many boxes low <= code < high along `axes`; low, high: (m, axes)."""
        held = self._table(axes)
        return self.mixture.boxes(axes, low, high) if held is None else held.boxes(axes, low, high)

    def blocks(self, partition: Partition) -> Floats:
        """Return the fraction of records in every block, shape (blocks,)."""
        held = self._table(partition.axes)
        if held is None:
            return self.mixture.blocks(partition)
        return partition.measure(held.table(partition.axes))

    def marginal(self, *names: str) -> Floats:
        """Return the marginal table over these attributes, in domain order. Public, no guarantee.

        Raises
        ------
        TooLargeError
            If it has more than 2^22 cells.
        """
        axes = self.domain.project_axes(*names)
        held = self._table(axes)
        return self.mixture.marginal(*names) if held is None else held.table(axes).copy()

    def probabilities(self) -> Floats:
        """Return the cell probabilities of the mixture, shape of the domain: of small domains only."""
        return self.mixture.probabilities()

    def sample(self, size: int, seed: int) -> dict[str, list[Any]]:
        """Return synthetic records of the mixture, as columns of labels; the seed is public."""
        return self.mixture.sample(size, seed)

    def _table(self, axes: tuple[int, ...]) -> Tables | None:
        """Return the sums over a set of attributes, or None if it is left to the mixture."""
        try:
            return self._held[axes]
        except KeyError:
            fitted = self._fitted(axes)
            size = 0 if fitted is None else fitted.size
            if self._cells[0] + size > ALL_CELLS:
                self._held.clear()
                self._cells[0] = 0
            self._cells[0] += size
            dimensions = len(self.domain.shape)
            found = None if fitted is None else Tables(spread(fitted, axes, dimensions), LOCAL_CELLS)
            self._held[axes] = found
            return found  # what another thread has made room for in the meantime is not looked up again

    def _fitted(self, axes: tuple[int, ...]) -> Floats | None:
        """Return the distribution over a set of attributes, if enough was released of it."""
        shape = tuple(self.domain.shape[axis] for axis in axes)
        if not axes or math.prod(shape) > LOCAL_CELLS:
            return None
        goals = _goals(self.measurements, axes)
        met = {(i, j) for places, _, _ in goals for i in places for j in places if i <= j}
        if any((i, j) not in met for i in range(len(axes)) for j in range(i, len(axes))):
            return None
        return _raked(shape, goals)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.domain.shape))
        return f"LocalFits({shape} cells, fitted to {self.fitted} measurements)"


def _goals(measurements: Iterable[Measurement], axes: tuple[int, ...]) -> list[Goal]:
    """Return what tables say of their attributes in a set, the noisiest first: of each cut the best mean.

    Of one attribute of a larger set only what was released of it alone: the tables of its pairs hold it too.
    """
    found: dict[Any, list[tuple[Floats, float]]] = {}
    cuts: dict[Any, tuple[tuple[int, ...], tuple[Ints, ...]]] = {}
    for one in measurements:
        target = one.target
        if not isinstance(target, Partition) or one.scale <= 0.0:
            continue
        held = [place for place, axis in enumerate(target.axes) if axis in axes]
        if held and (len(held) > 1 or 1 in (len(target.axes), len(axes))):
            others = tuple(place for place in range(len(target.axes)) if place not in held)
            values = one.values.reshape(target.shape).sum(axis=others)
            key = tuple((target.axes[place], target.cuts[place].key) for place in held)
            summed = target.blocks // values.size  # blocks whose noise each of these holds
            found.setdefault(key, []).append((values, 1.0 / (summed * one.scale**2)))
            places = tuple(axes.index(target.axes[place]) for place in held)
            cuts[key] = places, tuple(target.classes[place] for place in held)
    goals = []
    for key, alike in found.items():
        precision = sum(weight for _, weight in alike)
        mean = sum(weight * values for values, weight in alike) / precision
        goals.append((precision, (*cuts[key], _nearest(np.asarray(mean)))))
    goals.sort(key=lambda one: one[0])  # the least noisy is met last
    return [goal for _, goal in goals]


def _nearest(values: Floats) -> Floats:
    """Return the distribution nearest to noisy fractions, in squares: all move by one number, down to 0.

    Held et al. (1974); no cell gains what another's noise has lost.
    """
    falling = np.sort(values, axis=None)[::-1]
    over = (falling.cumsum() - 1.0) / np.arange(1, falling.size + 1)
    nearest: Floats = np.maximum(values - over[np.flatnonzero(falling > over)[-1]], 0.0)
    return nearest


def _raked(shape: tuple[int, ...], goals: Sequence[Goal]) -> Floats:
    """Return the table of most entropy with these margins, by proportional fitting from equal cells."""
    table = np.full(shape, 1.0 / math.prod(shape))
    for _ in range(ROUNDS):
        for places, classes, margin in goals:
            others = tuple(place for place in range(len(shape)) if place not in places)
            found = table.sum(axis=others)
            whole = tuple(found.shape) == margin.shape
            if not whole:
                for place, labels in enumerate(classes):
                    sums = np.zeros((margin.shape[place], *np.delete(found.shape, place)))
                    np.add.at(sums, labels, np.moveaxis(found, place, 0))
                    found = np.moveaxis(sums, 0, place)
            ratio = margin / np.maximum(found, LEAST)
            if not whole:
                ratio = ratio[np.ix_(*classes)]
            table *= spread(ratio, places, len(shape))
    total = table.sum()
    return np.asarray(table / total) if total > 0.0 else np.full(shape, 1.0 / table.size)
