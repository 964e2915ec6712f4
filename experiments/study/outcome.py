"""One engine measured on one stream, and what a script writes: JSON first, table and figure from it alone."""

import argparse
import importlib.util
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs
import numpy as np

import onlineic as ic
from onlineic.evaluate import known_baselines, trace
from onlineic.noise import Noise, SimulatedNoise
from onlineic.progress import advance, reporting
from study.provenance import code, uncommitted, versions
from study.sources import Stream

RESULTS = Path(__file__).resolve().parents[1] / "results"
TRIVIAL = 0.5  # what the constant answer 1/2 errs by at most
Maker = Callable[[Noise], Any]


def seeds(entropy: int, count: int) -> list[int]:
    """Return seeds for `SimulatedNoise`, children of one SeedSequence."""
    return [
        int(child.generate_state(1, np.uint64)[0]) for child in np.random.SeedSequence(entropy).spawn(count)
    ]


def measured(
    label: str,
    make: Maker,
    stream: Stream,
    drawn: list[int],
    limit: float = math.inf,
    useful: float = math.inf,
    timing: Literal["batch", "single"] = "batch",
) -> dict[str, Any]:
    """Return one row: the errors of an engine over all seeds. NOT PRIVATE.

    rms joins the seeds (root of the mean square), max is the mean of the seeds' largest errors, beyond the
    share of answers whose error exceeds `limit`. Beside the answers without a test, trivial are those with
    one whose bound says no more than the constant 1/2 does, and blind those whose test had a threshold above
    `useful`: the mechanism's, at the end of every batch. Of the blind ones unbounded are those whose bound,
    which may rest on other releases than the test, is above `useful` too. Seconds are of the processor.
    Queries come in calls of 256, or with `timing` "single" one by one: what is asked buys other tables then.
    """
    traces, opened, trivial, blind, unbounded = [], [], 0, 0, 0
    for seed in drawn:
        began = time.process_time()
        engine = make(SimulatedNoise(seed))
        opened.append(time.process_time() - began)
        advance(f"{stream.label}, {label}", len(opened), len(drawn))
        batches: list[tuple[int, float]] = [(0, 0.0)]
        one = trace(
            label,
            engine,
            stream.data,
            stream.queries,
            truths=stream.truths,
            seed=seed,
            timing=timing,
            progress=lambda now, held=batches: held.append((now.asked, getattr(now, "threshold", 0.0))),
            clock=time.process_time,
        )
        traces.append(one)
        asked = np.array([count for count, _ in batches])
        thresholds = np.repeat([threshold for _, threshold in batches[1:]], np.diff(asked))
        wide = (one.statuses != "untested") & (one.bounds >= TRIVIAL)
        trivial += int(wide.sum())
        tested = (one.statuses == "easy") & (one.bounds > 0.0)  # constants are known without a test
        blindly = tested & ~wide & (thresholds > useful)
        blind += int(blindly.sum())
        unbounded += int((blindly & (one.bounds > useful)).sum())
    rms = [one.rms_error for one in traces]
    held = np.concatenate([np.abs(one.errors[one.bounded]) <= one.bounds[one.bounded] for one in traces])
    return {
        "engine": label,
        "rms": math.sqrt(float(np.mean(np.square(rms)))),
        "rms_by_seed": rms,
        "max": float(np.mean([one.max_error for one in traces])),
        "beyond": float(np.mean([(np.abs(one.errors) > limit).mean() for one in traces])),
        "hard": float(np.mean([one.hard for one in traces])),
        "untested": float(np.mean([one.untested for one in traces])),
        "trivial": trivial / len(drawn),
        "blind": blind / len(drawn),
        "unbounded": unbounded / len(drawn),
        "spent": float(np.mean([one.spent for one in traces])),
        "within_bound": float(held.mean()) if held.size else None,
        "seconds": float(np.mean([one.seconds for one in traces])) + float(np.mean(opened)),
        "seeds": drawn,
    }


def one_seed(place: str, label: str, make: Maker, stream: Stream, seed: int) -> dict[str, Any]:
    """Return what the first seed gives, under its places in a result: the name of the engine and its rms."""
    row = measured(label, make, stream, [seed])
    return {f"{place}/engine": label, f"{place}/rms_by_seed/0": row["rms"]}


def default_session(stream: Stream, budget: ic.Budget, **options: Any) -> Maker:
    """Return the maker of `OnlineIC` as it comes, for as many queries as the stream has unless told else."""
    length = len(stream.queries)
    told = {"max_queries": length, "questions": length, **options}
    return lambda noise: ic.OnlineIC(stream.data, budget, noise=noise, **told)


