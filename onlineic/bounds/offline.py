"""What the offline iterative construction and MWEM promise, as functions.

Shared parameters: queries |Q| >= 1 in the class, n >= 1 records, epsilon in (0, inf), delta in [0, 1), and
beta in (0, 1), the chance of failure; errors are fractions of records, all queries of the class at once. A
rule enters as `update_bound`, alpha -> T(alpha), real-valued and non-increasing. Dwork & Roth (2014),
Algorithm 8 and Theorem 5.7, with 32 and 64 in place of the printed 8 and 16.

Proof: docs/theory/offline.md, 12.10.
"""

import math
from typing import Literal, final

import attrs

from onlineic.bounds.certificates import UpdateBound, checked_bound, least_accurate, least_cutoff
from onlineic.bounds.online import shown_up
from onlineic.bounds.sparse_vector import least_records
from onlineic.errors import InfeasibleAccuracyError, check_choice, checked_integer, checked_real

Composition = Literal["basic", "advanced"]


@final
@attrs.frozen
class OfflineAccuracy:
    """What Theorem 5.7 promises, its constants corrected, with probability >= 1 - beta.

    Args:
        alpha: Above 0. Error of every query of the class.
        updates: At least 0. T(alpha/2), real-valued.
        rounds: At least 1. max(1, floor T(alpha/2)).
        stop: 3 alpha/4: a noisy gap below it ends the construction.
        composition: How 2 rounds mechanisms share the budget.
    """

    alpha: float
    updates: float
    rounds: int
    stop: float
    composition: Composition


def offline_ic_composition(updates: float, delta: float) -> Composition:
    """Return the composition with the smaller error: basic iff delta = 0 or T <= 4 ln(1/delta).

    Compares 32 T with 64 sqrt(T ln(1/delta)); a public decision. The book has no such choice.
    """
    updates = checked_real("updates", updates, at_least=1.0)
    delta = checked_real("delta", delta, at_least=0.0, below=1.0)
    return "basic" if delta == 0.0 or updates <= -4 * math.log(delta) else "advanced"


def offline_ic_error(
    updates: float,
    queries: int,
    n: int,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    composition: Composition | None = None,
) -> float:
    """Return 8F: 32 T ln(2T|Q|/beta)/(n epsilon), or 64 sqrt(T ln(1/delta)) ln(2T|Q|/beta)/(n epsilon).

    F is the error of one choice. The construction is alpha-accurate for every alpha at least this large, if
    T = T(alpha/2).

    Args:
        updates: At least 1. T, real for a solver's sake.
        composition: None: the smaller, `offline_ic_composition`.
    """
    updates = checked_real("updates", updates, at_least=1.0)
    if composition is not None:
        check_choice("composition", composition, "basic", "advanced")
    records = checked_real("epsilon", epsilon, above=0.0) * checked_integer("n", n, at_least=1)
    logs = math.log(checked_integer("queries", queries, at_least=1)) + math.log(
        2 * updates / checked_real("beta", beta, above=0.0, below=1.0)
    )
    if (composition or offline_ic_composition(updates, delta)) == "basic":
        return 32 * updates * logs / records
    small = checked_real(
        "delta", delta, above=0.0, below=1.0, remedy='composition="advanced" needs delta > 0'
    )
    return 64 * math.sqrt(-updates * math.log(small)) * logs / records


def offline_ic_alpha(
    update_bound: UpdateBound,
    *,
    queries: int,
    n: int,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    composition: Composition | None = None,
) -> float:
    """Return the smallest alpha >= offline_ic_error(max(T(alpha/2), 1)), the upper end of a bisection.

    Args:
        update_bound: Where it jumps, the solution may sit on the jump.

    Raises:
        InfeasibleAccuracyError: If no alpha below 10^6 will do.
    """

    def error(updates: float) -> float:
        return offline_ic_error(updates, queries, n, epsilon, delta, beta, composition)

    update_bound = checked_bound(update_bound)
    return least_accurate(error, lambda alpha: update_bound(alpha / 2), n, epsilon)


def offline_ic_n(
    update_bound: UpdateBound,
    alpha: float,
    *,
    queries: int,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    composition: Composition | None = None,
) -> int:
    """Return the least n with alpha >= offline_ic_error(max(T(alpha/2), 1)); T must not contain n.

    Args:
        alpha: Above 0.

    Raises:
        InfeasibleAccuracyError: If that n exceeds 2^63.
    """
    alpha, updates = least_cutoff(update_bound, alpha, 0.5)

    def error(n: int) -> float:
        return offline_ic_error(updates, queries, n, epsilon, delta, beta, composition)

    return least_records(error, alpha)


def offline_ic_accuracy(
    update_bound: UpdateBound,
    *,
    queries: int,
    n: int,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    alpha: float | None = None,
    composition: Composition | None = None,
) -> OfflineAccuracy:
    """Return what the construction promises at the given alpha, above 0, or at the least feasible one.

    Raises:
        InfeasibleAccuracyError: If alpha is below the least feasible one, which the message names.
    """
    update_bound = checked_bound(update_bound)
    least = offline_ic_alpha(
        update_bound,
        queries=queries,
        n=n,
        epsilon=epsilon,
        delta=delta,
        beta=beta,
        composition=composition,
    )
    alpha = least if alpha is None else checked_real("alpha", alpha, above=0.0)
    if alpha < least:
        raise InfeasibleAccuracyError(
            f"alpha must be >= {shown_up(least)} at n={n}, queries={queries}, "
            f"epsilon={epsilon}, delta={delta}, beta={beta}, got alpha={alpha}; raise alpha, n or epsilon."
        )
    updates = update_bound(alpha / 2)
    chosen = composition or offline_ic_composition(max(1.0, updates), delta)
    return OfflineAccuracy(alpha, updates, max(1, math.floor(updates)), 0.75 * alpha, chosen)


def mwem_error(
    size: int, queries: int, n: int, epsilon: float, rounds: int, variant: Literal["tight", "book"] = "book"
) -> float:
    """Return 2 sqrt(ln|X|/R) + 10 R ln|Q|/(epsilon n): pure MWEM's error, all queries at once.

    With probability >= 1 - 2R/|Q|, for the mean of the R hypotheses that the rounds chose against, one step
    of rate 1/2 a round and no replays. The variant "tight", rate 4, has sqrt(ln|X|/(2R)) for the first term.

    Hardt, Ligett & McSherry (2012), Theorem 2.2 (theory 12.10).

    Args:
        size: At least 1. |X|, cells.
        queries: Above 2 R. |Q|; with fewer the statement is empty.
        rounds: At least 1. R.
        n, epsilon: As above.
        variant: The step, as in `MeasuredWeights`.
    """
    check_choice("variant", variant, "tight", "book")
    logs = math.log(checked_integer("size", size, at_least=1))
    rounds = checked_integer("rounds", rounds, at_least=1)
    queries = checked_integer("queries", queries, at_least=2 * rounds + 1)
    records = checked_real("epsilon", epsilon, above=0.0) * checked_integer("n", n, at_least=1)
    learned = 2 * math.sqrt(logs / rounds) if variant == "book" else math.sqrt(logs / (2 * rounds))
    return learned + 10 * rounds * math.log(queries) / records
