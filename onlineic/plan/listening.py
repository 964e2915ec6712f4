"""Purchases by what is asked, and the account that pays them: from public facts alone.

Proof: docs/theory/session.md, 4.9.
"""

import itertools

from onlineic.accounting.budget import Filter
from onlineic.domain.domain import Domain
from onlineic.plan.announced import Announcement
from onlineic.plan.calibration import chosen_name, mechanism_for
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.settings import Settings
from onlineic.queries.cuts import planned
from onlineic.queries.reach import Reach

FEW = 6  # attributes of which all pairs are expected


def listening_rule(
    domain: Domain, told: Announcement, reach: Reach | None, *, numbers: bool = False
) -> DemandPurchases:
    """Return the rule of a session that buys by what is asked, and by what was announced.

    Args:
        numbers: Whether so few questions were told that each is bought by itself.

    Raises:
        InvalidQueryError: If a name that was announced is no attribute.
    """
    sets = tuple(tuple(sorted(domain.axis(name) for name in one)) for one in told.sets)
    axes = [axis for axis, size in enumerate(domain.shape) if size > 1]
    if not sets and axes and len(axes) <= FEW:  # most of their pairs will be asked
        sets = tuple(itertools.combinations(axes, min(2, len(axes))))
    guessed = not told.sets
    return DemandPurchases.of(sets, reach, told.count, told.expected, guessed=guessed, numbers=numbers)


def told_nothing(rule: DemandPurchases, domain: Domain) -> bool:
    """Return whether a rule buys only by what is asked: nothing was announced."""
    return rule == listening_rule(planned(domain), Announcement(), rule.reach)


def account_of_purchases(n: int, settings: Settings) -> Filter:
    """Return the account of a session whose tables are bought as questions come."""
    name = settings.sparse if isinstance(settings.sparse, str) else None
    name = chosen_name(name, 1, 1, settings.of_row, partition=True)
    return mechanism_for(
        name, settings.of_row, n=n, hard_answers=1, max_queries=settings.max_queries, beta=settings.beta,
        partition=True,
    ).account()  # fmt: skip
