"""What the online part does: budget spent and error against questions asked, with parts of the engine off.

    python experiments/online_part.py [--quick] [--from-json] [--only STREAM ..]

Streams of the gallery, and questions about five attributes of all fourteen of Adult; 600 of each (of bin17,
whose fits are dear, 150), asked one at a time, at (1, 1e-9). Five sessions, seed by seed with the same noise:

* the book's loop: nothing is bought without a test, a hit releases its number, multiplicative weights learn
  (where a histogram of all cells can be held);
* tests only: the same, but a hit releases a table, and maximum entropy learns (`TestsOnly`);
* tables alone: the default, but the tests' part of the budget goes to tables, but 3 %;
* no hits: the default's tables, and a threshold that no gap reaches;
* the default.

What a session has spent is told apart by its transcript: tables that were bought without a test, and numbers
or tables that were released because a test fired. The error is that of all answers so far. Simulated noise:
NOT PRIVATE.
Writes results/online_part.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
from listening import Config as Listening
from listening import named, of_five
from study.outcome import script, seeds, stamped
from study.sources import Stream
from study.streams import Sizes, budget_of, makers

import onlineic as ic
from onlineic.ledger import BoughtTables, Hard
from onlineic.noise import SimulatedNoise
from onlineic.plan import TestsOnly, planning

NAME = "online_part"
STREAMS = (
    "adult5", "NLTCS", "HEPTH", "covid, Zipf 0", "bin17", "no structure, ranges", "chain of 5", "five of 14",
)  # fmt: skip
BOOK, TESTS, TABLES, NO_HITS, DEFAULT = "the book's loop", "tests only", "tables alone", "no hits", "default"
SESSIONS = (BOOK, TESTS, TABLES, NO_HITS, DEFAULT)
MOST_CELLS = 2**26  # of a histogram
KEPT = Fraction(3, 100)  # of the budget, for tests that next to never fire
NEVER = 0.99  # a threshold that no gap reaches
LOOKS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600)


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence, and are the same for all sessions."""

    queries: int = 600
    dear: int = 150  # of bin17
    runs: int = 3
    seed: int = 20261129


def of_fourteen(size: int) -> Stream:
    """Return questions about five attributes of Adult's fourteen."""
    return of_five(None, Listening(few=size))


def makers_of(config: Config) -> dict[str, Callable[[], Stream]]:
    """Return label -> maker of every stream."""
    size, dear = config.queries, min(config.queries, config.dear)
    made = makers(Sizes(queries=size, covid=size, mixture=dear, made=size))
    found = {label: made[label] for label in STREAMS if label in made}
    return {**found, "five of 14": partial(of_fourteen, config.queries)}


def without_tests(stream: Stream, budget: ic.Budget, told: dict[str, Any]) -> Callable[[Any], Any] | None:
    """Return the maker of a default session whose tests have next to nothing, and its tables the rest.

    None where few questions were told: all of these are measured, and nothing is bought without a test.
    """
    plan = ic.OnlineIC(stream.data, budget, noise=SimulatedNoise(0), **told).plan
    if isinstance(plan.purchases, TestsOnly):
        return None
    if plan.first_tables is None:  # bought by what is asked
        rule = attrs.evolve(plan.purchases, share=1 - KEPT)
        return lambda noise: ic.OnlineIC(stream.data, budget, noise=noise, purchases=rule, **told)
    shares = planning.default_shares

    def made(noise: Any) -> Any:
        def generous(*facts: Any, **more: Any) -> Any:
            found = shares(*facts, **more)
            return attrs.evolve(found, tables=1 - KEPT, hard_answers=1)

        with patch.object(planning, "default_shares", generous):
            return ic.OnlineIC(stream.data, budget, noise=noise, **told)

    return made


