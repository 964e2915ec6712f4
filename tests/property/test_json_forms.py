"""What analysts write goes to JSON and comes back as the same question."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlineic as ic
from onlineic.ask import described, written
from onlineic.errors import InvalidQueryError, OnlineICError, TooLargeError
from onlineic.questions.means import Numbers
from onlineic.service import from_wire, to_wire

DOMAIN = ic.Domain.of(
    age=range(17, 30),
    sex=["F", "M"],
    pay=ic.binned([0, 10, 20, 50]),
    day=ic.dates("2024-01-01", "2024-02-20"),
    opt=ic.optional(["a", "b"]),
)
AGES = st.integers(17, 29)
CONDITIONS = {
    "age": st.one_of(
        st.tuples(AGES, AGES).map(lambda ends: ic.between(min(ends), max(ends))),
        AGES.map(ic.at_least),
        AGES.filter(lambda age: age > 17).map(ic.below),
        st.lists(AGES, min_size=1, max_size=4).map(lambda ages: ic.one_of(*ages)),
    ),
    "sex": st.sampled_from([ic.one_of("F"), ~ic.one_of("F"), ic.one_of("F", "M")]),
    "pay": st.sampled_from([ic.below(20), ic.span(10, 20)]),
    "day": st.sampled_from(
        [ic.between("2024-01-03", "2024-01"), ic.one_of("2024-02-03"), ic.at_least("2024-02")]
    ),
    "opt": st.sampled_from([ic.one_of(None), ic.one_of("a", None), ~ic.one_of("b")]),
}


def joined(condition):
    return st.one_of(condition, st.tuples(condition, condition).map(lambda two: two[0] | two[1]))


LEAVES = st.fixed_dictionaries({}, optional={name: joined(one) for name, one in CONDITIONS.items()}).map(
    ic.where
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda one: ~one),
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
    ),
    max_leaves=4,
)


def same(left, right):
    left, right = left.bind(DOMAIN), right.bind(DOMAIN)
    return (left.key, left.complement) == (right.key, right.complement)


@given(EXPRESSIONS)
def test_an_expression_is_read_back_from_its_json(question):
    assert same(question, described(json.loads(json.dumps(written(question))), DOMAIN))


@given(EXPRESSIONS)
def test_means_and_sums_cross_by_name_and_are_made_of_the_domain_there(condition):
    for aggregate in ("mean", "sum"):
        try:
            numbers = Numbers.of(DOMAIN, "age", condition)
            numbers.check(condition)
        except OnlineICError:
            return
        for question in numbers.asks(aggregate):
            sent = json.loads(json.dumps(to_wire(question, DOMAIN)))
            assert same(question, from_wire(sent, DOMAIN))
            assert "weights" not in json.dumps(sent)


def test_a_cross_table_is_read_back():
    table = ic.marginal("sex", "opt", where=ic.where(age=ic.at_least(20)))

    assert same(table, described(written(table), DOMAIN))


@pytest.mark.parametrize(
    "question", [ic.where(age=ic.weights([0.5] * 13)), ic.where(sex="F").bind(DOMAIN), [1.0], 5, None]
)
def test_weights_and_bound_questions_do_not_cross(question):
    with pytest.raises(InvalidQueryError):
        to_wire(question, DOMAIN)


@pytest.mark.parametrize(
    "sent",
    [
        {"constant": [7, 0]},
        {"box": [[0, 3, 9]], "rounding": 5},
        {"weigh": "age", "by": "share", "rounding": 5},
        {"weigh": "age", "by": "whole"},
        {"weigh": ["age"], "by": "share"},
        {"weigh": "sex", "by": "share"},
        {"dense": [1.0]},
        [],
        None,
        5,
        {"marginal": ["sex"], "partition": {}},
    ],
)
def test_nothing_else_is_read(sent):
    with pytest.raises(InvalidQueryError):
        from_wire(sent, DOMAIN)


def test_what_takes_too_long_is_refused_before_it_is_looked_at():
    deep = {"age": 20}
    for _ in range(100):
        deep = {"not": deep}
    wide = {"or": [{"day": "2024-01-01"}] * 100_000}
    for sent in (deep, wide):
        with pytest.raises(TooLargeError):
            from_wire(sent, DOMAIN)
