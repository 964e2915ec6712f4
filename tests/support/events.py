"""Tests wait for what happens, and never for a time in which it should have happened."""

import contextlib
import threading

import pytest

FOR_EVER = 120.0  # seconds; what has not happened by then never does, and the test that waits fails


@contextlib.contextmanager
def telling_locks(tell):
    """Reentrant locks that are made in the block call `tell` when a thread finds one closed."""
    make = threading.RLock

    class Telling:
        def __init__(self):
            self._lock = make()

        def __enter__(self):
            if not self._lock.acquire(blocking=False):
                tell()
                self._lock.acquire()

        def __exit__(self, *_):
            self._lock.release()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading, "RLock", Telling)
        yield
