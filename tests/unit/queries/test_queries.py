"""Canonical queries: factors, intervals, grids, constants, partitions, measurements."""

import copy
import itertools
import pickle

import attrs
import numpy as np
import pytest

from onlineic.domain import Domain, binned, optional
from onlineic.errors import DomainMismatchError, InvalidQueryError
from onlineic.queries import (
    GRID_BITS,
    Condition,
    Expression,
    Measurement,
    Partition,
    at_least,
    below,
    between,
    canonical,
    dense,
    one_of,
    span,
    weights,
    where,
)
from onlineic.queries.query import totals
from onlineic.queries.tables import Tables

DOMAIN = Domain.of(age=range(17, 91), sex=["F", "M"], race=list("abcde"))


def bound(domain=DOMAIN, /, **conditions):
    return where(conditions).bind(domain)


# ---------------------------------------------------------------- factors


def test_full_conditions_are_dropped():
    query = bound(age=between(17, 90), sex=one_of("F", "M"), race=weights([1, 1, 1, 1, 1]))

    assert 1 == query.constant
    assert () == query.axes == query.factors
    assert bound(sex="M") == bound(age=at_least(17), sex="M")


def test_labels_in_a_row_become_an_interval():
    query = bound(race=one_of("d", "b", "c"), sex="F")

    assert ((1, 2), ((0, 1), (1, 4))) == (query.axes, query.box)
    assert [None, None] == [factor.table for factor in query.factors]


def test_scattered_labels_are_a_table():
    query = bound(race=one_of("b", "e"), sex="F")

    assert query.box is None
    assert [0, 1, 0, 0, 1] == query.factors[1].table.tolist()
    assert 0 == query.grid_bits


def test_tables_are_read_only():
    query = bound(race=one_of("b", "e"), sex="F")
    with pytest.raises(ValueError, match="read-only"):
        query.factors[1].table[0] = 1


def test_factors_are_in_domain_order_however_written():
    assert (0, 1, 2) == bound(race="a", sex="F", age=below(20)).axes
    assert bound(race="a", sex="F") == bound(sex="F", race="a")


def test_a_lone_factor_and_its_complement_share_a_key():
    for first, second in (
        (where(age=below(30)), where(age=at_least(30))),
        (where(race=one_of("a", "c")), where(race=one_of("b", "d", "e"))),
        (where(race="c"), where(race=one_of("a", "b", "d", "e"))),
        (where(race=weights([0.5, 0.75, 0, 0, 0])), where(race=weights([0.5, 0.25, 1, 1, 1]))),
    ):
        left, right = first.bind(DOMAIN), second.bind(DOMAIN)

        assert left.key == right.key
        assert left.complement != right.complement
        assert left != right
        assert (~first).bind(DOMAIN) == right


def test_dense_copies_of_products_complements_and_single_attributes_are_recognised():
    domain = Domain.of(a=4, b=3, c=2, d=3)
    for expression in (
        where(a=one_of(0, 2), c=1),
        where(a=one_of(0, 2), b=between(1, 2), c=1, d=0),
        ~where(a=1, d=0),
        where(a=1) | where(c=0) | where(d=2),
        where(b=2),
        where(),
        where(a=weights([0.1, 0.2, 0.3, 0.9]), c=1),
        where(a=1, d=weights([0, 0.7, 1])),
    ):
        query = expression.bind(domain)
        fractions = np.ldexp(query.weights().astype(float), -query.grid_bits)

        assert query == dense(fractions).bind(domain)
        assert (~expression).bind(domain) == dense(1 - fractions).bind(domain)


def test_a_dense_vector_drops_axes_that_do_not_matter():
    domain = Domain.of(a=4, b=3, c=2)
    tied = np.array([[0, 1], [1, 0], [1, 1], [0, 0]])
    query = dense(np.broadcast_to(tied[:, None, :], (4, 3, 2))).bind(domain)

    assert (0, 2) == query.axes
    assert 1 == len(query.factors)


