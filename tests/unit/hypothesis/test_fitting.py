"""The maximum-entropy kernel against dense references, and the promises of a refit."""

import itertools
import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.hypothesis import fitting, merge_tree
from onlineic.hypothesis.descent import descend
from onlineic.hypothesis.fitting import CoarseDomain, fit, noisy_masses
from onlineic.queries import Measurement, Partition, Query

SHAPE = (12, 3, 5, 2)


def domain_of(shape):
    return Domain.of({f"a{axis}": length for axis, length in enumerate(shape)})


def table(shape, classes, values, scale):
    """A measured partition of a domain of this shape."""
    axes = tuple(sorted(classes))
    partition = Partition(domain_of(shape), axes, tuple(classes[axis] for axis in axes))
    return Measurement(partition, np.ravel(values), scale)


def codes(table, shape):
    """Block of every cell, by the definition."""
    if isinstance(table.target, Query):
        return table.target.weights()
    cells = np.indices(shape)
    code = np.zeros(shape, int)
    for axis, cut in zip(table.target.axes, table.target.classes, strict=True):
        code = code * (cut.max() + 1) + cut[cells[axis]]
    return code


def seen(table):
    """Noisy masses of the blocks and their deviation: a query has two blocks, each with half its weight."""
    if isinstance(table.target, Query):
        return np.append(1.0 - table.values, table.values), table.scale * math.sqrt(2.0)
    return table.values, table.scale


def measured(distribution, target, scale=0.01, noise=None):
    """The measurement that a release of `distribution` would give."""
    size = 2 if isinstance(target, Query) else target.blocks
    blank = Measurement(target, np.zeros(size), scale)
    values = np.bincount(codes(blank, distribution.shape).ravel(), distribution.ravel(), size)
    values = values[1:] if isinstance(target, Query) else values
    if noise is not None:
        values = values + noise.normal(0, scale, len(values))
    return Measurement(target, values, scale)


def random_tables(rng, distribution, count, scale=0.01, noisy=True):
    """Partitions of random axes with random classes, scattered ones included, and single blocks of some."""
    tables = []
    for _ in range(count):
        axes = rng.choice(distribution.ndim, rng.integers(1, distribution.ndim), replace=False)
        classes = {}
        for axis in axes.tolist():
            length = distribution.shape[axis]
            number = int(rng.integers(2, length + 1))
            cut = np.concatenate([np.arange(number), rng.integers(0, number, length - number)])
            classes[axis] = rng.permutation(cut) if rng.random() < 0.5 else np.sort(cut)
        target = table(distribution.shape, classes, [], scale).target
        if rng.random() < 0.3:
            target = target.block(int(rng.integers(target.blocks)))
            target = (~ic.dense(target.weights())).bind(target.domain) if rng.random() < 0.5 else target
        tables.append(measured(distribution, target, scale, rng if noisy else None))
    return tables


def dense_masses(tables, cells):
    return [np.bincount(codes(t, cells.shape).ravel(), cells.ravel(), seen(t)[0].size) for t in tables]


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
    theta = [rng.normal(0, 2, seen(t)[0].size) for t in tables]
    flat = np.concatenate(theta)
    weight = prior / prior.sum()
    dense = weight * np.exp(sum(p[codes(t, SHAPE)] for t, p in zip(tables, theta, strict=True)))
    domain = CoarseDomain.of(prior, tables)
    masses, log_normaliser = domain.evaluate(flat)
    cells = domain.distribution(flat).probabilities()

    assert np.log(dense.sum()) == pytest.approx(log_normaliser, abs=1e-13)
    dense /= dense.sum()
    assert np.abs(cells - dense).max() < 1e-15
    for expected, actual in zip(dense_masses(tables, dense), domain.split(masses), strict=True):
        assert np.abs(expected - actual).max() < 3e-15  # masses near 1: a few units in the last place


def tied(shape, sets, rng):
    """The class domain of whole tables over these attributes and two alone, and potentials of theirs."""
    tables = [
        table(
            shape,
            {axis: np.arange(shape[axis]) for axis in own},
            np.zeros(math.prod(shape[a] for a in own)),
            1,
        )
        for own in [(0,), (2,), *sets]
    ]
    prior = tuple(rng.dirichlet(np.full(size, 5.0)) for size in shape)
    domain = CoarseDomain.of(prior, tables)
    return domain, rng.normal(0.0, 2.0, sum(domain.sizes))


PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (0, 1, 2)]


@pytest.mark.parametrize(
    ("last", "sets", "by_matrices"),
    [
        (4, [(0, 1), (0, 2), (1, 2)], True),
        (4, PAIRS, True),
        (4, [*PAIRS, (0, 1, 3)], True),
        (4, [*PAIRS, (0, 1, 3), (0, 2, 3), (1, 2, 3)], False),  # a product of four
        (1, [(0, 1), (0, 3), (1, 2)], False),  # an axis that is in one of three alone
        (4, [(0, 1, 2, 3)], False),
    ],
)
def test_masses_by_products_of_matrices_are_those_of_all_class_cells(monkeypatch, last, sets, by_matrices):
    shape, rng = (3, 7, 5, last), np.random.default_rng(5)
    domain, theta = tied(shape, sets, rng)
    expected, log_normaliser = domain.evaluate(theta)
    monkeypatch.setattr(fitting, "MATRICES", 0)

    assert by_matrices == domain._by_matrices
    with monkeypatch.context() as held:
        if by_matrices:  # nothing of the size of the domain is written
            held.setattr(CoarseDomain, "weigh", None)
        masses, other = domain.evaluate(theta)
    np.testing.assert_allclose(expected, masses, rtol=1e-13, atol=1e-16)
    assert log_normaliser == pytest.approx(other, abs=1e-13)


