"""What the next hit costs: a share of what is left, worked out from the public record before its test."""

import itertools
import math
from fractions import Fraction
from functools import cache

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import LedgerMismatchError
from onlineic.ledger import BoughtTables, Easy, Hard, MemoryLedger
from onlineic.noise import SimulatedNoise
from onlineic.plan import EASY_OR_HARD, Spending, Spent, session_plan
from onlineic.plan.spending import dearest_hit, hit_price
from onlineic.session.loop import Loop
from onlineic.sparse import Hit, UnconditionalNumbers
from support.cores import replanned
from support.sessions import Still, begun, settled

DOMAIN = ic.Domain.of(a=8, b=6, c=4)
GENERATOR = np.random.default_rng(3)
COUNTS = GENERATOR.multinomial(60_000, GENERATOR.dirichlet(np.full(192, 0.2))).reshape(DOMAIN.shape)
BOTH = pytest.mark.parametrize("delta", [1e-9, 0.0], ids=["gumbel", "pure"])
ASKED = [
    ic.dense(np.random.default_rng(seed).integers(0, 2, DOMAIN.shape).astype(float)) for seed in range(60)
]


def opened(delta, seed=5, **settings):
    """A session without first tables, whose dense queries are hard one after the other."""
    settings = {"prior": ic.Histogram(DOMAIN), "max_queries": 60, "hard_answers": 4} | settings
    data = ic.PrivateData(COUNTS, DOMAIN)
    return ic.OnlineIC(data, ic.Budget(2.0, delta), noise=SimulatedNoise(seed), **settings)


@cache
def asked(delta):
    """Such a session that was asked everything, and its answers: for those who read alone."""
    session = opened(delta)
    return session, session.answer_many(ASKED)


def sparse_at(session):
    """(record, mechanism of its test), for whoever holds the transcript and the plan."""
    spending, spent, found = session.plan.spending, Spent(), []
    for record in session.transcript:
        if isinstance(record, Easy | Hard):
            found.append((record, spending.at(spent)))
        spent = spending.after(spent, record)
    return found


def paid_in_full(session, mechanisms):
    """Whether every hit was charged at least what its test and its release cost."""
    return all(
        sparse.price(record.measurement.target).amount <= record.charge.amount
        for record, sparse in mechanisms
        if isinstance(record, Hard)
    )


@BOTH
def test_a_reader_of_the_record_works_out_every_price(delta):
    session, _ = asked(delta)
    mechanisms = sparse_at(session)
    hard = [(record, sparse) for record, sparse in mechanisms if isinstance(record, Hard)]
    start = session.plan.sparse.start_charge()
    charges = [record.charge.amount for record, _ in hard]
    charges[0] -= start.amount if start is not None else 0
    capacity = session.plan.sparse.account().capacity

    assert len(hard) > 8  # twice as many as are planned
    assert charges[-1] < charges[0] / 2
    assert all(later <= before for before, later in itertools.pairwise(charges))
    assert paid_in_full(session, mechanisms)
    assert sum(record.charge.amount for record, _ in hard) <= capacity
    for (record, sparse), charge in zip(hard, charges, strict=True):
        expected = sparse.price(record.measurement.target)
        deviation = record.measurement.scale * session.n

        assert charge == expected.amount if delta == 0.0 else charge >= expected.amount
        assert deviation == pytest.approx(
            math.sqrt(2) * float(sparse.number_scale) * (2 if record.measurement.values.size > 1 else 1)
            if delta == 0.0
            else sparse.sigma(0),
            rel=1e-6,
        )


@BOTH
def test_a_price_of_the_next_test_does_not_pay_for_the_last(delta):
    """Mutant: the mechanism is read off what was spent when the hit was recorded already."""
    session, _ = asked(delta)
    planned = session.plan.spending
    late = [
        (attrs.evolve(record, charge=attrs.evolve(record.charge, amount=price)), sparse)
        for (record, sparse), (_, after) in itertools.pairwise(sparse_at(session))
        if isinstance(record, Hard)
        for price in [after.price(record.measurement.target).amount]
        if after is not sparse
    ]

    assert late
    assert planned.share is not None
    assert not paid_in_full(session, late)


