"""Covariances, correlations and least squares: of exact answers, of wrong ones in bounds, and refused."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic.errors import (
    IllConditionedError,
    InvalidParameterError,
    InvalidQueryError,
    TooFewRecordsError,
    TooLargeError,
)
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases, TestsOnly
from onlineic.questions import LeastSquares, sums_of_products
from onlineic.questions.association import _correlated
from onlineic.questions.linear import Found
from onlineic.questions.moments import Released, moments_of, sums_of
from onlineic.questions.regression import _slope_bounds
from onlineic.service.wire import to_wire
from support.exact_answers import Exactly

DRAW = np.random.default_rng(5)
N = 4_000
AGE = DRAW.integers(20, 61, N)
SEX = DRAW.choice(["F", "M", "X"], N, p=[0.5, 0.4, 0.1])
YEARS = np.clip(AGE - 15 - DRAW.integers(0, 12, N), 0, 40)
PAY = np.clip(12.0 * YEARS + 40.0 * (SEX == "M") + DRAW.normal(100, 60, N), 0, 799)
GAP = DRAW.random(N) < 0.1
ROWS = {
    "age": AGE,
    "years": [None if gap else int(one) for gap, one in zip(GAP, YEARS, strict=True)],
    "sex": SEX,
    "pay": PAY,
    "late": AGE % 3 == 0,
}
DOMAIN = ic.Domain.of(
    age=range(20, 61), years=ic.optional(range(41)), sex=["F", "M", "X"], pay=ic.number(0, 800, bins=80),
    late=[False, True],
)  # fmt: skip
DATA = ic.PrivateData.from_records(ROWS, DOMAIN.project("age", "years", "sex", "late"))
COLUMNS = {
    "age": AGE.astype(float),
    "years": np.where(GAP, np.nan, YEARS),
    "male": (SEX == "M") * 1.0,
    "late": (AGE % 3 == 0) * 1.0,
}
MALE = {"sex": "M"}


def column(one):
    return COLUMNS["male" if one == MALE else one]


def exact(outcome, on, among=None):
    """Return intercept, slopes and R squared by numpy, of those with all values."""
    held = np.column_stack([column(outcome), *map(column, on)])[slice(None) if among is None else among]
    held = held[~np.isnan(held).any(axis=1)]
    design = np.column_stack([np.ones(len(held)), held[:, 1:]])
    found = np.linalg.lstsq(design, held[:, 0], rcond=None)[0]
    return found, 1.0 - (held[:, 0] - design @ found).var() / held[:, 0].var(), len(held)


@pytest.mark.parametrize(
    ("outcome", "on", "where", "among"),
    [
        ("age", ["late"], None, None),
        ("age", [MALE, "late"], None, None),
        ("years", ["age"], None, None),
        ("years", ["age", MALE, "late"], None, None),
        (MALE, ["age", "years"], "age < 40", AGE < 40),
        ("years", ["age"], ic.where(sex="M"), SEX == "M"),
        ("age", ["years", "late"], {"sex": "F"}, SEX == "F"),
    ],
)
def test_of_exact_answers_all_is_as_numpy_has_it(outcome, on, where, among):
    found = Exactly(DATA).least_squares(outcome, on, where)
    (intercept, *slopes), explained, count = exact(outcome, on, among)

    assert slopes == pytest.approx(found.slopes.tolist(), rel=1e-3, abs=1e-4)  # weights are rounded
    assert intercept == pytest.approx(found.intercept, rel=1e-3, abs=1e-3)
    assert explained == pytest.approx(found.r_squared, rel=1e-3, abs=1e-5)
    assert (0.0, count) == (found.ridge, pytest.approx(found.count))
    assert (np.abs(found.slopes - slopes) <= found.error_bounds).all()
    assert abs(found.intercept - intercept) <= found.intercept_bound
    names = {one if isinstance(one, str) else "sex = 'M'": 30.0 for one in on}
    assert found.intercept + 30.0 * found.slopes.sum() == pytest.approx(found.predict(**names))


@pytest.mark.parametrize(
    ("first", "second", "where", "among"),
    [
        ("age", "late", None, slice(None)),
        ("age", MALE, None, slice(None)),
        ("years", "age", None, slice(None)),
        ("years", "age", "sex = 'F'", SEX == "F"),
        (MALE, "late", ic.where(age=ic.below(30)), AGE < 30),
    ],
)
def test_covariances_and_correlations_of_exact_answers(first, second, where, among):
    held = np.column_stack([column(first), column(second)])[among]
    held = held[~np.isnan(held).any(axis=1)]
    covariance = Exactly(DATA).covariance(first, second, where)
    correlation = Exactly(DATA).correlation(first, second, where)

    assert np.cov(held.T, bias=True)[0, 1] == pytest.approx(covariance.value, rel=1e-3, abs=1e-4)
    assert np.corrcoef(held.T)[0, 1] == pytest.approx(correlation.value, rel=1e-3, abs=1e-4)
    assert abs(covariance.value - np.cov(held.T, bias=True)[0, 1]) <= covariance.error_bound
    assert abs(correlation.value - np.corrcoef(held.T)[0, 1]) <= correlation.error_bound
    assert (len(held), 0.0) == (pytest.approx(covariance.count), covariance.bias)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([1e-5, 1e-4, 1e-3, 5e-3, 0.02]),
    st.lists(st.floats(-1, 1), min_size=1, max_size=7),
    st.sampled_from([(None, None), ("sex = 'F'", SEX == "F")]),
    st.sampled_from(["adaptive", 0.01, 0.2]),
)
def test_whatever_the_answers_err_by_within_their_bounds_no_statistic_errs_by_more_than_its_own(
    bound, moves, chosen, ridge
):
    session = Exactly(DATA, bound, moves)
    where, _ = chosen
    try:
        found = session.least_squares("years", ["age", "late"], where, ridge=ridge)
    except (IllConditionedError, TooFewRecordsError):
        return
    unerring = Exactly(DATA).least_squares("years", ["age", "late"], where, ridge=found.ridge)

    assert (np.abs(found.slopes - unerring.slopes) <= found.error_bounds + 1e-9).all()
    assert abs(found.intercept - unerring.intercept) <= found.intercept_bound + 1e-7
    for name in ("covariance", "correlation"):
        try:
            one = getattr(session, name)("years", "age", where)
        except (IllConditionedError, TooFewRecordsError):
            continue
        assert (
            abs(one.value - getattr(Exactly(DATA), name)("years", "age", where).value)
            <= one.error_bound + 1e-2
        )


def corners(many):
    """Return all signs of so many numbers, (2^many, many)."""
    return np.array(list(itertools.product((-1.0, 1.0), repeat=many)))


def test_bounds_of_covariances_hold_in_every_corner_of_those_of_answers_and_are_nearly_reached():
    where = ic.where(sex="X", age=ic.at_least(40))  # few records, far from the middle
    sums = sums_of(DATA.domain, ["age", "years"], where)[0]
    exactly = np.array([float(one) for one in Exactly(DATA).answer_many(sums.queries)])
    true, bound, ratios = None, 1e-3, []
    for signs in np.vstack([np.zeros((1, len(exactly))), corners(len(exactly))]):
        values = exactly + bound * signs
        found = Found((), values, np.full(len(values), bound), 0.95, np.full(len(values), math.nan))
        held = moments_of(sums, DATA.n, found, "", Released())
        true = held if true is None else true
        ratios.append(np.abs(held.covariances - true.covariances) / held.bounds)
        ratios.append(np.diag(np.abs(held.means - true.means) / held.mean_bounds))

    assert np.max(ratios) <= 1.0
    assert np.max(ratios) > 0.6


def test_bounds_of_slopes_hold_in_every_corner_of_those_of_covariances_and_are_nearly_reached():
    true = np.array([[0.1, 0.05, -0.04], [0.05, 0.09, 0.03], [-0.04, 0.03, 0.12]])
    bounds = np.array([[1e-3, 1e-4, 1e-4], [1e-4, 8e-3, 4e-3], [1e-4, 4e-3, 6e-3]])
    slopes, ratios = np.linalg.solve(true[1:, 1:], true[1:, 0]), []
    for signs in corners(6):
        moved = true.copy()
        moved[np.triu_indices(3)] += bounds[np.triu_indices(3)] * signs
        moved = np.triu(moved) + np.triu(moved, 1).T
        inverse = np.linalg.inv(moved[1:, 1:])
        found = inverse @ moved[1:, 0]
        ratios.append(np.abs(found - slopes) / _slope_bounds(inverse, found, bounds))

    assert 0.6 < np.max(ratios) <= 1.0
    assert np.isinf(_slope_bounds(inverse, found, 20.0 * bounds)).all()
    assert np.isinf(_slope_bounds(inverse, found, np.full((3, 3), math.inf))).all()


def test_bounds_of_correlations_hold_in_every_corner_and_are_nearly_reached():
    for true in ([[0.1, 0.05], [0.05, 0.2]], [[0.1, -0.05], [-0.05, 0.2]], [[0.1, 0.001], [0.001, 0.2]]):
        bounds, ratios = np.array([[0.02, 0.004], [0.004, 0.05]]), []
        exactly = _correlated(np.array(true), bounds)[0]
        for one, other, both in corners(3):
            moved = np.array(true) + bounds * [[one, both], [both, other]]
            value, low, high = _correlated(moved, bounds)
            ratios += [(value - exactly) / (value - low), (exactly - value) / (high - value)]

        assert 0.9 < np.max(ratios) <= 1.0 + 1e-12


def test_bounds_of_an_intercept_hold_in_every_corner_and_are_nearly_reached():
    about = ic.Domain.of(x=range(-20, 21), y=range(-40, 41))  # whose middles are 0
    data = ic.PrivateData.from_records({"x": AGE - 40, "y": 2 * (YEARS - 20)}, about)
    true, ratios = Exactly(data).least_squares("y", "x"), []
    for signs in corners(5):
        found = Exactly(data, 5e-3, signs, error=math.nan).least_squares("y", "x")
        ratios.append(abs(found.intercept - true.intercept) / found.intercept_bound)

    assert 0.5 < np.max(ratios) <= 1.0


def test_numbers_between_two_ends_are_off_by_no_more_than_their_bias():
    data = ic.PrivateData.from_records(ROWS, DOMAIN.project("age", "pay"))
    for session in (
        Exactly(data),
        ic.OnlineIC(data, ic.Budget(5.0, 1e-6), noise=SimulatedNoise(1), questions=20),
    ):
        covariance = session.covariance("pay", "age")
        found = session.least_squares("pay", "age")
        slope = np.polyfit(AGE, PAY, 1)[0]

        assert (
            abs(covariance.value - np.cov(PAY, AGE, bias=True)[0, 1])
            <= covariance.error_bound + covariance.bias
        )
        assert abs(found.slopes[0] - slope) <= found.error_bounds[0] + found.bias[0]
        assert found.bias[0] > 0.0
    assert found.bias[0] < 0.1 * slope


def test_midpoints_are_off_by_no_more_than_their_bias():
    edges = [20, 25, 33, 47, 61]
    kinds = ic.Domain.of(age=ic.binned(edges, integer=True), late=[False, True])
    data = ic.PrivateData.from_records(ROWS, kinds)
    found = Exactly(data).covariance("age", "late")

    assert (
        0.0
        < abs(found.value - np.cov(AGE, COLUMNS["late"], bias=True)[0, 1])
        <= found.bias + found.error_bound
    )


def test_groups_are_those_of_conditions_and_one_that_is_empty_says_so():
    session = Exactly(DATA)
    found = session.least_squares_by("years", ["age", "late"], by="sex")

    assert ("F", "M", "X") == found.labels
    for label, one in found:
        (_, *slopes), _, count = exact("years", ["age", "late"], SEX == label)
        assert slopes == pytest.approx(one.slopes.tolist(), rel=1e-3, abs=1e-4)
        assert count == pytest.approx(one.count)
    none = session.least_squares_by("years", "age", by="late", where="age IN (21, 24, 27)")
    assert isinstance(none.groups[0], TooFewRecordsError)
    assert {"late", "term", "value"} <= set(none.to_dict())
    assert "late = False: none: least_squares" in repr(none)
    assert "none" in none._repr_html_()
    with pytest.raises(TooFewRecordsError):
        none[False]
    with pytest.raises(InvalidQueryError, match="late must be one of the groups, got 5"):
        none[5]


# -- what is named, or refused ---------------------------------------------------------------------


TWINS = ic.PrivateData.from_records(
    {"a": AGE, "b": AGE, "c": YEARS, "d": np.full(N, 30)},
    ic.Domain.of(a=range(20, 61), b=range(20, 61), c=range(41), d=range(20, 61)),
)


def test_collinear_regressors_take_a_ridge_that_is_said_or_are_refused():
    found = Exactly(TWINS, 1e-5).least_squares("c", ["a", "b"])

    assert 0.0 < found.ridge < 1e-3
    assert found.slopes.sum() == pytest.approx(np.polyfit(AGE, YEARS, 1)[0], rel=1e-2)
    assert "a ridge of" in found.remarks[0]
    assert "draws the slopes to 0" in repr(found)
    assert "a ridge of" in found._repr_html_()
    with pytest.raises(
        IllConditionedError, match=r"told apart, got sums whose least eigenvalue is .*'adaptive'"
    ) as caught:
        Exactly(TWINS, 1e-5).least_squares("c", ["a", "b"], ridge=0)
    assert 9 == len(caught.value.answers)
    assert 0.5 == Exactly(TWINS, 1e-5).least_squares("c", ["a", "b"], ridge=0.5).ridge
    # what the errors of the answers are is unknown: the bounds say it
    assert Exactly(TWINS, 1e-5, error=math.nan).least_squares("c", ["a", "b"]).ridge > 1e-5


def test_a_regressor_that_hardly_varies_takes_a_ridge_or_is_refused():
    found = Exactly(TWINS, 1e-3).least_squares("c", "d")

    assert found.ridge > 0.0
    with pytest.raises(IllConditionedError):
        Exactly(TWINS, 1e-3).least_squares("c", "d", ridge=0.0)
    with pytest.raises(
        IllConditionedError, match=r"vary by more than twice their usual error, got d with a variance"
    ):
        Exactly(TWINS, 1e-3).correlation("c", "d")


def test_sums_that_are_those_of_no_table_are_taken_to_the_end_of_their_range():
    moved = Exactly(TWINS, 0.03, [0.0, 0.0, -1.0, 1.0, -1.0])  # means, squares and products by turns
    found = moved.correlation("a", "b")
    over = Exactly(TWINS, 0.03, [0.0, 0.0, -1.0, 1.0, 0.0]).least_squares("a", "b")

    assert (1.0, True) == (found.value, found.outside)
    assert "outside its range: taken to its end" in repr(found)
    assert (1.0, True) == (over.r_squared, over.outside)
    assert "R squared outside its range" in repr(over)
    below = Exactly(TWINS, 0.5, [0.0, 0.0, 0.0, -0.9, -0.9], error=1e-4).least_squares("a", ["b"])
    assert below.ridge > 0.0  # the variance of what was released is below 0


def test_too_few_records_are_refused_by_name():
    lonely = ic.PrivateData.from_records({"age": [30], "sex": ["F"]}, DOMAIN.project("age", "sex"))
    with pytest.raises(InvalidQueryError, match=r"attributes must be different, got 'age' twice"):
        Exactly(lonely).covariance("age", "age")
    young = ic.where(age=ic.below(22))
    with pytest.raises(
        TooFewRecordsError, match=r"least_squares\(years on age, .* must be over more records than"
    ):
        Exactly(DATA, 0.5, error=math.nan).least_squares("years", ["age", {"sex": "M"}], young)
    with pytest.raises(TooFewRecordsError, match=r"covariance\(age, sex = 'F'\) must be over more records"):
        Exactly(lonely).covariance("age", {"sex": "F"})


def test_over_no_more_records_than_twice_their_error_nothing_bounds_a_statistic():
    found = Exactly(DATA, 0.3, error=1e-4).correlation("years", "age", "sex = 'F'")

    assert (True, math.inf) == (found.few_records, found.error_bound)
    assert "too few" in repr(found).lower() or "few records" in repr(found)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.covariance("sex", "age"), InvalidQueryError,
         "sex must be a number, got labels; write {'sex': label}"),
        (lambda s: s.covariance("nobody", "age"), InvalidQueryError, "attribute must be one of the domain's"),
        (lambda s: s.covariance({"sex": "F", "age": 30}, "age"), InvalidQueryError,
         "one {attribute: label}"),
        (lambda s: s.covariance({"sex": "Q"}, "age"), InvalidQueryError, "sex must be one of its 3 values"),
        (lambda s: s.covariance("late", "age", "age = 20"), InvalidQueryError,
         "age must have several values"),
        (lambda s: s.covariance("age", "late", "FALSE"), InvalidQueryError, "which nobody with a value"),
        (lambda s: s.least_squares("years", []), InvalidQueryError, "on must name one attribute or more"),
        (lambda s: s.least_squares("years", ["age", "years"]), InvalidQueryError, "got 'years' twice"),
        (lambda s: s.least_squares("years", "age", ridge=-1), InvalidParameterError, "ridge must be"),
        (lambda s: s.least_squares("years", "age", ridge="some"), InvalidParameterError, "ridge must be"),
        (lambda s: s.least_squares_by("years", "age", by="age"), InvalidQueryError, "by must be another"),
        (lambda s: s.least_squares("years", "age").predict(sex=1), InvalidParameterError,
         "values must be those of age"),
        (lambda s: s.chi_square("sex", "sex"), InvalidQueryError, "sex"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call(Exactly(DATA))


def test_pairs_of_too_many_values_and_too_many_groups_are_refused():
    wide = ic.Domain.of(a=range(2100), b=range(2100))
    data = ic.PrivateData.from_records({"a": AGE, "b": AGE}, wide)
    with pytest.raises(TooLargeError, match=r"a and b must have at most 4,194,304 pairs of values"):
        Exactly(data).covariance("a", "b")
    with pytest.raises(TooLargeError, match="b must have at most 100 groups, got 2,100"):
        Exactly(data).least_squares_by("a", {"b": 3}, by="b")


# -- sessions --------------------------------------------------------------------------------------


def opened(seed=1, epsilon=1.0, **options):
    return ic.OnlineIC(DATA, ic.Budget(epsilon, 1e-9), noise=SimulatedNoise(seed), **options)


def test_announced_sums_are_measured_each_and_say_so():
    sums = sums_of_products(DATA.domain, ["years", "age", MALE])
    session = opened(questions=sums)
    found = session.least_squares("years", ["age", MALE])
    again = session.least_squares("years", ["age", MALE])

    assert ("measured", "measured") == found.bases
    assert {"hard"} == {answer.status for answer in found.answers}
    assert {"repeat"} == {answer.status for answer in again.answers}  # and free
    assert (found.bases, found.slopes.tolist()) == (again.bases, again.slopes.tolist())
    assert np.isfinite(found.expected_errors).all()
    assert "NOT PRIVATE" in repr(found)


def test_sums_of_groups_are_announced_too():
    sums = sums_of_products(DATA.domain, ["years", "age"], by="late")
    found = opened(epsilon=4.0, questions=sums).least_squares_by("years", "age", by="late")

    # a call whose sums tables tell as well, for less, has tables
    bases = {one.bases for _, one in found if isinstance(one, LeastSquares)}
    assert bases in ({("measured",)}, {("tables",)})
    assert len(sums) == len({query.bind(DATA.domain).key for query in sums})


def test_a_fit_to_tables_is_no_measurement_and_its_errors_are_taken_for_larger():
    session = opened(purchases=DemandPurchases(rent=0))  # tables: no numbers come before them
    found = session.covariance("age", "late")
    measured = opened(questions=sums_of_products(DATA.domain, ["age", "late"])).covariance("age", "late")

    assert ("tables", "measured") == (found.basis, measured.basis)
    assert found.remarks == measured.remarks == ()


def test_what_was_not_bought_says_that_it_rests_on_nothing():
    tested = opened(epsilon=4.0, purchases=TestsOnly()).correlation("age", "late")
    assert "test" == tested.basis
    assert "rests on nothing that was bought: a test alone says how far it may be off" in repr(tested)
    assert tested.remarks[0] in tested._repr_html_()
    exhausted = opened(epsilon=0.1, questions=3, certify=0.5)
    for age in range(20, 60):
        exhausted.answer(ic.where(age=age, sex="F"))
    slope = exhausted.least_squares("age", "late")
    assert ("nothing",) == slope.bases
    assert "the slope of late rests on nothing: neither bought nor tested" in repr(slope)


def test_an_engine_without_a_record_says_that_it_is_unknown():
    assert "unknown" == Exactly(DATA, 1e-4).covariance("age", "late").basis


def test_all_is_told_as_plain_values_and_frames():
    session = Exactly(DATA, 1e-4)
    one, several = session.correlation("age", "late"), session.least_squares("years", ["age", MALE])

    assert {"value", "error_bound", "basis", "remarks", "private"} <= set(
        json.loads(json.dumps(one.to_dict()))
    )
    assert one.value == float(one) == pytest.approx(round(one, 12))
    assert f"{one:.3f}" == f"{one.value:.3f}"
    assert ["intercept", "age", "sex = 'M'"] == several.to_dict()["term"]
    assert "correlation(age, late)" in one._repr_html_()
    assert "R squared" in several._repr_html_()
    for wrong in (one, several):
        with pytest.raises(TypeError, match="has no truth value"):
            bool(wrong)
    assert 3 == len(pytest.importorskip("pandas").DataFrame(several.to_dict()))


def test_explain_rehearses_a_regression_and_asks_nothing():
    session = opened()
    told = session.explain(lambda stand_in: stand_in.least_squares("years", ["age", "late"]))

    assert told.answers == len(sums_of_products(DATA.domain, ["years", "age", "late"]))
    assert 0 == session.statistics().asked


def test_over_http_sums_of_products_have_no_form_and_are_refused():
    for query in sums_of_products(DATA.domain, ["age", "late"]):
        if len(query.bind(DATA.domain).axes) > 1:
            with pytest.raises(InvalidQueryError):
                to_wire(query, DATA.domain)
