"""Which update rule wins where: by certificate, by the hard answers it needs, and in sessions.

    python experiments/which_rule.py [--quick] [--from-json]

Three comparisons. Certificates: the least error that T(alpha) and the mechanism's margins prove, without and
with a public promise about the largest cell. Hard answers without noise at alpha = 0.02, until a random
stream has no hard query left. Sessions at equal budget, on streams of random queries and of an insider who
always asks the largest gap there is: all rules that learn from numbers get the same mechanism, with as many
hard answers as the planner sets or four times as many, whichever gave the smaller rms; maximum entropy with
partitions is the default session; the median votes with the finest net of at most 2^14 databases. All at
(1, 1e-6), with simulated noise: NOT PRIVATE.
Writes results/which_rule.json; the markdown tables and the figure are made from that file alone.
"""

import contextlib
import functools
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from hard_queries import counted
from study.mechanisms import gumbel_margins
from study.outcome import script, seeds, stamped
from study.sources import adult5_data, stream_of, subsample, whole

import onlineic as ic
from onlineic.bounds import (
    Certificate,
    Margins,
    UpdateBound,
    certificate,
    least_error,
    log_multisets,
    median_dimension_bound,
    median_sampling_bound,
    mw_book_bound,
    mw_tight_bound,
    perceptron_book_bound,
    perceptron_centred_bound,
)
from onlineic.errors import InfeasibleAccuracyError, TooLargeError
from onlineic.evaluate import Trace, compare, random_stream
from onlineic.hypothesis import VersionSpace
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan

NAME = "which_rule"
NUMBERS = {
    "MW tight": ic.MultiplicativeWeights(),
    "MW book": ic.MultiplicativeWeights(variant="book"),
    "perceptron centred": ic.Perceptron(),
    "perceptron book": ic.Perceptron(variant="book"),
    "max. entropy, numbers": ic.MaximumEntropy(),
}
DEFAULT = "max. entropy, partitions"
RULES = (*NUMBERS, "median", DEFAULT)
PROVEN = ("MW tight", "MW book", "perceptron centred", "perceptron book", "median")
SHAPES = ("point mass", "Dirichlet(1/2)", "half empty", "nearly flat")
SESSIONS = (SHAPES[0], *SHAPES[2:])  # tables of the sessions
STREAMS = ("random", "insider")
SMALL = 8  # cells up to which the median is run


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence, paired across rules."""

    cells: tuple[int, ...] = (4, 8, 64, 1024)
    sizes: tuple[int, ...] = (10_000, 100_000)
    queries: int = 80
    runs: int = 2
    tries: int = 12
    more: tuple[int, ...] = (1, 4)  # times the planner's number of hard answers
    net: int = 2**14
    adult_queries: int = 400
    adult_sizes: tuple[int, ...] = (48_842,)
    certified_cells: tuple[int, ...] = (2, 4, 8, 64, 1024, 23_680)
    certified_sizes: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    certified_queries: int = 10_000
    cutoffs: int = 80  # numbers of hard answers tried
    promises: tuple[float, ...] = (1.5, 2.0, 3.0, 3.5, 4.0, 8.0, 32.0)  # k: no cell above k times its share
    promised: tuple[int, int] = (1024, 100_000)  # cells and records of the promises
    alpha: float = 0.02
    free_queries: int = 1_000
    most: int = 2_000
    epsilon: float = 1.0
    delta: float = 1e-6
    seed: int = 20261121


def quick_config() -> Config:
    return Config(
        (4, 64),
        (10_000,),
        queries=15,
        runs=1,
        net=2**8,
        adult_queries=12,
        certified_cells=(4, 64),
        certified_sizes=(10_000,),
        promises=(2.0,),
        cutoffs=20,
        free_queries=30,
        most=100,
    )


def table_of(shape: str, cells: int, n: int, seed: int) -> ic.PrivateData:
    generator = np.random.default_rng(seed)
    shares = {
        "point mass": np.eye(cells)[cells // 2],
        "Dirichlet(1/2)": generator.dirichlet(np.full(cells, 0.5)),
        "half empty": generator.permutation(np.arange(cells) % 2).astype(float),
        "nearly flat": generator.uniform(0.8, 1.2, cells),
    }[shape]
    return ic.PrivateData(generator.multinomial(n, shares / shares.sum()), ic.Domain.of(x=range(cells)))


def rules_for(cells: int, config: Config) -> dict:
    """Return the rules that learn from numbers; the median where its net may be enumerated."""
    size = 1
    while log_multisets(cells, size + 1) <= math.log(config.net):
        size += 1
    return NUMBERS | ({"median": ic.Median(size=size)} if cells <= SMALL else {})


def options(data: ic.PrivateData, queries: int, times: int, config: Config) -> dict:
    """Return what a session of a rule that learns from numbers is told, so many times the planner's c."""
    told = {"release": "answer", "sparse": "gumbel"}
    budget = ic.Budget(config.epsilon, config.delta)
    plan = session_plan(data.domain, data.n, budget, max_queries=queries, **told)
    return told | {"hard_answers": times * plan.hard_answers}


