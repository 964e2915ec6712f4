"""Merge trees: what is joined with what, and that three parts whose product is the whole are found."""

import itertools
import math

import numpy as np
import pytest

from onlineic.hypothesis import merge_tree
from onlineic.hypothesis.merge_tree import MergeTree


def leaves_below(tree, count):
    """The given tables whose product each table of the root is."""
    below = {place: {place} for place in range(count)}
    for place, pair in enumerate(tree.nodes, start=count):
        below[place] = set.union(*(below[link.child] for link in pair))
    return [below[link.child] for link in tree.root]


def pairs_of(axes):
    return [*itertools.combinations(range(axes), 2), *((axis,) for axis in range(axes))]


def planned(sets, sizes):
    return MergeTree.of(sets, dict(enumerate(sizes)))


@pytest.mark.parametrize(
    ("sizes", "most"),
    [
        ((16,) * 6, 4e5),  # 3 x 16^4 = 2e5 entries of the three, and what is joined on the way
        ((8,) * 8, 6e5),
        ((20, 20, 20, 32, 32), 4e5),
        ((4,) * 12, 1e6),
        ((2,) * 24, 1.2e6),
    ],
)
def test_pairs_of_many_attributes_are_three_parts(sizes, most):
    sets = pairs_of(len(sizes))
    tree = planned(sets, sizes)
    below = leaves_below(tree, len(sets))

    assert tree.by_matrices
    assert tree.written < most < math.prod(sizes) / 10
    assert list(range(len(sets))) == sorted(place for own in below for place in own)
    for link, own in zip(tree.root, below, strict=True):
        having = {tree.order[place] for place in link.keep}
        assert having == set().union(*(sets[place] for place in own))
        assert [sizes[axis] if axis in having else 1 for axis in tree.order] == list(link.broadcast)
    # nothing is turned: the batch, and then what the last, the second and the first of the three lacks
    lacks = [[place for place in range(len(sizes)) if place not in link.keep] for link in tree.root]
    assert [*range(len(sizes))][-sum(map(len, lacks)) :] == lacks[2] + lacks[1] + lacks[0]


def test_axes_of_a_large_root_lie_side_by_side_where_the_same_tables_have_them():
    """Two tables of half of all axes, each with one of the other half: what is in both is shortest."""
    sets = [(0, 2, 4, 6), (1, 3, 5, 6)]
    tree = planned(sets, (16, 8, 16, 8, 16, 8, 4))

    assert (6, 1, 3, 5, 0, 2, 4) == tree.order
    assert [(0, 4, 5, 6), (0, 1, 2, 3)] == [link.keep for link in tree.root]
    assert tuple(range(7)) == planned(sets, (2,) * 7).order  # small tables are left as they are


def test_an_axis_of_triples_that_no_three_groups_part_is_common_to_all_three_parts():
    """All triples of axis 0 with two others: what is left of them is pairs, which three groups part."""
    triples = [(0, *pair) for pair in itertools.combinations(range(1, 7), 2)]
    sets = [*pairs_of(7), *triples]
    tree = planned(sets, (4, *(8,) * 6))

    assert tree.by_matrices
    assert all(0 in link.keep for link in tree.root)
    assert all(len(link.keep) < 7 for link in tree.root)


def test_what_cannot_be_parted_in_three_is_joined_by_pairs(monkeypatch):
    """All triples of six attributes."""
    sets = [*pairs_of(6), *itertools.combinations(range(6), 3)]
    sizes = (9, 9, 9, 9, 9, 9)
    found = planned(sets, sizes)
    monkeypatch.setattr(merge_tree, "MATRICES", math.inf)
    plain = planned(sets, sizes)

    assert not found.by_matrices
    axes = [[{tree.order[at] for at in link.keep} for link in tree.root] for tree in (plain, found)]
    assert axes[0] == axes[1]


def test_attributes_of_one_class_do_not_slow_the_search():
    """Twenty of them, in every table."""
    alike = tuple(range(6, 26))
    sets = [*((*own, *alike) for own in pairs_of(6)), *((axis,) for axis in alike)]
    tree = planned(sets, (*(16,) * 6, *(1,) * 20))

    assert tree.by_matrices
    assert tree.written < 2.5e5


@pytest.mark.parametrize("seed", range(30))
def test_three_parts_never_write_more(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(4, 10))
    sizes = rng.integers(2, 9, axes).tolist()
    more = [rng.choice(axes, rng.integers(2, 5), replace=False) for _ in range(int(rng.integers(0, 12)))]
    sets = [*((axis,) for axis in range(axes)), *(tuple(sorted(own.tolist())) for own in more)]
    monkeypatch.setattr(merge_tree, "MATRICES", math.inf)
    plain = planned(sets, sizes)
    monkeypatch.setattr(merge_tree, "MATRICES", 0)
    found = planned(sets, sizes)

    assert found.cost <= plain.cost
    assert list(range(len(sets))) == sorted(place for own in leaves_below(found, len(sets)) for place in own)


def test_few_axes_are_grouped_as_well_as_can_be(monkeypatch):
    """Of six every choice is looked at; the search from groups alike in size may end beside the best."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        widths = rng.integers(2, 20, 6).astype(float)
        held = rng.random((9, 6)) < 0.35
        best = merge_tree._best_groups(held, widths)
        with monkeypatch.context() as few:
            few.setattr(merge_tree, "FEW_AXES", 0)
            searched = merge_tree._best_groups(held, widths)
        costs = merge_tree._costs(np.array([best, searched, rng.integers(0, 4, 6)]), held, widths)
        assert costs[0] == costs.min()
        assert costs[1] <= costs[2]
