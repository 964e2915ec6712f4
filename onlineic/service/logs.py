"""Lines of the log of a server: time, level, user and request, as text or as JSON.

Nothing of a question, a body, a token or the query of an address stands in one, and of an error its kind
alone: its text could hold anything.
"""

import contextvars
import datetime
import itertools
import json
import logging
import os
import sys
from typing import Literal, final

import attrs

LOGGERS = ("onlineic.service", "uvicorn")
_count = itertools.count(1)
log = logging.getLogger("onlineic.service")


@final
@attrs.define(eq=False)
class Request:
    """One request, as the log speaks of it.

    Attributes:
        name: Of no other request of this process or one before it.
        user: Who asks, once they are known.
    """

    name: str = attrs.field(factory=lambda: f"{os.getpid():x}-{next(_count):x}")
    user: str = ""


_present: contextvars.ContextVar[Request | None] = contextvars.ContextVar("request", default=None)


def begin() -> Request:
    """Return the request that begins here: lines of its task are of it."""
    request = Request()
    _present.set(request)
    return request


def known(user: str) -> None:
    """Note who asks."""
    if (request := _present.get()) is not None:
        request.user = user


@final
class Lines(logging.Formatter):
    """One line a record."""

    def __init__(self, form: Literal["text", "json"]) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        request, said = _present.get(), record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:  # its text and its place could hold anything
            said = f"{said.splitlines()[0] if said else 'error'}: {record.exc_info[0].__name__}"
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line = {
            "time": time.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "user": "" if request is None else request.user,
            "request": "" if request is None else request.name,
            "message": said,
        }
        if self._form == "json":
            return json.dumps(line, ensure_ascii=True)
        each = [line["time"], line["level"], line["user"] or "-", line["request"] or "-", said]
        return " ".join(ascii(one)[1:-1] for one in each)


def to_stderr(form: Literal["text", "json"], level: int) -> None:
    """Write the log of this process to standard error, in one form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(form))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
