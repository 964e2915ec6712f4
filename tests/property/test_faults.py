"""Exceptions at every call inside an answer: what is released is paid, the session sealed, nothing told."""

import logging
import traceback
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import SessionSealedError, UpdateFailedWarning
from onlineic.ledger import Forfeited, Hard, MemoryLedger, UpdateFailed
from onlineic.noise import SimulatedNoise
from onlineic.sparse import LaplaceSparse
from support.failures import FAILURES, INTERRUPTS, SECRET, BrokenError, frames, plant
from support.sessions import all_spent, plan_once

DOMAIN = ic.Domain.of(a=4, b=3)
COUNTS = np.array([[SECRET, 0, 0], [0, 5000, 100], [20_000_000, 7, 3], [0, 0, 4890]])
QUERIES = [ic.where(b=2), ic.where(a=1), ic.where(a=0), ic.where(b=1), ic.where(a=2), ic.where(a=3, b=2)]


PRIVATE = [  # (owner, method): all that runs between the read and the record
    (PrivateData, "exact_counts"),
    (PrivateData, "exact_counts_many"),
    (LaplaceSparse, "step"),
    (LaplaceSparse, "step_many"),
    (LaplaceSparse, "measure"),
    (SimulatedNoise, "discrete_laplace"),
    (SimulatedNoise, "unread"),
    (MemoryLedger, "commit"),
]


def opened(noise=None, data=None):
    return ic.OnlineIC(
        data or PrivateData(COUNTS, DOMAIN),
        ic.Budget(1.0),
        hard_answers=5,
        threshold=0.2,
        sparse="laplace",
        noise=noise or SimulatedNoise(1),
    )


@pytest.fixture
def planned(monkeypatch):
    """One plan for all sessions: plans are not what fails here."""
    plan_once(monkeypatch, opened().plan)


def one_at_a_time(session):
    return [session.answer(query) for query in QUERIES]


def all_at_once(session):
    return session.answer_many(QUERIES)


def paid(session):
    """Hard answers and burns, each at its charge."""
    return sum(
        (record.charge.amount for record in session.transcript if isinstance(record, Hard | Forfeited)),
        Fraction(0),
    )


def replayed(session):
    plan = session.plan
    return ic.replay(session.transcript, DOMAIN, plan.update, plan.alpha)


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("ask", [one_at_a_time, all_at_once])
@pytest.mark.parametrize(("owner", "name"), PRIVATE)
def test_a_failure_between_the_read_and_the_record_seals_burns_and_tells_nothing(
    owner, name, ask, monkeypatch, caplog
):
    """Every failure class, first to third call, before and after: well over 200 injections in all."""
    injected = 0
    for failure in FAILURES:
        for occurrence in (1, 2, 3):
            for after in (False, True):
                caplog.clear()
                data = PrivateData(COUNTS, DOMAIN)
                with monkeypatch.context() as patched:
                    calls = plant(patched, owner, name, occurrence, failure, after=after)
                    session = opened(data=data)
                    reached = None
                    try:
                        ask(session)
                    except BaseException as error:
                        reached = error
                if len(calls) < occurrence:
                    assert reached is None
                    continue
                injected += 1
                transcript = session.transcript
                hards = [record for record in transcript if isinstance(record, Hard)]

                ordinary = not issubclass(failure, INTERRUPTS)
                assert type(reached) is (SessionSealedError if ordinary else failure)
                assert (None, None) == (reached.__cause__, reached.__context__)
                assert len(hards) * Fraction(1, 5) <= paid(session) <= all_spent(session) <= 1
                assert session.statistics().hard == len(hards)
                if name == "commit" and after and not ordinary:  # behind the record: nothing is lost
                    assert not session.statistics().sealed
                    assert [] == caplog.records
                    continue
                assert session.statistics().sealed
                if name != "commit" or not after:
                    assert isinstance(transcript[-1], Forfeited)
                text = caplog.text + repr(session) + repr(session.statistics()) + repr([*transcript])
                if ordinary:
                    text += "".join(traceback.format_exception(reached))
                assert frames(reached) <= {
                    "answer",
                    "answer_many",
                    "_stream",
                    "_begun",
                    "answer_bound",
                    "_answered",
                    "_run",
                    "door",  # of the check of arguments: it holds what the caller gave
                    "_tested",
                    "test",
                    "test_alone",
                    "_guarded",
                    "guarded",
                    "_alone",
                    "run",
                    "<lambda>",
                }
                assert str(SECRET) not in text
                assert [f"session sealed: {failure.__name__} at failures.py"] == [
                    record.getMessage().rpartition(":")[0] for record in caplog.records
                ]
                assert all(record.exc_info is None for record in caplog.records)
                reads = data.reads
                with pytest.raises(SessionSealedError):
                    session.answer(ic.where(a=1, b=1))
                assert (reads, transcript) == (data.reads, session.transcript)
    assert injected >= {"unread": 0 if ask is one_at_a_time else 6}.get(name, 0)


