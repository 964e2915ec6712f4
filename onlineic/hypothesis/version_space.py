"""All small databases that agree with what was measured: the belief of the median mechanism.

Proof: docs/theory/updates.md, 7.4.
"""

from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.hypothesis.base import OverDomain
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query

COUNTED = 2**16  # largest value of which a histogram is made to find the median


@final
@attrs.frozen(eq=False, repr=False)
class VersionSpace(OverDomain):
    """All small databases that agree with the answers so far: the median rule's hypothesis.

    Args:
        databases: Shape (|X|, K). Column z holds the cell counts of one candidate database; all of the same
            size.
        size, stalled: Records of each candidate; updates skipped because they would have left no candidate.
    """

    domain: Domain
    databases: NDArray[Any]
    size: int
    stalled: int = 0

    @property
    def candidates(self) -> int:
        """How many databases are left."""
        return int(self.databases.shape[1])

    def evaluate(self, query: Query) -> float:
        return _lower_median(self._values(query)) / (self.size << query.grid_bits)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        return np.array([self.evaluate(query) for query in queries])

    def blocks(self, partition: Partition) -> Floats:
        """Return the median of every block, shape (blocks,)."""
        return np.array([self.evaluate(partition.block(index)) for index in range(partition.blocks)])

    def halved(self, query: Query, above: bool) -> "VersionSpace":
        """Return the candidates strictly above (or below) the median, or the same ones if none is.

        At least half go; the candidate nearest the truth stays, since the gap of an update is strict. With
        the printed "gap >= alpha" it could lie on the median itself, and no candidate be left.
        """
        values = self._values(query)
        median = _lower_median(values)
        kept = values > median if above else values < median
        if not kept.any():
            return VersionSpace(self.domain, self.databases, self.size, self.stalled + 1)
        return VersionSpace(self.domain, self.databases[:, kept], self.size, self.stalled)

    def _values(self, query: Query) -> Ints:
        """Integer values size * 2^k * f of every candidate, cell by cell: no wide copy of the databases."""
        weights = query.weights().ravel()
        result = np.zeros(self.candidates, np.int64)
        for cell in np.flatnonzero(weights):
            row = self.databases[cell]
            result += row if weights[cell] == 1 else row * weights[cell]
        return result

    def __repr__(self) -> str:
        return f"VersionSpace({self.candidates} databases of {self.size} records, {self.domain.size} cells)"


def _lower_median(values: Ints) -> int:
    """Return the median, the lower of the two middle values of an even count."""
    middle = (len(values) + 1) // 2 - 1
    if values.max() <= COUNTED:  # few distinct values: counting beats selecting
        return int(np.searchsorted(np.cumsum(np.bincount(values)), middle + 1))
    return int(np.partition(values, middle)[middle])
