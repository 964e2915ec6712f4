"""What the noise of first tables says of all simple queries at once: estimates, and bounds for a family.

The tables that a session buys before its first query have noise of a known law and a design that is public
before it is drawn. A query that is a sum of blocks of one of them has a best linear unbiased estimate from
all of them, in closed form, and one event bounds the errors of a whole named family of such queries: so an
analyst may pick the worst of them. Nothing here sees data, and nothing here may read a table that was bought
later: which one was, and when, depends on the noise of the earlier ones.

Proof: docs/theory/hypothesis.md, 6.7, 6.7a, 6.7b; docs/theory/queries.md, 1.9.
"""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.domain.attributes import Categorical
from onlineic.domain.domain import Domain
from onlineic.known_noise.cells import SMALL_MARGINAL, CellNoise, log_products, log_sets
from onlineic.queries.cuts import Cut
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Factor, Query
from onlineic.queries.tables import contract, summed_area

MOST_AXES = 4  # of a query in the family, and of one that is bounded by its parts
MOST_STEPS = 128  # distinct weights of a query along one attribute: each is bracketed by itself
MOST_TABLE = 512  # cells of a cross table that are bounded one by one
MOST_BLOCKS = 2**16  # of one attribute: each interval is solved in time linear in them
MOST_HEADS = 16  # coefficients of an interval that count one by one, the others together
MOST_WEIGHTS = 16  # whose steps are remembered
MOST_KEPT = 2**16  # conditions whose bounds are remembered, of each kind
SMALL_FAMILIES = 0.25  # power of its size with which an attribute set's share of beta grows: by experiment
MOST_LABELS = 512  # blocks of all attributes of a key together, of which any sets are bounded
# of beta, for products of any sets and for all weights at once, where these families are more than the first
# one: their radii hardly depend on it, and the first one's grow by about one part in a hundred
SETS_SHARE, EVERY_SHARE = 0.1, 0.05
TILTS = np.linspace(0.5, 0.98, 25)  # of a sum of Laplace noises, over the largest coefficient
ROUNDED_UP, ROUNDED_OFF = 1.0 + 1e-9, 1e-14  # more than what floats lose in a radius and in an estimate

Axes = tuple[int, ...]
Interval = tuple[int, int]
Codes = Interval | bytes  # of one attribute: an interval of an ordered one or one label, or a set as a mask
Box = tuple[tuple[int, Codes], ...]  # (axis, codes), by axis: none of them all of its axis
ALL: Interval = (0, -1)  # every code
Bracket = tuple[float, float]
Spread = tuple[float, tuple[float, ...]]


@final
@attrs.frozen
class Family:
    """Public families of queries whose errors are bounded all at once, each by its own share of beta.

    Conjunctions over at most four attributes that stand together in one first table, each an interval of an
    ordered attribute that begins and ends where the table is cut, or a single label of a categorical one;
    products of any sets of such blocks; and, of a table of all cells with Laplace noise, all weights.

    Attributes:
        sets: The attribute sets of the conjunctions.
        size: Number of conjunctions: the union bound counts each.
        products: log2 of the number of products of any sets of blocks, of attributes that stand in one table,
            and, of a table of all cells, sets of cells of its small marginals; 0 if these are no family.
        cells: Of a table of all cells, where every query with weights in [0, 1] on them is bounded; else 0.
    """

    sets: tuple[tuple[str, ...], ...]
    size: int
    products: float = 0.0
    cells: int = 0

    def __str__(self) -> str:
        said = (
            f"{self.size:,} conjunctions of intervals and single labels over {len(self.sets):,} sets of "
            "attributes, as cut in the first tables"
        )
        if self.products:
            small = f", or sets of cells of a marginal of at most {SMALL_MARGINAL}"
            said += f"; 2^{self.products:.0f} products of any sets of labels, as cut there"
            said += small * (self.cells > 0)
        return said + (f"; every query with weights in [0, 1] on the {self.cells:,} cells" * (self.cells > 0))


@final
@attrs.frozen(eq=False)
class _Cut:
    """One attribute in blocks of neighbouring codes: where they begin, and between which a code lies."""

    cut: Cut
    ordered: bool

    @property
    def size(self) -> int:
        return self.cut.parts

    @cached_property
    def starts(self) -> list[int]:
        """First code of every block, and the number of codes."""
        return [*self.cut.firsts.tolist(), self.cut.size]

    def below(self, code: int) -> int:
        """Return the last block that begins at a code, or the end, or before."""
        return bisect_right(self.starts, code) - 1

    def above(self, code: int) -> int:
        """Return the first block that begins at a code, or the end, or after it."""
        return bisect_left(self.starts, code)

    def around(self, codes: Codes) -> tuple[Codes, Codes]:
        """Return the blocks inside of a condition and those that it touches."""
        if type(codes) is bytes:
            held = self.cut.sums(_mask(codes, self.cut.size).astype(np.float64), 0)
            return (held == np.diff(self.starts)).tobytes(), (held > 0).tobytes()
        first, last = codes
        return (self.above(first), self.below(last)), (self.below(first), self.above(last))

    def apart(self, codes: Codes, blocks: Codes) -> Bools:
        """Return the codes by which a condition and some blocks differ, as a mask."""
        mask: Bools = _mask(codes, self.cut.size) ^ _mask(blocks, self.size)[self.cut.codes]
        return mask

    @property
    def conditions(self) -> int:
        """Number of conditions in the family: intervals of blocks but the whole, or single blocks."""
        return self.size * (self.size + 1) // 2 - 1 if self.ordered else self.size


Key = tuple[tuple[int, int], ...]  # (axis, number of its cut), by axis


@final
@attrs.frozen(eq=False)
class _Level:
    """One level of a tree over the level below, as lists: who reads single blocks is faster by them.

    Attributes:
        parents: Of every block of the level below, the block that holds it.
        starts: Where the blocks begin, in blocks of the level below, and the end.
        passed, conductances: Of every block, the part that it lets through of what comes from below, and its
            conductance.
    """

    parents: list[int]
    starts: list[int]
    passed: list[float]
    conductances: list[float]