def baselines(stream: Stream, budget: ic.Budget) -> dict[str, Maker]:
    """Return the trivial baselines, which are told what an online engine is not: counts or attribute sets."""
    known = known_baselines(stream.data, budget, stream.queries)
    # labels without the number of sets, which differs from stream to stream
    return {
        label.partition(" (")[0].replace(" noise, cached", ", cached"): make for label, make in known.items()
    }


def stamped(config: Any, start: float, absent: Sequence[str] = (), **content: Any) -> dict[str, Any]:
    """Return a result with configuration, versions, digests of the code and times, and with what is absent.

    The digests are those of the wings that the run has imported: no other one can have changed its numbers.
    """
    return {
        "config": attrs.asdict(config),
        "versions": versions(),
        "code": code(loaded=True),
        "wall_seconds": round(time.perf_counter() - start, 2),
        "processor_seconds": round(time.process_time(), 2),  # what a busy machine repeats
        **({"absent": list(absent)} if absent else {}),
        **content,
    }


def merged(path: Path, result: dict[str, Any], order: Sequence[str]) -> dict[str, Any]:
    """Return the result on disk with the rows of some streams replaced, which must have the same settings.

    A row that stays keeps what it was made by, so that `make fresh` can tell the older rows of a result.
    """
    if not path.is_file():
        return result
    old = json.loads(path.read_text())
    if old["config"] != json.loads(json.dumps(result["config"])):
        raise SystemExit(f"{path} was made with other settings: run all streams")
    made = {name: old[name] for name in ("versions", "code") if name in old}
    for part in old.values():
        for row in part if isinstance(part, list) else []:
            if isinstance(row, dict):
                row.setdefault("made", made)
    rows = {row["stream"]: row for row in [*old["rows"], *result["rows"]]}
    return {**old, **result, "rows": [rows[label] for label in order if label in rows]}


def script(
    name: str,
    about: str,
    run: Callable[..., dict[str, Any]],
    table: Callable[[dict[str, Any]], str],
    figure: Callable[[dict[str, Any], Path], None],
    order: Sequence[str] | None = None,
) -> None:
    """Run an experiment from the command line: --quick in a temporary folder, --from-json without running.

    Where tables are absent, what the others give goes to a temporary folder too, and so does what code makes
    that is in no commit. With `order`, the labels of all streams, `run` takes some of them as well, and
    --only replaces their rows in the result that is there.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small version, under 20 seconds")
    parser.add_argument("--from-json", action="store_true", help="only make the table and the figure")
    if order is not None:
        parser.add_argument(
            "--only", nargs="+", default=[], choices=order, metavar="STREAM", help="some rows"
        )
    arguments = parser.parse_args()
    path = RESULTS / f"{name}.json"
    places = ["onlineic", f"experiments/{name}.py", "experiments/study"]
    changed, begun = uncommitted(places), {} if arguments.quick or arguments.from_json else code()
    if changed and not (arguments.quick or arguments.from_json):
        print(f"in no commit, so that what this gives goes to a temporary folder: {', '.join(changed)}")

    if arguments.quick or not arguments.from_json:
        bars = sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
        with reporting("bar" if bars else None):
            result = run(arguments.quick) if order is None else run(arguments.quick, arguments.only)
        if not arguments.quick and (code() != begun or uncommitted(places) != changed):
            changed = [*changed, "code that changed while this ran"]
        if changed:
            result["versions"]["commit"] = None  # no commit has this code
        if arguments.quick or changed or "absent" in result:  # must not pass for the result
            path = Path(tempfile.mkdtemp()) / path.name
        elif order is not None:
            result = merged(path, result, order) if arguments.only else result
        if order is not None and "absent" not in result:  # what the rows cost that are there
            parts = [row for part in result.values() if isinstance(part, list) for row in part]
            result["processor_seconds"] = round(sum(row["seconds"] for row in parts), 2)
        path.write_text(json.dumps(result, indent=1) + "\n")
    result = json.loads(path.read_text())
    shown = table(result)
    if "absent" in result:
        shown += f"\n\nAbsent: {'; '.join(result['absent'])}."
    path.with_suffix(".md").write_text(shown + "\n")
    print(shown)
    try:
        figure(result, path.with_suffix(".png"))
    except ImportError:
        print("no figure: install onlineic[plot]")
    if "absent" in result and not arguments.quick:
        print("python -m onlineic.datasets fetch gets what is absent; results/ is left as it was")
    print(f"{path}: {result['wall_seconds']} s")
