"""How an attribute is cut: runs of a long one by their first codes, without a number for each code."""

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidQueryError, TooLargeError
from onlineic.queries.cuts import GRID, LONG, Cut, grid_of, is_long, long_axes, planned
from onlineic.queries.exact import partition_from_json, partition_to_json
from onlineic.queries.partitions import Partition, PartitionRule, block_weights

SIZE = LONG + 1000
SECONDS = ic.Domain.of(t=range(10**8), k=4)


def bound(query, domain=SECONDS):
    return query.bind(domain)


def test_both_forms_of_a_cut_say_the_same():
    starts = np.array([0, 5, 6, 130_000])
    labels = np.searchsorted(starts, np.arange(SIZE), side="right") - 1
    at, of = Cut.at(SIZE, starts), Cut.of(labels)
    table = np.arange(SIZE, dtype=float)
    codes = np.array([0, 4, 5, 6, 129_999, 130_000, SIZE - 1])

    assert at.parts == of.parts == 4
    assert at.firsts.tolist() == of.firsts.tolist() == starts.tolist()
    assert at.widths.tolist() == of.widths.tolist()
    assert at.of_codes(codes).tolist() == of.of_codes(codes).tolist() == labels[codes].tolist()
    assert np.array_equal(at.codes, of.codes)
    assert np.array_equal(at.sums(table, 0), of.sums(table, 0))
    assert np.allclose(at.means(table, 0), of.means(table, 0))
    assert at.inside(3, 8).tolist() == [2 / 5, 1.0, 2 / (130_000 - 6), 0.0]
    assert at.in_order
    assert of.in_order


def test_equal_cuts_of_a_long_attribute_have_equal_keys():
    domain = ic.Domain.of(t=range(SIZE))
    labels = np.minimum(np.arange(SIZE) // 7, 3)

    assert Partition(domain, (0,), (labels,)) == Partition(domain, (0,), (Cut.at(SIZE, [0, 7, 14, 21]),))


@pytest.mark.parametrize("starts", [[1, 2], [0, 2, 2], [0, 3, 2], [0, 10], [], [[0]], [0.0, 1.0]])
def test_starts_that_are_no_parts_are_refused(starts):
    with pytest.raises(InvalidQueryError, match="starts must be codes"):
        Cut.at(10, starts)


@pytest.mark.parametrize("labels", [[0, 2], [1, 1], [0.0, 1.0], []])
def test_labels_with_gaps_are_refused(labels):
    with pytest.raises(InvalidQueryError, match="without gaps"):
        Cut.of(np.array(labels))


def test_a_cut_is_known_by_starts_or_by_labels_and_never_by_both():
    with pytest.raises(InvalidQueryError, match="without gaps"):
        Cut(2, np.array([0, 1]), np.array([0, 1]))


def test_the_arrays_of_a_cut_are_the_callers_no_more():
    starts = np.array([0, 5])
    cut = Cut.at(10, starts)
    starts[1] = 7

    assert [0, 5] == cut.firsts.tolist()
    with pytest.raises(ValueError, match="read-only"):
        cut.firsts[1] = 7


def test_a_partition_holds_cuts_of_its_attributes_alone():
    with pytest.raises(InvalidQueryError, match="without gaps"):
        Partition(SECONDS, (1,), (Cut.at(5, [0, 2]),))


def test_long_is_what_has_an_order_and_many_values():
    domain = ic.Domain.of(
        a=range(LONG),
        b=range(LONG + 1),
        c=ic.optional(range(LONG + 1)),
        d=ic.dates("1700-01-01", "2300-12-31"),
        e=ic.optional(range(LONG)),
    )

    assert (1, 2, 3) == long_axes(domain)
    assert is_long(domain.attributes[3])
    assert (LONG, GRID, GRID + 1, GRID, LONG + 1) == planned(domain).shape
    assert [False, False, True, False, True] == [kind.missing for kind in planned(domain).attributes]


def test_the_grid_has_equal_parts_and_the_missing_cell_one_of_its_own():
    domain = ic.Domain.of(a=range(10**8), b=ic.optional(range(10**8)))
    grid, beside = map(grid_of, domain.attributes)

    assert GRID == grid.parts
    assert {24_414, 24_415} == {*grid.widths.tolist()}
    assert [*grid.widths.tolist(), 1] == beside.widths.tolist()


def test_labels_of_very_many_codes_are_not_written():
    with pytest.raises(TooLargeError, match="by one range at a time"):
        Cut.at(10**8, [0]).codes  # noqa: B018


def test_conditions_that_all_hold_stay_ranges_of_a_long_attribute():
    low, high, k = ic.where(t=ic.at_least(5)), ic.where(t=ic.below(99_000)), ic.where(k=ic.one_of(1, 3))
    both = ic.where(t=ic.at_least(5) & ic.between(0, 98_999), k=ic.one_of(1, 3))

    assert bound(both) == bound(low & high & k)
    assert bound(both) == bound(ic.where(k=ic.one_of(1, 3), t=ic.span(5, 99_000)))
    assert bound(~low) == bound(ic.where(t=ic.below(5)))
    assert 0 == bound(ic.where(t=ic.below(5)) & ic.where(t=ic.at_least(6))).constant
    assert bound(~(low & high)) == bound(~ic.where(t=ic.span(5, 99_000)))


@pytest.mark.parametrize(
    "query",
    [
        ic.where(t=ic.between(3, 9), k=ic.one_of(0, 2)) & ic.where(k=ic.one_of(1, 2), t=ic.at_least(5)),
        ic.where(t=ic.between(3, 9)) & ic.where(t=ic.one_of(4, 8, 10), k=1),
        ic.where(t=ic.one_of(3, 9)) & ~ic.where(k=2),
    ],
)
def test_conditions_on_a_long_attribute_are_those_of_a_short_one(query):
    few, many = (query.bind(ic.Domain.of(t=range(size), k=4)).weights() for size in (100, SIZE))

    assert np.array_equal(few, many[:100])


@pytest.mark.parametrize(
    "query",
    [
        ic.where(t=ic.one_of(1, 5)),
        ic.where(t=ic.between(1, 5) | ic.between(8, 9)),
        ic.where(t=3) | ic.where(k=1),
    ],
)
def test_what_is_no_range_of_very_many_codes_is_refused_by_name(query):
    with pytest.raises(TooLargeError, match="by one range at a time"):
        bound(query)


def test_a_hard_range_of_a_long_attribute_cuts_it_at_its_ends():
    query = bound(ic.where(t=ic.between(1_000, 2_000_000), k=1))
    partition = PartitionRule().partition(query)
    weights = block_weights(query, partition)
    read = partition_from_json(partition_to_json(partition), SECONDS)

    assert {1_000, 2_000_001} <= {*partition.cuts[0].firsts.tolist()}
    assert partition == read
    assert 1.0 == weights.sum()
    assert partition.block(0) == bound(ic.where(t=ic.below(1_000), k=0))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 19), (1, 2), (1, 20), (19, 20), (5, 9)])
