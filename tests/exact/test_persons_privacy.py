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


@pytest.mark.parametrize("others", [[], [(0.3, 0.2)], [(0.3, 0.2), (3, 0.5)]])
def test_one_record_moves_its_own_parts_over_the_ends(others):
    rest = ends_of(others) if others else np.zeros(8, np.int64)
    alone = [ends_of([row]) for row in VALUES]
    held = [ends_of([*others, row]) for row in VALUES]

    assert all(np.array_equal(one, rest + own) for one, own in zip(held, alone, strict=True))
    assert {64} == {int(own.sum()) for own in alone}
    assert 128 == max(np.abs(one - two).sum() for one, two in itertools.combinations(held, 2))


def test_one_person_with_two_rows_moves_their_own_parts_over_the_ends():
    pairs = list(itertools.product(VALUES, repeat=2))[::5]
    others = [(0.3, 0.2), (3, 0.5)]
    rest = ends_of(others, Unit("id"))
    held = [ends_of([*others, *pair], Unit("id")) for pair in pairs]

    assert {64} == {int((one - rest).sum()) for one in held}
    assert all(((one - rest) >= 0).all() for one in held)  # the others stay where they are
    assert 128 == max(np.abs(one - two).sum() for one, two in itertools.combinations(held, 2))


def test_a_slip_that_draws_ends_across_records_moves_others(monkeypatch):
    honest = persons.ended

    def across(fine, offsets, axis, kind):
        return honest(fine, np.cumsum(offsets), axis, kind)

    monkeypatch.setattr("onlineic.data.persons.ended", across)
    others = [(0.3, 0.2), (3, 0.5)]
    left = {tuple(ends_of([row, *others]) - ends_of([row])) for row in VALUES}
    assert len(left) > 1


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
