"""A quantile of numbers on a grid of any fineness, by the exponential mechanism, drawn exactly.

For a quantile the score is constant between neighbouring values, so that a draw needs two steps: which gap,
then a uniform point of it. With real numbers neither step can be exact; on a public grid both are.

Proof: docs/theory/offline.md, 12.2.
"""

from fractions import Fraction
from numbers import Rational
from typing import final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.errors import InvalidParameterError, TooLargeError, checked_integer, checked_real, is_number_of
from onlineic.mechanisms.selection import ExponentialMechanism, exact_integers
from onlineic.noise.categorical import LONGEST, draw, uniform_below
from onlineic.noise.sources import Noise, checked_source

MOST_POINTS = 2**62  # values and points stay inside int64


@final
@attrs.frozen
class QuantileMechanism:
    """P(y) proportional to exp(epsilon u(y)/2), y = 0, ..., points - 1, drawn exactly: (epsilon, 0)-private.

    u are the `quantile_scores` on ALL points of the grid, whether a value lies there or not. How long a
    release takes tells the number of distinct values. `domain.Grid` turns real numbers into such values.

    Dwork & Roth (2014), Definition 3.4 and Theorem 3.10; Smith (2011), Algorithm 2, for real numbers.

    Args:
        epsilon: In (0, 20]. Of one release. No table is charged: it is the caller's to add.
        points: In [1, 2^62]. Of the public grid.
        q: In [0, 1]. A float is read as the decimal that it prints as. The median is 1/2.

    Attributes:
        scale: 2/epsilon, rounded up.

    Examples:
        >>> from onlineic.mechanisms import QuantileMechanism
        >>> from onlineic.noise import SystemNoise
        >>> grid = ic.Grid(0.0, 1.0, points=2**40 + 1)
        >>> heights = grid.codes(np.linspace(0.2, 0.6, 10_001))
        >>> median = QuantileMechanism(epsilon=0.1, points=grid.points)
        >>> abs(grid.value(median.select(heights, SystemNoise())) - 0.4) < 0.04
        True
    """

    epsilon: float
    points: int
    q: float | Rational = Fraction(1, 2)
    scale: Fraction = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        remedy = "round to a coarser grid"
        points = checked_integer("points", self.points, at_least=1, at_most=MOST_POINTS, remedy=remedy)
        object.__setattr__(self, "epsilon", Budget(self.epsilon).epsilon)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "q", exact_share(self.q))
        object.__setattr__(self, "scale", ExponentialMechanism(self.epsilon).scale)

    def select(self, values: Ints, noise: Noise) -> int:
        """Return the point drawn for (n,) int64 values (PRIVATE), n >= 1, each a point of the grid.

        Raises:
            InvalidParameterError: If the values are not so; no value is shown.
            TooLargeError: If n >= 2^25, so that distinct values and the gaps between them could be too many
                for one draw.
        """
        exact, source = exact_integers("values", values), checked_source(noise)
        if 2 * exact.size + 1 > LONGEST:  # by n, which is public, and not by how many there are
            raise TooLargeError(
                f"values must be fewer than {LONGEST // 2:,}, got {exact.size:,}; take a sample."
            )
        if exact.size == 0 or exact.min() < 0 or exact.max() >= self.points:
            raise InvalidParameterError(
                f"values must be one or more points of the grid, 0 .. {self.points - 1}, and were not; "
                "clip them first."
            )
        starts, counts, lengths = _runs(exact, self.points)
        behind = -quantile_scores(counts, self.q)
        run = draw(behind.tolist(), self.scale, source, lengths)
        return starts[run] + uniform_below(lengths[run], source)

    def radius(self, beta: float) -> int:
        """Return the least r with: both sides of the choice hold too many records by at most r, but for beta.

        #{< y} <= floor(q n) + r and #{> y} <= floor((1 - q) n) + r; about (2/epsilon) ln(points/beta)
        records, whatever n is.
        """
        return ExponentialMechanism(self.epsilon).radius(self.points, beta)


def quantile_scores(counts: Ints, q: float | Rational) -> Ints:
    """Return u(y) = -max(0, A - floor(q n), B - floor((1 - q) n)), A = #{< y}, B = #{> y}: (m,) int64.

    It is minus the least number of records that must be replaced to make y a q-quantile, so the best score
    is 0 and the sensitivity is 1, also where n is private (theory 12.2). PRIVATE, like the counts.

    Args:
        counts: Shape (m,), at least 0. Records in each ordered cell; n is their sum.
        q: In [0, 1].
    """
    share, held = exact_share(q), exact_integers("counts", counts)  # unsigned differences would wrap
    upto = np.cumsum(held)
    n = int(upto[-1])
    below, above = upto - held - whole_share(share, n), n - upto - whole_share(1 - share, n)
    return np.asarray(-np.maximum(np.maximum(below, above), 0))


def exact_share(q: float | Rational) -> Fraction:
    """Return a share in [0, 1] as an exact number; a float stands for its shortest decimal.

    Raises:
        InvalidParameterError: If it is no such number.
    """
    if isinstance(q, Rational) and is_number_of(q, Rational):
        share = Fraction(int(q.numerator), int(q.denominator))
        if 0 <= share <= 1:
            return share
    return Fraction(repr(checked_real("q", q, at_least=0.0, at_most=1.0, remedy="the median is 0.5")))


def whole_share(share: Fraction, n: int) -> int:
    """Return floor(share n)."""
    return share.numerator * n // share.denominator


def _runs(values: Ints, points: int) -> tuple[list[int], Ints, list[int]]:
    """Return first point, records and number of points of each run: the values, and the gaps around them."""
    places, records = np.unique(values, return_counts=True)
    ends = [-1, *places.tolist(), points]
    starts, counts, lengths = list[int](), list[int](), list[int]()
    for before, here, held in zip(ends[:-1], ends[1:], [*records.tolist(), 0], strict=True):
        if here - before > 1:
            starts.append(before + 1)
            counts.append(0)
            lengths.append(here - before - 1)
        if here < points:
            starts.append(here)
            counts.append(held)
            lengths.append(1)
    return starts, np.array(counts, np.int64), lengths
