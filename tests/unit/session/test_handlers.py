"""Handlers that come into a read of a table or a draw of noise: refused by name, before anything is spent."""

import contextlib
import os
import signal
import threading

import numpy as np
import pytest

import onlineic as ic
from onlineic import baselines, offline
from onlineic.data import PrivateData
from onlineic.errors import SessionStateError
from onlineic.noise import SystemNoise
from onlineic.queries import Query
from onlineic.sparse import gumbel
from support.events import FOR_EVER

pytestmark = [
    pytest.mark.filterwarnings("ignore::onlineic.errors.BudgetsAddWarning"),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer on this platform"),
]
DOMAIN = ic.Domain.of(a=64)
BUDGET = ic.Budget(5.0, 1e-6)
COUNTS = np.full(64, 1_000)


@pytest.fixture(autouse=True)
def hurried():
    """A test that waits for ever for a lock of its own thread fails."""

    def late(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, FOR_EVER)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def opened(data=None, **settings):
    data = PrivateData(COUNTS, DOMAIN) if data is None else data
    return ic.OnlineIC(data, BUDGET, purchases=ic.TestsOnly(), update=ic.MultiplicativeWeights(), **settings)


def handling(monkeypatch, owner, name, handler, when=lambda: True):
    """Run a handler at the first call of a function where that holds, as a signal would."""
    plain, came = getattr(owner, name), []

    def handled(*arguments):
        if not came and when():
            came.append(True)
            handler()
        return plain(*arguments)

    monkeypatch.setattr(owner, name, handled)
    return came


def engine(data):
    return baselines.PerQueryNoise(data, ic.Budget(1.0), answers=3, noise_law="laplace")


ACTS = {
    "answer": lambda data, other, baseline: other.answer(ic.where(a=3)),
    "answer many": lambda data, other, baseline: other.answer_many([ic.where(a=3), ic.where(a=4)]),
    "first tables": lambda data, other, baseline: other.hypothesis,
    "open": lambda data, other, baseline: ic.OnlineIC(data, BUDGET),
    "release": lambda data, other, baseline: offline.median(data, "a", epsilon=0.5),
    "baseline": lambda data, other, baseline: baseline.answer(ic.where(a=3)),
    "make a baseline": lambda data, other, baseline: engine(data),
}


@pytest.mark.parametrize("name", ACTS)
def test_a_handler_that_comes_into_a_read_is_refused_whatever_it_asks_of_the_table(monkeypatch, name):
    data = PrivateData(COUNTS, DOMAIN)
    session, other, baseline = opened(data), ic.OnlineIC(data, BUDGET, sparse="gumbel"), engine(data)
    budgets, spent = data.budgets, other.statistics().spent
    left = baseline.statistics().hard_left

    def handler():
        with pytest.raises(SessionStateError, match=r"data must be asked one .* nothing was spent"):
            ACTS[name](data, other, baseline)

    reads = data.reads
    came = handling(monkeypatch, Query, "total", handler, lambda: data.reads > reads)
    answer = session.answer(ic.where(a=1))

    assert came
    assert answer.status in ("easy", "hard")
    assert (budgets, spent, left) == (
        data.budgets,
        other.statistics().spent,
        baseline.statistics().hard_left,
    )
    assert not baseline.statistics().sealed
    assert not other.statistics().sealed
    assert other.answer(ic.where(a=3)).status in ("easy", "hard")


@pytest.mark.parametrize("draw", ["session", "by hand"])
def test_a_handler_that_comes_into_a_draw_of_a_shared_source_is_refused_before_anything_is_spent(
    monkeypatch, draw
):
    noise = SystemNoise()
    session, other = opened(noise=noise), opened(noise=noise)

    def handler():
        with pytest.raises(SessionStateError, match="noise must be asked one call at a time"):
            other.answer(ic.where(a=3))

    came = handling(monkeypatch, os, "urandom", handler)
    _ = session.answer(ic.where(a=1)) if draw == "session" else noise.words(3)

    assert came
    assert (0, 0.0, False) == (len(other.transcript), other.statistics().spent, other.statistics().sealed)
    assert other.answer(ic.where(a=3)).status in ("easy", "hard")


