"""Which private names of the package a text of code reads."""

import ast
import re
from collections import defaultdict

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


def homes(package):
    """Return the wings of a package's folder that define each private name."""
    found = defaultdict(set)
    for path in package.rglob("*.py"):
        wing = path.relative_to(package).parts[0].removesuffix(".py")
        for name in filter(private, stored(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))):
            found[name].add(wing)
    return found


def reached(source, own, known):
    """Return the private names of other wings than `own` that a test reads or imports, and not defines."""
    if not PRIVATE.search(source):
        return []
    nodes = [*ast.walk(ast.parse(source))]
    mine = {*stored(nodes)}
    names = [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    names += [one.name for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names]
    return [name for name in names if private(name) and name in known and name not in mine
            and own not in known[name]]  # fmt: skip
