"""Means, clipping bounds and means of clipped values: what is asked of the noise, and what is made of it."""

import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.bounds import laplace_bound
from onlineic.errors import InvalidParameterError, InvalidQueryError, SessionSealedError, TooLargeError
from onlineic.mechanisms import LaplaceMechanism
from onlineic.noise import SimulatedNoise
from onlineic.offline import auto_avg, clipping_bound, mean, sensitivity
from onlineic.offline.means import records_left
from onlineic.testing import ScriptedNoise

VALUES = [3, 3, 4, 7, 12]  # sum 29
LAST = 99  # lifts every candidate but the one it is given to


def table(values=VALUES, kind=range(2, 13), **more):
    return ic.PrivateData.from_records({"x": list(values)}, ic.Domain.of(x=kind, **more))


def asked(noise):
    return [(method, str(scale), size) for method, scale, size in noise.scales]


# The mean


def test_mean_adds_noise_of_the_ranges_width_over_epsilon_to_the_exact_sum():
    noise = ScriptedNoise([-4])
    result = mean(table(), "x", 0.5, noise=noise)

    assert [("discrete_laplace", "20", 1)] == asked(noise)
    assert (25, 5, 5.0) == (result.total, result.n, result.value)
    assert result.scale == 20


def test_mean_is_over_one_attribute_of_many_and_may_be_negative():
    domain = ic.Domain.of(sex=["F", "M"], x=range(-10, 1), y=4)
    columns = {"sex": ["F", "M", "M"], "x": [-10, -1, 0], "y": [0, 3, 3]}
    result = mean(ic.PrivateData.from_records(columns, domain), "x", 1.0, noise=ScriptedNoise([0]))

    assert (-11, -11 / 3) == (result.total, result.value)


def test_error_bound_is_the_discrete_quantile_and_no_other():
    result = mean(table(), "x", 0.5, beta=0.1, noise=ScriptedNoise([0]))
    mechanism = LaplaceMechanism(0.5, 10)

    assert mechanism.radius(0.1) == result.radius
    assert mechanism.tail(result.radius) <= 0.1 < mechanism.tail(result.radius - 1)
    assert result.radius / 5 == result.error_bound


@pytest.mark.parametrize("start", [10**12, -(10**15), 10**17])
def test_bounds_hold_what_a_value_is_rounded_by_where_floats_lie_far_apart(start):
    """Milliseconds of a clock: between two floats there lies more than the noise of a mean."""
    n = 1_000_001
    domain = ic.Domain.of(x=range(start, start + 11))
    data = ic.PrivateData.from_counts({"x": [start, start + 10]}, [n - 300_007, 300_007], domain)
    truth = start + Fraction(3_000_070, n)
    found = mean(data, "x", 20.0, noise=SimulatedNoise(1))
    clipped = auto_avg(data, "x", 20.0, noise=SimulatedNoise(1))

    assert abs(Fraction(found.value) - truth) <= found.error_bound
    assert abs(Fraction(clipped.value) - truth) <= clipped.error_bound


def test_text_slip_the_error_of_laplace_is_an_equality_whose_failure_probability_is_beta():
    """2.1: (1/(eps n)) ln(1/delta) is printed as a bound; it fails with probability delta, no less."""
    n, epsilon = 100_000, 1.0
    mechanism = LaplaceMechanism(epsilon, 100)
    for beta in (0.5, 0.05, 0.001):
        printed = laplace_bound(epsilon, beta, 100) / n  # of the mean
        failing = mechanism.tail(math.floor(printed * n))

        assert failing == pytest.approx(beta, rel=0.011)  # one unit of a grid of scale 100


def test_text_slip_on_a_grid_of_scale_one_the_continuous_formula_is_no_bound():
    """2.1: P(|Z| <= ln 20) = P(|Z| <= 2) = .927 at epsilon = 1 for a count; the exact radius is 3."""
    mechanism = LaplaceMechanism(1.0)

    assert 2 == math.floor(laplace_bound(1.0, 0.05))
    assert 1 - mechanism.tail(2) == pytest.approx(0.9272, abs=1e-4)
    assert 3 == mechanism.radius(0.05)


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_sensitivities_are_attained_by_explicit_neighbours(n):
    """The maximum moves by the whole range for every n: the mean by a share that vanishes."""
    kind = ic.Domain.of(x=range(17, 91)).attribute("x")
    low = np.full(n, 17)
    high = low.copy()
    high[0] = 90  # one record replaced

    for name, statistic in (("sum", np.sum), ("maximum", np.max)):
        assert int(statistic(high) - statistic(low)) == sensitivity(name, kind, n)
    assert Fraction(int(high.sum() - low.sum()), n) == sensitivity("mean", kind, n)


