"""How many updates an adversary can force, against the proven T(alpha): rules, variants, truths.

    python experiments/updates_against_bound.py [--quick] [--from-json]

No noise and no session: the definition of an update rule alone. In every step the adversary looks at many
queries whose gap exceeds alpha by a hair and asks the one that costs the rule's potential least, so that the
numbers are lower bounds on the worst case. Writes results/updates_against_bound.json (with --quick a small
one in a temporary folder); the markdown table and the figure are made from that file alone.
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

NAME = "updates_against_bound"
JUST = 2.0**-18  # gap above alpha: a few steps of the grid of weights, 2^-20


@attrs.frozen
class Setting:
    """One cell of the table: a rule by label, over how many cells, at which alpha, for which truth."""

    rule: str
    size: int
    alpha: float
    truth: str
    noisy: bool = False  # answers off by just under alpha, towards the guess


@attrs.frozen
class Config:
    """What is run; the seeds of all settings come from one SeedSequence."""

    settings: tuple[Setting, ...]
    seed: int = 20261121
    weights_tries: int = 32
    perceptron_tries: int = 8
    median_tries: int = 60


RULES = {
    "MW book": ic.MultiplicativeWeights(variant="book"),
    "MW tight": ic.MultiplicativeWeights(variant="tight"),
    "perceptron book": ic.Perceptron(variant="book"),
    "perceptron centred": ic.Perceptron(variant="centred"),
    "median": ic.Median(variant="smaller"),
    "median, truth in net": ic.Median(size=10, n=10),
}


def full_config() -> Config:
    settings = [
        Setting(rule, size, alpha, truth)
        for rule in ("MW book", "MW tight")
        for size, alpha, truth in ((64, 0.1, "point"), (64, 0.1, "Dirichlet(.5)"), (256, 0.05, "point"))
    ]
    settings += [
        Setting(rule, size, 0.05, truth)
        for rule in ("perceptron book", "perceptron centred")
        for size, truth in ((8, "point"), (8, "Dirichlet(.5)"), (128, "point"))
    ]
    settings += [Setting("median", 4, alpha, "Dirichlet(.5)") for alpha in (0.05, 0.1)]
    settings += [Setting("median", 8, 0.1, "point"), Setting("median, truth in net", 4, 0.05, "net")]
    settings += [Setting("MW book", 64, 0.1, "point", True), Setting("MW tight", 64, 0.1, "point", True)]
    settings += [Setting("perceptron book", 8, 0.05, "point", True)]
    return Config(tuple(settings))


def quick_config() -> Config:
    rules = ("MW book", "MW tight", "perceptron book", "perceptron centred")
    settings = [Setting(rule, 16, 0.1, "point") for rule in rules] + [Setting("median", 4, 0.1, "point")]
    return Config(tuple(settings), weights_tries=8, median_tries=20)


def truth_of(setting: Setting, generator: np.random.Generator) -> np.ndarray:
    if setting.truth == "point":
        return np.eye(setting.size)[0]
    if setting.truth == "net":  # one of the databases of 10 records that the rule starts from
        return generator.multinomial(10, np.ones(setting.size) / setting.size) / 10
    return generator.dirichlet(np.full(setting.size, 0.5))


def cells_of(hypothesis: ic.UpdateRule) -> np.ndarray | None:
    if isinstance(hypothesis, Histogram):
        return hypothesis.probabilities().ravel()
    return hypothesis.cells().ravel() if isinstance(hypothesis, SignedHistogram) else None


def candidates(truth, cells, alpha, rows):
    """Weights, one row a query, whose gap exceeds alpha by a hair: the weight of one cell is solved for."""
    lever = truth - cells
    place = int(np.argmax(np.abs(lever)))
    rows = rows.copy()
    rows[:, place] = 0.0
    rest = rows @ lever
    made = []
    for sign in (1.0, -1.0):
        weight = (sign * (alpha + JUST) - rest) / (lever[place] or math.inf)
        legal = (weight >= 0.0) & (weight <= 1.0)
        tuned = rows[legal]
        tuned[:, place] = weight[legal]
        made.append(tuned)
    made = np.concatenate(made)
    gaps = made @ truth - np.clip(made @ cells, 0.0, 1.0)
    return made[np.abs(gaps) > alpha + JUST / 2]


def loss_of_potential(setting, truth, cells, rows):
    """By how much each query would lower the potential; exact for these rules."""
    sign = np.sign(rows @ truth - np.clip(rows @ cells, 0.0, 1.0))
    if setting.rule.startswith("MW"):
        rate = 4 * setting.alpha if setting.rule == "MW tight" else setting.alpha / 2
        return sign * rate * (rows @ truth) - np.log(np.exp(sign[:, None] * rate * rows) @ cells)
    centred = setting.rule == "perceptron centred"
    step = (4.0 if centred else 1.0) * setting.alpha / setting.size
    moves = rows - centred * rows.mean(axis=1, keepdims=True)
    return 2 * step * sign * (moves @ (truth - cells)) - step**2 * (moves**2).sum(axis=1)


def least_costly(setting, config, truth, hypothesis, generator):
    """Return the weights that the adversary asks next, or None if it finds no legal query."""
    cells = cells_of(hypothesis)
    tries = config.weights_tries if setting.rule.startswith("MW") else config.perceptron_tries
    for _ in range(4):
        shares = generator.random((tries, 1))
        rows = (generator.random((tries, setting.size)) < shares).astype(float)
        rows[0] = 1.0 - 2.0**-20  # all cells, and yet no constant query
        rows[1] = np.clip(np.sign(truth - cells), 0.0, 1.0)  # the largest gap there is
        rows = candidates(truth, cells, setting.alpha, rows)
        if len(rows):
            return rows[np.argmin(loss_of_potential(setting, truth, cells, rows))]
    return None


def forced(setting: Setting, config: Config, generator: np.random.Generator) -> tuple[int, float]:
    """Return (updates forced, T(alpha)); stops at twice the bound, which would refute it."""
    domain, rule = ic.Domain.of(x=setting.size), RULES[setting.rule]
    rule = rule.at(domain, setting.alpha) if isinstance(rule, ic.Median) else rule
    truth, hypothesis = truth_of(setting, generator), rule.init(domain)
    bound, updates = rule.exact_update_bound(domain, setting.alpha), 0
    while updates <= 2 * bound:
        if isinstance(rule, ic.Median):
            step = most_survivors(setting, config, rule, truth, hypothesis, generator)
        else:
            weights = least_costly(setting, config, truth, hypothesis, generator)
            step = None if weights is None else asked(setting, rule, truth, hypothesis, weights)
        if step is None:
            return updates, bound
        hypothesis, updates = step, updates + 1
    return updates, bound


def asked(setting, rule, truth, hypothesis, weights):
    """Return the hypothesis after this query, or None if its gap is not strictly above alpha."""
    query = ic.dense(np.clip(weights, 0.0, 1.0)).bind(hypothesis.domain)
    value = float(query.weights().ravel() @ truth) / (1 << query.grid_bits)
    gap = value - hypothesis.evaluate(query)
    if query.constant is not None or abs(gap) <= setting.alpha:
        return None
    noisy = value - math.copysign(setting.alpha * (1 - 1e-9), gap) * setting.noisy
    return rule.update(hypothesis, (ic.Measurement(query, np.array([noisy]), 0.0),), setting.alpha)


def most_survivors(setting, config, rule, truth, hypothesis, generator):
    """Return the version space after the legal query that leaves the most databases."""
    rows = generator.random((config.median_tries, setting.size))
    rows[: config.median_tries // 4] = np.round(rows[: config.median_tries // 4])
    steps = [asked(setting, rule, truth, hypothesis, row) for row in rows]
    return max((step for step in steps if step is not None), key=lambda step: step.candidates, default=None)


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = quick_config() if quick else full_config()
    rows = []
    for setting, seed in zip(
        config.settings, np.random.SeedSequence(config.seed).spawn(len(config.settings)), strict=True
    ):
        began = time.perf_counter()
        updates, bound = forced(setting, config, np.random.default_rng(seed))
        rows.append(
            {
                **attrs.asdict(setting),
                "updates": updates,
                "bound": bound,
                "seed": {"entropy": config.seed, "spawn_key": list(seed.spawn_key)},
                "seconds": round(time.perf_counter() - began, 3),
            }
        )
        print(f"{setting}: {updates} of {bound:.1f}", flush=True)
    return stamped(config, start, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = full_config()
    place = next(place for place, one in enumerate(config.settings) if one.rule == "MW tight")
    spawned = np.random.SeedSequence(config.seed).spawn(len(config.settings))[place]
    updates, bound = forced(config.settings[place], config, np.random.default_rng(spawned))
    return {f"rows/{place}/updates": updates, f"rows/{place}/bound": bound}


def table(result: dict) -> str:
    lines = ["| rule | cells | alpha | truth | updates | T(alpha) | share |", "|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        truth = row["truth"] + ", answers off by alpha" * row["noisy"]
        lines.append(
            f"| {row['rule']} | {row['size']} | {row['alpha']:g} | {truth} | {row['updates']:,} "
            f"| {row['bound']:,.1f} | {row['updates'] / row['bound']:.3f} |"
        )
    return "\n".join(lines)


def figure(result: dict, path: Path) -> None:
    """Draw the share of T(alpha) that was forced, one bar a setting; needs matplotlib."""
    from matplotlib.figure import Figure

    rows = result["rows"][::-1]
    canvas = Figure(figsize=(8.0, 0.9 + 0.27 * len(rows)), layout="constrained")
    axes = canvas.add_subplot()
    labels = [
        f"{row['rule']}, |X| = {row['size']}, α = {row['alpha']:g}, {row['truth']}"
        + " (noisy)" * row["noisy"]
        for row in rows
    ]
    shares = [row["updates"] / row["bound"] for row in rows]
    families = {"M": "tab:blue", "p": "tab:orange", "m": "tab:green"}
    axes.barh(labels, shares, color=[families[row["rule"][0]] for row in rows])
    for place, row in enumerate(rows):
        axes.text(1.02, place, f"{row['updates']:,} of {row['bound']:,.1f}", va="center", fontsize=8)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.axvline(8 / 15, color="tab:blue", linewidth=0.8, linestyle=":")
    axes.set_xlim(0.0, 1.3)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel("updates forced / T(α) (dotted: 8/15, MW book)")
    axes.tick_params(axis="y", labelsize=8)
    canvas.savefig(path, dpi=120)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
