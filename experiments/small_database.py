"""SmallDB beside its bounds, and the threshold functions, where a private histogram of two levels beats it.

    python experiments/small_database.py [--quick] [--from-json]

Left: 100 random 0/1 queries over 8 cells, SmallDB by enumeration of all multisets of m records (the best m
for the bound among those of at most 2^18 candidates), its measured worst error, the book's bounds
(Proposition 4.4 at its best alpha, Theorem 4.5) and its own, and eight noisy counts at the same epsilon.
Middle: all thresholds of 256 ordered cells, worst error over the thresholds: SmallDB drawn exactly from all
multisets, `private_cdf`, a noisy histogram, a binary tree, SmallDB on a public sample of candidates, and
default sessions that are asked all thresholds. Right: salaries, or the two hills where those have not been
fetched, one release of each.
Truths are read to measure errors: NOT PRIVATE. Writes results/small_database.json; table and figure are made
from that file alone.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import one_dimensional, present, subsample

import onlineic as ic
from onlineic import bounds
from onlineic.mechanisms import LaplaceMechanism
from onlineic.noise import SimulatedNoise
from onlineic.offline import private_cdf, small_database, threshold_database, threshold_functions

NAME = "small_database"


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    epsilon: float = 1.0
    beta: float = 0.05
    cells: int = 8
    queries: int = 100
    enumerated_n: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000, 100_000)
    enumerated_runs: int = 5
    line: int = 256
    line_n: tuple[int, ...] = (1_000, 3_000, 10_000, 100_000, 1_000_000)
    real: str = "GrossCompenMDSalary1"  # its file; the catalogue calls it salaries
    real_n: int = 2_000  # the subsample that is drawn in the figure
    runs: int = 8
    session_runs: int = 4
    sample: int = 5_000
    seed: int = 20261121


def dirichlet_counts(cells: int, n: int, seed: int) -> np.ndarray:
    """Return counts of n records over cells of uneven weight."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(n, generator.dirichlet(np.full(cells, 0.5)))


def two_hills(cells: int, n: int, seed: int) -> np.ndarray:
    """Return counts of n records of a mixture of a narrow and a wide normal law."""
    generator = np.random.default_rng(seed)
    narrow = generator.random(n) < 0.4
    values = np.where(narrow, generator.normal(0.25, 0.02, n), generator.normal(0.6, 0.15, n))
    return np.bincount(np.clip((cells * values).astype(np.int64), 0, cells - 1), minlength=cells)


# ------------------------------------ enumerated
def enumerated(config: Config, n: int, drawn: list[int]) -> dict:
    """Return measured worst errors of SmallDB and of noisy counts, beside the bounds."""
    domain = ic.Domain.of(cell=range(config.cells))
    generator = np.random.default_rng(config.seed)
    weights = generator.integers(0, 2, (config.queries, config.cells))
    queries = [ic.dense(row.astype(float)).bind(domain) for row in weights]
    counts = dirichlet_counts(config.cells, n, config.seed)
    data, truths = ic.PrivateData(counts, domain), weights @ counts / n
    chosen, histogram = [], []
    for seed in drawn:
        one = small_database(data, queries, config.epsilon, beta=config.beta, noise=SimulatedNoise(seed))
        chosen.append(float(np.abs(one.evaluate_many(queries) - truths).max()))
        noisy = LaplaceMechanism(config.epsilon, 2).release(counts, SimulatedNoise(seed)) / n
        noisy[-1] = 1.0 - noisy[:-1].sum()  # n is public
        histogram.append(float(np.abs(weights @ noisy - truths).max()))
    net = partial(bounds.multiset_radius, size=config.cells, queries=config.queries)
    given = (config.cells, config.queries, n, config.epsilon, config.beta)
    return {
        "n": n,
        "rows": one.size,
        "candidates": one.candidates,
        "measured": float(np.mean(chosen)),
        "worst": float(np.max(chosen)),
        "bound": one.error_bound,
        "radius": one.radius,
        "histogram": float(np.mean(histogram)),
        "theorem_4_5": bounds.small_database_alpha(*given),
        "proposition_4_4": bounds.least_small_database_error(*given)[0],
        "multisets": bounds.best_net(net, config.cells, n, config.epsilon, config.beta)[1],
    }


