"""Calibration of `ExponentialSparse`: from epsilon and a plan to scales and threshold."""

import math
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting import Budget
from onlineic.errors import InvalidParameterError, checked_integer, checked_ratio, checked_real
from onlineic.noise import scale_at_least
from onlineic.sparse.scales import EXPONENTIAL_FALSE_HITS, exponential_scales, hits_paid

__all__ = ["ExponentialSettings", "calibrate"]


@final
@attrs.frozen
class ExponentialSettings:
    """What `calibrate` settles.

    Attributes
    ----------
    threshold : int
        T, units 1/(n 2^grid_bits).
    threshold_scale, query_scale : Fraction
        b1 and b2, same units.
    number_scale : Fraction or None
        lambda of a fresh answer of L1 sensitivity 1 count, counts.
    """

    threshold: int
    threshold_scale: Fraction
    query_scale: Fraction
    number_scale: Fraction | None


def calibrate(
    budget: Budget,
    *,
    n: int,
    hard_answers: int,
    max_queries: int,
    grid_bits: int,
    alpha: float | None,
    threshold: float | None,
    beta: float,
    false_hits: float | None,
    answer_share: Fraction,
    reserved: Fraction,
) -> ExponentialSettings:
    """Return scales whose exact charges for the plan fit epsilon; as in `ExponentialSparse.calibrated`."""
    cutoff = checked_integer("hard_answers", hard_answers, at_least=1)
    n = checked_integer("n", n, at_least=1)
    tests = checked_integer("max_queries", max_queries, at_least=1)
    beta = checked_real("beta", beta, above=0.0, below=1.0)
    reserved = checked_ratio("reserved", reserved, at_least=0.0, below=1.0)
    answer_share = checked_ratio("answer_share", answer_share, at_least=0.0, below=1.0)
    if alpha is not None and threshold is not None:
        raise InvalidParameterError(
            f"at most one of alpha and threshold must be given, got alpha={alpha}, threshold={threshold}."
        )
    if false_hits is None:
        false_hits = EXPONENTIAL_FALSE_HITS if alpha is None else 0.0
    false_hits = checked_real("false_hits", false_hits, at_least=0.0)
    if alpha is None and threshold is None and false_hits == 0.0:
        raise InvalidParameterError("false_hits must be > 0 without alpha or threshold, got false_hits=0.")
    count = hits_paid(cutoff, false_hits)
    epsilon = Fraction(budget.epsilon) * (1 - reserved)
    left = epsilon * (1 - answer_share)
    unit = 1 << checked_integer("grid_bits", grid_bits, at_least=0)
    # exact from here on: the hits take what the thresholds, rounded up, leave
    threshold_scale = scale_at_least(Fraction(exponential_scales(count, float(left))[0]) * unit)
    query_scale = scale_at_least(2 * count * unit / (left - unit / threshold_scale))
    b1, b2 = float(threshold_scale), float(query_scale)
    if alpha is not None:
        margin = b2 * math.log(2.0 * tests * b2 / ((b1 + b2) * 0.95 * beta))
        level = checked_real("alpha", alpha, above=0.0, below=1.0) * n * unit + margin + 2.0
    elif threshold is not None:
        level = checked_real("threshold", threshold, above=0.0, below=1.0) * n * unit
    else:
        level = b2 * math.log(max(1.0, 2.0 * tests * b2 / ((b1 + b2) * false_hits * cutoff)))
    return ExponentialSettings(
        threshold=max(1, math.ceil(level)),
        threshold_scale=threshold_scale,
        query_scale=query_scale,
        number_scale=scale_at_least(count / (epsilon * answer_share)) if answer_share else None,
    )
