"""A lock that other threads wait for, and that the thread inside may not enter again.

A signal's handler, a callback of the garbage collector, a trace function, an update rule or a progress
callback runs in the thread that it comes into. If that thread waited there for a lock of its own, it would
wait for ever; if it were let in, it would find half of a step done.
"""

import threading
from collections.abc import Callable
from typing import TypeVar, final

from onlineic.errors import SessionStateError

T = TypeVar("T")


@final
class NonReentrantLock:
    """One call at a time: other threads wait for it, the thread that is inside is refused.

    Args:
        name: Of what is behind it, for the message.
        inner: Locks that who runs something may enter: the thread must be outside of these, too.
    """

    __slots__ = ("_inner", "_inside", "_lock", "_name")

    def __init__(self, name: str, inner: "tuple[NonReentrantLock, ...]" = ()) -> None:
        self._name, self._inner = name, inner
        self._lock = threading.RLock()  # lets the thread that is inside come as far as its refusal
        self._inside = 0

    def check(self) -> None:
        """Raise `SessionStateError` if the thread that asks is inside: `run` would refuse it."""
        if self._inside == threading.get_ident():
            raise SessionStateError(
                f"{self._name} must be asked one call at a time, got one of a signal's handler or a callback "
                "in the middle of another; nothing was spent on it: ask when the other has returned."
            )

    def run(self, act: Callable[[], T]) -> T:
        """Return what `act` returns, alone.

        A function, no context manager: an interrupt at the exit of a manager would leave the lock closed.

        Raises:
            SessionStateError: If the thread is inside already, or in an inner lock; nothing is run.
        """
        for one in self._inner:  # before it waits: who holds this lock may wait for that one
            if one._inside == threading.get_ident():
                one.check()
        with self._lock:
            if self._inside == threading.get_ident():
                self.check()
            try:
                self._inside = threading.get_ident()
                return act()
            finally:
                self._inside = 0
