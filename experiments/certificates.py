"""What a certificate costs: sessions with `certify=` beside the default session, which has none.

    python experiments/certificates.py [--quick] [--from-json]

Adult with five and six attributes, a random table without structure asked for random subsets, and one of
which pairs of attributes say nothing, asked for parities and conjunctions of three, where hits come. At
(1, 1e-9) and (1, 0), simulated noise: NOT PRIVATE. Each promise, and the bound of every answer, is checked
against the truth. Writes results/certificates.json; table and figure are made from that file alone.
"""

import itertools
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import Stream, adult5_data, adult_workload, present, stream_of
from study.streams import dense_queries, distinct

import onlineic as ic
from onlineic.errors import InfeasibleAccuracyError, VacuousPromiseWarning, WideBoundWarning
from onlineic.evaluate import trace
from onlineic.noise import SimulatedNoise

NAME = "certificates"
BINARY = 12  # attributes of the table of threes


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    budgets: tuple[tuple[float, float], ...] = ((1.0, 1e-9), (1.0, 0.0))
    alphas: tuple[float, ...] = (0.3, 0.15, 0.1, 0.06)
    queries: int = 1_000
    few: int = 10
    dense: int = 300
    runs: int = 5
    stream_seed: int = 11
    seed: int = 20261123


def threes(records: int, generator: np.random.Generator) -> ic.PrivateData:
    """Return binary attributes in threes: each sum is even for 9 in 10 records, pairs are independent."""
    codes = generator.integers(0, 2, (BINARY, records))
    for last in range(2, BINARY, 3):
        odd = generator.random(records) < 0.1
        codes[last] = (codes[last - 1] + codes[last - 2] + odd) % 2
    domain = ic.Domain.of({f"b{place}": 2 for place in range(BINARY)})
    counts = np.bincount(np.ravel_multi_index(tuple(codes), domain.shape), minlength=domain.size)
    return ic.PrivateData(counts, domain)


def asked_of_threes(size: int, generator: np.random.Generator) -> list[Any]:
    """Return parities and conjunctions of three attributes, all different; those that depend come first."""
    corners = np.indices((2,) * BINARY)
    sets = [(first, first + 1, first + 2) for first in range(0, BINARY, 3)]
    others = [three for three in itertools.combinations(range(BINARY), 3) if three not in sets]
    sets += [others[place] for place in generator.permutation(len(others))]
    found: list[Any] = []
    for three in sets:
        found.append(ic.dense(corners[list(three)].sum(axis=0) % 2.0))
        found += [
            ic.where({f"b{axis}": label for axis, label in zip(three, labels, strict=True)})
            for labels in itertools.product((0, 1), repeat=3)
        ]
    return found[:size]


def streams(config: Config, absent: list[str]) -> Iterator[Stream]:
    """Yield every stream, one at a time."""
    five, drawn = adult5_data(), np.random.default_rng(config.stream_seed)
    for size in sorted({config.few, config.queries}):
        yield stream_of(f"adult5, {size:,}", five, distinct(five.domain, size, config.stream_seed))
    yield from present({"adult6": lambda: adult_workload("adult6", config.queries)}, absent)
    law = drawn.dirichlet(np.full(1024, 0.3))
    loose = ic.PrivateData(drawn.multinomial(100_000, law), ic.Domain.of({f"b{i}": 2 for i in range(10)}))
    yield stream_of("no structure, subsets", loose, dense_queries("random subsets", config.dense, drawn))
    hidden = threes(50_000, drawn)
    yield stream_of("threes, parities", hidden, asked_of_threes(config.dense, drawn))


def outcome(stream: Stream, budget: ic.Budget, drawn: list[int], alpha: float | None, **options: Any) -> dict:
    """Return one engine over all seeds: errors, promises, and how often they were broken. NOT PRIVATE."""
    if alpha is not None:
        options["certify"] = alpha
    one: dict[str, list] = {
        name: []
        for name in ("rms", "max", "beyond", "broken", "left", "promise", "now", "hard", "untested", "spent")
    }
    told = {"max_queries": len(stream.queries), "questions": len(stream.queries)}
    for seed in drawn:
        session = ic.OnlineIC(stream.data, budget, noise=SimulatedNoise(seed), **told, **options)
        seen = trace(NAME, session, stream.data, stream.queries, truths=stream.truths, seed=seed)
        stats = session.statistics()
        error = np.abs(seen.errors)
        row = {
            "rms": seen.rms_error,
            "max": seen.max_error,
            "beyond": float((error > (alpha or math.inf)).mean()),
            "broken": float((error[seen.bounded] > seen.bounds[seen.bounded]).mean()),
            "left": float(seen.max_error > stats.error_bound),
            "promise": session.plan.error_bound,
            "now": stats.error_bound,
            "hard": seen.hard,
            "untested": seen.untested,
            "spent": stats.spent,
        }
        for name, value in row.items():
            one[name].append(value)
    plan = session.plan
    means = {name: float(np.mean(values)) for name, values in one.items()}
    return means | {
        "rms": math.sqrt(float(np.mean(np.square(one["rms"])))),
        "rms_by_seed": one["rms"],
        "planned": plan.hard_answers,
        "certified": plan.certified,
        "mechanism": type(plan.sparse).__name__,
        "seeds": drawn,
    }


