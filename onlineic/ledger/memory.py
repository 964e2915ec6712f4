"""A ledger in memory, without a file: every new process is a new budget, and budgets add."""

import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import Charge, Filter
from onlineic.errors import LedgerLockedError
from onlineic.ledger.book import Book, check_claim, check_commit
from onlineic.ledger.records import (
    Burned,
    Closed,
    Easy,
    EasyBatch,
    Hard,
    Ledger,
    Opened,
    Record,
    Reserved,
    UpdateFailed,
)


@final
@attrs.frozen
class _State:
    """What holds of a memory ledger; replaced as a whole by one assignment."""

    book: Book
    private: bool = True
    length: int = 0  # records behind it are of a step that was interrupted


@final
class MemoryLedger(Ledger):
    """A ledger that lives as long as its process."""

    __slots__ = ("_gate", "_owner", "_records", "_state")

    def __init__(self) -> None:
        self._gate = threading.Lock()  # of two sessions that claim at once one is refused
        self._owner: object = None
        self._records: list[Record] = []
        self._state = _State(Book(Filter(Fraction(0))))  # unclaimed, it pays for nothing

    @classmethod
    def holding(cls, records: Sequence[Record], account: Filter) -> "MemoryLedger":
        """Return a ledger in which these records stand: to replay a session, not to go on with it."""
        ledger = cls()
        ledger._state = _State(Book(account))
        ledger._write(records)
        return ledger

    def claim(self, owner: object, account: Filter, private: bool = True) -> None:
        with self._gate:
            if self._owner is not None or any(
                isinstance(record, Easy | EasyBatch | Hard) for record in self.records()
            ):
                raise LedgerLockedError("ledger must be new, got one of another session; leave it out.")
            if not self._state.length:
                self._state = _State(Book(account), private)
            else:
                check_claim(self.account, account, self._state.private, private)
            self._owner = owner

    def give_back(self, owner: object) -> None:
        if self._owner is owner:
            self._owner = None

    @property
    def account(self) -> Filter:
        return self._state.book.account

    @property
    def reserved(self) -> Charge | None:
        return self._state.book.reserved

    def reserve(self, charge: Charge) -> None:
        self._write([Reserved(charge)])

    def commit(self, records: Sequence[Easy | EasyBatch | Hard | Opened | UpdateFailed]) -> None:
        check_commit(records)
        self._write(records)

    def burn(self) -> None:
        if self.reserved is not None:
            self._write([Burned(self.reserved, "interrupted")])

    def close(self, kept: Charge | None, record: Closed) -> None:
        self._write([record] if kept is None else [Burned(kept, "closed"), record])

    def _write(self, records: Sequence[Record]) -> None:
        at = self._state
        book = at.book.after_all(records)
        del self._records[at.length :]
        self._records += records
        self._state = _State(book, at.private, at.length + len(records))  # here it happens

    def __len__(self) -> int:
        return self._state.length

    def records(self, start: int = 0, stop: int | None = None) -> tuple[Record, ...]:
        length = self._state.length
        return tuple(self._records[start : length if stop is None else min(stop, length)])

    def __repr__(self) -> str:
        return f"MemoryLedger({len(self)} records)"
