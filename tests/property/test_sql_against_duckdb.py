"""Arithmetic, rates, windows and keys of statements, beside DuckDB: asked of one who answers exactly."""

import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.questions import AnswerTable
from support.exact import Exact

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")
pandas = pytest.importorskip("pandas")

DOMAIN = ic.Domain.of(
    age=range(18, 40), kids=ic.optional(range(4)), sex=["F", "M"], vet=ic.optional(ic.boolean()),
    day=ic.dates("2023-12-01", "2024-03-10"),
)  # fmt: skip
DRAW = np.random.default_rng(11)
N = 4_000
ROWS = {
    "age": DRAW.integers(18, 40, N),
    "kids": [None if one < 0 else int(one) for one in DRAW.integers(-1, 4, N)],
    "sex": DRAW.choice(["F", "M"], N, p=[0.3, 0.7]),
    "vet": [None if one == 2 else bool(one) for one in DRAW.integers(0, 3, N)],
    "day": np.datetime64("2023-12-01") + DRAW.integers(0, 101, N),
}
COUNTS = np.bincount(np.ravel_multi_index(DOMAIN.encode(ROWS).T, DOMAIN.shape), minlength=DOMAIN.size)
KEYS = [
    "sex", "kids", "vet", "EXTRACT(YEAR FROM day)", "MONTH(day)", "QUARTER(day)", "DAYOFWEEK(day)",
    "ISODOW(day)", "DAYNAME(day)", "EXTRACT(isodow FROM day)", "FLOOR(age / 5) * 5", "FLOOR(age / 7)",
    "CASE WHEN age < 25 THEN 'a' WHEN age < 33 THEN 'b' ELSE 'c' END",
    "CASE WHEN kids > 1 THEN 1 ELSE 0 END",
    "CASE WHEN sex = 'F' AND age > 30 THEN 'x' WHEN kids IS NULL THEN 'y' END",
]  # fmt: skip
CONDITIONS = [
    "age > 25", "sex = 'F'", "kids >= 1", "vet", "NOT vet", "kids IS NULL",
    "age BETWEEN 20 AND 30 AND sex <> 'F'", "MONTH(day) IN (1, 2)", "EXTRACT(YEAR FROM day) = 2024",
    "DATE_TRUNC('month', day) >= DATE '2024-02-01'", "NOT MONTH(day) = 12 OR age < 20",
    "QUARTER(day) BETWEEN 1 AND 3", "DAYNAME(day) = 'Monday'",
]  # fmt: skip
AGGREGATES = [
    "COUNT(*)", "COUNT(kids)", "COUNT_IF({c})", "SUM(age)", "AVG(age)", "AVG(kids)", "SUM(kids)",
    "VAR_POP(age)", "STDDEV_POP(kids)", "STDDEV(age)", "VARIANCE(kids)",
    "AVG(CASE WHEN {c} THEN 1 ELSE 0 END)", "AVG(CASE WHEN {c} THEN 5 ELSE 2 END)",
    "SUM(CASE WHEN {c} THEN 2 ELSE 1 END)", "SUM(CASE WHEN {c} THEN age END)",
    "AVG(CASE WHEN {c} THEN age END)", "AVG(age) FILTER (WHERE {c})", "COUNT(*) FILTER (WHERE {c})",
    "AVG(2 * age + 1)", "SUM(age - kids)", "AVG(age / 4 + kids * 3)", "COUNT_IF({c}) / COUNT(*)",
    "COUNT_IF({c}) * 100.0 / COUNT(*)", "SUM(age) / COUNT(*)", "SUM(kids) / COUNT(kids)", "AVG(age * kids)",
    "CORR(age, kids)", "COVAR_POP(age, kids)", "COVAR_SAMP(age, kids)", "REGR_SLOPE(kids, age)",
    "REGR_INTERCEPT(kids, age)", "REGR_R2(kids, age)", "REGR_COUNT(kids, age)", "REGR_AVGX(kids, age)",
    "REGR_AVGY(kids, age)", "COUNT(*) FILTER (WHERE {c}) / COUNT(*) FILTER (WHERE {c})",
]  # fmt: skip
MADE = [
    "{a}", "{a}", "{a}", "{a} + {b}", "{a} - {b}", "{a} * 0.5", "3 * ({a} - 2)", "{a} / NULLIF({b}, 0)",
    "ROUND({a}, 2)", "ROUND({a} * 7)", "ABS({a} - {b})", "COALESCE({a}, -1)",
    "CASE WHEN {a} > {b} THEN {a} ELSE 0 END", "GREATEST({a}, {b})", "LEAST({a}, 12.5)", "-(1.0 * {a})",
    "SQRT(ABS({a}))", "CASE WHEN {a} BETWEEN 3 AND 20 AND {b} IS NOT NULL THEN 1 WHEN {b} > 9 THEN {b} END",
    "NULLIF({a}, 4)", "({a} - (SELECT COUNT(*) FROM t)) / 10",
]  # fmt: skip
GROUPED = [
    "COUNT(*) * 1.0 / SUM(COUNT(*)) OVER ()", "100.0 * SUM(age) / SUM(SUM(age)) OVER ()",
    "COUNT_IF({c}) / SUM(COUNT(*)) OVER ()", "COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY {k})",
    "CASE WHEN {k} IS NULL THEN 0 ELSE COUNT(*) END",
]  # fmt: skip


