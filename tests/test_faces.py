"""Tests ask the faces of the package: its private names are read in the tests of their own wing alone."""

import ast
import re
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "onlineic"
SHOWN = {"_repr_html_", "_render_traceback_"}  # what notebooks call
PRIVATE = re.compile(r"(?<!\w)_[a-z]", re.IGNORECASE)  # most tests write none at all


def itself(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def stored(nodes):
    """Return the private names that a module or its classes define."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and itself(node.value):
            yield node.attr


def private(name):
    return name.startswith("_") and not name.startswith("__") and name not in SHOWN


def homes():
    """Return the wings that define each private name."""
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        wing = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in filter(private, stored(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))):
            found[name].add(wing)
    return found


def reached(source, own, known):
    """Return the private names of other wings that a test reads or imports, and does not define itself."""
    if not PRIVATE.search(source):
        return []
    nodes = [*ast.walk(ast.parse(source))]
    mine = {*stored(nodes)}
    names = [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    names += [one.name for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names]
    return [name for name in names if private(name) and name in known and name not in mine
            and own not in known[name]]  # fmt: skip


def test_private_names_are_read_in_the_tests_of_their_own_wing_alone():
    known, found = homes(), {}
    for path in TESTS.rglob("*.py"):
        place = path.relative_to(TESTS).as_posix()
        own = place.split("/")[1] if place.startswith("unit/") else None
        if names := reached(path.read_text(encoding="utf-8"), own, known):
            found[place] = names

    assert {} == found, "ask a face, hand over a spy, or move the test to the tests of that wing"


def test_a_private_name_of_another_wing_is_found():
    known = {"_loop": {"session"}, "_cells": {"hypothesis"}}

    assert ["_loop"] == reached("def test(one): return one._loop", None, known)
    assert ["_loop"] == reached("def test(one): return one._loop._cells", "hypothesis", known)
    assert [] == reached("class A:\n def __init__(self): self._loop = 1\na = A()._loop", None, known)
    assert [] == reached("def test(one): return one.loop, one._repr_html_", None, known)
    assert ["_loop"] == reached("from onlineic.session.session import _loop, open", None, known)
