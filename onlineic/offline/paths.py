"""Counting and drawing all distributions of m records on a line that stay near a given one (theory 12.8).

A database y of m records over ordered cells 0, ..., K - 1 is the path G_0 <= ... <= G_(K-1) = m of its
cumulative counts. Its level against n records with cumulative counts F is

    L(G) = ceil(max_d |F_d - n G_d/m|),    so    L(G) <= t  iff  |m F_d - n G_d| <= t m for all d < K - 1:

a strip around F. Paths are counted by dynamic programming, for all levels at once, in arrays whose shapes are
public: numbers are split into limbs, and a path is read off whole rows at a time, so that nothing times F.
"""

import math

import numpy as np

from onlineic._typing import Bools, Ints


def strip_width(n: int, rows: int, level: int) -> int:
    """Return the most values that a path within `level` can take at one cell."""
    return min(rows, 2 * level * rows // n) + 1


def limb_bits(width: int) -> int:
    """Return the bits of a limb: `width` of them, and a carry, add up below 2^63."""
    return 62 - width.bit_length()


def count_paths(below: Ints, n: int, rows: int, levels: Ints, width: int) -> list[int]:
    """Return the number of paths of every level <= levels[i].

    Args:
        below: Shape (K - 1,), non-decreasing, in [0, n]. F, without its last entry n. PRIVATE, and so are the
            results.
        n, rows: n and m, with (n + levels) m below 2^62.
        levels: Shape (T,), at least -1. Public. No path is below level 0.
        width: `strip_width` of the largest level.
    """
    bits = limb_bits(width)
    first, valid = _strip(below[0], n, rows, levels, width)
    state = _ones(valid, below.size + 1, rows, bits)
    for upto in below[1:]:  # one cell at a time: together they would take more room than the numbers
        before, (first, valid) = first, _strip(upto, n, rows, levels, width)
        state = _advanced(state, first - before, valid, bits)
    return [_whole(ends[-1], bits) for ends in _sums(state, bits)]


def path_of_rank(below: Ints, n: int, rows: int, low: int, high: int, width: int, rank: int) -> Ints:
    """Return the path number `rank` among those with low < level <= high, as (K,) cumulative counts.

    Any order will do for a uniform draw; this one is read off backwards.

    Args:
        below, n, rows: As in `count_paths`.
        low, high: PRIVATE, -1 <= low < high.
        width: `strip_width` of `high`, or more.
        rank: At least 0, below the number of such paths. PRIVATE.
    """
    bits = limb_bits(width)
    strips = [_strip(upto, n, rows, np.array([low, high]), width) for upto in below]
    first = [start for start, _ in strips]
    tables = [_ones(strips[0][1], below.size + 1, rows, bits)]
    for cell in range(1, below.size):
        tables.append(_advanced(tables[-1], first[cell] - first[cell - 1], strips[cell][1], bits))
    path = np.full(below.size + 1, rows, np.int64)
    left = False  # whether the part behind has left the inner strip
    for cell in range(below.size - 1, -1, -1):
        inner, outer = tables[cell]
        place = np.arange(width) + first[cell][1] - first[cell][0]  # of the outer values among the inner
        held = inner[np.clip(place, 0, width - 1)] * ((place >= 0) & (place < width))[:, None]
        ends = _sums(np.where(left, outer, outer - held), bits)
        index = int(np.count_nonzero(_at_most(ends, rank, bits)))
        rank -= _whole(np.where(index > 0, ends[index - 1], 0), bits)
        path[cell] = first[cell][1] + index
        left |= abs(rows * int(below[cell]) - n * int(path[cell])) > low * rows
    return path


def _strip(upto: np.int64, n: int, rows: int, levels: Ints, width: int) -> tuple[Ints, Bools]:
    """Return the first value of every level at one cell, (T,), and which of the next ones are inside."""
    first = np.maximum(-((levels - upto) * rows // n), 0)
    last = np.minimum((levels + upto) * rows // n, rows)
    return first, first[:, None] + np.arange(width) <= last[:, None]


def _ones(valid: Bools, cells: int, rows: int, bits: int) -> Ints:
    """Return one prefix for every valid first value, (T, width, limbs); the limbs hold any count of paths."""
    limbs = math.comb(cells + rows - 1, rows).bit_length() // bits + 1
    state = np.zeros((*valid.shape, limbs), np.int64)
    state[:, :, 0] = valid
    return state


def _advanced(state: Ints, shift: Ints, valid: Bools, bits: int) -> Ints:
    """Return the prefixes one cell on: a value is reached from all values up to it."""
    sums = _sums(state, bits)
    width = valid.shape[1]
    source = np.minimum(np.arange(width) + shift[:, None], width - 1)
    return np.asarray(np.take_along_axis(sums, source[:, :, None], axis=1) * valid[:, :, None])


def _sums(state: Ints, bits: int) -> Ints:
    """Return the sums of all values up to each, (..., width, limbs)."""
    sums = np.cumsum(state, axis=-2)
    for limb in range(sums.shape[-1] - 1):
        sums[..., limb + 1] += sums[..., limb] >> bits
        sums[..., limb] &= (1 << bits) - 1
    return sums


def _at_most(numbers: Ints, limit: int, bits: int) -> Bools:
    """Return which of (width, limbs) numbers are at most the limit."""
    result = np.ones(len(numbers), np.bool_)
    for limb in range(numbers.shape[1]):
        mine, other = numbers[:, limb], limit >> bits * limb & (1 << bits) - 1
        result = (mine < other) | ((mine == other) & result)
    return result


def _whole(number: Ints, bits: int) -> int:
    """Return the number after (limbs,)."""
    return sum(limb << bits * place for place, limb in enumerate(number.tolist()))
