"""HAVING, ORDER BY, LIMIT and OFFSET: which groups of a statement are shown, by their released numbers.

They are post-processing: the same groups are asked with or without them, at the same price, and what they
leave out was released all the same. A group near a limit may stand on its wrong side: its number has noise.
"""

import operator as op
from collections.abc import Mapping
from typing import Any, Literal, Protocol, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats, Ints
from onlineic.ask.sql_conditions import Conditions
from onlineic.ask.sql_values import COMPARE, DENIED, OPERATORS, TURNED, written
from onlineic.errors import InvalidQueryError

Clause = Literal["HAVING", "ORDER BY"]
CLAUSES: Mapping[str, str] = {"having": "HAVING", "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}


class Places(Protocol):
    """Where numbers stand: among the keys, or after them among what is made of aggregates."""

    def of(self, node: Any, clause: Clause) -> int:
        """Return the place of what a node names."""

    def difference(self, one: Any, two: Any) -> int:
        """Return the place of the difference of two nodes."""


class Having(Protocol):
    """A condition on the numbers of a group."""

    def true(self, columns: Floats) -> Bools:
        """Return of which groups it is certainly true, of (groups, columns); NaN is unknown."""
        ...


@final
@attrs.frozen
class Compared:
    """An aggregate, by its place after the keys, beside a number."""

    place: int
    operator: str
    number: float

    def true(self, columns: Floats) -> Bools:
        """Return of which groups it is true; nothing is true of an unknown number."""
        column = columns[:, self.place]
        found: Bools = COMPARE[self.operator](column, self.number) & ~np.isnan(column)
        return found


@final
@attrs.frozen
class Unknown:
    """Whether an aggregate is NULL: an average over too few records."""

    place: int
    negated: bool

    def true(self, columns: Floats) -> Bools:
        """Return of which groups it is true."""
        found: Bools = np.isnan(columns[:, self.place]) != self.negated
        return found


@final
@attrs.frozen
class Joined:
    """Parts of which all must be true, or one."""

    every: bool
    parts: tuple[Having, ...]

    def true(self, columns: Floats) -> Bools:
        """Return of which groups it is true."""
        join = np.logical_and if self.every else np.logical_or
        found: Bools = join.reduce([part.true(columns) for part in self.parts])
        return found


@final
@attrs.frozen
class Order:
    """One column of ORDER BY: its place among the keys, or after them among the aggregates."""

    place: int
    descending: bool
    missing_first: bool


@final
@attrs.frozen
class Rows:
    """Which groups of a statement are shown, and in which order.

    Attributes:
        order: The first one decides, the next where it is equal; groups that are equal in all stay as the
            domain has them.
        limit: How many are shown at most.
        offset: How many are left out before.
    """

    having: Having | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0

    def by_numbers(self, keys: int) -> tuple[str, ...]:
        """Return which of HAVING, ORDER BY, LIMIT and OFFSET go by released numbers, after so many keys."""
        ordered = any(one.place >= keys for one in self.order)
        held = (self.having is not None, ordered, ordered and self.limit is not None, ordered and self.offset)
        return tuple(clause for clause, there in zip(CLAUSES.values(), held, strict=True) if there)

    def chosen(self, keys: Floats, values: Floats) -> Ints:
        """Return the places of the groups that are shown, in order.

        Args:
            keys: Shape (groups, keys). Of every group and key its rank; NaN of the missing value.
            values: Shape (groups, aggregates). Released numbers; NaN where there is none.
        """
        columns, places = np.concatenate([keys, values], axis=1), np.arange(len(values))
        if self.having is not None:
            places = places[self.having.true(columns)]
        sorting: list[Any] = []
        for one in reversed(self.order):  # the last column of lexsort decides first
            column = columns[places, one.place]
            missing = np.isnan(column)
            sorting += [np.where(missing, 0.0, -column if one.descending else column)]
            sorting += [missing != one.missing_first]
        if sorting:
            places = places[np.lexsort(sorting)]
        found: Ints = places[self.offset :][: self.limit]
        return found


def rows_of(select: Any, conditions: Conditions, grouped: bool, places: Places) -> Rows:
    """Return what a SELECT says of its groups.

    Args:
        conditions: Reads values and parameters.
        grouped: Whether it has GROUP BY.
        places: Where an aggregate, or in ORDER BY also a column, stands.

    Raises:
        InvalidQueryError: If a clause is not understood, or there are no groups.
    """
    written_here = {name: select.args[name] for name in CLAUSES if select.args.get(name) is not None}
    for name in written_here:
        if not grouped:
            raise InvalidQueryError(
                f"{CLAUSES[name]} must stand after GROUP BY, got a statement of one row; leave it out."
            )
    reader = _Clauses(conditions, places)
    having, order, limit, offset = map(written_here.get, CLAUSES)
    return Rows(
        None if having is None else reader.having(having),
        () if order is None else reader.order(order),
        None if limit is None else reader.number_of_rows(limit, "LIMIT"),
        0 if offset is None else reader.number_of_rows(offset, "OFFSET"),
    )


@final
@attrs.frozen(eq=False)
class _Clauses:
    conditions: Conditions
    places: Places

    def having(self, clause: Any) -> Having:
        self.conditions.trees.kind(clause)
        return self.truth(clause.this, negated=False)

    def truth(self, node: Any, negated: bool) -> Having:
        """Return a condition on aggregates; if negated, what is true where it is certainly false."""
        trees = self.conditions.trees
        while type(node) in (trees.exp.Paren, trees.exp.Not):
            negated ^= trees.kind(node) == "Not"
            node = node.this
        name = type(node).__name__
        if name in ("And", "Or"):
            parts = tuple(self.truth(part, negated) for part in self.conditions.chain(node))
            return Joined((name == "And") != negated, parts)
        if name not in (*OPERATORS, "Between", "Is") or trees.kind(node) != name:
            raise InvalidQueryError(
                f"HAVING must compare an aggregate with a number, got {trees.text(node)}; write e.g. HAVING "
                "COUNT(*) > 100."
            )
        negated ^= bool(node.args.get("negate"))
        if name == "Is":
            if type(node.expression) is not trees.exp.Null:
                trees.refuse_node(node, "write IS NULL or a comparison")
            return Unknown(self.aggregate(node.this), negated)
        if name == "Between":
            return self.between(node, negated)
        return self.compared(node.this, OPERATORS[name], node.expression, negated)

    def compared(self, one: Any, operator: str, two: Any, negated: bool) -> Compared:
        trees = self.conditions.trees
        left, right = trees.bare(one), trees.bare(two)
        if type(left).__name__ in ("Literal", "Neg", "Placeholder"):
            left, right, operator = right, left, TURNED[operator]
        if type(right).__name__ not in ("Literal", "Neg", "Placeholder", "Boolean", "Null", "Cast"):
            place, number = self.places.difference(left, right), 0.0
        else:
            place, number = self.aggregate(left), self.number(left, right)
        return Compared(place, DENIED[operator] if negated else operator, number)

    def between(self, node: Any, negated: bool) -> Having:
        ends = [(node.args.get("low"), node.args.get("high"))]
        if node.args.get("symmetric"):
            ends.append(ends[0][::-1])
        pairs = [
            Joined(
                not negated,
                tuple(
                    self.compared(node.this, operator, end, negated)
                    for operator, end in zip((">=", "<="), pair, strict=True)
                ),
            )
            for pair in ends
        ]
        return Joined(negated, tuple(pairs))

    def aggregate(self, node: Any) -> int:
        return self.places.of(self.conditions.trees.bare(node), "HAVING")

    def number(self, aggregate: Any, node: Any) -> float:
        literal = type(node).__name__ in ("Literal", "Neg", "Placeholder", "Boolean", "Null")
        value: Any = self.conditions.value(node) if literal else None
        if type(value) not in (int, float):
            said = written(value) if literal else self.conditions.trees.text(node)
            raise InvalidQueryError(
                f"HAVING must compare {self.conditions.trees.text(aggregate)} with a number, got {said}; "
                "write e.g. 100."
            )
        return float(value)

    def order(self, clause: Any) -> tuple[Order, ...]:
        trees = self.conditions.trees
        trees.kind(clause)
        found = []
        for entry in clause.args.get("expressions") or []:
            if type(entry) is not trees.exp.Ordered:
                trees.refuse_node(entry)
            trees.kind(entry)
            place = self.places.of(trees.bare(entry.this), "ORDER BY")
            found.append(Order(place, bool(entry.args.get("desc")), bool(entry.args.get("nulls_first"))))
        return tuple(found)

    def number_of_rows(self, clause: Any, called: str) -> int:
        trees = self.conditions.trees
        if type(clause).__name__ not in ("Limit", "Offset"):
            trees.refuse_node(clause, f"write {called} and a number")
        trees.kind(clause)
        node = trees.bare(clause.expression)
        value = self.conditions.value(node) if type(node).__name__ in ("Literal", "Placeholder") else None
        if type(value) is not int or value < 0:
            raise InvalidQueryError(
                f"{called} must be a whole number from 0, got {trees.text(node)}; write e.g. {called} 10."
            )
        return op.index(value)