@final
class _Ladder:
    """One attribute in nested cuts, each block measured with noise of its level: a tree of least squares.

    The estimate with weights w on the finest blocks has the coefficients of currents in a tree of resistors:
    leaves at voltage w, resistance the precision of a level, no current at the root. So they lie in [-1, 1]
    for an interval, and two passes solve it.

    Args:
        cuts: Finest first, each of whole blocks of the one before.
        precisions: One over the variance parameter of a block, by level.
        pure: Whether the noise is Laplace, whose bounds ask for the largest coefficients.
    """

    def __init__(self, cuts: Sequence[_Cut], precisions: Sequence[float], pure: bool) -> None:
        self.cuts, self.precisions, self.pure = cuts, precisions, pure
        self._parents = [
            coarse.cut.of_codes(fine.starts[:-1]) for fine, coarse in itertools.pairwise(cuts)
        ]  # of every block of a level, its block of the next
        self._firsts = [np.flatnonzero(np.diff(parents, prepend=-1)) for parents in self._parents]
        self._conductances = [np.full(cuts[0].size, 1.0 / precisions[0])]
        self._passed: list[Floats] = []  # part of what comes from below that a level lets through
        for firsts, precision in zip(self._firsts, precisions[1:], strict=True):
            inside = np.add.reduceat(self._conductances[-1], firsts)
            self._passed.append(np.asarray(1.0 / (1.0 + precision * inside), np.float64))
            self._conductances.append(inside * self._passed[-1])
        self._heads: dict[Codes, Floats] = {}
        self._last: tuple[Codes, Floats, list[Floats]] | None = None

    @cached_property
    def _sums(self) -> list[list[float]]:
        """Of every level, the sums of the conductances before each block, and of all."""
        return [np.append(0.0, np.cumsum(held)).tolist() for held in self._conductances]

    @cached_property
    def _above(self) -> list[_Level]:
        """All levels but the finest."""
        return [
            _Level(parents.tolist(), [*firsts.tolist(), len(parents)], passed.tolist(), conductances.tolist())
            for parents, firsts, passed, conductances in zip(
                self._parents, self._firsts, self._passed, self._conductances[1:], strict=True
            )
        ]

    def _solved(self, weights: Floats, total: float) -> list[Floats]:
        """Return h with (sum of precision_l C_l'C_l) h = weights - constant and sum h = total, by level.

        Of one vector of weights on the finest blocks, or of a row each.
        """
        sums = [weights / self.precisions[0]]
        for firsts, passed in zip(self._firsts, self._passed, strict=True):
            sums.append(np.add.reduceat(sums[-1], firsts, axis=-1) * passed)
        constant = (sums[-1].sum(axis=-1, keepdims=True) - total) / float(self._conductances[-1].sum())
        voltage: Floats = np.broadcast_to(constant, sums[-1].shape)
        flows = [sums[-1] - voltage * self._conductances[-1]]
        for level in range(len(self._parents) - 1, -1, -1):
            voltage = (voltage + self.precisions[level + 1] * flows[0])[..., self._parents[level]]
            flows.insert(0, sums[level] - voltage * self._conductances[level])
        return flows

    def of_whole(self, codes: Codes) -> float:
        """Return how much of the whole, which is not measured, the estimate of a set counts as its own."""
        if type(codes) is bytes:
            return float(np.diff(self._of_whole)[_mask(codes, self.cuts[0].size)].sum())
        return float(self._of_whole[codes[1]] - self._of_whole[codes[0]])

    @cached_property
    def _of_whole(self) -> Floats:
        """The same of the finest blocks before each, and of all."""
        return np.append(0.0, np.cumsum(self._solved(np.zeros(self.cuts[0].size), 1.0)[0]))

    def fit(self, measured: Sequence[Floats]) -> Floats:
        """Return the estimates of the finest blocks, of total 1, from the measured blocks of every level."""
        rhs = self.precisions[-1] * measured[-1]
        for level in range(len(self._parents) - 1, -1, -1):
            rhs = rhs[self._parents[level]] + self.precisions[level] * measured[level]
        return self._solved(rhs, 1.0)[0]

    def spread(self, codes: Codes) -> Spread:
        """Return (variance parameter, largest coefficient of every level) of a set of the finest blocks.

        Of Gaussian noise the second is empty: no bound asks for it.
        """
        if not self.pure and type(codes) is not bytes:
            return self._variance(*codes), ()
        weights, flows = self._flows(codes)
        variance = max(0.0, float((flows[0] * weights).sum()))
        if not self.pure:
            return variance, ()
        largest = zip(flows, self.precisions, strict=True)
        return variance, tuple([float(np.abs(flow).max()) * precision for flow, precision in largest])

    def _flows(self, codes: Codes) -> tuple[Floats, list[Floats]]:
        """Return a set or an interval as weights, and `_solved` of it: the last is kept for who asks next."""
        last = self._last
        if last is None or last[0] != codes:
            weights = _weights(codes, self.cuts[0].size)
            last = self._last = codes, weights, self._solved(weights, 0.0)
        return last[1:]

    def _variance(self, first: int, last: int) -> float:
        """Return the variance parameter of an interval of the finest blocks, in time linear in the levels.

        Blocks inside of the interval have the sums of `_solved` that are their conductances, and those
        outside have none: on each level only the two at its ends are worked out. What flows out of a block
        is what flows out of its parts, so that the blocks between these two are summed without theirs.
        """
        sums, left, right = self._sums[0], first, last - 1
        held = sums[left + 1] - sums[left], sums[right + 1] - sums[right]
        path = [(left, right, held)]
        for above, sums in zip(self._above, self._sums, strict=False):
            parent, other = above.parents[left], above.parents[right]
            if parent == other:
                both = held[0] if left == right else held[0] + held[1] + sums[right] - sums[left + 1]
                held = both * above.passed[parent], 0.0
            else:
                one = held[0] + sums[above.starts[parent + 1]] - sums[left + 1]
                two = held[1] + sums[right] - sums[above.starts[other]]
                held = one * above.passed[parent], two * above.passed[other]
            left, right = parent, other
            path.append((left, right, held))
        sums = self._sums[-1]
        between = sums[right] - sums[left + 1] if left < right else 0.0
        voltage = other_voltage = (held[0] + held[1] * (left < right) + between) / sums[-1]
        found = between * (1.0 - voltage)
        for level in range(len(self._above) - 1, -1, -1):
            above, sums, precision = self._above[level], self._sums[level], self.precisions[level + 1]
            (left, right, _), (parent, other, held) = path[level], path[level + 1]
            voltage += precision * (held[0] - voltage * above.conductances[parent])
            if parent == other:
                other_voltage = voltage
                found += (sums[right] - sums[left + 1]) * (1.0 - voltage) if left < right else 0.0
            else:
                other_voltage += precision * (held[1] - other_voltage * above.conductances[other])
                found += (sums[above.starts[parent + 1]] - sums[left + 1]) * (1.0 - voltage)
                found += (sums[right] - sums[above.starts[other]]) * (1.0 - other_voltage)
        _, _, held = path[0]
        found += held[0] * (1.0 - voltage) + held[1] * (1.0 - other_voltage) * (last - first > 1)
        return max(0.0, found)

    def heads(self, codes: Codes) -> Floats:
        """Return the largest |c| s of the set's coefficients, falling, each block's noise as one."""
        known = self._heads.get(codes)
        if known is None:
            if len(self._heads) >= MOST_KEPT:
                self._heads.clear()
            _, flows = self._flows(codes)
            counts = np.concatenate(
                [
                    np.abs(flow) * math.sqrt(precision)
                    for flow, precision in zip(flows, self.precisions, strict=True)
                ]
            )
            if len(counts) > MOST_HEADS:
                counts = np.partition(counts, len(counts) - MOST_HEADS)[-MOST_HEADS:]
            known = self._heads[codes] = np.sort(counts)[::-1]
        return known


@final
@attrs.frozen(eq=False)
class _Table:
    """One of the tables: its place among the targets, how it is cut, the spread of its noise, in records."""

    place: int
    key: Key
    spread: float
    joint: bool = True  # whether all of its cuts are in the trees of their attributes


