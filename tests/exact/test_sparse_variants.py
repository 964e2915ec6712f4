"""What Sparse of the texts really costs, fault by fault, by the audit that the right mechanisms pass.

The text releases the noisy value that was compared (fault A), and keeps one threshold for c hits with test
noise Lap(2c/epsilon), half of what a kept threshold needs (fault B). Mutants of AboveThreshold with other
query noise, and those of Lyu, Su & Li (2017), are in test_sparse_audit.
"""

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

from onlineic.audit import (
    Law,
    ThresholdRule,
    first_hit_delta,
    hockey_stick,
    observe,
    transcript_law,
    worst_loss,
)
from onlineic.errors import InvalidParameterError, SessionExhaustedError
from onlineic.sparse import AboveThreshold, Sparse, SparseState
from support.laws import lap

TIGHT = 1 + 1e-9
COPIES = (0, 1, 3, 10, 100, 1000)  # easy tests before each hit


def rule_of(mechanism):
    """The rule that the running code obeys."""
    return observe(mechanism.init(), mechanism.step)


def running(threshold, threshold_scale, query_scale, cutoff):
    """The rule of a variant as the text would run it: one threshold, kept."""

    def step(state, value, noise):
        if state.hits >= cutoff:
            raise SessionExhaustedError("asked after the last hit")
        rho = state.threshold_noise
        if rho is None:
            rho = int(noise.discrete_laplace(Fraction(threshold_scale), 1)[0]) if threshold_scale else 0
        fired = value + int(noise.discrete_laplace(Fraction(query_scale), 1)[0]) >= threshold + rho
        return SparseState(state.hits + fired, rho), bool(fired)

    return observe(SparseState(), step)


def kept(epsilon, cutoff):
    """Half of epsilon for the threshold, half for the tests: the right one beside the text's."""
    return running(60, 2 / Fraction(epsilon), 4 * cutoff / Fraction(epsilon), cutoff)


def printed(epsilon, cutoff):
    """The same with the text's test noise 2c/epsilon: fault B."""
    return running(60, 2 / Fraction(epsilon), 2 * cutoff / Fraction(epsilon), cutoff)


def private(rule, epsilon, released="bit"):
    """THE check: no event of the family has a larger loss than was claimed."""
    return worst_loss(rule, released=released, copies=COPIES) <= epsilon * TIGHT


# The right mechanisms


@pytest.mark.parametrize(
    ("epsilon", "cutoff"), [(0.3, 1), (0.3, 2), (1.0, 1), (1.0, 3), (1.0, 10), (2.0, 2), (2.0, 10)]
)
def test_right_mechanisms_pass_and_cost_their_epsilon_exactly(epsilon, cutoff):
    rules = {
        "restarts": rule_of(Sparse(epsilon, 60, cutoff)),
        "optimal": rule_of(Sparse(epsilon, 60, cutoff, allocation="optimal")),
        "half and half": kept(epsilon, cutoff),
    }

    for rule in rules.values():
        assert private(rule, epsilon)
        assert worst_loss(rule, copies=COPIES) == pytest.approx(epsilon, rel=2e-3)


def test_the_optimal_allocation_is_one_kept_threshold_and_the_audit_reads_it_off_the_code():
    sparse = Sparse(1.0, 60, 3, allocation="optimal")
    b1, b2 = sparse.threshold_scale, sparse.query_scale

    assert ThresholdRule(60, lap(b1), lap(b2), 3) == rule_of(sparse)
    assert float(b1) == pytest.approx(1 + 6 ** (2 / 3), rel=1e-4)
    assert float(b2) == pytest.approx(6 * (1 + 6 ** (-2 / 3)), rel=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"cutoff": 4},  # one hit too many
        {"query_noise": lap(Fraction(78, 20))},  # the halving that only monotone queries allow
        {"query_noise": lap(Fraction(78, 10) * Fraction(95, 100))},
        {"threshold_noise": lap(Fraction(43, 10) * Fraction(95, 100))},
        {"redraw": lap(Fraction(43, 10))},  # a redraw costs again: this allocation pays for one threshold
    ],
)
def test_planted_change_of_the_optimal_allocation_fails(changes):
    assert not private(attrs.evolve(rule_of(Sparse(1.0, 60, 3, allocation="optimal")), **changes), 1.0)


