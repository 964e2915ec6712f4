"""Who may ask: names, tokens as digests, parts of the budget, and the log of who asked when.

One SQLite file that only its owner may read. A token is shown once, when it is made; the file holds its
SHA-256, from which nobody gets back 256 random bits. The log holds digests of questions and no values: these
stand in the ledger, and who paid for what stands there too, so that an older copy of this file gives no
quota back. Of questions that were put on the page it holds the text, for the history of who put them.
"""

import contextlib
import hashlib
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar, final

import attrs

from onlineic.errors import (
    InvalidParameterError,
    SessionStateError,
    checked_integer,
    checked_ratio,
    checked_real,
    shown,
)
from onlineic.noise.sources import SystemNoise

PREFIX = "oic_"  # by which scanners of leaked secrets know a token
PER_MINUTE = 600  # questions
CRASHES = 3  # starts in a row that answered nothing, from which on the next one is refused
LONGEST_NAME = 64
MOST_REMEMBERED = 200  # questions of one user, for their history
SETTLED = 10**8  # nanoseconds after a change of the file, from which on the next one has another time
STALE = 10**9  # nanoseconds for which users that were read last stand in for a file that is being written
TABLES = """
CREATE TABLE IF NOT EXISTS user (name TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, created REAL NOT NULL,
                   revoked REAL, share TEXT, per_minute INTEGER NOT NULL, finest REAL NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS audit (time REAL NOT NULL, user TEXT NOT NULL, digest TEXT NOT NULL,
                   start INTEGER NOT NULL, stop INTEGER NOT NULL, statuses TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS question (time REAL NOT NULL, user TEXT NOT NULL, query TEXT NOT NULL,
                   said TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS start (time REAL NOT NULL, good INTEGER NOT NULL);
"""
COLUMNS = "name, digest, created, revoked, share, per_minute, finest"  # of a user
T = TypeVar("T")


@final
@attrs.frozen
class User:
    """One who may ask.

    Attributes:
        created: Seconds since 1970.
        share: Of what hits can spend, in [0, 1]; None: twice an equal share.
        per_minute: Questions.
        digest: Of the token.
        finest: Wish that they may have of a number, a fraction of the records; 0: any.
    """

    name: str
    created: float
    revoked: float | None
    share: Fraction | None
    per_minute: int
    digest: str = attrs.field(default="", repr=False)
    finest: float = 0.0

    def part(self, active: int) -> Fraction:
        """Return the share, where so many users are active."""
        return self.share if self.share is not None else min(Fraction(1), Fraction(2, max(1, active)))


@final
@attrs.frozen
class Asked:
    """One line of the log.

    Attributes:
        digest: SHA-256 of the question as it was sent.
        start, stop: Records that were written while it was answered, from start up to stop.
        statuses: Of the answers, such as "easy hard", or the code of an error.
        when: Seconds since 1970.
    """

    user: str
    digest: str
    start: int
    stop: int
    statuses: str
    when: float = attrs.field(factory=time.time, eq=False)


@final
@attrs.frozen
class Put:
    """A question that a user put on the page, for their history; what it was told stands in the ledger.

    Attributes:
        query: As of an address of the page.
        said: In words.
        when: Seconds since 1970.
    """

    user: str
    query: str
    said: str
    when: float = attrs.field(factory=time.time, eq=False)


