"""Masses from one noisy table by empirical Bayes: exactness, sparse and even tables, bias, extremes."""

import math

import numpy as np
import pytest

from onlineic.hypothesis import empirical_bayes
from onlineic.hypothesis.empirical_bayes import denoised, posterior

SHAPE = (5, 4, 6)


def noisy(truth, scale, seed):
    return truth + np.random.default_rng(seed).normal(0.0, scale, truth.shape)


def even(shape):
    return np.full(shape, 1.0 / np.prod(shape))


def product(shape, seed):
    generator = np.random.default_rng(seed)
    masses = np.ones(())
    for length in shape:
        masses = np.multiply.outer(masses, generator.dirichlet(np.full(length, 0.3)))
    return masses


def test_one_multiple_for_all_cells_is_found_and_every_mass_shrinks_to_it():
    generator = np.random.default_rng(1)
    expected = generator.dirichlet(np.full(2_000, 5.0))
    means, variances = posterior(noisy(expected, 2e-3, 2), 2e-3, expected)

    assert np.sqrt(np.mean((means - expected) ** 2)) < 0.1 * 2e-3
    assert np.sqrt(variances.mean()) < 0.2 * 2e-3


def test_posterior_of_two_known_multiples_is_that_of_bayes():
    """Half of the cells empty, half at twice the expected mass: the learned law is nearly the true one."""
    scale, cells = 1.0, 20_000
    generator = np.random.default_rng(3)
    truth = 4.0 * (generator.random(cells) < 0.5)
    values = noisy(truth, scale, 4)
    means, _ = posterior(values, scale, np.full(cells, 2.0))
    weight = 1.0 / (1.0 + np.exp((values**2 - (values - 4.0) ** 2) / -2.0))

    assert np.sqrt(np.mean((means - 4.0 * weight) ** 2)) < 0.25
    assert np.mean((means - truth) ** 2) < 1.15 * np.mean((4.0 * weight - truth) ** 2)


def test_mean_and_variance_of_clear_values_are_those_of_the_noise():
    truth = np.array([0.2, 0.3, 0.1, 0.4])
    values = noisy(truth, 1e-6, 5)
    means, variances = posterior(values, 1e-6, even((4,)))

    assert means == pytest.approx(values, abs=1e-9)
    assert variances == pytest.approx(1e-12, rel=0.01)


@pytest.mark.parametrize("shape", [(30,), (6, 5), SHAPE, (2,) * 8])
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 0.3, 1e4])
def test_masses_are_not_negative_and_of_total_one(shape, scale):
    for truth in (even(shape), product(shape, 1), np.eye(1, math.prod(shape)).reshape(shape)):
        masses = denoised(noisy(truth, scale, 6), scale, even(shape))

        assert masses.shape == shape
        assert masses.min() >= 0.0
        assert masses.sum() == pytest.approx(1.0)
        assert scale > 1e-9 or masses == pytest.approx(truth, abs=1e-7)


def test_large_labels_keep_their_mass_where_most_cells_are_empty():
    """Least squares on the simplex takes mass from them for every empty cell whose noise was positive."""
    truth, scale = product((5, 4, 2, 6, 5), 8), 6e-5
    lost, kept = [], []
    for seed in range(10):
        table = noisy(truth, scale, seed)
        nearest = np.sort(table.ravel())[::-1]
        ahead = (np.cumsum(nearest) - 1.0) / np.arange(1, nearest.size + 1)
        least = np.maximum(0.0, table - ahead[np.flatnonzero(nearest > ahead)[-1]])
        sums = [(0, 1), (2, 3), (1, 4), (0, 2, 4)]
        lost.append([np.abs((least - truth).sum(axis=rest)).max() for rest in sums])
        kept.append(
            [
                np.abs((denoised(table, scale, even(truth.shape)) - truth).sum(axis=rest)).max()
                for rest in sums
            ]
        )

    assert np.sqrt(np.mean(np.square(kept))) < 0.5 * np.sqrt(np.mean(np.square(lost)))


def test_independent_attributes_are_known_far_below_the_noise_of_cells():
    truth, scale = product(SHAPE, 9), 2e-3  # of 120 cells, where an attribute has 5 or so masses
    errors = [denoised(noisy(truth, scale, seed), scale, even(SHAPE)) - truth for seed in range(10)]

    assert np.sqrt(np.mean(np.square(errors))) < 0.6 * scale


