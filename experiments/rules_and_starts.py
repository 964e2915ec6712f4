"""Which update rule errs least, under one plan: from the uniform start, and from the same first tables.

    python experiments/rules_and_starts.py [--quick] [--from-json]

Rules are compared as `evaluate.compare` does it: all of them have the same mechanism, threshold, planned
hits, questions and, seed by seed, the same noise; hits release numbers. "Uniform" buys nothing before a test
fires, "tables" buys one purchase and starts every rule from its fit. Beside them stand the default session,
which has a plan of its own, and one noisy histogram. The interval is that of the geometric
mean, over the seeds, of the error over that of multiplicative weights from the same start (Student, 95 %):
rules whose interval holds 1 are not told apart by these seeds.
At (1, 1e-9), simulated noise: NOT PRIVATE. Writes results/rules_and_starts.json; the markdown table and the
figure are made from that file alone.
"""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from scipy.stats import t as student
from study.outcome import script, seeds, stamped
from study.sources import Stream
from study.streams import Sizes, budget_of, makers

import onlineic as ic
from onlineic.evaluate import compare
from onlineic.plan import DemandPurchases

NAME = "rules_and_starts"
RULES = {"MW": ic.MultiplicativeWeights(), "perceptron": ic.Perceptron(), "max. entropy": ic.MaximumEntropy()}
STARTS = {"uniform": ic.TestsOnly(), "tables": DemandPurchases()}
DEFAULT, HISTOGRAM = "default session", "one noisy histogram"
STREAMS = ("adult5", "chain of 5", "no structure, ranges")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence, and are the same for all rules and starts."""

    sizes: Sizes = attrs.field(factory=lambda: Sizes(queries=400, made=400))
    streams: tuple[str, ...] = STREAMS
    runs: int = 5
    seed: int = 20261128


def rows_of(stream: Stream, config: Config, drawn: list[int]) -> Iterator[dict[str, Any]]:
    """Yield a row for every start and rule, then for what stands beside them. NOT PRIVATE."""
    length = len(stream.queries)
    budget, told = budget_of(stream), {"max_queries": length, "questions": length}
    for start, opens in STARTS.items():
        traces = compare(
            stream.data, budget, stream.queries, RULES, drawn, baselines=False, purchases=opens, **told
        )
        yield from (row_of(stream, start, label, traces) for label in RULES)
    traces = compare(stream.data, budget, stream.queries, {DEFAULT: None}, drawn, **told)
    yield from (row_of(stream, "own", label, traces) for label in (DEFAULT, HISTOGRAM))


def row_of(stream: Stream, start: str, label: str, traces: list[Any]) -> dict[str, Any]:
    """Return one engine over all seeds."""
    own = [one for one in traces if one.label == label]
    rms = [one.rms_error for one in own]
    return {
        "stream": stream.label,
        "cells": stream.data.domain.size,
        "start": start,
        "engine": label,
        "rms": math.sqrt(float(np.mean(np.square(rms)))),
        "rms_by_seed": rms,
        "max": float(np.mean([one.max_error for one in own])),
        "hard": float(np.mean([one.hard for one in own])),
        "untested": float(np.mean([one.untested for one in own])),
        "given": own[0].given,
    }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(Sizes(queries=40, made=40), STREAMS[:1], runs=2) if quick else Config()
    drawn, rows = seeds(config.seed, config.runs), []
    for label in config.streams:
        rows += rows_of(makers(config.sizes)[label](), config, drawn)
        print(label, [f"{row['engine']} {1e5 * row['rms']:.0f}" for row in rows[-8:]], flush=True)
    return stamped(config, start, rows=rows, noise_seeds=drawn)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    stream, seed = makers(config.sizes)[STREAMS[0]](), seeds(config.seed, config.runs)[0]
    length = len(stream.queries)
    told = {"max_queries": length, "questions": length, "purchases": ic.TestsOnly(), "baselines": False}
    (one,) = compare(stream.data, budget_of(stream), stream.queries, {"MW": RULES["MW"]}, [seed], **told)
    return {"rows/0/rms_by_seed/0": one.rms_error, "rows/0/given": one.given}


def interval(row: dict, other: dict) -> tuple[float, float, float]:
    """Return the geometric mean over the seeds of the ratio of errors, and the ends of its interval."""
    logs = np.log(row["rms_by_seed"]) - np.log(other["rms_by_seed"])
    reach = 0.0
    if len(logs) > 1:
        reach = float(student.ppf(0.975, len(logs) - 1)) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    mean = float(logs.mean())
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)


def by_stream(result: dict) -> dict[str, dict[tuple[str, str], dict]]:
    found: dict[str, dict[tuple[str, str], dict]] = {}
    for row in result["rows"]:
        found.setdefault(row["stream"], {})[row["start"], row["engine"]] = row
    return found


def table(result: dict) -> str:
    lines = [
        "| stream | cells | start | " + " | ".join(f"{rule}, rms" for rule in RULES)
        + " | " + " | ".join(f"{rule} / MW" for rule in list(RULES)[1:])
        + " | hard: MW, perceptron, max. entropy | default session | one noisy histogram |",
        "|" + "---|" * (len(RULES) * 2 + 5),
    ]  # fmt: skip
    for stream, rows in by_stream(result).items():
        for start in STARTS:
            own = [rows[start, rule] for rule in RULES]
            errors = " | ".join(f"{1e5 * row['rms']:,.0f}" for row in own)
            ratios = " | ".join("{:.2f} ({:.2f} to {:.2f})".format(*interval(row, own[0])) for row in own[1:])
            hard = ", ".join(f"{row['hard']:.0f}" for row in own)
            beside = " | ".join(f"{1e5 * rows['own', label]['rms']:,.0f}" for label in (DEFAULT, HISTOGRAM))
            lines.append(
                f"| {stream} | {own[0]['cells']:,} | {start} | {errors} | {ratios} | {hard} | {beside} |"
            )
    given = [
        f"{stream}, {start}: {rows[start, 'MW']['given']}; default: {rows['own', DEFAULT]['given']}."
        for stream, rows in by_stream(result).items()
        for start in STARTS
    ]
    runs = result["config"]["runs"]
    said = f"Errors in 1e-5 of the records, over {runs} seeds; ratios with their 95 % interval."
    return "\n".join(
        [*lines, "", said, "", "Every rule of a row was given the same:", "", *map("* {}".format, given)]
    )


def figure(result: dict, path: Path) -> None:
    """Draw the error of every rule and start over that of MW from the uniform start; needs matplotlib."""
    from matplotlib.figure import Figure

    colours = {"MW": "#0072B2", "perceptron": "#E69F00", "max. entropy": "#009E73"}
    canvas = Figure(figsize=(8.0, 3.8), layout="constrained")
    axes, places, names = canvas.add_subplot(), 0, []
    for stream, rows in by_stream(result).items():
        for start in STARTS:
            for offset, (rule, colour) in zip((-0.22, 0.0, 0.22), colours.items(), strict=True):
                mean, low, high = interval(rows[start, rule], rows["uniform", "MW"])
                label = rule if not places else None
                axes.plot([low, high], [places + offset] * 2, color=colour, linewidth=2.0)
                axes.plot([mean], [places + offset], "o", color=colour, markersize=5, label=label)
            names.append(f"{stream}, {start}")
            places += 1
    axes.axvline(1.0, color="#555555", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(places), names)
    axes.invert_yaxis()
    axes.set_xlabel(
        "rms error over that of multiplicative weights from the uniform start, with 95 % interval"
    )
    axes.legend(fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
