"""A summary, synthetic rows and the HTML of a session: released facts alone, safe to show, marked."""

import csv
import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.datasets import adult5
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.evaluate import exact_values
from onlineic.ledger import BoughtTables
from onlineic.noise import SimulatedNoise
from onlineic.plan import KNOWN
from onlineic.queries import Queries
from onlineic.session.summary import believed_marginals
from support.sessions import begun, tests_alone

N = 20_000
DOMAIN = ic.Domain.of(
    {
        "<script>x</script>": ["<=50K", ">50K", "a|b *c*"],
        "age": ic.optional(range(17, 91)),
        "hours": ic.binned([0, 10, 20, math.inf]),
    }
)
COUNTS = np.random.default_rng(5).multinomial(
    N, np.random.default_rng(6).dirichlet(np.full(DOMAIN.size, 0.3))
)
DATA = ic.PrivateData(COUNTS.reshape(DOMAIN.shape), DOMAIN)
LABELS = DOMAIN.names[0]


@pytest.fixture(scope="module")
def session():
    session = ic.OnlineIC(DATA, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    session.answer(ic.where(age=ic.between(20, 30)))
    session.answer_many(Queries.where(DOMAIN, {"age": ([0, 13, 23], [13, 23, 74]), LABELS: [0, 1, 2]}))
    session.answer(ic.marginal(LABELS, "hours"))
    session.answer(ic.where(age=ic.between(20, 30)))
    return session


def test_a_summary_tells_what_was_released(session):
    before = (session.statistics(), len(session.transcript), DATA.reads)
    summary = session.summary()
    text = str(summary)

    assert before == (session.statistics(), len(session.transcript), DATA.reads)
    assert "NOT PRIVATE" in text
    assert "epsilon = 1, delta = 1e-09" in text
    assert f"at least {session.statistics().hard_left}; later ones cost less, with more noise" in text
    assert "without a guarantee" in text
    assert "where(age=between(20, 30))" in text
    assert list(DOMAIN.names) == [one.name for one in summary.marginals]
    for one in summary.marginals:
        assert np.allclose(N * session.hypothesis.marginal(one.name), one.counts)
    assert 5 == len(summary.answers)


def test_a_summary_says_what_the_budget_bought():
    fresh = ic.OnlineIC(DATA, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))

    assert "nothing yet; 100.0% is left" in str(fresh.summary())

    for age in range(20, 35):
        fresh.answer(ic.where(age=age))
    stats = fresh.statistics()
    bought = sum(one.charge.amount for one in fresh.transcript if isinstance(one, BoughtTables))

    assert (0, 15) == (stats.hard, stats.easy)
    assert float(bought / fresh.account.capacity) == stats.bought > 0.5
    assert (
        f"{stats.bought:.1%} on numbers and tables that were bought, "
        f"{stats.spent - stats.bought:.1%} used or set aside for measured answers; "
        f"{1 - stats.spent:.1%} is left"
    ) in str(fresh.summary())


