"""Three sweeps on six Adult attributes: error against number of queries, epsilon and number of records.

    python experiments/sweeps.py [--quick] [--from-json]

The default session against the baselines at equal budget, with simulated noise: NOT PRIVATE. Streams are
random conjunctions of ranges and labels over one to three attributes; a stream longer than `pool` repeats
queries of a pool, uniformly at random. Smaller tables are samples of Adult without replacement. Where Adult
has not been fetched, the five attributes that ship stand in.
Writes results/sweeps.json; the markdown tables and the figure are made from that file alone.
"""

import time
from pathlib import Path

import attrs
import numpy as np
from study.outcome import baselines, default_session, measured, script, seeds, stamped
from study.sources import Stream, adult5_data, adult_workload, first, stream_of, subsample, whole

import onlineic as ic
from onlineic.evaluate import random_stream

NAME = "sweeps"
ENGINES = ("default", "per-query Gaussian", "per-query, cached", "one noisy histogram", "noisy tables")
LONG = 200_000  # from here on one seed, and no uncached noise


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    lengths: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000)
    epsilons: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
    sizes: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 48_842)
    epsilon: float = 1.0
    delta: float = 1e-9
    queries: int = 10_000
    pool: int = 100_000
    runs: int = 3
    stream_seed: int = 2
    seed: int = 20261121


def quick_config() -> Config:
    return Config((100, 1_000, 3_000), (0.1, 1.0), (1_000, 10_000), queries=1_000, pool=2_000, runs=1)


def point(config: Config, sweep: str, value: float, stream: Stream, epsilon: float) -> dict:
    budget, length = ic.Budget(epsilon, config.delta), len(stream.queries)
    makers = {"default": default_session(stream, budget), **baselines(stream, budget)}
    drawn = seeds(config.seed, 1 if length > LONG else config.runs)
    rows = [
        measured(label, makers[label], stream, drawn)
        for label in ENGINES
        if length <= LONG or label != "per-query Gaussian"
    ]
    print(sweep, value, [f"{row['rms']:.2e} {row['seconds']:.1f} s" for row in rows], flush=True)
    return {"sweep": sweep, "value": value, "distinct": len({q.key for q in stream.queries}), "engines": rows}


def repeated(pool: Stream, length: int, seed: int) -> Stream:
    """Return a stream of this length: the start of the pool, or drawn from it with repetition."""
    if length <= len(pool.queries):
        return Stream(pool.label, pool.data, pool.queries[:length], pool.truths[:length])
    places = np.random.default_rng(seed).integers(0, len(pool.queries), length)
    queries = [pool.queries[place] for place in places.tolist()]
    return Stream(pool.label, pool.data, queries, pool.truths[places])


def table_or_stand_in(absent: list[str]) -> ic.PrivateData:
    """Return six attributes of Adult, or the five that ship."""
    makers = {"adult6": lambda: adult_workload("adult6", 1).data, "adult5": adult5_data}
    return first(makers, absent)


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), []
    config = quick_config() if quick else Config()
    data = table_or_stand_in(absent)
    expressions = random_stream(data.domain, config.pool, config.stream_seed)
    pool = stream_of("pool", data, expressions)
    rows = [
        point(config, "queries", length, repeated(pool, length, config.stream_seed), config.epsilon)
        for length in config.lengths
    ]
    standard = repeated(pool, config.queries, config.stream_seed)
    rows += [point(config, "epsilon", epsilon, standard, epsilon) for epsilon in config.epsilons]
    counts = data.exact_counts(whole(data.domain))
    for size in config.sizes:
        sample = ic.PrivateData(subsample(counts, size, config.stream_seed), data.domain)
        stream = stream_of("sample", sample, expressions[: config.queries])
        rows.append(point(config, "records", size, stream, config.epsilon))
    return stamped(config, start, absent, n=data.n, rows=rows)


SWEEPS = {"queries": "number of queries", "epsilon": "ε", "records": "records n"}


def table(result: dict) -> str:
    lines = []
    for sweep, label in SWEEPS.items():
        lines += [
            f"| {label} | distinct | default | Gaussian | cached | histogram | tables "
            "| best baseline / default | default: max, hard, untested |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for row in result["rows"]:
            if row["sweep"] != sweep:
                continue
            by = {one["engine"]: one for one in row["engines"]}
            cells = [f"{1e5 * by[name]['rms']:,.1f}" if name in by else "-" for name in ENGINES]
            default = by.pop("default")
            ratio = min(one["rms"] for one in by.values()) / default["rms"]
            lines.append(
                f"| {row['value']:,} | {row['distinct']:,} | {' | '.join(cells)} | {ratio:.2f} "
                f"| {default['max']:.4f}, {default['hard']:,.1f}, {default['untested']:,.1f} |"
            )
        lines.append("")
    return "\n".join([*lines, "Errors are rms over all queries and seeds, in 1e-5 of the records."])


def figure(result: dict, path: Path) -> None:
    """Draw rms against each of the three; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(11.0, 4.2), layout="constrained")
    panels = canvas.subplots(1, 3, sharey=True)
    styles = {
        "default": ("-", "o", "#0072B2"),
        "per-query Gaussian": (":", "v", "#D55E00"),
        "per-query, cached": ("--", "o", "#E69F00"),
        "one noisy histogram": ("-.", "s", "#009E73"),
        "noisy tables": ("--", "^", "#CC79A7"),
    }
    for axes, (sweep, label) in zip(panels, SWEEPS.items(), strict=True):
        for name, (line, mark, colour) in styles.items():
            found = [
                (row["value"], one["rms"])
                for row in result["rows"]
                if row["sweep"] == sweep
                for one in row["engines"]
                if one["engine"] == name
            ]
            width = 2.4 if name == "default" else 1.3
            axes.plot(
                *zip(*found, strict=True),
                line,
                marker=mark,
                markersize=4,
                color=colour,
                label=name,
                linewidth=width,
            )
        axes.set(xscale="log", yscale="log", xlabel=label)
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
    panels[0].set_ylabel("rms error, fraction of records")
    config = result["config"]
    panels[0].set_title(f"ε = {config['epsilon']:g}, n = {result['n']:,}", fontsize=9)
    panels[1].set_title(f"{config['queries']:,} queries, n = {result['n']:,}", fontsize=9)
    panels[2].set_title(f"{config['queries']:,} queries, ε = {config['epsilon']:g}", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
