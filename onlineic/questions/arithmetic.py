"""Results that add, subtract, multiply and divide: numbers of one session or of several, with their bounds.

Counts are numbers of records there, whatever their answers are fractions of. Two results of one session hold
in its one event; of several sessions, or periods, their probabilities of failure add.

Proof: docs/theory/queries.md, 1.11.
"""

from numbers import Real
from typing import Any, final

import attrs
import numpy as np

from onlineic.display.text import shortened
from onlineic.errors import InvalidParameterError, InvalidQueryError, is_number_of, shown
from onlineic.queries.answers import Answer
from onlineic.queries.combined import bring
from onlineic.questions.formulas import SIGNS, Leaf, Number
from onlineic.questions.groups import Groups
from onlineic.questions.linear import known_as, known_error
from onlineic.questions.means import Derived

CONSTANTS = (
    "an Answer must be added to another result, got a plain number, which may mean records or a fraction; "
    "compute with answer.count or answer.value."
)


@final
@attrs.frozen(eq=False)
class _Side:
    """What stands on one side of a sign: its name, its numbers, and the groups that they are of, if any."""

    name: str
    number: Number
    groups: Groups | None = None


@bring
def worked(sign: str, left: Any, right: Any) -> Derived | Groups:
    """Return what two sides of a sign make.

    Raises:
        TypeError: If one is no result and no number.
        InvalidQueryError: If both are by group, and their groups differ.
    """
    sides = (left, right)
    added = sign in ("+", "-") and any(isinstance(one, Answer) for one in sides)
    if added and any(_is_plain(one) and one != 0 for one in sides):  # sum() begins with 0
        raise TypeError(CONSTANTS)
    one, two = _side(left), _side(right)
    if one.groups is not None and two.groups is not None:
        check_alike(one.groups, two.groups)
    number = SIGNS[sign](one.number, two.number)
    name = (
        f"-{two.name}"
        if type(left) is int and left == -1 and sign == "*"
        else f"{one.name} {sign} {two.name}"
    )
    by = one.groups if one.groups is not None else two.groups
    return Derived.of_number(name, number) if by is None else by.with_number(name, number)


def check_alike(one: Groups, other: Groups) -> None:
    """Raise `InvalidQueryError` unless two results are of the same groups."""
    if one.labels != other.labels:
        raise InvalidQueryError(
            f"groups must be the same to be combined, got {shown(one.keys, 60)} and {shown(other.keys, 60)} "
            "with other labels; take single groups, such as groups['F']."
        )


def _is_plain(value: object) -> bool:
    return is_number_of(value, Real)


def _side(value: Any) -> _Side:
    """Return what stands on one side of a sign."""
    if _is_plain(value):
        return _Side(f"{float(value):.15g}", Number.constant(float(value)))
    if isinstance(value, Derived):
        return _Side(_bracketed(value.name), value.as_number())
    if isinstance(value, Groups):
        return _Side(_bracketed(value.name.partition(" by ")[0]), value.as_number(), value)
    if isinstance(value, Answer):
        return _Side(
            "count" if value.query is None else _bracketed(shortened(value.query.written)), _count(value)
        )
    raise TypeError(
        f"a result must be combined with another or with a number, got a {type(value).__name__}; take its "
        "value."
    )


def _bracketed(name: str) -> str:
    """Return the name of a part, in brackets where it is made of parts itself."""
    return f"({name})" if any(f" {sign} " in name for sign in SIGNS) else name


def _count(answer: Answer) -> Number:
    """Return the number of records of one answer."""
    if isinstance(answer.value, np.ndarray):
        raise TypeError(
            "an Answer to a cross table must be combined group by group, got the table; ask group_by."
        )
    if answer.n is None or answer.beta is None:
        raise InvalidParameterError(
            "an Answer must state its number of records and its probability to be combined, got one of an "
            "engine that states none; compute with answer.value."
        )
    key, n = known_as(answer), answer.n
    bound = np.array([n * answer.error_bound])
    held = np.array([n * float(answer)])
    return Number.of(
        Leaf(
            key=("count", n, key),
            values=held,
            own=bound,
            joint=np.where(bound > 0.0, np.inf, 0.0),
            expected=np.array([n * known_error(answer)]),
            bias=np.zeros(1),
            few=np.zeros(1, np.bool_),
            failures=({key: answer.beta} if answer.error_bound > 0.0 else {},),
            event=(key, answer.beta),
            answers=((answer,),),
        )
    )
