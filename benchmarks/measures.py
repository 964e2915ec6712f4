"""The code in numbers: its lines, what an answer runs, numbers found by experiment, private reads, imports.

`python -m benchmarks.measures` prints them for this checkout, and with a commit behind it for that commit
too, side by side. What takes time is measured by turns, in processor time: the least of five rounds counts.
NOT PRIVATE: noise is simulated where time is measured.
"""

import ast
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tokenize
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.faces import homes, reached

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5
QUESTIONS = 200  # whose time is taken together
DECIDING = ("plan", "interactions")  # the wings that hold numbers found by experiment
# constants that no experiment has found: limits of work, size and input, with what stands for infinity; parts
# of the probability of failing; grids; what the constant answer 1/2 errs by; what a user sets
UNTRIED = re.compile(
    r"MOST(_\w+)?|LEAST_(SUBSPACES|EPSILON)|NEARLY_ALL|STEPS|GROWTHS|UNUSED|EXACT|DRAWN|AT_ONCE|ROUNDS|PAIRED"
    r"|GROUPS|FITTED_AT|LISTED|NO_BOUND|UNBOUNDED|EASY_OR_HARD|ALL_EASY|ALL_HARD|KNOWN(_WITHIN)?|\w+_BITS|ROUNDED"
    r"|RECORD_PARTS|TRIVIAL|UNKNOWN|Settings\.\w+|Facts\.beta"
)
IMPORTED = "from onlineic import Budget, Domain, OnlineIC, PrivateData, between, where"
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
Measures = dict[str, float]


def lines_of(text: str) -> Measures:
    """Return how many lines a text of code has: all, those with code, those of docstrings and comments."""
    coded: set[int] = set()
    commented: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            commented.add(token.start[0])
        elif token.type not in LAYOUT:
            coded.update(range(token.start[0], token.end[0] + 1))
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for inner in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            value = inner.value if isinstance(inner, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                documented.update(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))
    code = coded - documented
    return {
        "lines": len(text.splitlines()),
        "lines of code": len(code),
        "lines of docstrings": len(documented),
        "lines of comments": len(commented - code),
    }


def sizes(folder: Path) -> Measures:
    """Return the lines of all files of a folder, and their number."""
    total: Measures = {"files": 0}
    for path in folder.rglob("*.py"):
        total["files"] += 1
        for name, count in lines_of(path.read_text(encoding="utf-8")).items():
            total[name] = total.get(name, 0) + count
    return total


def decides(value: ast.expr | None) -> bool:
    """Return whether an expression holds a number that somebody chose: 0 and 1 say nothing."""
    return any(
        isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in (0, 1)
        for node in ast.walk(value or ast.Constant(None))
    )


def chosen(text: str) -> list[str]:
    """Return the constants of a module that are numbers, and the fields whose default is one."""
    found: list[str] = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and decides(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each.id for one in targets for each in ast.walk(one) if isinstance(each, ast.Name)]
            found += [name for name in names if name.isupper()]
        if isinstance(node, ast.ClassDef):
            fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and decides(one.value)]
            found += [f"{node.name}.{ast.unparse(one.target)}" for one in fields]
    return found


def tried(text: str) -> list[str]:
    """Return the constants and fields of a module whose number is a choice that experiments compare."""
    return [name for name in chosen(text) if not UNTRIED.fullmatch(name)]


def private_reads(root: Path) -> int:
    """Return how often the tests read a private name of the package."""
    known = homes(root / "onlineic")
    texts = (path.read_text(encoding="utf-8") for path in (root / "tests").rglob("*.py"))
    return sum(len(reached(text, None, known)) for text in texts)


def still(root: Path) -> Measures:
    """Return what the texts of a checkout tell."""
    found: Measures = {}
    for folder in ("onlineic", "tests"):
        found |= {f"{folder}: {name}": count for name, count in sizes(root / folder).items()}
    texts = [path.read_text(encoding="utf-8") for wing in DECIDING
             for path in sorted((root / "onlineic" / wing).glob("*.py"))]  # fmt: skip
    found["numbers found by experiment"] = sum(map(len, map(tried, texts)))
    return found | {"private names read in tests": private_reads(root)}


