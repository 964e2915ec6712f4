"""Estimating a distribution from noisy tables of which each refines the next, in closed form.

A first fit to such tables by descent is slow where the noise is small, and is stopped too early or too late.
Here every block's count is the least-squares one given all tables, and what the parts of a block deviate
from the prior's split of it is shrunk: half by as much as noise alone would explain in that block, half by
what all blocks of its level say of how parts are spread (`empirical_bayes`). A single table is denoised by
the latter alone. Pure functions of released tables.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.hypothesis.empirical_bayes import FLOOR, denoised, posterior
from onlineic.hypothesis.fitting import CoarseDomain, Fit, Prior, block_codes, fitted, noisy_masses
from onlineic.queries.partitions import Measurement, Partition

PASSES = 32  # of a projection at most: mostly five to ten are made
PRIOR_SHARE = 0.1  # of the prior in the result, standard deviations of a cell: keeps logarithms finite


def fit_nested(prior: Prior, measurements: Sequence[Measurement]) -> Fit | None:
    """Return the estimate from one partition, or a chain of them, or None if they are no chain.

    The potentials of the finest table are log(h / prior), the others are zero.
    """
    if len({one.target.axes for one in measurements}) > 1:
        return None
    values, scales = noisy_masses(measurements)
    order = sorted(range(len(values)), key=lambda index: -values[index].size)
    codes = block_codes([one.target for one in measurements])
    groups = []
    for fine, coarse in itertools.pairwise(order):
        groups.append(codes[coarse][np.unique(codes[fine], return_index=True)[1]])
        if not np.array_equal(groups[-1][codes[fine]], codes[coarse]):
            return None
    finest = order[0]
    domain = CoarseDomain.of(prior, measurements)
    potentials = list(map(np.zeros_like, values))
    base = domain.split(domain.evaluate(np.concatenate(potentials))[0])[finest]
    if base.min() < np.finfo(np.float64).tiny:  # no finite potential repairs such a block
        return None
    if groups:
        blocks = shrunken(
            [values[index] for index in order], [scales[index] for index in order], groups, base
        )
    else:
        target = measurements[finest].target
        shape = target.shape if isinstance(target, Partition) else (-1,)
        blocks = denoised(values[finest].reshape(shape), scales[finest], base.reshape(shape)).ravel()
    mixed = min(1.0, PRIOR_SHARE * scales[finest])
    blocks = (1.0 - mixed) * blocks + mixed * base
    potentials[finest] = np.log(blocks / base)
    theta, observed = np.concatenate(potentials), np.concatenate(values)
    variance = np.repeat([scale**2 for scale in scales], domain.sizes)
    return fitted(domain, theta, domain.evaluate(theta)[0], observed, variance, 1)


def shrunken(
    values: Sequence[Floats], scales: Sequence[float], groups: Sequence[Ints], base: Floats
) -> Floats:
    """Return non-negative masses of the finest blocks, of total 1.

    Hay, Rastogi, Miklau & Suciu (2010) for least squares on a tree, up and down; James & Stein (1961),
    positive part, for the parts of one block, k parts of a known sum having k - 1 degrees of freedom.

    The mean of this and of the posterior of the level errs by about 3 % less than either alone.

    Args:
        values: Noisy masses of the blocks of every level, finest first.
        scales: Standard deviation of each level.
        groups: For every level but the last, which block of the next level each block is a part of.
        base: Prior masses of the finest blocks.
    """
    best, variances, priors = [values[0]], [np.full(values[0].size, scales[0] ** 2)], [base]
    for own, scale, group in zip(values[1:], scales[1:], groups, strict=True):
        parts, spread = np.bincount(group, best[-1]), np.bincount(group, variances[-1])
        share = spread / (scale**2 + spread)
        best.append(parts + (own - parts) * share)
        variances.append(scale**2 * share)
        priors.append(np.bincount(group, priors[-1]).astype(np.float64))
    whole = np.ones(1)
    joins = [*groups, np.zeros(best[-1].size, np.int64)]
    for estimate, spread, prior, group in zip(
        best[::-1], variances[::-1], priors[::-1], joins[::-1], strict=True
    ):
        # what the parts lack to their whole is given to them in proportion to their variances
        lacking = (whole - np.bincount(group, estimate)) / np.bincount(group, spread)
        expected = (whole / np.bincount(group, prior))[group] * prior
        agreeing = estimate + lacking[group] * spread
        deviation = agreeing - expected
        noise = np.maximum(np.bincount(group) - 3.0, 0.0)
        seen = np.bincount(group, deviation**2 / spread)
        kept = np.maximum(0.0, 1.0 - noise / np.maximum(seen, np.maximum(noise, 1.0)))
        scale = math.sqrt(float(spread.mean()))
        likely, _ = posterior(agreeing, scale, np.maximum(expected, FLOOR * scale))
        whole = _projected((expected + kept[group] * deviation + likely) / 2.0, group, whole)
    return whole


def _projected(values: Floats, group: Ints, whole: Floats) -> Floats:
    """Return the nearest non-negative masses whose sum over each group is its whole."""
    held = np.ones(values.size, bool)
    result = values
    for _ in range(PASSES):  # every pass but the last drops a part: Michelot (1986)
        sums, counts = np.bincount(group, values * held), np.bincount(group, held)
        result = np.where(held, values + ((whole - sums) / np.maximum(counts, 1))[group], 0.0)
        if result.min() >= 0.0:
            break
        held &= result > 0.0
    return np.maximum(result, 0.0)
