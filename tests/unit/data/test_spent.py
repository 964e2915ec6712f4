"""Orders of calls that would spend twice, or forget what was spent: each is refused, or on the list."""

import os
import queue
import shutil
import threading
import warnings

import numpy as np
import pytest

import onlineic as ic
from onlineic import offline
from onlineic.data.private import paid_by
from onlineic.data.spent import Spent
from onlineic.errors import (
    BudgetExceededError,
    InvalidParameterError,
    LargeDeltaWarning,
    LedgerRollbackError,
    SessionStateError,
)
from onlineic.ledger import MemoryLedger, TableBudget
from support.events import FOR_EVER, in_child

DOMAIN = ic.Domain.of(a=5, b=2)
WIDE, SMALL = ic.Budget(1.0, 0.1), ic.Budget(0.25)  # of the first a delta above 1/n
WHOLE = ic.Budget(1.0, 1e-6)


@pytest.fixture
def data():
    return ic.PrivateData(np.full(DOMAIN.size, 10), DOMAIN)


def showing(monkeypatch, act):
    """Let the first warning that is shown call something: whoever shows warnings may."""
    shown = []

    def show(message, *_, **__):
        shown.append(message)
        if len(shown) == 1:
            act()

    monkeypatch.setattr(warnings, "showwarning", show)
    return shown


