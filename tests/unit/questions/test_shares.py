"""Rates, results that are combined, ranks and series, beside the exact numbers."""

import itertools
import json
import math
import pickle

import numpy as np
import pytest

import onlineic as ic
from onlineic import at_least, below, where
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooFewRecordsError
from onlineic.noise import SimulatedNoise
from onlineic.questions.means import Derived, Parts
from onlineic.questions.shares import Rate
from support.exact import Exact

DOMAIN = ic.Domain.of(
    age=range(20, 30), sex=["F", "M"], smokes=ic.optional(ic.boolean("yes", "no")), region=["n", "e", "s"],
    day=ic.dates("2023-11-01", "2024-02-29"),
)  # fmt: skip
DRAW = np.random.default_rng(5)
N = 30_000
ROWS = {
    "age": DRAW.integers(20, 30, N),
    "sex": DRAW.choice(["F", "M"], N, p=[0.3, 0.7]),
    "region": DRAW.choice(["n", "e", "s"], N, p=[0.5, 0.3, 0.2]),
    "day": np.datetime64("2023-11-01") + DRAW.integers(0, 121, N),
}
ROWS["smokes"] = np.where(
    DRAW.random(N) < 0.2, None, np.where(DRAW.random(N) < 0.02 * (ROWS["age"] - 5), "yes", "no")
)
DATA = ic.PrivateData.from_records(ROWS, DOMAIN)
COUNTS = np.bincount(np.ravel_multi_index(DOMAIN.encode(ROWS).T, DOMAIN.shape), minlength=DOMAIN.size)


def opened(seed=1, **options):
    return ic.OnlineIC(DATA, ic.Budget(1.0, 1e-6), noise=SimulatedNoise(seed), **options)


@pytest.fixture(scope="module")
def session():
    return opened()


def rows(**conditions):
    """Which rows meet conditions on columns."""
    held = np.ones(N, np.bool_)
    for name, met in conditions.items():
        held &= met(ROWS[name])
    return held


SMOKES, YOUNG, OLD = where(smokes=True), where(age=below(24)), where(age=at_least(27))
IN = {
    "smokes": ROWS["smokes"] == "yes",
    "young": ROWS["age"] < 24,
    "old": ROWS["age"] >= 27,
    "women": ROWS["sex"] == "F",
}
# condition, among, their rows
RATES = [
    (SMOKES, None, IN["smokes"], np.ones(N, bool)),
    (SMOKES, where(sex="F"), IN["smokes"], IN["women"]),
    ("smokes", "sex = 'F'", IN["smokes"], IN["women"]),
    ({"smokes": True}, {"age": {"below": 24}}, IN["smokes"], IN["young"]),
    (YOUNG | where(sex="F"), SMOKES, IN["young"] | IN["women"], IN["smokes"]),
    (where(smokes=True, sex="F"), OLD, IN["smokes"] & IN["women"], IN["old"]),
    (~SMOKES, YOUNG | OLD, ~IN["smokes"], IN["young"] | IN["old"]),
]
BY = [
    ("sex", "sex"),
    (["region", "sex"], None),
    (ic.extract("day", "year"), "year"),
    (ic.cut("age", [23, 27]), "cut"),
]


def labels_of(key):
    """The group of every row, and the groups."""
    if key == "year":
        return (ROWS["day"].astype("M8[Y]").astype(int) + 1970), [2023, 2024]
    if key == "cut":
        return np.digitize(ROWS["age"], [23, 27]), [0, 1, 2]
    return ROWS["sex"], ["F", "M"]


