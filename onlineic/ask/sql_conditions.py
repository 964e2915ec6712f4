"""Conditions in SQL, as queries over a domain."""

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, final

import attrs
import numpy as np

from onlineic.ask.sql_dates import is_dated, where_dated
from onlineic.ask.sql_trees import DERIVE, NESTED, TIMES, Trees, nearest
from onlineic.ask.sql_values import COMPARE, DENIED, OPERATORS, TURNED, Timed, Value, written
from onlineic.ask.truth import (
    Fixed,
    Line,
    Pairs,
    Truth,
    both,
    compared,
    compared_stretch,
    either,
    expressed,
    joined,
    missing_in,
    shared,
    true_of,
)
from onlineic.domain import Attribute, Categorical, Dates, Domain, IntegerRange
from onlineic.domain.dates import moment_text
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooLargeError, shown
from onlineic.queries.algebra import JOINT_CELLS
from onlineic.queries.expressions import Expression
from onlineic.queries.query import Query
from onlineic.slips import public

MOST_NAMED = 12  # columns that a message names
DATE = r"\d{4}-\d\d-\d\d"
OFFSET = r"(?:Z|[+-]\d\d:?\d\d)$"
TIMESTAMP = rf"{DATE}(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"


@public
def condition(
    text: str, domain: Domain, params: Mapping[str, Value] | None = None, dialect: str | None = None
) -> Expression:
    """Return the query that counts the records for which an SQL condition is true.

    Args:
        text: What could stand after WHERE: comparisons of a column with a value or a column, BETWEEN, IN,
            LIKE, IS NULL, a boolean column, TRUE, FALSE, combined by AND, OR, NOT. See `docs/sql.md`.
        params: Values of the parameters `:name`: int, float, str, bool, date, datetime or None.
        dialect: As sqlglot names it, for quotes and spellings; what a comparison means does not depend on it.

    Returns:
        To be asked, and combined by ``&``, ``|`` and ``~``. Its ``~`` counts all other records; NOT does not
        count those of which the condition is unknown.

    Raises:
        InvalidQueryError: If the text is not understood, or does not fit the domain.
        TooLargeError: If a comparison ties more than 2^22 joint cells.

    Examples:
        >>> from onlineic.domain import Domain
        >>> condition("age BETWEEN 30 AND 50 AND sex = 'F'", Domain.of(age=range(17, 91), sex=["F", "M"]))
        where(age=between(30, 50), sex='F')
    """
    reader = Conditions.of(domain, params, dialect)
    try:
        found = expressed(reader.whole(text))
        bound(found, domain)
    except RecursionError:
        raise InvalidQueryError(NESTED) from None
    return found


