"""Random statements of every form that the SQL compiler accepts, and a table in SQLite to ask them of.

Statements come in two spellings: ours, and that of SQLite, which has no COUNT_IF and whose bins are a column.
"""

import math
import random
import re

import numpy as np

from onlineic.domain import Domain, binned, optional
from support import databases

HOURS = (0.0, 20.0, 35.0, 50.0, 100.0)
PAY = (0, 1, 5, 10)
DOMAIN = Domain.of(
    age=optional(range(20, 25)),
    educ=range(22, 25),
    sex=optional(["F", "M"]),
    race=["White", "black", "F"],
    vet=optional([True, False]),
    hours=optional(binned(HOURS)),
    pay=binned(PAY, integer=True),
    rank=[10, 20],
)
NUMBERS, WHOLE, TEXTS = ("age", "educ"), ("age", "educ", "pay", "rank"), ("sex", "race")
COLUMNS = (*DOMAIN.names, "hours_bin", "pay_bin")


def value(rng, name, code):
    """A value with this code: of a bin any, often the one at its lower edge, and 40 hours above all."""
    kind = DOMAIN.attribute(name)
    if kind.missing and code == kind.size - 1:
        return None
    if name == "hours":
        low, high = HOURS[code], HOURS[code + 1]
        return rng.choice([low, 40.0 if low <= 40.0 < high else low, rng.uniform(low, high - 1e-9)])
    if name == "pay":
        return rng.randrange(PAY[code], PAY[code + 1])
    return kind.label(code)


def cells():
    """Codes of every cell, shape (cells, attributes)."""
    return np.indices(DOMAIN.shape).reshape(len(DOMAIN.shape), -1).T


def opened(rng, tables):
    """A database with tables of records, name -> codes."""
    connection = databases.opened()
    connection.execute("PRAGMA case_sensitive_like = on")
    declared = "age INTEGER, educ INTEGER, sex TEXT, race TEXT, vet INTEGER, hours REAL, pay INTEGER"
    for table, codes in tables.items():
        connection.execute(f"CREATE TABLE {table} ({declared}, rank INTEGER, hours_bin TEXT, pay_bin TEXT)")
        bins = [DOMAIN.attribute(name) for name in ("hours", "pay")]
        places = [DOMAIN.axis(name) for name in ("hours", "pay")]
        rows = (
            (
                *(value(rng, name, code) for name, code in zip(DOMAIN.names, row, strict=True)),
                *(kind.label(row[place]) for kind, place in zip(bins, places, strict=True)),
            )
            for row in codes.tolist()
        )
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(COLUMNS))})", rows)
    return connection


def named_in(text, params):
    """The parameters that a text uses."""
    return {name: value for name, value in params.items() if re.search(rf":{name}\b", text)}


