"""Questions that a signal's handler asks in the middle of another: nothing is drawn that is not paid."""

from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.errors import SessionStateError
from onlineic.ledger import Easy, Hard, Opened, Reserved, read
from onlineic.ledger.kept import Kept
from onlineic.noise import SimulatedNoise
from onlineic.queries import marginal
from onlineic.session.curator import Curator
from support.ledgers import quick_folder
from support.sessions import charged

DOMAIN = ic.Domain.of(a=6, b=4)
COUNTS = (
    np.random.default_rng(3).multinomial(900, np.random.default_rng(4).dirichlet(np.ones(24))).reshape(6, 4)
)


def asked_at(monkeypatch, owner, name, session, question):
    """Ask once, at the first call of a method that another question makes."""
    plain, asked = getattr(owner, name), []

    def handled(self, *arguments):
        if not asked:
            asked.append(None)
            asked[0] = session.answer(question)
        return plain(self, *arguments)

    monkeypatch.setattr(owner, name, handled)
    return asked


@pytest.mark.parametrize("together", [False, True], ids=["alone", "batch"])
@pytest.mark.parametrize("first", [ic.where(a=1), ic.where(b=1)])
def test_a_reservation_that_a_nested_question_used_up_pays_for_no_other(monkeypatch, first, together):
    session = ic.OnlineIC(
        PrivateData(COUNTS, DOMAIN), ic.Budget(1.0, 1e-9), max_queries=3, noise=SimulatedNoise(1)
    )
    assert session.answer(ic.where(a=5)).status == "hard"  # each question is measured, at a price
    asked = asked_at(monkeypatch, Curator, "_guarded", session, ic.where(a=2))
    with pytest.raises(SessionStateError, match="nothing was read"):
        session.answer_many([first, ic.where(a=4)]) if together else session.answer(first)
    records = [record for record in session.transcript if isinstance(record, Hard)]

    assert asked[0].status == "hard"
    assert [record.query for record in records] == [
        one.bind(DOMAIN) for one in (ic.where(a=5), ic.where(a=2))
    ]
    assert session._loop.ledger.spent == charged(session._loop.ledger)
    assert session.answer(first).status == "hard"  # asked again, and paid
    assert not session.statistics().sealed


def test_a_nested_easy_answer_leaves_the_reservation_to_the_outer_question(monkeypatch):
    session = ic.OnlineIC(PrivateData(COUNTS * 1_000, DOMAIN), ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    session.answer(ic.where(a=5))
    asked = asked_at(monkeypatch, Curator, "_guarded", session, ic.where(a=2))

    assert {"easy"} == {session.answer(ic.where(a=1)).status, asked[0].status}
    assert 3 == sum(isinstance(record, Easy) for record in session.transcript)


def test_of_two_records_that_follow_the_same_one_neither_erases_the_other():
    """As a ledger that a handler writes to in the middle of a write: the outer step then fails alone."""
    records = [Reserved(Charge(Fraction(count), "", "epsilon")) for count in (1, 2, 3, 4)]
    kept = Kept().followed_by(records[:1])
    inner, outer = kept.followed_by(records[1:2]), kept.followed_by(records[2:3])

    assert inner.between(0, 2) == tuple(records[:2])
    assert outer.between(0, 2) == (records[0], records[2])
    assert inner.followed_by(records[3:]).between(0, 3) == (*records[:2], records[3])


@pytest.mark.usefixtures("pairs_first")
def test_later_tables_are_bought_once_though_a_handler_asks_while_they_are_chosen(monkeypatch):
    from onlineic.session.later_tables import LaterTables

    domain = ic.Domain.of(a=12, b=5, c=4)
    counts = np.random.default_rng(8).multinomial(16_000, np.full(240, 1 / 240)).reshape(12, 5, 4)
    with quick_folder() as folder:
        session = ic.OnlineIC(
            PrivateData(counts, domain), ic.Budget(1.0, 1e-9), ledger=folder / "ledger.db", table="made up"
        )
        questions = [ic.where(a=ic.between(0, 3), b=code, c=ic.between(0, 1)) for code in range(5)]
        for question in questions[:4]:
            session.answer(question)
        asked_at(monkeypatch, LaterTables, "tables", session, ic.where(a=1))
        with pytest.raises(SessionStateError, match="must buy its tables before it is asked"):
            session.answer(questions[4])
        session.answer(questions[4])
        session.answer(ic.where(a=2, b=1))
        session.close()
        report = verified(read(folder / "ledger.db"))

    assert 2 == sum(isinstance(record, Opened) for record in session.transcript)
    assert not [problem for problem in report.problems if "later" in problem or "due" in problem]


def test_attributes_of_one_label_join_nothing():
    domain = ic.Domain.of(a=10, b=4, c=["all"], d=["all"])
    counts = np.random.default_rng(8).multinomial(16_000, np.full(40, 1 / 40)).reshape(domain.shape)
    session = ic.OnlineIC(PrivateData(counts, domain), ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    for _ in range(6):
        session.answer(marginal("a", "c", "d"))

    assert 1 == sum(isinstance(record, Opened) for record in session.transcript)
