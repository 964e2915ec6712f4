"""Dates and times: cells, what lies in them, how they are asked, and what is refused."""

import datetime
import zoneinfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onlineic.ask.json import parsed_query
from onlineic.domain import Dates, Domain, dates, optional
from onlineic.errors import InvalidDataError, InvalidDomainError, InvalidQueryError
from onlineic.queries import at_least, below, between, one_of, span, where
from support.names import lasting

UTC = datetime.UTC
DAY = datetime.date(2024, 3, 5)
ENDS = {
    "year": ("2020", "2025"),
    "quarter": ("2023-Q1", "2024-Q4"),
    "month": ("2023-11", "2024-06"),
    "week": ("2024-W01", "2024-W30"),
    "day": ("2024-01-01", "2024-12-31"),
    "hour": ("2024-03-04", "2024-03-06"),
    "minute": ("2024-03-05", "2024-03-05"),
}


class Period:
    """Stands for pandas.Period, by its first and its last moment."""

    def __init__(self, first, last):
        self.start_time = datetime.datetime.fromisoformat(first)
        self.end_time = datetime.datetime.fromisoformat(f"{last}T23:59:59.999999")


def codes(kind, values):
    return Domain.of(a=kind).encode({"a": values})[:, 0].tolist()


def refused(kind, values):
    with pytest.raises(InvalidDataError) as caught:
        codes(kind, values)
    return str(caught.value)


def cells(kind, condition):
    """Return the labels that satisfy a condition."""
    domain = Domain.of(a=kind)
    weights = where(a=condition).bind(domain).weights()
    return [kind.label(code) for code in np.flatnonzero(weights)]


@pytest.mark.parametrize(
    ("by", "size", "second"),
    [
        ("year", 6, "2021"),
        ("quarter", 8, "2023-Q2"),
        ("month", 8, "2023-12"),
        ("week", 30, "2024-W02"),
        ("day", 366, "2024-01-02"),
        ("hour", 72, "2024-03-04T01"),
        ("minute", 1440, "2024-03-05T00:01"),
    ],
)
def test_every_unit_has_its_cells_and_labels(by, size, second):
    kind = dates(*ENDS[by], by=by)

    assert (size, second) == (kind.size, kind.label(1))
    assert list(range(size)) == [kind.code("a", kind.label(code)) for code in range(size)]
    assert list(range(size)) == codes(kind, [kind.label(code) for code in range(size)])


@pytest.mark.parametrize(
    "value",
    [
        "2024-03-05", "2024-03-05T10:30", "2024-03-05 10:30:59.123456789", DAY,
        datetime.datetime(2024, 3, 5, 23, 59, 59, 999_999), np.datetime64("2024-03-05"),
        np.datetime64("2024-03-05T12:00:00.000000000"), Period("2024-03-05", "2024-03-05"),
    ],
    ids=lasting,
)  # fmt: skip
def test_a_day_lies_in_its_cell_in_every_type(value):
    for by, label in [
        ("year", "2024"),
        ("quarter", "2024-Q1"),
        ("month", "2024-03"),
        ("week", "2024-W10"),
        ("day", "2024-03-05"),
    ]:
        kind = dates(*ENDS[by], by=by)

        assert label == kind.label(codes(kind, [value])[0])
        if isinstance(value, np.datetime64):
            assert label == kind.label(codes(kind, np.array([value]))[0])


@pytest.mark.parametrize(
    ("value", "frequency", "by", "label"),
    [
        ("2024-01-01 10:00", "h", "hour", "2024-01-01T10"),
        ("2024-01-01 10:00", "h", "minute", None),
        ("2024-01-01 10:00", "h", "day", "2024-01-01"),
        ("2024-01-01", "2D", "day", None),
        ("2024-01-01", "2D", "month", "2024-01"),
        ("2024", "Y-JUN", "year", None),
        ("2024", "Y-DEC", "year", "2024"),
        ("2024Q1", "Q-JAN", "quarter", None),
        ("2024Q1", "Q-JAN", "year", "2023"),
        ("2024Q1", "Q-MAR", "quarter", "2023-Q2"),
        ("2024-W05", "W", "week", "2024-W05"),
        ("2024-03-05 10:00:07", "s", "minute", "2024-03-05T10:00"),
    ],
)
def test_a_period_of_pandas_is_all_of_its_time(value, frequency, by, label):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    if frequency == "W":
        value = "2024-01-30"
    period, kind = pd.Period(value, frequency), dates("2023-01", "2024-12", by)

    if label is None:
        assert "each inside one" in refused(kind, [period])
    else:
        assert label == kind.label(codes(kind, [period])[0])


