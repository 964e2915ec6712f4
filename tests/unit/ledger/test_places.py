"""Where a ledger may lie, and what is said where the system refuses: the true cause, and no second budget."""

import errno
import os
import re
import shutil
import sys
from fractions import Fraction

import pytest

import onlineic as ic
from onlineic.accounting import Charge, Filter
from onlineic.cli import main
from onlineic.errors import (
    InvalidParameterError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerWriteError,
)
from onlineic.ledger import SqliteLedger, TableBudget, read
from onlineic.ledger import place as place_module
from onlineic.ledger.lines import chained
from onlineic.ledger.settings import beginning_of
from support.failures import reached_by
from support.ledgers import in_a_process, quick_folder

DOMAIN = ic.Domain.of(a=4)
COST = Charge(Fraction(1, 7), "a hit")
NOBODY = 65534
SPENDS_AGAIN = ("backup", "restore", "copy", "another file", "leave the ledger out", "close that session")


@pytest.fixture
def path():
    with quick_folder() as folder:
        folder.chmod(0o755)
        yield folder / "census.db"


def made(path):
    beginning = beginning_of(
        created="2026-11-22T12:00:00+00:00", version="0", table="census", domain=DOMAIN, n=10,
        account=Filter(Fraction(1)), settings={}, plan={},
    )  # fmt: skip
    ledger = SqliteLedger.create(path, beginning)
    ledger.claim("me", Filter(Fraction(1)))
    return ledger


def closed(path):
    ledger = made(path)
    ledger.reserve(COST)
    ledger.release()
    return path


def total(path):
    return TableBudget(ic.Budget(1.0), ledger=path, table="census")


def told(act, *arguments):
    error = reached_by(act, *arguments)
    return (type(error).__name__, str(error)) if error is not None else ("", "")


def as_nobody(act):
    """What a user without rights is told, as (name of the error, message)."""

    def acting(tell):
        if os.getuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        tell(*told(act))

    return in_a_process(acting)[0][0]


def given_away(*paths):
    """Let the user without rights own what it may not read."""
    if os.getuid() == 0:
        for path in paths:
            os.chown(path, NOBODY, NOBODY)


# ---------------------------------------------------------------- mounts


@pytest.mark.parametrize("name", ["Zürich", "mé 漢", "a\tb", "back\\slash", "\udcff"])
def test_a_mount_with_any_name_hinders_no_ledger_and_is_known_again(name, path, monkeypatch, tmp_path):
    written = os.fsencode(name)
    for byte in b"\\ \t\n":
        written = written.replace(bytes([byte]), rb"\%03o" % byte)
    inside = path.parent / name
    inside.mkdir()
    lines = [
        b"1 0 0:1 / / rw - ext4 a rw",
        b"no line of a mount",
        b"2 1 0:2 / " + os.fsencode(path.parent) + b"/" + written + b" rw - nfs4 b rw",
    ]
    (tmp_path / "mounts").write_bytes(b"\n".join(lines))
    monkeypatch.setattr(place_module, "MOUNTS", str(tmp_path / "mounts"))

    made(path).release()
    with pytest.raises(InvalidParameterError, match=r"local drive, got .* on nfs4"):
        made(inside / "census.db")


# ---------------------------------------------------------------- paths

