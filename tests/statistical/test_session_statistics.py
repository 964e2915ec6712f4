"""Whole sessions on simulated noise: the law of numbers and hits, and the coverage of every stated bound.

Each test accepts the truth at p > 1e-9 and rejects what it names at p < 1e-9; the seeds are not picked.
"""

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.ledger import Easy, Hard
from onlineic.noise import SimulatedNoise
from support.sessions import plan_once

pytestmark = pytest.mark.statistical
LEVEL = 1e-9


def binomial_p(successes, trials, probability):
    return stats.binomtest(successes, trials, probability).pvalue


def test_the_numbers_have_laplace_noise_of_the_stated_scale():
    """Sum of absolute errors over the scale is Gamma(N, 1); a scale wrong by a tenth is found."""
    size, cutoff, n = 200, 6500, 10**9
    counts = np.zeros(size, int)
    counts[0] = n  # no interval below holds a record: each gap is far above the threshold
    session = ic.OnlineIC(
        PrivateData(counts, ic.Domain.of(x=size)),
        ic.Budget(20.0),
        hard_answers=cutoff,
        threshold=1e-9,
        update=ic.MultiplicativeWeights(rate=1e-9),
        sparse="laplace",
        beta=0.1,  # half of it for hard answers
        noise=SimulatedNoise(11),
    )
    intervals = [(low, high) for low in range(1, size - 20) for high in range(low + 20, size - 1)]
    errors = []
    for low, high in intervals[:cutoff]:
        answer = session.answer(ic.where(x=ic.between(low, high)))
        assert answer.hard
        errors.append(answer.value * n)
    scale = float(session.plan.sparse.number_scale)
    total = np.abs(errors).sum()

    def p_value(claimed):
        lower = stats.gamma.cdf(total / claimed, cutoff)
        return 2 * min(lower, 1 - lower)

    assert 9 * cutoff / 20 == scale
    assert p_value(scale) > LEVEL
    assert max(p_value(0.9 * scale), p_value(1.1 * scale)) < LEVEL
    assert binomial_p(sum(error > 0 for error in errors), cutoff, 0.5) > LEVEL
    radius = answer.error_bound * n
    outside = sum(abs(error) > radius for error in errors)
    assert binomial_p(outside, cutoff, 0.05) > LEVEL  # the bound is met, not merely kept


