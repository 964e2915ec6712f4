"""Certificates: the error that a session can promise once gap, threshold and noise are decoupled.

Any sparse implementation takes part by its margins, any rule by its T(alpha).

Proof: docs/theory/certificates.md, 8.2.
"""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, final

import attrs

from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    check_function,
    checked_integer,
    checked_real,
    is_number_of,
    shown,
)

UpdateBound = Callable[[float], float]
Margins = Callable[[int], tuple[float, float, float]]
LEAST_ALPHA, LARGEST_ALPHA = 1e-9, 1e6


@final
@attrs.frozen
class Certificate:
    """A tighter promise: hard gaps >= alpha, every answer within error_bound, at most c hard answers.

    Args:
        alpha: Above 0. alpha_d, with floor T(alpha_d) <= cutoff.
        cutoff: At least 1.
        threshold: alpha_d + a_hit.
        error_bound: alpha_d + a_hit + a_miss.
        hit_margin, miss_margin, number_margin: At least 0. a_hit, a_miss, a_num: how far a hit, an easy
            answer and a number can be off.
    """

    alpha: float
    cutoff: int
    threshold: float
    error_bound: float
    hit_margin: float
    miss_margin: float
    number_margin: float


def checked_bound(update_bound: object) -> UpdateBound:
    """Return alpha -> T(alpha), of which each number is checked: whoever reads one as 1 promises too much."""
    check_function("update_bound", update_bound, remedy="write alpha -> T(alpha)")
    given: Any = update_bound
    return lambda alpha: checked_updates(given(alpha), alpha)


def least_cutoff(update_bound: UpdateBound, alpha: float, scale: float = 1.0) -> tuple[float, float]:
    """Return checked alpha, and max(T(scale alpha), 1): the real number of updates to pay for."""
    alpha = checked_real("alpha", alpha, above=0.0)
    return alpha, max(1.0, checked_bound(update_bound)(scale * alpha))


def checked_updates(value: Any, alpha: float) -> float:
    """Return T(alpha), infinity where no float is as large, or raise `InvalidParameterError`."""
    if not (is_number_of(value, Real) and value >= 0):
        raise InvalidParameterError(
            f"update_bound must return a number >= 0, got {shown(value)} at alpha={alpha:g}; return T(alpha)."
        )
    try:
        return float(value)
    except OverflowError:
        return math.inf


def least_update_alpha(update_bound: UpdateBound, cutoff: int) -> float:
    """Return the smallest alpha with T(alpha) <= c, the upper end of a bisection.

    sqrt(ln|X|/(2c)) for tight multiplicative weights.

    Raises:
        InfeasibleAccuracyError: If T exceeds c at every alpha; the message names the least cutoff.
    """
    update_bound = checked_bound(update_bound)
    cutoff = checked_integer("cutoff", cutoff, at_least=1)
    if (least := update_bound(LARGEST_ALPHA)) > cutoff:
        wanted = "finite" if math.isinf(least) else f">= {math.ceil(least)}"
        raise InfeasibleAccuracyError(f"cutoff must be {wanted} for this rule, got cutoff={cutoff}.")
    if update_bound(LEAST_ALPHA) <= cutoff:
        return LEAST_ALPHA
    return least_feasible(lambda alpha: update_bound(alpha) <= cutoff, LEAST_ALPHA, LARGEST_ALPHA)


def certificate(update_bound: UpdateBound, margins: Margins, cutoff: int) -> Certificate:
    """Return the promise at cutoff c: threshold alpha_d + a_hit, all errors <= alpha_d + a_hit + a_miss.

    Theory 8.2 decouples what Theorem 5.14 of Dwork & Roth (2014) ties to one alpha.

    Args:
        margins: c -> (a_hit, a_miss, a_num), fractions of records. Of the sparse implementation, together
            failing with probability <= beta.
        cutoff: At least 1. alpha_d is the smallest alpha with T(alpha) <= c.

    Raises:
        InfeasibleAccuracyError: If a_num > alpha_d: a number could then point an update the wrong way.
    """
    check_function("margins", margins, remedy="write c -> (hit, miss, number)")
    cutoff = checked_integer("cutoff", cutoff, at_least=1)
    alpha = least_update_alpha(update_bound, cutoff)
    hit, miss, number = margins(cutoff)
    if number > alpha:
        raise InfeasibleAccuracyError(
            f"cutoff must leave a_num <= alpha_d, got cutoff={cutoff} with "
            f"{number:.4g} > {alpha:.4g}; lower it."
        )
    return Certificate(alpha, cutoff, alpha + hit, alpha + hit + miss, hit, miss, number)


def least_error(update_bound: UpdateBound, margins: Margins, most_cutoff: int = 10**9) -> Certificate:
    """Return the certificate with the smallest error bound over integer cutoffs c.

    Every cutoff gives a valid certificate; a grid and a ternary search find the best one wherever
    the error bound falls and then rises.

    Raises:
        InfeasibleAccuracyError: If no cutoff has a certificate.
    """

    def error(cutoff: int) -> float:
        try:
            return certificate(update_bound, margins, cutoff).error_bound
        except InfeasibleAccuracyError:
            return math.inf

    most_cutoff = checked_integer("most_cutoff", most_cutoff, at_least=1)
    grid = [1]
    while grid[-1] < most_cutoff:
        grid.append(min(most_cutoff, max(grid[-1] + 1, grid[-1] * 5 // 4)))
    errors = [error(cutoff) for cutoff in grid]
    best = errors.index(min(errors))
    if errors[best] == math.inf:
        raise InfeasibleAccuracyError(
            "n must be large enough for a certificate with a_num <= alpha_d; raise n."
        )
    low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    while high - low > 2:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, right) if error(left) <= error(right) else (left, high)
    return certificate(update_bound, margins, min(range(low, high + 1), key=error))


def least_accurate(
    error: Callable[[float], float], update_bound: UpdateBound, n: int, epsilon: float
) -> float:
    """Return the smallest alpha >= error(max(T(alpha), 1)), the upper end of a bisection.

    Raises:
        InfeasibleAccuracyError: If no alpha below 10^6 will do.
    """
    update_bound = checked_bound(update_bound)

    def feasible(alpha: float) -> bool:
        return alpha >= error(max(1.0, update_bound(alpha)))

    if not feasible(LARGEST_ALPHA):
        raise InfeasibleAccuracyError(
            f"n must be large enough for some alpha < {LARGEST_ALPHA:g}, got n={n}, epsilon={epsilon}; "
            "raise either."
        )
    return LEAST_ALPHA if feasible(LEAST_ALPHA) else least_feasible(feasible, LEAST_ALPHA, LARGEST_ALPHA)


def least_feasible(feasible: Callable[[float], bool], low: float, high: float) -> float:
    """Nearly least feasible number above an infeasible low: bisection of the logarithm."""
    for _ in range(200):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (low, middle) if feasible(middle) else (middle, high)
    return high
