"""Whatever is thrown at the query language, it binds, or refuses by name and in one sentence.

No refusal touches the data: the same text on neighbouring databases, and no read is counted.
"""

import datetime
import decimal
import fractions
import math
import uuid

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineic.data import PrivateData
from onlineic.domain import Domain, binned, optional
from onlineic.errors import (
    DomainMismatchError,
    InvalidInputError,
    InvalidParameterError,
    InvalidQueryError,
    TooLargeError,
    checked_real,
)
from onlineic.queries import at_least, below, between, dense, one_of, span, weights, where

EXAMPLES = max(100, settings().max_examples)  # four tests of this number: at least 400 on each change
DOMAIN = Domain.of(
    age=range(17, 23),
    sex=["F", "M"],
    ok=optional([True, False]),
    w=binned([-math.inf, 0, 2.5]),
    h=optional(2),
)
COUNTS = np.arange(DOMAIN.size)
NEIGHBOUR = COUNTS.copy()
NEIGHBOUR[[1, 5]] += [-1, 1]


class Hostile:
    """Refuses every question about itself."""

    def __getattr__(self, name):
        raise RuntimeError("never ask")

    def __repr__(self):
        return "Hostile()"

    def __hash__(self):
        raise RuntimeError("never hash")

    def __eq__(self, other):
        raise RuntimeError("never compare")

    def __array__(self, *args, **kwargs):
        raise ValueError("no array")


ODD = [
    *[
        Hostile(),
        object(),
        lambda row: True,
        print,
        int,
        b"F",
        1j,
        ...,
        NotImplemented,
        range(3),
        [17],
        (17,),
    ],
    *[
        {17},
        {"F": 1},
        frozenset(),
        np.array([17]),
        np.array(17),
        np.ma.masked,
        np.datetime64("NaT", "s"),
        where(),
    ],
    *[decimal.Decimal(17), fractions.Fraction(17), datetime.date(2020, 1, 1), uuid.UUID(int=1), DOMAIN],
    *[
        10**5000,
        -(10**5000),
        2**63,
        2**64,
        "F" * 10**5,
        "\ud800",
        "\x00",
        "",
        np.nan,
        np.inf,
        bytearray(b"F"),
    ],
    *[
        np.str_("F"),
        np.int8(17),
        np.float32(17),
        np.True_,
        np.void(b"F"),
        Domain,
        ValueError("F"),
        {},
        [],
    ],
]
JUNK = st.integers(0, len(ODD) - 1).map(lambda index: ODD[index])  # by index: some cannot be hashed
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(15, 25),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from("FM"),
)
VALUES = st.one_of(PLAIN, JUNK)
NUMBERS = st.one_of(st.floats(0, 1), st.floats(), st.integers(-1, 2), JUNK, PLAIN)


@st.composite
def arrays(draw):
    form = draw(st.sampled_from(["list", "nested", "array", "masked", "junk", "nearly"]))
    if form == "junk":
        return draw(VALUES)
    if form == "nearly":
        values = np.full(draw(st.sampled_from([DOMAIN.size, DOMAIN.shape])), 0.5)
        values.flat[draw(st.integers(0, DOMAIN.size - 1))] = draw(
            st.sampled_from([math.nan, math.inf, -math.inf, -1e-320, np.nextafter(1, 2), 1.5, 0.0, 1.0])
        )
        return values
    if form == "list":
        return draw(st.lists(NUMBERS, max_size=7))
    if form == "nested":
        return draw(st.lists(st.lists(st.floats(0, 1), max_size=3), max_size=3))
    dtype = draw(
        st.sampled_from(["f8", "f4", "f2", "i8", "u1", "?", "c16", "U3", "S3", "O", "M8[s]", "V4", "g"])
    )
    shape = draw(st.sampled_from([(), (0,), (2,), (6,), (DOMAIN.size,), DOMAIN.shape, (2, 6), (1,) * 9]))
    array = np.zeros(shape, dtype)
    return np.ma.masked_array(array, mask=draw(st.booleans())) if form == "masked" else array


@st.composite
def conditions(draw):
    """Return a recipe: building it may already be refused."""
    form = draw(st.sampled_from(["value", "ends", "end", "labels", "weights", "pair", "not"]))
    if form == "value":
        value = draw(VALUES)
        return lambda: value
    if form == "ends":
        make, low, high = draw(st.sampled_from([between, span])), draw(VALUES), draw(VALUES)
        return lambda: make(low, high)
    if form == "end":
        make, value = draw(st.sampled_from([at_least, below])), draw(VALUES)
        return lambda: make(value)
    if form == "labels":
        labels = draw(st.lists(VALUES, max_size=3))
        return lambda: one_of(*labels)
    if form == "weights":
        values = draw(arrays())
        return lambda: weights(values)
    value, label = draw(VALUES), draw(PLAIN)
    if form == "not":
        return lambda: ~one_of(label)
    return lambda: one_of(label) | value


