"""Slips of the five texts that the project grew from: each program as printed, and where it goes wrong.

`docs/errata.md` lists them; `docs/reproduction.md` has every figure of the texts beside ours.
"""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.audit import Law
from onlineic.bounds import laplace_bound, small_database_n
from onlineic.domain import Domain
from onlineic.mechanisms import ExponentialMechanism, LaplaceMechanism, quantile_scores
from onlineic.noise import SimulatedNoise
from onlineic.offline import sensitivity
from onlineic.sparse import AboveThreshold, Sparse

# The notebook on sparse vector: seed 123, 10,000 columns

RELEASED = [2.97266959, 2.37046394, 1.30079236, 5.82016052, 5.94992694]  # the first five numbers printed
PLACES = [0, 1, 5, 6, 7]


def notebook_sparse(data, threshold, num_answers, gamma, epsilon, generator):
    """The notebook's program, line by line, up to its last hit."""
    noisy_threshold = threshold + generator.laplace(scale=2 * gamma / epsilon)
    output = []
    for value in data:
        noisy = value + generator.laplace(scale=2 * num_answers * gamma / epsilon)
        output.append(noisy if noisy >= noisy_threshold else math.nan)
        if np.isfinite(output).sum() >= num_answers:
            break
    return np.array(output)


def notebook_alpha(num_answers, gamma, epsilon, queries, beta=0.99999):
    return 4 * num_answers * gamma * (np.log(queries) + np.log(2 * num_answers / beta)) / epsilon


def test_the_notebooks_numbers_come_from_single_values_and_other_parameters():
    """Stated: means of 100 rows, c = 3, gamma = 1/100, epsilon = .5; what gives the print: c = 10."""
    generator = np.random.RandomState(123)
    values = generator.uniform(size=10_000)  # no means
    output = notebook_sparse(values, 1.0, 10, 0.1, 1.0, generator)

    assert (31, 10) == (output.size, np.isfinite(output).sum())
    assert pytest.approx(RELEASED, abs=5e-9) == output[PLACES].tolist()
    assert 25.718917912356552 == notebook_alpha(10, 0.1, 1.0, 31)
    assert 1.2541 == pytest.approx(notebook_alpha(3, 1 / 100, 0.5, 31), abs=1e-4)


def test_the_notebooks_alpha_counts_queries_that_its_noise_chose_and_at_the_stream_it_says_nothing():
    """31 is where the tenth hit fell, an outcome; for the 10,000 means in [0, 1] alpha is above 2."""
    tested = {
        notebook_sparse(np.full(10_000, 0.5), 1.0, 10, 0.1, 1.0, np.random.RandomState(seed)).size
        for seed in range(5)
    }

    assert len(tested) > 1
    assert 2.6 < notebook_alpha(3, 1 / 100, 0.5, 10_000) < 2.7
    assert 1 < Sparse(0.5, 60, 3, allocation="optimal").radius(10_000, 0.05) / 100


def test_the_notebooks_call_leaves_out_the_sensitivity():
    data = np.random.RandomState(123).uniform(size=(100, 4))

    def sparse(data, T, num_answers, gamma, epsilon):  # noqa: N803, as printed
        return data[0] + gamma >= T

    with pytest.raises(TypeError, match="epsilon"):
        sparse(data, 0.6, 3, 0.5)
    with pytest.raises(ValueError, match="ambiguous"):  # a row of the table in the place of a mean
        bool(sparse(data, 0.6, 3, 0.01, 0.5))


# The Laplace mechanism in R: 100,000 scores in 0..100, epsilon .1


def test_scores_of_0_to_100_with_the_sensitivity_of_shares_cost_ten_in_the_place_of_a_tenth():
    n, score = 100_000, Domain.of(score=range(101)).attribute("score")
    printed = LaplaceMechanism(0.1, 1)  # of the sum: R = (1/n)/epsilon of the mean
    law = Law("discrete_laplace", printed.scale)
    outcomes = np.arange(-500.0, 601.0)
    cost = np.abs(law.log_mass(outcomes) - law.log_mass(outcomes - 100)).max()  # one score, 0 for 100

    assert Fraction(100, n) == sensitivity("mean", score, n)
    assert 10 == pytest.approx(float(cost))
    assert 2.995732e-4 == pytest.approx(laplace_bound(0.1, 0.05, 1) / n, rel=1e-6)
    assert 0.02995732 == pytest.approx(laplace_bound(0.1, 0.05, 100) / n, rel=1e-6)


def test_coverage_says_nothing_of_the_sensitivity():
    """The printed 95.073 % is right for noise and bound that are both 100 times too small."""
    for units in (1, 100):
        mechanism = LaplaceMechanism(0.1, units)
        inside = 1 - mechanism.tail(math.floor(laplace_bound(0.1, 0.05, units)))

        assert 0.95 == pytest.approx(inside, abs=0.006)  # the discrete noise at scale 10


