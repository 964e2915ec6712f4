"""Selection of a best candidate from integer scores: the exponential mechanism, and the noisy maximum.

Scores are integers in any unit, and sensitivity says how far one replaced record moves any one of them, in
the same unit. Scores may move different ways (one count rises while another falls), so neither mechanism can
use the half of its noise that would do where all move the same way.

Proof: docs/theory/mechanisms.md, 9.3, 12.1.
"""

import math
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints, Words
from onlineic.accounting.budget import Budget
from onlineic.accounting.rounding import float_up
from onlineic.errors import InvalidParameterError, checked_integer, checked_real
from onlineic.noise.categorical import draw
from onlineic.noise.sources import Noise, checked_source, scale_at_least

OUT_OF_REACH = 2**62  # more than 2^14 scales of noise, and more than the sampler can draw


def checked_epsilon(epsilon: float) -> float:
    """The epsilon of one release, as a `Budget` keeps it."""
    return Budget(epsilon).epsilon


def checked_sensitivity(sensitivity: int) -> int:
    """A sensitivity in Python's integers: numpy's could overflow."""
    return checked_integer("sensitivity", sensitivity, at_least=1)


@final
@attrs.frozen
class ExponentialMechanism:
    """P(i) proportional to exp(epsilon score_i/(2 sensitivity)), drawn exactly, is (epsilon, 0)-private.

    For one choice `NoisyMax` on a fine grid errs less; this is for many choices under zCDP, for candidates
    with multiplicities, or where the law itself is wanted.

    Dwork & Roth (2014), Definition 3.4 and Theorem 3.10, to the last bit (`onlineic.noise.categorical`).

    Args:
        epsilon: In (0, 20].
        sensitivity: At least 1. How far one record moves any single score, score units.

    Attributes:
        scale: 2 sensitivity/epsilon, rounded up.

    Examples:
        >>> from onlineic.mechanisms import ExponentialMechanism
        >>> from onlineic.noise import SystemNoise
        >>> votes, mechanism = np.array([120, 480, 310]), ExponentialMechanism(epsilon=1.0)
        >>> mechanism.radius(candidates=3, beta=1e-9), mechanism.select(votes, SystemNoise())
        (42, 1)
    """

    epsilon: float = attrs.field(converter=checked_epsilon)
    sensitivity: int = attrs.field(default=1, converter=checked_sensitivity)
    scale: Fraction = attrs.field(init=False)

    @scale.default
    def _scale(self) -> Fraction:
        return scale_at_least(2 * self.sensitivity / Fraction(self.epsilon))

    @property
    def zcdp(self) -> Fraction:
        """rho = epsilon^2/8: what one choice costs under zero-concentrated privacy (Cesar & Rogers 2021)."""
        return Fraction(self.epsilon) ** 2 / 8

    def select(self, scores: Ints, noise: Noise) -> int:
        """Return the index drawn among (m,) int64 scores (PRIVATE), m >= 1."""
        return draw(_behind(scores), self.scale, checked_source(noise))

    def probabilities(self, scores: Ints) -> Floats:
        """Return the law of `select`, (m,) float64: PRIVATE unless the scores are public (audits, tables)."""
        weights = np.exp(-_behind(scores).astype(np.float64) / float(self.scale))
        return np.asarray(weights / weights.sum())

    def radius(self, candidates: int, beta: float, best: int = 1) -> int:
        """Return the least r such that a choice of score below OPT - r has probability at most beta.

        For any scores of m = `candidates` of which at least `best` are best. No smaller r will do where all
        others are just r + 1 worse. Sharper than Dwork & Roth (2014), Theorem 3.11 (`exponential_bound`).
        """
        candidates = checked_integer("candidates", candidates, at_least=1)
        best = checked_integer("best", best, at_least=1, at_most=candidates)
        beta = checked_real("beta", beta, above=0.0, below=1.0)
        if candidates == best:
            return 0
        odds = (-math.log(beta), math.log1p(-beta))
        return _least_radius(self.scale, math.log(candidates - best), -math.log(best), *odds)


