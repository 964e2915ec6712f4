"""NumericSparse over queries that are not linear: which of many functional dependencies nearly hold?

    python experiments/nonlinear_sparse.py [--quick] [--from-json]

Synthetic registers (seeded): attributes of which some settle others, but for a few wrong records. Asked
of every ordered pair, in one fixed order: at least how many records must be removed until the first
attribute settles the second (`offline.exceptions`), and how many combinations are in use
(`offline.distinct_count`); no linear query has these values, and one record moves each by at most 1.
Wanted are the first c dependencies with at least so many records kept (n minus exceptions >= 98 % of n),
with their exceptions. At (epsilon, 0) and (epsilon, 1e-6):

* NumericSparse in its three forms, `offline.numeric_sparse`: indices and values, one budget;
* all values with noise for their number, at epsilon/K each, or Gaussian by zero-concentrated accounting;
* all pair tables with noise at epsilon/K each, and the exceptions of these: the maximum of noisy counts
  is biased.

Shown: how many of the first c wanted were found and how many found were wrong, and the error of the
values of hits. Simulated noise: NOT PRIVATE.
Writes results/nonlinear_sparse.json; the markdown table and the figure are made from that file alone.
"""

import itertools
import math
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import whole

import onlineic as ic
from onlineic.accounting import zcdp_rho
from onlineic.noise import SimulatedNoise, scale_at_least
from onlineic.offline import Statistic, distinct_count, exceptions, numeric_sparse

NAME = "nonlinear_sparse"
FORMS = ("laplace", "exponential", "gumbel")
NOISE = ("every value", "every table")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    sizes: tuple[int, ...] = (3_000, 10_000, 30_000, 100_000)
    columns: tuple[int, ...] = (16, 4, 4, 6, 3, 2, 5, 3)  # labels of each attribute
    errors: float = 0.01  # share of the records in which a settled attribute is wrong
    kept: float = 0.98
    cutoff: int = 3
    epsilons: tuple[float, ...] = (0.1, 1.0)
    delta: float = 1e-6
    runs: int = 40
    shown: float = 0.1  # epsilon of the figure
    seed: int = 20261122


def register(n: int, config: Config, seed: int) -> ic.PrivateData:
    """Return a table in which attribute 0 settles 1 and 2, and attribute 3 settles 4, but for errors."""
    generator = np.random.default_rng(seed)
    sizes = config.columns
    codes = [generator.integers(0, size, n) for size in sizes]
    for child, parent in ((1, 0), (2, 0), (4, 3)):
        image = generator.permutation(np.arange(sizes[parent]) % sizes[child])
        wrong = generator.random(n) < config.errors
        codes[child] = np.where(wrong, codes[child], image[codes[parent]])
    domain = ic.Domain.of({f"a{place}": size for place, size in enumerate(sizes)})
    counts = np.bincount(np.ravel_multi_index(codes, sizes), minlength=domain.size)
    return ic.PrivateData(counts, domain)


def kept(domain: ic.Domain, given: str, of: str, n: int) -> Statistic:
    """Return n minus the exceptions to given -> of, the largest number of records in which it holds."""
    one = exceptions(domain, [given], of)
    return Statistic(
        f"{given} -> {of} holds",
        one.target,
        lambda counts: n - one.compute(counts),
        one.sensitivity,
        False,
        n,
    )


def asked(data: ic.PrivateData) -> list[Statistic]:
    """Return the dependencies of all ordered pairs, and behind them the combinations in use."""
    names = data.domain.names
    pairs = list(itertools.permutations(names, 2))
    held = [kept(data.domain, one, other, data.n) for one, other in pairs]
    return held + [distinct_count(data.domain, *pair) for pair in itertools.combinations(names, 2)]


