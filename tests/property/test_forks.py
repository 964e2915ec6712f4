"""A process forked while another thread held any lock waits for nobody, and is refused by name."""

import contextlib
import itertools
import os
import queue
import threading
from functools import partial

import pytest

import onlineic as ic
from onlineic import baselines, offline
from onlineic.errors import BudgetExceededError, ForkedSessionError, InvalidParameterError
from onlineic.ledger import TableBudget, read
from onlineic.noise import SimulatedNoise
from support.events import FOR_EVER, in_child, telling_locks
from support.ledgers import DOMAIN, LABEL, queries, quick_folder, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::onlineic.errors.BudgetsAddWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform"),
]
WHOLE, ASKED = ic.Budget(1.0, 1e-6), queries(3, seed=17)


class Parent:
    """A total, a table that draws on it, three sessions, two of them with files, and a baseline."""

    def __init__(self, folder):
        self.folder = folder
        self.total = TableBudget(WHOLE, ledger=folder / "total.db", table=LABEL)
        self.data = table()
        self.data.draw_on(self.total)
        self.session = self.opened(folder / "session.db")
        self.other = ic.OnlineIC(self.data, self.total.share(0.25))
        self.opened(folder / "closed.db").close()
        self.baseline = baselines.PerQueryNoise(self.data, ic.Budget(0.01), answers=5, noise_law="laplace")
        for query in ASKED:
            self.session.answer(query)

    def opened(self, file):
        return ic.OnlineIC(self.data, self.total.share(0.25), ledger=file, table=LABEL)


CALLS = {
    "answer": lambda one: one.session.answer(ASKED[0]),
    "answer without a file": lambda one: one.other.answer_many(ASKED),
    "close": lambda one: one.session.close(),
    "hypothesis": lambda one: one.session.hypothesis,
    "open": lambda one: ic.OnlineIC(one.data, ic.Budget(0.01)),
    "open a file": lambda one: one.opened(one.folder / "new.db"),
    "resume": lambda one: ic.OnlineIC.resume(one.folder / "closed.db", one.data),
    "release": lambda one: offline.median(one.data, "a", epsilon=0.01),
    "release of a projection": lambda one: one.data.projected("a").spend(ic.Budget(0.01)),
    "baseline": lambda one: one.baseline.answer_many(ASKED),
    "draw": lambda one: one.total.draw(ic.Budget(0.01)),
    "draw on it": lambda one: one.data.draw_on(one.total),
}


@pytest.fixture(scope="module")
def parent():
    with quick_folder() as folder:
        one = Parent(folder)
        yield one
        one.session.close()
        one.total.close()
        assert sorted(os.listdir(folder)) == sorted(
            f"{name}.db{end}" for name in ("closed", "session", "total") for end in ("", ".lock", "-journal")
        )


class Waiting:
    """What a call looks at while nobody else may come in: a budget, a question of counts.

    It waits until it may go on, and then changes nothing.
    """

    domain, grid_bits = DOMAIN, 0

    def __init__(self, tell=lambda: None):
        self.inside, self.done, self.tell = threading.Event(), threading.Event(), tell

    def wait(self):
        self.tell()
        self.inside.set()
        self.done.wait()

    @property
    def neighbours(self):
        self.wait()
        return "others"

    def total(self, tables, mass):
        self.wait()
        return 0

    def derived(self, asker):
        self.wait()
        return asker.answer(ASKED[0])


class WaitingUnit(ic.Unit):
    """A unit that waits when it is compared, and then is as any other."""

    def __init__(self, waiting):
        object.__setattr__(self, "waiting", waiting)

    def __eq__(self, unit):
        self.waiting.wait()
        return True

    __hash__ = None


def refused(total, budget):
    with pytest.raises(InvalidParameterError, match="nothing was spent"):
        total.draw(budget)


