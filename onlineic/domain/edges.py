"""Edges of bins as people write them: decimals that can be typed back, and widths that are round.

A float that arithmetic made, such as 0.30000000000000004, stands for the decimal beside it. What was typed
and what was computed are at most two units in the last place apart, and edges are farther apart than that.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from onlineic.domain.columns import short

NEAR = 2  # units in the last place, within which a number is the edge beside it
ABOUT = 64  # bins that round widths come near to
SHOWN = 8  # edges in words


def is_at(value: float, edge: float) -> bool:
    """Return whether a number is an edge, or what float arithmetic makes of one."""
    return value == edge or (math.isfinite(edge) and abs(value - edge) <= NEAR * math.ulp(edge))


def edge_at(edges: Sequence[float], value: float) -> int | None:
    """Return the place of the edge that a number is, None where it is none."""
    place = bisect_left(edges, value)
    for at in (place, place - 1):
        if 0 <= at < len(edges) and is_at(value, edges[at]):
            return at
    return None


def beside(edges: Sequence[float], value: float) -> tuple[float, float]:
    """Return the two edges nearest to a number that is none: one on each side, where there are two."""
    at = min(max(bisect_left(edges, value), 1), len(edges) - 1)
    return edges[at - 1], edges[at]


def decimals(edges: Sequence[float]) -> tuple[float, ...]:
    """Return edges as the decimals that they stand for, or as they are where two would become one."""
    found = tuple(_decimal(edge) for edge in edges)
    return found if all(low < high for low, high in pairwise(found)) else tuple(edges)


def _decimal(edge: float) -> float:
    """Return the float of fifteen digits if it is as near as arithmetic errs; a whole number stays."""
    if not math.isfinite(edge) or float(edge).is_integer():
        return edge
    typed = float(f"{edge:.15g}")
    return typed if is_at(typed, edge) else edge


def even(low: float, high: float, bins: int) -> tuple[float, ...]:
    """Return the edges of so many bins of one width, each the float nearest to its decimal."""
    first, last = _exact(low), _exact(high)
    inner = (float(first + (last - first) * at / bins) for at in range(1, bins))
    return (float(low), *inner, float(high))


def rounded(low: float, high: float) -> tuple[float, ...]:
    """Return the edges at multiples of a width 1, 2 or 5 times a power of ten, about 64 bins of them."""
    first, last = _exact(low), _exact(high)
    least = math.floor(math.log10((last - first) / ABOUT))
    widths = [
        Fraction(digit) * Fraction(10) ** power
        for power in (least - 1, least, least + 1)
        for digit in (1, 2, 5)
    ]
    width = min(widths, key=lambda one: abs(math.log((last - first) / one / ABOUT)))
    start, stop = math.floor(first / width) + 1, math.ceil(last / width)
    inner = (float(width * at) for at in range(start, stop))
    return tuple(sorted({float(low), *inner, float(high)}))


def width_of(edges: Sequence[float]) -> float | None:
    """Return the one width of bins whose inner edges are its multiples, None of other bins."""
    if len(edges) < 4 or not all(map(math.isfinite, edges)):
        return None
    exact = [*map(_exact, edges)]
    width = exact[2] - exact[1]
    alike = all(high - low == width for low, high in pairwise(exact[1:-1]))
    ends = exact[1] - exact[0] <= width and exact[-1] - exact[-2] <= width
    return float(width) if alike and ends and (exact[1] / width).denominator == 1 else None


def described(edges: Sequence[float]) -> str:
    """Return in words where bins can be cut."""
    width, ends = width_of(edges), f"{short(edges[0])} to {short(edges[-1])}"
    if width is not None and len(edges) > SHOWN:
        return f"{ends}, cut at multiples of {short(width)}"
    if len(edges) <= SHOWN:
        return f"cut at {', '.join(map(short, edges))}"
    first, last = ", ".join(map(short, edges[:4])), ", ".join(map(short, edges[-2:]))
    return f"{len(edges) - 1:,} bins cut at {first}, .. {last}"


def _exact(value: float) -> Fraction:
    """Return the decimal that a float is written as."""
    return Fraction(repr(float(value)))
