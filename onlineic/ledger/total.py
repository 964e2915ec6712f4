"""The one budget of a table: whatever is released of it draws on this, before it reads the table.

What each takes is settled by what is proven of it alone (`accounting.table_charge`), and is taken whole when
it begins. Epsilons and deltas add, until what is left becomes a filter of which sessions take shares. A file
makes the total outlive its process; without one every process is a new total.

Proof: docs/theory/ledger-and-restarts.md, 4.7; docs/theory/queries.md, 1.9.
"""

import contextlib
import datetime
import functools
import os
from collections.abc import Iterable
from fractions import Fraction
from typing import Literal, NoReturn, final

import attrs

from onlineic.accounting.budget import Budget, Filter
from onlineic.accounting.composition import zcdp_order
from onlineic.accounting.neighbours import ADD_REMOVE, AddRemove
from onlineic.accounting.of_table import TableCharge, per_person, per_row, share_of, table_charge
from onlineic.accounting.renyi import renyi_capacity
from onlineic.accounting.rounding import float_down
from onlineic.errors import (
    BudgetExceededError,
    ForkedSessionError,
    InvalidParameterError,
    LedgerCorruptError,
    LedgerError,
    SessionStateError,
    checked_integer,
    checked_ratio,
    shown,
)
from onlineic.ledger.forks import this_process
from onlineic.ledger.kinds import Line, account_from_json
from onlineic.ledger.lines import Receipt, Written
from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.place import exists
from onlineic.ledger.records import Drawn, Ledger, Noted, Record, Shared
from onlineic.ledger.sessions import Sessions
from onlineic.ledger.settings import (
    beginning_of_total,
    check_kind,
    check_label,
    check_settings,
    checked_label,
    package_version,
    settings_from_json,
    settings_to_json,
)
from onlineic.ledger.sqlite import SqliteLedger, receipt_of
from onlineic.reentry import NonReentrantLock
from onlineic.slips import public

APART = Fraction(1, 10)  # of delta: costs less than a hundredth of the capacity
KNOWN = {"AddRemove": AddRemove, "Budget": Budget}


