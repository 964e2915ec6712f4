"""SQL conditions and statements: what they compile to, and what is refused with which remedy."""

import datetime
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sqlglot")

import onlineic as ic
from onlineic.ask import condition, statement
from onlineic.domain import Domain, binned, categorical, dates, integers, optional
from onlineic.errors import InvalidInputError, InvalidParameterError, InvalidQueryError, MissingExtraError
from onlineic.queries import at_least, below, between, marginal, one_of, span, where
from onlineic.queries.expressions import joint
from support.sql_refusals import COUNT, DOMAIN, REFUSED, WHERE

SMALL = Domain.of(age=range(20, 30), sex=optional(["F", "M"]), vet=[True, False])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age BETWEEN 30 AND 50 AND sex = 'F'", where(age=between(30, 50), sex="F")),
        ("age between 30 and 50\n and sex='F' -- women", where(age=between(30, 50), sex="F")),
        ("30 <= age AND 50 >= age", where(age=between(30, 50))),
        ("age >= 30.5", where(age=between(31, 90))),
        ("age > 17", where(age=between(18, 90))),
        ("age IN (30, 31, 32, 40)", where(age=between(30, 32) | one_of(40))),
        ("age IN (30.0, 200)", where(age=30)),
        ("race <> 'White'", where(race=~one_of("White"))),
        ("race LIKE '_%h%te'", where(race="White")),
        ("NOT (educ = 3)", where(educ=between(1, 2) | between(4, 16))),
        ("educ IS NULL", where(educ=None)),
        ("educ = 3 OR educ IS NULL", where(educ=one_of(3, None))),
        ("hours >= 20 AND hours < 40", where(hours=span(20.0, 40.0))),
        ("hours < 20 OR hours >= 20", where()),
        ("hours < 37 OR hours >= 37", where()),
        ("hours > 100", ~where()),
        ("income <= 9999", where(income=span(0.0, 10000.0))),
        ("income > 9999", where(income=at_least(10000.0))),
        ("income >= 10000 AND income < 50000", where(income=span(10000.0, 50000.0))),
        ("married", where(married=True)),
        ("NOT married", where(married=False)),
        ("married <> TRUE", where(married=False)),
        ("grade = 2.0", where(grade=2)),
        ("TRUE", where()),
        ("age > 3 AND FALSE", ~where()),
        ("sex = 'F' OR age = 30", where(sex="F") | where(age=30)),
        ("NOT (sex = 'F' AND age = 30)", where(sex="M") | where(age=between(17, 29) | between(31, 90))),
        ('"income>50K" = 1', where({"income>50K": 1})),
        ("age = -3", ~where()),
        ("age = age", where()),
        ("educ = educ", where(educ=between(1, 16))),
        ("sex = sex AND race <> race", ~where()),
    ],
)
def test_conditions_are_the_expressions_one_would_write(text, expected):
    found = condition(text, DOMAIN)

    assert found.bind(DOMAIN) == expected.bind(DOMAIN)
    assert len(repr(found)) <= len(repr(expected)) + 8  # and as short: it teaches the Python form


def test_two_columns_compare_by_their_values():
    domain = Domain.of(a=optional(range(2, 5)), b=range(3, 6), c=["x", "y"], d=optional(["y", "z"]))

    less = condition("a < b", domain).bind(domain).weights()
    equal = condition("c = d", domain).bind(domain).weights()
    unequal = condition("NOT c = d", domain).bind(domain).weights()

    assert [[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]] == less[:, :, 0, 0].tolist()
    assert [[0, 0, 0], [1, 0, 0]] == equal[0, 0].tolist()
    assert [[1, 1, 0], [0, 1, 0]] == unequal[0, 0].tolist()


def test_joint_weights_stand_in_the_order_of_their_names():
    values = np.arange(20).reshape(2, 10) / 20
    one, other = joint(["vet", "age"], values), joint(["age", "vet"], values.T)

    assert one.bind(SMALL) == other.bind(SMALL)
    assert (
        np.rint(values.T * 2**20) == (one.bind(SMALL, 20).weights() << 20 - one.bind(SMALL).grid_bits)[:, 0]
    ).all()
    assert "joint('vet', 'age', <2 x 10 weights, " in repr(one)
    with pytest.raises(
        InvalidQueryError, match=r"weights must have shape \(10, 2\), one axis for each of age, vet"
    ):
        joint(["age", "vet"], values).bind(SMALL)
    with pytest.raises(InvalidQueryError, match="list each attribute once, and its weights in"):
        joint(["age", "age"], np.zeros((10, 10))).bind(SMALL)


