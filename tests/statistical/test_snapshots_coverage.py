"""Snapshots against an analyst who takes one after every purchase until a number, and its bound, suit.

He looks twenty times, and wins if the truth is outside of what he was told at the look that he picks: any of
them. All that he is told rests on the events of the first statement and of the tables' brackets, so he wins
with probability beta at most, however often he looks. The interval of the estimate of each look fails more
often.
"""

from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge
from onlineic.data import PrivateData
from onlineic.ledger import BoughtTables
from onlineic.noise import SimulatedNoise
from onlineic.plan import PurchaseRule
from onlineic.plan.purchase import Purchase, least_gaussian
from onlineic.queries import Partition
from support.laws import too_many

pytestmark = pytest.mark.statistical
LEVEL, BETA, SESSIONS, LOOKS = 1e-6, 0.3, 16, 20
DOMAIN = ic.Domain.of(a=4, b=2)
COUNTS = np.array([[300, 100], [150, 250], [50, 650], [350, 150]])
PAIR = Partition(DOMAIN, (0, 1), (np.arange(4), np.arange(2)))
ASKED = ic.where(a=0, b=0)
TRUTH = 300 / 2_000


@attrs.frozen(eq=False)
class Dearer(PurchaseRule):
    """The same table once a look, each time for half as much again."""

    looks: list = attrs.field(factory=lambda: [0])

    def planned(self, account):
        return Fraction(9, 10) * account.capacity

    def start(self):
        return 0

    def heard(self, so_far, record):
        return so_far + isinstance(record, BoughtTables)

    def next(self, facts):
        if facts.heard >= self.looks[0]:
            return None
        order = facts.account.order
        most = int(facts.account.capacity * Fraction(0.4 * 1.5 ** (facts.heard - LOOKS)))
        scale = least_gaussian(order, Fraction(most), facts.neighbours)
        unpaid = Charge(Fraction(most), "a table", facts.account.unit, order)
        tables = Purchase((PAIR,), (scale,), unpaid, neighbours=facts.neighbours)
        return attrs.evolve(tables, charge=attrs.evolve(unpaid, amount=tables.cost))


def looked(seed):
    """What a session says of one question at each look: its answer, and snapshots after that."""
    rule, noise = Dearer(), SimulatedNoise(seed)
    data = PrivateData(COUNTS, DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), purchases=rule, beta=BETA, noise=noise)
    answers = []
    for look in range(1, LOOKS + 1):
        rule.looks[0] = look
        if answers:  # a repeat buys nothing: another question does
            session.answer(ic.where(a=ic.weights(np.array([0, look, 0, 0]) / 32)))
        answers += session.snapshot([ASKED], [session.answer(ASKED)])
    assert look == sum(isinstance(record, BoughtTables) for record in session.transcript)
    return answers


def test_no_snapshot_is_outside_of_its_bound_oftener_than_beta():
    outside, moved = [0, 0], 0
    for seed in range(SESSIONS):
        answers = looked(seed)
        moved += len({one.value for one in answers}) - 1
        outside[0] += any(abs(one.value - TRUTH) > one.error_bound for one in answers)
        intervals = [one.interval(1.0 - BETA) for one in answers]
        outside[1] += any(not low <= TRUTH <= high for low, high in intervals)

    assert moved > 5 * SESSIONS
    assert too_many(outside[0], SESSIONS, BETA) > LEVEL
    assert too_many(outside[1], SESSIONS, BETA) < LEVEL
