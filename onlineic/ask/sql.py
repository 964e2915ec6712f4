"""Statements in SQL: which counts, sums, averages and rates a SELECT asks for, by group or not, and what it
makes of them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, final

import attrs
import numpy as np

from onlineic.ask.formulas import (
    Choice,
    Compared,
    Formula,
    IsNull,
    Joined,
    Known,
    Made,
    OfKey,
    Part,
    Sign,
    Test,
    factored,
    parts_of,
    times,
)
from onlineic.ask.sql_conditions import Conditions, bound
from onlineic.ask.sql_keys import key_of
from onlineic.ask.sql_rows import Clause, Rows, rows_of
from onlineic.ask.sql_trees import DERIVE, NESTED, PAIRED, TABLE_REMEDY, Trees
from onlineic.ask.sql_values import OPERATORS, Value
from onlineic.ask.truth import Fixed, Truth, both, cell, expressed, missing_in
from onlineic.domain import Binned, Categorical, Domain, IntegerRange, Label
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooLargeError, shown
from onlineic.queries.expressions import Expression, one_of, weights, where
from onlineic.queries.marginals import Key
from onlineic.queries.query import Query

MOST_GROUPS = 10_000
MOST_KEPT = 64  # statements

EVERYBODY = Fixed(True)
Form = Literal["count", "sum", "average", "variance", "rate", "quantile", "covariance"]
NAMES: Mapping[str, Form] = {"Sum": "sum", "Avg": "average", "VariancePop": "variance"}
SPREADS = ("Variance", "Stddev", "StddevSamp", "StddevPop")
QUANTILES = ("Median", "Quantile", "ApproxQuantile", "PercentileCont", "PercentileDisc", "WithinGroup")
AGGREGATES = ("Filter", "Count", "CountIf", *NAMES, *SPREADS, *QUANTILES, *PAIRED)
SIGNS: Mapping[str, Sign] = {"Add": "+", "Sub": "-", "Mul": "*"}
FUNCTIONS: Mapping[str, Sign] = {
    "Abs": "abs", "Sqrt": "root", "Nullif": "nullif", "Coalesce": "coalesce", "Greatest": "greatest",
    "Least": "least",
}  # fmt: skip
REAL = ("DOUBLE", "FLOAT", "REAL", "DECIMAL", "BIGDECIMAL", "NUMERIC")  # of a cast that changes nothing
WHOLE = ("INT", "BIGINT", "SMALLINT", "TINYINT", "UTINYINT")  # of a condition, which is 0 or 1
COLUMNS_TOO: Mapping[Clause, str] = {"HAVING": "", "ORDER BY": " or a column of GROUP BY"}
CALLED = {
    "count": "COUNT", "sum": "SUM", "average": "AVG", "variance": "VAR_POP", "rate": "AVG",
    "quantile": "QUANTILE", "covariance": "COVAR_POP",
}  # fmt: skip


@final
@attrs.frozen
class Aggregate:
    """One aggregate of a statement.

    Attributes:
        name: Its alias, or its text.
        form: A variance is that of the population, VAR_POP. A rate is the part of those who meet `met` among
            them and those who meet `rest`.
        column, other: What is summed or averaged; None of a count or a rate. `other` is the second one of a
            covariance.
        condition: Which records count: WHERE, FILTER and, but of a rate, what stands in the aggregate itself.
            None: all of them.
        nobody: Whether no record can count, whatever the data.
        met, rest: Of a rate, beside `condition`.
        q: Of a quantile.
        keys: By which of the statement's keys it is grouped; None: by all.
    """

    name: str
    form: Form
    column: str | None
    condition: Expression | None
    nobody: bool
    met: Expression | None = None
    rest: Expression | None = None
    q: float = 0.5
    keys: tuple[int, ...] | None = None
    other: str | None = None


@final
@attrs.frozen
class Statement:
    """A statement as understood.

    Attributes:
        keys: Columns of GROUP BY.
        aggregates: What is asked, each once.
        formulas: What SELECT lists of them, by name, and after these what only HAVING or ORDER BY names.
        columns: What SELECT lists, in order: a name, and a place among the keys, or after them among the
            formulas.
        rows: Which groups are shown, and in which order: all of them are asked.
    """

    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    formulas: tuple[tuple[str, Formula], ...]
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

    Args:
        text, domain, params, dialect: As of `condition`.
        table: The name that must stand after FROM.

    Raises:
        InvalidQueryError, TooLargeError, MissingExtraError: As of `condition`.
        InvalidParameterError: If `table` is no name.
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
    """Statements about one domain: one that is asked again, without parameters, is not read again."""

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
class _Key:
    """A column of GROUP BY: what it is, its labels, and under which text and alias SELECT may list it."""

    key: Key
    name: str
    labels: tuple[Label, ...]
    text: str
    alias: str | None


@final
@attrs.frozen(eq=False)
class _Asked:
    """An aggregate as it is read: which records it counts, beside WHERE.

    Attributes:
        inner: By what stands in the aggregate itself.
        among: By FILTER.
        told: The text of FILTER.
        counted: Of COUNT(column) the column.
        rest: Of a rate who else is counted; None: all others.
        keys: By which keys it is grouped, None: by all.
        apart: Whether WHERE does not hold for it, as in a SELECT of its own.
    """

    form: Form
    column: str | None
    inner: Truth
    among: Truth = EVERYBODY
    told: str = ""
    counted: str | None = None
    rest: Truth | None = None
    q: float = 0.5
    keys: tuple[int, ...] | None = None
    apart: Truth | None = None
    other: str | None = None

    @property
    def truth(self) -> Truth:
        """Which records count, but for WHERE."""
        return both([self.among, self.inner])


@final
@attrs.define(eq=False)
class _Selects:
    """Reads one statement over a domain."""

    conditions: Conditions
    keys: tuple[_Key, ...] = ()
    found: list[_Asked] = attrs.field(factory=list)
    known: dict[str, Formula] = attrs.field(factory=dict)  # by text what was read before
    aliases: dict[str, Formula] = attrs.field(factory=dict)
    table: str = ""

    @property
    def trees(self) -> Trees:
        return self.conditions.trees

    @property
    def domain(self) -> Domain:
        return self.conditions.domain

    def statement(self, text: Any, table: str) -> Statement:
        with self.trees.statement(text) as select:
            return self.selected(select, table)

    def selected(self, select: Any, table: str) -> Statement:
        """Return what the tree of a SELECT asks."""
        self.trees.kind(select)
        self.table = table
        self.read_from(select.args.get("from_") or select.args.get("from"), table)
        items = select.args.get("expressions") or []
        self.keys = self.grouped(select.args.get("group"), items)
        if not items:
            raise InvalidQueryError("SELECT must list aggregates, got none; write e.g. SELECT COUNT(*).")
        columns: list[tuple[str, int]] = []
        listed: list[Formula] = []
        for item in items:
            name, inner = self.named(item)
            place = self.key_place(inner, name)
            if place is not None:
                columns.append((name or self.keys[place].name, place))
                continue
            formula = self.formula(inner)
            columns.append((name or self.trees.whole_text(inner), len(self.keys) + len(listed)))
            listed.append(formula)
            if name is not None:
                self.aliases.setdefault(name, formula)
        where_ = select.args.get("where")
        among = Fixed(True) if where_ is None else self.where(where_)
        places = _Places(self, items, columns, listed)
        rows = rows_of(select, self.conditions, bool(self.keys), places)
        if not any(parts_of(formula) for formula in listed):
            raise InvalidQueryError(
                "SELECT must list an aggregate, got none; add COUNT(*), SUM(col) or AVG(col)."
            )
        if rows.having is not None and any(one.keys is not None for one in self.found):
            raise InvalidQueryError(
                "SUM(..) OVER (..) must stand without HAVING, after which it is of the groups that are left, "
                "got both; filter the answers instead."
            )
        self.conditions.check_used()
        names = [key.name for key in self.keys]
        columns[:0] = [
            (name, place) for place, name in enumerate(names) if place not in dict(columns).values()
        ]
        called = _distinct([name for name, _ in columns])
        titles = {place: name for name, (_, place) in zip(called, columns, strict=True)}
        for place, text in places.unlisted.items():
            titles[place] = _distinct([*titles.values(), text])[-1]
        used = sorted({place for formula in listed for place in parts_of(formula)})  # a rate leaves counts
        own = {
            formula.place: titles[len(self.keys) + place]
            for place, formula in reversed([*enumerate(listed)])
            if isinstance(formula, Part)
        }
        aggregates = tuple(self.counting(own.get(place, ""), self.found[place], among) for place in used)
        moved = {place: at for at, place in enumerate(used)}
        formulas = tuple(
            (titles[len(self.keys) + place], _moved(formula, moved)) for place, formula in enumerate(listed)
        )
        shown_ = tuple((name, place) for name, (_, place) in zip(called, columns, strict=True))
        return Statement(tuple(key.key for key in self.keys), aggregates, formulas, shown_, rows)

    # -- what is bound --

    def counting(self, name: str, asked: _Asked, among: Truth) -> Aggregate:
        """Return an aggregate all of whose queries can be bound: nothing of a statement is asked before."""
        domain = self.domain
        base = both([among if asked.apart is None else asked.apart, asked.among])
        found = expressed(both([base, asked.inner]))
        met = rest = None
        nobody = bound(found, domain).constant == 0
        if asked.form == "rate":
            met, found = expressed(asked.inner), expressed(base)
            rest = ~met if asked.rest is None else expressed(asked.rest)
            others, all_others = bound(rest, domain), bound(~met, domain)
            if (others.key, others.complement) == (all_others.key, all_others.complement):
                rest = ~met  # nobody is missing
            nobody = nobody and bound(rest & found, domain).constant == 0
        keys = self.keys if asked.keys is None else [self.keys[place] for place in asked.keys]
        plain = [key.key for key in keys if isinstance(key.key, str)]
        some = found & cell(domain, plain, [0] * len(plain)) if plain else found
        if asked.column is not None:
            kind = domain.attribute(asked.column)
            known = bound(found & where({asked.column: ~one_of(None)} if kind.missing else {}), domain)
            nobody = nobody or known.constant == 0
            if isinstance(kind, Binned) and asked.form != "quantile":
                self.check_finite(asked.column, kind, known, asked.form)
            if asked.other is not None and isinstance(beside := domain.attribute(asked.other), Binned):
                self.check_finite(asked.other, beside, known, asked.form)
            some = some & where({asked.column: weights(np.linspace(0.0, 1.0, kind.size))})
        if nobody and asked.form not in ("sum", "count"):
            who = "" if asked.column is None else f" with a value of {asked.column}"
            raise InvalidQueryError(
                f"{CALLED[asked.form]} must be over some records, got a condition that nobody{who} can "
                "meet; mend it."
            )
        if some is not found:
            bound(some, domain)
        condition = None if found == where() else found
        parts = (met, rest, asked.q, asked.keys, asked.other)
        return Aggregate(name, asked.form, asked.column, condition, nobody, *parts)

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

    def grouped(self, group: Any, items: Sequence[Any]) -> tuple[_Key, ...]:
        """Return the columns of GROUP BY; where it says no column, an alias of SELECT for one."""
        if group is None:
            return ()
        self.trees.kind(group)
        exp = self.trees.exp
        aliased = {item.alias: item.this for item in items if type(item) is exp.Alias}
        found: list[_Key] = []
        for entry in group.args.get("expressions") or []:
            key = self.key(entry, items, aliased)
            if key.name in (one.name for one in found):
                raise InvalidQueryError(
                    f"GROUP BY must list a column once, got {key.name} twice; remove one."
                )
            found.append(key)
        if not found:
            raise InvalidQueryError("GROUP BY must list columns, got none; name the columns.")
        cells = math.prod(len(key.labels) for key in found)
        if cells > MOST_GROUPS:
            raise TooLargeError(
                f"GROUP BY must give at most {MOST_GROUPS:,} answers, got {cells:,}; group by fewer columns, "
                "or ask for the groups of interest by WHERE."
            )
        return tuple(found)

    def key(self, entry: Any, items: Sequence[Any], aliased: Mapping[str, Any]) -> _Key:
        """Return one column of GROUP BY: a column, an alias, a place, or what is made of a column."""
        exp = self.trees.exp
        entry, alias = self.trees.bare(entry), None
        if type(entry) is exp.Literal:
            entry = self.trees.bare(self.item_at(entry, items))
            if type(entry) is exp.Alias:
                entry, alias = self.trees.bare(entry.this), entry.alias
        if type(entry) is exp.Column and entry.name not in self.domain.names and not entry.table:
            alias = entry.name if entry.name in aliased else None
            entry = self.trees.bare(aliased.get(entry.name, entry))
        text = self.trees.whole_text(entry)
        for name, inner in aliased.items():
            if alias is None and self.trees.whole_text(self.trees.bare(inner)) == text:
                alias = name
        if type(entry) is exp.Column:
            name, kind = self.conditions.column(entry)
            if kind.size > MOST_GROUPS:
                raise TooLargeError(
                    f"GROUP BY must give at most {MOST_GROUPS:,} answers, got {kind.size:,}; group by fewer "
                    "columns, or ask for the groups of interest by WHERE."
                )
            cells = kind.cells if isinstance(kind, Binned) else 1
            labels = [kind.label(code) for code in range(0, kind.size, cells)]
            return _Key(name, name, tuple(labels), text, alias)
        if type(entry).__name__ in AGGREGATES:
            raise InvalidQueryError(
                f"GROUP BY must list columns, got the aggregate {self.trees.text(entry)}; name the columns."
            )
        made = key_of(entry, self.conditions)
        if made is None:
            self.trees.refuse_node(
                entry,
                "group by a column, a condition, EXTRACT(YEAR FROM d), DATE_TRUNC('month', d), CASE or "
                "FLOOR(x / 10)",
            )
        made = made.called(alias or text)
        return _Key(made, made.name, made.over(self.domain).labels, text, alias)

    def item_at(self, literal: Any, items: Sequence[Any]) -> Any:
        """Return an item of SELECT by its number."""
        value = self.conditions.value(literal)
        if type(value) is not int or not 1 <= value <= len(items):
            raise InvalidQueryError(
                f"GROUP BY must name a column of SELECT from 1 to {len(items)}, got "
                f"{self.trees.text(literal)}; write its name."
            )
        return items[value - 1]

    def key_place(self, node: Any, name: str | None) -> int | None:
        """Return the place of a key that an item of SELECT lists, None of what is no key."""
        inner = self.trees.bare(node)
        text = self.trees.whole_text(inner)
        for place, key in enumerate(self.keys):
            same = text == key.text or (type(inner) is self.trees.exp.Column and key.key == inner.name)
            if same or (name is not None and name == key.alias and key.text == text):
                return place
        if type(inner) is self.trees.exp.Column and inner.name not in self.aliases:
            column = self.conditions.column(inner)[0]
            raise InvalidQueryError(
                f"column {column} must be in GROUP BY or in an aggregate; records are never released."
            )
        return None

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

    # -- arithmetic --

    def formula(self, node: Any) -> Formula:
        """Return what a node makes of aggregates."""
        node = self.trees.bare(node)
        text = self.trees.whole_text(node)
        if text not in self.known:
            self.known[text] = self.read(node)
        return self.known[text]

    def read(self, node: Any) -> Formula:
        """Return what a node makes of aggregates, read anew."""
        trees, name = self.trees, type(node).__name__
        if name in AGGREGATES or is_quantile(node):
            return self.aggregate(node)
        if name in ("Literal", "Null", "Placeholder", "Boolean"):
            return self.written(node)
        if name == "Column" and not node.table and node.name in self.aliases:
            return self.aliases[node.name]
        if name == "Column":
            column = self.conditions.column(node)[0]
            raise InvalidQueryError(
                f"column {column} must be in GROUP BY or in an aggregate; records are never released."
            )
        if name == "Neg":
            trees.kind(node)
            return _product([Known(-1.0), self.formula(node.this)])
        if name in SIGNS:
            trees.kind(node)
            parts = [self.formula(part) for part in (node.this, node.expression)]
            return _product(parts) if name == "Mul" else Made(SIGNS[name], tuple(parts))
        if name == "Div":
            trees.kind(node)
            return self.divided(self.formula(node.this), self.formula(node.expression))
        if name == "Round":
            trees.kind(node)
            return Made("round", (self.formula(node.this),), self.digits(node.args.get("decimals")))
        if name in FUNCTIONS:
            trees.kind(node)
            given = [node.this, *(node.args.get("expressions") or [])]
            given += [node.expression] if node.args.get("expression") is not None else []
            return Made(FUNCTIONS[name], tuple(map(self.formula, given)))
        if name in ("Case", "If"):
            return self.choice(node)
        if name in ("Cast", "TryCast"):
            return self.cast(node)
        if name == "Window":
            return self.window(node)
        if name == "Subquery":
            return self.scalar(node)
        trees.refuse_node(node, "compute with COUNT, SUM, AVG and numbers by + - * / and ROUND")
        return Known(math.nan)  # never: it is refused

    def written(self, node: Any) -> Formula:
        value = self.conditions.value(node)
        if value is None:
            return Known(math.nan)
        if type(value) not in (int, float):
            raise InvalidQueryError(
                f"SELECT must compute with numbers, got {self.trees.text(node)}; write a number, or group by "
                "a column for texts."
            )
        return Known(float(value))

    def digits(self, node: Any) -> int:
        value = 0 if node is None else self.conditions.value(node)
        if type(value) is not int or abs(value) > 15:
            raise InvalidQueryError(
                f"ROUND must have a whole number of digits, got {self.trees.text(node)}; write e.g. "
                "ROUND(.., 2)."
            )
        return value

    def cast(self, node: Any) -> Formula:
        """Return what is cast to a number with a fraction, which it is anyway."""
        to = getattr(getattr(node.args.get("to"), "this", None), "name", "")
        if to not in REAL:
            self.trees.refuse_node(node, "cast numbers to DOUBLE, or ROUND them")
        return self.formula(node.this)

    def divided(self, one: Formula, other: Formula) -> Formula:
        """Return a quotient; of a count by one that holds it the rate that it is, of a sum the average."""
        guard = other.parts if isinstance(other, Made) and other.sign == "nullif" else None
        below = guard[0] if guard is not None and guard[1] == Known(0.0) else other
        (factor, top), (divisor, bottom) = factored(one), factored(below)
        if isinstance(top, Part) and isinstance(bottom, Part) and divisor:
            found = self.quotient(self.found[top.place], self.found[bottom.place])
            if found is not None:
                return times(factor / divisor, self.asked(found))
        return Made("/", (one, other))

    def quotient(self, top: _Asked, bottom: _Asked) -> _Asked | None:
        """Return the rate or the average that the quotient of two aggregates is, None of another."""
        alike = (
            top.keys == bottom.keys and (top.apart is None) == (bottom.apart is None) and top.apart is None
        )
        if bottom.form != "count" or not alike:
            return None
        if top.form == "sum" and top.column is not None and top.told == bottom.told:
            kind = self.domain.attribute(top.column)
            whole = bottom.inner == Fixed(True) and not kind.missing
            if top.inner == Fixed(True) and (bottom.counted == top.column or whole):
                return attrs.evolve(top, form="average")
        if top.form != "count" or bottom.inner != Fixed(True):
            return None
        if bottom.told in ("", top.told):
            inner = top.inner if bottom.told == top.told else top.truth
            return attrs.evolve(bottom, form="rate", inner=inner, counted=None)
        return None

    def choice(self, node: Any) -> Formula:
        """Return CASE over groups: of conditions on aggregates and on columns of GROUP BY."""
        self.trees.kind(node)
        whens = [node] if type(node).__name__ == "If" else node.args.get("ifs") or []
        default = node.args.get("false") if type(node).__name__ == "If" else node.args.get("default")
        found: Formula = Known(math.nan) if default is None else self.formula(default)
        for when in reversed(whens):
            self.trees.kind(when)
            found = Choice(self.test(when.this, negated=False), self.formula(when.args.get("true")), found)
        return found

    def test(self, node: Any, negated: bool) -> Test:
        """Return a condition on the numbers and labels of a group."""
        trees = self.trees
        while type(node) in (trees.exp.Paren, trees.exp.Not):
            negated ^= trees.kind(node) == "Not"
            node = node.this
        name = type(node).__name__
        if name in ("And", "Or"):
            parts = tuple(self.test(part, negated) for part in self.conditions.chain(node))
            return Joined((name == "And") != negated, parts)
        place = self.tested_key(node)
        if place is not None:
            return self.of_key(node, place, negated)
        if name in OPERATORS:
            trees.kind(node)
            return Compared(self.formula(node.this), OPERATORS[name], self.formula(node.expression), negated)
        if name == "Between":
            trees.kind(node)
            pairs = (("<=", "low"), (">=", "high")) if negated else ((">=", "low"), ("<=", "high"))
            ends = tuple(
                Compared(
                    self.formula(node.this),
                    "<" if negated and sign == "<=" else ">" if negated else sign,
                    self.formula(node.args[end]),
                )
                for sign, end in pairs
            )
            return Joined(not negated, ends)
        if name == "Is" and type(node.expression) is trees.exp.Null:
            trees.kind(node)
            return IsNull(self.formula(node.this), negated ^ bool(node.args.get("negate")))
        raise InvalidQueryError(
            f"CASE must compare aggregates, numbers or columns of GROUP BY, got {trees.text(node)}; write "
            "e.g. CASE WHEN COUNT(*) > 100 THEN AVG(x) END."
        )

    def tested_key(self, node: Any) -> int | None:
        """Return the place of the key that a condition is about, None of a condition on aggregates."""
        for side in (node.this, node.args.get("expression")):
            inner = self.trees.bare(side) if hasattr(side, "args") else None
            if inner is None or type(inner).__name__ in AGGREGATES or is_quantile(inner):
                continue
            text = self.trees.whole_text(inner)
            for place, key in enumerate(self.keys):
                if text in (key.text, key.alias) or (
                    type(inner) is self.trees.exp.Column and key.key == inner.name
                ):
                    return place
        return None

    def of_key(self, node: Any, place: int, negated: bool) -> Test:
        """Return of which labels of a plain column a condition holds."""
        key = self.keys[place]
        if not isinstance(key.key, str):
            raise InvalidQueryError(
                f"CASE must compare a column of the table, or aggregates, got {self.trees.text(node)}; write "
                "the condition in the CASE that groups."
            )
        met = bound(expressed(self.conditions.truth(node, negated)), self.domain)
        if met.constant is not None:
            held = [bool(met.constant)] * len(key.labels)
        else:
            (factor,) = met.factors
            step = self.domain.attribute(key.key)
            cells = step.cells if isinstance(step, Binned) else 1
            held = (np.asarray(factor.weights(self.domain), bool) ^ met.complement)[::cells].tolist()
        return OfKey(place, frozenset(at for at, one in enumerate(held) if one))

    def window(self, node: Any) -> Formula:
        """Return SUM(aggregate) OVER (PARTITION BY ..): the aggregate of the groups together."""
        trees = self.trees
        inner = node.this
        if type(inner).__name__ != "Sum" or type(trees.bare(inner.this)).__name__ not in (
            "Count",
            "CountIf",
            "Sum",
            "Filter",
        ):
            trees.refuse_node(node)
        trees.kind(node)
        trees.kind(inner)
        kept = []
        for entry in node.args.get("partition_by") or []:
            place = self.key_place(entry, None)
            if place is None:
                trees.refuse_node(node)
            kept.append(place)
        formula = self.formula(inner.this)
        if not isinstance(formula, Part) or self.found[formula.place].form not in ("count", "sum"):
            trees.refuse_node(node)
        if not self.keys:
            return formula
        return self.asked(attrs.evolve(self.found[formula.place], keys=tuple(sorted(kept))))

    def scalar(self, node: Any) -> Formula:
        """Return the aggregate of a SELECT in brackets, over all records or those of its own WHERE."""
        self.trees.kind(node)
        select = node.this
        if type(select) is not self.trees.exp.Select:
            self.trees.refuse_node(node)
        self.trees.kind(select)
        items = select.args.get("expressions") or []
        clauses = [one for one in ("group", "having", "order", "limit", "offset") if select.args.get(one)]
        if len(items) != 1 or clauses:
            raise InvalidQueryError(
                "a SELECT in brackets must be of one aggregate without GROUP BY, got another; write (SELECT "
                "COUNT(*) FROM t)."
            )
        self.read_from(select.args.get("from_") or select.args.get("from"), self.table)
        where_ = select.args.get("where")
        apart = Fixed(True) if where_ is None else self.where(where_)
        inner = _Selects(self.conditions, table=self.table)
        formula = inner.formula(self.named(items[0])[1])
        moved = {}
        for place, one in enumerate(inner.found):
            asked = self.asked(attrs.evolve(one, keys=(), apart=apart))
            moved[place] = asked.place
        outer: Formula = _moved(formula, moved)
        return outer

    # -- aggregates --

    def asked(self, asked: _Asked) -> Part:
        """Return an aggregate by its place; what was asked before is asked once."""
        for place, known in enumerate(self.found):
            if _same(known, asked):
                return Part(place)
        self.found.append(asked)
        return Part(len(self.found) - 1)

    def aggregate(self, node: Any, among: Truth = EVERYBODY, told: str = "") -> Formula:
        """Return what an aggregate asks."""
        name = type(node).__name__
        if name not in AGGREGATES and not is_quantile(node):
            self.trees.refuse_node(node, "ask COUNT(*), SUM(col) or AVG(col) and compute with the answers")
        self.trees.kind(node)
        if name == "Filter":
            self.trees.kind(node.expression)
            text = self.trees.whole_text(node.expression.this)
            return self.aggregate(
                node.this, both([among, self.where(node.expression)]), f"{told} {text}".strip()
            )
        base = _Asked("count", None, Fixed(True), among, told)
        if name == "Count":
            return self.asked(self.counted(node.this, base))
        if name == "CountIf":
            return self.asked(attrs.evolve(base, inner=self.conditions.truth(node.this, negated=False)))
        if name in QUANTILES or name == "Anonymous":
            return self.quantile(node, base)
        if name in SPREADS:
            return self.spread(node, base)
        if name in PAIRED:
            return self.paired(node, base)
        return self.averaged(node, NAMES[name], base)

    def counted(self, node: Any, base: _Asked) -> _Asked:
        """Return which records COUNT counts."""
        exp = self.trees.exp
        if type(node) is exp.Distinct:
            self.trees.refuse_node(node)
        if type(node) is exp.Case:
            return attrs.evolve(base, inner=self.counting_case(node))
        if type(node) is exp.Star:
            self.trees.kind(node)
            return base
        if type(node) is exp.Column:
            name, kind = self.conditions.column(node)
            return attrs.evolve(base, inner=missing_in(name, kind, negated=True), counted=name)
        if self.number_of(node) == 1.0:
            return base
        raise InvalidQueryError(
            f"COUNT must take *, a column or CASE WHEN cond THEN 1 END, got {self.trees.text(node)}; to "
            "count where a condition holds write COUNT_IF(cond)."
        )

    def counting_case(self, node: Any) -> Truth:
        """Return the condition of COUNT(CASE WHEN cond THEN 1 END)."""
        truth, then, default = self.one_when(node, "COUNT")
        if self.number_of(then) is None:
            raise InvalidQueryError(
                "COUNT(CASE ...) must give THEN 1, got another value; write CASE WHEN cond THEN 1 END."
            )
        if default is not None:
            raise InvalidQueryError(
                "COUNT(CASE ...) must have no ELSE, it counts every result that is not NULL; write "
                "COUNT(CASE WHEN cond THEN 1 END)."
            )
        return truth

    def one_when(self, node: Any, outer: str) -> tuple[Truth, Any, Any]:
        """Return the condition of a CASE with one WHEN, and what stands after THEN and after ELSE."""
        self.trees.kind(node)
        alone = type(node).__name__ == "If"
        whens = [node] if alone else node.args.get("ifs") or []
        if len(whens) != 1:
            raise InvalidQueryError(
                f"{outer}(CASE ...) must have one WHEN, got {len(whens)}; join conditions by OR."
            )
        if not alone:
            self.trees.kind(whens[0])
        default = node.args.get("false" if alone else "default")
        if type(default) is self.trees.exp.Null:
            default = None
        return self.conditions.truth(whens[0].this, negated=False), whens[0].args.get("true"), default

    def averaged(self, node: Any, form: Form, base: _Asked) -> Formula:
        """Return SUM, AVG or VAR_POP of a column, of what is linear in columns, of a condition or a CASE."""
        outer, inner = CALLED[form], self.trees.bare(node.this)
        kind = type(inner).__name__
        if kind == "Distinct":
            self.trees.refuse_node(inner)
        if kind in ("Case", "If"):
            return self.of_case(inner, form, base)
        if kind == "Cast" and self.is_cast_condition(inner):
            inner = self.trees.bare(inner.this)
        if self.is_condition(inner):
            return self.of_condition(inner, form, base)
        linear = self.linear(inner)
        product = self.multiplied(inner, form, base) if linear is None else None
        if product is not None:
            return product
        if linear is None or not linear[0]:
            if kind == "Div":
                parts = [self.trees.text(part) for part in (inner.this, inner.expression)]
                self.trees.refuse_node(
                    inner, f"write SUM({parts[0]}) / SUM({parts[1]}) for the ratio of both, or {DERIVE}"
                )
            if kind not in ("Column", "Literal", "Star"):
                self.trees.refuse_node(inner, DERIVE)
            raise InvalidQueryError(f"{outer} must take a column, got {self.trees.text(inner)}; {DERIVE}.")
        return self.of_linear(*linear, form, base)

    def of_linear(self, terms: Mapping[str, float], shift: float, form: Form, base: _Asked) -> Formula:
        """Return an aggregate of a sum of multiples of columns and a constant."""
        for name in terms:
            self.check_numbers(name, CALLED[form])
        kinds = {name: self.domain.attribute(name) for name in terms}

        def beside(own: str) -> Truth:
            others = [missing_in(name, kind, negated=True) for name, kind in kinds.items() if name != own]
            return both([base.inner, *others])

        if form == "variance":
            if len(terms) > 1:
                raise InvalidQueryError(
                    f"VAR_POP must be of one column, got {', '.join(terms)}; ask each alone."
                )
            ((name, factor),) = terms.items()
            return times(factor**2, self.asked(attrs.evolve(base, form=form, column=name)))
        parts: list[Formula] = [
            times(factor, self.asked(attrs.evolve(base, form=form, column=name, inner=beside(name))))
            for name, factor in terms.items()
        ]
        if shift and form == "sum":
            every = both(
                [beside(""), *(missing_in(name, kind, negated=True) for name, kind in kinds.items())]
            )
            parts.append(times(shift, self.asked(attrs.evolve(base, inner=every))))
        elif shift:
            parts.append(Known(shift))
        found = parts[0]
        for part in parts[1:]:
            found = Made("+", (found, part))
        return found

    def linear(self, node: Any) -> tuple[dict[str, float], float] | None:
        """Return the multiples of columns and the constant that a node adds up, None where it does not."""
        trees, name = self.trees, type(node).__name__
        node = trees.bare(node)
        name = type(node).__name__
        if name == "Column":
            return {self.conditions.column(node)[0]: 1.0}, 0.0
        number = self.number_of(node)
        if number is not None:
            return {}, number
        if name == "Cast" and getattr(getattr(node.args.get("to"), "this", None), "name", "") in REAL:
            return self.linear(node.this)
        if name == "Neg":
            trees.kind(node)
            inner = self.linear(node.this)
            return None if inner is None else _scaled(inner, -1.0)
        if name not in ("Add", "Sub", "Mul", "Div"):
            return None
        trees.kind(node)
        one, other = self.linear(node.this), self.linear(node.expression)
        if one is None or other is None:
            return None
        if name in ("Add", "Sub"):
            sign = 1.0 if name == "Add" else -1.0
            terms = dict(one[0])
            for column, factor in other[0].items():
                terms[column] = terms.get(column, 0.0) + sign * factor
            return terms, one[1] + sign * other[1]
        if name == "Mul" and not (one[0] and other[0]):
            return _scaled(other, one[1]) if not one[0] else _scaled(one, other[1])
        if name == "Div" and not other[0] and other[1]:
            return _scaled(one, 1.0 / other[1])
        return None

    def of_condition(self, node: Any, form: Form, base: _Asked) -> Formula:
        """Return the rate or the number of those of whom a condition is true, where it is known."""
        truth = self.conditions.truth(node, negated=False)
        if form == "sum":
            return self.asked(attrs.evolve(base, inner=truth))
        rest = self.conditions.truth(node, negated=True)
        rate = self.asked(attrs.evolve(base, form="rate", inner=truth, rest=rest))
        return rate if form == "average" else Made("*", (rate, Made("-", (Known(1.0), rate))))

    def is_condition(self, node: Any) -> bool:
        exp = self.trees.exp
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
            return True
        if type(node) is not exp.Column:
            return False
        kind = self.conditions.column(node)[1]
        return isinstance(kind, Categorical) and isinstance(kind.labels[0], bool)

    def is_cast_condition(self, node: Any) -> bool:
        """Return whether a node is a condition that is cast to 0 or 1."""
        to = getattr(getattr(node.args.get("to"), "this", None), "name", "")
        return to in (*REAL, *WHOLE) and self.is_condition(self.trees.bare(node.this))

    def of_case(self, node: Any, form: Form, base: _Asked) -> Formula:
        """Return SUM, AVG or VAR_POP of CASE WHEN cond THEN this ELSE that."""
        outer = CALLED[form]
        truth, then, default = self.one_when(node, outer)
        inside = attrs.evolve(base, inner=truth)
        numbers = self.number_of(then), 0.0 if default is None else self.number_of(default)
        if numbers[0] is None:
            linear = self.linear(then) if then is not None else None
            if linear is None or not linear[0]:
                raise InvalidQueryError(
                    f"{outer}(CASE ...) must give THEN a number or a column, got another value; write CASE "
                    "WHEN cond THEN 1 ELSE 0 END."
                )
            if default is not None and (form != "sum" or numbers[1] != 0.0):
                raise InvalidQueryError(
                    f"{outer}(CASE ...) must have {'ELSE 0 or none' if form == 'sum' else 'no ELSE'} after a "
                    f"column, got another value; write {outer}(CASE WHEN .. THEN {self.trees.text(then)} "
                    "END)."
                )
            return self.of_linear(*linear, form, inside)
        one, other = float(numbers[0]), numbers[1]
        if other is None:
            raise InvalidQueryError(
                f"{outer}(CASE ...) must have a number after ELSE, got another value; write ELSE 0."
            )
        if form == "sum":
            counted = times(one - other, self.asked(inside))
            return counted if not other else Made("+", (counted, times(other, self.asked(base))))
        if default is None:
            raise InvalidQueryError(
                f"{outer}(CASE ...) must have ELSE 0 for a rate, got no ELSE, by which all results are "
                f"{one:g}; write {outer}(CASE WHEN cond THEN 1 ELSE 0 END)."
            )
        rate = self.asked(attrs.evolve(inside, form="rate"))
        if form == "variance":
            return times((one - other) ** 2, Made("*", (rate, Made("-", (Known(1.0), rate)))))
        scaled = times(one - other, rate)
        return scaled if not other else Made("+", (scaled, Known(other)))

    def spread(self, node: Any, base: _Asked) -> Formula:
        """Return a standard deviation, or a variance that divides by one less than the number."""
        column = self.column_of(node.this, type(node).__name__.upper())
        found: Formula = self.asked(attrs.evolve(base, form="variance", column=column))
        if type(node).__name__ != "StddevPop":
            kind = self.domain.attribute(column)
            count = self.asked(
                attrs.evolve(base, inner=missing_in(column, kind, negated=True), counted=column)
            )
            found = Made("*", (found, Made("/", (count, Made("-", (count, Known(1.0)))))))
        return found if type(node).__name__ == "Variance" else Made("root", (found,))

    def quantile(self, node: Any, base: _Asked) -> Formula:
        """Return MEDIAN, QUANTILE or PERCENTILE of a column of numbers."""
        name, column, share = type(node).__name__, node.this, node.args.get("quantile")
        if name == "Anonymous":
            given = node.args.get("expressions") or []
            if len(given) != 2:
                self.trees.refuse_node(node, "give it a column and a share")
            column, share = given
        if name == "WithinGroup":
            share, ordered = node.this.this, node.expression
            one = ordered.args.get("expressions") or []
            if type(node.this).__name__ not in ("PercentileCont", "PercentileDisc") or len(one) != 1:
                self.trees.refuse_node(node)
            self.trees.kind(node.this)
            self.trees.kind(ordered)
            if one[0].args.get("desc"):
                self.trees.refuse_node(node, "order upwards")
            column = one[0].this
        elif name in ("PercentileCont", "PercentileDisc"):
            share = node.args.get("expression")
        q = 0.5 if name == "Median" else self.number_of(share)
        if q is None or not 0.0 < q < 1.0:
            raise InvalidQueryError(
                f"{self.trees.text(node)} must have one share between 0 and 1; write QUANTILE_CONT(col, 0.9)."
            )
        found = self.column_of(column, "QUANTILE")
        return self.asked(attrs.evolve(base, form="quantile", column=found, q=q))

    def paired(self, node: Any, base: _Asked) -> Formula:
        """Return a covariance, a correlation or what a straight line says, of the records that have both."""
        name = type(node).__name__
        outer = name.upper()
        one, other = (self.column_of(part, outer) for part in (node.this, node.expression))
        kinds = {column: self.domain.attribute(column) for column in (one, other)}
        held = both([base.inner, *(missing_in(column, kind, negated=True) for column, kind in kinds.items())])
        both_of = attrs.evolve(base, inner=held)
        count = self.asked(both_of)
        if name == "RegrCount":
            return count

        def of(form: Form, column: str) -> Formula:
            return self.asked(attrs.evolve(both_of, form=form, column=column))

        if name in ("RegrAvgx", "RegrAvgy"):
            return of("average", other if name == "RegrAvgx" else one)
        if one == other:
            raise InvalidQueryError(f"{outer} must be of two columns, got {one} twice; ask VAR_POP({one}).")
        together = self.asked(attrs.evolve(both_of, form="covariance", column=one, other=other))
        if name == "CovarPop":
            return together
        if name == "CovarSamp":
            return Made("*", (together, Made("/", (count, Made("-", (count, Known(1.0)))))))
        rise = Made("/", (together, of("variance", other)))
        if name == "RegrSlope":
            return rise
        if name == "RegrIntercept":
            return Made("-", (of("average", one), Made("*", (rise, of("average", other)))))
        spread = Made("root", (Made("*", (of("variance", one), of("variance", other))),))
        found = Made("correlation", (Made("/", (together, spread)),))
        return found if name == "Corr" else Made("*", (found, found))

    def multiplied(self, node: Any, form: Form, base: _Asked) -> Formula | None:
        """Return SUM or AVG of the product of two columns, None of anything else."""
        if type(node).__name__ != "Mul" or form not in ("sum", "average"):
            return None
        sides = [self.linear(part) for part in (node.this, node.expression)]
        if not all(side is not None and len(side[0]) == 1 and not side[1] for side in sides):
            return None
        (one, first), (other, second) = (next(iter(side[0].items())) for side in sides if side is not None)
        for column in (one, other):
            self.check_numbers(column, CALLED[form])
        kinds = {column: self.domain.attribute(column) for column in (one, other)}
        held = both([base.inner, *(missing_in(column, kind, negated=True) for column, kind in kinds.items())])
        both_of = attrs.evolve(base, inner=held)
        averages = [
            self.asked(attrs.evolve(both_of, form="average", column=column)) for column in (one, other)
        ]
        if one == other:
            together: Formula = self.asked(attrs.evolve(both_of, form="variance", column=one))
        else:
            together = self.asked(attrs.evolve(both_of, form="covariance", column=one, other=other))
        found: Formula = Made("+", (together, Made("*", tuple(averages))))
        found = found if form == "average" else Made("*", (self.asked(both_of), found))
        return times(first * second, found)

    def column_of(self, node: Any, outer: str) -> str:
        node = self.trees.bare(node)
        if type(node) is not self.trees.exp.Column:
            if type(node) is self.trees.exp.Distinct:
                self.trees.refuse_node(node)
            raise InvalidQueryError(f"{outer} must take a column, got {self.trees.text(node)}; {DERIVE}.")
        name = self.conditions.column(node)[0]
        self.check_numbers(name, outer)
        return name

    def check_numbers(self, name: str, outer: str) -> None:
        """Raise unless a column holds numbers."""
        kind = self.domain.attribute(name)
        if isinstance(kind, Categorical):
            raise InvalidQueryError(
                f"{outer} must be over a numeric column, {name} is categorical; GROUP BY it instead, or "
                f"average a condition such as {name} = '..'."
            )
        if not isinstance(kind, IntegerRange | Binned):
            raise InvalidQueryError(
                f"{outer} must be over a column of numbers, {name} holds dates; COUNT it by group, or use "
                "session.median."
            )

    def number_of(self, node: Any) -> float | None:
        """Return the number that is written there, None where none is."""
        node = self.trees.bare(node) if hasattr(node, "args") else node
        name = type(node).__name__
        if name == "Neg":
            inner = self.number_of(node.this)
            return None if inner is None else -inner
        if name not in ("Literal", "Placeholder"):
            return None
        value = self.conditions.value(node)
        return float(value) if type(value) in (int, float) else None

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
    """Where HAVING and ORDER BY find their numbers; what SELECT does not list is worked out too."""

    reader: _Selects
    items: Sequence[Any]
    listed: Sequence[tuple[str, int]]  # name and place of every item of SELECT
    formulas: list[Formula]
    unlisted: dict[int, str] = attrs.field(factory=dict)

    def of(self, node: Any, clause: Clause) -> int:
        """Return the place of a node: a column, the number of one, or what is made of aggregates."""
        reader = self.reader
        if type(node) is reader.trees.exp.Literal and clause == "ORDER BY":
            return self.numbered(node)
        if type(node) is reader.trees.exp.Column:
            return self.column(node, clause)
        text = reader.trees.whole_text(node)
        for item, (_, place) in zip(self.items, self.listed, strict=True):
            inner = item.this if type(item) is reader.trees.exp.Alias else item
            if reader.trees.whole_text(reader.trees.bare(inner)) == text:
                return place
        name = type(node).__name__
        if name in ("Max", "Min") or (
            name not in AGGREGATES and not parts_of(formula := reader.formula(node))
        ):
            reader.trees.refuse_node(node, f"{clause} takes COUNT, SUM and AVG" + COLUMNS_TOO[clause])
        formula = reader.formula(node)
        return self.place_of(formula, text)

    def difference(self, one: Any, two: Any) -> int:
        """Return the place of the difference of two nodes."""
        reader = self.reader
        text = f"{reader.trees.whole_text(one)} - {reader.trees.whole_text(two)}"
        return self.place_of(Made("-", (self.read(one), self.read(two))), text)

    def read(self, node: Any) -> Formula:
        """Return a formula, or that of an alias or of a place."""
        keys = len(self.reader.keys)
        if type(node) is self.reader.trees.exp.Column:
            return self.formulas[self.column(node, "HAVING") - keys]
        return self.reader.formula(node)

    def place_of(self, formula: Formula, text: str) -> int:
        for place, known in self.unlisted.items():
            if known == text:
                return place
        self.formulas.append(formula)
        place = len(self.reader.keys) + len(self.formulas) - 1
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
        if not node.table and name in known and not (clause == "HAVING" and known[name] < len(reader.keys)):
            place = known[name]
        else:
            names = [key.alias or key.name for key in reader.keys]
            keys = [key.key for key in reader.keys]
            if not node.table and name in names:
                place = names.index(name)
            else:
                column = reader.conditions.column(node)[0]
                if column not in keys:
                    raise InvalidQueryError(
                        f"{clause} must name an aggregate{COLUMNS_TOO[clause]}, got {column}; records are "
                        "never released."
                    )
                place = keys.index(column)
        if clause == "HAVING" and place < len(reader.keys):
            raise InvalidQueryError(
                f"HAVING must compare an aggregate with a number, got the column {reader.trees.text(node)}; "
                "write it in WHERE."
            )
        return place


def is_quantile(node: Any) -> bool:
    """Return whether a node is a quantile under a name that the parser does not know."""
    return type(node).__name__ == "Anonymous" and str(node.this).lower() in ("quantile_cont", "quantile_disc")


def _same(one: _Asked, other: _Asked) -> bool:
    """Return whether two aggregates ask the same."""
    names = ("form", "column", "other", "told", "counted", "q", "keys")
    parts = [[getattr(each, name) for name in names] for each in (one, other)]
    truths = ("inner", "among", "rest", "apart")
    return parts[0] == parts[1] and all(_alike(getattr(one, name), getattr(other, name)) for name in truths)


def _alike(one: Truth | None, other: Truth | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or expressed(one) == expressed(other)


def _product(parts: Sequence[Formula]) -> Formula:
    """Return a product, of numbers that are written their own."""
    factor, rest = 1.0, list[Formula]()
    for part in parts:
        inner, left = factored(part)
        factor *= inner
        if isinstance(left, Known):
            factor *= left.value
        else:
            rest.append(left)
    if not rest:
        return Known(factor)
    return times(factor, rest[0] if len(rest) == 1 else Made("*", tuple(rest)))


def _scaled(linear: tuple[dict[str, float], float], factor: float) -> tuple[dict[str, float], float]:
    return {column: factor * own for column, own in linear[0].items()}, factor * linear[1]


def _moved(formula: Any, moved: Mapping[int, int]) -> Any:
    """Return a formula, or a test, whose aggregates stand at other places."""
    if isinstance(formula, Part):
        return Part(moved[formula.place])
    if isinstance(formula, Made):
        return attrs.evolve(formula, parts=tuple(_moved(part, moved) for part in formula.parts))
    if isinstance(formula, Joined):
        return attrs.evolve(formula, parts=tuple(_moved(part, moved) for part in formula.parts))
    if isinstance(formula, Choice):
        parts = {name: _moved(getattr(formula, name), moved) for name in ("test", "one", "other")}
        return attrs.evolve(formula, **parts)
    if isinstance(formula, Compared):
        return attrs.evolve(formula, one=_moved(formula.one, moved), other=_moved(formula.other, moved))
    return attrs.evolve(formula, one=_moved(formula.one, moved)) if isinstance(formula, IsNull) else formula


def _distinct(names: list[str]) -> list[str]:
    """Return the names, those that were there before with their number."""
    result: list[str] = []
    for name in names:
        number, found = 2, name
        while found in result:
            found, number = f"{name} ({number})", number + 1
        result.append(found)
    return result
