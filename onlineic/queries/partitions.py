"""Which partition a hard query releases: a public function of the query and of what was released before.

Releasing all block counts of a product partition costs as much as about one number, whatever the number of
blocks: so a hard answer brings a whole cross table, over the query's attributes and over further ones as long
as the blocks stay few.

Proof: docs/theory/accuracy.md, 6.2; docs/theory/queries.md, 1.5.
"""

import itertools
import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.attributes import Attribute, Categorical
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    checked_integer,
    checked_real,
    set_fields,
)
from onlineic.queries.cuts import GAPPED, Cut, is_long
from onlineic.queries.query import GRID_BITS, Query, canonical
from onlineic.queries.reach import Reach
from onlineic.queries.tables import immutable, spread

AxisSets = frozenset[tuple[int, ...]]
Classes = dict[int, Cut]


def _given(cuts: Iterable[Cut | Any]) -> tuple[Any, ...]:
    return tuple(cuts)


@final
@attrs.frozen(eq=False, repr=False)
class Partition:
    """A public cover of the domain by disjoint blocks: the product of a partition of each of a few axes.

    Replacing one record moves it between two blocks: their counts change by 1 each, so the vector of
    block counts has L1 sensitivity 2 and squared L2 sensitivity 2, however many blocks there are.

    Args:
        axes: The axes that are cut, increasing; all others are summed over.
        cuts: For each of `axes`, how it is cut; or the block index of every code: 0, 1, ... without gaps.
    """

    domain: Domain
    axes: tuple[int, ...]
    cuts: tuple[Cut, ...] = attrs.field(converter=_given)
    grid_bits = 0

    def __attrs_post_init__(self) -> None:
        shape = self.domain.shape
        object.__setattr__(self, "axes", tuple(map(int, self.axes)))
        rising = list(self.axes) == sorted({*self.axes} & {*range(len(shape))})
        if not rising or len(self.cuts) != len(self.axes):
            raise InvalidQueryError(GAPPED)
        cuts = tuple(
            one if type(one) is Cut else Cut.of(one, is_long(self.domain.attributes[axis]))
            for axis, one in zip(self.axes, _given(self.cuts), strict=True)
        )
        if any(cut.size != shape[axis] for axis, cut in zip(self.axes, cuts, strict=True)):
            raise InvalidQueryError(GAPPED)
        object.__setattr__(self, "cuts", cuts)

    @property
    def classes(self) -> tuple[Ints, ...]:
        """The block index of every code, by axis: of attributes that are not long."""
        return tuple(cut.codes for cut in self.cuts)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of blocks along each axis."""
        return tuple(cut.parts for cut in self.cuts)

    @cached_property
    def blocks(self) -> int:
        """Number of blocks."""
        return math.prod(self.shape)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return ("partition", *self.axes, *itertools.chain.from_iterable(cut.key for cut in self.cuts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partition):
            return NotImplemented
        return self.key == other.key and self.domain == other.domain

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        names = ", ".join(self.domain.names[axis] for axis in self.axes)
        return f"Partition(({names}) into {' x '.join(map(str, self.shape))} blocks)"

    def measure(self, table: Floats) -> Floats:
        """Return the block sums, shape (blocks,), of a table over `axes`."""
        table = np.asarray(table, np.float64)
        for position, cut in enumerate(self.cuts):
            table = cut.sums(table, position)
        return table.flatten()  # a copy: classes that are the codes themselves leave the table as it is

    def block(self, index: int, grid_bits: int = GRID_BITS) -> Query:
        """Return the query "the fraction of records in this block"."""
        joint: dict[tuple[int, ...], tuple[int, int] | Floats] = {
            (axis,): cut.range_of(int(part))
            if cut.labels is None
            else (cut.labels == part).astype(np.float64)
            for axis, cut, part in zip(self.axes, self.cuts, np.unravel_index(index, self.shape), strict=True)
        }
        return canonical(self.domain, False, joint, grid_bits)


@final
@attrs.frozen
class PartitionRule:
    """Cut the query's attributes, then add attributes that bring new pairs while the blocks stay few.

    Where all pairs of three or more attributes are known, the query was hard for what pairs do not hold: then
    attributes are added that bring new triples, at no higher price.

    An attribute with at most `fine` codes, or without an order, is cut at every code; a longer one at
    `parts` public cut points of equal width, before its missing cell, and where the query's weight changes.

    Args:
        parts: Equal parts of a long ordered attribute.
        fine: Longest ordered attribute that is cut at every code.
        blocks: Up to how many blocks attributes are added to the query's own.
        most_blocks: Above, the partition is cut by the query alone; if that is still too fine, the hard query
            gets its number alone.
        most_spread: Largest norm of the query's centred block weights, with the same remedies and fewer
            additions: its answer from the table errs by so many times the noise of a block.
        reach: Which sets of attributes can be counted: others are not added.
    """

    parts: int = 8
    fine: int = 16
    blocks: int = 128
    most_blocks: int = 2**14
    most_spread: float = 3.0  # found by experiment: 1.5 to 4 do as well
    reach: Reach | None = attrs.field(default=None, metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        set_fields(
            self,
            parts=checked_integer("parts", self.parts, at_least=1),
            fine=checked_integer("fine", self.fine, at_least=1),
            blocks=checked_integer("blocks", self.blocks, at_least=1),
            most_blocks=checked_integer("most_blocks", self.most_blocks, at_least=1),
            most_spread=checked_real("most_spread", self.most_spread, above=0.0),
        )

    def partition(self, query: Query, measured: AxisSets = frozenset()) -> Partition | None:
        """Return the partition that a hard `query` releases, or None where it would be too fine.

        Args:
            query: Not constant.
            measured: Pairs and triples that stand together in an earlier partition (`sets_of`): a function of
                the transcript, fixed before the query is tested.
        """
        domain = query.domain
        changes: dict[int, Ints] = {
            axis: steps
            for factor in query.factors
            for axis, steps in zip(factor.axes, factor.changes(domain), strict=True)
        }
        public = {axis: self._classes(domain.attributes[axis], steps) for axis, steps in changes.items()}
        alone = {axis: _cut(domain.attributes[axis], steps) for axis, steps in changes.items()}
        for classes in (public, alone):
            if _blocks(classes) <= self.most_blocks:
                target = _product(domain, classes)
                weights = block_weights(query, target)
                norm = float(np.linalg.norm(weights - weights.mean()))
                if norm <= self.most_spread:  # m times the blocks have sqrt(m) times the norm
                    room = min(self.blocks, math.floor(target.blocks * (self.most_spread / norm) ** 2))
                    return _product(domain, self._extended(domain, classes, room, measured))
        return None

    def _extended(self, domain: Domain, classes: Classes, room: int, measured: AxisSets) -> Classes:
        """Return the classes and those of attributes that are added while the blocks find room."""
        known = all(pair in measured for pair in itertools.combinations(sorted(classes), 2))
        order = 3 if known and len(classes) >= 3 else 2
        while True:
            added = self._best_addition(domain, classes, room // _blocks(classes), order, measured)
            if added is None:
                return classes
            classes = {**classes, added: self._classes(domain.attributes[added], None)}

    def _best_addition(
        self, domain: Domain, classes: Classes, most_parts: int, order: int, measured: AxisSets
    ) -> int | None:
        """Return the axis with most unmeasured sets of this order per doubling of blocks, lowest on ties."""
        found: list[tuple[float, int, int]] = []
        for axis in {*range(len(domain.shape))} - {*classes}:
            parts = self.parts_of(domain.attributes[axis])
            if not 1 < parts <= most_parts:
                continue
            if self.reach is not None and not self.reach.holds(domain.shape, tuple(sorted({*classes, axis}))):
                continue
            others = itertools.combinations(classes, order - 1)
            new = sum(tuple(sorted((axis, *held))) not in measured for held in others)
            if new:
                found.append((new / math.log2(parts), -parts, -axis))
        return -max(found)[2] if found else None

    def table(self, domain: Domain, axes: tuple[int, ...]) -> Partition:
        """Return the coarse table of these attributes, as cut for no query in particular."""
        return _product(domain, {axis: self._classes(domain.attributes[axis], None) for axis in axes})

    def parts_of(self, attribute: Attribute) -> int:
        """Return how many parts an attribute has where no query cuts it."""
        fine = isinstance(attribute, Categorical) or attribute.size <= self.fine
        return attribute.size if fine else 1 + len(self._grid(attribute))

    def _classes(self, attribute: Attribute, changes: Ints | None) -> Cut:
        """Return how an attribute is cut; `changes` are the codes at which the weight changes."""
        if isinstance(attribute, Categorical) or attribute.size <= self.fine:
            return Cut.of(np.arange(attribute.size))
        grid = self._grid(attribute)
        return _cut(attribute, grid if changes is None else np.append(grid, changes))

    def _grid(self, attribute: Attribute) -> Ints:
        """Return where the parts of an ordered attribute begin, but for the first one.

        Both ends of a bin lie in one part. The missing cell, which is next to no value, is one by itself.
        """
        ends, values = getattr(attribute, "cells", 1), attribute.size - attribute.missing
        most = values // ends - 1
        starts = [ends * min(most, round((most + 1) * part / self.parts)) for part in range(1, self.parts)]
        return np.unique(np.array(starts + [values] * attribute.missing, np.int64))


def _cut(attribute: Attribute, starts: Ints) -> Cut:
    """Return the blocks of an attribute, a new one beginning at each of `starts`."""
    if is_long(attribute):
        return Cut.at(attribute.size, np.unique(np.append(0, starts)))
    cuts = np.zeros(attribute.size, np.int64)
    cuts[starts] = 1
    cuts[0] = 0
    return Cut.of(np.cumsum(cuts))


def _product(domain: Domain, classes: Classes) -> Partition:
    axes = tuple(sorted(classes))
    return Partition(domain, axes, tuple(classes[axis] for axis in axes))


def _blocks(classes: Classes) -> int:
    return math.prod(cut.parts for cut in classes.values())


def pairs_of(partition: Partition) -> AxisSets:
    """Return the pairs of axes that stand together in a partition."""
    return frozenset(itertools.combinations(partition.axes, 2))


def sets_of(partition: Partition) -> AxisSets:
    """Return the pairs and triples of axes that stand together in a partition."""
    return pairs_of(partition) | frozenset(itertools.combinations(partition.axes, 3))


def whole(domain: Domain) -> Partition:
    """Return the partition of one block: a table has one price, however many blocks are in it."""
    return Partition(domain, (), ())


def one_way(domain: Domain, axis: int) -> Partition:
    """Return the finest partition of one attribute: its one-way marginal."""
    return Partition(domain, (axis,), (np.arange(domain.shape[axis]),))


def block_weights(query: Query, partition: Partition) -> Floats:
    """Return the weight in [0, 1] of every block, (blocks,), for a partition cut by the query."""
    weights = np.ones(partition.shape)
    for factor in query.factors:
        places = [partition.axes.index(axis) for axis in factor.axes]
        # the first code of every block stands for all of it: the partition is cut where the weight changes
        first = factor.at(*[partition.cuts[place].firsts for place in places])
        weights = weights * spread(np.ldexp(first, -factor.bits), tuple(places), weights.ndim)
    return np.asarray(1.0 - weights if query.complement else weights).ravel()


@final
@attrs.frozen(eq=False)
class Measurement:
    """All that an update rule ever learns about the data: one released answer with its noise.

    Attributes:
        target: What was measured.
        values: Shape (m,). Noisy fractions of records, not clipped; m = 1 for a query, one value a block for
            a partition.
        scale: Standard deviation of the noise in each value, fraction of records.
    """

    target: Query | Partition
    values: Floats
    scale: float

    def __attrs_post_init__(self) -> None:
        try:
            values, scale = immutable(np.asarray(self.values, np.float64)), float(self.scale)
        except Exception:  # whatever the objects raise
            raise InvalidParameterError(
                "values and scale must be numbers, got others; write them as arrays and floats of numpy."
            ) from None
        set_fields(self, values=values, scale=scale)

    def against(self, hypothesis: Any) -> tuple[Query, float, float]:
        """Return (query, noisy value, guess); of a partition the block with the largest gap, lowest on ties.

        For rules that move along one query; the hypothesis must be `HasBlocks`.
        """
        if isinstance(self.target, Query):
            return self.target, float(self.values[0]), hypothesis.evaluate(self.target)
        guesses = hypothesis.blocks(self.target)
        index = int(np.argmax(np.abs(self.values - guesses)))
        return self.target.block(index), float(self.values[index]), float(guesses[index])


def derived(query: Query, measurement: Measurement) -> tuple[float, Floats]:
    """Return (value, weights): a query's value from the released blocks that it is cut into.

    With block weights w of mean m, and n public: value = sum w_b y_b + m (1 - sum y_b), the linear estimate
    of least variance. Its error is the sum of the blocks' noises times the returned weights w_b - m.
    """
    if isinstance(measurement.target, Query):
        return float(measurement.values[0]), np.ones(1)
    weights = block_weights(query, measurement.target)
    mean = float(weights.mean())
    value = float(weights @ measurement.values) + mean * (1.0 - float(measurement.values.sum()))
    return value, weights - mean


def pooled(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return each target once, as the mean by precision of all its releases, in the order of the first ones.

    The scales of a target that was released twice must be above 0.
    """
    if not isinstance(measurements, Iterable):
        raise InvalidQueryError(
            "measurements must be a list of Measurement, got another object; give a list."
        )
    found: dict[Query | Partition, list[Measurement]] = {}
    for one in measurements:
        if type(one) is not Measurement:
            raise InvalidQueryError(
                f"measurements must be a list of Measurement, got one of {type(one).__name__}; leave it out."
            )
        found.setdefault(one.target, []).append(one)  # by key a query and its complement would be one
    merged = []
    for alike in found.values():
        one = alike[0]
        if len(alike) > 1:
            precision = sum(other.scale**-2.0 for other in alike)
            values = sum(other.values * other.scale**-2.0 for other in alike) / precision
            one = Measurement(one.target, values, precision**-0.5)
        merged.append(one)
    return merged
