"""What all purchases of a node say together, and how far it may be off whatever made them (theory 13.6)."""

import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.noise import SimulatedNoise
from onlineic.periods import BlockPurchases, Known, chosen_radius, pooled
from onlineic.queries import Partition
from onlineic.queries.partitions import Measurement

DOMAIN, N = ic.Domain.of(a=4, b=3), 10_000
CODES = Partition(DOMAIN, (0,), (np.arange(4),))
CELLS = Partition(DOMAIN, (0, 1), (np.arange(4), np.arange(3)))
QUERY = ic.where(a=1).bind(DOMAIN)
BETA = 0.05


def released(target, share, sigma):
    return Measurement(target, np.full(target.blocks, share), sigma / N)


def test_each_purchase_has_the_weight_of_its_own_precision():
    releases = ((released(CODES, 0.2, 20.0),), (released(CODES, 0.3, 40.0), released(CELLS, 1 / 12, 1e6)))
    alone = [BlockPurchases(N, (one,), (False,)).known(QUERY) for one in releases]
    both = BlockPurchases(N, releases, (False, False)).known(QUERY)
    weights = [1.0 / one.error**2 for one in alone]

    assert both.value == pytest.approx(np.average([one.value for one in alone], weights=weights))
    assert both.error == pytest.approx(1.0 / math.sqrt(sum(weights)))
    assert both.gaussian
    assert not BlockPurchases(N, releases, (False, True)).known(QUERY).gaussian
    assert (
        BlockPurchases(N, ((released(CODES, 0.2, 20.0),),), (False,)).known(ic.where(b=1).bind(DOMAIN))
        is None
    )


def test_a_table_that_was_bought_again_is_pooled_as_one():
    one = BlockPurchases(N, ((released(CODES, 0.2, 10.0),), (released(CODES, 0.4, 20.0),)), (False, False))
    other = BlockPurchases(3 * N, ((released(CODES, 0.1, 30.0), released(CELLS, 0.5, 9.0)),), (False,))
    (table,) = pooled([one, other])

    assert table.target == CODES
    assert table.values == pytest.approx(np.full(4, (0.8 * 0.2 + 0.2 * 0.4) / 4 + 0.1 * 3 / 4))
    assert table.scale == pytest.approx(math.hypot(10.0 / math.sqrt(1.25) / N / 4, 30.0 / N * 3 / 4))


def test_a_table_that_was_bought_by_itself_counts_and_a_number_does_not():
    sizes = {name: range(40) for name in "abcdefg"}  # so many that nothing is settled before
    domain = ic.Domain.of(sizes)
    rows = np.random.default_rng(2).integers(0, 40, (7, 20_000))
    data = ic.PrivateData.from_records(dict(zip(sizes, rows, strict=True)), domain)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), noise=SimulatedNoise(1))
    session.answer(ic.where(a=ic.below(20)))

    assert BlockPurchases.of(session.n, session.transcript, session.plan) is None
    session.answer(ic.marginal("b"))
    (table,) = BlockPurchases.of(session.n, session.transcript, session.plan).tables
    assert table.target.axes == (1,)


def outside(radius, runs=20_000, steps=60):
    """Share of runs in which an analyst who goes on buying finds a pooled estimate of two nodes outside.

    Each purchase has as much precision as all before it; the two nodes buy in turn, the first one from noise
    of a thousand records on.
    """
    rng = np.random.default_rng(3)
    first, precisions = [1e-6, 1e-5], np.zeros(2)
    sums = np.zeros((2, runs))
    found = np.zeros(runs, bool)
    for step in range(steps):
        node = step % 2
        more = precisions[node] or first[node]
        sums[node] += math.sqrt(more) * rng.standard_normal(runs)  # of deviation one over its root, weighted
        precisions[node] += more
        bought = precisions[precisions > 0.0]
        errors = np.sum(sums[: len(bought)] / bought[:, None], axis=0) / len(bought)
        found |= np.abs(errors) > radius(1.0 / np.sqrt(bought))
    return found.mean()


def chosen(deviations):
    shares = [1.0 / len(deviations)] * len(deviations)
    known = [Known(0.0, deviation, True) for deviation in deviations]
    return chosen_radius(shares, known, [1] * len(known), -math.log(BETA))


def test_an_analyst_who_buys_until_a_pooled_estimate_errs_is_outside_no_oftener_than_beta():
    assert outside(chosen) <= BETA


def test_the_radius_of_settled_purchases_breaks_there():
    def settled(deviations):
        return np.linalg.norm(deviations) / len(deviations) * math.sqrt(2.0 * math.log(2.0 / BETA))

    assert outside(settled) > 1.3 * BETA


@pytest.mark.parametrize("deviation", [1.0, 7.0, 30.0, 200.0, 3_000.0])
@pytest.mark.parametrize("nodes", [2, 4, 12, 36])
def test_the_radius_is_near_that_of_purchases_settled_beforehand(deviation, nodes):
    """Of four designs a node, for a conjunction over a year that is picked among all."""
    nats = math.log(40.0) + math.log(12**2 * 13) + math.log(7) + math.log(210 * 21 * 15)
    known = [Known(0.0, deviation / N, True)] * nodes
    radius = chosen_radius([1.0 / nodes] * nodes, known, [N] * nodes, nats)
    before = (
        deviation / N / math.sqrt(nodes) * math.sqrt(2.0 * (nats + math.log(2.0) + nodes * math.log(4.0)))
    )

    assert 0.9 * before < radius < 1.3 * before
