"""Exceptions at every call of a baseline's read: its budget stays spent, nothing is told or read again."""

import traceback

import numpy as np
import pytest

import onlineic as ic
from onlineic.baselines import NoisyTables, PerQueryNoise, engines, noisy_histogram
from onlineic.baselines.noise import GridNoise
from onlineic.data import PrivateData
from onlineic.errors import ForkedSessionError, SessionSealedError, SessionStateError
from onlineic.noise import SimulatedNoise, SystemNoise
from onlineic.queries import Expression
from support import failures
from support.failures import SECRET, frames, plant, reached_by

DOMAIN = ic.Domain.of(a=4, b=3)
COUNTS = np.array([[SECRET, 0, 0], [0, 5000, 100], [20_000_000, 7, 3], [0, 0, 4890]])
BUDGET = ic.Budget(1.0)
QUERIES = [ic.where(a=0), ic.where(a=1), ic.where(b=1), ic.where(a=0, b=0)]
FAILURES = [*failures.FAILURES, ExceptionGroup]
PRIVATE = [  # (owner, method): all that runs between the read and the noisy numbers
    (PrivateData, "exact_counts"),
    (PrivateData, "exact_counts_many"),
    (GridNoise, "draw"),
    (SystemNoise, "discrete_laplace"),
]


OUTSIDE = {"run", "<lambda>", "_answered"}  # of the door, before anything is read


def table():
    return PrivateData(COUNTS, DOMAIN)


def per_query(data, **options):
    return PerQueryNoise(data, BUDGET, answers=4, noise_law="laplace", **options)


def answered(engine, query, released):
    released.append(engine.answer(query))


def check_silent(error, kind, caplog, allowed):
    """The exception that left holds neither text nor cause nor a frame that held private numbers."""
    ordinary = not issubclass(kind, failures.INTERRUPTS)

    assert type(error) is (SessionSealedError if ordinary else kind)
    assert (None, None) == (error.__cause__, error.__context__)
    assert frames(error, ("onlineic.", "numpy")) <= allowed | {"guarded"} | OUTSIDE
    assert "failing" not in frames(error, "")
    assert str(SECRET) not in caplog.text
    assert all(record.exc_info is None for record in caplog.records)
    if ordinary:
        assert str(SECRET) not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("owner", "name"), PRIVATE)
