"""What to buy next, by what is asked: tables that lower the error of the questions expected by most.

The rule looks at public facts alone: the questions asked, what was released, and what is left. It weighs
every subspace of levels by what questions ask of it (`interactions.demand`), expects of each the size that
released tables suggest (`interactions.sizes`), and divides an instalment between tables so that

    sum over subspaces of  weight / (1 / size + precision bought + precision to buy)

is least. Of Gaussian tables the precision is what they cost, and this is a convex programme, solved by a few
hundred multiplicative steps. Of Laplace ones it is the square of that, so few tables are best, which steps
find from the convex solution, or by choosing one after another. Instalments grow with the number of questions
asked, so that a few questions cost little and many have everything.

Proof: docs/theory/session.md, 4.9a.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.neighbours import Neighbours
from onlineic.accounting.renyi import TICK
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, shown
from onlineic.interactions.demand import Asked, Axes, Demand, asked_axes, asked_of
from onlineic.interactions.levels import Levels, levels_of
from onlineic.interactions.sizes import Key, Sizes, Table, informed, rows_of, table_of, told_by
from onlineic.ledger.records import Easy, EasyBatch, Hard, Opened, Record
from onlineic.plan.defaults import PARTS_AT_MOST
from onlineic.plan.first_tables import FirstTables, least_gaussian, least_laplace
from onlineic.plan.purchases import Facts, PurchaseRule
from onlineic.queries.marginals import Question
from onlineic.queries.partitions import Measurement
from onlineic.queries.reach import Reach

MANY_CELLS = 10_000  # of the tables of all pairs together, or of all, from which on the default listens ..
MANY_RECORDS = 2e5  # .. or of records times epsilon
INSTALMENT = Fraction(1, 50)  # of all purchases: less is not worth a release and a fit of its own
THIRD = 1 / 3  # of its error, which is the most that tables of its own leave a publicly hard question

# what a programme is cut to, so that it takes a second at most
MOST_BLOCKS = 2**16  # of a table that is bought
MOST_TABLES, MOST_CANDIDATES = 200, 1000
LEAST_SUBSPACES, MOST_SUBSPACES, NEARLY_ALL = 50, 1500, 0.9995  # of the error
STEPS = 150  # multiplicative ones: of a thousand the error is no less by a thousandth
GROWTHS, MOST_GROWN = 2, 60  # rounds in which tables grow, and how many do in each
UNUSED = 1e-4  # part of the budget of a table that is left out


@final
@attrs.frozen(eq=False)
class Listened:
    """What a record has asked and bought, as far as purchases go by it.

    Attributes
    ----------
    asked : tuple of Asked
        Of the first questions that were tested, oldest first.
    sets : frozenset of tuple of int
        Sets of attributes among them.
    held : Held or None
        What purchases have released.
    spent : Fraction
        By purchases, in the unit of the account.
    """

    asked: tuple[Asked, ...] = ()
    sets: frozenset[Axes] = frozenset()
    held: "Held | None" = None
    spent: Fraction = Fraction(0)


@final
@attrs.frozen(eq=False)
class Held:
    """Released tables, and the sizes of interactions that they suggest.

    Attributes
    ----------
    measurements : tuple of Measurement
        Oldest first.
    """

    measurements: tuple[Measurement, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables at levels, those bought again in their mean."""
        return told_by(self.measurements[0].target.domain, self.measurements)[0]

    @cached_property
    def sizes(self) -> Sizes:
        """Worked out once: the rule asks at each new set of attributes."""
        return told_by(self.measurements[0].target.domain, self.measurements)[1]

    @cached_property
    def precisions(self) -> tuple[Ints, Floats]:
        """The tables as rows of levels, (tables, attributes), and the precision of each."""
        width = len(self.measurements[0].target.domain.shape)
        precisions = np.array([table.precision for table in self.tables])
        return rows_of([table.key for table in self.tables], width), precisions


