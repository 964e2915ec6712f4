"""Every question measured: charges are those of the released laws, and as many as announced are paid."""

import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import TICK, gaussian_mu
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.noise import SimulatedNoise
from onlineic.sparse import UnconditionalNumbers

DOMAIN = ic.Domain.of(a=4, b=3)
N = 10_000
NUMBER = ic.where(a=1).bind(DOMAIN, 4)
HALF = ic.where(a=ic.weights([0.0, 0.5, 0.25, 0.0])).bind(DOMAIN, 4)
FINE = ic.where(a=ic.weights([0.0, 1 / 64, 0.25, 0.0])).bind(DOMAIN, 8)
TABLE = ic.marginal("a", "b").bind(DOMAIN).partition
PURE = UnconditionalNumbers(N, 1.0, 0.0, Fraction(30), None, 4)
GAUSSIAN = UnconditionalNumbers(N, 1.0, 1e-6, Fraction(60), Fraction(20), 4)


def divergence(sparse, moves, spread):
    """What a record that moves these released numbers can tell: the largest loss, or the Renyi divergence."""
    total = 0.0
    z = np.arange(-4000, 4001)
    for move in moves:
        if sparse.order is None:
            total += move / spread
        else:
            law, moved = (-((z - m) ** 2) / (2 * spread**2) for m in (0, move))
            norm = math.log(np.exp(law).sum())
            power = float(sparse.order)
            total += math.log(np.exp(power * law + (1 - power) * moved - norm).sum()) / (power - 1)
    return total


CASES = [(NUMBER, [16]), (HALF, [8]), (TABLE, [16, 16])]


def drawn(sparse, target):
    """The scale that was asked of the noise."""
    asked = []

    class Spy(SimulatedNoise):
        def discrete_laplace(self, scale, size):
            asked.append(float(scale))
            return super().discrete_laplace(scale, size)

        def discrete_gaussian(self, sigma, size):
            asked.append(float(sigma))
            return super().discrete_gaussian(sigma, size)

    _, hit = sparse.step(sparse.init(), 0, 1, Spy(1))
    counts = np.arange(12) if target is TABLE else 7
    released = sparse.measure(hit, target, 0, counts, Spy(1))
    assert released.scale == pytest.approx(asked[0] * (2**0.5 if sparse.order is None else 1) / (N << 4))
    return asked[0]


@pytest.mark.parametrize("answers", [10**9, 10**10, 10**11, 10**12])
def test_numbers_that_cost_less_than_a_tick_or_a_few_are_planned_at_once(answers):
    """A charge is a whole number of ticks: of less than one, noise of any width is refused by the filter."""
    sparse = UnconditionalNumbers.calibrated(ic.Budget(0.01, 1e-9), n=N, answers=answers, grid_bits=10)
    price = sparse.price(ic.where(a=1).bind(DOMAIN, sparse.grid_bits)).amount

    assert answers * price <= sparse.account().capacity


@pytest.mark.parametrize("sparse", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize(("target", "moves"), CASES, ids=["number", "half", "table"])
def test_charges_are_those_of_the_released_law_by_summation(sparse, target, moves):
    unit = 1.0 if sparse.order is None else float(TICK)
    charge = float(sparse.price(target).amount) * unit

    assert divergence(sparse, moves, drawn(sparse, target)) == pytest.approx(charge, rel=1e-6)
    assert sparse.price(TABLE).amount <= sparse.price(NUMBER).amount


@pytest.mark.parametrize("sparse", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize(("target", "moves"), CASES, ids=["number", "half", "table"])
def test_half_the_noise_is_found(sparse, target, moves):
    unit = 1.0 if sparse.order is None else float(TICK)

    assert (
        divergence(sparse, moves, drawn(sparse, target) / 2) > 1.9 * float(sparse.price(target).amount) * unit
    )


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-6])
@pytest.mark.parametrize("answers", [1, 7, 60, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_as_many_numbers_as_announced_are_paid_at_full_price(epsilon, delta, answers):
    budget = ic.Budget(epsilon, delta)
    sparse = UnconditionalNumbers.calibrated(budget, n=N, answers=answers, grid_bits=10)
    query = ic.where(a=1).bind(DOMAIN, sparse.grid_bits)
    capacity, price = sparse.account().capacity, sparse.price(query).amount
    best = math.sqrt(2) * answers / epsilon
    if delta:
        best = min(best, math.sqrt(answers) / gaussian_mu(epsilon, delta))

    assert answers * price <= capacity < (answers + 1) * price * Fraction(101, 100)
    assert sparse.deviation * N < 1.09 * best
    assert budget.epsilon >= sparse.epsilon


@pytest.mark.parametrize("sparse", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
def test_everything_is_hard_and_radii_hold(sparse):
    noise = SimulatedNoise(3)
    state, easy, hit = sparse.step_many(sparse.init(), np.zeros(5, np.int64), np.ones(5, np.int64), noise)
    errors = np.abs([sparse.measure(hit, NUMBER, 0, 10, noise).values[0] - 10 / N for _ in range(2000)])
    radius = sparse.hard_radius(NUMBER, 0.1)

    assert (1, 0, 0.0) == (state.hits, easy, sparse.easy_radius(0.1))
    assert sparse.step_table(state, 0, noise)[1] is not None
    assert (state, 0, None) == sparse.step_many(state, np.zeros(0, np.int64), np.zeros(0, np.int64), noise)
    assert 0.07 < (errors > radius).mean() < 0.13
    assert sparse.margins(5, 0.1, 1) == (0.0, 0.0, radius)


@pytest.mark.parametrize("sparse", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
def test_what_cannot_be_is_refused(sparse):
    with pytest.raises(InvalidQueryError):
        sparse.price((~ic.where()).bind(DOMAIN))
    with pytest.raises(InvalidParameterError):
        UnconditionalNumbers(N, 1.0, 0.0, Fraction(3), Fraction(2))
    with pytest.raises(InvalidParameterError):
        UnconditionalNumbers(N, 1.0, 1e-6, Fraction(7, 2), Fraction(2))
    with pytest.raises(InvalidParameterError):
        UnconditionalNumbers(2**50, 1.0, 0.0, Fraction(3), None, 10)