@given(
    st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59)),
    st.sampled_from(sorted(ENDS)),
)
@example(datetime.datetime(9999, 12, 31), "day")
@example(datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), "minute")
@example(datetime.datetime(1, 1, 1), "week")
def test_years_that_no_domain_has_are_outside_in_every_type(moment, by):
    kind = dates("1999-12", "2024-02", by, clip=True)
    code = codes(kind, [moment])

    assert code == codes(kind, np.array([moment], "M8[us]")) == codes(kind, [moment.isoformat()])
    if moment.year > 2024:
        assert [kind.size - 1] == code
    if moment.year < 1999:
        assert [0] == code


@given(
    st.datetimes(datetime.datetime(1000, 1, 1), datetime.datetime(9998, 12, 31)),
    st.sampled_from(sorted(ENDS)),
)
def test_columns_of_numpy_agree_with_objects_and_texts(moment, by):
    """The oracle is Python's calendar; one path reads objects, the other whole columns."""
    kind = (
        dates("1000", "9998", by) if by not in ("hour", "minute") else dates(moment.date(), moment.date(), by)
    )
    code = codes(kind, [moment])

    assert code == codes(kind, np.array([moment], "M8[us]")) == codes(kind, [moment.isoformat()])
    label = kind.label(code[0])
    iso = moment.isocalendar()
    expected = {
        "year": f"{moment.year:04}",
        "quarter": f"{moment.year:04}-Q{(moment.month + 2) // 3}",
        "month": f"{moment:%Y-%m}".rjust(7, "0"),
        "week": f"{iso.year:04}-W{iso.week:02}",
        "day": moment.date().isoformat(),
        "hour": moment.isoformat()[:13],
        "minute": moment.isoformat()[:16],
    }
    assert expected[by] == label


def test_iso_weeks_begin_on_monday_and_belong_to_one_year():
    kind = dates("2020-12-28", "2021-01-10", by="week")

    assert ["2020-W53", "2021-W01"] == [kind.label(code) for code in range(kind.size)]
    assert [0, 0, 1] == codes(kind, ["2021-01-01", "2021-01-03", "2021-01-04"])
    assert [0] == codes(kind, [Period("2020-12-28", "2021-01-03")])


def test_missing_dates_go_to_the_last_cell():
    kind = optional(dates("2024-01", "2024-03", by="month"), ["?"])

    assert [3, 3, 3, 0] == codes(kind, [None, "?", float("nan"), "2024-01"])
    assert [3, 1] == codes(kind, np.array(["NaT", "2024-02-01"], "M8[D]"))
    assert (4, None, 3) == (kind.size, kind.label(3), kind.code("a", None))
    assert "declare it optional" in refused(dates("2024-01", "2024-03", "month"), np.array(["NaT"], "M8[D]"))


def test_dates_outside_are_refused_or_clipped():
    kind, clipped = (dates("2024-01", "2024-03", by="month", clip=clip) for clip in (False, True))
    for values in (["2023-12-31", "2024-04-01"], np.array(["2023-12-31", "2024-04-01"], "M8[D]")):
        assert "a date from 2024-01 to 2024-03" in refused(kind, values)
        assert [0, 2] == codes(clipped, values)


@pytest.mark.parametrize(
    "values",
    [
        [20240305], [2024], [2024.0], [True], ["05.03.2024"], ["3/5/2024"], ["2024-3-5"],
        ["2024-02-30"], ["2024-13"],
        ["2024-W54"], ["x"], [" 2024-03-05"], ["2024-03-05T25"], ["0000-01-01"],
        ["10000-12-31"], [b"2024-03-05"],
        ["2024-03"], ["2024"], ["2024-W10"], [Period("2024-01-01", "2024-03-31")], [datetime.timedelta(1)],
        [datetime.time(12)], np.array([19787]), np.array(["2024-03"], "M8[M]"), np.array(["2024"], "M8[Y]"),
        np.array(["2024-03-07"], "M8[W]"), np.array([5], "m8[D]"), ["٢٠٢٤-٠٣-٠٥"],
    ],
    ids=lasting,
)  # fmt: skip
def test_what_is_no_date_of_one_cell_is_refused(values):
    assert "a must hold dates" in refused(dates("2024-01-01", "2024-12-31"), values)


