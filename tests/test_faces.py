"""Tests ask the faces of the package: its private names are read in the tests of their own wing alone.

`support/inside.py` holds what tests must see inside of a session, one function for each thing, and is the one
place that may. The files below still read other names; the list may only become shorter.
"""

import ast
from collections import Counter, defaultdict
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "onlineic"
INSIDE = "support/inside.py"
SHOWN = {"_repr_html_", "_render_traceback_"}  # what notebooks call
LEFT = {
    "exact/test_engine_privacy.py": 2,
    "exact/test_first_question_privacy.py": 1,
    "exact/test_first_release.py": 5,
    "exact/test_first_tables_privacy.py": 6,
    "exact/test_gumbel_exact.py": 5,
    "property/test_baseline_faults.py": 1,
    "property/test_ledger_kills.py": 4,
    "property/test_older_copies.py": 1,
    "statistical/test_known_noise_coverage.py": 4,
    "test_public_api.py": 1,
    "unit/plan/test_first_question.py": 1,
    "unit/session/test_totals.py": 1,
    "unit/testing/test_check_update_rule.py": 9,
}


def stored(tree):
    """Return the private names that a module or its classes define."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls"), ctx=ast.Store()):
                yield name


def private(name):
    return name.startswith("_") and not name.startswith("__") and name not in SHOWN


def homes():
    """Return the wings that define each private name."""
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        wing = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in filter(private, stored(ast.parse(path.read_text(encoding="utf-8")))):
            found[name].add(wing)
    return found


def reached(source, own, known):
    """Return the private names of other wings that a test reads, but those that it defines itself."""
    tree = ast.parse(source)
    mine = {*stored(tree)}
    names = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return [name for name in names if private(name) and name in known and name not in mine
            and own not in known[name]]  # fmt: skip


def test_private_names_are_read_in_the_tests_of_their_own_wing_alone():
    known, found = homes(), Counter()
    for path in TESTS.rglob("*.py"):
        place = path.relative_to(TESTS).as_posix()
        own = place.split("/")[1] if place.startswith("unit/") else None
        if place != INSIDE and (names := reached(path.read_text(encoding="utf-8"), own, known)):
            found[place] = len(names)

    assert dict(found) == LEFT, "ask a face, or support/inside.py; a file that reads less says so here"


def test_a_private_name_of_another_wing_is_found():
    known = {"_loop": {"session"}, "_cells": {"hypothesis"}}

    assert ["_loop"] == reached("def test(one): return one._loop", None, known)
    assert ["_loop"] == reached("def test(one): return one._loop._cells", "hypothesis", known)
    assert [] == reached("class A:\n def __init__(self): self._loop = 1\na = A()._loop", None, known)
    assert [] == reached("def test(one): return one.loop, one._repr_html_", None, known)