@final
@attrs.frozen(eq=False)
class Conditions:
    """Reads conditions over one domain."""

    domain: Domain
    params: dict[str, Value]
    trees: Trees
    used: set[str] = attrs.field(factory=set)  # parameters
    tables: list[str] = attrs.field(factory=list)  # names that may stand before a column

    @classmethod
    def of(cls, domain: Any, params: Any, dialect: Any) -> "Conditions":
        """Return the reader, having checked what it is given.

        Raises:
            InvalidParameterError, InvalidQueryError, MissingExtraError: If the domain, the parameters or the
                dialect are none, or sqlglot is not installed.
        """
        if type(domain) is not Domain:
            raise InvalidParameterError(f"domain must be a Domain, got a {type(domain).__name__}.")
        return cls(domain, _checked_params(params), Trees.of(dialect))

    def whole(self, text: Any) -> Truth:
        """Return what a condition alone says."""
        with self.trees.condition(text) as tree:
            truth = self.truth(tree, negated=False)
        self.check_used()
        return truth

    def check_used(self) -> None:
        for name in self.params:
            if name not in self.used:
                raise InvalidQueryError(
                    f"params must be used in the text, got {shown(name)} unused; write :{name} or "
                    "leave it out."
                )

    def truth(self, node: Any, negated: bool) -> Truth:
        """Return where a condition is certainly true; if negated, where it is certainly false."""
        exp = self.trees.exp
        while type(node) in (exp.Paren, exp.Not):
            negated ^= self.trees.kind(node) == "Not"
            node = node.this
        if type(node) is exp.Column:
            name, kind = self.column(node)
            if not (isinstance(kind, Categorical) and type(kind.labels[0]) is bool):
                raise InvalidQueryError(
                    f"{name} must be boolean to stand alone; write a comparison, or ask all of its values by "
                    f"session.histogram({shown(name)})."
                )
            return true_of(name, kind, frozenset([kind.code(name, True)]), negated)
        name = self.trees.kind(node)
        if name in ("And", "Or"):
            parts = [self.truth(part, negated) for part in self.chain(node)]
            return both(parts) if (name == "And") != negated else either(parts)
        if name == "Boolean":
            return Fixed(bool(node.this) != negated)
        negated ^= bool(node.args.get("negate"))
        if name in OPERATORS:
            return self.comparison(node, node.this, OPERATORS[name], node.expression, negated)
        if name in ("NullSafeEQ", "NullSafeNEQ"):
            return self.distinct(node, negated != (name == "NullSafeNEQ"))
        if name == "Is":
            return self.is_null(node, negated)
        if name == "Between":
            return self.between(node, negated)
        if name == "In":
            return self.in_list(node, negated)
        if name == "Like":
            return self.like(node, negated)
        raise InvalidQueryError(
            f"condition must be true or false, got {self.trees.text(node)}; write a comparison."
        )

    def chain(self, node: Any) -> list[Any]:
        """Return the parts of a chain of one operator, however long: the parser nests them leftwards."""
        form, parts = type(node), []
        while type(node) is form:
            self.trees.kind(node)
            parts.append(node.expression)
            node = node.this
        return [node, *reversed(parts)]

    def comparison(self, node: Any, one: Any, operator: str, two: Any, negated: bool) -> Truth:
        """Return where two sides compare so; `node` is what is written there."""
        left, right = self.trees.bare(one), self.trees.bare(two)
        column = self.trees.exp.Column
        if is_dated(left) or is_dated(right):
            turned = not is_dated(left)
            value = self.value(left if turned else right)
            return where_dated(
                right if turned else left, TURNED[operator] if turned else operator, value, self, negated
            )
        if type(left) is not column:
            left, right, operator = right, left, TURNED[operator]
        if type(left) is not column:
            sides = [self.value(side) for side in (right, left)]  # no value is refused by its own name
            if all(type(side) in (int, float) for side in sides):  # WHERE 1 = 1
                return Fixed(COMPARE[DENIED[TURNED[operator]] if negated else TURNED[operator]](*sides))
            raise InvalidQueryError(
                f"comparison must have a column, got {self.trees.text(node)}; compare a column with a value."
            )
        name, kind = self.column(left)
        if type(right) is column:
            return self.columns(name, kind, operator, *self.column(right), negated)
        value = self.value(right)
        if value is None:
            raise InvalidQueryError(
                f"{name} must be compared with a value, got {self.trees.text(node)}, which is never true; "
                f"write {name} IS NULL."
            )
        if operator in ("=", "<>"):
            return true_of(name, kind, self.equal(name, kind, [value]), negated != (operator == "<>"))
        return true_of(name, kind, self.line(name, kind, operator, value), negated)

    def distinct(self, node: Any, negated: bool) -> Truth:
        """Return where two sides are the same, two missing values too; if negated, where they are not."""
        left, right = self.trees.bare(node.this), self.trees.bare(node.expression)
        if type(left) is not self.trees.exp.Column:
            left, right = right, left
        if type(left) is not self.trees.exp.Column:
            raise InvalidQueryError(
                f"comparison must have a column, got {self.trees.text(node)}; compare a column with a value."
            )
        one = self.column(left)
        if type(right) is not self.trees.exp.Column:
            if self.value(right) is None:
                return missing_in(*one, negated)
            same = self.comparison(node, left, "=", right, negated)
            return either([same, missing_in(*one, False)]) if negated else same
        two, same = self.column(right), self.comparison(node, left, "=", right, negated)
        if negated:
            apart = [(missing_in(*one, no), missing_in(*two, not no)) for no in (False, True)]
            return either([same, *map(both, apart)])
        return either([same, both([missing_in(*one, False), missing_in(*two, False)])])

    def line(self, name: str, kind: Attribute, operator: str, value: Value | Timed, form: str = "") -> Line:
        """Return where an ordered attribute compares so with a value."""
        if not isinstance(kind, Dates):
            return compared(operator, self.number(name, kind, form or operator, value))
        if type(value) not in (str, Timed):
            raise InvalidQueryError(
                f"{name} must be compared with a date, got {written(value)}; write e.g. {name} >= "
                f"{written(kind.first)}."
            )
        text = value.text if isinstance(value, Timed) else str(value)
        stretch = kind.compared(text)
        if stretch is None:
            offset = ", without offset" if kind.zone is None else ""
            raise InvalidQueryError(
                f"{name} must be compared with a date such as {written(kind.first)}{offset}, got "
                f"{written(value)}; write it so."
            )
        start, end = stretch
        if isinstance(value, Timed) and value.form != "DATE":
            end = start  # an instant, midnight too
            if value.form == "TIMESTAMPTZ" and kind.zone and not re.search(OFFSET, text):
                raise InvalidQueryError(
                    f"{name} must be compared with a time of a known zone, got {written(value)}; write its "
                    "offset, or a plain text for local time."
                )
        return compared_stretch(operator, start, end)

    def equal(self, name: str, kind: Attribute, values: Iterable[Value | Timed]) -> Any:
        """Return the codes, or the numbers, that are equal to one of the values."""
        if isinstance(kind, Categorical):
            return frozenset(kind.code(name, self.label(name, kind, value)) for value in values)
        if isinstance(kind, Dates):
            return joined(self.line(name, kind, "=", value) for value in values)
        lines = []
        for value in values:
            number = self.number(name, kind, "=", value)
            if (isinstance(kind, IntegerRange) or kind.integer) and number != math.floor(number):
                raise InvalidQueryError(
                    f"{name} must equal an integer, got {shown(number)}; write a whole number."
                )
            lines.append(compared("=", number))
        return joined(lines)

    def label(self, name: str, kind: Categorical, value: Value | Timed) -> Any:
        """Return a value as a label of the attribute's own type."""
        own = type(kind.labels[0])
        if own is int and type(value) is float and value.is_integer():
            return int(value)
        if type(value) is own:
            return value
        wanted = {str: "a text in single quotes", int: "an integer", bool: "TRUE or FALSE"}[own]
        raise InvalidQueryError(
            f"{name} must be compared with {wanted}, got {written(value)}; "
            f"write e.g. {name} = {written(kind.labels[0])}."
        )

    def number(self, name: str, kind: Attribute, operator: str, value: Value | Timed) -> float:
        """Return a value as what an ordered attribute is compared with."""
        if isinstance(kind, Categorical):
            raise InvalidQueryError(
                f"{name} must be ordered for {operator}, it is categorical; use =, <>, IN or LIKE."
            )
        if type(value) not in (int, float):
            raise InvalidQueryError(
                f"{name} must be compared with a number, got {written(value)}; write one without quotes."
            )
        if not math.isfinite(value):  # type: ignore[arg-type]
            raise InvalidQueryError(
                f"{name} must be compared with a finite number, got {value}; leave the condition out."
            )
        return value  # type: ignore[return-value]

    def columns(
        self, name: str, kind: Attribute, operator: str, other: str, other_kind: Attribute, negated: bool
    ) -> Truth:
        """Return where two columns compare so: of whole numbers in order, of labels by being equal."""
        written = f"{name} {operator} {other}"
        kinds = (kind, other_kind)
        for one, its in ((name, kind), (other, other_kind)):
            if isinstance(its, Dates) and its.by != "day" and name != other:
                raise InvalidQueryError(
                    f"{one} must be counted by day to be compared with {other if one == name else name}, got "
                    f"periods of one {its.by}, which do not say which of two dates is earlier; compare each "
                    "with dates, or give the domain dates(.., by='day')."
                )
            if not isinstance(its, IntegerRange | Categorical | Dates):
                raise InvalidQueryError(
                    f"{one} must be compared with a number on its bin edges, got {written}; bins do not say "
                    "which of two columns is larger."
                )
            if operator not in ("=", "<>") and isinstance(its, Categorical):
                raise InvalidQueryError(
                    f"{one} must be ordered for {operator}, it is categorical; use =, <>, IN or LIKE."
                )
        if any(its.other is not None if isinstance(its, Categorical) else its.clip for its in kinds):
            raise InvalidQueryError(
                f"{name} and {other} must hold single values to be compared, got one with a cell for others; "
                "compare each with values."
            )
        types = {_type_of(its) for its in kinds}
        if len(types) > 1:
            raise InvalidQueryError(
                f"{other} must hold values of the type of {name}, got {written}; compare with values."
            )
        if name == other:
            values: Any = frozenset(range(kind.size - kind.missing))
            values = values if isinstance(kind, Categorical) else compared("<", math.inf)
            nothing: Any = frozenset() if isinstance(kind, Categorical) else ()
            return true_of(name, kind, values if "=" in operator else nothing, negated)
        cells = kind.size * other_kind.size
        if cells > JOINT_CELLS:
            raise TooLargeError(
                f"a condition must tie at most {JOINT_CELLS:,} joint cells, got {cells:,} over {name}, "
                f"{other}; compare each with values."
            )
        known: dict[Any, int] = {}
        left, right = (self.values(its, known, operator) for its in kinds)
        compare = COMPARE[DENIED[operator] if negated else operator]
        held = np.zeros((kind.size, other_kind.size), np.bool_)
        held[: len(left), : len(right)] = compare(left[:, np.newaxis], right)
        return Pairs((name, other), held)

    def values(self, kind: Attribute, known: dict[Any, int], operator: str) -> Any:
        """Return a number for every code but the missing one: they compare as the values do."""
        labels = [kind.label(code) for code in range(kind.size - kind.missing)]
        if isinstance(kind, Dates):
            return np.array(labels, "datetime64[D]").astype(np.int64)
        if operator not in ("=", "<>"):
            return np.array(labels, np.int64)
        return np.array([known.setdefault(label, len(known)) for label in labels], np.int64)

    def is_null(self, node: Any, negated: bool) -> Truth:
        left = self.trees.bare(node.this)
        if type(node.expression) is self.trees.exp.Boolean and type(left) is self.trees.exp.Column:
            self.trees.kind(node.expression)
            name, kind = self.column(left)
            same = true_of(name, kind, self.equal(name, kind, [bool(node.expression.this)]), negated)
            return either([same, missing_in(name, kind, False)]) if negated else same
        if type(node.expression) is not self.trees.exp.Null:
            raise InvalidQueryError(
                f"not supported: {self.trees.text(node)}; write IS NULL, a comparison, or the column alone."
            )
        self.trees.kind(node.expression)
        if type(left) is not self.trees.exp.Column:
            raise InvalidQueryError(
                f"IS NULL must be asked of a column, got {self.trees.text(left)}; {DERIVE}."
            )
        return missing_in(*self.column(left), negated)

    def between(self, node: Any, negated: bool) -> Truth:
        orders = [(node.args.get("low"), node.args.get("high"))]
        if node.args.get("symmetric"):
            orders.append(orders[0][::-1])
        column, sides = self.trees.exp.Column, [self.trees.bare(side) for side in orders[0]]
        if any(type(side) is column for side in sides) or is_dated(self.trees.bare(node.this)):
            found = [
                (either if negated else both)(
                    self.comparison(node, node.this, operator, end, negated)
                    for operator, end in zip((">=", "<="), ends, strict=True)
                )
                for ends in orders
            ]
            return both(found) if negated else either(found)
        name, kind = self.asked_of(node, "BETWEEN")
        lines = [self.inside(name, kind, *map(self.value, ends)) for ends in orders]
        return true_of(name, kind, joined(lines), negated)

    def inside(self, name: str, kind: Attribute, *ends: Value | Timed) -> Line:
        """Return where an ordered attribute lies between two values."""
        if None in ends:
            raise InvalidQueryError(
                f"{name} must have values as ends of BETWEEN, got NULL, which never holds; write "
                f"{name} >= ..."
            )
        lines = [
            self.line(name, kind, operator, end, form="BETWEEN")
            for operator, end in zip((">=", "<="), ends, strict=True)
        ]
        return shared(lines)

    def in_list(self, node: Any, negated: bool) -> Truth:
        if is_dated(self.trees.bare(node.this)):
            listed = node.args.get("expressions") or []
            parts = [self.comparison(node, node.this, "=", entry, negated) for entry in listed]
            return both(parts) if negated else either(parts)
        name, kind = self.asked_of(node, "IN")
        values = [self.value(entry) for entry in node.args.get("expressions") or []]
        if not values:
            raise InvalidQueryError(
                f"{name} IN (...) must list values, got none; write {name} IN (value, ...)."
            )
        if None in values:
            raise InvalidQueryError(
                f"{name} IN (...) must list values, got NULL; NOT IN would never be true, write {name} IS "
                "NULL apart."
            )
        return true_of(name, kind, self.equal(name, kind, values), negated)

    def like(self, node: Any, negated: bool) -> Truth:
        name, kind = self.asked_of(node, "LIKE")
        pattern = self.value(self.trees.bare(node.expression))
        if not (isinstance(kind, Categorical) and type(kind.labels[0]) is str):
            raise InvalidQueryError(f"{name} must hold texts for LIKE, it does not; compare it with values.")
        if type(pattern) is not str:
            raise InvalidQueryError(
                f"{name} LIKE must take a text as pattern, got {written(pattern)}; write LIKE 'a%'."
            )
        if kind.other is not None:  # who knows which of the others match
            raise InvalidQueryError(
                f"{name} must hold its labels alone for LIKE, it has a cell for others; list labels by IN."
            )
        special = "\\[" if self.trees.dialect in ("tsql", "fabric") else "\\"
        if any(sign in pattern for sign in special):
            raise InvalidQueryError(
                f"{name} LIKE must take a pattern of plain signs, % and _, got {written(pattern)}; "
                "databases differ in what escapes a sign, list the labels by IN."
            )
        met = (code for code, label in enumerate(kind.labels) if _like(pattern, str(label)))
        return true_of(name, kind, frozenset(met), negated)

    def asked_of(self, node: Any, form: str) -> tuple[str, Attribute]:
        """Return the column that a condition is about."""
        left = self.trees.bare(node.this)
        if type(left) is not self.trees.exp.Column:
            if type(left).__name__ not in ("Literal", "Null", "Boolean", "Placeholder", "Neg", "Cast"):
                self.trees.kind(left)
            raise InvalidQueryError(
                f"{form} must be asked of a column, got {self.trees.text(left)}; {DERIVE}."
            )
        return self.column(left)

    # --- columns and values ------------------------------------------------------------------------------

    def column(self, node: Any) -> tuple[str, Attribute]:
        """Return a column of the domain and its kind."""
        self.trees.kind(node)
        prefix = node.args.get("table")
        name = self.trees.identifier(node.this)
        if prefix is not None and self.trees.identifier(prefix) not in self.tables:
            if not self.tables:
                raise InvalidQueryError(
                    f"columns must stand alone in a condition, got {self.trees.text(node)}; write {name}."
                )
            (own,) = self.tables
            raise InvalidQueryError(
                f"table must be {shown(own)}, got {shown(prefix.this)} in {self.trees.text(node)}; write "
                f"{own}.{name}."
            )
        if name in self.domain.names:
            return name, self.domain.attribute(name)
        if node.this.args.get("quoted") and not get_close_matches(name, self.domain.names, 1):
            raise InvalidQueryError(
                f"column must be an attribute, got {self.trees.text(node)}; string values take single "
                f"quotes: {written(name)}."
            )
        names = self.domain.names
        some = ", ".join(names[:MOST_NAMED]) + ", ..." * (len(names) > MOST_NAMED)
        quoted = any(isinstance(kind, Categorical) and name in kind.labels for _, kind in self.domain)
        remedy = f"a value takes single quotes: {written(name)}." if quoted else nearest(name, names)
        raise InvalidQueryError(f"column must be one of {some}, got {shown(name)}; {remedy}")

    def value(self, node: Any) -> Any:
        """Return a literal or a parameter: a `Value`, or `Timed`."""
        node = self.trees.bare(node)
        exp = self.trees.exp
        if type(node) is exp.Cast:
            return self.timed(node)
        if type(node) not in (exp.Literal, exp.Neg, exp.Boolean, exp.Null, exp.Placeholder):
            if type(node) is exp.Column:
                raise InvalidQueryError(
                    f"values must be literals here, got the column {self.trees.text(node)}; compare "
                    "columns by =, <, .."
                )
            self.trees.refuse_node(node)
        name = self.trees.kind(node)
        if name == "Null":
            return None
        if name == "Boolean":
            return bool(node.this)
        if name == "Placeholder":
            return self.parameter(node.this)
        if name == "Neg":
            value = self.value(node.this)
            if type(value) not in (int, float):
                raise InvalidQueryError(
                    f"a minus must stand before a number, got {self.trees.text(node)}; write the value "
                    "itself."
                )
            return -value
        text = str(node.this)
        return text if node.args.get("is_string") else _number(text)

    def timed(self, node: Any) -> Timed:
        """Return a literal of a date or a time, which the parser makes a cast."""
        to = node.args.get("to")
        form = TIMES.get(getattr(getattr(to, "this", None), "name", ""))
        if type(node.this) is not self.trees.exp.Literal or not node.this.args.get("is_string") or not form:
            self.trees.refuse_node(node)
        for part in (node, node.this, to):
            self.trees.kind(part)
        text = str(node.this.this)
        if not re.fullmatch(DATE if form == "DATE" else TIMESTAMP, text, re.ASCII):
            example = "2024-03-05" if form == "DATE" else "2024-03-05 14:30:00"
            raise InvalidQueryError(
                f"{form} must stand before a text such as '{example}', got {written(text)}; write it so."
            )
        return Timed(form, text)

    def parameter(self, name: Any) -> Value:
        if type(name) is not str or not name or name == "?":
            raise InvalidQueryError(
                "parameters must be named, got ?; write :name and pass params={'name': ...}."
            )
        if name not in self.params:
            near = get_close_matches(name, self.params, 1)
            hint = f"did you mean :{near[0]}?" if near else f"pass params={{{shown(name)}: ...}}."
            raise InvalidQueryError(f"parameter :{name} must have a value; {hint}")
        self.used.add(name)
        return self.params[name]


