"""Where refits start a new table: from its own gaps, shrunk as far as its noise says, or from nothing.

    python experiments/new_tables.py [--quick] [--from-json]

Default sessions over streams with hits, at (1, 1e-9): as they are, and with the potentials of a new table
at zero. Real tables, also with more records drawn from them, and made-up ones, the widest of 2e7 cells. Of
drawn and wide tables 20,000 questions are announced, 4,000 come. Simulated noise: NOT PRIVATE.
Writes results/new_tables.json; the markdown table and the figure are made from that file alone.
"""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import many_records
import numpy as np
from study.outcome import default_session, measured, one_seed, script, seeds, stamped
from study.sources import Stream, stream_of
from study.streams import Sizes, budget_of, makers, quick_sizes, streams

import onlineic as ic

NAME = "new_tables"
STARTS = ("own gaps", "zero")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    sizes: Sizes = attrs.field(factory=Sizes)
    names: tuple[str, ...] = ("bin17", "no structure, ranges", "chain of 5", "adult5, 1,000 asked")
    larger: many_records.Config = attrs.field(
        factory=lambda: many_records.Config(
            real=(("adult6", 200_000), ("adult6", 1_000_000), ("NLTCS", 200_000), ("adult5", 200_000)),
            made=((60, 60, 70, 80),),
            laws=("mixture",),
        )
    )
    linked: tuple[int, ...] = (60, 60, 70, 80)
    records: int = 1_000_000
    triples: int = 2_000  # ranges of three attributes, of ten times as many that are announced
    runs: int = 4
    seed: int = 20261126


def asked(config: Config, absent: list[str]) -> Iterator[tuple[Stream, ic.Budget, int]]:
    """Yield every stream with its budget and the length that its session is told."""
    for stream in streams(config.sizes, absent, config.names):
        yield stream, budget_of(stream), len(stream.queries)
    for stream in many_records.tables(config.larger, absent):
        yield stream, ic.Budget(1.0, 1e-9), config.larger.told
    yield linked(config), ic.Budget(1.0, 1e-9), 10 * config.triples


def linked(config: Config) -> Stream:
    """Return a table of which each attribute leans on the two before it, and ranges of three attributes."""
    rng, shape = np.random.default_rng(config.seed), config.linked
    domain = ic.Domain.of({f"a{place}": size for place, size in enumerate(shape)})
    kind, parts = rng.integers(0, 4, config.records), []
    for place in range(len(shape)):
        centres, widths = rng.random(4), 0.05 + 0.2 * rng.random(4)
        part = centres[kind] + widths[kind] * rng.standard_normal(config.records)
        if place > 1:
            part += 0.3 * (1 + (parts[-2] > 0.5)) * (parts[-1] - 0.5) * (1 if place % 2 else -1)
        parts.append(np.clip(part, 0.0, 1.0 - 1e-9))
    records = {
        f"a{place}": (part * size).astype(np.int64)
        for place, (part, size) in enumerate(zip(parts, shape, strict=True))
    }
    queries = []
    for _ in range(config.triples):
        chosen = {}
        for place in rng.choice(len(shape), 3, replace=False).tolist():
            low, high = sorted(rng.integers(0, shape[place], 2).tolist())
            chosen[f"a{place}"] = ic.between(low, high)
        queries.append(ic.where(chosen))
    return stream_of("linked, triples", ic.PrivateData.from_records(records, domain), queries)


def nothing(masses: np.ndarray, values: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return potentials that move nothing."""
    return np.zeros(len(values))


def row_of(stream: Stream, budget: ic.Budget, told: int, config: Config) -> dict:
    """Return the errors of both starts."""
    opened, engines = default_session(stream, budget, max_queries=told), []
    for label in STARTS:
        zero = label == "zero"
        with patch("onlineic.hypothesis.fitting._first_potentials", nothing) if zero else nullcontext():
            engines.append(measured(label, opened, stream, seeds(config.seed, config.runs)))
    data = stream.data
    return {"stream": stream.label, "n": data.n, "cells": data.domain.size, "engines": engines}


def run(quick: bool) -> dict:
    config = Config()
    if quick:
        larger = many_records.Config(
            real=(("adult5", 200_000),), made=((2,) * 8,), records=10_000, queries=60
        )
        config = Config(quick_sizes(), ("chain of 5",), attrs.evolve(larger, laws=("mixture",)))
        config = attrs.evolve(config, linked=(6, 6, 7, 8), records=10_000, triples=60, runs=1)
    start, absent, rows = time.perf_counter(), [], []
    for stream, budget, told in asked(config, absent):
        rows.append(row_of(stream, budget, told, config))
    return stamped(config, start, absent, rows=rows)


def of_seeds(row: dict) -> list[float]:
    """Return the ratio of the errors of each seed."""
    own, zero = (engine["rms_by_seed"] for engine in row["engines"])
    return [one / other for one, other in zip(own, zero, strict=True)]


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, label = Config(), "chain of 5"
    stream = makers(config.sizes)[label]()
    make = default_session(stream, budget_of(stream), max_queries=len(stream.queries))
    place, seed = f"rows/{config.names.index(label)}", seeds(config.seed, config.runs)[0]
    return {f"{place}/stream": label} | one_seed(f"{place}/engines/0", next(iter(STARTS)), make, stream, seed)


def table(result: dict) -> str:
    lines = [
        "| stream | n | cells | rms, own gaps | zero | ratio | of seeds | hard, own gaps | zero |",
        "|" + "---|" * 9,
    ]
    for row in result["rows"]:
        own, zero = row["engines"]
        ratios = of_seeds(row)
        lines.append(
            f"| {row['stream']} | {row['n']:,} | {row['cells']:,} | {1e5 * own['rms']:.3g} "
            f"| {1e5 * zero['rms']:.3g} | {own['rms'] / zero['rms']:.2f} "
            f"| {min(ratios):.2f} to {max(ratios):.2f} | {own['hard']:.1f} | {zero['hard']:.1f} |"
        )
    return "\n".join([*lines, "", "Rms errors in 1e-5 of the records."])


def figure(result: dict, path: Path) -> None:
    """Draw the ratio of the errors, of all seeds together and of each; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(7.0, 3.6), layout="constrained")
    axes = canvas.add_subplot()
    for place, row in enumerate(result["rows"]):
        own, zero = row["engines"]
        ratios = of_seeds(row)
        axes.plot([place] * len(ratios), ratios, "C0.", label="one seed" if not place else None)
        axes.plot(
            place, own["rms"] / zero["rms"], "ko", mfc="none", ms=9, label=None if place else "all seeds"
        )
    axes.axhline(1.0, color="#999999", linewidth=0.8)
    names = [f"{row['stream']}\nn = {row['n']:,}" for row in result["rows"]]
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    axes.set_ylabel("rms, own gaps / zero")
    axes.set_ylim(0.0, None)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    canvas.legend(loc="outside right upper", fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
