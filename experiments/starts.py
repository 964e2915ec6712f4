"""The start that a default session takes against plain noise: few questions, dense ones, any table.

    python experiments/starts.py [--quick] [--from-json]

Five-way Adult with 1 to 1,000 questions; ten binary attributes of a random table without structure, asked for
random subsets, halfspaces, parities and conjunctions; a chain of two to five attributes, each depending on
the one before, where pairs explain everything and a table of all cells wastes its budget. All at
(1, 1e-9) with simulated noise: NOT PRIVATE. The session knows the length of the stream alone; the baselines
know the distinct queries. Writes results/starts.json; table and figure are made from that file alone.
"""

import itertools
import time
from pathlib import Path

import attrs
import numpy as np
from study.outcome import baselines, default_session, measured, script, seeds, stamped
from study.sources import adult5_data, stream_of

import onlineic as ic
from onlineic.evaluate import random_stream

NAME = "starts"
BASELINES = ("per-query, cached", "one noisy histogram")
KINDS = ("subsets", "halfspaces", "parities", "conjunctions")
SIZES = (12, 8, 6, 5, 4)


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    epsilon: float = 1.0
    delta: float = 1e-9
    few: tuple[int, ...] = (1, 5, 30, 60, 100, 300, 1_000)
    dense: int = 300
    chain: int = 1_000
    runs: int = 5
    stream_seed: int = 7
    seed: int = 20261122


def dense_queries(kind, size, generator):
    """Return queries over ten binary attributes."""
    corners = np.array(list(np.ndindex(*(2,) * 10)))
    asked = []
    for _ in range(size):
        three = generator.choice(10, 3, replace=False)
        if kind == "conjunctions":
            asked.append(ic.where({f"b{place}": int(generator.integers(2)) for place in three}))
            continue
        if kind == "subsets":
            inside = generator.integers(0, 2, len(corners))
        elif kind == "halfspaces":
            inside = (corners - 0.5) @ generator.normal(size=10) >= 0.0
        else:
            inside = corners[:, three].sum(axis=1) % 2
        asked.append(ic.dense(np.asarray(inside, np.float64).reshape((2,) * 10)))
    return asked


def distinct(domain, size, seed):
    """Return the first so many different questions of a random stream."""
    found = {}
    for expression in random_stream(domain, 3 * size + 20, seed):
        query = expression.bind(domain)
        if query.constant is None:
            found.setdefault(query.key, expression)
    return list(found.values())[:size]


def chained(depth, records, generator):
    """Return a table of which each attribute is a noisy copy of the one before."""
    codes = [generator.integers(0, SIZES[0], records)]
    for before, size in itertools.pairwise(SIZES[:depth]):
        copied = (codes[-1] * size // before + (generator.random(records) < 0.3)) % size
        codes.append(np.where(generator.random(records) < 0.1, generator.integers(0, size, records), copied))
    domain = ic.Domain.of({f"a{place}": size for place, size in enumerate(SIZES[:depth])})
    return ic.PrivateData(
        np.bincount(np.ravel_multi_index(codes, SIZES[:depth]), minlength=domain.size), domain
    )


def streams(config: Config):
    """Yield every stream, one at a time, and whether its queries are dense."""
    five = adult5_data()
    for size in config.few:
        asked = distinct(five.domain, size, config.stream_seed)
        yield stream_of(f"adult5, {size:,} questions", five, asked), False
    generator = np.random.default_rng(config.stream_seed)
    law = generator.dirichlet(np.full(1024, 0.3))
    loose = ic.PrivateData(generator.multinomial(100_000, law), ic.Domain.of({f"b{i}": 2 for i in range(10)}))
    for kind in KINDS:
        asked = dense_queries(kind, config.dense, generator)
        yield stream_of(f"no structure, {kind}", loose, asked), kind != "conjunctions"
    for depth in range(2, len(SIZES) + 1):
        data = chained(depth, 60_000, generator)
        asked = random_stream(data.domain, config.chain, config.stream_seed)
        yield stream_of(f"chain of {depth}, ranges", data, asked), False


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(few=(1, 30), dense=20, chain=50, runs=1) if quick else Config()
    budget, drawn = ic.Budget(config.epsilon, config.delta), seeds(config.seed, config.runs)
    rows = []
    for stream, dense in streams(config):
        size = len(stream.queries)
        kinds = ("dense",) if dense else ("conjunctions",)
        told = ic.forecast(stream.data.domain, stream.data.n, budget, size, kinds=kinds)
        makers = {"default": default_session(stream, budget), **baselines(stream, budget)}
        row = {
            "stream": stream.label,
            "n": stream.data.n,
            "cells": stream.data.domain.size,
            "questions": size,
            "start": told.start,
            "forecast": min(one.rms for one in told.engines if one.start == told.start),
            "engines": [measured(label, makers[label], stream, drawn) for label in ("default", *BASELINES)],
        }
        rows.append(row)
        print(row["stream"], row["start"], [f"{one['rms']:.2e}" for one in row["engines"]], flush=True)
    return stamped(config, start, rows=rows)


def best(row: dict) -> float:
    return min(one["rms"] for one in row["engines"][1:])


def table(result: dict) -> str:
    lines = [
        "| stream | n | cells | start | forecast | session | cached noise | histogram "
        "| session / best baseline | hard, untested |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        default = row["engines"][0]
        figures = " | ".join(f"{1e5 * one['rms']:,.1f}" for one in row["engines"])
        lines.append(
            f"| {row['stream']} | {row['n']:,} | {row['cells']:,} | {row['start']} "
            f"| {1e5 * row['forecast']:,.1f} | {figures} | {default['rms'] / best(row):.2f} "
            f"| {default['hard']:,.1f}, {default['untested']:,.1f} |"
        )
    return "\n".join([*lines, "", "Errors are rms over all queries and seeds, in 1e-5 of the records."])


def figure(result: dict, path: Path) -> None:
    """Draw the session, its forecast and the better baseline, stream by stream; needs matplotlib."""
    from matplotlib.figure import Figure

    rows = result["rows"][::-1]
    canvas = Figure(figsize=(8.0, 4.8), layout="constrained")
    axes = canvas.add_subplot()
    places = range(len(rows))
    axes.plot([best(row) for row in rows], places, "s", color="#009E73", label="better of two baselines")
    axes.plot([row["forecast"] for row in rows], places, "|", color="black", ms=12, label="forecast")
    axes.plot([row["engines"][0]["rms"] for row in rows], places, "o", color="#0072B2", label="session")
    axes.set_xscale("log")
    axes.set_yticks(places, [f"{row['stream']} ({row['start']})" for row in rows], fontsize=8)
    axes.set_xlabel("rms error, fraction of records")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
