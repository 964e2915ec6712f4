"""Cross tables: one vector query, tested by its largest cell gap and released as a whole.

Replacing one record moves it between two cells, so the largest gap of a table has the sensitivity of one
count, and a hard table costs what one partition costs, however many cells it has.

Proof: docs/theory/queries.md, 1.6.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats, Ints
from onlineic.domain.attributes import Binned
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import InvalidQueryError, TooLargeError, set_fields, shown
from onlineic.queries.cuts import Cut, is_long
from onlineic.queries.expressions import Expression
from onlineic.queries.groupings import Grouping, bins
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import immutable
from onlineic.slips import public

MOST_CELLS = 2**16  # of a cross table and its rest


Key = str | Grouping


@final
@attrs.frozen
class Marginal:
    """A cross table as written: attributes, or groupings of them, and which records count."""

    names: tuple[str, ...]  # attributes of the keys
    condition: Expression | None = None
    groupings: tuple[Grouping | None, ...] = ()  # one a key, or nothing where no key is one

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys as `marginal` takes them."""
        given = self.groupings or (None,) * len(self.names)
        return tuple(name if one is None else one for name, one in zip(self.names, given, strict=True))

    def __repr__(self) -> str:
        keys = ", ".join(map(repr, self.keys))
        return (
            f"marginal({keys})" if self.condition is None else f"marginal({keys}, where={self.condition!r})"
        )

    def bind(self, domain: Domain) -> "BoundMarginal":
        """Return the table over a domain.

        Raises:
            InvalidQueryError: If a name is unknown or the condition is not a conjunction of 0/1 conditions.
            TooLargeError: If the table, cut by its condition, has more than 2^16 blocks.
        """
        check_domain(domain)
        keys = [_Key.of(key, domain) for key in self.keys]
        _check_blocks(math.prod(key.size for key in keys))
        cut = {} if self.condition is None else _cut_by(_checked(self.condition), domain)
        axes = sorted({key.axis for key in keys} | {*cut})
        parts = [
            _Part.of(domain, axis, [key for key in keys if key.axis == axis], cut.get(axis)) for axis in axes
        ]
        partition = Partition(domain, tuple(axes), tuple(part.classes for part in parts))
        _check_blocks(partition.blocks)
        cells, counts, order = np.zeros((), np.int64), np.ones((), np.bool_), list[int]()
        for axis, part, count in zip(axes, parts, partition.shape, strict=True):
            cells = np.add.outer(cells * count, np.maximum(part.places, 0))
            counts = np.logical_and.outer(counts, part.places >= 0)
            order += [place for place, key in enumerate(keys) if key.axis == axis]
        cells = np.ascontiguousarray(np.where(counts, cells, -1).transpose(np.argsort(order)))
        made = tuple(key.grouping for key in keys)
        key_labels = () if all(one is None for one in made) else tuple(key.key_labels for key in keys)
        return BoundMarginal(self.names, partition, cells, self.condition, self.groupings, key_labels)


@final
@attrs.frozen
class KeyLabels:
    """What a key of a table is called, and its groups: those of an attribute where it is no grouping."""

    name: str
    labels: tuple[Any, ...]
    ordered: bool


@final
@attrs.frozen(eq=False)
class _Key:
    """A key of a table over a domain: the group of every code of its axis, None where each code is one."""

    axis: int
    size: int
    classes: Ints | None
    grouping: Grouping | None
    key_labels: KeyLabels

    @classmethod
    def of(cls, key: Key, domain: Domain) -> "_Key":
        if isinstance(key, str):
            kind = domain.attributes[axis := domain.axis(key)]
            if not (isinstance(kind, Binned) and kind.ends):
                labels = (
                    tuple(kind.label(code) for code in range(kind.size)) if kind.size <= MOST_CELLS else ()
                )
                return cls(axis, kind.size, None, None, KeyLabels(key, labels, kind.ordered))
            key = bins(key)
        found = key.over(domain)
        if found.axis is None or found.classes is None:
            raise InvalidQueryError(
                "a key of a marginal must be of one attribute, got cases over several; ask them by "
                "group_by, or one by one."
            )
        key_labels = KeyLabels(found.name, found.labels, found.ordered)
        return cls(found.axis, len(found.labels), found.classes, key, key_labels)


