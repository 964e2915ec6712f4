"""One-shot releases: scales, exact laws and error bounds, each constant through scripted noise."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from onlineic.accounting import gaussian_delta, gaussian_mu, zcdp_rho
from onlineic.bounds import laplace_bound
from onlineic.errors import InvalidParameterError
from onlineic.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    NoisyMax,
    discrete_gaussian_delta,
    exponential_bound,
)
from onlineic.noise import SimulatedNoise
from onlineic.testing import ScriptedNoise
from support.laws import exponential_law


def chosen_law(scores, scale, ties_first=True):
    """P(index wins) of score + geometric noise, by summing over the winner's noise."""
    q = math.exp(-1 / scale)
    top = max(scores) + np.arange(0, math.ceil(40 * scale))  # the winner's noisy score is at least the best
    law = []
    for index, score in enumerate(scores):
        mass = (1 - q) * q ** (top - score)
        for other, rival in enumerate(scores):
            if other != index:  # an earlier rival wins ties
                room = top - rival + (1 if other > index else 0)
                mass = mass * np.where(room > 0, 1 - q ** np.maximum(room, 0), 0)
        law.append(mass.sum())
    return np.array(law)


def test_laplace_asks_for_one_draw_a_value_at_sensitivity_over_epsilon():
    noise = ScriptedNoise([3, -4])

    released = LaplaceMechanism(0.5, 4).release(np.array([10, 20]), noise)

    assert [13, 16] == released.tolist()
    assert [("discrete_laplace", Fraction(8), 2)] == noise.scales


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 7.7])
@pytest.mark.parametrize("sensitivity", [1, 3, 2**20])
def test_scales_are_never_below_the_exact_ones(epsilon, sensitivity):
    laplace, noisy_max = LaplaceMechanism(epsilon, sensitivity), NoisyMax(epsilon, sensitivity)

    assert laplace.scale * Fraction(epsilon) >= sensitivity
    assert noisy_max.scale * Fraction(epsilon) >= 2 * sensitivity
    assert float(laplace.scale * Fraction(epsilon)) == pytest.approx(sensitivity, rel=2e-4)


def test_numpy_integers_do_not_overflow_in_a_scale():
    assert LaplaceMechanism(1.0, 100).scale == LaplaceMechanism(1.0, np.int8(100)).scale
    assert NoisyMax(1.0, 100).scale == NoisyMax(1.0, np.int8(100)).scale


def test_laplace_tail_is_the_sum_of_the_mass_function():
    q = math.exp(-1)
    tail = sum(2 * (1 - q) / (1 + q) * q**z for z in range(4, 200))

    assert LaplaceMechanism(1.0).tail(3) == pytest.approx(tail, rel=1e-12)


def test_laplace_radius_is_the_least_that_covers_and_meets_the_continuous_bound_at_a_fine_grid():
    fine, coarse = LaplaceMechanism(1.0, 2**20), LaplaceMechanism(1.0)

    assert coarse.tail(coarse.radius(0.05)) <= 0.05 < coarse.tail(coarse.radius(0.05) - 1)
    assert fine.tail(fine.radius(0.05)) == pytest.approx(0.05, rel=2e-6)
    assert fine.radius(0.05) / 2**20 == pytest.approx(laplace_bound(1.0, 0.05), rel=2e-6)
    assert fine.radius(0.05, 10) / 2**20 == pytest.approx(math.log(200), rel=2e-6)


def test_gaussian_asks_for_its_sigma():
    noise = ScriptedNoise([-7])
    mechanism = GaussianMechanism(1.0, 1e-6, 1024)

    released = mechanism.release(100, noise)

    assert [93] == released.tolist()
    assert [("discrete_gaussian", mechanism.sigma, 1)] == noise.scales


@pytest.mark.parametrize("budget", [(1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-5), (0.01, 0.3), (3.0, 0.01)])
@pytest.mark.parametrize("sensitivity", [1, 7, 500])
def test_gaussian_delta_by_brute_force_is_within_budget_and_one_sigma_less_is_not(budget, sensitivity):
    epsilon, delta = budget
    sigma = GaussianMechanism(epsilon, delta, sensitivity).sigma

    def brute(sigma):
        x = np.arange(-40 * sigma - sensitivity, 40 * sigma + sensitivity + 1.0)
        law = np.exp(-0.5 * (x / sigma) ** 2)
        moved = np.exp(-0.5 * ((x + sensitivity) / sigma) ** 2)
        return np.maximum(law - math.exp(epsilon) * moved, 0).sum() / law.sum()

    assert brute(sigma) <= delta
    assert discrete_gaussian_delta(sigma, sensitivity, epsilon) == pytest.approx(brute(sigma), rel=1e-6)
    if sigma > 1:
        assert brute(math.floor(0.99 * sigma) if sigma > 100 else sigma - 1) > delta


