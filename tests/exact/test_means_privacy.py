"""Means, clipping bounds and clipped means cost epsilon and no more, by exact laws on small neighbours.

The noise that is judged is read off the running code by scripted noise; what the texts print, planted in the
same place, costs more.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.audit import ThresholdRule, goodness_of_fit, transcript_law, worst_loss
from onlineic.noise import SimulatedNoise
from onlineic.offline import auto_avg, clipping_bound, mean
from onlineic.offline.means import records_left
from onlineic.testing import ScriptedNoise
from support.laws import lap
from support.neighbours import replaced_records

TIGHT = 1 + 1e-9
LOW, HIGH = 3, 6  # the ends of the small range
VALUES = range(LOW, HIGH + 1)


def table(values, low=LOW, high=HIGH):
    return ic.PrivateData.from_records({"x": list(values)}, ic.Domain.of(x=range(low, high + 1)))


def added(n, low=LOW, high=HIGH):
    """Every pair of which one has a record more, in both directions."""
    for rest in itertools.combinations_with_replacement(range(low, high + 1), n):
        for x in range(low, high + 1):
            yield (*rest, x), rest
            yield rest, (*rest, x)


def scales(release, *arguments, **options):
    """Scales asked for, in order, by a release under noise of zeros."""
    noise = ScriptedNoise([0] * 400)
    release(*arguments, noise=noise, **options)
    return [Fraction(scale) for _, scale, _ in noise.scales]


# The mean: S + Z with S exact, so its loss is |S - S'| / scale


def mean_loss(epsilon, scale=None):
    worst = 0
    for here, there in replaced_records(3, VALUES):
        exact = [
            mean(table(values), "x", epsilon, noise=ScriptedNoise([0])).total for values in (here, there)
        ]
        worst = max(worst, abs(exact[0] - exact[1]))
    return float(worst / (scale or scales(mean, table([LOW]), "x", epsilon)[0]))


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
def test_mean_costs_epsilon_exactly(epsilon):
    loss = mean_loss(epsilon)

    assert loss == pytest.approx(epsilon, rel=1e-4)
    assert loss <= epsilon * TIGHT


def test_mutant_of_the_mean_with_the_sensitivity_of_one_count_costs_the_range():
    assert mean_loss(1.0, scale=Fraction(1)) == pytest.approx(HIGH - LOW)


# The clipping bound: the law of the index, by the law of a threshold mechanism


def rule(epsilon, threshold=0):
    """Threshold and noise of the running code."""
    # one record above the only candidate, so that it fires at 1 + threshold and no less
    first, second = scales(clipping_bound, table([HIGH]), "x", epsilon, bounds=[LOW + 1])
    assert first == second
    return ThresholdRule(threshold, lap(first), lap(second))


def index_law(drawn, values, bounds):
    """P(index = i), i = None under the last place."""
    law = transcript_law(drawn, [-sum(x > b for x in values) for b in bounds])
    texts = ["0" * place + "1" for place in range(len(bounds))] + ["0" * len(bounds)]
    return np.array([law.get(text, 0.0) for text in texts])


def bound_loss(drawn, pairs, bounds):
    """Largest |ln P/P'| of the index."""
    return max(
        float(np.abs(np.log(index_law(drawn, here, bounds) / index_law(drawn, there, bounds))).max())
        for here, there in pairs
    )


def far_above(n=60, top=40):
    """Neighbours whose records lie above all of many candidates, or below: where rare events are."""
    yield (top,) * n, (top,) * (n - 1) + (0,)
    yield (top,) * (n - 1) + (0,), (top,) * n
    yield (0,) * n, (0,) * (n - 1) + (top,)
    yield (0,) * (n - 1) + (top,), (0,) * n


