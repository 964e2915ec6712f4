"""The default session against the trivial baselines on every table at hand: who wins where.

    python experiments/datasets.py [--quick] [--from-json]

Adult (five, six and eight attributes), a health survey of 16 binary attributes, four histograms of DPBench
and the two streams of the Turbo comparison, all at (1, 1e-9) with simulated noise: NOT PRIVATE. The baselines
know the number of distinct queries, or the attribute sets, in advance; the session knows the length of the
stream. Tables that have not been fetched are left out.
Writes results/datasets.json; the markdown table and the figure are made from that file alone.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs
from study.outcome import baselines, default_session, measured, script, seeds, stamped
from study.sources import (
    Stream,
    adult5_ranges,
    adult_workload,
    conjunctions,
    covid,
    nltcs,
    one_dimensional,
    present,
    stream_of,
)

import onlineic as ic
from onlineic.evaluate import random_stream

NAME = "datasets"
ENGINES = ("default", "per-query, cached", "one noisy histogram", "noisy tables")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence. `queries`: of the random streams, at most."""

    epsilon: float = 1.0
    delta: float = 1e-9
    queries: int = 10_000
    covid_queries: int = 70_000
    runs: int = 3
    stream_seed: int = 1
    seed: int = 20261121


def streams(config: Config, absent: list[str]) -> Iterator[Stream]:
    """Yield every stream whose table is there, one at a time."""
    size, seed = config.queries, config.stream_seed

    def survey() -> Stream:
        data = nltcs()
        return stream_of("NLTCS, 1-4-way", data, conjunctions(data.domain, size, 4, seed))

    def ranges(label: str, name: str) -> Stream:
        data = one_dimensional(name)
        return stream_of(label, data, random_stream(data.domain, size, seed))

    def conjoined(label: str, exponent: int) -> Stream:
        return covid(exponent).asked(label, config.covid_queries)

    makers = {
        "adult6": partial(adult_workload, "adult6", size),
        "adult5, ranges": partial(adult5_ranges, size, seed),
        "NLTCS, 1-4-way": survey,
        "adult8-2way": partial(adult_workload, "adult8-2way", size),
    }
    for title, name in (
        ("HEPTH", "hepth"),
        ("GROSS", "salaries"),
        ("FRANK", "capital-loss"),
        ("PATENT", "patent"),
    ):
        makers[f"{title}, ranges"] = partial(ranges, f"{title}, ranges", name)
    for exponent in (0, 1):
        makers[f"covid, Zipf {exponent}"] = partial(conjoined, f"covid, Zipf {exponent}", exponent)
    yield from present(makers, absent)


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(queries=300, covid_queries=300, runs=1) if quick else Config()
    budget, drawn = ic.Budget(config.epsilon, config.delta), seeds(config.seed, config.runs)
    rows, absent = [], []
    for stream in streams(config, absent):
        makers = {"default": default_session(stream, budget), **baselines(stream, budget)}
        row = {
            "stream": stream.label,
            "n": stream.data.n,
            "cells": stream.data.domain.size,
            "queries": len(stream.queries),
            "distinct": len({query.key for query in stream.queries}),
            "sets": len(stream.sets),
            "engines": [measured(label, makers[label], stream, drawn) for label in ENGINES],
        }
        rows.append(row)
        print(
            row["stream"], [f"{one['rms']:.2e} {one['seconds']:.1f} s" for one in row["engines"]], flush=True
        )
    return stamped(config, start, absent, rows=rows)


def compared(row: dict) -> tuple[dict, dict]:
    """Return (default session, best baseline)."""
    return row["engines"][0], min(row["engines"][1:], key=lambda one: one["rms"])


def table(result: dict) -> str:
    lines = [
        "| stream | n | cells | queries, distinct | sets | default | cached noise | histogram | tables "
        "| winner | baseline / default | default: max, hard, untested |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        default, best = compared(row)
        ratio = best["rms"] / default["rms"]
        figures = " | ".join(f"{1e5 * one['rms']:,.2f}" for one in row["engines"])
        lines.append(
            f"| {row['stream']} | {row['n']:,} | {row['cells']:,} | {row['queries']:,}, {row['distinct']:,} "
            f"| {row['sets']:,} | {figures} | {'**default**' if ratio > 1.0 else best['engine']} "
            f"| {ratio:.2f} | {default['max']:.4f}, {default['hard']:,.0f}, {default['untested']:,.0f} |"
        )
    return "\n".join([*lines, "", "Errors are rms over all queries and seeds, in 1e-5 of the records."])


def figure(result: dict, path: Path) -> None:
    """Draw every engine's rms relative to the default session's; needs matplotlib."""
    from matplotlib.figure import Figure

    rows = result["rows"][::-1]
    canvas = Figure(figsize=(9.0, 4.6), layout="constrained")
    axes = canvas.add_subplot()
    marks = {
        "per-query, cached": ("o", "#E69F00"),
        "one noisy histogram": ("s", "#009E73"),
        "noisy tables": ("^", "#CC79A7"),
    }
    for place, row in enumerate(rows):
        default = row["engines"][0]["rms"]
        for one, shift in zip(row["engines"][1:], (-0.2, 0.0, 0.2), strict=True):
            mark, colour = marks[one["engine"]]
            label = one["engine"] if place == 0 else None
            axes.plot(one["rms"] / default, place + shift, mark, color=colour, label=label)
        if place % 2:
            axes.axhspan(place - 0.5, place + 0.5, color="#F3F3F3", zorder=0)
    axes.axvline(1.0, color="#0072B2", linewidth=2.0, label="default session")
    axes.set_xscale("log")
    axes.set_ylim(-0.5, len(rows) - 0.5)
    axes.set_yticks(range(len(rows)), [f"{row['stream']}  (n = {row['n']:,})" for row in rows], fontsize=9)
    axes.set_xlabel("rms error / rms error of the default session (left of the line: the baseline wins)")
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), fontsize=8, ncols=4)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
