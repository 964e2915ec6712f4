"""Means and sums of an attribute, with bounds made of those of the linear answers behind them.

Proof: docs/theory/queries.md, 1.8, 1.11; docs/theory/within.md, 14.6.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, NoReturn, Protocol, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.ask.bind import as_condition
from onlineic.display.html import card, facts
from onlineic.display.text import (
    FEW,
    around,
    of_bins,
    records,
    records_bound,
    shortened,
    sure,
    to_its_bound,
    upward,
    usually_and_provably,
)
from onlineic.domain.attributes import Attribute, Binned, IntegerRange
from onlineic.domain.dates import Dates
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit
from onlineic.errors import (
    InvalidQueryError,
    TooLargeError,
    shown,
)
from onlineic.queries.algebra import JOINT_CELLS
from onlineic.queries.answers import LONGEST_QUERY, Answer, MadeOfAnswers, made_of
from onlineic.queries.combined import Combined
from onlineic.queries.expressions import Expression, weights, where
from onlineic.questions.formulas import Leaf, Number
from onlineic.questions.linear import (
    FLOATS,
    AnsweringLinear,
    Found,
    Where,
    allowed,
    asked_together,
    check_answering,
    check_ends,
    counted,
    most_allowed,
    narrowing,
    nobody,
    too_few,
)
from onlineic.slips import public

LEAST = 0.5  # records that a mean is about: of fewer, as they are estimated, nothing is told
FINEST = 2.0**-21  # of a bin: half a step, to which values are rounded first
Aggregate = Literal["count", "mean", "sum", "variance"]


@public
@final
@attrs.frozen(order=False)
class Derived(MadeOfAnswers, Combined):
    """One number that was worked out from a few released answers.

    Attributes:
        name: What was asked, such as "mean(age)".
        value: In the units of the attribute.
        error_bound: Half-width around `value` that holds the exact number, at the attribute's values or
            midpoints, with probability `confidence`; inf where `few_records`.
        confidence: 1 - beta: of one answer its own, of several that of all the session's answers at once.
            Where the session has none for these, 1 - m beta for m answers, each with a bound of its own.
        bias: How far values in bins may put it off, in the units of `value`: beside `error_bound`, and with
            the same probability. Of bins with midpoints, how far these may be from the values; of a number
            between two ends, the most by which the rounding of parts to ends can move any table; what sharing
            out the rows of a person with several can do is in neither bound (theory 1.7). 0 where the
            attribute's values are exact. Of a clipped attribute what lies beyond its ends counts as them: how
            far beyond is in neither bound.
        count, count_bound: Records that it is about, those that meet the condition and have a value, with
            their own half-width. None of what arithmetic made.
        answers: What it was made of.
        expected_error: Root-mean-square error that is expected of `value`, in its units: to first order, and
            as if the errors of the answers were independent. They mostly rise together, which makes that of a
            mean smaller. Nothing promises it. None where it is unknown of one of them.
        few_records: Whether a mean or variance is over no more records than twice their error: then it could
            be anything, and only `expected_error` says what it is worth.
        part, part_bound: Of a share, the records of `count` that meet its condition, with their own
            half-width.
        number: What arithmetic goes on with.
    """

    name: str
    value: float
    error_bound: float
    confidence: float
    bias: float
    count: float | None
    count_bound: float | None
    answers: tuple[Answer, ...]
    expected_error: float | None = None
    few_records: bool = False
    part: float | None = None
    part_bound: float | None = None
    number: Number | None = attrs.field(default=None, eq=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all that it says as plain values, which `json.dumps` takes, but for its answers.

        A bound that is infinite is None.
        """
        left_out = {"answers", "number", *(() if self.part is not None else ("part", "part_bound"))}
        said = attrs.asdict(self, recurse=False, filter=lambda field, _: field.name not in left_out)
        said |= {"private": self.private, "cost": self.cost}
        return said if math.isfinite(self.error_bound) else said | {"error_bound": None}

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else repr(self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a derived answer has no truth value: compare its value instead.")

    def as_number(self) -> Number:
        """Return what arithmetic goes on with."""
        if self.number is not None:
            return self.number
        expected = math.nan if self.expected_error is None else self.expected_error
        return Number.of(
            Leaf.stated(
                np.array([self.value]),
                np.array([self.error_bound]),
                self.confidence,
                np.array([expected]),
                self.bias,
                np.array([self.few_records]),
                self.answers,
            )
        )

    @classmethod
    def of_number(cls, name: str, number: Number) -> "Derived":
        """Return what arithmetic made, as it is told."""
        told = number.stated()
        expected = float(told.expected[0])
        return cls(
            name=name,
            value=float(told.values[0]),
            error_bound=float(told.bounds[0]),
            confidence=told.confidence,
            bias=float(told.bias[0]),
            count=None,
            count_bound=None,
            answers=told.answers,
            expected_error=None if math.isnan(expected) else expected,
            few_records=bool(told.few[0]),
            number=number,
        )

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high): where the exact number lies, with probability `confidence`, but for `bias`."""
        return self.value - self.error_bound, self.value + self.error_bound

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        bias = f" and {upward(self.bias)} for values in bins" if self.bias else ""
        about = "" if self.count is None else f"{self.count:.1f} {self.of_what}, "
        if self.part is not None:
            about = f"{self.part:.1f} of {about}"
        return (
            f"{self.name} = {around(self.value, self.error_bound, expected=self.expected_error)}{bias} "
            f"({FEW if self.few_records else sure(self.confidence)}), "
            f"{about}{counted(self.answers)}{stamp}"
        )

    def _repr_html_(self) -> str:
        value = to_its_bound(self.value, self.error_bound)
        said = [("error", usually_and_provably(self.expected_error, self.error_bound, self.confidence))]
        if self.few_records:
            said.append((FEW, "no more than twice their error"))
        if self.bias:
            said.append(of_bins(self.bias))
        for what, count, bound in (
            ("part", self.part, self.part_bound),
            ("about", self.count, self.count_bound),
        ):
            if count is not None and bound is not None:
                said.append((what, f"{records(count)} ± {records_bound(bound)} {self.of_what}"))
        title = f"{shortened(self.name, LONGEST_QUERY)} = {value}"
        return card(title, facts(said), made_of(self.answers), private=self.private)


def mean(session: AnsweringLinear, attribute: str, where: Where = None) -> Derived:
    """Return the mean of an attribute among the records that meet a condition and have a value.

    Two linear queries are asked, or one for the mean of all records: with u = (v - lo)/(hi - lo) for the
    values lo .. hi that the condition allows, a = E[u] and b = E[1 - u] over the records that count, it is
    lo + (hi - lo) a/(a + b). With |a - a'|, |b - b'| <= e the ratio r is off by at most e/(a + b); with
    expected errors e_a, e_b by hypot(e_a (1 - r), e_b r)/(a + b). Arguments: `Answering.mean`.
    """
    return _of_numbers(session, "mean", attribute, where)


def total(session: AnsweringLinear, attribute: str, where: Where = None) -> Derived:
    """Return the sum of an attribute over the records that meet a condition and have a value.

    With u as in `mean` and f_1 the share of the records that count, it is n ((hi - lo) E[u] + lo f_1), off by
    at most n ((hi - lo) e_u + |lo| e_1). The second query is not needed for the sum over all records.
    """
    return _of_numbers(session, "sum", attribute, where)


def variance(session: AnsweringLinear, attribute: str, where: Where = None) -> Derived:
    """Return the variance of an attribute among the records that meet a condition and have a value.

    The mean square distance from the mean, over all of them and not one less (VAR_POP). With u, a and b as in
    `mean` and s = E[u^2], over the records that count, it is (hi - lo)^2 (s/(a + b) - (a/(a + b))^2). Two
    linear queries are asked of all records, three of others. Arguments and errors: `Answering.variance`.

    Of a number with two ends a bin the square is known at the ends, and taken linear between them, which is
    too large by at most h^2/4, h the width: half of that is taken off, and `bias` is the other half, with
    what the rounding of records to parts can move (theory 1.8). A value that stands for those within h of it,
    as a midpoint does, has a standard deviation that is off by h at most: `bias` is 2 h sd + h^2.
    """
    return _of_numbers(session, "variance", attribute, where)


def _of_numbers(session: AnsweringLinear, aggregate: Aggregate, attribute: str, where: Where) -> Derived:
    check_answering(session)
    where = as_condition(where, session.domain)
    numbers = Numbers.of(
        session.domain, attribute, where, n_public=not session.n_bound, unit=session.rounded_in
    )
    numbers.check(where)
    found = asked_together(session, numbers.asks(aggregate))
    name = aggregate + (f"({attribute})" if where is None else f"({attribute}, {shown(where, 100)})")
    made = worked_out(numbers, aggregate, session.n, found)
    if math.isnan(made.value):
        raise too_few(session.n, name, made.share, made.share_bound, found.answers)
    return derived(name, made, session.n, found)


def derived(
    name: str, made: "Made", n: int, found: Found, part: tuple[float, float] | None = None
) -> Derived:
    """Return a number that was worked out from answers, as a result; `part` is of a share."""
    return Derived(
        name=name,
        value=made.value,
        error_bound=made.bound,
        confidence=found.confidence,
        bias=made.bias,
        count=n * made.share,
        count_bound=n * made.share_bound,
        answers=found.answers,
        expected_error=None if math.isnan(made.expected) else made.expected,
        few_records=made.few,
        part=None if part is None else part[0],
        part_bound=None if part is None else part[1],
        number=Number.of(leaf_of(name.partition("(")[0], [made], found)),
    )


def leaf_of(kind: str, made: "Sequence[Made]", found: Found, parts: Sequence[slice] = (slice(None),)) -> Leaf:
    """Return numbers that were worked out from answers, as arithmetic goes on with them."""
    columns: dict[str, Any] = {
        name: np.array([getattr(one, name) for one in made])
        for name in ("value", "own", "joint", "expected", "bias", "few")
    }
    bounds = {"own": columns["own"], "joint": columns["joint"]}
    told = (columns["value"], bounds, columns["expected"], columns["bias"], columns["few"])
    return Leaf.of(kind, found, *told, parts)  # type: ignore[arg-type]


class Parts(NamedTuple):
    """The released numbers that a number is made of.

    Attributes:
        bounds: Of each, that hold together.
        errors: That are expected; none where they are unknown.
    """

    values: Sequence[float]
    bounds: Sequence[float]
    errors: Sequence[float] = ()


class Asks(Protocol):
    """What a number is made of: `Numbers`, or the two sides of a rate."""

    def worked_out(self, aggregate: str, n: int, parts: Parts) -> "Made":
        """Return what was made of what was asked."""


def worked_out(asks: Asks, aggregate: str, n: int, found: Found, part: slice = slice(None)) -> "Made":
    """Return what was made of some answers, with its bounds by both statements."""
    values, errors = found.values[part], found.errors[part]
    made = asks.worked_out(aggregate, n, Parts(values, found.bounds[part], errors))
    own, joint = (
        asks.worked_out(aggregate, n, Parts(values, [*map(float, way[part])], errors)).bound
        if len(way) and np.isfinite(way[part]).all()
        else math.inf
        for way in (found.own, found.joint)
    )
    return made._replace(own=own, joint=joint)


class Made(NamedTuple):
    """A number that was worked out from a few released ones.

    Attributes:
        value, bound, bias: As of `Derived`; NaN where nothing can be said.
        share, share_bound: Of the records that count.
        expected: NaN where it is unknown.
        own, joint: Its bounds by either statement of `Found`.
    """

    value: float
    bound: float
    bias: float
    share: float
    share_bound: float
    expected: float = math.nan
    few: bool = False
    own: float = math.inf
    joint: float = math.inf


@final
@attrs.frozen(eq=False)
class Numbers:
    """An attribute as numbers, under a condition: which codes count, and their places between two ends.

    Attributes:
        held: Shape (size,). Codes that have a value and may meet the condition.
        low, high: Least and largest of their values.
        shares: Shape (size,). (value - low)/(high - low), 0 where no code is held.
        bias: Largest distance of a held code's value from those that it stands for.
        everybody: Whether all records count, and their number is public: if not it is asked for, as of a
            condition.
        width: Of the widest bin between two ends, 0 where there are none.
        wrong: Between two ends, the largest share of a record that rounding can put at the wrong end.
        cells: Number of records that rounding can put there in all cells that may meet the condition, inf
            where that is not known.
        fewest: Parts that are rounded together, at least; less than one of them is put at the wrong end.
    """

    attribute: str
    condition: Expression | None
    held: Bools
    low: float
    high: float
    shares: Floats
    bias: float
    everybody: bool
    width: float = 0.0
    wrong: float = 1.0
    cells: float = math.inf
    fewest: int = 1

    @property
    def squares(self) -> Floats:
        """The squares of the shares, (size,)."""
        return self.shares**2

    @classmethod
    def of(
        cls,
        domain: Domain,
        attribute: str,
        where: Where,
        n_public: bool = True,
        unit: Unit | None = None,
    ) -> "Numbers":
        axis = domain.axis(attribute)
        kind = domain.attributes[axis]
        values, reach = _valued(attribute, kind)
        condition = narrowing(domain, where)
        check_ends(domain, condition)
        held = np.arange(kind.size) < len(values)
        held &= allowed(domain, axis, condition)
        kept = held[: len(values)]
        if not np.isfinite(values[kept]).all():
            raise InvalidQueryError(
                f"{attribute} must have finite bins to have midpoints, got one without an end; leave it out "
                "by a condition such as below(..), or ask for a quantile."
            )
        low, high = float(values[kept].min(initial=math.inf)), float(values[kept].max(initial=-math.inf))
        shares = np.zeros(kind.size)
        if high > low:
            shares[: len(values)][kept] = np.clip((values[kept] - low) / (high - low), 0.0, 1.0)
        everybody = n_public and condition is None and bool(held.all())
        bias = float(reach[kept].max(initial=0.0))
        width, rounded = 0.0, (1.0, math.inf, 1)
        if isinstance(kind, Binned) and kind.ends:
            bins = held[: len(values)].reshape(-1, 2).any(axis=1)
            width = float(np.diff(np.asarray(kind.edges, np.float64))[bins].max(initial=0.0))
            if unit is not None:  # else it may be made of several tables, each rounded by itself
                rounded = _rounded(domain, axis, condition, int(bins.sum()), unit)
        return cls(attribute, condition, held, low, high, shares, bias, everybody, width, *rounded)

    def check(self, condition: Where) -> None:
        """Raise `InvalidQueryError` if nobody can count."""
        if not self.held.any():
            raise nobody(self.attribute, condition)

    def asks(self, aggregate: str) -> list[Expression]:
        """Return the queries of a mean, a sum or a variance; of all records, one says how many they are."""
        squared = [self.weighted(self.squares)] if aggregate == "variance" else []
        if self.everybody:
            return [self.weighted(self.shares), *squared]
        others = np.where(self.held, 1.0 if aggregate == "sum" else 1.0 - self.shares, 0.0)
        return [self.weighted(self.shares), self.weighted(others), *squared]

    def worked_out(self, aggregate: str, n: int, parts: Parts) -> Made:
        """Return what was made of what was asked, its bounds and expected errors."""
        values, bounds, errors = parts
        width, size = self.high - self.low, max(abs(self.low), abs(self.high))
        errors = errors or [math.nan] * len(values)
        if aggregate == "sum":
            (part, share, *_), (error, off, *_) = (*values, 1.0), (*bounds, 0.0)
            value = n * (width * part + self.low * share)
            bound = n * sum(factor * by for factor, by in ((width, error), (abs(self.low), off)) if factor)
            bound += n * FLOATS * size
            expected, most = n * _together((width, self.low), (*errors, 0.0)), n * (share + off)
            each = self._off(most)
            return Made(value, bound, each * most if each else 0.0, share, off, expected)
        counted = len(values) - (aggregate == "variance")
        share = 1.0 if self.everybody else sum(values[:counted])
        off = 0.0 if self.everybody else sum(bounds[:counted])
        few = not self.everybody and not share > 2.0 * max(bounds[:counted])
        work = self._variance if aggregate == "variance" else self._mean
        made = work(n, Parts(values, bounds, errors), share, off) if n * share >= LEAST else None
        if made is None or (few and math.isnan(made.expected)):
            return Made(math.nan, math.inf, 0.0, share, off)
        return made._replace(bound=math.inf, few=math.isfinite(off)) if few else made

    def _mean(self, n: int, parts: Parts, share: float, off: float) -> Made:
        """Return the mean of so large a share."""
        values, bounds, errors = parts
        width, part = self.high - self.low, min(max(values[0] / share, 0.0), 1.0)
        value = min(max(self.low + width * values[0] / share, self.low), self.high)
        most = max(value - self.low, self.high - value)
        bound = min(width * max(bounds) / share if width else 0.0, most)
        bound += FLOATS * max(abs(self.low), abs(self.high))
        slopes = (1.0,) if self.everybody else (1.0 - part, part)
        expected = between_ends(value, self.low, self.high, width * _together(slopes, errors) / share)
        return Made(value, bound, self._off(n * (share - off)), share, off, expected)

    def _off(self, records: float) -> float:
        """Return how far bins may put off the mean of so many records, or of more."""
        return self.bias + self.width * (self._wrong(records) + FINEST)

    def _wrong(self, records: float) -> float:
        """Return the largest share of so many records, or of more, that may lie at the wrong end of bins."""
        return min(self.wrong, self.cells / records if records > 0.0 else math.inf)

    def _variance(self, n: int, asked: Parts, share: float, off: float) -> Made:
        """Return the variance of so large a share."""
        values, bounds, errors = asked
        (*parts, square), (*part_bounds, off_square) = values, bounds
        mean, width = min(max(parts[0] / share, 0.0), 1.0), self.high - self.low
        of_mean = min(1.0, max(part_bounds) / share)
        most = min(1.0, mean + of_mean)
        bound = (off_square + most * off) / share + of_mean * (mean + most)
        excess = self.width**2 / 8.0  # half of the most that squares between two ends are too large by
        largest = width**2 / 4.0
        exact = min(max(width**2 * (square / share - mean**2), 0.0), largest + 2.0 * excess)
        value = min(max(exact - excess, 0.0), largest)
        farthest = max(value, largest - value)
        bound = min(width**2 * bound + FLOATS * width**2, farthest)
        # derivatives of s/t - (a/t)^2 by a, b and s, where t is a + b, or 1
        by_share = 0.0 if self.everybody else 2.0 * mean**2 - square / share
        slopes = (by_share - 2.0 * mean, *([by_share] if len(parts) > 1 else []), 1.0)
        expected = between_ends(value, 0.0, largest, width**2 * _together(slopes, errors) / share)
        if not self.width:
            bias = 2.0 * self.bias * math.sqrt(value + bound) + self.bias**2
            return Made(value, bound, bias, share, off, expected)
        moved = self.width * (math.sqrt(self._wrong(n * (share - off)) / self.fewest) + FINEST)
        deviation = math.sqrt(value + bound + excess) + self.width / 2.0
        bias = excess + 2.0 * deviation * moved + moved**2
        return Made(value, bound, bias, share, off, expected)

    def sides(self, codes: Floats) -> Expression:
        """Return the weights of every code that is held, without the condition."""
        return where({self.attribute: weights(np.where(self.held, codes, 0.0))})

    def moved(self, records: float) -> float:
        """Return how far bins may put off the mean place in [0, 1] of so many records, or of more."""
        return self._off(records) / (self.high - self.low) if self.high > self.low else 0.0

    def weighted(self, codes: Floats) -> Expression:
        """Return the query that weighs every code, among the records that meet the condition."""
        whole = bool((codes == 1.0).all())
        if self.condition is None:
            return where() if whole else where({self.attribute: weights(codes)})
        return self.condition if whole else where({self.attribute: weights(codes)}) & self.condition


def _together(slopes: Sequence[float], errors: Sequence[float]) -> float:
    """Return the expected error of a sum of numbers times slopes, as if their errors were independent."""
    terms = [abs(slope) * error for slope, error in zip(slopes, errors, strict=False) if slope]
    return math.sqrt(sum(term**2 for term in terms))


def between_ends(value: float, low: float, high: float, expected: float) -> float:
    """Return an expected error, or that of a number which lies anywhere between two ends, if that is less."""
    if math.isnan(expected) or not high > low:
        return expected
    return min(expected, math.sqrt(((high - value) ** 3 + (value - low) ** 3) / (3.0 * (high - low))))


def _rounded(
    domain: Domain, axis: int, condition: Expression | None, bins: int, unit: Unit
) -> tuple[float, float, int]:
    """Return `wrong`, `cells` and `fewest` of a number between two ends, of so many bins (theory 1.8)."""
    ends = [isinstance(kind, Binned) and kind.ends for kind in domain.attributes]
    alone, units, cells = unit.person is None, unit.units, math.inf
    wrong, fewest = (1.0 / units, units) if alone else (1.0, 1)
    if not any(ends[axis + 1 :]):
        others = (place for place in range(len(ends)) if place != axis)
        cells = bins * math.prod(most_allowed(domain, place, condition) for place in others) / units
        if before := sum(ends[:axis]):  # the ends of these share out a record first
            wrong, fewest = min(1.0, wrong * 2.0 ** min(before, 64)), 1
    return wrong, cells, fewest


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
        if kind.ends:  # values are shared out between them: none stands for another
            return np.repeat(edges, 2)[1:-1], np.zeros(2 * len(edges) - 2)
        first, last = edges[:-1], edges[1:] - 1.0 if kind.integer else edges[1:]
        with np.errstate(invalid="ignore"):  # of two infinite ends
            return 0.5 * (first + last), 0.5 * (last - first)
    if isinstance(kind, Dates):
        raise InvalidQueryError(
            f"{name} must be a number for a mean or a sum, got dates; ask for a median, a quantile or "
            f"counts, or load a number such as the days since {kind.first} besides."
        )
    if isinstance(kind.labels[0], bool):  # a rate
        values = np.array(kind.labels, np.float64)
        return values, np.zeros(len(values))
    raise InvalidQueryError(
        f"{name} must be a number for a mean or a sum, got labels; ask for counts, or build the domain with "
        f"{name}=range(..) or binned(..)."
    )
