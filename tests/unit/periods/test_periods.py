"""A table that grows: labels, blocks, nodes, ranges, bounds, and its files."""

import functools
import itertools
import json
import math
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlineic as ic
from onlineic.accounting import REPLACE_ONE, ReplaceRows
from onlineic.audit import verified
from onlineic.cli import main
from onlineic.errors import (
    BudgetsAddWarning,
    InvalidDataError,
    InvalidDomainError,
    InvalidInputError,
    InvalidParameterError,
    LedgerCorruptError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerRollbackError,
    SessionStateError,
)
from onlineic.evaluate import exact_values, random_stream
from onlineic.ledger import BlockBegun, MemoryLedger, NodeOpened, Noted, SqliteLedger, read
from onlineic.noise import SimulatedNoise
from onlineic.periods import BlockPurchases, Calendar, Periods, Persons, book_of, pooled, range_nats
from onlineic.periods import periods as module
from onlineic.periods.conditions import inside
from support.events import FOR_EVER
from support.noise import Silent
from support.sessions import listens_first, plan_once

pytestmark = [
    pytest.mark.filterwarnings("ignore::onlineic.errors.WideBoundWarning"),
    pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning"),
]
DOMAIN = ic.Domain.of(age=5, sex=["F", "M"], city=4)
BUDGET = ic.Budget(1.0, 1e-9)
QUARTER = {"levels": ("month", "quarter"), "max_queries": 100}
LABELS = ("2026-01", "2026-02", "2026-03")


def counts_of(seed, n=3_000):
    draw = np.random.default_rng(seed)
    return draw.multinomial(n, draw.dirichlet(np.full(DOMAIN.size, 0.5)))


COUNTS = {label: counts_of(seed) for seed, label in enumerate(LABELS)}


def data_of(label):
    return ic.PrivateData(COUNTS[label], DOMAIN)


def true(label, query):
    """Number of records of a block that meet a condition."""
    weights = query.bind(DOMAIN)
    return weights.total(_Tables(COUNTS[label]), int(COUNTS[label].sum()))


class _Tables:
    """Counts as what a query adds up: by brute force."""

    def __init__(self, counts):
        self.cells = counts.reshape(DOMAIN.shape)

    def box(self, axes, low, high):
        parts = [slice(None)] * 3
        for axis, first, last in zip(axes, low, high, strict=True):
            parts[axis] = slice(first, last)
        return int(self.cells[tuple(parts)].sum())


def grown(noise=None, months=LABELS, **options):
    held = Periods(None, DOMAIN, BUDGET, noise=noise or Silent(), **{**QUARTER, **options})
    for label in months:
        held.add(label, data_of(label))
    return held


@pytest.fixture(scope="module")
def three():
    """Three months that nobody asks or changes."""
    return grown()


# -- what it is --


def test_what_is_protected_is_said_wherever_the_session_is_shown(three):
    shown = repr(three)

    assert "protects one record within its month; does not protect in which month a record lies" in shown
    assert three.said in shown
    assert "NOT PRIVATE" in shown


def test_periods_are_on_the_face_and_cannot_be_copied():
    assert ic.Periods is Periods
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(grown(months=()))


# -- growing --


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda held: held.add("2026-02", data_of("2026-02")), "label must be that of a new month"),
        (lambda held: held.add("2026-05", data_of("2026-03")), "next month, '2026-04'"),
        (lambda held: held.add("2025-12", data_of("2026-03")), "next month, '2026-04'"),
        (lambda held: held.add("2026-Q2", data_of("2026-03")), "that of a month, the finest level"),
        (lambda held: held.add("2026-04-01", data_of("2026-03")), "label must name a month"),
        (lambda held: held.add(4, data_of("2026-03")), "label must name a month"),
        (lambda held: held.add("2026-04", 3), "data must be a PrivateData"),
        (lambda held: held.add("2026-04", data_of("2026-03"), late=1), "late must be"),
        (lambda held: held.add("2026-04", ic.PrivateData(np.ones(4, int), ic.Domain.of(a=4))), "the domain"),
        (lambda held: held.close("2026"), "label must name a month"),
        (lambda held: held.close("2026-01"), "a coarser period than a month"),
        (lambda held: held.close("2026-Q2"), "got none of 2026-04"),
        (lambda held: held.close("2025-Q4"), "got none of 2025-10"),
        (lambda held: held["2026-Q1"], "see nodes, or open it by add or close"),
        (lambda held: held.over("2026-02", "2026-01"), "since must not come after until"),
        (lambda held: held.over("2025-12"), "since must lie in what was added, 2026-01 to 2026-03"),
        (lambda held: held.over(until="2026-Q2"), "until must lie in"),
        (lambda held: held.over("January"), "label must name a month"),
        (lambda held: held.attach("2026-01", data_of("2026-01")), "a block whose table is not at hand"),
    ],
)
def test_bad_input_is_refused_by_name_and_changes_nothing(act, match, three):
    before = three.book

    with pytest.raises(InvalidParameterError, match=match):
        act(three)

    assert before is three.book


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"levels": ()}, "levels must be some of"),
        ({"levels": ("year", "month")}, "finest first"),
        ({"levels": ("month", "week")}, "levels must be some of"),
        ({"shares": (0.5,)}, "shares must be one for each of 2 levels"),
        ({"shares": (0.7, 0.7)}, "at most 1 together"),
        ({"shares": (1.0, 1e-9)}, "shares must"),
        ({"beta": 0.0}, "beta must"),
        ({"budget": ic.TableBudget(BUDGET).share(0.5)}, "budget must be a Budget without an order"),
        ({"table": "t"}, "table and receipt must be None without a root ledger"),
        ({"noise": 3}, "noise must"),
        ({"path": "x.db", "noise": Silent()}, "path must be None with simulated noise"),
    ],
)
def test_bad_settings_are_refused_by_name(options, match):
    given = {"path": None, "budget": BUDGET, **options}

    with pytest.raises(InvalidParameterError, match=match):
        Periods(given.pop("path"), DOMAIN, given.pop("budget"), **given)


def test_tables_of_persons_are_refused():
    records = {"id": [1, 1, 2], "age": [0, 1, 2], "sex": ["F", "F", "M"], "city": [0, 0, 3]}
    data = ic.PrivateData.from_records(records, DOMAIN, unit=ic.Unit("id"))

    with pytest.raises(InvalidParameterError, match="parts of persons, who could have rows in several"):
        grown(months=()).add("2026-01", data)
    with pytest.raises(InvalidParameterError, match="parts of persons, who could have rows in several"):
        grown(months=(), persons=Persons(periods=2)).add("2026-01", data)


def test_a_private_number_of_records_is_refused_where_periods_have_public_ones():
    data = ic.PrivateData(COUNTS[LABELS[0]], DOMAIN, neighbours="add-remove")

    with pytest.raises(
        InvalidParameterError, match="must be of the neighbours of the periods, loaded with no"
    ):
        grown(months=()).add("2026-01", data)


# -- persons with rows in several periods --


