"""NumericSparse over statistics: sensitivities by brute force, claims stamped, charged before the read."""

import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy.optimize import linprog

import onlineic as ic
from onlineic.errors import (
    DomainMismatchError,
    InvalidDataError,
    InvalidParameterError,
    InvalidQueryError,
    SessionSealedError,
)
from onlineic.noise import SimulatedNoise
from onlineic.offline import (
    LinearPrograms,
    Statistic,
    column_mean,
    distinct_count,
    exceptions,
    fraction,
    linear_programs_above,
    numeric_sparse,
    on_grid,
    statistic,
)
from onlineic.sparse import ValueSparse
from support.failures import SECRET

DOMAIN = ic.Domain.of(a=range(-1, 2), b=["x", "y"])
BUDGET = ic.Budget(1.0)


def value(one, counts):
    return Fraction(one.compute(ic.PrivateData(counts, DOMAIN).exact_counts(one.target)))


def four(counts=(3, 0, 0, 1, 0, 0)):
    """Statistics of each kind, over four records."""
    data = ic.PrivateData(list(counts), DOMAIN)
    return [
        fraction(data, ic.where(a=0)),
        fraction(data, ic.dense([0, 0.25, 1, 0.5, 0.5, 0.75])),
        column_mean(data, "a"),
        distinct_count(DOMAIN, "a", "b"),
        distinct_count(DOMAIN, "a", at_least=2),
        exceptions(DOMAIN, ["a"], "b"),
        exceptions(DOMAIN, "b", of="a"),
    ]


@pytest.mark.parametrize("place", range(7))
def test_no_replaced_record_moves_a_statistic_further_than_its_sensitivity_and_one_reaches_it(place):
    one = four()[place]
    tables = [t for t in itertools.product(range(5), repeat=6) if sum(t) == 4]
    values = {table: value(one, list(table)) for table in tables}
    moved = Fraction(0)
    for table in tables:
        for left, right in itertools.permutations(range(6), 2):
            if table[left]:
                other = list(table)
                other[left] -= 1
                other[right] += 1
                moved = max(moved, abs(values[table] - values[tuple(other)]))

    assert one.sensitivity == moved
    assert not one.claimed


def test_exceptions_are_the_fewest_records_to_remove():
    counts = [2, 1, 1, 0, 1, 3]  # a = -1: x x y; a = 0: x; a = 1: x y y y

    assert [2, 3] == [
        value(one, counts) for one in (exceptions(DOMAIN, "a", "b"), exceptions(DOMAIN, "b", "a"))
    ]


