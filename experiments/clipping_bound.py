"""A clipping bound by sparse vector and the private mean of clipped values, on two columns of Adult.

    python experiments/clipping_bound.py [--quick] [--from-json]

The 32,561 training rows. Age is in years, its public range 0..150. Of Capital Gain only a code is at hand:
100 equal bins of about 1,000, so that values, bounds and means are in bins (true mean 1.043; the raw column's
is about 1,078), and 99 bounds are tried. Where Adult has not been fetched, there is Age alone, of all 48,842
rows. Methods, all at the same total epsilon:

* text: thirds for AboveThreshold (Lap(2/e), Lap(4/e)), for the clipped sum and for the count;
* auto_avg, three parts: the same split with the test noise that counts moving one way allow;
* auto_avg: halves for bound and sum, divided by the public n;
* quantile: half for a quantile as the bound (chosen by noisy scores), half for the sum;
* mean: everything on the sum, clipped at nothing but the public range.

Errors are differences from the mean that numpy computes: NOT PRIVATE.
Writes results/clipping_bound.json; the markdown table and the figure are made from that file alone.
"""

import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import adult_rows, first, present

import onlineic as ic
from onlineic.datasets import adult5
from onlineic.mechanisms import LaplaceMechanism
from onlineic.noise import Noise, SimulatedNoise, scale_at_least
from onlineic.offline import auto_avg, clipping_bound, mean, quantile
from onlineic.sparse import AboveThreshold

NAME = "clipping_bound"
TRAINING = 32_561


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    epsilons: tuple[float, ...] = (0.1, 1.0)
    runs: int = 1_500
    shown_runs: int = 20
    shown: float = 0.1  # epsilon of the figures
    quantiles: tuple[float, ...] = (0.99, 0.999)
    tops: tuple[int, ...] = (90, 150, 300, 1_000, 10_000)
    sweep_runs: int = 400
    seed: int = 20261121


@attrs.frozen(eq=False)
class Column:
    """One attribute as raw values and as a private table over its public range 0..top."""

    name: str
    values: np.ndarray
    top: int
    above: np.ndarray  # how many records lie above each value 0..top
    data: ic.PrivateData

    @classmethod
    def of(cls, name: str, values: np.ndarray, top: int) -> "Column":
        domain = ic.Domain.of(x=range(top + 1))
        above = values.size - np.cumsum(np.bincount(values, minlength=top + 1))
        return cls(name, values, top, above, ic.PrivateData.from_records({"x": values}, domain))


def columns(absent: list[str]) -> list[Column]:
    """Return Age, and Capital Gain where it is there."""

    def training(label: str, shift: int) -> np.ndarray:
        return np.array([int(row[label]) + shift for row in adult_rows()[:TRAINING]])

    def shipped() -> np.ndarray:
        found, counts = adult5()
        return np.repeat(found["age"], counts)

    ages = first({"Age, training rows": lambda: training("age", 16), "Age, all rows": shipped}, absent)
    gains = present({"Capital Gain": lambda: training("capital-gain", 0)}, absent)
    return [Column.of("Age", ages, 150), *(Column.of("Capital Gain", one, 99) for one in gains)]


def laplace_sum(column: Column, bound: int, epsilon: float, noise: Noise) -> int:
    """Return the noisy sum of min(x, bound)."""
    exact = int(np.minimum(column.values, bound).sum())
    return int(LaplaceMechanism(epsilon, bound).release(exact, noise)[0])


def text(column: Column, epsilon: float, noise: Noise) -> tuple[float, int]:
    """Return (mean, bound) of the text's auto_avg, with its right test noise and a count of at least 1."""
    share = epsilon / 3
    index = AboveThreshold(share, 0).first(-column.above[1:], noise)
    bound = column.top if index is None else 1 + index
    total = laplace_sum(column, bound, share, noise)
    count = int(LaplaceMechanism(share).release(column.values.size, noise)[0])
    return total / max(1, count), bound


def by_quantile(q: float) -> Callable[[Column, float, Noise], tuple[float, int]]:
    """Return the mean clipped at a private quantile."""

    def method(column: Column, epsilon: float, noise: Noise) -> tuple[float, int]:
        bound = max(1, int(quantile(column.data, "x", q, epsilon / 2, noise=noise).value))
        return laplace_sum(column, bound, epsilon / 2, noise) / column.values.size, bound

    return method


def by_auto_avg(count: str) -> Callable[[Column, float, Noise], tuple[float, int]]:
    """Return the library's mean of clipped values."""

    def method(column: Column, epsilon: float, noise: Noise) -> tuple[float, int]:
        result = auto_avg(column.data, "x", epsilon, count=count, noise=noise)
        return result.value, result.bound

    return method


