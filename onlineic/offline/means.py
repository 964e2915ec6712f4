"""Means: of values in a public range, and of values clipped at a private bound; and that bound itself.

Proof: docs/theory/offline.md, 12.2, 12.3, 12.5.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.rounding import float_down, float_up
from onlineic.data.private import PrivateData
from onlineic.data.release import most_of, records_of
from onlineic.display.text import around
from onlineic.domain.attributes import Attribute, Binned, IntegerRange
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    TooLargeError,
    check_choice,
    checked_integer,
    checked_real,
    shown,
)
from onlineic.mechanisms.additive import LaplaceMechanism
from onlineic.noise.sources import Noise, scale_at_least
from onlineic.offline.release import Release, Result
from onlineic.queries.counted import Counted
from onlineic.queries.partitions import Partition, one_way
from onlineic.sparse.above_threshold import first_above
from onlineic.sparse.base import SparseState

LARGEST_TOTAL = 2**62  # n times the width of a range: sums stay inside int64
LEAST_BETA = 1e-300  # below, 2/beta leaves the range of floats
GRID = 1000  # bounds tried on a range of more values than that
MOST_LEFT = 2**62  # records, more than any noise hides


@final
@attrs.frozen(kw_only=True, repr=False)
class Mean(Result):
    """A released mean.

    Attributes:
        value: total/n in units of the attribute, not clipped to its range.
        error_bound: Of |value - mean of the records|, same units: radius/n, and what `value` is rounded by.
        total: Sum of the values plus Z, discrete Laplace.
        radius: The least r with P(|Z| > r) <= beta.
        scale: Of Z: (largest - least value)/epsilon, rounded up.
        n: Number of records, public, or as it was counted.
    """

    value: float
    error_bound: float
    total: int
    radius: int
    scale: Fraction
    n: int

    def _shown(self) -> str:
        return f"{around(self.value, self.error_bound)} at {self._sure}"


def mean(
    data: PrivateData,
    attribute: str,
    epsilon: float,
    *,
    beta: float = 0.05,
    counted: Counted | None = None,
    noise: Noise | None = None,
) -> Mean:
    """Return (sum + Z)/n, Z discrete Laplace of scale (largest - least value)/epsilon: (epsilon, 0)-private.

    Dwork & Roth (2014), Theorems 3.6 and 3.8. `error_bound` is exceeded with probability beta exactly, up to
    the grid.

    Args:
        attribute: A range of integers without a missing cell; real numbers go to a `domain.Grid`.
        epsilon: In (0, 20].
        beta: In [1e-300, 1). Failure probability of `error_bound`.
        counted: Where the number of records is private: as `count` released it. Its `beta` adds to this one.

    Raises:
        InvalidQueryError: If the attribute is no such range of two or more values.

    Examples:
        >>> from onlineic.offline import mean
        >>> scores = {"score": np.arange(100_000) % 101}
        >>> data = ic.PrivateData.from_records(scores, ic.Domain.of(score=range(101)))
        >>> released = mean(data, "score", epsilon=1.0)
        >>> round(released.error_bound, 9), abs(released.value - 50) < 0.05  # ln(20) 100/100,000 = .003
        (0.003, True)
    """
    release = Release.pure(data, epsilon, noise, beta, LEAST_BETA)
    (kind, cells), (n, off) = column(data.domain, attribute), records_of(data, counted)
    width, codes = width_of(kind, most_of(data)), np.arange(kind.size)
    mechanism = LaplaceMechanism(release.budget.epsilon, release.budget.neighbours.number(0, width))
    radius = mechanism.radius(release.beta)
    noisy = release.read(lambda: mechanism.release(int(codes @ data.exact_counts(cells)), release.noise))
    above, error = int(noisy[0]), radius / n  # above the least value: who comes or goes moves it by the width
    total = above + kind.start * n
    if counted is not None:  # sum and number are each within their radius: how far can their quotient be?
        least, most = max(0, above - radius) / (n + off), max(0, above + radius) / max(1, n - off)
        error = max(above / n - least, min(most, width) - above / n)
    value = float(Fraction(total, n))
    error += abs(float(Fraction(value) - Fraction(total, n)))  # of a range far from 0 floats lie far apart
    failing, private = (0.0, True) if counted is None else (counted.beta, counted.private)
    return Mean(
        value=value,
        error_bound=error,
        beta=release.beta + failing,
        total=total,
        radius=radius,
        scale=mechanism.scale,
        n=n,
        private=private and release.private,
    )


def sensitivity(
    statistic: Literal["sum", "mean", "maximum", "median"], attribute: Attribute, n: int
) -> Fraction:
    """Return how far one replaced record can move a statistic of n records, exactly; all are attained.

    With w = largest - least value: w for a sum, w/n for a mean, and w for a maximum and a median HOWEVER
    LARGE n IS (theory 12.2): so no maximum is released here, and `median` adds no noise to a median, but
    chooses it. The median is the ceil(n/2)-th smallest record.

    Dwork & Roth (2014), Definition 3.1.

    Args:
        attribute: A range of integers, such as `domain.domain.attribute("age")`; only its public ends matter.
        n: At least 1.

    Raises:
        InvalidParameterError: If the attribute is no range of integers or has a missing cell.

    Examples:
        >>> from onlineic.offline import sensitivity
        >>> score = ic.Domain.of(score=range(101)).attribute("score")
        >>> [str(sensitivity(s, score, 100_000)) for s in ("sum", "mean", "maximum", "median")]
        ['100', '1/1000', '100', '100']
    """
    n = checked_integer("n", n, at_least=1)
    if not isinstance(attribute, IntegerRange):
        raise InvalidParameterError(
            f"attribute must be a range of integers, got a {type(attribute).__name__}; "
            'write domain.attribute("age").'
        )
    if attribute.missing:  # a missing value adds nothing to a sum, which may be far from the range
        raise InvalidParameterError(
            "attribute must have no missing cell, got one with it; write a value of the range in its place."
        )
    check_choice("statistic", statistic, "sum", "mean", "maximum", "median")
    width = Fraction(attribute.stop - 1 - attribute.start)
    return width / n if statistic == "mean" else width


def column(domain: Domain, attribute: str) -> tuple[IntegerRange, Partition]:
    """Return kind and cells of an attribute whose values can be summed, or raise `InvalidQueryError`."""
    kind = domain.attribute(attribute)
    if not isinstance(kind, IntegerRange):
        remedy = "number its bins by a range" if isinstance(kind, Binned) else "declare it as a range"
        raise InvalidQueryError(
            f"attribute must be a range of integers, got {shown(attribute)}, a {type(kind).__name__}; "
            f"{remedy}."
        )
    if kind.missing:
        raise InvalidQueryError(
            f"attribute must have no missing cell, got {shown(attribute)} with one; write a value of the "
            "range for missing ones before loading, or ask for the counts of the values by queries."
        )
    if kind.size < 2:
        raise InvalidQueryError(
            f"attribute must have two or more values, got {shown(attribute)} with one; its mean is public."
        )
    return kind, one_way(domain, domain.axis(attribute))


def width_of(kind: IntegerRange, n: int) -> int:
    """Return largest - least value, if the sum over n records fits into 62 bits."""
    width = kind.stop - 1 - kind.start
    if n * width > LARGEST_TOTAL:
        raise TooLargeError(
            f"n times the width of the range must be <= 2^62, got {n} times {width}; use a coarser range."
        )
    return width


@final
@attrs.frozen(kw_only=True, repr=False)
class ClippingBound(Result):
    """A released bound on the values of an attribute.

    Attributes:
        bound: The first candidate whose test fired; if none did, the last one, which says nothing then.
        hit: Whether a test fired.
        records_above: With probability 1 - beta at most this many records lie above the bound: n if nothing
            is known, 0 for the largest value of the range.
        candidates: How many bounds were tried.
    """

    bound: int
    hit: bool
    records_above: int
    candidates: int

    def _shown(self) -> str:
        if not self.hit:
            return f"{self.bound}, no hit: the last candidate"
        return f"{self.bound}, at most {self.records_above} records above at {self._sure}"


def clipping_bound(
    data: PrivateData,
    attribute: str,
    epsilon: float,
    *,
    bounds: Iterable[int] | None = None,
    threshold: int = 0,
    beta: float = 0.05,
    noise: Noise | None = None,
) -> ClippingBound:
    """Return the first public b with g_b + nu_b >= threshold + rho, g_b = -#{x > b}: (epsilon, 0)-private.

    rho is drawn once and nu_b for each bound, both discrete Laplace of scale 2/epsilon: half the test noise
    of AboveThreshold, since a record moves all g_b the same way (theory 12.5). Up to `records_left` records
    stay above; and a large rho may let several candidates pass that nobody exceeds.

    Dwork & Roth (2014), Algorithm 1 and Theorem 3.23.

    Args:
        attribute: A range of integers without a missing cell.
        epsilon: In (0, 20].
        bounds: Candidates, strictly increasing, above the least and up to the largest value of the range:
            PUBLIC. By default every value, on a range of more than 1,000 values 1,000 of them, evenly spaced.
        threshold: In [-n, 0]. Minus the records that may lie above the bound; public.
        beta: In (0, 1). Failure probability of `records_above`.

    Raises:
        InvalidQueryError: If the attribute is no such range of two or more values.

    Examples:
        >>> from onlineic.offline import clipping_bound
        >>> ages = {"age": 17 + np.arange(50_000) % 60}
        >>> data = ic.PrivateData.from_records(ages, ic.Domain.of(age=range(151)))
        >>> found = clipping_bound(data, "age", epsilon=0.5)
        >>> found.candidates, found.private, 70 < found.bound  # nobody is above 76
        (150, True, True)
    """
    release = Release.pure(data, epsilon, noise, beta)
    kind, cells = column(data.domain, attribute)
    search = bound_search(kind, data.n, release.budget.epsilon, bounds, threshold, release.beta)
    index = release.read(lambda: search.index(data.exact_counts(cells), release.noise))
    return ClippingBound(
        bound=search.bound(index),
        hit=index is not None,
        records_above=search.records_above(index, kind, data.n),
        candidates=len(search.bounds),
        beta=release.beta,
        private=release.private,
    )


def records_left(candidates: int, epsilon: float, beta: float) -> int:
    """Return the least m with K P(nu - rho > m) <= beta: at threshold 0 a hit leaves at most m records above.

    nu and rho are the noises of `clipping_bound`; m is about (2/epsilon) ln(K/beta) (theory 12.5). At a
    threshold T <= 0 at most m - T records are left.

    Args:
        candidates: At least 1. K.
        epsilon: In (0, 20]. Of the search alone.
        beta: In (0, 1).

    Examples:
        >>> from onlineic.offline.means import records_left
        >>> records_left(30_000, 1 / 3, 0.05)
        88
    """
    candidates = checked_integer("candidates", candidates, at_least=1)
    beta = checked_real("beta", beta, above=0.0, below=1.0)
    scale = float_up(scale_at_least(2 / Budget(epsilon).epsilon_exact))
    q, drop = math.exp(-1 / scale), -math.expm1(-1 / scale)

    def holds(records: int) -> bool:
        t = records + 1
        tail = math.exp(-t / scale) * (t * drop + q + (1 + q * q) / (1 + q)) / (1 + q) ** 2
        return candidates * tail <= beta

    return bisect_left(range(MOST_LEFT), True, key=holds)  # the tail falls with t


@final
@attrs.frozen
class BoundSearch:
    """What is public of a search for a bound.

    Attributes:
        low: Least value of the range.
        bounds: Candidates, increasing.
        threshold: Minus the records that may lie above.
        scale: Of the noise of the threshold and of every test.
        left: With probability 1 - beta a hit leaves at most this many records above.
    """

    low: int
    bounds: tuple[int, ...]
    threshold: int
    scale: Fraction
    left: int

    def index(self, counts: Ints, noise: Noise) -> int | None:
        """Return the first candidate with noisy g_b >= noisy threshold, or None; counts are PRIVATE."""
        above = counts.sum() - np.cumsum(counts)[np.array(self.bounds) - self.low]
        _, index = first_above(SparseState(), -above, self.threshold, self.scale, self.scale, noise)
        return None if index == len(above) else index

    def bound(self, index: int | None) -> int:
        """Return the bound of a search; index 0 is a hit, and only None is none."""
        return self.bounds[-1] if index is None else self.bounds[index]

    def records_above(self, index: int | None, kind: IntegerRange, n: int) -> int:
        """Return what holds with probability 1 - beta; nothing lies above the largest value."""
        if self.bound(index) == kind.stop - 1:
            return 0
        return n if index is None else min(n, self.left)


def bound_search(
    kind: IntegerRange,
    n: int,
    epsilon: float,
    bounds: Iterable[int] | None,
    threshold: int,
    beta: float,
) -> BoundSearch:
    """Return checked candidates and threshold, with the noise for them."""
    threshold = checked_integer(
        "threshold", threshold, at_least=-n, at_most=0, remedy="it is minus the records that may lie above"
    )
    low, width = kind.start, kind.stop - 1 - kind.start
    if bounds is None:
        steps = min(width, GRID)
        chosen = tuple(low - -width * step // steps for step in range(1, steps + 1))
    else:
        if isinstance(bounds, (str, bytes)) or not isinstance(bounds, Iterable):
            raise InvalidParameterError(f"bounds must be a list of integers, got a {type(bounds).__name__}.")
        chosen = tuple(
            checked_integer("each of bounds", bound, at_least=low + 1, at_most=low + width)
            for bound in bounds
        )
        if not chosen or any(lower >= upper for lower, upper in pairwise(chosen)):
            raise InvalidParameterError(
                "bounds must be one or more increasing integers, got "
                + (f"bounds={shown(list(chosen))}; sort them, each once." if chosen else "none; name one.")
            )
    return BoundSearch(
        low=low,
        bounds=chosen,
        threshold=threshold,
        scale=scale_at_least(2 / Fraction(epsilon)),
        left=records_left(len(chosen), epsilon, beta) - threshold,
    )


@final
@attrs.frozen(kw_only=True, repr=False)
class AutoAverage(Result):
    """A released mean of values clipped at a released bound.

    With probability 1 - beta the mean of the records is in
    [value - noise_radius, value + noise_radius + bias_bound].

    Attributes:
        value: least value + noisy sum/denominator; itself not clipped.
        hit: As in `ClippingBound`.
        noise_radius: How far noise and rounding move the value from the mean of the CLIPPED values.
        bias_bound: How much clipping may have taken off the mean.
        denominator: n, or the noisy count, raised to 1 where it is less.
    """

    value: float
    bound: int
    hit: bool
    noise_radius: float
    bias_bound: float
    denominator: int

    @property
    def error_bound(self) -> float:
        """|value - mean of the records| is at most this with probability 1 - beta."""
        return self.noise_radius + self.bias_bound

    def _shown(self) -> str:
        clipped = f"clipped at {self.bound}{'' if self.hit else ', no hit'}"
        return f"{around(self.value, self.error_bound)} at {self._sure}, {clipped}"


def auto_avg(
    data: PrivateData,
    attribute: str,
    epsilon: float,
    *,
    bounds: Iterable[int] | None = None,
    threshold: int = 0,
    count: Literal["public", "noisy"] = "public",
    beta: float = 0.05,
    noise: Noise | None = None,
) -> AutoAverage:
    """Return the mean of min(x, b) at a private b, with noise b - least value: (epsilon, 0)-private.

    epsilon/2 for `clipping_bound`, then epsilon/2 for the sum of min(x, b) - least value (theory 12.5). It
    pays where the public range is more than twice as wide as most values need; else `mean` has less noise.

    Dwork & Roth (2014), Algorithm 1, Theorem 3.6 and, for the parts, basic composition, Theorem 3.14.

    Args:
        attribute: A range of integers without a missing cell; it may start below 0.
        epsilon: In (0, 20]. Of everything together.
        bounds, threshold: As in `clipping_bound`.
        count: "noisy" is the textbook's split, epsilon/3 each for bound, sum and count, raised to 1 where it
            is less: epsilon-private also for neighbours that add or remove a record, but for what a refused
            argument tells of n.
        beta: In [1e-300, 1). Shared equally by the two or three parts.

    Raises:
        InvalidQueryError: If the attribute is no such range of two or more values.

    Examples:
        >>> from onlineic.offline import auto_avg
        >>> ages = {"age": 17 + np.arange(50_000) % 60}
        >>> data = ic.PrivateData.from_records(ages, ic.Domain.of(age=range(151)))
        >>> abs(auto_avg(data, "age", epsilon=1.0).value - 46.5) < 0.5
        True
    """
    release = Release.pure(data, epsilon, noise, beta, LEAST_BETA)  # for radii after the read
    check_choice("count", count, "public", "noisy")
    kind, cells = column(data.domain, attribute)
    width, codes, source = width_of(kind, data.n), np.arange(kind.size), release.noise
    parts = 2 if count == "public" else 3
    share, failure = float_down(release.budget.epsilon_exact / parts), release.beta / parts
    search = bound_search(kind, data.n, share, bounds, threshold, failure)
    number, _ = LaplaceMechanism(share), LaplaceMechanism(share, width)  # refused here, if ever

    def private() -> tuple[int | None, int, int]:
        counts = data.exact_counts(cells)
        index = search.index(counts, source)
        top = search.bound(index) - kind.start
        total = LaplaceMechanism(share, top).release(int(np.minimum(codes, top) @ counts), source)
        records = number.release(data.n, source) if count == "noisy" else [data.n]
        return index, int(total[0]), int(records[0])

    index, total, records = release.read(private)
    bound = search.bound(index)
    reach = LaplaceMechanism(share, bound - kind.start).radius(failure)
    shift, denominator = total / max(1, records), max(1, records)
    if count == "public":
        radius = reach / data.n
    else:  # sum and count are each within their radius: how far can their quotient be?
        off = number.radius(failure)
        ends = max(0, total - reach) / max(1, records + off), max(0, total + reach) / max(1, records - off)
        radius = max(shift - ends[0], ends[1] - shift)
    value = kind.start + shift
    radius += abs(float(Fraction(value) - kind.start - Fraction(total, denominator)))  # as of `mean`
    return AutoAverage(
        value=value,
        bound=bound,
        hit=index is not None,
        noise_radius=radius,
        bias_bound=search.records_above(index, kind, data.n) * (kind.stop - 1 - bound) / data.n,
        denominator=denominator,
        beta=release.beta,
        private=release.private,
    )
