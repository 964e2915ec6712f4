"""The algebra of queries against dense vectors over small random domains, to the last integer."""

import itertools
import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onlineic.data import PrivateData
from onlineic.domain import Domain, binned, optional
from onlineic.queries import (
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

NAMES = "abcd"
FRACTIONS = (0.0, 0.25, 1 / 3, 0.5, 0.7, 1.0, 1e-9, 1 - 1e-9)


@st.composite
def domains(draw, at_most=4):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=at_most))
    kinds = [
        draw(
            st.sampled_from(
                [
                    size,
                    range(-1, size - 1),
                    list("wxyz"[:size]),
                    optional(size),
                    binned(range(size + 1), integer=True),
                ]
            )
        )
        for size in sizes
    ]
    return Domain.of(dict(zip(NAMES, kinds, strict=False)))


@st.composite
def conditions(draw, kind, fractional=True, depth=2):
    """Return (condition, its weights by code) of one attribute."""
    forms = ["labels", *["interval"] * kind.ordered, *["weights"] * fractional, *["tree"] * (depth > 0)]
    form = draw(st.sampled_from(forms))
    values = np.zeros(kind.size)
    if form == "labels":
        codes = draw(st.lists(st.integers(0, kind.size - 1), min_size=1, max_size=3))
        values[codes] = 1.0
        labels = [kind.label(code) for code in codes]
        return (one_of(*labels) if len(codes) > 1 or draw(st.booleans()) else labels[0]), values
    if form == "interval":
        inside = kind.size - kind.missing
        low, high = sorted(draw(st.tuples(st.integers(0, inside), st.integers(0, inside))))
        base = getattr(kind, "start", 0)
        choice = [(span(base + low, base + high), low, high)]
        choice += [(at_least(base + low), low, inside), (below(base + high), 0, high)]
        choice += [(between(base + low, base + high - 1), low, high)] if low < high else []
        condition, low, high = draw(st.sampled_from(choice))
        values[low:high] = 1.0
        return condition, values
    if form == "weights":
        values = np.array(draw(st.lists(st.sampled_from(FRACTIONS), min_size=kind.size, max_size=kind.size)))
        return weights(values), values
    condition, values = draw(conditions(kind, fractional, depth - 1))
    condition = condition if hasattr(condition, "form") else one_of(condition)
    other, more = draw(conditions(kind, fractional, depth - 1))
    kind_of = draw(st.sampled_from(["not", "and", "or"]))
    if kind_of == "not":
        return ~condition, 1.0 - values
    if kind_of == "and":
        return condition & other, values * more
    return condition | other, 1.0 - (1.0 - values) * (1.0 - more)


@st.composite
def expressions(draw, domain, fractional=False, depth=3):
    """Return (expression, its dense weights) over a domain."""
    form = draw(st.sampled_from(["where", "where", "dense", *["not", "and", "or"] * (depth > 0)]))
    if form == "where":
        chosen = draw(st.lists(st.sampled_from(domain.names), unique=True, max_size=3))
        result, parts = np.ones(domain.shape), {}
        for name in chosen:
            axis = domain.axis(name)
            parts[name], values = draw(conditions(domain.attributes[axis], fractional))
            result = result * values.reshape([-1 if i == axis else 1 for i in range(len(domain.shape))])
        return where(parts), result
    if form == "dense":
        pool = FRACTIONS if fractional else (0.0, 1.0)
        values = np.array(draw(st.lists(st.sampled_from(pool), min_size=domain.size, max_size=domain.size)))
        return dense(values if draw(st.booleans()) else values.reshape(domain.shape)), values.reshape(
            domain.shape
        )
    left, first = draw(expressions(domain, fractional, depth - 1))
    if form == "not":
        return ~left, 1.0 - first
    right, second = draw(expressions(domain, fractional, depth - 1))
    if form == "and":
        return left & right, first * second
    return left | right, 1.0 - (1.0 - first) * (1.0 - second)


@given(st.data())
def test_counting_queries_equal_their_dense_vector(data):
    domain = data.draw(domains())
    expression, expected = data.draw(expressions(domain))
    query = expression.bind(domain)

    assert 0 == query.grid_bits
    assert 0.0 == query.rounding
    assert expected.tolist() == query.weights().tolist()


