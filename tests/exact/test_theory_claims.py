"""Claims of `docs/theory/` that no other file checks: tables, block sums and what they cost."""

from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import TICK, Budget
from onlineic.domain import Domain
from onlineic.plan import session_plan
from onlineic.plan.purchase import settled_tables
from onlineic.queries import Measurement, PartitionRule, block_weights, derived, one_way
from onlineic.sparse import GumbelSparse
from support.cores import core_of, payable, put_to_test
from support.sessions import settled

DOMAIN = Domain.of(a=["x", "y", "z"], b=range(5), c=[False, True])


def gumbel(**changes):
    settings = {
        "n": 60,
        "epsilon": 8.0,
        "delta": 1e-3,
        "order": Fraction(3),
        "scale": Fraction(40),
        "threshold": 90,
    }
    return GumbelSparse(**(settings | changes))


def table(codes, domain=DOMAIN):
    names = domain.names
    labels = [list(kind.labels) if hasattr(kind, "labels") else range(kind.size) for _, kind in domain]
    return ic.PrivateData.from_records(
        {name: [labels[i][code] for code in codes[:, i]] for i, name in enumerate(names)}, domain
    )


def test_the_largest_gap_of_a_table_moves_by_at_most_one_count(monkeypatch):
    """Theory 1.6, through the core: neighbours, any guesses, with and without a condition."""
    seen = []
    step = GumbelSparse.step_table

    def spied(self, state, largest_gap, noise):
        seen.append(largest_gap)
        return step(self, state, 0, noise)

    monkeypatch.setattr(GumbelSparse, "step_table", spied)
    generator = np.random.default_rng(5)
    moves = set()
    for _ in range(60):
        codes = np.stack([generator.integers(0, size, 60) for size in DOMAIN.shape], axis=1)
        other = codes.copy()
        other[0] = [generator.integers(0, size) for size in DOMAIN.shape]
        asked = (
            ic.marginal("a", "b") if generator.random() < 0.5 else ic.marginal("b", where=ic.where(c=True))
        )
        bound = asked.bind(DOMAIN)
        guesses = tuple(int(guess) for guess in generator.integers(0, 12, bound.partition.blocks))
        for records in (codes, other):
            judge, _ = core_of(table(records), gumbel(grid_bits=3, scale=Fraction(320), threshold=720))
            assert payable(judge, [bound]) == [True]
            put_to_test(judge, [bound], [guesses])
        moves.add(abs(seen[-1] - seen[-2]))

    assert {0, 8} == moves  # one count is 8 units of this grid


def test_a_number_released_in_a_partition_session_is_paid_as_such():
    """Theory 4.1: sigma is rounded up least on the finest grid, where a number can cost more than a table."""
    sparse = gumbel(
        grid_bits=10, scale=Fraction(20 * 2**10), threshold=50 * 2**10, ratio=Fraction(1, 40), epsilon=15.0
    )
    data = table(np.zeros((60, 3), int))
    judge, ledger = core_of(data, sparse, PartitionRule(most_blocks=1))
    fine = ic.where(b=ic.weights([0.0, 0.1, 0.2, 0.3, 1.0])).bind(DOMAIN, 10)
    number, partition = sparse.price(fine).amount, sparse.price(one_way(DOMAIN, 0)).amount

    assert PartitionRule(most_blocks=1).partition(fine) is None
    assert number > 1.2 * partition
    assert payable(judge, [fine]) == [True]
    assert ledger.reserved.amount >= number


@pytest.mark.parametrize("sizes", [(3, 5, 2), (40, 3, 7, 2)])
def test_first_tables_are_charged_for_two_moved_blocks_each_and_fit_their_share(sizes):
    """Theory 4.2: the charge is the sum of order * 2 / (2 sigma^2), no less, and within the share."""
    domain, budget = Domain.of({f"a{i}": size for i, size in enumerate(sizes)}), Budget(1.0, 1e-6)
    rule = settled(domain, 1000, budget)
    plan, bought = session_plan(domain, 1000, budget, purchases=rule), rule.first
    order = plan.sparse.order
    exact = sum(order * 2 / (2 * Fraction(sigma) ** 2) for sigma in bought.scales)

    assert exact <= bought.charge.amount * TICK <= exact + len(bought.scales) * TICK
    assert bought.charge.amount <= rule.share * plan.sparse.capacity


