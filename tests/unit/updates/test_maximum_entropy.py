"""Maximum entropy: conformance, what it reads of each measurement, priors, determinism, never worse."""

import pickle

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidParameterError
from onlineic.hypothesis.fitting import fit
from onlineic.hypothesis.histogram import MIN_PRIOR, SMALLEST
from onlineic.hypothesis.nested import fit_nested
from onlineic.queries import Measurement, Partition
from onlineic.testing import check_update_rule
from onlineic.updates import MaximumEntropy

DOMAIN = ic.Domain.of(a=4, b=3, c=2)
TRUTH = np.random.default_rng(5).dirichlet(np.full(24, 0.4)).reshape(4, 3, 2)


def bound(expression):
    return expression.bind(DOMAIN)


def fraction(query):
    return float((query.weights() * TRUTH).sum()) / (1 << query.grid_bits)


def number(expression, scale=1e-3, off=0.0):
    query = bound(expression)
    return Measurement(query, np.array([fraction(query) + off]), scale)


def table(*axes, scale=1e-3, noise=None):
    target = Partition(DOMAIN, axes, tuple(np.arange(DOMAIN.shape[axis]) for axis in axes))
    values = TRUTH.sum(axis=tuple({0, 1, 2} - {*axes})).ravel()
    return Measurement(target, values if noise is None else values + noise, scale)


def learned(measurements, rule=None, prior=None):
    rule = rule or MaximumEntropy()
    hypothesis = rule.init(DOMAIN, prior)
    for count in range(1, len(measurements) + 1):
        hypothesis = rule.update(hypothesis, tuple(measurements[:count]), 0.1)
    return hypothesis


def loss(hypothesis, measurements):
    total = 0.0
    for measurement in measurements:
        target = measurement.target
        guess = hypothesis.blocks(target) if isinstance(target, Partition) else hypothesis.evaluate(target)
        total += float(np.sum((guess - measurement.values) ** 2)) / (2 * measurement.scale**2)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("rule", [MaximumEntropy(), MaximumEntropy(60, 0.1), MaximumEntropy(misfit=0.5)])
def test_the_rule_keeps_every_promise_that_a_session_relies_on(rule):
    check_update_rule(rule, steps=30)


@pytest.mark.parametrize(
    "query",
    [
        ic.where(a=1),
        ~ic.where(a=1),
        ic.where(a=ic.one_of(0, 3), c=1),
        ~ic.where(a=ic.between(1, 2), b=2, c=0),
        ic.dense(np.indices((4, 3, 2)).sum(axis=0) % 2),
        ~ic.dense(np.indices((4, 3, 2)).sum(axis=0) % 2),
    ],
)
@pytest.mark.parametrize("value", [0.9, 0.2])
def test_a_number_pulls_its_own_query_to_itself_also_of_complements_and_joint_weights(query, value):
    measured = Measurement(bound(query), np.array([value]), 1e-4)
    hypothesis = learned([measured])

    assert value == pytest.approx(hypothesis.evaluate(bound(query)), abs=1e-3)
    assert 1 - value == pytest.approx(hypothesis.evaluate(bound(~query)), abs=1e-3)


def test_of_all_that_fit_the_flattest_is_chosen():
    """One number on a product leaves the cells inside, and those outside, equal."""
    query = bound(ic.where(a=1, b=ic.one_of(0, 2)))
    cells = learned([Measurement(query, np.array([0.5]), 1e-4)]).probabilities()
    inside = query.weights().astype(bool)

    assert np.ptp(cells[inside]) < 1e-12
    assert np.ptp(cells[~inside]) < 1e-12


def test_a_joint_table_over_axes_out_of_order_lands_on_its_own_cells():
    """Factors (0, 2) and (1,): the merged blocks are transposed to the order of the axes."""
    weights = np.zeros((4, 3, 2))
    weights[0, 1, 0] = weights[3, 1, 1] = 1.0
    query = bound(ic.dense(weights))
    measured = Measurement(query, np.array([0.8]), 1e-4)
    cells = learned([measured]).probabilities()

    assert 0.8 == pytest.approx(cells[0, 1, 0] + cells[3, 1, 1], abs=1e-3)
    assert cells[0, 1, 1] < 0.02


