"""The arithmetic of a ledger: what an account holds after a record, whoever keeps the records.

A charge is reserved before the data are read. A release, or an interruption, uses up the whole reservation;
only a clean close gives back what no test has relied on.
"""

from collections.abc import Iterable, Sequence
from typing import final

import attrs

from onlineic.accounting.budget import Charge, Filter
from onlineic.errors import InternalError, LedgerMismatchError
from onlineic.ledger.records import (
    Certified,
    Closed,
    Drawn,
    Easy,
    EasyBatch,
    Forfeited,
    Paid,
    Record,
    Release,
    Reserved,
    Shared,
)

TESTED = (Easy, Certified, EasyBatch)


@final
@attrs.frozen
class Book:
    """An account and its standing reservation.

    Attributes:
        account: With all recorded charges spent; the standing reservation is not among them.
        reserved: The standing reservation.
    """

    account: Filter
    reserved: Charge | None = None

    def after(self, record: Record) -> "Book":
        """Return the book after one more record.

        Raises:
            BudgetExceededError: If the account cannot pay a reservation.
            InternalError: If something is used up that was not reserved.
        """
        if isinstance(record, Reserved):
            self.account.charge(record.charge)  # refuses what cannot be paid
            return Book(self.account, record.charge)
        if isinstance(record, Release):
            if self.reserved is None or record.charge.amount > self.reserved.amount:
                raise InternalError("a release must be reserved before it is committed, and come last.")
            # the whole reservation goes: a hit costs what was set aside for it
            return Book(self.account.charge(self.reserved), None)
        if isinstance(record, Forfeited):
            if self.reserved is None or record.charge.amount > self.reserved.amount:
                raise InternalError("what is forfeited must have been reserved.")
            return Book(self.account.charge(record.charge), None)
        if isinstance(record, Drawn):
            return Book(self.account.charge(record.taken.charge), self.reserved)
        if isinstance(record, Shared):
            return Book(record.account, self.reserved)
        return Book(self.account, None) if isinstance(record, Closed) else self

    def after_all(self, records: Iterable[Record]) -> "Book":
        """Return the book after these records."""
        book = self
        for record in records:
            if type(record) not in TESTED:  # the commonest: paid by the next hit
                book = book.after(record)
        return book


def name_payer(paid: dict[int, str], length: int, records: Sequence[Record], payer: str | None) -> list[Paid]:
    """Enter who pays for the last of the records that a step adds to so many, if it is charged; return that.

    Whom a step has named that was interrupted pays for nothing.
    """
    while paid and next(reversed(paid)) >= length:
        paid.popitem()
    if payer is None or not isinstance(records[-1], Release | Forfeited):
        return []
    place = length + len(records) - 1
    paid[place] = payer
    return [Paid(place, payer)]


def check_commit(records: Sequence[Record]) -> None:
    """Raise `InternalError` unless a release in one commit comes last and alone."""
    if len(records) > 1 and any(isinstance(record, Release) for record in records[:-1]):
        raise InternalError("a release must be reserved before it is committed, and come last.")


def check_claim(held: Filter, account: Filter, drawn_private: bool, private: bool) -> None:
    """Raise `LedgerMismatchError` unless what is recorded was spent from this account, under such noise."""
    if private is not drawn_private:
        raise LedgerMismatchError(
            "ledger must hold what was drawn by the same kind of noise, got what was drawn from "
            "another; give the noise that it was opened with."
        )
    if attrs.evolve(held, spent=account.spent) != account:
        raise LedgerMismatchError(
            f"ledger must be of an account of {held.capacity} {held.unit}, got "
            f"{account.capacity} {account.unit}; open the session as it was opened."
        )
