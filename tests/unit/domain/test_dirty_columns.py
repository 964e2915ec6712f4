"""Columns as they are: dates of other forms, numbers with a fraction, and values that fit nowhere."""

import datetime

import pytest

import onlineic as ic
from onlineic.errors import InvalidDataError, InvalidDomainError

DAYS = ic.dates("2024-03-01", "2024-03-10", formats=["%d.%m.%Y"])


def codes(kind, *values):
    return ic.Domain.of(x=kind).encode({"x": list(values)})[:, 0].tolist()


def test_dates_are_read_in_the_formats_that_are_declared_and_in_iso():
    assert [4] * 5 == codes(
        DAYS, "05.03.2024", "5.3.2024", "2024-03-05", datetime.date(2024, 3, 5), "05.03.2024"
    )
    assert "%d.%m.%Y" in DAYS.form
    hours = ic.dates("2024-03-05T00", "2024-03-05T23", by="hour", formats=["%d/%m/%Y %H:%M"])
    assert [14] == codes(hours, "05/03/2024 14:00")
    months = ic.dates("2024-01", "2024-12", by="month", formats=["%m/%Y", "%d.%m.%Y"])
    assert [2, 2] == codes(months, "03/2024", "31.03.2024")


@pytest.mark.parametrize("bad", ["32.03.2024", "05.03.24", "2024.03.05", "05.03.2024 ", "05-03-2024", ""])
def test_texts_of_other_forms_are_refused(bad):
    with pytest.raises(InvalidDataError, match="x must hold dates or ISO texts"):
        codes(DAYS, "05.03.2024", bad)
    with pytest.raises(InvalidDataError, match="x must be a date from"):
        codes(DAYS, "11.03.2024")


def test_a_text_that_two_formats_read_otherwise_is_refused():
    either = ic.dates("2024-01-01", "2024-12-31", formats=["%d/%m/%Y", "%m/%d/%Y"])

    assert codes(either, "05/05/2024", "13/05/2024") == codes(either, "2024-05-05", "2024-05-13")
    with pytest.raises(InvalidDataError):
        codes(either, "05/03/2024")


@pytest.mark.parametrize(
    "formats", ["%d.%m.%Y", ["%d.%m.%j"], ["%d.%Y"], ["%Y-%m-%d"], [""], [7], ["%d.%d.%Y"], None, ["%"]]
)
def test_formats_that_cannot_be_are_refused(formats):
    with pytest.raises(InvalidDomainError, match="formats must"):
        ic.dates("2024-03-01", "2024-03-10", formats=formats)


def test_numbers_are_rounded_where_that_is_declared():
    ages = ic.integers(17, 90, round=True)

    assert [42, 43, 43, 0, 44] == codes(ages, 59.4, 59.5 + 0.1, 60, 17.2, 60.5 + 0.1)
    assert [42, 44] == codes(ic.integers(17, 90, round=True), 58.5 + 0.5, 60.5 + 0.6)
    assert [0, 2] == codes(ic.integers(0, 9, round=True), 0.5, 1.5)  # halves to the even one
    assert [73] == codes(ic.integers(17, 90, clip=True, round=True), 1e300)
    with pytest.raises(InvalidDataError, match="x must be a whole number from 17 to 90"):
        codes(ages, 16.4)
    with pytest.raises(InvalidDataError, match="x must hold numbers"):
        codes(ages, "59.5")
    with pytest.raises(InvalidDataError, match="x must hold whole numbers"):
        codes(ic.integers(17, 90), 59.5)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (range(3), [0, 7, "x", None, 1.5], [0, 3, 3, 3, 3]),
        (range(3), [0, 7, 2], [0, 3, 2]),
        (["F", "M"], ["M", "X", 3, None], [1, 2, 2, 2]),
        (ic.binned([0, 1, 2]), [0.5, 5.0, -1.0], [0, 2, 2]),
        (ic.binned([0, 1, 2]), [1, 5, 0], [1, 2, 0]),
        (ic.binned([0, 1, 2]), [1, "x", None], [1, 2, 2]),
        (DAYS, ["05.03.2024", "soon", "2025-01-01", 7], [4, 10, 10, 10]),
        (ic.number(0, 2, bins=2), [0, "x", None], [0, 4, 4]),
    ],
)
def test_values_that_fit_nowhere_count_as_missing_where_that_is_declared(kind, values, expected):
    assert expected == codes(ic.optional(kind, others="missing"), *values)
    with pytest.raises(InvalidDataError):
        codes(ic.optional(kind), *values)


def test_others_must_be_one_of_two():
    with pytest.raises(InvalidDomainError, match="others must be 'refused' or 'missing'"):
        ic.optional(range(3), others=True)
    with pytest.raises(InvalidDomainError, match="others must have a cell"):
        ic.Domain(("x",), (ic.domain.IntegerRange(0, 3, others=True),))


def test_domain_files_keep_all_of_it_and_csv_files_are_read_by_it(tmp_path):
    domain = ic.Domain.of(
        day=ic.optional(DAYS, others="missing"), age=ic.integers(17, 90, round=True), cost=ic.number(0, 9)
    )
    assert domain == ic.Domain.from_json(domain.to_json())
    assert "as all others" in repr(domain)
    path = tmp_path / "rows.csv"
    path.write_text("day,age,cost\n05.03.2024,59.5,1\n2024-03-05,60,2.5\nsoon,60,3\n")
    data = ic.PrivateData.from_csv(path, domain)

    shares = ic.evaluate.exact_marginal(data, "day")
    assert (pytest.approx(2 / 3), pytest.approx(1 / 3)) == (shares[4], shares[-1])
    assert pytest.approx(1) == ic.evaluate.exact_marginal(data, "age")[43]
    with pytest.raises(InvalidDomainError):
        ic.Domain.from_json('{"x": {"range": [0, 3], "others": "kept"}}')
    with pytest.raises(InvalidDomainError):
        ic.Domain.from_json('{"x": {"range": [0, 3], "round": 1}}')
    with pytest.raises(InvalidDomainError):
        ic.Domain.from_json('{"x": {"dates": ["2024", "2025"], "by": "year", "formats": "%Y"}}')
