"""A table that grows as a server has it: what a session is to it, over any range of periods.

Every asker pays in each session for what their question makes it spend, by their part of that session. A
question over several periods is that many questions, in the order of the periods, whoever asks them.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.budget import Filter
from onlineic.display.html import card, facts, note, page
from onlineic.display.html import table as rows_of
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, OnlineICError, TooLargeError, shown
from onlineic.hypothesis.base import Hypothesis
from onlineic.periods.book import PeriodsBook
from onlineic.periods.periods import Periods
from onlineic.periods.pooled import Fit, Known
from onlineic.periods.ranges import COUNT_SHARE, Range, every_beta
from onlineic.plan.plan import Plan
from onlineic.queries.answers import Answer
from onlineic.queries.marginals import Question
from onlineic.queries.query import Query
from onlineic.queries.within import Within
from onlineic.questions.derived import Answering
from onlineic.questions.linear import HasFacts, PublicFacts
from onlineic.questions.synthetic import Synthetic
from onlineic.session.asking import Asking, Outcome
from onlineic.session.durable import Durability
from onlineic.session.explain import Explanation, Preview
from onlineic.session.quota import Quota
from onlineic.session.session import OnlineIC
from onlineic.session.statistics import SessionStatistics
from onlineic.session.view import View

NO_WISH = "within must be None over periods, of which each has a budget of its own, got a wish; leave it out."
LISTED = 10_000  # answers over ranges that are kept to be shown
Kept = tuple[View, Any, Preview]  # a node, what it was asked, and what is known of that
PLACES = ("asked", "easy", "hard", "repeat", "untested", "hard_left", "update_failures")


@final
class RecentAnswers:
    """What was answered over ranges since the server started: the last of it, to be shown.

    What the sessions released stands in their ledgers, and is a repeat after a restart.
    """

    __slots__ = ("_answers", "length")

    def __init__(self) -> None:
        self._answers: dict[int, Answer] = {}
        self.length = 0

    def add(self, answers: Iterable[Answer]) -> None:
        """Keep answers that are no repeats."""
        for answer in answers:
            if answer.status != "repeat":
                self._answers[self.length] = answer
                self.length += 1
                self._answers.pop(self.length - 1 - LISTED, None)

    def between(self, start: int, stop: int) -> list[tuple[int, Answer]]:
        """Return (place, answer) of those that are kept."""
        found = ((at, self._answers.get(at)) for at in range(max(start, self.length - LISTED), stop))
        return [(at, answer) for at, answer in found if answer is not None]


@final
@attrs.frozen(eq=False)
class _Payer:
    """A node of which the asker pays; as a range asks it."""

    asking: Asking
    plan: Plan
    told: Callable[[Any], Answer | None]

    def answer_many(self, queries: Any) -> list[Answer]:
        found: list[Answer] = self.asking.answer_many(queries)
        return found

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        return self.asking.joint_bounds(queries, answers)


@final
@attrs.frozen(eq=False)
class _Rehearsed:
    """A node that answers as if every test turned out easy, and keeps what each would cost."""

    view: View
    kept: list[Kept]
    most: int | None
    quota: Quota | None = None

    @property
    def plan(self) -> Plan:
        return self.view.plan

    def answer_many(self, queries: Any) -> list[Answer]:
        found = []
        for query in queries:
            if self.most is not None and len(self.kept) >= self.most:
                raise TooLargeError(
                    f"a question must become at most {self.most:,} questions, got more; ask fewer."
                )
            preview = self.view.preview(query, self.quota)
            self.kept.append((self.view, query, preview))
            found.append(preview.answer)
        return found

    def told(self, question: Any) -> Answer:
        return self.view.preview(question, self.quota).answer

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        return np.array([self.view.preview(query, self.quota).joint for query in queries])


@final
@attrs.frozen(eq=False)
class _Nodes:
    """The nodes of periods, each as one asker has it."""

    periods: Periods
    made: Callable[[str], Any]

    @property
    def book(self) -> PeriodsBook:
        return self.periods.book

    @property
    def domain(self) -> Domain:
        return self.periods.domain

    @property
    def beta(self) -> float:
        return self.periods.beta

    @property
    def private(self) -> bool:
        return self.periods.private

    def node(self, label: str) -> Any:
        return self.made(label)

    def fit(self, labels: tuple[str, ...]) -> Fit | None:
        return self.periods.fit(labels)

    def known(self, label: str, query: Query) -> Known | None:
        return self.periods.known(label, query)

    def finer(self, label: str, query: Query) -> tuple[float, float] | None:
        return self.periods.finer(label, query)

    def learned(self, label: str) -> Hypothesis:
        return self.periods.learned(label)


class _OfRange(HasFacts):
    """What hands questions on to a range of periods, and has its public facts."""

    _range: Range

    @property
    def facts(self) -> PublicFacts:
        return self._range.facts


@final
class PeriodsAsking(_OfRange, Answering):
    """A range of periods with the quota of one asker: `session.Asking` of periods."""

    def __init__(self, asked: Range, recent: RecentAnswers, over: Callable[[Any, Any], Range]) -> None:
        self._range, self._recent, self._over = asked, recent, over

    @property
    def length(self) -> int:
        """Answers over ranges that were told."""
        return self._recent.length

    @property
    def paid(self) -> None:
        """Return None: an asker pays in each node, of which each has a budget of its own."""
        return None

    def over(self, since: object, until: object) -> "PeriodsAsking":
        """Return the periods from one to another, with the same quota."""
        return PeriodsAsking(self._over(since, until), self._recent, self._over)

    def answer(self, query: Any) -> Answer:
        found: Answer = self.answer_many([query])[0]
        return found

    def answer_many(self, queries: Any) -> Any:
        found = self._range.answer_many(queries)
        self._recent.add(found)
        return found

    def outcomes(self, questions: Iterable[Any]) -> list[Outcome]:
        """Answer questions in order, each by itself: one that is refused leaves the others alone."""
        found = []
        for question in questions:
            try:
                found.append(Outcome(self.answer(question)))
            except OnlineICError as error:
                found.append(Outcome(error=error))
        return found

    def count(self, told: Iterable[Answer]) -> None:
        """Count answers that were given from a view, without a turn of the session's thread."""
        self._recent.add([*told])

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        return self._range.joint_bounds(queries, answers)

    def snapshot(self, queries: Iterable[Any], answers: Iterable[Answer]) -> list[Answer]:
        return self._range.snapshot(queries, answers)


