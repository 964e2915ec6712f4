"""Means, sums and other questions that are made of several answers."""

import json

import numpy as np
import pytest

import onlineic as ic
from onlineic import between, where
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooFewRecordsError, TooLargeError
from onlineic.noise import SimulatedNoise
from onlineic.questions import cdf, group_by, mean, quantile, total
from onlineic.questions.means import Numbers, Parts
from support.noise import Silent
from support.sessions import Still

DOMAIN = ic.Domain.of(
    age=range(17, 37),
    sex=["F", "M"],
    pay=ic.binned([0, 10, 30, 50]),
    score=ic.optional(range(-5, 6)),
    weeks=ic.binned([0, 2, 10], integer=True),
)
N = 400_000
GENERATOR = np.random.default_rng(7)
COLUMNS = {
    "age": GENERATOR.integers(17, 37, N),
    "sex": GENERATOR.choice(["F", "M"], N, p=[0.3, 0.7]),
    "pay": GENERATOR.choice([5.0, 20.0, 40.0], N, p=[0.5, 0.3, 0.2]),
    "score": GENERATOR.choice(np.array([*range(-5, 6), np.nan]), N),
    "weeks": GENERATOR.choice([0.5, 5.5], N),
}
COLUMNS["age"][COLUMNS["sex"] == "F"] = np.minimum(COLUMNS["age"][COLUMNS["sex"] == "F"], 30)
STORED = COLUMNS | {"weeks": np.where(COLUMNS["weeks"] < 2, 0, 5)}
DATA = ic.PrivateData.from_records(STORED, DOMAIN)


def opened(noise=None, **options):
    return ic.OnlineIC(DATA, ic.Budget(1.0, 1e-9), noise=noise or Silent(), **options)


@pytest.fixture(scope="module")
def session():
    return opened()


def kept(sex=None, ages=None):
    rows = np.ones(N, np.bool_)
    if sex:
        rows &= COLUMNS["sex"] == sex
    if ages:
        rows &= (COLUMNS["age"] >= ages[0]) & (COLUMNS["age"] <= ages[1])
    return rows


@pytest.mark.parametrize("attribute", ["age", "pay", "score", "weeks"])
@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (None, {}),
        (where(sex="F"), {"sex": "F"}),
        (where(age=between(20, 25)), {"ages": (20, 25)}),
        (where(sex="M", age=between(20, 25)), {"sex": "M", "ages": (20, 25)}),
    ],
)
def test_means_and_sums_hold_the_exact_ones_within_their_bounds(session, attribute, condition, rows):
    values = COLUMNS[attribute][kept(**rows)]
    values = values[~np.isnan(values)]
    average, sums = session.mean(attribute, condition), session.sum(attribute, condition)

    assert abs(average.value - values.mean()) <= average.error_bound < 5.0
    assert abs(sums.value - values.sum()) <= sums.error_bound < 3e-1 * N * np.abs(values).max()
    assert abs(average.count - len(values)) <= average.count_bound < 0.1 * N
    assert abs(sums.count - len(values)) <= sums.count_bound < 0.1 * N


def test_a_condition_on_the_attribute_narrows_the_bound(session):
    """Both are over about three tenths of the records."""
    narrow, wide = session.mean("age", where(age=between(20, 25))), session.mean("age", where(sex="F"))

    assert narrow.error_bound < 0.6 * wide.error_bound


def test_a_condition_that_all_meet_is_none(session):
    session.mean("age")
    found = session.mean("age", where(sex=ic.one_of("F", "M")))

    assert (found.value, found.answers) == (session.mean("age").value, session.mean("age").answers)


def test_an_or_across_attributes_is_a_condition_like_any_other(session):
    rows = kept("F") | kept(ages=(20, 25))
    found = mean(session, "pay", where(sex="F") | where(age=between(20, 25)))

    assert abs(found.value - COLUMNS["pay"][rows].mean()) <= found.error_bound


def test_the_mean_of_all_is_one_answer_of_its_own_confidence_and_others_hold_together(session):
    whole, part = session.mean("age"), session.mean("age", where(sex="F"))

    assert (1, 0.95) == (len(whole.answers), whole.confidence)
    assert (2, 0.95) == (len(part.answers), part.confidence)


