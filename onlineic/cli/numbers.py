"""Numbers among the arguments of the command line."""

import argparse

from onlineic.errors import shown


def whole(text: str, least: int = 1) -> int:
    """Return a whole number that an argument writes, at least so large."""
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, got {shown(text)}")
    return int(text)
