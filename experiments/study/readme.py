"""Tables of READMEs and documents, cut from result files: `make tables` writes, `--check` names what is old.

A line `<!-- table: NAME 2, columns 1-4 6, rows 1 3-5 -->` stands above the second table of results/NAME.md,
of which it takes some columns and rows, and `<!-- end -->` below it. Numbers count from 1; what is left out
means the first table, and all of it. results/NAME.md itself is what the script makes of results/NAME.json.
Tables of the benchmarks are those of benchmarks/tables.py, and are called by their names there.
"""

import importlib.util
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "results"
BENCHMARKS = ROOT / "benchmarks"
READMES = (
    ROOT / "README.md",
    ROOT / "experiments" / "README.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "docs" / "reproduction.md",
    ROOT / "docs" / "analysts.md",
    ROOT / "docs" / "tables.md",
    ROOT / "docs" / "serving.md",
    ROOT / "docs" / "which_rule.md",
)
MARKED = re.compile(r"(<!-- table: ([^\n]+?) -->\n).*?(<!-- end -->)", re.S)
WISH = re.compile(r"(\w+)(?: (\d+))?(?:, columns ([\d -]+))?(?:, rows ([\d -]+))?")


def filled(text: str) -> str:
    """Return a README with every marked table as the result files have it."""
    return MARKED.sub(lambda found: found[1] + shown(found[2]) + found[3], text)


def shown(wish: str) -> str:
    """Return the lines of one table by its marker."""
    if wish in MADE:
        return MADE[wish]()
    found = WISH.fullmatch(wish)
    if found is None:
        raise ValueError(f"a marker must read NAME 2, columns 1-4 6, rows 1 3-5; got {wish}")
    name, place, columns, rows = found.groups()
    lines = tables((RESULTS / f"{name}.md").read_text(encoding="utf-8"))[int(place or 1) - 1]
    body = lines[2:] if rows is None else [lines[1 + row] for row in numbers(rows)]
    return "".join(cut(line, columns) for line in [*lines[:2], *body])


def tables(text: str) -> list[list[str]]:
    """Return the tables of a markdown text, each as its lines."""
    return [part.splitlines() for part in re.findall(r"(?:^\|.*\n?)+", text, re.M)]


def numbers(text: str) -> list[int]:
    """Return 1, 3, 4, 5 of "1 3-5"."""
    ends = [list(map(int, part.split("-"))) for part in text.split()]
    return [number for pair in ends for number in range(pair[0], pair[-1] + 1)]


def cut(line: str, columns: str | None) -> str:
    """Return a row of a table with some columns only."""
    if columns is None:
        return line + "\n"
    cells = re.split(r"(?<!\\)\|", line)
    return "|".join(["", *(cells[column] for column in numbers(columns)), "\n"])


# Tables that no script writes as they stand in a README

SHOWN = ("default", "per-query, cached", "one noisy histogram", "noisy tables")
STREAMS = {  # of gallery.json
    "adult6": "Adult, 6 attributes, 10,000 1- to 3-way ranges and points",
    "adult5": "Adult, 5 attributes, 10,000 random 1- to 3-way ranges",
    "NLTCS": "NLTCS, 16 binary attributes, 10,000 1- to 4-way points",
    "adult8-2way": "Adult, 8 attributes, every cell of all two-way tables",
    "HEPTH": "HEPTH, n = 347,414, one attribute, 10,000 ranges",
    "PATENT": "PATENT, n = 27,948,226, one attribute, 10,000 ranges",
    "covid, Zipf 0": "Covid-like, n = 50,000, 20,000 conjunctions of sets",
}


def measured() -> str:
    """Return the default session beside three baselines, rms in 1e-5 of the records, the least one bold."""
    rows = {row["stream"]: row for row in json.loads((RESULTS / "gallery.json").read_text())["rows"]}
    lines = [
        "| table and stream | cells | session | Gaussian, cached | histogram | known tables |",
        "|---|---|---|---|---|---|",
    ]
    for stream, label in STREAMS.items():
        found = {one["engine"]: 1e5 * one["rms"] for one in rows[stream]["engines"]}
        errors = [found[name] for name in SHOWN]
        cells = [rounded(error) for error in errors]
        best = errors.index(min(errors))
        cells[best] = f"**{cells[best]}**"
        lines.append(f"| {label} | {rows[stream]['cells']:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rounded(value: float) -> str:
    """Return two digits of a value below 10, else the whole number."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def by_path(path: Path) -> Any:
    """Return a module that is no part of a package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_benchmarks(make: Callable[[dict], str], name: str = "report") -> Callable[[], str]:
    """Return a table of the report that `make bench`, or another benchmark, has left."""
    return lambda: make(json.loads((BENCHMARKS / "results" / f"{name}.json").read_text(encoding="utf-8")))


benchmarks = by_path(BENCHMARKS / "tables.py")
MADE = {"measured": measured} | {name: of_benchmarks(make) for name, make in benchmarks.MADE.items()}
MADE |= {name: of_benchmarks(make, "floods") for name, make in benchmarks.SERVED.items()}


def remade() -> dict[Path, str]:
    """Return the markdown that every script, and the benchmarks, make of their results."""
    sys.path.insert(0, str(ROOT / "experiments"))
    texts = {}
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        texts[path.with_suffix(".md")] = importlib.import_module(path.stem).table(result) + "\n"
    for path in sorted((BENCHMARKS / "results").glob("*.json")):
        texts[path.with_suffix(".md")] = benchmarks.report(json.loads(path.read_text(encoding="utf-8")))
    return texts


def main() -> None:
    """Write what is old, or with --check name it and fail."""
    check, old = "--check" in sys.argv[1:], []
    for texts in (remade, lambda: {path: filled(path.read_text(encoding="utf-8")) for path in READMES}):
        for path, text in texts().items():
            if path.read_text(encoding="utf-8") != text:
                old.append(path)
                if not check:
                    path.write_text(text, encoding="utf-8")
    for path in old:
        print(f"{path.relative_to(ROOT)}: {'not what the results give' if check else 'written'}")
    sys.exit(1 if check and old else 0)


if __name__ == "__main__":
    main()
