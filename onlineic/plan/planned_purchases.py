"""The purchases of a plan whose tables are settled before the first question."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, final

import attrs

from onlineic.accounting.budget import Filter
from onlineic.ledger.records import Record
from onlineic.plan.first_tables import FirstTables
from onlineic.plan.later_tables import Asked
from onlineic.plan.plan import Plan
from onlineic.plan.purchases import Facts, PurchaseRule
from onlineic.queries.marginals import Question


@final
@attrs.frozen
class PlannedPurchases(PurchaseRule[Asked]):
    """The tables of a plan: the first ones with the first question, later ones once the questions tell which.

    Attributes
    ----------
    plan : Plan
    """

    plan: Plan

    def planned(self, account: Filter) -> Fraction:
        return self.plan.spending.bought

    def start(self) -> Asked:
        return Asked()

    def heard(self, so_far: Asked, record: Record) -> Asked:
        return self.plan.heard(so_far, record)

    def due_at(self, heard: Asked, questions: Iterable[Question]) -> int | None:
        return self.plan.due_at(heard, questions)

    def next(self, facts: Facts[Asked]) -> FirstTables | None:
        if facts.heard.releases:
            tables = self.plan.later(facts.heard)
        elif facts.question is not None and facts.question.constant is not None:
            return None  # it is answered without the table
        else:
            tables = self.plan.opening(facts.question)
        return tables if tables is not None and tables.affordable(facts.account) else None

    def owed(self, heard: Asked, account: Filter) -> Fraction:
        return self.plan.owed(heard, account)


def purchase_rule(plan: Plan) -> PurchaseRule[Any]:
    """Return what a session of this plan buys by."""
    return PlannedPurchases(plan) if plan.purchases is None else plan.purchases