def test_statements_are_understood():
    found = statement(
        "SELECT race AS r, COUNT(*), AVG(age) AS mean_age, COUNT(educ) FILTER (WHERE sex = 'F') FROM t AS p "
        "WHERE p.age >= 30 GROUP BY race, sex;",
        DOMAIN,
    )

    assert ("race", "sex") == found.keys
    names = ["sex", "r", "COUNT(*)", "mean_age", "COUNT(educ) FILTER(WHERE sex = 'F')"]
    assert names == [name for name, _ in found.columns]
    assert [1, 0, 2, 3, 4] == [place for _, place in found.columns]
    count, average, filtered = found.aggregates
    assert ("count", None, where(age=between(30, 90))) == (count.form, count.column, count.condition)
    assert ("average", "age", where(age=between(30, 90))) == (average.form, average.column, average.condition)
    expected = where(age=between(30, 90), educ=between(1, 16), sex="F")
    assert expected.bind(DOMAIN) == filtered.condition.bind(DOMAIN)


def test_same_names_get_numbers_and_all_records_have_no_condition():
    found = statement("SELECT COUNT(*), COUNT(age), COUNT(1) AS n, COUNT(*) FROM t WHERE age < 200", DOMAIN)

    assert ["COUNT(*)", "COUNT(age)", "n", "COUNT(*) (2)"] == [name for name, _ in found.columns]
    assert [None, None] == [aggregate.condition for aggregate in found.aggregates]  # the same is asked once


def test_parameters_stand_for_values():
    params = {"lo": np.int64(30), "race": "White", "yes": True}

    found = condition("age >= :lo AND race = :race AND married = :yes", DOMAIN, params)

    assert where(age=between(30, 90), race="White", married=True).bind(DOMAIN) == found.bind(DOMAIN)
    for text, given_, told in [
        ("age = :x", {"x": None}, "write age IS NULL"),
        ("age = :x", {"x": [3]}, "parameter :x must be an int, float, str, bool, date or None, got a list"),
        ("age = :x", {"x": 3 + 1j}, "got a complex"),
        ("age = :x", {"x": float("nan")}, "numbers must be finite, got nan"),
        ("age = :x", {"x": 10**5000}, "numbers must be finite, got inf"),
        ("age < :x", {"x": np.longdouble(3.0)}, "got a longdouble"),
        ("age = :x", {"x": "30"}, "got '30'"),
        ("age = :x", {"y": 3}, "parameter :x must have a value; pass params={'x': ...}."),
        ("age = :low", {"lwo": 3}, "did you mean :lwo?"),
        ("age = 3", {"x": 3}, "params must be used in the text, got 'x' unused"),
    ]:
        with pytest.raises(InvalidQueryError) as error:
            condition(text, DOMAIN, given_)
        assert told in str(error.value)
    for params in ([3], 3, {3: 3}):
        with pytest.raises(InvalidParameterError, match="params must"):
            condition("age = 3", DOMAIN, params)


@pytest.mark.parametrize(
    "kind", [np.int8, np.int64, np.uint64, np.float16, np.float32, np.float64, int, float]
)
def test_a_parameter_means_the_same_in_every_type(kind):
    assert condition("age <= :x", DOMAIN, {"x": kind(40)}) == condition("age <= 40", DOMAIN)


@pytest.mark.parametrize(("text", "told", "instead"), REFUSED, ids=[text[:50] for text, *_ in REFUSED])
def test_what_is_outside_the_subset_is_refused_with_a_remedy_that_works(text, told, instead):
    with pytest.raises(InvalidInputError) as error:
        statement(text, DOMAIN)

    assert told in str(error.value)
    assert str(error.value).endswith((".", "?"))
    if instead is not None:
        assert statement(instead, DOMAIN).aggregates


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("age = 3; sex = 'F'", "condition must be "),
        ("age = 3 GROUP BY sex", "condition must be valid SQL"),
        ("age = 3, sex = 'F'", "condition must be valid SQL"),
        ("`age` = 3", 'write names with blanks in double quotes, "tenure months" >= 12'),
        ("age = 3 AS x", "condition must be "),
        ("SELECT COUNT(*) FROM t", "condition must be"),
        ("COUNT(*)", "condition must be true or false, got COUNT(*)"),
        ("t.age = 3", "columns must stand alone in a condition, got t.age; write age."),
        ("", "condition must be valid SQL, got an empty text"),
    ],
)
def test_a_condition_alone_is_one_condition(text, told):
    with pytest.raises(InvalidQueryError) as error:
        condition(text, DOMAIN)

    assert told in str(error.value)


