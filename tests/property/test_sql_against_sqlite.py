"""Random statements in SQL mean what SQLite makes of them: 0 wrong answers, and refusals only where told.

The large run: python -m pytest -m sqlite tests/property/test_sql_against_sqlite.py
"""

import itertools

import numpy as np
import pytest

pytest.importorskip("sqlglot")

from onlineic.ask import condition, statement
from onlineic.errors import InvalidQueryError, TooLargeError
from onlineic.queries import marginal, where
from support.sql_statements import DOMAIN, Statements, by_keys, cells, exact, named_in, opened, same, texts

FORMS = {
    "!=", "*", "1", ":name", "<", "<=", "<>", "=", ">", ">=", "AND", "AVG", "COUNT CASE", "COUNT_IF",
    "FILTER", "GROUP BY", "NOT", "OR", "SUM", "SUM CASE", "SUM CASE ELSE", "bare", "between", "bool", "col",
    "columns", "compare", "constant", "flipped", "hours", "in", "like", "null", "paren", "pay", "text",
    "texts", "SUM CASE col", "AVG CASE col", "distinct", "is bool", "among columns", "numbers",
}  # fmt: skip


def compared(seed, count):
    """Ask random statements of both; return how many numbers were equal, which were not, what was refused."""
    random = Statements(seed)
    every = cells()
    rows = every[np.sort(np.random.default_rng(seed).integers(0, len(every), 3000))]
    counts = np.bincount(np.ravel_multi_index(rows.T, DOMAIN.shape), minlength=DOMAIN.size).reshape(
        DOMAIN.shape
    )
    database = opened(random.rng, {"t": rows, "cells": every})
    equal, wrong, refused = 0, [], []
    for _ in range(count):
        keys, aggregates, among, params = random.statement()
        ours, theirs = texts(keys, aggregates, among, columns=random.rng.random() < 0.8)
        try:
            understood = statement(ours, DOMAIN, params=params)
        except (InvalidQueryError, TooLargeError) as error:
            refused.append((ours, str(error)))
            continue
        asked = [understood.aggregates[formula.place] for _, formula in understood.formulas]
        answers = [exact(aggregate, counts, keys) for aggregate in asked]
        expected = groups(database.execute(theirs, params), keys)
        for place, found in enumerate(answers):
            for codes in itertools.product(*(range(size) for size in found.shape)):
                labels = tuple(
                    DOMAIN.attribute(key).label(code) for key, code in zip(keys, codes, strict=True)
                )
                row = expected.pop((place, labels), None)
                if same(found[codes], row):
                    equal += 1
                else:
                    wrong.append((ours, place, labels, found[codes], row))
        assert {} == expected, ours  # no group of SQLite's is left
        wrong += unlike_cells(database, among, params)
        wrong += unlike_tables(understood, counts)
    return equal, wrong, refused, random.forms


def groups(rows, keys):
    """(place of an aggregate, labels) -> SQLite's number."""
    found = {}
    for row in rows:
        labels = row[: len(keys)]
        labels = tuple(
            bool(label) if key == "vet" and label is not None else label
            for key, label in zip(keys, labels, strict=True)
        )
        found |= {(place, labels): number for place, number in enumerate(row[len(keys) :])}
    return found


def unlike_cells(database, among, params):
    """The condition as weights over every cell, beside the one record that SQLite has of each."""
    if among is None:
        return []
    params = named_in(among, params)
    weights = condition(among.replace("t.age", "age"), DOMAIN, params=params).bind(DOMAIN).weights()
    met = [place - 1 for (place,) in database.execute(f"SELECT rowid FROM cells AS t WHERE {among}", params)]
    expected = np.zeros(DOMAIN.size, np.int64)
    expected[met] = 1
    return [] if (weights.ravel() == expected).all() else [(among, params)]


def unlike_tables(understood, counts):
    """The cross table that is asked for a grouped count, beside the sums over its cells."""
    wrong = []
    for aggregate in understood.aggregates:
        if not understood.keys or aggregate.form != "count":
            continue
        try:
            bound = marginal(*understood.keys, where=aggregate.condition).bind(DOMAIN)
        except InvalidQueryError:  # no conjunction: its cells are asked one by one
            continue
        sums = [(block * counts).sum() for block in blocks(bound.partition)]
        if not (bound.table(np.array(sums, float)) == exact(aggregate, counts, understood.keys)).all():
            wrong.append(aggregate)
    return wrong


def blocks(partition):
    """0/1 weights of every block over the domain."""
    for codes in np.ndindex(*partition.shape):
        parts = dict(zip(partition.axes, zip(partition.classes, codes, strict=True), strict=True))
        block = np.ones(DOMAIN.shape, np.int64)
        for axis, (classes, code) in parts.items():
            along = [-1 if place == axis else 1 for place in range(block.ndim)]
            block = block * (classes == code).reshape(along)
        yield block


@pytest.mark.slow
def test_200_statements_are_answered_as_by_sqlite():
    equal, wrong, refused, forms = compared(seed=1, count=200)

    assert [] == wrong
    assert equal > 500
    assert len(refused) < 40, refused[:5]
    assert all("AVG must be over some records" in told for _, told in refused)
    assert FORMS <= forms.keys()


@pytest.mark.sqlite
@pytest.mark.parametrize("seed", range(2, 12))
def test_1000_statements_are_answered_as_by_sqlite(seed, record_property):
    equal, wrong, refused, forms = compared(seed, count=1000)
    record_property("equal, wrong, refused", (equal, len(wrong), len(refused)))

    assert [] == wrong
    assert equal > 4000
    assert len(refused) < 170  # averages over nobody
    assert FORMS <= forms.keys()


def test_a_wrong_answer_is_found():
    """NOT as a complement, which counts the missing: what the compiler must not do."""
    every = cells()
    database = opened(Statements(0).rng, {"t": every, "cells": every})
    plain = by_keys(np.ones(DOMAIN.shape, int) * (~where(age=22)).bind(DOMAIN).weights(), [])
    ((expected,),) = database.execute("SELECT COUNT(*) FROM t WHERE NOT age = 22")

    assert not same(plain, expected)
    assert same(exact(statement("SELECT COUNT(*) FROM t WHERE NOT age = 22", DOMAIN).aggregates[0],
                      np.ones(DOMAIN.shape, int), []), expected)  # fmt: skip
