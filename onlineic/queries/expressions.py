"""What an analyst writes: queries as data, before they meet a domain.

An expression is symbolic, immutable, hashable and printable; `bind` checks it against a domain and returns
the canonical `Query`. Data are never involved, and a Python function is never accepted: run on records it
could leak through state, time or exceptions.
"""

import datetime
import keyword
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.attributes import LARGEST, Attribute, Categorical, Label
from onlineic.domain.columns import plain
from onlineic.domain.dates import moment_text, names_time
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import InvalidQueryError, TooLargeError, checked_integer, shown
from onlineic.queries.algebra import JOINT_CELLS, Joint, intersection, peeled, settled
from onlineic.queries.cuts import check_written, is_long, long_axes
from onlineic.queries.query import GRID_BITS, Query, canonical, conjunction
from onlineic.slips import public

MOST_PARTS = 2**16  # of a chain of one operator
DEEPEST = 100  # operators inside each other: Python's stack holds them, beside the caller's own frames


@final
@attrs.frozen
class Condition:
    """What one attribute must satisfy; combine conditions on one attribute with ``&``, ``|`` and ``~``."""

    form: Literal["interval", "one_of", "weights", "not", "or", "and"]
    parts: tuple[Any, ...] = attrs.field(eq=repr)  # repr tells True from 1
    depth: int = attrs.field(default=0, eq=False, repr=False)  # operators inside each other

    def __invert__(self) -> "Condition":
        return self.parts[0] if self.form == "not" else Condition("not", (self,), _deeper(self.depth))

    def __or__(self, other: Any) -> "Condition":
        return one_condition("or", [self, _condition(other)])

    def __and__(self, other: Any) -> "Condition":
        return one_condition("and", [self, _condition(other)])

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a condition has no truth value: combine conditions with & | ~, not with and, or, not."
        )

    def __repr__(self) -> str:
        if self.form == "interval":
            ends = self.parts[:2]
            low, high = (f"float('{end}')" if _infinite(end) else repr(end) for end in ends)
            if self.parts[2]:
                return f"between({low}, {high})"
            if self.parts[1] == math.inf:
                return f"at_least({low})"
            return f"below({high})" if self.parts[0] == -math.inf else f"span({low}, {high})"
        if self.form == "not":
            return f"~{self.parts[0]!r}"
        if self.form in ("or", "and"):
            return f"({(' | ' if self.form == 'or' else ' & ').join(map(repr, self.parts))})"
        shown = ", ".join(map(repr, self.parts))
        return f"weights([{shown}])" if self.form == "weights" else f"one_of({shown})"

    def codes(self, name: str, attribute: Attribute) -> tuple[int, int] | Floats:
        """Return the satisfied codes as a half-open range, or as weights in [0, 1] per code."""
        if self.form == "interval":
            if isinstance(attribute, Categorical):
                raise InvalidQueryError(
                    f"{name} must be ordered for a range, got labels without order; write one_of(...)."
                )
            return attribute.interval(name, *self.parts)
        if self.form == "one_of":
            if len(self.parts) == 1:
                code = attribute.code(name, self.parts[0])
                return code, code + 1
            check_written(attribute.size)
            values = np.zeros(attribute.size)
            values[[attribute.code(name, label) for label in self.parts]] = 1.0
            return values
        if self.form == "weights":
            if len(self.parts) != attribute.size:
                raise InvalidQueryError(
                    f"weights of {name} must have shape ({attribute.size},), got ({len(self.parts)},); "
                    "give one for each of its values."
                )
            return np.array(self.parts)
        if self.form == "and":
            given = [_checked(part).codes(name, attribute) for part in self.parts]
            ranges = [one for one in given if isinstance(one, tuple)]
            if len(ranges) == len(given) and is_long(attribute):
                low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
                return low, max(low, high)
        check_written(attribute.size)
        either, product = self.form == "or", np.ones(attribute.size)  # a | b = ~(~a & ~b)
        for part in self.parts:  # one by one: a chain may be long
            held = _checked(part).codes(name, attribute)
            if either and isinstance(held, tuple):
                product[held[0] : held[1]] = 0.0
            elif either or self.form == "not":
                product *= 1.0 - _as_array(held, attribute.size)
            else:
                product *= _as_array(held, attribute.size)
        return 1.0 - product if either else product