DOORS = [made, SqliteLedger.open, read, total]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a\0b", "as text that the system can write"),
        ("\ud800", "as text that the system can write"),
        (b"census.db", "as text that the system can write"),
        (3, "got a int"),
        (None, "got a NoneType|without a ledger file"),
        ("x" * 300, "ENAMETOOLONG at .* shorter name"),
        ("gone/census.db", "must lie in a directory"),
        ("folder", "got the directory"),
        ("pipe", "got the device, pipe or socket"),
        ("loop", "ELOOP at .* link that leads back to itself"),
        ("/dev/null", "got the device, pipe or socket"),
    ],
)
def test_what_is_no_place_for_a_ledger_is_refused_by_name_at_every_door(door, name, words, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    (path.parent / "folder").mkdir()
    os.mkfifo(path.parent / "pipe")
    os.symlink("loop", path.parent / "loop")
    before = sorted(os.listdir(path.parent))
    with pytest.raises((InvalidParameterError, LedgerError), match=words):
        door(name)
    assert before == sorted(os.listdir(path.parent))


@pytest.mark.parametrize("length", [244, 248, 251, 255])
def test_a_name_to_which_nothing_can_be_added_is_too_long(length, path):
    with pytest.raises(LedgerError, match="ENAMETOOLONG"):
        made(path.with_name("x" * length))
    assert [] == os.listdir(path.parent)


def test_a_relative_path_in_a_directory_that_is_gone_is_refused_by_name(path):
    def act():
        gone = path.parent / "gone"
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()
        made("census.db")

    kind, message = in_a_process(lambda tell: tell(*told(act)))[0][0]
    assert ("LedgerError", True) == (kind, "ENOENT at 'census.db'" in message)


# ---------------------------------------------------------------- locks


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EIO])
@pytest.mark.parametrize("door", [made, SqliteLedger.open, total])
def test_a_drive_without_locks_is_not_told_as_an_open_session(number, door, path, monkeypatch):
    if door == SqliteLedger.open:
        closed(path)

    def refusing(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr("fcntl.flock", refusing)
        with pytest.raises(InvalidParameterError, match=f"can be locked, got {errno.errorcode[number]}"):
            door(path)
        if door == SqliteLedger.open:
            assert 2 == len(read(path).lines)  # a reader needs none
    if door == SqliteLedger.open:
        door(path).release()


def test_without_fcntl_no_ledger_is_written_and_every_one_is_read(path, monkeypatch):
    closed(path)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(InvalidParameterError, match="Python without fcntl"):
        SqliteLedger.open(path)
    assert 2 == len(read(path).lines)


# ---------------------------------------------------------------- reading


def test_a_reader_makes_no_file_and_needs_none(path):
    closed(path)
    for beside in (".lock", "-journal"):
        os.unlink(f"{path}{beside}")
    assert 2 == len(read(path).lines)
    assert ["census.db"] == os.listdir(path.parent)


def test_two_readers_do_not_hinder_each_other(path, monkeypatch):
    closed(path)
    inner = []

    def reading_too(*arguments):
        monkeypatch.setattr("onlineic.ledger.sqlite.chained", chained)
        inner.append(len(read(path).lines))
        return chained(*arguments)

    monkeypatch.setattr("onlineic.ledger.sqlite.chained", reading_too)
    assert (2, [2]) == (len(read(path).lines), inner)


@pytest.mark.parametrize("lost", [False, True])
def test_what_a_session_has_open_is_not_read_even_if_its_lock_file_is_gone(lost, path):
    ledger = made(path)
    if lost:
        os.unlink(f"{path}.lock")
    with pytest.raises(LedgerLockedError, match="open or being read; close that session"):
        read(path)
    ledger.reserve(COST)
    ledger.release()
    assert 2 == len(read(path).lines)


# ---------------------------------------------------------------- rights


def test_a_folder_and_files_that_may_not_be_written_can_be_read_shown_verified_and_exported(path, capfd):
    session = path.with_name("session.db")
    data = ic.PrivateData([50, 20, 20, 10], DOMAIN)
    ic.OnlineIC(
        data, ic.Budget(1.0), hard_answers=1, threshold=0.3, sparse="laplace", ledger=session, table="t"
    ).close()
    total(closed(path).with_name("total.db")).close()
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)
    before = sorted(os.listdir(path.parent))

    def act():
        assert 2 == len(read(path).lines)
        for command in ("show", "verify", "export"):
            assert 0 == main(["ledger", command, str(session)])
            assert 0 == main(["ledger", command, str(path.with_name("total.db"))])

    act()  # loads the modules, which nobody may have no right to read
    capfd.readouterr()
    try:
        assert ("", "") == as_nobody(act)
        assert before == sorted(os.listdir(path.parent))
    finally:
        path.parent.chmod(0o755)
    assert "holds     chain, charges, prices and releases" in capfd.readouterr().out


