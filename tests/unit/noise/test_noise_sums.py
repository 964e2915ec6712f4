"""Radii of weighted sums of noise: the Chernoff bound by hand, and against the exact law."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from onlineic.noise.laws import DiscreteLaplace


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
