"""Integer bounds of e^x at few bits, where a rounding to the wrong side is seen: draws have 32 to spare."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from onlineic.noise.exp import decay_bounds, exp_down, exp_up


def exponential(x):
    """e^x as a Fraction, off by less than 1e-50 of it."""
    with localcontext(prec=60):
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 9, 10])
def test_rising_bounds_enclose_the_exponential(bits):
    """At y = 1 and 9 bits or more the series is its first term, and the unit for the tail is all there is."""
    for y in range(min(5 << bits, 500)):
        exact = exponential(Fraction(y, 1 << bits)) * (1 << bits)
        low, high = exp_down(y, bits), exp_up(y, bits)

        assert low <= exact * (1 + Fraction(1, 10**40))
        assert exact <= high * (1 + Fraction(1, 10**40))


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8])
def test_decay_bounds_enclose_the_decay_between_grid_points(bits):
    """x = p/q lies between multiples of 2^-bits: both ends round away from the truth."""
    for denominator in (1, 3, 7, 64):
        for numerator in range(6 * denominator):
            x = Fraction(numerator, denominator)
            low, high = decay_bounds(x, bits)
            exact = exponential(-x) * (1 << bits)

            assert low <= exact * (1 + Fraction(1, 10**40))
            assert exact <= high * (1 + Fraction(1, 10**40))


def test_a_decay_below_the_last_bit_is_between_nothing_and_one():
    assert (0, 1) == decay_bounds(Fraction(8), 8)
