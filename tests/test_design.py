"""The documents tell the truth: names resolve, the map is the tested one, links and paths exist."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import onlineic

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(onlineic.__file__).parent
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAME = re.compile(r"`([a-z]\w*(?:\.\w+)+)`")
PLACE = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
WINGS = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def resolved(name):
    """The object that a dotted name below the package stands for."""
    wing, *parts = name.removeprefix("onlineic.").split(".")
    found = importlib.import_module(f"onlineic.{wing}")
    path = f"onlineic.{wing}"
    for part in parts:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            importlib.import_module(path)  # a file that nothing has imported yet
        found = getattr(found, part)
    return found


@cache
def constant(name):
    """A literal of tests/test_layers.py."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"tests/test_layers.py has no {name}")


def anchors(text):
    """The addresses of the headings of a document, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document, text):
    """The relative links of a document that lead nowhere, with their anchors."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.S)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (document.parent / file).resolve() if file else document
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    return broken


@pytest.mark.parametrize("name", sorted(set(NAME.findall(DESIGN + CONTRIBUTING))))
def test_code_that_is_named_exists(name):
    assert resolved(name) is not None


def test_a_name_that_is_gone_is_found():
    with pytest.raises(ModuleNotFoundError):
        resolved("session.no_such_walk")
    with pytest.raises(ImportError):
        resolved("session.OnlineIC.no_such_step")


def test_the_map_is_the_table_of_rows():
    drawn = {int(row): set(wings.split(" · ")) for row, wings in re.findall(r"^ +(\d+)  (.+)$", DESIGN, re.M)}
    tested = [{wing for wing in row if not wing.startswith("_")} for row in constant("ROWS")]

    assert drawn == {row: wings for row, wings in enumerate(tested, 1) if wings}


def test_every_wing_has_its_line_and_its_face():
    lines = re.findall(r"^\| (\w+) \| [a-z].+ \|$", DESIGN.split("**Faces.**")[0], re.M)

    assert sorted({*WINGS, "errors", "progress", "reentry", "slips"}) == sorted(set(lines) - {"wing"})
    assert [] == [wing for wing in WINGS if not importlib.import_module(f"onlineic.{wing}").__all__]


def test_who_may_read_counts_is_told_as_it_is_tested():
    (told,) = re.findall(r"^\| read exact counts \| (.+) \|$", DESIGN, re.M)
    files = {path.removesuffix(".py").replace("/", ".") for path in re.findall(r"`onlineic/(.+?)`", told)}
    wings = set(re.search(r"the wings (.+)", told).group(1).split(", "))

    assert set(constant("READERS")) == files | wings


def test_the_glossary_has_each_word_once_in_order():
    words = re.findall(r"^\* \*\*(.+?)\*\*: ", DESIGN.split("## Glossary")[1], re.M)

    assert 0 < len(words) <= 20
    assert sorted(set(words), key=str.lower) == words


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(document):
    assert [] == broken_links(document, document.read_text(encoding="utf-8"))


def test_a_broken_link_is_found():
    here = ROOT / "docs" / "design.md"

    assert ["gone.md"] == broken_links(here, "[a](gone.md) [b](theory.md) [c](https://example.org)")
    assert ["theory.md#no-such"] == broken_links(here, "[a](theory.md#no-such) [b](theory.md#1-setting)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_path_that_is_named_exists(document):
    """Paths in backticks, from the root of the project; NAME stands for one that is to be written."""
    paths = PLACE.findall(document.read_text(encoding="utf-8"))

    assert [] == [path for path in paths if "NAME" not in path and not (ROOT / path).exists()]


def test_make_commands_are_targets_and_every_target_is_told():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    texts = [document.read_text(encoding="utf-8") for document in DOCUMENTS]

    assert [] == [
        name for text in texts for name in re.findall(r"`make ([a-z-]+)", text) if name not in targets
    ]
    assert [] == [name for name in targets if f"| `make {name}` |" not in CONTRIBUTING]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lines_of_prose_are_narrow(document):
    """Tables and single names cannot be broken; the tests of the theory look at its names."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)

    assert [] == [
        line for line in text.splitlines() if len(line) > 118 and " " in line.strip() and line[0] != "|"
    ]
