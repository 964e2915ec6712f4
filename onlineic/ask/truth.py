"""Conditions in SQL's three-valued logic, as the expressions that they are.

A comparison is true, false or, of a missing value, unknown; records count for which the whole condition is
true. NOT is pushed down to the comparisons by De Morgan, which holds in this logic too, so that every part
here stands for the records for which it is certainly true: AND is their intersection, OR their union, and the
missing cell is in none but that of IS NULL.

What is asked of one ordered attribute is a set of half-open pieces of the real line (of dates: microseconds)
until it meets the attribute: a bin or a period that it covers in part is refused, never rounded.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, final

import attrs
import numpy as np

from onlineic.domain import Attribute, Binned, Categorical, Dates, Domain, IntegerRange
from onlineic.domain.dates import moment_written
from onlineic.domain.edges import edge_at
from onlineic.errors import InvalidQueryError
from onlineic.queries.expressions import (
    Condition,
    Expression,
    at_least,
    below,
    between,
    joint,
    one_condition,
    one_of,
    one_query,
    span,
    where,
)

Cut = tuple[float, int]  # just below a number (0), or just above it (1)
Line = tuple[tuple[Cut, Cut], ...]  # disjoint pieces from a cut to a cut, in order
LOWEST, HIGHEST = (-math.inf, 0), (math.inf, 0)
ALL: Line = ((LOWEST, HIGHEST),)


@final
@attrs.frozen
class Fixed:
    """A condition that holds for everybody, or for nobody."""

    value: bool


@final
@attrs.frozen
class Held:
    """The values of one attribute for which a condition is true.

    Args:
        values: Line of an ordered attribute, frozenset of codes of another.
        missing: Whether records without a value count.
    """

    name: str
    kind: Attribute
    values: Any
    missing: bool = False


@final
@attrs.frozen(eq=False)
class Pairs:
    """The pairs of values of two attributes for which a comparison is true: bool array over their codes."""

    names: tuple[str, str]
    held: np.ndarray[Any, np.dtype[np.bool_]]


@final
@attrs.frozen(eq=False)
class Both:
    """Every part holds."""

    parts: tuple["Truth", ...]


@final
@attrs.frozen(eq=False)
class Either:
    """Some part holds."""

    parts: tuple["Truth", ...]


Truth = Fixed | Held | Pairs | Both | Either


# --- sets of numbers -------------------------------------------------------------------------------------


def compared(operator: str, number: float) -> Line:
    """Return the numbers x with x = number, or with another of the operators <>, <, <=, >, >= for =."""
    under, over = (number, 0), (number, 1)
    pieces: dict[str, Line] = {
        "=": ((under, over),),
        "<>": ((LOWEST, under), (over, HIGHEST)),
        "<": ((LOWEST, under),),
        "<=": ((LOWEST, over),),
        ">": ((over, HIGHEST),),
        ">=": ((under, HIGHEST),),
    }
    return pieces[operator]


def compared_stretch(operator: str, start: int, end: int) -> Line:
    """Return the instants that compare so with [start, end), or, if the two are one, with this instant.

    Those before a stretch are less, those inside are equal.
    """
    if start == end:
        return compared(operator, start)
    before, behind = (start, 0), (end, 0)
    pieces: dict[str, Line] = {
        "=": ((before, behind),),
        "<>": ((LOWEST, before), (behind, HIGHEST)),
        "<": ((LOWEST, before),),
        "<=": ((LOWEST, behind),),
        ">": ((behind, HIGHEST),),
        ">=": ((before, HIGHEST),),
    }
    return pieces[operator]


def joined(lines: Iterable[Line]) -> Line:
    """Return the union."""
    result: list[tuple[Cut, Cut]] = []
    for low, high in sorted(piece for line in lines for piece in line):
        if result and low <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        elif low < high:
            result.append((low, high))
    return tuple(result)


def others(line: Line) -> Line:
    """Return the complement."""
    ends = [LOWEST, *(cut for piece in line for cut in piece), HIGHEST]
    return tuple((low, high) for low, high in zip(ends[::2], ends[1::2], strict=True) if low < high)


def shared(lines: Iterable[Line]) -> Line:
    """Return the intersection."""
    return others(joined(map(others, lines)))


# --- conditions ------------------------------------------------------------------------------------------


def true_of(name: str, kind: Attribute, values: Any, negated: bool) -> Truth:
    """Return where "the value is one of these" is true, or its negation: of a missing value neither is."""
    if negated and isinstance(kind, Categorical):
        values = frozenset(range(kind.size - kind.missing)) - values
    elif negated:
        values = others(values)
    return Held(name, kind, values)


def missing_in(name: str, kind: Attribute, negated: bool) -> Truth:
    """Return where "the value is missing" is true, or its negation: one of both always is."""
    if not kind.missing:
        return Fixed(negated)
    values: Any = frozenset() if isinstance(kind, Categorical) else ()
    held = Held(name, kind, values, missing=True)
    return true_of(name, kind, values, negated=True) if negated else held


def both(parts: Iterable[Truth]) -> Truth:
    """Return the conjunction; conditions on one attribute become one."""
    return _combined(parts, Both, absorbing=False)


def either(parts: Iterable[Truth]) -> Truth:
    """Return the disjunction; conditions on one attribute become one."""
    return _combined(parts, Either, absorbing=True)


def _combined(parts: Iterable[Truth], form: type[Both] | type[Either], absorbing: bool) -> Truth:
    flat: list[Truth] = []
    for part in parts:
        flat += part.parts if isinstance(part, form) else (part,)
    of_one: dict[str, list[Held]] = {}
    rest: list[Truth] = []
    for part in flat:
        if isinstance(part, Fixed):
            if part.value == absorbing:
                return part
        elif isinstance(part, Held):
            of_one.setdefault(part.name, []).append(part)
        else:
            rest.append(part)
    merged: list[Truth] = []
    for group in of_one.values():
        held = _merged(group, absorbing)
        if _known(held) == absorbing:
            return Fixed(absorbing)
        if _known(held) is None:
            merged.append(held)
    found = (*merged, *rest)
    if not found:
        return Fixed(not absorbing)
    return found[0] if len(found) == 1 else form(found)


def _merged(group: Sequence[Held], union: bool) -> Held:
    first, values = group[0], [held.values for held in group]
    if len(group) == 1 and (isinstance(first.kind, Categorical) or _is_run(first.values)):
        return first
    missing = (any if union else all)(held.missing for held in group)
    if isinstance(first.kind, Categorical):
        return attrs.evolve(first, values=reduce(or_ if union else and_, values), missing=missing)
    return attrs.evolve(first, values=joined(values) if union else shared(values), missing=missing)


def _is_run(line: Line) -> bool:
    """Return whether a line is one piece, which has no other form."""
    return len(line) == 1 and line[0][0] < line[0][1]


def _known(held: Held) -> bool | None:
    """Return True for everybody, False for nobody, None for some."""
    if not held.values and not held.missing:
        return False
    if isinstance(held.kind, Categorical):
        whole = len(held.values) == held.kind.size - held.kind.missing
    else:
        whole = held.values == ALL
    return True if whole and held.missing == held.kind.missing else None


# --- their expressions -----------------------------------------------------------------------------------


def expressed(truth: Truth) -> Expression:
    """Return the query that counts the records for which a condition is true.

    Raises:
        InvalidQueryError: If it covers a bin or a period in part.
    """
    found = _expressed(truth)
    if isinstance(found, bool):
        return where() if found else ~where()
    return found


def _expressed(truth: Truth) -> Expression | bool:
    if isinstance(truth, Fixed):
        return truth.value
    if isinstance(truth, Held):
        found = _condition(truth)
        return found if isinstance(found, bool) else where({truth.name: found})
    if isinstance(truth, Pairs):
        return joint(truth.names, truth.held)
    absorbing = isinstance(truth, Either)
    conditions: dict[str, Condition] = {}
    terms: list[Expression] = []
    for part in truth.parts:
        if not absorbing and isinstance(part, Held):  # a conjunction is written as one
            held = _condition(part)
            if isinstance(held, Condition):
                conditions[part.name] = held
                continue
            term: Expression | bool = held
        else:
            term = _expressed(part)
        if not isinstance(term, bool):
            terms.append(term)
        elif term == absorbing:
            return absorbing
    if conditions:
        terms.insert(0, where(conditions))
    if not terms:
        return not absorbing
    return one_query("or" if absorbing else "and", terms)


def _condition(held: Held) -> Condition | bool:
    """Return the condition on one attribute, or whether it is met by all or by none."""
    kind = held.kind
    if isinstance(kind, Categorical):
        runs = [(code, code + 1) for code in sorted(held.values)]
    elif held.values in ((), ALL):
        runs = [(0, kind.size - kind.missing)] if held.values else []
    elif isinstance(kind, IntegerRange):
        _check_inside(held.name, kind, held.values, kind.start, kind.stop)
        runs = _whole(held.values, kind.start, kind.stop)
    elif isinstance(kind, Binned):
        _check_inside(held.name, kind, held.values, kind.edges[0], kind.edges[-1])
        runs = _bins(held.name, kind, held.values)
    else:
        runs = _periods(held.name, kind, held.values)
    if held.missing:
        runs.append((kind.size - 1, kind.size))
    count = sum(stop - first for first, stop in runs)
    if count in (0, kind.size):
        return bool(count)
    return of_codes(kind, runs)


def of_codes(kind: Attribute, runs: Sequence[tuple[int, int]]) -> Condition:
    """Return the condition that the code is in one of these half-open runs: in order, some but not all."""
    if isinstance(kind, Categorical):
        codes = [code for first, stop in runs for code in range(first, stop)]
        if 2 * len(codes) <= kind.size:
            return one_of(*map(kind.label, codes))
        held = set(codes)
        return ~one_of(*(kind.label(code) for code in range(kind.size) if code not in held))
    parts: list[Condition] = []
    labels: list[Any] = []
    last = kind.size - kind.missing
    for first, stop in runs:
        if first >= last:
            labels.append(None)
        elif isinstance(kind, Binned):
            parts.append(_edges(kind, first, stop))
        elif stop - first == 1:
            labels.append(kind.label(first))
        else:
            parts.append(between(kind.label(first), kind.label(stop - 1)))
    return one_condition("or", [*parts, one_of(*labels)] if labels else parts)


def _check_inside(name: str, kind: IntegerRange | Binned, line: Line, start: float, end: float) -> None:
    """Raise if a condition looks into the ends of a kind that clips: they hold all the values beyond.

    Of whole numbers a cut stands where the next one begins: <= 24 is < 25.
    """
    if not kind.clip:
        return
    whole = isinstance(kind, IntegerRange) or kind.integer
    for cut in (cut for piece in line for cut in piece if math.isfinite(cut[0])):
        if not (start, 0) < (_whole_cut(cut) if whole else cut) < (end, 0):
            last = "not beyond" if isinstance(kind, IntegerRange) else "below"
            raise InvalidQueryError(
                f"{name} must be cut above {_number(start)} and {last} "
                f"{_number(end - isinstance(kind, IntegerRange))}, whose cells hold what lies outside "
                f"(clip=True), got {_number(cut[0])}; cut inside."
            )


def _edges(kind: Binned, first: int, stop: int) -> Condition:
    low, high = kind.edges[first // kind.cells], kind.edges[stop // kind.cells]
    if high == math.inf:
        return at_least(low)
    return below(high) if low == -math.inf else span(low, high)


def _whole(line: Line, start: int, stop: int) -> list[tuple[int, int]]:
    """Return the codes of the whole numbers of a line inside [start, stop)."""
    runs: list[tuple[int, int]] = []
    for low, high in line:
        first, last = (min(max(_next(cut, start, stop), start), stop) - start for cut in (low, high))
        if runs and first <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(last, runs[-1][1]))
        elif first < last:
            runs.append((first, last))
    return [run for run in runs if run[0] < run[1]]


def _next(cut: Cut, start: int, stop: int) -> int:
    """Return the first whole number above a cut."""
    value, above = cut
    if math.isinf(value):
        return start if value < 0 else stop
    return math.floor(value) + 1 if above else math.ceil(value)


def _bins(name: str, kind: Binned, line: Line) -> list[tuple[int, int]]:
    """Return the bins of a line; its pieces are apart, so that an end inside a bin cuts this bin."""
    line = joined([tuple((_at_edge(kind, low), _at_edge(kind, high)) for low, high in line)])
    if kind.integer:
        line = joined([tuple((_whole_cut(low), _whole_cut(high)) for low, high in line)])
    runs = [(_edge(name, kind, low, high), _edge(name, kind, high, low)) for low, high in line]
    return [(kind.cells * first, kind.cells * stop) for first, stop in runs if first < stop]


def _at_edge(kind: Binned, cut: Cut) -> Cut:
    """Return a cut at the edge that its number is, but for what float arithmetic made of it."""
    at = edge_at(kind.edges, cut[0])
    return cut if at is None else (kind.edges[at], cut[1])


def _whole_cut(cut: Cut) -> Cut:
    value, above = cut
    if math.isinf(value):
        return cut
    return (math.floor(value) + 1 if above else math.ceil(value)), 0


def _edge(name: str, kind: Binned, cut: Cut, other: Cut) -> int:
    """Return how many bins lie below a cut at an edge or outside of all bins."""
    edges, (value, above) = kind.edges, cut
    if cut <= (edges[0], 0):
        return 0
    if value >= edges[-1]:
        return len(edges) - 1
    place = bisect_left(edges, value)
    if edges[place] == value and not above:
        return place
    place = bisect_right(edges, value)
    low, high = _number(edges[place - 1]), _number(edges[place])
    if value == other[0] and math.isfinite(value):
        example = " AND ".join(
            f"{name} {sign} {_number(edge)}"
            for sign, edge in ((">=", edges[place - 1]), ("<", edges[place]))
            if math.isfinite(edge)
        )
        raise InvalidQueryError(
            f"{name} must be asked by a range on bin edges, got the single number {_number(value)}; "
            f"write e.g. {example}."
        )
    if above:
        raise InvalidQueryError(
            f"{name} must be cut with < or >= at a bin edge (its bins are [{_number(edges[0])}, "
            f"{_number(edges[1])}), ...), got <=, >, <> or BETWEEN at {_number(value)}; the edges beside it "
            f"are {low} and {high}"
            f"{'' if kind.ends else ', or declare integer=True if the column holds whole numbers'}."
        )
    raise InvalidQueryError(
        f"{name} must be cut at a bin edge, got {_number(value)}; the nearest edges are {low} and {high}."
    )


def _periods(name: str, kind: Dates, line: Line) -> list[tuple[int, int]]:
    """Return the periods of a line, which must cut where one begins."""
    runs = [(_begun(name, kind, low), _begun(name, kind, high)) for low, high in line]
    return [run for run in runs if run[0] < run[1]]


def _begun(name: str, kind: Dates, cut: Cut) -> int:
    """Return how many periods lie before a cut where one begins, or outside of all of them."""
    value, above = cut
    count = kind.size - kind.missing
    first, end = kind.begins(0), kind.begins(count)
    if kind.clip and math.isfinite(value) and not (first, 0) < cut < (end, 0):
        raise InvalidQueryError(
            f"{name} must be cut after {moment_written(first)} and before {moment_written(end)}, whose cells "
            f"hold what lies outside (clip=True), got {moment_written(int(value))}; cut inside."
        )
    if cut <= (first, 0):
        return 0
    if value >= end:
        return count
    instant = int(value)
    code = kind.holding(instant)
    begins = kind.begins(code)
    if begins == instant and not above:
        return code
    low, high = moment_written(begins), moment_written(kind.begins(code + 1))
    raise InvalidQueryError(
        f"{name} must be cut where one {kind.by} begins, got "
        f"{'<=, >, =, <> or BETWEEN at the instant ' * above}{moment_written(instant)}; the nearest edges "
        f"are {low} and {high}, to be asked as {name} >= '{low}' AND {name} < '{high}'."
    )


def _number(value: float) -> str:
    """Return a number as SQL writes it, without a fraction that is zero."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def cell(domain: Domain, names: Sequence[str], codes: Sequence[int]) -> Expression:
    """Return the query that counts the records with these codes of these attributes."""
    kinds = [domain.attribute(name) for name in names]
    return where(
        {
            name: of_codes(kind, [(code, code + 1)])
            for name, kind, code in zip(names, kinds, codes, strict=True)
            if kind.size > 1
        }
    )