def first_answers(gap_scales, sessions, seed, monkeypatch):
    """First answers of fresh sessions to one query, gap at T + gap_scales * s: (hits, errors of the hits)."""
    noise = SimulatedNoise(seed)
    n, cutoff, epsilon = 10**6, 10, 1.0
    scale = 9 * cutoff / (4 * epsilon)
    threshold = 0.2
    gap = round(threshold * n + gap_scales * scale)
    data = PrivateData(np.array([n // 4 + gap, n - n // 4 - gap, 0, 0]), ic.Domain.of(x=4))
    errors, query = [], ic.where(x=0).bind(data.domain)
    for _ in range(sessions):
        session = ic.OnlineIC(
            data,
            ic.Budget(epsilon),
            hard_answers=cutoff,
            threshold=threshold,
            sparse="laplace",
            noise=noise,
        )
        plan_once(monkeypatch, session.plan)
        answer = session.answer(query)
        if answer.hard:
            errors.append(answer.value * n - (n // 4 + gap))
    return len(errors), np.array(errors)


def mixed_tail(steps):
    """P(nu - rho >= t) for Lap(2s) - Lap(s), t = steps * s >= 0."""
    return (4 * math.exp(-steps / 2) - math.exp(-steps)) / 6


def test_hits_have_the_law_of_the_book_and_their_numbers_fresh_noise(monkeypatch):
    """At T - 2s a hit has probability .2227; with the test's own noise .05 of the errors are negative."""
    trials = 1500
    hits, errors = first_answers(-2.0, trials, 1, monkeypatch)
    negative = int((errors < 0).sum())

    assert 0.22270 == pytest.approx(mixed_tail(2.0), abs=1e-5)
    assert binomial_p(hits, trials, mixed_tail(2.0)) > LEVEL
    assert binomial_p(negative, int((errors != 0).sum()), 0.5) > LEVEL
    assert binomial_p(negative, hits, 0.05063) < LEVEL
    for wrong in (0.5, 2.0):  # all noise halved or doubled
        assert binomial_p(hits, trials, mixed_tail(2.0 / wrong)) < LEVEL


def test_a_gap_at_the_threshold_is_hard_every_second_time(monkeypatch):
    trials = 800
    hits, _ = first_answers(0.0, trials, 2, monkeypatch)

    assert binomial_p(hits, trials, 0.5) > LEVEL
    assert binomial_p(hits, trials, 7 / 24) < LEVEL


def prefixes(generator, size, count):
    """Distinct and repeated interval queries."""
    ends = np.sort(generator.integers(0, size, (count, 2)), axis=1)
    return [ic.where(x=ic.between(int(low), int(high))) for low, high in ends]


@cache
def flat_weights(query):
    return query.weights().ravel()


def exact_fraction(query, counts):
    return int(flat_weights(query) @ counts) / (int(counts.sum()) << query.grid_bits)


@pytest.mark.parametrize(("delta", "update"), [(0.0, None), (1e-6, ic.MultiplicativeWeights())])
def test_textbook_sessions_keep_three_alpha_and_hit_only_real_gaps(delta, update, monkeypatch):
    """Theorems 5.14 and 5.15 hold with probability .95 each; their constants leave no failure to see."""
    size, n, queries = 16, 10**6, 60
    domain = ic.Domain.of(x=size)
    generator = np.random.default_rng(3)
    hard, noise = 0, SimulatedNoise(4)
    for _ in range(40):
        counts = generator.multinomial(n, generator.dirichlet(np.full(size, 0.05)))
        session = ic.OnlineIC.textbook(
            PrivateData(counts, domain),
            epsilon=1.0,
            delta=delta,
            max_queries=queries,
            update=update,
            noise=noise,
        )
        plan_once(monkeypatch, session.plan)
        asked = [query.bind(domain) for query in prefixes(generator, size, queries)]
        answers = session.answer_many(asked)
        alpha = session.plan.alpha
        truths = [exact_fraction(query, counts) for query in asked]
        assert max(abs(a.value - truth) for a, truth in zip(answers, truths, strict=True)) <= 3 * alpha
        hypothesis = ic.Histogram(domain)
        seen = []
        for record in session.transcript:
            if isinstance(record, Hard):
                seen.append(record.measurement)
                gap = abs(exact_fraction(record.query, counts) - record.guess / (n << record.query.grid_bits))
                assert gap >= alpha
                assert (
                    abs(float(record.measurement.values[0]) - exact_fraction(record.query, counts)) <= alpha
                )
                hypothesis = session.plan.update.update(hypothesis, tuple(seen), alpha)
            elif isinstance(record, Easy):
                guess = record.guess / (n << record.query.grid_bits)
                assert abs(exact_fraction(record.query, counts) - guess) <= 3 * alpha
        assert len(seen) <= session.plan.hard_answers
        hard += len(seen)
    assert hard >= 400  # the sessions had something to learn


def test_certified_sessions_fail_no_more_often_than_beta_and_are_not_far_from_their_bound(monkeypatch):
    """Every answer within E, every hit with a gap above alpha, at most c hits: all with probability .6."""
    size, n, beta, sessions = 8, 30_000, 0.4, 200
    domain = ic.Domain.of(x=size)
    generator = np.random.default_rng(5)
    failures, worst, noise = 0, 0.0, SimulatedNoise(6)
    ends = [(low, high) for low in range(size) for high in range(low, size)][:28]
    asked = [ic.where(x=ic.between(*pair)).bind(domain) for pair in ends]
    for _ in range(sessions):
        counts = generator.multinomial(n, generator.dirichlet(np.full(size, 0.1)))
        session = ic.OnlineIC(
            PrivateData(counts, domain),
            ic.Budget(2.0),
            certify=0.12,
            beta=beta,
            max_queries=28,
            sparse="laplace",
            noise=noise,
        )
        plan_once(monkeypatch, session.plan)
        answers = session.answer_many(asked)
        truths = [exact_fraction(query, counts) for query in asked]
        error = max(abs(a.value - truth) for a, truth in zip(answers, truths, strict=True))
        gaps = [
            abs(exact_fraction(record.query, counts) - record.guess / (n << record.query.grid_bits))
            for record in session.transcript
            if isinstance(record, Hard)
        ]
        untested = session.statistics().untested
        bound = session.statistics().error_bound
        failures += error > bound or min(gaps, default=1.0) <= 0.12 or untested > 0
        worst = max(worst, error / bound)

    assert stats.binom.sf(failures - 1, sessions, beta) > LEVEL
    assert worst > 0.4
