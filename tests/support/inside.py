"""The one place where tests reach inside of a session and its table, for what none of their faces shows."""

import attrs

import onlineic as ic


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


def settings_of(session):
    """The settings that it was opened by."""
    return session._settings


def opened_by(plan, data, settings, noise):
    """A session of a plan that nobody would make: a planted slip, or a toy."""
    session = ic.OnlineIC.__new__(ic.OnlineIC)
    session._open(data, settings, plan, None, noise)
    return session


def unseen(session):
    """Noise that is drawn ahead, how many answers are remembered, and the secret state of the mechanism."""
    blocks = noise_of(session)._blocks._by_key
    noise = [(key, block.at, block.values.tobytes()) for key, block in blocks.items()]
    return noise, len(loop_of(session).book._memory), core_of(session)._state


def believe(session, hypothesis):
    """Put a hypothesis in the place of what the session has learned."""
    book = loop_of(session).book
    book._taken = attrs.evolve(book._taken, belief=attrs.evolve(book.belief, hypothesis=hypothesis))


def spend_behind(session, spent):
    """Let so much be spent, in the unit of the account, by nothing in the record."""
    ledger = ledger_of(session)
    book = ledger._state.book
    book = attrs.evolve(book, account=attrs.evolve(book.account, spent=spent))
    ledger._state = attrs.evolve(ledger._state, book=book)


def counts_of(data):
    """All exact counts of a table, without a read."""
    return data._tables.table(tuple(range(len(data.domain.shape))))


def shapes_kept(data):
    """Attributes and shapes of the tables that are kept for further counts."""
    return [(axes, table.shape) for axes, (table, _) in data._tables._entries.items()]


LOCKS = {  # of a session with a file, on a table with a total, each with its name
    "session": lambda one: one.session._door,
    "sessions of the table": lambda one: one.data._sessions.gate,
    "total": lambda one: one.total._lock,
    "read": lambda one: one.data._door,
    "file of the session": lambda one: ledger_of(one.session)._gate,
}
