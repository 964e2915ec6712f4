"""Two periods with none to two persons: one who comes or goes moves no more than is paid, numbers too."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import ADD_REMOVE, TICK, BlockAccount, Charge, Filter, laplace_charge
from onlineic.errors import BudgetExceededError
from onlineic.ledger import BoughtTables
from onlineic.noise import SimulatedNoise
from onlineic.periods import Periods, PeriodsBook
from onlineic.periods import periods as module
from onlineic.sparse import GumbelSparse
from onlineic.updates import FittedTables

pytestmark = pytest.mark.filterwarnings("ignore::onlineic.errors.WideBoundWarning")
DOMAIN = ic.Domain.of(a=2)
MONTHS = ("2026-01", "2026-02")
PLACES = list(itertools.product(MONTHS, (0, 1)))  # where a record can be
TABLES = [rows for many in range(3) for rows in itertools.combinations_with_replacement(PLACES, many)]
RELEASED = {"2026-01": 5, "2026-02": 9}  # the numbers that every table releases
QUESTIONS = [ic.where(a=0), ~ic.where(a=1), ic.where(a=ic.weights([0.25, 0.75])), ic.marginal("a")]
MOST = 100


class Fixed(SimulatedNoise):
    """Makes the released numbers those of `RELEASED`; all other noise follows from a seed."""

    def __init__(self, rows):
        super().__init__(3)
        self.due = [RELEASED[month] - sum(row[0] == month for row in rows) for month in reversed(MONTHS)]
        self.scale = None

    def discrete_laplace(self, scale, size):
        if self.due and size == 1 and scale == self.scale:
            return np.array([self.due.pop()])
        return super().discrete_laplace(scale, size)


def loaded(rows, month):
    records = {"a": np.array([code for held, code in rows if held == month], int)}
    return ic.PrivateData.from_records(records, DOMAIN, neighbours="add-remove", n_at_most=MOST)


def observed(rows, monkeypatch):
    """Return (gap, how far a neighbour moves it) of each test, noisy tables, and all else that is told."""
    seen = []

    def step(self, state, gap, moved, noise):
        seen.append((gap, moved))
        return state, None

    with monkeypatch.context() as patched:
        patched.setattr(GumbelSparse, "step", step)
        patched.setattr(FittedTables, "update", lambda self, hypothesis, *_: hypothesis)  # guesses stay
        patched.setattr(Periods, "finer", lambda *_: None)  # it tells noisy tables, which are looked at below
        noise = Fixed(rows)
        held = Periods(
            None,
            DOMAIN,
            ic.Budget(1.0, 1e-6),
            levels=("month", "quarter"),
            neighbours="add-remove",
            n_at_most=MOST,
            max_queries=50,
            noise=noise,
        )
        noise.scale = held.book.counting.scale
        for month in MONTHS:
            held.add(month, loaded(rows, month))
        held.add("2026-03", None)
        held.close("2026-Q1")
        for label in held.nodes:
            for question in QUESTIONS:
                held[label].answer(question)
        over = held.over(*MONTHS)
        told = [
            held.book,
            [(held[label].n, held[label].plan) for label in held.nodes],
            [float(over.answer(ic.where(month=month, a=0))) for month in MONTHS],
            [float(over.answer(ic.where(month=month))) for month in MONTHS],
            [float(held.over().answer(ic.where(a=1)))],
            repr(held),
        ]
    tables = []
    for label in held.nodes:
        (bought,) = [one for one in held[label].transcript if isinstance(one, BoughtTables)]
        tables.append([one.values * held[label].n for one in bought.measurements])
        assert ADD_REMOVE == held[label].plan.first_tables.neighbours  # by which its price is known
    return seen, tables, told


def is_alike(one, other):
    return repr(one) == repr(other)


def most_moved(monkeypatch):
    """Return by what part of what is paid a neighbour moves a test, a node's tables in L1 and squared, and
    whether all else that is told is the same."""
    tests, tables, alike = Fraction(0), (0.0, 0.0), True
    known = {rows: observed(rows, monkeypatch) for rows in TABLES}
    for rows, place in itertools.product(TABLES, PLACES):
        more = tuple(sorted((*rows, place)))
        if more not in known:
            continue
        (gaps, values, told), (others, moved_values, also) = known[rows], known[more]
        alike = alike and is_alike(told, also)
        assert len(gaps) == len(others) > 0
        for (gap, moved), (other, again) in zip(gaps, others, strict=True):
            assert moved == again
            tests = max(tests, Fraction(abs(gap - other), moved))
        for node, node_moved in zip(values, moved_values, strict=True):
            for one, two in zip(node, node_moved, strict=True):
                moved = np.abs(one - two).round(9)
                tables = max(tables, (float(moved.sum()), float(np.square(moved).sum())))
    return tests, tables, alike


def test_nobody_moves_a_period_or_a_year_by_more_than_is_paid(monkeypatch):
    assert most_moved(monkeypatch) == (1, (ADD_REMOVE.table_l1(), ADD_REMOVE.table_squared()), True)


def exact_number(data, *_):
    return int(data.exact_counts(ic.where().bind(DOMAIN)))


def exact_weight(exact):
    """A book that weighs periods by how many records there are, and not by what was released."""

    def number(self, blocks):
        return max(1, sum(exact[one] for one in blocks if one in exact))

    return number


def test_an_exact_number_in_the_root_is_seen(monkeypatch):
    monkeypatch.setattr(module, "number_of", exact_number)
    told = [observed(rows, monkeypatch)[2] for rows in (TABLES[0], TABLES[1])]

    assert not is_alike(*told)


def test_an_exact_number_in_a_weight_of_periods_is_seen(monkeypatch):
    told = []
    for rows in (TABLES[1], TABLES[5]):
        exact = {month: sum(row[0] == month for row in rows) for month in MONTHS}
        with monkeypatch.context() as patched:
            patched.setattr(PeriodsBook, "number", exact_weight(exact))
            told.append(observed(rows, monkeypatch)[2][2])

    assert not is_alike(*told)


# -- the account: numbers, months planned by them, and years, by enumeration --

ORDER = Fraction(4)
COUNT, NODE = 0.75, 1.0
LEAST, LAST = 0, 3  # numbers beyond are told as these


def price(epsilon):
    ticks = laplace_charge(ORDER, Fraction(1) / Fraction(epsilon), 1)
    return Charge(Fraction(ticks), "a release", "ticks", ORDER)


def number_told(records):
    """The law of a number of records with discrete Laplace noise, its tails told as two values."""
    q = math.exp(-COUNT)
    return {
        told: (1 - q) / (1 + q) * q ** abs(told - records)
        if LEAST < told < LAST
        else q ** abs(told - records) / (1 + q)
        for told in range(LEAST, LAST + 1)
    }


def bit_told(epsilon, total):
    zero = 1.0 / (1.0 + math.exp(epsilon))
    zero *= math.exp(epsilon if total == 0 else -(total - 1) * epsilon)
    return {0: zero, 1: 1.0 - zero}


def laws(records, paid=True, planned=lambda told, exact: told):
    """The law of what months a and b tell, number first, and then years over both, at what can be paid."""
    found = {}
    steps = (("n", "a"), ("bit", "a"), ("n", "b"), ("bit", "b"), ("bit", "ab"), ("bit", "ab"))

    def told(account, transcript, probability):
        step = len(transcript)
        if step == len(steps):
            found[transcript] = found.get(transcript, 0.0) + probability
            return
        kind, labels = steps[step]
        if kind == "n":
            account = account.begun(labels)
            account = account.drawn(labels, price(COUNT)) if paid else account
            for number, p in number_told(records[labels]).items():
                told(account, (*transcript, number), probability * p)
            return
        epsilon = NODE if step < len(steps) - 1 else COUNT
        if len(labels) == 1 and planned(transcript[-1], records[labels]) > 1:  # a month goes by its number
            epsilon = COUNT
        try:
            account = account.drawn(labels, price(epsilon))
        except BudgetExceededError:
            found[transcript] = found.get(transcript, 0.0) + probability
            return
        for bit, p in bit_told(epsilon, sum(records[one] for one in labels)).items():
            told(account, (*transcript, (epsilon, bit)), probability * p)

    told(BlockAccount(Filter(2 * price(NODE).amount + price(COUNT).amount, "ticks", ORDER)), (), 1.0)
    return found


def divergence(one, other):
    a = float(ORDER)
    if one.keys() != other.keys():
        return math.inf
    return math.log(math.fsum(p**a * other[told] ** (1 - a) for told, p in one.items())) / (a - 1) / TICK


def worst(moves, **options):
    """The largest divergence over the capacity, of tables of none to two records in each of two blocks."""
    tables = [dict(zip("ab", held, strict=True)) for held in itertools.product(range(3), repeat=2)]
    held = [laws(table, **options) for table in tables]
    most = float(2 * price(NODE).amount + price(COUNT).amount)
    return max(
        divergence(held[one], held[other]) / most
        for one, other in itertools.permutations(range(len(tables)), 2)
        if tuple(tables[one][label] - tables[other][label] for label in "ab") in moves
    )


COMES = {(1, 0), (-1, 0), (0, 1), (0, -1)}
MOVES = {(1, -1), (-1, 1)}


def test_numbers_months_and_years_keep_the_capacity_for_one_who_comes_or_goes():
    assert 0.75 < worst(COMES) <= 1.0


def test_one_who_moves_to_another_period_costs_at_most_what_two_steps_do():
    assert 1.0 < worst(MOVES) <= 2.0


def test_a_number_that_nobody_paid_for_is_seen():
    assert worst(COMES, paid=False) > 1.02


def test_a_month_that_is_planned_by_the_exact_number_is_seen():
    assert math.inf == worst(COMES, planned=lambda told, exact: exact)
