"""`AboveThreshold` and `Sparse`: scales asked of the code, values in bulk, the fail signal, the radius."""

import math
from fractions import Fraction

import numpy as np
import pytest

from onlineic.accounting import advanced_composition
from onlineic.bounds import above_threshold_alpha, sparse_alpha, sparse_margin
from onlineic.errors import InvalidParameterError, SessionExhaustedError
from onlineic.noise import SimulatedNoise
from onlineic.noise.laws import DiscreteLaplace
from onlineic.sparse import AboveThreshold, Sparse, SparseState
from onlineic.sparse.above_threshold import CHUNK, _kept_radius
from onlineic.testing import ScriptedNoise

ALLOCATIONS = ("restarts", "optimal")


def one_at_a_time(sparse, values, noise):
    """`select` by `step`."""
    state, found = sparse.init(), []
    for index, value in enumerate(values):
        if state.hits >= sparse.cutoff:
            break
        state, hit = sparse.step(state, int(value), noise)
        if hit:
            found.append(index)
    return tuple(found)


# Scales and state


def test_above_threshold_draws_its_threshold_once_and_ends_with_its_hit():
    mechanism, noise = AboveThreshold(0.5, 10), ScriptedNoise([1, 0, 0, 0])
    state, first = mechanism.step(mechanism.init(), 10, noise)
    state, second = mechanism.step(state, 11, noise)

    assert (False, True) == (first, second)
    assert [4, 8, 8] == [scale for _, scale, _ in noise.scales]
    with pytest.raises(SessionExhaustedError):
        mechanism.step(state, 11, noise)


def test_every_call_of_first_draws_another_threshold_and_costs_epsilon_again():
    mechanism, noise = AboveThreshold(0.5, 10), ScriptedNoise([0] * 14)
    for _ in range(2):
        mechanism.first(np.zeros(6, np.int64), noise)

    assert [(4, 1), (8, 6)] * 2 == [(scale, size) for _, scale, size in noise.scales]


def test_sparse_by_restarts_redraws_after_every_hit_and_reports_the_last():
    mechanism, noise = Sparse(1.0, 10, 2), ScriptedNoise([0] * 5)
    state = mechanism.init()
    fired = []
    for value in (9, 10, 10):
        state, hit = mechanism.step(state, value, noise)
        fired.append(hit)

    assert [False, True, True] == fired
    assert [4, 8, 8, 4, 8] == [scale for _, scale, _ in noise.scales]
    with pytest.raises(SessionExhaustedError):
        mechanism.step(state, 10, noise)


def test_sparse_by_the_optimal_allocation_draws_one_threshold_for_all_its_hits():
    mechanism, noise = Sparse(1.0, 10, 2, allocation="optimal"), ScriptedNoise([3, 0, 0, 0])
    state = mechanism.init()
    fired = []
    for value in (12, 13, 13):
        state, hit = mechanism.step(state, value, noise)
        fired.append(hit)
    b1, b2 = mechanism.threshold_scale, mechanism.query_scale

    assert [False, True, True] == fired
    assert [b1, b2, b2, b2] == [scale for _, scale, _ in noise.scales]
    assert noise.exhausted
    assert "3" not in repr(SparseState(0, 3)).replace("SparseState", "")
    with pytest.raises(SessionExhaustedError):
        mechanism.step(state, 13, noise)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("cutoff", [1, 3, 10, 1000])
def test_optimal_scales_cost_at_most_epsilon_exactly_and_split_it_one_to_the_two_thirds(epsilon, cutoff):
    mechanism = Sparse(epsilon, 10, cutoff, allocation="optimal")
    first, rest = 1 / mechanism.threshold_scale, 2 * cutoff / mechanism.query_scale

    assert first + rest <= Fraction(epsilon)
    assert float(first + rest) == pytest.approx(epsilon, rel=1e-3)
    assert float(rest / first) == pytest.approx((2 * cutoff) ** (2 / 3), rel=1e-2)