def test_without_a_joint_bound_each_answer_fails_by_itself():
    session = opened(SimulatedNoise(1), max_queries=3, purchases=ic.TestsOnly())
    for low in range(17, 22):
        session.answer(where(age=low))
    found = session.mean("age", where(sex="F"))

    assert session.statistics().error_bound == np.inf
    assert 0.9 == pytest.approx(found.confidence)
    assert found.error_bound < np.inf


def test_untested_answers_leave_what_is_known_without_them():
    options = {"sparse": "laplace", "hard_answers": 1, "max_queries": 10, "update": Still()}
    session = opened(SimulatedNoise(1), **options)
    assert session.answer(where(pay=ic.below(10))).hard
    untested = session.sum("age", where(sex="F"))

    assert "untested" == untested.answers[0].status
    assert np.inf == untested.error_bound
    whole = session.mean("age")
    assert whole.error_bound == pytest.approx(max(whole.value - 17, 36 - whole.value))  # all that it can be
    for ask in (session.mean, session.median):
        with pytest.raises(TooFewRecordsError, match=r"untested answers.*budget is used up"):
            ask("age", where(sex="F"))


def test_results_serialise_format_and_round(session):
    found = session.mean("age", where(sex="F"))

    assert found.to_dict()["value"] == found.value == json.loads(json.dumps(found.to_dict()))["value"]
    assert f"{found:.2f}" == f"{found.value:.2f}"
    assert f"{found}" == repr(found)
    assert round(found, 1) == round(found.value, 1)
    assert json.dumps([session.median("age").to_dict(), session.cdf("age").to_dict()])
    assert json.dumps(session.group_by("sex").to_dict())


def test_missing_values_are_left_out_and_counted_out(session):
    missing = np.isnan(COLUMNS["score"]).sum()

    assert session.mean("score").count == pytest.approx(N - missing, abs=0.02 * N)


@pytest.mark.parametrize("aggregate", ["mean", "sum"])
def test_the_bias_of_groups_is_that_of_the_widest_bins_wherever_they_stand(aggregate):
    """Half of 30 for the first group, and of 10 for the last."""
    domain = ic.Domain.of(pay=ic.binned([0, 30, 40]), sex=["F", "M"])
    data = ic.PrivateData(np.full((2, 2), 100_000), domain)
    found = group_by(
        ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=Silent()), "pay", aggregate=aggregate, of="pay"
    )
    first, last = (
        (mean if aggregate == "mean" else total)(
            ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=Silent()), "pay", where(pay=part)
        ).bias
        for part in (ic.below(30), ic.at_least(30))
    )

    assert found.bias == pytest.approx(max(first, last), rel=0.05)
    assert first > 2 * last


def test_midpoints_have_a_bias_of_their_own(session):
    assert (5.0, 10.0) == (session.mean("pay", where(pay=ic.below(10))).bias, session.mean("pay").bias)
    assert 3.5 == session.mean("weeks").bias
    assert 0.0 == session.mean("age").bias


def test_of_a_private_number_of_records_midpoints_of_a_sum_may_be_those_of_more_than_n():
    numbers = Numbers.of(ic.Domain.of(x=ic.binned([-100, 100, 300])), "x", where(x=ic.below(100)), False)
    value, bound, bias, *_ = numbers.worked_out("sum", 1000, Parts([0.0, 1.0], [0.0, 0.01]))

    assert (0.0, 100 * 1010) == (value, pytest.approx(bias))  # 1,010 records may lie at -100
    assert bound < 1e-6


def test_groups_and_statements_say_in_words_what_midpoints_do(session):
    """An interval around a mean of bins holds without the values only with what midpoints are off by."""
    groups = session.group_by("sex", aggregate="mean", of="pay")

    assert "\n  values in bins may put it off by 10 besides" in repr(groups)
    assert "values in bins" not in repr(session.group_by("sex", aggregate="mean", of="age"))
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    table = session.sql("SELECT sex, AVG(pay), AVG(age) FROM t GROUP BY sex")
    assert "AVG(pay): values in bins may put it off by 10 besides" in repr(table)
    assert "may put it off by 10 besides" in table._repr_html_()
    assert "AVG(age): mid" not in repr(table)