@BOTH
def test_nothing_is_untested_while_a_share_is_left(delta):
    session, answers = asked(delta)

    assert 0 == session.statistics().untested
    assert all(math.isfinite(answer.error_bound) for answer in answers)
    assert session.statistics().spent < 1.0


@BOTH
def test_what_is_left_is_counted_in_hits_at_the_price_of_the_next(delta):
    session = opened(delta)
    capacity, prices = session.plan.sparse.account().capacity, set()
    for query in ASKED:
        told = session.answer(query).left
        spent = session.account.spent
        if not spent:
            continue
        sparse = session.plan.spending.at(Spent(spent, hit=True))
        dearest = dearest_hit(sparse, DOMAIN, session.plan.partitions is not None)
        prices.add(dearest)

        assert (capacity - spent) // dearest == session.statistics().hard_left == told
    assert len(prices) > 4


@BOTH
def test_at_least_as_many_hits_are_paid_as_were_told_whenever_they_were(delta):
    session = opened(delta, update=Still())
    told = []
    for query in ASKED:
        left = session.statistics().hard_left
        assert f"at least {left} measured answers left" in repr(session)
        told.append((session.statistics().hard, left))
        session.answer(query)
    paid = session.statistics().hard

    assert all(left <= paid - hard for hard, left in told if hard + left < 20)
    assert paid > 20


@BOTH
def test_an_easy_answer_states_the_radius_of_the_mechanism_that_tested_it(delta):
    session, given = asked(delta)
    answers = {id(answer): answer for answer in given}.values()
    told = [(record, sparse) for record, sparse in sparse_at(session)]
    wide = 0

    for (record, sparse), answer in zip(told, answers, strict=True):
        if isinstance(record, Easy):
            # of a kept threshold: hits depend on it, and choose the scales of later tests
            tests = 1 if delta else 10**30
            radius = sparse.easy_radius(EASY_OR_HARD * session.plan.beta, tests) + record.query.rounding
            wide += sparse is not session.plan.sparse

            assert answer.error_bound == pytest.approx(min(radius, max(answer.value, 1 - answer.value)))
    assert wide > 3
    assert session.statistics().error_bound >= max(
        sparse.easy_radius(0.9 * session.plan.beta, 60) for record, sparse in told if isinstance(record, Easy)
    )


@BOTH
def test_whoever_looks_at_the_session_while_it_tests_does_not_change_what_is_drawn(delta, monkeypatch):
    """A repr of another thread may hold the mechanism of an earlier test: it must not come back."""
    session = opened(delta)
    held, read = Spending.at, PrivateData.exact_counts

    def looked(data, target):
        with monkeypatch.context() as patched:
            patched.setattr(Spending, "at", lambda spending, spent: spending.sparse)
            repr(session)
        return read(data, target)

    monkeypatch.setattr(PrivateData, "exact_counts", looked)
    for query in ASKED[:20]:
        session.answer(query)
    hits = [(record, sparse) for record, sparse in sparse_at(session) if isinstance(record, Hard)]

    assert held is Spending.at
    assert sum(sparse is not session.plan.sparse for _, sparse in hits) > 3
    assert paid_in_full(session, hits)
    for record, sparse in hits:
        target = record.measurement.target
        scale = sparse.measure(Hit(), target, 0, np.zeros(blocks(target), np.int64), SimulatedNoise(1)).scale
        assert scale == record.measurement.scale


def blocks(target):
    return getattr(target, "blocks", 1)


