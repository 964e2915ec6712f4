"""Tables of the records of several tables, and over some of their attributes."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import private
from onlineic.data.rows import Rows
from onlineic.errors import DomainMismatchError, InvalidParameterError, InvalidQueryError
from onlineic.queries import Partition

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


def test_a_table_that_was_used_or_draws_on_a_total_is_refused(tables):
    total = ic.TableBudget(ic.Budget(1.0))
    tables[0].draw_on(total)
    tables[1].spend(ic.Budget(1.0))
    for one in tables[:2]:
        with pytest.raises(InvalidParameterError, match="tables must be unused and without a total"):
            ic.PrivateData.union([one])
    assert 1 == total.left


def test_what_is_no_union_is_refused(tables):
    other = ic.PrivateData(np.array([1, 1]), ic.Domain.of(a=2))
    rows = {"id": [1, 1], "a": [0, 1], "b": [0, 0], "c": [3, 3]}
    persons = ic.PrivateData.from_records(rows, DOMAIN, unit=ic.Unit("id"))

    for given in ([], [tables[0], tables[0]], [tables[0], 3]):
        with pytest.raises(InvalidParameterError, match="one or more different PrivateData"):
            ic.PrivateData.union(given)
    with pytest.raises(DomainMismatchError, match="tables must be over one domain"):
        ic.PrivateData.union([tables[0], other])
    in_one_part = ic.PrivateData.from_records(rows, DOMAIN, unit=ic.Unit("id", units=1))
    for one in (persons, in_one_part):  # a person of the first can be in the second
        with pytest.raises(InvalidParameterError, match="got one of persons, who can have rows in several"):
            ic.PrivateData.union([one])
    with pytest.raises(InvalidParameterError, match="and unused, to be projected"):
        persons.projected("a")
    with pytest.raises(InvalidQueryError):
        tables[0].projected("d")
