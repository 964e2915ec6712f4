"""The public parameters of a session, settled from public facts alone before the data are touched."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, final

import attrs

from onlineic.accounting import Budget
from onlineic.bounds import (
    Branch,
    SparseScales,
    numeric_sparse_branch,
    numeric_sparse_scales,
    online_ic_accuracy,
    sparse_margin,
)
from onlineic.domain import Domain
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    checked_integer,
    checked_real,
)
from onlineic.noise import scale_at_least
from onlineic.queries import GRID_BITS
from onlineic.sparse import LaplaceSparse, NumericSparse
from onlineic.updates import ExactBound, NeedsAccuracy, UpdateRule

__all__ = ["Plan", "practical_plan", "session_grid_bits", "textbook_plan"]

FALSE_HITS = 0.2  # tolerated share of the hard answers that tests of equal numbers may use up
NO_BOUND = 1e15  # hard answers that no budget can pay, where a rule has no T at this alpha
LEAST, MOST = 1e-100, 2**63 - 1
SCALE_BITS = 47  # scales in grid units stay below 2^48, the samplers' limit
Rule = UpdateRule[Any]


@final
@attrs.frozen
class Plan:
    """All that a session fixes at its start, a function of public facts.

    Attributes
    ----------
    sparse : NumericSparse
    update : UpdateRule
    alpha : float
        Gap that an update may rely on, fraction of records.
    beta : float
        Failure probability of the accuracy statements.
    max_queries : int
        Q, the length of the stream that `error_bound` speaks of. Privacy does not depend on it.
    hard_answers : int
        c, hard answers paid for.
    error_bound : float
        Bound on every answer of the first Q at once that was tested, with probability 1 - beta.
    certified : bool
        Whether c is at least T(alpha), so that the hard answers cannot run out in the good event and
        `error_bound` covers every answer.
    textbook : bool
        Whether answers carry the theorem's own bound, 3 alpha.
    """

    sparse: NumericSparse
    update: Rule
    alpha: float
    beta: float
    max_queries: int
    hard_answers: int
    error_bound: float
    certified: bool
    textbook: bool = False


def textbook_plan(
    domain: Domain,
    n: int,
    budget: Budget,
    update: Rule,
    *,
    beta: float = 0.05,
    max_queries: int = 1000,
    alpha: float | None = None,
) -> Plan:
    """Return Algorithm OnlineIC at its theorem's parameters: c = floor T(alpha), threshold 2 alpha, pairs.

    Parameters
    ----------
    alpha : float, optional
        None: the least alpha that the theorem allows.

    Raises
    ------
    InfeasibleAccuracyError
        If alpha is below the least feasible one, which the message names.

    References
    ----------
    Dwork & Roth (2014), Algorithm 11, Theorems 5.13 to 5.15, with the constants of `onlineic.bounds`. The
    threshold is 2 alpha; the closed formula printed in Algorithm 11 agrees with it at the least alpha only.
    """
    _check_common(n, budget, max_queries, beta)
    accuracy_of = _bound_of(update := _for_stream(update, max_queries, n), domain)
    if accuracy_of is None:
        raise InvalidParameterError(
            f"update must have a proven T(alpha) in textbook mode, got {update!r}; use OnlineIC(...)."
        )
    solved = partial(
        online_ic_accuracy,
        accuracy_of,
        n=n,
        max_queries=max_queries,
        epsilon=budget.epsilon,
        delta=budget.delta,
        beta=beta,
        alpha=alpha,
    )
    try:
        accuracy = solved()
    except InvalidParameterError:
        accuracy = solved(branch="pure")  # Corollary 3.21 fails at a large epsilon: pure noise always holds
    update = _at(update, domain, accuracy.alpha)
    grid_bits = _grid_bits(n, accuracy.cutoff, budget, accuracy.branch)
    sparse = LaplaceSparse(
        n=n,
        epsilon=budget.epsilon,
        delta=budget.delta,
        # one unit more, so that a hit in the good event has a gap STRICTLY above alpha on the grid
        threshold=math.ceil(2.0 * accuracy.alpha * (n << grid_bits)) + 1,
        cutoff=accuracy.cutoff,
        grid_bits=grid_bits,
        pair=True,
        branch=accuracy.branch,
    )
    return Plan(
        sparse=sparse,
        update=update,
        alpha=accuracy.alpha,
        beta=beta,
        max_queries=max_queries,
        hard_answers=accuracy.cutoff,
        error_bound=accuracy.error_bound,
        certified=True,
        textbook=True,
    )


def practical_plan(
    domain: Domain,
    n: int,
    budget: Budget,
    update: Rule,
    *,
    beta: float = 0.05,
    max_queries: int = 10_000,
    alpha: float | None = None,
    hard_answers: int | None = None,
    threshold: float | None = None,
) -> Plan:
    """Return a session that tests |gap| once, with `LaplaceSparse`.

    With `alpha`, c = max(1, floor T(alpha)) and the threshold is alpha + a_hit, so that the certificate
    holds for all answers. With `hard_answers`, the threshold is the one at which max_queries tests of
    equal numbers cause at most 0.2 c false hits on average: nothing promises that c is enough, but every
    answer given before they are used up keeps its bound.

    Parameters
    ----------
    alpha, hard_answers : float, int
        Exactly one of the two.
    threshold : float, optional
        Fraction of records; overrides the rule above (with `hard_answers` only).

    Raises
    ------
    InfeasibleAccuracyError
        If alpha cannot be kept; the message names the least feasible one.
    """
    _check_common(n, budget, max_queries, beta)
    if (alpha is None) == (hard_answers is None):
        raise InvalidParameterError(
            f"exactly one of alpha and hard_answers must be given, got alpha={alpha} and "
            f"hard_answers={hard_answers}; give the accuracy or the number of measured answers."
        )
    update = _for_stream(update, max_queries, n)
    if alpha is not None:
        alpha = checked_real("alpha", alpha, above=0.0, below=1.0)
        if threshold is not None:
            raise InvalidParameterError(
                f"threshold must be None with alpha, which settles it, got threshold={threshold}."
            )
        bound_of = _bound_of(update, domain)
        if bound_of is None:
            raise InvalidParameterError(
                f"hard_answers must be given for {update!r}, which has no proven T(alpha)."
            )
        cutoff = _certified_cutoff(bound_of, alpha, n, budget, beta)
    else:
        cutoff = checked_integer("hard_answers", hard_answers, at_least=1, at_most=MOST)
    branch = _branch(cutoff, budget)
    grid_bits = _grid_bits(n, cutoff, budget, branch)
    scales = numeric_sparse_scales(cutoff, budget.epsilon, budget.delta, branch)
    scale = float(scale_at_least(scales.threshold * (1 << grid_bits))) / (1 << grid_bits)  # as drawn
    margin = sparse_margin(cutoff, max_queries, scale, 0.9 * beta) / n
    if alpha is not None:
        wanted = alpha + margin
    elif threshold is not None:
        wanted = checked_real("threshold", threshold, above=0.0, below=1.0)
    else:
        # P(nu - rho >= T) <= (2/3) e^(-T/2s) for nu ~ Lap(2s), rho ~ Lap(s)
        share = max(1.0, 2.0 * max_queries / (3.0 * FALSE_HITS * cutoff))
        wanted = 2.0 * float(scales.threshold) * math.log(share) / n
    sparse = LaplaceSparse(
        n=n,
        epsilon=budget.epsilon,
        delta=budget.delta,
        threshold=math.ceil(wanted * (n << grid_bits)) + 1,
        cutoff=cutoff,
        grid_bits=grid_bits,
        branch=branch,
    )
    relied = alpha if alpha is not None else wanted / 2.0  # as the book: threshold 2 alpha
    update = _at(update, domain, relied)
    number = _number_error(scales, cutoff, n, beta)
    easy = sparse.easy_radius(0.9 * beta, max_queries)
    return Plan(
        sparse=sparse,
        update=update,
        alpha=relied,
        beta=beta,
        max_queries=max_queries,
        hard_answers=cutoff,
        error_bound=max(easy, number),
        certified=alpha is not None,
    )


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


def _grid_bits(n: int, cutoff: int, budget: Budget, branch: Branch) -> int:
    """Return the session's grid, coarser where the largest scale would leave the samplers' range."""
    scales = numeric_sparse_scales(cutoff, budget.epsilon, budget.delta, branch)
    room = SCALE_BITS - math.ceil(math.log2(2 * float(scales.number)))  # a partition doubles it
    if room < 0:
        raise InfeasibleAccuracyError(
            f"epsilon must be larger for {cutoff} hard answers, got epsilon={budget.epsilon}: the "
            f"noise would have scale {float(scales.number):.3g} records."
        )
    return min(session_grid_bits(n), room)


def _certified_cutoff(
    bound_of: Callable[[float], float], alpha: float, n: int, budget: Budget, beta: float
) -> int:
    """Return c = max(1, floor T(alpha)) if its numbers are within alpha, as the certificate demands."""

    def number_error(candidate: float) -> float:
        cutoff = max(1, math.floor(bound_of(candidate)))
        scales = numeric_sparse_scales(cutoff, budget.epsilon, budget.delta, _branch(cutoff, budget))
        return _number_error(scales, cutoff, n, beta)

    if number_error(alpha) <= alpha:
        return max(1, math.floor(bound_of(alpha)))
    low, high = alpha, 1e6
    while high / low > 1.0 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if number_error(middle) <= middle else (middle, high)
    least = float(f"{high * 1.0006:.4g}")  # four digits, and never below what is feasible
    if least >= 1.0:
        raise InfeasibleAccuracyError(
            f"n must be larger for any alpha < 1 at epsilon={budget.epsilon}, delta={budget.delta}, got "
            f"n={n}; raise n or epsilon, or give hard_answers."
        )
    raise InfeasibleAccuracyError(
        f"alpha must be >= {least} at n={n}, epsilon={budget.epsilon}, delta={budget.delta}, got "
        f"alpha={alpha}; raise alpha, epsilon or n, or give hard_answers."
    )


def _number_error(scales: SparseScales, cutoff: int, n: int, beta: float) -> float:
    """Return what all c numbers stay within but with probability beta/10; a unit more for the grid."""
    return (float(scales.number) * math.log(cutoff / (0.1 * beta)) + 1.0) / n


def _branch(cutoff: int, budget: Budget) -> Branch:
    """Return the calibration with the smaller noise among those that the budget allows."""
    branch = numeric_sparse_branch(cutoff, budget.delta)
    try:
        numeric_sparse_scales(cutoff, budget.epsilon, budget.delta, branch)
    except InvalidParameterError:  # Corollary 3.21 fails at a large epsilon: pure noise always holds
        return "pure"
    return branch


def _check_common(n: int, budget: Budget, max_queries: int, beta: float) -> None:
    """Check what both plans share; the outer limits keep every formula inside the floats."""
    checked_integer("n", n, at_least=1)
    checked_integer("max_queries", max_queries, at_least=1, at_most=MOST)
    checked_real("beta", beta, at_least=LEAST, below=1.0)
    checked_real("epsilon", budget.epsilon, at_least=LEAST)


def _bound_of(update: Rule, domain: Domain) -> Callable[[float], float] | None:
    """Return alpha -> T(alpha) of a rule, or None where none is proven."""
    exact = update.exact_update_bound if isinstance(update, ExactBound) else update.update_bound
    if exact(domain, 0.5) is None:
        return None

    def bound(alpha: float) -> float:
        value = exact(domain, alpha)
        return NO_BOUND if value is None else float(value)

    return bound


def _for_stream(update: Rule, max_queries: int, n: int) -> Rule:
    return update.for_stream(max_queries, n) if isinstance(update, NeedsAccuracy) else update


def _at(update: Rule, domain: Domain, alpha: float) -> Rule:
    return update.at(domain, alpha) if isinstance(update, NeedsAccuracy) else update
