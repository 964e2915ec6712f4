"""What tables tell of subspaces of levels, against least squares on the whole table."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import onlineic as ic
from onlineic.interactions.levels import levels_of
from onlineic.interactions.sizes import informed, rows_of, table_of

DOMAIN = ic.Domain.of(a=range(12), b=["x", "y", "z"], c=range(2))
LEVELS = levels_of(DOMAIN)
KEYS = st.tuples(*[st.integers(0, one.finest) for one in LEVELS]).map(
    lambda row: tuple((axis, level) for axis, level in enumerate(row) if level)
)


def _parts(key):
    """The blocks of a table as rows over all cells."""
    partition = table_of(DOMAIN, key)
    cells = np.indices(DOMAIN.shape).reshape(len(DOMAIN.shape), -1)
    block = np.zeros(DOMAIN.size, np.int64)
    for axis, classes, parts in zip(partition.axes, partition.classes, partition.shape, strict=True):
        block = block * parts + classes[cells[axis]]
    return (block == np.arange(partition.blocks)[:, None]).astype(float)


def _contrasts(key):
    """Weights of cells that a subspace is made of: one unit direction, constant on parts of its levels."""
    weights, held = np.ones(()), dict(key)
    for axis, one in enumerate(LEVELS):
        level = held.get(axis, 0)
        first = np.zeros(one.parts[-1])
        first[0] = 1.0
        beyond = one.beyond(first, level)
        vector = beyond[one.classes[level]]
        weights = np.multiply.outer(weights, vector)
    return weights.ravel()


@given(KEYS.filter(bool), st.lists(st.tuples(KEYS.filter(bool), st.floats(0.5, 4.0)), min_size=1, max_size=3))
def test_the_precision_of_a_subspace_is_that_of_least_squares(subspace, tables):
    """The variance of weights @ cells by all tables, of all cells unknown; inf where some are not told."""
    width = len(DOMAIN.shape)
    rows = rows_of([key for key, _ in tables], width)
    told = float((informed(LEVELS, rows_of([subspace], width), rows) @ [one for _, one in tables])[0])

    information = sum(precision * _parts(key).T @ _parts(key) for key, precision in tables)
    weights = _contrasts(subspace)
    solved = np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ weights
    reached = np.allclose(information @ solved, weights, atol=1e-8)
    assert reached == (told > 0.0)
    if reached:
        # weights are of cells: their sum of squares by the parts of a level, as `Levels.energies` sums them
        energy = float(weights @ weights) / math.prod(
            DOMAIN.shape[axis] / LEVELS[axis].parts[dict(subspace).get(axis, 0)] for axis in range(width)
        )
        assert math.isclose(float(weights @ solved), energy / told, rel_tol=1e-6)
