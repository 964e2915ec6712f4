"""What `make bench` compares: engines on tables and streams, by grid and seeds. NOT PRIVATE.

Every seed has its own table, stream and noise, the same for all engines. Times are processor times.
"""

import contextlib
import ctypes
import gc
import math
import re
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import attrs
import numpy as np
from scipy.special import stdtrit

import onlineic as ic
from onlineic import baselines
from onlineic.errors import InfeasibleAccuracyError, OnlineICError, VacuousPromiseWarning
from onlineic.evaluate import Trace, exact_values, known_baselines, random_stream, trace
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.updates import MeasuredSteps

SEED = 20261122
SHAPES = {
    4: (4,),
    1_000: (10, 10, 10),
    10_000: (25, 20, 20),
    100_000: (50, 50, 40),
    1_000_000: (100, 100, 100),
}
SHAPES[4_000_000] = (200, 200, 100)
SHAPES[100_000_000] = (500, 500, 400)
SHAPES |= {1_000**attributes: (1_000,) * attributes for attributes in (3, 4, 5, 6)}
RULES: dict[str, Any] = {
    "MW book": ic.MultiplicativeWeights(variant="book"),
    "MW tight": ic.MultiplicativeWeights(),
    "MW rate 0.3": ic.MultiplicativeWeights(rate=0.3),
    "perceptron book": ic.Perceptron(variant="book"),
    "perceptron centred": ic.Perceptron(),
    "median": ic.Median(),
    "measured weights": ic.MeasuredWeights(),
    "maximum entropy": ic.MaximumEntropy(),
}
MODES = ("planned", "certified", "textbook")
BASELINES = (
    "per-query Laplace",
    "per-query Gaussian",
    "per-query noise, cached",
    "one noisy histogram",
    "noisy tables",
)
NET, LEAST_RECORDS = (
    2**14,
    8,
)  # databases of the practical median, and records in each, from which on it is run
STREAMS = ("ranges", "repeats", "drill-down")
DISTINCT = 30  # queries among the repeats
MOST_NUMBERS = 10_000  # cells
DRAWN_BY_CELL = 2**24  # cells up to which a table is drawn as counts, else as records
LIMIT = 10.0  # seconds of an engine in a group, from which on one seed must do
NAIVE = 60  # queries of which the naive loop is timed


@attrs.frozen
class Point:
    """A group of the comparison: all engines on one setting.

    Attributes:
        stream: ranges: random conjunctions of 1 to 3 ranges; over one attribute, random weights in [0, 1].
            repeats: the same, of 30 distinct ones, by Zipf's law. drill-down: an adaptive analyst halves
            random ranges again and again, following the larger answer.
    """

    stream: str
    cells: int
    n: int
    epsilon: float
    delta: float
    queries: int

    @property
    def name(self) -> str:
        return (
            f"{self.stream}, {self.cells:,} cells, n = {self.n:,}, "
            f"({self.epsilon:g}, {self.delta:g}), {self.queries:,} queries"
        )

    @property
    def budget(self) -> ic.Budget:
        return ic.Budget(self.epsilon, self.delta)


@attrs.frozen
class Engine:
    """One engine: a rule in a mode, the default session, a static baseline or the naive loop."""

    mode: Literal["default", "planned", "certified", "textbook", "static", "naive"]
    name: str
    hard_answers: int | None = None

    @property
    def label(self) -> str:
        return f"{self.name}, {self.mode}" if self.mode in MODES else self.name


DEFAULT = Engine("default", "default session")
ENGINES = (
    DEFAULT,
    *(Engine(mode, rule) for mode in MODES for rule in RULES),
    *(Engine("static", name) for name in BASELINES),
    Engine("naive", "naive dense loop"),
)
GROWING = (
    DEFAULT,
    *(Engine("planned", name) for name in ("MW tight", "measured weights", "perceptron centred")),
    Engine("static", "one noisy histogram"),
    Engine("static", "per-query noise, cached"),
)


