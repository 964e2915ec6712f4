"""Which of many linear programs have an optimum above a threshold, with private data in one side of each.

Rational arithmetic throughout: of a solver's floats no sensitivity is proven.

Proof: docs/theory/offline.md, 12.7.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from numbers import Rational
from operator import mul
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.accounting.rounding import float_up
from onlineic.data.private import PrivateData
from onlineic.domain.attributes import IntegerRange
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    checked_integer,
    checked_list,
    checked_ratio,
    set_fields,
    shown,
)
from onlineic.noise.sources import Noise
from onlineic.offline.compared import Compared, noisy_values, number
from onlineic.offline.release import Release
from onlineic.offline.simplex import Polyhedron
from onlineic.queries.partitions import Partition, one_way
from onlineic.sparse.above_threshold import Sparse
from onlineic.sparse.values import ValueSparse

Exact = tuple[Fraction, ...]
LARGEST_TOTAL = 2**62  # sums of private columns stay inside int64
FARTHEST = 2**61  # scores beyond are cut off, which moves no two of them apart


def _vector(name: str, values: Any) -> Exact:
    return tuple(number(name, value) for value in checked_list(name, values, of="numbers"))


def _table(name: str, values: Any) -> tuple[Exact, ...]:
    rows = tuple(_vector(name, row) for row in checked_list(name, values, of="rows"))
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        raise InvalidParameterError(
            f"{name} must hold one or more rows of one length, "
            f"got rows of {shown([len(row) for row in rows])}."
        )
    return rows


def _box(name: str, ends: Any) -> tuple[int, ...]:
    return tuple(checked_integer(name, end) for end in checked_list(name, ends, of="integers"))


def _matrix(rows: Any) -> tuple[Exact, ...]:
    return _table("matrix", rows)


def _sides(rows: Any) -> tuple[Exact, ...]:
    return _table("right_hand_sides", rows)


def _objective(row: Any) -> Exact:
    return _vector("objective", row)


def _lower(ends: Any) -> tuple[int, ...]:
    return _box("lower", ends)


def _upper(ends: Any) -> tuple[int, ...]:
    return _box("upper", ends)


@final
@attrs.frozen
class _Optimum:
    """n v_j: sign times the largest sign (shift + totals).x over a public set."""

    plans: Polyhedron
    sign: int
    shift: Exact

    def turned(self, totals: Iterable[int]) -> Exact:
        """Return what is maximised."""
        return tuple(self.sign * (one + other) for one, other in zip(self.shift, totals, strict=True))

    def value(self, totals: Iterable[int]) -> Fraction:
        """Return the optimum at private totals."""
        return self.sign * self.plans.maximum(self.turned(totals))


@final
@attrs.frozen(kw_only=True, repr=False)
class LinearPrograms:
    """v_j(D) = max c.x over {x >= 0: A x <= b_j}, one program for each public b_j, one side of it private.

    Without `objective` c = c(D) is the mean of the private records. With it c is public, and the mean h(D)
    of the records is added to every right-hand side: A x <= b_j + h(D). Opening checks, on public numbers
    alone, that every v_j is finite whatever the data, and bounds how far one replaced record moves it
    (theory 12.7): for w = upper - lower, and least, most the data with all records at `lower`, at `upper`,

        private c: (1/n) max w.x over {x in P_j: upper.x >= v_j(least)}, P_j = {x >= 0: A x <= b_j};
        private b: (1/n) max w.y over {y in Q: (b_j + lower).y <= v_j(most)}, Q = {y >= 0: A^T y >= c}.

    Where vertices are too many to list these maxima are linear programs, and must be bounded: every private
    right-hand side then needs slack under `lower`.

    Args:
        matrix: Shape (m, d). A. A float stands for the rational that it is; everything is computed exactly.
        right_hand_sides: Shape (K, m). b_1, ..., b_K. An equation is a row and its negative.
        lower, upper: (d,) or (m,) integers. Box of a record: of the coefficients, or with `objective` of what
            is added to each row; equal ends for what is public.
        n: At least 1. Number of records, public.
        objective: Shape (d,). c, if the private data are in the right-hand sides.
        unit: Above 0. Step of the public grid that private columns are codes of (`on_grid`).

    Attributes:
        sensitivities: How far one replaced record moves each v_j, at most.

    Raises:
        InvalidParameterError: If for some data a program has no solution or no bound, or no finite
            sensitivity was found; the data are not read.

    Examples:
        Two treatments take 2 hours and 1 hour; each patient gets at most one of each. The private data are
        what each would bring every patient, 0 to 10; the candidates are hours per patient:

        >>> from onlineic.offline import LinearPrograms
        >>> programs = LinearPrograms(
        ...     matrix=[[2, 1], [1, 0], [0, 1]],
        ...     right_hand_sides=[[hours, 1, 1] for hours in (0, 0.5, 1, 2, 3)],
        ...     lower=[0, 0],
        ...     upper=[10, 10],
        ...     n=10_000,
        ... )
        >>> [float(sensitivity) for sensitivity in programs.sensitivities]
        [0.0, 0.0005, 0.001, 0.0015, 0.002]
    """

    matrix: tuple[Exact, ...] = attrs.field(converter=_matrix)
    right_hand_sides: tuple[Exact, ...] = attrs.field(converter=_sides)
    lower: tuple[int, ...] = attrs.field(converter=_lower)
    upper: tuple[int, ...] = attrs.field(converter=_upper)
    n: int
    objective: Exact | None = attrs.field(default=None, converter=attrs.converters.optional(_objective))
    unit: Fraction = Fraction(1)
    sensitivities: Exact = attrs.field(init=False)
    _optima: tuple[_Optimum, ...] = attrs.field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        rows, columns = len(self.matrix), len(self.matrix[0])
        n = checked_integer("n", self.n, at_least=1)
        if any(len(side) != rows for side in self.right_hand_sides):
            raise InvalidParameterError(
                f"right_hand_sides must have the {rows} entries of a column of matrix, got rows of "
                f"{len(self.right_hand_sides[0])}."
            )
        if self.objective is not None and len(self.objective) != columns:
            raise InvalidParameterError(
                f"objective must have the {columns} entries of a row of matrix, got {len(self.objective)}."
            )
        private = columns if self.objective is None else rows
        if not len(self.lower) == len(self.upper) == private or any(map(int.__gt__, self.lower, self.upper)):
            raise InvalidParameterError(
                f"lower and upper must be {private} integers each, lower <= upper, got "
                f"lower={shown(self.lower)}, upper={shown(self.upper)}."
            )
        if n * max(map(abs, self.lower + self.upper)) > LARGEST_TOTAL:
            raise InvalidParameterError(
                f"n times the ends of the box must be <= 2^62, got n={n}; scale them."
            )
        set_fields(self, n=n, unit=checked_ratio("unit", self.unit, above=0.0))  # numpy's would overflow
        optima = tuple(self._prepared())
        widths = [self._width(place, optimum) for place, optimum in enumerate(optima)]
        set_fields(self, _optima=optima, sensitivities=tuple(self.unit * width / n for width in widths))

    def __repr__(self) -> str:
        side = "objective" if self.objective is None else "right-hand sides"
        size = f"{len(self.matrix)} rows and {len(self.matrix[0])} columns"
        return f"LinearPrograms({len(self.right_hand_sides)} programs of {size}, n={self.n}, private {side})"

    def optima(self, totals: Ints | Sequence[int]) -> Exact:
        """Return every v_j exactly, PRIVATE, from the column sums of the records.

        Args:
            totals: (d,) or (m,) integers. Sums of n records in the box, PRIVATE.

        Raises:
            InvalidParameterError: If they are not: the sensitivities would not hold.
        """
        sums = [int(total) for total in totals]
        if len(sums) != len(self.lower) or not all(
            self.n * low <= total <= self.n * high
            for low, total, high in zip(self.lower, sums, self.upper, strict=True)
        ):
            raise InvalidParameterError("totals must be the column sums of n records in the box.")
        return tuple(self.unit * optimum.value(sums) / self.n for optimum in self._optima)

    def scores(self, totals: Ints | Sequence[int], threshold: float | Rational) -> Ints:
        """Return floor((v_j - threshold)/sensitivity_j), (K,) int64, PRIVATE: one record moves each by <= 1.

        For `Sparse` with threshold 0, over records that no `PrivateData` holds. 1/n stands for sensitivity 0.
        """
        least = number("threshold", threshold)
        exact = [
            math.floor((value - least) / unit)
            for value, unit in zip(self.optima(totals), self.units, strict=True)
        ]
        return np.array([max(-FARTHEST, min(FARTHEST, score)) for score in exact], np.int64)

    @property
    def units(self) -> Exact:
        """What one unit of each score stands for: its sensitivity, or 1/n where that is 0."""
        return tuple(sensitivity or self.unit / self.n for sensitivity in self.sensitivities)

    def _prepared(self) -> Iterable[_Optimum]:
        """The programs if their objective is private, else their duals min (b + h).y, whose objective is."""
        if self.objective is None:
            for place, side in enumerate(self.right_hand_sides):
                plans = Polyhedron.of(self.matrix, side)
                if plans is None:
                    raise InvalidParameterError(
                        f"right_hand_sides must be feasible, got right_hand_sides[{place}], under which no "
                        "x >= 0 has A x <= b; raise it or leave it out."
                    )
                yield _Optimum(plans, 1, (Fraction(0),) * len(self.lower))
            return
        prices = Polyhedron.of(
            tuple(tuple(-entry for entry in column) for column in zip(*self.matrix, strict=True)),
            tuple(-entry for entry in self.objective),
            patient=True,  # one set serves all programs
        )
        if prices is None:
            raise InvalidParameterError(
                "objective must be bounded by the rows of matrix, got one for which no y >= 0 has "
                "A^T y >= c; add rows that limit the variables."
            )
        for side in self.right_hand_sides:
            yield _Optimum(prices, -1, tuple(self.n * entry / self.unit for entry in side))

    def _width(self, place: int, optimum: _Optimum) -> Fraction:
        """How far one record moves n v_j: the largest w.x over the x that can be optimal."""
        ends = [optimum.turned([self.n * end for end in side]) for side in (self.lower, self.upper)]
        least, most = ends[:: optimum.sign]  # x >= 0: every possible objective lies between them
        if not optimum.plans.limits(most):
            problem, remedy = (
                ("matrix must bound every optimum for all data", "add rows that limit the variables")
                if self.objective is None
                else ("right_hand_sides must be feasible for all data", "raise it, or lower")
            )
            raise InvalidParameterError(f"{problem}, got right_hand_sides[{place}]; {remedy}.")
        moved = tuple(Fraction(high - low) for low, high in zip(self.lower, self.upper, strict=True))
        width = optimum.plans.widest(moved, most, optimum.plans.maximum(least))
        if width is None:
            problem, remedy = (
                ("matrix must bound every plan that can be optimal", "add rows that limit the variables")
                if self.objective is None
                else ("right_hand_sides must leave slack in every private row for all data", "raise it")
            )
            raise InvalidParameterError(
                f"{problem}, got right_hand_sides[{place}], whose optimum has no known sensitivity; {remedy}."
            )
        return width


Columns = list[int | tuple[Partition, IntegerRange]]
LEAST_BETA = 1e-9  # of the tests that release optima


@final
@attrs.frozen(kw_only=True, repr=False)
class ProgramsAbove(Compared):
    """Which programs have an optimum of at least the threshold, in units of the objective.

    Attributes:
        optima: Noisy v_j of the hits, if they were asked for.
        optimum_bounds: For each program: within the same event its optimum, if released, is off by at most
            this.
    """

    optima: tuple[float, ...] = ()
    optimum_bounds: tuple[float, ...] = ()

    def _shown(self) -> str:
        return f"{self.above}, {self._compared}"


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

    Noise is in multiples of each program's sensitivity. Programs are compared in their order: with growing
    budgets and cutoff 1 the answer is the least budget that seems to do. Its time can depend on the data
    where vertices are not listed (more than 5,000 bases). Where few columns are private, noisy column means
    cost less, and every program can be solved from them in public.

    Dwork & Roth (2014), Algorithm 2, as `Sparse` with allocation "optimal"; theory 12.7.

    Args:
        attributes: Which attribute, a range of integers, gives each private entry; None where `lower` =
            `upper`.
        programs: With the n of the data.
        threshold: In units of the objective.
        epsilon: In (0, 20].
        cutoff: At least 1.
        optima: Release the optimum of every hit too, at the same epsilon, by tests with one-sided noise
            (`sparse.ValueSparse`).
        beta: In [1e-250, 1), with optima in [1e-9, 1). Failure probability of `radii`.

    Raises:
        InvalidQueryError: If an attribute is unknown, or is no range of integers.

    Examples:
        The least number of hours (see `LinearPrograms`) that brings patients 5 on average. Treatments bring 5
        and 4, so that the optima are 0, 2, 4, 6.5 and 9:

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
    if type(optima) is not bool:
        raise InvalidParameterError(f"optima must be True or False, got {shown(optima)}; leave it out.")
    release = Release.pure(data, epsilon, noise, beta, LEAST_BETA if optima else 1e-250)
    if not isinstance(programs, LinearPrograms):
        raise InvalidParameterError(f"programs must be LinearPrograms, got a {type(programs).__name__}.")
    if programs.n != data.n:
        raise InvalidParameterError(f"n of programs must be that of the data, {data.n}, got n={programs.n}.")
    sums = _columns(data.domain, attributes, programs)
    least, units = number("threshold", threshold), programs.units
    if optima:
        values = ValueSparse.calibrated(
            release.budget, cutoff=cutoff, max_values=len(units), mechanism="exponential"
        )

        def scores() -> Iterator[int]:
            exact = programs.optima(_totals(data, sums))
            return (values.score(value, least, unit) for value, unit in zip(exact, units, strict=True))

        found = noisy_values(release, values, [least] * len(units), units, scores)
        return ProgramsAbove(
            above=found.above,
            tested=found.tested,
            radii=found.radii,
            optima=found.values,
            optimum_bounds=found.bounds,
            beta=release.beta,
            private=release.private,
        )
    sparse = Sparse(release.budget.epsilon, 0, cutoff, allocation="optimal")
    radius = sparse.radius(len(units), release.beta) + 1  # 1: the scores are rounded down

    def private() -> tuple[int, ...]:
        return sparse.select(programs.scores(_totals(data, sums), least), release.noise)

    above = release.read(private)
    return ProgramsAbove(
        above=above,
        tested=above[-1] + 1 if len(above) == cutoff else len(units),
        radii=tuple(float_up(radius * unit) for unit in units),
        beta=release.beta,
        private=release.private,
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
            f"attributes must be a list of {len(programs.lower)} names or None, got {shown(attributes)}."
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
                f"attributes must be ranges of integers without a missing cell, got {shown(name)}, a "
                f"{type(kind).__name__}; declare it as a range."
            )
        if kind.start < low or high < kind.stop - 1:
            raise InvalidParameterError(
                f"attributes must lie in their box, got {shown(name)} from {kind.start} to "
                f"{kind.stop - 1} for a box from {low} to {high}; widen it."
            )
        columns.append((one_way(domain, domain.axis(name)), kind))
    return columns
