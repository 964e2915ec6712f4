"""Many queries as columns: conjunctions of intervals by attribute set, checked once and keyed exactly.

A query of a stream is a few integers. Held as objects it costs a thousand bytes and a dozen microseconds;
held as columns some forty bytes, and whatever is done to all of them is done to arrays. Each row stands for
the very `Query` that `bind` makes, which is made when it is asked for.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, final, overload

import attrs
import numpy as np

from onlineic._typing import Bools, Ints
from onlineic.domain.domain import Domain
from onlineic.queries.query import Query, boxed, constant_query

Codes = np.ndarray[Any, np.dtype[np.integer[Any]]]
WORD = 2**63  # keys of a row are packed into as few words below this as hold them


@final
@attrs.frozen(eq=False, repr=False)
class Boxes:
    """Conjunctions of intervals over the same attributes, or one minus them: one a row.

    Attributes
    ----------
    axes : tuple of int
        Increasing; none for constants, which are 1, or 0 where `turned`.
    places : (m,) int32
        Which queries of the batch these are, increasing.
    low, high : (m, axes) int32 or int64
        Half-open intervals of codes: canonical, so none is empty or the whole attribute.
    turned : (m,) bool
        Whether the query is one minus the conjunction.
    """

    axes: tuple[int, ...]
    places: Codes
    low: Codes
    high: Codes
    turned: Bools

    def __len__(self) -> int:
        return len(self.places)

    def chosen(self, rows: Any, places: Codes | None = None) -> "Boxes":
        """Return some rows, in order, at other places of a batch if they are given."""
        held = self.places[rows] if places is None else places
        return Boxes(self.axes, held, self.low[rows], self.high[rows], self.turned[rows])

    def keys(self, domain: Domain) -> Any:
        """Return one key a row, (m,): equal exactly for a query and its complement; ordered, of any dtype.

        Ends are packed in mixed radix into int64, or into several such words where one cannot hold them.
        """
        words: list[Ints] = []
        room = 0
        for place, axis in enumerate(self.axes):
            radix = domain.shape[axis] + 1
            for ends in (self.low, self.high):
                if room < radix:
                    words.append(np.zeros(len(self), np.int64))
                    room = WORD
                words[-1] = words[-1] * radix + ends[:, place]
                room //= radix
        if len(words) == 1:
            return words[0]
        packed = np.zeros(len(self), [(f"word{place}", np.int64) for place in range(len(words))])
        for place, word in enumerate(words):
            packed[f"word{place}"] = word
        return packed


@final
@attrs.frozen(eq=False, repr=False)
class Queries(Sequence[Query]):
    """A batch of queries over one domain, in order: a sequence of `Query` that is held as columns.

    Attributes
    ----------
    domain : Domain
    boxes : tuple of Boxes
        By attribute set.
    others : tuple of (int, Query)
        Those that are no conjunction of intervals, each with its place, increasing.
    """

    domain: Domain
    boxes: tuple[Boxes, ...]
    others: tuple[tuple[int, Query], ...]
    _length: int

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"Queries({self._length:,} over {' x '.join(map(str, self.domain.shape))} cells)"

    @cached_property
    def _rows(self) -> tuple[Codes, Codes]:
        """Which of the boxes, or behind them the others, hold each query, and in which row."""
        held, rows = np.empty(self._length, np.int32), np.empty(self._length, np.int32)
        for number, group in enumerate(self.boxes):
            held[group.places], rows[group.places] = number, np.arange(len(group))
        for row, (place, _) in enumerate(self.others):
            held[place], rows[place] = len(self.boxes), row
        return held, rows

    @overload
    def __getitem__(self, place: int) -> Query: ...
    @overload
    def __getitem__(self, place: slice) -> "Queries": ...
    def __getitem__(self, place: int | slice) -> "Query | Queries":
        if isinstance(place, slice):
            start, stop, step = place.indices(self._length)
            if step == 1:
                return self._between(start, max(start, stop))
            return Queries.bound(self.domain, [self[at] for at in range(start, stop, step)])
        place = range(self._length)[place]  # IndexError beyond
        held, rows = self._rows
        number, row = held.item(place), rows.item(place)
        if number == len(self.boxes):
            return self.others[row][1]
        group = self.boxes[number]
        turned = bool(group.turned[row])
        if not group.axes:
            return constant_query(self.domain, not turned)
        return boxed(self.domain, group.axes, group.low[row].tolist(), group.high[row].tolist(), turned)

    def __iter__(self) -> Iterator[Query]:
        return (self[place] for place in range(self._length))

    def _between(self, start: int, stop: int) -> "Queries":
        groups = []
        for group in self.boxes:
            first, last = np.searchsorted(group.places, (start, stop)).tolist()
            if first < last:
                rows = slice(first, last)
                groups.append(group.chosen(rows, group.places[rows] - np.int32(start)))
        others = tuple((at - start, query) for at, query in self.others if start <= at < stop)
        return Queries(self.domain, tuple(groups), others, stop - start)

    def chosen(self, places: Codes) -> "Queries":
        """Return the queries at these places, which increase."""
        moved = np.full(self._length, -1, np.int32)
        moved[places] = np.arange(len(places), dtype=np.int32)
        groups = []
        for group in self.boxes:
            fresh = moved[group.places]
            rows = np.flatnonzero(fresh >= 0)
            if len(rows):
                groups.append(group.chosen(rows, fresh[rows]))
        others = tuple((int(moved[at]), query) for at, query in self.others if moved[at] >= 0)
        return Queries(self.domain, tuple(groups), others, len(places))

    @cached_property
    def grid_bits(self) -> Ints:
        """`Query.grid_bits` of each, (m,)."""
        result = np.zeros(self._length, np.int64)
        for place, query in self.others:
            result[place] = query.grid_bits
        return result

    @cached_property
    def sensitivities(self) -> Ints:
        """`Query.sensitivity` of each, (m,)."""
        result = np.ones(self._length, np.int64)
        for group in self.boxes:
            if not group.axes:
                result[group.places] = 0
        for place, query in self.others:
            result[place] = query.sensitivity
        return result

    @classmethod
    def bound(cls, domain: Domain, queries: Iterable[Query]) -> "Queries":
        """Return bound queries of this domain as a batch."""
        collected = Columns(domain)
        for query in queries:
            collected.add(query)
        return collected.queries()


@final
class Columns:
    """Queries on their way into columns, one by one."""

    __slots__ = ("_domain", "_groups", "_length", "_others")

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        # by attribute set: places, then low ends and high ends row by row, then whether turned
        self._groups: dict[tuple[int, ...], tuple[list[int], list[Any], list[Any], list[bool]]] = {}
        self._others: list[tuple[int, Query]] = []
        self._length = 0

    def add(self, query: Query) -> None:
        """Append a bound query of the domain."""
        box, place = query.box, self._length
        self._length = place + 1
        if query.constant is not None and query.grid_bits == 0 and query.rounding == 0.0:
            self.row((), (), (), not query.constant, place)
        elif box is None:
            self._others.append((place, query))
        else:
            self.row(query.axes, box[0], box[1], query.complement, place)

    def row(
        self, axes: tuple[int, ...], low: Sequence[int], high: Sequence[int], turned: bool, place: int
    ) -> None:
        group = self._groups.get(axes)
        if group is None:
            group = self._groups[axes] = ([], [], [], [])
        group[0].append(place)
        group[1].append(low)
        group[2].append(high)
        group[3].append(turned)

    def queries(self) -> Queries:
        """Return them all."""
        boxes = []
        for axes, (places, low, high, turned) in self._groups.items():
            kind, shape = code_type(self._domain), (len(places), len(axes))
            boxes.append(
                Boxes(
                    axes,
                    np.array(places, np.int32),
                    np.array(low, kind).reshape(shape),
                    np.array(high, kind).reshape(shape),
                    np.array(turned, np.bool_),
                )
            )
        return Queries(self._domain, tuple(boxes), tuple(self._others), self._length)


def code_type(domain: Domain) -> Any:
    """Return the integers that codes and their ends are held in."""
    return np.int32 if max(domain.shape) < 2**31 else np.int64
