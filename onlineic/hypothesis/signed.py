"""Signed weights over all cells: the belief of the perceptron."""

from collections.abc import Sequence
from typing import final

import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.hypothesis.base import OverDomain, check_size
from onlineic.hypothesis.histogram import PLANE_CELLS, PREFIX_CELLS, box_slices, fractions, relative_weights
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import Tables


@final
class SignedHistogram(OverDomain):
    """Signed cell weights, only ever added to; `evaluate` clips to [0, 1], the state is never clipped.

    Args:
        domain: At most 2^26 cells.
        cells: Shape of the domain. Initial weights; owned by the histogram.
    """

    __slots__ = ("_cells", "_tables", "domain")

    def __init__(self, domain: Domain, cells: Floats) -> None:
        check_size(domain)
        self.domain = domain
        self._cells = np.ascontiguousarray(cells, dtype=np.float64).reshape(domain.shape)
        self._tables = Tables(self._cells, PREFIX_CELLS, PLANE_CELLS)

    def evaluate(self, query: Query) -> float:
        value = query.total(self._tables, self._tables.total()) / (1 << query.grid_bits)
        return min(max(value, 0.0), 1.0)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        return np.clip(fractions(queries, self._tables, self._tables.total()), 0.0, 1.0)

    def shifted(self, query: Query, step: float, *, centre: bool) -> "SignedHistogram":
        """Return the cells plus step * f, or step * (f - mean of f) with `centre`."""
        step = float(step)
        if query.constant is not None:
            shift = 0.0 if centre else step * query.constant / (1 << query.grid_bits)
            return SignedHistogram(self.domain, self._cells + shift)
        cells = self._cells.copy()
        scaled = -step if query.complement else step
        offset = step if query.complement else 0.0  # step (1 - product)
        if query.box is not None:
            support = box_slices(query, cells.ndim)
            cells[support] += scaled
            mean = cells[support].size / self.domain.size
        else:
            weight = relative_weights(query)
            cells += scaled * weight
            mean = float(weight.mean())
        offset -= step * (1.0 - mean if query.complement else mean) if centre else 0.0
        if offset:
            cells += offset
        return SignedHistogram(self.domain, cells)

    def cells(self) -> Floats:
        """Return the signed cell weights, shape of the domain; a copy."""
        return self._cells.copy()

    def marginal(self, *names: str) -> Floats:
        """Return the signed marginal table over these attributes, in domain order."""
        return self._tables.table(self.domain.project_axes(*names)).copy()

    def blocks(self, partition: Partition) -> Floats:
        """Return the signed weight of every block, shape (blocks,)."""
        return partition.measure(self._tables.table(partition.axes))

    def __repr__(self) -> str:
        return f"SignedHistogram({' x '.join(map(str, self.domain.shape))} cells)"
