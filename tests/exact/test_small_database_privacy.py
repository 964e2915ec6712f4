"""Exact privacy of the small-database mechanisms: every neighbour, every output, on tiny universes."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.bounds import best_net, threshold_radius
from onlineic.mechanisms import ExponentialMechanism, LaplaceMechanism
from onlineic.offline import threshold_functions
from onlineic.offline.cdf import grouping
from onlineic.offline.nets import Scoring
from onlineic.offline.paths import count_paths, strip_width
from onlineic.updates.median import multisets

EPSILONS = (0.3, 1.0, 3.0)


def histograms(cells, n):
    """Return all databases of n records, (K, cells)."""
    return multisets(cells, n).T.astype(np.int64)


def neighbours(databases):
    """Return all ordered pairs of indices that differ by one replaced record."""
    distance = np.abs(databases[:, None] - databases[None]).sum(axis=2)
    return np.argwhere(distance == 2)


def worst_ratio(laws, pairs):
    """Return the largest log-ratio of one output's probability over all pairs."""
    logs = np.log(laws)
    return max(float((logs[i] - logs[j]).max()) for i, j in pairs)


CLASSES = {
    "thresholds": lambda domain: list(threshold_functions(domain, "a")),
    "all 0/1": lambda domain: [
        ic.dense(weights).bind(domain)
        for weights in itertools.product([0.0, 1.0], repeat=domain.size)
        if 0 < sum(weights) < domain.size
    ],
    "weights": lambda domain: [
        ic.dense(np.arange(domain.size) / 4.0).bind(domain),
        ic.where(a=0).bind(domain),
        ic.dense(1.0 - np.arange(domain.size) / 8.0).bind(domain),
    ],
}


def scored(name, cells, n, rows):
    """Return all databases, their candidates' scores and the scoring of a class."""
    domain = ic.Domain.of(a=range(cells))
    queries = CLASSES[name](domain)
    scoring, databases = Scoring.of(queries, n, rows), histograms(cells, n)
    weights = np.array([query.weights() for query in queries])
    scores = np.array(
        [scoring.scores(weights @ x, multisets(cells, rows).astype(np.int64)) for x in databases]
    )
    return databases, scores, scoring


# ------------------------------------ the exponential mechanism over databases
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(("cells", "n", "rows"), [(2, 5, 3), (3, 4, 2), (3, 4, 4), (4, 3, 2)])
def test_no_score_moves_by_more_than_the_sensitivity_and_some_does(name, cells, n, rows):
    databases, scores, scoring = scored(name, cells, n, rows)
    moved = max(int(np.abs(scores[i] - scores[j]).max()) for i, j in neighbours(databases))

    assert scoring.sensitivity == moved


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(("cells", "n", "rows"), [(2, 5, 3), (3, 4, 2), (3, 4, 4), (4, 3, 2)])
def test_small_database_is_epsilon_private(name, cells, n, rows):
    databases, scores, scoring = scored(name, cells, n, rows)
    pairs = neighbours(databases)
    for epsilon in EPSILONS:
        engine = ExponentialMechanism(epsilon, scoring.sensitivity)
        worst = worst_ratio([engine.probabilities(row) for row in scores], pairs)

        assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-9)


def test_forgetting_that_scores_are_m_times_counts_costs_up_to_m_epsilon():
    databases, scores, scoring = scored("thresholds", 3, 4, 4)
    assert 4 == scoring.sensitivity
    mutant = ExponentialMechanism(1.0, 1)
    worst = worst_ratio([mutant.probabilities(row) for row in scores], neighbours(databases))

    assert 2.0 < worst <= 4.0


def test_the_halved_noise_of_monotone_scores_costs_more_than_epsilon():
    """Scores of neighbours that replace a record rise for one candidate and fall for another."""
    databases, scores, scoring = scored("thresholds", 2, 6, 6)
    mutant = ExponentialMechanism(2.0, scoring.sensitivity)  # exp(epsilon u / sensitivity) at epsilon 1
    worst = worst_ratio([mutant.probabilities(row) for row in scores], neighbours(databases))

    assert 1.1 < worst


