"""Statements in SQL, asked of a session: their answers and prices, and that refusals cost nothing."""

import itertools
import math
import random
import sys

import numpy as np
import pytest

pytest.importorskip("sqlglot")

import onlineic as ic
from onlineic.errors import (
    InvalidInputError,
    InvalidQueryError,
    MissingExtraError,
    TooFewRecordsError,
)
from onlineic.noise import SimulatedNoise
from onlineic.queries import Answer
from onlineic.questions import AnswerTable, Derived
from support.noise import Silent
from support.sql_refusals import DOMAIN as REFUSED_DOMAIN
from support.sql_refusals import REFUSED
from support.sql_statements import DOMAIN, Statements, cells, opened, texts

SIMPLE = ic.Domain.of(age=range(20, 30), sex=ic.optional(["F", "M"]), pay=ic.binned([0, 10, 20, 40]))
RECORDS = 10**10  # so many that noise hardly counts


def session(domain=SIMPLE, n=RECORDS, **settings):
    """A session over a table whose cells are all different."""
    counts = np.random.default_rng(0).multinomial(n, np.random.default_rng(1).dirichlet(np.ones(domain.size)))
    data = ic.PrivateData(counts.reshape(domain.shape), domain)
    return ic.OnlineIC(data, ic.Budget(1.0, 1e-12), **settings), counts.reshape(domain.shape)


@pytest.fixture(scope="module")
def simple():
    return session()


def test_one_count_is_an_answer(simple):
    asked, counts = simple
    answer = asked.sql(
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 22 AND 24 AND sex = 'F'", table="people"
    )

    assert isinstance(answer, Answer)
    assert abs(answer.count - counts[2:5, 0].sum()) <= RECORDS * answer.error_bound
    assert "repeat" == asked.answer(ic.where(age=ic.between(22, 24), sex="F")).status
    assert "repeat" == asked.answer("age >= 22 AND age < 25 AND NOT sex = 'M'").status
    assert "repeat" == asked.sql("SELECT COUNT_IF(sex = 'F') FROM t WHERE age IN (22, 23, 24)").status


def test_sums_and_averages_leave_out_the_missing_and_have_bounds(simple):
    asked, counts = simple
    records = counts[:, :2].sum(axis=2)  # of those with a sex
    ages = np.arange(20, 30)[:, np.newaxis]
    average = asked.sql("SELECT AVG(age) AS mean_age FROM t WHERE sex IS NOT NULL")
    total = asked.sql("SELECT SUM(age) FROM t WHERE sex IN ('F', 'M')")

    assert isinstance(average, Derived)
    assert abs(average.value - (ages * records).sum() / records.sum()) <= average.error_bound < 1e-2
    assert abs(total.value - (ages * records).sum()) <= total.error_bound


def test_a_grouped_count_is_one_question_in_the_order_of_select(simple):
    asked, counts = simple
    before = asked.statistics().asked
    table = asked.sql("SELECT sex, COUNT(*) AS n FROM t WHERE age < 25 GROUP BY age, sex")

    assert isinstance(table, AnswerTable)
    assert 1 == len(table.answers) == asked.statistics().asked - before
    assert (("age", "sex"), ("n",), 30) == (table.keys, table.names, len(table))
    assert ((20, "F"), (20, "M"), (20, None)) == table.labels[:3]
    found = table.to_dict()
    assert ["age", "sex", "n", "n error_bound", "n expected_error"] == list(found)
    assert found["n"][15:] == [0.0] * 15 == found["n error_bound"][15:]  # excluded: known exactly
    truth = counts[:5].sum(axis=2).ravel()
    assert (abs(np.array(found["n"][:15]) - truth) <= found["n error_bound"][:15]).all()
    assert {"age": 20, "sex": None, "n": found["n"][2]} == list(table)[2]
    assert 0.95 == table.confidences[0]


