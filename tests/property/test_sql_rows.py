"""HAVING, ORDER BY, LIMIT and OFFSET over exact numbers show what SQLite and DuckDB show, in their order."""

import itertools
import math
import random

import numpy as np
import pytest

pytest.importorskip("sqlglot")

import onlineic as ic
from onlineic.queries import Answer
from onlineic.questions import Answering, PublicFacts
from support import databases

DOMAIN = ic.Domain.of(age=range(20, 25), sex=ic.optional(["M", "F"]), race=["White", "black", "Asian"])
AGGREGATES = ("COUNT(*)", "SUM(age)", "AVG(age)", "COUNT(sex)", "COUNT(CASE WHEN age > 21 THEN 1 END)")


class Exact(Answering):
    """Answers the truth."""

    def __init__(self, counts):
        self.counts, self.asked = counts, 0

    @property
    def facts(self):
        return PublicFacts(DOMAIN, int(self.counts.sum()), 0.05)

    def answer(self, query):
        self.asked += 1
        bound = query.bind(self.domain)
        if hasattr(bound, "partition"):
            part = bound.partition
            others = tuple(axis for axis in range(len(DOMAIN.shape)) if axis not in part.axes)
            value = bound.table(part.measure(self.counts.sum(axis=others) / self.n))
        else:
            value = float((bound.weights() * self.counts).sum()) / 2**bound.grid_bits / self.n
        return Answer(value, self.n * value, "easy", 0.0)

    def joint_bounds(self, queries, answers):
        return np.zeros(len(list(answers)))


def table(seed):
    """Counts of all cells, each of at least one record: databases list no empty groups.

    2,048 in all, so that fractions of them are exact, and equal counts stay equal.
    """
    counts = np.random.default_rng(seed).integers(1, 40, DOMAIN.shape)
    counts[0, 0, 0] += 2_048 - counts.sum()
    return counts


def records(counts):
    for codes in np.ndindex(*DOMAIN.shape):
        row = tuple(kind.label(code) for kind, code in zip(DOMAIN.attributes, codes, strict=True))
        yield from itertools.repeat(row, int(counts[codes]))


def condition(rng, depth):
    if depth:
        form = rng.choice(["AND", "OR", "NOT"])
        if form == "NOT":
            return f"NOT ({condition(rng, depth - 1)})"
        return f" {form} ".join(f"({condition(rng, depth - 1)})" for _ in range(2))
    text = rng.choice(AGGREGATES)
    low, high = (rng.choice([0, 20, 22, 40, 90, 700, 3000]) + 0.5 for _ in range(2))
    operator = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    return rng.choice([
        f"{text} {operator} {low}", f"{low} {operator} {text}", f"{text} BETWEEN {low} AND {high}",
        f"{text} NOT BETWEEN {low} AND {high}", f"{text} IS NOT NULL", f"{text} IS NULL",
    ])  # fmt: skip


def written(rng):
    """A statement with all four clauses, or some; the keys behind make its order one without ties."""
    keys = rng.sample(DOMAIN.names, rng.choice([1, 2, 3]))
    listed = rng.sample(AGGREGATES, rng.choice([1, 2]))
    names = [f"a{place}" for place in range(len(listed))]
    items = [*keys, *(f"{text} AS {name}" for text, name in zip(listed, names, strict=True))]
    order = []
    for _ in range(rng.choice([0, 1, 2])):
        what = rng.choice([*names, *listed, *keys, *AGGREGATES, str(rng.randint(1, len(items)))])
        nulls = rng.choice(["", "", " NULLS FIRST", " NULLS LAST"])
        order.append(what + rng.choice(["", " ASC", " DESC"]) + nulls)
    text = f"SELECT {', '.join(items)} FROM t GROUP BY {', '.join(keys)}"
    if rng.random() < 0.6:
        text += f" HAVING {condition(rng, rng.choice([0, 0, 1, 2]))}"
    text += f" ORDER BY {', '.join([*order, *keys])}"
    if rng.random() < 0.6:
        text += f" LIMIT {rng.randint(0, 12)}"
        if rng.random() < 0.5:
            text += f" OFFSET {rng.randint(0, 5)}"
    return text


def same(row, other):
    return all(
        math.isclose(one, two, rel_tol=1e-9) if type(one) is float and two is not None else one == two
        for one, two in zip(row, other, strict=True)
    )


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request):
    """A name of a dialect, and what runs a statement over records."""
    if request.param == "duckdb":
        duckdb = pytest.importorskip("duckdb")

    def asked(counts):
        connection = databases.opened() if request.param == "sqlite" else duckdb.connect()
        connection.execute("CREATE TABLE t (age INTEGER, sex VARCHAR, race VARCHAR)")
        rows = list(records(counts))
        marks = ", ".join(["(?, ?, ?)"] * len(rows))
        connection.execute(f"INSERT INTO t VALUES {marks}", list(itertools.chain(*rows)))
        return lambda text: connection.execute(text).fetchall()

    return request.param, asked


def test_60_statements_show_the_same_rows_in_the_same_order(database):
    dialect, asked = database
    rng, shown, fewer = random.Random(1), 0, 0
    for seed in range(2):
        counts = table(seed)
        engine, run = Exact(counts), asked(counts)
        for _ in range(30):
            text = written(rng)

            found = engine.sql(text, dialect=dialect)

            ours = [tuple(row.values()) for row in found]
            theirs = run(text)
            assert len(ours) == len(theirs), text
            assert all(map(same, ours, theirs)), (text, ours, theirs)
            assert (found.groups > len(found)) == ("groups" in found.chosen)
            shown, fewer = shown + len(ours), fewer + (found.groups > len(found))
    assert shown > 250
    assert fewer > 20


def test_the_clauses_ask_nothing_more(database):
    counts = table(0)
    plain, clauses = Exact(counts), Exact(counts)

    plain.sql("SELECT sex, COUNT(*), AVG(age) FROM t GROUP BY sex")
    clauses.sql(
        "SELECT sex, COUNT(*), AVG(age) AS old FROM t GROUP BY sex HAVING COUNT(*) > 100 AND AVG(age) < 22 "
        "ORDER BY old DESC, COUNT(*) LIMIT 1 OFFSET 1"
    )

    assert plain.asked == clauses.asked
