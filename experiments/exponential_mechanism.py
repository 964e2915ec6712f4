"""Choosing privately: the exponential mechanism and the noisy maximum on medians, films and quantiles.

    python experiments/exponential_mechanism.py [--quick] [--from-json]

Draws are checked against softmax and Gumbel-max. Two scores for a private median that texts use are set
beside the repaired one, on 40 records in cell 3 and 60 in cell 7 and on the ages of Adult. The loss of score
is held against Theorem 3.11 of Dwork & Roth and against the bound of the noisy maximum. The most popular film
is chosen from a SYNTHETIC matrix of users and films (no real film data ships here), in which a user votes for
many films: one vote a film keeps the sensitivity of every score at 1. Quantiles of continuous synthetic data
are chosen on the grid 0, 1/1000, ..., 1. Most panels are exact laws, not samples. NOT PRIVATE.
Writes results/exponential_mechanism.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped

import onlineic as ic
from onlineic.datasets import adult5
from onlineic.mechanisms import ExponentialMechanism, LaplaceMechanism, NoisyMax, exponential_bound
from onlineic.noise import SimulatedNoise
from onlineic.offline import quantile

NAME = "exponential_mechanism"
NODES, SHARES = np.polynomial.legendre.leggauss(260)  # exact for polynomials of degree 519
FINE = 16  # bits below one record for the noisy maximum
TOY = (0, 3, 9, 12, 4, 20, 17, 11)
SCORES = ("-|#{<= y} - n/2|", "-|A - B|", "repaired", "repaired, noisy max")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    draws: int = 100_000
    toy_epsilon: float = 0.5
    medians: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    ages: tuple[float, ...] = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
    candidates: int = 100
    tail_epsilon: float = 1.0
    users: int = 2000
    films: int = 500
    most_votes: int = 100
    film_epsilons: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    film_runs: int = 2000
    records: int = 5000
    grid: int = 1000
    shares: tuple[float, ...] = (0.05, 0.25, 0.5, 0.75, 0.95)
    quantile_epsilons: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    runs: int = 1000
    beta: float = 0.05
    seed: int = 20261121


def noisy_max_law(scores: np.ndarray, epsilon: float, sensitivity: int = 1) -> np.ndarray:
    """Return P(index) of the maximum of score + one-sided exponential noise of scale 2 sensitivity/epsilon.

    P(i) = w_i times the integral over u in (0, 1) of the product over j != i of 1 - u w_j, where w are the
    weights of the exponential mechanism, 1 for the best: `NoisyMax` on a fine grid.
    """
    weights = np.exp((scores - scores.max()) * epsilon / (2 * sensitivity))
    kept = np.log1p(-np.outer((NODES + 1) / 2, weights))
    law = weights * (np.exp(kept.sum(axis=1, keepdims=True) - kept) * (SHARES / 2)[:, None]).sum(axis=0)
    return law / law.sum()


def naive_upto(counts: np.ndarray) -> np.ndarray:
    """-|#{<= y} - n/2|, times 2: an integer of sensitivity 2."""
    return -np.abs(2 * np.cumsum(counts) - counts.sum())


def naive_sides(counts: np.ndarray) -> np.ndarray:
    """-|A - B|, of sensitivity 2 and not 1."""
    upto = np.cumsum(counts)
    return -np.abs((upto - counts) - (counts.sum() - upto))


