"""The rule of sessions that buy by what is asked: what a new release does to the fit that stands."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.hypothesis import Mixture
from onlineic.hypothesis.product import ProductHistogram
from onlineic.queries import Measurement, Partition
from onlineic.updates.fitted_tables import FittedTables

DOMAIN = ic.Domain.of(a=4, b=3, c=2)
DRAW = np.random.default_rng(3)
TRUE = DRAW.dirichlet(np.ones(24)).reshape(4, 3, 2)


def released(axes, scale, seed=0):
    """Return a table over these attributes with Gaussian noise."""
    target = Partition(DOMAIN, axes, tuple(np.arange(DOMAIN.shape[axis]) for axis in axes))
    exact = TRUE.sum(axis=tuple(axis for axis in range(3) if axis not in axes)).ravel()
    return Measurement(target, exact + np.random.default_rng(seed).normal(0, scale, len(exact)), scale)


def gap(hypothesis, one):
    """Return how far a hypothesis is from what was released, root mean square."""
    return float(np.sqrt(np.mean((hypothesis.blocks(one.target) - one.values) ** 2)))


@pytest.fixture
def fitted():
    tables = (released((0, 1), 0.02), released((1, 2), 0.02, 1))
    return FittedTables().update(FittedTables().init(DOMAIN), tables, 0.01), tables


def test_a_table_that_is_released_again_is_learned_from_where_the_fit_stands(fitted):
    before, tables = fitted
    again = released((0, 1), 0.0002, 2)
    after = FittedTables().update(before, (*tables, again), 0.01)

    assert len(before.fit.potentials) == len(after.fit.potentials) == 2
    assert gap(after, again) < 0.1 * gap(before, again)


def test_a_further_table_is_learned_and_the_others_are_kept(fitted):
    before, tables = fitted
    third = released((0, 2), 0.001, 3)
    after = FittedTables().update(before, (*tables, third), 0.01)

    assert 3 == len(after.fit.potentials)
    assert gap(after, third) < 0.2 * gap(before, third)
    assert all(gap(after, one) < 0.04 for one in tables)


def test_what_no_fit_can_read_teaches_nothing(fitted):
    before, tables = fitted
    weights = ic.where(a=ic.weights(np.linspace(0, 1, 4))).bind(DOMAIN, 4)
    number = Measurement(weights, np.array([0.5]), 0.01)

    assert weights.grid_bits > 0
    assert FittedTables().update(before, (*tables, number), 0.01) is before


def test_the_fit_after_a_release_again_comes_back_to_the_bit(fitted):
    before, tables = fitted
    rule, all_of_them = FittedTables(), (*tables, released((0, 1), 0.0002, 2))
    after = rule.update(before, all_of_them, 0.01)
    restored = rule.restored(rule.init(DOMAIN), all_of_them, rule.parameters(after))

    assert np.array_equal(after.probabilities(), restored.probabilities())


@pytest.mark.parametrize("dense", [False, True])
def test_a_public_start_stands_where_a_mixture_takes_over(dense):
    """Planted once: beyond the cells that a fit holds a mixture began from nothing, and forgot the start."""
    rule = FittedTables(most_cells=1)
    factors = tuple(np.arange(1.0, size + 1) ** 2 for size in DOMAIN.shape)
    factors = tuple(one / one.sum() for one in factors)
    prior = ProductHistogram.of_factors(DOMAIN, factors)
    start = rule.init(DOMAIN, ic.Histogram(DOMAIN, prior.probabilities()) if dense else prior)
    table = released((0,), 0.001)
    learned = rule.update(start, (table,), 0.01)

    assert isinstance(learned.fit, Mixture)
    assert gap(learned, table) < 0.02
    assert learned.marginal("b") == pytest.approx(factors[1], abs=0.03)
    assert learned.marginal("c") == pytest.approx(factors[2], abs=0.03)
