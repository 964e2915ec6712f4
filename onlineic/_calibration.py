"""From a plan to a calibrated mechanism: which one, with what share of the budget for opening tables."""

import math
from fractions import Fraction
from typing import Any, Literal, final

import attrs

from onlineic.accounting import Budget
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
    "Shares",
    "SparseName",
    "brought",
    "calibrated",
    "chosen",
    "default_numbers",
    "default_shares",
    "session_grid_bits",
]

SparseName = Literal["gumbel", "exponential", "laplace"]
MOST_PLANNED = 100  # each refit takes a while
LEAST_PAIR_SHARE = 0.2  # below, noisier pair tables than tests can use
PARTITION_FALSE_HITS = 0.5  # a false hit still brings a table
PARTITION_RATIO = Fraction(1)  # sigma / b of a table: tests and tables of about equal noise


@final
@attrs.frozen
class Shares:
    """How a default partition session divides its capacity, and how finely it cuts.

    Attributes
    ----------
    hard_answers : int
        c, planned true hard answers.
    one_way, pairs : Fraction
        Shares of the opening tables; the rest pays hard answers.
    parts : int
        Equal parts into which a long ordered attribute is cut.
    misfit : float
        At what 2 loss / blocks the fit of the opening tables stops: below, it fits their noise.
    """

    hard_answers: int
    one_way: Fraction
    pairs: Fraction
    parts: int
    misfit: float


def default_shares(n: int, budget: Budget, max_queries: int, hard_answers: int | None) -> Shares:
    """Return the shares for a budget, from n epsilon alone; found by experiment, not proven to be best.

    Large n epsilon resolves more than two-way tables hold, so more goes to hard answers and finer cuts. A
    wish for more hard answers takes their price from the tables.
    """
    size = n * budget.epsilon / 5e4
    planned = min(max_queries, MOST_PLANNED, max(2, round(10.0 / 3.0 * size**0.8)))
    tests = min(0.4, max(0.1, 0.25 * size**0.45))
    if hard_answers is not None:
        tests = min(0.9, max(0.1, tests * hard_answers / planned))
    one_way = min(0.1, 1.0 - tests)
    pairs = 1.0 - one_way - tests
    return Shares(
        hard_answers=planned if hard_answers is None else hard_answers,
        one_way=Fraction(round(one_way * 1000), 1000),
        pairs=Fraction(round(pairs * 1000), 1000) if pairs >= LEAST_PAIR_SHARE else Fraction(0),
        parts=int(min(32.0, max(4.0, round(24.0 * size**0.6)))),
        misfit=min(0.7, max(0.55, 0.55 + 0.1 * math.log2(0.4 / size))),
    )


def default_numbers(n: int, budget: Budget, domain: Domain, max_queries: int) -> int:
    """Return c for a session that releases numbers and names neither an accuracy nor c.

    One number teaches little: many are planned. Found by experiment, not proven to be best.
    """
    planned: float = 85.0 * (n * budget.epsilon / 5e4) ** 0.45 * math.sqrt(len(domain.names) / 6.0)
    return min(max_queries, max(4, math.ceil(planned)))


def chosen(
    name: SparseName | None, cutoff: int, max_queries: int, budget: Budget, partition: bool
) -> SparseName:
    """Return the mechanism: the smaller predicted resolution, from public parameters."""
    if name is not None:
        if name not in ("gumbel", "exponential", "laplace"):
            raise InvalidParameterError(f"sparse must be 'gumbel', 'exponential' or 'laplace', got {name!r}.")
        return name
    if budget.delta == 0.0:
        return "exponential"
    if partition:
        return "gumbel"
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
    pure: bool = False,
) -> NumericSparse:
    """Return the named mechanism with the least noise that pays for `cutoff` hard answers.

    `reserved` is the share of the capacity, or with `pure` of epsilon, that is kept for other releases.
    """
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
        return ExponentialSparse.calibrated(budget, **common, fresh=partition, reserved=reserved)
    ratio = PARTITION_RATIO if partition else Fraction(2)
    false_hits = PARTITION_FALSE_HITS if partition else None
    kept = Fraction(0) if pure else reserved
    if pure:  # the order that suits what is left; a hair less, since capacities are rounded down
        left = budget.epsilon * float(1 - reserved) * (1.0 - 2.0**-30)
        tests = Budget(left, budget.delta, budget.allow_large_epsilon)
    else:
        tests = budget
    mechanism = GumbelSparse.calibrated(
        tests, **common, ratio=ratio, partition=partition, reserved=kept, false_hits=false_hits
    )
    return attrs.evolve(mechanism, epsilon=budget.epsilon) if pure else mechanism


def brought(sparse: NumericSparse, n: int, budget: Budget) -> NumericSparse:
    """Return a mechanism brought by the caller, if it is ours and spends no more than the budget."""
    if type(sparse) not in (GumbelSparse, ExponentialSparse, LaplaceSparse):
        raise InvalidParameterError(
            "sparse must be a GumbelSparse, ExponentialSparse or LaplaceSparse, got a "
            f"{type(sparse).__name__}: nothing is proven of another."
        )
    epsilon = Fraction(sparse.epsilon)  # type: ignore[attr-defined]
    delta = Fraction(getattr(sparse, "delta", 0.0))
    if epsilon > budget.epsilon_exact or delta > budget.delta_exact or sparse.n != n:
        raise InvalidParameterError(
            f"sparse must be made for n={n} and at most {budget}, got n={sparse.n}, "
            f"epsilon={float(epsilon):g}, delta={float(delta):g}; calibrate it for this table."
        )
    return sparse


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
