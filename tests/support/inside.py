"""The one place where tests reach inside of a session, for what none of its faces shows."""


def table_of(session):
    """The private table."""
    return session._data


def ledger_of(session):
    """The ledger, which only its session may write."""
    return session._loop.ledger


def all_spent(session):
    """Recorded charges and the standing reservation."""
    return session._loop.ledger.spent


def loop_of(session):
    """What answers the questions of a session."""
    return session._loop


def core_of(session):
    """The core of its loop."""
    return session._loop.core


def noise_of(session):
    """Its source of noise."""
    return session._loop.core._noise
