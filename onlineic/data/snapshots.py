"""One snapshot of a table in the engine that holds it, and how that engine counts sets of attributes.

PRIVATE. DuckDB and Spark count several sets by one statement with GROUPING SETS; SQLite by one statement a
set, of a file that is checked to be the same. What tells a snapshot from another stays in this process.
"""

import os
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from onlineic.data import databases, relations
from onlineic.data.coding import coded
from onlineic.data.frames import check_columns, check_flat, grouping_sets, is_parquet, opened_frame
from onlineic.data.standing import Groups, Source
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, shown
from onlineic.queries.reach import Axes

Version = Callable[[], Hashable]
QUOTE = '"'  # that SQLite takes around the name of a file


def of_frame(table: Any, domain: Domain, version: Version | None) -> tuple[Source, str]:
    """Return the snapshot of a DuckDB relation, a Spark frame or a Parquet file, and its engine.

    Raises:
        InvalidParameterError: If its engine cannot count it so.
        InvalidDataError: If a column is absent or there twice.
    """
    _check(version)
    frame, names = opened_frame(table)
    check_columns(names, domain)
    check_flat(frame, domain)
    engine = str(frame.implementation)
    if engine == "duckdb":
        if is_parquet(table):
            version = partial(_of_file, os.path.abspath(os.fsdecode(table)))
        held = frame.to_native()
        count = partial(grouping_sets, frame, engine, domain)
        return Source(domain, partial(relations.number, held), count, version), engine
    if engine == "pyspark":
        native = frame.to_native()
        if version is None and native.inputFiles():
            version = partial(_of_spark, native)
        return Source(domain, native.count, partial(grouping_sets, frame, engine, domain), version), engine
    raise InvalidParameterError(
        f"counting must be None for a table of {engine}, which is read once, got another; only DuckDB, Spark "
        "and SQLite count sets of attributes where the rows are."
    )


def of_database(
    connection: Any, table: str, domain: Domain, quote: str, version: Version | None, *, later: bool
) -> tuple[Source, str]:
    """Return the snapshot of a table of DuckDB or SQLite, by a DB-API connection, and its engine.

    Args:
        later: Whether more is counted after the load: then no transaction may be open that could be rolled
            back.

    Raises:
        InvalidDataError: If there is no such table or column.
    """
    _check(version)
    source, driver = databases.checked_source(connection, table, domain, quote)
    if driver == "duckdb":
        relation = connection.sql(f"SELECT * FROM {source}")
        count = partial(grouping_sets, opened_frame(relation)[0], driver, domain)
        return Source(domain, partial(relations.number, relation), count, version), driver
    if driver != "sqlite3":
        raise InvalidParameterError(
            f"counting must be None for a table of {driver}, whose rows come by once, got another; only "
            "DuckDB, Spark and SQLite count sets of attributes where the rows are."
        )

    def rows() -> int:
        return int(connection.execute(f"SELECT COUNT(*) FROM {source}").fetchone()[0])

    def counted(sets: Sequence[Axes]) -> list[Groups]:
        return [_of_sqlite(connection, source, domain, quote, axes) for axes in sets]

    if later and connection.in_transaction:
        raise InvalidParameterError(
            "connection must have no open transaction with counting='on demand', got one that may be rolled "
            "back between two counts; commit it, or write counting='at load'."
        )
    return Source(domain, rows, counted, partial(_of_connection, connection, version)), driver


def _of_sqlite(connection: Any, source: str, domain: Domain, quote: str, axes: Axes) -> Groups:
    cursor = connection.cursor()
    try:
        part = domain.project(*(domain.names[axis] for axis in axes))
        columns, records = coded(databases.groups(cursor, source, part, quote, "sqlite3"), part)
        return columns, np.zeros(0, np.int64) if records is None else records
    finally:
        cursor.close()


def _of_connection(connection: Any, version: Version | None) -> Hashable:
    """Return what tells one state of all files of an SQLite connection from another.

    What others write shows in each file's data version, what the connection itself writes in its changes, in
    its schema versions where it renames tables, and in a transaction that is open.
    """
    files = [row[1] for row in connection.execute("PRAGMA database_list") if row[1] != "temp"]
    known = [
        connection.execute(f"PRAGMA {databases.quoted(file, QUOTE)}.{asked}").fetchone()[0]
        for file in files
        for asked in ("data_version", "schema_version")
    ]
    own = connection.total_changes, connection.in_transaction
    return (*files, *known, *own, None if version is None else version())


def _of_file(path: str) -> Hashable:
    """Return what tells one state of a file from another."""
    known = os.stat(path)
    return path, known.st_ino, known.st_size, known.st_mtime_ns


def _of_spark(frame: Any) -> Hashable:
    """Return paths, sizes and times of the files that a Spark frame is made of."""
    jvm = frame.sparkSession._jvm  # the file system of Hadoop knows all that Spark reads
    settings = frame.sparkSession._jsc.hadoopConfiguration()
    found = []
    for name in sorted(frame.inputFiles()):
        place = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name))
        status = place.getFileSystem(settings).getFileStatus(place)
        found.append((name, status.getLen(), status.getModificationTime()))
    return tuple(found)


def _check(version: object) -> None:
    if version is not None and not callable(version):
        raise InvalidParameterError(
            f"version must be a function without arguments, got {shown(version)}; write version=lambda: .. "
            "of the version of the table."
        )
