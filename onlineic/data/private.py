"""The private table: the only holder of records and counts.

Only `session`, `offline`, `baselines`, `evaluate`, `audit` and the front ends may import this module, and
its read method `exact_counts` has a name that nothing else uses: a test holds both rules.

Proof: docs/theory/ledger-and-restarts.md, 4.4, 4.7; docs/theory/queries.md, 1.3, 1.7, 1.8, 1.9;
docs/theory/session.md, 4.12.
"""

import contextlib
import logging
import math
import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn, final, overload

import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget, Filter
from onlineic.accounting.neighbours import ADD_REMOVE, REPLACE_ONE, Neighbours
from onlineic.accounting.of_table import per_person, per_row
from onlineic.data.persons import Parted, columns_read, has_ends, seen_by
from onlineic.data.problems import TableReport, checked_table
from onlineic.data.rows import Column, Rows, narrowest
from onlineic.data.spent import GATE, Load, Spent
from onlineic.data.standing import Source, StandingTables
from onlineic.data.table_file import CsvFormat, read_csv
from onlineic.display.html import card, facts
from onlineic.domain.columns import source_of
from onlineic.domain.domain import Domain, Records, check_domain
from onlineic.domain.misfits import loader
from onlineic.domain.unit import Unit, check_unit, cut_anew, parts_of, persons_of, protected, whose
from onlineic.errors import (
    BudgetsAddWarning,
    DomainMismatchError,
    ForkedSessionError,
    InternalError,
    InvalidDataError,
    InvalidParameterError,
    LargeDeltaWarning,
    LedgerError,
    LedgerLockedError,
    SessionStateError,
    TooLargeError,
    callers_line,
    check_choice,
    check_kind,
    checked_integer,
    checked_list,
    shown,
)
from onlineic.ledger.forks import renewed_by_forks
from onlineic.ledger.records import Ledger
from onlineic.ledger.sqlite import SqliteLedger
from onlineic.ledger.total import TableBudget
from onlineic.queries.batch import Queries
from onlineic.queries.cuts import long_axes
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query, totals
from onlineic.queries.reach import Axes, Reach
from onlineic.queries.tables import Tables
from onlineic.reentry import NonReentrantLock
from onlineic.slips import Spelled, public

MAX_CELLS = 2**26  # dense counts: 512 MB; of more cells the rows are kept
MANY_CODES = 2**22  # cells of a domain with a long attribute, from which on its rows are kept
MOST_CODES = 2**40  # of one long attribute: shares of them are told apart by floats
MAX_ROWS = 2**27
UNTOLD = (
    "version must be given for counting='on demand' of this table, which does not tell when it changes, got "
    "None; write version=FUNCTION, which returns another value once the table is another, or give the path "
    "of a Parquet file."
)
MOST_COUNTED = 2**32  # parts of all records of a table whose number is private: on the finest grid of weights
MOST_RECORDS = 2**31  # whose number is private, where nobody says how many there can be
Relation = Literal["replace-one", "add-remove"]
Counting = Literal["rows", "at load", "on demand"]
COUNTINGS = ("rows", "at load", "on demand")
RELATIONS: Mapping[str, Neighbours] = {"replace-one": REPLACE_ONE, "add-remove": ADD_REMOVE}
NO_RECORDS = "records must be one or more, got none; load some."
Warned = list[tuple[str, type[Warning]]]
_log = logging.getLogger("onlineic")


