"""Random conditions on dates and times mean what SQLite makes of them as ISO texts, or are refused.

Every cell has several records, at its beginning, inside and at its end: a condition that is answered must say
the same of all of them, and one comparison is refused only if it does not.
"""

import datetime
import itertools
import random
import sqlite3

import numpy as np
import pytest

pytest.importorskip("sqlglot")

from onlineic.ask import condition, statement
from onlineic.domain import Domain, dates, optional
from onlineic.errors import InvalidQueryError
from support.sql_statements import named_in

DOMAIN = Domain.of(
    day=optional(dates("2024-02-27", "2024-03-02")),
    month=dates("2024-01", "2024-03", by="month"),
    hour=optional(dates("2024-02-28T22", "2024-02-29T03", by="hour")),
    sex=["F", "M"],
    due=optional(dates("2024-02-28", "2024-03-01")),
)
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
LAST = {"2023-12": 31, "2024-01": 31, "2024-02": 29, "2024-03": 31, "2024-04": 30}
NEXT = dict(itertools.pairwise([*LAST, "2024-05"]))
CUT = "must be cut where one"


def values(name, code):
    """Values of a table that lie in a cell."""
    label = DOMAIN.attribute(name).label(code)
    if label is None:
        return [None]
    if name == "month":
        return [f"{label}-01", f"{label}-10", f"{label}-15", f"{label}-{LAST[label]}"]
    if name == "hour":
        return [label.replace("T", " ") + rest for rest in (":00:00", ":30:00", ":59:59")]
    return [label]