def random_queries(cells: int, size: int, seed: int) -> list:
    """Return subsets, ranges and weights in [0, 1] in turn, none of them constant."""
    generator, stream = np.random.default_rng(seed), []
    while len(stream) < size:
        kind = len(stream) % 3
        if kind == 0:
            first, last = sorted(generator.integers(0, cells, 2).tolist())
            if last - first < cells - 1:
                stream.append(ic.where(x=ic.between(first, last)))
        else:
            weights = generator.random(cells)
            weights = np.round(weights) if kind == 1 else weights
            if 0.0 < weights.sum() < cells:
                stream.append(ic.dense(weights))
    return stream


def cell_values(hypothesis, cells: int) -> np.ndarray | None:
    if isinstance(hypothesis, VersionSpace):
        return None
    held = hypothesis.cells() if hasattr(hypothesis, "cells") else hypothesis.probabilities()
    return held.ravel()


def changed(cells: int, generator: np.random.Generator) -> np.ndarray:
    """Return factors that make a query new, else it is known: a few cells left out, or all weighted less."""
    if cells > SMALL:
        return (generator.random(cells) >= 0.02).astype(float)
    return 1.0 - 0.02 * generator.random(cells)


def insider(
    rule, data: ic.PrivateData, truth: np.ndarray, config: Config, seed: int, **told: Any
) -> list[float]:
    """Return a session against one who asks the subset with the largest gap of those he looks at."""
    session = ic.OnlineIC(
        data,
        ic.Budget(config.epsilon, config.delta),
        update=rule,
        max_queries=config.queries,
        noise=SimulatedNoise(seed),
        **told,
    )
    generator, errors = np.random.default_rng(seed), []
    while len(errors) < config.queries:
        rows = np.round(generator.random((config.tries, truth.size)))
        shade = changed(truth.size, generator)
        held = cell_values(session.hypothesis, truth.size)
        if held is not None:
            rows = np.concatenate([rows, [held > truth, held < truth]])
            gaps = rows @ (truth - held)
        else:
            bound = [ic.dense(row).bind(data.domain) for row in rows]
            gaps = rows @ truth - session.hypothesis.evaluate_many(bound)
        row = rows[np.argmax(np.abs(gaps))] * shade
        errors.append(session.answer(row).value - float(row @ truth))
    statistics = session.statistics()
    return summary(np.array(errors), statistics.hard, statistics.untested)


def summary(errors: np.ndarray, hard: int, untested: int) -> list[float]:
    """Return (rms, largest, hard, untested), rounded for the file."""
    rms = float(np.sqrt(np.square(errors).mean()))
    return [float(f"{value:.4g}") for value in (rms, float(np.abs(errors).max()), hard, untested)]


def joined(rows: list[list[float]]) -> list[float]:
    """Return the same over seeds: root of the mean square, and means."""
    values = np.array(rows)
    return [float(f"{math.sqrt(np.square(values[:, 0]).mean()):.4g}"), *values[:, 1:].mean(axis=0).tolist()]


def by_label(traces: list[Trace]) -> dict[str, list[float]]:
    labels = dict.fromkeys(one.label for one in traces)
    return {
        label: joined([summary(one.errors, one.hard, one.untested) for one in traces if one.label == label])
        for label in labels
    }