def test_a_handler_that_comes_into_a_draw_asks_no_baseline_of_the_same_source(monkeypatch):
    noise = SystemNoise()
    session, law = opened(noise=noise), {"answers": 3, "noise_law": "laplace"}
    baseline = baselines.PerQueryNoise(PrivateData(COUNTS, DOMAIN), ic.Budget(1.0), **law, noise=noise)
    left = baseline.statistics().hard_left

    def handler():
        with pytest.raises(SessionStateError, match="noise must be asked one call at a time"):
            baseline.answer(ic.where(a=3))

    came = handling(monkeypatch, os, "urandom", handler)
    session.answer(ic.where(a=1))

    assert came
    assert (left, False) == (baseline.statistics().hard_left, baseline.statistics().sealed)
    assert baseline.answer(ic.where(a=3)).status in ("easy", "hard")


@pytest.mark.parametrize("elsewhere", [False, True], ids=["handler", "thread"])
def test_no_word_of_a_shared_source_is_used_by_two_sessions(monkeypatch, elsewhere):
    """A second one draws between the draw of the first and what it gives back of it.

    One word for two tests made an event of probability 0 under one table likely under its neighbour.
    """
    noise, seen, who = SystemNoise(), {"first": [], "second": []}, ["first"]
    counts = COUNTS.copy()
    counts[10] = 20_000
    session, other = opened(PrivateData(counts, DOMAIN), noise=noise), opened(noise=noise)
    next_word, screen = SystemNoise.next_word, gumbel.screen

    def noted(source):
        word = next_word(source)
        seen[who[0]].append(word)
        return word

    def looked(words, excesses, scale):
        verdicts = screen(words, excesses, scale)
        seen[who[0]] += words[: int(np.argmax(verdicts != 0)) + 1].tolist()
        return verdicts

    def ask():
        who[0] = "second"
        other.answer(ic.where(a=3))
        who[0] = "first"

    def handler():
        if elsewhere:
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
        else:
            ask()

    monkeypatch.setattr(SystemNoise, "next_word", noted)
    monkeypatch.setattr(gumbel, "screen", looked)
    came = handling(monkeypatch, gumbel, "screen", handler)
    session.answer_many([ic.where(a=10), ic.where(a=4)])
    session.answer(ic.where(a=20))

    assert came
    assert seen["first"]
    assert seen["second"]
    assert set(seen["first"]).isdisjoint(seen["second"])


def test_another_thread_that_asks_during_a_read_waits_and_is_answered(monkeypatch):
    data, answers = PrivateData(COUNTS, DOMAIN), []
    session, other = opened(data), opened(data)
    thread = threading.Thread(target=lambda: answers.append(other.answer(ic.where(a=3))))
    came = handling(monkeypatch, Query, "total", thread.start, lambda: data.reads > 0)
    session.answer(ic.where(a=1))
    thread.join()

    assert came
    (answer,) = answers
    assert answer.status in ("easy", "hard")  # hard where noise alone lies beyond the threshold


def test_an_interrupt_anywhere_in_a_call_leaves_the_doors_open(monkeypatch):
    for owner, name in [(Query, "total"), (SystemNoise, "next_word"), (ic.MultiplicativeWeights, "update")]:
        data = PrivateData(COUNTS, DOMAIN)
        session, other = opened(data), opened(data)

        def interrupt():
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            handling(patched, owner, name, interrupt)
            with contextlib.suppress(KeyboardInterrupt):
                session.answer(ic.where(a=1))
        assert session.statistics().asked >= 0
        assert other.answer(ic.where(a=3)).status in ("easy", "hard")