def walked(call: Callable[[], Any]) -> tuple[int, int, Any]:
    """Return how many calls of the package's functions a call makes, in how many files, and its result."""
    calls, files = [0], set()

    def seen(frame: Any, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and f"{os.sep}onlineic{os.sep}" in name:
            calls[0] += 1
            files.add(name)

    sys.setprofile(seen)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    return calls[0], len(files), result


def walks() -> Measures:
    """Return calls and files of an easy, a repeated and a hard answer, and the time of an easy one.

    On 100,000 records of three attributes: a range and a code are asked for, and tables were bought before.
    At a threshold of nothing half of the answers are hard. Of all answers of a kind the shortest counts.
    """
    import numpy as np

    import onlineic as ic
    from onlineic.noise import SimulatedNoise

    rng, n = np.random.default_rng(0), 100_000
    records = {
        "age": 17 + rng.binomial(73, 0.3, n),
        "sex": rng.choice(["F", "M"], n),
        "region": rng.choice(4, n),
    }
    domain = ic.Domain.of(age=range(17, 91), sex=["F", "M"], region=4)
    ranges = [
        ic.where(age=ic.between(low, high), region=1) for low in range(17, 30) for high in range(60, 90)
    ]

    def session(asked: int, **more: Any) -> Any:
        opened = ic.OnlineIC(ic.PrivateData.from_records(records, domain), ic.Budget(1.0, 1e-9), **more)
        for query in ranges[:asked]:
            opened.answer(query)
        return opened

    usual, hits = session(10), session(1, threshold=1e-9, noise=SimulatedNoise(1))
    found: Measures = {}
    for status, opened, queries in (("easy", usual, ranges[10:20]), ("repeat", usual, ranges[10:11]),
                                    ("hard", hits, ranges[1:40])):  # fmt: skip
        told = [walked(lambda query=query, opened=opened: opened.answer(query)) for query in queries]
        calls, files = min((calls, files) for calls, files, answer in told if answer.status == status)
        found |= {f"{status} answer: calls": calls, f"{status} answer: files": files}
    timed = session(10, noise=SimulatedNoise(1))
    began = time.process_time()
    for query in ranges[20 : 20 + QUESTIONS]:
        timed.answer(query)
    return found | {"easy answer: microseconds": 1e6 * (time.process_time() - began) / QUESTIONS}


def importing() -> Measures:
    """Return how long the names of a session take to import."""
    began = time.process_time()
    exec(IMPORTED, {})
    return {"import of a session's names: milliseconds": 1e3 * (time.process_time() - began)}


RUNS: dict[str, Callable[[], Measures]] = {"walks": walks, "importing": importing}


def run(root: Path, part: str) -> Measures:
    """Return what a part measures of the package of a checkout, in a process of its own."""
    places = os.pathsep.join([str(root), str(ROOT / "tests")])
    told = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), f"--{part}"],
        env=os.environ | {"PYTHONPATH": places, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=True,
        text=True,
    )
    found: Measures = json.loads(told.stdout)
    return found


def measured(roots: list[Path], rounds: int = ROUNDS) -> list[Measures]:
    """Return the measures of every checkout; they take turns, and the least of each counts."""
    found = [still(root) for root in roots]
    for _ in range(rounds):
        for part in RUNS:
            for own, root in zip(found, roots, strict=True):
                for name, value in run(root, part).items():
                    own[name] = min(value, own.get(name, value))
    return found


def exported(commit: str, folder: str) -> Path:
    """Write the package and the tests of a commit into a folder."""
    packed = subprocess.run(
        ["git", "archive", commit, "onlineic", "tests"], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as held:
        held.extractall(folder, filter="data")
    return Path(folder)


def written(names: list[str], found: list[Measures]) -> Iterator[str]:
    """Return the lines of the table, in Markdown."""
    heads = [*names, "difference", "ratio"] if len(found) > 1 else names
    yield "| measure | " + " | ".join(heads) + " |"
    yield "|---" * (len(heads) + 1) + "|"
    for name, now in found[-1].items():
        cells = [f"{own[name]:,.0f}" for own in found]
        if len(found) > 1:
            before = found[0][name]
            cells += [f"{now - before:+,.0f}", f"{now / before:.2f}" if before else ""]
        yield f"| {name} | " + " | ".join(cells) + " |"


def main(arguments: list[str]) -> int:
    warnings.simplefilter("ignore")
    part = next((one for one in RUNS if arguments == [f"--{one}"]), None)
    if part is not None:
        print(json.dumps(RUNS[part]()))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before = [exported(arguments[0], folder)] if arguments else []
        print("\n".join(written([*arguments[:1], "now"], measured([*before, ROOT]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
