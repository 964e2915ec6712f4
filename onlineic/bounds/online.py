"""Theory as functions: accuracy of the online engine, solved for any one of its parameters.

Errors are fractions of records. A rule enters as `update_bound`, alpha -> T(alpha), real-valued and
non-increasing; close over whatever else T depends on (n, Q). Dwork & Roth (2014), Theorems 5.14 (delta = 0)
and 5.15, with constants 9 and 9 sqrt8 for 9 and the false sqrt512 + 1.

Proof: docs/theory/certificates.md, 8.1.
"""

import math
from typing import final

import attrs

from onlineic.bounds.certificates import (
    UpdateBound,
    checked_bound,
    least_accurate,
    least_cutoff,
    least_update_alpha,
)
from onlineic.bounds.sparse_vector import (
    Branch,
    least_records,
    numeric_sparse_alpha,
    numeric_sparse_branch,
    numeric_sparse_scales,
)
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    checked_integer,
    checked_real,
)

MOST_QUERIES = 2**63 - 1


@final
@attrs.frozen
class OnlineAccuracy:
    """What Theorem 5.14 or 5.15 promises for a whole session, with probability >= 1 - beta.

    Args:
        alpha: Above 0. Error of the numbers; a hard query has a gap of at least alpha.
        updates: At least 0. T(alpha), real-valued.
        cutoff: At least 1. c = max(1, floor(T)) unless it was given: hard answers to pay for.
        threshold: 2 alpha, not the formula of Algorithm 11, which differs away from the fixed point.
        error_bound: 3 alpha, every answer at once.
        branch: Calibration of the sparse vector.
    """

    alpha: float
    updates: float
    cutoff: int
    threshold: float
    error_bound: float
    branch: Branch


def least_alpha(
    update_bound: UpdateBound,
    *,
    n: int,
    max_queries: int,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    branch: Branch | None = None,
    pair: bool = True,
) -> float:
    """Return the smallest alpha >= numeric_sparse_alpha(max(T(alpha), 1), k), the upper end of a bisection.

    Args:
        update_bound: Where it jumps, the solution may sit on the jump.
        n, max_queries, epsilon, delta, beta: Records, Q, budget, failure probability.
        branch: None: the smaller of the two where both are allowed.
        pair: Two comparisons for each query (k = 2Q, as in the book) or one absolute test (k = Q).

    Raises:
        InfeasibleAccuracyError: If no alpha below 10^6 will do.
    """
    queries = _comparisons(max_queries, pair)

    def error(cutoff: float) -> float:
        return numeric_sparse_alpha(cutoff, queries, epsilon, delta, beta, n, branch)

    return least_accurate(error, update_bound, n, epsilon)


def online_ic_accuracy(
    update_bound: UpdateBound,
    *,
    n: int,
    max_queries: int,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    alpha: float | None = None,
    cutoff: int | None = None,
    branch: Branch | None = None,
    pair: bool = True,
) -> OnlineAccuracy:
    """Return what a session promises at the given alpha or cutoff, or at the least feasible alpha.

    At a given alpha c = max(1, floor T(alpha)); at a given cutoff c alpha is the larger of
    numeric_sparse_alpha(c) and the smallest alpha with T(alpha) <= c.

    Args:
        alpha, cutoff: Above 0, and at least 1; at most one of the two. The rest is as of `least_alpha`.

    Raises:
        InfeasibleAccuracyError: If alpha is below the least feasible one, which the message names.
        InvalidParameterError: Also if the branch asked for costs more than epsilon.
    """
    if alpha is not None and cutoff is not None:
        raise InvalidParameterError(
            f"alpha must be None if cutoff is given, got alpha={alpha}, cutoff={cutoff}."
        )
    update_bound, queries = checked_bound(update_bound), _comparisons(max_queries, pair)

    def least(hits: float, which: Branch | None) -> float:
        return numeric_sparse_alpha(hits, queries, epsilon, delta, beta, n, which)

    def smallest() -> float:
        return least_accurate(lambda hits: least(hits, branch), update_bound, n, epsilon)

    if cutoff is not None:
        hits = checked_integer("cutoff", cutoff, at_least=1)
        alpha = max(least(hits, branch), least_update_alpha(update_bound, hits))
    else:
        alpha = smallest() if alpha is None else checked_real("alpha", alpha, above=0.0)
        hits = max(1, math.floor(checked_real("cutoff", update_bound(alpha), at_least=0.0)))
        if alpha < least(hits, branch):
            raise InfeasibleAccuracyError(
                f"alpha must be >= {shown_up(smallest())} at n={n}, max_queries={max_queries}, "
                f"epsilon={epsilon}, delta={delta}, beta={beta}, got alpha={alpha}; "
                "raise alpha, n or epsilon."
            )
    chosen = branch or numeric_sparse_branch(hits, delta)
    numeric_sparse_scales(hits, epsilon, delta, chosen)  # refuses what Corollary 3.21 cannot pay for
    return OnlineAccuracy(alpha, update_bound(alpha), hits, 2 * alpha, 3 * alpha, chosen)


