"""How the plan of a session is chosen, from public facts alone.

With neither an accuracy nor a number of hard answers given, the shares and the choice of the
mechanism are rules found by experiment (`experiments/README.md`): they depend on n, the domain, the budget
and the length of the stream, never on the data.

Proof: docs/theory/accuracy.md, 6.3; docs/theory/certificates.md, 8.2, 8.2a, 8.2b; docs/theory/session.md,
4.2, 4.6; docs/theory/updates.md, 7.6.
"""

import contextlib
from collections.abc import Iterable
from fractions import Fraction
from typing import Literal, final

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
    checked_real,
    set_fields,
    shown,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.histogram import Histogram
from onlineic.plan.calibration import SparseName, brought, chosen_name, mechanism_for, rounded_down
from onlineic.plan.certificates import NO_BOUND, certified_plan, update_bound_of
from onlineic.plan.defaults import (
    DEAR_EVALUATIONS,
    FITTED_AT,
    NEXT_SHARE,
    NOISIEST_NUMBER,
    RESERVED_OF_NUMBERS,
    ROOM,
    Shares,
    default_numbers,
    default_shares,
)
from onlineic.plan.first_tables import (
    FirstTables,
    cells_instead,
    chosen_first_tables,
    laplace_opens,
    ranges_instead,
)
from onlineic.plan.fitting_rule import TABLE_RULES, check_holds, fitting_rule
from onlineic.plan.forecasts import Kind, checked_kinds, forecast
from onlineic.plan.later_tables import LaterTables, kept_share, later_tables, together
from onlineic.plan.plan import (
    ALL_EASY,
    ALL_HARD,
    LEAST,
    MOST_HARD,
    Plan,
    Rule,
    checked_facts,
    tested_beta,
)
from onlineic.plan.spending import hit_price
from onlineic.queries.partitions import PartitionRule
from onlineic.queries.query import session_grid_bits
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.exponential import ExponentialSparse
from onlineic.sparse.gumbel import LEAST_GRID, GumbelSparse
from onlineic.sparse.unconditional import UnconditionalNumbers
from onlineic.updates.base import NeedsAccuracy, rule_at, rule_for_stream
from onlineic.updates.maximum_entropy import MaximumEntropy
from onlineic.updates.multiplicative_weights import MultiplicativeWeights
from onlineic.updates.perceptron import Perceptron
from onlineic.updates.steps import FittedAt, FittedStart, MeasuredSteps

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
    restarts: int = 0,
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
        unless `first_tables` says when, a dense first question buys all cells (`Plan.dense_tables`), and a
        range of one long attribute its levels with less noise in coarse ones (`Plan.range_tables`).
    restarts : int
        How often the session shall be closed and resumed: that is paid for besides the hard answers, by
        mechanisms that keep a threshold (theory 5.4).

    Raises
    ------
    InvalidParameterError, InfeasibleAccuracyError
        If a parameter is outside its range, or the accuracy to certify cannot be kept: the message names the
        least that can.
    """
    n, budget, max_queries, beta = checked_facts(n, budget, max_queries, beta)
    restarts = checked_integer("restarts", restarts, at_least=0, at_most=MOST_HARD)
    facts, kinds = _Facts(domain, n, budget, max_queries, beta, restarts), checked_kinds(kinds)
    wishes = _Wishes(update, sparse, release, prior, certify, hard_answers, threshold, first_tables)
    if isinstance(sparse, str):
        chosen_name(sparse, 1, 1, budget, partition=False)  # refuses what this budget cannot be spent by
    rule = rule_for_stream(wishes.rule(domain), max_queries, n)
    if first_tables:
        _check_opens(domain, rule, sparse, prior)
    if wishes.certify is not None:
        if wishes.all_left_but("certify"):
            numbers = _certified_numbers(facts, wishes.certify)
            if numbers is not None:
                return numbers
        return certified_plan(
            domain, n, budget, rule, sparse, prior, beta, max_queries, wishes.certify, first_tables, restarts
        )
    opens = wishes.opens
    start = forecast(domain, n, budget, max_queries, kinds).start if opens else None
    if start == "numbers" and wishes.all_left_but():
        return _plan_of_numbers(facts, RESERVED_OF_NUMBERS)
    # hard answers wished for take their price from the tables, unless these were wished for too
    wished = wishes.hard_answers if wishes.partition or not first_tables else None
    shares = default_shares(n, alike(budget), domain, max_queries, wished, start == "cells")
    if wishes.partition or (opens and hard_answers is None):
        cutoff = shares.hard_answers
    else:
        cutoff = wishes.hard_answers or default_numbers(n, alike(budget), domain, max_queries)
    mechanism, pure = _mechanism(facts, wishes, shares, cutoff, start)
    cut = PartitionRule(parts=shares.parts)
    tables, later = _tables(facts, wishes, shares, mechanism, cut, start, pure)
    cells = of_ranges = None
    if (
        tables is not None
        and wishes.may_start_otherwise
        and isinstance(mechanism, (GumbelSparse, ExponentialSparse))
    ):
        if start == "pairs" and _cells_say(facts):
            cells = cells_instead(mechanism, domain, together(tables, later))
        elif start == "levels" and "dense" not in kinds and len(tables.targets) > 1:
            of_ranges = ranges_instead(mechanism, domain, tables)
    if update is None and wishes.partition:
        rule = MaximumEntropy(shares.evaluations, misfit=shares.misfit, dear_evaluations=DEAR_EVALUATIONS)
        rule = fitting_rule(domain, () if tables is None else tables.targets, prior, rule)
    if prior is None:
        check_holds(rule, domain, () if tables is None else tables.targets)
    known = prior is not None or tables is not None
    rule = _stepping(_finest(rule, domain, cutoff), NOISE_LEFT_OUT if known else 0.0)
    if tables is not None and not isinstance(rule, TABLE_RULES):
        rule = FittedStart(rule, len(tables.targets), shares.misfit)
    tested = tested_beta(beta, tables)
    easy = mechanism.easy_radius(ALL_EASY * tested, max_queries)
    # numbers all have one scale, known now; the bound of a block sum is known when it is released
    number = 0.0 if wishes.partition else mechanism.margins(max_queries, tested, cutoff)[2]
    return Plan(
        sparse=mechanism,
        update=rule,
        alpha=mechanism.threshold / (n << mechanism.grid_bits) / 2.0,  # as the book: threshold 2 alpha
        beta=beta,
        max_queries=max_queries,
        hard_answers=cutoff,
        error_bound=max(easy, number) + rounded_down(mechanism),
        certified=False,
        partitions=cut if wishes.partition else None,
        first_tables=tables,
        hit_price=hit_price(mechanism, domain, wishes.partition),
        next_share=NEXT_SHARE if wishes.prices_fall else None,
        dense_tables=cells,
        later_tables=later,
        range_tables=of_ranges,
        restarts=restarts,
    )


@final
@attrs.frozen
class _Facts:
    """What is public before anything is wished for, checked."""

    domain: Domain
    n: int
    budget: Budget
    max_queries: int
    beta: float
    restarts: int


@final
@attrs.frozen
class _Wishes:
    """What of a plan is not left to the planner, checked; the parameters of `session_plan`."""

    update: Rule | None
    sparse: SparseName | NumericSparse | None
    release: Release | None
    prior: Hypothesis | None
    certify: float | None
    hard_answers: int | None
    threshold: float | None
    first_tables: bool | None

    def __attrs_post_init__(self) -> None:
        if self.certify is not None:
            if self.hard_answers is not None or self.threshold is not None:
                raise InvalidParameterError(
                    "certify must be None with hard_answers or threshold, got certify="
                    f"{shown(self.certify)}; it settles both, so leave out one of them."
                )
            if self.release == "partition":
                raise InvalidParameterError(
                    "release must be 'answer' with certify: T(alpha) counts single queries."
                )
            set_fields(self, certify=checked_real("certify", self.certify, at_least=LEAST, below=1.0))
        if self.release not in (None, "answer", "partition"):
            raise InvalidParameterError(
                f"release must be 'answer' or 'partition', got release={shown(self.release)}."
            )
        if self.first_tables is not None and type(self.first_tables) is not bool:
            raise InvalidParameterError(
                "first_tables must be True, False or None, got first_tables="
                f"{shown(self.first_tables)}; leave it out."
            )
        if self.threshold is not None:
            set_fields(self, threshold=checked_real("threshold", self.threshold, above=0.0, below=1.0))
        if self.hard_answers is not None:
            asked = checked_integer("hard_answers", self.hard_answers, at_least=1, at_most=MOST_HARD)
            set_fields(self, hard_answers=asked)

    def all_left_but(self, *names: str) -> bool:
        """Whether nothing else was wished for."""
        return all(
            value is None for name, value in attrs.asdict(self, recurse=False).items() if name not in names
        )

    @property
    def partition(self) -> bool:
        """Whether hits release partitions: where `MaximumEntropy` can read them, if nobody says."""
        if self.release is not None:
            return self.release == "partition"
        fits = self.update is None or isinstance(self.update, TABLE_RULES)
        able = self.sparse in (None, "gumbel", "exponential") or isinstance(self.sparse, GumbelSparse)
        return fits and able and self.certify is None

    def rule(self, domain: Domain) -> Rule:
        """Return the update rule, the planner's own before it is fitted to what is bought."""
        if self.update is not None:
            return self.update
        return fitting_rule(domain, (), self.prior) if self.partition else MultiplicativeWeights()

    @property
    def opens(self) -> bool:
        """Whether tables are bought first: where the rule reads them all, and nobody brings a start or a
        mechanism of his own."""
        if self.first_tables is not None:
            return self.first_tables
        reads = self.update is None or isinstance(self.update, TABLE_RULES)
        return self.partition and reads and self.prior is None and not isinstance(self.sparse, NumericSparse)

    @property
    def prices_fall(self) -> bool:
        """Whether prices of hits fall: where nobody has settled the mechanism or its threshold."""
        return (
            self.threshold is None and self.sparse != "laplace" and not isinstance(self.sparse, NumericSparse)
        )

    @property
    def may_start_otherwise(self) -> bool:
        """Whether a first question may choose another start, which `MaximumEntropy` has to read."""
        fits = self.update is None or isinstance(self.update, MaximumEntropy)
        return self.partition and self.first_tables is None and fits


