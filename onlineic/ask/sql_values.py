"""What stands beside a column in SQL: values, how they compare, and how they are written."""

import operator as op
from collections.abc import Callable
from typing import Any, Literal, final

import attrs

OPERATORS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": op.eq, "<>": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge,
}  # fmt: skip
DENIED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


Value = int | float | str | bool | None


@final
@attrs.frozen
class Timed:
    """A literal such as DATE '2024-03-05'."""

    form: Literal["DATE", "TIMESTAMP", "TIMESTAMPTZ"]
    text: str


def written(value: Value | Timed) -> str:
    """Return a value as SQL writes it, cut to a few words."""
    if isinstance(value, Timed):
        return f"{value.form} {written(value.text)}"
    if value is None or type(value) is bool:
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if type(value) is str:
        text = value if len(value) <= 40 else value[:37] + "..."
        return "'" + text.replace("'", "''") + "'"
    return repr(value)