def statement(draw):
    """A random statement, and how many keys it has."""
    pick = lambda some: str(draw.choice(some))  # noqa: E731

    def filled(text):
        for mark, some in (("{a}", AGGREGATES), ("{b}", AGGREGATES), ("{c}", CONDITIONS)):
            text = text.replace(mark, pick(some)) if mark != "{c}" else text
        while "{c}" in text:
            text = text.replace("{c}", pick(CONDITIONS), 1)
        return text

    keys = [*draw.choice(KEYS, int(draw.integers(0, 3)), replace=False)]
    items = [filled(pick(MADE)) for _ in range(int(draw.integers(1, 4)))]
    plain = [key for key in keys if key in ("sex", "kids", "vet")]
    if keys and draw.random() < 0.4:
        text = pick(GROUPED)
        if "{k}" not in text or plain:
            items.append(filled(text.replace("{k}", plain[0] if plain else "")))
    listed = ", ".join(
        [f"{key} AS k{place}" for place, key in enumerate(keys)]
        + [f"{item} AS v{place}" for place, item in enumerate(items)]
    )
    among = f" WHERE {pick(CONDITIONS)}" if draw.random() < 0.4 else ""
    named = [f"k{place}" if draw.random() < 0.5 else key for place, key in enumerate(keys)]
    by = f" GROUP BY {', '.join(named)}" if keys else ""
    having = (
        f" HAVING {filled('{a} > {b} - 3')}" if keys and "OVER" not in listed and draw.random() < 0.2 else ""
    )
    return f"SELECT {listed} FROM t{among}{by}{having}", len(keys)


def plain_label(label):
    if label is None or (isinstance(label, float) and math.isnan(label)):
        return None
    return int(label) if isinstance(label, float) else label


def test_statements_are_worked_out_as_by_duckdb():
    table = pandas.DataFrame(
        {**ROWS, "kids": pandas.array(ROWS["kids"], "Int64"), "vet": pandas.array(ROWS["vet"], "boolean")}
    )
    connection = duckdb.connect()
    connection.register("t", table)
    exact, draw = Exact(DOMAIN, COUNTS), np.random.default_rng(52)
    compared, close, refused = 0, 0, []
    for _ in range(80):
        text, keys = statement(draw)
        try:
            found = exact.sql(text)
        except (ic.errors.InvalidQueryError, ic.errors.TooFewRecordsError) as error:
            refused.append((text, str(error)))
            continue
        if not isinstance(found, AnswerTable):
            value, off = (
                (found.count, found.count_bound)
                if isinstance(found, ic.Answer)
                else (found.value, found.error_bound)
            )
            ours = {(): [(float(value), off)]}
        else:
            places = [place - keys for _, place in found.columns if place >= keys]
            ours = {
                tuple(map(plain_label, labels)): [(value[place], off[place]) for place in places]
                for labels, value, off in zip(found.labels, found.values, found.error_bounds, strict=True)
            }
        try:
            theirs_rows = connection.sql(text).fetchall()
        except duckdb.Error:  # its counts have no sign, and overflow where they are subtracted
            continue
        for row in theirs_rows:
            labels, values = tuple(map(plain_label, row[:keys])), row[keys:]
            for (mine, off), theirs in zip(ours[labels], values, strict=True):
                if theirs is None or math.isnan(theirs):
                    assert math.isnan(mine) or "SUM(" in text, (text, labels, mine)  # a sum of nothing is 0
                elif not math.isnan(mine):  # of less than half a record nothing is told
                    assert abs(mine - float(theirs)) <= off + 1e-7 * abs(mine) + 1e-9, (
                        text,
                        labels,
                        mine,
                        theirs,
                    )
                    close += abs(mine - float(theirs)) <= 1e-3 * abs(mine) + 1e-6
                compared += 1
    connection.close()

    assert compared > 600
    assert close > 0.85 * compared
    assert len(refused) < 12, refused


def test_the_forms_are_all_understood():
    for one in (*AGGREGATES, *(key for key in KEYS)):
        text = one.replace("{c}", CONDITIONS[0])
        ic.ask.statement(
            f"SELECT {text}, COUNT(*) FROM t GROUP BY 1" if one in KEYS else f"SELECT {text} FROM t", DOMAIN
        )
