"""Counts by group without the bias of a fit that is never below 0, and the word that is said of it."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidQueryError
from onlineic.noise import SimulatedNoise

pytestmark = pytest.mark.filterwarnings("ignore::onlineic.errors.WideBoundWarning")
DRAW = np.random.default_rng(0)
N, FULL = 5000, 6
ROWS = {"g": DRAW.integers(0, FULL, N), "sex": DRAW.choice(["F", "M"], N)}
DOMAIN = ic.Domain.of(g=25, sex=["F", "M"])
COUNTS = np.bincount(ROWS["g"], minlength=25)


def opened(seed, epsilon=0.1, **settings):
    data = ic.PrivateData.from_records(ROWS, DOMAIN)
    return ic.OnlineIC(data, ic.Budget(epsilon, 1e-6), noise=SimulatedNoise(seed), **settings)


def test_the_sum_of_many_empty_groups_has_no_bias():
    fitted, free = [], []
    for seed in range(12):
        session = opened(seed)
        fitted.append(session.group_by("g").values[FULL:].sum())
        free.append(session.group_by("g", unbiased=True).values[FULL:].sum())

    spread = np.std(free) / np.sqrt(len(free))
    assert abs(np.mean(free)) < 4 * spread
    assert np.mean(fitted) > 4 * np.std(fitted) / np.sqrt(len(fitted))
    assert min(fitted) >= 0.0 > min(free)


def test_estimates_come_with_bounds_and_standard_errors():
    session = opened(3, 1.0)
    groups = session.group_by("g", unbiased=True)
    asked = session.statistics().asked
    known = session.unprojected([ic.where(g=3), ic.where(g=ic.at_least(FULL)), ic.where(), ic.marginal("g")])

    assert np.all(np.abs(groups.values - COUNTS) <= groups.error_bounds)
    assert np.all((groups.standard_errors > 0) & (groups.standard_errors < groups.error_bounds))
    assert session.n * known[0].value == pytest.approx(groups.values[3])
    assert session.n * known[1].value == pytest.approx(groups.values[FULL:].sum(), abs=1e-6)
    assert [None, None] == known[2:]
    assert asked == session.statistics().asked  # nothing is asked
    assert groups.confidence == 1.0 - session.beta
    among = session.group_by("g", ic.where(sex="F"), unbiased=True)
    women = np.bincount(ROWS["g"][np.array(ROWS["sex"]) == "F"], minlength=25)
    assert np.all(np.abs(among.values - women) <= among.error_bounds)


def test_where_no_table_was_released_the_answers_stand():
    session = opened(1, 1.0, purchases=ic.TestsOnly(), max_queries=100)
    plain, free = session.group_by("g"), session.group_by("g", unbiased=True)

    assert np.array_equal(plain.values, free.values)
    assert np.isnan(free.standard_errors).all()
    assert plain.standard_errors is None
    assert [None] == session.unprojected([ic.where(g=1)])


def test_it_is_said_where_groups_are_printed():
    session = opened(0)
    plain, free = session.group_by("g"), session.group_by("g", unbiased=True)

    assert "may be empty, and none is below 0: add them up by unbiased=True" in repr(plain)
    assert "unbiased=True" in plain._repr_html_()
    assert "may be empty" not in repr(free)
    assert "may be empty" not in repr(session.group_by("sex"))
    assert plain.rounded_up >= 10


def test_only_counts():
    session = ic.OnlineIC(
        ic.PrivateData.from_records({"age": [1, 2], "sex": ["F", "M"]}, ic.Domain.of(age=5, sex=["F", "M"])),
        ic.Budget(1.0),
        noise=SimulatedNoise(1),
    )
    with pytest.raises(InvalidQueryError, match="unbiased must be False of all but counts"):
        session.group_by("sex", aggregate="mean", of="age", unbiased=True)
    assert 0 == session.statistics().asked
