"""Persons with many rows, and sums of real numbers: errors of sessions on tables that are loaded in parts.

    python experiments/persons.py [--quick] [--from-json]

Made tables at (1, 1e-6). First 5,000 persons with a heavy tail of rows over 40 cells: the shares of all
cells, as means over persons, by a session on persons (`Unit`), by sessions on at most k rows of each that
are told k, and by one on all rows that is told the largest number; beside it one noisy histogram of
persons by Gaussian noise. Then ten questions of a clinic whose 20,000 patients have 1 to 9 visits, over
the error of Gaussian noise that was told the ten: by a session that was told nothing, by one that was told
of which attributes the ten are, and by one that was told nothing of patients who have one visit each, whose
records need no unit. Then the sum of a log-normal cost over 50,000 records,
as a number with two ends a bin and in seven bins, which midpoints stand for. Then 1,000 ranges over five
attributes of Adult at (1, 1e-9), whole sessions: with one record replaced, added or removed, and each row
a person of 64 parts; beside it the noise that their plans give a first table and a test. Then the sum of
19 empty groups at epsilon .1. Simulated noise: NOT PRIVATE.
Writes results/persons.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped

import onlineic as ic
from onlineic.accounting import gaussian_mu
from onlineic.datasets import adult5, adult5_domain
from onlineic.noise import SimulatedNoise

NAME = "persons"
CELLS, WARDS = 40, ["ER", "ICU", "Surgery", "Internal", "Paediatrics"]
EDGES = [0, 5_000, 10_000, 20_000, 30_000, 50_000, 100_000, 500_000]


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    persons: int = 5_000
    patients: int = 20_000
    records: int = 50_000
    most: tuple[int, ...] = (2, 10, 50)
    epsilon: float = 1.0
    delta: float = 1e-6
    ranges: int = 1_000
    runs: int = 8
    seed: int = 20261126


def rms(errors: Any) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def sessions(
    config: Config, data: ic.PrivateData, ask: Callable[[ic.OnlineIC], Any], **options: Any
) -> list[Any]:
    """Return what is asked of a session for every seed."""
    budget = ic.Budget(config.epsilon, config.delta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of wide bounds
        return [
            ask(ic.OnlineIC(data, budget, noise=SimulatedNoise(seed), **options))
            for seed in seeds(config.seed, config.runs)
        ]


def many_rows(config: Config) -> list[dict[str, Any]]:
    """Return errors of all cells, in persons, for every way to bound what a person does."""
    draw, m = np.random.default_rng(config.seed), config.persons
    rows = np.minimum(1 + np.floor(draw.pareto(1.2, m)).astype(int), 200)
    homes = draw.dirichlet(np.full(CELLS, 0.3), m)
    held = np.array([draw.multinomial(many, home) for many, home in zip(rows, homes, strict=True)])
    truth = m * (held / rows[:, None]).mean(axis=0)
    person, cell = np.nonzero(held)
    owner, codes = np.repeat(person, held[person, cell]), np.repeat(cell, held[person, cell])
    domain = ic.Domain.of(cell=CELLS)
    unit = ic.PrivateData.from_records({"id": owner, "cell": codes}, domain, unit=ic.Unit("id"))

    def cells(session: ic.OnlineIC) -> Any:
        return m * np.asarray(session.answer(ic.marginal("cell")).value) - truth

    found = [{"way": "persons, weighed (`Unit`)", "rms": rms(sessions(config, unit, cells))}]
    order = draw.permutation(len(owner))
    place = np.empty(len(owner), int)
    for most in (*config.most, int(rows.max())):
        by_owner = order[np.argsort(owner[order], kind="stable")]
        starts = np.concatenate([[0], np.cumsum(rows)[:-1]])
        place[by_owner] = np.arange(len(owner)) - np.repeat(starts, rows)
        kept = place < most
        data = ic.PrivateData.from_records({"cell": codes[kept]}, domain)
        errors = sessions(config, data, cells, rows_per_person=most)
        told = f"at most {most} rows of each" if most < rows.max() else f"all rows, told {most}"
        found.append({"way": told, "rms": rms(errors)})
    sigma = math.sqrt(2) / gaussian_mu(config.epsilon, config.delta)
    return [*found, {"way": "one noisy histogram of persons", "rms": sigma}]


TOLD = (
    ("readmitted",), ("ward",), ("age", "sex", "ward"), ("age", "ward"), ("month",), ("icd",),
    ("icd", "sex"), ("month", "ward"), ("sex", "ward"),
)  # fmt: skip


def clinic(config: Config) -> list[dict[str, Any]]:
    """Return errors of ten questions over those of Gaussian noise that was told the ten, for persons."""
    return [
        {"way": "told nothing", **ten_questions(config, 9)},
        {"way": "told of which attributes the ten are", **ten_questions(config, 9, questions=TOLD)},
        {"way": "told nothing, one visit each, no unit", **ten_questions(config, 1)},
    ]


def ten_questions(config: Config, most: int, **options: Any) -> dict[str, Any]:
    """Return the errors over the rival's, of patients with at most so many visits each."""
    draw, m = np.random.default_rng(config.seed + 1), config.patients
    visits = draw.integers(1, most + 1, m)
    owner = np.repeat(np.arange(m), visits)
    many = len(owner)
    columns = {
        "month": draw.integers(0, 24, many),
        "age": np.clip(draw.normal(52, 22, m), 0, 101).round().astype(int)[owner],
        "sex": draw.choice(["F", "M"], m)[owner],
        "ward": draw.choice(WARDS, many, p=[0.4, 0.05, 0.2, 0.3, 0.05]),
        "icd": draw.integers(0, 11, many),
        "readmitted": draw.random(many) < 0.13,
    }
    kinds = {"month": 24, "age": range(111), "sex": ["F", "M"], "ward": WARDS, "icd": 11}
    domain = ic.Domain.of(**kinds, readmitted=[False, True])
    if most > 1:
        data = ic.PrivateData.from_records({"id": owner, **columns}, domain, unit=ic.Unit("id"))
    else:
        data = ic.PrivateData.from_records(columns, domain)
    weight = 1.0 / visits[owner]

    def table(*names: str) -> Any:
        codes = tuple(domain.project(name).encode({name: columns[name]})[:, 0] for name in names)
        counts = np.zeros([domain.attribute(name).size for name in names])
        np.add.at(counts, codes, weight)
        return counts

    emergency = columns["ward"] == "ER"
    old = (columns["sex"] == "F") & (columns["age"] >= 65) & emergency
    conditions = [(ic.where(readmitted=True), columns["readmitted"]), (ic.where(ward="ER"), emergency)]
    conditions += [(ic.where(sex="F", age=ic.at_least(65), ward="ER"), old)]
    tables = [("ward",), ("month",), ("icd",), ("sex", "icd"), ("month", "ward"), ("ward", "sex")]

    def ask(session: ic.OnlineIC) -> list[float]:
        counts = [abs(session.answer(condition).count - weight[met].sum()) for condition, met in conditions]
        mean = session.mean("age", ic.where(ward="ER")).value
        of_age = abs(mean - (columns["age"] * weight)[emergency].sum() / weight[emergency].sum())
        worst = [
            float(np.abs(m * np.asarray(session.answer(ic.marginal(*names)).value) - table(*names)).max())
            for names in tables
        ]
        return [*counts, of_age, *worst]

    errors = np.mean(sessions(config, data, ask, **options), axis=0)
    sigma = math.sqrt(2 * 11) / gaussian_mu(config.epsilon, config.delta)  # a mean is a sum and a count
    sample = np.abs(np.random.default_rng(1).normal(size=(4_000, 240)))

    def told(cells: int) -> float:
        return float(sigma * sample[:, :cells].max(axis=1).mean())

    rival = [told(1)] * 3 + [111 / 2 * told(1) / weight[emergency].sum()]
    rival += [told(int(np.prod([domain.attribute(name).size for name in names]))) for names in tables]
    ratios = errors / np.array(rival)
    return {"ratio": float(np.exp(np.log(ratios).mean())), "ratios": ratios.tolist()}