@pytest.mark.parametrize("seed", range(12))
def test_masses_of_tables_in_three_parts_are_those_of_all_class_cells(monkeypatch, seed):
    """Pairs of six attributes, and some tables of three and four, with a tree of three parts and without."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 5, 6).tolist())
    larger = [rng.choice(6, size, replace=False) for size in rng.integers(3, 5, rng.integers(0, 4))]
    sets = [*itertools.combinations(range(6), 2), *(tuple(sorted(own.tolist())) for own in larger)]
    domain, theta = tied(shape, sets, np.random.default_rng(seed))
    expected, log_normaliser = domain.evaluate(theta)
    monkeypatch.setattr(merge_tree, "MATRICES", 0)
    monkeypatch.setattr(merge_tree, "BATCH", 0)
    monkeypatch.setattr(fitting, "MATRICES", 0)
    parted, same = tied(shape, sets, np.random.default_rng(seed))
    masses, other = parted.evaluate(theta)
    cells = parted.distribution(theta).probabilities()

    np.testing.assert_array_equal(theta, same)
    np.testing.assert_allclose(expected, masses, rtol=1e-12, atol=1e-16)
    assert log_normaliser == pytest.approx(other, abs=1e-12)
    np.testing.assert_allclose(domain.distribution(theta).probabilities(), cells, rtol=1e-12, atol=1e-18)


def test_what_is_joined_on_the_way_to_matrices_may_make_an_evaluation_dear(monkeypatch):
    domain, _ = tied((3, 7, 5, 4), [*PAIRS, (0, 1, 3)], np.random.default_rng(5))
    monkeypatch.setattr(fitting, "MATRICES", 0)
    monkeypatch.setattr(fitting, "MANY_CELLS", domain.cells - 1)
    seen = []
    for most in (domain.tree.written, domain.tree.written - 1):
        monkeypatch.setattr(fitting, "MANY_JOINED", most)
        seen.append((domain._by_matrices, domain.is_dear))

    assert [(True, False), (True, True)] == seen


@pytest.mark.parametrize(("cells", "expected"), [(0, 4), (6, 20)])
def test_a_refit_of_very_many_classes_makes_fewer_evaluations(monkeypatch, cells, expected):
    """Not the first fit: its potentials are not near yet."""
    monkeypatch.setattr(fitting, "VERY_MANY_CELLS", cells)
    monkeypatch.setattr(fitting, "MOST_OF_VERY_MANY", 4)
    prior, old, seen = (np.full(3, 1 / 3), np.full(2, 1 / 2)), joint((3, 2)), []
    pair = table((3, 2), {0: np.arange(3), 1: np.arange(2)}, [0.4, 0.1, 0.1, 0.1, 0.1, 0.2], 0.01)
    for start in ((), (np.zeros(1),)):
        _, settings = started_at(monkeypatch, prior, [old, pair], start, evaluations=20)
        seen.append(settings["evaluations"])

    assert [20, expected - 1] == seen  # one is made to see where the new table starts


def test_factors_that_all_but_vanish_are_not_left_to_products_of_matrices(monkeypatch):
    """The diagonals of a-b and a-c, and what is beside that of b-c: each cell lacks one of the three."""
    monkeypatch.setattr(fitting, "MATRICES", 0)
    identity = np.arange(2)
    tables = [
        table((2, 2, 2), {a: identity, b: identity}, np.zeros(4), 1) for a, b in ((0, 1), (1, 2), (0, 2))
    ]
    prior = (np.full(2, 0.5),) * 3
    theta = np.concatenate(
        [[0.0, -800.0, -800.0, 0.0], [-800.0, 0.0, 0.0, -800.0], [0.0, -800.0, -800.0, 0.0]]
    )
    masses, log_normaliser = CoarseDomain.of(prior, tables).evaluate(theta)

    assert -800.0 + math.log(6 / 8) == pytest.approx(log_normaliser, abs=1e-12)
    np.testing.assert_allclose([1 / 3, 1 / 6, 1 / 6, 1 / 3], masses[:4], rtol=1e-12)


TRIPLES = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]


@pytest.mark.parametrize("slab", [1, 30, 60, 3000])
@pytest.mark.parametrize("sets", [TRIPLES, [*TRIPLES, (2, 4)], [(0, 1), (0, 3), (1, 2), (3, 4)]])
def test_masses_slab_by_slab_are_those_of_all_class_cells(monkeypatch, slab, sets):
    shape, rng = (3, 7, 5, 4, 2), np.random.default_rng(6)
    domain, theta = tied(shape, sets, rng)
    expected, log_normaliser = domain.evaluate(theta)
    monkeypatch.setattr(fitting, "MANY_CELLS", 0)
    monkeypatch.setattr(fitting, "_SLAB", slab)

    for kinds, close in ((fitting._KINDS, 1e-6), (fitting._KINDS[1:], 1e-13)):
        with monkeypatch.context() as held:  # nothing of the size of the domain is written
            held.setattr(CoarseDomain, "weigh", None)
            held.setattr(fitting, "_KINDS", kinds)
            masses, other = domain.evaluate(theta)
            again, _ = domain.evaluate(theta)
        np.testing.assert_allclose(expected, masses, rtol=close, atol=1e-16)
        assert log_normaliser == pytest.approx(other, abs=close)
        np.testing.assert_array_equal(masses, again)


def test_factors_too_small_for_single_precision_are_held_in_double(monkeypatch):
    """Three tables that have their largest entries where the others have none: cells of e^-80 in all."""
    domain, theta = tied((3, 7, 5), [(0, 1), (0, 2), (1, 2)], np.random.default_rng(6))
    pairs = domain.split(theta)[2:]
    for place, part in enumerate(pairs):
        part -= 80.0
        part[place] += 80.0
    expected, log_normaliser = domain.evaluate(theta)
    monkeypatch.setattr(fitting, "MANY_CELLS", 0)
    masses, other = domain.evaluate(theta)

    np.testing.assert_allclose(expected, masses, rtol=1e-13, atol=1e-16)
    assert log_normaliser == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_single_precision_agrees_where_it_is_used(monkeypatch, seed):
    """Masses, the distribution and what is answered from it, of random tables of six attributes."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 5, 6).tolist())
    larger = [rng.choice(6, size, replace=False) for size in rng.integers(3, 5, seed % 4)]
    sets = [*itertools.combinations(range(6), 2), *(tuple(sorted(own.tolist())) for own in larger)]
    domain, theta = tied(shape, sets, np.random.default_rng(seed))
    expected, log_normaliser = domain.evaluate(theta)
    plain = domain.distribution(theta)
    monkeypatch.setattr(merge_tree, "MATRICES", 0)
    monkeypatch.setattr(merge_tree, "BATCH", 0)
    monkeypatch.setattr(fitting, "MATRICES", 0)
    monkeypatch.setattr(fitting, "MANY_CELLS", 0)
    monkeypatch.setattr(fitting, "_SLAB", 40)
    single, _ = tied(shape, sets, np.random.default_rng(seed))
    masses, other = single.evaluate(theta)
    wide = single.distribution(theta)

    np.testing.assert_allclose(expected, masses, rtol=1e-6, atol=1e-12)
    assert log_normaliser == pytest.approx(other, abs=1e-6)
    np.testing.assert_array_equal(masses, single.evaluate(theta)[0])
    assert (single.axes, tuple(range(6))) == (wide._axes, plain._axes)  # a large one is not turned
    np.testing.assert_allclose(plain.probabilities(), wide.probabilities(), rtol=1e-12, atol=1e-18)
    for axes in itertools.chain(*(itertools.combinations(range(6), count) for count in range(1, 6))):
        names = [plain.domain.names[axis] for axis in axes]
        np.testing.assert_allclose(plain.marginal(*names), wide.marginal(*names), rtol=1e-12)


