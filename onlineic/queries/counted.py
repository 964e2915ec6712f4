"""The number of records where it is private: released with noise, and all that is said of it.

Proof: docs/theory/queries.md, 1.9.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import final

import attrs
import numpy as np

from onlineic.accounting.budget import Budget
from onlineic.accounting.of_table import share_of
from onlineic.accounting.renyi import laplace_charge, renyi_capacity
from onlineic.accounting.rounding import float_down
from onlineic.errors import InvalidParameterError, check_kind, checked_integer, checked_real, set_fields
from onlineic.noise.laws import DiscreteLaplace

SHARE = Fraction(1, 20)  # of epsilon: half or twice as much loses 2 to 5 % of the noise of all else
FAILING = Fraction(1, 16)  # of beta


@final
@attrs.frozen(repr=False)
class Counted:
    """How many records, or persons, there are, as it was released; of a union the sum of such numbers.

    Attributes:
        n: At least 1.
        scale: Above 0. Of the discrete Laplace noise: of one record.
        beta: Probability that the number is farther off than `bound`.
        private: False: of simulated noise, NOT PRIVATE.
        draws: At least 1. How many numbers it is the sum of, each with noise of this scale.
    """

    n: int
    scale: Fraction
    beta: float
    private: bool = attrs.field(default=True, kw_only=True, metadata={"later": True})
    draws: int = attrs.field(default=1, kw_only=True, metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        check_kind("scale", self.scale, Fraction, remedy="hand on what was counted")
        if self.scale <= 0:
            raise InvalidParameterError(
                f"scale must be > 0, got scale={self.scale}; hand on what was counted."
            )
        check_kind("private", self.private, bool, remedy="hand on what was counted")
        set_fields(
            self,
            n=checked_integer("n", self.n, at_least=1),
            beta=checked_real("beta", self.beta, above=0.0, below=1.0),
            draws=checked_integer("draws", self.draws, at_least=1),
        )

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        return f"Counted(n={self.n}, scale={self.scale!r}, beta={self.beta}{stamp})"

    @property
    def bound(self) -> int:
        """How far `n` is from the number of records at most, with probability 1 - beta."""
        return _radius(self.scale, self.beta, self.draws)

    @property
    def slack(self) -> float:
        """`bound` as a fraction of `n`."""
        return self.bound / self.n

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of `n`, as a fraction of it."""
        return math.sqrt(self.draws) * DiscreteLaplace(self.scale).deviation / self.n


@lru_cache(maxsize=64)  # every answer asks it
def _radius(scale: Fraction, beta: float, draws: int) -> int:
    law = DiscreteLaplace(scale)
    radius = law.radius(beta) if draws == 1 else math.floor(law.sum_radius(np.ones(draws), beta))
    return max(1, radius)  # of nobody at least one is said


def divided(budget: Budget) -> tuple[Budget, Budget]:
    """Return what pays for the number of records, and what is left for all else: together no more."""
    first = float_down(budget.epsilon_exact * SHARE)
    count = attrs.evolve(budget, epsilon=first, delta=0.0, order=None)
    if budget.order is None:
        return count, attrs.evolve(budget, epsilon=float_down(budget.epsilon_exact - Fraction(first)))
    # of a share of a total both are drawn at its order
    whole = renyi_capacity(budget.order, budget.epsilon, budget.delta)
    ticks = whole - laplace_charge(budget.order, 1 / Fraction(first), 1)
    return count, share_of(Fraction(ticks), budget.order, budget.delta, budget.neighbours)


def divided_beta(beta: float) -> tuple[float, float]:
    """Return how often the bound of the number of records fails, and that of all else: together beta."""
    rest = beta * float(1 - FAILING)
    return beta - rest, rest
