"""Queries as JSON: lines of text, as the command line reads them, and the same as Python's dicts."""

import datetime
import json
import math
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from onlineic.ask.json_keys import Share, key_read, key_written
from onlineic.ask.places import in_json
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import InvalidParameterError, InvalidQueryError, shown
from onlineic.queries.expressions import (
    Condition,
    Expression,
    at_least,
    below,
    between,
    one_of,
    one_query,
    span,
    where,
)
from onlineic.queries.marginals import Marginal, marginal
from onlineic.queries.within import Within, expected

LONGEST = 2**20  # characters of a line
RANGE = ("from", "at_least", "to", "below")
MOST_RECURRING = 2**12  # labels and ranges that are remembered, of all domains


def parsed_query(line: str, domain: Domain) -> Expression | Marginal | Share:
    """Return the question written as one line of JSON: `described` of the object, or a rate.

    Raises:
        InvalidQueryError: If the line cannot be read, or holds a wish.
    """
    question, wish = parsed_line(line, domain)
    if wish is not None:
        raise InvalidQueryError(
            f"a query must say nothing but what is counted, got within {shown(wish)}; give it to what asks."
        )
    return question


def parsed_line(line: str, domain: Domain) -> tuple[Expression | Marginal | Share, Within | None]:
    """Return the question written as one line of JSON, and how exact it is to be, if "within" says it.

    Raises:
        InvalidQueryError: If the line cannot be read.
    """
    check_domain(domain)
    if type(line) is not str:
        raise InvalidQueryError(
            f"a query must be one line of JSON, got a {type(line).__name__}; write a text."
        )
    if len(line) > LONGEST:
        raise InvalidQueryError(
            f"a query must be a line of at most {LONGEST:,} characters, got {len(line):,}; ask its parts."
        )
    try:
        written = json.loads(line, object_pairs_hook=_distinct, parse_constant=_no_number)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, InvalidQueryError):
            raise
        raise InvalidQueryError(
            'a query must be one line of JSON such as {"age": [30, 50], "sex": "F"}, got other text.'
        ) from None
    if is_share(written, domain):
        return shared(written, domain), None
    question, wish = without_wish(written, domain)
    return described(question, domain), wish


def within_read(sent: Any) -> Within:
    """Return the wish that JSON writes as a number, or as {"expected": number}; certain: {"certain": number}.

    Args:
        sent: In the unit of the answer; "parts" beside the number says how many answers a statement is made
            of, each of which may fail with its part of beta.

    Raises:
        InvalidQueryError: If it is neither.
    """
    kinds = [*sent.keys() - {"parts"}] if isinstance(sent, dict) else ["certain"]
    members = sent if isinstance(sent, dict) else {"certain": sent}
    if kinds not in (["certain"], ["expected"]):
        raise InvalidQueryError(
            'within must be a number, or an object such as {"expected": 0.01}, got another object; write '
            "0.01 for one per cent."
        )
    (kind,) = kinds
    try:
        wish = Within(members[kind]) if kind == "certain" else expected(members[kind])
        return attrs.evolve(wish, parts=members.get("parts", 1))
    except InvalidParameterError as error:
        raise InvalidQueryError(in_json(str(error))) from None


def within_written(within: Within) -> Any:
    """Return the JSON that `within_read` reads back as the same wish."""
    kind = "certain" if within.certain else "expected"
    if within.parts > 1:
        return {kind: within.radius, "parts": within.parts}
    return within.radius if within.certain else {kind: within.radius}


def without_wish(written: Any, domain: Domain) -> tuple[Any, Within | None]:
    """Return a question in JSON, and the wish that stood in it as its member "within", if one did.

    Args:
        domain: An attribute of this name hides it.
    """
    if not isinstance(written, dict) or "within" not in written or "within" in domain.names:
        return written, None
    question = {name: one for name, one in written.items() if name != "within"}
    return question, within_read(written["within"])


def is_share(written: Any, domain: Domain) -> bool:
    """Return whether an object of JSON is a rate."""
    return isinstance(written, dict) and "share" in written and "share" not in domain.names


