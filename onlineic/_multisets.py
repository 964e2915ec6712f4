"""Enumeration of all small databases: the multisets of m records over |X| cells, in order, by blocks."""

import math
from collections.abc import Iterator

import numpy as np

from onlineic._typing import Ints

__all__ = ["multiset_blocks", "multisets"]


def multisets(cells: int, size: int) -> Ints:
    """Return all multisets of `size` records over the cells as counts, (cells, K), smallest dtype.

    Column j is the j-th in lexicographic order: the first is all in the last cell, the last all in the first.
    """
    kind = np.min_scalar_type(size)
    left = np.array([size], kind)
    columns: list[Ints] = []
    for _ in range(cells - 1):
        choices = left.astype(np.int64) + 1  # this cell takes 0, ..., left
        starts = np.cumsum(choices) - choices
        taken = np.arange(choices.sum()) - np.repeat(starts, choices)
        columns = [np.repeat(column, choices) for column in columns]
        columns.append(taken.astype(kind))
        left = np.repeat(left, choices) - columns[-1]
    return np.stack([*columns, left])


def multiset_blocks(cells: int, size: int, most: int) -> Iterator[Ints]:
    """Yield the columns of `multisets` in order, at most `most` at a time, as (cells, <= most) int64."""
    if cells == 1 or size == 0 or math.comb(cells + size - 1, size) <= most:
        yield multisets(cells, size).astype(np.int64)
        return
    for first in range(size + 1):
        for rest in multiset_blocks(cells - 1, size - first, most):
            yield np.concatenate([np.full((1, rest.shape[1]), first, np.int64), rest])
