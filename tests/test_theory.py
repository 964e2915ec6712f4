"""The documents of proofs, errata and threats name the code and the tests they speak of: all must exist.

Code is named as a reader can import it, through the face of its wing; the few names from inside a wing, of
which a proof speaks and which no face hands out, are listed here.
"""

import ast
import importlib
import re
from functools import lru_cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
THEORY, ERRATA, THREATS = (
    (HERE.parent / "docs" / name).read_text(encoding="utf-8")
    for name in ("theory.md", "errata.md", "threat-model.md")
)
NAME = re.compile(r"`([a-z_]\w*(?:\.\w+)+)`")
NAMES = sorted(set(NAME.findall(THEORY + ERRATA + THREATS)))
TESTS = [name for name in NAMES if name.startswith("test_")]
CODE = [name for name in NAMES if not name.startswith("test_")]
INSIDE = {
    "noise.exp.exp_ieee",
    "noise.gumbel.fires_exactly",
    "noise.gumbel.screen",
    "noise.samplers.bernoulli_exp",
    "session.answers.AnswerBook.take",
    "session.core.Core",
    "session.core.Core.buy",
    "session.core.Core.test",
    "session.prices.Prices.cover",
    "session.seal.Seal.run",
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


def test_lines_are_narrow_unless_one_name_is_wider():
    wide = [line for line in THEORY.splitlines() if len(line) > WIDEST and not line.startswith("| [")]

    assert [] == [line for line in wide if not re.fullmatch(r"`test_[\w.]+`[,.]", line)]


def test_the_index_names_every_section_of_the_theory_in_order():
    assert re.findall(r"^## (.+)$", THEORY, re.M) == re.findall(r"^\| \[(.+?)\]\(#", THEORY, re.M)


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
