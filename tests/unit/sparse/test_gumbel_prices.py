"""Prices and radii of `GumbelSparse` by hand, for weights between 0 and 1 too, and what a share reserves."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from onlineic.accounting import Budget, gumbel_charge
from onlineic.domain import Domain
from onlineic.queries import Partition, dense
from onlineic.sparse import GumbelSparse

DOMAIN = Domain.of(age=4)
PARTITION = Partition(DOMAIN, (0,), (np.arange(4),))


def sparse(bits=8):
    return GumbelSparse(100_000, 1.0, 1e-6, Fraction(19), Fraction(169 << bits, 4), 360 << bits, bits)


@pytest.mark.parametrize(("top", "bits"), [(1, 1), (3, 2), (7, 3), (5, 8), (255, 8)])
def test_a_number_costs_the_square_of_its_own_sensitivity_on_its_own_grid(top, bits):
    """Weights 0 and top/2^k: the test moves by top 2^(K - k) session units, the answer by top of its own."""
    query = dense(np.array([0.0, top / 2**bits, 0.0, 0.0])).bind(DOMAIN, 8)
    mechanism = sparse()
    ticks = gumbel_charge(
        mechanism.order, top << 8 - bits, mechanism.scale, Fraction(mechanism.sigma(bits)), top**2
    )

    assert (top, bits) == (query.sensitivity, query.grid_bits)
    assert ticks == mechanism.price(query).amount


def test_a_sum_of_blocks_is_within_the_quantile_of_rounded_normal_values():
    """Three of four blocks count: each may be e^(1/(24 sigma^2)) times as likely to be far out."""
    weights, sigma = np.array([0.5, -0.5, 1.0, 0.0]), sparse().sigma(0)
    tail = 0.025 * math.exp(-3 / (24 * sigma**2))
    expected = (sigma * math.sqrt(1.5) * -NormalDist().inv_cdf(tail) + 1.0) / 100_000

    assert expected == pytest.approx(sparse().sum_radius(PARTITION, weights, 0.05), rel=1e-11)
    assert expected < 0.8 * sigma * math.sqrt(1.5) * math.sqrt(2 * math.log(2 / 0.05)) / 100_000


@pytest.mark.parametrize("hard_answers", [10**7, 3 * 10**7, 10**8])
def test_a_reserved_share_stays_beside_so_many_hits_that_their_prices_are_few_ticks(hard_answers):
    """Prices are rounded up to whole ticks: the scale has to make up for that within what is not reserved."""
    mechanism = GumbelSparse.calibrated(
        Budget(1.0, 1e-6),
        n=10**8,
        hard_answers=hard_answers,
        max_queries=10**9,
        partition=True,
        reserved=Fraction(1, 5),
    )
    hits = math.ceil(1.2 * hard_answers) * mechanism.price(PARTITION).amount

    assert hits <= Fraction(4, 5) * mechanism.capacity
