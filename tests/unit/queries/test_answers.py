"""An answer is a number, or a table, that says what was asked, and refuses what its bound does not cover."""

import copy
import itertools
import json
import math
import pickle

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidParameterError
from onlineic.noise import SimulatedNoise
from onlineic.queries import Answer, Queries

N = 30_000
DOMAIN = ic.Domain.of({"sex": ["F", "M"], "income": ["<=50K", ">50K", "$5$"], "age": ic.optional(range(3))})
COUNTS = np.random.default_rng(5).multinomial(N, np.random.default_rng(6).dirichlet(np.full(24, 0.3)))
DATA = ic.PrivateData(COUNTS.reshape(DOMAIN.shape), DOMAIN)


def opened(**options):
    options = {"budget": ic.Budget(2.0, 1e-9), "noise": SimulatedNoise(3), **options}
    return ic.OnlineIC(DATA, options.pop("budget"), **options)


@pytest.fixture(scope="module")
def session():
    return opened()


@pytest.fixture(scope="module")
def number(session):
    return session.answer(ic.where(sex="F", age=ic.between(0, 1)))


@pytest.fixture(scope="module")
def table(session):
    return session.answer(ic.marginal("sex", "income"))


def test_an_answer_carries_its_question(session, number, table):
    assert "where(sex='F', age=between(0, 1))" == number.query.written
    assert "marginal('sex', 'income')" == table.query.written
    assert "BoundMarginal(marginal('sex', 'income'))" == repr(table.query)
    assert {"sex": ("F", "M"), "income": ("<=50K", ">50K", "$5$")} == table.labels
    assert {} == number.labels
    for answer in (number, table):
        again = session.answer(answer.query)

        assert "repeat" == again.status
        assert np.array_equal(answer.value, again.value)


def test_a_table_put_together_by_hand_is_bound_anew(session, table):
    import attrs

    forged = attrs.evolve(table.query, cells=np.full((2, 3), 10**6))

    assert np.array_equal(table.value, session.answer(forged).value)


def test_bounds_are_told_in_records_and_as_a_bracket(number, table):
    assert N == number.n
    assert N * number.error_bound == number.count_bound
    assert (number.value - number.error_bound, number.value + number.error_bound) == number.bracket
    low, high = table.bracket
    assert (low.shape, high.shape) == ((2, 3), (2, 3))
    assert ((low >= 0) & (high <= 1) & (low <= table.value) & (table.value <= high)).all()


@pytest.mark.parametrize(("value", "bound", "expected"), [
    (-0.01, 0.02, (0.0, 0.01)), (0.99, 0.05, (0.94, 1.0)), (0.5, math.inf, (0.0, 1.0)), (-0.3, 0.1, (0, 0)),
])  # fmt: skip
def test_a_bracket_lies_in_the_unit_interval(value, bound, expected):
    assert pytest.approx(expected) == Answer(value, 0.0, "hard", bound).bracket


def test_what_is_left_is_told_as_it_was():
    """After every answer what it says is what the statistics say then, and no later answer changes it."""
    plans = [
        {},
        {"budget": ic.Budget(2.0)},
        {"sparse": "laplace", "hard_answers": 3, "threshold": 0.01, "update": ic.MultiplicativeWeights()},
        {"sparse": "exponential", "hard_answers": 3, "threshold": 0.01, "release": "answer"},
        {"sparse": "gumbel", "hard_answers": 2, "threshold": 1e-3},
    ]
    for options in plans:
        session, told = opened(**options), []
        for age, sex, income in itertools.product(range(3), "FM", ["<=50K", ">50K"]):
            answer = session.answer(ic.where(age=age, sex=sex, income=income))
            told.append((answer, session.statistics().hard_left))
        if options.get("release") != "answer":
            told.append((session.answer(ic.marginal("sex", "age")), session.statistics().hard_left))

        assert [left for _, left in told] == [answer.left for answer, _ in told]
        assert "threshold" not in options or len({left for _, left in told}) > 1


def test_a_batch_tells_the_same_as_one_at_a_time():
    expressions = [ic.where(age=age, sex=sex) for age in range(3) for sex in "FM"] * 2
    options = {
        "sparse": "laplace",
        "hard_answers": 3,
        "threshold": 0.05,
        "update": ic.MultiplicativeWeights(),
    }
    one, many, columns = opened(**options), opened(**options), opened(**options)
    single = [one.answer(expression) for expression in expressions]
    assert len({answer.left for answer in single if not answer.hard}) > 1
    batch = Queries.where(DOMAIN, {"age": [0, 0, 1, 1, 2, 2] * 2, "sex": [0, 1] * 6})
    answers = columns.answer_many(batch)

    for found in (many.answer_many(expressions), [*answers], [answers[place] for place in range(12)]):
        assert single == found
        assert [answer.left for answer in single] == [answer.left for answer in found]
        assert [answer.query for answer in single] == [answer.query for answer in found]
        assert {N} == {answer.n for answer in found}
        assert {False} == {answer.private for answer in found}


