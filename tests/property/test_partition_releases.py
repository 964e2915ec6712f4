"""Releases of partitions on random domains and queries: derived values, norms, publicity, sensitivity."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.ledger import BoughtTables, Hard
from onlineic.noise import SimulatedNoise
from onlineic.queries import Measurement, PartitionRule, block_weights, derived, one_way, sets_of

SHAPES = st.lists(st.integers(1, 24), min_size=1, max_size=4).filter(lambda s: 2 <= math.prod(s) <= 4000)
RULES = st.builds(
    PartitionRule,
    parts=st.integers(1, 12),
    fine=st.integers(1, 16),
    blocks=st.integers(1, 64),
    most_blocks=st.integers(1, 2000),
)


@st.composite
def cases(draw):
    """A domain, categorical or ordered in parts, and a query on it that is not constant."""
    shape = draw(SHAPES)
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    attributes = {
        f"x{axis}": [f"v{code}" for code in range(size)] if size > 1 and generator.random() < 0.3 else size
        for axis, size in enumerate(shape)
    }
    domain = ic.Domain.of(**attributes)
    kind = draw(st.integers(0, 3))
    table = np.ones(domain.shape)
    for axis, size in enumerate(domain.shape):
        if kind == 3 or generator.random() < 0.4:
            continue
        steps = np.zeros(size)
        low, high = np.sort(generator.integers(0, size, 2))
        steps[low : high + 1] = 1.0 if kind == 0 else generator.integers(1, 9) / 8
        if kind == 2:
            steps = generator.integers(0, 2, size).astype(float)
        shaped = [1] * len(shape)
        shaped[axis] = size
        table = table * steps.reshape(shaped)
    if kind == 3:
        table = generator.integers(0, 5, domain.shape) / 4
    query = ic.dense(table).bind(domain)
    if draw(st.booleans()):
        query = (~ic.dense(table)).bind(domain)
    return domain, query, generator


@settings(max_examples=300, deadline=None)
@given(cases(), RULES)
def test_a_query_is_the_sum_of_its_blocks_exactly_whatever_its_weights(case, rule):
    domain, query, generator = case
    if query.constant is not None:
        return
    partition = rule.partition(query)
    if partition is None:
        return
    counts = generator.integers(0, 50, domain.shape)
    counts.flat[0] += 1
    data = PrivateData(counts, domain)
    blocks = data.exact_counts(partition)
    weights = block_weights(query, partition)
    scaled = weights * (1 << query.grid_bits)

    assert np.array_equal(scaled, np.rint(scaled))  # the query's own integers: nothing is averaged
    assert data.exact_counts(query) == int(scaled @ blocks)
    assert data.n == blocks.sum()
    value, weights = derived(query, Measurement(partition, blocks / data.n, 0.1))
    norm = float(np.linalg.norm(weights))
    assert value == pytest.approx(data.exact_counts(query) / (data.n << query.grid_bits), abs=1e-12)
    assert norm > 0.0
    # every cell has the weight of its block
    spread = sum(
        partition.block(index).weights() * scaled[index] for index in range(min(partition.blocks, 40))
    )
    inside = sum(partition.block(index).weights() for index in range(min(partition.blocks, 40)))
    assert np.array_equal(spread, query.weights() * inside)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_the_error_of_a_derived_value_is_the_noise_times_coefficients_of_the_stated_norm(case):
    """Linear in the values: the response to each unit of noise is w - m; its norm is that of the error."""
    _, query, generator = case
    partition = None if query.constant is not None else PartitionRule().partition(query)
    if partition is None or partition.blocks > 300:
        return
    base = generator.dirichlet(np.ones(partition.blocks))
    value, weights = derived(query, Measurement(partition, base, 0.1))
    norm = float(np.linalg.norm(weights))
    response = np.array(
        [derived(query, Measurement(partition, base + unit, 0.1))[0] for unit in np.eye(partition.blocks)]
    )
    response -= value

    assert norm == pytest.approx(np.linalg.norm(response), rel=1e-9)
    assert response.sum() == pytest.approx(0.0, abs=1e-9)
    assert norm <= np.linalg.norm(block_weights(query, partition)) * (1 + 1e-12)


@settings(max_examples=150, deadline=None)
@given(cases(), RULES)
def test_replacing_a_record_moves_the_blocks_by_one_record_between_two_of_them(case, rule):
    domain, query, generator = case
    partition = None if query.constant is not None else rule.partition(query)
    if partition is None:
        return
    counts = generator.integers(1, 4, domain.size)
    source, target = generator.integers(0, domain.size, 2)
    other = counts.copy()
    other[source] -= 1
    other[target] += 1
    moved = PrivateData(counts, domain).exact_counts(partition)
    moved = moved - PrivateData(other, domain).exact_counts(partition)

    assert int(moved @ moved) in (0, 2)
    assert 0 == moved.sum()


@settings(max_examples=40, deadline=None)
@given(cases(), st.integers(0, 2**20))
def test_which_partition_is_released_is_a_function_of_query_and_transcript_alone(case, seed):
    """Two tables that have nothing in common; as long as the transcript is the same, so are the targets."""
    domain, query, _ = case
    if query.constant is not None or len(domain.shape) < 2:
        return
    released = []
    for concentrated in (False, True):
        counts = np.zeros(domain.size, int)
        counts[:] = 1000
        if concentrated:
            counts[:] = 0
            counts[-1] = 1000 * domain.size
        session = ic.OnlineIC(
            PrivateData(counts, domain),
            ic.Budget(2.0, 1e-6),
            hard_answers=8,
            threshold=1e-6,
            noise=SimulatedNoise(seed),
        )
        plan = session.plan
        asked = [query, one_way(domain, 0).block(0)]
        for one in asked:
            if one.constant is None:
                session.answer(one)
        records = session.transcript
        held = frozenset()
        for record in records:
            if isinstance(record, BoughtTables):
                assert record.charge == plan.first_tables.charge
                assert tuple(m.target for m in record.measurements) == plan.first_tables.targets
                for measurement in record.measurements:
                    held |= sets_of(measurement.target)
            if isinstance(record, Hard):
                expected = plan.partitions.partition(record.query, held)
                assert record.measurement.target == (expected if expected is not None else record.query)
                if expected is not None:
                    held |= sets_of(expected)
        released.append(
            (plan.sparse, plan.partitions, plan.first_tables, session.statistics().hard_left > -1)
        )

    assert released[0] == released[1]  # and the plan is public: n and the domain are all it saw