def shared(written: Any, domain: Domain) -> Share:
    """Return the rate that an object of JSON describes.

    Args:
        written: `{"share": condition}`, with "where": condition and "by": [keys] beside it, where a key is
            the name of an attribute, or makes groups of one: `{"date_trunc": "month", "of": "day"}`,
            `{"extract": "year", "of": "day"}`, `{"cut": "age", "at": [18, 65]}` or `{"case": [{"when":
            condition, "then": label}], "else": label}`.
        domain: Public.

    Raises:
        InvalidQueryError: If it cannot be read, or does not fit the domain.
    """
    if not is_share(written, domain) or not written.keys() <= {"share", "where", "by"}:
        raise InvalidQueryError(
            'a share must be written {"share": {..}, "where": {..}, "by": [..]}, got another object; write '
            "it so."
        )

    def read(condition: Any) -> Expression:
        return _query(condition, domain)

    among = written.get("where")
    by = written.get("by")
    given = by if isinstance(by, list | tuple) else [by]
    return Share(
        read(written["share"]),
        None if among in (None, {}) else read(among),
        None if by is None else tuple(key_read(key, domain, read) for key in given),
    )


def described(written: Any, domain: Domain) -> Expression | Marginal:
    """Return the query, or the cross table, that an object of JSON describes.

    Args:
        written: Attribute -> condition, all of which must hold; or one of {"not": query}, {"or": [queries]}
            and {"and": [queries]}; or {"marginal": [keys]}, a cross table, with "where": query beside it and
            keys as of `shared`. A condition is a label, None (null), {"one_of": [labels]}, {"not":
            condition}, or of an ordered attribute a range: [20, 64] with both ends, {"from": 20, "below": 65}
            without the last, {"from": 20, "to": 64} with it, or one end alone; "at_least" is another word for
            "from". Ends are numbers, or texts of dates; ends that cross count nobody.
        domain: Says which attributes are ordered; attributes named like a form hide it.

    Raises:
        InvalidQueryError: If it cannot be read, or does not fit the domain; the remedy is in JSON.
    """
    try:
        if is_share(written, domain):
            raise InvalidQueryError(
                "a query must count records, got a share, which is no query; ask session.share(..)."
            )
        if isinstance(written, dict) and "marginal" in written and "marginal" not in domain.names:
            return _marginal(written, domain)
        return _query(written, domain)
    except RecursionError:
        raise InvalidQueryError(
            'a query must nest a few hundred objects at most, got more; write {"or": [..]} with one list.'
        ) from None


def written(question: Expression | Marginal) -> dict[str, Any]:
    """Return the object of JSON that `described` reads back as the same question.

    Args:
        question: Of conditions; labels that are dates become texts.

    Raises:
        InvalidQueryError: If it holds weights, for which analysts' JSON has no form, or a range without ends.
    """
    if isinstance(question, Marginal):
        table: dict[str, Any] = {"marginal": [key_written(key, written) for key in question.keys]}
        return table if question.condition is None else {**table, "where": written(question.condition)}
    if type(question) is not Expression:
        raise InvalidQueryError(
            f"a query must be made of conditions to have a form in JSON, got a {type(question).__name__}; "
            "write where(attribute=condition)."
        )
    if question.form == "where":
        parts = {name: _told(name, condition) for name, condition in question.parts}
        if all([*part] == [name] for name, part in parts.items()):
            return {name: part[name] for name, part in parts.items()}
        return {"and": [*parts.values()]}
    if question.form == "not":
        return {"not": written(question.parts[0])}
    if question.form in ("or", "and"):
        return {question.form: [written(part) for part in question.parts]}
    raise _no_form("weights of cells")


def _told(name: str, condition: Condition) -> dict[str, Any]:
    """Return a condition on one attribute as a query."""
    if condition.form in ("or", "and"):
        return {condition.form: [_told(name, part) for part in condition.parts]}
    if condition.form == "not":
        inner = _told(name, condition.parts[0])
        return {name: {"not": inner[name]}} if [*inner] == [name] else {"not": inner}
    if condition.form == "one_of":
        labels = [_in_text(label) for label in condition.parts]
        plain = len(labels) == 1 and not isinstance(labels[0], list | dict)
        return {name: labels[0] if plain else {"one_of": labels}}
    if condition.form == "interval":
        low, high, closed = (_in_text(end) for end in condition.parts)
        ends = {} if low == -math.inf else {"from": low}
        ends |= {} if high == math.inf else {"to" if closed else "below": high}
        if ends:
            return {name: ends}
        raise _no_form("a range without ends")
    raise _no_form("weights")


def _in_text(label: Any) -> Any:
    return label.isoformat() if isinstance(label, datetime.date | datetime.datetime) else label


def _no_form(what: str) -> InvalidQueryError:
    return InvalidQueryError(
        f"a query must be made of conditions to have a form in JSON, got {what}; "
        "ask conditions, a mean or a sum."
    )


