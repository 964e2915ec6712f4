"""Locks that a forked process finds open: whichever thread held one is not there to let go of it."""

import os
import weakref
from typing import Protocol


class HasLocks(Protocol):
    """What waits for locks of its own."""

    def renew_locks(self) -> None:
        """Replace the locks by open ones: called in a forked process, before anything else runs there."""


def renewed_by_forks(owner: HasLocks) -> None:
    """Renew the locks of this object in every forked process, as long as it lives."""
    _OWNERS.add(owner)


def _in_child() -> None:
    for owner in list(_OWNERS):
        owner.renew_locks()


_OWNERS: weakref.WeakSet[HasLocks] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
