"""Tables that are settled before the first question, of which one release comes with it.

Proof: docs/theory/session.md, 4.2, 4.9.
"""

from fractions import Fraction
from typing import final

import attrs
from attrs.validators import instance_of, optional

from onlineic.accounting.budget import Filter
from onlineic.errors import InvalidParameterError, checked_ratio, set_fields
from onlineic.plan.first_tables import FirstTables
from onlineic.plan.kinds import is_dense, is_range
from onlineic.queries.marginals import Question


@final
@attrs.frozen
class FirstChoices:
    """What is released with the first question, which may choose among three, and what is kept for later.

    Attributes
    ----------
    first : FirstTables
        Unless the first question is of another kind.
    dense : FirstTables or None
        If it is a dense one: at the charge of all that is planned.
    ranges : FirstTables or None
        If it is a range of codes: at the charge of `first`.
    later : Fraction, >= 0
        What is kept for purchases by what is asked, in the unit of the account.

    Raises
    ------
    InvalidParameterError
        If tables in the place of `first` cost more or less: bounds share beta among the hits that the rest
        of the account pays, and so rest on one charge, whichever are bought.
    """

    first: FirstTables = attrs.field(validator=instance_of(FirstTables))
    dense: FirstTables | None = attrs.field(default=None, validator=optional(instance_of(FirstTables)))
    ranges: FirstTables | None = attrs.field(default=None, validator=optional(instance_of(FirstTables)))
    later: Fraction = Fraction(0)

    def __attrs_post_init__(self) -> None:
        set_fields(self, later=checked_ratio("later", self.later, at_least=0.0))
        for held in self.tables:
            if type(held) is not FirstTables:  # a total, and bounds, go by what they say
                raise InvalidParameterError(
                    f"first, dense and ranges must be FirstTables, got a {type(held).__name__}; take those "
                    "of a plan."
                )
        if self.ranges is not None and self.ranges.pure is not self.first.pure:  # a record tells no law
            raise InvalidParameterError(
                f"ranges must have noise of the law of first, got pure={self.ranges.pure}; take those of a "
                "plan."
            )
        for name, one, most in (
            ("dense", self.dense, self.planned),
            ("ranges", self.ranges, self.first.charge.amount),
        ):
            if one is not None and one.charge.amount != most:
                raise InvalidParameterError(
                    f"{name} must cost as much as the tables in whose place it is bought, {most}, got a "
                    f"charge of {one.charge.amount}; take the charge of those."
                )

    @property
    def planned(self) -> Fraction:
        """What all purchases may cost, in the unit of the account."""
        return self.first.charge.amount + self.later

    @property
    def tables(self) -> tuple[FirstTables, ...]:
        """All of these, the usual ones first."""
        return tuple(one for one in (self.first, self.dense, self.ranges) if one is not None)

    def chosen_by(self, question: Question | None) -> FirstTables:
        """Return what is released before this question, as the first, or before there is any."""
        if self.dense is not None and question is not None and is_dense(question):
            return self.dense
        if self.ranges is not None and question is not None and is_range(question):
            return self.ranges
        return self.first

    def told(self, account: Filter) -> str:
        """Return what is released, in words."""
        part = float(self.first.charge.amount / account.capacity)
        many = f"{len(self.first.targets)} of counts"
        if self.dense is not None:
            many = f"{many}, or {len(self.dense.targets)} of all cells where that is a dense question"
        if self.ranges is not None:
            many = f"{many}, coarse ones with less noise where that is a range"
        return f"released with the first question for {part:.0%} of the budget: {many}"
