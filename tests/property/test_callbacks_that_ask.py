"""Callbacks that use, close or stop the session that calls them: refused by name, nothing paid twice."""

import contextlib
import itertools
import warnings

import numpy as np
import pytest

import onlineic as ic
import onlineic.session.loop as loop_module
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.errors import LedgerLockedError, SessionStateError
from onlineic.ledger import BoughtTables, Hard, Single, TableBudget, read
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases
from support.ledgers import LABEL, quick_folder

pytestmark = pytest.mark.usefixtures("listening")  # where the first question tells what is bought
DOMAIN = ic.Domain.of(a=14, b=5, c=4)
COUNTS = np.random.default_rng(3).multinomial(6_000, np.random.default_rng(4).dirichlet(np.full(280, 0.2)))
ASKED = [
    ic.where(a=ic.between(low, low + 3), b=b, c=c) for low in (0, 2, 4, 6) for b in (0, 3) for c in (0, 2)
]
PARITY = ic.dense(np.indices(DOMAIN.shape).sum(axis=0) % 2.0)
SETTINGS = {"hard_answers": 5, "threshold": 0.02}
BUDGET = ic.Budget(1.0, 1e-6)
ACTS = {
    "answer": lambda session: session.answer(ASKED[12]),
    "answer another kind": lambda session: session.answer(PARITY),
    "answer many": lambda session: session.answer_many(ASKED[5:14]),
    "hypothesis": lambda session: session.hypothesis,
    "statistics": lambda session: session.statistics(),
    "explain": lambda session: session.explain(ASKED[3]),
    "summary": lambda session: session.summary(),
    "close": lambda session: session.close(),
}


class StopError(Exception):
    """What the one who waits raises."""


def stop(_):
    raise StopError


def interrupt(_):
    raise KeyboardInterrupt


class Asking:
    """A callback that acts at one call, and keeps what it is told and what came of it."""

    def __init__(self, act=None, at=None):
        self.act, self.at, self.session = act, at, None
        self.calls, self.outcome = [], None

    def __call__(self, stage, done, total):
        self.calls.append((stage, done, total))
        if self.at == (stage, sum(call[0] == stage for call in self.calls) - 1) and (
            self.session is not None or self.act in (stop, interrupt)
        ):
            try:
                self.act(self.session)
                self.outcome = "done"
            except BaseException as error:
                self.outcome = type(error)
                raise


# the noise is not the test's: the first call of each stage comes, a later one may not
PLACES = [
    ("tables", 0),
    ("tables", 1),
    ("tables", 2),
    ("fit", 0),
    ("fit", 7),
    ("answers", 0),
    ("answers", 1),
]


FEW = [("tables", 1), ("fit", 0), ("answers", 0)]
SOME = pytest.mark.parametrize("places", [FEW, pytest.param(PLACES, marks=pytest.mark.exhaustive)])


def opened(folder, told, **more):
    settings = {"ledger": folder / "census.db", "table": LABEL} | SETTINGS | more
    session = ic.OnlineIC(PrivateData(COUNTS, DOMAIN), BUDGET, progress=told, **settings)
    told.session = session
    return session


def check_once(records):
    """Nothing is released twice."""
    hard = [record.query.key for record in records if isinstance(record, Hard | Single)]
    assert len(hard) == len(set(hard))
    heard = [[one.key for one in record.heard] for record in records if isinstance(record, BoughtTables)]
    # a call of many buys twice at its start; the first question may buy a number instead
    assert len(heard) <= 1 + (bool(heard) and len(heard[0]) > 1)


@SOME
@pytest.mark.parametrize("name", ACTS)
def test_whatever_a_callback_does_to_its_session_is_refused_by_name(name, places):
    stages, outcomes = set(), set()
    for at in places:
        with quick_folder() as folder:
            told = Asking(ACTS[name], at)
            session = opened(folder, told)
            with contextlib.suppress(SessionStateError):
                session.answer_many(ASKED)
            if told.outcome is not None:
                stages.add(at[0])
                outcomes.add(told.outcome)
            told.at = None  # a call of a stage that has not come yet may come below
            statistics = session.statistics()
            assert not statistics.sealed
            assert 0 == statistics.update_failures
            session.answer_many(ASKED)
            check_once(session.transcript)
            session.close()
            report = verified(read(folder / "census.db"))
            assert (True, ()) == (report.replayed, report.problems)
    assert {"fit", "answers"} <= stages
    assert {SessionStateError} == outcomes


