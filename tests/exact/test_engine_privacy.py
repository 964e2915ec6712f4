"""The exact law of whole default sessions on tiny tables, and the claims they make.

Every pattern of hits is walked by noise that forces each outcome a hair from its boundary, so that the law of
each test is the session's own. All else that depends on the data is discrete Gaussian noise, whose scales and
fresh draws the same noise writes down: the law of the transcript is their product. The rule is kept from
moving the hypothesis, which is post-processing, so that guesses are the same in all patterns.
"""

import itertools
import math
from fractions import Fraction
from functools import reduce

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import TICK, Charge
from onlineic.data import PrivateData
from onlineic.ledger import BoughtTables, Hard, MemoryLedger, Single
from onlineic.noise import Noise, SimulatedNoise
from onlineic.plan import DemandPurchases, Spent
from onlineic.plan.purchase import RECORD_PARTS, Purchase
from onlineic.queries import BoundMarginal, Marginal, Measurement, Partition, Query, marginal
from onlineic.session import Quota
from onlineic.session.core import Core
from onlineic.session.prices import Cover
from onlineic.session.read_guard import ReadGuard
from onlineic.sparse import GumbelSparse
from onlineic.updates import FittedTables, MaximumEntropy
from support.sessions import all_spent

pytestmark = pytest.mark.usefixtures("listening")
DOMAIN = ic.Domain.of(a=2, b=2)
CORNER = ic.where(a=0, b=0)
HAIR = 2**30  # of 2^64: how near its boundary each outcome is forced


class Director(Noise):
    """Forces the outcome of each test by one word, and writes down what is asked and whether it was paid."""

    def __init__(self, ledger, chances, pattern):
        self.ledger, self.chances, self.pattern = ledger, chances, pattern
        self.tests, self.gaussians, self.unpaid = 0, [], 0
        self.bought = set()  # places of questions that were answered without a test

    @property
    def simulated(self):
        return True

    def words(self, size):
        self.unpaid += self.ledger.reserved is None
        assert size == 1
        boundary = math.floor(math.exp(-self.chances[self.tests]) * 2.0**64)
        hit = self.pattern[self.tests]
        self.tests += 1
        return np.array([boundary + HAIR if hit else boundary - HAIR], np.uint64)

    def discrete_gaussian(self, sigma, size):
        self.unpaid += self.ledger.reserved is None
        draw = 3 + np.arange(size) * 2
        self.gaussians.append((sigma, draw))
        return draw

    geometric = discrete_laplace = unread = None


Director.__abstractmethods__ = frozenset()


@attrs.frozen
class Setting:
    """A stream of distinct questions to one session."""

    counts: tuple
    other: tuple
    questions: tuple
    budget: ic.Budget = attrs.field(factory=lambda: ic.Budget(2.0, 0.01))
    sparse: GumbelSparse | None = None
    settings: dict = attrs.field(factory=dict)
    quotas: tuple = ()  # by question: who asks, and the share of the capacity that they may use up


def gap_of(question, counts, guesses):
    """Largest gap of a question in records, from first principles."""
    table = np.array(counts).reshape(2, 2)
    if isinstance(question, Marginal):
        bound = question.bind(DOMAIN)
        blocks = PrivateData(table, DOMAIN).exact_counts(bound.partition)
        return max(abs(int(blocks[cell]) - guesses[cell]) for cell in bound.cells.ravel() if cell >= 0)
    query = question.bind(DOMAIN)
    return abs(int((query.weights() * table).sum()) - guesses) / (1 << query.grid_bits)


def hazard(question, counts, sparse):
    """A of a test: e^((gap - T)/b), the hypothesis uniform for ever."""
    n = sum(counts)
    if isinstance(question, Marginal):
        target = question.bind(DOMAIN).partition
        guesses = tuple(round(n / target.blocks) for _ in range(target.blocks))
    else:
        query = question.bind(DOMAIN)
        guesses = round(n * int(query.weights().sum()) / 4)
    units = Fraction(gap_of(question, counts, guesses)) * (1 << sparse.grid_bits)
    return math.exp((units - sparse.threshold) / sparse.scale)


