"""What one round of an offline construction costs: choose the worst answered query, answer it afresh.

Proof: docs/theory/offline.md, 12.10.
"""

import math
from fractions import Fraction
from typing import Literal, final

import attrs

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import advanced_share, zcdp_rho
from onlineic.accounting.rounding import float_down
from onlineic.errors import InvalidParameterError, checked_integer
from onlineic.mechanisms.selection import ExponentialMechanism, NoisyMax
from onlineic.noise.laws import DiscreteGaussian, DiscreteLaplace
from onlineic.noise.sources import RATIO_LIMIT, SIGMA_LIMIT, Noise, scale_at_least

Composition = Literal["basic", "advanced", "zcdp"]
Distinguisher = Literal["noisy max", "exponential"]
LARGEST_EPSILON = 20.0  # of one choice
HALF = Fraction(1, 2)


@final
@attrs.frozen
class Rounds:
    """A number of rounds that is paid for, of a choice and a fresh answer each.

    Attributes:
        composition: What the capacity counts: epsilon; the epsilons of mechanisms that Corollary 3.21 of
            Dwork & Roth (2014) composes, checked by Theorem 3.20; or rho of zero-concentrated privacy.
        choice: On integer scores, grid units.
        scale: Of an answer's noise: of a discrete Laplace, or sigma of a discrete Gaussian under zcdp. Grid
            units for numbers, counts for tables.
        price, capacity: Of one round, and of all: rounds * price <= capacity, exactly.
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
        most = SIGMA_LIMIT if self.gaussian else RATIO_LIMIT - 1
        return max(shift for shift in range(grid_bits + 1) if self.scale * (1 << shift) <= most)

    def choice_radius(self, candidates: int, beta: float) -> int:
        """Return r, grid units: with probability >= 1 - beta the score chosen is within r of the best."""
        return self.choice.radius(candidates, beta)

    def answer_radius(self, beta: float) -> int:
        """Return r, grid units: with probability >= 1 - beta an answer is within r of the truth."""
        law = DiscreteGaussian(int(self.scale)) if self.gaussian else DiscreteLaplace(self.scale)
        return law.radius(beta)


def paid_rounds(
    budget: Budget,
    rounds: int,
    composition: Composition,
    *,
    sensitivity: int = 1,
    tested: int | None = None,
    distinguisher: Distinguisher | None = None,
    choice_share: Fraction = HALF,
    tables: bool = False,
) -> Rounds:
    """Return so many rounds at this budget, divided evenly, and each between choice and answer.

    Args:
        budget: With delta > 0 unless the composition is basic.
        rounds: At least 1.
        sensitivity: At least 1. Of the queries' numbers, grid units.
        tested: At least 1. Of their gaps, the scores. None: the same.
        distinguisher: None: `NoisyMax`, and under zcdp the cheaper `ExponentialMechanism`.
        choice_share: In (0, 1). Of a round's price; advanced composition divides it in halves.
        tables: Whether answers are block counts, or a number with the same noise in counts.

    Raises:
        InvalidParameterError: If a parameter is outside its range, or the noise leaves the range of the
            samplers.
    """
    rounds = checked_integer("rounds", rounds, at_least=1)
    sensitivity = checked_integer("sensitivity", sensitivity, at_least=1)  # a numpy integer could overflow
    tested = sensitivity if tested is None else checked_integer("tested", tested, at_least=1)
    near = budget.neighbours
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
        squared = max(near.table_squared(), near.number(0, 1) ** 2) if tables else sensitivity**2
        sigma = Fraction(_root_up(squared / (2 * (share - spent))))
        if sigma > SIGMA_LIMIT:
            raise InvalidParameterError(
                f"rounds must leave sigma <= 2^26 grid units, got rounds={rounds} with sigma={int(sigma)}; "
                "take fewer, or coarser weights."
            )
        price = spent + squared / (2 * sigma**2)
        return Rounds(rounds, composition, mechanism(epsilon, tested), sigma, price, capacity)
    if composition == "advanced":
        epsilon = advanced_share(budget.epsilon, budget.delta, 2 * rounds)
        share = 2 * Fraction(epsilon)
        capacity = rounds * share
    else:
        capacity = budget.epsilon_exact
        share = capacity / rounds
        epsilon = min(LARGEST_EPSILON, float_down(share * choice_share))
    summed = max(near.table_l1(), near.number(0, 1)) if tables else sensitivity
    scale = scale_at_least(summed / (share - Fraction(epsilon)))
    price = Fraction(epsilon) + summed / scale
    return Rounds(rounds, composition, mechanism(epsilon, tested), scale, price, capacity)


def _root_down(square: Fraction) -> float:
    """Largest float near sqrt(square) with root^2 <= square, at most what one choice may cost."""
    root = min(math.sqrt(square), LARGEST_EPSILON)
    while Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root


def _root_up(square: Fraction) -> int:
    """Least integer root >= 1 with root^2 >= square."""
    return math.isqrt(math.ceil(square) - 1) + 1
