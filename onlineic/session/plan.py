"""From a plan to a calibrated mechanism: which one, with what share of the budget for first tables.

The public parameters of a session, settled from public facts alone before the data are touched.

With neither an accuracy nor a number of hard answers given, the shares and the choice of the
mechanism are rules found by experiment (`experiments/README.md`): they depend on n, the domain, the budget
and the length of the stream, never on the data.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, Literal, final

import attrs

from onlineic.accounting.budget import Budget, Charge
from onlineic.accounting.of_table import alike
from onlineic.bounds.certificates import least_update_alpha
from onlineic.bounds.online import online_ic_accuracy
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
from onlineic.ledger.records import Opened
from onlineic.queries.ask import Question
from onlineic.queries.partitions import PartitionRule
from onlineic.queries.query import session_grid_bits
from onlineic.session.defaults import (
    EVALUATIONS,
    MOST_UNIFORM,
    NEXT_SHARE,
    NOISIEST_NUMBER,
    PARTITION_FALSE_HITS,
    PARTITION_RATIO,
    PARTS_OF_OPENING,
    RESERVED_OF_NUMBERS,
    ROOM,
    UNIFORM,
    USUAL_QUERIES,
    WIDER,
    Shares,
    default_numbers,
    default_shares,
)
from onlineic.session.first_tables import (
    FirstTables,
    cells_instead,
    chosen_first_tables,
    laplace_suits,
)
from onlineic.session.fitting_rule import TABLE_RULES, check_holds, fitting_rule
from onlineic.session.forecasts import Kind, checked_kinds, error_of_pairs, forecast
from onlineic.session.kinds import is_dense
from onlineic.session.later_tables import Asked, LaterTables, kept_share
from onlineic.session.spending import Spending, hit_price
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.exponential import ExponentialSparse, exponential_resolution
from onlineic.sparse.gumbel import LEAST_GRID, GumbelSparse, gumbel_resolution
from onlineic.sparse.laplace import LaplaceSparse
from onlineic.sparse.unconditional import UnconditionalNumbers
from onlineic.updates.base import (
    ExactBound,
    NeedsAccuracy,
    UpdateRule,
    proven_bound,
    rule_at,
    rule_for_stream,
)
from onlineic.updates.maximum_entropy import MaximumEntropy
from onlineic.updates.multiplicative_weights import MultiplicativeWeights
from onlineic.updates.perceptron import Perceptron
from onlineic.updates.steps import FittedStart, MeasuredSteps

SparseName = Literal["gumbel", "exponential", "laplace"]


def chosen(
    name: SparseName | None, cutoff: int, max_queries: int, budget: Budget, partition: bool
) -> SparseName:
    """Return the mechanism: the smaller predicted resolution, from public parameters."""
    if name is not None:
        if name not in ("gumbel", "exponential", "laplace"):
            raise InvalidParameterError(f"sparse must be 'gumbel', 'exponential' or 'laplace', got {name!r}.")
        if name != "gumbel" and budget.order is not None:
            raise InvalidParameterError(
                f"sparse must be 'gumbel' with a share of a total, whose Renyi filter it spends from, got "
                f"sparse={name!r}; give a pure session a Budget(epsilon) of its own."
            )
        return name
    if budget.order is not None:
        return "gumbel"
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


def mechanism_for(
    name: SparseName,
    budget: Budget,
    *,
    n: int,
    partition: bool = False,
    reserved: Fraction = Fraction(0),
    pure: bool = False,
    room: int = 0,
    **settings: Any,
) -> NumericSparse:
    """Return the named mechanism with the least noise that pays for the planned hard answers.

    Parameters
    ----------
    reserved : Fraction
        Share of the capacity, or with `pure` of epsilon, that is kept for other releases.
    room : int
        Bits by which the noise of a Gumbel session may grow: its grid is so much coarser.
    **settings
        What `calibrated` of every mechanism takes: hard_answers, max_queries, beta, alpha or threshold.
    """
    settings |= {"n": n, "grid_bits": session_grid_bits(n)}
    if name == "laplace":
        return LaplaceSparse.calibrated(budget, **settings)
    if name == "exponential":
        return ExponentialSparse.calibrated(budget, **settings, fresh=partition, reserved=reserved)
    if partition:
        settings |= {"ratio": PARTITION_RATIO, "false_hits": PARTITION_FALSE_HITS, "partition": True}
    made = partial(GumbelSparse.calibrated, budget, reserved=reserved)
    if (
        pure and budget.order is None
    ):  # the order that suits what is left; a hair less, since capacities are rounded down
        left = budget.epsilon * float(1 - reserved) * (1.0 - 2.0**-30)
        made = partial(GumbelSparse.calibrated, attrs.evolve(budget, epsilon=left))
    mechanism = made(**settings)
    coarser = max(min(LEAST_GRID, mechanism.grid_bits), mechanism.grid_bits - room)
    if coarser < mechanism.grid_bits:
        mechanism = made(**settings | {"grid_bits": coarser})
    return attrs.evolve(mechanism, epsilon=budget.epsilon)


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
    if not sparse.account().capacity:
        raise InvalidParameterError(
            "sparse must have a capacity > 0, got one that pays for nothing; calibrate it for this budget."
        )
    return sparse


Rule = UpdateRule[Any]


Release = Literal["answer", "partition"]


# beta is divided once between the ways in which answers can fail (theory 6.0): one answer is easy or hard,
# and each may fail in half of it; of all answers at once the easy ones take .9, the hard ones the rest
EASY_OR_HARD, ALL_EASY, ALL_HARD = 0.5, 0.9, 0.1
# where first tables are bought, those are shares of what is left beside the bounds of their noise
KNOWN = 0.3


MOST_HARD = 10**9


TRIVIAL = 0.5  # what the constant answer 1/2 errs by at most


# standard deviations by which steps from a good start are shortened: most hits are false there
NOISE_LEFT_OUT = 3.0


LISTED = 20  # binary logarithm of how many databases the median lists in a session that promises no T(alpha)


NO_BOUND = 1e15  # hard answers that no budget can pay, where a rule has no T at this alpha


LEAST, MOST = 1e-100, 2**63 - 1


MOST_EPSILON = 1e3  # promises nothing any more


MOST_WISH = 1e6  # the solvers look no further


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
        c, hard answers planned for; false hits may use up more than that, and are paid for too.
    error_bound : float
        Bound on every easy answer of the first Q queries at once, and with a certificate on every answer,
        with probability 1 - beta. Where prices fall (`next_share`), on those before the first hit or
        restart: of all that was answered speaks `SessionStatistics.error_bound`.
    certified : bool
        Whether it is proven that the hard answers cannot run out in that event: T(alpha) counts them, or each
        of the first Q questions is paid.
    textbook : bool
        Whether answers carry the theorem's own bound, 3 alpha.
    partitions : PartitionRule or None
        Which partition a hard query releases; None: its number alone.
    first_tables : FirstTables or None
        Tables released at the start; None: none are.
    dense_tables : FirstTables or None
        What is released in their place, at the charge of all tables, if the first question is a dense one.
    later_tables : LaterTables or None
        Released behind the first ones, once the questions tell which.
    hit_price : Fraction
        Of a planned hit, in the unit of the account.
    next_share : Fraction or None
        The most of what is left that a hit may cost once there was one; None: prices stay as they are.
    reserve, least_price : Fraction or None, Fraction
        Of a session of numbers, in the unit of the account: what is kept for questions beyond those
        announced, and what a number must cost to be of use.
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
    partitions: PartitionRule | None = None
    first_tables: FirstTables | None = None
    hit_price: Fraction = Fraction(0)
    next_share: Fraction | None = None
    reserve: Fraction | None = None
    least_price: Fraction = Fraction(0)
    dense_tables: FirstTables | None = None
    later_tables: LaterTables | None = attrs.field(default=None, metadata={"later": True})

    @property
    def openings(self) -> tuple[FirstTables, ...]:
        """What may be released at the start: one of these."""
        return tuple(one for one in (self.first_tables, self.dense_tables) if one is not None)

    def opening(self, question: Question | None) -> FirstTables | None:
        """Return what is released before this question, as the first, or before there is any."""
        dense = self.dense_tables is not None and question is not None and is_dense(question)
        return self.dense_tables if dense else self.first_tables

    def opening_of(self, record: Opened) -> FirstTables | None:
        """Return which of the openings a record holds, if it is one."""
        return next((one for one in self.openings if _is_of(record, one, self.sparse.n)), None)

    def released(self, record: Opened, asked: Asked) -> FirstTables | None:
        """Return which tables of this plan a record holds, behind what was asked, if any."""
        if not asked.bought:
            return self.opening_of(record)
        later = self.later(asked)
        return later if later is not None and _is_of(record, later, self.sparse.n) else None

    def later(self, asked: Asked) -> FirstTables | None:
        """Return what is released behind what was asked besides the first tables, or None."""
        if self.later_tables is None or self.first_tables is None:
            return None
        return self.later_tables.tables(asked, self.first_tables)

    @property
    def spending(self) -> Spending:
        """Which mechanism tests, by what the record has spent."""
        planned = [one.charge.amount for one in (self.first_tables, self.later_tables) if one is not None]
        bought = sum(planned, Fraction(0))
        return Spending(self.sparse, bought, self.hit_price, self.next_share, self.reserve, self.least_price)

    @property
    def tested_beta(self) -> float:
        """What tests and hard answers share: all of beta, but for what the noise of first tables takes."""
        return _tested_beta(self.beta, self.first_tables)

    def _repr_html_(self) -> str:
        from onlineic.session.pictures import plan_html  # which stands above the plan

        return plan_html(self)


def _is_of(record: Opened, tables: FirstTables, n: int) -> bool:
    """Whether a record holds these tables."""
    targets = tuple(one.target for one in record.measurements)
    scales = tuple(one.scale for one in record.measurements)
    return (tables.targets, tables.charge, tables.deviations(n)) == (targets, record.charge, scales)


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
    n, budget, max_queries, beta = _common(n, budget, max_queries, beta)
    if alpha is not None:
        alpha = checked_real("alpha", alpha, above=0.0, at_most=MOST_WISH)
    accuracy_of = _bound_of(update := rule_for_stream(update, max_queries, n), domain)
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
    )


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
    n, budget, max_queries, beta = _common(n, budget, max_queries, beta)
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
        chosen(sparse, 1, 1, budget, partition=False)  # refuses what this budget cannot be spent by
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
        return _certified_plan(
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
    laplace = opens and (_laplace_levels(domain, n, budget, bought) if one_attribute else start == "cells")
    if isinstance(sparse, NumericSparse):
        mechanism = brought(sparse, n, budget)
    else:
        name = chosen(sparse, cutoff, max_queries, budget, partition)
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
    tables = later = None
    # prices of hits fall where nobody has settled the mechanism or its threshold
    adaptive = threshold is None and sparse != "laplace" and not isinstance(sparse, NumericSparse)
    kept = Fraction(0)
    if partition and start == "pairs" and adaptive and isinstance(mechanism, GumbelSparse):
        kept = kept_share(mechanism, domain, shares, max_queries)
    if opens and isinstance(mechanism, (GumbelSparse, ExponentialSparse)):
        tables = chosen_first_tables(
            mechanism,
            domain,
            rule,
            one_way_share=shares.one_way,
            pair_share=shares.pairs - kept,
            shared=shares.shared,
            laplace=laplace,
            given_order=budget.order is not None,
        )
    if tables is not None and kept:
        account = mechanism.account()
        amount = Fraction(math.floor(kept * account.capacity))
        later = LaterTables(
            Charge(amount, "later tables", account.unit, account.order), tables.charge.amount
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
        amount = tables.charge.amount + (Fraction(0) if later is None else later.charge.amount)
        instead = cells_instead(mechanism, domain, attrs.evolve(tables.charge, amount=amount))
    if given is None and partition:
        update = MaximumEntropy(evaluations=EVALUATIONS, misfit=shares.misfit)
        update = fitting_rule(domain, () if tables is None else tables.targets, prior, update)
    if prior is None:
        check_holds(update, domain, () if tables is None else tables.targets)
    tested = _tested_beta(beta, tables)
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
        later_tables=later,
    )


def _laplace_levels(domain: Domain, n: int, budget: Budget, bought: Fraction) -> bool:
    """Whether to open with Laplace noise: not at an order that is given, which suits Gaussian noise."""
    return budget.order is None and laplace_suits(domain, n, budget, float(bought))


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


@final
@attrs.frozen
class _Opening:
    """First tables of a certified session, before its mechanism is known.

    Attributes
    ----------
    shares : Shares
    part : Fraction, in (0, 1]
        Of the shares of the tables.
    laplace : bool
    uniform : float
        Part of the uniform distribution in the start, without which there is no T(alpha).
    usual : float
        Expected error of a default session, fraction of records.
    levels : bool
        Whether the domain has one attribute.
    """

    shares: Shares
    part: Fraction
    laplace: bool
    uniform: float
    usual: float
    levels: bool

    @property
    def bought(self) -> Fraction:
        return self.part * (self.shares.one_way + self.shares.pairs)

    def expected(self, n: int, budget: Budget, pure: bool) -> float:
        """Return the error that is expected of a session from such tables, fraction of records."""
        told = self.usual
        if not self.laplace and not self.levels:
            told = error_of_pairs(n, attrs.evolve(budget, delta=0.0) if pure else alike(budget))
        part = float(self.part)
        return told / (part if pure else math.sqrt(part))


def _openings(domain: Domain, n: int, budget: Budget, max_queries: int) -> list[_Opening]:
    """Return the openings that a certified session may choose from, the dearest first."""
    told = forecast(domain, n, budget, max(max_queries, USUAL_QUERIES))
    rms = min(row.rms for row in told.engines if row.start == told.start)
    shares = default_shares(n, alike(budget), domain, max_queries, None, told.start == "cells")
    found = []
    for part in PARTS_OF_OPENING:
        # at least |X|^-2: T(alpha) is three times that of the uniform start at most
        uniform = max(min(MOST_UNIFORM, UNIFORM * rms), min(0.5, domain.size**-2.0))
        opening = _Opening(shares, part, False, uniform, rms, told.start == "levels")
        suits = _laplace_levels(domain, n, budget, opening.bought)
        found.append(attrs.evolve(opening, laplace=suits))
    # last, what can be had for fewer hits
    return [*found, attrs.evolve(found[-1], uniform=max(uniform, MOST_UNIFORM))]


def _certified_plan(
    domain: Domain,
    n: int,
    budget: Budget,
    update: Rule,
    sparse: SparseName | NumericSparse | None,
    prior: Hypothesis | None,
    beta: float,
    max_queries: int,
    alpha: float,
    first_tables: bool | None,
) -> Plan:
    """Return the certificate of a known T(alpha): every error <= alpha + a_hit + a_miss."""
    if _bound_of(update, domain, prior) is None:
        start = " from this prior" if prior is not None else ""
        raise InvalidParameterError(
            f"hard_answers must be given for {update!r}, which has no proven T(alpha){start}."
        )
    if isinstance(sparse, NumericSparse):
        raise InvalidParameterError("sparse must be a name with certify, which settles its scales.")
    made = partial(_certificate_at, domain, n, budget, update, prior, beta, max_queries)
    names: tuple[SparseName | None, ...] = (sparse,)
    if (
        sparse is None and budget.delta > 0.0 and budget.order is None
    ):  # a Gumbel threshold wants so much noise that both are tried
        names = ("gumbel", "exponential")

    def certificates(wanted: float, opening: _Opening | None = None) -> Iterator[Plan]:
        for name in names:
            with contextlib.suppress(InvalidParameterError, InfeasibleAccuracyError):
                yield made(name, wanted, opening)

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
        least = next(shown for digits in (4, 5, 6, 17) if feasible(shown := _rounded_up(high, digits)))
        raise InfeasibleAccuracyError(
            f"certify must be >= {least} at n={n}, epsilon={budget.epsilon}, delta={budget.delta}, got "
            f"certify={alpha}; raise certify, epsilon or n, or give hard_answers."
        )
    able = isinstance(update, MultiplicativeWeights) and prior is None and sparse != "laplace"
    if first_tables and not able:
        raise InvalidParameterError(
            f"first_tables must be None or False with certify for {update!r}, of which nothing is proven "
            "from a fitted start; write MultiplicativeWeights()."
        )
    if not able or first_tables is False:
        return alone
    most = WIDER * alone.error_bound
    if alone.error_bound < TRIVIAL:
        most = min(most, TRIVIAL)
    found: list[tuple[float, int, Plan]] = []
    for opening in _openings(domain, n, budget, max_queries):
        for plan in certificates(alpha, opening):
            tables = plan.first_tables
            if tables is not None and (first_tables or plan.error_bound < most):
                expected = opening.expected(n, budget, tables.pure)
                found.append((plan.error_bound * math.sqrt(expected), len(found), plan))
    if found:
        return min(found)[2]
    if first_tables:
        raise InfeasibleAccuracyError(
            f"certify must leave a budget for first tables at n={n}, epsilon={budget.epsilon}, "
            f"delta={budget.delta}, got certify={alpha}; raise certify, epsilon or n, or leave "
            "first_tables out."
        )
    return alone


def _certificate_at(
    domain: Domain,
    n: int,
    budget: Budget,
    update: Rule,
    prior: Hypothesis | None,
    beta: float,
    max_queries: int,
    name: SparseName | None,
    alpha: float,
    opening: _Opening | None,
) -> Plan:
    """Return the plan with that certificate and opening.

    Raises
    ------
    InvalidParameterError, InfeasibleAccuracyError
        If there is none.
    """
    start: Rule = update
    tables, tested, bought = None, beta, Fraction(0)
    if opening is not None:  # as many tables as the mechanism can draw: one stands for them in T(alpha)
        start = FittedStart(update, 1, opening.shares.misfit, opening.uniform)
        tested, bought = beta * (1.0 - KNOWN), opening.bought
    bound_of = _bound_of(start, domain, prior)
    steps = NO_BOUND if bound_of is None else bound_of(alpha)
    if steps > MOST_HARD:
        raise InfeasibleAccuracyError(f"T(alpha) must be at most {MOST_HARD}, got {steps:.4g}.")
    cutoff = max(1, math.floor(steps))
    # half a record more: guesses are rounded on the query's own grid, and gaps must exceed alpha strictly
    mechanism = mechanism_for(
        chosen(name, cutoff, max_queries, budget, partition=False),
        budget,
        n=n,
        hard_answers=cutoff,
        max_queries=max_queries,
        beta=tested,
        alpha=alpha + 0.5 / n,
        reserved=bought,
        pure=opening is not None and opening.laplace,
    )
    _, miss, number = mechanism.margins(max_queries, tested, cutoff)
    if number > alpha:
        raise InfeasibleAccuracyError(f"a_num must be at most alpha, got {number:.4g} > {alpha:.4g}.")
    if opening is not None and isinstance(mechanism, (GumbelSparse, ExponentialSparse)):
        tables = chosen_first_tables(
            mechanism,
            domain,
            PartitionRule(parts=opening.shares.parts),
            one_way_share=opening.part * opening.shares.one_way,
            pair_share=opening.part * opening.shares.pairs,
            shared=opening.shares.shared,
            laplace=opening.laplace,
        )
    if opening is not None and tables is not None:
        start = FittedStart(update, len(tables.targets), opening.shares.misfit, opening.uniform)
    return Plan(
        sparse=mechanism,
        update=rule_at(start, domain, alpha),
        alpha=alpha,
        beta=beta,
        max_queries=max_queries,
        hard_answers=cutoff,
        error_bound=mechanism.threshold / (n << mechanism.grid_bits) + miss,
        certified=True,
        first_tables=tables,
    )


def _common(n: int, budget: Budget, max_queries: int, beta: float) -> tuple[int, Budget, int, float]:
    """Return what both plans share, checked; the outer limits keep every formula inside the floats."""
    epsilon = checked_real("epsilon", budget.epsilon, at_least=LEAST, at_most=MOST_EPSILON)
    return (
        checked_integer("n", n, at_least=1),
        attrs.evolve(budget, epsilon=epsilon),
        checked_integer("max_queries", max_queries, at_least=1, at_most=MOST),
        checked_real("beta", beta, at_least=LEAST, below=1.0),
    )


def _tested_beta(beta: float, first_tables: FirstTables | None) -> float:
    return beta if first_tables is None else beta * (1.0 - KNOWN)


def _rounded_up(value: float, digits: int) -> float:
    """Return `value` to so many digits, not below it."""
    near = float(f"{value:.{digits}g}")
    return near if near >= value else float(f"{value * (1.0 + 10.0 ** (1 - digits)):.{digits}g}")


def _bound_of(
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


def _finest(update: Rule, domain: Domain, cutoff: int) -> Rule:
    """Return a rule that needs an accuracy at the least alpha that it can be run at, and T(alpha) <= c there.

    More than 2^20 databases would make every query wait for tens of milliseconds.
    """
    if not isinstance(update, NeedsAccuracy):
        return update
    bound_of = _bound_of(update, domain)

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