def sums(config: Config) -> list[dict[str, Any]]:
    """Return errors of the sum and the mean of a log-normal cost, relative."""
    draw = np.random.default_rng(config.seed + 2)
    cost, high = draw.lognormal(8.0, 1.2, config.records), 50_000
    sexes = draw.choice(["F", "M"], config.records)
    ages = draw.integers(0, 90, config.records)
    kinds = {
        "number(0, 50_000)": (ic.number(0, high), np.minimum(cost, high)),
        "number(0, 50_000, bins=16)": (ic.number(0, high, bins=16), np.minimum(cost, high)),
        "binned, seven bins": (ic.binned(EDGES, clip=True), cost),
    }
    found = []
    for way, (kind, values) in kinds.items():
        domain = ic.Domain.of(cost=kind, sex=["F", "M"], age=range(90))
        data = ic.PrivateData.from_records({"cost": cost, "sex": sexes, "age": ages}, domain)
        women = values[sexes == "F"].mean()
        pairs = sessions(
            config,
            data,
            lambda session: (session.sum("cost").value, session.mean("cost", ic.where(sex="F")).value),
        )
        errors = np.array(pairs) / [values.sum(), women] - 1.0
        found.append({"way": way, "sum": rms(errors[:, 0]), "mean": rms(errors[:, 1])})
    sigma = 1.0 / gaussian_mu(config.epsilon, config.delta)
    alone = high * sigma / np.minimum(cost, high).sum()
    return [*found, {"way": "Gaussian noise, told this one question", "sum": float(alone), "mean": None}]


