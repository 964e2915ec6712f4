"""Tables of text, cut to a size that a screen holds."""

import math
from collections.abc import Sequence
from typing import Any

MOST_ROWS, MOST_COLUMNS = 24, 10  # of a table on a screen
LONGEST = 40  # characters of a label
GAP = "..."


def shortened(label: Any, longest: int = LONGEST) -> str:
    """Return a label as text on one line, cut to a length; of the missing cell "missing"."""
    text = "missing" if label is None else " ".join(str(label).split())
    return text if len(text) <= longest else text[: longest - len(GAP)] + GAP


def records(count: float) -> str:
    """Return a number of records as text: whole ones, with a decimal where there are few."""
    few = abs(count) < 10.0 and round(count, 1) != round(count)
    text = f"{count:,.1f}" if few else f"{count:,.0f}"
    return "0" if text == "-0" else text


def to_its_bound(value: float, bound: float, separated: bool = False) -> str:
    """Return a number as text: in six digits, or as many more as its bound makes sense of.

    What is cut off is less than a hundredth of the bound; of a number that is exact, nothing is.
    """
    exact = bound == 0.0 or not math.isfinite(value)
    digits = 15 if exact else 6
    if not exact and math.isfinite(bound) and value:
        digits = min(15, max(6, math.ceil(math.log10(abs(value) / bound)) + 3))
    return f"{value:{',' if separated else ''}.{digits}g}"


def decimals(value: float, bound: float) -> tuple[str, str]:
    """Return a fraction and its bound with six decimals, or as many more as the bound needs."""
    places = 6
    if math.isfinite(bound) and bound > 0.0:
        places = min(15, max(6, 2 - math.floor(math.log10(bound))))
    return f"{value:9.{places}f}", f"{bound:.{places}f}"


def cut_rows(count: int, most: int) -> tuple[list[int], int | None]:
    """Return the places to show of `count` (first and last ones), and where the gap is, if there is one."""
    if count <= most:
        return list(range(count)), None
    head = most - most // 4
    return [*range(head), *range(count - most // 4, count)], head


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return lines of aligned columns: the first `left` at the left, numbers at the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
