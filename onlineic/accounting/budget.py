"""Budgets, charges and filters; every result is rounded to the private side.

Prices go up, capacities and affordable parameters go down, sums are exact `Fraction`s.
Neighbours are those that a budget names. Renyi prices and capacities are whole ticks of 2^-40.

Proof: docs/theory/accounting.md, 2.3, 2.7.
"""

import math
from fractions import Fraction
from numbers import Rational
from typing import final

import attrs
import numpy as np

from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.accounting.rounding import _exact, _order
from onlineic.errors import (
    BudgetExceededError,
    InvalidParameterError,
    check_choice,
    check_kind,
    checked_real,
    set_fields,
    shown,
)
from onlineic.slips import public

LARGEST_EPSILON = 20.0


def _not_above(value: object, number: float) -> float:
    """Largest float <= value: a wish of 1/10 must not become the float just above 1/10."""
    if isinstance(value, np.floating):
        exact = Fraction(*value.as_integer_ratio())
    else:
        exact = Fraction(value if isinstance(value, float) else number)
        if isinstance(value, Rational):
            exact = Fraction(int(value.numerator), int(value.denominator))
    return number if Fraction(number) <= exact else math.nextafter(number, -math.inf)


def _remedy(epsilon: object, allowed: bool) -> str:
    """What helps a caller whose epsilon is refused: not the same for 0, for 50 and for a whole budget."""
    if isinstance(epsilon, Budget):
        return "give the number, budget.epsilon"
    if allowed or not isinstance(epsilon, (int, float)) or not epsilon > LARGEST_EPSILON:
        return ""
    return "lower it; in a Budget, allow_large_epsilon=True lifts the upper limit"


