"""No query that reaches the counts moves by more than it says, whoever made it and of whatever classes.

Brute force: the count of a query on every table of one record. Their range, in units of 2^-grid_bits, is what
one replaced record can do, and `sensitivity` is what is paid for.
"""

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.domain import Categorical, Domain, IntegerRange
from onlineic.errors import InvalidDomainError, InvalidInputError, InvalidParameterError, InvalidQueryError
from onlineic.noise import SimulatedNoise
from onlineic.queries import (
    Condition,
    Expression,
    Factor,
    Marginal,
    Partition,
    Query,
    between,
    canonical,
    dense,
    marginal,
    one_of,
    weights,
    where,
)

DOMAIN = Domain.of(a=3, b=4, c=["x", "y"])
ONE_RECORD = [PrivateData(row, DOMAIN) for row in np.eye(24, dtype=np.int64)]


class Lying(Condition):
    """Names what codes it likes: its first part."""

    def codes(self, name, attribute):
        return self.parts[0]


class LyingArray(np.ndarray):
    """Says that all is well with it."""

    def __ge__(self, other):
        return np.ones(self.shape, bool)

    __le__ = __ge__


class LyingRange(IntegerRange):
    def interval(self, name, low, high, closed):
        return int(low), int(high)


class LyingDomain(Domain):
    """Equal to every domain."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = Domain.__hash__


@attrs.frozen
class Flag:
    """Equal to False, worth seven cells."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __radd__(self, other):
        return other + 7


def moved(query):
    """Return (what is paid for, what one replaced record can do), of the query as it is answered."""
    counts = [data.exact_counts(query) for data in ONE_RECORD]
    many = [data.exact_counts_many([query, query]).tolist() for data in ONE_RECORD]

    assert [[count] * 2 for count in counts] == many
    return query.sensitivity, max(counts) - min(counts)


def check(make):
    """What is made is refused by name, or moves by no more than it says, within [0, 2^grid_bits]."""
    try:
        query = make()
    except InvalidInputError:
        return
    claimed, real = moved(query)
    counts = [data.exact_counts(query) for data in ONE_RECORD]

    assert real <= claimed <= 1 << query.grid_bits
    assert 0 <= min(counts) <= max(counts) <= 1 << query.grid_bits


ENDS = st.one_of(
    st.integers(-5, 9), st.integers(-5, 9).map(np.int64), st.booleans(), st.sampled_from([0.0, 2.5, 9e9])
)
NUMBERS = st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0, 2.0, np.nan, np.inf, 1 / 3])
AXES = st.lists(st.integers(-2, 4), min_size=0, max_size=3).map(tuple)


@st.composite
def arrays(draw):
    """Arrays of shapes that may fit and of classes that may not."""
    shape = draw(st.sampled_from([(3,), (4,), (2,), (3, 4), (4, 3), (4, 2), (12,), (3, 4, 2), (1,), ()]))
    values = draw(st.lists(NUMBERS, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    array = np.array(values).reshape(shape)
    kind = draw(st.sampled_from(["plain", "object", "masked", "subclass", "float32", "list", "int"]))
    if kind == "masked":
        return np.ma.MaskedArray(array, mask=array > 0.5)
    if kind == "subclass":
        return array.view(LyingArray)
    if kind == "int":
        return np.nan_to_num(array, posinf=3).astype(np.int64)
    return {"plain": array, "list": array.tolist(), "float32": array.astype(np.float32)}.get(
        kind, array.astype(object)
    )


PARTS = st.one_of(arrays(), st.lists(ENDS, min_size=1, max_size=3).map(tuple))
CONDITIONS = st.one_of(
    PARTS.map(lambda part: Lying("interval", (part,))),
    st.lists(ENDS, min_size=1, max_size=4).map(lambda ends: Condition("interval", tuple(ends))),
    st.lists(NUMBERS, min_size=2, max_size=4).map(lambda values: Condition("weights", tuple(values))),
    st.lists(ENDS, min_size=1, max_size=3).map(lambda labels: Condition("one_of", tuple(labels))),
    st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda ends: between(*sorted(ends))),
    st.sampled_from(["x", "y", 0, 1, 2, 3]).map(one_of),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 1 / 3]), min_size=2, max_size=4).map(weights),
)
NESTED = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        inner.map(lambda one: Condition("not", (one,))),
        st.tuples(inner, inner).map(lambda two: Condition("and", two)),
        st.tuples(inner, inner).map(lambda two: Condition("or", two)),
    ),
    max_leaves=3,
)
HOSTILE = st.lists(st.tuples(st.sampled_from("abc"), NESTED), min_size=0, max_size=3).map(
    lambda parts: Expression("where", tuple(parts))
)
SHARES = st.sampled_from([0.0, 0.25, 1.0, 1 / 3])
FITTING = {
    name: st.one_of(
        st.sampled_from(labels).map(one_of),
        st.lists(SHARES, min_size=len(labels), max_size=len(labels)).map(weights),
        st.tuples(st.sampled_from(labels), st.sampled_from(labels)).map(lambda two: ~(one_of(*two))),
    )
    for name, labels in (("a", [0, 1, 2]), ("b", [0, 1, 2, 3]), ("c", ["x", "y"]))
}
HONEST = st.fixed_dictionaries({}, optional=FITTING).map(where)
WHERES = st.one_of(HONEST, HONEST, HONEST, HOSTILE)
QUERIES = st.recursive(
    WHERES,
    lambda inner: st.one_of(
        inner.map(lambda one: Expression("not", (one,))),
        st.tuples(inner, inner).map(lambda two: Expression("and", two)),
        st.tuples(inner, inner).map(lambda two: Expression("or", two)),
    ),
    max_leaves=3,
)


