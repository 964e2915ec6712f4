"""Messages quote values of the caller's through one function, and can be printed whatever is quoted.

The rule: an f-string outside of `__repr__` has no `!r`, `!s` or `!a`, and what a `raise`, a warning or an
assertion says calls no `repr` on a value and cuts no text by a format: `errors.shown` does all of it. What
stands in a message beside values (names of attributes, the caller's SQL) is made printable by the error.
"""

import ast
import re
import warnings
from pathlib import Path

import pytest

import onlineic as ic
from onlineic.errors import InvalidDataError, InvalidQueryError, OnlineICError, printable, shown

ROOT = Path(ic.__file__).parent
WHOLE = {  # file: why its f-strings may write `!r`
    "__init__.py",  # nothing of the package is imported by its face
    "data/problems.py",  # the curator's own report: code that is to be copied whole
}
REPRS = ("repr", "ascii", "reprlib.repr")
OWN = ("self", "session", "explanation", "query", "answer")  # shown as they are, by commands and reprs


def spoken(node):
    """Return the expressions that a statement says to people."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        return [node.exc]
    if isinstance(node, ast.Assert) and node.msg is not None:
        return [node.msg]
    warned = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "warn"
    return [node] if warned else []


def breaches(text):
    """Return the lines of a module where a value is quoted past the one function."""
    tree = ast.parse(text)
    reprs = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__repr__"
        for inner in ast.walk(node)
    }
    said = {id(inner) for node in ast.walk(tree) for part in spoken(node) for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and id(node) not in reprs:
            form = "" if node.format_spec is None else ast.unparse(node.format_spec)
            cut = id(node) in said and re.search(r"^f['\"]\.\d+['\"]$", form)
            if cut or (node.conversion != -1 and ast.unparse(node.value) not in OWN):
                yield node.lineno, ast.unparse(node)
        elif id(node) in said and isinstance(node, ast.Call) and ast.unparse(node.func) in REPRS:
            yield node.lineno, ast.unparse(node)


def test_values_of_the_caller_are_quoted_by_one_function():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {quoted}"
        for path in sorted(ROOT.rglob("*.py"))
        if str(path.relative_to(ROOT)) not in WHOLE
        for line, quoted in breaches(path.read_text(encoding="utf-8"))
    ]

    assert [] == found


@pytest.mark.parametrize(
    "written",
    [
        'raise ValueError(f"must be a, got {value!r}.")',
        'raise ValueError(f"must be a, got {value!r:.60}.")',
        'raise ValueError(f"must be a, got {text:.60}.")',
        'raise ValueError("must be a, got " + repr(value))',
        'warnings.warn(f"got {value!s}")',
        'assert fits, f"got {value!r}"',
        'hint = f"did you mean {near!r}?"',
    ],
)
def test_the_rule_finds_each_way_around_it(written):
    assert 1 == len(list(breaches(written)))


class Raising:
    def __repr__(self):
        raise RuntimeError("never ask")


class Talking:
    def __repr__(self):
        return "\x1b[2J\ud800\u202e\n" * 50_000


class Text(str):
    def __repr__(self):
        return Text("x" * 10**5)

    def __len__(self):
        return 3


ODD = [
    "x" * 10**6, "\ud800", "\x1b[31mred", "a\nb", b"\x00" * 10**6, 10**5000, -(10**5000), [[0] * 10**5] * 3,
    {"k" * 10**5: "v" * 10**5}, Raising(), [Raising()], Talking(), [Talking()], Text("abc"),
    type("N" * 10**5, (), {}),
]  # fmt: skip


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_whatever_is_quoted_is_short_and_printable_and_on_one_line(value):
    for longest in (20, 60, 200):
        text = shown(value, longest)

        assert type(text) is str
        assert text.isprintable()
        assert 0 < len(text) <= longest
        assert text.encode("utf-8")


@pytest.mark.parametrize("value", [0, -1.5, "F", "it's", None, True, [1, 2], ("a",), {"a": 1}, b"x"])
def test_an_ordinary_value_is_quoted_as_python_writes_it(value):
    assert repr(value) == shown(value)


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize(
    "call",
    [
        lambda value: ic.Budget(value),
        lambda value: ic.where(age=value).bind(DOMAIN),
        lambda value: ic.where({value: 1} if type(value) is str else {"age": value}).bind(DOMAIN),
        lambda value: ic.Domain.of(age=["a", value]),
        lambda value: ic.Domain.of(age=ic.dates(value, value)),
        lambda value: DOMAIN.axis(value),
        lambda value: ic.condition(f"age = '{value}'" if type(value) is str else value, DOMAIN),
        lambda value: ic.Domain.from_json(value),
        lambda value: ic.OnlineIC(DATA, ic.Budget(1.0), exhausted=value),
        lambda value: SESSION.group_by([value]),
    ],
    ids=["Budget", "label", "name", "labels", "dates", "axis", "sql", "json", "session", "groups"],
)
def test_messages_about_odd_values_can_be_logged(call, value):
    text = ""
    try:
        call(value)
    except OnlineICError as error:
        text = str(error)

    assert len(text) <= 2000
    assert text.isprintable()


DOMAIN = ic.Domain.of(age=4, sex=["F", "M"])
DATA = ic.PrivateData([50, 60, 70, 80, 90, 100, 110, 120], DOMAIN)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    SESSION = ic.OnlineIC(ic.PrivateData([500] * 8, DOMAIN), ic.Budget(1.0, 1e-9), questions=10)


def test_odd_names_of_attributes_do_not_reach_a_log():
    domain = ic.Domain.of({"\x1b[2J\ud800": 4, "n" * 10**5: 2})
    for name in domain.names:
        with pytest.raises(InvalidQueryError) as refused:
            ic.where({name: 9}).bind(domain)

        assert str(refused.value).isprintable()
        assert len(str(refused.value)) <= 2000


def test_reports_of_misfits_keep_their_lines():
    assert "a\n  b\\x1b" == str(InvalidDataError("a\n  b\x1b"))
    assert "a\\nb" == str(InvalidQueryError("a\nb"))
    assert "a\\nb" == printable("a\nb")
