"""How the plan of a session is chosen, from public facts alone.

With neither an accuracy nor a number of hard answers given, the shares and the choice of the
mechanism are rules found by experiment (`experiments/README.md`): they depend on n, the domain, the budget
and the length of the stream, never on the data.
"""

import contextlib
from collections.abc import Iterable
from fractions import Fraction
from typing import Literal

from onlineic.accounting.budget import Budget
from onlineic.accounting.of_table import alike
from onlineic.bounds.certificates import least_update_alpha
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    TooLargeError,
    checked_integer,
    checked_real,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.histogram import Histogram
from onlineic.queries.partitions import PartitionRule
from onlineic.queries.query import session_grid_bits
from onlineic.session.calibration import SparseName, brought, chosen_name, mechanism_for
from onlineic.session.certificates import NO_BOUND, certified_plan, update_bound_of
from onlineic.session.defaults import (
    EVALUATIONS,
    NEXT_SHARE,
    NOISIEST_NUMBER,
    RESERVED_OF_NUMBERS,
    ROOM,
    default_numbers,
    default_shares,
)
from onlineic.session.first_tables import cells_instead, chosen_first_tables, laplace_opens
from onlineic.session.fitting_rule import TABLE_RULES, check_holds, fitting_rule
from onlineic.session.forecasts import Kind, checked_kinds, forecast
from onlineic.session.plan import ALL_EASY, ALL_HARD, LEAST, MOST_HARD, Plan, Rule, checked_facts, tested_beta
from onlineic.session.spending import hit_price
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.exponential import ExponentialSparse
from onlineic.sparse.gumbel import LEAST_GRID, GumbelSparse
from onlineic.sparse.unconditional import UnconditionalNumbers
from onlineic.updates.base import NeedsAccuracy, rule_at, rule_for_stream
from onlineic.updates.maximum_entropy import MaximumEntropy
from onlineic.updates.multiplicative_weights import MultiplicativeWeights
from onlineic.updates.perceptron import Perceptron
from onlineic.updates.steps import FittedStart, MeasuredSteps

Release = Literal["answer", "partition"]

# standard deviations by which steps from a good start are shortened: most hits are false there
NOISE_LEFT_OUT = 3.0

LISTED = 20  # binary logarithm of how many databases the median lists in a session that promises no T(alpha)