def test_two_joint_tables_over_nested_axes_land_on_their_own_cells():
    """Factors (0, 3) and (1, 2): the order of the axes is not its own inverse."""
    domain = ic.Domain.of(a=2, b=3, c=4, d=5)
    outer, inner = ic.where(a=0) | ic.where(d=1), ic.where(b=2) | ic.where(c=3)
    query = (outer & inner).bind(domain)
    rule = MaximumEntropy()
    learned = rule.update(rule.init(domain), (Measurement(query, np.array([0.8]), 1e-4),), 0.1)

    assert [(0, 3), (1, 2)] == [factor.axes for factor in query.factors]
    assert 0.8 == pytest.approx(learned.evaluate(query), abs=1e-3)


def test_a_number_weighs_as_one_and_a_table_of_its_two_sides_as_two():
    """Least squares: (.2 + 2 * .4) / 3; with both sides of the number at full weight it would be .3."""
    domain = ic.Domain.of(a=2)
    one = Measurement(ic.where(a=1).bind(domain), np.array([0.2]), 1e-3)
    two = Measurement(Partition(domain, (0,), (np.arange(2),)), np.array([0.6, 0.4]), 1e-3)
    rule = MaximumEntropy(evaluations=500)
    learned = rule.update(rule.init(domain), (one, two), 0.1)

    assert 1 / 3 == pytest.approx(learned.evaluate(one.target), abs=1e-4)


def test_only_the_first_fit_stops_at_its_misfit():
    """Later ones start where the last one stopped: they go on for their evaluations."""
    rule, tables = MaximumEntropy(misfit=0.9), [table(0, 1, scale=0.02), table(1, 2, scale=0.02)]
    start = rule.update(rule.init(DOMAIN), (tables[0],), 0.1)
    expected = fit(start.prior, tables, start.potentials, evaluations=30)
    shorter = fit(start.prior, tables, start.potentials, evaluations=30, enough=0.9)

    assert shorter.evaluations < expected.evaluations
    assert not np.allclose(expected.cells, shorter.cells, rtol=1e-6)
    # the histogram normalises once more, which may move a last bit
    assert rule.update(start, tuple(tables), 0.1).probabilities() == pytest.approx(expected.cells, rel=1e-12)


def test_fractional_numbers_are_answered_by_the_session_and_ignored_here():
    rule = MaximumEntropy()
    start = rule.init(DOMAIN)
    half = number(ic.dense(np.arange(24).reshape(4, 3, 2) / 32))

    assert start is rule.update(start, (half,), 0.1)
    one = learned([half, table(0)])
    other = learned([table(0)])
    assert np.array_equal(one.probabilities(), other.probabilities())
    assert 1 == len(one.potentials)


def test_a_measurement_after_an_ignored_one_is_read():
    both = learned([table(0), number(ic.dense(np.full((4, 3, 2), 0.25) * np.eye(4)[:, :1, None])), table(1)])

    assert 2 == len(both.potentials)
    assert both.blocks(table(1).target) == pytest.approx(table(1).values, abs=2e-3)


def test_after_a_failed_update_the_next_one_reads_everything():
    rule = MaximumEntropy()
    start = rule.init(DOMAIN)
    caught_up = rule.update(start, (table(0), table(1), table(2)), 0.1)

    assert 3 == len(caught_up.potentials)
    for one in (table(0), table(1), table(2)):
        assert caught_up.blocks(one.target) == pytest.approx(one.values, abs=2e-3)


def test_full_exact_tables_give_the_truth_back():
    hypothesis = learned([table(0, 1, 2, scale=1e-6)], MaximumEntropy(evaluations=2000))

    assert hypothesis.probabilities() == pytest.approx(TRUTH, abs=1e-4)


def test_a_refit_is_never_worse_than_the_start_on_all_that_was_measured():
    generator = np.random.default_rng(3)
    rule = MaximumEntropy(evaluations=10)
    hypothesis, past = rule.init(DOMAIN), ()
    for axes in [(0,), (1,), (0, 1), (2,), (1, 2), (0, 2), (0, 1, 2)]:
        size = int(np.prod([DOMAIN.shape[axis] for axis in axes]))
        past = (*past, table(*axes, scale=0.01, noise=0.01 * generator.standard_normal(size)))
        fitted = rule.update(hypothesis, past, 0.1)

        assert loss(fitted, past) <= loss(hypothesis, past) * (1 + 1e-9)
        hypothesis = fitted


