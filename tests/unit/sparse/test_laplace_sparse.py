"""`LaplaceSparse`: every privacy constant, asked of the code through scripted noise."""

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

from onlineic.accounting import Budget, advanced_composition
from onlineic.domain import Domain
from onlineic.errors import InternalError, InvalidParameterError, SessionExhaustedError
from onlineic.noise import SimulatedNoise
from onlineic.queries import Partition, weights, where
from onlineic.sparse import Hit, LaplaceSparse, SparseState
from onlineic.testing import ScriptedNoise

DOMAIN = Domain.of(sex=["F", "M"], age=range(4))
QUERY = where(sex="F").bind(DOMAIN, 0)
PARTITION = Partition(DOMAIN, (1,), (np.arange(4),))


def laplace(**changes):
    settings = {"n": 1000, "epsilon": 1.0, "threshold": 500, "cutoff": 10}
    return LaplaceSparse(**{**settings, **changes})


def one_at_a_time(sparse, state, gaps, noise):
    """`step_many` by `step`: (state, leading easy tests, hit)."""
    for easy, gap in enumerate(gaps):
        state, hit = sparse.step(state, gap, 1, noise)
        if hit:
            return state, easy, hit
    return state, len(gaps), None


def test_sequence_of_scales_is_threshold_query_query_number_threshold():
    """Oracle 1: one easy, one hard, then the threshold of the next test: 22.5, 45, 45, 90, 22.5."""
    sparse, noise = laplace(), ScriptedNoise([0] * 6)
    state, easy = sparse.step(sparse.init(), 499, 1, noise)
    state, hit = sparse.step(state, 500, 1, noise)
    sparse.measure(hit, QUERY, 0, 500, noise)
    sparse.step(state, 0, 1, noise)

    assert easy is None
    assert Hit() == hit
    assert [22.5, 45.0, 45.0, 90.0, 22.5, 45.0] == [float(scale) for _, scale, _ in noise.scales]
    assert {"discrete_laplace"} == {method for method, _, _ in noise.scales}
    assert noise.exhausted


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("cutoff", [1, 7, 1000])
def test_pure_scales_obey_the_budget_identity(epsilon, cutoff):
    sparse = laplace(epsilon=epsilon, cutoff=cutoff)
    cost = cutoff * (2 / sparse.threshold_scale + 1 / sparse.number_scale)

    assert cost <= Fraction(epsilon)
    assert float(cost) == pytest.approx(epsilon, rel=1e-4)
    assert sparse.query_scale >= 2 * sparse.threshold_scale - Fraction(1, 2**15)
    assert sparse.number_scale == 9 * cutoff / Fraction(epsilon)


def test_repaired_scales_are_the_goldens_and_the_printed_ones_are_not():
    sparse = laplace(delta=1e-6, branch="repaired")

    assert float(sparse.threshold_scale) == pytest.approx(76.65511323, abs=2**-16 + 5e-9)
    assert float(sparse.query_scale) == pytest.approx(153.3102265, abs=2**-16 + 5e-8)
    assert float(sparse.number_scale) == pytest.approx(306.6204529, abs=2**-16 + 5e-8)


@pytest.mark.parametrize(("epsilon", "cutoff"), [(0.01, 3), (0.7, 10), (1.0, 1000)])
def test_repaired_scales_pass_advanced_composition_at_half_of_delta_each(epsilon, cutoff):
    sparse = laplace(epsilon=epsilon, delta=1e-6, cutoff=cutoff, branch="repaired")
    tests = advanced_composition(2 / float(sparse.threshold_scale), 5e-7, cutoff)
    numbers = advanced_composition(1 / float(sparse.number_scale), 5e-7, cutoff)

    assert tests + numbers <= epsilon
    if epsilon == 0.7:  # the shares of Corollary 3.21
        assert 8 / 9 * 0.7 == pytest.approx(
            cutoff**0.5 * math.sqrt(8 * math.log(2e6)) * 2 / float(sparse.threshold_scale), rel=1e-6
        )


def test_repaired_branch_is_refused_where_the_corollary_fails():
    with pytest.raises(InvalidParameterError, match="pure"):
        laplace(epsilon=20.0, delta=0.5, cutoff=1, branch="repaired")
    with pytest.raises(InvalidParameterError, match="delta"):
        laplace(branch="repaired")


