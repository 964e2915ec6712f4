"""Nested levels of coarseness of an attribute, and what a weight vector asks of each.

Level 0 is the attribute as one part, the last one its codes. What a level says beyond the one before it is a
subspace of its own; those of several attributes multiply.
"""

import itertools
import math
from functools import cached_property, lru_cache
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.attributes import Attribute
from onlineic.domain.domain import Domain
from onlineic.queries.cuts import Cut, grid_of, is_long
from onlineic.queries.query import Factor
from onlineic.queries.tables import immutable

BRANCH = 4  # parts of one part of the level before: with 3 errors are as large, with 6 a quarter larger
LEAST_PARTS = 3  # of the coarsest level but the whole: fewer say next to nothing beyond it
EXACT, DRAWN = 24, 64  # codes up to which all ranges are averaged over, and how many ranges beyond
MOST_KEPT, MOST_TABLES = 2**14, 2**8  # ranges, and weights, whose energies are remembered, of all domains


@final
@attrs.frozen(eq=False)
class Levels:
    """The levels of one attribute.

    Attributes:
        parts: Parts of each level, rising: 1, .., the number of codes.
        classes: Each of shape (codes,). The part of every code, by level. Of a long attribute the codes are
            the parts of its grid.
        grid: Of a long attribute, the equal parts that stand for its codes.
        missing: Whether the last code is that of missing values.
    """

    parts: tuple[int, ...]
    classes: tuple[Ints, ...]
    ordered: bool
    grid: Cut | None = None
    missing: bool = False

    @classmethod
    def of(cls, attribute: Attribute) -> "Levels":
        """Return the levels of an attribute: codes alone where these have no order.

        The missing cell, which is next to no value, is a part by itself at every level but the whole. Bins
        with two ends are a level beside the codes, and coarser ones are made of bins: no count cuts them.
        """
        grid = grid_of(attribute) if is_long(attribute) else None
        size, ends = grid.parts if grid else attribute.size, getattr(attribute, "cells", 1)
        values = size - attribute.missing
        held, parts = np.arange(values) // ends, values // ends
        classes, fewer = [np.arange(size)], parts if ends > 1 else round(parts / BRANCH)
        while attribute.ordered and fewer >= LEAST_PARTS:
            held, parts = held * fewer // parts, fewer
            classes.insert(0, np.append(held, np.full(size - values, fewer)))
            fewer = round(parts / BRANCH)
        if size > 1:
            classes.insert(0, np.zeros(size, np.int64))
        counts = tuple(int(one[-1]) + 1 for one in classes)
        return cls(counts, tuple(classes), attribute.ordered, grid, bool(attribute.missing))

    def cut(self, level: int) -> Cut:
        """Return how the attribute is cut at a level."""
        return self._cuts[level]

    @cached_property
    def _cuts(self) -> list[Cut]:
        """How it is cut at each level: every table and set of attributes asks for it."""
        if self.grid is None:
            return [*map(Cut.of, self.classes)]
        return [Cut.at(self.grid.size, self.grid.firsts[starts]) for starts in self.starts]

    def level_of(self, cut: Cut) -> int | None:
        """Return the level at which an attribute is cut so, or None."""
        if cut.parts not in self.parts:
            return None
        level = self.parts.index(cut.parts)
        if cut.labels is not None:
            return level if np.array_equal(self.classes[level], cut.labels) else None
        return level if self.cut(level).key == cut.key else None

    def nearest(self, cut: Cut) -> int:
        """Return the level of about as many parts as a cut has, which tells about what the cut does.

        0 where the parts of the cut are no runs of codes in order.
        """
        if (level := self.level_of(cut)) is not None:
            return level
        if not (self.ordered and cut.in_order):
            return 0
        return min(range(len(self.parts)), key=lambda level: abs(math.log(self.parts[level] / cut.parts)))

    def shares(self, cut: Cut, level: int) -> Floats:
        """Return which share of each part of a cut lies in each part of a level, (parts, parts)."""
        own = self.cut(level)
        ends = np.append(own.firsts, own.size)
        return np.stack([cut.inside(int(low), int(high)) for low, high in itertools.pairwise(ends)], axis=1)

    @property
    def finest(self) -> int:
        """The level of the codes."""
        return len(self.parts) - 1

    @cached_property
    def starts(self) -> tuple[Ints, ...]:
        """The first code of each part, by level: worked out once, as every table and question asks for it."""
        return tuple(map(_runs, self.classes))

    @cached_property
    def _sizes(self) -> tuple[Ints, ...]:
        """How many codes each part has, by level."""
        return tuple(
            np.diff(starts, append=len(classes))
            for starts, classes in zip(self.starts, self.classes, strict=True)
        )

    @cached_property
    def _parents(self) -> tuple[tuple[Ints, Ints, Floats], ...]:
        """By level, but for 0: the part before that holds each part, where it begins, its share of codes."""
        found = []
        for coarse, starts, (before, sizes) in zip(
            self.classes, self.starts[1:], itertools.pairwise(self._sizes), strict=False
        ):
            parents = coarse[starts]
            found.append((parents, _runs(parents), sizes / before[parents]))
        return tuple(found)

    @cached_property
    def _held(self) -> dict[tuple[int, int], Ints]:
        """By a level and a coarser one: the parts of the one at which those of the other begin."""
        return {}

    def means(self, table: Floats, level: int, axis: int = 0) -> Floats:
        """Return the mean of a table over the parts of a level along one axis."""
        starts = self.starts[level]
        sums = np.add.reduceat(table, starts, axis=axis)
        sizes = self._sizes[level]
        shape = [1] * table.ndim
        shape[axis] = len(sizes)
        return np.asarray(sums / sizes.reshape(shape))

    def beyond(self, table: Floats, level: int, axis: int = 0) -> Floats:
        """Return what the means at a level say beyond those of the level before, along one axis."""
        means = self.means(table, level, axis)
        if level == 0:
            return means
        parents, _, _ = self._parents[level - 1]
        return np.asarray(means - np.take(self.means(table, level - 1, axis), parents, axis=axis))

    def between(self, totals: Floats, fine: int, level: int, axis: int = 0) -> Floats:
        """Return what counts of the parts of a `fine` level say at a coarser one beyond the one before it.

        As `beyond`, but counts of parts add up where weights of codes are averaged: each part of a level gets
        of what its whole holds the share of its codes.
        """
        begun = self._held.get((fine, level))
        if begun is None:
            begun = self._held[fine, level] = _runs(self.classes[level][self.starts[fine]])
        sums = np.add.reduceat(totals, begun, axis=axis)
        if level == 0:
            return np.asarray(sums)
        parents, firsts, shares = self._parents[level - 1]
        wholes = np.add.reduceat(sums, firsts, axis=axis)
        shape = [1] * totals.ndim
        shape[axis] = len(parents)
        return np.asarray(sums - np.take(wholes, parents, axis=axis) * shares.reshape(shape))

    def even(self, totals: Floats, level: int, axis: int = 0) -> Floats:
        """Return counts of the parts of a level as counts of codes, each an equal share of its part's."""
        if level == self.finest:
            return totals
        shape = [1] * totals.ndim
        shape[axis] = len(self._sizes[level])
        held = totals / self._sizes[level].reshape(shape)
        return held if level == 0 else np.take(held, self.classes[level], axis=axis)

    def energies(self, weights: Floats) -> Floats:
        """Return the sum of squares of what weights say beyond the level before, (codes,) -> (levels,).

        Of several weight vectors, (m, codes), that of each: (m, levels).
        """
        axis = weights.ndim - 1
        told = [(self.beyond(weights, level, axis) ** 2).sum(axis=axis) for level in range(len(self.parts))]
        return np.stack(told, axis=-1)

    def spread(self, weights: Floats, masses: Floats) -> Floats:
        """Return what part of the mean square of weights each level explains, by mass: shapes as `energies`.

        Of level 0 the square of its mean. All parts together are the mean square: the law of total variance.

        Args:
            masses: Shape (codes,). Shares of the records.
        """
        squares = [np.zeros(weights.shape[:-1])]
        for starts in self.starts:
            held = np.add.reduceat(masses, starts)
            sums = np.add.reduceat(masses * weights, starts, axis=-1)
            squares.append(np.divide(sums**2, held, out=np.zeros_like(sums), where=held > 0.0).sum(axis=-1))
        return np.asarray(np.maximum(np.diff(np.stack(squares, axis=-1)), 0.0))

    def usual(self) -> Floats:
        """Return the mean energies of the conditions on an attribute of which none is known yet, (levels,).

        Of ordered values all ranges, or an even choice of them; of others single codes.
        """
        codes, size = np.arange(self.parts[-1]), self.parts[-1] - self.missing
        if not self.ordered:
            return self.energies(np.eye(1, len(codes))[0])
        if size <= EXACT:
            ends = [(low, high) for low in range(size) for high in range(low + 1, size + 1)]
        else:
            places = (np.arange(2 * DRAWN) * (math.sqrt(5.0) - 1.0) / 2.0) % 1.0
            pairs = np.sort((places.reshape(2, DRAWN) * size).astype(np.int64), axis=0)
            ends = [(int(low), int(high) + 1) for low, high in pairs.T]
        lows, highs = np.array(ends).T[:, :, None]
        ranges = ((codes >= lows) & (codes < highs)).astype(float)  # all at once: of many attributes, slow
        found = [(self.beyond(ranges, level, 1) ** 2).sum() for level in range(len(self.parts))]
        return np.array(found) / len(ends)


