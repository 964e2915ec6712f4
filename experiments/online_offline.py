"""What knowing the whole workload in advance is worth: the online default session against offline engines.

    python experiments/online_offline.py [--quick] [--from-json]

Offline: noisy tables of all attribute sets of the workload, and MWEM (Hardt, Ligett & McSherry 2012), which
sees all queries before it spends anything: in each round the worst answered query is chosen privately and
measured, and multiplicative weights replay all measurements; the answer is the average of the iterates. MWEM
is run with pure accounting and Laplace answers, and, more accurate at delta > 0, with the exponential
mechanism and Gaussian answers under zero-concentrated accounting (float noise in the choice: for this
comparison only).
Its number of rounds is chosen by looking at the result, which flatters it. All at (1, 1e-9): NOT PRIVATE.
Writes results/online_offline.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
from study.outcome import baselines, default_session, measured, script, seeds, stamped
from study.sources import Stream, adult_workload, nltcs, stream_of

import onlineic as ic
from onlineic._composition import zcdp_rho
from onlineic.evaluate import random_stream
from onlineic.hypothesis import Histogram, box_slices
from onlineic.mechanisms import NoisyMax
from onlineic.noise import SimulatedNoise, scale_at_least
from onlineic.tables import adult5

NAME = "online_offline"


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    epsilon: float = 1.0
    delta: float = 1e-9
    queries: int = 10_000
    laplace_rounds: tuple[int, ...] = (40, 80, 160)
    gaussian_rounds: tuple[int, ...] = (80, 160, 320, 640)
    replays: int = 800  # divided by the rounds, at least 1 and at most 10
    mwem_runs: int = 1
    largest: int = 200_000  # cells that MWEM is run on
    runs: int = 3
    stream_seed: int = 1
    seed: int = 20261121


def pairs(domain: ic.Domain) -> list:
    """Return every cell of every two-way table."""
    names, kinds = domain.names, domain.attributes
    return [
        ic.where({names[i]: kinds[i].label(a), names[j]: kinds[j].label(b)})
        for j in range(len(names))
        for i in range(j)
        for a in range(kinds[i].size)
        for b in range(kinds[j].size)
    ]


def adult5_data() -> ic.PrivateData:
    """Return the table that the package ships."""
    columns, counts = adult5()
    labels = {name: sorted(set(columns[name].tolist())) for name in ("race", "sex", "income")}
    domain = ic.Domain.of(age=range(17, 91), education_num=range(1, 17), **labels)
    return ic.PrivateData.from_counts(columns, counts, domain)


def streams(config: Config):
    """Yield every workload, one at a time."""
    yield adult_workload("adult6", config.queries)
    data = adult5_data()
    yield stream_of("adult5, ranges", data, random_stream(data.domain, config.queries, config.stream_seed))
    survey = nltcs()
    two_way = pairs(survey.domain)[: config.queries]
    order = np.random.default_rng(config.stream_seed).permutation(len(two_way))
    yield stream_of("NLTCS, 2-way", survey, [two_way[place] for place in order])
    yield adult_workload("adult8-2way", config.queries)


@attrs.frozen
class Spending:
    """Per round: epsilon of the choice, and scale of the answer's noise, counts."""

    choice: float
    law: str
    scale: Fraction


def spending(law: str, rounds: int, config: Config) -> Spending:
    """Divide the budget evenly over rounds, and in each between choice and answer."""
    if law == "Laplace":
        share = config.epsilon / (2 * rounds)
        return Spending(share, law, scale_at_least(Fraction(1) / Fraction(share)))
    share = zcdp_rho(config.epsilon, config.delta) / (2 * rounds)
    # the exponential mechanism is epsilon^2/8-zCDP (Cesar & Rogers 2021), half a share each
    return Spending(math.sqrt(8.0 * share), law, Fraction(math.ceil(1.0 / math.sqrt(2.0 * share))))


