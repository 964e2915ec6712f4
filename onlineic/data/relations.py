"""DuckDB relations: named by place, and handed out many rows at a time.

PRIVATE. DuckDB reads files and other tables too, so this is the way of the largest ones.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from onlineic._typing import Ints
from onlineic.data.coding import Batch, Places, integers, places
from onlineic.data.persons import Parted
from onlineic.data.rows import Column
from onlineic.domain.domain import Domain

ROWS = 2**18  # that are taken together


def chosen(relation: Any, names: Sequence[str]) -> Any:
    """Return some columns of a `duckdb.DuckDBPyRelation`, named a0, a1, ..

    By their places: to DuckDB the names "a" and "A" are one. Text is told apart by code points: a column may
    have another collation, of which 'a' is 'A'.
    """
    columns = []
    for at, name in enumerate(names):
        place = relation.columns.index(name)
        collated = ' COLLATE "C"' if str(relation.types[place]).startswith("VARCHAR") else ""
        columns.append(f"#{place + 1}{collated} AS a{at}")
    return relation.project(", ".join(columns))


def rows(relation: Any, domain: Domain | Parted) -> Iterator[Batch]:
    """Yield the rows, many at a time: one statement, one snapshot."""
    for (*columns, total), read in handed_out(chosen(relation, domain.columns), relation):
        yield Batch([read(column) for column in columns], None, int(integers(read(total))[0]))


def number(relation: Any) -> int:
    """Return the number of rows."""
    return int(_count(relation).fetchall()[0][0])


def handed_out(found: Any, relation: Any) -> Iterator[tuple[list[Any], Any]]:
    """Yield the columns of what was found in a relation, and its number of rows, by one statement.

    Many rows at a time through Arrow, if it is installed, else all; with how a column, or some rows of one,
    is read.
    """
    together = found.cross(_count(relation))
    try:
        older = not hasattr(together, "to_arrow_reader")
        for batch in together.fetch_record_batch(ROWS) if older else together.to_arrow_reader(ROWS):
            if batch.num_rows:
                yield [*batch.columns], read_arrow
    except ImportError:
        fetched = together.fetchall()
        if fetched:
            yield [*zip(*fetched, strict=True)], _read_list


def _count(relation: Any) -> Any:
    return relation.aggregate("COUNT(*) AS total")


def read_arrow(column: Any, rows: Ints | None = None) -> Column | Places:
    """Return a column of Arrow, or some rows of it: the others may be missing, and are not read."""
    from onlineic.data.columns import of_arrow

    return of_arrow(column if rows is None else column.take(rows))


def _read_list(column: Any, rows: Ints | None = None) -> Places:
    return places(column if rows is None else [column[row] for row in rows.tolist()])