@pytest.mark.parametrize("cutoff", [1, 3, 10, 50])
def test_optimal_allocation_has_less_noise_than_restarts_and_no_split_has_less(cutoff):
    def variance(first, rest):
        return first**-2 + (2 * cutoff / rest) ** 2

    best, book = Sparse(1.0, 0, cutoff, allocation="optimal"), Sparse(1.0, 0, cutoff)
    ours = float(best.threshold_scale**2 + best.query_scale**2)
    others = [variance(share, 1 - share) for share in np.linspace(0.001, 0.999, 999)]

    assert ours <= min(others) * (1 + 1e-4)
    assert ours < float(book.threshold_scale**2 + book.query_scale**2)


@pytest.mark.parametrize("delta", [1e-200, 1e-9, 1e-6, 0.01, 0.5])
def test_a_delta_is_used_from_the_first_cutoff_on_at_which_it_saves_noise(delta):
    """The book's rule of delta is the worse one up to c = 8 ln(1/delta): at c = 5, 1e-9 by 115 to 20."""
    last = math.floor(8 * math.log(1 / delta))
    pure, composed = Sparse(0.1, 0, last, delta), Sparse(0.1, 0, last + 1, delta)
    book = math.sqrt(32 * (last + 1) * math.log(1 / delta)) / 0.1

    assert Sparse(0.1, 0, last).threshold_scale == pure.threshold_scale
    assert (pure.threshold_scale * 2, composed.threshold_scale * 2) == (
        pure.query_scale,
        composed.query_scale,
    )
    assert book == pytest.approx(float(composed.threshold_scale), abs=2**-15 if book < 2**16 else 1)
    assert composed.threshold_scale < Sparse(0.1, 0, last + 1).threshold_scale
    assert 10 == Sparse(1.0, 0, 5, 1e-9).threshold_scale


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("cutoff", [1, 5, 10, 165, 166, 200, 10_000])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01, 0.9])
def test_a_delta_never_costs_noise_and_what_it_saves_is_paid_by_advanced_composition(delta, cutoff, epsilon):
    here, pure = Sparse(epsilon, 0, cutoff, delta), Sparse(epsilon, 0, cutoff)

    assert here.threshold_scale <= pure.threshold_scale
    if here.threshold_scale < pure.threshold_scale:
        assert advanced_composition(float(2 / here.threshold_scale), delta, cutoff) <= epsilon
    else:  # 2c/epsilon: c runs of cost epsilon/c each
        assert cutoff * 2 / here.threshold_scale <= Fraction(epsilon)


def test_where_the_corollary_is_false_the_noise_is_that_of_delta_zero():
    """c = 100 > 8 ln 2, but the book's scale would cost far more than epsilon."""
    book = math.sqrt(32 * 100 * math.log(2)) / 20

    assert advanced_composition(2 / book, 0.5, 100) > 20
    assert Sparse(20.0, 0, 100).threshold_scale == Sparse(20.0, 0, 100, 0.5).threshold_scale
    assert 1 == Sparse(1e9, 0, 10**9, 0.5, allow_large_epsilon=True).epsilon // 10**9  # no overflow either


def test_parameters_outside_their_range_are_refused():
    with pytest.raises(InvalidParameterError, match="delta must be 0"):
        Sparse(1.0, 0, 1, 1e-6, "optimal")
    with pytest.raises(InvalidParameterError, match="allocation"):
        Sparse(1.0, 0, 1, allocation="best")
    with pytest.raises(InvalidParameterError, match="threshold"):
        Sparse(1.0, 2**60 + 1, 1)
    with pytest.raises(InvalidParameterError, match="threshold"):
        AboveThreshold(1.0, 0.5)
    with pytest.raises(InvalidParameterError, match="cutoff"):
        Sparse(1.0, 0, 0)
    with pytest.raises(InvalidParameterError, match="scale"):
        Sparse(1e-300, 0, 10**18, allocation="optimal")
    for make in (lambda **more: AboveThreshold(100.0, 0, **more), lambda **more: Sparse(100.0, 0, 3, **more)):
        with pytest.raises(InvalidParameterError, match="allow_large_epsilon"):
            make()
        assert 100.0 == make(allow_large_epsilon=True).epsilon