@pytest.mark.parametrize("text", [None, 3, b"age = 3", ["age = 3"], np.str_("age = 3")])
def test_a_text_is_a_text(text):
    with pytest.raises(InvalidQueryError, match="must be a text"):
        condition(text, DOMAIN)
    with pytest.raises(InvalidQueryError, match="must be a text"):
        statement(text, DOMAIN)


def test_other_arguments_are_checked():
    with pytest.raises(
        InvalidParameterError, match=r"dialect must be None or one of .* did you mean postgres"
    ):
        condition("age = 3", DOMAIN, dialect="postgresql")
    with pytest.raises(InvalidParameterError, match="dialect must be"):
        condition("age = 3", DOMAIN, dialect=3)
    with pytest.raises(InvalidParameterError, match="domain must be a Domain"):
        condition("age = 3", {"age": 3})
    for table in (None, 3, ""):
        with pytest.raises(InvalidParameterError, match="table must be the name"):
            statement(COUNT, DOMAIN, table=table)


def test_a_dialect_spells_and_does_not_change_the_meaning():
    assert condition('sex = "F"', DOMAIN, dialect="mysql") == where(sex="F")
    assert condition("`income>50K` = 1", DOMAIN, dialect="bigquery") == where({"income>50K": 1})
    assert condition("[income>50K] = 1", DOMAIN, dialect="tsql") == where({"income>50K": 1})
    with pytest.raises(InvalidQueryError, match="LIKE must take a pattern of plain signs"):
        condition("race LIKE '[WB]%'", DOMAIN, dialect="tsql")


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)

    with pytest.raises(
        MissingExtraError, match=r"sqlglot must be installed .* pip install 'onlineic\[sql\]'"
    ):
        condition("age = 3", DOMAIN)


def test_long_flat_conditions_are_no_deep_ones():
    chain = " OR ".join(f"age = {20 + place % 60}" for place in range(1400))

    assert condition(chain, DOMAIN).bind(DOMAIN) == where(age=between(20, 79)).bind(DOMAIN)


def test_like_is_never_slow():
    domain = Domain.of(text=["a" * 2000, "b"])

    assert condition("text LIKE '" + "%a" * 400 + "%b'", domain) == ~where()


def test_a_condition_is_an_expression_like_others():
    women = condition("sex = 'F'", SMALL)

    assert (women & where(age=below(25))).bind(SMALL) == where(sex="F", age=below(25)).bind(SMALL)
    assert (~women).bind(SMALL).weights()[0].tolist() == [
        [0, 0],
        [1, 1],
        [1, 1],
    ]  # of all others, missing too
    assert condition("NOT sex = 'F'", SMALL).bind(SMALL).weights()[0].tolist() == [[0, 0], [1, 1], [0, 0]]
    assert marginal("age", where=women).bind(SMALL).table(np.arange(20.0)).shape == (10,)


WORDS = st.sampled_from(
    [
        *("SELECT", "COUNT", "(", ")", "*", "FROM", "t", "WHERE", "AND", "OR", "NOT", "age", "sex", "=", "<"),
        *(
            "'F'",
            "30",
            "NULL",
            "IS",
            "IN",
            "BETWEEN",
            "LIKE",
            "'%'",
            ",",
            ";",
            ":x",
            "?",
            "GROUP BY",
            "HAVING",
        ),
        *(
            "CASE",
            "WHEN",
            "THEN",
            "END",
            "1",
            "FILTER",
            "AS",
            "AVG",
            "SUM",
            "-",
            "+",
            '"',
            "'",
            "--",
            "/*",
            "*/",
        ),
        *("EXISTS", "JOIN", "ON", ".", "UNION", "WITH", "race", "TRUE", "[", "]", "{", "}"),
    ]
)


@given(st.lists(WORDS, max_size=25).map(" ".join))
def test_words_in_any_order_are_understood_or_refused_by_name(words):
    for text in (words, f"{COUNT} {words}", f"{WHERE}{words}", f"SELECT {words} FROM t"):
        check_named(text)