def rows_of(stream: Stream, config: Config, drawn: list[int]) -> Iterator[dict]:
    """Yield a row for the default session of every budget, and one for every alpha."""
    for epsilon, delta in config.budgets:
        budget = ic.Budget(epsilon, delta)
        about = {"stream": stream.label, "n": stream.data.n, "cells": stream.data.domain.size, "delta": delta}
        yield about | {"engine": "default", "alpha": None} | outcome(stream, budget, drawn, None)
        for alpha in config.alphas:
            row = about | {"engine": "certified", "alpha": alpha}
            try:
                yield row | outcome(stream, budget, drawn, alpha)
            except InfeasibleAccuracyError as error:
                yield row | {"refused": str(error)}


def run(quick: bool) -> dict:
    warnings.simplefilter("ignore", VacuousPromiseWarning)
    warnings.simplefilter("ignore", WideBoundWarning)
    start, absent = time.perf_counter(), []
    config = Config(queries=60, dense=40, runs=1, alphas=(0.3, 0.1)) if quick else Config()
    drawn, rows = seeds(config.seed, config.runs), []
    for stream in streams(config, absent):
        for row in rows_of(stream, config, drawn):
            rows.append(row)
            print(row["stream"], row["delta"], row["engine"], row["alpha"], row.get("rms"), flush=True)
    return stamped(config, start, absent, rows=rows)


def grouped(result: dict) -> Iterator[tuple[dict, list[dict]]]:
    """Yield the default session of every stream and budget, and its certified sessions."""
    rows = result["rows"]
    for place, row in enumerate(rows):
        if row["engine"] == "default":
            yield row, list(itertools.takewhile(lambda one: one["engine"] != "default", rows[place + 1 :]))


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    first, budget = next(streams(config, [])), ic.Budget(*config.budgets[0])
    one = outcome(first, budget, seeds(config.seed, config.runs)[:1], None)
    return {"rows/0/stream": first.label, "rows/0/rms_by_seed/0": one["rms"]}


def table(result: dict) -> str:
    lines = [
        "| stream | delta | alpha | default | certified | / default | promise | stated | planned hits "
        "| hard, untested | spent | answers outside, sessions left | beyond alpha |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for default, certified in grouped(result):
        for one in certified:
            head = f"| {one['stream']} | {one['delta']:g} | {one['alpha']:g} | {1e5 * default['rms']:,.1f} "
            if "refused" in one:
                lines.append(head + "| refused |  |  |  |  |  |  |  |  |")
                continue
            lines.append(
                head + f"| {1e5 * one['rms']:,.1f} | {one['rms'] / default['rms']:.2f} "
                f"| {one['promise']:.4f} | {one['now']:.4f} | {one['planned']:,} "
                f"| {one['hard']:,.1f}, {one['untested']:,.1f} | {one['spent']:.0%} "
                f"| {one['broken']:.4f}, {one['left']:.2f} | {one['beyond']:.4f} |"
            )
    return "\n".join([*lines, "", "Errors are rms over all queries and seeds, in 1e-5 of the records."])


def figure(result: dict, path: Path) -> None:
    """Draw rms and promise against alpha, stream by stream, at delta > 0; needs matplotlib."""
    from matplotlib.figure import Figure

    groups = [group for group in grouped(result) if group[0]["delta"] > 0.0]
    canvas = Figure(figsize=(3.0 * len(groups), 3.4), layout="constrained")
    panels = np.atleast_1d(canvas.subplots(1, len(groups), sharey=True))
    for axes, (default, certified) in zip(panels, groups, strict=True):
        axes.axhline(default["rms"], color="black", ls=":", lw=1.0, label="without a certificate")
        held = [one for one in certified if "refused" not in one]
        alphas, colour = [one["alpha"] for one in held], "#0072B2"
        axes.plot(alphas, [one["rms"] for one in held], "o-", color=colour, ms=4, label="certified")
        promised = [one["promise"] for one in held]
        axes.plot(alphas, promised, "o", color=colour, mfc="none", ms=5, label="certified: promise")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(default["stream"], fontsize=9)
        axes.set_xlabel("alpha")
    panels[0].set_ylabel("rms error, promise")
    panels[-1].legend(fontsize=6)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
