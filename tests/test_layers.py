"""The import graph is the privacy boundary: every module of the package is held to the table of rows.

This guards against mistakes, not malice: code in the same process can always reach everything.
"""

import ast
import graphlib
from pathlib import Path

import pytest

import onlineic

# The wings of the package, lowest row first. A module imports from its own wing and from strictly lower
# rows; from another wing it takes no private name. A new wing gets a place here first.
ROWS = (
    {"errors", "_typing"},
    {"display", "reentry", "slips"},
    {"domain", "noise", "accounting", "progress"},
    {"queries", "bounds", "datasets"},
    {"ask", "hypothesis", "interactions", "known_noise", "sparse", "mechanisms", "ledger"},
    {"updates", "data"},
    {"plan", "questions"},
    {"session", "offline", "baselines"},
    {"evaluate", "testing", "audit", "service", "periods"},
    {"cli"},
    {"__init__", "__main__"},
)
ROW = {wing: row for row, wings in enumerate(ROWS) for wing in wings}

# Exact counts are read by these files and wings only; never by testing.
READERS = (
    "data.private",
    "session.core",
    "session.counting",
    "offline",
    "baselines",
    "evaluate",
    "audit",
)
# These may build a PrivateData, or hand the name on.
IMPORTERS = (*READERS, "data", "session.fetching", "session.session", "periods", "cli", "__init__")
RANDOM_MODULES = ("noise",)
RANDOMNESS = ("random", "secrets", "numpy.random", "os.urandom", "os.getrandom", "scipy.stats")
DETOURS = ("__import__", "builtins.__import__", "importlib", "runpy", "sys.modules", "eval", "exec")


def violations(source: str, module: str) -> list[str]:
    """Return what `source` may not do as the module onlineic.`module`, one line for each place."""
    if module.partition(".")[0] not in ROW:
        return [f"{module} has no row in the table"]
    tree = ast.parse(source)
    aliases = local_names(tree)
    found = set()
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        found |= {(line, message) for message in import_violations(node, module)}
        found |= {(line, message) for message in name_violations(node, module, aliases)}
    return [f"line {line}: {message}" for line, message in sorted(found)]


def local_names(tree: ast.AST) -> dict[str, str]:
    """Return what every imported name stands for, written from the root: np -> numpy."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def import_violations(node: ast.AST, module: str) -> list[str]:
    """Return what is wrong with an import statement."""
    if isinstance(node, ast.Import):
        paths = [alias.name for alias in node.names]
        own = [path for path in paths if is_at(path, "onlineic")]
        return [f"import {path}: name what you need" for path in own] + forbidden_paths(paths, module)
    if not isinstance(node, ast.ImportFrom):
        return []
    if node.level:
        return ["relative import"]
    if node.module == "onlineic":
        return ["from onlineic import: name the module"]
    assert node.module is not None
    if not is_at(node.module, "onlineic"):
        return forbidden_paths([f"{node.module}.{alias.name}" for alias in node.names], module)
    top, target = module.partition(".")[0], node.module.split(".")[1]
    names = {alias.name for alias in node.names}
    messages = []
    if target not in ROW:
        messages.append(f"imports {target}, which has no row in the table")
    elif target != top and ROW[target] >= ROW[top]:
        messages.append(f"imports {target}, which is not in a lower row")
    elif target != top and any(name.startswith("_") for name in names | {*node.module.split(".")[2:]}):
        messages.append(f"takes a private name from {target}")
    of_data = target == "data" and node.module != "onlineic.data.release"
    if (of_data or "PrivateData" in names) and not within(module, IMPORTERS):
        messages.append("may not import the private data")
    return messages


def name_violations(node: ast.AST, module: str, aliases: dict[str, str]) -> list[str]:
    """Return what is wrong with the use of a name, an attribute or a text that serves as one."""
    messages = []
    if not within(module, READERS) and "exact_counts" in mentioned(node):
        messages.append("may not mention exact_counts")
    if isinstance(node, ast.Attribute) and node.attr == "rvs":
        messages.append("calls .rvs, which draws from a global generator")
    path = dotted(node, aliases)
    return messages + (forbidden_paths([path], module) if path else [])


def mentioned(node: ast.AST) -> set[str]:
    """Return the names that a node spells, among them texts that getattr could be handed."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return {name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.keyword(arg=str(name)) | ast.arg(arg=name):
            return {name}
        case ast.alias(name=name, asname=other):
            return {name, other or name}
    return set()