def test_a_joint_condition_times_a_product_keeps_its_own_factor():
    domain = Domain.of(a=4, b=3, c=2)
    query = (~where(a=1, b=2) & where(c=1)).bind(domain)

    assert [(0, 1), (2,)] == [factor.axes for factor in query.factors]
    assert query == dense(query.weights()).bind(domain)


def test_parity_is_a_joint_table():
    domain = Domain.of(a=2, b=2, c=2)
    even = (where(a=0) & where(b=0)) | (where(a=1) & where(b=1))
    odd = (where(a=0) & where(b=1)) | (where(a=1) & where(b=0))

    assert [[1, 0], [0, 1]] == even.bind(domain).weights()[:, :, 0].tolist()
    assert (0, 1) == even.bind(domain).axes
    assert (~even).bind(domain) == odd.bind(domain)
    assert even.bind(domain).key == odd.bind(domain).key


# ---------------------------------------------------------------- constants


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (where(), 1),
        (~where(), 0),
        (where(age=below(17)), 0),
        (where(age=below(17), sex="F"), 0),
        (where(sex="F") & where(sex="M"), 0),
        (where(sex="F") | where(sex="M"), 1),
        (dense(np.ones(DOMAIN.size)), 1),
        (dense(np.zeros(DOMAIN.size)), 0),
        (where(race=weights([0] * 5)), 0),
        (where(age=between(17, 90)), 1),
        (~where(race=weights([0] * 5)), 1),
    ],
)
def test_queries_without_a_choice_are_constant(expression, value):
    query = expression.bind(DOMAIN)

    assert (value, 0, 0, 0.0) == (query.constant, query.sensitivity, query.grid_bits, query.rounding)
    assert (query.weights() == value).all()


def test_constants_between_zero_and_one_keep_their_grid():
    query = where(race=weights([0.75] * 5)).bind(DOMAIN)

    assert (3, 2) == (query.constant, query.grid_bits)
    assert (1, 2) == ((~where(race=weights([0.75] * 5))).bind(DOMAIN).constant, query.grid_bits)


def test_weights_below_the_grid_vanish_but_are_reported():
    tiny = where(race=weights([1e-9, 0, 0, 0, 0]), sex="F").bind(DOMAIN)
    almost = where(race=weights([1 - 1e-9, 1, 1, 1, 1]), sex="F").bind(DOMAIN)

    assert (0, 1e-9) == (tiny.constant, tiny.rounding)
    assert almost == bound(sex="F")
    assert 1 - (1 - 1e-9) == almost.rounding


# ---------------------------------------------------------------- grid


def test_counting_queries_have_no_grid():
    assert 0 == bound(age=below(30), race=one_of("a", "c")).grid_bits


def test_the_coarsest_grid_that_holds_the_weights_is_taken():
    assert 2 == bound(race=weights([0.25, 0.5, 1, 0, 0])).grid_bits
    assert 1 == bound(race=weights([0.5, 0, 0, 0, 0])).sensitivity
    assert GRID_BITS == bound(race=weights([1 / 3, 0.5, 1, 0, 0])).grid_bits
    assert 0 == bound(race=weights([0, 1, 0, 1, 0])).grid_bits


def test_several_fractional_attributes_share_the_grid():
    query = bound(race=weights([1 / 3] * 4 + [0]), sex=weights([0.1, 0.2]))
    table = query.weights()

    assert 20 == query.grid_bits
    assert [10, 10] == [factor.bits for factor in query.factors]
    assert round(0.2 * 1024) * round(1024 / 3) == table.max() - table.min() == query.sensitivity


def test_rounding_of_several_fractional_attributes_adds_up():
    query = where(race=weights([0.875, 0, 0, 0, 0]), sex=weights([0.875, 0])).bind(DOMAIN, 4)

    assert bound(race="a", sex="F") == query
    assert 0.125 + 0.125 == query.rounding
    assert 1 - 0.875**2 <= query.rounding


