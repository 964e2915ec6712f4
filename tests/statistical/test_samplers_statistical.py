"""Drawn values follow the stated laws: exact sufficient statistics, whole shapes, planted errors.

Every gate has error 1e-9 on both sides: the right law passes with any seed and with the system's entropy.
"""

import inspect
import math
import os
import types
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from onlineic.noise import SimulatedNoise, SystemNoise
from onlineic.noise import samplers as _samplers
from support.laws import two_sided

pytestmark = pytest.mark.statistical

SCALES = [Fraction(1), Fraction(10), Fraction(37, 10), Fraction(1, 3), Fraction(1000)]
SIGMAS = [1, 5, 100]
SOURCES = [lambda: SimulatedNoise(2026), SystemNoise]

MUTANTS = {  # shipped text, broken text; at scale 10
    "sign kept at zero": ("once: Bools = ~negative | (values != 0)", "once = np.ones(lanes, np.bool_)"),
    "parity flipped": ("    return accepted\n", "    return ~accepted\n"),
    "modulo": ("fresh = fresh[fresh < limit][:need].", "fresh = (fresh % limit)[:need]."),
    "<= in the coin": (", source) < numerators", ", source) <= numerators"),
    "t off by one": ("low = uniform_below(num", "numerator = 11\n        low = uniform_below(num"),
    "no thinning of U": ("low = low[bernoulli_exp(low, numerator, source)]", "pass"),
    "denominator not multiplied by the step": ("limit = denominator * step\n", "limit = denominator\n"),
}


def laplace_p(sample, scale):
    """Smallest of three exact p-values: non-zeros, their sizes given their number, their signs."""
    q = math.exp(-1 / scale)
    nonzero = np.count_nonzero(sample)
    excess = np.abs(sample).sum() - nonzero
    return min(
        two_sided(stats.binom(sample.size, 2 * q / (1 + q)), nonzero),
        two_sided(stats.nbinom(nonzero, -math.expm1(-1 / scale)), excess),
        two_sided(stats.binom(nonzero, 0.5), np.count_nonzero(sample > 0)),
    )


def geometric_p(sample, scale):
    """Exact p-value of the sum, the sufficient statistic: NegativeBinomial(n, 1 - q)."""
    return two_sided(stats.nbinom(sample.size, -math.expm1(-1 / scale)), sample.sum())


def laplace_law(scale, reach):
    q = math.exp(-1 / scale)
    return -math.expm1(-1 / scale) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))


def geometric_law(scale, reach):
    law = -math.expm1(-1 / scale) * np.exp(-np.arange(-reach, reach + 1) / scale)
    return np.where(np.arange(-reach, reach + 1) < 0, 0, law)


def gaussian_law(sigma, reach):
    whole = np.exp(-0.5 * (np.arange(-40 * math.ceil(sigma), 40 * math.ceil(sigma) + 1) / sigma) ** 2).sum()
    return np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2) / whole


def gaussian_p(sample, sigma):
    """P-value of sum x^2, the sufficient statistic, by its exact mean and variance."""
    reach = math.ceil(12 * sigma)
    law = gaussian_law(sigma, reach)
    squares = np.arange(-reach, reach + 1) ** 2.0
    mean = (law * squares).sum()
    variance = (law * squares**2).sum() - mean**2
    z = ((sample.astype(np.float64) ** 2).sum() - sample.size * mean) / math.sqrt(sample.size * variance)
    return 2 * stats.norm.sf(abs(z))