@pytest.mark.parametrize(
    ("persons", "rows", "said"),
    [
        (Persons(periods=2), 2, "at most one in a month, in at most 2 months"),
        (Persons(within=6), 6, "at most one in a month, in 6 consecutive months"),
        (
            Persons(periods=2, within=6),
            2,
            "at most one in a month, in at most 2 months and within 6 consecutive months",
        ),
        (Persons(within=1), 1, "at most one in a month, in one month"),
    ],
)
def test_who_has_rows_in_several_months_is_said(persons, rows, said):
    held = grown(months=LABELS[:1], persons=persons)

    assert (rows, persons) == (persons.rows, held.persons)
    assert f"protects all rows of a person who has {said}" in repr(held)
    assert "does not protect in which months these lie" in held.said
    assert "each person over all months epsilon=1" in repr(held)
    with pytest.raises(InvalidParameterError, match="periods or within must be given"):
        Persons()
    with pytest.raises(InvalidParameterError, match="within must be"):
        Persons(within=0)
    with pytest.raises(InvalidParameterError, match="persons must be"):
        Periods(None, DOMAIN, BUDGET, persons=3, noise=Silent())


@pytest.mark.parametrize("budget", [BUDGET, ic.Budget(1.0)])
def test_a_session_is_priced_at_the_rows_that_it_can_hold_of_a_person(budget):
    """What all sessions that hold a person can spend on their rows is one capacity at most."""
    held = Periods(None, DOMAIN, budget, persons=Persons(periods=2), noise=Silent(), **QUARTER)
    for label in LABELS:
        held.add(label, data_of(label))
    held.close("2026-Q1")
    whole = held.book.account.whole.capacity
    spent = {label: held[label].account.capacity for label in held.nodes}
    rows = {label: held[label].plan.sparse.neighbours for label in held.nodes}

    assert {REPLACE_ONE} == {rows[label] for label in LABELS}
    assert ReplaceRows(2) == rows["2026-Q1"]
    assert {ReplaceRows(2)} == {
        held[one].plan.first_tables.neighbours for one in held.nodes if one not in LABELS
    }
    assert 0.99 < float((spent[LABELS[0]] + spent[LABELS[1]] + spent["2026-Q1"]) / whole) <= 1
    assert 0.24 < float(spent[LABELS[0]] / whole) <= 0.25
    assert 0.49 < float(spent["2026-Q1"] / whole) <= 0.5
    alone = Periods(None, DOMAIN, budget, noise=Silent(), **QUARTER)
    tables = [one.add(LABELS[0], data_of(LABELS[0])).plan.first_tables for one in (alone, held_anew(budget))]
    wider = np.mean([float(b / a) for a, b in zip(*(one.scales for one in tables), strict=True)])
    assert 1.99 < wider < 2.01 if budget.pure else 1.4 < wider < 2.0


def held_anew(budget):
    return Periods(None, DOMAIN, budget, persons=Persons(periods=2), noise=Silent(), **QUARTER)


def test_a_year_of_persons_is_worth_no_more_than_its_months_where_they_are_in_all_of_them():
    everywhere, twice = (grown(persons=Persons(periods=rows)) for rows in (3, 2))

    for held in (everywhere, twice):
        held.close("2026-Q1")

    variances = [[held.book.variance(label) for label in held.nodes] for held in (everywhere, twice)]
    assert Fraction(18) == sum(variances[0][:3]) == variances[0][3]
    assert (Fraction(12), Fraction(8)) == (sum(variances[1][:3]), variances[1][3])
    assert ("month",) == Periods(
        None, DOMAIN, BUDGET, persons=Persons(within=2), noise=Silent()
    ).book.calendar.levels


def test_one_row_of_each_person_counts_in_a_month_and_all_goes_on_from_its_files(tmp_path):
    rows = {"id": [1, 1, 2, 3], "age": [0, 1, 2, 2], "sex": ["F", "F", "M", "M"], "city": [0, 1, 3, 3]}
    rows["on"] = ["2026-01-05", "2026-01-09", "2026-01-28", "2026-01-02"]
    who = ic.Unit("id", units=1)

    def load(label):
        dated = {**rows, "on": [f"{label}-{day[-2:]}" for day in rows["on"]]}
        return ic.PrivateData.from_records(
            dated, ic.Domain.of({"on": ic.dates(label, label, by="month"), **dict(DOMAIN)}), unit=who
        )

    def again(**options):
        return opened(
            tmp_path, budget=ic.Budget(20.0, 1e-2), load=load, persons=Persons(periods=2), **options
        )

    with again() as held:
        for label in LABELS[:2]:
            held.add(label, load(label))
        held.add(LABELS[2], None)
        held.close("2026-Q1")
        assert {**dict.fromkeys(LABELS[:2], 3), LABELS[2]: 0} == dict(held.blocks)
    with Periods.resume(tmp_path / "t.db", load=load) as held:
        assert Persons(periods=2) == held.persons
        assert ReplaceRows(2) == held["2026-Q1"].plan.sparse.neighbours
        assert 6 == held["2026-Q1"].n
    for other in (None, Persons(periods=3)):
        with pytest.raises(LedgerMismatchError, match="persons must be"):
            opened(tmp_path, budget=ic.Budget(20.0, 1e-2), load=load, persons=other)
    _, book = book_of(read(tmp_path / "t.db"))
    assert 2 == book.account.rows
    assert all(() == verified(read(node_file(tmp_path, label))).problems for label in book.nodes)


def test_a_table_that_something_else_spends_on_is_refused():
    held, used = grown(months=()), data_of("2026-02")
    ic.OnlineIC(used, ic.Budget(0.1, 1e-9))
    january = data_of("2026-01")
    held.add("2026-01", january)

    for data in (used, january, january.projected(*DOMAIN.names)):  # records of two months move twice as far
        with pytest.raises(InvalidParameterError, match="a table that nothing else spends on"):
            held.add("2026-02", data)


def test_one_root_pays_for_all_periods_and_what_else_is_spent_on_their_records_warns(tmp_path):
    tables = {label: data_of(label) for label in LABELS}
    with opened(tmp_path) as held:
        for label, data in tables.items():
            held.add(label, data)
        held.close("2026-Q1")
    assert {2} == {len(data.budgets) for data in tables.values()}  # of the month and of the quarter
    with pytest.warns(BudgetsAddWarning, match="both together cost"):
        tables["2026-01"].spend(BUDGET)

    tables = {label: data_of(label) for label in LABELS}
    with opened(tmp_path, load=tables.__getitem__) as held:
        for label in ("2026-Q1", *LABELS):
            held[label].answer(ic.where(age=1))
        with pytest.warns(BudgetsAddWarning, match="both together cost"):
            ic.PrivateData.union(list(tables.values())).spend(BUDGET)