@pytest.mark.parametrize("beta", [0.0, 5e-324, 1e-310, 1.0])
def test_a_beta_whose_inverse_is_no_float_is_refused_by_name(beta):
    for mechanism in (AboveThreshold(1.0, 0), *(Sparse(1.0, 0, 3, allocation=name) for name in ALLOCATIONS)):
        with pytest.raises(InvalidParameterError, match=r"^beta must be a number in \[1e-250, 1\)"):
            mechanism.radius(10, beta)
        assert mechanism.radius(10**9, 1e-250) > mechanism.radius(10, 1e-250)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int64])
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_numpy_integers_do_not_overflow_in_a_scale(kind, allocation):
    here = Sparse(1.0, 5, 100, allocation=allocation)

    assert here.query_scale == Sparse(1.0, 5, kind(100), allocation=allocation).query_scale


@pytest.mark.parametrize("length", [3, 8])
@pytest.mark.parametrize("rho", [-300, 50, 1000])
@pytest.mark.parametrize("threshold", [np.int8(100), np.uint8(5), np.int16(32_700), np.uint64(7)], ids=repr)
def test_a_threshold_of_a_narrow_type_does_not_wrap_around_with_its_noise(threshold, rho, length):
    """100 + 50 is no -106: one record more could then turn a sure hit into a sure miss."""
    values, script = np.zeros(length, np.int64), [rho, *[0] * 20]
    for make in (AboveThreshold, lambda epsilon, t: Sparse(epsilon, t, 1)):
        here, wide = make(1.0, threshold), make(1.0, int(threshold))
        outcomes = [
            mechanism.step(mechanism.init(), 0, ScriptedNoise(script))[1] for mechanism in (here, wide)
        ]
        ask = (lambda m: m.first) if make is AboveThreshold else (lambda m: m.select)

        assert int is type(here.threshold)
        assert wide == here
        assert outcomes[0] == outcomes[1]
        assert ask(wide)(values, ScriptedNoise(script)) == ask(here)(values, ScriptedNoise(script))


@pytest.mark.parametrize("values", [np.zeros(6), np.zeros(6, bool), np.zeros((2, 3), np.int64), [0.5] * 6])
def test_private_values_of_another_type_are_refused_without_a_draw_or_a_number(values):
    text = r"^values must be a \(k,\) array of int64, and were not; round them to a public grid first\.$"
    for ask in (AboveThreshold(1.0, 0).first, Sparse(1.0, 0, 1).select):
        with pytest.raises(InvalidParameterError, match=text):
            ask(values, ScriptedNoise([]))


# Many at once


@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("length", [0, 1, 4, 5, 60])
def test_select_is_step_on_one_value_after_the_other_to_the_last_draw(allocation, length):
    rng = np.random.default_rng(length)
    sparse = Sparse(6.0, 5, 4, allocation=allocation)
    counts = set()
    for seed in range(40):
        values = rng.integers(-6, 7, length)
        single, many = SimulatedNoise(seed), SimulatedNoise(seed)
        expected = one_at_a_time(sparse, values, single)
        counts.add(len(expected))
        scales = (sparse.threshold_scale, sparse.query_scale)

        assert expected == sparse.select(values, many)
        assert [single.discrete_laplace(scale, 5).tolist() for scale in scales] == [
            many.discrete_laplace(scale, 5).tolist() for scale in scales
        ]
    assert length < 60 or counts & {3, 4}


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_select_plays_a_script_as_step_does_and_gives_back_what_lies_behind_a_hit(allocation):
    values, script = np.array([0, 0, 5, 0, 0, 0, 0, 5, 0, 0, 9, 9]), list(range(-7, 8)) * 2
    sparse = Sparse(1.0, 5, 2, allocation=allocation)
    single, many = ScriptedNoise(script), ScriptedNoise(script)
    expected = one_at_a_time(sparse, values, single)

    assert 2 == len(expected)
    assert expected == sparse.select(values, many)
    assert single.discrete_laplace(Fraction(1), 3).tolist() == many.discrete_laplace(Fraction(1), 3).tolist()


@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("place", [0, CHUNK - 1, CHUNK, 2 * CHUNK + 1])
def test_hits_at_the_edges_of_a_chunk_are_found_once_each(allocation, place):
    values = np.zeros(2 * CHUNK + 3, np.int64)
    values[[place, len(values) - 1]] = 10**6
    sparse = Sparse(1.0, 500_000, 3, allocation=allocation)

    assert (place, len(values) - 1) == sparse.select(values, SimulatedNoise(place))


