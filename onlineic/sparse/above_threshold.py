"""Which values reach a threshold: AboveThreshold, and Sparse by restarts or by one kept threshold.

Scales are exact rationals rounded up to what the sampler can draw. Values are integers in units in which one
replaced record moves each of them by at most 1: counts, for 0/1 queries.

Proof: docs/theory/sparse.md, 5.2, 12.4.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import advanced_composition
from onlineic.accounting.rounding import float_up
from onlineic.bounds.sparse_vector import sparse_margin
from onlineic.errors import (
    InvalidParameterError,
    SessionExhaustedError,
    checked_integer,
    checked_real,
    set_fields,
    shown,
)
from onlineic.noise.laws import DiscreteLaplace
from onlineic.noise.sources import Noise, checked_source, scale_at_least
from onlineic.sparse.base import SparseState, first_reaching
from onlineic.sparse.exponential import exponential_scales

CHUNK = 4096  # values tested at once: what is drawn in vain after a hit stays short
LARGEST_THRESHOLD = 2**60
LEAST_BETA = 1e-250  # divided by the queries, it stays a float whose inverse is one
FARTHEST = 2**61  # no noise reaches across from here: values beyond are compared as if they were here


@final
@attrs.frozen
class AboveThreshold:
    """The first query whose noisy value reaches a noisy threshold, (epsilon, 0)-private for any number.

    rho ~ Lap(2/epsilon) once, nu ~ Lap(4/epsilon) for each query; above iff value + nu >= threshold + rho.
    What comes out is the index alone. The value that was compared must not: it shows how far the threshold
    can have been moved, and the cost grows with the number of queries, without end.

    Dwork & Roth (2014), Algorithm 1 and Theorem 3.23.

    Args:
        epsilon: In (0, 20].
        threshold: In [-2^60, 2^60]. In units in which every query has sensitivity 1 (counts).
        allow_large_epsilon: Accept a finite epsilon above 20.

    Attributes:
        threshold_scale, query_scale: Of rho and nu.

    Examples:
        The third of five counts is the first above 5,000, and none is above a million. Index 0 is a hit too:
        compare with None.

        >>> import numpy as np
        >>> from onlineic.noise import SystemNoise
        >>> counts = np.array([0, 0, 10_000, 0, 10_000])
        >>> [AboveThreshold(1.0, at).first(counts, SystemNoise()) for at in (5_000, 1_000_000, -5_000)]
        [2, None, 0]
    """

    epsilon: float
    threshold: int
    allow_large_epsilon: bool = attrs.field(default=False, kw_only=True, repr=False)
    threshold_scale: Fraction = attrs.field(init=False)
    query_scale: Fraction = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        budget = Budget(self.epsilon, allow_large_epsilon=self.allow_large_epsilon)
        set_fields(
            self,
            epsilon=budget.epsilon,
            threshold=_checked_threshold(self.threshold),
            threshold_scale=scale_at_least(2 / budget.epsilon_exact),
            query_scale=scale_at_least(4 / budget.epsilon_exact),
        )

    def init(self) -> SparseState:
        """Return the state before the first query."""
        return SparseState()

    def step(self, state: SparseState, value: int, noise: Noise) -> tuple[SparseState, bool]:
        """Test one exact value (PRIVATE): (state, whether it is above); ends with the first above."""
        if state.hits:
            raise SessionExhaustedError("AboveThreshold must not be asked after its hit; start a new one.")
        state, index = first_above(
            state, [value], self.threshold, self.threshold_scale, self.query_scale, noise
        )
        return state, index == 0

    def first(self, values: Ints, noise: Noise) -> int | None:
        """Return the index of the first value above, or None, the fail signal: never -1.

        EVERY CALL COSTS epsilon: each draws a new threshold, and none is remembered.

        Args:
            values: Shape (k,). Exact integers, PRIVATE.
        """
        exact = _checked_values(values)
        _, index = first_above(
            self.init(), exact, self.threshold, self.threshold_scale, self.query_scale, checked_source(noise)
        )
        return index if index < len(exact) else None

    def radius(self, queries: int, beta: float) -> int:
        """Return a: with probability >= 1 - beta no hit has value < T - a, and nothing passed over > T + a.

        For `queries` queries, each chosen after the outcome of the last; units of `threshold`. About half of
        `bounds.above_threshold_alpha`.

        Args:
            queries: At least 1. k.
            beta: In [1e-250, 1).
        """
        return _kept_radius(self.threshold_scale, self.query_scale, queries, beta)


@final
@attrs.frozen
class Sparse:
    """Which queries reach the threshold, up to `cutoff` of them: value + nu >= threshold + rho.

    allocation "restarts" (the book): rho ~ Lap(sigma) drawn again after every hit, nu ~ Lap(2 sigma), with
    sigma the smaller of 2c/epsilon and, for delta > 0 and where Theorem 3.20 allows it, sqrt(32 c
    ln(1/delta))/ epsilon: a public choice. The book takes the second for every delta > 0.

    allocation "optimal", delta = 0 only: one rho ~ Lap(b1) for the whole run, nu ~ Lap(b2), with 1/b1 : 2c/b2
    = 1 : (2c)^(2/3), which makes the variance of nu - rho least: (1/b1 + 2c/b2)-private (theory 12.4).

    The cutoff-th hit is reported. Values that were compared must not be.

    Dwork & Roth (2014), Algorithm 2 and Theorem 3.25; Lyu, Su & Li (2017), Algorithm 7 with eps3 = 0.

    Args:
        epsilon: In (0, 20].
        threshold: In [-2^60, 2^60]. In counts.
        cutoff: At least 1. c, the number of hits after which it halts.
        delta: In [0, 1). 0 for allocation="optimal".
        allow_large_epsilon: Accept a finite epsilon above 20.

    Attributes:
        threshold_scale, query_scale: Of rho and nu, counts.

    Examples:
        Four of ten thousand columns are large, three answers are wanted; radii are 154 and 96 records:

        >>> import numpy as np
        >>> from onlineic.noise import SystemNoise
        >>> counts = np.zeros(10_000, np.int64)
        >>> counts[[17, 4_000, 9_000, 9_500]] = 100_000
        >>> Sparse(1.0, threshold=50_000, cutoff=3, allocation="optimal").select(counts, SystemNoise())
        (17, 4000, 9000)
        >>> [Sparse(1.0, 0, 3, allocation=name).radius(10_000, 0.05) for name in ("restarts", "optimal")]
        [154, 96]
    """

    epsilon: float
    threshold: int
    cutoff: int
    delta: float = 0.0
    allocation: Literal["restarts", "optimal"] = "restarts"
    allow_large_epsilon: bool = attrs.field(default=False, kw_only=True, repr=False)
    threshold_scale: Fraction = attrs.field(init=False)
    query_scale: Fraction = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        budget = Budget(self.epsilon, self.delta, allow_large_epsilon=self.allow_large_epsilon)
        set_fields(
            self,
            epsilon=budget.epsilon,
            delta=budget.delta,
            threshold=_checked_threshold(self.threshold),
            cutoff=checked_integer("cutoff", self.cutoff, at_least=1),  # a numpy integer could overflow below
        )
        if self.allocation not in ("restarts", "optimal"):
            raise InvalidParameterError(
                f'allocation must be "restarts" or "optimal", got allocation={shown(self.allocation)}.'
            )
        kept = self.allocation == "optimal"
        if kept and budget.delta > 0.0:
            raise InvalidParameterError(
                f'delta must be 0 for allocation="optimal", got delta={budget.delta}: its noise uses none; '
                'give delta=0 or allocation="restarts".'
            )
        first, second = (_kept_scales if kept else _redrawn_scales)(budget, self.cutoff)
        set_fields(self, threshold_scale=first, query_scale=second)

    def init(self) -> SparseState:
        """Return the state before the first query."""
        return SparseState()

    def step(self, state: SparseState, value: int, noise: Noise) -> tuple[SparseState, bool]:
        """Test one exact value (PRIVATE): (state, whether it is above)."""
        if state.hits >= self.cutoff:
            raise SessionExhaustedError(f"Sparse must not be asked after its {self.cutoff} hits.")
        state, index = self._first(state, [value], noise)
        return state, index == 0

    def select(self, values: Ints, noise: Noise) -> tuple[int, ...]:
        """Return the indices of the hits, at most `cutoff`, in order: `step` on one value after the other.

        One call is one run and costs epsilon. Fewer than `cutoff` indices mean that the values came to their
        end without another hit: that is released as well.

        Args:
            values: Shape (k,). Exact integers, PRIVATE.
        """
        exact = _checked_values(values)
        state, place, noise = self.init(), 0, checked_source(noise)
        found: list[int] = []
        while place < len(exact) and len(found) < self.cutoff:
            state, easy = self._first(state, exact[place : place + CHUNK], noise)
            place += easy
            if state.hits > len(found):
                found.append(place)
                place += 1
        return tuple(found)

    def radius(self, queries: int, beta: float) -> int:
        """Return a: with probability >= 1 - beta no hit has value < T - a, and nothing passed over > T + a.

        For `queries` queries, each chosen after the outcome of the last; units of `threshold`. For "restarts"
        `bounds.sparse_margin`, and one unit more for noise on the integers: less than half of the book's. For
        "optimal" the moment bound of theory 12.4, or the union bound over |rho| and all nu if that is less.

        Args:
            queries: At least 1. k.
            beta: In [1e-250, 1).
        """
        if self.allocation == "optimal":
            return _kept_radius(self.threshold_scale, self.query_scale, queries, beta)
        beta = checked_real("beta", beta, at_least=LEAST_BETA, below=1.0)
        # not the threshold's scale: beyond 2^16 the query noise is rounded up to an integer, above its double
        return 1 + math.ceil(sparse_margin(self.cutoff, queries, float_up(self.query_scale / 2), beta))

    def _first(
        self, state: SparseState, values: Sequence[int] | Ints, noise: Noise
    ) -> tuple[SparseState, int]:
        return first_above(
            state,
            values,
            self.threshold,
            self.threshold_scale,
            self.query_scale,
            noise,
            keep=self.allocation == "optimal",
        )


def first_above(
    state: SparseState,
    values: Sequence[int] | Ints,
    threshold: int,
    threshold_scale: Fraction,
    query_scale: Fraction,
    noise: Noise,
    *,
    keep: bool = False,
) -> tuple[SparseState, int]:
    """Return (state, index of the first value with value + nu >= threshold + rho, or their number).

    A hit counts. After it the next test draws another rho, or with `keep` the same one goes on. Noise drawn
    for values after the hit was never looked at and is given back.

    Dwork & Roth (2014), Algorithm 2, lines 4-8; with `keep`, Lyu, Su & Li (2017), Algorithm 1.
    """
    rho = state.threshold_noise
    if rho is None:
        rho = int(noise.discrete_laplace(threshold_scale, 1)[0])
    draw = partial(noise.discrete_laplace, query_scale)
    index, excess = first_reaching(values, threshold + rho, draw, noise)
    if excess is None:
        return SparseState(state.hits, rho), index
    return SparseState(state.hits + 1, rho if keep else None), index


def _redrawn_scales(budget: Budget, cutoff: int) -> tuple[Fraction, Fraction]:
    """sigma and 2 sigma of c AboveThresholds: the smaller of the two that are private."""
    scale = 2 * cutoff / budget.epsilon_exact
    if budget.delta > 0.0:
        root = math.sqrt(32.0 * cutoff * -math.log(budget.delta)) * (1.0 + 1e-12)  # rounded up
        other = Fraction(root) / budget.epsilon_exact
        if other < scale and _composed(other, budget, cutoff) <= budget.epsilon:
            scale = other
    scale = scale_at_least(scale)
    return scale, scale_at_least(2 * scale)


def _composed(scale: Fraction, budget: Budget, cutoff: int) -> float:
    """What c AboveThresholds cost at delta, asked because Corollary 3.21 is false for large epsilon."""
    share = 2 / scale
    return advanced_composition(float_up(share), budget.delta, cutoff) if share <= 700 else math.inf


def _kept_scales(budget: Budget, cutoff: int) -> tuple[Fraction, Fraction]:
    """b1 about 1/eps1, then the b2 that what is left of epsilon pays for, exactly."""
    wide = min(exponential_scales(cutoff, budget.epsilon)[0], 1e300)  # infinite scales are refused by name
    first = scale_at_least(Fraction(wide))
    return first, scale_at_least(2 * cutoff / (budget.epsilon_exact - 1 / first))


def _kept_radius(threshold_scale: Fraction, query_scale: Fraction, queries: int, beta: float) -> int:
    """Least a of the moment bound or the union bound, one rho for all queries."""
    queries = checked_integer("queries", queries, at_least=1)
    beta = checked_real("beta", beta, at_least=LEAST_BETA, below=1.0)
    b1, b2 = float_up(threshold_scale), float_up(query_scale)
    union = DiscreteLaplace(threshold_scale).radius(beta / 2)
    union += DiscreteLaplace(query_scale).radius(beta / queries)
    if not b1 < b2:
        return union
    logs = math.log(queries / beta) - math.log1p(math.exp(-1 / b2))
    logs += math.log(math.tanh(0.5 / b1)) - math.log(math.tanh(0.5 / b1 - 0.5 / b2))
    return min(union, max(0, math.ceil(b2 * logs * (1 + 1e-12) - 1)))


def _checked_threshold(threshold: int) -> int:
    """A Python integer: of a narrow numpy integer, threshold + rho would wrap around, and privacy with it."""
    return checked_integer(
        "threshold",
        threshold,
        at_least=-LARGEST_THRESHOLD,
        at_most=LARGEST_THRESHOLD,
        remedy="it counts records, so write round(share * n)",
    )


def _checked_values(values: Ints) -> Ints:
    """Private integers as (k,) int64, never shown, pulled to where adding noise cannot overflow."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype == np.bool_ or not np.can_cast(array.dtype, np.int64):
        raise InvalidParameterError(
            "values must be a (k,) array of int64, and were not; round them to a public grid first."
        )
    return np.clip(array.astype(np.int64), -FARTHEST, FARTHEST)