def test_bound_on_delta_above_the_summed_range_is_an_upper_bound_and_close():
    sigma, shift = 5000, 1300
    x = np.arange(-40 * sigma, 40 * sigma + 1.0)
    law = np.exp(-0.5 * (x / sigma) ** 2)
    moved = np.exp(-0.5 * ((x + shift) / sigma) ** 2)
    exact = np.maximum(law - math.exp(1) * moved, 0).sum() / law.sum()
    bound = discrete_gaussian_delta(sigma, shift, 1.0)

    assert exact <= bound <= 1.01 * exact
    assert gaussian_delta(shift / sigma, 1.0) == pytest.approx(exact, rel=1e-3)


def test_gaussian_of_several_moved_values_pays_their_squared_sum():
    one, two = GaussianMechanism(1.0, 1e-6, 2**12), GaussianMechanism(1.0, 1e-6, 2**12, moved=2)

    assert math.sqrt(2) <= two.sigma / one.sigma <= math.sqrt(2) * 1.1
    # zCDP: rho(1, 1e-6) = 0.0243560
    assert two.sigma == pytest.approx(2**12 / math.sqrt(0.0243560), rel=1e-4)


@pytest.mark.parametrize("sigma_of", [(1.0, 1e-6, 1), (1.0, 1e-6, 40)])
def test_gaussian_radius_covers(sigma_of):
    mechanism = GaussianMechanism(*sigma_of)
    x = np.arange(-40 * mechanism.sigma, 40 * mechanism.sigma + 1.0)
    law = np.exp(-0.5 * (x / mechanism.sigma) ** 2)
    radius = mechanism.radius(0.05)

    assert law[np.abs(x) > radius].sum() / law.sum() <= 0.05
    assert law[np.abs(x) > radius - 2].sum() / law.sum() > 0.05


def test_noisy_max_takes_the_lowest_index_on_ties():
    noise = ScriptedNoise([0, 2, 5, 0])

    assert 1 == NoisyMax(1.0, 3).select(np.array([1, 5, 2, 7]), noise)
    assert [("geometric", Fraction(6), 4)] == noise.scales


def test_noisy_max_costs_epsilon_and_half_the_scale_costs_twice_as_much():
    """Oracle 28: worst log-ratio by enumeration over 300 random neighbours and the extreme ones."""
    rng = np.random.default_rng(28)
    epsilon = 0.5
    scale = float(NoisyMax(epsilon).scale)
    pairs = [(np.array([0, 0]), np.array([-1, 1])), (np.array([9, 0, 0]), np.array([-1, 1, 1]))]
    pairs += [
        (rng.integers(0, 8, size), rng.integers(-1, 2, size)) for size in rng.integers(2, 6, 300).tolist()
    ]

    def worst(scale, moves):
        return max(
            np.abs(np.log(chosen_law(u, scale) / chosen_law(u + step, scale))).max() for u, step in moves
        )

    same_way = [(u, np.abs(step)) for u, step in pairs]

    assert scale == 4.0
    assert worst(scale, pairs) == pytest.approx(epsilon, rel=2e-4)
    assert worst(scale, pairs) <= epsilon * (1 + 1e-9)
    assert worst(scale / 2, pairs) == pytest.approx(2 * epsilon, rel=2e-4)
    assert worst(scale / 2, same_way) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-3])
def test_noisy_max_loses_at_most_its_radius_and_less_than_the_exponential_mechanism(beta):
    mechanism, candidates = NoisyMax(1.0, 5), 30
    radius = mechanism.radius(candidates, beta)
    scores = np.array([0] + [-radius - 1] * (candidates - 1))  # the worst: all others just too bad
    exponential = np.exp(scores / float(mechanism.scale))

    assert 1 - chosen_law(scores, float(mechanism.scale))[0] <= beta
    assert radius < exponential_bound(1.0, candidates, beta, 5)
    assert 1 - exponential[0] / exponential.sum() <= (candidates / 1) * math.exp(-(radius + 1) / 10)