def test_columns_hold_what_values_in_bins_may_put_off(session):
    groups = session.group_by("sex", aggregate="mean", of="pay").to_dict()

    assert ["sex", "value", "error_bound", "expected_error", "bias"] == [*groups]
    assert [10.0, 10.0] == groups["bias"]
    assert "bias" not in session.group_by("sex", aggregate="mean", of="age").to_dict()
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    table = session.sql(
        'SELECT sex, AVG(pay) AS p, AVG(age), COUNT(*) AS "p bias" FROM t GROUP BY sex'
    ).to_dict()
    assert ["sex", "p", "p error_bound", "p expected_error", "p bias_", "AVG(age)"] == [*table][:6]
    assert [10.0, 10.0] == table["p bias_"]


def test_a_group_of_few_records_is_told_and_called_so():
    few = ic.PrivateData.from_counts(
        {"sex": ["F"], "age": [17]}, [10_000], ic.Domain.of(sex=["F", "M"], age=range(17, 37))
    )
    groups = ic.OnlineIC(few, ic.Budget(1.0, 1e-9), noise=Silent()).group_by(
        "sex", aggregate="mean", of="age"
    )

    assert [False, True] == groups.few_records.tolist()
    assert np.isinf(groups.error_bounds).tolist() == groups.to_dict()["few_records"] == [False, True]
    assert 17 <= groups.values[1] <= 36
    assert "no bound, usually within" in repr(groups)
    assert repr(groups).endswith(" (few records)")
    assert "few records" in groups._repr_html_()
    assert "nan" not in repr(groups)


def test_a_mean_over_too_few_is_refused_with_its_answers(session):
    with pytest.raises(
        TooFewRecordsError, match=r"mean\(pay.* must be over more records than twice"
    ) as found:
        session.mean("pay", where(sex="F", age=36))

    assert 2 == len(found.value.answers)


@pytest.mark.parametrize(
    ("attribute", "condition", "said"),
    [
        ("sex", None, "got labels"),
        ("agee", None, "did you mean 'age'"),
        ("age", where(age=between(20, 19)), "nobody"),
        ("score", where(score=None), "nobody"),
        ("age", where(sex="F").bind(DOMAIN), "expression that it was bound from"),
    ],
)
def test_what_has_no_mean_is_refused_by_name_before_anything_is_asked(session, attribute, condition, said):
    before = session.statistics()
    for aggregate in (mean, total):
        with pytest.raises(InvalidQueryError, match=said):
            aggregate(session, attribute, condition)

    assert before == session.statistics()


def test_bins_without_an_end_have_no_midpoint_unless_a_condition_leaves_them_out():
    domain = ic.Domain.of(pay=ic.binned([0, 10, 20, np.inf]))
    session = ic.OnlineIC(ic.PrivateData([300_000, 100_000, 0], domain), ic.Budget(1.0, 1e-9), noise=Silent())
    with pytest.raises(InvalidQueryError, match="finite bins"):
        session.mean("pay")

    assert session.mean("pay", where(pay=ic.below(20))).value == pytest.approx(7.5, abs=0.1)
    under = (where(pay=ic.below(10)) | where(pay=ic.span(10, 20))) & ~where(pay=ic.at_least(20))
    assert session.mean("pay", under).value == pytest.approx(7.5, abs=0.1)


def test_dates_have_quantiles_and_no_mean():
    days = ic.Domain.of(day=ic.dates("2024-01-01", "2024-01-04"), sex=["F", "M"])
    data = ic.PrivateData([[0, 100_000], [50_000, 100_000], [100_000, 0], [50_000, 0]], days)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=Silent())
    for ask in (session.mean, session.sum):
        with pytest.raises(InvalidQueryError, match="day must be a number for a mean or a sum, got dates;"):
            ask("day")

    assert "2024-01-02" == session.median("day").value
    assert "2024-01-03" == session.median("day", {"sex": "F"}).value