def session_plan(
    domain: Domain,
    n: int,
    budget: Budget,
    *,
    update: Rule | None = None,
    sparse: SparseName | NumericSparse | None = None,
    release: Release | None = None,
    prior: Hypothesis | None = None,
    beta: float = 0.05,
    max_queries: int = 10_000,
    certify: float | None = None,
    hard_answers: int | None = None,
    threshold: float | None = None,
    first_tables: bool | None = None,
    kinds: Iterable[Kind] = ("conjunctions",),
) -> Plan:
    """Return the parameters of a session that tests every query once.

    Parameters
    ----------
    update : UpdateRule, optional
        None: `MaximumEntropy`, above 2^26 cells `MixtureOfProducts`; or `MultiplicativeWeights` with
        `certify` or without partitions.
    sparse : "gumbel", "exponential", "laplace" or NumericSparse, optional
        None: `ExponentialSparse` for delta = 0; else `GumbelSparse` for partitions, and for numbers the one
        of the two that resolves smaller gaps.
    release : "answer" or "partition", optional
        None: partitions where `MaximumEntropy` can read them.
    prior : Hypothesis, optional
        A public start; without one, partition sessions buy first tables.
    certify : float, optional
        alpha. With it, c = max(1, floor T(alpha)) hard answers are paid for, and the threshold is alpha +
        a_hit: a certificate for all answers, of single queries. Where few questions are announced, all of
        them may be measured instead, if that errs by at most alpha.
    hard_answers : int, optional
        c. The threshold is such that max_queries tests of equal numbers waste few hard answers; nothing
        promises that c is enough. Later hits cost a share of what is left, at more noise and a higher
        threshold, so that none is ever the last, unless the mechanism or `threshold` is given.
    threshold : float, optional
        Fraction of records; overrides that rule, for all tests.
    first_tables : bool, optional
        Whether to buy tables first. None: where `MaximumEntropy` learns from partitions, without a prior; and
        with `certify`, for `MultiplicativeWeights`, as many as leave the certificate's bound nearly what it
        is without. True: other rules start from the maximum-entropy fit of the tables.
    kinds : iterable of "conjunctions" or "dense"
        What will be asked, see `forecast`: with dense queries among it pairs are no start. Without them, and
        unless `first_tables` says when, a dense first question buys all cells (`Plan.dense_tables`).

    Raises
    ------
    InvalidParameterError, InfeasibleAccuracyError
        If a parameter is outside its range, or the accuracy to certify cannot be kept: the message names the
        least that can.
    """
    n, budget, max_queries, beta = checked_facts(n, budget, max_queries, beta)
    if certify is not None and (hard_answers is not None or threshold is not None):
        raise InvalidParameterError(
            f"certify must be None with hard_answers or threshold, got certify={certify}; "
            "it settles both, so leave out one of them."
        )
    if certify is not None and release == "partition":
        raise InvalidParameterError("release must be 'answer' with certify: T(alpha) counts single queries.")
    if threshold is not None:
        threshold = checked_real("threshold", threshold, above=0.0, below=1.0)
    kinds = checked_kinds(kinds)
    if isinstance(sparse, str):
        chosen_name(sparse, 1, 1, budget, partition=False)  # refuses what this budget cannot be spent by
    wish = release
    if release is None:
        fits = update is None or isinstance(update, TABLE_RULES)
        able = sparse in (None, "gumbel", "exponential") or isinstance(sparse, GumbelSparse)
        release = "partition" if fits and able and certify is None else "answer"
    if release not in ("answer", "partition"):
        raise InvalidParameterError(f"release must be 'answer' or 'partition', got release={release!r}.")
    given = update
    if update is None:
        update = fitting_rule(domain, (), prior) if release == "partition" else MultiplicativeWeights()
    update = rule_for_stream(update, max_queries, n)
    if first_tables is not None and type(first_tables) is not bool:
        raise InvalidParameterError(
            f"first_tables must be True, False or None, got first_tables={first_tables!r:.60}; leave it out."
        )
    if first_tables:
        _check_opens(domain, update, sparse, prior)
    if certify is not None:
        certify = checked_real("certify", certify, at_least=LEAST, below=1.0)
        if (given, sparse, prior, wish, first_tables) == (None,) * 5:
            numbers = _certified_numbers(domain, n, budget, beta, max_queries, certify)
            if numbers is not None:
                return numbers
        return certified_plan(
            domain, n, budget, update, sparse, prior, beta, max_queries, certify, first_tables
        )
    partition = release == "partition"
    if hard_answers is not None:
        hard_answers = checked_integer("hard_answers", hard_answers, at_least=1, at_most=MOST_HARD)
    # tables are bought where the rule reads them all and nobody brings a start or a mechanism of his own
    opens = partition and isinstance(update, TABLE_RULES) and prior is None
    opens = opens and not isinstance(sparse, NumericSparse)
    opens = opens if first_tables is None else first_tables
    like = alike(budget)
    start = forecast(domain, n, budget, max_queries, kinds).start if opens else None
    if start == "numbers" and (given, sparse, hard_answers, threshold, wish, first_tables) == (None,) * 6:
        return _plan_of_numbers(domain, n, budget, beta, max_queries, RESERVED_OF_NUMBERS)
    # hard answers wished for take their price from the tables, unless these were wished for too
    wished = hard_answers if partition or not first_tables else None
    shares = default_shares(n, like, domain, max_queries, wished, start == "cells")
    if partition or (opens and hard_answers is None):
        cutoff = shares.hard_answers
    else:
        cutoff = hard_answers or default_numbers(n, like, domain, max_queries)
    bought = shares.one_way + shares.pairs if opens else Fraction(0)
    one_attribute = sum(size > 1 for size in domain.shape) == 1
    laplace = opens and (laplace_opens(domain, n, budget, bought) if one_attribute else start == "cells")
    if isinstance(sparse, NumericSparse):
        mechanism = brought(sparse, n, budget)
    else:
        name = chosen_name(sparse, cutoff, max_queries, budget, partition)
        mechanism = mechanism_for(
            name,
            budget,
            n=n,
            hard_answers=cutoff,
            max_queries=max_queries,
            beta=beta,
            threshold=threshold,
            partition=partition or opens,  # behind tables most hits are false, which finer numbers tell
            reserved=bought,
            pure=laplace,
            room=ROOM if threshold is None else 0,
        )
    rule = PartitionRule(parts=shares.parts)
    tables = None
    if opens and isinstance(mechanism, (GumbelSparse, ExponentialSparse)):
        tables = chosen_first_tables(
            mechanism,
            domain,
            rule,
            one_way_share=shares.one_way,
            pair_share=shares.pairs,
            shared=shares.shared,
            laplace=laplace,
            given_order=budget.order is not None,
        )
    instead = None
    if (
        tables is not None
        and isinstance(mechanism, (GumbelSparse, ExponentialSparse))
        and start == "pairs"
        and partition
        and first_tables is None
        and (given is None or isinstance(given, MaximumEntropy))
        and _cells_say(domain, n, budget, max_queries)
    ):
        instead = cells_instead(mechanism, domain, tables)
    # prices of hits fall where nobody has settled the mechanism or its threshold
    adaptive = threshold is None and sparse != "laplace" and not isinstance(sparse, NumericSparse)
    if given is None and partition:
        update = MaximumEntropy(evaluations=EVALUATIONS, misfit=shares.misfit)
        update = fitting_rule(domain, () if tables is None else tables.targets, prior, update)
    if prior is None:
        check_holds(update, domain, () if tables is None else tables.targets)
    tested = tested_beta(beta, tables)
    easy = mechanism.easy_radius(ALL_EASY * tested, max_queries)
    # numbers all have one scale, known now; the bound of a block sum is known when it is released
    number = 0.0 if partition else mechanism.margins(max_queries, tested, cutoff)[2]
    relied = mechanism.threshold / (n << mechanism.grid_bits) / 2.0  # as the book: threshold 2 alpha
    known = prior is not None or tables is not None
    update = _stepping(_finest(update, domain, cutoff), NOISE_LEFT_OUT if known else 0.0)
    if tables is not None and not isinstance(update, TABLE_RULES):
        update = FittedStart(update, len(tables.targets), shares.misfit)
    return Plan(
        sparse=mechanism,
        update=update,
        alpha=relied,
        beta=beta,
        max_queries=max_queries,
        hard_answers=cutoff,
        error_bound=max(easy, number),
        certified=False,
        partitions=rule if partition else None,
        first_tables=tables,
        hit_price=hit_price(mechanism, domain, partition),
        next_share=NEXT_SHARE if adaptive else None,
        dense_tables=instead,
    )


