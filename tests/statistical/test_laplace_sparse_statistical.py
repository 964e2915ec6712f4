"""Drawn transcripts and numbers of the shipped mechanisms follow the exact laws; planted errors do not.

Gates of 1e-9 on both sides. Continuous limits are used at scales of 10^4 grid units and more.
"""

import math
from collections import Counter
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy import stats

from onlineic.audit import ThresholdRule, black_box_epsilon, goodness_of_fit, transcript_law
from onlineic.bounds import laplace_bound, numeric_sparse_alpha
from onlineic.domain import Domain
from onlineic.mechanisms import LaplaceMechanism, NoisyMax
from onlineic.noise import SimulatedNoise
from onlineic.noise.laws import DiscreteLaplace
from onlineic.queries import where
from onlineic.sparse import Hit, LaplaceSparse, Sparse
from support.laws import lap, two_sided

pytestmark = pytest.mark.statistical

GATE = 1e-9
STREAM = [0, 1, 0, 3, -2, 5, 0, 1]
QUERY = where(sex="F").bind(Domain.of(sex=["F", "M"]), 0)


def rule_of(sparse):
    redraw = lap(sparse.threshold_scale)
    return ThresholdRule(
        sparse.threshold, redraw, lap(sparse.query_scale), sparse.cutoff, redraw, pair=sparse.pair
    )


def drawn(sparse, runs, seed):
    """Transcripts of the array path, one call for each run of easy answers."""
    noise, gaps, ones = SimulatedNoise(seed), np.array(STREAM), np.ones(len(STREAM), np.int64)
    counts = Counter()
    for _ in range(runs):
        state, place, text = sparse.init(), 0, ""
        while place < len(gaps) and state.hits < sparse.cutoff:
            state, easy, hit = sparse.step_many(state, gaps[place:], ones[place:], noise)
            text += "0" * easy + ("1+-"[hit.side] if hit else "")
            place += easy + (hit is not None)
        counts[text] += 1
    return counts


def law_of_run(sparse, **changes):
    stream = STREAM if sparse.pair else [abs(gap) for gap in STREAM]
    return transcript_law(attrs.evolve(rule_of(sparse), **changes), stream)


@pytest.mark.parametrize("pair", [False, True])
def test_transcripts_of_the_array_path_fit_their_exact_law_and_no_mutant(pair):
    """safety 5.3: chi-square over all transcripts; coarse errors here, fine ones in the audit below."""
    sparse = LaplaceSparse(1000, 3.0, 3, 3, pair=pair)
    counts = drawn(sparse, 10_000, seed=53)
    s, two = sparse.threshold_scale, sparse.query_scale
    mutants = [
        {"query_noise": lap(two / 2)},
        {"query_noise": lap(two * Fraction(7, 10))},
        {"threshold_noise": lap(s / 2), "redraw": lap(s / 2)},
        {"redraw": None},
        {"redraw": lap(s / 3)},
        {"threshold": sparse.threshold + 1},
    ]

    assert goodness_of_fit(counts, law_of_run(sparse)) > GATE
    assert [0.0] * len(mutants) == pytest.approx(
        [goodness_of_fit(counts, law_of_run(sparse, **changes)) for changes in mutants], abs=GATE
    )
    assert 0.0 == goodness_of_fit(counts, law_of_run(sparse, cutoff=2))


@pytest.mark.audit
@pytest.mark.parametrize("pair", [False, True])
def test_scales_ten_percent_off_are_refused(pair):
    sparse = LaplaceSparse(1000, 3.0, 3, 3, pair=pair)
    counts = drawn(sparse, 500_000, seed=54)
    s, two = (scale * Fraction(9, 10) for scale in (sparse.threshold_scale, sparse.query_scale))

    assert goodness_of_fit(counts, law_of_run(sparse)) > GATE
    assert goodness_of_fit(counts, law_of_run(sparse, query_noise=lap(two))) < GATE
    assert goodness_of_fit(counts, law_of_run(sparse, threshold_noise=lap(s), redraw=lap(s))) < GATE


