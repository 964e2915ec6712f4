"""Partitions of hard queries: which blocks, derived values and their norm, refusals."""

import itertools

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.queries import (
    Measurement,
    Partition,
    PartitionRule,
    block_weights,
    derived,
    one_way,
    pairs_of,
    pooled,
    sets_of,
)

SMALL = ic.Domain.of(a=4, b=3)


def long_domain(size=40):
    return ic.Domain.of(age=size, sex=2)


def cuts(labels):
    """Codes at which a new block begins."""
    return (np.flatnonzero(np.diff(labels)) + 1).tolist()


def test_a_short_attribute_is_cut_at_every_code():
    domain = ic.Domain.of(a=16, b=2)
    partition = PartitionRule(blocks=1).partition(ic.where(a=3).bind(domain))

    assert ((0,), list(range(16))) == (partition.axes, partition.classes[0].tolist())


def test_a_long_ordered_attribute_is_cut_in_equal_parts_and_where_the_query_changes():
    domain = long_domain()
    rule = PartitionRule(parts=4, blocks=1)
    partition = rule.partition(ic.where(age=ic.between(7, 22)).bind(domain))

    assert [7, 10, 20, 23, 30] == cuts(partition.classes[0])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ic.optional(range(40)), [10, 20, 30, 40]),
        (ic.number(0, 30, bins=30), [16, 30, 44]),
        (ic.optional(ic.number(0, 30, bins=30)), [16, 30, 44, 60]),
        (ic.optional(range(10**6)), [250_000, 500_000, 750_000, 10**6]),
    ],
    ids=["missing", "two ends", "both", "long"],
)
def test_parts_keep_both_ends_of_a_bin_and_no_missing_cell_beside_values(kind, expected):
    domain, rule = ic.Domain.of(x=kind, y=["u", "v"]), PartitionRule(parts=4, blocks=20)
    (own,) = rule.table(domain, (0,)).cuts
    added = rule.partition(ic.where(y="u").bind(domain)).cuts[0]

    assert expected == own.firsts[1:].tolist() == added.firsts[1:].tolist()
    assert 1 + len(expected) == rule.parts_of(domain.attributes[0])


def test_fractional_weights_cut_wherever_they_change():
    weights = np.zeros((40, 2))
    weights[5:9] = 0.25
    weights[9:] = 0.75
    partition = PartitionRule(parts=2, blocks=1).partition(ic.dense(weights).bind(long_domain()))

    assert [5, 9, 20] == cuts(partition.classes[partition.axes.index(0)])


def test_a_joint_factor_cuts_both_axes_where_any_slice_changes():
    domain = ic.Domain.of(a=20, b=20)
    weights = np.zeros((20, 20))
    weights[3:11, 4:6] = weights[15:, 17:] = 1.0
    partition = PartitionRule(parts=1, blocks=1).partition(ic.dense(weights).bind(domain))

    assert [[3, 11, 15], [4, 6, 17]] == [cuts(labels) for labels in partition.classes]


def test_attributes_that_bring_new_pairs_are_added_while_the_blocks_stay_few():
    domain = ic.Domain.of(a=4, b=3, c=2, d=50)
    rule = PartitionRule(parts=8, blocks=24)
    query = ic.where(a=1).bind(domain)

    assert (0, 1, 2) == rule.partition(query).axes
    assert (0, 2) == rule.partition(query, frozenset({(0, 1), (1, 2)})).axes
    every = frozenset((i, j) for i in range(4) for j in range(i + 1, 4))
    assert (0,) == rule.partition(query, every).axes


@pytest.mark.parametrize("parts", [1, 2, 7, 8, 31, 32])
@pytest.mark.parametrize("size", [17, 18, 25, 32, 33, 1000])
def test_every_number_of_parts_a_session_can_choose_numbers_its_blocks_without_gaps(size, parts):
    partition = PartitionRule(parts=parts, blocks=1).partition(ic.where(age=0).bind(long_domain(size)))
    labels = partition.classes[0]

    assert [True] * (size - 1) == [step in (0, 1) for step in np.diff(labels)]
    assert 2 <= labels[-1] + 1 <= parts + 1


def test_a_query_too_fine_has_no_partition():
    domain = ic.Domain.of(a=16, b=16)
    query = ic.dense(np.eye(16)).bind(domain)

    assert PartitionRule(most_blocks=255, most_spread=4.0).partition(query) is None
    assert 256 == PartitionRule(most_blocks=256, most_spread=4.0).partition(query).blocks


