"""What a mechanism takes from the one budget of a table, whatever account of its own it keeps (theory 4.7).

A total adds epsilons and deltas, until it is a Renyi filter of one order, fixed beforehand, and a part of its
delta that is set apart for mechanisms of which no price at that order is known.

Proof: docs/theory/accounting.md, 4.8; docs/theory/ledger-and-restarts.md, 4.7.
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import LARGEST_EPSILON, Budget, Charge, Filter
from onlineic.accounting.composition import _best_order
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.accounting.renyi import TICK, laplace_charge, renyi_capacity, renyi_epsilon
from onlineic.accounting.rounding import _exact, _float_conversion, float_down, float_up
from onlineic.errors import InvalidParameterError, check_kind, checked_integer, set_fields


@final
@attrs.frozen
class TableCharge:
    """What a mechanism takes from a total.

    Attributes:
        charge: From its filter.
        apart: From the part of delta that is set apart.
    """

    charge: Charge
    apart: Fraction = Fraction(0)

    def __attrs_post_init__(self) -> None:
        set_fields(self, apart=_exact("apart", self.apart))


def table_charge(total: Filter, budget: Budget, account: Filter | None, event: str) -> TableCharge:
    """Return what a mechanism of this budget takes from a total.

    Theory 4.7: epsilons and deltas add. In ticks, an order above the total's bounds it; a pure mechanism is a
    randomised response, whose Renyi divergence is that of `laplace_charge` at scale 1/epsilon; any other one
    is that, but for its delta.

    Args:
        total: In ticks of one order, or in epsilon, where each delta is set apart.
        budget: What is proven of the mechanism alone.
        account: Its own, if it is a session: one in epsilon is pure, one in ticks has a Renyi price.
        event: For the record.
    """
    pure = budget.pure or (account is not None and account.unit == "epsilon")
    known = account is not None and account.unit == "epsilon"
    epsilon = account.capacity if account is not None and known else budget.epsilon_exact
    delta = Fraction(0) if pure else budget.delta_exact
    if total.order is None:
        return TableCharge(Charge(epsilon, event), delta)
    if account is not None and account.order is not None and account.order >= total.order:
        return TableCharge(Charge(account.capacity, event, "ticks", total.order))
    ticks = laplace_charge(total.order, 1 / epsilon, 1)
    return TableCharge(Charge(Fraction(ticks), event, "ticks", total.order), delta)


def share_of(ticks: Fraction, order: Fraction, delta: float, neighbours: Neighbours = REPLACE_ONE) -> Budget:
    """Return the budget whose filter at this order has at most so many ticks, and hardly fewer.

    Raises:
        InvalidParameterError: If it pays for nothing, or delta or order is outside its range.
    """
    whole = math.floor(_exact("ticks", ticks))
    epsilon = renyi_epsilon(order, whole, delta)
    while epsilon > 0.0 and renyi_capacity(order, epsilon, delta) > whole:
        epsilon = math.nextafter(epsilon, 0.0)
    if epsilon == 0.0 or renyi_capacity(order, epsilon, delta) == 0:
        raise InvalidParameterError(
            f"ticks must pay for something, got {float(whole * TICK):.3g} in Renyi divergence at order "
            f"{float(order):.6g}; take a larger part."
        )
    return Budget(epsilon, delta, allow_large_epsilon=True, order=order, neighbours=neighbours)


def alike(budget: Budget) -> Budget:
    """Return the budget without an order that pays for about as little noise: for forecasts, not for charges.

    That of a filter of capacity C at order a is taken as C/a of zero-concentrated divergence.
    """
    check_kind("budget", budget, Budget)
    if budget.order is None:
        return budget
    order = budget.order
    spread = float(renyi_capacity(order, budget.epsilon, budget.delta) * TICK / order)

    def epsilon_at(less: float) -> float:
        return spread * (1 + less) - _float_conversion(less, budget.delta)

    best = epsilon_at(_best_order(lambda less: -epsilon_at(less)) - 1)
    return Budget(
        min(max(best, 1e-100), budget.epsilon),
        budget.delta,
        allow_large_epsilon=True,
        neighbours=budget.neighbours,
    )


def per_row(budget: Budget, rows_per_person: int) -> Budget:
    """Return what a mechanism may spend on one row, where a person can have so many of them.

    Dwork & Roth (2014), Theorem 2.2 and its remark for delta > 0: k rows are replaced one after the other.

    Args:
        budget: For a person.
        rows_per_person: At least 1. k, the most that anybody has.

    Returns:
        epsilon' = epsilon/k, and delta' with k exp((k-1) epsilon') delta' = delta, both rounded down.

    Raises:
        InvalidParameterError: Also if too little is left, or the budget has an order.
    """
    rows = checked_integer("rows_per_person", rows_per_person, at_least=1)
    if rows == 1:
        return budget
    if budget.order is not None:
        raise InvalidParameterError(
            f"rows_per_person must be 1 with a share of a total, got rows_per_person={rows}; the total's is "
            "that of all its shares: TableBudget(.., rows_per_person=k)."
        )
    epsilon = float_down(budget.epsilon_exact / rows)
    with localcontext(Context(prec=60)):
        grown = rows * (Decimal(epsilon) * (rows - 1)).exp()
        delta = float_down(Decimal(budget.delta) / grown)
    if epsilon == 0.0 or (delta == 0.0) is not budget.pure:
        raise InvalidParameterError(
            f"rows_per_person must leave a budget for one row, got rows_per_person={rows} at {budget}; cap "
            "the rows of a person before loading."
        )
    return attrs.evolve(budget, epsilon=epsilon, delta=delta)


def per_person(budget: Budget, rows_per_person: int) -> Budget:
    """Return what a mechanism costs a person with so many rows, where it spends this on one row.

    Dwork & Roth (2014), Theorem 2.2 and its remark for delta > 0: k rows are replaced one after the other.

    Args:
        budget: For a row.
        rows_per_person: At least 1. k, the most that anybody has.

    Returns:
        k epsilon and k exp((k-1) epsilon) delta, both rounded up, at most to the largest numbers of a budget:
        there nothing is promised.
    """
    check_kind("budget", budget, Budget)
    rows = checked_integer("rows_per_person", rows_per_person, at_least=1)
    if rows == 1:
        return budget
    with localcontext(Context(prec=60)):
        power = min(Decimal(budget.epsilon) * (rows - 1), Decimal(2000))  # e^2000 times any delta exceeds 1
        delta = float_up(Decimal(budget.delta) * rows * power.exp())
    epsilon = min(float_up(budget.epsilon_exact * rows), math.nextafter(math.inf, 0.0))
    delta = min(delta, math.nextafter(1.0, 0.0))
    return Budget(epsilon, delta, epsilon > LARGEST_EPSILON, neighbours=budget.neighbours)