def test_after_the_session_was_sealed_nothing_is_left(monkeypatch):
    session = opened()
    known = session.answer(ic.where(sex="F"))
    monkeypatch.setattr("onlineic.session.core.Core._test", lambda *_: 1 / 0)
    with pytest.raises(Exception, match="must not test"):
        session.answer(ic.where(sex="F", age=1))

    assert known.left > 0
    assert 0 == session.answer(ic.where(sex="F")).left == session.statistics().hard_left


def test_numbers_print_format_round_and_serialise(number):
    assert f"{number.value:.3f}" == f"{number:.3f}"
    assert repr(number) == f"{number}" == str(number)
    assert round(number.value, 3) == round(number, 3)
    assert number.value == float(number)
    told = json.loads(json.dumps(number.to_dict()))
    assert number.value == told["value"]
    assert "where(sex='F', age=between(0, 1))" == told["query"]
    assert (N, number.count, number.left, False) == (told["n"], told["count"], told["left"], told["private"])


def test_tables_print_their_numbers_with_labels(table):
    lines = str(table).splitlines()

    assert lines[0].startswith("sex x income: records of 30,000, each ± ")
    assert lines[0].endswith(", easy, NOT PRIVATE")
    assert ["sex", "\\", "income", "<=50K", ">50K", "$5$"] == lines[1].split()
    assert [["F"], ["M"]] == [line.split()[:1] for line in lines[2:]]
    assert f"{table.count[1, 2]:,.0f}" == lines[3].split()[-1]
    assert f"{table.value[1, 2]:.4f}" == f"{table:.4f}".splitlines()[2].split()[-1]
    assert "Answer(table of 2 x 3 cells" in repr(table)
    assert np.array_equal(np.round(table.value, 2), round(table, 2))
    told = json.loads(json.dumps(table.to_dict()))
    assert {"sex": ["F", "M"], "income": ["<=50K", ">50K", "$5$"]} == told["labels"]
    assert table.count.tolist() == told["count"]


def test_tables_of_one_and_three_attributes_have_a_line_a_cell(session):
    one, three = session.answer(ic.marginal("age")), session.answer(ic.marginal("age", "sex", "income"))

    assert ["0", "1", "2", "missing"] == [line.split()[0] for line in str(one).splitlines()[2:]]
    assert 2 + 24 == len(str(three).splitlines())


def test_large_tables_are_cut():
    wide = ic.Domain.of(a=100, b=90)
    session = ic.OnlineIC(ic.PrivateData(np.full(wide.shape, 10), wide), ic.Budget(1.0, 1e-9))
    text = str(session.answer(ic.marginal("a", "b")))

    assert len(text.splitlines()) == 2 + 25
    assert max(map(len, text.splitlines())) < 120
    assert 2 + 25 == len(str(session.answer(ic.marginal("a"))).splitlines())
    assert len(session.answer(ic.marginal("a", "b"))._repr_html_()) < 20_000
    assert len(session.answer(ic.marginal("a"))._repr_html_()) < 20_000


def test_an_infinite_bound_is_none_in_json():
    told = Answer(0.5, 50.0, "untested", math.inf, n=100).to_dict()

    assert (None, None, [0.0, 1.0]) == (told["error_bound"], told["count_bound"], told["bracket"])
    assert json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(
    "use",
    [
        lambda a: a - 1,
        lambda a: np.float64(2) + a,
        lambda a: np.ones(2) * a,
        lambda a: a + "1",
        lambda a: a // 2,
        lambda a: abs(a),
        lambda a: a < a,
        lambda a: max([a, a]),
        lambda a: sorted([a, a]),
        lambda a: a >= 0.2,
        lambda a: bool(a),
    ],
)
def test_what_has_two_readings_is_refused_with_a_remedy(number, table, use):
    for answer in (number, table):
        with pytest.raises(
            TypeError, match=r"; .*value|Answer .*answer\.value|: compare value|by group, got"
        ):
            use(answer)


@pytest.mark.parametrize(
    "use",
    [
        int,
        round,
        math.floor,
        math.ceil,
        math.trunc,
        "%d".__mod__,
        "{:.0f}".format,
        "{:,.0f}".format,
        "{:d}".format,
    ],
)
def test_no_whole_number_is_made_of_a_fraction(number, table, use):
    for answer in (number, table):
        with pytest.raises(InvalidParameterError, match=r"round\(answer\.count\)|answer\.count:\.0f"):
            use(answer)


def test_digits_of_the_fraction_are_kept(number):
    told = (f"{number:.3f}", "%.3f" % number, str(round(number, 3)))  # noqa: UP031

    assert told == (f"{number.value:.3f}",) * 3
    assert f"{number:.0%}" == f"{number.value:.0%}"


def test_a_table_is_no_number(table):
    with pytest.raises(TypeError, match=r"cell by cell.*answer\.value"):
        float(table)


def test_an_answer_outlives_its_session(number, table, session):
    batch = session.answer_many(Queries.where(DOMAIN, {"sex": [0, 1]}))
    for answer in (number, table, *batch):
        for other in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
            assert answer == other
            assert answer.to_dict() == other.to_dict()
            assert str(answer) == str(other)