def test_a_grid_too_coarse_for_the_fractional_attributes_is_refused():
    with pytest.raises(InvalidQueryError, match="at most 1 attributes"):
        where(race=weights([1 / 3] * 5), sex=weights([0.1, 0.2])).bind(DOMAIN, 1)
    with pytest.raises(InvalidQueryError, match="at most 0 attributes"):
        where(race=weights([0.5, 1, 0, 0, 0])).bind(DOMAIN, 0)


def test_narrow_queries_have_a_narrow_sensitivity():
    query = bound(race=weights([0.5, 0.5, 0.5, 0.5, 0.625]))

    assert (3, 1) == (query.grid_bits, query.sensitivity)


# ---------------------------------------------------------------- binding, identity, text


def test_a_bound_query_binds_to_its_own_domain_only():
    query = bound(sex="F")
    other = Domain.of(sex=["F", "M"])
    with pytest.raises(DomainMismatchError) as caught:
        query.bind(other)

    assert query is query.bind(Domain.of(age=range(17, 91), sex=["F", "M"], race=list("abcde")))
    assert DOMAIN.digest() in str(caught.value)
    assert other.digest() in str(caught.value)


@pytest.mark.parametrize("change", [{"highest": 1}, {"grid_bits": 0}, {"box": None}, {}])
def test_a_query_altered_by_hand_is_refused_because_its_price_would_be_wrong(change):
    domain = Domain.of(a=4, b=3)
    query = where(a=weights([0.0, 0.25, 0.7, 1.0])).bind(domain)
    constant = where(a=between(0, 3)).bind(domain)

    assert query is query.bind(domain)
    assert constant is constant.bind(domain)
    for one in (query, constant):
        with pytest.raises(InvalidQueryError, match="by hand"):
            attrs.evolve(one, **change).bind(domain)
    for again in (pickle.loads(pickle.dumps(query)), copy.copy(query)):
        assert query == again.bind(domain)


def test_a_bound_query_does_not_go_on_a_coarser_grid():
    with pytest.raises(InvalidQueryError, match="grid_bits <= 8, got 20"):
        bound(race=weights([1 / 3] * 4 + [0])).bind(DOMAIN, 8)


def test_queries_on_different_domains_differ():
    assert bound(sex="F") != where(sex="F").bind(Domain.of(age=5, sex=["F", "M"]))
    assert bound(sex="F") != "where(sex='F')"


SHOWN = Domain.of(
    age=range(17, 91),
    sex=["F", "M"],
    race=list("abcde"),
    educ=optional(range(1, 5)),
    income=binned([-np.inf, 0, 20.5, 50]),
    code=[f"c{place}" for place in range(30)],
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (where(age=between(30, 50), sex="F"), "where(age=between(30, 50), sex='F'), grid_bits=0"),
        (where(age=below(31)), "where(age=between(17, 30)), grid_bits=0"),  # held as 1 - [31, 90]
        (~where(age=between(30, 50)), "~where(age=between(30, 50)), grid_bits=0"),
        (~where(age=below(20), sex="F"), "~where(age=between(17, 19), sex='F'), grid_bits=0"),
        (where(race=one_of("a", "c"), age=20), "where(age=20, race=one_of('a', 'c')), grid_bits=0"),
        (where(race=one_of("b", "c"), age=20), "where(age=20, race=one_of('b', 'c')), grid_bits=0"),
        (
            where(sex="M", educ=at_least(3) | None),
            "where(sex='M', educ=(between(3, 4) | one_of(None))), grid_bits=0",
        ),
        (where(sex="M", educ=None), "where(sex='M', educ=None), grid_bits=0"),
        (where(sex="M", income=below(20.5)), "where(sex='M', income=span(-inf, 20.5)), grid_bits=0"),
        (where(race=weights([0, 0.25, 0.5, 1, 1])), "where(race=weights(<5>)), grid_bits=2"),
        (
            where(sex="F", race="a") | where(sex="M", race="b"),
            "~where(sex x race=<10 weights>), grid_bits=0",
        ),
        (
            where(code=one_of(*[f"c{place}" for place in range(1, 30, 2)])),
            "where(code=one_of('c1', 'c3', 'c5', 'c7', 'c9', 'c11', 'c13', 'c15', ...)), grid_bits=0",
        ),
        (where(age=between(31, 29)), "0 for all"),
        (where(), "1 for all"),
    ],
    ids=str,
)
def test_repr_shows_the_conditions_with_their_ends(expression, expected):
    assert f"Query({expected})" == repr(expression.bind(SHOWN))