def test_a_book_is_read_in_as_many_steps_as_it_has_records(monkeypatch):
    book, copied, evolve = grown(months=LABELS[:1]).book, [], attrs.evolve
    records = [Noted(f"{node:02x}", 1 + time, b"") for time in range(20) for node in range(50)]
    one_by_one = functools.reduce(type(book).after, records, book)

    def spied(record, **changes):
        copied.append(len(changes.get("known", ())))
        return evolve(record, **changes)

    monkeypatch.setattr(attrs, "evolve", spied)
    whole = book.after_all(records)

    assert one_by_one == whole
    assert {one.file: one for one in records[-50:]} == whole.known
    assert sum(copied) <= 50  # entries; a copy for each record would be some 50,000


def test_a_month_without_records_is_there_and_costs_nothing():
    held = grown(months=LABELS[:2])

    assert held.add("2026-03", None) is None
    held.close("2026-Q1")

    assert ("2026-01", "2026-02") == held.book.nodes["2026-Q1"].blocks
    nobody = ic.where(age=ic.below(2), month="2026-03")
    assert 0.0 == held.over("2026-02", "2026-03").answer(nobody).count
    assert ("2026-02",) == held.over("2026-02", "2026-03").nodes
    with pytest.raises(InvalidParameterError, match="must have records to be asked"):
        held.over("2026-03")


@pytest.mark.parametrize("rows", [1, 10])
@pytest.mark.parametrize("persons", [None, Persons(periods=100)])
def test_a_period_of_a_few_rows_is_answered_within_its_bound(rows, persons):
    held = Periods(None, DOMAIN, BUDGET, levels=("month",), persons=persons, noise=Silent(), max_queries=10)
    held.add("2026-01", ic.PrivateData(counts_of(1, rows), DOMAIN))

    answer = held.over().answer(ic.where(age=1))

    truth = counts_of(1, rows).reshape(DOMAIN.shape)[1].sum()
    assert abs(answer.count - truth) <= answer.count_bound


def test_a_quarter_of_which_one_month_has_records_is_that_month_and_a_gap_is_nobody():
    held = grown(months=())
    held.add("2026-01", None)
    held.add("2026-02", data_of("2026-02"))
    held.add("2026-03", None)
    held.close("2026-Q1")

    assert [0.0, 3_000.0, 0.0] == held.group_by("month").values.tolist()
    assert (
        abs(
            held.over("2026-01", "2026-02").answer(ic.where(sex="F")).count
            - true("2026-02", ic.where(sex="F"))
        )
        < 60
    )
    empty = ic.where(month=ic.one_of("2026-01", "2026-03"), age=1)
    assert 0.0 == held.answer(empty).count
    held.add("2026-04", data_of("2026-01"), late=True)  # a closed quarter takes no more, the next month does
    assert (6_000, True) == (held.over("2026-Q1").n, held.book.blocks["2026-04"].late)


def test_late_rows_go_into_the_open_period_and_are_said():
    held = grown(months=LABELS[:1])

    held.add("2026-02", data_of("2026-02"), late=True)

    assert BlockBegun("2026-02", 3_000, True) == held.book.blocks["2026-02"]


# -- the account --


def test_a_block_pays_for_its_month_and_its_quarter_and_for_nothing_more():
    held = grown()
    held.close("2026-Q1")

    lefts = [held.book.account.left(label) for label in LABELS]
    assert all(0 <= left < Fraction(1, 10**6) for left in lefts)
    assert {node.charge.amount for node in held.book.nodes.values()} == {
        held[label].account.capacity for label in held.nodes
    }
    with pytest.raises(InvalidParameterError, match="label must be that of a quarter that is not open"):
        held.close("2026-Q1")


def test_without_delta_epsilons_add():
    held = Periods(None, DOMAIN, ic.Budget(1.0), noise=Silent(), **QUARTER)
    for label in LABELS:
        held.add(label, data_of(label))
    held.close("2026-Q1")

    assert Fraction(1) == held.book.account.whole.capacity
    assert {Fraction(1, 2)} == {node.charge.amount for node in held.book.nodes.values()}
    assert held.over("2026-01", "2026-02").answer(ic.where(sex="F")).error_bound < 1


def test_tables_pool_by_their_records():
    held = grown()
    parts = []
    for label in LABELS[:2]:
        held[label].answer(ic.where(age=1))
        session = held[label]
        parts.append(BlockPurchases.of(held.blocks[label], session.transcript, session.plan))

    tables = pooled(parts)

    assert len(parts[0].tables) == len(tables) > 0
    for at, one in enumerate(tables):
        np.testing.assert_allclose(one.values, (parts[0].tables[at].values + parts[1].tables[at].values) / 2)
        assert one.scale == pytest.approx(parts[0].tables[at].scale / 2**0.5)


# -- ranges --


def test_a_range_goes_to_the_cover_of_least_variance():
    held = grown()
    assert LABELS == held.over().nodes

    held.close("2026-Q1")

    assert ("2026-Q1",) == held.over().nodes
    assert ("2026-Q1",) == held.over("2026-Q1", "2026-Q1").nodes
    assert ("2026-01", "2026-02") == held.over(until="2026-02").nodes


def test_a_coarse_level_of_a_small_share_is_no_better_than_its_months():
    held = grown(shares=(0.8, 0.2))
    held.close("2026-Q1")

    assert LABELS == held.over().nodes


def test_counts_of_a_range_add():
    held, query = grown(), ic.where(age=ic.between(1, 3), sex="F")

    for since, until in (("2026-01", "2026-03"), ("2026-02", "2026-03"), ("2026-03", "2026-03")):
        labels = LABELS[LABELS.index(since) : LABELS.index(until) + 1]
        answer = held.answer(query, since, until)
        assert sum(true(label, query) for label in labels) == pytest.approx(answer.count, abs=60)
        assert sum(COUNTS[label].sum() for label in labels) == answer.n


def test_conditions_may_name_the_period():
    held, age = grown(), ic.where(age=ic.between(1, 3))
    january, march = (true(label, age) for label in (LABELS[0], LABELS[2]))
    n = 3_000

    assert january + march == pytest.approx(
        held.answer(age & (ic.where(month="2026-01") | ic.where(month="2026-03"))).count, abs=60
    )
    assert n + march == pytest.approx(
        held.answer(ic.where(month="2026-01") | (age & ic.where(month="2026-03"))).count, abs=60
    )
    assert 2 * n == held.answer(~ic.where(month="2026-02")).count
    assert 0.0 == held.answer(~ic.where(month="2026-02")).error_bound
    assert march == pytest.approx(held.answer({"age": [1, 3], "month": "2026-03"}).count, abs=60)
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    assert march == pytest.approx(held.answer("age BETWEEN 1 AND 3 AND month > '2026-02'").count, abs=60)


def test_groups_by_the_period_are_a_time_series():
    held = grown()

    series = held.group_by("month", ic.where(sex="F"))

    assert (LABELS,) == series.labels
    expected = [true(label, ic.where(sex="F")) for label in LABELS]
    np.testing.assert_allclose(series.values, expected, atol=60)
    assert [3_000.0] * 3 == held.group_by("month").values.tolist()
    assert 0.0 == held.group_by("month").error_bounds.max()
    both = held.group_by(["sex", "month"])
    assert (2, 3) == both.values.shape
    np.testing.assert_allclose(both.values[0], expected, atol=60)
    pytest.importorskip("matplotlib")
    assert "month" == series.plot(kind="line").get_xlabel()


