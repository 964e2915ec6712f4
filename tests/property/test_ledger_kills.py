"""Processes that are killed with signal 9, at every point of an answer: nothing paid is lost or paid twice.

Sixty kills by default; ONLINEIC_KILLS=1000 makes it a thousand (about two minutes).
"""

import itertools
import os
import random
import time

import pytest

from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.errors import LedgerLockedError
from onlineic.ledger import (
    BoughtTables,
    Easy,
    EasyBatch,
    Forfeited,
    Hard,
    Reserved,
    Resumed,
    SqliteLedger,
    read,
)
from onlineic.session.answers import AnswerBook
from onlineic.session.core import Core
from onlineic.sparse import ExponentialSparse, GumbelSparse, LaplaceSparse, NumericSparse
from support.ledgers import MECHANISMS, in_a_process, killed_at, opened, queries, quick_folder, resumed
from support.sessions import all_spent

SPARSE = {"exponential": ExponentialSparse, "laplace": LaplaceSparse}
KILLS = int(os.environ.get("ONLINEIC_KILLS", "60"))
# before and behind the write that reserves, the read, the draw, the write of the hit, and the update
POINTS = [
    (SqliteLedger, "_store", False),
    (SqliteLedger, "_store", True),
    (Core, "test", False),
    (PrivateData, "exact_counts", True),
    (NumericSparse, "measure", True),
    (SqliteLedger, "commit", True),
    (AnswerBook, "_hard", True),
]


def asked_of(round_number):
    return queries(25, seed=100 + round_number)


def killed_round(path, kind, durability, round_number, point):
    """One process that answers until it is killed; what it told before."""

    def act(tell):
        sparse = SPARSE.get(kind, GumbelSparse)
        test, step = Core.test, sparse.step

        def tested(*arguments):
            tell("read")
            test(*arguments)

        def stepped(*arguments):
            state, hit = step(*arguments)
            if hit is not None:
                tell("hit")  # known to the process, and to nobody else
            return state, hit

        Core.test, sparse.step = tested, stepped
        owner, name, after = point
        owner = sparse if owner is NumericSparse else owner
        killed_at(owner, name, 2 + round_number % 5, after=after)
        session = opened(path, kind, durability=durability)
        for number, query in enumerate(asked_of(round_number)):
            answer = session.answer(query)
            tell("answer", number, answer.status, answer.value)
        session.close()

    return in_a_process(act)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("durability", ["hits", "all"])
def test_whatever_a_killed_process_told_is_in_its_ledger_and_paid_once(kind, durability):
    rounds = max(1, KILLS // (2 * len(MECHANISMS)))
    for start in range(0, rounds, len(POINTS)):  # a ledger for each round of all points, before it is spent
        with quick_folder() as folder:
            path = folder / "census.db"
            kills = sum(
                killed(path, kind, durability, number) for number in range(start, start + len(POINTS))
            )
            report = verified(read(path))

            assert report.problems == ()
            assert kills >= 2  # a point may be passed less often than it is waited for
            assert report.resumed >= len(POINTS) - 2


def killed(path, kind, durability, number):
    """One process killed, and its ledger held against what it had told; whether it was killed."""
    told, signal = killed_round(path, kind, durability, number, POINTS[number % len(POINTS)])
    if not path.exists():
        return True
    ledger = SqliteLedger.open(path)
    standing, recorded, before = ledger.reserved, ledger.records(), ledger.account.spent
    ledger.release()
    begun = max((at for at, one in enumerate(recorded) if isinstance(one, Resumed)), default=-1)
    ours = recorded[begun + 1 :]
    answered = [one for one in ours if isinstance(one, Easy | EasyBatch | Hard)]
    tested = sum(len(one) if isinstance(one, EasyBatch) else 1 for one in answered)
    reads = sum(one[0] == "read" for one in told)
    hits = sum(one[0] == "hit" for one in told)

    assert not reads or any(isinstance(one, Reserved) for one in ours)
    # a hit that is known to the dead process alone is paid by what stands reserved
    assert hits <= sum(isinstance(one, Hard) for one in ours) + (standing is not None)
    assert durability == "hits" or reads <= tested + 1
    assert signal or standing is None

    session = opened(path, kind, durability=durability)
    paid = sum(
        one.charge.amount for one in session.transcript if isinstance(one, Hard | BoughtTables | Forfeited)
    )
    assert paid == session.account.spent >= before + (standing.amount if standing else 0)
    for one in told:
        if one[0] == "answer" and one[2] != "untested" and (one[2] == "hard" or durability == "all"):
            again = session.answer(asked_of(number)[one[1]])
            assert (again.status in ("repeat", "easy"), again.value) == (True, one[3])
    session.close()
    return bool(signal)


@pytest.mark.slow
def test_processes_that_are_killed_at_any_moment_lose_nothing():
    """The moment is chosen by the clock: no promise depends on where it falls."""
    delays = random.Random(7)
    rounds = max(4, KILLS // 10)
    with quick_folder() as folder:
        path, spent = folder / "census.db", 0
        for _ in range(rounds):
            reader, writer = os.pipe()
            child = os.fork()
            if not child:
                try:
                    os.close(reader)
                    session = opened(path, "gumbel")
                    for at in itertools.count():
                        for query in queries(25, seed=300 + at):
                            answer = session.answer(query)
                            os.write(writer, b"h" if answer.hard else b".")
                finally:
                    os._exit(1)
            os.close(writer)
            os.read(reader, 1)  # it is open
            time.sleep(delays.random() * 0.03)
            os.kill(child, 9)
            os.waitpid(child, 0)
            with os.fdopen(reader, "rb") as file:
                told = file.read()
            session = opened(path, "gumbel")
            hard = [one for one in session.transcript if isinstance(one, Hard)]
            paid = session.account.spent

            assert paid >= spent
            assert told.count(b"h") <= len(hard)
            session.close()
            spent = all_spent(session)
        assert verified(read(path)).problems == ()


@pytest.mark.slow
def test_of_two_processes_that_open_a_ledger_one_is_refused():
    with quick_folder() as folder:
        path = folder / "census.db"
        session = opened(path)

        def act(tell):
            for attempt in (opened, resumed):
                try:
                    attempt(path)
                except LedgerLockedError:
                    tell("refused")

        told, _ = in_a_process(act)
        path.read_bytes()  # closes a descriptor of the file, which would end a lock on the file itself
        again, _ = in_a_process(act)

        assert [("refused",)] * 2 == told == again
        assert session.answer(queries(1)[0]).status in ("easy", "hard")
        session.close()
