"""Tables of the records of several tables, and over some of their attributes."""

import queue
import shutil
import threading
import warnings

import numpy as np
import pytest

import onlineic as ic
from onlineic import offline
from onlineic.data import private
from onlineic.data.rows import Rows
from onlineic.errors import (
    BudgetExceededError,
    BudgetsAddWarning,
    DomainMismatchError,
    InvalidParameterError,
    InvalidQueryError,
    LedgerLockedError,
    SessionStateError,
)
from onlineic.queries import Partition
from support.events import FOR_EVER, telling_locks

DOMAIN = ic.Domain.of(a=3, b=2, c=4)
ROWS = [
    {"a": [0, 1, 2, 2], "b": [0, 1, 1, 0], "c": [3, 3, 0, 1]},
    {"a": [0, 0], "b": [1, 0], "c": [2, 3]},
]


def cells(data, domain=DOMAIN):
    whole = Partition(domain, tuple(range(len(domain.shape))), tuple(map(np.arange, domain.shape)))
    return data.exact_counts(whole).tolist()


@pytest.fixture(params=["cells", "rows"])
def tables(request, monkeypatch):
    if request.param == "rows":
        monkeypatch.setattr(private, "MAX_CELLS", 8)
    counted = ic.PrivateData.from_counts({"a": [1], "b": [0], "c": [2]}, np.array([5]), DOMAIN)
    return [*(ic.PrivateData.from_records(one, DOMAIN) for one in ROWS), counted]


def test_a_union_has_every_record_of_its_tables_once(tables):
    union = ic.PrivateData.union(tables)

    assert 11 == union.n
    assert np.sum([cells(one) for one in tables], axis=0).tolist() == cells(union)
    assert () == union.budgets


def test_a_projection_has_every_record_over_fewer_attributes(tables):
    held = ic.PrivateData.union(tables)
    narrow = held.projected("a", "c")

    wide = np.reshape(cells(held), DOMAIN.shape).sum(axis=1).ravel().tolist()
    assert (11, DOMAIN.project("a", "c")) == (narrow.n, narrow.domain)
    assert wide == cells(narrow, narrow.domain)


@pytest.mark.parametrize("cells_held", [8, 100])
@pytest.mark.parametrize(
    "unit", [ic.Unit("id", units=1), ic.Unit("id", weigh="rows", at_most=1)], ids=["persons", "rows"]
)
def test_a_projection_of_persons_in_one_part_still_protects_all_rows_of_a_person(
    unit, cells_held, monkeypatch
):
    rows = {"id": [7, 7, 8, 9], **ROWS[0]}
    private_n = unit.at_most is not None
    if not private_n:
        monkeypatch.setattr(private, "MAX_CELLS", cells_held)  # of more cells the rows are kept
    near = {"neighbours": "add-remove", "n_at_most": 5} if private_n else {}
    held = ic.PrivateData.from_records(rows, DOMAIN, unit=unit, **near)
    narrow = held.projected("a", "c")

    assert (unit, held.neighbours, held.n_at_most) == (narrow.unit, narrow.neighbours, narrow.n_at_most)
    assert "all rows of a person (by 'id')" in repr(narrow)
    assert (unit,) == narrow.units()
    with pytest.raises(InvalidParameterError, match="protects all rows of a person"):
        narrow.spend(ic.Budget(1.0))


@pytest.mark.parametrize("first", ["counts", "rows"])
def test_a_union_of_counts_and_rows_reads_as_much_however_many_cells_hold_records(first, monkeypatch):
    domain = ic.Domain.of(t=ic.integers(0, 2**17 + 1))
    monkeypatch.setattr(private, "MANY_CODES", 8)  # rows of a long attribute are kept from here on
    rows, made = Rows.__init__, []

    def spy(self, columns, weights, shape):
        made.append(len(columns[0]))
        rows(self, columns, weights, shape)

    def union(counts):
        tables = [
            ic.PrivateData(counts, domain),
            ic.PrivateData.from_records({"t": [3, 5, 5]}, domain),
        ]
        monkeypatch.setattr(Rows, "__init__", spy)
        held = ic.PrivateData.union(tables if first == "counts" else tables[::-1])
        monkeypatch.setattr(Rows, "__init__", rows)
        return held

    spread, alike = np.zeros((2, domain.size), np.int64)
    spread[:40], alike[3] = 1, 40
    found = []
    for counts in (spread, alike):
        held = union(counts)
        asked = [ic.where(t=3), ic.where(t=5)]
        found.append([held.exact_counts(one.bind(domain)) for one in asked])
        found.append(made[:])
        made.clear()

    assert [[2, 3], [41, 2]] == found[::2]
    assert found[1] == found[3]


