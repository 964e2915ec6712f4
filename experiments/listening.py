"""Tables that are bought by what is asked, beside those that were announced, and hits alone.

    python experiments/listening.py [--quick] [--from-json] [--only STREAM ..]

The first 2,000 questions of streams of the gallery, two of them ranges of one long attribute; the same
2,000 questions about five attributes of Adult, asked of a table of five, of eight and of all fourteen;
questions about all of Adult's five attributes, of a million records drawn from it with replacement.
At (1, 1e-9), and the five attributes of eight and of fourteen at epsilon = 1, delta = 0 too; simulated
noise: NOT PRIVATE.

Beside `DemandPurchases`, asked one question at a time, stand the same session asked 256 in a call, of which
it hears all before it answers the first; one that buys nothing without a test (`TestsOnly`, the book's loop);
and one to which the sets of attributes were announced.
Writes results/listening.json; the markdown table and the figure are made from that file alone.
"""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import default_session, measured, one_seed, script, seeds, stamped
from study.sources import Stream, adult5_data, adult_rows, present, stream_of
from study.streams import Sizes, makers

import onlineic as ic
from onlineic.datasets import adult5
from onlineic.evaluate import random_stream
from onlineic.plan import DemandPurchases, TestsOnly

NAME = "listening"
BUDGET = ic.Budget(1.0, 1e-9)
PURE = ", delta = 0"  # ends the label of a stream that is asked at epsilon = 1 alone
GALLERY = ("adult6", "adult5", "HEPTH", "GROSS")
FIVE = ("age", "education-num", "race", "sex", "income>50K")
EIGHT = (*FIVE, "workclass", "marital-status", "relationship")
SIZES = {  # codes of all attributes of the table
    "age": 85, "workclass": 9, "fnlwgt": 100, "education-num": 16, "marital-status": 7, "occupation": 15,
    "relationship": 6, "race": 5, "sex": 2, "capital-gain": 100, "capital-loss": 100, "hours-per-week": 99,
    "native-country": 42, "income>50K": 2,
}  # fmt: skip
LONG = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
SESSIONS: dict[str, Mapping[str, Any]] = {
    "by what is asked": {"purchases": DemandPurchases()},
    "tests only": {"purchases": TestsOnly()},
}
CALLS = "256 a call"
ORDER = (
    *GALLERY,
    "five of 5",
    "five of 8",
    "five of 14",
    f"five of 8{PURE}",
    f"five of 14{PURE}",
    "a million records",
)


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    queries: int = 2_000  # of the gallery's streams, at most
    few: int = 2_000  # of the others
    records: int = 10**6
    runs: int = 3
    seed: int = 20261126


def of_five(names: tuple[str, ...] | None, config: Config) -> Stream:
    """Return questions about five attributes of a table of so many; None: of all."""
    rows, kept = adult_rows(), tuple(SIZES) if names is None else names
    domain = ic.Domain.of({name: range(SIZES[name]) if name in LONG else SIZES[name] for name in kept})
    data = ic.PrivateData.from_records({name: [int(row[name]) for row in rows] for name in kept}, domain)
    rng, asked = np.random.default_rng(config.seed), []
    for _ in range(config.few):
        conditions: dict[str, Any] = {}
        for name in rng.choice(FIVE, rng.integers(1, 4), replace=False).tolist():
            low, high = sorted(rng.integers(0, SIZES[name], 2).tolist())
            conditions[name] = ic.between(low, high) if name in LONG else low
        asked.append(ic.where(conditions))
    return stream_of(f"five of {len(kept)}", data, asked)


def many_records(config: Config) -> Stream:
    """Return random questions over records that are drawn from Adult's five attributes with replacement."""
    domain, (columns, counts) = adult5_data().domain, adult5()
    drawn = np.random.default_rng(config.seed).multinomial(config.records, counts / counts.sum())
    data = ic.PrivateData.from_counts(columns, drawn, domain)
    return stream_of("a million records", data, random_stream(domain, config.few, config.seed))


