"""`GumbelSparse`: fresh Gumbel noise per test, no threshold noise; easy answers are free, a hit is paid.

The planning below the class predicts scales in floats and counts. It decides nothing about privacy: the class
rounds every scale up and prices it exactly.

Proof: docs/theory/accuracy.md, 6.1, 6.4; docs/theory/noise.md, 3.5; docs/theory/sparse.md, 3.2, 3.3.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.accounting.renyi import gumbel_charge, renyi_capacity
from onlineic.errors import (
    InfeasibleAccuracyError,
    InternalError,
    InvalidParameterError,
    checked_integer,
    checked_ratio,
    checked_real,
    set_fields,
)
from onlineic.noise.gumbel import SCALE_LIMIT, fires_exactly, fires_one, screen
from onlineic.noise.laws import DiscreteGaussian, checked_tail, normal_quantile
from onlineic.noise.sources import SIGMA_LIMIT, Noise, scale_at_least
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query
from onlineic.sparse.base import Asked, Hit, NumericSparse, SparseState, checked_grid
from onlineic.sparse.calibration import Calibration, hits_paid

STEEPEST = 26  # largest T/b: then the rare slow path of a test tells nothing beyond its label
LEAST_GRID = 8  # fewer bits would round weights too coarsely
FALSE_HITS = 0.2  # tolerated false hits for each planned true one
RATIO = Fraction(2)  # sigma / b: the fresh answer then costs 8 % of b


@final
@attrs.frozen
class GumbelSparse(NumericSparse):
    """Hard iff |gap| + b G >= T with fresh Gumbel G; a hit is charged, an easy answer is free.

    P(easy) = exp(-A), A = e^((|gap| - T)/b): between neighbours A moves by at most a factor e^eta with
    eta = Delta/b. A hit releases counts + N_Z(0, sigma^2), a fresh discrete Gaussian, and is charged

        charge = -eta - ln(1 - x)/(a - 1) + a L/(2 sigma^2),   x = (a - 1)(e^eta - 1) < 1,

    to a Renyi filter of the one order a, fixed here, of capacity
    R = epsilon - ln(1 - 1/a) + (ln delta + ln a)/(a - 1). Theorem: if a test is asked only while
    spent + its charge <= R, the whole interaction, however long and adaptive, is (a, R)-Renyi private for
    its neighbours and hence (epsilon, delta)-differentially private (theory 3.2, 3.3).

    Instances of the same order may share one filter, query by query.

    Replaces Algorithm 3 of Dwork & Roth (2014): no threshold noise, Gumbel test noise of maximum type, and
    a Renyi filter (Feldman & Zrnic 2021) of fixed order for Theorem 3.27. Conversion to (epsilon, delta):
    Canonne, Kamath & Steinke (2020), Proposition 12.

    Args:
        n: Number of records, public.
        epsilon, delta: delta > 0.
        order: Above 1. a, fixed before the session.
        scale: b, units 1/(n 2^grid_bits), with x < 1 at the sensitivity of one record.
        threshold: In [1, 26 b]. T, same units; ties are hits.
        grid_bits: K, the session's grid; 0 if only 0/1 queries are asked.
        ratio: Above 0. sigma / b; sigma is rounded up to whole units of the target's own grid.
        neighbours: The tables between which it is private.
    """

    n: int
    epsilon: float
    delta: float
    order: Fraction
    scale: Fraction
    threshold: int
    grid_bits: int = 0
    ratio: Fraction = RATIO
    neighbours: Neighbours = attrs.field(
        default=REPLACE_ONE, kw_only=True, repr=False, metadata={"later": True}
    )
    capacity: int = attrs.field(init=False)  # R in ticks of 2^-40

    def __attrs_post_init__(self) -> None:
        budget = Budget(self.epsilon, self.delta, allow_large_epsilon=True)
        _refuse_pure(budget)
        set_fields(
            self,
            epsilon=budget.epsilon,  # Python numbers: those of numpy wrap around
            delta=budget.delta,
            **checked_grid(self.n, self.grid_bits),
        )
        for name in ("order", "scale", "ratio"):
            value = getattr(self, name)
            if not isinstance(value, Fraction) or value <= 0:
                raise InvalidParameterError(f"{name} must be a Fraction > 0, got a {type(value).__name__}.")
            set_fields(self, **{name: checked_ratio(name, value)})
        if max(self.scale.numerator, self.scale.denominator) >= SCALE_LIMIT:
            raise InvalidParameterError(
                "scale must have numerator and denominator below 2^46, got one beyond; "
                "round it up with scale_at_least or lower grid_bits."
            )
        most = math.floor(STEEPEST * self.scale)
        level = checked_integer(
            "threshold", self.threshold, at_least=1, at_most=most, remedy="raise the scale"
        )
        if self.sigma(self.grid_bits) > SIGMA_LIMIT:
            raise InvalidParameterError(
                f"ratio * scale must be <= 2^26, got {float(self.ratio * self.scale):.4g}; lower grid_bits."
            )
        set_fields(self, threshold=level, capacity=renyi_capacity(self.order, self.epsilon, self.delta))
        whole = self.neighbours.number(0, 1 << self.grid_bits)
        self._ticks(self.widest, self.grid_bits, whole**2)  # refuses x >= 1

    @classmethod
    def _calibrated(
        cls,
        asked: Asked,
        *,
        false_hits: float | None = None,
        ratio: Fraction = RATIO,
        partition: bool = False,
        reserved: Fraction = Fraction(0),
    ) -> "GumbelSparse":
        plan = asked(usual=FALSE_HITS, false_hits=false_hits, reserved=reserved)
        budget, count, share = plan.budget, plan.paid, float(plan.reserved)
        ratio = checked_ratio("ratio", ratio, above=0.0)
        _refuse_pure(budget)
        near, told = budget.neighbours, (budget.epsilon, budget.delta)
        # scales are solved for a test that moves by one count: b, and the noise of answers, are as many times
        tested = near.any_gap()
        squared = max(near.number(0, 1) ** 2, partition * near.table_squared()) / tested**2
        if budget.order is not None:  # that of the total which it draws on
            order = budget.order
        else:
            _, best = gumbel_scale(
                count, *told, ratio=float(ratio), squared_sensitivity=squared, reserved=share
            )
            order = Fraction(max(65, round(64 * best)), 64)
        less, fresh = np.array([float(order) - 1.0]), squared / float(ratio) ** 2
        least = tested * float(_least_scales(less, count, *told, fresh, share)[0])
        if not math.isfinite(least):
            raise InfeasibleAccuracyError(
                f"order must leave a capacity at {budget}, got order={float(order):g}; take a larger share."
            )
        wide = _least_for_threshold(plan)
        if wide > least:  # tests become cheaper than planned: the answers take what is left
            least = wide
            finest = ratio_at_scale(float(order), least / tested, count, *told, squared, share)
            ratio = min(ratio, Fraction(math.ceil(finest * 2**20), 2**20))
        bits = _grid_bits(plan.n, least, float(ratio), plan.grid_bits)
        payable = (1 - plan.reserved) * renyi_capacity(order, *told)
        scale, step = scale_at_least(Fraction(least) * (1 << bits)), 1
        while not _payable(order, scale, bits, ratio, partition, near, payable / count):
            scale = scale_at_least(scale + (Fraction(step, 2**16) if scale < 2**16 else step))
            step *= 2

        def height(part: float, of: float) -> float:
            # of a gap asked for it is below the end anyway: `_least_for_threshold`
            return min(float(scale) * math.log(plan.max_queries / (part * of)), math.floor(STEEPEST * scale))

        return cls(
            n=plan.n,
            epsilon=budget.epsilon,
            delta=budget.delta,
            order=order,
            scale=scale,
            threshold=max(1, math.ceil(plan.level(1 << bits, height, share=0.8))),
            grid_bits=bits,
            ratio=ratio,
            neighbours=near,
        )

    def sigma(self, grid_bits: int) -> int:
        """Scale of the fresh answer in units 1/(n 2^grid_bits), rounded up."""
        bits = checked_integer("grid_bits", grid_bits, at_least=0)
        return sigma_at_least(self.ratio * self.scale, self.grid_bits, bits)

    def stretched(self, cheaper: Fraction) -> "GumbelSparse":
        """Return b, sigma and T times the square root of `cheaper`, as far as sigma can be drawn."""
        cheaper = checked_ratio("cheaper", cheaper, at_least=1.0)
        most = min(
            Fraction(SIGMA_LIMIT - 1) / (self.ratio * self.scale), Fraction(SCALE_LIMIT >> 17) / self.scale
        )
        factor = max(Fraction(1), min(Fraction(math.sqrt(cheaper)), most))
        scale = scale_at_least(self.scale * factor)
        level = min(math.ceil(self.threshold * factor), math.floor(STEEPEST * scale))
        return attrs.evolve(self, scale=scale, threshold=level)

    def account(self) -> Filter:
        return Filter(Fraction(self.capacity), "ticks", self.order)

    def start_charge(self) -> Charge | None:
        return None

    def price(self, target: Query | Partition) -> Charge:
        if isinstance(target, Partition):
            # the test is that of a 0/1 query or of the largest block gap
            table = self.neighbours.table_squared(1 << target.grid_bits)
            ticks = self._ticks(self.widest, target.grid_bits, table)
            return Charge(Fraction(ticks), "Gumbel test and Gaussian partition", "ticks", self.order)
        ticks = self._ticks(self._tested(target), self.bits_of(target), self.moved_by(target) ** 2)
        return Charge(Fraction(ticks), "Gumbel test and Gaussian number", "ticks", self.order)

    def step(
        self, state: SparseState, gap: int, sensitivity: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        self._check_sensitivity(sensitivity, sensitivity)
        word = noise.next_word()
        if not fires_one(word, abs(int(gap)) - self.threshold, self.scale, noise.next_word):
            return state, None
        return _hit(state)

    def step_many(
        self, state: SparseState, gaps: Ints, sensitivities: Ints, noise: Noise
    ) -> tuple[SparseState, int, Hit | None]:
        if len(gaps) == 0:
            return state, 0, None
        self._check_sensitivity(int(sensitivities.min()), int(sensitivities.max()))
        excesses = np.abs(np.asarray(gaps, np.int64)) - self.threshold
        start = 0
        while start < len(excesses):
            since = noise.calls
            words = noise.words(len(excesses) - start)
            verdicts = screen(words, excesses[start:], self.scale)
            open_lanes = np.flatnonzero(verdicts)
            if len(open_lanes) == 0:
                break
            lane = int(open_lanes[0])
            noise.unread(len(words) - 1 - lane, since)  # after it: never looked at
            start += lane
            if verdicts[lane] > 0 or fires_exactly(
                int(words[lane]), int(excesses[start]), self.scale, noise.next_word
            ):
                state, hit = _hit(state)
                return state, start, hit
            start += 1
        return state, len(excesses), None

    def step_table(
        self, state: SparseState, largest_gap: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        return self.step(state, largest_gap, self.neighbours.largest_gap(1 << self.grid_bits), noise)

    def easy_radius(self, beta: float, tests: int = 1) -> float:
        """Return (T + b ln ln(tests/beta)) / (n 2^K): P(easy and |gap| > T + t b) <= exp(-e^t)."""
        beta, tests = checked_tail(beta, tests)
        radius = self.threshold + float(self.scale) * math.log(math.log(tests / beta))
        return max(0.0, radius) * (1.0 + 1e-12) / (self.n << self.grid_bits)

    def margins(self, max_queries: int, beta: float, hard_answers: int) -> tuple[float, float, float]:
        """Return the margins, of shares .8, .1 and .1 of beta."""
        beta, tests = checked_tail(beta, max_queries)
        scale, unit = float(self.scale), self.n << self.grid_bits
        number = normal_quantile(0.1 * beta / (2 * checked_integer("hard_answers", hard_answers, at_least=1)))
        sigma = self.sigma(0) / self.n  # coarser grids round sigma up further
        return (
            (scale * math.log(tests / (0.8 * beta)) + 1.0) / unit,
            (scale * math.log(math.log(tests / (0.1 * beta))) + 1.0) / unit,
            sigma * number + 1.0 / self.n,
        )

    def _law(self, target: Query | Partition) -> DiscreteGaussian:
        return DiscreteGaussian(self.sigma(self.bits_of(target)))

    def _ticks(self, sensitivity: int, grid_bits: int, squared: int) -> int:
        """Price of a test (session units) with an answer on its own grid."""
        return gumbel_charge(self.order, sensitivity, self.scale, Fraction(self.sigma(grid_bits)), squared)

    def _check_sensitivity(self, least: int, most: int) -> None:
        if least < 0 or most > self.widest:
            raise InternalError("the sensitivity of a query must be in [0, 2^grid_bits].")


def _hit(state: SparseState) -> tuple[SparseState, Hit]:
    return attrs.evolve(state, hits=state.hits + 1), Hit()


def _refuse_pure(budget: Budget) -> None:
    if budget.pure:
        raise InvalidParameterError(
            "delta must be in (0, 1) for GumbelSparse, got delta=0; use ExponentialSparse."
        )


def sigma_at_least(sigma: Fraction, from_bits: int, to_bits: int) -> int:
    """Gaussian scale on the grid 2^-to_bits, whole units, not below `sigma` of the grid 2^-from_bits."""
    return math.ceil(sigma * (1 << to_bits) / (1 << from_bits))


def _least_for_threshold(plan: Calibration) -> float:
    """Least b, counts, at which the threshold asked for is at most 26 b."""
    if plan.alpha is None:
        return (2.0 if plan.threshold is None else plan.threshold * plan.n + 1.0) / STEEPEST
    room = STEEPEST - math.log(plan.max_queries / (0.8 * plan.beta))
    if room < 1.0:
        raise InvalidParameterError(
            f"max_queries/beta must be below 5e10 with alpha, got max_queries={plan.max_queries}, "
            f"beta={plan.beta}."
        )
    return (plan.alpha * plan.n + 4.0) / room


def _grid_bits(n: int, scale: float, ratio: float, wanted: int) -> int:
    """Finest grid, at most `wanted` bits, on which n, b and sigma (counts) stay in range."""
    most = min(
        53 - (n - 1).bit_length(),
        SCALE_LIMIT.bit_length() - 2 - math.ceil(math.log2(scale)),
        SIGMA_LIMIT.bit_length() - 1 - math.ceil(math.log2(ratio * scale * 1.001)),
    )
    if most < min(wanted, LEAST_GRID):
        raise InfeasibleAccuracyError(
            f"the noise must fit the sampler on a grid of {min(wanted, LEAST_GRID)} bits, got b={scale:.4g} "
            f"and sigma={ratio * scale:.4g} records at n={n}; raise epsilon or delta, or lower hard_answers."
        )
    return min(wanted, most)


def _payable(
    order: Fraction,
    scale: Fraction,
    bits: int,
    ratio: Fraction,
    partition: bool,
    near: Neighbours,
    most: Fraction,
) -> bool:
    """Whether the dearest planned hard answer costs at most `most` ticks."""
    # (test, answer on the finest grid) is the dearest number: sigma is rounded up least there
    tested = near.any_gap(1 << bits)
    answers = [(Fraction(sigma_at_least(ratio * scale, bits, bits)), near.number(0, 1 << bits) ** 2)]
    if partition:
        answers.append((Fraction(sigma_at_least(ratio * scale, bits, 0)), near.table_squared()))
    try:
        return all(gumbel_charge(order, tested, scale, sigma, squared) <= most for sigma, squared in answers)
    except InvalidParameterError:  # x >= 1
        return False


@lru_cache(maxsize=4096)
def gumbel_scale(
    count: int,
    epsilon: float,
    delta: float,
    *,
    ratio: float = float(RATIO),
    squared_sensitivity: float = 1.0,
    reserved: float = 0.0,
) -> tuple[float, float]:
    """Return the least b with count * charge(alpha; 1, b, ratio b, L) <= (1 - reserved) R(alpha), and alpha.

    b is the Gumbel scale in counts, alpha the Renyi order.
    The order is searched on 400 points of ln(alpha - 1) in [ln 1e-3, ln 1e5], then between neighbours.

    Args:
        count: At least 1. c', hard answers that must be payable.
        epsilon: Above 0.
        delta: In (0, 1).
        ratio: Above 0. sigma / b of the fresh answer; inf for none.
        squared_sensitivity: Above 0. L in counts^2, of an answer whose test moves by one count: 1 for a
            number, 2 for a partition.
        reserved: In [0, 1). Share of the capacity kept for other releases of the same filter.

    Raises:
        InfeasibleAccuracyError: If epsilon is so small that no order up to 10^5 has any capacity.
    """
    count = checked_integer("count", count, at_least=1)
    epsilon = checked_real("epsilon", epsilon, above=0.0)
    delta = checked_real("delta", delta, above=0.0, below=1.0)
    ratio = checked_real("ratio", ratio, above=0.0) if ratio != math.inf else math.inf
    squared = checked_real("squared_sensitivity", squared_sensitivity, above=0.0) / ratio**2
    reserved = checked_real("reserved", reserved, at_least=0.0, below=1.0)
    low, high = math.log(1e-3), math.log(1e5)
    for _ in range(4):
        grid = np.linspace(low, high, 400)
        scales = _least_scales(np.exp(grid), count, epsilon, delta, squared, reserved)
        best = int(np.argmin(scales))
        low, high = grid[max(0, best - 1)], grid[min(399, best + 1)]
    if not math.isfinite(scales[best]):
        raise InfeasibleAccuracyError(
            f"epsilon must be larger for delta={delta}, got epsilon={epsilon}: no Renyi order up to 1e5 "
            "has any capacity; raise epsilon or delta."
        )
    return float(scales[best]), 1.0 + math.exp(grid[best])


def ratio_at_scale(
    order: float, scale: float, count: int, epsilon: float, delta: float, squared: float, reserved: float
) -> float:
    """The least sigma / b with count * charge = capacity at a scale with room to spare; L = squared."""
    less, eta = order - 1.0, 1.0 / scale
    test = -eta - math.log1p(-less * math.expm1(eta)) / less
    left = _capacity(np.array([less]), epsilon, delta).item() * (1.0 - reserved) / count - test
    return math.sqrt(order * squared / (2.0 * left)) / scale


def _capacity(less: Floats, epsilon: float, delta: float) -> Floats:
    """R at the orders 1 + less, not below 0."""
    return np.maximum(epsilon + np.log1p(1.0 / less) + (math.log(delta) + np.log1p(less)) / less, 0.0)


def _least_scales(
    less: Floats, count: int, epsilon: float, delta: float, squared: float, reserved: float
) -> Floats:
    """Root b of count * charge = capacity for each alpha - 1; inf where there is no capacity.

    `squared` is L / ratio^2.

    Newton's method in eta = 1/b from above the root: the charge is increasing and convex in eta, and at
    least alpha (eta^2/2)(1 + squared), so the iterates fall to the root.
    """
    order = 1.0 + less
    share = _capacity(less, epsilon, delta) * (1.0 - reserved) / count
    pole = np.log1p(1.0 / less)  # x = 1
    eta = np.minimum(np.sqrt(2.0 * share / (order * (1.0 + squared))), pole * (1.0 - 1e-12))
    for _ in range(100):
        free = 1.0 - less * np.expm1(eta)
        value = -eta - np.log(free) / less + order * squared * eta**2 / 2.0 - share
        slope = -1.0 + np.exp(eta) / free + order * squared * eta
        step = np.divide(value, slope, out=np.zeros_like(eta), where=eta > 0.0)
        eta = np.clip(eta - step, 0.0, pole * (1.0 - 1e-12))
        if np.all(np.abs(step) <= 1e-15 * eta):
            break
    with np.errstate(divide="ignore"):
        return 1.0 / eta


def gumbel_resolution(hard_answers: int, max_queries: int, epsilon: float, delta: float) -> float:
    """Return G, counts: a gap that is found with 95 % at the threshold of few false hits (default choice).

    G = b (ln(k/(.2 c)) + ln ln 20), b calibrated for ceil(1.2 c) hard answers.
    """
    hard_answers = checked_integer("hard_answers", hard_answers, at_least=1)
    count = hits_paid(hard_answers, FALSE_HITS)
    tests = checked_integer("max_queries", max_queries, at_least=1)
    scale, _ = gumbel_scale(count, epsilon, delta)
    return scale * (math.log(tests / (FALSE_HITS * hard_answers)) + math.log(math.log(20.0)))