@public
def between(low: Any, high: Any) -> Condition:
    """Return the condition low <= value <= high: closed at both ends, like SQL BETWEEN.

    The ends are numbers, or dates for an attribute of dates: objects or texts such as "2024-03", and a date
    holds all the time that it names, so that `between("2024-01", "2024-06")` ends with June.

    Ends that cross are met by nobody, as in SQL and pandas: such a query is the constant 0, answered exactly
    and free. Both ends must still lie in the domain.
    """
    return _interval("between", low, high, closed=True)


@public
def span(low: Any, high: Any) -> Condition:
    """Return the condition low <= value < high; met by nobody where low >= high."""
    return _interval("span", low, high, closed=False)


@public
def at_least(low: Any) -> Condition:
    """Return the condition value >= low."""
    return _interval("at_least", low, math.inf, closed=False)


@public
def below(high: Any) -> Condition:
    """Return the condition value < high."""
    return _interval("below", -math.inf, high, closed=False)


@public
def one_of(*labels: Label) -> Condition:
    """Return the condition that the value is one of the labels (None: the missing cell)."""
    if not labels:
        raise InvalidQueryError("one_of must list one or more labels, got none; write one_of('a', 'b').")
    return Condition("one_of", tuple(map(_label, labels)))


@public
def weights(values: Iterable[float]) -> Condition:
    """Return a weight in [0, 1] for every code of the attribute, in code order."""
    array = _checked_weights(values)
    if array.ndim != 1:
        raise InvalidQueryError(
            f"weights must have shape (size of the attribute,), got {array.shape}; write dense(..) for "
            "weights of all cells."
        )
    return Condition("weights", tuple(array.tolist()))


@final
@attrs.frozen
class Expression:
    """A query as written, before it meets a domain; combine with ``&``, ``|`` and ``~``."""

    form: Literal["where", "joint", "dense", "not", "and", "or"]
    parts: tuple[Any, ...] = attrs.field(eq=repr)
    shape: tuple[int, ...] = ()  # of a dense or joint array
    depth: int = attrs.field(default=0, eq=False, repr=False)  # operators inside each other
    # as it was bound last: a derived question asks, bounds and restates the same expressions
    _last: "tuple[Any, Domain, int, Query] | None" = attrs.field(
        default=None, init=False, eq=False, repr=False
    )

    def __invert__(self) -> "Expression":
        return self.parts[0] if self.form == "not" else Expression("not", (self,), depth=_deeper(self.depth))

    def __and__(self, other: Any) -> "Expression":
        return one_query("and", [self, _expression(other)])

    def __or__(self, other: Any) -> "Expression":
        return one_query("or", [self, _expression(other)])

    def __bool__(self) -> NoReturn:
        raise TypeError("a query has no truth value: combine queries with & | ~, not with and, or, not.")

    def __repr__(self) -> str:
        if self.form == "where":
            if all(name.isidentifier() and not keyword.iskeyword(name) for name, _ in self.parts):
                return f"where({', '.join(f'{name}={_shown(c)}' for name, c in self.parts)})"
            return f"where({{{', '.join(f'{name!r}: {_shown(c)}' for name, c in self.parts)}}})"
        if self.form in ("dense", "joint"):
            import hashlib  # of a repr alone: imported with it

            *names, array = self.parts
            digest = hashlib.sha256(array).hexdigest()[:8]
            shown = ", ".join([*map(repr, names), f"<{' x '.join(map(str, self.shape))} weights, {digest}>"])
            return f"{self.form}({shown})"
        if self.form == "not":
            return f"~{self.parts[0]!r}"
        return f"({(' | ' if self.form == 'or' else ' & ').join(map(repr, self.parts))})"

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that it names, sorted; of a dense query none, though it asks of all."""
        found, left = set[str](), [self]
        while left:
            one = left.pop()
            if one.form == "where":
                found.update(name for name, _ in one.parts)
            elif one.form == "joint":
                found.update(one.parts[:-1])
            elif one.form != "dense":
                left += one.parts
        return tuple(sorted(found))

    def bind(self, domain: Domain, grid_bits: int = GRID_BITS) -> "Query":
        """Return the canonical query over a domain, its weights rounded to 2^-grid_bits.

        Args:
            domain: Public; data are never looked at.
            grid_bits: In [0, 20]. Finest grid allowed; 0/1 queries use 0 bits whatever it is.

        Raises:
            InvalidQueryError: If the expression does not fit the domain.
            TooLargeError: If a condition ties more than 2^22 joint cells.
        """
        if type(grid_bits) is not int or not 0 <= grid_bits <= GRID_BITS:
            grid_bits = checked_integer("grid_bits", grid_bits, at_least=0, at_most=GRID_BITS)
        check_domain(domain)
        last = getattr(self, "_last", None)  # of an expression that was pickled by an earlier version
        if last is None or last[0] is not self.parts or last[1] is not domain or last[2] != grid_bits:
            last = self.parts, domain, grid_bits, self._bound(domain, grid_bits)
            object.__setattr__(self, "_last", last)
        return last[3]

    def _bound(self, domain: Domain, grid_bits: int) -> "Query":
        try:
            if self.form == "where":  # the common case: no algebra
                found = intervals(self, domain)
                query = None if found is None else conjunction(domain, found)
                return query or canonical(domain, False, _where_factors(domain, self.parts), grid_bits)
            plain = _of_conditions(self, domain) if long_axes(domain) else None
            if plain is not None:
                return canonical(domain, *plain, grid_bits)
            complement, joint = settled(*_form(self, domain))
        except RecursionError:
            raise TooLargeError(
                f"a query must nest at most {DEEPEST} operators, got more; combine flat with one operator."
            ) from None
        return canonical(domain, complement, joint, grid_bits)


@public
def where(
    conditions: Mapping[str, "Condition | Label | np.generic | datetime.date"] | None = None,
    /,
    **more: "Condition | Label | np.generic | datetime.date",
) -> Expression:
    """Return the query "the fraction of records that satisfy every condition".

    Args:
        conditions, **more: Attribute -> a label (None: the missing cell) or a condition made by `between`,
            `span`, `at_least`, `below`, `one_of`, `weights`. Names that are no identifiers go into the
            mapping.

    Examples:
        >>> where(age=between(30, 50), sex="F")
        where(age=between(30, 50), sex='F')
    """
    if conditions is not None and not isinstance(conditions, Mapping):
        text = ", or ask the text alone: answer(text)" * isinstance(conditions, str)
        raise InvalidQueryError(
            f"query must be data (conditions by attribute), got a {type(conditions).__name__}; write "
            f"where(attribute=condition){text}."
        )
    given = conditions or {}
    for name in given:
        if name in more:
            raise InvalidQueryError(
                f"an attribute must have one condition, got two for {shown(name)}; join them by &."
            )
        if not isinstance(name, str):
            raise InvalidQueryError(f"attribute must be a name, got a {type(name).__name__}; write its name.")
    return Expression("where", tuple((name, _condition(part)) for name, part in {**given, **more}.items()))


@public
def dense(values: Any) -> Expression:
    """Return the query with one weight in [0, 1] per cell, shape (|X|,) or the domain's shape."""
    array = _checked_weights(values)
    return Expression("dense", (array.tobytes(),), array.shape)


