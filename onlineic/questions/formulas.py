"""Numbers made of a few released ones by arithmetic, with what their bounds and expected errors become.

Every released number lies in an interval, and all intervals hold together with a stated probability. What is
made of the numbers lies where the intervals allow: of sums and of quotients of sums the largest and the least
value are exact, of other operations they are those of interval arithmetic. Nothing is assumed of how errors
depend on each other.

Proof: docs/theory/queries.md, 1.11.
"""

import math
import operator as op
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats, Ints
from onlineic.queries.answers import Answer
from onlineic.questions.linear import FLOATS, Found, known_as

Way = Literal["own", "joint"]
WAYS: tuple[Way, Way] = ("own", "joint")
MOST_STEPS = 64  # towards the ends of a quotient, each of which is nearer than the last
TINY = 2.0**-1000


class Span(NamedTuple):
    """The least and the largest that each number can be, (rows,)."""

    low: Floats
    high: Floats


@final
@attrs.frozen(eq=False)
class Leaf:
    """Released numbers, or what was worked out of them, one a row.

    Attributes:
        key: Equal for the same numbers.
        values: NaN where nothing can be said.
        own: Half-widths by the bounds of the answers themselves.
        joint: Half-widths in the event in which all answers of the session hold; inf where it has none.
        expected: Root-mean-square errors, NaN where unknown.
        bias: How far values in bins may put each off besides.
        few: Whether a number is over few records, and has no bound.
        failures: Of each answer with a bound of its own the probability that it fails: by row, or once for
            all of them.
        event: The event of `joint`, and the probability that it fails.
        answers: What they were made of, as `failures`.
    """

    key: Hashable
    values: Floats
    own: Floats
    joint: Floats
    expected: Floats
    bias: Floats
    few: Bools
    failures: tuple[Mapping[Hashable, float], ...]
    event: tuple[Hashable, float]
    answers: tuple[tuple[Answer, ...], ...]

    @classmethod
    def of(
        cls,
        kind: Hashable,
        found: Found,
        values: Floats,
        bounds: Mapping[Way, Floats],
        expected: Floats,
        bias: Floats,
        few: Bools,
        parts: Sequence[slice] = (slice(None),),
    ) -> "Leaf":
        """Return what was worked out of answers.

        Args:
            kind: What was worked out, beside the answers that it was made of.
            parts: Which answers each row was made of, or once which all were.
        """
        known = tuple(known_as(answer) for answer in found.answers)
        return cls(
            key=(kind, found.event[0], known, values.tobytes()),
            values=values,
            own=bounds["own"],
            joint=bounds["joint"],
            expected=expected,
            bias=np.broadcast_to(bias, values.shape),
            few=few,
            failures=tuple(found.failures(part) for part in parts),
            event=found.event,
            answers=tuple(found.answers[part] for part in parts),
        )

    @classmethod
    def stated(
        cls, values: Floats, bounds: Floats, confidence: float, expected: Floats, bias: float, few: Bools,
        answers: tuple[Answer, ...],
    ) -> "Leaf":  # fmt: skip
        """Return numbers of which nothing is known but what is told of them."""
        key = ("stated", tuple(map(known_as, answers)), values.tobytes())
        return cls(
            key=key,
            values=values,
            own=bounds,
            joint=np.where(bounds > 0.0, math.inf, 0.0),
            expected=expected,
            bias=np.full(values.shape, bias),
            few=few,
            failures=({key: 1.0 - confidence} if confidence < 1.0 else {},),
            event=(key, 1.0 - confidence),
            answers=(answers,),
        )

    def rows(self, places: Ints) -> "Leaf":
        """Return some of the numbers; one may stand in several rows."""
        parts: dict[str, Any] = {
            name: getattr(self, name)[places]
            for name in ("values", "own", "joint", "expected", "bias", "few")
        }
        if len(self.answers) > 1:
            parts |= {
                name: tuple(getattr(self, name)[place] for place in places.tolist())
                for name in ("failures", "answers")
            }
        return attrs.evolve(self, key=(self.key, places.tobytes()), **parts)

    def radius(self, way: Way) -> Floats:
        """Return the half-widths of one statement."""
        return self.own if way == "own" else self.joint


