"""`ExponentialSparse`: pure differential privacy from one kept threshold and one-sided noises.

Proof: docs/theory/accuracy.md, 6.4, 6.4a; docs/theory/sparse.md, 5.1.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.errors import (
    InternalError,
    InvalidParameterError,
    InvalidQueryError,
    checked_integer,
    checked_ratio,
    checked_real,
    set_fields,
)
from onlineic.noise.laws import DiscreteLaplace, Geometric, checked_tail
from onlineic.noise.sources import RATIO_LIMIT, Noise, scale_at_least
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.sparse.base import (
    Asked,
    Hit,
    NumericSparse,
    SparseState,
    check_measurable,
    checked_grid,
    first_reaching,
)
from onlineic.sparse.calibration import hits_paid

FALSE_HITS = 0.05  # tolerated false hits for each planned true one


@final
@attrs.frozen
class ExponentialSparse(NumericSparse):
    """Hard iff v + nu >= T + rho, first for v = gap, then for v = -gap; rho >= 0 is kept for the whole run.

    rho ~ Geo(b1) once, nu ~ Geo(b2) for each test, P(Geo(b) >= j) = e^(-j/b). A hit releases its side and
    the free gap y = v + nu - T - rho >= 0, from which the number is made; with `number_scale` a fresh
    discrete Laplace answer instead, a number or a whole partition. Theorem: the loss is at most

        D/b1 for the run + (D + Delta)/b2 for each hit + L1/lambda for each fresh answer,

    D = 2^grid_bits, Delta the sensitivity of the query, L1 that of the fresh answer, for any number of
    adaptive tests: pointwise, so charges simply add up to epsilon (theory 5.1).

    Dwork & Roth (2014), Algorithm 3 with delta = 0, one threshold for all hits as in Lyu, Su & Li (2017),
    Algorithm 7, and one-sided instead of Laplace noise.

    Args:
        n: Number of records, public.
        threshold: T, units 1/(n 2^grid_bits); ties are hits.
        threshold_scale, query_scale: b1 and b2, same units.
        grid_bits: K, the session's grid; 0 if only 0/1 queries are asked.
        number_scale: lambda of a fresh answer of L1 sensitivity 1 count, counts; a partition's has twice
            that. None: numbers are made of free gaps, and partitions are refused. A free gap cannot unmask a
            false hit, whose nu has no memory: its error bound reaches beyond the threshold.
        neighbours: The tables between which it is private.
    """

    n: int
    epsilon: float
    threshold: int
    threshold_scale: Fraction
    query_scale: Fraction
    grid_bits: int = 0
    number_scale: Fraction | None = None
    neighbours: Neighbours = attrs.field(
        default=REPLACE_ONE, kw_only=True, repr=False, metadata={"later": True}
    )

    def __attrs_post_init__(self) -> None:
        budget = Budget(self.epsilon, allow_large_epsilon=True)
        set_fields(
            self,
            epsilon=budget.epsilon,  # Python numbers: those of numpy wrap around
            # no gap plus noise comes near 2^62, and sums with it stay inside 64 bits
            threshold=checked_integer("threshold", self.threshold, at_least=1, at_most=2**62),
            **checked_grid(self.n, self.grid_bits),
            threshold_scale=_checked_scale("threshold_scale", self.threshold_scale),
            query_scale=_checked_scale("query_scale", self.query_scale),
        )
        if self.number_scale is not None:
            set_fields(self, number_scale=_checked_scale("number_scale", self.number_scale, self._most_fresh))

    @classmethod
    def _calibrated(
        cls,
        asked: Asked,
        *,
        false_hits: float | None = None,
        fresh: bool = False,
        answer_share: Fraction = Fraction(1, 3),
        reserved: Fraction = Fraction(0),
        restarts: int = 0,
    ) -> "ExponentialSparse":
        plan = asked(usual=FALSE_HITS, false_hits=false_hits, reserved=reserved, restarts=restarts)
        answer_share = checked_ratio("answer_share", answer_share if fresh else 0, at_least=0.0, below=1.0)
        count, runs, unit = plan.paid, 1 + plan.restarts, 1 << plan.grid_bits
        epsilon = Fraction(plan.budget.epsilon) * (1 - plan.reserved)
        left = epsilon * (1 - answer_share)
        tested = plan.budget.neighbours.any_gap(unit)
        # exact from here on: the hits take what the thresholds, rounded up, leave
        threshold_scale = scale_at_least(Fraction(exponential_scales(count, float(left), runs)[0]) * tested)
        query_scale = scale_at_least(2 * count * tested / (left - runs * tested / threshold_scale))
        b1, b2 = float(threshold_scale), float(query_scale)

        def height(part: float, of: float) -> float:  # each query is tested on both sides
            return b2 * math.log(2.0 * plan.max_queries * b2 / ((b1 + b2) * part * of))

        return cls(
            n=plan.n,
            epsilon=plan.budget.epsilon,
            threshold=max(1, math.ceil(plan.level(unit, height, share=0.95))),
            threshold_scale=threshold_scale,
            query_scale=query_scale,
            grid_bits=plan.grid_bits,
            number_scale=scale_at_least(count / (epsilon * answer_share)) if answer_share else None,
            neighbours=plan.budget.neighbours,
        )

    def stretched(self, cheaper: Fraction) -> "ExponentialSparse":
        """Return b2, lambda and T times `cheaper`: b1 is that of the run, whose threshold noise stays."""
        cheaper = checked_ratio("cheaper", cheaper, at_least=1.0)
        number: Fraction | int = (self.number_scale or 0) * self._most_fresh / Fraction(2)  # twice is drawn
        most = Fraction(2**46) / max(self.query_scale, number, self.threshold)
        factor = max(Fraction(1), min(cheaper, most))
        return attrs.evolve(
            self,
            threshold=math.ceil(self.threshold * factor),
            query_scale=scale_at_least(self.query_scale * factor),
            number_scale=None if self.number_scale is None else scale_at_least(self.number_scale * factor),
        )

    def account(self) -> Filter:
        return Filter(Fraction(self.epsilon), "epsilon")

    def start_charge(self) -> Charge | None:
        return Charge(self.widest / self.threshold_scale, "threshold noise of one run")

    def unfinished(self, reserved: Fraction, start: Fraction) -> Fraction:
        return start  # the loss of easy answers is that of the threshold, of hits their own

    def price(self, target: Query | Partition) -> Charge:
        most = self.widest
        if isinstance(target, Partition):
            # the test is that of a 0/1 query or of the largest block gap
            table = self.neighbours.table_l1(1 << target.grid_bits) / self._fresh_scale(target)
            return Charge(2 * most / self.query_scale + table, "exponential test and Laplace partition")
        tested = self._tested(target)
        test = (most + tested) / self.query_scale
        if self.number_scale is None:
            return Charge(test, "exponential test with its free gap")
        return Charge(
            test + self.moved_by(target) / self._fresh_scale(target), "exponential test and Laplace number"
        )

    def step(
        self, state: SparseState, gap: int, sensitivity: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        gap = int(gap)  # of a narrow unsigned integer, -gap would be a large gap
        state, index, excess = self._first(state, (gap, -gap), sensitivity, noise)
        if excess is None:
            return state, None
        return state, Hit(side=-1 if index else 1, excess=excess)

    def step_many(
        self, state: SparseState, gaps: Ints, sensitivities: Ints, noise: Noise
    ) -> tuple[SparseState, int, Hit | None]:
        if len(gaps) == 0:
            return state, 0, None
        gaps = np.asarray(gaps, np.int64)
        values = np.stack([gaps, -gaps], axis=1).ravel()
        state, index, excess = self._first(state, values, int(sensitivities.max()), noise)
        if excess is None:
            return state, len(gaps), None
        return state, index // 2, Hit(side=-1 if index % 2 else 1, excess=excess)

    def step_table(
        self, state: SparseState, largest_gap: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        moved = self.neighbours.largest_gap(1 << self.grid_bits)
        state, _, excess = self._first(state, (largest_gap,), moved, noise)
        return state, None if excess is None else Hit(excess=excess)

    def measure(
        self, hit: Hit, target: Query | Partition, guess: int, counts: int | Ints, noise: Noise
    ) -> Measurement:
        check_measurable(target)
        if self._is_fresh(target):
            return super().measure(hit, target, guess, counts, noise)
        if hit.excess is None or hit.side == 0:
            raise InternalError("a number needs the side and the free gap of its hit.")
        gap = self.threshold + hit.excess - self._centre()
        unit = self.n << self.grid_bits
        values = np.array([guess / (self.n << target.grid_bits) + hit.side * gap / unit])
        return Measurement(target, values, self.noise_of(target))

    def noise_of(self, target: Query | Partition) -> float:
        if self._is_fresh(target):
            return super().noise_of(target)
        noises = Geometric(self.threshold_scale), Geometric(self.query_scale)
        return math.hypot(*(law.deviation for law in noises)) / (self.n << self.grid_bits)

    def easy_radius(self, beta: float, tests: int = 1) -> float:
        """Return (T + b1 ln(1/beta')) / (n 2^K), 1/beta' = min(tests P(rho >= nu), 1)/beta.

        An easy answer with gap beyond T + x needs rho - nu > x, and rho > x for all answers of a run.
        """
        beta, tests = checked_tail(beta, tests)
        odds = min(_weight(self.threshold_scale, self.query_scale) * tests, 1.0) / beta
        radius = self.threshold + float(self.threshold_scale) * max(0.0, math.log(odds))
        return radius * (1.0 + 1e-12) / (self.n << self.grid_bits)

    def hard_radius(
        self, target: Query | Partition, beta: float, answers: int = 1, tests: int | None = None
    ) -> float:
        """Return r: each value of `answers` hard answers is within r, given that they are hard, but for beta.

        A fresh answer has the discrete Laplace tail, whether hard or not; the error of a free gap is nu - rho
        less its mean, and hits choose the large nu (theory 6.4a). Of several answers among at most `tests`
        the upper tail is a union over the tests.
        """
        if self._is_fresh(target):
            return super().hard_radius(target, beta, answers)
        beta, answers = checked_tail(beta, answers)
        if tests is not None and answers > 1:  # one event for all of them, whatever their shares
            over = self._upper(tests, beta / 2.0)
        else:
            over = self.threshold + float(self.query_scale) * math.log(4.0 * answers / beta)
        under = float(self.threshold_scale) * math.log(2.0 / beta)
        error = max(over - self._centre(), under + self._centre())
        return error * (1.0 + 1e-12) / (self.n << self.grid_bits)

    def margins(self, max_queries: int, beta: float, hard_answers: int) -> tuple[float, float, float]:
        """Return the margins. Free gaps err only where a test would; fresh numbers take .1 beta."""
        beta, tests = checked_tail(beta, max_queries)
        cutoff = checked_integer("hard_answers", hard_answers, at_least=1)
        unit = self.n << self.grid_bits
        shared = beta if self.number_scale is None else 0.9 * beta
        hit = self._upper(tests, 0.95 * shared)
        miss = float(self.threshold_scale) * math.log(1.0 / (0.05 * shared))
        number = (max(hit - self._centre(), miss + self._centre()) + 1.0) / unit
        if self.number_scale is not None:
            law = DiscreteLaplace(self._number_scale(self.neighbours.number(0, 1)))
            number = (law.radius(0.1 * beta / cutoff) + 1.0) / self.n
        return (hit + 1.0) / unit, (miss + 1.0) / unit, number

    @property
    def releases_tables(self) -> bool:
        return self.number_scale is not None

    def _first(
        self, state: SparseState, values: Sequence[int] | Ints, sensitivity: int, noise: Noise
    ) -> tuple[SparseState, int, int | None]:
        """Index and free gap of the first value with v + nu >= T + rho; the threshold noise is kept."""
        if not 0 <= sensitivity <= self.widest:
            raise InternalError("the sensitivity of a query must be in [0, 2^grid_bits].")
        rho = state.threshold_noise
        if rho is None:
            rho = int(noise.geometric(self.threshold_scale, 1)[0])
        draw = partial(noise.geometric, self.query_scale)
        index, excess = first_reaching(values, self.threshold + rho, draw, noise)
        return SparseState(state.hits + (excess is not None), rho), index, excess

    def _number_scale(self, units: int) -> Fraction:
        if self.number_scale is None:
            raise InvalidQueryError(
                "target must be a query, because no share was planned for fresh answers, got a partition; "
                "calibrate with fresh=True."
            )
        return scale_at_least(self.number_scale * units)

    def _is_fresh(self, target: Query | Partition) -> bool:
        return self.number_scale is not None or isinstance(target, Partition)

    def _law(self, target: Query | Partition) -> DiscreteLaplace:
        return DiscreteLaplace(self._fresh_scale(target))

    def _fresh_scale(self, target: Query | Partition) -> Fraction:
        near, unit = self.neighbours, 1 << self.bits_of(target)
        return self._number_scale(
            near.table_l1(unit) if isinstance(target, Partition) else near.number(0, unit)
        )

    @property
    def _most_fresh(self) -> int:
        """The most that a neighbour moves a fresh answer in L1, grid units."""
        unit = 1 << self.grid_bits
        return max(self.neighbours.table_l1(unit), self.neighbours.number(0, unit))

    def _centre(self) -> float:
        """E nu - E rho."""
        return Geometric(self.query_scale).mean - Geometric(self.threshold_scale).mean

    def _upper(self, tests: int, beta: float) -> float:
        """Return x: over both sides of `tests` queries no nu - rho exceeds x, but with probability beta."""
        weight = _weight(self.query_scale, self.threshold_scale)
        return float(self.query_scale) * math.log(max(1.0, 2.0 * tests * weight / beta))


def _checked_scale(name: str, scale: object, factor: int = 1) -> Fraction:
    exact = checked_ratio(name, scale) if isinstance(scale, Fraction) else Fraction(0)
    if not 0 < exact * factor < RATIO_LIMIT:
        raise InvalidParameterError(
            f"{name} must be a Fraction in (0, 2^48) grid units, got a {type(scale).__name__}; "
            "round it up with scale_at_least, or lower grid_bits."
        )
    return exact


def _weight(own: Fraction, other: Fraction) -> float:
    """A of P(Z - Z' >= j) = A e^(-j/own), j >= 0, for geometric Z of scale own and Z' of scale other."""
    return math.expm1(-1.0 / other) / math.expm1(-1.0 / own - 1.0 / other)


def exponential_scales(count: int, epsilon: float, runs: int = 1) -> tuple[float, float]:
    """Return (b1, b2), counts: threshold and test scale with runs/b1 + 2 count/b2 = epsilon.

    Split runs^(2/3) : (2 count)^(2/3) between all thresholds and all hits: within 2 % of the best.

    Args:
        count: At least 1. c', hard answers that must be payable.
        epsilon: Above 0.
        runs: At least 1. Thresholds that must be payable.
    """
    count = checked_integer("count", count, at_least=1)
    epsilon = checked_real("epsilon", epsilon, above=0.0)
    runs = checked_integer("runs", runs, at_least=1)
    weight = (2.0 * count) ** (2.0 / 3.0) * runs ** (1.0 / 3.0)
    threshold_part = epsilon / (runs + weight)
    return 1.0 / threshold_part, 2.0 * count / (threshold_part * weight)


def exponential_resolution(hard_answers: int, max_queries: int, epsilon: float) -> float:
    """Return the same G of `ExponentialSparse`, counts.

    G = T + b1 ln(b1/((b1 + b2) .05)) with T = b2 ln(2 k b2/((b1 + b2) .05 c)), calibrated for
    ceil(1.05 c) hard answers.
    """
    hard_answers = checked_integer("hard_answers", hard_answers, at_least=1)
    count = hits_paid(hard_answers, FALSE_HITS)
    tests = checked_integer("max_queries", max_queries, at_least=1)
    b1, b2 = exponential_scales(count, epsilon)
    threshold = b2 * math.log(2.0 * tests * b2 / ((b1 + b2) * FALSE_HITS * hard_answers))
    missed = b1 / ((b1 + b2) * 0.05)  # P(rho - nu > x) = (b1/(b1 + b2)) e^(-x/b1)
    return threshold + (b1 * math.log(missed) if missed >= 1.0 else b2 * math.log(0.95 * (b1 + b2) / b2))