@public
@final
class PrivateData(metaclass=Spelled):
    """The sensitive table over a public domain: exact cell counts, or above 2^26 cells its rows.

    Nothing private is shown by `repr`; copies and pickles are refused. The work of a read depends on the
    query, the domain and n only, never on how many records match (safety of timing). Above 2^26 cells it
    depends on the number of rows given to `from_counts` too, which is then public: pad it where it may not
    be.

    Attributes:
        n: Number of records, public; of a table of persons their number. With neighbours="add-remove" it is
            private, and refused: a session releases one of its own.
        mass: What all exact counts of disjoint cells sum to: n, of a table of persons `unit.units` times n;
            refused as n is.
        neighbours: Between which tables the promise holds: one record, or person, is replaced, or added or
            removed.
        n_at_most: The most records, or persons, that the table can have, where their number is private.
        unit: Who is protected. None: one record. If a person can have several, the guarantee is per row then.
        reads: How many times `exact_counts` was called: public, since it depends on released facts alone.
        budgets: Of all that was released of it in this process, each as it is for a person with
            `rows_per_person` rows; without a total they add.
        rows_per_person: The most rows of a person to whom anything was promised; 1: all budgets are those of
            a row.
        total: On which all of them draw, see `draw_on`.
        loading: How the records came in, in words: public, since it depends on domain and kind of source
            alone.
        reach: Of which sets of attributes the table can be counted, if it stays where it lives; None: of all.
    """

    __slots__ = (
        "__weakref__", "_lock", "_mass", "_read", "_reads", "_spent", "_tables",
        "domain", "loading", "n_at_most", "neighbours", "unit", "whole",
    )  # fmt: skip

    @loader
    def __init__(
        self,
        counts: Ints,
        domain: Domain,
        *,
        neighbours: Relation = "replace-one",
        n_at_most: int = MOST_RECORDS,
    ) -> None:
        if hasattr(self, "_spent"):
            raise SessionStateError("a table must be loaded once, got __init__ again; load another.")
        relation = _check_domain(domain, None, neighbours, n_at_most)
        if domain.size > MAX_CELLS:
            raise TooLargeError(
                f"domain must have at most {MAX_CELLS:,} cells for dense counts, got {domain.size:,}; load "
                "records with from_records, from_counts or from_csv, or project it to fewer attributes."
            )
        array = _checked_counts(counts)
        if array.shape not in ((domain.size,), domain.shape):
            raise InvalidDataError(
                f"counts must have shape ({domain.size},) or {domain.shape}, got {array.shape}; "
                "order the cells as the domain does."
            )
        # float64 holds these integers exactly, and so is every partial sum below 2^53: any order of
        # summation, any number of threads gives the same integer
        cells = array.astype(np.float64).reshape(domain.shape)
        self._begin(domain, int(array.sum()), Tables(cells, prefix_cells=MAX_CELLS))._protecting(*relation)

    def _begin(
        self, domain: Domain, n: int, tables: Tables | Rows | StandingTables, spent: Spent | None = None
    ) -> "PrivateData":
        self.domain = domain
        self._mass = n
        self.neighbours: Neighbours = REPLACE_ONE
        self.n_at_most: int | None = None
        self.unit: Unit | None = None
        self._read: tuple[list[Column], Ints | None, Parted] | None = None  # rows, until parts are settled
        self.whole = True  # whether it has all attributes over which parts were rounded to ends of bins
        self.loading = "given as columns or counts"
        self._spent = Spent((Load(),)) if spent is None else spent
        self._reads = 0
        self._tables = tables
        self.renew_locks()
        renewed_by_forks(self)
        return self

    def _protecting(self, neighbours: Neighbours, n_at_most: int) -> "PrivateData":
        """Return the table as one whose number of records is private, or refuse what it must not hold.

        Raises:
            InvalidDataError: If there are no records where their number is public, or more than `n_at_most`.
                To leave some out would change two records where one is added (theory 1.9).
        """
        if neighbours == REPLACE_ONE:
            if self._mass < 1:
                raise InvalidDataError(NO_RECORDS)
            return self
        if self._mass > parts_of(n_at_most, self.unit):
            raise InvalidDataError(
                f"records must be at most n_at_most={n_at_most:,}, got more; raise it, from public knowledge."
            )
        self.neighbours, self.n_at_most = neighbours, n_at_most
        return self

    @property
    def n(self) -> int:
        return persons_of(self.mass, self.unit)

    @property
    def mass(self) -> int:
        if self.neighbours != REPLACE_ONE:
            raise InvalidParameterError(
                'n must be released by a session where neighbours="add-remove", got it asked of the table; '
                "write OnlineIC(data, budget).n. Mechanisms that know n need neighbours='replace-one'."
            )
        return self._mass

    def renew_locks(self) -> None:
        """Let no read hold up another: for forked processes, where the one that ran is not."""
        self._lock = NonReentrantLock("data")

    @classmethod
    @loader
    def from_records(
        cls,
        columns: Records,
        domain: Domain,
        *,
        unit: Unit | None = None,
        neighbours: Relation = "replace-one",
        n_at_most: int = MOST_RECORDS,
    ) -> "PrivateData":
        """Return the table of one record a row, or of the persons that `unit` tells rows of.

        Args:
            columns: Mapping of name to array or list, list of mappings, or structured array. At least the
                domain's attributes; in a list of mappings, of every record. Frames of pandas are mappings
                too; for other tables see `from_frame`.
            domain: Written down from public knowledge.
            unit: Names the column that tells whose row it is: all rows of a person are protected together.
            neighbours: Whether the number of records, or persons, is public, and the promise is about what
                one of them is; or private, and the promise is about whether one is there at all.
            n_at_most: With "add-remove": the most that there can be, from public knowledge.

        Raises:
            InvalidParameterError: If the unit is none of this table.
            InvalidDataError: If a value lies outside the domain, or a row is nobody's: nothing is ever
                dropped silently, since n is public.
        """
        relation = _check_domain(domain, unit, neighbours, n_at_most)
        seen = seen_by(domain, unit)
        return cls._of_rows(iter(seen.encoded(columns)), None, seen, relation[0])._protecting(*relation)

    @classmethod
    @loader
    def union(cls, tables: "Sequence[PrivateData]") -> "PrivateData":
        """Return the table of all records of some disjoint tables over one domain.

        Args:
            tables: Of different records: each is there once. Where their numbers are private so is that of
                the union, and `n_at_most` is the sum of theirs.

                What is spent on the union is spent on each of them, and what is spent on one, on the union.

        Raises:
            InvalidParameterError: If there is none, records are there twice, they are of persons, who could
                have rows in several, or the numbers of some are private and others public, or at most too
                many together; if they draw on different totals.
            DomainMismatchError: If their domains are not the same.
        """
        return cls._united(tables, None)

    @classmethod
    def _united(cls, tables: "Sequence[PrivateData]", payer: object | None) -> "PrivateData":
        held = list(tables)
        if not held or not all(type(one) is PrivateData for one in held):
            raise InvalidParameterError(
                "tables must be one or more PrivateData, got others; give each table once."
            )
        spent = Spent.together([one._spent for one in held], payer)
        spent.total  # noqa: B018 - raises where there are several
        domain = held[0].domain
        for one in held:
            if payer is None and one.unit is not None:  # a person of one table can be in another
                raise InvalidParameterError(
                    "tables must be of one record a row, got one of persons, who can have rows in several; "
                    "load their rows together, with unit=."
                )
            several = one.unit is not None and one.unit.moved > 1
            if several or one.neighbours != held[0].neighbours:
                raise InvalidParameterError(
                    "tables must be of one record a row, and their numbers all public or all private, got "
                    "another; load it without unit=, and with the neighbours= of the others."
                )
            one.check_here()
            if one.domain != domain:
                raise DomainMismatchError(
                    f"tables must be over one domain, {domain.digest()}, got {one.domain.digest()}; load "
                    "them over the same."
                )
        most = sum(one.n_at_most or 0 for one in held)
        if most > MOST_COUNTED:
            raise InvalidParameterError(
                f"tables must have at most {MOST_COUNTED:,} records together, got n_at_most={most:,} in all; "
                "load them with less, from public knowledge."
            )
        n = sum(one._mass for one in held)
        parts, near = [one._tables for one in held], held[0].neighbours
        rows = [one for one in parts if isinstance(one, Rows)]
        if rows and not any(isinstance(one, Tables) for one in parts):
            return cls.__new__(cls)._begin(domain, n, rows[0].beside(rows[1:]), spent)._protecting(near, most)
        # beside dense counts rows become dense too: how many cells hold records is private, and a row for
        # each would tell it by the time of every read
        every = tuple(range(len(domain.shape)))
        cells = np.zeros(domain.shape)
        for part in parts:
            if isinstance(part, Tables):
                cells += part.table(every)
            elif isinstance(part, Rows):
                columns, weights = part.columns(every)
                np.add.at(cells, tuple(columns), 1 if weights is None else weights)
        union = cls.__new__(cls)._begin(domain, n, Tables(cells, prefix_cells=MAX_CELLS), spent)
        return union._protecting(near, most)

    def _paid_by(self, payer: object) -> "PrivateData":
        """Return this table, of which all that is spent is paid by the account of this payer."""
        GATE.run(self._settle)
        same = type(self).__new__(type(self))._begin(self.domain, self._mass, self._tables)
        same._lock, same._spent = self._lock, Spent(self._spent.loads, payer)
        same.neighbours, same.n_at_most = self.neighbours, self.n_at_most
        same.unit, same.whole, same.loading = self.unit, self.whole, self.loading
        return same

    @loader
    def projected(self, *names: str) -> "PrivateData":
        """Return the table of the same records over some of its attributes, in the order of the domain.

        What is spent on one of the two is spent on the other.

        Raises:
            InvalidQueryError: If an attribute is unknown or there twice.
            InvalidParameterError: If the table is one of persons in several parts.
        """
        domain, axes = self.domain.project(*names), self.domain.project_axes(*names)
        self.check_here()
        GATE.run(self._check_rows_alone)
        tables = self._tables
        if isinstance(tables, Tables):
            cells = Tables(np.rint(tables.table(axes)), prefix_cells=MAX_CELLS)
            made = type(self).__new__(type(self))._begin(domain, self._mass, cells)
        else:
            columns, weights = tables.columns(axes) if isinstance(tables, Rows) else ([], None)
            made = type(self)._of_cells(iter(columns), weights, domain)
        made.unit, made.whole = self.unit, False
        made._spent = Spent(self._spent.loads)
        return made._protecting(self.neighbours, self.n_at_most or 0)

    def _check_rows_alone(self) -> None:
        """Raise `InvalidParameterError` if a person has several parts here, and let nobody change that."""
        if self.unit is not None and self.unit.moved > 1:
            raise InvalidParameterError(
                f"data must be of one record a row to be projected, got {self.unit}; load it over fewer "
                "attributes."
            )
        self._settle()  # cut into parts again, it would count them where the other counts persons

    @classmethod
    @loader
    def from_counts(
        cls,
        columns: Mapping[str, Any],
        counts: Any,
        domain: Domain,
        *,
        unit: None = None,
        neighbours: Relation = "replace-one",
        n_at_most: int = MOST_RECORDS,
    ) -> "PrivateData":
        """Return an aggregated table: `counts[i]` records have the values of row i; rows may repeat.

        Raises:
            InvalidParameterError: If a `unit` is given: counts do not tell whose rows they count.
        """
        relation = _check_domain(domain, None, neighbours, n_at_most)
        if unit is not None:
            raise InvalidParameterError(
                f"unit must be None with counts, which do not tell whose rows they are, got {shown(unit)}; "
                "load the rows with from_records, from_csv or from_frame."
            )
        weights, seen = _checked_counts(counts), seen_by(domain, None)
        return cls._of_rows(iter(seen.encoded(columns)), weights, seen, relation[0])._protecting(*relation)

    @classmethod
    @loader
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        domain: Domain,
        *,
        count: str | None = None,
        delimiter: str = ",",
        encoding: str = "utf-8",
        decimal: str = ".",
        skipinitialspace: bool = True,
        missing: Sequence[str] = (),
        unit: Unit | None = None,
        neighbours: Relation = "replace-one",
        n_at_most: int = MOST_RECORDS,
    ) -> "PrivateData":
        """Return the table of a CSV file with a header line; an empty field is a missing value.

        Args:
            path: Of a file, a pipe such as "/dev/stdin", or a terminal.
            domain: Says how each column is read: whole numbers, numbers, dates or text. Other columns are
                ignored.
            count: Column that says how many records a line stands for.
            delimiter: One character between fields.
            encoding: Of the file; a byte order mark is skipped in UTF-8.
            decimal: "." or ",". What stands before the fraction of a number.
            skipinitialspace: Whether blanks after a delimiter are no part of the field.
            missing: Texts that are missing values in every column, but where they are labels, such as ["NA",
                "?"].
            unit: As for `from_records`; not with `count`.
            neighbours, n_at_most: As for `from_records`.

        Raises:
            InvalidParameterError: If the file cannot be opened, or is a device.
            InvalidDataError: If the table does not fit the domain: every column that does not is named, with
                the rule and a remedy. `PrivateData.check` tells the curator which values and lines.
        """
        relation = _check_domain(domain, unit, neighbours, n_at_most)
        form = CsvFormat(delimiter, encoding, decimal, skipinitialspace, missing)
        if unit is not None and unit.person is not None and count is not None:
            raise InvalidParameterError(
                f"count must be None with unit, got count={shown(count)}; list a person's rows one by one."
            )
        seen = seen_by(domain, unit)
        columns, numbers = read_csv(path, seen, count, form)
        weights = None if numbers is None else _checked_counts(numbers)
        return cls._of_rows(iter(columns), weights, seen, relation[0])._protecting(*relation)

    @staticmethod
    @loader
    def check(
        table: Any,
        domain: Domain,
        *,
        count: str | None = None,
        unit: Unit | None = None,
        **options: Any,
    ) -> TableReport:
        """Return everything in a table that does not fit its domain, without loading it.

        Args:
            table: A path, what `from_records` takes, or a table of `from_frame`. A text is the path of a CSV
                or Parquet file, or of a workbook.
            count: Column that says how many records a row stands for.
            unit: Whose column of persons is looked at too.
            **options: How the file is written, as for `from_csv`.

        Returns:
            Shown by itself it names columns, rules and remedies; `curator_report` alone shows values and
            lines of the private table.
        """
        from onlineic.data.formats import file_columns
        from onlineic.data.frames import frame_columns, is_frame  # few tables are frames: imported with them

        _check_domain(domain)
        check_unit(
            unit, (*domain.names, *domain.columns), n_private=True
        )  # any unit's column can be looked at
        kinds = columns_read(domain, unit)
        if (columns := file_columns(table)) is not None:
            table = columns
        elif is_frame(table):
            held = dict.fromkeys(source_of(name, kind) for name, kind in kinds)
            held |= {} if count is None else {count: None}
            table = frame_columns(table, held)
        return checked_table(table, kinds, count, options)

    @classmethod
    @loader
    def from_frame(
        cls,
        table: Any,
        domain: Domain,
        *,
        unit: Unit | None = None,
        neighbours: Relation = "replace-one",
        n_at_most: int = MOST_RECORDS,
        counting: Counting | None = None,
        sets: Iterable[Iterable[str]] = (),
        version: Callable[[], Hashable] | None = None,
    ) -> "PrivateData":
        """Return the table of a data frame, of a table that another engine holds, or of a file of one.

        One snapshot is taken, and nothing of `table` is asked later. A table that is held elsewhere is
        counted there, by one GROUP BY, if the domain has at most 2^20 cells and the engine is one that
        compares text exactly (DuckDB, lazy polars, Spark); otherwise its rows come by once, and only their
        codes are kept; or no row comes by, and sets of attributes are counted where the rows are, as
        `counting` says. Which of them depends on public facts alone; `loading` and the log say it.

        Args:
            table: Pandas or polars frame, Arrow table, DuckDB relation, Spark or other frame, or path. What
                narwhals (extra `frames`) reads, of one record a row; a path is that of a Parquet file, which
                needs duckdb, polars or pyarrow, or of a workbook (Excel, OpenDocument) of one sheet. Columns
                that are no attributes are ignored.
            unit: As for `from_records`: the GROUP BY counts the rows of each person then.
            neighbours, n_at_most: As for `from_records`.
            counting: How a table is counted whose domain is too wide for one GROUP BY. "rows": all rows come
                by, once. "at load": DuckDB or Spark counts all pairs of attributes, and `sets`, by one
                statement; questions about others are refused. "on demand": other sets are counted when a
                question or a purchase needs them, and the time of an answer tells how long that took. None:
                "at load" for Spark, else "rows".
            sets: Attributes that will be asked about together, counted at load.
            version: Tells one state of the table from another, before and after each count; of a Parquet
                file, and of a Spark frame of files, it is not needed.

        Raises:
            InvalidParameterError: If this is no table, or its engine cannot count it so.
            TooLargeError: If what is to be counted at load is too much.
            InvalidDataError: If a column is absent or there twice, or a value lies outside the domain.
                Nothing is dropped.
            MissingExtraError: If the extra, or a reader of Parquet files, is not installed.
        """
        from onlineic.data.formats import file_columns
        from onlineic.data.frames import is_cluster, read_frame  # few sessions load a frame: imported with it

        relation = _check_domain(domain, unit, neighbours, n_at_most)
        chosen = _check_counting(counting, sets, domain, unit, neighbours)
        if chosen is None and (columns := file_columns(table)) is not None:
            return cls.from_records(columns, domain, unit=unit, neighbours=neighbours, n_at_most=n_at_most)
        if counting is None and is_cluster(table, domain) and unit is None and neighbours == "replace-one":
            chosen = _check_counting("at load", sets, domain, unit, neighbours)
        if chosen is not None:
            from onlineic.data.snapshots import of_frame

            return cls.standing(*of_frame(table, domain, version), chosen, counting == "on demand")
        seen = seen_by(domain, unit)
        return cls._loaded(*read_frame(table, seen), seen, relation[0])._protecting(*relation)

    @classmethod
    @loader
    def from_dbapi(
        cls,
        connection: Any,
        table: str,
        domain: Domain,
        *,
        quote: Literal['"', "`", "["] = '"',
        unit: Unit | None = None,
        neighbours: Relation = "replace-one",
        n_at_most: int = MOST_RECORDS,
        counting: Counting | None = None,
        sets: Iterable[Iterable[str]] = (),
        version: Callable[[], Hashable] | None = None,
    ) -> "PrivateData":
        """Return the table of a database, by one statement on a DB-API connection (PEP 249).

        SQLite and DuckDB count it by a GROUP BY if the domain has at most 2^20 cells; so do others if no
        attribute can hold text. Otherwise the rows come by once, since a collation could make 'a' and 'A'
        one. `loading` and the log say which.

        Args:
            connection: DB-API connection. Nothing is written, committed or closed.
            table: Of a table or view, `name` or `schema.name`; never a condition or a statement.
            domain: Its attributes name columns, letter by letter. SQLite has no booleans: of boolean labels,
                0 and 1 are read as False and True there.
            quote: How the database quotes names: '"' by the standard, '`' for MySQL, '[' for SQL Server.
            unit: As for `from_frame`.
            neighbours, n_at_most: As for `from_records`.
            counting, sets, version: As for `from_frame`, of DuckDB and SQLite; None: "rows". SQLite tells
                itself when it changes.

        Raises:
            InvalidDataError: If the database refuses, a column is absent, or a value lies outside the domain.
        """
        from onlineic.data.databases import read_table

        relation = _check_domain(domain, unit, neighbours, n_at_most)
        chosen = _check_counting(counting, sets, domain, unit, neighbours)
        if chosen is not None:
            from onlineic.data.snapshots import of_database

            later = counting == "on demand"
            found = of_database(connection, table, domain, quote, version, later=later)
            return cls.standing(*found, chosen, later)
        seen = seen_by(domain, unit)
        return cls._loaded(*read_table(connection, table, seen, quote), seen, relation[0])._protecting(
            *relation
        )

    @classmethod
    def standing(
        cls, source: Source, engine: str, announced: Sequence[Axes], on_demand: bool
    ) -> "PrivateData":
        """Return a table of which sets of attributes are counted where it lives."""
        check_kind("source", source, Source, remedy="load with from_frame(.., counting='at load')")
        if on_demand and source.version is None:
            raise InvalidParameterError(UNTOLD)
        tables = StandingTables(source, announced, on_demand)
        data = cls.__new__(cls)._begin(source.domain, tables.n, tables)
        when = "at load, and others as questions ask" if on_demand else "at load, by one statement"
        data.loading = f"stays where it lives ({engine}): sets of attributes are counted there, {when}"
        _log.info("private table %s", data.loading)
        return data

    @property
    def reach(self) -> Reach | None:
        return self._tables.reach if isinstance(self._tables, StandingTables) else None

    def fetch(self, sets: Iterable[Axes], partitions: Sequence[Partition] = ()) -> None:
        """Have sets of attributes counted where the table lives, before anything is reserved. PRIVATE.

        Of another table nothing is done. What fails leaves nothing changed.
        """
        tables = self._tables
        if isinstance(tables, StandingTables):
            self._lock.run(lambda: tables.fetch(sets, partitions))

    def fitting(self, sets: Iterable[Axes]) -> int:
        """Return for how many of the leading sets `fetch` keeps the tables together."""
        tables, held = self._tables, checked_list("sets", sets, remedy="write [(0, 1)]")
        return tables.fitting(held) if isinstance(tables, StandingTables) else len(held)

    @classmethod
    def _loaded(
        cls,
        columns: list[Column],
        records: Ints | None,
        how: str,
        seen: Domain | Parted,
        near: Neighbours,
    ) -> "PrivateData":
        """Return a table that was read as `how` says, and say so."""
        data = cls._of_rows(iter(columns), records, seen, near)
        data.loading = how
        _log.info("private table %s", how)
        return data

    @classmethod
    def _of_rows(
        cls,
        columns: Iterator[Column],
        weights: Ints | None,
        seen: Domain | Parted,
        near: Neighbours | None = None,
    ) -> "PrivateData":
        """Return the table of rows given attribute by attribute, as their domain or its parts were read."""
        if isinstance(seen, Domain):
            # of many codes few are met, and rows take less; where n is private their number is not to be told
            few = near == REPLACE_ONE and bool(long_axes(seen))
            return cls._of_cells(columns, weights, seen, MANY_CODES if few else MAX_CELLS)
        held, many = list(columns), seen.domain.size > MAX_CELLS
        _check_rows(held[0], weights)
        rows = len(held[0]) if seen.persons is None else len(seen.persons)
        ends = sum(map(has_ends, seen.domain.attributes))
        every = seen.unit.units * (rows if weights is None else int(weights.sum()))
        most = min(rows << (ends + 1), every)  # rows that rows of counts can become
        if many and max(rows * seen.unit.units, most if ends else 0) > MAX_ROWS:
            raise TooLargeError(
                f"records must be at most {MAX_ROWS // seen.unit.units:,} over {seen.domain.size:,} cells "
                f"with units={seen.unit.units}, got {rows:,}; take fewer units, or fewer attributes."
            )
        read = (held, weights, seen)
        held, parts = seen.parts(held, weights)
        alone = seen.persons is None and (weights is not None or not ends)
        if many and not alone:  # as many rows as are public: how many cells one has is not
            held, parts = [np.repeat(column, parts) for column in held], np.ones(int(parts.sum()), np.int64)
        elif many and ends:
            # a row of counts becomes at most so many, and equal ones one: empty rows hide how many are left
            empty = most - len(parts)
            held = [np.concatenate([column, np.zeros(empty, column.dtype)]) for column in held]
            parts = np.concatenate([parts, np.zeros(empty, parts.dtype)])
        data = cls._of_cells(iter(held), parts, seen.domain)
        data.unit = seen.unit
        data._read = read if seen.unit in cut_anew(seen.unit) else None
        return data

    def units(self) -> tuple[Unit | None, ...]:
        """Return the units that the table can have, the finest first; one, after a release."""
        if self.unit is None or self._read is None or self.total is not None:
            return (self.unit,)
        return cut_anew(self._read[2].unit)

    def cut_into(self, unit: Unit | None) -> None:
        """Let the persons of the table have so many parts: those of `units`, before anything is released.

        Raises:
            InvalidParameterError: If it is another one.
        """
        GATE.run(partial(self._cut_into, unit))  # nobody spends on parts that are about to be others

    def _cut_into(self, unit: Unit | None) -> None:
        if unit is not None:
            check_kind("unit", unit, Unit, remedy="take one of units()")
        if unit == self.unit:
            return
        if self._read is None or unit is None or unit not in self.units():
            raise InvalidParameterError(
                f"unit must be the one that the table was loaded with, {self.unit}, or coarser before "
                f"its first session, got {unit}; load the table anew."
            )
        columns, weights, seen = self._read
        other = self._of_rows(iter(columns), weights, seen.cut_into(unit))
        self._tables, self._mass, self.unit = other._tables, other._mass, unit

    def _settle(self) -> None:
        """Let the parts of persons be those that they are: another table of the same records counts them."""
        self._read = None

    @classmethod
    def _of_cells(
        cls, columns: Iterator[Column], weights: Ints | None, domain: Domain, most: int = MAX_CELLS
    ) -> "PrivateData":
        """Return the table of rows of cells given attribute by attribute; of more cells the rows are kept."""
        if domain.size > most:
            held = [_narrowed(codes, size) for codes, size in zip(columns, domain.shape, strict=True)]
            _check_rows(held[0], weights)
            n = len(held[0]) if weights is None else int(weights.sum())
            known = None if weights is None else weights.astype(np.float64)
            return cls.__new__(cls)._begin(domain, n, Rows(held, known, domain.shape))
        flat = np.zeros(0, np.int64)
        for axis, (codes, size) in enumerate(zip(columns, domain.shape, strict=True)):
            codes = _narrowed(codes, size)
            if axis == 0:
                _check_rows(codes, weights)
                flat = codes.astype(np.int64)
            else:
                flat *= size
                flat += codes
        table = np.zeros(domain.size, np.int64)
        if weights is None:
            table += np.bincount(flat, minlength=domain.size)
        else:
            np.add.at(table, flat, weights)
        return cls.__new__(cls)._begin(
            domain, int(table.sum()), Tables(table.astype(np.float64).reshape(domain.shape), MAX_CELLS)
        )

    @overload
    def exact_counts(self, target: Query) -> int: ...
    @overload
    def exact_counts(self, target: Partition) -> Ints: ...
    def exact_counts(self, target: Query | Partition) -> int | Ints:
        """Return m 2^k f(D) of mass m as an exact integer, or the (blocks,) counts of a partition. PRIVATE.

        Args:
            target: Bound to this domain, with m 2^grid_bits <= 2^53.
        """
        self._check_domain(target.domain, target.grid_bits)
        return self._lock.run(partial(self._counted, target))

    def _counted(self, target: Query | Partition) -> int | Ints:
        self._reads += 1
        tables = self._tables
        if not isinstance(target, Partition):
            return int(target.total(tables, self._mass))
        if isinstance(tables, Rows | StandingTables):
            return tables.measure(target)
        return np.rint(target.measure(tables.table(target.axes))).astype(np.int64)

    def exact_counts_many(self, queries: Sequence[Query]) -> Ints:
        """Return m 2^k f(D) of every query, shape (m,), exact: one read each. PRIVATE."""
        if isinstance(queries, Queries):
            self._check_domain(queries.domain, int(queries.grid_bits.max(initial=0)))
        else:
            for query in queries:
                self._check_domain(query.domain, query.grid_bits)
        return self._lock.run(partial(self._counted_many, queries))

    def _counted_many(self, queries: Sequence[Query]) -> Ints:
        self._reads += len(queries)
        return np.rint(totals(queries, self._tables, self._mass)).astype(np.int64)

    def check_here(self) -> None:
        """Raise `InvalidParameterError` if the table stays where it lives: only sessions count it there."""
        if self.reach is not None:
            raise InvalidParameterError(
                "data must be held in this process for this, got a table that stays where it lives; load it "
                "with counting='rows', or ask it by OnlineIC(data, budget)."
            )

    def check_outside(self) -> None:
        """Raise `SessionStateError` in the middle of a read of the same thread: a handler would read there.

        Whatever a handler asks of this table asks this before it spends anything.
        """
        self._lock.check()

    def _check_domain(self, other: Domain, grid_bits: int) -> None:
        if other is not self.domain and (other.shape != self.domain.shape or other != self.domain):
            raise DomainMismatchError(
                f"target must be bound to domain {self.domain.digest()}, got {other.digest()}."
            )
        # public, as the message is
        most = self._mass if self.n_at_most is None else parts_of(self.n_at_most, self.unit)
        if most << grid_bits > 2**53:
            raise InternalError("m 2^grid_bits must be at most 2^53.")

    @property
    def budgets(self) -> tuple[Budget, ...]:
        return tuple(per_person(one, self.rows_per_person) for one in self._spent.budgets)

    @property
    def rows_per_person(self) -> int:
        return max(self._spent.rows, *(total.rows_per_person for total in self._spent.totals), 1)

    @property
    def total(self) -> TableBudget | None:
        return self._spent.total

    def shares_records(self, other: "PrivateData") -> bool:
        """Return whether some records of this table are records of the other: what is spent on them adds."""
        if not isinstance(other, PrivateData):
            raise InvalidParameterError(f"other must be a PrivateData, got {shown(other)}; load it first.")
        return self._spent.shares(other._spent)

    def draw_on(self, total: TableBudget) -> None:
        """Let all that is released of the records of this table draw on one total, from now on and for good.

        It holds for all tables that are made of these records, before or after: projections and unions.

        Args:
            total: It may be that of several loads of one table, over domains of their own.

        Raises:
            InvalidParameterError: If it is none, or some of the records have another.
            SessionStateError: If something was released of them before, which the total would not know.

        Warns:
            LargeDeltaWarning: If delta exceeds 1/n.
        """
        self._check_process()
        if type(total) is not TableBudget:
            raise InvalidParameterError(
                f"total must be a TableBudget, got a {type(total).__name__}; write TableBudget(Budget(..))."
            )
        self._warned_first(partial(self._cover, total))

    def _cover(self, total: TableBudget, warned: Warned) -> Warned | None:
        """Let the total cover the records, or return what is to be warned of first."""
        if self.total not in (None, total):
            raise InvalidParameterError("total must be the one that the table has, got another; leave it.")
        if not self._spent.is_free(total):
            raise SessionStateError(
                "total must be given before anything is released, got one after it; load the table anew, "
                "with what was released before taken off the budget of the total."
            )
        if total.budget.neighbours != self.neighbours:
            raise InvalidParameterError(
                f"total must be for the neighbours of the table, {self.neighbours}, got one for "
                f"{total.budget.neighbours}; write TableBudget(Budget(.., neighbours=..)) of "
                "accounting.ADD_REMOVE, or load the table without neighbours=."
            )
        if self.neighbours == ADD_REMOVE and self.unit is not None and self.unit.units > 1:
            raise InvalidParameterError(
                f"total must be left out with parts of persons whose number is private, got {self.unit}: "
                "it pays by the part, and their number moves by a person; write Unit(.., units=1), or "
                "give each session a Budget of its own (budgets add)."
            )
        if self.unit is not None and total.rows_per_person != self.unit.moved:
            raise InvalidParameterError(
                f"total must be one of persons as the table counts them, got rows_per_person="
                f"{total.rows_per_person}; write TableBudget(budget, rows_per_person={self.unit.moved})."
            )
        first = self._large_delta(per_row(total.budget, total.rows_per_person))
        if first == warned:
            self._spent.cover(total)
            return None
        return first

    def _warned_first(self, act: Callable[[Warned], Warned | None]) -> None:
        """Run `act` alone until it returns None, with the warnings that it asked for the time before.

        Warnings are shown outside: whoever shows them may ask anything of this table, and what is to be
        warned of may be another thing then.
        """
        warned: Warned = []
        while (first := GATE.run(partial(act, warned))) is not None:
            for one in first:
                if one not in warned:
                    warnings.warn(*one, stacklevel=callers_line())
            warned = first

    def check_affords(self, budget: Budget, account: Filter | None = None) -> None:
        """Raise `BudgetExceededError` if the total of the table does not pay this; nothing is spent.

        In a forked process raise `ForkedSessionError`, as `spend` would.
        """
        self._check_process()
        if (total := self.total) is not None:
            total.check(budget, account)

    def spend(
        self,
        budget: Budget,
        account: Filter | None = None,
        what: Literal["session", "release"] = "release",
        file: str = "",
        rows_per_person: int = 1,
    ) -> None:
        """Spend a budget on the records of this table, before they are read: on the total, or beside others.

        Args:
            budget: For one row.
            account, what, file: As in `Drawn`.
            rows_per_person: At least 1. The most rows of those to whom this was promised.

        Raises:
            BudgetExceededError, InvalidParameterError, LedgerError: If the total does not pay it; nothing was
                spent.
            ForkedSessionError: In a process that was forked from the one that loaded the table: what all of
                them spend adds up, and none would know of the others.

        Warns:
            BudgetsAddWarning, LargeDeltaWarning: If some records have no total, and this is not their first;
                if delta exceeds 1/n.
        """
        check_kind("budget", budget, Budget, remedy="write Budget(epsilon=1.0, delta=1e-9)")
        self._check_process()
        promised = checked_integer("rows_per_person", rows_per_person, at_least=1)
        self._warned_first(partial(self._spend, budget, account, what, file, promised))

    def _spend(
        self,
        budget: Budget,
        account: Filter | None,
        what: Literal["session", "release"],
        file: str,
        promised: int,
        warned: Warned,
    ) -> Warned | None:
        """Spend a budget, or return what is to be warned of first: no other comes in between."""
        self.check_promised(promised, what)
        self.check_neighbours(budget)
        if (total := self.total) is not None:
            total.check(budget, account, file)
        first = self._large_delta(budget) if self._spent.uncovered else []
        if before := self._spent.beside:
            rows = max(self._spent.rows, promised)
            first.append((_added(before, budget, rows, self.unit), BudgetsAddWarning))
        if first != warned:
            return first
        if total is not None:
            total.draw(budget, account, what, file)
        self._spent.add(budget)
        self._spent.promise(promised)
        self._settle()
        return None

    def check_promised(self, rows: int, what: Literal["session", "release"] = "release") -> None:
        """Raise `InvalidParameterError` unless a promise for so many rows is one for a person of this table.

        The rows of a table of persons are their equal parts: only a session promises for all of these, and
        counts by them. With a total, too, whose shares are those of one part.
        """
        kept = checked_integer("rows", rows, at_least=1) * (
            1 if self.total is None else self.total.rows_per_person
        )
        if self.unit is not None and (what == "release" or kept != self.unit.moved):
            raise InvalidParameterError(
                f"a table of persons must be asked by a session, which protects {self.unit.said}, got "
                "another mechanism, or a promise for others; open OnlineIC(data, budget), or load one row a "
                "person without unit=."
            )

    def check_neighbours(self, budget: Budget) -> None:
        """Raise `InvalidParameterError` if a budget promises what nothing keeps where n is public, or not."""
        check_kind("budget", budget, Budget, remedy="write Budget(epsilon=1.0, delta=1e-9)")
        if (budget.neighbours == ADD_REMOVE) is not (self.neighbours == ADD_REMOVE):
            raise InvalidParameterError(
                f"budget must be for the neighbours of the table, {self.neighbours}, got one for "
                f"{budget.neighbours}; nothing was spent: load the table with "
                "neighbours='add-remove' for a session, else leave it out."
            )

    def _check_process(self) -> None:
        if not self._spent.is_here:
            raise ForkedSessionError(
                "data must be released in the process that loaded them, got a forked one: it would spend "
                "beside its parent, and neither would count the other's; load the table in one process."
            )

    def _large_delta(self, budget: Budget) -> Warned:
        """Return the warning of a promise that a mechanism would keep that gives away one row in full."""
        # where the number is private the session asks, by the n that it releases
        return large_delta(budget, self.mass) if self.neighbours == REPLACE_ONE else []

    def enter(
        self,
        owner: Any,
        budget: Budget | None,
        file: str = "",
        account: Filter | None = None,
        rows_per_person: int = 1,
        paid: bool = False,
    ) -> None:
        """Enter a budget that a ledger is about to spend on this table.

        Once a ledger with one budget and account: a constructor that was interrupted may be called on it
        again, but with another budget, or noise that is not simulated any more, it spends another one; and
        once a ledger `file`, known by the link of its beginning. None: simulated. The budget is that of one
        row, as for `spend`; where it is `paid`, it was spent before.
        """
        if budget is not None:
            self._check_process()
        rows = checked_integer("rows_per_person", rows_per_person, at_least=1)
        self._warned_first(partial(self._enter, owner, budget, file, account, rows, paid))

    def _enter(
        self,
        owner: Any,
        budget: Budget | None,
        file: str,
        account: Filter | None,
        rows: int,
        paid: bool,
        warned: Warned,
    ) -> Warned | None:
        """Enter a ledger, or return what is to be warned of first."""
        self.check_file(owner, file)
        if budget is not None:
            self.check_promised(rows, "session")
        if not self._spent.known(owner, budget, account):
            if budget is not None and not paid and not self._spent.knows_file(file):
                first = self._spend(budget, account, "session", file, rows, warned)
                if first is not None:
                    return first
            self._spent.enter(owner, budget, account, file)
        if budget is not None:
            self._spent.promise(rows)
        self._settle()  # who is in parts stays in these
        return None

    def knows(self, ledger: Ledger) -> bool:
        """Whether a ledger was entered, and so its budget among those of this table."""
        return self._spent.holds(ledger)

    def begun(self, ledger: Ledger) -> None:
        """Let the table, and its total, know how far a ledger is whose run begins, before it reads the table.

        Raises:
            LedgerError: If that cannot be made durable.
        """
        if not isinstance(ledger, SqliteLedger):
            return
        if (total := self.total) is not None:
            total.note(ledger)
        GATE.run(partial(self._spent.note, ledger))

    def leave(self, ledger: Ledger) -> None:
        """Let the total of the table, if it is open, know how far a ledger is that is about to be closed.

        Where that cannot be kept the ledger is closed all the same: as its run began, it was.
        """
        if getattr(ledger, "file", "") and (total := self.total) is not None:
            with contextlib.suppress(LedgerError):
                total.note(ledger)

    def check_file(self, account: Any, file: str) -> None:
        """Raise unless this ledger `file` is the one that is spent from.

        Raises:
            LedgerLockedError: If another account that is held is a copy of it.
            LedgerRollbackError: If the table, or its total, knows it to be longer: it is an older copy.
            ForkedSessionError: As `spend`.
        """
        if file:
            self._check_process()
        if file and (total := self.total) is not None:
            total.check_newest(account)
        if file and any(
            other is not account and getattr(other, "file", "") == file and other.held
            for other in self._spent.ledgers
        ):
            raise LedgerLockedError(
                "ledger must be used by one session at a time, got a copy of one that is open on this table: "
                "both would spend one budget; close that session, and go on with its file."
            )
        if isinstance(account, SqliteLedger):
            self._spent.check_newest(account)

    @property
    def reads(self) -> int:
        return self._reads

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.domain.shape))
        if self.neighbours != REPLACE_ONE:
            said = protected(self.unit, True)
            return (
                f"PrivateData(n private, at most {self.n_at_most:,}, protects {said}, domain={shape} cells)"
            )
        if self.unit is None:
            return f"PrivateData(n={self.n}, domain={shape} cells)"
        return f"PrivateData(n={self.n} {whose(self.unit)}, protects {self.unit.said}, domain={shape} cells)"

    def _repr_html_(self) -> str:
        n_private, what = self.neighbours != REPLACE_ONE, whose(self.unit)
        many = (
            f"at most {self.n_at_most:,} {what}, how many is private" if n_private else f"{self.n:,} {what}"
        )
        protects = facts([("protects", protected(self.unit, n_private))])
        return card(f"Private table of {many}", protects, self.domain._repr_html_())

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "PrivateData cannot be copied or pickled: a copy would hold the private counts; load it anew."
        )


