"""Values that do not match by themselves: clipping, a cell for others, synonyms, texts for missing values."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.domain import Domain, binned, categorical, dates, integers, optional
from onlineic.errors import InvalidDataError, InvalidDomainError, InvalidQueryError, PrivateLabelsWarning
from onlineic.queries import where

INF = float("inf")


def codes(kind, values):
    return Domain.of(a=kind).encode({"a": values})[:, 0].tolist()


def refused(kind, values):
    with pytest.raises(InvalidDataError) as caught:
        codes(kind, values)
    return str(caught.value)


def test_clipped_integers_count_at_the_ends():
    kind = integers(17, 90, clip=True)
    for column in (
        [3, 17, 90, 104],
        [3.0, 17.0, 90.0, 1e300],
        np.array([-5, 17, 90, 2**62]),
        [-INF, 17, 90, INF],
    ):
        assert [0, 0, 73, 73] == codes(kind, column)
    assert [73] == codes(kind, np.array([2**64 - 1], np.uint64))
    assert [74, 0] == codes(optional(kind), [None, 16])
    for wrong in ([95.5], ["95"], [True]):
        assert "whole numbers" in refused(kind, wrong)


def test_clipped_bins_count_at_the_ends_and_infinite_numbers_with_them():
    kind = optional(binned([0, 10, 20], clip=True))

    assert [0, 0, 1, 1, 1, 2] == codes(kind, [-INF, -1, 10, 20, INF, None])
    assert [1] == codes(kind, [10**400])
    assert "numbers" in refused(kind, ["15"])


def test_infinite_numbers_are_in_no_bin_with_finite_edges():
    for column in ([INF], np.array([INF]), [-INF], [10**400]):
        assert "a number in [0, 20)" in refused(binned([0, 10, 20]), column)
    assert [1, 1] == codes(binned([0, 10, INF]), [INF, 10**400])


def test_a_cell_for_other_labels_takes_every_value_of_their_type():
    kind = optional(categorical(["a", "b"], other=True))

    assert [0, 2, 2, 3] == codes(kind, ["a", "zzz", "other", None])
    assert (4, "other", 2) == (kind.size, kind.label(2), kind.code("x", "other"))
    assert "texts" in refused(kind, [5])
    assert [0, 2] == codes(categorical([1, 2], other="else"), [1.0, 9])
    assert "else" == categorical([1, 2], other="else").label(2)


def test_synonyms_stand_for_labels_in_tables_and_questions():
    kind = categorical(["F", "M"], synonyms={"male": "M", 2: "F", True: "M"}, other=True)

    assert [1, 0, 1, 2] == codes(kind, ["male", 2, True, "Male"])
    assert "texts" in refused(kind, [1])
    assert str(where(a="male").bind(Domain.of(a=kind))) == str(where(a="M").bind(Domain.of(a=kind)))
    assert [0, 1] == codes(categorical([True, False], synonyms={"yes": True, "no": False}), ["yes", "no"])
    assert [2] == codes(categorical(["x", "y"], other="rest", synonyms={"-": "rest"}), ["-"])


def test_texts_stand_for_missing_values_in_every_kind():
    for kind, value in [
        (["a"], "a"),
        (range(3), 0),
        (binned([0, 1]), 0.0),
        (dates("2024", "2024", "year"), "2024"),
    ]:
        marked = optional(kind, {"?", "NA", ""})
        last = Domain.of(a=marked).size - 1

        assert [0, last, last, last, last] == codes(marked, [value, "?", "NA", "", None])
        refused(marked, [value, "N/A"])
        refused(optional(kind), [value, "?"])
    assert [0, 1] == codes(optional(["a"], ["?"]), np.array(["a", "?"]))
    assert ("?",) == optional(["a"], "?").markers


@pytest.mark.parametrize(
    "build",
    [
        lambda: categorical(["a"], other="a"),
        lambda: categorical(["a"], other=3),
        lambda: categorical(["a"], synonyms={"b": "c"}),
        lambda: categorical(["a", "b"], synonyms={"a": "b"}),
        lambda: categorical(["a"], synonyms={("x",): "a"}),
        lambda: categorical([True, False], synonyms={"yes": 1}),
        lambda: categorical(["a"], synonyms=["b"]),
        lambda: categorical(["a"], other="x", synonyms={"x": "a"}),
        lambda: categorical("abc"),
        lambda: categorical({"a"}),
        lambda: categorical(5),
        lambda: optional(["a", "?"], ["?"]),
        lambda: optional(categorical(["a"], synonyms={"?": "a"}), ["?"]),
        lambda: optional(["a"], 5),
        lambda: optional(["a"], [None]),
        lambda: optional(["a"], ["x", 5]),
        lambda: integers(1.0, 5),
        lambda: integers(5, 1),
        lambda: integers("1", "5"),
        lambda: integers(True, 5),
    ],
)
def test_kinds_that_cannot_be_are_refused(build):
    with pytest.raises(InvalidDomainError, match="must"):
        build()


def test_two_integers_that_may_be_ends_or_labels_are_refused_with_both_readings():
    with pytest.raises(InvalidDomainError, match=r"write range\(17, 91\) .* or \[17, 90\]"):
        Domain.of(age=(17, 90))
    with pytest.raises(
        InvalidDomainError, match=r'write \{"range": \[17, 90\]\} or \{"labels": \[17, 90\]\}'
    ):
        Domain.from_json('{"age": [17, 90]}')

    assert 2 == Domain.of(age=[17, 90]).size
    assert Domain.of(a=[0, 1]) == Domain.from_json('{"a": [0, 1]}')
    assert 2 == Domain.from_json('{"age": {"labels": [17, 90]}}').size


def test_unseen_labels_get_a_hint_of_what_is_near():
    with pytest.raises(InvalidQueryError, match="did you mean 'North'"):
        where(a="Nort").bind(Domain.of(a=["North", "South"]))


def test_a_missing_column_names_the_nearest():
    with pytest.raises(InvalidDataError, match="got none for income; did you mean 'Income '"):
        Domain.of(income=3).encode({"Income ": [1], "age": [2]})


def test_a_domain_is_shown_a_line_an_attribute():
    domain = Domain.of(
        age=integers(17, 90, clip=True),
        sex=optional(categorical(["F", "M"], other=True)),
        w=binned([0, 0.5, INF]),
        joined=dates("2020-01", "2024-12", by="month"),
        code=[f"a long label number {i}\n" for i in range(9)],
    )

    assert [
        "Domain of 319,680 cells",
        "  age     74  integers 17 to 90, clipped",
        "  sex      4  F, M, other: other, or missing",
        "  w        2  numbers cut at 0, 0.5, inf",
        "  joined  60  dates 2020-01 to 2024-12 by month",
        "  code     9  a long label number 0 , a long label number 1 , a long l ...",
    ] == repr(domain).splitlines()


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"range": [1, 2], "clip": 1}}',
        '{"a": {"range": [1, 2], "other": true}}',
        '{"a": {"labels": ["x"], "clip": true}}',
        '{"a": {"labels": ["x"], "other": 5}}',
        '{"a": {"labels": ["x"], "synonyms": {"y": "z"}}}',
        '{"a": {"labels": ["x"], "synonyms": 5}}',
        '{"a": {"labels": ["x"], "synonyms": [["a", "x", "y"]]}}',
        '{"a": {"labels": ["x"], "missing": ["x"]}}',
        '{"a": {"labels": ["x"], "missing": [1]}}',
        '{"a": {"labels": ["x"], "missing": "?"}}',
        '{"a": {"dates": ["2024"], "by": "year"}}',
        '{"a": {"dates": [2024, 2025], "by": "year"}}',
        '{"a": {"dates": ["2024", "2025"], "by": 5}}',
        '{"a": {"dates": ["2024", "2025"], "by": "year", "zone": 5}}',
        '{"a": {"dates": ["2024", "2025"], "integer": true}}',
        '{"a": {"labels": "xy"}}',
    ],
)
def test_bad_json_is_refused(text):
    with pytest.raises(InvalidDomainError, match="must"):
        Domain.from_json(text)


def test_a_domain_read_from_rows_warns():
    text = '{"a": {"labels": ["x"], "NOT PRIVATE": "labels were read from the private table"}, "b": 2}'
    with pytest.warns(PrivateLabelsWarning, match="labels of a that were read from the private table"):
        assert Domain.of(a=["x"], b=2) == Domain.from_json(text)


@pytest.mark.parametrize(
    ("condition", "remedy"),
    [
        ({"t": 38.0}, "write e.g. span(38, 38.5)."),
        ({"t": 99}, "write e.g. span(34, 34.5)."),
        ({"b": 12}, "write e.g. span(10, 20)."),
        ({"t": ic.between(37, 38)}, "write span(37, 38)."),
        ({"b": ic.between(0, 10)}, "write span(0, 10), or declare integer=True for whole numbers."),
    ],
)
def test_the_bin_of_a_single_number_is_what_a_refusal_suggests(condition, remedy):
    domain = ic.Domain.of(t=ic.number(34, 42, bins=16), b=ic.binned([0, 10, 20]))
    with pytest.raises(InvalidQueryError) as refused:
        ic.where(condition).bind(domain)

    assert str(refused.value).endswith(f"; {remedy}")


def test_statements_about_real_numbers_are_not_told_to_declare_whole_ones():
    pytest.importorskip("sqlglot")
    domain = ic.Domain.of(t=ic.number(34, 42, bins=16))
    with pytest.raises(InvalidQueryError, match=r"the edges beside it are 37 and 37\.5\.$"):
        ic.condition("t > 37", domain)
