"""Tables that stay where they live, beside tables whose rows come by: time and memory of a session.

    python experiments/counted_elsewhere.py [--quick] [--from-json]

Ten columns of 1,179,648,000 cells together in one Parquet file, read by DuckDB, or by Spark `local[2]` where
pyspark and Java are installed; 30 questions about two and three of them. Each way runs in a process of its
own: seconds to load and to answer, and megabytes of that process at its peak beyond what it held before. The
answers must be the same to the last digit, under the same simulated noise: NOT PRIVATE. Needs duckdb,
narwhals, polars and pyarrow.
Writes results/counted_elsewhere.json; the markdown table and the figure are made from that file alone.
"""

import hashlib
import importlib.util
import multiprocessing
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, stamped

import onlineic as ic

NAME = "counted_elsewhere"
CODES = (80, 2, 8, 16, 20, 6, 5, 4, 3, 8)
WAYS = {
    "all rows come by": "rows",
    "counted on demand": "on demand",
    "counted on demand by Spark": "on demand",
}
SPARK = "counted on demand by Spark"  # the megabytes are those of the driver's Python, the JVM is apart


@attrs.frozen
class Config:
    """What is run."""

    rows: tuple[int, ...] = (1_000_000, 10_000_000)
    questions: int = 30
    seed: int = 3


def made(path: Path, rows: int) -> None:
    """Write a table whose neighbouring columns depend on each other."""
    import duckdb

    columns = ["hash(i) % 80 AS c0"]
    for place, size in enumerate(CODES[1:], 1):
        columns.append(f"(hash(i) % 80 // {place + 2} + hash(i * 16 + {place}) % 3) % {size} AS c{place}")
    duckdb.sql(f"COPY (SELECT {', '.join(columns)} FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")


def megabytes(name: str) -> float:
    """Return what this process holds, or held at its peak, as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024.0 for line in lines if line.startswith(name))


def asked(domain: ic.Domain, config: Config) -> list[Any]:
    """Return questions about two and three attributes in turn."""
    rng, found = np.random.default_rng(config.seed), []
    for place in range(config.questions):
        conditions = {}
        for axis in rng.choice(len(CODES), 2 + place % 2, replace=False).tolist():
            low, high = sorted(rng.integers(0, CODES[axis], 2).tolist())
            conditions[domain.names[axis]] = ic.between(low, high)
        found.append(ic.where(conditions))
    return found


def one_way(path: str, way: str, config: Config) -> dict[str, Any]:
    """Return what a session costs that reads the file in one way, and a digest of its answers."""
    domain = ic.Domain.of({f"c{place}": range(size) for place, size in enumerate(CODES)})
    before, start = megabytes("VmRSS"), time.perf_counter()
    data = ic.PrivateData.from_frame(by_spark(path) if way == SPARK else path, domain, counting=WAYS[way])
    loaded = time.perf_counter()
    noise = ic.noise.SimulatedNoise(config.seed)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-12), noise=noise)
    answers = [session.answer(question) for question in asked(domain, config)]
    said = repr([(one.value, one.status, one.error_bound) for one in answers])
    return {
        "way": way,
        "load": loaded - start,
        "answer": time.perf_counter() - loaded,
        "megabytes": megabytes("VmHWM") - before,
        "digest": hashlib.sha256(said.encode()).hexdigest()[:16],
    }


def by_spark(path: str) -> Any:
    """Return the file as a frame of Spark on two cores of this machine."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.memory", "4g").getOrCreate().read.parquet(path)


def spark_is_here() -> bool:
    """Whether Spark can be started."""
    return importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None


def run(quick: bool) -> dict[str, Any]:
    start, config = time.perf_counter(), Config(rows=(20_000,), questions=4) if quick else Config()
    found, spawn = [], multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for rows in config.rows:
            path = Path(folder, f"{rows}.parquet")
            made(path, rows)
            for way in WAYS if spark_is_here() and not quick else [way for way in WAYS if way != SPARK]:
                with spawn.Pool(1) as alone:
                    found.append({"rows": rows, **alone.apply(one_way, (str(path), way, config))})
    return stamped(config, start, rows=found)


def table(result: dict[str, Any]) -> str:
    """Return seconds and megabytes by number of rows and way."""
    lines = [
        "| rows | how | load, s | answers, s | MB | answers |",
        "|---|---|---|---|---|---|",
    ]
    first = {row["rows"]: row["digest"] for row in reversed(result["rows"])}
    for row in result["rows"]:
        same = "the same" if row["digest"] == first[row["rows"]] else "others"
        cells = [f"{row['rows']:,}", row["way"], f"{row['load']:.1f}", f"{row['answer']:.1f}"]
        lines.append(f"| {' | '.join([*cells, str(round(row['megabytes'])), same])} |")
    return "\n".join(lines)


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw seconds and megabytes by way; needs matplotlib."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 3.5), layout="constrained")
    left, right = drawn.subplots(1, 2, sharey=True)
    labels = [f"{row['rows']:,}, {row['way']}" for row in result["rows"]]
    places = range(len(labels))
    left.barh(places, [row["load"] for row in result["rows"]], label="load")
    left.barh(
        places,
        [row["answer"] for row in result["rows"]],
        left=[row["load"] for row in result["rows"]],
        label="answers",
    )
    left.set_yticks(places, labels)
    left.set_xlabel("seconds")
    left.legend()
    right.barh(places, [row["megabytes"] for row in result["rows"]], color="grey")
    right.set_xlabel("megabytes beyond the start")
    left.invert_yaxis()
    drawn.savefig(path, dpi=120)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
