"""What the noise of first tables says of all simple queries at once: estimates, and bounds for a family.

The tables that a session buys before its first query have noise of a known law and a design that is public
before it is drawn. A query that is a sum of blocks of one of them has a best linear unbiased estimate from
all of them, in closed form, and one event bounds the errors of a whole named family of such queries: so an
analyst may pick the worst of them. Nothing here sees data, and nothing here may read a table that was bought
later: which one was, and when, depends on the noise of the earlier ones.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.attributes import Categorical
from onlineic.domain.domain import Domain
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import contract, summed_area

MOST_AXES = 4  # of a query in the family, and of one that is bounded by its parts
MOST_STEPS = 128  # distinct weights of a query along one attribute: each is bracketed by itself
MOST_TABLE = 512  # cells of a cross table that are bounded one by one
MOST_BLOCKS = 2**16  # of one attribute: each interval is solved in time linear in them
MOST_HEADS = 16  # coefficients of an interval that count one by one, the others together
MOST_KEPT = 2**16  # spreads of intervals that are remembered
SMALL_FAMILIES = 0.25  # power of its size with which an attribute set's share of beta grows: by experiment
ROUNDED_UP, ROUNDED_OFF = 1.0 + 1e-9, 1e-14  # more than what floats lose in a radius and in an estimate

Axes = tuple[int, ...]
Interval = tuple[int, int]
Box = tuple[tuple[int, Interval], ...]  # (axis, codes), by axis: none of them all of its axis
Bracket = tuple[float, float]


@final
@attrs.frozen
class Family:
    """A public family of queries whose errors are bounded by one event.

    Conjunctions over at most four attributes that stand together in one first table, each an interval of an
    ordered attribute that begins and ends where the table is cut, or a single label of a categorical one.

    Attributes
    ----------
    sets : tuple of tuple of str
        The attribute sets.
    size : int
        Number of queries: the union bound counts each.
    """

    sets: tuple[tuple[str, ...], ...]
    size: int

    def __str__(self) -> str:
        return (
            f"{self.size:,} conjunctions of intervals and single labels over {len(self.sets):,} sets of "
            "attributes, as cut in the first tables"
        )


@final
@attrs.frozen(eq=False)
class _Cut:
    """One attribute in blocks of neighbouring codes: where they begin, and between which a code lies."""

    classes: Ints
    ordered: bool

    @cached_property
    def size(self) -> int:
        return int(self.classes[-1]) + 1

    @cached_property
    def starts(self) -> list[int]:
        """First code of every block, and the number of codes."""
        first = np.flatnonzero(np.diff(self.classes, prepend=-1))
        return [*first.tolist(), len(self.classes)]

    @cached_property
    def below(self) -> list[int]:
        """For every code, and the end: the last block that begins there or before."""
        return [*self.classes.tolist(), self.size]

    @cached_property
    def above(self) -> list[int]:
        """For every code, and the end: the first block that begins there or behind."""
        codes = np.arange(len(self.classes) + 1)
        return np.searchsorted(self.starts, codes).tolist()  # type: ignore[no-any-return]

    @property
    def conditions(self) -> int:
        """Number of conditions in the family: intervals of blocks but the whole, or single blocks."""
        return self.size * (self.size + 1) // 2 - 1 if self.ordered else self.size


Key = tuple[tuple[int, int], ...]  # (axis, number of its cut), by axis


@final
class _Ladder:
    """One attribute in nested cuts, each block measured with noise of its level: a tree of least squares.

    The estimate with weights w on the finest blocks has the coefficients of currents in a tree of resistors:
    leaves at voltage w, resistance the precision of a level, no current at the root. So they lie in [-1, 1]
    for an interval, and two passes solve it.

    Parameters
    ----------
    cuts : sequence of _Cut
        Finest first, each of whole blocks of the one before.
    precisions : sequence of float
        One over the variance parameter of a block, by level.
    """

    def __init__(self, cuts: Sequence[_Cut], precisions: Sequence[float]) -> None:
        self.cuts, self.precisions = cuts, precisions
        self._parents = [
            coarse.classes[fine.starts[:-1]] for fine, coarse in itertools.pairwise(cuts)
        ]  # of every block of a level, its block of the next
        self._conductances = [np.full(cuts[0].size, 1.0 / precisions[0])]
        self._passed: list[Floats] = []  # part of what comes from below that a level lets through
        for parents, precision in zip(self._parents, precisions[1:], strict=True):
            inside = np.bincount(parents, self._conductances[-1])
            self._passed.append(np.asarray(1.0 / (1.0 + precision * inside), np.float64))
            self._conductances.append(inside * self._passed[-1])
        self._kept: dict[Interval, tuple[float, tuple[float, ...]]] = {}
        self._heads: dict[Interval, Floats] = {}

    def _solved(self, weights: Floats, total: float) -> list[Floats]:
        """Return h with (sum of precision_l C_l'C_l) h = weights - constant and sum h = total, by level."""
        sums = [weights / self.precisions[0]]
        for parents, passed in zip(self._parents, self._passed, strict=True):
            sums.append(np.bincount(parents, sums[-1]) * passed)
        constant = (float(sums[-1].sum()) - total) / float(self._conductances[-1].sum())
        voltage: Floats = np.full(len(sums[-1]), constant)
        flows = [sums[-1] - voltage * self._conductances[-1]]
        for level in range(len(self._parents) - 1, -1, -1):
            voltage = (voltage + self.precisions[level + 1] * flows[0])[self._parents[level]]
            flows.insert(0, sums[level] - voltage * self._conductances[level])
        return flows

    def fit(self, measured: Sequence[Floats]) -> Floats:
        """Return the estimates of the finest blocks, of total 1, from the measured blocks of every level."""
        rhs = self.precisions[-1] * measured[-1]
        for level in range(len(self._parents) - 1, -1, -1):
            rhs = rhs[self._parents[level]] + self.precisions[level] * measured[level]
        return self._solved(rhs, 1.0)[0]

    def spread(self, low: int, high: int) -> tuple[float, tuple[float, ...]]:
        """Return (variance parameter, largest coefficient of every level) of the interval [low, high)."""
        kept = self._kept.get((low, high))
        if kept is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            weights = np.zeros(self.cuts[0].size)
            weights[low:high] = 1.0
            flows = self._solved(weights, 0.0)
            largest = tuple(
                float(np.abs(flow).max()) * precision
                for flow, precision in zip(flows, self.precisions, strict=True)
            )
            kept = self._kept[low, high] = (max(0.0, float(flows[0][low:high].sum())), largest)
        return kept

    def heads(self, low: int, high: int) -> Floats:
        """Return the largest |c| s of the interval's coefficients, falling, each block's noise as one."""
        known = self._heads.get((low, high))
        if known is None:
            if len(self._heads) >= MOST_KEPT:
                self._heads.clear()
            weights = np.zeros(self.cuts[0].size)
            weights[low:high] = 1.0
            counts = np.concatenate(
                [
                    np.abs(flow) * math.sqrt(precision)
                    for flow, precision in zip(self._solved(weights, 0.0), self.precisions, strict=True)
                ]
            )
            if len(counts) > MOST_HEADS:
                counts = np.partition(counts, len(counts) - MOST_HEADS)[-MOST_HEADS:]
            known = self._heads[low, high] = np.sort(counts)[::-1]
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
    shares: tuple[tuple[tuple[int, ...], float], ...]  # (places in the key, weight of the table)
    levels: tuple[tuple[int, int, float], ...]  # (place in the key, level, part of its precision)


@final
class TableDesign:
    """Which tables are released together, with what noise: all that their bounds depend on, before any noise.

    The blocks of a table over the axes T with k_a parts of axis a split into one component for each subset S
    of T: sums over the other axes, centred along those of S. Components of independent equal noise are
    uncorrelated, so each is estimated by the weighted mean of all tables that hold it, with weights one over
    its variance, and the components of one attribute from all its cuts by a tree of least squares.

    Parameters
    ----------
    targets : sequence of Partition
    spreads : sequence of float
        Variance parameter's root of each, records: sigma of a discrete Gaussian, or a discrete Laplace scale.
    pure : bool
        Whether the noise is Laplace.

    References
    ----------
    Xiao, Ding, Winslett & Kifer (2023), ResidualPlanner, for the components; Hay, Rastogi, Miklau & Suciu
    (2010) for the tree.
    """

    def __init__(self, targets: Sequence[Partition], spreads: Sequence[float], pure: bool) -> None:
        self.domain: Domain = targets[0].domain
        self.pure = pure
        self.cuts: list[_Cut] = []
        numbers: dict[tuple[int, bytes], int] = {}
        tables: list[_Table] = []
        for place, (target, spread) in enumerate(zip(targets, spreads, strict=True)):
            held = [
                (axis, classes)
                for axis, classes in zip(target.axes, target.classes, strict=True)
                if classes[-1] > 0 or classes.any()
            ]
            # blocks of codes that are no neighbours are in no interval; and each takes its time
            apart = any((np.diff(classes) < 0).any() or classes[-1] >= MOST_BLOCKS for _, classes in held)
            if apart or not held:
                continue
            for axis, classes in held:
                if (axis, classes.tobytes()) not in numbers:
                    numbers[axis, classes.tobytes()] = len(self.cuts)
                    ordered = not isinstance(self.domain.attributes[axis], Categorical)
                    self.cuts.append(_Cut(classes, ordered))
            key = tuple((axis, numbers[axis, classes.tobytes()]) for axis, classes in held)
            tables.append(_Table(place, key, float(spread)))
        self._ladders(tables)
        # one with a cut outside of its attribute's tree speaks of its other attributes alone
        self.tables = [
            attrs.evolve(table, joint=all(cut in self.level for cut in table.key)) for table in tables
        ]
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
                [self.cuts[number] for number in chain], [precisions[axis, number] for number in chain]
            )

    def _fineness(self, number: int) -> tuple[int, int]:
        return -self.cuts[number].size, number

    def _blocks(self, key: Key) -> int:
        return math.prod(self.cuts[number].size for _, number in key)

    def precision_in(self, table: "_Table", held: Key) -> float:
        """Return what a table knows of a component over some of its cuts: one over its variance."""
        return self._blocks(held) / self._blocks(table.key) / table.spread**2

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
        self._weights = sum(float(size) ** SMALL_FAMILIES for size in self.sizes.values())

    @cached_property
    def family(self) -> Family:
        """The queries whose errors are bounded together."""
        names = self.domain.names
        sets = tuple(tuple(names[axis] for axis in axes) for axes in sorted(self.by_axes))
        return Family(sets, sum(self.sizes.values()))

    def nats(self, key: Key, beta: float) -> float:
        """Return ln(2/share) for the share of beta that one query over the key gets in the union."""
        size = float(self.sizes[key])
        return math.log(2.0 / beta) + math.log(size * self._weights) - SMALL_FAMILIES * math.log(size)

    def sources(self, key: Key) -> tuple[_Source, ...]:
        """Return what every table puts into the estimates over the key."""
        found = []
        for table in self.tables:
            shares, levels = [], []
            for held in _subsets(key) if table.joint else ():
                if len(held) > 1 and set(held) <= set(table.key):
                    part = self.precision_in(table, held) / self.precision[held]
                    shares.append((tuple(map(key.index, held)), part))
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
    cuts: tuple[_Cut, ...]
    nats: float
    parts: tuple[tuple[tuple[int, ...], tuple[int, ...], float], ...]  # (places, others, variance parameter)
    sources: tuple[_Source, ...]