def test_several_aggregates_stand_in_one_row(simple):
    asked, counts = simple
    table = asked.sql(
        "SELECT COUNT(*), AVG(pay), COUNT(*) FILTER (WHERE sex = 'F') AS women, SUM(age) AS none FROM t "
        "WHERE age < 22 OR sex = 'F'"
    )

    (row,) = list(table)
    assert ["COUNT(*)", "AVG(pay)", "women", "none"] == list(row)
    either = counts.sum() - counts[2:, 1:].sum()
    assert abs(row["COUNT(*)"] - either) <= table.error_bounds[0, 0]
    assert abs(row["women"] - counts[:, 0].sum()) <= table.error_bounds[0, 2]
    assert (0.0, 10.0) == table.biases[:2]  # of midpoints
    assert all(1.0 - asked.beta >= confidence >= 0.5 for confidence in table.confidences)


def test_a_count_beside_other_aggregates_is_as_sure_as_it_is_alone(simple):
    asked, _ = simple
    one, all_of_them = asked.sql("SELECT COUNT(*) FILTER (WHERE age < 25), COUNT(*) FROM t").confidences

    assert (1.0 - asked.beta, 1.0) == (one, all_of_them)


def test_nobody_is_known_exactly_and_free(simple):
    asked, _ = simple
    hits = asked.statistics().hard

    assert (0.0, 0.0) == (lambda answer: (answer.count, answer.error_bound))(
        asked.sql("SELECT COUNT(*) FROM t WHERE age > 99")
    )
    total = asked.sql("SELECT SUM(age) FROM t WHERE age > 99")
    assert (0.0, 0.0, 1.0) == (total.value, total.error_bound, total.confidence)
    table = asked.sql("SELECT sex, COUNT(*), SUM(age) FROM t WHERE FALSE GROUP BY sex")
    assert not table.values.any()
    assert not table.error_bounds.any()
    assert hits == asked.statistics().hard


def test_a_mean_over_nobody_is_refused_alone_and_left_out_of_a_table():
    domain = ic.Domain.of(age=range(20, 30), sex=["F", "M"])
    counts = np.zeros(domain.shape, np.int64)
    counts[:, 0] = 1000
    data = ic.PrivateData(counts, domain)
    asked = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=Silent(), questions=20)

    with pytest.raises(TooFewRecordsError, match="too few for this accuracy"):
        asked.sql("SELECT AVG(age) FROM t WHERE sex = 'M'")
    table = asked.sql("SELECT sex, AVG(age) FROM t GROUP BY sex")
    assert [False, True] == np.isnan(table.values[:, 0]).tolist()
    assert "too few records" in repr(table)
    row = asked.sql("SELECT COUNT(*), AVG(age) FROM t WHERE sex = 'M'")
    assert math.isnan(row.values[0, 1])
    assert math.inf == row.error_bounds[0, 1]


@pytest.mark.slow
def test_random_statements_are_answered_as_by_sqlite():
    """A table so large that a record of SQLite's stands for far more than noise can be: counts are exact."""
    generator, times = Statements(seed=7), 10**8
    every = cells()
    rows = every[np.sort(np.random.default_rng(0).integers(0, len(every), 3000))]
    counts = np.bincount(np.ravel_multi_index(rows.T, DOMAIN.shape), minlength=DOMAIN.size) * times
    data = ic.PrivateData(counts.reshape(DOMAIN.shape), DOMAIN)
    asked = ic.OnlineIC(
        data, ic.Budget(1.0, 1e-12), update=ic.updates.MultiplicativeWeights(), noise=SimulatedNoise(1)
    )
    database = opened(random.Random(0), {"t": rows})
    checked = 0
    for _ in range(60):
        keys, aggregates, among, params = generator.statement()
        ours, theirs = texts(keys, aggregates, among)
        try:
            found = asked.sql(ours, params=params)
        except InvalidInputError:
            continue
        except TooFewRecordsError:
            ((expected,),) = database.execute(theirs, params)
            assert expected is None
            continue
        if not isinstance(found, AnswerTable):
            number = found.count if isinstance(found, Answer) else found.value
            bound = found.error_bound * (len(rows) * times if isinstance(found, Answer) else 1)
            values, bounds = np.array([[number]]), np.array([[bound]])
        else:
            values, bounds = found.values, found.error_bounds
        truth = {tuple(row[: len(keys)]): row[len(keys) :] for row in database.execute(theirs, params)}
        labels = found.labels if isinstance(found, AnswerTable) else ((),)
        for row, label in enumerate(labels):
            expected = truth.get(label, [None] * len(aggregates))
            for place, (text, _) in enumerate(aggregates):
                value, bound = values[row, place], bounds[row, place]
                if text.startswith("AVG"):
                    assert (expected[place] is None) == math.isnan(value) or bound > 1e-3
                    close = expected[place] is None or abs(value - expected[place]) <= 4 * bound + 1e-9
                elif text.startswith("SUM") and bound / times >= 0.5:  # weights on the grid of so large an n
                    close = abs(value / times - (expected[place] or 0)) <= bound / times
                else:
                    close = round(value / times) == (expected[place] or 0)
                    assert bound / times < 0.5
                assert close, (ours, label, value, expected, bound)
                checked += 1
    assert checked > 150


