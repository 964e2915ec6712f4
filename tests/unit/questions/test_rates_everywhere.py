"""Rates, arithmetic and derived groups of every kind of session, beside the exact numbers."""

import numpy as np
import pytest

import onlineic as ic
from onlineic import at_least, below, where
from onlineic.errors import TooFewRecordsError
from onlineic.noise import SimulatedNoise
from onlineic.questions import AnswerTable, Groups

N = 20_000
DRAW = np.random.default_rng(1)
DOMAIN = ic.Domain.of(
    age=range(20, 60), sex=["F", "M"], smokes=ic.boolean(), day=ic.dates("2024-01-01", "2024-06-30")
)
ROWS = {
    "age": DRAW.integers(20, 60, N),
    "sex": DRAW.choice(["F", "M"], N),
    "day": np.datetime64("2024-01-01") + DRAW.integers(0, 182, N),
}
ROWS["smokes"] = DRAW.random(N) < 0.01 * ROWS["age"]
PERSON = DRAW.permutation(np.arange(N) // 4)  # four rows each
ALL = np.ones(N, np.bool_)
WOMEN, YOUNG, SMOKES = ROWS["sex"] == "F", ROWS["age"] < 40, ROWS["smokes"]
MONTH = ROWS["day"].astype("M8[M]").astype(int) % 12 + 1
QUARTER = (MONTH + 2) // 3


def mean(values, held):
    return values[held].mean()


# what is asked, and what is exact
CALLS = {
    "rate": (lambda s: s.share("smokes"), [mean(SMOKES, ALL)]),
    "rate by group": (lambda s: s.share("smokes", by="sex"), [mean(SMOKES, WOMEN), mean(SMOKES, ~WOMEN)]),
    "rate by quarter": (
        lambda s: s.share("smokes", where(age=below(40)), by=ic.extract("day", "quarter")),
        [mean(SMOKES, YOUNG & (QUARTER == quarter)) for quarter in (1, 2)],
    ),
    "difference": (
        lambda s: s.share("smokes", where(age=at_least(40))) - s.share("smokes", where(age=below(40))),
        [mean(SMOKES, ~YOUNG) - mean(SMOKES, YOUNG)],
    ),
    "ratio": (
        lambda s: s.answer(where(sex="F", age=below(40))) / s.answer(where(sex="F")),
        [mean(YOUNG, WOMEN)],
    ),
    "months": (
        lambda s: s.group_by(ic.date_trunc("day", "month")),
        [(MONTH == month).sum() for month in range(1, 7)],
    ),
    "cuts": (
        lambda s: s.group_by(ic.cut("age", [30, 50]), where(smokes=True)),
        [
            (SMOKES & (ROWS["age"] >= low) & (ROWS["age"] < low + width)).sum()
            for low, width in ((20, 10), (30, 20), (50, 10))
        ],
    ),
    "per cent": (
        lambda s: s.sql("SELECT sex, 100 * COUNT(*) / SUM(COUNT(*)) OVER () FROM t GROUP BY sex"),
        [100 * WOMEN.mean(), 100 * (~WOMEN).mean()],
    ),
    "gap": (
        lambda s: s.sql("SELECT AVG(age) FILTER (WHERE smokes) - AVG(age) FILTER (WHERE NOT smokes) FROM t"),
        [mean(ROWS["age"], SMOKES) - mean(ROWS["age"], ~SMOKES)],
    ),
}


def numbers(found):
    """What was told: numbers, half-widths, usual errors, and what bins put off."""
    if isinstance(found, AnswerTable):
        return found.values.ravel(), found.error_bounds.ravel(), found.expected_errors.ravel(), 0.0
    if isinstance(found, Groups):
        return found.values.ravel(), found.error_bounds.ravel(), found.expected_errors.ravel(), found.bias
    expected = np.nan if found.expected_error is None else found.expected_error
    return tuple(map(np.atleast_1d, (found.value, found.error_bound, expected, found.bias)))


KINDS = {
    "default": ({}, {}),
    "pure": ({}, {"budget": ic.Budget(1.0)}),
    "persons": ({"unit": ic.Unit("id")}, {}),
    "private n": ({"neighbours": "add-remove", "n_at_most": 100_000}, {}),
    "few questions": ({}, {"questions": 12}),
    "sets announced": ({}, {"questions": [("sex", "smokes", "age"), ("smokes", "day")]}),
    "measured answers": ({}, {"hard_answers": 40}),
}


@pytest.fixture(scope="module", params=KINDS)
def session(request):
    of_table, of_session = KINDS[request.param]
    rows = {**ROWS, "id": PERSON} if "unit" in of_table else ROWS
    data = ic.PrivateData.from_records(rows, DOMAIN, **of_table)
    options = {"budget": ic.Budget(1.0, 1e-6), **of_session}
    return ic.OnlineIC(data, options.pop("budget"), noise=SimulatedNoise(4), **options)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_told_holds_of_any_session(session, name):
    ask, exact = CALLS[name]
    if name in ("per cent", "gap"):
        pytest.importorskip("sqlglot")

    values, bounds, expected, bias = numbers(ask(session))
    if name in ("months", "cuts"):  # of persons each row is a part of one
        exact = np.array(exact) * (session.n / N)

    assert (np.abs(values - exact) <= bounds + bias).all()
    assert (np.abs(values - exact) <= 5 * expected + bias).all()


def test_the_price_is_told_before(session):
    told = session.explain(lambda one: one.share("smokes", where(age=below(33)), by="sex"))
    spent = session.statistics().spent

    assert told.answers in (1, 2, 4)
    assert spent == session.statistics().spent
    session.share("smokes", where(age=below(33)), by="sex")
    assert session.explain(lambda one: one.share("smokes", where(age=below(33)), by="sex")).free


def test_a_certified_session_answers_or_refuses_by_name():
    pytest.importorskip("sqlglot")
    data = ic.PrivateData.from_records(ROWS, DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), certify=0.2, noise=SimulatedNoise(1))
    refused = 0

    for ask, exact in CALLS.values():
        try:
            values, bounds, _, bias = numbers(ask(session))
        except TooFewRecordsError:  # it is sure of little
            refused += 1
        else:
            told = np.isfinite(values)
            assert (np.abs(values - exact)[told] <= (bounds + bias)[told]).all()
    assert refused < len(CALLS)


