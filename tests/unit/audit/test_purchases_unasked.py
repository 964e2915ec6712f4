"""Audits of sessions that bought for a question, and ended before it was tested."""

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.ledger import read
from onlineic.plan.demand import DemandPurchases
from support.sessions import sold_quieter

DOMAIN = ic.Domain.of(a=5, b=3, c=6)


def recorded(path):
    """The record of a session that bought for a question which nobody has tested."""

    def stop(stage, done, total):
        if stage == "tables" and done == total:
            raise KeyboardInterrupt

    data = PrivateData(np.full(DOMAIN.shape, 20), DOMAIN)
    session = ic.OnlineIC(
        data, ic.Budget(1.0, 1e-9), ledger=path, table="t", purchases=DemandPurchases(rent=0), progress=stop
    )
    with pytest.raises(KeyboardInterrupt):
        session.answer(ic.where(b=1, c=ic.between(2, 4)))
    session.close()
    with ic.OnlineIC.resume(path, data) as again:
        again.answer(ic.where(a=3))
    return read(path)


def test_a_purchase_whose_question_was_never_tested_is_no_forgery(tmp_path):
    assert verified(recorded(tmp_path / "session.db")).problems == ()


@pytest.mark.parametrize("deaf", [False, True])
def test_a_purchase_is_worked_out_again_from_the_questions_that_it_heard(tmp_path, monkeypatch, deaf):
    """One that rests on others than it names is found."""
    named = DemandPurchases.next

    def first_alone(rule, facts):
        return named(rule, attrs.evolve(facts, questions=facts.questions[:1]) if deaf else facts)

    with monkeypatch.context() as patched:
        patched.setattr(DemandPurchases, "next", first_alone)
        data = PrivateData(np.full(DOMAIN.shape, 20), DOMAIN)
        path = tmp_path / "session.db"
        with ic.OnlineIC(
            data, ic.Budget(1.0, 1e-9), ledger=path, table="t", purchases=DemandPurchases(rent=0)
        ) as session:
            session.answer_many([ic.where(b=1), *[ic.where(a=code, c=ic.between(2, 4)) for code in range(5)]])

    assert deaf == any("does not buy" in text for text in verified(read(path)).problems)


def test_a_test_before_the_first_tables_is_found(tmp_path, monkeypatch):
    """Of a session that bought nothing, and tested at once: its bounds would be those of no plan."""
    data, path = PrivateData(np.full(DOMAIN.shape, 20), DOMAIN), tmp_path / "session.db"
    rule = DemandPurchases(rent=0)
    with monkeypatch.context() as patched:
        patched.setattr(DemandPurchases, "next", lambda *_: None)
        with ic.OnlineIC(data, ic.Budget(1.0, 1e-9), ledger=path, table="t", purchases=rule) as session:
            session.answer(ic.where(b=1))

    assert any("a test before first tables" in text for text in verified(read(path)).problems)


def test_it_has_to_pay_for_its_noise_all_the_same(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        sold_quieter(patched)
        written = recorded(tmp_path / "session.db")

    assert any("another scale than the plan" in text for text in verified(written).problems)