def test_statements_means_and_quantiles_are_asked_of_a_range():
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    held = grown()
    rows = held.sql("SELECT month, COUNT(*) AS n FROM t WHERE sex = 'F' GROUP BY month")
    np.testing.assert_allclose(
        rows.to_dict()["n"], [true(label, ic.where(sex="F")) for label in LABELS], atol=60
    )
    last = held.sql(
        "SELECT month, COUNT(*) AS n FROM t WHERE sex = 'F' GROUP BY month ORDER BY 1 DESC LIMIT 2"
    )
    assert rows.labels[:-3:-1] == last.labels
    cells = sum(COUNTS.values()).reshape(DOMAIN.shape)
    mean = (cells.sum(axis=(1, 2)) * np.arange(5)).sum() / cells.sum()
    assert mean == pytest.approx(held.over().mean("age").value, abs=0.1)
    of_year = (np.cumsum(cells.sum(axis=(1, 2))) / cells.sum()).tolist()
    assert np.searchsorted(of_year, 0.5) == held.over().median("age").value


def test_synthetic_rows_come_with_their_period_and_spend_nothing():
    held = grown()
    over = held.over("2026-01", "2026-02")
    with pytest.raises(SessionStateError, match="the session of 2026-01 must have released something"):
        over.synthetic(10)
    assert 0 == sum(len(held[label].transcript) for label in LABELS)
    for label in LABELS[:2]:
        held[label].answer(ic.where(age=1))
    before = [held[label].account for label in LABELS]

    made = over.synthetic(1_001, seed=3)

    assert before == [held[label].account for label in LABELS]
    assert (1_001, 3, False) == (len(made), made.seed, made.private)
    assert "NOT PRIVATE" in repr(made)
    assert ["month", *DOMAIN.names, "synthetic"] == list(made.to_dict())
    assert 500 <= made.columns["month"].count("2026-01") <= 501
    halves = [
        [made.columns["age"][at] for at in range(1_001) if made.columns["month"][at] == label]
        for label in LABELS[:2]
    ]
    cells = [COUNTS[label].reshape(DOMAIN.shape).sum(axis=(1, 2)) / 3_000 for label in LABELS[:2]]
    for ages, expected in zip(halves, cells, strict=True):
        np.testing.assert_allclose(np.bincount(ages, minlength=5) / len(ages), expected, atol=0.1)
    assert made.columns == over.synthetic(1_001, seed=3).columns
    assert ["2026-01"] == over.synthetic(1).columns["month"] or ["2026-02"] == over.synthetic(1).columns[
        "month"
    ]
    with pytest.raises(InvalidParameterError, match="rows must be"):
        over.synthetic(0)


@pytest.mark.parametrize(
    ("question", "match"),
    [
        (ic.where(month="2027-01"), "month"),
        (ic.where(height=3), "height"),
        (ic.where(month=ic.weights([0.5, 1.0, 1.0])), "a period that counts or does not"),
        (ic.dense(np.full((3, *DOMAIN.shape), 0.5)), "weights must be over the attributes of one period"),
        ("nothing", "nothing"),
    ],
)
def test_questions_that_do_not_fit_are_refused_before_anything_is_asked(question, match, three):
    if isinstance(question, str):
        pytest.importorskip("sqlglot", reason="needs the extra sql")
    with pytest.raises(InvalidInputError, match=match):
        three.over().answer_many([ic.where(age=1), question])

    assert 0 == sum(three[label].statistics().asked for label in three.nodes)


def test_an_attribute_that_is_called_as_the_period_is_refused():
    with pytest.raises(InvalidParameterError, match="domain must have no attribute 'month'"):
        Periods(None, ic.Domain.of(month=3), BUDGET, noise=Silent(), **QUARTER)


PARTS = st.recursive(
    st.one_of(
        st.builds(lambda codes: ic.where(month=ic.one_of(*[LABELS[c] for c in codes])), st.sets(
            st.integers(0, 2), min_size=1)),
        st.builds(lambda low, width: ic.where(age=ic.between(low, min(low + width, 4))), st.integers(0, 4),
                  st.integers(0, 3)),
        st.builds(lambda sex, label: ic.where(sex=sex, month=label), st.sampled_from("FM"),
                  st.sampled_from(LABELS)),
    ),
    lambda inner: st.one_of(
        st.builds(lambda one: ~one, inner),
        st.builds(lambda one, other: one & other, inner, inner),
        st.builds(lambda one, other: one | other, inner, inner),
    ),
    max_leaves=5,
)  # fmt: skip


@given(PARTS)
def test_what_is_asked_inside_a_period_is_the_question_at_that_period(expression):
    kind = ic.dates(LABELS[0], LABELS[-1], by="month")
    wide = ic.Domain.of({"month": kind, **dict(DOMAIN)})
    query = expression.bind(wide)
    found = np.ones(wide.shape)
    for factor in query.factors:
        shape = [size if axis in factor.axes else 1 for axis, size in enumerate(wide.shape)]
        found = found * factor.weights(wide).reshape(shape)
    if query.constant is not None:
        found = np.full(wide.shape, float(query.constant))
    elif query.complement:
        found = 1 - found

    for code in range(3):
        part = inside(expression, "month", kind, code)
        if isinstance(part, bool):
            assert (found[code] == part).all()
            continue
        own = part.bind(DOMAIN)
        weights = np.ones(DOMAIN.shape)
        for factor in own.factors:
            shape = [size if axis in factor.axes else 1 for axis, size in enumerate(DOMAIN.shape)]
            weights = weights * factor.weights(DOMAIN).reshape(shape)
        weights = np.full(DOMAIN.shape, own.constant) if own.constant is not None else weights
        np.testing.assert_array_equal(found[code], 1 - weights if own.complement else weights)


# -- bounds --


def test_bounds_over_ranges_hold(monkeypatch):
    listens_first(monkeypatch)
    held = grown(SimulatedNoise(5))
    held.close("2026-Q1")
    queries = [ic.where(age=age, sex=sex) for age in range(5) for sex in "FM"]
    queries += [ic.where(city=city, age=ic.between(low, 4)) for city in range(4) for low in range(1, 4)]

    for since, until in (("2026-01", "2026-02"), ("2026-02", "2026-03"), ("2026-01", "2026-03")):
        labels = LABELS[LABELS.index(since) : LABELS.index(until) + 1]
        one = held.over(since, until)
        answers = one.answer_many(queries)
        jointly = one.joint_bounds(queries, answers)
        for query, answer, joint in zip(queries, answers, jointly, strict=True):
            truth = sum(true(label, query) for label in labels) / one.n
            assert abs(float(answer) - truth) <= min(answer.error_bound, joint)
        assert 0.05 == one.beta


