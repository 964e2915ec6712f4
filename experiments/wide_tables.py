"""Tables of many attributes: how long a default session takes to open, and what its answers err by.

    python experiments/wide_tables.py [--quick] [--from-json]

Attributes that lean on four hidden traits, binary or of more codes, from 30 to 1,100 of them; random
questions of one to three attributes, of 10,000 that are announced, at (1, 1e-9). Simulated noise: NOT
PRIVATE. Beside the session stands noise on every answer, calibrated for all that are announced, as the
forecast has it. Seconds are of the processor.
Writes results/wide_tables.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, stamped

import onlineic as ic
from onlineic.evaluate import random_stream
from onlineic.noise import SimulatedNoise

NAME = "wide_tables"
BUDGET = ic.Budget(1.0, 1e-9)


@attrs.frozen
class Config:
    """What is run; all seeds come from one number."""

    tables: tuple[tuple[int, int], ...] = (  # attributes, and codes of each
        (30, 2),
        (100, 2),
        (300, 2),
        (301, 2),
        (1100, 2),
        (20, 8),
        (50, 20),
        (60, 20),
    )
    records: tuple[int, ...] = (10_000, 100_000)
    queries: int = 400
    seed: int = 20261127


def table_of(attributes: int, codes: int, n: int, seed: int) -> ic.PrivateData:
    """Return records whose attributes lean on four hidden traits, each in its own way."""
    rng = np.random.default_rng((seed, attributes, codes, n))
    traits, columns = rng.standard_normal((n, 4)), {}
    for place in range(attributes):
        leaning = traits @ (0.8 * rng.standard_normal(4)) + rng.standard_normal() + rng.logistic(size=n)
        cut = np.clip(codes * (0.5 + leaning / 8.0), 0, codes - 1) if codes > 2 else leaning > 0
        columns[f"a{place}"] = cut.astype(np.int64)
    return ic.PrivateData.from_records(columns, ic.Domain.of(dict.fromkeys(columns, codes)))


def row_of(attributes: int, codes: int, n: int, config: Config) -> dict:
    """Return the times and the error of one session."""
    data = table_of(attributes, codes, n, config.seed)
    queries = [query.bind(data.domain) for query in random_stream(data.domain, config.queries, config.seed)]
    truths = data.exact_counts_many(queries) / np.array([n << query.grid_bits for query in queries])
    told = ic.forecast(data.domain, n, BUDGET)
    began = time.process_time()
    session = ic.OnlineIC(data, BUDGET, noise=SimulatedNoise(config.seed))
    answers, moments = [], []
    for query in queries:
        answers.append(session.answer(query))
        moments.append(time.process_time() - began)
    errors = np.array([answer.value for answer in answers]) - truths
    tables = session.plan.first_tables
    return {
        "attributes": attributes,
        "codes": codes,
        "n": n,
        "start": told.start,
        "tables": 0 if tables is None else len(tables.targets),
        "pairs": tables is not None and max(len(target.axes) for target in tables.targets) > 1,
        "opened": moments[0],
        "longest": float(np.diff(moments).max()),
        "rms": math.sqrt(float(np.mean(np.square(errors)))),
        "noise": next(one.rms for one in told.engines if one.engine == "noise on every answer"),
        "hard": sum(answer.status == "hard" for answer in answers),
    }


def run(quick: bool) -> dict:
    config = Config(((20, 2), (6, 4), (301, 2)), (2_000,), queries=30) if quick else Config()
    start = time.perf_counter()
    rows = [
        row_of(attributes, codes, n, config) for attributes, codes in config.tables for n in config.records
    ]
    return stamped(config, start, rows=rows)


def opened_with(row: dict) -> str:
    """Return what a session of this row begins with."""
    if row["start"] != "pairs":
        return row["start"]
    return "pairs" if row["pairs"] else "single attributes"


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    return {"rows/0": row_of(*config.tables[0], config.records[0], config)}


def table(result: dict) -> str:
    lines = [
        "| attributes | codes | n | opens with | tables | seconds to the first answer | longest later one "
        "| rms | noise on every answer | ratio | hard |",
        "|" + "---|" * 11,
    ]
    lines += [
        f"| {row['attributes']:,} | {row['codes']} | {row['n']:,} | {opened_with(row)} | {row['tables']:,} "
        f"| {row['opened']:.3g} | {row['longest']:.2g} | {1e5 * row['rms']:,.0f} "
        f"| {1e5 * row['noise']:,.0f} | {row['rms'] / row['noise']:.2f} | {row['hard']} |"
        for row in result["rows"]
    ]
    return "\n".join([*lines, "", "Errors in 1e-5 of the records."])


def figure(result: dict, path: Path) -> None:
    """Draw the time to the first answer and the error by the number of attributes; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(9.0, 3.4), layout="constrained")
    times, errors = canvas.subplots(1, 2)
    marks = {2: "o", 8: "s", 20: "^"}
    for place, n in enumerate(dict.fromkeys(row["n"] for row in result["rows"])):
        for row in (one for one in result["rows"] if one["n"] == n):
            mark, colour = marks.get(row["codes"], "o"), f"C{place}"
            times.plot(row["attributes"], row["opened"], mark, color=colour)
            errors.plot(row["attributes"], row["rms"] / row["noise"], mark, color=colour)
        errors.plot([], [], "o", color=f"C{place}", label=f"n = {n:,}")
    for codes, mark in marks.items():
        errors.plot([], [], mark, color="black", mfc="none", label=f"{codes} codes")
    errors.axhline(1.0, color="#999999", linewidth=0.8)
    times.set_ylabel("seconds to the first answer")
    errors.set_ylabel("rms / noise on every answer")
    for axes in (times, errors):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("attributes")
        axes.grid(color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
    canvas.legend(loc="outside right upper", fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
