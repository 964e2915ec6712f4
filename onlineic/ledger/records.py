"""The record of a session: charges and releases, in order, with nothing private in it.

Order is the guarantee: a charge is reserved before the data are read, and a release is recorded before
anything is done with it. The ledger owns the account, and refuses a reservation that the account cannot pay.
`MemoryLedger` keeps that order without a file: every new process is a new budget, and budgets add.
"""

import abc
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Literal, final

import attrs

from onlineic._typing import Ints
from onlineic.accounting.budget import Charge, Filter
from onlineic.queries.ask import Guess, Question
from onlineic.queries.batch import Queries
from onlineic.queries.partitions import Measurement


@final
@attrs.frozen
class Reserved:
    """A charge set aside for the next hard answer, before the first test that it covers."""

    charge: Charge


@final
@attrs.frozen
class Easy:
    """A query answered by the hypothesis after its test: `guess` is the released integer, one a cell."""

    query: Question
    guess: Guess


@final
@attrs.frozen(eq=False)
class EasyBatch:
    """Queries answered by the hypothesis after their tests, in order: as many `Easy` records, as columns.

    Attributes
    ----------
    queries : Queries
        One or more, none constant.
    guesses : (m,) int64
        The released integers n 2^k f(hypothesis), each on the grid of its query.
    """

    queries: Queries
    guesses: Ints

    def __len__(self) -> int:
        return len(self.guesses)

    def __iter__(self) -> Iterator[Easy]:
        return map(Easy, self.queries, self.guesses.tolist())


@final
@attrs.frozen
class Hard:
    """A query whose test fired: the guess that was tested, the noisy answer, the charge it used up."""

    query: Question
    guess: Guess
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


Record = Reserved | Opened | Easy | EasyBatch | Hard | UpdateFailed | Burned
Release = Hard | Opened


class Ledger(abc.ABC):
    """Where a session records what it spends and releases; interface only.

    Every method acts as a whole or not at all, whatever interrupts it.
    """

    @abc.abstractmethod
    def claim(self, owner: object, account: Filter, private: bool = True) -> None:
        """Take the ledger for one session, its owner, which spends from this account.

        Parameters
        ----------
        private : bool
            Whether the session's noise is the system's: what was drawn from a seed is never taken over into
            a session that is stamped private.

        Raises
        ------
        LedgerLockedError
            If another session has it, or has tested queries under it: both would test against thresholds
            of their own under one reservation.
        LedgerMismatchError
            If what stands in it was spent from another account, or under noise of the other kind.
        """

    @abc.abstractmethod
    def give_back(self, owner: object) -> None:
        """Let another session claim the ledger, if this one has it: it was interrupted while it opened."""

    @property
    @abc.abstractmethod
    def account(self) -> Filter:
        """The account with all recorded charges spent; the standing reservation is not among them."""

    @property
    @abc.abstractmethod
    def reserved(self) -> Charge | None:
        """The standing reservation."""

    @abc.abstractmethod
    def reserve(self, charge: Charge) -> None:
        """Set a charge aside, durably, before the data are read; replaces a smaller reservation.

        Raises
        ------
        BudgetExceededError
            If the account cannot pay it; nothing has changed then.
        """

    @abc.abstractmethod
    def commit(self, records: Sequence[Easy | EasyBatch | Hard | Opened | UpdateFailed]) -> None:
        """Append records, durably, in one step; a release, which comes last, uses up the reservation.

        Raises
        ------
        InternalError
            If a release was not reserved.
        """

    @abc.abstractmethod
    def burn(self) -> None:
        """Use up the reservation without an answer."""

    @property
    def spent(self) -> Fraction:
        """Recorded charges and the standing reservation."""
        return self.account.spent + (self.reserved.amount if self.reserved is not None else 0)

    @abc.abstractmethod
    def __len__(self) -> int:
        """Return the number of records; a batch of easy answers is one."""

    @abc.abstractmethod
    def records(self, start: int = 0, stop: int | None = None) -> tuple[Record, ...]:
        """Return the records of these places, by default all, in order: the public transcript."""