def test_the_cutoff_is_kept_and_behind_it_nothing_is_looked_at():
    values = np.full(50, 10**6)
    noise = ScriptedNoise([0, *range(50), 0, *range(50), 0, *range(50)])

    assert (0, 1, 2) == Sparse(1.0, 0, 3).select(values, noise)
    assert [1, 50, 1, 49, 1, 48] == [size for _, _, size in noise.scales]


def test_values_beyond_the_range_of_counts_do_not_overflow():
    values = np.array([-(2**63), 2**63 - 1, 0, 0, -(2**63), 2**63 - 1])

    assert 1 == AboveThreshold(1.0, 2**60).first(values, SimulatedNoise(0))
    assert (1, 5) == Sparse(1.0, 2**60, 3).select(values, SimulatedNoise(1))


# The fail signal


@pytest.mark.parametrize("length", [0, 3, 30])
def test_a_stream_without_a_hit_ends_with_none(length):
    below = np.zeros(length, np.int64)

    assert AboveThreshold(1.0, 10).first(below, ScriptedNoise([0] * (length + 1))) is None


def printed_first(values, threshold):
    """AboveThreshold of the texts: -1, "the last index", stands for no hit. The noise is 0."""
    found = AboveThreshold(1.0, threshold).first(np.array(values), ScriptedNoise([0] * 50))
    return -1 if found is None else found


def test_printed_minus_one_used_as_an_index_takes_the_last_candidate():
    """The errata: no bound was found, and the text's code goes on with the largest of them."""
    bounds = ["10", "100", "1000"]

    assert "100" == bounds[printed_first([0, 9, 0], 9)]
    assert "1000" == bounds[printed_first([0, 0, 0], 9)]  # indistinguishable from
    assert "1000" == bounds[printed_first([0, 0, 9], 9)]  # a hit at the last candidate


def test_index_zero_is_a_hit_and_falsy_so_that_only_comparing_with_none_tells():
    at_once = AboveThreshold(1.0, 10).first(np.full(6, 10), ScriptedNoise([0] * 7))
    never = AboveThreshold(1.0, 10).first(np.zeros(6, np.int64), ScriptedNoise([0] * 7))

    assert (0, None) == (at_once, never)
    assert [True, True] == [
        not index for index in (at_once, never)
    ]  # `if not index` takes a hit for a failure
    assert [False, True] == [index is None for index in (at_once, never)]


def printed_sparse(values, threshold, cutoff):
    """Sparse of the texts, by restarts without a fail signal: the end of the stream looks like a hit."""
    found, start = [], 0
    while start < len(values) and len(found) < cutoff:
        rest = values[start:]
        index = printed_first(rest, threshold)
        found.append(start + (len(rest) - 1 if index == -1 else index))
        start = found[-1] + 1
    return tuple(found)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_without_a_fail_signal_a_restart_cannot_tell_the_end_of_the_stream_from_a_hit(allocation):
    one, two = [0, 9, 0, 0, 0, 0], [0, 9, 0, 0, 0, 9]
    sparse = Sparse(1.0, 9, 3, allocation=allocation)

    assert (1, 5) == printed_sparse(one, 9, 3) == printed_sparse(two, 9, 3)
    assert (1,) == sparse.select(np.array(one), ScriptedNoise([0] * 20))
    assert (1, 5) == sparse.select(np.array(two), ScriptedNoise([0] * 20))


# Accuracy


def failure(b1, b2, radius, queries):
    """P(some of k tests fails by more than the radius) for an analyst who always knows the side of rho.

    Exact: the sum over rho of p(rho) (1 - P(nu < a + 1 - |rho|)^k).
    """
    rho = np.arange(math.ceil(50 * b1) + 1)
    q, lam = math.exp(-1 / b1), math.exp(-1 / b2)
    mass = (1 - q) / (1 + q) * q**rho * np.where(rho > 0, 2, 1)
    needed = radius + 1 - rho
    tail = np.where(
        needed >= 1,
        lam ** np.maximum(needed, 0) / (1 + lam),
        1 - lam ** np.maximum(1 - needed, 0) / (1 + lam),
    )
    with np.errstate(divide="ignore"):
        return float(mass @ -np.expm1(queries * np.log1p(-tail)))