def test_pairs_that_depend_are_learned_where_pairs_are_fitted(monkeypatch):
    """Two attributes follow a third in most records: single labels expect too little of their cells."""
    shape, scale = (6, 6, 6), 1e-3
    follow = 0.8 * np.eye(6) + 0.2 / 6
    truth = np.einsum("a,ab,ac->abc", np.full(6, 1 / 6), follow, follow)

    def error():
        errors = [denoised(noisy(truth, scale, seed), scale, even(shape)) - truth for seed in range(10)]
        return np.sqrt(np.mean(np.square(errors)))

    fitted = error()
    monkeypatch.setattr(empirical_bayes, "MOST_WORK", 0)

    assert fitted < 0.8 * error()


def test_more_cells_than_are_learned_from_have_one_law(monkeypatch):
    truth = np.where(np.arange(5_000) % 10 == 0, 2e-3, 0.0)
    values = noisy(truth, 2e-4, 13)
    whole, _ = posterior(values, 2e-4, even(5_000))
    monkeypatch.setattr(empirical_bayes, "LEARNED_FROM", 999)
    monkeypatch.setattr(empirical_bayes, "CHUNK", 77)
    part, _ = posterior(values, 2e-4, even(5_000))

    assert part == pytest.approx(whole, abs=3e-5)
    assert np.sqrt(np.mean((part - truth) ** 2)) < 0.5 * 2e-4


def clustered(seed):
    """Records of six classes over twelve binary attributes: some corners are full, most of them empty."""
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(np.ones(6))
    parts = [generator.dirichlet(np.full(2, 0.5), size=12) for _ in shares]
    masses = 0.0
    for share, labels in zip(shares, parts, strict=True):
        one = np.ones(())
        for law in labels:
            one = np.multiply.outer(one, law)
        masses = masses + share * one
    return generator.multinomial(100_000, masses.ravel() / masses.sum()).reshape(masses.shape) / 100_000


def test_sums_over_labels_err_by_hardly_more_than_their_noise_where_cells_are_clustered():
    """One law for all cells alone errs by several times the noise of such sums, all cells the same way."""
    scale, errors = 3e-5, []
    for seed in range(4):
        truth = clustered(seed)
        found = denoised(noisy(truth, scale, 100 + seed), scale, even(truth.shape))
        errors += [(found - truth).take(0, axis=axis).sum() for axis in range(12)]

    assert np.sqrt(np.mean(np.square(errors))) < 1.3 * scale * math.sqrt(2**11)


def test_sums_are_left_alone_where_they_lack_no_more_than_cells_on_their_own_would(monkeypatch):
    """All that a sum lacks is noise that cells have on their own: next to nothing is moved."""
    generator = np.random.default_rng(2)
    truth = generator.dirichlet(np.full(math.prod(SHAPE), 2.0)).reshape(SHAPE)
    values = truth + generator.normal(0.0, 2e-3, SHAPE)
    found = denoised(values, 2e-3, even(SHAPE))
    monkeypatch.setattr(empirical_bayes, "_balanced", lambda masses, table, sets: masses)
    before = denoised(values, 2e-3, even(SHAPE))

    assert np.abs(found - before).sum() < 0.3 * np.abs(values - before).sum()


def test_a_sum_that_is_told_far_from_its_cells_is_moved_to_and_never_below_a_tenth():
    masses = np.full((2, 50), 0.01)
    table = masses + np.array([[0.004], [-0.02]])  # all cells of a row lack the same
    moved = empirical_bayes._balanced(masses, table, [(0,)])
    lacks = np.array([50 * 0.004, -50 * 0.02])
    chance = 1.0 + 2.0 * math.sqrt(2.0 / 2)
    share = 1.0 - chance * np.sum(50 * np.array([0.004, -0.02]) ** 2) / np.sum(lacks**2)
    goals = np.maximum(0.5 + share * lacks, 0.05)

    assert goals[1] == 0.05
    np.testing.assert_allclose(goals / goals.sum(), moved.sum(axis=1), rtol=1e-12)
