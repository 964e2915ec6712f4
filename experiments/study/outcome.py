"""One engine measured on one stream, and what a script writes: JSON first, table and figure from it alone."""

import argparse
import importlib.util
import json
import math
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import onlineic as ic
from onlineic.evaluate import known_baselines, trace
from onlineic.noise import Noise, SimulatedNoise
from onlineic.progress import advance, reporting
from study.sources import Stream

RESULTS = Path(__file__).resolve().parents[1] / "results"
Maker = Callable[[Noise], Any]


def seeds(entropy: int, count: int) -> list[int]:
    """Return seeds for `SimulatedNoise`, children of one SeedSequence."""
    return [
        int(child.generate_state(1, np.uint64)[0]) for child in np.random.SeedSequence(entropy).spawn(count)
    ]


def measured(
    label: str, make: Maker, stream: Stream, drawn: list[int], limit: float = math.inf
) -> dict[str, Any]:
    """Return one row: the errors of an engine over all seeds. NOT PRIVATE.

    rms joins the seeds (root of the mean square), max is the mean of the seeds' largest errors, beyond the
    share of answers whose error exceeds `limit`.
    """
    traces, opened = [], []
    for seed in drawn:
        began = time.perf_counter()
        engine = make(SimulatedNoise(seed))
        opened.append(time.perf_counter() - began)
        advance(f"{stream.label}, {label}", len(opened), len(drawn))
        traces.append(trace(label, engine, stream.data, stream.queries, truths=stream.truths, seed=seed))
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
        "within_bound": float(held.mean()) if held.size else None,
        "seconds": float(np.mean([one.seconds for one in traces])) + float(np.mean(opened)),
        "seeds": drawn,
    }


def default_session(stream: Stream, budget: ic.Budget, **options: Any) -> Maker:
    """Return the maker of `OnlineIC` as it comes, for as many queries as the stream has."""
    return lambda noise: ic.OnlineIC(
        stream.data, budget, max_queries=len(stream.queries), noise=noise, **options
    )


def baselines(stream: Stream, budget: ic.Budget) -> dict[str, Maker]:
    """Return the trivial baselines, which are told what an online engine is not: counts or attribute sets."""
    known = known_baselines(stream.data, budget, stream.queries)
    # labels without the number of sets, which differs from stream to stream
    return {
        label.partition(" (")[0].replace(" noise, cached", ", cached"): make for label, make in known.items()
    }


def stamped(config: Any, start: float, absent: Sequence[str] = (), **content: Any) -> dict[str, Any]:
    """Return a result with configuration, versions and times, and with what is absent, if anything is."""
    return {
        "config": attrs.asdict(config),
        "versions": {
            "onlineic": ic.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "wall_seconds": round(time.perf_counter() - start, 2),
        "processor_seconds": round(time.process_time(), 2),  # what a busy machine repeats
        **({"absent": list(absent)} if absent else {}),
        **content,
    }


def script(
    name: str,
    about: str,
    run: Callable[[bool], dict[str, Any]],
    table: Callable[[dict[str, Any]], str],
    figure: Callable[[dict[str, Any], Path], None],
) -> None:
    """Run an experiment from the command line: --quick in a temporary folder, --from-json without running.

    Where tables are absent, what the others give goes to a temporary folder too.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small version, under 20 seconds")
    parser.add_argument("--from-json", action="store_true", help="only make the table and the figure")
    arguments = parser.parse_args()
    path = RESULTS / f"{name}.json"

    if arguments.quick or not arguments.from_json:
        bars = sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
        with reporting("bar" if bars else None):
            result = run(arguments.quick)
        if arguments.quick or "absent" in result:  # a part of the rows must not pass for the result
            path = Path(tempfile.mkdtemp()) / path.name
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
