"""Tables in which a library's own idea of equal, of a name or of a number would give other counts."""

import datetime
import math
import zoneinfo
from decimal import Decimal

import numpy as np
import pytest

from onlineic.data import PrivateData
from onlineic.data.coding import Batch, coded, places
from onlineic.domain import Domain, binned, categorical, dates, integers, optional
from onlineic.errors import InvalidDataError
from onlineic.queries import Partition
from support.sources import LOADERS


def counted(data, name):
    """Return the counts of an attribute that is alone."""
    size = data.domain.attribute(name).size
    return data.exact_counts(Partition(data.domain, (data.domain.axis(name),), (np.arange(size),))).tolist()


def csv_table(tmp_path, text, domain, **options):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return PrivateData.from_csv(path, domain, **options)


# ---------------------------------------------------------------- values that Python takes for equal

HOURS = Domain.of(x=dates("2024-10-27T00", "2024-10-27T02", by="hour", zone="UTC"))


def autumn():
    """Both passes of a clock through half past two."""
    first = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"))
    return first, first.replace(fold=1)


def test_the_hour_that_comes_twice_in_autumn_is_two_hours():
    first, second = autumn()
    assert first == second

    data = PrivateData.from_records({"x": [first, second, second]}, HOURS)

    assert [1, 2, 0] == counted(data, "x")


def test_the_hour_that_comes_twice_is_two_hours_in_every_batch():
    first, second = autumn()
    batches = [Batch([places(values)], None, 5) for values in ([first, second], [second, first, second])]
    columns, _ = coded(batches, HOURS)

    assert [0, 1, 1, 0, 1] == columns[0].tolist()


# ---------------------------------------------------------------- whole numbers that no float holds


@pytest.mark.parametrize("beside", [2**63, -(2**70)])
def test_whole_numbers_keep_their_value_beside_larger_ones(tmp_path, beside):
    domain = Domain.of(x=integers(2**53, 2**53 + 3, clip=True))
    data = PrivateData.from_records({"x": [beside, 2**53 + 1, 1]}, domain)
    file = csv_table(tmp_path, f"x\n{beside}\n{2**53 + 1}\n1\n", domain)

    assert [1 + (beside < 0), 1, 0, beside > 0] == counted(data, "x") == counted(file, "x")


LARGE = 2**54 - 1  # as a double it is 2^54


@pytest.mark.parametrize("number", [LARGE, -LARGE - 2, 2**63 - 1, -(2**63)])
def test_whole_numbers_are_cut_exactly_at_large_edges(tmp_path, number):
    edges = [-(2.0**63), -(2.0**54), 0, 2.0**54, 2.0**63]
    code = sum(number >= edge for edge in edges) - 1
    for kind in (binned(edges), binned(edges, integer=True)):
        domain = Domain.of(x=kind)
        expected = [at == code for at in range(4)]
        sources = [
            [number],
            [number, None],
            np.array([number]),
            [Decimal(number)],
            [Decimal(f"{number}.0")],
        ]
        for column in sources:
            data = PrivateData.from_records({"x": column}, Domain.of(x=optional(kind)))
            assert expected == counted(data, "x")[:4]
        for text in (f"{number}", f"{number}.0"):
            assert expected == counted(csv_table(tmp_path, f"x\n{text}\n", domain), "x")


