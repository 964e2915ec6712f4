"""What a session buys without a test: one rule, asked before each test, that sees public facts alone."""

import abc
from collections.abc import Iterable
from typing import final

import attrs

from onlineic.accounting.budget import Filter
from onlineic.domain.domain import Domain
from onlineic.ledger.records import Ledger, Record
from onlineic.plan.first_tables import FirstTables
from onlineic.plan.later_tables import Asked
from onlineic.plan.plan import Plan
from onlineic.queries.marginals import Question


@final
@attrs.frozen(eq=False)
class Facts:
    """All that a purchase may rest on: public, and in the record before it.

    Attributes
    ----------
    domain : Domain
    n : int
    account : Filter
        What is spent, and what is left.
    heard : Asked
        What the record has asked and bought, as the rule has summed it up.
    question : Query or BoundMarginal or None
        What is about to be asked; of a batch the first that is no constant.
    """

    domain: Domain
    n: int
    account: Filter
    heard: Asked
    question: Question | None


class PurchaseRule(abc.ABC):
    """What to buy next; pure and deterministic, so that whoever holds the record can work it out again."""

    @abc.abstractmethod
    def heard(self, so_far: Asked, record: Record) -> Asked:
        """Return what was asked and bought with one more record."""

    @abc.abstractmethod
    def next(self, facts: Facts) -> FirstTables | None:
        """Return what to buy before the next test, or None. What the account cannot pay is not named."""

    def due_at(self, heard: Asked, questions: Iterable[Question]) -> int | None:
        """Return after how many of these questions something is to be bought; None: not before the last."""
        return None


@final
class Purchases:
    """A rule with the record that it goes by.

    Parameters
    ----------
    rule : PurchaseRule
    ledger : Ledger
    domain : Domain
    n : int
    """

    def __init__(self, rule: PurchaseRule, ledger: Ledger, domain: Domain, n: int) -> None:
        self._rule, self._ledger, self._domain, self._n = rule, ledger, domain, n
        self._heard: tuple[int, Asked] = (0, Asked())  # of so many records

    @property
    def heard(self) -> Asked:
        """What the rule takes from the record."""
        known, heard = self._heard
        if known < len(self._ledger):
            records = self._ledger.records(known)
            for record in records:
                heard = self._rule.heard(heard, record)
            self._heard = (known + len(records), heard)
        return heard

    def next(self, question: Question | None) -> FirstTables | None:
        """Return what the rule names before this question is tested, or None."""
        return self._rule.next(Facts(self._domain, self._n, self._ledger.account, self.heard, question))

    def due_at(self, questions: Iterable[Question]) -> int | None:
        """Return after how many of these questions the rule buys something; None: not before the last."""
        return self._rule.due_at(self.heard, questions)


@final
@attrs.frozen
class PlannedPurchases(PurchaseRule):
    """The tables of a plan: the first ones with the first question, later ones once the questions tell which.

    Attributes
    ----------
    plan : Plan
    """

    plan: Plan

    def heard(self, so_far: Asked, record: Record) -> Asked:
        return self.plan.heard(so_far, record)

    def due_at(self, heard: Asked, questions: Iterable[Question]) -> int | None:
        return self.plan.due_at(heard, questions)

    def next(self, facts: Facts) -> FirstTables | None:
        if facts.heard.releases:
            tables = self.plan.later(facts.heard)
        elif facts.question is not None and facts.question.constant is not None:
            return None  # it is answered without the table
        else:
            tables = self.plan.opening(facts.question)
        return tables if tables is not None and tables.affordable(facts.account) else None
