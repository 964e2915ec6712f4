"""Many queries as columns: conjunctions of intervals by attribute set, checked once and keyed exactly.

A query of a stream is a few integers. Held as objects it costs a thousand bytes and a dozen microseconds;
held as columns some forty bytes, and whatever is done to all of them is done to arrays. Each row stands for
the very `Query` that `bind` makes, which is made when it is asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter, lt
from typing import Any, final, overload

import attrs
import numpy as np

from onlineic._typing import Bools, Floats, Ints
from onlineic.accounting.neighbours import REPLACE_ONE
from onlineic.domain.domain import Domain
from onlineic.errors import DomainMismatchError, InvalidQueryError, checked_integer
from onlineic.queries.query import GRID_BITS, Columnar, Query, boxed, canonical, constant_query
from onlineic.queries.tables import Sums, immutable

Codes = np.ndarray[Any, Any]  # of int32, or int64 where an attribute is that long
WORD = 2**63  # keys of a row are packed into as few words below this as hold them


@final
@attrs.frozen(eq=False, repr=False)
class Boxes:
    """Conjunctions of intervals over the same attributes, or one minus them: one a row.

    Attributes:
        axes: Increasing; none for constants, which are 1, or 0 where `turned`.
        places: Shape (m,). Which queries of the batch these are, increasing.
        low, high: Shape (m, axes). Half-open intervals of codes: canonical, so none is empty or the whole
            attribute.
        turned: Shape (m,). Whether the query is one minus the conjunction.
        roundings: Shape (m,). `Query.rounding` of each; None: all 0, as that of whatever was written with
            intervals.
    """

    axes: tuple[int, ...]
    places: Codes
    low: Codes
    high: Codes
    turned: Bools
    roundings: Floats | None = None

    def __len__(self) -> int:
        return len(self.places)

    def chosen(self, rows: Any, places: Codes | None = None) -> "Boxes":
        """Return some rows, in order, at other places of a batch if they are given."""
        held = self.places[rows] if places is None else places
        roundings = None if self.roundings is None else self.roundings[rows]
        return Boxes(self.axes, held, self.low[rows], self.high[rows], self.turned[rows], roundings)

    def keys(self, domain: Domain) -> Any:
        """Return one key a row, (m,): equal exactly for a query and its complement; ordered, of any dtype.

        Ends are packed in mixed radix into int64, or into several such words where one cannot hold them.
        """
        words: list[Ints] = []
        ends = (column[:, place] for place in range(len(self.axes)) for column in (self.low, self.high))
        for (number, radix), column in zip(key_words(domain, self.axes), ends, strict=True):
            if number == len(words):
                words.append(np.zeros(len(self), np.int64))
            words[number] = words[number] * radix + column
        if len(words) == 1:
            return words[0]
        packed = np.zeros(len(self), [(f"word{place}", np.int64) for place in range(len(words))])
        for place, word in enumerate(words):
            packed[f"word{place}"] = word
        return packed


@final
@attrs.frozen(eq=False, repr=False)
class Queries(Columnar, Sequence[Query]):
    """A batch of queries over one domain, in order: a sequence of `Query` that is held as columns.

    Attributes:
        boxes: By attribute set.
        others: Those that are no conjunction of intervals, each with its place, increasing.
    """

    domain: Domain
    boxes: tuple[Boxes, ...]
    others: tuple[tuple[int, Query], ...]
    _length: int
    # set by this module alone, as in `Query`: rows put together by hand could lie about their sensitivity
    _canonical: bool = attrs.field(default=False, init=False)

    @classmethod
    def where(
        cls,
        domain: Domain,
        conditions: Mapping[str, Any],
        *,
        complement: Any = None,
        grid_bits: int = GRID_BITS,
    ) -> "Queries":
        """Return one conjunction a row, from columns of conditions in codes.

        The code of a value is its place among those of its attribute, the missing cell last.

        Ranges, codes and sets of neighbouring codes stay columns. Other sets, and weights, are held as a
        `Query` each.

        Args:
            conditions: Mapping of attribute to column. A column is a pair (low, high) of (m,) integers,
                half-open ranges of codes; (m,) integers, one code each; (m, size) bools, a set of codes each;
                or (m, size) floats, a weight in [0, 1] a code. The whole attribute is no condition; a range
                that is empty is met by nobody.
            complement: Bools, shape (m,). Rows that ask for one minus their conjunction.
            grid_bits: In [0, 20]. As in `Expression.bind`: finest grid of fractional weights.

        Raises:
            InvalidQueryError: If a column does not fit its attribute, or the columns do not have one length.

        Examples:
            >>> domain = Domain.of(age=range(17, 91), sex=["F", "M"])
            >>> batch = Queries.where(domain, {"age": ([0, 13, 23], [13, 23, 74]), "sex": [0, 1, 0]})
            >>> len(batch), batch[1]
            (3, Query(where(age=between(30, 39), sex='M'), grid_bits=0))
        """
        if type(domain) is not Domain:  # a subclass could be equal to a domain of another shape
            raise InvalidQueryError(
                f"domain must be a Domain itself, got a {type(domain).__name__}; write Domain.of(..)."
            )
        grid_bits = checked_integer("grid_bits", grid_bits, at_least=0, at_most=GRID_BITS)
        if len(conditions) == 0:
            raise InvalidQueryError("conditions must map one or more attributes to columns, got none.")
        columns = [_column(name, domain, domain.axis(name), given) for name, given in conditions.items()]
        columns.sort(key=attrgetter("axis"))
        if len({column.axis for column in columns}) < len(columns):
            raise InvalidQueryError(
                f"conditions must name each attribute once, got {len(columns)} columns of fewer; join them."
            )
        turned = None if complement is None else _array("complement", complement)
        lengths = {len(column.low) for column in columns} | ({len(turned)} if turned is not None else set())
        if len(lengths) > 1 or (turned is not None and (turned.ndim != 1 or turned.dtype.kind != "b")):
            raise InvalidQueryError(
                "conditions and complement must be columns of one length, complement of bools, got lengths "
                f"{sorted(lengths)}; give every row its entry."
            )
        turned = np.zeros(lengths.pop(), np.bool_) if turned is None else turned
        return _grouped(domain, columns, turned, grid_bits)

    def bind(self, domain: Domain, grid_bits: int = GRID_BITS) -> "Queries":
        """Return the batch itself if it is one of this domain and grid, as it was made."""
        self._check_canonical()
        if domain.shape != self.domain.shape or domain != self.domain:
            raise DomainMismatchError(
                f"queries must be of domain {domain.digest()}, got some of {self.domain.digest()}; make them "
                "again."
            )
        for _, query in self.others:
            query.bind(domain, grid_bits)
        return self

    def _check_canonical(self) -> None:
        """Refuse what claims a sensitivity that nobody has checked: its rows would be marked one by one."""
        if not self._canonical:
            raise InvalidQueryError(
                "queries must be as Queries.where or a session made them, got some put together by hand; use "
                "Queries.where."
            )

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"Queries({self._length:,} over {' x '.join(map(str, self.domain.shape))} cells)"

    @cached_property
    def _rows(self) -> tuple[Codes, Codes]:
        """Which of the boxes, or after them the others, hold each query, and in which row."""
        held, rows = np.empty(self._length, np.int32), np.empty(self._length, np.int32)
        for number, group in enumerate(self.boxes):
            held[group.places], rows[group.places] = number, np.arange(len(group))
        for row, (place, _) in enumerate(self.others):
            held[place], rows[place] = len(self.boxes), row
        return immutable(held), immutable(rows)

    @overload
    def __getitem__(self, place: int) -> Query: ...
    @overload
    def __getitem__(self, place: slice) -> "Queries": ...
    def __getitem__(self, place: int | slice) -> "Query | Queries":
        self._check_canonical()
        if isinstance(place, slice):
            start, stop, step = place.indices(self._length)
            if step == 1:
                return self._between(start, max(start, stop))
            return Queries.bound(self.domain, [self[at] for at in range(start, stop, step)])
        place = range(self._length)[place]  # IndexError beyond
        held, rows = self._rows
        number, row = int(held[place]), int(rows[place])
        if number == len(self.boxes):
            return self.others[row][1]
        group = self.boxes[number]
        turned = bool(group.turned[row])
        if not group.axes:
            return constant_query(self.domain, not turned)
        low, high = group.low[row].tolist(), group.high[row].tolist()
        rounding = 0.0 if group.roundings is None else float(group.roundings[row])
        return boxed(self.domain, group.axes, low, high, turned, rounding)

    def __iter__(self) -> Iterator[Query]:
        return (self[place] for place in range(self._length))

    def _between(self, start: int, stop: int) -> "Queries":
        groups = []
        for group in self.boxes:
            first, last = group.places.searchsorted((start, stop)).tolist()
            if first < last:
                rows = slice(first, last)
                groups.append(group.chosen(rows, group.places[rows] - np.int32(start)))
        others = tuple((at - start, query) for at, query in self.others if start <= at < stop)
        return _marked(Queries(self.domain, tuple(groups), others, stop - start), self._canonical)

    def chosen(self, places: Codes) -> "Queries":
        """Return the queries at these places, which increase."""
        if len(places) == self._length:
            return self
        moved = np.full(self._length, -1, np.int32)
        moved[places] = np.arange(len(places), dtype=np.int32)
        groups = []
        for group in self.boxes:
            fresh = moved[group.places]
            rows = np.flatnonzero(fresh >= 0)
            if len(rows):
                groups.append(group.chosen(rows, fresh[rows]))
        others = tuple((int(moved[at]), query) for at, query in self.others if moved[at] >= 0)
        return _marked(Queries(self.domain, tuple(groups), others, len(places)), self._canonical)

    @cached_property
    def grid_bits(self) -> Ints:
        """`Query.grid_bits` of each, (m,)."""
        result = np.zeros(self._length, np.int64)
        for place, query in self.others:
            result[place] = query.grid_bits
        return immutable(result)

    @cached_property
    def extremes(self) -> tuple[Ints, Ints]:
        """`Query.lowest` and `Query.highest` of each, (m,) each."""
        lowest, highest = np.zeros(self._length, np.int64), np.ones(self._length, np.int64)
        for group in self.boxes:
            if not group.axes:  # everybody is counted, or nobody
                lowest[group.places] = highest[group.places] = ~group.turned
        for place, query in self.others:
            lowest[place], highest[place] = query.lowest, query.highest
        return immutable(lowest), immutable(highest)

    @property
    def sensitivities(self) -> Ints:
        """`Query.sensitivity` of each, (m,)."""
        return REPLACE_ONE.number(*self.extremes)

    @cached_property
    def complements(self) -> Bools:
        """`Query.complement` of each, (m,)."""
        result = np.zeros(self._length, np.bool_)
        for group in self.boxes:
            if group.axes:
                result[group.places] = group.turned
        for place, query in self.others:
            result[place] = query.complement
        return immutable(result)

    @cached_property
    def constants(self) -> Floats:
        """The fraction of records that a constant query counts, NaN where it is none, (m,)."""
        result = np.full(self._length, np.nan)
        for group in self.boxes:
            if not group.axes:
                result[group.places] = ~group.turned
        for place, query in self.others:
            if query.constant is not None:
                result[place] = query.constant / (1 << query.grid_bits)
        return immutable(result)

    @cached_property
    def roundings(self) -> Floats:
        """`Query.rounding` of each, (m,)."""
        result = np.zeros(self._length)
        for group in self.boxes:
            if group.roundings is not None:
                result[group.places] = group.roundings
        for place, query in self.others:
            result[place] = query.rounding
        return immutable(result)

    @cached_property
    def rounding(self) -> float:
        """The largest `Query.rounding`."""
        rounded = [group.roundings.max() for group in self.boxes if group.roundings is not None]
        return float(max([0.0, *rounded, *(query.rounding for _, query in self.others)]))

    def totals(self, tables: Sums, mass: float) -> Floats:
        result = np.empty(self._length)
        for group in self.boxes:
            sums = (
                tables.boxes(group.axes, group.low, group.high) if group.axes else np.full(len(group), mass)
            )
            if group.turned.any():
                sums = np.where(group.turned, mass - sums, sums)
            result[group.places] = sums
        for place, query in self.others:
            result[place] = query.total(tables, mass)
        return result

    @classmethod
    def bound(cls, domain: Domain, queries: Iterable[Query]) -> "Queries":
        """Return bound queries of this domain as a batch."""
        collected = Columns(domain)
        for query in queries:
            collected.add(query)
        return collected.queries()

    @classmethod
    def recorded(
        cls, domain: Domain, boxes: Sequence[Boxes], others: Sequence[tuple[int, Query]], length: int
    ) -> "Queries":
        """Return a batch from its parts, as a record of one holds them: what sensitivity rests on is checked.

        Raises:
            InvalidQueryError: If they are not those of such a batch over this domain.
        """
        held: list[int] = []
        for group in boxes:
            axes, shape = group.axes, (len(group.places), len(group.axes))
            right = all(map(lt, axes, axes[1:])) and set(axes) <= {*range(len(domain.shape))}
            if not right or {group.low.shape, group.high.shape} != {shape}:
                raise InvalidQueryError(
                    "boxes must have the ends of one or more attributes; record it again."
                )
            low, high, sizes = (
                group.low,
                group.high,
                np.array([domain.shape[axis] for axis in axes], np.int64),
            )
            if ((low < 0) | (low >= high) | (high > sizes) | (high - low == sizes)).any():
                raise InvalidQueryError("boxes must lie inside the domain; record them again.")
            held += group.places.tolist()
        for place, query in others:
            query.bind(domain)
            held.append(place)
        if sorted(held) != list(range(length)):
            raise InvalidQueryError(
                f"places must be those of {length} queries, each once; record them again."
            )
        return _marked(cls(domain, tuple(boxes), tuple(others), length))


@final
class Columns:
    """Queries on their way into columns, one by one."""

    __slots__ = ("_domain", "_groups", "_length", "_others", "_roundings")

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        # by attribute set: places, then low ends and high ends row by row, then whether turned
        self._groups: dict[tuple[int, ...], tuple[list[int], list[int], list[int], list[bool]]] = {}
        self._others: list[tuple[int, Query]] = []
        self._roundings: dict[int, float] = {}  # of the few rows that were rounded to intervals
        self._length = 0

    def add(self, query: Query) -> None:
        """Append a query that was bound to the domain, or raise as `Query.bind` does."""
        query = query.bind(self._domain)
        box = query.box
        if query.constant is not None and query.grid_bits == 0 and query.rounding == 0.0:
            self.row((), (), (), not query.constant)
        elif box is None:
            self._others.append((self._length, query))
            self._length += 1
        else:
            if query.rounding > 0.0:
                self._roundings[self._length] = query.rounding
            self.row(query.axes, box[0], box[1], query.complement)

    def row(self, axes: tuple[int, ...], low: Sequence[int], high: Sequence[int], turned: bool) -> None:
        """Append a row that is canonical."""
        group = self._groups.get(axes)
        if group is None:
            group = self._groups[axes] = ([], [], [], [])
        group[0].append(self._length)
        group[1].extend(low)
        group[2].extend(high)
        group[3].append(turned)
        self._length += 1

    def conjunction(self, conditions: Sequence[tuple[int, int, int]]) -> bool:
        """Append (axis, low, high) of each condition, as `canonical` would; False: they are not for columns.

        What the sensitivity rests on is checked, as there.
        """
        shape = self._domain.shape
        axes: list[int] = []
        low: list[int] = []
        high: list[int] = []
        empty = False
        for axis, first, last in conditions:
            size = shape[axis]
            if (
                type(first) is not int
                or type(last) is not int
                or not (0 <= first <= size and 0 <= last <= size)
            ):
                return False
            empty = empty or first >= last
            if last - first < size:
                axes.append(axis)
                low.append(first)
                high.append(last)
        if empty or not axes:
            self.row((), (), (), empty)
            return True
        if len(axes) == 1:
            if low[0] == 0:  # q and 1 - q share a key: the one that begins later is written
                self.row((axes[0],), high, (shape[axes[0]],), True)
            else:
                self.row((axes[0],), low, high, False)
            return True
        key = tuple(axes)
        if not all(map(lt, key, key[1:])):
            order = sorted(range(len(axes)), key=axes.__getitem__)
            key = tuple(axes[at] for at in order)
            if not all(map(lt, key, key[1:])):
                return False
            low, high = [low[at] for at in order], [high[at] for at in order]
        self.row(key, low, high, False)
        return True

    def __len__(self) -> int:
        return self._length

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
                    self._rounded(places),
                )
            )
        return _marked(Queries(self._domain, tuple(boxes), tuple(self._others), self._length))

    def _rounded(self, places: list[int]) -> Floats | None:
        if not self._roundings or self._roundings.keys().isdisjoint(places):
            return None
        return np.array([self._roundings.get(place, 0.0) for place in places])


def key_words(domain: Domain, axes: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield (word, radix) of every end of a key, the low and the high one of each axis in turn."""
    word, room = -1, 0
    for axis in axes:
        radix = domain.shape[axis] + 1
        for _ in range(2):
            if room < radix:
                word, room = word + 1, WORD
            room //= radix
            yield word, radix