def test_a_value_must_lie_in_one_cell():
    assert "each inside one hour" in refused(dates("2024-03-05", "2024-03-05", "hour"), [DAY])
    assert "each inside one month" in refused(dates("2024-01", "2024-12", "month"), ["2024-Q1"])
    assert "each inside one week" in refused(dates("2024-01", "2024-12", "week"), ["2024-03"])
    assert [0] == codes(dates("2024-01", "2024-12", "quarter"), ["2024-03"])
    for unit, by in [
        ("D", "hour"),
        ("D", "minute"),
        ("h", "minute"),
        ("M", "day"),
        ("M", "week"),
        ("Y", "quarter"),
    ]:
        column = np.array(["2024-03-05"], "M8[D]").astype(f"M8[{unit}]")
        assert f"each inside one {by}" in refused(dates("2024-03-05", "2024-03-05", by), column)


def test_offsets_are_refused_unless_a_zone_is_declared():
    moment = datetime.datetime(2024, 3, 4, 23, 30, tzinfo=UTC)
    for value in (moment, moment.isoformat(), "2024-03-04T23:30Z"):
        assert "unless zone= is declared" in refused(dates("2024-01-01", "2024-12-31"), [value])
        paris = dates("2024-01-01", "2024-12-31", zone="Europe/Paris")
        assert "2024-03-05" == paris.label(codes(paris, [value])[0])
        assert [64, 64] == codes(paris, ["2024-03-05", "2024-03-05T12:00"])  # without offset: local time


def test_offsets_of_old_clocks_have_seconds():
    """Paris was 9 minutes and 21 seconds ahead of Greenwich until 1911."""
    kind = dates("1900-01-01T11", "1900-01-01T13", by="hour", zone="UTC")
    noon = datetime.datetime(1900, 1, 1, 12, 0, 0, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"))

    assert [0, 1] == codes(kind, [noon, "1900-01-01T12:10+00:09:21"])


def test_conditions_hold_all_the_time_that_they_name():
    months, days = dates("2023-11", "2024-06", by="month"), dates("2024-01-01", "2024-12-31")

    assert ["2024-01", "2024-02", "2024-03"] == cells(months, between("2024-01", "2024-03"))
    assert ["2024-01", "2024-02", "2024-03"] == cells(
        months, between(datetime.date(2024, 1, 1), np.datetime64("2024-03-31"))
    )
    assert ["2024-01", "2024-02"] == cells(months, span("2024-01", "2024-03"))
    assert ["2024-05", "2024-06"] == cells(months, at_least("2024-05"))
    assert ["2023-11", "2023-12"] == cells(months, below("2024"))
    assert ["2024-04", "2024-05", "2024-06"] == cells(months, between("2024-Q2", "2024-Q2"))
    assert ["2024-02", "2024-04"] == cells(months, one_of("2024-02", Period("2024-04-01", "2024-04-30")))
    assert ["2024-03-05"] == cells(days, DAY) == cells(days, datetime.datetime(2024, 3, 5))
    assert 31 + 29 == len(cells(days, between("2024-01", "2024-02")))
    assert [] == cells(months, between("2024-03", "2024-01"))
    hours = dates("2024-03-05", "2024-03-05", "hour")
    assert ["2024-03-05T14"] == cells(hours, datetime.datetime(2024, 3, 5, 14))
    assert ["2024-03-05T14", "2024-03-05T15"] == cells(hours, between("2024-03-05T14:00", "2024-03-05T15:59"))


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (between("2024-01-15", "2024-03"), "cut where one month begins, got 2024-01-15"),
        (between("2024-01", datetime.date(2024, 3, 1)), "inside 2024-03"),
        (between("2020-01", "2024-03"), "cut inside 2023-11 to 2024-06"),
        (between(1, 2), "must be cut at dates, got 1"),
        (at_least(3), "must be cut at dates, got 3"),
        ("2024-Q1", "which holds 3; write between"),
        (DAY, "cut where one month begins"),
        ("2024-02-30", "must be asked by a month such as"),
        ("March", "must be asked by a month such as"),
        (5, "must be asked by a month such as"),
        (None, "declare it optional"),
    ],
)
def test_conditions_that_do_not_fit_are_refused_by_name(condition, message):
    with pytest.raises(InvalidQueryError, match="a must") as caught:
        where(a=condition).bind(Domain.of(a=dates("2023-11", "2024-06", by="month")))

    assert message in str(caught.value)


