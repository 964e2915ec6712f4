"""Who pays for what a question makes a session spend: a part of the budget for each of many askers.

All askers share one session, one hypothesis and one budget, because budgets of their own would add for those
who collude. A quota only says how much of that one budget a name may use up. It is asked before anything is
read, about a price that is known from the record; who paid stands beside the release in the ledger. So an
asker with an empty quota is an analyst who does not ask, and the promise is that of the session.

Proof: docs/theory/session.md, 4.11.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from operator import is_
from typing import Any, Protocol, TypeVar, final

import attrs

from onlineic.accounting.budget import Charge
from onlineic.errors import InvalidParameterError, TooFineWishError, checked_real, set_fields, shown
from onlineic.ledger.records import Bought, Forfeited, Hard, Ledger, Record
from onlineic.queries.within import Within

T = TypeVar("T")
NOTHING = Fraction(0)


@final
@attrs.frozen
class Quota:
    """How much of the account a name may use up, over the whole life of the ledger, and for how fine wishes.

    Attributes:
        name: Public: it stands in the ledger.
        limit: In the unit of the account; what this name has paid before counts.
        finest: At least 0. The finest wish that this name may have of a number, fraction of the records.

    Raises:
        InvalidParameterError: If the name is empty or no text, or a number is negative, or the limit no
            Fraction.
    """

    name: str
    limit: Fraction
    finest: float = 0.0

    def __attrs_post_init__(self) -> None:
        if type(self.name) is not str or not self.name:
            raise InvalidParameterError(f"name must be a text of one letter or more, got {shown(self.name)}.")
        if type(self.limit) is not Fraction or self.limit < 0:
            raise InvalidParameterError(f"limit must be a Fraction >= 0, got {shown(self.limit)}.")
        set_fields(self, finest=checked_real("finest", self.finest, at_least=0.0))

    def check(self, within: Within | None) -> None:
        """Raise `TooFineWishError` if a wish is finer than this name may have."""
        if within is not None and within.radius < self.finest:
            raise TooFineWishError(
                f"within must be at least {self.finest:g} of the records for {self.name}, got "
                f"{within.radius:g} for each number that is asked; nothing was spent: wish less exactly."
            )


def paid_after(paid: Mapping[str, Fraction], record: Record, name: str | None) -> Mapping[str, Fraction]:
    """Return what each name has paid, in the unit of the account, after a record that `name` pays for."""
    if name is None or not isinstance(record, Hard | Bought | Forfeited):
        return paid
    return {**paid, name: paid.get(name, NOTHING) + record.charge.amount}


class Paying(Protocol):
    """Whoever takes in the record, and so knows what each name has paid."""

    @property
    def state(self) -> Any:
        """With `paid`, after the records taken so far."""


@final
class Payments:
    """Tells a core whether the asker may spend an amount.

    Attributes:
        quota: Who pays now; None: the curator, with all of the budget.
    """

    def __init__(self, ledger: Ledger, fold: Paying) -> None:
        self._ledger, self._fold = ledger, fold
        self.quota: Quota | None = None
        self._affords: tuple[tuple[Fraction, Fraction, Fraction], bool] | None = None  # as last asked

    @property
    def payer(self) -> str | None:
        """The name of who pays now."""
        return None if self.quota is None else self.quota.name

    def by(self, name: str) -> Fraction:
        """Return what a name has paid, in the unit of the account."""
        paid: Fraction = self._fold.state.paid.get(name, NOTHING)
        return paid

    @property
    def empty(self) -> bool:
        """Whether the asker has nothing left."""
        return self.quota is not None and self.by(self.quota.name) >= self.quota.limit

    def affords(self, amount: Fraction) -> bool:
        """Return whether the asker may still spend so much, in the unit of the account."""
        if self.quota is None:
            return True
        asked = self.by(self.quota.name), amount, self.quota.limit
        known = self._affords
        if known is None or not all(map(is_, known[0], asked)):  # most questions of a stream cost the same
            known = self._affords = asked, asked[0] + amount <= asked[2]
        return known[1]

    def leading(self, questions: Sequence[T], cost: Callable[[T], Fraction]) -> tuple[int, bool]:
        """Return (k, payable): the first k questions are all within the asker's quota, or all beyond it.

        It is asked before anything is set aside or read, and rests on the record and the questions alone.
        """
        afforded = [self.affords(cost(question)) for question in questions]
        alike = itertools.takewhile(lambda one: one is afforded[0], afforded)
        return sum(1 for _ in alike), afforded[0]

    def settle(self, payer: str | None, used: Charge, charge: Charge) -> bool:
        """Pay what easy tests of a kept threshold have `used` up, before a charge is reserved in its place.

        Return whether what is left is too little for that charge.
        """
        self._ledger.pay(used, payer)
        return not self._ledger.account.affords(charge)