def shape_p(sample, law):
    """Chi-square p-value over the cells -reach .. reach of `law`; rare ones are pooled with the rest."""
    reach = law.size // 2
    inside = np.abs(sample) <= reach
    counts = np.bincount(sample[inside] + reach, minlength=law.size)
    expected = sample.size * law
    common = expected >= 10
    observed = np.append(counts[common], sample.size - counts[common].sum())
    expected = np.append(expected[common], sample.size - expected[common].sum())
    if expected[-1] < 10:  # nothing to pool: the rest joins the last cell
        observed = np.append(observed[:-2], observed[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1)


@pytest.mark.parametrize("source", SOURCES, ids=["seeded", "system"])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_has_its_scale_and_not_nine_or_eleven_tenths_of_it(source, scale):
    sample = source().discrete_laplace(scale, 20_000)

    assert laplace_p(sample, float(scale)) > 1e-9
    assert laplace_p(sample, 0.9 * float(scale)) < 1e-9
    assert laplace_p(sample, 1.1 * float(scale)) < 1e-9


@pytest.mark.parametrize("source", SOURCES, ids=["seeded", "system"])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_geometric_has_its_scale_and_not_nine_or_eleven_tenths_of_it(source, scale):
    sample = source().geometric(scale, 20_000)

    assert sample.min() == 0
    assert geometric_p(sample, float(scale)) > 1e-9
    assert geometric_p(sample, 0.9 * float(scale)) < 1e-9
    assert geometric_p(sample, 1.1 * float(scale)) < 1e-9


@pytest.mark.parametrize("source", SOURCES, ids=["seeded", "system"])
@pytest.mark.parametrize("sigma", [*SIGMAS, 2**20])
def test_gaussian_has_its_scale_and_not_nine_or_eleven_tenths_of_it(source, sigma):
    sample = source().discrete_gaussian(sigma, 20_000)
    if sigma > 1000:  # the lattice is too fine to matter: sums of squares are chi-square
        law = stats.chi2(sample.size)
        right, low, high = (
            2 * min(law.cdf(value), law.sf(value))
            for value in (
                (sample / (factor * sigma)) @ (sample / (factor * sigma)) for factor in (1, 0.9, 1.1)
            )
        )
    else:
        right, low, high = (gaussian_p(sample, factor * sigma) for factor in (1, 0.9, 1.1))

    assert right > 1e-9
    assert max(low, high) < 1e-9
    assert two_sided(stats.binom(np.count_nonzero(sample), 0.5), np.count_nonzero(sample > 0)) > 1e-9


@pytest.mark.parametrize("scale", [Fraction(2**40), Fraction(2**40 + 1, 2**10)], ids=str)
def test_laplace_of_a_huge_scale_has_exponential_sizes(scale):
    sample = SimulatedNoise(7).discrete_laplace(scale, 20_000)
    law = stats.gamma(sample.size)
    total = np.abs(sample).sum() / float(scale)

    assert 2 * min(law.cdf(total), law.sf(total)) > 1e-9
    assert 2 * min(law.cdf(total / 0.9), law.sf(total / 0.9)) < 1e-9
    assert 2 * min(law.cdf(total / 1.1), law.sf(total / 1.1)) < 1e-9


@pytest.mark.parametrize("source", SOURCES, ids=["seeded", "system"])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_has_its_whole_shape(source, scale):
    sample = source().discrete_laplace(scale, 200_000)

    assert shape_p(sample, laplace_law(float(scale), math.ceil(6 * scale))) > 1e-9


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_geometric_has_its_whole_shape(scale):
    sample = SimulatedNoise(11).geometric(scale, 200_000)

    assert shape_p(sample, geometric_law(float(scale), math.ceil(6 * scale))) > 1e-9


@pytest.mark.parametrize("source", SOURCES, ids=["seeded", "system"])
@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_has_its_whole_shape(source, sigma):
    sample = source().discrete_gaussian(sigma, 200_000)

    assert shape_p(sample, gaussian_law(sigma, 6 * sigma)) > 1e-9


def test_shape_gate_tells_laplace_from_gaussian_of_equal_variance():
    sample = SimulatedNoise(3).discrete_gaussian(14, 200_000)

    assert shape_p(sample, laplace_law(14 / math.sqrt(2), 60)) < 1e-9


@pytest.mark.parametrize("source", SOURCES, ids=["seeded", "system"])
def test_each_bit_of_a_word_is_a_fair_coin(source):
    bits = np.unpackbits(source().words(100_000).view(np.uint8)).reshape(100_000, 64)
    law = stats.binom(100_000, 0.5)

    assert min(two_sided(law, ones) for ones in bits.sum(axis=0)) > 1e-9 / 64


def test_streams_of_neighbouring_scales_and_seeds_are_uncorrelated():
    """A correlation of 100,000 independent pairs is a normal of deviation 1/sqrt(n); ten are tested."""
    sources = [SimulatedNoise(0), SimulatedNoise(0), SimulatedNoise(1)]
    scales = [Fraction(100), Fraction(101), Fraction(100)]
    streams = [
        np.sign(source.discrete_laplace(scale, 100_000))
        for source, scale in zip(sources, scales, strict=True)
    ]
    streams.append(np.sign(SimulatedNoise(0).discrete_gaussian(100, 100_000)))
    streams.append(np.roll(streams[0], 1))
    correlations = np.corrcoef(streams)[np.triu_indices(len(streams), 1)]

    assert np.abs(correlations).max() < 6.5 / math.sqrt(100_000)


def mutant_of(shipped, broken):
    """The shipped text of the samplers but for one planted error; endless loops are cut off."""
    source = inspect.getsource(_samplers)
    assert source.count(shipped) == 1
    module = types.ModuleType("mutant")
    exec(source.replace(shipped, broken), module.__dict__)
    uniform_below = module.uniform_below
    calls = iter(range(1_000))

    def counted(limit, size, source):
        if next(calls, None) is None:
            raise TimeoutError("this sampler never ends")
        return uniform_below(limit, size, source)

    module.uniform_below = counted
    return module


def sampler_p(module):
    """Smallest p-value of all nets over 200,000 draws at scale 10; 0 when the sampler never ends."""
    try:
        sample = module.discrete_laplace(10, 1, 200_000, os.urandom)
    except TimeoutError:
        return 0.0
    return min(laplace_p(sample, 10), shape_p(sample, laplace_law(10, 60)))


def test_unbroken_text_passes_the_nets_of_the_mutants():
    assert sampler_p(mutant_of("return accepted\n", "return accepted\n")) > 1e-9


@pytest.mark.parametrize("name", MUTANTS)
def test_broken_sampler_is_caught(name):
    assert sampler_p(mutant_of(*MUTANTS[name])) < 1e-50


def float_laplace(j, truth, scale):
    """Laplace noise as numpy makes it of the uniform j 2^-53, operation by operation."""
    uniform = j * 2.0**-53
    if uniform >= 0.5:
        return truth - scale * math.log(2.0 - uniform - uniform)
    return truth + scale * math.log(uniform + uniform)


def excluded_by_floats(released, truth, scale):
    """Whether no uniform near the inverse makes numpy's Laplace at `truth` give `released`."""
    tail = round(2**52 * math.exp(-abs(released - truth) / scale))
    center = 2**53 - tail if released >= truth else tail
    near = range(max(1, center - 300), min(2**53 - 1, center + 300) + 1)
    return all(float_laplace(j, truth, scale) != released for j in near)


def excluded_by_integers(released, truth, n):
    """Whether no integer near the inverse, added to the count `truth`, gives the released fraction."""
    center = round(released * n) - truth
    return all((truth + noise) / n != released for noise in range(center - 300, center + 301))


def test_support_attack_excludes_no_neighbour_of_ours_and_most_of_float_laplace():
    """S = 0 against its neighbour 1, epsilon 1, n = 1000: an excluded neighbour is a certain loss."""
    n, trials = 1000, 1000
    floats = np.random.default_rng(5).laplace(0.0, 1.0, trials).tolist()
    ours = [value / n for value in SimulatedNoise(5).discrete_laplace(Fraction(1), trials).tolist()]

    assert 0 == sum(excluded_by_floats(value, 0.0, 1.0) for value in floats)  # the attack is sound
    assert sum(excluded_by_floats(value, 1.0, 1.0) for value in floats) >= trials // 2
    assert 0 == sum(excluded_by_integers(value, 1, n) for value in ours)