@pytest.fixture(scope="module")
def periods():
    """Six months: the same rows, a table a month."""
    domain = ic.Domain.of(age=range(20, 60), sex=["F", "M"], smokes=ic.boolean())
    budget = ic.Budget(1.0, 1e-6)
    with ic.Periods(None, domain, budget, levels=("month", "quarter"), noise=SimulatedNoise(2)) as held:
        for month in range(1, 7):
            inside = {name: ROWS[name][month == MONTH] for name in ("age", "sex", "smokes")}
            held.add(f"2024-{month:02}", ic.PrivateData.from_records(inside, domain))
            if month % 3 == 0:
                held.close(f"2024-Q{month // 3}")
        yield held


OVER = {
    "rate": (lambda s: s.share("smokes"), [mean(SMOKES, ALL)]),
    "rate by month": (
        lambda s: s.share("smokes", by="month"),
        [mean(SMOKES, month == MONTH) for month in range(1, 7)],
    ),
    "change": (
        lambda s: (by := s.share("smokes", by="month"))["2024-06"] - by["2024-01"],
        [mean(SMOKES, MONTH == 6) - mean(SMOKES, MONTH == 1)],
    ),
    "quarters": (
        lambda s: s.group_by([ic.date_trunc("month", "quarter"), "sex"]),
        [((quarter == QUARTER) & held).sum() for quarter in (1, 2) for held in (WOMEN, ~WOMEN)],
    ),
    "series": (lambda s: s.series("month"), [(month == MONTH).sum() for month in range(1, 7)]),
    "statement": (
        lambda s: s.sql("SELECT EXTRACT(QUARTER FROM month) AS q, AVG(smokes) FROM t GROUP BY q"),
        [mean(SMOKES, quarter == QUARTER) for quarter in (1, 2)],
    ),
}


@pytest.mark.parametrize("name", OVER)
def test_what_is_told_holds_over_periods(periods, name):
    ask, exact = OVER[name]
    if name == "statement":
        pytest.importorskip("sqlglot")

    values, bounds, expected, bias = numbers(ask(periods.over()))

    assert (np.abs(values - exact) <= bounds + bias + 1e-9).all()
    assert (np.abs(values - exact) <= 5 * expected + bias + 1e-9).all()


def test_two_periods_are_compared(periods):
    first, last = (periods.over(f"2024-{month:02}").share("smokes") for month in (1, 6))
    change = last - first
    exact = mean(SMOKES, MONTH == 6) - mean(SMOKES, MONTH == 1)

    assert abs(change.value - exact) <= change.error_bound
    assert change.expected_error == pytest.approx(np.hypot(first.expected_error, last.expected_error))
    assert 0.85 <= change.confidence < 1.0
