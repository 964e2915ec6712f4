"""Several askers of one session: quotas, one outcome a question, group commits and what is public."""

import json
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge
from onlineic.audit import verified
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    LedgerWriteError,
    OnlineICError,
    SessionSealedError,
)
from onlineic.ledger import BoughtTables, Paid, read
from onlineic.plan import PurchaseRule, session_plan
from onlineic.plan.purchase import Purchase
from onlineic.queries.partitions import one_way
from onlineic.session import Quota
from support.cores import core_of
from support.ledgers import with_ledger
from support.sessions import WIDE, WIDE_COUNTS, begun, settled

BUDGET, N = ic.Budget(1.0, 1e-6), 300_000
QUESTIONS = [ic.where(a=a, b=b, c=ic.below(c)) for a in range(4) for b in range(3) for c in (5, 10, 15)]


def opened(**settings):
    data = ic.PrivateData(WIDE_COUNTS, WIDE)
    return ic.OnlineIC(data, BUDGET, **({"purchases": ic.TestsOnly(), "hard_answers": 20} | settings))


def test_a_quota_pays_for_the_hits_of_its_asker_and_no_further():
    session = opened()
    price = Fraction(session.explain(QUESTIONS[0]).price) * session.account.capacity
    ann, bob = Quota("ann", price * 3 / 2), Quota("bob", session.account.capacity)
    of_ann = [one.answer.status for one in session.paid_by(ann).outcomes(QUESTIONS[:12])]
    of_bob = [one.answer.status for one in session.paid_by(bob).outcomes(QUESTIONS[12:24])]
    paid = session.view().paid

    assert 1 == of_ann.count("hard")
    assert set(of_ann[of_ann.index("hard") + 1 :]) <= {"untested"}
    assert set(of_bob) <= {"easy", "hard"}
    assert 0 < paid["ann"] <= ann.limit
    assert sum(paid.values()) == session.account.spent


def test_many_at_once_are_cut_by_the_quota_as_one_at_a_time_are():
    session = opened()
    price = Fraction(session.explain(QUESTIONS[0]).price) * session.account.capacity
    found = session.paid_by(Quota("ann", price * 3 / 2)).answer_many(QUESTIONS)

    assert 1 == sum(one.status == "hard" for one in found)
    assert session.view().paid["ann"] == session.account.spent


def test_a_hit_behind_easy_answers_of_one_step_is_paid_by_its_asker():
    counts = np.full(WIDE.shape, 1250)
    counts[0, 0, 0] += 12_000
    counts[0, 1, :] -= 600
    session = ic.OnlineIC(ic.PrivateData(counts, WIDE), BUDGET, purchases=ic.TestsOnly(), hard_answers=20)
    asker = session.paid_by(Quota("ann", session.account.capacity))
    found = asker.answer_many([ic.where(a=1), ic.where(a=2), ic.where(a=0, b=0, c=0)])

    assert ["easy", "easy", "hard"] == [one.status for one in found]
    assert {"ann": session.account.spent} == session.view().paid


def test_an_empty_quota_gets_repeats_and_constants_and_nothing_that_is_read():
    session = opened()
    known = session.answer(QUESTIONS[0])
    broke = session.paid_by(Quota("ann", Fraction(0)))

    assert ("repeat", known.value) == (broke.answer(QUESTIONS[0]).status, broke.answer(QUESTIONS[0]).value)
    assert 1.0 == broke.answer(ic.where()).value
    before = len(session.transcript)
    assert "untested" == broke.answer(QUESTIONS[5]).status
    assert before == len(session.transcript)


def test_first_tables_are_bought_for_all_and_paid_by_no_quota():
    session = opened(purchases=settled(WIDE, N, BUDGET, hard_answers=20))
    price = Fraction(session.explain(QUESTIONS[0]).price) * session.account.capacity
    broke = session.paid_by(Quota("ann", Fraction(0)))  # who has nothing left sets nothing in motion
    poor = session.paid_by(Quota("bob", price * 99 / 100))

    assert ["untested"] == [one.status for one in broke.answer_many(QUESTIONS[:1])]
    assert (1.0, "untested") == (broke.answer(ic.where()).value, broke.answer(QUESTIONS[1]).status)
    assert 1.0 == poor.answer(ic.where()).value
    assert ((), 0) == (session.transcript, session.account.spent)
    assert "untested" == poor.answer(QUESTIONS[0]).status
    assert BoughtTables in map(type, session.transcript)
    assert {} == session.view().paid


class ForOne(PurchaseRule):
    """Names tables for one question: others do without."""

    def __init__(self, tables):
        self.tables = tables

    def start(self):
        return 0

    def heard(self, so_far, record):
        return so_far + isinstance(record, BoughtTables)

    def next(self, facts):
        return None if facts.question is None or facts.heard else self.tables


def test_tables_for_one_question_are_paid_by_who_asks_it_or_not_bought():
    plan = session_plan(WIDE, 300_000, BUDGET)
    charge = Charge(plan.sparse.account().capacity / 10, "tables", "ticks", plan.sparse.order)
    tables = Purchase((one_way(WIDE, 0),), (Fraction(1000),), charge)
    core, ledger = core_of(ic.PrivateData(WIDE_COUNTS, WIDE), plan.sparse, rule=ForOne(tables))
    core.payments.quota = Quota("ann", Fraction(0))
    assert "untested" == core.answer(QUESTIONS[0]).status
    assert 0 == ledger.account.spent
    core.payments.quota = Quota("bob", plan.sparse.account().capacity)
    core.answer(QUESTIONS[0])
    assert charge.amount <= core.payments.by("bob")