@SOME
@pytest.mark.parametrize(("act", "error"), [(stop, StopError), (interrupt, KeyboardInterrupt)])
def test_a_session_with_a_file_that_is_stopped_at_any_call_goes_on_from_it_and_pays_once(act, error, places):
    for at in places:
        with quick_folder() as folder:
            told, stops = Asking(act, at), 0
            for _ in itertools.count():
                try:
                    with opened(folder, told) as session:
                        session.answer_many(ASKED)
                        break
                except error:
                    stops += 1
            report = verified(read(folder / "census.db"))
            check_once(session.transcript)
            assert (True, ()) == (report.replayed, report.problems)
            assert stops == 1 or at in (("tables", 2), PLACES[-1])
            assert 0 == report.forfeited


@pytest.mark.parametrize("asked", [PARITY, ic.where(a=ic.weights(np.linspace(0, 1, 14)))])
@pytest.mark.parametrize("nested", [ic.dense(np.linspace(0, 1, 280)), ASKED[1]])
@pytest.mark.parametrize("budget", [BUDGET, ic.Budget(1.0)])
def test_a_question_of_a_callback_does_not_change_the_plan_of_the_one_that_opens(budget, nested, asked):
    """Planted before: a dense question asked while another opened the session gave it a coarser grid."""
    plans = []
    for act in (None, lambda session: session.answer(nested)):
        told = Asking(act, None if act is None else ("tables", 0))
        data = PrivateData(COUNTS, DOMAIN)
        rule = DemandPurchases(rent=0)  # tables come before any question, in either budget
        session = ic.OnlineIC(data, budget, progress=told, noise=SimulatedNoise(1), purchases=rule)
        told.session = session
        before, reads = session.plan, data.reads
        if act is not None:
            with pytest.raises(
                SessionStateError, match="or a callback in the middle of another; nothing was spent"
            ):
                session.answer(asked)
            assert ("tables", SessionStateError) == (told.calls[0][0], told.outcome)
            assert (before, 0, reads) == (session.plan, len(session.transcript), data.reads)
        assert session.answer(asked).status in ("easy", "hard")
        plans.append(session.plan)
        check_once(session.transcript)
    assert plans[0] == plans[1]


def test_a_handler_of_a_signal_cannot_choose_the_plan_of_the_question_that_it_comes_into(monkeypatch):
    """Between the binding and the opening: the plan that the handler's question would choose is coarser."""
    session = ic.OnlineIC(PrivateData(COUNTS, DOMAIN), BUDGET, noise=SimulatedNoise(1), max_queries=1000)
    grid, check = session.plan.sparse.grid_bits, loop_module.check_supported

    def handler(*arguments):
        monkeypatch.undo()
        check(*arguments)
        with pytest.raises(SessionStateError, match="nothing was spent"):
            session.answer(PARITY)

    monkeypatch.setattr(loop_module, "check_supported", handler)
    assert session.answer(ic.where(a=ic.weights(np.linspace(0, 1, 14)))).status in ("easy", "hard")
    assert session.plan.sparse.grid_bits == grid


def test_a_callback_that_opens_the_same_file_or_ledger_is_refused_and_the_opening_goes_on():
    with quick_folder() as folder:
        total, outcomes = TableBudget(BUDGET), []
        data = PrivateData(COUNTS, DOMAIN)
        data.draw_on(total)

        def again(*_):
            try:
                made()
            except LedgerLockedError as refused:
                outcomes.append(refused)

        def made(progress=None):
            settings = {"ledger": folder / "census.db", "table": LABEL} | SETTINGS
            return ic.OnlineIC(data, total.share(0.5), progress=progress, **settings)

        with made(again) as session, warnings.catch_warnings():
            warnings.simplefilter("error")
            session.answer(ASKED[0])
        assert len(outcomes) >= 2
        assert 1 == len(total.drawn)
