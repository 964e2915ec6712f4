"""How the plan of a session is chosen, from public facts alone.

With neither an accuracy nor a number of hard answers given, the shares and the choice of the
mechanism are rules found by experiment (`experiments/README.md`): they depend on n, the domain, the budget
and how many questions were announced, never on the data.

Proof: docs/theory/accuracy.md, 6.3; docs/theory/certificates.md, 8.2, 8.2a;
docs/theory/session.md, 4.2, 4.6; docs/theory/updates.md, 7.6.
"""

import contextlib
from fractions import Fraction
from typing import Any

import attrs

from onlineic.accounting.budget import Budget
from onlineic.accounting.of_table import alike
from onlineic.bounds.certificates import least_update_alpha
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    TooLargeError,
    checked_integer,
)
from onlineic.hypothesis.histogram import Histogram
from onlineic.plan.announced import Announcement, Questions, announcement
from onlineic.plan.calibration import brought, chosen_name, mechanism_for, rounded_down
from onlineic.plan.certificates import NO_BOUND, certified_plan, update_bound_of
from onlineic.plan.defaults import (
    FITTED_AT,
    NEXT_SHARE,
    ROOM,
    Shares,
    default_numbers,
    default_shares,
)
from onlineic.plan.demand import DemandPurchases, opens_with
from onlineic.plan.fitting_rule import TABLE_RULES, check_holds, number_rule
from onlineic.plan.forecasts import budget_of_numbers, expected
from onlineic.plan.listening import account_of_purchases, listening_rule
from onlineic.plan.plan import (
    ALL_EASY,
    ALL_HARD,
    KNOWN,
    KNOWN_WITHIN,
    Plan,
    Rule,
    tested_beta,
)
from onlineic.plan.purchase import (
    Purchase,
    laplace_opens,
    over_codes,
    settled_tables,
)
from onlineic.plan.purchase_rule import Facts, PurchaseRule, TestsOnly, planned_by
from onlineic.plan.settings import Settings, settings_of
from onlineic.plan.spending import hit_price
from onlineic.queries.cuts import planned
from onlineic.queries.partitions import PartitionRule
from onlineic.queries.query import session_grid_bits
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.exponential import ExponentialSparse
from onlineic.sparse.gumbel import LEAST_GRID, GumbelSparse
from onlineic.sparse.unconditional import UnconditionalNumbers
from onlineic.updates.base import NeedsAccuracy, rule_at, rule_for_stream
from onlineic.updates.fitted_tables import USUAL_MISFIT
from onlineic.updates.multiplicative_weights import MultiplicativeWeights
from onlineic.updates.perceptron import Perceptron
from onlineic.updates.steps import FittedAt, FittedStart, MeasuredSteps

# standard deviations by which steps from a good start are shortened: most hits are false there
NOISE_LEFT_OUT = 3.0

LISTED = 20  # binary logarithm of how many databases the median lists in a session that promises no T(alpha)

OTHER_ACCOUNT = (
    "purchases.first must be priced for the account of this session, got first tables that were priced for "
    "another; take them from plan.settled_purchases of these settings, or write first=None beside what you "
    "change, attrs.evolve(plan.purchases, share=.., first=None), and tables are bought by what is asked."
)


