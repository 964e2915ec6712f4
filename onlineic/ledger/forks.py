"""Forked processes: locks that they find open, whoever held them, and how one is told from its parent."""

import os
import weakref
from typing import Protocol


class HasLocks(Protocol):
    """An object with locks of its own."""

    def renew_locks(self) -> None:
        """Replace the locks by open ones: called in a forked process, before anything else runs there."""


def renewed_by_forks(owner: HasLocks) -> None:
    """Renew the locks of this object in every forked process, as long as it lives."""
    _OWNERS.add(owner)


def this_process() -> tuple[int, int]:
    """Return what identifies this process among those that it was forked from, and that are forked from it.

    A process id alone does not: that of a process that has ended is given to another one, and every container
    begins at 1.
    """
    return os.getpid(), len(_FORKS)


def _in_child() -> None:
    _FORKS.append(True)
    for owner in list(_OWNERS):
        owner.renew_locks()


_FORKS: list[bool] = []  # between this process and the first that imported this
_OWNERS: weakref.WeakSet[HasLocks] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
