"""The least budget whose optimal plan reaches a goal, privately: Sparse over the optima of linear programs.

    python experiments/linear_programs.py [--quick] [--from-json]

Synthetic patients (seeded). Treatments: a record scores what each treatment would bring one patient, 0 to 10;
a program chooses the share of patients who get each, at most two each, under a budget of nurses, doctors and
beds; the mean scores are the private objective. Services: a record says which services one person needs; the
mean needs are private right-hand sides, staff and money the budget, the value of a service is public. Budgets
grow, and sought is the first whose optimum reaches a threshold, half of the largest optimum. Three ways to
spend one epsilon:

* Sparse over the exact optima, cutoff 1, noise in multiples of each program's sensitivity;
* Laplace noise on every optimum at epsilon/K, and the first noisy one above: the naive way;
* Laplace noise on the column means, once; all programs are then solved from these, which costs nothing.

Simulated noise, NOT PRIVATE.
Writes results/linear_programs.json; the markdown table and the figure are made from that file alone.
"""

import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from scipy.optimize import linprog
from study.outcome import script, seeds, stamped

import onlineic as ic
from onlineic.bounds import sparse_alpha
from onlineic.noise import SimulatedNoise, scale_at_least
from onlineic.offline import LinearPrograms, linear_programs_above
from onlineic.sparse import Sparse

NAME = "linear_programs"


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    n: int = 20_000
    candidates: int = 120
    epsilons: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3)
    shown: float = 0.03  # epsilon of the figure
    runs: int = 200
    beta: float = 0.05
    seed: int = 20261121


@attrs.frozen(eq=False)
class Workload:
    """Programs over one table, with the exact optima. NOT PRIVATE."""

    label: str
    programs: LinearPrograms
    names: list[str | None]
    data: ic.PrivateData | None  # None: too many columns for a table of cells
    totals: np.ndarray
    threshold: float
    optima: np.ndarray
    scores: np.ndarray

    @property
    def first(self) -> int:
        """The first program whose optimum reaches the threshold."""
        return int(np.argmax(self.optima >= self.threshold))


def budgets(config: Config) -> list[Fraction]:
    """Return the candidate budgets, up to 1.2 of a full one."""
    return [Fraction(12 * step, 10 * config.candidates) for step in range(1, config.candidates + 1)]


def treatments(config: Config, count: int, seed: int) -> Workload:
    """Private objective: benefits 0 to 10 of `count` treatments."""
    generator = np.random.default_rng(seed)
    means = generator.uniform(0.25, 0.75, count)
    severity = generator.normal(0.0, 0.1, (config.n, 1))  # makes the scores of one patient alike
    records = generator.binomial(10, np.clip(means + severity, 0.0, 1.0))
    hours = generator.integers(2, 10, (3, count))  # nurses, doctors, beds per patient
    matrix = [*hours.tolist(), [1] * count, *np.eye(count, dtype=int).tolist()]
    full = [12, 12, 12]
    programs = LinearPrograms(
        matrix=matrix,
        right_hand_sides=[[share * one for one in full] + [2] + [1] * count for share in budgets(config)],
        lower=[0] * count,
        upper=[10] * count,
        n=config.n,
    )
    data, names = None, [f"benefit_{place}" for place in range(count)]
    if 11**count <= ic.data.MAX_CELLS:
        domain = ic.Domain.of({name: range(11) for name in names})
        data = ic.PrivateData.from_records(dict(zip(names, records.T, strict=True)), domain)
    return workload(f"{count} treatments", programs, names, data, records.sum(axis=0))


def services(config: Config, count: int, seed: int) -> Workload:
    """Private right-hand sides: which of `count` services each person needs."""
    generator = np.random.default_rng(seed)
    records = (generator.random((config.n, count)) < generator.uniform(0.05, 0.6, count)).astype(np.int64)
    costs = generator.integers(2, 10, (2, count))  # staff, money per service
    full = records.mean(axis=0) @ costs.T
    public = [int(one) for one in full]  # about what all needs together cost
    programs = LinearPrograms(
        matrix=[*np.eye(count, dtype=int).tolist(), *costs.tolist()],
        right_hand_sides=[[0] * count + [share * one for one in public] for share in budgets(config)],
        lower=[0] * (count + 2),
        upper=[1] * count + [0, 0],
        n=config.n,
        objective=generator.integers(1, 10, count).tolist(),
    )
    columns = [f"need_{place}" for place in range(count)]
    domain = ic.Domain.of({name: range(2) for name in columns})
    data = ic.PrivateData.from_records(dict(zip(columns, records.T, strict=True)), domain)
    totals = np.append(records.sum(axis=0), [0, 0])
    return workload(f"{count} services", programs, [*columns, None, None], data, totals)


def workload(
    label: str,
    programs: LinearPrograms,
    names: list[str | None],
    data: ic.PrivateData | None,
    totals: np.ndarray,
) -> Workload:
    """Add the exact optima and a threshold, half of the largest."""
    optima = np.array([float(value) for value in programs.optima(totals)])
    threshold = round(float(optima[-1]) / 2, 1)
    scores = programs.scores(totals, threshold)
    return Workload(label, programs, names, data, totals, threshold, optima, scores)


