"""A thousand sessions of the new engine: every stated bound holds at its confidence, and not by far too much.

Where the probability of leaving a bound is known exactly the count is compared two-sided, where it is bounded
one-sided, each at 1e-9; planted errors of a tenth in the scale, or a bound too small, are found.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.ledger import Hard
from onlineic.noise import SimulatedNoise
from onlineic.queries import BoundMarginal, Partition, block_weights, derived, marginal
from onlineic.sparse import ExponentialSparse, GumbelSparse
from support.sessions import begun, plan_once

pytestmark = pytest.mark.statistical
LEVEL = 1e-9
BETA = 0.3  # large, so that a thousand sessions see many failures
FIRST = ic.where(x=0)  # of two cells


def two_sided(successes, trials, probability):
    return stats.binomtest(successes, trials, probability).pvalue


def too_many(successes, trials, probability):
    """P(at least so many) if each happens with at most this probability."""
    return stats.binomtest(successes, trials, probability, alternative="greater").pvalue


def gaussian_tail(sigma, radius):
    """P(|N_Z(0, sigma^2)| > radius)."""
    x = np.arange(-40 * sigma, 40 * sigma + 1)
    mass = np.exp(-(x.astype(float) ** 2) / (2 * sigma**2))
    return float(mass[np.abs(x) > radius].sum() / mass.sum())


def two_cells(n, gap):
    """A table whose first cell lies `gap` records above the uniform guess."""
    return PrivateData(np.array([n // 2 + gap, n // 2 - gap]), ic.Domain.of(x=2))


def gumbel(n, threshold, **settings):
    scale = Fraction(25)
    return GumbelSparse(
        n=n, epsilon=4.0, delta=1e-3, order=Fraction(3), scale=scale, threshold=threshold, **settings
    )


def test_easy_answers_leave_their_bound_as_often_as_stated(monkeypatch):
    """A gap two records beyond the radius is easy with probability exp(-e^((d - T)/b)), just below beta."""
    n, threshold, sessions = 10_000, 100, 2000
    sparse = gumbel(n, threshold)
    gap = math.floor(sparse.easy_radius(BETA) * n) + 2  # a step of its grid, a record, is added
    exact = math.exp(-math.exp((gap - threshold) / 25))
    data, noise, outside = two_cells(n, gap), SimulatedNoise(1), 0
    for _ in range(sessions):
        session = ic.OnlineIC(
            data, ic.Budget(4.0, 1e-3), sparse=sparse, release="answer", beta=2 * BETA, noise=noise
        )
        plan_once(monkeypatch, session.plan)
        answer = session.answer(FIRST)
        outside += abs(answer.value - (0.5 + gap / n)) > answer.error_bound and answer.status == "easy"

    assert BETA * 0.9 < exact <= BETA
    assert two_sided(outside, sessions, exact) > LEVEL
    assert (
        two_sided(outside, sessions, math.exp(-math.exp((gap - threshold + 5) / 25))) < LEVEL
    )  # T off by b/5


def test_pure_easy_answers_leave_their_bound_as_often_as_stated(monkeypatch):
    n, threshold, sessions = 10**6, 4000, 1500
    b1, b2 = Fraction(60), Fraction(150)
    sparse = ExponentialSparse(n=n, epsilon=1.0, threshold=threshold, threshold_scale=b1, query_scale=b2)
    gap = math.floor(sparse.easy_radius(BETA) * n) + 2  # a step of its grid, a record, is added
    q1, q2 = math.exp(-1 / b1), math.exp(-1 / b2)
    exact = (1 - q2) / (1 - q1 * q2) * q1 ** (gap - threshold + 1)  # P(rho - nu > gap - T)
    data, noise, outside = two_cells(n, gap), SimulatedNoise(2), 0
    for _ in range(sessions):
        session = ic.OnlineIC(data, ic.Budget(1.0), sparse=sparse, beta=2 * BETA, noise=noise)
        plan_once(monkeypatch, session.plan)
        answer = session.answer(FIRST)
        outside += abs(answer.value - (0.5 + gap / n)) > answer.error_bound and answer.status == "easy"

    assert BETA * 0.9 < exact <= BETA
    assert two_sided(outside, sessions, exact) > LEVEL
    assert two_sided(outside, sessions, exact * 0.7) < LEVEL


def test_scalar_numbers_leave_their_bound_as_often_as_stated_also_given_that_they_are_hard(monkeypatch):
    """Gap below the threshold: hits are rare luck of the test, and the number must not share it."""
    n, sessions = 10_000, 900
    sparse = gumbel(n, 30)
    sigma = sparse.sigma(0)
    data, noise, outside, positive, hits = two_cells(n, 0), SimulatedNoise(3), 0, 0, 0
    for _ in range(sessions):
        session = ic.OnlineIC(
            data, ic.Budget(4.0, 1e-3), sparse=sparse, release="answer", beta=2 * BETA, noise=noise
        )
        plan_once(monkeypatch, session.plan)
        answer = session.answer(FIRST)
        if answer.hard:
            hits += 1
            error = (answer.value - 0.5) * n
            outside += abs(error) > answer.error_bound * n
            positive += error > 0
    radius = sparse.hard_radius(ic.where(x=0).bind(data.domain, 0), BETA) * n
    zero = 1 / (sigma * math.sqrt(2 * math.pi))

    assert two_sided(hits, sessions, -math.expm1(-math.exp(-30 / 25))) > LEVEL
    assert two_sided(outside, hits, gaussian_tail(sigma, round(radius))) > LEVEL
    assert gaussian_tail(sigma, round(radius)) <= BETA
    assert two_sided(positive, hits, (1 - zero) / 2) > LEVEL


SHAPE = (5, 4)
DOMAIN = ic.Domain.of(a=5, b=4)


def default_sessions(count, seed, **settings):
    """(session, counts, queries, answers) of small sessions in which much is hard."""
    generator, noise, patched = np.random.default_rng(seed), SimulatedNoise(seed), pytest.MonkeyPatch()
    for _ in range(count):
        counts = generator.multinomial(20_000, generator.dirichlet(np.full(20, 0.3))).reshape(SHAPE)
        session = ic.OnlineIC(
            PrivateData(counts, DOMAIN),
            beta=BETA,
            noise=noise,
            **({"budget": ic.Budget(1.0, 1e-6), "hard_answers": 4, "max_queries": 12} | settings),
        )
        plan_once(patched, session.plan)
        queries = []
        for _ in range(12):
            low, high = np.sort(generator.integers(0, 5, 2)).tolist()
            queries.append(
                ic.dense(generator.integers(0, 5, SHAPE) / 4)
                if generator.random() < 0.5
                else ic.where(a=ic.between(low, high), b=int(generator.integers(0, 4)))
            )
        if session.plan.partitions is not None:
            queries[3] = marginal("a", "b")
        yield session, counts, queries, session.answer_many(queries)
    patched.undo()


def errors_of(counts, queries, answers):
    """Largest error of each tested answer and its bound."""
    for query, answer in zip(queries, answers, strict=True):
        if answer.status in ("easy", "hard"):
            bound = query.bind(DOMAIN)
            if isinstance(bound, BoundMarginal):
                truth = counts / counts.sum()
            else:
                truth = float((bound.weights() * counts).sum()) / (int(counts.sum()) << bound.grid_bits)
            yield float(np.abs(answer.value - truth).max()), answer.error_bound, answer.status


@pytest.mark.parametrize(
    ("count", "seed", "settings"),
    [
        (60, 11, {"threshold": 0.004}),
        (140, 12, {"threshold": 0.004, "sparse": "gumbel", "release": "answer"}),
        (100, 13, {"threshold": 0.02, "budget": ic.Budget(1.0), "release": "answer"}),
    ],
)
def test_the_bounds_of_each_answer_and_of_whole_sessions_hold(count, seed, settings):
    outside = {"easy": 0, "hard": 0}
    asked = {"easy": 0, "hard": 0}
    broken, narrow = 0, 0
    for session, counts, queries, answers in default_sessions(count, seed, **settings):
        worst = 0.0
        for error, bound, status in errors_of(counts, queries, answers):
            asked[status] += 1
            outside[status] += error > bound
            worst = max(worst, error)
        broken += worst > session.statistics().error_bound
        narrow += worst > session.statistics().error_bound / 60

    assert too_many(outside["easy"], max(1, asked["easy"]), BETA) > LEVEL
    assert too_many(outside["hard"], asked["hard"], BETA) > LEVEL
    assert too_many(broken, count, BETA) > LEVEL
    assert asked["hard"] >= 150
    assert asked["easy"] >= 20
    assert too_many(narrow, count, BETA) < LEVEL  # a bound of a sixtieth would be found


def test_derived_block_sums_have_the_stated_standard_deviation():
    """Errors over scale times norm: the mean square is 1."""
    scores = []
    for session, counts, _, _ in default_sessions(
        35, 14, hard_answers=40, threshold=1e-6, budget=ic.Budget(3.0, 1e-3), prior=ic.Histogram(DOMAIN)
    ):
        for record in session.transcript:
            if isinstance(record, Hard) and isinstance(record.measurement.target, Partition):
                target = record.measurement.target
                blocks = PrivateData(counts, DOMAIN).exact_counts(target) / session.n
                if target.axes == (0, 1):  # of a table asked whole, a query over its blocks
                    weights = np.random.default_rng(len(scores)).integers(0, 2, SHAPE)
                    weights.flat[0], weights.flat[1] = 0, 1
                    query = ic.dense(weights).bind(DOMAIN)
                    value, weights = derived(query, record.measurement)
                    norm = float(np.linalg.norm(weights))
                    truth = float(block_weights(query, target) @ blocks)
                    scores.append((value - truth) / (record.measurement.scale * norm))
    total = float(np.square(scores).sum())

    def p_value(scale):
        lower = stats.chi2.cdf(total / scale**2, len(scores))
        return 2 * min(lower, 1 - lower)

    assert len(scores) >= 200
    assert p_value(1.0) > LEVEL
    assert max(p_value(0.7), p_value(1.4)) < LEVEL


def test_first_tables_have_the_noise_that_is_charged():
    """Sum of squares over sigma^2 is chi-square up to the grid: a tenth in sigma is found."""
    noise, total, count = SimulatedNoise(15), 0.0, 0
    counts = np.random.default_rng(1).multinomial(10**6, np.full(40 * 30, 1 / 1200)).reshape(40, 30)
    domain = ic.Domain.of(a=40, b=30)
    data = PrivateData(counts, domain)
    for _ in range(16):
        opened = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=noise, update=ic.updates.MaximumEntropy(1))
        session = begun(opened)
        for measurement in session.transcript[1].measurements:
            error = measurement.values - data.exact_counts(measurement.target) / data.n
            total += float(np.square(error / measurement.scale).sum())
            count += len(error)

    def p_value(scale):
        lower = stats.chi2.cdf(total / scale**2, count)
        return 2 * min(lower, 1 - lower)

    assert count >= 7000
    assert p_value(1.0) > LEVEL
    assert max(p_value(0.9), p_value(1.1)) < LEVEL


def test_a_hard_table_leaves_its_bound_at_most_as_often_as_stated_in_every_mechanism():
    """The bound is for the worst of all cells, so it shrinks with a union over them."""
    n = 20_000
    counts = np.random.default_rng(3).multinomial(n, np.full(20, 0.05)).reshape(SHAPE)
    budget = ic.Budget(1.0, 1e-6)
    common = {"n": n, "hard_answers": 3, "max_queries": 10, "threshold": 1e-4}
    for sparse in (
        GumbelSparse.calibrated(budget, **common, partition=True),
        ExponentialSparse.calibrated(ic.Budget(1.0), **common, fresh=True),
        "laplace",
    ):
        outside, hits, loose = 0, 0, 0
        noise = SimulatedNoise(16)
        for _ in range(120):
            session = ic.OnlineIC(
                PrivateData(counts, DOMAIN),
                budget if isinstance(sparse, GumbelSparse) else ic.Budget(1.0),
                sparse=sparse,
                release="answer",
                beta=0.05,
                noise=noise,
                **({"hard_answers": 3, "threshold": 1e-4} if sparse == "laplace" else {}),
            )
            answer = session.answer(marginal("a", "b"))
            if answer.hard:
                hits += 1
                worst = np.abs(answer.value - counts / n).max()
                outside += worst > answer.error_bound
                loose += worst > answer.error_bound / 2

        assert hits >= 50
        assert too_many(outside, hits, 0.05) > LEVEL
        assert too_many(loose, hits, 0.05) < LEVEL
