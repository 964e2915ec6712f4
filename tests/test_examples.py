"""The examples in docstrings run and show what they say."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

from onlineic import offline

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
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)

    assert 0 == result.failed


OFFERED = sorted(name for name, found in vars(offline).items() if inspect.isfunction(found))


@pytest.mark.parametrize("name", OFFERED)
def test_every_function_that_offline_offers_has_an_example(name):
    assert ">>>" in (getattr(offline, name).__doc__ or "")