@final
@attrs.frozen(eq=False)
class _Source:
    """A table as a source of the estimates over one key: for the largest coefficient of Laplace noise."""

    spread: float
    shares: tuple[tuple[tuple[bool, ...], float], ...]  # (which of the key, weight of the table)
    levels: tuple[tuple[int, int, float], ...]  # (place in the key, level, part of its precision)


@final
class TableDesign:
    """Which tables are released together, with what noise: all that their bounds depend on, before any noise.

    The blocks of a table over the axes T with k_a parts of axis a split into one component for each subset S
    of T: sums over the other axes, centred along those of S. Components of independent equal noise are
    uncorrelated, so each is estimated by the weighted mean of all tables that hold it, with weights one over
    its variance, and the components of one attribute from all its cuts by a tree of least squares.

    Xiao, Ding, Winslett & Kifer (2023), ResidualPlanner, for the components; Hay, Rastogi, Miklau & Suciu
    (2010) for the tree.

    Args:
        spreads: Variance parameter's root of each, records: sigma of a discrete Gaussian, or a discrete
            Laplace scale.
        pure: Whether the noise is Laplace.
    """

    def __init__(self, targets: Sequence[Partition], spreads: Sequence[float], pure: bool) -> None:
        self.domain: Domain = targets[0].domain
        self.pure = pure
        self.cuts: list[_Cut] = []
        numbers: dict[tuple[int, tuple[Any, ...]], int] = {}
        tables: list[_Table] = []
        for place, (target, spread) in enumerate(zip(targets, spreads, strict=True)):
            held = [(axis, cut) for axis, cut in zip(target.axes, target.cuts, strict=True) if cut.parts > 1]
            # blocks of codes that are no neighbours are in no interval; and each takes its time
            apart = any(not cut.in_order or cut.parts > MOST_BLOCKS for _, cut in held)
            if apart or not held:
                continue
            for axis, cut in held:
                if (axis, cut.key) not in numbers:
                    numbers[axis, cut.key] = len(self.cuts)
                    ordered = not isinstance(self.domain.attributes[axis], Categorical)
                    self.cuts.append(_Cut(cut, ordered))
            key = tuple((axis, numbers[axis, cut.key]) for axis, cut in held)
            tables.append(_Table(place, key, float(spread)))
        self._ladders(tables)
        # one with a cut outside of its attribute's tree speaks of its other attributes alone
        self.tables = [
            attrs.evolve(table, joint=all(cut in self.level for cut in table.key)) for table in tables
        ]
        whole = [one for one in self.tables if pure and self.blocks(one.key) == self.domain.size]
        self.whole = min(whole, key=lambda one: one.spread, default=None)  # a table of all cells
        self._keys()

    def _ladders(self, tables: Sequence["_Table"]) -> None:
        """Make the tree of every attribute: its finest cut and those of whole blocks of the one before."""
        precisions: dict[tuple[int, int], float] = {}
        for table in tables:
            for axis, number in table.key:
                known = self.precision_in(table, ((axis, number),))
                precisions[axis, number] = precisions.get((axis, number), 0.0) + known
        self.ladders: dict[int, _Ladder] = {}
        self.level: dict[tuple[int, int], int] = {}  # of a cut in the tree of its axis
        for axis in sorted({axis for axis, _ in precisions}):
            own = sorted((number for other, number in precisions if other == axis), key=self._fineness)
            chain = own[:1]
            for number in own[1:]:
                starts, finer = self.cuts[number].starts, self.cuts[chain[-1]].starts
                if set(starts) <= set(finer):
                    chain.append(number)
            self.level |= {(axis, number): level for level, number in enumerate(chain)}
            self.ladders[axis] = _Ladder(
                [self.cuts[number] for number in chain],
                [precisions[axis, number] for number in chain],
                self.pure,
            )

    def _fineness(self, number: int) -> tuple[int, int]:
        return -self.cuts[number].size, number

    def blocks(self, key: Key) -> int:
        """Return how many blocks the cuts of a key make together."""
        return math.prod(self.cuts[number].size for _, number in key)

    def precision_in(self, table: "_Table", held: Key) -> float:
        """Return what a table knows of a component over some of its cuts: one over its variance."""
        return self.blocks(held) / self.blocks(table.key) / table.spread**2

    def precision_over(self, axes: Axes) -> float:
        """Return what tables over all of these attributes know of their counts: 0 where there is none."""
        known = 0.0
        if not self._touched.issuperset(axes):
            return known
        for table, own in zip(self.tables, self._axes, strict=True):
            if own.issuperset(axes):
                held = tuple(part for part in table.key if part[0] in axes)
                known += self.precision_in(table, held)
        return known

    @cached_property
    def _axes(self) -> list[frozenset[int]]:
        """The attributes of every table."""
        return [frozenset(axis for axis, _ in table.key) for table in self.tables]

    @cached_property
    def _touched(self) -> frozenset[int]:
        """The attributes of some table."""
        return frozenset().union(*self._axes)

    def _keys(self) -> None:
        """List what the tables hold together: sets of at most four cuts, with the size of each family."""
        self.precision: dict[Key, float] = {}  # of the component over two attributes or more
        for table in self.tables:
            for held in _subsets(table.key) if table.joint else ():
                if len(held) > 1:
                    known = self.precision_in(table, held)
                    self.precision[held] = self.precision.get(held, 0.0) + known
        self.sizes: dict[Key, int] = {
            ((axis, number),): self.cuts[number].conditions
            for (axis, number), level in self.level.items()
            if level == 0
        }
        for held in self.precision:
            self.sizes[held] = math.prod(self.cuts[number].conditions for _, number in held)
        self.by_axes: dict[Axes, list[Key]] = {}
        for key in self.sizes:
            self.by_axes.setdefault(tuple(axis for axis, _ in key), []).append(key)
        # of every axis, the finest first: its cuts, and those that stand beside another axis's
        self.joint_cuts: dict[int, list[int]] = {}
        self.shared_cuts: dict[int, list[int]] = {}
        beside = {cut for key in self.precision for cut in key}
        for axis, number in sorted(self.level, key=self.level.__getitem__):
            self.joint_cuts.setdefault(axis, []).append(number)
            if (axis, number) in beside:
                self.shared_cuts.setdefault(axis, []).append(number)
        self._weights = sum(float(size) ** SMALL_FAMILIES for size in self.sizes.values())
        # of products of sets over the key, ln of their number; of all cells they are counted as a whole
        self.products: dict[Key, float] = {}
        for held in self.sizes if self.whole is None else ():
            blocks = tuple(self.cuts[number].size for _, number in held)
            if max(blocks) > 2 and sum(blocks) <= MOST_LABELS:
                self.products[held] = log_products(blocks)

    @cached_property
    def family(self) -> Family:
        """The queries whose errors are bounded together."""
        names = self.domain.names
        sets = tuple(tuple(names[axis] for axis in axes) for axes in sorted(self.by_axes))
        _, products, every = self.shares
        logs = [*self.products.values()] if self.whole is None else [log_sets(self.domain.shape)]
        count = float(np.logaddexp.reduce(logs)) / math.log(2.0) if products else 0.0
        return Family(sets, sum(self.sizes.values()), count, self.domain.size if every else 0)

    @cached_property
    def shares(self) -> tuple[float, float, float]:
        """Of beta: for the conjunctions, for products of any sets, for all weights; they sum to 1."""
        sets, every = SETS_SHARE, EVERY_SHARE
        if self.whole is None:
            sets, every = SETS_SHARE * bool(self.products), 0.0
        elif len(self.whole.key) == 1:  # sets of two codes are conjunctions, those of very many hopeless
            sets *= 2 < self.domain.size <= MOST_LABELS
            every *= self.domain.size > 2
        return 1.0 - sets - every, sets, every

    def nats(self, key: Key, beta: float) -> float:
        """Return ln(2/share) for the share of beta that one conjunction over the key gets in the union."""
        size = float(self.sizes[key])
        return math.log(2.0 / beta) + math.log(size * self._weights) - SMALL_FAMILIES * math.log(size)

    def set_nats(self, key: Key, beta: float) -> float | None:
        """Return the same of one product of sets over the key, or None: all keys have equal shares."""
        if key not in self.products:
            return None
        return math.log(2.0 / beta) + math.log(len(self.products)) + self.products[key]

    def sources(self, key: Key) -> tuple[_Source, ...]:
        """Return what every table puts into the estimates over the key."""
        found = []
        for table in self.tables:
            shares, levels = [], []
            for held in _subsets(key) if table.joint else ():
                if len(held) > 1 and set(held) <= set(table.key):
                    part = self.precision_in(table, held) / self.precision[held]
                    shares.append((tuple(cut in held for cut in key), part))
            for place, (axis, _) in enumerate(key):
                for cut in table.key:
                    if cut[0] == axis and cut in self.level:
                        level = self.level[cut]
                        part = self.precision_in(table, (cut,)) / self.ladders[axis].precisions[level]
                        levels.append((place, level, part))
            if shares or levels:
                found.append(_Source(table.spread, tuple(shares), tuple(levels)))
        return tuple(found)