def relations(config: Config) -> list[dict[str, Any]]:
    """Return rms errors of ranges over five attributes of Adult, in records, for each relation of tables."""
    columns, counts = adult5()
    domain = adult5_domain()
    coded = domain.encode(columns)
    draw = np.random.default_rng(config.seed + 3)
    queries, truth = [], []
    for _ in range(config.ranges):
        met, held = np.ones(len(counts), bool), {}
        for axis in draw.choice(len(domain.names), draw.integers(1, 4), replace=False):
            ends = np.sort(draw.integers(0, domain.shape[axis], 2))
            inside = np.arange(domain.shape[axis])
            inside = (inside >= ends[0]) & (inside <= ends[1])
            held[domain.names[axis]] = ic.weights(inside.astype(float))
            met &= inside[coded[:, axis]]
        queries.append(ic.where(held))
        truth.append(int(counts[met].sum()))
    rows = {name: np.repeat(np.asarray(column), counts) for name, column in columns.items()}
    loads = {
        "one record replaced": {},
        "one record added or removed": {"neighbours": "add-remove"},
        "one person of one row replaced, 64 parts": {"unit": ic.Unit("id")},
        "one person of one row added or removed, 64 parts": {
            "unit": ic.Unit("id"),
            "neighbours": "add-remove",
        },
    }
    found = []
    for way, load in loads.items():
        data = ic.PrivateData.from_records({**rows, "id": np.arange(int(counts.sum()))}, domain, **load)
        sharper, plans = attrs.evolve(config, delta=1e-9), []

        def ask(session: ic.OnlineIC, plans: list[ic.plan.Plan] = plans) -> list[float]:
            plans.append(session.plan)
            answers = session.answer_many(queries)
            return [one.count - exact for one, exact in zip(answers, truth, strict=True)]

        errors = sessions(sharper, data, ask)
        plan, parts = plans[0], 64 if "unit" in load else 1
        scales = [] if plan.first_tables is None else [float(one) / parts for one in plan.first_tables.scales]
        found.append(
            {
                "way": way,
                "rms": rms(errors),
                "each": [rms(one) for one in errors],
                "table": min(scales, default=None),
                "test": float(plan.sparse.scale) / (1 << plan.sparse.grid_bits) / parts,
            }
        )
    return found


def empty(config: Config) -> list[dict[str, Any]]:
    """Return the count of 19 groups of nobody beside six of many, added up over the groups."""
    draw = np.random.default_rng(config.seed + 4)
    columns = {"group": draw.integers(0, 6, config.persons), "sex": draw.choice(["F", "M"], config.persons)}
    data = ic.PrivateData.from_records(columns, ic.Domain.of(group=25, sex=["F", "M"]))
    weak = attrs.evolve(config, epsilon=0.1, runs=4 * config.runs)
    pairs = sessions(
        weak,
        data,
        lambda session: [
            session.group_by("group", unbiased=unbiased).values[6:].sum() for unbiased in (False, True)
        ],
    )
    ways = ["as the fit says, never below 0", "by `unbiased=True`"]
    return [
        {"way": way, "mean": float(np.mean(sums)), "rms": rms(sums)}
        for way, sums in zip(ways, np.array(pairs).T, strict=True)
    ]


def run(quick: bool) -> dict:
    start = time.perf_counter()
    small = Config(persons=500, patients=8_000, records=2_000, most=(2,), ranges=20, runs=1)
    config = small if quick else Config()
    return stamped(
        config,
        start,
        rows=many_rows(config),
        clinic=clinic(config),
        sums=sums(config),
        relations=relations(config),
        empty=empty(config),
    )


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    return {"empty": empty(Config())}


def table(result: dict) -> str:
    lines = ["| 40 cells, error in persons | rms |", "|---|---|"]
    lines += [f"| {row['way']} | {row['rms']:.3g} |" for row in result["rows"]]
    lines += ["", "| cost | sum, relative | mean of women, relative |", "|---|---|---|"]
    for row in result["sums"]:
        mean = "" if row["mean"] is None else f"{row['mean']:.2%}"
        lines.append(f"| {row['way']} | {row['sum']:.2%} | {mean} |")
    lines += ["", "| 1,000 ranges of Adult, in records | rms error | noise of a table | of a test |"]
    lines += ["|---|---|---|---|"]
    for row in result["relations"]:
        noise = "" if row["table"] is None else f"{row['table']:.3g}"
        lines.append(f"| {row['way']} | {row['rms']:.3g} | {noise} | {row['test']:.3g} |")
    lines += ["", "| ten questions about patients | times the error of Gaussian noise that was told them |"]
    lines += ["|---|---|"]
    lines += [f"| {row['way']} | {row['ratio']:.2f} |" for row in result["clinic"]]
    lines += ["", "| 19 groups of nobody, added up, epsilon .1 | mean | rms |", "|---|---|---|"]
    lines += [f"| {row['way']} | {row['mean']:.3g} | {row['rms']:.3g} |" for row in result["empty"]]
    runs = result["config"]["runs"]
    return "\n".join([*lines, "", f"{runs} sessions each; ten questions by their geometric mean."])


def figure(result: dict, path: Path) -> None:
    """Draw the errors of all cells, a bar for every way; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = canvas.add_subplot()
    ways = [row["way"] for row in result["rows"]]
    axes.barh(range(len(ways)), [row["rms"] for row in result["rows"]], 0.6, color="#0072B2")
    axes.set_yticks(range(len(ways)), ways)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("rms error of 40 cells, persons")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