@public
@final
class TableBudget:
    """One (epsilon, delta) for all that is ever released of a table, by sessions, mechanisms and baselines.

    After `PrivateData.draw_on(total)` nothing on that table is released without it. Epsilons and deltas add,
    so that one session can have all of it. With delta > 0 the first `share` turns the rest into a Renyi
    filter of one order, on which everything later is drawn. Sessions of shares are planned at that order:
    m equal ones have about sqrt(m) times the noise of one session, not m times.

    Theory 4.7: sums, and filters of one order with pure and other mechanisms between them.

    Args:
        budget: Of the table, for its neighbours.
        order: Above 1. Renyi order of a filter that all is drawn on from the start, as many small mechanisms
            do best. None: that which pays for about the most Gaussian noise, from the first share on; from
            the start where the number of records is private (`accounting.ADD_REMOVE`), since each session
            draws for that besides.
        apart: In [0, 1). Part of delta, with the filter, for mechanisms whose price at its order is not
            known, each of which takes its own delta from it. Pure ones take none.
        rows_per_person: At least 1. The most rows that a person can have: the budget is a person's.
        ledger: File in which it outlives this process: one that exists goes on. One process at a time has it.
        table: With a file: the public name of the table and its release.
        receipt: As `receipt` returned it at any time: an older copy of the file is refused.

    Raises:
        LedgerError: If the file is open, not whole, of another table or another budget, or cannot be written.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        order: Fraction | None = None,
        apart: Fraction = APART,
        rows_per_person: int = 1,
        ledger: str | os.PathLike[str] | None = None,
        table: str | None = None,
        receipt: Receipt | str | None = None,
    ) -> None:
        if hasattr(self, "_ledger"):
            raise SessionStateError("a total must be opened once, got __init__ again; open a new one.")
        if getattr(budget, "order", None) is not None or type(budget) is not Budget:
            raise InvalidParameterError(
                f"budget must be a Budget without an order, got a {type(budget).__name__}; write "
                "Budget(1.0, 1e-9)."
            )
        rows = checked_integer("rows_per_person", rows_per_person, at_least=1)
        part = checked_ratio("apart", apart, at_least=0.0, below=1.0)
        whole = per_row(budget, rows)
        if order is None and budget.neighbours == ADD_REMOVE and not whole.pure:
            order = zcdp_order(whole.epsilon, float_down((1 - part) * whole.delta_exact))
        account = _account(whole, order, part)
        wish = account.order
        settings = {"budget": budget, "order": wish, "apart": part, "rows_per_person": rows}
        written = {name: settings_to_json(value, KNOWN) for name, value in settings.items()}
        self._budget, self._rows = budget, rows
        self._lock, self._process, self._closed = NonReentrantLock("a total"), this_process(), False
        self._sessions = Sessions()
        self._ledger: SqliteLedger | MemoryLedger
        if ledger is None:
            if table is not None or receipt is not None:
                raise InvalidParameterError(
                    "table and receipt must be None without a ledger file, got one; give ledger='FILE.db'."
                )
            self._ledger = MemoryLedger()
            self._ledger.claim(self, account)
            self._begun = Standing.begun(whole, part, account)
            return
        self._ledger = _opened(ledger, checked_label(table), written, account, receipt)
        try:
            held = account_from_json(self._ledger.beginning["account"])
            if held != _account(whole, held.order, part):
                raise LedgerCorruptError(
                    f"ledger must hold the capacity of {budget}, got another; restore "
                    "it from a backup, and give its newest receipt."
                )
            self._begun = Standing.begun(whole, part, held)
            self._ledger.claim(self, self._ledger.account)
            _check_drawn(self._ledger.records(), self._begun)
        except BaseException:
            self._ledger.release()
            raise

    @property
    def budget(self) -> Budget:
        """Of the table, all that is drawn together."""
        return self._budget

    @property
    def rows_per_person(self) -> int:
        """The most rows of a person: the budget is a person's; shares and draws are those of one row."""
        return self._rows

    @property
    def order(self) -> Fraction | None:
        """The Renyi order of the filter that it is; None: epsilons and deltas add."""
        return self._ledger.account.order

    @property
    def sessions(self) -> Sessions:
        """Of all loads of the table in this process."""
        return self._sessions

    @property
    def drawn(self) -> tuple[Drawn, ...]:
        """What has drawn on it, in order."""
        return tuple(record for record in self._ledger.records() if isinstance(record, Drawn))

    def known(self, file: str) -> Receipt | None:
        """Return how far the ledger file of a session was when it was last heard of; None: it never drew.

        Args:
            file: As in `Drawn`.
        """
        return last_heard(self._ledger.records()).get(file)

    def check_newest(self, ledger: Ledger) -> None:
        """Raise `LedgerRollbackError` if a session's file is older than it was known to be."""
        known = self.known(ledger.file) if isinstance(ledger, SqliteLedger) else None
        if isinstance(ledger, SqliteLedger) and known is not None:
            ledger.check_newest(known, "what the total of its table knows")

    @property
    def _standing(self) -> "Standing":
        return self._begun.after_all(self._ledger.records())

    @property
    def left(self) -> Fraction:
        """The part that is left, in [0, 1]: of epsilon, from the first share on of the filter."""
        account = self._ledger.account
        return account.left / account.capacity

    @property
    def apart_left(self) -> Fraction:
        """The delta that is left for mechanisms that take their own."""
        return self._standing.delta

    @property
    def receipt(self) -> Receipt:
        """Length and head of the file: an older copy is refused by it.

        Raises:
            SessionStateError: Without a ledger file.
        """
        return receipt_of(self._ledger, "total")

    def share(self, part: float | Fraction) -> Budget:
        """Return the budget of a session that takes a part of the whole.

        Its epsilon and delta are those of that session alone, for one row; all shares together keep the
        budget of the table, for a person.

        Args:
            part: In (0, 1]. Of all, not of what is left; where something was drawn before the first share, of
                what that left.

        Raises:
            InvalidParameterError: If it is outside its range, or too small to pay for anything.
            BudgetExceededError: If what is left is too little for a filter.
        """
        exact = checked_ratio("part", part, above=0.0, at_most=1.0)
        near = exact.limit_denominator(10**6)  # ten times 0.1 shall fit
        exact = near if isinstance(part, float) and abs(near - exact) <= exact * Fraction(1, 2**52) else exact
        standing = self._standing
        if standing.whole.pure:
            return Budget(
                float_down(exact * standing.account.capacity),
                allow_large_epsilon=True,
                neighbours=self._budget.neighbours,
            )
        account = standing.shared().account if standing.account.order is None else standing.account
        if not account.capacity:
            raise BudgetExceededError(
                "the total of the table must have left enough for a filter that shares are of, got "
                f"epsilon={float(standing.account.left):.4g} and delta={float(standing.delta):.4g} left; "
                "nothing was spent: give what is left to one session, as its Budget."
            )
        chosen, delta = account.order or standing.order, standing.conversion_delta
        return share_of(exact * account.capacity, chosen, delta, self._budget.neighbours)

    def check(self, budget: Budget, account: Filter | None = None, file: str = "") -> TableCharge:
        """Return what a mechanism would take, if that is left.

        Args:
            budget, account, file: As in `Drawn`.

        Raises:
            BudgetExceededError: If it is not; nothing was spent, and nothing read.
            InvalidParameterError: If it has a delta, and the total has none.
        """
        return self._taken(budget, account, file)[1]

    def _taken(self, budget: Budget, account: Filter | None, file: str) -> tuple[list[Shared], TableCharge]:
        """Return what `check` does, after the record that makes a filter of what is left, if this does."""
        self._check_open()
        if budget.neighbours != self._budget.neighbours:
            raise InvalidParameterError(
                f"budget must be for the neighbours of the total, {self._budget.neighbours}, got one for "
                f"{budget.neighbours}; nothing was spent: take total.share(part)."
            )
        standing, made = self._standing, list[Shared]()
        if standing.opened_by(budget):
            made = [standing.shared()]
            standing = standing.after(made[0])
        taken = table_charge(standing.account, budget, account, "drawn on the total of the table")
        if self._has_paid(file):
            return [], taken
        if not _of_share(budget, account):
            raise InvalidParameterError(
                f"account must be that of the share at its Renyi order {float(budget.order or 0):g}, got "
                "another; nothing was spent: plan the session with the share alone."
            )
        if taken.apart and standing.whole.pure:
            raise InvalidParameterError(
                f"delta must be 0 under a total of a table with delta=0, got delta={budget.delta}; give the "
                "total a delta, or write Budget(epsilon)."
            )
        whole, left = standing.account.capacity or taken.charge.amount, standing.account.left
        most = f"take at most Budget({shown(float_down(left))}, {shown(float_down(standing.delta))})"
        if not standing.account.affords(taken.charge):
            less = most if standing.account.order is None else "take less, such as total.share(total.left)"
            raise BudgetExceededError(
                f"the total of the table must have left what is drawn, got {self._told(budget)}, which takes "
                f"{float(taken.charge.amount / whole):.4g} of it, with {float(left / whole):.4g} left; "
                f"nothing was spent: {less}."
            )
        if taken.apart > standing.delta:
            other = "open a session with total.share(part), use a pure mechanism, or lower delta"
            raise BudgetExceededError(
                f"the total of the table must have left, or set apart, the delta that is drawn, got "
                f"{self._told(budget)} with {float(standing.delta):.4g} left of it; nothing was spent: "
                f"{most if standing.account.order is None else other}."
            )
        return made, taken

    def draw(
        self,
        budget: Budget,
        account: Filter | None = None,
        what: Literal["session", "release"] = "release",
        file: str = "",
    ) -> None:
        """Take what a mechanism costs, for good; a session whose file is known has taken it before.

        Raises:
            BudgetExceededError, InvalidParameterError: As `check`.
            LedgerError: If it cannot be made durable.
            SessionStateError: If a signal's handler draws while another draw runs: what is left was looked up
                before it.
        """
        self._check_process()  # before the lock: in a forked process nobody may ever open it
        self._lock.run(functools.partial(self._draw, budget, account, what, file))

    def _draw(
        self, budget: Budget, account: Filter | None, what: Literal["session", "release"], file: str
    ) -> None:
        made, taken = self._taken(budget, account, file)
        if not self._has_paid(file):
            # it is written anyway: with how far the files of the sessions are that are open
            drawn = Drawn(taken, budget, account, what, file)
            self._ledger.commit([*self._advanced(self._sessions.ledgers()), *made, drawn])

    def note(self, ledger: Ledger) -> None:
        """Keep how far the file of a session is, durably, if it drew: older copies are refused from then on.

        Raises:
            LedgerError: If it cannot be made durable, or the total is closed.
            SessionStateError: As `draw`.
        """
        self._check_open()
        self._lock.run(functools.partial(self._note, [ledger]))

    def _note(self, ledgers: Iterable[Ledger]) -> None:
        advanced = self._advanced(ledgers)
        if advanced:
            self._ledger.commit(advanced)

    def _advanced(self, ledgers: Iterable[Ledger]) -> list[Noted]:
        """Return what is new of the files of sessions that drew."""
        known = last_heard(self._ledger.records())
        return [
            Noted(ledger.file, receipt.lines, receipt.head)
            for ledger in ledgers
            if isinstance(ledger, SqliteLedger) and ledger.held and ledger.file in known
            if (receipt := ledger.receipt).lines > known[ledger.file].lines
        ]

    def _has_paid(self, file: str) -> bool:
        """Return whether this is the file of a session that has drawn; "" is no file."""
        return bool(file) and any(one.file == file for one in self.drawn)

    def close(self) -> None:
        """Let the file go. Nothing can draw on it any more; sessions that are open go on."""
        if this_process() == self._process:  # else the file is the parent's
            self._lock.run(self._close)

    def _close(self) -> None:
        if not self._closed and self._ledger.held:
            with contextlib.suppress(LedgerError):  # of a disk that is full: what was noted before stands
                self._note(self._sessions.ledgers())
        self._closed = True
        self._ledger.give_back(self)

    def __enter__(self) -> "TableBudget":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_process(self) -> None:
        if this_process() != self._process:
            raise ForkedSessionError(
                "total must be used in the process that opened it, got a forked one: both would spend it; "
                "draw on it in one process."
            )

    def _check_open(self) -> None:
        self._check_process()
        if self._closed:
            raise LedgerError("total must be open to be drawn on, got a closed one; open its file again.")

    def _told(self, budget: Budget) -> str:
        """Return the budget of one row in the unit of the total."""
        person = f" of a person with {self._rows} rows" if self._rows > 1 else ""
        return f"{per_person(budget, self._rows)}{person}"

    def __repr__(self) -> str:
        persons = f"rows_per_person={self._rows}, " if self._rows > 1 else ""
        return (
            f"TableBudget(epsilon={self._budget.epsilon:g}, delta={self._budget.delta:g}, {persons}"
            f"{len(self.drawn)} drawn, {float(self.left):.4g} left)"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "TableBudget cannot be copied or pickled: a copy would be spent again; open its file anew."
        )