def random_cell(tables: list, stream: list, config: Config, drawn: list[int], rules: dict) -> dict:
    """Return all engines on one random stream; each seed has its own table."""
    budget, size = ic.Budget(config.epsilon, config.delta), len(stream)

    def run_all(rules: dict, baselines: bool, times: int | None) -> dict[str, list[float]]:
        traces = []
        for data, seed in zip(tables, drawn, strict=True):
            told = {"max_queries": size} | ({} if times is None else options(data, size, times, config))
            traces += compare(data, budget, stream, rules, [seed], baselines=baselines, **told)
        return by_label(traces)

    tries = [run_all(rules, False, times) for times in config.more]
    return {name: min(one[name] for one in tries) for name in rules} | run_all({DEFAULT: None}, True, None)


def insider_cell(tables: list, config: Config, drawn: list[int], rules: dict) -> dict:
    """Return all engines against an insider."""

    def run_all(rule, times: int | None) -> list[float]:
        rows = []
        for data, seed in zip(tables, drawn, strict=True):
            truth = data.exact_counts(whole(data.domain)) / data.n
            told = {} if times is None else options(data, config.queries, times, config)
            rows.append(insider(rule, data, truth, config, seed, **told))
        return joined(rows)

    found = {name: min(run_all(rule, times) for times in config.more) for name, rule in rules.items()}
    return found | {DEFAULT: run_all(None, None)}


def measured(config: Config, drawn: list[int]) -> list[dict]:
    rows = []
    for cells in config.cells:
        rules = rules_for(cells, config)
        stream = random_queries(cells, config.queries, config.seed)
        for n in config.sizes:
            began = time.perf_counter()
            for shape in SESSIONS:
                tables = [table_of(shape, cells, n, seed) for seed in drawn]
                about = {"cells": cells, "n": n, "shape": shape}
                known = random_cell(tables, stream, config, drawn, rules)
                rows.append(about | {"stream": "random", "engines": known})
                known = insider_cell(tables, config, drawn, rules)
                rows.append(about | {"stream": "insider", "engines": known})
            print(f"{cells} cells, n = {n}: {time.perf_counter() - began:.1f} s", flush=True)
    return rows


def adult(config: Config, seed: int) -> list[dict]:
    """Return all engines on Adult and on a sample of it."""
    full, rows = adult5_data(), []
    counts = full.exact_counts(whole(full.domain))
    expressions = random_stream(full.domain, config.adult_queries, config.seed)
    for n in config.adult_sizes:
        began = time.perf_counter()
        kept = subsample(counts, n, config.seed).reshape(full.domain.shape) if n < full.n else None
        data = full if kept is None else ic.PrivateData(kept, full.domain)
        stream = list(stream_of("Adult", data, expressions).queries)
        engines = random_cell([data], stream, config, [seed], NUMBERS)
        rows.append(
            {"cells": full.domain.size, "n": n, "shape": "Adult", "stream": "random", "engines": engines}
        )
        print(f"Adult, n = {n}: {time.perf_counter() - began:.1f} s", flush=True)
    return rows


def proven(
    name: str, cells: int, n: int, queries: int, promise: float | None = None
) -> Callable[[float], float]:
    """Return alpha -> T(alpha), with the public promise that no cell holds more than k/|X|.

    Then p2 = k/|X|, and the divergence from uniform is at most ln k.
    """
    p2 = 1.0 if promise is None else min(1.0, promise / cells)
    divergence = None if promise is None else min(math.log(cells), math.log(promise))
    return {
        "MW tight": lambda alpha: mw_tight_bound(cells, alpha, divergence),
        "MW book": lambda alpha: mw_book_bound(cells, alpha),
        "perceptron centred": lambda alpha: perceptron_centred_bound(cells, alpha, p2),
        "perceptron book": lambda alpha: perceptron_book_bound(cells, alpha, p2),
        "median": lambda alpha: min(
            median_dimension_bound(cells, alpha), median_sampling_bound(cells, alpha, queries, n)
        ),
    }[name]


def least_on_grid(update_bound: UpdateBound, margins: Margins, cutoffs: int) -> Certificate | None:
    """Return the best certificate over a geometric grid of c; `least_error` would search on, for 0.1 %."""
    best = None
    for cutoff in np.unique(np.geomspace(1, 10**6, cutoffs).astype(int)).tolist():
        with contextlib.suppress(InfeasibleAccuracyError):
            one = certificate(update_bound, margins, cutoff)
            best = one if best is None or one.error_bound < best.error_bound else best
    return best


