"""The record of a session: charges and releases, in order, with nothing private in it.

Order is the guarantee: a charge is reserved before the data are read, and a release is recorded before
anything is done with it. The ledger owns the account, and refuses a reservation that the account cannot pay.
`MemoryLedger` keeps that order without a file: every new process is a new budget, and budgets add.
`SqliteLedger` keeps it in a file that outlives the process.
"""

import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NoReturn, final

import attrs

from onlineic._typing import Floats, Ints
from onlineic.accounting.budget import Budget, Charge, Filter
from onlineic.accounting.of_table import TableCharge
from onlineic.errors import InternalError, set_fields
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import Guess, Question
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import immutable
from onlineic.queries.within import Within


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
@attrs.frozen
class Certified:
    """A query answered by the hypothesis after a test at a height that certifies a wish.

    Attributes:
        guess: As of `Easy`.
        within: The wish, with the steepness of the test.
    """

    query: Query
    guess: int
    within: Within


@final
@attrs.frozen(eq=False)
class EasyBatch:
    """Queries answered by the hypothesis after their tests, in order: as many `Easy` records, as columns.

    Attributes:
        queries: One or more, none constant.
        guesses: Shape (m,). The released integers n 2^k f(hypothesis), each on the grid of its query.
    """

    queries: Queries
    guesses: Ints

    def __attrs_post_init__(self) -> None:
        set_fields(self, guesses=immutable(self.guesses))

    def __len__(self) -> int:
        return len(self.guesses)

    def __iter__(self) -> Iterator[Easy]:
        return map(Easy, self.queries, self.guesses.tolist())


@final
@attrs.frozen
class Hard:
    """A query whose test fired: the guess that was tested, the noisy answer, the charge it used up.

    Attributes:
        within: The wish that the test was made for, with its steepness, if there was one.
    """

    query: Question
    guess: Guess
    measurement: Measurement
    charge: Charge
    within: Within | None = None


@final
@attrs.frozen
class BoughtTables:
    """Tables that were bought without a test, and what they cost together.

    Attributes:
        heard: The questions about to be asked that the purchase rested on, beside the record before it.
        within: The wish that it was bought for: of a call that is one, these tables answer `heard`.
    """

    measurements: tuple[Measurement, ...]
    charge: Charge
    heard: tuple[Question, ...] = ()
    within: Within | None = None


@final
@attrs.frozen
class Single:
    """A question that was bought by itself, without a test: its noisy answer, and what that cost.

    Attributes:
        guess: What the hypothesis said of it before, as of `Easy`.
        measurement: Of the query, or of the partition of the cross table.
        within: The wish that it was bought for, if there was one.
    """

    query: Question
    guess: Guess
    measurement: Measurement
    charge: Charge
    within: Within | None = None

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """What was released, as of tables that are bought together."""
        return (self.measurement,)


@final
@attrs.frozen
class UpdateFailed:
    """The update after the latest hard answer failed; the hypothesis stayed as it was."""

    error: str  # class name only: a message could hold anything


IN_ORDER = ("closed", "bought")  # reasons for which tests of a kept threshold are paid, and no answer is lost


@final
@attrs.frozen
class Forfeited:
    """A reservation, or a part of it, that was used up without an answer.

    Attributes:
        reason: The session was interrupted after a read and sealed; its process ended with the reservation
            standing; it was closed after tests against a threshold whose noise is lost with the process; or
            tables were bought after such tests, whose threshold goes on and is paid from here on.
    """

    charge: Charge
    reason: Literal["interrupted", "restarted", "closed", "bought"]


@final
@attrs.frozen
class Closed:
    """The session was closed, and what stood reserved is given back.

    Attributes:
        constants, repeats, untested: Answers without a record of their own, over the whole life of the ledger
            as far as it was closed.
        rounding: Largest distance of such a query from the one written, fraction of records.
    """

    constants: int = 0
    repeats: int = 0
    untested: int = 0
    rounding: float = 0.0


@final
@attrs.frozen
class Resumed:
    """A process went on with the session: a new run, whose mechanism starts, and is paid, anew.

    Attributes:
        version: Of the package.
        durability: Of this process: with "hits" easy answers can have left it that no record holds.
    """

    version: str
    durability: Literal["hits", "all"] = "hits"


@final
@attrs.frozen
class Drawn:
    """What a session or a release takes from the total of its table, before it reads the data.

    Attributes:
        budget: What is proven of it alone.
        account: Its own, if it is a session.
        file: Of a session with a ledger file: the first link of its chain, by which it is known when it goes
            on.
    """

    taken: TableCharge
    budget: Budget
    account: Filter | None = None
    what: Literal["session", "release"] = "release"
    file: str = ""


