"""Records as a ledger in memory keeps them: easy answers given one at a time become columns."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import final

import attrs
import numpy as np

from onlineic.domain.domain import Domain
from onlineic.ledger.records import Easy, EasyBatch, Record
from onlineic.queries.batch import Queries
from onlineic.queries.query import Query

RECENT = 4096  # records that are held as objects before they are looked through
SHORTEST = 16  # easy answers in a row that are worth columns


@final
@attrs.define(eq=False)  # never written to; frozen it would take three times as long to make, once an answer
class Kept:
    """Records in order. A step makes another of these, so that an interrupt leaves the old one.

    Attributes:
        parts: The older ones. Every row of an `EasyBatch` here is an `Easy` record of its own.
        starts: The place of the first record of each part, and of the first recent one.
        recent: Shared by those that follow one another: what lies behind `count` is of an interrupted step.
        count: How many of the recent ones stand.
    """

    parts: tuple[EasyBatch | tuple[Record, ...], ...] = ()
    starts: tuple[int, ...] = (0,)
    recent: list[Record] = attrs.field(factory=list)
    count: int = 0

    def __len__(self) -> int:
        return self.starts[-1] + self.count

    def followed_by(self, records: Sequence[Record]) -> "Kept":
        """Return these records followed by others."""
        if self.count >= RECENT:
            return self._sorted_in().followed_by(records)
        # nothing is deleted in place: it may be what a signal's handler wrote, which stands
        recent = self.recent if len(self.recent) == self.count else self.recent[: self.count]
        recent.extend(records)
        return Kept(self.parts, self.starts, recent, self.count + len(records))

    def at(self, place: int) -> Record:
        """Return the record of one place, 0 <= place < len."""
        recent = place - self.starts[-1]
        return self.recent[recent] if recent >= 0 else self.between(place, place + 1)[0]

    def between(self, start: int, stop: int) -> tuple[Record, ...]:
        """Return the records of these places, 0 <= start, stop <= len."""
        return tuple(chain.from_iterable(self.slices(start, stop)))

    def slices(self, start: int, stop: int) -> Iterable[EasyBatch | Sequence[Record]]:
        """Return the records of these places as they are held."""
        first = self.starts[-1]
        recent = self.recent[max(0, start - first) : max(0, min(stop - first, self.count))]
        return [recent] if start >= first else chain(self._older(start, stop), [recent])

    def _older(self, start: int, stop: int) -> Iterator[EasyBatch | Sequence[Record]]:
        for number in range(bisect_right(self.starts, start) - 1, len(self.parts)):
            part, at = self.parts[number], self.starts[number]
            if at >= stop:
                return
            places = slice(max(0, start - at), min(len(part), stop - at))
            if isinstance(part, EasyBatch):
                yield EasyBatch(part.queries[places], part.guesses[places])
            else:
                yield part[places]

    def _sorted_in(self) -> "Kept":
        """Return the same records, none of them recent."""
        parts, starts = list(self.parts), list(self.starts)
        for domain, run in groupby(islice(self.recent, self.count), _domain):
            records = tuple(run)
            if domain is None or len(records) < SHORTEST:
                parts.append(records)
            else:
                parts.append(_columns(domain, records))
            starts.append(starts[-1] + len(records))
        return Kept(tuple(parts), tuple(starts))


def _domain(record: Record) -> Domain | None:
    """Return the domain of an easy answer that fits into columns, or None."""
    if isinstance(record, Easy) and isinstance(record.query, Query) and isinstance(record.guess, int):
        return record.query.domain if abs(record.guess) < 2**63 else None
    return None


def _columns(domain: Domain, records: Sequence[Record]) -> EasyBatch:
    easy = [record for record in records if isinstance(record, Easy)]
    queries = Queries.bound(domain, [record.query for record in easy if isinstance(record.query, Query)])
    return EasyBatch(queries, np.array([record.guess for record in easy], np.int64))
