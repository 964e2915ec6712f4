"""What a result was made by: the code of the package, the commit, the versions and the processor."""

import ast
import hashlib
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import onlineic as ic

ROOT = Path(__file__).resolve().parents[2]
DIGITS = 12  # of a digest: changes are to be noticed, nobody attacks
VERSION, FIRST = (
    re.compile(r'^__version__ = "[^"]*"$', re.M),
    '__version__ = "0.1.0"',
)  # digests know the first alone
LEFT_OUT = {"ctx", "kind", "type_comment"}  # of a node: they follow from the rest
WITH_DOCSTRINGS = {ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef}


def versions() -> dict[str, Any]:
    """Return the versions that numbers may depend on, the processor and the commit, None without git."""
    return {
        "onlineic": ic.__version__,
        "numpy": metadata.version("numpy"),
        "scipy": metadata.version("scipy"),
        "python": platform.python_version(),
        "processor": processor(),
        "commit": commit(),
    }


def processor(facts: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor as far as the system tells it."""
    if facts.is_file():
        for line in facts.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit(root: Path = ROOT) -> str | None:
    """Return the commit of the checkout, or None where there is none."""
    found = _git(root, "rev-parse", "HEAD")
    return None if found is None else found.strip()


def uncommitted(places: Sequence[str], root: Path = ROOT) -> list[str]:
    """Return the files in these places that are not as the last commit has them; without git, the places."""
    found = _git(root, "status", "--porcelain", "--untracked-files=all", "--", *places)
    return list(places) if found is None else [line[3:] for line in found.splitlines()]


def _git(root: Path, *words: str) -> str | None:
    try:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def code(package: Path = ROOT / "onlineic", *, loaded: bool = False) -> dict[str, str]:
    """Return wing -> digest of its code: of all wings, or of those that this process has imported.

    Docstrings, comments, layout, the texts of errors and warnings and the version do not count: no number
    depends on them. A file beside the wings counts as one.
    """
    wings: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*.py")):
        wings.setdefault(path.relative_to(package).parts[0].removesuffix(".py"), []).append(path)
    if loaded:
        held = {name.split(".")[1] for name in sys.modules if name.startswith("onlineic.")} | {"__init__"}
        wings = {wing: paths for wing, paths in wings.items() if wing in held}
    return {wing: _digest(package, paths) for wing, paths in sorted(wings.items())}


def _digest(package: Path, paths: Sequence[Path]) -> str:
    words: list[str] = []
    for path in paths:
        words.append(path.relative_to(package).as_posix())
        _spell(ast.parse(VERSION.sub(FIRST, path.read_text(encoding="utf-8"))), words)
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:DIGITS]


def _spell(node: Any, words: list[str]) -> None:
    """Append a tree as words that all versions of Python share; `ast.dump` writes others in each."""
    kind = type(node)
    if kind is list:
        words.append("[")
        for part in node:
            _spell(part, words)
        words.append("]")
    elif not isinstance(node, ast.AST):
        words.append(f"{kind.__name__} {node!r}")
    elif kind is ast.Raise and isinstance(node.exc, ast.Call):
        words.append("raise")
        _spell([node.exc.func, node.cause], words)
    elif kind is ast.Call and isinstance(node.func, ast.Attribute) and node.func.attr == "warn":
        words.append("warn")
    else:
        words.append(kind.__name__)
        held = node.__dict__
        for name in node._fields:
            value = held.get(name)
            if value is None or value == [] or name in LEFT_OUT:
                continue
            if (
                name == "body"
                and kind in WITH_DOCSTRINGS
                and ast.get_docstring(node, clean=False) is not None
            ):
                value = value[1:]
            words.append(name)
            _spell(value, words)