@final
class Estimates:
    """Brackets that hold for all queries of the design's family at once, with probability 1 - beta.

    Parameters
    ----------
    design : TableDesign
    values : sequence of float64 arrays
        The released blocks of every target, noisy fractions of records.
    n : int
        Number of records.
    beta : float
        Probability that any bracket fails.

    References
    ----------
    docs/theory.md 6.7 proves the bounds, and why tables that were bought later must not enter.
    """

    def __init__(self, design: TableDesign, values: Sequence[Floats], n: int, beta: float) -> None:
        self._design, self._n, self._beta = design, int(n), float(beta)  # Python numbers: narrow ones wrap
        self._tables = [
            (table, values[table.place].reshape([design.cuts[number].size for _, number in table.key]))
            for table in design.tables
        ]
        self._over: dict[Axes, tuple[_Over, ...]] = {}
        self._areas: dict[Key, tuple[Floats, tuple[int, ...]]] = {}
        self._components: dict[Key, Floats] = {}
        self._margins: dict[tuple[int, Key], Floats] = {}
        self._fitted: dict[int, Floats] = {}
        self._estimates: dict[Box, Bracket] = {}

    def bracket(self, query: Query) -> Bracket | None:
        """Return (low, high) that holds the exact fraction, or None where nothing follows.

        A query that is cut elsewhere, or over more attributes than a table holds, is bracketed by those
        inside and around it; conditions of other kinds are left out, which bounds it from above. Weights
        along one ordered attribute that rise, fall, or rise and then fall are mixtures of intervals.
        """
        mixture = self._mixture(query)
        if mixture is not None:
            low, high = mixture
            return _checked(1.0 - high, 1.0 - low) if query.complement else _checked(low, high)
        box, opaque, complement = self._parsed(query)
        if not 0 < len(box) <= MOST_AXES:
            return None
        low, high = self._boxed(box)
        low = 0.0 if opaque else low
        return _checked(1.0 - high, 1.0 - low) if complement else _checked(low, high)

    def _mixture(self, query: Query) -> Bracket | None:
        """Return the bracket of a product of conditions with weights along one ordered attribute, or None.

        Weights are the sum, over their distinct values, of the rise to that value times the condition that
        they reach it. Where each such condition is an interval, all are bracketed in one event.
        """
        weighted = [factor for factor in query.factors if factor.table is not None]
        if len(weighted) != 1 or len(weighted[0].axes) > 1 or len(query.factors) > MOST_AXES:
            return None
        (factor,) = weighted
        axis, table = factor.axes[0], factor.weights(self._design.domain)
        others = [(one.axes[0], (one.low, one.high)) for one in query.factors if one is not factor]
        if isinstance(self._design.domain.attributes[axis], Categorical):
            return None
        if not all(self._simple(other, codes) for other, codes in others):
            return None
        values = np.unique(table[table > 0])
        if len(values) > MOST_STEPS:
            return None
        low, high, below = 0.0, 0.0, 0
        for value in values.tolist():
            codes = np.flatnonzero(table >= value)
            first, last = int(codes[0]), int(codes[-1]) + 1
            if last - first > len(codes):
                return None
            whole = last - first == len(table)
            inside: list[tuple[int, Interval]] = [] if whole else [(axis, (first, last))]
            least, most = self._boxed(tuple(sorted([*others, *inside])))
            rise, below = math.ldexp(value - below, -factor.bits), value
            low, high = low + rise * max(0.0, least), high + rise * min(1.0, most)
        return low - ROUNDED_OFF, high + ROUNDED_OFF

    def point(self, query: Query) -> tuple[float, float] | None:
        """Return (estimate, standard error) of a query of the family, or None of any other.

        The error is known for a query that was chosen before the tables were released, and for no other: of
        many, some estimates err by far more, and who looks can tell which.
        """
        box, opaque, complement = self._parsed(query)
        found = []
        for over in self._overs(tuple(axis for axis, _ in box)) if not opaque else ():
            blocks = [
                (cut.above[first], cut.below[last])
                for cut, (_, (first, last)) in zip(over.cuts, box, strict=True)
            ]
            ends = [
                (cut.starts[low], cut.starts[high])
                for cut, (low, high) in zip(over.cuts, blocks, strict=True)
            ]
            if ends == [codes for _, codes in box]:
                variance = self._spread(over, blocks)[0] * (2.0 if self._design.pure else 1.0)
                value = self._sum(over.key, blocks)
                found.append((math.sqrt(variance) / self._n, 1.0 - value if complement else value))
        return min(found)[::-1] if found else None

    def _parsed(self, query: Query) -> tuple[Box, bool, bool]:
        """Return (conditions that the family knows, whether there are others, whether it is turned)."""
        box: list[tuple[int, Interval]] = []
        opaque, complement = False, query.complement
        for factor in query.factors:
            codes = (factor.low, factor.high)
            axis = factor.axes[0]
            alone = len(query.factors) == 1 and factor.table is None
            if alone and codes == (1, self._design.domain.shape[axis]) and not self._simple(axis, codes):
                codes, complement = (0, 1), not complement  # canonical form writes the first label so
            if factor.table is None and self._simple(axis, codes):
                box.append((axis, codes))
            else:
                opaque = True
        return tuple(box), opaque, complement

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
            for axis, classes, label in zip(
                partition.axes, partition.classes, np.unravel_index(block, partition.shape), strict=True
            ):
                codes = np.flatnonzero(classes == label)
                ends = (int(codes[0]), int(codes[-1]) + 1)
                if len(codes) == len(classes):
                    continue
                if len(codes) == ends[1] - ends[0] and self._simple(axis, ends):
                    box.append((axis, ends))
                else:
                    opaque = True
            if not box or len(box) > MOST_AXES:
                return None
            found = _checked(*self._boxed(tuple(box)))
            if found is None:
                return None
            lows[cell], highs[cell] = 0.0 if opaque else found[0], found[1]
        return lows, highs

    def _simple(self, axis: int, codes: Interval) -> bool:
        """Whether the family knows such conditions."""
        attribute = self._design.domain.attributes[axis]
        return not isinstance(attribute, Categorical) or codes[1] - codes[0] == 1

    def _boxed(self, box: Box) -> Bracket:
        """Return the bracket of a box: of its estimate, and of what its parts leave."""
        brackets: dict[Axes, Bracket] = {(): (1.0, 1.0)}
        for count in range(1, len(box) + 1):
            for part in itertools.combinations(box, count):
                axes = tuple(axis for axis, _ in part)
                low, high = self._estimated(axes, part)
                for axis in axes:
                    high = min(high, brackets[_without(axes, axis)][1])
                for one, other in itertools.combinations(axes, 2):
                    fewer, both = _without(axes, one), _without(axes, other)
                    least = brackets[fewer][0] + brackets[both][0] - brackets[_without(fewer, other)][1]
                    low = max(low, least)
                if count == 3:  # all three, or none of them: 1 - sum of ones + sum of pairs - f >= 0
                    pairs = sum(brackets[_without(axes, axis)][1] for axis in axes)
                    high = min(high, 1.0 + pairs - sum(brackets[axis,][0] for axis in axes))
                brackets[axes] = (low, high)
        return brackets[tuple(axis for axis, _ in box)]

    def _estimated(self, axes: Axes, box: Box) -> Bracket:
        """Return what the tables that hold all axes say of a box, cut inside and around it."""
        known = self._estimates.get(box)
        if known is None:
            if len(self._estimates) >= MOST_KEPT:
                self._estimates.clear()
            known = self._estimates[box] = self._estimate(axes, box)
        return known

    def _estimate(self, axes: Axes, box: Box) -> Bracket:
        low, high = 0.0, 1.0
        for over in self._overs(axes):
            inner, outer, apart = [], [], []
            for cut, (axis, (first, last)) in zip(over.cuts, box, strict=True):
                inner.append((cut.above[first], cut.below[last]))
                outer.append((cut.below[first], cut.above[last]))
                if inner[-1] != outer[-1]:
                    apart.append((axis, cut, first, last))
            if not apart:
                value, radius = self._value(over, inner)
                low, high = max(low, value - radius), min(high, value + radius)
                continue
            if all(first < last for first, last in inner):
                value, radius = self._value(over, inner)
                more = 0.0
                if len(axes) > 1:
                    for axis, cut, first, last in apart:
                        more += self._ends(axis, first, cut.starts[cut.above[first]])
                        more += self._ends(axis, cut.starts[cut.below[last]], last)
                    high = min(high, value + radius + more)
                low = max(low, value - radius)
            if all(last - first < cut.size for cut, (first, last) in zip(over.cuts, outer, strict=True)):
                value, radius = self._value(over, outer)
                less = 0.0
                if len(axes) > 1:
                    for axis, cut, first, last in apart:
                        less += self._ends(axis, cut.starts[cut.below[first]], first)
                        less += self._ends(axis, last, cut.starts[cut.above[last]])
                    low = max(low, value - radius - less)
                high = min(high, value + radius)
        return low, high

    def _ends(self, axis: int, first: int, last: int) -> float:
        """Return the most that an interval of one attribute holds."""
        if first >= last:
            return 0.0
        return self._estimated((axis,), ((axis, (first, last)),))[1]

    def _overs(self, axes: Axes) -> tuple[_Over, ...]:
        known = self._over.get(axes)
        if known is None:
            known = tuple(self._made(key) for key in self._design.by_axes.get(axes, ()))
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
        cuts = tuple(design.cuts[number] for _, number in key)
        return _Over(key, cuts, design.nats(key, self._beta), parts, sources)

    def _value(self, over: _Over, blocks: Sequence[Interval]) -> tuple[float, float]:
        """Return (estimate, radius) of a box of blocks."""
        variance, peak = self._spread(over, blocks)
        if self._design.pure:
            radius = _laplace_radius(over.nats, variance, peak)
            if len(over.key) == 1:
                ladder, cut, (first, last) = self._design.ladders[over.key[0][0]], over.cuts[0], blocks[0]
                finest = ladder.cuts[0].below
                heads = ladder.heads(finest[cut.starts[first]], finest[cut.starts[last]])
                radius = min(radius, _headed_radius(over.nats, variance, heads))
        else:
            radius = math.sqrt(2.0 * over.nats * variance)
        return self._sum(over.key, blocks), radius * ROUNDED_UP / self._n + ROUNDED_OFF

    def _spread(self, over: _Over, blocks: Sequence[Interval]) -> tuple[float, float]:
        """Return the variance parameter of a box of blocks, and the most that one noise counts in it."""
        means = [(last - first) / cut.size for cut, (first, last) in zip(over.cuts, blocks, strict=True)]
        squares = [mean * (1.0 - mean) * cut.size for cut, mean in zip(over.cuts, means, strict=True)]
        variance = 0.0
        for held, others, term in over.parts:
            for place in held:
                term *= squares[place]
            for place in others:
                term *= means[place] ** 2
            variance += term
        largest = []  # coefficients of every level of every attribute
        for place, ((axis, _), cut, (first, last)) in enumerate(
            zip(over.key, over.cuts, blocks, strict=True)
        ):
            finest = self._design.ladders[axis].cuts[0]
            term, peaks = self._design.ladders[axis].spread(
                finest.below[cut.starts[first]], finest.below[cut.starts[last]]
            )
            for other, mean in enumerate(means):
                if other != place:
                    term *= mean**2
            variance += term
            largest.append(peaks)
        return variance, _peak(over, means, largest)

    def _sum(self, key: Key, blocks: Sequence[Interval]) -> float:
        """Return the estimate of a box of blocks from the summed-area table of the key."""
        if key not in self._areas:
            area = summed_area(self._blocks(key))
            self._areas[key] = (area.ravel(), tuple(step // area.itemsize for step in area.strides))
        sums, steps = self._areas[key]
        corners, signs = [0], [1.0]
        for (first, last), step in zip(blocks, steps, strict=True):
            corners = [at + last * step for at in corners] + [at + first * step for at in corners]
            signs = signs + [-sign for sign in signs]
        return sum(sign * sums.item(at) for sign, at in zip(signs, corners, strict=True))

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
            sums = np.diff(
                np.append(0.0, np.cumsum(self._fit(axis)))[
                    [self._finest(axis).below[start] for start in self._design.cuts[number].starts]
                ]
            )
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


def _without(axes: Axes, axis: int) -> Axes:
    return tuple(other for other in axes if other != axis)


def _checked(low: float, high: float) -> Bracket | None:
    """Return a bracket inside [0, 1], or None where it is empty: then the event did not happen."""
    low, high = max(0.0, low), min(1.0, high)
    return (low, high) if low <= high else None


def _peak(over: _Over, means: Sequence[float], largest: Sequence[tuple[float, ...]]) -> float:
    """Return the most that one noise counts in the estimate: its coefficient times its scale."""
    most = 0.0
    for source in over.sources:
        count = 0.0
        for held, share in source.shares:
            for place, mean in enumerate(means):
                share *= max(mean, 1.0 - mean) if place in held else mean
            count += share
        for at, level, part in source.levels:
            term = part * largest[at][level]
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
        least = min(least, (nats - number * math.log1p(-square)) / math.sqrt(square))
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
    tilts = np.linspace(0.5, 0.98, 25) / largest
    moments = -np.log1p(-(tilts**2) * squares)
    return float(((nats + moments[:-1].sum(axis=0) + rest * moments[-1]) / tilts).min())