def opened():
    """A table with records of every cell, which is named by its index."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (day TEXT, month TEXT, hour TEXT, sex TEXT, due TEXT, cell INTEGER)")
    for cell, codes in enumerate(np.ndindex(*DOMAIN.shape)):
        held = (values(name, code) for name, code in zip(DOMAIN.names, codes, strict=True))
        database.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", [(*row, cell) for row in itertools.product(*held)]
        )
    return database


class Conditions:
    """Random conditions, each as (ours, SQLite's)."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.params = {}

    def literal(self, column):
        """One moment, as we take it and as the text that the table would hold."""
        rng = self.rng
        if column == "hour":
            hour = datetime.datetime(2024, 2, 28, 20) + datetime.timedelta(minutes=30 * rng.randrange(20))
            text = str(hour)
            forms = [f"TIMESTAMP '{text}'", f"'{text}'", f"'{hour.isoformat()}'", f"'{text[:-3]}'"]
            if text.endswith("00:00:00"):
                forms += [f"DATE '{text[:10]}'", f"'{text[:10]}'"]
            forms.append(self.parameter(hour))
            return rng.choice(forms), f"'{text}'"
        if column == "month":
            month = rng.choice([*LAST])
            text = f"{month}-{rng.choice(['01', '10', LAST[month]])}"
        else:
            text = str(datetime.date(2024, 2, 25) + datetime.timedelta(days=rng.randrange(9)))
        forms = [f"DATE '{text}'", f"'{text}'", f"CAST('{text}' AS DATE)", f"('{text}'::date)"]
        return rng.choice([*forms, self.parameter(datetime.date.fromisoformat(text))]), f"'{text}'"

    def parameter(self, value):
        name = f"p{len(self.params)}"
        self.params[name] = value
        return f":{name}"

    def atom(self):
        rng = self.rng
        column, no = rng.choice(["day", "month", "hour"]), rng.choice(["", "NOT "])
        operator = rng.choice(OPERATORS)
        form = rng.choice(
            ["compare", "compare", "flipped", "between", "in", "null", "period", "midnight", "columns"]
        )
        if form == "null":
            return (f"{column} IS {no}NULL",) * 2
        if form == "period":
            month = rng.choice([*LAST])
            begin, end = f"'{month}-01'", f"'{NEXT[month]}-01'"
            theirs = {
                "=": f"(month >= {begin} AND month < {end})",
                "<>": f"(month < {begin} OR month >= {end})",
                "<": f"month < {begin}",
                "<=": f"month < {end}",
                ">": f"month >= {end}",
                ">=": f"month >= {begin}",
            }[operator]
            return f"month {operator} '{month}'", theirs
        if form == "columns":
            one, two = rng.sample(["day", "due"], 2)
            ours, theirs = self.literal("day")
            among = rng.choice(
                [f"{one} {operator} {two}", f"{one} IS {no}DISTINCT FROM {two}", f"{one} {operator} {one}"]
            )
            both = tuple(f"{one} {no}BETWEEN {two} AND {end}" for end in (ours, theirs))
            return both if rng.random() < 0.4 else (among, among)
        if form == "midnight":
            text, operator = self.literal("day")[1][1:-1], rng.choice(["<", ">="])
            return f"day {operator} TIMESTAMP '{text} 00:00:00'", f"day {operator} '{text}'"
        parts = [self.literal(column) for _ in range(3)]
        if form == "between":
            return tuple(
                f"{column} {no}BETWEEN {low} AND {high}" for low, high, _ in zip(*parts, strict=True)
            )
        if form == "in":
            return tuple(f"{column} {no}IN ({', '.join(side)})" for side in zip(*parts, strict=True))
        if form == "flipped":
            return tuple(f"{side} {operator} {column}" for side in parts[0])
        return tuple(f"{column} {operator} {side}" for side in parts[0])

    def whole(self, depth):
        if depth == 0:
            return self.atom() if self.rng.random() < 0.8 else ("sex = 'F'",) * 2
        if self.rng.random() < 0.25:
            return tuple(f"NOT ({side})" for side in self.whole(depth - 1))
        word = self.rng.choice([" AND ", " OR "])
        parts = [self.whole(depth - 1) for _ in range(self.rng.choice([2, 3]))]
        return tuple(f"({word.join(side)})" for side in zip(*parts, strict=True))


DATABASE = opened()


@pytest.fixture(scope="module", autouse=True)
def database_is_closed():
    yield
    DATABASE.close()


def met(theirs):
    """The share of every cell's records that SQLite counts, shape of the domain."""
    table = DATABASE.execute(
        f"SELECT cell, AVG(CASE WHEN {theirs} THEN 1.0 ELSE 0.0 END) FROM t GROUP BY cell"
    )
    return np.array([share for _, share in sorted(table)]).reshape(DOMAIN.shape)


def asked(ours, params):
    """Weights of a condition over all cells, None if it is refused because it cuts into one."""
    try:
        return condition(ours, DOMAIN, named_in(ours, params)).bind(DOMAIN).weights()
    except InvalidQueryError as error:
        told = str(error)
    assert CUT in told, ours
    return None


def test_one_comparison_is_answered_as_by_sqlite_or_cuts_into_a_cell():
    answered = refused = 0
    for seed in range(300):
        random_ = Conditions(seed)
        ours, theirs = random_.atom()
        expected, found = met(theirs), asked(ours, random_.params)
        whole = bool(np.isin(expected, (0.0, 1.0)).all())

        assert whole == (found is not None), (ours, theirs)
        assert not whole or (expected == found).all(), (ours, theirs)
        answered, refused = answered + whole, refused + (not whole)
    assert answered > 150
    assert refused > 50


def test_conditions_that_are_answered_are_those_of_sqlite():
    answered = 0
    for seed in range(300):
        random_ = Conditions(seed)
        ours, theirs = random_.whole(random_.rng.choice([1, 2]))
        found = asked(ours, random_.params)
        if found is not None:
            answered += 1
            assert (met(theirs) == found).all(), (ours, theirs)
    assert answered > 50


@pytest.mark.parametrize(
    "among", ["day >= DATE '2024-02-28'", "NOT day = '2024-02-29'", "hour < '2024-02-29'"]
)
def test_groups_by_dates_are_counted_as_by_sqlite(among):
    counts = met("TRUE").astype(int) * 0
    for (cell,) in DATABASE.execute("SELECT cell FROM t"):
        counts.flat[cell] += 1
    (aggregate,) = statement(f"SELECT day, COUNT(*) FROM t WHERE {among} GROUP BY day", DOMAIN).aggregates
    found = (counts * aggregate.condition.bind(DOMAIN).weights()).sum(axis=(1, 2, 3, 4))
    theirs = among.replace("DATE ", "").replace("hour < '2024-02-29'", "hour < '2024-02-29 00:00:00'")
    rows = dict(DATABASE.execute(f"SELECT day, COUNT(*) FROM t WHERE {theirs} GROUP BY day"))

    kind = DOMAIN.attribute("day")
    assert [rows.get(kind.label(code), 0) for code in range(kind.size)] == found.tolist()
