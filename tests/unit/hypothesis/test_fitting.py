"""The maximum-entropy kernel against dense references, and the promises of a refit."""

import math

import numpy as np
import pytest

from onlineic.errors import InvalidParameterError
from onlineic.hypothesis.descent import descend
from onlineic.hypothesis.fitting import CoarseDomain, NoisyTable, fit

SHAPE = (12, 3, 5, 2)


def codes(table, shape):
    """Block of every cell, by the definition."""
    cells = np.indices(shape)
    code = np.zeros(shape, int)
    for axis, cut in table.classes.items():
        code = code * (cut.max() + 1) + cut[cells[axis]]
    return code if table.merged is None else table.merged.ravel()[code]


def measured(distribution, classes, scale=0.01, noise=None, merged=None):
    """The table that a release of `distribution` would give."""
    shape = tuple(int(cut.max()) + 1 for cut in dict(sorted(classes.items())).values())
    size = int(merged.max()) + 1 if merged is not None else math.prod(shape)
    blank = NoisyTable(classes, np.zeros(size if merged is not None else shape), scale, merged)
    values = np.bincount(codes(blank, distribution.shape).ravel(), distribution.ravel(), size)
    if noise is not None:
        values = values + noise.normal(0, scale, size)
    return NoisyTable(classes, values.reshape(blank.values.shape), scale, merged)


def random_tables(rng, distribution, count, scale=0.01, noisy=True):
    """Tables over random axes with random classes, scattered ones included, some with merged blocks."""
    tables = []
    for _ in range(count):
        axes = rng.choice(distribution.ndim, rng.integers(1, distribution.ndim), replace=False)
        classes = {}
        for axis in axes.tolist():
            length = distribution.shape[axis]
            number = int(rng.integers(2, length + 1))
            cut = np.concatenate([np.arange(number), rng.integers(0, number, length - number)])
            classes[axis] = rng.permutation(cut) if rng.random() < 0.5 else np.sort(cut)
        merged = None
        if rng.random() < 0.3:
            shape = tuple(int(cut.max()) + 1 for cut in dict(sorted(classes.items())).values())
            merged = np.zeros(shape, int)
            merged.flat[rng.integers(math.prod(shape))] = 1
        tables.append(measured(distribution, classes, scale, rng if noisy else None, merged))
    return tables


def dense_masses(tables, cells):
    return [
        np.bincount(codes(t, cells.shape).ravel(), cells.ravel(), t.values.size).reshape(t.values.shape)
        for t in tables
    ]


@pytest.fixture(params=range(20))
def problem(request):
    """A prior, a truth and noisy tables of it."""
    rng = np.random.default_rng(request.param)
    prior = rng.dirichlet(np.full(math.prod(SHAPE), 2.0)).reshape(SHAPE) + 1e-6
    truth = rng.dirichlet(np.full(math.prod(SHAPE), 0.5)).reshape(SHAPE)
    return prior, truth, random_tables(rng, truth, int(rng.integers(1, 9)))


def test_tree_equals_dense_expand_and_measure(problem):
    """Up and down the merge tree gives the block masses and the cells of the definition."""
    prior, _, tables = problem
    rng = np.random.default_rng(1)
    theta = [rng.normal(0, 2, t.values.shape) for t in tables]
    flat = np.concatenate([t.ravel() for t in theta])
    weight = prior / prior.sum()
    dense = weight * np.exp(sum(p.ravel()[codes(t, SHAPE)] for t, p in zip(tables, theta, strict=True)))
    domain = CoarseDomain.of(prior, tables)
    masses, log_normaliser = domain.evaluate(flat)
    ratio, _ = domain.weigh(flat)

    assert np.log(dense.sum()) == pytest.approx(log_normaliser, abs=1e-13)
    dense /= dense.sum()
    assert np.abs(domain.expand(ratio, prior) - dense).max() < 1e-15
    for expected, actual in zip(dense_masses(tables, dense), domain.split(masses), strict=True):
        assert np.abs(expected - actual).max() < 3e-15  # masses near 1: a few units in the last place


