"""Three of 10,000 columns whose mean reaches .6: Sparse done right, and what the text's variant really costs.

    python experiments/column_means.py [--quick] [--from-json]

A table of 0/1 with n rows; replacing one row moves every column sum by at most 1. Column j holds ones with
probability p_j: ten columns, at random places, have p in [.65, .9], the others in [.05, .4]. At n = 100 the
table itself is drawn, above only its column sums, which are binomial. The text releases the noisy value that
was compared (fault A) and keeps one threshold with test noise of scale 2c/epsilon, half of what that needs
(fault B). Every rule is read off running code by the audit. Simulated noise and known truth: NOT PRIVATE.
Writes results/column_means.json; the markdown table and the figure are made from that file alone.
"""

import itertools
import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped

from onlineic.audit import Law, ThresholdRule, first_hit_delta, observe, worst_loss
from onlineic.bounds import sparse_alpha
from onlineic.errors import SessionExhaustedError
from onlineic.noise import SimulatedNoise, scale_at_least
from onlineic.sparse import Sparse, SparseState

NAME = "column_means"


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    rows: tuple[int, ...] = (100, 150, 200, 300, 500, 1000, 10_000, 100_000)
    rows_elsewhere: tuple[int, ...] = (100, 10_000)  # at all epsilons but the first
    columns: int = 10_000
    heavy: int = 10
    threshold: Fraction = Fraction(3, 5)
    cutoff: int = 3
    epsilons: tuple[float, ...] = (1.0, 10.0, 100.0)
    beta: float = 0.05
    repeats: int = 150
    delta_levels: tuple[float, ...] = (-2.0, -1.0, 0.0, 1.0)  # of easy tests, in scales of the test noise
    seed: int = 20261121


def column_sums(config: Config, seed: int) -> dict[int, np.ndarray]:
    """Return n -> (columns,) sums of one synthetic table each."""
    generator = np.random.default_rng(seed)
    shares = generator.uniform(0.05, 0.4, config.columns)
    places = generator.choice(config.columns, config.heavy, replace=False)
    shares[places] = generator.uniform(0.65, 0.9, config.heavy)
    sums = {}
    for n in config.rows:
        if n <= 100:
            sums[n] = (generator.random((n, config.columns)) < shares).sum(axis=0)
        else:
            sums[n] = generator.binomial(n, shares)
    return sums


# The text's variant and its parts


@attrs.frozen
class Kept:
    """One threshold Lap(b1) for all hits, tests Lap(b2); `select` shows the values that were compared."""

    threshold: int
    cutoff: int
    threshold_scale: Fraction
    query_scale: Fraction

    def step(self, state: SparseState, value: int, noise) -> tuple[SparseState, bool]:
        if state.hits >= self.cutoff:
            raise SessionExhaustedError("asked after the last hit")
        rho = state.threshold_noise
        if rho is None:
            rho = int(noise.discrete_laplace(self.threshold_scale, 1)[0])
        fired = value + int(noise.discrete_laplace(self.query_scale, 1)[0]) >= self.threshold + rho
        return SparseState(state.hits + fired, rho), fired

    def init(self) -> SparseState:
        return SparseState()

    def select(self, values: np.ndarray, noise) -> tuple[tuple[int, ...], tuple[int, ...]]:
        rho = int(noise.discrete_laplace(self.threshold_scale, 1)[0])
        compared = values + noise.discrete_laplace(self.query_scale, len(values))
        hits = np.flatnonzero(compared >= self.threshold + rho)[: self.cutoff]
        return tuple(hits.tolist()), tuple(compared[hits].tolist())


def half_and_half(threshold: int, cutoff: int, epsilon: float) -> Kept:
    """Return the right kept threshold, half of epsilon for it and half for the tests."""
    exact = Fraction(epsilon)
    return Kept(threshold, cutoff, scale_at_least(2 / exact), scale_at_least(4 * cutoff / exact))


def printed(threshold: int, cutoff: int, epsilon: float) -> Kept:
    """Return the text's: the same threshold noise, half of the test noise."""
    exact = Fraction(epsilon)
    return Kept(threshold, cutoff, scale_at_least(2 / exact), scale_at_least(2 * cutoff / exact))


def right(threshold: int, cutoff: int, epsilon: float, allocation: str) -> Sparse:
    return Sparse(epsilon, threshold, cutoff, allocation=allocation, allow_large_epsilon=True)


# What it costs


def largest_delta(rule: ThresholdRule, config: Config, released: str) -> float:
    """Return the largest exact delta at epsilon = 1 over some streams, each up to its first hit.

    m easy tests at one level, then one at another; the neighbour moves the levels against each other.
    """
    scale = float(rule.query_noise.scale)
    found = 0.0
    for m, level, last in itertools.product(
        (10, 100, config.columns - 1), config.delta_levels, (0.0, 2.0, 6.0)
    ):
        easy, hard = (rule.threshold + round(share * scale) for share in (level, last))
        pair = [easy] * m + [hard], [easy + 1] * m + [hard - 1]
        found = max(found, first_hit_delta(rule, *pair, 1.0, released=released))
    return found


