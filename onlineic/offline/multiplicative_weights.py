"""MWEM: multiplicative weights, where the exponential mechanism finds the worst answered query.

Proof: docs/theory/offline.md, 12.10.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import zcdp_rho
from onlineic.data.private import PrivateData
from onlineic.errors import InvalidParameterError, check_choice, checked_integer, checked_real, shown
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.histogram import Histogram
from onlineic.noise.sources import Noise
from onlineic.offline.construction import Construction, Workload, construct, finished
from onlineic.offline.release import Release
from onlineic.offline.rounds import HALF, Composition, paid_rounds
from onlineic.queries.partitions import PartitionRule
from onlineic.updates.base import UpdateRule, check_rule, rule_at, rule_for_stream
from onlineic.updates.maximum_entropy import MaximumEntropy
from onlineic.updates.multiplicative_weights import MeasuredWeights

Rule = UpdateRule[Any]
MOST_ROUNDS = 1000  # planned; each replays all that was measured
BALANCE = 9.0
TABLE_ROUNDS = 8  # a table tells as much as so many numbers
TABLE_CHOICE = Fraction(1, 5)  # tables are worth more than the best choice of them


def mwem(
    data: PrivateData,
    queries: Iterable[Any],
    budget: Budget,
    *,
    rounds: int | None = None,
    release: Literal["answer", "partition"] = "answer",
    update: Rule | None = None,
    replays: int = 3,
    average: float | None = None,
    start: Hypothesis | None = None,
    beta: float = 0.05,
    noise: Noise | None = None,
) -> Construction:
    """Return a hypothesis fitted to private answers of the queries that it answered worst, (epsilon, delta).

    In each of R rounds a query with a nearly largest |f(x) - f(D)| is chosen, answered afresh, and D is
    updated from all answers so far. Pure: `NoisyMax` and Laplace answers at epsilon/(2R) each; delta > 0, if
    that is less noise: the exponential mechanism and Gaussian answers at rho/(2R) each (theory 12.10).

    Hardt, Ligett & McSherry (2012), Figure 1 and section 2.3, with noisy maxima, rate 4 for 1/2,
    zero-concentrated accounting (Cesar & Rogers 2021) and averages of the last half. Bound beforehand, at
    delta = 0, for one step a round and average=1: `bounds.mwem_error`.

    Args:
        queries: Iterable of Expression, Query or arrays of weights. The workload, public; copies and
            constants cost nothing.
        rounds: R; None: `default_rounds`. Time grows like R^2 replays.
        release: partition: the chosen query's table is released in the place of its number, as in a session;
            a fifth of the price goes to the choice, and one round does the work of eight.
        update: Any rule; None: `MeasuredWeights` with these replays for answers, `MaximumEntropy` for
            partitions.
        replays: At least 1. Of all past measurements, in every round.
        average: In [0, 1]. Share of the rounds, the last ones, whose hypotheses are averaged; 1 is the
            theorem's, 0 the last hypothesis. None: .5 for histograms, else 0.
        start: Public start, of full support.
        beta: In [1e-100, 1). Failure probability of `error_bound`.

    Returns:
        Its `error_bound` is known for an average of answered rounds, else inf.

    Raises:
        InvalidQueryError: If a query cannot be bound.

    Examples:
        >>> from onlineic.offline import mwem
        >>> domain = ic.Domain.of(age=range(16), sex=["F", "M"])
        >>> ages = np.minimum(15, np.arange(200_000) % 37)  # more than half are 15
        >>> data = ic.PrivateData.from_records({"age": ages, "sex": ["F", "M"] * 100_000}, domain)
        >>> ranges = [ic.where(age=ic.below(a), sex=s) for a in range(1, 16) for s in ("F", "M")]
        >>> learned = mwem(data, ranges, ic.Budget(1.0, 1e-9))
        >>> truth = np.array([np.mean(ages < a) / 2 for a in range(1, 16) for s in ("F", "M")])
        >>> bool(np.abs(learned.answers(ranges) - truth).max() < learned.error_bound < 0.05)
        True
    """
    spending = Release.of(data, budget, noise, beta, least=1e-100)
    check_rule(update)
    check_choice("release", release, "answer", "partition")
    by_table = release == "partition"
    if start is not None and not isinstance(start, Hypothesis):
        raise InvalidParameterError(f"start must be a Hypothesis or None, got a {type(start).__name__}.")
    workload = Workload.of(queries, data.domain, data.n, budget.neighbours)
    rule = update
    if rule is None:
        # whatever table comes last has its cuts: four times the cells, and the time, of a session's refit
        rule = MaximumEntropy(most_cells=2**22) if by_table else MeasuredWeights(replays=replays)
    if rounds is None:
        rounds = default_rounds(data.n, budget, queries=len(workload.queries), release=release)
    rounds = checked_integer("rounds", rounds, at_least=1)  # a numpy integer could overflow below
    plan = paid_rounds(
        budget,
        rounds,
        _composition(budget, rounds),
        sensitivity=workload.sensitivity,
        tested=workload.tested,
        choice_share=TABLE_CHOICE if by_table else HALF,
        tables=by_table,
    )
    relied = math.sqrt(math.log(max(2, data.domain.size)) / (2 * rounds))  # least gap of that many updates
    rule = rule_at(rule_for_stream(rule, len(workload.queries), data.n), data.domain, relied)
    first = rule.init(data.domain, start)
    if average is None:
        average = 0.5 if isinstance(first, Histogram) else 0.0
    averaged = math.ceil(checked_real("average", average, at_least=0.0, at_most=1.0) * rounds)
    if averaged and not callable(getattr(first, "probabilities", None)):
        raise InvalidParameterError(
            f"average must be 0 for the hypotheses of {shown(rule, 200)}, which have no probabilities, "
            f"got {average}."
        )
    total: list[Floats] = []

    def observe(number: int, hypothesis: Any) -> None:
        if number >= plan.rounds - averaged:
            cells = hypothesis.probabilities()
            total[:] = [total[0] + cells if total else cells]

    tables = PartitionRule() if by_table else None
    run = construct(spending, workload, plan, rule, first, relied, tables=tables, observe=observe)
    hypothesis, error = run.hypothesis, math.inf
    if averaged:
        hypothesis = Histogram(data.domain, np.maximum(total[0], 1e-80))
        if not by_table:
            share = spending.beta / (2 * averaged)
            off = plan.answer_radius(share) + plan.choice_radius(len(workload.queries), share) + 0.5
            mean = sum(run.gaps[-averaged:]) / averaged
            error = (mean + off) / workload.units + workload.rounding
    return finished(spending, run, workload, plan, hypothesis=hypothesis, error_bound=error)


def default_rounds(
    n: int, budget: Budget, *, queries: int, release: Literal["answer", "partition"] = "answer"
) -> int:
    """Return the largest R with R^(3/2) sigma(R) <= 9 n, at least 1, at most 1000 and |Q|.

    sigma(R) is the standard deviation of an answer, counts, when R rounds share the budget. The 9 was fitted
    to the best rounds on two Adult tables and NLTCS at epsilon from .1 to 3; a factor of two in R costs
    little there. Tables take an eighth as many rounds.

    Args:
        n: At least 1.
        queries: At least 1. |Q|, distinct.

    Examples:
        >>> from onlineic.offline.multiplicative_weights import default_rounds
        >>> default_rounds(50_000, ic.Budget(1.0, 1e-9), queries=5000)
        234
    """
    balanced = BALANCE * checked_integer("n", n, at_least=1)
    rounds = math.pow(balanced * budget.epsilon / math.sqrt(8.0), 0.4)
    if not budget.pure:
        rho = max(0.0, zcdp_rho(budget.epsilon, budget.delta))  # below 0 where no order has any capacity
        rounds = max(rounds, math.sqrt(balanced * math.sqrt(rho)))
    if release == "partition":
        rounds /= TABLE_ROUNDS
    return max(1, min(math.floor(rounds), MOST_ROUNDS, checked_integer("queries", queries, at_least=1)))


def _composition(budget: Budget, rounds: int) -> Composition:
    """Return the composition with the smaller noise in the answers."""
    rho = 0.0 if budget.pure else zcdp_rho(budget.epsilon, budget.delta)
    laplace = math.sqrt(8.0) * rounds / budget.epsilon
    return "zcdp" if rho > 0.0 and math.sqrt(rounds / rho) < laplace else "basic"
