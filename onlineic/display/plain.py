"""What is released as plain values for other programs: strict JSON, and fields of CSV."""

import math
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how spreadsheets tell one


def strict(said: Any) -> Any:
    """Return what JSON has a form for: null for a number that is infinite or none, lists for tuples.

    Labels that JSON has no form for, such as dates, become their text.
    """
    if isinstance(said, dict):
        return {str(name): strict(one) for name, one in said.items()}
    if isinstance(said, list | tuple):
        return [strict(one) for one in said]
    if isinstance(said, float):
        return said if math.isfinite(said) else None
    return said if said is None or isinstance(said, str | bool | int) else str(said)


def csv_field(value: Any) -> Any:
    """Return a text that no spreadsheet takes for a formula: what begins like one gets a quote before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