@pytest.mark.filterwarnings("ignore::onlineic.errors.WideBoundWarning")
def test_over_everybody_nothing_is_too_few():
    """However wide the bounds: then the number can be all that the range allows."""
    domain = ic.Domain.of(age=range(17, 37), sex=["F", "M"])
    data = ic.PrivateData(np.full((20, 2), 10), domain)
    session = ic.OnlineIC(data, ic.Budget(0.001, 1e-9), noise=SimulatedNoise(1))
    mean, middle = session.mean("age"), session.median("age")

    assert 0.5 <= mean.answers[0].error_bound
    assert mean.error_bound == pytest.approx(max(mean.value - 17, 36 - mean.value))
    assert 400 == mean.count
    assert (17, 36) == (middle.low, middle.high)
    assert 0.5 <= middle.rank_error <= 1.0


def test_a_derived_answer_shows_what_it_is_and_compares_by_value(session):
    found = session.mean("age", where(sex="F"))

    assert "NOT PRIVATE" in repr(found)
    assert "mean(age, where(sex='F')) = " in repr(found)
    assert float(found) == found.value
    with pytest.raises(TypeError, match="compare its value"):
        bool(found)


# --- quantiles and distribution functions ------------------------------------------------------------------


def exact_quantile(values, p):
    return np.sort(values)[int(np.ceil(p * len(values))) - 1]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("condition", "rows"),
    [(None, {}), (where(sex="F"), {"sex": "F"}), (where(age=between(20, 25)), {"ages": (20, 25)})],
)
def test_quantiles_hold_the_exact_ones_and_take_few_answers(session, p, condition, rows):
    values = COLUMNS["age"][kept(**rows)]
    found, banded = quantile(session, "age", p, condition), cdf(session, "age", condition).quantile(p)
    below, up_to = (values < found.value).mean(), (values <= found.value).mean()

    assert len(found.answers) <= np.ceil(np.log2(20)) + (condition is not None)
    assert below - found.rank_error <= p <= up_to + found.rank_error
    for one in (found, banded):
        assert one.low <= exact_quantile(values, p) <= one.high
        assert one.low <= one.value <= one.high


@pytest.mark.parametrize(("condition", "rows"), [(None, {}), (where(sex="F"), {"sex": "F"})])
def test_a_narrow_quantile_is_that_of_all_cuts_with_few_of_them(condition, rows):
    asked = opened(SimulatedNoise(3), max_queries=10_000)
    exact = np.quantile(COLUMNS["age"][kept(**rows)], 0.3, method="inverted_cdf")
    wide = asked.quantile("age", 0.3, condition)
    told = asked.explain(lambda session: session.quantile("age", 0.3, condition, narrow=True))
    found = asked.quantile("age", 0.3, condition, narrow=True)
    rising = asked.cdf("age", condition).quantile(0.3)

    assert wide.low <= found.low <= exact <= found.high <= wide.high
    assert (rising.low, rising.high) == (found.low, found.high)
    assert len(wide.answers) <= len(found.answers) < len(rising.answers)
    assert told.answers >= len(wide.answers)
    assert (wide.value, wide.rank_error) == (found.value, found.rank_error)


def test_without_joint_bounds_a_narrow_quantile_asks_no_more():
    book = ic.baselines.PerQueryNoise(DATA, ic.Budget(1.0, 1e-9), answers=100, noise=SimulatedNoise(1))

    class Apart(ic.questions.Answering):
        """Answers without bounds that hold at once."""

        facts = ic.questions.PublicFacts(DOMAIN, N, 0.05)

        def answer(self, query):
            return book.answer(query)

        def joint_bounds(self, queries, answers):
            return np.full(len(list(queries)), np.inf)

    found, wide = (Apart().median("age", where(sex="F"), narrow=narrow) for narrow in (True, False))

    assert len(found.answers) == len(wide.answers)
    with pytest.raises(InvalidParameterError, match="narrow must be True or False, got narrow=1"):
        Apart().median("age", narrow=1)


def test_quantiles_leave_missing_values_out_and_take_bins(session):
    values = COLUMNS["score"][~np.isnan(COLUMNS["score"])]

    assert session.median("score").low <= exact_quantile(values, 0.5) <= session.median("score").high
    pay = session.quantile("pay", [0.3, 0.9])
    assert [(0.0, 10.0), (30.0, 50.0)] == [(one.low, one.high) for one in pay]  # ends of bins
    assert all(type(one.value) is float and one.low < one.value < one.high for one in pay)


