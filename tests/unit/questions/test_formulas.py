"""Arithmetic on released numbers: the ends of what is made of them, beside all corners of their intervals."""

import itertools
import math

import attrs
import numpy as np
import pytest

from onlineic.questions.formulas import WAYS, Held, Leaf, Number, compares, joined


def leaf(key, values, own, joint=None, expected=None, bias=0.0, few=False, beta=0.05):
    values, own = np.atleast_1d(np.array(values, float)), np.atleast_1d(np.array(own, float))
    own = np.broadcast_to(own, values.shape)
    joint = 2.0 * own if joint is None else np.broadcast_to(np.array(joint, float), values.shape)
    return Leaf(
        key=key, values=values, own=own, joint=joint,
        expected=own / 2.0 if expected is None else np.broadcast_to(np.array(expected, float), values.shape),
        bias=np.full(values.shape, bias), few=np.full(values.shape, few),
        failures=({(key, place): beta for place in range(len(values))},), event=("session", beta),
        answers=((),),
    )  # fmt: skip


def number(*arguments, **options):
    return Number.of(leaf(*arguments, **options))


A, B, C = number("a", 30.0, 2.0), number("b", 50.0, 3.0), number("c", 7.0, 1.0)
PARTS = {"a": (30.0, 2.0), "b": (50.0, 3.0), "c": (7.0, 1.0)}
TWO = Number.constant(2.0)
# name: what is made of numbers, what is made of floats, whether its ends are exact
MADE = {
    "a + b": (A.plus(B), lambda a, b, c: a + b, True),
    "a - b": (A.plus(B, -1.0), lambda a, b, c: a - b, True),
    "a - a": (A.plus(A, -1.0), lambda a, b, c: 0.0, True),
    "2 a - b/2": (A.scaled(2.0).plus(B.over(TWO), -1.0), lambda a, b, c: 2 * a - b / 2, True),
    "a / b": (A.over(B), lambda a, b, c: a / b, True),
    "a / (a + b)": (A.over(A.plus(B)), lambda a, b, c: a / (a + b), True),
    "100 a / (a + b + c)": (
        A.scaled(100.0).over(A.plus(B).plus(C)),
        lambda a, b, c: 100 * a / (a + b + c),
        True,
    ),
    "(a - b) / (a + b)": (A.plus(B, -1.0).over(A.plus(B)), lambda a, b, c: (a - b) / (a + b), True),
    "a / b + c / b": (A.over(B).plus(C.over(B)), lambda a, b, c: (a + c) / b, True),
    "1 - a / b": (Number.constant(1.0).plus(A.over(B), -1.0), lambda a, b, c: 1 - a / b, True),
    "a / b - 3": (A.over(B).plus(Number.constant(3.0), -1.0), lambda a, b, c: a / b - 3, True),
    "(a / b) / (c / b)": (A.over(B).over(C.over(B)), lambda a, b, c: a / c, True),
    "(a / b) b": (A.over(B).times(B), lambda a, b, c: a, True),
    "a b": (A.times(B), lambda a, b, c: a * b, True),
    "a b - c": (A.times(B).plus(C, -1.0), lambda a, b, c: a * b - c, True),
    "a / b - a / c": (A.over(B).plus(A.over(C), -1.0), lambda a, b, c: a / b - a / c, False),
    "|c - 8|": (C.plus(Number.constant(8.0), -1.0).absolute(), lambda a, b, c: abs(c - 8), True),
    "root a": (A.root(), lambda a, b, c: math.sqrt(a), True),
    "2 / a": (TWO.over(A), lambda a, b, c: 2 / a, True),
    "-a": (A.scaled(-1.0), lambda a, b, c: -a, True),
}


@pytest.mark.parametrize("name", MADE)
def test_ends_hold_all_corners_of_the_intervals_and_are_among_them(name):
    made, exact, sharp = MADE[name]
    for way, factor in zip(WAYS, (1.0, 2.0), strict=True):
        grid = [np.linspace(value - factor * off, value + factor * off, 5) for value, off in PARTS.values()]
        found = [exact(*place) for place in itertools.product(*grid)]
        low, high = (float(end[0]) for end in made.spans[way])

        assert low <= min(found) + 1e-9
        assert max(found) <= high + 1e-9
        if sharp:
            assert (low, high) == pytest.approx((min(found), max(found)), abs=1e-9)
    assert exact(30.0, 50.0, 7.0) == pytest.approx(float(made.values[0]))


