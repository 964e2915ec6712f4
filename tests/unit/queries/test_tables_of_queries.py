"""Contractions and summed-area tables against plain numpy sums."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineic.queries import spread
from onlineic.queries import tables as _arrays
from onlineic.queries.tables import Tables, contract, multiply, sum_classes, summed_area

SHAPES = [
    (1,),
    (7,),
    (1, 5),
    (3, 4),
    (2, 3, 4),
    (70, 5, 3),
    (65, 9, 40),
    (2,) * 9,
    (3, 1, 4, 1, 5),
    (100, 4, 2),
]


def subsets(shape):
    axes = range(len(shape))
    chosen = [keep for size in range(len(shape) + 1) for keep in itertools.combinations(axes, size)]
    return chosen[:: max(1, len(chosen) // 40)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_contraction_of_integers_equals_the_sum_exactly(shape):
    cells = np.random.default_rng(0).integers(0, 1000, shape).astype(float)
    for keep in subsets(shape):
        gone = tuple(axis for axis in range(len(shape)) if axis not in keep)
        table = contract(cells, keep)

        assert cells.sum(axis=gone).tolist() == table.tolist()
        assert not np.shares_memory(table, cells)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_contraction_of_fractions_is_close_to_the_sum(shape):
    cells = np.random.default_rng(0).random(shape)
    cells /= cells.sum()
    for keep in subsets(shape):
        gone = tuple(axis for axis in range(len(shape)) if axis not in keep)

        assert 1e-14 >= np.abs(cells.sum(axis=gone) - contract(cells, keep)).max()


def test_contraction_is_exact_up_to_two_to_the_53():
    cells = np.full((4, 8), 2.0**48)
    cells[0, 0] -= 1

    assert 2**53 - 1 == int(contract(cells, ()))


def test_summed_area_has_a_zero_border():
    area = summed_area(np.array([[1.0, 2], [3, 4]]))

    assert [[0, 0, 0], [0, 1, 3], [0, 4, 10]] == area.tolist()


def test_spread_puts_axes_in_their_places():
    assert (1, 3, 1, 2) == spread(np.zeros((3, 2)), (1, 3), 4).shape


@given(st.data())
def test_box_boxes_and_slices_agree(data):
    """On integers to the last bit, in all three paths; on fractions box and boxes to the last bit."""
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    pair = [st.tuples(st.integers(0, shape[a]), st.integers(0, shape[a])).map(sorted) for a in axes]
    ends = np.array(data.draw(st.lists(st.tuples(*pair), min_size=1, max_size=6)))
    low, high = ends[:, :, 0], ends[:, :, 1]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    for cells in (rng.integers(0, 99, shape).astype(float), rng.random(shape)):
        whole = cells == np.rint(cells)
        table = cells.sum(axis=tuple(a for a in range(len(shape)) if a not in axes))
        slices = [float(table[tuple(map(slice, *box))].sum()) for box in zip(low, high, strict=True)]
        for prefix_cells in (0, 2**16):
            tables = Tables(cells, prefix_cells)
            alone = [
                tables.box(axes, tuple(a.tolist()), tuple(b.tolist())) for a, b in zip(low, high, strict=True)
            ]

            assert alone == tables.boxes(axes, low, high).tolist()
            assert np.allclose(slices, alone, rtol=0, atol=0 if whole.all() else 1e-12)


def test_boxes_over_many_axes_are_sliced():
    """2^20 corners of one box would take a second; a slice is one cell."""
    cells = np.arange(2.0**20).reshape((2,) * 20)
    tables = Tables(cells, 2**26)
    axes, point = tuple(range(20)), (1,) * 20

    assert 2.0**20 - 1 == tables.box(axes, point, (2,) * 20)
    assert [2.0**20 - 1] == tables.boxes(axes, np.array([point]), np.full((1, 20), 2)).tolist()


@given(st.data())
def test_weighted_sums_equal_einsum(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=3, max_size=5)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    cells = rng.integers(0, 99, shape).astype(float)
    order = data.draw(st.permutations(range(len(shape))))
    joint = tuple(sorted(order[:2]))
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, shape[order[2]])] * 2)))
    parts = [
        (joint, rng.integers(0, 9, [shape[a] for a in joint]).astype(float)),
        ((order[2],), (low, high)),
        *[((axis,), rng.integers(0, 9, shape[axis]).astype(float)) for axis in order[3:4]],
    ]
    expected = cells.copy()
    for axes, part in parts:
        if isinstance(part, tuple):
            part = np.isin(np.arange(shape[axes[0]]), range(*part)).astype(float)
        expected = expected * spread(part, axes, len(shape))
    held = tuple(sorted(axis for axes, _ in parts for axis in axes))

    assert expected.sum() == Tables(cells, 2**16).weighted(held, parts)


def test_tables_are_made_once_and_survive_a_full_cache(monkeypatch):
    cells = np.random.default_rng(0).random((8, 9, 10))
    tables = Tables(cells, 2**16)

    assert tables.table((0, 1)) is tables.table((0, 1))
    assert tables.table((0, 1, 2)) is cells
    monkeypatch.setattr(_arrays, "CACHE_BYTES", 1000)
    first = tables.box((0, 1), (1, 2), (5, 6))
    for axes in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)):
        tables.box(axes, (0,) * len(axes), (1,) * len(axes))

    assert first == tables.box((0, 1), (1, 2), (5, 6))
    assert cells.sum() == pytest.approx(tables.total(), abs=1e-12)


@pytest.mark.parametrize(
    ("count", "rows", "inner", "columns"),
    [
        (1, 1, 1, 1),
        (3, 4, 5, 6),
        (2, 300, 7, 300),
        (1, 5, 700, 9),
        (1, 130, 300, 90),
        (2, 1, 9000, 1),
        (1, 2, 1, 9000),
    ],
)
def test_products_of_matrices_block_by_block_are_exact_on_integers(count, rows, inner, columns):
    """And no block is large enough for the library to share it among threads."""
    rng = np.random.default_rng(0)
    left = rng.integers(-9, 10, (count, rows, inner)).astype(float)
    right = rng.integers(-9, 10, (count, inner, columns)).astype(float)
    blocks = []

    def seen(one, other):
        blocks.append((one.shape[1], one.shape[2], other.shape[2]))
        return np.einsum("bmk,bkn->bmn", one, other)

    with pytest.MonkeyPatch.context() as held:
        held.setattr(_arrays.np, "matmul", seen)
        np.testing.assert_array_equal(np.einsum("bmk,bkn->bmn", left, right), multiply(left, right))
    assert max(m * k * n for m, k, n in blocks) <= 2**18
    assert max(max(m * k, k * n) for m, k, n in blocks) <= 2304 * 4
    np.testing.assert_array_equal(np.matmul(left, right), multiply(left, right))


@pytest.mark.parametrize(
    "classes", [[0, 0, 1, 2, 2], [2, 0, 1, 0, 2], [0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [0] * 5]
)
def test_classes_are_summed_along_any_axis_in_any_order(classes):
    table, labels = np.random.default_rng(1).integers(0, 9, (5, 5, 5)).astype(float), np.array(classes)
    member = np.equal.outer(np.arange(labels.max() + 1), labels).astype(float)
    for axis in range(3):
        expected = np.moveaxis(np.tensordot(member, table, axes=(1, axis)), 0, axis)
        np.testing.assert_array_equal(expected, sum_classes(table, labels, axis))