def sessions(stream: Stream) -> dict[str, Callable[[Any], Any]]:
    """Return label -> maker of a session."""
    length = len(stream.queries)
    budget, told = budget_of(stream), {"max_queries": length, "questions": length}
    book = {"purchases": TestsOnly(), "release": "answer", "update": ic.MultiplicativeWeights()}
    options: dict[str, dict[str, Any]] = {
        **({BOOK: book} if stream.data.domain.size <= MOST_CELLS else {}),
        TESTS: {"purchases": TestsOnly()},
        NO_HITS: {"threshold": NEVER},
        DEFAULT: {},
    }
    made = {label: partial(_session, stream, budget, {**told, **held}) for label, held in options.items()}
    if (tables := without_tests(stream, budget, told)) is not None:
        made[TABLES] = tables
    return {label: made[label] for label in SESSIONS if label in made}


def _session(stream: Stream, budget: ic.Budget, options: dict[str, Any], noise: Any) -> Any:
    return ic.OnlineIC(stream.data, budget, noise=noise, **options)


def followed(make: Callable[[Any], Any], stream: Stream, seed: int) -> dict[str, Any]:
    """Return what one session spent and erred by along the stream. NOT PRIVATE."""
    began, session = time.process_time(), make(SimulatedNoise(seed))
    capacity, errors, bounds, statuses, along = session.account.capacity, [], [], [], []
    for place, (query, truth) in enumerate(zip(stream.queries, stream.truths.tolist(), strict=True), 1):
        answer = session.answer(query)
        errors.append(answer.value - truth)
        bounds.append(answer.error_bound)
        statuses.append(answer.status)
        if place in LOOKS or place == len(stream.queries):
            records = session.transcript.records
            paid = [
                sum((one.charge.amount for one in records if isinstance(one, kind)), Fraction(0)) / capacity
                for kind in (BoughtTables, Hard)
            ]
            rms = float(np.sqrt(np.mean(np.square(errors))))
            along.append({"asked": place, "tables": float(paid[0]), "hits": float(paid[1]), "rms": rms})
    told = session.statistics()
    off, said = np.abs(errors), np.array(bounds)
    tested = np.array(statuses) != "untested"
    return {
        "rms": along[-1]["rms"],
        "max": float(off.max()),
        "bound": float(np.median(said[tested])) if tested.any() else None,
        "outside": float(np.mean(off[tested] > said[tested])) if tested.any() else None,
        "joint": told.error_bound if math.isfinite(told.error_bound) else None,
        "hard": statuses.count("hard"),
        "untested": statuses.count("untested"),
        "tables": along[-1]["tables"],
        "hits": along[-1]["hits"],
        "along": along,
        "seconds": time.process_time() - began,
    }


def row_of(stream: Stream, config: Config) -> dict[str, Any]:
    """Return all sessions on one stream, seed by seed."""
    began, drawn = time.process_time(), seeds(config.seed, config.runs)
    engines = []
    for label, make in sessions(stream).items():
        runs = [followed(make, stream, seed) for seed in drawn]
        engines.append({"engine": label, "runs": runs})
        print(stream.label, label, [f"{1e5 * one['rms']:.1f}" for one in runs], flush=True)
    return {
        "stream": stream.label,
        "n": stream.data.n,
        "cells": stream.data.domain.size,
        "queries": len(stream.queries),
        "engines": engines,
        "seconds": time.process_time() - began,
    }