@pytest.mark.parametrize("bits", [1, 10, 20])
def test_scales_grow_with_the_grid_and_the_number_with_its_own(bits):
    fine, noise = laplace(grid_bits=bits), ScriptedNoise([0] * 3)
    _, hit = fine.step(fine.init(), fine.threshold, 1 << bits, noise)
    fine.measure(hit, QUERY, 0, 500, noise)

    assert [22.5 * 2**bits, 45.0 * 2**bits, 90.0] == [float(scale) for _, scale, _ in noise.scales]


def test_numbers_of_a_partition_have_twice_the_scale():
    sparse, noise = laplace(), ScriptedNoise([1, -2, 3, 4])
    measured = sparse.measure(Hit(), PARTITION, 0, np.array([100, 200, 300, 400]), noise)

    assert [("discrete_laplace", Fraction(180), 4)] == noise.scales
    assert [0.101, 0.198, 0.303, 0.404] == measured.values.tolist()
    assert measured.scale == pytest.approx(math.sqrt(2) * 0.18, rel=1e-12)


def test_number_is_the_count_plus_fresh_noise_and_ignores_the_guess():
    sparse = laplace()
    first = sparse.measure(Hit(), QUERY, 7, 500, ScriptedNoise([-20]))
    second = sparse.measure(Hit(), QUERY, 900, 500, ScriptedNoise([-20]))

    assert [0.48] == first.values.tolist() == second.values.tolist()


def test_pair_asks_the_other_side_only_if_the_first_did_not_fire():
    """Oracle 9: short circuit: one query never uses two hits."""
    sparse = laplace(pair=True)
    plus, minus, neither = (ScriptedNoise([0] * 8) for _ in range(3))
    state, hit = sparse.step(sparse.init(), 500, 1, plus)

    assert (1, Hit(side=1)) == (state.hits, hit)
    assert [22.5, 45.0] == [float(scale) for _, scale, _ in plus.scales]
    assert (1, Hit(side=-1)) == (lambda after: (after[0].hits, after[1]))(
        sparse.step(sparse.init(), -500, 1, minus)
    )
    assert [22.5, 45.0, 45.0] == [float(scale) for _, scale, _ in minus.scales]
    assert sparse.step(sparse.init(), 499, 1, neither)[1] is None
    assert [22.5, 45.0, 45.0] == [float(scale) for _, scale, _ in neither.scales]


def test_absolute_test_fires_on_either_sign_with_one_draw():
    noise = ScriptedNoise([0, 0])

    assert laplace().step(SparseState(), -500, 1, noise)[1] == Hit()
    assert noise.exhausted


def test_last_hit_is_delivered_and_the_next_step_draws_nothing():
    """Oracle 6: the c-th number is delivered, then halted; BELOW never changes the count."""
    sparse, noise = laplace(cutoff=2), ScriptedNoise([0] * 12)
    state = sparse.init()
    for _ in range(3):
        state, hit = sparse.step(state, 0, 1, noise)
        assert (0, None) == (state.hits, hit)
    for hits in (1, 2):
        state, hit = sparse.step(state, 500, 1, noise)
        assert (hits, Hit()) == (state.hits, hit)
    asked = len(noise.scales)

    assert [0.5] == sparse.measure(hit, QUERY, 0, 500, noise).values.tolist()
    with pytest.raises(SessionExhaustedError):
        sparse.step(state, 0, 1, noise)
    with pytest.raises(SessionExhaustedError):
        sparse.step_many(state, np.array([0]), np.array([1]), noise)
    assert asked + 1 == len(noise.scales)