def _account(whole: Budget, order: Fraction | None, apart: Fraction) -> Filter:
    """Return the filter that a total begins with, nothing spent: of epsilon, or of an order."""
    if order is None:
        return Filter(whole.epsilon_exact)
    if whole.pure:
        raise InvalidParameterError(f"order must be None with delta=0, got order={shown(order)}.")
    chosen = checked_ratio("order", order, above=1.0)
    capacity = renyi_capacity(chosen, whole.epsilon, float_down((1 - apart) * whole.delta_exact))
    if capacity == 0:
        raise InvalidParameterError(
            f"order must leave a capacity at {whole}, got order={float(chosen):g}, which leaves none; leave "
            "it out, or raise epsilon or delta."
        )
    return Filter(Fraction(capacity), "ticks", chosen)


@final
@attrs.frozen
class Standing:
    """How a total adds, and what is left of it, after some of its records.

    Attributes:
        whole: Of the total, for one row.
        part: Of the delta that is left when it becomes a filter, what is set apart then.
        account: With what is spent.
        delta: What is left for mechanisms that take their own.
    """

    whole: Budget
    part: Fraction
    account: Filter
    delta: Fraction

    @classmethod
    def begun(cls, whole: Budget, part: Fraction, account: Filter) -> "Standing":
        """Return the standing of a new total: where it adds, all of its delta is there to be taken."""
        delta = whole.delta_exact if account.order is None else part * whole.delta_exact
        return cls(whole, part, account, delta)

    @property
    def conversion_delta(self) -> float:
        """Of a share, for what it promises alone."""
        return float_down((1 - self.part) * self.whole.delta_exact)

    @property
    def order(self) -> Fraction:
        """At which shares of a total that adds are planned."""
        return zcdp_order(self.whole.epsilon, self.conversion_delta)

    def opened_by(self, budget: Budget) -> bool:
        """Whether this is the first share of a total that adds."""
        adds = self.account.order is None and not self.whole.pure
        return adds and budget.order is not None and budget.order == self.order

    def shared(self) -> Shared:
        """Return what makes a filter of all that is left, a part of the delta set apart.

        Its capacity is that of the epsilon and the delta that are left, rounded down: what it pays for is one
        mechanism of that budget, which adds to what was drawn before.
        """
        epsilon, delta = float_down(self.account.left), float_down((1 - self.part) * self.delta)
        capacity = renyi_capacity(self.order, epsilon, delta) if min(epsilon, delta) > 0.0 else 0
        return Shared(Filter(Fraction(capacity), "ticks", self.order), self.part * self.delta)

    def after(self, record: Record) -> "Standing":
        """Return the standing after one more record, which was checked to be payable."""
        if isinstance(record, Shared):
            return attrs.evolve(self, account=record.account, delta=record.apart)
        if isinstance(record, Drawn):
            account = self.account.charge(record.taken.charge)
            return attrs.evolve(self, account=account, delta=self.delta - record.taken.apart)
        return self

    def after_all(self, records: Iterable[Record]) -> "Standing":
        """Return the standing after these records."""
        return functools.reduce(Standing.after, records, self)