@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused_by_name(text):
    for whole in (text, f"{WHERE}{text}", f"{WHERE}race = '{text}'", f'{WHERE}"{text}" = 3'):
        check_named(whole)


def check_named(text):
    for read in (lambda: statement(text, DOMAIN), lambda: condition(text, DOMAIN)):
        told = ""
        try:
            read()
        except InvalidInputError as error:
            told = str(error)
        assert len(told) < 1500


WIDER = Domain.of(
    age=integers(17, 90, clip=True),
    bins=binned([0, 10, 20], clip=True),
    race=optional(categorical(["White", "Black"], other=True)),
    label=["White", "Black"],
    day=optional(dates("2023-01", "2024-06", by="month")),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age >= 90", where(age=90)),
        ("age <= 17", where(age=17)),
        ("age = 30", where(age=30)),
        ("bins < 10", where(bins=below(10))),
        ("race <> 'White'", where(race=one_of("Black", "other"))),
        ("race = 'other'", where(race="other")),
        ("day IS NOT NULL", ~where(day=None)),
    ],
)
def test_cells_that_hold_more_than_their_label_are_counted_whole(text, expected):
    assert condition(text, WIDER).bind(WIDER) == expected.bind(WIDER)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "age > 95",
            "age must be cut above 17 and not beyond 90, whose cells hold what lies outside (clip=True)",
        ),
        ("age = 90", "age must be cut above 17"),
        ("age < 17", "age must be cut above 17"),
        ("bins >= 20", "bins must be cut above 0 and below 20"),
        ("race LIKE 'W%'", "race must hold its labels alone for LIKE"),
        ("race = label", "race and label must hold single values to be compared"),
        ("race = 'Martian'", "race must be one of its 4 values"),
    ],
)
def test_cells_that_hold_more_than_their_label_are_not_split(text, told):
    with pytest.raises(InvalidQueryError) as error:
        condition(text, WIDER)

    assert told in str(error.value)


def test_dates_are_grouped_by():
    assert ("day",) == statement("SELECT day, COUNT(*) FROM t GROUP BY day", WIDER).keys


