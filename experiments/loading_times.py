"""How long it takes to load a table, and how much memory, by where it comes from.

    python experiments/loading_times.py [--quick] [--from-json]

*Coded*: six columns of small integers, 9,856 cells. *Raw*: five columns of text, an integer, and a number
cut into five bins, 355,200 cells. *Wide*: fourteen columns of integers, 10^14 cells, all rows kept. Each is
loaded in a process of its own, on one thread: seconds of its processor, and megabytes at the peak beyond what
it held with the table (as Linux tells them). A quick run loads all in one process. Sources whose library is
not installed are left out; the result is then left as it was.
Writes results/loading_times.json; the markdown tables and the figure are made from that file alone.
"""

import importlib.util
import math
import multiprocessing
import os
import re
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, stamped

import onlineic as ic

NAME = "loading_times"
LAYOUTS = ("coded", "raw", "wide")
SOURCES = {  # label: libraries
    "arrays of numpy (`from_records`), text as objects": (),
    "pandas": ("narwhals", "pandas"),
    "polars": ("narwhals", "polars"),
    "polars, lazy, from a Parquet file": ("narwhals", "polars"),
    "Arrow": ("narwhals", "polars", "pyarrow"),
    "DuckDB over a Parquet file, reading included": ("narwhals", "polars", "duckdb", "pyarrow"),
    "SQLite in memory": (),
}
LARGE = ("polars", "polars, lazy, from a Parquet file", "DuckDB over a Parquet file, reading included")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "ARROW_NUM_THREADS")
CODED = dict(zip("abcdef", (2, 4, 4, 4, 7, 11), strict=True))
TEXTS = {
    "kind": ["old", "new"],
    "region": ["north", "east", "south", "west", "abroad"],
    "state": ["single", "married", "widowed", "divorced"],
    "size": ["small", "medium", "large"],
    "work": ["farm", "factory", "office", "school", "hospital", "home", "sea", "none"],
}
EDGES = [0, 20, 35, 50, 75, 100]


@attrs.frozen
class Config:
    """What is run."""

    rows: int = 1_000_000
    large: int = 10_000_000
    seed: int = 20261123


def domain_of(layout: str) -> ic.Domain:
    """Return the domain of a layout."""
    if layout == "coded":
        return ic.Domain.of(CODED)
    if layout == "wide":
        return ic.Domain.of({f"column {place}": 10 for place in range(14)})
    return ic.Domain.of({**TEXTS, "age": range(17, 91), "hours": ic.binned(EDGES)})


def columns_of(layout: str, rows: int, seed: int) -> dict[str, Any]:
    """Return columns of numbers; of texts (labels, codes)."""
    rng = np.random.default_rng(seed)
    if layout != "raw":
        sizes = CODED if layout == "coded" else dict.fromkeys(domain_of(layout).names, 10)
        return {name: rng.integers(0, size, rows) for name, size in sizes.items()}
    texts = {name: (labels, rng.integers(0, len(labels), rows)) for name, labels in TEXTS.items()}
    hours = np.minimum(np.round(rng.gamma(8.0, 5.0, rows), 1), 99.9)
    return {**texts, "age": rng.integers(17, 91, rows), "hours": hours}


