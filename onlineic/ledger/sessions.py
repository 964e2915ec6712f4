"""Ledgers of the sessions that a table has: each is charged once, and no copy of one is open beside it."""

import weakref
from typing import final

from onlineic.accounting.budget import Budget, Filter
from onlineic.ledger.records import Ledger


@final
class Sessions:
    """Ledgers that were entered on a table, as long as they live, with what each was charged for.

    All tables of the same records have these together, and all loads that draw on one total.
    """

    __slots__ = ("_entered",)

    def __init__(self) -> None:
        self._entered: list[tuple[weakref.ref[Ledger], Budget | None, Filter | None]] = []

    def known(self, ledger: Ledger, budget: Budget | None, account: Filter | None) -> bool:
        """Return whether this ledger was entered with this budget, None of simulated noise, and account."""
        return any(
            held() is ledger and (budget, account) == (its_budget, its_account)
            for held, its_budget, its_account in self._entered
        )

    def add(self, ledger: Ledger, budget: Budget | None, account: Filter | None) -> None:
        """Enter a ledger."""
        living = [one for one in self._entered if one[0]() is not None]
        self._entered = [*living, (weakref.ref(ledger), budget, account)]

    def ledgers(self) -> list[Ledger]:
        """Return those that still live."""
        return [ledger for held, *_ in self._entered if (ledger := held()) is not None]
