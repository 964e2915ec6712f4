"""What knowing the whole workload in advance is worth: the online default session against offline engines.

    python experiments/online_offline.py [--quick] [--from-json]

Online, the session sees one query at a time. Offline: noisy tables of all attribute sets of the workload;
the iterative construction at the least accuracy its theorem can promise; and MWEM (Hardt, Ligett & McSherry
2012), which privately chooses the worst answered query in each round and measures it: its number, or its
table, which a maximum-entropy fit then reads. MWEM's rounds follow a rule from public facts; "best of a grid"
is the number of rounds with the least error, chosen by looking at it, which flatters it. "As printed": rate
1/2, ten replays, mean of all hypotheses, as in 2012. All at (1, 1e-9), pure ones at (1, 0): NOT PRIVATE.
Writes results/online_offline.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import baselines, default_session, measured, one_seed, script, seeds, stamped
from study.sources import Stream, adult5_ranges, adult_workload, nltcs, present, stream_of

import onlineic as ic
from onlineic.noise import SimulatedNoise
from onlineic.offline import iterative_construction, mwem
from onlineic.updates import MeasuredWeights

NAME = "online_offline"


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    epsilon: float = 1.0
    delta: float = 1e-9
    queries: int = 10_000
    workloads: tuple[str, ...] = ("adult6", "adult5", "NLTCS", "adult8-2way")
    rounds: int | None = None  # of MWEM; None: its own rule
    gaussian_rounds: tuple[int, ...] = (80, 160, 320)
    laplace_rounds: tuple[int, ...] = (40, 80, 160)
    table_rounds: tuple[int, ...] = (10, 20, 40, 60)
    largest: int = 200_000  # cells on which single numbers are replayed and rounds are varied
    runs: int = 3
    mwem_runs: int = 2
    grid_runs: int = 1
    stream_seed: int = 1
    seed: int = 20261121


def pairs(domain: ic.Domain) -> list:
    """Return every cell of every two-way table."""
    names, kinds = domain.names, domain.attributes
    return [
        ic.where({names[i]: kinds[i].label(a), names[j]: kinds[j].label(b)})
        for j in range(len(names))
        for i in range(j)
        for a in range(kinds[i].size)
        for b in range(kinds[j].size)
    ]


def streams(config: Config, absent: list[str]) -> Iterator[Stream]:
    """Yield every workload whose table is there, one at a time."""

    def survey() -> Stream:
        data = nltcs()
        two_way = pairs(data.domain)[: config.queries]
        order = np.random.default_rng(config.stream_seed).permutation(len(two_way))
        return stream_of("NLTCS, 2-way", data, [two_way[place] for place in order])

    makers = {
        "adult6": partial(adult_workload, "adult6", config.queries),
        "adult5": partial(adult5_ranges, config.queries, config.stream_seed),
        "NLTCS": survey,
        "adult8-2way": partial(adult_workload, "adult8-2way", config.queries),
    }
    yield from present({name: makers[name] for name in config.workloads}, absent)


def offline_row(
    label: str, build: Any, stream: Stream, budget: ic.Budget, drawn: list[int], **options: Any
) -> dict[str, Any]:
    """Return one row over all seeds of an engine that is handed the whole workload."""
    start = time.perf_counter()
    built = [build(stream.data, stream.queries, budget, noise=SimulatedNoise(s), **options) for s in drawn]
    seconds = (time.perf_counter() - start) / len(drawn)
    errors = [one.answers(stream.queries) - stream.truths for one in built]
    worst = [float(np.abs(one).max()) for one in errors]
    promises = [one.error_bound for one in built]
    return {
        "engine": label,
        "rounds": built[0].plan.rounds,
        "used": float(np.mean([len(one.measurements) for one in built])),
        "rms": math.sqrt(float(np.mean(np.square(errors)))),
        "max": float(np.mean(worst)),
        "promised": built[0].alpha if math.isfinite(built[0].alpha) else None,
        "stated": float(np.mean(promises)) if math.isfinite(max(promises)) else None,
        "kept": all(error <= bound for error, bound in zip(worst, promises, strict=True)),
        "seconds": seconds,
        "seeds": drawn,
    }


def offline_rows(stream: Stream, config: Config, drawn: list[int]) -> list[dict[str, Any]]:
    """Return the rows of all offline constructions; those of a grid are marked."""
    both, pure = ic.Budget(config.epsilon, config.delta), ic.Budget(config.epsilon)
    some, one = drawn[: config.mwem_runs], drawn[: config.grid_runs]
    small = stream.data.domain.size <= config.largest
    by_table = drawn if small else some
    free = {"rounds": config.rounds}
    tables = {"release": "partition"}
    rows = [
        offline_row("construction, book", iterative_construction, stream, both, drawn, variant="book"),
        offline_row("construction, tight", iterative_construction, stream, both, drawn),
        offline_row("MWEM, tables", mwem, stream, both, by_table, **free, **tables),
        offline_row("MWEM, tables, pure", mwem, stream, pure, by_table, **free, **tables),
    ]
    grids = []
    if small:
        printed = {"update": MeasuredWeights(variant="book", replays=10), "average": 1.0}
        rows += [
            offline_row("MWEM, Gaussian", mwem, stream, both, some, **free),
            offline_row("MWEM, Laplace", mwem, stream, pure, some, **free),
            offline_row("MWEM, Gaussian, as printed", mwem, stream, both, one, **free, **printed),
        ]
        grids += [("MWEM, tables", both, config.table_rounds, tables)]
        grids += [("MWEM, Gaussian", both, config.gaussian_rounds, {})]
        grids += [("MWEM, Laplace", pure, config.laplace_rounds, {})]
    for label, budget, all_rounds, options in grids:
        found = [
            offline_row(f"{label}, best of a grid", mwem, stream, budget, one, rounds=rounds, **options)
            | {"peeks": True}
            for rounds in all_rounds
        ]
        rows += found
    return rows


def run(quick: bool) -> dict:
    start = time.perf_counter()
    short = Config(
        queries=100, rounds=8, gaussian_rounds=(5,), laplace_rounds=(5,), table_rounds=(5,), runs=1
    )
    config = attrs.evolve(short, mwem_runs=1, workloads=("adult5", "NLTCS")) if quick else Config()
    budget, drawn = ic.Budget(config.epsilon, config.delta), seeds(config.seed, config.runs)
    rows, absent = [], []
    for stream in streams(config, absent):
        tables = baselines(stream, budget)["noisy tables"]
        engines = [
            measured("session", default_session(stream, budget), stream, drawn),
            measured("noisy tables", tables, stream, drawn),
            *offline_rows(stream, config, drawn),
        ]
        rows.append(
            {"stream": stream.label, "queries": len(stream.queries), "sets": len(stream.sets)}
            | {"n": stream.data.n, "cells": stream.data.domain.size, "engines": engines}
        )
        for one in engines:
            print(f"{stream.label:16} {one['engine']:36} {one.get('rounds', ''):>5} {1e5 * one['rms']:9.1f} "
                  f"{one['max']:.4f} {one['seconds']:6.1f} s", flush=True)  # fmt: skip
    return stamped(config, start, absent, rows=rows)


ENGINES = {
    "session": "online: default session",
    "noisy tables": "offline: noisy tables of all sets",
    "MWEM, tables": "offline: MWEM, tables, maximum entropy",
    "MWEM, tables, best of a grid": "  the same, best rounds of a grid",
    "MWEM, tables, pure": "  the same, delta = 0",
    "MWEM, Gaussian": "offline: MWEM, Gaussian numbers",
    "MWEM, Gaussian, best of a grid": "  the same, best rounds of a grid",
    "MWEM, Gaussian, as printed": "  the same, as printed in 2012",
    "MWEM, Laplace": "offline: MWEM, Laplace numbers, delta = 0",
    "MWEM, Laplace, best of a grid": "  the same, best rounds of a grid",
    "construction, tight": "offline: construction, tight",
    "construction, book": "offline: construction, book",
}


def best(row: dict, name: str) -> dict | None:
    """Return the engine of this name with the least rms, or None."""
    found = [one for one in row["engines"] if one["engine"] == name]
    return min(found, key=lambda one: one["rms"], default=None)


def cell(one: dict | None) -> str:
    """Return rms, largest error, rounds used of those planned, and promised error."""
    if one is None:
        return "-"
    text = f"{1e5 * one['rms']:,.0f}, {one['max']:.4f}"
    if "rounds" in one:
        used = round(one["used"])
        text += f" ({used:,})" if used == one["rounds"] else f" ({used:,} of {one['rounds']:,})"
    return text if one.get("promised") is None else f"{text}, alpha {one['promised']:.2f}"


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, absent = attrs.evolve(Config(), workloads=("adult5",)), list[str]()
    place, stream = Config().workloads.index("adult5"), next(streams(config, absent))
    make = default_session(stream, ic.Budget(config.epsilon, config.delta))
    seed = seeds(config.seed, config.runs)[0]
    return {f"rows/{place}/stream": stream.label} | one_seed(
        f"rows/{place}/engines/0", "session", make, stream, seed
    )


def table(result: dict) -> str:
    rows = result["rows"]
    lines = [
        f"| engine | {' | '.join(row['stream'] for row in rows)} |",
        "|---" * (1 + len(rows)) + "|",
        "| queries, cells | " + " | ".join(f"{row['queries']:,}, {row['cells']:,}" for row in rows) + " |",
    ]
    for name, label in ENGINES.items():
        shown = label.replace("  ", "&nbsp;&nbsp;")
        lines.append(f"| {shown} | {' | '.join(cell(best(row, name)) for row in rows)} |")
    return "\n".join(
        [
            *lines,
            "",
            "Each cell: rms error in 1e-5 of the records, mean largest error, (rounds), promised alpha.",
        ]
    )


def figure(result: dict, path: Path) -> None:
    """Draw rms of each engine on each workload; needs matplotlib."""
    from matplotlib.figure import Figure

    rows = result["rows"]
    canvas = Figure(figsize=(11, 4.6), layout="constrained")
    panels = canvas.subplots(1, len(rows), sharey=True, squeeze=False)[0]
    names = list(ENGINES)
    for axes, row in zip(panels, rows, strict=True):
        for place, name in enumerate(names):
            one = best(row, name)
            if one is None:
                axes.text(12, place, "not run", va="center", fontsize=7, color="grey")
                continue
            colour = "#0072B2" if name == "session" else "#BBBBBB" if one.get("peeks") else "#E69F00"
            axes.barh(place, 1e5 * one["rms"], color=colour, height=0.75, left=0)
            axes.text(1.1e5 * one["rms"], place, f"{1e5 * one['rms']:,.0f}", va="center", fontsize=7.5)
        axes.axvline(1e5 * best(row, "session")["rms"], color="#0072B2", lw=0.8, ls=":")
        axes.set_xscale("log")
        axes.set_xlim(10, 3e5)
        axes.set_title(row["stream"], fontsize=10)
        axes.set_yticks(range(len(names)), [ENGINES[name].strip() for name in names], fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].invert_yaxis()
    canvas.supxlabel(
        "rms error, 1e-5 of the records; blue: online, orange: offline, grey: rounds chosen by the result",
        fontsize=9,
    )
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
