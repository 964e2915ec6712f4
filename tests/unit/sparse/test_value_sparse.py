"""ValueSparse: one-sided tests of any bounded-sensitivity value, with its number, on all three mechanisms."""

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidParameterError, InvalidQueryError, SessionExhaustedError
from onlineic.noise import SimulatedNoise, scale_at_least
from onlineic.noise.scripted import ScriptedNoise
from onlineic.sparse import ExponentialSparse, GumbelSparse, Hit, LaplaceSparse, Sparse, ValueSparse
from support.noise import Silent

MADE = [("laplace", 0.0), ("laplace", 1e-6), ("exponential", 0.0), ("gumbel", 1e-6)]


def made(mechanism, delta, *, epsilon=1.0, cutoff=3, values=200):
    return ValueSparse.calibrated(
        ic.Budget(epsilon, delta), cutoff=cutoff, max_values=values, mechanism=mechanism
    )


@pytest.mark.parametrize("cutoff", [1, 2, 7, 40])
@pytest.mark.parametrize(("mechanism", "delta"), MADE)
def test_tests_and_numbers_of_all_hits_are_paid_by_the_budget_and_hardly_less_than_it(
    mechanism, delta, cutoff
):
    sparse = made(mechanism, delta, cutoff=cutoff)
    account, start = sparse.mechanism.account(), sparse.mechanism.start_charge()
    price = sparse.mechanism.price(sparse._target).amount
    paid = cutoff * price + (0 if start is None else start.amount)

    assert 0.95 * account.capacity < paid <= account.capacity
    with pytest.raises(InvalidParameterError, match="what the mechanism can pay"):
        attrs.evolve(sparse, cutoff=2 * cutoff)


def test_of_the_book_threshold_tests_and_numbers_are_drawn_with_the_scales_of_algorithm_3():
    sparse, noise = made("laplace", 0.0, cutoff=2), ScriptedNoise([0, 0, 0, 0, 5 * 256, 0, 0])
    far = [-(2**30), -(2**30), 2**20, -(2**30)]

    ((place, number),) = sparse.select(far, noise)
    s = Fraction(9 * 2, 4) * 256
    assert (2, 2**20 / 256 + 5) == (place, number)
    assert [s, 2 * s, 2 * s, 2 * s, 4 * s, s, 2 * s] == [scale for _, scale, _ in noise.scales]


def test_of_the_exponential_tests_the_number_is_the_free_gap_and_no_exact_value():
    sparse = made("exponential", 0.0, cutoff=1)
    rho, nu = 1234, 4321
    noise = ScriptedNoise([rho, nu])
    score = sparse.shift + 2**20
    ((_, number),) = sparse.select([score], noise)
    own = sparse.mechanism

    assert [own.threshold_scale, own.query_scale] == [scale for _, scale, _ in noise.scales]
    assert noise.exhausted
    assert number == pytest.approx((score + nu - rho - own._centre()) / 256, abs=1e-3)


def test_gumbel_hits_draw_a_fresh_number_of_the_sigma_that_is_charged():
    sparse = made("gumbel", 1e-6, cutoff=1)
    noise = ScriptedNoise([2**63, 77])

    ((_, number),) = sparse.select([2**20], noise)
    assert ("discrete_gaussian", sparse.mechanism.sigma(8), 1) == noise.scales[-1]
    assert (2**20 + 77) / 256 == number


@pytest.mark.parametrize(("mechanism", "delta"), MADE)
def test_far_above_is_a_hit_and_far_below_none_whatever_lies_beyond_64_bits(mechanism, delta):
    sparse, noise = made(mechanism, delta, cutoff=2), SimulatedNoise(3)
    huge = [-(10**30), 10**30, -(2**62), -1 * 2**40, 2**62, 10**30]

    assert (1, 4) == tuple(place for place, _ in sparse.select(huge, noise))


@pytest.mark.parametrize(("mechanism", "delta"), MADE)
def test_it_halts_at_its_cutoff_and_takes_no_score_behind(mechanism, delta):
    sparse = made(mechanism, delta, cutoff=2)

    def scores():
        yield from (2**40, 2**40)
        raise AssertionError

    assert 2 == len(sparse.select(scores(), SimulatedNoise(1)))
    state = sparse.init()
    for _ in range(2):
        state, number = sparse.step(state, 2**40, SimulatedNoise(1))
        assert number is not None
    with pytest.raises(SessionExhaustedError, match="2 hits"):
        sparse.step(state, -(2**40), SimulatedNoise(1))


