"""From what is planned to a mechanism: which one, and with the least noise that pays for the plan."""

from fractions import Fraction
from functools import partial
from typing import Any, get_args

import attrs

from onlineic.accounting.budget import Budget, Filter
from onlineic.accounting.renyi import renyi_capacity
from onlineic.errors import InvalidParameterError, shown
from onlineic.plan.defaults import FALSE_HITS_ALONE, PARTITION_RATIO
from onlineic.queries.query import session_grid_bits
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.gumbel import LEAST_GRID
from onlineic.sparse.kinds import KINDS, SparseName, finer_name


def chosen_name(
    name: SparseName | None, cutoff: int, max_queries: int, budget: Budget, partition: bool
) -> SparseName:
    """Return the mechanism: the smaller predicted resolution, from public parameters."""
    if name is not None:
        if name not in get_args(SparseName):
            raise InvalidParameterError(
                f"sparse must be 'gumbel', 'exponential' or 'laplace', got {shown(name)}."
            )
        if name != "gumbel" and budget.order is not None:
            raise InvalidParameterError(
                f"sparse must be 'gumbel' with a share of a total, whose Renyi filter it spends from, got "
                f"sparse={shown(name)}; give a pure session a Budget(epsilon) of its own."
            )
        return name
    if budget.order is not None or (partition and not budget.pure):
        return "gumbel"
    return finer_name(cutoff, max_queries, budget)


def mechanism_for(
    name: SparseName,
    budget: Budget,
    *,
    n: int,
    partition: bool = False,
    reserved: Fraction = Fraction(0),
    pure: bool = False,
    room: int = 0,
    restarts: int = 0,
    **settings: Any,
) -> NumericSparse:
    """Return the named mechanism with the least noise that pays for the planned hard answers.

    Args:
        reserved: Share of the capacity, or with `pure` of epsilon, that is kept for other releases.
        room: Bits by which the noise of a Gumbel session may grow: its grid is so much coarser.
        restarts: How many are paid for, by mechanisms that keep a threshold: `GumbelSparse` loses nothing by
            one.
        **settings: What `calibrated` of every mechanism takes: hard_answers, max_queries, beta, alpha or
            threshold.
    """
    given, tables = budget, {"partition": True, "ratio": PARTITION_RATIO} if partition else {}
    if partition and not reserved:  # nothing is bought beside hits: all that is learned comes from them
        tables["false_hits"] = FALSE_HITS_ALONE
    if name == "gumbel" and pure and budget.order is None:
        # the order that suits what is left; a hair less, since capacities are rounded down
        left = budget.epsilon * float(1 - reserved) * (1.0 - 2.0**-30)
        given, reserved = attrs.evolve(budget, epsilon=left), Fraction(0)
    own: dict[SparseName, dict[str, Any]] = {
        "gumbel": {"reserved": reserved} | tables,
        "exponential": {"reserved": reserved, "restarts": restarts, "fresh": partition},
        "laplace": {"restarts": restarts},
    }
    made = partial(KINDS[name].calibrated, given, n=n, **settings | own[name])
    mechanism = made(grid_bits=session_grid_bits(n))
    coarser = max(min(LEAST_GRID, mechanism.grid_bits), mechanism.grid_bits - room)
    if name == "gumbel" and coarser < mechanism.grid_bits:
        mechanism = made(grid_bits=coarser)
    return attrs.evolve(mechanism, epsilon=budget.epsilon)


def weight_bits(sparse: NumericSparse) -> int:
    """Return the grid of weights that suits the number of records, no coarser than that of the mechanism."""
    return max(sparse.grid_bits, min(session_grid_bits(sparse.n), (sparse.n - 1).bit_length()))


def rounded_down(sparse: NumericSparse) -> float:
    """Return one step of the grid of the noise, a fraction, where weights are on a finer one; else 0."""
    return 1.0 / (sparse.n << sparse.grid_bits) if weight_bits(sparse) > sparse.grid_bits else 0.0


def brought(sparse: NumericSparse, n: int, budget: Budget) -> NumericSparse:
    """Return a mechanism brought by the caller, if it is ours and spends no more than the budget."""
    if type(sparse) not in KINDS.values():
        raise InvalidParameterError(
            "sparse must be a GumbelSparse, ExponentialSparse or LaplaceSparse, got a "
            f"{type(sparse).__name__}: nothing is proven of another."
        )
    if sparse.neighbours != budget.neighbours:
        raise InvalidParameterError(
            f"sparse must be made for the neighbours of the budget, {budget.neighbours}, got one for "
            f"{sparse.neighbours}; calibrate it from this budget."
        )
    epsilon = Fraction(sparse.epsilon)  # type: ignore[attr-defined]
    delta = Fraction(getattr(sparse, "delta", 0.0))
    if epsilon > budget.epsilon_exact or delta > budget.delta_exact or sparse.n != n:
        raise InvalidParameterError(
            f"sparse must be made for n={n} and at most {budget}, got n={sparse.n}, "
            f"epsilon={float(epsilon):g}, delta={float(delta):g}; calibrate it for this table."
        )
    if budget.order is not None:
        capacity = Fraction(renyi_capacity(budget.order, budget.epsilon, budget.delta))
        if sparse.account() != Filter(capacity, "ticks", budget.order):
            raise InvalidParameterError(
                f"sparse must spend all of the share at its Renyi order {float(budget.order):g}, got another "
                "account; leave it out, or give the session a Budget of its own."
            )
    if not sparse.account().capacity:
        raise InvalidParameterError(
            "sparse must have a capacity > 0, got one that pays for nothing; calibrate it for this budget."
        )
    return sparse
