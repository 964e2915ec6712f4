"""`docs/theory.md` and `docs/errata.md` name the code and the tests they speak of: all of them must exist."""

import ast
import importlib
import re
from functools import lru_cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
THEORY, ERRATA = (
    (HERE.parent / "docs" / name).read_text(encoding="utf-8") for name in ("theory.md", "errata.md")
)
NAME = re.compile(r"`([a-z_]\w*(?:\.\w+)+)`")
NAMES = sorted(set(NAME.findall(THEORY + ERRATA)))
TESTS = [name for name in NAMES if name.startswith("test_")]
CODE = [name for name in NAMES if not name.startswith("test_")]


@lru_cache
def _defined(module: str) -> frozenset[str]:
    """Names of the test functions of a file, with their class."""
    (path,) = HERE.rglob(f"{module}.py")
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return frozenset(found)


def _resolve(name: str) -> object:
    """The object that a dotted name below the package stands for."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(["onlineic", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no module of {name}")


@pytest.mark.parametrize("name", CODE)
def test_code_of_the_theory_exists(name):
    assert _resolve(name) is not None


@pytest.mark.parametrize("name", TESTS)
def test_test_of_the_theory_exists(name):
    module, _, function = name.partition(".")

    assert function in _defined(module)


def test_every_code_line_is_followed_by_a_test_and_names_are_many():
    """A section that names code names a test, but in the list of what is only measured."""
    proved = THEORY.split("## 10.")[0] + THEORY.split("## 12.")[1]
    paragraphs = [part for part in re.split(r"\n\n", proved) if "\nCode:" in part]

    assert [] == [part[:60] for part in paragraphs if "Test:" not in part]
    assert len(CODE) > 60
    assert len(TESTS) > 80


def test_every_row_of_the_errata_names_a_test():
    rows = [line for line in ERRATA.splitlines() if line.startswith("| ") and not line.startswith("| place")]

    assert [] == [row for row in rows if "`test_" not in row]
    assert len(rows) > 35


def test_a_missing_name_is_found():
    with pytest.raises(AttributeError):
        _resolve("accounting.no_such_price")
    assert "test_no_such" not in _defined("test_theory")
