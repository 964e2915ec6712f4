"""Slopes of least squares beside the exact ones, and whether their usual errors hold.

    python experiments/slopes.py [--quick] [--from-json]

Two tables: years of education on age, sex and income among the census records, and a made one of 300,000
records with five correlated regressors whose part of the outcome has ten times the variance of the rest. Each
is asked in a session that was told of the sums, in one that was not, and with noise on every sum by itself.
Simulated noise: NOT PRIVATE.
Writes results/slopes.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped

import onlineic as ic
from onlineic.baselines import PerQueryNoise
from onlineic.datasets import adult5, adult5_domain
from onlineic.noise import SimulatedNoise, public_generator
from onlineic.questions import Answering, PublicFacts, sums_of_products

NAME = "slopes"
BUDGET = ic.Budget(1.0, 1e-9)
USUAL = 1.96
ENGINES = ("sums announced", "nothing announced", "noise on every sum")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    runs: int = 200  # of the census records
    many: int = 40  # of the large table
    records: int = 300_000
    seed: int = 20261129


@attrs.frozen(eq=False)
class Task:
    """A regression with its exact slopes, on a table."""

    label: str
    data: ic.PrivateData
    outcome: Any
    on: list[Any]
    exact: np.ndarray
    runs: int


class PerSum(Answering):
    """Noise on every sum by itself, behind what questions need of a session."""

    def __init__(self, data: ic.PrivateData, sums: list[Any], seed: int) -> None:
        self._data = data
        self._engine = PerQueryNoise(
            data, BUDGET, answers=len(sums), noise_law="best", noise=SimulatedNoise(seed)
        )

    @property
    def facts(self) -> PublicFacts:
        return PublicFacts(self._data.domain, self._data.n, 0.05)

    def answer(self, query: Any) -> ic.Answer:
        return self._engine.answer(query)

    def answer_many(self, queries: Any) -> Any:
        return self._engine.answer_many(queries)

    def joint_bounds(self, queries: Any, answers: Any) -> np.ndarray:
        return np.full(len(answers), math.inf)


def census(config: Config) -> Task:
    columns, counts = adult5()
    held = [columns["age"], columns["sex"] == "Male", columns["income"] == ">50K", np.ones(len(counts))]
    root = np.sqrt(counts)[:, None]
    exact = np.linalg.lstsq(root * np.column_stack(held), root[:, 0] * columns["education_num"], rcond=None)[
        0
    ]
    on = ["age", {"sex": "Male"}, {"income": ">50K"}]
    data = ic.PrivateData.from_counts(columns, counts, adult5_domain())
    return Task("adult5: education_num", data, "education_num", on, exact[:-1], config.runs)


def made(config: Config) -> Task:
    draw, n = public_generator(7), config.records
    shape = np.full((5, 5), 0.3) + 0.7 * np.eye(5)
    regressors = np.clip(np.round(50 + 15 * draw.multivariate_normal(np.zeros(5), shape, n)), 0, 99)
    signal = regressors @ np.array([1.0, -0.8, 0.6, 0.5, -0.4])
    outcome = signal + draw.normal(0.0, signal.std() / math.sqrt(10.0), n)
    outcome = np.clip(np.round(100 + 15 * (outcome - outcome.mean()) / outcome.std()), 0, 199)
    names = [f"x{place}" for place in range(5)]
    domain = ic.Domain.of(dict.fromkeys(names, range(100)) | {"y": range(200)})
    columns = dict(zip(names, regressors.T.astype(int), strict=True)) | {"y": outcome.astype(int)}
    exact = np.linalg.lstsq(np.column_stack([regressors, np.ones(n)]), outcome, rcond=None)[0]
    data = ic.PrivateData.from_records(columns, domain)
    return Task(f"made, {n:,} records", data, "y", list(names), exact[:-1], config.many)


def tasks(config: Config) -> Iterator[Task]:
    yield census(config)
    yield made(config)


def engines(task: Task) -> dict[str, Callable[[int], Answering]]:
    sums = sums_of_products(task.data.domain, [task.outcome, *task.on])

    def session(seed: int, **told: Any) -> ic.OnlineIC:
        return ic.OnlineIC(task.data, BUDGET, noise=SimulatedNoise(seed), **told)

    return {
        ENGINES[0]: lambda seed: session(seed, questions=sums),
        ENGINES[1]: session,
        ENGINES[2]: lambda seed: PerSum(task.data, sums, seed),
    }


def row_of(task: Task, engine: str, drawn: list[int]) -> dict[str, Any]:
    """Return errors, usual errors and bounds of the slopes over some seeds."""
    begun, errors, usual, bounds, ridges = time.process_time(), [], [], [], []
    for seed in drawn:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of wide bounds
            found = engines(task)[engine](seed).least_squares(task.outcome, task.on)
        errors.append(found.slopes - task.exact)
        usual.append(found.expected_errors)
        bounds.append(found.error_bounds)
        ridges.append(found.ridge)
    off, told = np.abs(np.array(errors)), np.array(usual)
    return {
        "task": task.label,
        "engine": engine,
        "runs": len(drawn),
        "exact": task.exact.tolist(),
        "rms": np.sqrt(np.mean(off**2, axis=0)).tolist(),
        "bias": np.mean(errors, axis=0).tolist(),
        "relative": (off / np.abs(task.exact)).tolist(),
        "usual": np.median(told, axis=0).tolist() if np.isfinite(told).all() else None,
        "within": float(np.mean(off <= USUAL * told)) if np.isfinite(told).all() else None,
        "bounded": float(np.mean(off <= np.array(bounds))),
        "bound": np.median(bounds, axis=0).tolist() if np.isfinite(bounds).all() else None,
        "ridges": int(np.count_nonzero(ridges)),
        "seconds": round(time.process_time() - begun, 2),
    }


def run(quick: bool) -> dict[str, Any]:
    start, rows = time.perf_counter(), []
    config = Config(runs=2, many=1, records=20_000) if quick else Config()
    for task in tasks(config):
        for engine in ENGINES:
            rows.append(row_of(task, engine, seeds(config.seed, task.runs)))
            print(task.label, engine, np.round(rows[-1]["rms"], 5), rows[-1]["within"], flush=True)
    return stamped(config, start, rows=rows)


def again(result: dict[str, Any]) -> dict[str, Any]:
    """Return places in the result and what they give now, for `make fresh`: one error of the first row."""
    config = Config()
    task = census(config)
    row = row_of(task, ENGINES[0], seeds(config.seed, config.runs)[:1])
    return {"rows/0/relative/0": row["relative"][0]}


def table(result: dict[str, Any]) -> str:
    """Return errors of the slopes, relative to the exact ones, and how often they are within what is said."""
    lines = [
        "| slopes of | how | runs | rms error, over the slope | largest | in the mean | in the usual error "
        "| in the bound | bound, over the slope |",
        "|" + "---|" * 9,
    ]
    for row in result["rows"]:
        exact = np.abs(row["exact"])
        bounds = [] if row["bound"] is None else row["bound"] / exact
        shares = ", ".join(f"{one:.2g}" for one in bounds) or "none"
        within = "unknown" if row["within"] is None else f"{row['within']:.1%}"
        lines.append(
            f"| {row['task']} | {row['engine']} | {row['runs']} | "
            f"{', '.join(f'{one:.2g}' for one in row['rms'] / exact)} | {np.max(row['relative']):.2g} | "
            f"{', '.join(f'{one:.2g}' for one in row['bias'] / exact)} | {within} | {row['bounded']:.1%} | "
            f"{shares} |"
        )
    return "\n".join(lines)


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw the relative error of every slope in every run; needs matplotlib."""
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(row["task"] for row in result["rows"]))
    drawn = Figure(figsize=(8.0, 3.4), layout="constrained")
    for axes, label in zip(drawn.subplots(1, len(labels), squeeze=False)[0], labels, strict=True):
        rows = [row for row in result["rows"] if row["task"] == label]
        for place, row in enumerate(rows):
            relative = np.array(row["relative"])
            spread = place + np.linspace(-0.3, 0.3, relative.shape[1])
            for at, errors in zip(spread, relative.T, strict=True):
                axes.plot(np.full(len(errors), at), errors, ".", markersize=3, color="#0072B2", alpha=0.4)
        axes.set_yscale("log")
        axes.axhline(0.1, color="#555555", linewidth=1, linestyle=":")
        axes.set_xticks(range(len(rows)), [row["engine"] for row in rows], fontsize=7)
        axes.set_title(label, fontsize=9)
    drawn.axes[0].set_ylabel("error over the exact slope")
    drawn.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