def sparse_form(
    form: str,
    data: ic.PrivateData,
    statistics: list[Statistic],
    level: int,
    budget: ic.Budget,
    config: Config,
) -> Callable[[SimulatedNoise], dict[int, float]]:
    """Return noise -> index -> value of the hits."""

    def found(noise: SimulatedNoise) -> dict[int, float]:
        one = numeric_sparse(
            data, statistics, level, budget, cutoff=config.cutoff, mechanism=form, noise=noise
        )
        return dict(zip(one.above, one.values, strict=True))

    return found


def every_value(
    truth: list[int], level: int, budget: ic.Budget, config: Config
) -> Callable[[SimulatedNoise], dict[int, float]]:
    """Return noise -> the first c of all values, each with noise for their number."""
    count = len(truth)
    if budget.pure:
        laplace = scale_at_least(Fraction(count) / Fraction(budget.epsilon))
    else:
        sigma = math.ceil(math.sqrt(count / (2 * zcdp_rho(budget.epsilon, budget.delta))))

    def found(noise: SimulatedNoise) -> dict[int, float]:
        if budget.pure:
            drawn = noise.discrete_laplace(laplace, count)
        else:
            drawn = noise.discrete_gaussian(sigma, count)
        noisy = np.array(truth) + drawn
        return {int(place): float(noisy[place]) for place in np.flatnonzero(noisy >= level)[: config.cutoff]}

    return found


def every_table(
    data: ic.PrivateData, pairs: int, level: int, budget: ic.Budget, config: Config
) -> Callable[[SimulatedNoise], dict[int, float]]:
    """Return noise -> the first c dependencies of all noisy pair tables; combinations are left out."""
    cells = data.exact_counts(whole(data.domain)).reshape(data.domain.shape)
    axes = range(len(data.domain.shape))
    tables = {pair: cells.sum(axis=tuple(set(axes) - set(pair))) for pair in itertools.combinations(axes, 2)}
    if budget.pure:
        laplace = scale_at_least(Fraction(2 * len(tables)) / Fraction(budget.epsilon))
    else:
        sigma = math.ceil(math.sqrt(len(tables) / zcdp_rho(budget.epsilon, budget.delta)))

    def found(noise: SimulatedNoise) -> dict[int, float]:
        noisy = {}
        for pair, table in tables.items():
            size = table.size
            drawn = (
                noise.discrete_laplace(laplace, size) if budget.pure else noise.discrete_gaussian(sigma, size)
            )
            noisy[pair] = table + drawn.reshape(table.shape)
        hits: dict[int, float] = {}
        for place, (one, other) in enumerate(itertools.permutations(axes, 2)):
            table = noisy[one, other] if one < other else noisy[other, one].T
            value = float(table.max(axis=1).sum())
            if value >= level and len(hits) < config.cutoff:
                hits[place] = value
        return hits

    return found


