"""When the first instalment is by what is asked, and on what account: from public facts alone.

Proof: docs/theory/session.md, 4.9.
"""

import numpy as np

from onlineic.accounting.budget import Budget, Filter
from onlineic.domain.domain import Domain
from onlineic.interactions.demand import Axes
from onlineic.plan.calibration import chosen_name, mechanism_for
from onlineic.plan.defaults import PARTS_AT_MOST
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.settings import Settings

MANY_CELLS = 10_000  # of the tables of all pairs together, or of all, from which on the default listens ..
MANY_RECORDS = 2e5  # .. or of records times epsilon


def listening_rule(domain: Domain, n: int, settings: Settings, start: str | None) -> DemandPurchases | None:
    """Return the rule of a session that would start so, if its first instalment is by what is asked.

    None: that one is settled beforehand.

    Raises
    ------
    InvalidQueryError
        If a name that was announced is no attribute.
    """
    announced = _announced(domain, settings)
    if start not in ("pairs", "cells") or not settings.listens:
        return None
    listens = pays_to_listen(domain, n, settings.of_row, cells=start == "cells")
    # of sets that were counted at load all that is bought must be one
    counted = settings.reach is not None and settings.reach.sets is not None
    if listens or counted or (announced and start == "pairs"):
        return DemandPurchases.of(announced, settings.reach, settings.announced.count)
    return None


def account_of_purchases(n: int, settings: Settings) -> Filter:
    """Return the account of a session whose tables are bought as questions come."""
    name = chosen_name(None, 1, 1, settings.of_row, partition=True)
    return mechanism_for(
        name, settings.of_row, n=n, hard_answers=1, max_queries=settings.max_queries, beta=settings.beta,
        partition=True,
    ).account()  # fmt: skip


def _announced(domain: Domain, settings: Settings) -> tuple[Axes, ...]:
    """Return the sets of attributes that were announced, as places in the domain."""
    return tuple(tuple(sorted(domain.axis(name) for name in one)) for one in settings.announced.sets)


def pays_to_listen(domain: Domain, n: int, budget: Budget, *, cells: bool = False) -> bool:
    """Return whether the first instalment is by what is asked, where nobody settled it, and not all pairs.

    Or in the place of all `cells`, if these are many: long ranges sum the noise of many of them.

    Of many attributes most pairs are never asked, and of many records pairs do not hold what can be known:
    there errors fall by .2 to .6. Elsewhere both err about alike.
    """
    parts = np.array([min(size, PARTS_AT_MOST) for size in domain.shape if size > 1], np.float64)
    of_pairs = (parts.sum() ** 2 - (parts**2).sum()) / 2.0
    if cells:  # one table has less Laplace noise than several that cost as much
        return not budget.pure and domain.size >= MANY_CELLS and n * budget.epsilon >= MANY_RECORDS
    return bool(of_pairs >= MANY_CELLS or n * budget.epsilon >= MANY_RECORDS)