@final
@attrs.frozen(eq=False, repr=False)
class PeriodsView:
    """What is public of all periods at one moment, as `session.View`: frozen.

    Attributes:
        views: Of every node.
        blocks: Of the range.
        length: Answers over ranges that were told.
    """

    periods: Periods
    views: Mapping[str, View]
    blocks: tuple[str, ...]
    length: int
    _recent: RecentAnswers

    @property
    def n(self) -> int:
        """Records of the range, as far as their number is known."""
        return self.periods.book.number(self.blocks)

    @property
    def plan(self) -> Plan:
        """Of the first node."""
        return next(iter(self.views.values())).plan

    @cached_property
    def paid(self) -> Mapping[str, Fraction]:
        """By name the part of what hits can spend that it has paid, in the mean over all nodes."""
        found: dict[str, Fraction] = {}
        for view in self.views.values():
            pool = view.pool
            for name, amount in view.paid.items():
                part = amount / pool / len(self.views) if pool else Fraction(0)
                found[name] = found.get(name, Fraction(0)) + part
        return found

    @cached_property
    def account(self) -> Filter:
        """Of what hits can spend, as parts: one in all."""
        return Filter(Fraction(1), spent=min(Fraction(1), sum(self.paid.values(), Fraction(0))))

    @property
    def owed(self) -> Fraction:
        """Nothing: what tables cost is left out of what hits can spend."""
        return Fraction(0)

    @property
    def pool(self) -> Fraction:
        """The capacity that quotas divide: all that hits can spend."""
        return Fraction(1)

    @cached_property
    def statistics(self) -> SessionStatistics:
        """Sums over all nodes; of what is spent the mean, of bounds and thresholds the largest."""
        each = [view.statistics for view in self.views.values()]
        restarts = [one.restarts_left for one in each if one.restarts_left is not None]
        return attrs.evolve(
            each[0],
            **{name: sum(getattr(one, name) for one in each) for name in PLACES},
            **{
                name: max(getattr(one, name) for one in each)
                for name in ("error_bound", "threshold", "alpha")
            },
            spent=sum(one.spent for one in each) / len(each),
            bought=sum(one.bought for one in each) / len(each),
            sealed=any(one.sealed for one in each),
            budget=self.periods.budget,
            beta=every_beta(self.periods.book, self.periods.beta),
            restarts_left=min(restarts, default=None),
            certified=False,
            family=None,
            unit=None,
            counted=self.periods.book.counted([*self.periods.book.blocks], COUNT_SHARE * self.periods.beta),
        )

    @property
    def protects(self) -> str:
        """What is protected over all periods, in words."""
        return self.periods.said

    @property
    def levels(self) -> tuple[str, ...]:
        """Finest first."""
        return self.periods.book.calendar.levels

    @property
    def labels(self) -> tuple[str, ...]:
        """Of all periods that can be an end of a range, blocks first."""
        book = self.periods.book
        closed = [label for label in book.nodes if label not in book.blocks]
        return (*book.blocks, *closed)

    def rows(self) -> list[tuple[str, int, str, float, bool]]:
        """Return (label, n, level, part left or NaN, late rows) of blocks, then of closed periods."""
        book = self.periods.book
        found = [
            (label, one.n, book.calendar.finest, float(book.account.left(label)), one.late)
            for label, one in book.blocks.items()
        ]
        closed = [label for label in book.nodes if label not in book.blocks]
        return found + [
            (label, book.n(label), book.calendar.level(label), float("nan"), False) for label in closed
        ]

    def over(self, since: object, until: object) -> "PeriodsView":
        """Return the view of the periods from one to another."""
        return attrs.evolve(self, blocks=self.periods.book.span(since, until))

    def hits_left(self, quota: Quota | None) -> int:
        """Return how many hits of the largest price a quota can at least pay, in the poorest node."""
        return min(view.hits_left(_own(quota, view)) for view in self.views.values())

    def explain(
        self,
        question: Any,
        most: int | None = None,
        quota: Quota | None = None,
        within: Within | None = None,
    ) -> Explanation:
        """Return what a question over the range may cost, and what it is worth if all tests turn out easy.

        Price and what is left are those of the node that has least; `at_most` of the node that pays most.
        The quota's limit is the part of what hits can spend in each node. A wish is refused: each node buys
        for itself, so that none of them knows what the sum over them needs.
        """
        if within is not None:
            raise InvalidParameterError(NO_WISH)
        kept: list[Kept] = []

        def rehearsed(label: str) -> _Rehearsed:
            view = self.views[label]
            return _Rehearsed(view, kept, most, _own(quota, view))

        nodes = _Nodes(self.periods, rehearsed)
        asked, result = Range(nodes, self.blocks), None
        if isinstance(question, str) and question.lstrip()[:6].upper() == "SELECT":
            result = asked.sql(question)
        else:
            result = question(asked) if callable(question) else asked.answer(question)
        plain = result if isinstance(result, Answer) else None
        paid: dict[int, Fraction] = {}
        first: dict[int, Explanation] = {}
        for view, query, one in kept:
            paid[id(view)] = paid.get(id(view), Fraction(0)) + (Fraction(0) if one.known else one.price)
            if id(view) not in first:
                first[id(view)] = view.explain(query, quota=_own(quota, view))
        left = min((one.left for one in first.values()), default=1.0)
        each = [one for _, _, one in kept]
        constants = sum(
            one.answer.query is not None and one.answer.query.constant is not None for one in each
        )
        derived = getattr(result, "error_bound", None)
        easy = max((one.answer.error_bound for one in each), default=0.0)
        hard = max((one.bound_hard for one in each), default=0.0)
        if plain is not None:  # of a sum over its periods
            easy = float(plain.error_bound)
            hard = math.fsum(one.bound_hard * view.n / self.n for view, _, one in kept)
        return Explanation(
            asked=shown(question, 80) if isinstance(question, str) else "a question over periods",
            form="product" if plain is not None and len(kept) == 1 else "several",
            attributes=tuple(_attributes(plain)),
            support=None,
            grid_bits=None,
            answers=len(kept),
            constants=constants,
            repeats=sum(one.known for one in each) - constants,
            bound_easy=easy,
            bound_hard=hard,
            bound_derived=derived if plain is None and isinstance(derived, float) else None,
            price=float(max((one.price for one in each if not one.known), default=Fraction(0))),
            hits_left=min((one.hits_left for one in first.values()), default=0),
            at_most=min(float(max(paid.values(), default=Fraction(0))), left),
            left=left,
            payable=all(one.known or one.price <= left for one in each),
            shared=max((one.shared for one in first.values()), default=0.0),
            tables=max((one.tables for one in first.values()), default=0.0),
        )

    def recalled(self, ask: Callable[[Any], Any], rounded_in: Any = None) -> Any:
        """Return None: repeats over a range are worked out by the session's thread."""
        return None

    def known(self, question: Any, within: Within | None = None) -> Outcome | None:
        """Return None: what is known over a range is worked out by the session's thread."""
        return None

    def holds(self, bound: Any) -> bool:
        """Return False: `known` has no answer over ranges."""
        return False

    def released(self, start: int = 0, stop: int | None = None) -> list[tuple[int, Answer]]:
        """Return what was answered over ranges since the server started."""
        return self._recent.between(start, self.length if stop is None else min(stop, self.length))

    def to_dict(self) -> dict[str, Any]:
        """Return n, statistics and length as plain values, which `json.dumps` takes."""
        return {"n": self.n, **self.statistics.to_dict(), "length": self.length}


