"""Questions as they cross the network: what analysts write, and sums by name; never weights.

Besides the JSON of conditions and cross tables (`onlineic.ask.json`) there is one form for means and sums,
`{"weigh": "age", "by": "share" | "rest" | "held" | "square", "where": {..}}`, and one for products of two
places, `{"weigh": {"age": "share", "pay": "rest"}, "where": {..}}`: the server makes their weights from the
domain, as `onlineic.questions.means.Numbers` does. No array, constant, rounding or grid crosses: a rounding
that a stranger states would widen the bounds of everybody.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlineic._typing import Floats
from onlineic.ask.bind import as_condition
from onlineic.ask.json import described, written
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidQueryError, OnlineICError, TooLargeError, shown
from onlineic.queries.expressions import Expression, one_query, where
from onlineic.queries.marginals import Marginal
from onlineic.questions.means import Numbers

WEIGHTS = ("share", "rest", "held", "square")
MOST_CELLS = 2**20  # leaves of a question times the values that each of them looks at
PLAIN = 2**13  # of them that a plain question looks at: a fraction of what an answer takes
TOLD = 2**6  # cells of a table that are told as fast
DEEPEST = 60  # objects and lists inside each other


def to_wire(question: Any, domain: Domain) -> Any:
    """Return a question as it is sent; what is sent is read back to the same question, or refused here.

    Args:
        question: Expression, Marginal, text or dict.

    Raises:
        InvalidQueryError: If it has no such form: weights of one's own, arrays, bound queries.
    """
    if isinstance(question, str | dict):
        return question
    if not isinstance(question, Expression | Marginal):
        raise InvalidQueryError(
            f"a question to a server must be made of conditions, got a {type(question).__name__}; write "
            "where(attribute=condition), a text or a dict."
        )
    told = None
    if isinstance(question, Expression):
        told = _weighed(question, domain) or _product_told(question, domain)
    sent = written(question) if told is None else told
    again, asked = from_wire(json.loads(json.dumps(sent, allow_nan=False)), domain), question.bind(domain)
    if again.bind(domain).key != asked.key or getattr(asked, "rounding", 0.0) != getattr(
        again.bind(domain), "rounding", 0.0
    ):
        raise InvalidQueryError(
            "a question to a server must read the same when it arrives, got one that does not; rename "
            "attributes that are called like a form: not, or, and, marginal, weigh."
        )
    return sent


def from_wire(sent: Any, domain: Domain) -> Any:
    """Return the expression or cross table that was sent: of a text what its condition in SQL says.

    Raises:
        InvalidQueryError, TooLargeError: If it cannot be read, or costs too much to look at.
    """
    return costed(sent, domain)[0]


def costed(sent: Any, domain: Domain) -> tuple[Any, int]:
    """Return the same with `cost_of` it."""
    cost = cost_of(sent, domain)  # before it is looked at
    return _read(sent, domain), cost


def _read(sent: Any, domain: Domain) -> Any:
    if isinstance(sent, dict) and isinstance(sent.get("weigh"), dict) and "weigh" not in domain.names:
        return _product_read(sent, domain)
    if isinstance(sent, dict) and "weigh" in sent and "weigh" not in domain.names:
        if not sent.keys() <= {"weigh", "by", "where"} or sent.get("by") not in WEIGHTS:
            raise InvalidQueryError(
                'a sum must be written {"weigh": attribute, "by": "share", "rest", "held" or "square", '
                '"where": {..}}, '
                "got another object."
            )
        condition = None if sent.get("where") is None else as_condition(sent["where"], domain)
        if not isinstance(sent["weigh"], str) or not (condition is None or type(condition) is Expression):
            raise InvalidQueryError("a sum must be of an attribute under a condition, got other values.")
        numbers = Numbers.of(domain, sent["weigh"], condition)
        numbers.check(condition)
        return numbers.weighted(_weights(numbers)[sent["by"]])
    if not isinstance(sent, str | dict):
        raise InvalidQueryError(f"a question must be an object or a text, got {shown(sent)}.")
    return as_condition(sent, domain) if isinstance(sent, str) else described(sent, domain)


def _product_read(sent: dict[str, Any], domain: Domain) -> Expression:
    """Return the product of the places of two attributes, as it was sent."""
    weighed, among = sent["weigh"], sent.get("where")
    fits = sent.keys() <= {"weigh", "where"} and len(weighed) == 2
    if not fits or not all(by in ("share", "rest") for by in weighed.values()):
        raise InvalidQueryError(
            'a product must be written {"weigh": {attribute: "share" or "rest", ..}, "where": {..}}, got '
            "another object."
        )
    condition = None if among is None else as_condition(among, domain)
    if not (condition is None or type(condition) is Expression):
        raise InvalidQueryError("a product must be under a condition, got another value.")
    parts: dict[str, Any] = {}
    for name, by in weighed.items():
        numbers = Numbers.of(domain, name, condition)
        numbers.check(condition)
        side = numbers.sides(numbers.shares if by == "share" else 1.0 - numbers.shares)
        parts |= dict(side.parts)
    found = where(parts)
    return found if condition is None else found & condition


def _product_told(question: Expression, domain: Domain) -> dict[str, Any] | None:
    """Return the form of a product of two places, if an expression is one."""
    parts: Sequence[Any] = question.parts if question.form == "and" else (question,)
    first = parts[0]
    if first.form != "where" or [one.form for _, one in first.parts] != ["weights", "weights"]:
        return None
    others = parts[1:]
    condition = None if not others else others[0] if len(others) == 1 else one_query("and", others)
    weighed = {}
    for name, held in first.parts:
        try:
            numbers = Numbers.of(domain, name, condition)
        except OnlineICError:
            return None
        by = [
            one for one in ("share", "rest") if np.array_equal(_weights(numbers)[one], np.array(held.parts))
        ]
        if not by:
            return None
        weighed[name] = by[0]
    return {"weigh": weighed, **({} if condition is None else {"where": written(condition)})}


def cost_of(sent: Any, domain: Domain) -> int:
    """Return about how many plain questions a question is as long to look at as, before it is looked at.

    Each leaf may touch every value of its attribute, and every cell of a table is told.

    Raises:
        TooLargeError: If it takes too long.
    """
    leaves, cells, names, depth, level = 0, 1, set[str](), 0, [sent]
    while level:
        depth, inner = depth + 1, list[Any]()
        for one in level:
            if isinstance(one, dict):
                names.update(name for name in one if name in domain.names)
                inner += one.values()
                if isinstance(table := one.get("marginal"), list):
                    axes = {name for name in table if isinstance(name, str) and name in domain.names}
                    cells = max(cells, math.prod(domain.attribute(name).size for name in axes))
            elif isinstance(one, list):
                inner += one
            else:
                leaves += 1
                if isinstance(one, str) and one in domain.names:  # of a sum or a table
                    names.add(one)
        level = inner
        if depth > DEEPEST:
            raise TooLargeError(f"a question must nest at most {DEEPEST} objects, got more; ask its parts.")
    if isinstance(sent, str):  # of names that are in it
        names.update(name for name in domain.names if name in sent)
        leaves = sent.count("'") + sent.count("=") + sent.count(",") + sent.count(">") + sent.count("<") + 1
    widest = max([domain.attribute(name).size for name in names], default=1)
    if leaves * widest > MOST_CELLS:
        raise TooLargeError(
            f"a question must look at no more than {MOST_CELLS:,} values, got {leaves:,} conditions on up to "
            f"{widest:,} values each; ask fewer, or ranges."
        )
    return max(1, leaves * widest // PLAIN, cells // TOLD)


def _weighed(question: Expression, domain: Domain) -> dict[str, Any] | None:
    """Return the form of a sum, if an expression is one."""
    parts: Sequence[Any] = question.parts if question.form == "and" else (question,)
    at = [place for place, part in enumerate(parts) if _attribute(part) is not None]
    if len(at) != 1:
        return None
    name, values = _attribute(parts[at[0]]) or ("", np.zeros(0))
    others = [part for place, part in enumerate(parts) if place != at[0]]
    condition = None if not others else others[0] if len(others) == 1 else one_query("and", others)
    try:
        numbers = Numbers.of(domain, name, condition)
    except OnlineICError:
        return None
    for by, weights in _weights(numbers).items():
        if np.array_equal(weights, values):
            sent = {"weigh": name, "by": by}
            return sent if condition is None else {**sent, "where": written(condition)}
    return None


def _attribute(part: Expression) -> tuple[str, Floats] | None:
    """Return attribute and weights of an expression that is nothing but these."""
    if part.form != "where" or len(part.parts) != 1 or part.parts[0][1].form != "weights":
        return None
    name, condition = part.parts[0]
    return name, np.array(condition.parts, np.float64)


def _weights(numbers: Numbers) -> dict[str, Floats]:
    return {
        "share": numbers.shares,
        "rest": np.where(numbers.held, 1.0 - numbers.shares, 0.0),
        "held": np.where(numbers.held, 1.0, 0.0),
        "square": numbers.squares,
    }