def interrupted(monkeypatch, act):
    """Run a call that Ctrl-C stops after its ledger was entered."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ic.PrivateData, "begun", stop)
        with pytest.raises(KeyboardInterrupt):
            act()


@pytest.mark.filterwarnings("always::onlineic.errors.LargeDeltaWarning")
@pytest.mark.parametrize(("whole", "drawn"), [(ic.Budget(2.0, 1e-9), 0), (ic.Budget(2.0, 0.5), 1)])
def test_a_total_that_comes_while_a_warning_is_shown_pays_for_what_is_spent_after_it(
    whole, drawn, data, monkeypatch
):
    total = TableBudget(whole)
    showing(monkeypatch, lambda: data.draw_on(total))
    if drawn:
        data.spend(WIDE)
    else:
        with pytest.raises(BudgetExceededError, match="nothing was spent"):
            data.spend(WIDE)

    assert (total, drawn, drawn) == (data.total, len(total.drawn), len(data.budgets))


@pytest.mark.filterwarnings("always::onlineic.errors.LargeDeltaWarning")
def test_what_is_released_while_a_warning_of_a_total_is_shown_keeps_the_total_away(data, monkeypatch):
    total = TableBudget(WIDE)
    showing(monkeypatch, lambda: offline.median(data, "a", SMALL.epsilon))
    with pytest.raises(SessionStateError, match="before anything is released"):
        data.draw_on(total)

    assert (None, (SMALL,)) == (data.total, data.budgets)


@pytest.mark.filterwarnings("always::onlineic.errors.LargeDeltaWarning")
@pytest.mark.filterwarnings("always::onlineic.errors.BudgetsAddWarning")
def test_whoever_shows_a_warning_may_wait_for_a_thread_that_spends_and_its_budget_is_told(data, monkeypatch):
    done = queue.SimpleQueue()

    def elsewhere():
        second = threading.Thread(target=lambda: done.put(data.spend(SMALL)))
        second.start()
        done.get(timeout=FOR_EVER)
        second.join()

    shown = showing(monkeypatch, elsewhere)
    data.spend(WIDE)

    assert LargeDeltaWarning is type(shown[0])
    assert "after epsilon=0.25, delta=0: both together cost epsilon=1.25" in str(shown[-1])
    assert (SMALL, WIDE) == data.budgets


@pytest.mark.parametrize("line", ["add", "cover"])
def test_a_signal_s_handler_comes_between_no_look_and_its_entry(line, data, monkeypatch):
    total, act = TableBudget(WIDE), getattr(Spent, line)
    calls = {"add": lambda: data.draw_on(total), "cover": lambda: offline.median(data, "a", SMALL.epsilon)}

    def handled(*given):
        calls[line]()
        act(*given)

    other = "cover" if line == "add" else "add"
    with monkeypatch.context() as patched, warnings.catch_warnings(action="ignore"):
        patched.setattr(Spent, line, handled)
        with pytest.raises(SessionStateError, match=r"in the middle of another; nothing was spent"):
            calls[other]()

    assert (None, (), ()) == (data.total, data.budgets, total.drawn)
    offline.median(data, "a", SMALL.epsilon)  # when the handler has returned


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("again", ["a ledger that is known", "a number that comes back"])
def test_a_forked_process_spends_nothing_whatever_it_knows(again, data, monkeypatch):
    ledger, number = MemoryLedger(), os.getpid()
    interrupted(monkeypatch, lambda: ic.OnlineIC(data, SMALL, ledger=ledger))

    def child():
        if again == "a number that comes back":  # of a process that ended, or in another space of numbers
            os.getpid = lambda: number
            data.projected("a").spend(SMALL)
        else:
            ic.OnlineIC(data, SMALL, ledger=ledger)

    assert 0 == in_child(child)
    ic.OnlineIC(data, SMALL, ledger=ledger)
    assert (SMALL,) == data.budgets


def test_a_ledger_that_is_known_and_promises_to_more_rows_is_told_for_those(data, monkeypatch):
    ledger = MemoryLedger()
    interrupted(monkeypatch, lambda: ic.OnlineIC(data, ic.Budget(2.0), rows_per_person=2, ledger=ledger))
    ic.OnlineIC(data, ic.Budget(4.0), rows_per_person=4, ledger=ledger)

    assert (4, (ic.Budget(4.0),)) == (data.rows_per_person, data.budgets)


def test_a_table_that_is_loaded_again_does_not_forget(data):
    offline.median(data, "a", SMALL.epsilon)
    with pytest.raises(SessionStateError, match="must be loaded once, got __init__ again"):
        data.__init__(np.full(DOMAIN.size, 10), DOMAIN)

    assert (SMALL,) == data.budgets


WAYS = {
    "the table": lambda data: data,
    "a projection": lambda data: data.projected(*DOMAIN.names),
    "a union": lambda data: ic.PrivateData.union([data]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_table_refuses_a_file_that_is_older_than_its_last_run(way, data, tmp_path):
    path, copy = tmp_path / "session.db", tmp_path / "copy.db"
    ic.OnlineIC(data, WHOLE, ledger=path, table="t").close()
    shutil.copy(path, copy)
    session = ic.OnlineIC.resume(path, WAYS[way](data))
    session.answer({"a": [0, 2]})
    session.close()
    newest = path.read_bytes()
    shutil.copy(copy, path)
    with pytest.raises(LedgerRollbackError, match="must go on from what the table knows of 3 lines"):
        ic.OnlineIC.resume(path, data)
    path.write_bytes(newest)
    ic.OnlineIC.resume(path, data).close()

    assert (WHOLE,) == data.budgets


ROWS = {"id": [7, 7, 8, 9], "a": [0, 1, 2, 3], "b": [0, 1, 0, 1]}


def test_persons_stay_in_the_parts_that_another_table_of_the_same_records_counts():
    data = ic.PrivateData.from_records(ROWS, DOMAIN, unit=ic.Unit("id"))
    paid_by(data, object())

    assert (ic.Unit("id"),) == data.units()


def test_a_budget_that_was_paid_before_is_entered_for_the_parts_that_there_are():
    near = {"neighbours": "add-remove", "n_at_most": 10}
    data = ic.PrivateData.from_records(ROWS, DOMAIN, unit=ic.Unit("id"), **near)
    budget = ic.Budget(0.25, neighbours=data.neighbours)
    with pytest.raises(InvalidParameterError, match="or a promise for others"):
        data.enter(MemoryLedger(), budget, rows_per_person=16, paid=True)

    assert (3, ()) == (len(data.units()), data.budgets)
