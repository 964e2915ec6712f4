"""Tables of ten to twenty attributes: default sessions where no cell can be held, and where both fits can be.

    python experiments/large_domains.py [--quick] [--from-json]

Adult with 6 to 14 attributes and NLTCS, and three tables made from seeds: records of six latent classes, a
Markov chain over twenty attributes, and a Gaussian copula with three factors. Of each 12,000 Zipf-repeated
conjunctions of two or three conditions, intervals of long attributes and labels of short ones, at (1, 1e-9)
with simulated noise: NOT PRIVATE. Below 2^22 cells the mixture of products is run beside maximum entropy.
The cached noise knows the distinct queries, the session the length of the stream. Writes
results/large_domains.json; table and figure are made from that file alone.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import baselines, default_session, measured, one_seed, script, seeds, stamped
from study.sources import adult_rows, nltcs, present, stream_of

import onlineic as ic

NAME = "large_domains"
CACHED = "per-query, cached"
BOTH = 2**22  # cells up to which both fits are run
ADULT = {
    "age": 85,
    "education-num": 16,
    "marital-status": 7,
    "race": 5,
    "sex": 2,
    "income>50K": 2,
    "workclass": 9,
    "relationship": 6,
    "occupation": 15,
    "native-country": 42,
    "hours-per-week": 99,
    "fnlwgt": 100,
    "capital-gain": 100,
    "capital-loss": 100,
}


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    epsilon: float = 1.0
    delta: float = 1e-9
    queries: int = 12_000
    pool: int = 4_000
    many: int = 1_000_000
    runs: int = 2
    stream_seed: int = 1
    seed: int = 20261122


def conjunctions(domain, config):
    """Return a stream of conjunctions of two or three conditions, some of them often."""
    generator, pool = np.random.default_rng(config.stream_seed), []
    for _ in range(config.pool):
        count = min(len(domain.shape), int(generator.integers(2, 4)))
        conditions = {}
        for axis in sorted(generator.choice(len(domain.shape), count, replace=False).tolist()):
            size = domain.shape[axis]
            low, high = sorted(generator.integers(0, size, 2).tolist())
            kind = domain.attributes[axis]
            conditions[domain.names[axis]] = ic.between(low, high) if size > 16 else kind.label(low)
        pool.append(ic.where(conditions))
    odds = 1.0 / np.arange(1, config.pool + 1)
    return [pool[index] for index in generator.choice(config.pool, config.queries, p=odds / odds.sum())]


def adult(count):
    """Return Adult with so many attributes."""
    rows, held = adult_rows(), dict([*ADULT.items()][:count])
    columns = {name: np.array([int(row[name]) for row in rows]) for name in held}
    return ic.PrivateData.from_records(columns, ic.Domain.of(held))


def made(codes, size):
    domain = ic.Domain.of({f"a{place}": size for place in range(codes.shape[1])})
    return ic.PrivateData.from_records(dict(zip(domain.names, codes.T, strict=True)), domain)


def drawn_from(laws, chosen, generator):
    """Return one draw for every record from the law of its row."""
    sums = laws.cumsum(axis=1)[chosen]
    return np.minimum((generator.random(len(chosen))[:, None] > sums).sum(axis=1), laws.shape[1] - 1)


def latent_classes(records, attributes=20, size=8):
    generator = np.random.default_rng(2)
    hidden = generator.choice(6, records, p=generator.dirichlet(np.ones(6)))
    columns = [
        drawn_from(generator.dirichlet(np.full(size, 0.4), 6), hidden, generator) for _ in range(attributes)
    ]
    return made(np.stack(columns, axis=1), size)


def chain(records, attributes=20, size=8):
    generator = np.random.default_rng(1)
    columns = [generator.choice(size, records, p=generator.dirichlet(np.full(size, 0.5)))]
    for _ in range(attributes - 1):
        columns.append(drawn_from(generator.dirichlet(np.full(size, 0.3), size), columns[-1], generator))
    return made(np.stack(columns, axis=1), size)


def copula(records, attributes=12, size=32):
    generator = np.random.default_rng(3)
    loads = generator.normal(size=(attributes, 3))
    values = generator.normal(size=(records, 3)) @ loads.T + generator.normal(size=(records, attributes))
    return made(values.argsort(axis=0).argsort(axis=0) * size // records, size)


def streams(config: Config, absent: list[str]):
    """Yield every stream whose table is there, one at a time."""
    makers = {f"Adult, {count} attributes": partial(adult, count) for count in (6, 7, 9, 10, 12, 14)}
    makers["NLTCS"] = nltcs
    makers["six classes, 20 attributes"] = partial(latent_classes, config.many)
    makers["chain of 20 attributes"] = partial(chain, config.many)
    makers["copula of 12 attributes"] = partial(copula, max(1, config.many // 10))
    for stream in present(
        {label: lambda label=label, make=make: (label, make()) for label, make in makers.items()}, absent
    ):
        label, data = stream
        yield stream_of(label, data, conjunctions(data.domain, config))


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), []
    config = Config(queries=100, pool=50, many=20_000, runs=1) if quick else Config()
    budget, drawn = ic.Budget(config.epsilon, config.delta), seeds(config.seed, config.runs)
    rows = []
    for stream in streams(config, absent):
        makers = {"session": default_session(stream, budget), CACHED: baselines(stream, budget)[CACHED]}
        if stream.data.domain.size <= BOTH:
            makers["session, mixture"] = default_session(stream, budget, update=ic.MixtureOfProducts())
        row = {
            "stream": stream.label,
            "n": stream.data.n,
            "cells": stream.data.domain.size,
            "distinct": len({query.key for query in stream.queries}),
            "engines": [measured(label, make, stream, drawn) for label, make in makers.items()],
        }
        rows.append(row)
        print(
            row["stream"], [f"{one['rms']:.2e} {one['seconds']:.1f} s" for one in row["engines"]], flush=True
        )
    return stamped(config, start, absent, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, absent = Config(), list[str]()
    stream, seed = next(streams(config, absent)), seeds(config.seed, config.runs)[0]
    make = default_session(stream, ic.Budget(config.epsilon, config.delta))
    return {} if absent else one_seed("rows/0/engines/0", "session", make, stream, seed)


def table(result: dict) -> str:
    lines = [
        "| table | n | cells | distinct | session | its mixture | cached noise | session / cached "
        "| hard | within bound | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        held = {one["engine"]: one for one in row["engines"]}
        own, cached, mixture = held["session"], held[CACHED], held.get("session, mixture")
        large = row["cells"] > 2**26
        shown = "the same" if large else "-" if mixture is None else f"{1e5 * mixture['rms']:,.1f}"
        lines.append(
            f"| {row['stream']} | {row['n']:,} | {row['cells']:.2g} | {row['distinct']:,} "
            f"| {1e5 * own['rms']:,.1f} | {shown} | {1e5 * cached['rms']:,.1f} "
            f"| {own['rms'] / cached['rms']:.2f} | {own['hard']:,.1f} | {own['within_bound']:.3f} "
            f"| {own['seconds']:,.1f} |"
        )
    return "\n".join([*lines, "", "Errors are rms over all queries and seeds, in 1e-5 of the records."])


def figure(result: dict, path: Path) -> None:
    """Draw errors of the session and of cached noise over the number of cells; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(8.0, 4.2), layout="constrained")
    axes = canvas.add_subplot()
    cells = [row["cells"] for row in result["rows"]]
    for place, (label, colour, mark) in enumerate(
        (("session", "#0072B2", "o"), (CACHED, "#009E73", "s"), ("session, mixture", "#D55E00", "x"))
    ):
        known = [[one["rms"] for one in row["engines"] if one["engine"] == label] for row in result["rows"]]
        points = [(size, *found) for size, found in zip(cells, known, strict=True) if found]
        axes.plot(*zip(*points, strict=True), mark, color=colour, label=label, zorder=place)
    for row in result["rows"]:
        axes.annotate(row["stream"], (row["cells"], row["engines"][0]["rms"]), fontsize=7, rotation=20)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("cells")
    axes.set_ylabel("rms error, fraction of records")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
