"""Where a ledger may lie: one process at a time, on a drive whose locks and whose durability are known.

What the system refuses leaves this module by name, with the cause that it told and what helps. For a ledger
that has begun no remedy is another file or an older copy: either could spend its budget again.
"""

import contextlib
import errno
import os
import re
import sqlite3
import stat
import sys
from pathlib import Path

from onlineic.errors import InvalidParameterError, LedgerError, LedgerLockedError, LedgerWriteError, shown

# Nobody has tested locks and lost writes there; of file systems in user space the local one is `fuseblk`.
NETWORK = {
    "9p", "afs", "beegfs", "ceph", "cifs", "drvfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
}  # fmt: skip
MOUNTS = "/proc/self/mountinfo"
RIGHTS = (
    "let this user read and write the file, FILE.lock and FILE-journal, where they exist, and its directory"
)
# by the beginning of the name that the system or SQLite has for a failure
REMEDIES = {
    "EACCES": RIGHTS,
    "EPERM": RIGHTS,
    "EROFS": "let its drive be written (onlineic ledger show and verify read it as it is)",
    "ENOSPC": "make room on its drive",
    "EDQUOT": "make room on its drive",
    "EFBIG": "make room on its drive, or raise the limit for the size of files",
    "EMFILE": "close other files, or raise the limit for open ones",
    "ENFILE": "close other files, or raise the limit for open ones",
    "ENAMETOOLONG": "give it a shorter name",
    "ELOOP": "remove the link that leads back to itself",
    "ENOENT": "make its directory first",
    "ENOTDIR": "make its directory first",
    "ENOTSUP": "choose a drive whose files can have two names",
    "EIO": "let somebody look at its drive, which fails",
    "SQLITE_FULL": "make room on its drive",
    "SQLITE_READONLY": RIGHTS,
    "SQLITE_CANTOPEN": RIGHTS,
    "SQLITE_PERM": RIGHTS,
    "SQLITE_IOERR": "make room on its drive; if there is some, let somebody look at the drive, which fails",
    "SQLITE_NOMEM": "free some memory",
}


def failure_of(error: OSError | sqlite3.Error) -> tuple[str, str]:
    """Return the name of what the system or SQLite refused, and what helps; "" where that is not known."""
    if isinstance(error, OSError):
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    else:
        name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    return name, next((remedy for known, remedy in REMEDIES.items() if name.startswith(known)), "")


def unusable(error: OSError | sqlite3.Error, path: str, kind: type[LedgerError] = LedgerError) -> LedgerError:
    """Return what to raise of a ledger that cannot be looked at, or written: its file is as it was."""
    name, remedy = failure_of(error)
    verb = "written" if kind is LedgerWriteError else "opened"
    return kind(
        f"ledger must lie where it can be {verb}, got {name} at {shown(path, 300)}; "
        f"{remedy or 'look the name up, and mend its cause'}. Nothing was spent."
    )


