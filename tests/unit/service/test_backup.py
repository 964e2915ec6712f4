"""Ledger and users file together: copied while nobody has them, put back as they were, never an older one."""

import json
import os
import shutil
import stat

import numpy as np
import pytest

import onlineic as ic
from onlineic.audit import verified
from onlineic.cli import main
from onlineic.errors import (
    InvalidParameterError,
    LedgerCopyError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerRollbackError,
    SessionStateError,
)
from onlineic.ledger import SqliteLedger, TableBudget, read
from onlineic.service import Users
from onlineic.service.backup import back_up, restore
from onlineic.service.control import asked, heard

DOMAIN = ic.Domain.of(age=range(20, 40), sex=["F", "M"])
TABLE = np.full(DOMAIN.shape, 500)
WHOLE = ic.Budget(1.0, 1e-6)


def run(folder, question, budget=WHOLE):
    """Ask one question of a session on the total of its table, as a server does; close both."""
    with TableBudget(WHOLE, ledger=folder / "total.db", table="t") as total:
        data = ic.PrivateData(TABLE, DOMAIN)
        data.draw_on(total)
        path = folder / "a.db"
        if path.exists():
            session = ic.OnlineIC.resume(path, data, durability="all")
        else:
            session = ic.OnlineIC(data, budget, ledger=path, table="t", durability="all")
        with session:
            return session.answer(question)


@pytest.fixture
def folder(tmp_path):
    """A ledger that has answered, its total, and a users file."""
    users = Users(tmp_path / "u.db", create=True)
    users.add("ann")
    users.close()
    run(tmp_path, {"sex": "F"})
    return tmp_path


def moved(folder):
    for name in ("a.db", "u.db"):
        os.rename(folder / name, folder / f"lost-{name}")


def test_what_is_put_back_goes_on_where_it_was(folder):
    kept = back_up(folder / "a.db", folder / "u.db", folder / "copy")
    moved(folder)
    assert kept == restore(folder / "copy", folder / "a.db", folder / "u.db", total=folder / "total.db")

    with pytest.raises(LedgerCopyError, match="--instead-of"):
        run(folder, {"sex": "F"})
    assert SqliteLedger.take_over(folder / "a.db", folder / "lost-a.db.gone", "1", receipt=kept) is None
    assert "repeat" == run(folder, {"sex": "F"}).status
    assert (
        0o600
        == stat.S_IMODE(os.stat(folder / "u.db").st_mode)
        == stat.S_IMODE(os.stat(folder / "a.db").st_mode)
    )
    assert 0o700 == stat.S_IMODE(os.stat(folder / "copy").st_mode)
    users = Users(folder / "u.db")
    assert ["ann"] == [one.name for one in users.list()]
    users.close()


def test_an_older_copy_is_refused_by_the_total_and_by_a_receipt(folder):
    back_up(folder / "a.db", folder / "u.db", folder / "copy")
    run(folder, {"age": [21, 30]})
    newest = str(read(folder / "a.db").receipt)
    moved(folder)

    with pytest.raises(LedgerRollbackError):
        restore(folder / "copy", folder / "a.db", folder / "u.db", total=folder / "total.db")
    with pytest.raises(LedgerRollbackError):
        restore(folder / "copy", folder / "a.db", folder / "u.db", receipt=newest)
    assert not (folder / "a.db").exists()
    assert not (folder / "u.db").exists()
    restore(folder / "copy", folder / "a.db", folder / "u.db")  # nothing tells here that it is old
    SqliteLedger.take_over(folder / "a.db", folder / "a.db", "1", spent=0.0)
    with pytest.raises(LedgerRollbackError):  # the total does, before anything is read
        run(folder, {"age": [22, 30]})


def test_a_ledger_that_is_open_is_not_copied(folder):
    with (
        ic.OnlineIC.resume(folder / "a.db", ic.PrivateData(TABLE, DOMAIN), durability="all"),
        pytest.raises(LedgerLockedError),
    ):
        back_up(folder / "a.db", folder / "u.db", folder / "copy")
    assert not (folder / "copy").exists()


def opened(path):
    return ic.OnlineIC(ic.PrivateData(TABLE, DOMAIN), WHOLE, ledger=path, table="t", durability="all")


def resumed(path):
    return ic.OnlineIC.resume(path, ic.PrivateData(TABLE, DOMAIN), durability="all")


def served_copy(session):
    return {"copy": lambda sent: {"receipt": str(session.copy_to(sent["path"]))}}


@pytest.fixture
def bare(tmp_path):
    """A users file alone."""
    users = Users(tmp_path / "u.db", create=True)
    users.add("ann")
    users.close()
    return tmp_path


def test_a_copy_is_made_while_a_server_has_the_ledger(bare):
    path = bare / "b.db"
    with opened(path) as session, heard(path, served_copy(session)):
        before = session.answer({"sex": "F"})
        receipt = back_up(path, bare / "u.db", bare / "copy")
        after = session.answer({"age": [21, 30]})
        assert receipt.lines < session.receipt.lines
    report = verified(read(bare / "copy" / "ledger.db"))

    assert report.whole
    assert report.receipt == receipt
    assert 1 == report.easy + report.hard
    os.rename(path, bare / "lost.db")
    restore(bare / "copy", path, bare / "v.db")
    SqliteLedger.take_over(path, path, "1", spent=1.0)
    with resumed(path) as session:  # what the copy holds is a repeat, and nothing more is measured
        assert ("repeat", before.value) == (session.answer({"sex": "F"}).status, before.value)
        assert 0 == session.statistics().hard_left
        assert session.answer({"age": [21, 30]}).status in ("easy", "untested")
    assert after is not None
    assert verified(read(path)).whole