@pytest.mark.parametrize("tables", [True, False])
@pytest.mark.parametrize(("cond", "among", "met", "held"), RATES)
def test_a_rate_is_the_part_of_those_who_meet_the_second_condition(cond, among, met, held, tables):
    if any(isinstance(one, str) for one in (cond, among)):
        pytest.importorskip("sqlglot")
    exact = Exact(DOMAIN, COUNTS, tables=tables)
    found = exact.share(cond, among)

    assert found.value == pytest.approx((met & held).sum() / held.sum())
    assert (found.part, found.count) == pytest.approx(((met & held).sum(), held.sum()))
    assert (1 if among is None else 2) == len(exact.asked)
    for key, name in BY:
        by_group = exact.share(cond, among, by=key)
        groups, labels = (ROWS["region"], ["n", "e", "s"]) if name is None else labels_of(name)
        with np.errstate(invalid="ignore"):
            values = by_group.values if name else by_group.parts.sum(axis=1) / by_group.counts.sum(axis=1)
        for label, value in zip(labels, values, strict=True):
            there = held & (groups == label)
            if not there.any():  # nobody is there, whatever the data
                assert math.isnan(value)
                continue
            assert value == pytest.approx((met & there).sum() / there.sum())


@pytest.mark.parametrize("shift", [0.002, 0.0005])
@pytest.mark.parametrize(("cond", "among", "met", "held"), RATES)
def test_the_bound_of_a_rate_holds_whatever_the_signs_of_the_errors(cond, among, met, held, shift):
    pytest.importorskip("sqlglot")
    for seed in range(6):
        moved = Exact(DOMAIN, COUNTS, off=shift, shift=shift, seed=seed)
        found = moved.share(cond, among)
        assert abs(found.value - (met & held).sum() / held.sum()) <= found.error_bound
        by_sex = moved.share(cond, among, by="sex")
        for place, sex in enumerate(["F", "M"]):
            there = held & (ROWS["sex"] == sex)
            if there.any() and not by_sex.few_records[place]:
                assert (
                    abs(by_sex.values[place] - (met & there).sum() / there.sum())
                    <= by_sex.error_bounds[place]
                )
                assert abs(by_sex.parts[place] - (met & there).sum()) <= by_sex.part_bounds[place] + 1e-6
                assert abs(by_sex.counts[place] - there.sum()) <= by_sex.count_bounds[place] + 1e-6


@pytest.mark.parametrize("off", [*itertools.product([-1.0, 1.0], repeat=2)])
@pytest.mark.parametrize("bounds", [(0.01, 0.03), (0.03, 0.01)])
@pytest.mark.parametrize("whole", [False, True])
def test_the_bound_of_a_rate_holds_if_its_two_answers_have_others(off, bounds, whole):
    exact = (0.2, 0.5) if whole else (0.2, 0.3)
    released = [true + sign * bound for true, sign, bound in zip(exact, off, bounds, strict=True)]

    made = Rate(SMOKES, YOUNG, whole).worked_out("share", N, Parts(released, bounds))

    assert abs(made.value - 0.4) <= made.bound
    assert made.bound <= sum(bounds) / (released[1] if whole else sum(released)) + 1e-9


def test_rates_of_a_session_hold_and_say_what_they_are_made_of(session):
    found = session.share(SMOKES, where(sex="F"), by="region")
    exact = [IN["smokes"][IN["women"] & (ROWS["region"] == region)].mean() for region in "nes"]

    assert (np.abs(found.values - exact) <= found.error_bounds).all()
    assert (found.error_bounds < 0.4).all()
    assert 1 == len(found.answers)  # one cross table has both sides
    told = found.to_dict()
    assert [
        "region",
        "value",
        "error_bound",
        "expected_error",
        "part",
        "part_bound",
        "count",
        "count_bound",
    ] == [*told]
    assert "share(where(smokes=True), where(sex='F')) by region" == found.name
    alone = session.share(SMOKES, where(sex="F"))
    assert {"part", "part_bound", "count", "count_bound"} <= {*alone.to_dict()}
    assert "of" in repr(alone)
    assert json.dumps(alone.to_dict())
    assert "part" in alone._repr_html_()


def test_a_conjunction_by_group_is_two_tables_and_anything_else_two_questions_a_group(session):
    both = where(smokes=True, age=below(25))

    assert 2 == session.explain(lambda asked: asked.share(both, by="sex")).answers
    assert 4 == session.explain(lambda asked: asked.share(both | where(region="n"), by="sex")).answers
    assert 1 == session.explain(lambda asked: asked.share(where(smokes=True), by=["sex", "region"])).answers


