"""Tables of a database: one statement on a DB-API connection, quoted names, exact texts."""

import sqlite3

import numpy as np
import pytest

from onlineic.data import PrivateData
from onlineic.data.frames import check_columns
from onlineic.domain import Domain, binned, categorical, optional
from onlineic.errors import InvalidDataError, InvalidParameterError
from onlineic.queries import Partition, where

DOMAIN = Domain.of(age=range(17, 91), sex=["F", "M"])


def counts(data, **conditions):
    return data.exact_counts(where(**conditions).bind(data.domain))


@pytest.fixture
def connection():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE people (age INTEGER, sex TEXT)")
    connection.executemany("INSERT INTO people VALUES (?, ?)", [(30, "F"), (30, "M"), (45, "F")])
    yield connection
    connection.close()


class Foreign:
    """A connection of a driver that nothing is known of, which may lose rows on the way."""

    def __init__(self, connection, lost=0, named=False):
        self._connection, self._lost, self._named = connection, lost, named
        self.statements = []

    def cursor(self):
        return ForeignCursor(self, self._connection.cursor(), self._lost, self._named)


class ForeignCursor:
    def __init__(self, owner, cursor, lost, named):
        self._owner, self._cursor, self._lost, self._named = owner, cursor, lost, named

    def execute(self, statement):
        self._owner.statements.append(statement)
        self._cursor.execute(statement)

    @property
    def description(self):
        return self._cursor.description

    def fetchmany(self, size):
        rows = self._cursor.fetchmany(size)
        rows = rows[: len(rows) - self._lost]
        if self._named:
            return [
                {column[0]: value for column, value in zip(self.description, row, strict=True)}
                for row in rows
            ]
        return rows

    def close(self):
        self._cursor.close()


# ---------------------------------------------------------------- counting


def test_sqlite_counts_the_records_itself(connection):
    data = PrivateData.from_dbapi(connection, "people", DOMAIN)

    assert "counted where it lies, by one GROUP BY (sqlite3): 148 cells are few" == data.loading
    assert (3, 2, 1) == (data.n, counts(data, sex="F"), counts(data, age=30, sex="M"))


def test_the_snapshot_is_one_statement_and_changes_nothing(connection):
    statements = []
    connection.commit()
    connection.set_trace_callback(statements.append)
    PrivateData.from_dbapi(connection, "people", DOMAIN)

    assert 2 == len(statements)  # the names of the columns, and all of the records
    assert statements[0].endswith("WHERE 1 = 0")
    assert not connection.in_transaction


@pytest.mark.parametrize("named", [False, True])
def test_text_of_unknown_databases_is_compared_here(connection, named):
    foreign = Foreign(connection, named=named)
    data = PrivateData.from_dbapi(foreign, "people", DOMAIN)

    assert "how tests compares text is not known" in data.loading
    assert "GROUP BY" not in foreign.statements[-1]
    assert (3, 2, 1) == (data.n, counts(data, sex="F"), counts(data, age=30, sex="M"))


@pytest.mark.parametrize("named", [False, True])
def test_unknown_databases_count_where_no_text_is_taken(connection, named):
    connection.execute("CREATE TABLE numbers (age INTEGER, x REAL)")
    connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(30, 0.5), (30, 0.25), (30, None)])
    foreign = Foreign(connection, named=named)
    domain = Domain.of(age=range(17, 91), x=optional(binned([0, 0.5, 1])))
    data = PrivateData.from_dbapi(foreign, "numbers", domain)

    assert foreign.statements[-1].endswith("GROUP BY a0, a1")
    assert [1, 1, 1] == [counts(data, age=30, x=label) for label in ("[0, 0.5)", "[0.5, 1)", None)]


@pytest.mark.parametrize("domain", [DOMAIN, DOMAIN.project("age")])
def test_lost_rows_are_noticed(connection, domain):
    with pytest.raises(InvalidDataError, match="must not change while it is read"):
        PrivateData.from_dbapi(Foreign(connection, lost=1), "people", domain)


def test_many_cells_are_streamed(connection):
    domain = Domain.of(dict(DOMAIN) | {"rowid": range(2**20)})
    connection.execute("CREATE VIEW numbered AS SELECT rowid AS rowid, * FROM people")
    data = PrivateData.from_dbapi(connection, "numbered", domain)

    assert (
        "streamed, all rows once, into columns of codes (sqlite3): 155,189,248 cells are many" == data.loading
    )
    assert (3, 1) == (data.n, counts(data, rowid=3, sex="F"))


