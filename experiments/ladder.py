"""The ladder on six Adult attributes: from per-query Laplace noise to the default session, at one budget.

    python experiments/ladder.py [--quick] [--from-json]

The stream of adult6.json (10,000 random conjunctions over one to three attributes, 190,400 cells) is
asked to every engine with simulated noise: NOT PRIVATE. Where Adult has not been fetched, random ranges over
the five attributes that ship stand in. Some engines are told in advance what an online
engine is not: the number of queries, or of distinct ones, or their attribute sets.
Writes results/ladder.json; the markdown table and the figure are made from that file alone.
"""

import time
from pathlib import Path
from typing import Any

import attrs
from study.outcome import baselines, default_session, measured, one_seed, script, seeds, stamped
from study.sources import Stream, adult5_ranges, adult_workload, first

import onlineic as ic

NAME = "ladder"


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    epsilon: float = 1.0
    delta: float = 1e-9
    queries: int = 10_000
    runs: int = 5
    seed: int = 20261121


LABELS = {  # key: (label, what it must know in advance)
    "per-query Laplace": ("per-query Laplace", "number of queries"),
    "textbook": ("textbook, multiplicative weights", "-"),
    "per-query Gaussian": ("per-query Gaussian", "number of queries"),
    "per-query, cached": ("per-query Gaussian, cached", "number of distinct queries"),
    "one noisy histogram": ("one noisy histogram", "-"),
    "noisy tables": ("noisy tables, one a set", "all {sets} attribute sets"),
    "weights": ("multiplicative weights, numbers, Gumbel test", "-"),
    "entropy": ("maximum entropy, numbers, Gumbel test", "-"),
    "partitions": ("maximum entropy, partitions on demand", "-"),
    "twenty": ("the same, 20 hard answers", "-"),
    "default": ("default: partitions and first tables", "-"),
}


def stream_or_stand_in(config: Config, absent: list[str]) -> Stream:
    """Return the stream over six attributes, or one over those that ship."""
    makers = {
        "adult6": lambda: adult_workload("adult6", config.queries),
        "adult5, ranges": lambda: adult5_ranges(config.queries, 1),
    }
    return first(makers, absent)


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), []
    config = Config(queries=800, runs=1) if quick else Config()
    stream, budget = stream_or_stand_in(config, absent), ic.Budget(config.epsilon, config.delta)
    drawn = seeds(config.seed, config.runs)
    makers = baselines(stream, budget)
    makers["textbook"] = lambda noise: ic.OnlineIC.textbook(
        stream.data, epsilon=config.epsilon, delta=config.delta, max_queries=config.queries, noise=noise
    )
    makers["weights"] = default_session(
        stream, budget, update=ic.MultiplicativeWeights(), sparse="gumbel", release="answer"
    )
    makers["entropy"] = default_session(
        stream, budget, update=ic.MaximumEntropy(), sparse="gumbel", release="answer"
    )
    uniform = ic.Histogram(stream.data.domain)  # whoever brings a start buys no first tables
    makers["partitions"] = default_session(stream, budget, prior=uniform)
    makers["twenty"] = default_session(stream, budget, prior=uniform, hard_answers=20)
    makers["default"] = default_session(stream, budget)
    rows = []
    for key in LABELS:
        rows.append(measured(key, makers[key], stream, drawn))
        print(f"{key}: {rows[-1]['rms']:.5f}, {rows[-1]['seconds']:.1f} s", flush=True)
    return stamped(config, start, absent, sets=len(stream.sets), n=stream.data.n, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, absent = Config(), list[str]()
    stream, seed = stream_or_stand_in(config, absent), seeds(config.seed, config.runs)[0]
    make = default_session(stream, ic.Budget(config.epsilon, config.delta))
    place = f"rows/{list(LABELS).index('default')}"
    return {} if absent else one_seed(place, "default", make, stream, seed)


def table(result: dict) -> str:
    lines = [
        "| engine | knows in advance | rms | max | hard | untested | within bound | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        label, known = LABELS[row["engine"]][0], LABELS[row["engine"]][1].format(sets=result["sets"])
        within = "-" if row["within_bound"] is None else f"{row['within_bound']:.4f}"
        lines.append(
            f"| {label} | {known} | {row['rms']:.5f} | {row['max']:.4f} | {row['hard']:,.1f} "
            f"| {row['untested']:,.1f} | {within} | {row['seconds']:.2f} |"
        )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw rms (bar, with every seed) and mean largest error of each engine; needs matplotlib."""
    from matplotlib.figure import Figure

    rows = result["rows"][::-1]
    canvas = Figure(figsize=(9.0, 4.6), layout="constrained")
    axes = canvas.add_subplot()
    for place, row in enumerate(rows):
        axes.barh(place, row["rms"], color="#0072B2" if row["engine"] == "default" else "#9CB8CC")
        axes.plot(row["rms_by_seed"], [place] * len(row["rms_by_seed"]), "|", color="black", markersize=8)
        axes.plot(row["max"], place, "D", color="#D55E00", markersize=5)
        colour = "white" if row["engine"] == "default" else "black"
        axes.text(2.2e-4, place, f"{row['rms']:.5f}", va="center", fontsize=8, color=colour)
    axes.plot([], [], "|", color="black", markersize=8, label="rms of one seed")
    axes.plot([], [], "D", color="#D55E00", markersize=5, label="largest error, mean over seeds")
    axes.set_xscale("log")
    axes.set_xlim(2e-4, 4.0)
    axes.set_yticks(range(len(rows)), [LABELS[row["engine"]][0] for row in rows], fontsize=9)
    config = result["config"]
    axes.set_xlabel(
        f"error, fraction of records (bars: rms; {config['queries']:,} queries, "
        f"ε = {config['epsilon']:g}, δ = {config['delta']:g})"
    )
    axes.legend(loc="lower right", fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
