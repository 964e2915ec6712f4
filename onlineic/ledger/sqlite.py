"""A ledger in a file: SQLite in rollback mode, one process at a time, every charge durable before it counts.

A step is whole or has not happened, whatever interrupts it: what the file holds decides. After a failed write
the ledger takes nothing more, since nobody knows what the disk will hold; opened again, it tells. The file
holds nothing private: parameters, charges and released answers, no noise and no count.

Proof: docs/theory/ledger-and-restarts.md, 5.4.
"""

import contextlib
import datetime
import os
import sqlite3
import sys
import threading
import urllib.parse
import weakref
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, final

import attrs

from onlineic.accounting.budget import Charge, Filter
from onlineic.domain.domain import Domain
from onlineic.errors import (
    BudgetError,
    ForkedSessionError,
    InternalError,
    InvalidParameterError,
    LedgerCopyError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerRollbackError,
    LedgerWriteError,
    SessionStateError,
    check_choice,
    checked_ratio,
    shown,
)
from onlineic.ledger.book import Book, check_claim, check_commit, name_payer
from onlineic.ledger.forks import this_process
from onlineic.ledger.kinds import Line, account_from_json, line_of
from onlineic.ledger.lines import START, Receipt, Written, canonical_text, chained, checked_text, linked
from onlineic.ledger.place import (
    check_writable,
    checked_path,
    exists,
    failure_of,
    file_at,
    lock,
    lock_to_read,
    locked,
    remove,
    sync_folder,
    unlock,
    unusable,
)
from onlineic.ledger.records import (
    Annotation,
    Checkpoint,
    Closed,
    Committed,
    Easy,
    EasyBatch,
    Forfeited,
    Ledger,
    Record,
    Reserved,
    Resumed,
    ToldAnswer,
)

MOST_LOST = 256  # easy answers that a crash may cost with durability "hits"
APPLICATION = 0x6F6E6963  # "onic", in the header of the file
SCHEMA = 1
PAGE = 4096  # bytes
RESTORE = "restore it from a backup, and give its newest receipt"  # which refuses what could spend again
TABLES = """
CREATE TABLE line (at INTEGER PRIMARY KEY, text TEXT NOT NULL CHECK (typeof(text) = 'text'),
                   chain BLOB NOT NULL CHECK (typeof(chain) = 'blob' AND length(chain) = 32));
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), lines INTEGER NOT NULL, chain BLOB NOT NULL);
"""
COPIED = "CREATE TABLE copied (one INTEGER PRIMARY KEY CHECK (one = 1), time TEXT NOT NULL)"
Durability = Literal["hits", "all"]


@final
@attrs.frozen
class _State:
    """The state of the ledger, replaced as a whole by one assignment."""

    book: Book
    length: int = 0  # records
    queued: int = 0  # lines that are not written yet
    written: int = 0  # records that are
    lines: int = 0
    chain: bytes = START


