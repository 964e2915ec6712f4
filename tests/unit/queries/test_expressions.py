"""Expressions: what an analyst may write, how it prints, and what it means on a domain."""

import functools
import math
import operator

import numpy as np
import pytest

from onlineic import queries
from onlineic.domain import Domain, binned, optional
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooLargeError
from onlineic.queries import at_least, below, between, dense, one_of, span, weights, where
from onlineic.queries.query import canonical, conjunction
from support.names import lasting

DOMAIN = Domain.of(
    age=range(17, 91),
    sex=["F", "M"],
    educ=optional(range(1, 5)),
    smoker=[True, False],
    income=binned([-math.inf, 0, 20.5, 50]),
    hours=optional(binned([0, 20, 40, 100], integer=True)),
)
NAMES = {name: getattr(queries, name) for name in queries.__all__}
SMALL = Domain.of(a=3, b=["x", "y"], c=2)


def satisfied(**condition):
    """Codes of an attribute that satisfy its condition."""
    ((name, _),) = condition.items()
    query = where(**condition).bind(DOMAIN.project(name))
    return np.flatnonzero(query.weights()).tolist()


def refusal(expression, domain=DOMAIN):
    with pytest.raises(InvalidQueryError) as caught:
        expression.bind(domain)
    return str(caught.value)


# ---------------------------------------------------------------- meaning of conditions


def test_between_is_closed_span_half_open():
    assert list(range(13, 34)) == satisfied(age=between(30, 50))
    assert list(range(13, 33)) == satisfied(age=span(30, 50))
    assert [13] == satisfied(age=between(30, 30)) == satisfied(age=30) == satisfied(age=30.0)
    assert [] == satisfied(age=span(30, 30))
    assert [14] == satisfied(age=between(30.5, 31.5))
    assert [] == satisfied(age=between(30.2, 30.8))


def test_ends_that_cross_are_met_by_nobody_as_in_sql_and_pandas():
    """A tutorial's stream has ages above 30 and below 31: a range that is empty, 0 and no mistake."""
    assert [] == satisfied(age=between(31, 30)) == satisfied(age=span(50, 30))
    assert [] == satisfied(hours=between(40, 19))
    assert list(range(74)) == satisfied(age=~between(31, 29))
    assert [13] == satisfied(age=between(31, 29) | 30)
    assert 0 == where(age=between(31, 29), sex="F").bind(DOMAIN).constant
    assert 1 == (~where(age=between(31, 29))).bind(DOMAIN).constant
    assert "between(31, 29)" == repr(between(31, 29))
    assert "inside [17, 90], got 10" in refusal(where(age=between(30, 10)))


def test_one_sided_conditions_leave_out_the_missing_cell():
    assert [2, 3] == satisfied(educ=at_least(3))
    assert [0, 1] == satisfied(educ=below(3))
    assert [0, 1, 2, 3] == satisfied(educ=at_least(1))
    assert [4] == satisfied(educ=None)
    assert [0, 4] == satisfied(educ=one_of(None, 1))
    assert [0, 1, 2] == satisfied(hours=at_least(0))
    assert [3] == satisfied(hours=~at_least(0))


def test_negation_of_a_condition_holds_for_missing_values_unlike_in_sql():
    assert [0, 1, 3, 4] == satisfied(educ=~one_of(3))
    assert [0, 1, 3] == satisfied(educ=~one_of(3) & ~one_of(None))


def test_bins_are_cut_at_their_edges_only():
    assert [0, 1] == satisfied(income=below(20.5))
    assert [1] == satisfied(income=span(0, 20.5))
    assert [0, 1, 2] == satisfied(income=at_least(-math.inf))
    assert "nearest edges are 0 and 20.5" in refusal(where(income=below(20)))
    assert "span(0, 20.5)" in refusal(where(income=between(0, 20.5)))
    assert "range on its bin edges" in refusal(where(income=10))


def test_bins_of_whole_numbers_take_every_exact_form():
    assert (
        [0, 1]
        == satisfied(hours=between(0, 39))
        == satisfied(hours=span(0, 39.5))
        == satisfied(hours=below(40))
    )
    assert [1] == satisfied(hours=between(19.5, 39.9)) == satisfied(hours=span(20, 40))
    assert "at a bin edge, got 41" in refusal(where(hours=between(0, 40)))