@pytest.mark.parametrize("sets", [TRIPLES, [(0, 1), (0, 3), (1, 2), (3, 4)]])
def test_dear_fits_are_made_again_to_the_bit(monkeypatch, sets):
    """From the same tables, and the distribution from the exponents alone."""
    monkeypatch.setattr(fitting, "MANY_CELLS", 0)
    shape, rng = (3, 7, 5, 4, 2), np.random.default_rng(3)
    prior = tuple(np.full(size, 1.0 / size) for size in shape)
    tables = [
        table(shape, {axis: np.arange(shape[axis]) for axis in own}, rng.dirichlet(np.ones(size)), 0.01)
        for own, size in ((own, math.prod(shape[axis] for axis in own)) for own in sets)
    ]
    first, second = (fit(prior, tables, (np.zeros(tables[0].target.blocks),)) for _ in range(2))
    histogram, potentials = fitting.remade(prior, tables, first.exponents, 2**20)

    for one, other in zip(first.potentials, second.potentials, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(first.potentials, potentials, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(first.histogram.probabilities(), second.histogram.probabilities())
    np.testing.assert_array_equal(first.histogram.probabilities(), histogram.probabilities())


def started_at(monkeypatch, *args, **options):
    """The potentials at which the descent of a fit starts, and its options."""
    seen = {}

    def stopped(evaluate, start, observed, variance, step, **settings):
        seen.update(settings, start=start)
        return start, evaluate(start)[0], 1

    with monkeypatch.context() as held:
        held.setattr(fitting, "descend", stopped)
        found = fit(*args, **options)
    return found.potentials, {**seen, "used": found.evaluations}


def joint(shape):
    """A table of one block over two attributes: it says nothing, but that they are tied."""
    return table(shape, {axis: np.zeros(size, int) for axis, size in enumerate(shape)}, [1.0], 0.1)


def test_a_new_table_starts_where_its_gaps_beyond_their_noise_say(monkeypatch):
    """By hand: the gaps are (.2, .1, -.3), of square .14; the noise takes .03 of it, one mass is .11."""
    prior = (np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6]))
    old = joint((3, 2))
    new = table((3, 2), {0: np.arange(3)}, [0.4, 0.4, 0.2], 0.1)
    (kept, first), seen = started_at(monkeypatch, prior, [old, new], [np.zeros(1)], evaluations=20)
    gaps, masses = np.array([0.2, 0.1, -0.3]), prior[0]
    shares = 0.11 * masses / (0.11 * masses + 0.01)
    reached = masses + shares * gaps

    np.testing.assert_array_equal([0.0], kept)
    np.testing.assert_allclose(np.log(reached / masses) - np.log(reached / masses).max(), first, atol=1e-12)
    assert (19, 2, False) == (seen["evaluations"], seen["used"], seen["dear"])  # one was made to see them


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("most_cells", [2**20, 4])
def test_where_evaluations_are_dear_the_histogram_says_what_a_new_table_would_weigh(
    monkeypatch, single, most_cells
):
    prior = (np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6]))
    old = table((3, 2), {0: np.array([0, 0, 1]), 1: np.arange(2)}, [0.1, 0.3, 0.4, 0.2], 0.01)
    new = table((3, 2), {0: np.array([0, 1, 1]), 1: np.arange(2)}, [0.4, 0.3, 0.2, 0.1], 0.01)
    if single:
        new = Measurement(ic.where(a0=1, a1=0).bind(domain_of((3, 2))), np.array([0.3]), 0.01)
    begun = fit(prior, [old], evaluations=40)
    given = (monkeypatch, prior, [old, new], begun.potentials)
    expected, looked = started_at(*given, evaluations=20, most_cells=most_cells)
    monkeypatch.setattr(fitting, "MANY_CELLS", 0)
    found, seen = started_at(*given, dear_evaluations=20, most_cells=most_cells, histogram=begun.histogram)

    assert (1, 0) == (looked["used"] - 1, seen["used"] - 1)
    assert (19, 20) == (looked["evaluations"], seen["evaluations"])
    np.testing.assert_allclose(expected[1], found[1], atol=1e-12)
    assert most_cells == 4 or expected[1].any()


