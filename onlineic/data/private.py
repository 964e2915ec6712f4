"""The private table: the only holder of records and counts.

Only `session`, `offline`, `baselines`, `evaluate`, `audit` and the front ends may import this module, and
its read method `exact_counts` has a name that nothing else uses: a test holds both rules.
"""

import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, final, overload

import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.data.rows import Column, Rows, narrowest
from onlineic.domain.domain import Domain
from onlineic.errors import (
    DomainMismatchError,
    InternalError,
    InvalidDataError,
    InvalidParameterError,
    LedgerLockedError,
    TooLargeError,
)
from onlineic.queries.batch import Queries
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query, totals
from onlineic.queries.tables import Tables

MAX_CELLS = 2**26  # dense counts: 512 MB; of more cells the rows are kept
MAX_ROWS = 2**27


@final
class PrivateData:
    """The sensitive table over a public domain: exact cell counts, or above 2^26 cells its rows.

    Nothing private is shown by `repr`; copies and pickles are refused. The work of a read depends on the
    query, the domain and n only, never on how many records match (safety of timing). Above 2^26 cells it
    depends on the number of rows given to `from_counts` too, which is then public: pad it where it may not
    be.

    Attributes
    ----------
    domain : Domain
    n : int
        Number of records, public. One record is the unit of privacy: if one person can have several
        rows, the guarantee is per row.
    reads : int
        How many times `exact_counts` was called: public, since it depends on released facts alone.
    """

    __slots__ = ("_accounts", "_files", "_lock", "_reads", "_tables", "budgets", "domain", "n")

    def __init__(self, counts: Ints, domain: Domain) -> None:
        _check_domain(domain)
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
        self._begin(domain, int(array.sum()), Tables(cells, prefix_cells=MAX_CELLS))

    def _begin(self, domain: Domain, n: int, tables: Tables | Rows) -> "PrivateData":
        if n < 1:
            raise InvalidDataError("records must be one or more, got none; load some.")
        self.domain = domain
        self.n = n
        self.budgets: list[Budget] = []
        self._accounts: list[weakref.ref[Any]] = []
        self._files: set[str] = set()
        self._reads = 0
        self._lock = threading.Lock()
        self._tables = tables
        return self

    @classmethod
    def from_records(cls, columns: Mapping[str, Any] | np.ndarray[Any, Any], domain: Domain) -> "PrivateData":
        """Return the table of one record a row.

        Parameters
        ----------
        columns : mapping of name to array or list, or structured array
            At least the domain's attributes.
        domain : Domain
            Written down from public knowledge.

        Raises
        ------
        InvalidDataError
            If a value lies outside the domain: nothing is ever dropped silently, since n is public.
        """
        _check_domain(domain)
        return cls._of_rows(domain.encoded(columns), None, domain)

    @classmethod
    def from_counts(cls, columns: Mapping[str, Any], counts: Any, domain: Domain) -> "PrivateData":
        """Return an aggregated table: `counts[i]` records have the values of row i; rows may repeat."""
        _check_domain(domain)
        weights = _checked_counts(counts)
        return cls._of_rows(domain.encoded(columns), weights, domain)

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str], domain: Domain, *, count: str | None = None
    ) -> "PrivateData":
        """Return the table of a CSV file with a header line; an empty field is a missing value.

        Parameters
        ----------
        path : str or path
        domain : Domain
            Says how each column is read: whole numbers, numbers or text. Other columns are ignored.
        count : str, optional
            Column that says how many records a line stands for.
        """
        from onlineic.data.table_file import read_csv  # few sessions load a file: imported with it

        _check_domain(domain)
        columns, numbers = read_csv(path, domain, count)
        return cls._of_rows(iter(columns), None if numbers is None else _checked_counts(numbers), domain)

    @classmethod
    def _of_rows(cls, columns: Iterator[Column], weights: Ints | None, domain: Domain) -> "PrivateData":
        """Return the table of rows given attribute by attribute."""
        if domain.size > MAX_CELLS:
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
        return cls(table, domain)

    @overload
    def exact_counts(self, target: Query) -> int: ...
    @overload
    def exact_counts(self, target: Partition) -> Ints: ...
    def exact_counts(self, target: Query | Partition) -> int | Ints:
        """Return n 2^k f(D) as an exact integer, or the (blocks,) exact counts of a partition. PRIVATE.

        Parameters
        ----------
        target : Query or Partition
            Bound to this domain, with n 2^grid_bits <= 2^53.
        """
        self._check_domain(target.domain, target.grid_bits)
        with self._lock:
            self._reads += 1
            tables = self._tables
            if not isinstance(target, Partition):
                return int(target.total(tables, self.n))
            if isinstance(tables, Rows):
                return tables.measure(target)
            return np.rint(target.measure(tables.table(target.axes))).astype(np.int64)

    def exact_counts_many(self, queries: Sequence[Query]) -> Ints:
        """Return n 2^k f(D) of every query, shape (m,), exact: one read each. PRIVATE."""
        if isinstance(queries, Queries):
            self._check_domain(queries.domain, int(queries.grid_bits.max(initial=0)))
        else:
            for query in queries:
                self._check_domain(query.domain, query.grid_bits)
        with self._lock:
            self._reads += len(queries)
            return np.rint(totals(queries, self._tables, self.n)).astype(np.int64)

    def _check_domain(self, other: Domain, grid_bits: int) -> None:
        if other is not self.domain and (other.shape != self.domain.shape or other != self.domain):
            raise DomainMismatchError(
                f"target must be bound to domain {self.domain.digest()}, got {other.digest()}."
            )
        if self.n << grid_bits > 2**53:
            raise InternalError("n 2^grid_bits must be at most 2^53.")

    def enter(self, account: Any, budget: Budget | None, file: str = "") -> bool:
        """Enter a budget that an account is about to spend on this table; whether the account was known.

        Once an account: a constructor that was interrupted may be called on it again; and once a ledger
        `file`, known by the link of its beginning. None: simulated.
        """
        self._accounts = [known for known in self._accounts if known() is not None]
        if any(known() is account for known in self._accounts):
            return True
        if budget is not None and file not in self._files:
            self.budgets.append(budget)
        self._files |= {file} - {""}
        self._accounts.append(weakref.ref(account))
        return False

    def check_file(self, account: Any, file: str) -> None:
        """Raise `LedgerLockedError` if another account that is held is a copy of this ledger `file`."""
        others = [known() for known in self._accounts]
        if file and any(
            other is not account and getattr(other, "file", "") == file and other.held
            for other in others
            if other is not None
        ):
            raise LedgerLockedError(
                "ledger must be used by one session at a time, got a copy of one that is open on this table: "
                "both would spend one budget; close that session, and go on with its file."
            )

    @property
    def reads(self) -> int:
        return self._reads

    def __repr__(self) -> str:
        return f"PrivateData(n={self.n}, domain={' x '.join(map(str, self.domain.shape))} cells)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("PrivateData cannot be copied or pickled: a copy would hold the private counts.")