def _checked_params(params: Any) -> dict[str, Value]:
    """Return the parameters as plain values."""
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise InvalidParameterError(
            f"params must be a mapping of name to value, got a {type(params).__name__}."
        )
    result: dict[str, Value] = {}
    for name, value in params.items():
        if type(name) is not str:
            raise InvalidParameterError(f"params must have texts as names, got {shown(name)}; write 'name'.")
        if isinstance(value, datetime.date | np.datetime64):
            value = moment_text(value)
        plain = value.item() if isinstance(value, np.generic) else value
        if type(plain) not in (int, float, str, bool, type(None)):
            raise InvalidQueryError(
                f"parameter :{name} must be an int, float, str, bool, date or None, got a "
                f"{type(value).__name__}; "
                "for several values write one parameter each."
            )
        result[name] = _finite(plain) if type(plain) in (int, float) else plain
    return result


def _number(text: str) -> float:
    """Return a number of the text."""
    if re.fullmatch(r"[0-9]{1,400}", text):
        return _finite(int(text))
    if re.fullmatch(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", text):
        return _finite(float(text))
    raise InvalidQueryError(f"not supported: the number {shown(text)}; write it in decimal digits.")


def _finite(number: float) -> float:
    """Return a number that a float can hold; NaN has no order, and no column holds it as a value."""
    if isinstance(number, int) and abs(number) >= 2**1000:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidQueryError(
            f"numbers must be finite, got {number}; leave the condition out, or write IS NULL."
        )
    return number


def _type_of(kind: Attribute) -> type:
    """Return what the values of an attribute are, where they are single ones."""
    if isinstance(kind, Categorical):
        return type(kind.labels[0])
    return datetime.date if isinstance(kind, Dates) else int


def _like(pattern: str, text: str) -> bool:
    """Whether a text is one of LIKE's pattern: % any signs, _ any one sign."""
    place = at = 0
    star, held = -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            star, held = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            place, at = place + 1, at + 1
        elif star >= 0:
            held += 1
            place, at = star + 1, held
        else:
            return False
    return not pattern[place:].strip("%")


def bound(expression: Expression, domain: Domain) -> Query:
    """Return the query of an expression; what ties too many cells has its remedy in SQL."""
    try:
        return expression.bind(domain)
    except TooLargeError as error:
        told = str(error).replace("a + b - (a & b)", "COUNT(a) + COUNT(b) - COUNT(a AND b)")
        raise TooLargeError(told) from None