KEPT = [AboveThreshold(1.0, 0), AboveThreshold(0.1, 0), AboveThreshold(5.0, 0)]
KEPT += [
    Sparse(epsilon, 0, cutoff, allocation="optimal") for epsilon in (0.2, 1.0, 10.0) for cutoff in (1, 3, 50)
]


@pytest.mark.parametrize("beta", [0.05, 1e-4])
@pytest.mark.parametrize("queries", [1, 100, 10_000])
@pytest.mark.parametrize("mechanism", KEPT, ids=repr)
def test_radius_of_a_kept_threshold_holds_for_every_adaptive_analyst_and_is_not_slack(
    mechanism, queries, beta
):
    b1, b2 = float(mechanism.threshold_scale), float(mechanism.query_scale)
    radius = mechanism.radius(queries, beta)

    assert failure(b1, b2, radius, queries) <= beta
    assert failure(b1, b2, math.floor((0.7 if queries > 1 else 0.5) * radius) - 1, queries) > beta


def test_radius_stays_a_bound_where_both_scales_are_the_least_there_are():
    tiny = Sparse(1e6, 0, 1, allocation="optimal", allow_large_epsilon=True)

    assert tiny.threshold_scale == tiny.query_scale == Fraction(1, 2**16)
    assert 0 == tiny.radius(1000, 0.05)


def test_radius_by_restarts_is_that_of_the_noise_drawn_where_its_scale_is_rounded_to_an_integer():
    sparse = Sparse(4 / 65_539.0, 0, 1)
    drawn = 1 + math.ceil(sparse_margin(1, 10**6, float(sparse.query_scale) / 2, 0.05))

    assert sparse.query_scale > 2 * sparse.threshold_scale
    assert drawn == sparse.radius(10**6, 0.05)


@pytest.mark.parametrize("queries", [10, 1000, 100_000])
def test_radius_is_below_half_of_the_book_s_alpha(queries):
    assert AboveThreshold(1.0, 0).radius(queries, 0.05) < 0.55 * above_threshold_alpha(queries, 1.0, 0.05)
    for cutoff in (1, 3, 10, 50):
        book = sparse_alpha(cutoff, queries, 1.0, 0.0, 0.05)
        restarts, optimal = (Sparse(1.0, 0, cutoff, allocation=a).radius(queries, 0.05) for a in ALLOCATIONS)

        assert optimal < restarts < 0.55 * book
    assert Sparse(1.0, 0, 200, 1e-6).radius(queries, 0.05) < 0.5 * sparse_alpha(200, queries, 1.0, 1e-6, 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_errors_of_whole_runs_stay_within_the_radius_as_often_as_promised(allocation):
    """2,000 columns just out of reach, one among them just within: a failure in at most 5 % of the runs."""
    runs, beta, queries, failures, halved = 300, 0.05, 2000, 0, 0
    sparse = Sparse(1.0, 0, 3, allocation=allocation)
    radius, noise = sparse.radius(queries, beta), SimulatedNoise(77)
    for share in (1.0, 0.5):
        values = np.full(queries, -math.ceil(share * radius) - 1)
        values[1000] = math.ceil(share * radius) + 1
        wrong = sum(sparse.select(values, noise) != (1000,) for _ in range(runs))
        failures, halved = (wrong, halved) if share == 1.0 else (failures, wrong)

    # 15 are allowed on average: 46 have a chance of 1e-10; at half the radius most runs fail
    assert failures <= 46
    assert halved > runs / 2


@pytest.mark.parametrize("beta", [0.05, 1e-3])
@pytest.mark.parametrize("queries", [1, 100, 10_000])
def test_radius_is_a_union_of_halves_where_the_threshold_has_the_wider_noise(queries, beta):
    """Half of beta for rho; of the noise of a query one side fails, so beta/k is half of beta for all."""
    radius = _kept_radius(Fraction(1000), Fraction(10), queries, beta)
    rho, nu = DiscreteLaplace(Fraction(1000)), DiscreteLaplace(Fraction(10))
    halves = rho.radius(beta / 2) + nu.radius(beta / queries)

    assert halves == radius
    assert failure(1000.0, 10.0, radius, queries) <= beta