def data_of(n=30_000):
    codes = np.arange(n) % 40
    columns = {"code": codes, "region": np.where(np.arange(n) < n - 900, codes // 10, (codes // 10 + 1) % 4)}
    return ic.PrivateData.from_records(columns, ic.Domain.of(code=range(40), region=4))


def test_a_mean_far_from_zero_is_exact_where_n_times_the_ends_of_its_range_would_wrap_around():
    low = 2**61 - 1
    domain = ic.Domain.of(a=range(low, low + 2))
    one, other = (ic.PrivateData(counts, domain) for counts in ([1, 3], [0, 4]))
    told = [column_mean(data, "a") for data in (one, other)]
    means = [
        mean.compute(data.exact_counts(mean.target)) for mean, data in zip(told, (one, other), strict=True)
    ]

    assert [low + Fraction(3, 4), low + 1] == means
    assert abs(means[0] - means[1]) <= told[0].sensitivity


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [("laplace", 0.0), ("laplace", 1e-6), ("exponential", 0.0), ("gumbel", 1e-6), (None, 0.0)],
)
def test_hits_and_their_values_in_the_units_of_each_statistic(mechanism, delta):
    data = data_of()
    asked = [
        distinct_count(data.domain, "code"),
        exceptions(data.domain, ["code"], "region"),
        column_mean(data, "code"),
        fraction(data, ic.where(region=0)),
    ]
    budget = ic.Budget(1.0, delta)
    found = numeric_sparse(
        data, asked, [500, 500, 10, 0.9], budget, cutoff=3, mechanism=mechanism, noise=SimulatedNoise(4)
    )

    assert ((1, 2), 4, ()) == (found.above, found.tested, found.claimed)
    for place, number in zip(found.above, found.values, strict=True):
        assert abs(number - [40, 900, 19.5, 0.25][place]) <= found.value_bounds[place] < [1, 300, 1, 1][place]
    own = ValueSparse.calibrated(budget, cutoff=3, max_values=4, mechanism=mechanism).radii(4, 0.05)
    for one, test, number in zip(asked, found.radii, found.value_bounds, strict=True):
        assert (test, number) == pytest.approx(tuple(radius * float(one.sensitivity) for radius in own))
    assert [] == list(data.budgets)
    assert "NOT PRIVATE" in repr(found)


def test_it_is_charged_before_it_reads_and_stops_reading_at_its_last_hit():
    data = data_of()
    asked = [exceptions(data.domain, ["code"], "region")] * 3
    found = numeric_sparse(data, asked, 100, BUDGET)

    assert ((0,), 1, range(1, 3), True) == (found.above, found.tested, found.not_reached, found.private)
    assert ([BUDGET], 1) == (list(data.budgets), data.reads)
    assert "PRIVATE" not in repr(found)


def test_a_sensitivity_of_the_callers_is_stamped_as_a_claim():
    data = data_of()
    largest = statistic(data.domain, ["code"], lambda counts: counts.max(), 1, "largest code")
    found = numeric_sparse(data, [distinct_count(data.domain, "code"), largest], [1000, 500], BUDGET)

    assert (True, (1,), (1,)) == (largest.claimed, found.claimed, found.above)
    assert "CLAIMED by the caller" in repr(largest)
    assert Statistic("by hand", largest.target, largest.compute, 1).claimed
    assert "sensitivity CLAIMED of 1" in repr(found)


@pytest.mark.parametrize(
    "compute",
    [
        lambda counts: 1 / 0,
        lambda counts: [][SECRET],
        lambda counts: math.nan,
        lambda counts: math.inf,
        lambda counts: str(counts),
        lambda counts: counts,
        lambda counts: None,
    ],
)
def test_a_statistic_that_fails_says_nothing_and_stays_spent(compute):
    data = data_of()
    with pytest.raises(SessionSealedError) as failed:
        numeric_sparse(data, [statistic(data.domain, ["code"], compute, 1)], 5, BUDGET)

    assert [BUDGET] == list(data.budgets)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None


def test_a_statistic_cannot_change_the_table_it_is_made_of():
    data = data_of()

    def spoil(counts):
        counts[:] = 0
        return 0

    numeric_sparse(data, [statistic(data.domain, ["code", "region"], spoil, 1)], 5, BUDGET)
    assert 30_000 == data.exact_counts(ic.where(region=ic.one_of(0, 1, 2, 3)).bind(data.domain))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"statistics": []}, InvalidParameterError),
        ({"statistics": [3]}, InvalidParameterError),
        ({"threshold": [1, 2]}, InvalidParameterError),
        ({"threshold": math.nan}, InvalidParameterError),
        ({"threshold": "5"}, InvalidParameterError),
        ({"cutoff": 0}, InvalidParameterError),
        ({"beta": 0.0}, InvalidParameterError),
        ({"mechanism": "gumbel"}, InvalidParameterError),
        ({"mechanism": "other"}, InvalidParameterError),
        ({"budget": 1.0}, InvalidParameterError),
        ({"statistics": [distinct_count(DOMAIN, "a")]}, DomainMismatchError),
        ({"statistics": [column_mean(data_of(1000), "code")]}, DomainMismatchError),
    ],
)
def test_bad_input_is_refused_by_name_and_spends_nothing(wrong, error):
    data = data_of()
    right = {"statistics": [distinct_count(data.domain, "code")], "threshold": 5, "budget": BUDGET}
    with pytest.raises(error, match="must"):
        numeric_sparse(data, **(right | wrong))
    assert ([], 0) == (list(data.budgets), data.reads)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: distinct_count(DOMAIN), InvalidParameterError),
        (lambda: distinct_count(DOMAIN, "a", "a"), InvalidParameterError),
        (lambda: distinct_count(DOMAIN, "a", at_least=0), InvalidParameterError),
        (lambda: distinct_count(ic.Domain.of(a=3000, b=3000), "a", "b"), InvalidParameterError),
        (lambda: exceptions(DOMAIN, ["a"], "a"), InvalidParameterError),
        (lambda: column_mean(ic.PrivateData([1] * 6, DOMAIN), "b"), InvalidQueryError),
        (lambda: fraction(ic.PrivateData([1] * 6, DOMAIN), ic.where()), InvalidQueryError),
        (lambda: fraction(ic.PrivateData([1] * 6, DOMAIN), ic.marginal("a")), InvalidQueryError),
        (lambda: statistic(DOMAIN, ["a"], 3, 1), InvalidParameterError),
        (lambda: statistic(DOMAIN, ["a"], len, 0), InvalidParameterError),
        (lambda: statistic(DOMAIN, ["a"], len, math.nan), InvalidParameterError),
        (lambda: on_grid([1.0, math.nan], 0.1, 0, 5), InvalidDataError),
        (lambda: on_grid(["a"], 0.1, 0, 5), InvalidDataError),
        (lambda: on_grid([1.0], 0.0, 0, 5), InvalidParameterError),
        (lambda: on_grid([1.0], 0.1, 6, 5), InvalidParameterError),
    ],
)
def test_statistics_that_cannot_be_are_refused_by_name(make, error):
    with pytest.raises(error, match="must"):
        make()


