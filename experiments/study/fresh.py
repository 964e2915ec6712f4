"""Are the results those of today's code? `make fresh` reruns one seed of a cheap row of each and compares.

    python experiments/study/fresh.py [--current] [--cheap] [NAME ..]

Every script has a function `again`, which takes its result and returns places in it with what they are now.
With the numpy, the scipy and the processor of the result both must agree to 1e-9; with others, which are
named, to 1e-3, because the last digit of a sum may decide on which side of a threshold a gap lies.
Red is a number that differs, or a script whose settings are others than those of its result. Results made
before the code of a wing that they ran changed are listed as older, whether or not that seed gives the same;
with --current they are red too. --cheap leaves out the results whose one seed takes longest: half a minute.
"""

import argparse
import importlib
import json
import math
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))

from onlineic.errors import MissingDataError  # noqa: E402
from study.provenance import code, versions  # noqa: E402

RESULTS = ROOT / "experiments" / "results"
CLOSE, LOOSE = 1e-9, 1e-3  # relative: on the same libraries and processor, and on others
DECISIVE = ("numpy", "scipy", "processor")
TIMES = {"seconds", "opened", "longest"}  # no rerun repeats them
MEASURE_TIME = {"counted_elsewhere", "loading_times", "serving"}  # whose results are times alone
DEAR = {
    "large_domains",
    "listening",
    "online_offline",
    "sweeps",
    "ten_questions",
    "turbo",
}  # to repeat a seed
MISSING = object()


@attrs.frozen
class Verdict:
    """What a rerun says of one result."""

    name: str
    differences: tuple[str, ...] = ()
    older: str = ""
    environment: tuple[str, ...] = ()
    remark: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        said = "RED" if self.differences else "same" if not self.remark else self.remark
        elsewhere = f", on other versions: {'; '.join(self.environment)}" if self.environment else ""
        return f"{self.name}: {said} ({self.seconds:.1f} s){elsewhere}"


def judged(name: str, module: Any, result: Mapping[str, Any], now: Mapping[str, str]) -> Verdict:
    """Return the verdict on one result of a script; `now` are the digests of the code."""
    older, environment = aged(result, now), elsewhere(result)
    if name in MEASURE_TIME:
        return Verdict(name, older=older, remark="times, which no rerun repeats")
    differing = other_settings(module, result)
    if differing:
        return Verdict(name, differing, older, environment)
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of wide bounds, as the scripts have them
            found = module.again(result)
    except MissingDataError:
        found = {}
    except Exception as error:  # the engine of the result may be gone
        differing = (f"it raises {type(error).__name__}: {error}",)
        return Verdict(name, differing, older, environment)
    seconds = time.perf_counter() - began
    if not found:
        return Verdict(name, older=older, remark="not compared, its table is absent", seconds=seconds)
    limit = LOOSE if environment else CLOSE
    for place, value in json.loads(json.dumps(found)).items():
        differing += tuple(differences(place, at(result, place), value, limit))
    return Verdict(name, differing, older, environment, seconds=seconds)


def other_settings(module: Any, result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return in what the settings of a script are others than those of its result."""
    config = module.full_config() if hasattr(module, "full_config") else module.Config()
    settings = json.loads(json.dumps(attrs.asdict(config), default=float))
    return tuple(differences("config", result["config"], settings, 0.0))


def at(result: Any, place: str) -> Any:
    """Return what stands at a place such as rows/0/rms, or `MISSING`."""
    for step in place.split("/"):
        try:
            result = result[int(step) if isinstance(result, list) else step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return result


def differences(place: str, recorded: Any, now: Any, limit: float) -> Iterator[str]:
    """Yield the places below this one whose numbers differ by more than the limit, relative."""
    if recorded is MISSING:
        yield f"{place}: not recorded, now {now!r}"
    elif isinstance(now, dict) and isinstance(recorded, dict):
        for key in [key for key in {**recorded, **now} if key not in TIMES and key in now]:
            yield from differences(f"{place}/{key}", recorded.get(key, MISSING), now[key], limit)
    elif isinstance(now, list) and isinstance(recorded, list) and len(now) == len(recorded):
        for number, (one, other) in enumerate(zip(recorded, now, strict=True)):
            yield from differences(f"{place}/{number}", one, other, limit)
    elif not same(recorded, now, limit):
        yield f"{place}: recorded {recorded!r}, now {now!r}"


def same(recorded: Any, now: Any, limit: float) -> bool:
    """Return whether two values are the same, numbers up to the limit."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (recorded, now))
    if not numbers:
        return bool(recorded == now)
    return math.isclose(recorded, now, rel_tol=limit) or (math.isnan(recorded) and math.isnan(now))


def aged(result: Mapping[str, Any], now: Mapping[str, str]) -> str:
    """Return why a result is of older code, or nothing."""
    made = [result, *(row["made"] for row in rows_of(result) if "made" in row)]
    if any("code" not in one for one in made):
        return "some of it was made before results were stamped" if "code" in result else "without a stamp"
    changed = sorted(
        {wing for one in made for wing, digest in one["code"].items() if now.get(wing) != digest}
    )
    since = result["versions"].get("commit") or "an unknown commit"
    return f"{', '.join(changed)} changed since {since[:7]}" if changed else ""


def rows_of(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every row of every list of a result."""
    for part in result.values():
        yield from (row for row in part if isinstance(row, dict)) if isinstance(part, list) else ()


def elsewhere(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what decides about the last digit and is another one here."""
    here, there = versions(), result["versions"]
    return tuple(
        f"{name} {there.get(name, 'not told')}, here {here[name]}"
        for name in DECISIVE
        if there.get(name) != here[name]
    )


def told(verdicts: list[Verdict], current: bool) -> tuple[list[str], bool]:
    """Return what is printed below the verdicts, and whether all is well."""
    red = [one for one in verdicts if one.differences]
    older = [one for one in verdicts if one.older]
    lines = [f"{len(verdicts)} results: {len(red)} red, {len(older)} of older code"]
    for one in red:
        lines += [f"RED {one.name}: run python experiments/{one.name}.py again", *one.differences[:5]]
        lines += [f".. {len(one.differences) - 5} more"] if len(one.differences) > 5 else []
    lines += [f"older {one.name}: {one.older}; python experiments/{one.name}.py" for one in older]
    return lines, not (red or (current and older))


def main(words: list[str] | None = None) -> None:
    """Judge all results, or those that are named, and fail if one is red."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--current", action="store_true", help="results of older code are red too")
    parser.add_argument("--cheap", action="store_true", help="without the results that take longest")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args(words)
    now, verdicts = code(), []
    names = arguments.names or sorted(path.stem for path in RESULTS.glob("*.json"))
    for name in [name for name in names if not (arguments.cheap and name in DEAR)]:
        result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        verdicts.append(judged(name, importlib.import_module(name), result, now))
        print(verdicts[-1], flush=True)
    lines, well = told(verdicts, arguments.current)
    print("\n".join(lines))
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
