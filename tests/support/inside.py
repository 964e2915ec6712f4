"""The one place where tests reach inside of a session and its table, for what none of their faces shows."""


def table_of(session):
    """The private table."""
    return session._data


def loop_of(session):
    """What answers the questions of a session."""
    return session._loop


def core_of(session):
    """The core of its loop."""
    return loop_of(session).core


def ledger_of(session):
    """The ledger, which only its session may write."""
    return loop_of(session).ledger


def all_spent(session):
    """Recorded charges and the standing reservation."""
    return ledger_of(session).spent


LOCKS = {  # of a session with a file, on a table with a total, each with its name
    "session": lambda one: one.session._door,
    "sessions of the table": lambda one: one.data._sessions.gate,
    "total": lambda one: one.total._lock,
    "read": lambda one: one.data._door,
    "file of the session": lambda one: ledger_of(one.session)._gate,
}
