"""What the parts of a session cost: planning, opening, loading, fitting, noise; and the offline engines.

Every group has a baseline of the same run, to which its times are given as ratios.
"""

import atexit
import csv
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlineic as ic
from benchmarks.grid import GRIDS, RULES, Grid, least_alpha, quietly, spent, table
from onlineic import baselines, offline
from onlineic.evaluate import random_stream
from onlineic.noise import SimulatedNoise, SystemNoise
from onlineic.plan import session_plan, textbook_plan
from onlineic.queries import Partition
from onlineic.queries.partitions import PartitionRule

BUDGET, PURE = ic.Budget(1.0, 1e-9), ic.Budget(1.0)
DRAWS = 100_000
SCALE = 100
Timed = Callable[[], Any]
Part = dict[
    str, Callable[[], Timed]
]  # label -> what prepares, untimed, what is timed; the first is the baseline


# Sizes: (cells, records of a table, rows to load, queries)
SIZES = {"quick": (1_000, 10_000, 2_000, 10), "report": (10_000, 1_000_000, 1_000_000, 50)}


def sizes(grid: Grid) -> tuple[int, int, int, int]:
    return SIZES["quick" if grid.queries < 100 else "report"]


def planning(grid: Grid) -> Part:
    cells, n, _, _ = sizes(grid)
    data, tight = cache(lambda: table(cells, n, 1)), ic.MultiplicativeWeights()

    def planned(make: Any, budget: ic.Budget, **options: Any) -> Callable[[], Timed]:
        return lambda: partial(make, data().domain, n, budget, **options)

    def certified() -> Timed:
        alpha = least_alpha(tight, data(), BUDGET, 10_000)
        return planned(session_plan, BUDGET, update=tight, certify=alpha)()

    return {
        "numbers, 20 hard answers": planned(session_plan, BUDGET, update=tight, hard_answers=20),
        "default": planned(session_plan, BUDGET),
        "default, delta = 0": planned(session_plan, PURE),
        "numbers": planned(session_plan, BUDGET, update=tight),
        "certified": certified,
        "textbook": planned(partial(textbook_plan, update=tight), BUDGET),
        "textbook, delta = 0": planned(partial(textbook_plan, update=tight), PURE),
    }


def opening(grid: Grid) -> Part:
    cells, n, _, _ = sizes(grid)
    data, tight = cache(lambda: table(cells, n, 1)), ic.MultiplicativeWeights()

    def opened(make: Any, *arguments: Any, **options: Any) -> Callable[[], Timed]:
        held = partial(make, *arguments, **options)

        def begun() -> None:
            engine = quietly(held, data(), noise=SimulatedNoise(1))
            getattr(engine, "hypothesis", None)  # a session buys its first tables when it is asked for

        return lambda: begun

    def certified() -> Timed:
        alpha = least_alpha(tight, data(), BUDGET, 10_000)
        return opened(ic.OnlineIC, budget=BUDGET, update=tight, certify=alpha)()

    return {
        "one noisy histogram": opened(baselines.noisy_histogram, budget=BUDGET),
        "per-query noise": opened(baselines.PerQueryNoise, budget=BUDGET, answers=10_000),
        "default": opened(ic.OnlineIC, budget=BUDGET),
        "default, delta = 0": opened(ic.OnlineIC, budget=PURE),
        "numbers": opened(ic.OnlineIC, budget=BUDGET, update=tight),
        "certified": certified,
        "textbook": opened(ic.OnlineIC.textbook, epsilon=1.0, update=tight),
    }


