"""Who pays for what a question makes a session spend: a part of the budget for each of many askers.

All askers share one session, one hypothesis and one budget, because budgets of their own would add for those
who collude. A purse only says how much of that one budget a name may use up. It is asked before anything is
read, about a price that is known from the record; who paid stands beside the release in the ledger. So an
asker with an empty purse is an analyst who does not ask, and the promise is that of the session.

Proof: docs/theory/session.md, 4.11.
"""

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import final

import attrs

from onlineic.errors import InvalidParameterError, shown
from onlineic.ledger.records import Burned, Hard, Ledger, Opened


@final
@attrs.frozen
class Purse:
    """How much of the account a name may use up, over the whole life of the ledger.

    Attributes
    ----------
    name : str
        Public: it stands in the ledger.
    limit : Fraction
        In the unit of the account; what this name has paid before counts.

    Raises
    ------
    InvalidParameterError
        If the name is empty or no text, or the limit is negative or no Fraction.
    """

    name: str
    limit: Fraction

    def __attrs_post_init__(self) -> None:
        if type(self.name) is not str or not self.name:
            raise InvalidParameterError(f"name must be a text of one letter or more, got {shown(self.name)}.")
        if type(self.limit) is not Fraction or self.limit < 0:
            raise InvalidParameterError(f"limit must be a Fraction >= 0, got {shown(self.limit)}.")


@final
class Tally:
    """What each name has paid: a fold over the record, so that no crash and no other file can forget it.

    Parameters
    ----------
    ledger : Ledger
    """

    __slots__ = ("_ledger", "_seen", "_spent")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._seen = ledger, 0
        self._spent: dict[str, Fraction] = {}

    def of(self, name: str) -> Fraction:
        """Return what a name has paid, in the unit of the account."""
        return self.all().get(name, Fraction(0))

    def all(self) -> Mapping[str, Fraction]:
        """Return what every name has paid."""
        length = len(self._ledger)
        for place, name in itertools.islice(self._ledger.paid.items(), self._seen, None):
            if place >= length:  # its release is being recorded now
                break
            record = self._ledger.record(place)
            if isinstance(record, Hard | Opened | Burned):
                self._spent[name] = self._spent.get(name, Fraction(0)) + record.charge.amount
            self._seen += 1
        return self._spent
