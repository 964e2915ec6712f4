"""Frames, relations and Parquet files: what is refused, what is said, and traps of single libraries."""

import datetime
import logging
import math
import sys

import numpy as np
import pytest

from onlineic.data import PrivateData
from onlineic.domain import Domain, binned, dates, optional
from onlineic.errors import InvalidDataError, InvalidParameterError, MissingExtraError
from onlineic.queries import where

pytest.importorskip("narwhals", reason="needs the extra frames")

DOMAIN = Domain.of(age=range(17, 91), sex=["F", "M"])
COLUMNS = {"age": [30, 30, 45], "sex": ["F", "M", "F"]}


def counts(data, **conditions):
    return data.exact_counts(where(**conditions).bind(data.domain))


def written(folder, columns, name="table.parquet"):
    pyarrow, path = pytest.importorskip("pyarrow"), folder / name
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path)
    return path


# ---------------------------------------------------------------- what is said


def test_a_table_in_memory_says_so(caplog):
    polars = pytest.importorskip("polars")
    with caplog.at_level(logging.INFO, "onlineic"):
        data = PrivateData.from_frame(polars.DataFrame(COLUMNS), DOMAIN)

    assert "read from memory, column by column (polars)" == data.loading
    assert ["private table read from memory, column by column (polars)"] == caplog.messages


def test_few_cells_are_counted_where_the_rows_are_and_many_are_streamed():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({**COLUMNS, "id": [1, 2, 3]}).lazy()
    few = PrivateData.from_frame(table, DOMAIN)
    many = PrivateData.from_frame(table, Domain.of(dict(DOMAIN) | {"id": range(2**15)}))

    assert "counted where it lies, by one GROUP BY (polars): 148 cells are few" == few.loading
    assert "streamed, all rows once, into columns of codes (polars): 4,849,664 cells are many" == many.loading
    assert 3 == few.n == many.n


def test_what_is_said_depends_on_public_facts_alone():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    tables = [
        connection.sql(f"SELECT * FROM (VALUES ({age}, '{sex}'), (50, 'F')) v(age, sex)")
        for age, sex in [(30, "F"), (50, "F"), (17, "M")]
    ]

    assert 1 == len({PrivateData.from_frame(table, DOMAIN).loading for table in tables})


def test_columns_given_in_python_say_so_and_leave_no_log(caplog):
    with caplog.at_level(logging.DEBUG):
        data = PrivateData.from_records(COLUMNS, DOMAIN)

    assert "given as columns or counts" == data.loading
    assert [] == caplog.messages


# ---------------------------------------------------------------- one snapshot


def test_nothing_of_the_table_is_asked_after_it_is_loaded():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (30, 'F'), (45, 'M')) v(age, sex)")
    data = PrivateData.from_frame(connection.table("t"), DOMAIN)
    connection.execute("DROP TABLE t")

    assert 1 == counts(data, sex="F")


def test_a_relation_leaves_nothing_behind_in_its_connection():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (30, 'F'), (45, 'M')) v(age, sex)")
    PrivateData.from_frame(connection.table("t"), DOMAIN)

    assert [("t",)] == connection.sql("SELECT table_name FROM information_schema.tables").fetchall()


