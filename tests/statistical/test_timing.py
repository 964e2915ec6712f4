"""The time of an answer does not tell how many records match, and a planted leak of that kind is found.

Pairs of processor times of this thread, the two tables in turns, are taken until a bracket of their median
ratio says on which side of the gate it lies: a slow or busy machine takes more pairs, and says the same.
It runs with the heavy audits (`make audit`).
"""

import time

import numpy as np
import pytest
from scipy.stats import binom

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.noise import SimulatedNoise

pytestmark = pytest.mark.audit
DOMAIN = ic.Domain.of(a=128, b=128, c=16)
N = 1_000_000
NEAR = 1.25  # the median ratio, or its inverse
WRONG = 1e-9  # how often a bracket misses the median, at most


def cells():
    """All records in one cell, and as many spread over all: a query on the first half meets all, or half."""
    concentrated = np.zeros(DOMAIN.size, np.int64)
    concentrated[0] = N
    spread = np.random.default_rng(1).multinomial(N, np.full(DOMAIN.size, 1 / DOMAIN.size))
    return concentrated, spread


def tables():
    return [PrivateData(counts, DOMAIN) for counts in cells()]


def near(one, other):
    """Whether the median ratio of their times lies within the gate."""
    ratios = []
    for trial in range(3_000):
        taken = []
        for act in (one, other):
            start = time.thread_time_ns()
            act(trial)
            taken.append(time.thread_time_ns() - start)
        ratios.append(taken[0] / taken[1])
        if trial % 100 == 99:
            kept = sorted(ratios[10:])  # without those that warm up
            out = int(binom.ppf(WRONG / 2, len(kept), 0.5))
            low, high = kept[out - 1], kept[-out]
            if 1 / NEAR < low <= high < NEAR:
                return True
            if high < 1 / NEAR or low > NEAR:
                return False
    raise AssertionError(f"the median ratio lies between {low:.3g} and {high:.3g}")


def asked(trial):
    rng = np.random.default_rng(trial)
    return ic.dense(rng.random(DOMAIN.shape).round(3)), ic.where(
        a=ic.between(0, 1 + trial % 100), c=trial % 16
    )


@pytest.mark.parametrize("kind", [0, 1], ids=["dense weights", "conjunctions"])
def test_reading_a_query_takes_as_long_whatever_matches(kind):
    queries = [asked(trial)[kind].bind(DOMAIN, 20) for trial in range(20)]
    acts = [  # another query each, so that neither finds in the cache what the other has read
        lambda trial, data=data, at=at: data.exact_counts(queries[(trial + at) % 20])
        for at, data in zip((0, 10), tables(), strict=True)
    ]

    assert near(*acts)


def test_easy_answers_take_as_long_whatever_matches():
    sessions = [
        ic.OnlineIC(
            data,
            ic.Budget(1.0, 1e-9),
            threshold=0.99,
            purchases=ic.TestsOnly(),
            hard_answers=3,
            noise=SimulatedNoise(1),
        )
        for data in tables()
    ]

    def answered(session):
        def act(trial):
            low = 1 + trial % 100  # none of the records in one cell, some of those spread
            assert session.answer(
                ic.where(a=ic.between(low, low + 20), b=trial % 128, c=trial % 16)
            ).status in (
                "easy",
                "repeat",
            )

        return act

    assert near(*map(answered, sessions))


def test_a_read_whose_work_follows_the_records_is_found():
    """The same gate on a read of the occupied cells alone."""
    weights = np.random.default_rng(3).random(DOMAIN.size)

    def occupied(counts):
        found = np.flatnonzero(counts)
        held = counts[found]
        return lambda _: float((held * weights[found]).sum())

    assert not near(*map(occupied, cells()))
