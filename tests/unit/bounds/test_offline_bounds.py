"""The net mechanism's theory: goldens, nets checked by brute force, and the slips of the texts."""

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from onlineic import bounds
from onlineic.errors import InfeasibleAccuracyError, InvalidParameterError
from onlineic.updates.median import multiset_blocks, multisets

CELLS, QUERIES = 1024, 100


def general(rows, size=CELLS, queries=QUERIES):
    return bounds.multiset_radius(rows, size, queries)


# ------------------------------------ the book's numbers
@pytest.mark.parametrize(
    ("n", "theorem", "proposition"), [(10**4, 0.374, 0.351), (10**6, 0.0806, 0.0755)], ids=["1e4", "1e6"]
)
def test_small_database_goldens(n, theorem, proposition):
    assert theorem == pytest.approx(bounds.small_database_alpha(CELLS, QUERIES, n, 1.0), abs=5e-4)
    assert proposition == pytest.approx(
        bounds.least_small_database_error(CELLS, QUERIES, n, 1.0)[0], abs=5e-4
    )


def test_multiset_goldens():
    rows, error = bounds.best_net(general, CELLS, 10**4, 1.0)

    assert (161, 0.2223) == (rows, round(error, 4))
    # at a million records 0.0165 is what sampling alone gives; rounding is the smaller net there
    sampling = bounds.best_net(
        lambda rows: min(1.0, math.sqrt(math.log(2 * QUERIES) / (2 * rows))), CELLS, 10**6, 1.0
    )[1]
    assert 0.0161 == round(sampling, 4)  # at m = n, where the radius is zero
    least = min(
        math.sqrt(math.log(200) / (2 * m)) + 2e-6 * (bounds.log_multisets(CELLS, m) + math.log(20))
        for m in range(10_000, 400_000, 500)
    )
    assert 0.0165 == round(least, 4)
    assert 0.0139 == round(bounds.best_net(general, CELLS, 10**6, 1.0)[1], 4)


def test_theorem_4_5_is_proposition_4_4_at_half_its_alpha():
    for n, beta in itertools.product((10**3, 10**5, 10**7), (0.5, 0.05, 1e-6)):
        alpha = bounds.small_database_alpha(CELLS, QUERIES, n, 0.5, beta)
        if alpha <= 1:
            assert bounds.small_database_error(alpha / 2, CELLS, QUERIES, n, 0.5, beta) <= alpha


def test_sample_size_is_the_inverse_of_theorem_4_5():
    n = bounds.small_database_n(0.1, CELLS, QUERIES, 1.0)

    assert bounds.small_database_alpha(CELLS, QUERIES, n, 1.0) <= 0.1
    assert 0.1 < bounds.small_database_alpha(CELLS, QUERIES, n - 1, 1.0)


def test_the_best_alpha_of_proposition_4_4_is_the_best():
    error, alpha = bounds.least_small_database_error(CELLS, QUERIES, 10**4, 1.0)

    assert error == bounds.small_database_error(alpha, CELLS, QUERIES, 10**4, 1.0)
    for other in (0.9 * alpha, 0.99 * alpha, 1.01 * alpha, 1.1 * alpha):
        assert error < bounds.small_database_error(other, CELLS, QUERIES, 10**4, 1.0)


# ------------------------------------ sizes
@pytest.mark.parametrize("queries", [3, 4, 10, 15, 100, 10**6])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.37, 0.5, 0.9, 1.0])
def test_a_whole_small_database_size_is_a_net_by_the_proof_and_mostly_no_larger_than_printed(alpha, queries):
    rows = bounds.small_database_size(alpha, queries)

    assert 2 * queries * math.exp(-2 * rows * alpha**2) < 1  # Theorem 4.2's proof
    if alpha**2 <= math.log(queries / 2) / 2:  # Proposition 4.4 counts |X|^(ln|Q|/alpha^2) databases
        assert rows <= math.log(queries) / alpha**2


def test_proposition_4_4_would_be_false_for_sizes_rounded_up():
    alpha, queries = math.sqrt(math.log(20) / 3.01), 20  # 3.01 records: rounded up 4
    printed = math.log(CELLS) * math.log(queries) / alpha**2

    assert printed < bounds.log_multisets(CELLS, 4)
    assert bounds.log_multisets(CELLS, bounds.small_database_size(alpha, queries)) < printed


