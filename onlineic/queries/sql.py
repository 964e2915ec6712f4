"""Conditions and statements in SQL, compiled by an allow-list: what is not understood is refused.

Three layers, all needed, because a compiler that skips what it does not know answers another question: every
type of node must be listed, every argument of it that is given must be listed, and every position takes a
closed set of types. The parser is sqlglot, which moves and adds arguments between releases; `READ` holds what
is understood, and anything new falls through to a refusal. Data are never involved.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic.domain.attributes import Attribute, Binned, Categorical, IntegerRange, shown
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    MissingExtraError,
    TooLargeError,
)
from onlineic.queries.algebra import JOINT_CELLS
from onlineic.queries.expressions import Expression, one_of, weights, where
from onlineic.queries.truth import (
    Fixed,
    Pairs,
    Truth,
    both,
    cell,
    compared,
    either,
    expressed,
    joined,
    missing_in,
    shared,
    true_of,
)

LONGEST = 20_000  # characters of a statement
DEEPEST = 200  # brackets, or signs in a row
MOST_GROUPS = 10_000

# node -> its arguments; one that is given and not listed is refused
READ = {
    "Select": {"expressions", "from", "from_", "where", "group"},
    "From": {"this"},
    "Table": {"this", "alias"},
    "TableAlias": {"this"},
    "Identifier": {"this", "quoted"},
    "Where": {"this"},
    "Group": {"expressions"},
    "Alias": {"this", "alias"},
    "Star": set[str](),
    "Count": {"this", "big_int"},
    "CountIf": {"this"},
    "Sum": {"this"},
    "Avg": {"this"},
    "Filter": {"this", "expression"},
    "Case": {"ifs", "default"},
    "If": {"this", "true"},
    "Column": {"this", "table"},
    **dict.fromkeys(("And", "Or", "EQ", "NEQ", "LT", "LTE", "GT", "GTE"), {"this", "expression"}),
    "Is": {"this", "expression", "negate"},
    "Like": {"this", "expression", "negate"},
    "Between": {"this", "low", "high", "negate"},
    "In": {"this", "expressions", "negate"},
    **dict.fromkeys(("Not", "Paren", "Neg", "Placeholder"), {"this"}),
    "Null": set[str](),
    "Boolean": {"this"},
    "Literal": {"this", "is_string"},
}
OPERATORS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
DENIED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

# clauses and nodes that people write, with what to do instead
TABLE_REMEDY = "the session holds one table"
INSTEAD = {
    "joins": f"JOIN; {TABLE_REMEDY}, join before opening it (a join changes who is one record)",
    "laterals": f"LATERAL; {TABLE_REMEDY}",
    "distinct": "SELECT DISTINCT; GROUP BY lists every value of the domain, ask the counts",
    "having": "HAVING; filter the answers instead",
    "order": "ORDER BY; sort the answers instead",
    "sort": "SORT BY; sort the answers instead",
    "cluster": "CLUSTER BY; sort the answers instead",
    "limit": "LIMIT / TOP / FETCH; take the rows of the answer that you want",
    "offset": "OFFSET; take the rows of the answer that you want",
    "fetch": "LIMIT / TOP / FETCH; take the rows of the answer that you want",
    "qualify": "QUALIFY; filter the answers instead",
    "windows": "WINDOW; ask plain aggregates",
    "with": f"WITH; {TABLE_REMEDY}, ask it",
    "with_": f"WITH; {TABLE_REMEDY}, ask it",
    "into": "INTO; nothing is written, keep the answer",
    "locks": "FOR UPDATE; nothing is locked, leave it out",
    "hint": "hints; leave them out",
    "hints": "hints; leave them out",
    "options": "OPTION; leave it out",
    "sample": "TABLESAMPLE; the table is fixed",
    "pivots": "PIVOT; ask GROUP BY",
    "db": "a schema or catalogue prefix; write the session's table name alone",
    "catalog": "a schema or catalogue prefix; write the session's table name alone",
    "version": "time travel; the table is fixed",
    "when": "time travel; the table is fixed",
    "rollup": "ROLLUP; ask each grouping in a statement of its own",
    "cube": "CUBE; ask each grouping in a statement of its own",
    "grouping_sets": "GROUPING SETS; ask each grouping in a statement of its own",
    "totals": "WITH TOTALS; ask each grouping in a statement of its own",
    "all": "GROUP BY ALL; name the columns",
    "symmetric": "BETWEEN SYMMETRIC; write the smaller end first",
    "query": "subqueries; ask conditions on columns",
    "unnest": "subqueries; ask conditions on columns",
    "field": "IN without a list; write IN (value, ...)",
    "join_mark": f"JOIN; {TABLE_REMEDY}",
}
NODES_INSTEAD = {
    "Window": "window functions; ask plain aggregates",
    "Subquery": "subqueries; ask conditions on columns",
    "Select": "subqueries; ask conditions on columns",
    "Exists": "subqueries; ask conditions on columns",
    "Distinct": "DISTINCT in an aggregate; it is not a linear query",
    "TableSample": "TABLESAMPLE; the table is fixed",
    "Lateral": f"LATERAL; {TABLE_REMEDY}",
    "Unnest": f"table functions; {TABLE_REMEDY}",
    "Values": f"VALUES as a table; {TABLE_REMEDY}",
    "Tuple": "tuples; compare column by column, with AND",
    "ILike": "ILIKE; labels are matched with their case, use LIKE or IN",
    "Escape": "LIKE .. ESCAPE; list the labels by IN",
    "SimilarTo": "SIMILAR TO; list the labels by IN",
    "RegexpLike": "regular expressions; list the labels by IN",
    "NullSafeEQ": "IS NOT DISTINCT FROM; write (a = b OR a IS NULL AND b IS NULL)",
    "NullSafeNEQ": "IS DISTINCT FROM; write its cases with IS NULL",
    "Xor": "XOR; write (a AND NOT b) OR (NOT a AND b)",
    "Quantile": "QUANTILE; use session.quantile",
    "Median": "MEDIAN; it is not a linear query, use session.quantile",
    "PercentileCont": "PERCENTILE_CONT; it is not a linear query, use session.quantile",
    "Parameter": "parameters other than :name; write :name and pass params={'name': ...}",
    "SessionParameter": "parameters other than :name; write :name and pass params={'name': ...}",
    "Cube": "CUBE; ask each grouping in a statement of its own",
    "Rollup": "ROLLUP; ask each grouping in a statement of its own",
    "GroupingSets": "GROUPING SETS; ask each grouping in a statement of its own",
}
DERIVE = "derive or bin the column before the domain is built"
NESTED = "condition must be nested less deeply, got too many levels; for many values of one column use IN (...)."
ONE_SELECT = "statement must be one SELECT, got {}; no UNION, WITH, INSERT, DDL or second statement."

Form = Literal["count", "sum", "average"]
Value = int | float | str | bool | None


@final
@attrs.frozen
class Aggregate:
    """One aggregate of a statement.

    Attributes
    ----------
    name : str
        Its alias, or its text.
    form : "count", "sum" or "average"
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
    columns : tuple of (str, int)
        What SELECT lists, in order: a name, and a place among the keys, or behind them among the aggregates.
    """

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    columns: tuple[tuple[str, int], ...]


def condition(
    text: str, domain: Domain, params: Mapping[str, Value] | None = None, dialect: str | None = None
) -> Expression:
    """Return the query that counts the records for which an SQL condition is true.

    Parameters
    ----------
    text : str
        What could stand behind WHERE: comparisons of a column with a value or a column, BETWEEN, IN, LIKE,
        IS NULL, a boolean column, TRUE, FALSE, combined by AND, OR, NOT. See `docs/sql.md`.
    domain : Domain
    params : mapping, optional
        Values of the parameters `:name`: int, float, str, bool or None.
    dialect : str, optional
        As sqlglot names it, for quotes and spellings; what a comparison means does not depend on it.

    Returns
    -------
    Expression
        To be asked, and combined by ``&``, ``|`` and ``~``. Its ``~`` counts all other records; NOT does not
        count those of which the condition is unknown.

    Raises
    ------
    InvalidQueryError
        If the text is not understood, or does not fit the domain.
    TooLargeError
        If a comparison ties more than 2^22 joint cells.
    MissingExtraError
        Without the extra `onlineic[sql]`.

    Examples
    --------
    >>> from onlineic.domain import Domain
    >>> condition("age BETWEEN 30 AND 50 AND sex = 'F'", Domain.of(age=range(17, 91), sex=["F", "M"]))
    where(age=between(30, 50), sex='F')
    """
    reader = _Reader.of(domain, params, dialect)
    return _small(reader.guarded(lambda: expressed(reader.whole(text))), domain)


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
        The name that must stand behind FROM.

    Raises
    ------
    InvalidQueryError, TooLargeError, MissingExtraError
        As of `condition`.
    InvalidParameterError
        If `table` is no name.
    """
    if type(table) is not str or not table:
        raise InvalidParameterError(
            f"table must be the name that stands behind FROM, got {shown(table)}; write a text."
        )
    reader = _Reader.of(domain, params, dialect)
    return reader.guarded(lambda: reader.statement(text, table))


