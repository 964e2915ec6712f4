"""What the net mechanism promises: a small database chosen by the exponential mechanism, as functions.

A net is a set N of databases such that every database x has some y in N with |f(x) - f(y)| <= its radius for
every query f of a class. The exponential mechanism on -max_f |f(x) - f(y)| (sensitivity 1/n) then errs by at
most radius + 2 (ln|N| + ln(1/beta))/(epsilon n), all queries at once, with probability >= 1 - beta.

Shared parameters: size |X| >= 1 cells, queries |Q| >= 1, n >= 1 records, rows m >= 1 records of a candidate,
epsilon in (0, inf), beta in (0, 1) the chance of failure; errors are fractions of records. A bound above 1
says nothing. Any value outside raises `InvalidParameterError`.

Proof: docs/theory/offline.md, 12.8.
"""

import math
from collections.abc import Callable

from onlineic.bounds.sparse_vector import _epsilon, records_for
from onlineic.bounds.updates import log_multisets
from onlineic.errors import InfeasibleAccuracyError, check_function, checked_integer, checked_real
from onlineic.noise.laws import checked_beta

Radius = Callable[[int], float]
"""rows -> radius of the net of all multisets of that many records, non-increasing."""

LARGEST_ROWS = 2**40


def small_database_size(alpha: float, queries: int) -> int:
    """Return m = ln|Q| / alpha^2, rounded down where that is still an alpha-net, else the least such m.

    m records drawn from x are a net of |Q| queries for m > ln(2|Q|)/(2 alpha^2).

    Dwork & Roth (2014), Theorem 4.2 and Algorithm 4. Rounded up, the net would be larger than the
    |X|^(ln|Q|/alpha^2) that Proposition 4.4 counts with; rounded down it is a net from 15 queries on.

    Args:
        alpha: In (0, 1]. Radius of the net.
        queries: At least 3. Below three the book's size is no net.
    """
    alpha, queries = _alpha(alpha), checked_integer("queries", queries, at_least=3)
    return max(math.floor(math.log(queries) / alpha**2), _sampling_rows(alpha, queries))


def small_database_error(
    alpha: float, size: int, queries: int, n: int, epsilon: float, beta: float = 0.05
) -> float:
    """Return alpha + 2 (ln|X| ln|Q|/alpha^2 + ln(1/beta))/(epsilon n): SmallDB's error, as the book counts.

    Dwork & Roth (2014), Proposition 4.4, with alpha^2 in the denominator.

    Args:
        alpha: In (0, 1]. Radius of the net; `least_small_database_error` takes the best one.
        queries: At least 3.
    """
    alpha = _alpha(alpha)
    return _net_error(alpha, _logs(size, queries) / alpha**2, n, epsilon, beta)


def least_small_database_error(
    size: int, queries: int, n: int, epsilon: float, beta: float = 0.05
) -> tuple[float, float]:
    """Return the least `small_database_error` over alpha, and that alpha = (4 ln|X| ln|Q|/(epsilon n))^(1/3).

    Dwork & Roth (2014), Proposition 4.4 minimised; an alpha above 1 is cut to 1, where the bound is vacuous.
    """
    alpha: float = (4 * _logs(size, queries) / (_epsilon(epsilon) * _n(n))) ** (1 / 3)
    alpha = min(1.0, alpha) or 1.0  # one cell: nothing to choose
    return small_database_error(alpha, size, queries, n, epsilon, beta), alpha


def small_database_alpha(size: int, queries: int, n: int, epsilon: float, beta: float = 0.05) -> float:
    """Return ((16 ln|X| ln|Q| + 4 ln(1/beta))/(epsilon n))^(1/3), SmallDB's error at net radius half of it.

    Dwork & Roth (2014), Theorem 4.5; its proof needs the result to be at most 1.
    """
    needed = 16 * _logs(size, queries) - 4 * math.log(checked_beta(beta))
    return float((needed / (_epsilon(epsilon) * _n(n))) ** (1 / 3))


def small_database_n(alpha: float, size: int, queries: int, epsilon: float, beta: float = 0.05) -> int:
    """Return the least n >= (16 ln|X| ln|Q| + 4 ln(1/beta))/(epsilon alpha^3): SmallDB errs by alpha at most.

    Dwork & Roth (2014), Theorem 4.5.

    Args:
        alpha: In (0, 1]. Wanted error of every query.
        queries: At least 3.
    """
    needed = 16 * _logs(size, queries) - 4 * math.log(checked_beta(beta))
    return records_for(needed / (_epsilon(epsilon) * _alpha(alpha) ** 3))


def multiset_rows(alpha: float, size: int, queries: int) -> int:
    """Return the least m known to make all multisets of m records an alpha-net of |Q| queries (theory 12.8).

    The smaller of floor(ln(2|Q|)/(2 alpha^2)) + 1 (sampling) and ceil(|X|/(4 alpha)) (rounding).
    """
    alpha = _alpha(alpha)
    sampling = _sampling_rows(alpha, checked_integer("queries", queries, at_least=1))
    return min(sampling, math.ceil(checked_integer("size", size, at_least=1) / (4 * alpha)))