def measured(
    found: Callable[[SimulatedNoise], dict[int, float]],
    truth: list[int],
    level: int,
    config: Config,
    noise: SimulatedNoise,
) -> dict[str, float]:
    """Return the hits that are among the first c wanted, wrong ones, and the rms error of their values."""
    wanted = [place for place, value in enumerate(truth) if value >= level][: config.cutoff]
    right = wrong = 0
    errors: list[float] = []
    for _ in range(config.runs):
        hits = found(noise)
        right += len(set(hits) & set(wanted))
        wrong += len([place for place in hits if truth[place] < level])
        errors += [value - truth[place] for place, value in hits.items() if place in wanted]
    rms = math.sqrt(float(np.mean(np.square(errors)))) if errors else math.nan
    return {
        "found": right / config.runs,
        "wrong": wrong / config.runs,
        "value_error": float(f"{rms:.4g}") if errors else -1.0,
    }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(sizes=(3_000, 30_000), epsilons=(0.1,), runs=3) if quick else Config()
    drawn = iter(seeds(config.seed, 1 + 20 * len(config.sizes) * len(config.epsilons)))
    table_seed, rows = next(drawn), []
    for n in config.sizes:
        data = register(n, config, table_seed)
        statistics = asked(data)
        truth = [int(one.compute(data.exact_counts(one.target))) for one in statistics]
        level = math.ceil(config.kept * n)
        for epsilon, delta in itertools.product(config.epsilons, (0.0, config.delta)):
            budget = ic.Budget(epsilon, delta)
            engines = {
                form: sparse_form(form, data, statistics, level, budget, config)
                for form in FORMS
                if form != "gumbel" or delta > 0.0
            }
            engines["every value"] = every_value(truth, level, budget, config)
            engines["every table"] = every_table(data, len(statistics), level, budget, config)
            known = numeric_sparse(
                data, statistics, level, budget, cutoff=config.cutoff, noise=SimulatedNoise(0)
            )
            rows.append(
                {
                    "n": n,
                    "epsilon": epsilon,
                    "delta": delta,
                    "statistics": len(statistics),
                    "wanted": min(config.cutoff, sum(value >= level for value in truth)),
                    "radius": float(f"{known.radii[0]:.4g}"),
                    "engines": {
                        name: measured(found, truth, level, config, SimulatedNoise(next(drawn)))
                        for name, found in engines.items()
                    },
                }
            )
            print(rows[-1], flush=True)
    return stamped(config, start, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    drawn = seeds(config.seed, 1 + 20 * len(config.sizes) * len(config.epsilons))
    data, budget = register(config.sizes[0], config, drawn[0]), ic.Budget(config.epsilons[0])
    statistics, level = asked(data), math.ceil(config.kept * config.sizes[0])
    truth = [int(one.compute(data.exact_counts(one.target))) for one in statistics]
    hits = sparse_form(FORMS[0], data, statistics, level, budget, config)
    return {f"rows/0/engines/{FORMS[0]}": measured(hits, truth, level, config, SimulatedNoise(drawn[1]))}


def table(result: dict) -> str:
    config = result["config"]
    names = (*FORMS, *NOISE)
    lines = [
        f"Found of the wanted (and wrong ones), mean over {config['runs']} runs, then the rms error of the "
        "values of what was rightly found, records. Cutoff "
        f"{config['cutoff']}, {result['rows'][0]['statistics']} statistics.",
        "",
        f"| n | epsilon | delta | wanted | radius | {' | '.join(names)} |",
        "|---" * (5 + len(names)) + "|",
    ]
    for row in result["rows"]:
        cells = []
        for name in names:
            one = row["engines"].get(name)
            if one is None:
                cells.append("-")
                continue
            error = "-" if one["value_error"] < 0 else f"{one['value_error']:,.1f}"
            cells.append(f"{one['found']:.2f} ({one['wrong']:.2f}), {error}")
        lines.append(
            f"| {row['n']:,} | {row['epsilon']:g} | {row['delta']:g} | {row['wanted']} "
            f"| {row['radius']:,.0f} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw what is found by n, without and with a delta; needs matplotlib."""
    from matplotlib.figure import Figure

    config = result["config"]
    canvas = Figure(figsize=(9.0, 3.6), layout="constrained")
    styles = {
        "laplace": ("#E69F00", "s-"),
        "exponential": ("#009E73", "o-"),
        "gumbel": ("#0072B2", "v-"),
        "every value": ("#D55E00", "x--"),
        "every table": ("#888888", "+--"),
    }
    for axes, delta in zip(canvas.subplots(1, 2, sharey=True), (0.0, config["delta"]), strict=True):
        rows = [row for row in result["rows"] if row["delta"] == delta and row["epsilon"] == config["shown"]]
        for name, (colour, style) in styles.items():
            points = [
                (row["n"], row["engines"][name]["found"] - row["engines"][name]["wrong"])
                for row in rows
                if name in row["engines"]
            ]
            if points:
                axes.plot(*zip(*points, strict=True), style, color=colour, label=name)
        axes.set(xscale="log", xlabel="records n")
        axes.set_title(f"ε = {config['shown']:g}, δ = {delta:g}", fontsize=10, loc="left")
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
    canvas.axes[0].set_ylabel(f"found, less wrong ones, of {config['cutoff']}")
    canvas.axes[1].legend(fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
