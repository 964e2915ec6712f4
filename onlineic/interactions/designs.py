"""Which tables to buy at a budget: those that lower the error of the questions expected by most.

The error is the sum over subspaces of

    weight / (what is known + precision to buy)

where a table informs every subspace that is no finer than it is (`interactions.informed`). Of Gaussian tables
the precision is what they cost, and this is a convex programme, solved by a few hundred multiplicative steps.
Of Laplace ones it is the square of that, so few tables are best, which steps find from the convex solution,
or by choosing one after another.

Proof: docs/theory/session.md, 4.9.
"""

import itertools
import math
from collections.abc import Callable
from functools import cached_property
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.interactions.demand import Demand
from onlineic.interactions.levels import Levels, levels_of
from onlineic.interactions.predictor import Predictor
from onlineic.interactions.sizes import Key, informed
from onlineic.queries.reach import Reach

# what a programme is cut to, so that it takes a second at most
MOST_BLOCKS = 2**16  # of a table that is bought
MOST_TABLES, MOST_CANDIDATES = 200, 1000
LEAST_SUBSPACES, MOST_SUBSPACES, NEARLY_ALL = 50, 1500, 0.9995  # of the error
STEPS = 150  # multiplicative ones: of a thousand the error is no less by a thousandth
GROWTHS, MOST_GROWN = 2, 60  # rounds in which tables grow, and how many do in each
AT_ONCE = 2**20  # levels of subspaces, times tables that are grown together
UNUSED = 1e-4  # part of the budget of a table that is left out


@final
@attrs.frozen
class Design:
    """Tables to buy, and the root of the mean squared error expected without and with them, fractions.

    Attributes:
        parts: Of the budget, largest first.
    """

    parts: dict[Key, float]
    before: float
    after: float


