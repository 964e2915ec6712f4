"""Purchases that are settled before the first question: tables with it, and later ones by what is asked.

Proof: docs/theory/session.md, 4.2, 4.9.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import final

import attrs
from attrs.validators import instance_of, optional

from onlineic.accounting.budget import Filter
from onlineic.errors import InvalidParameterError
from onlineic.ledger.records import Opened, Record
from onlineic.plan.first_tables import FirstTables
from onlineic.plan.kinds import is_dense, is_range
from onlineic.plan.later_tables import Asked, LaterTables
from onlineic.plan.purchases import Facts, PurchaseRule
from onlineic.queries.marginals import Question


@final
@attrs.frozen
class PlannedPurchases(PurchaseRule[Asked]):
    """One release of tables with the first question, which may choose among three, and a later one.

    Attributes
    ----------
    first : FirstTables
        Unless the first question is of another kind.
    dense : FirstTables or None
        If it is a dense one: at the charge of all tables.
    ranges : FirstTables or None
        If it is a range of codes: at the charge of `first`.
    later : LaterTables or None
        Released after the first ones, once the questions tell which.

    Raises
    ------
    InvalidParameterError
        If tables in the place of `first` cost more or less: bounds share beta among the hits that the rest
        of the account pays, and so rest on one charge, whichever are bought.
    """

    first: FirstTables = attrs.field(validator=instance_of(FirstTables))
    dense: FirstTables | None = attrs.field(default=None, validator=optional(instance_of(FirstTables)))
    ranges: FirstTables | None = attrs.field(default=None, validator=optional(instance_of(FirstTables)))
    later: LaterTables | None = attrs.field(default=None, validator=optional(instance_of(LaterTables)))

    def __attrs_post_init__(self) -> None:
        first, later = self.first.charge.amount, self.later
        every = first if later is None else first + later.charge.amount
        for name, one, most in (("dense", self.dense, every), ("ranges", self.ranges, first)):
            if one is not None and one.charge.amount != most:
                raise InvalidParameterError(
                    f"{name} must cost as much as the tables in whose place it is bought, {most}, got a "
                    f"charge of {one.charge.amount}; take the charge of those."
                )

    @property
    def first_choices(self) -> tuple[FirstTables, ...]:
        return tuple(one for one in (self.first, self.dense, self.ranges) if one is not None)

    def planned(self, account: Filter) -> Fraction:
        later = Fraction(0) if self.later is None else self.later.charge.amount
        return self.first.charge.amount + later

    def start(self) -> Asked:
        return Asked()

    def heard(self, so_far: Asked, record: Record) -> Asked:
        if self.later is not None:
            return self.later.behind(so_far, record)
        return so_far.with_release(record) if isinstance(record, Opened) else so_far

    def due_at(self, heard: Asked, questions: Iterable[Question]) -> int | None:
        if self.later is None or not self.later.waits(heard) or self.later.due(heard):
            return None
        return self.later.due_at(heard, questions)

    def next(self, facts: Facts[Asked]) -> FirstTables | None:
        if facts.heard.releases:
            tables = None if self.later is None else self.later.tables(facts.heard, self.first)
        elif facts.question is not None and facts.question.constant is not None:
            return None  # it is answered without the table
        else:
            tables = self.chosen_by(facts.question)
        return tables if tables is not None and tables.affordable(facts.account) else None

    def owed(self, heard: Asked, account: Filter) -> Fraction:
        if not heard.releases:
            return Fraction(0) if account.spent else self.planned(account)
        if self.later is None or not self.later.waits(heard) or self.later.charge.amount > account.left:
            return Fraction(0)
        return self.later.charge.amount

    def told(self, account: Filter) -> list[tuple[str, str]]:
        part = float(self.first.charge.amount / account.capacity)
        many = f"{len(self.first.targets)} of counts"
        if self.dense is not None:
            many = f"{many}, or {len(self.dense.targets)} of all cells where that is a dense question"
        if self.ranges is not None:
            many = f"{many}, coarse ones with less noise where that is a range"
        said = [("first tables", f"released with the first question for {part:.0%} of the budget: {many}")]
        if self.later is not None:
            part = float(self.later.charge.amount / account.capacity)
            when = f"once {self.later.joint} questions have joined three attributes"
            again = f"of pairs again, once {self.later.patience} questions came without that"
            said.append(("later tables", f"released for {part:.0%}: of triples, {when}; or {again}"))
        return said

    def chosen_by(self, question: Question | None) -> FirstTables:
        """Return what is released before this question, as the first, or before there is any."""
        if self.dense is not None and question is not None and is_dense(question):
            return self.dense
        if self.ranges is not None and question is not None and is_range(question):
            return self.ranges
        return self.first

    def held_by(self, record: Opened, heard: Asked, n: int) -> FirstTables | None:
        if not heard.releases:
            return next((one for one in self.first_choices if one.released_by(record, n)), None)
        later = None if self.later is None else self.later.tables(heard, self.first)
        return later if later is not None and later.released_by(record, n) else None

    def holds(self, record: Opened, heard: Asked, n: int) -> bool:
        return self.held_by(record, heard, n) is not None
