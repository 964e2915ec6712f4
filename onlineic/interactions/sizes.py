"""How large interactions are expected to be: from a public prior, and from what was released.

An interaction of several attributes at some levels is what their joint counts say beyond those of fewer, or
coarser ones. Its expected square is a share of what the masses of its parts would let it be; that share is
one number an order, learned from released tables, and drawn to the prior where these say little.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.interactions.levels import Levels, levels_of
from onlineic.queries.partitions import Measurement, Partition

# share of the largest size that interactions of two attributes have: a prior that the first tables replace,
# amid those of real tables (.06 to .64). Each further attribute is expected to leave as large a share again.
# Of one attribute nothing is known
OF_TWO = 0.3
ROUNDS = 20  # of a fixed point that a few rounds find
MOST_TOLD = 4  # attributes of an interaction that a fit can follow beyond its noise
PAIRED = 10  # rounds over three pairs, after which they hardly move
LEAST = 0.01  # of a mean size: nothing is believed to be smaller
GROUPS = 8  # of parts of about one mass, by which a sum over the blocks of a product is taken

Key = tuple[tuple[int, int], ...]  # (axis, level), levels above 0


@final
@attrs.frozen(eq=False)
class Table:
    """A released table whose parts are levels.

    Attributes:
        counts: Fractions, one axis an attribute.
        precision: One over the variance of each entry.
    """

    key: Key
    counts: Floats
    precision: float


def table_key(partition: Partition) -> Key | None:
    """Return the levels that a partition is cut at, or None if it is cut elsewhere."""
    levels = levels_of(partition.domain)
    found = []
    for axis, cut in zip(partition.axes, partition.cuts, strict=True):
        level = levels[axis].level_of(cut)
        if level is None:
            return None
        found.append((axis, level))
    return tuple(found)


def table_of(domain: Domain, key: Key) -> Partition:
    """Return the partition of these levels."""
    levels = levels_of(domain)
    return Partition(
        domain, tuple(axis for axis, _ in key), tuple(levels[axis].cut(level) for axis, level in key)
    )


def tables_of(domain: Domain, measurements: Iterable[Measurement]) -> list[Table]:
    """Return the tables at levels among what was released, those bought again in their mean by precision."""
    levels, found = levels_of(domain), dict[Key, tuple[float, Floats]]()
    for one in measurements:
        key = table_key(one.target) if isinstance(one.target, Partition) else None
        if key and one.scale > 0.0:
            precision = one.scale**-2.0
            before, total = found.get(key, (0.0, np.zeros(1)))
            found[key] = (before + precision, total + precision * one.values)
    tables = []
    for key, (precision, total) in found.items():
        shape = [levels[axis].parts[level] for axis, level in key]
        tables.append(Table(key, (total / precision).reshape(shape), precision))
    return tables


def levelled(domain: Domain, measurements: Iterable[Measurement]) -> list[Table]:
    """Return what was released as tables at levels: as `tables_of`, and of other cuts about what they tell.

    A table that is cut elsewhere is read at the levels of about as many parts, as if records were spread
    evenly over each of its own.
    """
    levels, held, read = levels_of(domain), list[Measurement](), list[Table]()
    for one in measurements:
        if not isinstance(one.target, Partition) or table_key(one.target) is not None:
            held.append(one)
            continue
        key, precision = known_at(one.target, one.scale)
        counts, found = one.values.reshape(one.target.shape), dict(key)
        for axis, cut in zip(one.target.axes, one.target.cuts, strict=True):
            level = found.get(axis, 0)
            exact = levels[axis].level_of(cut) == level
            shares = np.eye(cut.parts) if exact else levels[axis].shares(cut, level)
            counts = np.tensordot(counts, shares if level else np.ones((cut.parts, 1)), axes=(0, 0))
        if key:
            read.append(
                Table(key, counts.reshape([levels[axis].parts[level] for axis, level in key]), precision)
            )
    return tables_of(domain, held) + read


def known_at(partition: Partition, scale: float) -> tuple[Key, float]:
    """Return the levels at which a table tells about what it does, and its precision there."""
    levels, precision = levels_of(partition.domain), scale**-2.0
    found = []
    for axis, cut in zip(partition.axes, partition.cuts, strict=True):
        level = levels[axis].nearest(cut)
        precision *= levels[axis].parts[level] / cut.parts
        if level:
            found.append((axis, level))
    return tuple(found), precision


@final
@attrs.frozen(eq=False)
class Sizes:
    """Expected squares of what subspaces hold beyond lower ones: of one block, fractions of all records.

    Attributes:
        masses: Each of shape (levels,). By attribute, the sum of the squared masses of a level's parts over
            their number; 1 of level 0.
        shares: c^2 of interactions of one, two and three attributes; of more each further one counts as the
            second.
        own: c^2 of subspaces of which something was released.
        margins: Each of shape (codes,). Masses of the codes of each attribute, roughly.
    """

    levels: tuple[Levels, ...]
    masses: tuple[Floats, ...]
    shares: tuple[float, ...]
    own: Mapping[Key, float]
    margins: tuple[Floats, ...]

    @classmethod
    def learned(cls, domain: Domain, tables: Sequence[Table]) -> "Sizes":
        """Return the sizes by what was released; without a table, those of the prior."""
        levels, having = levels_of(domain), dict[int, list[tuple[int, Table]]]()
        for table in tables:
            for place, (axis, _) in enumerate(table.key):
                having.setdefault(axis, []).append((place, table))
        margins = tuple(_margin(one, having.get(axis, ())) for axis, one in enumerate(levels))
        unknown = cls(levels, tuple(map(_masses, levels, margins)), (), {}, margins)
        pairs, triples = dict[Key, _Seen](), dict[Key, _Seen]()
        for table in tables:
            for part in _parts_of(table, 2):
                expected = np.ones(())
                for axis, level in part.key:
                    shares = np.bincount(levels[axis].classes[level], margins[axis])
                    expected = np.multiply.outer(expected, shares)
                unknown._see(pairs, part, part.counts - expected)
            for part in _parts_of(table, 3):
                unknown._see(triples, part, part.counts - _of_pairs(part))
        of_two, own = _drawn_together(pairs, OF_TWO**2, OF_TWO**2)
        of_three, own_of_three = _drawn_together(triples, of_two**2, of_two)
        return attrs.evolve(unknown, shares=(1.0, of_two, of_three), own=own | own_of_three)

    @cached_property
    def _inexact(self) -> Bools:
        """Of which attributes the masses of level 0, which are 1, were not rounded to it."""
        return np.array([masses[0] != 1.0 for masses in self.masses], np.bool_)

    def squares(self, subspaces: Ints) -> Floats:
        """Return the expected square of a block of each subspace, (subspaces, attributes) -> (subspaces,)."""
        result = np.ones(len(subspaces))
        for axis in np.flatnonzero(self._inexact | subspaces.any(axis=0)).tolist():  # of many a few
            result *= self.masses[axis][subspaces[:, axis]]
        orders = (subspaces > 0).sum(axis=1)
        shares = np.array(self.shares)[np.clip(orders, 1, 3) - 1]
        shares = shares * self.shares[1] ** np.maximum(orders - 3, 0)
        if self.own:
            for row in np.flatnonzero((orders == 2) | (orders == 3)):
                axes = np.flatnonzero(subspaces[row])
                key = tuple((int(axis), int(subspaces[row, axis])) for axis in axes)
                shares[row] = self.own.get(key, shares[row])
        return np.asarray(result * shares)

    def told(self, keys: Sequence[Key], precision: Floats) -> Floats:
        """Return which part of each subspace is told at these precisions, and not hidden by noise, (keys,).

        The mean over its blocks of signal / (1 + signal), where the expected square of a block goes with its
        mass, as that of a count does: of few heavy blocks all is told when of many light ones nothing is.
        """
        means = precision * self.squares(rows_of(keys, len(self.levels)))
        found = np.ones(len(keys))
        for place, key in enumerate(keys):
            heavier, many = np.ones(1), np.ones(1)
            for axis, level in key:
                more, parts = self._groups[axis][level]
                heavier = np.multiply.outer(heavier, more).ravel()
                many = np.multiply.outer(many, parts).ravel()
            signal = means[place] * heavier
            found[place] = float((many * signal / (1.0 + signal)).sum())
        return found

    @cached_property
    def _groups(self) -> list[list[tuple[Floats, Floats]]]:
        """By attribute and level: masses of groups of parts over the mean, and the share of parts of each."""
        return [
            [_grouped(np.bincount(classes, margin).astype(np.float64)) for classes in one.classes]
            for one, margin in zip(self.levels, self.margins, strict=True)
        ]

    def _see(self, seen: "dict[Key, _Seen]", table: Table, beyond: Floats) -> None:
        """Note what a table says of the interactions of its attributes, less what its noise makes of them."""
        for choice in itertools.product(*[range(1, level + 1) for _, level in table.key]):
            held, dimensions, usual, ratio = beyond, 1, 1.0, 1.0
            for place, ((axis, fine), level) in enumerate(zip(table.key, choice, strict=True)):
                one = self.levels[axis]
                held = one.between(held, fine, level, place)
                ratio *= one.parts[fine] / one.parts[level]
                usual *= self.masses[axis][level]
                dimensions *= one.parts[level] - one.parts[level - 1]
            noise = ratio / table.precision / usual
            size = float((held**2).sum()) / dimensions / usual - noise
            key = tuple((axis, level) for (axis, _), level in zip(table.key, choice, strict=True))
            seen.setdefault(key, _Seen()).add(size, 2.0 * noise**2 / dimensions)


def _parts_of(table: Table, order: int) -> Iterator[Table]:
    """Yield the margins of a table over so many of its attributes."""
    for held in itertools.combinations(range(len(table.key)), order):
        others = tuple(place for place in range(len(table.key)) if place not in held)
        counts = table.counts.sum(axis=others)
        precision = table.precision * counts.size / table.counts.size
        yield Table(tuple(table.key[place] for place in held), counts, precision)


def _of_pairs(table: Table) -> Floats:
    """Return three attributes with the most entropy that have the pairs of this table as their margins."""
    pairs = [table.counts.sum(axis=place, keepdims=True) for place in range(3)]
    least = [0.3 / math.sqrt(table.precision * pair.size / table.counts.size) for pair in pairs]
    expected = np.full(table.counts.shape, 1.0 / table.counts.size)
    for _ in range(PAIRED):
        for place, pair in enumerate(pairs):
            now = np.maximum(expected.sum(axis=place, keepdims=True), 1e-12)
            expected = expected * (np.maximum(pair, least[place]) / now)
    return np.asarray(expected)


@attrs.define
class _Seen:
    """Estimates of one relative size, by precision."""

    precision: float = 0.0
    total: float = 0.0

    def add(self, size: float, variance: float) -> None:
        self.precision += 1.0 / variance
        self.total += size / variance


def _drawn_together(seen: Mapping[Key, _Seen], prior: float, spread: float) -> tuple[float, dict[Key, float]]:
    """Return the mean size, drawn to the prior, and each subspace's own, drawn to that mean.

    Empirical Bayes: sizes spread by as much as their mean.
    """
    last = mean = prior
    for _ in range(ROUNDS):
        last, weight, total = mean, spread**-2.0, prior / spread**2
        for one in seen.values():
            part = 1.0 / (mean**2 + 1.0 / one.precision)
            weight += part
            total += part * one.total / one.precision
        mean = max(total / weight, LEAST * prior)
    mean = math.sqrt(last * mean)  # where the rounds go to and fro, between the two
    own = {
        key: max((one.total + 1.0 / mean) / (one.precision + 1.0 / mean**2), LEAST * mean)
        for key, one in seen.items()
    }
    return mean, own


def _margin(levels: Levels, tables: Iterable[tuple[int, Table]]) -> Floats:
    """Return the masses of an attribute's codes, (codes,), roughly: by the finest and most precise table.

    Tables come with the place that the attribute has in them.
    """
    best: tuple[int, float, Floats] | None = None
    for place, table in tables:
        parts = table.counts.shape[place]
        found = (table.key[place][1], table.precision * parts / table.counts.size)
        if best is None or found > best[:2]:
            others = tuple(other for other in range(table.counts.ndim) if other != place)
            best = (*found, table.counts.sum(axis=others))
    if best is None:
        return np.full(levels.parts[-1], 1.0 / levels.parts[-1])
    level, precision, counts = best
    counts = np.maximum(counts, 0.3 / math.sqrt(precision))  # an empty part is not known to be empty
    classes = levels.classes[level]
    codes = (counts / np.bincount(classes))[classes]
    return np.asarray(codes / codes.sum())


def _grouped(masses: Floats) -> tuple[Floats, Floats]:
    """Return the masses of at most `GROUPS` groups of parts over the mean, and the share of parts of each."""
    ranked = np.sort(masses)
    places = np.arange(len(ranked))
    if len(ranked) > GROUPS:
        places = np.minimum(np.cumsum(ranked) / ranked.sum() * GROUPS, GROUPS - 1).astype(np.int64)
    counts, sums = np.bincount(places), np.bincount(places, ranked)
    held = counts > 0
    return sums[held] / counts[held] / ranked.mean(), counts[held] / len(ranked)


def _masses(levels: Levels, margin: Floats) -> Floats:
    squares = [float((np.bincount(classes, margin) ** 2).sum()) for classes in levels.classes]
    return np.asarray(np.array(squares) / np.array(levels.parts))


def informed(levels: Sequence[Levels], subspaces: Ints, tables: Ints) -> Floats:
    """Return what part of its precision each table gives to each subspace, (subspaces, tables).

    A table that is as fine as a subspace in every attribute informs it, by the parts of the one over those of
    the other; rows are levels by attribute, 0 where one takes no part. Exact: the projections commute.
    """
    scale = np.ones(len(tables))
    result = np.ones((len(subspaces), len(tables)))
    for axis in np.flatnonzero(subspaces.any(axis=0) | tables.any(axis=0)).tolist():  # of many a few
        columns, parts = tables[:, axis], np.array(levels[axis].parts, np.float64)
        scale /= parts[columns]
        taking_part = np.flatnonzero(subspaces[:, axis])  # a few of many, where there are many attributes
        if len(taking_part):
            rows = subspaces[taking_part, axis][:, None]
            result[taking_part] *= np.where(rows <= columns, parts[rows], 0.0)
    return result * scale


@lru_cache(4)
def told_by(domain: Domain, measurements: tuple[Measurement, ...]) -> tuple[tuple[Table, ...], Sizes]:
    """Return what was released as tables at levels, about, and the sizes by them.

    Kept for a while: what is bought next, the fit and predicted errors go by the same releases.
    """
    tables = tuple(levelled(domain, measurements))
    return tables, Sizes.learned(domain, tables)


def expected_misfit(domain: Domain, tables: Sequence[Table], sizes: Sizes | None = None) -> float:
    """Return 2 loss / blocks of the best linear fit to these tables: one less its degrees of freedom.

    A fit that goes on from there fits noise, and one that stops before leaves what was told.

    Morozov (1966) for a stop where the residual is as large as noise; Hastie & Tibshirani (1990), 3.5,
    for the degrees of freedom of a linear fit: the sum of signal / (1 + signal).

    Args:
        sizes: Those by these tables, if they are known.
    """
    sizes = Sizes.learned(domain, tables) if sizes is None else sizes
    levels, width = levels_of(domain), len(domain.shape)
    found: dict[Key, None] = {}
    for table in tables:
        for order in range(1, MOST_TOLD + 1):
            for some in itertools.combinations(table.key, order):
                for choice in itertools.product(*[range(1, level + 1) for _, level in some]):
                    found.setdefault(
                        tuple((axis, level) for (axis, _), level in zip(some, choice, strict=True))
                    )
    keys = [*found]
    subspaces, held = rows_of(keys, width), rows_of([table.key for table in tables], width)
    precision = informed(levels, subspaces, held) @ np.array([table.precision for table in tables])
    dimensions = np.ones(len(subspaces))
    for axis, one in enumerate(levels):
        parts = np.array(one.parts, np.float64)
        dimensions *= np.concatenate([[1.0], np.diff(parts)])[subspaces[:, axis]]
    told = float((dimensions * sizes.told(keys, precision)).sum())
    return 1.0 - told / sum(table.counts.size for table in tables)


def rows_of(keys: Iterable[Key], width: int) -> Ints:
    """Return keys as rows of levels, (keys, attributes)."""
    keys = [*keys]
    rows = np.zeros((len(keys), width), np.int64)
    for row, key in enumerate(keys):
        for axis, level in key:
            rows[row, axis] = level
    return rows
