"""What tables bought by what is asked cost, against their charges, and that nothing private chooses them."""

import itertools
import math
from fractions import Fraction
from functools import cache

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import TICK
from onlineic.data import PrivateData
from onlineic.ledger import BoughtTables, Forfeited
from onlineic.plan.demand import DemandPurchases
from onlineic.session.core import Core
from support.noise import Released
from support.sessions import sold_quieter

DOMAIN = ic.Domain.of(a=6, b=5, c=4)
COUNTS = np.full(DOMAIN.shape, 20, np.int64)
MOVED = COUNTS.copy()
MOVED[0, 0, 0] -= 1
MOVED[-1, -1, -1] += 1  # another value of every attribute: two blocks of every table


def instalments(counts, noise, delta=1e-9):
    """(releases of tables, session) of six questions, every test of which is easy."""
    rule = DemandPurchases(rent=0, after=(1, 4), parts=(Fraction(1, 2), Fraction(1)))
    settings = {"purchases": rule, "threshold": 0.9}
    session = ic.OnlineIC(PrivateData(counts, DOMAIN), ic.Budget(1.0, delta), noise=noise, **settings)
    for code in range(5):
        session.answer(ic.where(a=code, b=ic.between(0, 2)))
    session.answer(ic.where(b=1, c=2))
    return [record for record in session.transcript if isinstance(record, BoughtTables)], session


def cost_and_charge():
    """Renyi divergence of each instalment between two neighbours, over its charge.

    It is that of normals, which dominates that of discrete ones (theory 3.3).
    """
    records, session = instalments(COUNTS, Released())
    order, n = float(session.plan.sparse.order), int(COUNTS.sum())
    ratios = []
    for record in records:
        divergence = 0.0
        for one in record.measurements:
            here, there = (PrivateData(counts, DOMAIN).exact_counts(one.target) for counts in (COUNTS, MOVED))
            divergence += order * float((there - here) @ (there - here)) / (2.0 * (one.scale * n) ** 2)
        ratios.append(divergence / float(record.charge.amount * TICK))
    return ratios


def pure_cost_and_charge():
    """The same where delta = 0: the loss in epsilon of Laplace tables, behind tests of a kept threshold."""
    records, session = instalments(COUNTS, Released(), 0.0)
    n, ratios = int(COUNTS.sum()), []
    for record in records:
        loss = 0.0
        for one in record.measurements:
            here, there = (PrivateData(counts, DOMAIN).exact_counts(one.target) for counts in (COUNTS, MOVED))
            loss += float(np.abs(there - here).sum()) * math.sqrt(2.0) / (one.scale * n)
        ratios.append(loss / float(record.charge.amount))
    forfeited = [record for record in session.transcript if isinstance(record, Forfeited)]
    return ratios, forfeited, session.plan.sparse.start_charge()


def same_choices():
    """Whether a neighbour that releases the same numbers buys the same tables at the same scales."""
    noise = Released()
    records, _ = instalments(COUNTS, noise)
    data, n = [PrivateData(counts, DOMAIN) for counts in (COUNTS, MOVED)], int(COUNTS.sum())
    released = [one for record in records for one in record.measurements]
    held = []
    for one, (sigma, drawn) in zip(released, noise.drawn[: len(released)], strict=True):
        here, there = (table.exact_counts(one.target) for table in data)
        held.append(drawn + (here - there) * round(sigma / (one.scale * n)))  # in parts of a record
    other, _ = instalments(MOVED, Released(held))
    again = [one for record in other for one in record.measurements]
    return [(one.target.key, one.scale) for one in released] == [(one.target.key, one.scale) for one in again]


def test_every_instalment_costs_its_charge():
    ratios = cost_and_charge()

    assert len(ratios) >= 2
    assert all(0.9 < ratio <= 1.0 for ratio in ratios)


def test_pure_instalments_cost_their_charge_and_pay_the_threshold():
    ratios, forfeited, start = pure_cost_and_charge()

    assert len(ratios) >= 2
    assert all(0.99 < ratio <= 1.0 + 1e-9 for ratio in ratios)
    assert [("bought", start.amount)] == [(one.reason, one.charge.amount) for one in forfeited]


@pytest.mark.parametrize("paid", [True, False], ids=["as it is", "the threshold is not paid"])
def test_tables_between_tests_of_one_threshold_lose_what_is_charged(paid):
    """Every transcript of: easy, a table, easy, hit; the answers of two neighbours lie one apart.

    The sum over the kept threshold is made exactly. The planted slip charges tests and tables alone.
    """
    first, second, table, threshold = Fraction(2), Fraction(3), Fraction(4), 4
    kept = np.exp(-np.arange(200) / float(first))

    def above(gap):
        """Chance that a test of this gap is a hit, by the kept noise."""
        need = np.maximum(0, threshold + np.arange(200) - gap)
        return np.exp(-need / float(second))

    @cache
    def chance(gaps):
        easy, again, hit = gaps
        return float((kept * (1.0 - above(easy)) * (1.0 - above(again)) * above(hit)).sum())

    charged = 1 / table + 2 / second + (1 / first if paid else 0)
    told = {(abs(released + 1) - abs(released)) / float(table) for released in range(-3, 4)}
    worst = 0.0
    for gaps in itertools.product(range(-3, 4), repeat=3):
        for moves in itertools.product((-1, 0, 1), repeat=3):
            other = tuple(gap + move for gap, move in zip(gaps, moves, strict=True))
            lost = math.log(chance(gaps) / chance(other))
            worst = max(worst, *(abs(lost + one) for one in told))

    assert (worst <= charged + 1e-9) is paid


def test_instalments_of_less_noise_than_they_are_charged_for_are_found(monkeypatch):
    sold_quieter(monkeypatch)

    assert max(cost_and_charge()) > 1.1


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("private", [False, True], ids=["as it is", "reads a count"])
def test_tables_are_chosen_by_what_was_released_alone(monkeypatch, private):
    """The planted slip buys noisier tables where a count of the table is small."""
    if private:
        begin, named = Core.__init__, DemandPurchases.next

        def looking(self, data, *others):
            count = int(data.exact_counts(ic.where(a=0, b=0, c=0).bind(DOMAIN)))

            def chosen(rule, facts):
                tables = named(rule, facts)
                if tables is None or count >= 20:
                    return tables
                return attrs.evolve(tables, scales=tuple(scale * 2 for scale in tables.scales))

            monkeypatch.setattr(DemandPurchases, "next", chosen)
            begin(self, data, *others)

        monkeypatch.setattr(Core, "__init__", looking)

    assert same_choices() != private