def test_bounds_at_once_ask_nothing():
    held = grown(SimulatedNoise(5))
    one, constant = held.over(), ic.where(age=ic.between(0, 4))
    answer = one.answer(ic.where(age=2))
    every = one.answer(constant)
    counted = [held[label].statistics().asked for label in LABELS]

    assert (one.joint_bounds([ic.where(age=2), constant], [answer, every]) < 1).all()
    cells = ic.Answer(np.full(5, 0.2), np.full(5, 0.2), "easy", 1.0, False)
    for other, said in ((ic.where(age=3), answer), (ic.marginal("age"), cells)):
        with pytest.raises(InvalidParameterError, match="queries must be answered by this range"):
            one.joint_bounds([ic.where(age=2), other], [answer, said])
    for other, said in ((ic.where(age=2), cells), (ic.marginal("age"), answer)):
        with pytest.raises(InvalidParameterError, match=r"answers\[0\] must have shape"):
            one.joint_bounds([other], [said])
    untested = ic.Answer(answer.value, answer.count, "untested", 1.0, False)
    assert [math.inf] == one.joint_bounds([ic.where(age=3)], [untested]).tolist()
    assert counted == [held[label].statistics().asked for label in LABELS]


def test_a_table_told_before_a_close_is_bounded_at_once_by_its_distance_from_the_new_one():
    held = grown(SimulatedNoise(5))
    table, series = ic.marginal("sex", "age"), ic.marginal("sex", "month")
    one = held.over()
    old, by_month = one.answer_many([table, series])
    own = [held[label].joint_bounds([table], [held[label].told(table)])[0] for label in LABELS]
    before = one.joint_bounds([table, series], [old, by_month])
    assert sum(3_000 / 9_000 * bound for bound in own) == before[0]  # that of its nodes, to the bit

    held.close("2026-Q1")
    new = one.answer(table)

    moved = np.abs(old.value - new.value)
    assert ("2026-Q1",) == one.nodes
    after = one.joint_bounds([table, table, series], [old, new, by_month])
    assert held["2026-Q1"].joint_bounds([table], [held["2026-Q1"].told(table)])[0] == after[1]
    assert after[1] + moved.max() == pytest.approx(after[0])
    assert before[1] == after[2]  # its months speak still
    truth = sum(COUNTS[label].reshape(DOMAIN.shape).sum(axis=2).T for label in LABELS) / one.n
    assert (np.abs(old.value - truth) <= after[0]).all()


def test_estimates_of_months_are_added_where_that_bounds_better(monkeypatch):
    listens_first(monkeypatch)
    held = grown(SimulatedNoise(5))
    query = ic.where(age=2)
    beside = ic.where(age=3)  # a call of two: tables, no numbers by themselves
    answers = [held[label].answer_many([query, beside])[0] for label in LABELS]

    answer = held.over().answer(query)

    known = [held.known(label, one.query) for label, one in zip(LABELS, answers, strict=True)]
    assert answer.estimate == pytest.approx(np.mean([one.value for one in known]))
    assert answer.standard_error == pytest.approx(np.linalg.norm([one.error for one in known]) / 3)
    assert "gaussian" == answer.law
    assert answer.error_bound < 0.9 * np.mean([one.error_bound for one in answers])


def test_a_closed_quarter_is_averaged_with_what_its_months_bought(monkeypatch):
    listens_first(monkeypatch)
    held = grown(SimulatedNoise(5))
    held.close("2026-Q1")
    queries = [ic.where(age=2), ic.where(age=ic.between(1, 3), sex="F")]
    assert [float(one) for one in held["2026-Q1"].answer_many(queries)] == [
        float(one) for one in held.over().answer_many(queries)
    ]
    assert held.finer("2026-Q1", queries[0].bind(DOMAIN)) is None
    for label in LABELS:
        held[label].answer_many([ic.where(age=at % 5, sex="FM"[at % 2]) for at in range(10)])  # tables
    spent = [held[label].account for label in held.nodes]

    answers = held.over().answer_many(queries)

    assert spent == [held[label].account for label in held.nodes]
    for own, answer in zip(held["2026-Q1"].answer_many(queries), answers, strict=True):
        value, error = held.finer("2026-Q1", own.query)
        weight = own.expected_error**2 / (own.expected_error**2 + error**2)
        assert 0.05 < weight < 0.5
        assert float(answer) == pytest.approx((1 - weight) * float(own) + weight * value)
        assert answer.error_bound == pytest.approx(own.error_bound + abs(float(answer) - float(own)))
    months = [held[label].answer(queries[1]) for label in LABELS]
    known = [held.known(label, months[0].query) for label in LABELS]
    assert held.finer("2026-Q1", months[0].query) == pytest.approx(
        (np.mean([one.value for one in known]), np.linalg.norm([one.error for one in known]) / 3)
    )


def test_the_pooled_radius_counts_what_may_be_picked():
    calendar, query = Calendar(("month", "quarter")), ic.where(age=2, sex="F").bind(DOMAIN)

    nats = range_nats(calendar, LABELS, 3, DOMAIN, query)

    sets = 3 + 3 + 1  # of one to three attributes
    assert np.exp(nats) == pytest.approx(9 * 4 * 2 * sets * (5 * 6 / 2) * (2 * 3 / 2))
    shares = sum(1.0 / (end * (end + 1)) for end in range(1, 10_000))
    assert shares <= 1.0


def test_bounds_from_estimates_count_the_rounding_of_weights(monkeypatch):
    listens_first(monkeypatch)
    exact, rounded = ic.where(age=ic.below(3)), ic.where(age=ic.weights([1, 1, 1 - 1.5e-5, 0, 0]))
    held = grown(SimulatedNoise(5), months=(), levels=("month",))
    for month in range(1, 13):  # of fewer months the sum of their bounds is narrower
        held.add(f"2026-{month:02}", data_of("2026-01"))
    for age, sex in itertools.product(range(5), "FM"):  # each measured by itself, and tables after them
        for city in (0, 1):
            held.over().answer(ic.where(age=age, sex=sex, city=city))

    first, second = held.over().answer(exact), held.over().answer(rounded)

    assert first.value == second.value
    assert first.status == "easy"
    assert second.error_bound - first.error_bound == pytest.approx(1.5e-5, rel=1e-3)


def test_a_range_counts_its_coarser_periods_among_the_nodes_of_its_beta():
    held = Periods(None, DOMAIN, BUDGET, levels=("month", "quarter", "year"), noise=Silent(), max_queries=10)
    held.add("2020-01", data_of("2026-01"))
    for place in range(1, 60):
        held.add(f"{2020 + place // 12}-{place % 12 + 1:02}", None)

    assert held.over().beta == pytest.approx(0.05 * (0.5 + (60 + 20 + 5) / 128))
    assert 0.05 == held.over(until="2022-12").beta  # 36 months, twelve quarters and three years


def test_a_range_of_many_blocks_says_a_larger_beta():
    held = Periods(None, DOMAIN, BUDGET, levels=("day",), noise=Silent(), max_queries=10)
    held.add("2026-01-01", data_of("2026-01"))
    for day in range(2, 32):
        held.add(f"2026-01-{day:02}", None)
    for day in range(1, 29):
        held.add(f"2026-02-{day:02}", None)
    for day in range(1, 32):
        held.add(f"2026-03-{day:02}", None)

    assert 0.05 == held.over(until="2026-01-31").beta
    assert held.over().beta == pytest.approx(0.05 * (0.5 + 90 / 128))


