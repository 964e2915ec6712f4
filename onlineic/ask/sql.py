"""Statements in SQL: which counts, sums and averages a SELECT asks for, by group or not."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, final

import attrs
import numpy as np

from onlineic.ask.sql_conditions import Conditions, Value, bound
from onlineic.ask.sql_rows import Clause, Rows, rows_of
from onlineic.ask.sql_trees import DERIVE, NESTED, TABLE_REMEDY, Trees
from onlineic.ask.truth import Fixed, Truth, both, cell, expressed, missing_in
from onlineic.domain import Binned, Categorical, Domain, IntegerRange
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooLargeError, shown
from onlineic.queries.expressions import Expression, one_of, weights, where
from onlineic.queries.query import Query

MOST_GROUPS = 10_000
MOST_KEPT = 64  # statements

Form = Literal["count", "sum", "average", "variance"]
NAMES: Mapping[str, Form] = {"Sum": "sum", "Avg": "average", "VariancePop": "variance"}
COLUMNS_TOO: Mapping[Clause, str] = {"HAVING": "", "ORDER BY": " or a column of GROUP BY"}
RATE = "for a share ask COUNT_IF(cond) and COUNT(*) of the same records, and divide"
CALLED = {"sum": "SUM", "average": "AVG", "variance": "VAR_POP"}


@final
@attrs.frozen
class Aggregate:
    """One aggregate of a statement.

    Attributes
    ----------
    name : str
        Its alias, or its text.
    form : "count", "sum", "average" or "variance"
        A variance is that of the population, VAR_POP.
    column : str or None
        What is summed or averaged; None of a count.
    condition : Expression or None
        Which records count: WHERE, FILTER and what stands in the aggregate itself. None: all of them.
    nobody : bool
        Whether no record can count, whatever the data.
    """

    name: str
    form: Form
    column: str | None
    condition: Expression | None
    nobody: bool


@final
@attrs.frozen
class Statement:
    """A statement as understood.

    Attributes
    ----------
    keys : tuple of str
        Columns of GROUP BY.
    aggregates : tuple of Aggregate
        Those that SELECT lists, and after them those that only HAVING or ORDER BY names.
    columns : tuple of (str, int)
        What SELECT lists, in order: a name, and a place among the keys, or after them among the aggregates.
    rows : Rows
        Which groups are shown, and in which order: all of them are asked.
    """

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    columns: tuple[tuple[str, int], ...]
    rows: Rows


def statement(
    text: str,
    domain: Domain,
    table: str = "t",
    params: Mapping[str, Value] | None = None,
    dialect: str | None = None,
) -> Statement:
    """Return what a SELECT statement asks.

    Parameters
    ----------
    text, domain, params, dialect
        As of `condition`.
    table : str
        The name that must stand after FROM.

    Raises
    ------
    InvalidQueryError, TooLargeError, MissingExtraError
        As of `condition`.
    InvalidParameterError
        If `table` is no name.
    """
    if type(table) is not str or not table:
        raise InvalidParameterError(
            f"table must be the name that stands after FROM, got {shown(table)}; write a text."
        )
    reader = _Selects(Conditions.of(domain, params, dialect))
    try:
        return reader.statement(text, table)
    except RecursionError:
        raise InvalidQueryError(NESTED) from None


@final
class Statements:
    """Statements about one domain: one that is asked again, without parameters, is not read again.

    Parameters
    ----------
    domain : Domain
    """

    __slots__ = ("_domain", "_known")

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._known: dict[tuple[str, str, str | None], Statement] = {}

    def read(
        self,
        text: str,
        table: str = "t",
        params: Mapping[str, Value] | None = None,
        dialect: str | None = None,
    ) -> Statement:
        """Return what a SELECT statement asks, as `statement` does."""
        texts = {type(one) for one in (text, table, dialect) if one is not None}
        if params is not None or texts != {str}:
            return statement(text, self._domain, table, params, dialect)
        known = self._known.get((text, table, dialect))
        if known is None:
            known = statement(text, self._domain, table, None, dialect)
            if len(self._known) >= MOST_KEPT:
                self._known = {}
            self._known[text, table, dialect] = known
        return known


@final
@attrs.frozen(eq=False)
class _Selects:
    """Reads statements over one domain."""

    conditions: Conditions

    @property
    def trees(self) -> Trees:
        return self.conditions.trees

    def statement(self, text: Any, table: str) -> Statement:
        with self.trees.statement(text) as select:
            return self.selected(select, table)

    def selected(self, select: Any, table: str) -> Statement:
        """Return what the tree of a SELECT asks."""
        self.trees.kind(select)
        self.read_from(select.args.get("from_") or select.args.get("from"), table)
        items = select.args.get("expressions") or []
        keys = self.keys(select.args.get("group"), items)
        if not items:
            raise InvalidQueryError("SELECT must list aggregates, got none; write e.g. SELECT COUNT(*).")
        columns: list[tuple[str, int]] = []
        found: list[tuple[Form, str | None, Truth]] = []
        for item in items:
            name, inner = self.named(item)
            if type(inner) is self.trees.exp.Column:
                column = self.conditions.column(inner)[0]
                if column not in keys:
                    raise InvalidQueryError(
                        f"column {column} must be in GROUP BY or in an aggregate; records are never released."
                    )
                columns.append((name or column, keys.index(column)))
                continue
            form, summed, truth = self.aggregate(inner)
            columns.append((name or self.trees.whole_text(inner), len(keys) + len(found)))
            found.append((form, summed, truth))
        if not found:
            raise InvalidQueryError(
                "SELECT must list an aggregate, got none; add COUNT(*), SUM(col) or AVG(col)."
            )
        where_ = select.args.get("where")
        among = Fixed(True) if where_ is None else self.where(where_)
        places = _Places(self, keys, items, columns, found)
        rows = rows_of(select, self.conditions, bool(keys), places.of)
        self.conditions.check_used()
        columns[:0] = [(key, place) for place, key in enumerate(keys) if place not in dict(columns).values()]
        names = _distinct([name for name, _ in columns])
        titles = {place: name for name, (_, place) in zip(names, columns, strict=True)}
        for place, text in places.unlisted.items():
            titles[place] = _distinct([*titles.values(), text])[-1]
        aggregates = tuple(
            self.counting(titles[len(keys) + place], keys, form, summed, both([among, truth]))
            for place, (form, summed, truth) in enumerate(found)
        )
        listed = tuple((name, place) for name, (_, place) in zip(names, columns, strict=True))
        return Statement(keys, aggregates, listed, rows)

    def counting(
        self, name: str, keys: tuple[str, ...], form: Form, summed: str | None, truth: Truth
    ) -> Aggregate:
        """Return an aggregate all of whose queries can be bound: nothing of a statement is asked before."""
        found, domain = expressed(truth), self.conditions.domain
        nobody = bound(found, domain).constant == 0
        some = found & cell(domain, keys, [0] * len(keys)) if keys else found
        if summed is not None:
            kind = domain.attribute(summed)
            known = bound(found & where({summed: ~one_of(None)} if kind.missing else {}), domain)
            nobody = nobody or known.constant == 0
            if isinstance(kind, Binned):
                self.check_finite(summed, kind, known, form)
            some = some & where({summed: weights(np.linspace(0.0, 1.0, kind.size))})
            if nobody and form != "sum":
                raise InvalidQueryError(
                    f"{CALLED[form]} must be over some records, got a condition that nobody with a value of "
                    f"{summed} can meet; mend it."
                )
        if some is not found:
            bound(some, domain)
        return Aggregate(name, form, summed, None if found == where() else found, nobody)

    def read_from(self, clause: Any, table: str) -> None:
        if clause is None:
            raise InvalidQueryError(f"statement must name its table, got no FROM; write FROM {table}.")
        self.trees.kind(clause)
        source = clause.this
        if type(source) is not self.trees.exp.Table:
            self.trees.refuse_node(source, f"{TABLE_REMEDY}, write FROM {table}")
        if type(source.this) is not self.trees.exp.Identifier:
            raise InvalidQueryError(f"not supported: table functions; {TABLE_REMEDY}, write FROM {table}.")
        self.trees.kind(source)
        name = self.trees.identifier(source.this)
        if name != table:
            raise InvalidQueryError(f"table must be {shown(table)}, got {shown(name)}; write FROM {table}.")
        alias = source.args.get("alias")
        if alias is None:
            self.conditions.tables.append(name)
            return
        self.trees.kind(alias)
        self.conditions.tables.append(self.trees.identifier(alias.this))

    def keys(self, group: Any, items: Sequence[Any]) -> tuple[str, ...]:
        """Return the columns of GROUP BY; where it says no column, an alias of SELECT for one."""
        if group is None:
            return ()
        self.trees.kind(group)
        exp = self.trees.exp
        columns = {
            item.alias: item.this
            for item in items
            if type(item) is exp.Alias and type(item.this) is exp.Column
        }
        keys: list[str] = []
        for entry in group.args.get("expressions") or []:
            if type(entry) is self.trees.exp.Literal:
                raise InvalidQueryError(f"not supported: GROUP BY {self.trees.text(entry)}; name the column.")
            if type(entry) is not exp.Column:
                self.trees.refuse_node(entry)
            if entry.name not in self.conditions.domain.names and not entry.table:
                entry = columns.get(entry.name, entry)
            name = self.conditions.column(entry)[0]
            if name in keys:
                raise InvalidQueryError(f"GROUP BY must list a column once, got {name} twice; remove one.")
            keys.append(name)
        if not keys:
            raise InvalidQueryError("GROUP BY must list columns, got none; name the columns.")
        cells = math.prod(self.conditions.domain.attribute(name).size for name in keys)
        if cells > MOST_GROUPS:
            raise TooLargeError(
                f"GROUP BY must give at most {MOST_GROUPS:,} answers, got {cells:,}; group by fewer columns, "
                "or ask for the groups of interest by WHERE."
            )
        return tuple(keys)

    def named(self, item: Any) -> tuple[str | None, Any]:
        """Return the alias of an item of SELECT, or None, and what stands under it."""
        exp = self.trees.exp
        if type(item) is exp.Alias:
            self.trees.kind(item)
            return self.trees.identifier(item.args["alias"]), item.this
        if type(item) is exp.Star or (type(item) is exp.Column and type(item.this) is exp.Star):
            raise InvalidQueryError(
                "SELECT must list aggregates, got *; records are never released, ask COUNT(*), SUM(col) or "
                "AVG(col)."
            )
        return None, item

    def where(self, clause: Any) -> Truth:
        if self.trees.kind(clause) != "Where":
            self.trees.refuse_node(clause)
        return self.conditions.truth(clause.this, negated=False)

    def aggregate(self, node: Any) -> tuple[Form, str | None, Truth]:
        """Return the form of an aggregate, its column, and which records it counts."""
        aside = "ask COUNT(*), SUM(col) or AVG(col) and compute with the answers"
        if type(node).__name__ not in ("Filter", "Count", "CountIf", *NAMES):
            self.trees.refuse_node(node, aside)
        name = self.trees.kind(node)
        if name == "Filter":
            form, column, truth = self.aggregate(node.this)
            return form, column, both([truth, self.where(node.expression)])
        if name == "Count":
            return "count", None, self.count(node.this)
        if name == "CountIf":
            return "count", None, self.conditions.truth(node.this, negated=False)
        form, outer = NAMES[name], CALLED[NAMES[name]]
        if type(node.this) is self.trees.exp.Case:
            column, truth = self.case(node.this, outer)
            return "count" if column is None else form, column, truth
        return form, self.summed(node.this, outer), Fixed(True)

    def count(self, node: Any) -> Truth:
        """Return which records COUNT counts."""
        exp = self.trees.exp
        if type(node) is exp.Distinct:
            self.trees.refuse_node(node)
        if type(node) is exp.Case:
            return self.case(node, "COUNT")[1]
        if type(node) is exp.Star:
            self.trees.kind(node)
            return Fixed(True)
        if type(node) is exp.Column:
            return missing_in(*self.conditions.column(node), negated=True)
        if type(node) is exp.Literal and self.is_number(node, "1"):
            return Fixed(True)
        raise InvalidQueryError(
            f"COUNT must take *, a column or CASE WHEN cond THEN 1 END, got {self.trees.text(node)}; to "
            "count where a condition holds write COUNT_IF(cond)."
        )

    def case(self, node: Any, outer: str) -> tuple[str | None, Truth]:
        """Return column and condition of CASE WHEN cond THEN column END; None for THEN 1."""
        self.trees.kind(node)
        whens = node.args.get("ifs") or []
        default = node.args.get("default")
        if len(whens) != 1:
            raise InvalidQueryError(
                f"{outer}(CASE ...) must have one WHEN, got {len(whens)}; join conditions by OR."
            )
        self.trees.kind(whens[0])
        then, column = whens[0].args.get("true"), None
        if outer != "COUNT" and type(then) is self.trees.exp.Column:
            column = self.summed(then, outer)
        elif outer in ("AVG", "VAR_POP"):
            raise InvalidQueryError(f"{outer}(CASE ...) must give THEN a column, got another value; {RATE}.")
        elif not self.is_number(then, "1"):
            raise InvalidQueryError(
                f"{outer}(CASE ...) must give THEN 1{' or a column' * (outer == 'SUM')}, got another value; "
                "write CASE WHEN cond THEN 1 END."
            )
        if default is not None and outer != "SUM":
            raise InvalidQueryError(
                f"{outer}(CASE ...) must have no ELSE, it counts every result that is not NULL; write "
                f"{outer}(CASE WHEN cond THEN {column or 1} END)."
            )
        if default is not None and not self.is_number(default, "0"):
            raise InvalidQueryError(
                "SUM(CASE ...) must have ELSE 0 or none, got another value; write ELSE 0."
            )
        return column, self.conditions.truth(whens[0].this, negated=False)

    def is_number(self, node: Any, digits: str) -> bool:
        literal = type(node) is self.trees.exp.Literal and self.trees.kind(node) == "Literal"
        return literal and not node.args.get("is_string") and node.this == digits

    def summed(self, node: Any, outer: str) -> str:
        """Return the column of SUM or AVG."""
        if type(node) is not self.trees.exp.Column:
            if type(node) is self.trees.exp.Distinct:
                self.trees.refuse_node(node)
            exp = self.trees.exp
            rate = isinstance(node, exp.Predicate | exp.Connector | exp.Not)
            remedy = "count it by COUNT_IF(cond)" if outer == "SUM" else RATE
            raise InvalidQueryError(
                f"{outer} must take a column, got {self.trees.text(node)}; {remedy if rate else DERIVE}."
            )
        name, kind = self.conditions.column(node)
        if isinstance(kind, Categorical):
            remedy = "GROUP BY it instead"
            if isinstance(kind.labels[0], bool):
                remedy = f"count it by COUNT_IF({name})" if outer == "SUM" else RATE
            raise InvalidQueryError(
                f"{outer} must be over a numeric column, {name} is categorical; {remedy}."
            )
        if not isinstance(kind, IntegerRange | Binned):
            raise InvalidQueryError(
                f"{outer} must be over a column of numbers, {name} holds dates; COUNT it by group, or use "
                "session.median."
            )
        return name

    def check_finite(self, name: str, kind: Binned, known: Query, form: Form) -> None:
        """Raise if a bin without an end may count: it has no midpoint."""
        counted = known.possible(self.conditions.domain.axis(name))
        edges, last = kind.edges, len(kind.edges) - 2
        ends = []
        if counted[0] and edges[0] == -math.inf:
            ends.append(f"{name} >= {edges[1]:.15g}")
        if counted[last] and edges[-1] == math.inf:
            ends.append(f"{name} < {edges[-2]:.15g}")
        if ends:
            outer = CALLED[form]
            raise InvalidQueryError(
                f"{outer} must be over a column with finite bins, {name} has a bin without an end; leave it "
                f"out by WHERE {' AND '.join(ends)}, or give the domain a last edge."
            )


@final
@attrs.define(eq=False)
class _Places:
    """Where HAVING and ORDER BY find their numbers; an aggregate that SELECT does not list is asked too."""

    reader: _Selects
    keys: tuple[str, ...]
    items: Sequence[Any]
    listed: Sequence[tuple[str, int]]  # name and place of every item of SELECT
    found: list[tuple[Form, str | None, Truth]]
    unlisted: dict[int, str] = attrs.field(factory=dict)

    def of(self, node: Any, clause: Clause) -> int:
        """Return the place of a node: a column, the number of one, or an aggregate."""
        trees = self.reader.trees
        if type(node) is trees.exp.Literal and clause == "ORDER BY":
            return self.numbered(node)
        if type(node) is trees.exp.Column:
            return self.column(node, clause)
        text = trees.whole_text(node)
        for item, (_, place) in zip(self.items, self.listed, strict=True):
            inner = item.this if type(item) is trees.exp.Alias else item
            if trees.whole_text(inner) == text:
                return place
        for place, known in self.unlisted.items():
            if known == text:
                return place
        if type(node).__name__ not in ("Filter", "Count", "CountIf", *NAMES):
            trees.refuse_node(node, f"{clause} takes COUNT, SUM and AVG" + COLUMNS_TOO[clause])
        self.found.append(self.reader.aggregate(node))
        place = len(self.keys) + len(self.found) - 1
        self.unlisted[place] = text
        return place

    def numbered(self, node: Any) -> int:
        """Return the place of a column that is named by its number in SELECT."""
        value = self.reader.conditions.value(node)
        if type(value) is not int or not 1 <= value <= len(self.listed):
            raise InvalidQueryError(
                f"ORDER BY must name a column of SELECT from 1 to {len(self.listed)}, got "
                f"{self.reader.trees.text(node)}; write its name."
            )
        return self.listed[value - 1][1]

    def column(self, node: Any, clause: Clause) -> int:
        """Return the place of an alias of SELECT or of a column of GROUP BY."""
        reader = self.reader
        known = dict(self.listed)
        name = node.name
        if not node.table and name in known and not (clause == "HAVING" and name in self.keys):
            place = known[name]
        else:
            column = reader.conditions.column(node)[0]
            if column not in self.keys:
                raise InvalidQueryError(
                    f"{clause} must name an aggregate{COLUMNS_TOO[clause]}, got {column}; records are never "
                    "released."
                )
            place = self.keys.index(column)
        if clause == "HAVING" and place < len(self.keys):
            raise InvalidQueryError(
                f"HAVING must compare an aggregate with a number, got the column {reader.trees.text(node)}; "
                "write it in WHERE."
            )
        return place


def _distinct(names: list[str]) -> list[str]:
    """Return the names, those that were there before with their number."""
    result: list[str] = []
    for name in names:
        number, found = 2, name
        while found in result:
            found, number = f"{name} ({number})", number + 1
        result.append(found)
    return result