def run(quick: bool, only: list[str]) -> dict[str, Any]:
    start, absent = time.perf_counter(), list[str]()
    config = Config(queries=30, runs=1) if quick else Config()
    chosen = only or (["chain of 5"] if quick else list(STREAMS))
    asked = {label: make for label, make in makers_of(config).items() if label in chosen}
    rows = [row_of(attrs.evolve(one, label=label), config) for label, one in named(asked, absent)]
    return stamped(config, start, absent, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, label = Config(), "chain of 5"
    stream = attrs.evolve(makers_of(config)[label](), label=label)
    found = followed(sessions(stream)[DEFAULT], stream, seeds(config.seed, config.runs)[0])
    found.pop("seconds")
    return {f"rows/{STREAMS.index(label)}/engines/4/runs/0": found}


def mean(engine: dict[str, Any], name: str) -> float:
    """Return the mean over the runs; of errors the root of the mean square."""
    held = [math.inf if one[name] is None else one[name] for one in engine["runs"]]
    return float(np.sqrt(np.mean(np.square(held)))) if name == "rms" else float(np.mean(held))


def shown(value: float) -> str:
    """Return a fraction in 1e-5 of the records."""
    return "none" if math.isinf(value) else f"{1e5 * value:,.0f}" if value >= 1e-4 else f"{1e5 * value:.2g}"


def interval(engine: dict[str, Any], other: dict[str, Any]) -> str:
    """Return the geometric mean over the seeds of the ratio of errors, and the least and the largest."""
    ratios = [one["rms"] / same["rms"] for one, same in zip(engine["runs"], other["runs"], strict=True)]
    middle = math.exp(float(np.mean(np.log(ratios))))
    return f"{middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def table(result: dict[str, Any]) -> str:
    """Return every session on every stream, then the means over the streams."""
    lines = [
        "| stream | session | rms | over the default, by seed | largest error | median bound | joint bound "
        "| hard | untested | spent on tables | on hits |",
        "|" + "---|" * 11,
    ]
    for row in result["rows"]:
        default = row["engines"][-1]
        for engine in row["engines"]:
            errors = " | ".join(shown(mean(engine, name)) for name in ("max", "bound", "joint"))
            lines.append(
                f"| {row['stream']} | {engine['engine']} | {shown(mean(engine, 'rms'))} "
                f"| {interval(engine, default)} | {errors} | {mean(engine, 'hard'):.1f} "
                f"| {mean(engine, 'untested'):.1f} | {mean(engine, 'tables'):.0%} "
                f"| {mean(engine, 'hits'):.0%} |"
            )
    lines += [
        "",
        "Errors and bounds in 1e-5 of the records.",
        "",
        "| session | rms over the default |",
        "|---|---|",
    ]
    for label in SESSIONS:
        logs = [
            math.log(mean(engine, "rms") / mean(row["engines"][-1], "rms"))
            for row in result["rows"]
            for engine in row["engines"]
            if engine["engine"] == label
        ]
        lines.append(f"| {label} | {math.exp(float(np.mean(logs))):.2f} |")
    return "\n".join([*lines, "", "Geometric means over the streams."])


STYLES = {  # colour, line
    BOOK: ("#D55E00", ":"),
    TESTS: ("#E69F00", "-."),
    TABLES: ("#009E73", "--"),
    NO_HITS: ("#777777", ":"),
    DEFAULT: ("#0072B2", "-"),
}


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw error above, and what tables and hits have spent below, against questions; needs matplotlib."""
    from matplotlib.figure import Figure

    rows = result["rows"]
    canvas = Figure(figsize=(2.6 * len(rows), 6.0), layout="constrained")
    axes = canvas.subplots(2, len(rows), sharex=True, squeeze=False)
    for place, row in enumerate(rows):
        above, below = axes[0][place], axes[1][place]
        for engine in row["engines"]:
            colour, line = STYLES[engine["engine"]]
            runs = [one["along"] for one in engine["runs"]]
            asked = [look["asked"] for look in runs[0]]
            held = {
                name: np.array([[look[name] for look in run] for run in runs])
                for name in ("rms", "tables", "hits")
            }
            label = engine["engine"] if not place else None
            errors = np.sqrt(np.mean(held["rms"] ** 2, axis=0))
            above.plot(asked, errors, line, color=colour, linewidth=1.8, label=label)
            if engine["engine"] in (TESTS, DEFAULT):
                tables, hits = held["tables"].mean(axis=0), held["hits"].mean(axis=0)
                below.plot(asked, tables + hits, line, color=colour, linewidth=1.8)
                below.fill_between(asked, tables, tables + hits, color=colour, alpha=0.25)
        above.set(xscale="log", yscale="log")
        above.set_title(row["stream"], fontsize=9)
        below.set(xscale="log", ylim=(0.0, 1.03))
        below.set_xlabel("questions asked", fontsize=8)
        for one in (above, below):
            one.tick_params(labelsize=7)
            one.grid(True, color="#DDDDDD", linewidth=0.6)
    axes[0][0].set_ylabel("rms error so far, fraction of records", fontsize=8)
    axes[1][0].set_ylabel("budget spent (shaded: by tests that fired)", fontsize=8)
    canvas.legend(loc="outside upper center", fontsize=8, ncols=5)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure, STREAMS)
