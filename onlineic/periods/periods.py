"""A table that grows: each period a session with a whole budget, and ranges of periods answered from them.

A root ledger names blocks and nodes, and pays each node from every block that it covers before the node can
read. The session of a node has a ledger of its own beside it.

Proof: docs/theory/periods.md, 13.1, 13.2, 13.6, 13.7.
"""

import contextlib
import datetime
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Any, NoReturn, final

import attrs
import numpy as np

from onlineic.accounting.blocks import BlockAccount
from onlineic.accounting.budget import LARGEST_EPSILON, Budget, Filter, check_budget
from onlineic.accounting.composition import zcdp_order
from onlineic.accounting.neighbours import ADD_REMOVE, REPLACE_ONE, ReplaceRows
from onlineic.accounting.of_table import share_of, table_charge
from onlineic.accounting.renyi import laplace_charge, renyi_capacity
from onlineic.accounting.rounding import float_down
from onlineic.ask.sql_values import Value
from onlineic.data.private import MOST_COUNTED, RELATIONS, PrivateData, Relation, paid_by, united
from onlineic.data.release import check_data, check_outside, is_private
from onlineic.domain.dates import Dates, dates
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import (
    BudgetError,
    InvalidParameterError,
    LedgerCorruptError,
    LedgerMismatchError,
    LedgerWriteError,
    SessionStateError,
    check_choice,
    check_kind,
    checked_integer,
    checked_list,
    checked_ratio,
    checked_real,
    shown,
)
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.histogram import Histogram
from onlineic.ledger.kinds import account_from_json
from onlineic.ledger.lines import Receipt, Written
from onlineic.ledger.memory import MemoryLedger
from onlineic.ledger.place import exists
from onlineic.ledger.records import BlockBegun, BoughtTables, CountPaid, NodeOpened, Noted
from onlineic.ledger.settings import (
    beginning_of_total,
    check_label,
    check_settings,
    checked_label,
    package_version,
    settings_from_json,
    settings_to_json,
)
from onlineic.ledger.settings import (
    check_kind as check_kind_of_file,
)
from onlineic.ledger.sqlite import SqliteLedger, read, receipt_of
from onlineic.mechanisms.additive import LaplaceMechanism
from onlineic.noise.sources import Noise, SystemNoise, checked_source
from onlineic.periods.book import Counting, PeriodsBook
from onlineic.periods.calendar import Calendar
from onlineic.periods.persons import Persons
from onlineic.periods.pooled import BlockPurchases, Fit, Known
from onlineic.periods.ranges import NODE_SHARE, Range
from onlineic.plan.plan import Plan
from onlineic.plan.planning import session_plan
from onlineic.plan.settings import Settings
from onlineic.queries.answers import Answer
from onlineic.queries.counted import SHARE, divided_beta
from onlineic.queries.query import Query
from onlineic.questions.means import Derived
from onlineic.questions.statements import AnswerTable
from onlineic.session.counting import number_of
from onlineic.session.durable import Durability, planned
from onlineic.session.session import OnlineIC
from onlineic.slips import public

KNOWN = {"Budget": Budget, "Persons": Persons}
USUAL_LEVELS = ("month", "year")
FREE = ("ledger", "resumed", "closed")  # lines of a node's ledger that release nothing
KEPT_FITS = 32


