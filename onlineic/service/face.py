"""What a server asks: a session, or whatever has its face, such as a table that grows."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from onlineic._typing import Floats
from onlineic.accounting.budget import Filter
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.errors import InvalidQueryError
from onlineic.plan.plan import Plan
from onlineic.queries.answers import Answer
from onlineic.queries.within import Within
from onlineic.questions.linear import PublicFacts
from onlineic.session.asking import Outcome
from onlineic.session.explain import Explanation
from onlineic.session.quota import Quota
from onlineic.session.statistics import SessionStatistics

Span = tuple[str | None, str | None]  # since and until, None where it is an end of all
ALL: Span = (None, None)
NO_WISH = (
    "within must be left out: what is asked has periods, of which each has a budget of its own, got one."
)


class Shown(Protocol):
    """What is public at one moment: `session.View`."""

    @property
    def n(self) -> int: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def statistics(self) -> SessionStatistics: ...
    @property
    def account(self) -> Filter: ...
    @property
    def owed(self) -> Fraction: ...
    @property
    def pool(self) -> Fraction: ...
    @property
    def paid(self) -> Mapping[str, Fraction]: ...
    @property
    def length(self) -> int: ...
    def explain(
        self,
        question: Any,
        most: int | None = None,
        quota: Quota | None = None,
        within: Within | None = None,
    ) -> Explanation: ...
    def hits_left(self, quota: Quota | None) -> int: ...
    def recalled(self, ask: Callable[[Any], Any], rounded_in: Unit | None = None) -> Any: ...
    def known(self, question: Any, within: Within | None = None) -> Outcome | None: ...
    def holds(self, bound: Any) -> bool: ...
    def released(self, start: int = 0, stop: int | None = None) -> list[tuple[int, Answer]]: ...
    def to_dict(self) -> dict[str, Any]: ...


class Public(Protocol):
    """What is public of it at any time."""

    @property
    def facts(self) -> PublicFacts: ...
    @property
    def domain(self) -> Domain: ...
    @property
    def n(self) -> int: ...
    @property
    def n_bound(self) -> int: ...
    @property
    def beta(self) -> float: ...
    @property
    def answers_tables(self) -> bool: ...


class Asked(Public, Protocol):
    """All of it as one asker has it: `session.Asking`."""

    @property
    def rounded_in(self) -> Unit | None: ...
    @property
    def length(self) -> int: ...
    @property
    def paid(self) -> Fraction | None: ...
    def answer(self, query: Any) -> Answer: ...
    def answer_many(self, queries: Any) -> Any: ...
    def outcomes(self, questions: Iterable[Any]) -> list[Outcome]: ...
    def count(self, told: Iterable[Answer]) -> None: ...
    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats: ...
    def snapshot(self, queries: Iterable[Any], answers: Iterable[Answer]) -> list[Answer]: ...


class Servable(Public, Protocol):
    """A session, or what has the face of one: `session.OnlineIC`."""

    @property
    def durability(self) -> str | None: ...
    def bind(self, question: Any) -> Any: ...
    def view(self) -> Shown: ...
    def paid_by(self, quota: Quota | None) -> Asked: ...
    def together(self) -> contextlib.AbstractContextManager[None]: ...
    def summary(self, answers: int = 20) -> Any: ...
    def synthetic(self, rows: int, seed: int = 0) -> Any: ...
    def close(self) -> None: ...


@runtime_checkable
class Spanned(Protocol):
    """What can be asked over some of its periods: it has `over(since, until)`."""

    def over(self, since: object, until: object) -> Any: ...


@runtime_checkable
class Grown(Spanned, Protocol):
    """The public facts of a table that grows."""

    @property
    def protects(self) -> str: ...
    @property
    def levels(self) -> tuple[str, ...]: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    def rows(self) -> list[tuple[str, int, str, float, bool]]: ...


def over(asked: Any, span: Span) -> Any:
    """Return what is asked over a span of periods.

    Raises:
        InvalidQueryError: If a span is given of what has no periods.
        InvalidParameterError: If an end is none of its periods.
    """
    if span == ALL:
        return asked
    if not isinstance(asked, Spanned):
        raise InvalidQueryError("since and until must be left out: what is asked has no periods, got one.")
    return asked.over(*span)


def span_of(sent: Any) -> Span:
    """Return the span that an object names by its members since and until.

    Raises:
        InvalidQueryError: If one is no text.
    """
    if not isinstance(sent, dict):
        return ALL
    ends = sent.get("since"), sent.get("until")
    if not all(one is None or (isinstance(one, str) and 0 < len(one) <= 10) for one in ends):
        raise InvalidQueryError("since and until must be labels of periods, such as 2026-01, got others.")
    return ends