def test_sensitivity_beyond_the_grid_is_refused_before_any_draw():
    noise = ScriptedNoise([])

    with pytest.raises(InternalError):
        laplace().step(SparseState(), 5, 2, noise)
    with pytest.raises(InternalError):
        laplace().step_many(SparseState(), np.array([5, 5]), np.array([1, 2]), noise)


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("length", [1, 2, 4, 5, 9, 40])
def test_many_steps_are_the_single_ones_to_the_last_draw(pair, length):
    """States, hits and the noise left over agree, chunk by chunk, over whole runs."""
    sparse = laplace(epsilon=6.0, threshold=12, cutoff=6, pair=pair)
    rng = np.random.default_rng(length)
    hits = 0
    for seed in range(20):
        single, many = SimulatedNoise(seed), SimulatedNoise(seed)
        here = there = sparse.init()
        while here.hits < sparse.cutoff:
            gaps = rng.integers(-12, 13, length)
            expected = one_at_a_time(sparse, here, gaps.tolist(), single)
            there, easy, hit = sparse.step_many(there, gaps, np.ones(length, np.int64), many)
            here = expected[0]

            assert expected == (there, easy, hit)
            hits += hit is not None
        scales = (sparse.threshold_scale, sparse.query_scale)
        assert [single.discrete_laplace(scale, 5).tolist() for scale in scales] == [
            many.discrete_laplace(scale, 5).tolist() for scale in scales
        ]
    assert 120 == hits


def test_noise_behind_a_hit_is_given_back_and_no_other():
    noise = ScriptedNoise([0, *range(6), 0, 0])
    _, easy, hit = laplace(threshold=10).step_many(
        SparseState(), np.array([5, 5, 8, 0, 0, 0]), np.ones(6, np.int64), noise
    )

    assert (2, Hit()) == (easy, hit)
    assert [3, 4, 5] == noise.discrete_laplace(Fraction(45), 3).tolist()


def test_hit_forgets_the_threshold_and_easy_keeps_it():
    sparse = laplace()
    easy, _ = sparse.step(sparse.init(), 0, 1, ScriptedNoise([17, 0]))
    hard, _ = sparse.step(easy, 517, 1, ScriptedNoise([0]))

    assert 17 == easy.threshold_noise
    assert SparseState(hits=1) == hard
    assert "17" not in repr(easy)


def test_charges_of_all_hits_are_the_whole_budget_exactly():
    sparse = laplace(epsilon=0.1, cutoff=7)
    account = sparse.account()
    for _ in range(7):
        account = account.charge(sparse.price(QUERY))

    assert Fraction(0) == account.left
    assert not account.affords(sparse.price(PARTITION))
    assert sparse.start_charge() is None


def test_no_scale_depends_on_records_or_threshold():
    one, other = laplace(), laplace(n=10**6, threshold=3)

    assert attrs.astuple(one)[8:11] == attrs.astuple(other)[8:11]


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int64])
def test_numpy_integers_do_not_overflow_in_a_scale(kind):
    assert laplace(cutoff=100, grid_bits=7) == laplace(cutoff=kind(100), grid_bits=kind(7))


def test_radii_are_the_exact_tails_and_the_adaptive_margin():
    sparse = laplace(cutoff=10)
    margin = 45 * math.log(200 * math.sqrt(math.pi * 10.5) / (2 * 0.05))

    assert sparse.easy_radius(0.05, 200) == pytest.approx((500 + margin + 1) / 1000, rel=1e-12)
    assert margin == pytest.approx(420.5, abs=0.5)  # printed: 1078 at k = 200
    assert sparse.hard_radius(QUERY, 0.05) == pytest.approx(90 * math.log(20) / 1000, abs=1e-3)
    cells = PARTITION.blocks
    assert sparse.hard_radius(PARTITION, 0.05) == pytest.approx(180 * math.log(20 * cells) / 1000, abs=1e-3)


def test_a_pair_of_tests_a_query_takes_the_radius_and_the_margins_of_twice_as_many():
    single, double = laplace(), laplace(pair=True)

    assert single.easy_radius(0.05, 400) == double.easy_radius(0.05, 200) > double.easy_radius(0.05, 199)
    assert single.margins(400, 0.05, 10) == double.margins(200, 0.05, 10)


def test_a_plan_with_pairs_asks_for_the_threshold_of_twice_as_many_tests():
    plan = {"n": 10**6, "hard_answers": 10, "alpha": 0.01}
    single = LaplaceSparse.calibrated(Budget(1.0), max_queries=400, **plan)
    double = LaplaceSparse.calibrated(Budget(1.0), max_queries=200, pair=True, **plan)

    assert single.threshold == double.threshold


