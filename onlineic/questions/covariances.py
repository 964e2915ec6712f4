"""Covariances of two numbers in statements, in groups too: products of their places are linear queries.

Proof: docs/theory/queries.md, 1.11.
"""

import math
from typing import final

import attrs

from onlineic.ask.bind import as_condition
from onlineic.errors import InvalidQueryError, shown
from onlineic.queries.expressions import Expression, where
from onlineic.questions.groups import Groups, by_parts
from onlineic.questions.keys import GroupKeys
from onlineic.questions.linear import (
    FLOATS,
    AnsweringLinear,
    Where,
    asked_together,
    check_answering,
    narrowing,
    too_few,
)
from onlineic.questions.means import LEAST, Derived, Made, Numbers, Parts, derived, worked_out


@final
@attrs.frozen(eq=False)
class Pair:
    """Two attributes as numbers, among the records that have both: places u and v in [0, 1] of their ranges.

    Four queries are asked: the sums of u v, u (1 - v), (1 - u) v and (1 - u)(1 - v), which add up to the
    records that count.
    """

    one: Numbers
    other: Numbers

    @classmethod
    def of(cls, session: AnsweringLinear, one: str, other: str, where: Expression | None) -> "Pair":
        if one == other:
            raise InvalidQueryError(f"two attributes must differ, got {shown(one)} twice; ask its variance.")
        known, unit = not session.n_bound, session.rounded_in
        found = [Numbers.of(session.domain, name, where, known, unit) for name in (one, other)]
        for numbers in found:
            numbers.check(where)
        return cls(*found)

    @property
    def asks(self) -> list[Expression]:
        """What is asked."""
        condition = self.one.condition
        sides = [
            [numbers.sides(numbers.shares), numbers.sides(1.0 - numbers.shares)]
            for numbers in (self.one, self.other)
        ]
        found = [where({**dict(left.parts), **dict(right.parts)}) for left in sides[0] for right in sides[1]]
        return found if condition is None else [one & condition for one in found]

    def worked_out(self, aggregate: str, n: int, parts: Parts) -> Made:
        """Return the covariance of what was asked.

        With parts a, b, c, d of t = a + b + c + d it is (a d - b c)/t^2 of the places. If each part is off by
        at most e, a/t is off by at most 3 e/t, and the means (a + b)/t and (a + c)/t by at most 2 e/t.
        """
        values, bounds, errors = parts
        share, off, most = sum(values), sum(bounds), max(bounds)
        few = not share > 2.0 * most
        if n * share < LEAST:
            return Made(math.nan, math.inf, 0.0, share, off)
        a, b, c, d = (value / share for value in values)
        scale = (self.one.high - self.one.low) * (self.other.high - self.other.low)
        value, step = a * d - b * c, most / share
        bound = 3.0 * step + 2.0 * step * (abs(2.0 * a + b + c)) + 4.0 * step**2
        bound = min(bound, 0.25 + abs(value)) + FLOATS
        errors = errors or [math.nan] * 4
        slopes = (d - 2.0 * value, -c - 2.0 * value, -b - 2.0 * value, a - 2.0 * value)
        expected = math.hypot(*(slope * error for slope, error in zip(slopes, errors, strict=True))) / share
        if few and math.isnan(expected):
            return Made(math.nan, math.inf, 0.0, share, off)
        moved = 2.0 * sum(numbers.moved(n * (share - off)) for numbers in (self.one, self.other))
        told = (
            scale * value,
            math.inf if few else scale * bound,
            scale * moved,
            share,
            off,
            scale * expected,
        )
        return Made(*told, few and math.isfinite(off))


def covariance(session: AnsweringLinear, one: str, other: str, where: Where = None) -> Derived:
    """Return the covariance of two attributes among the records that have both, as COVAR_POP.

    Args:
        session: Asked; four questions.
        one: Whole numbers or numbers.
        other: Another attribute of these.
        where: Among whom; by default all records.

    Raises:
        TooFewRecordsError: If less than half a record counts; the answers are paid.
        InvalidQueryError: If an attribute has no numbers, or nobody can meet the condition.
    """
    check_answering(session)
    among = narrowing(session.domain, as_condition(where, session.domain))
    pair = Pair.of(session, one, other, among)
    found = asked_together(session, pair.asks)
    name = f"covariance({one}, {other}{'' if among is None else f', {shown(among, 100)}'})"
    made = worked_out(pair, "covariance", session.n, found)
    if math.isnan(made.value):
        raise too_few(session.n, name, made.share, made.share_bound, found.answers)
    return derived(name, made, session.n, found)


def covariances(
    session: AnsweringLinear, name: str, one: str, other: str, among: Expression | None, groups: GroupKeys
) -> Groups:
    """Return the covariance in every group."""
    Pair.of(session, one, other, among)
    each: list[Pair | None] = []
    asks: list[list[Expression]] = []
    for condition in groups.conditions(among):
        try:
            pair = Pair.of(session, one, other, condition)
        except InvalidQueryError:  # nobody can be there
            each.append(None)
            asks.append([])
        else:
            each.append(pair)
            asks.append(pair.asks)
    return by_parts(session, groups, name, "covariance", each, asks)
