"""Tables and their neighbours, which have one record replaced, by enumeration; and other relations."""

import itertools

import attrs
import numpy as np

from onlineic.accounting import Neighbours


def replaced_records(n, values):
    """Every pair of n records, and the same with one of them replaced."""
    for rest in itertools.combinations_with_replacement(values, n - 1):
        for x, y in itertools.permutations(values, 2):
            yield (*rest, x), (*rest, y)


def tables(records, cells):
    """Every table of so many records."""
    for chosen in itertools.combinations_with_replacement(range(cells), records):
        yield np.bincount(chosen, minlength=cells)


def replaced(counts):
    """Every table that differs in one record."""
    for out, into in itertools.permutations(range(len(counts)), 2):
        if counts[out]:
            other = counts.copy()
            other[out] -= 1
            other[into] += 1
            yield other


@attrs.frozen
class Planted(Neighbours):
    """A relation by other numbers than those of replaced records, each of them another."""

    tested: int = 3
    numbers: int = 5
    l1: int = 7
    squared: int = 11
    block: int = 2

    def test(self, lowest, highest):
        return self.tested * (highest - lowest)

    def number(self, lowest, highest):
        return self.numbers * (highest - lowest)

    def table_l1(self, unit=1):
        return self.l1 * unit

    def table_squared(self, unit=1):
        return self.squared * unit**2

    def largest_gap(self, unit=1):
        return self.block * unit


@attrs.frozen
class Added(Neighbours):
    """One record more or less, as far as it moves what is counted: by its weight, in one block."""

    def test(self, lowest, highest):
        return 1 * highest

    def number(self, lowest, highest):
        return 1 * highest

    def table_l1(self, unit=1):
        return unit

    def table_squared(self, unit=1):
        return unit**2

    def largest_gap(self, unit=1):
        return unit