# ------------------------------------ on a line
def releases(data: ic.PrivateData, config: Config) -> dict:
    """Return every mechanism as seed -> cumulative fractions of all cells but the last."""
    queries = threshold_functions(data.domain, data.domain.names[0])
    name, epsilon = data.domain.names[0], config.epsilon

    def cdf(seed: int, levels: int | None) -> np.ndarray:
        return private_cdf(data, name, epsilon, levels=levels, noise=SimulatedNoise(seed)).values[:-1]

    def line(seed: int) -> np.ndarray:
        return threshold_database(data, name, epsilon, noise=SimulatedNoise(seed)).evaluate_many(queries)

    def sampled(seed: int) -> np.ndarray:
        found = small_database(
            data, queries, epsilon, size=20, candidates=config.sample, noise=SimulatedNoise(seed)
        )
        return found.evaluate_many(queries)

    def session(seed: int, delta: float) -> np.ndarray:
        asked = ic.OnlineIC(
            data, ic.Budget(epsilon, delta), questions=len(queries), noise=SimulatedNoise(seed)
        )
        return np.array([answer.value for answer in asked.answer_many(queries)])

    return {
        "SmallDB on the line": line,
        "private_cdf": partial(cdf, levels=None),
        "noisy histogram": partial(cdf, levels=1),
        "binary tree": partial(cdf, levels=8),
        "session, delta 0": partial(session, delta=0.0),
        "session, delta 1e-9": partial(session, delta=1e-9),
        "SmallDB, public sample": sampled,
    }


def on_line(label: str, counts: np.ndarray, config: Config, drawn: list[int]) -> dict:
    """Return the worst errors over all thresholds of every mechanism."""
    domain = ic.Domain.of(cell=range(counts.size))
    data, n = ic.PrivateData(counts, domain), int(counts.sum())
    truths, engines = np.cumsum(counts)[:-1] / n, {}
    for name, release in releases(data, config).items():
        few = name.startswith("session") or name.endswith("sample")
        start = time.perf_counter()
        used = drawn[: config.session_runs] if few else drawn
        errors = [float(np.abs(release(seed) - truths).max()) for seed in used]
        engines[name] = {
            "mean": float(np.mean(errors)),
            "max": float(np.max(errors)),
            "seconds": (time.perf_counter() - start) / len(errors),
        }
    rows, bound = bounds.best_net(bounds.threshold_radius, counts.size, n, config.epsilon, config.beta)
    radius = private_cdf(data, "cell", config.epsilon, beta=config.beta, noise=SimulatedNoise(0)).radius
    given = (counts.size, counts.size - 1, n, config.epsilon, config.beta)
    return {
        "data": label,
        "n": n,
        "rows": rows,
        "net_bound": bound,
        "proposition_4_4": bounds.least_small_database_error(*given)[0],
        "band": radius,
        "engines": engines,
    }


def picture(counts: np.ndarray, config: Config, seed: int) -> dict:
    """Return one release of each kind, for the eye."""
    data, n = ic.PrivateData(counts, ic.Domain.of(cell=range(counts.size))), int(counts.sum())
    cdf = private_cdf(data, "cell", config.epsilon, beta=config.beta, noise=SimulatedNoise(seed))
    small = threshold_database(data, "cell", config.epsilon, beta=config.beta, noise=SimulatedNoise(seed))
    curves = {
        "truth": np.cumsum(counts) / n,
        "values": cdf.values,
        "lower": cdf.lower,
        "upper": cdf.upper,
        "small": np.cumsum(small.counts) / small.size,
    }
    return {"n": n, "rows": small.size} | {name: np.round(y, 5).tolist() for name, y in curves.items()}


def salaries(config: Config, absent: list[str]) -> dict[str, np.ndarray]:
    """Return counts of real salaries over the line, of a sample and of all, where they are there."""

    def coarse() -> np.ndarray:
        data = one_dimensional("salaries")
        exact = data.exact_counts_many(threshold_functions(data.domain, "x"))
        return np.diff(exact, prepend=0, append=data.n).reshape(config.line, -1).sum(axis=1)

    found = {}
    for counts in present({"salaries": coarse}, absent):
        found["salaries, sample"] = subsample(counts, config.real_n, config.seed)
        found["salaries"] = counts
    return found


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), []
    config = Config()
    if quick:
        config = Config(
            enumerated_n=(100, 1_000), enumerated_runs=1, line_n=(1_000,), runs=2, session_runs=1, sample=500
        )
    drawn = seeds(config.seed, max(config.runs, config.enumerated_runs))
    small = [enumerated(config, n, drawn[: config.enumerated_runs]) for n in config.enumerated_n]
    print([f"{one['n']}: {one['measured']:.4f}" for one in small], flush=True)
    tables = [("two hills", two_hills(config.line, n, config.seed)) for n in config.line_n]
    real = salaries(config, absent)
    tables += list(real.items())[: 1 if quick else 2]
    few = real["salaries, sample"] if real else two_hills(config.line, config.real_n, config.seed)
    lines = []
    for label, table_of in tables:
        lines.append(on_line(label, table_of, config, drawn[: config.runs]))
        shown = {
            name: f"{one['mean']:.4f} {one['seconds']:.2f} s" for name, one in lines[-1]["engines"].items()
        }
        print(label, lines[-1]["n"], shown, flush=True)
    return stamped(
        config, start, absent, enumerated=small, lines=lines, picture=picture(few, config, drawn[0])
    )


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    drawn = seeds(config.seed, max(config.runs, config.enumerated_runs))[: config.enumerated_runs]
    return {"enumerated/0": enumerated(config, config.enumerated_n[0], drawn)}


