"""An older copy of a session's file, put back under the total of its table, is refused by name.

What the total knows may lag behind the file, and never leads: processes are killed with signal 9 before and
behind every write of both, and neither is the file locked out, nor does a copy pay again for what was read.
"""

import os
import shutil

import pytest

import onlineic as ic
from onlineic.audit import total_report, verified
from onlineic.cli import main
from onlineic.errors import LedgerCorruptError, LedgerError, LedgerRollbackError, LedgerWriteError
from onlineic.ledger import Hard, Noted, Resumed, SqliteLedger, TableBudget, read
from onlineic.ledger.lines import canonical_text, chained
from onlineic.ledger.total import drawn_problems, total_of
from support.ledgers import LABEL, in_a_process, killed_at, queries, quick_folder, table, with_ledger

WHOLE, ASKED = ic.Budget(1.0, 1e-6), queries(30, seed=11)


@pytest.fixture
def folder():
    with quick_folder() as made:
        yield made


def total_in(folder, **more):
    return TableBudget(WHOLE, ledger=folder / "total.db", table=LABEL, **more)


def attached(total):
    data = table()
    data.draw_on(total)
    return data


def opened(total, data, file):
    settings = {"hard_answers": 24, "threshold": 0.001, "release": "answer", "sparse": "gumbel"}
    return ic.OnlineIC(data, total.share(0.5), ledger=file, table=LABEL, **settings)


def a_run(folder, asked=ASKED[:3], tell=lambda *_: None, closed=True):
    """Go on with the session, or begin it, and close it; what was read is told."""
    with total_in(folder) as total:
        data = attached(total)
        session, ledger = with_ledger(opened, total, data, folder / "session.db")
        for query in asked:
            session.answer(query)
            tell("read", data.reads)
        if not closed:
            ledger.release()
            return
        session.close()


def put_back(folder, copy):
    """What comes of a copy in the place of the file, in a folder of its own: the error, or None."""
    with quick_folder() as other:
        for name in ("total.db", "session.db"):
            if (folder / name).exists():
                shutil.copy(folder / name, other / name)
        if copy is not None:
            shutil.copy(copy, other / "session.db")
        before = (other / "session.db").read_bytes() if copy is not None else b""
        with total_in(other) as total:
            data = attached(total)
            try:
                session = opened(total, data, other / "session.db")
            except LedgerError as refused:
                assert before == (other / "session.db").read_bytes()
                assert 0 == data.reads
                return refused
            assert session.answer(ASKED[-1]).status in ("easy", "hard", "repeat")
            session.close()
        assert total_report(read(other / "total.db")).problems == ()
        assert verified(read(other / "session.db")).problems == ()
        return None


def copied(folder, name="copy.db"):
    return shutil.copy(folder / "session.db", folder / name)


@pytest.mark.parametrize("closed", [True, False])
def test_a_copy_that_was_made_between_two_runs_is_refused_behind_the_next_one(folder, closed):
    """However that one ended: the total has its beginning before it reads."""
    a_run(folder)
    copy = copied(folder)
    assert put_back(folder, copy) is None  # nothing was spent since
    a_run(folder, ASKED[3:6], closed=closed)
    refused = put_back(folder, copy)

    assert isinstance(refused, LedgerRollbackError)
    assert "older copy" in str(refused)
    assert put_back(folder, None) is None


def test_of_a_file_and_its_copy_the_one_that_goes_on_first_is_the_session(folder):
    a_run(folder)
    copy = copied(folder)
    last = copied(folder, "last.db")
    os.replace(copy, folder / "session.db")
    a_run(folder, ASKED[3:4])

    assert isinstance(put_back(folder, last), LedgerRollbackError)


def test_a_total_in_memory_knows_its_sessions_as_long_as_it_lives(folder):
    total, file = TableBudget(WHOLE), folder / "session.db"
    data = attached(total)
    opened(total, data, file).close()
    copy = copied(folder)
    with opened(total, data, file) as session:
        session.answer(ASKED[0])
    reads = data.reads
    for load in (data, attached(total)):
        with pytest.raises(LedgerRollbackError):
            ic.OnlineIC.resume(copy, load)
    assert reads == data.reads
    ic.OnlineIC.resume(file, data).close()
    assert 1 == len(total.drawn)


def test_a_copy_of_a_file_in_use_is_refused_once_the_total_was_written_or_the_file_went_on(folder):
    """The one that is not: made while the run was open that was killed, with nothing written behind it."""

    def act(draws):
        total, first = total_in(folder), 10 * draws
        data = attached(total)
        session = opened(total, data, folder / "session.db")
        for query in ASKED[first : first + 3]:
            session.answer(query)
        copied(folder, "before.db")
        for query in ASKED[first + 3 : first + 9]:
            session.answer(query)
        if draws:
            ic.offline.median(data, "a", epsilon=0.01)
        copied(folder, "after.db")
        session.answer(ASKED[first + 9])
        os.kill(os.getpid(), 9)

    in_a_process(lambda _: act(False))
    assert put_back(folder, folder / "before.db") is None
    a_run(folder, ())
    assert isinstance(put_back(folder, folder / "before.db"), LedgerRollbackError)
    in_a_process(lambda _: act(True))
    assert isinstance(put_back(folder, folder / "before.db"), LedgerRollbackError)
    assert put_back(folder, folder / "after.db") is None


