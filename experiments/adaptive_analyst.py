"""An analyst who reads the answers before asking on: one noisy histogram, per-query noise and three sessions.

    python experiments/adaptive_analyst.py [--quick] [--from-json]

The analyst asks for every cell of a two-way grid, then for two sums chosen by the answers: an insider, who
knows the true counts, for the cells that were answered too high and for those too low; an outsider, who knows
nothing, for the half of the cells with the largest answers and for the rest. Beside them an oblivious analyst
asks for random halves of the cells. Then the insider goes on against the sessions: round after round for the
cells that the public hypothesis holds too high and those it holds too low. All engines at (1, 1e-6), with
simulated noise: NOT PRIVATE.
Writes results/adaptive_analyst.json; the markdown tables and the figure are made from that file alone.
"""

import math
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.mechanisms import gumbel_margins
from study.outcome import script, seeds, stamped

import onlineic as ic
from onlineic.baselines import PerQueryNoise, noisy_histogram
from onlineic.bounds import least_error, mw_tight_bound
from onlineic.noise import Noise, SimulatedNoise

NAME = "adaptive_analyst"
ENGINES = ("one noisy histogram", "per-query noise", "textbook", "certified", "default")
SESSIONS = ENGINES[2:]
ANALYSTS = ("oblivious", "outsider", "insider")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    shapes: tuple[tuple[int, int], ...] = ((32, 32), (64, 128), (256, 256))
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    epsilon: float = 1.0
    delta: float = 1e-6
    beta: float = 0.05
    halves: int = 200  # queries of the oblivious analyst
    rounds: int = 150  # in which the insider goes on, two queries each
    refits: int = 10  # the same against the default session, whose refits take a while
    runs: int = 3
    large: int = 2**15  # cells from which one run must do
    seed: int = 20261121


def grid(shape: tuple[int, int], n: int, seed: int) -> tuple[ic.PrivateData, np.ndarray]:
    """Return n records on a grid, from six bumps over a flat tenth, and their fractions."""
    generator = np.random.default_rng(seed)
    x, y = np.meshgrid(*((np.arange(size) + 0.5) / size for size in shape), indexing="ij")
    cells = np.full(shape, 0.1 / math.prod(shape))
    for share in generator.dirichlet(np.ones(6)):
        centre, width = generator.random(2), generator.uniform(0.03, 0.15, 2)
        bump = np.exp(-(((x - centre[0]) / width[0]) ** 2 + ((y - centre[1]) / width[1]) ** 2) / 2)
        cells += 0.9 * share * bump / bump.sum()
    counts = generator.multinomial(n, cells.ravel() / cells.sum()).reshape(shape)
    domain = ic.Domain.of(row=range(shape[0]), column=range(shape[1]))
    return ic.PrivateData(counts, domain), counts / n


def opened(name: str, data: ic.PrivateData, queries: int, config: Config, noise: Noise):
    """Return an engine by its label; the stream's length is known to all."""
    budget, size = ic.Budget(config.epsilon, config.delta), data.domain.size
    if name == "one noisy histogram":
        return noisy_histogram(data, budget, noise=noise)
    if name == "per-query noise":
        return PerQueryNoise(data, budget, answers=queries, noise_law="best", noise=noise)
    if name == "textbook":
        return ic.OnlineIC.textbook(
            data, epsilon=config.epsilon, delta=config.delta, max_queries=queries, noise=noise
        )
    if name == "default":
        return ic.OnlineIC(data, budget, max_queries=queries, questions=queries, noise=noise)
    in_counts = gumbel_margins(queries, config.epsilon, config.delta)

    def margins(cutoff: int) -> tuple[float, ...]:
        return tuple(margin / data.n for margin in in_counts(cutoff))

    wanted = least_error(lambda alpha: mw_tight_bound(size, alpha), margins).alpha
    # a trifle more than the least, for the grid's rounding
    options = {"sparse": "gumbel", "purchases": ic.TestsOnly(), "max_queries": queries}
    return ic.OnlineIC(data, budget, certify=1.02 * wanted, noise=noise, **options)


def told(answer: ic.Answer, truth: float) -> dict:
    """Return error, status and stated bound of one answer."""
    bound = answer.error_bound if math.isfinite(answer.error_bound) else None
    return {"error": abs(answer.value - truth), "status": answer.status, "bound": bound}


def asked(engine, weights: np.ndarray, truth: np.ndarray) -> dict:
    """Ask for the sum of some cells."""
    return told(engine.answer(weights.astype(float)), float((weights * truth).sum()))