def test_what_is_refused_costs_nothing_and_changes_nothing(simple):
    domain = ic.Domain.of(
        {name: REFUSED_DOMAIN.attribute(name) for name in ("age", "sex", "race", "married")}
    )
    asked, _ = session(domain, n=100_000)
    asked.sql("SELECT AVG(age) FROM t")
    before = (asked.statistics(), list(asked.transcript), asked.plan)

    for text, *_ in REFUSED:
        with pytest.raises(InvalidInputError):
            asked.sql(text)
    for good in ("COUNT(*)", "AVG(age)", "COUNT_IF(sex = 'F')"):  # the first aggregate is not asked alone
        for bad in ("MAX(age)", "COUNT_IF(sxe = 'F')", "AVG(sex)", "SUM(age) FILTER (WHERE age = 'a')"):
            for by in ("", " GROUP BY sex"):
                with pytest.raises(InvalidInputError):
                    asked.sql(f"SELECT {good}, {bad} FROM t{by}")
    for text in ("sxe = 'F'", "age = ", "age", "SELECT COUNT(*) FROM t", ""):
        with pytest.raises(InvalidQueryError):
            asked.answer(text)
        with pytest.raises(InvalidQueryError):
            asked.answer_many(["age = 30", text])
    with pytest.raises(InvalidQueryError, match=r"write \[query, ...\]"):
        asked.answer_many("age = 30")
    assert before == (asked.statistics(), list(asked.transcript), asked.plan)


def test_statements_are_explained_and_not_asked():
    asked, _ = session(noise=SimulatedNoise(1))  # under which the statement that is asked is easy
    asked.sql("SELECT COUNT(*) FROM t WHERE sex = 'F'")
    before = (asked.statistics(), list(asked.transcript))

    grouped = asked.explain("SELECT sex, COUNT(*) FROM t WHERE age = 21 GROUP BY sex")
    other = asked.explain(
        lambda given: given.sql("SELECT COUNT(*), AVG(age) FROM people WHERE pay < 20", "people")
    )
    assert ("table", 1) == (grouped.form, grouped.answers)
    assert (
        grouped.bound_derived
        == asked.sql("SELECT sex, COUNT(*) FROM t WHERE age = 21 GROUP BY sex").error_bounds.max()
    )
    assert ("several", 3, None) == (other.form, other.answers, other.bound_derived)
    assert ("age",) == asked.explain("age = 21").attributes
    with pytest.raises(InvalidQueryError, match="not supported: MAX"):
        asked.explain("SELECT MAX(age) FROM t")
    assert before[0].asked + 1 == asked.statistics().asked  # the one statement that was asked beside
    assert before[1] == list(asked.transcript)[: len(before[1])]