def _subsets(key: Key) -> Iterator[Key]:
    for count in range(1, min(len(key), MOST_AXES) + 1):
        yield from itertools.combinations(key, count)


@final
@attrs.frozen(eq=False)
class _Over:
    """What bounds every query over one key."""

    key: Key
    numbers: tuple[int, ...]  # of its cuts
    nats: float
    set_nats: float | None  # of products of any sets
    parts: tuple[tuple[tuple[int, ...], tuple[int, ...], float], ...]  # (places, others, variance parameter)
    sources: tuple[_Source, ...]
    lost: float  # by floats, in sums of so many blocks


@final
@attrs.define(eq=False)  # these are never written to; frozen they would take three times as long to make
class _Part:
    """Precomputed sums of one condition, reused by every conjunction that contains it."""

    blocks: Codes
    mean: float
    mean_square: float
    square: float  # of the part with its mean taken off
    finest: Codes  # in blocks of the finest cut of the attribute
    whole: float  # what the estimate over the attribute alone counts of all records; `mean` where n is public
    spread: float
    largest: tuple[float, ...]  # coefficient of every level


@final
@attrs.define(eq=False)
class _Side:
    """A condition on one attribute as one cut has it: the blocks inside of it, and those that it touches.

    `inner` is None where no block is inside, `outer` where all are touched. `within` and `around` are the
    most that the condition and each of the two differ by; inf where they are not needed.
    """

    exact: bool
    inner: _Part | None
    outer: _Part | None
    within: float = math.inf
    around: float = math.inf


@final
@attrs.define(eq=False)
class _End:
    """A code at which conditions begin or end, as one cut has it.

    `below` is the last block that begins there or before, `above` the first that begins there or after;
    `before` and `behind` are the most that lies between it and their beginnings.
    """

    below: int
    above: int
    before: float
    behind: float


@final
@attrs.define(eq=False)
class _Said:
    """What the tables that hold all attributes of a box say of it."""

    low: float
    high: float
    # (deviation of its noise, how much of n it counts, estimate), where a table is cut like it
    points: tuple[tuple[float, float, float], ...] = ()


@final
@attrs.frozen(eq=False)
class _Subset:
    """Some attributes of an attribute set, with the subsets that its bracket follows from, by number."""

    places: tuple[int, ...]
    chosen: Callable[[Box], Box]  # of a box over all of them, the part over these
    fewer: tuple[int, ...]  # with one attribute left out
    pairs: tuple[tuple[int, int, int], ...]  # with one left out, another, both
    singles: tuple[int, ...]


@lru_cache(MOST_AXES + 1)
def _subsets_of(attributes: int) -> tuple[_Subset, ...]:
    """Return every subset of so many but the empty one, which has the number 0, smaller ones first."""
    held = [
        places
        for count in range(attributes + 1)
        for places in itertools.combinations(range(attributes), count)
    ]
    number = {places: place for place, places in enumerate(held)}

    def left(places: tuple[int, ...], *out: int) -> int:
        return number[tuple(place for place in places if place not in out)]

    return tuple(
        _Subset(
            places,
            itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1)),
            tuple(left(places, one) for one in places),
            tuple(
                (left(places, one), left(places, other), left(places, one, other))
                for one, other in itertools.combinations(places, 2)
            ),
            tuple(number[place,] for place in places),
        )
        for places in held[1:]
    )


