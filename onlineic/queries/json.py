"""Queries as JSON text: the form in which the command line reads them, one a line."""

import json
from typing import Any

from onlineic.domain.dates import Dates
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidQueryError
from onlineic.queries.expressions import Condition, Expression, at_least, below, between, one_of, where


def parsed_query(line: str, domain: Domain) -> Expression:
    """Return the query written as one line of JSON.

    Parameters
    ----------
    line : str
        An object of attribute -> condition, or {"not": object}. A condition is a label, null, a list of two
        numbers on an ordered attribute, or of two texts on dates (both ends included; ends that cross count
        nobody), {"one_of": [..]}, {"not": condition}, {"at_least": number} or {"below": number}.
    domain : Domain
        Says which attributes are ordered; an attribute named "not" hides the complement.

    Raises
    ------
    InvalidQueryError
        If the line cannot be read.
    """
    try:
        written = json.loads(line, object_pairs_hook=_distinct, parse_constant=_no_number)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, InvalidQueryError):
            raise
        raise InvalidQueryError(
            'a query must be one line of JSON such as {"age": [30, 50], "sex": "F"}, got other text.'
        ) from None
    if not isinstance(written, dict):
        raise InvalidQueryError(
            f"a query must be a JSON object of attribute: condition, got {_kind(written)}; write {{..}}."
        )
    if list(written) == ["not"] and isinstance(written["not"], dict) and "not" not in domain.names:
        return ~_conjunction(written["not"], domain)
    return _conjunction(written, domain)


def _conjunction(written: dict[str, Any], domain: Domain) -> Expression:
    return where({name: _condition(name, value, domain) for name, value in written.items()})


def _condition(name: str, value: Any, domain: Domain) -> Any:
    """Return what `where` takes for one attribute."""
    ordered = domain.attribute(name).ordered
    if isinstance(value, list):
        dated = type(domain.attribute(name)) is Dates
        if (
            ordered
            and len(value) == 2
            and all(type(end) in ((str,) if dated else (int, float)) for end in value)
        ):
            return between(*value)
        ends = "two dates" if dated else "two numbers"
        raise InvalidQueryError(
            f"{name} must have {f'{ends} as a range' if ordered else 'no range, being categorical'}, "
            f'got a list of length {len(value)}; write {{"one_of": [..]}} for several labels.'
        )
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((form, inner),) = value.items()
        if form == "one_of" and isinstance(inner, list):
            return one_of(*inner)
        if form == "not":
            condition = _condition(name, inner, domain)
            return ~(condition if isinstance(condition, Condition) else one_of(condition))
        if form == "at_least":
            return at_least(inner)
        if form == "below":
            return below(inner)
    raise InvalidQueryError(
        f"{name} must have a condition with one of 'one_of' (a list), 'not', 'at_least' and 'below', got an "
        "object with other content."
    )


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise InvalidQueryError("an attribute must have one condition, got one twice; join them by 'not'.")
    return dict(pairs)


def _no_number(text: str) -> Any:
    raise InvalidQueryError(f"numbers must be finite, got {text}; write a number.")


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
