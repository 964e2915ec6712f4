"""Ledger and users file together: copied while nobody has them, put back as they were, never an older one."""

import json
import os
import shutil
import stat

import numpy as np
import pytest

import onlineic as ic
from onlineic.cli import main
from onlineic.errors import (
    InvalidParameterError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerRollbackError,
)
from onlineic.ledger import TableBudget, read
from onlineic.service import Users
from onlineic.service.backup import back_up, restore

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
    with pytest.raises(LedgerRollbackError):  # the total does, before anything is read
        run(folder, {"age": [22, 30]})


def test_a_ledger_that_is_open_is_not_copied(folder):
    with (
        ic.OnlineIC.resume(folder / "a.db", ic.PrivateData(TABLE, DOMAIN), durability="all"),
        pytest.raises(LedgerLockedError),
    ):
        back_up(folder / "a.db", folder / "u.db", folder / "copy")
    assert not (folder / "copy").exists()


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
