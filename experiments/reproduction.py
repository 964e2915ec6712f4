"""Every figure of the five texts that the project grew from, beside what the library gives.

    python experiments/reproduction.py [--quick] [--from-json]

What follows from the print (sums, formulas, sensitivities, the outcome of a known seed) is worked out again;
what a private draw made is placed in the exact law of that draw, or among runs of the same mechanism. Old
generators (numpy's RandomState, R's Mersenne Twister) make the texts' own data and nothing else. The tutorial
asks the 32,561 training rows of Adult: ages from the table `adult`, capital gains, which are bins there, from
`adult-training` (python -m onlineic.datasets fetch); rows that lack theirs are absent. Simulated
noise, and errors against the truth: NOT PRIVATE.
Writes results/reproduction.json; its table is that of docs/reproduction.md, which is made from it alone.
"""

import csv
import itertools
import math
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from scipy.stats import binomtest
from study.outcome import script, seeds, stamped
from study.sources import adult_rows, fetched, present

import onlineic as ic
from onlineic.audit import Law, ThresholdRule, worst_loss
from onlineic.bounds import (
    least_alpha,
    least_net_n,
    multiset_radius,
    mw_book_bound,
    numeric_sparse_alpha,
    small_database_error,
    small_database_n,
)
from onlineic.mechanisms import ExponentialMechanism, LaplaceMechanism, exponential_bound, laplace_bound
from onlineic.noise import SimulatedNoise
from onlineic.offline import (
    LinearPrograms,
    auto_avg,
    linear_programs_above,
    most_popular,
    quantile,
    range_queries,
    sensitivity,
)
from onlineic.sparse import AboveThreshold, Sparse

NAME = "reproduction"
TRAINING = 32_561
SAME, OTHER, DRAW, NOT, NONE = (
    "reproduced",
    "reproduced at other parameters",
    "private draw",
    "not reproduced",
    "no figure printed",
)
NOTEBOOK, R, TRANSLATION, TUTORIAL, LECTURE = "notebook", "Laplace in R", "5.2.2", "tutorial", "lecture"
# what the tutorial prints
COUNTS = (0, 2903, 14408, 4345, 8372, 17629, 12919, 0, 1675, 13380)
NUMBERS = (14417.524053935005, 17621.35957591745, 12933.616763821363, 13382.45145929881)
AVERAGES = {"Age": 38.58032933605027, "Capital Gain": 1074.7076376917673}
# what the notebook prints: places and values of its ten hits
HITS = {
    0: 2.97266959,
    1: 2.37046394,
    5: 1.30079236,
    6: 5.82016052,
    7: 5.94992694,
    13: 3.45348201,
    23: 1.88072118,
    24: 2.33305414,
    29: 2.06746918,
    30: 2.22699771,
}


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    runs: int = 400  # of auto_avg and of range queries
    many: int = 20_000  # of the naive search for a bound
    releases: int = 100_000  # of a mean
    beta: float = 0.05
    size: int = 1024  # |X|, |Q| and n of the formulas of 5.2.2, which has no numbers
    queries: int = 100
    n: int = 1_000_000
    seed: int = 20261122


def row(text: str, figure: str, printed: str, ours: str, state: str, why: str = "") -> dict[str, str]:
    """Return one row of the table."""
    return {
        "text": text,
        "figure": figure,
        "printed": printed,
        "ours": ours,
        "verdict": f"{state}{': ' if why else ''}{why}",
    }


# The notebook on sparse vector (000)


def notebook_alpha(cutoff: int, ratio: float, queries: int, beta: float) -> float:
    """Return 4 c (gamma/epsilon) (ln k + ln(2c/beta)), as the notebook writes it."""
    return float(4 * cutoff * ratio * (np.log(queries) + np.log(2 * cutoff / beta)))


