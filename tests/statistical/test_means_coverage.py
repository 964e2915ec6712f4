"""Coverage of the released bounds: met from both sides where it is an equality, kept where it is a bound."""

import numpy as np
import pytest
from scipy.stats import binomtest

import onlineic as ic
from onlineic.mechanisms import LaplaceMechanism
from onlineic.noise import SimulatedNoise
from onlineic.offline import auto_avg, clipping_bound, mean

pytestmark = pytest.mark.statistical


def test_coverage_of_the_mean_is_met_from_both_sides_and_tells_a_scale_that_is_off_by_a_tenth():
    """At beta .2 a tenth of the scale shows best; the law of the noise is exact at the released radius."""
    runs, beta, values = 12_000, 0.2, np.arange(1000) % 101
    data = ic.PrivateData.from_records({"score": values}, ic.Domain.of(score=range(101)))
    noise, truth, within = SimulatedNoise(20261121), int(values.sum()), 0
    for _ in range(runs):
        result = mean(data, "score", 0.8, beta=beta, noise=noise)
        within += abs(result.total - truth) <= result.radius

    def p_value(factor):
        kept = 1 - LaplaceMechanism(0.8 / factor, 100).tail(result.radius)
        return binomtest(within, runs, kept).pvalue

    assert 1 - LaplaceMechanism(0.8, 100).tail(result.radius) == pytest.approx(1 - beta, abs=0.002)
    assert p_value(1) > 1e-9
    assert max(p_value(0.9), p_value(1.1)) < 1e-9


def skewed():
    """Most records low, a thin tail, in a range that is wider than it."""
    counts = [400, 900, 700, 300, 120, 40, 12, 6, 3, 1, 1, *[0] * 39, 2]
    values = np.repeat(np.arange(len(counts)), counts)
    return ic.PrivateData.from_records({"x": values}, ic.Domain.of(x=range(101))), values


@pytest.mark.parametrize("threshold", [0, -20])
def test_no_more_records_than_promised_lie_above_the_bound(threshold):
    data, values = skewed()
    noise, runs, wrong = SimulatedNoise(3), 2000, 0
    for _ in range(runs):
        found = clipping_bound(data, "x", 0.3, threshold=threshold, beta=0.2, noise=noise)
        wrong += (values > found.bound).sum() > found.records_above

    assert binomtest(wrong, runs, 0.2, alternative="greater").pvalue > 1e-9


@pytest.mark.parametrize("count", ["public", "noisy"])
def test_the_mean_is_in_the_interval_around_the_clipped_mean(count):
    data, values = skewed()
    truth, noise, runs = values.mean(), SimulatedNoise(4), 1500
    outside, clipped_outside = 0, 0
    for _ in range(runs):
        result = auto_avg(data, "x", 0.5, count=count, beta=0.2, noise=noise)
        upper = result.value + result.noise_radius + result.bias_bound
        outside += not result.value - result.noise_radius <= truth <= upper
        clipped = np.minimum(values, result.bound).mean()
        clipped_outside += abs(result.value - clipped) > result.noise_radius

    assert binomtest(outside, runs, 0.2, alternative="greater").pvalue > 1e-9
    share = 0.1 if count == "public" else 2 * 0.2 / 3  # of the sum; of sum and count
    assert binomtest(clipped_outside, runs, share, alternative="greater").pvalue > 1e-9
    if count == "public":  # the noise of one sum: an equality
        assert binomtest(clipped_outside, runs, share).pvalue > 1e-9
