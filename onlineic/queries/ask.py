"""Queries as the offline mechanisms take them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.queries.expressions import Expression, dense
from onlineic.queries.query import Query

__all__ = ["bound"]


def bound(queries: Iterable[Any], domain: Domain, grid_bits: int | None = None) -> list[Query]:
    """Return the queries bound to the domain: expressions, bound queries or arrays of weights.

    Raises
    ------
    InvalidParameterError
        If `queries` is no list or other iterable.
    InvalidQueryError, DomainMismatchError
        If a query is of another type, or does not fit the domain or the grid.
    """
    if isinstance(queries, (str, bytes)) or not isinstance(queries, Iterable):
        raise InvalidParameterError(
            f"queries must be a list of queries, got a {type(queries).__name__}; write [where(...), ...]."
        )
    options = {} if grid_bits is None else {"grid_bits": grid_bits}
    result = []
    for query in queries:
        if type(query) in (Expression, Query):  # a subclass could bring a `total` that looks at the counts
            result.append(query.bind(domain, **options))
        elif isinstance(query, np.ndarray):
            result.append(dense(query).bind(domain, **options))
        else:
            raise InvalidQueryError(
                "queries must hold data (where(...), a Query or an array of weights), "
                f"got a {type(query).__name__}; write [where(attribute=condition), ..]."
            )
    return result