def test_a_prior_is_the_start_and_what_entropy_is_relative_to():
    weights = np.arange(1.0, 25.0).reshape(4, 3, 2)
    prior = ic.Histogram(DOMAIN, weights)
    measured = Measurement(bound(ic.where(a=0)), np.array([0.5]), 1e-5)
    cells = learned([measured], prior=prior).probabilities()

    assert MaximumEntropy().init(DOMAIN, prior).probabilities() == pytest.approx(weights / weights.sum())
    assert cells[0] == pytest.approx(0.5 * weights[0] / weights[0].sum(), abs=1e-4)
    assert cells[1:] == pytest.approx(0.5 * weights[1:] / weights[1:].sum(), abs=1e-4)
    again = learned([measured], prior=MaximumEntropy().init(DOMAIN, prior)).probabilities()
    assert np.array_equal(cells, again)


@pytest.mark.parametrize("prior", [ic.Histogram(ic.Domain.of(a=4)), object(), np.ones((4, 3, 2))])
def test_another_prior_is_refused(prior):
    with pytest.raises(InvalidParameterError, match=r"^prior must be a Histogram over"):
        MaximumEntropy().init(DOMAIN, prior)


def test_the_same_measurements_give_the_same_bits_also_in_a_copy():
    past = [table(0, scale=0.01), number(ic.where(b=1, c=0)), table(1, 2, scale=0.02)]
    one, other = learned(past), learned(past, pickle.loads(pickle.dumps(MaximumEntropy())))

    assert one.probabilities().tobytes() == other.probabilities().tobytes()


def test_negative_and_huge_noisy_values_leave_a_distribution():
    wild = table(0, noise=np.array([5.0, -7.0, 3.0, -9.0]), scale=2.0)
    cells = learned([wild, table(1, scale=1e-9)]).probabilities()

    assert (cells > 0).all()
    assert 1.0 == pytest.approx(cells.sum())


@pytest.mark.parametrize(
    ("name", "value"),
    [("evaluations", 0), ("evaluations", 1.5), ("kl_weight", -1.0), ("kl_weight", np.nan), ("misfit", 1.0)],
)
def test_settings_outside_their_range_are_refused_by_name(name, value):
    with pytest.raises(InvalidParameterError, match=f"^{name} must be"):
        MaximumEntropy(**{name: value})


def test_no_number_of_updates_is_proven():
    assert MaximumEntropy().update_bound(DOMAIN, 0.1) is None


def test_cells_that_the_fit_starves_stay_large_enough_for_a_histogram():
    """The floor is above the histogram's own smallest prior; in product form no floor is needed."""
    domain = ic.Domain.of(a=3)
    partition = Partition(domain, (0,), (np.arange(3),))
    tables = [ic.Measurement(partition, np.array([1.0, 0.0, 0.0]), 0.01)]
    start = [np.array([0.0, -3_000.0, -3_000.0])]
    dense = fit(np.ones(3), tables, start, evaluations=1).histogram
    product = fit((np.ones(3),), tables, start, evaluations=1).histogram

    assert SMALLEST > 10 * MIN_PRIOR
    assert (dense.probabilities() > 0).all()
    assert [1.0, 0.0, 0.0] == product.probabilities().tolist()
    assert dense.probabilities() == pytest.approx(product.dense().probabilities(), rel=1e-12)


def test_first_tables_that_refine_each_other_are_fitted_in_closed_form():
    """Shrunken least squares, where the first fit stops at a misfit; a descent would come near it only."""
    fine = table(0, scale=0.02)
    halves = Partition(DOMAIN, (0,), (np.array([0, 0, 1, 1]),))
    tables = (fine, Measurement(halves, np.array([0.3, 0.71]), 0.02))
    rule = MaximumEntropy(misfit=0.5)
    start = rule.init(DOMAIN)
    nested = fit_nested(start.prior, tables)

    assert np.allclose(nested.cells, rule.update(start, tables, 0.1).probabilities(), rtol=1e-12, atol=0)
    assert not np.allclose(
        nested.cells, fit(start.prior, tables, evaluations=200, enough=0.5).cells, atol=1e-6
    )


@pytest.mark.parametrize(("misfit", "evaluations"), [(0.0, 100), (0.01, 200)])
def test_a_first_fit_has_more_evaluations_than_a_refit(misfit, evaluations):
    """A cold start wants them; the tables cross, so that no closed form is there."""
    tables = (table(0, 1, scale=1e-5), table(1, 2, scale=1e-5), table(0, 2, scale=1e-5))
    rule = MaximumEntropy(misfit=misfit)
    start = rule.init(DOMAIN)
    expected = fit(start.prior, tables, evaluations=evaluations, enough=misfit)

    assert fit_nested(start.prior, tables) is None
    assert expected.evaluations > 30
    assert np.allclose(expected.cells, rule.update(start, tables, 0.1).probabilities(), rtol=1e-12, atol=0)
