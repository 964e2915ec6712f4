"""The loop that the iterative construction and MWEM share: choose, answer, update; and what it releases.

What one round of an offline construction costs: choose the worst answered query, answer it afresh.

A replaced record moves n f(x) by at most the width of f's weights, for each query of the class, and so the
score |f(x) - f(D)| too: scores do not all move the same way. All rounds are paid in advance, so that stopping
early, a function of released numbers, costs nothing more.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, Literal, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import advanced_share, zcdp_rho
from onlineic.accounting.rounding import float_down
from onlineic.data.private import PrivateData
from onlineic.data.release import is_private, released
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError, checked_integer
from onlineic.hypothesis.base import Hypothesis
from onlineic.mechanisms.selection import ExponentialMechanism, NoisyMax
from onlineic.noise.laws import DiscreteLaplace
from onlineic.noise.sources import Noise, scale_at_least
from onlineic.queries.ask import bind_queries
from onlineic.queries.partitions import Measurement, Pairs, Partition, PartitionRule, pairs_of
from onlineic.queries.query import Query, session_grid_bits
from onlineic.updates.base import UpdateRule

__all__ = [
    "Composition",
    "Construction",
    "Distinguisher",
    "Rounds",
    "Run",
    "Workload",
    "construct",
    "finished",
    "paid_rounds",
]

Rule = UpdateRule[Any]


Composition = Literal["basic", "advanced", "zcdp"]


@final
@attrs.frozen
class Rounds:
    """A number of rounds that is paid for, of a choice and a fresh answer each.

    Attributes
    ----------
    rounds : int
    composition : "basic", "advanced" or "zcdp"
        What the capacity counts: epsilon; the epsilons of mechanisms that Corollary 3.21 of Dwork & Roth
        (2014) composes, checked by Theorem 3.20; or rho of zero-concentrated privacy.
    choice : NoisyMax or ExponentialMechanism
        On integer scores, grid units.
    scale : Fraction
        Of an answer's noise: of a discrete Laplace, or sigma of a discrete Gaussian under zcdp. Grid units
        for numbers, counts for tables.
    price, capacity : Fraction
        Of one round, and of all: rounds * price <= capacity, exactly.
    """

    rounds: int
    composition: Composition
    choice: NoisyMax | ExponentialMechanism
    scale: Fraction
    price: Fraction
    capacity: Fraction

    @property
    def gaussian(self) -> bool:
        """Whether answers carry Gaussian noise."""
        return self.composition == "zcdp"

    @property
    def deviation(self) -> float:
        """Standard deviation of an answer's noise, unit of `scale`; Laplace: of the continuous law."""
        return float(self.scale) * (1.0 if self.gaussian else math.sqrt(2.0))

    def choose(self, scores: Ints, noise: Noise) -> int:
        """Return the index of a nearly largest score, (m,) int64 (PRIVATE)."""
        return self.choice.select(scores, noise)

    def answer(self, values: Ints, noise: Noise, shift: int = 0) -> Ints:
        """Return (m,) exact integers (PRIVATE), in units of 2^-shift, with fresh noise."""
        if self.gaussian:
            return values + noise.discrete_gaussian(int(self.scale) << shift, values.size)
        return values + noise.discrete_laplace(self.scale * (1 << shift), values.size)

    def finest(self, grid_bits: int) -> int:
        """Return the largest shift <= grid_bits at which the noise of an answer can be drawn."""
        most = LARGEST_SIGMA if self.gaussian else LARGEST_SCALE
        return max(shift for shift in range(grid_bits + 1) if self.scale * (1 << shift) <= most)

    def choice_radius(self, candidates: int, beta: float) -> int:
        """Return r, grid units: with probability >= 1 - beta the score chosen is within r of the best."""
        return self.choice.radius(candidates, beta)

    def answer_radius(self, beta: float) -> int:
        """Return r, grid units: with probability >= 1 - beta an answer is within r of the truth."""
        if not self.gaussian:
            return DiscreteLaplace(self.scale).radius(beta)
        from statistics import NormalDist  # 5 ms to import

        # each term beyond r lies below the integral over the unit before it
        return math.ceil(-int(self.scale) * NormalDist().inv_cdf(beta / 2))