@given(st.data())
def test_every_writing_of_a_counting_query_that_factors_gives_the_same_query(data):
    """A dense copy, a copy of a dense copy, double negation and a redundant condition change nothing."""
    domain = data.draw(domains(3))  # below four axes the finest factors are found by peeling
    expression, expected = data.draw(expressions(domain))
    query = expression.bind(domain)
    copies = [
        dense(expected),
        dense(query.weights().ravel()),
        ~~expression,
        ~(~expression),
        expression & expression,
        expression | expression,
        expression & where(),
        ~dense(1.0 - expected),
    ]

    for copy in copies:
        assert query == copy.bind(domain)
        assert hash(query) == hash(copy.bind(domain))


@given(st.data())
def test_complement_is_one_minus_and_shares_the_key(data):
    domain = data.draw(domains())
    expression, _ = data.draw(expressions(domain, fractional=True))
    query, turned = expression.bind(domain), (~expression).bind(domain)

    assert (1 << query.grid_bits) == np.unique(query.weights() + turned.weights()).item()
    assert query.sensitivity == turned.sensitivity
    assert query.rounding == turned.rounding
    if query.constant is None:
        assert query.key == turned.key
        assert query.complement != turned.complement
        assert query != turned


@given(st.data())
def test_axes_are_those_that_the_weights_depend_on(data):
    domain = data.draw(domains())
    expression, expected = data.draw(expressions(domain))
    needed = tuple(
        axis for axis in range(len(domain.shape)) if (expected != np.take(expected, [0], axis=axis)).any()
    )

    assert needed == expression.bind(domain).axes


@given(st.data())
def test_canonical_form_is_idempotent(data):
    domain = data.draw(domains())
    expression, _ = data.draw(expressions(domain, fractional=True))
    query = expression.bind(domain)
    joint = {
        factor.axes: np.ldexp(factor.weights(domain).astype(float), -factor.bits) for factor in query.factors
    }
    again = canonical(domain, query.complement, joint, 20)

    if query.constant is None and sum(f.bits > 0 for f in query.factors) < 2:
        assert query == again
    assert (
        np.array_equal(
            np.ldexp(again.weights().astype(float), -again.grid_bits),
            np.ldexp(query.weights().astype(float), -query.grid_bits),
        )
        or query.constant is not None
    )
    assert query == query.bind(domain)


@given(st.data(), st.integers(4, 20))
def test_rounding_is_an_upper_bound_and_at_most_half_a_grid_step_a_factor(data, grid_bits):
    domain = data.draw(domains())
    expression, expected = data.draw(expressions(domain, fractional=True))
    query = expression.bind(domain, grid_bits)
    rounded = np.ldexp(query.weights().astype(float), -query.grid_bits)
    error = np.abs(rounded - expected).max()
    share = grid_bits // max(1, len(domain.shape))

    assert query.grid_bits <= grid_bits
    assert error <= query.rounding + 1e-15
    assert query.rounding <= len(domain.shape) * 2.0 ** -(share + 1) + 1e-15


@given(st.data())
def test_one_fractional_factor_reports_its_rounding_exactly(data):
    domain = data.draw(domains(2))
    kind = domain.attributes[0]
    values = data.draw(st.lists(st.sampled_from(FRACTIONS), min_size=kind.size, max_size=kind.size))
    query = where(a=weights(values)).bind(domain, 8)
    error = max(abs(Fraction(value) - Fraction(round(Fraction(value) * 256), 256)) for value in values)

    assert float(error) == query.rounding


@given(st.data())
def test_sensitivity_is_the_range_of_the_weights_and_what_one_replaced_record_can_do(data):
    domain = data.draw(domains(2))
    expression, _ = data.draw(expressions(domain, fractional=True))
    query = expression.bind(domain, 6)
    table = query.weights()
    largest = 0
    for before, after in itertools.product(range(domain.size), repeat=2):
        counts = np.ones(domain.size, np.int64)
        neighbour = counts.copy()
        counts[before] += 1
        neighbour[after] += 1
        values = [PrivateData(histogram, domain).exact_counts(query) for histogram in (counts, neighbour)]
        largest = max(largest, abs(values[0] - values[1]))

    assert int(table.max() - table.min()) == query.sensitivity == largest
    assert 0 <= table.min() <= table.max() <= 1 << query.grid_bits
    assert (query.constant is None) == (query.sensitivity > 0)