# The tutorial on sparse vector


def tutorial_above_threshold(values, threshold, epsilon, generator, fallback):
    noisy = threshold + generator.laplace(0, 2 / epsilon)
    for index, value in enumerate(values):
        if value + generator.laplace(0, 4 / epsilon) >= noisy:
            return index
    return fallback()


def test_a_random_index_for_no_hit_looks_like_a_hit_and_none_does_not():
    """All thirty values are far below: the printed program names one of them all the same, anyone of them."""
    values, draw = np.full(30, -10_000), random.Random(1)
    found = {
        tutorial_above_threshold(
            values, 0, 1.0, np.random.RandomState(seed), lambda: draw.randint(0, len(values) - 1)
        )
        for seed in range(40)
    }

    assert found <= set(range(30))
    assert len(found) > 10
    assert None is AboveThreshold(1.0, 0).first(values, SimulatedNoise(1))


def test_the_tutorials_range_program_tests_a_table_that_it_was_not_given():
    adult, other = np.arange(100), np.zeros(100)
    queries = [lambda table, low=low: int((table >= low).sum()) for low in (50, 90)]

    def sparse(queries, table, threshold):  # without noise
        return [place for place, query in enumerate(queries) if query(table) >= threshold]

    def range_query_svt(queries, df, threshold):
        indices = sparse(queries, adult, threshold)  # as printed: adult, not df
        return [queries[place](df) for place in indices]

    assert [0] == range_query_svt(queries, other, 20)  # a hit whose count in df is 0
    assert [] == [queries[place](other) for place in sparse(queries, other, 20)]


# The lecture on the exponential mechanism


def printed_score(values, point):
    """-#{j >= point} + #{j <= point}, without absolute value."""
    return -int((values >= point).sum()) + int((values <= point).sum())


def test_the_lectures_score_without_its_absolute_value_is_best_at_the_largest_record():
    values = np.random.default_rng(4).permutation(np.arange(1, 1001))[:99]
    points = np.arange(1001)
    printed = np.array([printed_score(values, point) for point in points])

    assert points[printed.argmax()] >= values.max()
    assert points[(-np.abs(printed)).argmax()] == np.sort(values)[49]


def test_the_lectures_score_has_sensitivity_2_and_its_example_with_repeats_no_score_of_0():
    moved = 0
    for values in itertools.product(range(3), repeat=3):
        for place, value, point in itertools.product(range(3), range(3), range(3)):
            other = np.array([*values[:place], value, *values[place + 1 :]])
            moved = max(moved, abs(printed_score(np.array(values), point) - printed_score(other, point)))
    repeats = np.array([0] * 6 + [1] * 2)  # 3n/4 at 0, n/4 at 1
    half = repeats.size / 2
    repaired = -abs(min(half, (repeats >= 0).sum()) - min(half, (repeats <= 0).sum()))

    assert 2 == moved
    assert -2 == printed_score(repeats, 0)  # -n/4
    assert 0 not in {printed_score(repeats, point) for point in (0, 0.5, 1)}
    assert 0 == repaired


def test_the_lectures_repaired_score_is_ours_for_even_n_and_moves_by_one_only():
    moved = 0
    for values in itertools.product(range(4), repeat=4):
        scores = {}
        for last in range(4):
            table = np.array([*values[:-1], last])
            cut = [[min(2, (table >= y).sum()), min(2, (table <= y).sum())] for y in range(4)]
            scores[last] = np.array([-abs(int(above - below)) for above, below in cut])
            assert scores[last].tolist() == quantile_scores(np.bincount(table, minlength=4), 0.5).tolist()
        moved = max(moved, *(int(np.abs(one - scores[0]).max()) for one in scores.values()))

    assert 1 == moved


def test_steps_of_a_thousandth_make_1001_points():
    assert Fraction(1, 1000) == ic.Grid(0, 1, points=1001).step


def test_the_lectures_general_tail_holds_for_scores_below_and_fails_for_scores_above():
    """Printed: P(score > OPT - lambda) <= |R| exp(-epsilon lambda/(2 Delta))."""
    scores, epsilon, distance = np.array([0] * 9 + [-40]), 1.0, 30
    law = ExponentialMechanism(epsilon).probabilities(scores)
    bound = scores.size * math.exp(-epsilon * distance / 2)

    assert law[scores < -distance].sum() <= bound
    assert law[scores > -distance].sum() > 0.99 > bound


def test_records_for_a_small_database_grow_with_one_over_epsilon():
    """Printed: n >= (4/(alpha epsilon)) ln(|R|/beta) = O(log|C| log(|D|/beta)/alpha^3), epsilon gone."""
    needed = [small_database_n(0.1, 64, 100, epsilon) for epsilon in (1.0, 0.5, 0.1)]

    assert [1, 2, 10] == pytest.approx([number / needed[0] for number in needed], rel=1e-3)