def test_the_injections_are_more_than_two_hundred(monkeypatch):
    reached = 0
    for ask in (one_at_a_time, all_at_once):
        for owner, name in PRIVATE:
            with monkeypatch.context() as patched:
                calls = plant(patched, owner, name, 0, BrokenError, after=False)
                ask(opened())
            reached += min(3, len(calls)) * len(FAILURES) * 2

    assert reached >= 200


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("owner", [MemoryLedger, ic.Histogram])
def test_a_failure_before_the_read_changes_nothing_but_a_reservation(owner, failure, monkeypatch):
    noise, data = SimulatedNoise(1), PrivateData(COUNTS, DOMAIN)
    session = opened(noise, data)
    name = "reserve" if owner is MemoryLedger else "evaluate"
    with monkeypatch.context() as patched:
        plant(patched, owner, name, 1, failure, after=False)
        with pytest.raises(failure):
            session.answer(QUERIES[0])
    scale = session.plan.sparse.threshold_scale
    noise_after = noise.discrete_laplace(scale, 1).tolist()

    assert not session.statistics().sealed
    assert (0, 0) == (data.reads, session.statistics().asked)
    assert SimulatedNoise(1).discrete_laplace(scale, 1).tolist() == noise_after
    assert session.answer(QUERIES[0]).status in ("easy", "hard")


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(("sparse", "delta"), [("gumbel", 1e-6), ("exponential", 0.0)])
def test_a_failure_right_after_a_cheaper_reservation_never_lets_a_dearer_hit_pass_under_it(
    sparse, delta, failure, monkeypatch
):
    """A dear hit, a reservation for a query of less sensitivity, Ctrl-C or a late error of the disk: then
    another dear hit."""
    domain = ic.Domain.of(a=16)
    counts = np.random.default_rng(0).multinomial(10**5, np.random.default_rng(1).dirichlet(np.full(16, 0.3)))
    session = ic.OnlineIC(
        ic.PrivateData(counts, domain),
        ic.Budget(1.0, delta),
        sparse=sparse,
        release="answer",
        hard_answers=20,
        threshold=1e-5,
        noise=SimulatedNoise(1),
    )
    cells = iter(range(16))
    while not session.answer(ic.where(a=next(cells))).hard:
        pass
    with monkeypatch.context() as patched:
        plant(patched, MemoryLedger, "reserve", 1, failure, after=True)
        with pytest.raises(failure):
            session.answer(ic.where(a=ic.weights([0.5, 0.75] * 8)))
    assert session.reserved.amount < session.plan.sparse.price(ic.where(a=0).bind(domain)).amount
    while not session.answer(ic.where(a=next(cells))).hard:
        pass
    hards = [record for record in session.transcript if isinstance(record, Hard)]

    assert 2 == len(hards)
    assert all(session.plan.sparse.price(hard.query).amount <= hard.charge.amount for hard in hards)
    assert sum(hard.charge.amount for hard in hards) == all_spent(session)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_of_the_update_never_costs_the_paid_answer(failure, monkeypatch):
    session = opened()
    with monkeypatch.context() as patched:
        plant(patched, ic.MultiplicativeWeights, "update", 1, failure, after=False)
        reached = None
        try:
            answer = session.answer(ic.where(a=0))
        except BaseException as error:
            reached = error
    hards = [record for record in session.transcript if isinstance(record, Hard)]

    assert 1 == len(hards)
    assert Fraction(1, 5) == paid(session) == all_spent(session)
    if issubclass(failure, Exception):
        assert ("hard", None) == (answer.status, reached)
        assert UpdateFailed(failure.__name__) == session.transcript[-1]
    else:
        assert failure is type(reached)
    again = session.answer(ic.where(a=0))
    stats = session.statistics()
    assert ("repeat", hards[0].measurement.values[0]) == (again.status, again.value)
    assert (False, 1, issubclass(failure, Exception)) == (stats.sealed, stats.hard, stats.update_failures)
    believed = replayed(session).probabilities()
    assert believed.tobytes() == session.hypothesis.probabilities().tobytes()


