"""The flat public namespace: what it holds, that it is documented, and that importing it stays cheap."""

import ast
import pathlib
import subprocess
import sys

import onlineic

PUBLIC = {
    "Answer", "Budget", "Domain", "Grid", "Histogram", "MaximumEntropy",
    "MeasuredWeights", "Measurement", "Median", "MixtureOfProducts", "MultiplicativeWeights",
    "OnlineIC", "Partition", "Perceptron", "Periods", "PrivateData", "Query", "SessionStatistics",
    "TableBudget", "TestsOnly", "Unit", "UpdateRule", "at_least", "below", "between", "binned",
    "boolean", "case", "categorical", "condition", "connect", "cut", "date_trunc", "dates", "dense",
    "expected", "extract", "forecast", "from_column", "integers", "marginal", "number", "one_of", "optional",
    "replay", "rescaled",
    "span", "weights", "where",
}  # fmt: skip


def test_the_public_names_are_these_and_documented():
    assert PUBLIC == {*onlineic.__all__}
    assert PUBLIC <= {*dir(onlineic)}
    assert all(getattr(onlineic, name).__module__.startswith("onlineic.") for name in PUBLIC)
    assert [] == [name for name in PUBLIC if not getattr(onlineic, name).__doc__]


def test_type_checkers_read_the_same_names_from_the_same_files():
    tree = ast.parse(pathlib.Path(onlineic.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    read = {one.asname: node.module for node in block.body for one in node.names}

    assert read == {name: getattr(onlineic, name).__module__ for name in onlineic.__all__}


def test_what_is_not_used_is_not_imported():
    code = """
import sys, onlineic as ic
assert not [name for name in sys.modules if name.startswith("onlineic.")], sys.modules
assert "numpy" not in sys.modules
from onlineic import Budget
assert ic.Budget is Budget and "onlineic.session" not in sys.modules
ic.cli.main.__call__
assert not {"onlineic.session", "onlineic.audit", "scipy"} & {*sys.modules}
try:
    ic.cli.main(["--version"])
except SystemExit:
    print("numpy.random" in sys.modules, "onlineic.session" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False" == done.stdout.split()[-1]


def test_importing_loads_neither_scipy_nor_an_extra():
    code = (
        "import sys, onlineic; "
        "print([m for m in ('scipy', 'matplotlib', 'pandas', 'hypothesis', 'pytest') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()


def test_wings_are_reached_from_the_top_without_an_import_of_their_own():
    code = """
import sys, onlineic as ic
assert "onlineic.offline" not in sys.modules
assert ic.offline.mean and ic.evaluate.compare and ic.datasets.adult5
assert "offline" in dir(ic) and "OnlineIC" in dir(ic)
try:
    ic.ofline
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "onlineic has no attribute 'ofline'" in done.stdout


def test_every_wing_is_named():
    folder = pathlib.Path(onlineic.__file__).parent
    wings = {
        path.name.removesuffix(".py") for path in folder.iterdir() if not path.name.startswith(("_", "py."))
    }

    code = "import onlineic; print(*sorted({*dir(onlineic)} - {*onlineic.__all__, 'importlib'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert wings == {name for name in done.stdout.split() if not name.startswith("_")}