def test_conditions_on_one_attribute_combine():
    either = between(20, 25) | between(24, 30) | 50
    expected = [*range(20 - 17, 31 - 17), 33]

    assert expected == satisfied(age=either)
    assert [*range(20 - 17, 24 - 17)] == satisfied(age=either & below(24))
    assert sorted({*range(74)} - {*expected}) == satisfied(age=~either)
    assert either == ~~either


def test_labels_are_looked_up_by_type():
    assert [0] == satisfied(smoker=True) == satisfied(smoker=np.True_)
    for wrong in (1, "True", 0):
        assert "smoker must be one of its 2 values" in refusal(where(smoker=wrong))
    for wrong in (True, "30", 30.5, 16, 91, 2**62):
        assert "age must be an integer in [17, 90]" in refusal(where(age=wrong))


def test_ends_outside_a_range_are_refused_on_either_side():
    for wrong in (between(10, 30), between(30, 91), at_least(10), below(92), at_least(92), below(10)):
        assert "age must be cut inside [17, 90]" in refusal(where(age=wrong))
    assert [] == satisfied(age=below(17)) == satisfied(age=at_least(91))
    assert list(range(74)) == satisfied(age=between(17, 90)) == satisfied(age=below(91))


def test_a_range_of_a_categorical_attribute_is_refused():
    assert "sex must be ordered" in refusal(where(sex=at_least(0)))


def test_unknown_names_and_labels_get_a_hint():
    assert "got 'agee'; did you mean 'age'?" in refusal(where(agee=30))
    assert "did you mean 'White'?" in refusal(where(race="white"), Domain.of(race=["White", "Black"]))


def test_messages_stay_short_however_long_the_label():
    for wrong in ("y" * 10**6, 2**62):
        assert 300 > len(refusal(where(sex=wrong)))


def test_weights_of_an_attribute_have_its_shape():
    assert [0, 1, 2, 3, 4] == satisfied(educ=weights([1, 1.0, True, 0.5, 1]))
    assert "weights of educ must have shape (5,), got (4,)" in refusal(where(educ=weights([0, 0, 1, 1])))


def test_dense_takes_the_flat_and_the_full_shape():
    values = np.arange(12) % 5 / 4
    flat, full = dense(values).bind(SMALL), dense(values.reshape(3, 2, 2)).bind(SMALL)

    assert flat == full
    assert (values * 4).tolist() == np.ldexp(flat.weights().ravel(), 2 - flat.grid_bits).tolist()
    for wrong in ((2, 3, 2), (11,), (12, 1), (6, 2)):
        assert refusal(dense(np.zeros(wrong)), SMALL) == (
            f"weights must have shape (12,) or (3, 2, 2), one for each cell, got {wrong}; write "
            "where(name=weights([..])) for weights of one attribute."
        )


def test_later_changes_of_the_callers_array_do_not_reach_the_query():
    values = np.zeros(12)
    expression, condition = dense(values), weights(values[:3])
    values[:] = 1

    assert 0 == expression.bind(SMALL).constant == where(a=condition).bind(SMALL).constant


# ---------------------------------------------------------------- refusals where it is written


