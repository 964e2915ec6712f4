"""Real numbers on a public grid: the nearest point, and errors in the units of the column."""

from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidDataError, InvalidDomainError, InvalidParameterError
from onlineic.noise import SimulatedNoise
from onlineic.offline import mean


def test_each_number_goes_to_the_nearest_point():
    grid = ic.Grid(-1, 1, points=5)

    assert Fraction(1, 2) == grid.step
    assert [-1, -0.5, 0, 0.5, 1] == grid.values.tolist()
    assert [0, 0, 1, 2, 3, 4] == grid.codes([-1, -0.8, -0.7, 0.1, 0.6, 1]).tolist()
    assert [0, 4] == grid.codes([-7, np.inf], clip=True).tolist()
    assert [-1.0, 0.25] == [grid.value(0), grid.value(2.5)]
    assert "Grid(-1 .. 1, 5 points)" == repr(grid)


@pytest.mark.parametrize("points", [2, 11, 1000, 2**40 + 1, 2**62])
@pytest.mark.parametrize("ends", [(0.1, 0.7), (-3.0, 1e9), (1e6, 1e6 + 1)], ids=str)
def test_no_number_is_farther_from_its_point_than_the_stated_rounding(ends, points):
    grid, numbers = ic.Grid(*ends, points=points), np.random.default_rng(1).uniform(*ends, 300)
    codes = grid.codes(np.append(numbers, ends))

    assert codes.min() >= 0
    assert codes.max() == points - 1
    for number, code in zip([*numbers.tolist(), *ends], codes.tolist(), strict=True):
        assert abs(Fraction(number) - grid.low - grid.step * code) <= Fraction(grid.rounding)


def test_a_mean_is_restored_with_its_bound_and_the_rounding_beside_it():
    numbers = np.random.default_rng(2).uniform(-1, 1, 5000)
    grid = ic.Grid(-1, 1, points=101)
    data = ic.PrivateData.from_records({"x": grid.codes(numbers)}, ic.Domain.of(x=range(grid.points)))
    released = mean(data, "x", 1.0, noise=SimulatedNoise(3))
    value, bound = grid.restored(released.value, released.error_bound)

    assert value == pytest.approx(-1 + 0.02 * released.value, abs=1e-12)
    assert bound == pytest.approx(0.02 * released.error_bound + 0.01, rel=1e-9)
    assert abs(value - numbers.mean()) <= bound


@pytest.mark.parametrize(
    "ends", [(-1.5e308, 1.5e308), (0, 10**400), (-(10**400), 0), (0, 5e-324), (1e-300, 1e-300 * (1 + 1e-14))]
)
def test_ends_and_steps_that_no_float_holds_are_refused(ends):
    with pytest.raises(InvalidDomainError, match="low and high must be"):
        ic.Grid(*ends, points=2**62)


def test_integers_beyond_the_floats_are_outside():
    grid = ic.Grid(0, 10, points=11)
    with pytest.raises(InvalidDataError, match="got numbers outside"):
        grid.codes([10**400, 1])

    assert [10, 1, 0] == grid.codes([10**400, 1, -(10**400)], clip=True).tolist()


@pytest.mark.parametrize("column", [[0.5, 1.5], [0.5, np.nan], [-0.1], ["a"], [True], [None]], ids=str)
def test_other_columns_are_refused(column):
    with pytest.raises(InvalidDataError, match="column must"):
        ic.Grid(0, 1, points=11).codes(column)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1)])
def test_ends_must_rise(ends):
    with pytest.raises(InvalidDomainError, match="low must be below high"):
        ic.Grid(*ends, points=3)


@pytest.mark.parametrize(
    "wrong",
    [{"points": 1}, {"points": 2**63}, {"points": 2.5}, {"low": np.nan}, {"high": np.inf}, {"low": "0"}],
)
def test_other_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        ic.Grid(**{"low": 0, "high": 1, "points": 3, **wrong})