def notebook(config: Config, seed: int) -> list[dict[str, str]]:
    table = np.random.RandomState(123).uniform(size=(100, 10_000))
    means = table.mean(axis=0)
    six = ", ".join(f"{value:.8f}" for value in (*means[:3], *means[-3:]))
    generator = np.random.RandomState(123)
    values = generator.uniform(size=10_000)
    rho, noisy = generator.laplace(scale=0.2), values[:31] + generator.laplace(scale=2.0, size=31)
    off = max(abs(noisy[place] - value) for place, value in HITS.items())
    passed = max(noisy[place] for place in range(31) if place not in HITS)
    low, high = passed - rho, min(noisy[list(HITS)]) - rho  # between them: a threshold with these hits
    assert off < 5e-9
    assert low < high
    alpha = notebook_alpha(10, 0.1, 31, 0.99999)
    stated, stream = (notebook_alpha(3, 0.02, queries, 0.99999) for queries in (31, 10_000))
    # the setting as stated, by the library: column sums of real numbers on a grid, rounded down to records
    grid = ic.Grid(0, 1, points=2**20 + 1)
    sums = grid.codes(table.ravel()).reshape(table.shape).sum(axis=0) // (grid.points - 1)
    kept = Sparse(0.5, 60, 3, allocation="optimal")
    found = kept.select(sums, SimulatedNoise(seed))
    radius = kept.radius(10_000, config.beta)
    programs = LinearPrograms(
        matrix=[[2, 1], [1, 0], [0, 1]],
        right_hand_sides=[[hours, 1, 1] for hours in (0, 0.5, 1, 2, 3)],
        lower=[0, 0],
        upper=[10, 10],
        n=10_000,
    )
    benefits = {"first": np.full(10_000, 5), "second": np.arange(10_000) % 5 + 2}
    data = ic.PrivateData.from_records(benefits, ic.Domain.of(first=range(11), second=range(11)))
    above = linear_programs_above(
        data, ["first", "second"], programs, threshold=5, epsilon=1.0, noise=SimulatedNoise(seed)
    )
    reason = f"10,000 single values of the seed, no means; c = 10, γ/ε = .1, T in ({low:.3f}, {high:.3f})"
    return [
        row(NOTEBOOK, "first means of 10,000 columns, seed 123", "0.48800237, .., 0.48631572", six, SAME),
        row(NOTEBOOK, "shape of the means", "(10000,)", str(means.shape), SAME),
        row(
            NOTEBOOK,
            "`data[:num_query]`",
            "0.69646919, .., 0.09210494",
            f"{values[0]:.8f}, .., {values[30]:.8f}",
            OTHER,
            "single values of the seed, no means",
        ),
        row(NOTEBOOK, "hits, and queries until the last", "10, 31", f"{len(HITS)}, 31", OTHER, reason),
        row(
            NOTEBOOK,
            "the ten released numbers",
            "2.97266959, .., 2.22699771",
            f"{noisy[0]:.8f}, .., {noisy[30]:.8f}",
            OTHER,
            f"as above; all ten within {off:.0e}",
        ),
        row(
            NOTEBOOK,
            "alpha",
            "25.718917912356552",
            repr(alpha),
            OTHER,
            f"c = 10, γ/ε = .1, k = 31, β = .99999; at the stated c = 3, γ = .01, ε = .5: {stated:.3f}, and "
            f"{stream:.2f} for the 10,000 queries of the stream",
        ),
        row(
            NOTEBOOK,
            "sensitivity of a mean of 100 values in [0, 1]",
            "1/100",
            str(sensitivity("mean", ic.Domain.of(x=range(2)).attribute("x"), 100)),
            SAME,
        ),
        row(
            NOTEBOOK,
            "ε of `sparse` at c = 3, ε = .5",
            "0.5",
            f"{1 / (2 / 0.5) + 2 * 3 / (2 * 3 / 0.5):g} for the places of its hits",
            NOT,
            "threshold noise 2γ/ε and test noise 2cγ/ε cost ε/2 + ε; the compared values, which it releases, "
            "have no ε at all (column_means.py)",
        ),
        row(
            NOTEBOOK,
            "three columns with a mean of .6 or more, ε = .5",
            "-",
            f"columns {', '.join(map(str, found))}, true means "
            f"{', '.join(f'{means[place]:.2f}' for place in found)}",
            NONE,
            f"it runs, and says nothing: by `Sparse` an error of {radius / 100:.2f} at 95 %, for means in "
            f"[0, 1]; below .05 from {20 * radius:,} rows on",
        ),
        row(
            NOTEBOOK,
            "a linear program for each grid value, into Sparse",
            "-",
            f"program {above.above[0]} of 5, optimum 6.5 for 5",
            NONE,
            "example of `offline.linear_programs_above`, optima 0, 2, 4, 6.5, 9",
        ),
    ]