def test_what_is_noted_is_shown_verified_and_cannot_go_back(folder, capsys):
    a_run(folder)
    a_run(folder, ASKED[3:5])
    written = read(folder / "total.db")
    report = total_report(written)
    lines = [one.lines for one in report.noted]

    assert () == report.problems
    assert sorted(set(lines)) == lines
    assert 3 == len(lines)  # the end of a run, and beginning and end of the next
    assert 0 == main(["ledger", "show", str(folder / "total.db")])
    assert f"of {lines[-1]} lines" in capsys.readouterr().out
    assert read(folder / "session.db").links[lines[-1] - 1] == report.noted[-1].head


def test_a_total_that_cannot_be_written_keeps_a_session_from_beginning_and_not_from_ending(
    folder, monkeypatch
):
    a_run(folder)
    copy, commit = copied(folder), SqliteLedger.commit

    def full(self, records, payer=None):
        if self.beginning.get("total"):
            raise LedgerWriteError("disk full")
        commit(self, records, payer)

    with total_in(folder) as total:
        data = attached(total)
        monkeypatch.setattr(SqliteLedger, "commit", full)
        with pytest.raises(LedgerWriteError):
            opened(total, data, folder / "session.db")
        assert 0 == data.reads
        monkeypatch.undo()
        session, ledger = with_ledger(opened, total, data, folder / "session.db")
        session.answer(ASKED[3])
        monkeypatch.setattr(SqliteLedger, "commit", full)
        session.close()
        assert not ledger.held
        monkeypatch.undo()
    assert isinstance(put_back(folder, copy), LedgerRollbackError)
    assert put_back(folder, None) is None


# --- killed at every write --------------------------------------------------------------------------------


def killed_run(folder, place, after, forgetful=False, asked=ASKED[4:6]):
    """One process that is killed at a write of the session's or the total's file; how much it had read."""

    def act(tell):
        if forgetful:
            TableBudget.note = lambda *_: None
        killed_at(SqliteLedger, "_store", place, after=after)
        a_run(folder, asked, tell)

    told, signal = in_a_process(act)
    return max((reads for _, reads in told), default=0), signal


def begun(folder, start):
    """Leave the session as it is before the run that is killed."""
    if start == "made":  # and killed before it drew
        killed_run(folder, 1, False)
    elif start == "closed":
        a_run(folder)
    elif start == "killed":
        killed_run(folder, 5, True, asked=ASKED[:3])


def outcomes(start, forgetful=False, places=range(1, 12)):
    """For every write: (reads of the killed process, what comes of its file, of the copy from before)."""
    for place in places:
        for after in (False, True):
            with quick_folder() as folder:
                begun(folder, start)
                copy = copied(folder) if (folder / "session.db").exists() else None
                reads, signal = killed_run(folder, place, after, forgetful)
                if not signal:
                    return
                older = None if copy is None else put_back(folder, copy)
                yield reads, put_back(folder, None), older, copy


@pytest.mark.slow
@pytest.mark.parametrize("apart", [4, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("start", ["none", "made", "closed", "killed"])
def test_at_no_write_does_a_kill_lock_the_file_out_or_let_a_copy_pay_again(start, apart):
    """Or one in so many of them."""
    found = list(outcomes(start, places=range(1, 12, apart)))

    assert len(found) >= 10 // apart
    assert sum(reads > 0 for reads, *_ in found) >= 4 // apart
    for reads, itself, older, copy in found:
        assert itself is None
        assert isinstance(older, LedgerRollbackError) or copy is None or not reads


def test_a_total_that_does_not_note_the_beginning_of_a_run_is_found():
    """Planted: the copy is taken for the session, and pays again for what was read."""
    assert any(reads and older is None for reads, _, older, _ in outcomes("closed", True, range(5, 8)))


def test_a_file_that_was_made_and_never_drew_goes_on_with_a_line_of_its_own(folder):
    begun(folder, "made")
    assert 1 == len(read(folder / "session.db").lines)
    a_run(folder)
    first, *_ = read(folder / "session.db").records(table().domain)[0]
    assert isinstance(first, Resumed)


@pytest.mark.parametrize(
    "change",
    [
        {"lines": 1},
        {"file": "ab" * 32},
        {"file": "x"},
        {"lines": True},
        {"lines": "7"},
        {"head": "00"},
        {"head": None},
    ],
)
def test_a_note_that_nobody_made_is_refused(folder, change):
    a_run(folder)
    written = read(folder / "total.db")
    lines = [dict(line) for line in written.lines]
    lines[-1] |= change
    forged = chained((canonical_text(line), None) for line in lines)
    _, begun = total_of(forged)
    try:
        records, _ = forged.records(forged.domain())
    except LedgerCorruptError:
        return
    assert any(isinstance(one, Noted) for one in records)
    assert drawn_problems(records, begun)


def test_hits_are_what_the_copies_would_pay_for_again(folder):
    a_run(folder, ASKED)
    assert 4 <= sum(isinstance(one, Hard) for one in read(folder / "session.db").records(table().domain)[0])