@pytest.mark.parametrize("rows", [{}, {"sex": "F"}, {"sex": "F", "ages": (20, 25)}])
@pytest.mark.parametrize("attribute", ["age", "score", "pay"])
def test_a_distribution_function_rises_inside_a_band_that_holds_the_exact_one(session, attribute, rows):
    conditions = {"sex": "F"} if rows else {}
    conditions |= {"age": between(20, 25)} if "ages" in rows else {}
    condition = where(conditions) if conditions else None
    values = COLUMNS[attribute][kept(**rows)]
    values = values[~np.isnan(values)]
    found = session.cdf(attribute, condition)
    ends = [float(str(label).strip("[)").split(",")[-1]) for label in found.labels]
    exact = [(values < end if attribute == "pay" else values <= end).mean() for end in ends]

    assert (np.diff(found.values) >= 0).all()
    assert (found.low <= found.values).all()
    assert (found.values <= found.high).all()
    assert (found.low <= exact).all()
    assert (exact <= found.high).all()
    assert 1.0 == found.values[-1]
    assert "sure" in repr(found)


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda s: s.quantile("sex", 0.5), InvalidQueryError, "without order"),
        (lambda s: s.cdf("sex"), InvalidQueryError, "without order"),
        (lambda s: s.quantile("age", 1.0), InvalidParameterError, r"q must be a number in \(0, 1\)"),
        (lambda s: s.quantile("age", True), InvalidParameterError, "q must be a number"),
        (lambda s: s.median("age", where(age=between(20, 19))), InvalidQueryError, "nobody"),
        (lambda s: s.group_by("sexe"), InvalidQueryError, "did you mean 'sex'"),
        (lambda s: s.group_by(["sex", "sex"]), InvalidQueryError, "different attributes"),
        (lambda s: s.group_by([]), InvalidQueryError, "one or more"),
        (lambda s: s.group_by(3), InvalidQueryError, "attribute or a list"),
        (lambda s: s.group_by("sex", aggregate="max"), InvalidParameterError, "aggregate must be"),
        (lambda s: s.group_by("sex", aggregate="mean"), InvalidQueryError, "of must be"),
        (lambda s: s.group_by("sex", of="age"), InvalidQueryError, "of must be"),
        (lambda s: s.group_by("age", aggregate="mean", of="sex"), InvalidQueryError, "got labels"),
    ],
)
def test_what_cannot_be_derived_is_refused_by_name_before_anything_is_asked(session, ask, error, said):
    before = session.statistics()
    with pytest.raises(error, match=said):
        ask(session)

    assert before == session.statistics()


def test_large_tables_are_refused():
    domain = ic.Domain.of(a=101, b=100, c=4097)
    session = ic.OnlineIC(
        ic.PrivateData.from_records({"a": [0] * 10**5, "b": [0] * 10**5, "c": [0] * 10**5}, domain),
        ic.Budget(1.0, 1e-9),
        noise=Silent(),
    )
    for ask in (lambda: session.group_by(["a", "b"]), lambda: session.cdf("c")):
        with pytest.raises(TooLargeError, match="must have at most"):
            ask()


def test_quantiles_over_too_few_are_refused(session):
    for ask in (session.median, session.cdf):
        with pytest.raises(TooFewRecordsError, match="too few"):
            ask("pay", where(sex="F", age=36))


# --- groups ------------------------------------------------------------------------------------------------


def test_counts_by_group_are_one_answer_for_all_cells(session):
    found = session.group_by(["sex", "pay"], where(age=between(20, 25)))
    rows = kept(ages=(20, 25))
    exact = [
        (rows & (COLUMNS["sex"] == sex) & (COLUMNS["pay"] == pay)).sum()
        for sex in "FM"
        for pay in (5, 20, 40)
    ]

    assert 1 == len(found.answers)
    assert (np.abs(found.values.ravel() - exact) <= found.error_bounds.ravel()).all()
    assert (("F", "[0, 10)"), found.values[0, 0], found.error_bounds[0, 0]) == next(iter(found))
    assert ["sex", "pay", "value", "error_bound", "expected_error"] == list(found.to_dict())
    assert 6 == len(found) == len(found.to_dict()["value"])
    assert "count by sex, pay, where(age=between(20, 25))" in repr(found)