@pytest.mark.parametrize("order", [Fraction(5, 4), Fraction(3), Fraction(969, 32), Fraction(217)])
def test_a_laplace_table_in_a_renyi_filter_is_charged_its_own_divergence(order):
    """Theory 4.2: two moved blocks, their moments by enumeration, below its epsilon at every order."""
    sparse = gumbel(n=1000, order=order, scale=Fraction(4000), threshold=9000)
    bought = settled_tables(sparse, DOMAIN, Fraction(7, 10), laplace=True, given_order=False)
    scale, power = float(bought.scales[0]), float(order)
    z = np.arange(-4000, 4001)
    log_mass = -np.abs(z) / scale + np.log(np.tanh(0.5 / scale))
    log_moved = -np.abs(z - 1) / scale + np.log(np.tanh(0.5 / scale))
    divergence = np.log(np.exp(power * log_mass + (1 - power) * log_moved).sum()) / (power - 1)
    charge = float(bought.charge.amount * TICK)

    assert (1, DOMAIN.size, True) == (len(bought.targets), bought.targets[0].blocks, bought.pure)
    assert Fraction(69, 100) * 8 <= bought.charge.amount * TICK <= Fraction(7, 10) * 8
    assert charge < 2 / scale
    assert 2 * divergence == pytest.approx(charge, rel=1e-9)


@pytest.mark.parametrize("sigma", [1, 2, 7])
def test_the_discrete_gaussian_is_sub_gaussian_with_its_own_scale(sigma):
    """Theory 3.4 (i), with equality where t sigma^2 is an integer."""
    z = np.arange(-60 * sigma, 60 * sigma + 1)
    mass = np.exp(-(z**2) / (2.0 * sigma**2))
    mass /= mass.sum()
    shifts = np.linspace(-8 * sigma, 8 * sigma, 321)  # t sigma^2
    ratios = [(np.exp(c * z / sigma**2 - c * c / (2.0 * sigma**2)) * mass).sum() for c in shifts]

    assert max(ratios) <= 1 + 1e-12
    assert ratios[160] == pytest.approx(1.0)
    assert ratios[0] == pytest.approx(1.0)
    assert sigma > 1 or min(ratios) < 1 - 1e-8


def test_a_block_sum_is_the_query_and_errs_by_centred_weights():
    """Theory 6.2: exact blocks give the query exactly, noise enters by w - mean(w)."""
    generator = np.random.default_rng(8)
    domain = Domain.of(a=["x", "y", "z"], b=range(40), c=[False, True])
    codes = np.stack([generator.integers(0, size, 500) for size in domain.shape], axis=1)
    data = table(codes, domain)
    for asked in (
        ic.where(b=ic.between(3, 21), c=True),
        ~ic.where(a="y", b=ic.at_least(11)),
        ic.where(a=ic.one_of("x", "z")),
        ic.where(b=ic.weights(np.repeat([0.0, 0.25, 1.0, 0.5], 10))),
    ):
        query = asked.bind(domain, 8)
        target = PartitionRule().partition(query)
        exact = data.exact_counts(target) / data.n
        noise = generator.normal(0, 0.05, target.blocks)
        weights = block_weights(query, target)
        value, weights = derived(query, Measurement(target, exact, 0.05))
        norm = float(np.linalg.norm(weights))
        noisy, _ = derived(query, Measurement(target, exact + noise, 0.05))

        assert value == pytest.approx(data.exact_counts(query) / (data.n << query.grid_bits), abs=1e-12)
        assert noisy - value == pytest.approx((weights - weights.mean()) @ noise, abs=1e-12)
        assert norm == pytest.approx(np.linalg.norm(weights - weights.mean()))