# The Laplace mechanism in R (001)


def r_uniforms(seed: int, count: int) -> np.ndarray:
    """Return what R gives for set.seed(seed); runif(count): its Mersenne Twister, seeded by its scrambler."""
    state, key = seed, []
    for _ in range(50):
        state = (69069 * state + 1) % 2**32
    for _ in range(625):
        state = (69069 * state + 1) % 2**32
        key.append(state)
    twister = np.random.MT19937()
    twister.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(key[1:], np.uint32), "pos": 624},
    }
    return (twister.random_raw(count) & 0xFFFFFFFF) * 2.3283064365386963e-10


def laplace_in_r(config: Config, seed: int) -> list[dict[str, str]]:
    n, epsilon = 100_000, 0.1
    drawn = r_uniforms(42, 400_000)
    assert abs(drawn[0] - 0.914806) < 1e-6  # R's well-known first number of this seed
    old = np.floor(101 * drawn[:n]).mean()  # sample() before R 3.6.0
    tries = np.floor(65536 * drawn).astype(np.int64) & 127
    new = tries[tries < 101][:n].mean()  # and since
    later = drawn[n + 1 : 2 * n + 1]
    released = -np.sign(later - 0.5) * (math.log(2) + np.where(later < 0.5, np.log(later), np.log1p(-later)))
    printed_bound = laplace_bound(epsilon, config.beta, 1) / n
    again = int((np.abs(released) < math.log(1 / config.beta)).sum())  # in scales, whatever these are
    score = ic.Domain.of(score=range(101)).attribute("score")
    right = laplace_bound(epsilon, config.beta, 100) / n
    mechanism = LaplaceMechanism(epsilon, 100)
    errors = mechanism.release(np.zeros(config.releases, np.int64), SimulatedNoise(seed))
    within = int((np.abs(errors) <= mechanism.radius(config.beta)).sum()) / config.releases
    p = [binomtest(count, n, 0.95).pvalue for count in (95_073, again)]
    unit = ic.Domain.of(x=range(2)).attribute("x")
    cost = float(100 / LaplaceMechanism(epsilon, 1).scale)
    return [
        row(
            R,
            "mean of 100,000 scores, seed 42",
            "50.08518",
            f"{old:.5f}, {new:.5f}",
            NOT,
            "neither what R drew before version 3.6.0 nor what it draws since: the print is of another state "
            "of its generator",
        ),
        row(
            R,
            "sensitivity of the mean of scores 0 to 100",
            "1/n, later 100/n",
            f"{sensitivity('mean', score, n) * n}/n",
            NOT,
            f"the sensitivity is wrong: the ε = .1 of the release is ε = {cost:g}",
        ),
        row(R, "sensitivity of the maximum on [0, 1]", "1", str(sensitivity("maximum", unit, n)), SAME),
        row(R, "the same for scores", "100", str(sensitivity("maximum", score, n)), SAME),
        row(
            R,
            "released mean",
            "50.08508",
            f"50.08518 ± {right:.3f}",
            DRAW,
            "one scale, .0001, below its true mean; ours is the right bound",
        ),
        row(
            R,
            "95 % bound of its error",
            "0.0002995732",
            f"{printed_bound:.10f}",
            SAME,
            f"at the sensitivity 1/n; {right:.7f} at 100/n, a hundred times as much",
        ),
        row(
            R,
            "share of 100,000 releases within it",
            "0.95073",
            f"{within:.5f}",
            DRAW,
            f"p = {p[0]:.2f} under 95 %; ours with the right noise and bound; R's formula on its seed 42: "
            f"{again / n:.5f}, p = {p[1]:.2f}",
        ),
    ]


# The translation of 5.2.2 (002): formulas, no numbers; here at |X| = 1,024, |Q| = 100, n = 10^6, epsilon 1


