"""Questions of many conditions: answered in time of their length, up to a limit that is named."""

import json
import pickle
import time

import numpy as np
import pytest

import onlineic as ic
from onlineic.ask import parsed_query
from onlineic.errors import InvalidQueryError, TooLargeError
from onlineic.queries import dense

DOMAIN = ic.Domain.of(age=100, zip=1000, sex=["F", "M"])
PLACES = ic.Domain.of(age=100, zip=1000)
CELLS = [(place % 100, 7 * place % 1000) for place in range(10_000)]


def weights_of(pairs):
    held = np.zeros((100, 1000))
    for age, code in pairs:
        held[age, code] = 1.0
    return held


def read_and_bound(cells):
    """The query of so many alternatives, and the processor time that it took."""
    line = json.dumps({"or": [{"age": age, "zip": code} for age, code in cells]})
    began = time.process_time()
    query = parsed_query(line, PLACES).bind(PLACES)
    return query, time.process_time() - began


@pytest.mark.slow
def test_four_times_as_many_alternatives_in_json_take_four_times_as_long_to_be_read_and_bound():
    """Formerly sixteen times: every alternative copied all before it, and was multiplied into every cell."""
    few = min(read_and_bound(CELLS[:2_500])[1] for _ in range(3))
    runs = [read_and_bound(CELLS) for _ in range(3)]

    assert dense(weights_of(CELLS)).bind(PLACES) == runs[0][0]
    assert min(took for _, took in runs) < 8.0 * few


def test_a_chain_of_python_operators_is_the_same_query_as_its_list():
    chained = ic.where(age=0)
    for age in range(1, 50):
        chained = chained | ic.where(age=age)
    listed = parsed_query(json.dumps({"or": [{"age": age} for age in range(50)]}), DOMAIN)

    assert chained == listed
    assert chained.bind(DOMAIN) == ic.where(age=ic.between(0, 49)).bind(DOMAIN)


def test_alternatives_over_different_attributes_are_the_query_of_their_cells():
    parts = [ic.where(age=3, zip=4), ic.where(sex="F", age=5), ~ic.where(zip=ic.below(998)), ic.where(age=9)]
    either = parts[0]
    for part in parts[1:]:
        either = either | part
    age, code, sex = np.ogrid[:100, :1000, :2]
    held = ((age == 3) & (code == 4)) | ((sex == 0) & (age == 5)) | (code >= 998) | (age == 9)

    assert either.bind(DOMAIN) == dense(np.broadcast_to(held, DOMAIN.shape)).bind(DOMAIN)


@pytest.mark.parametrize("operator", ["or", "and"])
def test_more_conditions_than_a_query_may_combine_are_refused_by_name(operator):
    line = json.dumps({operator: [{"age": 1}] * (2**16 + 1)})

    with pytest.raises(TooLargeError, match="a query must combine at most 65,536 conditions, got 65,537"):
        parsed_query(line, DOMAIN)


def test_a_line_longer_than_its_limit_is_refused_before_it_is_read():
    with pytest.raises(InvalidQueryError, match="a line of at most 1,048,576 characters, got 1,048,577"):
        parsed_query("[" * (2**20 + 1), DOMAIN)


@pytest.mark.slow
def test_conditions_that_would_multiply_too_many_cells_are_refused():
    domain = ic.Domain.of(a=2000, b=2000)
    line = json.dumps({"or": [{"a": {"below": 1999}, "b": {"below": 1999}}] * 200})

    with pytest.raises(TooLargeError, match="a query must combine at most 536,870,912 cells of its parts"):
        parsed_query(line, domain).bind(domain)


@pytest.mark.parametrize("start", [ic.where(age=0), ic.one_of(0)], ids=["query", "condition"])
def test_operators_nest_a_hundred_deep_and_what_nests_so_can_be_shown_copied_and_compared(start):
    """One more is refused when it is written: no later step fails for want of Python's stack."""
    again = type(start)(start.form, start.parts)
    for place in range(100):
        start = (start | again) if place % 2 else (start & again)

    assert repr(start) == repr(pickle.loads(pickle.dumps(start)))
    assert start == pickle.loads(pickle.dumps(start))
    with pytest.raises(TooLargeError, match="a query must nest at most 100 operators"):
        _ = start & again
    with pytest.raises(TooLargeError, match="a query must nest at most 100 operators"):
        _ = ~start


def test_many_conditions_on_one_attribute_need_the_memory_of_one():
    """Formerly one array a condition: ten thousand of a million values were 80 GB."""
    domain = ic.Domain.of(day=1_000_000)
    held = ic.one_of(0)
    for day in range(2, 4000, 2):
        held = held | ic.one_of(day)

    query = ic.where(day=held).bind(domain)

    assert 2000 == int(query.weights().sum())
