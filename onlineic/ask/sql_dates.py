"""Functions of dates in SQL: their parts and periods, as keys of groups and as conditions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onlineic.ask.sql_values import COMPARE, Timed, written
from onlineic.ask.truth import HIGHEST, LOWEST, Cut, Line, Truth, true_of
from onlineic.domain import Dates
from onlineic.errors import InvalidQueryError
from onlineic.queries.groupings import FITTING, NEEDS, Grouping, date_trunc, extract

# functions of one date, and what they give
PARTS = {
    "Year": "year", "Quarter": "quarter", "Month": "month", "Week": "week", "WeekOfYear": "week",
    "Day": "day", "DayOfMonth": "day", "DayOfYear": "dayofyear", "DayOfWeek": "dow", "DayOfWeekIso": "isodow",
    "Dayname": "weekday", "Monthname": "monthname", "Hour": "hour", "Minute": "minute",
}  # fmt: skip
NAMED = {"DOY": "dayofyear", "WEEKDAY": "dow", "DAYOFWEEK": "dow", "DAYOFMONTH": "day", "MON": "month"}
TEXTS: Mapping[str, tuple[str, str]] = {
    "%Y": ("date_trunc", "year"), "%Y-%m": ("date_trunc", "month"), "%Y-%m-%d": ("date_trunc", "day"),
    "%m": ("extract", "month"), "%d": ("extract", "day"), "%H": ("extract", "hour"),
    "%A": ("extract", "weekday"), "%B": ("extract", "monthname"),
}  # fmt: skip
DATED = (*PARTS, "Extract", "DateTrunc", "TimestampTrunc", "TimeToStr", "Anonymous")


def is_dated(node: Any) -> bool:
    """Return whether a node is a function of a date."""
    name = type(node).__name__
    if name == "Anonymous":
        return str(node.this).lower() in ("date_part", "datepart", "strftime")
    return name in DATED


def dated(node: Any, conditions: Any) -> Grouping:
    """Return what a function of a date gives, as a key of groups.

    Raises:
        InvalidQueryError: If it is of no column of dates, or gives what is not known here.
    """
    trees, name = conditions.trees, type(node).__name__
    trees.kind(node)
    column, what = node.this, ("extract", PARTS.get(name, ""))
    if name == "Extract":
        column, what = node.expression, ("extract", _part(str(node.this.this), conditions, node))
    elif name in ("DateTrunc", "TimestampTrunc"):
        what = ("date_trunc", str(node.args["unit"].this).lower())
        if what[1] not in FITTING:
            trees.refuse_node(node, f"truncate dates to {', '.join(FITTING)}")
    elif name == "TimeToStr":
        what = _text(str(node.args["format"].this), conditions, node)
    elif name == "Anonymous":
        given = node.args.get("expressions") or []
        if len(given) != 2:
            trees.refuse_node(node, "give it a date and a part")
        if str(node.this).lower() == "strftime":
            column, what = given[0], _text(str(given[1].this), conditions, node)
        else:
            column, what = given[1], ("extract", _part(str(given[0].this), conditions, node))
    attribute = _column(column, conditions)
    made = date_trunc(attribute, what[1]) if what[0] == "date_trunc" else extract(attribute, what[1])
    made.over(conditions.domain)  # refused by name where its periods are too long
    return made


def _part(word: str, conditions: Any, node: Any) -> str:
    part = NAMED.get(word.upper(), word.lower())
    if part not in NEEDS:
        conditions.trees.refuse_node(node, f"extract one of {', '.join(NEEDS)}")
    return part


def _text(form: str, conditions: Any, node: Any) -> tuple[str, str]:
    if form not in TEXTS:
        conditions.trees.refuse_node(node, f"write one of the forms {', '.join(TEXTS)}")
    return TEXTS[form]


def _column(node: Any, conditions: Any) -> str:
    """Return the column of dates that a function is of; a cast to a date changes nothing."""
    trees = conditions.trees
    node = trees.bare(node)
    while type(node).__name__ in ("Cast", "TsOrDsToDate", "TsOrDsToTimestamp"):
        node = trees.bare(node.this)
    if type(node) is not trees.exp.Column:
        trees.refuse_node(node)
    name: str
    name, kind = conditions.column(node)
    if not isinstance(kind, Dates):
        raise InvalidQueryError(
            f"{name} must hold dates for its years or months, got another kind; declare it "
            "dates(first, last), or cut it by CASE."
        )
    return name


def where_dated(node: Any, operator: str, value: Any, conditions: Any, negated: bool) -> Truth:
    """Return where a part or a period of a date compares so with a value.

    Raises:
        InvalidQueryError: If the value is no number for a part, or no date for a period.
    """
    grouping = dated(node, conditions)
    name, kind = grouping.attribute, conditions.domain.attribute(grouping.attribute)
    found = grouping.over(conditions.domain)
    text = conditions.trees.text(node)
    known = [label for label in found.labels if label is not None]
    if grouping.form == "date_trunc":
        held = _periods(text, kind, known, operator, value)
    elif type(known[0]) is str:
        if type(value) is not str or operator not in ("=", "<>"):
            raise InvalidQueryError(
                f"{text} must be compared with a name by =, <> or IN, got {written(value)}; write e.g. "
                f"{written(known[0])}."
            )
        held = [bool(COMPARE[operator](label, value)) for label in known]
    else:
        if type(value) not in (int, float):
            raise InvalidQueryError(
                f"{text} must be compared with a number, got {written(value)}; write e.g. {known[0]}."
            )
        held = [bool(COMPARE[operator](label, value)) for label in known]
    classes = found.classes[: kind.size - kind.missing]  # type: ignore[index]
    return true_of(name, kind, _line(kind, np.array(held)[classes]), negated)


def _periods(text: str, kind: Dates, known: Sequence[Any], operator: str, value: Any) -> list[bool]:
    """Return which periods compare so with a date: by where they begin."""
    given = value.text if isinstance(value, Timed) else value
    stretch = kind.compared(given) if type(given) is str else None
    if stretch is None:
        raise InvalidQueryError(
            f"{text} must be compared with a date such as {written(known[0])}, got {written(value)}; write "
            "it so."
        )
    begins = [(kind.compared(str(label)) or (0, 0))[0] for label in known]
    return [bool(COMPARE[operator](begin, stretch[0])) for begin in begins]


def _line(kind: Dates, held: Any) -> Line:
    """Return the stretches of time of the periods that are held."""
    padded = np.concatenate([[False], held, [False]]).astype(np.int8)
    starts, stops = (np.flatnonzero(np.diff(padded) == step).tolist() for step in (1, -1))
    pieces: list[tuple[Cut, Cut]] = []
    for start, stop in zip(starts, stops, strict=True):
        low: Cut = LOWEST if start == 0 else (kind.begins(start), 0)
        high: Cut = HIGHEST if stop == len(held) else (kind.begins(stop), 0)
        pieces.append((low, high))
    return tuple(pieces)