def tried(act):
    try:
        return act()
    except (
        InvalidInputError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        OverflowError,
        RuntimeWarning,
    ):
        return None  # no query: nothing that could be read


@given(QUERIES, st.sampled_from([0, 1, 3, 20]))
def test_a_query_put_together_by_hand_moves_by_no_more_than_it_says(query, bits):
    bound = tried(lambda: query.bind(DOMAIN, bits))
    if bound is not None:
        check(lambda: bound)


@given(st.dictionaries(AXES, PARTS, max_size=3), st.booleans(), st.sampled_from([0, 2, 20]))
def test_factors_of_any_kind_are_refused_or_move_by_no_more_than_they_say(joint, complement, bits):
    check(lambda: canonical(DOMAIN, complement, joint, bits))


@given(arrays(), st.sampled_from([0, 2, 20]))
def test_arrays_of_any_class_are_refused_or_move_by_no_more_than_they_say(array, bits):
    check(lambda: dense(array).bind(DOMAIN, bits))


@given(st.lists(st.integers(-2, 5), max_size=3), st.lists(arrays(), max_size=3))
def test_a_partition_counts_every_record_in_one_block(axes, classes):
    target = tried(lambda: Partition(DOMAIN, tuple(axes), tuple(classes)))
    if target is None:
        return
    counts = [data.exact_counts(target) for data in ONE_RECORD]

    assert all(1 == count.sum() == np.abs(count).sum() for count in counts)


@pytest.mark.parametrize(
    "part",
    [
        (-1, 2),
        (0, 5),
        (-3, -1),
        (1, 9),
        (np.int64(0), 2),
        (0.0, 2),
        (False, 2),
        (0, 1, 2),
        np.array([0.0, 1.0]),
    ],
    ids=repr,
)
def test_a_condition_with_codes_outside_its_attribute_is_refused_by_name(part):
    """(-1, 2) of three codes: price of sensitivity 1, and a difference of 2 in a product with another."""
    for make in (
        lambda: where(a=Lying("interval", (part,))),
        lambda: Expression("where", (("a", Lying("interval", (part,))),)).bind(DOMAIN),
        lambda: Expression("where", (("a", Condition("not", (Lying("interval", (part,)),))),)).bind(DOMAIN),
        lambda: between(0, 1) & Lying("interval", (part,)),
    ):
        with pytest.raises(InvalidQueryError, match="a condition must be a label, None"):
            make()
    with pytest.raises(InvalidQueryError, match=r"query must have (intervals|plain float64 weights)"):
        canonical(DOMAIN, False, {(0,): part}, 20)