@pytest.mark.parametrize(("mechanism", "delta"), MADE)
def test_margins_hold_and_are_about_equal_on_both_sides(mechanism, delta):
    sparse, runs, beta = made(mechanism, delta, cutoff=2, values=50), 400, 0.1
    tests, numbers = sparse.radii(50, beta)
    unit = 1 << sparse.grid_bits
    below = sparse.score(Fraction(-tests * 1.0001), 0)
    above = math.ceil(tests * 1.0001 * unit)
    noise, failed = SimulatedNoise(9), 0
    for _ in range(runs):
        found = sparse.select([below] * 48 + [above] * 2, noise)
        failed += tuple(place for place, _ in found) != (48, 49) or any(
            abs(number - above / unit) > numbers for _, number in found
        )

    assert failed <= 70  # 40 expected at most, were the bound met
    assert tests < numbers * 3


def test_scores_are_exact_floors_that_one_sensitivity_moves_by_one_unit_of_it():
    sparse = made("laplace", 0.0)
    third = Fraction(1, 3)

    assert math.floor(256 * Fraction(2, 3) / third) == sparse.score(1, third, third)
    for value in (Fraction(7, 11), Fraction(-5, 13), 10**25):
        one, other = (sparse.score(value + moved, third, third) for moved in (0, third))
        assert 256 == other - one
        near = sparse.score(value + third * Fraction(999, 1000), third, third)
        assert one <= near <= other


@pytest.mark.parametrize("score", [1.5, np.float64(3.0), "4", None])
def test_a_score_that_is_no_integer_is_refused_without_being_shown(score):
    with pytest.raises(TypeError) as refused:
        made("laplace", 0.0).step(made("laplace", 0.0).init(), score, Silent())
    assert "1.5" not in str(refused.value)


@pytest.mark.parametrize(
    "mechanism",
    [
        LaplaceSparse(1000, 1.0, 50, 3),
        ExponentialSparse.calibrated(ic.Budget(1.0), n=1000, hard_answers=3, max_queries=10, fresh=True),
        GumbelSparse.calibrated(ic.Budget(1.0, 1e-6), n=1000, hard_answers=3, max_queries=10),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("target", [5, np.int64(5), None, "a=1"])
def test_a_number_of_what_has_no_price_is_refused_by_name(mechanism, target):
    with pytest.raises(
        InvalidQueryError, match=r"target must be a Query or a Partition, got a .*ValueSparse"
    ):
        mechanism.measure(Hit(side=1, excess=3), target, 0, 10, Silent())


def test_a_mechanism_with_fresh_numbers_releases_the_score_with_fresh_noise():
    own = ExponentialSparse(
        n=1,
        epsilon=3.0,
        threshold=2**40,
        threshold_scale=Fraction(256),
        query_scale=Fraction(512),
        grid_bits=8,
        number_scale=Fraction(1),
    )
    noise = ScriptedNoise([0, 0, 9])
    ((_, number),) = ValueSparse(own, 1).select([2**20], noise)

    assert 2**12 + 9 / 256 == number
    assert ("discrete_laplace", scale_at_least(Fraction(256)), 1) == noise.scales[-1]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ValueSparse(Sparse(1.0, 5, 3), 1),
        lambda: ValueSparse(LaplaceSparse(1000, 1.0, 50, 3), 3),
        lambda: made("cauchy", 0.0),
        lambda: made("gumbel", 0.0),
        lambda: made("laplace", 0.0, cutoff=0),
        lambda: made("laplace", 0.0, values=2.5),
    ],
)
def test_what_cannot_be_is_refused_by_name(wrong):
    with pytest.raises(InvalidParameterError, match=r"must (be|have)"):
        wrong()


def test_by_default_the_finer_of_the_modern_mechanisms_is_taken():
    def taken(delta, cutoff):
        own = ValueSparse.calibrated(ic.Budget(1.0, delta), cutoff=cutoff, max_values=1000)
        return type(own.mechanism)

    assert (ExponentialSparse, ExponentialSparse, GumbelSparse) == (
        taken(0.0, 3),
        taken(1e-9, 1),
        taken(1e-9, 100),
    )
