"""The same records as tables of many libraries, engines and files; each skips where its library is absent."""

import datetime
import sqlite3
from decimal import Decimal

import numpy as np
import pytest

from onlineic.data import PrivateData
from support import databases

HELD = []


def pandas_frame(columns, **_):
    return pytest.importorskip("pandas").DataFrame({name: list(values) for name, values in columns.items()})


def pandas_objects(columns, **_):
    return pytest.importorskip("pandas").DataFrame(columns, dtype=object)


def pandas_nullable(columns, **_):
    with np.errstate(invalid="ignore"):  # of pandas 2, about infinite numbers
        return pandas_frame(columns).convert_dtypes()


def pandas_arrow(columns, **_):
    pandas = pytest.importorskip("pandas")
    return arrow_table(columns).to_pandas(types_mapper=pandas.ArrowDtype)


def pandas_categories(columns, **_):
    """Every column of text with its categories, and one that no record has."""
    frame = pandas_frame(columns)
    for name in texts(columns):
        frame[name] = frame[name].astype("category").cat.add_categories("of no record")
    return frame


def polars_frame(columns, **_):
    return pytest.importorskip("polars").DataFrame(columns, strict=False)


def polars_lazy(columns, **_):
    return polars_frame(columns).lazy()


def polars_categories(columns, **_):
    polars = pytest.importorskip("polars")
    named = texts(columns)
    return (
        polars_frame(columns)
        .with_columns([polars.col(name).cast(polars.Categorical) for name in named])
        .lazy()
    )


def arrow_table(columns, **_):
    return pytest.importorskip("pyarrow").table(dict(columns))


def arrow_chunks(columns, **_):
    pyarrow = pytest.importorskip("pyarrow")
    table = arrow_table(columns)
    return pyarrow.concat_tables([table.slice(0, 3), table.slice(3)])


def arrow_dictionaries(columns, **_):
    table = arrow_table(columns)
    for name in texts(columns):
        at = table.column_names.index(name)
        table = table.set_column(at, name, table.column(name).dictionary_encode())
    return table


def duckdb_table(columns, **_):
    """Its columns of text compare without case, as many databases do by themselves."""
    connection = duckdb_connection(columns)
    HELD[:] = [connection]  # DuckDB 1 closes a connection that nobody holds under its relations
    return connection.table("t")


def duckdb_connection(columns):
    duckdb = pytest.importorskip("duckdb")
    held = arrow_table(columns)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    described = connection.from_arrow(held)
    kinds = [
        f'"{name}" {kind} {"COLLATE NOCASE" if str(kind) == "VARCHAR" else ""}'
        for name, kind in zip(described.columns, described.types, strict=True)
    ]
    connection.execute(f"CREATE TABLE t ({', '.join(kinds)})")
    described.insert_into("t")
    return connection


def parquet_file(columns, folder):
    arrow_table(columns)
    from pyarrow import parquet

    path = folder / "table.parquet"
    parquet.write_table(arrow_table(columns), path)
    return path


def duckdb_parquet(columns, folder):
    return pytest.importorskip("duckdb").read_parquet(str(parquet_file(columns, folder)))


def polars_parquet(columns, folder):
    return pytest.importorskip("polars").scan_parquet(parquet_file(columns, folder))


def sqlite_connection(columns, **_):
    """A table whose texts compare without case; what SQLite has no type for is written as it can be."""
    connection = databases.opened()
    kinds = ", ".join(
        f'"{name}" TEXT COLLATE NOCASE' if name in texts(columns) else f'"{name}"' for name in columns
    )
    connection.execute(f"CREATE TABLE t ({kinds})")
    rows = zip(*([sqlite_value(value) for value in values] for values in columns.values()), strict=True)
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
    return connection


def sqlite_value(value):
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def texts(columns):
    """Return the names of the columns of text."""
    return [name for name, values in columns.items() if any(isinstance(value, str) for value in values)]


FRAMES = (
    pandas_frame,
    pandas_objects,
    pandas_nullable,
    pandas_arrow,
    pandas_categories,
    polars_frame,
    polars_lazy,
    polars_categories,
    arrow_table,
    arrow_chunks,
    arrow_dictionaries,
    duckdb_table,
    duckdb_parquet,
    polars_parquet,
    parquet_file,
)


def of_frame(make):
    """Return the loader of a frame of this kind."""

    def load(columns, domain, folder):
        pytest.importorskip("narwhals", reason="needs the extra frames")
        return PrivateData.from_frame(make(columns, folder=folder), domain)

    return load


def of_sqlite(columns, domain, _):
    return PrivateData.from_dbapi(sqlite_connection(columns), "t", domain)


def of_duckdb(columns, domain, _):
    return PrivateData.from_dbapi(duckdb_connection(columns), "t", domain)


LOADERS = {make.__name__: of_frame(make) for make in FRAMES} | {"sqlite": of_sqlite, "duckdb": of_duckdb}


def staying(make):
    """Return a loader by which a table stays where it lives."""

    def load(columns, domain, folder):
        pytest.importorskip("narwhals", reason="needs the extra frames")
        table = make(columns, folder=folder)
        if isinstance(table, sqlite3.Connection):
            return PrivateData.from_dbapi(table, "t", domain, counting="at load")
        return PrivateData.from_frame(table, domain, counting="at load")

    return load


STAYING = {make.__name__: staying(make) for make in (duckdb_table, duckdb_parquet, sqlite_connection)}