def certificates(config: Config) -> list[dict]:
    """Return the least certified error of every rule, with alpha and c."""
    cases = [(n, cells, None) for n in config.certified_sizes for cells in config.certified_cells]
    cases += [(config.promised[1], config.promised[0], promise) for promise in config.promises]
    queries, rows = config.certified_queries, []

    in_counts = functools.cache(gumbel_margins(queries, config.epsilon, config.delta))

    def margins(n: int) -> Margins:
        return lambda cutoff: tuple(margin / n for margin in in_counts(cutoff))

    for n, cells, promise in cases:
        found = {}
        for name in PROVEN if promise is None else PROVEN[:-1]:
            bound_of = proven(name, cells, n, queries, promise)
            if name == "median":  # its T jumps: a grid would miss the best c
                one = least_error(bound_of, margins(n), 10**6)
            else:
                one = least_on_grid(bound_of, margins(n), config.cutoffs)
            if one is not None:
                found[name] = [float(f"{one.error_bound:.4g}"), float(f"{one.alpha:.4g}"), one.cutoff]
        rows.append({"cells": cells, "n": n, "promise": promise, "rules": found})
    return rows


def needed(config: Config, seed: int) -> list[dict]:
    """Return the hard answers that each rule needs without noise, and what its potential starts from."""
    rows = []
    for cells in config.cells:
        for shape in SHAPES:
            data = table_of(shape, cells, 10**6, seed)
            stream = stream_of(shape, data, random_queries(cells, config.free_queries, config.seed))
            truth = data.exact_counts(whole(data.domain)) / data.n
            held = truth[truth > 0]
            found = {}
            for name in RULES:
                with contextlib.suppress(TooLargeError):
                    if name != "median" or cells <= SMALL:
                        one = counted(name, stream, config.alpha, config.most, config.most)
                        found[name] = [one["all"], one["complete"]]
            rows.append(
                {"cells": cells, "shape": shape, "rules": found}
                | {"p2": float(truth @ truth) * cells, "divergence": float(held @ np.log(held * cells))}
            )
    return rows


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = quick_config() if quick else Config()
    drawn = seeds(config.seed, config.runs)
    proofs = certificates(config)
    print(f"certificates: {time.perf_counter() - start:.1f} s", flush=True)
    free = needed(config, drawn[0])
    print(f"without noise: {time.perf_counter() - start:.1f} s", flush=True)
    rows = measured(config, drawn) + adult(config, drawn[0])
    return stamped(config, start, noise_seeds=drawn, rows=rows, needed=free, certificates=proofs)


def ranked(engines: dict, rules: tuple[str, ...] = RULES, place: int = 0) -> list[tuple[float, str]]:
    """Return (rms, rule) of the rules that were run, best first; place 1: by the largest error."""
    return sorted((engines[name][place], name) for name in rules if name in engines)


def runnable(rules: dict) -> tuple[str, ...]:
    """Return the certified rules that can be run: the median's net has at most 2^24 databases, 2^T."""
    return tuple(name for name in rules if name != "median" or rules[name][2] <= 24)


def winner(order: list[tuple[float, str]]) -> str:
    """Return the best rule, or "tie" where the second is within 2 %."""
    return "tie" if len(order) > 1 and order[1][0] <= 1.02 * order[0][0] else order[0][1]


def baseline(engines: dict) -> float:
    return min(value[0] for name, value in engines.items() if name not in RULES)


SHORT = {
    "MW tight": "MW",
    "MW book": "MW book",
    "perceptron centred": "perceptron",
    "perceptron book": "perc. book",
    "median": "median",
    "max. entropy, numbers": "ME numbers",
    "max. entropy, partitions": "ME tables",
    "tie": "tie",
}


def shown(value: float) -> str:
    return f"{value:.2g}" if value < 0.0095 else f"{value:.3f}"


