"""SQL text as trees of sqlglot, and the allow-list by which they are read: what is not understood is refused.

Three layers, all needed, because a compiler that skips what it does not know answers another question: every
type of node must be listed, every argument of it that is given must be listed, and every position takes a
closed set of types. sqlglot moves and adds arguments between releases; what is new is refused.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, NoReturn, final

import attrs

from onlineic.ask.sql_shapes import Shapes, kind_of
from onlineic.errors import InvalidParameterError, InvalidQueryError, MissingExtraError, shown

LONGEST = 20_000  # characters of a statement
DEEPEST = 200  # brackets, or signs in a row

# functions of one date
DATE_PARTS = (
    "Year", "Quarter", "Month", "Week", "WeekOfYear", "Day", "DayOfMonth", "DayOfYear", "DayOfWeek",
    "DayOfWeekIso", "Dayname", "Monthname", "Hour", "Minute",
)  # fmt: skip

# functions of two columns
PAIRED = (
    "Corr",
    "CovarPop",
    "CovarSamp",
    "RegrSlope",
    "RegrIntercept",
    "RegrR2",
    "RegrCount",
    "RegrAvgx",
    "RegrAvgy",
)

# node -> its arguments; one that is given and not listed is refused
READ = {
    "Select": {"expressions", "from", "from_", "where", "group", "having", "order", "limit", "offset"},
    "From": {"this"},
    "Table": {"this", "alias"},
    "TableAlias": {"this"},
    "Identifier": {"this", "quoted"},
    "Where": {"this"},
    "Group": {"expressions"},
    "Having": {"this"},
    "Order": {"expressions"},
    "Ordered": {"this", "desc", "nulls_first"},
    "Limit": {"expression"},
    "Offset": {"expression"},
    "Alias": {"this", "alias"},
    "Star": set[str](),
    "Count": {"this", "big_int"},
    "CountIf": {"this", "zero_on_all_null"},  # Snowflake: a count of nothing is 0 here
    "Sum": {"this"},
    "Avg": {"this"},
    "VariancePop": {"this"},
    **{name: {"this"} for name in ("Stddev", "StddevPop", "StddevSamp", "Variance", "Median")},
    **{name: {"this", "expression"} for name in PAIRED},
    "Quantile": {"this", "quantile"},
    "ApproxQuantile": {"this", "quantile"},
    "PercentileCont": {"this", "expression"},
    "PercentileDisc": {"this", "expression"},
    "WithinGroup": {"this", "expression"},
    "Window": {"this", "partition_by", "over"},
    "Subquery": {"this"},
    "Filter": {"this", "expression"},
    **{name: {"this", "expression"} for name in ("Add", "Sub", "Mul", "Mod", "Nullif")},
    "Div": {"this", "expression", "typed", "safe"},  # a quotient is never cut to a whole number here
    "IntDiv": {"this", "expression"},
    **{name: {"this"} for name in ("Abs", "Sqrt", "Floor")},
    "Round": {"this", "decimals"},
    "Coalesce": {"this", "expressions"},
    **{name: {"this", "expressions", "ignore_nulls"} for name in ("Greatest", "Least")},
    "Extract": {"this", "expression"},
    **{name: {"this"} for name in DATE_PARTS},
    "DateTrunc": {"unit", "this"},
    "TimestampTrunc": {"this", "unit"},
    "TimeToStr": {"this", "format"},
    "Anonymous": {"this", "expressions"},  # by name: date_part, strftime, quantile_cont, quantile_disc
    "Case": {"ifs", "default"},
    "If": {"this", "true", "false"},
    "Column": {"this", "table"},
    **{name: {"this", "expression"} for name in ("And", "Or", "EQ", "NEQ", "LT", "LTE", "GT", "GTE")},
    **{name: {"this", "expression"} for name in ("NullSafeEQ", "NullSafeNEQ")},
    "Is": {"this", "expression", "negate"},
    "Like": {"this", "expression", "negate"},
    "Between": {"this", "low", "high", "negate", "symmetric"},
    "In": {"this", "expressions", "negate"},
    **{name: {"this"} for name in ("Not", "Paren", "Neg", "Placeholder")},
    "Null": set[str](),
    "Boolean": {"this"},
    "Literal": {"this", "is_string"},
    "Cast": {"this", "to"},  # DATE '2024-03-05' and the like, which are casts of literals
    "DataType": {"this", "nested"},
}
# types of such a literal; dialects have names of their own for a time without a zone
TIMES: dict[str, Literal["DATE", "TIMESTAMP", "TIMESTAMPTZ"]] = {
    "DATE": "DATE",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMPNTZ": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMPTZ",
}
# clauses and nodes that people write, with what to do instead
TABLE_REMEDY = "the session holds one table"
INSTEAD = {
    "joins": f"JOIN; {TABLE_REMEDY}, join before opening it (a join changes who is one record)",
    "laterals": f"LATERAL; {TABLE_REMEDY}",
    "distinct": "SELECT DISTINCT; GROUP BY lists every value of the domain: write SELECT col, COUNT(*) FROM "
    "t GROUP BY col",
    "sort": "SORT BY; write ORDER BY",
    "cluster": "CLUSTER BY; write ORDER BY",
    "qualify": "QUALIFY; write HAVING, or filter the answers instead",
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
    "query": "subqueries; ask conditions on columns",
    "unnest": "subqueries; ask conditions on columns",
    "field": "IN without a list; write IN (value, ...)",
    "join_mark": f"JOIN; {TABLE_REMEDY}",
}
NEAR_THE_END = "one record decides it, and no noise of a useful size hides that; ask QUANTILE_CONT(col, %s)"
IN_QUOTES = 'write names with blanks in double quotes, "tenure months" >= 12.'
NODES_INSTEAD = {
    "Window": "window functions; of the total write SUM(COUNT(*)) OVER (), of ranks ORDER BY and LIMIT",
    "Subquery": "subqueries; ask conditions on columns",
    "Select": "subqueries; ask conditions on columns",
    "Exists": "subqueries; ask conditions on columns",
    "Distinct": "DISTINCT in an aggregate; one record decides whether a value occurs. How often each does, "
    "ask by SELECT col, COUNT(*) FROM t GROUP BY col; of a table of Unit(person=..) COUNT(*) counts "
    "persons, weighed by their rows",
    "TableSample": "TABLESAMPLE; the table is fixed",
    "Fetch": "FETCH; write LIMIT and a number",
    "Lateral": f"LATERAL; {TABLE_REMEDY}",
    "Unnest": f"table functions; {TABLE_REMEDY}",
    "Values": f"VALUES as a table; {TABLE_REMEDY}",
    "Tuple": "tuples; compare column by column, with AND",
    "ILike": "ILIKE; labels are matched with their case, use LIKE or IN",
    "Escape": "LIKE .. ESCAPE; list the labels by IN",
    "SimilarTo": "SIMILAR TO; list the labels by IN",
    "RegexpLike": "regular expressions; list the labels by IN",
    **dict.fromkeys(("CurrentDate", "CurrentTimestamp", "CurrentTime"), "the time of now; write the date"),
    "Xor": "XOR; write (a AND NOT b) OR (NOT a AND b)",
    "Max": f"MAX; {NEAR_THE_END % 0.99}",
    "Min": f"MIN; {NEAR_THE_END % 0.01}",
    "Parameter": "parameters other than :name; write :name and pass params={'name': ...}",
    "SessionParameter": "parameters other than :name; write :name and pass params={'name': ...}",
    "Cube": "CUBE; ask each grouping in a statement of its own",
    "Rollup": "ROLLUP; ask each grouping in a statement of its own",
    "GroupingSets": "GROUPING SETS; ask each grouping in a statement of its own",
}
DERIVE = "derive or bin the column before the domain is built"
WORDS = {"AMP": "AND", "PIPE": "OR"}  # Python's and pandas' signs
EXAMPLES = {
    "condition": "age >= 30 AND sex = 'F'",
    "statement": "SELECT COUNT(*) FROM t WHERE age >= 30",
}
NESTED = (
    "condition must be nested less deeply, got too many levels; for many values of one column use IN (...)."
)
ONE_SELECT = "statement must be one SELECT, got {}; no UNION, WITH, INSERT, DDL or second statement."


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the nearest of some names, or all that a message can hold."""
    folded = {known.casefold(): known for known in reversed(list(names))}
    near = get_close_matches(name.casefold()[:99], folded, 1)
    return f"did you mean {folded[near[0]]}?" if near else "see the domain."


