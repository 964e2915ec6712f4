"""Error against questions asked, all engines; then against epsilon and the number of records.

    python experiments/sweeps.py [--quick] [--from-json]

Six Adult attributes at equal budget, with simulated noise: NOT PRIVATE. Streams are random conjunctions of
ranges and labels over one to three attributes; of few questions there are many streams, one for each seed,
each another part of one pool. The session is told the length of the stream, or left at 10,000. Cached noise
is told the number of distinct queries, tables their attribute sets. Smaller tables are samples of Adult
without replacement. Where Adult has not been fetched, the five attributes that ship stand in.
Writes results/sweeps.json; the markdown tables and the figure are made from that file alone.
"""

import math
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import baselines, default_session, measured, one_seed, script, seeds, stamped
from study.sources import Stream, adult5_data, adult_workload, first, stream_of, subsample, whole
from study.streams import runs_of

import onlineic as ic
from onlineic.evaluate import random_stream

NAME = "sweeps"
STATIC = ("per-query Gaussian", "per-query, cached", "one noisy histogram", "noisy tables")
ENGINES = ("default", *STATIC)
UNTOLD = "default, length not told"  # of the first sweep alone
USUAL = 10_000  # `max_queries` of a session that is not told


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence. Of few questions there are more runs."""

    lengths: tuple[int, ...] = (1, 3, 10, 30, 100, 1_000, 10_000)
    epsilons: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    sizes: tuple[int, ...] = (1_000, 5_000, 20_000, 48_842)
    epsilon: float = 1.0
    delta: float = 1e-9
    queries: int = 4_000  # of the sweeps of epsilon and n
    pool: int = 20_000
    runs: int = 3
    answers: int = 100  # over all runs, at the least, with at most so many runs:
    most_runs: int = 20
    stream_seed: int = 2
    seed: int = 20261121


def quick_config() -> Config:
    return Config((1, 100), (0.1, 1.0), (1_000, 10_000), queries=500, pool=1_000, runs=1, answers=1)


def point(sweep: str, value: float, streams: list[Stream], rows: list[dict]) -> dict:
    print(sweep, value, [f"{row['rms']:.2e} {row['seconds']:.1f} s" for row in rows], flush=True)
    distinct = [len({query.key for query in one.queries}) for one in streams]
    return {"sweep": sweep, "value": value, "distinct": round(float(np.mean(distinct))), "engines": rows}


def at_budget(config: Config, sweep: str, value: float, stream: Stream, epsilon: float) -> dict:
    """Return the session and what is static on one stream."""
    budget, drawn = ic.Budget(epsilon, config.delta), seeds(config.seed, config.runs)
    makers = {"default": default_session(stream, budget), **baselines(stream, budget)}
    return point(sweep, value, [stream], [measured(label, makers[label], stream, drawn) for label in ENGINES])


def at_length(config: Config, length: int, pool: Stream) -> dict:
    """Return every engine on such streams: every seed has its own part of the pool, if there is one."""
    budget, asked = ic.Budget(config.epsilon, config.delta), part(pool, 0, length)
    drawn = seeds(config.seed, runs_of(asked, config.runs, config.answers, config.most_runs))
    parts, some, found = [asked] * len(drawn), asking(pool), []
    if len(drawn) * length <= len(some.queries):
        parts = [part(some, place * length, length) for place in range(len(drawn))]
    for stream, seed in zip(parts, drawn, strict=True):
        makers = {"default": default_session(stream, budget), **baselines(stream, budget)}
        names = ENGINES
        if length < USUAL:
            makers[UNTOLD] = default_session(stream, budget, max_queries=USUAL, questions=None)
            names = (*names, UNTOLD)
        found += [measured(name, makers[name], stream, [seed]) for name in names]
    labels = dict.fromkeys(row["engine"] for row in found)
    rows = [joined([row for row in found if row["engine"] == name]) for name in labels]
    return point("queries", length, parts, rows)


def joined(rows: list[dict]) -> dict:
    """Return one row of the rows of an engine: rms as the root of the mean square, else means."""
    row = {"engine": rows[0]["engine"], "rms": math.sqrt(float(np.mean([one["rms"] ** 2 for one in rows])))}
    for name in ("max", "hard", "untested", "seconds"):
        if name in rows[0]:
            row[name] = float(np.mean([one[name] for one in rows]))
    return row | {"runs": len(rows)}


def asking(pool: Stream) -> Stream:
    """Return the pool without constants, of which a stream of few questions might consist."""
    held = np.array([query.constant is None for query in pool.queries])
    queries = [query for query, asks in zip(pool.queries, held.tolist(), strict=True) if asks]
    return Stream(pool.label, pool.data, queries, pool.truths[held])


def part(pool: Stream, start: int, length: int) -> Stream:
    places = slice(start, start + length)
    return Stream(pool.label, pool.data, pool.queries[places], pool.truths[places])


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
    rows = [at_length(config, length, pool) for length in config.lengths]
    standard = part(pool, 0, config.queries)
    rows += [at_budget(config, "epsilon", epsilon, standard, epsilon) for epsilon in config.epsilons]
    counts = data.exact_counts(whole(data.domain))
    for size in config.sizes:
        sample = ic.PrivateData(subsample(counts, size, config.stream_seed), data.domain)
        stream = stream_of("sample", sample, expressions[: config.queries])
        rows.append(at_budget(config, "records", size, stream, config.epsilon))
    return stamped(config, start, absent, n=data.n, rows=rows)


SWEEPS = {"queries": "number of queries", "epsilon": "ε", "records": "records n"}


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, absent = Config(), list[str]()
    data, size = table_or_stand_in(absent), config.sizes[0]
    if absent:
        return {}
    counts = data.exact_counts(whole(data.domain))
    sample = ic.PrivateData(subsample(counts, size, config.stream_seed), data.domain)
    asked = random_stream(data.domain, config.pool, config.stream_seed)[: config.queries]
    stream = stream_of("sample", sample, asked)
    make = default_session(stream, ic.Budget(config.epsilon, config.delta))
    place, seed = len(config.lengths) + len(config.epsilons), seeds(config.seed, config.runs)[0]
    return one_seed(f"rows/{place}/engines/{ENGINES.index('default')}", "default", make, stream, seed)


def table(result: dict) -> str:
    lines = []
    for sweep, label in SWEEPS.items():
        more, heads = ((UNTOLD,), " | not told") if sweep == "queries" else ((), "")
        lines += [
            f"| {label} | distinct | default | Gaussian | cached | histogram | tables{heads} "
            "| best baseline / default | default: max, hard, untested |",
            "|" + "---|" * (9 + len(more)),
        ]
        for row in result["rows"]:
            if row["sweep"] != sweep:
                continue
            by = {one["engine"]: one for one in row["engines"]}
            cells = [f"{1e5 * by[name]['rms']:,.1f}" if name in by else "-" for name in (*ENGINES, *more)]
            default = by["default"]
            ratio = min(by[name]["rms"] for name in STATIC if name in by) / default["rms"]
            lines.append(
                f"| {row['value']:,} | {row['distinct']:,} | {' | '.join(cells)} | {ratio:.2f} "
                f"| {default['max']:.4f}, {default['hard']:,.1f}, {default['untested']:,.1f} |"
            )
        lines.append("")
    return "\n".join([*lines, "Errors are rms over all queries and seeds, in 1e-5 of the records."])


STYLES = {  # line, mark, colour, label
    "default": ("-", "o", "#0072B2", "session, told the length"),
    UNTOLD: ("--", "o", "#56B4E9", "session, length not told"),
    "per-query Gaussian": (":", "v", "#D55E00", "Gaussian noise"),
    "per-query, cached": ("--", "v", "#E69F00", "noise, cached (knows the distinct number)"),
    "one noisy histogram": ("-.", "s", "#009E73", "one noisy histogram"),
    "noisy tables": ("--", "^", "#CC79A7", "tables (knows the attribute sets)"),
}


def figure(result: dict, path: Path) -> None:
    """Draw rms against each of the three; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(11.0, 6.4), layout="constrained")
    grid = canvas.add_gridspec(2, 2, width_ratios=(1.7, 1.0))
    large = canvas.add_subplot(grid[:, 0])
    small = [canvas.add_subplot(grid[place, 1]) for place in (0, 1)]
    for axes, (sweep, label) in zip((large, *small), SWEEPS.items(), strict=True):
        for name, (line, mark, colour, _) in STYLES.items():
            found = [
                (row["value"], one["rms"])
                for row in result["rows"]
                if row["sweep"] == sweep
                for one in row["engines"]
                if one["engine"] == name
            ]
            if not found:
                continue
            axes.plot(
                *zip(*found, strict=True),
                line,
                marker=mark or None,
                markersize=4,
                color=colour,
                label=STYLES[name][3],
                linewidth=2.6 if name == "default" else 1.4,
                zorder=3 if name == "default" else 2,
            )
        axes.set(xscale="log", yscale="log")
        axes.set_xlabel(label, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.set_ylabel("rms error, fraction of records", fontsize=9)
    config = result["config"]
    large.set_title(f"questions asked: ε = {config['epsilon']:g}, n = {result['n']:,}", fontsize=10)
    small[0].set_title(f"{config['queries']:,} queries, n = {result['n']:,}", fontsize=9)
    small[1].set_title(f"{config['queries']:,} queries, ε = {config['epsilon']:g}", fontsize=9)
    handles, labels = large.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8.5)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