NAMES = st.one_of(st.sampled_from(DOMAIN.names), st.sampled_from(["agee", "", "lambda"]), st.text(max_size=4))


@st.composite
def queries(draw):
    form = draw(st.sampled_from(["where", "where", "dense", "pair", "positional", "keys"]))
    if form == "where":
        parts = draw(st.dictionaries(NAMES, conditions(), max_size=3))
        return lambda: where({name: make() for name, make in parts.items()})
    if form == "dense":
        values = draw(arrays())
        return lambda: dense(values)
    value = draw(VALUES)
    if form == "pair":
        return lambda: where(sex="F") & value
    if form == "keys":
        return lambda: where({_key(value): 1})
    return lambda: where(value)


def _key(value):
    try:
        hash(value)
    except (TypeError, RuntimeError):
        return 17
    return value


def outcome(make, counts, grid_bits=20):
    """Ask; return the query's answer, or the refusal's class and text."""
    private = PrivateData(counts, DOMAIN)
    try:
        query = make().bind(DOMAIN, grid_bits)
    except InvalidInputError as error:
        assert private.reads == 0
        return type(error), str(error)
    assert 0 <= query.weights().min() <= query.weights().max() <= 1 << query.grid_bits
    return query, private.exact_counts(query)


def check(make, grid_bits=20):
    first, second = (outcome(make, counts, grid_bits) for counts in (COUNTS, NEIGHBOUR))

    assert first[0] == second[0]
    if isinstance(first[0], type):
        assert first[0] in (InvalidQueryError, InvalidParameterError, TooLargeError)
        assert first[1] == second[1]
        assert " must " in first[1]
        assert "got" in first[1]
        assert len(first[1]) < 400
    else:
        assert abs(first[1] - second[1]) <= first[0].sensitivity


@given(queries())
@settings(max_examples=EXAMPLES)
def test_every_query_binds_or_is_refused_by_name(make):
    check(make)


@given(arrays())
@settings(max_examples=EXAMPLES)
def test_every_array_is_a_query_or_refused_by_name(values):
    check(lambda: dense(values))
    check(lambda: where(age=weights(values)))


@given(NAMES, conditions())
@settings(max_examples=EXAMPLES)
def test_every_condition_is_understood_or_refused_by_name(name, make):
    check(lambda: where({name: make()}))


@given(VALUES)
@settings(max_examples=EXAMPLES)
def test_every_grid_is_taken_or_refused_by_name(grid_bits):
    check(lambda: where(age=weights([0, 0.1, 0.2, 0.5, 0.9, 1])), grid_bits)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: where(agee=17), "attribute must be one of the domain's, got 'agee'; did you mean 'age'?"),
        (lambda: where(age=23), "age must be an integer in [17, 22], got age=23; ask inside the domain."),
        (lambda: where(sex="x"), "sex must be one of its 2 values ('F', 'M'), got sex='x'; see the domain."),
        (lambda: where(ok=1), "ok must be one of its 3 values (True, False), got ok=1; see the domain."),
        (lambda: dense([0.5, 1.5]), "weights must lie in [0, 1], got weights[1]=1.5; write rescaled(...)."),
        (lambda: dense([0.5, 1.0]),
         "weights must have shape (144,) or (6, 2, 3, 2, 3), one for each cell, got (2,); "
         "write where(name=weights([..])) for weights of one attribute."),
        (lambda: where(int), "query must be data (conditions by attribute), got a type; "
                             "write where(attribute=condition)."),
        (lambda: where(w=below(1)), "w must be cut at a bin edge, got 1; the nearest edges are 0 and 2.5."),
    ],
)  # fmt: skip
def test_words_of_the_common_refusals(make, expected):
    with pytest.raises(InvalidQueryError) as caught:
        make().bind(DOMAIN)

    assert expected.replace("144", str(DOMAIN.size)).replace("(6, 2, 3, 2, 3)", str(DOMAIN.shape)) == str(
        caught.value
    )


def test_a_query_for_another_domain_names_both():
    other = Domain.of(age=range(17, 24))
    with pytest.raises(DomainMismatchError) as caught:
        where(age=17).bind(other).bind(DOMAIN)

    assert {DOMAIN.digest(), other.digest()} <= set(
        str(caught.value).replace(",", "").replace(";", "").split()
    )


def test_numbers_without_a_float_are_refused_by_name():
    """1/10^400 is positive, but its float is not; 10^5000 has no text either."""
    for value in (10**400, -(10**400), 10**5000, fractions.Fraction(1, 10**400), math.nan, True, "1"):
        with pytest.raises(InvalidParameterError, match="epsilon must be a number in "):
            checked_real("epsilon", value, above=0)