def test_planted_draws_fire_as_the_rule_says():
    """The law that is judged below is the law of what runs: every small script, compared."""
    bounds, values = [4, 5], (3, 5, 6, 6)  # 3 and 2 above
    for threshold, rho, *nu in itertools.product((0, -2), (-3, 0, 2), range(-3, 7), range(-3, 7)):
        noise = ScriptedNoise([rho, *nu])
        found = clipping_bound(table(values), "x", 1.0, bounds=bounds, threshold=threshold, noise=noise)
        fired = [z - above >= threshold + rho for z, above in zip(nu, (3, 2), strict=True)]

        assert ((bounds[0] if fired[0] else bounds[1]), any(fired)) == (found.bound, found.hit)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("threshold", [0, -2])
def test_clipping_bound_costs_at_most_epsilon_on_all_small_neighbours(epsilon, threshold):
    bounds = range(LOW + 1, HIGH + 1)
    for n in (1, 2, 4):
        assert (
            bound_loss(rule(epsilon, max(threshold, -n)), replaced_records(n, VALUES), bounds)
            <= epsilon * TIGHT
        )


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_clipping_bound_costs_epsilon_exactly_where_events_are_rare(epsilon):
    drawn = rule(epsilon)
    loss = bound_loss(drawn, far_above(), range(1, 41))

    assert 0.99 * epsilon < loss <= epsilon * TIGHT
    assert worst_loss(drawn, monotone=True) == pytest.approx(epsilon, rel=1e-3)


def test_all_counts_above_move_the_same_way_so_that_half_the_test_noise_is_enough():
    """3.7 calls them not monotone: under replaced records each pair of neighbours moves them one way."""
    for here, there in replaced_records(4, VALUES):
        moves = {sum(x > b for x in there) - sum(x > b for x in here) for b in range(LOW - 1, HIGH + 2)}

        assert moves <= {0, 1} or moves <= {0, -1}
    # the same noise on queries that move both ways: 1/2 + 2/2
    assert worst_loss(rule(1.0)) == pytest.approx(1.5, rel=1e-3)


def test_noise_of_the_book_spends_three_quarters_of_epsilon_here():
    drawn = ThresholdRule(0, lap(2), lap(4))

    assert bound_loss(drawn, far_above(), range(1, 41)) <= 0.75 * TIGHT
    assert worst_loss(drawn, monotone=True) == pytest.approx(0.75, rel=1e-3)


def test_text_slip_query_noise_of_4_over_3_epsilon_fails_the_same_audit():
    """3.1: Lap(4/(3 eps)) costs 1/2 + 3/4 of epsilon even here, where all counts move one way."""
    drawn = ThresholdRule(0, lap(2), lap(Fraction(4, 3)))
    loss = bound_loss(drawn, far_above(), range(1, 41))

    assert loss > 1.2
    assert worst_loss(drawn, monotone=True) == pytest.approx(1.25, rel=1e-3)


# The mean of clipped values: index, then sum and count with independent noise


def average_loss(pairs, drawn, sum_scales, count_scale=None, low=LOW, high=HIGH):
    """Largest |ln| of the joint law of index, sum and count: given the index, the noises are independent."""
    bounds = range(low + 1, high + 1)
    kept = [*bounds, high]  # the last place: no hit
    worst = 0.0
    for here, there in pairs:
        ratio = np.abs(np.log(index_law(drawn, here, bounds) / index_law(drawn, there, bounds)))
        for bound, loss in zip(kept, ratio, strict=True):
            moved = [sum(min(x, bound) - low for x in values) for values in (here, there)]
            total = loss + abs(moved[0] - moved[1]) / sum_scales[bound]
            if count_scale is not None:
                total += abs(len(here) - len(there)) / count_scale
            worst = max(worst, float(total))
    return worst


def running(epsilon, count, low=LOW, high=HIGH):
    """(rule, scale of the sum by bound, scale of the count) of the running code, read off by scripts."""
    sums = {}
    for bound in range(low + 1, high + 1):
        noise = ScriptedNoise([0, 9, 0, 0, 0])  # the only candidate fires
        auto_avg(table([low], low, high), "x", epsilon, bounds=[bound], count=count, noise=noise)
        found = [Fraction(scale) for _, scale, _ in noise.scales]
        sums[bound] = found[2]
    return ThresholdRule(0, lap(found[0]), lap(found[1])), sums, found[3] if count == "noisy" else None


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_auto_avg_costs_at_most_epsilon(epsilon, n):
    assert average_loss(replaced_records(n, VALUES), *running(epsilon, "public")) <= epsilon * TIGHT