@attrs.frozen
class Scale:
    """Sizes of test_scale.py: cells, queries of every kind, records of wide tables, rows to load.

    Single queries are asked over three attributes of so many cells, and over other `shapes`; hard answers are
    timed among the first `hits` questions of ten times as many, over `hit_shapes`.
    """

    cells: tuple[int, ...] = (1_000, 1_000_000, 100_000_000)
    shapes: tuple[tuple[int, ...], ...] = ((100,) * 4, (10,) * 8)
    hit_shapes: tuple[tuple[int, ...], ...] = ((272,) * 3, (20, 20, 20, 50, 50), (8,) * 8)
    hits: int = 2_000
    singles: int = 2_000
    batch: int = 10_000
    distinct: int = 100_000
    tables: int = 1
    records: int = 1_000_000
    queries: int = 12_000
    rows: int = 1_000_000


@attrs.frozen
class Grid:
    """What is run. `growth` has the values of one axis each; the other three stay at `centre`."""

    streams: tuple[str, ...] = ("ranges", "drill-down")
    cells: tuple[int, ...] = (4, 1_000, 100_000)
    records: tuple[int, ...] = (10_000, 100_000)
    budgets: tuple[tuple[float, float], ...] = ((1.0, 1e-9), (1.0, 0.0))
    queries: int = 200
    more: tuple[Point, ...] = (
        Point("repeats", 1_000, 10_000, 1.0, 1e-9, 200),
        Point("ranges", 1_000, 10_000, 0.1, 1e-9, 200),
        Point("ranges", 4, 1_000_000, 1.0, 1e-9, 200),
        Point("ranges", 1_000, 1_000_000, 1.0, 1e-9, 200),
    )
    seeds: int = 4
    centre: Point = Point("ranges", 10_000, 100_000, 1.0, 1e-9, 1_000)
    growth: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("cells", (1_000, 10_000, 100_000, 1_000_000, 10**9, 10**12, 10**18)),
        ("n", (1_000, 10_000, 100_000, 1_000_000, 10_000_000)),
        ("hard_answers", (5, 20, 80)),
        ("queries", (100, 1_000, 10_000)),
    )
    growth_seeds: int = 2
    scale: Scale = Scale()
    peers: bool = False
    seed: int = SEED

    @property
    def points(self) -> tuple[Point, ...]:
        return (
            *(
                Point(stream, cells, n, *budget, self.queries)
                for stream in self.streams
                for budget in self.budgets
                for cells in self.cells
                for n in self.records
            ),
            *self.more,
        )


GRIDS = {
    "quick": Grid(
        cells=(4, 1_000),
        records=(10_000,),
        queries=30,
        more=(Point("repeats", 1_000, 10_000, 1.0, 1e-9, 30),),
        seeds=2,
        centre=Point("ranges", 1_000, 10_000, 1.0, 1e-9, 50),
        growth=(
            ("cells", (4, 1_000)),
            ("n", (1_000, 10_000)),
            ("hard_answers", (2, 5)),
            ("queries", (20, 50)),
        ),
        scale=Scale(
            cells=(1_000,),
            shapes=((10,) * 4,),
            hit_shapes=((9,) * 3,),
            hits=60,
            singles=60,
            batch=200,
            distinct=1_000,
            records=5_000,
            queries=60,
            rows=2_000,
        ),
        peers=True,
    ),
    "report": Grid(),
    "full": Grid(
        streams=STREAMS,
        records=(10_000, 100_000, 1_000_000),
        cells=(4, 1_000, 10_000, 100_000, 1_000_000),
        more=(),
        growth=(
            ("cells", (1_000, 10_000, 100_000, 1_000_000, 4_000_000, 10**9, 10**12, 10**15, 10**18)),
            ("n", (1_000, 10_000, 100_000, 1_000_000, 10_000_000)),
            ("hard_answers", (5, 10, 20, 40, 80, 160)),
            ("queries", (100, 1_000, 10_000, 50_000)),
        ),
        growth_seeds=3,
        scale=Scale(
            cells=(1_000, 100_000, 1_000_000, 100_000_000, 10**12, 10**18),
            hit_shapes=((272,) * 3, (200, 250, 400), (20, 20, 20, 50, 50), (16,) * 6, (8,) * 8),
            distinct=950_000,
            tables=2,
            rows=10_000_000,
        ),
        peers=True,
    ),
}