def _cells_say(domain: Domain, n: int, budget: Budget, max_queries: int) -> bool:
    """Whether a table of all cells is the start for dense questions, and says something about them."""
    told = forecast(domain, n, budget, max_queries, ("dense",))
    return any(row.start == told.start == "cells" and row.rms <= NOISIEST_NUMBER for row in told.engines)


def _plan_of_numbers(
    domain: Domain, n: int, budget: Budget, beta: float, max_queries: int, reserved: Fraction
) -> Plan:
    """Return the plan that measures every question: of so few that a test would cost more than it saves.

    A share is reserved for questions beyond those announced, at falling prices; without one, the first
    questions are all that is paid for.
    """
    mechanism = UnconditionalNumbers.calibrated(
        budget,
        n=n,
        answers=max_queries,
        grid_bits=max(LEAST_GRID, session_grid_bits(n) - ROOM),
        reserved=reserved,
    )
    price = hit_price(mechanism, domain, partition=False)
    wider = Fraction(max(1.0, NOISIEST_NUMBER / mechanism.deviation))
    return Plan(
        sparse=mechanism,
        update=fitting_rule(domain, ()),
        alpha=mechanism.deviation,
        beta=beta,
        max_queries=max_queries,
        hard_answers=max_queries,
        error_bound=mechanism.margins(max_queries, ALL_HARD * beta, max_queries)[2],
        certified=not reserved,
        hit_price=price,
        next_share=Fraction(1, max_queries + 1) if reserved else None,
        reserve=reserved * mechanism.account().capacity if reserved else None,
        least_price=price / (wider if mechanism.order is None else wider**2),
    )


def _certified_numbers(
    domain: Domain, n: int, budget: Budget, beta: float, max_queries: int, alpha: float
) -> Plan | None:
    """Return the plan that measures every question, where that is best and errs by at most alpha."""
    if forecast(domain, n, budget, max_queries).start != "numbers":
        return None
    plan = _plan_of_numbers(domain, n, budget, beta, max_queries, Fraction(0))
    return plan if plan.error_bound <= alpha else None


def _finest(update: Rule, domain: Domain, cutoff: int) -> Rule:
    """Return a rule that needs an accuracy at the least alpha that it can be run at, and T(alpha) <= c there.

    More than 2^20 databases would make every query wait for tens of milliseconds.
    """
    if not isinstance(update, NeedsAccuracy):
        return update
    bound_of = update_bound_of(update, domain)

    def bound(alpha: float) -> float:
        with contextlib.suppress(TooLargeError):
            rule_at(update, domain, alpha)
            return NO_BOUND if bound_of is None else bound_of(alpha)
        return NO_BOUND

    try:
        return rule_at(update, domain, least_update_alpha(bound, min(cutoff, LISTED)))
    except InfeasibleAccuracyError:
        rule_at(update, domain, 0.5).init(domain)  # says so, where it is the domain that is too large
        raise


def _stepping(update: Rule, left_out: float) -> Rule:
    """Return the rules of the book with steps as large as the measured gaps: no T(alpha) is promised."""
    free = isinstance(update, MultiplicativeWeights) and update.rate is not None
    if free or not isinstance(update, (MultiplicativeWeights, Perceptron)):
        return update
    return MeasuredSteps(update, left_out)


def _check_opens(
    domain: Domain, update: Rule, sparse: SparseName | NumericSparse | None, prior: Hypothesis | None
) -> None:
    """Refuse what cannot start from tables."""
    if prior is not None:
        raise InvalidParameterError("prior must be None with first_tables, got one; leave one of them out.")
    if isinstance(sparse, NumericSparse) or sparse == "laplace":
        raise InvalidParameterError(
            "sparse must be None, 'gumbel' or 'exponential' with first_tables, which share its account, got "
            f"{sparse if isinstance(sparse, str) else type(sparse).__name__}."
        )
    if not isinstance(update, TABLE_RULES):
        update.init(domain, Histogram(domain))  # refuses the prior that the tables become
