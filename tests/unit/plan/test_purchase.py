"""Which tables a default session opens with: levels that nest, and all cells where they are few."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
import onlineic.plan.planning as planning
from onlineic.accounting import TICK, Charge, laplace_charge, renyi_capacity
from onlineic.errors import InvalidParameterError
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.plan.purchase import Purchase
from onlineic.queries import Partition
from support.noise import Wrapped
from support.sessions import settled

SMALL = ic.Domain.of(a=["x", "y"], b=4, c=range(16))


@pytest.mark.parametrize("size", [2, 7, 256, 257, 300, 513, 1_000, 4_096])
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_levels_of_one_ordered_attribute_refine_each_other(size, delta):
    plan = session_plan(ic.Domain.of(a=range(size)), 10**6, ic.Budget(1.0, delta))
    cuts = [target.classes[0] for target in plan.first_tables.targets]

    assert np.array_equal(cuts[0], np.arange(size))
    for fine, coarse in itertools.pairwise(cuts):
        assert len(np.unique(np.stack([fine, coarse]), axis=1)[0]) == fine.max() + 1
        sizes = np.bincount(coarse[np.unique(fine, return_index=True)[1]])
        assert np.ptp(sizes) <= 1
        assert sizes.mean() == pytest.approx((size / 2) ** (1 / len(cuts)), rel=0.04)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_tables_of_a_pure_session_are_drawn_with_laplace_noise(delta):
    """A price of 2/scale in epsilon pays for no Gaussian."""
    drawn = []

    class Named(Wrapped):
        def discrete_laplace(self, scale, size):
            drawn.append("laplace")
            return super().discrete_laplace(scale, size)

        def discrete_gaussian(self, sigma, size):
            drawn.append("gaussian")
            return super().discrete_gaussian(sigma, size)

    domain = ic.Domain.of(a=12, b=20, c=9)
    data, budget = ic.PrivateData(np.full(domain.shape, 2), domain), ic.Budget(1.0, delta)
    session = ic.OnlineIC(data, budget, noise=Named(1), purchases=settled(domain, data.n, budget))
    session.answer(ic.where(a=1))
    tables = session.plan.first_tables

    assert len(tables.targets) > 3
    assert (delta == 0.0) is tables.pure
    assert [("gaussian" if delta else "laplace")] * len(tables.targets) == drawn[: len(tables.targets)]


@pytest.mark.parametrize(
    ("size", "parts"),
    [
        (1, []),
        (256, [256]),
        (257, [257, 23]),
        (338, [338, 26]),
        (339, [339, 61, 11]),
        (512, [512, 81, 13]),
        (1_000, [1_000, 126, 16]),
        (3_000, [3_000, 262, 23]),
        (4_096, [4_096, 323, 25]),
        (4_400, [4_400, 642, 94, 14]),
    ],
)
def test_short_attributes_have_one_level_and_long_ones_a_tree_with_a_wide_root(size, parts):
    bought = session_plan(ic.Domain.of(a=range(size), b=1), 10**6, ic.Budget(1.0)).first_tables

    assert parts == ([] if bought is None else [target.blocks for target in bought.targets])


@pytest.mark.parametrize(
    ("size", "delta", "laplace"),
    [
        (8, 1e-3, True),
        (256, 1e-3, True),
        (1_000, 1e-3, False),
        (1_000, 1e-6, True),
        (4_096, 1e-3, False),
        (4_096, 1e-9, True),
    ],
)
def test_levels_of_one_attribute_have_the_noise_of_less_variance(monkeypatch, size, delta, laplace):
    domain, budget = ic.Domain.of(a=range(size)), ic.Budget(1.0, delta)
    chosen = session_plan(domain, 10**6, budget, max_queries=1_000).first_tables
    monkeypatch.setattr(planning, "laplace_opens", lambda *_: not laplace)
    other = session_plan(domain, 10**6, budget, max_queries=1_000).first_tables
    chosen_deviation, other_deviation = (
        float(bought.scales[0]) * (math.sqrt(2) if bought.pure else 1) for bought in (chosen, other)
    )

    assert (laplace, not laplace) == (chosen.pure, other.pure)
    assert chosen_deviation < other_deviation


def test_levels_leave_tests_at_most_a_twentieth():
    bought = session_plan(ic.Domain.of(x=range(4_096)), 10**7, ic.Budget(1.0)).first_tables

    assert pytest.approx(0.95, abs=1e-3) == float(bought.charge.amount)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_laplace_levels_are_charged_the_divergence_of_two_moved_blocks_each(epsilon):
    domain = ic.Domain.of(a=range(512), b=1)
    plan = session_plan(domain, 10**4, ic.Budget(epsilon, 1e-12), max_queries=1_000)
    bought, charge = plan.first_tables, plan.first_tables.charge.amount * TICK
    pure = sum(2 / scale for scale in bought.scales)

    assert (True, 3, 1) == (bought.pure, len(bought.targets), len(set(bought.scales)))
    assert charge == laplace_charge(plan.sparse.order, bought.scales[0], 2 * 3) * TICK  # rounded up once
    assert 0.8 * pure < charge < pure
    assert plan.sparse.account().capacity > bought.charge.amount


@pytest.mark.parametrize("delta", [0.0, 1e-12, 1e-9, 1e-3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("n", [10**5, 10**8])
def test_one_laplace_table_of_all_cells_leaves_the_planned_hard_answers_payable(n, epsilon, delta):
    plan = session_plan(SMALL, n, ic.Budget(epsilon, delta), max_queries=1_000)
    bought, sparse = plan.first_tables, plan.sparse
    unit = TICK if delta else 1
    charge = bought.charge.amount * unit

    assert (1, SMALL.size, True) == (len(bought.targets), bought.targets[0].blocks, bought.pure)
    own = laplace_charge(sparse.order, bought.scales[0], 2) * TICK if delta else 2 / bought.scales[0]
    assert own == charge
    assert charge < Fraction(97, 100) * Fraction(epsilon) + TICK
    first = sparse.start_charge().amount if sparse.start_charge() is not None else 0
    left = sparse.account().capacity - bought.charge.amount - first
    assert plan.hard_answers <= left // sparse.price(bought.targets[0]).amount
    assert epsilon == sparse.epsilon
    if delta:  # the capacity is that of the whole budget, at the order that suits what is left of it
        assert renyi_capacity(sparse.order, epsilon, delta) == sparse.account().capacity


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_a_wish_for_hard_answers_takes_their_price_from_the_table(delta):
    few, many = (
        session_plan(SMALL, 10**7, ic.Budget(1.0, delta), hard_answers=c).first_tables.scales[0]
        for c in (5, 500)
    )

    assert few < many


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_the_first_hypothesis_is_as_near_as_the_table_of_all_cells(delta):
    counts = np.random.default_rng(1).multinomial(
        10**5, np.random.default_rng(2).dirichlet(np.full(128, 0.5))
    )
    data = ic.PrivateData(counts.reshape(2, 4, 16), SMALL)
    session = ic.OnlineIC(data, ic.Budget(1.0, delta), noise=SimulatedNoise(3))
    error = session.hypothesis.probabilities() - counts.reshape(2, 4, 16) / 10**5
    scale = session.plan.first_tables.scales[0]

    assert float(np.sqrt((error**2).mean())) < 1.3 * float(scale) * 2**0.5 / 10**5
    assert session.hypothesis.probabilities().min() > 0.0


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_ranges_of_one_attribute_err_by_little_more_than_least_squares(delta):
    """4,096 cells, 20 million records: about 60 of them; a descent of 200 evaluations erred by 1,000."""
    n = 20_000_000
    weights = np.random.default_rng(4).dirichlet(np.full(4_096, 0.3))
    counts = np.random.default_rng(5).multinomial(n, weights)
    data = ic.PrivateData(counts, ic.Domain.of(x=range(4_096)))
    session = ic.OnlineIC(data, ic.Budget(1.0, delta), noise=SimulatedNoise(6))
    ranges = np.cumsum(session.hypothesis.probabilities() * n - counts)

    assert np.sqrt(2.0) * ranges.std() < 120


def test_tables_that_cost_more_than_their_charge_are_refused_with_what_they_cost():
    domain = ic.Domain.of(a=3)
    targets, order = (Partition(domain, (0,), (np.arange(3),)),), Fraction(16)
    pure = Charge(Fraction(1, 2), "own")
    cost = Purchase(targets, (Fraction(9),), Charge(Fraction(2**50), "own", "ticks", order)).cost

    with pytest.raises(
        InvalidParameterError, match=r"1 scales, which cost 0\.66\d+, got 1/2 epsilon; charge"
    ):
        Purchase(targets, (Fraction(3),), pure, pure=True)
    with pytest.raises(InvalidParameterError, match=rf"which cost {cost}, got {cost - 1} ticks; charge what"):
        Purchase(targets, (Fraction(9),), Charge(cost - 1, "own", "ticks", order))
    assert cost == Purchase(targets, (Fraction(9),), Charge(cost, "own", "ticks", order)).charge.amount
