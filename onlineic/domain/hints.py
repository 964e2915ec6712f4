"""What somebody may have meant: conditions that fit."""

import math
import re

from onlineic.errors import (
    InvalidQueryError,
    shown,
)


def no_missing_cell(name: str) -> InvalidQueryError:
    """Return what to raise of a question for missing values where the domain has no cell for them."""
    return InvalidQueryError(
        f"{name} must have a cell for missing values to be asked for None, got a domain without; declare it "
        "optional(..) when the domain is built, or ask for a value."
    )


def inside(low: float, high: float, first: int, last: int, closed: bool) -> str:
    """Return the condition nearest to an interval that is cut inside the whole numbers first .. last."""
    if low == -math.inf:
        return f"below({shown(max(first, min(high, last + 1)))})"
    if high == math.inf:
        return f"at_least({shown(min(max(low, first), last))})"
    low = min(max(low, first), last)
    high = max(low, min(high, last if closed else last + 1))
    return f"{'between' if closed else 'span'}({shown(low)}, {shown(high)})"


def in_place_of(name: str, label: object, range_word: str = "") -> str | None:
    """Return what to write in place of a text that holds a comparison, a range or a number, or None."""
    if not isinstance(label, str):
        return None
    text = label.strip()
    compared = re.fullmatch(r"([<>=!]+)\s*(.*)", text)
    if compared:
        end = compared[2] if re.fullmatch(r"-?\d+(\.\d+)?|'.*'", compared[2]) else f"'{compared[2]}'"
        asked = shown(f"{name} {compared[1]} {end}")
        return f"a comparison is asked as a text: session.answer({asked})"
    ends = re.fullmatch(r"(\d+)\s*(?:-|\.\.|:|to)\s*(\d+)", text)
    if not range_word:
        return None
    if ends:
        return f"write {range_word}({ends[1]}, {ends[2]})"
    return f"write {text} without quotes" if re.fullmatch(r"-?\d+(\.\d+)?", text) else None
