"""What a question is expected to err by: released noise exactly, the rest by how large interactions are.

A fit to all released tables knows a subspace of levels with the precision of its noise, and takes what that
noise hides to be as large as interactions of its kind are. So the squared error of a question is the sum over
subspaces of what it asks of each, divided by one over the size with the precision that was bought.

Proof: docs/theory/session.md, 4.9b.
"""

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.interactions.demand import MOST_JOINT, Axes, Demand, asked_axes, asked_of
from onlineic.interactions.levels import Levels, levels_of
from onlineic.interactions.sizes import Sizes, informed, rows_of, tables_of, told_by
from onlineic.queries.batch import Boxes, Queries
from onlineic.queries.marginals import Question
from onlineic.queries.partitions import Measurement


@final
@attrs.frozen(eq=False)
class Predictor:
    """The predicted error of questions, from public facts alone; nothing promises it.

    Attributes
    ----------
    domain : Domain
    releases : tuple of tuple of Measurement
        What each purchase has released, oldest first. Tables that are not cut at levels say nothing.
    """

    domain: Domain
    releases: tuple[tuple[Measurement, ...], ...] = ()
    _held: dict[int, tuple[Ints, Floats]] = attrs.field(factory=dict, init=False)
    _variances: dict[tuple[Axes, int], Floats] = attrs.field(factory=dict, init=False)

    def after(self, released: Sequence[Measurement]) -> "Predictor":
        """Return the predictor after one more purchase."""
        return Predictor(self.domain, (*self.releases, tuple(released)))

    @cached_property
    def sizes(self) -> Sizes:
        """How large interactions are, by all that was released."""
        return told_by(self.domain, self._released(None))[1]

    def _released(self, purchases: int | None) -> tuple[Measurement, ...]:
        """Return what so many purchases have released."""
        return tuple(itertools.chain.from_iterable(self.releases[:purchases]))

    def _rows(self, purchases: int | None) -> tuple[Ints, Floats]:
        """Return the tables of so many purchases as rows of levels, (tables, attributes), and their precision."""
        stop = len(self.releases) if purchases is None else min(purchases, len(self.releases))
        if stop not in self._held:
            released = self._released(stop)
            told = stop == len(self.releases)  # with sizes, which the fit has learned too
            tables = told_by(self.domain, released)[0] if told else tables_of(self.domain, released)
            rows = rows_of([table.key for table in tables], len(self.domain.shape))
            self._held[stop] = rows, np.array([table.precision for table in tables])
        return self._held[stop]

    def known(self, subspaces: Ints, purchases: int | None = None) -> Floats:
        """Return one over the variance of what is known of each subspace, (subspaces,).

        Parameters
        ----------
        subspaces : int64 array, (subspaces, attributes)
            The level of each attribute; 0 where it takes no part.
        purchases : int, optional
            By the first so many alone, and sizes learned from all; None: by all.
        """
        result = 1.0 / self.sizes.squares(subspaces)
        rows, precisions = self._rows(purchases)
        if len(rows):
            result = result + informed(levels_of(self.domain), subspaces, rows) @ precisions
        return np.asarray(result)

    def error(self, question: Question, purchases: int | None = None) -> float:
        """Return the expected root-mean-square error of the answer to a question, fraction of records.

        Of a cross table that of one of its cells in the mean; 1 of a question over so many attributes that
        their levels are not told apart.

        Parameters
        ----------
        question : Query or BoundMarginal
        purchases : int, optional
            What was expected after the first so many purchases; None: after all.
        """
        variances = self._of(asked_axes(question), purchases)
        if variances is None:
            return 1.0
        return math.sqrt(max(0.0, float((asked_of(question).energies * variances).sum())))

    def errors(self, queries: Queries, purchases: int | None = None) -> Floats:
        """Return the same of many queries, (m,)."""
        result = np.zeros(len(queries))
        for place, query in queries.others:
            result[place] = self.error(query, purchases)
        for group in queries.boxes:
            variances = self._of(group.axes, purchases)
            result[group.places] = 1.0 if variances is None else np.sqrt(self._summed(group, variances))
        return result

    def expected(self, demand: Demand) -> float:
        """Return the root of the mean squared error of the questions that a demand expects."""
        return math.sqrt(float((demand.weights / self.known(demand.subspaces)).sum()))

    def _of(self, axes: Axes, purchases: int | None) -> Floats | None:
        """Return the variance of what is known of each combination of levels, one axis an attribute."""
        stop = len(self.releases) if purchases is None else min(purchases, len(self.releases))
        found = self._variances.get((axes, stop))
        if found is not None:
            return found
        parts = [len(levels_of(self.domain)[axis].parts) for axis in axes]
        if math.prod(parts) > MOST_JOINT:
            return None
        rows = np.zeros((math.prod(parts), len(self.domain.shape)), np.int64)
        for axis, column in zip(axes, np.indices(parts).reshape(len(axes), len(rows)), strict=True):
            rows[:, axis] = column
        variances = np.zeros(len(rows))
        some = rows.any(axis=1)  # of all records together nothing is unknown
        variances[some] = 1.0 / self.known(rows[some], stop)
        self._variances[axes, stop] = variances.reshape(parts)
        return self._variances[axes, stop]

    def _summed(self, group: Boxes, variances: Floats) -> Floats:
        """Return the sums over all combinations of levels of energy times variance, (m,)."""
        held = np.broadcast_to(variances, (len(group), *variances.shape))
        for place, axis in enumerate(group.axes):
            energies = _of_ranges(levels_of(self.domain)[axis], group.low[:, place], group.high[:, place])
            held = np.einsum("ml,ml...->m...", energies, held)
        return np.asarray(np.maximum(held, 0.0))


def _of_ranges(levels: Levels, low: Ints, high: Ints) -> Floats:
    """Return the energies of half-open ranges of codes, (m, levels)."""
    ends, which = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    codes = np.arange(levels.parts[-1])
    found = [levels.energies(((codes >= first) & (codes < last)).astype(float)) for first, last in ends]
    return np.array(found).reshape(-1, len(levels.parts))[which.reshape(-1)]
