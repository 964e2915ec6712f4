"""The default session at delta = 0: Laplace tables, exponential tests, one exact budget of epsilon."""

from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Filter
from onlineic.data import PrivateData
from onlineic.ledger import BoughtTables, Hard
from onlineic.noise import SimulatedNoise
from onlineic.noise.laws import DiscreteLaplace
from onlineic.plan import session_plan
from onlineic.queries import Partition, derived
from onlineic.sparse import ExponentialSparse
from support.sessions import all_spent, plan_once

DOMAIN = ic.Domain.of(a=12, b=3, c=["x", "y"])


def table(seed):
    rng = np.random.default_rng(seed)
    return PrivateData(rng.multinomial(20_000, rng.dirichlet(np.full(DOMAIN.size, 0.2))), DOMAIN)


def opened(seed=0, **settings):
    return ic.OnlineIC(table(seed), ic.Budget(1.0), noise=SimulatedNoise(seed), **settings)


def test_first_tables_and_all_payable_hits_cost_at_most_epsilon_exactly():
    session = opened(max_queries=500)
    sparse, bought = session.plan.sparse, session.plan.first_tables

    assert isinstance(sparse, ExponentialSparse)
    assert bought.pure
    # replacing one record moves it between two blocks of each table: epsilon 2/scale each
    assert sum(2 / scale for scale in bought.scales) == bought.charge.amount
    left = Filter(Fraction(1), "epsilon").charge(bought.charge).left - sparse.start_charge().amount
    price = sparse.price(bought.targets[0]).amount
    assert session.statistics().hard_left == left // price
    assert 0 < left


def test_a_hit_releases_a_partition_with_laplace_noise_of_l1_sensitivity_two():
    session = opened(threshold=1e-6, hard_answers=5, max_queries=100)
    answers = session.answer_many([ic.where(a=ic.between(2, 5), b=b) for b in range(3)])
    record = next(record for record in session.transcript if isinstance(record, Hard))

    assert "hard" in [answer.status for answer in answers]
    assert isinstance(record.measurement.target, Partition)
    fresh = session.plan.sparse.number_scale
    assert np.sqrt(2.0) * 2 * float(fresh) / 20_000 == pytest.approx(record.measurement.scale, rel=1e-3)
    # charge: the test at one count, 2/b2, and the table, 2/lambda; the run's threshold noise with the first
    most = 1 << session.plan.sparse.grid_bits
    hit = 2 * most / session.plan.sparse.query_scale + Fraction(2) / (2 * fresh)
    assert hit + session.plan.sparse.start_charge().amount == record.charge.amount


def test_never_more_than_epsilon_is_spent_and_the_transcript_rebuilds_the_hypothesis():
    session = opened(threshold=1e-6, hard_answers=3, max_queries=100)
    session.answer_many([ic.where(a=a, b=b) for a in range(12) for b in range(3)])
    records = session.transcript
    again = ic.replay(records, DOMAIN, session.plan.update, session.plan.alpha)

    assert all_spent(session) <= 1
    assert 1 == sum(isinstance(record, BoughtTables) for record in records)
    assert 0 < session.statistics().untested
    assert np.array_equal(again.probabilities(), session.hypothesis.probabilities())


def test_bounds_of_block_sums_hold_and_are_not_vacuous(monkeypatch):
    """P(outside) <= 5 % over 80 sessions, answers and measurements; a fifth of the radius is left often."""
    outside = beyond = narrow = 0
    settings = {"hard_answers": 2, "threshold": 1e-6, "max_queries": 10}
    plan_once(monkeypatch, session_plan(DOMAIN, 20_000, ic.Budget(1.0), **settings))
    for seed in range(80):
        data = table(seed)
        query = ic.where(a=ic.between(1, 7), c="x")
        session = ic.OnlineIC(data, ic.Budget(1.0), noise=SimulatedNoise(seed), **settings)
        answer = session.answer(query)
        exact = data.exact_counts(query.bind(DOMAIN)) / data.n
        outside += answer.hard and abs(answer.value - exact) > answer.error_bound
        for record in session.transcript:
            if isinstance(record, Hard):  # as measured: the answer itself is better
                value, weights = derived(record.query, record.measurement)
                radius = session.plan.sparse.sum_radius(record.measurement.target, weights, 0.05)
                beyond += abs(value - exact) > radius
                narrow += abs(value - exact) > radius / 5

    assert max(outside, beyond) <= 20  # Binomial(80, .05) exceeds 20 with probability 3e-10
    assert narrow >= 16


@pytest.mark.parametrize(
    ("scale", "weights"),
    [
        (Fraction(400), [1.0]),
        (Fraction(1, 2), [0.5, -0.5, 0.25]),
        (Fraction(400), [0.5, -0.5, 0.25]),
        (Fraction(3), [0.02] * 60),
        (Fraction(1, 2), [1.0, *[-1 / 63] * 63]),
        (Fraction(400), [1.0, *[-1 / 63] * 63]),
    ],
)
def test_the_laplace_sum_radius_bounds_the_tail(scale, weights):
    """20,000 sums stay within six standard errors of the stated tail, and leave a third of it often."""
    weights = np.array(weights)
    radius = DiscreteLaplace(scale).sum_radius(weights, 0.05)
    draws = SimulatedNoise(1).discrete_laplace(scale, 20_000 * len(weights)).reshape(-1, len(weights))
    beyond = np.mean(np.abs(draws @ weights) > radius)
    half = np.mean(np.abs(draws @ weights) > radius / 3)

    assert beyond <= 0.05 + 6 * np.sqrt(0.05 * 0.95 / 20_000)
    assert half > 0.05


def test_a_radius_of_nothing_is_zero():
    assert 0.0 == DiscreteLaplace(Fraction(5)).sum_radius(np.zeros(4), 0.05)
