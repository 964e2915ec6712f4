"""What a net mechanism releases: a small database that stands for the private one."""

from collections.abc import Sequence
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query, totals
from onlineic.queries.tables import Tables

__all__ = ["SmallDatabase"]


@final
@attrs.frozen(eq=False, repr=False)
class SmallDatabase:
    """A database of a few records that answers like the private one: public, a `Hypothesis`.

    Attributes
    ----------
    domain : Domain
    counts : int64 array, shape of the domain, read-only
        Its records by cell.
    error_bound : float or None
        How far `evaluate` may be off for any query of the class, as it was written before its weights were
        rounded to the grid, all at once, with probability 1 - beta: `radius` plus `selection_bound`. None
        where the candidates are no net. Says nothing about other queries.
    radius : float or None
        How far the best candidate may be off.
    selection_bound : float
        How much worse than the best candidate the chosen one may be, with probability 1 - beta; on the grid.
    beta : float
    candidates : int
        Databases it was chosen from.
    private : bool
        False: simulated noise was used, the database is NOT PRIVATE.
    """

    domain: Domain
    counts: Ints
    radius: float | None
    selection_bound: float
    beta: float
    candidates: int
    private: bool
    _tables: Tables = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        counts = np.array(self.counts, np.int64).reshape(self.domain.shape)
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "_tables", Tables(counts.astype(np.float64), counts.size))

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    @property
    def error_bound(self) -> float | None:
        return None if self.radius is None else self.radius + self.selection_bound

    def supports(self, query: Query) -> bool:
        return query.domain == self.domain

    def evaluate(self, query: Query) -> float:
        return query.total(self._tables, self.size) / (self.size << query.grid_bits)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        scales = np.array([float(self.size << query.grid_bits) for query in queries])
        return np.asarray(totals(queries, self._tables, self.size) / scales)

    def blocks(self, partition: Partition) -> Floats:
        """Return the fraction of records in every block, shape (blocks,)."""
        return partition.measure(self._tables.table(partition.axes)) / self.size

    def __repr__(self) -> str:
        bound = "no bound" if self.error_bound is None else f"within {self.error_bound:.3g}"
        stamp = "" if self.private else ", NOT PRIVATE"
        return (
            f"SmallDatabase({self.size} records over {self.domain.size} cells, {bound} at {1 - self.beta:.4g}"
            f"{stamp})"
        )
