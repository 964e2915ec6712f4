"""What a wish costs: budget spent against questions asked, for certain and expected wishes.

    python experiments/within.py [--quick] [--from-json]

Random ranges of the shipped table, and of a made one of five attributes in a chain; questions about five of
the fourteen attributes of Adult, and triples of all of them: asked one at a time of a session with a wish,
at (1, 1e-9). Beside it stand plain noise, which measures each new question at the wish, and the same
questions in one call, which is fixed before anything is bought. Errors and bounds are compared with the
exact answers. Simulated noise: NOT PRIVATE.
Writes results/within.json; the markdown table and the figure are made from that file alone.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from listening import LONG, SIZES, of_five
from listening import Config as Streams
from study.outcome import script, seeds, stamped
from study.sources import Stream, present, stream_of
from study.streams import Sizes, budget_of, makers

import onlineic as ic
from onlineic.evaluate import exact_values
from onlineic.ledger import BoughtTables, Certified, Hard
from onlineic.noise import SimulatedNoise
from onlineic.queries import Within

NAME = "within"
LOOKS = (1, 10, 100, 1_000)


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence, and are the same for all wishes."""

    queries: int = 1_000
    triples: int = 300
    wishes: tuple[float, ...] = (0.02, 0.01, 0.005)
    runs: int = 2
    seed: int = 20261129


def streams_of(config: Config, absent: list[str]) -> Iterator[Stream]:
    """Yield the streams whose table is there, each under its name."""
    made = makers(Sizes(queries=config.queries, made=config.queries))
    found: dict[str, Callable[[], Stream]] = {label: made[label] for label in ("adult5", "chain of 5")}
    found["five of 14"] = partial(of_five, None, Streams(few=config.queries))
    found["triples of 14"] = partial(triples, config)
    yield from present(found, absent)


def triples(config: Config) -> Stream:
    """Return conditions on three of Adult's fourteen attributes: ranges of numbers, labels of others."""
    data, generator, asked = of_five(None, Streams(few=0)).data, np.random.default_rng(config.seed), []
    for _ in range(config.triples):
        conditions: dict[str, Any] = {}
        for name in generator.choice(data.domain.names, 3, replace=False).tolist():
            low, high = sorted(generator.integers(0, SIZES[name], 2).tolist())
            conditions[name] = ic.between(low, high) if name in LONG else low
        asked.append(ic.where(conditions))
    return stream_of("triples of 14", data, asked)


def spent(session: ic.OnlineIC) -> float:
    """Return the part of the budget that is used up."""
    return float(session.account.spent / session.account.capacity)


def followed(stream: Stream, wish: Within, seed: int) -> dict[str, Any]:
    """Return what one session spent and erred by along the stream. NOT PRIVATE."""
    began = time.process_time()
    session = ic.OnlineIC(stream.data, budget_of(stream), within=wish, noise=SimulatedNoise(seed))
    truths, along, errors, bounds, statuses = exact_values(stream.data, stream.queries), [], [], [], []
    for count, (query, truth) in enumerate(zip(stream.queries, truths, strict=True), 1):
        answer = session.answer(query)
        errors.append(abs(answer.value - truth))
        bounds.append(answer.error_bound)
        statuses.append((answer.status, answer.reason))
        if count in LOOKS or count == len(truths):
            along.append({"asked": count, "spent": spent(session)})
    new = ic.OnlineIC(stream.data, budget_of(stream), within=wish, noise=SimulatedNoise(seed))
    number = next(
        one.at_most for query in stream.queries for one in new.explain(query).prices if one.way == "number"
    )
    at_once = ic.OnlineIC(stream.data, budget_of(stream), noise=SimulatedNoise(seed))
    at_once.answer_many(stream.queries, within=wish)
    fresh = [place for place, (status, _) in enumerate(statuses) if status != "repeat"]
    met = np.array(errors) <= wish.radius
    records = [*session.transcript]
    return {
        "along": along,
        "plain": number * len({query.bind(stream.data.domain).key for query in stream.queries}),
        "one_call": spent(at_once),
        "within": float(met.mean()),
        "outside": float(np.mean([errors[place] > bounds[place] for place in fresh])),
        "wide": sum(reason == "budget" for _, reason in statuses),
        "numbers": sum(status == "hard" for status, _ in statuses),
        "certified": sum(isinstance(record, Certified) for record in records),
        "hits": sum(isinstance(record, Hard) for record in records),
        "purchases": sum(isinstance(record, BoughtTables) for record in records),
        "seconds": time.process_time() - began,
    }