def test_dates_of_pandas_are_dates():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    months, weeks = dates("2024-01", "2024-12", by="month"), dates("2024-01-01", "2024-12-30", by="week")
    series = pd.Series(pd.to_datetime(["2024-03-05 00:00:00", "2024-12-30 23:59:59"]))

    for column in (
        series,
        series.dt.to_period("M"),
        list(series),
        series.dt.date,
        series.dt.strftime("%Y-%m-%d"),
    ):
        assert [2, 11] == codes(months, column)
    assert [9, 52] == codes(weeks, series.dt.to_period("W"))
    assert [2, 12] == codes(optional(months), pd.Series(["2024-03-05", pd.NA], dtype="string"))
    assert [2, 12] == codes(optional(months), pd.Series([series[0], pd.NaT]))
    assert "unless zone= is declared" in refused(months, series.dt.tz_localize("UTC"))
    assert [2, 11] == codes(dates("2024-01", "2024-12", "month", zone="UTC"), series.dt.tz_localize("UTC"))
    assert ["2024-01", "2024-02"] == cells(
        months, between(pd.Timestamp("2024-01-01"), pd.Period("2024-02", "M"))
    )


def test_dates_are_asked_in_json():
    domain = Domain.of(a=dates("2024-01", "2024-12", by="month"), b=range(5))
    for line, query in [
        ('{"a": ["2024-01", "2024-06"]}', where(a=between("2024-01", "2024-06"))),
        ('{"a": {"at_least": "2024-Q3"}, "b": [0, 3]}', where(a=at_least("2024-Q3"), b=between(0, 3))),
        ('{"a": {"not": "2024-02"}}', where(a=~one_of("2024-02"))),
    ]:
        assert query == parsed_query(line, domain)
        query.bind(domain)
    for line in ('{"a": [1, 2]}', '{"a": ["2024"]}', '{"b": ["2024", "2025"]}', '{"a": ["x", "y"]}'):
        with pytest.raises(InvalidQueryError, match=r"a must|b must|range must"):
            parsed_query(line, domain)


@pytest.mark.parametrize(
    "ends", [("2024", 3), ("x", "y"), ("2024-01", None), (DAY, 5), ("2024", float("nan"))]
)
def test_ends_must_be_two_numbers_or_two_dates(ends):
    with pytest.raises(InvalidQueryError, match="ends"):
        between(*ends)


def test_dates_as_ends_of_numbers_are_refused():
    for kind in (range(3000), [1, 2]):
        with pytest.raises(InvalidQueryError, match="a must"):
            where(a=between("2020", "2024")).bind(Domain.of(a=kind))


@pytest.mark.parametrize(
    "arguments",
    [
        ("2024", "2023", "year"), ("2024", "2025", "years"), ("2024", "2025", None), ("x", "2025", "year"),
        (2024, 2025, "year"), ("2024", None, "day"), ("2024-01-01T00:00Z", "2025", "day"),
        ("0001", "2025", "year"),
        ("2024", "9999", "year"),
    ],
)  # fmt: skip
def test_kinds_that_cannot_be_are_refused(arguments):
    with pytest.raises(InvalidDomainError, match="must"):
        dates(*arguments)


@pytest.mark.parametrize("zone", ["Mars/Base", "", 5, "../etc/passwd"])
def test_unknown_zones_are_refused(zone):
    with pytest.raises(InvalidDomainError, match="zone must be"):
        dates("2024", "2025", "year", zone=zone)


@pytest.mark.parametrize(
    "ends", [("2024-01-01", "2024-12"), ("2024", "2024"), ("2024-12", "2024-01"), (1, 2)]
)
def test_the_class_takes_labels_only(ends):
    with pytest.raises(InvalidDomainError, match="dates must"):
        Dates(*ends, "month")


