"""Derived answers of whole sessions: outside of their bounds as seldom as they say, and not of half."""

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import where
from onlineic.noise import SimulatedNoise
from onlineic.questions import distributions, linear
from support.laws import too_many
from support.sessions import Still, plan_once

pytestmark = pytest.mark.statistical
LEVEL, BETA, SESSIONS, RANGES = 1e-9, 0.2, 200, 50

DOMAIN = ic.Domain.of(a=range(16), b=["x", "y"])
N = 20_000
COUNTS = np.random.default_rng(5).multinomial(N, np.random.default_rng(6).dirichlet(np.full(32, 0.4)))
CELLS = COUNTS.reshape(16, 2)
DATA, BUDGET, VALUES = ic.PrivateData(COUNTS, DOMAIN), ic.Budget(1.0, 1e-9), np.arange(16)
WHOLE, X = CELLS.sum(axis=1), CELLS[:, 0]


def rank_off(found, counts):
    """How far the exact shares at the returned label are on the wrong side, for a median."""
    rising, at = np.cumsum(counts) / counts.sum(), found.value
    return max((rising[at - 1] if at else 0.0) - 0.5, 0.5 - rising[at], 0.0)


QUESTIONS = {
    "mean": lambda s: off(s.mean("a"), WHOLE @ VALUES / N),
    "sum": lambda s: off(s.sum("a"), WHOLE @ VALUES),
    "mean under a condition": lambda s: off(s.mean("a", where(b="x")), X @ VALUES / X.sum()),
    "sum under a condition": lambda s: off(s.sum("a", where(b="x")), X @ VALUES),
    "median": lambda s: (lambda found: rank_off(found, WHOLE) / found.rank_error)(s.median("a")),
    "median under a condition": lambda s: (lambda found: rank_off(found, X) / found.rank_error)(
        s.median("a", where(b="x"))
    ),
}


def off(found, exact):
    one, two = 1.0 - BETA, 1.0 - 2.0 * BETA  # of one answer, or of two
    assert found.confidence in (pytest.approx(one), pytest.approx(two))
    return abs(found.value - exact) / found.error_bound


@pytest.fixture(scope="module")
def used():
    """How much of its bound each error uses up, in sessions that measure the number of every query."""
    options = {"update": Still(), "release": "answer", "hard_answers": 20, "max_queries": 30}
    found = {name: [] for name in QUESTIONS}
    with pytest.MonkeyPatch.context() as patched:
        seen = ic.OnlineIC(DATA, BUDGET, beta=BETA, noise=SimulatedNoise(0), **options)
        plan_once(patched, seen.plan)
        for seed in range(SESSIONS):
            session = ic.OnlineIC(DATA, BUDGET, beta=BETA, noise=SimulatedNoise(seed), **options)
            for name, ask in QUESTIONS.items():
                found[name].append(ask(session))
    return {name: np.array(shares) for name, shares in found.items()}


@pytest.mark.parametrize("question", QUESTIONS)
def test_derived_answers_are_inside_their_bounds(used, question):
    assert too_many(int((used[question] > 1.0).sum()), SESSIONS, 2.0 * BETA) > LEVEL


@pytest.mark.parametrize("question", ["mean", "sum"])
def test_half_of_the_bound_is_left_too_often(used, question):
    """Of one answer the bound is that of its noise: the planted slip is found."""
    assert too_many(int((used[question] > 0.5).sum()), SESSIONS, BETA) < LEVEL


def outside(shrunk, monkeypatch):
    """How often the exact median of a condition is outside of its narrow range of labels, bounds shrunk."""
    whole = linear.bounded

    def bounded(*asked):
        found = whole(*asked)
        return attrs.evolve(found, bounds=[shrunk * bound for bound in found.bounds])

    monkeypatch.setattr(distributions, "bounded", bounded)
    column = np.arange(256) // 6  # a label holds less than the noise of a number
    cells = np.stack([column, column], axis=1)
    data = ic.PrivateData(cells, ic.Domain.of(a=range(256), b=["x", "y"]))
    options = {"update": Still(), "release": "answer", "hard_answers": 40, "max_queries": 60}
    seen = ic.OnlineIC(data, BUDGET, beta=BETA, noise=SimulatedNoise(0), **options)
    plan_once(monkeypatch, seen.plan)
    exact, missed, width = int((np.cumsum(column) >= column.sum() / 2).argmax()), 0, []
    for seed in range(RANGES):
        session = ic.OnlineIC(data, BUDGET, beta=BETA, noise=SimulatedNoise(seed), **options)
        found = session.median("a", where(b="x"), narrow=True)
        missed += not found.low <= exact <= found.high
        width.append(found.high - found.low)
    return missed, float(np.mean(width))


def test_narrow_ranges_hold_the_exact_label(monkeypatch):
    missed, width = outside(1.0, monkeypatch)

    assert too_many(missed, RANGES, BETA) > LEVEL
    assert width < 200


def test_ranges_from_a_part_of_the_bounds_miss_it_too_often(monkeypatch):
    missed, _ = outside(0.02, monkeypatch)

    assert too_many(missed, RANGES, BETA) < LEVEL
