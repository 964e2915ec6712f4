"""How columns write numbers: an example declares it, and what it does not read is refused."""

import datetime
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineic.domain import Domain, binned, dates, integers, number, optional
from onlineic.domain.proposals import kind_of, proposals
from onlineic.domain.written import Numerals
from onlineic.errors import InvalidDataError, InvalidDomainError

DAY = datetime.timedelta(days=1)


def codes(kind, column):
    return Domain.of(x=kind).encode({"x": column})[:, 0].tolist()


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        ("1,234.5", "12,345.678", 12345.678),
        ("1,234.5", "1234567", 1234567),
        ("1,234.5", "-1,000", -1000),
        ("1,234.5", "+7", 7),
        ("1.234,5", "1.500", 1500),
        ("1.234,5 €", "1.500,25€", 1500.25),
        ("1.234,5 €", "−3 €", -3),
        ("$1,234.5", "-$1,000.50", -1000.5),
        ("$1,234.5", "$-.5", -0.5),
        ("1 234,5", "12\u202f345,6", 12345.6),
        ("1'234.5", "1'000.25", 1000.25),
        ("1234,5", "3,5", 3.5),
        ("1234.5%", "45 %", 45),
        ("(1,234.5)", "(2,000)", -2000),
        ("1234 kg", " 12  kg ", 12),
        ("USD 1,234.5", "USD 12", 12),
        ("1,234", "9,007,199,254,740,993", 2**53 + 1),
    ],
)
def test_an_example_reads_numbers(form, text, value):
    assert value == Numerals((form,)).number(text)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("1,234.5", "1,23"), ("1,234.5", "12,34,567"), ("1,234.5", "1.234,5"), ("1,234.5", ",234"),
        ("1,234.5", "1,234."), ("1,234", "1,234.5"), ("1234.5", "1,234.5"), ("$1,234.5", "5"),
        ("$1,234.5", "€5"), ("$1,234.5", "-$-5"), ("1234.5%", "45"), ("1234,5", "3.5"), ("1.234,5", "1.5"),
        ("(1,234.5)", "5"), ("(1,234.5)", "(-5)"), ("1234.5", "1e5"), ("1234.5", "1_000"), ("1234.5", "nan"),
        ("1234.5", "٣"), ("1234.5", ""), ("1234.5", "."), ("1234.5", "inf"),
    ],
)  # fmt: skip
def test_what_an_example_does_not_read_stays_a_text(form, text):
    assert text == Numerals((form,)).number(text)


def test_of_several_examples_one_reads_a_text_or_all_read_the_same():
    several = Numerals(("1,234.5", "1234,5"))

    assert 12.5 == several.number("12,5")
    assert 1234.5 == several.number("1,234.5")
    assert "1,234" == several.number("1,234")  # 1234, or 1.234


@given(
    st.decimals(-(10**15), 10**15, places=2), st.sampled_from([(",", "."), (".", ","), (" ", ","), ("", ".")])
)
def test_what_python_writes_is_read(value, apart):
    thousands, decimal = apart
    plain = f"{abs(value):,.2f}".translate({ord(","): thousands, ord("."): decimal})
    form = f"€1{thousands}234{decimal}5"

    assert float(value) == Numerals((form,)).number(f"{'-' * (value < 0)}€{plain}")


@given(st.timedeltas(datetime.timedelta(0), DAY - datetime.timedelta(microseconds=1)))
def test_times_of_day_are_read_whatever_writes_them(passed):
    moment = datetime.datetime(2024, 3, 5) + passed
    for unit, seconds in (("hours", 3600), ("minutes", 60), ("seconds", 1)):
        exact, whole = Numerals(clock=unit), Numerals(clock=unit, floor=True)

        assert passed / datetime.timedelta(seconds=seconds) == exact.number(moment.time())
        assert exact.number(moment.time()) == exact.number(moment.strftime("%H:%M:%S.%f"))
        assert exact.number(passed) == exact.number(moment.strftime("%I:%M:%S.%f %p"))
        assert passed // datetime.timedelta(seconds=seconds) == whole.number(passed)


@pytest.mark.parametrize(
    "text", ["24:00", "7:60", "7", "0:30 pm", "13:00 am", "18:05:60", "18.05", "-1:00", "18:05:28Z", ""]
)
def test_what_is_no_time_of_day_stays_a_text(text):
    assert text == Numerals(clock="hours").number(text)