def projected(data):
    return data.projected("a", "c")


ONE, OTHER = ic.Budget(1.0), ic.Budget(0.5)
WAYS = {  # what is made of a table, and of which table: each shares its records
    "a projection": lambda tables: projected(tables[0]),
    "a projection of a projection": lambda tables: projected(tables[0]).projected("c"),
    "a union": lambda tables: ic.PrivateData.union(tables[:2]),
    "a union of unions": lambda tables: ic.PrivateData.union([ic.PrivateData.union(tables[:2]), tables[2]]),
    "a projection of a union": lambda tables: projected(ic.PrivateData.union(tables)),
}


@pytest.mark.parametrize("made_before", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_spent_on_records_is_on_one_list_of_all_tables_made_of_them(way, made_before, tables):
    made = WAYS[way](tables) if made_before else None
    tables[0].spend(ONE)
    made = made or WAYS[way](tables)

    assert (ONE,) == made.budgets
    with pytest.warns(BudgetsAddWarning, match=r"after epsilon=1, delta=0: both together cost epsilon=1\.5,"):
        ic.OnlineIC(made, OTHER)
    assert (ONE, OTHER) == tables[0].budgets == made.budgets
    with pytest.warns(BudgetsAddWarning, match=r"after epsilon=1\.5, delta=0"):
        offline.median(tables[0], "a", 0.1)
    assert 3 == len(made.budgets)


def test_what_is_spent_on_a_union_is_spent_on_each_part_and_parts_are_not_spent_on_each_other(tables):
    union = ic.PrivateData.union(tables)
    tables[0].spend(ONE)
    tables[1].spend(OTHER, rows_per_person=2)  # of other records: no warning
    assert (2, 1) == (union.rows_per_person, tables[0].rows_per_person)
    with pytest.warns(BudgetsAddWarning, match=r"cost a person with 2 rows epsilon=4, delta=0"):
        union.spend(OTHER)

    assert ((ONE, OTHER), (OTHER,)) == (tables[0].budgets, tables[2].budgets)
    assert [2.0, 1.0, 1.0] == [one.epsilon for one in union.budgets]  # for a person with two rows
    with pytest.raises(BudgetsAddWarning), warnings.catch_warnings(action="error"):
        tables[2].spend(ONE)
    assert (OTHER,) == tables[2].budgets


@pytest.mark.parametrize("made_before", [True, False])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("of_made", [True, False])
def test_a_total_covers_all_tables_of_its_records(of_made, way, made_before, tables):
    total = ic.TableBudget(ic.Budget(1.0))
    made = WAYS[way](tables) if made_before or of_made else None
    (made if of_made else tables[0]).draw_on(total)
    made = made or WAYS[way](tables)

    assert total is made.total is tables[0].total
    tables[0].spend(OTHER)
    made.spend(OTHER)
    for one in (made, tables[0]):
        with pytest.raises(BudgetExceededError):
            offline.median(one, "a" if "a" in one.domain.names else "c", 0.1)
    assert (0, 2) == (made.reads + tables[0].reads, len(made.budgets))
    with pytest.raises(InvalidParameterError, match="total must be the one that the table has"):
        made.draw_on(ic.TableBudget(ic.Budget(1.0)))


def test_a_total_comes_before_all_that_is_spent_on_its_records(tables):
    union, narrow = ic.PrivateData.union(tables[:2]), projected(tables[0])
    narrow.spend(ONE)
    for one in (union, tables[0]):
        with pytest.raises(SessionStateError, match="before anything is released"):
            one.draw_on(ic.TableBudget(ic.Budget(1.0)))
    assert tables[1].total is None  # nothing was changed of the other part


def test_parts_that_a_total_does_not_cover_warn_and_several_totals_are_refused(tables):
    union = ic.PrivateData.union(tables[:2])
    tables[1].spend(ONE)
    tables[0].draw_on(ic.TableBudget(ic.Budget(1.0)))
    with pytest.warns(BudgetsAddWarning, match=r"after epsilon=1, delta=0: both together cost epsilon=1\.5,"):
        union.spend(OTHER)
    assert (OTHER,) == tables[0].budgets == tuple(one.budget for one in tables[0].total.drawn)

    both = ic.PrivateData.union([tables[0], tables[2]])
    tables[2].draw_on(ic.TableBudget(ic.Budget(1.0)))
    for call in (
        lambda: both.spend(OTHER),
        lambda: ic.OnlineIC(both, OTHER),
        lambda: ic.PrivateData.union([tables[0], tables[2]]),
    ):
        with pytest.raises(InvalidParameterError, match="total must be one for all records of a table"):
            call()
    assert 1 == tables[2].total.left
    assert (OTHER,) == both.budgets


def test_a_ledger_that_is_open_on_a_table_is_open_on_all_of_its_records(tmp_path):
    path, copy = tmp_path / "s.db", tmp_path / "copy.db"
    counts = np.full(DOMAIN.size, 10)
    data = ic.PrivateData(counts, DOMAIN)
    ic.OnlineIC(data, ONE, ledger=path, table="t").close()
    shutil.copy(path, copy)
    whole = data.projected(*DOMAIN.names)
    message = "a copy of one that is open on this table"
    with ic.OnlineIC.resume(path, whole), pytest.raises(LedgerLockedError, match=message):
        ic.OnlineIC.resume(copy, data)
    assert (ONE,) == data.budgets  # the file was paid


def test_sessions_that_open_at_once_on_a_table_and_its_projection_see_one_list(monkeypatch):
    """While one enters its budget the other waits: else neither would see that the other is there."""
    first = queue.SimpleQueue()
    with telling_locks(lambda: first.put("waits")):
        data = ic.PrivateData(np.full(DOMAIN.size, 10), DOMAIN)
    tables, inside, listed, met = [data, projected(data)], threading.Event(), private._added, []

    def spend():
        tables[1].spend(OTHER)
        first.put("came in")

    second = threading.Thread(target=spend)

    def looked(self, budget):
        if not inside.is_set():
            inside.set()
            second.start()
            met.append(first.get(timeout=FOR_EVER))
        return []

    def told(before, budget, rows, unit):
        said.append(before)
        return listed(before, budget, rows, unit)

    said = []
    monkeypatch.setattr(ic.PrivateData, "_large_delta", looked)
    monkeypatch.setattr(private, "_added", told)
    with warnings.catch_warnings(action="ignore", category=BudgetsAddWarning):
        tables[0].spend(ONE)
        second.join()

    assert ["waits"] == met
    assert [[ONE]] * 2 == said  # before the warning is shown, and after it
    assert (ONE, OTHER) == data.budgets == tables[1].budgets


def test_persons_of_a_table_that_was_projected_stay_in_their_parts():
    """Cut anew, its budgets would be those of other parts than the ones of the projection."""
    rows = {"id": [7, 7, 8, 9], **ROWS[0]}
    data = ic.PrivateData.from_records(rows, DOMAIN, unit=ic.Unit("id"))
    coarse = ic.Unit("id", units=1)
    with pytest.raises(InvalidParameterError, match="must be of one record a row to be projected"):
        projected(data)
    data.cut_into(coarse)
    projected(data)

    assert (coarse,) == data.units()


def test_what_is_no_union_is_refused(tables):
    other = ic.PrivateData(np.array([1, 1]), ic.Domain.of(a=2))
    rows = {"id": [1, 1], "a": [0, 1], "b": [0, 0], "c": [3, 3]}
    persons = ic.PrivateData.from_records(rows, DOMAIN, unit=ic.Unit("id"))

    for given in ([], [tables[0], 3]):
        with pytest.raises(InvalidParameterError, match="one or more PrivateData"):
            ic.PrivateData.union(given)
    twice = tables[0].projected(*DOMAIN.names)
    for again in (tables[0], twice, ic.PrivateData.union(tables)):  # a record would move a count by two
        with pytest.raises(InvalidParameterError, match="must be of different records, got some twice"):
            ic.PrivateData.union([tables[0], again])
    with pytest.raises(DomainMismatchError, match="tables must be over one domain"):
        ic.PrivateData.union([tables[0], other])
    in_one_part = ic.PrivateData.from_records(rows, DOMAIN, unit=ic.Unit("id", units=1))
    for one in (persons, in_one_part):  # a person of the first can be in the second
        with pytest.raises(InvalidParameterError, match="got one of persons, who can have rows in several"):
            ic.PrivateData.union([one])
    with pytest.raises(InvalidQueryError):
        tables[0].projected("d")
