"""Purchases by what is asked, and the account that pays them: from public facts alone.

Proof: docs/theory/session.md, 4.9.
"""

import itertools

import attrs

from onlineic.accounting.budget import Filter
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.plan.announced import Announcement, Questions, announcement
from onlineic.plan.calibration import chosen_name, mechanism_for
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.first_tables import over_codes
from onlineic.plan.purchases import Facts
from onlineic.plan.settings import Settings
from onlineic.queries.cuts import planned
from onlineic.queries.reach import Reach

FEW = 6  # attributes of which all pairs are expected


def listening_rule(domain: Domain, told: Announcement, reach: Reach | None) -> DemandPurchases:
    """Return the rule of a session that buys by what is asked, and by what was announced.

    Raises
    ------
    InvalidQueryError
        If a name that was announced is no attribute.
    """
    sets = tuple(tuple(sorted(domain.axis(name) for name in one)) for one in told.sets)
    axes = [axis for axis, size in enumerate(domain.shape) if size > 1]
    if not sets and len(axes) <= FEW:  # most of their pairs will be asked
        sets = tuple(itertools.combinations(axes, min(2, len(axes))))
    return DemandPurchases.of(sets, reach, told.count, bool(told.sets))


def settled_purchases(
    domain: Domain, n: int, settings: Settings, questions: Questions | None = None
) -> DemandPurchases:
    """Return one purchase that sessions of any update rule can begin with, whatever is asked first.

    Parameters
    ----------
    domain : Domain
    n : int
    settings : Settings
        Of all sessions alike.
    questions : as `Settings.questions`, optional
        What will be asked. None: as a session that is told nothing expects.

    Raises
    ------
    InvalidParameterError
        If nothing can be bought for so little budget.
    """
    told = Announcement() if questions is None else announcement(questions).of_domain(domain)
    seen = planned(domain)
    rule = listening_rule(seen, told, settings.reach)
    account, neighbours = account_of_purchases(n, settings), settings.of_row.neighbours
    made = rule.settled(Facts(seen, n, account, neighbours, rule.start()))
    if made.first is None:
        raise InvalidParameterError(
            f"budget must pay for tables of {n:,} records, got one for which no noise can be drawn; write a "
            "larger epsilon, or purchases=TestsOnly()."
        )
    return attrs.evolve(made, first=over_codes(made.first, domain))


def account_of_purchases(n: int, settings: Settings) -> Filter:
    """Return the account of a session whose tables are bought as questions come."""
    name = settings.sparse if isinstance(settings.sparse, str) else None
    name = chosen_name(name, 1, 1, settings.of_row, partition=True)
    return mechanism_for(
        name, settings.of_row, n=n, hard_answers=1, max_queries=settings.max_queries, beta=settings.beta,
        partition=True,
    ).account()  # fmt: skip