def test_coarse_domain_is_the_common_refinement():
    """Values that no table tells apart share a class, and an axis that no table reads drops out."""
    age = np.array([0, 0, 1, 1, 1, 1])
    late = np.array([1, 1, 1, 1, 0, 0])
    prior = np.ones((6, 4, 2))
    tables = [
        NoisyTable({0: age}, np.array([0.5, 0.5]), 0.1),
        NoisyTable({2: np.arange(2), 0: late}, np.full((2, 2), 0.25), 0.1),
    ]
    domain = CoarseDomain.of(prior, tables)

    assert domain.axes == (2, 0)
    assert domain.base.shape == (2, 3)
    assert domain.refined[1] is None
    np.testing.assert_array_equal([0, 0, 1, 1, 2, 2], domain.refined[0])


def test_extreme_potentials_do_not_underflow():
    """Where the product of the factors underflows in every cell, the log path gives the right masses."""
    shape = (3, 3)
    identity = np.arange(3)
    tables = [
        NoisyTable({0: identity}, np.full(3, 1 / 3), 0.1),
        NoisyTable({0: identity}, np.full(3, 1 / 3), 0.1),
        NoisyTable({0: identity, 1: identity}, np.full((3, 3), 1 / 9), 0.1),
    ]
    ridge = np.full((3, 3), -2500.0)
    ridge[2, 0] = 1500.0
    theta = np.concatenate([[900.0, 0, -900], [900.0, 0, -900], ridge.ravel()])
    masses, log_normaliser = CoarseDomain.of(np.ones(shape), tables).evaluate(theta)

    np.testing.assert_allclose([0, 0, 1], masses[:3], atol=1e-15)
    assert -300 - math.log(9) == pytest.approx(log_normaliser, abs=1e-9)


def test_fitted_distribution_is_consistent(problem):
    """Cells are positive with total 1; masses, loss and potentials belong to these very cells."""
    prior, _, tables = problem
    result = fit(prior, tables)
    expected = dense_masses(tables, result.cells)
    loss = sum(
        ((m - t.values) ** 2).sum() / (2 * t.scale**2) for m, t in zip(result.masses, tables, strict=True)
    )
    shape = prior / prior.sum()
    shape = shape * np.exp(
        sum(p.ravel()[codes(t, SHAPE)] for t, p in zip(tables, result.potentials, strict=True))
    )

    assert result.cells.min() > 0
    assert result.cells.sum() == pytest.approx(1, abs=1e-14)
    assert max(np.abs(m - e).max() for m, e in zip(result.masses, expected, strict=True)) < 3e-15
    assert result.loss == pytest.approx(loss, rel=1e-9)
    np.testing.assert_allclose(shape / shape.sum(), result.cells, atol=1e-15)


@pytest.mark.parametrize("evaluations", [1, 2, 5, 30])
def test_loss_is_never_above_the_start(problem, evaluations):
    prior, _, tables = problem
    before = fit(prior, tables[:-1], evaluations=30).potentials if len(tables) > 1 else ()
    start = fit(prior, tables, before, evaluations=1)
    result = fit(prior, tables, before, evaluations=evaluations)

    assert result.loss <= start.loss
    assert result.evaluations <= evaluations


def test_loss_with_kl_weight_is_never_above_the_start(problem):
    prior, _, tables = problem
    domain = CoarseDomain.of(prior, tables)
    observed = np.concatenate([t.values.ravel() for t in tables])
    weight = 3.0

    def objective(theta):
        masses, log_normaliser = domain.evaluate(theta)
        squares = float(((masses - observed) ** 2).sum()) / (2 * 0.01**2)
        return squares + weight * (float(theta @ masses) - log_normaliser)

    start = np.zeros(observed.size)
    best, _, _ = descend(
        domain.evaluate, start, observed, np.full(observed.size, 1e-4), 4e-4 / len(tables), kl_weight=weight
    )

    assert objective(best) <= objective(start)


