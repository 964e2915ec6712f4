"""Running code that holds private numbers: whatever goes wrong, nothing private leaves with the exception."""

import os
from collections.abc import Callable
from typing import TypeVar

from onlineic.errors import SessionSealedError

T = TypeVar("T")


def guarded(private: Callable[[], T], failed: Callable[[str, str], None], message: str) -> T:
    """Return what `private` returns; from a failure let out neither its frames nor its text nor its cause.

    Parameters
    ----------
    private : () -> result
        Reads the data. Its frames are the only ones that hold private numbers.
    failed : (name of the exception, file and line) -> None
        Called once after a failure, outside of the handler.
    message : str
        Of the `SessionSealedError`; says nothing about the failure.

    Raises
    ------
    SessionSealedError
        For every `Exception` and every group of exceptions. Ctrl-C and the like pass on, without the frames
        that they came from.
    """
    interrupt: BaseException | None = None
    name = place = "?"
    try:
        try:
            return private()
        except BaseException as error:
            name, place = type(error).__name__, place_of(error)
            if not isinstance(error, (Exception, BaseExceptionGroup)):  # a group holds its members' frames
                interrupt = error
    except BaseException as second:  # Ctrl-C in the handler above; no call here, so a third cannot come
        interrupt = second
    # here, outside the handlers and the private frame, so that nothing private is chained to what leaves
    if interrupt is not None:
        interrupt.__traceback__ = interrupt.__context__ = interrupt.__cause__ = None
    failed(name, place)
    raise SessionSealedError(message) if interrupt is None or isinstance(interrupt, Exception) else interrupt


def place_of(error: BaseException) -> str:
    """Return file and line where an exception was raised: never its text, which could hold a count."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
