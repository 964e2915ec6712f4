"""What a stream asks of a table: the weight of every subspace in the squared error of its answers.

A question is a product of weight vectors, so what it asks of a subspace is a product too. Questions to come
are expected to be like those asked: over the same sets of attributes, or, with the chance that a set is new
(Good 1953), of as many attributes, mostly of those asked, with conditions drawn from theirs.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, checked_list, shown
from onlineic.interactions.levels import Levels, energies_of, levels_of
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.query import Query
from onlineic.queries.tables import spread

MOST_ORDER = 3  # attributes of a question that is expected, at most
MOST_SETS = 3000  # sets of attributes that are expected, at most: all up to three of 26 attributes
MOST_JOINT = 2**16  # cells of a joint weight table whose levels are told apart
MOST_TOLD = 2**12  # combinations of levels of one question: a programme takes in no more of all of them

Axes = tuple[int, ...]


@final
@attrs.frozen
class Expected:
    """What announced questions ask of one set of attributes.

    Attributes:
        axes: Whose levels are told apart, rising.
        share: Of all that was announced.
        energies: What they ask of each combination of levels in the mean, that of the last attribute fastest.
    """

    axes: Axes
    share: float
    energies: tuple[float, ...]


def checked_axes(told: object) -> Axes:
    """Return the places of a set of attributes, or raise `InvalidParameterError`."""
    axes = tuple(checked_list("announced", told, of="places of attributes"))
    whole = all(type(axis) is int and axis >= 0 for axis in axes)
    if whole and axes and all(one < other for one, other in itertools.pairwise(axes)):
        return axes
    raise InvalidParameterError(
        f"announced must hold rising places of attributes in the domain, got {shown(told)}; write (0, 2), or "
        "give names to questions= of a session."
    )


def expected_of(domain: Domain, questions: Iterable[Question], most: int) -> tuple[Expected, ...]:
    """Return what these questions ask together, set by set, if all are asked alike.

    Args:
        most: Combinations of levels that are told apart of a set, at most.
    """
    held: dict[Axes, list[Floats]] = {}
    asked = [asked_of(one, most) for one in questions if one.constant is None]
    for one in asked:
        held.setdefault(one.told, []).append(one.energies)
    return tuple(
        Expected(axes, len(found) / len(asked), tuple(np.mean(found, axis=0).ravel().tolist()))
        for axes, found in sorted(held.items())
    )


@final
@attrs.frozen(eq=False)
class Asked:
    """One question: what it asks of the levels of its attributes.

    Attributes:
        axes: Rising.
        told: Those whose levels are told apart, rising: all, or of very many the first ones.
        energies: One axis an attribute of `told`, one entry a level.
        conditions: Each of shape (levels,). The same of the condition on each attribute by itself.
    """

    axes: Axes
    told: Axes
    energies: Floats
    conditions: tuple[Floats, ...]


def asked_of(question: Question, most: int = MOST_TOLD) -> Asked:
    """Return what a question asks; of a cross table, what one of its cells does in the mean.

    Args:
        most: Combinations of levels that are told apart, at most.
    """
    if isinstance(question, BoundMarginal):
        return _of_table(question, most)
    return _of_query(question, most)


def asked_axes(question: Question) -> Axes:
    """Return the attributes that a question asks of, rising."""
    return question.partition.axes if isinstance(question, BoundMarginal) else question.axes


def _of_query(query: Query, most: int) -> Asked:
    levels = levels_of(query.domain)
    grids = {axis: grid for axis in query.axes if (grid := levels[axis].grid) is not None}
    parts: list[tuple[Axes, Floats]] = []
    for factor in query.factors:
        if len(factor.axes) == 1:
            found = energies_of(levels[factor.axes[0]], factor)
        else:
            found = _energies([levels[axis] for axis in factor.axes], factor.means(query.domain, grids))
        parts.append((factor.axes, found))
    return _product(parts, most)


def _of_table(question: BoundMarginal, most: int) -> Asked:
    partition = question.partition
    levels = levels_of(partition.domain)
    parts: list[tuple[Axes, Floats]] = []
    for axis, cut in zip(partition.axes, partition.cuts, strict=True):
        one = levels[axis]
        some = np.unique(np.linspace(0, cut.parts - 1, min(cut.parts, 16)).astype(np.int64))
        if one.grid is None:
            held = [(cut.codes == block).astype(np.float64) for block in some]
        else:
            held = [one.grid.inside(*cut.range_of(block)) for block in some]
        found = [one.energies(weights) for weights in held]
        parts.append(((axis,), np.asarray(np.mean(found, axis=0))))
    return _product(parts, most)


def _energies(levels: Sequence[Levels], weights: Floats) -> Floats:
    """Return the sums of squares of a weight table by level of every axis."""
    if weights.size > MOST_JOINT:  # as if its codes were asked one by one
        found = np.ones(())
        for one in levels:
            found = np.multiply.outer(found, one.energies(np.eye(1, one.parts[-1])[0]))
        return np.asarray(found)
    energies = np.zeros([len(one.parts) for one in levels])

    def fill(told: Floats, place: tuple[int, ...]) -> None:
        # combinations that begin alike are made from one table
        if len(place) == len(levels):
            energies[place] = float((told**2).sum())
            return
        axis, one = len(place), levels[len(place)]
        for level in range(len(one.parts)):
            fill(one.beyond(told, level, axis), (*place, level))

    fill(weights, ())
    return energies


def _product(parts: Sequence[tuple[Axes, Floats]], most: int) -> Asked:
    """Return what a product asks; of very many attributes, where all but the first ones take no part."""
    told, cells, rest, conditions = list[tuple[Axes, Floats]](), 1, 1.0, dict[int, Floats]()
    for held, found in parts:
        total = max(float(found.sum()), math.ulp(0.0))
        for place, axis in enumerate(held):  # of a joint table each attribute's part, of an equal size
            alone = found.sum(axis=tuple(other for other in range(len(held)) if other != place))
            conditions[axis] = alone / total * total ** (1.0 / len(held))
        if found.size > 1 and cells * found.size <= most:
            told.append((held, found))
            cells *= found.size
        else:
            rest *= float(found.flat[0])
    axes = tuple(sorted(itertools.chain.from_iterable(held for held, _ in told)))
    energies = np.full((1,) * len(axes), rest)
    for held, found in told:
        energies = energies * spread(found, tuple(axes.index(axis) for axis in held), len(axes))
    asked = tuple(sorted(conditions))
    return Asked(asked, axes, np.asarray(energies), tuple(conditions[axis] for axis in asked))


@final
@attrs.frozen(eq=False)
class Demand:
    """Weights of subspaces in the mean squared error of the questions expected.

    Attributes:
        subspaces: Shape (subspaces, attributes). The level of each attribute; 0 where it takes no part.
        weights: Shape (subspaces,). A question's error is the sum of weight times the variance of what is
            known of a subspace, records.
    """

    subspaces: Ints
    weights: Floats

    @classmethod
    def of(
        cls,
        domain: Domain,
        asked: Sequence[Asked],
        announced: Iterable[Axes] = (),
        expected: Sequence[Expected] = (),
    ) -> "Demand":
        """Return what is expected after these questions.

        Args:
            announced: Sets of attributes that will be asked: with some given, none but these and the asked
                are expected. Each keeps its share until it was asked.
            expected: What announced questions ask, in the place of conditions like any.
        """
        found: dict[Axes, Floats] = {}
        told = [*announced]
        times = Counter(one.axes for one in asked)
        made = _chance_of_new(times)

        def add(axes: Axes, energies: Floats, weight: float) -> None:
            found[axes] = found.get(axes, 0.0) + weight * energies

        usual = _usual(domain, asked)
        likely = _sets(domain, asked) if not told else {axes: 1.0 / len(told) for axes in told}
        products: dict[Axes, Floats] = {(): np.ones(())}  # sets begin alike

        def product(axes: Axes) -> Floats:
            known = products.get(axes)
            if known is None:
                known = products[axes] = np.multiply.outer(product(axes[:-1]), usual[axes[-1]])
            return known

        levels, listed = levels_of(domain), {one.axes: one for one in expected}
        likely |= {one.axes: one.share for one in expected}
        # what was announced and not asked yet waits, beside sets that were asked though nobody announced them
        waits = {axes: bool(told) and axes not in times for axes in likely}
        if told:
            part = len(likely) / (len(likely) + sum(axes not in likely for axes in times))
            likely = {axes: part * share for axes, share in likely.items()}
        kept = sum(share for axes, share in likely.items() if waits[axes])
        again = made * (1.0 - kept) / max(1e-300, sum(likely.values()) - kept)
        for one in asked:
            add(one.told, one.energies, (1.0 - kept) * (1.0 - made) / len(asked))
        for axes, share in likely.items():
            energies = product(axes) if axes not in listed else np.reshape(
                listed[axes].energies, [len(levels[axis].parts) for axis in axes]
            )  # fmt: skip
            add(axes, energies, share if waits[axes] else again * share)
        return cls._of(len(domain.shape), found)

    @classmethod
    def of_these(cls, domain: Domain, asked: Sequence[Asked]) -> "Demand":
        """Return what these questions ask, in the mean, and no others."""
        found: dict[Axes, Floats] = {}
        for one in asked:
            found[one.told] = found.get(one.told, 0.0) + one.energies / len(asked)
        return cls._of(len(domain.shape), found)

    @classmethod
    def _of(cls, width: int, found: Mapping[Axes, Floats]) -> "Demand":
        held: dict[tuple[tuple[int, int], ...], float] = {}
        known: dict[tuple[int, ...], Sequence[Axes]] = {}  # of a wide table thousands of sets have one shape
        for axes, energies in found.items():
            if not axes:  # of attributes of one code: nothing is asked
                continue
            if energies.shape not in known:
                known[energies.shape] = [*itertools.product(*map(range, energies.shape))]
            for place, energy in zip(known[energies.shape], energies.ravel().tolist(), strict=True):
                if energy:
                    key = tuple([(axis, level) for axis, level in zip(axes, place, strict=True) if level])
                    if key:
                        held[key] = held.get(key, 0.0) + energy
        subspaces = np.zeros((len(held), width), np.int64)
        rows = [row for row, key in enumerate(held) for _ in key]
        ends = [*itertools.chain.from_iterable(held)]
        if ends:
            axes, levels = zip(*ends, strict=True)
            subspaces[rows, axes] = levels
        return cls(subspaces, np.array([*held.values()], np.float64))


def _usual(domain: Domain, asked: Sequence[Asked]) -> list[Floats]:
    """Return the mean energies of the conditions on each attribute: of those asked, or of all."""
    held: dict[int, list[Floats]] = {}
    for one in asked:
        for axis, energies in zip(one.axes, one.conditions, strict=True):
            held.setdefault(axis, []).append(energies)
    return [
        np.asarray(np.mean(held[axis], axis=0)) if axis in held else one.usual()
        for axis, one in enumerate(levels_of(domain))
    ]


def _chance_of_new(times: Mapping[Any, int]) -> float:
    """Return the chance that what is asked next was not asked before, by how often each was; 1 before any.

    The share of those that were asked once, and one more that is new (Good 1953).
    """
    once = sum(count == 1 for count in times.values())
    return (1.0 + once) / (1.0 + sum(times.values()))


def _sets(domain: Domain, asked: Sequence[Asked]) -> dict[Axes, float]:
    """Return the likeliest sets of attributes of a question to come, with their shares.

    Attributes are drawn as often as they were asked, and others with the chance that one is new; so many at a
    time as were asked together, with one question's worth over one, two and three.
    """
    live = [axis for axis, size in enumerate(domain.shape) if size > 1]
    counts = dict.fromkeys(live, 1.0)
    orders = np.full(min(MOST_ORDER, max(1, len(live))), 1.0 / MOST_ORDER)
    times = Counter(axis for one in asked for axis in one.axes if axis in counts)
    for axis in live if times else ():
        new = _chance_of_new(times) * times.total() / max(1, len(live) - len(times))
        counts[axis] = float(times[axis]) if axis in times else new
    for one in asked:
        if one.axes:
            orders[min(len(one.axes), len(orders)) - 1] += 1.0
    orders = orders / orders.sum()
    ranked = sorted(live, key=lambda axis: (-counts[axis], axis))
    found: dict[Axes, float] = {}
    for order, share in enumerate(orders.tolist(), 1):
        # the likeliest sets lie among the likeliest attributes
        most = next(
            (size for size in range(len(ranked), order - 1, -1) if math.comb(size, order) <= MOST_SETS), order
        )
        sets = [*itertools.combinations(ranked[:most], order)]
        worth = np.array([math.prod(counts[axis] for axis in axes) for axes in sets])
        for axes, part in zip(sets, (share * worth / worth.sum()).tolist(), strict=True):
            found[tuple(sorted(axes))] = found.get(tuple(sorted(axes)), 0.0) + part
    return found