@public
@final
class Periods:
    """Answers about a table that grows by periods, each of which has the whole budget.

    Everything that all periods together release is jointly (epsilon, delta)-differentially private for tables
    that differ in one record within one block, a period of the finest level. The number of records of every
    block is public. **In which period a record lies is not protected.** With `neighbours="add-remove"` tables
    differ in a record that is there or not: numbers of records are released with noise, and in which period
    a record lies is protected at twice the epsilon. A record is in one block alone; a person with records in
    several blocks has the loss of all of them, unless `persons` says in how many: then tables may differ in
    all rows of one person, and everything costs more.

    Theory 13.1 for the account of a block. Kostopoulou et al. (2023), Turbo, for blocks of time.

    Args:
        path: Of the root ledger; the ledgers of the nodes lie in a folder beside it. One that exists goes on.
            One process at a time has it. None: in memory, a new budget for every process.
        domain: Of the records, without their period.
        budget: Of every block, for as long as the table grows.
        levels: Iterable of "day", "month", "quarter" and "year". Finest first: that of the blocks. Nodes of
            the others are opened by `close`. By default months and years; of persons months alone, since a
            node over m blocks has the noise of all of their rows in it.
        shares: Of every level, the part of a block's capacity that one node of it draws; at most 1 together.
            By default equal parts: the noise of a node is sqrt(L) times that of a session with all of it. Of
            persons a node that holds r of a person's p rows may spend r/p of its share.
        persons: Whoever has rows in several blocks: `Persons(periods=3)`, at most one row a block in at most
            three, or `Persons(within=3)`, all within three consecutive ones. Load each block with
            `unit=Unit(person="id", units=1)`, which takes one row of each person by a public hash; of a table
            without, that is the curator's promise. None: one record is protected.
        neighbours: Whether one record is replaced by another, or comes or goes. With the second each block
            pays for its number of records before its session begins, 5 percent of what that may spend;
            coarser periods are told the sum. Load tables with the same. Of persons with the level of the
            blocks alone.
        n_at_most: With "add-remove": the most records of a block, from public knowledge, as its table was
            loaded. By default as many as a period of the coarsest level can have, 2^32, over its blocks.
        table: With a file: the public name of the table.
        load: The table of a block that was added earlier, when its node is needed again.
        beta: Failure probability of a stated bound over at most 64 nodes.
        max_queries: As of `OnlineIC`, for every node.
        receipt: As `receipt` returned it at any time: an older copy of the root ledger is refused.
        durability: Of every session, as of `OnlineIC`: a server needs "all".
        noise: Simulated noise stamps everything NOT PRIVATE, and meets no file.

    Raises:
        InvalidParameterError: If a parameter is outside its range, or a share pays for nothing.
        LedgerError: If the file is open, not whole, of another table, or was made with other settings.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        domain: Domain,
        budget: Budget,
        *,
        levels: Iterable[str] | None = None,
        shares: Iterable[float | Fraction] | None = None,
        persons: Persons | None = None,
        neighbours: Relation = "replace-one",
        n_at_most: int | None = None,
        table: str | None = None,
        load: Callable[[str], PrivateData] | None = None,
        beta: float = 0.05,
        max_queries: int = 10_000,
        receipt: Receipt | str | None = None,
        durability: Durability = "hits",
        noise: Noise | None = None,
    ) -> None:
        if hasattr(self, "_ledger"):
            raise SessionStateError("periods must be opened once, got __init__ again; open new ones.")
        check_domain(domain)
        check_budget(budget)
        if budget.order is not None or budget.neighbours != REPLACE_ONE:
            raise InvalidParameterError(
                "budget must be a Budget without an order or neighbours, got a share of a total or one of "
                'other neighbours; write Budget(1.0, 1e-9), and Periods(.., neighbours="add-remove").'
            )
        check_choice("neighbours", neighbours, *RELATIONS)
        if persons is not None:
            check_kind("persons", persons, Persons, remedy="write Persons(periods=3), or leave it out")
        usual = USUAL_LEVELS if persons is None else USUAL_LEVELS[:1]
        calendar = Calendar(usual if levels is None else levels)  # type: ignore[arg-type]  # makes a tuple
        parts = _checked_shares(shares, len(calendar.levels))
        if calendar.finest in domain.names:
            raise InvalidParameterError(
                f"domain must have no attribute {shown(calendar.finest)}, which is that of their periods; "
                "leave it out, or call it another name."
            )
        self._beta = checked_real("beta", beta, above=0.0, below=1.0)
        self._domain, self._budget, self._load = domain, budget, load
        self._settings = Settings(budget, beta=NODE_SHARE * self._beta, max_queries=max_queries)
        self._noise = None if noise is None else checked_source(noise)
        self._private = self._noise is None or is_private(self._noise)
        check_choice("durability", durability, "hits", "all")
        self._durability: Durability = durability
        self._lock, self._released = threading.RLock(), False
        self._data: dict[str, PrivateData] = {}
        self._payer = object()  # of all that its sessions spend
        self._sessions: dict[str, OnlineIC] = {}
        # what nodes have bought, and what each had spent then: None of one that is not opened
        self._bought: dict[str, tuple[Fraction | None, BlockPurchases | None]] = {}
        self._fits: dict[tuple[str, ...], tuple[list[BlockPurchases], Fit | None]] = {}
        whole = _whole(budget)
        rows = 1 if persons is None else persons.rows
        self._persons, account = persons, BlockAccount(whole, rows=rows)
        counting = _counting(neighbours, n_at_most, calendar, parts, account)
        self._book = PeriodsBook(calendar, parts, account, counting)
        for level, part in zip(calendar.levels, parts, strict=True):
            left = 1 - SHARE if counting is not None and level == calendar.finest else 1
            self._share_of(left * part / rows, level, 1)  # refused now, if it pays for nothing
        self._ledger: SqliteLedger | MemoryLedger
        if path is None:
            if table is not None or receipt is not None:
                raise InvalidParameterError(
                    "table and receipt must be None without a root ledger, got one; give the path of a file."
                )
            self._path, self._ledger = None, MemoryLedger()
            self._ledger.claim(self, whole, self._private)
            return
        if not self._private:
            raise InvalidParameterError(
                "path must be None with simulated noise, whose answers are not private, got a file too; "
                "leave out one of them."
            )
        written = {
            "budget": settings_to_json(budget, KNOWN),
            "levels": list(calendar.levels),
            "shares": [str(part) for part in parts],
            "beta": self._beta,
            "max_queries": self._settings.max_queries,
            "domain": domain.to_json(),
        }
        if persons is not None:  # as older files, where nothing is said
            written["persons"] = settings_to_json(persons, KNOWN)
        if counting is not None:
            written |= {"neighbours": neighbours, "n_at_most": counting.n_at_most}
        self._ledger = _opened(path, checked_label(table), written, whole, receipt)
        try:
            self._path = self._ledger.path
            self._ledger.claim(self, whole)
            self._book = _read_book(self._book, self._ledger.records())
        except BaseException:
            self._ledger.release()
            raise

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        load: Callable[[str], PrivateData] | None = None,
        receipt: Receipt | str | None = None,
        durability: Durability = "hits",
    ) -> "Periods":
        """Return the table that grows of a root ledger, as it was: its settings stand in the file.

        Args:
            path: Of the root ledger.
            load, receipt, durability: As at its opening.

        Raises:
            LedgerError: If it is open, not whole, older than the receipt, or none of a table that grows.
        """
        written = read(path)
        budget, book = book_of(written)
        settings = written.beginning["settings"]
        return cls(
            path,
            Domain.from_json(settings["domain"]),
            budget,
            levels=book.calendar.levels,
            shares=book.shares,
            persons=persons_of(settings),
            neighbours=settings.get("neighbours", "replace-one"),
            n_at_most=settings.get("n_at_most"),
            table=written.beginning["table"],
            load=load,
            beta=settings["beta"],
            max_queries=settings["max_queries"],
            receipt=receipt,
            durability=durability,
        )

    # -- what is public --

    @property
    def table(self) -> str | None:
        """The public name of the table; None in memory."""
        return None if isinstance(self._ledger, MemoryLedger) else str(self._ledger.beginning["table"])

    @property
    def durability(self) -> Durability | None:
        """Which answers no crash can lose, "hits" or "all"; None: there is no root ledger."""
        return None if self._path is None else self._durability

    @property
    def book(self) -> PeriodsBook:
        """Blocks, nodes, and what every block has left: frozen."""
        return self._book

    @property
    def domain(self) -> Domain:
        """Of the records, without their period."""
        return self._domain

    @property
    def budget(self) -> Budget:
        """Of every block."""
        return self._budget

    @property
    def beta(self) -> float:
        """Failure probability of every stated bound over at most 64 nodes."""
        return self._beta

    @property
    def private(self) -> bool:
        """False: simulated noise was used, the answers are NOT PRIVATE."""
        return self._private

    @property
    def blocks(self) -> Mapping[str, int]:
        """The public number of records of every block, in order: as it was released, where it is private."""
        return {label: block.n for label, block in self._book.blocks.items()}

    @property
    def nodes(self) -> tuple[str, ...]:
        """The periods that have a session, as they were opened."""
        return tuple(self._book.nodes)

    @property
    def persons(self) -> Persons | None:
        """Who has rows in several blocks; None: one record is protected."""
        return self._persons

    @property
    def said(self) -> str:
        """What is protected, and what is not, in words."""
        return protected_over(self._book.calendar.finest, self._persons, self.n_at_most is not None)

    @property
    def n_at_most(self) -> int | None:
        """The most records of a block, where their number is private; None: it is public."""
        return None if self._book.counting is None else self._book.counting.n_at_most

    @property
    def receipt(self) -> Receipt:
        """Length and head of the root ledger: an older copy is refused by it.

        Raises:
            SessionStateError: Without a file.
        """
        return receipt_of(self._ledger, "table that grows")

    # -- growing --

    def add(self, label: str, data: PrivateData | None, *, late: bool = False) -> OnlineIC | None:
        """Begin the next block with its records, for good, and open its session.

        Args:
            label: The next period of the finest level.
            data: All of its records, over the domain; None if there are none, and nothing is opened.
            late: Whether records of earlier periods, which came late, are among them: said wherever the block
                is shown. Blocks that began take no more.

        Returns:
            The session of the block alone.

        Raises:
            InvalidParameterError: If the label is there, or not the next one; if the table is another, was
                used, or is of persons.
            LedgerError: If something cannot be made durable: the block has not begun then.
        """
        with self._lock:
            self._check_open()
            self._book.check_next(label)
            check_kind("late", late, bool)
            if data is None:
                self._commit([BlockBegun(label, 0, late)])
                return None
            check_data(data)
            data = self._own(label, data, late)
            self._check_table(label, data)
            self._make_folder()
            drawn = self._counted(label, data)
            n = data.n if drawn is None else max(1, drawn)
            try:
                paid = paid_by(data, self._payer)
                return self._new_node(label, paid, [BlockBegun(label, n, late, drawn)])
            finally:  # also where an interrupt came once it had begun
                if label in self._sessions:
                    self._data[label] = data

    def _counted(self, label: str, data: PrivateData) -> int | None:
        """Return the number of records with noise, which its block pays before it is drawn; None: public.

        What is drawn stands in the root with the block's beginning. A crash before that loses it: then it
        is paid and drawn again, and the block's session has less by as much. Nobody is told of it before the
        session is open, so the table lists what was spent only from then on.
        """
        counting = self._book.counting
        if counting is None:
            return None
        noise = SystemNoise() if self._noise is None else self._noise
        check_outside(data, noise)
        # what cannot be planned even of the most is refused before anything is spent
        session_plan(self._domain, counting.n_at_most, self._node_settings(label, 1))
        self._commit([CountPaid(label, counting.charge)])
        return number_of(data, LaplaceMechanism(counting.epsilon), noise)

    def loading(
        self,
        label: str,
        date: str,
        *,
        late: bool = False,
        zone: str | None = None,
        formats: Iterable[str] = (),
    ) -> Domain:
        """Return the domain over which the records of a block are loaded, to check that they are its own.

        It has one attribute more, the date of a record. One outside of the period does not fit: the table is
        refused, and `PrivateData.check(table, domain).curator_report()` counts and lists such rows. `add`
        takes the table and leaves the date out.

        Args:
            label: Of the block.
            date: The column of dates, no attribute of the domain.
            late: Whether dates of earlier blocks fit too.
            zone, formats: As of `onlineic.dates`.

        Raises:
            InvalidParameterError: If the label is none of a block, or the column is an attribute.
        """
        finest = self._book.calendar.finest
        if self._book.calendar.level(label) != finest or date in self._domain.names:
            raise InvalidParameterError(
                f"label must be that of a {finest} and date a column that is no attribute, got "
                f"{shown(label)} and {shown(date)}; leave the date out of the domain."
            )
        first = next(iter(self._book.blocks), label) if late else label
        return Domain.of(
            {date: dates(first, label, by=finest, zone=zone, formats=formats), **dict(self._domain)}
        )

    def _own(self, label: str, data: PrivateData, late: bool) -> PrivateData:
        """Return the table of a block without the dates that show that its records are its own."""
        finest = self._book.calendar.finest
        more = [one for one in data.domain.names if one not in self._domain.names]
        if len(more) != 1 or not isinstance(kind := data.domain.attribute(more[0]), Dates):
            return data
        calendar, first = self._book.calendar, next(iter(self._book.blocks), label)
        ends = [calendar.around(end, finest) for end in (kind.first, kind.last)]
        earliest = first if late else label
        if not earliest <= ends[0] <= ends[1] == label or kind.clip or kind.missing or kind.others:
            raise InvalidParameterError(
                f"data of {label} must have dates of that {finest} alone, got {more[0]} from {kind.first} to "
                f"{kind.last}, or with clipped or missing dates; load over loading({shown(label)}, "
                f"{shown(more[0])}), with late=True for rows that came late."
            )
        return data.projected(*self._domain.names)

    def close(self, label: str) -> OnlineIC:
        """Open the session of a coarser period, a year say, over all records of its blocks.

        Args:
            label: Of a period all of whose blocks have begun.

        Raises:
            InvalidParameterError: If a block in it has not begun, it is open, or is a block itself.
            SessionStateError: If the table of a block is not at hand: see `attach`.
        """
        with self._lock:
            self._check_open()
            if self._book.calendar.level(label) == self._book.calendar.finest:
                raise InvalidParameterError(
                    f"label must be that of a coarser period than a {self._book.calendar.finest}, got "
                    f"{shown(label)}; that is opened by add."
                )
            covered = self._book.check_node(label)
            self._make_folder()
            return self._new_node(label, self._union(covered), [])

    def attach(self, label: str, data: PrivateData) -> None:
        """Hand over the table of a block that an earlier process added.

        Raises:
            InvalidParameterError: If there is no such block, or its table is at hand.
            LedgerMismatchError: If it has another number of records.
        """
        with self._lock:
            self._check_open()
            if label not in self._book.blocks or label in self._data:
                raise InvalidParameterError(
                    f"label must be that of a block whose table is not at hand, got {shown(label)}; see "
                    "blocks."
                )
            self._attach(label, data)

    def _attach(self, label: str, data: PrivateData) -> PrivateData:
        check_data(data)
        data = self._own(label, data, self._book.blocks[label].late)
        self._check_table(label, data)
        n = self._book.blocks[label].n
        if self._book.counting is None and data.n != n:
            raise LedgerMismatchError(
                f"data of {label} must have n={n} records, as the block began, got n={data.n}; rows that "
                "came late go into the open period, and none is ever taken back."
            )
        self._data[label] = data
        return data

    def _check_table(self, label: str, data: PrivateData) -> None:
        if data.n_at_most != self.n_at_most:
            most = self.n_at_most
            said = "no neighbours=" if most is None else f'neighbours="add-remove" and n_at_most={most}'
            raise InvalidParameterError(
                f"data of {label} must be of the neighbours of the periods, loaded with {said}, got "
                f"{data.neighbours} with n_at_most={data.n_at_most}; load it so."
            )
        if data.unit is not None and (self._persons is None or data.unit.moved > 1):
            raise InvalidParameterError(
                f"data of {label} must be of one record a row, got parts of persons, who could have rows in "
                "several periods: their loss would add up; load it with Unit(person=.., units=1), and say "
                "in how many periods anybody can be: Periods(.., persons=Persons(periods=3))."
            )
        if data.domain != self._domain:
            raise InvalidParameterError(
                f"data of {label} must be over the domain of the periods, {self._domain.digest()}, got "
                f"{data.domain.digest()}; another domain is another table that grows."
            )
        others = self._data.values()
        if data.budgets or data.total is not None or any(map(data.shares_records, others)):
            raise InvalidParameterError(
                f"data of {label} must be a table that nothing else spends on, got one with a budget, a "
                "total or another period; load it anew."
            )

    def _union(self, labels: Sequence[str]) -> PrivateData:
        """Return the table of all records of some blocks."""
        tables = [self._table(label) for label in labels]
        return united(tables, self._payer)

    def _table(self, label: str) -> PrivateData:
        if label in self._data:
            return self._data[label]
        if self._load is None:
            raise SessionStateError(
                f"the table of {label} must be at hand, got none in this process; attach({shown(label)}, "
                "data), or open Periods(.., load=function of a label)."
            )
        return self._attach(label, self._load(label))

    def _share_of(self, part: Fraction, level: str, rows: int) -> Budget:
        """Return the budget of one node that may spend this part of the capacity, priced at so many rows."""
        whole = self._book.account.whole
        near = REPLACE_ONE if rows == 1 else ReplaceRows(rows)  # of private numbers the session says another
        try:
            if part == 1 and whole.order is None:
                budget = self._budget
            else:
                budget = _budget_of(part * whole.capacity, whole.order, self._budget.delta)
            return attrs.evolve(budget, neighbours=near)
        except InvalidParameterError as error:
            raise InvalidParameterError(
                f"shares must leave a budget for the {level}, got {float(part):.3g}: {error}"
            ) from None

    def _node_settings(self, label: str, blocks: int) -> Settings:
        part, level = self._book.left_for(label, blocks), self._book.calendar.level(label)
        budget = self._share_of(part, level, self._book.rows(blocks))
        known = self._settings
        return Settings(
            budget,
            beta=known.beta if self._book.counting is None else divided_beta(known.beta)[1],
            max_queries=known.max_queries,
        )

    def _tables_of(self, label: str) -> BlockPurchases | None:
        """Return the tables of a node, once it has bought some."""
        session, n = self._sessions.get(label), self._book.n(label)
        spent = None if session is None else session.account.spent
        held = self._bought.get(label)
        if held is None or held[0] != spent:
            found = None
            if session is not None:
                found = BlockPurchases.of(n, session.transcript.records, session.plan)
            elif self._path is not None:
                _, written = self._node_file(label)
                plan = planned(written.beginning, self._domain)
                found = BlockPurchases.of(n, written.records(self._domain)[0], plan)
            held = self._bought[label] = spent, found
        return held[1]

    def _new_node(self, label: str, data: PrivateData, before: list[BlockBegun]) -> OnlineIC:
        """Open a session, then draw on its blocks: it can be asked, and read, only after that.

        A crash between the two files leaves a session that has released nothing and that the root does not
        know: it is made anew.
        """
        begun = self._book.after_all(before)
        covered = begun.check_node(label)
        settings, file = self._node_settings(label, len(covered)), self._file(label)
        counted = begun.counted(covered, divided_beta(self._settings.beta)[0])
        if counted is not None:
            counted = attrs.evolve(counted, private=self._private)
        if file is None:
            session = OnlineIC(data, settings, counted=counted, noise=self._noise)
        else:
            self._clear(label, file)
            session = OnlineIC(
                data, settings, counted=counted, ledger=file, table=label, durability=self._durability
            )
        try:
            charge = self._charged(label, session.plan, settings.budget)
            link = "" if file is None else session.receipt.head.hex()
            node = NodeOpened(label, covered, link, charge)
            begun.after(node)  # refused before it is written
            self._commit([*before, node])
        except BaseException:
            if file is None and label in self._book.nodes:  # it is paid, and no file can open it again
                self._sessions[label] = session
            else:
                session.close()
            raise
        self._sessions[label] = session
        return session

    def _charged(self, label: str, plan: Plan, budget: Budget) -> Any:
        whole = self._book.account.whole
        taken = table_charge(whole, budget, plan.drawn, f"the session of {label}")
        if taken.apart:
            raise InvalidParameterError(
                f"the session of {label} must have a price at the order of the periods, got one of its own "
                "delta; leave the mechanism to the planner."
            )
        return taken.charge

    def _commit(self, records: Sequence[Any]) -> None:
        known, after = len(self._ledger), self._book.after_all(records)
        try:
            self._ledger.commit(list(records))
        finally:  # an interrupt may come when it is written: what the ledger holds is what happened
            if len(self._ledger) > known:
                self._book = after

    def _file(self, label: str) -> str | None:
        """Return where the ledger of a node lies: it is chosen by its label."""
        return None if self._path is None else os.path.join(f"{self._path}.nodes", f"{label}.db")

    def _make_folder(self) -> None:
        """Make the folder of the ledgers of all nodes, or raise `LedgerWriteError`."""
        if self._path is None:
            return
        folder = f"{self._path}.nodes"
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as error:
            raise LedgerWriteError(
                f"ledger must be writable, got {type(error).__name__} for {shown(folder, 200)}; make room "
                "for that folder."
            ) from None

    def _clear(self, label: str, file: str) -> None:
        """Remove what a crash left of a session that the root does not know, if it has released nothing."""
        if not exists(file):
            return
        written = read(file)
        if any(line["kind"] not in FREE for line in written.lines):
            raise LedgerCorruptError(
                f"root ledger must know the session of {label}, whose ledger holds releases, got a root "
                "without it; restore the newest copy of the root, and give its newest receipt."
            )
        os.unlink(file)

    # -- asking --

    def __getitem__(self, label: str) -> OnlineIC:
        """Return the session of a period, resumed from its file where it is not open yet.

        Raises:
            InvalidParameterError: If no session of it was opened.
            LedgerError: If its ledger is gone, open, not whole, or older than the root knows.
        """
        return self.node(label)

    def node(self, label: str) -> OnlineIC:
        """Return the session of a period: `periods[label]`."""
        with self._lock:
            self._check_open()
            known = self._sessions.get(label)
            if known is not None and not (known.closed and self._path is not None):
                return known  # what was closed by itself, as after a `with`, goes on from its file
            if label not in self._book.nodes:
                raise InvalidParameterError(
                    f"label must be that of a period with a session, got {shown(label)}; see nodes, or open "
                    "it by add or close."
                )
            node, file = self._book.nodes[label], self._node_file(label)[0]
            whole = (
                self._union(node.blocks) if len(node.blocks) > 1 or label not in self._book.blocks else None
            )
            data = paid_by(self._table(label), self._payer) if whole is None else whole
            noted = self._book.known.get(node.file)
            receipt = (
                Receipt(1, bytes.fromhex(node.file)) if noted is None else Receipt(noted.lines, noted.head)
            )
            start = f"{file.removesuffix('.db')}.start.npy"  # of other rules: fitted to others' tables
            prior = Histogram(self._domain, np.load(start)) if exists(start) else None
            session = OnlineIC.resume(
                file, data, table=label, receipt=receipt, durability=self._durability, prior=prior
            )
            self._sessions[label] = session
            self._note(label)
            return session

    def _node_file(self, label: str) -> tuple[str, Written]:
        """Return where the ledger of a node lies, and what it holds: it must be the one that was paid."""
        file = self._file(label)
        if file is None or not exists(file):
            raise LedgerCorruptError(
                f"ledger of {label} must lie at {shown(str(file), 200)}, got none: it was paid, and a new "
                "one would be paid by nobody; restore it from a backup."
            )
        written = read(file)
        if written.links[0].hex() != self._book.nodes[label].file:
            raise LedgerMismatchError(
                f"ledger of {label} must be the one that the root ledger paid, got another; restore it from "
                "a backup."
            )
        return file, written

    def _note(self, label: str) -> None:
        """Keep how far the ledger of a node is: an older copy is refused from then on."""
        node = self._book.nodes[label]
        if node.file:
            receipt = self._sessions[label].receipt
            noted = Noted(node.file, receipt.lines, receipt.head)
            if self._book.known.get(node.file) != noted:
                self._commit([noted])

    def fit(self, labels: tuple[str, ...]) -> Fit | None:
        """Return the fit to the pooled tables of some nodes, or None where they do not pool."""
        with self._lock:
            bought = [self._tables_of(label) for label in labels]
            found = [one for one in bought if one is not None]
            if len(found) < len(labels):
                return None
            held = self._fits.pop(labels, None)
            if held is None or any(one is not other for one, other in zip(held[0], found, strict=True)):
                held = found, Fit.of(self.node(labels[-1]).plan.update, self._domain, found)
            while len(self._fits) >= KEPT_FITS:
                del self._fits[next(iter(self._fits))]
            self._fits[labels] = held
            return held[1]

    def known(self, label: str, query: Query) -> Known | None:
        """Return what all tables of a node say of a query, or None: free, as they were released."""
        with self._lock:
            bought = self._tables_of(label) if label in self._book.nodes else None
            return None if bought is None else bought.known(query)

    def finer(self, label: str, query: Query) -> tuple[float, float] | None:
        """Return (fraction, standard error) that the tables of a node's own blocks say of a query.

        Free, as they were released: no session is opened for it. None where a block has bought none, or its
        tables say nothing of it.
        """
        blocks = self._book.nodes[label].blocks
        held = [one for one in blocks if self._book.blocks[one].n] if len(blocks) > 1 else []
        told = [(self._book.n(one) / self._book.n(label), self.known(one, query)) for one in held
                if one in self._book.nodes]  # fmt: skip
        if not told or len(told) < len(held) or any(known is None for _, known in told):
            return None
        parts = [(share * known.value, share * known.error) for share, known in told if known is not None]
        return math.fsum(value for value, _ in parts), math.hypot(*[error for _, error in parts])

    def learned(self, label: str) -> Hypothesis:
        """Return the hypothesis of a node that has released something; nothing is bought for it.

        Raises:
            SessionStateError: If it has released nothing.
        """
        session = self.node(label)
        if session.plan.buys and not any(isinstance(one, BoughtTables) for one in session.transcript):
            raise SessionStateError(
                f"the session of {label} must have released something to be drawn from, got none; ask it "
                "first."
            )
        return session.hypothesis

    def over(self, since: str | None = None, until: str | None = None) -> Range:
        """Return the periods from one to another, both included and of any level, as one who answers.

        Args:
            since, until: Such as "2025" or "2026-03"; by default all periods.

        Returns:
            With `answer`, `sql`, `mean`, `quantile`, `group_by` and all else of an `Answering`. Blocks that
            begin later are not in it.
        """
        with self._lock:
            self._check_open()
            return Range(self, self._book.span(since, until))

    def answer(self, query: Any, since: str | None = None, until: str | None = None) -> Answer:
        """Answer one query over some periods: `over(since, until).answer(query)`."""
        return self.over(since, until).answer(query)

    def sql(
        self, text: str, table: str = "t", params: Mapping[str, Value] | None = None
    ) -> Answer | Derived | AnswerTable:
        """Answer a SELECT statement over all periods, the period among its columns: `Range.sql`."""
        return self.over().sql(text, table, params)

    def group_by(self, keys: str | Iterable[str], where: Any = None) -> Any:
        """Return counts by group over all periods; by the period they are a time series: `Range.group_by`."""
        return self.over().group_by(keys, where)

    # -- its end --

    def release(self) -> None:
        """Close all sessions and let the files go; what is reserved for next hits is given back."""
        with self._lock:
            if self._released:
                return
            try:
                for label, session in self._sessions.items():
                    session.close()
                    if self._path is not None:
                        with contextlib.suppress(BudgetError):
                            self._note_closed(label)
            finally:
                self._released = True
                self._ledger.give_back(self)

    def _note_closed(self, label: str) -> None:
        _, written = self._node_file(label)
        receipt = written.receipt
        self._commit([Noted(self._book.nodes[label].file, receipt.lines, receipt.head)])

    def _check_open(self) -> None:
        if self._released:
            raise SessionStateError("periods must be open to be used, got released ones; open them again.")

    def __enter__(self) -> "Periods":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        blocks, stamp = self._book.blocks, "" if self._private else ", NOT PRIVATE"
        finest = self._book.calendar.finest
        span = f"{next(iter(blocks))} to {[*blocks][-1]}" if blocks else "none yet"
        n, budget = self._book.number(blocks), self._budget
        return (
            f"Periods({len(blocks)} {finest}s, {span}, n={n}, {len(self._book.nodes)} sessions, "
            f"{whose_budget(finest, self._persons)} epsilon={budget.epsilon:g}, delta={budget.delta:g}; "
            f"{self.said}{stamp})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "Periods cannot be copied or pickled: their budget would be copied too; go on elsewhere from "
            "their files."
        )


def _checked_shares(shares: Iterable[float | Fraction] | None, levels: int) -> tuple[Fraction, ...]:
    """Return the part of every level, or raise `InvalidParameterError`."""
    if shares is None:
        return (Fraction(1, levels),) * levels
    listed = checked_list("shares", shares, remedy="write (1/2, 1/2)")
    parts = tuple(
        checked_ratio("shares", one, above=0.0, at_most=1.0).limit_denominator(10**6) for one in listed
    )
    if len(parts) != levels or sum(parts) > 1 or not all(parts):
        raise InvalidParameterError(
            f"shares must be one for each of {levels} levels, at most 1 together, got {shown(listed, 100)}; "
            "write fractions."
        )
    return parts


def _counting(
    neighbours: Relation,
    n_at_most: int | None,
    calendar: Calendar,
    parts: Sequence[Fraction],
    account: BlockAccount,
) -> Counting | None:
    """Return how numbers of records are released where they are private, or None."""
    if neighbours == "replace-one":
        if n_at_most is not None:
            raise InvalidParameterError(
                f"n_at_most must be left out where numbers of records are public, got {shown(n_at_most)}; or "
                'write neighbours="add-remove".'
            )
        return None
    if account.rows > 1 and len(calendar.levels) > 1:
        raise InvalidParameterError(
            f'levels must be that of the blocks alone for persons with neighbours="add-remove", got '
            f"{shown(calendar.levels)}: no price is proven of a session that holds several rows of a person "
            f"who comes or goes; write levels=({shown(calendar.finest)},)."
        )
    most = MOST_COUNTED // calendar.most_blocks
    chosen = checked_integer("n_at_most", most if n_at_most is None else n_at_most, at_least=1, at_most=most)
    whole = account.whole
    epsilon = _epsilon_of(SHARE * parts[0] / account.rows * whole.capacity, whole)
    paying = Budget(epsilon, neighbours=ADD_REMOVE)
    charge = table_charge(whole, paying, None, "a number of records").charge
    return Counting(epsilon, chosen, LaplaceMechanism(epsilon).scale, charge)


def _epsilon_of(amount: Fraction, whole: Filter) -> float:
    """Return the largest epsilon, rounded down, of a pure release that so much of an account pays for."""
    if whole.order is None:
        return min(LARGEST_EPSILON, float_down(amount))
    low, high = 0.0, LARGEST_EPSILON
    for _ in range(60):
        middle = (low + high) / 2
        paid = laplace_charge(whole.order, 1 / Fraction(middle), 1) <= amount
        low, high = (middle, high) if paid else (low, middle)
    if not low:
        raise InvalidParameterError(
            f"shares must leave something for numbers of records, got {float(amount):.3g} ticks for each; "
            "raise epsilon, or the share of the finest level."
        )
    return low


def _budget_of(amount: Fraction, order: Fraction | None, delta: float) -> Budget:
    """Return the budget of one node that may spend so much of a block's account."""
    if order is None:
        return Budget(float_down(amount), allow_large_epsilon=True)
    return share_of(amount, order, delta)