def code_type(domain: Domain) -> Any:
    """Return the integers that codes and their ends are held in."""
    return np.int32 if max(domain.shape) < 2**31 else np.int64


def _marked(queries: Queries, canonical: bool = True) -> Queries:
    """Return the batch as one whose rows are canonical, which nobody may change then."""
    object.__setattr__(queries, "boxes", tuple(map(_immutable, queries.boxes)))
    object.__setattr__(queries, "_canonical", canonical)
    return queries


def _immutable(group: Boxes) -> Boxes:
    """Return the same rows, over memory that nobody can write to."""
    return Boxes(
        group.axes,
        immutable(group.places),
        immutable(group.low),
        immutable(group.high),
        immutable(group.turned),
        None if group.roundings is None else immutable(group.roundings),
    )


@attrs.frozen(eq=False)
class _Column:
    """One attribute's conditions: intervals, and in some rows weights instead."""

    axis: int
    low: Ints
    high: Ints
    weighted: dict[int, Floats]  # row -> one weight a code


def _array(name: str, values: Any) -> Any:
    """Return a plain copy of numbers or bools: the caller may change his array later."""
    try:
        array = None if isinstance(values, np.ma.MaskedArray) else np.array(values)
    except Exception:  # whatever the object raises: it is no data
        array = None
    if array is None or array.dtype.kind not in "iubf":
        raise InvalidQueryError(f"{name} must be an array of numbers or bools, got another object.")
    return array


