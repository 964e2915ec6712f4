"""What first tables cost, by summation of the law that they are released with, against their charge."""

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
import onlineic.plan.planning as plans
import onlineic.plan.purchase as first_tables
from onlineic.accounting import REPLACE_ONE, TICK, gaussian_charge
from onlineic.data import PrivateData
from onlineic.ledger import BoughtTables
from onlineic.noise.sources import SIGMA_LIMIT
from support.noise import Wrapped
from support.sessions import begun, settled

DOMAIN = ic.Domain.of(a=["x", "y", "z"], b=["no", "yes"], c=["u", "v"])
COUNTS = np.array([9, 0, 4, 1, 0, 0, 7, 2, 3, 0, 0, 5]).reshape(3, 2, 2)
MOVED = COUNTS - np.eye(1, 12, 0, dtype=np.int64).reshape(3, 2, 2)
MOVED[2, 1, 1] += 1  # another value of every attribute: two blocks of every table


class Constant(Wrapped):
    """The same number for every value of the noise, whose scales are kept."""

    def __init__(self, value):
        super().__init__(1)
        self.value, self.sigmas = value, []

    def discrete_gaussian(self, sigma, size):
        self.sigmas.append((sigma, size))
        return np.full(size, self.value, np.int64)


def released(counts, epsilon, value):
    """The blocks of all first tables, with a constant in place of noise; the scales asked for; the charge."""
    noise = Constant(value)
    budget = ic.Budget(epsilon, 1e-6)
    rule = settled(DOMAIN, int(counts.sum()), budget)
    session = begun(ic.OnlineIC(PrivateData(counts, DOMAIN), budget, noise=noise, purchases=rule))
    record, *_ = [record for record in session.transcript if isinstance(record, BoughtTables)]
    drawn = noise.sigmas[: len(record.measurements)]
    return np.concatenate([one.values for one in record.measurements]), drawn, record, session


def cost_and_charge(epsilon):
    """(Renyi divergence of the session's order between two neighbours' tables, what they were charged)."""
    here, sigmas, record, session = released(COUNTS, epsilon, 0)
    there, ahead = released(MOVED, epsilon, 0)[0], released(COUNTS, epsilon, 1)[0]
    order = float(session.plan.sparse.order)
    shifts = (there - here) / (ahead - here)  # in units of what is drawn
    scales = np.repeat([sigma for sigma, _ in sigmas], [size for _, size in sigmas])
    divergence = 0.0
    for sigma, shift in zip(scales.tolist(), shifts.tolist(), strict=True):
        step = round(shift)
        assert abs(shift - step) < 1e-6
        reach = math.ceil(abs(step) * order + 12 * sigma)
        z = np.arange(-reach, reach + 1)
        logs = -(z**2) / (2.0 * sigma**2)
        normal = np.logaddexp.reduce(logs)
        terms = order * (logs - normal) + (1.0 - order) * (-((z - step) ** 2) / (2.0 * sigma**2) - normal)
        divergence += float(np.logaddexp.reduce(terms)) / (order - 1.0)
    return divergence, float(record.charge.amount * TICK)


@pytest.mark.parametrize("epsilon", [0.5, 5.0, 20.0])
def test_gaussian_tables_in_parts_of_a_record_cost_their_charge(epsilon):
    """Two blocks of every table move by a record, of as many parts as its scale's denominator."""
    divergence, charge = cost_and_charge(epsilon)

    assert divergence <= charge * (1.0 + 1e-9)
    assert divergence > 0.98 * charge


def test_a_price_whose_sensitivity_is_one_part_of_a_record_is_found(monkeypatch):
    def forgotten(order, sigma, squared):
        return gaussian_charge(order, sigma, REPLACE_ONE.table_squared())

    monkeypatch.setattr(first_tables.Purchase, "__attrs_post_init__", lambda _: None)  # a second guard
    monkeypatch.setattr(first_tables, "gaussian_charge", forgotten)
    divergence, charge = cost_and_charge(5.0)

    assert divergence > 4.0 * charge


