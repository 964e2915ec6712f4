"""SQLite databases of a test, which are closed when it ends: Python 3.13 warns of those that are not."""

import sqlite3

_OPENED = []


def opened(place=":memory:"):
    """Return a connection that the test need not close."""
    _OPENED.append(sqlite3.connect(place))
    return _OPENED[-1]


def close_opened():
    """Close the connections of a test that has ended."""
    while _OPENED:
        _OPENED.pop().close()