@final
class SqliteLedger(Ledger):
    """A ledger that outlives its process. Opened by a session; see `docs/ledger.md` for the file.

    Args:
        path: As `checked_path` returns it.
        held: The lock.
        written: What the file holds.
        place: Device and number of the file, taken before it was opened.
    """

    __slots__ = (
        "_broken", "_checkpoints", "_connection", "_domain", "_durability", "_gate", "_gathering", "_held",
        "_losses", "_owner", "_paid", "_path", "_place", "_process", "_queue", "_records", "_state", "_told",
        "beginning", "fresh",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        held: int,
        connection: sqlite3.Connection,
        written: Written,
        durability: Durability,
        place: tuple[int, int],
    ) -> None:
        self._held = -1  # until it is made: of one that failed, the caller lets the file go
        self._path, self._connection, self._place = path, connection, place
        self._durability = durability
        self._gate = threading.RLock()  # held while the file is written: no fork falls into that
        self._process = this_process()
        self._owner: object = None
        self._broken = False
        self._domain = written.domain()
        self.beginning = written.beginning
        self._queue: list[Record | Annotation] = []
        self._records, kept = written.records(self._domain)
        self._checkpoints = kept
        self._told = written.told(self._domain)
        self._paid = written.paid(self._domain)
        self._gathering = False
        self.fresh = False  # a file that was there goes on with a line of its own
        self._losses = _losses(self._records, self.beginning["durability"])
        try:
            book = Book(account_from_json(self.beginning["account"])).after_all(self._records)
        except (BudgetError, InternalError, KeyError, ValueError, TypeError):
            raise LedgerCorruptError(
                "ledger must hold charges that were reserved and could be paid, got others; restore "
                "it from a backup, and give its newest receipt."
            ) from None
        count = len(self._records)
        self._state = _State(book, count, 0, count, len(written.lines), written.links[-1])
        self._held = held
        _OPEN.add(self)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], beginning: Line, durability: Durability = "hits"
    ) -> "SqliteLedger":
        """Return a new ledger, whose file appears with its beginning or not at all.

        Args:
            path: Of a file that does not exist.
            beginning: As `onlineic.ledger.settings.beginning_of` makes it.

        Raises:
            InvalidParameterError: If no ledger may lie there, or a file would not give back the beginning as
                it is.
            LedgerLockedError, LedgerMismatchError: If it is open, or exists.
            LedgerWriteError: If it cannot be written; there is no file then but FILE.lock.
        """
        text = checked_text({**beginning, "durability": durability, "at": 0})
        real = checked_path(path)
        _register()
        held, made, place = lock(real), None, None
        making = real + ".new"
        try:
            if exists(real):
                raise LedgerMismatchError(
                    f"ledger must be a new file, got {shown(real, 200)}, which exists; resume it with "
                    f"OnlineIC.resume."
                )
            with contextlib.suppress(FileNotFoundError):
                os.unlink(making)  # of a process that died here
            os.close(os.open(making, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            place = file_at(making)
            with contextlib.closing(_connected(making)) as connection:
                link = linked(START, text)
                connection.executescript(f"BEGIN; {TABLES}")
                connection.execute("INSERT INTO line VALUES (0, ?, ?)", (text, link))
                connection.execute("INSERT INTO head VALUES (1, 1, ?)", (link,))
                connection.execute(f"PRAGMA user_version = {SCHEMA}")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute("COMMIT")
            os.link(making, real)
            os.unlink(making)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(making + "-journal")
            sync_folder(real)
            made = cls._opened(real, held, durability)
            made.fresh = True
            return made
        except BaseException as error:
            if made is not None:
                made.release()
            with contextlib.suppress(LedgerError):
                if place is not None and file_at(real) == place:  # ours, and nothing is spent in it
                    remove(real)
            remove(making, making + "-journal")
            unlock(held)
            if isinstance(error, (sqlite3.Error, OSError)):
                name, remedy = failure_of(error)
                raise LedgerWriteError(
                    f"ledger must be written before anything is spent, got {name} at {shown(real, 300)}; "
                    f"{remedy or 'make room'}, or choose another directory for the new file."
                ) from None
            raise

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        durability: Durability = "hits",
        receipt: Receipt | str | None = None,
    ) -> "SqliteLedger":
        """Return the ledger in a file, read and checked; nothing is written before it is restarted.

        Args:
            receipt: Of an earlier time, as `receipt` returned it.

        Raises:
            InvalidParameterError: If no ledger may lie there.
            LedgerLockedError: If a session has it.
            LedgerCorruptError: If there is none, or it is not whole.
            LedgerRollbackError: If it does not go on from the receipt.
            LedgerCopyError: If it is a copy, which has not taken the place of its original.
            LedgerError: If it cannot be read and written; the message names the cause.
        """
        made = cls._there(path, durability, receipt)
        try:
            if (since := made._copied()) is not None:
                raise LedgerCopyError(
                    f"ledger must be the original to be gone on with, got a copy of {since} at "
                    f"{shown(made.path, 200)}: two live copies are two budgets. If the original is lost, "
                    "write onlineic serve FILE --instead-of ORIGINAL once."
                )
            return made
        except BaseException:
            made.release()
            raise

    @classmethod
    def _there(
        cls, path: str | os.PathLike[str], durability: Durability, receipt: Receipt | str | None = None
    ) -> "SqliteLedger":
        real = _there(path)
        _register()
        held = lock(real)
        try:
            check_writable(real)
            return cls._opened(real, held, durability, receipt)
        except BaseException:
            unlock(held)
            raise

    @classmethod
    def take_over(
        cls,
        path: str | os.PathLike[str],
        original: str | os.PathLike[str],
        version: str,
        *,
        receipt: Receipt | str | None = None,
        spent: Any = None,
    ) -> Charge | None:
        """Let a copy take the place of its original, which is lost; return what that costs.

        What the original spent after the copy was made is not in it. All that it can have spent is spent
        here too, before anything is tested: then both together spend no more than the budget (theory 5.4).

        Args:
            original: Where it was: nothing may be there, but this copy.
            version: Of the package.
            receipt: The newest of the original. One that is that of the copy: nothing was spent since.
            spent: The most, of the budget, that the original can have spent. None: all of it.

        Raises:
            InvalidParameterError: If this is no copy, or the original is there.
            LedgerRollbackError: If the receipt is another than that of the copy.
        """
        there = file_at(os.path.realpath(os.fspath(original)))
        made = cls._there(path, "all", receipt)
        try:
            if made._copied() is None:
                raise InvalidParameterError(
                    "--instead-of must be left out for a ledger that is no copy, got one at "
                    f"{shown(made.path, 200)}."
                )
            if there is not None and there != made._place:
                raise InvalidParameterError(
                    f"the original must be lost before a copy takes its place, got a file at "
                    f"{shown(os.fspath(original), 200)}; go on with that, or remove it for good."
                )
            if receipt is not None and str(receipt) != str(made.receipt):
                raise LedgerRollbackError(
                    "the copy must be as long as the newest receipt to cost nothing, got an older receipt; "
                    "say by --spent how much the original can have spent."
                )
            part = checked_ratio("spent", 1 if spent is None else spent, at_least=0.0, at_most=1.0)
            made.restart(version)  # what stood reserved is spent
            charge = None if receipt is not None else made._lost_to(part)
            if charge is not None:
                made.reserve(charge)
                made.restart(version)
            with made._gate:
                made._connection.execute("DROP TABLE copied")
            return charge
        except sqlite3.Error as error:
            raise unusable(error, made.path, LedgerWriteError) from None
        finally:
            made.release()

    def _lost_to(self, part: Fraction) -> Charge | None:
        """Return the charge after which this part of the budget is spent, if it is not already."""
        account = self.account
        missing = account.capacity * part - account.spent
        event = "what a lost original may have spent"
        return Charge(missing, event, account.unit, account.order) if missing > 0 else None

    def _copied(self) -> str | None:
        """Return when this copy was made, or None: it is the original."""
        with self._gate:
            try:
                named = "SELECT 1 FROM sqlite_master WHERE name = 'copied'"
                if self._connection.execute(named).fetchone() is None:
                    return None
                return str(self._connection.execute("SELECT time FROM copied").fetchone()[0])
            except (sqlite3.Error, TypeError) as error:
                raise _unreadable(self._path, error) from None

    def copy_to(self, path: str | os.PathLike[str]) -> Receipt:
        """Write what is durable to a new file, marked as a copy, and return its receipt; from any thread.

        The session goes on: it waits for the copy where it writes, and nowhere else.

        Raises:
            LedgerError: If there is a file, it cannot be written, or this ledger is closed or not whole.
        """
        made = os.fspath(path)
        with self._gate:
            self._check()
            self._check_place()
            try:
                os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                with contextlib.closing(sqlite3.connect(made, isolation_level=None)) as copy:
                    self._connection.backup(copy)
            except (sqlite3.Error, OSError) as error:
                raise unusable(error, made, LedgerWriteError) from None
            receipt = self.receipt
        mark_copy(made)
        return receipt

    @classmethod
    def _opened(
        cls, path: str, held: int, durability: Durability, receipt: Receipt | str | None = None
    ) -> "SqliteLedger":
        check_choice("durability", durability, "hits", "all")
        place = file_at(path)
        connection = _connected(path)
        try:
            written = _read(connection, path)
            written.check(receipt)
            return cls(path, held, connection, written, durability, place or (-1, -1))
        except BaseException:
            _let_go(connection)
            raise

    @property
    def domain(self) -> Domain:
        """Of the table that it is about."""
        return self._domain

    @property
    def path(self) -> str:
        """Of the file."""
        return self._path

    @property
    def file(self) -> str:
        return linked(START, canonical_text(self.beginning)).hex()

    @property
    def receipt(self) -> Receipt:
        """Length and head of what is durable: who holds it notices an older copy of the file."""
        return Receipt(self._state.lines, self._state.chain)

    def check_newest(self, known: Receipt, whose: str) -> None:
        """Raise `LedgerRollbackError` unless it goes on from what somebody knows of it.

        Args:
            whose: Who knows it.
        """
        self._check()
        try:
            found = self._connection.execute(
                "SELECT chain FROM line WHERE at = ? AND at < ?", (known.lines - 1, self._state.lines)
            ).fetchone()
        except sqlite3.Error as error:
            raise _unreadable(self._path, error) from None
        known.check(self._state.lines, None if found is None else found[0], whose)

    def claim(self, owner: object, account: Filter, private: bool = True) -> None:
        self._check()
        if self._owner is not None:
            raise LedgerLockedError("ledger must be of one session, got one that another has; close that.")
        check_claim(self.account, account, True, private)
        self._owner = owner

    def restart(self, version: str) -> None:
        """Begin a new run of a session: what stands reserved is spent, because tests may have relied on it.

        What the noise of the lost process was, nobody knows any more: a mechanism that keeps a threshold
        draws another, and is paid for it as at its first start.

        Args:
            version: Of the package.
        """
        reserved = self.reserved
        forfeited = [] if reserved is None else [Forfeited(reserved, "restarted")]
        self._append([*forfeited, Resumed(version, self._durability)], durable=True)
        self._losses = _losses(self._records, self.beginning["durability"])

    def give_back(self, owner: object) -> None:
        if self._owner is None or self._owner is owner:
            self.release()

    @property
    def account(self) -> Filter:
        return self._state.book.account

    @property
    def reserved(self) -> Charge | None:
        return self._state.book.reserved

    def reserve(self, charge: Charge) -> None:
        self._append([Reserved(charge)], durable=True)

    def commit(self, records: Sequence[Committed], payer: str | None = None) -> None:
        check_commit(records)
        easy = all(isinstance(record, Easy | EasyBatch) for record in records)
        at = self._state
        waiting = [*self._records[at.written : at.length], *records]
        full = sum(len(one) if isinstance(one, EasyBatch) else 1 for one in waiting) > MOST_LOST
        at_once = self._durability == "all" and not self._gathering
        self._append(records, durable=full or not easy or at_once, payer=payer)

    def forfeit(self, payer: str | None = None) -> None:
        if self.reserved is not None:
            self._append([Forfeited(self.reserved, "interrupted")], durable=True, payer=payer)

    def pay(self, kept: Charge, payer: str | None = None) -> None:
        self._append([Forfeited(kept, "bought")], durable=True, payer=payer)

    def close(self, kept: Charge | None, record: Closed) -> None:
        self._append([record] if kept is None else [Forfeited(kept, "closed"), record], durable=True)
        self.release()

    @property
    def held(self) -> bool:
        return self._held >= 0

    @property
    def lasting(self) -> bool:
        return True

    @property
    def durability(self) -> Durability:
        return self._durability

    @property
    def broken(self) -> bool:
        return self._broken

    def lost(self, records: int) -> int:
        return MOST_LOST * sum(place < records for place in self._losses)

    def keep(self, annotation: Annotation) -> None:
        self._append([annotation], durable=False)
        if isinstance(annotation, ToldAnswer):
            self._told.setdefault(annotation.record, annotation.value)

    @property
    def paid(self) -> Mapping[int, str]:
        return self._paid

    def gather(self) -> None:
        self._gathering = True

    def settle(self) -> None:
        self._gathering = False
        if self._durability == "all" and self.held and self._state.queued:
            self._append([], durable=True)

    @property
    def told(self) -> Mapping[int, float | tuple[float, ...]]:
        return self._told

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        return tuple(self._checkpoints)

    @property
    def durable(self) -> int:
        return self._state.written

    def __len__(self) -> int:
        return self._state.length

    def records(self, start: int = 0, stop: int | None = None) -> tuple[Record, ...]:
        length = self._state.length
        return tuple(self._records[start : length if stop is None else min(stop, length)])

    def _append(
        self, added: Sequence[Record | Annotation], *, durable: bool, payer: str | None = None
    ) -> None:
        """Take lines, and write them with all that waited, if they are to be durable."""
        self._check()
        at = self._state
        records = [one for one in added if not isinstance(one, Annotation)]
        book = at.book.after_all(records)
        del self._records[at.length :], self._queue[at.queued :]  # of a step that was interrupted
        added = [*name_payer(self._paid, at.length, records, payer), *added]
        self._records += records
        self._queue += added
        length, queued = at.length + len(records), at.queued + len(added)
        if not durable:
            self._state = attrs.evolve(at, book=book, length=length, queued=queued)
            return
        rows, chain = [], at.chain
        for place, one in enumerate(self._queue, at.lines):
            text = canonical_text({**line_of(one), "at": place})
            chain = linked(chain, text)
            rows.append((place, text, chain))
        self._store(rows, _State(book, length, 0, length, at.lines + len(rows), chain))

    def _store(self, rows: Sequence[tuple[int, str, bytes]], then: _State) -> None:
        """Write lines in one durable transaction."""
        with self._gate:
            self._check_place()
            self._broken = True  # until it is known what the file holds
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany("INSERT INTO line VALUES (?, ?, ?)", rows)
                self._connection.execute("UPDATE head SET lines = ?, chain = ?", (then.lines, then.chain))
                self._connection.execute("COMMIT")  # here it happens
                self._state = then
                self._broken = False
            except sqlite3.Error as error:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.rollback()
                name, remedy = failure_of(error)
                raise LedgerWriteError(
                    f"ledger must be written before anything is done, got {name} at "
                    f"{shown(self._path, 300)}; "
                    f"nothing was released: {remedy or 'make room'}, and resume the session, or open the "
                    "total, from its file."
                ) from None
            except BaseException:
                self._settle(then)
                raise
            try:  # once more: it may have been replaced since, and the commit be in a file without a name
                self._check_place()
            except LedgerError:
                self._broken = True
                raise

    def _check_place(self) -> None:
        """Raise unless the open file has its name: what is spent in a file without one is spent again."""
        if file_at(self._path) != self._place:
            raise LedgerWriteError(
                f"ledger must stay where it was opened, got none or another file at "
                f"{shown(self._path, 200)}; "
                "nothing was released: put the file back, or resume the newest copy by its receipt."
            )

    def _settle(self, then: _State) -> None:
        """After an interrupt: what the file holds is what happened."""
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            (lines,) = self._connection.execute("SELECT lines FROM head").fetchone()
            if lines == then.lines:
                self._state = then
            self._broken = False

    def _check(self) -> None:
        if this_process() != self._process:
            raise ForkedSessionError(
                "ledger must be used in the process that opened it, got a forked one; open a new session."
            )
        if self._held < 0:
            raise LedgerError("ledger must be open, got a closed one; resume the session from its file.")
        if self._broken:
            raise LedgerWriteError(
                "ledger must be whole before it goes on, got one whose last write failed; resume the "
                "session, or open the total, from its file."
            )

    def release(self) -> None:
        """Let the file go, as it is."""
        with self._gate:
            held, self._held, self._owner = self._held, -1, None
            if held >= 0 and this_process() == self._process:
                _let_go(self._connection)
                unlock(held)

    def _leave(self) -> None:
        """In a forked process: the file is the parent's, whose journal a close here could roll back."""
        _LEFT.append(self._connection)
        held, self._held = self._held, -1
        if held >= 0:
            unlock(held)  # the parent's stays

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # of one that was not made
            self.release()

    def __repr__(self) -> str:
        return f"SqliteLedger({self._path!r}, {len(self)} records)"


def mark_copy(path: str) -> None:
    """Mark a file as a copy: it is read as ever, and not gone on with before it has taken a place."""
    time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as copy:
            copy.execute("BEGIN IMMEDIATE")
            if copy.execute("SELECT 1 FROM sqlite_master WHERE name = 'copied'").fetchone() is None:
                copy.execute(COPIED)
                copy.execute("INSERT INTO copied VALUES (1, ?)", (time,))
            copy.execute("COMMIT")
    except sqlite3.Error as error:
        raise unusable(error, path, LedgerWriteError) from None


def receipt_of(ledger: Ledger, owner: str) -> Receipt:
    """Return the receipt of a ledger file, or raise `SessionStateError` if the owner's is in memory."""
    return file_of(ledger, owner).receipt


def file_of(ledger: Ledger, owner: str) -> SqliteLedger:
    """Return a ledger that is a file, or raise `SessionStateError` if the owner's is in memory."""
    if not isinstance(ledger, SqliteLedger):
        raise SessionStateError(
            f"{owner} must have a ledger file for a receipt, got one in memory; open it with "
            "ledger='FILE.db', table='LABEL'."
        )
    return ledger


def _losses(records: Sequence[Record], durability: str) -> list[int]:
    """Return the places after which a killed process may have lost easy answers.

    It had a reservation standing, which every test needs, and whose hit or forfeit writes all that waits.
    """
    places = []
    for place, record in enumerate(records):
        if isinstance(record, Resumed):
            durability = record.durability
        elif isinstance(record, Forfeited) and record.reason == "restarted" and durability != "all":
            places.append(place)
    return places


_OPEN: "weakref.WeakSet[SqliteLedger]" = weakref.WeakSet()
_LEFT: list[Any] = []  # connections that must not be closed
_HELD: list[SqliteLedger] = []  # while the process forks
_REGISTERED: list[bool] = []


def _register() -> None:
    """Let forks wait for writes: once for all ledgers, since a hook cannot be removed."""
    if _REGISTERED:
        return
    _REGISTERED.append(True)

    def before() -> None:
        for ledger in list(_OPEN):
            ledger._gate.acquire()
            _HELD.append(ledger)

    def release() -> None:
        while _HELD:
            _HELD.pop()._gate.release()

    def in_child() -> None:
        release()
        for ledger in list(_OPEN):
            ledger._leave()

    os.register_at_fork(before=before, after_in_parent=release, after_in_child=in_child)


def _connected(path: str) -> sqlite3.Connection:
    """Return a connection that has the file to itself, and whose commits are durable.

    Raises:
        LedgerError: If it cannot be had.
    """
    connection = _opened_by_sqlite(path)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE}")  # of a new file
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        (mode,) = connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
        connection.execute("PRAGMA synchronous = EXTRA")
        (level,) = connection.execute("PRAGMA synchronous").fetchone()
        if sys.platform == "darwin":  # there a plain sync leaves the drive's cache
            connection.execute("PRAGMA fullfsync = ON")
        if (mode, level) != ("truncate", 3):
            raise LedgerError(
                f"ledger must be written durably, got journal mode {shown(mode)} and level {level}; use "
                f"SQLite "
                "3.12 or newer."
            )
        # the lock is kept from here on: whoever read beside it would stop the first write
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
        return connection
    except (sqlite3.Error, ValueError) as error:  # of bytes that are no text, too
        _let_go(connection)
        raise _unreadable(path, error) from None
    except BaseException:
        _let_go(connection)
        raise


