"""From what an analyst may ask to what a mechanism takes: the one place where foreign objects are let in."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from onlineic.ask.json import described
from onlineic.ask.sql_conditions import condition
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.queries.batch import Columns, Queries
from onlineic.queries.expressions import Expression, dense, intervals
from onlineic.queries.marginals import BoundMarginal, Marginal, Question
from onlineic.queries.query import GRID_BITS, Query
from onlineic.queries.rescaled import Rescaled


def bind_query(query: Any, domain: Domain, grid_bits: int = GRID_BITS, *, name: str = "query") -> Query:
    """Return an expression, a text, a dict, a bound query or an array of weights, bound to the domain.

    A text is a condition in SQL, as of `condition`; a dict is read as JSON is, by `described`; messages say
    `name`.

    Raises:
        InvalidQueryError, DomainMismatchError, TooLargeError: If it is of another type, or does not fit the
            domain or the grid.
    """
    query = as_condition(query, domain)
    if type(query) in (Expression, Query):  # a subclass could bring a `total` that looks at the counts
        bound: Query = query.bind(domain, grid_bits)
        return bound
    if isinstance(query, np.ndarray):
        return dense(query).bind(domain, grid_bits)
    remedy = "write where(attribute=condition)"
    if isinstance(query, Rescaled):
        remedy = "ask its expression"
    elif isinstance(query, Marginal | BoundMarginal):
        remedy = "ask its cells one by one by where(attribute=condition)"
    elif isinstance(query, list | tuple):
        remedy += ", or answer_many([query, ...]) for several"
    raise InvalidQueryError(
        f"{name} must be data (where(...), a text condition, a Query or an array of weights), "
        f"got a {type(query).__name__}; {remedy}."
    )


def as_condition(where: Any, domain: Domain) -> Any:
    """Return what a text or a dict says as an expression, anything else as it is.

    Raises:
        InvalidQueryError, TooLargeError: If it does not fit the domain.
    """
    if type(where) is str:
        return condition(where, domain)
    return described(where, domain) if type(where) is dict else where


def check_many(queries: object) -> None:
    """Raise `InvalidQueryError` unless these can be several queries: one alone is often meant for them."""
    one = isinstance(queries, str | bytes | dict) or (isinstance(queries, np.ndarray) and queries.ndim < 2)
    try:
        iter(queries)  # type: ignore[call-overload]
    except Exception:  # whatever it raises: it cannot be gone through
        one = True
    if one:
        raise InvalidQueryError(
            f"queries must be a sequence of queries, got a {type(queries).__name__}; write [query, ...], or "
            "answer(query) for one."
        )


def bind_question(question: Any, domain: Domain, grid_bits: int = GRID_BITS) -> Question:
    """Return what `bind_query` does, or a cross table bound to the domain."""
    if type(question) is Expression or type(question) is Query:  # of what is asked, most
        bound: Query = question.bind(domain, grid_bits)
        return bound
    if type(question) is dict:
        question = described(question, domain)
    if type(question) is BoundMarginal:  # bound anew from its words: nobody has checked its cells
        question = question.unbound
    return question.bind(domain) if type(question) is Marginal else bind_query(question, domain, grid_bits)


def bind_batch(
    questions: Iterable[Any], domain: Domain, grid_bits: int = GRID_BITS
) -> list[Queries | BoundMarginal]:
    """Return what `bind_question` makes of each, in order: runs of queries as columns, and cross tables.

    Raises:
        InvalidQueryError, DomainMismatchError, TooLargeError: As `bind_query`.
    """
    if isinstance(questions, Queries):
        return [questions.bind(domain, grid_bits)]
    parts: list[Queries | BoundMarginal] = []
    columns = Columns(domain)
    for question in questions:
        question = as_condition(question, domain)
        if type(question) is Expression and question.form == "where":
            found = intervals(question, domain)
            if found is not None and columns.conjunction(found):
                continue
        bound = bind_question(question, domain, grid_bits)
        if isinstance(bound, Query):
            columns.add(bound)
            continue
        if len(columns):
            parts.append(columns.queries())
            columns = Columns(domain)
        parts.append(bound)
    if len(columns):
        parts.append(columns.queries())
    return parts


def bind_queries(queries: Iterable[Any], domain: Domain, grid_bits: int = GRID_BITS) -> list[Query]:
    """Return a list of queries, each as `bind_query` does.

    Raises:
        InvalidParameterError: If `queries` is no list or other iterable.
        InvalidQueryError, DomainMismatchError, TooLargeError: As `bind_query`.
    """
    if isinstance(queries, (str, bytes)) or not isinstance(queries, Iterable):
        raise InvalidParameterError(
            f"queries must be a list of queries, got a {type(queries).__name__}; write [where(...), ...]."
        )
    return [bind_query(query, domain, grid_bits, name="queries") for query in queries]
