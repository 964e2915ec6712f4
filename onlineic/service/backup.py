"""Ledger and users file together: copied also while a server runs, and put back as one or not at all.

A copy is checked whole before it counts, and again before it is put back. It is marked as one, since two live
copies are two budgets: it is not gone on with before it has taken the place of a lost original. What it
cannot tell is that it is old: the total of the table knows, or a receipt that was kept elsewhere.
"""

import contextlib
import datetime
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

from onlineic.errors import InvalidParameterError, LedgerCorruptError, LedgerLockedError, shown
from onlineic.ledger.lines import Receipt
from onlineic.ledger.place import checked_path, exists, lock, sync_folder, unlock
from onlineic.ledger.sqlite import mark_copy, read
from onlineic.ledger.total import last_heard
from onlineic.service.control import asked
from onlineic.service.users import Users

LEDGER, USERS, NOTE = "ledger.db", "users.db", "backup.json"
Path = str | os.PathLike[str]


def back_up(ledger: Path, users: Path, folder: Path) -> Receipt:
    """Copy a ledger and a users file into a new folder, and return the receipt of the ledger.

    Args:
        folder: That is not there yet.

    Raises:
        LedgerError: If the ledger is not whole, or something has it that is no server of this user.
        InvalidParameterError: If the folder is there, the users file is not, or the table grows, whose
            ledgers are several.
    """
    real, target = checked_path(ledger), os.path.abspath(os.fspath(folder))
    with contextlib.closing(Users(users)) as names, _made(target) as made:
        receipt = _copied(real, made(LEDGER))
        names.copy_to(made(USERS))
        written = read(made(LEDGER))
        if str(written.receipt) != receipt:
            raise LedgerCorruptError("ledger must be copied whole, got another copy; make it once more.")
        if written.beginning.get("periods"):
            raise InvalidParameterError(
                "ledger must be that of one session, got the root ledger of periods, which has others beside "
                "it; end the server, and copy the folder of all of them."
            )
        note = {
            "created": datetime.datetime.now(datetime.UTC).isoformat(),
            "table": written.beginning.get("table"),
            "receipt": receipt,
            **{name: _digest(made(name)) for name in (LEDGER, USERS)},
        }
        with open(made(NOTE), "w", encoding="utf-8") as file:
            json.dump(note, file, indent=1)
    return written.receipt


def _copied(real: str, target: str) -> str:
    """Copy a ledger, by itself or by the server that has it, mark the copy, and return the receipt."""
    try:
        written, held = read(real), lock(real)
    except LedgerLockedError:
        return str(asked(real, "copy", path=target)["receipt"])
    try:
        shutil.copyfile(real, target)
        mark_copy(target)
        return str(written.receipt)
    finally:
        unlock(held)


def restore(
    folder: Path, ledger: Path, users: Path, *, total: Path | None = None, receipt: str | None = None
) -> Receipt:
    """Put a ledger and a users file back from a folder, and return the receipt of the ledger.

    Args:
        folder: As `back_up` made it.
        ledger, users: Where nothing is yet.
        total: File of the total of the table: a ledger that went on since is refused.
        receipt: Of any time: a ledger that is older is refused.

    Raises:
        LedgerRollbackError: If the copy is older than the total or the receipt knows.
        LedgerCorruptError, InvalidParameterError: If the copy is not as it was made, or something is there
            already. Nothing was put back.
    """
    source = os.path.abspath(os.fspath(folder))
    note = _noted(source)
    for name in (LEDGER, USERS):
        if _digest(os.path.join(source, name)) != note.get(name):
            raise LedgerCorruptError(
                f"backup must be as it was made, got another {name} at {shown(source, 200)}; take another."
            )
    written = read(os.path.join(source, LEDGER))
    written.check(receipt)
    if total is not None:
        heard = read(total)
        records, _ = heard.records(heard.domain())
        written.check(last_heard(records).get(written.links[0].hex()))
    targets = [checked_path(ledger), os.path.abspath(os.fspath(users))]
    for target in targets:
        if os.path.lexists(target):
            raise InvalidParameterError(
                f"a file must be put back where none is, got one at {shown(target, 200)}; move it away first."
            )
    # the ledger first: beside users alone a server would begin a new one
    for name, target in zip((LEDGER, USERS), targets, strict=True):
        _put(os.path.join(source, name), target)
    return written.receipt


def _noted(folder: str) -> dict[str, Any]:
    try:
        with open(os.path.join(folder, NOTE), encoding="utf-8") as file:
            note = json.load(file)
        if isinstance(note, dict):
            return note
    except (OSError, ValueError):
        pass
    raise InvalidParameterError(
        f"folder must be one that onlineic ledger backup made, got another at {shown(folder, 200)}."
    )


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "missing"


@contextlib.contextmanager
def _made(folder: str) -> Iterator[Any]:
    """Make a folder for the owner alone; what fails inside leaves none."""
    if exists(folder):
        raise InvalidParameterError(f"folder must be new, got one at {shown(folder, 200)}; name another.")
    making = folder + ".new"
    shutil.rmtree(making, ignore_errors=True)  # of a process that died here
    os.mkdir(making, 0o700)
    try:
        yield lambda name: os.path.join(making, name)
        for name in (LEDGER, USERS, NOTE):
            _sync(os.path.join(making, name))
        sync_folder(os.path.join(making, NOTE))
        os.rename(making, folder)
        sync_folder(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def _put(source: str, target: str) -> None:
    """Copy a file to a place where none is, whole or not at all."""
    making = target + ".new"
    try:
        os.close(os.open(making, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        shutil.copyfile(source, making)
        _sync(making)
        os.link(making, target)  # fails where something is, which rename would not
        sync_folder(target)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(making)


def _sync(path: str) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
