"""`UnconditionalNumbers`: no test at all, every question is measured; best where few are asked.

Proof: docs/theory/certificates.md, 8.2a; docs/theory/session.md, 4.6.
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
from onlineic.accounting.renyi import TICK, gaussian_charge, renyi_capacity
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    InvalidQueryError,
    checked_integer,
    checked_ratio,
    set_fields,
)
from onlineic.noise.laws import DiscreteGaussian, DiscreteLaplace, checked_tail
from onlineic.noise.sources import SIGMA_LIMIT, Noise, scale_at_least
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.sparse.base import Hit, NumericSparse, SparseState, checked_grid, steps_up

MOST_ORDERS = 200  # that are tried


@final
@attrs.frozen
class UnconditionalNumbers(NumericSparse):
    """Every question is hard: its number, or all blocks of its table, with fresh noise on the session's grid.

    With an order the noise is discrete Gaussian and charged a L/(2 sigma^2) to a Renyi filter of that order;
    without one it is discrete Laplace and charged L1/scale of epsilon. A table has sqrt(2) times, or twice,
    the noise of a number, so that it costs no more. The "test" has one outcome, which tells nothing.

    Dwork & Roth (2014), Theorem 3.6; Canonne, Kamath & Steinke (2020) for the Gaussian; filters as in
    `GumbelSparse` and `ExponentialSparse` (theory 4.6).

    Args:
        epsilon, delta: delta = 0 without an order.
        scale: Of a number's noise, units 1/(n 2^grid_bits); whole with an order.
        order: Above 1.
        neighbours: The tables between which it is private.
    """

    n: int
    epsilon: float
    delta: float
    scale: Fraction
    order: Fraction | None = None
    grid_bits: int = 0
    neighbours: Neighbours = attrs.field(
        default=REPLACE_ONE, kw_only=True, repr=False, metadata={"later": True}
    )

    def __attrs_post_init__(self) -> None:
        budget = Budget(self.epsilon, self.delta, allow_large_epsilon=True)
        # Python numbers: those of numpy wrap around
        set_fields(self, epsilon=budget.epsilon, delta=budget.delta, **checked_grid(self.n, self.grid_bits))
        if (self.order is None) != (self.delta == 0.0):
            raise InvalidParameterError(
                f"order must be given with delta > 0 and only then, got order={self.order}, "
                f"delta={self.delta}."
            )
        object.__setattr__(self, "scale", checked_ratio("scale", self.scale, above=0.0))
        if self.order is not None:
            object.__setattr__(self, "order", checked_ratio("order", self.order, above=1.0))
            if self.scale.denominator != 1 or self._spread(True) > SIGMA_LIMIT:
                raise InvalidParameterError(
                    f"scale must be whole and its sqrt(2)-fold <= 2^26, got scale={float(self.scale):.6g}; "
                    "lower grid_bits."
                )

    @classmethod
    def calibrated(  # type: ignore[override]  # it has no tests to plan for
        cls, budget: Budget, *, n: int, answers: int, grid_bits: int, reserved: Fraction = Fraction(0)
    ) -> "UnconditionalNumbers":
        """Return the law of least variance at which `answers` numbers of full range use 1 - reserved.

        Args:
            grid_bits: Finest grid wanted; lowered where sigma would leave the sampler's range.
        """
        answers = checked_integer("answers", answers, at_least=1)
        grid_bits = checked_integer("grid_bits", grid_bits, at_least=0)
        share = (1 - checked_ratio("reserved", reserved, at_least=0.0, below=1.0)) / answers
        near = budget.neighbours
        moved = near.number(0, 1)
        pure = moved / (share * budget.epsilon_exact)
        if budget.delta > 0.0:
            if budget.order is None:
                order, capacity = _best_order(budget.epsilon, budget.delta)
            else:  # of the total that it draws on, in which pure noise would cost other than its share
                order, capacity = budget.order, renyi_capacity(budget.order, budget.epsilon, budget.delta)
            ticks = math.floor(share * capacity)  # charges are whole ones
            wide = moved * math.sqrt(float(order / (2 * ticks * TICK))) if ticks else math.inf
            if budget.order is not None and wide > SIGMA_LIMIT / 4:
                raise InfeasibleAccuracyError(
                    f"the share of the total must pay for {answers} answers, got {budget}; take a larger one."
                )
            if budget.order is not None or wide < math.sqrt(2.0) * float(pure):
                bits = max(0, min(grid_bits, SIGMA_LIMIT.bit_length() - 3 - math.ceil(math.log2(wide))))
                sigma = max(1, math.floor(wide * 2**bits) - 1)
                while gaussian_charge(order, Fraction(sigma), near.number(0, 1 << bits) ** 2) > ticks:
                    sigma += 1
                return cls(n, budget.epsilon, budget.delta, Fraction(sigma), order, bits, neighbours=near)
        bits = max(0, min(grid_bits, 44 - max(0, math.ceil(math.log2(pure)))))
        return cls(n, budget.epsilon, 0.0, scale_at_least(pure * 2**bits), None, bits, neighbours=near)

    @property
    def threshold(self) -> int:
        """0: everything is hard."""
        return 0

    @property
    def deviation(self) -> float:
        """Standard deviation of a number of full range, fraction of records."""
        return self._noise(False).deviation / (self.n << self.grid_bits)

    def stretched(self, cheaper: Fraction) -> "UnconditionalNumbers":
        cheaper = checked_ratio("cheaper", cheaper, at_least=1.0)
        if self.order is None:
            return attrs.evolve(self, scale=scale_at_least(min(self.scale * cheaper, Fraction(2**46))))
        sigma = math.ceil(float(self.scale) * math.sqrt(cheaper))
        return attrs.evolve(self, scale=max(self.scale, Fraction(min(sigma, SIGMA_LIMIT // 2))))

    def account(self) -> Filter:
        if self.order is None:
            return Filter(Fraction(self.epsilon), "epsilon")
        return Filter(Fraction(renyi_capacity(self.order, self.epsilon, self.delta)), "ticks", self.order)

    def start_charge(self) -> Charge | None:
        return None

    def price(self, target: Query | Partition) -> Charge:
        table = isinstance(target, Partition)
        scale, unit = self._spread(table), 1 << self.grid_bits
        if isinstance(target, Query):
            moved = self.neighbours.number(target.lowest, target.highest)
            if moved < 1:
                raise InvalidQueryError(
                    f"query must have sensitivity >= 1, got sensitivity={moved}; answer a constant "
                    "query without a measurement."
                )
            rows = self.neighbours.rows
            moved = rows * steps_up(-(-moved // rows), target.grid_bits, self.grid_bits)
            squared = moved**2
        else:
            moved, squared = self.neighbours.table_l1(unit), self.neighbours.table_squared(unit)
        event = "one table" if table else "one number"
        if self.order is None:
            return Charge(moved / scale, f"{event}, Laplace")
        ticks = gaussian_charge(self.order, scale, squared)
        return Charge(Fraction(ticks), f"{event}, Gaussian", "ticks", self.order)

    def step(
        self, state: SparseState, gap: int, sensitivity: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        return attrs.evolve(state, hits=state.hits + 1), Hit()

    def step_many(
        self, state: SparseState, gaps: Ints, sensitivities: Ints, noise: Noise
    ) -> tuple[SparseState, int, Hit | None]:
        if len(gaps) == 0:
            return state, 0, None
        return attrs.evolve(state, hits=state.hits + 1), 0, Hit()

    def step_table(
        self, state: SparseState, largest_gap: int, noise: Noise
    ) -> tuple[SparseState, Hit | None]:
        return attrs.evolve(state, hits=state.hits + 1), Hit()

    def measure(
        self, hit: Hit, target: Query | Partition, guess: int, counts: int | Ints, noise: Noise
    ) -> Measurement:
        law = self._noise(isinstance(target, Partition))
        bits = self.bits_of(target)
        exact = (
            np.atleast_1d(np.asarray(counts, np.int64)) >> target.grid_bits - bits << self.grid_bits - bits
        )
        noisy = exact + law.draw(noise, len(exact))
        records = self.n << self.grid_bits
        return Measurement(target, noisy / records, law.deviation / records)

    def noise_of(self, target: Query | Partition) -> float:
        return self._noise(isinstance(target, Partition)).deviation / (self.n << self.grid_bits)

    def easy_radius(self, beta: float, tests: int = 1) -> float:
        """Return 0: no answer is easy."""
        _ = checked_tail(beta, tests)  # refused where they are none, and of no use beyond
        return 0.0

    def hard_radius(
        self, target: Query | Partition, beta: float, answers: int = 1, tests: int | None = None
    ) -> float:
        beta, answers = checked_tail(beta, answers)
        table = isinstance(target, Partition)
        values = target.blocks if isinstance(target, Partition) else 1
        return self._noise(table).radius(beta / (answers * values)) / (self.n << self.grid_bits)

    def sum_radius(self, target: Partition, weights: Floats, beta: float) -> float:
        return self._noise(True).sum_radius(weights, beta) / (self.n << self.grid_bits)

    def margins(self, max_queries: int, beta: float, hard_answers: int) -> tuple[float, float, float]:
        """Return (0, 0, a_num): there are no tests, and c numbers share beta."""
        beta, _ = checked_tail(beta, max_queries)
        answers = checked_integer("hard_answers", hard_answers, at_least=1)
        return 0.0, 0.0, self._noise(False).radius(beta / answers) / (self.n << self.grid_bits)

    def _spread(self, table: bool) -> Fraction:
        """Scale of the noise of a number, or of each block of a table, which then costs no more."""
        if not table:
            return self.scale
        near, number = self.neighbours, self.neighbours.number(0, 1)
        if self.order is None:
            return self.scale * near.table_l1() / number
        square = math.ceil(self.scale**2 * near.table_squared() / number**2)
        return Fraction(math.isqrt(square - 1) + 1)

    def _noise(self, table: bool) -> DiscreteGaussian | DiscreteLaplace:
        scale = self._spread(table)
        return DiscreteLaplace(scale) if self.order is None else DiscreteGaussian(int(scale))


@lru_cache(maxsize=256)
def _best_order(epsilon: float, delta: float) -> tuple[Fraction, int]:
    """Return the order, a multiple of 1/64, at which Gaussian numbers of a filter have about least noise."""
    best: tuple[Fraction, int] = (Fraction(2), 0)
    for less in np.geomspace(1 / 64, 1e5, MOST_ORDERS):
        order = Fraction(64 + max(1, round(64 * less)), 64)
        capacity = renyi_capacity(order, epsilon, delta)
        if capacity * best[0] > best[1] * order:
            best = order, capacity
    return best
