"""Two hundred tables and streams that nothing was tuned on: a default session beside its rivals.

    python experiments/unseen_tables.py [--quick] [--from-json]

Each table has 1 to 6 attributes of 2 to 150 codes, at most 60,000 cells and 100 to 10^7 records. Its law
is drawn too: even or uneven cells, few of them, independent attributes, mixtures, chains of attributes of
which each depends on the one before. Each stream has 1 to 2,000 distinct queries: single codes, ranges of one
attribute, conjunctions of up to three conditions, or the library's random stream; epsilon is .1, .3, 1 or 3,
and delta 0, 1e-9 or 1e-6. Sessions are told the number of queries and nothing else.

Regret is the session's rms error over that of the better of noise on every query, whose number it is told,
and one noisy histogram. Simulated noise: NOT PRIVATE.
Writes results/unseen_tables.json; the markdown tables and the figure are made from that file alone.
"""

import math
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import baselines, default_session, measured, script, stamped
from study.sources import Stream, stream_of

import onlineic as ic
from onlineic.evaluate import random_stream
from onlineic.progress import advance

NAME = "unseen_tables"
RIVALS = ("per-query, cached", "one noisy histogram")
STARTS = ("numbers", "cells", "levels", "pairs")
LAWS = ("even", "few cells", "independent", "mixture", "chain")
KINDS = ("single codes", "ranges", "conjunctions", "random stream")


@attrs.frozen
class Config:
    """What is drawn; all seeds come from one SeedSequence."""

    tables: int = 200
    most_cells: int = 60_000
    longest: int = 150  # codes of an attribute
    most_queries: int = 2_000
    answers: int = 300  # of a stream over all runs, at the least, with 3 to so many runs:
    most_runs: int = 40
    seed: int = 20261123


def shape_of(config: Config, generator: np.random.Generator) -> list[int]:
    """Return the number of codes of 1 to 6 attributes."""
    attributes = int(generator.integers(1, 7))
    left, shape = 10 ** generator.uniform(0.5, math.log10(config.most_cells)), []
    for place in range(attributes):
        even = left ** (1.0 / (attributes - place)) * generator.uniform(0.4, 2.5)
        shape.append(int(np.clip(round(even), 2, config.longest)))
        left = max(left / shape[-1], 1.01)
    return shape


def product_of(shape: list[int], generator: np.random.Generator) -> np.ndarray:
    masses = np.ones(())
    for length in shape:
        law = generator.dirichlet(np.full(length, 10 ** generator.uniform(-1.0, 0.5)))
        masses = np.multiply.outer(masses, law)
    return masses


def law_of(name: str, shape: list[int], generator: np.random.Generator) -> np.ndarray:
    """Return the probability of every cell."""
    cells = math.prod(shape)
    if name == "even":
        return generator.dirichlet(np.full(cells, 10 ** generator.uniform(-1.5, 1.0)))
    if name == "few cells":
        masses, count = np.zeros(cells), min(cells, int(generator.integers(1, 50)))
        masses[generator.choice(cells, count, replace=False)] = generator.dirichlet(np.ones(count))
        return masses
    if name == "chain":
        masses = generator.dirichlet(np.ones(shape[0]))
        for length in shape[1:]:
            masses = masses[..., None] * generator.dirichlet(np.full(length, 0.3), size=masses.shape[-1])
        return masses.ravel()
    parts = int(generator.integers(2, 12)) if name == "mixture" else 1
    weights = generator.dirichlet(np.ones(parts))
    return sum(weight * product_of(shape, generator) for weight in weights).ravel()


def condition_of(kind: str, length: int, generator: np.random.Generator) -> Any:
    """Return a code, or a range of codes."""
    if kind == "single codes" or (kind == "conjunctions" and generator.random() < 0.5):
        return int(generator.integers(length))
    low, high = sorted(generator.choice(length + 1, 2, replace=False).tolist())
    return ic.between(low, high - 1)


def queries_of(kind: str, domain: ic.Domain, size: int, generator: np.random.Generator) -> list[Any]:
    """Return up to `size` distinct queries that are not constant."""
    wanted = 4 * size + 20
    if kind == "random stream":
        asked = random_stream(domain, wanted, int(generator.integers(2**32)))
    else:
        asked = []
        for _ in range(wanted):
            order = 1 if kind == "ranges" else int(generator.integers(1, min(len(domain.shape), 3) + 1))
            held = generator.choice(len(domain.shape), order, replace=False)
            asked.append(
                ic.where(
                    {domain.names[axis]: condition_of(kind, domain.shape[axis], generator) for axis in held}
                )
            )
    distinct = {}
    for expression in asked:
        query = expression.bind(domain)
        if query.constant is None:
            distinct.setdefault(query.key, expression)
    return list(distinct.values())[:size]


