"""Ranges of Age by sparse vector and Laplace noise, beside answers to all of them at the same epsilon.

    python experiments/range_queries.py [--quick] [--from-json]

The 32,561 training rows of Adult (all 48,842, which ship, where it has not been fetched), Age 17..90, 500
random ranges asked in order, epsilon = 1, delta = 0. A run of `range_queries` says which ranges hold more
records than a threshold, with a number for each, until its cutoff is used up. "text": restarts, and numbers
at epsilon/(2 cutoff) each; "library": one kept threshold, and numbers that share epsilon/2 among the hits
that happened. Beside them what answers EVERY range: Laplace noise on each, one noisy histogram, and the
default online session. Errors against the truth: NOT PRIVATE.
Writes results/range_queries.json; the markdown table and the figure are made from that file alone.
"""

import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import baselines, default_session, script, seeds, stamped
from study.sources import Stream, adult_rows, first, stream_of

import onlineic as ic
from onlineic.datasets import adult5
from onlineic.noise import SimulatedNoise
from onlineic.offline import range_queries

NAME = "range_queries"
TRAINING = 32_561
VARIANTS = {
    "text": {"allocation": "restarts", "divide": "cutoff"},
    "library": {"allocation": "optimal", "divide": "hits"},
}


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    queries: int = 500
    epsilon: float = 1.0
    settings: tuple[tuple[float, int], ...] = ((0.5, 10), (0.5, 100), (0.8, 100), (0.95, 10), (0.95, 100))
    runs: int = 30
    shown: tuple[float, int] = (0.8, 100)
    stream_seed: int = 1
    seed: int = 20261121


def ages(config: Config, absent: list[str]) -> Stream:
    """Return random age ranges over the training rows, or over all rows."""
    domain = ic.Domain.of(age=range(17, 91))

    def training() -> ic.PrivateData:
        rows = adult_rows()[:TRAINING]
        return ic.PrivateData.from_records({"age": [int(row["age"]) + 16 for row in rows]}, domain)

    def shipped() -> ic.PrivateData:
        columns, counts = adult5()
        return ic.PrivateData.from_counts({"age": columns["age"]}, counts, domain)

    data = first({"Age, training rows": training, "Age, all rows": shipped}, absent)
    ends = np.sort(np.random.default_rng(config.stream_seed).integers(17, 91, (config.queries, 2)))
    return stream_of("ages", data, [ic.where(age=ic.between(int(low), int(high))) for low, high in ends])


def searched(stream: Stream, share: float, cutoff: int, name: str, config: Config, drawn: list[int]) -> dict:
    """Return one row: what a variant found, and how far off it was, in records."""
    n, exact = stream.data.n, np.rint(stream.truths * stream.data.n).astype(np.int64)
    threshold = round(share * n)
    runs, points = [], []
    for seed in drawn:
        found = range_queries(
            stream.data, stream.queries, config.epsilon, threshold=threshold, cutoff=cutoff,
            noise=SimulatedNoise(seed), **VARIANTS[name],
        )  # fmt: skip
        hits = np.array(found.hits, np.int64)
        errors = np.array([found.counts[place] for place in found.hits]) - exact[hits]
        large = exact[: found.tested] >= threshold
        named = np.isin(np.arange(found.tested), hits)
        runs.append(
            (
                hits.size,
                found.tested,
                np.square(errors).sum(),
                (named != large).sum(),
                found.radius,
                found.margin,
            )
        )
        points.append(
            [[int(exact[place]), int(abs(error))] for place, error in zip(hits, errors, strict=True)]
        )
    hits, tested, squares, wrong, radius, margin = np.array(runs, float).T
    return {
        "threshold": threshold,
        "share": share,
        "cutoff": cutoff,
        "variant": name,
        "large": int((exact >= threshold).sum()),
        "hits": float(hits.mean()),
        "tested": float(tested.mean()),
        "wrong": float(wrong.mean()),
        "rms": float(np.sqrt(squares.sum() / max(1.0, hits.sum()))),
        "radius": float(radius.mean()),
        "margin": float(margin.mean()),
        "points": points[0] if (share, cutoff) == config.shown else None,
    }