@pytest.mark.parametrize("name", MADE)
def test_expected_errors_are_to_first_order_of_independent_ones(name):
    made, exact, _ = MADE[name]
    step, told = 1e-6, 0.0
    for place, (_, off) in enumerate(PARTS.values()):
        at = [30.0, 50.0, 7.0]
        at[place] += step
        told = math.hypot(told, (exact(*at) - exact(30.0, 50.0, 7.0)) / step * off / 2.0)

    assert told == pytest.approx(float(made.expected[0]), rel=1e-4, abs=1e-5)


def test_quotients_of_random_sums_have_their_exact_ends():
    draw = np.random.default_rng(8)
    for _ in range(40):
        count, rows = int(draw.integers(2, 6)), 3
        leaves = [
            number(place, draw.uniform(1, 9, rows), draw.uniform(0, 0.5, rows)) for place in range(count)
        ]
        tops, bottoms = draw.normal(size=count).round(2), draw.uniform(0.1, 2, count).round(2)

        def summed(factors, of):
            total = of[0].scaled(float(factors[0]))
            for factor, one in zip(factors[1:], of[1:], strict=True):
                total = total.plus(one.scaled(float(factor)))
            return total

        made = summed(tops, leaves).over(summed(bottoms, leaves))
        for row in range(rows):
            values = np.array([one.values[row] for one in leaves])
            offs = np.array([next(iter(one.leaves.values())).own[row] for one in leaves])
            corners = [values + offs * np.array(signs) for signs in itertools.product((-1, 1), repeat=count)]
            ends = [tops @ corner / (bottoms @ corner) for corner in corners]

            assert (min(ends), max(ends)) == pytest.approx([float(end[row]) for end in made.spans["own"]])


def test_a_divisor_that_may_be_0_leaves_everything_open():
    wide = number("w", 1.0, 1.5)
    made = A.over(wide)

    assert (-math.inf, math.inf) == tuple(float(end[0]) for end in made.spans["own"])
    assert math.inf == made.stated().bounds[0]
    assert math.isnan(A.over(Number.constant(0.0)).values[0])
    assert math.isnan(A.over(A.plus(A, -1.0)).values[0])


def test_two_numbers_of_one_session_fail_together_and_of_two_by_themselves():
    for told in (A.plus(B).stated(), A.plus(number("d", 50.0, 3.0, joint=math.inf)).stated()):
        assert 0.90 == pytest.approx(
            told.confidence
        )  # each by itself: in the one event they are twice as wide
        assert 5.0 == pytest.approx(told.bounds[0])
    narrow = [number(key, 30.0, 2.0, joint=2.05) for key in "xy"]
    assert 0.95 == narrow[0].plus(narrow[1]).stated().confidence
    assert (0.0, 1.0) == (A.plus(A, -1.0).stated().bounds[0], A.plus(A, -1.0).stated().confidence)


def test_every_answer_of_every_row_can_fail_by_itself():
    """Each of two rows was made of two answers: of the first both stand in two formulas, and fail once."""
    held = attrs.evolve(
        leaf("rows", [3.0, 4.0], 0.1, joint=math.inf),
        failures=({"p": 0.05, "q": 0.05}, {"r": 0.05, "s": 0.05}),
        answers=((), ()),
    )
    both = Number.of(held)

    assert 0.8 == pytest.approx(both.stated().confidence)
    assert 0.8 == pytest.approx(both.plus(both.scaled(2.0)).stated().confidence)
    assert 0.9 == pytest.approx(both.row(1).stated().confidence)


def test_over_few_records_nothing_bounds_what_is_made():
    made = A.plus(number("few", 3.0, 0.5, few=True)).stated()

    assert math.isinf(made.bounds[0])
    assert made.few[0]
    assert np.isfinite(made.values[0])


def test_what_is_exact_stays_exact():
    count = number("n", 1000.0, 0.0)
    told = Number.constant(3.0).over(count).stated()

    assert (0.003, 0.0, 1.0) == (told.values[0], told.bounds[0], told.confidence)


