"""DuckDB relations: counted by DuckDB, or streamed out of it.

PRIVATE. DuckDB reads files and other tables too, so this is the way of the largest ones.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from onlineic._typing import Ints
from onlineic.data.coding import Batch, Places, coded, places
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
    keys, cuts = _keys(relation, domain)
    names = ", ".join(f"a{at}" for at in range(len(keys)))
    counted = relation.project(", ".join(keys)).aggregate(f"{names}, COUNT(*) AS records", names)
    for *found, records, total in _batches(counted.cross(_count(relation))):
        yield Batch(_cut(found, cuts), _integers(records), int(_integers(total)[0]))


def grouping_sets(
    relation: Any, domain: Domain, sets: Sequence[tuple[int, ...]]
) -> list[tuple[list[Column], Ints]]:
    """Return the codes and records of the groups over each set of attributes: one statement, one snapshot.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    domain : Domain
    sets : sequence of tuple of int
        Rising places in the domain.
    """
    used = sorted({axis for axes in sets for axis in axes})
    part = domain.project(*(domain.names[axis] for axis in used))
    keys, cuts = _keys(relation, part)
    names = [f"a{at}" for at in range(len(keys))]
    places = [[used.index(axis) for axis in axes] for axes in sets]
    grouped = ", ".join(f"({', '.join(names[place] for place in held)})" for held in places)
    every = ", ".join(names)
    counted = relation.project(", ".join(keys)).aggregate(
        f"{every}, GROUPING({every}) AS beside, COUNT(*) AS records", f"GROUPING SETS ({grouped})"
    )
    return of_sets(_tables(counted.cross(_count(relation))), part, places, cuts)


def of_sets(
    tables: Iterable[tuple[Sequence[Any], Ints, Callable[[Any, Ints], Column | Places]]],
    domain: Domain,
    sets: Sequence[Sequence[int]],
    cuts: Sequence[Pieces | None],
) -> list[tuple[list[Column], Ints]]:
    """Return the codes and records of the groups over each set, from the groups over all of them.

    Parameters
    ----------
    tables : iterable of (columns, beside, read)
        Columns of the attributes, of records and of the number of all rows; which attributes a group does
        not tell apart, the first one the highest bit; and how some rows of a column are read.
    domain : Domain
    sets : sequence of sequence of int
        Rising places in the domain.
    cuts : sequence of Pieces or None
    """
    last = len(domain.names) - 1
    marks = [2 ** (last + 1) - 1 - sum(1 << (last - place) for place in held) for held in sets]
    found: list[list[Batch]] = [[] for _ in sets]
    for columns, beside, read in tables:
        for held, mark, batches in zip(sets, marks, found, strict=True):
            rows = np.flatnonzero(beside == mark)
            if len(rows):
                values = _cut([read(columns[place], rows) for place in held], [cuts[place] for place in held])
                records, total = (_integers(read(column, rows)) for column in columns[-2:])
                batches.append(Batch(values, records, int(total[0])))
    result = []
    for held, batches in zip(sets, found, strict=True):
        columns, weights = coded(batches, domain.project(*(domain.names[place] for place in held)))
        result.append((columns, np.zeros(0, np.int64) if weights is None else weights))
    return result


def _cut(columns: Sequence[Any], cuts: Sequence[Pieces | None]) -> list[Any]:
    """Return columns with pieces of numbers as the values that stand for them."""
    return [
        column if cut is None else cut.places(_integers(column))
        for column, cut in zip(columns, cuts, strict=True)
    ]


def _keys(relation: Any, domain: Domain | Parted) -> tuple[list[str], list[Pieces | None]]:
    """Return what to group by for every attribute, named a0, a1, .., and the pieces of those that are cut."""
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
    return keys, cuts


def rows(relation: Any, domain: Domain | Parted) -> Iterator[Batch]:
    """Yield the rows, many at a time: one statement, one snapshot."""
    named = (f"{column} AS a{at}" for at, column in enumerate(_columns(relation, domain)))
    chosen = relation.project(", ".join(named))
    for *columns, total in _batches(chosen.cross(_count(relation))):
        yield Batch(columns, None, int(_integers(total)[0]))


def number(relation: Any) -> int:
    """Return the number of rows."""
    return int(_count(relation).fetchall()[0][0])


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


def _tables(relation: Any) -> Iterator[tuple[Sequence[Any], Ints, Callable[[Any, Ints], Column | Places]]]:
    """Yield the columns of groups over sets, as `of_sets` takes them."""
    *_, place, _, _ = range(len(relation.columns))
    try:
        from onlineic.data.columns import of_arrow

        reader = (
            relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_record_batch
        )
        for batch in reader(ROWS):
            columns = [*batch.columns]
            yield columns[:place] + columns[place + 1 :], _integers(of_arrow(columns[place])), of_arrow_rows
    except ImportError:
        found = relation.fetchall()
        if found:
            fields = [*zip(*found, strict=True)]
            beside = np.array(fields[place], np.int64)
            yield (
                fields[:place] + fields[place + 1 :],
                beside,
                lambda field, rows: places([field[row] for row in rows.tolist()]),
            )


def of_arrow_rows(column: Any, rows: Ints) -> Column | Places:
    """Return some rows of a column of Arrow: the others may be missing, and are not read."""
    from onlineic.data.columns import of_arrow

    return of_arrow(column.take(rows))


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