Way = Callable[[Workload, float, SimulatedNoise], int | None]


def by_sparse(work: Workload, epsilon: float, noise: SimulatedNoise) -> int | None:
    """Return the first program that Sparse finds above."""
    found = Sparse(epsilon, 0, 1, allocation="optimal").select(work.scores, noise)
    return found[0] if found else None


def by_noisy_optima(work: Workload, epsilon: float, noise: SimulatedNoise) -> int | None:
    """Return the first optimum above, each with Laplace noise at epsilon/K."""
    scale = scale_at_least(Fraction(len(work.scores)) / Fraction(epsilon))
    above = np.flatnonzero(work.scores + noise.discrete_laplace(scale, len(work.scores)) >= 0)
    return int(above[0]) if len(above) else None


def by_noisy_means(work: Workload, epsilon: float, noise: SimulatedNoise) -> int | None:
    """Return the first program above, solved from noisy column sums: optima grow, so bisection finds it."""
    programs = work.programs
    low, high = np.array(programs.lower), np.array(programs.upper)
    scale = scale_at_least(Fraction(int((high - low).sum())) / Fraction(epsilon))  # L1 of one record
    private = high > low
    noisy = work.totals.astype(float)
    noisy[private] += noise.discrete_laplace(scale, int(private.sum()))
    means = np.clip(noisy / programs.n, low, high)
    matrix = np.array(programs.matrix, dtype=float)
    sides = np.array(programs.right_hand_sides, dtype=float)

    def reaches(place: int) -> bool:
        if programs.objective is None:  # public numbers from here on: a float solver will do
            reached = linprog(-means, A_ub=matrix, b_ub=sides[place])
        else:
            weights = np.array(programs.objective, dtype=float)
            reached = linprog(-weights, A_ub=matrix, b_ub=sides[place] + means)
        return -reached.fun >= work.threshold

    below, above = -1, len(sides)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if reaches(middle) else (middle, above)
    return above if above < len(sides) else None


WAYS: dict[str, Way] = {
    "Sparse": by_sparse,
    "noisy optima": by_noisy_optima,
    "noisy means": by_noisy_means,
}


