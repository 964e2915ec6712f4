"""Replies as JSON in UTF-8, written in pieces: the encoder holds the interpreter while it writes one."""

import json
from collections.abc import Iterable
from typing import Any

from onlineic.session.asking import Outcome

PIECE = 4096  # numbers that are written at once
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encoded(value: Any) -> bytes:
    """Return a value as JSON."""
    return "".join(_pieces(value)).encode()


def written_answers(outcomes: Iterable[Outcome], more: dict[str, Any] | None = None) -> bytes:
    """Return what became of questions as the body of a reply, and further members."""
    told = b'{"answers":[' + b",".join(encoded(one.to_dict()) for one in outcomes) + b"]"
    return told + b"".join(b"," + encoded({name: one})[1:-1] for name, one in (more or {}).items()) + b"}"


def _pieces(value: Any) -> Iterable[str]:
    if isinstance(value, dict) and any(map(_is_long, value.values())):
        yield "{"
        for place, (name, one) in enumerate(value.items()):
            yield ("," if place else "") + _encoder.encode(name) + ":"
            yield from _pieces(one)
        yield "}"
    elif isinstance(value, list) and (long := _each(value)):
        yield "["
        for start in range(0, len(value), long):
            yield "," if start else ""
            if long > 1:
                yield _encoder.encode(value[start : start + long])[1:-1]
            else:
                yield from _pieces(value[start])
        yield "]"
    else:
        yield _encoder.encode(value)


def _is_long(value: Any) -> bool:
    """Return whether a member is written by itself; of most objects none is."""
    return bool(_each(value) if isinstance(value, list) else value and isinstance(value, dict))


def _each(value: list[Any]) -> int:
    """Return how many entries of a long list are written at once, by the size of the first; 0: all of it."""
    inner, size = value[:1], 1
    while inner and isinstance(inner[0], list):
        inner = inner[0]
        size *= max(1, len(inner))
    if inner and isinstance(inner[0], dict):
        return 1
    return 0 if size * len(value) <= PIECE else max(1, PIECE // size)
