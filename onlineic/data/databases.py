"""Tables of a database, through Python's standard interface (PEP 249): one statement, one snapshot.

PRIVATE. What the statement asks follows from the domain and from the kind of the connection. Text is compared
by code points, whatever the collation of a column: by the database where its way of saying so is known, else
here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onlineic._typing import Ints
from onlineic.data import relations
from onlineic.data.coding import Batch, coded, places
from onlineic.data.frames import GROUPED, check_columns, grouped, opened_frame, streamed
from onlineic.data.frames import groups as counted
from onlineic.data.persons import Parted
from onlineic.data.pieces import Pieces, pieces
from onlineic.data.rows import Column
from onlineic.domain.attributes import Attribute, Binned, Categorical, IntegerRange
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidDataError,
    InvalidParameterError,
    check_choice,
    shown,
)

ROWS = 2**14  # that are fetched together
BOOLLESS = ("sqlite3", "pymysql", "MySQLdb", "mysql", "mariadb")  # 0 and 1 stand for booleans
CLOSING = {'"': '"', "`": "`", "[": "]"}


def read_table(
    connection: Any, table: str, domain: Domain | Parted, quote: str
) -> tuple[list[Column], Ints | None, str]:
    """Return the codes of a table's rows or groups, how many records each is, and how that was done.

    Raises:
        InvalidDataError: If there is no such table or column, or a value lies outside the domain.
    """
    source, driver = checked_source(connection, table, domain, quote)
    few = domain.size <= GROUPED
    if driver == "duckdb":  # a cursor of its own would not see temporary tables
        relation = connection.sql(f"SELECT * FROM {source}")
        frame = opened_frame(relation)[0] if few else None
        batches = relations.rows(relation, domain) if frame is None else counted(frame, driver, domain)
        return *coded(batches, domain), (grouped if few else streamed)(driver, domain)
    cursor = connection.cursor()
    try:
        few = few and (driver == "sqlite3" or all(map(_is_textless, domain.attributes)))
        batches = (groups if few else _rows)(cursor, source, domain, quote, driver)
        return *coded(batches, domain), (grouped if few else streamed)(driver, domain)
    finally:
        cursor.close()


def checked_source(connection: Any, table: str, domain: Domain | Parted, quote: str) -> tuple[str, str]:
    """Return the quoted name of a table whose columns are known to hold the attributes, and the driver.

    Raises:
        InvalidParameterError, InvalidDataError: As `read_table`.
    """
    check_choice("quote", quote, *CLOSING)
    source = _table(table, quote)
    if not callable(getattr(connection, "cursor", None)):
        raise InvalidParameterError(
            f"connection must be a DB-API connection, got a {type(connection).__name__}; "
            "SQLAlchemy's engine has one: engine.raw_connection()."
        )
    held = type(getattr(connection, "driver_connection", connection))  # of SQLAlchemy's
    driver = next((root for root in map(_root, held.__mro__) if root in ("sqlite3", "duckdb")), _root(held))
    if driver == "duckdb":
        check_columns(_tried(lambda: connection.sql(f"SELECT * FROM {source}")).columns, domain)
        return source, driver
    cursor = connection.cursor()
    try:
        _tried(lambda: cursor.execute(f"SELECT * FROM {source} WHERE 1 = 0"))
        # asked of the names that there are: SQLite reads a name that it does not know as a text
        check_columns([str(column[0]) for column in cursor.description], domain)
        cursor.fetchmany(1)  # there are none; some drivers want to have said so
    finally:
        cursor.close()
    return source, driver


def groups(cursor: Any, source: str, domain: Domain | Parted, quote: str, driver: str) -> Iterator[Batch]:
    """Yield the groups of equal records, and beside them the number of all rows, counted on its own."""
    keys: list[str] = []
    cuts: list[Pieces | None] = []
    edges: list[float] = []

    def parameter(edge: float) -> str:  # SQLite reads a number in a text not always as the nearest double
        edges.append(edge)
        return "?"

    for at, (source_, kind) in enumerate(zip(domain.columns, domain.attributes, strict=True)):
        column = quoted(source_, quote)
        cut = pieces(kind, whole=False) if driver == "sqlite3" else None
        if cut is not None:  # SQLite has no NaN; any column may hold numbers and text
            number = cut.sql(column, "0", "9e999", parameter)
            column = (
                f"CASE WHEN typeof({column}) IN ('integer', 'real', 'null') THEN {number} ELSE {column} END"
            )
        keys.append(f"{column} AS a{at}")
        cuts.append(cut)
    names = [f"a{at}" for at in range(len(keys))]
    by = ", ".join(f"{name} COLLATE BINARY" if driver == "sqlite3" else name for name in names)
    _execute(
        cursor,
        f"SELECT {', '.join(names)}, COUNT(*) AS records, (SELECT COUNT(*) FROM {source}) AS total "
        f"FROM (SELECT {', '.join(keys)} FROM {source}) t GROUP BY {by}",
        edges,
    )
    for *fields, records, total in _fetched(cursor):
        columns = [
            _read(kind, field, driver) if cut is None else _of_pieces(cut, field)
            for kind, cut, field in zip(domain.attributes, cuts, fields, strict=True)
        ]
        yield Batch([places(column) for column in columns], np.array(records, np.int64), int(total[0]))


def _rows(cursor: Any, source: str, domain: Domain | Parted, quote: str, driver: str) -> Iterator[Batch]:
    """Yield the rows, and beside them their number."""
    names = ", ".join(f"{quoted(name, quote)} AS a{at}" for at, name in enumerate(domain.columns))
    _execute(cursor, f"SELECT {names}, (SELECT COUNT(*) FROM {source}) AS total FROM {source}")
    for *fields, total in _fetched(cursor):
        columns = [_read(kind, field, driver) for kind, field in zip(domain.attributes, fields, strict=True)]
        yield Batch([places(column) for column in columns], None, int(total[0]))


def _execute(cursor: Any, statement: str, parameters: Sequence[float] = ()) -> None:
    """Ask for records; an error may quote one, and is not told by whoever reads them."""
    cursor.execute(statement, parameters) if parameters else cursor.execute(statement)


def _tried(ask: Callable[[], Any]) -> Any:
    """Return what a database answers of no records; of an error the kind alone is told: it may quote one."""
    try:
        return ask()
    except Exception as error:  # every driver has its own
        raise InvalidDataError(
            f"table must be one that the connection can read, got {type(error).__name__} from the database; "
            "run SELECT * FROM it WHERE 1 = 0 to see why, see table and quote, and roll back: some databases "
            "refuse all that follows."
        ) from None


def _fetched(cursor: Any) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the columns of a result, many rows at a time."""
    while rows := cursor.fetchmany(ROWS):
        if isinstance(rows[0], Mapping):  # some drivers can be told so
            rows = [row.values() for row in rows]
        yield [*zip(*rows, strict=True)]


