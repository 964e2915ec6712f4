"""What the rules of the book learn in practical sessions: from the uniform start, and from first tables.

    python experiments/rules_that_learn.py [--quick] [--from-json]

Every rule in a session that releases numbers, at (1, 1e-6), with the planner's number of hard answers.
Uniform start: a constant step at alpha = half the threshold (what a hit has at least), the constant step
whose T(alpha) is the number of hard answers, the best constant rate of a grid (in hindsight, for each
table), and the step as long as was measured, which sessions take. First tables: the same rules from the
maximum-entropy fit of the default session's opening, paid from the same budget; beside them that opening
untouched, in a session of the same plan whose rule never moves, and the same steps with none of the
noise left out. Maximum entropy, by numbers and by partitions (the default session), stands beside all of
them. `searched` tables are those on which the choices were made, `fresh` ones were not looked at before.
Simulated noise: NOT PRIVATE.
Writes results/rules_that_learn.json; the markdown tables and the figure are made from that file alone.
"""

import contextlib
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import adult5_data
from which_rule import random_queries, table_of

import onlineic as ic
from onlineic.bounds.certificates import least_update_alpha
from onlineic.domain import Domain
from onlineic.errors import InfeasibleAccuracyError, TooLargeError
from onlineic.evaluate import exact_values, random_stream
from onlineic.hypothesis import Hypothesis
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.queries import Measurement
from onlineic.updates import MeasuredSteps, MeasuredWeights, UpdateRule