@final
@attrs.frozen
class _Rows:
    """Takes some rows of what has one for each, and all of what is the same in each."""

    places: Ints

    def of(self, held: Any) -> Any:
        array = np.asarray(held)
        return array if array.ndim == 0 or len(array) == 1 else array[self.places]


@final
@attrs.frozen(eq=False)
class _Sum:
    """A constant and a sum of multiples of leaves, by row."""

    constant: Floats
    terms: Mapping[Hashable, Floats]

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def plus(self, other: "_Sum") -> "_Sum":
        terms = dict(self.terms)
        for key, factor in other.terms.items():
            terms[key] = terms[key] + factor if key in terms else factor
        kept = {key: factor for key, factor in terms.items() if np.any(factor)}
        return _Sum(self.constant + other.constant, kept)

    def times(self, factor: Floats) -> "_Sum":
        kept = {key: own * factor for key, own in self.terms.items()} if np.any(factor) else {}
        return _Sum(self.constant * factor, kept)

    def rows(self, some: _Rows, named: Mapping[Hashable, Hashable]) -> "_Sum":
        terms = {named[key]: some.of(factor) for key, factor in self.terms.items()}
        return _Sum(some.of(self.constant), terms)

    def same(self, other: "_Sum") -> bool:
        """Return whether two are one, whatever the numbers."""
        return (
            self.terms.keys() == other.terms.keys()
            and bool(np.all(self.constant == other.constant))
            and all(bool(np.all(factor == other.terms[key])) for key, factor in self.terms.items())
        )

    def value(self, leaves: Mapping[Hashable, Leaf]) -> Floats:
        found = np.asarray(self.constant, np.float64)
        for key, factor in self.terms.items():
            found = found + factor * leaves[key].values
        return found

    def span(self, leaves: Mapping[Hashable, Leaf], way: Way) -> Span:
        value, reach = self.value(leaves), np.zeros(())
        for key, factor in self.terms.items():
            reach = reach + _product(np.abs(factor), leaves[key].radius(way))
        return Span(value - reach, value + reach)


