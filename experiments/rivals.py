"""Ten questions of a clinic, known in advance to every rival and to the session or not: who errs least?

    make rivals; python experiments/rivals.py [--quick] [--from-json] [--only ENGINE ..]

A made-up table of 50,000 visits with nine columns, and ten questions: two counts, two means, five tables of
counts and a quantile. AIM and MST (dpmm) make synthetic tables, of which the answers are taken; AIM runs once
as it comes, and three times with 27 rounds of 300 steps. MWEM+PGM (mbi) is told the sets of columns, and
answers from its graphical model. OpenDP has Gaussian noise, told the ten and composed by zCDP; SmartNoise and
diffprivlib get a tenth of the budget for each question, the latter with delta 0. Sessions are told nothing,
that ten questions come, that their 26 answers do (of a mean and a quantile they take several), or the sets of
columns. All have (1, 1e-6). Neighbours are those that each package has: AIM, MST, SmartNoise and diffprivlib
protect a record that is there or not, which is up to half the noise. Of a table the error is that of its
worst cell, in records. The ratio is to OpenDP's, geometric mean over nine questions without the quantile.
Rivals run in environments of their own, with their own noise. Simulated noise of ours: NOT PRIVATE. Writes
results/rivals.json; the markdown table and the figure are made from that file alone.
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
from study.outcome import script, seeds, stamped
from study.rival_engines import SIZES, exact

import onlineic as ic
from onlineic import marginal, where
from onlineic.errors import MissingDataError
from onlineic.noise import SimulatedNoise

NAME = "rivals"
ROOT = Path(__file__).resolve().parents[1]
WORKER = ROOT / "experiments" / "study" / "rival_engines.py"
OWN_END = "AIM, to its own end"
RIVALS = {  # label: environment
    OWN_END: ".venv-rivals",
    "AIM, 27 rounds": ".venv-rivals",
    "MST": ".venv-rivals",
    "MWEM+PGM": ".venv-rivals-pgm",
    "OpenDP, told the ten": ".venv-rivals-sql",
    "SmartNoise": ".venv-rivals-sql",
    "diffprivlib": ".venv-rivals",
}
SETS = [
    ("readmitted",), ("age", "sex", "ward"), ("los", "ward"), ("city",), ("month",), ("icd", "sex"),
    ("month", "ward"), ("cost",), ("los",),
]  # fmt: skip
SESSIONS: dict[str, dict[str, Any]] = {
    "session, told nothing": {},
    "session, told ten": {"questions": 10},
    "session, told 26 answers": {"questions": 26},
    "session, told the columns": {"questions": SETS},
}
SYNTHETIC = ("AIM, 27 rounds", "MST", "MWEM+PGM")
QUESTIONS = (
    "readmitted", "women of 65 in the ER", "mean age in the ER", "mean stay in surgery", "cities", "months",
    "diagnosis by sex", "ward by month", "cost classes", "p90 of the stay",
)  # fmt: skip
BASE = "OpenDP, told the ten"


@attrs.frozen
class Config:
    """What is run; all seeds come from one SeedSequence."""

    records: int = 50_000
    runs: int = 30  # an error of ten questions over six runs is off by a third
    synthetic_runs: int = 3  # of those that fit a model, which take minutes
    limit: int = 900  # seconds of a rival, of the clock; one that takes longer has no errors
    own_end: int = 3600  # the same of AIM as it comes, which runs once
    rivals: tuple[str, ...] = tuple(RIVALS)
    seed: int = 20261128


def clinic(config: Config) -> dict[str, np.ndarray]:
    """Return a made-up table as codes, one array a column."""
    rng, n = np.random.default_rng(7), config.records
    return {
        "month": rng.integers(0, 24, n),
        "age": rng.normal(52, 22, n).clip(0, 101).round().astype(int),
        "sex": rng.choice(2, n, p=[0.53, 0.47]),
        "city": rng.choice(6, n, p=[0.2, 0.3, 0.05, 0.2, 0.2, 0.05]),
        "ward": rng.choice(5, n, p=[0.4, 0.05, 0.2, 0.3, 0.05]),
        "icd": rng.choice(11, n),
        "cost": np.digitize(rng.lognormal(9.8, 1, n), [5e3, 1e4, 2e4, 5e4, 1e5]),
        "los": rng.gamma(1.5, 3, n).astype(int).clip(0, 30),
        "readmitted": rng.choice(2, n, p=[0.87, 0.13]),
    }


def asked(session: ic.OnlineIC) -> list[list[float]]:
    """Return the ten answers of a session, one question after the other."""

    def table(*names: str) -> list[float]:
        found: list[float] = np.ravel(session.answer(marginal(*names)).count).tolist()
        return found

    return [
        [float(session.answer(where(readmitted=1)).count)],
        [float(session.answer(where(sex=0, age=ic.at_least(65), ward=0)).count)],
        [session.mean("age", where(ward=0)).value],
        [session.mean("los", where(ward=2)).value],
        *(table(*names) for names in (("city",), ("month",), ("sex", "icd"), ("month", "ward"), ("cost",))),
        [float(session.quantile("los", 0.9).value)],
    ]


def ours(table: dict[str, np.ndarray], told: dict[str, Any]) -> Callable[[int], dict[str, Any]]:
    """Return seed -> answers of a session."""
    domain = ic.Domain.of({name: range(size) for name, size in SIZES.items()})
    data = ic.PrivateData.from_records(table, domain)

    def run(seed: int) -> dict[str, Any]:
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of wide bounds
            answers = asked(ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=SimulatedNoise(seed), **told))
        return {"answers": answers, "seconds": time.perf_counter() - began, "version": ic.__version__}

    return run


class StoppedError(Exception):
    """A rival took longer than it may; says how far it came."""


def theirs(label: str, path: Path, limit: int) -> Callable[[int], dict[str, Any]]:
    """Return seed -> answers of a rival, from its own environment."""
    python = ROOT / RIVALS[label] / "bin" / "python"
    if not python.is_file():
        raise MissingDataError(f"no {RIVALS[label]}, which `make rivals` makes")

    def run(seed: int) -> dict[str, Any]:
        told = [str(python), str(WORKER), label, str(path), str(seed % 2**31)]
        try:
            done = subprocess.run(told, capture_output=True, text=True, check=True, timeout=limit)
        except subprocess.TimeoutExpired as late:
            said = (late.stderr or b"").decode().strip().splitlines()[-1:]
            raise StoppedError(", ".join([f"not finished in {limit:,} s", *said])) from late
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    return run


def row_of(
    label: str, run: Callable[[int], dict[str, Any]], truth: list[list[float]], drawn: list[int]
) -> dict:
    """Return the errors of one engine: of a question the mean over the seeds."""
    found = [run(seed) for seed in drawn]
    errors = [
        [
            None if answer is None else float(np.abs(np.subtract(answer, right)).max())
            for answer, right in zip(one["answers"], truth, strict=True)
        ]
        for one in found
    ]
    return {
        "stream": label,
        "engine": label,
        "version": found[0]["version"],
        "errors": [
            None if None in column else float(np.mean(column)) for column in zip(*errors, strict=True)
        ],
        "errors_by_seed": errors,
        "seconds": float(np.mean([one["seconds"] for one in found])),
    }


def without(label: str, why: StoppedError) -> dict:
    """Return the row of a rival that did not finish."""
    return {"stream": label, "engine": label, "version": "-", "stopped": str(why), "seconds": 0.0,
            "errors": [None] * len(QUESTIONS), "errors_by_seed": []}  # fmt: skip


def run(quick: bool, only: Sequence[str] = ()) -> dict:
    start, absent = time.perf_counter(), list[str]()
    config = Config(records=20_000, runs=1, rivals=()) if quick else Config()
    table, drawn, rows = clinic(config), seeds(config.seed, config.runs), []
    truth = exact(table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, **table)
        for label, told in SESSIONS.items():
            if not only or label in only:
                rows.append(row_of(label, ours(table, told), truth, drawn))
        for label in config.rivals:
            if only and label not in only:
                continue
            few = (
                drawn[:1]
                if label == OWN_END
                else drawn[: config.synthetic_runs if label in SYNTHETIC else None]
            )
            limit = config.own_end if label == OWN_END else config.limit
            try:
                rows.append(row_of(label, theirs(label, path, limit), truth, few))
            except MissingDataError as missing:
                absent.append(label)
                print(f"{label}: absent, {missing}", flush=True)
            except StoppedError as stopped:
                rows.append(without(label, stopped))
                print(f"{label}: {stopped}", flush=True)
    for row in rows:
        print(row["engine"], [None if one is None else round(one, 2) for one in row["errors"]], flush=True)
    return stamped(config, start, absent, rows=rows)


def again(_: dict) -> dict[str, Any]:
    """Return places in the result and what one seed of a cheap row gives there now, for `make fresh`."""
    config, label = Config(), "session, told the columns"
    table, seed = clinic(config), seeds(config.seed, config.runs)[0]
    row = row_of(label, ours(table, SESSIONS[label]), exact(table), [seed])
    place = f"rows/{list(SESSIONS).index(label)}"
    return {f"{place}/engine": label, f"{place}/errors_by_seed/0": row["errors_by_seed"][0]}


def ratio(row: dict, base: dict) -> float:
    """Return the geometric mean of the ratios of errors, without the quantile."""
    pairs = list(zip(row["errors"], base["errors"], strict=True))[:-1]
    return math.exp(float(np.mean([math.log(max(one, 1e-9) / other) for one, other in pairs])))


def table(result: dict) -> str:
    rows = {row["engine"]: row for row in result["rows"]}
    base = rows.get(BASE) or next(iter(rows.values()))
    lines = [
        f"| engine | version | error over that of {base['engine']} | "
        "count | women of 65 in the ER | mean age | diagnosis by sex | ward by month | seconds |",
        "|" + "---|" * 9,
    ]
    finished = [row for row in result["rows"] if "stopped" not in row]
    for row in sorted(finished, key=lambda row: ratio(row, base)):
        shown = " | ".join(f"{row['errors'][place]:,.3g}" for place in (0, 1, 2, 6, 7))
        lines.append(
            f"| {row['engine']} | {row['version']} | {ratio(row, base):.2f} | {shown} "
            f"| {row['seconds']:,.1f} |"
        )
    config = result["config"]
    said = (
        f"Errors in records, of tables the worst cell, means over {config['runs']} runs, of AIM, MST and "
        f"MWEM+PGM over {config['synthetic_runs']}{', of AIM to its own end over one' * (OWN_END in rows)}."
    )
    late = [f"{row['engine']}: {row['stopped']}" for row in result["rows"] if "stopped" in row]
    return "\n".join([*lines, "", " ".join([said, *(f"{one}." for one in late)])])


def figure(result: dict, path: Path) -> None:
    """Draw the ratio of every question and engine; needs matplotlib."""
    from matplotlib.figure import Figure

    rows = {row["engine"]: row for row in result["rows"] if "stopped" not in row}
    base = rows.get(BASE) or next(iter(rows.values()))
    canvas = Figure(figsize=(8.0, 4.2), layout="constrained")
    axes = canvas.add_subplot()
    for row, colour in zip(rows.values(), ["#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#999999",
                                            "#CC79A7", "#000000", "#F0E442", "#8B4513", "#7B3FF2"],
                           strict=False):  # fmt: skip
        ratios = [one / other for one, other in zip(row["errors"][:-1], base["errors"][:-1], strict=True)]
        axes.plot(ratios, range(len(ratios)), "o", color=colour, markersize=5, label=row["engine"])
    axes.axvline(1.0, color="#555555", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(QUESTIONS) - 1), QUESTIONS[:-1])
    axes.invert_yaxis()
    axes.set_xlabel(f"error over that of {base['engine']}")
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    canvas.savefig(path, dpi=110)


if __name__ == "__main__":
    script(NAME, __doc__, run, table, figure, order=(*SESSIONS, *RIVALS))
