"""What the first questions cost those that follow: the purchase rule at several of its settings.

    python experiments/frontier.py [--quick] [--from-json] [--only STREAM ..]

Ordinary questions (counts by two conditions, means by group) of the five shipped attributes of Adult and of
all fourteen; and 1, 5, 100 and 2,000 random ranges over the five, 2,000 over five of the fourteen. They are
asked one at a time at (1, 1e-6), of a session that is told nothing: at the default purchase rule, and with
other parts of the account for numbers (`rent`) and for one of them (`single`). Beside them stands the session
that is told how many numbers come. The error is stated over that of Gaussian noise which is told the same: of
ordinary questions the geometric mean over the questions, of others the root mean square. Simulated noise: NOT
PRIVATE.
Writes results/frontier.json; the markdown table and the figure are made from that file alone.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from listening import Config as Streams
from listening import of_five
from study.outcome import script, seeds, stamped
from study.sources import Stream, adult5_data, present, stream_of

import onlineic as ic
from onlineic.accounting import gaussian_mu
from onlineic.errors import TooFewRecordsError
from onlineic.evaluate import exact_values, random_stream
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.progress import advance

NAME = "frontier"
BUDGET = ic.Budget(1.0, 1e-6)
ORDER = (
    "ordinary", "ordinary, of 14", "1 asked", "5 asked", "100 asked", "2,000 asked", "2,000 asked, of 14"
)  # fmt: skip
# the attribute whose mean is asked, or None, and conditions: a label, or two ends
Ordinary = tuple[str | None, Mapping[str, Any]]
OF_FIVE: tuple[Ordinary, ...] = (
    (None, {"income": ">50K", "sex": "Female"}),
    (None, {"income": ">50K", "sex": "Male"}),
    (None, {"education_num": (13, 16), "sex": "Female"}),
    (None, {"education_num": (13, 16), "income": ">50K"}),
    (None, {"age": (65, 90), "income": ">50K"}),
    (None, {"race": "Black", "income": ">50K"}),
    ("age", {"income": ">50K"}),
    ("age", {"income": "<=50K"}),
    ("education_num", {"sex": "Female"}),
    ("education_num", {"sex": "Male"}),
    ("age", {"race": "Black"}),
    ("education_num", {"age": (60, 90)}),
)
OF_FOURTEEN: tuple[Ordinary, ...] = (
    (None, {"income>50K": 1, "sex": 0}),
    (None, {"income>50K": 1, "sex": 1}),
    (None, {"income>50K": 1, "workclass": 5}),
    (None, {"hours-per-week": (49, 98), "sex": 0}),
    (None, {"hours-per-week": (49, 98), "sex": 1}),
    (None, {"education-num": (12, 15), "occupation": 3}),
    ("hours-per-week", {"sex": 0}),
    ("hours-per-week", {"sex": 1}),
    ("hours-per-week", {"income>50K": 1}),
    ("age", {"marital-status": 2}),
    ("age", {"workclass": 5}),
    ("education-num", {"race": 1}),
)


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    rents: tuple[float, ...] = (0.2, 0.4, 0.6)  # beside it 0: no numbers
    singles: tuple[float, ...] = (1 / 32, 1 / 16)
    ordinary: int = 12  # sessions, as of the following
    ordinary_of_14: int = 4
    asked: tuple[tuple[int, int], ...] = ((1, 60), (5, 30), (100, 8), (2_000, 4))
    focus: int = 2_000
    focused: int = 1
    seed: int = 20261129


@attrs.frozen
class Point:
    """The settings of one session; without, it is told how many numbers come."""

    rent: float | None = None
    single: float | None = None

    def session(self, data: ic.PrivateData, numbers: int, seed: int) -> ic.OnlineIC:
        if self.rent is None or self.single is None:
            return ic.OnlineIC(data, BUDGET, questions=numbers, noise=SimulatedNoise(seed))
        usual: Any = session_plan(data.domain, data.n, BUDGET).purchases
        rule = attrs.evolve(usual, rent=Fraction(self.rent).limit_denominator(), single=Fraction(self.single))
        return ic.OnlineIC(data, BUDGET, purchases=rule, noise=SimulatedNoise(seed))


DEFAULT = Point(0.4, 1 / 32)


def points(config: Config) -> list[Point]:
    """Return all settings that are tried, and last the one that is told."""
    tried = [Point(rent, single) for rent in config.rents for single in config.singles]
    return [Point(0.0, config.singles[0]), *tried, Point()]


def condition(wanted: Mapping[str, Any]) -> Any:
    """Return conditions as a question."""
    return ic.where({key: ic.between(*one) if isinstance(one, tuple) else one for key, one in wanted.items()})


def numbers(asked: Sequence[Ordinary]) -> int:
    """Return how many numbers are asked for: a mean is a sum over a count."""
    return sum(1 if name is None else 2 for name, _ in asked)


def exact(data: ic.PrivateData, asked: Sequence[Ordinary]) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact values, and the deviations of Gaussian noise that is told how many numbers come."""
    sigma, found = math.sqrt(numbers(asked)) / gaussian_mu(BUDGET.epsilon, BUDGET.delta), []
    for name, wanted in asked:
        if name is None:
            found.append((data.n * exact_values(data, [condition(wanted)])[0], sigma))
            continue
        attribute = data.domain.attribute(name)
        labels = np.array([attribute.label(code) for code in range(attribute.size)], np.float64)
        counts = data.n * exact_values(data, [condition({**wanted, name: one}) for one in labels.tolist()])
        mean, width = labels @ counts / counts.sum(), labels[-1] - labels[0]
        share = (mean - labels[0]) / width
        found.append((mean, width / counts.sum() * sigma * math.hypot(1.0, share)))
    values, noises = np.array(found).T
    return values, noises


