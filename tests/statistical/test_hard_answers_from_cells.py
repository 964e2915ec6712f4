"""Bounds of hard answers whose value is a fit of less noise than what was measured.

Each stands on the fresh noise of the measurement and on how far the value lies from it: it may fail with the
measurement alone, which is as far off as its law says, and no oftener.
"""

import numpy as np
import pytest

import onlineic as ic
from onlineic.noise import SimulatedNoise
from onlineic.plan import EASY_OR_HARD
from onlineic.queries import derived
from support.laws import too_many
from support.noise import Wrapped
from support.sessions import hits, plan_once, tests_alone

pytestmark = pytest.mark.statistical
LEVEL, BETA = 1e-9, 0.6  # large, so that some hundred sessions see many failures
SESSIONS = 120
DOMAIN = ic.Domain.of(a=4, b=3)
COUNTS = np.array([[0, 0, 0], [0, 5000, 100], [20_000, 7, 3], [0, 0, 4890]])
ASKED, TRUTH = ic.where(a=2), 20_010 / 30_000


class Firing(Wrapped):
    """Simulated noise with which every Gumbel test fires."""

    def words(self, size):
        return np.full(size, 2**64 - 1, np.uint64)


@pytest.mark.filterwarnings("ignore::onlineic.errors.WideBoundWarning")
@pytest.mark.parametrize(("delta", "least"), [(1e-6, 0.5), (0.0, 0.05)], ids=["gumbel", "pure"])
def test_hard_answers_leave_their_bound_no_oftener_than_what_was_measured(monkeypatch, delta, least):
    """At the least: of Laplace sums the radius is an inequality, of Gaussian ones a quantile."""
    tests_alone(monkeypatch)
    data, budget = ic.PrivateData(COUNTS, DOMAIN), ic.Budget(1.0, delta)
    settings = {"hard_answers": 3, "beta": BETA, "threshold": 1e-5}
    plan = ic.OnlineIC(data, budget, noise=SimulatedNoise(0), **settings).plan
    plan_once(monkeypatch, plan)
    sparse, share = plan.sparse, EASY_OR_HARD * plan.tested_beta
    errors, outside, radii = [], [], []
    for seed in range(SESSIONS):
        noise = Firing(seed) if delta else SimulatedNoise(seed)
        session = ic.OnlineIC(data, budget, noise=noise, **settings)
        answer = session.answer(ASKED)
        if answer.hard:
            (record,) = hits(session)
            value, weights = derived(record.query, record.measurement)
            radii.append(sparse.sum_radius(record.measurement.target, weights, share))
            errors.append((answer.value - TRUTH, value - TRUTH))
            outside.append(abs(answer.value - TRUTH) > answer.error_bound + 1e-12)
    error, measured = np.abs(np.array(errors)).T
    bad = measured > np.array(radii)

    assert len(errors) > SESSIONS // 4
    assert not np.any(np.array(outside) & ~bad)
    assert too_many(int(bad.sum()), len(bad), share) > LEVEL
    assert bad.sum() > least * share * len(bad)  # it is a bound that can fail
    assert np.sqrt(np.mean(error**2)) < 0.5 * np.sqrt(np.mean(measured**2))
