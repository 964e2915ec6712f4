"""A checker's result must be used: the value that was passed in may be a narrow number that wraps around."""

import ast
from pathlib import Path

import pytest

import onlineic

PACKAGE = Path(onlineic.__file__).resolve().parent


def dropped(source):
    """Return "line: name" of every `checked_*` call whose result nobody takes."""
    return [
        f"{node.lineno}: {name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        for name in [called(node.value.func)]
        if name.lstrip("_").startswith("checked_")
    ]


def called(function):
    """Return the last part of the name of what is called."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def test_no_module_drops_a_checked_value():
    found = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path in sorted(PACKAGE.rglob("*.py"))
        if (lines := dropped(path.read_text(encoding="utf-8")))
    }

    assert {} == found


@pytest.mark.parametrize(
    "source",
    [
        'checked_integer("n", n)',
        "_checked_threshold(n)",
        'errors.checked_real("beta", beta, above=0.0)',
        'def f(n):\n    checked_integer("n", n)\n    return n << 20',
        "class C:\n    def __attrs_post_init__(self):\n        for name in NAMES:\n"
        "            self._checked_n(getattr(self, name))",
        'if n:\n    checked_integer("n", n, at_least=1)',
    ],
)
def test_a_planted_drop_is_found(source):
    assert 1 == len(dropped(source))


@pytest.mark.parametrize(
    "source",
    [
        'n = checked_integer("n", n)',
        'object.__setattr__(self, "n", checked_integer("n", self.n))',
        'return_ = [checked_real("x", x) for x in values]',
        "check_types(data, budget, None)",
        "self.check_start()",
        '"checked_integer(n)"',
        "(lambda: None)()",
    ],
)
def test_lawful_code_passes(source):
    assert [] == dropped(source)