def checked_path(path: str | os.PathLike[str]) -> str:
    """Return the real path of a ledger, if a ledger may lie there.

    Raises:
        InvalidParameterError: If it is no path, on Windows, on a network drive, or in a directory that does
            not exist.
        LedgerError: If the system does not let it be looked at.
    """
    if sys.platform == "win32":
        raise InvalidParameterError(
            "ledger must lie on Linux or macOS, got Windows, whose locks are not tested; use another machine."
        )
    text = _text(path)
    try:
        real = os.path.realpath(text)
    except OSError as error:  # of a relative path in a directory that is gone
        raise unusable(error, text) from None
    folder = os.path.dirname(real)
    held = status(folder)
    if held is None or not stat.S_ISDIR(held.st_mode):
        raise InvalidParameterError(
            f"ledger must lie in a directory, got {shown(folder, 300)}; make it first."
        )
    found = status(real)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise InvalidParameterError(
            f"ledger must be a file, got the directory {shown(real, 300)}; give it a name."
        )
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise InvalidParameterError(
            f"ledger must be a file on a drive, got the device, pipe or socket {shown(real, 300)}; give "
            f"another "
            "path."
        )
    kind = _file_system(folder)
    if kind in NETWORK or (kind.startswith("fuse.") and kind != "fuse.fuseblk"):
        raise InvalidParameterError(
            f"ledger must lie on a local drive, got {shown(real, 200)} on {kind}, where locks and lost "
            f"writes are not "
            "tested; choose a local directory."
        )
    return real


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a file; unless the system tells, none may be made.

    Raises:
        InvalidParameterError: If this is no path.
        LedgerError: If the system does not tell.
    """
    return status(_text(path)) is not None


def status(path: str) -> os.stat_result | None:
    """Return what the system says of the file that has this name now, or None: there is none.

    Raises:
        LedgerError: If it does not say.
    """
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unusable(error, path) from None


def file_at(path: str) -> tuple[int, int] | None:
    """Return device and number of the file that has this name now, or None: there is none.

    Raises:
        LedgerError: As `status`.
    """
    found = status(path)
    return None if found is None else (found.st_dev, found.st_ino)


def check_writable(path: str) -> None:
    """Raise `LedgerWriteError` unless this user may write a file: SQLite would open it to be read alone.

    It is not opened: whoever closes a descriptor of it ends SQLite's locks in this process.
    """
    try:
        if os.access(path, os.R_OK | os.W_OK):
            return
        media = os.statvfs(path).f_flag & os.ST_RDONLY and os.access(path, os.R_OK)
        raise OSError(errno.EROFS if media else errno.EACCES, "")
    except OSError as error:
        raise unusable(error, path, LedgerWriteError) from None


def _text(path: object) -> str:
    """Return a path as text, as the system takes it."""
    try:
        text = os.fspath(path)  # type: ignore[call-overload]
        if isinstance(text, str) and b"\0" not in os.fsencode(text):
            return text
    except (TypeError, UnicodeError):
        pass
    got = shown(path) if isinstance(path, (str, bytes)) else f"a {type(path).__name__}"
    raise InvalidParameterError(
        f"ledger must be the path of a file, as text that the system can write, got {got}; write "
        "ledger='FILE.db'."
    )


def _file_system(folder: str) -> str:
    """Return the type of the file system of a directory, "" where the system does not tell."""
    try:
        lines = Path(MOUNTS).read_bytes().splitlines()
    except OSError:
        return ""
    inside, best, kind = os.fsencode(folder), b"", b""
    for line in lines:
        before, _, after = line.partition(b" - ")
        places, kinds = before.split(), after.split()
        if len(places) < 5 or not kinds:  # no line of a mount
            continue
        # blanks, line ends and backslashes stand there as three octal digits, all else as its bytes
        point = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8) & 255]), places[4])
        within = inside == point or inside.startswith(point.rstrip(b"/") + b"/")
        if within and len(point) >= len(best):  # of two mounts at one place the later one is seen
            best, kind = point, kinds[0]
    return os.fsdecode(kind)


def lock(path: str) -> int:
    """Return the descriptor of a lock on PATH.lock, held until it is closed.

    It is a file of its own: a lock on the ledger itself would end as soon as anything in this process closes
    another descriptor of it.

    Raises:
        LedgerLockedError: If somebody has it, in this process or another.
        LedgerWriteError: If there is no lock file, and none can be made.
        InvalidParameterError: If nothing can be locked there.
    """
    try:
        import fcntl  # not everywhere
    except ImportError:
        raise InvalidParameterError(
            "ledger must lie on a system whose files can be locked, got a Python without fcntl; use another."
        ) from None
    status(path + ".new-journal")  # the longest name that a file beside it gets: SQLite would not tell why
    try:
        held = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(error, path + ".lock", LedgerWriteError) from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        unlock(held)
        raise LedgerLockedError(locked(path)) from None
    except OSError as error:
        unlock(held)
        raise InvalidParameterError(
            f"ledger must lie on a drive whose files can be locked, got {failure_of(error)[0]} at "
            f"{shown(path, 300)}; choose a local directory, and move there, without a copy, what has begun."
        ) from None
    except BaseException:
        unlock(held)
        raise
    return held


def lock_to_read(path: str) -> int | None:
    """Return the descriptor of a lock that readers share, None where there is no lock file that can be had.

    Nothing is made or written. Without it SQLite's own lock is asked, which a session holds too.

    Raises:
        LedgerLockedError: If a session has the ledger.
    """
    try:
        import fcntl  # not everywhere

        held = os.open(path + ".lock", os.O_RDONLY | os.O_CLOEXEC)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        unlock(held)
        raise LedgerLockedError(locked(path)) from None
    except OSError:
        unlock(held)
        return None
    except BaseException:
        unlock(held)
        raise
    return held


def locked(path: str) -> str:
    """Return the message about a ledger that is open elsewhere."""
    return (
        f"ledger must be used by one session at a time, got {shown(path, 300)}, which is open or being read; "
        "close that session, in this process or another."
    )


def unlock(held: int | None) -> None:
    """Release a lock; an error of closing it does not matter."""
    if held is not None:
        with contextlib.suppress(OSError):
            os.close(held)


def sync_folder(path: str) -> None:
    """Make the entry of a file in its directory durable."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove(*paths: str) -> None:
    """Remove files that may be there."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
