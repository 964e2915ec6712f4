"""NumericSparse of the book, with Laplace noise and repaired constants.

Scales are exact rationals rounded up to what the sampler can draw. Units: one grid unit is 1/(n 2^grid_bits)
of a fraction, and a query has sensitivity at most 2^grid_bits of them.

Proof: docs/theory/accuracy.md, 6.4, 6.5; docs/theory/sparse.md, 5.3.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.accounting.rounding import float_up
from onlineic.bounds.sparse_vector import numeric_sparse_branch, numeric_sparse_scales, sparse_margin
from onlineic.errors import (
    InfeasibleAccuracyError,
    InternalError,
    InvalidParameterError,
    SessionExhaustedError,
    checked_integer,
    set_fields,
)
from onlineic.noise.laws import DiscreteLaplace, checked_tail
from onlineic.noise.sources import RATIO_LIMIT, Noise, scale_at_least
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query
from onlineic.sparse.above_threshold import first_above
from onlineic.sparse.base import SCALAR, Asked, Hit, NumericSparse, SparseState, checked_grid

FALSE_HITS = 0.2  # tolerated share of the hard answers that tests of right guesses may use up
SCALE_BITS = RATIO_LIMIT.bit_length() - 2  # scales in grid units stay below the samplers' limit


@final
@attrs.frozen
class LaplaceSparse(NumericSparse):
    """NumericSparse of the book: c epochs of AboveThreshold, each ended by a fresh Laplace number.

    Threshold noise Lap(s) drawn again after every hit, test noise Lap(2s), number Lap(s_num), with
    eps_svt : eps_num = 8 : 1 in both branches: s = 2c/eps_svt, s_num = c/eps_num (pure) or
    s = sqrt(32 c ln(2/delta))/eps_svt, s_num = sqrt(8 c ln(2/delta))/eps_num. The whole session is
    (epsilon, delta)-private for any number of adaptive queries. For teaching and comparison.

    Dwork & Roth (2014), Algorithm 3 and Theorems 3.27, 3.28, repaired (theory 5.3, 6.6).

    Args:
        n: Number of records, public.
        threshold: T, units 1/(n 2^grid_bits).
        cutoff: At least 1. c, the number of hard answers.
        grid_bits: K, the session's grid; 0 if only 0/1 queries are asked.
        pair: Test gap, and only if that does not fire, -gap (the book); otherwise |gap| once.
        branch: Which noise; "pure" is valid for every delta.
        neighbours: The tables between which it is private.
    """

    n: int
    epsilon: float
    threshold: int
    cutoff: int
    delta: float = 0.0
    grid_bits: int = 0
    pair: bool = False
    branch: Literal["pure", "repaired"] = "pure"
    neighbours: Neighbours = attrs.field(
        default=REPLACE_ONE, kw_only=True, repr=False, metadata={"later": True}
    )
    threshold_scale: Fraction = attrs.field(init=False)
    query_scale: Fraction = attrs.field(init=False)
    number_scale: Fraction = attrs.field(init=False)  # counts times the query's own 2^k
    _price: Charge = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        budget = Budget(self.epsilon, self.delta, allow_large_epsilon=True)  # a session checks its own
        set_fields(
            self,
            epsilon=budget.epsilon,  # Python numbers: those of numpy wrap around
            delta=budget.delta,
            # no gap plus noise comes near 2^62, and sums with it stay inside 64 bits
            threshold=checked_integer("threshold", self.threshold, at_least=1, at_most=2**62),
            cutoff=checked_integer("cutoff", self.cutoff, at_least=1),
            **checked_grid(self.n, self.grid_bits),
        )
        counts = numeric_sparse_scales(self.cutoff, self.epsilon, self.delta, self.branch)
        share = Fraction(self.epsilon) / self.cutoff
        set_fields(
            self,
            threshold_scale=scale_at_least(counts.threshold * self.widest),
            query_scale=scale_at_least(counts.query * self.widest),
            number_scale=counts.number,
            _price=Charge(share, "one epoch of AboveThreshold and its number", "shares"),
        )

    @classmethod
    def _calibrated(cls, asked: Asked, *, pair: bool = False, restarts: int = 0) -> "LaplaceSparse":
        plan = asked(usual=FALSE_HITS, restarts=restarts, below=math.inf)
        plan = attrs.evolve(plan, hard_answers=plan.hard_answers + plan.restarts)  # an epoch each
        cutoff, budget, near = plan.hard_answers, plan.budget, plan.budget.neighbours
        branch = numeric_sparse_branch(cutoff, budget.delta)
        try:
            scales = numeric_sparse_scales(cutoff, budget.epsilon, budget.delta, branch)
        except InvalidParameterError:  # Corollary 3.21 fails at a large epsilon: pure noise always holds
            branch = "pure"
            scales = numeric_sparse_scales(cutoff, budget.epsilon, budget.delta, branch)
        tested, fresh = near.any_gap(), max(near.table_l1(), near.number(0, 1))
        room = SCALE_BITS - math.ceil(math.log2(fresh * float(scales.number)))
        if room < 0:
            raise InfeasibleAccuracyError(
                f"epsilon must be larger for {cutoff} hard answers, got epsilon={budget.epsilon}: the "
                f"noise would have scale {float(scales.number):.3g} records."
            )
        bits = min(plan.grid_bits, room, max(0, 53 - plan.n.bit_length()))
        tests, unit = plan.max_queries * (1 + pair), 1 << bits

        def height(part: float, of: float) -> float:
            if plan.alpha is None:  # on average: P(nu - rho >= T) <= (2/3) e^(-T/2s)
                odds = math.log(2.0 * tests / (3.0 * part * of))
                return unit * (2.0 * tested * float(scales.threshold) * odds)
            first, second = (scale_at_least(tested * unit * one) for one in (scales.threshold, scales.query))
            return _margin(cutoff, tests, first, second, part * of)

        return cls(
            n=plan.n,
            epsilon=budget.epsilon,
            delta=budget.delta,
            # one unit more, so that a hit in the good event has a gap STRICTLY above alpha on the grid
            threshold=math.ceil(plan.level(unit, height, share=0.9, slack=0.0)) + 1,
            cutoff=cutoff,
            grid_bits=bits,
            pair=pair,
            branch=branch,
            neighbours=near,
        )

    def account(self) -> Filter:
        return Filter(Fraction(self.epsilon), "shares")  # of epsilon, one of c equal ones a hard answer

    def start_charge(self) -> Charge | None:
        return None

    def restart_price(self) -> Fraction:
        return self._price.amount  # an epoch that ended without a hit costs as much as one with a hit

    def price(self, target: Query | Partition) -> Charge:
        return self._price

    def step(
        self, state: SparseState, gap: int, sensitivity: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        state, _, hit = self._test(state, [gap], sensitivity, noise)
        return state, hit

    def step_many(
        self, state: SparseState, gaps: Ints, sensitivities: Ints, noise: Noise
    ) -> tuple[SparseState, int, Hit | None]:
        return self._test(state, gaps, int(sensitivities.max(initial=0)), noise)

    def _test(
        self, state: SparseState, gaps: Sequence[int] | Ints, sensitivity: int, noise: Noise
    ) -> tuple[SparseState, int, Hit | None]:
        if sensitivity > self.widest:
            raise InternalError("the sensitivity of a query must be at most 2^grid_bits.")
        values: Sequence[int] | Ints
        # wide integers: of a narrow one, -gap could be a large gap
        if len(gaps) > SCALAR:
            wide = np.asarray(gaps, np.int64)
            values = np.stack([wide, -wide], axis=1).ravel() if self.pair else np.abs(wide)
        else:
            gaps = list(map(int, gaps))
            # the pair f(x) - f(D), f(D) - f(x) of the book, in this order; the second if the first is below
            values = [part for gap in gaps for part in ((gap, -gap) if self.pair else (abs(gap),))]
        state, index = self._first(state, values, noise)
        if index == len(values):
            return state, len(gaps), None
        if self.pair:
            return state, index // 2, Hit(side=-1 if index % 2 else 1)
        return state, index, Hit()

    def step_table(
        self, state: SparseState, largest_gap: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        state, index = self._first(state, [largest_gap], noise)
        return state, None if index else Hit()

    def _first(
        self, state: SparseState, values: Sequence[int] | Ints, noise: Noise
    ) -> tuple[SparseState, int]:
        """Index of the first value above, or their number."""
        if state.hits >= self.cutoff:
            raise SessionExhaustedError(f"LaplaceSparse must not be asked after its {self.cutoff} hits.")
        return first_above(state, values, self.threshold, self.threshold_scale, self.query_scale, noise)

    def _law(self, target: Query | Partition) -> DiscreteLaplace:
        near, unit = self.neighbours, 1 << self.bits_of(target)
        moved = near.table_l1(unit) if isinstance(target, Partition) else near.number(0, unit)
        return DiscreteLaplace(scale_at_least(self.number_scale * moved))

    def easy_radius(self, beta: float, tests: int = 1) -> float:
        beta, tests = checked_tail(beta, tests)
        tests *= 1 + self.pair
        margin = _margin(self.cutoff, tests, self.threshold_scale, self.query_scale, beta)
        return (self.threshold + margin + 1) / (self.n << self.grid_bits)

    def margins(self, max_queries: int, beta: float, hard_answers: int) -> tuple[float, float, float]:
        """Return the margins: of .9 beta for both sides of tests, one event, and .1 for numbers."""
        beta, max_queries = checked_tail(beta, max_queries)
        hard_answers = checked_integer("hard_answers", hard_answers, at_least=1)
        unit = self.n << self.grid_bits
        tests = max_queries * (1 + self.pair)
        margin = _margin(self.cutoff, tests, self.threshold_scale, self.query_scale, 0.9 * beta)
        units = [1 << bits for bits in range(self.grid_bits + 1)]  # of a query's own grid, whichever it is
        moved = self.neighbours.number
        scale = max(scale_at_least(self.number_scale * moved(0, own)) / own for own in units)
        number = float_up(scale) * math.log(hard_answers / (0.1 * beta))
        return (margin + 1.0) / unit, (margin + 1.0) / unit, (number + 1.0) / self.n


def _margin(cutoff: int, tests: int, threshold_scale: Fraction, query_scale: Fraction, beta: float) -> float:
    """Return q ln(k Gamma(1 - r) (c + 1/2)^r/(2 beta)), r = s/q: `sparse_margin` of the noise that is drawn.

    s and q are rounded up each by itself, so that r is a little off the 1/2 of `sparse_margin`, and twice the
    threshold scale can be less than the query scale. With half a unit more for each noise on the integers the
    bound of theory 6.5 holds for 1/4 <= r < 1; r = 1 has noise below any unit, and its own union bound.
    """
    if query_scale == 2 * threshold_scale:
        return sparse_margin(cutoff, tests, float(threshold_scale), beta)
    ratio = float_up(threshold_scale / query_scale)
    if ratio >= 1.0:
        threshold, query = DiscreteLaplace(threshold_scale), DiscreteLaplace(query_scale)
        return float(threshold.radius(beta / (2 * cutoff)) + query.radius(beta / tests))
    logs = math.log(tests * math.gamma(1.0 - ratio) / (2.0 * beta)) + ratio * math.log(cutoff + 0.5)
    return float_up(query_scale) * logs * (1.0 + 1e-12)