@final
@attrs.frozen(eq=False, repr=False)
class Construction:
    """A hypothesis learned from private answers to the queries that it answered worst. All of it is released.

    Attributes
    ----------
    hypothesis : Hypothesis
        Answers any query over the domain, free of charge.
    measurements : tuple of Measurement
        The queries chosen, with their noisy answers and the noise's standard deviation; one a round.
    gaps : tuple of float
        |v - f(D)| of each round, fraction of records: noisy value against the hypothesis of that round.
    stopped : bool
        Whether a small gap ended the construction before its rounds were used up.
    alpha : float
        With probability 1 - beta no query of the class errs by more, known in advance; inf if nothing is.
    error_bound : float
        The same from what was released, never larger; inf if nothing is known.
    beta : float
    grid_bits : int
        Grid on which the class was rounded; below 20 for more than 2^32 records.
    plan : Rounds
        Rounds paid for, their noise and their price.
    budget : Budget
        Spent as a whole, also where the construction stopped early.
    private : bool
        False: simulated noise was used, NOT PRIVATE.
    """

    hypothesis: Hypothesis
    measurements: tuple[Measurement, ...]
    gaps: tuple[float, ...]
    stopped: bool
    alpha: float
    error_bound: float
    beta: float
    grid_bits: int
    plan: Rounds
    budget: Budget
    private: bool

    def answers(self, queries: Iterable[Any]) -> Floats:
        """Return the hypothesis's answers, shape (m,), fractions of records; bounds are for the class alone.

        Raises
        ------
        InvalidQueryError, DomainMismatchError
            If a query cannot be bound to the domain on this grid.
        """
        # as the class: of a query rounded otherwise the hypothesis can be off by both roundings more
        asked = bind_queries(queries, self.hypothesis.domain, self.grid_bits)
        values = np.clip(self.hypothesis.evaluate_many(asked), 0.0, 1.0)  # as they were tested; a copy
        for place, query in enumerate(asked):
            if query.constant is not None:  # known; a hypothesis need not have mass 1
                values[place] = query.constant / (1 << query.grid_bits)
        return values

    def __repr__(self) -> str:
        ended = "stopped" if self.stopped else "ended"
        within = f"within {self.error_bound:.3g} at {1 - self.beta:.4g}"
        bound = within if self.error_bound < math.inf else "no bound"
        stamp = "" if self.private else ", NOT PRIVATE"
        return (
            f"Construction({ended} after {len(self.measurements)} of {self.plan.rounds} rounds, "
            f"{bound}, epsilon={self.budget.epsilon:g}, "
            f"delta={self.budget.delta:g}{stamp})"
        )


@final
@attrs.frozen(eq=False)
class Workload:
    """The distinct queries of a class on one common grid.

    A query and its complement are two: f(D) + (1 - f)(D) is 1 for distributions, but need not be for signed
    weights or the median of many databases.

    Attributes
    ----------
    queries : tuple of Query
        None is constant.
    grid_bits : int
        K of the common grid: one unit is 1/(n 2^K).
    sensitivity : int
        Largest of the class, grid units.
    rounding : float
        Largest difference of a query from the one written.
    n : int
    """

    queries: tuple[Query, ...]
    grid_bits: int
    sensitivity: int
    rounding: float
    n: int

    @classmethod
    def of(cls, queries: Iterable[Any], domain: Domain, n: int) -> "Workload":
        """Bind the queries, drop constants, keep one of each.

        Raises
        ------
        InvalidQueryError, DomainMismatchError
            If a query cannot be bound, or all are constant.
        """
        asked = bind_queries(queries, domain, session_grid_bits(n))
        distinct = tuple(dict.fromkeys(query for query in asked if query.constant is None))
        if not distinct:
            raise InvalidQueryError(
                "queries must hold one or more that are not constant, got none; name some."
            )
        bits = max(query.grid_bits for query in distinct)
        widest = max(query.sensitivity << (bits - query.grid_bits) for query in distinct)
        return cls(distinct, bits, widest, max(query.rounding for query in asked), n)

    @property
    def units(self) -> int:
        """n 2^K: grid units in 1."""
        return self.n << self.grid_bits

    def guesses(self, hypothesis: Hypothesis) -> Ints:
        """Return the hypothesis's answers in grid units, rounded, in [0, n 2^K]: public.

        Raises
        ------
        InvalidParameterError
            If they are not one finite number a query: a score would wrap around, and one record move it far.
        """
        values = np.array(hypothesis.evaluate_many(self.queries), np.float64)
        if values.shape != (len(self.queries),) or not np.isfinite(values).all():
            raise InvalidParameterError(
                "hypothesis must evaluate to one finite number a query, got others; mend the update rule."
            )
        return np.rint(np.clip(values, 0.0, 1.0) * float(self.units)).astype(np.int64)

    def exact(self, data: PrivateData) -> Ints:
        """Return the exact answers in grid units, (m,) int64. PRIVATE."""
        shifts = np.array([self.grid_bits - query.grid_bits for query in self.queries])
        return np.asarray(data.exact_counts_many(self.queries) << shifts)


