"""What grows with use: single queries, columns, a million answers, tables of many attributes, loading.

Every part has a baseline of the same run, and accuracy or memory beside the time where there is any.
NOT PRIVATE: errors are measured. Noise is the exact one of a session; memory is beyond that of the table.
"""

import csv
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlineic as ic
from benchmarks.grid import GRIDS, Case, Grid, forget_peak, naive_seconds, records, resident, table
from onlineic.errors import MissingDataError
from onlineic.evaluate import exact_values, known_baselines, random_stream
from onlineic.queries import Queries

BUDGET = ic.Budget(1.0, 1e-9)
DENSE = 20  # queries of which the dense product is timed
HELD = 2**24  # cells up to which the naive loop is run
RECORDS = 100_000  # of tables that single queries and batches are asked of
TRIES = 8  # batches among which one without a hit is looked for
Row = dict[str, Any]


def ranges(domain: ic.Domain, count: int, rng: np.random.Generator) -> Queries:
    """Return random ranges over all attributes, as columns."""
    columns = {}
    for name, size in zip(domain.names, domain.shape, strict=True):
        low, high = np.sort(rng.integers(0, size, (2, count)), axis=0)
        columns[name] = (low, high + 1)
    return Queries.where(domain, columns)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def peak_bytes(before: int | None) -> int | None:
    after = resident()
    return None if before is None or after is None else 1024 * max(0, after[0] - before)


def single(made: Callable[[], ic.PrivateData], grid: Grid) -> Iterator[Row]:
    """The median of easy answers through `answer`, one at a time."""
    data = made()
    stream = list(dict.fromkeys(random_stream(data.domain, grid.scale.singles, 1)))
    if data.domain.size <= HELD:
        yield {"name": "naive dense loop", "seconds": naive_seconds(Case(data, stream, None, 1))}
    half = len(stream) // 2
    session = ic.OnlineIC(data, BUDGET)
    bound = [query.bind(data.domain) for query in stream[half:]]
    asked = {
        "easy, from an expression": stream[:half],
        "easy, already bound": bound,
        "repeated, from an expression": stream[:half],
        "repeated, already bound": bound,
    }
    session.answer(ic.where({data.domain.names[0]: ic.between(0, 1)}))  # first tables are learned here
    for name, queries in asked.items():
        taken = [timed(partial(session.answer, query)) for query in queries]
        kind = name.split(",")[0].replace("repeated", "repeat")
        seconds = [taking for taking, answer in taken if answer.status == kind]
        yield {"name": name, "seconds": float(np.median(seconds)), "count": len(seconds)}


def hits(shape: tuple[int, ...], grid: Grid) -> Iterator[Row]:
    """The opening, and the hard answers to random ranges, each of which fits again all that was released."""
    data = records(shape, grid.scale.records, np.random.default_rng(1))
    cells = np.ones(data.domain.size)
    yield {"name": "one sum of the cells", "seconds": timed(cells.sum)[0]}
    del cells
    session = ic.OnlineIC(data, BUDGET, max_queries=10 * grid.scale.hits)
    first, *stream = random_stream(data.domain, grid.scale.hits, 1)
    yield {"name": "first question, with the opening", "seconds": timed(partial(session.answer, first))[0]}
    taken = [timed(partial(session.answer, query)) for query in stream]
    hard = [seconds for seconds, answer in taken if answer.status == "hard"]
    if hard:
        longest = max(hard)
        yield {"name": "hard answer", "seconds": float(np.mean(hard)), "longest": longest, "hard": len(hard)}


def dense_product(data: ic.PrivateData, queries: Queries) -> Callable[[], list[float]]:
    """What published systems do, in NumPy: the weight of every cell, times the count of every cell."""
    shape = data.domain.shape
    counts = np.random.default_rng(1).random(data.domain.size)  # the time does not depend on it
    boxes = [(query.axes, query.box) for query in queries if query.box is not None]

    def run() -> list[float]:
        found = []
        for axes, (low, high) in boxes:
            weights = np.ones(1)
            for axis, size in enumerate(shape):
                factor = np.ones(size)
                if axis in axes:
                    place = axes.index(axis)
                    factor[: low[place]] = factor[high[place] :] = 0.0
                weights = np.multiply.outer(weights, factor).ravel()
            found.append(float(weights @ counts))
        return found

    return run


