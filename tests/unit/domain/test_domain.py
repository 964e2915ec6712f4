"""Domains: kinds, codes, JSON, fingerprints, and the encoding rules that hold at loading."""

import copy
import datetime
import decimal
import pickle

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineic.domain import (
    Binned,
    Categorical,
    Domain,
    IntegerRange,
    binned,
    categorical,
    dates,
    integers,
    optional,
)
from onlineic.errors import InvalidDataError, InvalidDomainError, InvalidQueryError
from support.names import lasting

INF, NAN = float("inf"), float("nan")


class Missing:
    """Stands for pandas.NA, which cannot be compared."""

    def __eq__(self, other):
        raise TypeError("boolean value of NA is ambiguous")

    def __hash__(self):
        return 7


NAType = type("NAType", (Missing,), {})
NaTType = type("NaTType", (Missing,), {})


def codes(kind, values):
    return Domain.of(a=kind).encode({"a": values})[:, 0].tolist()


def refusal(kind, values):
    with pytest.raises(InvalidDataError) as caught:
        codes(kind, values)
    return str(caught.value)


# ---------------------------------------------------------------- building


def test_short_forms_give_sizes_in_order():
    domain = Domain.of(
        age=range(17, 91),
        educ=16,
        sex=["F", "M"],
        smoker=optional([True, False]),
        income=optional(binned([0, 20, 35, 50])),
    )

    assert ("age", "educ", "sex", "smoker", "income") == domain.names
    assert (74, 16, 2, 3, 4) == domain.shape
    assert 74 * 16 * 2 * 3 * 4 == domain.size


def test_names_that_are_no_identifiers_go_into_the_mapping():
    assert ("income>50K", "class") == Domain.of({"income>50K": 2, "class": 3}).names


def test_numpy_sizes_and_labels_equal_plain_ones():
    assert Domain.of(a=np.int64(5), b=np.array(["x", "y"])) == Domain.of(a=5, b=["x", "y"])


def test_size_is_an_exact_product_however_large():
    domain = Domain.of({f"a{i}": 2**40 for i in range(5)})

    assert 2**200 == domain.size


@pytest.mark.parametrize(
    "kind",
    [
        0,
        -1,
        True,
        2.5,
        None,
        "FM",
        b"FM",
        [],
        range(5, 5),
        range(0, 10, 2),
        range(9, 0, -1),
        range(2**63, 2**63 + 5),
        ["a", 1],
        [1, True],
        [1.0, 2.0],
        [None, "a"],
        ["a", "a"],
        [["a"], ["b"]],
        {"a"},
        {"a": 1},
        frozenset({1}),
        object(),
    ],
    ids=lasting,
)
def test_unreadable_kind_is_refused(kind):
    with pytest.raises(InvalidDomainError, match="must"):
        Domain.of(a=kind)


@pytest.mark.parametrize(
    "edges",
    [[], [1], [1, 1], [2, 1], [0, NAN, 2], [0, INF, INF], [0, "1"], "012", 5, None, [0, True], [0, 1j]],
    ids=lasting,
)
def test_edges_must_strictly_increase(edges):
    with pytest.raises(InvalidDomainError, match="edges must be"):
        binned(edges)


def test_edges_of_whole_numbers_must_be_whole():
    with pytest.raises(InvalidDomainError, match="whole"):
        binned([0, 2.5, 5], integer=True)


def test_edges_may_end_in_infinity():
    assert 3 == binned([-INF, 0, 1, INF], integer=True).size


@pytest.mark.parametrize(
    "build",
    [
        lambda: Domain.of(),
        lambda: Domain.of([("a", 2)]),
        lambda: Domain.of({"a": 2}, a=3),
        lambda: Domain.of({"": 2}),
        lambda: Domain.of({1: 2}),
        lambda: Domain(("a", "a"), (IntegerRange(0, 2), IntegerRange(0, 2))),
        lambda: Domain(("a",), ()),
        lambda: Domain(("a",), (5,)),
        lambda: IntegerRange(0, 2.5),
        lambda: Domain.of(a=10**5000),
        lambda: IntegerRange(False, True),
        lambda: Categorical(()),
    ],
)
def test_malformed_domain_is_refused(build):
    with pytest.raises(InvalidDomainError, match="must"):
        build()


def test_labels_true_and_one_are_different_domains():
    truths, numbers = Domain.of(a=[True, False]), Domain.of(a=[1, 0])

    assert truths != numbers
    assert truths.digest() != numbers.digest()


