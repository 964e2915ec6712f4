"""Twenty ordinary questions of real tables: counts, rates, means and medians, beside rivals and told noise.

    make rivals; python experiments/hour.py [--quick] [--from-json] [--only TABLE .. | sessions]

What a person asks who sits down with a table: `study.ordinary` has the tables, their sources and licences,
and twenty questions of each. Sessions are told nothing, or that twenty questions come, or have a wish: an
expected, or a certain, error of 1 per cent. Rivals run in environments of their own, each as its own
documentation says, with a twentieth of the budget for each question. Noise that was told the questions is
Gaussian with exact accounting, a twentieth for each, of the least numbers that answer it: a share or a mean
takes two, a table one for each cell, a median the histogram of its attribute. All have (1, 1e-6).

What is protected differs, and makes up to a factor of two: the content of a record (replace-one), or also
whether it is there (add-remove). Each engine stands beside told noise of its own neighbours, and sessions
are run with both where the domain is small enough. Errors are in records, percentage points, or the unit of
the mean, root mean squares over runs and groups; groups of fewer than `least` records are left out. Bias is
their part that does not change from run to run. Simulated noise of ours: NOT PRIVATE.
`--only sessions` runs ours and leaves the rows of rivals as they are recorded: nothing of ours is in them.
Writes results/hour.json; the markdown table and the figure are made from that file alone.
"""

import json
import math
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from scipy.special import digamma
from study.ordinary import TABLES, Question, Table, expression
from study.outcome import RESULTS, script, seeds, stamped

import onlineic as ic
from onlineic import marginal
from onlineic.accounting import gaussian_mu
from onlineic.errors import MissingDataError, OnlineICError
from onlineic.noise import SimulatedNoise
from onlineic.queries import Within

NAME = "hour"
ROOT = Path(__file__).resolve().parents[1]
WORKER = ROOT / "experiments" / "study" / "hour_engines.py"
BUDGET = (1.0, 1e-6)
REPLACED, ADDED = "replace-one", "add-remove"
WISH = 0.01
SESSIONS: dict[str, dict[str, Any]] = {
    "session, told nothing": {},
    "session, told twenty": {"questions": 20},
    "session, told its answers": {"questions": None},  # as many as a rehearsal says: a mean takes two
    "session, 1 % expected": {"within": Within(WISH, certain=False)},
    "session, 1 % certain": {"within": Within(WISH)},
}
OURS = "sessions"  # what --only takes besides tables
TOLD = "noise, told the questions"
RIVALS = {  # label: environment, and the neighbours that it can protect
    "OpenDP": (".venv-rivals-sql", (REPLACED, ADDED)),
    "SmartNoise": (".venv-rivals-sql", (ADDED,)),
    "diffprivlib": (".venv-rivals", (ADDED,)),
    "Tumult Analytics": (".venv-rivals-tumult", (ADDED,)),
}
SLOW = {"Tumult Analytics": ("wages",)}  # ten seconds a question: on these tables alone
SHOWN = {  # columns of the tables: the kinds of their questions
    "counts": ("count",),
    "rates": ("share", "shares"),
    "means": ("mean", "means"),
    "medians": ("median",),
    "tables": ("counts", "top"),
}
BESIDE = [  # the engines whose errors stand question by question
    (TOLD, REPLACED), ("session, told nothing", REPLACED), ("session, told its answers", REPLACED),
    ("OpenDP", REPLACED), (TOLD, ADDED), ("session, told its answers", ADDED), ("SmartNoise", ADDED),
    ("diffprivlib", ADDED), ("Tumult Analytics", ADDED),
]  # fmt: skip


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence, and are the same for all engines."""

    tables: tuple[str, ...] = tuple(TABLES)
    runs: int = 6
    noise_runs: int = 400  # of told noise, which costs nothing
    slow_runs: int = 1  # of rivals that take a second and more a question
    rivals: tuple[str, ...] = tuple(RIVALS)
    limit: int = 900  # seconds of the clock for all runs of a rival on one table
    least: int = 100  # records of a group whose error counts
    seed: int = 20261130


Answers = list[list[float | None]]


def asked(session: ic.OnlineIC, table: Table, refusals: list[str]) -> Answers:
    """Return what a session answers, a list of cells a question, None where it refuses."""
    found: Answers = []
    for question in table.questions:
        size = table.cells(question.by) if question.by else 1
        try:
            found.append(answered(session, table, question))
        except OnlineICError as error:
            refusals.append(f"{question.text}: {type(error).__name__}: {error}")
            found.append([None] * size)
    return found


def answered(session: ic.OnlineIC, table: Table, question: Question) -> list[float | None]:
    """Return the cells of one answer."""
    held = expression(question.condition, table.kinds)
    by = question.by[0] if len(question.by) == 1 else question.by
    match question.kind:
        case "count":
            return [float(session.answer(held).count)]
        case "share":
            return [100.0 * session.share(held, expression(question.among, table.kinds)).value]
        case "mean":
            return [float(session.mean(question.of, held).value)]
        case "median":
            return [float(session.median(question.of, held).value)]
        case "top":
            told = session.top(by, question.k)
            place = {value: code for code, value in enumerate(table.kinds[question.by[0]].values)}
            cells: list[float | None] = [None] * len(place)
            for (label,), value in zip(told.labels, told.values, strict=True):
                cells[place[label]] = float(value)
            return cells
        case "counts" if len(question.by) > 1:
            return [float(value) for value in np.ravel(session.answer(marginal(*question.by)).count)]
        case "shares":
            values = 100.0 * np.ravel(session.share(held, by=by).values)
        case "means":
            values = np.ravel(session.group_by(by, aggregate="mean", of=question.of).values)
        case _:
            values = np.ravel(session.group_by(by).values)
    return [None if math.isnan(value) else float(value) for value in values]


def ours(data: ic.PrivateData, table: Table, told: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the answers of one session, what it refused, its time and what it has spent."""
    began, refusals = time.process_time(), list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of wide bounds, and of more answers than questions
        if "questions" in told and told["questions"] is None:
            told = {"questions": rehearsed(data, table)}
        session = ic.OnlineIC(data, ic.Budget(*BUDGET), noise=SimulatedNoise(seed), **told)
        answers = asked(session, table, refusals)
    return {
        "answers": answers,
        "refusals": refusals,
        "seconds": time.process_time() - began,
        "spent": float(session.account.spent / session.account.capacity),
    }


