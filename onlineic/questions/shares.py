"""Rates: which part of the records that meet one condition also meet another, by group or not.

Proof: docs/theory/queries.md, 1.11.
"""

import itertools
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.display.frames import free_name
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidQueryError, shown
from onlineic.queries.expressions import Expression, where
from onlineic.queries.groupings import of_cases
from onlineic.queries.marginals import Key
from onlineic.questions.groups import Groups, checked_where, of_made
from onlineic.questions.keys import GroupKeys
from onlineic.questions.linear import (
    FLOATS,
    AnsweringLinear,
    Found,
    Where,
    asked_together,
    check_answering,
    checked_condition,
    event_of,
    for_its_probability,
    known_error,
    narrowing,
    too_few,
)
from onlineic.questions.means import LEAST, Derived, Made, Parts, between_ends, derived, worked_out

NOBODY = Made(math.nan, 0.0, 0.0, 0.0, 0.0, 0.0, own=0.0, joint=0.0)  # of a group that nobody can be in


@final
@attrs.frozen(eq=False)
class Rate:
    """A rate as a quotient: who is counted, and beside them the rest, or all of whom they are a part.

    Attributes:
        met: Meets both conditions.
        beside: Who meets the second one alone, or all who meet it; None where the number of all is known.
        whole: Whether it is all of them.
    """

    met: Expression
    beside: Expression | None
    whole: bool = False

    @property
    def asks(self) -> list[Expression]:
        """What is asked."""
        return [self.met] if self.beside is None else [self.met, self.beside]

    def worked_out(self, aggregate: str, n: int, parts: Parts) -> Made:
        """Return the rate of what was asked: a/(a + b) of both sides, a/t of a part and its whole, or a.

        With errors of at most e_a and e_b it is off by at most max(e_a, e_b)/(a + b), as a mean is, and with
        e_a and e_t by at most (e_a + e_t)/t.
        """
        values, bounds, errors = parts
        errors = errors or [math.nan] * len(values)
        share, off, most = 1.0, 0.0, bounds[0]
        slopes: tuple[float, ...] = (1.0,)
        if self.whole:
            share, off, most = values[1], bounds[1], bounds[0] + bounds[1]
        elif self.beside is not None:
            share, off, most = sum(values), sum(bounds), max(bounds)
        few = self.beside is not None and not share > 2.0 * (off if self.whole else most)
        if n * share < LEAST:
            nobody = share == off == 0.0  # whatever the data
            return Made(math.nan, 0.0 if nobody else math.inf, 0.0, share, off)
        value = min(max(values[0] / share, 0.0), 1.0)
        bound = min(most / share, max(value, 1.0 - value))
        bound += FLOATS if bound > 0.0 else 0.0
        if self.beside is not None:
            slopes = (1.0, value) if self.whole else (1.0 - value, value)
        expected = math.hypot(*(slope * error for slope, error in zip(slopes, errors, strict=True) if slope))
        expected = between_ends(value, 0.0, 1.0, expected / share)
        if few and math.isnan(expected):
            return Made(math.nan, math.inf, 0.0, share, off)
        return Made(value, math.inf if few else bound, 0.0, share, off, expected, few and math.isfinite(off))


def share(
    session: AnsweringLinear, cond: Any, where: Where = None, by: Key | Iterable[Key] | None = None
) -> Derived | Groups:
    """Return which part of the records that meet a condition also meet another one.

    Two questions are asked: who meets both, and who meets the second one alone; one of all records. By group
    it is one cross table if the first condition is about one attribute, two if it is a conjunction, else two
    questions a group. Arguments and errors: `Answering.share`.
    """
    check_answering(session)
    domain = session.domain
    among = checked_where(domain, where)
    counted = _counted(domain, cond)
    name = f"share({shown(counted, 100)}{'' if among is None else f', {shown(among, 100)}'})"
    narrow = narrowing(domain, among)
    if narrow is not None and narrow.bind(domain).constant == 0:
        raise InvalidQueryError(
            f"where must be a condition that some records can meet, got {shown(among, 100)}; widen it."
        )
    if by is not None:
        return _by_group(session, name, counted, narrow, GroupKeys.of(domain, by))
    return rate_of(session, name, counted, ~counted, narrow)


def rate_of(
    session: AnsweringLinear, name: str, met: Expression, rest: Expression, among: Expression | None
) -> Derived:
    """Return the part of one condition of two that exclude each other, among those who meet a third.

    Raises:
        TooFewRecordsError: If less than half a record meets either; the answers are paid.
    """
    rate = sides(met, rest, among, known=not session.n_bound)
    return _told(session.n, name, rate, asked_together(session, rate.asks))


def _told(n: int, name: str, rate: Rate, found: Found) -> Derived:
    made = worked_out(rate, "share", n, found)
    if math.isnan(made.value):
        raise too_few(n, name, made.share, made.share_bound, found.answers)
    return derived(name, made, n, found, (n * found.values[0], n * float(found.bounds[0])))


