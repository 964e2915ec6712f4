"""Regret of the default session on every stream at hand, beside what knows more: who wins where.

    python experiments/gallery.py [--quick] [--from-json] [--only STREAM ..]

Adult (five, six and eight attributes, and 1 to 1,000 questions of five), a health survey of 16 binary
attributes, four histograms of DPBench, the two streams of the Turbo comparison, a mixture of which pairs
hold little, tables without structure asked for dense queries or ranges, and chains, where pairs hold all. At
(1, 1e-9), or (1, 1e-6) for dense queries; simulated noise: NOT PRIVATE.

Regret is the session's rms error over that of the best of: noise on every distinct query, whose number it
knows; one noisy histogram; and the best fixed setting of the session in hindsight (`SETTINGS`; tried on a
third of the seeds, the best on all). The session is told the length of the stream, or left at 10,000. Beside
them stand known tables, which know the attribute sets, and matrix mechanisms, which know the stream: no such
one errs less than the bound, and the strategy of the singular value decomposition reaches the second figure.
These read no data and take minutes, so they are taken from the result that is there, if it has the same
stream: delete it to work them out again.
Writes results/gallery.json; the markdown tables and the figure are made from that file alone.
"""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from study.outcome import (
    RESULTS,
    baselines,
    default_session,
    measured,
    one_seed,
    script,
    seeds,
    stamped,
)
from study.sources import Stream
from study.streams import RANGES, REAL, Sizes, announced, budget_of, makers, quick_sizes, runs_of, streams

import onlineic as ic
from onlineic.evaluate import factorisation_bound

NAME = "gallery"
BASELINES = ("per-query, cached", "one noisy histogram", "noisy tables")
TOLD, UNTOLD = "default", "default, length not told"
USUAL = 10_000  # `max_queries` of a session that is not told
SMALL = 2**18  # cells up to which settings are tried that refit often: numbers, or many hits
COUNTS = ("hard", "untested", "trivial", "blind", "unbounded")
QUICK = ["adult5", "HEPTH", "no structure, halfspaces", "chain of 3", "adult5, 30 asked"]

SETTINGS: dict[str, Mapping[str, Any]] = {
    "tables, 5 hits": {"hard_answers": 5},
    "tables, 20 hits": {"hard_answers": 20},
    "no tables, 20 hits": {"hard_answers": 20, "purchases": ic.TestsOnly()},
}
FEW_REFITS = ("tables, 5 hits",)


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence. Streams of few questions have more runs, and so have
    real tables: errors of one run go together, as those of all ranges do that rest on the same few blocks."""

    sizes: Sizes = attrs.field(factory=Sizes)
    runs: int = 3
    runs_of_real: int = 5
    answers: int = 100  # of a stream over all runs, at the least, with at most so many runs:
    most_runs: int = 30
    settings: tuple[str, ...] = tuple(SETTINGS)
    seed: int = 20261122


def best_fixed(stream: Stream, settings: list[str], drawn: list[int]) -> list[dict]:
    """Return the rows of all settings on a third of the seeds, of the best on all."""
    some, budget = drawn[: max(1, len(drawn) // 3)], budget_of(stream)
    makers = {label: default_session(stream, budget, **SETTINGS[label]) for label in settings}
    tried = [measured(label, make, stream, some) for label, make in makers.items()]
    best = min(tried, key=lambda row: row["rms"])
    if some != drawn:
        tried[tried.index(best)] = measured(best["engine"], makers[best["engine"]], stream, drawn)
    return tried


def row_of(stream: Stream, config: Config, known: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the engines and bounds of one stream, with what is `known` of matrix mechanisms."""
    began, budget, data = time.process_time(), budget_of(stream), stream.data
    told = ic.forecast(data.domain, data.n, budget, questions=announced(stream))
    useful = max(one.bound for one in told.engines if math.isfinite(one.rms))
    least = config.runs_of_real if stream.label in REAL else config.runs
    drawn = seeds(config.seed, runs_of(stream, least, config.answers, config.most_runs))
    engines = [measured(TOLD, default_session(stream, budget), stream, drawn, useful=useful)]
    if len(stream.queries) != USUAL:
        untold = default_session(stream, budget, max_queries=USUAL, questions=None)
        engines.append(measured(UNTOLD, untold, stream, drawn, useful=useful))
    static = baselines(stream, budget)
    engines += [measured(label, static[label], stream, drawn) for label in BASELINES]
    settings = [name for name in config.settings if data.domain.size <= SMALL or name in FEW_REFITS]
    return {
        "stream": stream.label,
        "n": data.n,
        "cells": data.domain.size,
        "queries": len(stream.queries),
        "distinct": len({query.key for query in stream.queries if query.constant is None}),
        "sets": len(stream.sets),
        "delta": budget.delta,
        "start": told.start,
        "forecast": min(one.rms for one in told.engines if one.start == told.start),
        "useful": useful,
        "engines": engines,
        "fixed": best_fixed(stream, settings, drawn),
        "seconds": time.process_time() - began,
        "matrix": matrix_of(stream, known),
    }


