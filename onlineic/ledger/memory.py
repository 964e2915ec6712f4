"""A ledger in memory, without a file: every new process is a new budget, and budgets add."""

import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import Charge, Filter
from onlineic.errors import InternalError, LedgerLockedError, LedgerMismatchError
from onlineic.ledger.records import (
    Burned,
    Easy,
    EasyBatch,
    Hard,
    Ledger,
    Opened,
    Record,
    Release,
    Reserved,
    UpdateFailed,
)


@final
@attrs.frozen
class _Book:
    """What holds of a memory ledger; replaced as a whole by one assignment."""

    account: Filter
    private: bool = True
    reserved: Charge | None = None
    length: int = 0  # records behind it are of a step that was interrupted


@final
class MemoryLedger(Ledger):
    """A ledger that lives as long as its process."""

    __slots__ = ("_book", "_gate", "_owner", "_records")

    def __init__(self) -> None:
        self._gate = threading.Lock()  # of two sessions that claim at once one is refused
        self._owner: object = None
        self._records: list[Record] = []
        self._book = _Book(Filter(Fraction(0)))  # unclaimed, it pays for nothing

    def claim(self, owner: object, account: Filter, private: bool = True) -> None:
        with self._gate:
            if self._owner is not None or any(
                isinstance(record, Easy | EasyBatch | Hard) for record in self.records()
            ):
                raise LedgerLockedError("ledger must be new, got one of another session; leave it out.")
            book = self._book
            if not book.length:
                self._book = attrs.evolve(book, account=account, private=private)
            elif private is not book.private:
                raise LedgerMismatchError(
                    "ledger must hold what was drawn by the same kind of noise, got what was drawn from "
                    "another; leave the ledger out."
                )
            elif attrs.evolve(book.account, spent=account.spent) != account:
                raise LedgerMismatchError(
                    f"ledger must be of an account of {book.account.capacity} {book.account.unit}, got "
                    f"{account.capacity} {account.unit}; open the session as it was opened, or leave it out."
                )
            self._owner = owner

    def give_back(self, owner: object) -> None:
        if self._owner is owner:
            self._owner = None

    @property
    def account(self) -> Filter:
        return self._book.account

    @property
    def reserved(self) -> Charge | None:
        return self._book.reserved

    def reserve(self, charge: Charge) -> None:
        self.account.charge(charge)  # refuses what cannot be paid
        self._write([Reserved(charge)], self.account, charge)

    def commit(self, records: Sequence[Easy | EasyBatch | Hard | Opened | UpdateFailed]) -> None:
        account, reserved = self.account, self._book.reserved
        releases = [record for record in records if isinstance(record, Release)]
        if releases:
            (*before, release), last = releases, records[-1]
            if before or release is not last or reserved is None or release.charge.amount > reserved.amount:
                raise InternalError("a release must be reserved before it is committed, and come last.")
            # the whole reservation goes: a hit costs what was set aside for it
            account, reserved = account.charge(reserved), None
        self._write(records, account, reserved)

    def burn(self) -> None:
        reserved = self._book.reserved
        if reserved is not None:
            self._write([Burned(reserved, "interrupted")], self.account.charge(reserved), None)

    def _write(self, records: Sequence[Record], account: Filter, reserved: Charge | None) -> None:
        length = self._book.length
        del self._records[length:]
        self._records += records
        self._book = _Book(account, self._book.private, reserved, length + len(records))  # here it happens

    def __len__(self) -> int:
        return self._book.length

    def records(self, start: int = 0, stop: int | None = None) -> tuple[Record, ...]:
        length = self._book.length
        return tuple(self._records[start : length if stop is None else min(stop, length)])

    def __repr__(self) -> str:
        return f"MemoryLedger({len(self)} records)"
