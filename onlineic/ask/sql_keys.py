"""What a statement makes of a column to group by: parts and periods of dates, ranges and cases."""

import math
from collections.abc import Sequence
from typing import Any

from onlineic.ask.sql_conditions import Conditions
from onlineic.ask.sql_dates import dated, is_dated
from onlineic.ask.sql_values import Timed, Value, written
from onlineic.ask.truth import expressed
from onlineic.domain import Binned, IntegerRange
from onlineic.errors import InvalidQueryError
from onlineic.queries.groupings import Grouping, cut, of_cases

MOST_RANGES = 10_000


def key_of(node: Any, conditions: Conditions) -> Grouping | None:
    """Return what a node makes of columns as a key of groups; None where it is none."""
    trees = conditions.trees
    node = trees.bare(node)
    if is_dated(node):
        return dated(node, conditions)
    if type(node) is trees.exp.Case:
        return _cases(node, conditions)
    if type(node).__name__ == "If":
        return _cases_of([node], node.args.get("false"), conditions)
    if isinstance(node, trees.exp.Predicate | trees.exp.Connector | trees.exp.Not):
        met, unmet = (expressed(conditions.truth(node, negated=negated)) for negated in (False, True))
        return of_cases([(True, met), (False, unmet)], None)
    return _widths(node, conditions)


def _cases(node: Any, conditions: Conditions) -> Grouping:
    conditions.trees.kind(node)
    return _cases_of(node.args.get("ifs") or [], node.args.get("default"), conditions)


def _cases_of(whens: Sequence[Any], default: Any, conditions: Conditions) -> Grouping:
    """Return cases whose conditions are on columns, and whose results are written values."""
    pairs = []
    for when in whens:
        conditions.trees.kind(when)
        truth = conditions.truth(when.this, negated=False)
        pairs.append((_label(when.args.get("true"), conditions), expressed(truth)))
    return of_cases(pairs, None if default is None else _label(default, conditions))


def _label(node: Any, conditions: Conditions) -> Value:
    value = conditions.value(node)
    if isinstance(value, Timed):
        raise InvalidQueryError(
            f"CASE must give texts or numbers to group by, got {written(value)}; write it as a text."
        )
    found: Value = value
    return found


def _widths(node: Any, conditions: Conditions) -> Grouping | None:
    """Return ranges of one width: FLOOR(x / w) * w, x // w * w, x - x % w, or the numbers of these."""
    trees, name = conditions.trees, type(node).__name__
    if name == "Mul":
        sides = [trees.bare(side) for side in (node.this, node.expression)]
        for one, other in (sides, sides[::-1]):
            width, found = _number(other, conditions), _divided(one, conditions)
            if found is not None and width == found[1]:
                trees.kind(node)
                return _ranges(found[0], width, width, trees.text(node), conditions)
        return None
    if name == "Sub":
        one, rest = trees.bare(node.this), trees.bare(node.expression)
        if type(rest).__name__ == "Mod" and trees.whole_text(trees.bare(rest.this)) == trees.whole_text(one):
            width = _number(trees.bare(rest.expression), conditions)
            if type(one) is trees.exp.Column and width:
                for part in (node, rest):
                    trees.kind(part)
                return _ranges(one, width, width, trees.text(node), conditions)
        return None
    found = _divided(node, conditions)
    return None if found is None else _ranges(found[0], found[1], 1.0, trees.text(node), conditions)


def _divided(node: Any, conditions: Conditions) -> tuple[Any, float] | None:
    """Return the column and the width of FLOOR(x / w) or x // w."""
    trees = conditions.trees
    inner = trees.bare(node.this) if type(node).__name__ == "Floor" else node
    if type(inner).__name__ not in (("Div",) if inner is not node else ("IntDiv",)):
        return None
    column, width = trees.bare(inner.this), _number(trees.bare(inner.expression), conditions)
    if type(column) is not trees.exp.Column or not width or width < 0.0:
        return None
    for part in (node, inner):
        trees.kind(part)
    return column, width


def _number(node: Any, conditions: Conditions) -> float | None:
    if type(node).__name__ not in ("Literal", "Placeholder"):
        return None
    value = conditions.value(node)
    return value if type(value) in (int, float) else None


def _ranges(column: Any, width: float, unit: float, text: str, conditions: Conditions) -> Grouping:
    """Return the ranges between multiples of a width, each called by its multiple times a unit."""
    name, kind = conditions.column(column)
    if not isinstance(kind, IntegerRange | Binned):
        raise InvalidQueryError(f"{name} must be a number for ranges of it, got another kind; write CASE.")
    low, high = (kind.start, kind.stop) if isinstance(kind, IntegerRange) else (kind.edges[0], kind.edges[-1])
    if not (math.isfinite(low) and math.isfinite(high)) or (high - low) / width > MOST_RANGES:
        raise InvalidQueryError(
            f"{name} must have two ends, and at most {MOST_RANGES:,} ranges between them, got others in "
            f"{text}; write CASE."
        )
    first, last = math.floor(low / width), math.ceil(high / width)
    places = [place for place in range(first + 1, last) if low < place * width < high]
    labels = [_typed(place * unit) for place in (first, *places)]
    if not places:
        return of_cases([], labels[0])
    made = cut(name, [place * width for place in places])
    return Grouping("cut", name, (made.parts[0], tuple(labels)), name=text)


def _typed(value: float) -> Any:
    return int(value) if float(value).is_integer() else value
