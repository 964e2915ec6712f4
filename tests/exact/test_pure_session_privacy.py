"""The exact law of whole pure sessions on a tiny table: no transcript costs more than was charged for it.

The noise forces every pattern of hits, and writes down what is drawn and whether it was paid before. The law
of a pattern is then a sum over the threshold noise, from first principles; all else that depends on the data
is fresh discrete Laplace noise of known scale. The rule is kept from moving the hypothesis, which is
post-processing, so that guesses are the same in all patterns.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge
from onlineic.data import PrivateData
from onlineic.ledger import Hard, MemoryLedger
from onlineic.noise import Noise
from onlineic.queries import Marginal, Partition, marginal
from onlineic.sparse import ExponentialSparse
from onlineic.updates import FittedTables
from support.sessions import all_spent

DOMAIN = ic.Domain.of(a=2, b=2)
CORNER, XOR = ic.where(a=0, b=0), ic.dense(np.array([[1.0, 0.0], [0.0, 1.0]]))
FAR = 10**6


class Director(Noise):
    """Forces the outcome of each test: the threshold is far away, and a hit farther."""

    def __init__(self, ledger, pattern):
        self.ledger, self.pattern, self.threshold_drawn = ledger, iter(pattern), 0
        self.released, self.unpaid = [], 0

    @property
    def simulated(self):
        return True

    def geometric(self, scale, size):
        self.unpaid += self.ledger.reserved is None
        assert 1 == size
        if not self.threshold_drawn:
            self.threshold_drawn += 1
            return np.array([FAR])
        return np.array([3 * FAR if next(self.pattern) else 0])

    def discrete_laplace(self, scale, size):
        self.unpaid += self.ledger.reserved is None
        draw = 3 + 2 * np.arange(size)
        self.released.append((scale, draw))
        return draw

    words = discrete_gaussian = unread = None


Director.__abstractmethods__ = frozenset()


def table(counts):
    return PrivateData(np.array(counts).reshape(2, 2), DOMAIN)


def sides(question, hits):
    """How often the noise of a test is asked for, as outcomes: a query is tested on both sides of 0."""
    for hit in hits:
        yield from [True] if hit else [False] * (1 if isinstance(question, Marginal) else 2)


def play(counts, questions, pattern, block=4):
    """Run a session through a pattern: (session, director, statuses)."""
    ledger = MemoryLedger()
    outcomes = [
        outcome
        for question, hit in zip(questions, pattern, strict=True)
        for outcome in sides(question, [hit])
    ]
    director = Director(ledger, outcomes)
    sparse = ExponentialSparse(sum(counts), 2.0, 7, Fraction(4), Fraction(8), 0, Fraction(block))
    session = ic.OnlineIC(
        table(counts), ic.Budget(2.0), sparse=sparse, release="partition", ledger=ledger, noise=director
    )
    return session, director, [session.answer(question).status for question in questions]


def geometric_below(scale, most):
    """P(Geo < most)."""
    return -np.expm1(-np.maximum(most, 0) / scale)


def law(counts, questions, tested):
    """P(pattern): the sum over the one threshold noise of the run."""
    n, rho = sum(counts), np.arange(400)
    weight = np.exp(-rho / 4.0) * -math.expm1(-1 / 4.0)
    for question, status in zip(questions, tested, strict=False):
        if isinstance(question, Marginal):
            bound = question.bind(DOMAIN)
            gaps = np.abs(table(counts).exact_counts(bound.partition) - round(n / bound.partition.blocks))
            easy = geometric_below(8.0, 7 + rho - gaps.max())
        else:
            weights = question.bind(DOMAIN).weights()
            gap = int((weights * np.array(counts).reshape(2, 2)).sum()) - round(n * int(weights.sum()) / 4)
            easy = geometric_below(8.0, 7 + rho - gap) * geometric_below(8.0, 7 + rho + gap)
        weight = weight * (easy if status == "easy" else 1.0 - easy)
    return float(weight.sum())


def losses(counts, other, questions, block=4):
    """For every transcript: (worst loss over what it released, charges, spent, number of hits)."""
    rows = {}
    for pattern in itertools.product((False, True), repeat=len(questions)):
        session, director, statuses = play(counts, questions, pattern, block)
        tested = tuple(status for status in statuses if status != "untested")
        if tested in rows:
            continue
        hits = [record for record in session.transcript if isinstance(record, Hard)]
        loss = math.log(law(counts, questions, tested) / law(other, questions, tested))
        for record, (scale, draw) in zip(hits, director.released, strict=True):
            target = record.measurement.target
            left, right = (table(c).exact_counts(target) for c in (counts, other))
            assert np.array_equal(left + draw, np.rint(record.measurement.values * sum(counts)))
            loss += np.abs(left - right).sum() / float(scale)
        assert 0 == director.unpaid
        assert tested == tuple("hard" if hit else "easy" for hit in pattern[: len(tested)])
        charges = sum(record.charge.amount for record in hits)
        rows[tested] = loss, charges, all_spent(session), len(hits)
    assert sum(law(counts, questions, tested) for tested in rows) == pytest.approx(1.0, abs=1e-9)
    return list(rows.values())


@pytest.fixture(autouse=True)
def _hypothesis_stays(monkeypatch):
    monkeypatch.setattr(FittedTables, "update", lambda self, hypothesis, measurements, alpha: hypothesis)


SETTINGS = {
    "numbers": ((20, 8, 6, 10), (19, 8, 6, 11), (CORNER, ic.where(a=0), XOR, ic.where(b=0))),
    "tables": ((12, 8, 12, 8), (11, 9, 12, 8), (marginal("a", "b"), ic.where(b=1), marginal("b"))),
    "far from the guess": ((40, 0, 0, 4), (39, 1, 0, 4), (CORNER, marginal("b"), ic.where(a=0), XOR)),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_no_transcript_of_a_pure_session_loses_more_than_its_hits_were_charged(name):
    one, other, questions = SETTINGS[name]
    worst = 0.0
    for counts, neighbour in ((one, other), (other, one)):
        for loss, charges, spent, hits in losses(counts, neighbour, questions):
            run = Fraction(1, 4)  # the threshold noise, which a transcript without a hit has used too
            assert loss <= float(charges if hits else run) + 1e-9
            assert max(charges, run) <= spent <= 2
            worst = max(worst, loss)

    assert worst > 0.8  # not vacuous


def test_hits_whose_tables_are_not_charged_are_found(monkeypatch):
    def cheap(self, target):
        return Charge(Fraction(2, 8), "the test alone")

    assert isinstance(play((20, 8, 6, 10), [CORNER], [True])[0].transcript[-1].measurement.target, Partition)
    monkeypatch.setattr(ExponentialSparse, "price", cheap)
    one, other, questions = SETTINGS["tables"]
    rows = losses(one, other, questions, block=1)  # nearly all of a hit's price is its table

    assert any(loss > float(charges) + 0.5 for loss, charges, _, hits in rows if hits)


def test_a_threshold_noise_that_is_not_charged_is_found(monkeypatch):
    monkeypatch.setattr(ExponentialSparse, "start_charge", lambda self: None)
    one, other, questions = SETTINGS["numbers"]
    rows = losses(one, other, questions) + losses(other, one, questions)

    assert any(loss > float(charges) + 1e-6 for loss, charges, _, hits in rows)
