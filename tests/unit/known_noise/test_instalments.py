"""Instalments: each is bounded by itself, at its own share of beta."""

import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.known_noise import Estimates, Instalments, TableDesign
from onlineic.queries import Partition
from onlineic.queries.partitions import Measurement

DOMAIN, N, BETA = ic.Domain.of(a=4, b=3), 10_000, 0.1
CODES = Partition(DOMAIN, (0,), (np.arange(4),))
OTHER = Partition(DOMAIN, (1,), (np.arange(3),))
QUERY = ic.where(a=1).bind(DOMAIN)


def released(target, sigma, share=0.25):
    values = np.full(target.blocks, share)
    return Measurement(target, values, sigma / N)


def alone(scale, beta, pure=False):
    """The bracket of a release that is the only one; `scale` is sigma, or that of Laplace noise."""
    design = TableDesign([CODES], [scale], pure)
    return Estimates(design, [np.full(4, 0.25)], N, beta).bracket(QUERY)


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_the_k_th_instalment_has_beta_over_k_times_k_plus_one(number):
    held = Instalments()
    for _ in range(number - 1):
        held = held.then([released(OTHER, 50.0, 1 / 3)], N, BETA, False)  # says nothing of the query
    held = held.then([released(CODES, 50.0)], N, BETA, False)

    assert held.bracket(QUERY) == pytest.approx(alone(50.0, BETA / (number * (number + 1))), abs=1e-12)
    assert math.isclose(sum(1 / (k * (k + 1)) for k in range(1, 10**5)), 1.0, abs_tol=1e-4)


def test_laplace_noise_is_bounded_by_its_own_law():
    """A normal bracket of the same deviation would be too narrow."""
    deviation = math.sqrt(2.0) * 50.0
    held = Instalments().then([released(CODES, deviation)], N, 1e-6, True)
    low, high = held.bracket(QUERY)

    assert (low, high) == pytest.approx(alone(50.0, 1e-6 / 2, pure=True), abs=1e-12)
    normal = alone(deviation, 1e-6 / 2)
    assert high - low > 1.5 * (normal[1] - normal[0])


def test_brackets_are_cut_with_each_other_and_the_best_estimate_is_told():
    held = (
        Instalments()
        .then([released(CODES, 80.0)], N, BETA, False)
        .then([released(CODES, 20.0, 0.251)], N, BETA, False)
    )
    low, high = held.bracket(QUERY)
    first, second = alone(80.0, BETA / 2), alone(20.0, BETA / 6)

    assert first[0] < low < high < first[1]
    assert high - low < second[1] - second[0] + 1e-9
    assert held.point(QUERY)[:2] == pytest.approx((0.251, 20.0 / N * math.sqrt(0.75)), rel=0.01)
    assert held.after(1).point(QUERY)[1] > 2 * held.point(QUERY)[1]


def test_the_two_instalments_that_know_its_attributes_best_are_asked():
    loud, *rest = [released(CODES, sigma) for sigma in (500.0, 40.0, 20.0)]
    held = Instalments()
    for one in (loud, *rest):
        held = held.then([one], N, BETA, False)
    low, high = held.bracket(QUERY)
    second, third = alone(40.0, BETA / 6), alone(20.0, BETA / 12)

    assert (max(second[0], third[0]), min(second[1], third[1])) == pytest.approx((low, high), abs=1e-12)
    assert held.point(QUERY)[:2] == pytest.approx((0.25, 20.0 / N * math.sqrt(0.75)), rel=0.01)


def test_what_no_instalment_holds_has_no_bracket():
    held = Instalments().then([released(OTHER, 50.0, 1 / 3)], N, BETA, False)

    assert None is held.point(QUERY)
    assert None is Instalments().bracket(QUERY) is Instalments().family
    assert held.bracket(QUERY) in (None, (0.0, 1.0))
    assert held.table_brackets(ic.marginal("b").bind(DOMAIN))[0].shape == (3,)
