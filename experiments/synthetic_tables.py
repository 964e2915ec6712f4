"""Real tables by engines that fit a model, AIM, MST and MWEM+PGM, beside a session and told noise: who errs?

    make rivals; python experiments/synthetic_tables.py [--quick] [--from-json] [--only TABLE ..]

Twenty ordinary questions of two real tables (`study.ordinary` has sources and licences), and the first 1,000
conjunctions of the stream over the National Long Term Care Survey, sixteen binary attributes. AIM and MST
(dpmm) are told the domain alone; AIM runs as it comes on one table, with 27 rounds of 300 steps on all, and
with 48 on the survey: 27 were three for each of nine attributes, of which the survey has sixteen.
MWEM+PGM (mbi) is told the sets of attributes that the questions have. Columns become codes: labels by place,
whole numbers by value, numbers by bin, a missing value as one more. Synthetic records are turned back, and
answer as a table: of a bin they have its middle, and for a median they are spread evenly over it.

All have (1, 1e-6). The engines that fit a model protect whether a record is there (add-remove), and so does
the told noise that their errors are divided by; sessions run with replace-one too, over told noise of that.
Told noise is Gaussian with exact accounting, an equal part for each question. A model is fitted once a table:
one run says little. What does not finish in `limit` seconds of the clock has no errors. Rivals run in
environments of their own, with their own noise. Simulated noise of ours: NOT PRIVATE. Writes
results/synthetic_tables.json; the markdown table and the figure are made from that file alone.
"""

import csv
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import hour
import numpy as np
from study.ordinary import TABLES, Kind, Table, count, labels
from study.outcome import script, seeds, stamped
from study.sources import fetched, present
from study.streams import Sizes, makers

from onlineic.errors import MissingDataError, OnlineICError

NAME = "synthetic_tables"
ROOT = Path(__file__).resolve().parents[1]
WORKER = ROOT / "experiments" / "study" / "synthetic_engines.py"
SURVEY, SESSION = "NLTCS", "session, told nothing"
OWN_END, MORE = "AIM, to its own end", "AIM, 48 rounds"
RIVALS = {  # label: environment
    OWN_END: ".venv-rivals",
    "AIM, 27 rounds": ".venv-rivals",
    MORE: ".venv-rivals",
    "MST": ".venv-rivals",
    "MWEM+PGM": ".venv-rivals-pgm",
}
REPLACED, ADDED, TOLD = hour.REPLACED, hour.ADDED, hour.TOLD
POOLED = 100  # questions of a table above which one error stands for all
LEAST_COUNT = 0.5  # records: synthetic ones are whole, and whose count is exact was lucky


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    tables: tuple[str, ...] = ("wages", "health", SURVEY)
    queries: int = 1_000  # of the survey's stream
    runs: int = 6  # of a session
    noise_runs: int = 400  # of told noise, which costs nothing
    rivals: tuple[str, ...] = tuple(RIVALS)
    own_end_of: tuple[str, ...] = ("wages",)  # the tables that AIM as it comes is fitted to
    more_of: tuple[str, ...] = (SURVEY,)  # those of AIM with 48 rounds: three for each of many attributes
    limit: int = 900  # seconds of a fit, of the clock
    own_end: int = 1_800  # the same of AIM as it comes
    rounds: int = 32  # of MWEM+PGM at most: each costs a fit
    least: int = 100  # records of a group whose error counts
    seed: int = 20261130


def sources(config: Config, names: Sequence[str], absent: list[str]) -> Iterator[Table]:
    """Yield the tables of these names, one at a time, with their questions."""
    made: dict[str, Callable[[], Table]] = {**TABLES, SURVEY: partial(survey, config.queries)}
    yield from present({name: made[name] for name in names}, absent)