def audited(config: Config) -> list[dict]:
    """Return what each variant costs at a claimed epsilon of 1."""
    cutoff, columns = config.cutoff, config.columns

    def makers(count: int) -> dict:
        return {
            "right: restarts (book)": (right(0, count, 1.0, "restarts"), "bit"),
            "right: kept, optimal allocation": (right(0, count, 1.0, "optimal"), "bit"),
            "right: kept, half and half": (half_and_half(0, count, 1.0), "bit"),
            "fault A: compared value released": (half_and_half(0, count, 1.0), "value"),
            "fault B: half the test noise": (printed(0, count, 1.0), "bit"),
            "the text: A and B": (printed(0, count, 1.0), "value"),
        }

    rows = []
    for (name, (mechanism, released)), (single, _) in zip(
        makers(cutoff).items(), makers(1).values(), strict=True
    ):
        rule = observe(mechanism.init(), mechanism.step)
        losses = [worst_loss(rule, released=released, copies=(m,)) for m in (0, 10, 50)]
        # with the value every test costs 1/b2, easy ones too (test_sparse_variants); else the loss is bounded
        whole = columns / float(rule.query_noise.scale) if released == "value" else max(losses)
        rows.append(
            {
                "variant": name,
                "threshold_noise": float(rule.threshold_noise.scale),
                "test_noise": float(rule.query_noise.scale),
                "released": "index, compared value" if released == "value" else "index",
                "losses": losses,
                "whole_stream": whole,
                "delta_one_answer": largest_delta(observe(single.init(), single.step), config, released),
            }
        )
        print(rows[-1], flush=True)
    naive = ThresholdRule(0, Law("none"), Law("discrete_laplace", Fraction(4 * cutoff)))
    rows.append(
        {
            "variant": "all 10,000 noisy sums, fault A's noise",
            "threshold_noise": None,
            "test_noise": 4.0 * cutoff,
            "released": "everything",
            "losses": [worst_loss(naive, copies=((m + 1) * cutoff - 1,)) for m in (0, 10, 50)],
            "whole_stream": columns / (4.0 * cutoff),
            "delta_one_answer": None,
        }
    )
    return rows


# What it finds


def found(name: str, level: int, sums: np.ndarray, epsilon: float, config: Config, seed: int) -> dict:
    """Return how many of the wanted were found, how many wrong ones, and the mean error of numbers."""
    noise, cutoff, true = SimulatedNoise(seed), config.cutoff, np.flatnonzero(sums >= level)
    good = wrong = 0
    errors = []
    for _ in range(config.repeats):
        if name == "text":
            hits, numbers = printed(level, cutoff, epsilon).select(sums, noise)
            errors += [number - int(sums[hit]) for hit, number in zip(hits, numbers, strict=True)]
        else:
            cost = 1.5 * epsilon if name == "same real epsilon" else epsilon
            allocation = "restarts" if name == "restarts" else "optimal"
            hits = right(level, cutoff, cost, allocation).select(sums, noise)
        kept = int(np.isin(hits, true).sum())
        good, wrong = good + kept, wrong + len(hits) - kept
    return {
        "found": good / config.repeats,
        "wrong": wrong / config.repeats,
        "number_error": float(np.mean(errors)) if errors else None,
    }


ENGINES = ("restarts", "optimal", "text", "same real epsilon")


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(rows=(100, 300), columns=1000, repeats=5, delta_levels=(0.0,)) if quick else Config()
    drawn = seeds(config.seed, 1 + len(ENGINES) * len(config.rows) * len(config.epsilons))
    tables, left = column_sums(config, drawn[0]), iter(drawn[1:])
    rows = []
    for epsilon, n in itertools.product(config.epsilons, config.rows):
        if epsilon != config.epsilons[0] and n not in config.rows_elsewhere:
            continue
        level = math.ceil(config.threshold * n)
        row = {
            "n": n,
            "epsilon": epsilon,
            "true": int((tables[n] >= level).sum()),
            "alpha_book": sparse_alpha(config.cutoff, config.columns, epsilon, 0.0, config.beta) / n,
        }
        for name in ("restarts", "optimal"):
            mechanism = right(0, config.cutoff, epsilon, name)
            row[f"radius_{name}"] = mechanism.radius(config.columns, config.beta) / n
        for name in ENGINES:
            row[name] = found(name, level, tables[n], epsilon, config, next(left))
        rows.append(row)
        print(row, flush=True)
    needed = {
        str(epsilon): {
            "book": math.ceil(10 * sparse_alpha(config.cutoff, config.columns, epsilon, 0.0, config.beta)),
            **{
                name: max(1, 10 * right(0, config.cutoff, epsilon, name).radius(config.columns, config.beta))
                for name in ("restarts", "optimal")
            },
        }
        for epsilon in config.epsilons
    }
    result = stamped(config, start, rows=rows, costs=audited(config), rows_for_a_tenth=needed)
    result["config"]["threshold"] = float(config.threshold)
    result["wall_seconds"] = round(time.perf_counter() - start, 2)
    return result


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    n, epsilon = config.rows[0], config.epsilons[0]
    drawn = seeds(config.seed, 1 + len(ENGINES) * len(config.rows) * len(config.epsilons))
    sums, level = column_sums(config, drawn[0])[n], math.ceil(config.threshold * n)
    return {f"rows/0/{ENGINES[0]}": found(ENGINES[0], level, sums, epsilon, config, drawn[1])}