@final
class _Reader:
    """Reads queries as conditions that the families know; the last one is remembered.

    A query is asked about for its bracket and its point, and of every instalment.

    Args:
        sets: Whether any sets of labels are bounded.
        slack: How far n may be from the number of records, fraction of n.
    """

    def __init__(self, domain: Domain, sets: bool, slack: float) -> None:
        self._shape, self._domain, self.sets, self._slack = domain.shape, domain, sets, slack
        self._simples = tuple(not isinstance(one, Categorical) for one in domain.attributes)
        self._last: tuple[Query, tuple[Box, bool, bool]] | None = None
        self._steps: dict[tuple[Any, ...], tuple[list[tuple[float, Codes]] | None]] = {}  # of weights

    def parsed(self, query: Query) -> tuple[Box, bool, bool]:
        """Return (conditions that the families know, whether there are others, whether it is turned)."""
        last = self._last
        if last is None or last[0] is not query:
            self._last = last = query, self._parsed(query)
        return last[1]

    def _parsed(self, query: Query) -> tuple[Box, bool, bool]:
        if query.box is None:
            known = [self.condition(factor) for factor in query.factors]
        else:
            ends = list(zip(query.axes, *query.box, strict=True))
            if len(ends) == 1:
                ((axis, low, high),) = ends
                if (
                    self._slack
                    and query.complement
                    and high == self._shape[axis]
                    and self.simple(axis, 0, low)
                ):
                    # from the first code on: the condition itself, not all records but those behind it
                    return ((axis, (0, low)),), False, False
                if (low, high) == (1, self._shape[axis]) and not self.simple(axis, low, high):
                    # canonical form writes the first label so
                    return ((axis, (0, 1)),), False, not query.complement
            known = [self._interval(*one) for one in ends]
        box = tuple([one for one in known if one is not None])
        return box, len(box) < len(known), query.complement

    def condition(self, factor: Factor) -> tuple[int, Codes] | None:
        """Return a condition as the families know it, or None: weights, and sets where none are bounded."""
        if len(factor.axes) > 1 or factor.bits:
            return None
        axis = factor.axes[0]
        if factor.table is None:
            return self._interval(axis, factor.low, factor.high)
        known = self.codes(axis, factor.table > 0)
        return None if known is None else (axis, known)

    def _interval(self, axis: int, low: int, high: int) -> tuple[int, Codes] | None:
        if self.simple(axis, low, high):
            return axis, (low, high)
        known = self.codes(axis, _mask((low, high), self._shape[axis]))
        return None if known is None else (axis, known)

    def codes(self, axis: int, mask: Bools) -> Codes | None:
        """Return some codes of an attribute, not none, as the families know them; None if they do not."""
        held = np.flatnonzero(mask)
        first, last = int(held[0]), int(held[-1]) + 1
        if last - first == len(mask) == len(held):
            return ALL
        if last - first == len(held) and self.simple(axis, first, last):
            return first, last
        return mask.tobytes() if self.sets else None

    def steps(self, factor: Factor) -> list[tuple[float, Codes]] | None:
        """Return the rises of weights along one attribute, each with the codes that reach it.

        Those of the last weights are kept: all groups of a mean have the same few.
        """
        known = self._steps.get(key := factor.key)
        if known is None:  # another thread may clear what is kept at any time
            if len(self._steps) >= MOST_WEIGHTS:
                self._steps.clear()
            known = self._steps[key] = (self._steps_of(factor),)
        return known[0]

    def _steps_of(self, factor: Factor) -> list[tuple[float, Codes]] | None:
        axis, table = factor.axes[0], factor.weights(self._domain)
        values = np.unique(table[table > 0])
        if len(values) > MOST_STEPS:
            return None
        rises = [math.ldexp(rise, -factor.bits) for rise in np.diff(values, prepend=0).tolist()]
        held = [self.codes(axis, table >= value) for value in values]
        known = [codes for codes in held if codes is not None]
        return [*zip(rises, known, strict=True)] if len(known) == len(held) else None

    def simple(self, axis: int, low: int, high: int) -> bool:
        """Whether the family knows such conditions: intervals of an ordered attribute, single labels."""
        return self._simples[axis] or high - low == 1


