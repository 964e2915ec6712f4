"""Tables of none to three records, and persons of none to three rows: one who comes or goes moves no more."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import ADD_REMOVE
from onlineic.domain import Unit
from onlineic.ledger import BoughtTables
from onlineic.noise import SimulatedNoise
from onlineic.queries import Partition
from onlineic.sparse import GumbelSparse
from onlineic.updates import FittedTables

DOMAIN = ic.Domain.of(a=2, b=2)
CELLS = list(itertools.product((0, 1), repeat=2))
TABLES = [rows for many in range(3) for rows in itertools.combinations_with_replacement(CELLS, many)]
TABLES += [((0, 0),) * 3, ((0, 0),) * 4]
COUNTED = 5  # the number that every session releases, whatever the table
QUESTIONS = [
    ic.where(a=0, b=1),
    ~ic.where(a=1, b=1),
    ic.where(a=ic.weights([0.25, 0.75])),
    ~ic.where(a=ic.weights([0.25, 0.75]), b=0),
    ic.where(b=0),
    ic.marginal("a", "b"),
    np.array([0.9, 1.0, 0.7, 0.8]),
]


class Fixed(SimulatedNoise):
    """Makes the released number the same for all tables; all other noise follows from a seed."""

    def __init__(self, records):
        super().__init__(3)
        self._counted = [COUNTED - records]

    def discrete_laplace(self, scale, size):
        if self._counted and size == 1:
            return np.array([self._counted.pop()])
        return super().discrete_laplace(scale, size)


def loaded(rows):
    columns = {"a": np.array([a for a, _ in rows], int), "b": np.array([b for _, b in rows], int)}
    return ic.PrivateData.from_records(columns, DOMAIN, neighbours="add-remove", n_at_most=100)


def observed(rows, monkeypatch):
    """Return (gap, how far a neighbour moves it) of each test, and values and plan of first tables."""
    seen = []

    def step(self, state, gap, moved, noise):
        seen.append((gap, moved))
        return state, None

    with monkeypatch.context() as patched:
        patched.setattr(GumbelSparse, "step", step)
        patched.setattr(FittedTables, "update", lambda self, hypothesis, *_: hypothesis)  # guesses stay
        session = ic.OnlineIC(
            loaded(rows), ic.Budget(1.0, 1e-6), sparse="gumbel", noise=Fixed(len(rows)), max_queries=100
        )
        for question in QUESTIONS:
            session.answer(question)
    assert COUNTED == session.n
    bought = [record for record in session.transcript if isinstance(record, BoughtTables)]
    (tables,) = bought
    return seen, [one.values * COUNTED for one in tables.measurements], session.plan.first_tables


def most_moved(monkeypatch):
    """Return by what part of what is paid a neighbour moves a test, and tables in L1 and squared."""
    tests, tables = Fraction(0), (0.0, 0.0)
    known = {rows: observed(rows, monkeypatch) for rows in TABLES}
    for rows, cell in itertools.product(TABLES, CELLS):
        more = tuple(sorted((*rows, cell)))
        if more not in known:
            continue
        (gaps, values, bought), (others, moved_values, _) = known[rows], known[more]
        assert len(gaps) == len(others) == len(QUESTIONS)
        for (gap, moved), (other, again) in zip(gaps, others, strict=True):
            assert moved == again
            tests = max(tests, Fraction(abs(abs(gap) - abs(other)), moved))
        assert bought.neighbours == ADD_REMOVE  # by which its price is known
        for one, two in zip(values, moved_values, strict=True):
            moved = np.abs(one - two).round(9)
            tables = max(tables, (float(moved.sum()), float(np.square(moved).sum())))
    return tests, tables


def test_no_record_moves_what_is_tested_or_released_by_more_than_is_paid(monkeypatch):
    assert most_moved(monkeypatch) == (1, (ADD_REMOVE.table_l1(), ADD_REMOVE.table_squared()))


def of_range(self, lowest, highest):
    return highest - lowest


def half(self, unit=1):
    return unit // 2


@pytest.mark.parametrize(
    ("name", "slip"),
    [("test", of_range), ("largest_gap", half)],
    ids=["weights move a test by their range", "a cell of a table moves by half"],
)
def test_a_slip_is_seen(monkeypatch, name, slip):
    monkeypatch.setattr(type(ADD_REMOVE), name, slip)

    assert most_moved(monkeypatch)[0] > 1


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("unit", [None, Unit("id"), Unit("id", units=1)])
def test_the_number_of_records_costs_its_share_of_epsilon(monkeypatch, unit, delta):
    drawn = []

    class Written(SimulatedNoise):
        def discrete_laplace(self, scale, size):
            drawn.append((scale, size))
            return super().discrete_laplace(scale, size)

    columns = {"a": [0, 1, 1, 0] * 50, "b": [0, 0, 1, 1] * 50, "id": [*range(100)] * 2}
    data = ic.PrivateData.from_records(columns, DOMAIN, unit=unit, neighbours="add-remove")
    session = ic.OnlineIC(data, ic.Budget(1.0, delta), noise=Written(1), questions=10)
    (scale, size), *_ = drawn
    rest = Fraction(session.plan.sparse.epsilon) * (1 if unit is None else unit.units)

    assert 1 == size  # and a record, or a person, moves it by one
    assert 1 / scale + rest <= 1
    assert 1 / scale + rest > Fraction(999, 1000)
    assert getattr(session.plan.sparse, "delta", 0.0) <= delta


HISTORIES = [rows for many in range(4) for rows in itertools.combinations_with_replacement(range(3), many)]


def parts_of(table, units):
    columns = {
        "id": [person for person, rows in table.items() for _ in rows],
        "x": [row for rows in table.values() for row in rows],
    }
    domain = ic.Domain.of(x=3)
    data = ic.PrivateData.from_records(columns, domain, unit=Unit("id", units=units), neighbours="add-remove")
    return data.exact_counts(Partition(domain, (0,), (np.arange(3),)))


@pytest.mark.parametrize("units", [64, 16, 1])
@pytest.mark.parametrize("others", [{"a": (0,)}, {"a": (0, 1, 2), "b": (2, 2)}])
def test_a_person_who_comes_or_goes_moves_their_own_parts(units, others):
    rest = parts_of(others, units)
    for rows in HISTORIES:
        moved = parts_of({**others, "new": rows}, units) - rest

        assert moved.sum() == units * bool(rows)
        assert (moved >= 0).all()


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_person_of_whom_rows_count_moves_so_many(most):
    domain, unit = ic.Domain.of(x=3), Unit("id", weigh="rows", at_most=most)

    def rows_of(table):
        columns = {
            "id": [person for person, rows in table.items() for _ in rows],
            "x": [row for rows in table.values() for row in rows],
        }
        data = ic.PrivateData.from_records(columns, domain, unit=unit, neighbours="add-remove")
        return data.exact_counts(Partition(domain, (0,), (np.arange(3),)))

    others = {"a": (0, 1, 2), "b": (2, 2)}
    moved = [rows_of({**others, "new": rows}) - rows_of(others) for rows in HISTORIES]

    assert most == unit.moved == unit.sensitivity == max(one.sum() for one in moved)
    assert all((one >= 0).all() and one.sum() <= most for one in moved)
    columns = {"id": [*range(300)] * 2, "x": [0, 1] * 300}
    drawn = []

    class Written(SimulatedNoise):
        def discrete_laplace(self, scale, size):
            drawn.append(scale)
            return super().discrete_laplace(scale, size)

    data = ic.PrivateData.from_records(columns, domain, unit=unit, neighbours="add-remove")
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=Written(1), questions=10)
    assert most / drawn[0] + most * Fraction(session.plan.sparse.epsilon) <= 1


def test_a_pure_count_has_the_law_that_it_is_paid_for():
    scale = Fraction(20)
    ratio = math.exp(1 / scale)
    weights = {place: math.exp(-abs(place) / scale) for place in range(-400, 401)}

    assert max(weights[at] / weights[at + 1] for at in range(-400, 400)) <= ratio * (1 + 1e-12)