def loading(grid: Grid) -> Part:
    _, _, rows, _ = sizes(grid)
    labels = np.array(["never", "once", "often", "always"])
    domain = ic.Domain.of(age=range(17, 91), hours=range(100), answer=labels.tolist())
    two = ic.Domain.of(age=range(17, 91), hours=range(100))

    @cache
    def columns() -> dict[str, np.ndarray]:
        rng = np.random.default_rng(1)
        return {
            "age": rng.integers(17, 91, rows),
            "hours": rng.integers(0, 100, rows),
            "answer": labels[rng.integers(0, 4, rows)],
        }

    def by_hand() -> np.ndarray:
        codes = np.ravel_multi_index((columns()["age"] - 17, columns()["hours"]), two.shape)
        return np.bincount(codes, minlength=two.size)

    def from_records(domain: ic.Domain, kind: Callable[[np.ndarray], Any]) -> Timed:
        held = {name: kind(columns()[name]) for name in domain.names}
        return lambda: ic.PrivateData.from_records(held, domain)

    def from_counts() -> Timed:
        counts = by_hand()
        age, hours = np.unravel_index(np.arange(two.size), two.shape)
        return partial(ic.PrivateData.from_counts, {"age": age + 17, "hours": hours}, counts, two)

    def column(name: str) -> Callable[[], Timed]:
        """One column of ever new values from a CSV file."""

        def prepared() -> Timed:
            rng, count = np.random.default_rng(1), rows // 10
            seconds = np.datetime64("2023-01-01T00:00:00") + rng.integers(0, 86_400 * 600, count)
            texts: list[str] = {
                "integers": columns()["age"][:count].astype(str),
                "reals": np.char.mod("%.2f", rng.gamma(2.0, 20_000.0, count)),
                "timestamps": seconds.astype(str),
            }[name].tolist()
            kind: Any = {
                "integers": range(17, 91),
                "reals": ic.binned([0.0, 1e4, 2e4, 4e4, 8e4, 1e9]),
                "timestamps": ic.dates("2023-01", "2025-12", by="month"),
            }[name]
            folder = tempfile.mkdtemp()
            atexit.register(shutil.rmtree, folder)
            path = Path(folder) / "rows.csv"
            path.write_text("\n".join([name, *texts, ""]), encoding="utf-8")
            return partial(ic.PrivateData.from_csv, path, ic.Domain.of({name: kind}))

        return prepared

    def from_csv() -> Timed:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)
        path = Path(folder) / "rows.csv"
        lists = [column[: rows // 10].tolist() for column in columns().values()]
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(columns()), *zip(*lists, strict=True)])
        return partial(ic.PrivateData.from_csv, path, domain)

    return {
        f"numpy alone, {rows:,} rows of 2 integers": lambda: columns() and by_hand,
        f"from_records, {rows:,} rows of 2 integers": lambda: from_records(two, np.asarray),
        f"from_records, {rows:,} rows with labels": lambda: from_records(domain, np.asarray),
        f"from_records, {rows:,} rows as lists": lambda: from_records(domain, np.ndarray.tolist),
        f"from_counts, {two.size:,} rows": from_counts,
        f"from_csv, {rows // 10:,} rows": from_csv,
        **{f"from_csv, {rows // 10:,} {name}": column(name) for name in ("integers", "reals", "timestamps")},
    }


def fitting(cells: int, grid: Grid) -> Part:
    """One update of a warm hypothesis along a range over two attributes, or along 16 such."""

    @cache
    def measured() -> tuple[ic.Measurement, ...]:
        domain, rng = table(cells, 10_000, 1).domain, np.random.default_rng(1)
        found: list[ic.Measurement] = []
        while len(found) < 16:
            ends = [sorted(rng.integers(0, size, 2).tolist()) for size in domain.shape[:2]]
            query = ic.where({name: ic.between(*pair) for name, pair in zip("ab", ends, strict=True)})
            if (bound := query.bind(domain)).constant is None:
                found.append(ic.Measurement(bound, np.array([0.3]), 0.001))
        return tuple(found)

    def tilted() -> Timed:
        dense, weights = np.full(cells, 1.0 / cells), measured()[0].target.weights().ravel()

        def tilt() -> np.ndarray:
            moved = dense * np.exp(0.1 * weights)
            return moved / moved.sum()

        return tilt

    def updated(name: str, past: int) -> Timed:
        rule, held = RULES[name], measured()
        hypothesis = rule.init(held[0].target.domain)
        for known in range(1, past):
            hypothesis = rule.update(hypothesis, held[:known], 0.01)
        hypothesis.evaluate(held[-1].target)
        return lambda: rule.update(hypothesis, held[:past], 0.01)

    listed = [name for name in RULES if name != "median"]  # its net cannot be listed at these sizes
    replaying = ("measured weights", "maximum entropy")
    return {
        "dense tilt with numpy": tilted,
        **{name: partial(updated, name, 1) for name in listed},
        **{f"{name}, the 16th": partial(updated, name, 16) for name in replaying},
    }


