"""Derived questions with a wish: how exact each of their numbers must be, so that the result is.

Proof: docs/theory/within.md, 14.6.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.ask.bind import as_condition
from onlineic.errors import InvalidParameterError, OnlineICError, TooFewRecordsError, shown
from onlineic.queries.answers import Answer, cost_of
from onlineic.queries.marginals import Key
from onlineic.queries.within import Within, checked_within
from onlineic.questions.groups import Groups, checked_where
from onlineic.questions.linear import AnsweringLinear, Estimate, PublicFacts, Where, narrowing
from onlineic.questions.means import Derived, Numbers, mean, total
from onlineic.questions.shares import share

LEAST_SHARE = 2.0**-20  # of the records, that a mean is taken to be about


@final
class Wishing(AnsweringLinear):
    """A session, each of whose calls is answered within a wish, all numbers of a call at once.

    Args:
        times: How many such calls the statement may rest on: each may fail with its part of beta.
    """

    def __init__(self, session: AnsweringLinear, within: Within, times: int = 1) -> None:
        self._session, self._within, self._times, self._asked = session, within, times, 1

    @property
    def facts(self) -> PublicFacts:
        facts = self._session.facts
        return attrs.evolve(facts, beta=facts.beta / self._asked)

    def answer(self, query: Any) -> Answer:
        return self.answer_many([query])[0]

    def answer_many(self, queries: Any) -> list[Answer]:
        asked = list(queries)
        self._asked = max(1, len(asked))
        parts = self._within.parts * self._times * self._asked
        return self._session.answer_within(asked, attrs.evolve(self._within, parts=parts))

    def unprojected(self, queries: Iterable[Any]) -> list[Estimate | None]:
        return self._session.unprojected(queries)

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return inf: the answers of a call hold at once by their own bounds."""
        return np.full(len(list(answers)), math.inf)


def counts_within(session: AnsweringLinear, within: float | Within | None) -> AnsweringLinear:
    """Return what answers counts of a call within a wish in records, all of them at once."""
    if within is None:
        return session
    wish = checked_within(within)
    return Wishing(session, attrs.evolve(wish, radius=wish.radius / session.n))


def mean_within(
    session: AnsweringLinear, attribute: str, where: Where, within: float | Within | None
) -> Derived:
    """Return a mean within a wish in the unit of the attribute.

    Its bound is that of its two numbers, over the share of the records that it is about, which is not known
    beforehand: where the hypothesis took it for too large, numbers of their own are bought once more, if that
    can be paid. A session's own wish asks for no finer numbers than whoever asks may have.
    """
    wish, asks = _wish_of(session, attribute, where, within), _asks(session, attribute, where)
    if wish is None or asks is None or asks.high <= asks.low:
        return mean(session, attribute, where)
    size = 1.0 if asks.everybody else min(1.0, sum(session.believed(asks.asks("mean"))))
    part = attrs.evolve(wish, radius=wish.radius / (asks.high - asks.low))
    return _quotient(
        session, wish, part, size, lambda one: mean(one, attribute, where), as_session=within is None
    )


def share_within(
    session: AnsweringLinear,
    cond: Any,
    where: Where,
    by: Key | Iterable[Key] | None,
    within: float | Within | None,
) -> Derived | Groups:
    """Return a rate within a wish, a part of those whom it is about: as a mean of zeros and ones.

    Raises:
        InvalidParameterError: If a wish was given for rates by group; nothing was asked.
    """
    if by is not None and within is not None:
        raise InvalidParameterError(
            f"within must be None for rates by group, got {shown(within)}; ask the rate of each group, or "
            "group_by(.., within=) for the numbers of records."
        )
    wish = session.facts.within if within is None else checked_within(within)
    try:
        among = narrowing(session.domain, checked_where(session.domain, where))
    except OnlineICError:
        wish = None  # `share` says why
    if wish is None or by is not None:
        return share(session, cond, where, by)
    believed = 1.0 if among is None else min(1.0, sum(session.believed([among])))

    def asked(one: Wishing) -> Derived:
        found: Any = share(one, cond, where)
        rate: Derived = found  # without groups
        return rate

    return _quotient(session, wish, wish, believed, asked, as_session=within is None)