def joint(names: Sequence[str], values: Any) -> Expression:
    """Return the query with one weight in [0, 1] for every combination of codes of these attributes."""
    array = _checked_weights(values)
    return Expression("joint", (*names, array.tobytes()), array.shape)


def intervals(expression: Expression, domain: Domain) -> list[tuple[int, int, int]] | None:
    """Return (axis, low, high) of every condition of a conjunction, or None where one is no interval.

    Raises:
        InvalidQueryError: If a condition does not fit the domain.
    """
    found, attributes = [], domain.attributes
    for name, condition in expression.parts:
        axis = domain.axis(name)
        if type(condition) is not Condition:
            _checked(condition)  # refuses
        part = condition.codes(name, attributes[axis])
        if type(part) is not tuple or len(part) != 2:
            return None
        found.append((axis, part[0], part[1]))
    return found


def _where_factors(domain: Domain, parts: Sequence[tuple[str, Condition]]) -> dict[tuple[int, ...], Any]:
    result: dict[tuple[int, ...], Any] = {}
    for name, condition in parts:
        axis = domain.axis(name)
        result[(axis,)] = _checked(condition).codes(name, domain.attributes[axis])
    return result


def _of_conditions(expression: Expression, domain: Domain) -> tuple[bool, dict[tuple[int, ...], Any]] | None:
    """Return (complement, factors) of conditions that all hold, or not all; None of any other query.

    Ranges stay ranges: of a long attribute no weight is written for each code.
    """
    if expression.form == "not":
        inner = _of_conditions(_expression(expression.parts[0]), domain)
        return None if inner is None else (not inner[0], inner[1])
    wheres = expression.parts if expression.form == "and" else (expression,)
    held: dict[tuple[int, ...], Any] = {}
    for one in wheres:
        if _expression(one).form != "where":
            return None
        for axes, part in _where_factors(domain, one.parts).items():
            known = held.get(axes, part)
            if isinstance(known, tuple) and isinstance(part, tuple):
                low = max(known[0], part[0])
                held[axes] = low, max(low, min(known[1], part[1]))
            else:
                size = domain.shape[axes[0]]
                held[axes] = _as_array(known, size) * _as_array(part, size) if axes in held else part
    return False, held


