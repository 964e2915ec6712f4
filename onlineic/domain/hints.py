"""What somebody may have meant: the nearest name, and conditions that fit."""

import math
from collections.abc import Iterable

from onlineic.errors import (
    InvalidQueryError,
    shown,
)


def nearest(word: object, known: Iterable[object]) -> object | None:
    """Return the one of some names or labels that a word is most likely meant for, or None.

    The same but for case, then a close spelling, then the only one that begins the word or that it begins:
    'Female' is meant for 'F'.
    """
    import difflib  # of a message alone: imported with it

    text = (word if isinstance(word, str) else shown(word))[:99].strip().casefold()
    names = {str(name).strip().casefold(): name for name in known}
    if text in names:
        return names[text]
    close = difflib.get_close_matches(text, names, 1)
    if close:
        return names[close[0]]
    begun = [name for name in names if name and text and (text.startswith(name) or name.startswith(text))]
    return names[begun[0]] if len(begun) == 1 else None


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
