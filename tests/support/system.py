"""Calls to the system, SQLite and files, found by a spy and made to fail one at a time."""

import builtins
import errno
import fcntl
import io
import os
import sqlite3
import sys
import types

NEVER_FAIL = {"fspath", "getpid", "register_at_fork"}
BETWEEN = {__name__, "posixpath", "genericpath", "pathlib", "pathlib._local", "contextlib"}
ERRORS = {
    "full": (errno.ENOSPC, "SQLITE_FULL"),
    "no right": (errno.EACCES, "SQLITE_CANTOPEN"),
    "read only": (errno.EROFS, "SQLITE_READONLY"),
    "broken": (errno.EIO, "SQLITE_IOERR_WRITE"),
    "untold": (None, None),
}


class System:
    """Every call that some modules make while it watches, and the failure of one of them.

    `calls` holds their names in order. What is not failed is done. Closing is done even where it fails, as
    the system does it.
    """

    def __init__(self, monkeypatch, *modules):
        self.modules, self.calls, self.place, self.error = modules, [], None, None
        for owner in (os, fcntl):
            for name, function in list(vars(owner).items()):
                if isinstance(function, types.BuiltinFunctionType) and name not in NEVER_FAIL:
                    monkeypatch.setattr(owner, name, self.watched(name, function))
        monkeypatch.setattr(io, "open", self.watched("open", io.open))
        monkeypatch.setattr(builtins, "open", self.watched("open", builtins.open))
        monkeypatch.setattr(io, "FileIO", self.file())
        connect, factory = sqlite3.connect, self.connection()
        connected = self.watched("connect", lambda *given, **more: connect(*given, factory=factory, **more))
        monkeypatch.setattr(sqlite3, "connect", connected)

    def failing(self, place=None, error="full"):
        """Begin to watch anew, and fail the call of this place."""
        self.calls, self.place, self.error = [], place, error

    def called(self, name, act, failure=OSError):
        """Do what was called, or fail."""
        if not self.is_ours(sys._getframe(2)):
            return act()
        self.calls.append(name)
        if self.place != len(self.calls) - 1:
            return act()
        if name == "close":
            act()
        number, word = ERRORS[self.error]
        if failure is OSError:
            raise OSError() if number is None else OSError(number, os.strerror(number))
        planted = failure("planted")
        if word is not None:
            planted.sqlite_errorname = word
        raise planted

    def is_ours(self, frame):
        """Whether the code that called belongs to the modules, seen through the standard library."""
        while frame is not None and frame.f_globals.get("__name__") in BETWEEN:
            frame = frame.f_back
        return frame is not None and frame.f_globals.get("__name__", "").startswith(self.modules)

    def watched(self, name, function, failure=OSError):
        def watching(*given, **more):
            failing = sqlite3.OperationalError if name == "connect" else failure
            return self.called(name, lambda: function(*given, **more), failing)

        return watching

    def file(self):
        system = self

        class File(io.FileIO):
            def __init__(self, *given):
                system.called("FileIO", lambda: super(File, self).__init__(*given))

            def read(self, *given):
                return system.called("read", lambda: super(File, self).read(*given))

            def readinto(self, *given):
                return system.called("readinto", lambda: super(File, self).readinto(*given))

        return File

    def connection(self):
        def method(owner, name):
            def watching(self, *given):
                failure = sqlite3.DatabaseError if system.error == "untold" else sqlite3.OperationalError
                return system.called(name, lambda: getattr(owner, name)(self, *given), failure)

            return watching

        system, made, read = self, sqlite3.Connection, sqlite3.Cursor
        cursor = type("Cursor", (read,), {name: method(read, name) for name in ("fetchone", "fetchall")})
        methods = {
            name: method(made, name)
            for name in ("execute", "executemany", "executescript", "commit", "rollback", "close")
        }
        methods["cursor"] = lambda self: made.cursor(self, cursor)
        return type("Connection", (made,), methods)