def test_a_source_that_gives_other_rows_than_it_counts_is_refused(monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    from onlineic.data import relations

    connection = duckdb.connect()
    table = connection.sql("SELECT * FROM (VALUES (30, 'F'), (45, 'M')) v(age, sex)")
    grown = connection.sql("SELECT * FROM (VALUES (30, 'F'), (45, 'M'), (45, 'M')) v(age, sex)")
    monkeypatch.setattr(relations, "_count", lambda _: grown.aggregate("COUNT(*) AS total"))
    with pytest.raises(InvalidDataError, match="must not change while it is read"):
        PrivateData.from_frame(table, DOMAIN)
    with pytest.raises(InvalidDataError, match="must not change while it is read"):
        PrivateData.from_frame(table.project("*, 0 AS z"), Domain.of(dict(DOMAIN) | {"z": range(2**15)}))


# ---------------------------------------------------------------- traps of single libraries


def test_nan_in_a_parquet_file_is_missing_although_its_statistics_leave_it_out(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = written(tmp_path, {"x": [1.0, 99.0, math.nan, None]})
    domain = Domain.of(x=optional(binned([0, 20, 100])))
    folded = duckdb.read_parquet(str(path)).aggregate("SUM(CASE WHEN x < 100 THEN 1 ELSE 0 END)")
    data = PrivateData.from_frame(path, domain)

    assert 2 <= folded.fetchall()[0][0]
    assert [1, 1, 2] == [counts(data, x=label) for label in ("[0, 20)", "[20, 100)", None)]


def test_pandas_takes_true_for_one_and_we_do_not():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, True, 0]}, dtype=object)
    with pytest.raises(InvalidDataError, match="x must hold whole numbers"):
        PrivateData.from_frame(frame, Domain.of(x=[0, 1]))


@pytest.mark.parametrize("kinds", [["1", "0"], [False, True]])
def test_labels_of_another_type_are_never_converted(kinds, tmp_path):
    path = written(tmp_path, {"x": [1, 0, 1]})
    with pytest.raises(InvalidDataError, match="x must hold"):
        PrivateData.from_frame(path, Domain.of(x=kinds))


@pytest.mark.parametrize("text", ["12", "0.5", "?"])
def test_numbers_written_as_text_are_not_binned_by_an_engine(text, tmp_path):
    path = written(tmp_path, {"x": [text, text]})
    with pytest.raises(InvalidDataError, match="x must hold numbers"):
        PrivateData.from_frame(path, Domain.of(x=binned([0, 100])))

    assert 2 == counts(PrivateData.from_frame(path, Domain.of(x=optional(binned([0, 100]), [text]))), x=None)


def test_null_among_views_of_text_is_missing():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": pyarrow.array(["a", None, ""], pyarrow.string_view())})
    data = PrivateData.from_frame(table, Domain.of(x=optional(["a", ""])))

    assert [1, 1, 1] == [counts(data, x=label) for label in ("a", "", None)]


def test_sparse_and_nullable_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "sparse": pandas.arrays.SparseArray([0, 0, 1]),
            "nullable": pandas.array([2**62, None, 3], dtype="Int64"),
            "period": pandas.period_range("2024-01", periods=3, freq="M"),
        }
    )
    domain = Domain.of(
        sparse=2, nullable=optional([2**62, 3]), period=dates("2024-01", "2024-03", by="month")
    )
    data = PrivateData.from_frame(frame, domain)

    assert 2 == counts(data, sparse=0)
    assert [1, 1, 1] == [counts(data, nullable=label) for label in (2**62, 3, None)]
    assert 1 == counts(data, period="2024-02")


def test_unsigned_and_128_bit_integers_keep_their_value():
    polars = pytest.importorskip("polars")
    values = [2**62, 2**53 + 1, 2**53]
    table = polars.DataFrame(
        {"u": polars.Series(values, dtype=polars.UInt64), "i": polars.Series(values, dtype=polars.Int128)}
    )
    domain = Domain.of(u=values, i=values)

    for given in (table, table.lazy()):
        data = PrivateData.from_frame(given, domain)
        assert [1, 1, 1] == [counts(data, u=value, i=value) for value in values]