def test_no_neighbours_differ_by_more_than_the_sensitivities():
    kind = ic.Domain.of(x=range(1, 4)).attribute("x")
    for values in itertools.product(range(1, 4), repeat=3):
        for place, value in itertools.product(range(3), range(1, 4)):
            other = list(values)
            other[place] = value

            assert abs(sum(values) - sum(other)) <= 3 * sensitivity("mean", kind, 3)
            assert abs(max(values) - max(other)) <= sensitivity("maximum", kind, 3)


@pytest.mark.parametrize(
    ("records", "median"),
    [((0, 0, 0, 1, 1, 1, 1), 1), ((0, 0, 0, 0, 1, 1, 1), 0)],
    ids=("four ones", "three"),
)
def test_lectures_neighbours_carry_the_median_across_the_whole_range(records, median):
    """The lecture's pair of seven records on [0, 1]: medians 1 and 0, global sensitivity the length."""
    assert median == sorted(records)[3]
    assert 1 == sensitivity("median", ic.Domain.of(x=range(2)).attribute("x"), 7)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_sensitivity_of_a_median_is_attained_and_half_of_it_by_the_midpoint(n):
    kind = ic.Domain.of(x=range(1, 5)).attribute("x")
    moved, midpoint = 0, 0
    for values in itertools.product(range(1, 5), repeat=n):
        for place, value in itertools.product(range(n), range(1, 5)):
            other = list(values)
            other[place] = value
            pair = [sorted(values), sorted(other)]
            moved = max(moved, abs(int(np.diff([one[(n + 1) // 2 - 1] for one in pair])[0])))
            midpoint = max(midpoint, abs(float(np.median(values) - np.median(other))))

    assert moved == sensitivity("median", kind, n) == 3
    assert midpoint == (1.5 if n % 2 == 0 else 3)


@pytest.mark.parametrize("statistic", ["mode", None, 3, []])
def test_sensitivity_knows_four_statistics(statistic):
    with pytest.raises(InvalidParameterError, match="statistic must be"):
        sensitivity(statistic, ic.Domain.of(x=5).attribute("x"), 5)


def test_sensitivity_refuses_what_has_no_range():
    with pytest.raises(InvalidParameterError, match=r'write domain\.attribute\("age"\)'):
        sensitivity("mean", "x", 5)
    with pytest.raises(InvalidParameterError, match="n must be an integer >= 1"):
        sensitivity("mean", ic.Domain.of(x=5).attribute("x"), 0)


def test_sensitivity_of_a_range_with_a_missing_cell_is_refused():
    """A record of 19 made missing moves the sum by 19, ten times the width of the range."""
    attribute = ic.Domain.of(x=ic.optional(range(17, 20))).attribute("x")
    for statistic in ("sum", "mean", "maximum"):
        with pytest.raises(InvalidParameterError, match="no missing cell"):
            sensitivity(statistic, attribute, 100)


@pytest.mark.parametrize("release", [mean, auto_avg])
@pytest.mark.parametrize("beta", [5e-324, 1e-310])
def test_a_beta_too_small_for_its_radius_is_refused_before_the_budget_is_spent(release, beta):
    data = ic.PrivateData.from_records({"x": np.arange(40)}, ic.Domain.of(x=range(40)))
    with pytest.raises(InvalidParameterError, match=r"beta must be a number in \[1e-300, 1\)"):
        release(data, "x", 1.0, beta=beta)

    assert (0, []) == (data.reads, list(data.budgets))
    assert release(data, "x", 1.0, beta=1e-300).error_bound > 0


# What all three refuse


ALL = [mean, clipping_bound, auto_avg]


@pytest.mark.parametrize("release", ALL)
@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (ic.optional(range(3)), [0, 1, None], "no missing cell"),
        (ic.binned([0, 1, 5]), [0, 1, 2], "number its bins by a range"),
        ([0, 1, 2], [0, 1, 2], "declare it as a range"),
        (range(4, 5), [4], "its mean is public"),
    ],
)
def test_only_ranges_of_integers_have_a_mean(release, kind, values, message):
    data = ic.PrivateData.from_records({"x": values}, ic.Domain.of(x=kind))
    with pytest.raises(InvalidQueryError, match=message):
        release(data, "x", 1.0)

    assert ([], 0) == (list(data.budgets), data.reads)


@pytest.mark.parametrize("release", ALL)
@pytest.mark.parametrize(
    "changes",
    [
        {"data": None},
        {"attribute": "y"},
        {"attribute": None},
        {"epsilon": 0.0},
        {"epsilon": 21},
        {"epsilon": math.nan},
        {"epsilon": None},
        {"beta": 0.0},
        {"beta": 1.0},
        {"noise": 7},
    ],
)
def test_bad_parameters_cost_nothing(release, changes):
    data = table()
    given = {"data": data, "attribute": "x", "epsilon": 1.0} | changes
    with pytest.raises((InvalidParameterError, InvalidQueryError)):
        release(**given)

    assert ([], 0) == (list(data.budgets), data.reads)


@pytest.mark.parametrize("release", [clipping_bound, auto_avg])
@pytest.mark.parametrize(
    "changes",
    [
        {"bounds": []},
        {"bounds": [5, 5]},
        {"bounds": [6, 5]},
        {"bounds": [2, 5]},  # nothing lies below the least value
        {"bounds": [5, 13]},
        {"bounds": [5.0]},
        {"bounds": "345"},
        {"bounds": 5},
        {"threshold": 1},
        {"threshold": -6},
        {"threshold": 0.0},
    ],
)
def test_bad_bounds_and_thresholds_cost_nothing(release, changes):
    data = table()
    with pytest.raises(InvalidParameterError):
        release(data, "x", 1.0, **changes)

    assert ([], 0) == (list(data.budgets), data.reads)


@pytest.mark.parametrize("release", [mean, auto_avg])
def test_a_sum_that_could_overflow_is_refused(release):
    data = ic.PrivateData.from_counts({"x": [0]}, [2**53], ic.Domain.of(x=2**10))
    with pytest.raises(TooLargeError, match=r"2\^62"):
        release(data, "x", 1.0)

    assert [] == list(data.budgets)


@pytest.mark.parametrize("release", ALL)
def test_releases_are_charged_and_stamped(release):
    data = table()
    real, simulated = release(data, "x", 0.5), release(data, "x", 0.5, noise=SimulatedNoise(1))

    assert [ic.Budget(0.5)] == list(data.budgets)
    assert (True, False) == (real.private, simulated.private)
    assert "NOT PRIVATE" not in repr(real)
    assert "NOT PRIVATE" in repr(simulated)


@pytest.mark.parametrize("release", ALL)
def test_a_failure_while_private_numbers_are_held_shows_nothing(release):
    data = table()
    with pytest.raises(SessionSealedError, match="its budget stays spent") as caught:
        release(data, "x", 1.0, noise=ScriptedNoise([]))

    assert (None, None) == (caught.value.__cause__, caught.value.__context__)


# The clipping bound


def script(first, candidates, *after, rho=0):
    """rho, then noise so low that only candidate number `first` fires (None: none does), then `after`.

    What was drawn for candidates behind the hit is given back, so that `after` begins right behind it.
    """
    if first is None:
        return [rho, *[-LAST] * candidates, *after]
    return [rho, *[-LAST] * first, LAST, *after, *[0] * candidates]


def test_search_asks_for_one_threshold_and_one_noise_a_candidate():
    noise = ScriptedNoise(script(3, 10))
    found = clipping_bound(table(), "x", 0.5, noise=noise)

    assert [("discrete_laplace", "4", 1), ("discrete_laplace", "4", 10)] == asked(noise)
    assert (6, True, 10) == (found.bound, found.hit, found.candidates)  # candidates 3 .. 12


@pytest.mark.parametrize("threshold", [0, -1, -3])
@pytest.mark.parametrize("rho", [-2, 0, 3])
def test_a_candidate_fires_when_minus_the_records_above_it_reaches_the_noisy_threshold(rho, threshold):
    bounds, above = [3, 5, 11], (3, 2, 1)  # of the values 3 3 4 7 12
    least = [threshold + rho + count for count in above]  # noise with which a candidate fires
    for nu in itertools.product(*((first - 1, first, first + 3) for first in least)):
        found = clipping_bound(
            table(), "x", 1.0, bounds=bounds, threshold=threshold, noise=ScriptedNoise([rho, *nu])
        )
        fired = [b for b, count, z in zip(bounds, above, nu, strict=True) if z - count >= threshold + rho]

        assert (fired[0] if fired else 11, bool(fired)) == (found.bound, found.hit)


def test_text_slip_no_hit_is_none_and_not_the_last_index():
    """3.1: the texts' -1 picks the last candidate as if it had fired; here the result says that none did."""
    none = clipping_bound(table(), "x", 1.0, bounds=[3, 5, 11], noise=ScriptedNoise(script(None, 3)))
    last = clipping_bound(table(), "x", 1.0, bounds=[3, 5, 11], noise=ScriptedNoise(script(2, 3)))

    assert (11, False, 5) == (none.bound, none.hit, none.records_above)  # n: nothing is known
    assert (11, True) == (last.bound, last.hit)


def test_text_slip_the_first_candidate_is_index_0_and_a_hit():
    """3.1: `if not index` would take index 0 for the fail signal."""
    found = clipping_bound(table(), "x", 1.0, noise=ScriptedNoise(script(0, 10)))

    assert (3, True) == (found.bound, found.hit)


def test_nothing_lies_above_the_largest_value_whatever_fired():
    for first in (9, None):
        found = clipping_bound(table(), "x", 1.0, noise=ScriptedNoise(script(first, 10)))

        assert (12, 0) == (found.bound, found.records_above)


def test_default_candidates_are_all_values_or_a_thousand_even_steps():
    few = clipping_bound(table(), "x", 1.0, noise=ScriptedNoise(script(None, 10)))
    many = ic.PrivateData.from_records({"x": [-700]}, ic.Domain.of(x=range(-700, 2351)))  # width 3050
    chosen = [
        clipping_bound(many, "x", 1.0, noise=ScriptedNoise(script(place, 1000))).bound
        for place in (0, 1, 2, 998, 999)
    ]

    assert 10 == few.candidates
    assert [-700 + step for step in (4, 7, 10, 3047, 3050)] == chosen


def test_records_left_is_the_least_that_keeps_its_failure_probability():
    for candidates, epsilon, beta in ((1, 1.0, 0.05), (73, 0.5, 0.05), (10**5, 0.01, 0.2), (5, 9.0, 0.9)):
        scale = float(Fraction(2) / Fraction(epsilon))
        z = np.arange(-int(45 * scale) - 2, int(45 * scale) + 3)
        law = np.exp(-np.abs(z) / scale) * math.tanh(0.5 / scale)
        tail = np.cumsum(np.convolve(law, law)[::-1])[::-1]  # of nu - rho, from 2 z[0] on
        left = records_left(candidates, epsilon, beta)

        assert candidates * tail[left + 1 - 2 * z[0]] <= beta * (1 + 1e-9)
        assert left == 0 or candidates * tail[left - 2 * z[0]] > beta * (1 - 1e-9)


def test_records_left_is_a_quarter_of_the_printed_bound():
    """3.7: 8 ln(2K/beta)/eps = 336 for 30,000 candidates at epsilon 1/3."""
    assert 336 == round(8 * math.log(2 * 30_000 / 0.05) * 3)
    assert 88 == records_left(30_000, 1 / 3, 0.05)


def test_a_threshold_leaves_so_many_more_records():
    data = ic.PrivateData.from_counts({"x": [2, 12]}, [980, 20], ic.Domain.of(x=range(2, 13)))
    at = [
        clipping_bound(data, "x", 1.0, threshold=-t, noise=ScriptedNoise(script(0, 10))).records_above
        for t in (0, 40)
    ]

    assert [records_left(10, 1.0, 0.05) + t for t in (0, 40)] == at


# The mean of clipped values


def test_auto_avg_halves_epsilon_between_bound_and_sum_when_n_is_public():
    noise = ScriptedNoise(script(2, 10, -1))
    result = auto_avg(table(), "x", 1.0, noise=noise)

    # clipped at 5: 3 3 4 5 5 less 2 each = 10, sensitivity 5 - 2
    assert [("discrete_laplace", scale, size) for scale, size in (("4", 1), ("4", 10), ("6", 1))] == asked(
        noise
    )
    assert (5, True, 5, 2 + 9 / 5) == (result.bound, result.hit, result.denominator, result.value)


def test_the_texts_split_gives_a_third_to_bound_sum_and_count():
    noise = ScriptedNoise(script(2, 10, -1, 3))
    result = auto_avg(table(), "x", 0.75, count="noisy", noise=noise)

    assert [("8", 1), ("8", 10), ("12", 1), ("4", 1)] == [(scale, size) for _, scale, size in asked(noise)]
    assert (8, 2 + 9 / 8) == (result.denominator, result.value)


@pytest.mark.parametrize("draw", [-4, -5, -6, -50])
def test_text_slip_a_noisy_count_of_zero_or_less_is_never_divided_by(draw):
    """3.7: n + noise can be 0 or negative; the texts divide by it all the same."""
    result = auto_avg(table(), "x", 0.75, count="noisy", noise=ScriptedNoise(script(2, 10, 0, draw)))

    assert (1, 2 + 10) == (result.denominator, result.value)
    assert math.isfinite(result.error_bound)


@pytest.mark.parametrize("count", ["public", "noisy"])
def test_without_noise_the_true_mean_is_in_the_interval(count):
    values = [17] * 300 + [40] * 500 + [89] * 5
    data = table(values, range(151))
    truth = float(np.mean(values))
    for first in (20, 80, 149, None):
        noise = ScriptedNoise(script(first, 150, 0, 0))
        result = auto_avg(data, "x", 1.0, count=count, noise=noise)
        clipped = float(np.minimum(values, result.bound).mean())

        assert clipped == pytest.approx(result.value)
        assert result.noise_radius > 0
        if first != 20:  # that bound leaves 505 records above, which its noise allows in no other test
            assert result.value - 1e-9 <= truth <= result.value + result.bias_bound + 1e-9


def test_no_hit_at_the_largest_value_has_no_bias_and_below_it_no_bound_but_the_range():
    data = table()
    whole = auto_avg(data, "x", 1.0, noise=ScriptedNoise(script(None, 10, 0)))
    cut = auto_avg(data, "x", 1.0, bounds=[3, 8], noise=ScriptedNoise(script(None, 2, 0)))

    assert (12, False, 0.0) == (whole.bound, whole.hit, whole.bias_bound)
    assert (8, False, 4.0) == (cut.bound, cut.hit, cut.bias_bound)  # all of n could lie at 12


def test_radius_of_the_quotient_covers_all_sums_and_counts_within_their_radii():
    share, beta = 0.25, 0.3
    data = table([3] * 40, range(2, 13))
    reach = LaplaceMechanism(share, 3).radius(beta / 3)
    off = LaplaceMechanism(share).radius(beta / 3)
    for z, w in itertools.product((-reach, 0, reach), (-off, 0, off)):
        noise = ScriptedNoise(script(2, 10, z, w))
        result = auto_avg(data, "x", 0.75, count="noisy", beta=beta, noise=noise)

        assert abs(result.value - 3) <= result.noise_radius + 1e-12


def test_shares_never_exceed_epsilon_when_a_third_is_no_float():
    for epsilon in (0.1, 1.0, 0.7, 1e-3):
        noise = ScriptedNoise(script(2, 10, 0, 0))
        auto_avg(table(), "x", epsilon, count="noisy", noise=noise)
        search, _, total, count = [Fraction(scale) for _, scale, _ in noise.scales]

        assert 2 / search + 3 / total + 1 / count <= Fraction(epsilon)


@pytest.mark.parametrize("count", ["private", None, 3])
def test_count_is_public_or_noisy(count):
    with pytest.raises(InvalidParameterError, match="count must be 'public' or 'noisy'"):
        auto_avg(table(), "x", 1.0, count=count)


def test_results_are_frozen():
    result = mean(table(), "x", 1.0)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        result.value = 0.0
