"""Ten questions of an analyst on one budget: errors beside the bounds that the answers state.

    python experiments/ten_questions.py [--quick] [--from-json]

Three counts, two means, a sum, a quantile, a GROUP BY, a two-way table and a histogram of the five shipped
attributes of Adult (48,842 records) at (1, 1e-9): the questions of docs/analysts.md, asked of sessions that
differ in how many answers they are told will come. Of a table the error is that of its worst cell, of the
quantile how far its rank is off. Simulated noise: NOT PRIVATE.
Writes results/ten_questions.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import adult5_data

import onlineic as ic
from onlineic import between, marginal, where
from onlineic.datasets import adult5
from onlineic.noise import SimulatedNoise

NAME = "ten_questions"
QUESTIONS = (
    "women",
    "income above 50K",
    "women of 30 to 50",
    "mean age",
    "mean age of women",
    "sum of years of education",
    ".9 quantile of age, by its rank",
    "races: worst of five counts",
    "sex by income: worst of four",
    "ages: worst of 74",
)


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    told: tuple[int | None, ...] = (None, 100, 20)  # how many answers; None: not told
    epsilon: float = 1.0
    delta: float = 1e-9
    runs: int = 30
    seed: int = 20261122


@attrs.frozen(eq=False)
class People:
    """The rows of the table, for the exact values."""

    columns: dict[str, np.ndarray]
    counts: np.ndarray
    domain: ic.Domain

    def table(self, *names: str) -> np.ndarray:
        """Return exact counts, shape of the attributes."""
        codes = [
            [self.domain.attribute(name).code(name, label) for label in self.columns[name].tolist()]
            for name in names
        ]
        found = np.zeros([self.domain.attribute(name).size for name in names])
        np.add.at(found, tuple(map(np.array, codes)), self.counts)
        return found

    def exact(self) -> list[float]:
        """Return the exact values of the first six questions."""
        age, women = self.columns["age"], self.columns["sex"] == "Female"
        of_women = self.counts * women
        return [
            of_women.sum(),
            (self.counts * (self.columns["income"] == ">50K")).sum(),
            (of_women * (age >= 30) * (age <= 50)).sum(),
            (age * self.counts).sum() / self.counts.sum(),
            (age * of_women).sum() / of_women.sum(),
            (self.columns["education_num"] * self.counts).sum(),
        ]

    def rank_error(self, value: int, q: float) -> float:
        """Return how far the exact shares below and up to a value miss q."""
        age, n = self.columns["age"], self.counts.sum()
        below, up_to = (self.counts[age < value].sum() / n, self.counts[age <= value].sum() / n)
        return max(below - q, q - up_to, 0.0)


def ten(session: ic.OnlineIC, people: People) -> tuple[list[float], list[float]]:
    """Return errors and stated bounds of the ten answers."""
    n, women = people.counts.sum(), where(sex="Female")
    answers = session.answer_many([women, where(income=">50K"), where(sex="Female", age=between(30, 50))])
    numbers = [session.mean("age"), session.mean("age", women), session.sum("education_num")]
    rank, races = session.quantile("age", 0.9), session.group_by("race")
    two, ages = session.answer(marginal("sex", "income")), session.histogram("age")
    found = [*(answer.count for answer in answers), *(number.value for number in numbers)]
    errors = [
        *np.subtract(found, people.exact()),
        people.rank_error(rank.value, 0.9),
        abs(races.values - people.table("race")).max(),
        abs(two.count - people.table("sex", "income")).max(),
        abs(ages.values - people.table("age")).max(),
    ]
    bounds = [
        *(n * answer.error_bound for answer in answers),
        *(number.error_bound for number in numbers),
        rank.rank_error,
        races.error_bounds.max(),
        n * two.error_bound,
        ages.error_bounds.max(),
    ]
    return [float(error) for error in errors], [float(bound) for bound in bounds]


def rows_of(told: int | None, config: Config, data: ic.PrivateData, people: People) -> list[dict]:
    """Return error and bound of each question, for one length that is told."""
    budget = ic.Budget(config.epsilon, config.delta)
    options = {} if told is None else {"max_queries": told, "questions": told}
    runs = [
        ten(ic.OnlineIC(data, budget, noise=SimulatedNoise(seed), **options), people)
        for seed in seeds(config.seed, config.runs)
    ]
    errors, bounds = (np.array(part) for part in zip(*runs, strict=True))
    return [
        {
            "told": told,
            "question": question,
            "rms": math.sqrt((errors[:, place] ** 2).mean()),
            "largest": float(abs(errors[:, place]).max()),
            "bound": float(np.median(bounds[:, place])),
            "outside": int((abs(errors[:, place]) > bounds[:, place]).sum()),
        }
        for place, question in enumerate(QUESTIONS)
    ]


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(told=(None,), runs=2) if quick else Config()
    data = adult5_data()
    people = People(*adult5(), data.domain)
    rows = [row for told in config.told for row in rows_of(told, config, data, people)]
    return stamped(config, start, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, data = Config(), adult5_data()
    place = (len(config.told) - 1) * len(QUESTIONS)
    rows = rows_of(config.told[-1], config, data, People(*adult5(), data.domain))
    return {f"rows/{place + number}": row for number, row in enumerate(rows)}


def table(result: dict) -> str:
    told = result["config"]["told"]
    names = ["not told" if one is None else f"`questions={one}`" for one in told]
    lines = [
        "| question | " + " | ".join(f"{name}: error | largest | bound | outside" for name in names) + " |",
        "|" + "---|" * (4 * len(told) + 1),
    ]
    for question in dict.fromkeys(row["question"] for row in result["rows"]):
        held = [row for row in result["rows"] if row["question"] == question]
        cells = [
            f"{row['rms']:.3g} | {row['largest']:.3g} | {row['bound']:.3g} | {row['outside']}" for row in held
        ]
        lines.append(f"| {question} | {' | '.join(cells)} |")
    runs = result["config"]["runs"]
    return "\n".join(
        [*lines, "", f"Error: root mean square of {runs} sessions. Bound: median of those stated."]
    )


def figure(result: dict, path: Path) -> None:
    """Draw errors over stated bounds, a group of bars for every question; needs matplotlib."""
    from matplotlib.figure import Figure

    told, questions = result["config"]["told"], list(dict.fromkeys(row["question"] for row in result["rows"]))
    canvas = Figure(figsize=(8.0, 4.4), layout="constrained")
    axes = canvas.add_subplot()
    for place, (one, colour) in enumerate(zip(told, ["#0072B2", "#E69F00", "#009E73"], strict=False)):
        held = {row["question"]: row for row in result["rows"] if row["told"] == one}
        at = np.arange(len(questions)) + 0.25 * (place - (len(told) - 1) / 2)
        label = "length not told" if one is None else f"questions={one}"
        axes.barh(
            at, [held[q]["largest"] / held[q]["bound"] for q in questions], 0.22, color=colour, label=label
        )
        axes.plot(
            [held[q]["rms"] / held[q]["bound"] for q in questions], at, "|", color="black", markersize=8
        )
    axes.axvline(1.0, color="#555555", linewidth=1.0)
    axes.set_yticks(range(len(questions)), questions)
    axes.invert_yaxis()
    axes.set_xlabel("largest error (bar) and rms error (tick) over the stated bound")
    axes.legend(fontsize=8, loc="lower right")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
