"""What was spent for which wish, and how spending grew with the answers: from the record alone."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from onlineic.accounting.budget import Filter
from onlineic.display.text import percent
from onlineic.ledger.records import BoughtTables, Certified, Easy, EasyBatch, Forfeited, Hard, Record, Single
from onlineic.queries.within import Within
from onlineic.slips import public

LATEST = 64  # answers, by whose mean price more like them are counted
FEWEST = 8  # of which a mean says something
DIGITS = 2  # of a number that is told as about so many


@public
@final
@attrs.frozen
class WishSpending:
    """What was spent for one wish.

    Attributes:
        answers: Questions that something was done for: a test, a number, or tables for their call. What was
            known within the wish is free, and not among them.
        spent: Part of the budget; what tables for the wish cost is in it.
        more: About how many more such answers the rest of the budget pays, by the mean price of the latest 64
            at most. None where these were fewer than 8, or free.
    """

    within: Within
    answers: int
    spent: float
    more: int | None

    def said(self) -> tuple[str, str]:
        """Return the wish, and what was spent for it, in words."""
        kind = "certain" if self.within.certain else "expected"
        answers = (
            f"{percent(self.spent)} of the budget for {self.answers:,} answer{'s' * (self.answers != 1)}"
        )
        more = "" if self.more is None else f"; about {self.more:,} more like the latest"
        return f"within {self.within.radius:g}, {kind}", answers + more


def spent_by_wish(records: Sequence[Record], account: Filter) -> tuple[WishSpending, ...]:
    """Return what was spent for each wish, that with most answers first."""
    held: dict[tuple[float, bool], list[Record]] = {}
    for record in records:
        if isinstance(record, Certified | Hard | Single | BoughtTables) and record.within is not None:
            held.setdefault((record.within.radius, record.within.certain), []).append(record)
    found = []
    for (radius, certain), own in held.items():
        keys: set[Any] = set()
        for record in own:
            keys.update(_answered(record))
        spent = sum(map(_cost, own), Fraction(0))
        wish = Within(radius, certain)
        part = float(spent / account.capacity)
        found.append(WishSpending(wish, len(keys), part, _more(own, account.left)))
    return tuple(sorted(found, key=lambda one: -one.answers))


def spending_of(records: Iterable[Record], account: Filter) -> tuple[tuple[int, float], ...]:
    """Return (questions answered by a test or a release, part of the budget) after each release, and now."""
    told, spent, found, many = set[Any](), Fraction(0), [(0, 0.0)], 0
    for record in records:
        told.update(_answered(record))
        many += len(record) if isinstance(record, EasyBatch) else 0
        cost = _cost(record)
        spent += cost
        if cost:
            found.append((len(told) + many, float(spent / account.capacity)))
    return (*found, (len(told) + many, float(spent / account.capacity)))


def steps_said(spending: Sequence[tuple[int, float]]) -> str:
    """Return what was spent after 1, 10, 100, .. answers and after all, in words."""
    last = spending[-1][0]
    looks = [*itertools.takewhile(lambda count: count < last, (10**power for power in range(19))), last]
    said = []
    for look in looks:
        part = max(part for answers, part in spending if answers <= look)
        said.append(f"{percent(part)} after {look:,}")
    return ", ".join(said)


def _more(own: Sequence[Record], left: Fraction) -> int | None:
    """Return how many more answers like the latest what is left pays, where that can be said."""
    keys, spent = set[Any](), Fraction(0)
    for record in reversed(own):
        if len(keys) >= LATEST:
            break
        keys.update(_answered(record))
        spent += _cost(record)
    if len(keys) < FEWEST or not spent:
        return None
    return int(float(f"{float(left * len(keys) / spent):.{DIGITS}g}"))


def _answered(record: Record) -> Iterator[Any]:
    """Yield the keys of the questions that a record answers."""
    if isinstance(record, Easy | Certified | Hard | Single):
        yield record.query.key
    elif isinstance(record, BoughtTables) and record.within is not None and len(record.heard) > 1:
        yield from (one.key for one in record.heard)


def _cost(record: Record) -> Fraction:
    if isinstance(record, Hard | Single | BoughtTables | Forfeited):
        return record.charge.amount
    return Fraction(0)