@final
@attrs.frozen(eq=False)
class Run:
    """How a construction went: the last hypothesis and every released number.

    Attributes
    ----------
    hypothesis : Hypothesis
    measurements : tuple of Measurement
    gaps : tuple of int
        |v - f(D)|, grid units; of a table none.
    stopped : bool
    """

    hypothesis: Hypothesis
    measurements: tuple[Measurement, ...]
    gaps: tuple[int, ...]
    stopped: bool


def construct(
    data: PrivateData,
    budget: Budget,
    noise: Noise,
    workload: Workload,
    plan: Rounds,
    update: Rule,
    start: Hypothesis,
    alpha: float,
    *,
    stop: int = 0,
    tables: PartitionRule | None = None,
    observe: Callable[[int, Hypothesis], None] | None = None,
) -> Run:
    """Run the rounds on the private table: Algorithm 8 with `stop`, MWEM without.

    Parameters
    ----------
    alpha : float
        Gap that an update may rely on.
    stop : int
        A noisy gap below it ends the construction, grid units.
    tables : PartitionRule, optional
        Release the table of a chosen query in the place of its number; the plan is for tables then.
    observe : (round, hypothesis) -> None, optional
        Called before each round with the hypothesis that it chooses against.

    Raises
    ------
    InvalidParameterError
        If `start` does not evaluate to one finite number a query; nothing was spent.
    SessionSealedError
        If anything fails after the data were read.
    """
    first = workload.guesses(start)

    def private() -> Run:
        guesses = first
        held, hypothesis = _Held(data, workload, plan, noise), start
        measurements: list[Measurement] = []
        gaps: list[int] = []
        pairs: Pairs = frozenset()
        for number in range(plan.rounds):
            if observe is not None:
                observe(number, hypothesis)
            if number > 0:
                guesses = workload.guesses(hypothesis)
            index = held.choose(guesses)
            table = None if tables is None else tables.partition(workload.queries[index], pairs)
            if table is not None:
                measurements.append(_table(data, plan, table, noise, workload.n))
                pairs |= pairs_of(table)
            else:
                value = held.number(index) if tables is None else held.number_for_table(index)
                # tables' scale is in counts, whatever the grid of the number that stands in for one
                scale = plan.deviation / (workload.units if tables is None else workload.n)
                fraction = np.array([value / workload.units])
                measurements.append(Measurement(workload.queries[index], fraction, scale))
                gaps.append(abs(value - int(guesses[index])))
                # the test reads the released value alone, so it is free: post-processing
                if gaps[-1] < stop:
                    return Run(hypothesis, tuple(measurements), tuple(gaps), True)
            hypothesis = update.update(hypothesis, tuple(measurements), alpha)
        return Run(hypothesis, tuple(measurements), tuple(gaps), False)

    return released(data, budget, noise, private)


def finished(
    run: Run,
    hypothesis: Hypothesis,
    workload: Workload,
    plan: Rounds,
    budget: Budget,
    noise: Noise,
    *,
    alpha: float = math.inf,
    error_bound: float = math.inf,
    beta: float,
) -> Construction:
    """Return what is released of a run."""
    return Construction(
        hypothesis=hypothesis,
        measurements=run.measurements,
        gaps=tuple(gap / workload.units for gap in run.gaps),
        stopped=run.stopped,
        alpha=alpha,
        error_bound=min(alpha, error_bound),
        beta=beta,
        grid_bits=session_grid_bits(workload.n),
        plan=plan,
        budget=budget,
        private=is_private(noise),
    )


@final
class _Held:
    """The exact answers, PRIVATE: an object, so that no frame that calls a rule shows a number."""

    __slots__ = ("_exact", "_noise", "_plan", "_workload")

    def __init__(self, data: PrivateData, workload: Workload, plan: Rounds, noise: Noise) -> None:
        self._workload, self._plan, self._noise = workload, plan, noise
        self._exact = workload.exact(data)

    def choose(self, guesses: Ints) -> int:
        """Return the place of a badly answered query."""
        return self._plan.choose(np.abs(self._exact - guesses), self._noise)

    def number(self, index: int) -> int:
        """Return a noisy answer, grid units."""
        return int(self._plan.answer(self._exact[index : index + 1], self._noise)[0])

    def number_for_table(self, index: int) -> int:
        """Return a noisy answer, grid units, with noise in counts, on the finest grid that can be drawn on.

        Rounded to units of 2^-j a sum still moves by 2^j at most, one count, since it moved by one count.
        """
        shift = self._plan.finest(self._workload.grid_bits)
        coarser = self._workload.grid_bits - shift
        rounded = (self._exact[index : index + 1] + (1 << coarser >> 1)) >> coarser
        return int(self._plan.answer(rounded, self._noise, shift)[0]) << coarser


