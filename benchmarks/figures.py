"""Figures of a result file of the benchmarks, from the JSON alone: NAME_error_against_time.png and its like.

Colours are those of Okabe and Ito, told apart by colour-blind readers; markers and dashes differ too.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks import tables

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F", "#882255")
DASHES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (7, 3)),
    (0, (1, 2)),
    (0, (3, 1)),
)
MARKERS = "osD^vPX*"
MODES = ("default", "planned", "certified", "textbook", "static")
AXES = {
    "cells": "cells |X|",
    "n": "records n",
    "hard_answers": "hard answers planned c",
    "queries": "queries Q",
}


def draw(result: dict[str, Any], path: Path) -> list[Path]:
    """Write all figures beside the result file, and return where."""
    drawn = []
    for name, make in (
        ("error_against_time", error_against_time),
        ("hard_over_stream", hard_over_stream),
        ("growth", growth),
    ):
        place = path.with_name(f"{path.stem}_{name}.png")
        make(result).savefig(place)
        drawn.append(place)
    return drawn


def shown(result: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """Return the rows with a figure of the groups that are shown, by cells."""
    return {cells: [row for row in rows if "rms" in row] for cells, rows in tables.shown(result).items()}


def setting(result: dict[str, Any]) -> str:
    group = next(iter(shown(result).values()))[0]["group"]
    budget = f"({group['epsilon']:g}, {group['delta']:g})"
    return f"stream {group['stream']}, n = {group['n']:,}, {budget}, {group['queries']:,} queries"


def error_against_time(result: dict[str, Any]) -> Figure:
    """Draw rms against the time of a query, all costs included; those that none beats in both are named."""
    groups = shown(result)
    figure = Figure(figsize=(4.6 * len(groups), 4.8), layout="constrained", dpi=110)
    for place, (cells, rows) in enumerate(groups.items()):
        axes = figure.add_subplot(1, len(groups), place + 1)
        for mode, colour, marker in zip(MODES, COLOURS, MARKERS, strict=False):
            some = [row for row in rows if row["mode"] == mode]
            axes.errorbar(
                [row["microseconds_each"] for row in some],
                [row["rms"]["mean"] for row in some],
                yerr=[
                    [min(row["rms"]["half"] or 0.0, 0.9 * row["rms"]["mean"]) for row in some],
                    [row["rms"]["half"] or 0.0 for row in some],
                ],
                fmt=marker,
                color=colour,
                label=mode,
                markersize=10 if mode == "default" else 6,
                elinewidth=0.8,
                linestyle="none",
            )
        for name, spot in unbeaten(rows).items():
            axes.annotate(name, spot, xytext=(7, 3), textcoords="offset points", fontsize=8, va="bottom")
        axes.set(xscale="log", yscale="log", xlabel="µs a query, opening and refits included")
        axes.margins(x=0.25)
        axes.set_title(f"{cells:,} cells", loc="left", fontsize=11)
        plain(axes)
        if place == 0:
            axes.set_ylabel("rms error, fraction of records")
            axes.legend(fontsize=8)
    figure.suptitle(f"Error against time (NOT PRIVATE): {setting(result)}", fontsize=11)
    return figure


def unbeaten(rows: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return where those stand than which no other is faster and more accurate; close ones share a name."""
    spots = {row["engine"]: (row["microseconds_each"], row["rms"]["mean"]) for row in rows}
    found: dict[str, tuple[float, float]] = {}
    for engine, spot in spots.items():
        if any(x < spot[0] and y < spot[1] for x, y in spots.values()):
            continue
        near = [
            name
            for name, at in found.items()
            if all(0.5 < a / b < 2.0 for a, b in zip(at, spot, strict=True))
        ]
        if near:
            found[f"{near[0]}\n{engine}"] = found.pop(near[0])
        else:
            found[engine] = spot
    return found