def play(setting, counts, pattern):
    """Run one session through a pattern: (session, director, answers)."""
    ledger = MemoryLedger()
    data = PrivateData(np.array(counts).reshape(2, 2), DOMAIN)
    director = Director(ledger, None, pattern)
    session = ic.OnlineIC(
        data,
        setting.budget,
        sparse=setting.sparse,
        release="partition",
        ledger=ledger,
        noise=director,
        **({"hard_answers": 2, "max_queries": 4} | setting.settings),
    )
    director.chances, answers, spending = [], [], session.plan.spending
    for question in setting.questions:
        sparse = spending.at(reduce(spending.after, ledger.records(), Spent()))  # it is in the record
        director.chances.append(hazard(question, counts, sparse))
        asker, tested = session, director.tests
        if setting.quotas:
            name, share = setting.quotas[len(answers)]
            asker = session.paid_by(Quota(name, Fraction(share) * session.plan.sparse.capacity))
        answers.append(asker.answer(question))
        if director.tests == tested:
            director.chances.pop()
            director.bought |= {len(answers) - 1} if answers[-1].status != "untested" else set()
    return session, director, answers


def in_parts(target, exact, unit):
    """Exact counts in so many parts of a record, rounded down: those of a query are in its own grid."""
    return exact * unit >> (target.grid_bits if isinstance(target, Query) else 0)


def single_price(session, record, n):
    """What is bought by itself costs at least: of how far a replaced record moves its blocks."""
    target, moved = record.measurement.target, 1
    if isinstance(target, Partition):
        moved = 2  # two blocks, by one each
    elif target.grid_bits:
        moved = (float(target.weights().max() - target.weights().min()) / (1 << target.grid_bits)) ** 2
    sigma = record.measurement.scale * n
    return float(session.plan.sparse.order) * moved / (2 * sigma**2) / float(TICK) * (1 - 1e-9)


def checked(setting, counts, pattern):
    """Play, and check that all that is released is a fresh draw on the exact counts, paid before."""
    session, director, answers = play(setting, counts, pattern)
    n, data = sum(counts), PrivateData(np.array(counts).reshape(2, 2), DOMAIN)
    released, spent, spending = [], Spent(), session.plan.spending
    for record in session.transcript:
        sparse, spent = spending.at(spent), spending.after(spent, record)
        if isinstance(record, BoughtTables):
            released += record.measurements
        if isinstance(record, Single):
            released.append(record.measurement)
            assert record.charge.amount >= single_price(session, record, n)
        if isinstance(record, Hard):
            released.append(record.measurement)
            tested = record.query.partition if isinstance(record.query, BoundMarginal) else record.query
            for target in (record.measurement.target, tested):
                if isinstance(target, Query) == isinstance(record.measurement.target, Query):
                    assert record.charge.amount >= sparse.price(target).amount
    assert 0 == director.unpaid
    assert len(released) == len(director.gaussians)
    for measurement, (sigma, draw) in zip(released, director.gaussians, strict=True):
        exact = np.atleast_1d(data.exact_counts(measurement.target))
        unit = round(sigma / (measurement.scale * n))  # parts of a record in which the noise is drawn
        assert np.array_equal(
            in_parts(measurement.target, exact, unit) + draw, np.rint(measurement.values * n * unit)
        )
        assert sigma / (n * unit) == pytest.approx(measurement.scale, rel=1e-14)
    statuses = [one.status for place, one in enumerate(answers) if place not in director.bought]
    assert statuses == ["hard" if hit else "easy" for hit in pattern[: len(statuses)]] or (
        "untested" in statuses
    )
    assert all_spent(session) <= session.plan.sparse.capacity
    return session, director.chances, released, [s for s in statuses if s != "untested"]


def shifts(released, counts, other):
    """(sigma, shift) of every released number that a replaced record moves, in parts of a record."""
    n, result = sum(counts), []
    for measurement in released:
        left, right = (
            np.atleast_1d(PrivateData(np.array(c).reshape(2, 2), DOMAIN).exact_counts(measurement.target))
            for c in (counts, other)
        )
        sigma = round(measurement.scale * n * RECORD_PARTS)
        left, right = (in_parts(measurement.target, exact, RECORD_PARTS) for exact in (left, right))
        result += [(sigma, int(step)) for step in left - right if step]
    return result


