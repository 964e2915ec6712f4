"""A quantile on a fine grid: the law of enumeration at the cost of the values, and nothing in messages."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from onlineic.domain import Grid
from onlineic.errors import InvalidParameterError, TooLargeError
from onlineic.mechanisms import ExponentialMechanism, QuantileMechanism, quantile_scores
from onlineic.mechanisms import quantiles as _quantiles
from onlineic.noise import SimulatedNoise, SystemNoise
from onlineic.testing import ScriptedNoise

EPSILON = 0.7
SCALE = float(QuantileMechanism(EPSILON, 10).scale)


def law(values, points, q):
    """P(point), from the runs that are drawn: weight of a run by its points, uniform within it."""
    starts, counts, lengths = _quantiles._runs(np.array(values), points)
    weights = np.exp(quantile_scores(counts, q) / SCALE) * lengths
    assert lengths == np.diff([*starts, points]).tolist()
    assert counts.sum() == len(values)
    return np.repeat(weights / weights.sum() / lengths, lengths)


@pytest.mark.parametrize("q", [0, Fraction(1, 3), 0.5, 1])
@pytest.mark.parametrize("values", [(0,), (4, 4, 4), (0, 9), (3, 4, 5, 9, 9), tuple(range(10))], ids=str)
def test_the_law_is_that_of_the_exponential_mechanism_on_all_points(values, q):
    counts = np.bincount(values, minlength=10)
    expected = ExponentialMechanism(EPSILON).probabilities(quantile_scores(counts, q))

    assert expected == pytest.approx(law(values, 10, q), rel=1e-12)


def test_no_replaced_value_moves_the_law_by_more_than_epsilon_and_some_do_nearly():
    worst = 0.0
    for values in itertools.combinations_with_replacement(range(7), 4):
        for place, value in itertools.product(range(4), range(7)):
            other = [*values[:place], value, *values[place + 1 :]]
            for q in (0.5, 0.25, 1):
                worst = max(worst, float(np.abs(np.log(law(values, 7, q) / law(other, 7, q))).max()))

    assert 0.6 * EPSILON < worst <= EPSILON * (1 + 1e-12)


def test_gaps_that_count_as_one_point_each_would_have_another_law():
    """The slip of drawing a gap by its score alone: the law is then no longer that of all points."""
    starts, counts, lengths = _quantiles._runs(np.array([0, 9]), 10)
    forgot = np.exp(quantile_scores(counts, 0.5) / SCALE)

    assert [1, 8, 1] == lengths
    assert [0, 1, 9] == starts
    assert np.repeat(forgot / forgot.sum() / lengths, lengths) != pytest.approx(law((0, 9), 10, 0.5), rel=0.1)


def test_a_draw_takes_the_run_first_and_then_a_uniform_point_of_it():
    noise = ScriptedNoise([0x80 << 56, *[5 << 32 | 3] * 32])  # the middle of all weights, then 3 of 0..7
    chosen = QuantileMechanism(EPSILON, 10).select(np.array([0, 9]), noise)

    assert 1 + 3 == chosen


def test_drawn_points_follow_the_law():
    values, points = np.array([2, 2, 40, 60, 60, 61]), 64
    mechanism, noise = QuantileMechanism(EPSILON, points), SimulatedNoise(7)
    drawn = np.bincount([mechanism.select(values, noise) for _ in range(6000)], minlength=points)
    expected = law(values, points, 0.5) * 6000
    wrong = np.full(points, 6000 / points)

    assert stats.chisquare(drawn, expected).pvalue > 1e-9
    assert stats.chisquare(drawn, wrong).pvalue < 1e-9


def test_a_grid_of_two_to_the_62_points_is_drawn_within_its_radius():
    grid = Grid(0, 1, points=2**62)
    values = grid.codes(np.random.default_rng(1).uniform(0.3, 0.5, 4001))
    mechanism = QuantileMechanism(0.5, grid.points, q=0.9)
    radius = mechanism.radius(1e-9)
    for _ in range(5):
        chosen = mechanism.select(values, SystemNoise())

        assert (values < chosen).sum() <= 3600 + radius
        assert (values > chosen).sum() <= 401 + radius
    assert 200 < radius < 270  # (2/.5) (62 ln 2 + 9 ln 10) = 255


@pytest.mark.parametrize(
    "values",
    [np.array([0.5]), np.array([], np.int64), np.array([-1]), np.array([10]), np.array([123456789])],
    ids=str,
)
def test_values_off_the_grid_are_refused_and_never_shown(values):
    with pytest.raises(InvalidParameterError, match="values must be") as caught:
        QuantileMechanism(EPSILON, 10).select(values, SimulatedNoise(1))

    assert "123456789" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"points": 0}, {"points": 2**63}, {"epsilon": 0.0}, {"q": 1.5}, {"q": "half"}]
)
def test_other_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        QuantileMechanism(**{"epsilon": 1.0, "points": 10, **wrong})


def test_too_many_records_are_refused_by_their_number_alone(monkeypatch):
    monkeypatch.setattr(_quantiles, "LONGEST", 9)
    few = QuantileMechanism(1.0, 100)

    assert 0 <= few.select(np.array([1, 50, 50, 99]), SystemNoise()) < 100
    for values in ([7] * 5, [1, 20, 40, 60, 80]):  # one distinct value, or five
        with pytest.raises(TooLargeError, match="fewer than 4, got 5"):
            few.select(np.array(values), SystemNoise())
