"""What a mechanism is calibrated for: the plan, the hits that are paid, and the threshold that was asked for.

Proof: docs/theory/accuracy.md, 6.4.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import Budget
from onlineic.errors import InvalidParameterError, checked_integer, checked_ratio, checked_real, set_fields
from onlineic.noise.laws import checked_beta


@final
@attrs.frozen
class Calibration:
    """A plan inside its range, of Python's own numbers, with the one choice of its threshold.

    A mechanism solves for its scales alone: `paid` tells for how many hits, and `level`, given how far above
    a right guess the noise of those scales reaches, where the threshold stands.

    Args:
        budget, n, hard_answers, max_queries, grid_bits, alpha, threshold, beta: As `NumericSparse.calibrated`
            takes them.
        usual: `false_hits` where they are not given and no gap is asked for.
        false_hits, reserved, restarts: As the mechanisms take them that know them.
        below: What alpha and threshold are below.

    Attributes:
        tolerated: rho, false hits for each planned true one.

    Raises:
        InvalidParameterError: If a parameter is outside its range, both alpha and threshold are given, or
            nothing settles T.
    """

    budget: Budget
    n: int
    hard_answers: int
    max_queries: int
    grid_bits: int
    alpha: float | None
    threshold: float | None
    beta: float
    usual: float
    false_hits: float | None = None
    reserved: Fraction = Fraction(0)
    restarts: int = 0
    below: float = 1.0
    tolerated: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        set_fields(
            self,
            n=checked_integer("n", self.n, at_least=1),
            hard_answers=checked_integer("hard_answers", self.hard_answers, at_least=1),
            max_queries=checked_integer("max_queries", self.max_queries, at_least=1),
            grid_bits=checked_integer("grid_bits", self.grid_bits, at_least=0),
            beta=checked_beta(self.beta),
            reserved=checked_ratio("reserved", self.reserved, at_least=0.0, below=1.0),
            restarts=checked_integer("restarts", self.restarts, at_least=0),
        )
        alpha, threshold, tolerated = self.alpha, self.threshold, self.false_hits
        if alpha is not None and threshold is not None:
            raise InvalidParameterError(
                f"at most one of alpha and threshold must be given, got alpha={alpha}, threshold={threshold}."
            )
        if tolerated is None:
            tolerated = self.usual if alpha is None else 0.0
        tolerated = checked_real("false_hits", tolerated, at_least=0.0)
        if alpha is None and threshold is None and tolerated == 0.0:
            raise InvalidParameterError(
                "false_hits must be > 0 without alpha or threshold, got false_hits=0."
            )
        set_fields(self, tolerated=tolerated)
        for name, value in (("alpha", alpha), ("threshold", threshold)):
            if value is not None:
                set_fields(self, **{name: checked_real(name, value, above=0.0, below=self.below)})

    @property
    def paid(self) -> int:
        """c' = ceil(c (1 + rho)): planned true hard answers and the tolerated false ones."""
        return hits_paid(self.hard_answers, self.tolerated)

    def level(
        self, unit: int, height: Callable[[float, float], float], share: float, slack: float = 2.0
    ) -> float:
        """Return T, not rounded yet: of alpha, as a fraction, or of the false hits that are tolerated.

        Args:
            unit: 2^K: T is in units of 1/(n 2^K).
            height: (part, of) -> threshold, above a right guess, at which all planned tests together cause
                part * of hits on average, and so any hit with at most that probability.
            share: Part of beta at which no hit shall have a gap below alpha: T = alpha + a_hit.
            slack: Units on top of that, for what is rounded and for a gap strictly above alpha.
        """
        if self.alpha is not None:
            return self.alpha * self.n * unit + height(share, self.beta) + slack
        if self.threshold is not None:
            return self.threshold * self.n * unit
        return max(0.0, height(self.tolerated, self.hard_answers))


def hits_paid(hard_answers: int, false_hits: float) -> int:
    """Return c' = ceil(c (1 + rho)): planned true hard answers and the tolerated false ones."""
    return math.ceil(hard_answers * (1.0 + false_hits) - 1e-9)