def row_of(stream: Stream, wish: Within, config: Config) -> dict[str, Any]:
    """Return what sessions of all seeds did with one wish."""
    found = [followed(stream, wish, seed) for seed in seeds(config.seed, config.runs)]
    row = {"stream": stream.label, "wish": wish.radius, "certain": wish.certain, "runs": found}
    return row | {"seconds": sum(one["seconds"] for one in found)}


def run(quick: bool) -> dict[str, Any]:
    """Return the result: a row for every stream and wish."""
    start = time.perf_counter()
    config = Config(queries=20, triples=20, wishes=(0.02,), runs=1) if quick else Config()
    absent: list[str] = []
    rows = [
        row_of(stream, Within(radius, certain=certain), config)
        for stream in streams_of(config, absent)
        for radius in config.wishes
        for certain in (True, False)
    ]
    return stamped(config, start, absent, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    stream = next(streams_of(config, []))
    found = followed(stream, Within(config.wishes[0], certain=False), seeds(config.seed, config.runs)[0])
    found.pop("seconds")
    return {"rows/1/runs/0": found}


def mean(row: dict[str, Any], name: str) -> float:
    """Return the mean over the runs."""
    return float(np.mean([one[name] for one in row["runs"]]))


def plain(result: dict[str, Any], row: dict[str, Any]) -> float:
    """Return what noise costs that measures each new question at the wish for certain."""
    alike = (one for one in result["rows"] if (one["stream"], one["wish"]) == (row["stream"], row["wish"]))
    return mean(next(one for one in alike if one["certain"]), "plain")


def table(result: dict[str, Any]) -> str:
    """Return what each wish has spent, with what it spent it on."""
    lines = [
        "| stream | wish | 1 | 10 | 100 | all | plain noise | one call | certified by tests | hits | within "
        "| outside of bounds |",
        "|" + "---|" * 12,
    ]
    for row in result["rows"]:
        looks = [
            float(np.mean([run["along"][min(place, len(run["along"]) - 1)]["spent"] for run in row["runs"]]))
            for place in range(4)
        ]
        wish = f"{row['wish']:.2%}".replace(".00%", "%") + (", certain" if row["certain"] else ", expected")
        cells = " | ".join(f"{one:.4f}" if one < 0.01 else f"{one:.3f}" for one in looks)
        lines.append(
            f"| {row['stream']} | {wish} | {cells} | {plain(result, row):.2f} | {mean(row, 'one_call'):.3f} "
            f"| {mean(row, 'certified'):.0f} | {mean(row, 'hits'):.0f} | {mean(row, 'within'):.3f} "
            f"| {mean(row, 'outside') if row['certain'] else float('nan'):.3f} |"
        )
    return "\n".join([*lines, "", "Parts of the budget after so many questions, one at a time."])


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw what is spent against questions, a panel a stream; needs matplotlib."""
    from matplotlib.figure import Figure

    names = [*dict.fromkeys(row["stream"] for row in result["rows"])]
    wishes = sorted({row["wish"] for row in result["rows"]}, reverse=True)
    colours = dict(zip(wishes, ("#009E73", "#0072B2", "#D55E00"), strict=False))
    canvas = Figure(figsize=(3.2 * len(names), 3.4), layout="constrained")
    for place, (axes, name) in enumerate(
        zip(canvas.subplots(1, len(names), squeeze=False)[0], names, strict=True)
    ):
        for row in (one for one in result["rows"] if one["stream"] == name):
            asked = [look["asked"] for look in row["runs"][0]["along"]]
            used = np.mean([[look["spent"] for look in run["along"]] for run in row["runs"]], axis=0)
            kind = "certain" if row["certain"] else "expected"
            axes.plot(
                asked, used, "-" if row["certain"] else "--", marker="o", markersize=3,
                color=colours[row["wish"]], label=None if place else f"{row['wish']:.1%}, {kind}",
            )  # fmt: skip
            if row["certain"]:
                axes.plot(asked[-1], plain(result, row), "x", color=colours[row["wish"]])
        axes.set(xscale="log", yscale="log")
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("questions asked, one at a time", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.axhline(1.0, color="#777777", linewidth=0.8)
    canvas.axes[0].set_ylabel("part of the budget (x: plain noise)", fontsize=8)
    canvas.legend(loc="outside upper center", fontsize=8, ncols=3)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
