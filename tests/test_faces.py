"""Tests ask the faces of the package: its private names are read in the tests of their own wing alone."""

from pathlib import Path

from support.faces import homes, reached

TESTS = Path(__file__).parent


def test_private_names_are_read_in_the_tests_of_their_own_wing_alone():
    known, found = homes(TESTS.parent / "onlineic"), {}
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