def attacked(engine, cells: list, truth: np.ndarray) -> dict:
    """Return what an outsider and an insider get for two sums each; both saw the same answers."""
    seen = np.array([answer.value for answer in engine.answer_many(cells)]).reshape(truth.shape)
    half = np.zeros(truth.size)
    half[np.argsort(-seen.ravel(), kind="stable")[: truth.size // 2]] = 1.0
    half = half.reshape(truth.shape)
    return {
        "outsider": [asked(engine, half, truth), asked(engine, 1.0 - half, truth)],
        "insider": [asked(engine, seen > truth, truth), asked(engine, seen < truth, truth)],
    }


def kept_on(session: ic.OnlineIC, truth: np.ndarray, rounds: int, seed: int) -> list[dict]:
    """Return what the insider gets who asks on against the public hypothesis, two sums a round.

    Each cell is left out with probability 1/100: the same query again would get the same answer again.
    """
    rows, generator = [], np.random.default_rng(seed)
    for _ in range(rounds):
        lever = session.hypothesis.probabilities() - truth
        lever[generator.random(truth.shape) < 0.01] = 0.0
        rows += [asked(session, lever > 0.0, truth), asked(session, lever < 0.0, truth)]
    return rows


def summed(rows: list[dict]) -> dict:
    """Return the worst answer and the worst tested one, and counts by status and of bounds kept."""
    worst = max(rows, key=lambda row: row["error"])
    bounded = [row for row in rows if row["bound"] is not None]
    tested = [row["error"] for row in rows if row["status"] != "untested"]
    return {
        "error": worst["error"],
        "status": worst["status"],
        "tested_error": max(tested, default=0.0),
        "hard": sum(row["status"] == "hard" for row in rows),
        "untested": sum(row["status"] == "untested" for row in rows),
        "bounded": len(bounded),
        "kept": sum(row["error"] <= row["bound"] for row in bounded),
    }


def halved(engine, truth: np.ndarray, config: Config, seed: int) -> dict:
    """Return the errors of an analyst who asks for random halves of the cells."""
    generator = np.random.default_rng(seed)
    weights = generator.permuted(
        np.tile(np.arange(truth.size) % 2, (config.halves, 1)).astype(float), axis=1
    ).reshape(-1, *truth.shape)
    truths = (weights * truth).sum(axis=(1, 2)).tolist()
    pairs = zip(engine.answer_many(list(weights)), truths, strict=True)
    return summed([told(answer, value) for answer, value in pairs])


def theory(engine, size: int, config: Config) -> dict:
    """Return the histogram's errors by theory: |X| E|noise| / 2, and about the largest of so many halves."""
    statistics = engine.statistics()
    sd = statistics.deviation
    mean = sd * (math.sqrt(2.0 / math.pi) if statistics.noise == "gaussian" else math.sqrt(0.5))
    expected = math.sqrt(2.0 * math.log(config.halves))
    return {"insider": size * mean / 2.0, "oblivious": sd * math.sqrt(size) / 2.0 * expected}


def promise(one: dict, session: ic.OnlineIC, fresh: ic.OnlineIC) -> dict:
    """Return what the attacked session says of all its tested answers, and whether both sessions kept it."""
    bounds = {"outsider": session, "insider": session, "oblivious": fresh}
    kept = [one[who]["tested_error"] <= held.statistics().error_bound for who, held in bounds.items()]
    return {"bound": session.statistics().error_bound, "kept": all(kept), "cutoff": session.plan.hard_answers}


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = (
        Config(((16, 16), (32, 32)), (10_000,), halves=50, rounds=5, refits=5, runs=1) if quick else Config()
    )
    drawn, rows = seeds(config.seed, config.runs), []
    for shape in config.shapes:
        size = math.prod(shape)
        domain = ic.Domain.of(row=range(shape[0]), column=range(shape[1]))
        cells = [ic.where(row=i, column=j).bind(domain) for i in range(shape[0]) for j in range(shape[1])]
        queries = size + config.halves + 4 + 2 * config.rounds
        for n in config.sizes:
            tables = [(seed, *grid(shape, n, seed)) for seed in drawn[: 1 if size >= config.large else None]]
            for name in ENGINES:
                began = time.perf_counter()
                made = []
                for seed, data, truth in tables:
                    engine = opened(name, data, queries, config, SimulatedNoise(seed))
                    one = attacked(engine, cells, truth)
                    if name in SESSIONS:
                        rounds = config.refits if name == "default" else config.rounds
                        one["insider"] += kept_on(engine, truth, rounds, seed)
                    fresh = opened(name, data, queries, config, SimulatedNoise(seed))
                    one = {"seed": seed} | {who: summed(answers) for who, answers in one.items()}
                    one["oblivious"] = halved(fresh, truth, config, seed)
                    if name in SESSIONS:
                        one |= promise(one, engine, fresh)
                    if name == ENGINES[0]:
                        one["theory"] = theory(engine, size, config)
                    made.append(one)
                rows.append({"cells": size, "n": n, "engine": name, "runs": made})
                errors = [f"{reached(rows[-1], who)[0]:.2g}" for who in ANALYSTS]
                print(f"{size}, {n}, {name}: {errors}, {time.perf_counter() - began:.1f} s", flush=True)
    return stamped(config, start, rows=rows)


def reached(row: dict, who: str) -> tuple[float, str]:
    """Return the largest error that an analyst reached, mean of the runs, and the commonest status of it."""
    worst = [one[who] for one in row["runs"]]
    statuses = [one["status"] for one in worst]
    return float(np.mean([one["error"] for one in worst])), max(statuses, key=statuses.count)


def shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value >= 0.1 else f"{value:.4f}" if value >= 0.001 else f"{value:.5f}"


def promised(row: dict) -> tuple[str, str]:
    """Return the first run's bound on all tested answers, and in how many runs it held."""
    first = row["runs"][0]
    if "bound" not in first:
        return "-", "-"
    return shown(first["bound"]), f"{sum(one['kept'] for one in row['runs'])} of {len(row['runs'])}"


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    shape, n, seed = config.shapes[0], config.sizes[0], seeds(config.seed, config.runs)[0]
    data, truth = grid(shape, n, seed)
    queries = math.prod(shape) + config.halves + 4 + 2 * config.rounds
    engine = opened("default", data, queries, config, SimulatedNoise(seed))
    return {f"rows/{ENGINES.index('default')}/runs/0/oblivious": halved(engine, truth, config, seed)}


def table(result: dict) -> str:
    lines = [
        "| cells | n | engine | oblivious | outsider | insider | worst is | hard, untested "
        "| insider: bounds kept | session's bound | held | histogram by theory: oblivious, insider |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        insider = [one["insider"] for one in row["runs"]]
        hard, untested, kept, bounded = (
            sum(one[key] for one in insider) for key in ("hard", "untested", "kept", "bounded")
        )
        runs = len(insider)
        known = row["runs"][0].get("theory")
        formula = f"{shown(known['oblivious'])}, {shown(known['insider'])}" if known else "-"
        lines.append(
            f"| {row['cells']:,} | {row['n']:.0e} | {row['engine']} | "
            + " | ".join(shown(reached(row, who)[0]) for who in ANALYSTS)
            + f" | {reached(row, 'insider')[1]} | {hard / runs:.0f}, {untested / runs:.0f} "
            f"| {kept} of {bounded} | " + " | ".join((*promised(row), formula)) + " |"
        )
    return "\n".join(lines)


COLOURS = ("#CC79A7", "#999999", "#56B4E9", "#009E73", "#000000")


def figure(result: dict, path: Path) -> None:
    """Draw the errors of three analysts against the number of cells, one column a number of records."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    sizes = result["config"]["sizes"]
    canvas = Figure(figsize=(10.5, 7.4), layout="constrained")
    panels = canvas.subplots(len(ANALYSTS), len(sizes), sharex=True, sharey=True, squeeze=False)
    for column, n in enumerate(sizes):
        for line, who in enumerate(ANALYSTS):
            axes = panels[line][column]
            for name, colour in zip(ENGINES, COLOURS, strict=True):
                rows = [row for row in result["rows"] if row["engine"] == name and row["n"] == n]
                errors = [reached(row, who) for row in rows]
                axes.plot([row["cells"] for row in rows], [e for e, _ in errors], linewidth=1.3, color=colour)
                for row, (error, status) in zip(rows, errors, strict=True):
                    face = "white" if status == "untested" else colour
                    axes.plot(row["cells"], error, "o", ms=5, color=colour, markerfacecolor=face)
                if name == ENGINES[0] and who != "outsider":
                    axes.plot(
                        [row["cells"] for row in rows],
                        [row["runs"][0]["theory"][who] for row in rows],
                        color=colour,
                        linestyle=":",
                        linewidth=1.3,
                    )
            axes.axhline(0.5, color="grey", linewidth=0.7)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            if line == 0:
                axes.set_title(f"n = {n:,}", fontsize=9)
            if column == 0:
                axes.set_ylabel(f"{who}: error", fontsize=9)
            if line == len(ANALYSTS) - 1:
                axes.set_xlabel("cells", fontsize=9)
    handles = [
        Line2D([], [], color=colour, marker="o", ms=4, label=name)
        for name, colour in zip(ENGINES, COLOURS, strict=True)
    ]
    handles.append(Line2D([], [], color=COLOURS[0], linestyle=":", label="histogram, by theory"))
    handles.append(
        Line2D(
            [], [], color="black", marker="o", mfc="white", linestyle="", label="untested: no bound stated"
        )
    )
    handles.append(Line2D([], [], color="grey", linewidth=0.7, label="1/2: what no answer need exceed"))
    canvas.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
