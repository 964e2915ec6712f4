"""Docstrings have one short form: sections of Google's style, without types, of arguments that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ORDER = ["Args", "Keyword Args", "Attributes", "Returns", "Yields", "Raises", "Warns", "Examples"]
ENTRY = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):(?: |$)")  # `low, high: The ends.`
TYPED = re.compile(r"^    \w[\w, ]* : |^    \w+ \(.*\): ")  # `low : int`, `low (int): ..`
UNDERLINED = re.compile(r"^ *-{3,}$")
DEFINED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def found_in(text):
    """Return (object, docstring) of what a text of code defines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DEFINED | ast.Module) and (told := ast.get_docstring(node)):
            yield node, told


def sections(told):
    """Return name -> lines of the sections of a docstring, in its order."""
    parts, name = {}, None
    for line in told.splitlines():
        if line.rstrip(":") in ORDER and line.endswith(":"):
            parts[name := line.rstrip(":")] = []
        elif name is not None:
            parts[name].append(line)
    return parts


def names_of(node, classes):
    """Return what an object takes, and of a class what it has, by itself and by its bases in the package."""
    if not isinstance(node, ast.ClassDef):
        every = node.args
        found = [*every.posonlyargs, *every.args, *every.kwonlyargs]
        return (
            {one.arg for one in found}
            | {f"*{every.vararg.arg}" for _ in [0] if every.vararg}
            | {f"**{every.kwarg.arg}" for _ in [0] if every.kwarg}
        )
    names = set()
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        names |= names_of(classes[name], classes) if name in classes else set()
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            names |= {one.target.id, one.target.id.lstrip("_")}  # attrs leave the underscore out
        elif isinstance(one, ast.Assign):
            names |= {target.id for target in one.targets if isinstance(target, ast.Name)}
        elif isinstance(one, DEFINED):
            names.add(one.name)
            names |= names_of(one, classes) if one.name == "__init__" else set()
            stored = [inner for inner in ast.walk(one) if isinstance(inner, ast.Attribute)]
            names |= {inner.attr for inner in stored if ast.unparse(inner.value) == "self"}
    return names


def faults(text, classes):
    """Return what is wrong with the docstrings of a text of code."""
    wrong = []
    for node, told in found_in(text):
        name, lines, parts = getattr(node, "name", "module"), told.splitlines(), sections(told)
        wrong += [f"{name}: {line.strip()}" for line in lines if TYPED.match(line) or UNDERLINED.match(line)]
        if [*parts] != sorted(parts, key=ORDER.index) or not all(map(any, parts.values())):
            wrong.append(f"{name}: sections {[*parts]}")
        known = names_of(node, classes) if parts and isinstance(node, DEFINED) else set()
        for part in {"Args", "Attributes"} & {*parts}:
            entries = [found[1].split(", ") for line in parts[part] if (found := ENTRY.match(line))]
            wrong += [f"{name}: {one}" for entry in entries for one in entry if one not in known]
    return wrong


@pytest.fixture(scope="module")
def classes():
    """Return name -> definition of the classes of the package."""
    texts = (path.read_text("utf-8") for path in sorted((ROOT / "onlineic").rglob("*.py")))
    return {
        node.name: node
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }


WINGS = sorted(path.name for path in (ROOT / "onlineic").iterdir() if path.suffix == ".py" or path.is_dir())


@pytest.mark.parametrize("wing", [wing for wing in WINGS if wing not in ("__pycache__", "py.typed")])
def test_docstrings_name_what_is_there_and_repeat_no_type(wing, classes):
    place = ROOT / "onlineic" / wing
    paths = sorted(place.rglob("*.py")) if place.is_dir() else [place]

    assert [] == [f"{path.name} {one}" for path in paths for one in faults(path.read_text("utf-8"), classes)]


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ("Args:\n        low: The end.", []),
        ("Args:\n        low, high: Ends.", []),
        ("Args:\n        lowest: The end.", ["call: lowest"]),
        ("Args:\n        low : int", ["call: low : int"]),
        ("Args:\n        low (int): The end.", ["call: low (int): The end."]),
        ("Parameters\n    ----------\n    low : int", ["call: ----------"]),
        (
            "Raises:\n        ValueError: If so.\n\n    Args:\n        low: It.",
            ["call: sections ['Raises', 'Args']"],
        ),
        ("Args:", ["call: sections ['Args']"]),
    ],
)
def test_another_form_and_names_that_are_gone_are_found(told, fault):
    text = f'def call(low, high):\n    """Return it.\n\n    {told}\n    """'

    assert fault == faults(text, {})