def test_noise_of_as_many_parts_as_its_scale_has_records_is_found(monkeypatch):
    measure = first_tables.Purchase.measure

    def narrow(self, counts, noise, n):
        class Narrow(Wrapped):
            def discrete_gaussian(self, sigma, size):
                return noise.discrete_gaussian(max(1, sigma // first_tables.RECORD_PARTS), size)

        return measure(self, counts, Narrow(1), n)

    monkeypatch.setattr(first_tables.Purchase, "measure", narrow)
    divergence, charge = cost_and_charge(5.0)

    assert divergence > 4.0 * charge


@pytest.mark.parametrize("epsilon", [0.5, 5.0, 20.0])
def test_the_noise_of_a_table_is_the_least_that_its_share_pays(epsilon):
    session = released(COUNTS, epsilon, 0)[3]
    order, parts = session.plan.sparse.order, first_tables.RECORD_PARTS

    def price(scale):
        sigma, unit = scale.as_integer_ratio()
        return Fraction(gaussian_charge(order, Fraction(sigma), 2 * unit**2))  # two blocks of a table

    for scale in session.plan.first_tables.scales:
        assert scale == first_tables.least_gaussian(order, price(scale), REPLACE_ONE)
        assert scale > Fraction(1, parts)
        assert parts % scale.denominator == 0
        assert price(scale - Fraction(1, parts)) > price(scale)


def test_a_share_that_pays_for_no_drawable_noise_buys_no_table():
    shares = map(Fraction, ("3", "15/4", "2", "11/4", "1/2"))  # ticks, of which parts buy nothing
    scales = [first_tables.least_gaussian(Fraction(40), share, REPLACE_ONE) for share in shares]

    assert 0.91 < scales[0] * first_tables.RECORD_PARTS / SIGMA_LIMIT < 0.92
    assert scales[0] == scales[1]
    assert [None, None, None] == scales[2:]


# -- one table of all cells --------------------------------------------------------------------------------


def cells_and_charge(counts, budget):
    """(blocks without noise, scale drawn, charge, mechanism) of a session that starts from all cells."""
    drawn = []

    class Still(Wrapped):
        def discrete_laplace(self, scale, size):
            drawn.append((scale, size))
            return np.zeros(size, np.int64) if size == DOMAIN.size else super().discrete_laplace(scale, size)

    session = ic.OnlineIC(PrivateData(counts, DOMAIN), budget, noise=Still(1), max_queries=1_000)
    session.answer(ic.where(a="x"))
    (record,) = [record for record in session.transcript if isinstance(record, BoughtTables)]
    assert (DOMAIN.size,) == record.measurements[0].values.shape
    return record.measurements[0].values, drawn[0][0], record.charge.amount, session.plan.sparse


def laplace_divergence(scale, order, shift):
    """Renyi divergence of discrete Laplace noise from itself, moved: the loss itself where no order is."""
    q = math.exp(-1.0 / scale)
    if order is None:
        return abs(shift) / scale
    z = np.arange(-math.ceil(60 * scale), math.ceil(60 * scale) + 1)
    law = np.log((1 - q) / (1 + q)) - np.abs(z) / scale
    moved = np.log((1 - q) / (1 + q)) - np.abs(z - shift) / scale
    return float(np.logaddexp.reduce(order * law + (1.0 - order) * moved)) / (order - 1.0)


def cost_of_cells(budget):
    counts, moved = 2000 * COUNTS, 2000 * COUNTS
    moved = moved + (MOVED - COUNTS)
    here, scale, charge, sparse = cells_and_charge(counts, budget)
    there = cells_and_charge(moved, budget)[0]
    shifts = np.rint((there - here) * counts.sum()).astype(int)
    order = None if budget.pure else float(sparse.order)
    cost = sum(laplace_divergence(float(scale), order, shift) for shift in shifts[shifts != 0].tolist())
    return cost, float(charge * (1 if budget.pure else TICK))


def halve(monkeypatch):
    """Let what is settled have half the noise of its charge."""
    made = plans.settled_tables

    def halved(*arguments):
        tables = made(*arguments)
        return attrs.evolve(tables, scales=tuple(scale / 2 for scale in tables.scales))

    monkeypatch.setattr(first_tables.Purchase, "__attrs_post_init__", lambda _: None)  # a second guard
    monkeypatch.setattr(plans, "settled_tables", halved)


# -- levels of one attribute -------------------------------------------------------------------------------

LONG = ic.Domain.of(x=range(400))


def cost_of_levels(budget):
    """(cost of the levels that are bought to two records that differ everywhere, their charge)."""
    drawn = []

    class Still(Wrapped):
        def discrete_laplace(self, scale, size):
            drawn.append(scale)
            return super().discrete_laplace(scale, size)

    counts = np.full(400, 5, np.int64)
    session = ic.OnlineIC(PrivateData(counts, LONG), budget, noise=Still(1), max_queries=1_000)
    session.answer(ic.where(x=7))
    (record,) = [record for record in session.transcript if isinstance(record, BoughtTables)]
    order = None if budget.pure else float(session.plan.sparse.order)
    scales = [float(scale) for scale in drawn[: len(record.measurements)]]
    cost = sum(2 * laplace_divergence(scale, order, 1) for scale in scales)  # two blocks of each
    return cost, float(record.charge.amount * (1 if budget.pure else TICK))


CELLS = [ic.Budget(0.5, 1e-6), ic.Budget(0.5), ic.Budget(3.0, 1e-6), ic.Budget(3.0)]
LEVELS = [ic.Budget(0.5, 1e-9), ic.Budget(0.5), ic.Budget(3.0, 1e-9), ic.Budget(1.0)]
BOUGHT = [(cost_of_cells, CELLS), (cost_of_levels, LEVELS)]
EACH = [(one, budget) for one, budgets in BOUGHT for budget in budgets]


@pytest.mark.parametrize(
    ("cost_of", "budget"), [(one, budget) for one, budgets in BOUGHT for budget in budgets]
)
def test_all_cells_and_levels_cost_what_they_are_charged(cost_of, budget):
    cost, charge = cost_of(budget)

    assert 0.98 * charge < cost <= charge * (1.0 + 1e-9)


@pytest.mark.parametrize(("cost_of", "budgets"), [(one, budgets[:2]) for one, budgets in BOUGHT])
def test_tables_at_half_the_noise_of_their_charge_are_found(monkeypatch, cost_of, budgets):
    halve(monkeypatch)
    for budget in budgets:
        cost, charge = cost_of(budget)

        assert cost > 1.5 * charge