def answers(session: ic.OnlineIC, asked: Sequence[Ordinary]) -> list[float]:
    """Return what a session tells; a mean that it refuses is no number."""
    found = []
    for name, wanted in asked:
        try:
            one = condition(wanted)
            found.append(session.answer(one).count if name is None else session.mean(name, one).value)
        except TooFewRecordsError:
            found.append(math.nan)
    return found


@attrs.frozen(eq=False)
class Hour:
    """What an analyst asks of a table, by so many sessions."""

    data: ic.PrivateData
    asked: tuple[Ordinary, ...]
    sessions: int

    def row(self, point: Point, seed: int) -> dict[str, Any]:
        """Return the error of each question over told noise, the bias in the same unit, and refusals."""
        values, noises = exact(self.data, self.asked)
        opened = [point.session(self.data, numbers(self.asked), one) for one in seeds(seed, self.sessions)]
        errors = (np.array([answers(one, self.asked) for one in opened]) - values) / noises
        ratios = np.sqrt(np.nanmean(errors**2, axis=0))
        return {
            "over told noise": float(np.exp(np.log(ratios).mean())),
            "by question": ratios.tolist(),
            "bias": math.sqrt(float((np.nanmean(errors, axis=0) ** 2).mean())),
            "refused": int(np.isnan(errors).sum()),
        }


@attrs.frozen(eq=False)
class Ranges:
    """Streams of as many random questions, each asked of one session."""

    streams: tuple[Stream, ...]

    def row(self, point: Point, seed: int) -> dict[str, Any]:
        """Return the error over that of told noise, and in fractions of records."""
        squares, drawn = [], seeds(seed, len(self.streams))
        for stream, one in zip(self.streams, drawn, strict=True):
            session = point.session(stream.data, len(stream.queries), one)
            told = [session.answer(query).value for query in stream.queries]
            squares.append(np.mean((np.array(told) - stream.truths) ** 2))
        rms, stream = math.sqrt(float(np.mean(squares))), self.streams[0]
        noise = math.sqrt(len(stream.queries)) / gaussian_mu(BUDGET.epsilon, BUDGET.delta) / stream.data.n
        return {"over told noise": rms / noise, "rms": rms}


def ranges(count: int, sessions: int, config: Config) -> Ranges:
    """Return random ranges over the shipped table, other ones for each session."""
    data = adult5_data()
    asked = [random_stream(data.domain, count, config.seed + one) for one in range(sessions)]
    return Ranges(tuple(stream_of(f"{count:,} asked", data, one) for one in asked))


def makers(config: Config) -> dict[str, Callable[[], Hour | Ranges]]:
    """Return label -> maker of everything that is asked, in the order of the rows."""

    def focus() -> Ranges:
        return Ranges((of_five(None, Streams(few=config.focus, seed=config.seed)),) * config.focused)

    def fourteen() -> Hour:
        return Hour(of_five(None, Streams(few=0)).data, OF_FOURTEEN, config.ordinary_of_14)

    found: dict[str, Callable[[], Hour | Ranges]] = {
        "ordinary": lambda: Hour(adult5_data(), OF_FIVE, config.ordinary),
        "ordinary, of 14": fourteen,
    }
    for count, sessions in config.asked:
        found[f"{count:,} asked"] = partial(ranges, count, sessions, config)
    return {**found, "2,000 asked, of 14": focus}


