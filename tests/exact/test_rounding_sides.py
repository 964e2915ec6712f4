"""Rounding to the private side where a value lies a hair from its boundary."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from onlineic.accounting import exact_delta
from onlineic.accounting.rounding import float_down, float_up
from onlineic.noise.gumbel import MARGIN, fires_one, screen


@pytest.mark.parametrize("value", [1.0, 0.1, 3.5e-200, 7e150])
def test_a_decimal_that_looks_like_a_float_stands_for_a_hair_more_or_less(value):
    """It was rounded at 60 digits; a fraction is exact."""
    assert math.nextafter(value, math.inf) == float_up(Decimal(value))
    assert math.nextafter(value, 0.0) == float_down(Decimal(value))
    assert value == float_up(Fraction(value)) == float_down(Fraction(value))


def responses(share, count, epsilon):
    """The delta of k randomised responses at 50 digits: the sum over the number of true answers."""
    with localcontext(prec=50):
        good = Decimal(share).exp() / (1 + Decimal(share).exp())
        first = max(0, math.floor((count + epsilon / share) / 2) - 2)
        term = Decimal(math.comb(count, first)) * good**first * (1 - good) ** (count - first)
        total = Decimal(0)
        for j in range(first, count + 1):
            gain = 1 - (Decimal(epsilon) - Decimal(share) * (2 * j - count)).exp()
            total += term * max(gain, Decimal(0))
            if gain > 0 and term < total * Decimal("1e-25"):
                break
            term = term * (count - j) / (j + 1) * good / (1 - good)
        return total


@pytest.mark.parametrize("count", [10_007, 30_011, 100_003])
@pytest.mark.parametrize("share", [0.003, 0.01, 0.0234])
def test_delta_of_many_mechanisms_is_never_below_the_exact_one(count, share):
    """The logarithms of factorials are of the order of 10^6 here: their last places are part of delta."""
    epsilon = 3.0 * share * math.sqrt(count)
    exact, found = responses(share, count, epsilon), exact_delta(share, count, epsilon)

    assert exact <= Decimal(found) <= exact * Decimal("1.0001")


@pytest.mark.parametrize("share", [0.1, 0.7, 1.3])
def test_delta_at_an_epsilon_that_is_the_rounded_sum_is_not_below_the_exact_one(share):
    """As floats the epsilons add up to this one or less, in truth to a little more: delta is not 0."""
    count = next(k for k in range(3, 100, 2) if Fraction(share * k) < k * Fraction(share))
    exact = responses(share, count, share * count)

    assert 0 < exact <= Decimal(exact_delta(share, count, share * count)) < Decimal("1e-14")


def test_the_margin_of_float_tests_is_eight_times_their_proven_error():
    """Of p = exp(-e^x): both exponentials err by 2^-47 of themselves, x by 2^-53, and sums by 2^-53."""
    x = np.linspace(-60.0, 6.0, 10_000)
    inner = np.exp(x) * (2.0**-47 + np.abs(x) * 2.0**-53)
    error = np.exp(-np.exp(x)) * (inner + 2.0**-47) + 2.0**-52

    assert 8 * error.max() < MARGIN


@pytest.mark.parametrize("scale", [Fraction(169, 4), Fraction(1494505, 32768), Fraction(7, 65536)])
def test_words_next_to_the_boundary_of_a_test_are_never_decided_wrongly_by_floats(scale):
    """P(easy) at 60 digits: 2^64 of it lies between these words, closer than any float knows."""
    generator = np.random.default_rng(6)
    numerators = np.rint(generator.uniform(-12.0, 3.0, 400) * float(scale)).astype(np.int64)
    below, above = [], []
    with localcontext(prec=60):
        for numerator in numerators.tolist():
            x = Decimal(numerator) * scale.denominator / scale.numerator
            boundary = int((-x.exp()).exp() * 2**64)
            below.append(max(boundary - 1, 0))
            above.append(min(boundary + 1, 2**64 - 1))
    easy = screen(np.array(below, np.uint64), numerators, scale)
    hard = screen(np.array(above, np.uint64), numerators, scale)

    assert {0, -1} >= set(easy.tolist())
    assert {1, -1} >= set(hard.tolist())
    for numerator, low, high in list(zip(numerators.tolist(), below, above, strict=True))[:40]:
        assert not fires_one(low, numerator, scale, lambda: 0)
        assert fires_one(high, numerator, scale, lambda: 2**64 - 1)
