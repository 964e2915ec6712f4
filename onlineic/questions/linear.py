"""What questions made of linear ones share: who answers them, conditions, and bounds that hold at once."""

import abc
import math
import uuid
import weakref
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.ask.bind import as_condition
from onlineic.display.text import around
from onlineic.domain.attributes import Binned
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    TooFewRecordsError,
    check_kind,
    shown,
)
from onlineic.queries.answers import Answer
from onlineic.queries.cuts import is_long
from onlineic.queries.expressions import Expression, where
from onlineic.queries.query import Query
from onlineic.queries.within import Within

Where = Expression | str | dict[str, Any] | None  # a text in SQL, a dict as of JSON
LONGEST_TITLE = 60  # letters of a name in the title of a figure
FLOATS = 2.0**-46  # relative error of the few dozen float operations behind a derived number


class Estimate(NamedTuple):
    """A linear estimate from released tables, before anything is made to be no less than 0: fractions of n.

    Attributes:
        value: Without bias, for a query that was chosen before the tables were released; it can be below 0.
        standard_error: For such a query.
        error_bound: Half-width around `value`, in the session's event, for whichever query of its family.
    """

    value: float
    standard_error: float
    error_bound: float


@final
@attrs.frozen(eq=False)
class PublicFacts:
    """What is public of all that answers linear queries.

    Attributes:
        domain: The public domain.
        n: The number of records; of a table of persons their number; where it is private, as released.
        beta: Failure probability of every stated bound.
        n_bound: How far `n` may be from the number of records, except with probability beta: 0 where that is
            public.
        answers_tables: Whether a cross table, `marginal(..)`, can be asked; if not, its cells one by one.
        rounded_in: In whose parts numbers were rounded to ends of bins, all at once; None if it is unknown.
        within: How exact its answers are to be, if that was said: a part of what each could be.
        finest: The finest wish that whoever asks may have of a number of records, as a fraction of all.
    """

    domain: Domain
    n: int
    beta: float
    n_bound: int = 0
    answers_tables: bool = True
    rounded_in: Unit | None = None
    within: Within | None = None
    finest: float = 0.0

    def of_asker(self, finest: float) -> "PublicFacts":
        """Return the facts as one has them who may wish answers no more exactly than this."""
        wish = None if self.within is None else self.within.at_least(finest)
        return attrs.evolve(self, within=wish, finest=finest)


class HasFacts(abc.ABC):
    """What has public facts: each is read from `facts`."""

    @property
    @abc.abstractmethod
    def facts(self) -> PublicFacts:
        """What is public of it now."""

    @property
    def domain(self) -> Domain:
        """The public domain."""
        return self.facts.domain

    @property
    def n(self) -> int:
        """The public number of records, or persons; where it is private, as released."""
        return self.facts.n

    @property
    def n_bound(self) -> int:
        """How far `n` may be from the number of records: 0 where that is public."""
        return self.facts.n_bound

    @property
    def rounded_in(self) -> Unit | None:
        """In whose parts numbers were rounded to ends of bins, all at once; None if it is unknown."""
        return self.facts.rounded_in

    @property
    def beta(self) -> float:
        """Failure probability of every stated bound."""
        return self.facts.beta

    @property
    def answers_tables(self) -> bool:
        """Whether a cross table, `marginal(..)`, can be asked; if not, its cells one by one."""
        return self.facts.answers_tables