def _refuse(message: str) -> NoReturn:
    raise InvalidQueryError(message)


def _one_of_names(name: str, names: Iterable[str]) -> str:
    """Return the nearest of some names, or all that a message can hold."""
    folded = {known.casefold(): known for known in reversed(list(names))}
    near = get_close_matches(name.casefold()[:99], folded, 1)
    return f"did you mean {folded[near[0]]}?" if near else "see the domain."


@final
@attrs.frozen(eq=False)
class _Reader:
    """Reads sqlglot's trees over one domain."""

    domain: Domain
    params: dict[str, Value]
    dialect: str | None
    sqlglot: Any
    used: set[str] = attrs.field(factory=set)
    tables: list[str] = attrs.field(factory=list)  # names that may stand before a column

    @classmethod
    def of(cls, domain: Any, params: Any, dialect: Any) -> "_Reader":
        if type(domain) is not Domain:
            raise InvalidParameterError(f"domain must be a Domain, got a {type(domain).__name__}.")
        try:
            import sqlglot
        except ImportError:
            raise MissingExtraError(
                "sqlglot must be installed for questions in SQL; run pip install 'onlineic[sql]'."
            ) from None
        if dialect is not None:
            known = sorted(name.value for name in sqlglot.Dialects if name.value)
            if type(dialect) is not str or dialect not in known:
                raise InvalidParameterError(
                    f"dialect must be None or one of {', '.join(known)}, got {shown(dialect)}; "
                    f"{_one_of_names(str(dialect), known)}"
                )
        return cls(domain, _checked_params(params), dialect, sqlglot)

    def guarded(self, compile_: Callable[[], Any]) -> Any:
        try:
            return compile_()
        except RecursionError:
            raise InvalidQueryError(NESTED) from None

    # --- text to trees -----------------------------------------------------------------------------------

    def trees(self, text: Any, what: str, into: Any = None) -> list[Any]:
        """Return the trees of a text, one for each of its statements."""
        if type(text) is not str:
            raise InvalidQueryError(f"{what} must be a text, got a {type(text).__name__}; write SQL.")
        if len(text) > LONGEST:
            _refuse(f"{what} must have at most {LONGEST:,} characters, got {len(text):,}; ask its parts.")
        if not text.strip():
            _refuse(f"{what} must be valid SQL, got an empty text; write e.g. age >= 30.")
        glot = self.sqlglot
        try:
            dialect = glot.Dialect.get_or_raise(self.dialect)
            tokens = dialect.tokenize(text)
            self.check_depth(tokens)
            parser = dialect.parser(error_level=glot.ErrorLevel.RAISE)
            if into is not None:
                return list(parser.parse_into(into, tokens, text))
            first = tokens[0].text.upper() if tokens else ""
            if first != "SELECT" and not (first == "FROM" and self.dialect == "duckdb"):
                # others are never parsed: sqlglot would log what it makes of them
                _refuse(ONE_SELECT.format(f"one that begins with {first[:20]!r}"))
            return list(parser.parse(tokens, text))
        except (InvalidQueryError, RecursionError):
            raise
        except glot.errors.ParseError as error:
            raise InvalidQueryError(f"{what} must be valid SQL, got {_told(error)}.") from None
        except Exception:  # the parser has its own mistakes: whatever it raises, the text cannot be read
            raise InvalidQueryError(f"{what} must be valid SQL, got a text that cannot be read.") from None

    def check_depth(self, tokens: Any) -> None:
        depth = run = 0
        for token in tokens:
            kind = token.token_type.name
            depth += (kind == "L_PAREN") - (kind == "R_PAREN")
            run = run + 1 if kind in ("NOT", "DASH", "PLUS", "TILDA", "TILDE", "CASE") else 0
            if max(depth, run) > DEEPEST:
                _refuse(NESTED)

    def kind(self, node: Any) -> str:
        """Return the name of a node's type if it is read, having checked what is given to it; else refuse."""
        name = type(node).__name__
        listed = READ.get(name)
        if listed is None or type(node) is not getattr(self.sqlglot.exp, name, None):
            self.refuse_node(node)
        for argument, value in node.args.items():
            if argument not in listed and not _absent(value):
                self.refuse_argument(node, argument)
        return name

    def refuse_argument(self, node: Any, argument: str) -> NoReturn:
        name = type(node).__name__
        if name == "TableAlias" and argument == "columns":
            _refuse("not supported: renaming columns in a table alias; use the names of the domain.")
        if name == "Count" and argument == "expressions":
            _refuse("not supported: COUNT of several columns; it takes *, a column or a CASE.")
        if name == "Case" and argument == "this":
            _refuse("not supported: CASE of a value; write CASE WHEN cond THEN 1 END.")
        instead = INSTEAD.get(argument)
        if instead is None:
            instead = f"{self.text(node)} ({argument} of {name}); write the plain form"
        _refuse(f"not supported: {instead}.")

    def refuse_node(self, node: Any, remedy: str = DERIVE) -> NoReturn:
        name = type(node).__name__
        if name in NODES_INSTEAD:
            _refuse(f"not supported: {NODES_INSTEAD[name]}.")
        if isinstance(node, getattr(self.sqlglot.exp, "AggFunc", ())):
            called = self.text(node).partition("(")[0]
            _refuse(f"not supported: {called}; it is not a linear query, ask COUNT, SUM, AVG or a quantile.")
        _refuse(f"not supported: {self.text(node)}; {remedy}.")

    def text(self, node: Any) -> str:
        """Return a part of the statement as text."""
        found = self.whole_text(node)
        return found if len(found) <= 60 else found[:57] + "..."

    def whole_text(self, node: Any) -> str:
        try:
            return str(node.sql() if hasattr(node, "sql") else node)
        except Exception:  # a tree that the parser made, and cannot write
            return type(node).__name__

    # --- a statement -------------------------------------------------------------------------------------

    def statement(self, text: Any, table: str) -> Statement:
        ends = getattr(self.sqlglot.exp, "Semicolon", None)
        trees = [tree for tree in self.trees(text, "statement") if tree is not None and type(tree) is not ends]
        if len(trees) != 1:
            _refuse(ONE_SELECT.format(f"{len(trees)} statements"))
        select = trees[0]
        if type(select) is not self.sqlglot.exp.Select:
            _refuse(ONE_SELECT.format(f"a {type(select).__name__.upper()}"))
        self.kind(select)
        self.read_from(select.args.get("from_") or select.args.get("from"), table)
        keys = self.keys(select.args.get("group"))
        items = select.args.get("expressions") or []
        if not items:
            _refuse("SELECT must list aggregates, got none; write e.g. SELECT COUNT(*).")
        columns: list[tuple[str, int]] = []
        found: list[tuple[Form, str | None, Truth]] = []
        for item in items:
            name, inner = self.named(item)
            if type(inner) is self.sqlglot.exp.Column:
                column = self.column(inner)[0]
                if column not in keys:
                    _refuse(
                        f"column {column} must be in GROUP BY or in an aggregate; records are never released."
                    )
                columns.append((name or column, keys.index(column)))
                continue
            form, summed, truth = self.aggregate(inner)
            columns.append((name or self.whole_text(inner), len(keys) + len(found)))
            found.append((form, summed, truth))
        if not found:
            _refuse("SELECT must list an aggregate, got none; add COUNT(*), SUM(col) or AVG(col).")
        where_ = select.args.get("where")
        among = Fixed(True) if where_ is None else self.where(where_)
        self.check_used()
        columns[:0] = [(key, place) for place, key in enumerate(keys) if place not in dict(columns).values()]
        names = _distinct([name for name, _ in columns])
        titles = {place: name for name, (_, place) in zip(names, columns, strict=True)}
        aggregates = tuple(
            self.counting(titles[len(keys) + place], keys, form, summed, both([among, truth]))
            for place, (form, summed, truth) in enumerate(found)
        )
        return Statement(keys, aggregates, tuple((name, place) for name, (_, place) in zip(names, columns, strict=True)))

    def counting(
        self, name: str, keys: tuple[str, ...], form: Form, summed: str | None, truth: Truth
    ) -> Aggregate:
        """Return an aggregate all of whose queries can be bound: nothing of a statement is asked before."""
        found = _small(expressed(truth), self.domain)
        some = found & cell(self.domain, keys, [0] * len(keys)) if keys else found
        nobody = found.bind(self.domain).constant == 0
        if summed is not None:
            kind = self.domain.attribute(summed)
            nobody = nobody or _small(found & where({summed: ~one_of(None)} if kind.missing else {}), self.domain).bind(self.domain).constant == 0
            some = some & where({summed: weights(np.linspace(0.0, 1.0, kind.size))})
            if nobody and form == "average":
                _refuse(f"AVG must be over some records, got a condition that nobody with a value of {summed} can meet; mend it.")
        _small(some, self.domain)
        return Aggregate(name, form, summed, None if found == where() else found, nobody)

    def read_from(self, clause: Any, table: str) -> None:
        if clause is None:
            _refuse(f"statement must name its table, got no FROM; write FROM {table}.")
        self.kind(clause)
        source = clause.this
        if type(source) is not self.sqlglot.exp.Table:
            self.refuse_node(source, f"{TABLE_REMEDY}, write FROM {table}")
        if type(source.this) is not self.sqlglot.exp.Identifier:
            _refuse(f"not supported: table functions; {TABLE_REMEDY}, write FROM {table}.")
        self.kind(source)
        name = self.identifier(source.this)
        if name != table:
            _refuse(f"table must be {table!r}, got {shown(name)}; write FROM {table}.")
        alias = source.args.get("alias")
        if alias is None:
            self.tables.append(name)
            return
        self.kind(alias)
        self.tables.append(self.identifier(alias.this))

    def identifier(self, node: Any) -> str:
        if self.kind(node) != "Identifier" or type(node.this) is not str:
            self.refuse_node(node)
        return str(node.this)

    def keys(self, group: Any) -> tuple[str, ...]:
        if group is None:
            return ()
        self.kind(group)
        keys: list[str] = []
        for entry in group.args.get("expressions") or []:
            if type(entry) is self.sqlglot.exp.Literal:
                _refuse(f"not supported: GROUP BY {self.text(entry)}; name the column.")
            if type(entry) is not self.sqlglot.exp.Column:
                self.refuse_node(entry)
            name = self.column(entry)[0]
            if name in keys:
                _refuse(f"GROUP BY must list a column once, got {name} twice; remove one.")
            keys.append(name)
        if not keys:
            _refuse("GROUP BY must list columns, got none; name the columns.")
        cells = math.prod(self.domain.attribute(name).size for name in keys)
        if cells > MOST_GROUPS:
            raise TooLargeError(
                f"GROUP BY must give at most {MOST_GROUPS:,} answers, got {cells:,}; group by fewer columns, "
                "or ask for the groups of interest by WHERE."
            )
        return tuple(keys)

    def named(self, item: Any) -> tuple[str | None, Any]:
        """Return the alias of an item of SELECT, or None, and what stands under it."""
        exp = self.sqlglot.exp
        if type(item) is exp.Alias:
            self.kind(item)
            return self.identifier(item.args["alias"]), item.this
        if type(item) is exp.Star:
            _refuse(
                "SELECT must list aggregates, got *; records are never released, ask COUNT(*), SUM(col) or "
                "AVG(col)."
            )
        return None, item

    def where(self, clause: Any) -> Truth:
        if self.kind(clause) != "Where":
            self.refuse_node(clause)
        return self.truth(clause.this, negated=False)

    def aggregate(self, node: Any) -> tuple[Form, str | None, Truth]:
        """Return the form of an aggregate, its column, and which records it counts."""
        aside = "ask COUNT(*), SUM(col) or AVG(col) and compute with the answers"
        if type(node).__name__ not in ("Filter", "Count", "CountIf", "Sum", "Avg"):
            self.refuse_node(node, aside)
        name = self.kind(node)
        if name == "Filter":
            form, column, truth = self.aggregate(node.this)
            return form, column, both([truth, self.where(node.expression)])
        if name == "Count":
            return "count", None, self.count(node.this)
        if name == "CountIf":
            return "count", None, self.truth(node.this, negated=False)
        if name == "Sum" and type(node.this) is self.sqlglot.exp.Case:
            return "count", None, self.case(node.this, "SUM")
        return ("sum" if name == "Sum" else "average"), self.summed(node.this, name.upper()), Fixed(True)

    def count(self, node: Any) -> Truth:
        """Return which records COUNT counts."""
        exp = self.sqlglot.exp
        if type(node) is exp.Distinct:
            self.refuse_node(node)
        if type(node) is exp.Case:
            return self.case(node, "COUNT")
        if type(node) is exp.Star:
            self.kind(node)
            return Fixed(True)
        if type(node) is exp.Column:
            return missing_in(*self.column(node), negated=True)
        if type(node) is exp.Literal and self.is_number(node, "1"):
            return Fixed(True)
        _refuse(
            f"COUNT must take *, a column or CASE WHEN cond THEN 1 END, got {self.text(node)}; to count where "
            "a condition holds write COUNT_IF(cond)."
        )

    def case(self, node: Any, outer: str) -> Truth:
        """Return where the condition of CASE WHEN cond THEN 1 END holds."""
        self.kind(node)
        whens = node.args.get("ifs") or []
        default = node.args.get("default")
        if len(whens) != 1:
            _refuse(f"{outer}(CASE ...) must have one WHEN, got {len(whens)}; join conditions by OR.")
        self.kind(whens[0])
        if not self.is_number(whens[0].args.get("true"), "1"):
            _refuse(f"{outer}(CASE ...) must give THEN 1, got another value; write CASE WHEN cond THEN 1 END.")
        if default is not None and outer == "COUNT":
            _refuse(
                "COUNT(CASE ...) must have no ELSE, it counts every result that is not NULL; write "
                "COUNT(CASE WHEN cond THEN 1 END)."
            )
        if default is not None and not self.is_number(default, "0"):
            _refuse("SUM(CASE ...) must have ELSE 0 or none, got another value; write ELSE 0.")
        return self.truth(whens[0].this, negated=False)

    def is_number(self, node: Any, digits: str) -> bool:
        literal = type(node) is self.sqlglot.exp.Literal and self.kind(node) == "Literal"
        return literal and not node.args.get("is_string") and node.this == digits

    def summed(self, node: Any, outer: str) -> str:
        """Return the column of SUM or AVG."""
        if type(node) is not self.sqlglot.exp.Column:
            if type(node) is self.sqlglot.exp.Distinct:
                self.refuse_node(node)
            _refuse(f"{outer} must take a column, got {self.text(node)}; {DERIVE}.")
        name, kind = self.column(node)
        if isinstance(kind, Categorical):
            _refuse(f"{outer} must be over a numeric column, {name} is categorical; GROUP BY it instead.")
        if isinstance(kind, Binned) and not all(map(math.isfinite, kind.edges)):
            _refuse(
                f"{outer} must be over a column with finite bins, {name} has a bin without an end; give the "
                "domain a last edge."
            )
        if not isinstance(kind, IntegerRange | Binned):
            _refuse(f"{outer} must be over a column of numbers, {name} is none; COUNT it instead.")
        return name

    # --- a condition -------------------------------------------------------------------------------------

    def whole(self, text: Any) -> Truth:
        """Return what a condition alone says."""
        trees = [tree for tree in self.trees(text, "condition", self.sqlglot.exp.Condition) if tree is not None]
        if len(trees) != 1:
            _refuse(f"condition must be one condition, got {len(trees)}; join them by AND or OR.")
        truth = self.truth(trees[0], negated=False)
        self.check_used()
        return truth

    def check_used(self) -> None:
        for name in self.params:
            if name not in self.used:
                _refuse(f"params must be used in the text, got {shown(name)} unused; write :{name} or leave it out.")

    def truth(self, node: Any, negated: bool) -> Truth:
        """Return where a condition is certainly true; if negated, where it is certainly false."""
        exp = self.sqlglot.exp
        while type(node) in (exp.Paren, exp.Not):
            negated ^= self.kind(node) == "Not"
            node = node.this
        if type(node) is exp.Column:
            name, kind = self.column(node)
            if not (isinstance(kind, Categorical) and type(kind.labels[0]) is bool):
                _refuse(f"{name} must be boolean to stand alone; write a comparison.")
            return true_of(name, kind, frozenset([kind.code(name, True)]), negated)
        name = self.kind(node)
        if name in ("And", "Or"):
            parts = [self.truth(part, negated) for part in self.chain(node)]
            return both(parts) if (name == "And") != negated else either(parts)
        if name == "Boolean":
            return Fixed(bool(node.this) != negated)
        negated ^= bool(node.args.get("negate"))
        if name in OPERATORS:
            return self.comparison(node, OPERATORS[name], negated)
        if name == "Is":
            return self.is_null(node, negated)
        if name == "Between":
            return self.between(node, negated)
        if name == "In":
            return self.in_list(node, negated)
        if name == "Like":
            return self.like(node, negated)
        _refuse(f"condition must be true or false, got {self.text(node)}; write a comparison.")

    def chain(self, node: Any) -> Iterator[Any]:
        """Return the parts of a chain of one operator in order, however long: the parser nests it leftwards."""
        form, parts = type(node), []
        while type(node) is form:
            self.kind(node)
            parts.append(node.expression)
            node = node.this
        return reversed([*parts, node])

    def comparison(self, node: Any, operator: str, negated: bool) -> Truth:
        left, right = self.bare(node.this), self.bare(node.expression)
        column = self.sqlglot.exp.Column
        if type(left) is not column:
            left, right, operator = right, left, TURNED[operator]
        if type(left) is not column:
            for side in (node.this, node.expression):
                self.value(side)  # what is no value is refused by its own name
            _refuse(f"comparison must have a column, got {self.text(node)}; compare a column with a value.")
        name, kind = self.column(left)
        if type(right) is column:
            return self.columns(name, kind, operator, *self.column(right), negated)
        value = self.value(right)
        if value is None:
            _refuse(
                f"{name} must be compared with a value, got {self.text(node)}, which is never true; write "
                f"{name} IS NULL."
            )
        if operator in ("=", "<>"):
            return true_of(name, kind, self.equal(name, kind, [value]), negated != (operator == "<>"))
        return true_of(name, kind, compared(operator, self.number(name, kind, operator, value)), negated)

    def equal(self, name: str, kind: Attribute, values: Iterable[Value]) -> Any:
        """Return the codes, or the numbers, that are equal to one of the values."""
        if isinstance(kind, Categorical):
            return frozenset(kind.code(name, self.label(name, kind, value)) for value in values)
        lines = []
        for value in values:
            number = self.number(name, kind, "=", value)
            if (isinstance(kind, IntegerRange) or kind.integer) and number != math.floor(number):
                _refuse(f"{name} must equal an integer, got {number!r}; write a whole number.")
            lines.append(compared("=", number))
        return joined(lines)

    def label(self, name: str, kind: Categorical, value: Value) -> Value:
        """Return a value as a label of the attribute's own type."""
        own = type(kind.labels[0])
        if own is int and type(value) is float and value.is_integer():
            return int(value)
        if type(value) is own:
            return value
        wanted = {str: "a text in single quotes", int: "an integer", bool: "TRUE or FALSE"}[own]
        _refuse(
            f"{name} must be compared with {wanted}, got {_written(value)}; "
            f"write e.g. {name} = {_written(kind.labels[0])}."
        )

    def number(self, name: str, kind: Attribute, operator: str, value: Value) -> float:
        """Return a value as what an ordered attribute is compared with."""
        if isinstance(kind, Categorical):
            _refuse(f"{name} must be ordered for {operator}, it is categorical; use =, <>, IN or LIKE.")
        if not isinstance(kind, IntegerRange | Binned):
            _refuse(f"not supported: comparisons of {name} in SQL; ask it by where({name}=...).")
        if type(value) not in (int, float):
            _refuse(f"{name} must be compared with a number, got {_written(value)}; write one without quotes.")
        if not math.isfinite(value):  # type: ignore[arg-type]
            _refuse(f"{name} must be compared with a finite number, got {value}; leave the condition out.")
        return value  # type: ignore[return-value]

    def columns(
        self, name: str, kind: Attribute, operator: str, other: str, other_kind: Attribute, negated: bool
    ) -> Truth:
        """Return where two columns compare so: of whole numbers in order, of labels by being equal."""
        written = f"{name} {operator} {other}"
        kinds = (kind, other_kind)
        for one, its in ((name, kind), (other, other_kind)):
            if not isinstance(its, IntegerRange | Categorical):
                _refuse(
                    f"{one} must be compared with a number on its bin edges, got {written}; bins do not say "
                    "which of two columns is larger."
                )
            if operator not in ("=", "<>") and isinstance(its, Categorical):
                _refuse(f"{one} must be ordered for {operator}, it is categorical; use =, <>, IN or LIKE.")
        types = {int if isinstance(its, IntegerRange) else type(its.labels[0]) for its in kinds}  # type: ignore[union-attr]
        if len(types) > 1:
            _refuse(f"{other} must hold values of the type of {name}, got {written}; compare with values.")
        if name == other:
            values: Any = frozenset(range(kind.size - kind.missing))
            values = values if isinstance(kind, Categorical) else compared("<", math.inf)
            nothing: Any = frozenset() if isinstance(kind, Categorical) else ()
            return true_of(name, kind, values if "=" in operator else nothing, negated)
        cells = kind.size * other_kind.size
        if cells > JOINT_CELLS:
            raise TooLargeError(
                f"a condition must tie at most {JOINT_CELLS:,} joint cells, got {cells:,} over {name}, {other}; "
                "compare each with values."
            )
        known: dict[Any, int] = {}
        left, right = (self.values(its, known, operator) for its in kinds)
        compare = {
            "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
            ">=": np.greater_equal,
        }[DENIED[operator] if negated else operator]  # fmt: skip
        held = np.zeros((kind.size, other_kind.size), np.bool_)
        held[: len(left), : len(right)] = compare(left[:, np.newaxis], right)
        return Pairs((name, other), held)

    def values(self, kind: Attribute, known: dict[Any, int], operator: str) -> Any:
        """Return a number for every code but the missing one, which compare as the values of two columns do."""
        labels = [kind.label(code) for code in range(kind.size - kind.missing)]
        if operator not in ("=", "<>"):
            return np.array(labels, np.int64)
        return np.array([known.setdefault(label, len(known)) for label in labels], np.int64)

    def is_null(self, node: Any, negated: bool) -> Truth:
        left = self.bare(node.this)
        if type(node.expression) is not self.sqlglot.exp.Null:
            _refuse(f"not supported: {self.text(node)}; write IS NULL, a comparison, or the column alone.")
        self.kind(node.expression)
        if type(left) is not self.sqlglot.exp.Column:
            _refuse(f"IS NULL must be asked of a column, got {self.text(left)}; {DERIVE}.")
        return missing_in(*self.column(left), negated)

    def between(self, node: Any, negated: bool) -> Truth:
        name, kind = self.asked_of(node, "BETWEEN")
        ends = [self.value(node.args.get(end)) for end in ("low", "high")]
        if None in ends:
            _refuse(f"{name} must have values as ends of BETWEEN, got NULL, which never holds; write {name} >= ...")
        low, high = (self.number(name, kind, "BETWEEN", end) for end in ends)
        return true_of(name, kind, shared([compared(">=", low), compared("<=", high)]), negated)

    def in_list(self, node: Any, negated: bool) -> Truth:
        name, kind = self.asked_of(node, "IN")
        values = [self.value(entry) for entry in node.args.get("expressions") or []]
        if not values:
            _refuse(f"{name} IN (...) must list values, got none; write {name} IN (value, ...).")
        if None in values:
            _refuse(
                f"{name} IN (...) must list values, got NULL; NOT IN would never be true, write {name} IS "
                "NULL apart."
            )
        return true_of(name, kind, self.equal(name, kind, values), negated)

    def like(self, node: Any, negated: bool) -> Truth:
        name, kind = self.asked_of(node, "LIKE")
        pattern = self.value(self.bare(node.expression))
        if not (isinstance(kind, Categorical) and type(kind.labels[0]) is str):
            _refuse(f"{name} must hold texts for LIKE, it does not; compare it with values.")
        if type(pattern) is not str:
            _refuse(f"{name} LIKE must take a text as pattern, got {_written(pattern)}; write LIKE 'a%'.")
        special = "\\[" if self.dialect in ("tsql", "fabric") else "\\"
        if any(sign in pattern for sign in special):
            _refuse(
                f"{name} LIKE must take a pattern of plain signs, % and _, got {_written(pattern)}; databases "
                "differ in what escapes a sign, list the labels by IN."
            )
        met = (code for code, label in enumerate(kind.labels) if _like(pattern, str(label)))
        return true_of(name, kind, frozenset(met), negated)

    def asked_of(self, node: Any, form: str) -> tuple[str, Attribute]:
        """Return the column that a condition is about."""
        left = self.bare(node.this)
        if type(left) is not self.sqlglot.exp.Column:
            if type(left).__name__ not in ("Literal", "Null", "Boolean", "Placeholder", "Neg"):
                self.kind(left)
            _refuse(f"{form} must be asked of a column, got {self.text(left)}; {DERIVE}.")
        return self.column(left)

    # --- columns and values ------------------------------------------------------------------------------

    def bare(self, node: Any) -> Any:
        """Return what stands in brackets."""
        while type(node) is self.sqlglot.exp.Paren:
            self.kind(node)
            node = node.this
        return node

    def column(self, node: Any) -> tuple[str, Attribute]:
        """Return a column of the domain and its kind."""
        self.kind(node)
        prefix = node.args.get("table")
        name = self.identifier(node.this)
        if prefix is not None and self.identifier(prefix) not in self.tables:
            if not self.tables:
                _refuse(f"columns must stand alone in a condition, got {self.text(node)}; write {name}.")
            (own,) = self.tables
            _refuse(f"table must be {own!r}, got {prefix.this!r} in {self.text(node)}; write {own}.{name}.")
        if name in self.domain.names:
            return name, self.domain.attribute(name)
        if node.this.args.get("quoted") and not get_close_matches(name, self.domain.names, 1):
            _refuse(
                f"column must be an attribute, got {self.text(node)}; string values take single quotes: "
                f"{_written(name)}."
            )
        names = self.domain.names
        some = ", ".join(names[:MOST_NAMED]) + ", ..." * (len(names) > MOST_NAMED)
        _refuse(f"column must be one of {some}, got {shown(name)}; {_one_of_names(name, names)}")

    def value(self, node: Any) -> Value:
        """Return a literal or a parameter."""
        node = self.bare(node)
        exp = self.sqlglot.exp
        if type(node) not in (exp.Literal, exp.Neg, exp.Boolean, exp.Null, exp.Placeholder):
            if type(node) is exp.Column:
                _refuse(f"values must be literals here, got the column {self.text(node)}; compare columns by =, <, ..")
            self.refuse_node(node)
        name = self.kind(node)
        if name == "Null":
            return None
        if name == "Boolean":
            return bool(node.this)
        if name == "Placeholder":
            return self.parameter(node.this)
        if name == "Neg":
            value = self.value(node.this)
            if type(value) not in (int, float):
                _refuse(f"a minus must stand before a number, got {self.text(node)}; write the value itself.")
            return -value  # type: ignore[operator]
        text = str(node.this)
        return text if node.args.get("is_string") else _number(text)

    def parameter(self, name: Any) -> Value:
        if type(name) is not str or not name or name == "?":
            _refuse("parameters must be named, got ?; write :name and pass params={'name': ...}.")
        if name not in self.params:
            near = get_close_matches(name, self.params, 1)
            hint = f"did you mean :{near[0]}?" if near else f"pass params={{{name!r}: ...}}."
            _refuse(f"parameter :{name} must have a value; {hint}")
        self.used.add(name)
        return self.params[name]