def test_the_mean_of_a_boolean_is_a_rate_of_those_who_have_a_value(session):
    known = ROWS["smokes"] != None  # noqa: E711  # elementwise
    found = session.mean("smokes", where(sex="F"))

    assert abs(found.value - IN["smokes"][known & IN["women"]].mean()) <= found.error_bound
    assert abs(session.sum("smokes").value - IN["smokes"].sum()) <= session.sum("smokes").error_bound
    exact = Exact(DOMAIN, COUNTS)
    assert exact.variance("smokes").value == pytest.approx(IN["smokes"][known].var())


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda s: s.share(None), InvalidQueryError, "cond must be a condition, got None"),
        (lambda s: s.share(3), InvalidQueryError, "where must be a condition made by where"),
        (lambda s: s.share(where(sex="X")), InvalidQueryError, "sex must be one of its 2 values"),
        (
            lambda s: s.share(SMOKES, where(age=ic.between(25, 24))),
            InvalidQueryError,
            "some records can meet",
        ),
        (lambda s: s.share(SMOKES, "mean"), InvalidQueryError, "where must be a condition, got 'mean'"),
        (lambda s: s.share(SMOKES, by="sexx"), InvalidQueryError, "did you mean 'sex'"),
        (lambda s: s.share(SMOKES, by=[]), InvalidQueryError, "one or more different attributes"),
        (lambda s: s.top("sex", 0), InvalidParameterError, "k must be"),
        (lambda s: s.series("sex"), InvalidQueryError, "sex must hold dates for a series"),
        (lambda s: s.series("day", by="decade"), InvalidParameterError, "unit must be"),
        (lambda s: s.group_by("sex")["X"], InvalidQueryError, "did you mean|see labels"),
        (lambda s: s.group_by(["sex", "region"])["F"], InvalidQueryError, "a label of each of sex, region"),
        (lambda s: s.group_by("sex") - s.group_by("region"), InvalidQueryError, "groups must be the same"),
        (lambda s: s.mean("age") - "3", TypeError, "combined with another or with a number"),
        (lambda s: s.mean("age") - s.answer(ic.marginal("sex")), TypeError, "group by group"),
        (lambda s: s.mean("age") ** 2, TypeError, r"by \+ - \* and /"),
        (lambda s: s.mean("age") < 3, TypeError, "has no order"),
        (lambda s: s.group_by("sex") > 3, TypeError, "has no order"),
        (lambda s: s.covariance("age", "age"), InvalidQueryError, "must be different"),
        (lambda s: s.covariance("age", "sex"), InvalidQueryError, "sex must be a number"),
    ],
)
def test_what_cannot_be_asked_or_combined_is_refused_by_name(session, ask, error, said):
    pytest.importorskip("sqlglot")
    with pytest.raises(error, match=said):
        ask(session)


def test_a_rate_of_nobody_is_refused_and_in_groups_left_open():
    few = Exact(DOMAIN, np.where(np.arange(DOMAIN.size) < 10, 100, 0), off=0.001)  # women of 20
    with pytest.raises(TooFewRecordsError, match="must be over more records"):
        few.share(SMOKES, where(sex="M"))
    found = few.share(SMOKES, by="sex")

    assert math.isnan(found.values[1])
    assert math.inf == found.error_bounds[1]
    impossible = few.share(SMOKES, where(sex="F"), by="sex")
    assert math.isnan(impossible.values[1])
    assert 0.0 == impossible.error_bounds[1]  # whatever the data


# -- results that are combined --