@given(st.data())
def test_exact_counts_are_the_integer_sum_over_the_records(data):
    domain = data.draw(domains())
    expression, _ = data.draw(expressions(domain, fractional=True))
    query = expression.bind(domain)
    cells = data.draw(st.lists(st.integers(0, domain.size - 1), min_size=1, max_size=30))
    codes = np.unravel_index(cells, domain.shape)
    columns = {
        name: [kind.label(code) if not hasattr(kind, "edges") else _inside(kind, code) for code in column]
        for (name, kind), column in zip(domain, codes, strict=True)
    }
    private = PrivateData.from_records(columns, domain)
    flat = query.weights().ravel()
    expected = sum(int(flat[cell]) for cell in cells)

    assert len(cells) == private.n
    assert expected == private.exact_counts(query)
    assert [expected] == private.exact_counts_many([query]).tolist()


def _inside(kind, code):
    return None if code == len(kind.edges) - 1 else kind.edges[code]


@st.composite
def partitions(draw, domain):
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(domain.shape) - 1), min_size=1))))
    classes = []
    for axis in axes:
        size = domain.shape[axis]
        drawn = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
        classes.append(np.unique(drawn, return_inverse=True)[1].astype(np.int64))
    return Partition(domain, axes, tuple(classes))


@given(st.data())
def test_blocks_cover_every_cell_once_and_agree_with_measure_and_exact_counts(data):
    domain = data.draw(domains())
    partition = data.draw(partitions(domain))
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=domain.size, max_size=domain.size)))
    counts[0] += 1
    private = PrivateData(counts, domain)
    others = tuple(axis for axis in range(len(domain.shape)) if axis not in partition.axes)
    table = counts.reshape(domain.shape).sum(axis=others).astype(float)
    blocks = [partition.block(index) for index in range(partition.blocks)]
    expected = [int((block.weights() * counts.reshape(domain.shape)).sum()) for block in blocks]

    assert math.prod(partition.shape) == partition.blocks
    assert (sum(block.weights() for block in blocks) == 1).all()
    assert expected == partition.measure(table).tolist()
    assert expected == private.exact_counts(partition).tolist()
    assert expected == [private.exact_counts(block) for block in blocks]
    assert private.n == sum(expected)


@given(st.data())
def test_a_replaced_record_moves_a_partition_by_one_and_minus_one(data):
    domain = data.draw(domains())
    partition = data.draw(partitions(domain))
    before, after = data.draw(st.tuples(*[st.integers(0, domain.size - 1)] * 2))
    answers = []
    for cell in (before, after):
        counts = np.ones(domain.size, np.int64)
        counts[cell] += 1
        answers.append(PrivateData(counts, domain).exact_counts(partition))
    change = np.abs(answers[0] - answers[1])

    assert change.max() <= 1
    assert change.sum() in (0, 2)


@given(st.data())
def test_order_of_records_attributes_and_writing_does_not_matter(data):
    domain = data.draw(domains())
    n = data.draw(st.integers(1, 20))
    cells = np.array(data.draw(st.lists(st.integers(0, domain.size - 1), min_size=n, max_size=n)))
    order = np.array(data.draw(st.permutations(range(n))))
    names = data.draw(st.permutations(domain.names))
    moved = Domain.of({name: domain.attribute(name) for name in names})
    parts = {name: data.draw(conditions(domain.attribute(name)))[0] for name in names[:2]}
    answers = []
    for held, picked in ((domain, cells), (moved, cells[order])):
        codes = dict(zip(domain.names, np.unravel_index(picked, domain.shape), strict=True))
        counts = np.zeros(held.shape, np.int64)
        np.add.at(counts, tuple(codes[name] for name in held.names), 1)
        query = where(dict(sorted(parts.items(), reverse=held is moved))).bind(held)
        answers.append((PrivateData(counts, held).exact_counts(query), query.grid_bits, query.sensitivity))

    assert answers[0] == answers[1]


@given(st.data())
def test_one_query_alone_and_many_at_once_give_the_same_bits(data):
    from onlineic.queries.tables import Tables

    domain = data.draw(domains())
    seed = data.draw(st.integers(0, 2**32))
    cells = np.random.default_rng(seed).random(domain.shape)
    asked = [data.draw(expressions(domain, fractional=True))[0].bind(domain) for _ in range(4)]
    for prefix_cells in (0, 2**16):
        tables = Tables(cells, prefix_cells)
        mass = tables.total()
        alone = [query.total(tables, mass) for query in asked]

        assert alone == totals(asked, Tables(cells, prefix_cells), mass).tolist()
        assert np.allclose(
            alone, [(query.weights() * cells).sum() for query in asked], rtol=1e-12, atol=1e-12
        )