@final
@attrs.frozen
class Shared:
    """What is left of a total that has added epsilons and deltas is a Renyi filter from here on.

    Attributes:
        account: Of what is drawn from here on.
        apart: Delta for what has no price at its order, of what is left.
    """

    account: Filter
    apart: Fraction


@final
@attrs.frozen
class Noted:
    """Length and head of the ledger file of a session that draws on the total of its table.

    Attributes:
        file: As in `Drawn`.
        lines: That were durable, at least.
        head: The link of the last of them.
    """

    file: str
    lines: int
    head: bytes


@final
@attrs.frozen
class BlockBegun:
    """A block of a table that grows: its records are all there, and no others will be.

    Attributes:
        label: Of the period.
        n: At least 0. Public number of records; 0: there are none.
        late: Whether records of earlier periods, which came late, may be among them.
        drawn: The number with its noise, where it is private: `n` is that, at least 1. None: it is public.
    """

    label: str
    n: int
    late: bool = False
    drawn: int | None = None


@final
@attrs.frozen
class CountPaid:
    """A block pays for its number of records, which is drawn after this: again, where a crash lost it.

    Attributes:
        label: Of the block, which is about to begin.
    """

    label: str
    charge: Charge


@final
@attrs.frozen
class NodeOpened:
    """A session over the union of some blocks, from each of which it takes its charge before it reads.

    Attributes:
        label: Of the period that they make.
        blocks: In order, those with records.
        file: Known by the link of its beginning, as in `Drawn`; "" in memory.
        charge: The most that it ever spends.
    """

    label: str
    blocks: tuple[str, ...]
    file: str
    charge: Charge


Committed = (
    Easy
    | Certified
    | EasyBatch
    | Hard
    | BoughtTables
    | Single
    | UpdateFailed
    | Drawn
    | Noted
    | Shared
    | CountPaid
    | BlockBegun
    | NodeOpened
)
Record = Committed | Reserved | Forfeited | Closed | Resumed
Bought = BoughtTables | Single  # without a test
Release = Hard | Bought
# what stands in the file of a total, or of a table that grows, and in no other
OfTotal = Drawn | Noted | Shared | CountPaid | BlockBegun | NodeOpened


@final
@attrs.frozen(eq=False, kw_only=True)
class Checkpoint:
    """What follows from the records before it, kept so that resuming is quick: public, and checked by replay.

    Attributes:
        records: How many records it follows from.
        values: Shape (m,). What was learned of each hard query among the records since the checkpoint before;
            NaN where nothing was asked for.
        version, failures: Updates of the hypothesis, and those that failed.
        parameters: From which the rule makes the same hypothesis, to the bit; None: as an earlier checkpoint
            of the same version says, or it repeats its updates.
    """

    records: int
    values: Floats
    version: int
    failures: int
    parameters: tuple[Floats, ...] | None = None


@final
@attrs.frozen
class ToldAnswer:
    """The number of a hard answer, kept so that repeats tell the same under later versions.

    Attributes:
        record: Place of the `Hard` record among the records.
        value: Fraction of records; of a cross table that of each cell, in order.
    """

    record: int
    value: float | tuple[float, ...]


@final
@attrs.frozen
class Paid:
    """Who asked for a release, and so pays for it; written in the transaction of the release.

    Attributes:
        record: Place of the release among the records, or of the forfeited reservation if it failed.
        name: A public name.
    """

    record: int
    name: str


def measured(record: Record) -> tuple[Measurement, ...]:
    """Return what an update rule is shown of a record: nothing, unless it is a release.

    A number that was bought answers its own question, and no others are read from it.
    """
    if isinstance(record, BoughtTables):
        return record.measurements
    if isinstance(record, Single) and isinstance(record.measurement.target, Partition):
        return (record.measurement,)
    alone = isinstance(record, Hard) and record.within is not None  # as a number that was bought
    return (record.measurement,) if isinstance(record, Hard) and not alone else ()


Annotation = Checkpoint | ToldAnswer | Paid  # about records, and none itself


