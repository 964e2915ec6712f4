"""A bound that few records exceed, found by sparse vector."""

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.rounding import float_up
from onlineic.data.private import PrivateData
from onlineic.data.release import check_types, checked_noise, is_private, released
from onlineic.domain.attributes import IntegerRange
from onlineic.errors import InvalidParameterError, checked_integer, checked_real
from onlineic.noise.sources import Noise, scale_at_least
from onlineic.offline.means import integers
from onlineic.queries.partitions import one_way
from onlineic.sparse.above_threshold import first_above
from onlineic.sparse.base import SparseState

__all__ = ["BoundSearch", "ClippingBound", "bound_search", "clipping_bound", "records_left"]

GRID = 1000  # bounds tried on a range of more values than that


@final
@attrs.frozen(repr=False)
class ClippingBound:
    """A released bound on the values of an attribute.

    Attributes
    ----------
    bound : int
        The first candidate whose test fired; the last candidate if none did.
    hit : bool
        Whether a test fired. Without a hit the last candidate stands in, and says nothing about the records.
    records_above : int
        With probability 1 - beta at most this many records lie above the bound: n if nothing is known, 0 for
        the largest value of the range.
    candidates : int
        How many bounds were tried.
    beta : float
    private : bool
        False: simulated noise was used, the bound is NOT PRIVATE.
    """

    bound: int
    hit: bool
    records_above: int
    candidates: int
    beta: float
    private: bool

    def __repr__(self) -> str:
        found = "no hit: the last candidate"
        if self.hit:
            found = f"at most {self.records_above} records above at {1 - self.beta:.4g}"
        return f"ClippingBound({self.bound}, {found}{'' if self.private else ', NOT PRIVATE'})"


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

    g_b = sum min(x, b) - sum min(x, b + 1) lies in [-n, 0]; rho is drawn once and nu_b for each bound, both
    discrete Laplace of scale 2/epsilon. A replaced record x -> y changes g_b by 1 for the b between x and y,
    and all of them THE SAME WAY. Hence half the test noise of AboveThreshold is enough. Proof: if g falls, a
    BELOW is no less likely and the hit costs e^(epsilon/2); if g rises, shift rho by 1, which costs
    e^(epsilon/2): then every BELOW is again no less likely, and the hit costs e^(epsilon/2) at most.

    Where it stops: with some records above b, each candidate has its chance to fire, so that up to
    `records_left` records stay above; and it does not stop by itself at the largest value, where a large
    rho may let several further candidates pass.

    Parameters
    ----------
    data : PrivateData
    attribute : str
        A range of integers without a missing cell.
    epsilon : float, in (0, 20]
    bounds : iterable of int, optional
        Candidates, strictly increasing, above the least and up to the largest value of the range: PUBLIC. By
        default every value, on a range of more than 1,000 values 1,000 of them, evenly spaced.
    threshold : int, in [-n, 0]
        Minus the records that may lie above the bound; public.
    beta : float, in (0, 1)
        Failure probability of `records_above`.
    noise : Noise, optional
        By default the system's entropy.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range; nothing was spent.
    InvalidQueryError
        If the attribute is unknown, or not a range of two or more integers without a missing cell.

    References
    ----------
    Dwork & Roth (2014), Algorithm 1 and Theorem 3.23, with the test noise that monotone queries allow. The
    Lap(4/(3 epsilon)) of some texts costs 1.25 epsilon here and 2 epsilon in general; the index -1 by which
    they signal "no hit" names the last candidate as if it had fired.

    Examples
    --------
    >>> import numpy as np, onlineic as ic
    >>> from onlineic.offline import clipping_bound
    >>> ages = ic.PrivateData.from_records({"age": 17 + np.arange(50_000) % 60}, ic.Domain.of(age=range(151)))
    >>> found = clipping_bound(ages, "age", epsilon=0.5)
    >>> found.candidates, found.private, 70 < found.bound  # nobody is above 76
    (150, True, True)
    """
    source, budget = checked_noise(noise), Budget(epsilon)
    check_types(data, budget)
    kind = integers(data.domain, attribute)
    beta = checked_real("beta", beta, above=0.0, below=1.0)
    search = bound_search(kind, data.n, budget.epsilon, bounds, threshold, beta)
    cells = one_way(data.domain, data.domain.axis(attribute))
    index = released(data, budget, source, lambda: search.index(data.exact_counts(cells), source))
    return ClippingBound(
        bound=search.bound(index),
        hit=index is not None,
        records_above=search.records_above(index, kind, data.n),
        candidates=len(search.bounds),
        beta=beta,
        private=is_private(source),
    )


def records_left(candidates: int, epsilon: float, beta: float) -> int:
    """Return the least m with K P(nu - rho > m) <= beta: at threshold 0 a hit leaves at most m records above.

    nu and rho are the discrete Laplace noises of `clipping_bound`, of scale s = 2/epsilon both, so m is about
    s ln(K (2 + m/s)/(4 beta)). At a threshold T <= 0 at most m - T records are left.

    Parameters
    ----------
    candidates : int, >= 1
        K.
    epsilon : float, in (0, 20]
        Of the search alone.
    beta : float, in (0, 1)

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.

    References
    ----------
    A union bound over candidates fixed in advance, on P(nu - rho >= t) = q^t (t (1 - q) + q +
    (1 + q^2)/(1 + q))/(1 + q)^2, q = e^(-1/s), t >= 1. Theorem 3.24 of Dwork & Roth (2014) gives
    8 ln(2K/beta)/epsilon, three to four times as much, for its larger noise.

    Examples
    --------
    >>> from onlineic.offline.clipping import records_left
    >>> records_left(30_000, 1 / 3, 0.05)  # 8 ln(2K/beta)/epsilon = 336
    88
    """
    candidates = checked_integer("candidates", candidates, at_least=1)
    beta = checked_real("beta", beta, above=0.0, below=1.0)
    scale = float_up(_scale(Budget(epsilon).epsilon_exact))
    q, drop = math.exp(-1 / scale), -math.expm1(-1 / scale)

    def fails(records: int) -> bool:
        t = records + 1
        tail = math.exp(-t / scale) * (t * drop + q + (1 + q * q) / (1 + q)) / (1 + q) ** 2
        return candidates * tail > beta

    low, high = -1, 1  # fails(low) or low = -1; the tail falls with t
    while fails(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high


@final
@attrs.frozen
class BoundSearch:
    """What is public of a search for a bound.

    Attributes
    ----------
    low : int
        Least value of the range.
    bounds : tuple of int
        Candidates, increasing.
    threshold : int
        Of g_b = -#{x > b}; minus the records that may lie above.
    scale : Fraction
        Of the noise of the threshold and of every test: 2/epsilon, rounded up.
    left : int
        With probability 1 - beta a hit leaves at most this many records above.
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
    remedy = "it is minus the records that may lie above"
    threshold = checked_integer("threshold", threshold, at_least=-n, at_most=0, remedy=remedy)
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
                + (f"bounds={list(chosen)!r:.60}; sort them, each once." if chosen else "none; name one.")
            )
    left = records_left(len(chosen), epsilon, beta) - threshold
    return BoundSearch(low, chosen, threshold, _scale(Fraction(epsilon)), left)


def _scale(epsilon: Fraction) -> Fraction:
    """Scale of both noises of a search, counts."""
    return scale_at_least(2 / epsilon)
