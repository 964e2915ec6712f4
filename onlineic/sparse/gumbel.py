"""`GumbelSparse`: fresh Gumbel noise per test, no threshold noise; easy answers are free, a hit is paid."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from onlineic._gumbel import SCALE_LIMIT, fires_exactly, fires_one, screen
from onlineic._typing import Floats, Ints
from onlineic.accounting import Budget, Charge, Filter, gumbel_charge, loss_bound, renyi_capacity
from onlineic.errors import (
    InternalError,
    InvalidParameterError,
    InvalidQueryError,
    checked_integer,
    checked_ratio,
)
from onlineic.noise import Noise
from onlineic.queries import Measurement, Partition, Query
from onlineic.sparse.base import Hit, NumericSparse, SparseState
from onlineic.sparse.gumbel_plan import SIGMA_LIMIT, STEEPEST, calibrate, sigma_at_least
from onlineic.sparse.scales import checked_tail, normal_quantile

__all__ = ["GumbelSparse"]

PRICES_HELD = 4096  # prices kept, so that asking for one costs no exact arithmetic


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
    replace-one neighbours and hence (epsilon, delta)-differentially private. Proof: the slot of each test
    that fires costs theta(eta) in the moment and the silent ones nothing (the sum telescopes), so the
    moment times exp(-(a - 1) * charges) is a supermartingale; charges <= R on every transcript.

    Instances of the same order may share one filter, query by query.

    Parameters
    ----------
    n : int
        Number of records, public.
    epsilon, delta : float
        delta > 0.
    order : Fraction, > 1
        a, fixed before the session.
    scale : Fraction
        b, units 1/(n 2^grid_bits), with x < 1 at the sensitivity of one record.
    threshold : int, in [1, 26 b]
        T, same units; ties are hits.
    grid_bits : int
        K, the session's grid; 0 if only 0/1 queries are asked.
    ratio : Fraction, > 0
        sigma / b; sigma is rounded up to whole units of the target's own grid.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.

    References
    ----------
    Replaces Algorithm 3 of Dwork & Roth (2014): no threshold noise, Gumbel test noise of maximum type, and
    a Renyi filter (Feldman & Zrnic 2021) of fixed order for Theorem 3.27. Conversion to (epsilon, delta):
    Canonne, Kamath & Steinke (2020), Proposition 12.
    """

    n: int
    epsilon: float
    delta: float
    order: Fraction
    scale: Fraction
    threshold: int
    grid_bits: int = 0
    ratio: Fraction = Fraction(2)
    capacity: int = attrs.field(init=False)  # R in ticks of 2^-40
    _prices: dict[tuple[int, int], Charge] = attrs.field(init=False, repr=False, eq=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        budget = Budget(self.epsilon, self.delta, allow_large_epsilon=True)
        object.__setattr__(self, "epsilon", budget.epsilon)  # Python numbers: those of numpy wrap around
        object.__setattr__(self, "delta", budget.delta)
        if self.delta == 0.0:
            raise InvalidParameterError(
                "delta must be in (0, 1) for GumbelSparse, got delta=0; use ExponentialSparse."
            )
        object.__setattr__(self, "n", checked_integer("n", self.n, at_least=1))
        object.__setattr__(self, "grid_bits", checked_integer("grid_bits", self.grid_bits, at_least=0))
        if self.n << self.grid_bits > 2**53:
            raise InvalidParameterError(
                f"n 2^grid_bits must be <= 2^53, got n={self.n}, grid_bits={self.grid_bits}; lower grid_bits."
            )
        for name in ("order", "scale", "ratio"):
            value = getattr(self, name)
            if not isinstance(value, Fraction) or value <= 0:
                raise InvalidParameterError(f"{name} must be a Fraction > 0, got a {type(value).__name__}.")
            object.__setattr__(self, name, checked_ratio(name, value))
        if max(self.scale.numerator, self.scale.denominator) >= SCALE_LIMIT:
            raise InvalidParameterError(
                "scale must have numerator and denominator below 2^46, got one beyond; "
                "round it up with scale_at_least or lower grid_bits."
            )
        most = math.floor(STEEPEST * self.scale)
        level = checked_integer(
            "threshold", self.threshold, at_least=1, at_most=most, remedy="raise the scale"
        )
        object.__setattr__(self, "threshold", level)
        if self.sigma(self.grid_bits) > SIGMA_LIMIT:
            raise InvalidParameterError(
                f"ratio * scale must be <= 2^26, got {float(self.ratio * self.scale):.4g}; lower grid_bits."
            )
        object.__setattr__(self, "capacity", renyi_capacity(self.order, self.epsilon, self.delta))
        self._ticks(1 << self.grid_bits, self.grid_bits, 1 << 2 * self.grid_bits)  # refuses x >= 1

    @classmethod
    def calibrated(
        cls,
        budget: Budget,
        *,
        n: int,
        hard_answers: int,
        max_queries: int,
        grid_bits: int = 0,
        alpha: float | None = None,
        threshold: float | None = None,
        beta: float = 0.05,
        false_hits: float | None = None,
        ratio: Fraction = Fraction(2),
        partition: bool = False,
        reserved: Fraction = Fraction(0),
    ) -> "GumbelSparse":
        """Return the settings with the least noise that pay for the planned hard answers.

        Parameters
        ----------
        budget : Budget
            delta > 0.
        hard_answers : int, >= 1
            c, planned true hard answers; ceil(c (1 + false_hits)) full-range ones are payable.
        max_queries : int, >= 1
            k, planned tests. Privacy does not depend on it.
        grid_bits : int, >= 0
            Finest grid wanted; lowered where sigma would leave the sampler's range.
        alpha : float, optional
            Gap, fraction of records, that every hit shall have with probability 1 - .8 beta over k tests:
            T = alpha + a_hit. Where T would exceed 26 b, b is raised and sigma / b lowered.
        threshold : float, optional
            T as a fraction of records, instead. With neither, T = b ln(k/(false_hits c)), at which k tests
            of equal numbers cause false_hits c false hits on average.
        false_hits : float, >= 0, optional
            rho, false hits paid for each true one; by default .2, with alpha 0.
        ratio : Fraction
            sigma / b; less where b was raised for the threshold.
        partition : bool
            Hard answers release whole partitions, squared L2 sensitivity 2 counts^2.
        reserved : Fraction, in [0, 1)
            Share of the capacity kept for other releases of the same order, such as a noisy prior.

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        InfeasibleAccuracyError
            If the noise would leave the sampler's range.
        """
        settings = calibrate(
            budget,
            n=n,
            hard_answers=hard_answers,
            max_queries=max_queries,
            grid_bits=grid_bits,
            alpha=alpha,
            threshold=threshold,
            beta=beta,
            false_hits=false_hits,
            ratio=ratio,
            partition=partition,
            reserved=reserved,
        )
        return cls(
            n=n,
            epsilon=budget.epsilon,
            delta=budget.delta,
            order=settings.order,
            scale=settings.scale,
            threshold=settings.threshold,
            grid_bits=settings.grid_bits,
            ratio=settings.ratio,
        )

    def sigma(self, grid_bits: int) -> int:
        """Scale of the fresh answer in units 1/(n 2^grid_bits), rounded up."""
        bits = checked_integer("grid_bits", grid_bits, at_least=0)
        return sigma_at_least(self.ratio * self.scale, self.grid_bits, bits)

    def account(self) -> Filter:
        return Filter(Fraction(self.capacity), "ticks", self.order)

    def opening(self) -> Charge | None:
        return None

    def price(self, target: Query | Partition) -> Charge:
        kind = (-1 if isinstance(target, Partition) else target.sensitivity, target.grid_bits)
        charge = self._prices.get(kind)
        if charge is None:
            if len(self._prices) >= PRICES_HELD:
                self._prices.clear()
            charge = self._prices[kind] = self._priced(target)
        return charge

    def _priced(self, target: Query | Partition) -> Charge:
        if isinstance(target, Partition):
            # the test, of a 0/1 query or of the largest block gap, moves by one count
            ticks = self._ticks(1 << self.grid_bits, target.grid_bits, 2 << 2 * target.grid_bits)
            return Charge(Fraction(ticks), "Gumbel test and Gaussian partition", "ticks", self.order)
        if target.grid_bits > self.grid_bits or target.sensitivity < 1:
            raise InvalidQueryError(
                f"query must have grid_bits <= {self.grid_bits} and sensitivity >= 1, got "
                f"grid_bits={target.grid_bits}, sensitivity={target.sensitivity}; "
                "answer a constant query without a test."
            )
        tested = target.sensitivity << self.grid_bits - target.grid_bits
        ticks = self._ticks(tested, target.grid_bits, target.sensitivity**2)
        return Charge(Fraction(ticks), "Gumbel test and Gaussian number", "ticks", self.order)

    def init(self) -> SparseState:
        return SparseState()

    def step(
        self, state: SparseState, gap: int, sensitivity: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        self._check_sensitivity(sensitivity, sensitivity)
        word = int(noise.words(1)[0])
        if not fires_one(word, abs(int(gap)) - self.threshold, self.scale, _more(noise)):
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
            words = noise.words(len(excesses) - start)
            verdicts = screen(words, excesses[start:], self.scale)
            open_lanes = np.flatnonzero(verdicts)
            if len(open_lanes) == 0:
                break
            lane = int(open_lanes[0])
            noise.unread(len(words) - 1 - lane)  # behind it: never looked at
            start += lane
            if verdicts[lane] > 0 or fires_exactly(
                int(words[lane]), int(excesses[start]), self.scale, _more(noise)
            ):
                state, hit = _hit(state)
                return state, start, hit
            start += 1
        return state, len(excesses), None

    def step_table(
        self, state: SparseState, largest_gap: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        return self.step(state, largest_gap, 1 << self.grid_bits, noise)

    def measure(
        self, hit: Hit, target: Query | Partition, guess: int, counts: int | Ints, noise: Noise
    ) -> Measurement:
        sigma = self.sigma(target.grid_bits)
        exact = np.atleast_1d(np.asarray(counts, dtype=np.int64))
        noisy = exact + noise.discrete_gaussian(sigma, len(exact))  # fresh noise, never the test's
        records = self.n << target.grid_bits
        return Measurement(target, noisy / records, sigma / records)

    def easy_radius(self, beta: float, tests: int = 1) -> float:
        """Return (T + b ln ln(tests/beta)) / (n 2^K): P(easy and |gap| > T + t b) <= exp(-e^t)."""
        beta, tests = checked_tail(beta, tests)
        radius = self.threshold + float(self.scale) * math.log(math.log(tests / beta))
        return max(0.0, radius) * (1.0 + 1e-12) / (self.n << self.grid_bits)

    def hard_radius(
        self, target: Query | Partition, beta: float, answers: int = 1, tests: int | None = None
    ) -> float:
        """Return sigma z / (n 2^k), rounded up: P(|N_Z| > m) <= P(|N| >= m) for integers m."""
        beta, answers = checked_tail(beta, answers)
        values = target.blocks if isinstance(target, Partition) else 1
        quantile = normal_quantile(beta / (2 * answers * values))
        radius = math.ceil(max(0.0, self.sigma(target.grid_bits) * quantile * (1.0 + 1e-12)))
        return radius / (self.n << target.grid_bits)

    def sum_radius(self, target: Partition, weights: Floats, beta: float) -> float:
        """Return sigma |w| sqrt(2 ln(2/beta)) / n: a discrete Gaussian is sub-Gaussian with its own scale."""
        beta, _ = checked_tail(beta, 1)
        weights = np.asarray(weights, np.float64)
        norm = math.sqrt(float(weights @ weights))
        return self.sigma(target.grid_bits) * norm * math.sqrt(2.0 * math.log(2.0 / beta)) / self.n

    def margins(self, max_queries: int, beta: float, hard_answers: int) -> tuple[float, float, float]:
        """Return (a_hit, a_miss, a_num), fractions, together failing with probability <= beta.

        No hit has |gap| < T - a_hit, no easy answer |gap| > T + a_miss, no number of a query errs by more
        than a_num, over `max_queries` tests and `hard_answers` numbers. Shares of beta: .8, .1, .1.
        """
        beta, tests = checked_tail(beta, max_queries)
        scale, unit = float(self.scale), self.n << self.grid_bits
        number = normal_quantile(0.1 * beta / (2 * checked_integer("hard_answers", hard_answers, at_least=1)))
        sigma = self.sigma(0) / self.n  # coarser grids round sigma up further
        return (
            (scale * math.log(tests / (0.8 * beta)) + 1.0) / unit,
            (scale * math.log(math.log(tests / (0.1 * beta))) + 1.0) / unit,
            sigma * number + 1.0 / self.n,
        )

    def false_hits(self, max_queries: int) -> float:
        """Return k (1 - exp(-e^(-T/b))): false hits expected in k tests of equal numbers."""
        tests = checked_integer("max_queries", max_queries, at_least=1)
        return tests * -math.expm1(-math.exp(-self.threshold / self.scale))

    def affordable(self, target: Query | Partition) -> int:
        """Return floor(R / price): how many such hard answers the whole capacity pays for."""
        return int(self.capacity // self.price(target).amount)

    def loss_bound(self, account: Filter, delta: float) -> float:
        """Return spent + ln(1/delta)/(a - 1): the realised loss stays below it for ever, but with delta.

        A statement about the loss so far, with probability >= 1 - delta for all times at once; it is no
        smaller (epsilon, delta) that could be claimed afterwards.
        """
        return loss_bound(self.order, math.ceil(account.spent), delta)

    def _ticks(self, sensitivity: int, grid_bits: int, squared: int) -> int:
        """Price of a test (session units) with an answer on its own grid."""
        sigma = Fraction(self.sigma(grid_bits))
        return gumbel_charge(self.order, sensitivity, self.scale, sigma, squared)

    def _check_sensitivity(self, least: int, most: int) -> None:
        if least < 0 or most > 1 << self.grid_bits:
            raise InternalError("the sensitivity of a query must be in [0, 2^grid_bits].")


def _hit(state: SparseState) -> tuple[SparseState, Hit]:
    return attrs.evolve(state, hits=state.hits + 1), Hit()


def _more(noise: Noise) -> Callable[[], int]:
    """Refinement bits of an undecided test."""
    return lambda: int(noise.words(1)[0])
