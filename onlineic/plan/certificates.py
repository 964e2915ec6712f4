"""Plans whose hard answers are proven to last: the theorem's own, and that of an accuracy to certify.

Proof: docs/theory/certificates.md, 8.1.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial

from onlineic.accounting.budget import LARGEST_EPSILON, Budget
from onlineic.bounds.online import online_ic_accuracy
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    TooLargeError,
    checked_real,
    shown,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.histogram import Histogram
from onlineic.plan.calibration import chosen_name, mechanism_for
from onlineic.plan.plan import MOST_HARD, Plan, Rule, checked_facts
from onlineic.plan.settings import Settings
from onlineic.queries.query import session_grid_bits
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.kinds import SparseName
from onlineic.sparse.laplace import LaplaceSparse
from onlineic.updates.base import ExactBound, proven_bound, rule_at, rule_for_stream
from onlineic.updates.multiplicative_weights import MultiplicativeWeights
from onlineic.updates.perceptron import Perceptron

NO_BOUND = 1e15  # hard answers that no budget can pay, where a rule has no T at this alpha
MOST_WISH = 1e6  # the solvers look no further


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

    Dwork & Roth (2014), Algorithm 11, Theorems 5.13 to 5.15, with the constants of `onlineic.bounds`. The
    threshold is 2 alpha; the closed formula printed in Algorithm 11 agrees with it at the least alpha only.

    Args:
        alpha: None: the least alpha that the theorem allows and the rule can be held at. (The theorem holds
            for every larger one too; the net of `Median` grows as alpha falls, and would refuse many
            records.)

    Raises:
        InvalidParameterError: If epsilon is above 20, where the theorem is not proved, or another parameter
            outside its range.
        InfeasibleAccuracyError: If alpha is below the least feasible one, which the message names.
        TooLargeError: If the rule cannot be held at alpha, or at any.
    """
    n, budget, max_queries, beta = checked_facts(n, budget, max_queries, beta)
    epsilon = checked_real(
        "epsilon",
        budget.epsilon,
        above=0.0,
        at_most=LARGEST_EPSILON,  # above it noise is so small that the rounding of guesses counts (8.1)
        remedy="lower it in textbook mode, whose theorem is proved up to there, or use OnlineIC(...)",
    )
    if alpha is not None:
        alpha = checked_real("alpha", alpha, above=0.0, at_most=MOST_WISH)
    accuracy_of = update_bound_of(update := rule_for_stream(update, max_queries, n), domain)
    if accuracy_of is None:
        raise InvalidParameterError(
            f"update must have a proven T(alpha) in textbook mode, got {shown(update, 200)}; use "
            f"OnlineIC(...)."
        )
    solved = partial(
        online_ic_accuracy,
        accuracy_of,
        n=n,
        max_queries=max_queries,
        epsilon=epsilon,
        delta=budget.delta,
        beta=beta,
        alpha=alpha,
    )
    try:
        accuracy = solved()
    except InvalidParameterError:
        accuracy = solved(branch="pure")  # Corollary 3.21 fails at a large epsilon: pure noise always holds
    try:
        update = rule_at(update, domain, accuracy.alpha)
    except TooLargeError:
        if alpha is not None:
            raise
        held = _least_held(update, domain, accuracy.alpha)
        accuracy = solved(alpha=held, branch=accuracy.branch)
        update = rule_at(update, domain, accuracy.alpha)
    sparse = LaplaceSparse.calibrated(
        budget,
        n=n,
        hard_answers=accuracy.cutoff,
        max_queries=max_queries,
        grid_bits=session_grid_bits(n),
        threshold=accuracy.threshold,
        beta=beta,
        pair=True,
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
        restarts=0,
    )


def _least_held(update: Rule, domain: Domain, alpha: float) -> float:
    """Return about the least alpha, larger than this one, at which a rule can be held.

    Raises:
        TooLargeError: If it cannot be held at 1/2 either, where every answer is a guess.
    """
    low, high = alpha, 0.5
    rule_at(update, domain, high)
    while high > 1.0005 * low:
        middle = math.sqrt(low * high)
        try:
            rule_at(update, domain, middle)
        except TooLargeError:
            low = middle
        else:
            high = middle
    return high


