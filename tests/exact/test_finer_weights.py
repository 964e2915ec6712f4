"""Weights on a finer grid than the noise: counts are rounded down to it, and what they move by is paid."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlineic as ic
from onlineic.accounting import Neighbours, gaussian_charge, gumbel_charge
from onlineic.plan import EASY_OR_HARD, session_plan
from onlineic.queries import canonical
from onlineic.sparse import ExponentialSparse, GumbelSparse, Hit, LaplaceSparse, UnconditionalNumbers
from support.noise import Silent
from support.sessions import Still

N = 200_000
DOMAIN = ic.Domain.of(a=4, b=["x", "y"])
BUDGET = ic.Budget(1.0, 1e-9)
COUNTS = np.array([[30_011, 20_007], [25_013, 24_977], [26_001, 23_999], [25_123, 24_869]])
WEIGHTS = [
    [0.0, 1 / 3, 0.7, 1.0],
    [0.0, 1e-4, 2e-4, 0.0],
    [1 / 3, 0.3334, 1 / 3, 0.33341],
    [0.0, 0.011, 0.0, 0.005],
]
QUERIES = [ic.where(a=ic.weights(one)) for one in WEIGHTS]
SHAPE = {"n": N, "hard_answers": 40, "max_queries": 100, "grid_bits": 6}
SPARSE = {
    "gumbel": GumbelSparse.calibrated(BUDGET, **SHAPE),
    "free gap": ExponentialSparse.calibrated(ic.Budget(1.0), **SHAPE),
    "fresh": ExponentialSparse.calibrated(ic.Budget(1.0), **SHAPE, fresh=True),
    "laplace": LaplaceSparse.calibrated(ic.Budget(1.0), **SHAPE),
}
OPENED = {
    label: {"sparse": sparse, "release": "answer", "update": Still()} for label, sparse in SPARSE.items()
}
OPENED |= {"tables": {}, "few": {"max_queries": 30}}


def opened(label, counts, **options):
    budget = BUDGET if label in ("gumbel", "tables", "few") else ic.Budget(1.0)
    return ic.OnlineIC(ic.PrivateData(counts, DOMAIN), budget, noise=Silent(), **OPENED[label], **options)


@given(st.integers(-(2**52), 2**52), st.integers(0, 2**40), st.integers(0, 20), st.integers(0, 20), st.data())
def test_a_count_that_is_rounded_down_moves_by_no_more_steps_than_are_paid(count, most, bits, grid, data):
    other = count + data.draw(st.integers(-most, most))
    domain = ic.Domain.of(x=2)
    sparse = GumbelSparse(8, 1.0, 1e-6, Fraction(2), Fraction(2**24), 1, grid)
    query = canonical(domain, False, {(0,): np.array([1.0, 0.5**bits])}, max(bits, 1))
    step = Fraction(1, 1 << max(0, query.grid_bits - sparse.bits_of(query)))

    assert sparse.moved_by(query) >= query.sensitivity * step
    assert abs((count * step) // 1 - (other * step) // 1) <= -(-most * step // 1)


class HalfASecondRow(Neighbours):
    """Two rows of a person are replaced, of which the second counts for half."""

    rows = 2

    def test(self, lowest, highest):
        return (3 * (highest - lowest) + 1) // 2

    number = test

    def table_l1(self, unit=1):
        return 3 * unit

    def table_squared(self, unit=1):
        return 5 * unit**2

    def largest_gap(self, unit=1):
        return 2 * unit


def test_what_a_relation_of_one_s_own_moves_is_rounded_up_to_its_rows():
    near, domain = HalfASecondRow(), ic.Domain.of(x=2)
    sparse = GumbelSparse(8, 1.0, 1e-6, Fraction(2), Fraction(2**24), 1, 4, neighbours=near)
    numbers = UnconditionalNumbers(8, 1.0, 0.0, Fraction(1000), grid_bits=4, neighbours=near)
    for weight in (1, 2, 3, 5):
        query = canonical(domain, False, {(0,): np.array([0.0, weight / 16])}, 4)
        moved = Fraction(near.test(query.lowest, query.highest), 1 << query.grid_bits)
        assert moved * 2**4 <= sparse.tested_by(query)
        assert moved * 2 ** sparse.bits_of(query) <= sparse.moved_by(query)
        assert moved * 2**4 <= numbers.price(query).amount * 1000


def seen(monkeypatch, label, counts, order):
    """The gaps that are tested and what they are said to move by, and the numbers that are released."""
    session = opened(label, counts)
    told, kind = [], type(session.plan.sparse)
    one, many = kind.step, kind.step_many

    def step(self, state, gap, sensitivity, noise):
        told.append((int(gap), int(sensitivity)))
        return one(self, state, gap, sensitivity, noise)

    def step_many(self, state, gaps, sensitivities, noise):
        told.extend(zip(gaps.tolist(), sensitivities.tolist(), strict=True))
        return many(self, state, gaps, sensitivities, noise)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "step", step)
        patched.setattr(kind, "step_many", step_many)
        if order == "together":
            session.answer_many(QUERIES)
        else:
            for query in QUERIES:
                session.answer(query)
    return session, told


@pytest.mark.parametrize("order", ["singly", "together"])
@pytest.mark.parametrize("label", SPARSE)
def test_gaps_move_by_no_more_than_the_mechanism_is_told(monkeypatch, label, order):
    """Over all ways to replace one record, of tables whose counts end anywhere on the grid."""
    session, told = seen(monkeypatch, label, COUNTS, order)

    assert session.plan.weight_bits > session.plan.sparse.grid_bits
    for source in range(4):
        for target in range(4):
            moved = COUNTS.copy()
            moved[source, 0] -= 1
            moved[target, 0] += 1
            _, others = seen(monkeypatch, label, moved, order)
            for (gap, claimed), (other, _) in zip(told, others, strict=True):  # of one hypothesis
                assert abs(gap - other) <= claimed <= 1 << session.plan.sparse.grid_bits


@pytest.mark.parametrize("label", ["gumbel", "fresh", "numbers"])
def test_the_price_of_a_number_pays_for_its_steps_on_the_grid_of_the_noise(label):
    sparse = SPARSE.get(label) or UnconditionalNumbers.calibrated(BUDGET, n=N, answers=30, grid_bits=11)
    unit = sparse.n << sparse.grid_bits
    for written in QUERIES:
        query = written.bind(DOMAIN, 18)
        coarse = query.grid_bits - sparse.grid_bits
        tested = -(-query.sensitivity >> coarse)
        first, other = 12_345_678, 12_345_678 + query.sensitivity
        hit = Hit(side=1, excess=0)
        values = [sparse.measure(hit, query, 0, count, Silent()).values[0] for count in (first, other)]
        steps = round((values[1] - values[0]) * unit)
        price, scale = sparse.price(query).amount, round(sparse.noise_of(query) * unit)

        assert abs(values[0] * unit - first / 2**coarse) <= 1.0
        assert steps <= tested
        if isinstance(sparse, GumbelSparse):
            assert price >= gumbel_charge(sparse.order, tested, sparse.scale, Fraction(scale), tested**2)
        elif isinstance(sparse, UnconditionalNumbers):
            assert price >= gaussian_charge(sparse.order, Fraction(scale), tested**2)
        elif isinstance(sparse, ExponentialSparse):
            number = Fraction(scale * 1000, 1415)  # a standard deviation is sqrt 2 scales
            assert (
                price >= ((1 << sparse.grid_bits) + tested) / sparse.query_scale + tested / number * 99 / 100
            )


@pytest.mark.parametrize("label", OPENED)
def test_answers_with_fine_weights_hold_the_truth_within_their_bounds(label):
    session = opened(label, COUNTS)
    for written, query in zip(WEIGHTS, QUERIES, strict=True):
        answer, truth = session.answer(query), float(COUNTS.sum(axis=1) @ np.array(written)) / N

        assert abs(answer.value - truth) <= answer.error_bound
        assert query.bind(DOMAIN, session.plan.weight_bits).rounding <= 0.5 / N


@pytest.mark.parametrize("label", SPARSE)
def test_bounds_count_the_step_by_which_counts_are_rounded_down(label):
    session = opened(label, COUNTS)
    plan = session.plan
    for written in QUERIES:
        query, answer = written.bind(DOMAIN, plan.weight_bits), session.answer(written)
        beta = EASY_OR_HARD * plan.beta
        hard = plan.sparse.hard_radius(query, beta, tests=plan.max_queries)
        radius = hard if answer.hard else plan.sparse.easy_radius(beta)

        assert plan.steps == 1.0 / (N << plan.sparse.grid_bits)
        assert answer.error_bound == pytest.approx(radius + plan.steps + query.rounding, rel=1e-12)


@pytest.mark.parametrize("size", [10**6, 10**8, 10**9])
def test_bounds_of_means_go_on_shrinking_with_the_number_of_records(size):
    ages = np.full(100, size // 100)
    data = ic.PrivateData(
        np.stack([ages // 2, ages - ages // 2], axis=1), ic.Domain.of(age=100, sex=["F", "M"])
    )
    found = ic.OnlineIC(data, BUDGET, noise=Silent()).mean("age")

    assert abs(found.value - 49.5) <= found.error_bound < 50.0 * (1e-6 + 400.0 / size)


def test_few_records_keep_the_grid_that_suits_their_noise():
    plan = session_plan(DOMAIN, 900, BUDGET)

    assert plan.weight_bits == plan.sparse.grid_bits >= 10
    assert plan.steps == 0.0