def test_ends_are_written_as_the_cells_they_lie_in():
    assert dates("2024-01", "2024-12", "month") == dates(
        datetime.date(2024, 1, 15), np.datetime64("2024-12-31"), "month"
    )
    assert dates("2024", "2024", "day") == dates("2024-01-01", "2024-12-31")


@pytest.mark.parametrize(
    ("form", "text", "label"),
    [
        ("%b-%Y", "Sept-2024", "2024-09"),
        ("%b-%Y", "MAR-2024", "2024-03"),
        ("%B %Y", "march  2024", "2024-03"),
        ("%d/%m/%y", "5/3/68", "2068-03"),
        ("%d/%m/%y", "5/3/69", "1969-03"),
        ("%m/%d/%Y %I:%M %p", "3/31/2024 12:30 am", "2024-03"),
        ("%m/%d/%Y %I:%M %p", "3/31/2024 12:30 P.M.", "2024-03"),
        ("%d %b %Y %H:%M:%S.%f", "31 Mar 2024 23:59:59.999999999", "2024-03"),
        ("%d %b %Y %H:%M %z", "31 Mar 2024 23:30 +0000", "2024-04"),  # in Paris the 1st of April
        ("%Y%m%d", "20240331", "2024-03"),
    ],
)
def test_formats_read_names_halves_of_days_and_offsets(form, text, label):
    kind = dates("1960", "2070", by="month", formats=[form], zone="Europe/Paris")

    assert label == kind.label(codes(kind, [text])[0])


def test_names_of_months_are_english_whatever_the_locale():
    kind = dates("2024", "2024", by="month", formats=["%b-%Y", "%B-%Y"])
    words = [datetime.date(2024, month, 1).strftime("%B") for month in range(1, 13)]

    assert list(range(12)) == codes(kind, [f"{word}-2024" for word in words])
    for text in ("Mai-2024", "Marchy-2024", "Ma-2024", "13-2024"):
        refused(kind, [text])


def test_a_text_that_two_formats_read_differently_is_refused_and_one_that_one_reads_is_not():
    kind = dates("2024", "2024", formats=["%d/%m/%Y", "%m/%d/%Y"])

    assert [24, 24] == [code - 60 for code in codes(kind, ["25/03/2024", "03/25/2024"])]
    refused(kind, ["03/04/2024"])


@pytest.mark.parametrize(
    "form",
    ["%b", "%H:%M %Y", "%Y-%m-%d %I", "%Y %m %b", "%Y-%m-%d %p", "%Y-%m-%d %z", "%y %Y", "%Y-%m-%d %H %f"],
)
def test_formats_that_tell_too_little_or_twice_are_refused(form):
    with pytest.raises(InvalidDomainError, match="formats must"):
        dates("2024", "2024", formats=[form])


@given(st.integers(-(2**40), 2**40), st.sampled_from(["s", "ms", "us"]))
@example(-1, "s")
@example(253402300799, "s")
@example(-62135596801, "s")
def test_numbers_since_1970_are_read_one_by_one_as_in_arrays(value, unit):
    plain = dates("1900", "2200", by="hour", epoch=unit, clip=True)
    local = dates("1900", "2200", by="hour", epoch=unit, clip=True, zone="UTC")
    found = codes(plain, np.array([value]))

    assert found == codes(plain, [str(value)]) == codes(plain, [value, None][:1]) == codes(local, [value])
    assert found == codes(plain, np.array([float(value)])) == codes(local, np.array([value]))


@pytest.mark.parametrize("epoch", ["seconds", "ns", 1, ""])
def test_what_is_no_unit_since_1970_is_refused(epoch):
    with pytest.raises(InvalidDomainError, match="epoch must be one of s, ms, us"):
        dates("2024", "2024", epoch=epoch)


def test_numbers_without_a_declaration_are_no_dates_and_texts_of_iso_are_beside_them():
    kind = dates("2024-03", "2024-04", by="month", epoch="s")

    assert [0, 1, 0] == codes(kind, np.array([1711839600, "2024-04-01", "1711839600.5"], object))
    refused(dates("2024", "2024"), [1711839600])
    refused(kind, [True])
    refused(kind, np.array([np.nan]))