def test_duckdb_is_read_without_arrow_too(monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    table = duckdb.connect().sql(
        "SELECT * FROM (VALUES (30, 'F', 0.5::DOUBLE), (45, NULL, 'nan'::DOUBLE)) v(age, sex, x)"
    )
    domain = Domain.of(age=range(17, 91), sex=optional(["F"]), x=optional(binned([0, 1])), z=optional(2**15))
    table = table.project("*, NULL::INTEGER AS z")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    few, many = (
        PrivateData.from_frame(table, domain.project("age", "sex", "x")),
        PrivateData.from_frame(table, domain),
    )

    assert [1, 1] == [counts(data, age=45, sex=None, x=None) for data in (few, many)]


def test_many_bins_are_cut_by_the_engine_or_here():
    duckdb = pytest.importorskip("duckdb")
    table = (
        duckdb.connect().sql("SELECT i + 0.5 AS x FROM range(10000) r(i)").project("CAST(x AS DOUBLE) AS x")
    )

    for step in (25, 1):
        data = PrivateData.from_frame(table, Domain.of(x=binned(range(0, 10001, step))))
        assert step == counts(data, x=f"[{75 * step}, {76 * step})")


def test_times_are_counted_by_their_day():
    duckdb = pytest.importorskip("duckdb")
    table = duckdb.connect().sql(
        "SELECT TIMESTAMP '2024-01-31 00:00:00' + INTERVAL (i) SECOND AS t FROM range(172800) r(i)"
    )
    data = PrivateData.from_frame(table, Domain.of(t=dates("2024-01", "2024-02", by="month")))

    assert [86400, 86400] == [counts(data, t=month) for month in ("2024-01", "2024-02")]


@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
@pytest.mark.parametrize(("by", "time"), [("hour", "2024-01-31T05"), ("minute", "2024-01-31T05:30")])
def test_times_that_are_asked_finer_than_by_day_are_not_cut_to_their_day(type_, by, time):
    """Planted before: all records of a day were counted in its first hour."""
    duckdb = pytest.importorskip("duckdb")
    table = duckdb.connect().sql(
        f"SELECT CAST(TIMESTAMP '2024-01-31 05:30:00' AS {type_}) AS t FROM range(100)"
    )
    data = PrivateData.from_frame(table, Domain.of(t=dates("2024-01-31T00", "2024-01-31T23", by=by)))

    assert 100 == counts(data, t=time)


# ---------------------------------------------------------------- Parquet files


READERS = ("duckdb", "polars", "pyarrow")


@pytest.mark.parametrize("reader", READERS)
def test_parquet_files_are_read_by_what_is_installed(reader, tmp_path, monkeypatch):
    pytest.importorskip(reader)
    path = written(tmp_path, COLUMNS)
    for other in READERS[: READERS.index(reader)]:
        monkeypatch.setitem(sys.modules, other, None)
    data = PrivateData.from_frame(str(path), DOMAIN)

    assert reader in data.loading
    assert [2, 1] == [counts(data, sex=label) for label in "FM"]


def test_a_path_that_looks_like_a_pattern_is_one_file(tmp_path):
    pytest.importorskip("polars")
    written(tmp_path, {"age": [20], "sex": ["M"]}, "tab1.parquet")
    data = PrivateData.from_frame(written(tmp_path, COLUMNS, "tab[1].parquet"), DOMAIN)

    assert 3 == data.n


def test_without_a_reader_the_message_names_them(tmp_path, monkeypatch):
    path = written(tmp_path, COLUMNS)
    for reader in (*READERS, "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, reader, None)
    with pytest.raises(
        MissingExtraError, match=r"duckdb, polars or pyarrow must be installed .* pip install duckdb"
    ):
        PrivateData.from_frame(path, DOMAIN)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "table.csv").write_text("age,sex\n30,F\n")
    with pytest.raises(InvalidParameterError, match="a CSV file goes to from_csv"):
        PrivateData.from_frame(tmp_path / "table.csv", DOMAIN)
    with pytest.raises(InvalidParameterError, match=r"none\.parquet': No such file"):
        PrivateData.from_frame(tmp_path / "none.parquet", DOMAIN)


# ---------------------------------------------------------------- refusals


def test_without_narwhals_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'onlineic\[frames\]'"):
        PrivateData.from_frame(object(), DOMAIN)
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (age INTEGER, sex TEXT)")
    with pytest.raises(MissingExtraError, match=r"pip install 'onlineic\[frames\]'"):
        PrivateData.from_dbapi(connection, "people", DOMAIN)
    connection.close()


@pytest.mark.parametrize(
    "table",
    [None, 3, COLUMNS, [COLUMNS], np.zeros(3), b"x", len, object()],
    ids=lambda table: type(table).__name__,
)
def test_what_is_no_table_is_refused(table):
    with pytest.raises(InvalidParameterError, match=r"table must be a data frame, .* from_records"):
        PrivateData.from_frame(table, DOMAIN)


def test_a_connection_and_a_column_are_no_tables():
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    for table in (duckdb.connect(), polars.Series([1])):
        with pytest.raises(InvalidParameterError, match="table must be a data frame"):
            PrivateData.from_frame(table, DOMAIN)


def test_columns_of_one_name_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[30, "F", "M"], [31, "M", "F"]], columns=["age", "sex", "sex"])
    with pytest.raises(InvalidDataError, match="columns of distinct names"):
        PrivateData.from_frame(frame, DOMAIN)
    with pytest.raises(InvalidDataError, match="sex must be a column"):
        PrivateData.from_records(frame, DOMAIN)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_absent_columns_are_named_with_the_nearest(library):
    table = pytest.importorskip(library).DataFrame({"Age": [30], "sex": ["F"]})
    with pytest.raises(InvalidDataError, match=r"got 0 for age; did you mean 'Age'"):
        PrivateData.from_frame(table, DOMAIN)