def test_differences_and_ratios_hold_the_exact_ones(session):
    women, men = (session.mean("age", where(sex=sex)) for sex in ("F", "M"))
    exact = [ROWS["age"][ROWS["sex"] == sex].mean() for sex in ("F", "M")]

    for found, true in [
        (women - men, exact[0] - exact[1]),
        (women / men, exact[0] / exact[1]),
        (100 * women / men - 100, 100 * exact[0] / exact[1] - 100),
        (women * men, exact[0] * exact[1]),
        (-women, -exact[0]),
        (1 / women, 1 / exact[0]),
        (women + 2.5, exact[0] + 2.5),
        (3 - women, 3 - exact[0]),
        (sum([women, men]), sum(exact)),
        (np.float64(2) * women, 2 * exact[0]),
    ]:
        assert isinstance(found, Derived)
        assert abs(found.value - true) <= found.error_bound < math.inf
        assert found.expected_error > 0.0
        low, high = found.interval
        assert low <= true <= high
    told = women - men
    assert "mean(age, where(sex='F')) - mean(age, where(sex='M'))" == told.name
    assert told.name in repr(told)
    assert (None, None, 4) == (told.count, told.count_bound, len(told.answers))
    assert 0.0 == (women - women).value == (women - women).error_bound


def test_answers_are_numbers_of_records_there(session):
    women, men = session.answer(where(sex="F")), session.answer(where(sex="M"))

    assert (women - men).value == pytest.approx(women.count - men.count)
    assert (women / (women + men)).value == pytest.approx(float(women) / (float(women) + float(men)))
    assert 0.9 == pytest.approx((women - men).confidence)
    assert (women - men).error_bound == pytest.approx(women.count_bound + men.count_bound)
    assert (women / women).error_bound == 0.0
    assert 0.5 * women.count == (women * 0.5).value
    assert 2 * women.count == pytest.approx(sum([women, women]).value)
    again = pickle.loads(pickle.dumps(women))
    assert 0.05 == again.beta == women.beta


def test_groups_are_combined_group_by_group(session):
    counts, rates = session.group_by("sex"), session.share(SMOKES, by="sex")
    part = 100 * counts / session.n

    assert "100 * count / 30000 by sex" == part.name or "(100 * count) / 30000 by sex" == part.name
    assert part.values == pytest.approx(100 * counts.values / N)
    assert part.error_bounds == pytest.approx(100 * counts.error_bounds / N)
    gap = rates["M"] - rates["F"]
    exact = [IN["smokes"][ROWS["sex"] == sex].mean() for sex in ("F", "M")]
    assert abs(gap.value - (exact[1] - exact[0])) <= gap.error_bound
    assert 1 == len(gap.answers)
    less = rates - session.share(SMOKES)
    assert less.values == pytest.approx(rates.values - session.share(SMOKES).value)
    two = session.group_by(["sex", "region"])
    assert two["F", "n"].value == two.values[0, 0]
    assert (two["F", "n"] / (two["F", "n"] + two["F", "e"] + two["F", "s"])).error_bound > 0.0
    assert (counts - counts).error_bounds.tolist() == [0.0, 0.0]
    assert 0.0 < (rates["M"] / rates["F"]).expected_error


def test_of_two_sessions_probabilities_of_failure_add():
    one, other = (opened(seed).mean("age", where(sex="F")) for seed in (1, 2))
    difference = one - other

    assert difference.confidence < 0.91
    assert abs(difference.value) <= difference.error_bound


def test_an_engine_that_states_no_probability_is_not_combined():
    answer = ic.Answer(0.5, 50.0, "easy", 0.1, n=100)
    with pytest.raises(InvalidParameterError, match="must state its number of records and its probability"):
        answer - answer
    noisy = ic.baselines.PerQueryNoise(DATA, ic.Budget(1.0, 1e-6), answers=10, noise=SimulatedNoise(1))
    assert (noisy.answer(SMOKES) - noisy.answer(YOUNG)).confidence == pytest.approx(0.9)


# -- ranks, series, lines --


def test_the_top_says_from_which_rank_on_noise_decides():
    domain, counts = ic.Domain.of(city=list("abcde")), np.array([100, 500, 480, 20, 900])
    wide, narrow, exact = (Exact(domain, counts, off=off / 2000).top("city", 3) for off in (15, 5, 0))

    for found in (wide, narrow, exact):
        assert [("e",), ("b",), ("c",)] == [*found.labels]
        assert [900.0, 500.0, 480.0] == pytest.approx(found.values.tolist())
    assert (1, 3, 3) == (wide.decided, narrow.decided, exact.decided)
    assert "rank 1 is sure; from rank 2 on noise decides" == wide.said
    assert "all of these ranks are sure" == exact.said
    assert [1, 2, 3] == wide.to_dict()["rank"]
    assert "top 3 of 5: count by city" in repr(wide)
    assert "rank 1 is sure" in wide._repr_html_()
    nothing = Exact(domain, counts, off=0.4).top("city", 2)
    assert "the order is not sure; from rank 1 on noise decides" == nothing.said
    assert 0 == nothing.decided


