"""The exact law of whole pure sessions that the first question opens: it alone tells what is bought.

Every stream of questions of each kind, every pattern of hits: the two choices have different tables, noise
and prices, and which is bought is part of the transcript. Were it chosen by a private count, neighbours would
have transcripts that the other cannot have; were the dearer bought at the price of the cheaper, a loss would
pass its charge. Laws are sums in closed form, all else that depends on the data is discrete Laplace noise.
"""

import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
import onlineic.plan.first_tables as first_tables
import onlineic.plan.planning as planning
from onlineic.data import PrivateData
from onlineic.ledger import Easy, Hard, MemoryLedger, Opened, TableBudget
from onlineic.noise import Noise
from onlineic.plan import FirstChoices, Spent
from onlineic.queries import Marginal, Query, marginal
from onlineic.updates import FittedTables
from support.sessions import all_spent

pytestmark = pytest.mark.usefixtures("pairs_first")
DOMAIN = ic.Domain.of(a=2, b=2, c=2)
SHAPE = (2, 2, 2)
COUNTS = 10 * np.array([9, 2, 4, 1, 3, 6, 7, 8])
MOVED = COUNTS + np.array([-1, 0, 0, 0, 0, 0, 0, 1])  # another value of every attribute
PARITY = ic.dense(np.indices(SHAPE).sum(axis=0) % 2.0)
WEIGHTS = ic.dense(np.array([0.1, 0.9, 0.8, 0.2, 1.0, 0.0, 0.3, 0.9]).reshape(SHAPE))
CORNER, SIDE = ic.where(a=0, b=0, c=0), ic.where(b=1)
STREAMS = {
    "dense": (PARITY, CORNER, SIDE),
    "weights": (WEIGHTS, PARITY),
    "conjunctions": (CORNER, PARITY, WEIGHTS),
    "cross table": (marginal("a", "b"), PARITY),
}
BUDGET = ic.Budget(3.0)
FAR = 10**12


class Director(Noise):
    """Forces the outcome of each test: the threshold is far away, and a hit farther. Keeps what is drawn."""

    def __init__(self, ledger, pattern):
        self.ledger, self.pattern, self.threshold_drawn = ledger, iter(pattern), False
        self.released, self.unpaid = [], 0

    @property
    def simulated(self):
        return True

    def geometric(self, scale, size):
        self.unpaid += self.ledger.reserved is None
        assert 1 == size
        if not self.threshold_drawn:
            self.threshold_drawn = True
            return np.array([FAR])
        return np.array([3 * FAR if next(self.pattern) else 0])

    def discrete_laplace(self, scale, size):
        self.unpaid += self.ledger.reserved is None
        draw = 3 + 2 * np.arange(size)
        self.released.append((scale, draw))
        return draw

    words = discrete_gaussian = unread = None


Director.__abstractmethods__ = frozenset()


def outcomes(questions, pattern):
    """What the noise of tests is asked for: a query is tested on both sides of 0."""
    for question, hit in zip(questions, pattern, strict=True):
        yield from [True] if hit else [False] * (1 if isinstance(question, Marginal) else 2)


def table(counts):
    return PrivateData(counts.reshape(SHAPE), DOMAIN)


def play(counts, questions, pattern, settled):
    """Run a session through a pattern: (session, director, statuses of what was tested)."""
    ledger = MemoryLedger()
    director = Director(ledger, outcomes(questions, pattern))
    data = table(counts)
    if settled:  # the account is, as with a file: cells are bought in the place of the pairs
        data.draw_on(TableBudget(BUDGET))
    session = ic.OnlineIC(data, BUDGET, ledger=ledger, noise=director, hard_answers=2)
    assert session.plan.purchases.first.dense is not None  # the first question tells
    statuses = [session.answer(question).status for question in questions]
    return session, director, [status for status in statuses if status != "untested"]


def public(session):
    """What of a transcript no number tells: what was bought and tested, with which noise, at which price."""
    shown = []
    for record in session.transcript:
        released = record.measurements if isinstance(record, Opened) else ()
        released = (record.measurement,) if isinstance(record, Hard) else released
        charge = record.charge.amount if isinstance(record, Hard | Opened) else None
        shown.append((type(record), charge, [(one.target, one.scale) for one in released]))
    return shown


def log_law(session, data, questions, statuses):
    """ln P(pattern): sums of e^(-x rho), whose mean over the geometric noise of the threshold is closed."""
    plan, law, spent = session.plan, {0.0: 1.0}, Spent()
    tested = iter(zip(questions, statuses, strict=True))
    for record in session.transcript:
        sparse = plan.spending.at(spent)  # what tests next is in the record
        spent = plan.spending.after(spent, record)
        if not isinstance(record, Easy | Hard):
            continue
        question, status = next(tested)
        shift, scale = sparse.grid_bits, float(sparse.query_scale)
        if isinstance(question, Marginal):
            target = question.bind(DOMAIN).partition
            gaps = [int(np.abs(data.exact_counts(target) - np.array(record.guess)).max()) << shift]
        else:
            query = question.bind(DOMAIN, shift)
            gap = (data.exact_counts(query) - record.guess) << (shift - query.grid_bits)
            gaps = [gap, -gap]
        assert max(gaps) <= sparse.threshold
        easy = {0.0: 1.0}
        for gap in gaps:
            easy = times(easy, {0.0: 1.0, 1.0 / scale: -math.exp(-(sparse.threshold - gap) / scale)})
        law = times(law, easy if status == "easy" else {0.0: 1.0 - easy.pop(0.0)} | negative(easy))
    assert next(tested, None) is None
    z = -1.0 / float(plan.sparse.threshold_scale)
    return math.log(sum(part * math.expm1(z) / math.expm1(z - at) for at, part in law.items()))


