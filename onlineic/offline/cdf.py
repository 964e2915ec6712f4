"""Threshold functions c_d(x) = [x <= d] of one ordered attribute, and its distribution function, privately.

Proof: docs/theory/offline.md, 12.9.
"""

import math
from typing import final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.data.private import PrivateData
from onlineic.display.text import upward
from onlineic.domain.attributes import Categorical, Label
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import InvalidQueryError, TooLargeError, checked_integer, checked_real
from onlineic.mechanisms.additive import LaplaceMechanism
from onlineic.noise.sources import Noise, SimulatedNoise
from onlineic.offline.release import Release, Result
from onlineic.queries.partitions import one_way
from onlineic.queries.query import Query, canonical

MAX_CELLS = 2**16
MOST_LEVELS = 16
SIMULATED = 1999  # releases of nothing but noise, which set the band; more where beta is small
LEAST_BETA = 1e-3
HELD = 2**21  # simulated numbers at a time


def threshold_functions(domain: Domain, attribute: str) -> tuple[Query, ...]:
    """Return the queries c_d, "the fraction of records with value <= d", for every d but the last.

    A missing cell comes after all values.

    Args:
        attribute: Ordered: a range of integers or bins.

    Raises:
        InvalidQueryError: If the attribute is unknown, has no order, or has one cell.

    Examples:
        >>> from onlineic.offline import threshold_functions
        >>> len(threshold_functions(ic.Domain.of(age=range(0, 120), sex=["F", "M"]), "age"))
        119
    """
    check_domain(domain)
    axis = ordered_axis(domain, attribute)
    return tuple(
        canonical(domain, False, {(axis,): (0, code + 1)}, 0) for code in range(domain.shape[axis] - 1)
    )


def ordered_axis(domain: Domain, attribute: str) -> int:
    """Return the axis of an attribute with an order and two or more cells, or raise `InvalidQueryError`."""
    axis = domain.axis(attribute)
    kind = domain.attributes[axis]
    if isinstance(kind, Categorical):
        raise InvalidQueryError(
            f"{attribute} must be ordered, got labels; declare a range of integers or binned(edges)."
        )
    if kind.size < 2:
        raise InvalidQueryError(f"{attribute} must have two or more cells, got one; nothing is to be learnt.")
    return axis


@final
@attrs.frozen(kw_only=True, eq=False, repr=False)
class PrivateCdf(Result):
    """A distribution function F(d) = fraction of records with value <= d, released for every d at once.

    Attributes:
        domain: Of this one attribute.
        values: Shape (cells,). Non-decreasing, in [0, 1], the last is 1. A missing cell comes after all
            values.
        lower, upper: Shape (cells,). Non-decreasing; F lies between them at every d at once.
        radius: How far `values` may be off anywhere, in the same event.
        levels: Of block counts.
    """

    domain: Domain
    values: Floats
    lower: Floats
    upper: Floats
    radius: float
    levels: int

    def at(self, label: Label) -> float:
        """Return F(d), d one label of the attribute (a bin as text, None for the missing cell)."""
        return float(self.values[self.domain.attributes[0].code(self.domain.names[0], label)])

    def quantile(self, q: float) -> Label:
        """Return the least label d with F(d) >= q: nothing more is spent, however many are asked for."""
        q = checked_real("q", q, at_least=0.0, at_most=1.0)
        return self.domain.attributes[0].label(int(np.searchsorted(self.values, q)))

    def _shown(self) -> str:
        bound = f"within {upward(self.radius)} everywhere at {self._sure}"
        return f"{self.domain.names[0]}, {self.values.size} cells, {bound}"


def private_cdf(
    data: PrivateData,
    attribute: str,
    epsilon: float,
    *,
    levels: int | None = None,
    beta: float = 0.05,
    noise: Noise | None = None,
) -> PrivateCdf:
    """Return the distribution function of an ordered attribute, with a band for all of it: (epsilon, 0).

    Noisy counts of blocks on h levels are made consistent by least squares and monotone by isotonic
    regression. The band is exact: that of 1,999 or more simulated releases of an empty table (theory 12.9).

    Hay, Rastogi, Miklau & Suciu (2010); Qardaji, Yang & Li (2013) for few levels with many branches.

    Args:
        attribute: Ordered: a range of integers or bins, of 2 to 2^16 cells.
        epsilon: In (0, 20].
        levels: In [1, 16]. h. By default that of least h^3 K^(1/h): one up to 64 cells, two up to about
            1,500, then three.
        beta: In [0.001, 1). Chance that the band misses anywhere.

    Raises:
        InvalidQueryError: If the attribute is unknown, has no order, or has one cell.
        TooLargeError: If it has more than 2^16 cells.

    Examples:
        >>> from onlineic.offline import private_cdf
        >>> ages = {"age": 20 + np.arange(60_000) % 60}  # uniform on 20, ..., 79
        >>> data = ic.PrivateData.from_records(ages, ic.Domain.of(age=range(0, 120)))
        >>> cdf = private_cdf(data, "age", epsilon=1.0, beta=0.001)
        >>> cdf.levels, cdf.radius < 0.002, round(cdf.at(49), 2), cdf.quantile(0.25) in (33, 34, 35)
        (2, True, 0.5, True)
    """
    release = Release.pure(data, epsilon, noise, beta, LEAST_BETA)
    budget, source = release.budget, release.noise
    axis = ordered_axis(data.domain, attribute)
    partition, cells, n = one_way(data.domain, axis), data.domain.shape[axis], data.n
    if cells > MAX_CELLS:
        raise TooLargeError(f"{attribute} must have at most {MAX_CELLS:,} cells, got {cells:,}; bin it.")
    height = best_levels(cells) if levels is None else levels
    groups = grouping(cells, checked_integer("levels", height, at_least=1, at_most=MOST_LEVELS))
    # the blocks of every level are a table of their own
    laplace = LaplaceMechanism(budget.epsilon, budget.neighbours.table_l1() * len(groups))
    # the sums are floats: fewer than 4 (cells + 32) roundings of fractions, and as many of noises
    radius = (
        _radius(cells, groups, laplace, release.beta, source) / n * (1 + 2.0**-30) + (cells + 32) * 2.0**-50
    )
    measured = release.read(lambda: _measured(data.exact_counts(partition)[:, None], groups, laplace, source))
    raw = sums(measured, groups, float(n))[:, 0] / n
    values, lower, upper = (np.append(part, 1.0) for part in monotone(raw, radius))
    return PrivateCdf(
        domain=data.domain.project(attribute),
        values=values,
        lower=lower,
        upper=upper,
        radius=radius,
        levels=len(groups),
        beta=release.beta,
        private=release.private,
    )


