"""The hit frequency of the shipped `GumbelSparse` at fixed gaps, with sample sizes that find each mutant.

The truth is accepted at p > 1e-9; the sizes are those at which every listed mutant is rejected at p < 1e-9.
"""

from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy import stats

from onlineic.noise import SimulatedNoise
from onlineic.sparse import GumbelSparse

SCALE, THRESHOLD = 40, 400
SPARSE = GumbelSparse(10_000, 1.0, 1e-6, Fraction(19), Fraction(SCALE), THRESHOLD)
LEVELS = (-1.0, -0.5, 1.0, 2.0)  # (T - d)/b
SIZE = 25_000


def probability(level):
    return -np.expm1(-np.exp(-level))


def hits(sparse, level, size, seed, batch=1):
    """Number of hits of `size` equal queries, one at a time or in batches."""
    noise, state, gap = SimulatedNoise(seed), sparse.init(), round(THRESHOLD - level * SCALE)
    if batch == 1:
        for place in range(size):
            state, _ = sparse.step(state, gap if place % 2 else -gap, 1, noise)
        return state.hits
    gaps, ones, done = np.full(batch, gap), np.ones(batch, np.int64), 0
    while done < size:
        count = min(batch, size - done)
        state, easy, hit = sparse.step_many(state, gaps[:count], ones[:count], noise)
        done += easy + (hit is not None)
    return state.hits


def p_value(count, size, level):
    return stats.binomtest(count, size, probability(level)).pvalue


@pytest.mark.statistical
@pytest.mark.parametrize("level", LEVELS)
def test_single_tests_hit_as_often_as_stated(level):
    assert p_value(hits(SPARSE, level, SIZE, seed=1), SIZE, level) > 1e-9


@pytest.mark.statistical
@pytest.mark.parametrize(("level", "batch"), [(2.0, 20), (5.0, 1000)])
def test_batches_hit_as_often_as_stated(level, batch):
    size = SIZE if batch == 20 else 8 * SIZE

    assert p_value(hits(SPARSE, level, size, seed=2, batch=batch), size, level) > 1e-9


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("sparse", "size", "level"),
    [
        (attrs.evolve(SPARSE, scale=Fraction(SCALE, 2)), 1_300, 1.0),
        (attrs.evolve(SPARSE, scale=Fraction(4 * SCALE, 5)), 10_400, 2.0),
        (attrs.evolve(SPARSE, threshold=THRESHOLD + SCALE // 10), SIZE, -0.5),
        (attrs.evolve(SPARSE, scale=Fraction(9 * SCALE, 10)), SIZE, -1.0),
    ],
    ids=["half b", "0.8 b", "T off", "0.9 b"],
)
def test_wrong_settings_are_found_at_their_best_level(sparse, size, level):
    assert p_value(hits(sparse, level, size, seed=3), size, level) < 1e-9


MUTANTS = {
    "exponential": (160, lambda x: np.exp(-np.maximum(x, 0.0))),
    "minimum type": (300, lambda x: np.exp(-np.exp(x))),
    "logistic": (420, lambda x: 1 / (1 + np.exp(x))),
    "gaussian": (800, stats.norm.sf),
    "laplace": (1100, lambda x: np.where(x > 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)),
}


@pytest.mark.statistical
@pytest.mark.parametrize("mutant", MUTANTS)
def test_other_laws_are_found_by_twice_the_stated_trials(mutant):
    """Planted hit frequencies; 2N trials leave no chance to luck."""
    size, law = MUTANTS[mutant]
    generator = np.random.default_rng(4)
    found = [
        p_value(int(generator.binomial(2 * size, float(law(np.float64(level))))), 2 * size, level)
        for level in LEVELS
    ]

    assert min(found) < 1e-9


def repeats(noise, sparse, size):
    """2 x 2 table of the outcomes of the same query asked twice, many times."""
    table, state = np.zeros((2, 2), np.int64), sparse.init()
    for _ in range(size):
        outcomes = [int(sparse.step(state, THRESHOLD, 1, noise)[1] is not None) for _ in range(2)]
        table[tuple(outcomes)] += 1
    return table


@attrs.define(eq=False)
class Echo:
    """Mutant noise: every word is given twice."""

    source: SimulatedNoise
    kept: list = attrs.field(factory=list)

    def words(self, size):
        if not self.kept:
            self.kept = [self.source.words(size)] * 2
        return self.kept.pop()

    def next_word(self):
        return int(self.words(1)[0])


@pytest.mark.statistical
def test_the_same_query_twice_has_independent_outcomes():
    size = 15_000
    table = repeats(SimulatedNoise(5), SPARSE, size)
    mutant = repeats(Echo(SimulatedNoise(5)), SPARSE, 1000)

    assert stats.chi2_contingency(table).pvalue > 1e-9
    assert mutant[0, 1] + mutant[1, 0] == 0
    assert stats.chi2_contingency(mutant).pvalue < 1e-9