def session_plan(domain: Domain, n: int, budget: Budget | Settings, **settings: Any) -> Plan:
    """Return the parameters of a session that tests every query once.

    Args:
        n: Number of records.
        **settings: With a budget: those of `Settings`, by name.

    Raises:
        InvalidParameterError, InfeasibleAccuracyError: If a parameter is outside its range, or the accuracy
            to certify cannot be kept: the message names the least that can.
    """
    n, chosen = checked_integer("n", n, at_least=1), settings_of(budget, **settings).of_domain(domain)
    budget, sparse, max_queries = chosen.of_row, chosen.sparse, chosen.max_queries
    if isinstance(sparse, str):
        chosen_name(sparse, 1, 1, budget, partition=False)  # refuses what this budget cannot be spent by
    rule = rule_for_stream(chosen.rule, max_queries, n)
    if chosen.certify is not None:
        if chosen.only("certify"):
            numbers = _certified_numbers(domain, n, chosen, chosen.certify)
            if numbers is not None:
                return numbers
        return certified_plan(domain, n, chosen, rule, chosen.certify)
    seen = planned(domain)  # tables are chosen as if a long attribute had the parts of its grid
    if chosen.purchases is not None and not isinstance(chosen.purchases, TestsOnly):
        return _plan_of_purchases(domain, n, chosen, rule, chosen.purchases)
    if chosen.within is not None:
        wanted = listening_rule(seen, chosen.announced, chosen.reach)
        return _plan_of_purchases(domain, n, chosen, rule, wanted)
    start = expected(seen, n, chosen).start if chosen.opens else None
    if start in ("numbers", "pairs"):
        few = start == "numbers"
        wanted = listening_rule(seen, chosen.announced, chosen.reach, numbers=few)
        if few and chosen.sparse is None:  # Laplace noise may err less, in an account of its own
            chosen = attrs.evolve(chosen, budget=budget_of_numbers(chosen))
        return _plan_of_purchases(domain, n, chosen, rule, wanted)
    # hard answers wished for take their price from the tables, unless these were wished for too
    wished = chosen.hard_answers if chosen.partition or not chosen.opens else None
    shares = default_shares(n, alike(budget), seen, chosen.expects, wished, start == "cells")
    if chosen.partition or (chosen.opens and chosen.hard_answers is None):
        cutoff = shares.hard_answers
    else:
        cutoff = chosen.hard_answers or default_numbers(n, alike(budget), seen, chosen.expects)
    mechanism, pure = _mechanism(seen, n, chosen, shares, cutoff, start)
    cut = PartitionRule(parts=shares.parts, reach=chosen.reach)
    tables = _tables(seen, chosen, shares, mechanism, pure)
    if chosen.prior is None:
        check_holds(rule, seen, () if tables is None else tables.partitions)
    first = None if tables is None else over_codes(tables, domain)
    known = chosen.prior is not None or first is not None
    rule = _stepping(_finest(rule, domain, cutoff), NOISE_LEFT_OUT if known else 0.0)
    tested = tested_beta(chosen.beta, tables)
    easy = mechanism.easy_radius(ALL_EASY * tested, max_queries)
    # numbers all have one scale, known now; the bound of a block sum is known when it is released
    number = 0.0 if chosen.partition else mechanism.margins(max_queries, tested, cutoff)[2]
    return Plan(
        sparse=mechanism,
        update=rule,
        alpha=mechanism.threshold / (n << mechanism.grid_bits) / 2.0,  # as the book: threshold 2 alpha
        beta=chosen.beta,
        max_queries=max_queries,
        hard_answers=cutoff,
        error_bound=max(easy, number) + rounded_down(mechanism),
        certified=False,
        partitions=cut if chosen.partition else None,
        hit_price=hit_price(mechanism, domain, chosen.partition),
        next_share=NEXT_SHARE if chosen.prices_fall else None,
        restarts=chosen.restarts,
        purchases=TestsOnly() if first is None else _all_of(first, mechanism),
    )


def _all_of(first: Purchase, mechanism: NumericSparse) -> DemandPurchases:
    """Return the rule of which these tables are all that is bought."""
    share = Fraction(first.charge.amount) / mechanism.account().capacity
    return DemandPurchases(share=share, after=(1,), parts=(Fraction(1),), first=first)


def _plan_of_purchases(
    domain: Domain, n: int, settings: Settings, rule: Rule, purchases: PurchaseRule[Any]
) -> Plan:
    """Return the plan of a session whose tables are bought as questions come, or settled by who asks."""
    shares = default_shares(n, alike(settings.of_row), domain, settings.expects, settings.hard_answers)
    cutoff, mechanism = shares.hard_answers, _mechanism_of_purchases(n, settings, purchases, shares)
    account, first = mechanism.account(), opens_with(purchases)
    if type(purchases) is DemandPurchases:
        purchases.check(domain)
    if first is not None and (
        first.charge.amount > purchases.planned(account)
        or (first.charge.unit, first.charge.order) != (account.unit, account.order)
        or first.neighbours != mechanism.neighbours
    ):
        raise InvalidParameterError(OTHER_ACCOUNT)
    check_holds(rule, planned(domain), () if first is None else first.partitions)
    if not isinstance(rule, TABLE_RULES):
        if first is not None:
            rule.init(domain, Histogram(domain))  # refuses the prior that the tables become
        rule = _stepping(_finest(rule, domain, cutoff), NOISE_LEFT_OUT)
        if first is not None:
            rule = FittedStart(rule, len(first.targets), USUAL_MISFIT)
    tested = settings.beta * (1.0 - (KNOWN if settings.within is None else KNOWN_WITHIN))
    easy = mechanism.easy_radius(ALL_EASY * tested, settings.max_queries)
    number = 0.0 if settings.partition else mechanism.margins(settings.max_queries, tested, cutoff)[2]
    return Plan(
        sparse=mechanism,
        update=rule,
        alpha=mechanism.threshold / (n << mechanism.grid_bits) / 2.0,
        beta=settings.beta,
        max_queries=settings.max_queries,
        hard_answers=cutoff,
        error_bound=max(easy, number) + rounded_down(mechanism),
        certified=False,
        partitions=PartitionRule(parts=shares.parts, reach=settings.reach) if settings.partition else None,
        hit_price=hit_price(mechanism, domain, settings.partition),
        next_share=NEXT_SHARE if settings.prices_fall else None,
        restarts=settings.restarts,
        purchases=purchases,
        within=settings.within,
    )