DAYS = Domain.of(
    day=optional(dates("2024-01-01", "2024-03-31")),
    month=dates("2023-11", "2024-04", by="month"),
    hour=dates("2024-01-01T00", "2024-01-03T23", by="hour"),
    year=dates("2024", "2026", by="year", clip=True),
    local=dates("2024-01-01", "2024-02-01", by="hour", zone="Europe/Paris"),
    label=["2024-01-01", "b"],
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("day >= DATE '2024-02-01'", where(day=between("2024-02-01", "2024-03-31"))),
        ("'2024-02-10' >= day", where(day=between("2024-01-01", "2024-02-10"))),
        ("day = CAST('2024-02-10' AS DATE)", where(day="2024-02-10")),
        ("NOT day <> '2024-02-10'::date", where(day="2024-02-10")),
        ("day BETWEEN '2024-01-05' AND DATE '2024-01-07'", where(day=between("2024-01-05", "2024-01-07"))),
        ("day NOT BETWEEN '2024-01' AND '2024-02'", where(day=between("2024-03-01", "2024-03-31"))),
        ("day IN ('2024-01-05', DATE '2024-01-06')", where(day=between("2024-01-05", "2024-01-06"))),
        ("day < TIMESTAMP '2024-01-05 00:00:00'", where(day=between("2024-01-01", "2024-01-04"))),
        ("day < '2030-01-01'", where(day=between("2024-01-01", "2024-03-31"))),
        ("day > '2030-01-01'", ~where()),
        ("day <= DATE '9999-12-31' AND day >= '0001-01-01'", where(day=between("2024-01-01", "2024-03-31"))),
        ("hour < TIMESTAMP '9999-12-31 23:59:59' AND year > '2024'", where(year=between("2025", "2026"))),
        ("day <= '2024-W05' OR day IS NULL", where(day=between("2024-01-01", "2024-02-04") | one_of(None))),
        ("month = '2024-02'", where(month="2024-02")),
        ("month <= DATE '2024-02-29'", where(month=between("2023-11", "2024-02"))),
        ("month < '2024-02-10' OR month >= '2024-02-10'", where()),
        ("month BETWEEN '2024-02-20' AND '2024-02-10'", ~where()),
        ("hour < '2024-01-02'", where(hour=between("2024-01-01T00", "2024-01-01T23"))),
        ("hour >= TIMESTAMP '2024-01-02 10:00'", where(hour=between("2024-01-02T10", "2024-01-03T23"))),
        ("hour = '2024-01-02T10'", where(hour="2024-01-02T10")),
        ("year < '2025'", where(year="2024")),
        ("year > '2024-12-31'", where(year=between("2025", "2026"))),
        (
            "local < TIMESTAMPTZ '2024-01-02 10:00:00+00:00'",
            where(local=between("2024-01-01T00", "2024-01-02T10")),
        ),
    ],
)
def test_dates_compare_with_dates_texts_and_times(text, expected):
    assert condition(text, DAYS).bind(DAYS) == expected.bind(DAYS)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "month < DATE '2024-02-10'",
            "month must be cut where one month begins, got 2024-02-10; the nearest edges are 2024-02-01 and "
            "2024-03-01, to be asked as month >= '2024-02-01' AND month < '2024-03-01'.",
        ),
        ("month < '2024-W09'", "got 2024-02-26; the nearest edges are 2024-02-01 and 2024-03-01"),
        ("month = DATE '2024-02-01'", "got 2024-02-02; the nearest edges"),
        ("day <= TIMESTAMP '2024-01-05 00:00:00'", "at the instant 2024-01-05; the nearest edges are"),
        ("day < '2024-01-05 10:00'", "got 2024-01-05T10:00:00; the nearest edges are 2024-01-05 and"),
        ("hour <= '2024-01-02'", "the nearest edges are 2024-01-02 and 2024-01-02T01:00:00"),
        ("hour = '2024-01-02T10:00'", "got <=, >, =, <> or BETWEEN at the instant 2024-01-02T10:00:00"),
        ("hour < '2024-01-02 10:00:00.000001'", "got 2024-01-02T10:00:00.000001; the nearest edges"),
        ("hour < '2024-01-02 10:00:00.0000001'", "hour must be compared with a date such as '2024-01-01T00'"),
        ("hour < '2024-01-02T10:00Z'", "without offset, got '2024-01-02T10:00Z'"),
        ("local < TIMESTAMPTZ '2024-01-02 10:00'", "local must be compared with a time of a known zone"),
        ("year <= '2026'", "year must be cut after 2024-01-01 and before 2027-01-01, whose cells hold"),
        ("year < '2024'", "(clip=True), got 2024-01-01; cut inside."),
        ("year <= '9999'", "(clip=True), got a time after 9999; cut inside."),
        ("day < DATE '2024-02-30'", "day must be compared with a date such as '2024-01-01', without offset"),
        ("day < DATE '2024-02'", "DATE must stand before a text such as '2024-03-05', got '2024-02'"),
        ("day < '2024-01-05/2024-01-06'", "day must be compared with a date such as"),
        ("day < 5", "day must be compared with a date, got 5; write e.g. day >= '2024-01-01'."),
        ("day BETWEEN TRUE AND '2024-01-05'", "day must be compared with a date, got TRUE"),
        ("day < NULL", "write day IS NULL"),
        ("day < month", "month must be counted by day to be compared with day, got periods of one month"),
        ("day < TIME '10:00'", "not supported: CAST('10:00' AS TIME)"),
        ("day < CAST(5 AS DATE)", "not supported: CAST(5 AS DATE)"),
        ("CAST(day AS DATE) < '2024-01-05'", "not supported: CAST(day AS DATE)"),
        ("day < DATE('2024-01-01')", "not supported: DATE('2024-01-01')"),
        ("day < TRY_CAST('2024-01-01' AS DATE)", "not supported: TRY_CAST"),
        ("day >= TIMESTAMP(3) '2024-01-01 00:00'", "not supported: TIMESTAMP(3)"),
        ("label = DATE '2024-01-01'", "label must be compared with a text in single quotes, got DATE '2024"),
        ("day LIKE '2024%'", "day must hold texts for LIKE"),
    ],
)
def test_what_cuts_into_a_period_or_is_no_date_is_refused(text, told):
    with pytest.raises(InvalidQueryError) as error:
        condition(text, DAYS)

    assert told in str(error.value)


@pytest.mark.parametrize(
    "value", ["2024-01-05", datetime.date(2024, 1, 5), np.datetime64("2024-01-05"), np.str_("2024-01-05")]
)
def test_dates_are_parameters_too(value):
    assert where(day=between("2024-01-01", "2024-01-05")).bind(DAYS) == condition(
        "day <= :last", DAYS, {"last": value}
    ).bind(DAYS)