def _checked(condition: Any) -> Condition:
    """Return a condition if it is one: a subclass could name other codes than its attribute has."""
    if type(condition) is not Condition:
        raise InvalidQueryError(
            "a condition must be a label, None, between(..) or one_of(..), got a "
            f"{type(condition).__name__}; write it with them."
        )
    return condition


def _form(expression: Expression, domain: Domain) -> tuple[bool, Joint]:
    """Return (complement, factors over disjoint axes) of an expression tree."""
    _expression(expression)
    if expression.form == "where":
        parts = _where_factors(domain, expression.parts).items()
        return False, {axes: _as_array(part, domain.shape[axes[0]]) for axes, part in parts}
    if expression.form == "dense":
        return False, _dense_factors(domain, expression)
    if expression.form == "joint":
        return False, _joint_factors(domain, expression)
    if expression.form == "not":
        complement, joint = _form(expression.parts[0], domain)
        return not complement, joint
    either = expression.form == "or"  # a | b = ~(~a & ~b)
    forms = (
        (complement ^ either, joint) for complement, joint in (_form(p, domain) for p in expression.parts)
    )
    complement, joint = intersection(domain, forms)
    return complement ^ either, joint


def _dense_factors(domain: Domain, expression: Expression) -> Joint:
    if expression.shape not in ((domain.size,), domain.shape):
        raise InvalidQueryError(
            f"weights must have shape ({domain.size},) or {domain.shape}, one for each cell, got "
            f"{expression.shape}; write where(name=weights([..])) for weights of one attribute."
        )
    if domain.size > JOINT_CELLS:
        raise TooLargeError(f"a dense query must have at most {JOINT_CELLS:,} cells, got {domain.size:,}.")
    array = np.frombuffer(bytes(expression.parts[0])).reshape(domain.shape)  # nobody can change a copy
    return peeled(tuple(range(len(domain.shape))), array)


