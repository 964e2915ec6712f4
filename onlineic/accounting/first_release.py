"""What pays for Gaussian tables that are the first release of a Renyi filter: less than their divergence.

Their loss is known exactly, and what comes after them is bounded by what the filter has left, at its own
order and at others (theory 4.10).

Proof: docs/theory/accounting.md, 4.10.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.neighbours import REPLACE_ONE, Neighbours
from onlineic.accounting.renyi import TICK, _gumbel_part, gaussian_charge, renyi_capacity
from onlineic.accounting.rounding import _exact, _order, float_up
from onlineic.errors import InvalidParameterError, checked_integer, checked_real, set_fields

# orders at which the rest is bounded, as factors of what the filter's own exceeds 1 by: six to a doubling, of
# which four times as many saved nothing at epsilon 1 and .2 % of the noise at 3
FACTORS = tuple(Fraction(2) ** (step // 6) * Fraction(round(2.0 ** (step % 6 / 6) * 4096), 4096)
                for step in range(-18, 19))  # fmt: skip
ROUNDED = 2.0**-30  # of a bound or a sum: what floats err by is less
LEFT = 2.0**-40  # of a normal probability: what a difference of two may be off by


@final
@attrs.frozen
class FirstRelease:
    """What is public of a filter whose first release is Gaussian tables, fixed before anything is drawn.

    Attributes
    ----------
    order : Fraction, > 1
        Of the filter, whose capacity is `renyi_capacity(order, epsilon, delta)`.
    epsilon, delta : float
    steepest : Fraction, > 0
        eta, sensitivity over scale, that no later Gumbel test exceeds.
    ratio : Fraction, > 0
        Of the noise of a hit's answer to that of its test, each over its sensitivity, at most.
    neighbours : Neighbours
        By which a table moves.

    Raises
    ------
    InvalidParameterError
        If one is outside its range.

    References
    ----------
    Theory 4.10. The release is a Gaussian pair (Dong, Roth & Su 2022), composed with what is proven of the
    rest: at every order beta its charges, made at `order`, bound its divergence up to a known factor.
    """

    order: Fraction
    epsilon: float
    delta: float
    steepest: Fraction
    ratio: Fraction
    neighbours: Neighbours = attrs.field(
        default=REPLACE_ONE, kw_only=True, repr=False, metadata={"later": True}
    )

    def __attrs_post_init__(self) -> None:
        set_fields(
            self,
            order=_order(self.order),
            epsilon=checked_real("epsilon", self.epsilon, above=0.0),
            delta=checked_real("delta", self.delta, above=0.0, below=1.0),
            steepest=_positive("steepest", self.steepest),
            ratio=_positive("ratio", self.ratio),
        )

    def plain(self, scales: Sequence[Fraction]) -> int:
        """Return the Renyi divergence of tables at the order of the filter, in ticks.

        Parameters
        ----------
        scales : sequence of Fraction, > 0
            Of each one's noise, records: sigma of a discrete Gaussian on the multiples of one over its own
            denominator. A neighbour moves the blocks of each.
        """
        return sum(
            times * gaussian_charge(self.order, *_drawn(scale, self.neighbours))
            for scale, times in _counted(scales)
        )

    def pays(self, scales: Sequence[Fraction], ticks: int) -> bool:
        """Return whether so many ticks pay for tables of such noise as the first release of the filter.

        What `plain` says does, wherever they come; mostly less does.
        """
        ticks = checked_integer("ticks", ticks, at_least=0)
        if self.plain(scales) <= ticks:
            return True
        left = renyi_capacity(self.order, self.epsilon, self.delta) - ticks
        return left >= 0 and self.delta_bound(scales, left) <= self.delta

    def delta_bound(self, scales: Sequence[Fraction], left: int) -> float:
        """Return a bound, rounded up, on delta of such tables and then charges of at most `left` ticks."""
        squared, lost, factor = _moments(scales, self.neighbours)
        if not sys.float_info.min < squared < math.inf > factor:
            return math.inf  # of no table, or of noise that nobody can draw
        slopes, offsets = self._lines(checked_integer("left", left, at_least=0))
        # the least of these lines at each loss that is left: each between its crossings with its neighbours
        held = _envelope(slopes, offsets)
        slopes, offsets = slopes[held], offsets[held]
        crossings = np.diff(offsets) / np.diff(slopes)
        within = self.epsilon - lost
        above = np.concatenate([[np.inf], within - crossings])  # the loss of the tables lies below it ..
        below = np.concatenate([within - crossings, [-np.inf]])  # .. and above this
        mean, deviation = squared / 2.0, math.sqrt(squared)
        tilt = offsets - slopes * (within - mean) + slopes**2 * squared / 2.0
        place = mean + slopes * squared
        with np.errstate(over="ignore", invalid="ignore"):
            logs = _log_between((below - place) / deviation, (above - place) / deviation)
            bound = float(np.exp(tilt + logs).sum()) * factor * (1.0 + ROUNDED) + sys.float_info.min
        return bound if bound < math.inf else math.inf  # also where nothing can be said

    def _lines(self, left: int) -> tuple[Floats, Floats]:
        """Return slope and offset of ln of each bound on delta of the rest, against the loss that is left.

        First that of 1, then ln[(1 - 1/b)^b/(b - 1)] + (b - 1)(growth left - loss) of each order b.
        """
        bounds = _orders(self.order, self.steepest, self.ratio)
        slopes = np.array([0.0, *(float(order - 1) for order, _ in bounds)])
        growth = np.array([0.0, *(factor for _, factor in bounds)])
        orders = slopes[1:] + 1.0
        constants = np.concatenate([[0.0], orders * np.log1p(-1.0 / orders) - np.log(slopes[1:])])
        return slopes, constants + slopes * growth * float(left * TICK)


@lru_cache(maxsize=256)
def _orders(order: Fraction, steepest: Fraction, ratio: Fraction) -> tuple[tuple[Fraction, float], ...]:
    """Return orders, rising, and by how much divergence at each exceeds that at `order`, rounded up.

    That of Gaussian noise grows as the order; that of a hit less below `order`, and above it most where its
    test is the steepest.
    """
    bounds = []
    for factor in FACTORS:
        other = 1 + factor * (order - 1)
        growth = other / order
        if other > order:
            try:
                tests = [
                    _gumbel_part(one, steepest.numerator, Fraction(steepest.denominator))
                    for one in (other, order)
                ]
            except InvalidParameterError:  # beyond the pole no divergence is finite
                break
            answers = [one * (steepest / ratio) ** 2 / 2 for one in (other, order)]
            # a test is never priced below a thousandth of a tick: it may cost less
            least = max(Fraction(0), tests[1] - TICK / 1000)
            growth = max(growth, (tests[0] + answers[0]) / (least + answers[1]) * (1 + TICK))
        bounds.append((other, float_up(growth)))
    return tuple(bounds)


def _moments(scales: Sequence[Fraction], neighbours: Neighbours) -> tuple[float, float, float]:
    """Return mu^2 of the tables, and what their being discrete costs: of epsilon, and as a factor of delta.

    Rounded up.
    """
    squared = lost = log = 0.0
    for scale, times in _counted(scales):
        sigma, changed = _drawn(scale, neighbours)
        squared += times * float(changed / sigma**2)
        # half a unit of a block that moves by so many moves its loss by those/(2 sigma^2)
        lost += times * float(neighbours.table_l1(scale.denominator) / (2 * sigma**2))
        log += times * float(neighbours.table_l1() / (8 * sigma**2))  # no more blocks move than records
    up = 1.0 + ROUNDED
    return squared * up, lost * up, math.exp(log * up) * up if log < 1.0 else math.inf


def _counted(scales: Sequence[Fraction]) -> Iterable[tuple[Fraction, int]]:
    return Counter(_positive("scales", scale) for scale in scales).items()


def _positive(name: str, value: object) -> Fraction:
    exact = _exact(name, value)
    if exact == 0:
        raise InvalidParameterError(f"{name} must be > 0, got {name}=0.")
    return exact


def _drawn(scale: Fraction, neighbours: Neighbours) -> tuple[Fraction, int]:
    """Return sigma in the units that a table is drawn in, and the squared L2 sensitivity in them."""
    sigma, unit = scale.as_integer_ratio()
    return Fraction(sigma), neighbours.table_squared(unit)


def _envelope(slopes: Floats, offsets: Floats) -> list[int]:
    """Return which of the lines offset - slope x, slopes rising, are least somewhere."""
    held: list[int] = []
    for place in range(len(slopes)):
        while len(held) > 1:
            first, last = held[-2], held[-1]
            before = (offsets[last] - offsets[first]) * (slopes[place] - slopes[last])
            if before < (offsets[place] - offsets[last]) * (slopes[last] - slopes[first]):
                break
            held.pop()
        held.append(place)
    return held


def _log_between(low: Floats, high: Floats) -> Floats:
    """Return ln of a bound on the normal probability of low < x < high."""
    from scipy import special  # loading it takes longer than all of this package

    swapped = low + high > 0  # the tail on the nearer side has its digits
    low, high = np.where(swapped, -high, low), np.where(swapped, -low, high)
    upper = special.log_ndtr(high)
    with np.errstate(divide="ignore"):
        return upper + np.log(-np.expm1(special.log_ndtr(low) - upper) + LEFT)