def _table(data: PrivateData, plan: Rounds, table: Partition, noise: Noise, n: int) -> Measurement:
    """Release all block counts of a partition."""
    return Measurement(table, plan.answer(data.exact_counts(table), noise) / n, plan.deviation / n)


Distinguisher = Literal["noisy max", "exponential"]


LARGEST_EPSILON = 20.0  # of one choice


LARGEST_SIGMA = 2**26


LARGEST_SCALE = 2**48 - 1


HALF = Fraction(1, 2)


def paid_rounds(
    budget: Budget,
    rounds: int,
    composition: Composition,
    *,
    sensitivity: int = 1,
    distinguisher: Distinguisher | None = None,
    choice_share: Fraction = HALF,
    tables: bool = False,
) -> Rounds:
    """Return so many rounds at this budget, divided evenly, and each between choice and answer.

    Parameters
    ----------
    budget : Budget
        With delta > 0 unless the composition is basic.
    rounds : int, >= 1
    composition : "basic", "advanced" or "zcdp"
    sensitivity : int, >= 1
        Of the queries, grid units: of scores and of numbers.
    distinguisher : "noisy max" or "exponential", optional
        None: `NoisyMax`, and under zcdp `ExponentialMechanism`, whose epsilon^2/8 no bound that we know of
        noisy maxima matches (epsilon^2/2).
    choice_share : Fraction, in (0, 1)
        Of a round's price; advanced composition divides it in halves.
    tables : bool
        Answers are block counts: a record moves two of them by one count each, whatever the grid. A number
        in the place of a table, with the same noise in counts, costs half as much at most.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range, or the noise leaves the range of the samplers.
    """
    rounds = checked_integer("rounds", rounds, at_least=1)
    sensitivity = checked_integer("sensitivity", sensitivity, at_least=1)  # a numpy integer could overflow
    if composition != "basic" and budget.pure:
        raise InvalidParameterError(f"delta must be > 0 for {composition} composition, got delta=0.")
    exponential = distinguisher == "exponential" or (distinguisher is None and composition == "zcdp")
    mechanism = ExponentialMechanism if exponential else NoisyMax
    if composition == "zcdp":
        capacity = Fraction(zcdp_rho(budget.epsilon, budget.delta))
        if capacity <= 0:
            raise InvalidParameterError(
                f"epsilon must be larger for zcdp composition at delta={budget.delta}, got "
                f'epsilon={budget.epsilon}, at which no order has any capacity; use "basic".'
            )
        share = capacity / rounds
        square = 8 if exponential else 2  # epsilon^2/8 or epsilon^2/2
        epsilon = _root_down(share * choice_share * square)
        spent = Fraction(epsilon) ** 2 / square
        squared = 2 if tables else sensitivity**2  # L2 sensitivity
        sigma = Fraction(_root_up(squared / (2 * (share - spent))))
        if sigma > LARGEST_SIGMA:
            raise InvalidParameterError(
                f"rounds must leave sigma <= 2^26 grid units, got rounds={rounds} with sigma={int(sigma)}; "
                "take fewer, or coarser weights."
            )
        price = spent + squared / (2 * sigma**2)
        return Rounds(rounds, composition, mechanism(epsilon, sensitivity), sigma, price, capacity)
    if composition == "advanced":
        epsilon = advanced_share(budget.epsilon, budget.delta, 2 * rounds)
        share = 2 * Fraction(epsilon)
        capacity = rounds * share
    else:
        capacity = budget.epsilon_exact
        share = capacity / rounds
        epsilon = min(LARGEST_EPSILON, float_down(share * choice_share))
    summed = 2 if tables else sensitivity  # L1 sensitivity
    scale = scale_at_least(summed / (share - Fraction(epsilon)))
    price = Fraction(epsilon) + summed / scale
    return Rounds(rounds, composition, mechanism(epsilon, sensitivity), scale, price, capacity)


def _root_down(square: Fraction) -> float:
    """Largest float near sqrt(square) with root^2 <= square, at most what one choice may cost."""
    root = min(math.sqrt(square), LARGEST_EPSILON)
    while Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root


def _root_up(square: Fraction) -> int:
    """Least integer root >= 1 with root^2 >= square."""
    return math.isqrt(math.ceil(square) - 1) + 1
