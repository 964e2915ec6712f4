"""Many queries on one array at once."""

from collections.abc import Sequence

import numpy as np

from onlineic._arrays import Tables
from onlineic._typing import Floats
from onlineic.queries import Query

__all__ = ["totals"]


def totals(queries: Sequence[Query], tables: Tables, mass: float) -> Floats:
    """Return `total` of every query, shape (m,), to the same bits: boxes by attribute set in one gather."""
    result = np.empty(len(queries))
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, query in enumerate(queries):
        if query.box is None:
            result[index] = query.total(tables, mass)
        else:
            groups.setdefault(query.axes, []).append(index)
    for axes, members in groups.items():
        ends = np.array([queries[index].box for index in members], np.int64)  # (m, 2, axes)
        turned = np.array([queries[index].complement for index in members])
        sums = tables.boxes(axes, ends[:, 0], ends[:, 1])
        result[members] = np.where(turned, mass - sums, sums)
    return result