def test_a_ledger_that_cannot_note_a_failed_update_is_asked_again(monkeypatch):
    session = opened()
    with monkeypatch.context() as patched:
        plant(patched, ic.MultiplicativeWeights, "update", 1, BrokenError, after=False)
        plant(patched, MemoryLedger, "commit", 2, OSError, after=False)
        with pytest.raises(OSError, match="out of bounds"):
            session.answer(ic.where(a=0))
    stats = session.statistics()

    assert (False, 1, 0) == (stats.sealed, stats.hard, stats.update_failures)
    assert Fraction(1, 5) == all_spent(session)
    assert "repeat" == session.answer(ic.where(a=0)).status


def test_a_warning_that_cannot_be_shown_loses_nothing(monkeypatch):
    session = opened()
    with monkeypatch.context() as patched:
        plant(patched, ic.MultiplicativeWeights, "update", 1, BrokenError, after=False)
        patched.setattr("warnings.warn", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session.answer(ic.where(a=0))
    stats = session.statistics()

    assert (False, 1, 1) == (stats.sealed, stats.hard, stats.update_failures)
    assert "repeat" == session.answer(ic.where(a=0)).status


def test_a_ledger_that_cannot_burn_leaves_the_reservation_spent_and_tells_nothing(monkeypatch, caplog):
    session = opened()
    with monkeypatch.context() as patched:
        plant(patched, PrivateData, "exact_counts", 1, BrokenError, after=True)
        plant(patched, MemoryLedger, "forfeit", 1, OSError, after=False)
        with pytest.raises(SessionSealedError) as sealed:
            session.answer(ic.where(a=0))

    assert (None, None) == (sealed.value.__cause__, sealed.value.__context__)
    assert Fraction(1, 5) == all_spent(session)
    assert session.statistics().sealed
    assert str(SECRET) not in caplog.text


def test_a_logging_handler_that_fails_cannot_print_the_private_cause(monkeypatch, capsys):
    class Failing(logging.Handler):
        def emit(self, record):
            try:
                raise RuntimeError("no disk")
            except RuntimeError:
                self.handleError(record)  # prints the chain of exceptions being handled

    handler = Failing()
    logging.getLogger("onlineic").addHandler(handler)
    try:
        session = opened()
        with monkeypatch.context() as patched:
            plant(patched, PrivateData, "exact_counts", 1, BrokenError, after=True)
            with pytest.raises(SessionSealedError):
                session.answer(ic.where(a=0))
    finally:
        logging.getLogger("onlineic").removeHandler(handler)
    printed = capsys.readouterr().err

    assert "no disk" in printed
    assert str(SECRET) not in printed


def test_a_warning_in_private_arithmetic_seals_and_is_not_shown(monkeypatch):
    import warnings

    session = opened()
    method = LaplaceSparse.step

    def step(*arguments):
        warnings.warn(f"overflow at {SECRET}", RuntimeWarning, stacklevel=2)
        return method(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(LaplaceSparse, "step", step)
        with pytest.raises(SessionSealedError) as sealed:
            session.answer(ic.where(a=0))

    assert str(SECRET) not in "".join(traceback.format_exception(sealed.value))
    assert not isinstance(sealed.value, UpdateFailedWarning)
