"""Tables of real databases, each a server of its own in a temporary folder, without a port.

apt-get install postgresql mariadb-server
pip install "psycopg[binary]" pymysql
python -m pytest -m servers tests/unit/data/test_servers.py
"""

import datetime
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from onlineic.data import PrivateData
from onlineic.domain import Domain, binned, dates, optional
from onlineic.errors import InvalidDataError
from onlineic.queries import where

pytestmark = pytest.mark.servers
PLACES = [
    *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
    Path("/usr/sbin"),
    Path("/usr/bin"),
]
ENVIRONMENT = {"PATH": ":".join(map(str, PLACES)), "LC_ALL": "C.UTF-8"}
UTC = datetime.UTC
MIDNIGHT = datetime.datetime(2024, 3, 5, 23, 30, tzinfo=UTC)  # the next day in Paris
PEOPLE = {  # column: type in PostgreSQL, type in MariaDB, values
    "age": ("integer", "INT", [30, None, 40, 30]),
    "Sex at birth": ("text", "VARCHAR(3)", ["F", "M", None, "F"]),
    "region": ("text", "VARCHAR(9)", ["north", "North", "south", "north"]),
    "ok": ("boolean", "BOOLEAN", [True, False, None, True]),
    "pay": ("numeric(8, 2)", "DECIMAL(8, 2)", [Decimal("10.50"), Decimal("20.00"), None, Decimal("10.49")]),
    "whole": ("numeric", "DECIMAL(8, 2)", [Decimal(3), Decimal(4), None, Decimal(3)]),
    "score": ("double precision", "DOUBLE", [0.5, -0.0, None, 0.25]),
    "born": ("date", "DATE", [datetime.date(2024, 3, 5), datetime.date(2024, 2, 29), None, None]),
    "seen": ("timestamp", "DATETIME", [datetime.datetime(2024, 3, 5, 23, 59), None, None, None]),
    "big": ("bigint", "BIGINT", [2**40, 5, None, 2**53 + 1]),
}
DOMAIN = Domain.of(
    {
        "age": optional(range(20, 50)),
        "Sex at birth": optional(["F", "M"]),
        "region": ["north", "North", "south"],
        "ok": optional([True, False]),
        "pay": optional(binned([0, 10.5, 30])),
        "whole": optional(range(5)),
        "score": optional(binned([0, 0.5, 1])),
        "born": optional(dates("2024-02-01", "2024-03-31")),
        "seen": optional(dates("2024-01", "2024-03", by="month")),
        "big": optional(binned([0, 10, 2**50, 2**53 + 1, 2**54])),
    }
)


def account(name):
    """Servers do not run as root: the settings of a process of the account that the package made."""
    if shutil.which({"postgres": "initdb", "mysql": "mariadbd"}[name], path=ENVIRONMENT["PATH"]) is None:
        pytest.skip(f"needs the server of {name}")
    return {"user": name} if os.geteuid() == 0 else {}