@loader
def united(tables: Sequence[PrivateData], payer: object) -> PrivateData:
    """Return `PrivateData.union` of tables, of which a root pays for what all release (theory 13.1)."""
    return PrivateData._united(tables, payer)


def paid_by(data: PrivateData, payer: object) -> PrivateData:
    """Return the same table as one of which a root pays for what is released."""
    return data._paid_by(payer)


def _added(before: Sequence[Budget], budget: Budget, rows: int, unit: Unit | None) -> str:
    """Return what a table costs a person with so many rows, that gets one more budget; each is of one row."""
    *earlier, one = (per_person(each, rows) for each in (*before, budget))
    epsilon = math.fsum(each.epsilon for each in earlier)
    delta = math.fsum(each.delta for each in earlier)
    person = f" a person with {rows} rows" if rows > 1 else ""
    if unit is not None:  # rows are equal parts here, or as many as count
        person = " a record" if unit.person is None else " a person"
    return (
        f"a table must have one total to keep one budget, got another of epsilon={one.epsilon:.6g}, "
        f"delta={one.delta:.6g} after epsilon={epsilon:.6g}, delta={delta:.6g}: both together cost{person} "
        f"epsilon={epsilon + one.epsilon:.6g}, delta={delta + one.delta:.6g}. Keep one session, or let "
        "the table draw on a total: data.draw_on(TableBudget(budget))."
    )