def test_the_promise_of_a_plan_whose_prices_fall_ends_with_the_first_measured_answer(monkeypatch):
    """Behind a hit tests have more noise, and easy answers a wider bound than the plan's."""
    tests_alone(monkeypatch)
    counts = np.zeros((8, 8, 8), int)
    for at in range(8):
        counts[at, (at * 3) % 8, (at + at * at) % 8] = 2_500
    data = ic.PrivateData(counts, ic.Domain.of(a=8, b=8, c=8))
    session = ic.OnlineIC(
        data, ic.Budget(1.0, 1e-6), max_queries=3000, hard_answers=4, noise=SimulatedNoise(1)
    )
    session.answer_many([ic.where(a=at // 64, b=at // 8 % 8, c=at % 8) for at in range(512)])
    dense = session.answer(np.random.default_rng(1).integers(0, 2, 512).astype(float))
    promise = next(line for line in str(session.summary()).splitlines() if line.startswith("promise"))

    assert (0, "easy") < (session.statistics().hard, dense.status)
    assert dense.error_bound > session.plan.error_bound
    assert "before the first measured one" in promise
    certified = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), certify=0.2, noise=SimulatedNoise(1))
    assert "every answer but cross tables, of the first" in str(certified.summary())


def test_the_latest_answers_are_those_that_were_given(session):
    given = [
        session.answer(ic.where({"age": ic.between(17 + low, 16 + high), LABELS: label}))
        for low, high, label in ((0, 13, "<=50K"), (13, 23, ">50K"), (23, 74, "a|b *c*"))
    ]
    shown = session.summary().answers[1:4]

    assert [answer.query for answer in given] == [answer.query for answer in shown]
    assert [answer.value for answer in given] == [answer.value for answer in shown]
    assert [answer.error_bound for answer in given] == [answer.error_bound for answer in shown]
    assert [answer.query.written for answer in session.summary().answers[-2:]] == [
        answer.query.written for answer in session.summary(2).answers
    ]
    assert () == session.summary(0).answers


def test_answers_about_persons_are_counted_in_persons_everywhere():
    rows, domain = {"id": [1, 1, 2, 3], "a": [0, 1, 1, 1]}, ic.Domain.of(a=2)
    data = ic.PrivateData.from_records(rows, domain, unit=ic.Unit("id"))
    session = ic.OnlineIC(data, ic.Budget(1.0), noise=SimulatedNoise(1))
    answers = session.answer_many(Queries.where(domain, {"a": [0, 1]}))
    summary = session.summary()

    for said in (str(summary), summary.to_markdown(), summary.to_html(), answers._repr_html_()):
        assert "persons" in said
        assert "records" not in said.replace("number of records", "")


def test_a_closed_session_is_summed_up_too():
    with ic.OnlineIC(DATA, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1)) as session:
        session.answer(ic.where(age=20))

    assert 1 == len(session.summary().answers)
    assert session._repr_html_()
    assert 3 == len(session.synthetic(3))


