"""What somebody may have meant: conditions that fit."""

import math

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
