"""From what an analyst may ask to what a mechanism takes: the one place where foreign objects are let in."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.queries.expressions import Expression, dense
from onlineic.queries.marginals import BoundMarginal, Marginal
from onlineic.queries.query import GRID_BITS, Query
from onlineic.queries.rescaled import Rescaled

Question = Query | BoundMarginal
Guess = (
    int | tuple[int, ...]
)  # of a hypothesis: n 2^k times its answer to a query, or to each block of a table


def bind_query(query: Any, domain: Domain, grid_bits: int = GRID_BITS, *, name: str = "query") -> Query:
    """Return an expression, a bound query or an array of weights, bound to the domain; messages say `name`.

    Raises
    ------
    InvalidQueryError, DomainMismatchError, TooLargeError
        If it is of another type, or does not fit the domain or the grid.
    """
    if type(query) in (Expression, Query):  # a subclass could bring a `total` that looks at the counts
        bound: Query = query.bind(domain, grid_bits)
        return bound
    if isinstance(query, np.ndarray):
        return dense(query).bind(domain, grid_bits)
    remedy = "ask its expression" if isinstance(query, Rescaled) else "write where(attribute=condition)"
    raise InvalidQueryError(
        f"{name} must be data (where(...), a Query or an array of weights), "
        f"got a {type(query).__name__}; {remedy}."
    )


def bind_question(question: Any, domain: Domain, grid_bits: int = GRID_BITS) -> Question:
    """Return what `bind_query` does, or a cross table bound to the domain."""
    return question.bind(domain) if type(question) is Marginal else bind_query(question, domain, grid_bits)


def bind_queries(queries: Iterable[Any], domain: Domain, grid_bits: int = GRID_BITS) -> list[Query]:
    """Return a list of queries, each as `bind_query` does.

    Raises
    ------
    InvalidParameterError
        If `queries` is no list or other iterable.
    InvalidQueryError, DomainMismatchError, TooLargeError
        As `bind_query`.
    """
    if isinstance(queries, (str, bytes)) or not isinstance(queries, Iterable):
        raise InvalidParameterError(
            f"queries must be a list of queries, got a {type(queries).__name__}; write [where(...), ...]."
        )
    return [bind_query(query, domain, grid_bits, name="queries") for query in queries]