@pytest.fixture(scope="module")
def folder():
    """A short path: sockets have at most 107 characters."""
    made = tempfile.mkdtemp(prefix="ic")
    os.chmod(made, 0o777)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def postgres(folder):
    psycopg = pytest.importorskip("psycopg")
    own = account("postgres")

    def run(*words):
        subprocess.run(words, check=True, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, **own)

    files = f"{folder}/postgres"
    run("initdb", "-D", files, "--auth=trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    run("pg_ctl", "-D", files, "-w", "-l", f"{folder}/log", "-o", options, "start")
    try:
        with psycopg.connect(host=folder, user="postgres", dbname="postgres") as connection:
            yield connection
    finally:
        run("pg_ctl", "-D", files, "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def mariadb(folder):
    pymysql = pytest.importorskip("pymysql")
    own, files, socket = account("mysql"), f"{folder}/mariadb", f"{folder}/socket"
    quiet = {"cwd": folder, "env": ENVIRONMENT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    install = ("mariadb-install-db", "--no-defaults", f"--datadir={files}", "--skip-test-db")
    subprocess.run([*install, "--auth-root-authentication-method=normal"], check=True, **quiet, **own)
    paths = (f"--datadir={files}", f"--socket={socket}", f"--pid-file={folder}/pid")
    server = subprocess.Popen(["mariadbd", "--no-defaults", "--skip-networking", *paths], **quiet, **own)
    try:
        while not Path(socket).exists():
            assert server.poll() is None, "the server has ended"
            time.sleep(0.1)
        connection = pymysql.connect(unix_socket=socket, user="root")
        connection.cursor().execute("CREATE DATABASE people")
        connection.select_db("people")
        yield connection
        connection.close()
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(params=["postgres", "mariadb"])
def people(request):
    """A connection, its quote, with the table of people."""
    connection = request.getfixturevalue(request.param)
    quote, place = ('"', 0) if request.param == "postgres" else ("`", 1)
    cursor = connection.cursor()
    cursor.execute("DROP TABLE IF EXISTS people")
    columns = ", ".join(f"{quote}{name}{quote} {kinds[place]}" for name, (*kinds, _) in PEOPLE.items())
    cursor.execute(f"CREATE TABLE people ({columns})")
    rows = zip(*(values for *_, values in PEOPLE.values()), strict=True)
    cursor.executemany(f"INSERT INTO people VALUES ({', '.join(['%s'] * len(PEOPLE))})", list(rows))
    yield connection, quote
    connection.rollback()


def counts(data):
    """The counts of every label of every attribute."""
    return {
        name: [
            data.exact_counts(where({name: kind.label(code)}).bind(data.domain)) for code in range(kind.size)
        ]
        for name, kind in data.domain
    }


@pytest.mark.parametrize("name", PEOPLE)
def test_every_kind_of_column_is_counted_as_from_python(people, name):
    connection, quote = people
    domain = DOMAIN.project(name)
    data = PrivateData.from_dbapi(connection, "people", domain, quote=quote)
    by_hand = PrivateData.from_records({name: PEOPLE[name][-1]}, domain)

    assert ("GROUP BY" in data.loading) == (name in ("age", "ok", "pay", "whole", "score", "big"))
    assert counts(by_hand) == counts(data)


def test_all_columns_at_once_are_those_of_python(people):
    connection, quote = people
    data = PrivateData.from_dbapi(connection, "people", DOMAIN, quote=quote)
    columns = {name: values for name, (*_, values) in PEOPLE.items()}

    assert counts(PrivateData.from_records(columns, DOMAIN)) == counts(data)


def test_what_is_no_table_or_column_is_named_and_after_a_rollback_all_goes_on(people):
    connection, quote = people
    connection.commit()
    with pytest.raises(InvalidDataError, match=r"see table and quote, and roll back") as error:
        PrivateData.from_dbapi(connection, "nobody", DOMAIN, quote=quote)
    connection.rollback()
    with pytest.raises(InvalidDataError, match="did you mean 'age'"):
        PrivateData.from_dbapi(connection, "people", Domain.of(agee=range(3)), quote=quote)
    data = PrivateData.from_dbapi(connection, "people", DOMAIN.project("age"), quote=quote)

    assert error.value.__cause__ is error.value.__context__ is None
    assert 4 == data.n


def test_rows_may_come_as_mappings(people):
    connection, quote = people
    if hasattr(connection, "row_factory"):
        from psycopg import rows

        connection.row_factory, before = rows.dict_row, connection.row_factory
    else:
        from pymysql import cursors

        connection.cursorclass, before = cursors.DictCursor, connection.cursorclass
    try:
        for names in (["age"], ["age", "region"]):
            data = PrivateData.from_dbapi(connection, "people", DOMAIN.project(*names), quote=quote)
            assert 4 == data.n
    finally:
        setattr(connection, "row_factory" if hasattr(connection, "row_factory") else "cursorclass", before)


def test_cursors_that_do_not_hold_their_rows(mariadb, people):
    connection, quote = people
    if connection is not mariadb:
        pytest.skip("of MariaDB")
    from pymysql import cursors

    connection.cursorclass, before = cursors.SSCursor, connection.cursorclass
    try:
        assert 4 == PrivateData.from_dbapi(connection, "people", DOMAIN.project("region"), quote=quote).n
    finally:
        connection.cursorclass = before


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_times_of_a_zone_are_local_time_of_the_domain_whatever_the_connection_says(postgres, zone):
    postgres.execute("DROP TABLE IF EXISTS visits")
    postgres.execute("CREATE TABLE visits (at timestamptz)")
    postgres.execute("INSERT INTO visits VALUES (%s), (NULL)", [MIDNIGHT])
    postgres.execute(f"SET TIME ZONE '{zone}'")
    kind = optional(dates("2024-03-01", "2024-03-31", zone="Europe/Paris"))
    data = PrivateData.from_dbapi(postgres, "visits", Domain.of(at=kind))
    with pytest.raises(InvalidDataError, match="without offset, unless zone= is declared"):
        PrivateData.from_dbapi(postgres, "visits", Domain.of(at=optional(dates("2024-03-01", "2024-03-31"))))

    assert 1 == data.exact_counts(where(at="2024-03-06").bind(data.domain))
    postgres.rollback()


def test_what_postgres_has_besides(postgres):
    """NaN and infinite numbers, blanks of a char(3), uuids, arrays, bytes, a view."""
    postgres.execute("DROP TABLE IF EXISTS odd")
    postgres.execute("CREATE TABLE odd (x float8, d numeric, c char(3), u uuid, a text[], b bytea)")
    row = (float("nan"), Decimal("NaN"), "F", uuid.UUID(int=1), ["a"], b"a")
    postgres.execute("INSERT INTO odd VALUES (%s, %s, %s, %s, %s, %s)", row)
    postgres.execute("INSERT INTO odd VALUES ('Infinity', 7, 'M', NULL, NULL, NULL)")
    postgres.execute("CREATE VIEW trimmed AS SELECT rtrim(c) AS c FROM odd")
    numbers = Domain.of(x=optional(binned([0, float("inf")])), d=optional(range(8)))

    data = PrivateData.from_dbapi(postgres, "odd", numbers)
    assert [1, 1] == counts(data)["x"]
    assert [1, 1] == counts(data)["d"][-2:]
    assert [1, 1] == counts(PrivateData.from_dbapi(postgres, "trimmed", Domain.of(c=["F", "M"])))["c"]
    assert [1, 1] == counts(PrivateData.from_dbapi(postgres, "odd", Domain.of(c=["F  ", "M  "])))["c"]
    for name in "cuab":
        with pytest.raises(InvalidDataError, match=f"{name} must"):
            PrivateData.from_dbapi(postgres, "odd", Domain.of({name: optional(["a", "F"])}))
    assert np.isnan(row[0])
    postgres.rollback()