# -- files --


def opened(folder, budget=BUDGET, **options):
    load = options.pop("load", data_of)
    return Periods(folder / "t.db", DOMAIN, budget, table="t", load=load, **{**QUARTER, **options})


def test_a_table_that_grows_goes_on_from_its_files(tmp_path):
    with opened(tmp_path) as held:
        for label in LABELS[:2]:
            held.add(label, data_of(label))
        first = held.answer(ic.where(age=2))
        receipt = held.receipt
    with opened(tmp_path, receipt=receipt) as held:
        assert first == _as_first(held.answer(ic.where(age=2)), first)
        held.add(LABELS[2], data_of(LABELS[2]))
        held.close("2026-Q1")
        assert "2026-Q1" == held.over().nodes[0]
    with opened(tmp_path) as held:
        assert LABELS == tuple(held.blocks)
        assert held["2026-Q1"].n == 9_000
        assert "repeat" == held["2026-01"].answer(ic.where(age=2)).status
    budget, book = book_of(read(tmp_path / "t.db"))
    assert (BUDGET, LABELS) == (budget, tuple(book.blocks))
    assert all(book.known[node.file].lines >= 1 for node in book.nodes.values())


def _as_first(again, first):
    """An answer that is given again is a repeat of what it was."""
    assert "repeat" == again.status
    assert float(first) == float(again)
    return first


def test_sessions_are_opened_when_they_are_asked(tmp_path):
    with opened(tmp_path) as held:
        held.add(LABELS[0], data_of(LABELS[0]))
    loaded = []
    with opened(tmp_path, load=lambda label: loaded.append(label) or data_of(label)) as held:
        assert ("2026-01",) == held.nodes
        assert [] == loaded
        held.answer(ic.where(age=1))
        assert ["2026-01"] == loaded


def test_the_tables_of_months_are_read_from_their_files_without_their_sessions(tmp_path):
    with opened(tmp_path) as held:
        for label in LABELS:
            held.add(label, data_of(label))
        held[LABELS[0]].answer(ic.where(age=1))
        held.close("2026-Q1")
    loaded = []
    with opened(tmp_path, load=lambda label: loaded.append(label) or data_of(label)) as held:
        held.over().answer(ic.where(age=2))
        assert held.finer("2026-Q1", ic.where(age=2).bind(DOMAIN)) is None
        for label in LABELS[1:]:
            held[label].answer(ic.where(age=1))
        assert held.finer("2026-Q1", ic.where(age=2).bind(DOMAIN)) is not None


def test_a_session_that_was_closed_by_itself_goes_on_from_its_file(tmp_path):
    with opened(tmp_path) as held:
        with held.add(LABELS[0], data_of(LABELS[0])) as session:
            first = session.answer(ic.where(age=1))
        assert session.closed
        again = held.over().answer(ic.where(age=1))
        assert ("repeat", float(first)) == (again.status, float(again))
        assert not held[LABELS[0]].closed
    alone = grown(months=LABELS[:1])
    alone[LABELS[0]].close()
    with pytest.raises(SessionStateError, match="closed"):
        alone.over().answer(ic.where(age=1))


def test_tables_are_handed_over_and_must_be_as_large_as_they_were(tmp_path):
    with opened(tmp_path) as held:
        held.add(LABELS[0], data_of(LABELS[0]))
    with opened(tmp_path, load=None) as held:
        with pytest.raises(SessionStateError, match="table of 2026-01 must be at hand"):
            held.answer(ic.where(age=1))
        more = ic.PrivateData(COUNTS[LABELS[0]] + 1, DOMAIN)
        with pytest.raises(LedgerMismatchError, match="must have n=3000 records, as the block began"):
            held.attach(LABELS[0], more)
        held.attach(LABELS[0], data_of(LABELS[0]))
        assert 3_000 == held.answer(ic.where(age=1)).n
    with pytest.raises(SessionStateError, match="periods must be open"):
        held.over()


def test_one_process_at_a_time_has_them(tmp_path):
    with opened(tmp_path):
        with pytest.raises(LedgerLockedError):
            opened(tmp_path)
        code = f"""
            import onlineic as ic
            try:
                ic.Periods({str(tmp_path / "t.db")!r}, ic.Domain.of(age=5, sex=["F", "M"], city=4),
                           ic.Budget(1.0, 1e-9), levels=("month", "quarter"), max_queries=100, table="t")
            except ic.errors.LedgerLockedError:
                raise SystemExit(7)
        """
        ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=FOR_EVER)
        assert 7 == ran.returncode


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"levels": ("month",)}, "levels must be"),
        ({"beta": 0.1}, "beta must be"),
        ({"shares": (0.25, 0.5)}, "shares must be"),
    ],
)
def test_other_settings_are_another_table(tmp_path, options, match):
    opened(tmp_path).release()

    with pytest.raises(LedgerMismatchError, match=match):
        opened(tmp_path, **options)
    with pytest.raises(LedgerMismatchError, match="domain must be"):
        Periods(tmp_path / "t.db", ic.Domain.of(a=3), BUDGET, table="t", **QUARTER)
    with pytest.raises(LedgerMismatchError, match="table must be 't'"):
        Periods(tmp_path / "t.db", DOMAIN, BUDGET, table="u", **QUARTER)


def test_a_total_is_no_table_that_grows(tmp_path):
    ic.TableBudget(BUDGET, ledger=tmp_path / "t.db", table="t").close()

    with pytest.raises(LedgerMismatchError, match="got the total of a table"):
        opened(tmp_path)


@pytest.mark.parametrize("where", ["node", "root"])
def test_a_crash_between_the_two_files_has_spent_nothing(tmp_path, monkeypatch, where):
    held = opened(tmp_path)
    held.add(LABELS[0], data_of(LABELS[0]))
    step = "OnlineIC" if where == "node" else "NodeOpened"

    def crash(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, step, crash)
    with pytest.raises(KeyboardInterrupt):
        held.add(LABELS[1], data_of(LABELS[1]))
    monkeypatch.undo()
    held.release()

    with opened(tmp_path) as held:
        assert (LABELS[0],) == tuple(held.blocks)
        held.add(LABELS[1], data_of(LABELS[1]))
        assert LABELS[:2] == held.over().nodes


def interrupt_once_written(patched, kind):
    """Let Ctrl-C come as soon as a root ledger of this kind has written that a node is there."""
    commit = kind.commit

    def interrupted(ledger, records, payer=None):
        commit(ledger, records, payer)
        if any(isinstance(record, NodeOpened) for record in records):
            raise KeyboardInterrupt

    patched.setattr(kind, "commit", interrupted)