def test_what_a_new_table_says_within_its_noise_moves_nothing(monkeypatch):
    prior = (np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6]))
    old = joint((3, 2))
    new = table((3, 2), {0: np.arange(3)}, [0.25, 0.3, 0.45], 0.1)
    (_, first), _ = started_at(monkeypatch, prior, [old, new], [np.zeros(1)])

    np.testing.assert_array_equal(np.zeros(3), first)


@pytest.mark.parametrize(("own", "moves"), [((0,), False), ((1,), True)])
def test_several_new_tables_of_the_same_attributes_start_at_zero(monkeypatch, own, moves):
    prior = (np.full(3, 1 / 3), np.full(3, 1 / 3))
    new = (table((3, 3), {axis: np.arange(3)}, [0.8, 0.1, 0.1], 0.01) for axis in (0, *own))
    (_, *first), seen = started_at(monkeypatch, prior, [joint((3, 3)), *new], [np.zeros(1)], evaluations=20)

    assert [moves, moves] == [bool(part.any()) for part in first]
    assert 20 - moves == seen["evaluations"]


def test_first_tables_single_evaluations_and_single_attributes_start_at_zero(monkeypatch):
    prior = (np.full(3, 1 / 3), np.full(2, 1 / 2))
    one = table((3, 2), {0: np.arange(3)}, [0.8, 0.1, 0.1], 0.01)
    for measured, start, evaluations in (
        ([one, joint((3, 2))], [], 20),
        ([joint((3, 2)), one], [np.zeros(1)], 1),
        ([one, one], [np.zeros(3)], 20),
    ):
        found, seen = started_at(monkeypatch, prior, measured, start, evaluations=evaluations)
        assert evaluations == seen["evaluations"]
        assert not any(part.any() for part in found)


def test_the_fall_of_a_block_is_bounded_where_it_starts(monkeypatch):
    prior = (np.array([0.9, 0.1]), np.array([0.4, 0.6]))
    old = joint((2, 2))
    new = table((2, 2), {0: np.arange(2)}, [-0.1, 1.1], 1e-6)
    (_, first), _ = started_at(monkeypatch, prior, [old, new], [np.zeros(1)])

    assert math.log(0.2 / 11.0) == pytest.approx(first[0], abs=1e-6)


def test_where_evaluations_are_dear_the_steps_are_long_at_once():
    """A quadratic: eight evaluations of short steps learn less than as many of long ones."""
    masses = np.array([0.3, 0.2, 0.2, 0.2, 0.1])
    observed, variance = masses[::-1].copy(), np.full(5, 1e-4)

    def evaluate(theta):
        weights = masses * np.exp(theta)
        return weights / weights.sum(), math.log(weights.sum())

    losses = []
    for dear in (False, True):
        _, reached, used = descend(evaluate, np.zeros(5), observed, variance, 1e-5, evaluations=8, dear=dear)
        losses.append(((reached - observed) ** 2 / variance).sum())
        assert used == 8
    assert losses[1] < 0.1 * losses[0]


