"""Tables of two and three persons with one to three rows: one person moves no more than their own parts."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import per_row
from onlineic.data import persons
from onlineic.domain import Unit
from onlineic.queries import Partition

DOMAIN = ic.Domain.of(x=3)
HISTORIES = [rows for many in (1, 2, 3) for rows in itertools.combinations_with_replacement(range(3), many)]


def parts_of(table, units):
    """Return the parts on the three cells of a table of persons: identifier -> rows."""
    columns = {
        "id": [person for person, rows in table.items() for _ in rows],
        "x": [row for rows in table.values() for row in rows],
    }
    data = ic.PrivateData.from_records(columns, DOMAIN, unit=Unit("id", units=units))
    return data.exact_counts(Partition(DOMAIN, (0,), (np.arange(3),)))


def largest_loss(units, others, epsilon=Fraction(1)):
    """Return the largest loss of the noisy table over all neighbours, at the noise of the row's budget.

    Discrete Laplace noise of scale 2/epsilon' on every count of parts: the log-ratio of the laws of two
    tables is at most their distance in L1 over the scale, and reaches it.
    """
    row = per_row(ic.Budget(float(epsilon)), units)
    held = [parts_of({**others, name: rows}, units) for name in ("new", "who") for rows in HISTORIES]
    farthest = max(int(np.abs(one - two).sum()) for one, two in itertools.combinations(held, 2))
    return farthest * row.epsilon_exact / 2


@pytest.mark.parametrize("units", [64, 16, 1])
@pytest.mark.parametrize("others", [{"a": (0,)}, {"a": (0, 1, 2), "b": (2, 2)}, {"b": (1, 1, 0), "a": (2,)}])
def test_one_person_with_all_their_rows_costs_the_budget_of_a_person(units, others):
    assert largest_loss(units, others) == 1  # a person who leaves all cells for others reaches it


NUMBERS = ic.Domain.of(y=ic.number(0, 4, bins=[0, 1, 4]), z=ic.number(0, 1, bins=1))
VALUES = list(itertools.product((0, 0.3, 1.7, 4), (0.2, 1)))


def ends_of(rows, unit=None):
    """Return the parts on every pair of ends of a table of numbers."""
    columns = {"y": [y for y, _ in rows], "z": [z for _, z in rows]}
    if unit is not None:
        columns["id"] = [f"p{place // 2}" for place in range(len(rows))]
    data = ic.PrivateData.from_records(columns, NUMBERS, unit=unit)
    return data.exact_counts(Partition(NUMBERS, (0, 1), (np.arange(4), np.arange(2))))


ALONE = ic.Domain.of(y=ic.number(0, 4, bins=[0, 1, 4]), x=2)
DOMAINS = {  # one number, or several: of these the last is rounded by cells, the others by runs
    "one": (ALONE, list(itertools.product((0, 0.3, 0.37, 1.7, 4), (0, 1)))[:7]),
    "two": (NUMBERS, VALUES[:6]),
    "three": (
        ic.Domain.of(y=ic.number(0, 4, bins=2), z=ic.number(0, 1, bins=1), w=ic.number(0, 1, bins=1)),
        [(0.3, 0.2, 0.9), (0.3, 0.2, 0.1), (1.1, 0.2, 0.41), (3.3, 0.7, 0.6), (4, 1, 0)],
    ),
}


def counts_of(domain, rows, counts=None, unit=None, ids=None):
    """Return the parts on every cell of a table of records, or of persons."""
    if not rows:
        return np.zeros(domain.size, np.int64)
    columns = {name: [row[place] for row in rows] for place, name in enumerate(domain.names)}
    if counts is not None:
        data = ic.PrivateData.from_counts(columns, counts, domain)
    else:
        named = {} if ids is None else {"id": ids}
        data = ic.PrivateData.from_records(columns | named, domain, unit=unit)
    cells = tuple(np.arange(size) for size in domain.shape)
    return data.exact_counts(Partition(domain, tuple(range(len(cells))), cells))


def moves(domain, values, most=3):
    """Return what one record more adds, and how far one that is another moves, over all small tables."""
    added, moved = set(), set()
    for many in range(most + 1):
        for others in itertools.combinations_with_replacement(values, many):
            rest = counts_of(domain, [*others])
            held = [counts_of(domain, [*others, row]) for row in values]
            added |= {(int((one - rest).min()) >= 0, int((one - rest).sum())) for one in held}
            moved |= {int(np.abs(one - two).sum()) for one, two in itertools.combinations(held, 2)}
    return added, moved


@pytest.mark.parametrize("name", DOMAINS)
def test_one_record_moves_no_more_than_its_parts_over_the_ends(name):
    domain, values = DOMAINS[name]
    added, moved = moves(domain, values)

    assert {(True, 64)} == added
    assert 128 == max(moved)


@pytest.mark.parametrize("name", DOMAINS)
def test_one_of_many_equal_records_moves_no_more_than_its_parts(name):
    domain, values = DOMAINS[name]
    for row, others in itertools.product(values[1:3], ([], [(values[-1], 5)])):
        rows, many = [row, *(other for other, _ in others)], [count for _, count in others]
        held = [
            counts_of(domain, rows, [count, *many])
            for around in (100, 2**14, 2**40)
            for count in range(around - 1, around + 2)
        ]
        more = [two - one for one, two in itertools.pairwise(held) if (two - one).sum() < 1000]
        assert 6 == len(more)
        assert {(0, 64)} == {(min(0, int(one.min())), int(one.sum())) for one in more}


@pytest.mark.parametrize("name", DOMAINS)
def test_order_and_counts_leave_the_parts_where_they_are(name):
    domain, values = DOMAINS[name]
    rows = [*values, *values[:3], *values[:1]]
    held = counts_of(domain, rows)

    assert np.array_equal(held, counts_of(domain, rows[::-1]))
    several = [1 + (place < 3) + (place < 1) for place in range(len(values))]
    assert np.array_equal(held, counts_of(domain, values, several))
    assert np.array_equal(held, counts_of(domain, rows, [1] * len(rows)))


@pytest.mark.parametrize("units", [64, 16, 1])
def test_one_person_moves_no_more_than_their_parts_over_the_ends(units):
    domain, values = DOMAINS["one"]
    unit, histories = Unit("id", units=units), [*itertools.combinations_with_replacement(values[:4], 2)]
    for others in ([], [values[1]], [values[1], values[2], values[2]]):
        ids = [f"p{place // 2}" for place in range(len(others))]
        rest = counts_of(domain, others, unit=unit, ids=ids)
        held = [
            counts_of(domain, [*others, *rows], unit=unit, ids=[*ids, "new", "new"]) for rows in histories
        ]
        assert {(True, units)} == {(bool((one >= rest).all()), int((one - rest).sum())) for one in held}
        assert all(np.abs(one - two).sum() <= 2 * units for one, two in itertools.combinations(held, 2))


def test_one_person_with_two_rows_moves_their_own_parts_over_the_ends():
    pairs = list(itertools.product(VALUES, repeat=2))[::5]
    others = [(0.3, 0.2), (3, 0.5)]
    rest = ends_of(others, Unit("id"))
    held = [ends_of([*others, *pair], Unit("id")) for pair in pairs]

    assert {64} == {int((one - rest).sum()) for one in held}
    assert all(((one - rest) >= 0).all() for one in held)  # the others stay where they are
    assert 128 == max(np.abs(one - two).sum() for one, two in itertools.combinations(held, 2))


def by_the_table(honest, columns, parts, axis):
    """Round with a hash that all other records have a say in."""
    cells = [*columns, np.full(len(parts), parts.sum())]
    *held, _, counts = *honest(cells, parts, axis)[0], honest(cells, parts, axis)[1]
    return held, counts


def across_records(honest, columns, parts, owner, offsets, *more):
    """Hash runs with those that lie before them."""
    return honest(columns, parts, owner, np.cumsum(offsets), *more)


@pytest.mark.parametrize(
    ("name", "called", "slip"),
    [("one", "ended", by_the_table), ("two", "ended", by_the_table), ("two", "in_runs", across_records)],
)
def test_a_slip_in_sharing_out_ends_moves_others(monkeypatch, name, called, slip):
    honest = getattr(persons, called)
    monkeypatch.setattr(f"onlineic.data.persons.{called}", lambda *given: slip(honest, *given))
    added, moved = moves(*DOMAINS[name], most=2)

    assert added != {(True, 64)} or max(moved) > 128


def spoiled(spoil):
    """Return `shared_out` with a slip."""
    honest = persons.shared_out

    def slipped(columns, rows, owners, offsets, units):
        return spoil(honest, columns, rows, owners, offsets, units)

    return slipped


def one_too_many(honest, columns, rows, owners, offsets, units):
    return honest(columns, rows, owners, offsets, units + 1)


def by_others(honest, columns, rows, owners, offsets, units):
    """Hash a person with how many rows there are: those of others decide it."""
    return honest(columns, rows, owners, offsets + np.uint64(len(owners)), units)


def all_rows(honest, columns, rows, owners, offsets, units):
    """A part for every row in place of the person's share."""
    return list(columns), np.full(len(owners), units), owners


@pytest.mark.parametrize("slip", [one_too_many, all_rows])
def test_a_slip_in_sharing_out_costs_more(monkeypatch, slip):
    monkeypatch.setattr("onlineic.data.persons.shared_out", spoiled(slip))

    assert largest_loss(64, {"a": (0, 1, 2)}) > 1


def test_a_slip_that_hashes_with_the_table_is_seen_in_the_others(monkeypatch):
    def moved_others():
        tables = [{"new": rows, "a": (0, 1, 2), "b": (0, 1, 1)} for rows in HISTORIES]
        own = [parts_of({"new": rows}, 64) for rows in HISTORIES]
        return {tuple(parts_of(one, 64) - alone) for one, alone in zip(tables, own, strict=True)}

    assert 1 == len(moved_others())
    monkeypatch.setattr("onlineic.data.persons.shared_out", spoiled(by_others))
    assert len(moved_others()) > 1
