"""The examples in docstrings run and show what they say."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import onlineic as ic
from onlineic import offline
from onlineic.datasets import adult5, adult5_domain
from onlineic.noise import SimulatedNoise

OF_A_SESSION = ["onlineic.questions.derived", "onlineic.session.session"]
MODULES = [
    "onlineic.domain.grid",
    "onlineic.mechanisms.additive",
    "onlineic.mechanisms.quantiles",
    "onlineic.mechanisms.selection",
    "onlineic.queries.rescaled",
    "onlineic.sparse.above_threshold",
    *(f"onlineic.offline.{found.name}" for found in pkgutil.iter_modules(offline.__path__)),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_hold(name):
    module = importlib.import_module(name)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(module, extraglobs={"ic": ic, "np": np}, optionflags=flags)

    assert 0 == result.failed


@pytest.fixture(scope="module")
def census():
    """Return what examples of a session name: the census table, and a session of it."""
    columns, counts = adult5()
    tables = [ic.PrivateData.from_counts(columns, counts, adult5_domain()) for _ in range(2)]
    session = ic.OnlineIC(tables[0], ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1))
    return {"data": tables[1], "session": session, "where": ic.where}


@pytest.mark.parametrize("name", OF_A_SESSION)
def test_examples_of_a_session_hold(name, census):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(importlib.import_module(name), extraglobs=census, optionflags=flags)

    assert 0 == result.failed
    assert 3 < result.attempted


@pytest.mark.parametrize(
    "name", ["mean", "sum", "variance", "quantile", "median", "cdf", "histogram", "group_by"]
)
def test_help_of_a_question_says_all_where_it_stands(name):
    told = inspect.getdoc(getattr(ic.OnlineIC, name))

    assert [f"{part}:\n" in told for part in ("Args", "Raises", "Examples")] == [True] * 3
    assert f">>> session.{name}(" in told


OFFERED = sorted(name for name, found in vars(offline).items() if inspect.isfunction(found))


@pytest.mark.parametrize("name", OFFERED)
def test_every_function_that_offline_offers_has_an_example(name):
    assert ">>>" in (getattr(offline, name).__doc__ or "")