def test_a_size_without_the_logarithm_is_twenty_times_too_large_and_vacuous():
    """m = |Q|/alpha^2, as a published program has it: still a net, but the bound pays for every record."""
    alpha, n = 0.1, 10**5
    rows, mutant = bounds.small_database_size(alpha, QUERIES), math.ceil(QUERIES / alpha**2)

    assert (460, 10_000) == (rows, mutant)
    right, wrong = (bounds.net_error(alpha, m, CELLS, n, 1.0) for m in (rows, mutant))
    assert right < 0.13
    assert 0.16 < wrong  # even counted as multisets
    lists = alpha + 2 * (mutant * math.log(CELLS) + math.log(20)) / n
    assert 1.4 < lists  # counted as the book does


def test_rows_for_a_radius_are_the_least():
    for alpha in (0.5, 0.3, 0.1, 0.03, 0.01):
        rows, few = bounds.multiset_rows(alpha, CELLS, QUERIES), bounds.multiset_rows(alpha, 4, QUERIES)

        assert general(rows) <= alpha < general(rows - 2 or 1) + 1e-12 or rows <= 2
        assert few == math.ceil(4 / (4 * alpha))
        assert bounds.threshold_radius(bounds.threshold_rows(alpha)) <= alpha


# ------------------------------------ nets, by brute force
def all_histograms(cells, n):
    return multisets(cells, n).T.astype(float) / n


@pytest.mark.parametrize(("cells", "rows"), [(2, 3), (3, 2), (3, 4), (4, 3)])
def test_multisets_are_a_net_of_their_radius_for_all_zero_one_queries(cells, rows):
    net = all_histograms(cells, rows)
    queries = np.array(list(itertools.product([0, 1], repeat=cells)), float)
    worst = max(np.abs((net - x) @ queries.T).max(axis=1).min() for x in all_histograms(cells, 12))

    assert worst <= bounds.multiset_radius(rows, cells, len(queries)) + 1e-12


@pytest.mark.parametrize(("cells", "rows"), [(2, 1), (2, 3), (3, 2), (4, 3), (5, 2)])
def test_quantiles_are_a_net_of_radius_one_over_2m_for_thresholds_and_no_better(cells, rows):
    net = np.cumsum(all_histograms(cells, rows), axis=1)
    worst = max(np.abs(net - np.cumsum(x)).max(axis=1).min() for x in all_histograms(cells, 2 * rows))

    assert bounds.threshold_radius(rows) == pytest.approx(worst)


def test_the_quantiles_of_the_proof_round_the_distribution_function():
    rng = np.random.default_rng(1)
    for _ in range(200):
        counts = rng.multinomial(37, rng.dirichlet(np.full(9, 0.3)))
        below, rows = np.cumsum(counts), int(rng.integers(1, 20))
        points = [
            next(d for d in range(9) if Fraction(int(below[d]), 37) >= Fraction(2 * i - 1, 2 * rows))
            for i in range(1, rows + 1)
        ]

        expected = [math.floor(Fraction(rows * int(count), 37) + Fraction(1, 2)) for count in below]
        assert expected == [sum(point <= d for point in points) for d in range(9)]


# ------------------------------------ threshold functions
def test_thresholds_need_far_fewer_records_than_a_general_class_of_as_many_queries():
    n = 10**4
    book = bounds.least_small_database_error(CELLS, CELLS - 1, n, 1.0)[0]
    nets = [
        bounds.best_net(radius, CELLS, n, 1.0)[1]
        for radius in (partial(general, queries=CELLS - 1), bounds.threshold_radius)
    ]

    assert [0.402, 0.247, 0.0437] == [round(book, 3), round(nets[0], 3), round(nets[1], 4)]
    assert 780_600 == bounds.small_database_n(0.1, CELLS, CELLS - 1, 1.0)
    assert 68_424 == bounds.least_net_n(partial(general, queries=CELLS - 1), 0.1, CELLS, 1.0)
    assert 2_266 == bounds.least_net_n(bounds.threshold_radius, 0.1, CELLS, 1.0)


def test_sample_sizes_grow_as_alpha_to_the_minus_two_for_thresholds():
    sizes = [bounds.least_net_n(bounds.threshold_radius, alpha, 2**40, 1.0) for alpha in (0.1, 0.05, 0.025)]
    general_sizes = [bounds.small_database_n(alpha, 2**40, 100, 1.0) for alpha in (0.1, 0.05, 0.025)]

    assert all(3.6 < b / a < 4.0 for a, b in itertools.pairwise(sizes))
    assert all(b / a == pytest.approx(8, rel=1e-4) for a, b in itertools.pairwise(general_sizes))