def hard_over_stream(result: dict[str, Any]) -> Figure:
    """Draw how many answers were hard so far, of every rule at the planner's own parameters, on one seed."""
    groups = shown(result)
    figure = Figure(figsize=(4.6 * len(groups), 4.6), layout="constrained", dpi=110)
    names = list(dict.fromkeys(row["rule"] for rows in groups.values() for row in rows if taught(row)))
    for place, (cells, rows) in enumerate(groups.items()):
        axes = figure.add_subplot(1, len(groups), place + 1)
        for row in filter(taught, rows):
            style = names.index(row["rule"])
            asked = [0, *(at + 1 for at in row["hard_at"]), row["queries"]]
            count = [0, *range(1, len(row["hard_at"]) + 1), len(row["hard_at"])]
            axes.step(
                asked,
                count,
                where="post",
                label=row["rule"],
                color=COLOURS[style % len(COLOURS)],
                linestyle=DASHES[style % len(DASHES)],
                linewidth=2.6 if row["mode"] == "default" else 1.5,
            )
        axes.set(xlabel="queries asked", xlim=(0, rows[0]["queries"]))
        axes.set_ylim(bottom=0)
        axes.set_title(f"{cells:,} cells", loc="left", fontsize=11)
        plain(axes)
        if place == 0:
            axes.set_ylabel("hard answers so far")
    handles = {
        label: line
        for axes in figure.axes
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside right center", fontsize=8)
    figure.suptitle(f"Hard answers over the stream, one seed: {setting(result)}", fontsize=11)
    return figure


def taught(row: dict[str, Any]) -> bool:
    return row["mode"] in ("default", "planned")


def growth(result: dict[str, Any]) -> Figure:
    """Draw error and time against |X|, n, c and Q, one at a time."""
    figure = Figure(figsize=(15.0, 7.0), layout="constrained", dpi=110)
    engines = list(dict.fromkeys(row["engine"] for row in result["growth"]))
    centre = result["grid"]["centre"]
    rows_of: dict[int, Any] = {}  # the axes of a line share their scale
    for column, (axis, label) in enumerate(AXES.items()):
        for line, (key, title) in enumerate((("rms", "rms error, fraction"), ("time", "µs a query"))):
            axes = figure.add_subplot(2, 4, 4 * line + column + 1, sharey=rows_of[line] if column else None)
            rows_of[line] = axes
            for style, engine in enumerate(engines):
                rows = [
                    row
                    for row in result["growth"]
                    if (row["axis"], row["engine"]) == (axis, engine) and "rms" in row
                ]
                values = [row["rms"]["mean"] if key == "rms" else row["microseconds_each"] for row in rows]
                axes.plot(
                    [row["value"] for row in rows],
                    values,
                    label=engine,
                    color=COLOURS[style],
                    linestyle=DASHES[style],
                    marker=MARKERS[style],
                    markersize=5,
                    linewidth=2.4 if style == 0 else 1.4,
                )
            axes.set(xscale="log", yscale="log")
            ticks = sorted({row["value"] for row in result["growth"] if row["axis"] == axis})
            if ticks[-1] > 10**9 * ticks[0]:  # labels need room
                ticks = [tick for tick in ticks if round(math.log10(tick)) % 3 == 0]
            axes.set_xticks(ticks, [short(tick) for tick in ticks])
            axes.xaxis.set_minor_locator(NullLocator())
            plain(axes)
            if column == 0:
                axes.set_ylabel(title)
            if line == 1:
                axes.set_xlabel(label)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
    figure.suptitle(
        f"Growth, one at a time from {centre['cells']:,} cells, n = {centre['n']:,}, "
        f"({centre['epsilon']:g}, {centre['delta']:g}), {centre['queries']:,} queries in batches",
        fontsize=11,
    )
    return figure


def short(value: int) -> str:
    """Return 1000000 as 1M, and what is larger than that by far as 1e9."""
    if value >= 10**9:
        return f"{value:g}".replace("e+0", "e").replace("e+", "e")
    for size, unit in ((10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return str(value)


def plain(axes: Any) -> None:
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


if __name__ == "__main__":  # the figures of a result file, drawn again
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[1]))
