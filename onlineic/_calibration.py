"""From a plan to a calibrated mechanism: which one, with what share of the budget for opening tables."""

import math
from fractions import Fraction
from typing import Any, Literal, final

import attrs

from onlineic.accounting import Budget, Charge, gaussian_charge
from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.queries import GRID_BITS
from onlineic.sparse import (
    ExponentialSparse,
    GumbelSparse,
    LaplaceSparse,
    NumericSparse,
    exponential_resolution,
    gumbel_resolution,
)

__all__ = [
    "OneWayTables",
    "SparseName",
    "calibrated",
    "chosen",
    "default_hard_answers",
    "one_way_tables",
    "session_grid_bits",
]

SparseName = Literal["gumbel", "exponential", "laplace"]
PARTITION_RATIO = Fraction(1)  # sigma / b of a table: tests and tables of about equal noise


@final
@attrs.frozen
class OneWayTables:
    """The one-way marginals that a session opens with: their noise in records, and their charge."""

    sigma: int
    charge: Charge


def default_hard_answers(domain: Domain, n: int, budget: Budget, max_queries: int, *, partition: bool) -> int:
    """Return c for a session that names neither an accuracy nor a number of hard answers.

    More attributes hold more to learn, more records and a larger budget allow finer answers; too few hard
    answers leave the rest untested, a few too many cost ten or twenty per cent of noise. Numbers teach less
    than tables, so more are planned. Found by experiment, not proven to be best.
    """
    tables: float = 17.0 * (n * budget.epsilon / 5e4) ** 0.45 * math.sqrt(len(domain.names) / 6.0)
    planned = math.ceil(tables if partition else 5.0 * tables)
    return min(max_queries, max(4, planned))


def chosen(
    name: SparseName | None, cutoff: int, max_queries: int, budget: Budget, partition: bool
) -> SparseName:
    """Return the mechanism: the smaller predicted resolution, from public parameters."""
    if name is not None:
        if name not in ("gumbel", "exponential", "laplace"):
            raise InvalidParameterError(f"sparse must be 'gumbel', 'exponential' or 'laplace', got {name!r}.")
        return name
    if partition:
        return "gumbel"
    if budget.delta == 0.0:
        return "exponential"
    exponential = exponential_resolution(cutoff, max_queries, budget.epsilon)
    return (
        "gumbel"
        if gumbel_resolution(cutoff, max_queries, budget.epsilon, budget.delta) <= exponential
        else "exponential"
    )


def calibrated(
    name: SparseName,
    budget: Budget,
    n: int,
    cutoff: int,
    max_queries: int,
    beta: float,
    *,
    alpha: float | None = None,
    threshold: float | None = None,
    partition: bool = False,
    reserved: Fraction = Fraction(0),
) -> NumericSparse:
    """Return the named mechanism with the least noise that pays for `cutoff` hard answers."""
    common: dict[str, Any] = {
        "n": n,
        "hard_answers": cutoff,
        "max_queries": max_queries,
        "grid_bits": session_grid_bits(n),
        "alpha": alpha,
        "threshold": threshold,
        "beta": beta,
    }
    if name == "laplace":
        return LaplaceSparse.calibrated(budget, **common)
    if name == "exponential":
        return ExponentialSparse.calibrated(budget, **common)
    ratio = PARTITION_RATIO if partition else Fraction(2)
    return GumbelSparse.calibrated(budget, **common, ratio=ratio, partition=partition, reserved=reserved)


def one_way_tables(mechanism: GumbelSparse, domain: Domain, share: Fraction) -> OneWayTables:
    """Return the least noise with which all one-way marginals cost at most their share."""
    most = math.floor(share * mechanism.capacity)
    squared = 2 * len(domain.names)  # one record moves between two cells of every marginal
    sigma = max(1, math.floor(math.sqrt(float(mechanism.order) * squared * 2**40 / (2.0 * most))))
    while gaussian_charge(mechanism.order, Fraction(sigma), squared) > most:
        sigma += 1
    ticks = gaussian_charge(mechanism.order, Fraction(sigma), squared)
    return OneWayTables(sigma, Charge(Fraction(ticks), "one-way marginals"))


def session_grid_bits(n: int) -> int:
    """Return the finest grid on which n 2^k fits a float64 integer with a bit to spare, at most 20.

    Raises
    ------
    InvalidParameterError
        If fewer than 8 bits are left for weights between 0 and 1.
    """
    bits = min(GRID_BITS, 52 - math.ceil(math.log2(n)))
    if bits < 8:
        raise InvalidParameterError(f"n must be at most 2^44 for a grid of 8 bits, got n={n}; take a sample.")
    return bits
