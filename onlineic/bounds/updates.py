"""T(alpha) of the update rules: how many hard queries a rule can need, as a real number.

A T(alpha)-update rule admits no more than T(alpha) steps with |f(x) - f(D)| > alpha (strictly) and |f(x) - v|
< alpha (Dwork & Roth 2014, Definition 5.3; the printed >= breaks the median rule). All weights lie in [0, 1].
Every T is non-increasing in alpha, so a solver may bisect. Throughout size >= 1 is |X|, the number of cells,
and alpha > 0 the gap that makes a query hard, a fraction of records.

Proof: docs/theory/updates.md, 7.2, 7.3, 7.4.
"""

import math

from onlineic.errors import checked_integer, checked_real


def mw_book_bound(size: int, alpha: float) -> float:
    """Return 4 ln|X| / alpha^2: multiplicative weights from uniform with the book's rate alpha/2.

    Dwork & Roth (2014), Theorem 4.10 without its "+1", which its proof does not need.
    """
    return 4 * math.log(_size(size)) / _alpha(alpha) ** 2


def mw_tight_bound(size: int, alpha: float, divergence: float | None = None, width: float = 1.0) -> float:
    """Return KL w^2 / (2 alpha^2): multiplicative weights with rate 4 alpha / w^2.

    Args:
        divergence: At least 0, nats. Public bound on KL(x || start); None: ln|X|, the bound for the uniform
            start.
        width: In (0, 1]. w, public bound on max - min weight of every query.
    """
    start = math.log(_size(size))
    if divergence is not None:
        start = checked_real("divergence", divergence, at_least=0.0)
    width = checked_real("width", width, above=0.0, at_most=1.0)
    return start * (width / _alpha(alpha)) ** 2 / 2


def perceptron_book_bound(size: int, alpha: float, p2: float = 1.0) -> float:
    """Return p2 |X| / alpha^2: the perceptron from zero with step alpha/|X|.

    Dwork & Roth (2014), Theorem 5.11 with a public p2 in place of ||x||^2.

    Args:
        p2: In [1/|X|, 1]. Public bound on the squared norm of the normalised data; the norm itself is
            private.
    """
    return _p2(p2, size) * _cells(size) / _alpha(alpha) ** 2


def perceptron_centred_bound(size: int, alpha: float, p2: float = 1.0) -> float:
    """Return (|X| p2 - 1) / (4 alpha^2): from uniform, along f - mean(f), step 4 alpha/|X|.

    p2 as in `perceptron_book_bound`.
    """
    return max(0.0, _cells(size) * _p2(p2, size) - 1) / (4 * _alpha(alpha) ** 2)


def median_book_bound(size: int, alpha: float, max_queries: int) -> float:
    """Return log2|X| ln Q / alpha^2: median over all databases of size ln Q / alpha^2.

    Dwork & Roth (2014), Theorem 5.8 and Theorem 4.2; sharper nets below.

    Args:
        max_queries: At least 2. Q, queries that the net serves.
    """
    queries = checked_integer("max_queries", max_queries, at_least=2)
    return math.log2(_size(size)) * math.log(queries) / _alpha(alpha) ** 2


def median_sampling_bound(size: int, alpha: float, max_queries: int, n: int) -> float:
    """Return min(log2 C(|X|+m-1, m), log2 C(|X|+n-1, n)) with m = floor(ln(2Q)/(2 alpha^2)) + 1.

    Dwork & Roth (2014), Theorem 5.8 with multisets counted once and m from Hoeffding's inequality.

    Args:
        max_queries: At least 1. Q, queries that the net serves.
        n: At least 1. Records.
    """
    queries, n = checked_integer("max_queries", max_queries, at_least=1), checked_integer("n", n, at_least=1)
    rows = math.floor(math.log(2 * queries) / (2 * _alpha(alpha) ** 2)) + 1
    # The count grows with the number of rows, so the minimum is the count of the smaller net.
    return log_multisets(size, min(rows, n)) / math.log(2)


def median_dimension_bound(size: int, alpha: float) -> float:
    """Return log2 C(|X|+m-1, m) with m = ceil(|X|/(4 alpha)): a net for every query at once."""
    cells = _cells(size)
    if math.isinf(cells):
        return math.inf
    return log_multisets(size, math.ceil(cells / (4 * _alpha(alpha)))) / math.log(2)


def log_multisets(size: int, rows: int) -> float:
    """Return ln C(|X| + m - 1, m), natural log of the number of databases of m rows.

    Relative error below 1e-12 at any size: a difference of lgamma values would cancel.
    """
    first, second = sorted((_size(size) - 1, checked_integer("rows", rows, at_least=1)))
    if first <= 1000:
        return math.fsum(math.log1p(second / i) for i in range(1, first + 1))
    # Stirling's series, three terms
    entropy = first * math.log1p(second / first) + second * math.log1p(first / second)
    middle = math.log((1 / first + 1 / second) / (2 * math.pi)) / 2
    return entropy + middle + _stirling(first + second) - _stirling(first) - _stirling(second)


def _stirling(number: int) -> float:
    """ln n! minus its leading terms (n + 1/2) ln n - n + ln(2 pi)/2."""
    return 1 / (12 * number) - 1 / (360 * number**3) + 1 / (1260 * number**5)


def _size(size: int) -> int:
    """Checked |X|."""
    return checked_integer("size", size, at_least=1)


def _alpha(alpha: float) -> float:
    """Checked alpha; above 1 it is vacuous but legal, solvers pass through there."""
    return checked_real("alpha", alpha, at_least=1e-12)


def _cells(size: int) -> float:
    """Checked number of cells as a float, which may be infinite."""
    try:
        return float(_size(size))
    except OverflowError:
        return math.inf


def _p2(p2: float, size: int) -> float:
    """Checked bound on the squared norm: no distribution on |X| cells lies below 1/|X|."""
    return checked_real("p2", p2, at_least=(1 - 1e-12) / _cells(size), at_most=1.0)
