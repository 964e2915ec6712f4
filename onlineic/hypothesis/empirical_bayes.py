"""Estimating masses from one noisy table by what the table itself says of how masses are spread.

Non-negative least squares moves mass from large cells to the many empty ones whose noise was positive. Here
every mass is a multiple of an expected one, and the law of the multiples is learned from all cells at once.
Functions of released tables alone.

Robbins (1956), empirical Bayes; Kiefer & Wolfowitz (1956), the nonparametric maximum likelihood of a mixing
law; Efron (2016), on a grid of values; Deming & Stephan (1940), iterative proportional fitting.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from onlineic._typing import Floats

STEP = 1.35  # from one multiple to the next: each stands for all between its neighbours
ROUNDS = 60  # of expectation and maximization
LEARNED_FROM = 20_000  # cells, evenly chosen
CHUNK = 4096  # cells whose posteriors are held together
FLOOR = 1e-3  # least expected mass, standard deviations of a cell: of an empty label some may be there
CLEAR = 2.0  # standard deviations of chance, beyond which sums lack more than cells on their own
LEAST_KEPT = 0.1  # of a sum that noise would take away
PAIR_ROUNDS = 6  # of iterative proportional fitting
MOST_WORK = 2**25  # cells times tables of pairs, up to which the pairs are fitted


def denoised(table: Floats, scale: float, prior: Floats) -> Floats:
    """Return non-negative masses of total 1 from noisy ones of all cells.

    What is expected of a cell is what its labels and pairs of labels say, whose sums have least noise for
    their size; they are denoised in the same way first, beginning with the prior.

    Args:
        table: Noisy masses of the cells, an axis an attribute.
        scale: Standard deviation of the noise in each.
        prior: Same shape. Positive, of total 1.
    """
    expected = prior
    axes = range(table.ndim)
    for axis in axes if table.ndim > 1 else ():
        expected = _agreeing(expected, (axis,), _sums(table, scale, expected, (axis,)))
    pairs = list(itertools.combinations(axes, 2)) if table.ndim > 2 else []
    if len(pairs) * table.size <= MOST_WORK:
        known = [_sums(table, scale, expected, kept) for kept in pairs]
        for _ in range(PAIR_ROUNDS):
            for kept, masses in zip(pairs, known, strict=True):
                expected = _agreeing(expected, kept, masses)
    else:
        pairs = []
    masses = _of_total_one(*posterior(table, scale, np.maximum(expected, FLOOR * scale)))
    return _balanced(masses, table, pairs or [(axis,) for axis in axes if table.ndim > 1])


def posterior(values: Floats, scale: float, expected: Floats) -> tuple[Floats, Floats]:
    """Return posterior means and variances of masses, given noisy values and what was expected.

    Args:
        values, expected: Of one shape. The second positive.
        scale: Standard deviation of the noise, taken as normal.
    """
    shape, values, expected = values.shape, values.ravel(), expected.ravel()
    highest = max(2.0, float(np.max((values + 3.0 * scale) / expected)))
    least = min(0.3, max(1e-9, 0.2 * scale / float(expected.max())))
    count = math.ceil(math.log(highest / least) / math.log(STEP)) + 1
    multiples = np.concatenate([np.zeros(1), least * STEP ** np.arange(count)])
    widths = 0.5 * math.log(STEP) * multiples
    chosen = np.linspace(0, values.size - 1, min(values.size, LEARNED_FROM)).astype(np.int64)
    seen = _likelihoods(values[chosen], expected[chosen], scale, multiples, widths)
    weights = np.full(multiples.size, 1.0 / multiples.size)
    shares, sums = np.empty_like(seen), np.empty((len(seen), 1))
    for _ in range(ROUNDS):  # of small tables the calls cost more than what they do
        np.multiply(seen, weights, out=shares)
        np.add.reduce(shares, axis=1, keepdims=True, out=sums)
        np.divide(shares, sums, out=shares)
        weights = np.add.reduce(shares, axis=0) / len(seen)
    weights = np.maximum(weights, 1e-12)  # of none that was not chosen is a value impossible
    means, variances = np.empty(values.size), np.empty(values.size)
    for start in range(0, values.size, CHUNK):
        part = slice(start, start + CHUNK)
        shares = _likelihoods(values[part], expected[part], scale, multiples, widths) * weights
        shares /= shares.sum(axis=1, keepdims=True)
        # a multiple and the width around it are a normal law, whose posterior is normal
        own = (widths * expected[part, None]) ** 2
        kept = own / (own + scale**2)
        centres = multiples * expected[part, None]
        held = np.maximum(0.0, centres + kept * (values[part, None] - centres))
        means[part] = (shares * held).sum(axis=1)
        variances[part] = (shares * (held**2 + kept * scale**2)).sum(axis=1) - means[part] ** 2
    return means.reshape(shape), np.maximum(variances, 0.0).reshape(shape)


def _likelihoods(values: Floats, expected: Floats, scale: float, multiples: Floats, widths: Floats) -> Floats:
    """Return the densities of values at every multiple, each row relative to its largest."""
    variance = scale**2 + (widths * expected[:, None]) ** 2
    logs = -0.5 * ((values[:, None] - multiples * expected[:, None]) ** 2 / variance + np.log(variance))
    result: Floats = np.exp(logs - logs.max(axis=1, keepdims=True))
    return result


def _of_total_one(means: Floats, variances: Floats) -> Floats:
    """Return non-negative masses of total 1: what lacks is given in proportion to the variances."""
    for _ in range(30):
        lacking = 1.0 - means.sum()
        moved = variances if lacking > 0.0 else np.where(means > 0.0, variances, 0.0)
        if abs(lacking) < 1e-12 or moved.sum() <= 0.0:
            break
        means = np.maximum(0.0, means + lacking * moved / moved.sum())
    total = float(means.sum())
    return means / total if total > 0.0 else np.full(means.shape, 1.0 / means.size)


def _sums(table: Floats, scale: float, expected: Floats, kept: tuple[int, ...]) -> Floats:
    """Return the denoised masses of the cells over some axes."""
    rest = tuple(axis for axis in range(table.ndim) if axis not in kept)
    sums = table.sum(axis=rest)
    deviation = scale * math.sqrt(table.size / sums.size)
    wanted = np.maximum(expected.sum(axis=rest), FLOOR * deviation)
    return _of_total_one(*posterior(sums, deviation, wanted))


def _balanced(masses: Floats, table: Floats, sets: Sequence[tuple[int, ...]]) -> Floats:
    """Return masses that are moved towards the noisy sums over the sets of axes, as far as these tell more.

    One law for all cells is wrong where cells of some labels are fuller than others: posterior means then err
    together, and their sum by far more than its noise. By how much the residuals of the sums exceed what
    independent errors of the cells explain decides how far the masses move (James & Stein 1961, positive
    part).
    """
    lacking = table - masses
    rests = [tuple(axis for axis in range(table.ndim) if axis not in kept) for kept in sets]
    apart = [lacking.sum(axis=rest) for rest in rests]
    chance = 1.0 + CLEAR * math.sqrt(2.0 / max(1, sum(one.size for one in apart)))
    alone = chance * len(sets) * float((lacking**2).sum())
    together = math.fsum(float((one**2).sum()) for one in apart)
    if not together > alone:
        return masses
    goals = []
    for rest, one in zip(rests, apart, strict=True):
        sums = masses.sum(axis=rest)
        goals.append(np.maximum(sums + (1.0 - alone / together) * one, LEAST_KEPT * sums))
    for _ in range(PAIR_ROUNDS):
        for kept, goal in zip(sets, goals, strict=True):
            masses = _agreeing(masses, kept, goal)
    masses /= masses.sum()
    return masses


def _agreeing(expected: Floats, kept: tuple[int, ...], masses: Floats) -> Floats:
    """Return the expected masses in proportion, so that their sums over some axes are these."""
    rest = tuple(axis for axis in range(expected.ndim) if axis not in kept)
    sums = expected.sum(axis=rest)
    ratios = np.divide(masses, sums, out=np.zeros(sums.shape), where=sums > 0.0)
    result: Floats = expected * np.expand_dims(ratios, rest)
    return result
