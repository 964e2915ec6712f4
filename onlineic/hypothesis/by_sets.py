"""A hypothesis that answers some sets of attributes from tables of their own, others from another one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.hypothesis.base import OverDomain
from onlineic.queries.batch import Queries
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import Sums, Tables, spread

ALL_CELLS = 2**24  # of all tables that are kept; then they are made again


class Held(Sums, Protocol):
    """Sums over a set of attributes whose table is not written code by code."""

    @property
    def size(self) -> int:
        """Numbers that are kept."""

    def table(self, axes: tuple[int, ...]) -> Floats:
        """Return the table of the set."""

    def blocks(self, partition: Partition) -> Floats:
        """Return the sum in every block of a partition of the set, shape (blocks,)."""


@attrs.frozen(eq=False, repr=False)
class BySets(OverDomain, ABC):
    """Tables of sets of attributes, each made when its set is first asked for.

    Two sets agree on the attributes that they share but for noise: this is no joint distribution. Synthetic
    records are drawn from the hypothesis that answers all other sets, `beneath`.
    """

    _held: dict[tuple[int, ...], Tables | Held | None] = attrs.field(init=False, factory=dict)
    _cells: list[int] = attrs.field(init=False, factory=lambda: [0])

    @property
    @abstractmethod
    def beneath(self) -> Any:
        """The hypothesis that answers sets without a table of their own."""

    @abstractmethod
    def _made(self, axes: tuple[int, ...]) -> Floats | Held | None:
        """Return the distribution over a set of attributes, or None to leave the set to `beneath`."""

    @cached_property
    def domain(self) -> Domain:
        """The domain of the queries."""
        domain: Domain = self.beneath.domain
        return domain

    def evaluate(self, query: Query) -> float:
        held = self._table(query.axes)
        if held is None:
            return float(self.beneath.evaluate(query))
        return min(1.0, max(0.0, query.total(held, 1.0) / (1 << query.grid_bits)))

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        batch = queries if isinstance(queries, Queries) else Queries.bound(self.domain, queries)
        known = [(group, self._table(group.axes)) for group in batch.boxes]
        values = batch.constants.copy()  # of those that are none, below
        if batch.others or any(held is None for _, held in known):
            values = np.array(self.beneath.evaluate_many(batch), np.float64)
        for group, held in known:
            if held is not None and group.axes:
                masses = held.boxes(group.axes, group.low, group.high)
                values[group.places] = np.clip(np.where(group.turned, 1.0 - masses, masses), 0.0, 1.0)
        for place, query in batch.others:
            if self._table(query.axes) is not None:
                values[place] = self.evaluate(query)
        return values

    def blocks(self, partition: Partition) -> Floats:
        """Return the fraction of records in every block, shape (blocks,)."""
        held = self._table(partition.axes)
        if held is None:
            return np.asarray(self.beneath.blocks(partition))
        if isinstance(held, Tables):
            return nearest(partition.measure(held.table(partition.axes)))
        return nearest(held.blocks(partition))

    def marginal(self, *names: str) -> Floats:
        """Return the marginal table over these attributes, in domain order. Public, no guarantee.

        Raises:
            TooLargeError: If it has more cells than the hypothesis beneath writes.
        """
        axes = self.domain.project_axes(*names)
        held = self._table(axes)
        return np.asarray(self.beneath.marginal(*names)) if held is None else nearest(held.table(axes))

    def probabilities(self) -> Floats:
        """Return the cell probabilities of the hypothesis beneath, shape of the domain."""
        return np.asarray(self.beneath.probabilities())

    def sample(self, size: int, seed: int) -> dict[str, list[Any]]:
        """Return synthetic records of the hypothesis beneath, as columns of labels; the seed is public."""
        columns: dict[str, list[Any]] = self.beneath.sample(size, seed)
        return columns

    def _table(self, axes: tuple[int, ...]) -> Tables | Held | None:
        """Return the sums over a set of attributes, or None if it is left to the hypothesis beneath."""
        try:
            return self._held[axes]
        except KeyError:
            made = self._made(axes) if axes else None
            size = 0 if made is None else made.size
            if self._cells[0] + size > ALL_CELLS:
                self._held.clear()
                self._cells[0] = 0
            self._cells[0] += size
            found: Tables | Held | None
            if isinstance(made, np.ndarray):
                found = Tables(spread(made, axes, len(self.domain.shape)), size)
            else:
                found = made
            self._held[axes] = found
            return found  # what another thread has made room for in the meantime is not looked up again


def joint(hypothesis: Any) -> Any:
    """Return the joint distribution beneath tables of sets; another hypothesis as it is."""
    while isinstance(hypothesis, BySets):
        hypothesis = hypothesis.beneath
    return hypothesis


def nearest(values: Floats, total: float | None = None) -> Floats:
    """Return the numbers nearest to these, in squares, that are not negative and have this sum, or the same.

    All move by one number, down to 0 (Held et al. 1974): no cell gains what another's noise has lost.
    """
    wanted = max(0.0, float(values.sum())) if total is None else total
    if total is None and values.min() >= 0.0:
        return values.copy()
    falling = np.sort(values, axis=None)[::-1]
    over = (falling.cumsum() - wanted) / np.arange(1, falling.size + 1)
    above = np.flatnonzero(falling > over)
    lowered: Floats = np.maximum(values - over[above[-1]], 0.0) if len(above) else np.zeros_like(values)
    return lowered
