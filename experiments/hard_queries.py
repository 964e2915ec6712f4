"""How many hard answers a stream costs each update rule, against alpha, beside the proven T(alpha).

    python experiments/hard_queries.py [--quick] [--from-json]

The threshold is 2 alpha, as in the book. Counted is the rule's own number: exact gaps, exact answers, no
noise; the stream is asked again and again until no query of it is hard ("until none is left"; the first time
through is the count of one pass). A last stream is an adversary's: of many queries whose gap exceeds 2 alpha
by a hair it asks the one that costs the rule's potential least (of maximum entropy, which learns from 0/1
weights alone, the one with the least gap). Then two counts with noise: textbook sessions
on the same tables, enlarged until the theorem allows alpha, and sessions as they are planned on the tables
as they are. NOT PRIVATE: truths are read and noise is simulated.
Writes results/hard_queries.json; the markdown tables and the figure are made from that file alone.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import (
    Stream,
    adult5_data,
    adult5_ranges,
    conjunctions,
    nltcs,
    one_dimensional,
    present,
    stream_of,
    whole,
)
from updates_against_bound import JUST, Setting, candidates, cells_of, loss_of_potential

import onlineic as ic
from onlineic.errors import InfeasibleAccuracyError
from onlineic.evaluate import random_stream, trace
from onlineic.noise import SimulatedNoise
from onlineic.plan import textbook_plan
from onlineic.queries import Measurement, Partition, PartitionRule, Query

NAME = "hard_queries"
MEDIAN_CELLS = 8
RULES = {
    "MW tight": ic.MultiplicativeWeights(),
    "MW book": ic.MultiplicativeWeights(variant="book"),
    "perceptron centred": ic.Perceptron(),
    "perceptron book": ic.Perceptron(variant="book"),
    "median": ic.Median(),
    "max. entropy, numbers": ic.MaximumEntropy(),
    "max. entropy, partitions": ic.MaximumEntropy(),
}
PROVEN = tuple(RULES)[:5]
PLANNED = ("MW tight", "max. entropy, numbers", "max. entropy, partitions")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    alphas: tuple[float, ...] = (0.1, 0.05, 0.02, 0.01)
    queries: int = 1_000
    most: int = 1_000  # hard answers after which a count is given up
    forced_cells: int = 32
    forced_alphas: tuple[float, ...] = (0.2, 0.1, 0.05, 0.04)
    tries: int = 24
    noisy_alphas: tuple[float, ...] = (0.1, 0.05)
    planned_queries: int = 300
    textbook_budget: tuple[float, float] = (1.0, 1e-6)
    planned_budget: tuple[float, float] = (1.0, 1e-9)
    stream_seed: int = 1
    seed: int = 20261121


def quick_config() -> Config:
    return Config(
        (0.1, 0.05),
        queries=60,
        most=60,
        planned_queries=10,
        forced_alphas=(0.2,),
        noisy_alphas=(0.1,),
        forced_cells=8,
    )


def part_of(data: ic.PrivateData, names: tuple[str, ...]) -> ic.PrivateData:
    """Return the table of some attributes alone."""
    axes = tuple(sorted(data.domain.names.index(name) for name in names))
    every = Partition(data.domain, axes, tuple(np.arange(data.domain.shape[axis]) for axis in axes))
    domain = data.domain.project(*(data.domain.names[axis] for axis in axes))
    return ic.PrivateData(data.exact_counts(every).reshape(domain.shape), domain)


def streams(config: Config, absent: list[str]) -> Iterator[Stream]:
    """Yield up to four streams over real tables; that of four cells is the only one for the median."""
    size, seed = config.queries, config.stream_seed

    def adult() -> Stream:
        return attrs.evolve(adult5_ranges(size, seed), label="Adult, ranges")

    def survey() -> Stream:
        whole_survey = nltcs()
        twelve = part_of(whole_survey, whole_survey.domain.names[:12])
        return stream_of("NLTCS, 1 to 4 ways", twelve, conjunctions(twelve.domain, size, 4, seed))

    def citations() -> Stream:
        data = one_dimensional("hepth")
        return stream_of("HEPTH, ranges", data, random_stream(data.domain, size, seed))

    def four_cells() -> Stream:
        tiny = part_of(adult5_data(), ("sex", "income"))
        weights = np.random.default_rng(seed).random((size, tiny.domain.size))
        weights[::2] = np.round(weights[::2])
        asked = [ic.dense(row.reshape(tiny.domain.shape)) for row in weights]
        return stream_of("Adult, sex and income", tiny, asked)

    makers = {
        "Adult, ranges": adult,
        "NLTCS, 1 to 4 ways": survey,
        "HEPTH, ranges": citations,
        "Adult, sex and income": four_cells,
    }
    yield from present(makers, absent)


def at(name: str, domain: ic.Domain, alpha: float):
    """Return the rule of this name, fixed for alpha where it must be."""
    rule = RULES[name]
    return rule.at(domain, alpha) if isinstance(rule, ic.Median) else rule


def fits(name: str, domain: ic.Domain) -> bool:
    """Return whether the rule can be run over this domain."""
    return name != "median" or domain.size <= MEDIAN_CELLS


def measured_exactly(name: str, query: Query, data: ic.PrivateData) -> Measurement:
    """Return the exact answer that the rule learns from: a number or a table."""
    scale = 0.1 / data.n  # a refit wants some scale; weights and perceptron do not read it
    target = PartitionRule().partition(query) if name.endswith("partitions") else None
    if target is None:
        return Measurement(query, data.exact_counts_many([query]) / (data.n << query.grid_bits), scale)
    return Measurement(target, data.exact_counts(target) / data.n, scale)


def counted(name: str, stream: Stream, alpha: float, most: int, passes: int = 10**9) -> dict:
    """Return how many queries are hard at threshold 2 alpha, in one pass and until none is left."""
    data, rule = stream.data, at(name, stream.data.domain, alpha)
    hypothesis, released, hard, first, chunk = rule.init(data.domain), (), 0, 0, 4
    for turn in range(passes):
        before, place = hard, 0
        while place < len(stream.queries):
            part = stream.queries[place : place + chunk]
            gaps = np.abs(stream.truths[place : place + chunk] - hypothesis.evaluate_many(part))
            over = np.flatnonzero(gaps > 2 * alpha)
            if not over.size:
                place, chunk = place + len(part), min(2 * chunk, 4096)
                continue
            one = measured_exactly(name, part[over[0]], data)
            released = (*released, one) if name.startswith("max.") else (one,)
            hypothesis = rule.update(hypothesis, released, alpha)
            place, chunk, hard = place + int(over[0]) + 1, max(4, 2 * int(over[0])), hard + 1
            if turn and hard >= most:
                return {"pass": first, "all": hard, "complete": False}
        first = hard if turn == 0 else first
        if hard == before:
            break
    return {"pass": first, "all": hard, "complete": True}


def forced(name: str, cells: int, alpha: float, tries: int, seed: int) -> int:
    """Return how many updates an adversary forces on a point mass at threshold 2 alpha, without noise."""
    generator, domain, truth = np.random.default_rng(seed), ic.Domain.of(x=cells), np.eye(cells)[0]
    data = ic.PrivateData((1000 * truth).astype(np.int64), domain)
    rule, setting = RULES[name], Setting(name, cells, alpha, "point")
    hypothesis, released, updates = rule.init(domain), (), 0
    while True:
        held = hypothesis.probabilities() if name.startswith("max.") else cells_of(hypothesis)
        rows = (generator.random((tries, cells)) < generator.random((tries, 1))).astype(float)
        rows[0], rows[1] = 1.0 - 2.0**-20, np.sign(truth - held).clip(0.0, 1.0)
        if name.startswith("max."):  # it learns from 0/1 weights only: there is no hair to choose
            gaps = np.abs(rows[1:] @ (truth - held))
            rows = rows[1:][gaps > 2 * alpha]
            cost = gaps[gaps > 2 * alpha]
        else:
            rows = candidates(truth, held, 2 * alpha, rows)
            cost = loss_of_potential(setting, truth, held, rows) if len(rows) else rows
        if not len(rows):
            return updates
        query = ic.dense(rows[np.argmin(cost)].clip(0.0, 1.0)).bind(domain)
        one = measured_exactly(name, query, data)
        if abs(float(query.weights() @ truth) / (1 << query.grid_bits) - hypothesis.evaluate(query)) <= (
            2 * alpha + JUST / 4
        ):
            return updates
        released = (*released, one) if name.startswith("max.") else (one,)
        hypothesis, updates = rule.update(hypothesis, released, alpha), updates + 1


def proven(name: str, domain: ic.Domain, alpha: float) -> float | None:
    return at(name, domain, alpha).exact_update_bound(domain, alpha) if name in PROVEN else None


def textbook(name: str, stream: Stream, alpha: float, config: Config, seed: int) -> dict:
    """Return a textbook session on the table times the least power of two at which alpha is feasible."""
    (epsilon, delta), length = config.textbook_budget, len(stream.queries)
    for power in range(20):
        n = stream.data.n << power
        try:
            textbook_plan(
                stream.data.domain, n, ic.Budget(epsilon, delta), RULES[name], max_queries=length, alpha=alpha
            )
            break
        except InfeasibleAccuracyError:
            continue
    domain = stream.data.domain
    counts = stream.data.exact_counts(whole(domain)).reshape(domain.shape)
    data = ic.PrivateData(counts << power, domain)
    session = ic.OnlineIC.textbook(
        data,
        epsilon=epsilon,
        delta=delta,
        max_queries=length,
        update=RULES[name],
        alpha=alpha,
        noise=SimulatedNoise(seed),
    )
    one = trace(name, session, data, stream.queries, truths=stream.truths, seed=seed)
    within = one.max_error <= 3 * alpha
    return {"n": n, "cutoff": session.plan.hard_answers, "hard": one.hard, "within_3_alpha": within}


def as_planned(name: str, stream: Stream, config: Config, seed: int) -> dict:
    """Return a session at its planned threshold, beside what that threshold costs the rule without noise."""
    release = "partition" if name.endswith("partitions") else "answer"
    size = config.planned_queries
    stream = Stream(stream.label, stream.data, stream.queries[:size], stream.truths[:size])
    rule = None if release == "partition" else RULES[name]
    session = ic.OnlineIC(
        stream.data,
        ic.Budget(*config.planned_budget),
        update=rule,
        release=release,
        max_queries=len(stream.queries),
        noise=SimulatedNoise(seed),
    )
    one = trace(name, session, stream.data, stream.queries, truths=stream.truths, seed=seed)
    half = session.plan.alpha  # the threshold is twice what an update relies on
    return {
        "rule": name,
        "stream": stream.label,
        "threshold": 2 * half,
        "cutoff": session.plan.hard_answers,
        "free": counted(name, stream, half, config.most, passes=1)["pass"],
        "hard": one.hard,
        "untested": one.untested,
        "rms": one.rms_error,
        "seed": seed,
    }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = quick_config() if quick else Config()
    noise_seed, adversary_seed = seeds(config.seed, 2)
    rows, planned, about, absent = [], [], {}, []
    for stream in streams(config, absent):
        domain = stream.data.domain
        about[stream.label] = {"cells": domain.size, "n": stream.data.n, "queries": len(stream.queries)}
        for name in RULES:
            if not fits(name, domain):
                continue
            began = time.perf_counter()
            for alpha in config.alphas:
                row = {"stream": stream.label, "rule": name, "alpha": alpha}
                row |= {"bound": proven(name, domain, alpha), **counted(name, stream, alpha, config.most)}
                if name in PROVEN and alpha in config.noisy_alphas:
                    row["textbook"] = textbook(name, stream, alpha, config, noise_seed)
                rows.append(row)
            counts = [row["all"] for row in rows[-len(config.alphas) :]]
            print(f"{stream.label}, {name}: {counts}, {time.perf_counter() - began:.1f} s", flush=True)
        if domain.size > MEDIAN_CELLS:
            planned += [as_planned(name, stream, config, noise_seed) for name in PLANNED]
    domain = ic.Domain.of(x=config.forced_cells)
    about["adversary, point mass"] = {"cells": domain.size, "n": None, "queries": None}
    for name in RULES:
        if name != "median":
            for alpha in config.forced_alphas:
                updates = forced(name, config.forced_cells, alpha, config.tries, adversary_seed)
                bound = proven(name, domain, alpha)
                row = {"stream": "adversary, point mass", "rule": name, "alpha": alpha, "bound": bound}
                rows.append(row | {"pass": updates, "all": updates, "complete": True})
            print(
                f"adversary, {name}: {[row['all'] for row in rows[-len(config.forced_alphas) :]]}", flush=True
            )
    return stamped(config, start, absent, streams=about, rows=rows, planned=planned)


def slope(rows: list[dict]) -> float | None:
    """Return the power of 1/alpha by which the complete counts of one rule and stream grow."""
    known = [(row["alpha"], row["all"]) for row in rows if row["complete"] and row["all"]]
    if len(known) < 3:
        return None
    alphas, counts = np.array(known).T
    return float(-np.polyfit(np.log(alphas), np.log(counts), 1)[0])


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    stream, seed = next(streams(config, [])), seeds(config.seed, 2)[0]
    return {"planned/0": as_planned(PLANNED[0], stream, config, seed)}


def table(result: dict) -> str:
    lines = []
    for label, about in result["streams"].items():
        rows = [row for row in result["rows"] if row["stream"] == label]
        alphas = sorted({row["alpha"] for row in rows}, reverse=True)
        size = f", {about['queries']:,} queries, n = {about['n']:,}" if about["n"] else ""
        heads = " | ".join(f"α = {alpha:g}" for alpha in alphas)
        lines += [f"| {label}: {about['cells']:,} cells{size} | {heads} | power of 1/α |"]
        lines += ["|" + "---|" * (len(alphas) + 2)]
        for name in RULES:
            mine = sorted((row for row in rows if row["rule"] == name), key=lambda row: -row["alpha"])
            if mine:
                power = slope(mine)
                cells = " | ".join(count(row) for row in mine)
                lines.append(f"| {name} | {cells} | {'-' if power is None else f'{power:.2f}'} |")
        lines.append("")
    lines += [
        "Hard answers until none is left (in brackets: share of T(α)).",
        "",
        "| textbook sessions, hard answers in one pass: with noise at (1, 1e-6) / without | α | n, from - to "
        "| " + " | ".join(PROVEN) + " | all within 3α |",
        "|" + "---|" * (4 + len(PROVEN)),
    ]
    for label in result["streams"]:
        for alpha in result["config"]["noisy_alphas"]:
            rows = {
                row["rule"]: row
                for row in result["rows"]
                if row["stream"] == label and row["alpha"] == alpha and "textbook" in row
            }
            if rows:
                sizes = [row["textbook"]["n"] for row in rows.values()]
                cells = [
                    f"{rows[name]['textbook']['hard']} / {rows[name]['pass']}" if name in rows else "-"
                    for name in PROVEN
                ]
                kept = all(row["textbook"]["within_3_alpha"] for row in rows.values())
                lines.append(
                    f"| {label} | {alpha:g} | {min(sizes):.0e} - {max(sizes):.0e} | {' | '.join(cells)} "
                    f"| {'yes' if kept else 'no'} |"
                )
    lines += [
        "",
        "| as planned, (1, 1e-9) | rule | threshold | planned c | hard | untested | hard, no noise, one pass "
        "| rms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["planned"]:
        lines.append(
            f"| {row['stream']} | {row['rule']} | {row['threshold']:.5f} | {row['cutoff']} | {row['hard']} "
            f"| {row['untested']:,} | {row['free']:,} | {row['rms']:.5f} |"
        )
    return "\n".join(lines)


def count(row: dict) -> str:
    shown = f"{row['all']:,}" if row["complete"] else f"> {row['all']:,}"
    if row["bound"] is None or not row["complete"]:
        return shown
    share = row["all"] / row["bound"]
    return f"{shown} ({share:.2g})" if share >= 1e-3 else f"{shown} ({share:.0e})"


COLOURS = {
    "MW tight": "#0072B2",
    "MW book": "#56B4E9",
    "perceptron centred": "#D55E00",
    "perceptron book": "#E69F00",
    "median": "#009E73",
    "max. entropy, numbers": "#CC79A7",
    "max. entropy, partitions": "#000000",
}


def figure(result: dict, path: Path) -> None:
    """Draw counts and T(alpha), one panel a stream, and textbook sessions against no noise."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    canvas = Figure(figsize=(11.0, 7.0), layout="constrained")
    panels = canvas.subplots(2, 3).ravel()
    for axes, (label, about) in zip(panels, result["streams"].items(), strict=False):
        alphas = sorted({row["alpha"] for row in result["rows"] if row["stream"] == label})
        for name, colour in COLOURS.items():
            rows = [row for row in result["rows"] if row["stream"] == label and row["rule"] == name]
            if not rows:
                continue
            x = [row["alpha"] for row in rows]
            done = [row for row in rows if row["complete"]]
            axes.plot(
                [row["alpha"] for row in done], [row["all"] for row in done], color=colour, linewidth=1.4
            )
            for row in rows:
                axes.plot(row["alpha"], row["all"], "o" if row["complete"] else "^", color=colour, ms=4.5)
            if rows[0]["bound"] is not None:
                axes.plot(x, [row["bound"] for row in rows], color=colour, linewidth=0.9, linestyle="--")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.invert_xaxis()
        axes.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas], fontsize=8)
        axes.minorticks_off()
        axes.set_title(f"{label} ({about['cells']:,} cells)", fontsize=9)
        axes.set_xlabel("α (threshold 2α)", fontsize=8)
    for axes in (panels[0], panels[3]):
        axes.set_ylabel("hard answers", fontsize=8)
    for axes in panels[len(result["streams"]) : 5]:
        axes.set_axis_off()
    last = panels[5]
    for row in result["rows"]:
        if (noisy := row.get("textbook")) is not None:
            last.plot(row["pass"] + 1, noisy["hard"] + 1, "o", color=COLOURS[row["rule"]], ms=4.5)
    ends = [1, 3e3]
    last.plot(ends, ends, color="grey", linewidth=0.8)
    last.set_xscale("log")
    last.set_yscale("log")
    last.set_title("one pass: textbook sessions with noise", fontsize=9)
    last.set_xlabel("hard without noise, plus 1", fontsize=8)
    last.set_ylabel("hard with noise, plus 1", fontsize=8)
    handles = [Line2D([], [], color=colour, marker="o", ms=4, label=name) for name, colour in COLOURS.items()]
    handles += [
        Line2D([], [], color="grey", linestyle="--", label="T(α), slope 1/α² (median: not)"),
        Line2D([], [], color="grey", marker="^", linestyle="", label="at least, given up"),
    ]
    canvas.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