def test_domain_is_frozen_hashable_and_survives_pickle_and_copy():
    domain = Domain.of(age=range(17, 91), sex=optional(["F", "M"]), w=binned([-0.0, 1]))

    assert hash(domain) == hash(Domain.of(age=range(17, 91), sex=optional(["F", "M"]), w=binned([0, 1])))
    assert domain == pickle.loads(pickle.dumps(domain))
    assert domain.size == copy.deepcopy(domain).size
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        domain.names = ()


def test_project_keeps_domain_order_and_kinds():
    domain = Domain.of(a=2, b=3, c=["x"])

    assert Domain.of(a=2, c=["x"]) == domain.project("c", "a", "c")
    with pytest.raises(InvalidQueryError, match="did you mean 'a'"):
        domain.project("aa")
    with pytest.raises(InvalidDomainError, match="one or more"):
        domain.project()


def test_attribute_names_are_looked_up_with_a_hint():
    domain = Domain.of(age=2, sex=2)

    assert 1 == domain.axis("sex")
    assert IntegerRange(0, 2) == domain.attribute("age")
    with pytest.raises(InvalidQueryError, match="got 'agee'; did you mean 'age'"):
        domain.axis("agee")
    with pytest.raises(InvalidQueryError, match="got 'zzz'; it has"):
        domain.axis("zzz")
    with pytest.raises(InvalidQueryError):
        domain.axis(["age"])


# ---------------------------------------------------------------- JSON and digests


def kinds():
    number = st.integers(-50, 50)
    label = st.one_of(
        st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True),
        st.lists(number, min_size=1, max_size=4, unique=True),
        st.permutations([True, False]),
    )
    edges = st.lists(st.floats(allow_nan=False), min_size=2, max_size=5, unique=True).map(sorted)
    kind = st.one_of(
        label.map(lambda labels: Categorical(tuple(labels))),
        st.builds(labelled, label, st.booleans(), st.sets(st.sampled_from([0.5, "male", "f", 777]))),
        st.builds(
            lambda low, size, clip: integers(low, low + size, clip=clip),
            number,
            number.map(abs),
            st.booleans(),
        ),
        st.builds(lambda low, size: binned([low, low + size], clip=True), number, st.integers(1, 9)),
        st.builds(dated, st.dates(MIN, MAX), st.integers(0, 60), st.sampled_from(UNITS), st.booleans()),
        st.integers(1, 9),
        st.builds(lambda low, size: range(low, low + size), number, st.integers(1, 9)),
        edges.map(binned),
        st.lists(number, min_size=2, max_size=5, unique=True).map(lambda e: binned(sorted(e), integer=True)),
    )
    return kind | kind.map(optional) | kind.map(lambda of: optional(of, ["?missing", "NA-missing"]))


MIN, MAX = datetime.date(1000, 1, 1), datetime.date(9998, 10, 1)
UNITS = ["year", "quarter", "month", "week", "day", "hour"]


def labelled(labels, other, words):
    """A kind with synonyms that lead to its labels."""
    return categorical(
        labels, other="other-cell" if other else False, synonyms=dict.fromkeys(words, labels[0])
    )


def dated(first, days, by, clip):
    return dates(
        first, first + datetime.timedelta(days), by, clip=clip, zone="Europe/Paris" if clip else None
    )


@given(st.dictionaries(st.text(min_size=1, max_size=5), kinds(), min_size=1, max_size=4))
def test_json_round_trip_gives_an_equal_domain_with_the_same_digest(given_kinds):
    domain = Domain.of(given_kinds)
    read = Domain.from_json(domain.to_json())

    assert domain == read
    assert domain.digest() == read.digest()
    assert hash(domain) == hash(read)


def test_json_short_forms():
    text = (
        '{"age": {"range": [17, 90]}, "educ": 16, "sex": ["F", "M"], "s": {"labels": [1, 2], "missing": true}'
    )
    text += ', "w": {"edges": ["-inf", 0, 1.5, "inf"]}, "h": {"edges": [0, 5], "integer": true}}'
    expected = Domain.of(
        age=range(17, 91),
        educ=16,
        sex=["F", "M"],
        s=optional([1, 2]),
        w=binned([-INF, 0, 1.5, INF]),
        h=binned([0, 5], integer=True),
    )

    assert expected == Domain.from_json(text)
    assert "Infinity" not in expected.to_json()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "5",
        "{}",
        '{"a": null}',
        '{"a": true}',
        '{"a": 0}',
        '{"a": 2.0}',
        '{"a": "F"}',
        '{"a": [null]}',
        '{"a": {}}',
        '{"a": {"range": [1, 2], "labels": [1]}}',
        '{"a": {"range": [1]}}',
        '{"a": {"range": [2, 1]}}',
        '{"a": {"range": [1, 2.5]}}',
        '{"a": {"range": "12"}}',
        '{"a": {"range": [1, 2], "integer": true}}',
        '{"a": {"labels": ["x"], "missing": "false"}}',
        '{"a": {"edges": [0, 1], "integer": 1}}',
        '{"a": {"edges": [0, "1"]}}',
        '{"a": {"edges": [0, [1]]}}',
        '{"a": {"edges": [NaN, 1]}}',
        '{"a": {"labels": ["x"], "closed": "left"}}',
        '{"a": 2, "a": 3}',
        '{"a": {"range": [0, ' + "9" * 5000 + "]}}",
        '{"a": ' + "[" * 100_000,
    ],
)
def test_bad_json_is_refused(text):
    with pytest.raises(InvalidDomainError):
        Domain.from_json(text)