def _opened_by_sqlite(path: str) -> sqlite3.Connection:
    """Return a connection to a file that exists; to be read alone, where this user may not write it."""
    place = f"file:{urllib.parse.quote(os.fsencode(path))}?mode=rw"
    try:
        connection = sqlite3.connect(
            place, uri=True, isolation_level=None, timeout=0, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise _unreadable(path, error) from None
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        return connection
    except sqlite3.Error as error:
        _let_go(connection)
        raise _unreadable(path, error) from None
    except BaseException:
        _let_go(connection)
        raise


def _let_go(connection: sqlite3.Connection) -> None:
    """Close a connection; what SQLite says to that does not matter."""
    with contextlib.suppress(sqlite3.Error):
        connection.close()


def _read(connection: sqlite3.Connection, path: str) -> Written:
    """Return what a file holds, if every part of it is there.

    The chain tells an altered line; the head of it, kept in a row of its own, a missing end.
    """
    try:
        if connection.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
            raise sqlite3.DatabaseError
        _check_schema(connection, path)
        connection.execute("BEGIN")  # one snapshot
        rows = connection.execute("SELECT at, text, chain FROM line ORDER BY at").fetchall()
        heads = connection.execute("SELECT lines, chain FROM head").fetchall()
        connection.execute("COMMIT")
        if [row[0] for row in rows] != list(range(len(rows))):
            raise LedgerCorruptError(f"ledger must have every line, got a gap; {RESTORE}.")
        written = chained((text, link) for _, text, link in rows)
        if heads != [(len(rows), written.links[-1])]:
            raise LedgerCorruptError(
                f"ledger must end with the line of its head, got another end at place {len(rows) - 1}; "
                f"{RESTORE}."
            )
        written.check_beginning()
        return written
    except (sqlite3.Error, ValueError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: Exception) -> LedgerError:
    """Return what to raise of a file that SQLite does not read: it is in use, out of reach, or not whole."""
    name = getattr(error, "sqlite_errorname", None) or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LedgerLockedError(locked(path))
    # a read past the end is of a file that was cut
    if isinstance(error, sqlite3.Error) and failure_of(error)[1] and name != "SQLITE_IOERR_SHORT_READ":
        return unusable(error, path)
    return LedgerCorruptError(
        f"ledger must be a whole file of onlineic, got {shown(path, 300)}, which is not; {RESTORE}."
    )


def _check_schema(connection: sqlite3.Connection, path: str) -> None:
    """Raise unless a file is a ledger whose tables are those of now."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise sqlite3.DatabaseError
    if schema != SCHEMA:
        raise LedgerMismatchError(
            f"ledger must be of schema {SCHEMA}, got {shown(path, 200)} of schema {schema}; use the version "
            "of onlineic that wrote it."
        )


def read(path: str | os.PathLike[str]) -> Written:
    """Return what a closed ledger holds, without writing to it, also where nothing can be written.

    Raises:
        As `SqliteLedger.open`, but for what a reader needs no right to.:
    """
    real = _there(path)
    held = lock_to_read(real)
    try:
        connection = _opened_by_sqlite(real)
        try:
            return _read(connection, real)
        finally:
            _let_go(connection)
    finally:
        unlock(held)


def _there(path: str | os.PathLike[str]) -> str:
    """Return the real path of a ledger that is there."""
    real = checked_path(path)
    if not exists(real):
        raise LedgerCorruptError(
            f"ledger must be a file, got none at {shown(real, 300)}; correct the path; if it was lost, "
            f"{RESTORE}; if there never was one, open it with OnlineIC(data, budget, ledger=.., table=..)."
        )
    return real