@final
class Estimates:
    """Brackets that hold for all queries of the design's families at once, with probability 1 - beta.

    docs/theory/hypothesis.md, 6.7 proves the bounds, and why tables that were bought later must not enter.

    Args:
        values: The released blocks of every target, noisy fractions of records.
        n: Number of records.
        beta: Probability that any bracket fails.
        slack, deviation: How far n may be from the number of records, and the standard deviation of that,
            fractions of n: 0 where n is public. Everything counts as fractions of n (theory 1.9).
        reader: Of this domain and slack, that others read with too.
    """

    def __init__(
        self,
        design: TableDesign,
        values: Sequence[Floats],
        n: int,
        beta: float,
        slack: float = 0.0,
        deviation: float = 0.0,
        reader: "_Reader | None" = None,
    ) -> None:
        self._design, self._n = design, int(n)  # Python numbers: narrow ones wrap
        # all records are this much of n, at least and at most
        self._slack, self._deviation, self._least, self._most_of_n = (
            slack,
            deviation,
            1.0 - slack,
            1.0 + slack,
        )
        self._beta, self._sets_beta, every = (float(beta) * share for share in design.shares)
        self._cells: CellNoise | None = None
        if design.whole is not None and every > 0.0:
            cells, scale = values[design.whole.place], design.whole.spread
            self._cells = CellNoise(design.domain, cells, scale, self._n, self._sets_beta, every)
        self._tables = [
            (table, values[table.place].reshape([design.cuts[number].size for _, number in table.key]))
            for table in design.tables
        ]
        self.reader = _Reader(design.domain, bool(design.products), slack) if reader is None else reader
        self._over: dict[Axes, tuple[_Over, ...]] = {}
        self._parted: dict[Axes, tuple[tuple[_Subset, tuple[_Over, ...]], ...]] = {}
        self._sides: dict[tuple[int, Codes, bool], dict[int, _Side]] = {}
        self._areas: dict[_Over, tuple[memoryview, list[int]]] = {}
        self._parts: dict[tuple[int, Codes], _Part] = {}
        self._ends: dict[tuple[int, int], _End] = {}
        self._sums: dict[Key, Floats] = {}
        self._components: dict[Key, Floats] = {}
        self._margins: dict[tuple[int, Key], Floats] = {}
        self._fitted: dict[int, Floats] = {}
        self._placed: dict[int, list[int]] = {}
        self._estimates: dict[Box, _Said] = {}
        self._mixtures: dict[tuple[Any, ...], tuple[Bracket | None]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_areas": {}}  # views are not copied, and made again

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace."""
        return self._design.pure

    def precision_over(self, axes: Axes) -> float:
        """Return what its tables know of counts over these attributes, whatever their noise was."""
        return self._design.precision_over(axes)

    def touches(self, axes: Axes) -> bool:
        """Return whether one of its tables is over one of these attributes."""
        return any(axis in self._design.joint_cuts for axis in axes)

    def bracket(self, query: Query) -> Bracket | None:
        """Return (low, high) that holds the exact fraction, or None where nothing follows.

        A query that is cut elsewhere, or over more attributes than a table holds, is bracketed by those
        inside and around it; conditions of other kinds are left out, which bounds it from above. Weights
        along one attribute are mixtures of sets, along an ordered one of intervals where they rise, fall, or
        rise and then fall. What is no conjunction is bracketed by a table of all cells as well.
        """
        found, whole = None if query.box is not None else self._mixture(query), False
        if found is None:
            box, opaque, complement = self.reader.parsed(query)
            if 0 < len(box) <= MOST_AXES:
                low, high = self._boxed(box)
                found, whole = (0.0 if opaque else low, high), not opaque
        else:
            complement, whole = query.complement, True
        if found is not None and complement:
            found = (self._least - found[1], self._most_of_n - found[0])
        return self._narrowed(found, None if whole else query)

    def _narrowed(self, found: Bracket | None, query: Query | None) -> Bracket | None:
        """Return what is left of a bracket inside [0, 1], and inside that of all cells of a query, if any."""
        all_cells = None if self._cells is None or query is None else self._cells.bracket(query)
        if all_cells is not None:
            low, high = found or (0.0, self._most_of_n)
            found = max(low, all_cells[0] - self._slack), min(high, all_cells[1] + self._slack)
        return None if found is None else _checked(*found, self._most_of_n)

    def _mixture(self, query: Query) -> Bracket | None:
        """Return the bracket of a product of conditions with weights along one attribute, or None.

        Weights are the sum, over their distinct values, of the rise to that value times the condition that
        they reach it. Where each such condition is known, all are bracketed in one event.
        """
        weighted = [factor for factor in query.factors if factor.bits]
        if len(weighted) != 1 or len(weighted[0].axes) > 1 or len(query.factors) > MOST_AXES:
            return None
        known = self._mixtures.get(query.key)
        if known is None:  # which a mean by group asks for three times
            if len(self._mixtures) >= MOST_KEPT:
                self._mixtures.clear()
            known = self._mixtures[query.key] = (self._mixed(query, weighted[0]),)
        return known[0]

    def _mixed(self, query: Query, factor: Factor) -> Bracket | None:
        others = [self.reader.condition(one) for one in query.factors if one is not factor]
        steps = self.reader.steps(factor)
        if None in others or steps is None:
            return None
        (axis,), low, high = factor.axes, 0.0, 0.0
        rest = [part for part in others if part is not None and part[1] != ALL]
        before, behind = [one for one in rest if one[0] < axis], [one for one in rest if one[0] > axis]
        for rise, held in steps:
            least, most = self._boxed(tuple(rest) if held == ALL else (*before, (axis, held), *behind))
            low, high = low + rise * max(0.0, least), high + rise * min(self._most_of_n, most)
        return low - ROUNDED_OFF, high + ROUNDED_OFF

    def point(self, query: Query) -> tuple[float, float] | None:
        """Return (estimate, standard error) of a query of the families, or None of any other.

        The error is known for a query that was chosen before the tables were released, and for no other: of
        many, some estimates err by far more, and who looks can tell which.
        """
        found = self._best(query)
        if found is None:
            return None
        value, error, whole, complement = found
        # one minus a count rests on n
        return value, math.hypot(error, self._deviation * math.hypot(whole, complement))

    def own_noise(self, query: Query) -> tuple[float, float, float] | None:
        """Return (estimate, deviation of its own noise, how much of n it counts at most), or None.

        What n is off by was drawn before: given that, the estimate is off by as many times so much.
        """
        found = self._best(query)
        return None if found is None else (found[0], found[1], found[2] + found[3])

    def _best(self, query: Query) -> tuple[float, float, float, bool] | None:
        """Return (estimate, deviation, how much of n the estimate of the count has, whether it is turned)."""
        box, opaque, complement = self.reader.parsed(query)
        overs = () if opaque or not box else self._overs(tuple([axis for axis, _ in box]))
        points = self._estimated(box, overs).points if overs else ()
        if not points:
            found = None if self._cells is None else self._cells.point(query)
            return None if found is None else (*found, 1.0, False)
        error, whole, value = min(points, key=lambda one: math.hypot(one[0], self._deviation * one[1]))
        return 1.0 - value if complement else value, error, whole, complement

    def table_brackets(self, question: BoundMarginal) -> tuple[Floats, Floats] | None:
        """Return (lows, highs) of the cells of a cross table, or None where one of them has no bracket."""
        if question.cells.size > MOST_TABLE:
            return None
        partition = question.partition
        lows, highs = np.zeros(question.cells.shape), np.zeros(question.cells.shape)
        for cell in np.ndindex(*question.cells.shape):
            block = int(question.cells[cell])
            if block < 0:
                continue
            box, opaque = [], False
            for axis, cut, label in zip(
                partition.axes, partition.cuts, np.unravel_index(block, partition.shape), strict=True
            ):
                if cut.labels is None:  # a range of a long attribute, one part of several
                    held: Codes | None = cut.range_of(int(label))
                else:
                    held = self.reader.codes(axis, cut.labels == label)
                if held is None:
                    opaque = True
                elif held != ALL:
                    box.append((axis, held))
            found = None
            if len(box) <= MOST_AXES and (box or not opaque):  # a block without a condition holds everybody
                low, high = self._boxed(tuple(box))
                found = (0.0 if opaque else low, high)
            opaque = self._cells is not None and (opaque or found is None)
            found = self._narrowed(found, partition.block(block) if opaque else None)
            if found is None:
                return None
            lows[cell], highs[cell] = found
        return lows, highs

    def _boxed(self, box: Box) -> Bracket:
        """Return the bracket of a box: of its estimate, and of what its parts leave."""
        parted = self._parted_over(tuple([axis for axis, _ in box]))
        if not parted:
            return (0.0, self._most_of_n) if box else (self._least, self._most_of_n)
        lows, highs = [self._least], [self._most_of_n]
        for subset, overs in parted:
            low, high = 0.0, self._most_of_n
            if overs:
                said = self._estimated(subset.chosen(box), overs)
                low, high = said.low, said.high
            for fewer in subset.fewer:
                if highs[fewer] < high:
                    high = highs[fewer]
            for one, other, both in subset.pairs:
                least = lows[one] + lows[other] - highs[both]
                if least > low:
                    low = least
            if len(subset.places) == 3:  # all three, or none: 1 - sum of ones + sum of pairs - f >= 0
                (a, b, c), (x, y, z) = subset.fewer, subset.singles
                most = self._most_of_n + (highs[a] + highs[b] + highs[c]) - (lows[x] + lows[y] + lows[z])
                if most < high:
                    high = most
            lows.append(low)
            highs.append(high)
        return lows[-1], highs[-1]

    def _parted_over(self, axes: Axes) -> tuple[tuple[_Subset, tuple[_Over, ...]], ...]:
        """Return the subsets of some attributes with what bounds each; nothing where no table holds any."""
        known = self._parted.get(axes)
        if known is None:
            subsets = _subsets_of(len(axes))
            found = [(one, self._overs(tuple([axes[place] for place in one.places]))) for one in subsets]
            known = self._parted[axes] = tuple(found) if any(overs for _, overs in found) else ()
        return known

    def _estimated(self, box: Box, overs: tuple[_Over, ...]) -> _Said:
        """Return what the tables that hold all axes say of a box, cut inside and around it."""
        known = self._estimates.get(box)
        if known is None:
            if len(self._estimates) >= MOST_KEPT:
                self._estimates.clear()
            known = self._estimates[box] = self._estimate(box, overs)
        return known

    def _estimate(self, box: Box, overs: tuple[_Over, ...]) -> _Said:
        low, high, points = 0.0, self._most_of_n, []
        sets = bytes in [type(codes) for _, codes in box]
        conditions = [self._sides_of(axis, codes, len(box) > 1) for axis, codes in box]
        for over in overs:
            nats = over.set_nats if sets else over.nats
            inner: list[_Part] = []
            outer: list[_Part] = []
            exact, within, around = True, 0.0, 0.0
            for held, number in zip(conditions, over.numbers, strict=True):
                side = held[number]
                if side.inner is not None:
                    inner.append(side.inner)
                if side.outer is not None:
                    outer.append(side.outer)
                exact = exact and side.exact
                within += side.within
                around += side.around
            # a radius is worked out only where it can matter
            if len(inner) == len(box):
                value = self._sum(over, inner)
                if exact:
                    radius, variance = self._radius(over, inner, nats or over.nats)
                    error = math.sqrt(variance * (2.0 if self._design.pure else 1.0)) / self._n
                    points.append((error, _of_whole(inner) if self._slack else 0.0, value))
                    if nats is not None:
                        low, high = max(low, value - radius), min(high, value + radius)
                elif nats is not None and (value > low or value + within < high):
                    radius, _ = self._radius(over, inner, nats)
                    low, high = max(low, value - radius), min(high, value + radius + within)
            if exact or nats is None:
                continue
            if len(outer) == len(box):
                value = self._sum(over, outer)
                if value < high or value - around > low:
                    radius, _ = self._radius(over, outer, nats)
                    low, high = max(low, value - radius - around), min(high, value + radius)
        return _Said(low, high, tuple(points))

    def _sides_of(self, axis: int, codes: Codes, joint: bool) -> dict[int, _Side]:
        """Return a condition as the cuts that stand beside others have it, or as the finest one has it."""
        known = self._sides.get((axis, codes, joint))
        if known is None:
            if len(self._sides) >= MOST_KEPT:
                self._sides.clear()
            numbers = self._design.shared_cuts[axis] if joint else self._design.joint_cuts[axis][:1]
            known = {number: self._side((axis, number), codes, joint) for number in numbers}
            self._sides[axis, codes, joint] = known
        return known

    def _side(self, key: tuple[int, int], codes: Codes, joint: bool) -> _Side:
        cut = self._design.cuts[key[1]]
        interval = joint and cut.ordered and type(codes) is not bytes
        if interval:
            first, last = self._end(key, codes[0]), self._end(key, codes[1])
            blocks: Codes = first.above, last.below
            touched: Codes = first.below, last.above
        else:
            blocks, touched = cut.around(codes)
        inner = self._part(key, blocks) if _count(blocks) else None
        if blocks == touched:
            return _Side(True, inner, inner, 0.0, 0.0)
        outer = self._part(key, touched) if _count(touched) < cut.size else None
        if not joint:
            return _Side(False, inner, outer)
        if interval:
            within, around = first.behind + last.before, first.before + last.behind
        else:
            within, around = (
                0.0 if part is None else self._most(key[0], cut.apart(codes, part.blocks))
                for part in (inner, outer)
            )
        within, around = (within if inner else math.inf), (around if outer else math.inf)
        return _Side(False, inner, outer, within, around)

    def _end(self, key: tuple[int, int], code: int) -> _End:
        """Return an end of conditions as a cut of an ordered attribute has it."""
        known = self._ends.get((key[1], code))
        if known is None:
            if len(self._ends) >= MOST_KEPT:
                self._ends.clear()
            cut = self._design.cuts[key[1]]
            starts, below, above = cut.starts, cut.below(code), cut.above(code)
            before = behind = 0.0
            if below != above:
                before, behind = (
                    self._most(key[0], (starts[below], code)),
                    self._most(key[0], (code, starts[above])),
                )
            known = self._ends[key[1], code] = _End(below, above, before, behind)
        return known

    def _part(self, key: tuple[int, int], blocks: Codes) -> _Part:
        """Return some of the blocks of a cut."""
        known = self._parts.get((key[1], blocks))
        if known is not None:
            return known
        if len(self._parts) >= MOST_KEPT:
            self._parts.clear()
        cut = self._design.cuts[key[1]]
        if type(blocks) is bytes:
            codes = self._finest(key[0]).starts[:-1]
            held: Codes = _mask(blocks, cut.size)[cut.cut.of_codes(codes)].tobytes()
        else:
            places = self._places(*key)
            held = places[blocks[0]], places[blocks[1]]
        mean = _count(blocks) / cut.size
        square = mean * (1.0 - mean) * cut.size
        ladder = self._design.ladders[key[0]]
        whole = ladder.of_whole(held) if self._slack else mean
        known = self._parts[key[1], blocks] = _Part(
            blocks, mean, mean**2, square, held, whole, *ladder.spread(held)
        )
        return known

    def _most(self, axis: int, codes: Interval | Bools) -> float:
        """Return the most that a condition on one attribute holds."""
        if isinstance(codes, np.ndarray) and not codes.any():
            return 0.0
        held = self.reader.codes(axis, codes) if isinstance(codes, np.ndarray) else codes
        overs = self._overs((axis,))
        return self._most_of_n if held is None else self._estimated(((axis, held),), overs).high

    def _overs(self, axes: Axes) -> tuple[_Over, ...]:
        known = self._over.get(axes)
        if known is None:
            keys = sorted(self._design.by_axes.get(axes, ()), key=self._design.blocks, reverse=True)
            known = tuple(map(self._made, keys))  # fine ones first: coarse ones rarely say more
            self._over[axes] = known
        return known

    def _made(self, key: Key) -> _Over:
        design = self._design
        places = range(len(key))
        parts = tuple(
            (
                held,
                tuple(set(places) - set(held)),
                1.0 / design.precision[tuple(key[place] for place in held)],
            )
            for count in range(2, len(key) + 1)
            for held in itertools.combinations(places, count)
        )
        sources = design.sources(key) if design.pure else ()
        set_nats = design.set_nats(key, self._sets_beta) if self._sets_beta > 0.0 else None
        summed = math.prod(self._finest(axis).size for axis, _ in key)
        lost = ROUNDED_OFF + summed * 2.0**-52
        numbers = tuple(number for _, number in key)
        return _Over(key, numbers, design.nats(key, self._beta), set_nats, parts, sources, lost)

    def _radius(self, over: _Over, held: Sequence[_Part], nats: float) -> tuple[float, float]:
        """Return (radius, variance parameter) of the estimate of a product of intervals or sets of blocks."""
        variance, means = 0.0, [part.mean_square for part in held]
        for places, others, term in over.parts:
            for place in places:
                term *= held[place].square
            for place in others:
                term *= means[place]
            variance += term
        for at, part in enumerate(held):
            term = part.spread
            for place, mean in enumerate(means):
                if place != at:
                    term *= mean
            variance += term
        if self._design.pure:
            radius = _laplace_radius(nats, variance, _peak(over, held))
            if len(held) == 1:
                heads = self._design.ladders[over.key[0][0]].heads(held[0].finest)
                radius = min(radius, _headed_radius(nats, variance, heads))
        else:
            radius = math.sqrt(2.0 * nats * variance)
        slack = self._slack * _of_whole(held) if self._slack else 0.0
        return radius * ROUNDED_UP / self._n + over.lost + slack, variance

    def _sum(self, over: _Over, held: Sequence[_Part]) -> float:
        """Return the estimate of a product of blocks, of intervals from the summed-area table of the key."""
        for part in held:
            if type(part.blocks) is bytes:
                return self._sum_of_sets(over.key, held)
        area = self._areas.get(over)
        if area is None:
            table = summed_area(self._blocks(over.key))
            area = self._areas[over] = (
                table.ravel().data,
                [step // table.itemsize for step in table.strides],
            )
        sums, steps = area
        if len(held) == 2:  # most are
            (left, right), (low, high), step = held[0].blocks, held[1].blocks, steps[0]
            above, below = right * step, left * step
            return (sums[above + high] - sums[above + low]) - (sums[below + high] - sums[below + low])
        ends = [
            (part.blocks[0] * step, part.blocks[1] * step) for part, step in zip(held, steps, strict=True)
        ]
        return _between(sums, ends, 0, 0)

    def _sum_of_sets(self, key: Key, held: Sequence[_Part]) -> float:
        if key not in self._sums:
            self._sums[key] = self._blocks(key)
        sums = self._sums[key]
        for part in held:
            sums = np.tensordot(_weights(part.blocks, len(sums)), sums, axes=1)
        return float(sums)

    def _blocks(self, key: Key) -> Floats:
        """Return the estimate of every block of the key: the sum of its components."""
        sizes = [self._design.cuts[number].size for _, number in key]
        total = np.full(sizes, 1.0 / math.prod(sizes))
        for held in _subsets(key):
            axes = tuple(place for place, cut in enumerate(key) if cut not in held)
            share = math.prod(sizes[place] for place in axes)
            total = total + np.expand_dims(self._component(held, key), axes) / share
        return total

    def _component(self, key: Key, within: Key) -> Floats:
        """Return the estimate of a component, centred along all of its axes, on the way to a larger key."""
        if key in self._components:
            return self._components[key]
        if len(key) == 1:
            axis, number = key[0]
            sums = np.diff(np.append(0.0, np.cumsum(self._fit(axis)))[self._places(axis, number)])
            found: Floats = sums - sums.mean()
        else:
            found = np.zeros([self._design.cuts[number].size for _, number in key])
            for at, (table, _) in enumerate(self._tables):
                if table.joint and set(key) <= set(table.key):
                    weight = self._design.precision_in(table, key) / self._design.precision[key]
                    found = found + weight * self._margin(at, key, within)
            for place in range(len(key)):
                found = found - found.mean(axis=place, keepdims=True)
        self._components[key] = found
        return found

    def _margin(self, at: int, key: Key, within: Key) -> Floats:
        """Return a table summed over all cuts but those of the key, by way of a larger key that it holds."""
        if (at, key) not in self._margins:
            table, values = self._tables[at]
            held = table.key
            if len(key) < len(within) < len(held) and set(within) <= set(held):
                values, held = self._margin(at, within, within), within
            self._margins[at, key] = contract(values, tuple(map(held.index, key)))
        return self._margins[at, key]

    def _finest(self, axis: int) -> _Cut:
        return self._design.ladders[axis].cuts[0]

    def _places(self, axis: int, number: int) -> list[int]:
        """Return where the blocks of a cut begin and end, in blocks of the finest cut of the attribute."""
        known = self._placed.get(number)
        if known is None:
            finest = self._finest(axis)
            known = self._placed[number] = [*map(finest.below, self._design.cuts[number].starts)]
        return known

    def _fit(self, axis: int) -> Floats:
        """Return the estimates of the finest blocks of one attribute."""
        if axis not in self._fitted:
            ladder = self._design.ladders[axis]
            measured = [np.zeros(cut.size) for cut in ladder.cuts]
            for at, (table, _) in enumerate(self._tables):
                for cut in table.key:
                    if cut[0] == axis and cut in self._design.level:
                        level = self._design.level[cut]
                        weight = self._design.precision_in(table, (cut,)) / ladder.precisions[level]
                        measured[level] += weight * self._margin(at, (cut,), (cut,))
            self._fitted[axis] = ladder.fit(measured)
        return self._fitted[axis]


def _of_whole(parts: Sequence[_Part]) -> float:
    """Return how much of all records the estimate of a product counts as its own (theory 1.9, 3)."""
    found = shared = math.prod(part.mean for part in parts)
    for part in parts:
        found += (part.whole - part.mean) * shared / part.mean
    return abs(found) + ROUNDED_OFF


def _weights(codes: Codes, size: int) -> Floats:
    """Return a set or an interval as weights."""
    if type(codes) is bytes:
        return np.frombuffer(codes, np.bool_).astype(np.float64)
    weights = np.zeros(size)
    weights[codes[0] : codes[1]] = 1.0
    return weights


def _mask(codes: Codes, size: int) -> Bools:
    """Return a set or an interval as a mask."""
    if type(codes) is bytes:
        return np.frombuffer(codes, np.bool_)
    mask = np.zeros(size, np.bool_)
    mask[codes[0] : codes[1]] = True
    return mask


def _count(codes: Codes) -> int:
    """Return how many there are: of an interval that ends before it begins none."""
    return codes.count(b"\1") if type(codes) is bytes else max(0, codes[1] - codes[0])


def _checked(low: float, high: float, most: float = 1.0) -> Bracket | None:
    """Return a bracket inside [0, most], or None where it is empty: then the event did not happen."""
    low, high = max(0.0, low), min(most, high)
    return (low, high) if low <= high else None


def _between(sums: memoryview, ends: Sequence[Interval], axis: int, at: int) -> float:
    """Return a sum over intervals, whose `ends` are offsets in a summed-area table, from an axis on."""
    first, last = ends[axis]
    left = len(ends) - axis
    if left == 1:
        return sums[at + last] - sums[at + first]
    if left == 2:
        low, high = ends[axis + 1]
        above, below = at + last, at + first
        return (sums[above + high] - sums[above + low]) - (sums[below + high] - sums[below + low])
    return _between(sums, ends, axis + 1, at + last) - _between(sums, ends, axis + 1, at + first)


def _peak(over: _Over, parts: Sequence[_Part]) -> float:
    """Return the most that one noise counts in the estimate: its coefficient times its scale."""
    most, means = 0.0, [part.mean for part in parts]
    tops = [max(mean, 1.0 - mean) for mean in means]
    for source in over.sources:
        count = 0.0
        for held, share in source.shares:
            for inside, top, mean in zip(held, tops, means, strict=True):
                share *= top if inside else mean
            count += share
        for at, level, share in source.levels:
            term = share * parts[at].largest[level]
            for place, mean in enumerate(means):
                if place != at:
                    term *= mean
            count += term
        most = max(most, count * source.spread)
    return most


def _laplace_radius(nats: float, variance: float, peak: float) -> float:
    """Return r with P(|sum c_i Z_i| > r) <= 2 e^-nats: sum c_i^2 b_i^2 = variance, all |c_i| b_i <= peak.

    Chernoff with ln E e^(tcZ) <= -ln(1 - (tcb)^2) <= (cb/peak)^2 (-ln(1 - (t peak)^2)) for t peak < 1, by
    convexity: any t will do.
    """
    if variance <= 0.0 or peak <= 0.0:
        return 0.0
    number = variance / peak**2
    least = math.inf
    for tilt in (0.7, 0.85, 1.0, 1.15, 1.3, 1.6, 2.0):
        square = nats / (nats + tilt * number)
        found = (nats - number * math.log1p(-square)) / math.sqrt(square)
        if found < least:
            least = found
    return least * peak


def _headed_radius(nats: float, variance: float, heads: Floats) -> float:
    """Return the same from the largest coefficients one by one; the least of them bounds all others.

    Several noises that count as one of the same variance parameter have smaller moments than that one:
    (1 - x)(1 - y) >= 1 - x - y.
    """
    largest, least = float(heads[0]), float(heads[-1])
    if largest <= 0.0:
        return 0.0
    squares = heads[:, None] ** 2
    rest = max(0.0, variance - float(squares[:-1].sum())) / max(least, 1e-9 * largest) ** 2
    tilts = TILTS / largest
    moments = -np.log1p(-(tilts**2) * squares)
    return float(((nats + moments[:-1].sum(axis=0) + rest * moments[-1]) / tilts).min())