def test_unsigned_numbers_are_cut_exactly():
    edges = [-1.0, 0.5, 3.0, 2.0**63, 2.0**64]
    column = np.array([0, 1, 2, 3, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    for values in (column, column.astype(object)):
        data = PrivateData.from_records({"x": values}, Domain.of(x=binned(edges)))
        assert [1, 2, 2, 2] == counted(data, "x")
    for kind in (np.int8, np.uint8):
        data = PrivateData.from_records(
            {"x": np.array([0, 1, 127], kind)}, Domain.of(x=binned([-math.inf, -500, 1, 300, math.inf]))
        )
        assert [0, 1, 2, 0] == counted(data, "x")


@pytest.mark.parametrize("source", ["polars_frame", "polars_lazy", "arrow_table", "duckdb_table", "sqlite"])
def test_every_source_cuts_whole_numbers_exactly(source, tmp_path):
    domain = Domain.of(x=binned([-(2.0**54), 0, 2.0**54, 2.0**55]))
    data = LOADERS[source]({"x": [LARGE, LARGE + 2, -LARGE]}, domain, tmp_path)

    assert [1, 1, 1] == counted(data, "x")


def test_whole_floats_in_text_keep_their_value(tmp_path):
    domain = Domain.of(x=range(2**53, 2**53 + 4))

    assert [0, 1, 0, 0] == counted(csv_table(tmp_path, f"x\n{2**53 + 1}.0\n", domain), "x")


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("attribute", ["age", "Alicia", "3"])
def test_the_first_record_of_a_file_without_header_is_not_told(tmp_path, attribute):
    text, domain = "39,Alice,>50K\n20,Bob,<=50K\n", Domain.of({attribute: range(100), "income": [">50K"]})
    with pytest.raises(InvalidDataError, match="give it a header line") as caught:
        csv_table(tmp_path, text, domain)
    report = PrivateData.check(tmp_path / "t.csv", domain)

    for said in (str(caught.value), repr(report)):
        assert not any(secret in said for secret in ("39", "Alice'", "50K"))
    assert "Alice" in report.curator_report()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("text", ['1,"F\n1,F\n1,F\n', '1,"F"x\n1,F\n', '1,"F""\n1,F\n'])
@pytest.mark.parametrize("before", [0, 100_000])
def test_a_quote_that_is_not_closed_swallows_no_record(tmp_path, text, before, encoding):
    domain = Domain.of(a=range(3), b=categorical(["F"], other=True))
    (tmp_path / "t.csv").write_text("a,b\n" + "2,F\n" * before + text, encoding=encoding)
    with pytest.raises(InvalidDataError, match="close the quotes"):
        PrivateData.from_csv(tmp_path / "t.csv", domain, encoding=encoding)
    report = PrivateData.check(tmp_path / "t.csv", domain, encoding=encoding)

    assert "close the quotes" in repr(report)
    assert "F" not in repr(report)


# ---------------------------------------------------------------- names of columns

NAMED = [
    {"b": [0, 0, 0], "^b$": [1, 1, 0]},
    {"*": [1, 1, 0], "b": [0, 0, 0]},
    {"^.*$": [1, 1, 0], "ab": [0] * 3},
]


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("columns", NAMED)
@pytest.mark.parametrize("source", [name for name in LOADERS if "nullable" not in name])
def test_names_that_look_like_patterns_are_names(source, columns, few, tmp_path, monkeypatch):
    name = next(name for name in columns if not name.isalpha())
    monkeypatch.setattr("onlineic.data.frames.GROUPED", 2**20 if few else 0)
    data = LOADERS[source](columns, Domain.of({name: 2}), tmp_path)

    assert [1, 2] == counted(data, name)


def test_a_report_takes_names_as_they_are():
    polars = pytest.importorskip("polars")
    frame = polars.LazyFrame(NAMED[0])

    assert PrivateData.check(frame, Domain.of({"^b$": 2, "b": 1})).fits
    assert not PrivateData.check(frame, Domain.of({"^b$": 1})).fits


@pytest.mark.parametrize("few", [True, False])
def test_names_that_differ_in_case_are_two_columns_of_duckdb(few, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setattr("onlineic.data.frames.GROUPED", 2**20 if few else 0)
    relation = duckdb.sql('SELECT 0 AS a, 1 AS "A", 2 AS total, 0 AS a0, 1.5::DOUBLE AS "x""y"')
    domain = Domain.of({"A": 3, "total": 3, "a0": 3, 'x"y': binned([0, 1, 2]), "a": 3})
    for name, code in zip(domain.names, (1, 2, 0, 1, 0), strict=True):
        for attributes in (domain, domain.project(name)):
            data = PrivateData.from_frame(relation, attributes)
            assert 1 == counted(data, name)[code]


# ---------------------------------------------------------------- paths of Parquet files


@pytest.mark.parametrize(
    "name", ["~/t.parquet", "file:t", "sex=F/t.parquet", "a'b", "s3:t", "{a,b}.parquet", "back\\slash"]
)
def test_a_path_is_that_of_one_file_whatever_it_looks_like(name, tmp_path, monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    polars.DataFrame({"sex": ["M", "M"]}).write_parquet(tmp_path / name)

    assert [0, 2] == counted(PrivateData.from_frame(name, Domain.of(sex=["F", "M"])), "sex")
    with pytest.raises(InvalidDataError, match="got 0 for folder"):
        PrivateData.from_frame(name, Domain.of(folder=["F"]))


# ---------------------------------------------------------------- times


@pytest.mark.parametrize("lazy", [True, False])
def test_a_time_beyond_all_dates_is_not_missing(lazy):
    polars = pytest.importorskip("polars")
    times = polars.Series("x", [2**62, -(2**62), -1, None], dtype=polars.Int64).cast(polars.Datetime("ms"))
    frame = times.to_frame().lazy() if lazy else times.to_frame()
    kind = dates("1969-12-30", "1970-01-01", by="day", clip=True)

    assert [1, 1, 1, 1] == counted(PrivateData.from_frame(frame, Domain.of(x=optional(kind))), "x")


# ---------------------------------------------------------------- columns of numpy

LEAST, MOST = -(2**63) + 1, 2**63 - 1


@pytest.mark.parametrize(
    "unit", ["Y", "M", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "2D"]
)
@pytest.mark.parametrize("by", ["year", "quarter", "month", "week", "day", "hour", "minute"])
def test_times_at_the_ends_of_their_type_are_outside(unit, by):
    """Numpy's own way to a coarser unit wraps around there: the least of all times became a late one."""
    first, last = {"hour": ("T00",) * 2, "minute": ("T00:00",) * 2}.get(by, ("", ""))
    kind = dates("1969-12-01" + first, "1970-01-31" + last, by=by, clip=True)
    column = np.array([LEAST, 0, MOST, -(2**63)], f"M8[{unit}]")
    named = {"Y": ("year",), "M": ("year", "quarter", "month")}.get(
        unit, ("year", "quarter", "month", "week", "day")
    )
    coarse = unit in ("Y", "M", "D", "2D") and by not in named
    if coarse or (unit, by) == ("h", "minute"):
        with pytest.raises(InvalidDataError):
            PrivateData.from_records({"x": column[1:2]}, Domain.of(x=kind))
        return
    data = PrivateData.from_records({"x": column}, Domain.of(x=optional(kind)))
    found = counted(data, "x")

    short = unit in ("fs", "as", "ps")  # no more than 107 days about 1970
    assert (4, 1) == (sum(found), found[-1])
    if not short:
        assert found[0] >= 1
        assert found[-2] >= 1
    if by in ("day", "hour", "minute"):
        assert found[kind.code("x", "1970-01-01T00:00" if by != "day" else "1970-01-01")] >= 1


def test_the_least_time_of_pandas_is_early():
    column = np.array([LEAST], "M8[ns]")
    data = PrivateData.from_records({"x": column}, Domain.of(x=dates("1677-09-20", "2262-12-31", by="day")))

    assert 1 == counted(data, "x")[1]


@pytest.mark.parametrize("absent", [None, math.nan])
def test_missing_texts_of_numpy_are_missing(absent):
    column = np.array(["a", absent, "b", absent], np.dtypes.StringDType(na_object=absent))

    assert [1, 1, 2] == counted(
        PrivateData.from_records({"x": column}, Domain.of(x=optional(["a", "b"]))), "x"
    )


def test_long_floats_are_read_as_doubles():
    close = np.longdouble(1) - np.longdouble(2) ** -60
    kind = optional(binned([0, 1, 2, math.inf]))
    for column in (np.array([close, np.longdouble("1e4000")]), [close, np.longdouble("inf")]):
        assert [0, 1, 1, 0] == counted(PrivateData.from_records({"x": column}, Domain.of(x=kind)), "x")
    for column in (np.array([close]), [close, None]):
        assert 1 == counted(PrivateData.from_records({"x": column}, Domain.of(x=optional(range(2)))), "x")[1]


# ---------------------------------------------------------------- errors


class Talkative:
    """A value whose own code fails, and tells what it holds."""

    def __eq__(self, other):
        raise KeyError("Zanzibar")

    def __hash__(self):
        return 1


@pytest.mark.parametrize("kind", [range(3), ["a"], [1], [True], dates("2020", "2021", "year")])
def test_an_error_of_a_value_is_not_told(kind):
    pandas = pytest.importorskip("pandas")
    columns, domain = {"x": [Talkative(), Talkative()]}, Domain.of(x=kind)
    loads = [PrivateData.from_records, PrivateData.check]
    for load in loads:
        with pytest.raises(InvalidDataError, match="got KeyError from one") as caught:
            load(columns, domain)
        assert "Zanzibar" not in str(caught.value)
        assert caught.value.__suppress_context__
    with pytest.raises(InvalidDataError, match="got KeyError from") as caught:
        PrivateData.from_frame(pandas.DataFrame(columns), domain)
    assert "Zanzibar" not in str(caught.value)


def test_a_panic_of_polars_is_an_error_of_the_table(capfd):
    polars = pytest.importorskip("polars")
    times = polars.Series("x", [2**62], dtype=polars.Int64).cast(polars.Datetime("ms", "UTC"))
    domain = Domain.of(x=dates("2020", "2021", "year", zone="UTC"))
    with pytest.raises(InvalidDataError):
        PrivateData.from_frame(times.to_frame(), domain)
    capfd.readouterr()


def test_an_interrupt_is_one(monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr("onlineic.data.frames.of_pandas", stopped)
    with pytest.raises(KeyboardInterrupt):
        PrivateData.from_frame(pandas.DataFrame({"x": [1]}), Domain.of(x=range(2)))
