"""What leaves a loader that fails is a message: no value of the table is in a frame, a cause or a context."""

import gc
import os
import sys
import traceback

import numpy as np
import pytest

from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.errors import InvalidDataError, InvalidParameterError, MissingExtraError, OnlineICError
from support import databases
from support.failures import reached_by

SECRET = "Zanzibar-4711"
DOMAIN = Domain.of(a=range(10), b=["x", "y"])


class Evil:
    """A value whose own code fails, and tells itself."""

    def fail(self, *_):
        raise RuntimeError(SECRET)

    __eq__ = __hash__ = __int__ = __float__ = __str__ = __len__ = fail

    def __repr__(self):
        return SECRET


class Driver:
    """A connection whose driver quotes a value in its errors, as PostgreSQL does."""

    description = (("a",), ("b",))

    def __init__(self, at):
        self.at, self.statements = at, 0

    def cursor(self):
        return self

    def execute(self, *_):
        self.statements += 1
        if self.at == self.statements:
            raise ValueError(f"invalid input syntax for type integer: {SECRET!r}")

    def fetchmany(self, *_):
        if self.statements == 2:
            raise ValueError(f"bad row {SECRET}")
        return []

    def close(self):
        pass


def of_sqlite(value, text=str):
    connection = databases.opened()
    connection.execute("CREATE TABLE t (a, b)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), value])
    connection.text_factory = text
    return PrivateData.from_dbapi(connection, "t", DOMAIN)


def of_csv(folder, text, load=PrivateData.from_csv, domain=DOMAIN, **more):
    (folder / "t.csv").write_bytes(text.encode())
    return load(folder / "t.csv", domain, **more)


def of_parquet(folder, load, content=None):
    if content is None:
        polars = pytest.importorskip("polars")
        polars.DataFrame({"a": ["1", SECRET], "b": ["x", "y"]}).write_parquet(folder / "t.parquet")
    else:
        (folder / "t.parquet").write_bytes(content)
    return load(folder / "t.parquet", DOMAIN)


def of_duckdb(how):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES ('1', 'x'), ('{SECRET}', 'y')) v(a, b)")
    connection.execute("CREATE VIEW v AS SELECT CAST(a AS INT) AS a, b FROM t")
    if how == "dbapi":
        return PrivateData.from_dbapi(connection, "v", DOMAIN)
    return PrivateData.from_frame(
        connection.sql("SELECT * FROM v" if how == "cast" else "SELECT * FROM t"), DOMAIN
    )


def of_pandas(**columns):
    return PrivateData.from_frame(pytest.importorskip("pandas").DataFrame(columns), DOMAIN)


def of_polars(lazy):
    polars = pytest.importorskip("polars")
    frame = polars.LazyFrame({"a": [SECRET, "1"], "b": ["x", "y"]})
    if lazy:
        return PrivateData.from_frame(frame.with_columns(polars.col("a").cast(polars.Int64)), DOMAIN)
    return PrivateData.from_frame(frame.collect(), DOMAIN)


def rows():
    yield 1
    raise RuntimeError(SECRET)


FAILURES = {
    "records": lambda _: PrivateData.from_records({"a": [1, SECRET], "b": ["x", "y"]}, DOMAIN),
    "records, evil": lambda _: PrivateData.from_records({"a": [1, Evil()], "b": ["x", "y"]}, DOMAIN),
    "records, evil labels": lambda _: PrivateData.from_records({"a": [1, 2], "b": ["x", Evil()]}, DOMAIN),
    "records, a generator": lambda _: PrivateData.from_records({"a": rows(), "b": ["x", "y"]}, DOMAIN),
    "records, mappings": lambda _: PrivateData.from_records([{"a": 1, "b": SECRET}, {"a": 2}], DOMAIN),
    "records, names": lambda _: PrivateData.from_records({"a": [SECRET]}, DOMAIN),
    "encoded": lambda _: DOMAIN.encode({"a": [1, SECRET], "b": ["x", "y"]}),
    "counts": lambda _: PrivateData.from_counts({"a": [1], "b": ["x"]}, [SECRET], DOMAIN),
    "counts, evil": lambda _: PrivateData.from_counts({"a": [1], "b": ["x"]}, Evil(), DOMAIN),
    "counts, ragged": lambda _: PrivateData.from_counts({"a": [1], "b": ["x"]}, [[SECRET], []], DOMAIN),
    "cells": lambda _: PrivateData(np.array([SECRET] * 20), DOMAIN),
    "csv": lambda folder: of_csv(folder, f"a,b\n1,x\n{SECRET},y\n"),
    "csv, quotes": lambda folder: of_csv(folder, f'a,b\n1,x\n"{SECRET}"9,y\n'),
    "csv, ragged": lambda folder: of_csv(folder, f"a,b\n1,x\n1,{SECRET},y\n"),
    "csv, bytes": lambda folder: of_csv(folder, f"a,b\n1,x\n1,{SECRET}é\n", encoding="ascii"),
    "csv, text": lambda folder: of_csv(folder, f"a,b\n1,{SECRET}\n", encoding="utf-16"),
    "csv, no header": lambda folder: of_csv(folder, f"{SECRET},x\n1,y\n"),
    "csv, counts": lambda folder: of_csv(folder, f"a,b,n\n1,x,{SECRET}\n", count="n"),
    "csv, nobody": lambda folder: PrivateData.from_csv(folder / "no.csv", DOMAIN),
    "check": lambda _: PrivateData.check({"a": [1, Evil()], "b": ["x", "y"]}, DOMAIN),
    "check, a generator": lambda _: PrivateData.check({"a": rows(), "b": ["x", "y"]}, DOMAIN),
    "check, parquet": lambda folder: of_parquet(
        folder, PrivateData.check, b"PAR1" + SECRET.encode() + b"PAR1"
    ),
    "sqlite": lambda _: of_sqlite((SECRET, "y")),
    "sqlite, bytes": lambda _: of_sqlite((2, b"\xff" + SECRET.encode())),
    "sqlite, driver": lambda _: of_sqlite((2, "y"), lambda _: Evil().fail()),
    "a database that refuses": lambda _: PrivateData.from_dbapi(Driver(1), "t", DOMAIN),
    "a statement that fails": lambda _: PrivateData.from_dbapi(Driver(2), "t", DOMAIN),
    "a row that fails": lambda _: PrivateData.from_dbapi(Driver(0), "t", DOMAIN),
    "pandas": lambda _: of_pandas(a=["1", SECRET], b=["x", "y"]),
    "pandas, evil": lambda _: of_pandas(a=[1, Evil()], b=["x", "y"]),
    "pandas, bytes": lambda _: of_pandas(a=[1, 2], b=["x", SECRET.encode()]),
    "polars": lambda _: of_polars(lazy=False),
    "polars, lazy": lambda _: of_polars(lazy=True),
    "duckdb": lambda _: of_duckdb("table"),
    "duckdb, cast": lambda _: of_duckdb("cast"),
    "duckdb, dbapi": lambda _: of_duckdb("dbapi"),
    "parquet": lambda folder: of_parquet(folder, PrivateData.from_frame),
    "parquet, broken": lambda folder: of_parquet(
        folder, PrivateData.from_frame, b"PAR1" + SECRET.encode() * 9 + b"PAR1"
    ),
}