def least_certified(proofs: list[dict], config: dict) -> list[str]:
    """Return the best rule that can be run, and its certified error, by cells and n."""
    sizes = config["certified_sizes"]
    head = " | ".join(f"n = {n:.0e}" for n in sizes)
    lines = [
        f"| least certified error, {config['certified_queries']:,} queries, ε = {config['epsilon']:g}: cells "
        f"| {head} |",
        "|---" * (1 + len(sizes)) + "|",
    ]
    for cells in config["certified_cells"]:
        found = []
        for rules in (row["rules"] for row in proofs if row["cells"] == cells):
            error, name = ranked(rules, runnable(rules))[0]
            less = "median" in rules and rules["median"][0] < error
            found.append(f"{SHORT[name]}, {shown(error)}{' †' if less else ''}")
        lines.append(f"| {cells:,} | {' | '.join(found)} |")
    return lines


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    few = attrs.evolve(config, cells=config.cells[:1], sizes=config.sizes[:1])
    rows = measured(few, seeds(config.seed, config.runs))
    return {f"rows/{place}": row for place, row in enumerate(rows)}


def table(result: dict) -> str:
    config = result["config"]
    proofs = [row for row in result["certificates"] if row["promise"] is None]
    lines = [*least_certified(proofs, config), ""]
    lines += [
        "| least certified error, 10,000 queries: cells | n | "
        + " | ".join(PROVEN)
        + " | least that can be run |",
        "|" + "---|" * (3 + len(PROVEN)),
    ]
    for row in proofs:
        can = runnable(row["rules"])
        values = [shown(row["rules"][name][0]) + "†" * (name not in can) for name in PROVEN]
        order = ranked(row["rules"], can)
        lines.append(f"| {row['cells']:,} | {row['n']:.0e} | {' | '.join(values)} | {order[0][1]} |")
    lines += ["", "†: the net of the median has more than 2^24 databases, which nobody enumerates."]
    cells, n = config["promised"]
    lines += [
        "",
        f"| promise: no cell above k/|X|; {cells:,} cells, n = {n:.0e}: k | MW tight | perceptron centred "
        "| perceptron book |",
        "|---|---|---|---|",
    ]
    for row in result["certificates"]:
        if row["promise"] is not None:
            values = [f"{row['rules'][name][0]:.4f}" for name in (PROVEN[0], *PROVEN[2:4])]
            lines.append(f"| {row['promise']:g} | {' | '.join(values)} |")
    lines += [
        "",
        f"| hard answers without noise, α = {config['alpha']:g}: cells | table | cells x p2 | divergence | "
        + " | ".join(RULES)
        + " |",
        "|" + "---|" * (4 + len(RULES)),
    ]
    for row in result["needed"]:
        values = [
            ("" if row["rules"][name][1] else "> ") + f"{row['rules'][name][0]:,}"
            if name in row["rules"]
            else "-"
            for name in RULES
        ]
        lines.append(
            f"| {row['cells']:,} | {row['shape']} | {row['p2']:.2f} | {row['divergence']:.3f} "
            f"| {' | '.join(values)} |"
        )
    lines += [
        "",
        "| sessions, least rms among all rules: cells | n | stream | " + " | ".join(SESSIONS) + " |",
        "|" + "---|" * (3 + len(SESSIONS)),
    ]
    for stream in STREAMS:
        for cells in config["cells"]:
            for n in config["sizes"]:
                texts = []
                for shape in SESSIONS:
                    engines = find(result, cells, n, shape, stream)
                    order = ranked(engines)
                    star = "*" if stream == "random" and baseline(engines) < order[0][0] else ""
                    numbers = ranked(engines, RULES[:-1])
                    second = f"; {SHORT[winner(numbers)]} {shown(numbers[0][0])}"
                    first = f"{SHORT[winner(order)]} {shown(order[0][0])}{star}"
                    texts.append(first + second * (order[0][1] == DEFAULT))
                lines.append(f"| {cells:,} | {n:.0e} | {stream} | {' | '.join(texts)} |")
    lines += [
        "",
        "After the semicolon: the best rule that learns from numbers. Star: a trivial baseline has less.",
        "",
        f"| Adult, 23,680 cells, {config['adult_queries']:,} queries: n | engine | rms | largest | hard "
        "| untested |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        if row["shape"] == "Adult":
            for name, (rms, largest, hard, untested) in row["engines"].items():
                lines.append(
                    f"| {row['n']:,} | {name} | {rms:.5f} | {largest:.4f} | {hard:.0f} | {untested:.0f} |"
                )
    return "\n".join(lines)


def find(result: dict, cells: int, n: int, shape: str, stream: str) -> dict:
    wanted = {"cells": cells, "n": n, "shape": shape, "stream": stream}
    return next(row["engines"] for row in result["rows"] if all(row[key] == wanted[key] for key in wanted))


COLOURS = {
    "MW tight": "#56B4E9",
    "MW book": "#0072B2",
    "perceptron centred": "#E69F00",
    "perceptron book": "#D55E00",
    "median": "#66C2A5",
    "max. entropy, numbers": "#CC79A7",
    "max. entropy, partitions": "#BBBBBB",
    "tie": "#FFFFFF",
}


def squares(axes, rows: list, columns: list, cell: Callable) -> None:
    """Fill a grid: `cell(i, j)` returns (winner, text)."""
    from matplotlib.patches import Rectangle

    for i in range(len(rows)):
        for j in range(len(columns)):
            name, text = cell(i, j)
            axes.add_patch(Rectangle((j, i), 1, 1, facecolor=COLOURS[name], edgecolor="black", linewidth=0.6))
            axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=7)
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, fontsize=7)
    axes.set_yticks(np.arange(len(rows)) + 0.5, [f"{row:,}" for row in rows], fontsize=8)
    axes.tick_params(length=0)
    axes.set_ylabel("cells", fontsize=8)