INSIDE = {  # calls that are in their middle when they look at what waits
    "session": lambda one, waiting: one.session.explain(waiting.derived),
    "sessions of the table": lambda one, waiting: one.data.cut_into(WaitingUnit(waiting)),
    "total": lambda one, waiting: refused(one.total, waiting),
    "read": lambda one, waiting: one.data.exact_counts(waiting),
}


def held(name, parent, act):
    """Act while another thread is inside of a call."""
    waiting = Waiting()

    def inside():
        try:
            INSIDE[name](parent, waiting)
        finally:
            waiting.inside.set()  # one that did not wait holds up nobody

    thread = threading.Thread(target=inside)
    thread.start()
    try:
        assert waiting.inside.wait(FOR_EVER)
        return act()
    finally:
        waiting.done.set()
        thread.join()


@pytest.mark.parametrize("name", INSIDE)
def test_a_call_of_another_thread_waits_for_the_one_that_is_inside(name):
    """Without forks: these are locks that a fork could find closed."""
    told = queue.SimpleQueue()
    second = Waiting(lambda: told.put("came in"))
    with quick_folder() as folder:
        with telling_locks(lambda: told.put("waits")):
            parent = Parent(folder)
        thread = threading.Thread(target=INSIDE[name], args=(parent, second))

        def begun():
            thread.start()
            return told.get(timeout=FOR_EVER)

        first = held(name, parent, begun)
        second.done.set()
        thread.join()
        parent.session.close()
        parent.total.close()

    assert ("waits", True) == (first, second.inside.is_set())


@pytest.mark.parametrize("name", CALLS)
def test_a_forked_process_is_refused_whatever_it_asks_and_whoever_held_a_lock(name, parent):
    """No file of the parent's is touched, or made; the fork waits for a write of a file to end."""
    lines, drawn = parent.session.receipt.lines, len(parent.total.drawn)
    closed = (parent.folder / "closed.db").read_bytes()

    assert {"none": 0} == {"none": in_child(lambda: CALLS[name](parent))}
    for inside in INSIDE:
        ended = held(inside, parent, lambda: in_child(lambda: CALLS[name](parent)))
        assert (inside, 0) == (inside, ended)
    assert (lines, drawn) == (parent.session.receipt.lines, len(parent.total.drawn))
    assert closed == (parent.folder / "closed.db").read_bytes()
    assert not (parent.folder / "new.db").exists()


def test_the_parent_goes_on(parent):
    assert parent.session.answer(ASKED[0]).status == "repeat"
    assert parent.baseline.answer_many(ASKED)
    again = ic.OnlineIC.resume(parent.folder / "closed.db", parent.data)
    again.close()
    assert read(parent.folder / "closed.db").receipt == again.receipt


def test_a_simulation_on_an_inherited_table_runs_in_a_forked_process(parent):
    def simulated():
        data = parent.data
        session = ic.OnlineIC(data, WHOLE, noise=SimulatedNoise(1))
        if all(session.answer(query).status in ("easy", "hard") for query in ASKED):
            raise ForkedSessionError

    for inside in INSIDE:
        assert 0 == held(inside, parent, lambda: in_child(simulated))


@pytest.mark.slow
def test_forks_in_the_midst_of_everything_neither_wait_nor_spend(parent):
    """Another thread asks, draws and opens all the time."""
    stop, failed = threading.Event(), []

    def busy():
        asked = itertools.cycle(queries(100, seed=23))
        try:
            while not stop.is_set():
                parent.session.answer(next(asked))
                with contextlib.suppress(BudgetExceededError):  # the longer the forks take, the more is drawn
                    ic.OnlineIC(parent.data, ic.Budget(1e-4)).answer(ASKED[0])
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        calls = list(CALLS.values())
        ended = [in_child(partial(calls[at % len(calls)], parent)) for at in range(60)]
    finally:
        stop.set()
        thread.join()

    assert [0] * 60 == ended
    assert [] == failed