# Tables and streams


@attrs.frozen(eq=False)
class Case:
    """The table and the stream of one seed; an adaptive stream has neither queries nor truths of its own."""

    data: ic.PrivateData
    stream: Any
    truths: np.ndarray | None
    seed: int


def seeds(grid: Grid, count: int) -> list[int]:
    """Return children of one SeedSequence."""
    return [
        int(child.generate_state(1, np.uint32)[0]) for child in np.random.SeedSequence(grid.seed).spawn(count)
    ]


@lru_cache(maxsize=8)
def case(point: Point, seed: int) -> Case:
    data = table(point.cells, point.n, seed)
    if point.stream == "drill-down":
        return Case(data, drilling(data.domain, point.queries, seed), None, seed)
    queries = questions(point, data.domain, seed)
    return Case(data, queries, np.asarray(exact_values(data, queries)), seed)


@lru_cache(maxsize=8)
def table(cells: int, n: int, seed: int) -> ic.PrivateData:
    """Return n records around five centres, and a tenth spread evenly."""
    rng = np.random.default_rng([seed, cells])
    shape = SHAPES[cells]
    if cells > DRAWN_BY_CELL:
        return records(shape, n, rng)
    shares = np.full(shape, 0.1 / cells)
    for share in rng.dirichlet(np.ones(5)):
        bump = np.ones(1)
        for size in shape:
            place = (np.arange(size) + 0.5) / size
            axis = np.exp(-(((place - rng.random()) / rng.uniform(0.05, 0.2)) ** 2) / 2)
            bump = np.multiply.outer(bump, axis / axis.sum())
        shares += 0.9 * share * bump.reshape(shape)
    return ic.PrivateData(rng.multinomial(n, shares.ravel() / shares.sum()), named(shape))


def named(shape: tuple[int, ...]) -> ic.Domain:
    return ic.Domain.of({name: range(size) for name, size in zip("abcdefgh", shape, strict=False)})


def records(shape: tuple[int, ...], n: int, rng: np.random.Generator) -> ic.PrivateData:
    """Return n records of the same kind where cells cannot be held, drawn one attribute at a time."""
    centre = np.where(rng.random(n) < 0.1, 5, rng.choice(5, n, p=rng.dirichlet(np.ones(5))))
    domain, columns = named(shape), {}
    for name, size in zip(domain.names, shape, strict=True):
        place, column = (np.arange(size) + 0.5) / size, rng.integers(0, size, n)
        for number in range(5):
            axis = np.exp(-(((place - rng.random()) / rng.uniform(0.05, 0.2)) ** 2) / 2)
            rows = np.flatnonzero(centre == number)
            column[rows] = rng.choice(size, len(rows), p=axis / axis.sum())
        columns[name] = column
    return ic.PrivateData.from_records(columns, domain)


def questions(point: Point, domain: ic.Domain, seed: int) -> list[Any]:
    rng = np.random.default_rng([seed, point.queries])
    distinct = DISTINCT if point.stream == "repeats" else point.queries
    if len(domain.shape) == 1:  # it has few ranges
        drawn = [ic.where(a=ic.weights(rng.random(domain.size).tolist())) for _ in range(distinct)]
    else:
        drawn = list(random_stream(domain, distinct, seed))
    if point.stream != "repeats":
        return drawn
    weights = 1.0 / np.arange(1, distinct + 1)
    return [drawn[place] for place in rng.choice(distinct, point.queries, p=weights / weights.sum())]


