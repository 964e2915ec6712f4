"""Make every result that is not of the present code, two scripts side by side: `make experiments`.

    python experiments/study/all.py [--list] [--jobs 2] [NAME ..]

A result is skipped if it was made with the settings that its script has now, by the code that the wings have
now (`study.provenance`). So a run that was stopped goes on where it was, result by result, and of a script
whose rows are made apart (`--only`) row by row. The longest run first; results of times run last and alone.
`--list` says which would run, and why, and runs none. Exits 1 if a script fails or its result misses rows.
"""

import argparse
import importlib
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))

from study.fresh import MEASURE_TIME, RESULTS, aged, other_settings  # noqa: E402
from study.provenance import code  # noqa: E402

LOGS = ROOT / "build" / "experiments"  # what each script printed
UNKNOWN = 60.0  # seconds of a script that has no result yet


@attrs.frozen
class Task:
    """One script that must run, and why; of some rows alone where the others are of the present code."""

    name: str
    why: str
    only: tuple[str, ...] = ()
    seconds: float = UNKNOWN

    @property
    def words(self) -> list[str]:
        return [f"experiments/{self.name}.py", *(["--only", *self.only] if self.only else [])]


def scripts() -> list[str]:
    """Return the names of all experiments."""
    return sorted(
        path.stem for path in (ROOT / "experiments").glob("*.py") if not path.stem.startswith("make_")
    )


def task_of(name: str, now: dict[str, str]) -> Task | None:
    """Return what there is to run of a script, or None if its result is of the present code."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return Task(name, "no result")
    result = json.loads(path.read_text(encoding="utf-8"))
    seconds = max(result.get("processor_seconds", 0.0), UNKNOWN if name in MEASURE_TIME else 0.0)
    seconds = seconds or result["wall_seconds"]
    module = importlib.import_module(name)
    if other_settings(module, result):
        return Task(name, "other settings", seconds=seconds)
    why = aged(result, now)
    if not why:
        return None
    parts = [row for part in result.values() if isinstance(part, list) for row in part]
    some = "only" in inspect.signature(module.run).parameters
    if some and all(isinstance(row, dict) and {"stream", "seconds"} <= row.keys() for row in parts):
        own = {name: result[name] for name in ("versions", "code") if name in result}
        old = {row["stream"]: row["seconds"] for row in parts if aged(row.get("made", own), now)}
        if 0 < len(old) < len(parts):
            return Task(name, why, tuple(old), sum(old.values()))
    return Task(name, why, seconds=seconds)


def done(task: Task, now: dict[str, str]) -> str:
    """Run a script, its output in a log, and return what is wrong with it, or nothing."""
    began = time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    log = LOGS / f"{task.name}.log"
    with log.open("w", encoding="utf-8") as written:
        run = subprocess.run(
            [sys.executable, *task.words], cwd=ROOT, env=environment, stdout=written, stderr=subprocess.STDOUT
        )
    wrong = ""
    if run.returncode:
        wrong = f"it ended with {run.returncode}"
    elif task_of(task.name, now) is not None:
        wrong = "its result was not kept, or rows of it are older"
    said = f"WRONG, {wrong}: see {log.relative_to(ROOT)}" if wrong else "made"
    print(f"{task.name}: {said} ({time.perf_counter() - began:.0f} s)", flush=True)
    return wrong


def main(words: Sequence[str] | None = None) -> None:
    """Run what is to be run, and fail if something of it failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="say which would run, and run none")
    parser.add_argument("--jobs", type=int, default=2, help="scripts side by side")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args(words)
    now, tasks = code(), list[Task]()
    for name in arguments.names or scripts():
        task = task_of(name, now)
        if task is None:
            print(f"{name}: of the present code")
        else:
            tasks.append(task)
            part = f", {len(task.only)} rows" if task.only else ""
            print(f"{name}: to run{part}, about {task.seconds:.0f} s: {task.why}")
    total = sum(task.seconds for task in tasks)
    print(f"{len(tasks)} to run, about {total / 60.0:.0f} minutes of the processor", flush=True)
    if arguments.list:
        return
    LOGS.mkdir(parents=True, exist_ok=True)
    tasks.sort(key=lambda task: -task.seconds)
    timed = [task for task in tasks if task.name in MEASURE_TIME]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        wrong = [*pool.map(lambda task: done(task, now), (task for task in tasks if task not in timed))]
    wrong += [done(task, now) for task in timed]
    sys.exit(1 if any(wrong) else 0)


if __name__ == "__main__":
    main()