def _column(name: str, domain: Domain, axis: int, given: Any) -> _Column:
    size = domain.shape[axis]
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InvalidQueryError(
                f"{name} must be a pair (low, high) of columns, got {len(given)} of them."
            )
        low, high = (_codes(name, ends, size) for ends in given)
        if len(low) != len(high):
            raise InvalidQueryError(
                f"{name} must have a high end for every low one, got {len(low)} and {len(high)}."
            )
        return _Column(axis, low, high, {})
    array = _array(name, given)
    if array.ndim == 1 and array.dtype.kind in "iu":
        low = _codes(name, array, size - 1)
        return _Column(axis, low, low + 1, {})
    if array.ndim != 2 or array.shape[1] != size or array.dtype.kind not in "bf":
        raise InvalidQueryError(
            f"{name} must be (low, high), codes, or bools or weights of shape (m, {size}), got dtype "
            f"{array.dtype} and shape {array.shape}."
        )
    if not ((array >= 0.0) & (array <= 1.0)).all():
        raise InvalidQueryError(f"{name} must have weights in [0, 1], got others; rescale them.")
    held = array.astype(np.bool_)
    low = held.argmax(axis=1)
    high = np.where(held.any(axis=1), size - held[:, ::-1].argmax(axis=1), low)
    whole = (held.sum(axis=1) == high - low) & ((array == 0.0) | (array == 1.0)).all(axis=1)
    weighted = {row: array[row].astype(np.float64) for row in np.flatnonzero(~whole).tolist()}
    return _Column(axis, low.astype(np.int64), high.astype(np.int64), weighted)