@final
class Users:
    """The users file, used by one thread at a time.

    Args:
        create: Whether to make it if it is not there.
        waits: Seconds to wait for another process that writes to it.

    Raises:
        InvalidParameterError: If it is not there, can be read by others, or is no users file.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False, waits: float = 5.0) -> None:
        self.path = os.fspath(path)
        if create and not os.path.exists(self.path):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        if not os.path.exists(self.path):
            raise InvalidParameterError(
                f"users must be a users file, got none at {shown(self.path, 200)}; make one by "
                "onlineic user add NAME --users FILE."
            )
        self._waits = waits
        self._seen: tuple[int, dict[str, User]] | None = None
        self._mark: tuple[int, ...] | None = None  # which file was read, and of when
        self._read_at = 0  # nanoseconds
        self._digests: tuple[Any, frozenset[str]] = (None, frozenset())  # of those who are not revoked
        self._connection, self._file = self._run(self._opened)

    def _opened(self) -> tuple[sqlite3.Connection, tuple[int, int]]:
        """Return a connection, and to which file it is."""
        state = os.stat(self.path)
        if stat.S_IMODE(state.st_mode) & 0o077:
            raise InvalidParameterError(
                "users must be a file that its owner alone may read, got mode "
                f"{stat.S_IMODE(state.st_mode):o} at {shown(self.path, 200)}; write chmod 600."
            )
        made = sqlite3.connect(self.path, timeout=self._waits, isolation_level=None, check_same_thread=False)
        try:
            made.executescript(TABLES)
            if not _knows_wishes(made):  # an older file, which another process may open too
                made.execute("BEGIN IMMEDIATE")
                if not _knows_wishes(made):
                    made.execute("ALTER TABLE user ADD COLUMN finest REAL NOT NULL DEFAULT 0")
                made.execute("COMMIT")
        except BaseException:
            made.close()
            raise
        return made, _which(state)

    def _held(self) -> os.stat_result:
        """Return the state of the file; one that has taken its place, as a copy does, is opened anew."""
        state = os.stat(self.path)
        if _which(state) != self._file:
            before, (self._connection, self._file) = self._connection, self._opened()
            self._seen = self._mark = None
            before.close()
        return state

    def _run(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except (sqlite3.Error, OSError) as error:
            raise SessionStateError(
                f"users must be a whole file that can be written, got {type(error).__name__} at "
                f"{shown(self.path, 200)}; make room, or restore it from its backup."
            ) from None

    def add(self, name: str, share: Any = None, per_minute: int = PER_MINUTE, finest: float = 0.0) -> str:
        """Add a user and return the token, which nothing shows again.

        Raises:
            InvalidParameterError: If the name is taken, even by one who was revoked, or a number is outside
                its range.
        """
        named = type(name) is str and name.isprintable() and bool(name.strip())
        if not named or len(name) > LONGEST_NAME:
            raise InvalidParameterError(
                f"name must be a printable text of 1 to {LONGEST_NAME} letters, got {shown(name)}."
            )
        part, many, wish = _checked(share, per_minute, finest)
        if any(user.name == name for user in self.list()):
            raise InvalidParameterError(
                f"name must be new, got {shown(name)}, which has paid under this name before; take another."
            )
        token = PREFIX + SystemNoise().words(4).tobytes().hex()
        row = (name, digest_of(token), time.time(), None, part, many, wish)
        sql = f"INSERT INTO user ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        self._run(lambda: self._connection.execute(sql, row))
        return token

    def renew(self, name: str) -> str:
        """Return another token of a user; the old one is worth nothing from here on."""
        self.one(name)
        token = PREFIX + SystemNoise().words(4).tobytes().hex()
        sql = "UPDATE user SET digest = ?, revoked = NULL WHERE name = ?"
        self._run(lambda: self._connection.execute(sql, (digest_of(token), name)))
        return token

    def revoke(self, name: str) -> None:
        """Let a user ask no more, from the next request on."""
        self.one(name)
        sql = "UPDATE user SET revoked = ? WHERE name = ? AND revoked IS NULL"
        self._run(lambda: self._connection.execute(sql, (time.time(), name)))

    def quota(
        self,
        name: str,
        share: Any = None,
        per_minute: int | None = None,
        finest: float | None = None,
    ) -> None:
        """Give a user another part of the budget, another rate, another finest wish, or several of these."""
        held = self.one(name)
        row = _checked(
            held.share if share is None else share,
            held.per_minute if per_minute is None else per_minute,
            held.finest if finest is None else finest,
        )
        sql = "UPDATE user SET share = ?, per_minute = ?, finest = ? WHERE name = ?"
        self._run(lambda: self._connection.execute(sql, (*row, name)))

    def one(self, name: str) -> User:
        """Return a user, or raise `InvalidParameterError`."""
        for user in self.list():
            if user.name == name:
                return user
        raise InvalidParameterError(
            f"name must be that of a user, got {shown(name)}; see onlineic user list."
        )

    def list(self) -> list[User]:
        """Return all users, those who were revoked too, oldest first."""
        return sorted(self._read().values(), key=lambda user: user.created)

    @property
    def active(self) -> int:
        """How many users are not revoked."""
        return len(self.digests())

    def digests(self) -> frozenset[str]:
        """Return those of the tokens that are worth something, one of each user who is not revoked."""
        users = self._read()
        if self._digests[0] is not users:
            active = frozenset(digest for digest, user in users.items() if user.revoked is None)
            self._digests = (users, active)
        return self._digests[1]

    def by_token(self, token: str) -> User | None:
        """Return the user with this token, unless it was revoked."""
        return self.by_digest(digest_of(token))

    def by_digest(self, digest: str) -> User | None:
        """Return the user whose token has this digest, unless it was revoked."""
        user = self._read().get(digest)
        return None if user is None or user.revoked is not None else user

    def by_name(self, name: str) -> User | None:
        """Return the user with this name, those who were revoked too."""
        return next((user for user in self._read().values() if user.name == name), None)

    def _read(self) -> dict[str, User]:
        """Return users by digest: read again once another process, or this one, has changed the file.

        While another process writes to it, those that were read within the last second stand.
        """

        def read() -> dict[str, User]:
            now, read_at, state = time.time_ns(), time.monotonic_ns(), self._held()
            mark = (*_which(state), state.st_mtime_ns, state.st_size)
            if self._seen is not None and self._mark == mark:
                self._read_at = read_at
                return self._seen[1]
            try:
                (version,) = self._connection.execute("PRAGMA data_version").fetchone()
                version = version * 2**32 + self._connection.total_changes
                if self._seen is None or self._seen[0] != version:
                    rows = self._connection.execute(f"SELECT {COLUMNS} FROM user").fetchall()
                    self._seen = (version, {row[1]: _user(*row) for row in rows})
            except sqlite3.OperationalError as error:
                locked = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not locked or self._seen is None or read_at - self._read_at > STALE:
                    raise
                return self._seen[1]
            # of a file that was written just now, the next change can have the same time
            self._mark = mark if now - state.st_mtime_ns > SETTLED else None
            self._read_at = read_at
            return self._seen[1]

        return self._run(read)

    def log(self, lines: Iterable[Asked], put: Iterable[Put] = ()) -> None:
        """Add lines to the log, and questions to the histories of users."""
        asked = [*put]
        rows = [(line.when, line.user, line.digest, line.start, line.stop, line.statuses) for line in lines]

        def write() -> None:
            self._held()
            self._connection.execute("PRAGMA synchronous = OFF")  # no charge and no answer rests on it
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", rows)
                self._remember(asked)
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

        self._run(write)

    def _remember(self, put: Sequence[Put]) -> None:
        """Put questions at the end of histories, of which one that was put before leaves its place."""
        run = self._connection.executemany
        run("DELETE FROM question WHERE user = ? AND query = ?", [(one.user, one.query) for one in put])
        told = [(one.when, one.user, one.query, one.said) for one in put]
        run("INSERT INTO question VALUES (?, ?, ?, ?)", told)
        older = (
            "DELETE FROM question WHERE user = ? AND rowid NOT IN "
            "(SELECT rowid FROM question WHERE user = ? ORDER BY rowid DESC LIMIT ?)"
        )
        run(older, [(name, name, MOST_REMEMBERED) for name in {one.user for one in put}])

    def history(self, name: str, most: int = MOST_REMEMBERED) -> Sequence[Put]:
        """Return the latest questions that a user put on the page, newest first."""

        def found() -> Sequence[Put]:
            self._held()
            sql = "SELECT user, query, said, time FROM question WHERE user = ? ORDER BY rowid DESC LIMIT ?"
            return [Put(*row) for row in self._connection.execute(sql, (name, most))]

        return self._run(found)

    def logged(self, most: int = 100) -> Iterator[tuple[float, Asked]]:
        """Go through the latest lines of the log, newest first, with their times."""
        sql = "SELECT user, digest, start, stop, statuses, time FROM audit ORDER BY rowid DESC LIMIT ?"
        for row in self._run(lambda: self._connection.execute(sql, (most,)).fetchall()):
            yield row[-1], Asked(*row)

    def since(self, start: float, name: str | None = None) -> Iterator[tuple[float, Asked]]:
        """Go through the lines of the log from a time on, of one user or all, oldest first, with times."""
        sql = "SELECT user, digest, start, stop, statuses, time FROM audit WHERE time >= ?"
        sql, of = (sql, (start,)) if name is None else (sql + " AND user = ?", (start, name))
        for row in self._run(lambda: self._connection.execute(sql + " ORDER BY rowid", of).fetchall()):
            yield row[-1], Asked(*row)

    def forget(self, before: float) -> int:
        """Delete lines of the log, and questions of histories, that are older; return how many lines.

        Who may ask stays, and who paid: that stands in the ledger.
        """

        def cut() -> int:
            self._held()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                many = self._connection.execute("DELETE FROM audit WHERE time < ?", (before,)).rowcount
                self._connection.execute("DELETE FROM question WHERE time < ?", (before,))
                newest = "(SELECT rowid FROM start ORDER BY rowid DESC LIMIT ?)"
                old = f"DELETE FROM start WHERE time < ? AND rowid NOT IN {newest}"
                self._connection.execute(old, (before, CRASHES))
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            return many

        return self._run(cut)

    def begin(self, *, after_crashes: bool = False) -> None:
        """Note that a server starts.

        Raises:
            SessionStateError: If the last three starts in a row answered nothing: each spends what stood
                reserved, and a loop of crashes would spend all.
        """
        sql = "SELECT good FROM start ORDER BY rowid DESC LIMIT ?"
        last = self._run(lambda: self._connection.execute(sql, (CRASHES,)).fetchall())
        if len(last) == CRASHES and not any(good for (good,) in last) and not after_crashes:
            raise SessionStateError(
                f"a server must not start after {CRASHES} starts in a row that answered nothing: each spends "
                "what stood reserved. Look into the log for the cause, and start once with --after-crashes."
            )
        self._run(lambda: self._connection.execute("INSERT INTO start VALUES (?, 0)", (time.time(),)))

    def good(self) -> None:
        """Note that this start has answered, or has ended in order."""
        sql = "UPDATE start SET good = 1 WHERE rowid = (SELECT max(rowid) FROM start)"

        def noted() -> None:
            self._held()
            self._connection.execute(sql)

        self._run(noted)

    def copy_to(self, path: str) -> None:
        """Write a copy that is whole, whatever another process writes meanwhile, for its owner alone."""
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with contextlib.closing(sqlite3.connect(path)) as copy:
            self._run(lambda: self._connection.backup(copy))

    def close(self) -> None:
        """Let the file go."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def __repr__(self) -> str:
        return f"Users({self.path!r}, {self.active} active)"


def _knows_wishes(file: sqlite3.Connection) -> bool:
    """Return whether users of a file have a finest wish."""
    return any(row[1] == "finest" for row in file.execute("PRAGMA table_info(user)"))


def _which(state: os.stat_result) -> tuple[int, int]:
    """Return which file it is that a path leads to."""
    return state.st_dev, state.st_ino


def _user(
    name: str,
    digest: str,
    created: float,
    revoked: float | None,
    share: str | None,
    many: int,
    finest: float,
) -> User:
    return User(name, created, revoked, None if share is None else Fraction(share), many, digest, finest)


def digest_of(token: str) -> str:
    """Return what the file holds of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _checked(share: Any, per_minute: int, finest: float) -> tuple[str | None, int, float]:
    many = checked_integer("per_minute", per_minute, at_least=1, at_most=10**6)
    wish = checked_real("finest", finest, at_least=0.0, at_most=1.0, remedy="write .005 for half a per cent")
    if share is None:
        return None, many, wish
    part = checked_ratio("share", share, at_least=0.0, at_most=1.0, remedy="write a share such as 0.25")
    return str(part), many, wish
