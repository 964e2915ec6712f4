"""Tables of text, cut to a size that a screen holds."""

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