def _opened(
    path: str | os.PathLike[str],
    table: str,
    settings: Line,
    account: Filter,
    receipt: Receipt | str | None,
) -> SqliteLedger:
    """Return the file of a total, made if there is none."""
    if not exists(path):
        if receipt is not None:
            raise LedgerCorruptError(
                f"ledger must be there to go on from a receipt, got none at "
                f"{shown(os.fspath(path), 200)}; restore "
                "it from a backup, and give its newest receipt."
            )
        return SqliteLedger.create(
            path,
            beginning_of_total(
                created=datetime.datetime.now(datetime.UTC).isoformat(),
                version=package_version(),
                table=table,
                account=account,
                settings=settings,
            ),
            "all",
        )
    ledger = SqliteLedger.open(path, "all", receipt)
    try:
        check_kind(ledger.beginning, total=True)
        check_label(ledger.beginning, table)
        check_settings(ledger.beginning, settings)
        return ledger
    except BaseException:
        ledger.release()
        raise


def _check_drawn(records: tuple[Record, ...], begun: Standing) -> None:
    """Refuse a file in which something took less than it costs."""
    problems = drawn_problems(records, begun)
    if problems:
        raise LedgerCorruptError(
            f"ledger must hold what each mechanism takes of the total, got another: {problems[0]}; restore "
            "it from a backup, and give its newest receipt."
        )