def test_what_the_root_holds_stands_when_an_interrupt_comes_as_it_is_written(tmp_path, monkeypatch):
    held = opened(tmp_path)
    with monkeypatch.context() as patched:
        interrupt_once_written(patched, SqliteLedger)
        with pytest.raises(KeyboardInterrupt):
            held.add(LABELS[0], data_of(LABELS[0]))

    assert ((LABELS[0],), (LABELS[0],)) == (tuple(held.blocks), held.nodes)
    with pytest.raises(InvalidParameterError, match="which is there"):
        held.add(LABELS[0], data_of(LABELS[0]))
    held.add(LABELS[1], data_of(LABELS[1]))
    book = held.book
    held.release()
    with opened(tmp_path) as held:
        assert book.nodes == held.book.nodes
        assert "untested" != held[LABELS[0]].answer(ic.where(age=2)).status  # real noise: it may be hard


def test_a_period_in_memory_that_was_begun_as_an_interrupt_came_is_asked(monkeypatch):
    held = grown(months=())
    with monkeypatch.context() as patched:
        interrupt_once_written(patched, MemoryLedger)
        with pytest.raises(KeyboardInterrupt):
            held.add(LABELS[0], data_of(LABELS[0]))

    assert "untested" != held[LABELS[0]].answer(ic.where(age=2)).status
    for label in LABELS[1:3]:
        held.add(label, data_of(label))
    assert held.close("2026-Q1").answer(ic.where(age=2)).status != "untested"


