"""Threshold functions and the private distribution function: least squares, monotone, an exact band."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import onlineic as ic
from onlineic.errors import InvalidParameterError, InvalidQueryError, SessionSealedError, TooLargeError
from onlineic.mechanisms import LaplaceMechanism
from onlineic.noise import SimulatedNoise
from onlineic.offline import private_cdf, threshold_functions
from onlineic.offline.cdf import SIMULATED, _measured, _radius, best_levels, grouping, monotone, sums
from onlineic.testing import ScriptedNoise

DOMAIN = ic.Domain.of(age=range(10, 30), sex=["F", "M"])
COUNTS = np.random.default_rng(5).multinomial(5000, np.random.default_rng(4).dirichlet(np.full(40, 0.4)))
DATA = ic.PrivateData(COUNTS, DOMAIN)
TRUTH = np.cumsum(COUNTS.reshape(20, 2).sum(axis=1)) / 5000


def blocks_matrix(cells, groups):
    """Return the matrix from cells to the block counts of every level, finest first, and to the total."""
    parts, held = [], np.eye(cells)
    for starts in groups:
        parts.append(held)
        held = np.add.reduceat(held, starts, axis=0)
    return np.concatenate(parts), held


# ------------------------------------ the class
def test_threshold_functions_are_the_cumulative_sums():
    queries = threshold_functions(DOMAIN, "age")

    assert 19 == len(queries)
    assert all(query.constant is None and query.grid_bits == 0 for query in queries)
    assert np.array_equal(np.rint(TRUTH[:-1] * 5000), DATA.exact_counts_many(queries))
    assert ic.where(age=ic.between(10, 14)).bind(DOMAIN) == queries[4]


def test_bins_and_a_missing_cell_have_thresholds_too():
    domain = ic.Domain.of(size=ic.optional(ic.binned([0, 1, 5, float("inf")])), sex=["F", "M"])
    queries = threshold_functions(domain, "size")

    assert 3 == len(queries)  # below 1, below 5, any value at all
    assert ic.where(size=ic.below(5)).bind(domain) == queries[1]
    assert (~ic.where(size=None)).bind(domain) == queries[2]


@pytest.mark.parametrize("attribute", ["sex", "one", "height"])
def test_labels_single_cells_and_unknown_names_have_no_thresholds(attribute):
    domain = ic.Domain.of(sex=["F", "M"], one=range(1))
    with pytest.raises(InvalidQueryError):
        threshold_functions(domain, attribute)


# ------------------------------------ levels and least squares
@pytest.mark.parametrize(
    ("cells", "levels"), [(2, 1), (16, 1), (63, 1), (65, 2), (256, 2), (1024, 2), (4096, 3), (65536, 4)]
)
def test_few_levels_with_many_branches_are_best(cells, levels):
    assert levels == best_levels(cells)


@pytest.mark.parametrize(("cells", "height"), [(2, 1), (5, 1), (7, 2), (16, 2), (16, 4), (20, 3), (4, 16)])
def test_groups_end_in_one_block_and_no_level_repeats_the_total(cells, height):
    groups = grouping(cells, height)
    sizes = [cells] + [len(starts) for starts in groups]

    assert 1 == sizes[-1]
    assert all(later < earlier for earlier, later in itertools.pairwise(sizes))
    assert len(groups) <= height
    branches = math.ceil(round(cells ** (1 / height), 9))
    assert all(later == math.ceil(earlier / max(2, branches)) for earlier, later in itertools.pairwise(sizes))


@pytest.mark.parametrize(("cells", "height"), [(5, 1), (7, 2), (16, 2), (16, 4), (20, 3)])
def test_sums_are_the_least_squares_estimate_given_the_total(cells, height):
    rng, groups = np.random.default_rng(cells), grouping(cells, height)
    matrix, total = blocks_matrix(cells, groups)
    noisy, n = rng.normal(size=len(matrix)) * 10 + 50, 731.0
    # the cells that minimise |matrix x - noisy|^2 with sum n, by the normal equations with a multiplier
    system = np.block([[matrix.T @ matrix, total.T], [total, np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.append(matrix.T @ noisy, n))[:cells]
    ends = np.cumsum([len(part) for part in [np.zeros(cells), *groups[:-1]]])
    measured = [part[:, None] for part in np.split(noisy, ends[:-1])]

    assert np.allclose(np.cumsum(solved)[:-1], sums(measured, groups, n)[:, 0])


def test_without_noise_everything_is_exact():
    script = [0] * 20
    cdf = private_cdf(DATA, "age", 1.0, noise=ScriptedNoise([0, *script]))

    assert np.allclose(TRUTH, cdf.values)
    assert np.all(cdf.lower <= TRUTH)
    assert np.all(TRUTH <= cdf.upper)


@pytest.mark.parametrize(
    ("levels", "sizes"), [(1, [20]), (2, [20, 4]), (3, [20, 7, 3]), (5, [20, 10, 5, 3, 2])]
)
def test_every_level_gets_noise_for_two_moved_counts_a_level(levels, sizes):
    noise = ScriptedNoise([0] * (1 + sum(sizes)))
    cdf = private_cdf(DATA, "age", 0.5, levels=levels, noise=noise)
    scale = Fraction(2 * len(sizes) * 2)

    assert [("words", None, 1)] + [("discrete_laplace", scale, size) for size in sizes] == noise.scales
    assert (len(sizes), True) == (cdf.levels, noise.exhausted)


# ------------------------------------ monotone, and no worse for it
def test_monotone_regression_never_errs_by_more_than_the_noisy_sums():
    rng = np.random.default_rng(3)
    for _ in range(300):
        truth = np.cumsum(rng.dirichlet(np.full(30, 0.2)))[:-1]
        raw = truth + rng.laplace(0, 0.05, 29)
        worst = np.abs(raw - truth).max()
        values, lower, upper = monotone(raw, worst)

        assert np.abs(values - truth).max() <= worst + 1e-12
        assert np.all(np.diff(values) >= 0)
        assert np.all(lower <= truth + 1e-12)
        assert np.all(truth <= upper + 1e-12)
        assert np.all(np.diff(lower) >= 0)
        assert np.all(np.diff(upper) >= 0)
        assert np.all(upper - lower <= 2 * worst + 1e-12)


def test_a_band_that_must_have_missed_is_still_a_band():
    _, lower, upper = monotone(np.array([0.9, 0.1]), 0.05)

    assert np.all(lower <= upper)


# ------------------------------------ the band
@pytest.mark.statistical
@pytest.mark.parametrize(("cells", "height", "beta"), [(16, 1, 0.2), (64, 2, 0.05), (20, 3, 0.3)])
def test_the_band_holds_with_its_probability_exactly(cells, height, beta):
    """Coverage given the simulated errors is Beta(k, N + 1 - k): two-sided, and 10 % of radius are found."""
    groups, releases = grouping(cells, height), 20_000
    laplace = LaplaceMechanism(0.05, 2 * len(groups))
    radius = _radius(cells, groups, laplace, beta, SimulatedNoise(1))
    nothing = np.zeros((cells, releases), np.int64)
    errors = sums(_measured(nothing, groups, laplace, SimulatedNoise(2)), groups, 0.0)
    largest = np.abs(errors).max(axis=0)
    rank = math.ceil((1 - beta) * (SIMULATED + 1))
    law = stats.betabinom(releases, rank, SIMULATED + 1 - rank)

    def p_value(held):
        return 2 * min(law.cdf(held), law.sf(held - 1))

    assert p_value(int((largest <= radius).sum())) > 1e-9
    assert p_value(int((largest <= 0.9 * radius).sum())) < 1e-9
    assert p_value(int((largest <= 1.1 * radius).sum())) < 1e-9


@pytest.mark.slow
def test_releases_lie_in_their_bands_about_as_often_as_promised():
    noise = SimulatedNoise(0)
    held = [
        bool(np.all((cdf.lower <= TRUTH) & (TRUTH <= cdf.upper)))
        for cdf in (private_cdf(DATA, "age", 0.5, beta=0.2, noise=noise) for _ in range(120))
    ]

    assert stats.binomtest(sum(held), len(held), 0.8).pvalue > 1e-4


def test_a_smaller_beta_takes_a_wider_band_from_more_simulations():
    radii = [
        private_cdf(DATA, "age", 1.0, beta=beta, noise=SimulatedNoise(0)).radius
        for beta in (0.5, 0.05, 0.001)
    ]

    assert radii == sorted(radii)
    assert radii[0] < radii[1] < radii[2]


def test_two_levels_beat_a_histogram_and_a_binary_tree_at_256_cells():
    radii = {}
    for height in (1, 2, 8):
        groups = grouping(256, height)
        laplace = LaplaceMechanism(1.0, 2 * len(groups))
        radii[height] = _radius(256, groups, laplace, 0.05, SimulatedNoise(0))

    assert radii[2] < 0.9 * radii[1] < radii[1] < 0.65 * radii[8]


@pytest.mark.parametrize("counts", [[1, 2], [1, 0, 0, 6], [10**15 + 1, 3, 10**14, 7]])
def test_roundings_of_floats_stay_inside_a_band_without_noise(counts):
    """At epsilon = 20 most errors are zero, and so is their quantile: a third is still no float."""
    data = ic.PrivateData(np.array(counts), ic.Domain.of(a=range(len(counts))))
    cdf = private_cdf(data, "a", 20.0, beta=0.5, noise=ScriptedNoise([0] * (1 + len(counts))))
    bands = zip(itertools.accumulate(counts), cdf.lower.tolist(), cdf.upper.tolist(), strict=True)

    assert cdf.radius < 1e-13
    for upto, lower, upper in bands:
        assert Fraction(lower) <= Fraction(upto, sum(counts)) <= Fraction(upper)
    for upto, value in zip(itertools.accumulate(counts), cdf.values.tolist(), strict=True):
        assert abs(Fraction(value) - Fraction(upto, sum(counts))) <= Fraction(cdf.radius)


# ------------------------------------ what is handed out
def test_values_and_quantiles_are_read_off():
    cdf = private_cdf(DATA, "age", 5.0, noise=SimulatedNoise(1))

    assert cdf.values[3] == cdf.at(13)
    assert (1.0, 1.0, 1.0) == (cdf.values[-1], cdf.lower[-1], cdf.upper[-1])
    for q in (0.0, 0.1, 0.5, 0.999, 1.0):
        label = cdf.quantile(q)
        assert cdf.at(label) >= q
        assert label == 10 or cdf.at(label - 1) < q
    assert ("age",) == cdf.domain.names
    with pytest.raises(InvalidQueryError):
        cdf.at(9)
    with pytest.raises(InvalidParameterError, match="q must be"):
        cdf.quantile(1.5)


def test_a_missing_cell_comes_after_all_values():
    domain = ic.Domain.of(age=ic.optional(range(3)))
    data = ic.PrivateData(np.array([10_000, 0, 20_000, 10_000]), domain)
    cdf = private_cdf(data, "age", 5.0)

    assert 0.75 == round(cdf.at(2), 2)
    assert 1.0 == cdf.at(None)


def test_the_budget_is_charged_and_simulated_noise_is_stamped():
    data = ic.PrivateData(COUNTS, DOMAIN)
    simulated = private_cdf(data, "age", 0.5, noise=SimulatedNoise(0))
    assert (False, [], 1) == (simulated.private, list(data.budgets), data.reads)
    assert "NOT PRIVATE" in repr(simulated)
    private = private_cdf(data, "age", 0.5)

    assert (True, [ic.Budget(0.5)], 2) == (private.private, list(data.budgets), data.reads)
    assert "NOT PRIVATE" not in repr(private)
    with pytest.raises(SessionSealedError, match="interrupted"):
        private_cdf(data, "age", 0.5, noise=ScriptedNoise([0]))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda data: private_cdf(data, "sex", 1.0), InvalidQueryError, "ordered"),
        (lambda data: private_cdf(data, "height", 1.0), InvalidQueryError, "attribute"),
        (lambda data: private_cdf(data, "age", 0.0), InvalidParameterError, "epsilon"),
        (lambda data: private_cdf(data, "age", 1.0, beta=1e-4), InvalidParameterError, "beta"),
        (lambda data: private_cdf(data, "age", 1.0, levels=0), InvalidParameterError, "levels"),
        (lambda data: private_cdf(data, "age", 1.0, levels=17), InvalidParameterError, "levels"),
        (lambda data: private_cdf(data, "age", 1.0, noise=7), InvalidParameterError, "noise"),
        (lambda data: private_cdf(DOMAIN, "age", 1.0), InvalidParameterError, "data"),
    ],
)
def test_bad_arguments_cost_nothing(call, error, text):
    data = ic.PrivateData(COUNTS, DOMAIN)
    with pytest.raises(error, match=text):
        call(data)

    assert ([], 0) == (list(data.budgets), data.reads)


def test_too_many_cells_are_refused():
    data = ic.PrivateData(np.ones(2**16 + 1, np.int64), ic.Domain.of(a=range(2**16 + 1)))
    with pytest.raises(TooLargeError, match="bin it"):
        private_cdf(data, "a", 1.0)

    assert [] == list(data.budgets)


def test_the_band_is_the_kth_of_n_simulated_errors_with_k_counted_from_n_plus_one():
    """beta = .3333, N = 1,999: k = ceil(.6667 * 2,000) = 1,334, and 1,333 would promise too much."""
    groups = grouping(16, 1)
    laplace = LaplaceMechanism(0.01, 2)
    radius = _radius(16, groups, laplace, 0.3333, ScriptedNoise([7]))
    nothing = np.zeros((16, SIMULATED), np.int64)
    errors = np.abs(sums(_measured(nothing, groups, laplace, SimulatedNoise(7)), groups, 0.0)).max(axis=0)

    assert np.sort(errors)[1333] == radius > np.sort(errors)[1332]