def table(result: dict) -> str:
    lines = [
        f"8 cells, 100 random 0/1 queries, epsilon {result['config']['epsilon']:g}: worst error over the "
        "queries, fraction of records.",
        "",
        "| n | m | candidates | SmallDB, mean | its bound | multisets, best m | Prop. 4.4 | Thm 4.5 "
        "| eight noisy counts |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in result["enumerated"]:
        numbers = ("measured", "bound", "multisets", "proposition_4_4", "theorem_4_5", "histogram")
        cells = [f"{one[name]:.4f}" if one[name] < 1 else "above 1" for name in numbers]
        lines.append(f"| {one['n']:,} | {one['rows']} | {one['candidates']:,} | {' | '.join(cells)} |")
    names = list(result["lines"][0]["engines"])
    lines += [
        "",
        "256 ordered cells, all thresholds: mean of the worst error over the thresholds.",
        "",
        f"| data | n | m | {' | '.join(names)} | 95 % band of private_cdf | net bound | Prop. 4.4 |",
        "|---" * (6 + len(names)) + "|",
    ]
    for one in result["lines"]:
        measured = " | ".join(f"{one['engines'][name]['mean']:.5f}" for name in names)
        general = f"{one['proposition_4_4']:.3f}" if one["proposition_4_4"] < 1 else "above 1"
        lines.append(
            f"| {one['data']} | {one['n']:,} | {one['rows']:,} | {measured} | {one['band']:.5f} "
            f"| {one['net_bound']:.5f} | {general} |"
        )
    return "\n".join(lines)


COLOURS = {
    "SmallDB on the line": "#D55E00",
    "private_cdf": "#0072B2",
    "noisy histogram": "#56B4E9",
    "binary tree": "#009E73",
    "session, delta 0": "#CC79A7",
    "session, delta 1e-9": "#7A3E6B",
    "SmallDB, public sample": "#E69F00",
}


def figure(result: dict, path: Path) -> None:
    """Draw errors against n for both classes, and one release; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(14.0, 4.8), layout="constrained")
    left, middle, right = canvas.subplots(1, 3)
    rows = result["enumerated"]
    sizes = [one["n"] for one in rows]
    for name, label, style, colour in (
        ("theorem_4_5", "Theorem 4.5", ":", "#999999"),
        ("proposition_4_4", "Proposition 4.4, best alpha", "--", "#999999"),
        ("bound", "its own bound (95 %)", "--", "#D55E00"),
        ("measured", "SmallDB, measured", "o-", "#D55E00"),
        ("histogram", "eight noisy counts, measured", "s-", "#56B4E9"),
    ):
        left.plot(sizes, [one[name] for one in rows], style, color=colour, label=label, markersize=4)
    left.set_title("100 queries over 8 cells, enumerated", fontsize=10)
    hills = [one for one in result["lines"] if one["data"] == "two hills"]
    sizes = [one["n"] for one in hills]
    middle.plot(sizes, [one["net_bound"] for one in hills], "--", color="#D55E00", label="net bound (95 %)")
    middle.plot(sizes, [one["band"] for one in hills], "--", color="#0072B2", label="private_cdf, 95 % band")
    for name, colour in COLOURS.items():
        errors = [one["engines"][name]["mean"] for one in hills]
        middle.plot(sizes, errors, "o-", color=colour, label=name, markersize=4)
    middle.set_title("all thresholds of 256 ordered cells", fontsize=10)
    for axes in (left, middle):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(top=2.0)
        axes.set_xlabel("n (epsilon = 1)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7.5, loc="lower left", ncols=1)
    left.set_ylabel("worst error over the class, fraction of records")
    shown = result["picture"]
    codes = np.arange(len(shown["truth"]))
    right.fill_between(codes, shown["lower"], shown["upper"], step="post", color="#0072B2", alpha=0.2, lw=0)
    for name, label, colour, width in (
        ("small", f"SmallDB, {shown['rows']} records", "#D55E00", 1.2),
        ("values", "private_cdf and its 95 % band", "#0072B2", 1.4),
        ("truth", "truth", "black", 0.9),
    ):
        right.step(codes, shown[name], where="post", color=colour, lw=width, label=label)
    right.set_xlim(0, np.searchsorted(shown["truth"], 0.997))
    records = "made-up records" if "absent" in result else "salaries"
    right.set_title(f"{shown['n']:,} {records}, epsilon = 1: one release of each", fontsize=10)
    right.set_xlabel("cell (of 256)")
    right.set_ylabel("fraction of records up to the cell")
    right.grid(alpha=0.3)
    right.legend(fontsize=8, loc="lower right")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
