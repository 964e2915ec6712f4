"""Numbers among the arguments of the command line."""

import argparse

from onlineic.errors import InvalidParameterError, shown
from onlineic.queries.within import Within

WISH = "how exact each answer is to be: .01 or 1%% for certain, expected:1%% with 95 of 100"


def whole(text: str, least: int = 1) -> int:
    """Return a whole number that an argument writes, at least so large."""
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, got {shown(text)}")
    return int(text)


def fraction(text: str) -> float:
    """Return a fraction that an argument writes: .01 or 1%."""
    try:
        return float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"write .01 or 1%, not {shown(text)}") from None


def wish_of(text: str) -> Within:
    """Return a wish as it is written on the command line: .01, 1%, expected:.01 or expected:1%."""
    kind, _, number = text.rpartition(":")
    try:
        if kind in ("", "expected"):
            return Within(fraction(number), certain=not kind)
    except (argparse.ArgumentTypeError, InvalidParameterError):
        pass
    raise argparse.ArgumentTypeError(f"write .01, 1% or expected:1%, not {shown(text)}")


def wish_written(within: Within | None) -> str | None:
    """Return a wish as `wish_of` reads it."""
    return None if within is None else f"{'' if within.certain else 'expected:'}{within.radius:.17g}"
