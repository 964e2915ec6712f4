"""Texts that differ in their numbers and texts alone are parsed once, and read as if each was parsed."""

import pytest

from onlineic.ask import condition, statement
from onlineic.ask.sql_shapes import Shapes
from onlineic.domain import Domain, dates, optional
from onlineic.errors import InvalidQueryError

sqlglot = pytest.importorskip("sqlglot")
DOMAIN = Domain.of(
    age=range(17, 91),
    sex=["F", "M", "it's", "2024-01-05"],
    pay=optional(range(2000)),
    day=dates("2024-01-01", "2024-12-31"),
)
# of each shape several texts, what stands in them told apart by the parser in one way or another
TEXTS = [
    "age BETWEEN {a} AND {b} AND sex = '{s}'",
    "age IN ({a}, {b}) OR NOT (pay < {b} AND pay IS NOT NULL)",
    "age = {a} AND age <> -{b}",
    "sex LIKE '{s}%' OR pay >= {a}.5",
    "day >= DATE '2024-03-{b}' AND sex IN ('{s}', 'M')",
    "CASE WHEN age > {a} THEN {b} ELSE 0 END = {b}",
    "day = '2024-03-{b}' OR {a} <= age",
    "age > {a} /* {b} */ AND age < {b}",
    "age > {a} AND \"sex\" = '{s}'",
]
VALUES = [
    {"a": 20, "b": 31, "s": "F"},
    {"a": 31, "b": 20, "s": "M"},
    {"a": 20, "b": 20, "s": "it''s"},
    {"a": 47, "b": 11, "s": "2024-01-05"},
    {"a": 99999, "b": 12, "s": "nobody"},
]


def told(ask):
    try:
        return repr(ask())
    except InvalidQueryError as error:
        return str(error)


@pytest.fixture
def parses(monkeypatch):
    """Fresh shapes, and how many texts were parsed."""
    monkeypatch.setattr("onlineic.ask.sql_trees._SHAPES", Shapes())
    counted = []
    parse = sqlglot.Parser._parse
    monkeypatch.setattr(
        sqlglot.Parser,
        "_parse",
        lambda self, *rest, **more: (counted.append(1), parse(self, *rest, **more))[1],
    )
    return counted


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_one_shape_mean_what_they_mean_alone(text, monkeypatch):
    asked = [text.format(**values) for values in [*VALUES, *VALUES[::-1]]]
    expected = []
    for one in asked:
        monkeypatch.setattr("onlineic.ask.sql_trees._SHAPES", Shapes())
        expected.append(told(lambda one=one: condition(one, DOMAIN)))
    monkeypatch.setattr("onlineic.ask.sql_trees._SHAPES", Shapes())

    assert expected == [told(lambda one=one: condition(one, DOMAIN)) for one in asked]


def test_a_statement_of_a_shape_that_came_twice_is_not_parsed_again(parses):
    asked = "SELECT sex, COUNT(*) FROM t WHERE age BETWEEN {} AND {} AND pay > {} GROUP BY sex"
    statement(asked.format(20, 30, 5), DOMAIN)
    statement(asked.format(21, 33, 6), DOMAIN)
    known = len(parses)
    for place in range(20):
        found = statement(asked.format(20 + place, 40 + place, place), DOMAIN)

    assert known == len(parses) == 3
    assert "between(39, 59)" in repr(found.aggregates[0].condition)


def test_what_stands_behind_the_name_of_a_type_is_part_of_the_shape(parses):
    for day in ("2024-03-05", "2024-03-06", "2024-03-07"):
        condition(f"day = DATE '{day}'", DOMAIN)

    assert 3 == len(parses)


def test_a_tree_is_with_one_reader_at_a_time():
    shapes, parsed = Shapes(), []

    def parse(tokens):
        parsed.append(1)
        return sqlglot.Dialect.get_or_raise(None).parser().parse(tokens, "")[0]

    texts = [sqlglot.tokenize(f"a = {number}") for number in range(4)]
    for tokens in texts[:2]:
        with shapes.tree(tokens, "x", parse):
            pass
    with shapes.tree(texts[2], "x", parse) as one, shapes.tree(texts[3], "x", parse) as other:
        assert ("a = 2", "a = 3") == (one.sql(), other.sql())


def test_few_shapes_are_kept():
    shapes = Shapes()
    for number in range(200):
        for _ in range(2):
            with shapes.tree(
                sqlglot.tokenize(f"a{number} = 1"), "x", lambda tokens: sqlglot.parse_one("a = 1")
            ):
                pass

    assert 64 == len(shapes)
