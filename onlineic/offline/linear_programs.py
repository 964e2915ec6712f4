"""Which of many linear programs have an optimum above a threshold, with private data in one side of each.

What is compared is floor((v_j - threshold)/sensitivity_j), an exact integer function of the data: rational
arithmetic finds v_j itself, and one replaced record moves the quotient by at most 1, hence its floor as well.
What `scipy.optimize.linprog` returns is a float within a tolerance: no sensitivity is proven of it.
"""

from collections.abc import Sequence
from fractions import Fraction
from numbers import Rational
from operator import mul
from typing import final

import attrs

from onlineic._typing import Ints
from onlineic.accounting.budget import Budget
from onlineic.accounting.rounding import float_up
from onlineic.data.private import PrivateData
from onlineic.data.release import check_types, checked_noise, is_private, released
from onlineic.domain.attributes import IntegerRange
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError, checked_real
from onlineic.noise.sources import Noise
from onlineic.offline.programs import LinearPrograms, number
from onlineic.queries.partitions import Partition, one_way
from onlineic.sparse.above_threshold import Sparse
from onlineic.sparse.values import ValueSparse

__all__ = ["ProgramsAbove", "linear_programs_above"]

Columns = list[int | tuple[Partition, IntegerRange]]
LEAST_BETA = 1e-9  # of the tests that release optima


@final
@attrs.frozen(repr=False)
class ProgramsAbove:
    """Which programs were found to have an optimum of at least the threshold.

    Attributes
    ----------
    above : tuple of int
        Indices of the hits, increasing, at most `cutoff`.
    tested : int
        The programs 0, ..., tested - 1 were compared; those behind the last hit allowed were not reached.
    radii : tuple of float
        For each program, in units of its objective: with probability 1 - beta every hit has v_j >= threshold
        - radius, and every other program that was compared v_j < threshold + radius.
    beta : float
    private : bool
        False: simulated noise was used, the indices are NOT PRIVATE.
    optima : tuple of float
        Noisy v_j of the hits, in units of the objective, if they were asked for.
    optimum_bounds : tuple of float
        For each program: within the same event its optimum, if released, is off by at most this.
    """

    above: tuple[int, ...]
    tested: int
    radii: tuple[float, ...]
    beta: float
    private: bool
    optima: tuple[float, ...] = ()
    optimum_bounds: tuple[float, ...] = ()

    @property
    def not_reached(self) -> range:
        """Programs that were not compared: nothing is said of them."""
        return range(self.tested, len(self.radii))

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        return f"ProgramsAbove({self.above}, {self.tested} of {len(self.radii)} compared{stamp})"


def linear_programs_above(
    data: PrivateData,
    attributes: Sequence[str | None],
    programs: LinearPrograms,
    threshold: float | Rational,
    epsilon: float,
    *,
    cutoff: int = 1,
    optima: bool = False,
    beta: float = 0.05,
    noise: Noise | None = None,
) -> ProgramsAbove:
    """Return the first programs with v_j + nu_j >= threshold + rho, at most `cutoff`: (epsilon, 0)-private.

    nu_j and rho are multiples of its own sensitivity. Programs are compared in their order:
    with growing budgets and cutoff 1 the answer is the least budget that seems to do.

    Parameters
    ----------
    data : PrivateData
    attributes : sequence of str or None
        Which attribute, a range of integers, gives each private entry; None where `lower` = `upper`.
    programs : LinearPrograms
        With the n of the data.
    threshold : number
        In units of the objective.
    epsilon : float, in (0, 20]
    cutoff : int, >= 1
    optima : bool
        Release the optimum of every hit too: tests with one-sided noise then take the place of `Sparse`, and
        the free gap that they pay for is the optimum (`sparse.ValueSparse`). The cost is the same epsilon.
    beta : float, in [1e-250, 1), with optima in [1e-9, 1)
        Failure probability of `radii`; privacy does not depend on it.
    noise : Noise, optional
        By default the system's entropy.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range, or an attribute outside its box; nothing was read or spent.
    InvalidQueryError
        If an attribute is unknown, or is no range of integers; likewise.

    Notes
    -----
    No outcome but the indices and optima depends on the data: exact arithmetic cannot fail on some data
    alone. Its time can depend on them where the vertices are not listed (more than 5,000 bases).

    Where few columns are private, or a record can move all of them at once and prices are high, noisy column
    means cost less, and every program can be solved from them in public, by any solver.

    References
    ----------
    Dwork & Roth (2014), Algorithm 2, as `Sparse` with allocation "optimal"; `radii` are (a + 1) sensitivity,
    a = Sparse.radius(K, beta), where its Theorem 3.26 has 8c (ln K + ln(2c/beta))/epsilon for a.

    Examples
    --------
    The least number of hours (see `LinearPrograms`) that brings patients 5 on average. Treatments bring 5
    and 4, so that the optima are 0, 2, 4, 6.5 and 9:

    >>> import numpy as np, onlineic as ic
    >>> from onlineic.offline import LinearPrograms, linear_programs_above
    >>> domain = ic.Domain.of(first=range(11), second=range(11))
    >>> benefits = {"first": np.full(10_000, 5), "second": np.arange(10_000) % 5 + 2}
    >>> data = ic.PrivateData.from_records(benefits, domain)
    >>> programs = LinearPrograms(
    ...     matrix=[[2, 1], [1, 0], [0, 1]],
    ...     right_hand_sides=[[hours, 1, 1] for hours in (0, 0.5, 1, 2, 3)],
    ...     lower=[0, 0],
    ...     upper=[10, 10],
    ...     n=10_000,
    ... )
    >>> linear_programs_above(data, ["first", "second"], programs, threshold=5, epsilon=1.0)
    ProgramsAbove((3,), 4 of 5 compared)
    """
    source, budget = checked_noise(noise), Budget(epsilon)
    check_types(data, budget)
    if not isinstance(programs, LinearPrograms):
        raise InvalidParameterError(f"programs must be LinearPrograms, got a {type(programs).__name__}.")
    if programs.n != data.n:
        raise InvalidParameterError(f"n of programs must be that of the data, {data.n}, got n={programs.n}.")
    sums = _columns(data.domain, attributes, programs)
    least = number("threshold", threshold)
    if optima:
        return _with_optima(data, sums, programs, least, budget, cutoff, beta, source)
    sparse = Sparse(budget.epsilon, 0, cutoff, allocation="optimal")
    radius = sparse.radius(len(programs.right_hand_sides), beta) + 1  # 1: the scores are rounded down

    def private() -> tuple[int, ...]:
        return sparse.select(programs.scores(_totals(data, sums), least), source)

    above = released(data, budget, source, private)
    return ProgramsAbove(
        above=above,
        tested=above[-1] + 1 if len(above) == cutoff else len(programs.right_hand_sides),
        radii=tuple(float_up(radius * unit) for unit in programs.units),
        beta=float(beta),
        private=is_private(source),
    )