@pytest.mark.parametrize(
    "value",
    [
        *[[30], (30,), {30}, {"a": 1}, np.array([30]), lambda x: x, print, object(), b"F", 1j, where(), int],
        *[math.nan, math.inf, 2**64, 10**5000, np.timedelta64(1, "ns"), np.ma.masked, ...],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_condition_is_refused_at_once(value):
    with pytest.raises(InvalidQueryError, match="condition must be a label"):
        where(age=value)
    with pytest.raises(InvalidQueryError, match="condition must be a label"):
        one_of(30, value)
    with pytest.raises(InvalidQueryError, match="condition must be a label"):
        one_of(30) | value


@pytest.mark.parametrize("form", [between, span])
@pytest.mark.parametrize(
    "ends",
    [
        (None, 3),
        ("1", "2"),
        (math.nan, 3),
        (3, math.nan),
        (True, 3),
        (10**400, 10**401),
        ([1], 2),
        (1j, 2),
    ],
    ids=str,
)
def test_ends_must_be_numbers(form, ends):
    with pytest.raises(InvalidQueryError, match=f"{form.__name__} must have"):
        form(*ends)


def test_ends_that_leave_nothing_finite_are_refused():
    for form, ends in ((at_least, (math.inf,)), (below, (-math.inf,)), (between, (math.inf, math.inf))):
        with pytest.raises(InvalidQueryError, match="finite"):
            form(*ends)


@pytest.mark.parametrize(
    "values",
    [
        *[
            [math.nan],
            [math.inf],
            [-1e-300],
            [1.0000000001],
            [2],
            "0",
            ["0.5"],
            [None],
            [1j],
            [[0], [0, 1]],
            [],
        ],
        *[
            np.ma.masked_array([0.5], [False]),
            lambda x: 1.0,
            None,
            0.5,
            {"a": 1.0},
            object(),
            where(),
            [object()],
        ],
    ],
    ids=lasting,
)
@pytest.mark.parametrize("form", [dense, weights])
def test_only_plain_weights_between_zero_and_one_pass(form, values):
    with pytest.raises(InvalidQueryError, match="must"):
        form(values)


def test_weight_message_names_place_and_value():
    with pytest.raises(InvalidQueryError) as caught:
        dense([0, 0.5, 1, 0, 0, 0, 0, 1.5])

    assert "weights must lie in [0, 1], got weights[7]=1.5; write rescaled(...)." == str(caught.value)


def test_sparse_matrices_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InvalidQueryError, match="must"):
        dense(sparse.csr_matrix(np.eye(3)))


@pytest.mark.parametrize("conditions", [lambda row: True, "age = 3", [("age", 3)], 5, where()], ids=lasting)
def test_a_query_must_be_data(conditions):
    with pytest.raises(InvalidQueryError, match="query must be data"):
        where(conditions)


def test_names_must_be_names_and_have_one_condition():
    with pytest.raises(InvalidQueryError, match="two for 'age'"):
        where({"age": 3}, age=4)
    with pytest.raises(InvalidQueryError, match="must be a name"):
        where({3: 4})


def test_python_truth_operators_are_refused():
    query, condition = where(age=30), between(30, 50)
    for value in (query, condition):
        with pytest.raises(TypeError, match="no truth value"):
            bool(value)
    with pytest.raises(TypeError, match=r"& \| ~"):
        query and where(sex="F")
    with pytest.raises(InvalidQueryError, match="combined with a query"):
        query & (lambda row: True)
    with pytest.raises(InvalidQueryError, match="combined with a query"):
        query | "F"


@pytest.mark.parametrize("grid_bits", [-1, 21, 2.0, "8", None, True])
def test_grid_bits_are_checked(grid_bits):
    with pytest.raises(InvalidParameterError, match="grid_bits must be an integer"):
        where(age=30).bind(DOMAIN, grid_bits)


# ---------------------------------------------------------------- algebra on large domains


def test_or_over_large_attributes_stays_a_product():
    domain = Domain.of(a=1000, b=1000, c=1000)
    query = (where(a=below(5)) | where(b=at_least(990)) | where(c=7)).bind(domain)

    assert ((0,), (1,), (2,)) == tuple(factor.axes for factor in query.factors)
    assert query.complement
    assert 1 == query.sensitivity


def test_ties_of_too_many_cells_are_refused_with_the_remedy():
    domain = Domain.of(a=2000, b=2000, c=2000)
    tied = ~where(a=1, b=2) & ~where(b=3, c=4)
    with pytest.raises(TooLargeError, match=r"a \+ b - \(a & b\)"):
        tied.bind(domain)
    with pytest.raises(TooLargeError, match="dense"):
        dense(np.zeros(2**23)).bind(Domain.of(a=2**23))


def test_long_chains_bind_and_deep_nests_are_refused():
    chain = functools.reduce(operator.or_, [where(age=17 + i % 74) for i in range(3000)])
    conditions = functools.reduce(operator.or_, [one_of(17 + i % 70) for i in range(3000)])
    nested = [where(age=17)]

    assert 1 == chain.bind(DOMAIN).constant
    assert list(range(70)) == satisfied(age=conditions)
    with pytest.raises(TooLargeError, match="nest"):
        nested.extend(~(nested[-1] & where(age=17 + i % 70)) for i in range(3000))


# ---------------------------------------------------------------- identity and text


@pytest.mark.parametrize(
    "expression",
    [
        where(),
        where(age=between(30, 50), sex="F"),
        where({"income>50K": 1, "class": "x"}),
        where({"lambda": 1}),
        where(a=None, b=True, c=1, d=1.0, e=0.1, f="it's \\ \n"),
        where(
            a=span(0, 20.5), b=at_least(3), c=below(-1), d=span(-math.inf, math.inf), e=between(-math.inf, 5)
        ),
        where(a=one_of("x"), b=one_of(1, None, 2), c=weights([0.1, 1 / 3, 1])),
        where(a=~one_of("x"), b=~(between(1, 2) | 5)),
        where(a=(between(1, 2) | 5) & ~one_of(1) & at_least(0)),
        ~where(a=1),
        (where(a=1) | where(b=2) | where(c=3)) & ~(where(a=1) & where(b=3)),
        where(a=np.float64(0.5), b=np.int8(3), c=np.str_("x")),
    ],
    ids=repr,
)
def test_repr_is_python_that_gives_the_same_expression(expression):
    read = eval(repr(expression), dict(NAMES))

    assert expression == read
    assert hash(expression) == hash(read)
    assert repr(expression) == repr(read)


def test_repr_of_dense_is_a_stable_fingerprint():
    assert "dense(<2 x 2 weights, 00d13f7c>)" == repr(dense([[0, 1], [0.5, 0.25]]))
    assert repr(dense([0, 1])) == repr(dense(np.array([0.0, 1.0])))
    assert repr(dense([0, 1])) != repr(dense([1, 0]))


def test_true_and_one_are_different_expressions():
    assert where(a=True) != where(a=1)
    assert where(a=1) != where(a=1.0)
    assert one_of(True) != one_of(1)


def test_bound_query_depends_on_meaning_not_on_writing():
    written = [
        where(age=between(30, 50), sex="F"),
        where(sex=one_of("F"), age=span(30, 51)),
        where(sex="F") & where(age=at_least(30)) & where(age=below(51)),
        where(age=~(below(30) | at_least(51)), sex=~one_of("M")),
        ~(~where(age=between(30, 50)) | ~where(sex="F")),
        ~~where(age=between(30, 50), sex="F", educ=at_least(1) | None),
    ]
    queries = {expression.bind(DOMAIN) for expression in written}

    assert 1 == len(queries)


@pytest.mark.parametrize("seed", range(8))
def test_conjunctions_of_intervals_are_bound_to_what_the_general_path_gives(seed):
    rng = np.random.default_rng(seed)
    domain = Domain.of(a=5, b=1, c=optional(4), d=3)
    for _ in range(100):
        names = rng.permutation(domain.names)[: rng.integers(0, 5)].tolist()
        conditions = {}
        for name in names:
            kind = domain.attribute(name)
            ends = sorted(rng.integers(0, kind.size - kind.missing, 2).tolist())
            conditions[name] = between(*ends[:: rng.choice([-1, 1])])
        expression = where(conditions)
        fast = expression.bind(domain)
        intervals = {
            (domain.axis(name),): part.codes(name, domain.attribute(name)) for name, part in expression.parts
        }
        general = canonical(domain, False, intervals, 20)

        assert (fast, fast.axes, fast.box) == (general, general.axes, general.box)
        assert (fast.key, fast.constant, fast.sensitivity) == (
            general.key,
            general.constant,
            general.sensitivity,
        )
        assert (fast.grid_bits, fast.rounding, fast.complement) == (0, 0.0, general.complement)
        assert [factor.key for factor in fast.factors] == [factor.key for factor in general.factors]
        assert np.array_equal(fast.weights(), general.weights())
        assert fast.bind(domain) is fast


@pytest.mark.parametrize("ends", [(0, 6), (-1, 2), (0.0, 2), (True, 2), (np.int64(0), 2)])
def test_intervals_of_a_conjunction_are_whole_codes_of_their_attribute(ends):
    with pytest.raises(InvalidQueryError, match="intervals of codes inside"):
        conjunction(Domain.of(a=5), [(0, *ends)])
    with pytest.raises(InvalidQueryError, match="Domain itself"):
        conjunction("domain", [])


def test_two_intervals_of_one_axis_are_left_to_the_general_path():
    assert conjunction(Domain.of(a=5, b=3), [(0, 1, 3), (1, 0, 2), (0, 2, 4)]) is None
