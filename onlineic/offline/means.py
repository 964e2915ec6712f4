"""The Laplace mechanism on a mean, and why the same noise is useless on a maximum or a median."""

from fractions import Fraction
from typing import Literal, final

import attrs
import numpy as np

from onlineic.accounting.budget import Budget
from onlineic.data.private import PrivateData
from onlineic.data.release import check_types, checked_noise, is_private, released
from onlineic.domain.attributes import Attribute, Binned, IntegerRange
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    TooLargeError,
    checked_integer,
    checked_real,
)
from onlineic.mechanisms.additive import LaplaceMechanism
from onlineic.noise.sources import Noise
from onlineic.queries.partitions import one_way

__all__ = ["Mean", "integers", "mean", "sensitivity", "width_of"]

LARGEST_TOTAL = 2**62  # n times the width of a range: sums stay inside int64
LEAST_BETA = 1e-300  # below, 2/beta leaves the range of floats


@final
@attrs.frozen(repr=False)
class Mean:
    """A released mean.

    Attributes
    ----------
    value : float
        total/n in units of the attribute, not clipped to its range.
    error_bound : float
        radius/n: |value - mean of the records| is at most this with probability 1 - beta, or a little more
        (the noise is discrete); same units.
    beta : float
    total : int
        The released sum of the values, exact: sum + Z, Z discrete Laplace.
    radius : int
        The least r with P(|Z| > r) <= beta.
    scale : Fraction
        Of Z: (largest - least value)/epsilon, rounded up.
    n : int
        Number of records, public.
    private : bool
        False: simulated noise was used, the mean is NOT PRIVATE.
    """

    value: float
    error_bound: float
    beta: float
    total: int
    radius: int
    scale: Fraction
    n: int
    private: bool

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        return f"Mean({self.value:.6g} ± {self.error_bound:.3g} at {1 - self.beta:.4g}{stamp})"


def mean(
    data: PrivateData, attribute: str, epsilon: float, *, beta: float = 0.05, noise: Noise | None = None
) -> Mean:
    """Return (sum + Z)/n, Z discrete Laplace of scale (largest - least value)/epsilon: (epsilon, 0)-private.

    Replacing one record moves the exact integer sum by at most largest - least value, the width of the
    public range, and does not move n, which is public.

    Parameters
    ----------
    data : PrivateData
    attribute : str
        A range of integers without a missing cell. Bins are refused: their midpoints are not the values,
        and the difference would have no bound but the width of a bin. Real numbers go to a `domain.Grid`,
        which also restores the mean and its bound.
    epsilon : float, in (0, 20]
    beta : float, in [1e-300, 1)
        Failure probability of `error_bound`.
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
    Dwork & Roth (2014), Theorems 3.6 and 3.8. The error is EQUAL to ln(1/beta) width/(epsilon n) with
    probability beta of being larger (up to the grid): texts that print (1/(epsilon n)) log(1/delta) as an
    upper bound mean by delta the failure probability, not the delta of a budget, which is 0 here.

    Examples
    --------
    >>> import numpy as np, onlineic as ic
    >>> from onlineic.offline import mean
    >>> scores = {"score": np.arange(100_000) % 101}
    >>> data = ic.PrivateData.from_records(scores, ic.Domain.of(score=range(101)))
    >>> released = mean(data, "score", epsilon=1.0)
    >>> released.error_bound, released.private  # ln(20) 100/100,000 = .003
    (0.003, True)
    >>> abs(released.value - 50) < 0.05
    True
    """
    source, budget = checked_noise(noise), Budget(epsilon)
    check_types(data, budget)
    kind = integers(data.domain, attribute)
    width = width_of(kind, data.n)
    mechanism = LaplaceMechanism(budget.epsilon, width)
    radius = mechanism.radius(checked_real("beta", beta, at_least=LEAST_BETA, below=1.0))
    cells, codes = one_way(data.domain, data.domain.axis(attribute)), np.arange(kind.size)

    def private() -> int:
        counts = data.exact_counts(cells)
        return int(mechanism.release(int(codes @ counts), source)[0])

    total = released(data, budget, source, private) + kind.start * data.n
    return Mean(
        value=float(Fraction(total, data.n)),
        error_bound=radius / data.n,
        beta=float(beta),
        total=total,
        radius=radius,
        scale=mechanism.scale,
        n=data.n,
        private=is_private(source),
    )


def sensitivity(
    statistic: Literal["sum", "mean", "maximum", "median"], attribute: Attribute, n: int
) -> Fraction:
    """Return how far one replaced record can move a statistic of n records, exactly; all are attained.

    Sum: w = largest - least value. Mean: w/n. Maximum: w, HOWEVER LARGE n IS: one record at the top of an
    otherwise empty range decides it. Laplace noise of scale w/epsilon hides such a maximum completely, so no
    maximum is released here: ask for a high quantile, or for a clipping bound, which tell how far most
    records reach. Median (the ceil(n/2)-th smallest record): w as well, since with half of the records at
    either end one replaced record carries it across; w/2 is that of the midpoint which is taken between the
    two middle ones for even n. `median` therefore adds no noise to it, and chooses it.

    Parameters
    ----------
    statistic : "sum", "mean", "maximum" or "median"
    attribute : Attribute
        A range of integers, such as `domain.domain.attribute("age")`; only its public ends matter.
    n : int, >= 1

    Raises
    ------
    InvalidParameterError
        If the statistic is another, the attribute is no range of integers or has a missing cell, or n < 1.

    References
    ----------
    Dwork & Roth (2014), Definition 3.1, with replaced records: the least and the largest value in turn.

    Examples
    --------
    >>> import onlineic as ic
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
    if statistic not in ("sum", "mean", "maximum", "median"):
        raise InvalidParameterError(
            f"statistic must be 'sum', 'mean', 'maximum' or 'median', got statistic={statistic!r:.60}."
        )
    width = Fraction(attribute.stop - 1 - attribute.start)
    return width / n if statistic == "mean" else width


def integers(domain: Domain, attribute: str) -> IntegerRange:
    """Return the kind of an attribute whose values can be summed, or raise `InvalidQueryError`."""
    kind = domain.attribute(attribute)
    if not isinstance(kind, IntegerRange):
        remedy = "number its bins by a range" if isinstance(kind, Binned) else "declare it as a range"
        raise InvalidQueryError(
            f"attribute must be a range of integers, got {attribute!r}, a {type(kind).__name__}; {remedy}."
        )
    if kind.missing:
        raise InvalidQueryError(
            f"attribute must have no missing cell, got {attribute!r} with one; write a value of the range "
            "for missing ones before loading, or ask for the counts of the values by queries."
        )
    if kind.size < 2:
        raise InvalidQueryError(
            f"attribute must have two or more values, got {attribute!r} with one; its mean is public."
        )
    return kind


def width_of(kind: IntegerRange, n: int) -> int:
    """Return largest - least value, if the sum over n records fits into 62 bits."""
    width = kind.stop - 1 - kind.start
    if n * width > LARGEST_TOTAL:
        raise TooLargeError(
            f"n times the width of the range must be <= 2^62, got {n} times {width}; use a coarser range."
        )
    return width