def drilling(domain: ic.Domain, queries: int, seed: int) -> Callable[[Any], Any]:
    """Return an analyst who halves random ranges down to single values, following the larger answer."""

    def dives() -> Iterator[Any]:
        rng = np.random.default_rng([seed, 1])
        while True:
            box: dict[str, Any] = {}
            for axis in rng.permutation(len(domain.names)).tolist():
                name, size = domain.names[axis], domain.shape[axis]
                low, high = sorted(rng.integers(0, size, 2).tolist())
                while low < high:
                    middle = (low + high) // 2
                    lower = yield ic.where({**box, name: ic.between(low, middle)})
                    upper = yield ic.where({**box, name: ic.between(middle + 1, high)})
                    low, high = (low, middle) if lower >= upper else (middle + 1, high)
                box[name] = ic.between(low, high)

    held: list[Any] = []

    def analyst(answers: Any) -> Any:
        if not answers:
            held[:] = [dives()]
            return next(held[0])
        return held[0].send(answers[-1].value) if len(answers) < queries else None

    return analyst


# Engines


def opener(engine: Engine, point: Point, held: Case) -> Callable[[], Any]:
    """Return what opens the engine; refusals are raised, here or by it."""
    data, budget, noise = held.data, point.budget, SimulatedNoise(held.seed)
    common: dict[str, Any] = {"max_queries": point.queries, "noise": noise}
    if engine.mode == "static":
        if engine.hard_answers is not None:
            raise RefusedError("a static engine has no number of hard answers to set.")
        make = static(engine.name, point, held)
        return lambda: make(noise)
    if engine.hard_answers is not None:
        common["hard_answers"] = engine.hard_answers
    if engine.mode == "default":
        return lambda: ic.OnlineIC(data, budget, questions=point.queries, **common)
    rule = RULES[engine.name]
    if engine.mode == "textbook":
        told = {"epsilon": point.epsilon, "delta": point.delta, "update": rule, **common}
        return lambda: quietly(ic.OnlineIC.textbook, data, **told)
    if engine.mode == "certified":
        alpha = least_alpha(rule, data, budget, point.queries)
        return lambda: quietly(ic.OnlineIC, data, budget, update=rule, certify=alpha, **common)
    if isinstance(rule, ic.MaximumEntropy) and data.domain.size > MOST_NUMBERS:
        raise RefusedError(
            f"maximum entropy is not run on single numbers over more than {MOST_NUMBERS:,} cells: each refit "
            "reads all numbers so far over all cells, minutes in all (tables, as in the default, are few)."
        )
    if isinstance(rule, ic.Median):
        rule = listed_median(data.domain.size)
    common |= {"questions": point.queries}
    return lambda: ic.OnlineIC(data, budget, update=rule, release="answer", **common)


def quietly(make: Callable[..., Any], *arguments: Any, **told: Any) -> Any:
    """Return what is opened; that its promise is vacuous is said by the tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousPromiseWarning)
        return make(*arguments, **told)


def least_alpha(rule: Any, data: ic.PrivateData, budget: ic.Budget, queries: int) -> float:
    """Return the accuracy that the planner names as the least it can certify."""
    try:
        plan = session_plan(data.domain, data.n, budget, update=rule, certify=1e-9, max_queries=queries)
    except InfeasibleAccuracyError as error:
        named = re.search(r"certify must be >= (\S+) at", str(error))
        if named is None:
            raise
        return float(named[1])
    return plan.alpha


def listed_median(cells: int) -> ic.Median:
    """Return the median over as many records as its net may have, where those are not too few to say much."""
    size = 1
    while math.comb(cells + size, size + 1) <= NET:
        size += 1
    if size < LEAST_RECORDS:
        raise RefusedError(
            f"the median is not run with databases of fewer than {LEAST_RECORDS} records, which is all that "
            f"{NET:,} of them over so many cells may have."
        )
    return ic.Median(size=size)


class RefusedError(Exception):
    """What an engine does not do, where the library itself has no words for it."""


def static(name: str, point: Point, held: Case) -> Callable[[Any], Any]:
    asked = point.queries if callable(held.stream) else held.stream
    for label, make in known_baselines(held.data, point.budget, asked).items():
        if label.startswith(name):
            return make
    if name == "one noisy histogram":
        raise RefusedError("a noisy histogram is not drawn over more cells than can be held.")
    if name == "noisy tables":
        raise RefusedError(
            "noisy tables must know the attribute sets in advance: an analyst's are not known."
        )
    return lambda noise: baselines.PerQueryNoise(
        held.data, point.budget, answers=point.queries, noise_law="gaussian", noise=noise
    )


# Measuring


class Updates:
    """Seconds and number of a rule's updates, taken at its public method, without those that it asks for."""

    seconds = 0.0
    count = 0
    inside = False

    @contextlib.contextmanager
    def watched(self, *kinds: type) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for kind in set(kinds):
                stack.enter_context(mock.patch.object(kind, "update", self.timed(kind.update)))
            yield

    def timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(rule: Any, *arguments: Any) -> Any:
            if self.inside:
                return original(rule, *arguments)
            began, self.inside = time.process_time(), True
            try:
                return original(rule, *arguments)
            finally:
                self.inside = False
                self.seconds += time.process_time() - began
                self.count += 1

        return update

    def reset(self) -> None:
        self.seconds, self.count = 0.0, 0


