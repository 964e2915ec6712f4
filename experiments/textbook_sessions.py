"""Full textbook sessions against an analyst who knows the truth: is 3 alpha kept, and how loose is it?

    python experiments/textbook_sessions.py [--quick] [--from-json]

Every session is `OnlineIC.textbook` at the least alpha of its theorem, on a skewed table of its own, with
simulated noise: NOT PRIVATE. The analyst sees table and hypothesis and mixes three kinds of queries: the
largest gap there is (to be hard), gaps about the threshold 2 alpha (to be answered wrongly), random ones.
Writes results/textbook_sessions.json (with --quick a small one in a temporary folder); the markdown table
and the figure are made from that file alone.
"""

import math
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, stamped

import onlineic as ic
from onlineic.hypothesis import Histogram, SignedHistogram
from onlineic.noise import SimulatedNoise

NAME = "textbook_sessions"


@attrs.frozen
class Group:
    """Sessions of one rule, by label, over `size` cells and n records, with one budget."""

    rule: str
    size: int
    n: int
    delta: float


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence, one child a session."""

    groups: tuple[Group, ...]
    sessions: int = 50
    epsilon: float = 1.0
    beta: float = 0.05
    max_queries: int = 500
    seed: int = 20261121


RULES = {
    "MW book": ic.MultiplicativeWeights(variant="book"),
    "MW tight": ic.MultiplicativeWeights(variant="tight"),
    "perceptron book": ic.Perceptron(variant="book"),
    "perceptron centred": ic.Perceptron(variant="centred"),
    "median": ic.Median(variant="dimension"),
}


def full_config() -> Config:
    linear = ("MW book", "MW tight", "perceptron book", "perceptron centred")
    groups = [Group(rule, 64, 1_000_000, delta) for rule in linear for delta in (0.0, 1e-6)]
    return Config((*groups, Group("median", 3, 200_000, 0.0), Group("median", 4, 200_000, 0.0)))


def quick_config() -> Config:
    return Config(full_config().groups, sessions=2, max_queries=100)


def skewed_counts(n: int, size: int, generator: np.random.Generator) -> np.ndarray:
    """Return a table of n records in which a few cells hold most."""
    return generator.multinomial(n, generator.dirichlet(np.full(size, 0.05)))


def next_weights(session, truth, alpha, turn, generator):
    """Return weights of the analyst's next query: largest gap, gap about 2 alpha, or random, in turn."""
    hypothesis, size = session.hypothesis, len(truth)
    if turn % 3 == 2:
        return generator.random(size) if turn % 2 else np.round(generator.random(size))
    if isinstance(hypothesis, Histogram):
        cells = hypothesis.probabilities().ravel()
    elif isinstance(hypothesis, SignedHistogram):
        cells = hypothesis.cells().ravel()
    else:
        return nearest_of_many(hypothesis, truth, alpha, turn, generator)
    lever = truth - cells
    if turn % 3 == 0:
        side = lever > 0.0 if turn % 2 else lever < 0.0
        return side.astype(float)
    return with_gap(lever, generator.uniform(1.8, 2.3) * alpha, generator)


def with_gap(lever, gap, generator):
    """Return weights, half of them 1, whose gap is about the one wanted: one weight is solved for."""
    place = int(np.argmax(np.abs(lever)))
    for _ in range(20):
        weights = np.round(generator.random(len(lever)))
        weights[place] = 0.0
        for sign in generator.permutation([1.0, -1.0]):
            weight = (sign * gap - weights @ lever) / (lever[place] or math.inf)
            if 0.0 <= weight <= 1.0:
                weights[place] = weight
                return weights
    return generator.random(len(lever))


def nearest_of_many(hypothesis, truth, alpha, turn, generator):
    """The same two aims for a hypothesis that is not linear, by trying."""
    rows = generator.random((12, len(truth)))
    rows[:4] = np.round(rows[:4])
    guesses = hypothesis.evaluate_many([ic.dense(row).bind(hypothesis.domain) for row in rows])
    gaps = np.abs(rows @ truth - guesses)
    best = np.argmax(gaps) if turn % 3 == 0 else np.argmin(np.abs(gaps - 2.05 * alpha))
    return rows[best]