def test_refits_that_write_many_class_cells_make_fewer_evaluations(monkeypatch):
    monkeypatch.setattr(fitting, "MANY_CELLS", 23)
    rng, counts = np.random.default_rng(0), []
    for sizes in ((2, 3, 4), (2, 3, 3)):
        whole = {axis: np.arange(size) for axis, size in enumerate(sizes)}
        truth = rng.dirichlet(np.ones(math.prod(sizes)))
        one = table(sizes, whole, truth, 1e-9)
        prior = tuple(np.full(size, 1 / size) for size in sizes)
        counts.append(fit(prior, [one], evaluations=20, dear_evaluations=7).evaluations)
    assert [7, 20] == counts


def test_coarse_domain_is_the_common_refinement():
    """Values that no table tells apart share a class, and an axis that no table reads drops out."""
    age = np.array([0, 0, 1, 1, 1, 1])
    late = np.array([1, 1, 1, 1, 0, 0])
    prior = np.ones((6, 4, 2))
    tables = [
        table((6, 4, 2), {0: age}, np.array([0.5, 0.5]), 0.1),
        table((6, 4, 2), {2: np.arange(2), 0: late}, np.full((2, 2), 0.25), 0.1),
    ]
    domain = CoarseDomain.of(prior, tables)

    assert domain.axes == (2, 0)
    assert domain.prior.classes.shape == (2, 3)
    assert 1 not in domain.held
    np.testing.assert_array_equal([0, 0, 1, 1, 2, 2], domain.held[0].atoms)


def test_extreme_potentials_do_not_underflow():
    """Where the product of the factors underflows in every cell, the log path gives the right masses."""
    shape = (3, 3)
    identity = np.arange(3)
    tables = [
        table(shape, {0: identity}, np.full(3, 1 / 3), 0.1),
        table(shape, {0: identity}, np.full(3, 1 / 3), 0.1),
        table(shape, {0: identity, 1: identity}, np.full((3, 3), 1 / 9), 0.1),
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
        ((m - values) ** 2).sum() / (2 * scale**2)
        for m, (values, scale) in zip(result.masses, map(seen, tables), strict=True)
    )
    shape = prior / prior.sum()
    shape = shape * np.exp(sum(p[codes(t, SHAPE)] for t, p in zip(tables, result.potentials, strict=True)))

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
    observed = np.concatenate([seen(t)[0] for t in tables])
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
        assert np.abs(seen(table)[0] - mass).max() < 1e-8


def test_one_table_of_all_cells_is_reproduced():
    rng = np.random.default_rng(6)
    shape = (4, 3, 2)
    truth = rng.dirichlet(np.full(24, 3.0)).reshape(shape)
    every = table(shape, {axis: np.arange(length) for axis, length in enumerate(shape)}, [], 1.0).target
    result = fit(np.ones(shape), [measured(truth, every)], evaluations=20_000, tolerance=0.0)

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
        table((2, 3), {0: identity}, np.array([0.3, 0.7]), 0.01),
        table((2, 3), {0: identity}, np.array([0.5, 0.5]), 0.02),
    ]
    result = fit(np.ones((2, 3)), tables, evaluations=5_000, tolerance=0.0)

    assert result.masses[0][0] == pytest.approx(0.8 * 0.3 + 0.2 * 0.5, abs=1e-6)


@pytest.mark.parametrize("turned", [False, True])
def test_a_number_measures_its_query_and_the_complement(turned):
    shape = (4, 3)
    rng = np.random.default_rng(9)
    truth = rng.dirichlet(np.ones(12)).reshape(shape)
    asked = ic.where(a0=ic.between(1, 2), a1=2)
    one = measured(truth, (~asked if turned else asked).bind(domain_of(shape)))
    result = fit(np.ones(shape), [one], evaluations=5_000, tolerance=0.0)
    held = truth[1:3, 2].sum()

    assert one.values[0] == pytest.approx(1.0 - held if turned else held)
    assert result.cells[1:3, 2].sum() == pytest.approx(held, abs=1e-8)
    assert result.masses[0] == pytest.approx([held, 1.0 - held] if turned else [1.0 - held, held], abs=1e-8)


def test_inconsistent_noise_leaves_a_positive_residual_and_finite_cells():
    """Negative noisy fractions are kept, and nothing overflows."""
    noisy = table((3, 2), {0: np.arange(3)}, np.array([-0.2, 1.3, 0.1]), 0.001)
    result = fit(np.ones((3, 2)), [noisy], evaluations=2_000)

    assert np.isfinite(result.cells).all()
    assert result.masses[0][1] > 0.8