def _mechanism_of_purchases(
    n: int, settings: Settings, purchases: PurchaseRule[Any], shares: Shares
) -> NumericSparse:
    """Return the mechanism of a session that buys by a rule: what is kept for it pays no hits."""
    account = account_of_purchases(n, settings)
    told = settings.sparse if isinstance(settings.sparse, str) else None
    return mechanism_for(
        chosen_name(told, 1, 1, settings.of_row, partition=True),
        settings.of_row,
        n=n,
        hard_answers=shares.hard_answers,
        max_queries=settings.max_queries,
        beta=settings.beta,
        threshold=settings.threshold,
        partition=True,  # after tables most hits are false, which finer numbers tell
        reserved=planned_by(purchases, account) / account.capacity,
        room=ROOM if settings.threshold is None else 0,
        restarts=settings.restarts,
    )


def settled_purchases(
    domain: Domain, n: int, settings: Settings, questions: Questions | None = None
) -> DemandPurchases:
    """Return one purchase that sessions of any update rule can begin with, whatever is asked first.

    Args:
        settings: Of these sessions, but for `update`, `release`, `purchases` and `questions`.
        questions: As `Settings.questions`. What will be asked. None: as a session that is told nothing
            expects.

    Raises:
        InvalidParameterError: If nothing can be bought for so little budget.
    """
    told = Announcement() if questions is None else announcement(questions).of_domain(domain)
    seen, neighbours = planned(domain), settings.of_row.neighbours
    rule = listening_rule(seen, told, settings.reach)
    shares = default_shares(n, alike(settings.of_row), domain, settings.expects, settings.hard_answers)
    account = _mechanism_of_purchases(n, settings, rule, shares).account()
    made = rule.settled(Facts(seen, n, account, neighbours, rule.start()))
    if made.first is None:
        raise InvalidParameterError(
            f"budget must pay for tables of {n:,} records, got one for which no noise can be drawn; write a "
            "larger epsilon, or purchases=TestsOnly()."
        )
    return attrs.evolve(made, first=over_codes(made.first, domain))


def _mechanism(
    domain: Domain, n: int, settings: Settings, shares: Shares, cutoff: int, start: str | None
) -> tuple[NumericSparse, bool]:
    """Return the mechanism, and whether the first tables that share its account have Laplace noise."""
    budget, bought, laplace = settings.of_row, Fraction(0), False
    if settings.opens:
        bought, laplace = shares.tables, start == "cells"
        if sum(size > 1 for size in domain.shape) == 1:
            laplace = laplace_opens(domain, budget, bought)
    if isinstance(settings.sparse, NumericSparse):
        return brought(settings.sparse, n, budget), laplace
    mechanism = mechanism_for(
        chosen_name(settings.sparse, cutoff, settings.max_queries, budget, settings.partition),
        budget,
        n=n,
        hard_answers=cutoff,
        max_queries=settings.max_queries,
        beta=settings.beta,
        threshold=settings.threshold,
        # after tables most hits are false, which finer numbers tell
        partition=settings.partition or settings.opens,
        reserved=bought,
        pure=laplace,
        room=ROOM if settings.threshold is None else 0,
        restarts=settings.restarts,
    )
    return mechanism, laplace


def _tables(
    domain: Domain, settings: Settings, shares: Shares, mechanism: NumericSparse, laplace: bool
) -> Purchase | None:
    """Return all cells, or the levels of one attribute, where these are bought first."""
    if not settings.opens or not isinstance(mechanism, (GumbelSparse, ExponentialSparse)):
        return None
    return settled_tables(mechanism, domain, shares.tables, laplace, settings.budget.order is not None)


def _plan_of_numbers(domain: Domain, n: int, settings: Settings) -> Plan:
    """Return the plan that measures every question, as many as were announced, and pays for no more."""
    asked = settings.expects
    mechanism = UnconditionalNumbers.calibrated(
        settings.of_row,
        n=n,
        answers=asked,
        grid_bits=max(LEAST_GRID, session_grid_bits(n) - ROOM),
    )
    return Plan(
        sparse=mechanism,
        update=FittedAt(number_rule(planned(domain)), FITTED_AT),
        alpha=mechanism.deviation,
        beta=settings.beta,
        max_queries=asked,
        hard_answers=asked,
        error_bound=mechanism.margins(asked, ALL_HARD * settings.beta, asked)[2],
        certified=True,
        hit_price=hit_price(mechanism, domain, partition=False),
        restarts=settings.restarts,
    )


def _certified_numbers(domain: Domain, n: int, settings: Settings, alpha: float) -> Plan | None:
    """Return the plan that measures every question, where that is best and errs by at most alpha."""
    if expected(domain, n, settings, Announcement(settings.announced.count)).start != "numbers":
        return None
    plan = _plan_of_numbers(domain, n, settings)
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