def _whole(budget: Budget) -> Filter:
    """Return the account of a block: a filter of one order, or of epsilon where delta is 0."""
    if budget.pure:
        return Filter(budget.epsilon_exact)
    order = zcdp_order(budget.epsilon, budget.delta)
    return Filter(Fraction(renyi_capacity(order, budget.epsilon, budget.delta)), "ticks", order)


def _opened(
    path: str | os.PathLike[str],
    table: str,
    settings: dict[str, Any],
    whole: Filter,
    receipt: Receipt | str | None,
) -> SqliteLedger:
    """Return the root ledger in a file, made if there is none."""
    if not exists(path):
        folder = f"{os.path.realpath(path)}.nodes"
        if receipt is not None or (os.path.isdir(folder) and os.listdir(folder)):
            raise LedgerCorruptError(
                f"root ledger must be there to go on, got none at {shown(os.fspath(path), 200)} with a "
                "receipt or sessions beside it; restore it from a backup, and give its newest receipt."
            )
        beginning = beginning_of_total(
            created=datetime.datetime.now(datetime.UTC).isoformat(),
            version=package_version(),
            table=table,
            account=whole,
            settings=settings,
        )
        return SqliteLedger.create(path, {**beginning, "periods": True}, "all")
    ledger = SqliteLedger.open(path, "all", receipt)
    try:
        check_kind_of_file(ledger.beginning, total=True)
        if not ledger.beginning.get("periods"):
            raise LedgerMismatchError(
                "ledger must be that of a table that grows, got the total of a table; open it by "
                "ic.TableBudget."
            )
        check_label(ledger.beginning, table)
        check_settings(ledger.beginning, settings)
        if account_from_json(ledger.beginning["account"]) != whole:
            raise LedgerCorruptError(
                "ledger must hold the capacity of its budget, got another; restore it from a backup, and "
                "give its newest receipt."
            )
        return ledger
    except BaseException:
        ledger.release()
        raise