def _check_domain(domain: Domain) -> None:
    """Refuse what is no domain, or has a column that nothing can count, before anything is read."""
    if type(domain) is not Domain:  # a subclass could have another shape tomorrow
        raise InvalidParameterError(
            f"domain must be a Domain, got a {type(domain).__name__}; write Domain.of(...)."
        )
    for name, size in zip(domain.names, domain.shape, strict=True):
        if size > MAX_CELLS:
            raise TooLargeError(f"{name} must have at most {MAX_CELLS:,} cells, got {size:,}; bin it.")


def _check_rows(codes: Column, weights: Ints | None) -> None:
    """Refuse counts that are not one a row, and more rows than memory is planned for."""
    if weights is not None and weights.shape != (len(codes),):
        raise InvalidDataError(
            f"counts must have one entry a row, got shape {weights.shape} for {len(codes)} rows; "
            "give every row its count."
        )
    if len(codes) > MAX_ROWS:
        raise TooLargeError(
            f"records must be at most {MAX_ROWS:,} rows, got {len(codes):,}; give equal rows once, with "
            "their number, to from_counts."
        )


def _narrowed(codes: Column, size: int) -> Column:
    """Return a column of codes in the smallest type that holds them all."""
    if codes.size and not 0 <= codes.min() <= codes.max() < size:
        raise InternalError("codes must lie inside the domain.")
    return codes.astype(narrowest(size), copy=False)


def _checked_counts(counts: Any) -> Ints:
    """Return counts as int64, if they are integers >= 0 whose sum is at most 2^53."""
    array = np.asarray(counts)
    if array.dtype.kind not in "iu" or isinstance(counts, np.ma.MaskedArray):
        raise InvalidDataError(f"counts must be integers, got dtype {array.dtype}; round them first.")
    if array.size and array.min() < 0:
        raise InvalidDataError("counts must be >= 0, got a negative count; correct it.")
    # int64 sums wrap around: ask the float sum first, which is right to a factor of two
    if array.sum(dtype=np.float64) > 2.0**54 or array.sum(dtype=np.int64) > 2**53:
        raise InvalidDataError("counts must sum to at most 2^53, got more; count coarser records.")
    return array.astype(np.int64)