def test_an_index_is_no_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COLUMNS).set_index("age")
    with pytest.raises(InvalidDataError, match="got 0 for age"):
        PrivateData.from_frame(frame, DOMAIN)

    assert 3 == PrivateData.from_frame(frame.reset_index(), DOMAIN).n


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_no_records_are_refused(library):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(COLUMNS).slice(0, 0)
    if library == "pandas":
        table = table.to_pandas()
    elif library == "polars":
        table = pytest.importorskip("polars").from_arrow(table).lazy()
    elif library == "duckdb":
        table = pytest.importorskip("duckdb").connect().from_arrow(table)
    with pytest.raises(InvalidDataError, match="records must be one or more"):
        PrivateData.from_frame(table, DOMAIN)


@pytest.mark.parametrize("value", [[1], {"a": 1}, datetime.timedelta(1), b"F"], ids=repr)
@pytest.mark.parametrize("lazy", [False, True])
def test_values_that_no_attribute_takes_are_refused(value, lazy):
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"sex": [value, value], "age": [30, 30]})
    what = "one value a record, got a column of lists" if isinstance(value, list | dict) else "texts"
    with pytest.raises(InvalidDataError, match=f"sex must hold {what}"):
        PrivateData.from_frame(table.lazy() if lazy else table, DOMAIN)


def test_every_column_that_does_not_fit_is_named_at_once():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"age": [16, None], "sex": ["f", "M"]}).lazy()
    with pytest.raises(
        InvalidDataError, match=r"got 3 misfits:\n  age must be .*\n  age must have .*\n  sex must be"
    ):
        PrivateData.from_frame(table, DOMAIN)


def test_other_tables_given_as_records_get_a_remedy():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for table in (polars.DataFrame(COLUMNS), polars.LazyFrame(COLUMNS), pyarrow.table(COLUMNS)):
        with pytest.raises(InvalidDataError, match=r"PrivateData\.from_frame\(table, domain\)"):
            PrivateData.from_records(table, DOMAIN)
        assert 3 == PrivateData.from_frame(table, DOMAIN).n


def test_frames_of_pandas_may_be_given_as_records(monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)

    assert 2 == counts(PrivateData.from_records(pandas.DataFrame(COLUMNS), DOMAIN), sex="F")


# ---------------------------------------------------------------- reports


def test_all_that_does_not_fit_is_reported_of_any_table(tmp_path):
    columns = {"age": [16, 30, None], "sex": ["F", "f", "M"]}
    expected = PrivateData.check(columns, DOMAIN).curator_report()
    path = written(tmp_path, columns)
    tables = [path, str(path)]
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    tables += [polars.scan_parquet(path), polars.read_parquet(path), duckdb.read_parquet(str(path))]

    assert "3 misfits" in expected
    assert [expected] * 5 == [PrivateData.check(table, DOMAIN).curator_report() for table in tables]
    assert "did you mean 'sex'" in repr(PrivateData.check(path, Domain.of(sexx=["F"])))
