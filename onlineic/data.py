"""The private table: the only holder of records and counts.

Only `session`, `offline`, `baselines`, `evaluate`, `audit` and the front ends may import this module, and
its read method `exact_counts` has a name that nothing else uses: a test holds both rules.
"""

import csv
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np

from onlineic._arrays import Tables
from onlineic._typing import Ints
from onlineic.attributes import Attribute, Binned, Categorical
from onlineic.domain import Domain
from onlineic.errors import DomainMismatchError, InternalError, InvalidDataError, TooLargeError
from onlineic.queries import Partition, Query

__all__ = ["MAX_CELLS", "PrivateData"]

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

    __slots__ = ("_counts", "_lock", "_reads", "_tables", "domain", "n", "opened")

    def __init__(self, counts: Ints, domain: Domain) -> None:
        if domain.size > MAX_CELLS:
            raise TooLargeError(
                f"domain must have at most {MAX_CELLS:,} cells for dense counts, got {domain.size:,}; "
                "project it to fewer attributes."
            )
        array = np.asarray(counts)
        if array.dtype.kind not in "iu" or array.size != domain.size:
            raise InvalidDataError(
                f"counts must be {domain.size} integers, one a cell, got dtype {array.dtype} and "
                f"shape {array.shape}."
            )
        if array.min() < 0:
            raise InvalidDataError("counts must be >= 0, got a negative count.")
        total = int(array.sum(dtype=object) if array.dtype == np.uint64 else array.sum(dtype=np.int64))
        if not 1 <= total <= 2**53:
            raise InvalidDataError(f"records must number between 1 and 2^53, got {total}.")
        self.domain = domain
        self.n = total
        self.opened: list[tuple[float, float]] = []
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
        return cls._tabulated(domain.encode(columns), None, domain)

    @classmethod
    def from_counts(cls, columns: Mapping[str, Any], counts: Any, domain: Domain) -> "PrivateData":
        """Return an aggregated table: `counts[i]` records have the values of row i; rows may repeat."""
        weights = np.asarray(counts)
        if weights.ndim != 1 or weights.dtype.kind not in "iu" or (weights.size and weights.min() < 0):
            raise InvalidDataError("counts must be a column of integers >= 0, got other values.")
        codes = domain.encode(columns)
        if len(codes) != len(weights):
            raise InvalidDataError(f"counts must have one entry a row, got {len(weights)} for {len(codes)}.")
        return cls._tabulated(codes, weights.astype(np.int64), domain)

    @classmethod
    def from_csv(cls, path: str | Path, domain: Domain, *, count: str | None = None) -> "PrivateData":
        """Return the table of a CSV file with a header line; an empty field is a missing value.

        Parameters
        ----------
        path : str or Path
        domain : Domain
            Says how each column is read: whole numbers, numbers or text. Other columns are ignored.
        count : str, optional
            Column that says how many records a line stands for.
        """
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, skipinitialspace=True)
            header = next(reader, [])
            rows = [row for row in reader if row]
        wanted = [*domain.names, *([count] if count else [])]
        absent = [name for name in wanted if name not in header]
        if absent:
            raise InvalidDataError(
                f"the file must have a column for {', '.join(absent)}; see its header line."
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
            numbers = np.array([int(row[place[count]]) for row in rows], np.int64)
        except ValueError:
            raise InvalidDataError(f"{count} must hold whole numbers, got another value.") from None
        return cls.from_counts(columns, numbers, domain)

    @classmethod
    def _tabulated(cls, codes: Ints, counts: Ints | None, domain: Domain) -> "PrivateData":
        if domain.size > MAX_CELLS:
            return cls(np.zeros(0, np.int64), domain)  # refused with its size
        if len(codes) == 0:
            raise InvalidDataError("records must be one or more, got none.")
        flat = np.ravel_multi_index(tuple(codes.T), domain.shape)  # refuses codes outside: never wraps
        table = np.zeros(domain.size, np.int64)
        if counts is None:
            table += np.bincount(flat, minlength=domain.size)
        else:
            np.add.at(table, flat, counts)
        return cls(table, domain)

    def exact_counts(self, target: Query | Partition) -> int | Ints:
        """Return n 2^k f(D) as an exact integer, or the (blocks,) exact counts of a partition. PRIVATE.

        Parameters
        ----------
        target : Query or Partition
            Bound to this domain, with n 2^grid_bits <= 2^53.
        """
        if target.domain is not self.domain and target.domain != self.domain:
            raise DomainMismatchError(
                f"target must be bound to domain {self.domain.digest()}, got {target.domain.digest()}."
            )
        if self.n << target.grid_bits > 2**53:
            raise InternalError("n 2^grid_bits must be at most 2^53.")
        with self._lock:
            self._reads += 1
            if isinstance(target, Partition):
                return np.rint(target.measure(self._tables.table(target.axes))).astype(np.int64)
            return int(target.total(self._tables, self.n))

    @property
    def reads(self) -> int:
        return self._reads

    def __repr__(self) -> str:
        return f"PrivateData(n={self.n}, domain={' x '.join(map(str, self.domain.shape))} cells)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("PrivateData cannot be pickled: the file would hold the private counts.")

    def __copy__(self) -> NoReturn:
        raise TypeError("PrivateData cannot be copied: pass the object itself.")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("PrivateData cannot be copied: pass the object itself.")


def _parse(kind: Attribute, text: str) -> Any:
    """Read one CSV field as the attribute's type; unreadable text is left for `encode` to refuse."""
    if text == "":
        return None if kind.missing else text
    if isinstance(kind, Categorical):
        if isinstance(kind.labels[0], bool):
            return {"true": True, "false": False, "1": True, "0": False}.get(text.lower(), text)
        if isinstance(kind.labels[0], str):
            return text
    try:
        return float(text) if isinstance(kind, Binned) else int(text)
    except ValueError:
        return text