def test_dialects_spell_dates_alike():
    expected = where(day=between("2024-01-01", "2024-01-04")).bind(DAYS)
    for dialect in ("postgres", "bigquery", "snowflake", "duckdb", "mysql", "sqlite", "tsql"):
        for text in ("day < DATE '2024-01-05'", "day < DATETIME '2024-01-05 00:00:00'"):
            assert expected == condition(text, DAYS, dialect=dialect).bind(DAYS)


UNENDED = Domain.of(
    pay=optional(binned([-np.inf, 0, 10, 20, np.inf])), sex=["F", "M"], day=dates("2024", "2025")
)


@pytest.mark.parametrize(
    "among",
    [
        "pay >= 0 AND pay < 20",
        "pay >= 0 AND pay < 20 AND (sex = 'F' OR pay < 10)",
        "pay >= 0 AND pay < 10 OR pay >= 10 AND pay < 20 AND sex = 'F'",
    ],
)
def test_bins_without_an_end_are_summed_and_averaged_where_nobody_in_them_counts(among):
    for outer in ("AVG", "SUM"):
        for by in ("", " GROUP BY sex", " GROUP BY pay"):
            (found,) = statement(f"SELECT {outer}(pay) FROM t WHERE {among}{by}", UNENDED).aggregates
            assert "pay" == found.column
    assert statement(f"SELECT AVG(pay) FILTER (WHERE {among}) FROM t", UNENDED).aggregates


@pytest.mark.parametrize(
    ("among", "remedy"),
    [
        ("TRUE", "pay >= 0 AND pay < 20"),
        ("pay >= 0", "pay < 20"),
        ("pay < 0", "pay >= 0"),
        ("pay >= 0 AND pay < 20 OR sex = 'F'", "pay >= 0 AND pay < 20"),
    ],
)
def test_bins_without_an_end_are_refused_where_somebody_in_them_may_count(among, remedy):
    with pytest.raises(InvalidQueryError) as error:
        statement(f"SELECT AVG(pay) FROM t WHERE {among}", UNENDED)

    assert (
        "AVG must be over a column with finite bins, pay has a bin without an end; leave it out by WHERE "
        f"{remedy}, or give the domain a last edge." == str(error.value)
    )


def test_dates_have_no_sum():
    with pytest.raises(InvalidQueryError, match="SUM must be over a column of numbers, day holds dates"):
        statement("SELECT SUM(day) FROM t", UNENDED)


def test_condition_is_at_the_front_door():
    assert ic.condition is condition


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("age BETWEEN SYMMETRIC 40 AND 30", "age BETWEEN 30 AND 40"),
        ("age NOT BETWEEN SYMMETRIC 40 AND 30", "age NOT BETWEEN 30 AND 40"),
        ("age BETWEEN SYMMETRIC educ AND 30", "age BETWEEN educ AND 30 OR age BETWEEN 30 AND educ"),
        ("NOT age BETWEEN SYMMETRIC educ AND 30", "NOT (age BETWEEN educ AND 30 OR age BETWEEN 30 AND educ)"),
        ("hours BETWEEN SYMMETRIC 100 AND -1", "hours BETWEEN -1 AND 100"),
        ("age <=> 30", "age IS NOT DISTINCT FROM 30"),
        ("2 > 1 AND age = 30", "age = 30"),
    ],
)
def test_conditions_that_mean_the_same(text, same):
    few = DOMAIN.project("age", "educ", "hours")
    weights = [condition(each, few).bind(few).weights() for each in (text, same)]

    assert np.array_equal(*weights)


def test_group_by_takes_an_alias_of_a_column_where_no_column_is_called_so():
    found = statement("SELECT sex AS s, COUNT(*) FROM t AS x GROUP BY s", DOMAIN)

    assert (("sex",), (("s", 0), ("COUNT(*)", 1))) == (found.keys, found.columns)
    with pytest.raises(InvalidQueryError, match="column age must be in GROUP BY"):
        statement("SELECT age AS sex, COUNT(*) FROM t GROUP BY sex", DOMAIN)
    with pytest.raises(InvalidQueryError, match=r"must list columns, got the aggregate COUNT"):
        statement("SELECT COUNT(*) AS s FROM t GROUP BY s", DOMAIN)