def refitting(shape: tuple[int, ...], dense: bool, grid: Grid) -> Part:
    """Maximum entropy from tables of all pairs, and after 30 ranges over all attributes."""
    domain = ic.Domain.of({"abc"[axis]: size for axis, size in enumerate(shape)})
    rule, cut = ic.MaximumEntropy(misfit=0.55), PartitionRule(parts=24)

    @cache
    def measured() -> tuple[ic.Measurement, ...]:
        rng = np.random.default_rng(1)
        parts = [rng.dirichlet(np.full(size, 0.3)) for size in shape]

        def release(target: Partition) -> ic.Measurement:
            values = np.ones(())
            for axis, labels in zip(target.axes, target.classes, strict=True):
                values = np.multiply.outer(values, np.bincount(labels, parts[axis]))
            return ic.Measurement(target, values.ravel() + rng.normal(0.0, 4e-5, values.size), 4e-5)

        pairs = itertools.combinations(range(len(shape)), 2)
        single = [Partition(domain, (axis,), (np.arange(size),)) for axis, size in enumerate(shape)]
        found = [release(target) for target in (*single, *(cut.table(domain, pair) for pair in pairs))]
        while len(found) < 36:
            ends = [sorted(rng.integers(0, size, 2).tolist()) for size in shape]
            query = ic.where({"abc"[axis]: ic.between(*pair) for axis, pair in enumerate(ends)}).bind(domain)
            target = cut.partition(query) if query.constant is None else None
            found += [] if target is None else [release(target)]
        return tuple(found)

    def opened(prior: Any = None) -> Any:
        return rule.update(rule.init(domain, prior), measured()[:6], 0.01)

    def one_pass() -> Timed:
        cells = np.zeros(shape)
        return lambda: np.exp(cells).sum()

    def hit(prior: Callable[[], Any]) -> Timed:
        before = rule.update(opened(prior()), measured()[:-1], 0.01)
        return lambda: rule.update(before, measured(), 0.01)

    return {
        "exp of every cell": one_pass,
        "opening": lambda: measured() and opened,
        "hit": lambda: hit(lambda: None),
        **({"hit, every cell written": lambda: hit(lambda: ic.Histogram(domain))} if dense else {}),
    }


def noise(grid: Grid) -> Part:
    made: Part = {
        "Laplace floats of numpy": lambda: partial(np.random.default_rng(1).laplace, 0.0, SCALE, DRAWS)
    }
    for label, source in (("exact", SystemNoise), ("simulated", partial(SimulatedNoise, 1))):
        made[f"words, {label}"] = lambda source=source: partial(source().words, DRAWS)
        for method, scale in (
            ("geometric", Fraction(SCALE)),
            ("discrete_laplace", Fraction(SCALE)),
            ("discrete_gaussian", SCALE),
        ):
            made[f"{method}, {label}"] = lambda source=source, method=method, scale=scale: partial(
                getattr(source(), method), scale, DRAWS
            )
    return made


