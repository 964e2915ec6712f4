"""How far one neighbour moves what is computed from a table: the only place that says so.

Whoever scales noise, prices a release or bounds what is left asks the relation that it was given.

Proof: docs/theory/periods.md, 13.3; docs/theory/queries.md, 1.4, 1.5, 1.6, 1.9.
"""

import abc
from typing import TypeVar, final

import attrs

from onlineic._typing import Ints
from onlineic.errors import checked_integer, set_fields

Weight = TypeVar("Weight", int, Ints)


class Neighbours(abc.ABC):
    """A relation between tables that privacy holds for, by the most that one step of it moves.

    Frozen and hashable: budgets and mechanisms carry it. Integer weights w lie on a grid, and what they count
    is the sum of w over the records. Every answer is an exact integer that no neighbour exceeds. One of your
    own is your claim: nothing checks it, and sessions take the number of records as public, but for tables
    that were loaded with neighbours="add-remove".
    """

    rows: int = 1  # records that a neighbour changes at once, at most: what is rounded is rounded for each

    @abc.abstractmethod
    def test(self, lowest: Weight, highest: Weight) -> Weight:
        """Return how far a gap moves that is tested: of a count of weights in [lowest, highest] from a guess.

        Args:
            lowest, highest: One number, or shape (m,). The least and the largest integer weight of the query
                in the form in which it is asked.
        """

    @abc.abstractmethod
    def number(self, lowest: Weight, highest: Weight) -> Weight:
        """Return how far a count of weights in [lowest, highest] moves that is released with noise."""

    @abc.abstractmethod
    def table_l1(self, unit: int = 1) -> int:
        """Return how far all counts of disjoint blocks move together, in L1.

        Args:
            unit: At least 1. What one record is worth: 2^k on a grid of k bits.
        """

    @abc.abstractmethod
    def table_squared(self, unit: int = 1) -> int:
        """Return how far all counts of disjoint blocks move together, in squared L2, of the unit squared."""

    @abc.abstractmethod
    def largest_gap(self, unit: int = 1) -> int:
        """Return how far the count of any one block moves, and so the largest gap from its guess."""

    def any_gap(self, unit: int = 1) -> int:
        """Return the most that a tested gap moves: of weights in [0, unit], or the largest of a table."""
        return max(self.test(0, unit), self.largest_gap(unit))


@final
@attrs.frozen
class ReplaceOne(Neighbours):
    """One record is replaced by another; the number of records is public.

    A record with weight w becomes one with weight w', so that a count moves by at most max w - min w. The
    record leaves one block of a table and enters another.

    Dwork & Roth (2014), Definitions 2.4 and 3.1, with "replace one record" for their neighbours.
    """

    def test(self, lowest: Weight, highest: Weight) -> Weight:
        return highest - lowest

    def number(self, lowest: Weight, highest: Weight) -> Weight:
        return highest - lowest

    def table_l1(self, unit: int = 1) -> int:
        return 2 * unit

    def table_squared(self, unit: int = 1) -> int:
        return 2 * unit**2

    def largest_gap(self, unit: int = 1) -> int:
        return unit


@final
@attrs.frozen
class AddRemove(Neighbours):
    """One record is added or removed; the number of records is as private as all else.

    A count of weights w moves by the weight of that record, at most max abs(w), and the record enters or
    leaves one block of a table. (epsilon, delta) of it is (2 epsilon, (1 + e^epsilon) delta) of `ReplaceOne`.

    Dwork & Roth (2014), Definitions 2.4 and 3.1: databases at distance 1 as histograms.
    """

    def test(self, lowest: Weight, highest: Weight) -> Weight:
        low, high = abs(lowest), abs(highest)
        return (low + high + abs(low - high)) // 2  # the larger, of numbers and of arrays

    def number(self, lowest: Weight, highest: Weight) -> Weight:
        return self.test(lowest, highest)

    def table_l1(self, unit: int = 1) -> int:
        return unit

    def table_squared(self, unit: int = 1) -> int:
        return unit**2

    def largest_gap(self, unit: int = 1) -> int:
        return unit


@final
@attrs.frozen
class ReplaceRows(Neighbours):
    """So many records are replaced at once, at most: those of one person; the number of records is public.

    All of them may leave one block of a table for one other, so that distances are those of `ReplaceOne`
    times their number, and squares of distances times its square.

    Theory 13.3. By the triangle inequality, which tables of r equal rows attain.

    Args:
        rows: At least 1. r, the most records of one person.
    """

    rows: int = attrs.field()

    def __attrs_post_init__(self) -> None:
        set_fields(self, rows=checked_integer("rows", self.rows, at_least=1))

    def test(self, lowest: Weight, highest: Weight) -> Weight:
        return self.rows * (highest - lowest)

    def number(self, lowest: Weight, highest: Weight) -> Weight:
        return self.rows * (highest - lowest)

    def table_l1(self, unit: int = 1) -> int:
        return 2 * self.rows * unit

    def table_squared(self, unit: int = 1) -> int:
        return 2 * (self.rows * unit) ** 2

    def largest_gap(self, unit: int = 1) -> int:
        return self.rows * unit


REPLACE_ONE = ReplaceOne()
ADD_REMOVE = AddRemove()