def drawn(config: Config, seed: np.random.SeedSequence) -> tuple[dict[str, Any], Stream, ic.Budget] | None:
    """Return what was drawn in words, the stream and the budget, or None if it is too large or empty."""
    generator = np.random.default_rng(seed)
    shape = shape_of(config, generator)
    n = int(10 ** generator.uniform(2.0, 7.0))
    law, kind = str(generator.choice(LAWS)), str(generator.choice(KINDS))
    budget = ic.Budget(
        float(generator.choice([0.1, 0.3, 1.0, 1.0, 1.0, 3.0])),
        float(generator.choice([0.0, 1e-9, 1e-9, 1e-6])),
    )
    size = int(10 ** generator.uniform(0.0, math.log10(config.most_queries)))
    if math.prod(shape) > config.most_cells:
        return None
    domain = ic.Domain.of({f"a{axis}": length for axis, length in enumerate(shape)})
    masses = np.maximum(law_of(law, shape, generator), 0.0)
    data = ic.PrivateData(generator.multinomial(n, masses / masses.sum()).reshape(shape), domain)
    queries = queries_of(kind, domain, size, generator)
    if not queries:
        return None
    said = {"shape": shape, "n": n, "law": law, "kind": kind, "queries": len(queries)}
    said |= {"epsilon": budget.epsilon, "delta": budget.delta}
    return said, stream_of("", data, queries), budget


def row_of(said: dict[str, Any], stream: Stream, budget: ic.Budget, config: Config, entropy: int) -> dict:
    began, queries = time.process_time(), said["queries"]
    runs = int(min(config.most_runs, max(3, config.answers // queries)))
    seeds = [entropy + run for run in range(runs)]
    told = ic.forecast(stream.data.domain, said["n"], budget, questions=queries)
    session = measured("session", default_session(stream, budget), stream, seeds)
    rivals = baselines(stream, budget)
    rms = {label: measured(label, rivals[label], stream, seeds)["rms"] for label in RIVALS if label in rivals}
    best = min(rms, key=lambda label: rms[label])
    return {
        **said,
        "runs": runs,
        "start": told.start,
        "forecast": min(one.rms for one in told.engines if one.start == told.start),
        "rms": session["rms"],
        "hard": session["hard"],
        "untested": session["untested"],
        "within_bound": session["within_bound"],
        "rivals": rms,
        "best": best,
        "regret": session["rms"] / max(rms[best], 1e-15),
        "seconds": time.process_time() - began,
    }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(tables=6, most_cells=200, most_queries=20, answers=1, most_runs=3) if quick else Config()
    rows: list[dict] = []
    for seed in np.random.SeedSequence(config.seed).spawn(10 * config.tables):
        found = drawn(config, seed)
        if found is not None:
            rows.append(row_of(*found, config, int(seed.generate_state(1, np.uint32)[0])))
            advance(NAME, len(rows), config.tables)
        if len(rows) == config.tables:
            break
    return stamped(config, start, rows=rows)


def summary(rows: list[dict]) -> str:
    regrets = np.array([row["regret"] for row in rows])
    beyond = " | ".join(f"{(regrets > limit).mean():.0%}" for limit in (1.3, 2.0))
    middle = f"{np.exp(np.log(regrets).mean()):.2f} | {np.median(regrets):.2f}"
    return f"{len(rows)} | {middle} | {beyond} | {regrets.max():.2f}"


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    for seed in np.random.SeedSequence(config.seed).spawn(10 * config.tables):
        found = drawn(config, seed)
        if found is not None:
            return {"rows/0": row_of(*found, config, int(seed.generate_state(1, np.uint32)[0]))}
    return {}


def table(result: dict) -> str:
    rows = result["rows"]
    lines = ["| start | tables | mean (geometric) | median | above 1.3 | above 2 | worst |", "|" + "---|" * 7]
    for label in STARTS:
        held = [row for row in rows if row["start"] == label]
        lines += [f"| {label} | {summary(held)} |"] if held else []
    lines += [f"| all | {summary(rows)} |"]
    many = [row for row in rows if row["queries"] >= 30]
    lines += [f"| all of 30 queries or more | {summary(many)} |"] if many else []
    lines += [
        "",
        "| cells | n | law | ε, δ | asked | start | session | rival | regret |",
        "|" + "---|" * 9,
    ]
    for row in sorted(rows, key=lambda row: -row["regret"])[:8]:
        cells = " x ".join(map(str, row["shape"]))
        asked, best = f"{row['queries']:,} {row['kind']}", row["rivals"][row["best"]]
        lines.append(
            f"| {cells} | {row['n']:,} | {row['law']} | {row['epsilon']:g}, {row['delta']:g} | {asked} "
            f"| {row['start']} | {row['n'] * row['rms']:.3g} | {row['n'] * best:.3g}, {row['best']} "
            f"| {row['regret']:.2f} |"
        )
    return "\n".join([*lines, "", "Regret, and of the eight worst the rms errors in records."])


COLOURS = {"numbers": "#E69F00", "cells": "#0072B2", "levels": "#009E73", "pairs": "#CC79A7"}


def figure(result: dict, path: Path) -> None:
    """Draw every table's regret against the number of queries; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = canvas.add_subplot()
    for label in STARTS:
        held = [row for row in result["rows"] if row["start"] == label]
        if held:
            places = [row["queries"] for row in held]
            axes.plot(places, [row["regret"] for row in held], "o", color=COLOURS[label], ms=4, label=label)
    axes.axhline(1.0, color="black", linewidth=0.8, zorder=0)
    axes.axhline(1.3, color="#BBBBBB", linewidth=1.0, linestyle="--", zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_yticks([0.03, 0.1, 0.3, 1, 1.3, 2], ["0.03", "0.1", "0.3", "1", "1.3", "2"])
    axes.minorticks_off()
    axes.set_xlabel("distinct queries asked, told to the session")
    axes.set_ylabel("rms error / that of the best rival")
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    canvas.legend(loc="outside right upper", fontsize=8, title="start")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