def test_a_condition_that_is_no_conjunction_takes_an_answer_a_group(session):
    found = session.group_by("sex", where(age=20) | where(pay=ic.below(10)))
    rows = (COLUMNS["age"] == 20) | (COLUMNS["pay"] < 10)
    exact = [(rows & (COLUMNS["sex"] == sex)).sum() for sex in "FM"]

    assert 2 == len(found.answers)
    assert (np.abs(found.values - exact) <= found.error_bounds).all()


@pytest.mark.parametrize("options", [{"release": "answer"}, {"certify": 0.1, "max_queries": 1000}])
def test_a_session_without_cross_tables_counts_by_group_one_by_one(options):
    numbers = ic.OnlineIC(DATA, ic.Budget(1.0), noise=Silent(), **options)
    exact = [kept(sex).sum() for sex in "FM"]
    with pytest.raises(InvalidQueryError, match=r"ask its counts by group, session\.group_by\(\['sex'\]\)"):
        numbers.answer(ic.marginal("sex"))
    told = numbers.explain(lambda session: session.histogram("sex"))
    found = numbers.group_by(["sex"])

    assert (False, True) == (numbers.answers_tables, opened().answers_tables)
    assert 2 == told.answers == len(found.answers)
    assert (np.abs(found.values - exact) <= found.error_bounds).all()
    assert (found.error_bounds < N).all()
    pytest.importorskip("sqlglot")
    assert (
        found.values.tolist() == numbers.sql("SELECT sex, COUNT(*) AS m FROM t GROUP BY sex").to_dict()["m"]
    )


def test_groups_that_nobody_can_be_in_are_exact(session):
    counts = session.group_by("sex", where(sex="F", age=between(20, 25)))
    sums = session.group_by("sex", where(sex="F"), "sum", "age")
    means = session.group_by("sex", where(sex="F"), "mean", "age")

    assert (0.0, 0.0) == (counts.values[1], counts.error_bounds[1])
    assert (0.0, 0.0) == (sums.values[1], sums.error_bounds[1])
    assert np.isnan(means.values[1])


@pytest.mark.parametrize("aggregate", ["mean", "sum"])
def test_means_and_sums_by_group_hold_all_at_once(session, aggregate):
    found = session.group_by("sex", None, aggregate, "age")
    exact = [getattr(COLUMNS["age"][COLUMNS["sex"] == sex], aggregate)() for sex in "FM"]

    assert 0.95 == found.confidence
    assert (np.abs(found.values - exact) <= found.error_bounds).all()


def test_histogram_and_missing_values(session):
    found = session.histogram("score", where(sex="F"))
    exact = np.isnan(COLUMNS["score"][kept("F")]).sum()

    assert None is found.labels[0][-1]
    assert abs(found.values[-1] - exact) <= found.error_bounds[-1]
    assert group_by(session, "score", where(sex="F")).values.tolist() == found.values.tolist()


def test_conditions_may_be_dicts(session):
    written, said = {"sex": "F", "age": [20, 25]}, where(sex="F", age=between(20, 25))

    assert session.mean("pay", written).value == session.mean("pay", said).value
    assert session.median("pay", written).value == session.median("pay", said).value
    for aggregate, of in (("count", None), ("sum", "age")):
        one, other = (session.group_by("sex", each, aggregate, of) for each in (written, said))
        assert one.values.tolist() == other.values.tolist()


# --- figures -----------------------------------------------------------------------------------------------


def test_groups_are_drawn_with_their_intervals(session):
    pytest.importorskip("matplotlib")
    found = session.group_by("pay")
    axes = found.plot()
    (whiskers,) = axes.collections
    ends = np.array([segment[:, 1] for segment in whiskers.get_segments()])

    assert found.values.tolist() == [bar.get_height() for bar in axes.patches]
    assert np.array_equal(ends[:, 0], found.values - found.error_bounds)
    assert np.array_equal(ends[:, 1], found.values + found.error_bounds)
    assert ("pay", "records") == (axes.get_xlabel(), axes.get_ylabel())
    assert "NOT PRIVATE" in axes.get_title(loc="left")
    assert axes is found.plot(axes)