def test_who_paid_stands_in_the_ledger_and_outlives_its_process(tmp_path):
    path = tmp_path / "a.db"
    session = opened(ledger=path, table="t", durability="all")
    session.paid_by(Quota("ann", session.account.capacity)).outcomes(QUESTIONS[:20])
    paid = session.view().paid
    session.close()
    with ic.OnlineIC.resume(path, ic.PrivateData(WIDE_COUNTS, WIDE), durability="all") as again:
        assert {"ann"} == set(paid)
        assert paid == again.view().paid
    assert () == verified(read(path)).problems


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("bought", [False, True])
def test_who_asks_pays_for_what_a_failure_burns(monkeypatch, tmp_path, bought, at_once, failure):
    """Else an asker whose calls fail spends what others were left. Of tables for all nobody pays."""

    def failing(*_):
        raise failure

    session = opened(ledger=tmp_path / "a.db", table="t", **({"purchases": None} if bought else {}))
    asker = session.paid_by(Quota("ann", session.account.capacity))
    with monkeypatch.context() as patched:
        for name in ("exact_counts", "exact_counts_many"):
            patched.setattr(ic.PrivateData, name, failing)
        with pytest.raises((KeyboardInterrupt, SessionSealedError)):
            asker.answer_many(QUESTIONS[:2] if at_once else QUESTIONS[:1])
    paid = session.view().paid
    session.close()

    assert 0 < session.account.spent
    assert ({} if bought else {"ann": session.account.spent}) == paid
    with ic.OnlineIC.resume(tmp_path / "a.db", ic.PrivateData(WIDE_COUNTS, WIDE)) as again:
        assert paid == again.view().paid
    assert () == verified(read(tmp_path / "a.db")).problems


def test_an_outcome_a_question_tells_its_place_or_its_refusal():
    session = opened()
    good, bad, again, constant = session.paid_by(None).outcomes([QUESTIONS[0], {"a": 9}, QUESTIONS[0], {}])

    assert good.at == again.at
    assert "repeat" == again.answer.status
    assert (None, None) == (constant.at, bad.answer)
    assert isinstance(bad.error, InvalidQueryError)
    assert "invalid-query" == bad.to_dict()["error"]["code"]
    assert (good.at, good.answer.value) == (good.to_dict()["at"], good.to_dict()["value"])
    assert [(good.at, good.answer)] == session.released()


def test_answers_are_those_of_the_session_itself():
    asked, alone = (opened(noise=ic.noise.SimulatedNoise(3)) for _ in range(2))

    assert [one.answer for one in asked.paid_by(None).outcomes(QUESTIONS)] == [*map(alone.answer, QUESTIONS)]
    assert [*map(type, asked.transcript)] == [*map(type, alone.transcript)]


def test_easy_answers_given_together_are_durable_at_the_end_of_the_block(tmp_path):
    # a threshold beyond which no noise takes an answer
    settings = {"purchases": settled(WIDE, N, BUDGET, hard_answers=20, threshold=0.45), "threshold": 0.45}
    session, ledger = with_ledger(opened, ledger=tmp_path / "a.db", table="t", durability="all", **settings)
    asker = begun(session).paid_by(None)
    with session.together():
        statuses = [asker.answer(question).status for question in QUESTIONS[:8]]
        assert set(statuses) == {"easy"}
        assert len(ledger) - 8 == ledger.durable
    assert len(ledger) == ledger.durable
    asker.answer(QUESTIONS[9])
    assert len(ledger) == ledger.durable
    session.close()


def test_a_block_whose_write_fails_says_so(tmp_path, monkeypatch):
    rule = settled(WIDE, N, BUDGET, hard_answers=20)
    session = begun(opened(ledger=tmp_path / "a.db", table="t", durability="all", purchases=rule))

    def full(*_):
        raise LedgerWriteError("ledger must be written, got a full disk.")

    monkeypatch.setattr(ic.ledger.SqliteLedger, "_store", full)
    with pytest.raises(LedgerWriteError), session.together():
        session.answer(QUESTIONS[0])
    monkeypatch.undo()
    session.close()


def test_what_is_public_is_frozen_and_strict_json():
    session = opened()
    before = session.view()
    session.answer(QUESTIONS[0])

    assert (0, 1) == (before.statistics.asked, session.view().statistics.asked)
    for one in (session.view(), session.statistics(), session.explain(QUESTIONS[1])):
        assert json.dumps(one.to_dict(), allow_nan=False)


def test_a_question_is_bound_without_being_asked():
    session = opened()

    assert session.bind({"a": 1}).key == ic.where(a=1).bind(WIDE).key
    with pytest.raises(InvalidQueryError):
        session.bind({"a": 9})
    assert 0 == session.statistics().asked


@pytest.mark.parametrize(
    ("name", "limit"), [("", Fraction(1)), (3, Fraction(1)), ("a", 0.5), ("a", Fraction(-1))]
)
def test_a_quota_that_is_none_is_refused(name, limit):
    with pytest.raises(InvalidParameterError):
        Quota(name, limit)


def test_codes_of_errors_are_stable_and_differ():
    kinds = [
        kind
        for kind in vars(ic.errors).values()
        if isinstance(kind, type) and issubclass(kind, OnlineICError)
    ]
    codes = {kind.code for kind in kinds}

    assert len(kinds) == len(codes)
    assert {"invalid-query", "too-large", "session-sealed", "session-exhausted", "ledger-write"} <= codes


def test_a_payer_is_named_in_the_record_that_it_stands_with():
    assert "ann" == Paid(3, "ann").name