def test_two_hits_in_a_row_at_the_threshold_are_a_quarter_not_seven_in_twentyfour():
    """Oracle 4: value = T; the kept threshold would give 7/24."""
    runs, noise = 8000, SimulatedNoise(4)
    sparse = Sparse(2e-4, 0, 2)
    first = both = 0
    for _ in range(runs):
        state, one = sparse.step(sparse.init(), 0, noise)
        first += one
        both += one and sparse.step(state, 0, noise)[1]

    assert two_sided(stats.binom(runs, 0.5), first) > GATE
    assert two_sided(stats.binom(runs, 0.25), both) > GATE
    assert two_sided(stats.binom(runs, 7 / 24), both) < GATE


def test_number_has_fresh_noise_also_given_a_hit():
    """Oracle 5: value = T - 2s: P(hit) = .22270; noise symmetric given a hit, where nu would be negative at
    .05063 and 3.2069 s on average.
    """
    runs, noise = 6000, SimulatedNoise(5)
    sparse = LaplaceSparse(10**9, 2.25e-4, 10**6, 1)
    s = float(sparse.threshold_scale)
    gap = sparse.threshold - round(2 * s)
    numbers = []
    for _ in range(runs):
        _, hit = sparse.step(sparse.init(), gap, 1, noise)
        if hit:
            number = sparse.measure(hit, QUERY, 0, gap, noise).values[0]
            numbers.append(round(number * sparse.n) - gap)
    negative = sum(number < 0 for number in numbers)
    deviation = 4 * s * math.sqrt(2 / len(numbers))

    assert s == pytest.approx(10_000, rel=1e-8)
    assert two_sided(stats.binom(runs, 0.22270), len(numbers)) > GATE
    assert two_sided(stats.binom(len(numbers), 0.5), negative) > GATE
    assert two_sided(stats.binom(len(numbers), 0.05063), negative) < GATE
    assert abs(np.mean(numbers)) < 6.2 * deviation < 3.2069 * s


def test_laplace_covers_with_probability_one_minus_beta_exactly():
    """Oracle 7: two-sided, so that too much noise fails as well."""
    runs, beta = 100_000, 0.05
    mechanism = LaplaceMechanism(1.0, 2**14)
    noise = np.abs(mechanism.release(np.zeros(runs, np.int64), SimulatedNoise(7)))
    misses = int((noise > laplace_bound(1.0, beta, 2**14)).sum())

    assert two_sided(stats.binom(runs, beta), misses) > GATE
    assert (
        two_sided(stats.binom(runs, beta), int((0.9 * noise > laplace_bound(1.0, beta, 2**14)).sum())) < GATE
    )
    assert (
        two_sided(stats.binom(runs, beta), int((1.1 * noise > laplace_bound(1.0, beta, 2**14)).sum())) < GATE
    )


@pytest.mark.parametrize("branch", ["pure", "repaired"])
def test_a_hundred_numbers_stay_within_alpha_and_the_printed_constants_do_not(branch):
    """Oracle 8: c = k = 100, delta = 1e-6, beta = .05; printed constants fail with probability .560."""
    runs, c, delta, beta = 100, 100, 1e-6, 0.05
    sparse = LaplaceSparse(10**6, 1.0, 10**4, c, delta=delta, branch=branch)
    alpha = numeric_sparse_alpha(c, c, 1.0, delta, beta, 1, branch)
    logs = math.log(c) + math.log(4 * c / beta)
    root = math.sqrt(512) + 1
    printed_alpha = root * logs * math.sqrt(c * math.log(2 / delta))
    printed_scale = root * math.sqrt(8 * c * math.log(2 / delta))
    noise = SimulatedNoise(8)
    worst = np.array(
        [
            max(
                abs(round(sparse.measure(Hit(), QUERY, 0, 500_000, noise).values[0] * 10**6) - 500_000)
                for _ in range(c)
            )
            for _ in range(runs)
        ]
    )
    failures = int((worst > alpha).sum())
    printed_failures = int((worst * printed_scale / float(sparse.number_scale) > printed_alpha).sum())
    share = 1 - (1 - DiscreteLaplace(sparse.number_scale).tail(math.floor(alpha) + 1)) ** c

    assert share == pytest.approx(1.2e-4, abs=1e-5)
    assert stats.binom.sf(failures - 1, runs, share) > GATE
    assert two_sided(stats.binom(runs, 0.560), printed_failures) > GATE
    assert stats.binom.sf(printed_failures - 1, runs, beta / 2) < GATE