def test_sqlite_has_no_booleans_and_other_numbers_are_none(connection):
    connection.execute("CREATE TABLE flags (flag)")
    connection.executemany("INSERT INTO flags VALUES (?)", [(True,), (False,), (True,)])

    assert 2 == counts(PrivateData.from_dbapi(connection, "flags", Domain.of(flag=[False, True])), flag=True)
    connection.execute("INSERT INTO flags VALUES (2)")
    with pytest.raises(InvalidDataError, match="flag must hold true or false"):
        PrivateData.from_dbapi(connection, "flags", Domain.of(flag=[False, True]))


def test_text_in_a_column_of_numbers_is_refused_or_missing_as_declared(connection):
    connection.execute("CREATE TABLE mixed (x)")
    connection.executemany("INSERT INTO mixed VALUES (?)", [(0.5,), ("?",), (1,), (b"\x00",)])
    with pytest.raises(InvalidDataError, match="x must hold numbers"):
        PrivateData.from_dbapi(connection, "mixed", Domain.of(x=optional(binned([0, 1, 2]), ["?"])))
    connection.execute("DELETE FROM mixed WHERE typeof(x) = 'blob'")
    data = PrivateData.from_dbapi(connection, "mixed", Domain.of(x=optional(binned([0, 1, 2]), ["?"])))

    assert [1, 1, 1] == [counts(data, x=label) for label in ("[0, 1)", "[1, 2)", None)]


def test_edges_are_compared_to_the_last_bit(connection):
    rng = np.random.default_rng(5)
    edges = np.unique(np.abs(rng.standard_normal(200)) * 10.0 ** rng.integers(-300, 300, 200))
    values = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, 0)])
    connection.execute("CREATE TABLE numbers (x REAL)")
    connection.executemany("INSERT INTO numbers VALUES (?)", [(float(value),) for value in values])
    domain = Domain.of(x=binned(edges, clip=True))
    data = PrivateData.from_dbapi(connection, "numbers", domain)
    expected = PrivateData.from_records({"x": values}, domain)
    labels = [domain.attribute("x").label(code) for code in range(domain.size)]

    assert [counts(expected, x=label) for label in labels] == [counts(data, x=label) for label in labels]


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(("quote", "closing"), [('"', '"'), ("`", "`"), ("[", "]")])
def test_names_are_quoted_whatever_is_in_them(connection, quote, closing):
    table, column = 'ta"b`l ; drop', "se`x\"; --'"
    connection.execute('CREATE TABLE "ta""b`l ; drop" ("se`x""; --\'" TEXT)')
    connection.execute('INSERT INTO "ta""b`l ; drop" VALUES (\'F\')')
    data = PrivateData.from_dbapi(connection, table, Domain.of({column: ["F"]}), quote=quote)

    assert 1 == data.n


def test_a_schema_may_stand_before_the_name(connection):
    assert 3 == PrivateData.from_dbapi(connection, "main.people", DOMAIN).n


def test_a_column_that_is_there_twice_is_refused():
    with pytest.raises(InvalidDataError, match="got 2 for age; rename one"):
        check_columns(["age", "sex", "age"], DOMAIN.project("age"))


def test_a_column_that_is_absent_is_never_read_as_a_text(connection):
    with pytest.raises(InvalidDataError, match=r"got 0 for sexx; did you mean 'sex'"):
        PrivateData.from_dbapi(connection, "people", Domain.of(sexx=["sexx", "F"]))
    with pytest.raises(InvalidDataError, match=r"got 0 for Sex; did you mean 'sex'"):
        PrivateData.from_dbapi(connection, "people", Domain.of(Sex=["F", "M"]))


@pytest.mark.parametrize("table", ["people WHERE 1", "people; DROP TABLE people", "(SELECT 1)", "nobody"])
def test_what_is_no_table_is_refused_by_the_database(connection, table):
    with pytest.raises(InvalidDataError, match="got OperationalError from the database"):
        PrivateData.from_dbapi(connection, table, DOMAIN)

    assert 3 == PrivateData.from_dbapi(connection, "people", DOMAIN).n


@pytest.mark.parametrize("table", ["", ".", "main.", "a\0b", None, 3, b"people", ["people"]], ids=repr)
def test_the_table_is_named_by_a_text(connection, table):
    with pytest.raises(InvalidParameterError, match="table must be the name of a table or view"):
        PrivateData.from_dbapi(connection, table, DOMAIN)