# The text's variant, fault by fault


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("cutoff", [1, 2, 3, 10])
def test_fault_b_half_the_test_noise_costs_half_of_epsilon_more(epsilon, cutoff):
    """1/b1 + 2c/b2 = epsilon/2 + epsilon, for every number of answers; nothing but bits is released."""
    rule = printed(epsilon, cutoff)

    assert not private(rule, epsilon)
    assert worst_loss(rule, copies=COPIES) == pytest.approx(1.5 * epsilon, rel=1e-3)


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_fault_b_with_the_threshold_noise_of_restarts_still_costs_more_than_claimed(cutoff):
    """Read with Lap(2c/epsilon) for the threshold too: epsilon (1 + 1/(2c))."""
    rule = running(60, 2 * cutoff, 2 * cutoff, cutoff)

    assert not private(rule, 1.0)
    assert worst_loss(rule, copies=COPIES) == pytest.approx(1 + 1 / (2 * cutoff), rel=1e-3)


RIGHT = {
    "restarts": lambda cutoff: rule_of(Sparse(1.0, 60, cutoff)),
    "optimal": lambda cutoff: rule_of(Sparse(1.0, 60, cutoff, allocation="optimal")),
    "half and half": lambda cutoff: kept(1.0, cutoff),
}


@pytest.mark.parametrize("cutoff", [1, 3])
@pytest.mark.parametrize("name", RIGHT)
def test_fault_a_releasing_the_compared_value_fails_where_the_index_alone_passes(name, cutoff):
    rule = RIGHT[name](cutoff)

    assert private(rule, 1.0)
    assert not private(rule, 1.0, released="value")


@pytest.mark.parametrize("cutoff", [1, 2, 3])
@pytest.mark.parametrize("name", [*RIGHT, "fault B"])
def test_fault_a_costs_as_much_as_releasing_every_noisy_value_so_that_no_epsilon_holds(name, cutoff):
    """Every test costs 1/b2, easy ones too: the threshold noise protects nothing, and k tests cost k/b2.

    No more, since all that is shown follows from the k noisy values and a threshold that is known. So a
    lower bound that grows with the number of tests means that the loss has no bound.
    """
    rule = printed(1.0, cutoff) if name == "fault B" else RIGHT[name](cutoff)
    scale = float(rule.query_noise.scale)

    for m in (0, 1, 10, 100):
        loss = worst_loss(rule, released="value", copies=(m,))
        assert loss == pytest.approx((m + 1) * cutoff / scale, rel=1e-9)


@pytest.mark.parametrize("cutoff", [1, 3, 10])
def test_parts_of_both_faults_apart_and_together_beside_the_right_mechanism(cutoff):
    """30 easy tests before each hit, claimed epsilon 1: 1 and 1.5, with the value 31/4 and 31/2."""
    right, half = kept(1.0, cutoff), printed(1.0, cutoff)
    losses = [
        worst_loss(rule, released=released, copies=(30,))
        for released in ("bit", "value")
        for rule in (right, half)
    ]

    assert [1.0, 1.5, 7.75, 15.5] == pytest.approx(losses, rel=1e-3)


def test_fresh_noise_for_the_number_is_what_a_release_costs_when_done_right():
    """c/b3 more, whatever the number of tests: Sparse at 8/9 of epsilon, numbers at 1/9."""
    rule = rule_of(Sparse(8 / 9, 60, 3, allocation="optimal"))
    losses = [worst_loss(rule, copies=(m,), number_scale=Fraction(27)) for m in COPIES]

    assert max(losses) == pytest.approx(1.0, rel=1e-3)
    assert max(losses) <= TIGHT


# How likely it is


def test_law_up_to_the_first_hit_is_that_of_transcripts():
    rule = ThresholdRule(1, lap(Fraction(3, 2)), lap(3))
    values, others = [0, 2, 1, -1], [1, 1, 2, 0]
    laws = [transcript_law(rule, stream) for stream in (values, others)]

    for epsilon in (0.0, 0.3, 0.6):
        delta = hockey_stick(*laws, epsilon)

        assert first_hit_delta(rule, values, others, epsilon) == pytest.approx(delta, abs=1e-15)
        assert delta > 0 or epsilon == 0.6