def matrix_of(stream: Stream, known: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what matrix mechanisms reach: as `known` of the same stream at whatever n, or worked out."""
    n, budget, sets = stream.data.n, budget_of(stream), stream.sets
    distinct = len({query.key for query in stream.queries if query.constant is None})
    same = {"cells": stream.data.domain.size, "queries": len(stream.queries), "distinct": distinct}
    same |= {"sets": len(sets), "delta": budget.delta}
    for row in known:
        alike = row["stream"] == stream.label or {row["stream"], stream.label} <= set(RANGES)
        if alike and all(row[name] == value for name, value in same.items()):
            held = row["matrix"]
            factor = row["n"] / n
            return {**held, "least": factor * held["least"], "reached": factor * held["reached"]}
    began = time.process_time()
    bound = factorisation_bound(stream.data.domain, n, budget, stream.queries)
    return {
        "least": bound.least,
        "reached": bound.reached,
        "every_pair": bound.every_pair,
        "seconds": time.process_time() - began,
    }


def run(quick: bool, only: list[str]) -> dict:
    start, absent, rows = time.perf_counter(), [], []
    quickly = Config(quick_sizes(), runs=1, runs_of_real=1, answers=1, settings=FEW_REFITS)
    config, only = (quickly, only or QUICK) if quick else (Config(), only)
    path = RESULTS / f"{NAME}.json"
    known = json.loads(path.read_text())["rows"] if path.is_file() else []
    for stream in streams(config.sizes, absent, only):
        rows.append(row_of(stream, config, [*known, *rows]))
        row = rows[-1]
        print(
            f"{row['stream']}: {1e5 * engine(row, TOLD)['rms']:.2f}, regret {regret(row, TOLD):.2f} "
            f"against {rival(row)[0]}, {row['seconds']:.1f} s",
            flush=True,
        )
    return stamped(config, start, absent, rows=rows)


def engine(row: dict, label: str) -> dict:
    """Return the row of an engine; a stream of the usual length tells nothing that is not known."""
    found = {one["engine"]: one for one in row["engines"]}
    return found.get(label, found[TOLD])


def in_hindsight(row: dict) -> dict:
    """Return the best fixed setting, of those that were run on all seeds."""
    runs = max(len(one["seeds"]) for one in row["fixed"])
    return min((one for one in row["fixed"] if len(one["seeds"]) == runs), key=lambda one: one["rms"])


def rival(row: dict) -> tuple[str, float]:
    """Return (label, rms) of the best of what regret compares with."""
    compared = [engine(row, label) for label in BASELINES[:2]] + [in_hindsight(row)]
    best = min(compared, key=lambda one: one["rms"])
    return best["engine"], best["rms"]


def regret(row: dict, label: str) -> float:
    return engine(row, label)["rms"] / rival(row)[1]


def shown(value: float) -> str:
    """Return an rms in 1e-5 of the records."""
    return f"{1e5 * value:,.0f}" if value >= 1e-2 else f"{1e5 * value:,.3g}"


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, label = Config(), "adult5, 1,000 asked"
    found = makers(config.sizes)
    stream = found[label]()
    seed = seeds(config.seed, 1)[0]
    place = f"rows/{list(found).index(label)}"
    return {f"{place}/stream": label} | one_seed(
        f"{place}/engines/0", TOLD, default_session(stream, budget_of(stream)), stream, seed
    )


def table(result: dict) -> str:
    lines = [
        "| stream | n | cells | asked, distinct | session | length not told | cached noise | histogram "
        "| known tables | matrix bound, SVD | best fixed setting | regret | regret, not told |",
        "|" + "---|" * 13,
    ]
    for row in result["rows"]:
        compared = " | ".join(shown(engine(row, label)["rms"]) for label in (TOLD, UNTOLD, *BASELINES))
        matrix, best = row["matrix"], in_hindsight(row)
        reached = f"{shown(matrix['least'])}, {shown(matrix['reached'])}"
        lines.append(
            f"| {row['stream']} | {row['n']:,} | {row['cells']:,} | {row['queries']:,}, {row['distinct']:,} "
            f"| {compared} | {reached} | {shown(best['rms'])} ({best['engine']}) "
            f"| {regret(row, TOLD):.2f} | {regret(row, UNTOLD):.2f} |"
        )
    lines += [
        "",
        "Errors are rms over all queries and seeds, in 1e-5 of the records.",
        "",
        "| stream | start | forecast | session | largest error | hard | untested | trivial bound "
        "| blind test | and a wide bound | limit of a useful threshold | spent | why tests are blind |",
        "|" + "---|" * 13,
    ]
    for row in result["rows"]:
        one = engine(row, TOLD)
        counts = " | ".join(f"{one[name]:,.1f}" for name in COUNTS)
        lines.append(
            f"| {row['stream']} | {row['start']} | {shown(row['forecast'])} | {shown(one['rms'])} "
            f"| {shown(one['max'])} | {counts} | {shown(row['useful'])} | {one['spent']:.0%} "
            f"| {why_blind(row['start'], one)} |"
        )
    lines += [
        "",
        "Answers of one session that is told the length: untested ones by their label; of the others those "
        "whose bound is .5 or more; those whose test had a threshold above what the worst engine of the "
        "forecast errs by (95 % of one answer); and those of them whose bound is above that, too.",
    ]
    return "\n".join(lines)


def why_blind(start: str, one: dict) -> str:
    """Return why answers had no useful test: tables were worth more, and most often bound them as well."""
    if not one["blind"]:
        return "-"
    if not one["unbounded"]:
        return "the noise of the tables bounds all that is asked"
    if start == "cells":
        return "the table of all cells errs less; its bounds of such weights hold for the worst of them"
    return "tables of pairs err less; what three attributes hold beyond pairs, tests alone bound"


MARKS = {
    "per-query, cached": ("o", "#E69F00", "noise on each distinct query"),
    "one noisy histogram": ("s", "#009E73", "one noisy histogram"),
    "noisy tables": ("^", "#CC79A7", "tables of all attribute sets"),
}


def figure(result: dict, path: Path) -> None:
    """Draw every engine's rms relative to the default session's; needs matplotlib."""
    from matplotlib.figure import Figure

    rows = result["rows"][::-1]
    canvas = Figure(figsize=(9.0, 1.6 + 0.3 * len(rows)), layout="constrained")
    axes = canvas.add_subplot()
    for place, row in enumerate(rows):
        default = engine(row, TOLD)["rms"]
        first = place == 0
        ends = [row["matrix"][name] / default for name in ("least", "reached")]
        axes.plot(
            ends,
            [place, place],
            color="#56B4E9",
            linewidth=5.0,
            solid_capstyle="butt",
            label="matrix mechanisms: bound to SVD strategy" if first else None,
        )
        for name, (mark, colour, label) in MARKS.items():
            axes.plot(
                engine(row, name)["rms"] / default,
                place,
                mark,
                color=colour,
                markersize=6,
                label=label if first else None,
            )
        axes.plot(
            in_hindsight(row)["rms"] / default,
            place,
            "D",
            markersize=5,
            markerfacecolor="none",
            color="black",
            label="best fixed setting of the session" if first else None,
        )
        untold = engine(row, UNTOLD)["rms"] / default
        axes.plot(
            untold,
            place,
            "x",
            color="#0072B2",
            markersize=6,
            label="session, length not told" if first else None,
        )
        if place % 2:
            axes.axhspan(place - 0.5, place + 0.5, color="#F3F3F3", zorder=0)
    axes.axvline(1.0, color="#0072B2", linewidth=2.0, label="default session", zorder=1)
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["0.5", "1", "2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_ylim(-0.5, len(rows) - 0.5)
    axes.set_yticks(range(len(rows)), [f"{row['stream']}  (n = {row['n']:,})" for row in rows], fontsize=8)
    axes.set_xlabel("rms error / rms error of the default session (left of the line: it errs less)")
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    canvas.legend(loc="outside upper center", fontsize=8, ncols=3)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure, order=list(makers(Sizes())))
