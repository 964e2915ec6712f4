"""DuckDB relations: counted by DuckDB, or streamed out of it.

PRIVATE. DuckDB reads files and other tables too, so this is the way of the largest ones.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlineic.data.coding import Batch, Places, places
from onlineic.data.persons import Parted
from onlineic.data.pieces import Pieces, by_days, pieces
from onlineic.data.rows import Column
from onlineic.domain.domain import Domain

ROWS = 2**18  # that are taken together
# Cast to doubles as numpy does; decimals, and integers of more bits or without a sign, come as they are.
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
FLOATS = ("FLOAT", "DOUBLE")
TIMES = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")  # without a zone


def groups(relation: Any, domain: Domain | Parted) -> Iterator[Batch]:
    """Yield the groups of equal records: one statement, one snapshot.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    domain : Domain
        Every attribute has a column of its name.
    """
    types = [str(relation.types[relation.columns.index(name)]) for name in domain.names]
    cuts: list[Pieces | None] = []
    keys = []
    columns = zip(_columns(relation, domain), types, domain.attributes, strict=True)
    for at, (column, held, kind) in enumerate(columns):
        cut = pieces(kind, whole=held in WHOLE) if held in WHOLE + FLOATS else None
        if cut is not None:
            number = f"CAST({column} AS DOUBLE)"
            # isnan() is never true in a file whose statistics, without NaN, hold one number alone
            is_nan = f"contains(CAST({number} AS VARCHAR), 'nan')" if held in FLOATS else "FALSE"
            column = cut.sql(number, is_nan, "CAST('inf' AS DOUBLE)", _double)
        elif held.startswith("VARCHAR"):  # a column may have another collation, of which 'a' is 'A'
            column += ' COLLATE "C"'
        elif held in TIMES and by_days(kind):  # else nearly every row would be a group
            column = f"CAST({column} AS DATE)"
        keys.append(f"{column} AS a{at}")
        cuts.append(cut)
    names = ", ".join(f"a{at}" for at in range(len(keys)))
    counted = relation.project(", ".join(keys)).aggregate(f"{names}, COUNT(*) AS records", names)
    for *found, records, total in _batches(counted.cross(_count(relation))):
        yield Batch(
            [
                column if cut is None else cut.places(_integers(column))
                for column, cut in zip(found, cuts, strict=True)
            ],
            _integers(records),
            int(_integers(total)[0]),
        )


def rows(relation: Any, domain: Domain | Parted) -> Iterator[Batch]:
    """Yield the rows, many at a time: one statement, one snapshot."""
    named = (f"{column} AS a{at}" for at, column in enumerate(_columns(relation, domain)))
    chosen = relation.project(", ".join(named))
    for *columns, total in _batches(chosen.cross(_count(relation))):
        yield Batch(columns, None, int(_integers(total)[0]))


def _count(relation: Any) -> Any:
    return relation.aggregate("COUNT(*) AS total")


def _columns(relation: Any, domain: Domain | Parted) -> list[str]:
    """Return the attributes' columns in SQL, by their places: to DuckDB the names "a" and "A" are one."""
    return [f"#{relation.columns.index(name) + 1}" for name in domain.names]


def _batches(relation: Any) -> Iterator[list[Column | Places]]:
    """Yield the columns of a relation: many rows at a time through Arrow, if it is installed, else all."""
    try:
        from onlineic.data.columns import of_arrow

        reader = (
            relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_record_batch
        )
        for batch in reader(ROWS):
            if batch.num_rows:
                yield [of_arrow(column) for column in batch.columns]
    except ImportError:
        found = relation.fetchall()
        if found:
            yield [places(field) for field in zip(*found, strict=True)]


def _integers(column: Column | Places) -> Any:
    """Return a column of integers that are never missing as an array."""
    if isinstance(column, np.ndarray):
        return column.astype(np.int64)
    values, found = column
    return np.array(values, np.int64)[found]


def _double(edge: float) -> str:
    """Return a double in SQL: without an exponent it would be a decimal."""
    text = repr(edge)
    return text if "e" in text else f"{text}e0"
