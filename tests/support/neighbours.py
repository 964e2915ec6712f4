"""Tables and their neighbours, which have one record replaced, by enumeration."""

import itertools

import numpy as np


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
