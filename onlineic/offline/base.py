"""How every mechanism of this package meets the private table: paid first, and private frames stay inside."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from onlineic._checks import check_types
from onlineic._guard import guarded
from onlineic.accounting import Budget
from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.expressions import Expression, dense
from onlineic.noise import Noise, SystemNoise, checked_source
from onlineic.queries import Query

__all__ = ["bound", "checked_noise", "is_private", "released"]

FAILED = (
    "a release must not be interrupted between reading the data and its result, but was: its budget stays "
    "spent; ask again with a budget of its own (budgets add)."
)
T = TypeVar("T")
_log = logging.getLogger("onlineic")


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


def checked_noise(noise: Noise | None) -> Noise:
    """Return the source to draw from: the system's entropy where none is given.

    Raises
    ------
    InvalidParameterError
        If it is no `Noise`.
    """
    return SystemNoise() if noise is None else checked_source(noise)


def is_private(noise: Noise) -> bool:
    """Return whether a release is private: of other sources than the system nothing is known."""
    return type(noise) is SystemNoise


def released(data: PrivateData, budget: Budget, noise: Noise, private: Callable[[], T]) -> T:
    """Charge `budget` to the table, then run `private`, which reads the data and draws.

    Everything public must be checked before: from here on the budget is spent, whatever happens.

    Raises
    ------
    InvalidParameterError
        If data or budget are of another type; nothing was spent.
    SessionSealedError
        If `private` failed. Its cause is not chained: a traceback could hold a private number.
    """
    check_types(data, budget, None)
    if is_private(noise):
        data.opened.append(budget)
    return guarded(private, lambda name, place: _log.error("release failed: %s at %s", name, place), FAILED)
