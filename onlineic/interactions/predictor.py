"""What a question is expected to err by: released noise exactly, the rest by how large interactions are.

A fit to all released tables knows a subspace of levels with the precision of its noise, and takes what that
noise hides to be as large as interactions of its kind are. So the squared error of a question is the sum over
subspaces of what it asks of each, divided by one over the size with the precision that was bought.

Proof: docs/theory/session.md, 4.9b.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from functools import cached_property
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
    levelled,
    rows_of,
    told_by,
)
from onlineic.queries.batch import Boxes, Queries
from onlineic.queries.cuts import Cut
from onlineic.queries.marginals import Question
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query

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
    _held: dict[int, tuple[Ints, Floats]] = attrs.field(factory=dict, init=False)
    _variances: dict[tuple[Axes, int], Floats] = attrs.field(factory=dict, init=False)
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
        other._held.update(self._held)
        object.__setattr__(other, "_before", self)
        object.__setattr__(other, "_squares", self._squares)
        object.__setattr__(other, "_spreads", self._spreads)
        return other

    @property
    def sizes(self) -> Sizes:
        """How large interactions are, by all that was released."""
        return self._told[1]

    @cached_property
    def _told(self) -> tuple[Sequence[Table], Sizes]:
        return told_by(self.domain, self._released(None))

    def _released(self, purchases: int | None) -> tuple[Measurement, ...]:
        """Return what so many purchases have released."""
        return tuple(itertools.chain.from_iterable(self.releases[:purchases]))

    def _rows(self, purchases: int | None) -> tuple[Ints, Floats]:
        """Return the tables of so many purchases as rows of levels, (tables, attributes), and precisions."""
        stop = len(self.releases) if purchases is None else min(purchases, len(self.releases))
        if stop not in self._held:
            last = stop == len(self.releases)
            tables = self._told[0] if last else levelled(self.domain, self._released(stop))
            rows = rows_of([table.key for table in tables], len(self.domain.shape))
            self._held[stop] = rows, np.array([table.precision for table in tables])
        return self._held[stop]

    def known(self, subspaces: Ints, purchases: int | None = None) -> Floats:
        """Return one over the variance of what is known of each subspace, (subspaces,).

        Args:
            subspaces: Shape (subspaces, attributes). The level of each attribute; 0 where it takes no part.
            purchases: By the first so many alone, and sizes learned from all; None: by all.
        """
        return np.asarray(1.0 / self.sizes.squares(subspaces) + self._measured(subspaces, purchases))

    def _measured(self, subspaces: Ints, purchases: int | None = None) -> Floats:
        """Return the precision with which tables have measured each subspace, (subspaces,)."""
        rows, precisions = self._rows(purchases)
        if self.planned and purchases is None:
            more = rows_of([key for key, _ in self.planned], len(self.domain.shape))
            rows = np.vstack([rows, more])
            precisions = np.append(precisions, [precision for _, precision in self.planned])
        if not len(rows):
            return np.zeros(len(subspaces))
        return np.asarray(informed(levels_of(self.domain), subspaces, rows) @ precisions)

    def error(self, question: Question, purchases: int | None = None) -> float:
        """Return the expected root-mean-square error of the answer to a question, fraction of records.

        Of a cross table that of one of its cells in the mean; 1 of a question over so many attributes that
        their levels are not told apart.

        Args:
            purchases: What was expected after the first so many purchases; None: after all.
        """
        variances = self._of(asked_axes(question), purchases)
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

    def error_by_mass(self, question: Question) -> float:
        """Return the same by the masses of the very values that are asked: about rare ones little is unknown.

        Interactions of a block are taken to be as large as its share of records lets them be, where `error`
        takes those of the mean block of its level. Of what is no product of conditions as `error`.
        """
        axes = asked_axes(question)
        precisions = self._measured_over(axes)
        each = self._by_axis(question) if isinstance(question, Query) else None
        if precisions is None or each is None or not isinstance(question, Query):
            return self.error(question)
        energies = functools.reduce(np.multiply.outer, each, np.ones(())).ravel()
        # `squares` hold the masses of mean blocks: for level 0 they are 1
        hidden = functools.reduce(np.multiply.outer, self._spreads_of(question), np.ones(())).ravel()
        unknown = self._squares_over(axes) * hidden
        some = (unknown > 0.0) & (energies > 0.0)
        some[0] = False  # of all records together nothing is unknown
        known = 1.0 / unknown[some] + precisions[some] / energies[some]
        return math.sqrt(float((1.0 / known).sum()))

    def _spreads_of(self, query: Query) -> list[Floats]:
        """Return what part of the mean square of each condition every level explains, times its parts."""
        found = []
        for place, key in enumerate(query.key if query.axes else ()):
            known = self._spreads.get(key)  # other threads ask too: what one puts in another may clear
            if known is None:
                factor, levels = query.factors[place], levels_of(self.domain)
                (axis,) = factor.axes
                grids = {} if (grid := levels[axis].grid) is None else {axis: grid}
                weights, parts = factor.means(query.domain, grids), np.array(levels[axis].parts, np.float64)
                if len(self._spreads) >= MOST_KEPT:
                    self._spreads.clear()
                known = self._spreads[key] = levels[axis].spread(weights, self.sizes.margins[axis]) * parts
            found.append(known)
        return found

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

    def errors(self, queries: Queries, purchases: int | None = None) -> Floats:
        """Return the same of many queries, (m,)."""
        result = np.zeros(len(queries))
        for place, query in queries.others:
            result[place] = self.error(query, purchases)
        for group in queries.boxes:
            variances = self._of(group.axes, purchases)
            result[group.places] = 1.0 if variances is None else np.sqrt(self._summed(group, variances))
        return result

    def cells(self, partition: Partition) -> Floats | None:
        """Return the same of every block, of the partition's shape; None of levels not told apart."""
        held = self._of(partition.axes, None)
        if held is None:
            return None
        for axis, cut in zip(partition.axes, partition.cuts, strict=True):
            held = np.tensordot(held, _of_parts(levels_of(self.domain)[axis], cut), axes=(0, 1))
        return np.asarray(np.sqrt(np.maximum(held, 0.0)))

    def expected(self, demand: Demand) -> float:
        """Return the root of the mean squared error of the questions that a demand expects."""
        return math.sqrt(float((demand.weights / self.known(demand.subspaces)).sum()))

    def _of(self, axes: Axes, purchases: int | None) -> Floats | None:
        """Return the variance of what is known of each combination of levels, one axis an attribute."""
        # what is planned comes after all that was released
        stop = len(self.releases) + 1 if purchases is None else min(purchases, len(self.releases))
        found = self._variances.get((axes, stop))
        if found is not None:
            return found
        precisions = self._measured_over(axes, purchases)
        if precisions is None:
            return None
        variances = np.zeros(len(precisions))  # of all records together nothing is unknown
        variances[1:] = 1.0 / (1.0 / self._squares_over(axes)[1:] + precisions[1:])
        parts = [len(levels_of(self.domain)[axis].parts) for axis in axes]
        self._variances[axes, stop] = variances.reshape(parts)
        return self._variances[axes, stop]

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

    def _measured_over(self, axes: Axes, purchases: int | None = None) -> Floats | None:
        """Return the precision of each combination of levels of these attributes; None of too many."""
        if purchases is None and axes in self._precisions:
            return self._precisions[axes]
        rows = self._rows_over(axes)
        if rows is None:
            return None
        if purchases is not None or self._before is None:
            found = self._measured(rows, purchases)
        else:  # what was known before is worked out once for all that is planned beside it
            added = self.planned[len(self._before.planned) :]
            more = rows_of([key for key, _ in added], len(self.domain.shape))
            known = self._before._measured_over(axes)
            found = known + informed(levels_of(self.domain), rows, more) @ np.array([one for _, one in added])
        if purchases is None:
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

    def _summed(self, group: Boxes, variances: Floats) -> Floats:
        """Return the sums over all combinations of levels of energy times variance, (m,)."""
        held = np.broadcast_to(variances, (len(group), *variances.shape))
        for place, axis in enumerate(group.axes):
            energies = _of_ranges(levels_of(self.domain)[axis], group.low[:, place], group.high[:, place])
            held = np.einsum("ml,ml...->m...", energies, held)
        return np.asarray(np.maximum(held, 0.0))


def _of_parts(levels: Levels, cut: Cut) -> Floats:
    """Return the energies of the parts of an attribute, (parts, levels)."""
    found = np.zeros((cut.parts, len(levels.parts)))
    for start in range(0, cut.parts, AT_ONCE):
        parts = np.arange(start, min(start + AT_ONCE, cut.parts))
        if levels.grid is None:
            inside = (cut.codes == parts[:, None]).astype(np.float64)
        else:
            inside = np.stack([levels.grid.inside(*cut.range_of(part)) for part in parts.tolist()])
        for level in range(len(levels.parts)):
            found[parts, level] = (levels.beyond(inside, level, 1) ** 2).sum(axis=1)
    return found


def _of_ranges(levels: Levels, low: Ints, high: Ints) -> Floats:
    """Return the energies of half-open ranges of codes, (m, levels)."""
    ends, which = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    found = [energies_of_range(levels, first, last) for first, last in ends.tolist()]
    return np.array(found).reshape(-1, len(levels.parts))[which.reshape(-1)]