def test_a_time_series_is_a_line_in_its_band_with_missing_values_beside_it():
    pytest.importorskip("matplotlib")
    days = ic.Domain.of(day=ic.optional(ic.dates("2024-01-01", "2024-02-29")))
    counts = np.arange(1000, 1000 + days.size)
    session = ic.OnlineIC(ic.PrivateData(counts, days), ic.Budget(1.0, 1e-9), noise=Silent())
    found = session.group_by("day")
    axes = found.plot()
    line, point = axes.lines

    assert found.values[:-1].tolist() == line.get_ydata().tolist()
    assert [60] == point.get_xdata().tolist()
    assert "2024-01-01" == axes.get_xticklabels()[0].get_text()
    assert 2 == len(axes.collections)
    assert 61 == len(found.plot(kind="bars").patches)


def test_means_are_drawn_but_for_those_over_too_few(session):
    pytest.importorskip("matplotlib")
    found = session.group_by(["sex", "weeks"], aggregate="mean", of="pay")
    axes = found.plot()

    assert found.values.ravel().tolist() == axes.images[0].get_array().ravel().tolist()
    few = session.group_by("age", where(sex="F"), aggregate="mean", of="weeks")
    assert np.isnan(few.values[-1])
    heights = [bar.get_height() for bar in few.plot().patches]
    assert np.array_equal(few.values, heights, equal_nan=True)
    assert "too few" in {text.get_text() for text in session.group_by(
        ["sex", "age"], aggregate="mean", of="weeks").plot().texts}  # fmt: skip


def test_a_distribution_function_is_drawn_in_its_band(session):
    pytest.importorskip("matplotlib")
    found = session.cdf("age", where(sex="F"))
    axes = found.plot()
    (steps,), (band,) = axes.lines, axes.collections

    assert found.values.tolist() == steps.get_ydata()[:-1].tolist()
    drawn = band.get_paths()[0].vertices[:, 1]
    assert {*found.low, *found.high} <= {*drawn}
    assert axes is found.plot(axes)


def test_what_cannot_be_drawn_is_refused(session):
    pytest.importorskip("matplotlib")
    with pytest.raises(InvalidParameterError, match="one or two keys to be drawn, got 3"):
        session.group_by(["sex", "pay", "weeks"]).plot()
    with pytest.raises(InvalidParameterError, match="kind must be 'bars' or 'line' for 1 attributes"):
        session.group_by("pay").plot(kind="map")
    for found in (session.group_by("pay"), session.cdf("age")):
        with pytest.raises(InvalidParameterError, match="ax must be axes of matplotlib or None, got a str"):
            found.plot("ax")


def test_weights_that_are_rounded_to_a_constant_are_not_exact():
    """Weights of a billionth, or of one less that, are asked as 0 and 1: off by what they are rounded by."""
    domain = ic.Domain.of(b=2, age=range(100_001), far=range(100_000, 100_001))
    data = ic.PrivateData.from_records(
        {"b": np.zeros(4_000, int), "age": np.full(4_000, 100_000), "far": np.full(4_000, 100_000)}, domain
    )
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=SimulatedNoise(1))
    few, most = ic.where(b=ic.weights([1e-9, 1e-9])), ic.where(b=ic.weights([1 - 1e-9, 1 - 1e-9]))
    for query, exact in ((few, 1e-9), (most, 1 - 1e-9)):
        told, answer = session.explain(query), session.answer(query)
        for bound in (told.bound_easy, answer.error_bound, *session.joint_bounds([query], [answer])):
            assert 0.0 < abs(answer.value - exact) <= bound * (1 + 1e-6)
    for attribute, condition, exact in (("age", few, 0.4), ("far", most, 4e8 - 0.4), ("far", few, 0.4)):
        found = session.sum(attribute, condition)
        assert 0.4 == pytest.approx(abs(found.value - exact), rel=1e-3)
        assert abs(found.value - exact) <= found.error_bound
