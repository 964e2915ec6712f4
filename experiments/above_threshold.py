"""The first of k queries above a threshold: AboveThreshold against noise for each, and Sparse for c hits.

    python experiments/above_threshold.py [--quick] [--from-json]

Resolution G, in counts (sensitivity 1), at epsilon = 1: the threshold T is the least at which k queries of
value 0 give a false hit with at most 5 %, and G the least value that is missed with at most 5 %. Exact sums
over the laws of the shipped scales; then AboveThreshold and Sparse themselves are run at this T, with
simulated noise. No data. "Naive" compares every query with fresh noise of its own and a known threshold.
Writes results/above_threshold.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from scipy.special import ndtri
from study.mechanisms import exponential_scales, gumbel_scale
from study.outcome import script, seeds, stamped

from onlineic.accounting import advanced_share, gaussian_mu
from onlineic.audit import Law, ThresholdRule, worst_loss
from onlineic.bounds import above_threshold_alpha, sparse_alpha
from onlineic.noise import SimulatedNoise, scale_at_least
from onlineic.sparse import AboveThreshold, Sparse

NAME = "above_threshold"
REACH = 45  # scales of threshold noise that are summed


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    queries: tuple[int, ...] = (1, 3, 10, 30, 100, 1000, 10_000, 100_000)
    cutoffs: tuple[int, ...] = (1, 3, 10, 50)
    tests: int = 1000  # for each hit, where several are wanted
    epsilon: float = 1.0
    delta: float = 1e-6
    rate: float = 0.05
    repeats: int = 2000
    seed: int = 20261121


def laplace(scale) -> Law:
    return Law("discrete_laplace", scale_at_least(Fraction(scale)))


def resolution(threshold: Law, test: Law, tests: int, rate: float) -> tuple[int, int]:
    """Return (T, G), exact: rho from one law once, nu from the other for every test."""
    reach = 0 if threshold.method == "none" else math.ceil(REACH * threshold.scale)
    rho = np.arange(-reach, reach + 1.0)
    mass = np.exp(threshold.log_mass(rho))

    def false_hit(level: int) -> float:
        return float(mass @ -np.expm1(tests * test.log_below(level + rho)))

    def missed(gap: int) -> float:
        return float(mass @ np.exp(test.log_below(level + rho - gap)))

    level = least(lambda t: false_hit(t) <= rate)
    return level, least(lambda gap: missed(gap) <= rate)


def least(holds) -> int:
    """Return the least integer at which a monotone statement holds."""
    high = 1
    while not holds(high):
        high *= 2
    low = -high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def gaussian_resolution(sigma: float, tests: int, rate: float) -> tuple[float, float]:
    level = -sigma * ndtri(-math.expm1(math.log1p(-rate) / tests))
    return level, level - sigma * ndtri(rate)


def gumbel_resolution(scale: float, tests: int, rate: float) -> tuple[float, float]:
    """P(hit) = 1 - exp(-e^((v - T)/b)), no threshold noise."""
    level = -scale * math.log(-math.log1p(-rate) / tests)
    return level, level + scale * math.log(-math.log(rate))


def kept_geometric(cutoff: int, epsilon: float) -> tuple[Law, Law]:
    """Return the one-sided noises of `ExponentialSparse`, one test a query."""
    b1, b2 = map(scale_at_least, exponential_scales(cutoff, epsilon))
    return Law("geometric", b1), Law("geometric", b2)


def observed(mechanism, level: int, gap: int, tests: int, config: Config, seed: int) -> tuple[float, float]:
    """Return (share of runs with a false hit, share of values G missed) of the running code."""
    noise = SimulatedNoise(seed)
    running = attrs.evolve(mechanism, threshold=level)
    zeros, alone = np.zeros(tests, np.int64), np.array([gap])
    false = missed = 0
    for _ in range(config.repeats):
        if isinstance(running, AboveThreshold):
            false += running.first(zeros, noise) is not None
            missed += running.first(alone, noise) is None
        else:
            false += bool(running.select(zeros, noise))
            missed += not running.select(alone, noise)
    return false / config.repeats, missed / config.repeats


def first_of(tests: int, config: Config) -> dict:
    """Return one row: the resolution of every mechanism for one hit among `tests` queries."""
    epsilon, delta, rate = config.epsilon, config.delta, config.rate
    none, beta = Law("none"), config.rate
    book, best = AboveThreshold(epsilon, 0), Sparse(epsilon, 0, 1, allocation="optimal")
    laws = {
        "AboveThreshold": (laplace(book.threshold_scale), laplace(book.query_scale)),
        "optimal allocation": (laplace(best.threshold_scale), laplace(best.query_scale)),
        "one-sided": kept_geometric(1, epsilon),
        "naive": (none, laplace(Fraction(tests) / Fraction(epsilon))),
        "naive, advanced": (none, laplace(1 / Fraction(advanced_share(epsilon, delta, tests)))),
        "naive, epsilon once": (none, laplace(1 / Fraction(epsilon))),
    }
    found = {name: resolution(*pair, tests, rate) for name, pair in laws.items()}
    found["Gumbel"] = gumbel_resolution(gumbel_scale(1, epsilon, delta), tests, rate)
    sigma = math.sqrt(tests) / gaussian_mu(epsilon, delta)
    found["naive, Gaussian"] = gaussian_resolution(sigma, tests, rate)
    # what the wrong budget of the naive variant really is; the audit goes as far as floats do
    rule = ThresholdRule(0, *laws["naive, epsilon once"])
    audited = worst_loss(rule, copies=(tests - 1,)) if tests <= 100 else None
    return {
        "queries": tests,
        "G": {name: pair[1] for name, pair in found.items()},
        "T": {name: pair[0] for name, pair in found.items()},
        "alpha": above_threshold_alpha(tests, epsilon, beta),
        "radius": book.radius(tests, beta),
        "real_epsilon": tests * epsilon,
        "audited": audited,
    }


def several(cutoff: int, config: Config, drawn: list[int]) -> dict:
    """Return one row for c hits: `tests` queries for each of them."""
    epsilon, rate, tests = config.epsilon, config.rate, config.tests
    row: dict = {"cutoff": cutoff, "seeds": drawn, "G": {}, "observed": {}, "radius": {}, "scales": {}}
    for seed, name in zip(drawn, ("restarts", "optimal"), strict=True):
        mechanism = Sparse(epsilon, 0, cutoff, allocation=name)
        scales = mechanism.threshold_scale, mechanism.query_scale
        level, gap = resolution(*map(laplace, scales), tests, rate)
        row["G"][name], row["scales"][name] = gap, [float(scale) for scale in scales]
        row["observed"][name] = observed(mechanism, level, gap, tests, config, seed)
        row["radius"][name] = mechanism.radius(tests * cutoff, rate)
    row["G"]["one-sided"] = resolution(*kept_geometric(cutoff, epsilon), tests, rate)[1]
    scale = gumbel_scale(cutoff, epsilon, config.delta)
    row["G"]["Gumbel"] = gumbel_resolution(scale, tests, rate)[1]
    row["alpha"] = sparse_alpha(cutoff, tests * cutoff, epsilon, 0.0, rate)
    return row


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(queries=(10, 1000), cutoffs=(1, 10), repeats=100) if quick else Config()
    drawn = seeds(config.seed, 1 + 2 * len(config.cutoffs))
    firsts = [first_of(tests, config) for tests in config.queries]
    check = next(row for row in firsts if row["queries"] == 1000)
    book = AboveThreshold(config.epsilon, 0)
    level, gap = check["T"]["AboveThreshold"], check["G"]["AboveThreshold"]
    check["observed"] = observed(book, level, gap, 1000, config, drawn[0])
    hits = [
        several(cutoff, config, drawn[1 + 2 * place : 3 + 2 * place])
        for place, cutoff in enumerate(config.cutoffs)
    ]
    return stamped(config, start, first=firsts, several=hits)


FIRST = {
    "AboveThreshold": "AboveThreshold",
    "optimal allocation": "optimal split",
    "one-sided": "one-sided noise",
    "Gumbel": "Gumbel (δ)",
    "naive": "naive, ε/k each",
    "naive, advanced": "naive, advanced (δ)",
    "naive, Gaussian": "naive, Gaussian (δ)",
    "naive, epsilon once": "naive, ε each",
}
SEVERAL = {"restarts": "restarts", "optimal": "optimal", "one-sided": "one-sided", "Gumbel": "Gumbel (δ)"}


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    return {"first/3": first_of(config.queries[3], config)}


def table(result: dict) -> str:
    config = result["config"]
    lines = [
        f"One hit: G in counts at ε = {config['epsilon']:g} (δ = {config['delta']:g} where it says δ). Two "
        "alphas stand for the same G: zeros stay below, G is found, together with 95 %.",
        "",
        f"| k | {' | '.join(FIRST.values())}, real ε | 2 alpha, book | 2 radius |",
        "|" + "---|" * (len(FIRST) + 3),
    ]
    for row in result["first"]:
        cells = [f"{row['G'][name]:,.0f}" for name in FIRST]
        lines.append(
            f"| {row['queries']:,} | {' | '.join(cells)}, {row['real_epsilon']:,.0f} "
            f"| {2 * row['alpha']:,.0f} | {2 * row['radius']:,} |"
        )
    check = next(row for row in result["first"] if "observed" in row)
    lines += [
        "",
        f"AboveThreshold run {config['repeats']:,} times at k = {check['queries']:,}: false hits "
        f"{check['observed'][0]:.4f}, missed {check['observed'][1]:.4f} (at most .05 each).",
        "",
        f"c hits, {config['tests']:,} queries for each: G in counts; in parentheses the shares of false hits "
        "and of misses when run.",
        "",
        "| c | Sparse, restarts | Sparse, optimal | one-sided | Gumbel (δ) | 2 alpha, book "
        "| 2 radius, restarts | 2 radius, optimal |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["several"]:
        cells = []
        for name in SEVERAL:
            seen = row["observed"].get(name)
            cells.append(f"{row['G'][name]:,.0f}" + (f" ({seen[0]:.3f}, {seen[1]:.3f})" if seen else ""))
        lines.append(
            f"| {row['cutoff']} | {' | '.join(cells)} | {2 * row['alpha']:,.0f} "
            f"| {2 * row['radius']['restarts']:,} | {2 * row['radius']['optimal']:,} |"
        )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw G against k and against c; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(10.0, 4.4), layout="constrained")
    left, right = canvas.subplots(1, 2, width_ratios=(1.3, 1.0))
    styles = {
        "naive": ("#D55E00", "^-"),
        "naive, advanced": ("#E69F00", "v-"),
        "naive, Gaussian": ("#CC79A7", "D-"),
        "AboveThreshold": ("#0072B2", "o-"),
        "optimal allocation": ("#56B4E9", "s-"),
        "one-sided": ("#009E73", "P-"),
        "Gumbel": ("#000000", "x-"),
        "naive, epsilon once": ("#999999", "1--"),
    }
    queries = [row["queries"] for row in result["first"]]
    for name, (colour, style) in styles.items():
        label = FIRST[name] + (": costs k ε" if name == "naive, epsilon once" else "")
        left.plot(queries, [row["G"][name] for row in result["first"]], style, color=colour, label=label)
    left.plot(
        queries, [2 * row["alpha"] for row in result["first"]], ":", color="#0072B2", label="2 alpha, theorem"
    )
    left.set(xscale="log", yscale="log", ylim=(2, 4e6), xlabel="queries k", ylabel="resolution G, counts")
    left.set_title(f"one hit, ε = {result['config']['epsilon']:g}; lower is better", fontsize=10, loc="left")
    cutoffs = [row["cutoff"] for row in result["several"]]
    lines = {"restarts": "AboveThreshold", "optimal": "optimal allocation", "one-sided": "one-sided"}
    lines["Gumbel"] = "Gumbel"
    for name, twin in lines.items():
        colour, style = styles[twin]
        points = [row["G"][name] for row in result["several"]]
        right.plot(cutoffs, points, style, color=colour, label=SEVERAL[name])
    right.plot(
        cutoffs,
        [2 * row["alpha"] for row in result["several"]],
        ":",
        color="#0072B2",
        label="2 alpha, theorem",
    )
    right.set(xscale="log", yscale="log", xlabel="hits c (1,000 queries for each)")
    right.set_xticks(cutoffs, [str(cutoff) for cutoff in cutoffs])
    right.minorticks_off()
    right.set_title("c hits", fontsize=10, loc="left")
    for axes in (left, right):
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.legend(fontsize=8, loc="upper left")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