def test_a_partition_over_its_cap_is_cut_by_the_query_alone():
    domain = ic.Domain.of(a=100, b=90, c=list("vwxyz"))
    query = ic.where(a=ic.between(10, 19), b=ic.between(0, 44), c="w").bind(domain)
    fine, coarse = (
        PartitionRule(blocks=1).partition(query),
        PartitionRule(blocks=1, most_blocks=20).partition(query),
    )

    assert (10, 8, 5) == fine.shape  # 45 is one of the eight public cuts of b
    assert (3, 2, 3) == coarse.shape  # before, inside and behind each interval
    assert 1 == block_weights(query, coarse).sum()


def test_a_query_that_many_blocks_would_answer_is_cut_by_itself_or_gets_its_number_alone():
    domain = ic.Domain.of(a=16, b=16, c=16)
    box = ic.where(a=ic.between(0, 7), b=ic.between(0, 7), c=ic.between(0, 7)).bind(domain)
    checkers = ic.dense(np.indices((16, 16)).sum(axis=0) % 2).bind(ic.Domain.of(a=16, b=16))
    rule, lax = PartitionRule(blocks=1), PartitionRule(blocks=1, most_spread=100.0)

    assert ((16, 16, 16), (2, 2, 2)) == (lax.partition(box).shape, rule.partition(box).shape)
    assert (16, 16) == lax.partition(checkers).shape
    assert PartitionRule(most_spread=8.0).partition(checkers).shape == (16, 16)  # 16^2 / 4 is 8^2
    assert PartitionRule(most_spread=7.99).partition(checkers) is None


def test_attributes_are_added_while_the_answer_of_the_query_stays_clear_of_noise():
    domain = ic.Domain.of(a=2, b=4, c=4)
    query = ic.where(a=1).bind(domain)
    spreads = []
    for most in (0.75, 1.5, 3.0):
        target = PartitionRule(most_spread=most).partition(query)
        weights = block_weights(query, target)
        spreads.append((target.axes, float(np.linalg.norm(weights - weights.mean()))))

    assert [((0,), 0.5**0.5), ((0, 1), 2**0.5), ((0, 1, 2), 8**0.5)] == [
        (axes, pytest.approx(spread)) for axes, spread in spreads
    ]


@pytest.mark.parametrize("name", ["parts", "fine", "blocks", "most_blocks"])
@pytest.mark.parametrize("value", [0, -1, 1.5, None, True])
def test_settings_outside_their_range_are_refused_by_name(name, value):
    with pytest.raises(InvalidParameterError, match=f"^{name} must be an integer"):
        PartitionRule(**{name: value})


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), "3", None, True])
def test_a_largest_spread_that_is_no_positive_number_is_refused(value):
    with pytest.raises(InvalidParameterError, match=r"^most_spread must be "):
        PartitionRule(most_spread=value)


def test_the_weight_of_a_block_is_that_of_all_its_cells():
    weights = np.repeat(np.repeat([[0.25, 1.0], [0.5, 0.0]], 10, axis=0), 10, axis=1)
    domain = ic.Domain.of(a=20, b=20)
    query = ic.dense(weights).bind(domain)
    partition = PartitionRule(parts=2, blocks=1).partition(query)

    assert [0.25, 1.0, 0.5, 0.0] == block_weights(query, partition).tolist()
    other = (~ic.dense(weights)).bind(domain)
    assert [0.75, 0.0, 0.5, 1.0] == block_weights(other, partition).tolist()


def test_a_number_is_its_own_derived_value():
    query = ic.where(a=1).bind(SMALL)

    value, weights = derived(query, Measurement(query, np.array([0.3]), 0.1))

    assert (0.3, [1.0]) == (value, weights.tolist())


def test_a_derived_value_uses_that_all_blocks_together_are_everybody():
    """w = (1, 0, 0), y = (.5, .3, .3): .5 + (1 - 1.1)/3."""
    domain = ic.Domain.of(a=3)
    value, weights = derived(
        ic.where(a=0).bind(domain), Measurement(one_way(domain, 0), np.array([0.5, 0.3, 0.3]), 0.01)
    )
    norm = float(np.linalg.norm(weights))

    assert value == pytest.approx(0.5 - 0.1 / 3, abs=1e-15)
    assert norm == pytest.approx((2 / 3) ** 0.5, abs=1e-15)