@BOTH
def test_prices_stay_where_a_threshold_or_a_mechanism_is_given(delta):
    plan = session_plan(DOMAIN, 60_000, ic.Budget(1.0, delta))
    fixed = [
        session_plan(DOMAIN, 60_000, ic.Budget(1.0, delta), **settings)
        for settings in ({"threshold": 0.01}, {"sparse": plan.sparse}, {"sparse": "laplace"})
    ]

    assert plan.next_share is not None
    assert [None] * 3 == [each.next_share for each in fixed]
    half = [Spent(each.sparse.account().capacity / 2, hit=True) for each in fixed]
    assert all(each.spending.at(spent) is each.sparse for each, spent in zip(fixed, half, strict=True))


@BOTH
def test_a_stretched_mechanism_shares_the_account_and_the_run_of_the_first(delta):
    sparse = session_plan(DOMAIN, 60_000, ic.Budget(1.0, delta)).sparse
    target = ic.marginal("a").bind(DOMAIN).partition
    for cheaper in (Fraction(1), Fraction(3, 2), Fraction(40), Fraction(10**9)):
        wider = sparse.stretched(cheaper)

        assert sparse.account() == wider.account()
        assert (sparse.start_charge(), sparse.grid_bits) == (wider.start_charge(), wider.grid_bits)
        assert wider.threshold >= sparse.threshold
        if cheaper < 10**3:
            assert wider.price(target).amount <= sparse.price(target).amount / cheaper + 1


def test_the_first_hit_has_the_plans_price_and_no_later_one_is_dearer():
    plan = session_plan(DOMAIN, 60_000, ic.Budget(1.0, 1e-9))
    sparse, capacity = plan.sparse, plan.sparse.account().capacity
    spending = Spending(sparse, capacity / 2, plan.hit_price, Fraction(1, 4))
    prices = [
        spending.at(Spent(capacity * Fraction(part, 32), hit=part > 16))
        .price(ic.marginal("a").bind(DOMAIN).partition)
        .amount
        for part in (0, 16, 17, 24, 30)
    ]

    assert prices[0] == prices[1] == plan.hit_price
    assert all(later <= before for before, later in itertools.pairwise(prices))
    assert prices[-1] <= capacity / 32 * 2 / 4 + 1
    assert spending.at(Spent(capacity, hit=True)) is sparse


def test_pure_tests_of_falling_prices_cost_what_they_are_charged_and_a_redrawn_threshold_is_not_free():
    """Theory 4.5 by sums over the hidden threshold: easy tests and a hit, then both at twice the scale."""
    moved, first, scales = 4, 40.0, (60.0, 120.0)
    t = np.arange(0, 3000)
    mass = math.log(-math.expm1(-1 / first)) - t / first

    def log_tail(scale, level):
        return -np.maximum(t - level, 0) / scale

    def log_sum(terms):
        return float(terms.max() + math.log(np.exp(terms - terms.max()).sum()))

    def half(scale, quiet, level):
        """Ten thousand easy tests far below and one hit, under each threshold."""
        with np.errstate(divide="ignore"):
            silent = np.log(-np.expm1(np.minimum(log_tail(scale, quiet), -1e-300)))
        return np.maximum(10**4 * silent, -1e9) + log_tail(scale, level)

    def loss(redrawn):
        worst = 0.0
        for quiet, level in itertools.product(range(-400, 1, 50), range(-400, 1, 100)):
            here, there = (
                [half(scale, quiet + sign * moved, level - sign * moved) for scale in scales]
                for sign in (0, 1)
            )
            worst = max(
                worst,
                abs(sum(log_sum(mass + each) for each in here) - sum(log_sum(mass + each) for each in there))
                if redrawn
                else abs(log_sum(mass + sum(here)) - log_sum(mass + sum(there))),
            )
        return worst

    claim = moved / first + sum(2 * moved / scale for scale in scales)

    assert 0.99 * claim < loss(redrawn=False) <= claim * (1 + 1e-9)
    assert loss(redrawn=True) > 1.2 * claim