def objects(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns as arrays, texts as objects."""
    return {
        name: np.array(column[0], object)[column[1]] if isinstance(column, tuple) else column
        for name, column in columns.items()
    }


def polars_frame(columns: dict[str, Any]) -> Any:
    """Return the columns as a frame of polars."""
    import polars

    return polars.DataFrame(
        {
            name: polars.Series(column[0]).gather(column[1]) if isinstance(column, tuple) else column
            for name, column in columns.items()
        }
    )


def made(source: str, columns: dict[str, Any], folder: Path) -> Any:
    """Return a table of a source, which `loaded` takes."""
    if source.startswith("arrays"):
        return objects(columns)
    if source.startswith("SQLite"):
        held = objects(columns)
        names = ", ".join(f'"{name}"' for name in held)
        database = sqlite3.connect(":memory:")
        database.execute(f"CREATE TABLE t ({names})")
        places = ", ".join("?" * len(held))
        rows = zip(*(column.tolist() for column in held.values()), strict=True)
        database.executemany(f"INSERT INTO t VALUES ({places})", rows)
        return database
    if source == "pandas":
        import pandas

        return pandas.DataFrame(objects(columns))
    frame = polars_frame(columns)
    if source == "polars":
        return frame
    if source == "Arrow":
        return frame.to_arrow()
    file = folder / "table.parquet"
    frame.write_parquet(file)
    return file


def loaded(source: str, table: Any, domain: ic.Domain) -> ic.PrivateData:
    """Return the private table."""
    if source.startswith("arrays"):
        return ic.PrivateData.from_records(table, domain)
    if source.startswith("SQLite"):
        return ic.PrivateData.from_dbapi(table, "t", domain)
    if "lazy" in source:
        import polars

        return ic.PrivateData.from_frame(polars.scan_parquet(table), domain)
    if source.startswith("DuckDB"):
        import duckdb

        duckdb.execute("SET threads = 1")
        return ic.PrivateData.from_frame(duckdb.sql(f"SELECT * FROM '{table}'"), domain)
    return ic.PrivateData.from_frame(table, domain)


def memory(field: str) -> float:
    """Return a number of megabytes of this process: VmRSS now, VmHWM at the peak."""
    if not Path("/proc/self/clear_refs").exists():
        return math.nan
    (found,) = re.findall(rf"^{field}:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    return int(found) / 1024


def measured(source: str, layout: str, rows: int, seed: int) -> dict[str, Any]:
    """Return one row; run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        domain = domain_of(layout)
        columns = columns_of(layout, rows, seed)
        loaded(
            source, made(source, columns_of(layout, 100, seed), Path(folder)), domain
        )  # imports, first use
        table = made(source, columns, Path(folder))
        del columns
        if Path("/proc/self/clear_refs").exists():
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        held, began, clock = memory("VmRSS"), time.process_time(), time.perf_counter()
        data = loaded(source, table, domain)
        seconds, wall = time.process_time() - began, time.perf_counter() - clock
        if data.n != rows:
            raise ValueError(f"rows must all be loaded, got {data.n} of {rows}")
        return {
            "source": source,
            "layout": layout,
            "rows": rows,
            "seconds": seconds,
            "wall": wall,
            "megabytes": memory("VmHWM") - held,
            "loading": data.loading,
        }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(rows=20_000, large=40_000) if quick else Config()
    there = {
        source: [library for library in needed if importlib.util.find_spec(library) is None]
        for source, needed in SOURCES.items()
    }
    absent = sorted({library for lacking in there.values() for library in lacking})
    asked = [
        (source, layout, rows)
        for rows, sources in ((config.rows, [*SOURCES]), (config.large, LARGE))
        for source in sources
        for layout in LAYOUTS
        if not there[source]
    ]
    os.environ |= dict.fromkeys(THREADS, "1")
    if quick:
        rows = [measured(*each, config.seed) for each in asked]
    else:
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            rows = [pool.apply(measured, (*each, config.seed)) for each in asked]
    return stamped(config, start, absent=[f"{name} (pip install {name})" for name in absent], rows=rows)


def table(result: dict) -> str:
    lines = []
    for rows in (result["config"]["rows"], result["config"]["large"]):
        lines += [f"| source, {rows:,} rows | {' | '.join(LAYOUTS)} |", "|---|" + "---|" * len(LAYOUTS)]
        held = [row for row in result["rows"] if row["rows"] == rows]
        for source in dict.fromkeys(row["source"] for row in held):
            found = {row["layout"]: row for row in held if row["source"] == source}
            cells = [
                f"{found[layout]['seconds']:.2g} ({found[layout]['megabytes']:,.0f})" for layout in LAYOUTS
            ]
            lines.append(f"| {source} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, "Seconds of the processor, and megabytes at the peak beyond the table itself."])


def figure(result: dict, path: Path) -> None:
    """Draw the seconds of the smaller tables; needs matplotlib."""
    from matplotlib.figure import Figure

    held = [row for row in result["rows"] if row["rows"] == result["config"]["rows"]]
    sources = list(dict.fromkeys(row["source"] for row in held))
    canvas = Figure(figsize=(8.0, 3.8), layout="constrained")
    axes = canvas.add_subplot()
    for place, (layout, colour) in enumerate(zip(LAYOUTS, ["#0072B2", "#E69F00", "#009E73"], strict=True)):
        seconds = [row["seconds"] for row in held if row["layout"] == layout]
        axes.barh(np.arange(len(sources)) + 0.27 * (place - 1), seconds, 0.25, color=colour, label=layout)
    axes.set_yticks(range(len(sources)), [source.replace("`", "") for source in sources], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(f"seconds for {result['config']['rows']:,} rows, one thread")
    canvas.legend(loc="outside upper right", ncols=len(LAYOUTS), fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