def test_digest_tells_names_order_kinds_and_missing_cells_apart():
    domains = [
        Domain.of(a=2, b=3),
        Domain.of(b=3, a=2),
        Domain.of(a=2, c=3),
        Domain.of(a=optional(1), b=3),
        Domain.of(a=["0", "1"], b=3),
        Domain.of(a=[0, 1], b=3),
        Domain.of(a=binned([0, 1, 2]), b=3),
        Domain.of(a=binned([0, 1, 2], integer=True), b=3),
        Domain.of(a=binned([0, 1, 2], clip=True), b=3),
        Domain.of(a=integers(0, 1, clip=True), b=3),
        Domain.of(a=categorical([0, 1], other=True), b=3),
        Domain.of(a=categorical([0, 1], synonyms={2: 1}), b=3),
        Domain.of(a=categorical([0, 1], synonyms={"2": 1}), b=3),
        Domain.of(a=optional(1, ["?"]), b=3),
        Domain.of(a=dates("2023", "2024", "year"), b=3),
        Domain.of(a=dates("2023-01-01", "2024-12-31", "year", zone="UTC"), b=3),
    ]

    assert len(domains) == len({domain.digest() for domain in domains})
    assert "\ud800" not in Domain.of(a=["\ud800"]).digest()


# ---------------------------------------------------------------- codes and labels


@given(kinds())
def test_label_and_code_are_inverse(kind):
    attribute = Domain.of(a=kind).attributes[0]

    assert list(range(attribute.size)) == [
        attribute.code("a", attribute.label(code)) for code in range(attribute.size)
    ]


def test_bins_that_differ_in_the_seventh_digit_have_different_labels():
    kind = binned([1_000_000, 1_000_001, 1_000_002])

    assert kind.label(0) != kind.label(1)
    assert 1 == kind.code("w", kind.label(1))


def test_missing_cell_is_last():
    assert [1, 2, 0] == codes(optional(["a", "b"]), ["b", None, "a"])
    assert [3, 0] == codes(optional(range(5, 8)), [None, 5])
    assert [2, 0] == codes(optional(binned([0, 1, 2])), [NAN, 0.5])


# ---------------------------------------------------------------- encoding rules and traps


@pytest.mark.parametrize("value", [True, "1", decimal.Decimal("1.5"), 1.5, b"1", None, NAN, 1 + 0j, [1]])
@pytest.mark.parametrize("kind", [[0, 1], range(2), binned([0, 1, 2])], ids=["labels", "range", "binned"])
def test_lookup_is_strict_about_types(kind, value):
    """{1: 0}.get(True) hits, and numpy reads "1" as a number."""
    if value == 1.5 and isinstance(kind, Binned):
        assert [1] == codes(kind, [value])
        return
    refusal(kind, [value])
    refusal(kind, [1, value])
    column = np.empty(2, dtype=object)
    column[:] = [0, value]
    refusal(kind, column)


@pytest.mark.parametrize("kind", [[0, 1], range(2), binned([0, 1, 2])], ids=["labels", "range", "binned"])
def test_decimals_are_numbers_whole_ones_exactly(kind):
    """Databases give whole numbers as decimals; NUMBER of Oracle has no other form."""
    assert [1, 0, 1] == codes(kind, [decimal.Decimal("1.00"), decimal.Decimal(0), 1])
    assert [2, 1] == codes(optional(kind), [decimal.Decimal("NaN"), decimal.Decimal(1)])
    refusal(kind, [decimal.Decimal(2)])
    refusal(kind, [decimal.Decimal("-Infinity")])
    refusal(kind, [decimal.Decimal("1e999999999")])