def test_conditions_of_derived_questions_are_texts_too(simple):
    asked, _ = simple
    among = ic.where(sex="F")

    assert asked.mean("age", among).value == asked.mean("age", "sex = 'F'").value
    assert asked.sum("age", {"sex": "F"}).value == asked.sum("age", "sex = 'F'").value
    assert (asked.group_by("pay", among).values == asked.group_by("pay", "sex = 'F'").values).all()
    assert asked.median("age", among).value == asked.median("age", "sex = 'F'").value
    with pytest.raises(InvalidQueryError, match="did you mean sex"):
        asked.mean("age", "sxe = 'F'")


def test_texts_are_answered_in_a_batch(simple):
    asked, _ = simple
    texts_ = ["age = 20", "age = 20 AND sex = 'F'", "pay < 20 OR sex IS NULL"]

    assert [asked.answer(text).value for text in texts_] == [
        answer.value for answer in asked.answer_many(texts_)
    ]


def test_a_table_is_shown_with_its_bounds_and_becomes_a_frame(simple, monkeypatch):
    asked, _ = simple
    table = asked.sql("SELECT sex AS who, COUNT(*) AS n, pay FROM t GROUP BY pay, sex")

    lines = repr(table).splitlines()
    assert ["who", "n", "pay"] == lines[0].split()
    assert lines[1].startswith("F ")
    assert " ± " in lines[1]
    assert lines[3].startswith("NULL ")
    assert "(1 answer)" == lines[-1]
    pandas = pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert ["who", "n", "n error_bound", "n expected_error", "pay"] == list(frame.columns)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"onlineic\[pandas\]"):
        table.to_pandas()


def test_a_table_shows_itself_in_notebooks_with_every_text_escaped():
    domain = ic.Domain.of(income=["<=50K", "<script>"], sex=["F", "M"])
    asked, _ = session(domain, n=100_000)
    shown = asked.sql('SELECT income, COUNT(*) AS "<b>" FROM t GROUP BY income')._repr_html_()

    assert "&lt;=50K" in shown
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;" in shown
    assert "<script" not in shown
    assert "<b>" not in shown
    assert "made of 1 answer: 1 easy" in shown
    assert len(shown) < 20_000
    assert len(asked.sql("SELECT COUNT(*), COUNT_IF(sex = 'F') FROM t")._repr_html_()) < 20_000


def test_long_tables_are_cut_and_simulations_are_stamped():
    asked, _ = session(noise=SimulatedNoise(3))
    table = asked.sql("SELECT COUNT(*) FROM t GROUP BY age, sex, pay")

    assert "... 70 more rows" in repr(table)
    assert repr(table).endswith("(1 answer, NOT PRIVATE)")
    assert not table.private
    assert 90 == len(list(itertools.chain(table)))


def test_of_many_groups_those_that_nobody_can_be_in_are_not_shown():
    domain = ic.Domain.of(day=ic.dates("2024-01-01", "2024-12-31"))
    days = [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(5000)]
    data = ic.PrivateData.from_records({"day": days}, domain)
    asked = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    found = asked.sql("SELECT day, COUNT(*) FROM t WHERE day >= '2024-12-30' GROUP BY day")
    lines = repr(found).splitlines()

    assert ["2024-12-30", "2024-12-31"] == [line.split()[0] for line in lines[1:3]]
    assert "... 364 more rows, see to_dict()" == lines[3]
    assert "2024-12-31" in found._repr_html_()
    assert "2024-01-01" not in found._repr_html_()
    assert 366 == len(found.to_dict()["day"])


def test_a_statement_that_is_asked_again_is_not_read_again(monkeypatch):
    asked, _ = session()
    text = "SELECT COUNT(*) FROM t WHERE age >= 25"
    first, other = asked.sql(text), asked.sql(text.replace("FROM t", "FROM people"), table="people")
    with monkeypatch.context() as patched:
        patched.setattr("onlineic.ask.sql.statement", lambda *_: pytest.fail("it was read again"))
        again = asked.sql(text)

    assert ["repeat", "repeat"] == [other.status, again.status]
    assert first.value == again.value
    for table, dialect in (("people", None), (5, None), ("t", 5)):  # each is read, and refused, by itself
        with pytest.raises(InvalidInputError):
            asked.sql(text, table=table, dialect=dialect)
    assert asked.sql(f"{text} AND age < :most", params={"most": 28}).value < first.value
    assert asked.sql(f"{text} AND age < :most", params={"most": 30}).value == first.value