@final
@attrs.frozen(eq=False)
class _Part:
    """One attribute of a table: the parts that it is cut into, and which of them a cell is.

    `places` has an axis for each key, and holds the part, or -1 of one that does not count or that no code
    has.
    """

    classes: Cut | Ints
    places: Ints

    @classmethod
    def of(cls, domain: Domain, axis: int, keys: Sequence[_Key], held: "_Held | None") -> "_Part":
        size, long = domain.shape[axis], is_long(domain.attributes[axis])
        if not keys:  # the cells of the table are those of the part that counts
            if held is None or np.count_nonzero(held.kept) > 1:
                raise InvalidQueryError(
                    "the condition of a marginal must be one range of a long attribute, got all but one; ask "
                    "the table of all records and that of the range."
                )
            return cls(held.cut, np.array(np.flatnonzero(held.kept)[0]))
        counts = np.ones(size, np.bool_) if held is None else held.codes(size)
        if len(keys) == 1 and keys[0].classes is None:
            codes = np.arange(size)
            return cls(codes, np.where(counts, codes, -1))
        groups = [np.arange(size) if key.classes is None else key.classes for key in keys]
        shape = tuple(key.size for key in keys)
        flat = np.where(counts, np.ravel_multi_index(groups, shape), math.prod(shape))
        found, classes = np.unique(flat, return_inverse=True)
        places = np.full(math.prod(shape) + 1, -1)
        places[found] = np.arange(len(found))
        cut = Cut.of(classes, long)
        if long and cut.starts is None:
            raise TooLargeError(
                f"{domain.names[axis]} must be grouped by ranges, having {size:,} values, got groups that "
                "are none; declare it with longer periods."
            )
        return cls(cut, places[:-1].reshape(shape))


@final
@attrs.frozen(eq=False)
class _Held:
    """What a condition says of one attribute: its parts, and which of them count."""

    cut: Cut | Ints
    kept: Ints

    def codes(self, size: int) -> Bools:
        """Return whether each code counts, (codes,)."""
        part = self.cut.codes if isinstance(self.cut, Cut) else self.cut
        return np.asarray(self.kept[part], np.bool_)


def _cut_by(condition: Expression, domain: Domain) -> dict[int, _Held]:
    """Return what a condition says of each attribute, or refuse it."""
    query = condition.bind(domain)
    if query.grid_bits or query.constant is not None or (query.complement and len(query.axes) > 1):
        raise InvalidQueryError(
            "the condition of a marginal must be a conjunction of 0/1 conditions that some cells "
            "meet and some do not; ask the cells one by one, or leave it out."
        )
    held: dict[int, _Held] = {}
    for factor in query.factors:
        if len(factor.axes) > 1:
            raise InvalidQueryError(
                "the condition of a marginal must be a conjunction of conditions on one attribute "
                "each; ask the cells one by one."
            )
        axis = factor.axes[0]
        if is_long(domain.attributes[axis]):
            cut = Cut.at(domain.shape[axis], np.append(0, factor.changes(domain)[0]))
            held[axis] = _Held(cut, factor.at(cut.firsts) ^ int(query.complement))
            continue
        weights = factor.weights(domain)
        weights = 1 - weights if query.complement else weights
        held[axis] = _Held(weights, np.array([0, 1]))
    return held


def _check_blocks(blocks: int) -> None:
    if blocks > MOST_CELLS:
        raise TooLargeError(
            f"a marginal must have at most {MOST_CELLS:,} blocks, got {blocks:,}; use fewer attributes."
        )