def measured(work: Workload, way: str, epsilon: float, config: Config, seed: int) -> dict:
    """Return how far the first hit is from the first program that is above, over all runs."""
    noise = SimulatedNoise(seed)
    hits = [WAYS[way](work, epsilon, noise) for _ in range(config.runs)]
    last = len(work.optima) - 1  # no hit counts as the last program
    places = np.array([last if hit is None else hit for hit in hits])
    errors = np.abs(work.optima[places] - work.threshold)
    return {
        "way": way,
        "epsilon": epsilon,
        "error": float(np.quantile(errors, 0.95)),
        "median": float(np.median(errors)),
        "steps": float(np.mean(np.abs(places - work.first))),
        "exact": float(np.mean(places == work.first)),
        "none": float(np.mean([hit is None for hit in hits])),
        "hits": np.bincount(places, minlength=len(work.optima)).tolist() if epsilon == config.shown else None,
        "seed": seed,
    }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(n=2_000, candidates=30, epsilons=(0.2,), shown=0.2, runs=10) if quick else Config()
    makers = [
        (treatments, 5),
        (services, 6 if quick else 12),
        (treatments, 8 if quick else 30),
    ]
    drawn = seeds(config.seed, len(makers) * (1 + len(WAYS) * len(config.epsilons)))
    rows = []
    for make, count in makers:
        began = time.perf_counter()
        work = make(config, count, drawn.pop())
        opened = time.perf_counter() - began
        if work.data is not None:  # what a user calls gives what is measured below
            first, second = SimulatedNoise(config.seed), SimulatedNoise(config.seed)
            found = linear_programs_above(
                work.data, work.names, work.programs, work.threshold, config.shown, noise=first
            )
            assert found.above[:1] == (by_sparse(work, config.shown, second),)
        sparse = {epsilon: Sparse(epsilon, 0, 1, allocation="optimal") for epsilon in config.epsilons}
        units = np.array([float(unit) for unit in work.programs.units])
        rows.append(
            {
                "workload": work.label,
                "optima": work.optima.round(6).tolist(),
                "units": units.round(9).tolist(),
                "threshold": work.threshold,
                "first": work.first,
                "seconds": round(opened, 2),
                "radius": {
                    str(epsilon): one.radius(len(units), config.beta) + 1 for epsilon, one in sparse.items()
                },
                "book": {
                    str(epsilon): sparse_alpha(1, len(units), epsilon, 0.0, config.beta) + 1
                    for epsilon in sparse
                },
                "ways": [
                    measured(work, way, epsilon, config, drawn.pop())
                    for epsilon in config.epsilons
                    for way in WAYS
                ],
            }
        )
        print(work.label, f"{time.perf_counter() - began:.1f} s", flush=True)
    return stamped(config, start, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, way = Config(), next(iter(WAYS))
    drawn = seeds(config.seed, 3 * (1 + len(WAYS) * len(config.epsilons)))
    work = treatments(config, 5, drawn.pop())
    return {"rows/0/ways/0": measured(work, way, config.epsilons[0], config, drawn.pop())}


def table(result: dict) -> str:
    lines = [
        "| programs | epsilon | alpha | error: Sparse | error: noisy optima | error: noisy means "
        "| exact budget | no hit |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        unit = row["units"][row["first"]]
        for epsilon in result["config"]["epsilons"]:
            found = [
                next(o for o in row["ways"] if (o["way"], o["epsilon"]) == (way, epsilon)) for way in WAYS
            ]
            shares = ", ".join(f"{100 * one['exact']:.0f}" for one in found)
            none = ", ".join(f"{100 * one['none']:.0f}" for one in found)
            lines.append(
                f"| {row['workload']} | {epsilon} | {row['radius'][str(epsilon)] * unit:.3f} | "
                + " | ".join(f"{one['error']:.3f}" for one in found)
                + f" | {shares} % | {none} % |"
            )
    notes = [
        f"{row['workload']}: optima {row['optima'][0]:.2f} to {row['optima'][-1]:.2f}, threshold "
        f"{row['threshold']}, reached by budget {row['first'] + 1} of {len(row['optima'])} with "
        f"{row['optima'][row['first']]:.3f} (before it {row['optima'][row['first'] - 1]:.3f}), moved "
        f"by one record by {row['units'][row['first']]:.2e} at most."
        for row in result["rows"]
    ]
    return "\n".join(
        [
            *lines,
            "",
            "Error: 95 % quantile over the runs of |optimum of the budget found - threshold|, no hit counted "
            "as the last budget; alpha: the radius that Sparse states at 95 %, at the first budget above; "
            "the last two columns in the order of the ways. " + " ".join(notes),
        ]
    )


COLOURS = {"Sparse": "#0072B2", "noisy optima": "#D55E00", "noisy means": "#009E73"}


def figure(result: dict, path: Path) -> None:
    """Draw optima with their band and where the hits fall, and errors against epsilon; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(12.5, 6.4), layout="constrained")
    panels = canvas.subplots(2, len(result["rows"]), squeeze=False)
    shown = result["config"]["shown"]
    for place, row in enumerate(result["rows"]):
        axes = panels[0][place]
        optima, units = np.array(row["optima"]), np.array(row["units"])
        budget = 1.2 * np.arange(1, len(optima) + 1) / len(optima)
        band = row["radius"][str(shown)] * units
        axes.fill_between(
            budget, optima - band, optima + band, color="#0072B2", alpha=0.2, lw=0, label="alpha"
        )
        axes.plot(budget, optima, color="black", lw=1.2, label="exact optimum")
        axes.axhline(row["threshold"], color="grey", ls="--", lw=0.8, label="threshold")
        axes.set_title(f"{row['workload']}, epsilon {shown}", fontsize=10)
        axes.set_xlim(0, 2 * budget[row["first"]])
        axes.set_ylim(0, 2 * row["threshold"])
        axes.set_xlabel("budget, share of a full one")
        twin = axes.twinx()
        for one in row["ways"]:
            if one["hits"] is not None:
                hits = np.array(one["hits"]) / sum(one["hits"])
                twin.step(budget, hits, where="mid", color=COLOURS[one["way"]], lw=1.4, label=one["way"])
        twin.set_ylim(0, 1.0)
        twin.set_yticks([0, 0.25, 0.5])
        if place == 0:
            axes.set_ylabel("optimum")
            axes.legend(fontsize=7, loc="upper left")
            twin.legend(
                fontsize=7,
                loc="center left",
                bbox_to_anchor=(0.0, 0.58),
                title="first hits",
                title_fontsize=7,
            )
        if place == len(result["rows"]) - 1:
            twin.set_ylabel("share of runs")
        axes = panels[1][place]
        epsilons = result["config"]["epsilons"]
        for way, colour in COLOURS.items():
            errors = [one["error"] for one in row["ways"] if one["way"] == way]
            style = "s--" if way == "noisy means" else "o-"  # they can coincide
            axes.plot(epsilons, errors, style, color=colour, ms=4, lw=1.4, label=way)
        unit = units[row["first"]]
        for name, style in (("radius", "-"), ("book", ":")):
            limit = [row[name][str(epsilon)] * unit for epsilon in epsilons]
            label = "alpha" if name == "radius" else "alpha of the book"
            axes.plot(epsilons, limit, color="#0072B2", ls=style, lw=0.8, alpha=0.6, label=label)
        grid = row["optima"][row["first"]] - row["threshold"]
        axes.axhline(grid, color="grey", ls="--", lw=0.8, label="first budget above")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(epsilons, [str(epsilon) for epsilon in epsilons])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("epsilon")
        if place == 0:
            axes.set_ylabel("95 % quantile of |optimum - threshold|")
            canvas.legend(*axes.get_legend_handles_labels(), fontsize=8, ncols=6, loc="outside lower center")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