@final
@attrs.frozen
class DemandPurchases(PurchaseRule[Listened]):
    """Instalments as questions come, and tables for a question that is publicly hard.

    An instalment is bought at the first question and each time that four times as many were asked. Questions
    that come in one call are all heard before the first of them is answered. Between two instalments a
    question over attributes that were not asked together before buys by itself, from what is left, if that
    leaves a third of its own expected error.

    Parameters
    ----------
    share : Fraction, in (0, 1]
        Of the account, for all purchases together.
    after : tuple of int
        Questions after which an instalment is bought, rising; the first one comes before the first question.
    parts : tuple of Fraction
        Of that, which are spent by then; the last one is 1.
    one : Fraction, in (0, 1]
        Of what is left, for a question that is publicly hard.
    announced : tuple of tuple of int
        Sets of attributes that will be asked, as places in the domain, if they were told.
    reach : Reach, optional
        Which sets can be counted: tables of others are not bought.

    Raises
    ------
    InvalidParameterError
        If a share is outside its range, or counts or parts do not rise.
    """

    share: Fraction = Fraction(9, 10)
    after: tuple[int, ...] = (1, 4, 16, 64, 256)
    parts: tuple[Fraction, ...] = tuple(Fraction(part, 20) for part in (8, 13, 16, 18, 20))
    one: Fraction = Fraction(1, 8)
    announced: tuple[Axes, ...] = ()
    reach: Reach | None = attrs.field(default=None, metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        counts, parts = self.after, (Fraction(0), *self.parts)
        rising = all(one < other for one, other in itertools.pairwise(parts))
        counted = counts[:1] == (1,) and all(one < other for one, other in itertools.pairwise(counts))
        if not (0 < self.share <= 1 and 0 < self.one <= 1 and counted and rising and parts[-1] == 1):
            raise InvalidParameterError(
                "purchases must have shares in (0, 1], and counts and parts that rise, from 1 and to 1, got "
                f"share={shown(self.share)}, after={shown(self.after)}, parts={shown(self.parts)}, one="
                f"{shown(self.one)}; leave out what you do not need."
            )
        if len(counts) != len(self.parts):
            raise InvalidParameterError(
                f"purchases must have one part for each count, got {len(counts)} counts and "
                f"{len(self.parts)} parts; give as many."
            )

    @classmethod
    def of(cls, announced: tuple[Axes, ...], reach: Reach | None = None) -> "DemandPurchases":
        """Return the rule for questions that were announced: nearly all is bought with the first of them."""
        if not announced:
            return cls(reach=reach)
        return cls(after=(1, 64), parts=(Fraction(9, 10), Fraction(1)), announced=announced, reach=reach)

    def planned(self, account: Filter) -> Fraction:
        return self.share * account.capacity

    def start(self) -> Listened:
        return Listened()

    def heard(self, so_far: Listened, record: Record) -> Listened:
        if isinstance(record, Opened):
            before = so_far.held.measurements if so_far.held else ()
            held, spent = Held((*before, *record.measurements)), so_far.spent + record.charge.amount
            return attrs.evolve(so_far, held=held, spent=spent)
        questions: Iterable[Question] = ()
        if isinstance(record, EasyBatch):
            questions = record.queries
        elif isinstance(record, Easy | Hard):
            questions = (record.query,)
        more = tuple(map(asked_of, itertools.islice(questions, max(0, self.after[-1] - len(so_far.asked)))))
        if not more:
            return so_far
        sets = so_far.sets.union(one.axes for one in more)
        return attrs.evolve(so_far, asked=so_far.asked + more, sets=sets)

    def hears(self, heard: Listened) -> int:
        return max(1, self.after[-1] - len(heard.asked))

    def due_at(self, heard: Listened, questions: Iterable[Question]) -> int | None:
        told = len(heard.asked)
        if told >= self.after[-1]:
            return None  # all is bought, or will be with the next question
        milestone = next(count for count in self.after if count > told) - told
        sets = heard.sets
        for place, question in enumerate(questions):
            axes = asked_axes(question)
            if place and axes not in sets:
                return place
            if place + 1 == milestone:  # even behind the last: one asked again there is answered anew
                return milestone
            sets = sets | {axes}
        return None

    def owed(self, heard: Listened, account: Filter) -> Fraction:
        left = self.planned(account) - heard.spent if len(heard.asked) < self.after[-1] else Fraction(0)
        return min(max(Fraction(0), left), account.left)

    def next(self, facts: Facts[Listened]) -> FirstTables | None:
        heard, question, order = facts.heard, facts.question, facts.account.order
        asked, planned = [one for one in facts.questions if one.constant is None], self.planned(facts.account)
        told, least = len(heard.asked) + max(0, len(asked) - 1), INSTALMENT * planned
        if planned - heard.spent <= least or (question and not asked):
            return None
        reached = [part for part, after in zip(self.parts, self.after, strict=True) if after <= told]
        # the first instalment tells how large interactions are, which the next one goes by
        due, kept = (reached[-1] if reached and heard.held else self.parts[0]) * planned - heard.spent, 1.0
        if due > least:
            # of one question at a time later instalments go by the record alone: one asked again has none
            more = map(asked_of, asked) if len(asked) > 1 or not told else ()
            demand = Demand.of(facts.domain, [*heard.asked, *more], self.announced)
        elif question is None or asked_axes(question) in heard.sets:
            return None
        else:
            due, kept = (planned - heard.spent) * self.one, THIRD
            demand = Demand.of_one(facts.domain, asked_of(question))
        most = min(due, facts.account.left)
        if most <= 0:
            return None
        budget = _precision(facts.account, most, facts.neighbours) * facts.n**2
        design = cheapest(facts.domain, demand, heard.held, budget, self.reach, kept, laplace=order is None)
        if design.after > kept * design.before:
            return None
        return _priced(facts, design, most)


def pays_to_listen(domain: Domain, n: int, budget: Budget, *, cells: bool = False) -> bool:
    """Return whether tables are bought by what is asked, where nobody settled it, in the place of all pairs.

    Or in the place of all `cells`, if these are many: long ranges sum the noise of many of them.

    Of many attributes most pairs are never asked, and of many records pairs do not hold what can be known:
    there errors halve. Elsewhere tables that are fixed beforehand err by a tenth less, and are one release.
    """
    parts = np.array([min(size, PARTS_AT_MOST) for size in domain.shape if size > 1], np.float64)
    of_pairs = (parts.sum() ** 2 - (parts**2).sum()) / 2.0
    if cells:  # one table has less Laplace noise than several that cost as much
        return not budget.pure and domain.size >= MANY_CELLS and n * budget.epsilon >= MANY_RECORDS
    return bool(of_pairs >= MANY_CELLS or n * budget.epsilon >= MANY_RECORDS)


def _precision(account: Filter, most: Fraction, neighbours: Neighbours) -> float:
    """Return one over the variance, records, of a table for so much in the unit of the account, roughly."""
    if account.order is None:  # Laplace noise, of scale L1 / epsilon
        return float(most / neighbours.table_l1()) ** 2 / 2.0
    # sigma records cost order L / (2 sigma^2) in divergence, L the squared sensitivity of a table
    return float(2 * most * TICK / (account.order * neighbours.table_squared()))


def _priced(facts: Facts[Listened], design: "Design", most: Fraction) -> FirstTables | None:
    """Return the tables of a design with the least noise that so much pays, if it can be drawn."""
    account, neighbours = facts.account, facts.neighbours
    whole = max(Fraction(1), sum(map(Fraction, design.parts.values()), Fraction(0)))  # floats round up, too
    parts = [Fraction(part) / whole for part in design.parts.values()]
    order, pure = account.order, account.order is None
    scales = [
        least_laplace(most * part, neighbours)
        if order is None
        else least_gaussian(order, most * part, neighbours)
        for part in parts
    ]
    bought = [
        (table_of(facts.domain, key), scale)
        for key, scale in zip(design.parts, scales, strict=True)
        if scale is not None
    ]
    if not bought:
        return None
    unpaid = Charge(most, f"{len(bought)} tables", account.unit, order)
    tables = FirstTables(
        tuple(one for one, _ in bought),
        tuple(scale for _, scale in bought),
        unpaid,
        pure,
        neighbours=neighbours,
    )
    return attrs.evolve(tables, charge=attrs.evolve(unpaid, amount=tables.cost))


@final
@attrs.frozen
class Design:
    """Tables to buy, and the root of the mean squared error expected without and with them, fractions.

    Attributes
    ----------
    parts : dict of Key to float
        Of the budget, largest first.
    before, after : float
    """

    parts: dict[Key, float]
    before: float
    after: float


@final
@attrs.frozen(eq=False)
class _Programme:
    """Which tables lower the squared error of a demand by most, beside what is known.

    Attributes
    ----------
    levels : tuple of Levels
    subspaces : int64 array, (subspaces, attributes)
    weights, known : float64 arrays, (subspaces,)
        What questions ask of each, and one over its size with the precision of what was bought.
    budget : float
        Precision of a table that gets all.
    counted : (levels of a table) -> bool, optional
        Whether its attributes can be counted together; None: any can.
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

    def least(self, budget: float) -> float:
        """Return what no division of a budget takes the error below: all of it tells each subspace."""
        return math.sqrt(float((self.weights / (self.known + budget)).sum()))

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

    def reached(self, row: Ints, slopes: Floats) -> Floats:
        """Return the slope of a table with one more level of each attribute, 0 where it cannot be had."""
        finest, parts, own = self._depths
        axes, given = np.arange(len(row)), np.zeros(self.subspaces.shape)
        now, more = parts[axes, row], parts[axes, np.minimum(row + 1, finest)]
        wanting = self.subspaces > row  # the table says nothing of a subspace, for want of this attribute
        count, told = np.count_nonzero(wanting, axis=1), row > 0
        # one level more makes up for one such attribute: of many subspaces most want more
        held, near = np.flatnonzero(count == 0), np.flatnonzero(count == 1)
        factors = own[held] / now
        given[held] = factors.prod(axis=1)[:, None] / factors * (own[held] / more)
        axis = wanting[near].argmax(axis=1)
        shared = np.where(wanting[near][:, told], 1.0, own[near][:, told] / now[told]).prod(axis=1)
        able = self.subspaces[near, axis] == row[axis] + 1
        given[near, axis] = np.where(able, shared * (own[near, axis] / more[axis]), 0.0)
        drawn = (row < finest) & (now.prod(dtype=float) / now * more <= MOST_BLOCKS)
        if self.counted is not None:
            drawn &= np.array([self.counted(row + (axes == axis)) for axis in axes], np.bool_)
        return np.asarray(np.where(drawn, given.T @ slopes, 0.0))

    def grown(self, tables: Ints, parts: Floats) -> Ints:
        """Return tables made of the best ones by more attributes and levels, while their slope rises."""
        given = self.informed(tables)
        slopes = self.slopes(given, self.budget * parts)
        best, found = float((given.T @ slopes).max()), dict[bytes, Ints]()
        present = {row.tobytes() for row in tables}
        for place in np.argsort(-parts, kind="stable")[:MOST_GROWN]:
            row, slope = tables[place], 0.0
            while (reached := self.reached(row, slopes)).max() > slope:
                slope = float(reached.max())
                row = row + (np.arange(len(row)) == int(np.argmax(reached)))
                if slope > best and row.tobytes() not in present:
                    found[row.tobytes()] = row
        return np.array([*found.values()], np.int64).reshape(-1, tables.shape[1])


def cheapest(
    domain: Domain,
    demand: Demand,
    held: Held | None,
    budget: float,
    reach: Reach | None = None,
    kept: float = 1.0,
    *,
    laplace: bool = False,
) -> Design:
    """Return which tables to buy at this budget.

    Parameters
    ----------
    budget : float
        Precision of a table that gets all of it: 1 / variance, fractions of records.
    reach : Reach, optional
        Which sets of attributes can be counted.
    kept : float
        Part of its error that the design is to leave at most: one that certainly leaves more is not made.
    laplace : bool
        Whether the precision of a table goes with the square of its part, and not with its part.
    """
    levels = levels_of(domain)
    known = 1.0 / (held.sizes if held else Sizes.learned(domain, ())).squares(demand.subspaces)
    if held:
        rows, precisions = held.precisions
        known = known + informed(levels, demand.subspaces, rows) @ precisions
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
    if programme.least(budget) > kept * programme.least(0.0):
        return Design({}, programme.least(0.0), programme.least(budget))
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