def repaired_score(counts: np.ndarray) -> np.ndarray:
    """-max(0, A - n//2, B - n//2): minus the records to replace until y is a median; of sensitivity 1."""
    upto, n = np.cumsum(counts), counts.sum()
    return -np.maximum(np.maximum(upto - counts, n - upto) - n // 2, 0)


def median_laws(counts: np.ndarray, epsilon: float) -> dict[str, np.ndarray]:
    """Return the law of the chosen cell by every score, all at the same true epsilon."""
    wide, plain = ExponentialMechanism(epsilon, 2), ExponentialMechanism(epsilon)
    repaired = repaired_score(counts)
    laws = (
        wide.probabilities(naive_upto(counts)),
        wide.probabilities(naive_sides(counts)),
        plain.probabilities(repaired),
        noisy_max_law(repaired, epsilon),
    )
    return dict(zip(SCORES, laws, strict=True))


def draws(config: Config, seed: int) -> dict:
    """Draw exactly and by Gumbel-max, against softmax; the p-values are of chi-square tests."""
    from scipy import stats

    scores, mechanism = np.array(TOY), ExponentialMechanism(config.toy_epsilon)
    generator, noise = np.random.default_rng(seed), SimulatedNoise(seed)
    law = mechanism.probabilities(scores)
    exact = np.bincount([mechanism.select(scores, noise) for _ in range(config.draws)], minlength=scores.size)
    noisy = scores / float(mechanism.scale) + generator.gumbel(size=(config.draws, scores.size))
    gumbel = np.bincount(np.argmax(noisy, axis=1), minlength=scores.size)
    return {
        "scores": TOY,
        "softmax": law.tolist(),
        "exact": (exact / config.draws).tolist(),
        "gumbel": (gumbel / config.draws).tolist(),
        "p_exact": float(stats.chisquare(exact, config.draws * law).pvalue),
        "p_gumbel": float(stats.chisquare(gumbel, config.draws * law).pvalue),
        "p_between": float(stats.chi2_contingency(np.array([exact, gumbel])).pvalue),
    }


def counterexample(config: Config) -> list[dict]:
    """Return P(the median is chosen) for 40 records in cell 3 and 60 in cell 7 of 10, exact."""
    counts = np.zeros(10, np.int64)
    counts[[2, 6]] = 40, 60
    return [
        {"epsilon": epsilon} | {name: float(law[6]) for name, law in median_laws(counts, epsilon).items()}
        for epsilon in config.medians
    ]


def ages(config: Config) -> list[dict]:
    """Return the mean rank error of the median age, records to replace until it is a median; exact."""
    columns, weights = adult5()
    counts = np.bincount(columns["age"] - 17, weights=weights, minlength=74).astype(np.int64)
    loss = -repaired_score(counts)
    return [
        {"epsilon": epsilon, "n": int(counts.sum())}
        | {name: float(law @ loss) for name, law in median_laws(counts, epsilon).items()}
        for epsilon in config.ages
    ]


def tails(config: Config) -> list[dict]:
    """Return P(loss > t): exact laws where losses are 0, 1, 2, ..., the worst cases, and the bounds."""
    size, epsilon = config.candidates, config.tail_epsilon
    scores, mechanism = -np.arange(size), ExponentialMechanism(epsilon)
    exponential, noisy = mechanism.probabilities(scores), noisy_max_law(scores, epsilon)
    scale, rows = float(mechanism.scale), []
    for t in range(0, 31, 2):
        worst = np.array([0] + [-t - 1] * (size - 1))
        rows.append(
            {
                "loss": t,
                "theorem 3.11": min(1.0, size * math.exp(-(t + 1) / scale)),
                "exponential, worst": float(mechanism.probabilities(worst)[1:].sum()),
                "noisy max, worst": float(noisy_max_law(worst, epsilon)[1:].sum()),
                "noisy max, bound": min(1.0, (size - 1) / 2 * math.exp(-(t + 1) / scale)),
                "exponential": float(exponential[t + 1 :].sum()),
                "noisy max": float(noisy[t + 1 :].sum()),
            }
        )
    return rows


def votes(config: Config, seed: int) -> np.ndarray:
    """Return a synthetic 0/1 matrix of users by films: Zipf's law of films, up to `most_votes` a user."""
    generator = np.random.default_rng(seed)
    liking = 1.0 / (np.arange(config.films) + 10.0)
    matrix = np.zeros((config.users, config.films), np.int64)
    for user in matrix:
        chosen = generator.choice(
            config.films,
            size=int(generator.integers(1, config.most_votes + 1)),
            replace=False,
            p=liking / liking.sum(),
        )
        user[chosen] = 1
    return matrix


def films(config: Config, seed: int) -> dict:
    """Return P(the most popular film is chosen), exact but for the noisy counts, and what was voted."""
    matrix = votes(config, seed)
    counts, noise, rows = matrix.sum(axis=0), SimulatedNoise(seed), []
    best = int(counts.argmax())
    for epsilon in config.film_epsilons:
        # to release all counts at once costs the votes of a user: two users' ballots differ in 2 most_votes
        counted = LaplaceMechanism(epsilon, 2 * config.most_votes)
        hits = [int(counted.release(counts, noise).argmax()) == best for _ in range(config.film_runs)]
        rows.append(
            {
                "epsilon": epsilon,
                "exponential": float(ExponentialMechanism(epsilon).probabilities(counts)[best]),
                "noisy max": float(noisy_max_law(counts, epsilon)[best]),
                "noisy counts": float(np.mean(hits)),
            }
        )
    ranked = np.sort(counts)[::-1]
    return {"top": ranked[:5].tolist(), "votes": int(counts.sum()), "rows": rows}


def quantiles(config: Config, seed: int) -> list[dict]:
    """Return how far quantiles on the grid miss, in records of the continuous column, against the bound."""
    generator = np.random.default_rng(seed)
    values = np.sort(generator.beta(2.0, 5.0, config.records))
    domain = ic.Domain.of(x=range(config.grid + 1))
    data = ic.PrivateData.from_records({"x": np.rint(config.grid * values).astype(np.int64)}, domain)
    noise, rows = SimulatedNoise(seed), []
    for epsilon in config.quantile_epsilons:
        misses, bound = [], 0.0
        for share in config.shares:
            exact = Fraction(repr(share))
            low, high = (math.floor(part * config.records) for part in (exact, 1 - exact))
            for _ in range(config.runs):
                choice = quantile(data, "x", share, epsilon, beta=config.beta, noise=noise)
                # a cell is a half-open interval of the column: the best point in it counts
                left = np.searchsorted(values, (choice.code + 0.5) / config.grid)
                right = np.searchsorted(values, (choice.code - 0.5) / config.grid)
                misses.append(max(0, int(right) - low, config.records - int(left) - high))
                bound = config.records * choice.error_bound
        rows.append(
            {
                "epsilon": epsilon,
                "mean": float(np.mean(misses)),
                "95 %": float(np.quantile(misses, 1 - config.beta)),
                "bound": bound,
                "beyond": float(np.mean(np.array(misses) > bound)),
            }
        )
    return rows


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = (
        Config(draws=1000, film_runs=20, runs=10, users=200, films=50, most_votes=20) if quick else Config()
    )
    drawn = seeds(config.seed, 3)
    size, epsilon = config.candidates, config.tail_epsilon
    return stamped(
        config,
        start,
        seeds=drawn,
        draws=draws(config, drawn[0]),
        counterexample=counterexample(config),
        ages=ages(config),
        tails=tails(config),
        radii={
            "theorem 3.11": exponential_bound(epsilon, size, config.beta),
            "exponential": ExponentialMechanism(epsilon).radius(size, config.beta),
            "noisy max, coarse": NoisyMax(epsilon).radius(size, config.beta),
            "noisy max": NoisyMax(epsilon, 1 << FINE).radius(size, config.beta) / 2**FINE,
        },
        films=films(config, drawn[1]),
        quantiles=quantiles(config, drawn[2]),
    )


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    return {"tails": tails(Config())}


def table(result: dict) -> str:
    drawn, config, voted = result["draws"], result["config"], result["films"]
    named = " | ".join("`" + name.replace("|", "\\|") + "`" if "|" in name else name for name in SCORES)
    radii = ", ".join(f"{name} {value:.1f}" for name, value in result["radii"].items())
    lines = [
        f"Exact draws against softmax: p = {drawn['p_exact']:.2g}; Gumbel-max against softmax: "
        f"p = {drawn['p_gumbel']:.2g}; against each other: p = {drawn['p_between']:.2g} "
        f"({config['draws']:,} draws each).",
        "",
        f"| median, by score, all at the same true epsilon | epsilon | {named} |",
        "|---|---|" + "---|" * len(SCORES),
    ]
    for row in result["counterexample"]:
        if row["epsilon"] in (0.05, 0.2, 1.0):
            shown = " | ".join(f"{row[name]:.3f}" for name in SCORES)
            lines.append(f"| 40 records at 3, 60 at 7: P(the median) | {row['epsilon']:g} | {shown} |")
    for row in result["ages"]:
        if row["epsilon"] in (0.001, 0.01, 0.1):
            shown = " | ".join(f"{row[name]:,.1f}" for name in SCORES)
            lines.append(f"| Adult ages: mean rank error, records | {row['epsilon']:g} | {shown} |")
    lines += [
        "",
        f"Largest loss at .95, {config['candidates']} candidates, epsilon {config['tail_epsilon']:g}: "
        f"{radii}.",
        "",
        "| epsilon | P(most popular film): exponential | noisy max | largest of all noisy counts |",
        "|---|---|---|---|",
    ]
    for row in voted["rows"]:
        shown = " | ".join(f"{row[name]:.3f}" for name in ("exponential", "noisy max", "noisy counts"))
        lines.append(f"| {row['epsilon']:g} | {shown} |")
    lines += [
        "",
        f"{config['films']} synthetic films, {config['users']:,} users of up to {config['most_votes']} votes "
        f"each; most votes: {', '.join(f'{count:,}' for count in voted['top'][:3])}.",
        "",
        "| epsilon | quantiles on a grid of 1/1000: mean rank error | 95 % | bound at .95 | share beyond |",
        "|---|---|---|---|---|",
    ]
    for row in result["quantiles"]:
        lines.append(
            f"| {row['epsilon']:g} | {row['mean']:.2f} | {row['95 %']:.0f} | {row['bound']:.0f} "
            f"| {row['beyond']:.4f} |"
        )
    return "\n".join(
        [
            *lines,
            "",
            f"Records of {config['records']:,}, over {len(config['shares'])} quantiles of {config['runs']:,} "
            "runs. NOT PRIVATE.",
        ]
    )


def figure(result: dict, path: Path) -> None:
    """Draw six panels; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(13.0, 7.6), layout="constrained")
    panels = canvas.subplots(2, 3).ravel()
    blue, pink, green, orange, grey = "#0072B2", "#CC79A7", "#009E73", "#E69F00", "#777777"
    colours = dict(zip(SCORES, (pink, orange, blue, green), strict=True))
    styles = dict(zip(SCORES, ("-", "--", "-", "--"), strict=True))

    drawn, first = result["draws"], panels[0]
    order = np.argsort(drawn["scores"])
    places = np.arange(len(order))
    first.bar(places, np.array(drawn["softmax"])[order], color="#DDDDDD", label="softmax")
    first.plot(places - 0.13, np.array(drawn["exact"])[order], "o", color=blue, label="exact draws")
    first.plot(places + 0.13, np.array(drawn["gumbel"])[order], "x", color=pink, label="Gumbel-max")
    first.set_xticks(places, np.array(drawn["scores"])[order])
    first.set(xlabel="score of the candidate", ylabel="share of draws", title="(a) three ways to one law")

    for axes, rows, title, label in (
        (
            panels[1],
            result["counterexample"],
            "(b) 40 records in cell 3, 60 in cell 7",
            "P(the median is chosen)",
        ),
        (panels[2], result["ages"], "(c) median age, Adult", "mean rank error, records"),
    ):
        for name in SCORES:
            values = np.array([row[name] for row in rows])
            shown = np.where(values > 1e-3, values, np.nan) if axes is panels[2] else values
            axes.plot(
                [row["epsilon"] for row in rows],
                shown,
                styles[name],
                marker=".",
                color=colours[name],
                label=name,
            )
        axes.set(xscale="log", xlabel="epsilon", ylabel=label, title=title)
    panels[2].set_yscale("log")

    rows, fourth = result["tails"], panels[3]
    t = [row["loss"] for row in rows]
    for name, colour, style in (
        ("theorem 3.11", grey, ":"),
        ("exponential, worst", blue, "-"),
        ("noisy max, bound", orange, ":"),
        ("noisy max, worst", green, "-"),
        ("exponential", blue, "--"),
        ("noisy max", green, "--"),
    ):
        label = name + (" (losses 0, 1, 2, ..)" if style == "--" else "")
        fourth.plot(t, [max(row[name], 1e-12) for row in rows], style, color=colour, label=label)
    fourth.axhline(result["config"]["beta"], color="black", linewidth=0.6)
    fourth.set(yscale="log", ylim=(1e-7, 2), xlabel="t", ylabel="P(loss > t)")
    fourth.set_title(f"(d) loss, {result['config']['candidates']} candidates, epsilon 1")

    rows, fifth = result["films"]["rows"], panels[4]
    for name, colour, style, label in (
        ("exponential", blue, "-", "exponential mechanism"),
        ("noisy max", green, "--", "noisy max"),
        ("noisy counts", pink, "-", "largest of all noisy counts"),
    ):
        fifth.plot(
            [row["epsilon"] for row in rows],
            [row[name] for row in rows],
            style,
            marker=".",
            color=colour,
            label=label,
        )
    fifth.set(xscale="log", xlabel="epsilon", ylabel="P(the most popular is chosen)")
    fifth.set_title("(e) most popular film, synthetic")

    rows, sixth = result["quantiles"], panels[5]
    epsilons = [row["epsilon"] for row in rows]
    for name, colour, style, label in (
        ("bound", grey, ":", "bound at .95"),
        ("95 %", green, "-", "95 % of the errors"),
        ("mean", green, "--", "mean error"),
    ):
        values = [row[name] if row[name] > 0 else math.nan for row in rows]
        sixth.plot(epsilons, values, style, marker=".", color=colour, label=label)
    sixth.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="rank error, records")
    sixth.set_title(f"(f) quantiles on the grid 1/1000, n = {result['config']['records']:,}")
    for axes in panels:
        axes.legend(fontsize=8)
        axes.title.set_fontsize(10)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