def drawn_problems(records: tuple[Record, ...] | list[Record], begun: Standing) -> list[str]:
    """Return what does not hold among the draws on a total, whose prices are computed again.

    Args:
        begun: Of the total before them.
    """
    problems, files, standing = [], set(), begun
    known: dict[str, Receipt] = {}
    for place, record in enumerate(records):
        if isinstance(record, Noted):
            if record.file not in known or record.lines <= known[record.file].lines:
                problems.append(f"record {place}: a file that did not draw, or was longer before")
        elif isinstance(record, Shared):
            if standing.account.order is not None or standing.whole.pure or record != standing.shared():
                problems.append(f"record {place}: another filter than what was left makes")
        elif not isinstance(record, Drawn):
            problems.append(f"record {place}: no draw on the total")
        known |= last_heard([record])
        if isinstance(record, Drawn):
            taken = table_charge(standing.account, record.budget, record.account, record.taken.charge.event)
            if taken != record.taken or not _of_share(record.budget, record.account):
                problems.append(f"record {place}: a draw that is charged another price than its own")
            if record.file and record.file in files:
                problems.append(f"record {place}: a session that was charged twice")
            files.add(record.file)
        try:
            standing = standing.after(record)
        except (BudgetExceededError, InvalidParameterError):
            return [*problems, f"record {place}: a draw that could not be paid"]
        if standing.delta < 0:
            return [*problems, f"record {place}: more delta than was left, or set apart"]
    return problems