NAME = "rules_that_learn"
BOOK = {
    "MW tight": ic.MultiplicativeWeights(),
    "MW book": ic.MultiplicativeWeights(variant="book"),
    "perceptron centred": ic.Perceptron(),
    "perceptron book": ic.Perceptron(variant="book"),
}
MORE = {"MW replayed": MeasuredWeights(), "max. entropy, numbers": ic.MaximumEntropy()}
DEFAULT = "max. entropy, partitions"
SMALL = 4  # cells up to which the median is run


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence, paired across rules."""

    rates: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
    queries: int = 150
    adult_queries: int = 600
    runs: int = 2
    epsilon: float = 1.0
    delta: float = 1e-6
    quick: bool = False
    seed: int = 20261122


@attrs.frozen
class Constant(UpdateRule[Any]):
    """A rule with one alpha, whatever the plan says: what the book does. 0: it never moves."""

    rule: UpdateRule[Any]
    alpha: float

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Any:
        return self.rule.init(domain, prior)

    def update(self, hypothesis: Any, measurements: tuple[Measurement, ...], alpha: float) -> Any:
        return self.rule.update(hypothesis, measurements, self.alpha) if self.alpha else hypothesis

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None


@attrs.frozen(eq=False)
class Case:
    """A table with its stream. NOT PRIVATE."""

    label: str
    kind: str
    data: ic.PrivateData
    stream: Sequence[Any]
    truth: np.ndarray
    hard_answers: int | None = None


def noisy_copies(n: int, seed: int) -> ic.PrivateData:
    """Return five attributes, each a noisy copy of the one before."""
    generator, sizes = np.random.default_rng(seed), (10, 8, 6, 5, 4)
    codes = [generator.integers(0, sizes[0], n)]
    for size in sizes[1:]:
        moved = (codes[-1] + (generator.random(n) < 0.4)) % size
        codes.append(np.where(generator.random(n) < 0.15, generator.integers(0, size, n), moved))
    domain = ic.Domain.of({f"a{axis}": size for axis, size in enumerate(sizes)})
    return ic.PrivateData(np.bincount(np.ravel_multi_index(codes, sizes), minlength=domain.size), domain)


def mixture(n: int, seed: int) -> ic.PrivateData:
    """Return records of four kinds over eleven binary attributes."""
    generator = np.random.default_rng(seed)
    kinds, bits = generator.random((4, 11)), generator.random((n, 11))
    codes = (bits < kinds[generator.integers(0, 4, n)]).astype(np.int64)
    counts = np.bincount(codes @ (1 << np.arange(11)[::-1]), minlength=2**11)
    return ic.PrivateData(counts, ic.Domain.of({f"b{bit}": 2 for bit in range(11)}))


def cases(config: Config) -> list[Case]:
    """Return all tables and streams."""
    found: list[Case] = []

    def add(label: str, kind: str, data: ic.PrivateData, stream: Sequence[Any], c: int | None = None) -> None:
        found.append(Case(label, kind, data, stream, np.asarray(exact_values(data, stream)), c))

    sizes = (64,) if config.quick else (4, 64, 1024)
    for cells in sizes:
        for n in (100_000,) if config.quick else (3_000, 100_000):
            for shape in ("point mass", "half empty", "Dirichlet(1/2)"):
                stream = random_queries(cells, config.queries, 4)
                add(f"{cells:,} cells, {shape}, n = {n:,}", "searched", table_of(shape, cells, n, 5), stream)
    if config.quick:
        return found
    size, adult = config.adult_queries, adult5_data()
    add(f"Adult, {size:,} queries", "searched", adult, random_stream(adult.domain, size, 3))
    add(f"Adult, {size:,} queries, c = 20", "searched", adult, random_stream(adult.domain, size, 3), 20)
    for cells, n in ((64, 20_000), (512, 300_000)):
        for shape in ("point mass", "half empty", "Dirichlet(1/2)", "nearly flat"):
            stream = random_queries(cells, config.queries, 104)
            add(f"{cells:,} cells, {shape}, n = {n:,}", "fresh", table_of(shape, cells, n, 105), stream)
    add("Adult, other queries", "fresh", adult, random_stream(adult.domain, size, 103))
    add("Adult, other queries, c = 200", "fresh", adult, random_stream(adult.domain, size, 104), 200)
    for label, data in (("noisy copies", noisy_copies(60_000, 6)), ("mixture", mixture(80_000, 7))):
        add(f"{label}, {data.domain.size:,} cells", "fresh", data, random_stream(data.domain, size, 106))
    return found


def error(
    case: Case, config: Config, drawn: list[int], rule: UpdateRule[Any] | None, **told: Any
) -> list[float]:
    """Return (rms, hard, untested) of sessions with this rule, or of the default session."""
    squares, hard, untested = [], 0, 0
    if rule is not None:
        told = {"release": "answer", "hard_answers": case.hard_answers} | told
    for seed in drawn:
        session = ic.OnlineIC(
            case.data,
            ic.Budget(config.epsilon, config.delta),
            update=rule,
            max_queries=len(case.stream),
            noise=SimulatedNoise(seed),
            **told,
        )
        values = np.array([answer.value for answer in session.answer_many(case.stream)])
        squares.append(float(np.mean(np.square(values - case.truth))))
        hard, untested = hard + session.statistics().hard, untested + session.statistics().untested
    rms = math.sqrt(float(np.mean(squares)))
    return [float(f"{rms:.4g}"), hard / len(drawn), untested / len(drawn)]


def uniform(case: Case, config: Config, drawn: list[int]) -> dict[str, Any]:
    """Return every rule from its own start, with the four kinds of steps."""
    budget = ic.Budget(config.epsilon, config.delta)
    plan = session_plan(
        case.data.domain,
        case.data.n,
        budget,
        update=ic.MultiplicativeWeights(),
        hard_answers=case.hard_answers,
        max_queries=len(case.stream),
    )
    found: dict[str, Any] = {"c": plan.hard_answers, "threshold": plan.alpha * 2.0}
    for name, rule in BOOK.items():

        def steps(alpha: float, rule: Any = rule) -> float:
            return float(rule.exact_update_bound(case.data.domain, alpha))

        equal = least_update_alpha(steps, plan.hard_answers)
        row = {
            "half the threshold": error(case, config, drawn, Constant(rule, plan.alpha)),
            "T equals c": error(case, config, drawn, Constant(rule, equal)),
            "alpha of T": float(f"{equal:.4g}"),
            "measured": error(case, config, drawn, rule),
        }
        if isinstance(rule, ic.MultiplicativeWeights):
            rates = {
                rate: error(case, config, drawn, ic.MultiplicativeWeights(rate=rate))[0]
                for rate in config.rates
            }
            best = min(rates, key=rates.__getitem__)
            row |= {"best rate": [rates[best], best]}
        found[name] = row
    for name, rule in MORE.items():
        found[name] = {"measured": error(case, config, drawn, rule)}
    if case.data.domain.size <= SMALL:
        with contextlib.suppress(TooLargeError, InfeasibleAccuracyError):
            found["median"] = {"measured": error(case, config, drawn[:1], ic.Median())}
    return found


def opened(case: Case, config: Config, drawn: list[int]) -> dict[str, Any]:
    """Return every rule from first tables, and the opening untouched, in sessions of one plan."""
    found: dict[str, Any] = {
        "untouched": error(case, config, drawn, Constant(ic.MultiplicativeWeights(), 0.0), first_tables=True)
    }
    for name, rule in BOOK.items():
        found[name] = {
            "measured": error(case, config, drawn, rule, first_tables=True),
            "no noise left out": error(
                case, config, drawn, Constant(MeasuredSteps(rule), 1.0), first_tables=True
            ),
        }
    for name, rule in MORE.items():
        found[name] = {"measured": error(case, config, drawn, rule, first_tables=True)}
    return found


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(rates=(0.5, 2.0), queries=40, runs=1, quick=True) if quick else Config()
    drawn, rows = seeds(config.seed, config.runs), []
    for case in cases(config):
        began = time.perf_counter()
        rows.append(
            {
                "table": case.label,
                "kind": case.kind,
                "cells": case.data.domain.size,
                "n": case.data.n,
                "uniform": uniform(case, config, drawn),
                "opened": opened(case, config, drawn),
                DEFAULT: error(case, config, drawn, None),
            }
        )
        print(f"{case.label}: {time.perf_counter() - began:.1f} s", flush=True)
    return stamped(config, start, noise_seeds=drawn, rows=rows)


def shown(value: float) -> str:
    return f"{1e5 * value:,.0f}"


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    place, case = next(pair for pair in enumerate(cases(config)) if pair[1].data.domain.size == 64)
    drawn, rule = seeds(config.seed, config.runs), BOOK["MW tight"]
    return {
        f"rows/{place}/table": case.label,
        f"rows/{place}/{DEFAULT}": error(case, config, drawn, None),
        f"rows/{place}/uniform/MW tight/measured": error(case, config, drawn, rule),
    }


def table(result: dict) -> str:
    lines = [
        "Rms error in 1e-5 of the records. Uniform start:",
        "",
        "| table | | hard answers | MW: half the threshold | MW: T = c | MW: best rate (which) | **MW** | "
        "perceptron: half the threshold | perceptron: T = c | **perceptron** | median | MW replayed "
        "| max. entropy, numbers |",
        "|---" * 13 + "|",
    ]
    for row in result["rows"]:
        held = row["uniform"]
        weights, other = held["MW tight"], held["perceptron centred"]
        rms, rate = weights["best rate"]
        cells = [
            row["table"],
            row["kind"],
            str(held["c"]),
            shown(weights["half the threshold"][0]),
            shown(weights["T equals c"][0]),
            f"{shown(rms)} ({rate:g})",
            f"**{shown(weights['measured'][0])}**",
            shown(other["half the threshold"][0]),
            shown(other["T equals c"][0]),
            f"**{shown(other['measured'][0])}**",
            shown(held["median"]["measured"][0]) if "median" in held else "-",
            *(shown(held[name]["measured"][0]) for name in MORE),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "From first tables, one budget:",
        "",
        "| table | | MW from uniform, half the threshold | opening untouched | **MW** "
        "| MW, no noise left out | **perceptron** | perceptron, no noise left out | MW book "
        "| perceptron book | MW replayed "
        f"| max. entropy, numbers | {DEFAULT} |",
        "|---" * 13 + "|",
    ]
    for row in result["rows"]:
        held = row["opened"]
        weights, other = held["MW tight"], held["perceptron centred"]
        cells = [
            row["table"],
            row["kind"],
            shown(row["uniform"]["MW tight"]["half the threshold"][0]),
            shown(held["untouched"][0]),
            f"**{shown(weights['measured'][0])}**",
            shown(weights["no noise left out"][0]),
            f"**{shown(other['measured'][0])}**",
            shown(other["no noise left out"][0]),
            *(shown(held[name]["measured"][0]) for name in ("MW book", "perceptron book", *MORE)),
            shown(row[DEFAULT][0]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "Geometric means over the tables, ratios of rms:",
        "",
        "| tables | rule | measured / half the threshold | T = c / half the threshold | best rate / half the "
        "threshold | from tables / half the threshold | from tables / opening untouched | largest of these |",
        "|---" * 8 + "|",
    ]
    for kind in dict.fromkeys(row["kind"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["kind"] == kind]
        for name in BOOK:
            before = [row["uniform"][name]["half the threshold"][0] for row in rows]

            def ratio(values: list[float], before: list[float] = before) -> str:
                logs = np.log(np.array(values)) - np.log(np.array(before))
                return f"{math.exp(float(logs.mean())):.2f}"

            tables = [row["opened"][name]["measured"][0] for row in rows]
            untouched = [row["opened"]["untouched"][0] for row in rows]
            rates = (
                ratio([row["uniform"][name]["best rate"][0] for row in rows])
                if "best rate" in rows[0]["uniform"][name]
                else "-"
            )
            worst = max(one / other for one, other in zip(tables, untouched, strict=True))
            lines.append(
                f"| {kind} | {name} | {ratio([row['uniform'][name]['measured'][0] for row in rows])} "
                f"| {ratio([row['uniform'][name]['T equals c'][0] for row in rows])} | {rates} "
                f"| {ratio(tables)} | {ratio(tables, untouched)} | {worst:.2f} |"
            )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw every table's error, by step and start, for the weights and the perceptron; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(10.0, 6.8), layout="constrained")
    rows = result["rows"]
    places = np.arange(len(rows))[::-1]
    for axes, name in zip(
        canvas.subplots(1, 2, sharey=True), ("MW tight", "perceptron centred"), strict=True
    ):
        from_uniform = [row["uniform"][name] for row in rows]
        from_tables = [row["opened"] for row in rows]
        drawn = {
            "uniform, alpha = half the threshold": ("#D55E00", "x", from_uniform, "half the threshold"),
            "uniform, T(alpha) = c": ("#E69F00", "^", from_uniform, "T equals c"),
            "uniform, measured steps": ("#0072B2", "o", from_uniform, "measured"),
            "first tables, measured steps": ("#009E73", "s", [one[name] for one in from_tables], "measured"),
            "first tables, untouched": ("black", "|", from_tables, "untouched"),
        }
        for label, (colour, mark, found, step) in drawn.items():
            values = [one[step][0] for one in found]
            axes.plot(values, places, mark, color=colour, label=label, markersize=6)
        axes.set(xscale="log", xlabel="rms error, fraction of records")
        axes.set_title(name, fontsize=10, loc="left")
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
    marks, labels = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(marks, labels, loc="outside lower center", ncols=3, fontsize=8)
    canvas.axes[0].set_yticks(places, [row["table"] for row in rows], fontsize=7)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