@pytest.mark.parametrize("radius", [general, bounds.threshold_radius], ids=["general", "thresholds"])
@pytest.mark.parametrize("alpha", [0.4, 0.1, 0.02])
def test_least_n_and_best_net_are_inverse_to_each_other(radius, alpha):
    n = bounds.least_net_n(radius, alpha, CELLS, 0.7, 0.01)

    assert bounds.best_net(radius, CELLS, n, 0.7, 0.01)[1] <= alpha
    assert alpha < bounds.best_net(radius, CELLS, int(0.98 * n), 0.7, 0.01)[1]


def test_as_many_rows_as_records_are_an_exact_net():
    assert (3, bounds.net_error(0.0, 3, 2, 3, 20.0)) == bounds.best_net(bounds.threshold_radius, 2, 3, 20.0)


def test_one_cell_needs_no_net():
    assert 0.0 == general(1, size=1)
    assert 2 * math.log(20) / 100 == pytest.approx(bounds.net_error(0.0, 1, 1, 100, 1.0))
    assert 1.0 == bounds.least_small_database_error(1, 3, 100, 1.0)[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: bounds.small_database_size(0.1, 2),
        lambda: bounds.small_database_size(1.5, 10),
        lambda: bounds.small_database_error(0.0, 8, 10, 100, 1.0),
        lambda: bounds.small_database_alpha(8, 10, 0, 1.0),
        lambda: bounds.small_database_n(0.1, 0, 10, 1.0),
        lambda: bounds.net_error(1.1, 2, 8, 100, 1.0),
        lambda: bounds.net_error(0.1, 2, 8, 100, 1.0, beta=1.0),
        lambda: bounds.threshold_rows(0.0),
        lambda: bounds.multiset_radius(0, 8, 10),
        lambda: bounds.best_net(bounds.threshold_radius, 8, 100, -1.0),
    ],
)
def test_bad_parameters_are_refused(call):
    with pytest.raises(InvalidParameterError, match="must be"):
        call()


def test_unreachable_sample_sizes_are_refused():
    with pytest.raises(InfeasibleAccuracyError, match="2\\^63"):
        bounds.small_database_n(1e-9, 1024, 100, 1e-9)
    with pytest.raises(InfeasibleAccuracyError, match="radius"):
        bounds.least_net_n(lambda rows: 0.5, 0.4, 16, 1.0)


# ------------------------------------ the enumeration
@pytest.mark.parametrize(
    ("cells", "size", "most"), [(1, 5, 3), (2, 5, 3), (3, 4, 4), (4, 6, 10), (5, 3, 1000)]
)
def test_blocks_are_the_enumeration_in_order(cells, size, most):
    blocks = list(multiset_blocks(cells, size, most))

    assert np.array_equal(multisets(cells, size), np.concatenate(blocks, axis=1))
    assert all(block.shape[1] <= most for block in blocks)
    assert math.comb(cells + size - 1, size) == sum(block.shape[1] for block in blocks)


@pytest.mark.parametrize("n", [10**6, 999_983, 999_979])
def test_the_best_net_is_the_best_of_all_that_were_tried_whatever_n_is(n):
    """A million records are their own net, of radius zero; the finer search steps over them at most n."""

    def sampling(rows):
        return min(1.0, math.sqrt(math.log(2 * QUERIES) / (2 * rows)))

    assert (n, bounds.net_error(0.0, n, CELLS, n, 1.0)) == bounds.best_net(sampling, CELLS, n, 1.0)


def test_the_least_beta_has_a_finite_bound():
    """1/beta is infinite as a float."""
    logs = -math.log(5e-324)

    assert 0.1 + 2 * (math.log(8) + logs) / 1000 == pytest.approx(
        bounds.net_error(0.1, 1, 8, 1000, 1.0, 5e-324)
    )
    assert bounds.small_database_alpha(CELLS, QUERIES, 10**6, 1.0, 5e-324) < 0.2
    assert bounds.small_database_n(0.1, CELLS, QUERIES, 1.0, 5e-324) < 10**7
    assert bounds.least_net_n(bounds.threshold_radius, 0.1, 256, 1.0, 5e-324) < 10**6


def test_multisets_of_more_records_than_sixteen_bits_hold():
    pairs = multisets(2, 70_000)

    assert (2, 70_001) == pairs.shape
    assert [70_000, 0] == pairs[:, -1].tolist()
    assert {70_000} == set(pairs.sum(axis=0, dtype=np.int64).tolist())