@pytest.mark.parametrize("told", [0.3, 0.6, None])
def test_a_copy_pays_for_what_its_original_can_have_spent(bare, told):
    path = bare / "b.db"
    with opened(path) as session:
        session.answer({"sex": "F"})
        session.copy_to(bare / "c.db")
    held = float(verified(read(bare / "c.db")).spent)

    path.unlink()
    SqliteLedger.take_over(bare / "c.db", path, "1", spent=told)
    report = verified(read(bare / "c.db"))

    assert report.whole
    assert 0 == report.reserved
    assert float(report.spent) >= max(held, 1.0 if told is None else told)
    with pytest.raises(InvalidParameterError, match="no copy"):
        SqliteLedger.take_over(bare / "c.db", path, "1")


def test_a_copy_takes_no_place_while_its_original_is_there(bare):
    with opened(bare / "b.db") as session:
        session.answer({"age": [21, 30]})
        session.copy_to(bare / "c.db")
    with pytest.raises(InvalidParameterError, match="must be lost"):
        SqliteLedger.take_over(bare / "c.db", bare / "b.db", "1")
    with pytest.raises(LedgerCopyError):
        resumed(bare / "c.db")
    with resumed(bare / "b.db") as session:
        session.answer({"sex": "F"})
        newest = session.receipt
    (bare / "b.db").unlink()
    with pytest.raises(LedgerRollbackError):
        SqliteLedger.take_over(bare / "c.db", bare / "b.db", "1", receipt=newest)
    copied = read(bare / "c.db")
    older = f"1:{copied.links[0].hex()}"  # of before the copy: it proves nothing
    with pytest.raises(LedgerRollbackError, match="--spent"):
        SqliteLedger.take_over(bare / "c.db", bare / "b.db", "1", receipt=older)
    shutil.copy(bare / "c.db", bare / "d.db")
    assert SqliteLedger.take_over(bare / "d.db", bare / "b.db", "1", receipt=copied.receipt) is None


def test_a_copy_that_fails_leaves_the_session_and_no_folder(bare):
    path = bare / "b.db"
    with opened(path) as session:
        (bare / "full").write_text("")
        with pytest.raises(LedgerError, match="EEXIST"):
            session.copy_to(bare / "full")
        with heard(path, {}), pytest.raises(SessionStateError):  # a server of another version
            back_up(path, bare / "u.db", bare / "copy")
        assert not list(bare.glob("copy*"))
        (bare / "copy.new").mkdir()  # of a backup that was killed
        with heard(path, served_copy(session)):
            back_up(path, bare / "u.db", bare / "copy")
        session.answer({"sex": "F"})
    with pytest.raises(LedgerLockedError):
        asked(path, "copy", path=str(bare / "other"))
    with ic.OnlineIC(ic.PrivateData(TABLE, DOMAIN), WHOLE) as session, pytest.raises(SessionStateError):
        session.copy_to(bare / "memory")


def test_a_root_ledger_of_periods_is_no_whole_copy(bare):
    ic.Periods(bare / "root.db", DOMAIN, WHOLE, table="t").release()
    with pytest.raises(InvalidParameterError, match="periods"):
        back_up(bare / "root.db", bare / "u.db", bare / "copy")


def test_what_is_there_is_not_written_over(folder):
    back_up(folder / "a.db", folder / "u.db", folder / "copy")
    before = [(folder / name).read_bytes() for name in ("a.db", "u.db")]

    with pytest.raises(InvalidParameterError, match="new"):
        back_up(folder / "a.db", folder / "u.db", folder / "copy")
    with pytest.raises(InvalidParameterError, match="move it away"):
        restore(folder / "copy", folder / "a.db", folder / "u.db")
    assert before == [(folder / name).read_bytes() for name in ("a.db", "u.db")]


@pytest.mark.parametrize("name", ["ledger.db", "users.db", "backup.json"])
@pytest.mark.parametrize("harm", ["cut", "lost"])
def test_a_copy_that_is_not_as_it_was_made_is_refused(folder, name, harm):
    back_up(folder / "a.db", folder / "u.db", folder / "copy")
    moved(folder)
    path = folder / "copy" / name
    if harm == "lost":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-7])

    with pytest.raises((LedgerCorruptError, InvalidParameterError)):
        restore(folder / "copy", folder / "a.db", folder / "u.db")
    assert not (folder / "a.db").exists()
    assert not (folder / "u.db").exists()


def test_a_backup_that_fails_leaves_no_folder(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space"):
        back_up(folder / "a.db", folder / "u.db", folder / "copy")
    assert ["a.db", "a.db.lock", "total.db", "total.db.lock", "u.db"] == sorted(
        name for name in os.listdir(folder) if "journal" not in name
    )
    monkeypatch.undo()
    moved(folder)
    with pytest.raises(LedgerError):
        back_up(folder / "a.db", folder / "lost-u.db", folder / "copy")


def test_the_command_line_makes_copies_and_puts_them_back(folder, capsys):
    files = [str(folder / "a.db"), str(folder / "copy"), "--users", str(folder / "u.db")]
    assert 0 == main(["ledger", "backup", *files])
    receipt = capsys.readouterr().out.split()[-1]
    note = json.loads((folder / "copy" / "backup.json").read_text())
    assert receipt == note["receipt"]
    moved(folder)
    assert 1 == main(["ledger", "restore", *files, "--receipt", "99:" + "ab" * 32])
    assert 0 == main(["ledger", "restore", *files, "--receipt", receipt])
    assert 2 == main(["ledger", "restore", *files])