def rehearsed(data: ic.PrivateData, table: Table) -> int:
    """Return how many answers the questions take, which the records do not decide."""
    session = ic.OnlineIC(data, ic.Budget(*BUDGET), noise=SimulatedNoise(0))
    return int(session.explain(lambda asking: asked(asking, table, [])).answers)


def noise(table: Table, neighbours: str, runs: int, seed: int) -> list[dict[str, Any]]:
    """Return the answers of Gaussian noise that has a twentieth of the budget for each question.

    Of a share it releases how many records meet the condition and how many do not, of a mean the sums of the
    values and of what they miss of the upper end, both scaled to 1: a record that is there or not moves this
    vector by at most 1, one that is replaced by sqrt(2); a count either moves by 1.
    """
    rng, sigma = np.random.default_rng(seed), math.sqrt(len(table.questions)) / gaussian_mu(*BUDGET)
    wide = sigma * (math.sqrt(2.0) if neighbours == REPLACED else 1.0)
    columns = [list(noised(table, question, sigma, wide, runs, rng)) for question in table.questions]
    return [{"answers": [column[run] for column in columns], "seconds": 0.0} for run in range(runs)]


def noised(
    table: Table, question: Question, sigma: float, wide: float, runs: int, rng: np.random.Generator
) -> Sequence[list[float | None]]:
    """Return the noisy answers to one question, a list of cells a run."""
    kept = table.kept(question.condition)
    if question.kind in ("counts", "top", "count"):
        exact = table.exact(question)
        found = exact + rng.normal(0.0, sigma if question.kind == "count" else wide, (runs, len(exact)))
        return [best(row, question.k) for row in found]
    place, size = (table.grouped(question.by), table.cells(question.by)) if question.by else (None, 1)

    def summed(weights: np.ndarray) -> np.ndarray:
        groups = np.zeros(table.n, int) if place is None else place
        exact = np.bincount(groups, weights=weights.astype(float), minlength=size)
        return np.asarray(exact + rng.normal(0.0, wide, (runs, size)))

    if question.kind in ("share", "shares"):
        among = table.kept(question.among)
        yes, no = summed(kept & among), summed(~kept & among)
        return [list(row) for row in 100.0 * fraction(yes, no)]
    kind, values = table.kinds[question.of], table.columns[question.of]
    kept = kept & ~np.isnan(values)
    if question.kind == "median":
        edges = (
            np.linspace(kind.low, kind.high, kind.bins + 1)
            if kind.bins
            else np.arange(kind.low, kind.high + 2)
        )
        exact = np.histogram(values[kept], edges)[0]
        return [
            [middle(row, edges, bool(kind.bins))] for row in exact + rng.normal(0.0, wide, (runs, len(exact)))
        ]
    scaled = np.where(kept, (values - kind.low) / (kind.high - kind.low), 0.0)
    upper, lower = summed(scaled), summed(np.where(kept, 1.0 - scaled, 0.0))
    return [list(row) for row in kind.low + (kind.high - kind.low) * fraction(upper, lower)]