def held(error):
    """All text that a report of this error could show of the package: messages, and locals of its frames."""
    texts = [*map(str, error.args), *map(str, vars(error).values()), *getattr(error, "__notes__", ())]
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").startswith("onlineic"):
            for value in frame.f_locals.values():
                texts.append(safely_shown(value))
                texts += [
                    safely_shown(cell.cell_contents) for cell in getattr(value, "__closure__", None) or ()
                ]
    return texts


def safely_shown(value):
    try:
        return repr(value)
    except Exception:
        return SECRET


@pytest.mark.parametrize("failure", FAILURES)
def test_an_error_of_loading_holds_nothing_of_the_table(failure, tmp_path):
    error = reached_by(FAILURES[failure], tmp_path)
    if isinstance(error, MissingExtraError):
        pytest.skip(str(error))

    assert isinstance(error, (InvalidDataError, InvalidParameterError))
    assert (None, None) == (error.__cause__, error.__context__)
    assert not any(SECRET in text for text in held(error))
    assert SECRET not in "".join(traceback.format_exception(error))


def test_a_failed_loader_keeps_no_column_alive():
    class Column(list):
        pass

    column = Column([1, SECRET])
    error = reached_by(PrivateData.from_records, {"a": column, "b": ["x", "y"]}, DOMAIN)
    gc.collect()
    holders = [one for one in gc.get_referrers(column) if one.__class__.__name__ == "frame"]

    assert isinstance(error, OnlineICError)
    assert [] == [frame for frame in holders if frame.f_globals["__name__"].startswith("onlineic")]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interrupt_passes_on_without_the_frames_that_it_came_from(failure):
    class Stopped(Evil):
        def __hash__(self):
            raise failure

    error = reached_by(PrivateData.from_records, {"a": [1, 2], "b": [SECRET, Stopped()]}, DOMAIN)

    assert type(error) is failure
    assert (None, None) == (error.__cause__, error.__context__)
    assert not any(SECRET in text for text in held(error))


def test_what_is_raised_beside_exception_is_an_error_of_the_table():
    class Broken(BaseException):
        pass

    class Quoting(Evil):
        def __hash__(self):
            raise Broken(SECRET)

    error = reached_by(PrivateData.from_records, {"a": [1, 2], "b": [SECRET, Quoting()]}, DOMAIN)

    assert type(error) is InvalidDataError
    assert not any(SECRET in text for text in held(error))


def test_a_device_is_refused_by_name_before_it_is_read():
    for load in (PrivateData.from_csv, PrivateData.check):
        with pytest.raises(InvalidParameterError, match="got the device '/dev/zero'"):
            load("/dev/zero", DOMAIN)
    for path in (3, None, "a\0b", "\ud800"):
        with pytest.raises(InvalidParameterError, match="path must be that of a file"):
            PrivateData.from_csv(path, DOMAIN)
    pytest.importorskip("narwhals", reason="needs the extra frames")
    with pytest.raises(InvalidParameterError, match="path of a Parquet file"):
        PrivateData.from_frame("/dev/zero", DOMAIN)


@pytest.mark.parametrize("load", [PrivateData.from_csv, PrivateData.check])
def test_a_pipe_is_read_whole(load):
    reader, writer = os.pipe()
    os.write(writer, b"a,b\n1,x\n2,y\n3,x\n")
    os.close(writer)
    try:
        assert 3 == load(f"/dev/fd/{reader}", DOMAIN).n
    finally:
        os.close(reader)


@pytest.mark.parametrize("reader", ["duckdb", "polars", "pyarrow"])
def test_a_broken_parquet_file_is_refused_by_name_whatever_reads_it(reader, tmp_path, monkeypatch):
    for other in {"duckdb", "polars", "pyarrow"} - {reader}:
        monkeypatch.setitem(sys.modules, other, None)
    pytest.importorskip(reader)
    (tmp_path / "t.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(InvalidDataError, match="must be readable to its last row, got"):
        PrivateData.from_frame(tmp_path / "t.parquet", DOMAIN)