def test_noiseless_consistent_tables_are_fitted_to_any_precision():
    """Without noise and without a limit on evaluations the loss goes to 0."""
    rng = np.random.default_rng(5)
    truth = rng.dirichlet(np.full(math.prod(SHAPE), 3.0)).reshape(SHAPE)
    tables = random_tables(rng, truth, 4, noisy=False)
    result = fit(np.ones(SHAPE), tables, evaluations=20_000, tolerance=0.0)

    assert result.loss < 1e-12
    for table, mass in zip(tables, result.masses, strict=True):
        assert np.abs(table.values - mass).max() < 1e-8


def test_one_table_of_all_cells_is_reproduced():
    rng = np.random.default_rng(6)
    shape = (4, 3, 2)
    truth = rng.dirichlet(np.full(24, 3.0)).reshape(shape)
    table = measured(truth, {axis: np.arange(length) for axis, length in enumerate(shape)})
    result = fit(np.ones(shape), [table], evaluations=20_000, tolerance=0.0)

    assert np.abs(result.cells - truth).max() < 1e-8


def test_fit_without_information_is_the_prior():
    """Tables that already agree with the prior leave it alone."""
    rng = np.random.default_rng(7)
    prior = rng.dirichlet(np.ones(math.prod(SHAPE))).reshape(SHAPE) + 1e-5
    prior /= prior.sum()
    result = fit(prior, random_tables(rng, prior, 5, noisy=False))

    np.testing.assert_allclose(prior, result.cells, atol=1e-15)


def test_order_of_tables_does_not_matter(problem):
    """Measurements permuted: masses and cells agree far within the noise."""
    prior, _, tables = problem
    order = np.random.default_rng(2).permutation(len(tables))
    result = fit(prior, tables)
    permuted = fit(prior, [tables[i] for i in order])

    assert np.abs(result.cells - permuted.cells).max() < 0.1 * 0.01
    for position, i in enumerate(order):
        assert np.abs(result.masses[i] - permuted.masses[position]).max() < 0.1 * 0.01


def test_fit_is_deterministic_bit_for_bit(problem):
    prior, _, tables = problem
    first, second = fit(prior, tables), fit(prior, tables)

    assert first.cells.tobytes() == second.cells.tobytes()


def test_warm_start_resumes_where_the_earlier_fit_stopped(problem):
    """The stored potentials evaluate to the loss that was reported."""
    prior, _, tables = problem
    result = fit(prior, tables)
    resumed = fit(prior, tables, result.potentials, evaluations=1)

    assert result.loss == pytest.approx(resumed.loss, rel=1e-9)


def test_accurate_tables_outweigh_noisy_ones():
    """Two tables that contradict each other: the fit lies between them, by inverse variance."""
    identity = np.arange(2)
    tables = [
        NoisyTable({0: identity}, np.array([0.3, 0.7]), 0.01),
        NoisyTable({0: identity}, np.array([0.5, 0.5]), 0.02),
    ]
    result = fit(np.ones((2, 3)), tables, evaluations=5_000, tolerance=0.0)

    assert result.masses[0][0] == pytest.approx(0.8 * 0.3 + 0.2 * 0.5, abs=1e-6)


def test_merged_blocks_measure_a_query_and_its_complement():
    shape = (4, 3)
    rng = np.random.default_rng(9)
    truth = rng.dirichlet(np.ones(12)).reshape(shape)
    merged = np.array([[0, 0], [0, 1]])
    table = measured(truth, {0: np.array([0, 1, 1, 0]), 1: np.array([0, 0, 1])}, merged=merged)
    result = fit(np.ones(shape), [table], evaluations=5_000, tolerance=0.0)

    assert table.values[1] == pytest.approx(truth[1:3, 2].sum())
    assert result.cells[1:3, 2].sum() == pytest.approx(table.values[1], abs=1e-8)


def test_inconsistent_noise_leaves_a_positive_residual_and_finite_cells():
    """Negative noisy fractions are kept, and nothing overflows."""
    table = NoisyTable({0: np.arange(3)}, np.array([-0.2, 1.3, 0.1]), 0.001)
    result = fit(np.ones((3, 2)), [table], evaluations=2_000)

    assert np.isfinite(result.cells).all()
    assert result.masses[0][1] > 0.8


