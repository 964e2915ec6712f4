"""Every target of the Makefile, alone in a fresh clone, installs what its scripts import."""

import ast
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = re.findall(r"^([a-z-]+):", MAKEFILE, re.M)
# What scripts look for before they import it, and the rivals, which have environments of their own.
OPTIONAL = {"pyspark", "tqdm", "dpmm", "diffprivlib", "mbi", "opendp", "snsql", "tmlt"}
IMPORTED_AS = {"mkdocs-material": ["mkdocs"], "mkdocstrings": ["griffe"]}
LOCAL = {path.stem for name in ("experiments", "benchmarks") for path in (ROOT / name).rglob("*.py")}
LOCAL |= {"onlineic", "support", "study", "experiments", "benchmarks", *sys.stdlib_module_names}


def modules(extra):
    """The modules that an extra brings, with those of the core; a tool is a module too (`python -m ruff`)."""
    found = set()
    for wanted in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]:
        name, inner = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", wanted).groups()
        found.update(IMPORTED_AS.get(name, []), [name.replace("-", "_")])
        if name == PROJECT["name"]:
            found.update(*(modules(one) for one in inner.split(",")))
    return found


@functools.cache
def imported(path):
    """The foreign modules that a script imports, anywhere in its text."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = [
        name
        for node in tree
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    ]
    return {name.split(".")[0] for name in names} - LOCAL - OPTIONAL


def wanted(line):
    """What a line of a recipe needs: the module or script that Python runs, and what that imports.

    A script of a folder starts others of it, so the whole folder counts.
    """
    words = shlex.split(line, comments=True)
    module = next(iter(re.findall(r"python -m (\w+)", line)), "onlineic")
    found = {module} - LOCAL
    for word in {*words, module}:
        if (folder := word.split("/")[0]) in ("experiments", "benchmarks"):
            found |= set().union(*map(imported, (ROOT / folder).rglob("*.py")))
        elif word.endswith(".py") and not word.startswith("tests/"):  # tests skip what they miss
            found |= imported(ROOT / word)
    return found


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("target", sorted({*TARGETS, "quick/gallery"} - {"rivals"}))
def test_a_target_installs_what_it_needs(target):
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    told = subprocess.run(
        ["make", "--dry-run", "VENV=none", target],
        cwd=ROOT, env=quiet, capture_output=True, text=True, check=True,
    ).stdout.replace("\\\n", " ")  # fmt: skip
    installed = set().union(*(modules(extra) for extra in re.findall(r"'\.\[(\w+)\]'", told)))
    lines = [line for line in told.splitlines() if "none/bin/python" in line and "-m pip install" not in line]
    needs = set().union(*map(wanted, lines))

    assert lines
    assert set() == needs - installed
