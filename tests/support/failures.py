"""Failures that are planted in running code, and what they must not tell."""

import sys
import traceback

import pytest

SECRET = 76_543_219  # a count of the private table, and in the text of every planted failure


class BrokenError(Exception):
    """An ordinary failure whose text holds a private number."""


class Stop(BaseException):
    """Neither an Exception nor Ctrl-C, as the panic of an engine."""


INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)  # of these alone the text leaves a private frame
FAILURES = [BrokenError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit, Stop]


def failure_of(kind):
    text = f"index {SECRET} is out of bounds"
    return kind(text, [ValueError(text)]) if kind is ExceptionGroup else kind(text)


def plant(monkeypatch, owner, name, occurrence, kind, *, after):
    """Fail at the given call of a method, before it acts or after; the list returned counts calls."""
    method = getattr(owner, name)
    calls = []

    def failing(*arguments, **more):
        held = f"a private number: {SECRET}"
        calls.append(held)
        if len(calls) == occurrence and not after:
            raise failure_of(kind)
        result = method(*arguments, **more)
        if len(calls) == occurrence:
            raise failure_of(kind)
        return result

    monkeypatch.setattr(owner, name, failing)
    return calls


def reached_by(act, *arguments):
    """Return what leaves a call, or None."""
    try:
        act(*arguments)
    except pytest.skip.Exception:
        raise
    except BaseException as error:
        return error
    return None


def frames(error, modules="onlineic."):
    """Functions of the package that a traceback still holds, and so their local variables."""
    return {
        frame.f_code.co_name
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").startswith(modules)
    }


class Traced:
    """Watches the code of some files; `stepped` sees each event there, and may raise by `fail`."""

    files = frozenset()
    opcodes = False

    def __enter__(self):
        self.before = sys.gettrace()
        if self.opcodes:  # Python 3.12 tells operations only if some frame wished for them before
            sys._getframe().f_trace_opcodes = True
        sys.settrace(self.called)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def called(self, frame, event, argument):
        if frame.f_code.co_filename not in self.files:
            return None
        # in this order: Python 3.13 tells operations of a frame that has its function already
        frame.f_trace, frame.f_trace_opcodes = self.stepped, self.opcodes
        return self.stepped

    def stepped(self, frame, event, argument):
        raise NotImplementedError

    @staticmethod
    def fail(frame, failure):
        sys.settrace(None)
        frame.f_trace = None
        raise failure


class At(Traced):
    """Raises at one line, or operation, that the files run, or counts them."""

    def __init__(self, files, failure=None, place=None, event="line"):
        self.files, self.failure, self.place, self.event, self.seen = files, failure, place, event, 0
        self.opcodes = event == "opcode"

    def stepped(self, frame, event, argument):
        if event == self.event:
            if self.seen == self.place:
                self.fail(frame, self.failure)
            self.seen += 1
        return self.stepped