def _of_share(budget: Budget, account: Filter | None) -> bool:
    """Whether a session's account is that of the share that stands beside it, if one does."""
    if budget.order is None or account is None:
        return True
    capacity = renyi_capacity(budget.order, budget.epsilon, budget.delta)
    return account == Filter(Fraction(capacity), "ticks", budget.order)


def last_heard(records: Iterable[Record]) -> dict[str, Receipt]:
    """Return how far each file was of a session that drew, when it was last heard of."""
    known: dict[str, Receipt] = {}
    for record in records:
        if isinstance(record, Drawn) and record.file:
            known[record.file] = Receipt(1, bytes.fromhex(record.file))
        if isinstance(record, Noted):
            known[record.file] = Receipt(record.lines, record.head)
    return known


def total_of(written: Written) -> tuple[Budget, Standing]:
    """Return the budget of a recorded total, and how it stood before its first record.

    Raises:
        LedgerCorruptError: If the capacity is not that of the budget.
    """
    settings, domain = written.beginning["settings"], written.domain()
    account = account_from_json(written.beginning["account"])
    try:
        budget = settings_from_json(settings["budget"], KNOWN, domain)
        apart = settings_from_json(settings["apart"], KNOWN, domain)
        whole = per_row(budget, settings["rows_per_person"])
        if settings_from_json(settings["order"], KNOWN, domain) not in (None, account.order):
            raise ValueError
        held = _account(whole, account.order, apart)
        begun = Standing.begun(whole, apart, account)
    except Exception:  # of a text that was put together by hand: whatever is wrong with it
        raise LedgerCorruptError(
            "ledger must hold the settings of a total, got others; restore "
            "it from a backup, and give its newest receipt."
        ) from None
    if account != held:
        raise LedgerCorruptError(
            f"ledger must hold the capacity of {budget}, got another; restore "
            "it from a backup, and give its newest receipt."
        )
    return budget, begun