def test_weights_change_where_a_range_begins_and_ends(low, high):
    domain = ic.Domain.of(t=range(20), k=2)
    (factor, _) = bound(ic.where(t=ic.span(low, high), k=1), domain).factors

    assert [(np.flatnonzero(np.diff(factor.weights(domain))) + 1).tolist()] == [
        held.tolist() for held in factor.changes(domain)
    ]


def test_a_table_among_the_records_of_a_range_counts_it_alone():
    table = ic.marginal("k", where=ic.where(t=ic.between(10, 20))).bind(SECONDS)
    first = ic.marginal("k", where=ic.where(t=ic.below(20))).bind(SECONDS)

    assert (3, 4) == table.partition.shape
    assert [4, 5, 6, 7] == table.cells.tolist()
    assert (2, 4) == first.partition.shape
    assert [0, 1, 2, 3] == first.cells.tolist()


def test_a_table_among_all_but_a_range_is_refused_by_name():
    with pytest.raises(InvalidQueryError, match="one range of a long attribute"):
        ic.marginal("k", where=~ic.where(t=ic.between(10, 20))).bind(SECONDS)


@pytest.mark.parametrize(
    "query",
    [
        ic.where(),
        ic.where(t=ic.between(3, 9)),
        ~ic.where(t=ic.between(3, 9)),
        ic.where(t=ic.below(9)),
        ~ic.where(t=ic.below(9)),
        ic.where(t=ic.one_of(3, 9)),
        ic.where(t=ic.between(3, 9), k=1),
        ~ic.where(t=ic.between(3, 9), k=1),
        ic.where(k=1),
        ic.where(t=ic.below(0)),
    ],
)
def test_the_ends_of_what_may_meet_a_condition_are_those_of_its_codes(query):
    found = query.bind(ic.Domain.of(t=range(20), k=4))
    codes = np.flatnonzero(found.possible(0))

    assert ((codes[0], codes[-1] + 1) if len(codes) else (0, 0)) == found.ends(0)