def makers_of(config: Config) -> dict[str, Any]:
    """Return label -> maker of every stream."""
    gallery = makers(Sizes(queries=config.queries))
    found = {label: gallery[label] for label in GALLERY}
    sets = {"five of 5": FIVE, "five of 8": EIGHT, "five of 14": None}
    found |= {label: partial(of_five, names, config) for label, names in sets.items()}
    found |= {f"{label}{PURE}": found[label] for label in ("five of 8", "five of 14")}
    return {**found, "a million records": partial(many_records, config)}


def row_of(stream: Stream, config: Config) -> dict[str, Any]:
    """Return the engines on one stream."""
    began, drawn = time.process_time(), seeds(config.seed, config.runs)
    budget = ic.Budget(BUDGET.epsilon) if stream.label.endswith(PURE) else BUDGET
    sessions = {label: default_session(stream, budget, **held) for label, held in SESSIONS.items()}
    sessions["announced"] = default_session(stream, budget, questions=stream.sets)
    engines = [measured(label, make, stream, drawn, timing="single") for label, make in sessions.items()]
    engines.append(measured(CALLS, sessions["by what is asked"], stream, drawn))
    return {
        "stream": stream.label,
        "n": stream.data.n,
        "cells": stream.data.domain.size,
        "queries": len(stream.queries),
        "engines": engines,
        "seconds": time.process_time() - began,
    }


def run(quick: bool, only: list[str]) -> dict[str, Any]:
    start = time.perf_counter()
    config = Config(queries=100, few=40, runs=1) if quick else Config()
    chosen = only or (["a million records"] if quick else list(ORDER))
    absent: list[str] = []
    asked = {label: make for label, make in makers_of(config).items() if label in chosen}
    rows = [row_of(attrs.evolve(one, label=label), config) for label, one in named(asked, absent)]
    return stamped(config, start, absent, rows=rows)


def named(asked: Mapping[str, Any], absent: list[str]) -> Any:
    """Yield label and stream of those whose table is there."""
    for label, make in asked.items():
        for stream in present({label: make}, absent):
            yield label, stream


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, place = Config(), ORDER.index("a million records")
    stream = attrs.evolve(many_records(config), label="a million records")
    make = default_session(stream, BUDGET, **SESSIONS["by what is asked"])
    where, seed = f"rows/{place}/engines/{len(SESSIONS) + 1}", seeds(config.seed, config.runs)[0]
    return {f"rows/{place}/stream": stream.label} | one_seed(where, CALLS, make, stream, seed)


def table(result: dict[str, Any]) -> str:
    """Return rms in 1e-5 of the records, by stream and engine."""
    labels = (*SESSIONS, "announced", CALLS)
    lines = [
        "| table and stream | n | " + " | ".join(labels) + " | hard | s |",
        "|---|---" + "|---" * (len(labels) + 2) + "|",
    ]
    for row in result["rows"]:
        found = {one["engine"]: one for one in row["engines"]}
        errors = [f"{1e5 * found[label]['rms']:,.1f}" if label in found else "" for label in labels]
        own = found["by what is asked"]
        cells = [row["stream"], f"{row['n']:,}", *errors, f"{own['hard']:.1f}", f"{own['seconds']:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw the errors of the sessions over that of the default, one group a stream; needs matplotlib."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 5), layout="constrained")
    axes = drawn.subplots()
    for place, label in enumerate(("announced", "tests only")):
        ratios = []
        for row in result["rows"]:
            found = {one["engine"]: one["rms"] for one in row["engines"]}
            ratios.append(found[label] / found["by what is asked"])
        axes.plot(ratios, range(len(ratios)), "osD"[place], label=label)
    axes.set_yticks(range(len(result["rows"])), [row["stream"] for row in result["rows"]])
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("rms error over that of purchases by what is asked")
    axes.grid(axis="both", alpha=0.3)
    axes.legend()
    axes.invert_yaxis()
    drawn.savefig(path, dpi=120)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure, ORDER)