def _mechanism(
    facts: _Facts, wishes: _Wishes, shares: Shares, cutoff: int, start: str | None
) -> tuple[NumericSparse, bool]:
    """Return the mechanism, and whether the first tables that share its account have Laplace noise."""
    budget, n, bought, laplace = facts.budget, facts.n, Fraction(0), False
    if wishes.opens:
        bought, laplace = shares.one_way + shares.pairs, start == "cells"
        if sum(size > 1 for size in facts.domain.shape) == 1:
            laplace = laplace_opens(facts.domain, n, budget, bought)
    if isinstance(wishes.sparse, NumericSparse):
        return brought(wishes.sparse, n, budget), laplace
    mechanism = mechanism_for(
        chosen_name(wishes.sparse, cutoff, facts.max_queries, budget, wishes.partition),
        budget,
        n=n,
        hard_answers=cutoff,
        max_queries=facts.max_queries,
        beta=facts.beta,
        threshold=wishes.threshold,
        # behind tables most hits are false, which finer numbers tell
        partition=wishes.partition or wishes.opens,
        reserved=bought,
        pure=laplace,
        room=ROOM if wishes.threshold is None else 0,
        restarts=facts.restarts,
    )
    return mechanism, laplace


def _tables(
    facts: _Facts,
    wishes: _Wishes,
    shares: Shares,
    mechanism: NumericSparse,
    cut: PartitionRule,
    start: str | None,
    laplace: bool,
) -> tuple[FirstTables | None, LaterTables | None]:
    """Return the tables that are bought first, and those for which a part of their price waits."""
    if not wishes.opens or not isinstance(mechanism, (GumbelSparse, ExponentialSparse)):
        return None, None
    kept = Fraction(0)
    if wishes.partition and start == "pairs" and wishes.prices_fall and isinstance(mechanism, GumbelSparse):
        kept = kept_share(mechanism, facts.domain, shares, facts.max_queries)
    tables = chosen_first_tables(
        mechanism,
        facts.domain,
        cut,
        one_way_share=shares.one_way,
        pair_share=shares.pairs - kept,
        shared=shares.shared,
        laplace=laplace,
        given_order=facts.budget.order is not None,
    )
    later = later_tables(mechanism, tables, kept) if tables is not None and kept else None
    return tables, later