def test_where_all_pairs_are_known_a_hit_of_three_attributes_brings_new_triples():
    """64 blocks of six binary attributes cost what the query's own 8 do, and hold twenty triples."""
    domain = ic.Domain.of({f"b{place}": 2 for place in range(8)})
    pairs = frozenset(itertools.combinations(range(8), 2))
    rule, three, two = PartitionRule(), ic.where(b0=1, b1=1, b2=0).bind(domain), ic.where(b0=1, b1=1)

    first = rule.partition(three, pairs)
    second = rule.partition(three, pairs | sets_of(first))
    own = frozenset({(0, 1, 2)})
    every = frozenset(itertools.combinations(range(8), 3))

    assert (0, 1, 2, 3, 4, 5) == first.axes
    assert {6, 7} <= set(second.axes)  # what an earlier table holds is not bought again
    assert (0, 1, 2) == rule.partition(three, pairs | every).axes
    assert len(rule.partition(three, pairs | own).axes) == 6
    assert (0, 1) == rule.partition(two.bind(domain), pairs).axes  # pairs are all that it asks for
    assert rule.partition(three) == rule.partition(three, every)  # unknown pairs come first


def test_pairs_and_one_way_partitions():
    partition = Partition(ic.Domain.of(a=2, b=2, c=2), (0, 1, 2), (np.arange(2),) * 3)

    assert frozenset({(0, 1), (0, 2), (1, 2)}) == pairs_of(partition)
    assert pairs_of(partition) | {(0, 1, 2)} == sets_of(partition)
    assert frozenset() == pairs_of(one_way(SMALL, 1)) == sets_of(one_way(SMALL, 1))
    assert ((1,), [0, 1, 2]) == (one_way(SMALL, 1).axes, one_way(SMALL, 1).classes[0].tolist())


@pytest.mark.parametrize(
    ("axes", "classes"),
    [
        ((0,), ([0, 1, 1, 3],)),  # a gap
        ((0,), ([0, 1, 1],)),  # too short
        ((0, 0), ([0, 1, 1, 2],) * 2),  # an axis twice: a record in two blocks
        ((1, 0), ([0, 1, 2], [0, 1, 1, 2])),
        ((2,), ([0, 1],)),
        ((0,), ([-1, 0, 1, 2],)),  # a record in no block
        ((0,), ([0.5, 1, 2, 3],)),
    ],
)
def test_what_is_no_partition_is_refused(axes, classes):
    with pytest.raises((InvalidQueryError, TypeError)):
        Partition(SMALL, axes, tuple(np.array(labels) for labels in classes))


def test_a_partition_keeps_its_own_copy_of_the_classes():
    labels = np.array([0, 1, 1, 2])
    partition = Partition(SMALL, (0,), (labels,))
    labels[:] = 0

    assert [0, 1, 1, 2] == partition.classes[0].tolist()


def test_block_sums_are_never_a_view_of_the_table():
    partition = Partition(ic.Domain.of(a=2, b=3), (0, 1), (np.arange(2), np.arange(3)))
    table = np.ones((2, 3))
    partition.measure(table)[:] = 7.0

    assert np.all(table == 1.0)


def test_a_target_that_was_released_again_is_its_mean_by_precision():
    a, b = (one_way(SMALL, axis) for axis in (0, 1))
    first, other = Measurement(a, np.array([0.1, 0.2, 0.3, 0.4]), 0.01), Measurement(b, np.full(3, 0.3), 0.0)
    again = Measurement(one_way(SMALL, 0), np.array([0.4, 0.3, 0.2, 0.1]), 0.02)
    both, alone = pooled([first, other, again])

    assert both.values == pytest.approx([0.16, 0.22, 0.28, 0.34])  # four parts in five of the first
    assert both.scale == pytest.approx(0.02 / 5**0.5)
    assert (a.key, other) == (both.target.key, alone)
    assert [] == pooled([])


def test_a_query_and_its_complement_are_two_targets():
    one, other = ic.where(a=1).bind(SMALL), (~ic.where(a=1)).bind(SMALL)
    told = [Measurement(one, np.array([0.2]), 0.01), Measurement(other, np.array([0.8]), 0.01)]

    assert one.key == other.key
    assert told == pooled(told)
