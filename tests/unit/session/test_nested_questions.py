"""Questions that a signal's handler asks in the middle of another: nothing is drawn that is not paid."""

from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.errors import SessionStateError
from onlineic.ledger import BoughtTables, MemoryLedger, Reserved, read
from onlineic.ledger.kept import Kept
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases
from onlineic.queries import marginal
from onlineic.session.prices import Prices
from onlineic.session.read_guard import ReadGuard
from support.ledgers import quick_folder
from support.sessions import all_spent, charged

DOMAIN = ic.Domain.of(a=6, b=4)
COUNTS = (
    np.random.default_rng(3).multinomial(900, np.random.default_rng(4).dirichlet(np.ones(24))).reshape(6, 4)
)


def refused_at(monkeypatch, owner, name, session):
    """Ask a session, if there is one, at each call of a method, which refuses; the list counts."""
    plain, refused = getattr(owner, name), []

    def handled(self, *arguments):
        if session is not None:
            with pytest.raises(SessionStateError, match=r"one call at a time.* nothing was spent") as error:
                session.answer(ic.where(a=2))
            refused.append(error)
        return plain(self, *arguments)

    monkeypatch.setattr(owner, name, handled)
    return refused


STEPS = [
    (ReadGuard, "run"),
    (Prices, "cover"),
    (PrivateData, "exact_counts"),
    (SimulatedNoise, "discrete_laplace"),
    (MemoryLedger, "reserve"),
    (MemoryLedger, "commit"),
]


def answered(monkeypatch, step, together, *, asking):
    """Return what a session answers and has spent, and how often a handler that asks it was refused."""
    data, noise, ledger = PrivateData(COUNTS, DOMAIN), SimulatedNoise(1), MemoryLedger()
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), certify=0.1, questions=3, noise=noise, ledger=ledger)
    assert session.answer(ic.where(a=5)).status == "hard"  # each question is measured, at a price
    with monkeypatch.context() as patched:
        refused = refused_at(patched, *step, session) if asking else []
        first, second = ic.where(a=1), ic.where(b=1)
        answers = session.answer_many([first, second]) if together else [session.answer(first)]
    assert all_spent(session) == charged(ledger)
    assert not session.statistics().sealed
    return [one.value for one in answers], len(session.transcript), all_spent(session), len(refused)


@pytest.mark.parametrize("together", [False, True], ids=["alone", "batch"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[1])
def test_a_handler_that_asks_its_session_at_any_step_of_an_answer_is_refused_for_nothing(
    monkeypatch, step, together
):
    """Its question would use up what stands reserved for the one that it came into."""
    plain = answered(monkeypatch, step, together, asking=False)
    *asked, refused = answered(monkeypatch, step, together, asking=True)

    assert plain == (*asked, 0)
    assert refused >= 1


def test_of_two_records_that_follow_the_same_one_neither_erases_the_other():
    """As a ledger that a handler writes to in the middle of a write: the outer step then fails alone."""
    records = [Reserved(Charge(Fraction(count), "", "epsilon")) for count in (1, 2, 3, 4)]
    kept = Kept().followed_by(records[:1])
    inner, outer = kept.followed_by(records[1:2]), kept.followed_by(records[2:3])

    assert inner.between(0, 2) == tuple(records[:2])
    assert outer.between(0, 2) == (records[0], records[2])
    assert inner.followed_by(records[3:]).between(0, 3) == (*records[:2], records[3])


@pytest.mark.usefixtures("listening")
def test_later_tables_are_bought_once_though_a_handler_asks_while_they_are_chosen(monkeypatch):
    domain = ic.Domain.of(a=12, b=5, c=4)
    counts = np.random.default_rng(8).multinomial(16_000, np.full(240, 1 / 240)).reshape(12, 5, 4)
    rule = DemandPurchases(rent=0)
    with quick_folder() as folder:
        session = ic.OnlineIC(
            PrivateData(counts, domain),
            ic.Budget(1.0, 1e-9),
            ledger=folder / "ledger.db",
            table="made up",
            purchases=rule,
        )
        questions = [ic.where(a=ic.between(0, 3), b=code, c=ic.between(0, 1)) for code in range(5)]
        for question in questions[:4]:
            session.answer(question)
        with monkeypatch.context() as patched:
            refused = refused_at(patched, DemandPurchases, "next", session)
            session.answer(questions[4])
        session.answer(ic.where(a=2, b=1))
        session.close()
        report = verified(read(folder / "ledger.db"))

    assert refused
    assert 2 == sum(isinstance(record, BoughtTables) for record in session.transcript)
    assert not [problem for problem in report.problems if "later" in problem or "due" in problem]


def test_attributes_of_one_label_join_nothing():
    domain = ic.Domain.of(a=10, b=4, c=["all"], d=["all"])
    counts = np.random.default_rng(8).multinomial(16_000, np.full(40, 1 / 40)).reshape(domain.shape)
    session = ic.OnlineIC(PrivateData(counts, domain), ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    for _ in range(6):
        session.answer(marginal("a", "c", "d"))

    assert 1 == sum(isinstance(record, BoughtTables) for record in session.transcript)
