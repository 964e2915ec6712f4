"""Roundings to the private side, and the conversion of Renyi divergence that all accounting shares."""

import math
import sys
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

from onlineic.errors import (
    InvalidParameterError,
    checked_real,
    is_number_of,
    shown,
)

LARGEST_FLOAT = Fraction(sys.float_info.max)


def conversion(order: Fraction, delta: float) -> Decimal:
    """-ln(1 - 1/a) + (ln delta + ln a)/(a - 1) in the caller's decimal context."""
    small = Decimal(checked_real("delta", delta, above=0.0, below=1.0))
    exact, less = decimal(order), decimal(order - 1)
    return (exact / less).ln() + (small.ln() + exact.ln()) / less


def _float_conversion(less: float, delta: float) -> float:
    """The same in floats, for searches; less = a - 1."""
    return math.log1p(1 / less) + (math.log(delta) + math.log1p(less)) / less


def decimal(value: Fraction) -> Decimal:
    """Nearest decimal of the caller's context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def float_up(value: Fraction | Decimal) -> float:
    """Least float >= value, maybe inf; a Decimal is first raised by 1e-40 of itself, for its own rounding."""
    exact = Fraction(value) if isinstance(value, Fraction) else Fraction(value) * (1 + Fraction(1, 10**40))
    number = float(exact) if exact <= LARGEST_FLOAT else math.inf
    return number if number == math.inf or Fraction(number) >= exact else math.nextafter(number, math.inf)


def float_down(value: Fraction | Decimal) -> float:
    """Largest float <= value; a Decimal is first lowered by 1e-40 of itself, for its own rounding."""
    exact = Fraction(value) if isinstance(value, Fraction) else Fraction(value) * (1 - Fraction(1, 10**40))
    number = float(min(exact, LARGEST_FLOAT))
    return number if Fraction(number) <= exact else math.nextafter(number, -math.inf)


def _exact(name: str, value: object) -> Fraction:
    """Exact Fraction of a non-negative int or Fraction; a float is refused, it hides a rounding."""
    if is_number_of(value, Rational) and isinstance(value, Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
        if exact >= 0:
            return exact
    raise InvalidParameterError(
        f"{name} must be an int or Fraction >= 0, got {name}={shown(value)}; "
        "round a float to the private side first."
    )


def _order(order: object) -> Fraction:
    """Renyi order as an exact Fraction; nearer to 1 the 60 digits of a price would not do."""
    exact = _exact("order", order)
    if not Fraction(1, 2**20) <= exact - 1 <= 2**64:
        raise InvalidParameterError(f"order must be in [1 + 2^-20, 2^64], got order={shown(order)}.")
    return exact