@final
@attrs.frozen
class NoisyMax:
    """The lowest index of the largest score + Z, Z one-sided geometric, is (epsilon, 0)-private.

    P(z) is proportional to exp(-z epsilon/(2 sensitivity)), z >= 0, fresh for every candidate; only the index
    may be released. On a coarse grid, of scale below about 10, ties favour low indices: refine it then
    (scores and sensitivity times 2^16).

    Replaces Dwork & Roth (2014), section 3.4 and Claim 3.9; the law is that of permute-and-flip (McKenna &
    Sheldon 2020) but for ties. Lap(1/epsilon) of the book rests on counts that all move the same way.

    Args:
        epsilon: In (0, 20].
        sensitivity: At least 1. How far one record moves any single score, score units.

    Attributes:
        scale: 2 sensitivity/epsilon, rounded up.
    """

    epsilon: float = attrs.field(converter=checked_epsilon)
    sensitivity: int = attrs.field(default=1, converter=checked_sensitivity)
    scale: Fraction = attrs.field(init=False)

    @scale.default
    def _scale(self) -> Fraction:
        return scale_at_least(2 * self.sensitivity / Fraction(self.epsilon))

    def select(self, scores: Ints, noise: Noise) -> int:
        """Return the index chosen among (m,) int64 scores (PRIVATE), m >= 1."""
        # score + noise could wrap; max(score, best - cut) moves no further than its parts: as private
        behind = np.minimum(_behind(scores), OUT_OF_REACH).astype(np.int64)
        return int(np.argmax(checked_source(noise).geometric(self.scale, behind.size) - behind))

    def radius(self, candidates: int, beta: float) -> int:
        """Return the least r with (m - 1) q^(r+1)/(1 + q) <= beta: the chosen score is >= OPT - r.

        q = e^(-1/scale), m = `candidates`, with probability at least 1 - beta: about (2 sensitivity/epsilon)
        ln((m - 1)/(2 beta)), by a union bound over differences of two geometric variables.
        """
        others = checked_integer("candidates", candidates, at_least=1) - 1
        beta = checked_real("beta", beta, above=0.0, below=1.0)
        if others == 0:
            return 0
        both = math.log1p(math.exp(-1 / float_up(self.scale)))
        return _least_radius(self.scale, math.log(others), -math.log(beta), -both)


def exponential_bound(
    epsilon: float, candidates: int, beta: float, sensitivity: float = 1.0, best: int = 1
) -> float:
    """Return (2 sensitivity/epsilon) ln(m/(m_opt beta)): the exponential mechanism loses no more.

    With probability at least 1 - beta, for any scores of m candidates of which at least m_opt are best.

    Dwork & Roth (2014), Theorem 3.11. `NoisyMax` draws another law, with the smaller `NoisyMax.radius`.

    Args:
        epsilon: In (0, 20].
        candidates, best: At least 1. m and m_opt <= m.
        beta: In (0, 1).
        sensitivity: Above 0. Of every score.
    """
    epsilon = Budget(epsilon).epsilon
    candidates = checked_integer("candidates", candidates, at_least=1)
    best = checked_integer("best", best, at_least=1, at_most=candidates)
    beta = checked_real("beta", beta, above=0.0, below=1.0)
    logs = math.log(candidates) - math.log(best) - math.log(beta)
    return 2 * checked_real("sensitivity", sensitivity, above=0.0) / epsilon * logs


def exact_integers(name: str, values: int | Ints) -> Ints:
    """Private integers as a fresh (m,) int64 array; a float is refused, and never shown."""
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1 or not np.can_cast(array.dtype, np.int64) or array.dtype == np.bool_:
        raise InvalidParameterError(
            f"{name} must be an int or an (m,) array of int64, and were not; "
            "round them to a public grid first."
        )
    return array.astype(np.int64)


def _least_radius(scale: Fraction, *logs: float) -> int:
    """The least r >= 0 with (r + 1)/scale >= the sum, rounded up: 1/beta, m and e^-r need not be floats."""
    excess = math.fsum(logs) + 2.0**-50 * math.fsum(map(abs, logs))
    return max(0, math.ceil(float_up(scale) * excess) - 1)


def _behind(scores: Ints) -> Words:
    """Exact differences to the best of one or more scores; up to 2^64 - 1, so they would wrap in int64."""
    exact = exact_integers("scores", scores)
    if exact.size == 0:
        raise InvalidParameterError("scores must hold at least one candidate, got none.")
    return np.asarray((exact.max() - exact).view(np.uint64))