def whole(column: Column, epsilon: float, noise: Noise) -> tuple[float, int]:
    """Return the Laplace mean over the public range."""
    return mean(column.data, "x", epsilon, noise=noise).value, column.top


def methods(config: Config) -> dict[str, Callable[[Column, float, Noise], tuple[float, int]]]:
    """Return every method by name, in the order of the table."""
    return {
        "text, three parts": text,
        "auto_avg, three parts": by_auto_avg("noisy"),
        "auto_avg": by_auto_avg("public"),
        **{f"quantile {q:g}": by_quantile(q) for q in config.quantiles},
        "mean, whole range": whole,
    }


def measured(column: Column, name: str, method: Callable, epsilon: float, runs: int, noise: Noise) -> dict:
    """Return one row: errors and bounds over many runs."""
    drawn = [method(column, epsilon, noise) for _ in range(runs)]
    values, bounds = np.array([one[0] for one in drawn]), np.array([one[1] for one in drawn])
    errors = np.abs(values - column.values.mean())
    return {
        "column": column.name,
        "epsilon": epsilon,
        "method": name,
        "error": float(errors.mean()),
        "largest": float(errors.max()),
        "bound": np.quantile(bounds, [0.05, 0.5, 0.95], method="inverted_cdf").tolist(),
        "above": float(np.median(column.above[bounds])),
        "values": values[:20].tolist(),
    }


def path_of(column: Column, epsilon: float, seed: int) -> dict:
    """Return one search: g_b, its noise and where it stopped, drawn again from the seed of the search."""
    found = clipping_bound(column.data, "x", epsilon, noise=SimulatedNoise(seed))
    noise, bounds = SimulatedNoise(seed), np.arange(1, column.top + 1)
    scale = scale_at_least(2 / Fraction(epsilon))
    rho, *nu = noise.discrete_laplace(scale, 1 + bounds.size).tolist()
    g = -column.above[1:]
    hits = np.flatnonzero(g + nu >= rho)
    assert found.bound == bounds[hits[0] if hits.size else -1]  # the same draws, so the same stop
    return {
        "column": column.name,
        "g": g.tolist(),
        "noisy": (g + nu).tolist(),
        "threshold": rho,
        "bound": found.bound,
        "hit": found.hit,
        "records_above": found.records_above,
    }


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), []
    config = Config(runs=20, tops=(150, 10_000), sweep_runs=5) if quick else Config()
    tried = columns(absent)
    drawn = iter(seeds(config.seed, 100))
    paths = [path_of(column, config.shown / 2, next(drawn)) for column in tried]
    rows = []
    for column in tried:
        for epsilon in config.epsilons:
            for name, method in methods(config).items():
                noise = SimulatedNoise(next(drawn))
                rows.append(measured(column, name, method, epsilon, config.runs, noise))
    sweep = []
    for top in config.tops:
        column = Column.of("Age", tried[0].values, top)
        for name, method in methods(config).items():
            if name.startswith("text"):
                continue
            noise = SimulatedNoise(next(drawn))
            row = measured(column, name, method, config.shown, config.sweep_runs, noise)
            sweep.append({"top": top, "method": name, "error": row["error"], "bound": row["bound"]})
    truth = {column.name: float(column.values.mean()) for column in tried}
    return stamped(config, start, absent, truth=truth, rows=rows, paths=paths, sweep=sweep)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, absent = Config(), list[str]()
    tried, drawn = columns(absent), seeds(config.seed, 100)
    return {} if absent else {"paths/0": path_of(tried[0], config.shown / 2, drawn[0])}