def test_a_time_with_an_offset_is_none():
    time = datetime.time(8, tzinfo=datetime.UTC)

    assert time == Numerals(clock="hours").number(time)


@pytest.mark.parametrize("form", ["12", "1.5", "$", "1,234,5", "1..234", 5, [None], "1234 5", "1235.5"])
def test_what_is_no_example_is_refused(form):
    for make in (lambda: number(0, 9, written=form), lambda: integers(0, 9, written=form)):
        with pytest.raises(InvalidDomainError, match=r"written must be the number 1234\.5, or 1234, as"):
            make()


@pytest.mark.parametrize("clock", ["hour", 5, "days", ""])
def test_what_is_no_unit_of_a_time_is_refused(clock):
    with pytest.raises(InvalidDomainError, match="clock must be one of hours, minutes, seconds"):
        binned([0, 24], clock=clock)


def test_a_clock_stands_without_an_example():
    with pytest.raises(InvalidDomainError, match="clock must stand without written"):
        number(0, 24, clock="hours", written="1,234.5")


@pytest.mark.parametrize(
    "kind",
    [
        number(0, 9, written=["$1,234.5", "(1,234.5)"]),
        integers(0, 9, written="1.234"),
        optional(binned([0, 12, 24], clock="hours"), ["-"]),
        integers(0, 1439, clock="minutes"),
        dates("2024", "2025", epoch="ms", zone="Europe/Paris"),
        dates("2024", "2025", by="month", formats=["%b-%Y", "%B %d, %y %I:%M %p %z"]),
    ],
)
def test_declarations_come_back_from_a_file_and_are_told(kind):
    domain = Domain.of(x=kind)

    assert domain == Domain.from_json(domain.to_json())
    assert domain.digest() == Domain.from_json(domain.to_json()).digest()
    assert any(word in repr(domain) for word in ("written", "of a time of day", "since 1970"))


def test_a_text_for_a_gap_is_no_number():
    kind = optional(integers(0, 999, written="1,234"), ["999", "-"])

    assert [None, 1, None] == [kind.label(code) for code in kind.read(np.array(["999", "1", "-"], object))]


def test_numbers_stay_numbers_beside_texts():
    kind = integers(0, 2000, written="1,234", round=True)

    assert [1234, 7, 8, 3] == codes(kind, np.array(["1,234", 7, 8.0, 2.6], object))
    with pytest.raises(InvalidDataError, match=r"x must hold numbers, or texts as '1,234'"):
        codes(kind, np.array(["1.234"], object))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["1,234", "12,500"], ["written='1234,5'", "written='1,234'"]),
        (["45%", "3.5%"], ["written='1234.5%'"]),
        (["€1.234,50", "€3"], ["written='€1.234,5'"]),
        (["1 234,5", "2"], ["written='1 234,5'"]),
        (["18:05:28", "7:00"], ["clock='hours'"]),
        (["Jan-2024"], ["formats=['%b-%Y']"]),
        (["03/04/2024", "05/06/2024"], ["formats=['%d/%m/%Y']", "formats=['%m/%d/%Y']"]),
        (["03/04/2024", "25/12/2023"], ["formats=['%d/%m/%Y']"]),
        (["2024-03-05T06:00:42Z"], ["zone='UTC'"]),
        (["1711839600", "1511839600"], ["epoch='s'", ""]),
        (
            ["-$1,000", "($5)"],
            ["written=['$1234,5', '($1234,5)']", "written=['$1,234', '($1,234)']"],
        ),
        (["1.5", "2.25"], [""]),
        (["2024-03-05"], [""]),
        (["abc"], []), (["x17", "x18"], []), (["<=50K", ">50K"], []), (["10+"], []), (["18-24"], []),
        (["50K", "3M"], []), ([], []),
    ],
)  # fmt: skip
def test_forms_are_proposed_that_read_every_text(texts, said):
    ways = proposals(texts)

    assert sorted(said) == sorted(way.said for way in ways)
    for way in ways:
        kind = Domain.from_json(json.dumps({"x": kind_of(way)})).attribute("x")
        plain = way.plain and way.what == "number"  # whose texts a CSV file reads as numbers

        assert len(texts) == len(codes(kind, np.array(way.values if plain else texts, object)))
