"""Privacy budgets, charges and composition; every result is rounded to the private side.

Prices go up, capacities and affordable parameters go down, sums are exact `Fraction`s.
Neighbours replace one record.
"""

import math
from fractions import Fraction
from numbers import Rational
from typing import final

import attrs

from onlineic.errors import BudgetExceededError, InvalidParameterError, checked_real

__all__ = ["Budget", "Charge", "Filter"]

LARGEST_EPSILON = 20.0


def _exact(name: str, value: object) -> Fraction:
    """Exact Fraction of a non-negative int or Fraction; a float is refused, it hides a rounding."""
    if isinstance(value, Rational) and not isinstance(value, bool) and value >= 0:
        return Fraction(int(value.numerator), int(value.denominator))
    raise InvalidParameterError(
        f"{name} must be an int or Fraction >= 0, got {name}={value!r:.60}; round it to the private side first."
    )


def _not_above(value: object, number: float) -> float:
    """Largest float <= value: a wish of 1/10 must not become the float just above 1/10."""
    exact = Fraction(value) if isinstance(value, (Rational, float)) else Fraction(number)
    return number if Fraction(number) <= exact else math.nextafter(number, -math.inf)


@final
@attrs.frozen
class Budget:
    """(epsilon, delta)-differential privacy for replace-one neighbours, with public n.

    Parameters
    ----------
    epsilon : float, in (0, 20]
        Kept as given. Larger values promise nothing useful and need `allow_large_epsilon`.
    delta : float, in [0, 1)
        0 is pure differential privacy.
    allow_large_epsilon : bool
        Accept a finite epsilon above 20.

    Raises
    ------
    InvalidParameterError
        If epsilon or delta is outside its range.

    References
    ----------
    Dwork & Roth (2014), Definition 2.4, with "replace one record" for its neighbours.
    """

    epsilon: float
    delta: float = 0.0
    allow_large_epsilon: bool = False

    def __attrs_post_init__(self) -> None:
        epsilon = checked_real(
            "epsilon",
            self.epsilon,
            above=0.0,
            at_most=math.inf if self.allow_large_epsilon else LARGEST_EPSILON,
            remedy="" if self.allow_large_epsilon else "allow_large_epsilon=True lifts the upper limit",
        )
        delta = checked_real("delta", self.delta, at_least=0.0, below=1.0)
        object.__setattr__(
            self, "epsilon", checked_real("epsilon", _not_above(self.epsilon, epsilon), above=0.0)
        )
        object.__setattr__(self, "delta", _not_above(self.delta, delta))

    @property
    def epsilon_exact(self) -> Fraction:
        """The float epsilon as a Fraction."""
        return Fraction(self.epsilon)

    @property
    def delta_exact(self) -> Fraction:
        """The float delta as a Fraction."""
        return Fraction(self.delta)

    @property
    def pure(self) -> bool:
        """Whether delta is 0."""
        return self.delta == 0.0


@final
@attrs.frozen
class Charge:
    """What one release uses up of a filter's capacity, an exact and public amount >= 0.

    Parameters
    ----------
    amount : Fraction, >= 0
        In the unit of the filter (epsilon, or ticks of 2^-40), rounded up by whoever computed it.
    event : str
        The release that is paid, for the public record.

    Raises
    ------
    InvalidParameterError
        If the amount is negative or not rational.
    """

    amount: Fraction
    event: str

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "amount", _exact("amount", self.amount))


@final
@attrs.frozen
class Filter:
    """Exact account of a fixed capacity: the charges on every transcript stay <= capacity.

    Parameters
    ----------
    capacity : Fraction, >= 0
        Rounded down by whoever computed it, fixed before the first release.
    unit : str
        What capacity and charges count, such as "epsilon" or "ticks".
    spent : Fraction, in [0, capacity]

    Raises
    ------
    InvalidParameterError
        If an amount is negative or not rational, or spent exceeds capacity.

    References
    ----------
    Pure epsilon: losses add on each transcript, so the sum bounds the realised loss (Dwork & Roth
    2014, Theorem 3.14, adaptive). Renyi of one order fixed beforehand: the moment times
    exp(-(order - 1) * charges) is a supermartingale, so the same check suffices.
    """

    capacity: Fraction
    unit: str
    spent: Fraction = Fraction(0)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "capacity", _exact("capacity", self.capacity))
        object.__setattr__(self, "spent", _exact("spent", self.spent))
        if self.spent > self.capacity:
            raise InvalidParameterError(f"spent must be <= capacity={self.capacity}, got spent={self.spent}.")

    @property
    def left(self) -> Fraction:
        """Capacity minus what is spent."""
        return self.capacity - self.spent

    def affords(self, charge: Charge) -> bool:
        """Whether the charge fits: spent + amount <= capacity, exactly."""
        return self.spent + charge.amount <= self.capacity

    def charge(self, charge: Charge) -> "Filter":
        """Return the filter with the charge spent; the old one is unchanged.

        Raises
        ------
        BudgetExceededError
            If the charge does not fit; nothing has happened then.
        """
        if not self.affords(charge):
            raise BudgetExceededError(
                f"charge must be <= left={self.left} {self.unit}, got charge={charge.amount} for {charge.event}; "
                "nothing was spent."
            )
        return attrs.evolve(self, spent=self.spent + charge.amount)
