"""Bounds from the noise of first tables against analysts who pick the worst query, or the worst moment.

The analysts below know the truth: they ask for the query of the family whose estimate errs most, or for the
one whose test is about to fail. Each bound has to hold with its share of beta whatever they pick; without the
union over the family, with all of beta for every way to fail, or for an estimate pooled over tables that were
bought one by one until it errs, they win.
"""

import itertools
import math
from functools import cache

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.known_noise import Estimates, TableDesign
from onlineic.known_noise.cells import CellNoise, log_products
from onlineic.noise import SimulatedNoise
from onlineic.noise.laws import DiscreteGaussian, DiscreteLaplace
from onlineic.plan import KNOWN, Plan, session_plan
from onlineic.queries import Partition
from onlineic.queries.query import canonical
from support.laws import too_many
from support.sessions import Still, begun, plan_once, settled

pytestmark = pytest.mark.statistical
LEVEL, BETA = 1e-9, 0.3  # large, so that some hundred sessions see many failures
SESSIONS = 320

DOMAIN = ic.Domain.of(a=range(12), b=["x", "y", "z"], c=range(4))
TARGETS = [
    *[Partition(DOMAIN, (axis,), (np.arange(size),)) for axis, size in enumerate(DOMAIN.shape)],
    Partition(DOMAIN, (0, 1), (np.arange(12) // 2, np.arange(3))),
    Partition(DOMAIN, (1, 2), (np.arange(3), np.arange(4))),
]
SCALES = [20, 30, 25, 15, 18]
N = 5_000
COUNTS = np.random.default_rng(1).multinomial(
    N, np.random.default_rng(2).dirichlet(np.full(DOMAIN.size, 0.2))
)
CELLS = COUNTS.reshape(DOMAIN.shape)


@cache
def family():
    """Every query of the family, with its exact fraction."""
    queries = []
    ranges = {name: _ranges(size) for name, size in zip(DOMAIN.names, DOMAIN.shape, strict=True)}
    even = [(low, high) for low, high in ranges["a"] if low % 2 == 0 and high % 2 == 0]
    for low, high in ranges["a"]:
        queries.append({"a": ic.between(low, high - 1)})
    for low, high in ranges["c"]:
        queries.append({"c": ic.between(low, high - 1)})
    for label in "xyz":
        queries.append({"b": label})
        queries += [{"a": ic.between(low, high - 1), "b": label} for low, high in even]
        queries += [{"b": label, "c": ic.between(low, high - 1)} for low, high in ranges["c"]]
    bound = [ic.where(query).bind(DOMAIN) for query in queries]
    return bound, [float((query.weights() * CELLS).sum() / N) for query in bound]


def _ranges(size):
    return [(low, high) for low in range(size) for high in range(low + 1, size + 1) if high - low < size]


def released(generator, pure):
    noise = SimulatedNoise(int(generator.integers(2**63)))
    values = []
    for target, scale in zip(TARGETS, SCALES, strict=True):
        counts = target.measure(CELLS.sum(axis=_others(target)).astype(float))
        law = DiscreteLaplace(scale) if pure else DiscreteGaussian(scale)
        values.append((counts + law.draw(noise, target.blocks)) / N)
    return values


def _others(target):
    return tuple(axis for axis in range(len(DOMAIN.shape)) if axis not in target.axes)


class Separate(TableDesign):
    """The planted slip: every query's bound as if it were the only one."""

    def nats(self, key, beta):
        return math.log(2.0 / beta)


@pytest.mark.parametrize("pure", [False, True])
def test_an_analyst_who_picks_the_worst_query_of_the_family_finds_it_outside_with_probability_beta(pure):
    """Without the union he nearly always does."""
    queries, truths = family()
    generator = np.random.default_rng(3)
    designs = [TableDesign(TARGETS, SCALES, pure), Separate(TARGETS, SCALES, pure)]
    outside = [0, 0]
    for _ in range(SESSIONS // 4):
        values = released(generator, pure)
        for at, design in enumerate(designs):
            estimates = Estimates(design, values, N, BETA)
            for query, truth in zip(queries, truths, strict=True):
                found = estimates.bracket(query)
                if found is not None and not found[0] - 1e-12 <= truth <= found[1] + 1e-12:
                    outside[at] += 1
                    break

    assert designs[0].family.size == len(queries)
    assert too_many(outside[0], SESSIONS // 4, BETA) > LEVEL
    assert too_many(outside[1], SESSIONS // 4, BETA) < LEVEL


# -- sets of labels, and all weights ------------------------------------------------------------------------


class SeparateSets(TableDesign):
    """The planted slip: every product of sets as if it were the only one."""

    def set_nats(self, key, beta):
        return None if super().set_nats(key, beta) is None else math.log(2.0 / beta)


def worst_product(values, axes, classes):
    """Return the product of sets of blocks of two attributes over which the noise sums to most."""
    masks = [
        np.array(list(itertools.product([False, True], repeat=int(labels[-1]) + 1)))[1:] for labels in classes
    ]
    errors = np.einsum("ai,bj,ij->ab", *masks, values)
    at = np.unravel_index(np.abs(errors).argmax(), errors.shape)
    return {
        (axis,): mask[place][labels].astype(float)
        for axis, mask, place, labels in zip(axes, masks, at, classes, strict=True)
    }


LABELS = ic.Domain.of(a=[*"stuvwxyz"], b=[*"stuvwxyz"], c=["no", "yes"])
PAIR = Partition(LABELS, (0, 1), (np.arange(8), np.arange(8)))


@pytest.mark.parametrize("pure", [False, True])
def test_an_analyst_who_picks_the_worst_product_of_sets_finds_it_outside_with_probability_beta(pure):
    """He knows the noise of a table: without the union over all products he nearly always wins."""
    noise, outside, n = SimulatedNoise(8), [0, 0], 10_000
    law = DiscreteLaplace(20) if pure else DiscreteGaussian(20)
    designs = [kind([PAIR], [20.0], pure) for kind in (TableDesign, SeparateSets)]
    for _ in range(SESSIONS // 4):
        z = law.draw(noise, 64).reshape(8, 8)
        weights = worst_product(z - z.mean(), (0, 1), PAIR.classes)
        query, truth = canonical(LABELS, False, weights, 20), float(np.outer(*weights.values()).mean())
        for at, design in enumerate(designs):  # all of beta for this family alone
            estimates = Estimates(design, [(1 / 64 + z / n).ravel()], n, BETA / design.shares[1])
            low, high = estimates.bracket(query)
            outside[at] += not low - 1e-12 <= truth <= high + 1e-12

    assert too_many(outside[0], SESSIONS // 4, BETA) > LEVEL
    assert too_many(outside[1], SESSIONS // 4, BETA) < LEVEL


WHOLE = Partition(DOMAIN, (0, 1, 2), tuple(map(np.arange, DOMAIN.shape)))


def worst_of_all(noise):
    """Return weights by the sign of the noise, which no others exceed, and by the largest of each sign."""
    order = np.argsort(noise)
    for count in (4, 20, int((noise < 0).sum())):
        for chosen in (order[:count], order[::-1][:count], order[-(len(order) - count) :]):
            weights = np.zeros(len(noise))
            weights[chosen] = 1.0
            yield weights


@pytest.mark.parametrize("known", [True, False], ids=["as it is", "one query's share"])
def test_an_analyst_who_takes_the_sign_of_the_noise_finds_his_query_outside_with_probability_beta(known):
    """The planted slip bounds each query as if it were the only one."""
    noise, outside, scale, sessions = SimulatedNoise(9), 0, 4, SESSIONS
    law, closest = DiscreteLaplace(scale), math.inf
    domain, sets, every = DOMAIN, 1e-9, BETA
    if not known:  # as sets of codes of one attribute, of which so large a share leaves each all of beta
        domain = ic.Domain.of(cell=range(DOMAIN.size))
        sets, every = BETA * math.exp(log_products(domain.shape)), 1e-9
    for _ in range(sessions):
        z = law.draw(noise, DOMAIN.size)
        held = CellNoise(domain, CELLS.ravel() / N + z / N, float(scale), N, sets, every)
        lost = False
        for weights in worst_of_all(z):
            query = ic.dense(weights.reshape(domain.shape)).bind(domain)
            low, high = held.bracket(query)
            truth = float(weights @ CELLS.ravel()) / N
            lost |= not low <= truth <= high
            closest = min(closest, truth - low, high - truth)
        outside += lost

    assert bool(too_many(outside, sessions, BETA) > LEVEL) == known
    assert not known or closest < 0.06 * DOMAIN.size * scale / N  # the best of them come close


def test_the_families_of_a_table_of_all_cells_share_beta_once():
    """The worst conjunction, product of sets, set of cells of a marginal and weights, all together."""
    noise, outside, scale, beta = SimulatedNoise(10), 0, 4, 0.9
    design, law = TableDesign([WHOLE], [float(scale)], pure=True), DiscreteLaplace(scale)
    queries, _ = family()
    for _ in range(SESSIONS // 4):
        z = law.draw(noise, DOMAIN.size)
        cells = CELLS.ravel() + z
        estimates = Estimates(design, [cells / N], N, beta)
        small = z.reshape(DOMAIN.shape).sum(axis=0)
        asked = [ic.dense(weights.reshape(DOMAIN.shape)).bind(DOMAIN) for weights in worst_of_all(z)]
        asked += [
            ic.dense(np.broadcast_to(sign * small > 0, DOMAIN.shape).astype(float)).bind(DOMAIN)
            for sign in (1, -1)
        ]
        asked.append(canonical(DOMAIN, False, worst_product(small, (1, 2), (np.arange(3), np.arange(4))), 20))
        wrong = any(_escapes(estimates.bracket(query), query) for query in [*asked, *queries])
        outside += wrong

    assert too_many(outside, SESSIONS // 4, beta) > LEVEL


def _escapes(found, query):
    truth = float((query.weights() * CELLS).sum()) / 2**query.grid_bits / N
    return found is None or not found[0] - 1e-12 <= truth <= found[1] + 1e-12


# -- all ways to fail at once -------------------------------------------------------------------------------

TWO = ic.Domain.of(a=2, b=8)
LARGE = 200_000
BUDGET = ic.Budget(0.1, 1e-6)
ABOUT_TO_FAIL = ic.where(a=1).bind(TWO)


@cache
def pairs():
    """Every query of the family of a table of all cells, with its weights."""
    found = []
    for a, b in itertools.product([None, 0, 1], [None, *_ranges(8)]):
        held = {"a": a} if a is not None else {}
        held |= {"b": ic.between(b[0], b[1] - 1)} if b else {}
        found += [ic.where(held).bind(TWO)] if held else []
    return [(query, query.weights()) for query in found]


@attrs.frozen
class Arena:
    """Sessions with the plan of a default one, but a belief that stays uniform: gaps are as we like."""

    plan: Plan
    counts: np.ndarray
    design: TableDesign  # of all sessions: what it says of a query is worked out once

    def failed(self, noise):
        """Whether an answer leaves its bound: to a query whose estimate errs, else to one at the gap."""
        data = PrivateData(self.counts, TWO)
        session = begun(ic.OnlineIC(data, BUDGET, beta=BETA, noise=noise, max_queries=100))
        query = self._worst(session) or ABOUT_TO_FAIL
        answer = session.answer(query)
        return abs(answer.value - float((query.weights() * self.counts).sum() / LARGE)) > answer.error_bound

    def _worst(self, session):
        """Return a query of the family that lies outside of its bracket, or None."""
        values = [one.values for one in session.transcript[1].measurements]
        estimates = Estimates(self.design, values, LARGE, session.plan.known * BETA)
        for query, weights in pairs():
            found, truth = estimates.bracket(query), float((weights * self.counts).sum() / LARGE)
            if found is not None and not found[0] - 1e-12 <= truth <= found[1] + 1e-12:
                return query
        return None


def arena(monkeypatch, easy_or_hard, known, left):
    """Return sessions with these shares of beta: easy and hard ones of what is left, and the tables' own."""
    monkeypatch.setattr("onlineic.plan.plan.KNOWN", 1.0 - left)
    monkeypatch.setattr(Plan, "known", property(lambda plan: known))
    monkeypatch.setattr(Plan, "tested_beta", property(lambda plan: left * plan.beta))
    monkeypatch.setattr("onlineic.session.bounds.EASY_OR_HARD", easy_or_hard)
    plan = session_plan(TWO, LARGE, BUDGET, beta=BETA, max_queries=100, purchases=settled(TWO, LARGE, BUDGET))
    plan = attrs.evolve(plan, update=Still())
    plan_once(monkeypatch, plan)
    gap = math.floor(plan.sparse.easy_radius(easy_or_hard * left * BETA) * LARGE) + 1
    share = -(-gap // 8)
    counts = np.full((2, 8), LARGE // 16, np.int64) + np.array([[share], [-share]])
    tables = plan.first_tables
    return Arena(plan, counts, TableDesign(tables.targets, [*map(float, tables.scales)], tables.pure))


def test_easy_hard_and_known_share_beta_once(monkeypatch):
    """The planted slip gives all of beta to each of the three, and states the least of the bounds.

    Hard answers are as measured here: from an estimate of less noise they leave their bounds more rarely.
    """
    monkeypatch.setattr(Estimates, "point", lambda self, query: None)
    noise, outside = SimulatedNoise(4), []
    for shares in ((0.5, KNOWN, 1.0 - KNOWN), (1.0, 1.0, 1.0)):
        with monkeypatch.context() as patched:
            place = arena(patched, *shares)
            outside.append(sum(place.failed(noise) for _ in range(SESSIONS)))

    assert 0.3 * BETA * SESSIONS < outside[0]
    assert too_many(outside[0], SESSIONS, BETA) > LEVEL
    assert too_many(outside[1], SESSIONS, BETA) < LEVEL


# -- tables that are bought one by one ----------------------------------------------------------------------


def test_an_estimate_pooled_over_tables_that_are_bought_until_it_errs_is_outside_far_too_often():
    """Each is of half the noise, so that the pooled error is as good as new; the first alone has its law."""
    domain, n = ic.Domain.of(x=2), 10**6
    query, truth = ic.where(x=1).bind(domain), 0.3
    target = Partition(domain, (0,), (np.arange(2),))
    spreads = [4_000.0 / 2.0**step for step in range(30)]
    generator, pooled, alone = np.random.default_rng(6), 0, 0
    designs = [TableDesign([target] * count, spreads[:count], pure=False) for count in range(1, 31)]
    for _ in range(SESSIONS):
        values = [np.array([1 - truth, truth]) + generator.normal(size=2) * spread / n for spread in spreads]
        missed = []
        for count, design in enumerate(designs, 1):
            low, high = Estimates(design, values[:count], n, BETA).bracket(query)
            missed.append(not low <= truth <= high)
        pooled += any(missed)
        alone += missed[0]

    assert too_many(alone, SESSIONS, BETA) > LEVEL
    assert too_many(pooled, SESSIONS, BETA) < LEVEL