@pytest.mark.parametrize("quote", ["'", "", None, "]", 3])
def test_quotes_are_those_of_known_databases(connection, quote):
    with pytest.raises(InvalidParameterError, match="quote must be"):
        PrivateData.from_dbapi(connection, "people", DOMAIN, quote=quote)


@pytest.mark.parametrize("connection", [None, "sqlite://", {"age": [30]}], ids=repr)
def test_a_connection_is_asked_for(connection):
    with pytest.raises(InvalidParameterError, match="connection must be a DB-API connection"):
        PrivateData.from_dbapi(connection, "people", DOMAIN)


def test_temporary_tables_of_duckdb_are_seen_and_errors_are_named():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TEMP TABLE people AS SELECT * FROM (VALUES (30, 'F'), (45, 'M')) v(age, sex)")
    data = PrivateData.from_dbapi(connection, "people", DOMAIN)

    assert "GROUP BY (duckdb)" in data.loading
    assert (2, 1) == (data.n, counts(data, sex="F"))
    with pytest.raises(InvalidDataError, match="got CatalogException from the database"):
        PrivateData.from_dbapi(connection, "nobody", DOMAIN)
    with pytest.raises(InvalidDataError, match="got 0 for sexx; did you mean 'sex'"):
        PrivateData.from_dbapi(connection, "people", Domain.of(sexx=["F", "M"]))


def test_of_an_error_while_reading_only_its_kind_is_told(connection):
    connection.execute("CREATE VIEW broken AS SELECT CAST(x'4869ff' AS TEXT) AS sex")  # Hi, and no UTF-8
    duckdb = pytest.importorskip("duckdb").connect()
    duckdb.execute("CREATE VIEW broken AS SELECT CAST('Hi' || i AS INTEGER) AS sex FROM range(2) r(i)")
    for each in (connection, duckdb):
        with pytest.raises(InvalidDataError, match=r"to its last row, got \w+ from") as error:
            PrivateData.from_dbapi(each, "broken", Domain.of(sex=["F", "M"]))

        assert "Hi" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "words", "expected"),
    [
        (categorical([1, 2], synonyms={"x": 1, "X": 2}), ["x", "X", "X"], [1, 2]),
        (categorical([1, 2], other="o"), ["o", 1, 2], [1, 1, 1]),
        (optional(range(1), ["NA"]), ["NA", 0, 0], [2, 1]),
        (optional(binned([0, 1]), ["NA"]), ["NA", 0, 0], [2, 1]),
    ],
)
def test_words_for_numbers_are_compared_here_too(connection, kind, words, expected):
    """What an unknown database takes for one text may be two."""
    foreign = Foreign(connection)
    connection.execute("CREATE TABLE t (x COLLATE NOCASE)")
    connection.executemany("INSERT INTO t VALUES (?)", [(word,) for word in words])
    data = PrivateData.from_dbapi(foreign, "t", Domain.of(x=kind))

    assert "GROUP BY" not in foreign.statements[-1]
    assert expected == data.exact_counts(Partition(data.domain, (0,), (np.arange(kind.size),))).tolist()


def test_an_error_of_the_statement_that_reads_is_not_told(connection, monkeypatch):
    def quoting(cursor, statement):
        if "COUNT" in statement:
            raise ValueError("invalid input syntax for type integer: 'Zanzibar'")
        return cursor._cursor.execute(statement)

    monkeypatch.setattr(ForeignCursor, "execute", quoting)
    for domain in (DOMAIN, DOMAIN.project("age")):
        with pytest.raises(InvalidDataError, match="got ValueError from") as error:
            PrivateData.from_dbapi(Foreign(connection), "people", domain)

        assert (None, True) == (error.value.__cause__, error.value.__suppress_context__)
        assert "Zanzibar" not in str(error.value)


def test_mysql_has_no_booleans_and_a_pool_is_seen_through(connection):
    connection.execute("CREATE TABLE flags (ok INTEGER)")
    connection.executemany("INSERT INTO flags VALUES (?)", [(0,), (1,), (1,)])
    domain = Domain.of(ok=[False, True])
    mysql = type("Connection", (Foreign,), {"__module__": "pymysql.connections"})
    pooled = type("Pooled", (Foreign,), {"driver_connection": connection})
    data = PrivateData.from_dbapi(mysql(connection), "flags", domain)

    assert [1, 2] == [counts(data, ok=label) for label in (False, True)]
    assert 3 == PrivateData.from_dbapi(pooled(connection), "flags", domain).n
    with pytest.raises(InvalidDataError, match="ok must hold true or false"):
        PrivateData.from_dbapi(Foreign(connection), "flags", domain)
