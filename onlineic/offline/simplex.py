"""Exact linear programs over {x >= 0: A x <= b}: optima and vertices, in integers, without a tolerance.

A float solver stops within a tolerance, which is no bound on its error; what is released from private data
needs the optimum itself. Up to some 40 rows and columns exact pivots are also faster than such a solver.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import final

import attrs

from onlineic.errors import InternalError

Vector = Sequence[Fraction]
MOST_BASES = 5_000  # of a set whose vertices are listed


@final
@attrs.frozen
class Dictionary:
    """Equations solved for `basic`: scale basic_i = rows[i][-1] - sum_j rows[i][j] free_j, in integers.

    A row after those of `basic` is an objective: scale z = row[-1] - sum_j row[j] free_j.

    Args:
        scale: Above 0. The determinant of the basis: every entry is a minor of the integer system, so
            division is exact.
        basic, free: Variables 0, ..., d - 1 are x, d, d + 1, ... the slacks of the rows.
    """

    rows: tuple[list[int], ...]
    scale: int
    basic: tuple[int, ...]
    free: tuple[int, ...]

    def pivoted(self, row: int, column: int) -> "Dictionary":
        """Return the dictionary in which basic[row] and free[column] have changed places.

        Edmonds (1967), Bareiss (1968): elimination that divides by the pivot before the last, exactly.
        """
        chosen = self.rows[row]
        pivot = chosen[column]
        sign = 1 if pivot > 0 else -1
        rows = [
            [
                sign * (entry * pivot - entries[column] * other) // self.scale
                for entry, other in zip(entries, chosen, strict=True)
            ]
            for entries in self.rows
        ]
        for new, entries in zip(rows, self.rows, strict=True):
            new[column] = -sign * entries[column]
        rows[row] = [sign * (self.scale if place == column else entry) for place, entry in enumerate(chosen)]
        basic, free = list(self.basic), list(self.free)
        basic[row], free[column] = free[column], basic[row]
        return Dictionary(tuple(rows), abs(pivot), tuple(basic), tuple(free))

    def point(self) -> tuple[Fraction, ...]:
        """Return the vertex x: the free variables are 0."""
        solved = {variable: row[-1] for variable, row in zip(self.basic, self.rows, strict=False)}
        return tuple(Fraction(solved.get(variable, 0), self.scale) for variable in range(len(self.free)))

    def leaving(self, column: int) -> list[int]:
        """Return the rows that reach 0 first when free[column] grows; none: it may grow without end."""
        steps = {
            place: Fraction(row[-1], row[column])
            for place, row in zip(range(len(self.basic)), self.rows, strict=False)
            if row[column] > 0
        }
        shortest = min(steps.values(), default=None)
        return [place for place, step in steps.items() if step == shortest]


@final
@attrs.frozen
class Polyhedron:
    """{x >= 0: A x <= b}, not empty, with its vertices listed where they are few.

    Args:
        matrix, bounds: A and b.
        start: A feasible one.
        corners: Each vertex times a unit, and that unit.
    """

    matrix: tuple[Vector, ...]
    bounds: Vector
    start: Dictionary
    corners: tuple[tuple[list[int], int], ...] | None

    @classmethod
    def of(cls, matrix: Sequence[Vector], bounds: Vector, *, patient: bool = False) -> "Polyhedron | None":
        """Return the set, or None if it is empty.

        Its vertices are listed where 5,000 bases or fewer are possible; with `patient`, are feasible: which
        shows only after a walk over so many.
        """
        start = feasible(matrix, bounds)
        if start is None:
            return None
        few = patient or math.comb(len(bounds) + len(start.free), len(bounds)) <= MOST_BASES
        points = vertices(start, MOST_BASES) if few else None
        return cls(tuple(matrix), bounds, start, None if points is None else tuple(map(_integers, points)))

    def limits(self, objective: Vector) -> bool:
        """Return whether objective.x has a bound."""
        return maximum(self.start, objective) is not None

    def maximum(self, objective: Vector) -> Fraction:
        """Return the largest objective.x, which must have a bound: then a vertex attains it."""
        if self.corners is not None:
            weights, scale = _integers(objective)
            return max(Fraction(sum(map(mul, weights, x)), unit) for x, unit in self.corners) / scale
        best = maximum(self.start, objective)
        if best is None:
            raise InternalError("objective must be bounded.")
        return best

    def widest(self, width: Vector, objective: Vector, least: Fraction) -> Fraction | None:
        """Return the largest width.x over the vertices with objective.x >= least, of which there is one.

        Where the vertices are not listed, over all such x, which is no less; None if it has no bound.
        """
        if self.corners is not None:
            points = [[Fraction(entry, unit) for entry in x] for x, unit in self.corners]
            held = [x for x in points if sum(map(mul, objective, x)) >= least]
            return max(Fraction(sum(map(mul, width, x))) for x in held)
        start = feasible([*self.matrix, [-entry for entry in objective]], [*self.bounds, -least])
        return None if start is None else maximum(start, width)


def feasible(matrix: Sequence[Vector], bounds: Vector) -> Dictionary | None:
    """Return a feasible dictionary of {x >= 0: A x <= b}, or None if the set is empty.

    Phase one with a single artificial variable: Chvatal (1983), chapter 3.
    """
    rows = [_integers([*row, bound])[0] for row, bound in zip(matrix, bounds, strict=True)]
    width = len(rows[0]) - 1
    slacks, free = tuple(range(width, width + len(rows))), tuple(range(width))
    if all(row[-1] >= 0 for row in rows):
        return Dictionary(tuple(rows), 1, slacks, free)

    extra = width + len(rows)  # A x - x_extra <= b, and x_extra is to vanish
    widened = [[*row[:-1], -1, row[-1]] for row in [*rows, [0] * (width + 1)]]
    widened[-1][width] = 1
    lowest = min(range(len(rows)), key=lambda place: rows[place][-1])
    optimal = _ascended(Dictionary(tuple(widened), 1, slacks, (*free, extra)).pivoted(lowest, width))
    if optimal is None or optimal.rows[-1][-1] < 0:
        return None
    if extra in optimal.basic:  # at 0: any other variable may take its place
        place = optimal.basic.index(extra)
        optimal = optimal.pivoted(place, next(c for c in range(width + 1) if optimal.rows[place][c]))
    gone = optimal.free.index(extra)
    return Dictionary(
        tuple(row[:gone] + row[gone + 1 :] for row in optimal.rows[:-1]),
        optimal.scale,
        optimal.basic,
        optimal.free[:gone] + optimal.free[gone + 1 :],
    )


def maximum(start: Dictionary, objective: Vector) -> Fraction | None:
    """Return max objective.x over the set that `start` is a feasible dictionary of; None: it has no bound."""
    weights, unit = _integers(objective)
    weights += [0] * len(start.basic)
    costs = [*(weights[variable] * start.scale for variable in start.free), 0]
    row = [
        sum(
            weights[variable] * entries[column]
            for variable, entries in zip(start.basic, start.rows, strict=True)
        )
        - cost
        for column, cost in enumerate(costs)
    ]
    optimal = _ascended(attrs.evolve(start, rows=(*start.rows, row)))
    return None if optimal is None else Fraction(optimal.rows[-1][-1], optimal.scale * unit)


def vertices(start: Dictionary, most: int) -> tuple[tuple[Fraction, ...], ...] | None:
    """Return every vertex, by a walk over the feasible bases; None if there are more than `most` of these."""
    seen, waiting = {frozenset(start.basic)}, [start]
    points = {start.point()}
    while waiting:
        here = waiting.pop()
        for column, entering in enumerate(here.free):
            for row in here.leaving(column):  # all ties: at a degenerate vertex one alone may lead nowhere
                basis = frozenset(here.basic) - {here.basic[row]} | {entering}
                if basis in seen:
                    continue
                if len(seen) >= most:
                    return None
                seen.add(basis)
                waiting.append(here.pivoted(row, column))
                points.add(waiting[-1].point())
    return tuple(sorted(points))


def _integers(vector: Vector) -> tuple[list[int], int]:
    """Return (u v, u) with the least u > 0 that makes u v integer."""
    unit = math.lcm(*(value.denominator for value in vector))
    return [int(value * unit) for value in vector], unit


def _ascended(start: Dictionary) -> Dictionary | None:
    """Primal simplex on the last row: steepest entry, and Bland's least index after a step of length 0.

    A cycle would consist of steps of length 0, hence of Bland's alone, which do not cycle.
    """
    here, stalled = start, False
    while True:
        gains = here.rows[-1][:-1]
        entering = [column for column, gain in enumerate(gains) if gain < 0]
        if not entering:
            return here
        column = min(entering, key=here.free.__getitem__ if stalled else gains.__getitem__)
        leaving = here.leaving(column)
        if not leaving:
            return None
        row = min(leaving, key=here.basic.__getitem__)
        stalled = here.rows[row][-1] == 0
        here = here.pivoted(row, column)
