"""What `forecast` tells of a study with a wish, beside what a session then spends.

    python experiments/study_costs.py [--quick] [--from-json]

Random ranges of the shipped table, and of a made one of five attributes in a chain, whose attributes hold
together far more than those of people do: one at a time, and in one call, at (1, 1e-9). The forecast sees the
list and the domain, and no data. Simulated noise: NOT PRIVATE.
Writes results/study_costs.json; the markdown table and the figure are made from that file alone.
"""

import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import Stream
from study.streams import Sizes, budget_of, makers

import onlineic as ic
from onlineic.noise import SimulatedNoise
from onlineic.queries import Within

NAME = "study_costs"
LOOKS = (10, 100, 300)
LABELS = ("adult5", "chain of 5")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence, and are the same for all wishes."""

    queries: int = 300
    wishes: tuple[float, ...] = (0.02, 0.01)
    runs: int = 2
    seed: int = 20261129


def stream_of(label: str, config: Config) -> Stream:
    """Return a stream under its name."""
    made = makers(Sizes(queries=config.queries, made=config.queries))
    return attrs.evolve(made[label](), label=label)


def spent(session: ic.OnlineIC) -> float:
    """Return the part of the budget that is used up."""
    return float(session.account.spent / session.account.capacity)


def row_of(stream: Stream, wish: Within, config: Config) -> dict[str, Any]:
    """Return the parts of the budget that were told, and those that sessions of all seeds spent."""
    told, alike = {}, {"within": wish}
    for look in LOOKS if len(stream.queries) >= LOOKS[-1] else LOOKS[:1]:
        asked = stream.queries[:look]
        (cost,) = ic.forecast(
            stream.data.domain, stream.data.n, budget_of(stream), questions=asked, **alike
        ).costs
        told[look] = cost
    one_by_one: dict[int, list[float]] = {look: [] for look in told}
    calls: list[float] = []
    for seed in seeds(config.seed, config.runs):
        session = ic.OnlineIC(stream.data, budget_of(stream), noise=SimulatedNoise(seed), **alike)
        for count, query in enumerate(stream.queries, 1):
            session.answer(query)
            if count in told:
                one_by_one[count].append(spent(session))
        call = ic.OnlineIC(stream.data, budget_of(stream), noise=SimulatedNoise(seed), **alike)
        call.answer_many(stream.queries)
        calls.append(spent(call))
    return {
        "stream": stream.label,
        "wish": wish.radius,
        "certain": wish.certain,
        "looks": [
            {"asked": look, "told": cost.part, "epsilon": cost.epsilon, "spent": one_by_one[look]}
            for look, cost in told.items()
        ],
        "call": {"epsilon": told[max(told)].at_once, "spent": calls},
    }


def run(quick: bool) -> dict[str, Any]:
    """Return the result: a row for every stream and wish."""
    start = time.perf_counter()
    config = Config(queries=10, wishes=(0.02,), runs=1) if quick else Config()
    rows = [
        row_of(stream_of(label, config), Within(radius, certain=certain), config)
        for label in (LABELS[:1] if quick else LABELS)
        for radius in config.wishes
        for certain in (True, False)
    ]
    return stamped(config, start, [], rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what a cheap row gives there now, for `make fresh`."""
    config = Config()
    (cost,) = ic.forecast(
        (stream := stream_of("adult5", config)).data.domain, stream.data.n, budget_of(stream),
        within=Within(0.02, certain=False), questions=stream.queries[:100],
    ).costs  # fmt: skip
    return {"rows/1/looks/1/told": cost.part}


def table(result: dict[str, Any]) -> str:
    """Return what was told and spent, in parts of the budget, and their ratio."""
    lines = [
        "| stream | wish | questions | told | spent | told / spent | epsilon told |",
        "|" + "---|" * 7,
    ]
    for row in result["rows"]:
        wish = f"{row['wish']:.2%}".replace(".00%", "%") + (", certain" if row["certain"] else ", expected")
        for look in row["looks"]:
            mean = float(np.mean(look["spent"]))
            lines.append(
                f"| {row['stream']} | {wish} | {look['asked']} | {look['told']:.4f} | {mean:.4f} "
                f"| {look['told'] / mean:.2f} | {look['epsilon']:.3f} |"
            )
        mean, epsilon = float(np.mean(row["call"]["spent"])), row["call"]["epsilon"]
        part = row["looks"][-1]["told"] * (epsilon / row["looks"][-1]["epsilon"]) ** 2
        lines.append(
            f"| {row['stream']} | {wish} | {row['looks'][-1]['asked']} in one call | {part:.4f} | {mean:.4f} "
            f"| {part / mean:.2f} | {epsilon:.3f} |"
        )
    return "\n".join([*lines, "", "Parts of the budget (1, 1e-9); of a call nearly so: epsilon squared."])


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw what was told against what was spent; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(4.6, 3.8), layout="constrained")
    axes = canvas.subplots()
    for label, mark, colour in zip(LABELS, "os", ("#0072B2", "#D55E00"), strict=True):
        looks = [look for row in result["rows"] if row["stream"] == label for look in row["looks"]]
        spent_then = [float(np.mean(look["spent"])) for look in looks]
        axes.plot(spent_then, [look["told"] for look in looks], mark, color=colour, label=label)
    ends = [3e-4, 1.0]
    axes.plot(ends, ends, color="#777777", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="part of the budget spent", ylabel="told beforehand")
    axes.grid(True, color="#DDDDDD", linewidth=0.6)
    axes.legend(fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