@lru_cache(MOST_KEPT)
def energies_of_range(levels: Levels, low: int, high: int) -> Floats:
    """Return the energies of a half-open range of codes, (levels,): every question on it asks for them."""
    return immutable(levels.energies(levels.cut(levels.finest).inside(low, high)))


def energies_of(levels: Levels, factor: Factor) -> Floats:
    """Return the energies of a condition on one attribute, or of its weights, (levels,)."""
    if factor.table is None:
        return energies_of_range(levels, factor.low, factor.high)
    return _energies_of_weights(levels, factor.bits, factor.table.tobytes())


@lru_cache(MOST_TABLES)
def _energies_of_weights(levels: Levels, bits: int, weights: bytes) -> Floats:
    """Return the energies of weights on a grid: all groups of a mean have the same."""
    found = np.ldexp(np.frombuffer(weights, np.int64).astype(np.float64), -bits)
    return immutable(levels.energies(found if levels.grid is None else levels.grid.means(found, 0)))


def _runs(labels: Ints) -> Ints:
    """Return the places at which labels that do not fall rise, the first one included."""
    return np.flatnonzero(np.diff(labels, prepend=-1))


@lru_cache(64)
def levels_of(domain: Domain) -> tuple[Levels, ...]:
    """Return the levels of every attribute of a domain."""
    return tuple(map(Levels.of, domain.attributes))