def adaptive_failures(sparse, margin, tests, runs, seed):
    """Runs in which an analyst who knows rho makes an easy value hit: it waits for a low threshold."""
    noise, failures = SimulatedNoise(seed), 0
    sure, low = 100 * int(sparse.query_scale), -round(math.log(sparse.cutoff / 3) * sparse.threshold_scale)
    for _ in range(runs):
        state, left = sparse.init(), tests
        gap = sparse.threshold - math.ceil(margin) - 1
        while left and state.hits < sparse.cutoff:
            state, hit = sparse.step(state, gap, 1, noise)
            left -= 1
            if hit:
                failures += 1
                break
            if state.threshold_noise > low and state.hits < sparse.cutoff - 1:
                state, _ = sparse.step(state, sparse.threshold + sure, 1, noise)  # buys another threshold
                left -= 1
                continue
            chunk = np.full(left, gap)
            state, _, hit = sparse.step_many(state, chunk, np.ones(left, np.int64), noise)
            failures += hit is not None
            break
    return failures


def test_adaptive_margin_holds_against_an_analyst_who_knows_the_threshold():
    """Oracle 30: c = 100, k = 2000; the margin of one comparison, 2s ln(2k/(3 beta)), fails."""
    runs, beta, tests = 250, 0.05, 2000
    sparse = LaplaceSparse(10**9, 1.0, 10**6, 100)
    s = float(sparse.threshold_scale)
    margin = sparse.easy_radius(beta, tests) * sparse.n - sparse.threshold - 1
    one_comparison = 2 * s * math.log(2 * tests / (3 * beta))

    failures = adaptive_failures(sparse, margin, tests, runs, 30)
    naive = adaptive_failures(sparse, one_comparison, tests, runs, 31)

    assert stats.binom.sf(failures - 1, runs, beta) > GATE
    assert stats.binom.sf(naive - 1, runs, beta) < GATE


def test_noisy_max_is_drawn_from_its_law():
    """Oracle 28, shipped code: scores 3, 5, 4 at scale 4; a scale of half as much is refused."""
    runs, scores = 5000, np.array([3, 5, 4])
    mechanism, noise = NoisyMax(0.5), SimulatedNoise(28)
    counts = Counter(str(mechanism.select(scores, noise)) for _ in range(runs))

    def law(scale):
        q = math.exp(-1 / scale)
        z = np.indices((90,) * 3).reshape(3, -1)
        mass = (1 - q) ** 3 * q ** z.sum(axis=0)
        return {str(i): float(p) for i, p in enumerate(np.bincount(np.argmax(z + scores[:, None], 0), mass))}

    assert goodness_of_fit(counts, law(4.0)) > GATE
    assert goodness_of_fit(counts, law(2.0)) < GATE


def test_black_box_bound_stays_below_the_claim_and_flags_a_missing_noise():
    runs, noise = 6000, SimulatedNoise(56)
    sparse = Sparse(1.0, 0, 1)

    def shipped(values):
        state, text = sparse.init(), ""
        for value in values:
            if state.hits < 1:
                state, hit = sparse.step(state, value, noise)
                text += str(int(hit))
        return text

    def without_query_noise(values):  # Lyu, Su & Li (2017), Algorithm 5
        rho = int(noise.discrete_laplace(sparse.threshold_scale, 1)[0])
        hits = "".join(str(int(value >= rho)) for value in values)
        return hits[: hits.find("1") + 1] or hits

    def bound(mechanism):
        samples = [[mechanism(values) for _ in range(runs)] for values in ([0, 1, 0], [1, 0, 1])]
        return black_box_epsilon(*samples, alpha=GATE)

    assert bound(shipped) < 1.0
    assert bound(without_query_noise) > 1.5