def _joint_factors(domain: Domain, expression: Expression) -> Joint:
    *names, array = expression.parts
    axes = [domain.axis(name) for name in names]
    shape = tuple(domain.shape[axis] for axis in axes)
    if len(set(axes)) < len(axes) or expression.shape != shape:
        raise InvalidQueryError(
            f"weights must have shape {shape}, one axis for each of {', '.join(names)}, got "
            f"{expression.shape}; list each attribute once, and its weights in the order of its values."
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    weights = np.frombuffer(bytes(array)).reshape(shape).transpose(order)
    return peeled(tuple(axes[place] for place in order), np.ascontiguousarray(weights))


def _as_array(codes: tuple[int, int] | Floats, size: int) -> Floats:
    if not isinstance(codes, tuple):
        return codes
    check_written(size)
    result = np.zeros(size)
    result[codes[0] : codes[1]] = 1.0
    return result


def _condition(value: Any) -> Condition:
    return value if type(value) is Condition else Condition("one_of", (_label(value),))


def _label(value: Any) -> Label:
    """Return a label as a plain value of a type that attributes can have; nothing else passes."""
    value = _plain(value)
    kind = type(value)
    number = (kind is int and abs(value) <= 2 * LARGEST) or (kind is float and math.isfinite(value))
    if number or kind is str or kind is bool or value is None:
        return value  # type: ignore[no-any-return]
    raise InvalidQueryError(
        "a condition must be a label, None, between(..) or one_of(..), got "
        f"{shown(value) if kind in (int, float) else f'a {kind.__name__}'}; "
        f"{_for_labels(value)}, for missing values None."
    )


def _for_labels(value: Any) -> str:
    """Return what to write in place of what is often taken for a condition."""
    if isinstance(value, range) and value.step == 1:
        return f"for a range write span({value.start}, {value.stop})"
    if isinstance(value, tuple) and len(value) == 2:
        return "for a range write between(..), for several labels one_of(...)"
    if isinstance(value, slice):
        return "for a range write span(..) or between(..)"
    if isinstance(value, list | tuple) and value:
        return "for several labels write one_of(*labels), for a range between(..)"
    return "for several labels write one_of(...)"


def one_condition(form: Literal["or", "and"], given: Sequence[Condition]) -> Condition:
    """Return the union or the intersection of one or more conditions."""
    return given[0] if len(given) == 1 else Condition(form, *_chain(form, given))


def one_query(form: Literal["or", "and"], given: Sequence[Expression]) -> Expression:
    """Return the union or the intersection of one or more queries."""
    if len(given) == 1:
        return given[0]
    parts, depth = _chain(form, given)
    return Expression(form, parts, depth=depth)


def _chain(form: str, given: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
    """Return the parts of a chain of one operator, flat, and how deep operators are inside each other.

    Long chains need no deep recursion, and a chain that is built at once takes time in its length.
    """
    parts: list[Any] = []
    depth = 0
    for one in given:
        parts.extend(one.parts if one.form == form else (one,))
        depth = max(depth, one.depth if one.form == form else _deeper(one.depth))
    if len(parts) > MOST_PARTS:
        raise TooLargeError(
            f"a query must combine at most {MOST_PARTS:,} conditions, got {len(parts):,}; write "
            "one_of(*labels) for many labels, weights(..) for many ranges."
        )
    return tuple(parts), depth


def _deeper(depth: int) -> int:
    """Return the depth of an operator around another."""
    if depth >= DEEPEST:
        raise TooLargeError(
            f"a query must nest at most {DEEPEST} operators, got more; combine flat with one operator."
        )
    return depth + 1


def _expression(value: Any) -> Expression:
    if type(value) is not Expression:  # a subclass could bring its own way to bind
        raise InvalidQueryError(
            f"a query must be combined with a query, got a {type(value).__name__}; write where(...)."
        )
    return value


def _interval(name: str, low: Any, high: Any, *, closed: bool) -> Condition:
    low, high = _plain(low), _plain(high)
    for end in (low, high):
        if not (type(end) is float and end == end) and not (type(end) is int and abs(end) <= 2 * LARGEST):
            if type(end) is not str or not names_time(end):
                raise InvalidQueryError(
                    f"{name} must have numbers or dates as ends, got {shown(end)}; {_for_end(end)}."
                )
            other = low if end is high else high
            if type(other) is not str and not _infinite(other):
                raise InvalidQueryError(
                    f"{name} must have two numbers or two dates as ends, got {shown(low)} and {shown(high)}; "
                    "write both alike."
                )
    if (_infinite(low) and low > 0) or (_infinite(high) and high < 0):
        raise InvalidQueryError(
            f"{name} must have a finite end, got {shown(low)} and {shown(high)}; write a number."
        )
    return Condition("interval", (low, high, closed))


def _for_end(end: Any) -> str:
    if end is None:
        return "write at_least(..) or below(..) for one end alone"
    return "write one_of(...) for labels" if type(end) is str else "write a number, or a date as '2024-03'"


def _infinite(end: Any) -> bool:
    return type(end) is float and math.isinf(end)


def _plain(value: Any) -> Any:
    """Return numpy's scalars as Python's, and dates as their texts."""
    if isinstance(value, (str, int, float)):  # most are: asked first
        return plain(value)
    text = moment_text(value)
    return plain(value) if text is None else text


def _shown(condition: Condition) -> str:
    if condition.form == "one_of" and len(condition.parts) == 1:
        return repr(condition.parts[0])
    return repr(condition)


def _checked_weights(values: Any) -> Floats:
    """Return a private copy of weights in [0, 1]; nothing else passes."""
    if isinstance(values, np.ma.MaskedArray) or callable(values):
        raise InvalidQueryError(
            f"query must be data (a plain array of weights), got a {type(values).__name__}; write "
            "where(attribute=condition), or an array of numpy."
        )
    try:
        array = np.array(values)  # a copy first, then the checks: the caller may change his array later
    except Exception:  # whatever the object raises: it is no data
        raise InvalidQueryError(
            "weights must be an array of numbers, got a ragged or other sequence; give one number a value."
        ) from None
    if array.dtype.kind not in "fiub" or array.size == 0 or array.ndim == 0:
        raise InvalidQueryError(
            f"weights must be a non-empty array of numbers, got dtype {array.dtype} and shape {array.shape}; "
            "give one number in [0, 1] a value."
        )
    array = np.ascontiguousarray(array, dtype=np.float64)
    bad = ~((array >= 0.0) & (array <= 1.0))  # NaN is bad
    if bad.any():
        index = int(np.argmax(bad))
        raise InvalidQueryError(
            f"weights must lie in [0, 1], got weights[{index}]={shown(array.item(index))}; "
            f"{'write rescaled(...)' if np.isfinite(array).all() else 'give every value a finite one'}."
        )
    return array
