"""Exact tails, one-shot bounds and the sparse vector with Laplace noise: theorems as functions.

Unless a name says otherwise: scales and thresholds in counts (sensitivity 1), errors divided by n.
Shared parameters: epsilon > 0, delta in [0, 1), beta in (0, 1) the chance that an accuracy statement
fails, n >= 1 records, cutoff c >= 1 hits, queries k >= 1 comparisons. Any other value raises
`InvalidParameterError`.

Proof: docs/theory/accuracy.md, 6.5, 6.6; docs/theory/sparse.md, 5.3.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from numbers import Real
from typing import Literal, final

import attrs

from onlineic.accounting.composition import advanced_composition
from onlineic.accounting.rounding import float_up
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    checked_integer,
    checked_ratio,
    checked_real,
    is_number_of,
    shown,
)
from onlineic.noise.laws import checked_beta

Branch = Literal["pure", "repaired"]


def laplace_bound(epsilon: float, beta: float, sensitivity: float = 1.0, count: int = 1) -> float:
    """Return sensitivity k ln(k/beta)/epsilon: k Laplace answers at epsilon/k, all within it.

    Exact for k = 1 and continuous noise; in the unit of the sensitivity.

    Dwork & Roth (2014), Theorem 3.8 with a union bound over the answers.
    """
    count = checked_integer("count", count, at_least=1)
    sensitivity = checked_real("sensitivity", sensitivity, above=0.0)
    return sensitivity * count * math.log(count / checked_beta(beta)) / _epsilon(epsilon)


def above_threshold_alpha(queries: int, epsilon: float, beta: float) -> float:
    """Return 8 (ln k + ln(2/beta))/epsilon, counts: the error of AboveThreshold over k queries.

    Dwork & Roth (2014), Theorem 3.24.
    """
    queries = checked_integer("queries", queries, at_least=1)
    return 8 * (math.log(queries) + math.log(2 / checked_beta(beta))) / _epsilon(epsilon)


def sparse_alpha(cutoff: int, queries: int, epsilon: float, delta: float, beta: float) -> float:
    """Return 8c L/epsilon, or sqrt(512 c ln(1/delta)) L/epsilon if delta > 0, L = ln k + ln(2c/beta).

    Dwork & Roth (2014), Theorem 3.26 (8c, not 8, in its text).
    """
    cutoff = checked_integer("cutoff", cutoff, at_least=1)
    queries, delta = checked_integer("queries", queries, at_least=1), _delta(delta)
    logs = math.log(queries) + math.log(2 * cutoff / checked_beta(beta))
    factor = 8 * cutoff if delta == 0.0 else math.sqrt(512 * cutoff * -math.log(delta))
    return factor * logs / _epsilon(epsilon)


def numeric_sparse_branch(cutoff: float, delta: float) -> Branch:
    """Return the calibration with the smaller noise and alpha: pure iff delta = 0 or c <= 8 ln(2/delta).

    Compares 9c with 9 sqrt(8 c ln(2/delta)); a public decision. The book has no such choice.
    """
    cutoff, delta = checked_real("cutoff", cutoff, at_least=1.0), _delta(delta)
    return "pure" if delta == 0.0 or cutoff <= 8 * math.log(2 / delta) else "repaired"


@final
@attrs.frozen
class SparseScales:
    """Scales of NumericSparse in counts: Lap(threshold) per epoch, Lap(query) per test, Lap(number).

    Args:
        threshold, query, number: Above 0, counts.
    """

    threshold: Fraction
    query: Fraction
    number: Fraction
    branch: Branch


def numeric_sparse_scales(
    cutoff: int, epsilon: float | Fraction, delta: float = 0.0, branch: Branch | None = None
) -> SparseScales:
    """Return the scales s, 2s, 4s of NumericSparse, rounded up, with 8/9 of epsilon on the tests.

    pure: s = 9c/(4 epsilon) exactly. repaired: s = 9 sqrt(32 c ln(2/delta))/(8 epsilon), rounded up to
    a multiple of 2^-40. branch None takes the smaller. No scale depends on the number of queries.

    Dwork & Roth (2014), Algorithm 3, with the split 8:1 for delta > 0 as well, each half by Corollary 3.21 at
    delta/2; the sum is checked by Theorem 3.20 (theory 5.3).

    Raises:
        InvalidParameterError: Also if branch is "repaired" and delta = 0, or its two halves cost more than
            epsilon.
    """
    cutoff, delta = checked_integer("cutoff", cutoff, at_least=1), _delta(delta)
    exact = checked_ratio("epsilon", epsilon, above=0.0)
    if (branch or numeric_sparse_branch(cutoff, delta)) == "pure":
        return SparseScales(9 * cutoff / (4 * exact), 9 * cutoff / (2 * exact), 9 * cutoff / exact, "pure")
    if delta == 0.0:
        raise InvalidParameterError(
            'delta must be > 0 for branch="repaired", got delta=0; use branch="pure".'
        )
    with localcontext(Context(prec=60)):
        spread = Fraction((32 * cutoff * (2 / Decimal(delta)).ln()).sqrt() * (1 + Decimal("1e-40")))
    scale = Fraction(math.ceil(9 * spread / (8 * exact) * 2**40), 2**40)
    cost = math.fsum(
        advanced_composition(float_up(share), delta / 2, cutoff) if share <= 700 else math.inf
        for share in (2 / scale, 1 / (4 * scale))
    )
    if cost * (1 + 2.0**-50) > exact:
        raise InvalidParameterError(
            f"epsilon must be small enough for Corollary 3.21, got epsilon={epsilon} with delta={delta}, "
            f'cutoff={cutoff}, which cost {cost:.4g}; use branch="pure".'
        )
    return SparseScales(scale, 2 * scale, 4 * scale, "repaired")


def numeric_sparse_alpha(
    cutoff: float,
    queries: float,
    epsilon: float,
    delta: float,
    beta: float,
    n: int = 1,
    branch: Branch | None = None,
) -> float:
    """Return 9c L/(epsilon n), or 9 sqrt8 L sqrt(c ln(2/delta))/(epsilon n), L = ln k + ln(4c/beta).

    With probability >= 1 - beta every number is within alpha, every easy answer has value at most
    threshold + alpha, and every hit at least threshold - alpha, as long as at most c hits can occur.

    Dwork & Roth (2014), Theorem 3.28, repaired (theory 6.6).

    Args:
        cutoff, queries: At least 1. c and k, real for a solver's sake; k = 2Q where each query is tested on
            both sides.
        branch: None: the smaller, `numeric_sparse_branch`.
    """
    cutoff = checked_real("cutoff", cutoff, at_least=1.0)
    queries = checked_real("queries", queries, at_least=1.0)
    scale = _epsilon(epsilon) * checked_integer("n", n, at_least=1)
    logs = math.log(queries) + math.log(4 * cutoff / checked_beta(beta))
    if (branch or numeric_sparse_branch(cutoff, delta)) == "pure":
        return 9 * cutoff * logs / scale
    small = checked_real("delta", delta, above=0.0, below=1.0, remedy='branch="repaired" needs delta > 0')
    return 9 * math.sqrt(8) * logs * math.sqrt(cutoff * math.log(2 / small)) / scale


def sparse_margin(cutoff: int, queries: int, threshold_scale: float, beta: float) -> float:
    """Return 2s ln(k sqrt(pi (c + 1/2))/(2 beta)): how far any test of a stream is off, adaptively.

    For threshold noise Lap(s) redrawn per hit and query noise Lap(2s): with probability >= 1 - beta no
    hit has value below threshold - a and no easy answer one above threshold + a. In the unit of s.

    Not in the book; replaces the margin of Theorem 3.26 (theory 6.5).
    """
    cutoff, queries = (
        checked_integer("cutoff", cutoff, at_least=1),
        checked_integer("queries", queries, at_least=1),
    )
    scale = checked_real("threshold_scale", threshold_scale, above=0.0)
    return 2 * scale * math.log(queries * math.sqrt(math.pi * (cutoff + 0.5)) / (2 * checked_beta(beta)))


def records_for(number: float) -> int:
    """Least whole number of records >= number, refused beyond 2^63."""
    if not (is_number_of(number, Real) and number == number):
        raise InvalidParameterError(f"number must be a number, got number={shown(number)}.")
    try:
        number = float(number)
    except OverflowError:
        number = math.inf
    if not number <= 2.0**63:
        raise InfeasibleAccuracyError(
            f"n must be <= 2^63, got n={number:.3g}; ask for a larger error or epsilon."
        )
    return math.ceil(max(1.0, number))


def least_records(error: Callable[[int], float], alpha: float) -> int:
    """Least n with alpha >= error(n), for an error that falls as 1/n."""
    n = max(1, records_for(error(1) / alpha) - 1)
    while alpha < error(n):
        n += 1 + (n >> 52)
    return n


def _epsilon(epsilon: float | Fraction) -> float:
    """Checked epsilon."""
    return checked_real("epsilon", epsilon, above=0.0)


def _delta(delta: float) -> float:
    """Checked delta."""
    return checked_real("delta", delta, at_least=0.0, below=1.0)