def least_n(
    update_bound: UpdateBound,
    alpha: float,
    *,
    max_queries: int,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    branch: Branch | None = None,
    pair: bool = True,
) -> int:
    """Return the least n with alpha >= numeric_sparse_alpha(max(T(alpha), 1), k); T must not contain n.

    Args:
        alpha: Above 0. Wanted; the error bound of every answer is 3 alpha. The rest is as of `least_alpha`.

    Raises:
        InfeasibleAccuracyError: If that n exceeds 2^63.
    """
    alpha, cutoff = least_cutoff(update_bound, alpha)
    queries = _comparisons(max_queries, pair)

    def error(n: int) -> float:
        return numeric_sparse_alpha(cutoff, queries, epsilon, delta, beta, n, branch)

    return least_records(error, alpha)


def least_epsilon(
    update_bound: UpdateBound,
    alpha: float,
    *,
    n: int,
    max_queries: int,
    delta: float = 0.0,
    beta: float = 0.05,
    branch: Branch | None = None,
    pair: bool = True,
) -> float:
    """Return the least epsilon with alpha >= numeric_sparse_alpha(max(T(alpha), 1), k).

    Arguments as of `least_n`.

    Raises:
        InvalidParameterError: Also if Corollary 3.21 fails at that epsilon.
    """
    alpha, cutoff = least_cutoff(update_bound, alpha)
    queries = _comparisons(max_queries, pair)
    epsilon = numeric_sparse_alpha(cutoff, queries, 1.0, delta, beta, n, branch) / alpha
    while alpha < numeric_sparse_alpha(cutoff, queries, epsilon, delta, beta, n, branch):
        epsilon = math.nextafter(epsilon, math.inf)
    numeric_sparse_scales(math.floor(cutoff), epsilon, delta, branch or numeric_sparse_branch(cutoff, delta))
    return epsilon


def most_queries(
    update_bound: UpdateBound,
    alpha: float,
    *,
    n: int,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    branch: Branch | None = None,
    pair: bool = True,
) -> int:
    """Return the largest Q with alpha >= numeric_sparse_alpha(max(T(alpha), 1), k), at most 2^63 - 1.

    Arguments as of `least_n`; T must not contain Q.

    Raises:
        InfeasibleAccuracyError: If not even one query is; the message names the alpha that one query needs.
    """
    alpha, cutoff = least_cutoff(update_bound, alpha)
    beta, sides = checked_real("beta", beta, above=0.0, below=1.0), _comparisons(1, pair)

    def needed(comparisons: float) -> float:
        return numeric_sparse_alpha(cutoff, comparisons, epsilon, delta, beta, n, branch)

    if alpha < needed(sides):
        least = least_alpha(
            update_bound,
            n=n,
            max_queries=1,
            epsilon=epsilon,
            delta=delta,
            beta=beta,
            branch=branch,
            pair=pair,
        )
        raise InfeasibleAccuracyError(
            f"alpha must be >= {shown_up(least)} for one query at n={n}, epsilon={epsilon}, delta={delta}, "
            f"beta={beta}, got alpha={alpha}; raise alpha, n or epsilon."
        )
    logs = math.log(4 * cutoff / beta)  # alpha is linear in ln k + this
    room = min(alpha / needed(1.0) * logs - logs, math.log(MOST_QUERIES) + 1)  # e^room is a float
    queries = min(math.ceil(math.exp(room) / sides) + 1, MOST_QUERIES)
    while alpha < needed(float(sides * queries)):
        queries -= 1 + (queries >> 48)
    return queries


def _comparisons(max_queries: int, pair: bool) -> int:
    """Comparisons of a stream: both sides of every query, or one absolute test each."""
    return checked_integer("max_queries", max_queries, at_least=1) * (2 if pair else 1)


def shown_up(value: float) -> str:
    """Four digits of a number not below the value."""
    near = f"{value:.4g}"
    return near if float(near) >= value else f"{value * 1.001:.4g}"