def engines(grid: Grid) -> Part:
    cells, n, _, count = sizes(grid)
    data, small = cache(lambda: table(cells, n, 1)), cache(lambda: table(4, min(n, 10_000), 1))
    queries = cache(lambda: list(random_stream(data().domain, count, 1)))
    halves = [ic.where(a=value) for value in range(4)]

    def of(make: Any, *arguments: Any, **options: Any) -> Callable[[], Timed]:
        return lambda: lambda: make(data(), *arguments, **options, noise=SimulatedNoise(1))

    def asked(make: Any, *arguments: Any, **options: Any) -> Callable[[], Timed]:
        return lambda: lambda: make(data(), queries(), *arguments, **options, noise=SimulatedNoise(1))

    def histogram() -> Any:
        made = baselines.noisy_histogram(data(), BUDGET, noise=SimulatedNoise(1))
        return made.answer_many(queries())

    return {
        f"one noisy histogram, {count} queries": lambda: histogram,
        "mean": of(offline.mean, "a", 1.0),
        "median": of(offline.median, "a", 1.0),
        "median, exponential mechanism": of(offline.median, "a", 1.0, mechanism="exponential"),
        "most_popular": of(offline.most_popular, "a", 1.0),
        "clipping_bound": of(offline.clipping_bound, "a", 1.0),
        "auto_avg": of(offline.auto_avg, "a", 1.0),
        "private_cdf": of(offline.private_cdf, "a", 1.0),
        f"range_queries, {count} queries": asked(offline.range_queries, 1.0, threshold=n // 2, cutoff=3),
        f"mwem, {count} queries": asked(offline.mwem, BUDGET),
        f"iterative_construction, {count} queries": asked(offline.iterative_construction, BUDGET),
        "threshold_database": of(offline.threshold_database, "a", 1.0),
        "small_database, 4 cells, 4 queries": lambda: (
            lambda: offline.small_database(small(), halves, 1.0, noise=SimulatedNoise(1))
        ),
    }


def starting(grid: Grid) -> Part:
    """Whole processes, from the interpreter on; byte code is written by the first of them."""
    _, _, rows, _ = sizes(grid)
    first = (
        "import numpy as np; from onlineic import Budget, Domain, OnlineIC, PrivateData, where;"
        "domain = Domain.of(age=range(17, 91), sex=['F', 'M']); rng = np.random.default_rng(1);"
        "columns = {'age': rng.integers(17, 91, 5000), 'sex': rng.choice(['F', 'M'], 5000)};"
        "session = OnlineIC(PrivateData.from_records(columns, domain), Budget(1.0, 1e-9));"
        "print(session.answer(where(age=30)))"
    )
    command = "import sys; from onlineic.cli import main; sys.exit(main())"

    def run(code: str, *arguments: str) -> Callable[[], Timed]:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        call = [sys.executable, "-W", "ignore", "-c", code, *arguments]
        return lambda: partial(subprocess.run, call, check=True, capture_output=True, env=environment)

    def asked() -> Timed:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)
        domain = ic.Domain.of(age=range(17, 91), hours=range(100))
        rng, files = np.random.default_rng(1), [Path(folder) / name for name in ("t.csv", "d.json", "q.txt")]
        lines = zip(rng.integers(17, 91, rows // 20), rng.integers(0, 100, rows // 20), strict=True)
        texts = ["age,hours\n" + "".join(f"{age},{hours}\n" for age, hours in lines)]
        texts += [domain.to_json(), '{"age": [30, 50]}\n']
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        table, described, questions = map(str, files)
        budget = ("--epsilon", "1", "--delta", "1e-9")
        return run(command, "ask", "--csv", table, "--domain", described, *budget, questions)()

    return {
        "import numpy, attrs": run("import numpy, attrs"),
        "import onlineic": run("import onlineic"),
        "first answer": run(first),
        "onlineic --version": run(command, "--version"),
        f"onlineic ask, {rows // 20:,} rows": asked,
    }


def answering(shape: tuple[int, ...], grid: Grid) -> Part:
    """Ten easy answers more, each to a new question, alone and with their bounds."""
    count = 400 if grid.queries < 100 else 20_000

    def asked(look: bool) -> Callable[[], Timed]:
        def prepared() -> Timed:
            domain = ic.Domain.of({"abcdefghijklmnopqrst"[axis]: size for axis, size in enumerate(shape)})
            rng = np.random.default_rng(1)
            columns = {name: rng.binomial(size - 1, 0.3, 100_000) for name, size in domain_sizes(domain)}
            data = ic.PrivateData.from_records(columns, domain)
            session = ic.OnlineIC(data, BUDGET, max_queries=10**6, noise=SimulatedNoise(1))
            stream = itertools.cycle([one.bind(domain) for one in random_stream(domain, count, 1)])
            session.answer(next(stream))

            def answered() -> None:
                for query in itertools.islice(stream, 10):
                    answer = session.answer(query)
                    if look:
                        _ = answer.error_bound

            return answered

        return prepared

    return {"10 answers": asked(False), "10 answers and their bounds": asked(True)}


def domain_sizes(domain: ic.Domain) -> list[tuple[str, int]]:
    return list(zip(domain.names, domain.shape, strict=True))


def stating(grid: Grid) -> Part:
    """One count in SQL."""
    texts = [
        f"SELECT COUNT(*) FROM t WHERE a BETWEEN {low} AND {low + 5} AND b >= {high}"
        for low in range(60)
        for high in range(60)
    ]

    def opened() -> ic.OnlineIC:
        pytest.importorskip("sqlglot")
        domain = ic.Domain.of(a=range(100), b=range(100))
        rng = np.random.default_rng(1)
        columns = {name: rng.integers(0, 100, 10_000) for name in "ab"}
        data = ic.PrivateData.from_records(columns, domain)
        session = ic.OnlineIC(data, BUDGET, max_queries=10**6, noise=SimulatedNoise(1))
        session.answer(ic.where(a=1))
        return session

    def parsed() -> Timed:
        return partial(pytest.importorskip("sqlglot").parse_one, texts[0])

    def new() -> Timed:
        session, stream = opened(), itertools.cycle(texts)
        return lambda: session.sql(next(stream))

    def shapeless() -> Timed:
        session, counter = opened(), itertools.count()
        return lambda: session.sql(f"SELECT COUNT(*) AS n{next(counter)} FROM t WHERE a >= 3 AND b >= 2")

    return {
        "sqlglot alone": parsed,
        "a statement of a new shape": shapeless,
        "a new statement of a known shape": new,
        "a statement again": lambda: partial(opened().sql, texts[0]),
    }


def long_attribute(grid: Grid) -> Part:
    """A session on one attribute of many codes: opening it, and opening it with its first answer."""
    quick = grid.queries < 100
    sizes = (1_000, 10_000) if quick else (10_000, 100_000, 1_000_000)

    def opened(codes: int, ask: bool) -> Callable[[], Timed]:
        def prepared() -> Timed:
            domain, rng = ic.Domain.of(code=codes), np.random.default_rng(1)
            columns = {"code": (rng.beta(2.0, 5.0, 100_000) * codes).astype(np.int64)}
            data = ic.PrivateData.from_records(columns, domain)

            def begun() -> None:
                session = quietly(ic.OnlineIC, data, BUDGET, noise=SimulatedNoise(1))
                if ask:
                    _ = session.answer(ic.where(code=ic.between(1, codes // 3))).error_bound

            return begun

        return prepared

    made: Part = {}
    for codes in sizes:
        made[f"opening, {codes:,} codes"] = opened(codes, False)
        made[f"opening and first answer, {codes:,} codes"] = opened(codes, True)
    return made


def staying(grid: Grid) -> Part:
    """A Parquet file of ten columns: loaded as rows, or counted where it lies, and two questions."""
    rows = sizes(grid)[2]
    domain = ic.Domain.of({f"c{place}": 8 for place in range(10)})

    @cache
    def path() -> Path:
        for library in ("narwhals", "duckdb", "pyarrow"):
            pytest.importorskip(library)
        from pyarrow import parquet, table

        folder, rng = tempfile.mkdtemp(), np.random.default_rng(1)
        atexit.register(shutil.rmtree, folder)
        file = Path(folder) / "rows.parquet"
        parquet.write_table(table({name: rng.integers(0, 8, rows) for name in domain.names}), file)
        return file

    def loaded(counting: Any) -> Callable[[], Timed]:
        return lambda: partial(ic.PrivateData.from_frame, path(), domain, counting=counting)

    def fetched() -> Timed:
        data = ic.PrivateData.from_frame(path(), domain, counting="on demand")
        sets = itertools.cycle(itertools.combinations(range(10), 4))
        return lambda: data.fetch([next(sets)])

    return {
        f"all rows, {rows:,}": loaded("rows"),
        "all pairs, counted there": loaded("at load"),
        "one set of four on demand": fetched,
    }


BUILDERS: dict[str, Callable[[Grid], Part]] = {
    "planning": planning,
    "opening": opening,
    "loading": loading,
    "one update, 1,000 cells": partial(fitting, 1_000),
    "one update, 100,000 cells": partial(fitting, 100_000),
    "one update, 1,000,000 cells": partial(fitting, 1_000_000),
    "refit, 1,000,000 cells": partial(refitting, (100, 100, 100), True),
    "refit, 20,000,000 cells": partial(refitting, (200, 250, 400), False),
    f"noise, {DRAWS:,} values": noise,
    "offline engines": engines,
    "start-up": starting,
    "answers, 1,000 cells": partial(answering, (10, 10, 10)),
    "answers, 100,000 cells": partial(answering, (50, 50, 40)),
    "answers, 20 attributes": partial(answering, (8,) * 20),
    "SQL": stating,
    "one long attribute": long_attribute,
    "a wide table that stays": staying,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    grid = GRIDS[metafunc.config.getoption("--grid")]
    quick = grid.queries < 100
    parts = {
        part: build(grid) for part, build in BUILDERS.items() if not (quick and part.endswith("00,000 cells"))
    }
    places = [(part, name, next(iter(made)), made[name]) for part, made in parts.items() for name in made]
    names = [f"{part}, {name}" for part, name, *_ in places]
    metafunc.parametrize(("part", "name", "baseline", "prepare"), places, ids=names)


@pytest.mark.benchmark(timer=spent)
def test_part(
    benchmark: Any, record: Any, part: str, name: str, baseline: str, prepare: Callable[[], Timed]
) -> None:
    benchmark.group = part
    call = prepare()
    call()  # warms what is made once
    benchmark(call)
    stats = benchmark.stats.stats
    record("parts", part=part, name=name, baseline=baseline, seconds=stats.median, rounds=stats.rounds)