def table(result: dict) -> str:
    config = result["config"]
    lines = [
        f"Claimed epsilon 1, {config['cutoff']} answers, {config['columns']:,} columns; loss in units of the "
        "claim, exact for so many easy tests before each hit; all columns: with the value, columns/noise.",
        "",
        "| variant | threshold noise | test noise | shown of a hit | loss: 0 | 10 | 50 | all columns "
        "| delta, one answer |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["costs"]:
        noise = "-" if row["threshold_noise"] is None else f"{row['threshold_noise']:.2f}"
        losses = " | ".join(f"{loss:.2f}" for loss in row["losses"])
        delta = row["delta_one_answer"]
        shown = "-" if delta is None else "0" if delta < 1e-15 else f"{delta:.4f}"
        lines.append(
            f"| {row['variant']} | {noise} | {row['test_noise']:.2f} | {row['released']} | {losses} "
            f"| {row['whole_stream']:,.1f} | {shown} |"
        )
    lines += [
        "",
        f"Mean over {config['repeats']} runs of the wanted {config['cutoff']} that were truly above "
        f"{config['threshold']:g} (and of wrong ones). The last column gives the right mechanism the epsilon "
        "that the text's bits alone really cost; numbers: mean error, counts.",
        "",
        "| n | epsilon | alpha of the book | radius, restarts | radius, optimal | restarts | optimal | text "
        "| optimal at 1.5 epsilon | the text's numbers err by |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        cells = [f"{row[name]['found']:.2f} ({row[name]['wrong']:.2f})" for name in ENGINES]
        cells.append(f"{round(row['text']['number_error'], 1) + 0.0:+.1f}")
        lines.append(
            f"| {row['n']:,} | {row['epsilon']:g} | {row['alpha_book']:.3g} | {row['radius_restarts']:.3g} "
            f"| {row['radius_optimal']:.3g} | {' | '.join(cells)} |"
        )
    lines += ["", "Rows needed for alpha (radius) <= .1:", ""]
    lines += ["| epsilon | alpha of the book | radius, restarts | radius, optimal |", "|---|---|---|---|"]
    for epsilon, needed in result["rows_for_a_tenth"].items():
        lines.append(
            f"| {float(epsilon):g} | {needed['book']:,} | {needed['restarts']:,} | {needed['optimal']:,} |"
        )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw the real cost of every variant, and what each finds at claimed epsilon 1; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(10.0, 4.0), layout="constrained")
    costs, finds = canvas.subplots(1, 2, width_ratios=(1.25, 1.0))
    rows = result["costs"][-2::-1]
    colours = {"right": "#009E73", "fault": "#E69F00", "the t": "#D55E00"}
    values = [row["whole_stream"] for row in rows]
    costs.barh([row["variant"] for row in rows], values, color=[colours[row["variant"][:5]] for row in rows])
    for place, value in enumerate(values):
        costs.text(value * 1.15, place, f"{value:,.1f}" if value < 100 else f"{value:,.0f}", va="center")
    costs.axvline(1.0, color="black", linewidth=0.8)
    costs.set(xscale="log", xlim=(0.5, 2e4), xlabel="real ε where 1 is claimed (worst case, all columns)")
    costs.tick_params(axis="y", labelsize=9)
    epsilon = result["config"]["epsilons"][0]
    chosen = [row for row in result["rows"] if row["epsilon"] == epsilon]
    styles = {
        "restarts": ("right: restarts", "#56B4E9", "s-"),
        "optimal": ("right: optimal allocation", "#009E73", "o-"),
        "text": ("the text, claims ε", "#D55E00", "^--"),
        "same real epsilon": ("right, at 1.5 ε", "#0072B2", "v:"),
    }
    for name, (label, colour, style) in styles.items():
        points = [row[name]["found"] for row in chosen]
        finds.plot([row["n"] for row in chosen], points, style, color=colour, label=label)
    finds.set(xscale="log", xlabel="rows n", ylabel=f"true columns found, of {result['config']['cutoff']}")
    finds.set_title(f"claimed ε = {epsilon:g}", fontsize=10, loc="left")
    finds.grid(True, color="#DDDDDD", linewidth=0.6)
    finds.legend(fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