def test_having_order_and_limit_choose_rows_of_the_same_groups_at_the_same_price(simple):
    asked, _ = simple
    plain = asked.sql("SELECT age, COUNT(*) AS n FROM t GROUP BY age")
    before, least = asked.statistics().spent, float(np.median(plain.values))

    found = asked.sql(
        "SELECT age, COUNT(*) AS n FROM t GROUP BY age HAVING n > :least ORDER BY n DESC LIMIT 3",
        params={"least": least},
    )

    kept = sorted(zip(plain.values[:, 0], plain.labels, strict=True), reverse=True)[:3]
    assert [label for _, label in kept] == list(found.labels)
    assert [value for value, _ in kept] == found.values[:, 0].tolist()
    assert plain.error_bounds[0, 0] == found.error_bounds[0, 0]
    assert (10, before) == (found.groups, asked.statistics().spent)
    assert "3 of 10 groups: HAVING, ORDER BY, LIMIT by noisy numbers" in repr(found)
    assert found.chosen in found._repr_html_()
    assert plain.chosen == ""


def test_an_aggregate_that_having_alone_names_is_asked_and_in_no_column(simple):
    asked, _ = simple

    found = asked.sql("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex HAVING AVG(age) > 0 ORDER BY SUM(age)")

    assert (("sex", "n"), ("n", "AVG(age)", "SUM(age)")) == (tuple(next(iter(found))), found.names)
    assert 3 == found.values.shape[1]
    assert np.all(np.diff(found.values[:, 2]) >= 0)


def test_a_statement_that_leaves_no_group_is_an_empty_table(simple):
    asked, _ = simple
    text = f"SELECT sex, COUNT(*) AS n FROM t GROUP BY sex HAVING n > {10 * RECORDS}"

    found, told = asked.sql(text), asked.explain(text)

    assert (0, 3) == (len(found), found.groups)
    assert {"sex": [], "n": [], "n error_bound": [], "n expected_error": []} == found.to_dict()
    assert "0 of 3 groups: HAVING by noisy numbers" in repr(found)
    assert told.bound_derived is None


def test_ends_of_having_ties_and_missing_numbers_are_those_of_sql():
    from onlineic.ask.sql_rows import Compared, Joined, Order, Rows, Unknown

    keys = np.array([[0.0], [1.0], [2.0], [math.nan]])
    values = np.array([[5.0, 1.0], [7.0, math.nan], [5.0, 3.0], [9.0, 1.0]])

    def shown(**given):
        return Rows(**given).chosen(keys, values).tolist()

    assert [0, 1, 2, 3] == shown()
    assert [[1, 3], [0, 1, 2, 3], [0, 2], [1, 3]] == [
        shown(having=Compared(1, operator, 5.0)) for operator in (">", ">=", "=", "<>")
    ]
    assert [0, 3] == shown(having=Compared(2, "<", 3.0))  # an unknown number is neither below ..
    assert [2] == shown(having=Compared(2, ">=", 3.0))  # .. nor not below
    assert [[1], [0, 2, 3]] == [shown(having=Unknown(2, negated)) for negated in (False, True)]
    both = (Compared(1, "=", 5.0), Compared(2, "=", 1.0))
    assert [[0], [0, 2, 3]] == [shown(having=Joined(every, both)) for every in (True, False)]
    assert [1, 0, 3, 2] == shown(order=(Order(2, False, True),))
    assert [2, 0, 3, 1] == shown(order=(Order(2, True, False),))
    assert [2, 0, 1, 3] == shown(order=(Order(1, False, False), Order(0, True, False)))
    assert [3, 0] == shown(order=(Order(0, False, True),), limit=2)
    assert [[2, 3], [1], []] == [shown(offset=2), shown(offset=1, limit=1), shown(limit=0)]
