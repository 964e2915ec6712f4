"""A ledger in memory, without a file: every new process is a new budget, and budgets add.

Proof: docs/theory/accounting.md, 2.3; docs/theory/session.md, 4.1.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import Charge, Filter
from onlineic.errors import InternalError, LedgerLockedError
from onlineic.ledger.book import Book, check_claim, check_commit, name_payer
from onlineic.ledger.kept import Kept
from onlineic.ledger.records import (
    Certified,
    Closed,
    Committed,
    Easy,
    EasyBatch,
    Forfeited,
    Hard,
    Ledger,
    Record,
    Reserved,
)

CLAIMED = "ledger must be new, got one of another session; make another (budgets add)."


@final
@attrs.define  # never written to; frozen it would take three times as long to make, once an answer
class _State:
    """The state of a memory ledger, replaced as a whole by one assignment."""

    book: Book
    private: bool = True
    kept: Kept = attrs.field(factory=Kept)


@final
class MemoryLedger(Ledger):
    """A ledger that lives as long as its process."""

    __slots__ = ("_owners", "_paid", "_state")

    def __init__(self) -> None:
        # at most one, entered in one step: a lock would stay shut after an interrupt, or in a forked process
        self._owners: dict[str, object] = {}
        self._state = _State(Book(Filter(Fraction(0))))  # unclaimed, it pays for nothing
        self._paid: dict[int, str] = {}

    @classmethod
    def holding(cls, records: Sequence[Record], account: Filter) -> "MemoryLedger":
        """Return a ledger of these records, to replay a session and not to go on with it."""
        ledger = cls()
        ledger._state = _State(Book(account))
        ledger._write(records)
        return ledger

    def claim(self, owner: object, account: Filter, private: bool = True) -> None:
        if self._owners or self._owners.setdefault("one", owner) is not owner:
            raise LedgerLockedError(CLAIMED)
        try:
            if any(isinstance(record, Easy | Certified | EasyBatch | Hard) for record in self.records()):
                raise LedgerLockedError(CLAIMED)
            if self._state.kept:
                check_claim(self.account, account, self._state.private, private)
            else:
                self._state = _State(Book(account), private)
        except BaseException:
            self.give_back(owner)
            raise

    def give_back(self, owner: object) -> None:
        if self._owners.get("one") is owner:
            self._owners.clear()

    @property
    def account(self) -> Filter:
        return self._state.book.account

    @property
    def reserved(self) -> Charge | None:
        return self._state.book.reserved

    def reserve(self, charge: Charge) -> None:
        self._write([Reserved(charge)])

    def commit(self, records: Sequence[Committed], payer: str | None = None) -> None:
        if len(records) > 1:
            check_commit(records)
        self._write(records, payer)

    def forfeit(self, payer: str | None = None) -> None:
        if self.reserved is not None:
            self._write([Forfeited(self.reserved, "interrupted")], payer)

    def pay(self, kept: Charge, payer: str | None = None) -> None:
        self._write([Forfeited(kept, "bought")], payer)

    def close(self, kept: Charge | None, record: Closed) -> None:
        self._write([record] if kept is None else [Forfeited(kept, "closed"), record])

    def _write(self, records: Sequence[Record], payer: str | None = None) -> None:
        at = self._state
        # an easy answer alone, the commonest record, is paid by the next hit
        book = at.book if len(records) == 1 and type(records[0]) is Easy else at.book.after_all(records)
        state = _State(book, at.private, at.kept.followed_by(records))
        if payer is not None or self._paid:
            name_payer(self._paid, len(at.kept), records, payer)
        # what a signal's handler has written meanwhile is not erased; no call after this lets another in
        if self._state is not at:
            raise InternalError("a ledger must be written by one step at a time, not by a signal's handler.")
        self._state = state  # here it happens

    @property
    def paid(self) -> Mapping[int, str]:
        return self._paid

    def __len__(self) -> int:
        kept = self._state.kept
        return kept.starts[-1] + kept.count

    def records(self, start: int = 0, stop: int | None = None) -> tuple[Record, ...]:
        kept = self._state.kept
        return kept.between(*slice(start, stop).indices(kept.starts[-1] + kept.count)[:2])

    def record(self, place: int) -> Record:
        return self._state.kept.at(place)

    def merged(self, start: int, stop: int) -> Iterable[Record]:
        for part in self._state.kept.slices(start, stop):
            yield from [part] if isinstance(part, EasyBatch) else part

    def __repr__(self) -> str:
        return f"MemoryLedger({len(self)} records)"