@final
class ServedPeriods(_OfRange):
    """All periods as one that a server asks in the place of a session.

    Args:
        periods: From a file, of durability "all". Its sessions are opened at once, so that what is missing is
            known before anybody asks.

    Raises:
        InvalidParameterError: If it is in memory, or nothing has begun.
        SessionStateError, LedgerError: If the table of a block is not at hand, or the ledger of a node is not
            whole.
    """

    def __init__(self, periods: Periods) -> None:
        if periods.durability != "all":
            raise InvalidParameterError(
                'periods must have a root ledger and durability="all" to be served, got others; write '
                'Periods.resume(PATH, durability="all").'
            )
        self._periods, self._recent = periods, RecentAnswers()
        self._range = periods.over()
        self._sessions: dict[str, OnlineIC] = {label: periods.node(label) for label in periods.nodes}
        self._views: dict[str, View] = {label: one.view() for label, one in self._sessions.items()}
        self._asked: set[str] = set()  # nodes whose view is not of now

    @property
    def facts(self) -> PublicFacts:
        tables = all(view.answers_tables for view in self._views.values())
        return attrs.evolve(self._range.facts, answers_tables=tables)

    @property
    def durability(self) -> Durability | None:
        """ "all": what left comes back after a crash."""
        return self._periods.durability

    def over(self, since: object, until: object) -> Range:
        """Return the periods from one to another, to be looked at: nobody pays."""
        return Range(self._periods, self._periods.book.span(since, until))

    def bind(self, question: Any) -> Question:
        """Return a question as it is over all periods, if it can be asked."""
        return self._range.bind(question)

    def view(self) -> PeriodsView:
        """Return what is public now; only sessions that were asked since are looked at again."""
        for label in self._asked:
            self._views[label] = self._sessions[label].view()
        self._asked = set()
        return PeriodsView(
            self._periods, dict(self._views), self._range.blocks, self._recent.length, self._recent
        )

    def paid_by(self, quota: Quota | None) -> PeriodsAsking:
        """Return all periods as one of several askers has them.

        Args:
            quota: Its limit is the part of every session that the asker may spend, of what hits can spend
                there.
        """

        def made(label: str) -> _Payer:
            session = self._sessions[label]
            self._asked.add(label)
            return _Payer(session.paid_by(_own(quota, self._views[label])), session.plan, session.told)

        def over(since: object, until: object) -> Range:
            return Range(_Nodes(self._periods, made), self._periods.book.span(since, until))

        return PeriodsAsking(over(None, None), self._recent, over)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Make what is answered inside durable at the end, one write for each session that was asked."""
        with contextlib.ExitStack() as stack:
            for session in self._sessions.values():
                stack.enter_context(session.together())
            yield

    def summary(self, answers: int = 20) -> "PeriodsSummary":
        """Return a page about the periods."""
        return PeriodsSummary(self.view(), answers)

    def synthetic(self, rows: int, seed: int = 0) -> Synthetic:
        """Return synthetic records of all periods, as `Range.synthetic`."""
        return self._range.synthetic(rows, seed)

    def close(self) -> None:
        """Close all sessions and let the files go."""
        self._periods.release()

    def __repr__(self) -> str:
        return repr(self._periods)


@final
@attrs.frozen
class PeriodsSummary:
    """A page about periods that can be handed on.

    Attributes:
        answers: The most of the latest that are listed.
    """

    view: PeriodsView
    answers: int

    def _told(self) -> list[list[Any]]:
        latest = self.view.released(max(0, self.view.length - self.answers))
        return [[at, repr(answer)] for at, answer in latest]

    def __str__(self) -> str:
        lines = [repr(self.view.periods)]
        lines += [f"{label}  {level}, n {n:,}" for label, n, level, _, _ in self.view.rows()]
        lines += [f"{at}  {text}" for at, text in self._told()]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        return f"```text\n{self}\n```\n"

    def to_html(self) -> str:
        """Return it as a whole page without scripts."""
        return page("Periods", self._repr_html_())

    def _repr_html_(self) -> str:
        listed = [[label, level, f"{n:,}"] for label, n, level, _, _ in self.view.rows()]
        return card(
            "A table that grows",
            facts([("protects", self.view.protects.removeprefix("protects "))]),
            rows_of(["period", "level", "records"], listed, left=2),
            rows_of(["at", "answer"], self._told(), left=2)
            if self.view.length
            else note("Nothing was asked."),
        )


def _own(quota: Quota | None, view: View) -> Quota | None:
    """Return the quota of a node: a part of what hits can spend there."""
    return None if quota is None else Quota(quota.name, quota.limit * view.pool)


def _attributes(answer: Answer | None) -> list[str]:
    query: Any = None if answer is None else answer.query
    return [query.domain.names[axis] for axis in query.axes] if hasattr(query, "axes") else []