def translation(config: Config) -> list[dict[str, str]]:
    size, queries, n, beta = config.size, config.queries, config.n, config.beta
    ours = least_alpha(
        lambda alpha: mw_book_bound(size, alpha), n=n, max_queries=queries, epsilon=1.0, beta=beta
    )
    updates = mw_book_bound(size, ours)
    printed = 9 * updates * (math.log(2 * queries) + math.log(4 * updates / beta)) / n
    sparse = 9 * 5 * (math.log(queries) + math.log(4 * 5 / beta)) / n
    data = ic.PrivateData(np.full(size, n // size), ic.Domain.of(x=size))
    session = ic.OnlineIC.textbook(data, epsilon=1.0, beta=beta, max_queries=queries, noise=SimulatedNoise(0))
    state = session.statistics()
    at = f"\\|X\\| = {size:,}, \\|Q\\| = {queries}, n = 10⁶, ε = 1, β = {beta:g}"
    # T(alpha) in Theorem 5.14: alpha^3 = 36 ln|X| (ln 2|Q| + ln(4T/beta))/(epsilon n), the book's online MW
    closed = (36 * math.log(size) * (math.log(2 * queries) + math.log(4 * updates / beta)) / n) ** (1 / 3)
    return [
        row(
            TRANSLATION,
            "Theorem 3.28, as it is recalled: 9c(ln k + ln(4c/β))/(εn)",
            f"{sparse:.6f}, c = 5, k = {queries}",
            f"{numeric_sparse_alpha(5, queries, 1.0, 0.0, beta, n):.6f}",
            SAME,
            "the formula's value; the text has no numbers",
        ),
        row(
            TRANSLATION,
            "Theorem 5.14: least alpha, with T(α) = 4 ln\\|X\\|/α²",
            f"{printed:.6f}",
            f"{ours:.6f}",
            SAME,
            f"a fixed point; {at}",
        ),
        row(
            TRANSLATION,
            "its recovery of online multiplicative weights",
            f"{closed:.6f}",
            f"{ours:.6f}",
            SAME,
            "α³ = 36 ln\\|X\\| (ln 2\\|Q\\| + ln(4T/β))/(εn)",
        ),
        row(
            TRANSLATION,
            "threshold and error bound of a session",
            "2α, 3α",
            f"{state.threshold / state.alpha:.3f}α, {state.error_bound / state.alpha:.3f}α",
            SAME,
            "`OnlineIC.textbook`, rounded up to the grid",
        ),
        row(
            TRANSLATION,
            "hard answers of a session",
            "T(α)",
            f"{state.hard_left} of T(α) = {mw_book_bound(size, state.alpha):.1f}",
            SAME,
        ),
        row(
            TRANSLATION,
            "constant of Theorem 5.15",
            "√521 + 1 = 23.8",
            f"9√8 = {9 * math.sqrt(8):.1f}",
            NOT,
            "a misprint of √512 + 1 = 23.6, which is too small itself (errata)",
        ),
    ]


# The tutorial on sparse vector (003)


def training_ages() -> np.ndarray:
    """Return the ages of the training rows, whole years."""
    return np.array([int(line["age"]) + 16 for line in adult_rows()[:TRAINING]])


def training_gains() -> np.ndarray:
    """Return the capital gains of the training rows, dollars."""
    with fetched("adult-training").open(newline="") as stream:
        lines = [line for line in csv.reader(stream, skipinitialspace=True) if len(line) == 15]
    return np.array([int(line[10]) for line in lines])


def first_hits(values: Iterable[int], mechanism: AboveThreshold) -> np.ndarray:
    """Return P(first hit = i), and P(none) last: exact sums over the noise of the shipped scales."""
    rho_law, nu_law = (
        Law("discrete_laplace", scale) for scale in (mechanism.threshold_scale, mechanism.query_scale)
    )
    reach = math.ceil(45 * float(mechanism.threshold_scale))
    rho = np.arange(-reach, reach + 1.0)
    alive, found = np.exp(rho_law.log_mass(rho)), []
    for value in values:
        below = np.exp(nu_law.log_below(mechanism.threshold + rho - value))
        found.append(float(alive @ (1 - below)))
        alive = alive * below
    return np.array([*found, float(alive.sum())])


def naive_bounds(ages: np.ndarray, config: Config, seed: int) -> tuple[list[int], np.ndarray]:
    """Return the candidates 1, 11, .. and how often the naive search stops at each, at epsilon 1."""
    bounds, noise, epsilon = list(range(1, 1000, 10)), SimulatedNoise(seed), 1.0
    best = np.zeros(config.many, np.int64)
    stopped = np.full(config.many, len(bounds) - 1)
    running = np.ones(config.many, bool)
    for place, bound in enumerate(bounds):
        exact = np.full(config.many, np.minimum(ages, bound).sum())
        total = LaplaceMechanism(epsilon / len(bounds), bound).release(exact, noise)
        ends = running & (total - best <= 10)
        stopped[ends] = place
        running &= ~ends
        best = total
        if not running.any():
            break
    return bounds, np.bincount(stopped, minlength=len(bounds))


def averages(values: np.ndarray, config: Config, seed: int) -> np.ndarray:
    """Return runs of the tutorial's auto_avg at epsilon 1: its bounds, its three parts."""
    data = ic.PrivateData.from_records({"x": values}, ic.Domain.of(x=range(150_001)))
    noise, bounds = SimulatedNoise(seed), range(1, 150_000, 5)
    return np.array(
        [
            auto_avg(data, "x", 1.0, bounds=bounds, count="noisy", noise=noise).value
            for _ in range(config.runs)
        ]
    )


def average_row(name: str, values: np.ndarray, runs: np.ndarray) -> dict[str, str]:
    low, middle, high = np.quantile(runs, (0.05, 0.5, 0.95))
    rank = float((runs < AVERAGES[name]).mean())
    return row(
        TUTORIAL,
        f"`auto_avg` of {name}, ε = 1",
        repr(AVERAGES[name]),
        f"{middle:.3f}, 90 % in {low:.3f} .. {high:.3f}",
        DRAW,
        f"true mean {values.mean():.4f}; {rank:.0%} of our runs are below the print",
    )


def open_range(low: int, high: int) -> ic.queries.Expression:
    """Return low < age < high: nobody where the two are equal or neighbours."""
    return ic.where(age=ic.between(low + 1, high - 1))


def range_rows(ages: np.ndarray, config: Config, seed: int) -> list[dict[str, str]]:
    held: dict[int, list[tuple[int, int]]] = {}
    for low in range(30, 50):
        for high in range(low, 70):
            held.setdefault(int(((ages > low) & (ages < high)).sum()), []).append((low, high))
    pairs = [held[count][0] for count in COUNTS]
    assert all(len(held[count]) == 1 for count in COUNTS if count)
    data = ic.PrivateData.from_records({"age": ages}, ic.Domain.of(age=range(17, 91)))
    queries = [open_range(*pair).bind(data.domain) for pair in pairs]
    exact = [int(count) for count in data.exact_counts_many(queries)]
    noise = SimulatedNoise(seed)
    runs = [
        range_queries(
            data,
            queries,
            1.0,
            threshold=10_000,
            cutoff=5,
            allocation="restarts",
            divide="cutoff",
            noise=noise,
        )
        for _ in range(config.runs)
    ]
    four = [place for place, count in enumerate(COUNTS) if count > 10_000]
    same = sum(list(run.hits) == four for run in runs)
    errors = [number - COUNTS[place] for number, place in zip(NUMBERS, four, strict=True)]
    one = [run.counts[place] for run in runs[:1] for place in run.hits]
    return [
        row(
            TUTORIAL,
            "ten age ranges with open ends",
            ", ".join(map(str, COUNTS)),
            ", ".join(map(str, exact)),
            SAME,
            "unseeded, but each count belongs to one pair of ends: "
            + ", ".join(
                f"{low}..{high}" if count else "empty"
                for (low, high), count in zip(pairs, COUNTS, strict=True)
            ),
        ),
        row(
            TUTORIAL,
            "`range_query_svt`, T = 10,000, c = 5, ε = 1: which ranges",
            "4 numbers",
            f"the same four in {same} of {len(runs)} runs",
            SAME,
            "four counts are above 10,000, so that c = 5 is never reached",
        ),
        row(
            TUTORIAL,
            "their numbers",
            ", ".join(f"{number:.2f}" for number in NUMBERS),
            ", ".join(map(str, one)),
            DRAW,
            f"its errors {', '.join(f'{error:+.1f}' for error in errors)}; ours within {runs[0].radius} at "
            "97.5 %, the scale is 10 in both",
        ),
    ]


def tutorial(config: Config, drawn: list[int]) -> tuple[list[dict[str, str]], dict]:
    ages = training_ages()
    bounds, stopped = naive_bounds(ages, config, drawn[0])
    candidates = list(range(1, 150, 5))
    values = [-int((ages > bound).sum()) for bound in candidates]
    law = first_hits(values, AboveThreshold(0.1, 0))
    triple, share = (18, 21, 24), AboveThreshold(1 / 3, 0)
    chance, start = 1.0, 0
    for place in triple:
        chance *= float(first_hits(values[start:], share)[place - start])
        start = place + 1
    starts = first_hits(values, share)[:-1]
    likely = candidates[int(np.argmax(law[:-1]))]
    runs = averages(ages, config, drawn[1])
    clipped = int(np.minimum(ages, 30).sum())
    mode = bounds[int(np.argmax(stopped))]
    naive = ThresholdRule(0, Law("none"), Law("discrete_laplace", LaplaceMechanism(0.1).scale))
    naive_cost = worst_loss(naive, copies=(9,))
    within = stopped[7:10].sum() / stopped.sum()  # 71, 81, 91
    rows = [
        row(TUTORIAL, "sum of the ages clipped at 30", "913809", f"{clipped}", SAME, "its call is not shown"),
        row(
            TUTORIAL,
            "bound of `naive_select_b`",
            "81",
            f"{mode} most often, 81 in {stopped[8] / stopped.sum():.0%} of {config.many:,} runs",
            DRAW,
            f"ε is not shown, ours 1; 71 to 91 in {within:.0%}",
        ),
        row(
            TUTORIAL,
            "ε of `naive_above_threshold`, k queries",
            "kε",
            f"{naive_cost:g} for k = 10, ε = .1",
            SAME,
            "exact law of all neighbours that move every count by one",
        ),
        row(
            TUTORIAL,
            "bound by AboveThreshold, ε = .1",
            "91",
            f"{likely} is the likeliest, P = {law[candidates.index(91)]:.2f}",
            DRAW,
            "exact law; the largest age is 90",
        ),
        average_row("Age", ages, runs),
        row(
            TUTORIAL,
            "Sparse over the same bounds, ε = 1",
            "[18, 21, 24]",
            f"P = {chance:.4f}; the likeliest first is {int(np.argmax(starts))}, P = {starts[18]:.2f}",
            DRAW,
            "exact law; c is not shown, ours 3; bounds 91, 106, 121, all of which nobody exceeds",
        ),
        *range_rows(ages, config, drawn[2]),
    ]
    shown = {
        "bounds": candidates,
        "law": law.tolist(),
        "naive_bounds": bounds,
        "naive": (stopped / stopped.sum()).tolist(),
        "Age": runs.tolist(),
    }
    return rows, shown


def gains(config: Config, seed: int) -> tuple[list[dict[str, str]], dict]:
    values = training_gains()
    runs = averages(values, config, seed)
    return [average_row("Capital Gain", values, runs)], {"Capital Gain": runs.tolist()}


# The lecture on the exponential mechanism (004)


def lecture(config: Config, seed: int) -> list[dict[str, str]]:
    unit, epsilon, beta = ic.Domain.of(x=range(2)).attribute("x"), 1.0, config.beta
    grid = ic.Grid(0, 1, points=1001)
    seven = [int(sorted(values)[3]) for values in ((0, 0, 0, 1, 1, 1, 1), (0, 0, 0, 0, 1, 1, 1))]

    def score(values: np.ndarray, point: float) -> int:
        return -int((values >= point).sum()) + int((values <= point).sum())

    moved = max(
        abs(score(np.array(values), point) - score(np.array([*values[:-1], last]), point))
        for values in itertools.product(range(3), repeat=3)
        for last in range(3)
        for point in range(3)
    )
    repeats = np.repeat([0, 1], (75, 25))
    half = repeats.size / 2
    repaired = -abs(min(half, (repeats >= 0).sum()) - min(half, (repeats <= 0).sum()))
    records = np.sort(np.random.default_rng(seed).permutation(1001)[:499])
    best = int(np.argmax([score(records, point) for point in range(grid.points)]))
    data = ic.PrivateData.from_records({"x": records}, ic.Domain.of(x=range(grid.points)))
    chosen = quantile(data, "x", 0.5, epsilon, mechanism="exponential", noise=SimulatedNoise(seed))
    law = ExponentialMechanism(epsilon).probabilities(np.array([0] * 9 + [-40]))
    twice = ExponentialMechanism(epsilon, sensitivity=2)
    worst = 0.0
    for values in itertools.product(range(3), repeat=5):
        laws = [
            np.log(twice.probabilities(np.array([-abs(score(np.array(table), point)) for point in range(3)])))
            for table in (values, *((*values[:-1], last) for last in range(3)))
        ]
        worst = max(worst, *(float(np.abs(laws[0] - other).max()) for other in laws[1:]))
    film = ic.PrivateData.from_counts({"film": ["a", "b"]}, [700, 500], ic.Domain.of(film=["a", "b", "c"]))
    popular = most_popular(film, "film", epsilon, noise=SimulatedNoise(seed))
    loss = exponential_bound(epsilon, 1, beta, sensitivity=2)
    losses = exponential_bound(epsilon, 1000, beta, sensitivity=2)
    size, queries, alpha = 64, 100, 0.1
    log_net = math.log(queries) / (alpha / 2) ** 2 * math.log(size)  # ln |D|^m
    printed_n = math.ceil(4 / (alpha * epsilon) * (log_net + math.log(1 / beta)))
    error = small_database_error(alpha / 2, size, queries, printed_n, epsilon, beta)
    fewer = least_net_n(lambda rows: multiset_radius(rows, size, queries), alpha, size, epsilon, beta)
    return [
        row(
            LECTURE,
            "global sensitivity of the median on [0, 1]",
            "1",
            str(sensitivity("median", unit, 7)),
            SAME,
            "the length of the range",
        ),
        row(LECTURE, "medians of its two neighbours of 7 records", "1, 0", f"{seven[0]}, {seven[1]}", SAME),
        row(
            LECTURE, "sensitivity of the score of a median", "2", str(moved), SAME, "all tables of 3 records"
        ),
        row(
            LECTURE,
            "ε of the exponential mechanism with that score, ε = 1",
            "1",
            f"{worst:.3f} at most",
            SAME,
            "exact laws of all tables of 5 records on 3 points, and of all their neighbours",
        ),
        row(
            LECTURE,
            "score of the best point, no value repeated",
            "0 at the median",
            f"{score(records, best)} at {best}, the largest of {records.size} records; median {records[249]}",
            NOT,
            "printed without absolute value; with it 0 at the median",
        ),
        row(
            LECTURE,
            "score of 0 among 3n/4 zeros and n/4 ones",
            "-n/4",
            f"{score(repeats, 0)} for n = {repeats.size}",
            SAME,
        ),
        row(LECTURE, "the same by the repaired score", "0", f"{repaired + 0.0:g}", SAME),
        row(
            LECTURE,
            "points of a grid of steps 1/1000 on [0, 1]",
            "1000",
            str(grid.points),
            NOT,
            "both ends are points",
        ),
        row(
            LECTURE,
            "loss that one bad point exceeds with β at most: (4/ε) ln(1/β)",
            f"{4 / epsilon * math.log(1 / beta):.3f}",
            f"{loss:.3f}",
            SAME,
            f"`exponential_bound` at ε = 1, β = {beta:g}",
        ),
        row(
            LECTURE,
            "and any of them: (4/ε) ln(1000/β)",
            f"{4 / epsilon * math.log(1000 / beta):.3f}",
            f"{losses:.3f}",
            SAME,
            f"the score of sensitivity 1 gives {ExponentialMechanism(epsilon).radius(1001, beta)} records; "
            f"a run chose {chosen.value} for {records[249]}",
        ),
        row(
            LECTURE,
            "P(score > OPT - λ) <= \\|R\\| e^(-ελ/(2Δ))",
            f"{10 * math.exp(-15):.1e}",
            f"{law[:9].sum():.4f}, and {law[9]:.0e} below",
            NOT,
            "it holds for scores below OPT - λ; ten candidates, one 40 behind, λ = 30",
        ),
        row(LECTURE, "sensitivity of votes for films", "1", f"1: `most_popular` chose {popular.value}", SAME),
        row(
            LECTURE,
            "SmallDB: n >= (4/(αε)) ln(\\|D\\|^m/β) records for an error of α",
            f"{printed_n:,} for α = .1",
            f"error {error:.4f} there",
            SAME,
            f"`small_database_error`, m = ln\\|C\\|/(α/2)², \\|C\\| = {queries}, \\|D\\| = {size}, ε = 1; "
            f"{fewer:,} are enough by `least_net_n`",
        ),
        row(
            LECTURE,
            "the same as O(ln\\|C\\| ln(\\|D\\|/β)/α³)",
            "no ε",
            f"{small_database_n(alpha, size, queries, epsilon, beta):,} at ε = 1, "
            f"{small_database_n(alpha, size, queries, 0.1, beta):,} at .1",
            NOT,
            "1/ε is lost in the last step",
        ),
    ]


def of_adult(config: Config, drawn: list[int], absent: list[str]) -> Iterator[tuple[list, dict]]:
    """Yield the tutorial's rows and figures, of each table of Adult that is there."""
    parts = {
        "ages of Adult": lambda: tutorial(config, drawn[:3]),
        "capital gains of Adult": lambda: gains(config, drawn[3]),
    }
    return present(parts, absent)


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(runs=10, many=200, releases=5_000) if quick else Config()
    drawn = seeds(config.seed, 8)
    rows, shown = [*notebook(config, drawn[0]), *laplace_in_r(config, drawn[1]), *translation(config)], {}
    absent: list[str] = []
    for more, figures in of_adult(config, drawn[2:6], absent):
        rows += more
        shown |= figures
    return stamped(config, start, absent, rows=[*rows, *lecture(config, drawn[6])], shown=shown)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    return {f"rows/{place}": one for place, one in enumerate(notebook(config, seeds(config.seed, 8)[0]))}


def table(result: dict) -> str:
    lines = ["| text | figure | printed | ours | verdict |", "|---|---|---|---|---|"]
    lines += [
        f"| {one['text']} | {one['figure']} | {one['printed']} | {one['ours']} | {one['verdict']} |"
        for one in result["rows"]
    ]
    states = [one["verdict"].partition(":")[0] for one in result["rows"]]
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    return "\n".join(
        [
            *lines,
            "",
            f"{len(states)} rows: {', '.join(f'{count} {state}' for state, count in counts.items())}.",
        ]
    )


def figure(result: dict, path: Path) -> None:
    """Draw what the tutorial printed in the laws that it was drawn from; needs matplotlib."""
    from matplotlib.figure import Figure

    shown = result["shown"]
    canvas = Figure(figsize=(11, 6), layout="constrained")
    panels = canvas.subplots(2, 2).ravel()
    for panel, name, bounds, label, printed, width in (
        (panels[0], "law", "bounds", "bound by AboveThreshold, epsilon .1 (exact)", 91, 4),
        (panels[1], "naive", "naive_bounds", "bound by the naive search, epsilon 1 (runs)", 81, 8),
    ):
        if name in shown:
            most = len(shown[bounds])
            panel.bar(shown[bounds], shown[name][:most], width, color="#9EC5E8")
            panel.axvline(printed, color="#D55E00", lw=1.2, label=f"printed: {printed}")
            panel.set_xlim(0, 160)
            panel.set_xlabel(label)
            panel.set_ylabel("probability")
            panel.legend(fontsize=8)
    for panel, name in zip(panels[2:], AVERAGES, strict=True):
        if name in shown:
            panel.hist(shown[name], bins=40, color="#9EC5E8")
            panel.axvline(AVERAGES[name], color="#D55E00", lw=1.2, label=f"printed: {AVERAGES[name]:g}")
            panel.set_xlabel(f"auto_avg of {name}, epsilon 1, {len(shown[name])} runs")
            panel.set_ylabel("runs")
            panel.legend(fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