def times(one, other):
    product = {}
    for (at, part), (again, share) in itertools.product(one.items(), other.items()):
        product[at + again] = product.get(at + again, 0.0) + part * share
    return product


def negative(terms):
    return {at: -part for at, part in terms.items()}


def moved(session, data, others, director):
    """The loss of all released numbers: how far their counts lie apart, in scales of the noise they got."""
    loss, n = 0.0, session.n
    released = []
    for record in session.transcript:
        released += record.measurements if isinstance(record, Opened) else ()
        released += [record.measurement] if isinstance(record, Hard) else []
    for one, (scale, draw) in zip(released, director.released, strict=True):
        left, right = (np.atleast_1d(each.exact_counts(one.target)) for each in (data, others))
        bits = one.target.grid_bits if isinstance(one.target, Query) else 0
        assert np.array_equal(left + draw, np.rint(one.values * (n << bits)))
        loss += np.abs(left - right).sum() / float(scale)
    return loss


def losses(counts, neighbour, questions, settled=False):
    """For every transcript: its worst loss, what it was charged, and what was bought at the start."""
    rows, data, others = {}, table(counts), table(neighbour)
    for pattern in itertools.product((False, True), repeat=len(questions)):
        session, director, tested = play(counts, questions, pattern, settled)
        other, _, again = play(neighbour, questions, pattern, settled)
        if tuple(tested) in rows:
            continue
        assert 0 == director.unpaid
        assert tested == ["hard" if hit else "easy" for hit in pattern[: len(tested)]]
        asked = questions[: len(tested)]
        loss = moved(session, data, others, director)
        loss += log_law(session, data, asked, tested) - log_law(other, others, asked, again)
        if public(session) != public(other):  # a transcript that the neighbour cannot have
            loss = math.inf
        hits = [record for record in session.transcript if isinstance(record, Hard)]
        (opened,) = [record for record in session.transcript if isinstance(record, Opened)]
        run = session.plan.sparse.start_charge().amount
        charged = opened.charge.amount + max(sum((hit.charge.amount for hit in hits), Fraction(0)), run)
        assert charged <= max(all_spent(session), opened.charge.amount + run)
        rows[tuple(tested)] = loss, charged, opened, math.exp(log_law(session, data, asked, tested))
    assert sum(row[3] for row in rows.values()) == pytest.approx(1.0, abs=1e-9)
    return list(rows.values())


def both_ways(name, settled):
    questions = STREAMS[name]
    return [
        row
        for counts, other in ((COUNTS, MOVED), (MOVED, COUNTS))
        for row in losses(counts, other, questions, settled)
    ]


@pytest.fixture(autouse=True)
def _hypothesis_stays(monkeypatch):
    monkeypatch.setattr(FittedTables, "update", lambda self, hypothesis, measurements, alpha: hypothesis)


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_no_transcript_loses_more_than_its_opening_and_its_hits_were_charged(name, settled):
    rows = both_ways(name, settled)
    dense = name in ("dense", "weights")

    assert {1 if dense else 4} == {len(opened.measurements) for _, _, opened, _ in rows}
    assert max(loss for loss, *_ in rows) > 0.75 * BUDGET.epsilon  # not vacuous
    for loss, charged, _, _ in rows:
        assert loss <= float(charged) + 1e-9
        assert charged <= 3


def test_an_opening_that_a_private_count_chooses_is_found(monkeypatch):
    """Neighbours on two sides of its boundary buy different tables: what one tells the other cannot."""
    begin, seen = ic.OnlineIC.__init__, []

    def looked(self, data, *arguments, **settings):
        seen[:] = [
            data.exact_counts(CORNER.bind(DOMAIN)) >= COUNTS[0]
        ]  # each session is asked before the next
        begin(self, data, *arguments, **settings)

    def chosen(self, question):
        return self.dense if seen[0] else self.first

    monkeypatch.setattr(ic.OnlineIC, "__init__", looked)
    monkeypatch.setattr(FirstChoices, "chosen_by", chosen)
    assert math.inf == max(loss for loss, *_ in both_ways("conjunctions", True))


def test_the_dearer_opening_at_the_charge_of_the_cheaper_one_is_found(monkeypatch):
    """Cells with the noise that another plan pays for, recorded at what the pairs of this one cost."""
    instead = planning.cells_instead

    def halved(*arguments):
        made = instead(*arguments)
        return attrs.evolve(made, scales=tuple(scale / 2 for scale in made.scales))

    monkeypatch.setattr(first_tables.FirstTables, "__attrs_post_init__", lambda _: None)  # a second guard
    monkeypatch.setattr(planning, "cells_instead", halved)

    assert any(loss > float(charged) + 0.5 for loss, charged, *_ in both_ways("dense", True))
    assert all(loss <= float(charged) + 1e-9 for loss, charged, *_ in both_ways("conjunctions", True))