class Ledger(abc.ABC):
    """Where a session records what it spends and releases; interface only.

    Every method acts as a whole or not at all, whatever interrupts it.
    """

    @abc.abstractmethod
    def claim(self, owner: object, account: Filter, private: bool = True) -> None:
        """Take the ledger for one session, its owner, which spends from this account.

        Args:
            private: Whether the session's noise is the system's: what was drawn from a seed is never taken
                over into a session that is stamped private.

        Raises:
            LedgerLockedError: If another session has it, or has tested queries under it: both would test
                against thresholds of their own under one reservation.
            LedgerMismatchError: If what stands in it was spent from another account, or under noise of the
                other kind.
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

        Raises:
            BudgetExceededError: If the account cannot pay it; nothing has changed then.
        """

    @abc.abstractmethod
    def commit(self, records: Sequence[Committed], payer: str | None = None) -> None:
        """Append records, durably, in one step; a release, which comes last, uses up the reservation.

        Args:
            payer: Who asked for the release, if there is one, and so pays for it; None: nobody by name.

        Raises:
            InternalError: If a release was not reserved.
        """

    @abc.abstractmethod
    def forfeit(self, payer: str | None = None) -> None:
        """Use up the reservation without an answer; `payer` as of `commit`."""

    @abc.abstractmethod
    def pay(self, kept: Charge, payer: str | None = None) -> None:
        """Give the reservation back, but for what easy tests have used up: tables are bought next.

        Args:
            payer: As of `commit`.

        Raises:
            InternalError: If more is kept than was reserved.
        """

    @abc.abstractmethod
    def close(self, kept: Charge | None, record: Closed) -> None:
        """Give the reservation back, but for what is `kept` as spent, and take no more records.

        Raises:
            InternalError: If more is kept than was reserved.
        """

    @property
    def file(self) -> str:
        """What identifies the file of the ledger; empty without one."""
        return ""

    @property
    def held(self) -> bool:
        """Whether records can still be added: not once a file is closed."""
        return True

    @property
    def lasting(self) -> bool:
        """Whether the records outlive the process: a session keeps checkpoints in such a ledger."""
        return False

    @property
    def durability(self) -> Literal["hits", "all"] | None:
        """Which answers no crash can lose; None: the ledger ends with its process."""
        return None

    @property
    def broken(self) -> bool:
        """Whether the last write failed: nothing more is recorded."""
        return False

    def keep(self, annotation: Annotation) -> None:
        """Keep an annotation, durable with the next records; checkpoints only in a ledger that lasts."""
        raise InternalError("a ledger that ends with its process keeps no checkpoints.")

    @property
    def paid(self) -> Mapping[int, str]:
        """Who asked for releases, by the place of the record, as far as it was kept; in order."""
        return {}

    def gather(self) -> None:  # noqa: B027  (a ledger without a file has nothing to gather)
        """Write easy answers together from here on: none may be handed on before `settle` has returned."""

    def settle(self) -> None:  # noqa: B027
        """Make all durable that was gathered, in one write, and gather no more."""

    @property
    def told(self) -> Mapping[int, float | tuple[float, ...]]:
        """Numbers of hard answers, by the place of the record, as far as they were kept."""
        return {}

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """What was kept, oldest first."""
        return ()

    @property
    def durable(self) -> int:
        """How many records no crash can lose: what is planned from the record reads no others."""
        return len(self)

    def lost(self, records: int) -> int:
        """Return the most easy answers that killed processes gave and no record holds, up to this record."""
        return 0

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

    def record(self, place: int) -> Record:
        """Return the record of one place below the number of records."""
        return self.records(place, place + 1)[0]

    def merged(self, start: int, stop: int) -> Iterable[Record]:
        """Return the records of these places, easy ones that are held as columns in batches of any length."""
        return self.records(start, stop)


@final
class FrozenLedger(Ledger):
    """A view of a ledger as it is now: nothing can be added, and later records do not show."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._length = ledger, len(ledger)
        self._account, self._reserved = ledger.account, ledger.reserved

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise InternalError("a ledger of one moment takes no records.")

    claim = give_back = reserve = commit = forfeit = pay = close = keep = _refuse

    @property
    def account(self) -> Filter:
        return self._account

    @property
    def reserved(self) -> Charge | None:
        return self._reserved

    @property
    def lasting(self) -> bool:
        return self._ledger.lasting

    def lost(self, records: int) -> int:
        return self._ledger.lost(records)

    def __len__(self) -> int:
        return self._length

    def records(self, start: int = 0, stop: int | None = None) -> tuple[Record, ...]:
        return self._ledger.records(start, self._length if stop is None else min(stop, self._length))

    def merged(self, start: int, stop: int) -> Iterable[Record]:
        return self._ledger.merged(start, min(stop, self._length))