def test_ranks_that_are_said_to_be_sure_are_right(session):
    for seed in range(8):
        asked = opened(seed)
        found = asked.top("age", 10)
        exact = np.argsort(-np.bincount(ROWS["age"] - 20), kind="stable") + 20
        assert [labels[0] for labels in found.labels[: found.decided]] == exact[: found.decided].tolist()


def test_a_series_counts_by_period_and_is_drawn_as_a_line(session):
    found = session.series("day", by="month")
    exact = [
        (ROWS["day"].astype("M8[M]") == np.datetime64(month)).sum()
        for month in ("2023-11", "2023-12", "2024-01", "2024-02")
    ]

    assert ("2023-11", "2023-12", "2024-01", "2024-02") == found.labels[0]
    assert (np.abs(found.values - exact) <= found.error_bounds).all()
    assert 121 == len(session.series("day"))
    assert 4 == len(session.series("day", "month", aggregate="mean", of="age"))
    matplotlib = pytest.importorskip("matplotlib")
    assert matplotlib
    axes = found.plot()
    assert axes.lines
    assert not axes.patches  # no bars


def test_several_quantiles_are_asked_in_one_call(session):
    found = session.quantile("age", [0.25, 0.5, 0.75], where(sex="F"))

    assert [session.quantile("age", q, where(sex="F")).value for q in (0.25, 0.5, 0.75)] == [
        one.value for one in found
    ]
    with pytest.raises(InvalidParameterError, match="q must be a number"):
        session.quantile("age", [0.5, 1.5])


def test_covariances_and_lines_of_statements_are_those_of_the_records():
    domain = ic.Domain.of(x=ic.optional(range(10)), y=ic.number(0, 40, bins=40), s=["u", "v"])
    draw = np.random.default_rng(4)
    x = draw.integers(0, 10, 20_000)
    y = np.clip(2 * x + draw.integers(0, 12, 20_000), 0, 40).astype(float)
    s = draw.choice(["u", "v"], 20_000)
    missing = draw.random(20_000) < 0.1
    data = ic.PrivateData.from_records({"x": np.where(missing, np.nan, x), "y": y, "s": s}, domain)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=SimulatedNoise(2), questions=[("x", "y", "s")])
    held = ~missing
    pytest.importorskip("sqlglot")
    told = session.sql("SELECT s, CORR(y, x), REGR_SLOPE(y, x), COVAR_POP(y, x) FROM t GROUP BY s")
    for place, group in enumerate("uv"):
        inside = held & (s == group)
        trues = (
            np.corrcoef(x[inside], y[inside])[0, 1],
            np.polyfit(x[inside], y[inside], 1)[0],
            np.cov(x[inside], y[inside], bias=True)[0, 1],
        )
        assert (np.abs(told.values[place] - trues) <= told.error_bounds[place] + told.biases).all()


@pytest.mark.parametrize("keys", [[ic.extract("day", "quarter")], [ic.cut("age", [25]), "sex"]])
def test_means_by_groupings_are_those_of_the_rows(keys):
    exact = Exact(DOMAIN, COUNTS)
    found = exact.group_by(keys, aggregate="mean", of="age")
    quarter = (ROWS["day"].astype("M8[M]").astype(int) % 12) // 3 + 1
    values = [quarter] if len(keys) == 1 else [np.where(ROWS["age"] < 25, 0, 1), ROWS["sex"]]
    labels = [[1, 4]] if len(keys) == 1 else [[0, 1], ["F", "M"]]

    for place, group in enumerate(itertools.product(*labels)):
        there = np.logical_and.reduce([column == label for column, label in zip(values, group, strict=True)])
        assert found.values.ravel()[place] == pytest.approx(ROWS["age"][there].mean())
