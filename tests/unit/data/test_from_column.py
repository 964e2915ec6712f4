"""Several attributes of one column: every loader fills them, and tells which column is absent."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidDataError, InvalidDomainError, InvalidParameterError
from support import databases

DOMAIN = ic.Domain.of(
    month=ic.from_column("day", ic.dates("2024-01", "2024-12", by="month")),
    band=ic.optional(ic.from_column("age", ic.binned([0, 18, 65, 120], integer=True))),
    age=ic.optional(range(120)),
    sex=["F", "M"],
)
N = 400
DRAW = np.random.default_rng(2)
ROWS = [
    {"day": f"2024-{month:02}-{day:02}", "age": None if age > 110 else age, "sex": sex}
    for month, day, age, sex in zip(
        DRAW.integers(1, 13, N).tolist(), DRAW.integers(1, 29, N).tolist(),
        DRAW.integers(0, 120, N).tolist(), DRAW.choice(["F", "M"], N).tolist(), strict=True
    )
]  # fmt: skip
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}


def csv_of(folder):
    path = folder / "rows.csv"
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in ROWS]
    path.write_text("\n".join(["day,age,sex", *lines]) + "\n", encoding="utf-8")
    return path


def of_sqlite(folder):
    connection = databases.opened()
    connection.execute("CREATE TABLE visits (day TEXT, age INTEGER, sex TEXT)")
    connection.executemany("INSERT INTO visits VALUES (:day, :age, :sex)", ROWS)
    return ic.PrivateData.from_dbapi(connection, "visits", DOMAIN)


def of_frame(folder, library, *, lazy=False):
    made = pytest.importorskip(library)
    pytest.importorskip("narwhals")
    if library == "duckdb":
        return ic.PrivateData.from_frame(made.read_csv(str(csv_of(folder)), dtype={"day": "VARCHAR"}), DOMAIN)
    if library == "pyarrow":
        return ic.PrivateData.from_frame(made.table(COLUMNS), DOMAIN)
    frame = made.DataFrame({**COLUMNS, "age": made.Series(COLUMNS["age"], dtype="Int64")}
                           if library == "pandas" else COLUMNS)  # fmt: skip
    return ic.PrivateData.from_frame(frame.lazy() if lazy else frame, DOMAIN)


LOADERS = {
    "columns": lambda folder: ic.PrivateData.from_records(COLUMNS, DOMAIN),
    "rows": lambda folder: ic.PrivateData.from_records(ROWS, DOMAIN),
    "counts": lambda folder: ic.PrivateData.from_counts(COLUMNS, np.ones(N, np.int64), DOMAIN),
    "csv": lambda folder: ic.PrivateData.from_csv(csv_of(folder), DOMAIN),
    "sqlite": of_sqlite,
    "pandas": lambda folder: of_frame(folder, "pandas"),
    "polars": lambda folder: of_frame(folder, "polars"),
    "lazy polars": lambda folder: of_frame(folder, "polars", lazy=True),
    "pyarrow": lambda folder: of_frame(folder, "pyarrow"),
    "duckdb": lambda folder: of_frame(folder, "duckdb"),
}


@pytest.mark.parametrize("source", LOADERS)
def test_every_loader_fills_several_attributes_of_one_column(source, tmp_path):
    expected = np.zeros(DOMAIN.shape, np.int64)
    for row in ROWS:
        age = row["age"]
        band = 3 if age is None else np.searchsorted([18, 65], age, "right")
        month, sex = int(row["day"][5:7]) - 1, "FM".index(row["sex"])
        expected[month, band, 120 if age is None else age, sex] += 1

    every = ic.marginal(*DOMAIN.names).bind(DOMAIN)
    counts = LOADERS[source](tmp_path).exact_counts(every.partition)
    assert np.array_equal(expected, np.where(every.cells >= 0, counts[every.cells], 0))


def test_a_domain_says_of_which_column_an_attribute_is():
    assert ("day", "age", "age", "sex") == DOMAIN.columns
    assert DOMAIN == ic.Domain.from_json(DOMAIN.to_json())
    assert DOMAIN.project("band", "sex").columns == ("age", "sex")
    assert "dates 2024-01 to 2024-12 by month, of the column day" in repr(DOMAIN)
    assert ic.Domain.of(age=range(3)).to_json() == '{"age": {"range": [0, 2]}}'


def test_a_column_that_is_absent_is_named(tmp_path):
    lacking = {"date": COLUMNS["day"], "age": COLUMNS["age"], "sex": COLUMNS["sex"]}
    (tmp_path / "rows.csv").write_text("date,age,sex\n2024-01-01,3,F\n", encoding="utf-8")

    for load in (
        lambda: ic.PrivateData.from_records(lacking, DOMAIN),
        lambda: ic.PrivateData.from_records([dict(zip(lacking, [*row], strict=True)) for row in
                                             zip(*lacking.values(), strict=True)], DOMAIN),
        lambda: ic.PrivateData.from_csv(tmp_path / "rows.csv", DOMAIN),
    ):  # fmt: skip
        with pytest.raises(InvalidDataError, match="day"):
            load()
    for table in (lacking, str(tmp_path / "rows.csv")):
        assert "day" in repr(ic.PrivateData.check(table, DOMAIN))
    assert () == tuple(ic.PrivateData.check(COLUMNS, DOMAIN).misfits)


def test_a_column_that_fills_an_attribute_is_nobodys_name():
    with pytest.raises(InvalidParameterError, match="unit must name a column that is no attribute"):
        ic.PrivateData.from_records(COLUMNS, DOMAIN, unit=ic.Unit("day"))


def test_a_column_has_a_name():
    for column in ("", 3, None):
        with pytest.raises(InvalidDomainError, match="column must be the name of a column"):
            ic.from_column(column, range(3))
    with pytest.raises(InvalidDomainError, match="column must be the name of a column"):
        ic.Domain.from_json('{"age": {"range": [0, 2], "column": 3}}')
