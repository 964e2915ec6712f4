"""Budgets, charges and filters; every result is rounded to the private side.

Prices go up, capacities and affordable parameters go down, sums are exact `Fraction`s.
Neighbours replace one record. Renyi prices and capacities are whole ticks of 2^-40.
"""

import math
from collections.abc import Iterable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import final

import attrs
import numpy as np

from onlineic._composition import advanced_composition as advanced_composition
from onlineic._composition import advanced_share as advanced_share
from onlineic._composition import conversion, decimal, float_up
from onlineic._composition import exact_delta as exact_delta
from onlineic._composition import exact_share as exact_share
from onlineic._composition import gaussian_delta as gaussian_delta
from onlineic._composition import gaussian_mu as gaussian_mu
from onlineic._composition import zcdp_delta as zcdp_delta
from onlineic._composition import zcdp_epsilon as zcdp_epsilon
from onlineic._composition import zcdp_rho as zcdp_rho
from onlineic.errors import BudgetExceededError, InvalidParameterError, checked_integer, checked_real

__all__ = [
    "TICK",
    "Budget",
    "Charge",
    "Filter",
    "advanced_composition",
    "advanced_share",
    "basic_composition",
    "exact_delta",
    "exact_share",
    "gaussian_charge",
    "gaussian_delta",
    "gaussian_mu",
    "gumbel_charge",
    "loss_bound",
    "renyi_capacity",
    "renyi_epsilon",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]

TICK = Fraction(1, 2**40)
SLACK = Fraction(1, 10**40)  # covers the rounding of 60 digits
LARGEST_EPSILON = 20.0


def _exact(name: str, value: object) -> Fraction:
    """Exact Fraction of a non-negative int or Fraction; a float is refused, it hides a rounding."""
    if isinstance(value, Rational) and not isinstance(value, bool):
        exact = Fraction(int(value.numerator), int(value.denominator))
        if exact >= 0:
            return exact
    raise InvalidParameterError(
        f"{name} must be an int or Fraction >= 0, got {name}={value!r:.60}; "
        "round a float to the private side first."
    )


def _not_above(value: object, number: float) -> float:
    """Largest float <= value: a wish of 1/10 must not become the float just above 1/10."""
    if isinstance(value, np.floating):
        exact = Fraction(*value.as_integer_ratio())
    else:
        exact = Fraction(value) if isinstance(value, (Rational, float)) else Fraction(number)
    return number if Fraction(number) <= exact else math.nextafter(number, -math.inf)