def test_a_long_stream_shows_its_end():
    session = ic.OnlineIC(DATA, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    for low in range(17, 90):
        session.answer(ic.where(age=ic.between(low, 90)))

    assert [f"where(age=between({low}, 90))" for low in range(80, 90)] == [
        answer.query.written for answer in session.summary(10).answers
    ]
    assert 73 == len(session.summary(500).answers)


def test_intervals_beside_the_hypothesis_hold_the_truth_at_once():
    """They are of the noise of the first tables: one run in about 1 / (KNOWN beta) may miss."""
    missed = 0
    for seed in range(20):
        session = begun(ic.OnlineIC(DATA, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(seed)))
        held = True
        for axis, one in enumerate(session.summary().marginals):
            truth = DATA.exact_counts(ic.queries.partitions.one_way(DOMAIN, axis))
            low, high = one.brackets
            held &= bool(((low <= truth) & (truth <= high)).all())
            assert (high - low).max() < N / 10
        missed += not held

    assert session.plan.beta * KNOWN < 0.05
    assert missed <= 1


def test_without_first_tables_there_are_no_intervals():
    session = ic.OnlineIC(DATA, ic.Budget(1.0), update=ic.MultiplicativeWeights(), noise=SimulatedNoise(1))

    assert {None} == {one.brackets for one in session.summary().marginals}
    assert "without a guarantee" in session.summary()._repr_html_()


def test_a_hypothesis_without_tables_is_summed_up_without_them():
    class Bare:
        domain = DOMAIN

    assert () == believed_marginals(Bare(), None, 10, DOMAIN.names)


def test_a_hypothesis_that_cannot_be_sampled_gives_no_synthetic_rows():
    small = ic.Domain.of(a=2, b=2)
    data = ic.PrivateData(np.full((2, 2), 50_000), small)
    session = ic.OnlineIC(
        data, ic.Budget(1.0, 1e-9), update=ic.Median(size=3), certify=0.4, noise=SimulatedNoise(1)
    )

    assert ["a", "b"] == [one.name for one in session.summary().marginals]
    with pytest.raises(InvalidParameterError, match="must be one that can be sampled"):
        session.synthetic(10)


def test_the_page_is_written_and_whole(session, tmp_path):
    summary = session.summary()
    text = summary.to_html(tmp_path / "page.html")

    assert text == (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "<script" not in text
    assert "&lt;script&gt;x&lt;/script&gt;" in text
    assert len(DOMAIN.names) + 1 == text.count('role="img"')
    assert "NOT PRIVATE" in text


def test_markdown_takes_no_label_for_markup(session):
    text = session.summary().to_markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]

    assert "<script" not in text
    assert "a\\|b \\*c\\*" in text
    assert {3, 4, 5} == {line.replace("\\|", "").count("|") for line in rows}


def test_every_object_shows_itself_small_and_without_scripts(session):
    batch = session.answer_many(Queries.where(DOMAIN, {"age": (np.zeros(74, int), np.arange(1, 75))}))
    shown = [
        session,
        session.plan,
        DOMAIN,
        ic.forecast(DOMAIN, N, ic.Budget(1.0, 1e-9)),
        session.answer(ic.where({LABELS: "<=50K"})),
        *(
            session.answer(ic.marginal(*names))
            for names in ((LABELS,), ("age",), (LABELS, "age"), DOMAIN.names)
        ),
        batch,
        session.summary(10_000),
        session.synthetic(50),
    ]
    for one in shown:
        text = one._repr_html_()

        assert len(text) < 20_000, type(one)
        assert "<script" not in text
        assert text.startswith("<div")


def test_names_and_numbers_are_checked(session):
    for wrong in (-1, 1.5, True, math.nan, 10**6, "3"):
        with pytest.raises(InvalidParameterError, match="answers must be"):
            session.summary(wrong)
    with pytest.raises(InvalidQueryError, match="did you mean 'age'"):
        session.summary(attributes=["agge"])
    with pytest.raises(InvalidParameterError, match="list of names"):
        session.summary(attributes="age")
    for wrong in (0, -1, 1.5, 10**9, None):
        with pytest.raises(InvalidParameterError, match="rows must be"):
            session.synthetic(wrong)
    with pytest.raises(InvalidParameterError, match="seed must be"):
        session.synthetic(5, seed=-1)


def test_attributes_can_be_chosen(session):
    assert ["hours"] == [one.name for one in session.summary(attributes=["hours"]).marginals]


def test_what_the_hypothesis_believes_is_drawn(session, tmp_path):
    pytest.importorskip("matplotlib")
    summary = session.summary(attributes=["age", "hours"])
    for name in ("age", "hours"):
        axes = summary.plot(name)
        axes.figure.savefig(tmp_path / f"{name}.png")

        assert "without a guarantee" in axes.get_title(loc="left")
        assert "NOT PRIVATE" in axes.get_title(loc="left")
        assert axes is summary.plot(name, axes)
    with pytest.raises(InvalidQueryError, match="attribute must be"):
        summary.plot("agee")
    with pytest.raises(InvalidParameterError, match="that the summary holds"):
        summary.plot(LABELS)


def test_a_label_is_no_formula():
    pytest.importorskip("matplotlib")
    domain = ic.Domain.of({"$\\frac$": ["$x_{", "b"]})
    session = ic.OnlineIC(ic.PrivateData(np.array([900, 100]), domain), ic.Budget(1.0, 1e-9))
    for axes in (session.summary().plot("$\\frac$"), session.answer(ic.marginal("$\\frac$")).plot()):
        axes.figure.canvas.draw()


def test_synthetic_rows_are_marked_wherever_they_go(session, tmp_path):
    made = session.synthetic(200, seed=4)
    made.to_csv(tmp_path / "rows.csv")
    with open(tmp_path / "rows.csv", newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]

    assert [*DOMAIN.names, "synthetic"] == [*rows[0]]
    assert {"True"} == {row["synthetic"] for row in rows}
    assert 200 == len(rows) == len(made)
    assert made.columns == session.synthetic(200, seed=4).columns
    assert made.columns != session.synthetic(200, seed=5).columns
    assert ["" if age is None else str(age) for age in made.columns["age"]] == [row["age"] for row in rows]
    assert "NOT PRIVATE" in repr(made)
    assert "synthetic" in made._repr_html_()


def test_synthetic_numbers_lie_inside_their_bins_with_the_mean_that_is_believed():
    draw = np.random.default_rng(3)
    pay = np.concatenate([draw.uniform(0, 10, 8000), draw.uniform(36, 39, 12_000)])
    domain = ic.Domain.of(
        pay=ic.optional(ic.number(0, 40, bins=4)), hours=ic.binned([0, 8, 24], integer=True)
    )
    rows = {"pay": np.where(draw.random(N) < 0.1, np.nan, pay), "hours": draw.integers(0, 24, N)}
    session = ic.OnlineIC(
        ic.PrivateData.from_records(rows, domain), ic.Budget(4.0, 1e-6), noise=SimulatedNoise(1)
    )

    made = session.synthetic(20_000, seed=1).columns

    missing = np.array([value is None for value in made["pay"]])
    drawn = np.array([value for value in made["pay"] if value is not None])
    assert abs(missing.mean() - 0.1) < 0.02
    assert ((drawn >= 0) & (drawn < 40)).all()
    assert abs(drawn[drawn >= 30].mean() - 37.5) < 0.3  # of the last bin, 30 to 40
    assert abs(drawn[drawn < 10].mean() - 5.0) < 0.3
    assert {int} == {*map(type, made["hours"])}
    assert {*made["hours"]} <= {*range(24)}


def test_a_summary_has_one_row_a_bin():
    domain = ic.Domain.of(pay=ic.number(0, 40, bins=4))
    rows = {"pay": np.random.default_rng(3).uniform(0, 40, N)}
    session = ic.OnlineIC(ic.PrivateData.from_records(rows, domain), ic.Budget(1.0), noise=SimulatedNoise(1))

    told = session.summary()

    assert 1 == told.to_markdown().count("[10, 20)")
    assert 1 == told._repr_html_().count(">[10, 20)<")


def test_an_attribute_called_synthetic_is_kept():
    domain = ic.Domain.of(synthetic=["yes", "no"])
    session = ic.OnlineIC(ic.PrivateData(np.array([90, 10]), domain), ic.Budget(1.0, 1e-9))

    assert ["synthetic", "synthetic_"] == [*session.synthetic(3).to_dict()]


def test_synthetic_frames(session):
    pandas = pytest.importorskip("pandas")
    frame = session.synthetic(20).to_pandas()

    assert isinstance(frame, pandas.DataFrame)
    assert "without any guarantee" in frame.attrs["note"]
    assert frame["synthetic"].all()


def test_synthetic_frames_of_polars(session):
    polars = pytest.importorskip("polars")

    assert isinstance(session.synthetic(20).to_polars(), polars.DataFrame)


def test_derived_questions_and_explanations_show_themselves(session):
    shown = {
        "mean": session.mean("age"),
        "sum": session.sum("age", {LABELS: "<=50K"}),
        "median": session.median("age"),
        "cdf": session.cdf("age"),
        "groups": session.group_by([LABELS, "age"]),
        "histogram": session.histogram(LABELS),
        "statistics": session.statistics(),
        "explanation": session.explain(ic.where({LABELS: "<=50K", "age": 20})),
        "explanation of many": session.explain([ic.where(age=age) for age in range(20, 30)]),
    }
    for name, one in shown.items():
        text = one._repr_html_()

        assert len(text) < 20_000, name
        assert "<script" not in text, name
        assert text.startswith("<div"), name
        assert ("NOT PRIVATE" in text) is not name.startswith("explanation"), name


def test_a_long_distribution_function_is_thinned_and_not_added_up():
    domain = ic.Domain.of(a=400)
    session = ic.OnlineIC(ic.PrivateData(np.full(400, 100), domain), ic.Budget(1.0, 1e-9))
    text = session.cdf("a")._repr_html_()

    assert "largest 1&quot;" in text or 'largest 1"' in text
    assert len(text) < 20_000


def test_columns_of_groups_keep_the_names_of_attributes():
    domain = ic.Domain.of(value=["a", "b"])
    session = ic.OnlineIC(ic.PrivateData(np.array([900, 100]), domain), ic.Budget(1.0, 1e-9))

    assert {"value": ["a", "b"]}.items() <= session.histogram("value").to_dict().items()
    assert ["value", "value_", "error_bound", "expected_error"] == [*session.histogram("value").to_dict()]


def test_statements_show_themselves(session):
    pytest.importorskip("sqlglot")
    table = session.sql(f'SELECT "{LABELS}", COUNT(*), AVG(age) FROM t GROUP BY "{LABELS}"')
    text = table._repr_html_()

    assert len(text) < 20_000
    assert "<script" not in text
    assert "NOT PRIVATE" in text
    assert "&lt;=50K" in text


def test_a_summary_before_the_first_question_buys_nothing():
    session = ic.OnlineIC(DATA, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    said = str(session.summary())

    assert (0, 0) == (len(session.transcript), session.account.spent)
    assert "Nothing has told of single attributes yet" in said
    session.answer_many([ic.marginal(name) for name in DATA.domain.names])
    assert "Nothing has told" not in str(session.summary())


def test_a_summary_is_right_about_a_few_answers_and_what_telling_would_have_been_worth():
    columns, counts = adult5()
    labels = {name: sorted(set(columns[name].tolist())) for name in ("race", "sex", "income")}
    domain = ic.Domain.of(age=range(17, 91), education_num=range(1, 17), **labels)
    data = ic.PrivateData.from_counts(columns, counts, domain)
    sex, income, race = labels["sex"][0], labels["income"][1], labels["race"][-2]
    asked = [ic.where(age=ic.between(20 + 5 * step, 34 + 5 * step), sex=sex) for step in range(4)]
    asked += [ic.where(education_num=ic.between(step, step + 3), income=income) for step in range(6, 10)]
    asked += [ic.where(age=ic.between(17, 30 + 9 * step), income=income) for step in range(3)]
    asked += [ic.where(sex=sex), ic.where(income=income), ic.where(race=race)]
    truths, rows = exact_values(data, [one.bind(domain) for one in asked]), []
    for told in ({}, {"questions": len(asked)}):
        found = []
        for seed in range(4):
            session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(seed), **told)
            errors = [session.answer(one).value - truth for one, truth in zip(asked, truths, strict=True)]
            summary = session.summary()
            found.append((np.mean(np.square(errors)), summary.expected, summary.told))
        rows.append((math.sqrt(np.mean([one for one, _, _ in found])), *found[-1][1:]))
    (untold, expected, worth), (announced, expected_then, nothing) = rows

    assert 2 / 3 <= expected / untold <= 3 / 2
    assert 2 / 3 <= worth / announced <= 3 / 2
    assert worth < 2 / 3 * expected
    assert (expected_then, nothing) == (pytest.approx(worth, rel=0.05), None)


def test_who_was_told_nothing_says_what_telling_would_have_been_worth():
    """Most of what it bought for twenty questions is of no use; a session that was told says nothing."""
    rng = np.random.default_rng(1)
    domain = ic.Domain.of(a=40, b=12, c=9, d=8)
    columns = {name: rng.integers(0, size, 30_000) for name, size in zip("abcd", domain.shape, strict=True)}
    data = ic.PrivateData.from_records(columns, domain)
    asked = [ic.where(a=ic.between(more % 8, 20 + more // 2), b=ic.between(2, 7)) for more in range(20)]
    untold = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    assert untold.summary().told is None
    for question in asked:
        untold.answer(question)
    found = untold.summary()

    assert 0.0 < found.told <= 2 / 3 * found.expected
    assert "Told of them by questions=, about" in str(found)
    told = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), questions=[("a", "b")], noise=SimulatedNoise(1))
    told.answer(asked[0])
    assert told.summary().told is None
    assert "Told of them" not in str(told.summary())
