"""Distributions of small sets of attributes, each fitted to what was released of it, without a joint table.

For tables with so many strong links between attributes that no mixture of a feasible size follows them.
The distribution of a set of attributes is the one with most entropy that has the released tables of its
pairs, and of more of them, as its margins: exact of a Markov chain, where pairs alone tie any three.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.hypothesis.by_sets import BySets, nearest
from onlineic.hypothesis.mixture import Mixture
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import spread

LOCAL_CELLS = 2**14  # of a set of attributes that is fitted by itself: a millisecond or less
ROUNDS = 30  # over all tables of a set; they agree with each other but for their noise
LEAST = 1e-12  # of a margin that is divided by, so that what was emptied can be filled

Goal = tuple[tuple[int, ...], tuple[Ints, ...], Floats]  # places in the set, classes of each, the margin


@final
@attrs.frozen(eq=False, repr=False)
class LocalFits(BySets):
    """A distribution for each set of few attributes, from the tables released of them; others by a mixture.

    A set is fitted by itself when it is first asked for, if a table was released of each of its pairs (of one
    attribute: any that holds it), and it has at most 2^14 cells.

    Args:
        mixture: Fitted to the first of the measurements, or to all.
        measurements: All so far; those of single queries are left to the mixture.
    """

    mixture: Mixture
    measurements: tuple[Measurement, ...]

    @property
    def beneath(self) -> Mixture:
        return self.mixture

    @property
    def fitted(self) -> int:
        """Measurements that it was fitted to."""
        return len(self.measurements)

    def holds(self, target: Query | Partition) -> bool:
        """Return whether the attributes of a released table, and so any of them, are fitted by themselves."""
        return isinstance(target, Partition) and self._table(target.axes) is not None

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        """Return the masses of many boxes low <= code < high along `axes`; low, high: (m, axes)."""
        held = self._table(axes)
        return self.mixture.boxes(axes, low, high) if held is None else held.boxes(axes, low, high)

    def _made(self, axes: tuple[int, ...]) -> Floats | None:
        """Return the distribution over a set of attributes, if enough was released of it."""
        shape = tuple(self.domain.shape[axis] for axis in axes)
        if math.prod(shape) > LOCAL_CELLS:
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
    """Return the released margins of a set, the noisiest first; of equal cuts their mean by precision.

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
        goals.append((precision, (*cuts[key], nearest(np.asarray(mean), 1.0))))
    goals.sort(key=lambda one: one[0])  # the least noisy is met last
    return [goal for _, goal in goals]


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