def chance_of_a_wrong_test(sparse, margin, tests):
    """The union bound over the tests at the noise that is drawn: k E e^(|rho|/q) P(nu > a - |rho|) e^(..).

    |rho| on the integers is at most half a unit more than the largest of c exponentials of scale s, and
    P(nu >= m) <= e^(-(m - 1/2)/q)/2: E e^(X/q) = prod of j/(j - s/q) over j = 1 .. c, term by term.
    """
    ratio, query = sparse.threshold_scale / sparse.query_scale, float(sparse.query_scale)
    ranks = np.arange(1, sparse.cutoff + 1)
    moment = -np.log1p(-float(ratio) / ranks).sum()
    return tests / 2 * math.exp(moment - margin / query)


ROUNDED = [  # epsilon at which 9c/(4 epsilon), or twice that, lies just above what can be drawn
    pytest.param(9 * 10**5 / (4 * scale), bits, id=f"{scale}, {bits} bits")
    for scale, bits in [
        (32_768.0001, 0),  # 65,536 and a bit becomes 65,537, and half of it stays
        (40_000.0001, 0),
        (65_535.9, 0),
        (70_000.4, 0),  # twice 70,001 is more than 140,001
        (70_000.6, 0),
        (66_000.01, 1),
        (16_384.0001, 1),
    ]
]


@pytest.mark.parametrize("tests", [1, 1000, 10**9])
@pytest.mark.parametrize(("epsilon", "bits"), ROUNDED)
def test_margins_are_those_of_the_noise_drawn_however_its_two_scales_were_rounded(epsilon, bits, tests):
    """At c = 10^5 nothing is slack: with twice the threshold scale the bound was 1.0003 beta."""
    sparse = laplace(n=10**12, epsilon=epsilon, cutoff=10**5, grid_bits=bits)
    unit = sparse.n << bits
    easy = round(sparse.easy_radius(0.05, tests) * unit - sparse.threshold - 1, 3)
    hit, miss, _ = (margin * unit - 1 for margin in sparse.margins(tests, 0.05, 10))

    assert 0.05 * (1 - 1e-5) <= chance_of_a_wrong_test(sparse, easy, tests) <= 0.05 * (1 + 1e-8)
    assert 0.045 * (1 - 1e-5) <= chance_of_a_wrong_test(sparse, hit, tests) <= 0.045 * (1 + 1e-8)
    assert hit == miss


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("bits", [0, 1, 5])
def test_the_margin_of_numbers_is_that_of_the_noise_drawn_for_every_grid_of_a_query(bits, count):
    """A scale of 65,536.01 counts is drawn as 65,537, one of 40,000.3 halves as 80,001 halves."""
    for scale in (65_536.01, 80_000.0001, 40_000.00001):
        sparse = laplace(n=10**9, epsilon=9 * 10 / scale, grid_bits=bits)
        *_, number = sparse.margins(100, 0.05, count)
        for own in range(bits + 1):
            query = where(age=weights([0.5**own, 0.0, 0.0, 1.0])).bind(DOMAIN, bits)
            assert own == query.grid_bits
            drawn = sparse._law(query).scale / (1 << own)

            assert float(drawn) * math.log(count / 0.005) <= number * sparse.n - 1 + 1e-3


def test_a_planned_gap_of_every_hit_counts_the_margin_of_the_noise_drawn():
    """T - a_hit > alpha, of the settings as they will run."""
    for epsilon in (9 * 10 / (4 * 40_000.0001), 9 * 10 / (4 * 70_000.4)):
        sparse = LaplaceSparse.calibrated(
            Budget(epsilon), n=10**9, hard_answers=10, max_queries=10**9, alpha=0.01
        )
        hit, *_ = sparse.margins(10**9, 0.05, 10)

        assert 0.01 * sparse.n <= sparse.threshold - (hit * sparse.n - 1)


def test_noise_below_every_unit_has_no_margin():
    sparse = laplace(epsilon=1e9, cutoff=1)

    assert sparse.threshold_scale == sparse.query_scale == Fraction(1, 2**16)
    assert sparse.easy_radius(0.05, 1000) == (sparse.threshold + 1) / sparse.n


def test_tests_of_tables_end_at_the_cutoff_too():
    sparse, noise = laplace(cutoff=1), ScriptedNoise([0, 0])
    state, hit = sparse.step_table(sparse.init(), 500, noise)
    asked = len(noise.scales)

    assert (1, Hit()) == (state.hits, hit)
    with pytest.raises(SessionExhaustedError):
        sparse.step_table(state, 0, noise)
    assert asked == len(noise.scales)
