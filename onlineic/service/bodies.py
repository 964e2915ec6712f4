"""What a request sends: of limited length, and read strictly."""

import json
from typing import Any

from starlette.requests import Request

from onlineic.errors import InvalidQueryError, shown
from onlineic.service.refusals import RefusedError

MOST_BYTES = 2**16  # of a body


async def body_of(request: Request) -> bytes:
    """Return the body, of at most 64 kB whatever its header says."""
    try:
        told = int(request.headers.get("content-length", "0"))
    except ValueError:
        raise RefusedError(400, "form", "the length of the body must be a number.") from None
    parts, size = [], 0
    if told <= MOST_BYTES:
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                break
            parts.append(part)
    if max(told, size) > MOST_BYTES:
        raise RefusedError(
            413, "too-large", f"a body must have at most {MOST_BYTES:,} bytes.", Connection="close"
        )
    return b"".join(parts)


def parsed(raw: bytes) -> Any:
    """Return the JSON of a body."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise InvalidQueryError("an object must name each member once, got one twice.")
        return dict(pairs)

    def none(text: str) -> Any:
        raise ValueError(text)

    try:
        return json.loads(raw, object_pairs_hook=distinct, parse_constant=none)
    except InvalidQueryError:
        raise
    except (ValueError, RecursionError):
        raise RefusedError(400, "form", "the body must be JSON in UTF-8, with finite numbers.") from None


def member(sent: Any, name: str, kind: type[Any]) -> Any:
    """Return a member of an object that was sent, if it is of this kind."""
    if not isinstance(sent, dict) or not isinstance(sent.get(name), kind):
        raise InvalidQueryError(f"the body must be an object with a {kind.__name__} called {shown(name)}.")
    return sent[name]


def number(request: Request, name: str, default: int) -> int:
    """Return a whole number of the address."""
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise InvalidQueryError(f"{name} must be a whole number, got {shown(text)}.")
    return int(text)