@public
@final
@attrs.frozen
class Budget:
    """(epsilon, delta)-differential privacy for the neighbours that it names.

    Dwork & Roth (2014), Definition 2.4, by default with "replace one record" for its neighbours.

    Args:
        epsilon: In (0, 20]. Kept as given. Larger values promise nothing useful and need
            `allow_large_epsilon`.
        delta: In [0, 1). 0 is pure differential privacy.
        allow_large_epsilon: Accept a finite epsilon above 20.
        order: Above 1. Renyi order at which it is to be spent: that of the filter of a table
            (`ic.TableBudget.share` makes such budgets). Needs delta > 0. None: whoever spends it chooses.
        neighbours: The tables between which the promise holds: by default one record is replaced, and n is
            public. Whatever spends the budget scales its noise by them.
    """

    epsilon: float
    delta: float = 0.0
    allow_large_epsilon: bool = False
    order: Fraction | None = attrs.field(default=None, kw_only=True, repr=False, metadata={"later": True})
    neighbours: Neighbours = attrs.field(
        default=REPLACE_ONE, kw_only=True, repr=False, metadata={"later": True}
    )

    def __attrs_post_init__(self) -> None:
        check_kind("neighbours", self.neighbours, Neighbours, remedy="leave it out for REPLACE_ONE")
        check_kind(
            "allow_large_epsilon", self.allow_large_epsilon, bool, remedy="write True, or leave it out"
        )
        epsilon = checked_real(
            "epsilon",
            self.epsilon,
            above=0.0,
            at_most=math.inf if self.allow_large_epsilon else LARGEST_EPSILON,
            remedy=_remedy(self.epsilon, self.allow_large_epsilon),
        )
        delta = checked_real("delta", self.delta, at_least=0.0, below=1.0)
        set_fields(
            self,
            epsilon=checked_real("epsilon", _not_above(self.epsilon, epsilon), above=0.0),
            delta=_not_above(self.delta, delta),
            allow_large_epsilon=bool(self.allow_large_epsilon),
            order=None if self.order is None else _order(self.order),
        )
        if self.order is not None and self.pure:
            raise InvalidParameterError(
                f"order must be None with delta=0, got order={self.order}; leave it out."
            )

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

    Args:
        amount: At least 0. Rounded up by whoever computed it.
        event: The release that is paid, for the public record.
        unit: What the amount counts: "epsilon", "ticks" of 2^-40 in Renyi divergence, "shares" of a whole.
        order: Above 1. Of the Renyi divergence, with ticks and only with ticks: amounts at two orders do not
            add.

    Raises:
        InvalidParameterError: If the amount is negative or not rational, or unit and order do not belong
            together.
    """

    amount: Fraction
    event: str
    unit: str = "epsilon"
    order: Fraction | None = None

    def __attrs_post_init__(self) -> None:
        set_fields(self, amount=_exact("amount", self.amount), order=_checked_unit(self.unit, self.order))


@final
@attrs.frozen
class Filter:
    """Exact account of a fixed capacity: the charges on every transcript stay <= capacity.

    Pure epsilon: Dwork & Roth (2014), Theorem 3.14, adaptive. Renyi of one order fixed beforehand: the same
    check suffices (theory 2.7).

    Args:
        capacity: At least 0. Rounded down by whoever computed it, fixed before the first release.
        unit, order: What capacity and charges count, as in `Charge`: another charge is refused.
        spent: In [0, capacity].

    Raises:
        InvalidParameterError: If an amount is negative or not rational, spent exceeds capacity, or unit and
            order do not belong together.
    """

    capacity: Fraction
    unit: str = "epsilon"
    order: Fraction | None = None
    spent: Fraction = attrs.field(default=Fraction(0), kw_only=True)

    def __attrs_post_init__(self) -> None:
        set_fields(
            self,
            capacity=_exact("capacity", self.capacity),
            spent=_exact("spent", self.spent),
            order=_checked_unit(self.unit, self.order),
        )
        if self.spent > self.capacity:
            raise InvalidParameterError(f"spent must be <= capacity={self.capacity}, got spent={self.spent}.")

    @property
    def left(self) -> Fraction:
        """Capacity minus what is spent."""
        return self.capacity - self.spent

    def affords(self, charge: Charge) -> bool:
        """Whether the charge fits: spent + amount <= capacity, exactly.

        Raises:
            InvalidParameterError: If the charge counts something else than this filter.
        """
        if (charge.unit, charge.order) != (self.unit, self.order):
            raise InvalidParameterError(
                f"charge must count {_unit_text(self.unit, self.order)}, got "
                f"{_unit_text(charge.unit, charge.order)} for {charge.event}; nothing was spent: charge the "
                "filter of the mechanism that made it."
            )
        return self.spent + charge.amount <= self.capacity

    def charge(self, charge: Charge) -> "Filter":
        """Return the filter with the charge spent; the old one is unchanged.

        Raises:
            InvalidParameterError: If the charge counts something else than this filter.
            BudgetExceededError: If the charge does not fit.
        """
        if not self.affords(charge):
            raise BudgetExceededError(
                f"charge must be <= left={self.left} {_unit_text(self.unit, self.order)}, got "
                f"charge={charge.amount} for {charge.event}; nothing was spent."
            )
        return attrs.evolve(self, spent=self.spent + charge.amount)


def _checked_unit(unit: object, order: object) -> Fraction | None:
    """Return the order of an amount in this unit."""
    check_choice("unit", unit, "epsilon", "ticks", "shares")
    if (unit == "ticks") != (order is not None):
        raise InvalidParameterError(
            f"order must be given with ticks and only with ticks, got unit={shown(unit)}, "
            f"order={shown(order)}."
        )
    return None if order is None else _order(order)


def _unit_text(unit: str, order: Fraction | None) -> str:
    return unit if order is None else f"ticks of 2^-40 at Renyi order {order}"


def check_budget(budget: object) -> None:
    """Raise `InvalidParameterError` unless this is a budget."""
    if type(budget) is not Budget:  # a subclass could say one epsilon and spend another
        raise InvalidParameterError(
            f"budget must be a Budget, got a {type(budget).__name__}; write Budget(epsilon=1.0, delta=1e-9)."
        )