def run_session(group: Group, config: Config, seed: np.random.SeedSequence) -> dict:
    table_seed, stream_seed, noise_seed = seed.spawn(3)
    counts = skewed_counts(group.n, group.size, np.random.default_rng(table_seed))
    generator, domain = np.random.default_rng(stream_seed), ic.Domain.of(x=group.size)
    drawn = int(noise_seed.generate_state(1, np.uint64)[0])
    session = ic.OnlineIC.textbook(
        ic.PrivateData(counts, domain),
        epsilon=config.epsilon,
        delta=group.delta,
        beta=config.beta,
        max_queries=config.max_queries,
        update=RULES[group.rule],
        noise=SimulatedNoise(drawn),
    )
    truth, alpha = counts / group.n, session.plan.alpha
    worst = {"easy": 0.0, "hard": 0.0, "repeat": 0.0, "untested": 0.0}
    for turn in range(config.max_queries):
        weights = np.clip(next_weights(session, truth, alpha, turn, generator), 0.0, 1.0)
        answer = session.answer(weights)
        worst[answer.status] = max(worst[answer.status], abs(answer.value - float(weights @ truth)) / alpha)
    statistics = session.statistics()
    return {
        **attrs.asdict(group),
        "branch": session.plan.sparse.branch,
        "alpha": alpha,
        "cutoff": session.plan.hard_answers,
        "hard": statistics.hard,
        "untested": statistics.untested,
        "worst_error_in_alpha": round(max(worst.values()), 6),
        "worst_easy_in_alpha": round(worst["easy"], 6),
        "worst_hard_in_alpha": round(worst["hard"], 6),
        "kept": max(worst.values()) <= 3.0,
        "spawn_key": list(seed.spawn_key),
        "noise_seed": drawn,
    }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = quick_config() if quick else full_config()
    seeds = np.random.SeedSequence(config.seed).spawn(config.sessions)  # paired: the same for every group
    rows = []
    for group in config.groups:
        began = time.perf_counter()
        rows += [
            run_session(group, config, np.random.SeedSequence(config.seed, spawn_key=seed.spawn_key))
            for seed in seeds
        ]
        print(f"{group}: {time.perf_counter() - began:.1f} s", flush=True)
    return stamped(config, start, sessions=rows)


def grouped(result: dict) -> list[tuple[dict, list[dict]]]:
    """Return (group, its sessions) in the order of the configuration."""
    return [
        (group, [row for row in result["sessions"] if all(row[key] == group[key] for key in group)])
        for group in result["config"]["groups"]
    ]


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = full_config()
    seed = np.random.SeedSequence(config.seed).spawn(config.sessions)[0]
    return {"sessions/0": run_session(config.groups[0], config, seed)}


def table(result: dict) -> str:
    lines = [
        "| rule | cells | n | delta | branch | alpha | c | hard, mean | hard, most | share of c, most "
        "| worst error / alpha | beyond 3 alpha |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for group, rows in grouped(result):
        hard, first = [row["hard"] for row in rows], rows[0]
        lines.append(
            f"| {group['rule']} | {group['size']} | {group['n']:.0e} | {group['delta']:g} "
            f"| {first['branch']} | {first['alpha']:.4f} | {first['cutoff']:,} "
            f"| {sum(hard) / len(hard):.1f} | {max(hard)} "
            f"| {max(row['hard'] / row['cutoff'] for row in rows):.3f} "
            f"| {max(row['worst_error_in_alpha'] for row in rows):.2f} "
            f"| {sum(not row['kept'] for row in rows)} of {len(rows)} |"
        )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw every session's worst error, easy and hard, in units of alpha; needs matplotlib."""
    from matplotlib.figure import Figure

    groups = grouped(result)[::-1]
    canvas = Figure(figsize=(9.0, 0.9 + 0.42 * len(groups)), layout="constrained")
    errors, shares = canvas.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    for place, (_, rows) in enumerate(groups):
        spread = [place + 0.5 * (index / len(rows) - 0.5) for index in range(len(rows))]
        for kind, colour in (("easy", "tab:blue"), ("hard", "tab:orange")):
            values = [row[f"worst_{kind}_in_alpha"] for row in rows]
            errors.plot(values, spread, ".", color=colour, markersize=3, label=kind * (place == 0) or None)
        used = [row["hard"] / row["cutoff"] for row in rows]
        shares.plot(used, spread, ".", color="tab:green", markersize=3)
    errors.axvline(2.0, color="grey", linewidth=0.8, linestyle=":")
    errors.axvline(3.0, color="black", linewidth=0.8)
    errors.set_xlim(0.0, 3.2)
    errors.set_xlabel("worst error of a session / α (dotted: threshold, line: bound)")
    errors.set_yticks(
        range(len(groups)),
        [f"{group['rule']}, |X| = {group['size']}, δ = {group['delta']:g}" for group, _ in groups],
        fontsize=8,
    )
    errors.legend(loc="center", bbox_to_anchor=(0.32, 0.5), fontsize=8, markerscale=2.5)
    shares.axvline(1.0, color="black", linewidth=0.8)
    shares.set_xscale("log")
    shares.set_xlabel("hard answers / c")
    canvas.savefig(path, dpi=120)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