def test_law_with_the_compared_value_is_that_of_an_enumeration():
    rule = ThresholdRule(0, lap(Fraction(1, 2)), lap(Fraction(3, 4)))
    span = range(-12, 13)

    def mass(law, z):
        return math.exp(float(law.log_mass(np.float64(z))))

    def enumerated(one, two):
        law = {}
        for rho in span:
            for nu in span:
                chance = mass(rule.threshold_noise, rho) * mass(rule.query_noise, nu)
                if one + nu >= rho:
                    law["first", one + nu] = law.get(("first", one + nu), 0.0) + chance
                    continue
                for again in span:
                    seen = ("second", two + again) if two + again >= rho else "none"
                    law[seen] = law.get(seen, 0.0) + chance * mass(rule.query_noise, again)
        return law

    laws = enumerated(0, 1), enumerated(1, 0)
    expected = [hockey_stick(*pair, 0.8) for pair in (laws, laws[::-1])]
    exact = [
        first_hit_delta(rule, *pair, 0.8, released="value") for pair in (([0, 1], [1, 0]), ([1, 0], [0, 1]))
    ]

    assert expected == pytest.approx(exact, abs=1e-6)
    assert min(expected) > 1e-3


def test_a_loss_above_the_claim_is_likely_enough_to_see_for_each_fault_apart():
    """c = 1, claim 1, 0/1 columns that one replaced row moves: the right one has delta 0 at its claim."""
    easy, hard = ([-2] * 10 + [0], [-1] * 10 + [-1]), ([0] * 9999 + [8], [1] * 9999 + [7])
    right, half = kept(1.0, 1), printed(1.0, 1)
    right, half = attrs.evolve(right, threshold=0), attrs.evolve(half, threshold=0)

    for pair in (easy, hard):
        assert first_hit_delta(right, *pair, 1.0) < 1e-15
    assert first_hit_delta(half, *easy, 1.0) == pytest.approx(0.0147, abs=1e-4)
    assert first_hit_delta(right, *hard, 1.0, released="value") == pytest.approx(0.00229, abs=1e-5)
    both = first_hit_delta(half, [-2] * 9999 + [4], [-1] * 9999 + [3], 1.0, released="value")
    assert both == pytest.approx(0.0278, abs=1e-4)


# The naive variant of AboveThreshold


def test_naive_laplace_for_every_query_costs_epsilon_for_every_query():
    """Each value compared with Lap(1/epsilon) of its own and a known threshold: k epsilon, easy tests too."""
    naive, epsilon = running(7, None, 2, 1), Fraction(1, 2)

    assert ThresholdRule(7, Law("none"), lap(2), 1) == naive
    for m in (0, 1, 9, 99):
        assert worst_loss(naive, copies=(m,)) == pytest.approx(float((m + 1) * epsilon), rel=1e-9)
    assert not private(naive, 0.5)


def test_naive_laplace_at_epsilon_over_k_holds_for_k_queries_and_no_more():
    """So its noise grows with k, where that of AboveThreshold does not."""
    naive = running(7, None, 100, 1)

    assert worst_loss(naive, copies=(99,)) == pytest.approx(1.0, rel=1e-9)
    assert worst_loss(naive, copies=(149,)) == pytest.approx(1.5, rel=1e-9)
    assert private(rule_of(AboveThreshold(1.0, 7)), 1.0)


# The audit itself


@pytest.mark.parametrize("copies", [(), [], (-1,), (0.5,)])
def test_an_audit_that_tries_nothing_is_refused_and_passes_no_rule(copies):
    with pytest.raises(InvalidParameterError, match="copies must"):
        worst_loss(printed(1.0, 3), copies=copies)


@pytest.mark.parametrize("released", ["bits", "Value", None])
def test_an_audit_of_what_nobody_releases_is_refused(released):
    rule = rule_of(AboveThreshold(1.0, 7))

    with pytest.raises(InvalidParameterError, match="released must"):
        worst_loss(rule, released=released)
    with pytest.raises(InvalidParameterError, match="released must"):
        first_hit_delta(rule, [0], [1], 1.0, released=released)


@pytest.mark.parametrize("sensitivity", [0, -1, 0.5])
def test_an_audit_of_neighbours_that_do_not_differ_is_refused(sensitivity):
    with pytest.raises(InvalidParameterError, match="sensitivity must"):
        worst_loss(printed(1.0, 3), sensitivity)


def test_the_delta_of_a_pair_is_not_that_of_one_side_and_is_refused():
    """A gap of -60 fires on the other side, of which the sum knew nothing."""
    rule = attrs.evolve(rule_of(AboveThreshold(1.0, 60)), pair=True)
    whole = hockey_stick(transcript_law(rule, [-60]), transcript_law(rule, [-59]), 0.0)

    assert 0.05 < whole
    with pytest.raises(InvalidParameterError, match="pair"):
        first_hit_delta(rule, [-60], [-59], 0.0)