def _remedy(epsilon: object, allowed: bool) -> str:
    """What helps a caller whose epsilon is refused: not the same for 0, for 50 and for a whole budget."""
    if isinstance(epsilon, Budget):
        return "give the number, budget.epsilon"
    if allowed or not isinstance(epsilon, (int, float)) or not epsilon > LARGEST_EPSILON:
        return ""
    return "lower it; in a Budget, allow_large_epsilon=True lifts the upper limit"


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
            remedy=_remedy(self.epsilon, self.allow_large_epsilon),
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
        Rounded up by whoever computed it.
    event : str
        The release that is paid, for the public record.
    unit : str
        What the amount counts: "epsilon", "ticks" of 2^-40 in Renyi divergence, "shares" of a whole.
    order : Fraction, > 1, optional
        Of the Renyi divergence, with ticks and only with ticks: amounts at two orders do not add.

    Raises
    ------
    InvalidParameterError
        If the amount is negative or not rational, or unit and order do not belong together.
    """

    amount: Fraction
    event: str
    unit: str = "epsilon"
    order: Fraction | None = None

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "amount", _exact("amount", self.amount))
        object.__setattr__(self, "order", _checked_unit(self.unit, self.order))


@final
@attrs.frozen
class Filter:
    """Exact account of a fixed capacity: the charges on every transcript stay <= capacity.

    Parameters
    ----------
    capacity : Fraction, >= 0
        Rounded down by whoever computed it, fixed before the first release.
    unit, order
        What capacity and charges count, as in `Charge`: another charge is refused.
    spent : Fraction, in [0, capacity]

    Raises
    ------
    InvalidParameterError
        If an amount is negative or not rational, spent exceeds capacity, or unit and order do not belong
        together.

    References
    ----------
    Pure epsilon: losses add on each transcript, so the sum bounds the realised loss (Dwork & Roth
    2014, Theorem 3.14, adaptive). Renyi of one order fixed beforehand: the moment times
    exp(-(order - 1) * charges) is a supermartingale, so the same check suffices.
    """

    capacity: Fraction
    unit: str = "epsilon"
    order: Fraction | None = None
    spent: Fraction = attrs.field(default=Fraction(0), kw_only=True)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "capacity", _exact("capacity", self.capacity))
        object.__setattr__(self, "spent", _exact("spent", self.spent))
        object.__setattr__(self, "order", _checked_unit(self.unit, self.order))
        if self.spent > self.capacity:
            raise InvalidParameterError(f"spent must be <= capacity={self.capacity}, got spent={self.spent}.")

    @property
    def left(self) -> Fraction:
        """Capacity minus what is spent."""
        return self.capacity - self.spent

    def affords(self, charge: Charge) -> bool:
        """Whether the charge fits: spent + amount <= capacity, exactly.

        Raises
        ------
        InvalidParameterError
            If the charge counts something else than this filter.
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

        Raises
        ------
        InvalidParameterError
            If the charge counts something else than this filter.
        BudgetExceededError
            If the charge does not fit; nothing has happened then.
        """
        if not self.affords(charge):
            raise BudgetExceededError(
                f"charge must be <= left={self.left} {_unit_text(self.unit, self.order)}, got "
                f"charge={charge.amount} for {charge.event}; nothing was spent."
            )
        return attrs.evolve(self, spent=self.spent + charge.amount)


def _checked_unit(unit: object, order: object) -> Fraction | None:
    """Return the order of an amount in this unit."""
    if unit not in ("epsilon", "ticks", "shares"):
        raise InvalidParameterError(f"unit must be 'epsilon', 'ticks' or 'shares', got unit={unit!r:.60}.")
    if (unit == "ticks") != (order is not None):
        raise InvalidParameterError(
            f"order must be given with ticks and only with ticks, got unit={unit!r}, order={order!r:.60}."
        )
    return None if order is None else _order(order)


def _unit_text(unit: str, order: Fraction | None) -> str:
    return unit if order is None else f"ticks of 2^-40 at Renyi order {order}"


def basic_composition(budgets: Iterable[Budget]) -> tuple[Fraction, Fraction]:
    """Return (sum of epsilon, sum of delta), exactly: what all of them promise together.

    References
    ----------
    Dwork & Roth (2014), Theorem 3.16; adaptive if each budget is fixed before its mechanism starts.
    """
    budgets = tuple(budgets)
    epsilon = sum((b.epsilon_exact for b in budgets), Fraction(0))
    return epsilon, sum((b.delta_exact for b in budgets), Fraction(0))


def gumbel_charge(
    order: Fraction,
    sensitivity: int,
    scale: Fraction,
    sigma: Fraction | None = None,
    squared_sensitivity: int = 0,
) -> int:
    """Return ceil(2^40 [-eta - ln(1 - x)/(a - 1) + a L/(2 sigma^2)]), ticks of one hard answer.

    eta = sensitivity/scale and x = (a - 1)(e^eta - 1) < 1. Easy answers are free.

    Parameters
    ----------
    order : Fraction, > 1
        a, the one Renyi order of the filter.
    sensitivity : int, >= 0, grid units
        Of the tested gap.
    scale : Fraction, > 0, grid units
        b of the Gumbel noise.
    sigma : Fraction or int, > 0, grid units, optional
        Of the fresh discrete Gaussian answer; None: no such answer.
    squared_sensitivity : int, >= 1 if sigma is given
        L, squared L2 sensitivity of that answer: Delta^2 for a number, 2 g^2 for a partition.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range, or x >= 1: no finite charge exists at this order.

    References
    ----------
    Extends Algorithm 3 of Dwork & Roth (2014): no threshold noise, Gumbel test noise. Each slot of a
    Poisson clock whose log-rate moves by at most eta has the Renyi moment bounded by this price.
    """
    order, scale = _order(order), _exact("scale", scale)
    sensitivity = checked_integer("sensitivity", sensitivity, at_least=0)
    if scale == 0:
        raise InvalidParameterError("scale must be > 0, got scale=0.")
    if (sigma is None) != (squared_sensitivity == 0):
        raise InvalidParameterError(
            "sigma and squared_sensitivity must be given together, "
            f"got sigma={sigma}, squared_sensitivity={squared_sensitivity}."
        )
    answer = Fraction(0) if sigma is None else _gaussian_part(order, sigma, squared_sensitivity)
    return math.ceil((_gumbel_part(order, sensitivity, scale) + answer) / TICK)


@lru_cache(maxsize=4096)
def _gumbel_part(order: Fraction, sensitivity: int, scale: Fraction) -> Fraction:
    """-eta - ln(1 - x)/(a - 1) rounded up, of Python numbers."""
    if sensitivity == 0:
        return Fraction(0)
    less = order - 1
    with localcontext(Context(prec=60)):
        eta = decimal(Fraction(sensitivity) / scale)
        free = 1 - decimal(less) * (eta.exp() - 1) if eta < 1000 else Decimal(0)
        # Closer to the pole 60 digits are too few; a price there is above 41/(a - 1) anyway.
        if free < Decimal("1e-18"):
            raise InvalidParameterError(
                f"scale must be > sensitivity/ln(1 + 1/(order - 1)), got scale={scale}, "
                f"sensitivity={sensitivity}, order={order}; raise the scale or lower the order."
            )
        exact = -eta - free.ln() / decimal(less)
        # 60 digits err by less than the slack, also near the pole; never free, however small eta
        return max(Fraction(exact) * (1 + SLACK) + SLACK, TICK / 1000)


def gaussian_charge(order: Fraction, sigma: Fraction, squared_sensitivity: int) -> int:
    """Return ceil(2^40 a L/(2 sigma^2)), ticks of one discrete Gaussian answer without a test.

    Parameters
    ----------
    order, sigma, squared_sensitivity
        As in `gumbel_charge`.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.

    References
    ----------
    Canonne, Kamath & Steinke (2020), Proposition 5: the discrete Gaussian at integer shifts costs no
    more than the continuous one; independent coordinates add.
    """
    return math.ceil(_gaussian_part(_order(order), sigma, squared_sensitivity) / TICK)


def renyi_capacity(order: Fraction, epsilon: float, delta: float) -> int:
    """Return floor(2^40 [epsilon - ln(1 - 1/a) + (ln delta + ln a)/(a - 1)]), at least 0, ticks.

    A filter of this capacity at order a makes the whole interaction (epsilon, delta); 0 pays for nothing.

    Raises
    ------
    InvalidParameterError
        If order <= 1, epsilon is not positive or delta is outside (0, 1).

    References
    ----------
    Canonne, Kamath & Steinke (2020), Proposition 12, for one order fixed before the first release.
    """
    order = _order(order)
    epsilon = checked_real("epsilon", epsilon, above=0.0)
    with localcontext(Context(prec=60)):
        exact = Fraction(epsilon) + Fraction(conversion(order, delta))
    return max(0, math.floor((exact - SLACK) / TICK))  # 60 digits err by less than the slack


def renyi_epsilon(order: Fraction, spent_ticks: int, delta: float) -> float:
    """Return the epsilon, rounded up and at least 0, of a filter of that capacity at order a.

    It is a statement about a capacity fixed beforehand, not about what happens to be spent.

    Raises
    ------
    InvalidParameterError
        If order <= 1, spent_ticks is negative or delta is outside (0, 1).

    References
    ----------
    Inverse of `renyi_capacity`.
    """
    order, spent = _order(order), checked_integer("spent_ticks", spent_ticks, at_least=0) * TICK
    with localcontext(Context(prec=60)):
        return float_up(max(Decimal(0), decimal(spent) - conversion(order, delta)))


def loss_bound(order: Fraction, spent_ticks: int, delta: float) -> float:
    """Return spent + ln(1/delta)/(a - 1), rounded up: the realised loss stays below it at all times.

    It holds with probability >= 1 - delta for the loss so far; it is no smaller (epsilon, delta).

    Raises
    ------
    InvalidParameterError
        If order <= 1, spent_ticks is negative or delta is outside (0, 1).

    References
    ----------
    Ville's inequality for the supermartingale of `Filter` at order a - 1 under the data's own law.
    """
    order, spent = _order(order), checked_integer("spent_ticks", spent_ticks, at_least=0) * TICK
    delta = checked_real("delta", delta, above=0.0, below=1.0)
    with localcontext(Context(prec=60)):
        return float_up(decimal(spent) - Decimal(delta).ln() / decimal(order - 1))


def _order(order: object) -> Fraction:
    """Renyi order as an exact Fraction; nearer to 1 the 60 digits of a price would not do."""
    exact = _exact("order", order)
    if not Fraction(1, 2**20) <= exact - 1 <= 2**64:
        raise InvalidParameterError(f"order must be in [1 + 2^-20, 2^64], got order={exact}.")
    return exact


def _gaussian_part(order: Fraction, sigma: Fraction, squared_sensitivity: int) -> Fraction:
    """Exact a L/(2 sigma^2)."""
    sigma, squared = (
        _exact("sigma", sigma),
        checked_integer("squared_sensitivity", squared_sensitivity, at_least=1),
    )
    if sigma == 0:
        raise InvalidParameterError("sigma must be > 0, got sigma=0.")
    return order * squared / (2 * sigma**2)