def large_delta(budget: Budget, n: int) -> Warned:
    """Return the warning of a promise that a mechanism would keep that gives away one of n rows in full."""
    if budget.delta_exact * n <= 1:
        return []
    text = (
        f"delta must be below 1/n to protect a row, got delta={budget.delta:.4g} for n={n}: "
        "a mechanism that shows one row at random, in full, keeps it too; take 1/n^2, or 1e-9."
    )
    return [(text, LargeDeltaWarning)]


def warn_large_delta(budget: Budget, n: int) -> None:
    """Warn where a mechanism that gives away one of n rows in full would keep the promise."""
    for one in large_delta(budget, n):
        warnings.warn(*one, stacklevel=callers_line())


def _check_domain(
    domain: Domain,
    unit: Unit | None = None,
    neighbours: str = "replace-one",
    n_at_most: int = MOST_RECORDS,
) -> tuple[Neighbours, int]:
    """Refuse what is no domain, or has a column that nothing can count, before anything is read.

    Return who differs between tables that are neighbours, and the most records of them.
    """
    check_domain(domain)
    check_unit(unit, (*domain.names, *domain.columns), neighbours == "add-remove")
    long = long_axes(domain)
    for axis, (name, size) in enumerate(zip(domain.names, domain.shape, strict=True)):
        most_codes = MOST_CODES if axis in long else MAX_CELLS
        if size > most_codes:
            raise TooLargeError(f"{name} must have at most {most_codes:,} cells, got {size:,}; bin it.")
    check_choice("neighbours", neighbours, *RELATIONS)
    if neighbours == "add-remove" and domain.size > MAX_CELLS:
        raise TooLargeError(
            f'domain must have at most {MAX_CELLS:,} cells with neighbours="add-remove", got '
            f"{domain.size:,}: above "
            f"that rows are kept, and the time of a read would tell how many; project it to fewer "
            "attributes."
        )
    most = checked_integer("n_at_most", n_at_most, at_least=1)
    if neighbours == "replace-one" and most != MOST_RECORDS:
        raise InvalidParameterError(
            f"n_at_most must be left out where the number of records is public, got {most:,}; or write "
            'neighbours="add-remove".'
        )
    return RELATIONS[neighbours], min(most, MOST_COUNTED // parts_of(1, unit))


def _check_counting(
    counting: str | None,
    sets: Iterable[Iterable[str]],
    domain: Domain,
    unit: Unit | None,
    neighbours: str,
) -> list[Axes] | None:
    """Return the sets to count at load where the rows are, or None if all come here or one GROUP BY does.

    Raises:
        InvalidParameterError, InvalidQueryError: If this cannot be done, or a name is no attribute.
    """
    if counting is not None:
        check_choice("counting", counting, *COUNTINGS)
    announced = []
    for one in checked_list("sets", sets, remedy="write [('age', 'sex', 'race')]"):
        if isinstance(one, str):
            raise InvalidParameterError(
                f"sets must be lists of names, got the text {shown(one)}; write [('age', 'sex', 'race')]."
            )
        names = checked_list("sets", one, remedy="write [('age', 'sex', 'race')]")
        announced.append(tuple(sorted({domain.axis(name) for name in names})))
    if counting in (None, "rows"):
        return None
    from onlineic.data.frames import GROUPED  # few sessions load a frame: imported with it

    if domain.size <= GROUPED:
        return None
    if unit is not None or neighbours == "add-remove":
        raise InvalidParameterError(
            f"counting must be None or 'rows' with unit or neighbours='add-remove', got {shown(counting)}: "
            "tables that stay where they live have one record a row, and a public number of them."
        )
    return announced


def _check_rows(codes: Column, weights: Ints | None) -> None:
    """Refuse counts that are not one a row, and more rows than memory is planned for."""
    if weights is not None and weights.shape != (len(codes),):
        raise InvalidDataError(
            "counts must have one entry a row, got another number of them; give every row its count."
        )
    if len(codes) > MAX_ROWS:
        raise TooLargeError(
            f"records must be at most {MAX_ROWS:,} rows, got more; give equal rows once, with their number, "
            "to from_counts."
        )


def _narrowed(codes: Column, size: int) -> Column:
    """Return a column of codes in the smallest type that holds them all."""
    if codes.size and not 0 <= codes.min() <= codes.max() < size:
        raise InternalError("codes must lie inside the domain.")
    return codes.astype(narrowest(size), copy=False)


def _checked_counts(counts: Any) -> Ints:
    """Return counts as int64, if they are integers >= 0 whose sum is at most 2^53."""
    try:
        array = np.asarray(counts)
    except Exception:  # whatever its objects raise
        raise InvalidDataError(
            f"counts must be an array of integers, got a {type(counts).__name__} that is none; give every "
            "row one."
        ) from None
    if not array.size:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu" or isinstance(counts, np.ma.MaskedArray):
        raise InvalidDataError(f"counts must be integers, got dtype {array.dtype}; round them first.")
    if array.size and array.min() < 0:
        raise InvalidDataError("counts must be >= 0, got a negative count; correct it.")
    # int64 sums wrap around: ask the float sum first, which is right to a factor of two
    if array.sum(dtype=np.float64) > 2.0**54 or array.sum(dtype=np.int64) > 2**53:
        raise InvalidDataError("counts must sum to at most 2^53, got more; count coarser records.")
    return array.astype(np.int64)
