"""The same records give the same table, wherever they come from: the equality test of all loaders."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pytest

from onlineic.data import PrivateData
from onlineic.domain import Domain, binned, dates, optional
from onlineic.errors import InvalidDataError
from onlineic.queries import Partition
from support import ugly
from support.sources import LOADERS, STAYING

UTC = datetime.UTC
EDGES = [-math.inf, -1.5, 0.0, 0.1, 20.0, math.nextafter(20.0, 21.0), 100.0]

# every trap of a column in few rows: (kind, values)
COLUMNS = {
    "age": (optional(range(17, 91)), [17, 90, None, 30, 30, 30, 44]),
    "text": (
        optional(["a", "A", "á", "a\u0301", "a ", "", "ß", "ss"]),
        ["a", "A", "á", "a\u0301", None, "a ", ""],
    ),
    "float": (
        optional(binned(EDGES)),
        [-0.0, math.nan, 20.0, -math.inf, None, 0.1, math.nextafter(20.0, 0.0)],
    ),
    "top": (binned([0, 1, math.inf]), [0.0, math.inf, 1.0, 5e-324, 1e308, 0.5, math.nextafter(1.0, 0.0)]),
    "whole": (optional(binned([0, 10, 20], integer=True)), [0, 9, 10, 19, None, 3, 11]),
    "flag": (optional([False, True]), [True, False, None, True, True, False, None]),
    "money": (
        optional(binned([0, 0.1, 0.3, 5])),
        [
            Decimal("0.10"),
            Decimal("0.30"),
            None,
            Decimal("4.99"),
            Decimal("0.00"),
            Decimal("0.29"),
            Decimal("0.1"),
        ],
    ),
    "count": (
        range(3),
        [Decimal("1"), Decimal("2"), Decimal("0"), Decimal("1"), Decimal("1"), Decimal("2"), Decimal("0")],
    ),
    "huge": ([2**62, 2**53, 2**53 + 1, 0], [2**62, 2**53, 2**53 + 1, 0, 0, 2**53 + 1, 2**53]),
    "clipped": (optional(binned([0, 1, 2], clip=True)), [-5.0, 7.0, 0.5, math.inf, -math.inf, None, 1.5]),
    "day": (
        optional(dates("2024-02-28", "2024-03-01")),
        [
            datetime.date(2024, 2, 29),
            None,
            *[datetime.date(2024, 3, 1)] * 3,
            *[datetime.date(2024, 2, 28)] * 2,
        ],
    ),
    "month": (
        dates("2023-12", "2024-02", by="month"),
        [
            datetime.datetime(2023, 12, 31, 23, 59, 59, 999999),
            datetime.datetime(2024, 1, 1),
            *[datetime.datetime(2024, 1, 31, 12)] * 3,
            *[datetime.datetime(2024, 2, 29)] * 2,
        ],
    ),
    "mixed": (["1", "0", "True", "1.0"], ["1", "True", "1", "1.0", "0", "0", "True"]),
    "local": (
        dates("2024-03-30", "2024-04-01", zone="Europe/Paris"),
        [
            *[datetime.datetime(2024, 3, 30, 22, 59, tzinfo=UTC)] * 3,
            datetime.datetime(2024, 3, 30, 23, 0, tzinfo=UTC),  # the 31st in Paris
            *[datetime.datetime(2024, 3, 31, 22, 0, tzinfo=UTC)] * 3,
        ],
    ),
    "hour": (
        optional(dates("2024-03-31T00", "2024-03-31T05", by="hour", zone="Europe/Paris")),
        [
            datetime.datetime(2024, 3, 31, 0, 59, tzinfo=UTC),  # 01:59 in Paris
            datetime.datetime(2024, 3, 31, 1, 0, tzinfo=UTC),  # 03:00, an hour is left out
            None,
            *[datetime.datetime(2024, 3, 31, 2, 30, tzinfo=UTC)] * 4,
        ],
    ),
}
RECORDS = {name: values for name, (_, values) in COLUMNS.items()}
DOMAIN = Domain.of({name: kind for name, (kind, _) in COLUMNS.items()})


def cells(data):
    """Return the counts of all cells, or of all pairs of attributes where there are too many."""
    size = data.domain.size
    axes = range(len(data.domain.shape))
    cuts = [tuple(axes)] if size <= 2**20 else [(a, b) for a in axes for b in axes if a < b]
    return [counts(data, cut).tolist() for cut in cuts]


def counts(data, axes):
    classes = tuple(np.arange(data.domain.shape[axis]) for axis in axes)
    return data.exact_counts(Partition(data.domain, axes, classes))


def only(names):
    return {name: RECORDS[name] for name in names}


# one attribute alone: nothing else keeps apart what a collation would make one
GROUPS = [
    ("text",),
    ("local",),
    ("mixed",),
    ("text", "float", "age"),
    ("flag", "money", "count", "day"),
    ("huge", "top", "whole", "month"),
    ("hour", "clipped"),
]


@pytest.mark.parametrize("names", GROUPS, ids="-".join)
@pytest.mark.parametrize("source", LOADERS)
def test_every_source_gives_the_table_of_the_same_records(source, names, tmp_path):
    domain = DOMAIN.project(*names)
    expected = PrivateData.from_records(only(names), domain)
    data = LOADERS[source](only(names), domain, tmp_path)

    assert (7, cells(expected)) == (data.n, cells(data))


@pytest.mark.parametrize("source", LOADERS)
def test_every_source_streams_the_same_records_into_a_domain_of_many_cells(source, tmp_path):
    data = LOADERS[source](RECORDS, DOMAIN, tmp_path)

    assert DOMAIN.size > 2**26
    assert "GROUP BY" not in data.loading
    assert cells(PrivateData.from_records(RECORDS, DOMAIN)) == cells(data)


@pytest.mark.parametrize("source", STAYING)
@pytest.mark.parametrize("name", [None, *RECORDS])
def test_sets_of_attributes_counted_where_the_rows_are_are_those_of_the_records(
    source, name, tmp_path, monkeypatch
):
    monkeypatch.setattr("onlineic.data.frames.GROUPED", 0)
    chosen = DOMAIN if name is None else DOMAIN.project(name)
    data = STAYING[source](only(chosen.names), chosen, tmp_path)

    assert "stays where it lives" in data.loading
    assert cells(PrivateData.from_records(only(chosen.names), chosen)) == cells(data)


@pytest.mark.parametrize("source", LOADERS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("age", 16),
        ("text", "b"),
        ("float", 100.0),
        ("float", math.inf),
        ("top", math.nan),
        ("whole", 5.5),
        ("money", Decimal("5.00")),
        ("count", Decimal("0.5")),
        ("day", datetime.date(2024, 3, 2)),
        ("hour", datetime.datetime(2024, 3, 31, 4, 0, tzinfo=UTC)),
    ],
)
def test_what_does_not_fit_is_refused_alike(source, name, value, tmp_path):
    columns = {"flag": RECORDS["flag"], name: [value, *RECORDS[name][1:]]}
    domain = DOMAIN.project(*columns)
    with pytest.raises(InvalidDataError) as expected:
        PrivateData.from_records(columns, domain)
    with pytest.raises(InvalidDataError) as seen:
        LOADERS[source](columns, domain, tmp_path)

    assert str(expected.value) == str(seen.value)


# ---------------------------------------------------------------- a whole table

TYPES = {
    "joined": datetime.date.fromisoformat,
    "last seen": datetime.datetime.fromisoformat,
    "age": float,
    "income": float,
    "hours": float,
    "score": float,
    "smoker": lambda text: text.lower() in ("yes", "true"),
    "education": int,
    "children": int,
}


def typed(name, text):
    """Return what a typed column holds for the text of a file."""
    if text in {"", "NA", "n/a", "none", "x", "?"}:
        return None
    return TYPES.get(name, str.strip)(text)


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """The counts of a file of 20,000 ugly lines, of all columns and of a few, and its columns with types."""
    path, domain = ugly.write(tmp_path_factory.mktemp("survey")), ugly.domain()
    few = domain.project("joined", "region", "income", "smoker", "children")
    columns = {name: [typed(name, text) for text in ugly.columns()[name]] for name in domain.names}
    return {each: cells(PrivateData.from_csv(path, each)) for each in (domain, few)}, columns


@pytest.mark.parametrize(
    "source", ["pandas_frame", "polars_frame", "polars_lazy", "arrow_table", "parquet_file", "duckdb_table"]
)
def test_an_ugly_table_gives_the_counts_of_its_file(source, survey, tmp_path):
    expected, columns = survey

    for domain, table in expected.items():
        data = LOADERS[source]({name: columns[name] for name in domain.names}, domain, tmp_path)
        assert (20_000, table) == (data.n, cells(data))