def test_a_statistic_is_a_plain_frozen_fact():
    one = distinct_count(DOMAIN, "a")

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.sensitivity = Fraction(0)
    assert "Statistic(distinct a, sensitivity 1)" == repr(one)
    assert isinstance(one, Statistic)


# Linear programs


def programs(n, unit=1, scale=1):
    return LinearPrograms(
        matrix=[[2, 1], [1, 0], [0, 1]],
        right_hand_sides=[[hours, 1, 1] for hours in (0, 0.5, 1, 2, 3)],
        lower=[0, 0],
        upper=[10 * scale, 10 * scale],
        n=n,
        unit=unit,
    )


@pytest.mark.parametrize(
    ("threshold", "sensitivity", "epsilon", "name"),
    [(-(10**400), 1, 1.0, "threshold"), (0, 1e308, 1.0, "sensitivities"), (0, 1, 1e-9, "epsilon")],
)
def test_what_no_float_can_tell_is_refused_before_anything_is_spent(threshold, sensitivity, epsilon, name):
    data = ic.PrivateData([3, 1, 0, 0, 2, 4], DOMAIN)
    asked = [statistic(DOMAIN, ["a"], lambda counts: 10**309, sensitivity)]

    with pytest.raises(InvalidParameterError, match=f"{name}.* must be"):
        numeric_sparse(data, asked, threshold, ic.Budget(epsilon))
    assert () == data.budgets


def test_thresholds_of_optima_that_no_float_can_tell_are_refused_too():
    data = ic.PrivateData.from_records({"first": [1], "second": [2]}, ic.Domain.of(first=11, second=11))

    with pytest.raises(InvalidParameterError, match="threshold and sensitivities must be"):
        linear_programs_above(data, ["first", "second"], programs(1), -(10**400), 1.0, optima=True)
    assert () == data.budgets


def test_linear_programs_hand_out_the_noisy_optimum_of_every_hit_within_its_bound():
    benefits = {"first": np.full(20_000, 5), "second": np.arange(20_000) % 5 + 2}
    data = ic.PrivateData.from_records(benefits, ic.Domain.of(first=range(11), second=range(11)))
    found = linear_programs_above(
        data, ["first", "second"], programs(20_000), 3, 1.0, cutoff=2, optima=True, noise=SimulatedNoise(1)
    )

    assert ((2, 3), 4) == (found.above, found.tested)
    for place, optimum, exact in zip(found.above, found.optima, (4.0, 6.5), strict=True):
        assert abs(optimum - exact) <= found.optimum_bounds[place] < 0.05
        assert optimum != exact
    plain = linear_programs_above(
        data, ["first", "second"], programs(20_000), 3, 1.0, noise=SimulatedNoise(1)
    )
    assert () == plain.optima