MOST_NAMED = 12  # columns that a message names


def _absent(value: Any) -> bool:
    """Whether an argument of a node was not given."""
    return value is None or value is False or (type(value) in (list, tuple, dict, str) and not value)


def _told(error: Any) -> str:
    """Return where and why a text is no SQL, in the parser's words."""
    for one in error.errors:
        described = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", str(one.get("description") or "an error"))
        missing = re.match(r"Required \w+: '?\w+'? missing for (\w+)", described)
        described = f"something is missing after {missing[1]}" if missing else described.rstrip(". ")
        return f"an error at line {one.get('line')}, column {one.get('col')}: {described[:120]}"
    return "a text that cannot be read"


def _checked_params(params: Any) -> dict[str, Value]:
    """Return the parameters as plain values."""
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise InvalidParameterError(f"params must be a mapping of name to value, got a {type(params).__name__}.")
    result: dict[str, Value] = {}
    for name, value in params.items():
        if type(name) is not str:
            raise InvalidParameterError(f"params must have texts as names, got {shown(name)}; write 'name'.")
        plain = value.item() if isinstance(value, np.generic) else value
        if type(plain) not in (int, float, str, bool, type(None)):
            _refuse(
                f"parameter :{name} must be an int, float, str, bool or None, got a {type(value).__name__}; "
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
    _refuse(f"not supported: the number {shown(text)}; write it in decimal digits.")


def _finite(number: float) -> float:
    """Return a number that a float can hold; NaN has no order, and no column holds it as a value."""
    if isinstance(number, int) and abs(number) >= 2**1000:
        number = math.inf
    if not math.isfinite(number):
        _refuse(f"numbers must be finite, got {number}; leave the condition out, or write IS NULL.")
    return number


def _written(value: Value) -> str:
    """Return a value as SQL writes it, cut to a few words."""
    if value is None or type(value) is bool:
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]  # type: ignore[index]
    if type(value) is str:
        text = value if len(value) <= 40 else value[:37] + "..."
        return "'" + text.replace("'", "''") + "'"
    return repr(value)


def _like(pattern: str, text: str) -> bool:
    """Whether a text is one of LIKE's pattern: % any signs, _ any one sign; never slower than their product."""
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


def _distinct(names: list[str]) -> list[str]:
    """Return the names, those that were there before with their number."""
    result: list[str] = []
    for name in names:
        number, found = 2, name
        while found in result:
            found, number = f"{name} ({number})", number + 1
        result.append(found)
    return result


def _small(expression: Expression, domain: Domain) -> Expression:
    """Return an expression that can be bound; what ties too many cells has its remedy in SQL."""
    try:
        expression.bind(domain)
    except TooLargeError as error:
        told = str(error).replace("a + b - (a & b)", "COUNT(a) + COUNT(b) - COUNT(a AND b)")
        raise TooLargeError(told) from None
    return expression