def batch(cells: int, grid: Grid) -> Iterator[Row]:
    """Time a query of a batch, as columns and as a list of expressions, beside passes over the cells."""
    data, count, rng = table(cells, RECORDS, 1), grid.scale.batch, np.random.default_rng(1)
    run = dense_product(data, ranges(data.domain, DENSE, rng))
    run()
    yield {"name": "dense weights times dense counts", "seconds": timed(run)[0] / DENSE}
    values = np.random.default_rng(1).random(cells)
    yield {"name": "one copy of the cells", "seconds": min(timed(values.copy)[0] for _ in range(5))}
    yield {"name": "one sum of the cells", "seconds": min(timed(values.sum)[0] for _ in range(5))}

    session = ic.OnlineIC(data, BUDGET, max_queries=1_000_000)
    session.answer_many(ranges(data.domain, 2 * count, rng))  # tables are learned and summed up here
    yield {
        "name": "columns, compiled",
        "seconds": timed(lambda: ranges(data.domain, count, rng))[0] / count,
    }
    for _ in range(TRIES):
        queries = ranges(data.domain, count, rng)
        seconds, answers = timed(partial(session.answer_many, queries))
        hard = int(np.count_nonzero(answers.statuses == "hard"))
        if hard == 0:
            break
    truths = np.asarray(exact_values(data, list(queries)))
    rms = float(np.sqrt(np.mean((answers.values - truths) ** 2)))
    yield {"name": "columns, tested", "seconds": seconds / count, "rms": rms, "hard": hard}
    repeated = min(timed(partial(session.answer_many, queries))[0] for _ in range(3))
    yield {"name": "columns, repeated", "seconds": repeated / count}
    for turn in range(TRIES):
        expressions = random_stream(data.domain, count, 2 + turn)
        gc.collect()  # of what an earlier turn left
        seconds, listed = timed(partial(session.answer_many, expressions))
        hard = sum(answer.status == "hard" for answer in listed)
        if hard == 0:
            break
    yield {"name": "expressions, tested", "seconds": seconds / count, "hard": hard}
    repeated = min(timed(partial(session.answer_many, expressions))[0] for _ in range(3))
    yield {"name": "expressions, repeated", "seconds": repeated / count}


def distinct(grid: Grid) -> Iterator[Row]:
    """Distinct queries through either door: time, peak bytes an answer, and the longest call."""
    count, size = grid.scale.distinct, grid.scale.batch
    data = table(grid.scale.cells[-1] if grid.queries < 100 else 1_000_000, 10_000, 1)
    held = []  # so that none grows into what another has given back
    for name, one_by_one in (("batches of columns", False), ("one at a time", True)):
        rng = np.random.default_rng(1)
        session = ic.OnlineIC(data, BUDGET, max_queries=1_000_000)
        held.append(session)
        session.answer_many(ranges(data.domain, size, rng))
        before, seconds, longest = forget_peak(), 0.0, 0.0
        for start in range(0, count, size):
            queries = ranges(data.domain, min(size, count - start), rng)
            for part in queries if one_by_one else (queries,):
                answer = session.answer if one_by_one else session.answer_many
                taken, _ = timed(partial(answer, part))
                seconds, longest = seconds + taken, max(longest, taken)
        peak = peak_bytes(before)
        statistics = session.statistics()
        yield {
            "name": f"{count:,}, {name}",
            "seconds": seconds / count,
            "longest": longest,
            "hard": statistics.hard,
            "bytes_each": None if peak is None else peak / count,
        }


def experiment() -> Any:
    """Return the experiment on large domains, whose tables and streams these are."""
    folder = str(Path(__file__).resolve().parent.parent / "experiments")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import large_domains

    return large_domains