def _quotient(
    session: AnsweringLinear,
    wish: Within,
    part: Within,
    size: float,
    ask: Callable[[Wishing], Derived],
    *,
    as_session: bool,
) -> Derived:
    """Return what is worked out of two numbers, over the share of the records that it is about.

    Args:
        wish, part: Of the result, in its own unit and as a part of its range.
        size: Share of the records, as it is expected.
        as_session: Whether it is the session's own wish: whoever may not have numbers so fine has wider ones.
    """
    earlier, finest = None, session.facts.finest
    for last in (size >= 1.0, True):
        radius = _of_ratio(part.radius, size)
        radius = max(radius, finest) if as_session else radius
        calls = 1 if size >= 1.0 else 2  # of which either may be told
        asking = Wishing(session, attrs.evolve(part, radius=radius), calls)
        earlier = found = _told_by(asking, ask, earlier)
        if last or found.count is None or wish.meets(found.error_bound, found.expected_error):
            break
        less = found.count_bound or 0.0 if wish.certain else 0.0
        size = min(size, (found.count - less) / session.n)
        if _of_ratio(part.radius, size) < finest:
            break  # what is paid is told, and not refused for numbers that may not be asked
    return found


def _told_by(asking: Wishing, ask: Callable[[Wishing], Derived], earlier: Derived | None) -> Derived:
    """Return a result of new numbers, or the earlier one, which is paid, where finer ones cannot be paid."""
    try:
        found = ask(asking)
    except TooFewRecordsError as error:
        if earlier is None or not _beyond_budget(error.answers):
            raise
        return attrs.evolve(earlier, answers=_costing(earlier.answers, cost_of(error.answers)))
    if earlier is None:
        return found
    told, other = (earlier, found) if _beyond_budget(found.answers) else (found, earlier)
    return attrs.evolve(told, answers=_costing(told.answers, other.cost))


def _beyond_budget(answers: tuple[Answer, ...]) -> bool:
    """Return whether some of these could not be paid."""
    return any(one.reason == "budget" for one in answers)


def _costing(answers: tuple[Answer, ...], more: float | None) -> tuple[Answer, ...]:
    """Return the same answers, of which the first has cost so much more."""
    first, *others = answers
    return first.costing(more), *others


def _of_ratio(part: float, size: float) -> float:
    """Return how exact both numbers of a quotient must be: the share may be told as less by as much."""
    size = max(size, LEAST_SHARE)
    return part * size if size >= 1.0 else part * size / (1.0 + part)


def sum_within(
    session: AnsweringLinear, attribute: str, where: Where, within: float | Within | None
) -> Derived:
    """Return a sum within a wish in its own unit, over all records that it is about."""
    wish, asks = _wish_of(session, attribute, where, within), _asks(session, attribute, where)
    if wish is None or asks is None:
        return total(session, attribute, where)
    if within is None:
        wish = attrs.evolve(wish, radius=wish.radius * session.n)
    reach = asks.high - asks.low + (0.0 if asks.everybody else abs(asks.low))
    if not reach:
        return total(session, attribute, where)
    radius = wish.radius / (session.n * reach)
    radius = max(radius, session.facts.finest) if within is None else radius
    return total(Wishing(session, attrs.evolve(wish, radius=radius)), attribute, where)


def _wish_of(
    session: AnsweringLinear, attribute: str, where: Where, within: float | Within | None
) -> Within | None:
    """Return a wish in the unit of an attribute: one that was given, or a session's, of its range."""
    if within is not None:
        return checked_within(within)
    wish, asks = session.facts.within, _asks(session, attribute, where)
    if wish is None or asks is None or asks.high <= asks.low:
        return None
    return attrs.evolve(wish, radius=wish.radius * (asks.high - asks.low))


def _asks(session: AnsweringLinear, attribute: str, where: Where) -> Numbers | None:
    """Return what a mean asks, or None where it cannot be asked: it says why."""
    try:
        condition = as_condition(where, session.domain)
        return Numbers.of(session.domain, attribute, condition, not session.n_bound, session.rounded_in)
    except OnlineICError:
        return None
