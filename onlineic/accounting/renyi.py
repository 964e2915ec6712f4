"""Prices and capacities in Renyi divergence of one order, in whole ticks of 2^-40.

Prices go up and capacities down, computed with 60 digits and a slack that covers their rounding.

Proof: docs/theory/accounting.md, 2.4, 2.5, 2.6; docs/theory/ledger-and-restarts.md, 4.7;
docs/theory/session.md, 4.2; docs/theory/sparse.md, 3.2.
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from onlineic.accounting.rounding import _exact, _order, conversion, decimal, float_up
from onlineic.errors import InvalidParameterError, checked_integer, checked_real

TICK = Fraction(1, 2**40)
SLACK = Fraction(1, 10**40)  # covers the rounding of 60 digits


def gumbel_charge(
    order: Fraction,
    sensitivity: int,
    scale: Fraction,
    sigma: Fraction | None = None,
    squared_sensitivity: int = 0,
) -> int:
    """Return ceil(2^40 [-eta - ln(1 - x)/(a - 1) + a L/(2 sigma^2)]), ticks of one hard answer.

    eta = sensitivity/scale and x = (a - 1)(e^eta - 1) < 1. Easy answers are free.

    Extends Algorithm 3 of Dwork & Roth (2014): no threshold noise, Gumbel test noise (theory 3.2).

    Args:
        order: Above 1. a, the one Renyi order of the filter.
        sensitivity: At least 0, grid units. Of the tested gap.
        scale: Above 0, grid units. b of the Gumbel noise.
        sigma: Above 0, grid units. Of the fresh discrete Gaussian answer; None: no such answer.
        squared_sensitivity: At least 1 if sigma is given. L, squared L2 sensitivity of that answer, as
            `Neighbours` tell it of a number or a table.

    Raises:
        InvalidParameterError: Also if x >= 1: no finite charge exists at this order.
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

    Canonne, Kamath & Steinke (2020), Proposition 5: the discrete Gaussian at integer shifts costs no
    more than the continuous one; independent coordinates add.

    Args:
        order, sigma, squared_sensitivity: As in `gumbel_charge`.
    """
    return math.ceil(_gaussian_part(_order(order), sigma, squared_sensitivity) / TICK)


def laplace_charge(order: Fraction, scale: Fraction, moved: int) -> int:
    """Return ceil(2^40 moved {1/b + ln[(1 + q e^(-2(a-1)/b))/(1 + q)]/(a - 1)}), q = e^(-1/b), ticks.

    Of discrete Laplace noise on numbers of which a neighbour changes `moved` by one each: below the
    moved/b of pure differential privacy at every order.

    Mironov (2017), Proposition 6, for the discrete law: the moment of order a is summed exactly (theory 4.2).

    Args:
        order: Above 1. a, the one Renyi order of the filter.
        scale: Above 0. b, in units of the change.
        moved: At least 1.
    """
    order, scale = _order(order), _exact("scale", scale)
    moved = checked_integer("moved", moved, at_least=1)
    if scale == 0:
        raise InvalidParameterError("scale must be > 0, got scale=0.")
    return math.ceil(moved * _laplace_part(order, scale) / TICK)


@lru_cache(maxsize=4096)
def _laplace_part(order: Fraction, scale: Fraction) -> Fraction:
    """1/b + ln[(1 + q e^(-2(a-1)/b))/(1 + q)]/(a - 1) rounded up, of Python numbers."""
    with localcontext(Context(prec=60)):
        less, inverse = decimal(order - 1), decimal(1 / scale)
        ratio = (-inverse).exp()
        saved = ((1 + ratio) / (1 + ratio * (-2 * less * inverse).exp())).ln() / less
        cost = max(inverse - saved, Decimal(0))
    # both terms are at most 1/b, and each is off by less than the slack of itself
    slack = SLACK * (1 + 1 / scale) * (1 + 1 / (order - 1))
    return Fraction(cost) + slack


def renyi_capacity(order: Fraction, epsilon: float, delta: float) -> int:
    """Return floor(2^40 [epsilon - ln(1 - 1/a) + (ln delta + ln a)/(a - 1)]), at least 0, ticks.

    A filter of this capacity at order a makes the whole interaction (epsilon, delta); 0 pays for nothing.

    Canonne, Kamath & Steinke (2020), Proposition 12, for one order > 1 fixed before the first release.
    """
    order = _order(order)
    epsilon = checked_real("epsilon", epsilon, above=0.0)
    with localcontext(Context(prec=60)):
        exact = Fraction(epsilon) + Fraction(conversion(order, delta))
    return max(0, math.floor((exact - SLACK) / TICK))  # 60 digits err by less than the slack


def renyi_epsilon(order: Fraction, spent_ticks: int, delta: float) -> float:
    """Return the epsilon, rounded up and at least 0, of a filter of that capacity at order a.

    Inverse of `renyi_capacity`: a statement about a capacity fixed beforehand, not about what happens to be
    spent.
    """
    order, spent = _order(order), checked_integer("spent_ticks", spent_ticks, at_least=0) * TICK
    with localcontext(Context(prec=60)):
        return float_up(max(Decimal(0), decimal(spent) - conversion(order, delta)))


def loss_bound(order: Fraction, spent_ticks: int, delta: float) -> float:
    """Return spent + ln(1/delta)/(a - 1), rounded up: the realised loss stays below it at all times.

    It holds with probability >= 1 - delta for the loss so far; it is no smaller (epsilon, delta). First
    tables that other rules charged less than their divergence (theory 4.10) have to be counted in full.

    Ville's inequality for the supermartingale of `Filter` at order a - 1 under the data's own law.
    """
    order, spent = _order(order), checked_integer("spent_ticks", spent_ticks, at_least=0) * TICK
    delta = checked_real("delta", delta, above=0.0, below=1.0)
    with localcontext(Context(prec=60)):
        return float_up(decimal(spent) - Decimal(delta).ln() / decimal(order - 1))


def _gaussian_part(order: Fraction, sigma: Fraction, squared_sensitivity: int) -> Fraction:
    """Exact a L/(2 sigma^2)."""
    sigma, squared = (
        _exact("sigma", sigma),
        checked_integer("squared_sensitivity", squared_sensitivity, at_least=1),
    )
    if sigma == 0:
        raise InvalidParameterError("sigma must be > 0, got sigma=0.")
    return order * squared / (2 * sigma**2)