class AnsweringLinear(HasFacts):
    """What answers linear queries."""

    def unprojected(self, queries: Iterable[Any]) -> list[Estimate | None]:
        """Return what tables that were released say of each query by themselves, None where nothing is known.

        Free: nothing is asked or read.
        """
        return [None for _ in queries]

    @abc.abstractmethod
    def answer(self, query: Any) -> Answer:
        """Answer one query."""

    def answer_many(self, queries: Any) -> Any:
        """Answer queries in order."""
        return [self.answer(query) for query in queries]

    def answer_within(self, queries: Iterable[Any], within: Within) -> list[Answer]:
        """Answer the queries of one call, each within a wish.

        Raises:
            InvalidParameterError: Of all but a session, which alone buys for a wish.
        """
        raise InvalidParameterError(
            f"within must be None here, got {shown(within)}: a session alone buys for a wish; ask it itself."
        )

    def believed(self, queries: Iterable[Any]) -> list[float]:
        """Return what is said of each query before it is asked, fractions: of all but a session one half."""
        return [0.5 for _ in queries]

    def snapshot(self, queries: Iterable[Any], answers: Iterable[Answer]) -> list[Answer]:
        """Return these answers as the hypothesis says all of them now, each with a bound of its own.

        What is worked out from several numbers is read from one hypothesis: some of them may have been told
        by an earlier one. Those that differ are untested. Free; here the answers themselves.
        """
        return list(answers)

    @abc.abstractmethod
    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds that hold for these answers all at once, with probability 1 - beta, or inf."""


@final
@attrs.frozen(eq=False)
class Found:
    """Answers to a few queries as they were told, and numbers with bounds that hold together.

    Attributes:
        errors: Sequence of float. `expected_error` of the numbers, NaN where it is unknown.
        own, joint: Shape (m,). The two statements of which `bounds` are one: those of the answers themselves,
            and those in the event in which all answers of the session hold, inf where it has none.
        event: The event of `joint`, and the probability that it fails.
    """

    answers: tuple[Answer, ...]
    values: Sequence[float]
    bounds: Any
    confidence: float
    errors: Any = ()
    own: Any = ()
    joint: Any = ()
    event: tuple[Hashable, float] = ("", 1.0)

    def failures(self, part: slice = slice(None)) -> dict[Hashable, float]:
        """Return of each answer with a bound of its own the probability that this fails."""
        own, alone = np.ravel(self.own), len(self.answers) < np.size(self.own)  # tables, and not each cell
        bounds = [own.max(initial=0.0)] * len(self.answers) if alone else own[part].tolist()
        pairs = zip(self.answers[part], bounds, strict=False)
        return {known_as(answer): self.event[1] for answer, bound in pairs if bound > 0.0}


def check_answering(session: object) -> None:
    """Raise `InvalidParameterError` unless this answers linear queries."""
    check_kind("session", session, AnsweringLinear, remedy="open OnlineIC(data, budget)")


def asked_together(session: AnsweringLinear, queries: Sequence[Expression]) -> Found:
    """Ask a few queries at once; their numbers are of one hypothesis, the answers as they were told."""
    answers = session.answer_many(list(queries))
    found = bounded(session, queries, answers, session.snapshot(queries, answers))
    if len(answers) == 1:  # what is made of it with others may go by the event of all
        found = attrs.evolve(found, joint=session.joint_bounds(queries, answers))
    return found


def bounded(
    session: AnsweringLinear,
    queries: Sequence[Expression],
    answers: Sequence[Answer],
    now: Sequence[Answer] | None = None,
) -> Found:
    """Return answers with bounds of one stated probability; the numbers of `now`, if they are given.

    Each answer's own bound fails with at most beta: m of them together fail with up to m beta. In the
    session's own event, which fails with at most beta, all its answers hold at once; its bounds are those of
    the worst answer that was ever given, and so they grow. Those are taken that are smaller for the
    probability with which they hold: a question that was answered is not refused later, because another
    answer was worse. Both statements hold whichever is taken: what is said to hold with probability p, and
    does not, has at most probability 1 - p. (Both kinds of statements fail with up to (m + 1) beta.)
    """
    now = answers if now is None else now
    own = np.array([answer.error_bound for answer in now])
    each = _found(answers, now, own, max(0.0, 1.0 - session.beta * int((own > 0.0).sum())))
    several = len(answers) > 1
    jointly = session.joint_bounds(queries, answers) if several else np.full(len(answers), math.inf)
    if several and now is not answers:
        moved = np.abs([float(one) - float(other) for one, other in zip(now, answers, strict=True)])
        jointly = np.minimum(jointly + moved, session.joint_bounds(queries, now))
    found = each
    if (jointly > 0.0).sum() > 1 and np.isfinite(jointly).all():  # constants are exact
        found = min(_found(answers, now, jointly, 1.0 - session.beta), each, key=for_its_probability)
    return attrs.evolve(found, own=own, joint=jointly, event=event_of(session))


_EVENTS: "weakref.WeakKeyDictionary[Any, Hashable]" = weakref.WeakKeyDictionary()


def event_of(session: AnsweringLinear) -> tuple[Hashable, float]:
    """Return what the event is called in which all answers of a session hold, and how often it fails."""
    if session not in _EVENTS:
        _EVENTS[session] = uuid.uuid4().hex
    return _EVENTS[session], session.beta


def known_as(answer: Answer) -> Hashable:
    """Return what the released number of an answer is known as: a repeat is the same number."""
    question = answer.query
    return id(answer) if question is None else (question.key, np.asarray(answer.value).tobytes())


def for_its_probability(found: Found) -> float:
    """Return the largest bound over the probability with which all hold."""
    return float(np.max(found.bounds)) / found.confidence if found.confidence > 0.0 else math.inf


def _found(answers: Sequence[Answer], now: Sequence[Answer], bounds: Floats, confidence: float) -> Found:
    errors = [known_error(answer) for answer in now]
    return Found(tuple(answers), [float(answer) for answer in now], bounds.tolist(), confidence, errors)


def known_error(answer: Answer) -> Any:
    """Return what an answer is expected to err by, NaN where that is unknown."""
    error = answer.expected_error
    return math.nan if error is None else error


def too_few(n: int, name: str, share: float, bound: float, answers: tuple[Answer, ...]) -> TooFewRecordsError:
    """Return the error of a question about too few records, or without a bound, with its answers."""
    if math.isfinite(bound):
        said = f"{around(n * share, n * bound)} of {n}: too few for this accuracy; widen the condition."
    else:
        said = "untested answers without a bound: the budget is used up; open a session with a larger one."
    error = TooFewRecordsError(f"{name} must be over more records than twice their error, got {said}")
    error.answers = answers
    return error


def counted(answers: Sequence[Answer]) -> str:
    """Return how many answers these are, in words."""
    return f"{len(answers)} answer{'s' * (len(answers) != 1)}"


def checked_condition(domain: Domain, condition: object) -> Expression:
    """Return a condition if it is one that may be combined with others; texts and dicts are read."""
    condition = as_condition(condition, domain)
    if type(condition) is Expression:
        return condition
    remedy = "hand over the expression that it was bound from" if isinstance(condition, Query) else ""
    raise InvalidQueryError(
        f"where must be a condition made by where(..), got a {type(condition).__name__}; "
        f"{remedy or 'write where(attribute=condition)'}."
    )


def narrowing(domain: Domain, condition: object) -> Expression | None:
    """Return a condition, None where everybody meets it: weights that were rounded to 1 may say less."""
    if condition is None:
        return None
    expression = checked_condition(domain, condition)
    query = expression.bind(domain)
    return None if query.constant == 1 << query.grid_bits and not query.rounding else expression


def check_ends(domain: Domain, condition: Expression | None) -> None:
    """Raise `InvalidQueryError` if a condition tells the ends of a bin apart, between which values lie."""
    for factor in () if condition is None else condition.bind(domain).factors:
        for place, axis in enumerate(factor.axes):
            kind = domain.attributes[axis]
            if isinstance(kind, Binned) and kind.ends:
                held = np.moveaxis(factor.weights(domain), place, 0)[: 2 * len(kind.edges) - 2]
                if (held[::2] != held[1::2]).any():
                    raise InvalidQueryError(
                        f"{domain.names[axis]} must weigh both ends of a bin alike in a condition of a mean, "
                        "a sum or a variance, got one that tells them apart; cut it at edges of bins."
                    )


def allowed(domain: Domain, axis: int, condition: Expression | None) -> Bools:
    """Return which codes of an axis may meet a condition."""
    return (where() if condition is None else condition).bind(domain).possible(axis)


def allowed_ends(domain: Domain, axis: int, condition: Expression | None) -> tuple[int, int]:
    """Return the half-open range of codes from the first that may meet a condition to the last."""
    return (where() if condition is None else condition).bind(domain).ends(axis)


def most_allowed(domain: Domain, axis: int, condition: Expression | None) -> int:
    """Return how many codes of an axis may meet a condition, at most; of long ones none is written."""
    if is_long(domain.attributes[axis]):
        low, high = allowed_ends(domain, axis, condition)
        return high - low
    return int(allowed(domain, axis, condition).sum())


def nobody(attribute: str, condition: object) -> InvalidQueryError:
    """Return the error of a condition that nobody with a value meets."""
    return InvalidQueryError(
        f"{attribute} must have a value that the condition allows, got {shown(condition, 100)}, "
        "which nobody with a value can meet; widen it."
    )