def mwem(stream: Stream, law: str, rounds: int, config: Config, seed: int) -> np.ndarray:
    """Return MWEM's answers to the whole workload, which it knows in advance."""
    plan, noise = spending(law, rounds, config), SimulatedNoise(seed)
    domain, n = stream.data.domain, stream.data.n
    distinct = list({query.key: query for query in stream.queries if query.constant is None}.values())
    exact = stream.data.exact_counts_many([query.bind(domain, 0) for query in distinct])
    held = [box_slices(query, len(domain.shape)) for query in distinct]
    generator = np.random.default_rng(seed)
    belief, total = np.full(domain.shape, 1.0 / domain.size), 1.0  # not normalised within a round
    average, measured_so_far = np.zeros(domain.shape), []
    for _ in range(rounds):
        guesses = np.rint(n * Histogram(domain, belief).evaluate_many(distinct)).astype(np.int64)
        scores = np.abs(exact - guesses)  # moved by at most one by a replaced record
        if law == "Laplace":
            place = NoisyMax(plan.choice).select(scores, noise)
            error = int(noise.discrete_laplace(plan.scale, 1)[0])
        else:
            place = int(np.argmax(plan.choice / 2.0 * scores + generator.gumbel(size=scores.size)))
            error = int(noise.discrete_gaussian(int(plan.scale), 1)[0])
        value = (int(exact[place]) + error) / n
        query = distinct[place]
        measured_so_far.append((held[place], 1.0 - value if query.complement else value))
        for _ in range(max(1, min(10, config.replays // rounds))):
            for support, wanted in measured_so_far:
                mass = float(belief[support].sum())
                factor = math.exp((wanted - mass / total) / 2.0)
                belief[support] *= factor
                total += (factor - 1.0) * mass
        belief /= belief.sum()
        total = 1.0
        average += belief
    return Histogram(domain, average / average.sum()).evaluate_many(list(stream.queries))


def mwem_row(stream: Stream, law: str, rounds: int, config: Config, drawn: list[int]) -> dict:
    """Return one row over all seeds."""
    start = time.perf_counter()
    errors = [mwem(stream, law, rounds, config, seed) - stream.truths for seed in drawn]
    return {
        "engine": f"MWEM, {law}",
        "rounds": rounds,
        "rms": float(np.sqrt(np.mean(np.square(errors)))),
        "max": float(np.mean([np.abs(one).max() for one in errors])),
        "seconds": (time.perf_counter() - start) / len(drawn),
        "seeds": drawn,
    }


def run(quick: bool) -> dict:
    start = time.perf_counter()
    config = Config(queries=300, laplace_rounds=(5,), gaussian_rounds=(5,), runs=1) if quick else Config()
    budget, drawn = ic.Budget(config.epsilon, config.delta), seeds(config.seed, config.runs)
    rows = []
    for stream in streams(config):
        tables = baselines(stream, budget)["noisy tables"]
        engines = [
            measured("default", default_session(stream, budget), stream, drawn),
            measured("noisy tables", tables, stream, drawn),
        ]
        if stream.data.domain.size <= config.largest:
            engines += [
                mwem_row(stream, law, rounds, config, drawn[: config.mwem_runs])
                for law, all_rounds in (
                    ("Laplace", config.laplace_rounds),
                    ("Gaussian", config.gaussian_rounds),
                )
                for rounds in all_rounds
            ]
        rows.append(
            {"stream": stream.label, "queries": len(stream.queries), "sets": len(stream.sets)}
            | {"cells": stream.data.domain.size, "engines": engines}
        )
        print(stream.label, [f"{one['rms']:.2e} {one['seconds']:.1f} s" for one in engines], flush=True)
    return stamped(config, start, rows=rows)


def best(row: dict, name: str) -> dict | None:
    """Return the engine of this name with the least rms, or None."""
    found = [one for one in row["engines"] if one["engine"] == name]
    return min(found, key=lambda one: one["rms"], default=None)


ENGINES = ("default", "noisy tables", "MWEM, Gaussian", "MWEM, Laplace")


def table(result: dict) -> str:
    lines = [
        "| workload | queries | cells | online: default | offline: tables | offline: MWEM, Gaussian (rounds) "
        "| offline: MWEM, Laplace (rounds) | best offline / online | largest errors, same order |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        found = [best(row, name) for name in ENGINES]
        cells = [
            "-"
            if one is None
            else f"{1e5 * one['rms']:,.1f}" + (f" ({one['rounds']})" if "rounds" in one else "")
            for one in found
        ]
        least = min(one["rms"] for one in found[1:] if one is not None)
        largest = ", ".join("-" if one is None else f"{one['max']:.4f}" for one in found)
        lines.append(
            f"| {row['stream']} | {row['queries']:,} | {row['cells']:,} | {' | '.join(cells)} "
            f"| {least / found[0]['rms']:.2f} | {largest} |"
        )
    return "\n".join([*lines, "", "Errors are rms over all queries and seeds, in 1e-5 of the records."])


def figure(result: dict, path: Path) -> None:
    """Draw rms of each engine on each workload; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(8.5, 4.0), layout="constrained")
    axes = canvas.add_subplot()
    colours = ("#0072B2", "#CC79A7", "#009E73", "#E69F00")
    for shift, (name, colour) in enumerate(zip(ENGINES, colours, strict=True)):
        for place, row in enumerate(result["rows"]):
            one = best(row, name)
            if one is not None:
                label = ("online: " if name == "default" else "offline: ") + name if place == 0 else None
                x = place + 0.2 * (shift - 1.5)
                axes.bar(x, one["rms"], width=0.18, color=colour, label=label)
                axes.text(x, one["rms"] * 1.05, f"{1e3 * one['rms']:.1f}", ha="center", fontsize=7)
    axes.set_yscale("log")
    axes.set_xticks(range(len(result["rows"])), [row["stream"] for row in result["rows"]], fontsize=9)
    axes.set_ylabel("rms error, fraction of records (numbers: 1e-3)")
    axes.legend(fontsize=8, ncols=2)
    axes.set_xlim(-0.6, len(result["rows"]) - 0.4)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, 4 * top)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