def _marginal(written: dict[str, Any], domain: Domain) -> Marginal:
    names = written["marginal"]
    if not written.keys() <= {"marginal", "where"} or not isinstance(names, list | tuple):
        raise InvalidQueryError(
            'a cross table must be written {"marginal": [attributes], "where": {..}}, got another object; '
            "list its attributes, and put conditions after 'where'."
        )
    keys = [key_read(name, domain, lambda one: _query(one, domain)) for name in names]
    condition = None if written.get("where") in (None, {}) else _query(written["where"], domain)
    return marginal(*keys, where=condition)


def _query(written: Any, domain: Domain) -> Expression:
    if not isinstance(written, dict):
        raise InvalidQueryError(
            f"a query must be a JSON object of attribute: condition, got {_kind(written)}; write {{..}}."
        )
    form, *others = written or ("",)
    if not others and form in ("not", "or", "and") and form not in domain.names:
        inner = written[form]
        if form == "not":
            return ~_query(inner, domain)
        if not isinstance(inner, list) or not inner:
            got = "an empty one" if isinstance(inner, list) else _kind(inner)
            raise InvalidQueryError(
                f'{form} must hold a list of queries, got {got}; write {{"{form}": [{{..}}, {{..}}]}}.'
            )
        return one_query("or" if form == "or" else "and", [_query(part, domain) for part in inner])
    return where({name: _checked(name, value, domain) for name, value in written.items()})


def _checked(name: str, value: Any, domain: Domain) -> Condition:
    """Return the condition on one attribute if it fits it: refused now, it is refused in JSON."""
    held = tuple(value) if type(value) is list else value
    if type(held) in (str, int) or (type(held) is tuple and [*map(type, held)] == [int, int]):
        return _recurring(name, held, domain)  # questions of a stream share most of theirs
    return _fitting(name, value, domain)


def _fitting(name: str, value: Any, domain: Domain) -> Condition:
    try:
        condition = _as_condition(_condition(name, value, domain))
        condition.codes(name, domain.attribute(name))
    except InvalidQueryError as error:
        raise InvalidQueryError(in_json(str(error))) from None
    return condition


_recurring = lru_cache(MOST_RECURRING)(_fitting)


def _condition(name: str, value: Any, domain: Domain) -> Any:
    """Return what `where` takes for one attribute."""
    ordered = domain.attribute(name).ordered
    if isinstance(value, list | tuple):
        ends = list(map(_plain, value))
        if ordered and len(ends) == 2 and all(type(end) in (int, float, str) for end in ends):
            return between(*ends)
        raise InvalidQueryError(
            f"{name} must have {'two ends as a range' if ordered else 'no range, being categorical'}, "
            f'got a list of length {len(value)}; write {{"one_of": [..]}} for several labels.'
        )
    if not isinstance(value, dict):
        return value
    if value and set(value) <= set(RANGE):
        return _range(name, {form: _plain(end) for form, end in value.items()})
    if len(value) == 1:
        ((form, inner),) = value.items()
        if form == "one_of" and isinstance(inner, list | tuple):
            return one_of(*inner)
        if form == "not":
            return ~_as_condition(_condition(name, inner, domain))
    forms = "'from', 'to' or 'below', with " if ordered else ""
    example = '{"from": 20, "below": 65}' if ordered else '{"one_of": [..]}'
    raise InvalidQueryError(
        f"{name} must have a condition with {forms}'one_of' (a list) or 'not', got an object with other "
        f"content; write for example {example}."
    )


def _range(name: str, ends: dict[str, Any]) -> Condition:
    """Return the condition of a range with one or two ends."""
    if len(ends.keys() & {"from", "at_least"}) > 1 or len(ends.keys() & {"to", "below"}) > 1:
        raise InvalidQueryError(
            f"{name} must have at most one end on each side, got {' and '.join(map(repr, ends))}; "
            "leave one of them out."
        )
    low = ends.get("from", ends.get("at_least"))
    if "below" in ends:
        return below(ends["below"]) if low is None else span(low, ends["below"])
    if "to" in ends:
        return between(-math.inf if low is None else low, ends["to"])
    return at_least(low)  # None and others are refused there


def _as_condition(value: Any) -> Condition:
    return value if isinstance(value, Condition) else one_of(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise InvalidQueryError(
            "an attribute must have one condition, got one twice; write "
            '{"and": [{..}, {..}]} for both, {"or": [{..}, {..}]} for either.'
        )
    return dict(pairs)


def _no_number(text: str) -> Any:
    raise InvalidQueryError(f"numbers must be finite, got {text}; write a number.")


def _kind(value: Any) -> str:
    kinds = {list: "a list", tuple: "a tuple", dict: "an object", str: "a text", bool: "true or false"}
    if isinstance(value, int | float) and type(value) is not bool:
        return "a number"
    return "null" if value is None else kinds.get(type(value), f"a {type(value).__name__}")
