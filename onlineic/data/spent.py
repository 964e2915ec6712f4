"""What was spent on records, in this process: one list, whichever of the tables made of them it was spent on.

Proof: docs/theory/ledger-and-restarts.md, 4.7.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar, final

import attrs

from onlineic.accounting.budget import Budget, Filter
from onlineic.errors import InvalidParameterError
from onlineic.ledger.forks import renewed_by_forks, this_process
from onlineic.ledger.lines import Receipt
from onlineic.ledger.records import Ledger
from onlineic.ledger.sessions import Sessions
from onlineic.ledger.sqlite import SqliteLedger
from onlineic.ledger.total import TableBudget
from onlineic.reentry import NonReentrantLock

T = TypeVar("T")

_NUMBERS = itertools.count()  # in the order in which budgets were spent


@final
class Gate:
    """One lock for all tables of the process, from the look at what was spent to the entry.

    A signal's handler in the same thread is refused. Nothing that a caller can replace is called inside, as
    what shows a warning: it could wait for another thread that waits here.
    """

    def __init__(self) -> None:
        self.renew_locks()
        renewed_by_forks(self)

    def renew_locks(self) -> None:
        """Make a new lock, which nobody holds."""
        self._lock = NonReentrantLock("a table")

    def run(self, act: Callable[[], T]) -> T:
        """Return what `act` returns, alone.

        Raises:
            SessionStateError: If the thread is inside already; nothing is run.
        """
        return self._lock.run(act)


GATE = Gate()


class _Entry(NamedTuple):
    number: int
    budget: Budget  # of one row
    payer: object | None


@final
@attrs.define(eq=False, repr=False)
class Load:
    """Records that were loaded together, and what all tables that hold them have spent.

    Attributes:
        entries: Of budgets, in order.
        rows: The most rows of a person to whom anything was promised.
        sessions: Of all tables that hold them; with a total, of all that draw on it.
        files: Ledgers that were entered, by the link of their beginning, and how far each was as its last run
            began.
        process: That loaded them.
    """

    entries: list[_Entry] = attrs.field(factory=list)
    rows: int = 1
    total: TableBudget | None = None
    sessions: Sessions = attrs.field(factory=Sessions)
    files: dict[str, Receipt] = attrs.field(factory=dict)
    process: tuple[int, int] = attrs.field(factory=this_process)


@final
@attrs.frozen(eq=False, repr=False)
class Spent:
    """What was spent on the records of one table: those of one load or, of a union, of several.

    Attributes:
        payer: Whose account pays for what is spent together with all else of the same payer, as the root of a
            table that grows does; None: nobody's.
    """

    loads: tuple[Load, ...]
    payer: object | None = None

    @classmethod
    def together(cls, several: "Sequence[Spent]", payer: object | None = None) -> "Spent":
        """Return what was spent on a union.

        Raises:
            InvalidParameterError: If some records are there twice: one of them would count, and move an
                answer, as often.
        """
        loads = tuple(load for one in several for load in one.loads)
        if len({*map(id, loads)}) < len(loads):
            raise InvalidParameterError(
                "tables must be of different records, got some twice, as of a table and its projection or "
                "its union; give each table once."
            )
        return cls(loads, payer)

    def shares(self, other: "Spent") -> bool:
        """Return whether some records are those of another table."""
        return not {*map(id, self.loads)}.isdisjoint(map(id, other.loads))

    @property
    def budgets(self) -> list[Budget]:
        """All that were spent on any of the records, each of one row, in order."""
        return _in_order(entry for load in self.loads for entry in load.entries)

    @property
    def beside(self) -> list[Budget]:
        """Budgets to which another one adds: of records without a total, and of other payers."""
        return _in_order(
            entry
            for load in self.uncovered
            for entry in load.entries
            if self.payer is None or entry.payer is not self.payer
        )

    @property
    def uncovered(self) -> list[Load]:
        """The records without a total."""
        return [load for load in self.loads if load.total is None]

    @property
    def rows(self) -> int:
        """The most rows of a person to whom anything was promised."""
        return max(load.rows for load in self.loads)

    @property
    def total(self) -> TableBudget | None:
        """The total that covers the records, or some of them.

        Raises:
            InvalidParameterError: If there are several: what is planned as a share of one is none of another.
        """
        if len(found := self.totals) > 1:
            raise InvalidParameterError(
                "total must be one for all records of a table, got a union of tables with several; let these "
                "draw on one total."
            )
        return next(iter(found), None)

    @property
    def totals(self) -> list[TableBudget]:
        """Those that cover some of the records: parts of a union can draw on others once it is made."""
        return [*{id(load.total): load.total for load in self.loads if load.total is not None}.values()]

    @property
    def ledgers(self) -> list[Ledger]:
        """Those of all sessions of the records that still live."""
        return [ledger for held in self._sessions for ledger in held.ledgers()]

    @property
    def _sessions(self) -> list[Sessions]:
        return [*{id(load.sessions): load.sessions for load in self.loads}.values()]

    def holds(self, ledger: Ledger) -> bool:
        """Return whether a ledger was entered on all records."""
        return all(any(one is ledger for one in held.ledgers()) for held in self._sessions)

    def add(self, budget: Budget) -> None:
        """Enter a budget, for one row."""
        entry = _Entry(next(_NUMBERS), budget, self.payer)
        for load in self.loads:
            load.entries.append(entry)

    def promise(self, rows: int) -> None:
        """Enter that something was promised to those with so many rows."""
        for load in self.loads:
            load.rows = max(load.rows, rows)

    def knows_file(self, file: str) -> bool:
        """Return whether a ledger file was entered on all records."""
        return all(file in load.files for load in self.loads)

    def known(self, ledger: Ledger, budget: Budget | None, account: Filter | None) -> bool:
        """Return whether a ledger was entered with this budget and account on all records."""
        return all(held.known(ledger, budget, account) for held in self._sessions)

    def enter(self, ledger: Ledger, budget: Budget | None, account: Filter | None, file: str) -> None:
        """Enter a ledger, and its file."""
        for held in self._sessions:
            held.add(ledger, budget, account)
        if file:
            for load in self.loads:
                load.files.setdefault(file, Receipt(1, bytes.fromhex(file)))

    def note(self, ledger: SqliteLedger) -> None:
        """Enter how far the file of a ledger is whose run begins: an older copy of it would spend again."""
        for load in self.loads:
            load.files[ledger.file] = ledger.receipt

    def check_newest(self, ledger: SqliteLedger) -> None:
        """Raise `LedgerRollbackError` if the file of a ledger was longer as its last run began."""
        for load in self.loads:
            if (known := load.files.get(ledger.file)) is not None:
                ledger.check_newest(known, "what the table knows")

    def is_free(self, total: TableBudget) -> bool:
        """Return whether nothing was spent that this total would not know."""
        return all(load.total is total or not (load.entries or load.files) for load in self.loads)

    def cover(self, total: TableBudget) -> None:
        """Let one total cover all records: its sessions are those of all tables that draw on it."""
        for load in self.loads:
            load.total, load.sessions = total, total.sessions

    @property
    def is_here(self) -> bool:
        """Whether this process has loaded the records."""
        return all(load.process == this_process() for load in self.loads)


def _in_order(entries: Iterator[_Entry]) -> list[Budget]:
    """Return the budgets of entries, each once, in the order in which they were spent."""
    found = {entry.number: entry.budget for entry in entries}
    return [found[number] for number in sorted(found)]
