"""The record of a session: charges and releases, in order, with nothing private in it.

Order is the guarantee: a charge is reserved before the data are read, and a hard answer is committed before
anything is done with it. `MemoryLedger` keeps that order without a file: every new process is a new budget,
and budgets add.
"""

import abc
from fractions import Fraction
from typing import Literal, final

import attrs

from onlineic.accounting import Charge
from onlineic.errors import InternalError, LedgerLockedError
from onlineic.marginals import BoundMarginal
from onlineic.queries import Measurement, Query

__all__ = ["Burned", "Easy", "Hard", "Ledger", "MemoryLedger", "Opened", "Record", "Reserved", "UpdateFailed"]


@final
@attrs.frozen
class Reserved:
    """A charge set aside for the next hard answer, before the first test that it covers."""

    charge: Charge


@final
@attrs.frozen
class Easy:
    """A query answered by the hypothesis after its test: `guess` is the released integer, one a cell."""

    query: Query | BoundMarginal
    guess: int | tuple[int, ...]


@final
@attrs.frozen
class Hard:
    """A query whose test fired: the guess that was tested, the noisy answer, the charge it used up."""

    query: Query | BoundMarginal
    guess: int | tuple[int, ...]
    measurement: Measurement
    charge: Charge


@final
@attrs.frozen
class Opened:
    """Tables that the session bought before its first query, and what they cost together."""

    measurements: tuple[Measurement, ...]
    charge: Charge


@final
@attrs.frozen
class UpdateFailed:
    """The update after the latest hard answer failed; the hypothesis stayed as it was."""

    error: str  # class name only: a message could hold anything


@final
@attrs.frozen
class Burned:
    """The reservation was used up by an interrupted answer; the session is sealed."""

    charge: Charge
    reason: Literal["interrupted"]


Record = Reserved | Opened | Easy | Hard | UpdateFailed | Burned


class Ledger(abc.ABC):
    """Where a session records what it spends and releases; interface only."""

    @abc.abstractmethod
    def claim(self) -> None:
        """Take the ledger for one session.

        Raises
        ------
        LedgerLockedError
            If another one has it: both would test against thresholds of their own under one reservation.
        """

    @abc.abstractmethod
    def reserve(self, charge: Charge) -> None:
        """Set a charge aside, durably, before the data are read; replaces a smaller reservation."""

    @abc.abstractmethod
    def commit(self, release: Hard | Opened) -> None:
        """Record a release, durably, and use up the reservation."""

    @abc.abstractmethod
    def note(self, record: Easy | UpdateFailed) -> None:
        """Record what cost nothing."""

    @abc.abstractmethod
    def burn(self) -> None:
        """Use up the reservation without an answer."""

    @property
    @abc.abstractmethod
    def reserved(self) -> Charge | None:
        """The standing reservation."""

    @property
    @abc.abstractmethod
    def spent(self) -> Fraction:
        """Charges of hard answers and burns, and the standing reservation."""

    @abc.abstractmethod
    def records(self) -> tuple[Record, ...]:
        """Return all records in order: the public transcript."""


@final
class MemoryLedger(Ledger):
    """A ledger that lives as long as its process."""

    __slots__ = ("_claimed", "_records", "_reserved", "_spent")

    def __init__(self) -> None:
        self._claimed = False
        self._records: list[Record] = []
        self._reserved: Charge | None = None
        self._spent = Fraction(0)

    def claim(self) -> None:
        if self._claimed:
            raise LedgerLockedError("ledger must be new, got one of another session; leave it out.")
        self._claimed = True

    def reserve(self, charge: Charge) -> None:
        self._records.append(Reserved(charge))
        self._reserved = charge

    def commit(self, release: Hard | Opened) -> None:
        if self._reserved is None or release.charge.amount > self._reserved.amount:
            raise InternalError("a release must be reserved before it is committed.")
        self._records.append(release)
        # the whole reservation goes: a hit costs what was set aside for it
        self._spent += self._reserved.amount
        self._reserved = None

    def note(self, record: Easy | UpdateFailed) -> None:
        self._records.append(record)

    def burn(self) -> None:
        if self._reserved is not None:
            self._records.append(Burned(self._reserved, "interrupted"))
            self._spent += self._reserved.amount
            self._reserved = None

    @property
    def reserved(self) -> Charge | None:
        return self._reserved

    @property
    def spent(self) -> Fraction:
        return self._spent + (self._reserved.amount if self._reserved is not None else 0)

    def records(self) -> tuple[Record, ...]:
        return tuple(self._records)

    def __repr__(self) -> str:
        return f"MemoryLedger({len(self._records)} records)"