def walk(setting):
    """Every transcript up to the released numbers: [(log P, log Q, shifts)], and the session's plan."""
    rows = {}
    plan = None
    for pattern in itertools.product((False, True), repeat=len(setting.questions)):
        laws = []
        for counts in (setting.counts, setting.other):
            session, chances, released, tested = checked(setting, counts, pattern)
            log = 0.0
            for chance, status in zip(chances, tested, strict=False):
                log += math.log(-math.expm1(-chance)) if status == "hard" else -chance
            laws.append((log, released, tuple(tested), session.plan))
        (left, released, tested, plan), (right, _, again, other_plan) = laws
        assert (tested, plan.sparse, plan.first_tables) == (again, other_plan.sparse, other_plan.first_tables)
        rows[tested] = (left, right, shifts(released, setting.counts, setting.other))
    total = sum(math.exp(row[0]) for row in rows.values())
    assert total == pytest.approx(1.0, abs=1e-9)
    return list(rows.values()), plan


def renyi(rows, order):
    """ln sum P^a Q^(1-a) / (a - 1) of the whole transcript, discrete Gaussians in closed form at integers."""
    logs = [
        order * p
        + (1 - order) * q
        + sum(order * (order - 1) * step**2 / (2 * sigma**2) for sigma, step in moved)
        for p, q, moved in rows
    ]
    top = max(logs)
    return (top + math.log(sum(math.exp(log - top) for log in logs))) / (order - 1)


def loss_law(moved, grid):
    """Distribution of sum ln P/Q of shifted discrete Gaussians, each loss rounded up to the grid."""
    start, mass = 0, np.ones(1)
    for sigma, step in moved:
        x = np.arange(-14 * sigma, 14 * sigma + 1)
        law = np.exp(-(x.astype(float) ** 2) / (2 * sigma**2))
        law /= law.sum()
        cells = np.ceil((step**2 + 2 * step * x) / (2 * sigma**2) / grid).astype(int)
        low = int(cells.min())
        binned = np.bincount(cells - low, law)
        start, mass = start + low, np.convolve(mass, binned)
    return (start + np.arange(len(mass))) * grid, mass


def hockey_stick(rows, epsilon, grid=2.0**-7):
    """sum (P - e^epsilon Q)+, at most 1/128 a number too pessimistic in the loss."""
    total = 0.0
    for p, q, moved in rows:
        losses, mass = loss_law(moved, grid)
        total += math.exp(p) * float(mass @ np.maximum(0.0, -np.expm1(epsilon - losses - (p - q))))
    return total


@pytest.fixture(autouse=True)
def _hypothesis_stays(monkeypatch):
    for rule in (FittedTables, MaximumEntropy):  # the latter over a prior
        monkeypatch.setattr(rule, "update", lambda self, hypothesis, measurements, alpha: hypothesis)