def wide(kind: str, grid: Grid) -> Iterator[Row]:
    """Default session over a table of many attributes, beside cached noise told the distinct queries."""
    source = experiment()
    scale = grid.scale
    try:
        data = source.adult(14) if kind == "adult" else getattr(source, kind)(scale.records)
    except MissingDataError as error:
        yield {"name": "default session", "refused": f"absent: {type(error).__name__}"}
        return
    config = source.Config(queries=scale.queries, pool=max(10, scale.queries // 3))
    queries = source.conjunctions(data.domain, config)
    truths = np.asarray(exact_values(data, queries))
    cached = next(
        make
        for label, make in known_baselines(data, BUDGET, queries).items()
        if label.startswith("per-query noise, cached")
    )
    for name, make in (
        ("per-query noise, cached", lambda: cached(None)),
        ("default session", lambda: ic.OnlineIC(data, BUDGET, questions=scale.queries)),
    ):
        before = forget_peak()
        seconds, answers = timed(lambda make=make: make().answer_many(queries))
        peak = peak_bytes(before)
        values = np.array([answer.value for answer in answers])
        yield {
            "name": f"{name}, {len(queries):,} queries",
            "seconds": seconds / len(queries),
            "total": seconds,
            "rms": float(np.sqrt(np.mean((values - truths) ** 2))),
            "hard": sum(answer.status == "hard" for answer in answers) if name == "default session" else None,
            "megabytes": None if peak is None else peak / 2**20,
        }
        del answers


def loading(grid: Grid) -> Iterator[Row]:
    """Time and peak bytes a row."""
    count, rng = grid.scale.rows, np.random.default_rng(1)
    labels = np.array(["never", "once", "often", "always"])
    few = ic.Domain.of(age=range(17, 91), hours=range(100), answer=labels.tolist())
    many = ic.Domain.of({f"a{place}": 100 for place in range(8)})
    columns = {
        "age": rng.integers(17, 91, count),
        "hours": rng.integers(0, 100, count),
        "answer": labels[rng.integers(0, 4, count)],
    }
    wider = {name: rng.integers(0, 100, count) for name in many.names}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])

        def by_hand() -> Any:
            codes = (columns["age"] - 17) * 100 + columns["hours"]
            return np.bincount(codes, minlength=7_400)

        calls: dict[str, Callable[[], Any]] = {
            "numpy alone, 2 integers": by_hand,
            "from_records, 3 attributes": partial(ic.PrivateData.from_records, columns, few),
            "from_records, 8 attributes, 1e16 cells": partial(ic.PrivateData.from_records, wider, many),
            "from_csv, 3 attributes": partial(ic.PrivateData.from_csv, path, few),
        }
        for name, call in calls.items():
            before = forget_peak()
            seconds, _ = timed(call)
            peak = peak_bytes(before)
            yield {
                "name": f"{name}, {count:,} rows",
                "seconds": seconds / count,
                "bytes_each": None if peak is None else peak / count,
            }


def parts(grid: Grid) -> dict[str, Callable[[Grid], Iterator[Row]]]:
    largest = max(cells for cells in grid.scale.cells if cells <= 1_000_000)
    return {
        **{
            f"one query, {cells:,} cells": partial(single, partial(table, cells, RECORDS, 1))
            for cells in grid.scale.cells
        },
        **{
            f"one query, {len(shape)} attributes of {shape[0]} codes": partial(
                single, partial(records, shape, RECORDS, np.random.default_rng(1))
            )
            for shape in grid.scale.shapes
        },
        **{
            f"hits, {' x '.join(map(str, shape))} cells": partial(hits, shape)
            for shape in grid.scale.hit_shapes
        },
        f"batch of {grid.scale.batch:,}, {largest:,} cells": partial(batch, largest),
        "distinct queries": distinct,
        "Adult, 14 attributes": partial(wide, "adult"),
        **{
            f"{label}, n = {grid.scale.records:,}": partial(wide, kind)
            for kind, label in (
                ("latent_classes", "six classes, 20 attributes of 8 codes"),
                ("chain", "chain of 20 attributes of 8 codes"),
            )[: grid.scale.tables]
        },
        "loading, a row": loading,
    }


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    made = parts(GRIDS[metafunc.config.getoption("--grid")])
    metafunc.parametrize(("part", "measure"), list(made.items()), ids=list(made))


def test_scale(
    request: pytest.FixtureRequest,
    record: Any,
    grid: Grid,
    part: str,
    measure: Callable[[Grid], Iterator[Row]],
) -> None:
    benchmark = request.getfixturevalue("benchmark")
    benchmark.group = "scale"
    rows = benchmark.pedantic(lambda: list(measure(grid)), rounds=1, iterations=1, warmup_rounds=0)
    for row in rows:
        record("scale", part=part, baseline=rows[0]["name"], **row)
