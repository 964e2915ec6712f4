"""From all cells or from pairs: sessions over tables of more records than the defaults were tuned on.

    python experiments/many_records.py [--quick] [--from-json]

Real tables, with so many records drawn from them with replacement, and made-up ones of three laws (see
unseen_tables.py). A session that is told of 20,000 questions, of which it is asked 4,000, as its forecast
starts it, from a table of all cells and from tables of pairs, beside one noisy histogram and noise on every
question of 4,000. At (1, 1e-9). Simulated noise: NOT PRIVATE.
Writes results/many_records.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
from study.outcome import Maker, baselines, default_session, measured, one_seed, script, seeds, stamped
from study.sources import Stream, adult5_data, present, stream_of, whole
from study.streams import Sizes, makers
from unseen_tables import law_of

import onlineic as ic
from onlineic.evaluate import random_stream

NAME = "many_records"
RIVALS = ("per-query, cached", "one noisy histogram")
STARTS = {
    "as forecast": {},
    "from all cells": {"CELLS_FOR_PAIRS": math.inf},
    "from pairs": {"CELLS_FOR_PAIRS": 0.0, "laplace_suits": lambda *_: False},
}


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    real: tuple[tuple[str, int], ...] = (
        *(("adult6", n) for n in (200_000, 1_000_000)),
        *(("NLTCS", n) for n in (200_000, 1_000_000)),
        *(("adult5", n) for n in (200_000, 1_000_000)),
    )
    made: tuple[tuple[int, ...], ...] = ((30, 30, 30), (2,) * 14)
    laws: tuple[str, ...] = ("mixture", "even", "chain")
    records: int = 1_000_000  # of those that are made
    told: int = 20_000
    queries: int = 4_000
    runs: int = 2
    seed: int = 20261124


def tables(config: Config, absent: list[str]) -> Iterator[Stream]:
    """Yield every table with its stream."""
    sizes = Sizes(queries=config.queries)
    found = {name: makers(sizes)[name] for name in dict(config.real) if name != "adult5"}
    kept = {stream.label: stream for stream in present(found, absent)}
    data = adult5_data()
    kept["adult5"] = stream_of("adult5", data, random_stream(data.domain, config.queries, 1))
    for name, n in config.real:
        if name in kept:
            stream = kept[name]
            counts = stream.data.exact_counts(whole(stream.data.domain))
            yield drawn(name, stream.data.domain, counts / counts.sum(), n, stream.queries, config)
    for shape in config.made:
        domain = ic.Domain.of({f"a{place}": codes for place, codes in enumerate(shape)})
        for law in config.laws:
            masses = np.maximum(law_of(law, [*shape], np.random.default_rng(config.seed)), 0.0)
            asked = random_stream(domain, config.queries, 1)
            yield drawn(law, domain, masses / masses.sum(), config.records, asked, config)


def drawn(label: str, domain: ic.Domain, law: np.ndarray, n: int, queries: Any, config: Config) -> Stream:
    """Return a table of so many records of this law."""
    counts = np.random.default_rng(config.seed).multinomial(n, law.ravel())
    return stream_of(label, ic.PrivateData(counts, domain), queries)


def started(stream: Stream, budget: ic.Budget, held: dict[str, Any], told: int) -> Maker:
    """Return the maker of a session whose forecast is made to start it so."""
    opened = default_session(stream, budget, max_queries=told)

    def make(noise: Any) -> Any:
        with patch.multiple("onlineic.plan.forecasts", **held) if held else nullcontext():
            return opened(noise)

    return make


def run(quick: bool) -> dict:
    config = Config()
    if quick:
        config = Config(real=(("adult5", 200_000),), made=((2,) * 8,), records=10_000, queries=60, runs=1)
    start, absent, rows = time.perf_counter(), [], []
    budget = ic.Budget(1.0, 1e-9)
    for stream in tables(config, absent):
        data, own = stream.data, seeds(config.seed, config.runs)
        engines = [
            measured(label, started(stream, budget, held, config.told), stream, own)
            for label, held in STARTS.items()
        ]
        static = baselines(stream, budget)
        engines += [measured(label, static[label], stream, own[:1]) for label in RIVALS]
        told = ic.forecast(data.domain, data.n, budget, config.told)
        rows.append(
            {
                "table": stream.label,
                "n": data.n,
                "shape": data.domain.shape,
                "start": told.start,
                "forecast": next(one.rms for one in told.engines if one.start == told.start),
                "engines": engines,
            }
        )
    return stamped(config, start, absent, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    place, stream = len(config.real), next(tables(attrs.evolve(config, real=()), []))
    make = started(stream, ic.Budget(1.0, 1e-9), STARTS["as forecast"], config.told)
    seed = seeds(config.seed, config.runs)[0]
    return one_seed(f"rows/{place}/engines/0", "as forecast", make, stream, seed)


def table(result: dict) -> str:
    labels = [row["engine"] for row in result["rows"][0]["engines"]]
    lines = [
        f"| table | n | cells | start | forecast | {' | '.join(labels)} |",
        "|" + "---|" * (5 + len(labels)),
    ]
    for row in result["rows"]:
        n, cells = row["n"], math.prod(row["shape"])
        errors = [f"{n * engine['rms']:.0f}" for engine in row["engines"]]
        lines.append(
            f"| {row['table']} | {n:,} | {cells:,} | {row['start']} | {n * row['forecast']:.0f} "
            f"| {' | '.join(errors)} |"
        )
    return "\n".join([*lines, "", "Rms errors in records."])


def figure(result: dict, path: Path) -> None:
    """Draw the error of each start over that of the better one; needs matplotlib."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = canvas.add_subplot()
    marks = {"as forecast": "ko", "from all cells": "C0s", "from pairs": "C1^"}
    places = range(len(result["rows"]))
    for label, mark in marks.items():
        shares = []
        for row in result["rows"]:
            errors = {engine["engine"]: engine["rms"] for engine in row["engines"]}
            shares.append(errors[label] / min(errors["from all cells"], errors["from pairs"]))
        hollow = {"mfc": "none", "ms": 11} if label == "as forecast" else {"ms": 5}
        axes.plot(places, shares, mark, label=label, linestyle="none", **hollow)
    axes.set_yscale("log")
    axes.set_yticks([1, 2, 3, 5, 10], ["1", "2", "3", "5", "10"])
    axes.minorticks_off()
    names = [f"{row['table']}, {math.prod(row['shape']):,}\nn = {row['n']:,}" for row in result["rows"]]
    axes.set_xticks([*places], names, rotation=60, ha="right", fontsize=7)
    axes.set_ylabel("rms error / that of the better start")
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    canvas.legend(loc="outside right upper", fontsize=8, title="session")
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