def _cells_say(facts: _Facts) -> bool:
    """Whether a table of all cells is the start for dense questions, and says something about them."""
    told = forecast(facts.domain, facts.n, facts.budget, facts.max_queries, ("dense",))
    return any(row.start == told.start == "cells" and row.rms <= NOISIEST_NUMBER for row in told.engines)


def _plan_of_numbers(facts: _Facts, reserved: Fraction) -> Plan:
    """Return the plan that measures every question: of so few that a test would cost more than it saves.

    A share is reserved for questions beyond those announced, at falling prices; without one, the first
    questions are all that is paid for.
    """
    asked = facts.max_queries
    mechanism = UnconditionalNumbers.calibrated(
        facts.budget,
        n=facts.n,
        answers=asked,
        grid_bits=max(LEAST_GRID, session_grid_bits(facts.n) - ROOM),
        reserved=reserved,
    )
    price = hit_price(mechanism, facts.domain, partition=False)
    wider = Fraction(max(1.0, NOISIEST_NUMBER / mechanism.deviation))
    return Plan(
        sparse=mechanism,
        update=FittedAt(fitting_rule(facts.domain, ()), FITTED_AT),
        alpha=mechanism.deviation,
        beta=facts.beta,
        max_queries=asked,
        hard_answers=asked,
        error_bound=mechanism.margins(asked, ALL_HARD * facts.beta, asked)[2]
        + (rounded_down(mechanism) if reserved else 0.0),
        certified=not reserved,
        hit_price=price,
        next_share=Fraction(1, asked + 1) if reserved else None,
        reserve=reserved * mechanism.account().capacity if reserved else None,
        least_price=price / (wider if mechanism.order is None else wider**2),
        restarts=facts.restarts,
    )


def _certified_numbers(facts: _Facts, alpha: float) -> Plan | None:
    """Return the plan that measures every question, where that is best and errs by at most alpha."""
    if forecast(facts.domain, facts.n, facts.budget, facts.max_queries).start != "numbers":
        return None
    plan = _plan_of_numbers(facts, Fraction(0))
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