def _of_pieces(cut: Pieces, codes: Sequence[Any]) -> list[Any]:
    """Return the values that stand for pieces; what is no number is there itself."""
    return [cut.value(code) if isinstance(code, int) else code for code in codes]


def _read(kind: Attribute, column: Sequence[Any], driver: str) -> Sequence[Any]:
    """Return a column as it is; but where a database has no booleans, 0 and 1 stand for them."""
    if driver not in BOOLLESS or not isinstance(kind, Categorical) or not isinstance(kind.labels[0], bool):
        return column
    if any(type(word) is int for word, _ in kind.synonyms):  # it says itself what numbers stand for
        return column
    return [bool(value) if type(value) is int and value in (0, 1) else value for value in column]


def _is_textless(kind: Attribute) -> bool:
    """Return whether no text is a value of the attribute, so that no collation can make two values one."""
    if isinstance(kind, Categorical):
        words = [kind.labels[0], kind.other, *(word for word, _ in kind.synonyms)]
        return not kind.markers and not any(isinstance(word, str) for word in words)
    return isinstance(kind, (IntegerRange, Binned)) and not (kind.markers or kind.numerals)


def _table(table: object, quote: str) -> str:
    """Return the quoted name of a table, from `name` or `schema.name`."""
    parts = table.split(".") if isinstance(table, str) else []
    statement = isinstance(table, str) and table.lstrip()[:7].lower() == "select "
    if statement or not parts or not all(part.strip() and "\0" not in part for part in parts):
        raise InvalidParameterError(
            f"table must be the name of a table or view, as name or schema.name, got {shown(table)}; "
            "for a condition or a join make a view."
        )
    return ".".join(quoted(part, quote) for part in parts)


def quoted(name: str, quote: str) -> str:
    """Return a name as a database reads it in these quotes."""
    closing = CLOSING[quote]
    return f"{quote}{name.replace(closing, 2 * closing)}{closing}"


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0].lstrip("_")
