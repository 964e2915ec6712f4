"""Calibration of `GumbelSparse`: from a budget and a plan to order, scale, threshold and grid."""

import math
from fractions import Fraction
from typing import final

import attrs

from onlineic._gumbel import SCALE_LIMIT
from onlineic.accounting import Budget, gumbel_charge, renyi_capacity
from onlineic.errors import (
    InfeasibleAccuracyError,
    InvalidParameterError,
    checked_integer,
    checked_ratio,
    checked_real,
)
from onlineic.noise import scale_at_least
from onlineic.sparse.scales import (
    GUMBEL_FALSE_HITS,
    gumbel_scale,
    hits_paid,
    ratio_at_scale,
    scale_at_order,
)

__all__ = ["GumbelSettings", "calibrate", "sigma_at_least"]

SIGMA_LIMIT = 1 << 26  # the discrete Gaussian's largest scale, grid units
LEAST_GRID = 8  # fewer bits would round weights too coarsely
STEEPEST = 26  # largest T/b: then the rare slow path of a test tells nothing beyond its label


@final
@attrs.frozen
class GumbelSettings:
    """What `calibrate` settles.

    Attributes
    ----------
    order : Fraction
        Multiple of 1/64.
    scale : Fraction
        b, units 1/(n 2^grid_bits).
    threshold : int
        T, same units.
    grid_bits : int
    ratio : Fraction
        sigma / b: as wished, or less where b had to be raised for the threshold.
    """

    order: Fraction
    scale: Fraction
    threshold: int
    grid_bits: int
    ratio: Fraction


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
    ratio: Fraction,
    partition: bool,
    reserved: Fraction,
) -> GumbelSettings:
    """Return the least noise that pays for the plan; parameters as in `GumbelSparse.calibrated`.

    The real-valued optimum is rounded to the private side: order to a multiple of 1/64, b up to what the
    sampler knows, sigma up, then b is raised until the exact prices fit the exact capacity.
    """
    n = checked_integer("n", n, at_least=1)
    cutoff = checked_integer("hard_answers", hard_answers, at_least=1)
    tests = checked_integer("max_queries", max_queries, at_least=1)
    beta = checked_real("beta", beta, above=0.0, below=1.0)
    reserved = checked_ratio("reserved", reserved, at_least=0.0, below=1.0)
    ratio, share = checked_ratio("ratio", ratio, above=0.0), float(reserved)
    if budget.delta == 0.0:
        raise InvalidParameterError(
            "delta must be in (0, 1) for GumbelSparse, got delta=0; use ExponentialSparse."
        )
    if alpha is not None and threshold is not None:
        raise InvalidParameterError(
            f"at most one of alpha and threshold must be given, got alpha={alpha}, threshold={threshold}."
        )
    if false_hits is None:
        false_hits = GUMBEL_FALSE_HITS if alpha is None else 0.0
    false_hits = checked_real("false_hits", false_hits, at_least=0.0)
    if alpha is None and threshold is None and false_hits == 0.0:
        raise InvalidParameterError("false_hits must be > 0 without alpha or threshold, got false_hits=0.")
    count = hits_paid(cutoff, false_hits)
    squared = 2.0 if partition else 1.0
    best = gumbel_scale(
        count,
        budget.epsilon,
        budget.delta,
        ratio=float(ratio),
        squared_sensitivity=squared,
        reserved=share,
    )
    order = Fraction(max(65, round(64 * best.order)), 64)
    least = scale_at_order(
        float(order), count, budget.epsilon, budget.delta, squared / float(ratio) ** 2, share
    )
    if alpha is not None:
        alpha = checked_real("alpha", alpha, above=0.0, below=1.0)
    if threshold is not None:
        threshold = checked_real("threshold", threshold, above=0.0, below=1.0)
    wide = _least_for_threshold(n, tests, beta, alpha, threshold)
    if wide > least:  # tests become cheaper than planned: the answers take what is left
        least = wide
        finest = ratio_at_scale(float(order), least, count, budget.epsilon, budget.delta, squared, share)
        ratio = min(ratio, Fraction(math.ceil(finest * 2**20), 2**20))
    bits = _grid_bits(n, least, float(ratio), checked_integer("grid_bits", grid_bits, at_least=0))
    payable = (1 - reserved) * renyi_capacity(order, budget.epsilon, budget.delta)
    scale, step = scale_at_least(Fraction(least) * (1 << bits)), 1
    while not _payable(order, scale, bits, ratio, partition, payable / count):
        scale = scale_at_least(scale + (Fraction(step, 2**16) if scale < 2**16 else step))
        step *= 2
    unit = n << bits
    if alpha is not None:
        level = alpha * unit + float(scale) * math.log(tests / (0.8 * beta)) + 2.0
    elif threshold is not None:
        level = threshold * unit
    else:
        level = float(scale) * math.log(max(1.0, tests / (false_hits * cutoff)))
        level = min(level, math.floor(STEEPEST * scale))
    return GumbelSettings(order, scale, max(1, math.ceil(level)), bits, ratio)


def sigma_at_least(sigma: Fraction, from_bits: int, to_bits: int) -> int:
    """Gaussian scale on the grid 2^-to_bits, whole units, not below `sigma` of the grid 2^-from_bits."""
    return math.ceil(sigma * (1 << to_bits) / (1 << from_bits))


def _least_for_threshold(
    n: int, tests: int, beta: float, alpha: float | None, threshold: float | None
) -> float:
    """Least b, counts, at which the threshold asked for is at most 26 b."""
    if alpha is not None:
        room = STEEPEST - math.log(tests / (0.8 * beta))
        if room < 1.0:
            raise InvalidParameterError(
                f"max_queries/beta must be below 5e10 with alpha, got max_queries={tests}, beta={beta}."
            )
        return (alpha * n + 4.0) / room
    if threshold is not None:
        return (threshold * n + 1.0) / STEEPEST
    return 2.0 / STEEPEST


def _grid_bits(n: int, scale: float, ratio: float, wanted: int) -> int:
    """Finest grid, at most `wanted` bits, on which n, b and sigma (counts) stay in range."""
    most = min(
        53 - (n - 1).bit_length(),
        SCALE_LIMIT.bit_length() - 2 - math.ceil(math.log2(scale)),
        SIGMA_LIMIT.bit_length() - 1 - math.ceil(math.log2(ratio * scale * 1.001)),
    )
    if most < min(wanted, LEAST_GRID):
        raise InfeasibleAccuracyError(
            f"the noise must fit the sampler on a grid of {min(wanted, LEAST_GRID)} bits, got b={scale:.4g} "
            f"and sigma={ratio * scale:.4g} records at n={n}; raise epsilon or delta, or lower hard_answers."
        )
    return min(wanted, most)


def _payable(
    order: Fraction, scale: Fraction, bits: int, ratio: Fraction, partition: bool, most: Fraction
) -> bool:
    """Whether the dearest planned hard answer costs at most `most` ticks."""
    # (test, answer on the finest grid) is the dearest number: sigma is rounded up least there
    answers = [(Fraction(sigma_at_least(ratio * scale, bits, bits)), 1 << 2 * bits)]
    if partition:
        answers.append((Fraction(sigma_at_least(ratio * scale, bits, 0)), 2))
    try:
        return all(
            gumbel_charge(order, 1 << bits, scale, sigma, squared) <= most for sigma, squared in answers
        )
    except InvalidParameterError:  # x >= 1
        return False