def test_a_failed_read_seals_per_query_noise_and_what_was_released_is_still_answered(
    owner, name, after, kind, monkeypatch, caplog
):
    for occurrence in (1, 2, 3):
        data, caplog_length = table(), len(caplog.records)
        engine, released = per_query(data, cache=True), []
        with monkeypatch.context() as patched:
            calls = plant(patched, owner, name, occurrence, kind, after=after)
            for query in QUERIES:
                error = reached_by(answered, engine, query, released)
                if error is not None:
                    break
        if len(calls) < occurrence:
            assert error is None
            continue
        stats, reads = engine.statistics(), data.reads

        check_silent(error, kind, caplog, {"answer", "answer_many", "_measured"})
        assert 1 == len(caplog.records) - caplog_length
        assert (True, 0, occurrence / 4) == (stats.sealed, stats.hard_left, stats.spent)
        assert [BUDGET] == list(data.budgets)
        assert str(SECRET) not in repr(engine) + repr(stats)
        with pytest.raises(SessionSealedError, match="must not have been interrupted"):
            engine.answer(QUERIES[-1])
        with pytest.raises(SessionSealedError):
            engine.answer_many([ic.where(), *QUERIES])
        again = engine.answer_many(QUERIES[: len(released)])

        assert [answer.value for answer in released] == [answer.value for answer in again]
        assert all(answer.status == "repeat" for answer in again)
        assert (1.0, "easy") == (engine.answer(ic.where()).value, engine.answer(ic.where()).status)
        assert (reads, occurrence / 4) == (data.reads, engine.statistics().spent)


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failed_batch_is_spent_whole(kind, monkeypatch, caplog):
    data = table()
    engine = per_query(data)
    with monkeypatch.context() as patched:
        plant(patched, GridNoise, "draw", 1, kind, after=True)
        error = reached_by(engine.answer_many, QUERIES[:3])

    check_silent(error, kind, caplog, {"answer_many", "_measured"})
    assert (True, 0.75, 3) == (engine.statistics().sealed, engine.statistics().spent, data.reads)
    for _ in range(2):
        with pytest.raises(SessionSealedError):
            engine.answer(QUERIES[0])
    assert 3 == data.reads


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("occurrence", [1, 2])
@pytest.mark.parametrize(("owner", "name"), [pair for pair in PRIVATE if pair[1] != "exact_counts_many"])
def test_tables_that_fail_on_the_way_are_charged_and_never_there(
    owner, name, occurrence, after, kind, monkeypatch, caplog
):
    makers = [lambda data: NoisyTables(data, BUDGET, [["a"], ["b"]])]
    if occurrence == 1:
        makers.append(lambda data: noisy_histogram(data, BUDGET))
    for make in makers:
        data, made = table(), []
        with monkeypatch.context() as patched:
            plant(patched, owner, name, occurrence, kind, after=after)
            error = reached_by(lambda make, data, made: made.append(make(data)), make, data, made)

        check_silent(error, kind, caplog, {"__init__", "released", "noisy_histogram"})
        assert ([], [BUDGET]) == (made, list(data.budgets))


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_before_the_read_spends_nothing(kind, monkeypatch):
    data = table()
    engine = per_query(data)
    with monkeypatch.context() as patched:
        plant(patched, Expression, "bind", 1, kind, after=True)
        error = reached_by(engine.answer, QUERIES[0])

    assert kind is type(error)
    assert (False, 0.0, 0) == (engine.statistics().sealed, engine.statistics().spent, data.reads)
    assert "hard" == engine.answer(QUERIES[0]).status


def test_a_source_that_asks_the_baseline_again_in_the_middle_of_a_draw_is_refused_and_nothing_is_read_twice(
    monkeypatch,
):
    data = table()
    engine = per_query(data, noise=SimulatedNoise(0))
    method, seen = SimulatedNoise.discrete_laplace, []

    def asking(self, scale, size):
        seen.append(reached_by(engine.answer, QUERIES[1]))
        return method(self, scale, size)

    monkeypatch.setattr(SimulatedNoise, "discrete_laplace", asking)
    answer = engine.answer(QUERIES[0])

    assert "hard" == answer.status
    assert [SessionStateError] == [type(error) for error in seen]
    assert (1, 0.25) == (data.reads, engine.statistics().spent)


def test_a_second_process_is_refused_by_name_and_neither_reads_nor_seals(monkeypatch):
    import os

    data = table()
    engine, parent = per_query(data), os.getpid()
    with monkeypatch.context() as patched:
        patched.setattr("os.getpid", lambda: parent + 1)
        with pytest.raises(ForkedSessionError, match="make another there"):
            engine.answer(QUERIES[0])

    assert (False, 0) == (engine.statistics().sealed, data.reads)
    assert "hard" == engine.answer(QUERIES[0]).status


def test_a_signal_s_handler_that_asks_a_baseline_in_the_middle_of_an_answer_is_refused(monkeypatch):
    """Else it used up what the answer under way was promised."""
    data = PrivateData(np.full(4, 25), ic.Domain.of(a=4))
    engine, refused = PerQueryNoise(data, ic.Budget(1.0, 1e-6), answers=3), []
    check = engines.check_outside

    def interrupted(*given):  # between the look at what is left and the charge
        if not refused:
            refused.append(given)
            with pytest.raises(SessionStateError, match="nothing was spent"):
                engine.answer(ic.where(a=3))
        check(*given)

    monkeypatch.setattr(engines, "check_outside", interrupted)
    answers = engine.answer_many([ic.where(a=code) for code in range(3)])

    assert ["hard"] * 3 == [one.status for one in answers]
    assert (3, 0, 1) == (data.reads, engine.statistics().hard_left, len(refused))