def table(result: dict) -> str:
    lines = [
        "| column | epsilon | method | mean error | largest | bound: 5 %, median, 95 % | records above |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        bound = "-" if "whole" in row["method"] else ", ".join(map(str, row["bound"]))
        lines.append(
            f"| {row['column']} | {row['epsilon']:g} | {row['method']} | {row['error']:.4f} "
            f"| {row['largest']:.3f} | {bound} | {row['above']:.0f} |"
        )
    config, truth = result["config"], result["truth"]
    tops = sorted({one["top"] for one in result["sweep"]})
    shown = {
        "Age": "Age in years (true mean {:.3f})",
        "Capital Gain": "Capital Gain in bins (true mean {:.4f})",
    }
    means = ", ".join(shown[name].format(value) for name, value in truth.items())
    lines += [
        "",
        f"{config['runs']:,} runs each; {means}; records above the bound: median. Mean error of Age at "
        f"epsilon = {config['shown']:g}, by the public range 0..top:",
        "",
        f"| method | {' | '.join(f'top {top:,}' for top in tops)} |",
        f"|---{'|---' * len(tops)}|",
    ]
    for name in dict.fromkeys(one["method"] for one in result["sweep"]):
        found = {one["top"]: one["error"] for one in result["sweep"] if one["method"] == name}
        lines.append(f"| {name} | {' | '.join(f'{found[top]:.3f}' for top in tops)} |")
    return "\n".join(lines)


COLOURS = {
    "text, three parts": "#E69F00",
    "auto_avg, three parts": "#CC79A7",
    "auto_avg": "#0072B2",
    "quantile 0.99": "#009E73",
    "quantile 0.999": "#56B4E9",
    "mean, whole range": "#555555",
}


def figure(result: dict, path: Path) -> None:
    """Draw search, 20 runs and errors for both columns; needs matplotlib."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    config = result["config"]
    canvas = Figure(figsize=(12.5, 6.6), layout="constrained")
    grid = canvas.subplots(2, 3)
    units = {"Age": "years", "Capital Gain": "bins of about 1,000"}
    for place, search in enumerate(result["paths"]):
        name = search["column"]
        axes = grid[place][0]
        bounds = np.arange(1, len(search["g"]) + 1)
        chosen = f"{'chosen' if search['hit'] else 'no hit, the last'}: {search['bound']}"
        axes.plot(bounds, search["noisy"], ".", ms=3, color="#56B4E9", label="noisy $g_b$")
        axes.plot(bounds, search["g"], color="#0072B2", lw=1.3, label="$g_b$ = minus the records above b")
        axes.axhline(search["threshold"], color="#D55E00", lw=1, ls="--", label="noisy threshold")
        axes.axvline(search["bound"], color="black", lw=1, label=chosen)
        axes.set_yscale("symlog", linthresh=100)
        axes.set_xlabel(f"candidate bound b, {units[name]}")
        axes.set_title(f"{name}: one search at epsilon = {config['shown'] / 2:g}", fontsize=10)
        axes.set_ylim(top=3e4)
        axes.set_ylabel("minus records")
        axes.legend(fontsize=7, loc="upper left")
        found = {
            row["method"]: row
            for row in result["rows"]
            if row["column"] == name and row["epsilon"] == config["shown"]
        }
        axes = grid[place][1]
        truth = result["truth"][name]
        kept = ["text, three parts", "auto_avg", "mean, whole range"]
        drawn = [np.array(found[one]["values"][: config["shown_runs"]]) for one in kept]
        edges = np.histogram_bin_edges(np.concatenate(drawn), 16)
        axes.hist(drawn, bins=edges, color=[COLOURS[one] for one in kept], label=kept)
        axes.axvline(truth, color="black", lw=1, ls="--", label=f"numpy mean {truth:.3f}")
        axes.set_xlabel(f"released mean, {units[name]}")
        axes.set_title(f"{name}: {config['shown_runs']} runs at epsilon = {config['shown']:g}", fontsize=10)
        axes.set_ylim(top=1.45 * axes.get_ylim()[1])
        axes.set_ylabel("runs")
        axes.legend(fontsize=7, loc="upper left", ncols=2)
    for axes in grid[len(result["paths"]) :, :2].flat:
        axes.set_axis_off()
    axes = grid[0][2]
    names = list(COLOURS)
    handles = [Patch(color=COLOURS[one], label=one) for one in names]
    axes.legend(handles=handles, fontsize=7)
    for place, column in enumerate(result["truth"]):
        found = {
            row["method"]: row["error"]
            for row in result["rows"]
            if row["column"] == column and row["epsilon"] == config["shown"]
        }
        places = place + 0.13 * (np.arange(len(names)) - 2.5)
        axes.bar(places, [found[one] for one in names], 0.12, color=[COLOURS[one] for one in names])
    named = {"Age": "Age (years)", "Capital Gain": "Capital Gain (bins)"}
    axes.set_xticks(range(len(result["truth"])), [named[one] for one in result["truth"]])
    axes.set_ylabel("mean |error|")
    axes.set_title(f"epsilon = {config['shown']:g}, {config['runs']:,} runs", fontsize=10)
    axes = grid[1][2]
    for name in dict.fromkeys(one["method"] for one in result["sweep"]):
        found = [(one["top"], one["error"]) for one in result["sweep"] if one["method"] == name]
        axes.plot(*zip(*found, strict=True), "o-", ms=4, color=COLOURS[name], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("largest value of the public range")
    axes.set_ylabel("mean |error|, years")
    axes.set_title(f"Age, epsilon = {config['shown']:g}: a range that says less", fontsize=10)
    axes.legend(fontsize=7)
    canvas.savefig(path, dpi=100)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