def test_the_size_depends_on_n_which_must_therefore_be_public():
    """With records added or removed, n read from the data, the size alone tells neighbours apart."""
    sizes = [best_net(threshold_radius, 16, n, 1.0)[0] for n in range(100, 200)]

    assert any(one != other for one, other in itertools.pairwise(sizes))


# ------------------------------------ thresholds by dynamic programming
def level_law(x, rows, top, epsilon):
    """Return P(y) of all multisets as `threshold_database` draws: level with multiplicity, then uniform."""
    n, below = int(x.sum()), np.cumsum(x)[:-1]
    within = count_paths(below, n, rows, np.arange(top + 1), strip_width(n, rows, top))
    total = math.comb(x.size + rows - 1, rows)
    levels = np.minimum(levels_of(below, n, rows), top + 1)
    assert np.array_equal(np.bincount(levels, minlength=top + 2), np.diff([0, *within, total]))
    weights = np.exp(-levels / float(ExponentialMechanism(epsilon).scale))
    return weights / weights.sum()


def paths_of(cells, rows):
    return np.cumsum(histograms(cells, rows), axis=1)[:, :-1]


def levels_of(below, n, rows, unit=1):
    """Return ceil(max_d |F_d - n G_d/m| / unit) of every path, in integers."""
    gaps = np.abs(rows * below - n * paths_of(below.size + 1, rows)).max(axis=1)
    return -(-gaps // (rows * unit))


@pytest.mark.parametrize(("cells", "n", "rows"), [(2, 6, 3), (3, 5, 3), (3, 4, 2), (4, 3, 3)])
def test_threshold_database_is_epsilon_private_with_and_without_a_cut(cells, n, rows):
    databases = histograms(cells, n)
    pairs = neighbours(databases)
    for epsilon in EPSILONS:
        for top in (1, 2, n):
            worst = worst_ratio([level_law(x, rows, top, epsilon) for x in databases], pairs)

            assert 0.3 * epsilon < worst <= epsilon * (1 + 1e-9)


def test_rounding_up_to_whole_records_leaves_the_sensitivity_at_one():
    databases = histograms(3, 7)
    levels = np.array([levels_of(np.cumsum(x)[:-1], 7, 3) for x in databases])

    assert 1 == max(int(np.abs(levels[i] - levels[j]).max()) for i, j in neighbours(databases))


def test_a_coarser_unit_still_moves_by_a_whole_level_so_that_it_spares_no_noise():
    """Two records a level with the noise of one record: as if a level could move by half. Not private."""
    databases = histograms(2, 8)
    pairs = neighbours(databases)
    halves = np.array([levels_of(np.cumsum(x)[:-1], 8, 8, unit=2) for x in databases])
    assert 1 == max(int(np.abs(halves[i] - halves[j]).max()) for i, j in pairs)
    mutant = [np.exp(-2 * row / 2.0) for row in halves]  # 2 records a level, epsilon = 1
    worst = worst_ratio([law / law.sum() for law in mutant], pairs)

    assert 1.05 < worst


# ------------------------------------ the distribution function
@pytest.mark.parametrize(("cells", "height"), [(5, 1), (5, 2), (7, 3), (4, 2)])
def test_a_replaced_record_moves_the_block_counts_by_two_a_level_at_most_and_noise_is_made_for_that(
    cells, height
):
    groups = grouping(cells, height)

    def vector(x):
        parts = []
        for starts in groups:
            parts.append(x)
            x = np.add.reduceat(x, starts)
        return np.concatenate(parts)

    databases = histograms(cells, 3)
    vectors = np.array([vector(x) for x in databases])
    moved = max(int(np.abs(vectors[i] - vectors[j]).sum()) for i, j in neighbours(databases))

    assert 2 * len(groups) == moved
    for (
        epsilon
    ) in EPSILONS:  # the worst log-ratio of independent Laplace noise is the L1 distance over the scale
        assert moved / LaplaceMechanism(epsilon, 2 * len(groups)).scale <= Fraction(epsilon)
        mutant = LaplaceMechanism(epsilon, len(groups))  # one count a level, as if a record were added
        assert 1.9 * epsilon < moved / mutant.scale