def certified_plan(domain: Domain, n: int, settings: Settings, update: Rule, alpha: float) -> Plan:
    """Return the certificate of a known T(alpha): every error <= alpha + a_hit + a_miss."""
    budget, sparse, prior = settings.of_row, settings.sparse, settings.prior
    bound_of = update_bound_of(update, domain, prior)
    if bound_of is None:
        start = " from this prior" if prior is not None else ""
        raise InvalidParameterError(
            f"hard_answers must be given for {shown(update, 200)}, which has no proven T(alpha){start}."
        )
    if isinstance(sparse, NumericSparse):
        raise InvalidParameterError("sparse must be a name with certify, which settles its scales.")
    made = partial(_certificate_at, domain, n, settings, update)
    names: tuple[SparseName | None, ...] = (sparse,)
    if (
        sparse is None and budget.delta > 0.0 and budget.order is None
    ):  # a Gumbel threshold wants so much noise that both are tried
        names = ("gumbel", "exponential")

    def certificates(wanted: float) -> Iterator[Plan]:
        bound_of(wanted)  # of a rule that tells no bound here, no smaller accuracy is at fault
        for name in names:
            with contextlib.suppress(InvalidParameterError, InfeasibleAccuracyError):
                yield made(name, wanted)

    def feasible(wanted: float) -> bool:
        return any(True for _ in certificates(wanted))

    alone = min(certificates(alpha), key=lambda plan: plan.error_bound, default=None)
    if alone is None:
        low, high = alpha, 1.0 - 1.0 / n  # half a record is added, and a threshold stays below 1
        if high <= alpha or not feasible(high):
            raise InfeasibleAccuracyError(
                f"n must be larger to certify any alpha < 1 at epsilon={budget.epsilon}, "
                f"delta={budget.delta}, got n={n}; raise n or epsilon, or give hard_answers."
            )
        while high / low > 1.0002:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if feasible(middle) else (middle, high)
        least = next(rounded for digits in (4, 5, 6, 17) if feasible(rounded := _rounded_up(high, digits)))
        raise InfeasibleAccuracyError(
            f"certify must be >= {least} at n={n}, epsilon={budget.epsilon}, delta={budget.delta}, got "
            f"certify={alpha}; raise certify, epsilon or n, or give hard_answers."
        )
    return alone


def _certificate_at(
    domain: Domain,
    n: int,
    settings: Settings,
    update: Rule,
    name: SparseName | None,
    alpha: float,
) -> Plan:
    """Return the plan with that certificate.

    Raises:
        InvalidParameterError, InfeasibleAccuracyError: If there is none.
    """
    budget, beta, max_queries = settings.of_row, settings.beta, settings.max_queries
    bound_of = update_bound_of(update, domain, settings.prior)
    steps = NO_BOUND if bound_of is None else bound_of(alpha)
    if steps > MOST_HARD:
        raise InfeasibleAccuracyError(f"T(alpha) must be at most {MOST_HARD}, got {steps:.4g}.")
    cutoff = max(1, math.floor(steps))
    # half a record more: guesses are rounded on the query's own grid, and gaps must exceed alpha strictly
    mechanism = mechanism_for(
        chosen_name(name, cutoff, max_queries, budget, partition=False),
        budget,
        n=n,
        hard_answers=cutoff,
        max_queries=max_queries,
        beta=beta,
        alpha=alpha + 0.5 / n,
        restarts=settings.restarts,
    )
    _, miss, number = mechanism.margins(max_queries, beta, cutoff)
    if number > alpha:
        raise InfeasibleAccuracyError(f"a_num must be at most alpha, got {number:.4g} > {alpha:.4g}.")
    return Plan(
        sparse=mechanism,
        update=rule_at(update, domain, alpha),
        alpha=alpha,
        beta=beta,
        max_queries=max_queries,
        hard_answers=cutoff,
        error_bound=mechanism.threshold / (n << mechanism.grid_bits) + miss,
        certified=True,
        restarts=settings.restarts,
    )


def update_bound_of(
    update: Rule, domain: Domain, prior: Hypothesis | None = None
) -> Callable[[float], float] | None:
    """Return alpha -> T(alpha) of a rule, or None where none is proven."""
    exact: Callable[[Domain, float], float | None]
    if prior is not None:  # a wrong prior takes longer to repair than the rule's own start
        if not isinstance(update, (MultiplicativeWeights, Perceptron)) or not isinstance(prior, Histogram):
            return None
        exact = partial(update.exact_update_bound, prior=prior)
    else:
        exact = update.exact_update_bound if isinstance(update, ExactBound) else update.update_bound
    return proven_bound(exact, domain, otherwise=NO_BOUND)


def _rounded_up(value: float, digits: int) -> float:
    """Return `value` to so many digits, not below it."""
    near = float(f"{value:.{digits}g}")
    return near if near >= value else float(f"{value * (1.0 + 10.0 ** (1 - digits)):.{digits}g}")