def spent() -> float:
    """Return the processor time of this process and of those that it has started and seen end."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def resident() -> tuple[int, int] | None:
    """Return the peak and the present resident memory, kB, or None where the system does not tell."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return tuple(int(re.search(rf"{name}:\s+(\d+)", text)[1]) for name in ("VmHWM", "VmRSS"))  # type: ignore


def forget_peak() -> int | None:
    """Give unused memory back, let the peak begin anew, and return what is resident, kB."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return None
    held = resident()
    return None if held is None else held[1]


@attrs.frozen(eq=False)
class Run:
    """One engine on one seed."""

    trace: Trace
    refits: float  # seconds
    updates: int
    bound: float | None  # what the plan promises for all answers at once
    megabytes: float | None


def run(
    engine: Engine, point: Point, seed: int, timing: Literal["batch", "single"], *, memory: bool = False
) -> Run:
    """Return an engine's answers and times."""
    held = case(point, seed)
    before = forget_peak() if memory else None
    updates, plans = Updates(), []
    kind = type(RULES[engine.name]) if engine.mode in MODES else ic.MaximumEntropy
    make = opener(engine, point, held)

    def opened() -> Any:
        one = make()
        getattr(one, "hypothesis", None)  # first tables are bought and learned here: not a refit
        updates.reset()
        plans.append(getattr(one, "plan", None))
        return one

    with updates.watched(kind, MeasuredSteps):
        found = trace(
            engine.label,
            opened,
            held.data,
            held.stream,
            truths=held.truths,
            seed=seed,
            timing=timing,
            clock=time.process_time,
        )
    after = resident() if before is not None else None
    bound = getattr(plans[0], "error_bound", None)
    megabytes = None if before is None or after is None else max(0.0, (after[0] - before) / 1024.0)
    return Run(found, updates.seconds, updates.count, bound, megabytes)


def several(engine: Engine, point: Point, drawn: list[int], timing: Literal["batch", "single"]) -> list[Run]:
    """Return a run for every seed; one alone where that takes longer than `LIMIT`."""
    first = run(engine, point, drawn[0], timing, memory=True)
    if total(first.trace) > LIMIT:
        return [first]
    return [first, *(run(engine, point, seed, timing) for seed in drawn[1:])]


def interval(values: list[float]) -> dict[str, float | None]:
    """Return mean and half-width of the 95 % interval of the mean, by Student's t; None of one seed."""
    mean, count = float(np.mean(values)), len(values)
    if count == 1:
        return {"mean": mean, "half": None}
    half = float(stdtrit(count - 1, 0.975) * np.std(values, ddof=1) / math.sqrt(count))
    return {"mean": mean, "half": half}