@pytest.mark.parametrize(
    ("classes", "values", "scale", "merged", "message"),
    [
        ({}, np.zeros(()), 0.1, None, "classes"),
        ({0: np.array([0, 2])}, np.zeros(3), 0.1, None, "classes"),
        ({0: np.array([0, 1])}, np.zeros(3), 0.1, None, "values"),
        ({0: np.array([0, 1])}, np.array([0.0, np.nan]), 0.1, None, "values"),
        ({0: np.array([0, 1])}, np.zeros(2), 0.0, None, "scale"),
        ({0: np.array([0, 1])}, np.zeros(2), 0.1, np.array([0, 1, 1]), "merged"),
        ({0: np.array([0, 1])}, np.zeros(3), 0.1, np.array([0, 1]), "merged"),
    ],
)
def test_malformed_table_is_refused(classes, values, scale, merged, message):
    with pytest.raises(InvalidParameterError, match=message):
        NoisyTable(classes, values, scale, merged)


def test_malformed_problem_is_refused():
    table = NoisyTable({0: np.arange(2)}, np.zeros(2), 0.1)
    prior = np.ones((2, 2))
    hole = np.array([[1.0, 0.0], [1.0, 1.0]])

    for match, call in {
        "prior": lambda: fit(hole, [table]),
        "tables must": lambda: fit(prior, []),
        "domain of shape": lambda: fit(np.ones((3, 2)), [table]),
        "start": lambda: fit(prior, [table], [np.zeros(3)]),
        "evaluations": lambda: fit(prior, [table], evaluations=0),
        "kl_weight": lambda: fit(prior, [table], kl_weight=-1.0),
    }.items():
        with pytest.raises(InvalidParameterError, match=match):
            call()


def test_factors_that_all_but_vanish_together_are_evaluated_by_their_logarithms():
    """Each cell is e^-740 or e^-741 of the peaks: as floats 85 and 31 units of the least subnormal one."""
    identity = np.arange(2)
    tables = [
        NoisyTable({0: identity, 1: identity}, np.full((2, 2), 0.25), 0.1),
        NoisyTable({0: identity, 2: identity}, np.full((2, 2), 0.25), 0.1),
    ]
    theta = np.concatenate([[0.0, 0.0, -741.0, -741.0], [-740.0, -740.0, 0.0, 0.0]])
    masses, log_normaliser = CoarseDomain.of(np.ones((2, 2, 2)), tables).evaluate(theta)
    first = 1 / (1 + math.exp(-1))

    np.testing.assert_allclose(np.array([first, first, 1 - first, 1 - first]) / 2, masses[:4], rtol=1e-12)
    assert -740 + math.log((1 + math.exp(-1)) / 2) == pytest.approx(log_normaliser, abs=1e-12)


def test_the_first_step_is_four_over_the_precision_of_all_tables():
    """One step from nothing along (observed - masses)/variance, in closed form."""
    first = NoisyTable({0: np.arange(3)}, np.array([0.5, 0.3, 0.2]), 0.1)
    second = NoisyTable({1: np.arange(2)}, np.array([0.6, 0.4]), 0.2)
    moved = fit(np.ones((3, 2)), [first, second], evaluations=2).potentials
    step = 4 / (1 / 0.1**2 + 1 / 0.2**2)

    for found, table, guess in zip(moved, (first, second), (1 / 3, 1 / 2), strict=True):
        expected = step * (table.values - guess) / table.scale**2
        np.testing.assert_allclose(expected - expected.max(), found, rtol=1e-12, atol=1e-15)


def test_tables_with_the_smallest_union_are_joined_first():
    """a-b and b-c have 2 x 2 x 2 cells together; any join with c-d has 2 x 2 x 50 or more."""
    sizes = (2, 2, 2, 50)
    tables = [
        NoisyTable({a: np.arange(sizes[a]), b: np.arange(sizes[b])}, np.zeros((sizes[a], sizes[b])), 0.1)
        for a, b in ((2, 3), (0, 1), (1, 2))
    ]
    domain = CoarseDomain.of(np.ones(sizes), tables)

    assert [{1, 2}, {0, 3}] == [{link.child for link in pair} for pair in domain.nodes]