def _with_optima(
    data: PrivateData,
    sums: Columns,
    programs: LinearPrograms,
    least: Fraction,
    budget: Budget,
    cutoff: int,
    beta: float,
    source: Noise,
) -> ProgramsAbove:
    """Return the hits with the optima that their tests have paid for."""
    units, count = programs.units, len(programs.right_hand_sides)
    sparse = ValueSparse.calibrated(budget, cutoff=cutoff, max_values=count, mechanism="exponential")
    beta = checked_real("beta", beta, at_least=LEAST_BETA, below=1.0)
    tests, numbers = map(Fraction, sparse.radii(count, beta))

    def private() -> tuple[tuple[int, float], ...]:
        exact = programs.optima(_totals(data, sums))
        scores = (sparse.score(value, least, unit) for value, unit in zip(exact, units, strict=True))
        return sparse.select(scores, source)

    found = released(data, budget, source, private)
    above = tuple(place for place, _ in found)
    return ProgramsAbove(
        above=above,
        tested=above[-1] + 1 if len(above) == sparse.cutoff else count,
        radii=tuple(float_up(tests * unit) for unit in units),
        beta=beta,
        private=is_private(source),
        optima=tuple(float(least + units[place] * Fraction(multiple)) for place, multiple in found),
        optimum_bounds=tuple(float_up(numbers * unit) for unit in units),
    )


def _totals(data: PrivateData, sums: Columns) -> list[int]:
    """Exact sums of n records, PRIVATE."""
    return [
        data.n * column if isinstance(column, int) else _total(data.exact_counts(column[0]), column[1])
        for column in sums
    ]


def _total(counts: Ints, kind: IntegerRange) -> int:
    """Exact sum of a column, PRIVATE."""
    return sum(map(mul, counts.tolist(), range(kind.start, kind.stop)))


def _columns(domain: Domain, attributes: Sequence[str | None], programs: LinearPrograms) -> Columns:
    """For each private entry its constant, or the partition that its column sum is read from."""
    if isinstance(attributes, (str, type(None))) or len(attributes) != len(programs.lower):
        raise InvalidParameterError(
            f"attributes must be a list of {len(programs.lower)} names or None, got {attributes!r:.60}."
        )
    columns: Columns = []
    for name, low, high in zip(attributes, programs.lower, programs.upper, strict=True):
        if name is None:
            if low < high:
                raise InvalidParameterError(
                    f"attributes must name what is private, got None for a box from {low} to {high}."
                )
            columns.append(low)
            continue
        kind = domain.attribute(name)
        if not isinstance(kind, IntegerRange) or kind.missing:
            raise InvalidQueryError(
                f"attributes must be ranges of integers without a missing cell, got {name!r}, a "
                f"{type(kind).__name__}; declare it as a range."
            )
        if kind.start < low or high < kind.stop - 1:
            raise InvalidParameterError(
                f"attributes must lie in their box, got {name!r} from {kind.start} to {kind.stop - 1} for a "
                f"box from {low} to {high}; widen it."
            )
        columns.append((one_way(domain, domain.axis(name)), kind))
    return columns