def sides(met: Expression, rest: Expression, among: Expression | None, *, known: bool) -> Rate:
    """Return the two sides of a rate among some records; `known` is whether the number of all is public."""
    if among is None:
        return Rate(met, None if known and rest == ~met else rest)
    return Rate(met & among, rest & among)


def _counted(domain: Domain, cond: Any) -> Expression:
    """Return the condition of a rate, which somebody can meet or not."""
    if cond is None:
        raise InvalidQueryError("cond must be a condition, got None; write share(where(sex='F')).")
    if isinstance(cond, str) and cond in domain.names:
        domain.attribute(cond)  # a column of booleans alone is a condition in SQL
    return checked_condition(domain, cond)


def _by_group(
    session: AnsweringLinear, name: str, counted: Expression, among: Expression | None, groups: GroupKeys
) -> Groups:
    """Return a rate for every group."""
    called = f"{name} by {', '.join(groups.names)}"
    return rates_by_group(session, called, counted, ~counted, among, groups)


def rates_by_group(
    session: AnsweringLinear,
    name: str,
    met: Expression,
    rest: Expression,
    among: Expression | None,
    groups: GroupKeys,
) -> Groups:
    """Return a rate for every group: from cross tables where they can have both sides."""
    tables = _of_tables(session, met, rest, among, groups)
    if tables is not None:
        found, whole = tables
        rate, answers = Rate(where(), where(), whole), len(found.answers)
        parts = [slice(2 * place, 2 * place + 2) for place in range(math.prod(groups.shape))]
        made = [worked_out(rate, "share", session.n, found, part) for part in parts]
        parts = [slice(0, answers)]  # of all rows alike
        values, bounds = found.values, found.bounds
    else:
        each = [Rate(met & one, rest & one) for one in groups.conditions(among)]
        possible = [any(one.bind(session.domain).constant != 0 for one in rate.asks) for rate in each]
        asks = [rate.asks if can else [] for rate, can in zip(each, possible, strict=True)]
        found = asked_together(session, [*itertools.chain.from_iterable(asks)])
        ends = np.cumsum([0, *map(len, asks)]).tolist()
        parts = [slice(start, stop) for start, stop in pairwise(ends)]
        made = [
            worked_out(rate, "share", session.n, found, part) if part.stop > part.start else NOBODY
            for rate, part in zip(each, parts, strict=True)
        ]
        values = [
            found.values[part.start] if part.stop > part.start else 0.0 for part in parts for _ in (0, 1)
        ]
        bounds = [
            found.bounds[part.start] if part.stop > part.start else 0.0 for part in parts for _ in (0, 1)
        ]
    told = of_made(session.n, groups, name, found, made, parts)
    sized = [session.n * np.array(one[::2], np.float64).reshape(groups.shape) for one in (values, bounds)]
    return attrs.evolve(told, parts=sized[0], part_bounds=sized[1])


def _of_tables(
    session: AnsweringLinear, met: Expression, rest: Expression, among: Expression | None, groups: GroupKeys
) -> tuple[Found, bool] | None:
    """Return what cross tables tell of all groups, two numbers each, and whether the second is the whole.

    One table has both sides, if the condition is about one attribute; of a conjunction one counts who meets
    it, and one all. None of other conditions.
    """
    query, other = met.bind(session.domain), rest.bind(session.domain)
    if not session.answers_tables or not groups.tabular or query.constant is not None or query.grid_bits:
        return None
    if len(query.axes) == 1 and other.axes == query.axes:
        meets = of_cases([(True, met), (False, rest)], None).called(free_name("meets", groups.names))
        labels = meets.over(session.domain).labels
        order = [labels.index(True), labels.index(False)]
        tables = [groups.table(among, meets)]
    elif rest != ~met:
        return None
    else:
        order = [0, 1]
        tables = [groups.table(met if among is None else met & among), groups.table(among)]
    try:
        cells = [table.bind(session.domain).cells >= 0 for table in tables]
    except InvalidQueryError:  # no conjunction, or met by nobody
        return None
    answers = session.answer_many(tables)
    joint = session.joint_bounds(tables, answers)
    axis = -1

    def side_by_side(told: Iterable[Any]) -> Floats:
        spread = [
            np.broadcast_to(np.asarray(one, np.float64), cell.shape)
            for one, cell in zip(told, cells, strict=True)
        ]
        both = spread[0][..., order] if len(spread) == 1 else np.stack(spread, axis)
        return both.reshape(-1)

    counts = side_by_side(cells) > 0.0
    own = np.where(counts, side_by_side([one.error_bound for one in answers]), 0.0)
    together = np.where(counts, side_by_side(joint), 0.0)
    values = side_by_side([one.value for one in answers]).tolist()
    errors = side_by_side([known_error(one) for one in answers]).tolist()
    failing = sum(one.error_bound > 0.0 for one in answers)
    found = Found(
        tuple(answers),
        values,
        own,
        max(0.0, 1.0 - session.beta * failing),
        errors,
        own,
        together,
        event_of(session),
    )
    if failing > 1 and np.isfinite(together).all():
        found = min(
            attrs.evolve(found, bounds=together, confidence=1.0 - session.beta),
            found,
            key=for_its_probability,
        )
    return found, len(tables) > 1