def survey(queries: int) -> Table:
    """Return the survey, with the first conjunctions of its stream as counts."""
    stream = makers(Sizes(queries=queries))[SURVEY]()
    names = stream.data.domain.names
    with fetched("nltcs").open(newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    asked = [
        # every condition is of one of two labels; a query of a single condition may be kept as its complement
        count(**{names[axis]: str(label ^ query.complement) for axis, label, _ in query.key})
        for query in stream.queries
    ]
    kinds = {name: labels("0", "1") for name in names}
    columns = {name: np.array([row[name] for row in rows]) for name in names}
    found = Table(SURVEY, "a person", kinds, columns, asked)
    exact = [float(found.exact(question)[0]) for question in asked]
    assert np.allclose(exact, stream.truths * found.n)
    return found


def size_of(kind: Kind) -> int:
    """Return how many codes a column has."""
    return (kind.bins or len(kind.values)) + kind.missing


def coded(kind: Kind, column: np.ndarray) -> np.ndarray:
    """Return the codes of a column."""
    if kind.labels:
        places = {label: place for place, label in enumerate(kind.labels)}
        return np.array([places[value] for value in column.tolist()])
    there = ~np.isnan(column)
    edges = np.linspace(kind.low, kind.high, kind.bins + 1) if kind.bins else np.array(kind.values)
    codes = np.searchsorted(edges, np.where(there, column, kind.low), side="right") - 1
    last = size_of(kind) - 1
    return np.where(there, np.minimum(codes, last - kind.missing), last)


def decoded(kind: Kind, codes: np.ndarray, *, spread: bool) -> np.ndarray:
    """Return the values of codes, those of a bin at its middle or spread evenly over it."""
    if kind.labels:
        return np.asarray(np.array(kind.labels)[codes])
    found = np.asarray(kind.low + codes, float)
    if kind.bins:
        within = np.full(len(codes), 0.5)
        if spread:
            for code in range(kind.bins):
                held = np.flatnonzero(codes == code)
                within[held] = (np.arange(len(held)) + 0.5) / max(len(held), 1)
        found = kind.low + (kind.high - kind.low) / kind.bins * (codes + within)
    return np.where(codes == size_of(kind) - 1, np.nan, found) if kind.missing else found


def answered(table: Table, codes: Mapping[str, np.ndarray]) -> hour.Answers:
    """Return what synthetic records answer to the questions of a table."""
    middles, spread = (
        attrs.evolve(
            table,
            columns={name: decoded(kind, codes[name], spread=flag) for name, kind in table.kinds.items()},
        )
        for flag in (False, True)
    )
    found: hour.Answers = []
    with np.errstate(invalid="ignore", divide="ignore"):  # of groups that no synthetic record is in
        for question in table.questions:
            cells = (spread if question.kind == "median" else middles).exact(question)
            found.append(
                [None if cell is None or math.isnan(cell) else cell for cell in hour.best(cells, question.k)]
            )
    return found


def attributes(table: Table) -> list[list[str]]:
    """Return the sets of attributes that the questions have, each once."""
    sets = [{*one.condition, *one.among, *one.by, *([one.of] if one.of else [])} for one in table.questions]
    return [list(held) for held in dict.fromkeys(tuple(sorted(held)) for held in sets)]


def row_of(
    engine: str, neighbours: str, found: Sequence[dict[str, Any]], table: Table, config: Config
) -> dict[str, Any]:
    """Return the row of one engine; of many questions one error stands for all."""
    row: dict[str, Any] = hour.row_of(engine, neighbours, found, table, hour.Config(least=config.least))
    if len(table.questions) > POOLED:
        row["questions"] = [pooled(row["questions"])]
        row["first"] = [math.sqrt(float(np.mean(np.square(row["first"]))))]
    return row


def pooled(questions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the error of many questions, root mean square."""

    def root(name: str) -> float:
        return math.sqrt(float(np.mean([one[name] ** 2 for one in questions])))

    biased = all(one["bias"] is not None for one in questions)
    return {
        "rms": root("rms"),
        "truth": root("truth"),
        "bias": root("bias") if biased else None,
        "errors": sum(one["errors"] for one in questions),
        "within": float(np.mean([one["within"] for one in questions])),
        "refused": float(np.mean([one["refused"] for one in questions])),
    }


def asked_of(table: Table) -> list[dict[str, str]]:
    """Return the questions whose errors the rows have."""
    if len(table.questions) > POOLED:
        return [{"text": f"{len(table.questions):,} conjunctions", "kind": "count", "unit": "records"}]
    return [{"text": one.text, "kind": one.kind, "unit": one.unit} for one in table.questions]


def measured(table: Table, config: Config, absent: list[str]) -> dict[str, Any]:
    """Return what all engines err by on one table."""
    began, rows, without = time.perf_counter(), list[dict[str, Any]](), list[str]()
    result: dict[str, Any] = {
        "stream": table.label,
        "record": table.unit,
        "n": table.n,
        "asked": asked_of(table),
        "sets": len(attributes(table)),
        "rounds": min(len(attributes(table)), config.rounds),
        "engines": rows,
        "not_run": without,
    }
    for neighbours in (REPLACED, ADDED):
        told = hour.noise(table, neighbours, config.noise_runs, config.seed)
        rows.append(row_of(TOLD, neighbours, told, table, config))
        try:
            data = table.loaded(private_n=neighbours == ADDED)
        except OnlineICError as error:
            without.append(f"sessions, {neighbours}: {error}")
        else:
            found = [hour.ours(data, table, {}, seed) for seed in seeds(config.seed, config.runs)]
            rows.append(row_of(SESSION, neighbours, found, table, config))
            tell(result)
    with tempfile.TemporaryDirectory() as folder:
        write(table, config, Path(folder))
        for label in config.rivals:
            if table.label not in {OWN_END: config.own_end_of, MORE: config.more_of}.get(
                label, config.tables
            ):
                continue
            python = ROOT / RIVALS[label] / "bin" / "python"
            if not python.is_file():
                absent.append(label)
                print(f"{label}: absent, no {RIVALS[label]}, which `make rivals` makes", flush=True)
                continue
            seed = seeds(config.seed, config.runs)[0] % 2**31
            limit = config.own_end if label == OWN_END else config.limit
            try:
                once = theirs([str(python), str(WORKER), label, folder, str(seed)], limit)
            except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
                without.append(f"{label}: {failed(error)}")
                print(f"{table.label}, {without[-1]}", flush=True)
                continue
            with np.load(Path(folder) / f"{label}.npz") as made:
                once["answers"] = answered(table, {name: made[name] for name in table.kinds})
            rows.append(row_of(label, ADDED, [once], table, config))
            tell(result)
    return {**result, "seconds": round(time.perf_counter() - began, 1)}


def write(table: Table, config: Config, folder: Path) -> None:
    """Write the codes of a table, and what is public, for the rivals."""
    np.savez(
        folder / "codes.npz", **{name: coded(kind, table.columns[name]) for name, kind in table.kinds.items()}
    )
    told = {
        "sizes": {name: size_of(kind) for name, kind in table.kinds.items()},
        "sets": attributes(table),
        "rounds": config.rounds,
    }
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")


def theirs(words: Sequence[str], limit: int) -> dict[str, Any]:
    """Return what a rival says of its run, from its own environment."""
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=limit)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def failed(error: subprocess.TimeoutExpired | subprocess.CalledProcessError) -> str:
    """Return why a rival has no row, and how far it came."""
    if isinstance(error, subprocess.CalledProcessError):
        return str(hour.failed(error))
    said = (error.stderr or b"").decode().strip().splitlines()
    rounds = [line for line in said if line.startswith("round ")][-1:]
    return ", ".join([f"not finished in {error.timeout:,.0f} s", *rounds])


def ratios(row: dict[str, Any], engine: dict[str, Any]) -> np.ndarray:
    """Return the errors of an engine over those of told noise of the same neighbours."""
    questions = [
        {**one, "rms": max(one["rms"], LEAST_COUNT)}
        if asked["unit"] == "records" and one["rms"] is not None
        else one
        for asked, one in zip(row["asked"], engine["questions"], strict=True)
    ]
    found: np.ndarray = hour.ratios(
        {**engine, "questions": questions}, row["engines"], [one["kind"] for one in row["asked"]]
    )
    return found


def tell(row: dict[str, Any]) -> None:
    """Print how the last engine did."""
    last = row["engines"][-1]
    error = hour.geometric(ratios(row, last))
    head = f"{row['stream']}, {last['engine']}, {last['neighbours']}"
    print(f"{head}: {error:.2f} of told noise, {last['seconds']:.1f} s", flush=True)


def run(quick: bool, only: Sequence[str] = ()) -> dict[str, Any]:
    """Return the result: a row for every table, in it one for every engine."""
    start, absent = time.perf_counter(), list[str]()
    config = Config(tables=("adult",), runs=1, noise_runs=20, rivals=()) if quick else Config()
    names = [name for name in config.tables if not only or name in only]
    rows = [measured(table, config, absent) for table in sources(config, names, absent)]
    return stamped(config, start, sorted(set(absent)), rows=rows)


def again(_: dict[str, Any]) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config = Config()
    place, label, missing = config.tables.index("wages"), SESSION, list[str]()
    for table in sources(config, ["wages"], missing):
        data, seed = table.loaded(private_n=False), seeds(config.seed, config.runs)[0]
        row = row_of(label, REPLACED, [hour.ours(data, table, {}, seed)], table, config)
        where = f"rows/{place}/engines/1"
        return {f"{where}/engine": label, f"{where}/first": row["first"]}
    raise MissingDataError(f"no {', '.join(missing)}")


def engines(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return engine and neighbours of all rows, those of one relation together, the fitted ones in order."""
    order = list(RIVALS)

    def place(pair: tuple[str, str]) -> tuple[bool, int]:
        return pair[1] != REPLACED, order.index(pair[0]) if pair[0] in order else -1

    return sorted(hour.engines(result), key=place)


def table(result: dict[str, Any]) -> str:
    """Return ratios by table, ratios by kind with errors of the survey, and the errors of every question."""
    rows, pairs = result["rows"], engines(result)
    lines = [
        "| neighbours | engine | version | runs | "
        + " | ".join(f"{row['stream']}, {row['n']:,} | seconds" for row in rows) + " |",
        "|" + "---|" * (2 * len(rows) + 4),
    ]  # fmt: skip
    kinds = [
        "| neighbours | engine | " + " | ".join(hour.SHOWN)
        + " | worst question | per cent of the truth |", "|" + "---|" * (len(hour.SHOWN) + 4)]  # fmt: skip
    for pair in pairs:
        cells, every, of_kind, part = [], list[float](), list[str](), list[float]()
        runs, versions = set(), set()
        for row in rows:
            one = hour.found_in(row, pair)
            if one is None:
                cells += ["-", "-"]
                continue
            found = ratios(row, one)
            cells += [hour.shown(hour.geometric(found)), f"{one['seconds']:,.1f}"]
            runs.add(one["runs"])
            versions.add(one["version"])
            if len(found) > 1:
                every += found.tolist()
                of_kind += [asked["kind"] for asked in row["asked"]]
                part += [100.0 * q["rms"] / q["truth"] for q in one["questions"] if q["rms"] is not None]
        lines.append(
            f"| {pair[1]} | {pair[0]} | {', '.join(sorted(versions))} "
            f"| {', '.join(map(str, sorted(runs)))} | {' | '.join(cells)} |"
        )
        if every:
            values = np.array(every)
            means = [hour.geometric(values[np.isin(of_kind, some)]) for some in hour.SHOWN.values()]
            kinds.append(
                f"| {pair[1]} | {pair[0]} | {' | '.join(map(hour.shown, means))} "
                f"| {hour.shown(float(np.nanmax(values)))} | {np.median(part):.1f} |"
            )
    parts = [
        "\n".join(lines), "Error over that of noise which was told the questions, of the same neighbours: "
        "geometric means over twenty questions, of the survey the root mean square.",
        "\n".join(kinds), "The same by kind of question, of the tables with twenty. Per cent of the truth: "
        "median over the questions.",
    ]  # fmt: skip
    parts += ["\n".join(hour.errors_of(row, pairs)) for row in rows]
    without = [f"{row['stream']}: {text}" for row in rows for text in row["not_run"]]
    return "\n\n".join([*parts, *(["Not run: " + "; ".join(without)] if without else [])])


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw the mean of every engine, a dot a table; needs matplotlib."""
    from matplotlib.figure import Figure

    pairs = [pair for pair in engines(result) if pair[0] != TOLD]
    canvas = Figure(figsize=(8.0, 0.34 * len(pairs) + 1.2), layout="constrained")
    axes = canvas.add_subplot()
    for row, colour in zip(result["rows"], ["#0072B2", "#E69F00", "#009E73"], strict=False):
        dots = [
            (hour.geometric(ratios(row, one)), place)
            for place, pair in enumerate(pairs)
            if (one := hour.found_in(row, pair)) is not None
        ]
        axes.plot(*zip(*dots, strict=True), "o", color=colour, markersize=6, label=row["stream"])
    axes.axvline(1.0, color="#555555", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"], fontsize=8)
    axes.set_xticks([], minor=True)
    axes.set_yticks(
        range(len(pairs)), [f"{engine}, {neighbours}" for engine, neighbours in pairs], fontsize=8
    )
    axes.invert_yaxis()
    axes.set_xlabel("error over that of noise which was told the questions", fontsize=8)
    axes.legend(fontsize=7)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure, order=Config().tables)