def named(config: Config, chosen: Sequence[str], absent: list[str]) -> Iterator[tuple[str, Hour | Ranges]]:
    """Yield label and questions of those whose table is there."""
    for label, make in makers(config).items():
        if label in chosen:
            for made in present({label: make}, absent):
                yield label, made


def run(quick: bool, only: list[str]) -> dict[str, Any]:
    start = time.perf_counter()
    config = quick_config() if quick else Config()
    absent: list[str] = []
    rows = []
    for label, questions in named(config, only or (["ordinary", "5 asked"] if quick else ORDER), absent):
        began, tried = time.process_time(), points(config)
        found = []
        for place, point in enumerate(tried):
            found.append({**attrs.asdict(point), **questions.row(point, config.seed)})
            advance(label, place + 1, len(tried))
        rows.append({"stream": label, "points": found, "seconds": time.process_time() - began})
    return stamped(config, start, absent, rows=rows)


def quick_config() -> Config:
    return Config(rents=(0.4,), singles=(1 / 32,), ordinary=2, asked=((5, 2),))


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what the default gives of five questions now, for `make fresh`."""
    config = Config()
    row, place = ORDER.index("5 asked"), points(config).index(DEFAULT)
    count, sessions = config.asked[1]
    found = ranges(count, sessions, config).row(DEFAULT, config.seed)
    return {f"rows/{row}/points/{place}": attrs.asdict(DEFAULT) | found}


def of_point(point: Mapping[str, Any]) -> str:
    """Return the name of a point."""
    if point["rent"] is None:
        return "told how many"
    if not point["rent"]:
        return "no numbers"
    name = f"rent {point['rent']:g}, single 1/{1 / point['single']:.0f}"
    return f"**{name}**" if Point(point["rent"], point["single"]) == DEFAULT else name


def table(result: dict[str, Any]) -> str:
    """Return errors over told noise, a row for each point."""
    rows = result["rows"]
    lines = [
        "| session | " + " | ".join(row["stream"] for row in rows) + " |",
        "|---" * (len(rows) + 1) + "|",
    ]
    for place, point in enumerate(rows[0]["points"]):
        cells = [f"{row['points'][place]['over told noise']:.2g}" for row in rows]
        lines.append(f"| {of_point(point)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def joined(rows: Sequence[Mapping[str, Any]], place: int) -> float:
    """Return the geometric mean over some streams of one point."""
    return math.exp(np.mean([math.log(row["points"][place]["over told noise"]) for row in rows]))


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw ordinary questions against two thousand ranges, a point for each setting; needs matplotlib."""
    from matplotlib.figure import Figure

    rows = result["rows"]
    few = [row for row in rows if row["stream"].startswith("ordinary")] or rows[:1]
    many = [row for row in rows if row["stream"].startswith("2,000")] or rows[-1:]
    drawn = Figure(figsize=(7.5, 5), layout="constrained")
    axes, tried = drawn.subplots(), rows[0]["points"]
    at = [(joined(few, place), joined(many, place)) for place in range(len(tried))]
    for single in result["config"]["singles"]:
        line = [
            one for one, point in zip(at, tried, strict=True) if point["rent"] and point["single"] == single
        ]
        axes.plot(
            *zip(*line, strict=True), marker="o", label=f"numbers cost 1/{1 / single:.0f} of what is left"
        )
    for one, point in zip(at, tried, strict=True):
        if not point["rent"]:
            axes.plot(*one, "s", color="black")
            axes.annotate(of_point(point), one, xytext=(5, 5), textcoords="offset points")
        elif Point(point["rent"], point["single"]) == DEFAULT:
            axes.annotate("default", one, xytext=(5, 5), textcoords="offset points", weight="bold")
        else:
            axes.annotate(f"{point['rent']:g}", one, xytext=(3, -9), textcoords="offset points", fontsize=7)
    axes.set_xlabel("ordinary questions: error over that of noise told how many numbers come")
    axes.set_ylabel("2,000 ranges, one at a time: error over that of told noise")
    axes.margins(0.12)
    axes.grid(alpha=0.3)
    axes.legend()
    drawn.savefig(path, dpi=120)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure, ORDER)
