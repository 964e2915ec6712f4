"""What a server refuses: as problem+json for programs, with a stable code, and as a page for people."""

from collections.abc import Mapping
from typing import Any, final

import attrs
from starlette.responses import JSONResponse, Response

from onlineic.ask.places import without_python
from onlineic.errors import (
    BudgetError,
    EngineError,
    InvalidInputError,
    LedgerError,
    MissingExtraError,
    OnlineICError,
    SessionStateError,
    TooFewRecordsError,
    TooLargeError,
)
from onlineic.service.lanes import BusyError

MOST_ANSWERS = 256  # that were given before a refusal, and stand in it


class UnreadyError(OnlineICError):
    """The server cannot answer now: it stops, or its ledger could not be written."""


class RevokedError(OnlineICError):
    """The token of who asks was revoked or renewed while the question waited; nothing was asked."""


@final
class RefusedError(Exception):
    """A request that is refused before it is a question."""

    def __init__(self, status: int, code: str, detail: str, **headers: str) -> None:
        super().__init__(code)
        self.status, self.code, self.detail, self.headers = status, code, detail, headers


STATUS: tuple[tuple[type[OnlineICError], int], ...] = (  # the first that fits
    (TooLargeError, 413),
    (InvalidInputError, 422),
    (TooFewRecordsError, 422),
    (BudgetError, 409),
    (RevokedError, 401),
    (BusyError, 503),
    (UnreadyError, 503),
    (EngineError, 503),
    (SessionStateError, 503),
    (LedgerError, 503),
    (MissingExtraError, 501),
)


@final
@attrs.frozen
class Problem:
    """One refusal, as RFC 9457 has it.

    Attributes:
        code: Stable, for programs.
        detail: For people; empty where nothing may be said.
        more: Further members, such as answers that were given before.
    """

    status: int
    code: str
    detail: str = ""
    headers: Mapping[str, str] = attrs.field(factory=dict)
    more: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def of(cls, error: Exception) -> "Problem":
        """Return the problem that an error is; of one that nobody expected, nothing is said."""
        if isinstance(error, RefusedError):
            return cls(error.status, error.code, error.detail, error.headers)
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
        if status == 500 or not isinstance(error, OnlineICError):
            return cls(500, "internal")
        given = [one.to_dict() for one in getattr(error, "answers", ())][:MOST_ANSWERS]
        headers = {"Retry-After": "1"} if status == 503 else {}
        return cls(
            status, error.code, without_python(str(error)), headers, {"answers": given} if given else {}
        )

    def json(self) -> Response:
        """Return it for a program."""
        said = {
            "type": self.code,
            "title": self.code.replace("-", " "),
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }
        return JSONResponse(said, self.status, self.headers, media_type="application/problem+json")
