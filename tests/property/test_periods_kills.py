"""A table that grows whose process is killed by signal 9: no answer is lost or changed, and none paid twice.

Six kills in the suite, sixty by `-m kills` or `make kills`; ONLINEIC_KILLS=1000 for more. The points lie
before and behind the writes of the root and of the sessions, between the two, and behind the read of a table.
"""

import os

import numpy as np
import pytest

import onlineic as ic
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.ledger import BoughtTables, CountPaid, Forfeited, Hard, SqliteLedger, read
from onlineic.periods import Periods, book_of
from onlineic.periods import periods as module
from support.ledgers import in_a_process, killed_at, quick_folder

pytestmark = [
    pytest.mark.filterwarnings("ignore::onlineic.errors.WideBoundWarning"),
    pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning"),
]
KILLS = int(os.environ.get("ONLINEIC_KILLS", "60"))
DOMAIN = ic.Domain.of(a=6, b=5)
LABELS = tuple(f"2026-{month:02}" for month in range(1, 7))
# what is called, before or behind it, and at which call
POINTS = (
    (module, "NodeOpened", False, 1),  # the session is there, and the root does not know it
    (SqliteLedger, "commit", False, 1),
    (SqliteLedger, "commit", True, 1),
    (PrivateData, "exact_counts", True, 2),
    (SqliteLedger, "reserve", True, 2),
    (SqliteLedger, "commit", True, 6),
    (SqliteLedger, "commit", False, 9),
)


PUBLIC, PRIVATE = {}, {"neighbours": "add-remove", "n_at_most": 10**6}


def opened(path, near):
    def load(label):
        draw = np.random.default_rng(LABELS.index(label))
        counts = draw.multinomial(20_000, draw.dirichlet(np.full(DOMAIN.size, 0.2)))
        return PrivateData(counts, DOMAIN, **near)

    wish = {"levels": ("month", "quarter"), "max_queries": 100, "durability": "all", **near}
    return Periods(path, DOMAIN, ic.Budget(4.0, 1e-6), table="t", load=load, **wish), load


def question(number):
    low, wide = number % 5, 1 + number % 3
    return ic.where(a=ic.between(low, min(5, low + wide)), b=number % 4)


def killed_round(path, number, near):
    """One process that adds, closes and asks until it is killed; what it told before, and whether it was."""
    owner, name, after, occurrence = POINTS[number % len(POINTS)]

    def act(tell):
        killed_at(owner, name, occurrence, after=after)
        held, load = opened(path, near)
        with held:
            if len(held.blocks) < min(len(LABELS), number + 1):
                due = LABELS[len(held.blocks)]
                held.add(due, load(due))
                tell("added", due)
            for quarter, last in (("2026-Q1", LABELS[2]), ("2026-Q2", LABELS[5])):
                if last in held.blocks and quarter not in held.nodes:
                    held.close(quarter)
                    tell("added", quarter)
            for asked in range(3 * number, 3 * number + 3):
                for label in held.nodes:
                    answer = held[label].answer(question(asked))
                    tell("answer", label, asked, answer.status, answer.value)
                held.over().answer(question(asked))

    return in_a_process(act)


def check(path, told, near):
    """What was told stands in the files, is told again as it was, and every file holds."""
    with opened(path, near)[0] as held:
        for kind, label, *rest in told:
            assert label in held.nodes
            if kind == "answer" and rest[1] != "untested":
                again = held[label].answer(question(rest[0]))
                assert (again.status in ("repeat", "easy"), again.value) == (True, rest[2])
    _, book = book_of(read(path))
    draws = dict.fromkeys([*book.blocks, LABELS[min(len(book.blocks), len(LABELS) - 1)]], 0)
    written = read(path)
    for record in written.records(written.domain())[0]:
        if isinstance(record, CountPaid):
            draws[record.label] += record.charge.amount
    for label, node in book.nodes.items():
        written = read(path.parent / f"{path.name}.nodes" / f"{label}.db")
        records, _ = written.records(written.domain())
        paid = [one for one in records if isinstance(one, Hard | BoughtTables | Forfeited)]
        keys = []
        for one in paid:
            keys = [] if isinstance(one, BoughtTables) else keys
            if isinstance(one, Hard):
                assert one.query.key not in keys  # between two purchases nothing is measured twice
                keys.append(one.query.key)
        assert () == verified(written).problems
        assert sum(one.charge.amount for one in paid) <= node.charge.amount
        for block in node.blocks:
            draws[block] += node.charge.amount
    assert all(drawn <= book.account.whole.capacity for drawn in draws.values())
    known = {f"{label}.db" for label in book.nodes}
    beside = {one.name for one in (path.parent / f"{path.name}.nodes").glob("*.db")}
    assert len(beside - known) <= 1  # of a session that released nothing, and is made anew


def kill(rounds, near):
    with quick_folder() as folder:
        path, told, kills = folder / "t.db", [], 0
        for number in range(rounds):
            found, signal = killed_round(path, number, near)
            told += found
            kills += bool(signal)
            if path.exists():
                check(path, found, near)
        check(path, told, near)
        return kills


@pytest.mark.slow
def test_six_kills_lose_and_change_no_answer():
    assert kill(7, PUBLIC) >= 6


@pytest.mark.kills
def test_many_kills_of_a_table_that_grows_lose_and_change_no_answer(record_testsuite_property):
    done, near = 0, PRIVATE
    while done < KILLS:
        done += kill(2 * len(POINTS), near)
        near = PUBLIC if near is PRIVATE else PRIVATE
    record_testsuite_property("kills_of_periods", f"{done} of tables that grow")