def test_noisy_max_radius_is_zero_for_one_candidate_and_matches_the_formula():
    q = math.exp(-1 / 20000)
    wide = NoisyMax(1.0, 10_000)

    assert 0 == wide.radius(1, 0.05)
    assert wide.radius(101, 0.05) == pytest.approx(20000 * math.log(100 / ((1 + q) * 0.05)), abs=1.5)


def test_exponential_bound_is_the_theorem():
    assert exponential_bound(0.5, 100, 0.05, 2.0, best=4) == pytest.approx(8 * math.log(500), rel=1e-12)


def test_exponential_mechanism_asks_for_one_word_and_walks_through_the_weights():
    """Weights 1, .779 and .607: the uniform number is cut at .419 and .746."""
    mechanism, scores = ExponentialMechanism(0.5), np.array([9, 8, 7])
    words = [0, 2**62, 2**63, 2**64 - 1]
    noise = ScriptedNoise([*words, 0])

    drawn = [mechanism.select(scores, noise) for _ in words]

    assert Fraction(4) == mechanism.scale
    assert [0, 0, 1, 2] == drawn
    assert [("words", None, 1)] * 4 == noise.scales


def test_exponential_probabilities_are_the_weights_and_ignore_a_common_shift():
    mechanism = ExponentialMechanism(0.5, 2)
    law = mechanism.probabilities(np.array([3, 0, 5]))
    weights = [math.exp(score * 0.5 / 4) for score in (3, 0, 5)]

    assert law.tolist() == pytest.approx([weight / sum(weights) for weight in weights], rel=1e-14)
    assert law.tolist() == mechanism.probabilities(np.array([3, 0, 5]) - 2**62).tolist()
    assert [0.0, 1.0] == mechanism.probabilities(np.array([-(2**63), 2**63 - 1])).tolist()


def test_scores_farther_apart_than_int64_do_not_wrap():
    assert 1 == ExponentialMechanism(1.0).select(np.array([-(2**63), 2**63 - 1]), ScriptedNoise([2**63]))


@pytest.mark.parametrize("best", [1, 7])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_exponential_radius_is_met_exactly_by_the_worst_scores_and_is_below_theorem_3_11(epsilon, beta, best):
    """P(loss > r) <= beta, and no smaller r will do: at r - 1 the worst scores fail more often than beta."""
    mechanism, candidates = ExponentialMechanism(epsilon, 3), 40
    radius = mechanism.radius(candidates, beta, best)

    def failing(radius):
        scores = np.array([0] * best + [-radius - 1] * (candidates - best))
        return mechanism.probabilities(scores)[best:].sum()

    assert failing(radius) <= beta
    assert radius == 0 or failing(radius - 1) > beta
    assert radius <= exponential_bound(epsilon, candidates, beta, 3, best)


def test_exponential_radius_is_zero_where_all_candidates_are_best():
    assert 0 == ExponentialMechanism(1.0).radius(1, 0.05) == ExponentialMechanism(1.0).radius(5, 0.05, best=5)


def test_exponential_mechanism_is_priced_with_an_eighth_of_epsilon_squared():
    assert ExponentialMechanism(0.5, 7).zcdp == Fraction(1, 32)


def test_coarse_noisy_maximum_can_lose_more_than_the_exponential_mechanism_and_a_fine_one_does_not():
    """Two candidates at 0, then the best at 1, epsilon 2: ties go to the lowest index, not to the best."""
    scores = np.array([0, 0, 1])
    exponential = ExponentialMechanism(2.0).probabilities(scores)

    coarse, fine = chosen_law(scores, 1.0), chosen_law(64 * scores, 64.0)

    assert coarse[2] < exponential[2] < fine[2]