@pytest.mark.parametrize(
    ("values", "scale", "message"),
    [
        (np.zeros(3), 0.1, "values"),
        (np.array([0.0, np.nan]), 0.1, "values"),
        (np.zeros(2), 0.0, "scale"),
    ],
)
def test_malformed_table_is_refused(values, scale, message):
    malformed = table((2,), {0: np.arange(2)}, values, scale)

    with pytest.raises(InvalidParameterError, match=message):
        noisy_masses([malformed])
    with pytest.raises(InvalidParameterError, match=message):
        fit(np.ones(2), [malformed])


def test_a_constant_tells_of_no_blocks():
    everything = ic.where(a0=ic.one_of(0, 1)).bind(domain_of((2,)))

    with pytest.raises(InvalidParameterError, match="block of some attributes"):
        noisy_masses([Measurement(everything, np.array([1.0]), 0.1)])


def test_malformed_problem_is_refused():
    one = table((2, 2), {0: np.arange(2)}, np.zeros(2), 0.1)
    prior = np.ones((2, 2))
    hole = np.array([[1.0, 0.0], [1.0, 1.0]])

    for match, call in {
        "prior": lambda: fit(hole, [one]),
        "measurements must": lambda: fit(prior, []),
        "domain of shape": lambda: fit(np.ones((3, 2)), [one]),
        "start": lambda: fit(prior, [one], [np.zeros(3)]),
        "evaluations": lambda: fit(prior, [one], evaluations=0),
        "kl_weight": lambda: fit(prior, [one], kl_weight=-1.0),
    }.items():
        with pytest.raises(InvalidParameterError, match=match):
            call()


def test_factors_that_all_but_vanish_together_are_evaluated_by_their_logarithms():
    """Each cell is e^-740 or e^-741 of the peaks: as floats 85 and 31 units of the least subnormal one."""
    identity = np.arange(2)
    tables = [
        table((2, 2, 2), {0: identity, 1: identity}, np.full((2, 2), 0.25), 0.1),
        table((2, 2, 2), {0: identity, 2: identity}, np.full((2, 2), 0.25), 0.1),
    ]
    theta = np.concatenate([[0.0, 0.0, -741.0, -741.0], [-740.0, -740.0, 0.0, 0.0]])
    masses, log_normaliser = CoarseDomain.of(np.ones((2, 2, 2)), tables).evaluate(theta)
    first = 1 / (1 + math.exp(-1))

    np.testing.assert_allclose(np.array([first, first, 1 - first, 1 - first]) / 2, masses[:4], rtol=1e-12)
    assert -740 + math.log((1 + math.exp(-1)) / 2) == pytest.approx(log_normaliser, abs=1e-12)


def test_the_first_step_is_four_over_the_precision_of_all_tables():
    """One step from nothing along (observed - masses)/variance, in closed form."""
    first = table((3, 2), {0: np.arange(3)}, np.array([0.5, 0.3, 0.2]), 0.1)
    second = table((3, 2), {1: np.arange(2)}, np.array([0.6, 0.4]), 0.2)
    moved = fit(np.ones((3, 2)), [first, second], evaluations=2).potentials
    step = 4 / (1 / 0.1**2 + 1 / 0.2**2)

    for found, one, guess in zip(moved, (first, second), (1 / 3, 1 / 2), strict=True):
        expected = step * (one.values - guess) / one.scale**2
        np.testing.assert_allclose(expected - expected.max(), found, rtol=1e-12, atol=1e-15)


def test_tables_with_the_smallest_union_are_joined_first():
    """a-b and b-c have 2 x 2 x 2 cells together; any join with c-d has 2 x 2 x 50 or more."""
    sizes = (2, 2, 2, 50)
    tables = [
        table(sizes, {a: np.arange(sizes[a]), b: np.arange(sizes[b])}, np.zeros(sizes[a] * sizes[b]), 0.1)
        for a, b in ((2, 3), (0, 1), (1, 2))
    ]
    domain = CoarseDomain.of(np.ones(sizes), tables)

    assert [{1, 2}] == [{link.child for link in pair} for pair in domain.tree.nodes]
    assert {0, 3} == {link.child for link in domain.tree.root}