def _read_book(book: PeriodsBook, records: Sequence[Any]) -> PeriodsBook:
    """Return the book of a root ledger, every draw checked again."""
    try:
        return book.after_all(records)
    except (BudgetError, InvalidParameterError) as error:
        raise LedgerCorruptError(
            f"root ledger must hold blocks in order and nodes that they pay, got others: {error}; restore it "
            "from a backup, and give its newest receipt."
        ) from None


def book_of(written: Written) -> tuple[Budget, PeriodsBook]:
    """Return the budget and the book of a root ledger that was read, every draw checked again.

    Raises:
        LedgerMismatchError, LedgerCorruptError: If it is none, or does not hold.
    """
    if not written.beginning.get("periods"):
        raise LedgerMismatchError("ledger must be that of a table that grows, got another; see ledger show.")
    settings, domain = written.beginning["settings"], written.domain()
    try:
        budget = settings_from_json(settings["budget"], KNOWN, domain)
        calendar = Calendar(settings["levels"])
        parts = tuple(Fraction(part) for part in settings["shares"])
        persons = persons_of(settings)
        account = BlockAccount(_whole(budget), rows=1 if persons is None else persons.rows)
        near, most = settings.get("neighbours", "replace-one"), settings.get("n_at_most")
        book = PeriodsBook(calendar, parts, account, _counting(near, most, calendar, parts, account))
    except Exception:  # of a text that was put together by hand: whatever is wrong with it
        raise LedgerCorruptError(
            "ledger must hold the settings of a table that grows, got others; restore it from a backup, and "
            "give its newest receipt."
        ) from None
    return budget, _read_book(book, written.records(domain)[0])


def persons_of(settings: Mapping[str, Any]) -> Persons | None:
    """Return who has rows in several blocks, by the settings of a root ledger."""
    told = settings.get("persons")
    return None if told is None else Persons(**told["fields"])


def whose_budget(finest: str, persons: Persons | None) -> str:
    """Return whose the budget is: of every block, or of a person in all of theirs together."""
    return f"each {finest}" if persons is None else f"each person over all {finest}s"


def protected_over(finest: str, persons: Persons | None, n_private: bool) -> str:
    """Return what periods protect, and what they do not, in words."""
    if n_private and persons is not None:
        return (
            f"protects {persons.said(finest)}, and whether they are there; protects in which {finest}s these "
            "lie at twice the epsilon"
        )
    if n_private:
        return (
            f"protects one record within its {finest}, and whether it is there; protects in which {finest} a "
            f"record lies at twice the epsilon; does not protect a person with records in several {finest}s "
            "as a whole"
        )
    if persons is None:
        return (
            f"protects one record within its {finest}; does not protect in which {finest} a record lies, nor "
            f"a person with records in several {finest}s as a whole"
        )
    return f"protects {persons.said(finest)}; does not protect in which {finest}s these lie"