def test_decimals_between_edges_are_read_as_the_text_of_a_file_is():
    assert [0, 1] == codes(binned([0, 0.1, 1]), [decimal.Decimal("0.09"), decimal.Decimal("0.1")])
    assert [1] == codes([2**53, 2**53 + 1], [decimal.Decimal(2**53 + 1)])


@pytest.mark.parametrize(
    "column", [np.array([True, False]), np.array(["0", "1"]), np.array([b"0"]), np.array([0j, 1j])], ids=str
)
@pytest.mark.parametrize("kind", [[0, 1], range(2), binned([0, 1, 2])], ids=["labels", "range", "binned"])
def test_whole_columns_of_another_type_are_refused(kind, column):
    refusal(kind, column)


def test_texts_match_exactly():
    for wrong in ("f", " F", "F ", "F\x00", ""):
        refusal(["F", "M"], ["F", wrong])
    refusal([True, False], [1, 0])
    refusal([True, False], np.array([1, 0]))

    assert [1, 0] == codes([True, False], np.array([False, True]))
    assert [1, 0] == codes(["F", "M"], np.array(["M", "F"]))
    assert [0, 1] == codes(["F", "F\x00"], ["F", "F\x00"])


def test_whole_floats_are_integers_as_pandas_stores_them_beside_a_gap():
    column = np.array([17.0, NAN, 90.0])

    assert [0, 74, 73] == codes(optional(range(17, 91)), column)
    assert [0, 2, 1] == codes(optional([17, 90]), column)
    assert "got missing values; declare it optional" in refusal(range(17, 91), column)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64, np.int64, np.float32])
def test_narrow_codes_are_widened(dtype):
    """int8 * 3 stays int8: 120 * 3 = 104."""
    domain = Domain.of(a=range(100, 125), b=200)
    encoded = domain.encode({"a": np.array([120], dtype), "b": np.array([120], dtype)})

    assert np.int64 == encoded.dtype
    assert [[20, 120]] == encoded.tolist()


def test_codes_of_minus_one_are_refused_and_never_the_last_cell():
    refusal(range(5), np.array([0, -1], np.int8))
    refusal(5, [-1])
    refusal(range(5), np.array([2**64 - 1], np.uint64))
    refusal(range(-5, 5), np.array([2**64 - 1], np.uint64))


@pytest.mark.parametrize(
    "gap", [None, NAN, np.float32("nan"), np.datetime64("NaT", "s"), NAType(), NaTType()], ids=lasting
)
@pytest.mark.parametrize(
    "kind", [["a", "b"], range(5), binned([0, 1, INF])], ids=["labels", "range", "binned"]
)
def test_every_kind_of_gap_goes_to_the_missing_cell_or_is_refused(kind, gap):
    """NaN sorts above the last edge: it must not land in the last bin."""
    present = "a" if kind == ["a", "b"] else 0
    column = np.empty(3, dtype=object)
    column[:] = [present, gap, gap]
    last = Domain.of(a=optional(kind)).size - 1

    assert [0, last, last] == codes(optional(kind), column)
    assert "got missing values; declare it optional" in refusal(kind, column)


def test_masked_entries_are_missing():
    masked = np.ma.masked_array([0, 1, 2], mask=[False, True, False])

    assert [0, 3, 2] == codes(optional(3), masked)
    assert [0, 2, 1] == codes(optional(binned([0, 1.5, 3])), np.ma.masked_array([0.5, 9.0, 2.0], [0, 1, 0]))
    assert [2] == codes(optional(["a", "?"]), np.ma.masked_array(["a"], mask=[True]))
    refusal(3, masked)


def test_bins_are_closed_on_the_left():
    """numpy.histogram closes its last bin, so it is no oracle."""
    kind = binned([0, 20, 35, 50])

    assert [0, 0, 1, 2, 2] == codes(kind, [0, 19.999, 20, 35, np.nextafter(50, 0)])
    for outside in (50, -1e-300, INF, -INF):
        refusal(kind, [outside, 1])


def test_infinite_values_belong_to_infinite_bins():
    assert [0, 2, 1] == codes(binned([-INF, 0, 1, INF]), [-INF, INF, 0.0])


def test_bins_of_whole_numbers_refuse_fractions():
    kind = binned([0, 10, 20], integer=True)

    assert [0, 1] == codes(kind, [9, 10.0])
    refusal(kind, [9.5])


@given(st.data())
def test_bins_agree_with_their_definition(data):
    edges = data.draw(st.lists(st.floats(-9, 9), min_size=2, max_size=6, unique=True).map(sorted))
    values = data.draw(st.lists(st.floats(edges[0], edges[-1], exclude_max=True), min_size=1, max_size=6))
    expected = [
        next(code for code in range(len(edges) - 1) if edges[code] <= value < edges[code + 1])
        for value in values
    ]

    assert expected == codes(binned(edges), values)


