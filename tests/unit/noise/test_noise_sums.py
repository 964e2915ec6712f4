"""Radii of weighted sums of noise: the Chernoff bound by hand, and against the exact law."""

import math
from fractions import Fraction
from functools import cache
from statistics import NormalDist

import numpy as np
import pytest

from onlineic.errors import InvalidParameterError
from onlineic.noise.laws import DiscreteGaussian, DiscreteLaplace


def law(scale, size):
    """P(z) of a discrete Laplace, z = -size..size."""
    weights = math.exp(-1 / scale) ** np.abs(np.arange(-size, size + 1))
    return weights / weights.sum()


@cache
def moment(scale, tilt):
    """E e^(tZ), summed."""
    z = np.arange(-25_000, 25_001)
    return float(np.exp(tilt * z - np.abs(z) / scale).sum() / np.exp(-np.abs(z) / scale).sum())


@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-6])
@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.5, 0.25], [0.2] * 9], ids=str)
def test_radius_is_the_least_chernoff_bound_of_some_exponents(weights, beta):
    """(ln(2/beta) + sum ln E e^(t w Z)) / t at shares of the largest t: not below the least, and near."""
    scale, largest = 6.0, max(map(abs, weights))

    def chernoff(tilt):
        return (math.log(2 / beta) + sum(math.log(moment(scale, tilt * w)) for w in weights)) / tilt

    least = min(chernoff(share / (scale * largest)) for share in np.linspace(0.01, 0.99, 99))
    radius = DiscreteLaplace(Fraction(6)).sum_radius(np.array(weights), beta)

    assert least * (1 - 1e-9) <= radius <= 1.002 * least


@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-6])
def test_radius_of_a_sum_covers_by_convolution(beta):
    radius = DiscreteLaplace(Fraction(6)).sum_radius(np.ones(3), beta)
    single = law(6.0, 300)
    total = np.convolve(np.convolve(single, single), single)
    beyond = np.abs(np.arange(-900, 901)) > radius

    assert total[beyond].sum() <= beta
    assert radius >= 1.2 * DiscreteLaplace(Fraction(6)).sum_radius(np.ones(1), beta)


def test_nothing_summed_has_no_radius():
    assert 0.0 == DiscreteLaplace(Fraction(6)).sum_radius(np.zeros(3), 0.05)


# -- the largest noises ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.3, 2.0, 6.0])
def test_log_moments_are_those_of_the_law(scale):
    tilts = np.array([[-0.9, -0.2, 0.0], [0.1, 0.5, 0.9]]) / scale
    found = DiscreteLaplace(Fraction(scale)).log_moments(tilts)

    assert found == pytest.approx(np.log([[moment(scale, tilt) for tilt in row] for row in tilts]), abs=1e-9)


def excesses(scale, threshold, sides, count):
    """Return the law of the sum of (Z - t)_+, or of (|Z| - t)_+, of some values."""
    size = 250
    single = law(scale, size)
    lost = np.zeros(size + 1)
    for z, mass in zip(range(-size, size + 1), single, strict=True):
        lost[max(0, (abs(z) if sides == 2 else z) - threshold)] += mass
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, lost)
    return total


@pytest.mark.parametrize("beta", [0.3, 1e-3, 1e-9])
@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("threshold", [0, 1, 5])
def test_what_large_noises_exceed_a_threshold_by_is_covered_by_convolution(threshold, sides, beta):
    found = DiscreteLaplace(Fraction(3)).excess_radius(threshold, 6, beta, sides)
    total = excesses(3.0, threshold, sides, 6)
    quantile = int(np.flatnonzero(total[::-1].cumsum()[::-1] > beta / 50).max(initial=0))

    assert total[math.floor(found) + 1 :].sum() <= beta
    assert found <= quantile + 3  # Chernoff: no further out than a fiftieth of the probability


def test_two_sides_and_lower_thresholds_exceed_by_more():
    held = DiscreteLaplace(Fraction(3))
    one, two, above = (
        held.excess_radius(threshold, 100, 0.05, sides) for threshold, sides in ((0, 1), (0, 2), (4, 1))
    )

    assert above < 0.5 * one < 0.3 * two
    assert two == pytest.approx(300, rel=0.4)  # as many scales as there are values
    for wrong in ({"threshold": -1}, {"count": 0}, {"sides": 3}, {"beta": 0.0}):
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            held.excess_radius(**{"threshold": 0, "count": 4, "beta": 0.1, **wrong})


# -- Gaussian sums ------------------------------------------------------------------------------------------


def gaussian(sigma, size):
    """P(z) of a discrete Gaussian, z = -size..size."""
    weights = np.exp(-(np.arange(-size, size + 1) ** 2) / (2.0 * sigma**2))
    return weights / weights.sum()


def test_the_excess_of_noise_that_is_nearly_never_there_is_a_number():
    assert 0.0 < DiscreteLaplace(Fraction(1, 1000)).excess_radius(0, 100, 0.01, sides=2) < 0.01


@pytest.mark.parametrize("sigma", [1, 2, 5, 40])
def test_a_discrete_gaussian_value_is_little_likelier_than_a_rounded_normal_one(sigma):
    """At most e^(1/(24 sigma^2)) times; a factor of half that exponent would be exceeded (theory 6.2)."""
    z = np.arange(6 * sigma + 1)
    normal = NormalDist(0.0, sigma)
    rounded = np.array([normal.cdf(0.5 - value) - normal.cdf(-0.5 - value) for value in z])  # the upper tail
    ratio = gaussian(sigma, 40 * sigma)[40 * sigma :][: len(z)] / rounded

    assert ratio.max() <= math.exp(1 / (24 * sigma**2)) * (1 + 1e-12)
    assert ratio.max() > math.exp(1 / (48 * sigma**2))


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("sigma", [1, 3, 12])
@pytest.mark.parametrize("weights", [[1, 1], [2, -1, 1, -2], [1] * 9, [4, 4, 1]], ids=str)
def test_radius_of_a_gaussian_sum_covers_by_convolution(beta, sigma, weights):
    """Weights are quarters here; the sum is enumerated in quarters."""
    radius = DiscreteGaussian(sigma).sum_radius(np.array(weights) / 4.0, beta)
    single, total = gaussian(sigma, 15 * sigma), np.ones(1)
    for weight in np.abs(weights):
        spread = np.zeros((len(single) - 1) * weight + 1)
        spread[::weight] = single
        total = np.convolve(total, spread)
    reach = len(total) // 2
    beyond = np.abs(np.arange(-reach, reach + 1)) / 4.0 > radius

    assert total[beyond].sum() <= beta
    assert radius <= sigma * np.linalg.norm(weights) / 4.0 * math.sqrt(2 * math.log(2 / beta)) * (1 + 1e-12)


def test_a_gaussian_sum_of_large_sigma_has_the_radius_of_a_normal_one():
    weights = np.array([0.6, -0.4, -0.2])
    normal = 10**6 * np.linalg.norm(weights) * NormalDist().inv_cdf(0.975)

    assert normal < DiscreteGaussian(10**6).sum_radius(weights, 0.05) < normal + 0.61


def test_a_gaussian_sum_of_little_noise_has_the_sub_gaussian_radius_of_both_tails():
    """The radius of one tail would cover the sums above too: e^(-t^2/2) bounds both tails of a normal law."""
    both_tails = 3.0 * math.sqrt(2 * math.log(2 / 0.05))

    assert DiscreteGaussian(1).sum_radius(np.ones(9), 0.05) == pytest.approx(both_tails)