@pytest.mark.parametrize("private", ["objective", "right-hand sides"])
def test_real_columns_are_codes_of_a_public_grid(private):
    real, n = np.random.default_rng(1).uniform(0, 10, (50, 2)), 50
    codes = np.stack([on_grid(column, 0.01, 0, 1000) for column in real.T], axis=1)
    settings = {"matrix": [[2, 1], [1, 3]], "right_hand_sides": [[4, 6], [11, 12]], "n": n}
    if private != "objective":
        settings |= {"objective": [1, 2]}
    fine = LinearPrograms(**settings, lower=[0, 0], upper=[1000, 1000], unit=Fraction(1, 100))
    whole = LinearPrograms(**settings, lower=[0, 0], upper=[10, 10])
    optima = [float(one) for one in fine.optima(codes.sum(axis=0))]

    assert whole.sensitivities == fine.sensitivities
    assert whole.optima([300, 200]) == fine.optima([30_000, 20_000])
    mean = codes.mean(axis=0) / 100
    for optimum, side in zip(optima, settings["right_hand_sides"], strict=True):
        if private == "objective":
            reached = linprog(-mean, A_ub=settings["matrix"], b_ub=side)
        else:
            reached = linprog([-1, -2], A_ub=settings["matrix"], b_ub=side + mean)
        assert -reached.fun == pytest.approx(optimum, rel=1e-9)


def test_a_condition_is_the_fraction_of_the_records_that_meet_it():
    data = ic.PrivateData([300, 0, 0, 100, 0, 600], DOMAIN)
    asked = [ic.where(a=-1), {"b": "x"}, ic.where(a=1) & ic.where(b="y")]

    found = numeric_sparse(data, asked, 0.5, BUDGET, noise=SimulatedNoise(1))
    alike = numeric_sparse(data, [fraction(data, one) for one in asked], 0.5, BUDGET, noise=SimulatedNoise(1))

    assert (found.above, found.values, found.radii) == (alike.above, alike.values, alike.radii)
    assert (2,) == found.above
    assert () == found.claimed


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ([3], InvalidParameterError),
        (["x" * 3], InvalidQueryError),
        ([ic.where()], InvalidQueryError),
        ([ic.where(c=1)], InvalidQueryError),
        (ic.where(a=0), InvalidParameterError),
    ],
)
def test_what_is_no_condition_is_refused_and_charges_nothing(asked, kind):
    if isinstance(asked, list) and isinstance(asked[0], str):
        pytest.importorskip("sqlglot", reason="needs the extra sql")
    data = ic.PrivateData([300, 0, 0, 100, 0, 600], DOMAIN)

    with pytest.raises(kind):
        numeric_sparse(data, asked, 0.5, BUDGET)

    assert [] == list(data.budgets)


def test_bounds_of_values_hold_what_these_are_rounded_by():
    start, n = 10**12, 1_000_001  # milliseconds of a clock
    domain = ic.Domain.of(x=range(start, start + 11))
    data = ic.PrivateData.from_counts({"x": [start, start + 10]}, [n - 300_007, 300_007], domain)
    truth, budget = start + Fraction(3_000_070, n), ic.Budget(20.0)
    one, noise = column_mean(data, "x"), SimulatedNoise(1)
    found = numeric_sparse(data, [one], start - 5, budget, noise=noise)
    programs = LinearPrograms(matrix=[[1]], right_hand_sides=[[1]], lower=[start], upper=[start + 10], n=n)
    best = linear_programs_above(data, ["x"], programs, start - 5, 20.0, optima=True, noise=noise)

    assert abs(Fraction(found.values[0]) - truth) <= found.value_bounds[0]
    assert abs(Fraction(best.optima[0]) - truth) <= best.optimum_bounds[0]
