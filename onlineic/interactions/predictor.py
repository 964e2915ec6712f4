"""What a question is expected to err by: released noise exactly, the rest by how large interactions are.

A fit to all released tables knows a subspace of levels with the precision of its noise, and takes what that
noise hides to be as large as interactions of its kind are. So the squared error of a question is the sum over
subspaces of what it asks of each, divided by one over the size with the precision that was bought.

Proof: docs/theory/session.md, 4.9b.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.interactions.demand import MOST_JOINT, Axes, Demand, asked_axes, asked_of
from onlineic.interactions.levels import MOST_KEPT, Levels, energies_of, energies_of_range, levels_of
from onlineic.interactions.sizes import (
    Key,
    Sizes,
    Table,
    informed,
    known_at,
    rows_of,
    told_by,
)
from onlineic.queries.batch import Queries
from onlineic.queries.cuts import Cut
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Factor, Query

AT_ONCE = 256  # parts of an attribute whose weights are held at once


@final
@attrs.frozen(eq=False)
class Predictor:
    """The predicted error of questions, from public facts alone; nothing promises it.

    Attributes:
        releases: What each purchase has released, oldest first. A table that is not cut at levels says about
            what one at the levels of about as many parts would.
        planned: Levels and precision of tables that are not bought yet: their noise is known, not what they
            will say.
    """

    domain: Domain
    releases: tuple[tuple[Measurement, ...], ...] = ()
    planned: tuple[tuple[Key, float], ...] = ()
    _variances: dict[Axes, Floats] = attrs.field(factory=dict, init=False)
    _precisions: dict[Axes, Floats] = attrs.field(factory=dict, init=False)  # that tables have of levels
    _squares: dict[Axes, Floats] = attrs.field(factory=dict, init=False)  # expected of levels
    _spreads: dict[Any, Floats] = attrs.field(factory=dict, init=False)  # of conditions, by their keys
    _before: "Predictor | None" = attrs.field(default=None, init=False)  # what this is with more planned

    def after(self, released: Sequence[Measurement]) -> "Predictor":
        """Return the predictor after one more purchase."""
        return Predictor(self.domain, (*self.releases, tuple(released)))

    def expecting(self, tables: Iterable[tuple[Partition, float]]) -> "Predictor":
        """Return what is known once tables were bought, each with this deviation of its noise."""
        return self.with_planned(known_at(table, deviation) for table, deviation in tables)

    def with_planned(self, tables: Iterable[tuple[Key, float]]) -> "Predictor":
        """Return the same by levels of tables, and their precision."""
        other = attrs.evolve(self, planned=(*self.planned, *(one for one in tables if one[0])))
        object.__setattr__(other, "_before", self)
        object.__setattr__(other, "_told", self._told)
        object.__setattr__(other, "_rows", self._rows)
        object.__setattr__(other, "_squares", self._squares)
        object.__setattr__(other, "_spreads", self._spreads)
        return other

    @property
    def sizes(self) -> Sizes:
        """How large interactions are, by all that was released."""
        return self._told[1]

    @cached_property
    def _told(self) -> tuple[Sequence[Table], Sizes]:
        return told_by(self.domain, tuple(itertools.chain.from_iterable(self.releases)))

    @cached_property
    def _rows(self) -> tuple[Ints, Floats]:
        """Released tables as rows of levels, (tables, attributes), and precisions."""
        tables = self._told[0]
        rows = rows_of([table.key for table in tables], len(self.domain.shape))
        return rows, np.array([table.precision for table in tables])

    def known(self, subspaces: Ints) -> Floats:
        """Return one over the variance of what is known of each subspace, (subspaces,).

        Args:
            subspaces: Shape (subspaces, attributes). The level of each attribute; 0 where it takes no part.
        """
        return np.asarray(1.0 / self.sizes.squares(subspaces) + self._measured(subspaces))

    def _measured(self, subspaces: Ints) -> Floats:
        """Return the precision with which tables have measured each subspace, (subspaces,)."""
        rows, precisions = self._rows
        if self.planned:
            more = rows_of([key for key, _ in self.planned], len(self.domain.shape))
            rows = np.vstack([rows, more])
            precisions = np.append(precisions, [precision for _, precision in self.planned])
        if not len(rows):
            return np.zeros(len(subspaces))
        return np.asarray(informed(levels_of(self.domain), subspaces, rows) @ precisions)

    def error(self, question: Question) -> float:
        """Return the expected root-mean-square error of the answer to a question, fraction of records.

        By the masses of the very values that are asked: interactions of a block are taken to be as large as
        its share of records lets them be, so about rare values little is unknown. Of what is no product of
        conditions it is `error_in_the_mean`. Of a cross table that of one of its cells in the mean; 1 of a
        question over so many attributes that their levels are not told apart.
        """
        if isinstance(question, BoundMarginal):
            cells = self.cells(question.partition)
            return 1.0 if cells is None else math.sqrt(float((cells**2).mean()))
        each = self._asked(question)
        if each is None:
            return self.error_in_the_mean(question)
        squares = self._by_mass(question.axes, each, np.zeros((1, len(each)), np.int64))
        return 1.0 if squares is None else math.sqrt(float(squares[0]))

    def errors(self, queries: Queries) -> Floats:
        """Return the same of many queries, (m,)."""
        result = np.zeros(len(queries))
        for place, query in queries.others:
            result[place] = self.error(query)
        for group in queries.boxes:
            each, rows = list[tuple[Floats, Floats]](), np.zeros(group.low.shape, np.int64)
            for place, axis in enumerate(group.axes):
                ends = np.stack([group.low[:, place], group.high[:, place]], axis=1)
                ends, which = np.unique(ends, axis=0, return_inverse=True)
                rows[:, place] = which.reshape(-1)
                held = zip(*[self._of_range(axis, low, high) for low, high in ends.tolist()], strict=True)
                energies, spreads = map(np.vstack, held)
                each.append((energies, spreads))
            squares = self._by_mass(group.axes, each, rows)
            result[group.places] = 1.0 if squares is None else np.sqrt(squares)
        return result

    def cells(self, partition: Partition) -> Floats | None:
        """Return the same of every block, of the partition's shape; None of levels not told apart."""
        if self._rows_over(partition.axes) is None:
            return None
        each = []
        for axis, cut in zip(partition.axes, partition.cuts, strict=True):
            one, masses = levels_of(self.domain)[axis], self.sizes.margins[axis]
            spreads = _of_parts(one, cut, partial(one.spread, masses=masses)) * np.array(
                one.parts, np.float64
            )
            each.append((_of_parts(one, cut, one.energies), spreads))
        rows = np.indices(partition.shape).reshape(len(each), -1).T
        squares = self._by_mass(partition.axes, each, rows)
        return None if squares is None else np.sqrt(squares).reshape(partition.shape)

    def _by_mass(self, axes: Axes, each: Sequence[tuple[Floats, Floats]], rows: Ints) -> Floats | None:
        """Return the squared errors of questions, (m,); None of too many levels.

        Args:
            each: By attribute what conditions ask of each level, and what part of their mean square it
                explains times its parts: each of shape (conditions, levels).
            rows: Shape (m, axes). Which of the conditions each question has.
        """
        precisions = self._measured_over(axes)
        if precisions is None:
            return None
        # the masses of mean blocks: for level 0 they are 1. Of all records together nothing is unknown
        squares = np.append(0.0, self._squares_over(axes)[1:])
        result, step = np.zeros(len(rows)), max(1, MOST_JOINT // len(squares))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            asked, unknown = np.ones((len(some), 1)), np.ones((len(some), 1))
            for place, (energies, spreads) in enumerate(each):
                which = some[:, place]
                asked = (asked[:, :, None] * energies[which][:, None, :]).reshape(len(some), -1)
                unknown = (unknown[:, :, None] * spreads[which][:, None, :]).reshape(len(some), -1)
            unknown *= squares
            least = asked + unknown * precisions  # no level of which nothing is asked
            held = np.divide(unknown * asked, least, out=np.zeros_like(least), where=least > 0.0)
            result[start : start + step] = held.sum(axis=1)
        return result

    def _asked(self, query: Query) -> list[tuple[Floats, Floats]] | None:
        """Return energies and spreads of each condition, (1, levels); None of weights held together."""
        if query.box is not None:  # without making factors of it
            ends = zip(query.axes, *query.box, strict=True)
            return [self._of_range(axis, low, high) for axis, low, high in ends]
        if len(query.factors) < len(query.axes):
            return None
        return [self._of_factor(one) for one in query.factors]

    def _of_factor(self, factor: Factor) -> tuple[Floats, Floats]:
        """Return what a condition asks of each level, and what part of its mean square, times its parts."""
        (axis,) = factor.axes
        if factor.table is None:
            return self._of_range(axis, factor.low, factor.high)
        one = levels_of(self.domain)[axis]
        grids = {} if one.grid is None else {axis: one.grid}
        weights = factor.means(self.domain, grids)
        key = axis, factor.bits, factor.table.tobytes()
        return energies_of(one, factor)[None], self._spread(axis, key, lambda: weights)

    def _of_range(self, axis: int, low: int, high: int) -> tuple[Floats, Floats]:
        """Return the same of a half-open range of codes."""
        one = levels_of(self.domain)[axis]
        finest = one.cut(one.finest)
        spread = self._spread(axis, (axis, low, high), lambda: finest.inside(low, high))
        return energies_of_range(one, low, high)[None], spread

    def _spread(self, axis: int, key: Any, weights: Callable[[], Floats]) -> Floats:
        known = self._spreads.get(key)  # other threads ask too: what one puts in another may clear
        if known is None:
            one = levels_of(self.domain)[axis]
            if len(self._spreads) >= MOST_KEPT:
                self._spreads.clear()
            found = one.spread(weights(), self.sizes.margins[axis]) * np.array(one.parts, np.float64)
            known = self._spreads[key] = found[None]
        return known

    def error_in_the_mean(self, question: Question) -> float:
        """Return the same as `error`, by the mean block of each level, whichever values are asked.

        What is bought without a wish, and what a number counts for beside what was said, go by this: a
        record of before would be found to follow from no rule.
        """
        variances = self._of(asked_axes(question))
        if variances is None:
            return 1.0
        if isinstance(question, Query) and (each := self._by_axis(question)) is not None:
            held = variances
            for energies in reversed(each):
                held = held @ energies
            return math.sqrt(max(0.0, float(held)))
        # all that have several levels are told apart, and one axis is written for each of the others too
        energies = asked_of(question, MOST_JOINT).energies.reshape(variances.shape)
        return math.sqrt(max(0.0, float((energies * variances).sum())))

    def cells_in_the_mean(self, partition: Partition) -> Floats | None:
        """Return that of every block, of the partition's shape; None of levels not told apart."""
        held = self._of(partition.axes)
        if held is None:
            return None
        for axis, cut in zip(partition.axes, partition.cuts, strict=True):
            one = levels_of(self.domain)[axis]
            held = np.tensordot(held, _of_parts(one, cut, one.energies), axes=(0, 1))
        return np.asarray(np.sqrt(np.maximum(held, 0.0)))

    def noise(self, question: Question) -> float:
        """Return the error of the noise of all tables, by least squares, with nothing known beforehand.

        inf where no tables measure all that is asked.
        """
        axes = asked_axes(question)
        precisions = self._measured_over(axes)
        if precisions is None:
            return math.inf
        each = self._by_axis(question) if isinstance(question, Query) else None
        if each is None:
            energies = asked_of(question, MOST_JOINT).energies.ravel()
        else:
            energies = functools.reduce(np.multiply.outer, each, np.ones(())).ravel()
        held = energies > 0.0
        held[0] = False  # of all records together nothing is unknown
        with np.errstate(divide="ignore"):
            return math.sqrt(float((energies[held] / precisions[held]).sum()))

    def expected(self, demand: Demand) -> float:
        """Return the root of the mean squared error of the questions that a demand expects."""
        return math.sqrt(float((demand.weights / self.known(demand.subspaces)).sum()))

    def _of(self, axes: Axes) -> Floats | None:
        """Return the variance of what is known of each combination of levels, one axis an attribute."""
        found = self._variances.get(axes)
        if found is not None:
            return found
        precisions = self._measured_over(axes)
        if precisions is None:
            return None
        variances = np.zeros(len(precisions))  # of all records together nothing is unknown
        variances[1:] = 1.0 / (1.0 / self._squares_over(axes)[1:] + precisions[1:])
        parts = [len(levels_of(self.domain)[axis].parts) for axis in axes]
        self._variances[axes] = variances.reshape(parts)
        return self._variances[axes]

    def _by_axis(self, query: Query) -> list[Floats] | None:
        """Return what a query asks of each of its attributes; None where some have weights together."""
        levels = levels_of(self.domain)
        if query.box is not None:  # without making factors of it
            ends = zip(query.axes, *query.box, strict=True)
            return [energies_of_range(levels[axis], low, high) for axis, low, high in ends]
        if len(query.factors) < len(query.axes):
            return None
        return [energies_of(levels[one.axes[0]], one) for one in query.factors]

    def _squares_over(self, axes: Axes) -> Floats:
        """Return the expected square of each combination of levels of these attributes."""
        if axes not in self._squares:
            rows = self._rows_over(axes)
            self._squares[axes] = self.sizes.squares(rows) if rows is not None else np.zeros(0)
        return self._squares[axes]

    def _measured_over(self, axes: Axes) -> Floats | None:
        """Return the precision of each combination of levels of these attributes; None of too many."""
        if axes in self._precisions:
            return self._precisions[axes]
        rows = self._rows_over(axes)
        if rows is None:
            return None
        if self._before is None:
            found = self._measured(rows)
        else:  # what was known before is worked out once for all that is planned beside it
            added = self.planned[len(self._before.planned) :]
            more = rows_of([key for key, _ in added], len(self.domain.shape))
            known = self._before._measured_over(axes)
            found = known + informed(levels_of(self.domain), rows, more) @ np.array([one for _, one in added])
        self._precisions[axes] = found
        return found

    def _rows_over(self, axes: Axes) -> Ints | None:
        """Return each combination of levels of these attributes as a row; None of too many."""
        parts = [len(levels_of(self.domain)[axis].parts) for axis in axes]
        if math.prod(parts) > MOST_JOINT:
            return None
        rows = np.zeros((math.prod(parts), len(self.domain.shape)), np.int64)
        for axis, column in zip(axes, np.indices(parts).reshape(len(axes), len(rows)), strict=True):
            rows[:, axis] = column
        return rows


def _of_parts(levels: Levels, cut: Cut, told: Callable[[Floats], Floats]) -> Floats:
    """Return what is told of the weights of each part of an attribute, (parts, levels)."""
    found = np.zeros((cut.parts, len(levels.parts)))
    for start in range(0, cut.parts, AT_ONCE):
        parts = np.arange(start, min(start + AT_ONCE, cut.parts))
        if levels.grid is None:
            inside = (cut.codes == parts[:, None]).astype(np.float64)
        else:
            inside = np.stack([levels.grid.inside(*cut.range_of(part)) for part in parts.tolist()])
        found[parts] = told(inside)
    return found
