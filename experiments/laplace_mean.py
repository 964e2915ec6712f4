"""The Laplace mechanism on a mean of 100,000 test scores: coverage of its 95 % bound, and a useless maximum.

    python experiments/laplace_mean.py [--quick] [--from-json]

Scores are whole numbers in 0..100 (made up: rounded normal, mean 60, deviation 14, clipped). Replacing one
score moves the mean by at most 100/n and the maximum by at most 100, whatever n. The error of a release
exceeds ln(20) sensitivity/epsilon with probability .05 EXACTLY (in the limit of a fine grid; the discrete
law is used here), so coverage is tested from both sides: too much noise is a bug as well. A scale planted
wrong by a tenth shows what the test can see. Errors are differences from the truth: NOT PRIVATE.
Writes results/laplace_mean.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from scipy.stats import binomtest
from study.outcome import script, seeds, stamped

import onlineic as ic
from onlineic.mechanisms import LaplaceMechanism
from onlineic.noise import SimulatedNoise, public_generator
from onlineic.offline import mean, quantile

NAME = "laplace_mean"
TOP = 100  # scores are 0..100
TEXT = 0.9507  # coverage that the text found over 100,000 releases


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    records: int = 100_000
    releases: int = 100_000
    epsilons: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    beta: float = 0.05
    wrong: tuple[float, ...] = (0.9, 1.1)
    shown: float = 1.0  # epsilon of the histogram
    bins: int = 120  # ten units of the sum each, at epsilon = 1
    sizes: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
    seed: int = 20261121


def scores(config: Config) -> np.ndarray:
    """Return made-up test scores."""
    drawn = public_generator(config.seed).normal(60.0, 14.0, config.records)
    return np.clip(np.rint(drawn), 0, TOP).astype(np.int64)


def release(values: np.ndarray, data: ic.PrivateData, epsilon: float, config: Config, seed: int) -> dict:
    """Return one row: many releases of the mean and of the maximum at one epsilon."""
    one = mean(data, "score", epsilon, beta=config.beta, noise=SimulatedNoise(seed))
    noise = SimulatedNoise(seed)
    mechanism = LaplaceMechanism(epsilon, TOP)  # one record moves the sum by the whole range
    assert mechanism.scale == one.scale  # what is drawn below is what `mean` draws, many at a time
    exact = np.full(config.releases, values.sum())
    errors = mechanism.release(exact, noise) - exact
    within = int((np.abs(errors) <= one.radius).sum())
    covered = 1.0 - mechanism.tail(one.radius)
    planted = {}
    for factor in config.wrong:
        drawn = noise.discrete_laplace(one.scale * Fraction(factor).limit_denominator(100), config.releases)
        inside = int((np.abs(drawn) <= one.radius).sum())
        planted[str(factor)] = {
            "within": inside,
            "p": binomtest(inside, config.releases, covered).pvalue,
        }
    # the maximum moves as far: one record at the top of an empty range
    tops = mechanism.release(np.full(config.releases, values.max()), noise)
    edges = np.linspace(-6, 6, config.bins + 1)  # in units of the scale
    histogram, _ = np.histogram(errors / float(one.scale), bins=edges)
    return {
        "epsilon": epsilon,
        "error_bound": one.error_bound,
        "continuous_bound": math.log(1 / config.beta) * 100 / (epsilon * data.n),
        "within": within,
        "releases": config.releases,
        "exact_coverage": covered,
        "p": binomtest(within, config.releases, covered).pvalue,
        "planted": planted,
        "maximum_bound": mechanism.radius(config.beta),
        "maximum_error": float(np.median(np.abs(tops - values.max()))),
        "quantile": quantile(data, "score", 0.99, epsilon, noise=SimulatedNoise(seed)).value,
        "histogram": histogram.tolist() if epsilon == config.shown else None,
    }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(releases=5_000, bins=40) if quick else Config()
    values = scores(config)
    data = ic.PrivateData.from_records({"score": values}, ic.Domain.of(score=range(TOP + 1)))
    drawn = seeds(config.seed, len(config.epsilons))
    rows = [
        release(values, data, epsilon, config, seed)
        for epsilon, seed in zip(config.epsilons, drawn, strict=True)
    ]
    text = binomtest(round(TEXT * 100_000), 100_000, 1 - config.beta)
    sizes = [
        {
            "n": n,
            "mean": LaplaceMechanism(config.shown, TOP).radius(config.beta) / n,
            "maximum": LaplaceMechanism(config.shown, TOP).radius(config.beta),
        }
        for n in config.sizes
    ]
    return stamped(
        config,
        start,
        rows=rows,
        text_p=text.pvalue,
        truth={
            "mean": float(values.mean()),
            "maximum": int(values.max()),
            "quantile": int(np.quantile(values, 0.99, method="inverted_cdf")),
        },
        sizes=sizes,
    )


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    values = scores(config)
    data = ic.PrivateData.from_records({"score": values}, ic.Domain.of(score=range(TOP + 1)))
    seed = seeds(config.seed, len(config.epsilons))[0]
    return {"rows/0": release(values, data, config.epsilons[0], config, seed)}


def table(result: dict) -> str:
    lines = [
        "| epsilon | 95 % bound of the mean | within it | exact coverage | p, two-sided | p, scale .9 or 1.1 "
        "| 95 % bound of the maximum | its median error | private 99 % quantile |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        wrong = ", ".join(f"{one['p']:.0e}" for one in row["planted"].values())
        lines.append(
            f"| {row['epsilon']:g} | {row['error_bound']:.3g} | {row['within']:,} of {row['releases']:,} "
            f"| {row['exact_coverage']:.5f} | {row['p']:.2f} | {wrong} | {row['maximum_bound']:,} "
            f"| {row['maximum_error']:,.0f} | {row['quantile']} |"
        )
    truth, n = result["truth"], result["config"]["records"]
    return "\n".join(
        [
            *lines,
            "",
            f"n = {n:,}; true mean {truth['mean']:.3f}, maximum {truth['maximum']}, 99 % quantile "
            f"{truth['quantile']}. The text's {TEXT:.2%} over 100,000 releases has "
            f"p = {result['text_p']:.2f} under 95 %: consistent, whatever the scale. Its noise and its "
            "bound are a hundredth of what scores of 0 to 100 need.",
        ]
    )


def figure(result: dict, path: Path) -> None:
    """Draw the errors beside the Laplace density, and both bounds against n; needs matplotlib."""
    from matplotlib.figure import Figure

    config = result["config"]
    row = next(one for one in result["rows"] if one["histogram"] is not None)
    canvas = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = canvas.subplots(1, 2)
    edges = np.linspace(-6, 6, config["bins"] + 1)
    unit = 100 / (row["epsilon"] * config["records"])  # of the scale, in score points
    density = np.array(row["histogram"]) / (row["releases"] * np.diff(edges) * unit)
    left.stairs(density, edges * unit, fill=True, color="#9EC5E8", label=f"{row['releases']:,} releases")
    x = np.linspace(-6, 6, 601)
    left.plot(x * unit, np.exp(-np.abs(x)) / (2 * unit), color="#D55E00", lw=1.2, label="Laplace density")
    for side in (-1, 1):
        left.axvline(side * row["error_bound"], color="black", lw=0.9, ls="--")
    share = row["within"] / row["releases"]
    left.text(
        row["error_bound"] * 1.07,
        density.max() * 0.3,
        f"95 % bound\n{row['error_bound']:g},\nheld {share:.2%}",
        fontsize=8,
    )
    left.set_yscale("log")
    left.set_xlabel(f"error of the mean, score points (epsilon = {row['epsilon']:g})")
    left.set_ylabel("density")
    left.legend(loc="upper left", fontsize=8)
    sizes = result["sizes"]
    n = [one["n"] for one in sizes]
    for name, colour in (("mean", "#0072B2"), ("maximum", "#CC79A7")):
        right.plot(n, [one[name] for one in sizes], "o-", color=colour, label=f"{name} of n scores")
    right.axhline(100, color="gray", lw=0.9, ls=":")
    right.text(n[0], 60, "the whole range, 100", fontsize=8, color="gray")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("n")
    right.set_ylabel(f"95 % error bound, score points (epsilon = {config['shown']:g})")
    right.legend(fontsize=8, loc="lower left")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
