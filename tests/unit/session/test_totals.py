"""One budget a table: sessions, mechanisms and baselines draw on it, in a file or not, and never past it."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlineic as ic
from onlineic import audit, baselines, offline
from onlineic.accounting import laplace_charge, per_row, renyi_capacity, zcdp_order
from onlineic.accounting.of_table import table_charge
from onlineic.cli import main
from onlineic.errors import (
    BudgetExceededError,
    BudgetsAddWarning,
    ForkedSessionError,
    InvalidInputError,
    InvalidParameterError,
    LargeDeltaWarning,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerRollbackError,
    LedgerWriteError,
    MoreThanAnnouncedWarning,
    OnlineICError,
    PrivateLabelsWarning,
    SessionStateError,
    VacuousPromiseWarning,
)
from onlineic.ledger import MemoryLedger, Shared, SqliteLedger, TableBudget, read
from onlineic.ledger.lines import START, canonical_text, linked
from onlineic.ledger.place import file_at
from onlineic.ledger.total import drawn_problems, total_of
from onlineic.noise import SimulatedNoise
from onlineic.plan.announced import Announcement
from support.ledgers import LABEL, in_a_process, queries, quick_folder, table, with_ledger
from support.sessions import settled

WHOLE = ic.Budget(1.0, 1e-9)
ORDER = zcdp_order(1.0, 9e-10)  # of the shares of that, also of a total that is a filter from the start


@pytest.fixture
def path():
    with quick_folder() as folder:
        yield folder / "total.db"


def attached(total):
    data = table()
    data.draw_on(total)
    return data


def of_file(path, **more):
    return TableBudget(WHOLE, **{"ledger": path, "table": LABEL} | more)


def test_shares_are_planned_at_the_order_of_the_total_and_together_keep_its_capacity():
    total = TableBudget(WHOLE)
    data = attached(total)
    sessions = [ic.OnlineIC(data, total.share(1 / 4), hard_answers=4) for _ in range(3)]
    sessions.append(ic.OnlineIC(data, total.share(1 / 4), questions=3))  # Laplace noise would err less
    accounts = [session.plan.sparse.account() for session in sessions]

    assert {total.order} == {account.order for account in accounts}
    assert {"GumbelSparse"} == {type(one.plan.sparse).__name__ for one in sessions}
    capacity = renyi_capacity(total.order, 1.0, 9e-10)
    assert capacity - 8 <= sum(account.capacity for account in accounts) <= capacity
    assert total.left < Fraction(1, 10**9)
    numbers = {"release": "answer", "sparse": "gumbel", "hard_answers": 4}
    quarter = ic.OnlineIC(attached(TableBudget(WHOLE)), total.share(1 / 4), **numbers).plan.sparse
    alone = ic.OnlineIC(table(), WHOLE, **numbers).plan.sparse
    wide, narrow = (float(one.scale) / 2**one.grid_bits for one in (quarter, alone))
    assert 1.5 < wide / narrow < 2.5  # twice the noise for a quarter, and not four times


@pytest.mark.parametrize("settings", [{"sparse": "exponential"}, {"sparse": "laplace"}])
def test_a_share_is_spent_in_its_filter_alone(settings):
    total = TableBudget(WHOLE)
    data = attached(total)
    with pytest.raises(InvalidParameterError, match="sparse must be 'gumbel' with a share"):
        ic.OnlineIC(data, total.share(0.5), **settings)
    assert (1, 0) == (total.left, data.reads)


@pytest.mark.parametrize(
    "settings",
    [
        {"certify": 0.3, "questions": 100},
        {"questions": Announcement(dense=True)},
        {"release": "answer"},
        {"hard_answers": 3},
        {"questions": 2},
        {"purchases": ic.TestsOnly()},
        {"update": ic.MultiplicativeWeights(), "hard_answers": 5, "purchases": "settled"},
    ],
)
@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
def test_every_plan_of_a_share_fits_into_it(settings):
    total = TableBudget(WHOLE)
    data = attached(total)
    if settings.get("purchases") == "settled":
        rule = settled(data.domain, data.n, total.share(0.25), hard_answers=5)
        settings = {**settings, "purchases": rule}
    session = ic.OnlineIC(data, total.share(0.25), **settings)
    session.answer_many(queries(10))

    assert Fraction(74, 100) < total.left <= Fraction(3, 4) + Fraction(1, 10**9)
    tables = session.plan.first_tables
    assert tables is None or tables.charge.amount <= session.plan.sparse.account().capacity


def test_pure_sessions_mechanisms_and_baselines_take_their_randomised_response():
    total = TableBudget(WHOLE, order=ORDER)
    data = attached(total)
    pure = ic.Budget(0.1)
    price = Fraction(laplace_charge(total.order, 1 / pure.epsilon_exact, 1))
    ic.OnlineIC(data, pure)
    offline.median(data, "a", 0.1)
    baselines.PerQueryNoise(data, pure, answers=5, noise_law="laplace")

    assert [price] * 3 == [one.taken.charge.amount for one in total.drawn]
    assert ["session", "release", "release"] == [one.what for one in total.drawn]
    assert [0] * 3 == [one.taken.apart for one in total.drawn]
    assert price * Fraction(1, 2**40) < Fraction(1, 10)  # less than epsilon itself


def test_a_session_of_a_higher_order_of_its_own_takes_its_capacity():
    total = TableBudget(WHOLE, order=ORDER)
    session = ic.OnlineIC(attached(total), ic.Budget(0.3, 1e-10), hard_answers=4)

    account = session.plan.sparse.account()
    assert account.order > total.order
    assert account.capacity == total.drawn[0].taken.charge.amount
    assert 0 == total.drawn[0].taken.apart


def test_what_has_no_price_at_the_order_takes_its_delta_from_what_is_set_apart():
    total = TableBudget(WHOLE, order=ORDER)
    data = attached(total)
    other = ic.Budget(0.1, 6e-11)
    baselines.PerQueryNoise(data, other, answers=5)

    assert other.delta_exact == total.drawn[0].taken.apart
    with pytest.raises(BudgetExceededError, match="set apart, the delta"):
        baselines.PerQueryNoise(data, other, answers=5)
    assert (1, 0) == (len(total.drawn), data.reads)


def test_overdrawing_is_refused_before_anything_is_read_or_made(path):
    total = TableBudget(ic.Budget(0.5, 1e-9))
    data = attached(total)
    for draw in (
        lambda: ic.OnlineIC(data, ic.Budget(1.0), ledger=path, table=LABEL),
        lambda: ic.OnlineIC(data, WHOLE, hard_answers=3),
        lambda: ic.OnlineIC.textbook(data, epsilon=10.0, max_queries=10),
        lambda: offline.median(data, "a", 1.0),
        lambda: baselines.PerQueryNoise(data, ic.Budget(1.0), answers=5, noise_law="laplace"),
    ):
        with pytest.raises(BudgetExceededError, match="nothing was spent"):
            draw()
    assert ((), 0, 1, ()) == (data.budgets, data.reads, total.left, total.drawn)
    assert not path.exists()


def test_a_total_without_delta_adds_epsilons_and_refuses_delta():
    total = TableBudget(ic.Budget(1.0))
    data = attached(total)
    for _ in range(10):
        ic.OnlineIC(data, total.share(0.1))
    assert total.left < Fraction(1, 10**12)
    with pytest.raises(BudgetExceededError):
        offline.median(data, "a", 0.01)
    with pytest.raises(InvalidParameterError, match="delta must be 0 under a total"):
        ic.OnlineIC(attached(TableBudget(ic.Budget(1.0))), ic.Budget(0.1, 1e-9))


def test_one_session_can_have_all_of_a_total():
    budget = ic.Budget(1.0, 1e-6)
    total = TableBudget(budget)
    data = attached(total)
    session = ic.OnlineIC(data, budget)

    assert session.answer(ic.where(a=1)).status in ("easy", "hard")
    assert (0, 0) == (total.left, total.apart_left)
    with pytest.raises(BudgetExceededError, match=r"take at most Budget\(0\.0, 0\.0\)"):
        offline.median(data, "a", 0.01)
    with pytest.raises(BudgetExceededError, match="nothing was spent: give what is left"):
        total.share(0.1)


def test_a_total_of_three_fits_three_sessions_of_nine_tenths():
    total = TableBudget(ic.Budget(3.0, 1e-5))
    data = attached(total)
    for _ in range(3):
        ic.OnlineIC(data, ic.Budget(0.9, 1e-6))
    assert pytest.approx(0.1) == float(total.left)
    with pytest.raises(BudgetExceededError, match="nothing was spent"):
        ic.OnlineIC(data, ic.Budget(0.9, 1e-6))


@pytest.mark.parametrize("rows", [1, 3])
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=8))
def test_a_total_takes_whatever_addition_fits_and_nothing_more(rows, parts):
    whole = ic.Budget(1.0, 2.0**-20)
    total, row = TableBudget(whole, rows_per_person=rows), per_row(whole, rows)
    epsilon = delta = Fraction(0)
    for one, other in parts:
        budget = ic.Budget(one / 64, other * 2.0**-25 / 64)
        fits = epsilon + budget.epsilon_exact <= row.epsilon_exact
        if fits and delta + budget.delta_exact <= row.delta_exact:
            total.draw(budget)
            epsilon, delta = epsilon + budget.epsilon_exact, delta + budget.delta_exact
        else:
            with pytest.raises(BudgetExceededError):
                total.draw(budget)
    assert (1 - epsilon / row.epsilon_exact, row.delta_exact - delta) == (total.left, total.apart_left)


def test_what_is_drawn_before_the_first_share_is_added_to_the_filter_of_the_rest(path):
    with of_file(path) as total:
        data = attached(total)
        offline.median(data, "a", 0.125)
        baselines.PerQueryNoise(data, ic.Budget(0.25, 5e-10), answers=5)
        assert (None, Fraction(5, 8)) == (total.order, total.left)
        half = total.share(0.5)
        for _ in range(2):
            ic.OnlineIC(data, half, hard_answers=4)
        assert (ORDER, True) == (total.order, total.left < Fraction(1, 10**9))
    records, _ = read(path).records(read(path).domain())
    (shared,) = (record for record in records if isinstance(record, Shared))
    delta = 0.9 * (1e-9 - 5e-10)
    assert pytest.approx(delta / 9) == float(shared.apart)
    assert pytest.approx(renyi_capacity(ORDER, 0.625, delta)) == float(shared.account.capacity)
    assert 0 == main(["ledger", "verify", str(path)])
    with of_file(path) as total, pytest.raises(BudgetExceededError, match=r"total\.share\(total\.left\)"):
        total.draw(ic.Budget(0.01))


def test_a_total_with_an_order_is_a_filter_from_the_start_also_in_files_that_do_not_say_so(path):
    """Earlier ones wrote no order in their settings, and the account of one in their first line."""
    with of_file(path, order=ORDER) as total:
        total.draw(ic.Budget(0.01))
        assert (ORDER, "ticks") == (total.order, total.drawn[0].taken.charge.unit)

    def earlier(texts):
        line = json.loads(texts[0])
        line["settings"]["order"] = None
        return [canonical_text(line), *texts[1:]]

    forged(path, earlier)
    with of_file(path) as total:
        assert (ORDER, 1) == (total.order, len(total.drawn))


@pytest.mark.parametrize("order", [None, ORDER])
def test_a_total_begins_with_the_capacity_of_its_budget_and_no_other(path, order):
    of_file(path, order=order).close()
    capacity = 1 if order is None else renyi_capacity(ORDER, 1.0, 9e-10)
    assert str(capacity) == read(path).beginning["account"]["capacity"]
    forged(path, larger)
    with pytest.raises(LedgerCorruptError, match="the capacity of"):
        of_file(path, order=order)


def test_a_line_of_a_total_in_the_ledger_of_a_session_is_refused(path):
    """Its account would be another from there on."""
    ic.OnlineIC(table(), WHOLE, ledger=path, table=LABEL).close()
    account = {"capacity": "999999999999999", "unit": "ticks", "order": "40"}

    def added(texts):
        line = {"kind": "shared", "account": account, "apart": "0", "at": len(texts)}
        return [*texts, canonical_text(line)]

    forged(path, added)
    with pytest.raises(LedgerCorruptError, match="lines of a session or those of a total"):
        ic.OnlineIC.resume(path, table())
    assert 1 == main(["ledger", "verify", str(path)])


def test_simulated_sessions_draw_nothing():
    total = TableBudget(WHOLE)
    ic.OnlineIC(attached(total), ic.Budget(9.0, 1e-9), noise=SimulatedNoise(1))
    assert ((), 1) == (total.drawn, total.left)


def test_nobody_gets_round_a_total_nor_empties_the_record():
    total, data = TableBudget(WHOLE), table()
    with pytest.raises(InvalidParameterError, match="must be a TableBudget"):
        data.draw_on(WHOLE)
    data.draw_on(total)
    data.draw_on(total)
    with pytest.raises(InvalidParameterError, match="got another"):
        data.draw_on(TableBudget(WHOLE))
    with pytest.raises(AttributeError):
        data.total = None
    with pytest.raises(AttributeError):
        data.budgets = ()
    assert isinstance(data.budgets, tuple)
    used = table()
    offline.median(used, "a", 0.1)
    with pytest.raises(SessionStateError, match="before anything is released"):
        used.draw_on(total)
    with pytest.raises(TypeError):
        total.__reduce__()
    with pytest.raises(SessionStateError, match="opened once"):
        total.__init__(ic.Budget(9.0, 1e-9))


def test_a_closed_total_pays_for_nothing_without_a_file_too():
    total = TableBudget(WHOLE)
    data = attached(total)
    total.close()

    with pytest.raises(LedgerError, match="total must be open to be drawn on"):
        offline.median(data, "a", 0.1)
    assert ((), 0) == (total.drawn, data.reads)


def test_a_second_budget_without_a_total_warns_with_both_costs():
    data = table()
    ic.OnlineIC(data, ic.Budget(0.5, 1e-9))
    with pytest.warns(
        BudgetsAddWarning, match=r"after epsilon=0\.5, delta=1e-09: both together cost epsilon"
    ):
        ic.OnlineIC(data, ic.Budget(0.25, 1e-9))
    with pytest.warns(BudgetsAddWarning, match=r"cost epsilon=0\.85, delta=2e-09"):
        offline.median(data, "a", 0.1)
    assert 3 == len(data.budgets)


def test_a_delta_above_one_in_n_warns():
    data = table()
    with pytest.warns(LargeDeltaWarning, match="n=60000"):
        ic.OnlineIC(data, ic.Budget(0.5, 1.7e-5))
    ic.OnlineIC(table(), ic.Budget(0.5, 1.6e-5))
    with pytest.warns(LargeDeltaWarning):
        table().draw_on(TableBudget(ic.Budget(0.5, 1.7e-5)))


def test_several_loads_of_one_table_draw_on_one_total():
    total = TableBudget(WHOLE)
    one, other = attached(total), attached(total)
    ic.OnlineIC(one, total.share(0.5))
    ic.OnlineIC(other, total.share(0.5))
    with pytest.raises(BudgetExceededError):
        ic.OnlineIC(one, total.share(0.1))


def test_threads_draw_what_is_there_and_no_more():
    total, start, refused = TableBudget(WHOLE), threading.Barrier(8), []
    share = total.share(0.2)

    def draw():
        start.wait()
        try:
            offline_data = attached(total)
            ic.OnlineIC(offline_data, share, questions=2)
        except BudgetExceededError as error:
            refused.append(error)

    threads = [threading.Thread(target=draw) for _ in range(8)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    assert (5, 3) == (len(total.drawn), len(refused))


def test_a_signal_s_handler_cannot_draw_between_the_look_at_what_is_left_and_the_record(monkeypatch):
    total = TableBudget(WHOLE, order=ORDER)
    data, budget, refused = attached(total), ic.Budget(0.1, 6e-11), []
    commit = type(total._ledger).commit

    def interrupted(self, records, payer=None):
        if not refused:
            with pytest.raises(SessionStateError, match="nothing was spent") as error:
                baselines.PerQueryNoise(data, budget, answers=5)
            refused.append(error)
        commit(self, records, payer)

    with monkeypatch.context() as patched:
        patched.setattr(type(total._ledger), "commit", interrupted)
        baselines.PerQueryNoise(data, budget, answers=5)

    assert (1, (budget,)) == (len(total.drawn), data.budgets)
    assert Fraction(1, 10) * WHOLE.delta_exact - budget.delta_exact == total.apart_left
    offline.median(data, "a", 0.1)


@pytest.mark.parametrize(
    ("first", "noise"), [(ic.Budget(0.01, 1e-11), None), (ic.Budget(0.5, 1e-10), SimulatedNoise(1))]
)
def test_a_ledger_of_an_opening_that_was_interrupted_pays_for_no_other_budget(first, noise, monkeypatch):
    """The table knows that ledger; what it was charged for was another session, or a simulated one."""

    def interrupt(*_):
        raise KeyboardInterrupt

    total, ledger, second = TableBudget(WHOLE), MemoryLedger(), ic.Budget(0.5, 1e-10)
    data = attached(total)
    with monkeypatch.context() as patched:
        patched.setattr(ic.PrivateData, "begun", interrupt)  # after the entry
        with pytest.raises(KeyboardInterrupt):
            ic.OnlineIC(data, first, ledger=ledger, noise=noise)
    drawn = len(total.drawn)
    session = ic.OnlineIC(data, second, ledger=ledger)

    assert (second, session.plan.sparse.account()) == (total.drawn[-1].budget, total.drawn[-1].account)
    assert drawn + 1 == len(total.drawn) == len(data.budgets)
    assert session.statistics().private


# --- the file --------------------------------------------------------------------------------------------


def test_a_file_goes_on_in_another_process_and_is_one_process_s(path):
    session_file = path.with_name("session.db")
    with of_file(path) as total:
        data = attached(total)
        session = ic.OnlineIC(data, total.share(0.5), ledger=session_file, table=LABEL)
        session.answer_many(queries(5))
        session.close()
        with pytest.raises(LedgerLockedError):
            of_file(path)
        opening = f"ic.TableBudget(ic.Budget(1.0, 1e-9), ledger={str(path)!r}, table={LABEL!r})"
        code = f"import onlineic as ic; {opening}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "LedgerLockedError" in done.stderr
        receipt = total.receipt
    with pytest.raises(LedgerError, match="got a closed one"):
        offline.median(data, "a", 0.01)
    with of_file(path, receipt=receipt) as total:
        assert (1, total.order) == (len(total.drawn), ORDER)
        data = attached(total)
        again = ic.OnlineIC.resume(session_file, data)  # has drawn before
        again.answer_many(queries(5))
        again.close()
        assert (1, 0.5) == (len(total.drawn), pytest.approx(float(total.left)))
        with pytest.raises(BudgetExceededError):
            ic.OnlineIC(data, total.share(0.6))


def test_a_killed_process_leaves_what_it_drew(path):
    def work(_):
        total = of_file(path)
        data = attached(total)
        reading = type(data).exact_counts

        def killed(self, target):
            os.kill(os.getpid(), signal.SIGKILL)
            return reading(self, target)

        type(data).exact_counts = killed
        offline.median(data, "a", 0.2)

    _, ended = in_a_process(work)
    assert signal.SIGKILL == ended
    with of_file(path) as total:
        assert [0.2] == [one.budget.epsilon for one in total.drawn]


def test_a_forked_process_cannot_draw():
    total = TableBudget(WHOLE)
    data = attached(total)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            offline.median(data, "a", 0.1)
        except ForkedSessionError:
            os.write(writing, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert b"refused" == os.read(reading, 10)
    os.close(reading)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"table": "another"}, LedgerMismatchError),
        ({"budget": ic.Budget(2.0, 1e-9)}, LedgerMismatchError),
        ({"apart": Fraction(1, 2)}, LedgerMismatchError),
        ({"order": Fraction(30)}, LedgerMismatchError),
        ({"rows_per_person": 2}, LedgerMismatchError),
        ({"receipt": "9:" + "0" * 64}, LedgerRollbackError),
    ],
)
def test_a_file_of_other_settings_is_refused_by_name(path, settings, error):
    of_file(path).close()
    given = {"budget": WHOLE, "ledger": path, "table": LABEL} | settings
    with pytest.raises(error) as refused:
        TableBudget(given.pop("budget"), **given)
    assert "OnlineIC.resume" not in str(refused.value)  # which no total goes on by
    of_file(path).close()  # and stays usable


def test_totals_and_sessions_are_told_apart(path):
    of_file(path).close()
    with pytest.raises(LedgerMismatchError, match=r"got the total of a table"):
        ic.OnlineIC.resume(path, table())
    with pytest.raises(LedgerMismatchError, match=r"got the total of a table"):
        ic.OnlineIC(table(), WHOLE, ledger=path, table=LABEL)
    other = path.with_name("session.db")
    ic.OnlineIC(table(), WHOLE, ledger=other, table=LABEL).close()
    with pytest.raises(LedgerMismatchError, match="got that of a session"):
        of_file(other)
    with pytest.raises(LedgerMismatchError):
        audit.summarised(read(path))


def forged(path, change):
    """Write the lines of a total anew, with a chain that holds."""
    connection = sqlite3.connect(path)
    texts = [text for (text,) in connection.execute("SELECT text FROM line ORDER BY at")]
    connection.execute("DELETE FROM line")
    chain = START
    for place, text in enumerate(change(texts)):
        chain = linked(chain, text)
        connection.execute("INSERT INTO line VALUES (?, ?, ?)", (place, text, chain))
    connection.execute("UPDATE head SET lines = ?, chain = ?", (place + 1, chain))
    connection.commit()
    connection.close()


def cheaper(texts):
    amount = r'"amount":"\d+"'
    return [re.sub(amount, '"amount":"1"', text) if '"kind":"drawn"' in text else text for text in texts]


def larger(texts):
    return [re.sub(r'"capacity":"(\d+)"', r'"capacity":"9\1"', texts[0]), *texts[1:]]


def twice(texts):
    drawn = next(text for text in texts if '"kind":"drawn"' in text)
    return [*texts, canonical_text(json.loads(drawn) | {"at": len(texts)})]


def shared_again(texts):
    shared = next(text for text in texts if '"kind":"shared"' in text)
    return [*texts, canonical_text(json.loads(shared) | {"at": len(texts)})]


def larger_filter(texts):
    capacity = r'"capacity":"(\d+)"'
    return [re.sub(capacity, r'"capacity":"9\1"', one) if '"kind":"shared"' in one else one for one in texts]


def more_apart(texts):
    return [re.sub(r'"apart":"', '"apart":"1', one) if '"kind":"shared"' in one else one for one in texts]


def test_a_copy_of_an_open_session_s_file_is_no_second_session_on_another_load_of_its_table(path):
    total, copy = TableBudget(WHOLE), path.with_name("copy.db")
    one, other = attached(total), attached(total)
    session = ic.OnlineIC(one, total.share(0.9), ledger=path, table=LABEL)
    shutil.copy(path, copy)
    with pytest.raises(LedgerLockedError, match="a copy of one that is open"):
        ic.OnlineIC.resume(copy, other)
    assert 0 == other.reads
    session.close()
    ic.OnlineIC.resume(path, other).close()
    assert 1 == len(total.drawn)


@pytest.mark.parametrize("written", [[], {}, "1/0", "gone"])
@pytest.mark.parametrize("total", [True, False])
def test_a_beginning_that_was_put_together_by_hand_is_refused_by_name(path, total, written):
    def places(line, before=()):
        for name, inner in line.items():
            yield (*before, name)
            yield from places(inner, (*before, name)) if isinstance(inner, dict) else ()

    (of_file(path) if total else ic.OnlineIC(table(), WHOLE, ledger=path, table=LABEL)).close()
    first = read(path).beginning
    parts = ("account", "settings", "total", "domain", "created", "table")
    for place in [one for one in places(first) if one[0] in parts or one[2:3] == ("sparse",)]:
        line = json.loads(canonical_text(first))
        holder = line
        for name in place[:-1]:
            holder = holder[name]
        holder[place[-1]] = written
        if written == "gone":
            del holder[place[-1]]
        forged(path, lambda _, line=line: [canonical_text(line)])
        with contextlib.suppress(OnlineICError):
            of_file(path).close() if total else with_ledger(ic.OnlineIC.resume, path, table())[1].release()
        assert main(["ledger", "verify", str(path)]) in (0, 1, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made["charge"]["fields"].update(amount={"fraction": "1"}),
        lambda made: made.update(scales=[{"fraction": "1/16"}] * len(made["scales"])),
        lambda made: made.update(scales=[{"fraction": "-9"}] * len(made["scales"])),
        lambda made: made.update(scales=made["scales"][1:]),
    ],
    ids=["cheaper", "less noise", "negative noise", "none"],
)
def test_a_forged_plan_cannot_buy_first_tables_for_less_than_they_cost(path, change):
    domain = ic.Domain.of(a=6, b=5, c=4, d=3)
    data = table(np.random.default_rng(4).multinomial(4_000, np.full(360, 1 / 360)), domain)
    rule = settled(domain, data.n, WHOLE)
    ic.OnlineIC(data, WHOLE, ledger=path, table=LABEL, purchases=rule).close()

    def changed(texts):
        line = json.loads(texts[0])
        change(line["plan"]["fields"]["purchases"]["fields"]["first"]["fields"])
        return [canonical_text(line), *texts[1:]]

    forged(path, changed)
    with pytest.raises(LedgerCorruptError, match="Purchase"):
        ic.OnlineIC.resume(path, data)
    assert 0 == data.reads


@pytest.mark.parametrize("change", [cheaper, larger, twice, shared_again, larger_filter, more_apart])
def test_a_forged_price_or_capacity_is_refused(path, change, capsys):
    session = path.with_name("session.db")
    with of_file(path) as total:
        ic.OnlineIC(attached(total), total.share(0.3), ledger=session, table=LABEL).close()
    forged(path, change)
    with pytest.raises(LedgerCorruptError):
        of_file(path)
    assert 1 == main(["ledger", "show", str(path)])


def test_show_and_verify_print_a_total(path, capsys):
    with of_file(path) as total:
        data = attached(total)
        ic.OnlineIC(data, total.share(0.5))
        offline.median(data, "a", 0.01)
        receipt = str(total.receipt)
    for action in ("show", "verify"):
        assert 0 == main(["ledger", action, str(path)])
        shown = capsys.readouterr().out
        assert LABEL in shown
        assert "drawn     50.0000% by a session" in shown
        assert "by a release: epsilon 0.01, delta 0 alone" in shown
        assert "holds     chain, capacity and prices" in shown
    assert 0 == main(["ledger", "verify", str(path), "--receipt", receipt, "--json"])
    assert '"total": true' in capsys.readouterr().out
    copy = path.with_name("total.jsonl")
    assert 0 == main(["ledger", "export", str(path), "--output", str(copy)])
    assert 0 == main(["ledger", "verify", str(copy)])


def test_a_total_for_several_rows_a_person_is_verified_too(path, capsys):
    with of_file(path, rows_per_person=3) as total:
        offline.median(attached(total), "a", 0.01)

    assert 0 == main(["ledger", "verify", str(path)])
    assert "holds     chain, capacity and prices" in capsys.readouterr().out


@pytest.mark.parametrize("order", [None, ORDER])
def test_more_delta_than_was_left_or_set_apart_is_no_record_of_a_total(path, order):
    with of_file(path, order=order) as total:
        rule = ic.Budget(1e-3, 0.6 * float(total.apart_left))
        total.draw(rule)
        drawn = total.drawn
    _, begun = total_of(read(path))

    assert [] == drawn_problems(drawn, begun)
    assert ["record 1: more delta than was left, or set apart"] == drawn_problems(2 * drawn, begun)


def test_a_session_of_a_share_whose_account_is_not_that_of_the_share_is_no_record_of_a_total(path):
    """It would pay less than the budget says that stands beside it."""
    with of_file(path, order=ORDER) as total:
        ic.OnlineIC(attached(total), total.share(1 / 4), hard_answers=4)
        *before, drawn = total.drawn
    _, begun = total_of(read(path))
    half = attrs.evolve(drawn.account, capacity=drawn.account.capacity // 2)
    account = begun.account
    forged = attrs.evolve(
        drawn, account=half, taken=table_charge(account, drawn.budget, half, drawn.taken.charge.event)
    )
    (problem,) = drawn_problems((*before, forged), begun)

    assert [] == drawn_problems((*before, drawn), begun)
    assert "charged another price" in problem


def test_the_delta_of_a_share_is_what_is_not_set_apart():
    total = TableBudget(WHOLE, apart=1 / 4)

    assert total.share(1 / 2).delta == pytest.approx(3 / 4 * WHOLE.delta)
    assert total.share(1 / 2).delta <= 3 / 4 * WHOLE.delta


def test_charges_are_durable_before_the_table_is_read(path, monkeypatch):
    with of_file(path) as total:
        data = attached(total)
        seen, reading = [], type(data).exact_counts
        monkeypatch.setattr(
            type(data),
            "exact_counts",
            lambda self, target: seen.append(total.receipt.lines) or reading(self, target),
        )
        offline.median(data, "a", 0.1)
        assert {2} == set(seen)


def test_a_file_that_is_replaced_between_the_last_look_and_the_commit_is_refused(path, monkeypatch):
    """The commit is in a file without a name: nothing is released, and the ledger takes nothing more."""
    total = of_file(path)
    data = attached(total)
    looks = []

    def looked(place):
        if looks:  # behind the commit
            os.replace(path, path.with_name("moved.db"))
            path.write_bytes(b"another")
        looks.append(place)
        return file_at(place)

    monkeypatch.setattr("onlineic.ledger.sqlite.file_at", looked)
    with pytest.raises(LedgerWriteError, match="got none or another file"):
        offline.median(data, "a", 0.1)
    assert (2, (), 0) == (len(looks), data.budgets, data.reads)
    monkeypatch.undo()
    with pytest.raises(LedgerWriteError):
        offline.median(data, "a", 0.1)
    total.close()


def test_a_failed_write_spends_and_reads_nothing(path, monkeypatch):
    with of_file(path) as total:
        data = attached(total)

        def full(*_):
            raise sqlite3.OperationalError("disk full")

        monkeypatch.setattr(SqliteLedger, "_store", full)
        with pytest.raises(sqlite3.OperationalError):
            offline.median(data, "a", 0.1)
        assert ((), 0) == (data.budgets, data.reads)


# --- rows of a person ------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [ic.Budget(1.0), ic.Budget(1.0, 1e-9)])
def test_a_budget_that_many_rows_divide_is_refused_with_their_number_and_as_it_was_written(budget):
    with pytest.raises(InvalidInputError) as refused:
        ic.OnlineIC(table(), budget, rows_per_person=10**9)

    assert str(refused.value) == (
        "budget must be larger for 1,000,000,000 rows of each person, got epsilon=1, "
        f"delta={budget.delta:g}; cap the rows of a person at fewer before loading, or raise epsilon."
    )


def test_the_most_rows_of_a_person_are_named_where_they_divide_the_budget():
    unit = ic.Unit("id", weigh="rows", at_most=10**7)
    columns, domain = {"a": [0, 1, 1], "id": [1, 1, 2]}, ic.Domain.of(a=2)
    data = ic.PrivateData.from_records(columns, domain, unit=unit, neighbours="add-remove", n_at_most=10**7)

    with pytest.raises(InvalidInputError, match="for 10,000,000 rows of each person, got epsilon=1, "):
        ic.OnlineIC(data, ic.Budget(1.0, 1e-9))


def test_rows_per_person_divides_the_budget_and_is_kept_in_the_file(path):
    session = ic.OnlineIC(table(), WHOLE, rows_per_person=3, hard_answers=3, ledger=path, table=LABEL)
    sparse = session.plan.sparse

    assert WHOLE == session.statistics().budget
    assert sparse.epsilon * 3 <= 1.0
    assert 0.0 < sparse.delta < 1e-9 / 3
    session.answer_many(queries(5))
    session.close()
    with pytest.raises(LedgerMismatchError, match="rows_per_person"):
        ic.OnlineIC(table(), WHOLE, hard_answers=3, ledger=path, table=LABEL)
    data = table()
    again = ic.OnlineIC.resume(path, data)
    assert sparse == again.plan.sparse
    assert [WHOLE.epsilon] == [one.epsilon for one in data.budgets]
    again.close()
    total = TableBudget(WHOLE, rows_per_person=3)
    assert total.left == 1
    assert attrs.evolve(total.share(1.0), order=None).epsilon <= 1 / 3
    with pytest.raises(InvalidParameterError, match="rows_per_person must be 1 with a share"):
        ic.OnlineIC(attached(total), total.share(0.5), rows_per_person=2)


def test_sums_of_budgets_are_told_for_the_person_with_the_most_rows_to_whom_any_was_promised():
    data = table()
    promised = ic.Budget(1.0, 1e-6)
    first = ic.OnlineIC(data, promised, rows_per_person=4, hard_answers=3)
    with pytest.warns(
        BudgetsAddWarning,
        match=r"after epsilon=1, delta=1e-06: .* a person with 4 rows epsilon=2, delta=2e-06\.",
    ):
        ic.OnlineIC(data, promised, rows_per_person=4, hard_answers=3)
    with pytest.warns(
        BudgetsAddWarning,
        match=r"another of epsilon=2, delta=0 after epsilon=2, .* 4 rows epsilon=4, delta=2",
    ):
        offline.median(data, "a", 0.5)  # promises 0.5 for one row

    assert 4 == data.rows_per_person == first.statistics().rows_per_person
    assert [1.0, 1.0, 2.0] == [one.epsilon for one in data.budgets]
    assert "epsilon=1, delta=1e-06, rows_per_person=4" in repr(first)
    assert "delta = 1e-06, for everything together, of a person with 4 rows" in str(first.summary())


def test_a_release_for_a_row_then_a_session_for_persons_is_told_for_persons():
    data = table()
    offline.median(data, "a", 0.5)
    with pytest.warns(
        BudgetsAddWarning, match=r"after epsilon=1, delta=0: .* a person with 2 rows epsilon=2,"
    ):
        ic.OnlineIC(data, ic.Budget(1.0, 1e-6), rows_per_person=2, hard_answers=3)
    assert [1.0, 1.0] == [one.epsilon for one in data.budgets]


def test_a_total_of_persons_tells_what_draws_on_it_for_persons(path, capsys):
    total = of_file(path, rows_per_person=4)
    data = attached(total)
    offline.median(data, "a", 0.05)
    with pytest.raises(BudgetExceededError, match=r"got Budget\(epsilon=2\.0, .*\) of a person with 4 rows,"):
        offline.median(data, "a", 0.5)

    assert "delta=1e-09, rows_per_person=4, 1 drawn" in repr(total)
    assert (4, [0.2]) == (data.rows_per_person, [one.epsilon for one in data.budgets])
    total.close()
    assert 0 == main(["ledger", "show", str(path)])
    assert "epsilon 0.2, delta 0 alone, of a person with 4 rows" in capsys.readouterr().out


def test_a_session_s_ledger_tells_of_whom_its_budget_is(path, capsys):
    ic.OnlineIC(table(), WHOLE, rows_per_person=3, hard_answers=3, ledger=path, table=LABEL).close()

    assert 3 == audit.summarised(read(path)).rows_per_person
    assert 0 == main(["ledger", "show", str(path)])
    assert "budget    epsilon 1, delta 1e-09, of a person with 3 rows" in capsys.readouterr().out
    assert 0 == main(["ledger", "show", "--json", str(path)])
    assert 3 == json.loads(capsys.readouterr().out)["rows_per_person"]


def test_a_ledger_of_a_domain_whose_names_are_not_sorted_is_resumed(path):
    """A canonical text sorts keys, but the order of attributes says which axis of the counts is which."""
    domain = ic.Domain.of(b=6, a=4, c=["x", "y", "z"])
    data = table(domain=domain)
    session = ic.OnlineIC(data, WHOLE, ledger=path, table=LABEL)
    told = [session.answer(ic.where(b=code)).value for code in range(6)]
    cells = session.hypothesis.probabilities()
    session.close()
    again = ic.OnlineIC.resume(path, table(domain=domain))

    assert told == [again.answer(ic.where(b=code)).value for code in range(6)]
    assert (cells == again.hypothesis.probabilities()).all()
    again.close()
    assert audit.verified(read(path)).whole
    with pytest.raises(LedgerMismatchError, match="domain"):
        ic.OnlineIC.resume(path, table(domain=ic.Domain.of(a=4, b=6, c=["x", "y", "z"])))


def test_budgets_of_persons_with_all_their_rows_add_for_a_person():
    rows, domain = {"id": [1, 1, 2], "a": [0, 1, 1]}, ic.Domain.of(a=2)
    data = ic.PrivateData.from_records(rows, domain, unit=ic.Unit("id"))
    ic.OnlineIC(data, ic.Budget(1.0))

    with pytest.warns(BudgetsAddWarning, match=r"both together cost a person epsilon=2, delta=0\."):
        ic.OnlineIC(data, ic.Budget(1.0))


def test_warnings_name_the_line_that_uses_the_package_so_that_each_table_has_its_own():
    one, other = (ic.PrivateData(np.full((20, 20), 9), ic.Domain.of(a=20, b=20)) for _ in range(2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        one.spend(ic.Budget(1.0))
        other.spend(ic.Budget(1.0))
        ic.OnlineIC(one, ic.Budget(1.0))
        ic.OnlineIC(other, ic.Budget(1.0))  # of the same text
        ic.OnlineIC(ic.PrivateData([9, 9], ic.Domain.of(a=2)), ic.Budget(1.0, 0.5))
        ic.OnlineIC(one, ic.Budget(1.0), max_queries=1).answer_many([ic.where(a=1), ic.where(a=2)])
        ic.OnlineIC.textbook(one, epsilon=1.0)
        ic.Domain.from_json('{"a": {"labels": ["x", "y"], "NOT PRIVATE": true}}')

    kinds = [told.category for told in caught]
    assert 4 == kinds.count(BudgetsAddWarning)
    assert {LargeDeltaWarning, MoreThanAnnouncedWarning, PrivateLabelsWarning, VacuousPromiseWarning} < {
        *kinds
    }
    assert {__file__} == {told.filename for told in caught}
    assert len({told.lineno for told in caught if told.category is BudgetsAddWarning}) == 4
