"""One small database for the threshold functions of an ordered attribute, drawn exactly without enumeration.

Proof: docs/theory/offline.md, 12.8.
"""

import math
from itertools import pairwise

import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.rounding import float_up
from onlineic.bounds.nets import best_net, threshold_radius, threshold_rows
from onlineic.bounds.updates import log_multisets
from onlineic.data.private import PrivateData
from onlineic.errors import TooLargeError
from onlineic.mechanisms.selection import ExponentialMechanism
from onlineic.noise.categorical import draw, uniform_below
from onlineic.noise.sources import Noise
from onlineic.offline.cdf import ordered_axis
from onlineic.offline.nets import SmallDatabase, asked_rows
from onlineic.offline.paths import count_paths, limb_bits, path_of_rank, strip_width
from onlineic.offline.release import Release
from onlineic.queries.partitions import one_way

MAX_WORK = 2**29  # limbs touched, about 20 s
LEAST_CELLS = 8  # fewer are refused as if they were 8: the limbs of one cell are held at once, a few GB
MAX_PRODUCT = 2**60  # n m: the strips are computed in int64
BEYOND = 2.0**-30  # probability of a database beyond the last level that is told from others


def threshold_database(
    data: PrivateData,
    attribute: str,
    epsilon: float,
    *,
    alpha: float | None = None,
    size: int | None = None,
    beta: float = 0.05,
    noise: Noise | None = None,
) -> SmallDatabase:
    """Return y of m records with max_d |c_d(x) - c_d(y)| <= error_bound, c_d(x) = [x <= d], at 1 - beta.

    (epsilon, 0)-private: P(y) is proportional to exp(-epsilon L(y)/2), L = the worst threshold's error in
    records, rounded up, and cut at a public level that is passed with probability below 2^-30. The result is
    a hypothesis over this attribute alone.

    Work grows with the levels, n/(2m) + (2/epsilon) ln|N|, times K ln|N|: 0.1 s for 256 cells and 10^4
    records, 1 s for 10^6. What is left to be timed: how many levels have no database at all, and the size of
    the chosen numbers, microseconds each.

    Dwork & Roth (2014), Algorithm 4, on the net of `threshold_radius`.

    Args:
        attribute: Ordered: a range of integers or bins, of two or more cells.
        epsilon: In (0, 20].
        alpha: In (0, 1]. Radius of the net; settles m = ceil(1/(2 alpha)).
        size: In [1, n]. m itself, in the place of alpha, with n m below 2^60. With neither, m is the best for
            the bound.
        beta: In (0, 1). Failure probability of the bound.

    Raises:
        InvalidQueryError: If the attribute is unknown, has no order, or has one cell.
        TooLargeError: If the counting would take more than about 20 s or 3 GB, or n m is 2^60 or more.

    Examples:
        >>> from onlineic.offline import threshold_database
        >>> heights = {"cm": 140 + np.arange(20_000) % 64}  # uniform on 140, ..., 203
        >>> data = ic.PrivateData.from_records(heights, ic.Domain.of(cm=range(100, 228)))
        >>> chosen = threshold_database(data, "cm", epsilon=1.0, size=25, beta=1e-6)
        >>> below_172 = ic.where(cm=ic.between(100, 171)).bind(chosen.domain)  # one half of all
        >>> abs(chosen.evaluate(below_172) - 0.5) <= chosen.error_bound <= 0.03
        True
    """
    release = Release.pure(data, epsilon, noise, beta)
    engine, source, beta = ExponentialMechanism(release.budget.epsilon), release.noise, release.beta
    partition = one_way(data.domain, ordered_axis(data.domain, attribute))
    domain, n = data.domain.project(attribute), data.n
    rows = _rows(domain.size, n, engine.epsilon, alpha, size, beta)
    if n * rows >= MAX_PRODUCT:
        raise TooLargeError(
            f"n times size must be below 2^{math.log2(MAX_PRODUCT):.0f}, got 2^{math.log2(n * rows):.1f}; "
            "take a smaller size, or a larger alpha."
        )
    farthest = 0 if rows == n else -(-n // (2 * rows))  # level of the best candidate, at most
    spread, logs = float_up(engine.scale), log_multisets(domain.size, rows)
    lost = math.ceil(spread * (logs - math.log(beta)))
    top = min(n, farthest + math.ceil(spread * (logs - math.log(min(beta, BEYOND)))))
    width = strip_width(n, rows, top)
    _check_work(domain.size, rows, top, width)
    number = math.comb(domain.size + rows - 1, rows)
    levels = np.arange(top + 1)

    def private() -> Ints:
        below = np.cumsum(data.exact_counts(partition))[:-1]
        within = count_paths(below, n, rows, levels, width)
        low, high, multiplicity = _drawn_level(within, number, n, engine, source)
        if low == top:
            return _beyond(below, n, rows, top, source)
        return path_of_rank(below, n, rows, low, high, width, uniform_below(multiplicity, source))

    return SmallDatabase(
        domain=domain,
        counts=np.diff(release.read(private), prepend=0),
        radius=farthest / n,
        selection_bound=lost / n,
        candidates=number,
        beta=beta,
        private=release.private,
    )


def _rows(cells: int, n: int, epsilon: float, alpha: float | None, size: int | None, beta: float) -> int:
    """Return m: as asked for, for a radius of alpha, or the best for the bound."""
    return asked_rows(n, alpha, size, threshold_rows) or min(
        best_net(threshold_radius, cells, n, epsilon, beta)[0], (MAX_PRODUCT - 1) // n
    )


def _check_work(cells: int, rows: int, top: int, width: int) -> None:
    """Refuse what would take too long, before the number of candidates itself is computed."""
    limbs = log_multisets(cells, rows) / math.log(2) / limb_bits(width) + 1
    work = max(cells, LEAST_CELLS) * (top + 1) * width * limbs
    if work > MAX_WORK:
        raise TooLargeError(
            f"cells times levels times digits must be at most 2^{math.log2(MAX_WORK):.0f}, got "
            f"2^{math.log2(work):.1f} for {cells:,} cells and {rows:,} records; take a smaller size, "
            "a coarser attribute, or private_cdf."
        )


def _drawn_level(
    within: list[int], total: int, n: int, engine: ExponentialMechanism, noise: Noise
) -> tuple[int, int, int]:
    """Return (low, high, databases) of a level drawn with its multiplicity: low < L <= high."""
    bounds = [-1, *range(len(within)), n]
    # the last step is everything beyond the last level, as one
    exact = [after - before for before, after in pairwise([0, *within, total])]
    held = [level for level, multiplicity in enumerate(exact) if multiplicity]
    place = held[draw(held, engine.scale, noise, [exact[level] for level in held])]
    return bounds[place], bounds[place + 1], exact[place]


def _beyond(below: Ints, n: int, rows: int, top: int, noise: Noise) -> Ints:
    """Return a uniform path of a level above `top`: uniform ones of all, until one is.

    Tables as for other levels could be too large to hold, and a failure would tell the level. A try succeeds
    with the share s of the paths beyond, drawn with probability 2^-30 s at most: 2^-30 tries a release.
    """
    while True:
        path = _uniform_path(below.size + 1, rows, noise)
        if int(np.abs(rows * below - n * path[:-1]).max()) > top * rows:
            return path


def _uniform_path(cells: int, rows: int, noise: Noise) -> Ints:
    """Return the cumulative counts of a uniform multiset: cells - 1 bars among rows stars (Floyd)."""
    bars: set[int] = set()
    for place in range(rows, rows + cells - 1):
        drawn = uniform_below(place + 1, noise)
        bars.add(place if drawn in bars else drawn)
    return np.array([*(bar - before for before, bar in enumerate(sorted(bars))), rows], np.int64)