@pytest.mark.parametrize("axes", [(3,), (-1,), (0, 0), (np.int64(0),), (True,)], ids=repr)
def test_axes_outside_the_domain_or_twice_are_refused_by_name(axes):
    with pytest.raises(InvalidQueryError, match=r"each of the axes 0 \.\. 2 at most once"):
        canonical(DOMAIN, False, {axes: np.ones((3,) * len(axes))}, 20)
    with pytest.raises(InvalidQueryError, match="at most once"):
        canonical(DOMAIN, False, {(0,): (0, 1), (0, 1): np.ones((3, 4)) / 2}, 20)


@pytest.mark.parametrize("kind", ["masked", "subclass", "object", "nan"])
def test_weights_of_another_class_are_refused_by_name(kind):
    bad = np.array([0.5, 3.0, 0.0])
    part = {
        "masked": np.ma.MaskedArray(bad, mask=[0, 1, 0]),
        "subclass": bad.view(LyingArray),
        "object": bad.astype(object),
        "nan": np.array([0.5, np.nan, 0.0]),
    }[kind]

    with pytest.raises(InvalidQueryError, match="query must have"):
        canonical(DOMAIN, False, {(0,): part}, 20)


def test_attributes_and_domains_of_another_class_are_refused_by_name():
    with pytest.raises(InvalidDomainError, match="attributes must be kinds"):
        Domain(("a",), (LyingRange(0, 3),))
    for kind in (IntegerRange(0, 4, Flag()), Categorical(("x",), missing=Flag())):
        with pytest.raises(InvalidDomainError, match="missing must be True or False"):
            Domain(("a",), (kind,))
    other = LyingDomain(("a", "b", "c"), tuple(IntegerRange(0, 9) for _ in "abc"))
    with pytest.raises(InvalidParameterError, match="domain must be a Domain"):
        where(a=between(0, 7)).bind(other)
    with pytest.raises(InvalidParameterError, match="domain must be a Domain"):
        PrivateData(np.ones(729, np.int64), other)


def test_a_domain_that_only_claims_to_be_another_is_told_by_its_shape():
    """Of what an attribute compares by, nothing can hide how many cells it has."""

    class Labels(tuple):
        __slots__ = ()

        def __eq__(self, other):
            return True

        __hash__ = tuple.__hash__

        def __getitem__(self, index):
            return (
                tuple.__getitem__(self, index)
                if isinstance(index, int)
                else Labels(tuple.__getitem__(self, index))
            )

    wide = Domain(("a", "b", "c"), (*DOMAIN.attributes[:2], Categorical(Labels(["x", "y", "z", "w"]))))
    query = where(c=one_of("z", "w")).bind(wide)
    with pytest.raises(InvalidInputError):
        query.bind(DOMAIN)
    with pytest.raises(InvalidInputError):
        ONE_RECORD[0].exact_counts(query)


@attrs.frozen
class Fake:
    """A condition of a table that binds to whatever it holds."""

    held: object

    def bind(self, domain, *_):
        return self.held


def test_a_marginal_takes_no_condition_but_an_expression():
    class Narrow(Expression):
        def bind(self, domain, grid_bits=20):
            raise AssertionError("was asked to bind")

    fake = Fake(where(a=0).bind(DOMAIN))
    for condition in (fake, Narrow("where", ())):
        with pytest.raises(InvalidQueryError, match="where must be a query made by where"):
            marginal("a", where=condition)
        with pytest.raises(InvalidQueryError, match="where must be a query made by where"):
            Marginal(("a",), condition).bind(DOMAIN)
        with pytest.raises(InvalidQueryError):
            where(a=0) & condition


def test_a_query_or_a_factor_put_together_by_hand_is_refused_wherever_it_is_asked():
    honest = where(a=0, b=between(1, 2)).bind(DOMAIN)
    forged = [
        attrs.evolve(honest, highest=0),
        attrs.evolve(honest, factors=(Factor((0,), -3, 9),), box=((-3,), (9,)), axes=(0,)),
        Query(DOMAIN, (), False, 0, 0, 0, 0.0, (), None, ("constant", 0, 0), 0),
    ]
    data = PrivateData(np.arange(24), DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0), noise=SimulatedNoise(0))
    for query in forged:
        with pytest.raises(InvalidQueryError, match="put together by hand"):
            session.answer(query)
    with pytest.raises(InvalidQueryError):
        session.answer(
            type("Own", (Query,), {})(*(getattr(honest, field.name) for field in attrs.fields(Query)[:-1]))
        )
