"""Multiplicative weights: the hypothesis is a distribution, tilted along each hard query.

Two rules: with the constant step of Dwork & Roth, and with steps as large as the measured gaps, replayed
over all measurements.

Proof: docs/theory/updates.md, 7.2.
"""

import math
from typing import Literal, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.bounds.updates import mw_book_bound, mw_tight_bound
from onlineic.domain.domain import Domain
from onlineic.errors import check_choice, checked_integer, checked_real, set_fields
from onlineic.hypothesis.base import Hypothesis
from onlineic.hypothesis.histogram import Histogram, box_slices, relative_weights
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query
from onlineic.queries.tables import contract, spread
from onlineic.slips import public
from onlineic.updates.base import UpdateRule, starting_histogram

FLOOR = 1e-85  # of the mass of all cells: a histogram refuses cells that could never be repaired
LARGEST_MASS = 1e100  # of unnormalised weights: beyond, they are divided by it
MAX_RATE = 100.0  # of a constant step


@public
@final
@attrs.frozen
class MultiplicativeWeights(UpdateRule[Histogram]):
    """p(x) <- p(x) exp(s * rate * f(x)) / Z with s = +1 if v >= f(p) else -1, from the uniform start.

    `update_bound` is for the uniform start: a prior that is wrong somewhere can need more, see
    `exact_update_bound`.

    Dwork & Roth (2014), Algorithm 5 and Theorem 4.10 without its "+1", which its proof does not need.
    Hardt & Rothblum (2010).

    Args:
        variant: tight: rate 4 alpha, T = ln|X| / (2 alpha^2). book: rate alpha/2, T = 4 ln|X| / alpha^2.
        rate: In (0, 100]. A free rate instead; voids T(alpha).
    """

    variant: Literal["tight", "book"] = "tight"
    rate: float | None = None

    def __attrs_post_init__(self) -> None:
        check_choice("variant", self.variant, "tight", "book")
        if self.rate is not None:
            set_fields(self, rate=checked_real("rate", self.rate, above=0.0, at_most=MAX_RATE))

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Histogram:
        return starting_histogram(domain, prior)

    def update(self, hypothesis: Histogram, measurements: tuple[Measurement, ...], alpha: float) -> Histogram:
        query, value, guess = measurements[-1].against(hypothesis)
        step = self.rate or float(alpha) * (4.0 if self.variant == "tight" else 0.5)
        return hypothesis.tilted(query, step if value >= guess else -step)

    def most_passes(self, releases: int) -> int:
        return 1

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        bound = self.exact_update_bound(domain, alpha)
        return None if bound is None else math.floor(bound)

    def exact_update_bound(
        self, domain: Domain, alpha: float, prior: Histogram | None = None
    ) -> float | None:
        """Return T(alpha), before rounding down; None with a free rate.

        From a prior the largest divergence is ln(1 / its least probability) in place of ln|X|.
        """
        if prior is not None:
            return self.bound_from(domain, alpha, -math.log(float(prior.probabilities().min())))
        if self.variant == "book" and self.rate is None:
            return mw_book_bound(domain.size, alpha)
        return self.bound_from(domain, alpha, math.log(domain.size))

    def bound_from(self, domain: Domain, alpha: float, divergence: float) -> float | None:
        """Return T(alpha) from a start with KL(x || start) <= divergence for every x; None likewise."""
        if self.rate is not None:
            return None
        steps = mw_tight_bound(domain.size, alpha, divergence)
        return steps if self.variant == "tight" else 8.0 * steps


@public
@final
@attrs.frozen
class MeasuredWeights(UpdateRule[Histogram]):
    """p(x) <- p(x) exp(rate (v - f(p)) f(x)) / Z along every measurement so far, `replays` times.

    Since an answer may be off by almost the gap, there is no T(alpha), and `update_bound` is None. A
    partition moves all its blocks at once, at half the rate: one of two blocks is the query.

    Hardt, Ligett & McSherry (2012), Figure 1 and section 2.3 (replays), at rate 1/2.

    Args:
        variant: tight: rate 4. book: rate 1/2, as in MWEM.
        replays: At least 1. Passes over all measurements, oldest first, after each new one.
    """

    variant: Literal["tight", "book"] = "tight"
    replays: int = 3

    def __attrs_post_init__(self) -> None:
        check_choice("variant", self.variant, "tight", "book")
        set_fields(self, replays=checked_integer("replays", self.replays, at_least=1))

    def init(self, domain: Domain, prior: Hypothesis | None = None) -> Histogram:
        return starting_histogram(domain, prior)

    def update(self, hypothesis: Histogram, measurements: tuple[Measurement, ...], alpha: float) -> Histogram:
        cells, mass = hypothesis.probabilities(), 1.0  # not normalised between the steps
        rate = 4.0 if self.variant == "tight" else 0.5
        supports = [_support(measurement, cells.ndim) for measurement in measurements]
        for _ in range(self.replays):
            for measurement, support in zip(measurements, supports, strict=True):
                target = measurement.target
                if isinstance(target, Partition):
                    mass = _step_blocks(cells, mass, target, measurement.values, rate / 2.0)
                elif target.constant is None:
                    mass = _step(cells, mass, target, support, float(measurement.values[0]), rate)
                if not 1.0 / LARGEST_MASS < mass < LARGEST_MASS:
                    mass = _normalise(cells)
        _normalise(cells)
        np.maximum(cells, FLOOR, out=cells)
        return Histogram(hypothesis.domain, cells)

    def most_passes(self, releases: int) -> int:
        return self.replays * releases

    def update_bound(self, domain: Domain, alpha: float) -> int | None:
        return None


def _support(measurement: Measurement, dimensions: int) -> tuple[slice, ...] | None:
    """Return where a box query has weight 1, for a view of the cells; None for other targets."""
    target = measurement.target
    return box_slices(target, dimensions) if isinstance(target, Query) and target.box is not None else None


def _step(
    cells: Floats, mass: float, query: Query, support: tuple[slice, ...] | None, value: float, rate: float
) -> float:
    """Move the cells along one query, in place; return their new mass."""
    wanted = min(max(1.0 - value if query.complement else value, 0.0), 1.0)  # of the product of factors
    if support is not None:
        held = cells[support]
        inside = float(held.sum())
        factor = math.exp(rate * (wanted - inside / mass))
        held *= factor
        return max(mass + (factor - 1.0) * inside, 0.0)
    weights = relative_weights(query)
    cells *= np.exp(rate * (wanted - float((cells * weights).sum()) / mass) * weights)
    return float(cells.sum())


def _step_blocks(cells: Floats, mass: float, target: Partition, values: Floats, rate: float) -> float:
    """Move the cells of every block along its own gap, in place; return their new mass."""
    gaps = np.clip(values, 0.0, 1.0) - target.measure(contract(cells, target.axes)) / mass
    factors = np.exp(rate * gaps).reshape(target.shape)
    cells *= spread(factors[np.ix_(*target.classes)], target.axes, cells.ndim)
    return float(cells.sum())


def _normalise(cells: Floats) -> float:
    """Divide by the mass, in place; return the new one."""
    cells /= cells.sum()
    return 1.0