def _codes(name: str, values: Any, most: int) -> Ints:
    array = _array(name, values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise InvalidQueryError(
            f"{name} must be columns of integers, got dtype {array.dtype} and shape {array.shape}."
        )
    if array.size and not 0 <= int(array.min()) <= int(array.max()) <= most:
        bad = int(array[(array < 0) | (array > most)][0])
        raise InvalidQueryError(f"{name} must have codes in [0, {most}], got {bad}; see the domain.")
    return np.asarray(array, np.int64)


def _grouped(domain: Domain, columns: Sequence[_Column], turned: Bools, grid_bits: int) -> Queries:
    """Return the rows by the attributes that they condition, in canonical form."""
    kind, count = code_type(domain), len(turned)
    nobody = np.zeros(count, np.bool_)
    for column in columns:  # met by nobody, whatever the weights of other attributes: ends say it
        crossed = column.low >= column.high
        crossed[[*column.weighted]] = False
        nobody |= crossed
    weighted = [row for row in sorted(set[int]().union(*(c.weighted for c in columns))) if not nobody[row]]
    others = [(row, _row(domain, columns, turned, grid_bits, row)) for row in weighted]
    if any(query.box is not None or query.constant is not None for _, query in others):
        # weights that the grid rounds to those of a range: few batches have them
        return Queries.bound(domain, [_row(domain, columns, turned, grid_bits, row) for row in range(count)])
    rest = np.delete(np.arange(count), weighted)
    turned = turned[rest]
    axes = np.array([column.axis for column in columns])
    sizes = np.array([domain.shape[axis] for axis in axes])
    low = np.stack([column.low[rest] for column in columns], axis=1).astype(kind)
    high = np.stack([column.high[rest] for column in columns], axis=1).astype(kind)
    held = high - low < sizes
    empty = nobody[rest]
    turned = turned ^ empty
    held[empty] = False
    groups = []
    for pattern, rows in _patterns(held):
        places = np.flatnonzero(pattern)
        # of a constant the sign says all: 1, or turned 0
        first, last, sign = low[np.ix_(rows, places)], high[np.ix_(rows, places)], turned[rows]
        if len(places) == 1:  # q and 1 - q share a key: the one that begins later is written
            begins = first == 0
            first, last = np.where(begins, last, first), np.where(begins, kind(sizes[places[0]]), last)
            sign = sign ^ begins[:, 0]
        groups.append(Boxes(tuple(axes[places].tolist()), rest[rows].astype(np.int32), first, last, sign))
    return _marked(Queries(domain, tuple(groups), tuple(others), count))


def _row(domain: Domain, columns: Sequence[_Column], turned: Bools, grid_bits: int, row: int) -> Query:
    """Return the query of one row that has weights, or may have."""
    parts: dict[tuple[int, ...], tuple[int, int] | Floats] = {
        (column.axis,): column.weighted.get(row, (int(column.low[row]), int(column.high[row])))
        for column in columns
    }
    return canonical(domain, bool(turned[row]), parts, grid_bits)


def _patterns(held: Bools) -> Iterator[tuple[Bools, Ints]]:
    """Yield each distinct row, with the places where it stands, increasing."""
    if not len(held):
        return
    bits = np.packbits(held, axis=1)
    codes = bits[:, 0].astype(np.int64)
    for column in bits[:, 1:].T:  # short numbers of the patterns met so far: never beyond their count * 256
        codes = np.unique(codes, return_inverse=True)[1] * 256 + column
    order = np.argsort(codes, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        yield held[rows[0]], rows
