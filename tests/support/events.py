"""Tests wait for what happens, and count what is done: how fast a machine is decides nothing."""

import contextlib
import os
import signal
import sys
import threading

import pytest

from onlineic.data.spent import GATE
from onlineic.errors import ForkedSessionError

FOR_EVER = 300.0  # seconds; what has not happened by then never does, and the test that waits fails


@contextlib.contextmanager
def telling_locks(tell):
    """Reentrant locks that are made in the block, and that of all tables, call `tell` when found closed."""
    make = threading.RLock

    class Telling:
        def __init__(self):
            self._lock = make()

        def acquire(self):
            if not self._lock.acquire(blocking=False):
                tell()
                self._lock.acquire()

        def release(self, *_):
            self._lock.release()

        __enter__, __exit__ = acquire, release

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading, "RLock", Telling)
        GATE.renew_locks()  # it was made when the package was imported
        yield


def in_child(act):
    """Return how a forked process ends: 0 if it is refused as forked; -14 if it would wait for ever."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(round(FOR_EVER))
        try:
            act()
        except ForkedSessionError:
            os._exit(0)
        except BaseException:
            os._exit(2)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def calls_in(act):
    """How many functions are called and left in an act."""
    count, before = 0, sys.getprofile()

    def counted(*_):
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count