def test_a_process_that_is_killed_between_the_two_files_has_spent_nothing(tmp_path):
    code = f"""
        import os, numpy as np, onlineic as ic
        from onlineic.periods import periods
        domain = ic.Domain.of(age=5, sex=["F", "M"], city=4)
        held = ic.Periods({str(tmp_path / "t.db")!r}, domain, ic.Budget(1.0, 1e-9),
                          levels=("month", "quarter"), max_queries=100, table="t")
        held.add("2026-01", ic.PrivateData(np.full(40, 75), domain)).answer(ic.where(age=1))
        periods.NodeOpened = lambda *_: os._exit(9)
        held.add("2026-02", ic.PrivateData(np.full(40, 75), domain))
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=FOR_EVER)
    assert 9 == ran.returncode

    with opened(tmp_path) as held:
        assert ("2026-01",) == tuple(held.blocks)
        assert "untested" != held["2026-01"].answer(ic.where(age=2)).status
        held.add(LABELS[1], data_of(LABELS[1]))
        assert 6_000 == held.over().n


def node_file(folder, label):
    return folder / "t.db.nodes" / f"{label}.db"


def test_files_that_are_gone_older_or_others_are_refused(tmp_path):
    with opened(tmp_path) as held:
        held.add(LABELS[0], data_of(LABELS[0]))
        held.add(LABELS[1], data_of(LABELS[1]))
        old = tmp_path / "old.db"
    shutil.copy(node_file(tmp_path, LABELS[0]), old)
    with opened(tmp_path) as held:
        held["2026-01"].answer(ic.where(age=1))
    now = tmp_path / "now.db"
    shutil.move(node_file(tmp_path, LABELS[0]), now)

    with opened(tmp_path) as held:
        with pytest.raises(LedgerCorruptError, match="it was paid, and a new one would be paid by nobody"):
            held["2026-01"]
        shutil.copy(old, node_file(tmp_path, LABELS[0]))
        with pytest.raises(LedgerRollbackError):
            held["2026-01"]
        shutil.copy(node_file(tmp_path, LABELS[1]), node_file(tmp_path, LABELS[0]))
        with pytest.raises(LedgerMismatchError, match="must be the one that the root ledger paid"):
            held["2026-01"]
        os.unlink(node_file(tmp_path, LABELS[0]))
        shutil.copy(now, node_file(tmp_path, LABELS[0]))
        assert 3_000 == held["2026-01"].n
    shutil.move(tmp_path / "t.db", tmp_path / "root.db")
    with pytest.raises(LedgerCorruptError, match="root ledger must be there to go on"):
        opened(tmp_path)


def test_an_older_root_is_refused_where_a_session_has_released(tmp_path):
    opened(tmp_path).release()
    shutil.copy(tmp_path / "t.db", tmp_path / "old.db")
    with opened(tmp_path) as held:
        held.add(LABELS[0], data_of(LABELS[0])).answer(ic.where(age=1))
        receipt = held.receipt
    shutil.copy(tmp_path / "old.db", tmp_path / "t.db")

    with pytest.raises(LedgerRollbackError):
        opened(tmp_path, receipt=receipt)
    with (
        opened(tmp_path) as held,
        pytest.raises(LedgerCorruptError, match="root ledger must know the session"),
    ):
        held.add(LABELS[0], data_of(LABELS[0]))


def test_a_start_of_other_rules_that_lies_beside_a_session_is_read(tmp_path, monkeypatch):
    start, settings = ic.Histogram(DOMAIN, np.arange(1.0, DOMAIN.size + 1)), Periods._node_settings
    with monkeypatch.context() as other:
        other.setattr(Periods, "_node_settings", lambda *asked: attrs.evolve(settings(*asked), prior=start))
        with opened(tmp_path) as held:
            held.add(LABELS[0], data_of(LABELS[0])).answer(ic.where(age=1))
            before = held[LABELS[0]].hypothesis.probabilities()
    np.save(tmp_path / "t.db.nodes" / "2026-01.start.npy", start.probabilities())

    with opened(tmp_path) as held:
        np.testing.assert_allclose(before, held[LABELS[0]].hypothesis.probabilities(), rtol=1e-12)
    assert any(isinstance(one, Noted) for one in book_of(read(tmp_path / "t.db"))[1].known.values())


# -- calendars --


def test_calendars_nest_and_go_on():
    days = Calendar(("day", "month", "year"))

    assert ("month", "2024-02-28", "2024-02-29", "2024-03-01", "2025-01-01") == (
        days.level("2024-02"),
        days.within("2024-02", "day")[-2],
        *[days.following(one) for one in ("2024-02-28", "2024-02-29", "2024-12-31")],
    )
    assert ("2024-02", 29) == (days.around("2024-02-29", "month"), len(days.within("2024-02", "day")))
    assert 2 == days.coarser([*days.within("2024-02", "day"), *days.within("2024-03", "day"), "2024-04-01"])
    with pytest.raises((InvalidParameterError, InvalidDomainError)):
        days.level("2024-2")


# -- rows of other periods --


def rows_of(*dates):
    columns = {"age": 1, "sex": "F", "city": 2}
    return {"on": list(dates), **{name: [value] * len(dates) for name, value in columns.items()}}


def test_a_row_whose_date_lies_outside_its_period_is_refused_and_told_to_the_curator_alone():
    held = grown(months=())
    domain = held.loading("2026-01", "on")
    rows = rows_of("2026-01-05", "2026-01-31", "2026-02-01", "2025-12-31")

    with pytest.raises(InvalidDataError) as refused:
        ic.PrivateData.from_records(rows, domain)
    report = ic.PrivateData.check(rows, domain)

    assert "2026-02" not in str(refused.value)
    assert "2025-12" not in str(report)
    assert "'2026-02-01' in 1 row: 2" in report.curator_report()
    assert "'2025-12-31' in 1 row: 3" in report.curator_report()
    held.add("2026-01", ic.PrivateData.from_records(rows_of("2026-01-05", "2026-01-31"), domain))
    assert {"2026-01": 2} == dict(held.blocks)


def test_late_rows_are_loaded_where_they_are_said():
    held = grown(months=LABELS[:1])
    late = ic.PrivateData.from_records(
        rows_of("2026-01-31", "2026-02-01"), held.loading("2026-02", "on", late=True)
    )

    with pytest.raises(InvalidParameterError, match="must have dates of that month alone"):
        held.add("2026-02", late)
    held.add("2026-02", late, late=True)

    assert 2 == held.blocks["2026-02"]
    with pytest.raises(InvalidParameterError, match="date a column that is no attribute"):
        held.loading("2026-02", "age")


def test_dates_that_would_let_others_pass_are_refused():
    held = grown(months=())
    for kind in (ic.dates("2026-01", "2026-01", by="month", clip=True), ic.dates("2026-02", "2026-02")):
        domain = ic.Domain.of({"on": kind, **dict(DOMAIN)})
        with pytest.raises(InvalidParameterError, match="must have dates of that month alone"):
            held.add("2026-01", ic.PrivateData.from_records(rows_of("2026-02-01"), domain))


# -- the command line --


@pytest.mark.parametrize("form", [[], ["--delimiter", ";"]])
def test_months_come_in_and_a_quarter_is_closed_from_the_command_line(tmp_path, monkeypatch, capsys, form):
    monkeypatch.chdir(tmp_path)
    domain = tmp_path / "domain.json"
    domain.write_text(DOMAIN.to_json())
    for label in LABELS:
        lines = [f"{label}-03,1,F,2", f"{label}-28,4,M,0"] * 300
        (tmp_path / f"trips-{label}.csv").write_text(
            "\n".join(["on,age,sex,city", *lines, ""]).replace(",", form[-1] if form else ",")
        )
    first = ["--domain", "domain.json", "--epsilon", "1", "--delta", "1e-9", "--levels", "month,quarter"]

    assert 2 == _exit(["periods", "add", "t.db", "2026-01", "trips-2026-01.csv"])
    assert 1 == main(
        ["periods", "add", "t.db", "2026-01", "trips-2026-02.csv", "--date", "on", *first, *TABLE, *form]
    )
    assert 0 == main(
        ["periods", "add", "t.db", "2026-01", "trips-2026-01.csv", "--date", "on", *first, *TABLE, *form]
    )
    assert 0 == main(["periods", "add", "t.db", "2026-02", "trips-2026-02.csv", "--date", "on", *form])
    assert 0 == main(["periods", "add", "t.db", "2026-03"])
    assert 2 == main(["periods", "add", "t.db", "2026-03"])
    assert 0 == main(["periods", "close", "t.db", "2026-Q1", "--data", "trips-{}.csv", *form])
    capsys.readouterr()
    assert 0 == main(["periods", "show", "t.db"])
    text = capsys.readouterr().out
    assert 0 == main(["periods", "show", "--json", "t.db"])
    told = json.loads(capsys.readouterr().out)
    assert 0 == main(["ledger", "verify", "t.db"])
    assert text == capsys.readouterr().out

    assert "month     2026-02, n 600, 0.0000% left" in text
    assert "protects  one record within its month; does not protect in which month a record lies" in text
    assert told["protects"].startswith("protects one record within its month")
    assert ["2026-01", "2026-02", "2026-Q1"] == [node["label"] for node in told["nodes"]]
    assert [600, 600, 0] == [block["n"] for block in told["blocks"]]
    with Periods.resume("t.db") as held:
        assert ("month", "quarter") == held.book.calendar.levels


def test_persons_come_in_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "domain.json").write_text(DOMAIN.to_json())
    for label in LABELS[:2]:
        rows = [f"{at % 200},{label}-03,{at % 5},{'FM'[at % 2]},{at % 4}" for at in range(600)]
        (tmp_path / f"{label}.csv").write_text("\n".join(["id,on,age,sex,city", *rows]) + "\n")
    who = ["--date", "on", "--person", "id"]
    first = ["--domain", "domain.json", "--epsilon", "4", "--delta", "1e-6", "--most-periods", "2", *TABLE]

    assert 0 == main(["periods", "add", "t.db", "2026-01", "2026-01.csv", *who, *first, "--within", "6"])
    assert 0 == main(["periods", "add", "t.db", "2026-02", "2026-02.csv", *who])
    capsys.readouterr()
    assert 0 == main(["periods", "show", "t.db"])
    text = capsys.readouterr().out

    assert "protects  all rows of a person who has at most one in a month, in at most 2 months and wi" in text
    assert "of each person over all months" in text
    assert "month     2026-02, n 200, 0.0000% left" in text
    assert "shares    month 1" in text


TABLE = ["--table", "trips", "--max-queries", "100"]


def _exit(arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return left.value.code


# -- many of them --


@pytest.mark.exhaustive
def test_bounds_hold_over_24_months_of_a_thousand_questions(monkeypatch):
    listens_first(monkeypatch)
    months = [f"{year}-{month:02}" for year in (2024, 2025) for month in range(1, 13)]
    held = Periods(None, DOMAIN, BUDGET, max_queries=1_000, noise=SimulatedNoise(9))
    tables = {label: ic.PrivateData(counts_of(seed, 4_000), DOMAIN) for seed, label in enumerate(months)}
    stream = random_stream(DOMAIN, 1_000, 4)
    for label in months:
        held.add(label, tables[label]).answer_many(stream)
        if label.endswith("12"):
            held.close(label[:4])
    missed = asked = 0
    for since, until in (
        ("2024-03", "2024-03"),
        ("2024-02", "2024-07"),
        ("2024", "2024"),
        ("2024-06", "2025"),
    ):
        one = held.over(since, until)
        truths = exact_values(ic.PrivateData.union([tables[label] for label in one.blocks]), stream)
        for answer, truth in zip(one.answer_many(stream), truths, strict=True):
            asked += 1
            missed += abs(float(answer) - truth) > answer.error_bound
    assert 4_000 == asked
    assert missed <= 0.05 * asked


@pytest.mark.exhaustive
def test_of_a_year_of_days_those_are_resumed_that_are_asked(tmp_path, monkeypatch):
    with opened(tmp_path, levels=("day", "month", "year")) as held:
        label = "2025-01-01"
        for _ in range(365):
            session = held.add(label, data_of(LABELS[0]))
            plan_once(monkeypatch, session.plan)
            label = held.book.calendar.following(label)
    loaded, resumed, resume = [], [], ic.OnlineIC.resume

    def load(label):
        loaded.append(label)
        return data_of(LABELS[0])

    def counted(*given, **settings):
        resumed.append(given)
        return resume(*given, **settings)

    monkeypatch.setattr(ic.OnlineIC, "resume", counted)
    with Periods.resume(tmp_path / "t.db", load=load) as held:
        assert held.over("2025-03-01", "2025-03-03").answer(ic.where(age=1)).n == 9_000
    assert (["2025-03-01", "2025-03-02", "2025-03-03"], 3) == (loaded, len(resumed))