def test_bins_put_numbers_off_beside_their_bounds():
    mean = number("m", 20.0, 1.0, bias=0.5)

    assert 0.5 == mean.stated().bias[0]
    assert 1.0 == pytest.approx(mean.scaled(2.0).stated().bias[0])
    assert 0.5 == pytest.approx(mean.plus(A).stated().bias[0])
    quotient = mean.over(A).stated()
    widest = max((20.0 + 1.0 + 0.5) / (30.0 - 2.0) - (20.0 + 1.0) / (30.0 - 2.0), 0.0)
    assert widest <= quotient.bias[0] <= 2 * widest


def test_rounding_goes_away_from_0_and_keeps_what_is_open():
    made = number("r", [2.5, -2.5, 0.125, 7.0], [0.0, 0.0, 0.3, 0.2])

    assert [3.0, -3.0, 0.0, 7.0] == made.rounded(0).values.tolist()
    assert [2.5, -2.5, 0.13, 7.0] == made.rounded(2).values.tolist()
    assert [0.0, 0.0, 0.0, 0.0] == pytest.approx(made.rounded(0).stated().bounds.tolist())
    told = number("s", 7.4, 0.3).rounded(0).stated()
    assert (7.0, 1.0) == (told.values[0], pytest.approx(told.bounds[0]))  # it may be 8


def test_null_is_what_nothing_is_known_of_and_what_is_known_to_be_null():
    unknown, empty = number("u", math.nan, math.inf), number("e", math.nan, 0.0, joint=0.0)
    filled, known = unknown.filled(Number.constant(5.0)).stated(), empty.filled(Number.constant(5.0)).stated()

    assert (5.0, math.inf) == (filled.values[0], filled.bounds[0])
    assert (5.0, 0.0) == (known.values[0], known.bounds[0])
    assert math.isnan(unknown.plus(A).values[0])
    assert (math.nan, 0.0) == pytest.approx((empty.stated().values[0], empty.stated().bounds[0]), nan_ok=True)
    assert math.isnan(A.unless(Number.constant(30.0)).times(TWO).values[0])
    assert 60.0 == A.unless(Number.constant(31.0)).times(TWO).values[0]
    assert A is A.filled(B)


@pytest.mark.parametrize(
    ("one", "sign", "other", "true", "sure"),
    [
        (A, "<", B, True, True),
        (A, ">", B, False, True),
        (C, ">", Number.constant(6.5), True, False),
        (C, "<=", Number.constant(9.0), True, True),
        (C, ">=", Number.constant(9.1), False, True),
        (A, "=", B, False, True),
        (A, "<>", number("z", 31.0, 2.0), True, False),
        (A, "=", A, True, True),
        (number("u", math.nan, math.inf), ">", TWO, False, False),
    ],
)
def test_a_comparison_is_sure_where_no_corner_has_another(one, sign, other, true, sure):
    found = compares(one, sign, other)

    assert (true, sure) == (bool(found.true[0]), bool(found.sure["own"][0]))


def test_a_case_that_is_not_sure_can_be_either():
    low, high = Number.constant(1.0), Number.constant(9.0)
    open_, sure = compares(C, ">", Number.constant(6.5)), compares(C, ">", Number.constant(2.0))

    assert (1.0, 8.0) == pytest.approx(
        (low.chosen(high, open_).values[0], low.chosen(high, open_).stated().bounds[0])
    )
    assert (1.0, 0.0) == (low.chosen(high, sure).values[0], low.chosen(high, sure).stated().bounds[0])
    null = low.chosen(Number.constant(math.nan), open_).stated()
    assert (1.0, math.inf) == (null.values[0], null.bounds[0])
    assert 0.95 == pytest.approx(low.chosen(high, open_).stated().confidence)  # the condition has to hold too
    known = Held.known(np.array([True]))
    assert bool(joined(True, [sure, known]).sure["own"][0])
    assert not bool(joined(True, [open_, known]).sure["own"][0])
    assert bool(joined(False, [open_, known]).sure["own"][0])  # one alone decides


def test_rows_are_taken_with_all_that_is_known_of_them():
    column = number("t", [10.0, 20.0, 30.0], [1.0, 2.0, 3.0])
    second = column.over(A).row(1)

    assert 20.0 / 30.0 == second.values[0]
    assert 2.0 == pytest.approx(column.row(1).stated().bounds[0])
    assert 0.0 == column.row(1).plus(column.row(1), -1.0).stated().bounds[0]
    assert 0.0 < column.row(1).plus(column.row(2), -1.0).stated().bounds[0]
    assert [20.0, 20.0, 10.0] == column.rows(np.array([1, 1, 0])).values.tolist()