def test_large_integers_do_not_lose_digits():
    top = 2**62

    assert [0, 7] == codes(range(top - 8, top), [top - 8, top - 1])
    assert [0, 7] == codes(range(top - 8, top), np.array([top - 8, top - 1]))
    refusal(range(top - 8, top), [top])
    refusal(range(5), [10**400])
    refusal(range(5), [10**5000])
    refusal(binned([0, 1]), [10**400, None])


def test_a_generator_is_read_once():
    assert [0, 1, 1] == codes(["a", "b"], (label for label in "abb"))


@pytest.mark.parametrize(
    "column",
    [
        "FM",
        b"FM",
        {"F": 1},
        {"F", "M"},
        5,
        None,
        np.array("F"),
        np.array([["F"], ["M"]]),
        [["F"], ["M", "F"]],
    ],
    ids=lasting,
)
def test_what_is_no_column_is_refused(column):
    refusal(["F", "M"], column)


@pytest.mark.parametrize("records", [np.zeros((3, 1)), [("F",)], 5, None, "a"], ids=repr)
def test_what_is_no_table_is_refused(records):
    with pytest.raises(InvalidDataError, match="must"):
        Domain.of(a=2).encode(records)


def test_columns_must_be_there_and_of_equal_length():
    domain = Domain.of(a=2, b=2)
    with pytest.raises(InvalidDataError, match="got none for b"):
        domain.encode({"a": [0], "c": [1]})
    with pytest.raises(InvalidDataError, match="equal lengths"):
        domain.encode({"a": [0], "b": [1, 1]})

    assert [[1, 0]] == domain.encode({"b": [0], "extra": ["x"], "a": [1]}).tolist()


def test_structured_arrays_and_records_are_tables():
    domain = Domain.of(age=range(17, 91), sex=["F", "M"])
    table = np.array([("F", 30), ("M", 17)], dtype=[("sex", "U1"), ("age", "i1")])
    masked = np.ma.masked_array(table, mask=[(True, False), (False, False)])

    assert [[13, 0], [0, 1]] == domain.encode(table).tolist()
    assert [[13, 0], [0, 1]] == domain.encode(table.view(np.recarray)).tolist()
    with pytest.raises(InvalidDataError, match="sex must have a value in every row, got missing"):
        domain.encode(masked)


def test_dates_are_refused_as_other_values():
    refusal(["2020"], [datetime.date(2020, 1, 1)])
    refusal(range(5), np.array(["2020"], "M8[Y]"))


@pytest.mark.parametrize("dtype", ["M8[ns]", "m8[ns]", "m8"])
def test_times_are_no_integers(dtype):
    """Their items are, for numpy."""
    for kind in ([0, 1], range(2), binned([0, 2]), [True, False], ["a"]):
        refusal(kind, np.array([1], "i8").view(dtype))
        refusal(kind, [np.array([1], "i8").view(dtype)[0]])


def test_refusal_names_column_rule_and_remedy_and_shows_no_value():
    expected = (
        "a must be a whole number from 17 to 90 in every row, got other values; widen the range, declare "
        "clip=True, or clean the table. PrivateData.check(table, domain).curator_report() shows values and "
        "lines."
    )

    assert expected == refusal(range(17, 91), [20, 16, 200]) == refusal(range(17, 91), [16])


def test_refusal_names_all_columns_at_once():
    domain = Domain.of(a=2, b=["x"], c=2, d=binned([0, 1]))
    with pytest.raises(InvalidDataError) as caught:
        domain.encode({"a": [0, 5], "b": [None, "y"], "c": [0, 1], "d": [0.5, "z"]})
    lines = str(caught.value).splitlines()

    assert "the table must fit its domain, got 4 misfits:" == lines[0]
    assert ["  a", "  b", "  b", "  d"] == [line[:3] for line in lines[1:-1]]


@pytest.mark.parametrize("kind", ["[]", '["x", "x"]', '{"range": [5, 1]}', '{"edges": [1]}'])
def test_a_kind_that_cannot_be_is_refused_by_the_name_of_its_attribute(kind):
    with pytest.raises(InvalidDomainError, match=r"^city: .* must ") as refused:
        Domain.from_json(f'{{"sex": ["F", "M"], "city": {kind}}}')
    assert 1 == str(refused.value).count("city")
    with pytest.raises(
        InvalidDomainError, match=r"^city: labels must be distinct, got 'x' twice; remove one"
    ):
        Domain.of(sex=["F", "M"], city=["x", "x"])
