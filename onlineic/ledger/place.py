"""Where a ledger may lie: one process at a time, on a drive whose locks and whose durability are known."""

import os
import sys
from pathlib import Path

from onlineic.errors import (
    InvalidParameterError,
    LedgerLockedError,
    shown,
)

# Nobody has tested locks and lost writes there; of file systems in user space the local one is `fuseblk`.
NETWORK = {
    "9p", "afs", "beegfs", "ceph", "cifs", "drvfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
}  # fmt: skip
MOUNTS = "/proc/self/mountinfo"


def checked_path(path: str | os.PathLike[str]) -> str:
    """Return the real path of a ledger, if a ledger may lie there.

    Raises
    ------
    InvalidParameterError
        On Windows, on a network drive, or in a directory that does not exist.
    """
    if sys.platform == "win32":
        raise InvalidParameterError(
            "ledger must lie on Linux or macOS, got Windows, whose locks are not tested; use another machine."
        )
    real = os.path.realpath(os.fspath(path))
    folder = os.path.dirname(real)
    if not os.path.isdir(folder):
        raise InvalidParameterError(
            f"ledger must lie in a directory, got {shown(folder, 200)}; make it first."
        )
    if os.path.isdir(real):
        raise InvalidParameterError(
            f"ledger must be a file, got the directory {shown(real, 200)}; give it a name."
        )
    kind = _file_system(folder)
    if kind in NETWORK or (kind.startswith("fuse.") and kind != "fuse.fuseblk"):
        raise InvalidParameterError(
            f"ledger must lie on a local drive, got {shown(real, 200)} on {kind}, where locks and lost "
            f"writes are not "
            "tested; choose a local directory."
        )
    return real


def _file_system(folder: str) -> str:
    """Return the type of the file system of a directory, "" where the system does not tell."""
    try:
        lines = Path(MOUNTS).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode("ascii", "surrogateescape").decode("unicode_escape")
        inside = folder == point or folder.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # of two mounts at one place the later one is seen
            best, kind = point, after.split()[0]
    return kind


def lock(path: str) -> int:
    """Return the descriptor of a lock on PATH.lock, held until it is closed.

    It is a file of its own: a lock on the ledger itself would end as soon as anything in this process closes
    another descriptor of it.

    Raises
    ------
    LedgerLockedError
        If somebody has it, in this process or another.
    """
    import fcntl  # not on Windows

    held = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise LedgerLockedError(
            f"ledger must be used by one session at a time, got {shown(path, 200)}, which is open; close "
            f"that session, "
            "in this process or another."
        ) from None
    return held


def file_at(path: str) -> tuple[int, int] | None:
    """Return device and number of the file that has this name now, or None: there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def sync_folder(path: str) -> None:
    """Make the entry of a file in its directory durable."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