def test_what_a_repr_shows_binds_to_the_query_again():
    names = {"where": where, "between": between, "one_of": one_of, "span": span, "inf": np.inf}
    for low, high, sex, many in itertools.product(
        (17, 18, 40), (39, 89, 90), ("F", "M"), ("a", "bd", "abcde")
    ):
        for expression in (
            where(age=between(low, high)),
            where(age=between(low, high), sex=sex, race=one_of(*many), income=span(0, 50), educ=None),
        ):
            for query in (expression.bind(SHOWN), (~expression).bind(SHOWN)):
                text = repr(query).removeprefix("Query(").rpartition(", grid_bits")[0]

                assert text == "" or query == eval(text, dict(names)).bind(SHOWN)


def test_missing_cells_are_weighed_like_others():
    domain = Domain.of(educ=optional(range(1, 4)), w=optional(binned([0, 1, 2])))

    assert [0, 0, 0, 1] == where(educ=None).bind(domain).weights()[:, 0].tolist()
    assert [1, 1, 0] == where(w=at_least(0)).bind(domain).weights()[0].tolist()


# ---------------------------------------------------------------- totals on tables


def test_totals_take_every_kind_of_query():
    cells = np.random.default_rng(1).integers(0, 9, DOMAIN.shape).astype(float)
    tables = Tables(cells, 2**16)
    queries = [
        bound(),
        bound(age=below(17)),
        bound(age=between(30, 50), sex="F"),
        (~where(age=between(30, 50), sex="F")).bind(DOMAIN),
        bound(race=one_of("a", "c"), age=below(30)),
        (~where(race=weights([0.1, 0.2, 0.3, 0.4, 0.5]))).bind(DOMAIN),
        (~where(age=20, sex="F") & where(race="b")).bind(DOMAIN),
    ]
    expected = [float((query.weights() * cells).sum()) for query in queries]

    assert expected == [query.total(tables, cells.sum()) for query in queries]
    assert expected == totals(queries, tables, cells.sum()).tolist()
    assert [] == totals([], tables, cells.sum()).tolist()


# ---------------------------------------------------------------- partitions and measurements


def partition(*classes, axes=(0, 1), domain=None):
    return Partition(domain or Domain.of(a=4, b=2, c=3), axes, tuple(map(np.array, classes)))


def test_partition_counts_its_blocks():
    cut = partition([0, 0, 1, 2], [0, 1])

    assert ((3, 2), 6, 0) == (cut.shape, cut.blocks, cut.grid_bits)
    assert "Partition((a, b) into 3 x 2 blocks)" == repr(cut)


def test_blocks_are_numbered_row_by_row():
    cut = partition([1, 0, 1, 0], [0, 0], axes=(0, 1))
    table = np.arange(8.0).reshape(4, 2)

    assert [2 + 3 + 6 + 7, 0 + 1 + 4 + 5] == cut.measure(table).tolist()
    assert cut.block(0) == where(a=one_of(1, 3)).bind(cut.domain)


def test_equal_partitions_are_equal_and_others_are_not():
    first = partition([0, 0, 1, 1], [0, 1])

    assert first == partition(np.array([0, 0, 1, 1], np.int8), [0, 1])
    assert hash(first) == hash(partition(np.array([0, 0, 1, 1], np.int8), [0, 1]))
    assert first != partition([0, 1, 1, 1], [0, 1])
    assert first != partition([0, 0, 1, 1], [0, 1], domain=Domain.of(a=4, b=2, c=4))
    assert first != where(a=1).bind(first.domain)


