"""Brackets of instalments against an analyst who buys, each time, for what came out highest.

He asks for the code that came out highest, again and again, and looks after each whether he has won.
Each instalment has fresh noise and a bound of its own. The interval of their mean by precision, as if the
code and the number of releases had been fixed beforehand, fails more often than its beta.
"""

import math

import numpy as np
import pytest
from scipy import stats

import onlineic as ic
from onlineic.known_noise.instalments import Instalments
from onlineic.noise import SimulatedNoise
from onlineic.noise.laws import DiscreteGaussian
from onlineic.queries import Partition
from onlineic.queries.partitions import Measurement
from support.laws import too_many

pytestmark = pytest.mark.statistical
LEVEL, BETA, SESSIONS, MOST = 1e-6, 0.3, 300, 12
DOMAIN = ic.Domain.of(a=[*"uvwxyz"], b=["no", "yes"])
N, SIGMA = 6_000, 20
CODES = np.arange(6)
TRUTH = np.full(6, 1 / 6)
QUERIES = [ic.where(a=code).bind(DOMAIN) for code in "uvwxyz"]
WHOLE = Partition(DOMAIN, (0,), (CODES,))
PAIR = [Partition(DOMAIN, (0,), ((CODES == code).astype(np.int64),)) for code in CODES]


def released(target, noise):
    counts = np.bincount(target.classes[0], TRUTH * N)
    drawn = DiscreteGaussian(SIGMA).draw(noise, target.blocks)
    return Measurement(target, (counts + drawn) / N, SIGMA / N)


def sessions():
    """(how often a bracket of an instalment misses, how often one pooled interval of its code does)."""
    noise, outside = SimulatedNoise(3), [0, 0]
    reach = float(stats.norm.isf(BETA / 2.0)) * SIGMA / N
    for _ in range(SESSIONS):
        first = released(WHOLE, noise)
        held = Instalments().then([first], N, BETA, False)
        highest = int(np.argmax(first.values))
        values, lost = [float(first.values[highest])], [_misses(held), False]
        for _ in range(MOST):
            lost[1] |= abs(np.mean(values) - TRUTH[highest]) > reach / math.sqrt(len(values))
            bought = released(PAIR[highest], noise)
            held = held.then([bought], N, BETA, False)
            values.append(float(bought.values[1]))
            lost[0] |= _misses(held)
        outside = [one + bool(more) for one, more in zip(outside, lost, strict=True)]
    return outside


def _misses(held):
    found = [held.bracket(query) for query in QUERIES]
    return any(
        one is not None and not one[0] - 1e-12 <= truth <= one[1] + 1e-12
        for one, truth in zip(found, TRUTH, strict=True)
    )


def test_brackets_hold_whatever_was_bought_and_an_interval_as_if_nothing_had_been_chosen_does_not():
    outside = sessions()

    assert too_many(outside[0], SESSIONS, BETA) > LEVEL
    assert too_many(outside[1], SESSIONS, BETA) < LEVEL
