"""Answers to a batch as columns: values, labels and bounds as arrays, each `Answer` made when asked for.

Bounds rest on what was public, and context, when an answer was given: the radius of its test or number, and
the noise of first tables that were bought before. So they cost nothing until they are looked at, and are then
what they were.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, final, overload

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.display.frames import Framed
from onlineic.display.html import card, note, table
from onlineic.known_noise.instalments import Instalments
from onlineic.queries.answers import (
    LONGEST_QUERY,
    Answer,
    AnswerContext,
    Reason,
    Stated,
    Status,
    answer_head,
    answer_rows,
)
from onlineic.queries.batch import Queries
from onlineic.queries.counted import Counted
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.memory import Recalled, Remembered
from onlineic.queries.query import Query
from onlineic.session.expected import Expectations, Measured

STATUSES: tuple[Status, ...] = ("easy", "hard", "repeat", "untested")
EASY, HARD, REPEAT, UNTESTED = range(4)
REASONS: tuple[Reason | None, ...] = (None, "covered", "test", "bought", "known", "within", "budget")
NO_REASON, COVERED, TEST, BOUGHT, KNOWN = range(5)
SHOWN = 10  # answers of a batch that are shown, first and last


def known_bound(estimates: Instalments | None, question: Question, value: Any) -> float:
    """Return the bound that the noise of bought tables gives, for all their families at once, or inf.

    The truth lies in a bracket around their estimate, whatever was tested, fitted or bought since.
    """
    if estimates is None:
        return math.inf
    if isinstance(question, BoundMarginal):
        tables = estimates.table_brackets(question)
        if tables is None:
            return math.inf
        return max(0.0, float(np.max(value - tables[0])), float(np.max(tables[1] - value)))
    found = estimates.bracket(question)
    return math.inf if found is None else max(0.0, value - found[0], found[1] - value)


def cut(value: Any, bound: float, slack: float = 0.0) -> float:
    """Return the bound, or the distance to the far end of [0, 1 + slack] where that is less."""
    if isinstance(value, np.ndarray):
        return min(bound, max(float(value.max()), 1.0 + slack - float(value.min())))
    return float(min(bound, max(value, 1.0 + slack - value)))


def of_all(question: Question, slack: float) -> float:
    """Return how far a constant number is from the truth, where n may be off by this fraction of it."""
    if not slack or question.constant is None:
        return 0.0
    return float(slack * question.constant / (1 << question.grid_bits))


def stated(
    estimates: Instalments | None, question: Question, value: Any, radius: float, slack: float = 0.0
) -> Stated:
    """Return what is stated of an answer of this radius; of radius inf, if none is known.

    Args:
        value: A number, of a table an array. As it was released.
        radius: What its test or number proves, or nothing where it was untested.
        slack: How far n may be from the number of records, fraction of n: 0 where n is public.
    """
    return Stated(_bound(estimates, question, value, radius, slack), *_point(estimates, question))


def stated_again(
    estimates: Instalments | None,
    asked: Question,
    value: Any,
    first: Question,
    released: Any,
    radius: float,
    slack: float = 0.0,
) -> Stated:
    """Return the same of a repeat: the bound of the answer that was released, of `first`, carried over.

    Of one minus that answer it grows by what all records may differ from n.
    """
    bound = _bound(estimates, first, released, radius, slack)
    turned = slack if asked.complement != first.complement else 0.0
    # another query may have been rounded to the same one, from farther away
    bound = cut(value, bound + turned + max(0.0, asked.rounding - first.rounding), slack)
    return Stated(bound, *_point(estimates, asked))


def _bound(
    estimates: Instalments | None, question: Question, value: Any, radius: float, slack: float
) -> float:
    bound = min(radius + of_all(question, slack), known_bound(estimates, question, value))
    return cut(value, bound + question.rounding, slack) if bound < math.inf else bound


def _point(estimates: Instalments | None, question: Question) -> tuple[Any, ...]:
    found = None
    if estimates is not None and isinstance(question, Query):
        found = estimates.point(question)
    return (None, None, None) if found is None else found


@final
@attrs.frozen(eq=False)
class SessionContext(AnswerContext):
    """Facts that all answers between two releases share; `rest` is what one adds, such as its radius.

    Attributes:
        estimates: From the first tables.
        hits_left: A function of what was spent when it was made.
        looked_at: Told each bound that is looked at.
        counted: What is known of n, where it is private.
        of_what: What is counted: "records" or "persons".
        beta: Failure probability of each bound.
    """

    n: int
    private: bool
    estimates: Instalments | None
    hits_left: Callable[[], int]
    looked_at: Callable[[float], None]
    counted: Counted | None
    of_what: str
    expectations: Expectations
    beta: float | None = None

    @property
    def slack(self) -> float:
        """How far n may be from the number of records, fraction of n."""
        return 0.0 if self.counted is None else self.counted.slack

    @property
    def n_bound(self) -> int:
        """How far n may be from the number of records."""
        return 0 if self.counted is None else self.counted.bound

    @cached_property
    def left(self) -> int:
        """Measured answers that could still be paid."""
        return self.hits_left()

    def asked(self, rest: Any) -> None:
        """Such answers hold their question."""

    def stated(self, query: Any, value: Any, rest: float | Measured | Remembered) -> Stated:
        """Return bound, estimate, standard error and law."""
        if isinstance(rest, Remembered):
            known = (rest.question, rest.value, rest.radius)
            said = stated_again(self.estimates, query, value, *known, self.slack)
        else:
            radius = rest.radius if isinstance(rest, Measured) else rest
            said = stated(self.estimates, query, value, radius, self.slack)
        self.looked_at(said.error_bound)
        return said

    def expected(self, query: Any, value: Any, rest: float | Measured | Remembered) -> Any:
        """Return the expected error, by what had been released."""
        if isinstance(rest, Remembered):
            return self.expectations.again(query, value, rest)
        if isinstance(rest, Measured):
            return self.expectations.measured(query, rest)
        return self.expectations.told(query, value, radius=rest)

    @property
    def purchases(self) -> int:
        """How many there were."""
        return max(0, len(self.expectations.predictors) - 1)


@final
@attrs.frozen(eq=False)
class Worked(AnswerContext):
    """The same of answers whose bound is known already: `rest` is (Stated, rest of `context`).

    How many measured answers were left then is not known.
    """

    context: SessionContext

    @property
    def n(self) -> int:
        return self.context.n

    @property
    def n_bound(self) -> int:
        return self.context.n_bound

    @property
    def of_what(self) -> str:
        return self.context.of_what

    @property
    def beta(self) -> float | None:
        return self.context.beta

    @property
    def private(self) -> bool:
        return self.context.private

    @property
    def left(self) -> None:
        return None

    def asked(self, rest: Any) -> None:
        """Such answers hold their question."""

    def stated(self, query: Any, value: Any, rest: tuple[Stated, Any]) -> Stated:
        return rest[0]

    def expected(self, query: Any, value: Any, rest: tuple[Stated, Any]) -> Any:
        return self.context.expected(query, value, rest[1])


@final
@attrs.frozen(eq=False)
class Columns:
    """Answers to a batch while they are given: arrays that runs of it fill one after the other.

    Attributes are those of `Answers`; `start` is the place in the batch of the first entry of the arrays.
    """

    values: Floats
    codes: np.ndarray[Any, Any]
    radii: Floats
    released: Floats
    turned: np.ndarray[Any, Any]
    roundings: dict[int, float]
    given: dict[int, Answer]
    context: list[tuple[int, SessionContext]]
    reasons: np.ndarray[Any, Any]
    versions: np.ndarray[Any, Any]
    start: int = 0

    @classmethod
    def empty(cls, count: int) -> "Columns":
        """Return room for so many answers."""
        return cls(
            np.zeros(count),
            np.zeros(count, np.uint8),
            np.zeros(count),
            np.zeros(count),
            np.zeros(count, np.bool_),
            {},
            {},
            [],
            np.zeros(count, np.uint8),
            np.zeros(count, np.int32),
        )

    def part(self, start: int, stop: int) -> "Columns":
        """Return the room for a part of them."""
        cut = slice(start, stop)
        return Columns(
            self.values[cut],
            self.codes[cut],
            self.radii[cut],
            self.released[cut],
            self.turned[cut],
            self.roundings,
            self.given,
            self.context,
            self.reasons[cut],
            self.versions[cut],
            self.start + start,
        )

    def rest_on(self, context: SessionContext) -> None:
        """Enter the context of the answers from here on, until another is entered."""
        if not self.context or self.context[-1][1] is not context:
            self.context.append((self.start, context))

    def put(self, places: Any, values: Any, code: int, radius: float, reasons: Any) -> None:
        """Enter answers that are no repeats."""
        self.values[places] = self.released[places] = values
        self.codes[places], self.radii[places], self.reasons[places] = code, radius, reasons
        if self.context:
            self.versions[places] = self.context[-1][1].purchases

    def give(self, place: int, answer: Answer) -> None:
        """Enter an answer as it was given."""
        self.put(place, answer.value, STATUSES.index(answer.status), math.inf, REASONS.index(answer.reason))
        self.given[self.start + place] = answer

    def recall(self, places: Any, recalled: Recalled, queries: Queries) -> None:
        """Enter repeats of earlier batches."""
        self._repeat(places, recalled.values[places], recalled.radii[places], recalled.turned[places])
        self.versions[places] = recalled.versions[places]
        if queries.rounding > 0.0 or recalled.roundings:
            for place in places.tolist():
                self.roundings[self.start + place] = recalled.roundings.get(place, 0.0)

    def repeat(self, places: Any, first: Any, queries: Queries) -> None:
        """Enter repeats of answers that stand at `first` among these."""
        turned = queries.complements[places] != queries.complements[first]
        self._repeat(places, self.values[first], self.radii[first], turned)
        self.versions[places] = self.versions[first]
        if queries.rounding > 0.0:
            for place, rounding in zip(places.tolist(), queries.roundings[first].tolist(), strict=True):
                self.roundings[self.start + place] = rounding

    def _repeat(self, places: Any, released: Floats, radii: Floats, turned: Any) -> None:
        self.values[places] = np.where(turned, 1.0 - released, released)
        self.codes[places], self.radii[places], self.reasons[places] = REPEAT, radii, KNOWN
        self.released[places], self.turned[places] = released, turned


@final
@attrs.frozen(eq=False, repr=False)
class Answers(Sequence[Answer], Framed):
    """Answers to a batch, in its order: a sequence of `Answer` that is held as columns.

    Attributes:
        queries: What was asked.
        values: Shape (m,). Fractions of records.
        private: False: simulated noise was used, the answers are NOT PRIVATE.
    """

    queries: Queries
    values: Floats
    _context: SessionContext  # of the last
    _codes: np.ndarray[Any, Any]  # places in STATUSES
    _radii: Floats
    _released: Floats  # of a repeat: the value of its first answer
    _turned: np.ndarray[Any, Any]  # of a repeat: whether it was first asked as one minus this query
    _roundings: dict[int, float]  # of a repeat: of the query as first asked, where it may differ
    _given: dict[int, Answer]  # hard ones, as they are
    _contexts: list[tuple[int, SessionContext]]  # by the place of the first answer that rests on it
    _reasons: np.ndarray[Any, Any]  # places in REASONS
    _versions: np.ndarray[Any, Any]  # purchases by which each was told

    @classmethod
    def of(cls, queries: Queries, columns: Columns, context: SessionContext) -> "Answers":
        """Return the answers to all queries of a batch, of which the last rests on `context`."""
        return cls(
            queries,
            columns.values,
            context,
            columns.codes,
            columns.radii,
            columns.released,
            columns.turned,
            columns.roundings,
            columns.given,
            columns.context,
            columns.reasons,
            columns.versions,
        )

    @property
    def private(self) -> bool:
        """False: simulated noise."""
        return self._context.private

    def __len__(self) -> int:
        return len(self.values)

    @property
    def counts(self) -> Floats:
        """n times the values, (m,)."""
        return self._context.n * self.values

    @property
    def statuses(self) -> np.ndarray[Any, Any]:
        """Label of each, (m,) strings."""
        return np.asarray(np.array(STATUSES)[self._codes])

    @property
    def reasons(self) -> np.ndarray[Any, Any]:
        """`Answer.reason` of each, (m,) strings; empty where there is none."""
        return np.asarray(np.array([reason or "" for reason in REASONS])[self._reasons])

    @cached_property
    def bounds(self) -> Floats:
        """`Answer.error_bound` of each, (m,): computed now, from the facts of when each answer was given."""
        if self._context.estimates is not None or self._context.slack:
            result = np.array([self._stated(place)[0] for place in range(len(self))])
        else:
            far = np.maximum(self.values, 1.0 - self.values)
            first = np.maximum(self._released, 1.0 - self._released)
            result = np.minimum(np.minimum(self._radii, first), far)
            result[(self._codes == UNTESTED) & np.isinf(self._radii)] = math.inf
            rounded = (
                {*self._given}
                | {place for place, query in self.queries.others if query.rounding}
                | {*self._roundings}
            )
            for group in self.queries.boxes:
                if group.roundings is not None:
                    rounded.update(group.places[group.roundings > 0.0].tolist())
            for place in rounded:
                result[place] = self._stated(place)[0]
        result.flags.writeable = False
        if len(result):
            self._context.looked_at(float(result.max(where=np.isfinite(result), initial=0.0)))
        return result

    @cached_property
    def expected_errors(self) -> Floats:
        """`Answer.expected_error` of each, (m,), NaN where it is None: worked out now, by facts of then."""
        expectations = self._context.expectations
        result = expectations.many(self.queries, self.values, self._versions, self._radii)
        measured = np.flatnonzero(self._codes == REPEAT).tolist() if expectations.numbers else ()
        for place in (*self._given, *measured):
            error = self._expected(place)
            result[place] = np.nan if error is None else error
        result.flags.writeable = False
        return result

    def _expected(self, place: int) -> Any:
        given = self._given.get(place)
        if given is not None:
            return given.expected_error
        expectations, version = self._context.expectations, int(self._versions[place])
        question = self.queries[place]
        number = expectations.numbers.get(question.key) if self._codes[place] == REPEAT else None
        if number is not None:
            return expectations.measured(question, number, version)
        return expectations.told(question, float(self.values[place]), version, float(self._radii[place]))

    def _stated(self, place: int) -> Stated:
        given = self._given.get(place)
        if given is not None:
            return given.stated
        question, value, radius = self.queries[place], float(self.values[place]), float(self._radii[place])
        if self._codes[place] != REPEAT:
            return stated(self._context.estimates, question, value, radius, self._context.slack)
        first = attrs.evolve(
            question,
            complement=question.complement ^ bool(self._turned[place]),
            rounding=self._roundings.get(place, question.rounding),
        )
        estimates, released = self._context.estimates, float(self._released[place])
        return stated_again(estimates, question, value, first, released, radius, self._context.slack)

    @overload
    def __getitem__(self, place: int) -> Answer: ...
    @overload
    def __getitem__(self, place: slice) -> list[Answer]: ...
    def __getitem__(self, place: int | slice) -> Answer | list[Answer]:
        if isinstance(place, slice):
            return [self[at] for at in range(len(self))[place]]
        place = range(len(self))[place]  # IndexError beyond
        if place in self._given:
            return self._given[place]
        value = float(self.values[place])
        status = STATUSES[int(self._codes[place])]
        return Answer.deferred(
            value, status, self._placed(place), place, reason=REASONS[int(self._reasons[place])]
        )

    def __iter__(self) -> Iterator[Answer]:
        starts, context = {start for start, _ in self._contexts}, self._placed(0)
        columns = zip(self.values.tolist(), self._codes.tolist(), self._reasons.tolist(), strict=True)
        for place, (value, code, reason) in enumerate(columns):
            if place in starts:
                context = self._placed(place)
            if place in self._given:
                yield self._given[place]
                continue
            yield Answer.deferred(value, STATUSES[code], context, place, reason=REASONS[reason])

    def _placed(self, place: int) -> "_Placed":
        """Return what the answer at a place rests on."""
        at = bisect_right(self._contexts, place, key=lambda one: one[0]) - 1
        return _Placed(self, self._contexts[at][1] if at >= 0 else None)

    @property
    def costs(self) -> Floats:
        """`Answer.cost` of each, (m,)."""
        result = np.zeros(len(self))
        for place, answer in self._given.items():
            result[place] = answer.cost
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return the columns value, count, status, reason, error_bound, expected_error, cost, private."""
        return {
            "value": self.values,
            "count": self.counts,
            "status": self.statuses,
            "reason": self.reasons,
            "error_bound": self.bounds,
            "expected_error": self.expected_errors,
            "cost": self.costs,
            "private": np.full(len(self), self.private),
        }

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        found = np.bincount(self._codes, minlength=len(STATUSES)).tolist()
        said = ", ".join(f"{many} {name}" for many, name in zip(found, STATUSES, strict=True) if many)
        return f"Answers({len(self):,}: {said}{stamp})"

    def _repr_html_(self) -> str:
        shown = [*range(len(self))]
        if len(self) > 2 * SHOWN + 1:
            shown = [*shown[:SHOWN], *shown[-SHOWN:]]
        told = answer_rows([self[place] for place in shown])
        rows: list[list[Any]] = [[place, *row] for place, row in zip(shown, told, strict=True)]
        left_out = len(self) - len(shown)
        gap = (SHOWN, left_out) if left_out else None
        parts = [
            table(["", *answer_head(self._context.of_what)], rows, left=2, longest=LONGEST_QUERY, gap=gap)
        ]
        if left_out:
            more = "see to_dict(), values, counts, bounds"
            parts.append(note(f"{left_out:,} between them are not shown: {more}"))
        return card(f"{len(self):,} answers", *parts, private=self.private)


@final
@attrs.frozen(eq=False)
class _Placed(AnswerContext):
    """What answers of a batch rest on: of each `rest` is its place."""

    answers: Answers
    context: SessionContext | None

    @property
    def n(self) -> int:
        return self.answers._context.n

    @property
    def n_bound(self) -> int:
        return self.answers._context.n_bound

    @property
    def of_what(self) -> str:
        return self.answers._context.of_what

    @property
    def beta(self) -> float | None:
        return self.answers._context.beta

    @property
    def private(self) -> bool:
        return self.answers.private

    @property
    def left(self) -> int | None:
        return None if self.context is None else self.context.left

    def asked(self, rest: int) -> Query:
        return self.answers.queries[rest]

    def stated(self, query: Any, value: Any, rest: int) -> Stated:
        said = self.answers._stated(rest)
        self.answers._context.looked_at(said.error_bound)
        return said

    def expected(self, query: Any, value: Any, rest: int) -> Any:
        return self.answers._expected(rest)