def figure(result: dict, path: Path) -> None:
    """Draw the winners: by certificate, by hard answers without noise, and in sessions."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    config = result["config"]
    canvas = Figure(figsize=(11.0, 8.0), layout="constrained")
    panels = canvas.subplots(2, 2, height_ratios=[1.0, 1.0])
    cells, sizes = config["certified_cells"], config["certified_sizes"]

    def certified(i: int, j: int) -> tuple[str, str]:
        rules = next(
            row["rules"]
            for row in result["certificates"]
            if row["promise"] is None and row["cells"] == cells[i] and row["n"] == sizes[j]
        )
        order, ideal = ranked(rules, runnable(rules)), rules["median"][0]
        second = f"{SHORT[order[1][1]]} {shown(order[1][0])}"
        second = f"median† {shown(ideal)}" if ideal < order[0][0] else second
        return order[0][1], f"{shown(order[0][0])}\n({second})"

    squares(panels[0][0], cells, [f"n = {n:.0e}" for n in sizes], certified)
    panels[0][0].set_title("least certified error (second; †: cannot be enumerated)", fontsize=9)

    def free(i: int, j: int) -> tuple[str, str]:
        rules = next(
            row["rules"]
            for row in result["needed"]
            if row["cells"] == config["cells"][i] and row["shape"] == SHAPES[j]
        )
        order = ranked(rules, PROVEN)
        more = "" if rules[order[1][1]][1] else "> "
        return winner(order), f"{order[0][0]:.0f}\n({SHORT[order[1][1]]} {more}{order[1][0]:.0f})"

    squares(panels[0][1], config["cells"], list(SHAPES), free)
    panels[0][1].set_title(
        f"fewest hard answers without noise, rules with a proven T, α = {config['alpha']:g} (second)",
        fontsize=9,
    )
    columns = [(n, shape) for n in config["sizes"] for shape in SESSIONS]
    for axes, stream in zip(panels[1], STREAMS, strict=True):

        def session(i: int, j: int, stream: str = stream) -> tuple[str, str]:
            engines = find(result, config["cells"][i], *columns[j], stream)
            order = ranked(engines)
            star = "*" if stream == "random" and baseline(engines) < order[0][0] else ""
            return winner(order), shown(order[0][0]) + star

        labels = [f"{shape.replace(' ', chr(10), 1)}\nn = {n:.0e}" for n, shape in columns]
        squares(axes, config["cells"], labels, session)
        title = (
            "random queries (*: a trivial baseline has less)"
            if stream == "random"
            else "an insider's queries"
        )
        axes.set_title(f"least rms of a session, {title}", fontsize=9)
        axes.tick_params(axis="x", labelsize=6)
    handles = [Patch(facecolor=colour, edgecolor="black", label=name) for name, colour in COLOURS.items()]
    canvas.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
