"""Every code block of the documents runs, top to bottom, and prints what stands under it; links exist."""

import contextlib
import io
import re
import sys
import types
from pathlib import Path

import pytest

import onlineic as ic
from support import ugly

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TEXTS = {
    path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
}
RUN = [name for name, text in TEXTS.items() if "```python" in text]
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.S)
FILES = {"curators": ugly.write}  # of which a document speaks
LIBRARIES = {  # that a document needs
    "analysts": ["matplotlib"],
    "answers": ["matplotlib"],
    "sql": ["sqlglot"],
    "tables": ["narwhals", "polars", "duckdb", "pyarrow"],
}
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def words_and_numbers(text):
    """Return the text without its numbers, and the numbers: fits may differ in the last digit elsewhere."""
    return NUMBER.sub("#", text).split(), [float(found.replace(",", "")) for found in NUMBER.findall(text)]


@pytest.mark.parametrize("name", RUN)
def test_every_block_prints_what_stands_under_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FILES.get(name, lambda folder: None)(tmp_path)
    for library in LIBRARIES.get(name, ()):
        pytest.importorskip(library)
    document = types.ModuleType(f"document_{name}")  # a module: what is defined in it can be pickled
    monkeypatch.setitem(sys.modules, document.__name__, document)
    assert TEXTS[name].count("```python\n") == len(BLOCK.findall(TEXTS[name]))
    for place, (code, expected) in enumerate(BLOCK.findall(TEXTS[name])):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{name}, block {place}", "exec"), document.__dict__)
        words, numbers = words_and_numbers(expected)
        seen_words, seen = words_and_numbers(printed.getvalue())

        assert words == seen_words
        assert seen == pytest.approx(numbers, rel=0.02, abs=2e-4)


def test_documents_have_blocks():
    assert {"curators", "tutorial", "joint_privacy", "researchers"} <= set(RUN)


@pytest.mark.parametrize("name", TEXTS)
def test_links_and_pictures_exist(name):
    links = re.findall(r"\]\(([^)#:\s]+)[)#]", TEXTS[name])

    assert [] == [link for link in links if not ((DOCS / name).parent / link).exists()]


def test_the_version_is_the_same_everywhere():
    """Of the package, of its citation, and of the newest entry of the changelog that has a date."""
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    told = re.search(r"^## (\S+) \(", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)

    assert [ic.__version__] * 2 == [cited.group(1), told.group(1)]


def test_fragments_of_the_changelog_have_a_type_that_a_release_joins():
    types_of = re.findall(
        r'^directory = "(\w+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M
    )
    fragments = [path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]

    assert {"added", "changed", "fixed", "privacy"} == {*types_of}
    assert {path.suffix for path in fragments} <= {".md"}
    assert {path.name.split(".")[1] for path in fragments} <= {*types_of}
    assert all(path.read_text(encoding="utf-8").endswith(".\n") for path in fragments)
