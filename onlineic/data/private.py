"""The private table: the only holder of records and counts.

Only `session`, `offline`, `baselines`, `evaluate`, `audit` and the front ends may import this module, and
its read method `exact_counts` has a name that nothing else uses: a test holds both rules.
"""

import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, final, overload

import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.domain.attributes import Attribute, Binned, Categorical
from onlineic.domain.domain import Domain
from onlineic.errors import (
    DomainMismatchError,
    InternalError,
    InvalidDataError,
    InvalidParameterError,
    TooLargeError,
)
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query, totals
from onlineic.queries.tables import Tables

MAX_CELLS = 2**26  # dense counts: 512 MB


@final
class PrivateData:
    """The sensitive table as exact cell counts over a public domain.

    Nothing private is shown by `repr`; copies and pickles are refused. The work of a read depends on the
    query, the domain and n only, never on how many records match (safety of timing).

    Attributes
    ----------
    domain : Domain
    n : int
        Number of records, public. One record is the unit of privacy: if one person can have several
        rows, the guarantee is per row.
    reads : int
        How many times `exact_counts` was called: public, since it depends on released facts alone.
    """

    __slots__ = ("_accounts", "_counts", "_lock", "_reads", "_tables", "budgets", "domain", "n")

    def __init__(self, counts: Ints, domain: Domain) -> None:
        _check_size(domain)
        array = _checked_counts(counts)
        if array.shape not in ((domain.size,), domain.shape):
            raise InvalidDataError(
                f"counts must have shape ({domain.size},) or {domain.shape}, got {array.shape}; "
                "order the cells as the domain does."
            )
        self.domain = domain
        self.n = int(array.sum())
        if self.n < 1:
            raise InvalidDataError("records must be one or more, got none; load some.")
        self.budgets: list[Budget] = []
        self._accounts: list[weakref.ref[Any]] = []
        self._reads = 0
        self._lock = threading.Lock()
        # float64 holds these integers exactly, and so is every partial sum below 2^53: any order of
        # summation, any number of threads gives the same integer
        self._counts = array.astype(np.float64).reshape(domain.shape)
        self._tables = Tables(self._counts, prefix_cells=MAX_CELLS)

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
        _check_size(domain)
        return cls._tabulated(domain.encode(columns), None, domain)

    @classmethod
    def from_counts(cls, columns: Mapping[str, Any], counts: Any, domain: Domain) -> "PrivateData":
        """Return an aggregated table: `counts[i]` records have the values of row i; rows may repeat."""
        _check_size(domain)
        weights = _checked_counts(counts)
        codes = domain.encode(columns)
        if weights.shape != (len(codes),):
            raise InvalidDataError(
                f"counts must have one entry a row, got shape {weights.shape} for {len(codes)} rows; "
                "give every row its count."
            )
        return cls._tabulated(codes, weights, domain)

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
        import csv  # few sessions load a file: imported with it

        try:
            with open(path, newline="", encoding="utf-8-sig") as file:
                reader = csv.reader(file, skipinitialspace=True)
                header = next(reader, [])
                rows = [row for row in reader if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InvalidDataError(
                f"the file must be a CSV table in UTF-8, got {error}; convert it."
            ) from None
        wanted = [*domain.names, *([] if count is None else [count])]
        for name in wanted:
            if header.count(name) != 1:
                raise InvalidDataError(
                    f"the file must have one column for {name}, got {header.count(name)}; see its header."
                )
        ragged = [number for number, row in enumerate(rows) if len(row) != len(header)]
        if ragged:
            raise InvalidDataError(
                f"every line must have {len(header)} fields, got another number in row {ragged[0]}."
            )
        place = {name: header.index(name) for name in wanted}
        columns = {name: [_parse(kind, row[place[name]]) for row in rows] for name, kind in domain}
        if count is None:
            return cls.from_records(columns, domain)
        try:
            numbers = np.array([_integer(row[place[count]]) for row in rows], np.int64)
        except (ValueError, OverflowError):
            raise InvalidDataError(
                f"{count} must hold whole numbers, got another value; correct the column."
            ) from None
        return cls.from_counts(columns, numbers, domain)

    @classmethod
    def _tabulated(cls, codes: Ints, counts: Ints | None, domain: Domain) -> "PrivateData":
        flat = np.ravel_multi_index(tuple(codes.T), domain.shape)  # refuses codes outside: never wraps
        table = np.zeros(domain.size, np.int64)
        if counts is None:
            table += np.bincount(flat, minlength=domain.size)
        else:
            np.add.at(table, flat, counts)
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
        self._check(target)
        with self._lock:
            self._reads += 1
            if isinstance(target, Partition):
                return np.rint(target.measure(self._tables.table(target.axes))).astype(np.int64)
            return int(target.total(self._tables, self.n))

    def exact_counts_many(self, queries: Sequence[Query]) -> Ints:
        """Return n 2^k f(D) of every query, shape (m,), exact: one read each. PRIVATE."""
        for query in queries:
            self._check(query)
        with self._lock:
            self._reads += len(queries)
            return np.rint(totals(queries, self._tables, self.n)).astype(np.int64)

    def _check(self, target: Query | Partition) -> None:
        other = target.domain
        if other is not self.domain and (other.shape != self.domain.shape or other != self.domain):
            raise DomainMismatchError(
                f"target must be bound to domain {self.domain.digest()}, got {target.domain.digest()}."
            )
        if self.n << target.grid_bits > 2**53:
            raise InternalError("n 2^grid_bits must be at most 2^53.")

    def enter(self, account: Any, budget: Budget | None) -> bool:
        """Enter a budget that an account is about to spend on this table; whether the account was known.

        Once an account: a constructor that was interrupted may be called on it again. None: simulated.
        """
        self._accounts = [known for known in self._accounts if known() is not None]
        if any(known() is account for known in self._accounts):
            return True
        if budget is not None:
            self.budgets.append(budget)
        self._accounts.append(weakref.ref(account))
        return False

    @property
    def reads(self) -> int:
        return self._reads

    def __repr__(self) -> str:
        return f"PrivateData(n={self.n}, domain={' x '.join(map(str, self.domain.shape))} cells)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("PrivateData cannot be copied or pickled: a copy would hold the private counts.")


def _check_size(domain: Domain) -> None:
    """Refuse what is no domain, or too large for dense counts, before anything is allocated."""
    if type(domain) is not Domain:  # a subclass could have another shape tomorrow
        raise InvalidParameterError(
            f"domain must be a Domain, got a {type(domain).__name__}; write Domain.of(...)."
        )
    if domain.size > MAX_CELLS:
        raise TooLargeError(
            f"domain must have at most {MAX_CELLS:,} cells for dense counts, got {domain.size:,}; "
            "project it to fewer attributes."
        )


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


def _integer(text: str) -> int:
    """Return an integer written in plain digits: int() would take 1_000 too."""
    if "_" in text:
        raise ValueError
    return int(text)


def _parse(kind: Attribute, text: str) -> Any:
    """Read one CSV field as the attribute's type; unreadable text is left for `encode` to refuse."""
    if text == "" and (kind.missing or not isinstance(kind, Categorical) or "" not in kind.labels):
        return None
    if isinstance(kind, Categorical):
        if isinstance(kind.labels[0], bool):
            return {"true": True, "false": False, "1": True, "0": False}.get(text.lower(), text)
        if isinstance(kind.labels[0], str):
            return text
    try:
        if isinstance(kind, Binned) or "." in text:  # 17.0: an integer column with gaps, exported
            return text if "_" in text else float(text)
        return _integer(text)
    except ValueError:
        return text