MODES = [  # of the file, its lock and the folder; what cannot be read is named; whether it can be read
    (0o000, 0o600, 0o755, "EACCES at '.*census.db'", False),
    (0o444, 0o600, 0o755, "EACCES at '.*census.db'", True),
    (0o600, 0o000, 0o755, "EACCES at '.*census.db.lock'", True),
    (0o600, None, 0o555, "EACCES at '.*census.db.lock'", True),
    (0o600, 0o600, 0o000, "EACCES at '.*census.db'", False),
]


@pytest.mark.parametrize(("mode", "of_lock", "of_folder", "words", "readable"), MODES)
def test_where_rights_are_missing_they_are_named_and_no_remedy_can_spend_twice(
    mode, of_lock, of_folder, words, readable, path
):
    lock = path.with_name("census.db.lock")
    given_away(closed(path), lock, path.with_name("census.db-journal"), path.parent)
    path.chmod(mode)
    if of_lock is None:
        lock.unlink()
    else:
        lock.chmod(of_lock)
    path.parent.chmod(of_folder)
    try:
        kind, message = as_nobody(lambda: SqliteLedger.open(path))
        assert kind in ("LedgerError", "LedgerWriteError")
        assert re.search(words, message)
        assert "let this user read and write" in message
        assert not any(word in message for word in SPENDS_AGAIN)
        kind, message = as_nobody(lambda: read(path))
        assert readable is (kind == "")
        assert not any(word in message for word in SPENDS_AGAIN)
    finally:
        path.parent.chmod(0o755)
        path.chmod(0o600)
    SqliteLedger.open(path).release()


def test_a_new_ledger_in_a_folder_without_rights_is_refused_by_name_and_leaves_nothing(path):
    given_away(path.parent)
    path.parent.chmod(0o555)
    try:
        kind, message = as_nobody(lambda: made(path))
    finally:
        path.parent.chmod(0o755)
    assert ("LedgerWriteError", True) == (kind, "EACCES" in message)
    assert [] == os.listdir(path.parent)


def test_media_that_cannot_be_written_are_told_from_missing_rights(path, monkeypatch):
    closed(path)
    media = os.statvfs(path)
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    monkeypatch.setattr(
        os, "statvfs", lambda _: os.statvfs_result([*media[:8], media.f_flag | os.ST_RDONLY, *media[9:]])
    )
    with pytest.raises(LedgerWriteError, match=r"EROFS at .*; let its drive be written"):
        SqliteLedger.open(path)


# ---------------------------------------------------------------- what is left


def test_a_ledger_that_exists_is_never_removed_by_a_creation_that_fails(path):
    closed(path)
    before = path.read_bytes()
    with pytest.raises(LedgerMismatchError, match="which exists"):
        made(path)
    assert before == path.read_bytes()


def test_a_file_that_comes_in_between_is_never_removed(path, monkeypatch):
    link = os.link

    def late(making, real):
        shutil.copy(making, real)  # somebody else's
        link(making, real)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(LedgerWriteError, match="EEXIST"):
        made(path)
    assert path.exists()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(errno.ENOSPC, "")])
def test_a_creation_that_is_stopped_after_its_file_has_its_name_takes_it_back(failure, path, monkeypatch):
    def stopping(_):
        raise failure

    monkeypatch.setattr("onlineic.ledger.sqlite.sync_folder", stopping)
    with pytest.raises((KeyboardInterrupt, LedgerWriteError)):
        made(path)
    assert ["census.db.lock"] == os.listdir(path.parent)
    monkeypatch.undo()
    made(path).release()


def test_an_export_that_fails_leaves_no_part_of_it(path, monkeypatch, tmp_path, capsys):
    closed(path)

    def failing(_):
        yield "{}"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("onlineic.cli.ledger.exported", failing)
    assert 1 == main(["ledger", "export", str(path), "--output", str(tmp_path / "out.jsonl")])
    assert "No space left" in capsys.readouterr().err
    assert [] == os.listdir(tmp_path)


def test_a_file_that_is_not_whole_is_still_told_as_such_and_asks_for_the_receipt(path):
    closed(path)
    content = path.read_bytes()
    for part in (b"", b"no ledger", content[:5000], content[:4096] + bytes(4096) + content[8192:]):
        path.write_bytes(part)
        for door in (SqliteLedger.open, read):
            with pytest.raises(LedgerCorruptError, match="backup, and give its newest receipt"):
                door(path)
