"""The public transcript as it is read: one record a test, made from batches when it is looked at."""

import bisect
import itertools
from collections.abc import Iterator, Sequence
from typing import final, overload

from onlineic.ledger.records import Easy, EasyBatch, Record


@final
class Transcript(Sequence[Record]):
    """Records in order, those of a batch of easy answers one by one; equal to a tuple of the same.

    Args:
        records: As a ledger holds them.
    """

    __slots__ = ("_starts", "records")

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = tuple(records)
        lengths = (len(record) if isinstance(record, EasyBatch) else 1 for record in self.records)
        self._starts = [0, *itertools.accumulate(lengths)]

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, place: int | slice) -> Record | tuple[Record, ...]:
        if isinstance(place, slice):
            return tuple(self[at] for at in range(len(self))[place])
        place = range(len(self))[place]  # IndexError beyond
        at = bisect.bisect_right(self._starts, place) - 1
        record = self.records[at]
        if not isinstance(record, EasyBatch):
            return record
        row = place - self._starts[at]
        return Easy(record.queries[row], int(record.guesses[row]))

    def __iter__(self) -> Iterator[Record]:
        for record in self.records:
            if isinstance(record, EasyBatch):
                yield from record
            else:
                yield record

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, Transcript)):
            return NotImplemented
        return len(self) == len(other) and all(one == same for one, same in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Transcript({len(self)} records)"
