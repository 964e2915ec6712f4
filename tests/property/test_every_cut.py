"""Every cut of every ordered kind is answered as plain Python counts the raw values, or it is refused."""

import datetime
import itertools
import json
import math
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic.ask import condition, parsed_query
from onlineic.errors import InvalidQueryError
from onlineic.evaluate import exact_values
from onlineic.queries import at_least, below, between, span, where

OPERATORS = {
    "=": lambda value, number: value == number,
    "<>": lambda value, number: value != number,
    "<": lambda value, number: value < number,
    "<=": lambda value, number: value <= number,
    ">": lambda value, number: value > number,
    ">=": lambda value, number: value >= number,
}
NUMBERS = st.one_of(st.integers(-3, 14), st.integers(-6, 28).map(lambda twice: twice / 2))


@st.composite
def numbers(draw):
    """(kind, raw values, what a clipped value counts as, two of its edges)."""
    clip = draw(st.booleans())
    whole = draw(st.booleans())
    edges = sorted(draw(st.sets(st.integers(-1, 12), min_size=2, max_size=5)))
    first, last = edges[0], edges[-1]
    if draw(st.booleans()):
        kind = ic.integers(first, last, clip=clip)
        whole, within = True, (first, last)
    else:
        infinite = draw(st.sampled_from([(), (-math.inf,), (math.inf,), (-math.inf, math.inf)]))
        kind = ic.binned(sorted([*edges, *infinite]), integer=whole, clip=clip)
        step = 1 if whole else 0.5
        within = (-3 if -math.inf in infinite else first, 14 if math.inf in infinite else last - step)
    some = st.integers(-3, 14) if whole else NUMBERS
    values = draw(st.lists(some, min_size=1, max_size=12))
    inside = [min(max(value, within[0]), within[1]) for value in values]
    return kind, values if clip else inside, inside, *draw(st.tuples(*2 * [st.sampled_from(edges)]))


def counted(data, asked):
    """How many records meet a condition, exactly; None where it is refused."""
    try:
        return round(float(exact_values(data, [asked()])[0]) * data.n)
    except InvalidQueryError:
        return None


def beside(*edges):
    return [edge + off for edge in edges for off in (-1, -0.5, 0, 0.5, 1)]


@given(numbers())
@settings(max_examples=60, deadline=None)
def test_a_comparison_in_a_text_counts_the_raw_values_or_is_refused(told):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    kind, values, _, *cuts = told
    data = ic.PrivateData.from_records({"a": values}, ic.Domain.of(a=kind))

    for (operator, met), cut in itertools.product(OPERATORS.items(), beside(*cuts)):
        found = counted(data, partial(condition, f"a {operator} {cut}", data.domain))

        assert found in (None, sum(met(value, cut) for value in values))


@given(numbers(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_range_in_a_text_counts_the_raw_values_or_is_refused(told, negated):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    kind, values, _, low, high = told
    data = ic.PrivateData.from_records({"a": values}, ic.Domain.of(a=kind))

    for first, last in itertools.product(beside(low), beside(high)):
        written = f"a {'NOT ' * negated}BETWEEN {first} AND {last}"
        found = counted(data, partial(condition, written, data.domain))

        assert found in (None, sum((first <= value <= last) != negated for value in values))


@given(numbers(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_range_in_python_and_json_counts_what_clipped_values_count_as_or_is_refused(told, negated):
    kind, values, clipped, *edges = told
    data = ic.PrivateData.from_records({"a": values}, ic.Domain.of(a=kind))

    for low, high in itertools.product(*map(beside, edges)):
        forms = [
            (span(low, high), {"from": low, "below": high}, [low <= value < high for value in clipped]),
            (between(low, high), [low, high], [low <= value <= high for value in clipped]),
            (at_least(low), {"from": low}, [value >= low for value in clipped]),
            (below(high), {"below": high}, [value < high for value in clipped]),
        ]
        for asked, plain, met in forms:
            written = json.dumps({"a": {"not": plain} if negated else plain})
            expected = (None, sum(one != negated for one in met))

            assert counted(data, partial(where, a=~asked if negated else asked)) in expected
            assert counted(data, partial(parsed_query, written, data.domain)) in expected


FIRST = datetime.datetime(2024, 1, 30)
MOMENTS = st.integers(-4 * 24, 10 * 24).map(lambda hours: FIRST + datetime.timedelta(hours=hours))


@given(
    st.sampled_from(["day", "week", "month", "hour"]),
    st.booleans(),
    st.lists(MOMENTS, min_size=1, max_size=8),
    st.sampled_from(sorted(OPERATORS)),
    MOMENTS,
)
@settings(max_examples=150, deadline=None)
def test_a_comparison_of_times_in_a_text_counts_the_raw_values_or_is_refused(
    by, clip, values, operator, moment
):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    ends = (FIRST, FIRST + datetime.timedelta(days=6))
    kind = ic.dates(*ends, by=by, clip=clip)
    begins, behind = kind.begins(0), kind.begins(kind.size)

    def inside(value):
        return begins <= (value - datetime.datetime(1, 1, 1)) // datetime.timedelta(microseconds=1) < behind

    values = values if clip else [value for value in values if inside(value)] or [FIRST]
    data = ic.PrivateData.from_records({"a": [value.isoformat() for value in values]}, ic.Domain.of(a=kind))

    found = counted(
        data, partial(condition, f"a {operator} TIMESTAMP '{moment:%Y-%m-%d %H:%M}'", data.domain)
    )

    assert found in (None, sum(OPERATORS[operator](value, moment) for value in values))
