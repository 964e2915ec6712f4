"""Questions that name the period of a record: what they ask of each period by itself.

The sessions of periods do not know the attribute: inside one period it is a constant, so a question about it
is another question there, or everybody, or nobody.
"""

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from onlineic.domain.dates import Dates
from onlineic.errors import InvalidQueryError
from onlineic.queries.expressions import Expression, one_query, where
from onlineic.queries.marginals import Marginal

NOBODY, EVERYBODY = False, True
Inner = Expression | bool  # a question of a period, or everybody in it, or nobody


def inside(expression: Expression, name: str, kind: Dates, code: int) -> Inner:
    """Return what an expression asks of the period of this code.

    Args:
        name: Of the attribute that is the period.
        kind: Its labels.

    Raises:
        InvalidQueryError: If it gives the period a weight between 0 and 1, or speaks of it in an array of
            weights.
    """
    if expression.form == "where":
        rest = []
        for attribute, condition in expression.parts:
            if attribute != name:
                rest.append((attribute, condition))
                continue
            codes = condition.codes(name, kind)
            weight = float(codes[0] <= code < codes[1]) if isinstance(codes, tuple) else float(codes[code])
            if weight not in (0.0, 1.0):
                raise InvalidQueryError(
                    f"{name} must be a period that counts or does not, got the weight {weight:g}; write "
                    "between(..) or one_of(..)."
                )
            if not weight:
                return NOBODY
        return where(dict(rest)) if rest else EVERYBODY
    if expression.form == "not":
        part = inside(expression.parts[0], name, kind, code)
        return (not part) if isinstance(part, bool) else ~part
    if expression.form in ("and", "or"):
        absorbing = expression.form == "or"
        parts = []
        for one in expression.parts:
            part = inside(one, name, kind, code)
            if part is absorbing:
                return absorbing
            if not isinstance(part, bool):
                parts.append(part)
        return one_query(expression.form, parts) if parts else not absorbing
    if expression.form == "joint" and name not in expression.parts[:-1]:
        return expression
    raise InvalidQueryError(
        f"weights must be over the attributes of one period, got some over {name} too; combine them by & "
        f"with where({name}=..)."
    )


def asked_of(question: Any, name: str, kind: Dates) -> list[Any]:
    """Return what a question asks of each period, in order: an `Inner`, or a cross table without the period.

    A bound query, or an array of weights, is over the attributes of one period, and is asked of all alike.
    """
    if type(question) is Expression:
        return [inside(question, name, kind, code) for code in range(kind.size)]
    if type(question) is Marginal:
        return [_table_inside(question, name, kind, code) for code in range(kind.size)]
    if isinstance(question, np.ndarray):
        question = np.array(question)
    return [question] * kind.size


def _table_inside(question: Marginal, name: str, kind: Dates, code: int) -> Any:
    condition: Inner = EVERYBODY
    if question.condition is not None:
        condition = inside(question.condition, name, kind, code)
    kept = [place for place, one in enumerate(question.names) if one != name]
    names = tuple(question.names[place] for place in kept)
    groupings = tuple(question.groupings[place] for place in kept) if question.groupings else ()
    if condition is NOBODY:
        return NOBODY
    held = None if isinstance(condition, bool) else condition
    if not names:
        return EVERYBODY if held is None else held
    return attrs.evolve(question, names=names, condition=held, groupings=groupings)


def runs(asked: Sequence[Any]) -> list[tuple[int, int, Any]]:
    """Return (first, last, question) of the longest runs of periods that are asked alike."""
    found: list[tuple[int, int, Any]] = []
    for place, one in enumerate(asked):
        if found and (found[-1][2] is one or (type(one) is type(found[-1][2]) and _alike(one, found[-1][2]))):
            found[-1] = (found[-1][0], place, one)
        else:
            found.append((place, place, one))
    return found


def _alike(one: Any, other: Any) -> bool:
    return isinstance(one, Expression | bool | Marginal) and bool(one == other)