def best_levels(cells: int) -> int:
    """Return the h of least h^3 K^(1/h): h b/2 blocks of variance 8 h^2 around the middle."""
    return min(range(1, MOST_LEVELS + 1), key=lambda height: height**3 * cells ** (1 / height))


def grouping(cells: int, height: int) -> list[Ints]:
    """Return where the groups start: of cells, of blocks of cells, ..., up to the single one of all.

    As many levels of counts as arrays; a level that would have one block is left out, since n is public.
    """
    branches = max(2, math.ceil(round(cells ** (1 / height), 9)))
    starts = []
    while cells > branches:
        starts.append(np.arange(0, cells, branches))
        cells = len(starts[-1])
    return [*starts, np.zeros(1, np.int64)]


def _measured(counts: Ints, groups: list[Ints], laplace: LaplaceMechanism, noise: Noise) -> list[Floats]:
    """Return the noisy counts of every level, finest first, from (cells, repetitions) exact ones. PRIVATE."""
    result = []
    for starts in groups:
        result.append(laplace.release(counts.ravel(), noise).reshape(counts.shape).astype(np.float64))
        counts = np.add.reduceat(counts, starts, axis=0)
    return result


def sums(measured: list[Floats], groups: list[Ints], n: float) -> Floats:
    """Return least-squares cumulative counts, (cells - 1, repetitions), of equally noisy levels and exact n.

    Up: the best estimate of a block from its own count and its parts, with its variance. Down: what the parts
    lack to their whole is given to them in proportion to their variances.
    """
    best, variances = [measured[0]], [np.ones(len(measured[0]))]
    for own, starts in zip(measured[1:], groups, strict=False):
        parts, spread = np.add.reduceat(best[-1], starts, axis=0), np.add.reduceat(variances[-1], starts)
        best.append(parts + (own - parts) * (spread / (1 + spread))[:, None])
        variances.append(spread / (1 + spread))
    whole = np.full((1, measured[0].shape[1]), n)
    for estimate, spread, starts in zip(best[::-1], variances[::-1], groups[::-1], strict=True):
        group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(spread)))
        lacking = (whole - np.add.reduceat(estimate, starts, axis=0)) / np.add.reduceat(spread, starts)[
            :, None
        ]
        whole = estimate + lacking[group] * spread[:, None]
    return np.asarray(np.cumsum(whole, axis=0)[:-1])


def monotone(raw: Floats, radius: float) -> tuple[Floats, Floats, Floats]:
    """Return (values, lower, upper) of noisy fractions; nothing errs by more than before."""
    from scipy.optimize import isotonic_regression  # 300 ms to import

    values = np.clip(isotonic_regression(raw).x, 0.0, 1.0)
    lower = np.clip(np.maximum.accumulate(raw - radius), 0.0, 1.0)
    upper = np.clip(np.minimum.accumulate((raw + radius)[::-1])[::-1], 0.0, 1.0)
    return values, np.minimum(lower, upper), np.maximum(lower, upper)  # crossed only if the band has missed


def _radius(cells: int, groups: list[Ints], laplace: LaplaceMechanism, beta: float, noise: Noise) -> float:
    """Return the k-th smallest of N simulated largest errors, counts, k = ceil((1 - beta)(N + 1))."""
    simulated = max(SIMULATED, math.ceil(20 / beta))
    rank = math.ceil((1 - beta) * (simulated + 1))
    source = SimulatedNoise(int(noise.words(1)[0]))  # public and fresh: the law of an error holds no data
    largest: list[float] = []
    while len(largest) < simulated:
        count = min(simulated - len(largest), max(1, HELD // cells))
        nothing = _measured(np.zeros((cells, count), np.int64), groups, laplace, source)
        errors = sums(nothing, groups, 0.0)
        largest += np.abs(errors).max(axis=0).tolist()
    return float(np.partition(largest, rank - 1)[rank - 1])
