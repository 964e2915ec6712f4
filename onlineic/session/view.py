"""What is public of a session at one moment: frozen, so that readers wait for nobody."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from onlineic.accounting.budget import Charge, Filter
from onlineic.display.plain import strict
from onlineic.domain.domain import Domain
from onlineic.hypothesis.base import Hypothesis
from onlineic.plan.plan import Plan
from onlineic.session.statistics import SessionStatistics


@final
@attrs.frozen(eq=False, repr=False)
class View:
    """Public facts of a session, as they were when it was taken.

    Attributes
    ----------
    domain : Domain
    n : int
    plan : Plan
    statistics : SessionStatistics
    hypothesis : Hypothesis
        Without any guarantee.
    answers_tables : bool
    account : Filter
        Without the standing reservation.
    reserved : Charge or None
    owed : Fraction
        The charge of tables that questions will buy, in the unit of the account.
    paid : mapping of str to Fraction
        What each purse has paid, in the unit of the account.
    length : int
        Records in the transcript.
    """

    domain: Domain
    n: int
    plan: Plan
    statistics: SessionStatistics
    hypothesis: Hypothesis
    answers_tables: bool
    account: Filter
    reserved: Charge | None
    owed: Fraction
    paid: Mapping[str, Fraction]
    length: int

    def to_dict(self) -> dict[str, Any]:
        """Return n, statistics and length as plain values, which `json.dumps` takes."""
        found: dict[str, Any] = strict({"n": self.n, **self.statistics.to_dict(), "length": self.length})
        return found

    def __repr__(self) -> str:
        return f"View(n={self.n:,}, {self.length:,} records)"