@pytest.mark.statistical
def test_exact_draws_agree_with_gumbel_max_and_ten_percent_of_scale_show():
    """Gumbel-max is the same law in floats; the sum of the scores is sufficient for the scale."""
    mechanism, scores = ExponentialMechanism(0.5), np.array([0, 3, 9, 12, 4, 20, 17, 11])
    generator, noise = np.random.default_rng(11), SimulatedNoise(20261121)
    size = 10_000
    exact = np.array([mechanism.select(scores, noise) for _ in range(size)])
    gumbel = np.argmax(scores / 4.0 + generator.gumbel(size=(size, scores.size)), axis=1)

    def p_value(scale):
        law = exponential_law(scores, scale)
        mean = law @ scores
        spread = math.sqrt(law @ (scores - mean) ** 2 / size)
        return 2 * stats.norm.sf(abs(scores[exact].mean() - mean) / spread)

    seen = np.bincount(exact, minlength=scores.size)
    both = np.array([seen, np.bincount(gumbel, minlength=scores.size)])

    assert stats.chisquare(seen, size * mechanism.probabilities(scores)).pvalue > 1e-9
    assert stats.chi2_contingency(both).pvalue > 1e-9
    assert p_value(4.0) > 1e-9
    assert max(p_value(3.6), p_value(4.4)) < 1e-9


@pytest.mark.parametrize(
    "call",
    [
        lambda: LaplaceMechanism(0.0),
        lambda: LaplaceMechanism(math.nan),
        lambda: LaplaceMechanism(1.0, 0),
        lambda: LaplaceMechanism(1.0).release(np.array([0.5]), ScriptedNoise([0])),
        lambda: LaplaceMechanism(1.0).release(np.zeros((2, 2), np.int64), ScriptedNoise([0] * 4)),
        lambda: LaplaceMechanism(1.0).radius(0.0),
        lambda: GaussianMechanism(1.0, 0.0),
        lambda: GaussianMechanism(1.0, 1e-6, 2**26),
        lambda: GaussianMechanism(1.0, 1e-6, moved=0),
        lambda: NoisyMax(1.0).select(np.array([], np.int64), ScriptedNoise([])),
        lambda: NoisyMax(1.0).select(np.array([True]), ScriptedNoise([0])),
        lambda: exponential_bound(1.0, 3, 0.05, best=4),
        lambda: ExponentialMechanism(0.0),
        lambda: ExponentialMechanism(1.0, 0),
        lambda: ExponentialMechanism(1.0).select(np.array([], np.int64), ScriptedNoise([])),
        lambda: ExponentialMechanism(1.0).select(np.array([0.5]), ScriptedNoise([0])),
        lambda: ExponentialMechanism(1.0).radius(3, 0.05, best=4),
        lambda: ExponentialMechanism(1.0).radius(3, 1.0),
    ],
)
def test_bad_parameters_are_refused(call):
    with pytest.raises(InvalidParameterError):
        call()


def test_no_private_value_is_shown_by_a_refusal():
    with pytest.raises(InvalidParameterError) as refusal:
        LaplaceMechanism(1.0).release(np.array([123.456]), ScriptedNoise([0]))

    assert "123" not in str(refusal.value)


@pytest.mark.parametrize("moved", [2, 5, 100])
@pytest.mark.parametrize("epsilon", [1.0, 2.5, 9.0, 20.0])
def test_sigma_of_several_moved_values_costs_at_most_its_rho_and_one_less_does_not(epsilon, moved):
    """At a sigma of a few units one unit too little would be 10 % of epsilon."""
    rho = Fraction(zcdp_rho(epsilon, 1e-6))
    sigma = GaussianMechanism(epsilon, 1e-6, moved=moved).sigma

    assert Fraction(moved, 2 * sigma**2) <= rho
    assert sigma == 1 or Fraction(moved, 2 * (sigma - 1) ** 2) > rho


def test_sigma_is_raised_where_the_discrete_law_needs_more_than_the_continuous_one():
    """The least sigma of the continuous law, 22, exceeds delta = 1e-30 by .8 %."""
    sigma = GaussianMechanism(0.5, 1e-30).sigma
    continuous = math.ceil(1 / gaussian_mu(0.5, 1e-30))

    def exact(sigma):
        with localcontext(prec=60):
            law = {x: (Decimal(-x * x) / (2 * sigma**2)).exp() for x in range(-20 * sigma, 20 * sigma + 1)}
            gains = (law[x] - Decimal("0.5").exp() * law.get(x + 1, Decimal(0)) for x in law)
            return sum(max(gain, Decimal(0)) for gain in gains) / sum(law.values())

    assert exact(continuous) > Decimal("1e-30") >= exact(sigma)