def answered(stream: Stream, name: str, make, drawn: list[int], shown: bool) -> dict:
    """Return one row of an engine that answers every query: errors in records."""
    n, errors = stream.data.n, []
    for seed in drawn:
        answers = make(SimulatedNoise(seed)).answer_many(stream.queries)
        errors.append(n * (np.array([answer.value for answer in answers]) - stream.truths))
    large = stream.truths >= 0.8
    points = zip(np.rint(n * stream.truths).tolist(), np.abs(errors[0]).tolist(), strict=True)
    return {
        "engine": name,
        "rms": float(np.sqrt(np.mean(np.square(errors)))),
        "rms_large": float(np.sqrt(np.mean(np.square([one[large] for one in errors])))),
        "largest": float(np.mean([np.abs(one).max() for one in errors])),
        "points": [[int(count), round(error, 1)] for count, error in points] if shown else None,
    }


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), []
    config = Config(queries=100, runs=2) if quick else Config()
    stream, drawn = ages(config, absent), seeds(config.seed, config.runs)
    budget = ic.Budget(config.epsilon)
    trivial = baselines(stream, budget)
    makers = {name: trivial[name] for name in ("per-query Laplace", "one noisy histogram")}
    makers["default session"] = default_session(stream, budget)
    searches = [
        searched(stream, share, cutoff, name, config, drawn)
        for share, cutoff in config.settings
        for name in VARIANTS
    ]
    engines = [answered(stream, name, make, drawn, True) for name, make in makers.items()]
    return stamped(config, start, absent, n=stream.data.n, searches=searches, engines=engines)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, absent = Config(), list[str]()
    stream, drawn = ages(config, absent), seeds(config.seed, config.runs)
    make = default_session(stream, ic.Budget(config.epsilon))
    return {} if absent else {"engines/2": answered(stream, "default session", make, drawn, True)}


def table(result: dict) -> str:
    lines = [
        "| threshold, cutoff | variant | ranges above it | numbers | tested | wrong side | rms of numbers "
        "| their radius, margin of the tests |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['share']:.0%} of n, {row['cutoff']} | {row['variant']} | {row['large']} | {row['hits']:.1f} "
        f"| {row['tested']:.0f} | {row['wrong']:.1f} | {row['rms']:.0f} "
        f"| {row['radius']:.0f}, {row['margin']:.0f} |"
        for row in result["searches"]
    ]
    config = result["config"]
    lines += [
        "",
        f"Age, n = {result['n']:,}, {config['queries']} ranges, epsilon = {config['epsilon']:g}, "
        f"{config['runs']} runs; errors in records. What answers all of them at the same epsilon:",
        "",
        "| engine | rms of all answers | rms above 80 % of n | largest error |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row['engine']} | {row['rms']:.0f} | {row['rms_large']:.0f} | {row['largest']:.0f} |"
        for row in result["engines"]
    ]
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw errors of one run by exact count, and rms by method; needs matplotlib."""
    from matplotlib.figure import Figure

    config = result["config"]
    canvas = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = canvas.subplots(1, 2)
    colours = {
        "per-query Laplace": "#BBBBBB",
        "one noisy histogram": "#E69F00",
        "default session": "#0072B2",
        "text": "#CC79A7",
        "library": "#009E73",
    }
    for row in result["engines"]:
        x, y = np.array(row["points"]).T
        left.plot(x, np.maximum(y, 0.5), ".", ms=3, color=colours[row["engine"]], label=row["engine"])
    shown = [row for row in result["searches"] if row["points"] is not None]
    for row in shown:
        x, y = np.array(row["points"]).T
        left.plot(
            x,
            np.maximum(y, 0.5),
            "x",
            ms=5,
            color=colours[row["variant"]],
            label=f"range_queries, {row['variant']}",
        )
    left.axvline(shown[0]["threshold"], color="black", lw=0.8, ls="--")
    left.set_yscale("log")
    left.set_ylim(0.4, 5e4)
    left.set_xlabel(
        f"records in the range (threshold {shown[0]['share']:.0%} of n, cutoff {shown[0]['cutoff']})"
    )
    left.set_ylabel("|error| of one run, records")
    left.legend(fontsize=7, ncols=2, loc="upper left")
    labels = [f"{row['share']:.0%}, {row['cutoff']}" for row in result["searches"][::2]]
    for shift, name in ((-0.2, "text"), (0.2, "library")):
        rms = [row["rms"] for row in result["searches"] if row["variant"] == name]
        right.bar(np.arange(len(rms)) + shift, rms, 0.38, color=colours[name], label=f"range_queries, {name}")
    for row in result["engines"]:
        right.axhline(row["rms"], color=colours[row["engine"]], lw=1.6, label=f"{row['engine']}, all ranges")
    right.set_yscale("log")
    right.set_xticks(range(len(labels)), labels)
    right.set_xlabel("threshold as a share of n, cutoff")
    right.set_ylabel(f"rms error, records (epsilon = {config['epsilon']:g})")
    right.set_ylim(top=right.get_ylim()[1] * 12)
    right.legend(fontsize=7, ncols=2, loc="upper left")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