@final
@attrs.frozen(eq=False)
class Number:
    """A number of each row, made of leaves.

    Attributes:
        values: NaN where nothing can be said.
        slopes: Of every leaf the derivative by it.
        leaves: By key.
        spans: By way what it can be.
        bias: How far values in bins may put each off besides.
        few: Whether a part is over few records.
        top, bottom: If it is a quotient of sums, these; else None.
    """

    values: Floats
    slopes: Mapping[Hashable, Floats]
    leaves: Mapping[Hashable, Leaf]
    spans: Mapping[Way, Span]
    bias: Floats
    few: Bools
    top: _Sum | None = None
    bottom: _Sum | None = None

    # -- what it is made of --

    @classmethod
    def of(cls, leaf: Leaf) -> "Number":
        """Return what was released."""
        one = np.ones(1)
        top = _Sum(np.zeros(1), {leaf.key: one})
        return _quotient(top, _Sum(one, {}), {leaf.key: leaf}, leaf.few, leaf.bias)

    @classmethod
    def constant(cls, value: float) -> "Number":
        """Return a number that everybody knows; NaN is NULL."""
        held = np.array([value], np.float64)
        return _quotient(_Sum(held, {}), _Sum(np.ones(1), {}), {}, np.zeros(1, np.bool_), np.zeros(1))

    def row(self, place: int) -> "Number":
        """Return the number of one row."""
        return self.rows(np.array([place]))

    def rows(self, places: Ints) -> "Number":
        """Return the numbers of some rows."""
        leaves = {
            key: leaf if len(leaf.values) == 1 else leaf.rows(places) for key, leaf in self.leaves.items()
        }
        named = {key: leaf.key for key, leaf in leaves.items()}
        some = _Rows(places)
        return Number(
            some.of(self.values),
            {named[key]: some.of(slope) for key, slope in self.slopes.items()},
            {named[key]: leaf for key, leaf in leaves.items()},
            {way: Span(some.of(self.spans[way].low), some.of(self.spans[way].high)) for way in WAYS},
            some.of(self.bias),
            some.of(self.few),
            None if self.top is None else self.top.rows(some, named),
            None if self.bottom is None else self.bottom.rows(some, named),
        )

    # -- arithmetic --

    def plus(self, other: "Number", sign: float = 1.0) -> "Number":
        """Return the sum, or with -1 the difference."""
        leaves, few = self._with(other)
        bias = self.bias + other.bias
        if self.top and self.bottom and other.top and other.bottom:
            turned = other.top.times(np.array([sign]))
            if self.bottom.same(other.bottom):
                return _quotient(self.top.plus(turned), self.bottom, leaves, few, bias)
            if self.bottom.is_constant and other.bottom.is_constant:
                one = self.top.times(1.0 / self.bottom.constant)
                two = turned.times(1.0 / other.bottom.constant)
                return _quotient(one.plus(two), _Sum(np.ones(1), {}), leaves, few, bias)
            for whole, part, factor in ((self, turned, other), (other, self.top, self)):
                if (
                    factor.top
                    and factor.bottom
                    and whole.bottom
                    and not factor.top.terms
                    and not factor.bottom.terms
                ):
                    added = whole.bottom.times(part.constant / factor.bottom.constant)
                    top = (self.top if whole is self else turned).plus(added)
                    return _quotient(top, whole.bottom, leaves, few, bias)
        spans = {way: _added(self.spans[way], other.spans[way], sign) for way in WAYS}
        slopes = _slopes((self, np.ones(1)), (other, np.array([sign])))
        return Number(self.values + sign * other.values, slopes, leaves, spans, bias, few)

    def times(self, other: "Number") -> "Number":
        """Return the product."""
        leaves, few = self._with(other)
        for one, two in ((self, other), (other, self)):
            if one._is_known and two.top and two.bottom:
                return _quotient(
                    two.top.times(one.values), two.bottom, leaves, few, np.abs(one.values) * two.bias
                )
            whole = two.bottom is not None and two.bottom.is_constant
            # a part of it, times all of it
            if one.top and one.bottom and two.bottom and two.top and whole and one.bottom.same(two.top):
                top = one.top.times(1.0 / two.bottom.constant)
                bias = np.abs(two.values) * one.bias + np.abs(one.values) * two.bias
                return _quotient(top, _Sum(np.ones(1), {}), leaves, few, bias)
        slopes = _slopes((self, other.values), (other, self.values))
        return self._made(other, _multiplied, self.values * other.values, slopes, leaves, few)

    def over(self, other: "Number") -> "Number":
        """Return the quotient; NULL where the divisor is 0."""
        leaves, few = self._with(other)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.top and self.bottom and other.top and other.bottom:
                bias = self._moved(other, _divided)
                if self.bottom.is_constant and other.bottom.is_constant:
                    factor = other.bottom.constant / self.bottom.constant
                    return _quotient(self.top.times(factor), other.top, leaves, few, bias)
                if self.bottom.same(other.bottom):
                    return _quotient(self.top, other.top, leaves, few, bias)
                if other.top.is_constant and other.bottom.is_constant:
                    factor = other.bottom.constant / other.top.constant
                    return _quotient(self.top.times(factor), self.bottom, leaves, few, bias)
            values = np.where(other.values == 0.0, np.nan, self.values / other.values)
            slopes = _slopes((self, 1.0 / other.values), (other, -self.values / other.values**2))
        return self._made(other, _divided, values, slopes, leaves, few)

    def scaled(self, factor: float) -> "Number":
        """Return a multiple."""
        return self.times(Number.constant(factor))

    # -- functions of one number --

    def rising(self, act: Callable[[Floats], Floats], slope: Floats | float = 1.0) -> "Number":
        """Return a function that nowhere falls."""
        wide = self._wide
        spans = {way: Span(act(self.spans[way].low), act(self.spans[way].high)) for way in WAYS}
        moved = _reach({way: Span(act(wide[way].low), act(wide[way].high)) for way in WAYS}, spans)
        slopes = _slopes((self, np.asarray(slope, np.float64)))
        return Number(act(self.values), slopes, self.leaves, spans, moved, self.few)

    def absolute(self) -> "Number":
        """Return the number without its sign."""
        wide = self._wide
        spans = {way: _unsigned(self.spans[way]) for way in WAYS}
        moved = _reach({way: _unsigned(wide[way]) for way in WAYS}, spans)
        slopes = _slopes((self, np.sign(self.values)))
        return Number(np.abs(self.values), slopes, self.leaves, spans, moved, self.few)

    def rounded(self, digits: int) -> "Number":
        """Return the number to so many digits after the point, a half away from 0, as SQL rounds."""
        return self.rising(lambda values: _rounded(values, digits))

    def root(self) -> "Number":
        """Return the square root; NULL below 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = 0.5 / np.sqrt(self.values)
            found = self.rising(lambda values: np.sqrt(np.maximum(values, 0.0)), slope)
        return attrs.evolve(found, values=np.where(self.values < 0.0, np.nan, found.values))

    def inside(self, low: float, high: float) -> "Number":
        """Return the number cut to where it lies whatever the data."""
        spans = {
            way: Span(np.maximum(one.low, low), np.minimum(one.high, high)) for way, one in self.spans.items()
        }
        values = np.clip(self.values, low, high)
        return attrs.evolve(self, values=values, spans=spans, top=None, bottom=None)

    def unless(self, other: "Number") -> "Number":
        """Return NULL where it is another number: NULLIF."""
        met = self.values == other.values
        if not met.any():
            return self
        values = np.where(met, np.nan, self.values)
        return attrs.evolve(self, values=values, top=None, bottom=None)

    def filled(self, other: "Number") -> "Number":
        """Return another number where it is NULL: COALESCE.

        Of what nothing can be said is no true NULL: nothing bounds what stands for it.
        """
        unknown = np.isnan(self.values)
        if not unknown.any():
            return self
        leaves, few = self._with(other)
        unknown, values = np.broadcast_arrays(unknown, np.where(unknown, other.values, self.values))
        null = unknown & self.exact
        spans = {
            way: Span(
                np.where(null, other.spans[way].low, np.where(unknown, -math.inf, self.spans[way].low)),
                np.where(null, other.spans[way].high, np.where(unknown, math.inf, self.spans[way].high)),
            )
            for way in WAYS
        }
        slopes = _slopes((self, np.where(unknown, 0.0, 1.0)), (other, np.where(unknown, 1.0, 0.0)))
        return Number(
            values, slopes, leaves, spans, self.bias + other.bias, np.where(unknown, few & ~null, self.few)
        )

    def chosen(self, other: "Number", first: "Held") -> "Number":
        """Return this number where a condition holds, else another.

        Args:
            other: The other one.
            first: The condition.
        """
        leaves, sure = {**self.leaves, **other.leaves, **first.leaves}, first.sure
        held, values = np.broadcast_arrays(first.true, np.where(first.true, self.values, other.values))
        spans = {}
        for way in WAYS:
            (low, high), (other_low, other_high) = self.spans[way], other.spans[way]
            both = Span(np.fmin(low, other_low), np.fmax(high, other_high))
            spans[way] = Span(
                np.where(sure[way], np.where(held, low, other_low), both.low),
                np.where(sure[way], np.where(held, high, other_high), both.high),
            )
            # what is NULL in one case and a number in the other has no bound
            split = ~sure[way] & (np.isnan(self.values) != np.isnan(other.values))
            spans[way] = Span(
                np.where(split, -math.inf, spans[way].low), np.where(split, math.inf, spans[way].high)
            )
        slopes = _slopes((self, np.where(held, 1.0, 0.0)), (other, np.where(held, 0.0, 1.0)))
        bias = np.where(held, self.bias, other.bias)
        return Number(values, slopes, leaves, spans, bias, np.where(held, self.few, other.few))

    # -- what is told of it --

    @property
    def exact(self) -> Bools:
        """Whether nothing can put a number off, by row."""
        found = np.ones(np.shape(self.values), np.bool_)
        for leaf in self.leaves.values():
            found = found & (leaf.own == 0.0) & (leaf.joint == 0.0)
        return found

    @property
    def expected(self) -> Floats:
        """Root-mean-square errors to first order, as if those of the leaves were independent."""
        total = np.zeros(np.shape(self.values))
        for key, slope in self.slopes.items():
            total = np.hypot(total, _product(np.abs(slope), self.leaves[key].expected))
        return np.where(np.isnan(self.values), np.nan, total)

    def stated(self) -> "Stated":
        """Return the numbers with bounds, by the statement that is smaller for its probability."""
        ways = [self._stated(way) for way in WAYS]
        return min(ways, key=_for_its_probability)

    def _stated(self, way: Way) -> "Stated":
        low, high = self.spans[way]
        with np.errstate(invalid="ignore"):
            bounds = np.maximum(high - self.values, self.values - low)
        bounds = np.where(self.few | np.isnan(bounds), math.inf, bounds)
        bounds = np.where(bounds > 0.0, bounds * (1.0 + FLOATS) + FLOATS * np.abs(self.values), 0.0)
        bounds = np.where(np.isnan(self.values), np.where(self.exact, 0.0, math.inf), bounds)
        events = {key: beta for leaf in self.leaves.values() for key, beta in self._events(leaf, way)}
        confidence = max(0.0, 1.0 - math.fsum(events.values()))
        held = (answer for leaf in self.leaves.values() for one in leaf.answers for answer in one)
        answers = {id(answer): answer for answer in held}
        return Stated(
            self.values, bounds, self.expected, self.bias, self.few, confidence, tuple(answers.values())
        )

    @staticmethod
    def _events(leaf: Leaf, way: Way) -> Sequence[tuple[Hashable, float]]:
        if way == "own":
            return [pair for one in leaf.failures for pair in one.items()]
        return [leaf.event] if np.any(leaf.joint > 0.0) else []

    # -- parts --

    @property
    def _is_known(self) -> bool:
        return self.top is not None and not self.leaves

    @property
    def _wide(self) -> Mapping[Way, Span]:
        """What it can be, with what bins may put it off."""
        return {way: Span(self.spans[way].low - self.bias, self.spans[way].high + self.bias) for way in WAYS}

    def _with(self, other: "Number") -> tuple[dict[Hashable, Leaf], Bools]:
        return {**self.leaves, **other.leaves}, self.few | other.few

    def _moved(self, other: "Number", act: Callable[[Span, Span], Span]) -> Floats:
        """Return how far bins may put off an operation of two numbers."""
        if not (np.any(self.bias) or np.any(other.bias)):
            return np.zeros(1)
        spans = {way: act(self.spans[way], other.spans[way]) for way in WAYS}
        return _reach({way: act(self._wide[way], other._wide[way]) for way in WAYS}, spans)

    def _made(
        self, other: "Number", act: Callable[[Span, Span], Span], values: Floats,
        slopes: Mapping[Hashable, Floats], leaves: Mapping[Hashable, Leaf], few: Bools,
    ) -> "Number":  # fmt: skip
        spans = {way: act(self.spans[way], other.spans[way]) for way in WAYS}
        return Number(values, slopes, leaves, spans, self._moved(other, act), few)


@final
@attrs.frozen(eq=False)
class Stated:
    """Numbers as they are told, (rows,), with what is said of all of them."""

    values: Floats
    bounds: Floats
    expected: Floats
    bias: Floats
    few: Bools
    confidence: float
    answers: tuple[Answer, ...]

    def over(self, rows: int) -> "Stated":
        """Return as many numbers; a single one stands in every row."""

        def spread(held: Floats) -> Floats:
            return np.array(np.broadcast_to(held, rows), np.float64)

        few = np.array(np.broadcast_to(self.few, rows), np.bool_)
        return Stated(
            spread(self.values),
            spread(self.bounds),
            spread(self.expected),
            self.bias,
            few,
            self.confidence,
            self.answers,
        )


def _for_its_probability(stated: Stated) -> float:
    if not stated.confidence > 0.0:
        return math.inf
    known = stated.bounds[np.isfinite(stated.bounds)]
    worst = float(known.max(initial=0.0)) if len(known) else math.inf
    return (worst + TINY) / stated.confidence * (1.0 + len(stated.bounds) - len(known))


def _quotient(top: _Sum, bottom: _Sum, leaves: Mapping[Hashable, Leaf], few: Bools, bias: Floats) -> Number:
    """Return a quotient of sums, with the ends that the intervals of its leaves allow, exactly."""
    used = {key: leaves[key] for key in (*top.terms, *bottom.terms)}
    above, below = top.value(used), bottom.value(used)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(below == 0.0, np.nan, above / below)
        slopes = {
            key: (top.terms.get(key, 0.0) - values * bottom.terms.get(key, 0.0)) / below for key in used
        }
    spans = {way: _ends(top, bottom, used, way) for way in WAYS}
    shape = np.broadcast_shapes(np.shape(values), np.shape(bias), np.shape(few))
    return Number(
        np.broadcast_to(values, shape),
        slopes,
        used,
        spans,
        np.broadcast_to(bias, shape),
        np.broadcast_to(few, shape),
        top,
        bottom,
    )


def _ends(top: _Sum, bottom: _Sum, leaves: Mapping[Hashable, Leaf], way: Way) -> Span:
    """Return the least and the largest quotient; everything where the divisor may be 0.

    The largest quotient t is where the largest N - t D over the intervals is 0: N and D are of leaves that
    vary by themselves, and t rises from quotient to quotient until it stays (Dinkelbach 1967).
    """
    if bottom.is_constant:
        with np.errstate(divide="ignore", invalid="ignore"):
            return top.times(1.0 / bottom.constant).span(leaves, way)
    divisor = bottom.span(leaves, way)
    sure = (divisor.low > 0.0) | (divisor.high < 0.0)
    low, high = (_end(top, bottom, leaves, way, side) for side in (-1.0, 1.0))
    return Span(np.where(sure, low, -math.inf), np.where(sure, high, math.inf))


def _end(top: _Sum, bottom: _Sum, leaves: Mapping[Hashable, Leaf], way: Way, side: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        at = top.value(leaves) / bottom.value(leaves)
        turn = np.sign(bottom.value(leaves)) * side
        for _ in range(MOST_STEPS):
            above, below = np.asarray(top.constant), np.asarray(bottom.constant)
            for key, leaf in leaves.items():
                one, two = top.terms.get(key, 0.0), bottom.terms.get(key, 0.0)
                held = leaf.values + turn * np.sign(one - at * two) * _finite(leaf.radius(way))
                above, below = above + one * held, below + two * held
            found = above / below
            nearer = (found - at) * side > np.abs(at) * FLOATS
            endless = nearer  # of those that are not there yet
            if not nearer.any():
                break
            at = np.where(nearer, found, at)
    for key, leaf in leaves.items():
        moves = (np.asarray(top.terms.get(key, 0.0)) != 0.0) | (np.asarray(bottom.terms.get(key, 0.0)) != 0.0)
        endless = endless | (moves & ~np.isfinite(leaf.radius(way)))
    return np.where(endless, side * math.inf, at)


def _finite(radius: Floats) -> Floats:
    return np.where(np.isfinite(radius), radius, 0.0)


def _product(one: Floats, other: Floats) -> Floats:
    """Return products in which 0 times anything is 0."""
    with np.errstate(invalid="ignore"):
        return np.where((one == 0.0) | (other == 0.0), 0.0, one * other)


def _added(one: Span, other: Span, sign: float) -> Span:
    low, high = (other.low, other.high) if sign > 0.0 else (-other.high, -other.low)
    return Span(one.low + low, one.high + high)


def _multiplied(one: Span, other: Span) -> Span:
    ends = [_product(left, right) for left in one for right in other]
    return Span(np.min(np.broadcast_arrays(*ends), axis=0), np.max(np.broadcast_arrays(*ends), axis=0))


def _divided(one: Span, other: Span) -> Span:
    sure = (other.low > 0.0) | (other.high < 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        turned = Span(np.where(sure, 1.0 / other.high, -math.inf), np.where(sure, 1.0 / other.low, math.inf))
    found = _multiplied(one, turned)
    return Span(np.where(sure, found.low, -math.inf), np.where(sure, found.high, math.inf))


def _unsigned(span: Span) -> Span:
    across = (span.low < 0.0) & (span.high > 0.0)
    low, high = np.abs(span.low), np.abs(span.high)
    return Span(np.where(across, 0.0, np.minimum(low, high)), np.maximum(low, high))


def _reach(wide: Mapping[Way, Span], spans: Mapping[Way, Span]) -> Floats:
    """Return how much farther the ends of spans are with bins than without, at most."""
    found = np.zeros(1)
    with np.errstate(invalid="ignore"):
        for way in WAYS:
            for farther, end in ((spans[way].low, wide[way].low), (wide[way].high, spans[way].high)):
                found = np.maximum(found, np.where(np.isfinite(farther - end), farther - end, 0.0))
    return found


def _slopes(*parts: tuple[Number, Floats]) -> dict[Hashable, Floats]:
    """Return derivatives by the chain rule."""
    found: dict[Hashable, Floats] = {}
    for number, factor in parts:
        for key, slope in number.slopes.items():
            with np.errstate(invalid="ignore"):
                part = np.where(factor == 0.0, 0.0, slope * factor)
            found[key] = found[key] + part if key in found else part
    return found


def _rounded(values: Floats, digits: int) -> Floats:
    unit = 10.0**digits
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.abs(values) * unit
        found = np.sign(values) * np.floor(np.nextafter(scaled, math.inf) + 0.5) / unit
    return np.where(np.isfinite(values) & np.isfinite(found), found, values)


SIGNS: Mapping[str, Callable[[Number, Number], Number]] = {
    "+": lambda one, other: one.plus(other),
    "-": lambda one, other: one.plus(other, -1.0),
    "*": lambda one, other: one.times(other),
    "/": lambda one, other: one.over(other),
}
COMPARED: Mapping[str, Callable[[Floats, Floats], Bools]] = {
    "=": op.eq, "<>": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge,
}  # fmt: skip


@final
@attrs.frozen(eq=False)
class Held:
    """Of which rows a condition holds.

    Attributes:
        true: By what was released; of what is NULL nothing holds.
        sure: By way, whether it holds, or does not, whatever the bounds allow.
        leaves: What it rests on.
    """

    true: Bools
    sure: Mapping[Way, Bools]
    leaves: Mapping[Hashable, Leaf]

    @classmethod
    def known(cls, true: Bools) -> "Held":
        """Return a condition of which nothing is open."""
        return cls(true, {way: np.ones(np.shape(true), np.bool_) for way in WAYS}, {})


def joined(every: bool, parts: Sequence[Held]) -> Held:
    """Return a condition of which all parts must hold, or one: sure where a part alone decides."""
    true, sure, leaves = parts[0].true, dict(parts[0].sure), dict(parts[0].leaves)
    for part in parts[1:]:
        both = true & part.true if every else true | part.true
        for way in WAYS:
            alone = (sure[way] & (true != every)) | (part.sure[way] & (part.true != every))
            sure[way] = alone | (sure[way] & part.sure[way])
        true, leaves = both, {**leaves, **part.leaves}
    return Held(true, sure, leaves)


def compares(one: Number, sign: str, other: Number) -> Held:
    """Return of which rows two numbers compare so; nothing is sure of what is NULL."""
    difference = one.plus(other, -1.0)
    known = ~np.isnan(difference.values)
    sure: dict[Way, Bools] = {}
    for way in WAYS:
        low, high = difference.spans[way]
        apart = (low > 0.0) | (high < 0.0) | ((low == 0.0) & (high == 0.0))
        held = {
            "=": apart,
            "<>": apart,
            ">": (low > 0.0) | (high <= 0.0),
            ">=": (low >= 0.0) | (high < 0.0),
            "<": (high < 0.0) | (low >= 0.0),
            "<=": (high <= 0.0) | (low > 0.0),
        }
        sure[way] = held[sign] & known
    return Held(COMPARED[sign](difference.values, np.zeros(1)) & known, sure, difference.leaves)