def row(engine: Engine, runs: list[Run], batch: Run | None) -> dict[str, Any]:
    """Return the figures of one engine in one group, over its seeds. NOT PRIVATE."""
    traces = [one.trace for one in runs]
    asked = sum(len(one.errors) for one in traces)
    hard = np.concatenate([one.statuses for one in traces]) == "hard"
    times = np.concatenate([one.times for one in traces])
    refits = sum(one.refits for one in runs)
    opening = sum(one.opening or 0.0 for one in traces)
    static_ = engine.mode == "static"  # all of its answers are measured, none is taught: not told apart
    parts = {
        "opening": opening,
        "easy": 0.0 if static_ else float(times[~hard].sum()),
        "hard": float(times.sum()) if static_ else float(times[hard].sum()) - refits,
        "refit": refits,  # of purchases too, which may answer easy ones: see `tables.answering`
    }
    found = [one.bound for one in runs]
    return {
        "rms": interval([one.rms_error for one in traces]),
        "rms_by_seed": [one.rms_error for one in traces],
        "max": interval([one.max_error for one in traces]),
        "bound": None if None in found else float(np.mean(found)),
        **{
            name: float(np.mean([getattr(one, name) for one in traces]))
            for name in ("easy", "hard", "repeat", "untested", "spent", "update_failures")
        },
        "updates": float(np.mean([one.updates for one in runs])),
        "microseconds": {part: 1e6 * seconds / asked for part, seconds in parts.items()},
        "microseconds_each": 1e6 * (opening + float(times.sum())) / asked,
        "batch_microseconds": None if batch is None else 1e6 * total(batch.trace) / len(batch.trace.errors),
        "megabytes": runs[0].megabytes,
        "queries": asked // len(runs),
    }


def total(one: Trace) -> float:
    return (one.opening or 0.0) + one.seconds


def naive_seconds(held: Case) -> float:
    """Seconds of one easy query in the dense loop: weights over X, two dot products, one comparison."""
    cells = held.data.domain.size
    hypothesis = np.full(cells, 1.0 / cells)
    private = np.full(cells, held.data.n / cells)  # the time does not depend on it
    rng = np.random.default_rng(0)
    queries = [query.bind(held.data.domain) for query in held.stream[:NAIVE]]
    best = math.inf
    for _ in range(3):
        began = time.process_time()
        for query in queries:
            weights = np.ones(1)
            ends = (
                {} if query.box is None else dict(zip(query.axes, zip(*query.box, strict=True), strict=True))
            )
            for axis, length in enumerate(query.domain.shape):
                factor = np.ones(length)
                if axis in ends:
                    factor[: ends[axis][0]] = factor[ends[axis][1] :] = 0.0
                weights = np.multiply.outer(weights, factor).ravel()
            if query.complement:
                weights = 1.0 - weights
            gap = weights @ private / held.data.n - weights @ hypothesis
            _ = abs(gap) + rng.laplace(0.0, 0.01) > 0.1
        best = min(best, (time.process_time() - began) / len(queries))
    return best


def compared(engine: Engine, point: Point, grid: Grid) -> dict[str, Any]:
    """Return the row of one engine in one group."""
    drawn = seeds(grid, grid.seeds)
    if engine.mode == "naive":
        fixed = case(attrs.evolve(point, stream="ranges"), drawn[0])
        return {"microseconds_each": 1e6 * naive_seconds(fixed)}
    runs = several(engine, point, drawn, "single")
    once = point.stream == "drill-down" or (len(runs) == 1 < len(drawn))
    found = row(engine, runs, None if once else run(engine, point, drawn[0], "batch"))
    if engine.mode != "static":
        found["hard_at"] = np.flatnonzero(runs[0].trace.statuses == "hard").tolist()
    return found


def grown(engine: Engine, point: Point, grid: Grid) -> dict[str, Any]:
    """Return the row of one engine at one place of a growth curve, asked in batches."""
    return row(engine, several(engine, point, seeds(grid, grid.growth_seeds), "batch"), None)


def placed(engine: Engine, axis: str, value: int, grid: Grid) -> tuple[Engine, Point]:
    """Return the engine and the group at one place of a growth curve."""
    if axis != "hard_answers":
        return engine, attrs.evolve(grid.centre, **{axis: value})
    return attrs.evolve(engine, hard_answers=value), grid.centre


def refusal(engine: Engine, point: Point, grid: Grid) -> str | None:
    """Return why an engine cannot be opened, or None; one that can be is opened, and thrown away."""
    if engine.mode == "naive":
        return None
    try:
        opener(engine, point, case(point, seeds(grid, 1)[0]))()
    except (OnlineICError, RefusedError) as error:
        return str(error)
    return None