def of_numbers(domain, announced, delta, n=10**6):
    """How files of sessions of numbers spend that were begun before one rule bought these."""
    sparse = UnconditionalNumbers.calibrated(
        ic.Budget(1.0, delta), n=n, answers=announced, grid_bits=8, reserved=Fraction(1, 20)
    )
    price, wider = hit_price(sparse, domain, partition=False), Fraction(max(1.0, 0.05 / sparse.deviation))
    return Spending(
        sparse,
        price=price,
        share=Fraction(1, announced + 1),
        reserve=sparse.account().capacity / 20,
        least=price / (wider if sparse.order is None else wider**2),
    )


@pytest.mark.parametrize(("announced", "delta"), [(1, 1e-9), (10, 1e-9), (60, 1e-6), (10, 0.0)])
def test_numbers_beyond_those_announced_fall_slowly_and_say_something_to_the_end(announced, delta):
    domain = ic.Domain.of(a=100, b=60, c=40)
    spending = of_numbers(domain, announced, delta)
    target = ic.where(a=1).bind(domain)
    spent, prices, deviations = Spent(), [], []
    capacity = spending.sparse.account().capacity
    while len(prices) < 4 * announced + 120:  # to where the least price holds
        sparse = spending.at(spent)
        price = sparse.price(target).amount
        if price > capacity - spent.amount:
            break
        spent = Spent(spent.amount + price, hit=True)
        prices.append(price)
        deviations.append(sparse.deviation)

    assert prices[:announced] == [spending.price] * announced
    assert capacity - sum(prices[:announced]) >= spending.reserve
    assert all(later <= before for before, later in itertools.pairwise(prices))
    assert len(prices) >= 2 * announced + 10
    assert max(deviations) <= 0.05 * (1 + 1e-3)
    for beyond in range(announced, len(prices) - 1):
        left = capacity - sum(prices[:beyond])
        expected = max(min(left, left**2 / spending.reserve) / (announced + 1), spending.least)
        assert 0.9 * expected < prices[beyond] <= expected + 1


@BOTH
def test_the_bound_of_a_session_of_numbers_holds_for_all_of_them_at_once(delta):
    announced, domain = 40, ic.Domain.of(a=100, b=60, c=40)
    plan = session_plan(domain, 10**6, ic.Budget(1.0, delta), questions=announced, certify=0.1)
    away = plan.error_bound / plan.sparse.deviation
    one = math.erfc(away / math.sqrt(2.0)) if delta else math.exp(-math.sqrt(2.0) * away)

    assert isinstance(plan.sparse, UnconditionalNumbers)
    assert announced * one <= plan.beta


def test_more_questions_than_announced_are_never_answered_by_noise_alone():
    session = opened(1e-9, prior=None, hard_answers=None, questions=4)
    answers = session.answer_many(ASKED)
    truths = [float((query.bind(DOMAIN).weights() * COUNTS).sum()) / COUNTS.sum() for query in ASKED]
    errors = [abs(answer.value - truth) for answer, truth in zip(answers, truths, strict=True)]

    assert max(errors) < 0.01  # by tables that serve the call


@BOTH
def test_recorded_first_tables_of_another_noise_or_charge_are_refused(delta):
    ledger, data = MemoryLedger(), ic.PrivateData(COUNTS, DOMAIN)
    rule = settled(DOMAIN, data.n, ic.Budget(1.0, delta))
    session = begun(ic.OnlineIC(data, ic.Budget(1.0, delta), ledger=ledger, purchases=rule))
    tables = session.plan.first_tables
    (record,) = [each for each in ledger.records() if isinstance(each, BoughtTables)]

    def bought(plan):
        return Loop(data.domain, data.n, plan, ledger, private=True).bought()

    assert bought(session.plan)
    assert tuple(bought.scale for bought in record.measurements) == tables.deviations(data.n)
    charged = attrs.evolve(tables.charge, amount=2 * tables.charge.amount)
    for others in (
        attrs.evolve(tables, scales=tuple(2 * scale for scale in tables.scales)),
        attrs.evolve(tables, charge=charged),
    ):
        with pytest.raises(LedgerMismatchError):
            bought(replanned(session.plan, first=others))