def fraction(part: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the part of the sum, within 0 and 1."""
    return np.clip(part / np.maximum(part + rest, 1.0), 0.0, 1.0)


def best(row: np.ndarray, k: int) -> list[float | None]:
    """Return the k largest, None in the place of the others, or with k = 0 all."""
    if not k:
        return [float(value) for value in row]
    told = set(np.argsort(-row)[:k].tolist())
    return [float(value) if place in told else None for place, value in enumerate(row)]


def middle(row: np.ndarray, edges: np.ndarray, within: bool) -> float:
    """Return the median of a noisy histogram, in the bin by proportion."""
    sums = np.cumsum(np.maximum(row, 0.0))
    place = int(np.searchsorted(sums, 0.5 * sums[-1]))
    if not within:
        return float(edges[place])
    before = sums[place - 1] if place else 0.0
    part = (0.5 * sums[-1] - before) / max(sums[place] - before, 1e-9)
    return float(edges[place] + part * (edges[place + 1] - edges[place]))


def scored(table: Table, found: Sequence[dict[str, Any]], least: int) -> list[dict[str, Any]]:
    """Return the errors of every question over the runs, None where it was never answered. NOT PRIVATE."""
    rows = []
    for place, question in enumerate(table.questions):
        exact, held = table.exact(question), counted(table, question, least)
        given = np.array(
            [[np.nan if cell is None else cell for cell in one["answers"][place]] for one in found]
        )[:, held]
        errors = given - exact[held]
        told = np.isfinite(errors).sum(axis=0)
        groups = errors[:, told > 0]
        bias = []
        for group in (groups[:, told[told > 0] > 1]).T:
            some = group[np.isfinite(group)]
            # what the mean over the runs owes to their noise is taken off
            bias.append(float(some.mean() ** 2 - some.var(ddof=1) / len(some)))
        rows.append(
            {
                "rms": root(groups),
                "truth": root(exact[held][told > 0]),
                "bias": math.sqrt(max(float(np.mean(bias)), 0.0)) if bias else None,
                "errors": int(np.isfinite(groups).sum()),
                "within": float((np.abs(groups) <= wished(table, question)).sum() / max(errors.size, 1)),
                "refused": 0.0 if question.kind == "top" else float(np.isnan(errors).mean()),
            }
        )
    return rows


def wished(table: Table, question: Question) -> float:
    """Return the wish in the unit of a question: part of the records, of all, or of the range of values."""
    if question.of:
        kind = table.kinds[question.of]
        return WISH * (kind.high - kind.low)
    return 100.0 * WISH if question.unit == "points" else WISH * table.n


def root(values: np.ndarray) -> float | None:
    """Return the root mean square of what is there, or None."""
    there = values[np.isfinite(values)]
    return math.sqrt(float((there**2).mean())) if there.size else None


def counted(table: Table, question: Question, least: int) -> np.ndarray:
    """Return which cells of a question count: of shares and means those of groups that are large enough."""
    if question.kind not in ("shares", "means"):
        return np.ones(table.cells(question.by) if question.by else 1, bool)
    return np.bincount(table.grouped(question.by), minlength=table.cells(question.by)) >= least


def row_of(
    engine: str, neighbours: str, found: Sequence[dict[str, Any]], table: Table, config: Config
) -> dict[str, Any]:
    """Return the row of one engine."""
    return {
        "engine": engine,
        "neighbours": neighbours,
        "version": found[0].get("version", ic.__version__),
        "runs": len(found),
        "questions": scored(table, found, config.least),
        "first": [one["rms"] for one in scored(table, found[:1], config.least)],
        "seconds": float(np.mean([one["seconds"] for one in found])),
        "spent": float(np.mean([one.get("spent", 1.0) for one in found])),
        "refusals": sorted({text for one in found for text in one.get("refusals", [])})[:5],
    }


def measured(
    make: Callable[[], Table], config: Config, absent: list[str], recorded: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return what all engines err by on one table; with a recorded row the rivals of that one."""
    began, table, rows, without = time.perf_counter(), make(), list[dict[str, Any]](), list[str]()
    for neighbours in (REPLACED, ADDED):
        told = noise(table, neighbours, config.noise_runs, config.seed)
        rows.append(row_of(TOLD, neighbours, told, table, config))
        try:
            data = table.loaded(private_n=neighbours == ADDED)
        except OnlineICError as error:
            without.append(f"sessions, {neighbours}: {error}")
        else:
            for label, settings in SESSIONS.items():
                found = [ours(data, table, settings, seed) for seed in seeds(config.seed, config.runs)]
                rows.append(row_of(label, neighbours, found, table, config))
                tell(table, rows)
    if recorded is not None:
        rows += [one for one in recorded["engines"] if one["engine"] in config.rivals]
        without = sorted({*without, *recorded["not_run"]})
    with tempfile.TemporaryDirectory() as folder:
        write(table, Path(folder))
        for label in config.rivals if recorded is None else ():
            environment, protected = RIVALS[label]
            python = ROOT / environment / "bin" / "python"
            if not python.is_file():
                absent.append(label)
                print(f"{label}: absent, no {environment}, which `make rivals` makes", flush=True)
                continue
            for neighbours in protected:
                slow = label in SLOW or (label == "SmartNoise" and table.n > 100_000)
                if table.label not in SLOW.get(label, (table.label,)):
                    continue
                runs = config.slow_runs if slow else config.runs
                words = [str(python), str(WORKER), label, folder, neighbours, str(runs)]
                try:
                    found = theirs(words, config.limit)
                except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
                    without.append(f"{label}, {neighbours}: {failed(error)}")
                    print(f"{table.label}, {without[-1]}", flush=True)
                else:
                    rows.append(row_of(label, neighbours, found, table, config))
                    tell(table, rows)
    return {
        "stream": table.label,
        "record": table.unit,
        "n": table.n,
        "asked": [{"text": one.text, "kind": one.kind, "unit": one.unit} for one in table.questions],
        "engines": rows,
        "not_run": without,
        "seconds": round(time.perf_counter() - began, 1),
    }


def tell(table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Print how the last row did."""
    row, kinds = rows[-1], [one.kind for one in table.questions]
    mean = geometric(ratios(row, rows, kinds))
    print(f"{table.label}, {row['engine']}, {row['neighbours']}: {mean:.2f} of told noise, spent "
          f"{row['spent']:.3f}, {row['seconds']:.1f} s", flush=True)  # fmt: skip


def write(table: Table, folder: Path) -> None:
    """Write a table and its questions for the rivals."""
    np.savez(folder / "table.npz", **dict(table.columns))
    facts = {
        "budget": BUDGET,
        "kinds": {name: attrs.asdict(kind) for name, kind in table.kinds.items()},
        "questions": [
            {**attrs.asdict(one, recurse=False), "condition": dict(one.condition), "among": dict(one.among)}
            for one in table.questions
        ],
    }
    (folder / "asked.json").write_text(json.dumps(facts), encoding="utf-8")


def theirs(words: Sequence[str], limit: int) -> list[dict[str, Any]]:
    """Return all runs of a rival, from its own environment."""
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=limit)
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def failed(error: subprocess.TimeoutExpired | subprocess.CalledProcessError) -> str:
    """Return why a rival has no row."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"not finished in {error.timeout:.0f} s"
    return (error.stderr.strip().splitlines() or ["ended"])[-1]


def ratios(row: dict[str, Any], rows: Sequence[dict[str, Any]], kinds: Sequence[str]) -> np.ndarray:
    """Return error over that of told noise of the same neighbours; NaN without an answer.

    Corrected for the number of runs, which differs. A median that is exact in all runs of either is left
    out: it has no ratio.
    """
    told = next(one for one in rows if one["engine"] == TOLD and one["neighbours"] == row["neighbours"])
    found = []
    for kind, one, base in zip(kinds, row["questions"], told["questions"], strict=True):
        some = one["rms"] is not None and not (kind == "median" and min(one["rms"], base["rms"]) == 0.0)
        # the logarithm of a root mean square of few normal errors is too small in the mean: chi-square's
        few = math.exp(0.5 * (math.log(one["errors"] / 2) - digamma(one["errors"] / 2))) if some else 1.0
        found.append(few * one["rms"] / base["rms"] if some else math.nan)
    return np.array(found)


def geometric(values: np.ndarray) -> float:
    """Return the geometric mean of what is there."""
    there = values[np.isfinite(values)]
    return float(np.exp(np.log(there).mean())) if there.size else math.nan


def run(quick: bool, only: Sequence[str] = ()) -> dict[str, Any]:
    """Return the result: a row for every table, in it one for every engine."""
    start, absent, rows = time.perf_counter(), list[str](), list[dict[str, Any]]()
    config = Config(tables=("adult",), runs=1, noise_runs=20, rivals=()) if quick else Config()
    recorded = {}
    if OURS in only:
        recorded = {row["stream"]: row for row in json.loads((RESULTS / f"{NAME}.json").read_text())["rows"]}
    for label in config.tables:
        if only and OURS not in only and label not in only:
            continue
        try:
            rows.append(measured(TABLES[label], config, absent, recorded.get(label)))
        except MissingDataError as missing:
            absent.append(label)
            print(f"{label}: absent, {missing}", flush=True)
    return stamped(config, start, sorted(set(absent)), rows=rows)


def again(_: dict[str, Any]) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, table, label = Config(), TABLES["adult"](), "session, told nothing"
    seed = seeds(config.seed, config.runs)[0]
    found = [ours(table.loaded(private_n=False), table, SESSIONS[label], seed)]
    row = row_of(label, REPLACED, found, table, config)
    place = "rows/0/engines/1"
    return {f"{place}/engine": label, f"{place}/first": row["first"]}


def engines(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return engine and neighbours of all rows, those of one relation together."""
    pairs = dict.fromkeys(
        (one["engine"], one["neighbours"]) for row in result["rows"] for one in row["engines"]
    )
    return sorted(pairs, key=lambda pair: (pair[1] != REPLACED, pair[0] != TOLD))


def found_in(row: dict[str, Any], pair: tuple[str, str]) -> dict[str, Any] | None:
    """Return the row of an engine on a table, if there is one."""
    return next((one for one in row["engines"] if (one["engine"], one["neighbours"]) == pair), None)


def shown(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def table(result: dict[str, Any]) -> str:
    """Return ratios by table, ratios by kind with bias and price, and the errors of every question."""
    rows, pairs = result["rows"], engines(result)
    kinds = {row["stream"]: [one["kind"] for one in row["asked"]] for row in rows}
    lines = ["| neighbours | engine | " + " | ".join(f"{row['stream']}, {row['n']:,}" for row in rows)
             + " | all | worst question |", "|" + "---|" * (len(rows) + 4)]  # fmt: skip
    more = ["| neighbours | engine | " + " | ".join(SHOWN) + " | bias | per cent of the truth | refused "
            "| spent | seconds |", "|" + "---|" * (len(SHOWN) + 7)]  # fmt: skip
    for pair in pairs:
        held = [(row, one) for row in rows if (one := found_in(row, pair)) is not None]
        by_table = {row["stream"]: ratios(one, row["engines"], kinds[row["stream"]]) for row, one in held}
        every = np.concatenate(list(by_table.values()))
        means = [
            geometric(by_table[row["stream"]]) if row["stream"] in by_table else math.nan for row in rows
        ]
        lines.append(f"| {pair[1]} | {pair[0]} | {' | '.join(map(shown, [*means, geometric(every)]))} "
                     f"| {shown(float(np.nanmax(every)))} |")  # fmt: skip
        asked_kinds = np.array([kind for row, _ in held for kind in kinds[row["stream"]]])
        by_kind = [geometric(every[np.isin(asked_kinds, some)]) for some in SHOWN.values()]
        questions = [one for _, engine in held for one in engine["questions"]]
        biased = [one["bias"] / one["rms"] for one in questions if one["bias"] is not None and one["rms"]]
        part = [100.0 * one["rms"] / one["truth"] for one in questions if one["rms"] is not None]
        of_all = [float(np.mean([one[name] for _, one in held])) for name in ("spent", "seconds")]
        more.append(
            f"| {pair[1]} | {pair[0]} | {' | '.join(map(shown, by_kind))} "
            f"| {'-' if not biased else f'{np.mean(biased):.2f}'} | {np.median(part):.1f} "
            f"| {np.mean([one['refused'] for one in questions]):.1%} | {of_all[0]:.3f} | {of_all[1]:.1f} |"
        )
    parts = [
        "\n".join(lines), "Error over that of noise which was told the questions, of the same "
        "neighbours: geometric means over the questions.",
        "\n".join(more), "The same by kind of question. Bias: mean over the questions of the part of "
        "the error that is the same in every run. Per cent of the truth: median over the questions.",
    ]  # fmt: skip
    for row in rows:
        parts += ["\n".join(errors_of(row, BESIDE))]
    without = [f"{row['stream']}: {text}" for row in rows for text in row["not_run"]]
    return "\n\n".join([*parts, *(["Not run: " + "; ".join(without)] if without else [])])


def errors_of(row: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return the errors of every question of a table, in its unit and in per cent of the truth."""
    held = [(pair, one) for pair in pairs if (one := found_in(row, pair)) is not None]
    names = [f"{pair[0]} ({'replace' if pair[1] == REPLACED else 'add'})" for pair, _ in held]
    lines = [f"| {row['stream']}: a record is {row['record']} | unit | truth | {' | '.join(names)} |",
             "|" + "---|" * (len(names) + 3)]  # fmt: skip
    for place, question in enumerate(row["asked"]):
        cells = [in_unit(one["questions"][place]) for _, one in held]
        truth = held[0][1]["questions"][place]["truth"]
        lines.append(f"| {question['text']} | {question['unit']} | {truth:,.4g} | {' | '.join(cells)} |")
    return lines


def in_unit(found: dict[str, Any]) -> str:
    """Return an error in its unit and in per cent of the truth."""
    if found["rms"] is None:
        return "-"
    return f"{found['rms']:,.3g} ({100.0 * found['rms'] / found['truth']:,.2g} %)"


def figure(result: dict[str, Any], path: Path) -> None:
    """Draw the geometric means of every engine, a dot a table; needs matplotlib."""
    from matplotlib.figure import Figure

    pairs = [pair for pair in engines(result) if pair[0] != TOLD]
    canvas = Figure(figsize=(8.0, 0.34 * len(pairs) + 1.2), layout="constrained")
    axes = canvas.add_subplot()
    colours = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"]
    for row, colour in zip(result["rows"], colours, strict=False):
        kinds = [one["kind"] for one in row["asked"]]
        dots = [
            (geometric(ratios(one, row["engines"], kinds)), place)
            for place, pair in enumerate(pairs)
            if (one := found_in(row, pair)) is not None
        ]
        axes.plot(*zip(*dots, strict=True), "o", color=colour, markersize=5, label=row["stream"])
    axes.axvline(1.0, color="#555555", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(
        range(len(pairs)), [f"{engine}, {neighbours}" for engine, neighbours in pairs], fontsize=8
    )
    axes.invert_yaxis()
    axes.set_xlabel(
        "error over that of noise which was told the questions, geometric mean of twenty", fontsize=8
    )
    axes.legend(fontsize=7)
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure, order=(*TABLES, OURS))