TABLES = {"purchases": DemandPurchases(rent=Fraction(0))}  # with the first question, and no numbers
XOR = ic.dense(np.array([[1.0, 0.0], [0.0, 1.0]]))
SETTINGS = {
    "first tables, corner, side": Setting(
        (20, 8, 6, 10), (19, 8, 6, 11), (CORNER, ic.where(a=0), XOR), settings=TABLES
    ),
    "first tables, table and number": Setting(
        (12, 8, 12, 8), (11, 9, 12, 8), (marginal("a", "b"), ic.where(b=1)), settings=TABLES
    ),
    "numbers by themselves": Setting((20, 8, 6, 10), (19, 8, 6, 11), (CORNER, ic.where(a=0), XOR)),
    "a table by itself, and a number": Setting(
        (12, 8, 12, 8), (11, 9, 12, 8), (marginal("a", "b"), ic.where(b=1))
    ),
    "fractional": Setting(
        (30, 1, 1, 0),
        (29, 1, 1, 1),
        (ic.dense(np.array([[1.0, 0.5], [0.25, 0.0]])), CORNER),
        settings=TABLES,
    ),
    "fractional, by themselves": Setting(
        (30, 1, 1, 0),
        (29, 1, 1, 1),
        (ic.dense(np.array([[1.0, 0.5], [0.25, 0.0]])), CORNER),
    ),
    "near the threshold": Setting(
        (24, 4, 4, 4),
        (23, 5, 4, 4),
        (CORNER, ic.where(a=0), marginal("a", "b")),
        ic.Budget(1.0, 0.05),
        settings=TABLES,
    ),
    "no first tables": Setting(
        (20, 8, 6, 10),
        (19, 8, 6, 11),
        (CORNER, ic.where(a=0), XOR),
        ic.Budget(2.0, 0.01),
        settings={"prior": ic.Histogram(DOMAIN)},
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_whole_transcript_keeps_the_renyi_capacity_and_the_delta_of_the_claim(name):
    setting = SETTINGS[name]
    for counts, other in ((setting.counts, setting.other), (setting.other, setting.counts)):
        rows, plan = walk(attrs.evolve(setting, counts=counts, other=other))
        spent = renyi(rows, float(plan.sparse.order))

        assert spent <= plan.drawn.capacity * float(TICK) * (1 + 1e-9)  # first tables at what they cost
        assert spent >= 0.05 * plan.sparse.capacity * float(TICK)  # not vacuous
        assert hockey_stick(rows, setting.budget.epsilon) <= setting.budget.delta


QUOTAS = {  # a policy is an adversary too: who may ask follows from the record
    "one is empty at once": (("a", 1), ("b", 0), ("a", 1)),
    "one hit empties each": (("a", "1/4"), ("a", "1/4"), ("b", "1/4")),
}


@pytest.mark.parametrize("name", QUOTAS)
def test_the_transcript_of_askers_with_quotas_keeps_the_capacity_of_the_claim(name):
    for start in ("first tables, corner, side", "numbers by themselves", "no first tables"):
        setting = SETTINGS[start]
        rows, plan = walk(attrs.evolve(setting, quotas=QUOTAS[name]))

        assert renyi(rows, float(plan.sparse.order)) <= plan.drawn.capacity * float(TICK) * (1 + 1e-9)
        assert hockey_stick(rows, setting.budget.epsilon) <= setting.budget.delta


def test_an_empty_quota_reads_nothing_and_testing_before_it_is_looked_at_is_found():
    """The slip: test first, hide the hit of an empty quota as untested, and give back what was set aside."""
    setting = attrs.evolve(SETTINGS["no first tables"], quotas=(("a", 0),) * 3)
    session, director, answers = play(setting, setting.counts, (True, True, True))

    assert (0, ["untested"] * 3) == (director.tests, [answer.status for answer in answers])
    assert 0 == all_spent(session)

    sparse, order = session.plan.sparse, float(session.plan.sparse.order)
    near, far = (math.exp(-hazard(CORNER, counts, sparse)) for counts in (setting.counts, setting.other))
    told = sum(p**order * q ** (1 - order) for p, q in ((near, far), (1 - near, 1 - far)))
    one = math.log(told) / (order - 1)  # of each hidden test; asked again, it is tested again
    assert 2000 * one > sparse.capacity * float(TICK)


def laplace_divergence(order, scale, step):
    """Renyi divergence of a discrete Laplace from the one that is moved by `step`."""
    z = np.arange(-int(700 * scale), int(700 * scale) + step + 1)
    log_mass, log_moved = -np.abs(z) / scale, -np.abs(z - step) / scale
    moment = np.exp(order * log_mass + (1 - order) * log_moved).sum() * math.tanh(0.5 / scale)
    return math.log(moment) / (order - 1)


def all_hard(count, other=(999, 0, 0, 1), **settings):
    """Hits of `count` questions far above the threshold: (what they cost at the order, capacity)."""
    questions = [CORNER, ic.where(a=0), ic.where(b=0), XOR, marginal("a", "b"), marginal("b", "a")]
    questions += [ic.where(a=0, b=1), ic.where(a=1, b=0), ic.where(a=1, b=1), marginal("a"), marginal("b")]
    questions += [ic.dense(np.array([[1.0, 0.0], [0.0, share / 64]])) for share in range(1, 60)]
    setting = Setting((1000, 0, 0, 0), other, tuple(questions[:count]), **settings)
    ledger = MemoryLedger()
    session = ic.OnlineIC(
        PrivateData(np.array(setting.counts).reshape(2, 2), DOMAIN),
        setting.budget,
        sparse=setting.sparse,
        release="partition",
        ledger=ledger,
        noise=SimulatedNoise(1),
        **({"hard_answers": 2, "max_queries": 4} | setting.settings),
    )
    session.answer_many(setting.questions)
    released = []
    order, bought = session.plan.sparse.order, session.plan.first_tables
    pure = bought is not None and bought.pure
    for record in session.transcript:
        released += record.measurements if isinstance(record, BoughtTables | Single) and not pure else []
        released += [record.measurement] if isinstance(record, Hard) else []
    # two blocks of the table of all cells move by the records that were replaced
    laplace = 2 * laplace_divergence(float(order), float(bought.scales[0]), 1) if pure else 0.0
    cost = laplace + sum(
        float(order) * step**2 / (2 * sigma**2)
        for sigma, step in shifts(released, setting.counts, setting.other)
    )
    return cost, float(session.plan.drawn.capacity * TICK)  # first tables at what they cost


def fine():
    """Answers of half the tests' noise: nearly all of a hit's price is its table. No prices are kept yet."""
    return GumbelSparse(
        n=1000,
        epsilon=4.0,
        delta=0.01,
        order=Fraction(3),
        scale=Fraction(8 << 6),
        threshold=12 << 6,
        grid_bits=6,
        ratio=Fraction(1, 2),
    )


def test_tables_of_all_paid_hits_together_stay_within_the_capacity():
    for settings in ({}, {"sparse": fine(), "budget": ic.Budget(4.0, 0.01)}):
        cost, capacity = all_hard(70, **settings)

        assert 0.4 * capacity <= cost <= capacity


def test_a_partition_charged_with_the_sensitivity_of_one_block_is_found(monkeypatch):
    """L = g^2 instead of 2 g^2, which is also a hit charged as its number only."""
    method = GumbelSparse.price

    def cheap(self, target):
        if isinstance(target, Partition):
            return attrs.evolve(method(self, CORNER.bind(DOMAIN)), event="too little")
        return method(self, target)

    monkeypatch.setattr(GumbelSparse, "price", cheap)
    cost, capacity = all_hard(70, sparse=fine(), budget=ic.Budget(4.0, 0.01))

    assert cost > 1.3 * capacity


def test_first_tables_that_are_not_charged_are_found(monkeypatch):
    method = DemandPurchases.next

    once = []

    def unpaid(self, facts):
        bought = None if once else method(self, facts)
        once.append(bought)
        return bought and attrs.evolve(bought, charge=attrs.evolve(bought.charge, amount=Fraction(1)))

    monkeypatch.setattr(Purchase, "__attrs_post_init__", lambda _: None)  # a second guard
    monkeypatch.setattr(DemandPurchases, "next", unpaid)
    rule = DemandPurchases(rent=Fraction(0), after=(1,), parts=(Fraction(1),))  # all that tables get at once
    cost, capacity = all_hard(70, settings={"purchases": rule})

    assert cost > 1.02 * capacity  # the released numbers alone; the tests come on top


def test_the_noise_of_the_test_reused_in_the_answer_is_found(monkeypatch):
    def reused(self, hit, target, guess, counts, noise):
        return Measurement(target, (np.atleast_1d(counts) + 5) / self.n, 0.1)

    monkeypatch.setattr(GumbelSparse, "measure", reused)
    with pytest.raises(AssertionError):
        walk(SETTINGS["first tables, corner, side"])


def test_a_charge_after_the_draw_is_found(monkeypatch):
    def unpaid(self, questions):
        return Cover([True], questions, self.prices.sparse, Charge(Fraction(0), "nothing"))

    monkeypatch.setattr(Core, "cover", unpaid)
    monkeypatch.setattr(ReadGuard, "run", lambda self, private, *_: private())  # a second guard
    setting = SETTINGS["first tables, corner, side"]
    session, director, _ = play(setting, setting.counts, (False, False, False))

    assert 3 == director.unpaid
    with pytest.raises(AssertionError):
        checked(setting, setting.counts, (False, False, False))
    assert session.reserved is None


@pytest.mark.parametrize(("factor", "shift"), [(Fraction(9, 10), 0), (Fraction(11, 10), 0), (1, 1)])
def test_another_scale_or_threshold_than_the_stated_one_is_found(factor, shift, monkeypatch):
    """The law of the tests is the session's own: a hair from the stated boundary some outcome flips."""
    method = GumbelSparse.step

    def other(self, state, gap, sensitivity, noise):
        moved = attrs.evolve(
            self, scale=self.scale * factor, threshold=self.threshold + (shift << self.grid_bits)
        )
        return method(moved, state, gap, sensitivity, noise)

    monkeypatch.setattr(GumbelSparse, "step", other)
    with pytest.raises(AssertionError):
        walk(SETTINGS["first tables, corner, side"])