def multiset_radius(rows: int, size: int, queries: int) -> float:
    """Return min(1, sqrt(ln(2|Q|)/(2m)), |X|/(4m)): radius of all multisets of m records for |Q| queries."""
    rows = checked_integer("rows", rows, at_least=1)
    size, queries = checked_integer("size", size, at_least=1), checked_integer("queries", queries, at_least=1)
    return min(1.0, math.sqrt(math.log(2 * queries) / (2 * rows)), size / (4 * rows) if size > 1 else 0.0)


def threshold_rows(alpha: float) -> int:
    """Return m = ceil(1/(2 alpha)): all multisets of m records are an alpha-net of threshold functions."""
    return math.ceil(1 / (2 * _alpha(alpha)))


def threshold_radius(rows: int) -> float:
    """Return 1/(2m): every distribution function is this near to that of some m records, at every threshold.

    No m records do better if F takes the value 1/(2m) (theory 12.8).
    """
    return 1 / (2 * checked_integer("rows", rows, at_least=1))


def net_error(radius: float, rows: int, size: int, n: int, epsilon: float, beta: float = 0.05) -> float:
    """Return radius + 2 (ln C(|X|+m-1, m) + ln(1/beta))/(epsilon n): candidates = all multisets of m records.

    Dwork & Roth (2014), Theorem 3.11 on a net; every multiset counted once, not as |X|^m lists.

    Args:
        radius: In [0, 1]. Of this net for the class: `multiset_radius` or `threshold_radius`.
    """
    radius = checked_real("radius", radius, at_least=0.0, at_most=1.0)
    return _net_error(radius, log_multisets(size, rows), n, epsilon, beta)


def best_net(radius: Radius, size: int, n: int, epsilon: float, beta: float = 0.05) -> tuple[int, float]:
    """Return (m, error) of the least `net_error` found over m.

    Every m is valid, so the bound is too: up to 1,000 all are tried, beyond steps of 1 % and the neighbours
    of the best; none above n, which records hold every database exactly.

    Args:
        radius: rows -> float, such as `threshold_radius`.
    """

    def error(rows: int) -> float:
        return net_error(0.0 if rows == n else radius(rows), rows, size, n, epsilon, beta)

    check_function("radius", radius, remedy="write rows -> float")
    n = _n(n)
    trials, rows = [], 1
    while rows < n:
        trials.append(rows)
        rows += max(1, rows // 100) if rows >= 1000 else 1
    best = min([*trials, n], key=error)
    near = range(max(1, best - best // 50), min(n, best + best // 50) + 1)
    best = min([best, *near[:: max(1, len(near) // 1000)]], key=error)
    return best, error(best)


def least_net_n(radius: Radius, alpha: float, size: int, epsilon: float, beta: float = 0.05) -> int:
    """Return the least n found over m with `net_error` <= alpha.

    n = 2 (ln C(|X|+m-1, m) + ln(1/beta))/(epsilon (alpha - radius)).

    Dwork & Roth (2014), Theorem 4.5 with the nets above.

    Args:
        radius: rows -> float. As in `best_net`.
        alpha: In (0, 1]. Wanted error of every query.

    Raises:
        InfeasibleAccuracyError: If that n exceeds 2^63, or no m below 2^40 has a radius below alpha.
    """
    alpha, epsilon = _alpha(alpha), _epsilon(epsilon)
    spare, best, rows = -math.log(checked_beta(beta)), math.inf, 1
    while rows <= LARGEST_ROWS:
        needed = 2 * (log_multisets(size, rows) + spare) / epsilon
        if needed / alpha >= best:
            break  # more rows cost more, and no radius is below zero
        room = alpha - radius(rows)
        best = min(best, needed / room) if room > 0 else best
        rows += max(1, rows // 100) if rows >= 1000 else 1
    if best == math.inf:
        raise InfeasibleAccuracyError(
            f"alpha must be above the radius of some net of 2^40 records, got alpha={alpha}; raise alpha."
        )
    return records_for(best * (1 + 2.0**-50))


def _net_error(radius: float, log_candidates: float, n: int, epsilon: float, beta: float) -> float:
    return radius + 2 * (log_candidates - math.log(checked_beta(beta))) / (_epsilon(epsilon) * _n(n))


def _logs(size: int, queries: int) -> float:
    """ln|X| ln|Q| of checked sizes."""
    size, queries = checked_integer("size", size, at_least=1), checked_integer("queries", queries, at_least=3)
    return math.log(size) * math.log(queries)


def _sampling_rows(alpha: float, queries: int) -> int:
    return math.floor(math.log(2 * queries) / (2 * alpha**2)) + 1


def _alpha(alpha: float) -> float:
    return checked_real("alpha", alpha, at_least=1e-9, at_most=1.0)


def _n(n: int) -> int:
    return checked_integer("n", n, at_least=1)
