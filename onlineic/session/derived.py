"""Questions that are made of several linear ones: means and sums.

All are functions of a session's public face: they ask it linear queries, on its budget, and work on what it
releases. Their bounds follow from those of the answers, and say with which probability.
"""

import abc
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.attributes import Attribute, Binned, IntegerRange
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidQueryError, TooFewRecordsError, TooLargeError
from onlineic.queries.algebra import JOINT_CELLS
from onlineic.queries.answers import Answer
from onlineic.queries.expressions import Expression, weights, where
from onlineic.queries.query import Query

FLOATS = 2.0**-46  # relative error of the few dozen float operations behind a derived number


class Answering(abc.ABC):
    """What answers linear queries, and so questions that are made of them."""

    @property
    @abc.abstractmethod
    def domain(self) -> Domain:
        """The public domain."""

    @property
    @abc.abstractmethod
    def n(self) -> int:
        """The public number of records."""

    @property
    @abc.abstractmethod
    def beta(self) -> float:
        """Failure probability of every stated bound."""

    @abc.abstractmethod
    def answer(self, query: Any) -> Answer:
        """Answer one query."""

    @abc.abstractmethod
    def answer_many(self, queries: Any) -> Any:
        """Answer queries in order."""

    @abc.abstractmethod
    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds that hold for these answers all at once, with probability 1 - beta, or inf."""

    @final
    def mean(self, attribute: str, where: Expression | None = None) -> "Derived":
        """Return the mean of an attribute among the records that meet a condition: `session.mean`."""
        return mean(self, attribute, where)

    @final
    def sum(self, attribute: str, where: Expression | None = None) -> "Derived":
        """Return the sum of an attribute over the records that meet a condition: `session.total`."""
        return total(self, attribute, where)


@final
@attrs.frozen
class Derived:
    """One number that was worked out from a few released answers.

    Attributes
    ----------
    name : str
        What was asked, such as "mean(age)".
    value : float
        In the units of the attribute.
    error_bound : float
        Half-width around `value` that holds the exact number, at the attribute's values or midpoints, with
        probability `confidence`.
    confidence : float
        1 - beta: of one answer its own, of several that of all the session's answers at once. Where the
        session has none for these, 1 - m beta for m answers, each with a bound of its own.
    bias : float
        How far midpoints of bins may be from the values in them, in the units of `value`: beside
        `error_bound`, and with the same probability. 0 where the attribute's values are exact.
    count, count_bound : float
        Records that it is about, those that meet the condition and have a value, with their own half-width.
    answers : tuple of Answer
        What it was made of.
    """

    name: str
    value: float
    error_bound: float
    confidence: float
    bias: float
    count: float
    count_bound: float
    answers: tuple[Answer, ...]

    @property
    def private(self) -> bool:
        """False: simulated noise was used, the number is NOT PRIVATE."""
        return all(answer.private for answer in self.answers)

    def __float__(self) -> float:
        return self.value

    def __bool__(self) -> NoReturn:
        raise TypeError("a derived answer has no truth value: compare its value instead.")

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        bias = f" and {self.bias:.3g} for midpoints" if self.bias else ""
        return (
            f"{self.name} = {self.value:.6g} ± {self.error_bound:.3g}{bias} ({self.confidence:.4g} sure), "
            f"{self.count:.1f} records, {len(self.answers)} answer{'s' * (len(self.answers) != 1)}{stamp}"
        )


def mean(session: Answering, attribute: str, where: Expression | None = None) -> Derived:
    """Return the mean of an attribute among the records that meet a condition and have a value.

    Two linear queries are asked, or one for the mean of all records: with u = (v - lo)/(hi - lo) for the
    values lo .. hi that the condition allows, a = E[u] and b = E[1 - u], both over the records that count.
    The mean is lo + (hi - lo) a/(a + b).

    Parameters
    ----------
    session : Answering
    attribute : str
        A range of integers, or a number in bins, which stand for their midpoints.
    where : Expression, optional

    Raises
    ------
    TooFewRecordsError
        If a + b is no more than twice its error: then the mean could be anything. The answers are paid, and
        stand in the exception.
    InvalidQueryError
        If the attribute has no numbers, or nobody can meet the condition.

    Notes
    -----
    With true a', b' and |a - a'|, |b - b'| <= e the ratio r' = a'/(a' + b') lies in [0, 1], and
    (a + b)(r - r') = (a - a')(1 - r') - (b - b') r', so that |r - r'| <= e/(a + b).
    """
    numbers = _Numbers.of(session.domain, attribute, where)
    low, high, width = numbers.low, numbers.high, numbers.high - numbers.low
    if numbers.everybody:
        found = _asked(session, [numbers.weighted(numbers.shares)])
        (part,), (error,), total, total_error = found.values, found.bounds, 1.0, 0.0
    else:
        rest = numbers.weighted(np.where(numbers.held, 1.0 - numbers.shares, 0.0))
        found = _asked(session, [numbers.weighted(numbers.shares), rest])
        part, total = found.values[0], sum(found.values)
        error, total_error = max(found.bounds), sum(found.bounds)
        if not total > 2.0 * error:
            raise _too_few(session, f"mean({attribute})", total, total_error, found)
    value = min(max(low + width * part / total, low), high)
    bound = min(width * error / total, max(value - low, high - value)) + FLOATS * max(abs(low), abs(high))
    return Derived(
        name=_named("mean", attribute, where),
        value=float(value),
        error_bound=float(bound),
        confidence=found.confidence,
        bias=numbers.bias,
        count=session.n * total,
        count_bound=session.n * total_error,
        answers=found.answers,
    )


def total(session: Answering, attribute: str, where: Expression | None = None) -> Derived:
    """Return the sum of an attribute over the records that meet a condition and have a value.

    With u as in `mean` and f_1 the share of the records that count, it is n ((hi - lo) E[u] + lo f_1), off by
    at most n ((hi - lo) e_u + |lo| e_1). The second query is not needed for the sum over all records.

    Parameters
    ----------
    session : Answering
    attribute : str
    where : Expression, optional

    Raises
    ------
    InvalidQueryError
        If the attribute has no numbers, or nobody can meet the condition.
    """
    numbers = _Numbers.of(session.domain, attribute, where)
    n, low, width = session.n, numbers.low, numbers.high - numbers.low
    if numbers.everybody:
        found = _asked(session, [numbers.weighted(numbers.shares)])
        (part,), (error,), share, share_error = found.values, found.bounds, 1.0, 0.0
    else:
        everyone = numbers.weighted(numbers.held.astype(np.float64))
        found = _asked(session, [numbers.weighted(numbers.shares), everyone])
        (part, share), (error, share_error) = found.values, found.bounds
    size = max(abs(low), abs(numbers.high))
    return Derived(
        name=_named("sum", attribute, where),
        value=float(n * (width * part + low * share)),
        error_bound=float(n * (width * error + abs(low) * share_error + FLOATS * size)),
        confidence=found.confidence,
        bias=numbers.bias * n * min(1.0, share + share_error),
        count=n * share,
        count_bound=n * share_error,
        answers=found.answers,
    )


@final
@attrs.frozen(eq=False)
class _Numbers:
    """An attribute as numbers, under a condition: which codes count, and their places between two ends.

    Attributes
    ----------
    held : (size,) bool
        Codes that have a value and may meet the condition.
    low, high : float
        Least and largest of their values.
    shares : (size,) float64
        (value - low)/(high - low), 0 where no code is held.
    bias : float
        Largest distance of a held code's value from those that it stands for.
    everybody : bool
        Whether all records count.
    """

    attribute: str
    condition: Expression | None
    held: np.ndarray[Any, Any]
    low: float
    high: float
    shares: Floats
    bias: float
    everybody: bool

    @classmethod
    def of(cls, domain: Domain, attribute: str, where: Expression | None) -> "_Numbers":
        axis = domain.axis(attribute)
        kind = domain.attributes[axis]
        values, reach = _valued(attribute, kind)
        held = np.arange(kind.size) < len(values)
        allowed, condition = _allowed(domain, axis, where)
        held &= allowed
        if not held.any():
            raise InvalidQueryError(
                f"{attribute} must have a value that the condition allows, got {where!r:.100}, "
                "which nobody with a value can meet; widen it."
            )
        kept = held[: len(values)]
        if not np.isfinite(values[kept]).all():
            raise InvalidQueryError(
                f"{attribute} must have finite bins to have midpoints, got one without an end; leave it out "
                "by a condition such as below(..), or ask for a quantile."
            )
        low, high = float(values[kept].min()), float(values[kept].max())
        shares = np.zeros(kind.size)
        if high > low:
            shares[: len(values)][kept] = np.clip((values[kept] - low) / (high - low), 0.0, 1.0)
        everybody = condition is None and bool(held.all())
        return cls(attribute, condition, held, low, high, shares, float(reach[kept].max()), everybody)

    def weighted(self, codes: Floats) -> Expression:
        """Return the query that weighs every code, among the records that meet the condition."""
        whole = bool((codes == 1.0).all())
        if self.condition is None:
            return where() if whole else where({self.attribute: weights(codes)})
        return self.condition if whole else where({self.attribute: weights(codes)}) & self.condition


def _valued(name: str, kind: Attribute) -> tuple[Floats, Floats]:
    """Return the number of every code but the missing one, and how far it may be from what it stands for."""
    if kind.size > JOINT_CELLS:
        raise TooLargeError(
            f"{name} must have at most {JOINT_CELLS:,} values for a mean or a sum, got {kind.size:,}; "
            "cut it into bins."
        )
    if isinstance(kind, IntegerRange):
        values = np.arange(kind.start, kind.stop).astype(np.float64)
        return values, np.zeros(len(values))
    if isinstance(kind, Binned):
        edges = np.asarray(kind.edges, np.float64)
        first, last = edges[:-1], edges[1:] - 1.0 if kind.integer else edges[1:]
        with np.errstate(invalid="ignore"):  # of two infinite ends
            return 0.5 * (first + last), 0.5 * (last - first)
    raise InvalidQueryError(
        f"{name} must be a number for a mean or a sum, got labels; ask for counts, or build the domain with "
        f"{name}=range(..) or binned(..)."
    )


def _allowed(
    domain: Domain, axis: int, condition: Expression | None
) -> tuple[np.ndarray[Any, Any], Expression | None]:
    """Return which codes of an axis may meet a condition, and the condition, None if everybody does."""
    allowed = np.ones(domain.shape[axis], np.bool_)
    if condition is None:
        return allowed, None
    query = checked_condition(condition).bind(domain)
    if query.constant is not None:
        everybody = query.constant == 1 << query.grid_bits
        return allowed & bool(query.constant), None if everybody else condition
    for factor in query.factors:
        if factor.axes == (axis,) and (not query.complement or len(query.factors) == 1):
            held = factor.weights(domain)
            allowed &= held < (1 << factor.bits) if query.complement else held > 0
    return allowed, condition


def checked_condition(condition: object) -> Expression:
    """Return a condition if it is one that may be combined with others."""
    if type(condition) is Expression:
        return condition
    remedy = "hand over the expression that it was bound from" if isinstance(condition, Query) else ""
    raise InvalidQueryError(
        f"where must be a condition made by where(..), got a {type(condition).__name__}; "
        f"{remedy or 'write where(attribute=condition)'}."
    )


@final
@attrs.frozen(eq=False)
class _Found:
    """Answers to a few queries, as numbers with bounds that hold together."""

    answers: tuple[Answer, ...]
    values: tuple[float, ...]
    bounds: tuple[float, ...]
    confidence: float


def _asked(session: Answering, queries: Sequence[Expression]) -> _Found:
    """Ask a few queries, and return their answers with bounds of one stated probability.

    One bound holds with probability 1 - beta. Of several the ones of the session's own event are taken, in
    which all its answers hold at once: m of the others fail together with up to m beta. Which of the two is
    taken does not depend on how large they are: the smaller of two bounds fails more often than each.
    """
    answers = tuple(session.answer_many(list(queries)))
    bounds = np.array([answer.error_bound for answer in answers])
    uncertain = int((bounds > 0.0).sum())  # constants are exact
    failing = session.beta * uncertain
    if uncertain > 1:
        jointly = session.joint_bounds(queries, answers)
        if np.isfinite(jointly).all():
            bounds, failing = jointly, session.beta
    return _Found(
        answers,
        tuple(float(answer) for answer in answers),
        tuple(bounds.tolist()),
        max(0.0, 1.0 - failing),
    )


def _too_few(session: Answering, name: str, share: float, bound: float, found: _Found) -> TooFewRecordsError:
    error = TooFewRecordsError(
        f"{name} must be over more records than twice their error, got {session.n * share:.1f} ± "
        f"{session.n * bound:.3g} of {session.n}: too few for this accuracy; widen the condition."
    )
    error.answers = found.answers
    return error


def _named(aggregate: str, attribute: str, condition: Expression | None) -> str:
    return (
        f"{aggregate}({attribute})" if condition is None else f"{aggregate}({attribute}, {condition!r:.100})"
    )