def test_partition_keeps_its_own_copy():
    labels = np.array([0, 0, 1, 1])
    cut = Partition(Domain.of(a=4), (0,), (labels,))
    labels[:] = 0

    assert [1.0, 2.0] == cut.measure(np.array([0.5, 0.5, 1, 1])).tolist()


@pytest.mark.parametrize(
    ("axes", "classes"),
    [
        ((0,), ([0, 1, 1],)),
        ((0,), ([0, 2, 2, 0],)),
        ((0,), ([1, 1, 2, 2],)),
        ((0,), ([-1, 0, 1, 1],)),
        ((0, 1), ([0, 0, 1, 1],)),
        ((1, 0), ([0, 1], [0, 0, 1, 1])),
        ((0, 0), ([0, 0, 1, 1], [0, 0, 1, 1])),
        ((5,), ([0, 1],)),
        ((-1,), ([0, 1, 1],)),
        ((5,), ()),
    ],
)
def test_malformed_partition_is_refused(axes, classes):
    with pytest.raises(InvalidQueryError, match="classes must number"):
        partition(*classes, axes=axes)


class Guess:
    def evaluate(self, query):
        return 0.25

    def blocks(self, target):
        return np.array([0.1, 0.4, 0.4, 0.1])


def test_measurement_of_a_query_is_compared_with_its_guess():
    query = bound(sex="F")

    assert (query, 0.5, 0.25) == Measurement(query, np.array([0.5]), 0.01).against(Guess())


def test_measurement_of_a_partition_moves_along_the_block_farthest_off():
    cut = partition([0, 0, 1, 1], [0, 1])
    measured = Measurement(cut, np.array([0.1, 0.25, 0.25, 0.25]), 0.01)

    assert (cut.block(1), 0.25, 0.4) == measured.against(Guess())


def test_canonical_accepts_code_ranges():
    assert bound(age=between(30, 50)) == canonical(DOMAIN, False, {(0,): (13, 34)}, 20)
    assert 0 == canonical(DOMAIN, False, {(0,): (5, 5), (1,): (0, 1)}, 20).constant


@pytest.mark.parametrize(
    "first", [[-0.5, 0.0, 1.0], [0.0, 1.5, 0.25], [0.0, np.nan, 1.0], [-1.0, -1.0, -1.0]]
)
def test_weights_outside_the_unit_interval_are_refused_by_whatever_way_they_come(first):
    """Below 0 the largest product is not that of the largest weights, and the sensitivity would be wrong."""
    domain = Domain.of(a=3, b=2)
    by_hand = Expression("where", (("a", Condition("weights", tuple(first))), ("b", one_of(1))))

    with pytest.raises(InvalidQueryError, match=r"\[0, 1\]"):
        canonical(domain, False, {(0,): np.array(first), (1,): (0, 1)}, 20)
    with pytest.raises(InvalidQueryError, match=r"\[0, 1\]"):
        by_hand.bind(domain)
    with pytest.raises(InvalidQueryError, match=r"\[0, 1\]"):
        (~by_hand).bind(domain)


@pytest.mark.parametrize(
    "written",
    [
        "where(ward='ER')", "where(ward='ICU')", "where(ward=one_of('ER', 'ICU'))", "where(ward=None)",
        "~where(ward=None)", "~where(ward='ICU')", "where(age=one_of(0, 3))", "where(age=between(0, 4))",
        "where(ward=one_of('ER', 'Maternity'))", "~where(age=between(2, 3))", "where(sex='F')",
    ],
)  # fmt: skip
def test_a_condition_on_one_attribute_is_shown_as_it_was_written(written):
    domain = Domain.of(
        ward=optional(["ER", "ICU", "Surgery", "Maternity"]), age=optional(range(10)), sex=["F", "M"]
    )
    asked = eval(written, {"where": where, "one_of": one_of, "between": between})

    assert written == asked.bind(domain).written
