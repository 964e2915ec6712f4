"""Shrunken least squares on tables that refine each other: exactness, shrinkage, projection, refusals."""

import numpy as np
import pytest

from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.hypothesis.fitting import fit
from onlineic.hypothesis.nested import fit_nested, shrunken
from onlineic.queries import Measurement, Partition

CELLS = 24
TRUTH = np.random.default_rng(3).dirichlet(np.full(CELLS, 2.0))
CUTS = (np.arange(CELLS), np.arange(CELLS) // 4, np.arange(CELLS) // 12)
PRIOR = np.full(CELLS, 1.0 / CELLS)


def over(shape, classes, values, scale):
    domain = Domain.of({f"a{axis}": length for axis, length in enumerate(shape)})
    return Measurement(Partition(domain, tuple(classes), tuple(classes.values())), np.ravel(values), scale)


def table(cut, scale=1e-6, off=0.0, truth=TRUTH):
    return over((len(cut),), {0: cut}, np.bincount(cut, truth) + off, scale)


def noisy(scale, seed):
    generator = np.random.default_rng(seed)
    return [table(cut, scale, generator.normal(0.0, scale, cut.max() + 1)) for cut in CUTS]


def test_with_little_noise_it_is_weighted_least_squares_given_the_total():
    scales = (1e-5, 3e-5, 2e-6)
    drawn = noisy(1e-5, 1)
    tables = [Measurement(one.target, one.values, scale) for one, scale in zip(drawn, scales, strict=True)]
    rows = np.concatenate([np.eye(cut.max() + 1)[:, cut] / s for cut, s in zip(CUTS, scales, strict=True)])
    seen = np.concatenate([one.values / one.scale for one in tables])
    # the total by Lagrange's multiplier
    system = np.block([[rows.T @ rows, np.ones((CELLS, 1))], [np.ones((1, CELLS)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(rows.T @ seen, 1.0))[:CELLS]
    fitted = fit_nested(PRIOR, tables)

    assert fitted.cells == pytest.approx(expected, abs=2e-6)  # shrinkage and the prior's share
    assert np.abs(expected - TRUTH).max() > 2e-6


def test_what_noise_alone_explains_is_nearly_the_prior_split():
    prior = np.random.default_rng(4).dirichlet(np.full(CELLS, 5.0))
    generator = np.random.default_rng(6)
    values = prior + generator.normal(0.0, 0.4, CELLS)  # chi^2 of 23 degrees around 3: all of it is noise

    assert prior == pytest.approx(shrunken([values], [1.0], [], prior), abs=0.011)


def test_cells_of_which_most_are_empty_are_told_by_those_of_other_blocks():
    """Each block of 8 has one full cell or none: shrinkage within blocks alone errs by a seventh more."""
    generator = np.random.default_rng(10)
    truth = np.zeros(1_024)
    truth[8 * np.flatnonzero(generator.random(128) < 0.5)] = 1.0
    truth /= truth.sum()
    groups, scale = np.arange(1_024) // 8, 0.3 * truth.max()
    errors = []
    for _ in range(5):
        fine = truth + generator.normal(0.0, scale, 1_024)
        coarse = np.bincount(groups, truth) + generator.normal(0.0, scale, 128)
        found = shrunken([fine, coarse], [scale, scale], [groups], np.full(1_024, 1 / 1_024))
        errors.append(float(np.mean((found - truth) ** 2)))

    assert np.sqrt(np.mean(errors)) < 0.45 * scale


def test_masses_are_the_nearest_non_negative_ones_of_total_one():
    """By trying every set of cells that stay positive."""
    values = np.array([0.9, -0.3, 0.4, 0.05, -0.02])
    best = None
    for kept in range(1, 32):
        held = np.array([kept >> place & 1 for place in range(5)], bool)
        point = np.where(held, values + (1.0 - values[held].sum()) / held.sum(), 0.0)
        if point.min() >= 0.0 and (best is None or ((point - values) ** 2).sum() < best[0]):
            best = ((point - values) ** 2).sum(), point
    found = shrunken([values], [1e-9], [], np.full(5, 0.2))

    assert best[1] == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_cells_are_positive_of_total_one_and_masses_and_potentials_are_theirs(seed):
    tables = noisy(0.05, seed)
    fitted = fit_nested(PRIOR, tables)
    weight = PRIOR * np.exp(sum(part[cut] for part, cut in zip(fitted.potentials, CUTS, strict=True)))

    assert fitted.cells.min() > 0.0
    assert fitted.cells.sum() == pytest.approx(1.0)
    assert fitted.cells == pytest.approx(weight / weight.sum())
    for cut, masses in zip(CUTS, fitted.masses, strict=True):
        assert masses == pytest.approx(np.bincount(cut, fitted.cells))
    loss = sum(((m - one.values) ** 2).sum() / 0.05**2 for m, one in zip(fitted.masses, tables, strict=True))
    assert fitted.loss == pytest.approx(loss / 2)


def test_the_order_of_the_tables_does_not_matter():
    tables = noisy(0.01, 9)
    cells = fit_nested(PRIOR, tables).cells

    assert cells == pytest.approx(fit_nested(PRIOR, [tables[1], tables[2], tables[0]]).cells, abs=1e-14)


def test_tables_over_two_axes_are_a_chain_with_the_margin_of_one():
    truth = TRUTH.reshape(6, 4)
    prior = np.full((6, 4, 3), 1.0 / 72)
    both = over(prior.shape, {0: np.arange(6), 1: np.arange(4)}, truth, 1e-7)
    pairs = truth.reshape(6, 2, 2).sum(axis=2)
    halves = over(prior.shape, {0: np.arange(6), 1: np.arange(4) // 2}, pairs, 1e-7)
    cells = fit_nested(prior, [halves, both]).cells

    assert cells.sum(axis=2) == pytest.approx(truth, abs=1e-6)
    assert cells[:, :, 0] == pytest.approx(cells[:, :, 2])


def test_tables_that_do_not_refine_each_other_are_refused():
    across = table((np.arange(CELLS) + 2) // 4)
    prior = np.full((6, 4), 1.0 / 24)
    rows = over((6, 4), {0: np.arange(6)}, TRUTH.reshape(6, 4).sum(axis=1), 1e-3)
    columns = over((6, 4), {1: np.arange(4)}, TRUTH.reshape(6, 4).sum(axis=0), 1e-3)

    assert fit_nested(PRIOR, [table(CUTS[1]), across]) is None
    assert fit_nested(prior, [rows, columns]) is None


def test_a_block_without_prior_mass_is_left_to_the_refusal_of_the_descent():
    prior = np.where(CUTS[1] == 2, 0.0, 1.0 / 20)

    assert fit_nested(prior, [table(CUTS[1], 1e-3)]) is None
    with pytest.raises(InvalidParameterError, match="prior must be positive"):
        fit(prior, [table(CUTS[1], 1e-3)])


def test_it_is_nearer_to_the_truth_than_the_descent_where_there_is_little_noise():
    cells = 512
    truth = np.random.default_rng(8).dirichlet(np.full(cells, 0.3))
    generator = np.random.default_rng(9)
    cuts = [np.arange(cells) // width for width in (1, 8, 64)]
    tables = [table(cut, 1e-6, generator.normal(0.0, 1e-6, cut.max() + 1), truth) for cut in cuts]
    prior = np.full(cells, 1.0 / cells)
    closed, descended = (
        fit_nested(prior, tables).cells,
        fit(prior, tables, evaluations=200, enough=0.55).cells,
    )
    errors = [float(np.std(np.cumsum(found - truth))) for found in (closed, descended)]

    assert errors[0] < 5e-6
    assert errors[1] > 5 * errors[0]