def test_columns_of_a_table_and_of_a_number(session, number, table):
    columns = table.columns()

    said = ["value", "count", "low", "high", "error_bound", "expected_error", "status", "reason", "private"]
    assert ["sex", "income", *said] == [*columns]
    assert ["F"] * 3 + ["M"] * 3 == columns["sex"]
    assert table.count.ravel().tolist() == columns["count"]
    assert ["where(sex='F', age=between(0, 1))"] == number.columns()["query"]


def test_an_attribute_that_is_called_like_a_column_keeps_its_name():
    domain = ic.Domain.of(value=["a", "b"], status=2)
    session = ic.OnlineIC(ic.PrivateData(np.full((2, 2), 50), domain), ic.Budget(1.0, 1e-9))
    answer = session.answer(ic.marginal("value", "status"))
    columns = answer.columns()

    assert (["a", "a", "b", "b"], [0, 1, 0, 1]) == (columns["value"], columns["status"])
    assert {"hard"} == {answer.status} == {*columns["status_"]}
    assert 4 == len(columns["value_"])


def test_frames_of_pandas(session, table, number):
    pandas = pytest.importorskip("pandas")
    frame = table.to_pandas()

    assert ["F", "F", "F", "M", "M", "M"] == frame["sex"].tolist()
    assert table.count.ravel().tolist() == frame["count"].tolist()
    assert (1, N * number.value) == (len(number.to_pandas()), number.to_pandas()["count"][0])
    ages = session.answer(ic.marginal("age")).to_pandas()["age"].tolist()
    assert [0, 1, 2, None] == ages
    assert int is type(ages[0])
    batch = session.answer_many(Queries.where(DOMAIN, {"sex": [0, 1]})).to_pandas()
    assert isinstance(batch, pandas.DataFrame)
    told = ["value", "count", "status", "reason", "error_bound", "expected_error", "cost", "private"]
    assert told == [*batch.columns]
    assert 2 == len(batch)


def test_frames_of_polars(session, table, number):
    polars = pytest.importorskip("polars")
    frame = table.to_polars()

    assert table.count.ravel().tolist() == frame["count"].to_list()
    assert ["F", "F", "F", "M", "M", "M"] == frame["sex"].to_list()
    assert 1 == len(number.to_polars())
    assert [0, 1, 2, None] == session.answer(ic.marginal("age")).to_polars()["age"].to_list()
    batch = session.answer_many(Queries.where(DOMAIN, {"sex": [0, 1]})).to_polars()
    assert isinstance(batch, polars.DataFrame)
    assert (2, 8) == batch.shape


@pytest.mark.parametrize(("names", "kind", "title"), [
    (("sex",), None, "bars"), (("age",), "line", "line"), (("sex", "income"), None, "map"),
])  # fmt: skip
def test_tables_are_drawn_with_their_bounds(session, tmp_path, names, kind, title):
    pytest.importorskip("matplotlib")
    axes = session.answer(ic.marginal(*names)).plot(kind=kind)
    axes.figure.savefig(tmp_path / "figure.png")

    assert "(NOT PRIVATE)" in axes.get_title(loc="left")
    assert names[-1] == axes.get_xlabel()
    assert {"bars": 2, "line": 0, "map": 0}[title] == len(axes.patches)
    assert axes is session.answer(ic.marginal(*names)).plot(axes)


@pytest.mark.parametrize(("question", "kind"), [
    (ic.where(sex="F"), None), (ic.marginal("sex"), "map"), (ic.marginal("sex", "age"), "line"),
    (ic.marginal("sex", "age", "income"), None), (ic.marginal("sex"), "pie"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_refused(session, question, kind):
    with pytest.raises(InvalidParameterError, match="must be"):
        session.answer(question).plot(kind=kind)


def test_other_engines_say_what_was_asked():
    from onlineic.baselines import PerQueryNoise

    answer = PerQueryNoise(DATA, ic.Budget(1.0, 1e-9), answers=2, noise=SimulatedNoise(1)).answer(
        ic.where(sex="F")
    )

    assert ("where(sex='F')", N, None) == (answer.query.written, answer.n, answer.left)
    assert json.dumps(answer.to_dict())


def test_what_was_left_survives_a_restart(tmp_path):
    options = {
        "sparse": "laplace",
        "hard_answers": 3,
        "threshold": 0.01,
        "update": ic.MultiplicativeWeights(),
    }
    file = tmp_path / "ledger.db"
    with ic.OnlineIC(DATA, ic.Budget(2.0, 1e-9), ledger=file, table="t", **options) as session:
        for age in range(3):
            answer = session.answer(ic.where(age=age, sex="F"))
            assert session.statistics().hard_left == answer.left
    with ic.OnlineIC.resume(file, DATA) as session:
        for age in range(3):
            for sex in "FM":
                answer = session.answer(ic.where(age=age, sex=sex))
                assert session.statistics().hard_left == answer.left
