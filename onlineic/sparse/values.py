"""NumericSparse over any stream of values of bounded sensitivity, not only over gaps of linear queries.

Scores are integers in units of 2^-K sensitivities: what is compared is how many sensitivities a value lies
above its threshold, rounded down on a grid of K bits. A value that moves by at most its sensitivity s moves
2^K (value - threshold)/s by at most 2^K, and so its floor.

Proof: docs/theory/offline.md, 12.11.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from numbers import Rational
from operator import index
from typing import Any, final, get_args

import attrs

from onlineic.accounting.budget import Budget
from onlineic.errors import (
    InvalidParameterError,
    SessionExhaustedError,
    checked_integer,
    shown,
)
from onlineic.noise.sources import Noise, checked_source
from onlineic.sparse.base import Hit, NumericSparse, SparseState, Value
from onlineic.sparse.exponential import ExponentialSparse
from onlineic.sparse.gumbel import STEEPEST, GumbelSparse
from onlineic.sparse.kinds import KINDS, SparseName, finer_name

GRID_BITS = 8  # finer than any noise but that of a very large epsilon
LEVEL = 2**40  # the zero of the scores stands here on the mechanism's scale: so far below it they are cut off
FARTHEST = 2**60  # no noise reaches across from here, and sums stay inside 64 bits
PLAN_BETA = 0.05  # of the margins that the tests are centred by
ALONE = 0.5  # of the threshold while the noise is planned: of no account


@final
@attrs.frozen
class ValueSparse:
    """Which scores reach zero, at most `cutoff` of them, and a number for each that does.

    The one-sided form of the tests of `LaplaceSparse`, `GumbelSparse` and `ExponentialSparse`, in units of
    one sensitivity (n = 1). What is released: for every test whether it was a hit, and for a hit its score
    with the mechanism's own noise, fresh Laplace or Gaussian, or the free gap of the exponential tests. One
    run costs the budget, whatever the number of tests, if one replaced record moves every score by at most
    2^grid_bits (theory 12.11).

    One-sided noise fires below the threshold more easily than it stays silent above; tests are moved up by
    `shift`, a function of the plan, so that both margins are equal.

    Dwork & Roth (2014), Algorithm 3, for the values themselves instead of gaps.

    Args:
        mechanism: With n = 1.
        cutoff: At least 1. Hits after which it halts; the mechanism must be able to pay them.
        shift: Grid units.

    Raises:
        InvalidParameterError: Also if the mechanism cannot pay so many hits.

    Examples:
        Numbers of records to remove, each moved by at most 1 when a record is replaced; which are at least
        500?

        >>> from onlineic import Budget
        >>> from onlineic.noise import SystemNoise
        >>> sparse = ValueSparse.calibrated(Budget(1.0), cutoff=1, max_values=100)
        >>> scores = [sparse.score(value, 500) for value in (20, 31, 900, 12)]
        >>> ((place, number),) = sparse.select(scores, SystemNoise())
        >>> place, abs(500 + number - 900) < 100
        (2, True)
    """

    mechanism: NumericSparse
    cutoff: int
    shift: int = 0

    def __attrs_post_init__(self) -> None:
        if type(self.mechanism) not in KINDS.values():
            raise InvalidParameterError(
                "mechanism must be a LaplaceSparse, GumbelSparse or ExponentialSparse, got a "
                f"{type(self.mechanism).__name__}: nothing is proven of another."
            )
        if self.mechanism.n != 1:
            raise InvalidParameterError(
                f"mechanism must have n=1, whose unit is one sensitivity, got n={self.mechanism.n}; "
                "write ValueSparse.calibrated(...)."
            )
        object.__setattr__(self, "cutoff", checked_integer("cutoff", self.cutoff, at_least=1))
        object.__setattr__(self, "shift", checked_integer("shift", self.shift))
        # the whole price, tests and numbers, of every hit that may come, before anything is drawn
        account, start = self.mechanism.account(), self.mechanism.start_charge()
        price = self.mechanism.price(self._target).amount
        if self.cutoff * price + (0 if start is None else start.amount) > account.capacity:
            raise InvalidParameterError(
                f"cutoff must be what the mechanism can pay, got cutoff={self.cutoff}; calibrate it for more."
            )

    @classmethod
    def calibrated(
        cls,
        budget: Budget,
        *,
        cutoff: int,
        max_values: int,
        mechanism: SparseName | None = None,
    ) -> "ValueSparse":
        """Return the settings with the least noise that pay `cutoff` hits, tests and numbers together.

        Args:
            cutoff: At least 1.
            max_values: At least 1. Planned length of the stream: it settles `shift`, and nothing that privacy
                depends on.
            mechanism: None: "exponential" for delta = 0, else the one of it and "gumbel" that resolves
                smaller gaps.
        """
        cutoff = checked_integer("cutoff", cutoff, at_least=1)
        values = checked_integer("max_values", max_values, at_least=1)
        mechanism = finer_name(cutoff, values, budget) if mechanism is None else mechanism
        if mechanism not in get_args(SparseName):
            raise InvalidParameterError(
                f"mechanism must be 'laplace', 'gumbel' or 'exponential', got mechanism={shown(mechanism)}."
            )
        own: dict[str, Any] = {} if mechanism == "laplace" else {"false_hits": 0.0}
        alone = KINDS[mechanism].calibrated(
            budget, n=1, hard_answers=cutoff, max_queries=values, grid_bits=GRID_BITS, threshold=ALONE, **own
        )
        level = math.floor(STEEPEST * alone.scale) if isinstance(alone, GumbelSparse) else LEVEL
        made = attrs.evolve(alone, threshold=level)
        hit, miss, _ = made.margins(values, PLAN_BETA, cutoff)
        return cls(made, cutoff, round((hit - miss) / 2.0 * (1 << made.grid_bits)))

    @property
    def grid_bits(self) -> int:
        """K: a score counts 2^-K sensitivities."""
        return self.mechanism.grid_bits

    @property
    def _target(self) -> Any:
        return Value(1 << self.grid_bits, self.grid_bits)

    def score(
        self, value: float | Rational, threshold: float | Rational, sensitivity: float | Rational = 1
    ) -> int:
        """Return floor(2^K (value - threshold)/sensitivity), exact. PRIVATE, as the value is."""
        units = (_exact(value) - _exact(threshold)) / _exact(sensitivity)
        return math.floor(units * (1 << self.grid_bits))

    def init(self) -> SparseState:
        """Return the state before the first test."""
        return self.mechanism.init()

    def step(self, state: SparseState, score: int, noise: Noise) -> tuple[SparseState, float | None]:
        """Test one score (PRIVATE): (state, None) if it is below, else (state, its number in sensitivities).

        Raises:
            SessionExhaustedError: After `cutoff` hits.
        """
        if state.hits >= self.cutoff:
            raise SessionExhaustedError(f"ValueSparse must not be asked after its {self.cutoff} hits.")
        score = min(max(index(score), -FARTHEST), FARTHEST)  # a refusal would not show the value
        level = self.mechanism.threshold - self.shift
        # below the least score of its scale a test would see another sign: a score is raised to it
        state, hit = self.mechanism.step_table(state, max(score + level, 0), noise)
        if hit is None:
            return state, None
        # a free gap is noisy and measured from the least score; fresh noise is added to the score itself
        free = isinstance(self.mechanism, ExponentialSparse) and self.mechanism.number_scale is None
        hit, start = Hit(side=1, excess=hit.excess), level if free else 0
        (number,) = self.mechanism.measure(hit, self._target, 0, score, noise).values.tolist()
        return state, number - start / (1 << self.grid_bits)

    def select(self, scores: Iterable[int], noise: Noise) -> tuple[tuple[int, float], ...]:
        """Return (index, number) of every hit: `step` on one score after the other; ONE RUN, one budget.

        Scores are taken one at a time, and none after the last hit that is allowed.
        """
        state, found, source = self.init(), [], checked_source(noise)
        for place, score in enumerate(scores):
            state, number = self.step(state, score, source)
            if number is not None:
                found.append((place, number))
                if len(found) == self.cutoff:
                    break
        return tuple(found)

    def radii(self, values: int, beta: float) -> tuple[float, float]:
        """Return (a_test, a_number), sensitivities, together exceeded with probability <= beta.

        No hit has its score below -a_test, no score passed over lies above a_test, and no number is off by
        more than a_number, over so many values, each chosen after the outcome of the last.
        """
        hit, miss, number = self.mechanism.margins(values, beta, self.cutoff)
        unit = 1 << self.grid_bits
        if hit * unit >= self.mechanism.threshold:
            return math.inf, number
        shift = self.shift / unit
        return max(hit - shift, miss + shift) + 1.0 / unit, number + 1.0 / unit


def _exact(value: float | Rational) -> Fraction:
    """Return a number as the rational that it is, of Python's integers: those of numpy wrap around."""
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(float(value))