_SHAPES = Shapes()


@final
@attrs.frozen(eq=False)
class Trees:
    """Reads texts of one dialect, and the nodes of their trees."""

    dialect: str | None
    sqlglot: Any

    @classmethod
    def of(cls, dialect: Any) -> "Trees":
        """Return the reader of a dialect, None for sqlglot's own.

        Raises:
            InvalidParameterError: If there is no such dialect.
        """
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
                    f"{nearest(shown(dialect), known)}"
                )
        return cls(dialect, sqlglot)

    @property
    def exp(self) -> Any:
        """The types of sqlglot's nodes."""
        return self.sqlglot.exp

    @contextlib.contextmanager
    def statement(self, text: Any) -> Iterator[Any]:
        """Yield the tree of a text that is one SELECT; it is another text's later."""
        tokens = self.tokens(text, "statement")
        first = tokens[0].text.upper()
        if first != "SELECT":  # others are never parsed: sqlglot would log what it makes of them
            raise InvalidQueryError(
                f"statement must be one SELECT, got one that begins with {shown(first[:20])}; write SELECT "
                "COUNT(*) FROM t WHERE condition, or ask a condition alone by session.answer(text)."
            )
        if any(kind_of(token.token_type) == "SEMICOLON" for token in tokens):
            raise InvalidQueryError(ONE_SELECT.format("two of them"))
        with self.parsed(tokens, text, "statement", None) as tree:
            if type(tree) is not self.exp.Select:
                raise InvalidQueryError(ONE_SELECT.format(f"a {type(tree).__name__.upper()}"))
            yield tree

    @contextlib.contextmanager
    def condition(self, text: Any) -> Iterator[Any]:
        """Yield the tree of a text that is one condition; it is another text's later."""
        tokens = self.tokens(text, "condition")
        if tokens[0].text.upper() == "SELECT":
            raise InvalidQueryError(
                "condition must be what stands after WHERE, got a SELECT statement; ask it by "
                "session.sql(text)."
            )
        if any(kind_of(token.token_type) == "SEMICOLON" for token in tokens):
            raise InvalidQueryError("condition must be one condition, got two; join them by AND or OR.")
        with self.parsed(tokens, text, "condition", self.exp.Condition) as tree:
            yield tree

    def parsed(self, tokens: list[Any], text: str, what: str, into: Any) -> AbstractContextManager[Any]:
        """Return the tree of tokens, of texts of one shape parsed once."""
        return _SHAPES.tree(
            tokens, (self.dialect, what), lambda changed: self.tree(changed, text, what, into)
        )

    def tokens(self, text: Any, what: str) -> list[Any]:
        """Return the tokens of a text, without semicolons at its end."""
        if type(text) is not str:
            raise InvalidQueryError(f"{what} must be a text, got a {type(text).__name__}; write SQL.")
        if len(text) > LONGEST:
            raise InvalidQueryError(
                f"{what} must have at most {LONGEST:,} characters, got {len(text):,}; ask its parts."
            )
        try:
            tokens = list(self.sqlglot.Dialect.get_or_raise(self.dialect).tokenize(text))
        except Exception:  # an open quote, or a mistake of the parser's own
            raise InvalidQueryError(
                f"{what} must be valid SQL, got a text that cannot be read; close its quotes and comments."
            ) from None
        while tokens and kind_of(tokens[-1].token_type) == "SEMICOLON":
            tokens.pop()
        if not tokens:
            raise InvalidQueryError(f"{what} must be valid SQL, got an empty text; write e.g. age >= 30.")
        for token in tokens:
            if (kind := kind_of(token.token_type)) in WORDS:
                raise InvalidQueryError(f"not supported: {token.text}; join conditions by {WORDS[kind]}.")
        self.check_depth(tokens)
        return tokens

    def tree(self, tokens: list[Any], text: str, what: str, into: Any) -> Any:
        """Return the one tree of tokens."""
        glot = self.sqlglot
        try:
            parser = glot.Dialect.get_or_raise(self.dialect).parser(error_level=glot.ErrorLevel.RAISE)
            trees = parser.parse(tokens, text) if into is None else parser.parse_into(into, tokens, text)
            (tree,) = trees
        except RecursionError:
            raise
        except glot.errors.ParseError as error:
            raise InvalidQueryError(
                f"{what} must be valid SQL, got {_told(error)}; "
                + (IN_QUOTES if "`" in text else f"write e.g. {EXAMPLES[what]}.")
            ) from None
        except Exception:  # the parser has its own mistakes: whatever it raises, the text cannot be read
            raise InvalidQueryError(
                f"{what} must be valid SQL, got a text that cannot be read; write e.g. {EXAMPLES[what]}."
            ) from None
        return tree

    def check_depth(self, tokens: list[Any]) -> None:
        """Raise where brackets or signs nest so deeply that the parser could not."""
        depth = run = 0
        for token in tokens:
            kind = kind_of(token.token_type)
            depth += (kind == "L_PAREN") - (kind == "R_PAREN")
            run = run + 1 if kind in ("NOT", "DASH", "PLUS", "TILDA", "TILDE", "CASE") else 0
            if depth > DEEPEST or run > DEEPEST:
                raise InvalidQueryError(NESTED)

    def kind(self, node: Any) -> str:
        """Return the name of a node's type if it is read, having checked what is given to it; else refuse."""
        form: Any = type(node)
        name, listed = _read(form, self.exp)
        if listed is None:
            self.refuse_node(node)
        for argument, value in node.args.items():
            if argument not in listed and not _absent(value):
                self.refuse_argument(node, argument)
        return name

    def refuse_argument(self, node: Any, argument: str) -> NoReturn:
        name = type(node).__name__
        if name == "TableAlias" and argument == "columns":
            raise InvalidQueryError(
                "not supported: renaming columns in a table alias; use the names of the domain."
            )
        if name == "Count" and argument == "expressions":
            raise InvalidQueryError(
                "not supported: COUNT of several columns; it takes *, a column or a CASE."
            )
        if name == "Case" and argument == "this":
            raise InvalidQueryError("not supported: CASE of a value; write CASE WHEN cond THEN 1 END.")
        instead = INSTEAD.get(argument)
        if instead is None:
            instead = f"{self.text(node)} ({argument} of {name}); write the plain form"
        raise InvalidQueryError(f"not supported: {instead}.")

    def refuse_node(self, node: Any, remedy: str = DERIVE) -> NoReturn:
        name = type(node).__name__
        if name in NODES_INSTEAD:
            raise InvalidQueryError(f"not supported: {NODES_INSTEAD[name]}.")
        if isinstance(node, getattr(self.exp, "AggFunc", ())):
            called = self.text(node).partition("(")[0]
            raise InvalidQueryError(
                f"not supported: {called}; it is not a linear query, ask COUNT, SUM, AVG or VAR_POP."
            )
        raise InvalidQueryError(f"not supported: {self.text(node)}; {remedy}.")

    def text(self, node: Any) -> str:
        """Return a part of the statement as text."""
        found = self.whole_text(node)
        return found if len(found) <= 60 else found[:57] + "..."

    def whole_text(self, node: Any) -> str:
        try:
            if not hasattr(node, "sql"):
                return str(node)
            renamed = node.find(self.exp.VariancePop) is not None  # else no copy is made of it
            return str((node.transform(self._as_accepted) if renamed else node).sql())
        except Exception:  # a tree that the parser made, and cannot write
            return type(node).__name__

    def _as_accepted(self, node: Any) -> Any:
        """Return a part under the name that statements and messages give it: sqlglot has another for it."""
        if type(node).__name__ != "VariancePop":
            return node
        return self.exp.Anonymous(this="VAR_POP", expressions=[node.this])

    def bare(self, node: Any) -> Any:
        """Return what stands in brackets."""
        while type(node) is self.exp.Paren:
            self.kind(node)
            node = node.this
        return node

    def identifier(self, node: Any) -> str:
        if self.kind(node) != "Identifier" or type(node.this) is not str:
            self.refuse_node(node)
        return str(node.this)


@cache
def _read(kind: type, exp: Any) -> tuple[str, set[str] | None]:
    """Return the name of a type of nodes, and the arguments that are read of it; None where it is refused."""
    name = kind.__name__
    return name, READ.get(name) if kind is getattr(exp, name, None) else None


def _absent(value: Any) -> bool:
    """Whether an argument of a node was not given."""
    return value is None or value is False or (type(value) in (list, tuple, dict, str) and not value)


def _told(error: Any) -> str:
    """Return where and why a text is no SQL, in the parser's words."""
    for one in error.errors:
        described = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", str(one.get("description") or "an error"))
        missing = re.match(r"Required \w+: '?\w+'? missing for (\w+)", described)
        described = f"something is missing after {missing[1]}" if missing else described.rstrip(". ")
        described = described.replace(
            "Invalid expression / Unexpected token", "a word that does not fit here"
        )
        described = re.sub(r"^Expecting (\S+)$", r"a \1 is missing", described)
        return f"an error at line {one.get('line')}, column {one.get('col')}: {described[:120]}"
    return "a text that cannot be read"
