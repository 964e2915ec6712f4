"""Tables of Spark, in its local mode: `pip install pyspark`, Java, then `python -m pytest -m spark`."""

import datetime
import shutil

import numpy as np
import pytest

from onlineic import Budget, OnlineIC
from onlineic.data import PrivateData
from onlineic.domain import Domain, binned, dates, optional
from onlineic.errors import EngineError, InvalidDataError
from onlineic.noise import SimulatedNoise
from onlineic.queries import Partition, between, where
from support.awkward import COLUMNS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # of Spark's own: sockets, deprecations
]


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("narwhals", reason="needs the extra frames")
    pytest.importorskip("pyarrow")
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "Asia/Tokyo",  # no time zone of a test
    }
    session = sql.SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    yield session
    session.stop()


RECORDS = {
    "age": [17, 90, None, 30, 30],
    "text": ["a", "A", "ä", None, "a"],
    "x": [-0.0, float("nan"), 99.0, float("-inf"), None],
    "flag": [True, False, None, True, True],
    "time": [1711839600, 1711843200, None, 1711846800, 1711846800],  # in Paris 0, 1 and 3 h
}
DOMAIN = Domain.of(
    age=optional(range(17, 91)),
    text=optional(["a", "A", "ä"]),
    x=optional(binned([float("-inf"), 0, 20, 100])),
    flag=optional([False, True]),
    time=optional(dates("2024-03-31T00", "2024-03-31T05", by="hour", zone="Europe/Paris")),
)


def frame(spark):
    """Text compares without case, as a column of Spark may."""
    schema = "age INT, text STRING COLLATE UTF8_LCASE, x DOUBLE, flag BOOLEAN, time BIGINT"
    rows = list(zip(*RECORDS.values(), strict=True))
    return spark.createDataFrame(rows, schema).selectExpr(
        "age", "text", "x", "flag", "timestamp_seconds(time) AS time"
    )


def expected():
    times = [time and datetime.datetime.fromtimestamp(time, datetime.UTC) for time in RECORDS["time"]]
    return RECORDS | {"time": times}


def cells(data):
    shape = data.domain.shape
    return [
        data.exact_counts(Partition(data.domain, (a, b), (np.arange(shape[a]), np.arange(shape[b])))).tolist()
        for a in range(len(shape))
        for b in range(a + 1, len(shape))
    ]


def test_spark_counts_the_records_where_they_are(spark):
    data = PrivateData.from_frame(frame(spark), DOMAIN)

    assert "counted where it lies, by one GROUP BY (pyspark)" in data.loading
    assert cells(PrivateData.from_records(expected(), DOMAIN)) == cells(data)


def test_text_of_spark_is_told_apart_whatever_its_collation(spark):
    domain = DOMAIN.project("text")
    data = PrivateData.from_frame(frame(spark), domain)

    assert 3 == frame(spark).where("text = 'A'").count()  # to Spark
    assert [2, 1, 1, 1] == [
        data.exact_counts(where(text=label).bind(domain)) for label in ("a", "A", "ä", None)
    ]


@pytest.mark.parametrize(
    ("counting", "how"), [(None, "stays where it lives (pyspark)"), ("rows", "streamed")]
)
def test_of_many_cells_the_pairs_are_counted_where_the_rows_are_unless_rows_are_wanted(spark, counting, how):
    domain = Domain.of(dict(DOMAIN) | {"z": range(2**15)})
    data = PrivateData.from_frame(frame(spark).selectExpr("*", "7 AS z"), domain, counting=counting)

    assert how in data.loading
    assert cells(PrivateData.from_records({**expected(), "z": [7] * 5}, domain)) == cells(data)


def test_sets_are_counted_on_demand_of_one_state_of_the_files(spark, tmp_path):
    domain, records = Domain.of({f"c{place}": 8 for place in range(9)}), np.random.default_rng(1)
    columns = {name: records.integers(0, 8, 500) for name in domain.names}
    rows = [tuple(map(int, row)) for row in zip(*columns.values(), strict=True)]
    path = str(tmp_path / "table")
    spark.createDataFrame(rows, [*columns]).write.parquet(path)
    data = PrivateData.from_frame(spark.read.parquet(path), domain, counting="on demand")
    kept = PrivateData.from_records(columns, domain)
    seen, expected = (OnlineIC(table, Budget(1.0, 1e-9), noise=SimulatedNoise(1)) for table in (data, kept))
    asked = [where(c0=1, c3=2), where(c1=between(2, 5), c4=3, c7=1), where(c8=between(0, 3), c2=4, c5=1)]

    assert [one.value for one in map(expected.answer, asked)] == [
        one.value for one in map(seen.answer, asked)
    ]
    spark.createDataFrame(rows, [*columns]).write.mode("overwrite").parquet(path)
    with pytest.raises(EngineError):
        seen.answer(where(c3=1, c6=2, c8=2))


def test_values_as_files_hold_them_are_read_as_from_other_sources(spark):
    columns = {name: values for name, (_, values, _) in COLUMNS.items()}
    for names in (tuple(columns), *((name,) for name in columns)):
        part = {name: columns[name] for name in names}
        domain = Domain.of({name: COLUMNS[name][0] for name in names})
        rows = list(zip(*part.values(), strict=True))
        schema = ", ".join(
            f"`{name}` {'BIGINT' if isinstance(values[0], int) else 'STRING COLLATE UTF8_LCASE'}"
            for name, values in part.items()
        )
        data = PrivateData.from_frame(spark.createDataFrame(rows, schema), domain, counting="rows")
        expected = PrivateData.from_records(part, domain)

        for axis, size in enumerate(domain.shape):
            blocks = (axis,), (np.arange(size),)
            assert np.array_equal(
                expected.exact_counts(Partition(domain, *blocks)),
                data.exact_counts(Partition(domain, *blocks)),
            )


def test_what_does_not_fit_is_refused(spark):
    with pytest.raises(InvalidDataError, match="age must be a whole number from 18 to 90 in every row"):
        PrivateData.from_frame(frame(spark), Domain.of(age=optional(range(18, 91))))
