"""What the file of a table's total says, every price in it computed again from its lines."""

from fractions import Fraction
from typing import final

import attrs

from onlineic.accounting.budget import Budget, Filter
from onlineic.ledger.lines import Receipt, Written
from onlineic.ledger.records import Drawn, Noted, Shared
from onlineic.ledger.settings import check_kind
from onlineic.ledger.total import drawn_problems, total_of


@final
@attrs.frozen
class TotalReport:
    """What the total of a table holds, and what is wrong with it.

    Attributes:
        budget: Of the table, or of a person with so many rows of it.
        account: Of the total as it stands, with what is spent: of epsilon, or of what the first share made a
            filter.
        apart, apart_spent: The delta for mechanisms that take their own, and what they took of it: all of it,
            or what the filter sets apart for those without a price at its order.
        parts: What each of them took of that which it drew on; of a total with problems none.
        noted: How far the files of sessions were, the newest of each last.
        problems: What does not hold; empty if all does.
    """

    table: str
    created: str
    version: str
    budget: Budget
    rows_per_person: int
    account: Filter
    apart: Fraction
    apart_spent: Fraction
    receipt: Receipt
    drawn: tuple[Drawn, ...]
    parts: tuple[Fraction, ...] = ()
    noted: tuple[Noted, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether everything holds that was checked."""
        return not self.problems


def total_report(written: Written, receipt: Receipt | str | None = None) -> TotalReport:
    """Return what a total says.

    Args:
        written: As `onlineic.ledger.read` or `onlineic.ledger.imported` returned it: its chain holds.
        receipt: Of an earlier time.

    Raises:
        LedgerRollbackError: If the file does not go on from the receipt.
        LedgerMismatchError, LedgerCorruptError: If it is a session's ledger, or its capacity is not that of
            its budget.
    """
    written.check(receipt)
    check_kind(written.beginning, total=True)
    budget, standing = total_of(written)
    records, _ = written.records(written.domain())
    problems = drawn_problems(records, standing)
    drawn = tuple(record for record in records if isinstance(record, Drawn))
    apart, parts = standing.delta, list[Fraction]()
    for record in records if not problems else ():
        if isinstance(record, Drawn):
            parts.append(record.taken.charge.amount / standing.account.capacity)
        standing = standing.after(record)
        apart = record.apart if isinstance(record, Shared) else apart
    beginning = written.beginning
    return TotalReport(
        table=beginning["table"],
        created=beginning["created"],
        version=beginning["version"],
        budget=budget,
        rows_per_person=beginning["settings"]["rows_per_person"],
        account=standing.account,
        apart=apart,
        apart_spent=apart - standing.delta,
        receipt=written.receipt,
        drawn=drawn,
        parts=tuple(parts),
        noted=tuple(record for record in records if isinstance(record, Noted)),
        problems=tuple(problems),
    )