@final
@attrs.frozen(eq=False)
class _Programme:
    """Which tables lower the squared error of a demand by most, beside what is known.

    Attributes:
        subspaces: Shape (subspaces, attributes).
        weights, known: Shape (subspaces,). What questions ask of each, and one over its size with the
            precision of what was bought.
        budget: Precision of a table that gets all.
        counted: (levels of a table) -> bool. Whether its attributes can be counted together; None: any can.
    """

    levels: tuple[Levels, ...]
    subspaces: Ints
    weights: Floats
    known: Floats
    budget: float
    counted: Callable[[Ints], bool] | None = None

    def error(self, given: Floats, precisions: Floats) -> float:
        """Return the root of the mean squared error expected with these precisions of tables."""
        return math.sqrt(float((self.weights / (self.known + given @ precisions)).sum()))

    def slopes(self, given: Floats, precisions: Floats) -> Floats:
        """Return by how much the squared error falls with the precision of each subspace."""
        return np.asarray(self.weights / (self.known + given @ precisions) ** 2)

    def informed(self, tables: Ints) -> Floats:
        return informed(self.levels, self.subspaces, tables)

    def drawable(self, tables: Ints) -> Ints:
        """Return the tables of few enough blocks."""
        widths = [np.array(one.parts, np.float64) for one in self.levels]
        blocks = np.prod([width[tables[:, axis]] for axis, width in enumerate(widths)], axis=0)
        kept = tables[blocks <= MOST_BLOCKS]
        return np.asarray(kept if self.counted is None else kept[[*map(self.counted, kept)]])

    def settled(self, given: Floats, parts: Floats) -> Floats:
        """Return the division between Gaussian tables: each step lets parts grow as the root of slopes."""
        for _ in range(STEPS):
            parts = parts * np.sqrt(given.T @ self.slopes(given, self.budget * parts))
            parts = parts / parts.sum()
        return parts

    def squared(self, given: Floats, parts: Floats) -> Floats:
        """Return the division between Laplace tables, whose precision goes with the square of their part.

        Steps from these parts, or from tables that were taken one after another; the one with less error.
        A step grows parts with the cube root of their slope: of tables that inform different subspaces, one
        finds the best division.
        """

        def error(parts: Floats) -> float:
            return self.error(given, self.budget * parts**2)

        found = []
        for start in (parts, self.taken(given)):
            parts = start
            for _ in range(STEPS):
                slopes = given.T @ self.slopes(given, self.budget * parts**2)
                parts = parts * np.cbrt(parts * slopes)
                parts = parts / parts.sum()
            found += [start, parts]
        return min(found, key=error)

    def taken(self, given: Floats) -> Floats:
        """Return equal parts of tables taken one after another, while one more lowers the error."""
        places, least, held = list[int](), math.inf, np.zeros(len(given))
        for count in range(1, 1 + given.shape[1]):
            precision = self.budget / count**2
            told = self.known + precision * held
            errors = (self.weights[:, None] / (told[:, None] + precision * given)).sum(axis=0)
            place = int(np.argmin(errors))
            if errors[place] >= least or place in places:
                break
            least = float(errors[place])
            places.append(place)
            held = held + given[:, place]
        parts = np.zeros(given.shape[1])
        parts[places] = 1.0 / len(places)
        return parts

    @cached_property
    def _depths(self) -> tuple[Ints, Ints, Ints]:
        """The finest level of each attribute, the parts of its levels, and those of it in each subspace."""
        finest = np.array([one.finest for one in self.levels])
        deepest = int(finest.max()) + 1  # once: of many attributes it would take as long as all the rest
        parts = np.array(
            [[one.parts[min(level, one.finest)] for level in range(deepest)] for one in self.levels]
        )
        return finest, parts, parts[np.arange(len(finest)), self.subspaces]

    def reached(self, rows: Ints, slopes: Floats) -> Floats:
        """Return the slopes of tables, each with one more level of each attribute, (tables, attributes).

        0 where a table cannot be had.
        """
        finest, parts, own = self._depths
        axes, given = np.arange(rows.shape[1]), np.zeros((len(rows), *self.subspaces.shape))
        now, more = parts[axes, rows], parts[axes, np.minimum(rows + 1, finest)]
        # a table says nothing of a subspace, for want of these attributes
        wanting = self.subspaces > rows[:, None, :]
        # one level more makes up for one such attribute: of many subspaces most want more
        count = np.count_nonzero(wanting, axis=2)
        table, held = np.nonzero(count == 0)
        factors = own[held] / now[table]
        given[table, held] = factors.prod(axis=1)[:, None] / factors * (own[held] / more[table])
        table, near = np.nonzero(count == 1)
        lacking = wanting[table, near]
        axis = lacking.argmax(axis=1)
        shared = np.where(lacking, 1.0, own[near] / now[table]).prod(axis=1)
        able = self.subspaces[near, axis] == rows[table, axis] + 1
        given[table, near, axis] = np.where(able, shared * (own[near, axis] / more[table, axis]), 0.0)
        drawn = (rows < finest) & (now.prod(axis=1, dtype=float)[:, None] / now * more <= MOST_BLOCKS)
        if self.counted is not None:
            for row, able in zip(rows, drawn, strict=True):
                able &= np.array([self.counted(row + (axes == axis)) for axis in axes], np.bool_)
        return np.where(drawn, [one.T @ slopes for one in given], 0.0)

    def grown(self, tables: Ints, parts: Floats) -> Ints:
        """Return tables made of the best ones by more attributes and levels, while their slope rises."""
        given = self.informed(tables)
        slopes = self.slopes(given, self.budget * parts)
        best, found = float((given.T @ slopes).max()), dict[bytes, Ints]()
        present = {row.tobytes() for row in tables}
        most = max(1, AT_ONCE // self.subspaces.size)
        for start in range(0, min(len(tables), MOST_GROWN), most):
            rows = tables[np.argsort(-parts, kind="stable")[start : min(start + most, MOST_GROWN)]]
            risen, growing = np.zeros(len(rows)), np.arange(len(rows))
            steps: list[list[Ints]] = [[] for _ in rows]
            while len(growing):
                reached = self.reached(rows[growing], slopes)
                rising = reached.max(axis=1) > risen[growing]
                growing, reached = growing[rising], reached[rising]
                risen[growing] = reached.max(axis=1)
                rows[growing, reached.argmax(axis=1)] += 1
                for place in growing[risen[growing] > best].tolist():
                    steps[place].append(rows[place].copy())
            for row in itertools.chain.from_iterable(steps):
                if row.tobytes() not in present:
                    found[row.tobytes()] = row
        return np.array([*found.values()], np.int64).reshape(-1, tables.shape[1])


def cheapest(
    predictor: Predictor,
    demand: Demand,
    budget: float,
    reach: Reach | None = None,
    *,
    laplace: bool = False,
) -> Design:
    """Return which tables to buy at this budget.

    Args:
        predictor: What is known before.
        budget: Precision of a table that gets all of it: 1 / variance, fractions of records.
        reach: Which sets of attributes can be counted.
        laplace: Whether the precision of a table goes with the square of its part, and not with its part.
    """
    domain = predictor.domain
    levels, known = levels_of(domain), predictor.known(demand.subspaces)
    errors = demand.weights / known
    order = np.argsort(-errors, kind="stable")[:MOST_SUBSPACES]
    enough = int(np.searchsorted(np.cumsum(errors[order]), NEARLY_ALL * errors[order].sum())) + 1
    order = order[: max(LEAST_SUBSPACES, enough)]
    # attributes that nothing is asked of take no part, however many there are
    live = np.flatnonzero(demand.subspaces[order].any(axis=0))
    subspaces = demand.subspaces[np.ix_(order, live)]
    programme = _Programme(
        tuple(levels[axis] for axis in live),
        subspaces,
        demand.weights[order],
        known[order],
        budget,
        None if reach is None else lambda row: reach.holds(domain.shape, tuple(live[row > 0].tolist())),
    )
    tables = np.unique(subspaces, axis=0)
    if laplace:  # one table of all cells may be best, and is not reached by growing
        tables = np.unique(np.vstack([tables, subspaces.max(axis=0, initial=0)[None]]), axis=0)
    tables = programme.drawable(tables)[:MOST_CANDIDATES]
    # nothing is asked but constants, or all that is asked has too many blocks
    if not live.size or not len(tables):
        unbought = math.sqrt(float(errors.sum()))
        return Design({}, unbought, unbought)
    given = programme.informed(tables)
    parts = programme.settled(given, np.full(len(tables), 1.0 / len(tables)))
    for _ in range(GROWTHS):
        grown = programme.grown(tables, parts)
        if not len(grown):
            break
        used = np.flatnonzero((parts > UNUSED) | laplace)
        tables = np.concatenate([tables[used], grown])
        given = programme.informed(tables)
        share = parts[used].sum() / len(grown) / 2
        parts = programme.settled(given, np.concatenate([parts[used], np.full(len(grown), share)]))
    if laplace:
        parts = programme.squared(given, parts / parts.sum())
    ranked = np.argsort(-parts, kind="stable")[:MOST_TABLES]
    ranked = ranked[parts[ranked] > UNUSED]
    tables, parts = tables[ranked], parts[ranked] / parts[ranked].sum()
    bought = budget * (parts**2 if laplace else parts)
    given = programme.informed(tables)
    keys = [
        tuple((int(axis), int(level)) for axis, level in zip(live, row, strict=True) if level)
        for row in tables
    ]
    return Design(
        dict(zip(keys, parts.tolist(), strict=True)),
        programme.error(given, 0.0 * bought),
        programme.error(given, bought),
    )
