"""Resolution of the sparse-vector mechanisms: the gap that each finds among a thousand easy tests.

    python experiments/resolution.py [--quick] [--from-json]

G, in counts, for c hard answers at epsilon = 1: the threshold T is such that 1000 tests of equal numbers for
every hard answer give a false hit with 5 %, and a gap of G is missed with 5 %. No data: T and G come from the
laws of the noise (scales from the library); then the mechanisms themselves are run at this T, with simulated
noise. Writes results/resolution.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from scipy.optimize import brentq
from study.outcome import script, seeds, stamped

import onlineic as ic
from onlineic.noise import SimulatedNoise
from onlineic.sparse import (
    ExponentialSparse,
    GumbelSparse,
    LaplaceSparse,
    NumericSparse,
    exponential_resolution,
    gumbel_resolution,
)

NAME = "resolution"
N, BITS = 10**9, 8  # n plays no part in counts; the grid is fine enough for continuous laws
MECHANISMS = ("Laplace", "exponential", "Gumbel")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    hard_answers: tuple[int, ...] = (10, 50, 200, 1000)
    deltas: tuple[float, ...] = (1e-6, 1e-9)
    epsilon: float = 1.0
    tests: int = 1000
    rate: float = 0.05
    repeats: int = 2000
    seed: int = 20261121


PRINTED = {  # of the design's own table, delta = 1e-6 (and 0 for the exponential one)
    "Laplace": (571, 2856, 8703, 19461),  # for c = 10 and 50 pure noise is the better branch
    "exponential": (244, 1112, 4300, 21176),
    "Gumbel": (254, 464, 853, 1823),
}


def laplace_false_hit(threshold: float, wide: float, narrow: float, tests: int) -> float:
    """P(one of `tests` equal numbers, tested on both sides, fires): Lap(wide) >= T + Lap(narrow), one T."""
    noise = np.linspace(-40.0 * narrow, 40.0 * narrow, 40_001)
    density = np.exp(-np.abs(noise) / narrow) / (2.0 * narrow) * (noise[1] - noise[0])
    level = threshold + noise
    above = np.where(level > 0.0, np.exp(-np.abs(level) / wide) / 2, 1.0 - np.exp(-np.abs(level) / wide) / 2)
    with np.errstate(divide="ignore"):
        return float(np.sum(density * -np.expm1(2.0 * tests * np.log1p(-above))))


def laplace_missed(wide: float, narrow: float, rate: float) -> float:
    """Return x with P(Lap(wide) - Lap(narrow) < -x) = rate, x > 0."""

    def tail(x: float) -> float:
        squares = wide**2 - narrow**2
        return (wide**2 * math.exp(-x / wide) - narrow**2 * math.exp(-x / narrow)) / (2.0 * squares) - rate

    return brentq(tail, 0.0, 60.0 * wide)


def predicted(name: str, mechanism: NumericSparse, config: Config) -> tuple[float, float]:
    """Return (T, G), counts, from the scales of a calibrated mechanism."""
    unit, tests, rate = 1 << BITS, config.tests, config.rate
    if isinstance(mechanism, GumbelSparse):
        scale = float(mechanism.scale) / unit
        threshold = -scale * math.log(-math.log1p(-rate) / tests)
        return threshold, threshold + scale * math.log(-math.log(rate))
    if isinstance(mechanism, ExponentialSparse):  # two sides, each P(nu - rho >= T) = b2/(b1 + b2) e^(-T/b2)
        b1, b2 = float(mechanism.threshold_scale) / unit, float(mechanism.query_scale) / unit
        threshold = b2 * math.log(2.0 * tests * b2 / ((b1 + b2) * rate))
        share = b1 / ((b1 + b2) * rate)
        return threshold, threshold + (
            b1 * math.log(share) if share > 1 else b2 * math.log((1 - rate) * (b1 + b2) / b2)
        )
    wide, narrow = float(mechanism.query_scale) / unit, float(mechanism.threshold_scale) / unit
    threshold = brentq(lambda level: laplace_false_hit(level, wide, narrow, tests) - rate, wide, 60.0 * wide)
    return threshold, threshold + laplace_missed(wide, narrow, rate)


def calibrated(
    name: str, cutoff: int, delta: float, config: Config, threshold: float | None
) -> NumericSparse:
    """Return the mechanism that pays for exactly c hard answers, with this threshold in counts."""
    common = {
        "n": N,
        "hard_answers": cutoff,
        "max_queries": config.tests,
        "grid_bits": BITS,
        "threshold": threshold / N,
    }
    budget = ic.Budget(config.epsilon, delta)
    if name == "Laplace":
        return LaplaceSparse.calibrated(budget, pair=True, **common)
    if name == "exponential":
        return ExponentialSparse.calibrated(budget, false_hits=0.0, **common)
    return GumbelSparse.calibrated(budget, false_hits=0.0, ratio=Fraction(2), **common)


def observed(mechanism: NumericSparse, gap: float, config: Config, seed: int) -> tuple[float, float]:
    """Return (share of sessions with a false hit in the first tests, share of gaps G missed)."""
    noise, unit = SimulatedNoise(seed), 1 << BITS
    zeros = np.zeros(config.tests, np.int64)
    moved = np.full(config.tests, unit, np.int64)
    false = missed = 0
    for _ in range(config.repeats):
        false += mechanism.step_many(mechanism.init(), zeros, moved, noise)[2] is not None
        missed += mechanism.step(mechanism.init(), round(gap * unit), unit, noise)[1] is None
    return false / config.repeats, missed / config.repeats


def library(name: str, cutoff: int, delta: float, config: Config) -> float | None:
    """Return the figure by which the library chooses between two mechanisms."""
    tests = config.tests * cutoff
    if name == "exponential":
        return exponential_resolution(cutoff, tests, config.epsilon)
    return gumbel_resolution(cutoff, tests, config.epsilon, delta) if name == "Gumbel" else None


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(repeats=100, deltas=(1e-6,)) if quick else Config()
    rows = []
    cases = [(name, delta) for name in MECHANISMS for delta in config.deltas if name != "exponential"]
    cases.insert(len(config.deltas), ("exponential", 0.0))
    drawn = seeds(config.seed, len(cases) * len(config.hard_answers))
    for (name, delta), cutoff in [(case, cutoff) for case in cases for cutoff in config.hard_answers]:
        seed = drawn[len(rows)]
        threshold, gap = predicted(name, calibrated(name, cutoff, delta, config, 300.0), config)
        false, missed = observed(calibrated(name, cutoff, delta, config, threshold), gap, config, seed)
        rows.append(
            {
                "mechanism": name,
                "delta": delta,
                "hard_answers": cutoff,
                "threshold": threshold,
                "G": gap,
                "false_hit": false,
                "missed": missed,
                "library": library(name, cutoff, delta, config),
                "seed": seed,
            }
        )
        print(rows[-1], flush=True)
    return stamped(config, start, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, name = Config(), next(iter(MECHANISMS))
    cutoff, delta, cases = config.hard_answers[0], config.deltas[0], len(MECHANISMS) * len(config.deltas)
    threshold, gap = predicted(name, calibrated(name, cutoff, delta, config, 300.0), config)
    seed = seeds(config.seed, cases)[0]
    false, missed = observed(calibrated(name, cutoff, delta, config, threshold), gap, config, seed)
    return {
        "rows/0/G": gap,
        "rows/0/threshold": threshold,
        "rows/0/false_hit": false,
        "rows/0/missed": missed,
        "rows/0/library": library(name, cutoff, delta, config),
    }


def table(result: dict) -> str:
    lines = [
        "| mechanism | delta | c | T | G | G of the design | false hits (5 %) | missed (5 %) | planner's G |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        name, cutoffs = row["mechanism"], result["config"]["hard_answers"]
        known = row["delta"] == (0.0 if name == "exponential" else 1e-6)
        printed = f"{PRINTED[name][cutoffs.index(row['hard_answers'])]:,}" if known else "-"
        planner = "-" if row["library"] is None else f"{row['library']:,.0f}"
        lines.append(
            f"| {name} | {row['delta']:g} | {row['hard_answers']:,} | {row['threshold']:,.0f} "
            f"| {row['G']:,.0f} | {printed} | {row['false_hit']:.4f} | {row['missed']:.4f} | {planner} |"
        )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw G against c; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = canvas.add_subplot()
    colours = {"Laplace": "#D55E00", "exponential": "#009E73", "Gumbel": "#0072B2"}
    marks = {0.0: ("-", "s"), 1e-6: ("-", "o"), 1e-9: ("--", "^")}
    groups: dict = {}
    for row in result["rows"]:
        groups.setdefault((row["mechanism"], row["delta"]), []).append((row["hard_answers"], row["G"]))
    for (name, delta), points in groups.items():
        line, mark = marks[delta]
        axes.plot(
            *zip(*points, strict=True), line, marker=mark, color=colours[name], label=f"{name}, δ = {delta:g}"
        )
    axes.set(xscale="log", yscale="log", xlabel="hard answers paid for, c", ylabel="resolution G, counts")
    axes.set_title(f"ε = {result['config']['epsilon']:g}; lower is better", fontsize=10, loc="left")
    axes.grid(True, color="#DDDDDD", linewidth=0.6)
    axes.legend(fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