def test_auto_avg_costs_epsilon_exactly_where_events_are_rare():
    loss = average_loss(far_above(), *running(1.0, "public", 0, 40), 0, 40)

    assert 0.99 < loss <= TIGHT


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_texts_three_way_split_is_private_for_added_and_removed_records_too(n):
    drawn = running(0.9, "noisy")

    assert average_loss(replaced_records(n, VALUES), *drawn) <= 0.9 * TIGHT
    assert average_loss(added(n), *drawn) <= 0.9 * TIGHT


def test_mutant_with_an_uncharged_noisy_count_fails_for_added_records():
    """Halves for bound and sum, and the count at another half that nobody pays for."""
    drawn, sums, _ = running(1.0, "public", 0, 40)
    few = (0,) * 59
    pairs = [((*few, 40), few), (few, (*few, 40))]

    assert average_loss(pairs, drawn, sums, None, 0, 40) <= TIGHT
    assert average_loss(pairs, drawn, sums, 2.0, 0, 40) > 1.45


def test_mutant_with_the_sensitivity_of_the_clipped_sum_taken_as_1_fails():
    drawn, sums, _ = running(1.0, "public")
    planted = dict.fromkeys(sums, Fraction(2))

    assert average_loss(replaced_records(2, VALUES), drawn, planted) > 1.5


# Drawn releases follow the laws that were judged


@pytest.mark.statistical
@pytest.mark.parametrize("threshold", [0, -2])
def test_drawn_bounds_follow_the_exact_law(threshold):
    values, bounds, runs = (3, 4, 5, 6, 6), range(LOW + 1, HIGH + 1), 5000
    noise, data = SimulatedNoise(20261121), table(values)
    counts = {}
    for _ in range(runs):
        found = clipping_bound(data, "x", 0.8, threshold=threshold, noise=noise)
        text = f"{found.bound} {found.hit}"
        counts[text] = counts.get(text, 0) + 1
    names = [f"{b} True" for b in bounds] + [f"{HIGH} False"]

    def fit(drawn):
        return goodness_of_fit(counts, dict(zip(names, index_law(drawn, values, bounds), strict=True)))

    right = rule(0.8, threshold)
    assert fit(right) > 1e-9
    assert fit(ThresholdRule(threshold, right.threshold_noise, lap(2 * right.query_noise.scale))) < 1e-9
    assert fit(ThresholdRule(threshold - 1, right.threshold_noise, right.query_noise)) < 1e-9


def test_records_left_holds_exactly_and_is_nearly_met():
    """As many candidates as there are, with m records above each: a hit among them is the failure."""
    epsilon, beta, top = 0.5, 0.05, 40
    left = records_left(top, epsilon, beta)
    drawn = rule(epsilon)
    chance = {}
    for above in (left, left + 1):  # top - 1 candidates have so many above, the largest value none
        law = index_law(drawn, [0] * 5 + [top] * above, range(1, top + 1))
        chance[above] = math.fsum(law[: top - 1])

    assert chance[left + 1] <= beta  # a failure: more than `left` above
    assert chance[left + 1] > 0.5 * beta  # the union bound gives half of it away: tests share one rho


def test_the_printed_bound_on_records_left_is_met_by_nothing():
    """3.24: 8 ln(2K/beta)/epsilon holds, with a failure probability a thousand times below beta."""
    epsilon, beta, top = 0.5, 0.05, 40
    printed = math.ceil(8 * math.log(2 * top / beta) / epsilon)
    law = index_law(rule(epsilon), [0] * 5 + [top] * printed, range(1, top + 1))

    assert printed > 2.5 * records_left(top, epsilon, beta)
    assert math.fsum(law[: top - 1]) < 1e-6