@public
def marginal(*names: Key, where: Expression | None = None) -> Marginal:
    """Return the cross table of these attributes, among the records that satisfy `where`.

    Args:
        *names: One or more different attributes, or groupings of them; the table's axes, in this order. Of a
            number between two ends they are its bins.
        where: A conjunction of 0/1 conditions on one attribute each.

    Examples:
        >>> marginal("sex", "income")
        marginal('sex', 'income')
    """
    if len(names) == 1 and isinstance(names[0], list | tuple) and names[0]:
        raise InvalidQueryError(
            f"marginal must name one or more different attributes, got a {type(names[0]).__name__} of them; "
            f"write marginal({', '.join(map(shown, names[0][:9]))})."
        )
    called = [one.name if type(one) is Grouping else one for one in names]
    if not names or not all(isinstance(name, str) for name in called) or len(set(called)) < len(called):
        raise InvalidQueryError(
            f"marginal must name one or more different attributes, got {shown(list(names))}; write "
            "marginal('age', 'sex')."
        )
    made = tuple(one if type(one) is Grouping else None for one in names)
    of = tuple(one.attribute if isinstance(one, Grouping) else one for one in names)
    condition = None if where is None else _checked(where)
    return Marginal(of, condition, made if any(one is not None for one in made) else ())


def _checked(condition: object) -> Expression:
    """Return an expression if it is one: a subclass could bring its own way to bind."""
    if type(condition) is not Expression:
        raise InvalidQueryError(
            f"where must be a query made by where(...), got a {type(condition).__name__}; write "
            "where=where(attribute=condition)."
        )
    return condition


@final
@attrs.frozen(eq=False, repr=False)
class BoundMarginal:
    """A cross table over a domain.

    Attributes:
        partition: Of the whole domain; its blocks hold the table's cells, and the rest.
        cells: Shape of the table. Block of every cell; -1 for one that the condition excludes, whose value is
            0 whatever the data.
        condition: As it was written.
        groupings: As in `Marginal`.
        key_labels: What every key is called, with its groups; nothing where each is an attribute with all its
            values.
    """

    names: tuple[str, ...]
    partition: Partition
    cells: Ints
    condition: Expression | None = None
    groupings: tuple[Grouping | None, ...] = ()
    key_labels: tuple[KeyLabels, ...] = ()
    complement, constant, rounding = False, None, 0.0  # of a query with these: asked and remembered alike

    def __attrs_post_init__(self) -> None:
        set_fields(self, cells=immutable(self.cells))

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for equal tables."""
        key_labels = (self.cells.shape, self.key_labels) if self.key_labels else ()
        return ("marginal", *self.names, *self.partition.key, self.cells.tobytes(), *key_labels)

    @property
    def written(self) -> str:
        """The table as `marginal` takes it."""
        return repr(self.unbound)

    @property
    def unbound(self) -> Marginal:
        """The table as it was written, of which nothing is taken on trust."""
        return Marginal(self.names, self.condition, self.groupings)

    @cached_property
    def labels(self) -> dict[str, tuple[Any, ...]]:
        """By key the labels along its axis of the table, None for the missing cell."""
        if self.key_labels:
            return {one.name: one.labels for one in self.key_labels}
        kinds = ((name, self.partition.domain.attribute(name)) for name in self.names)
        return {name: tuple(kind.label(code) for code in range(kind.size)) for name, kind in kinds}

    @property
    def ordered(self) -> tuple[bool, ...]:
        """Of every key, whether its labels have an order."""
        if self.key_labels:
            return tuple(one.ordered for one in self.key_labels)
        return tuple(self.partition.domain.attribute(name).ordered for name in self.names)

    def __repr__(self) -> str:
        return f"BoundMarginal({self.written})"

    def largest_gap(self, counts: Ints, guess: "Guess") -> int:
        """Return how far the count of an asked block is from its guess, at most: PRIVATE."""
        asked = np.unique(self.cells[self.cells >= 0])
        return int(np.abs(counts - np.array(guess, np.int64))[asked].max())

    def table(self, blocks: Floats) -> Floats:
        """Return the cells of the table from the values of all blocks."""
        return np.where(self.cells >= 0, np.append(np.asarray(blocks, np.float64), 0.0)[self.cells], 0.0)


Question = Query | BoundMarginal
# of a hypothesis: n 2^k times its answer to a query, or to each block of a table
Guess = int | tuple[int, ...]