def dotted(node: ast.AST, aliases: dict[str, str]) -> str | None:
    """Return the full path of `a.b.c` if `a` is imported or built in."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id if node.id in {"__import__", "eval", "exec"} else None)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, aliases)
        return owner and f"{owner}.{node.attr}"
    return None


def forbidden_paths(paths: list[str], module: str) -> list[str]:
    """Return a message for each path that leads to randomness or round the table."""
    messages = []
    for path in paths:
        if not within(module, RANDOM_MODULES) and any(is_at(path, source) for source in RANDOMNESS):
            messages.append("touches randomness, which only noise may")
        # A version is harmless; a table reads its file, and importlib alone is the first half of that path.
        lawful = (
            path == "importlib.metadata.version"
            or (module == "datasets.adult" and (path == "importlib" or is_at(path, "importlib.resources")))
            or (module == "__init__" and path in ("importlib", "importlib.import_module"))  # wings by name
        )
        if not lawful and any(is_at(path, detour) for detour in DETOURS):
            messages.append(f"goes round the table by {path.rpartition('.')[2]}")
    return messages


def within(module: str, places: tuple[str, ...]) -> bool:
    """True if a module is one of these files, or of one of these wings."""
    return any(is_at(module, place) for place in places)


def is_at(path: str, root: str) -> bool:
    """True if `path` is `root` or lies below it."""
    return path == root or path.startswith(root + ".")


def circle(sources: dict[str, str]) -> list[str]:
    """Return modules that import each other in a circle, inside functions or for types only, or []."""
    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
        taken = [(node.module, alias.name) for node in nodes for alias in node.names if node.module]
        named = [(path.removeprefix("onlineic."), name) for path, name in taken if is_at(path, "onlineic")]
        graph[module] = {f"{path}.{name}" if f"{path}.{name}" in sources else path for path, name in named}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


PACKAGE = Path(onlineic.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


@pytest.mark.parametrize("module", MODULES)
def test_module_keeps_to_its_row(module):
    assert [] == violations(MODULES[module].read_text(encoding="utf-8"), module)


def test_no_files_import_each_other_in_a_circle():
    assert [] == circle({module: path.read_text(encoding="utf-8") for module, path in MODULES.items()})


@pytest.mark.parametrize(
    "back",
    [
        "def shown(answer):\n    from onlineic.queries.answers import Answer",
        "if TYPE_CHECKING:\n    from onlineic.queries.answers import Answer",
    ],
)
def test_circle_of_files_is_found(back):
    sources = {
        "queries.answers": "from onlineic.queries.query import Query\n"
        "from onlineic.queries.pictures import answer_html",
        "queries.pictures": back,
        "queries.query": "from onlineic.errors import InvalidQueryError",
    }

    assert {"queries.answers", "queries.pictures"} == set(circle(sources))
    assert [] == circle(sources | {"queries.pictures": ""})


def test_table_names_every_module_once():
    assert len(ROW) == sum(map(len, ROWS))


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("queries.query", "from onlineic.session import OnlineIC", "session, which is not in a lower row"),
        (
            "noise.laws",
            "from onlineic.accounting.budget import Budget",
            "accounting, which is not in a lower row",
        ),
        ("updates.median", "from onlineic.offline import x", "offline, which is not in a lower row"),
        ("queries", "def f():\n    from onlineic.evaluate import x", "evaluate, which is not in a lower row"),
        ("plan.plan", "from onlineic.sparse.base import _hit", "takes a private name from sparse"),
        ("plan.plan", "from onlineic.sparse._tricks import hit", "takes a private name from sparse"),
        ("cli", "from onlineic.cli_extra import x", "imports cli_extra, which has no row"),
        ("gossip", "", "gossip has no row in the table"),
        ("session", "import onlineic", "import onlineic: name"),
        ("session", "import onlineic as ic", "import onlineic: name"),
        ("session", "import onlineic.errors", "import onlineic.errors: name"),
        ("session", "import onlineic.data as d", "import onlineic.data: name"),
        ("session", "from onlineic import errors", "from onlineic import: name"),
        ("session", "from . import errors", "relative import"),
        ("updates.median", "from ..errors import InternalError", "relative import"),
        ("session", "import importlib", "by importlib"),
        ("__init__", "import importlib.util", "by util"),
        ("session", "from importlib import import_module", "by import_module"),
        ("session", "from importlib import import_module as load", "by import_module"),
        ("session", "import importlib.resources", "by resources"),
        ("session", "from importlib.metadata import entry_points", "by entry_points"),
        (
            "datasets.adult",
            "import importlib.resources\nimportlib.import_module('onlineic.cli')",
            "by import_module",
        ),
        ("datasets.adult", "from importlib import import_module", "by import_module"),
        ("session", "__import__('onlineic.cli')", "by __import__"),
        ("session", "import builtins\nbuiltins.__import__('onlineic.cli')", "by __import__"),
        ("session", "import sys\nsys.modules['onlineic.cli']", "by modules"),
        ("session", "import runpy", "by runpy"),
        ("session", "eval('1')", "by eval"),
        ("session", "exec('import onlineic.cli')", "by exec"),
        ("mechanisms", "law.rvs(size=3)", "calls .rvs"),
        ("mechanisms", "import random", "touches randomness"),
        ("mechanisms", "from random import SystemRandom", "touches randomness"),
        ("mechanisms", "import secrets as s", "touches randomness"),
        ("mechanisms", "import numpy.random", "touches randomness"),
        ("mechanisms", "from numpy import random", "touches randomness"),
        ("mechanisms", "from numpy.random import default_rng", "touches randomness"),
        ("mechanisms", "import numpy as np\nnp.random.default_rng(0)", "touches randomness"),
        ("mechanisms", "import os\nos.urandom(8)", "touches randomness"),
        ("mechanisms", "from os import urandom as bytes_of", "touches randomness"),
        ("mechanisms", "import os\nos.getrandom(8)", "touches randomness"),
        ("mechanisms", "from scipy import stats", "touches randomness"),
        ("updates.median", "from onlineic.data import PrivateData", "may not import the private data"),
        (
            "testing.checks",
            "from onlineic.data.private import PrivateData",
            "may not import the private data",
        ),
        ("testing", "from onlineic.data import total", "may not import the private data"),
        ("plan.plan", "from onlineic.data import PrivateData", "may not import the private data"),
        ("plan.purchase_rule", "from onlineic.data import PrivateData", "may not import the private data"),
        ("plan.purchase_rule", "from onlineic.data import private", "may not import the private data"),
        (
            "plan.purchase_rule",
            "from onlineic.session.core import Core",
            "session, which is not in a lower row",
        ),
        ("plan.purchase_rule", "def f(table): return table.exact_counts(1)", "may not mention exact_counts"),
        (
            "session.answers",
            "from onlineic.session.session import PrivateData",
            "may not import the private data",
        ),
        ("session.session", "data.exact_counts(1)", "may not mention exact_counts"),
        ("data.release", "data.exact_counts(1)", "may not mention exact_counts"),
        ("sparse.gumbel", "def f(data):\n    return data.exact_counts(1)", "may not mention exact_counts"),
        ("cli", "data.exact_counts(1)", "may not mention exact_counts"),
        ("updates.median", "getattr(data, 'exact_counts')", "may not mention exact_counts"),
        ("hypothesis.base", "def exact_counts(): ...", "may not mention exact_counts"),
    ],
)
def test_planted_violation_is_found(module, source, message):
    found = violations(source, module)

    assert any(message in line for line in found), found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("session.core", "from onlineic.data import PrivateData\nPrivateData.exact_counts"),
        ("data.private", "def exact_counts(): ..."),
        ("offline.cdf", "from onlineic.data.release import released"),
        ("cli", "from onlineic.data import PrivateData"),
        ("__init__", "from onlineic.data import PrivateData as PrivateData"),
        (
            "updates.median",
            "from onlineic.updates.base import UpdateRule\nfrom onlineic.errors import InternalError",
        ),
        ("noise.sources", "import os\nimport numpy as np\nos.urandom(8)\nnp.random.default_rng(0)"),
        ("datasets.adult", "import importlib.resources\nimportlib.resources.files('onlineic.datasets')"),
        ("datasets.adult", "from importlib.resources import files"),
        ("__init__", "import importlib\nimportlib.import_module('onlineic.cli')"),
        ("cli", "from importlib.metadata import version\nversion('onlineic')"),
        ("mechanisms", "import os\nos.getpid()\nimport numpy as np\nnp.exp(1)\nrandom = 1\nrandom += 1"),
        ("hypothesis", '"""Never calls data.exact_counts: hypotheses are public."""'),
    ],
)
def test_lawful_module_passes(module, source):
    assert [] == violations(source, module)
