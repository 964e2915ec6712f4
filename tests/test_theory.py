"""The documents of proofs, errata and threats name the code and the tests they speak of: all must exist.

Code is named as a reader can import it, through the face of its wing; the few names from inside a wing that
proofs speak of are listed here. Every statement has one number and stands on one page, and the module that
holds its code names both.
"""

import ast
import importlib
import re
from functools import lru_cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent
INDEX, ERRATA, THREATS = (
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("theory.md", "errata.md", "threat-model.md")
)
PAGES = {
    path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "theory").glob("*.md"))
}
THEORY = "\n".join([INDEX, *PAGES.values()])
NUMBER = r"\d+\.\d+[abc]?"
HOLDS = {page: re.findall(rf"^## ({NUMBER}) ", text, re.M) for page, text in PAGES.items()}
LIST = rf"{NUMBER}\b(?:(?:,| and|, and| to)\s+(?:# )?{NUMBER}\b)*"
NAMED = re.compile(
    rf"theory(?:/([\w-]+))?(?:\.md)?[`\])]*,?\s+(?:# )?({LIST})"
)  # "docs/theory/session.md, 4.5"
NAME = re.compile(r"`([a-z_]\w*(?:\.\w+)+)`")
NAMES = sorted(set(NAME.findall(THEORY + ERRATA + THREATS)))
TESTS = [name for name in NAMES if name.startswith("test_")]
CODE = [name for name in NAMES if not name.startswith("test_")]
INSIDE = {
    "noise.exp.exp_ieee",
    "noise.gumbel.fires_exactly",
    "noise.gumbel.screen",
    "noise.samplers.bernoulli_exp",
    "session.answers.AnswerBook.error_bound",
    "session.answers.AnswerBook.take",
    "session.core.Core.answer",
    "session.core.Core.buy",
    "session.core.Core.cover",
    "session.core.Core.test",
    "session.fetching.Fetching",
    "session.prices.Prices.cover",
}
WIDEST = 118


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


def _through_a_face(name: str) -> bool:
    """Whether a name is one that its wing hands out, or a member of one."""
    wing, held, *_ = name.split(".")
    return held in importlib.import_module(f"onlineic.{wing}").__all__


def test_names_go_through_the_faces_but_for_the_few_of_which_a_proof_speaks():
    assert sorted(INSIDE) == [name for name in CODE if not _through_a_face(name)]
    assert len(INSIDE) <= 12


def test_what_a_face_does_not_hand_out_is_found():
    assert _through_a_face("sparse.GumbelSparse.step")
    assert not _through_a_face("sparse.gumbel.GumbelSparse.step")


def _module(name: str) -> str:
    """The module that defines what a dotted name below the package stands for."""
    wing, *parts = name.split(".")
    found: object = importlib.import_module(f"onlineic.{wing}")
    module = f"onlineic.{wing}"
    for part in parts:
        if not hasattr(found, part):
            importlib.import_module(f"{module}.{part}")
        found = getattr(found, part)
        told = getattr(found, "__module__", None) or getattr(found, "__name__", None)
        module = told if isinstance(told, str) and told.startswith("onlineic") else module
    return module


def _homes() -> dict[str, set[tuple[str, str]]]:
    """For every module, the statements whose code it holds, each with its page."""
    homes: dict[str, set[tuple[str, str]]] = {}
    for page, text in PAGES.items():
        if page == "limits":
            continue
        for statement in re.split(r"^(?=## )", text, flags=re.M)[1:]:
            number = statement.split(" ")[1]
            for names in re.findall(r"^\* Code: (.+(?:\n  .+)*)", statement, re.M):
                for name in NAME.findall(names):
                    homes.setdefault(_module(name), set()).add((page, number))
    return homes


def _told(text: str) -> set[tuple[str, str]]:
    """The statements that a text names, each with the page that it names, or with none."""
    return {(page, number) for page, numbers in NAMED.findall(text) for number in re.findall(NUMBER, numbers)}


def test_every_module_names_the_statements_whose_code_it_holds():
    homes = _homes()
    missing = {}
    for module, statements in homes.items():
        text = importlib.import_module(module).__doc__ or ""
        line = " ".join(text.partition("Proof: ")[2].split())
        told = {
            (page, number)
            for page, numbers in re.findall(r"docs/theory/([\w-]+)\.md, ([^;]+)", line)
            for number in re.findall(NUMBER, numbers)
        }
        if module.count(".") > 1 and told != statements:
            missing[module] = sorted(told ^ statements)

    assert {} == missing
    assert len(homes) > 50


def test_every_number_of_the_theory_stands_on_one_page():
    numbers = [number for held in HOLDS.values() for number in held] + re.findall(
        rf"^### ({NUMBER})", INDEX, re.M
    )

    assert sorted(set(numbers)) == sorted(numbers)
    assert len(numbers) > 70


def test_every_number_that_is_named_anywhere_exists_on_the_page_that_is_named():
    held = {number for numbers in HOLDS.values() for number in numbers} | {"1.1", "1.2"}
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    for folder, ends in (("onlineic", "*.py"), ("tests", "*.py"), ("docs", "*.md"), ("experiments", "*.md")):
        texts += (ROOT / folder).rglob(ends)
    told = {
        (path.relative_to(ROOT).as_posix(), page, number)
        for path in texts
        if path != Path(__file__)
        for page, number in _told(path.read_text(encoding="utf-8"))
    }

    assert [] == sorted(found for found in told if found[2] not in (HOLDS[found[1]] if found[1] else held))
    assert len(told) > 150


def test_a_number_that_is_gone_is_found():
    assert {("", "4.5"), ("", "5.4")} == _told("(theory 4.5) and [theory.md](theory.md), 5.4.")
    assert {("sparse", "3.1"), ("sparse", "3.3")} == _told("Proof: docs/theory/sparse.md, 3.1 and 3.3.")
    assert "3.1" in HOLDS["sparse"]
    assert "4.1" not in HOLDS["sparse"]


def test_lines_are_narrow_unless_one_name_is_wider():
    wide = [line for line in THEORY.splitlines() if len(line) > WIDEST and line[0] != "|"]

    assert [] == [line for line in wide if not re.fullmatch(r"  `test_[\w.]+`[,.]", line)]


def _address(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_index_names_every_statement_once_in_order():
    links = re.findall(r"^\* \[(.+)\]\(theory/([\w-]+)\.md#(.+)\)$", INDEX, re.M)
    headings = {
        (heading, page)
        for page, text in PAGES.items()
        for heading in re.findall(rf"^## ({NUMBER} .+)$", text, re.M)
    }
    places = [tuple(map(int, re.match(r"(\d+)\.(\d+)", heading).groups())) for heading, _, _ in links]

    assert headings == {(heading, page) for heading, page, _ in links}
    assert len(headings) == len(links)
    assert [] == [heading for heading, _, anchor in links if anchor != _address(heading)]
    assert sorted(places) == places
    assert set(PAGES) == set(re.findall(r"^\| \[.+?\]\(theory/(.+?)\.md\)", INDEX, re.M))


@pytest.mark.parametrize("name", TESTS)
def test_test_of_the_theory_exists(name):
    module, _, function = name.partition(".")

    assert function in _defined(module)


def test_every_code_line_is_followed_by_a_test_and_names_are_many():
    """A section that names code names a test, but in the list of what is only measured."""
    proved = "\n\n".join(text for page, text in PAGES.items() if page != "limits")
    paragraphs = [part for part in re.split(r"\n\n", proved) if part.startswith("* Code:")]

    assert [] == [part[:60] for part in paragraphs if "\n* Test:" not in part]
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