class Statements:
    """Random statements; `forms` counts what they are made of."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.forms = {}
        self.params = {}

    def use(self, form):
        self.forms[form] = self.forms.get(form, 0) + 1

    def statement(self):
        """Keys, (ours, SQLite's) texts of aggregates, the text of WHERE or None, and parameters."""
        rng, self.params = self.rng, {}
        keys = rng.sample(DOMAIN.names, rng.choice([0, 0, 0, 1, 1, 2]))
        aggregates = [self.aggregate() for _ in range(rng.choice([1, 1, 2, 3]))]
        where = self.condition(rng.choice([0, 1, 1, 2, 3])) if rng.random() < 0.85 else None
        if keys:
            self.use("GROUP BY")
        written = " ".join([where or "", *(text for text, _ in aggregates)])
        return keys, aggregates, where, named_in(written, self.params)

    def aggregate(self):
        form = self.rng.choice(
            ["*", "1", "col", "COUNT_IF", "COUNT CASE", "SUM CASE", "SUM CASE ELSE", "SUM", "AVG",
             "SUM CASE col", "AVG CASE col"]
        )  # fmt: skip
        self.use(form)
        inner, column = self.condition(self.rng.choice([0, 0, 1])), self.rng.choice(NUMBERS)
        ours = {
            "*": "COUNT(*)",
            "1": "COUNT(1)",
            "col": f"COUNT({self.rng.choice(DOMAIN.names)})",
            "COUNT_IF": f"COUNT_IF({inner})",
            "COUNT CASE": f"COUNT(CASE WHEN {inner} THEN 1 END)",
            "SUM CASE": f"SUM(CASE WHEN {inner} THEN 1 END)",
            "SUM CASE ELSE": f"sum(case when {inner} then 1 else 0 end)",
            "SUM": f"SUM({self.rng.choice(NUMBERS)})",
            "AVG": f"AVG({self.rng.choice(NUMBERS)})",
            "SUM CASE col": f"SUM(CASE WHEN {inner} THEN {column}{self.rng.choice(['', ' ELSE 0'])} END)",
            "AVG CASE col": f"AVG(CASE WHEN {inner} THEN {column} END)",
        }[form]
        theirs = f"SUM(CASE WHEN {inner} THEN 1 END)" if form == "COUNT_IF" else ours
        if self.rng.random() < 0.3:
            self.use("FILTER")
            among = f" FILTER (WHERE {self.condition(self.rng.choice([0, 1]))})"
            ours, theirs = ours + among, theirs + among
        return ours, theirs

    def condition(self, depth):
        rng = self.rng
        if depth == 0:
            return self.atom()
        form = rng.choice(["AND", "OR", "AND", "OR", "NOT", "paren"])
        self.use(form)
        if form == "NOT":
            inner = self.condition(depth - 1)
            return f"NOT ({inner})" if rng.random() < 0.7 else f"NOT {self.atom()}"
        if form == "paren":
            return f"({self.condition(depth - 1)})"
        parts = [self.condition(depth - 1) for _ in range(rng.choice([2, 2, 3]))]
        return f" {form} ".join(parts)  # without brackets: AND binds more than OR, NOT more than both

    def atom(self):
        rng = self.rng
        form = rng.choice(
            ["compare", "compare", "flipped", "columns", "texts", "between", "in", "like", "null", "bare",
             "constant", "hours", "hours", "pay", "text", "bool", "distinct", "is bool", "among columns",
             "numbers"]
        )  # fmt: skip
        self.use(form)
        operator = rng.choice(["=", "<>", "!=", "<", "<=", ">", ">="])
        no = rng.choice(["", "", "NOT "])
        if form in ("compare", "flipped"):
            name = rng.choice(NUMBERS)
            number = self.number(whole=operator in ("=", "<>", "!="))
            self.use(operator)
            return f"{name} {operator} {number}" if form == "compare" else f"{number} {operator} {name}"
        if form == "columns":
            left, right = rng.choice([("age", "educ"), ("educ", "age"), ("age", "age"), ("t.age", "educ")])
            return f"{left} {operator} {right}"
        if form == "texts":
            return f"{rng.choice(['sex = race', 'race <> sex', 'race = race', 'sex <> sex'])}"
        if form == "between":
            return f"{rng.choice(NUMBERS)} {no}BETWEEN {self.number()} AND {self.number()}"
        if form == "in":
            name = rng.choice([*NUMBERS, "race", "rank"])
            kind = DOMAIN.attribute(name)
            listed = [self.written(kind.label(rng.randrange(kind.size - kind.missing))) for _ in range(3)]
            return f"{name} {no}IN ({', '.join(listed[: rng.randint(1, 3)])})"
        if form == "like":
            pattern = rng.choice(["%", "F", "f%", "_", "%k", "W%e", "_l%", "%a%", "", "Wh_te", "%%i%", "B%"])
            return f"{rng.choice(TEXTS)} {no}LIKE '{pattern}'"
        if form == "null":
            return f"{rng.choice(DOMAIN.names)} IS {no}NULL"
        if form == "bare":
            return "vet"
        if form == "distinct":
            left = rng.choice(["age", "educ", "pay", "sex", "vet"])
            rights = {
                "age": ["22", "educ", "NULL", "age"],
                "educ": ["23", "age", "NULL"],
                "pay": ["0", "NULL"],
            }
            right = rng.choice(
                rights.get(left, ["NULL", "race", "'F'"] if left == "sex" else ["TRUE", "NULL"])
            )
            sides = (left, right) if rng.random() < 0.7 else (right, left)
            return f" IS {no}DISTINCT FROM ".join(sides)
        if form == "is bool":
            return f"vet IS {no}{rng.choice(['TRUE', 'FALSE'])}"
        if form == "among columns":
            return rng.choice(
                [f"age {no}BETWEEN educ AND {self.number()}", f"{self.number()} {no}BETWEEN age AND educ",
                 f"educ {no}BETWEEN {self.number()} AND age", f"age {no}BETWEEN educ AND age"]
            )  # fmt: skip
        if form == "numbers":
            return f"{rng.randint(0, 2)} {operator} {rng.choice(['1', '1.0', '-1'])}"
        if form == "constant":
            return rng.choice(["TRUE", "FALSE"])
        if form == "hours":
            return self.hours(no)
        if form == "pay":
            return self.pay(no)
        name, operator = rng.choice([("vet", operator)] if form == "bool" else [("sex", "="), ("race", "<>")])
        if form == "bool":
            return f"vet {rng.choice(['=', '<>'])} {rng.choice(['TRUE', 'FALSE', self.parameter(True)])}"
        label = self.written(rng.choice(DOMAIN.attribute(name).labels))
        return f"{name} {operator} {label}" if rng.random() < 0.8 else f"{label} {operator} {name}"

    def hours(self, no):
        rng, edge = self.rng, self.rng.choice(HOURS)
        cut = rng.choice([22, 37, 40, 40.5])
        return rng.choice(
            [
                f"hours < {edge}", f"hours >= {edge}", f"{edge:.0f} > hours", f"{edge} <= hours",
                f"hours <= {rng.choice([100, 100.0, 250, 1e9])}", f"hours > {rng.choice([-5, -0.5])}",
                f"(hours < {cut} OR hours >= {cut})", f"NOT (hours <= {cut} AND hours > {cut})",
                f"(hours >= {edge} AND hours < {rng.choice(HOURS)})", f"hours {no}BETWEEN -1 AND 100",
                f"(hours = {cut} OR hours <> {cut})", f"hours IN ({-5}, 200)", "hours = 150",
            ]
        )  # fmt: skip

    def pay(self, no):
        rng, edge = self.rng, self.rng.choice(PAY)
        low, high = sorted(rng.choices(PAY, k=2))
        return rng.choice(
            [
                f"pay < {edge}", f"pay >= {edge}", f"pay <= {edge - 1}", f"pay > {edge - 1}",
                f"pay < {edge - 0.5}",
                f"pay {no}BETWEEN {low} AND {high - 1}", "pay = 0", "pay <> 0", f"pay {no}IN (0, 1, 2, 3, 4)",
                f"{edge - 1} < pay", f"pay > {edge - 0.25}",
            ]
        )  # fmt: skip

    def number(self, whole=False):
        number = self.rng.randint(18, 27)
        if not whole and self.rng.random() < 0.3:
            return self.written(number + 0.5)
        return self.written(self.rng.choice([number, number, -3, float(number)]))

    def written(self, value):
        if self.rng.random() < 0.15:
            return self.parameter(value)
        if isinstance(value, str):
            return f"'{value}'"
        return str(value)

    def parameter(self, value):
        self.use(":name")
        name = f"p{len(self.params)}"
        self.params[name] = value
        return f":{name}"


def texts(keys, aggregates, where, columns=True):
    """Our statement and SQLite's, which lists all keys first."""
    ours = ", ".join([*keys * columns, *(text for text, _ in aggregates)])
    bins = {"hours": "hours_bin", "pay": "pay_bin"}
    named = [bins.get(key, key) for key in keys]
    theirs = ", ".join([*named, *(text for _, text in aggregates)])
    among = "" if where is None else f" WHERE {where}"
    by, by_named = (f" GROUP BY {', '.join(names)}" if keys else "" for names in (keys, named))
    return f"SELECT {ours} FROM t{among}{by}", f"SELECT {theirs} FROM t{among}{by_named}"


def exact(aggregate, counts, keys):
    """The exact numbers of an aggregate by keys, from the counts of all cells: shape of the keys."""
    held = counts if aggregate.condition is None else counts * aggregate.condition.bind(DOMAIN).weights()
    if aggregate.column is not None:
        axis = DOMAIN.axis(aggregate.column)
        kind = DOMAIN.attributes[axis]
        numbers = np.array([kind.label(code) or 0 for code in range(kind.size)])
        has = np.arange(kind.size) < kind.size - kind.missing
        along = [-1 if place == axis else 1 for place in range(len(DOMAIN.shape))]
        sums, number = (
            by_keys(held * part.reshape(along), keys) for part in (numbers * has, has.astype(int))
        )
        if aggregate.form == "sum":
            return sums
        with np.errstate(invalid="ignore"):
            return sums / number
    return by_keys(held, keys)


def by_keys(table, keys):
    axes = [DOMAIN.axis(name) for name in keys]
    summed = table.sum(axis=tuple(place for place in range(table.ndim) if place not in axes))
    return summed.transpose(np.argsort(np.argsort(axes))) if keys else summed


def same(found, expected):
    """SQLite's NULL: the sum of nothing, which is 0 here, or its mean, which does not exist."""
    if expected is None:
        return found == 0 or math.isnan(found)
    return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)
