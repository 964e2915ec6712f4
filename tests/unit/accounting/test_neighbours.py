"""Every scale, price and radius is that of the neighbours which a budget or a mechanism names."""

import math
import re
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import between, weights, where
from onlineic.accounting import (
    REPLACE_ONE,
    TICK,
    Neighbours,
    gaussian_charge,
    gaussian_mu,
    gumbel_charge,
)
from onlineic.baselines import NoisyTables, PerQueryNoise
from onlineic.errors import InvalidParameterError
from onlineic.ledger import BoughtTables, Hard, MemoryLedger
from onlineic.offline import iterative_construction, mwem, private_cdf
from onlineic.offline.construction import Workload
from onlineic.offline.nets import Scoring
from onlineic.offline.rounds import paid_rounds
from onlineic.plan import forecast, session_plan
from onlineic.plan.purchase import check_bought
from onlineic.queries import Queries, dense, one_way
from onlineic.sparse import ExponentialSparse, GumbelSparse, LaplaceSparse, UnconditionalNumbers
from onlineic.testing import ScriptedNoise
from support.neighbours import Added, Planted
from support.noise import Silent
from support.sessions import Still, settled

TEST, NUMBER, L1, SQUARED = 3, 5, 7, 11  # of `Planted`
PLANTED, ADDED = Planted(), Added()
DOMAIN = ic.Domain.of(a=8, b=["x", "y"])
N, BITS, UNIT = 20_000, 4, 16
HALF = where(a=weights([0.25, 0.5, 0.5, 0.75, 0.25, 0.5, 0.75, 0.5])).bind(DOMAIN)  # 1 to 3 of 4
TABLE = one_way(DOMAIN, 0)
SHAPE = {"n": N, "hard_answers": 20, "max_queries": 500, "grid_bits": BITS}
APPROXIMATE, PURE = ic.Budget(1.0, 1e-9), ic.Budget(1.0)


def of(budget, neighbours=PLANTED):
    return attrs.evolve(budget, neighbours=neighbours)


def data():
    return ic.PrivateData(np.arange(16).reshape(8, 2) * 150 + 125, DOMAIN)


# The relation itself


def test_one_replaced_record_moves_a_count_by_the_range_of_its_weights_and_two_blocks():
    lowest, highest = np.array([0, 1, 2]), np.array([1, 4, 2])

    assert 3 == REPLACE_ONE.test(1, 4) == REPLACE_ONE.number(1, 4)
    assert [1, 3, 0] == REPLACE_ONE.test(lowest, highest).tolist()
    assert (2, 8) == (REPLACE_ONE.table_l1(), REPLACE_ONE.table_l1(4))
    assert (2, 32) == (REPLACE_ONE.table_squared(), REPLACE_ONE.table_squared(4))
    assert (1, 4, 4) == (REPLACE_ONE.largest_gap(), REPLACE_ONE.largest_gap(4), REPLACE_ONE.any_gap(4))
    assert REPLACE_ONE == ic.Budget(1.0).neighbours == type(REPLACE_ONE)()


def test_a_budget_is_refused_that_names_no_neighbours():
    with pytest.raises(InvalidParameterError, match=r"neighbours must be a Neighbours, got a str; leave it"):
        ic.Budget(1.0, neighbours="replace-one")
    with pytest.raises(TypeError):
        Neighbours()


@pytest.mark.parametrize(
    ("asked", "lowest", "highest"),
    [
        (where(a=between(1, 3)), 0, 1),
        (~where(a=between(1, 3), b="x"), 0, 1),
        (where(a=weights([0.25, 0.5, 0.5, 0.75] * 2)), 1, 3),
        (~where(a=weights([0.25, 0.5, 0.5, 0.5] * 2)), 2, 3),
        (where(a=weights([0.25, 0.5, 0.5, 0.75] * 2), b=weights([0.5, 1.0])), 1, 6),
        (dense(np.arange(16).reshape(8, 2) / 32 + 0.25), 8, 23),
        (where(), 1, 1),
        (~where(), 0, 0),
    ],
)
def test_a_query_tells_its_least_and_largest_weight_in_the_form_that_is_asked(asked, lowest, highest):
    query = asked.bind(DOMAIN)
    batch = Queries.bound(DOMAIN, [query])

    assert (lowest, highest) == (query.lowest, query.highest)
    assert (lowest, highest) == (int(query.weights().min()), int(query.weights().max()))
    assert [[lowest], [highest]] == [part.tolist() for part in batch.extremes]
    assert highest - lowest == query.sensitivity == batch.sensitivities[0]


# Mechanisms of given scales


def gumbel(neighbours=PLANTED):
    return GumbelSparse(
        N, 1.0, 1e-9, Fraction(9), Fraction(5000), 20_000, BITS, Fraction(1), neighbours=neighbours
    )


def test_a_gumbel_hit_is_charged_what_its_test_and_its_answer_move():
    sparse, order = gumbel(), Fraction(9)
    table, number = Fraction(sparse.sigma(0)), Fraction(sparse.sigma(2))
    expected = gumbel_charge(order, TEST * 2 * 4, Fraction(5000), number, (NUMBER * 2) ** 2)

    assert expected == sparse.price(HALF).amount
    assert gumbel_charge(order, TEST * UNIT, Fraction(5000), table, SQUARED) == sparse.price(TABLE).amount
    assert (TEST * 2 * 4, NUMBER * 2) == (sparse.tested_by(HALF), sparse.moved_by(HALF))


def test_a_test_beyond_the_pole_of_its_price_is_refused_by_how_far_it_moves():
    """x < 1 needs b > moved/ln(1 + 1/(a - 1)): 48 units of 16 do not fit into a scale for 16."""
    settings = {"n": N, "epsilon": 1.0, "delta": 1e-9, "order": Fraction(9), "threshold": 500, "grid_bits": 4}
    assert GumbelSparse(**settings, scale=Fraction(200))
    with pytest.raises(InvalidParameterError, match="sensitivity=48"):
        GumbelSparse(**settings, scale=Fraction(200), neighbours=PLANTED)


@pytest.mark.parametrize("number", [None, Fraction(300)])
def test_an_exponential_hit_is_charged_what_threshold_test_and_answer_move(number):
    sparse = ExponentialSparse(
        N, 1.0, 20_000, Fraction(3000), Fraction(4000), BITS, number, neighbours=PLANTED
    )
    most = TEST * UNIT

    assert Fraction(most, 3000) == sparse.start_charge().amount
    if number is None:
        assert Fraction(most + TEST * 2 * 4, 4000) == sparse.price(HALF).amount
        return
    fresh = Fraction(NUMBER * 2, 300 * NUMBER * 4)  # noise for the whole range of a number, on its own grid
    assert Fraction(most + TEST * 2 * 4, 4000) + fresh == sparse.price(HALF).amount
    assert Fraction(2 * most, 4000) + Fraction(1, 300) == sparse.price(TABLE).amount
    assert math.isclose(math.sqrt(2) * 300 * L1 / N, sparse.noise_of(TABLE), rel_tol=1e-4)
    assert math.isclose(math.sqrt(2) * 300 * NUMBER / N, sparse.noise_of(HALF), rel_tol=1e-4)


def test_the_book_s_noise_is_scaled_by_what_tests_numbers_and_tables_move():
    one = LaplaceSparse(N, 1.0, 20_000, 3, grid_bits=BITS)
    sparse = LaplaceSparse(N, 1.0, 20_000, 3, grid_bits=BITS, neighbours=PLANTED)
    table, number = (sparse.noise_of(target) / one.noise_of(target) for target in (TABLE, HALF))

    assert (TEST, TEST) == (
        sparse.threshold_scale / one.threshold_scale,
        sparse.query_scale / one.query_scale,
    )
    assert math.isclose(L1 / 2, table, rel_tol=1e-3)
    assert math.isclose(NUMBER, number, rel_tol=1e-3)
    assert one.price(HALF) == sparse.price(HALF)  # a share, whatever the noise


@pytest.mark.parametrize("order", [None, Fraction(9)])
def test_a_number_without_a_test_is_charged_what_it_moves(order):
    delta = 0.0 if order is None else 1e-9
    sparse = UnconditionalNumbers(N, 1.0, delta, Fraction(4000), order, BITS, neighbours=PLANTED)
    moved, scale = NUMBER * 2 * 4, Fraction(4000)

    if order is None:
        assert Fraction(moved, 4000) == sparse.price(HALF).amount
        # a table costs what a number of full range costs
        assert Fraction(NUMBER * UNIT, 4000) == sparse.price(TABLE).amount
        return
    wide = Fraction(math.ceil(4000 * math.sqrt(SQUARED) / NUMBER))
    assert gaussian_charge(order, scale, moved**2) == sparse.price(HALF).amount
    assert gaussian_charge(order, wide, SQUARED * UNIT**2) == sparse.price(TABLE).amount
    assert math.isclose(float(wide) / (N * UNIT), sparse.noise_of(TABLE), rel_tol=1e-3)


# Mechanisms that are calibrated

KINDS = {
    "gumbel": (GumbelSparse, APPROXIMATE, {}),
    "gumbel tables": (GumbelSparse, APPROXIMATE, {"partition": True}),
    "gumbel threshold": (GumbelSparse, APPROXIMATE, {"threshold": 0.3}),
    "free gap": (ExponentialSparse, PURE, {}),
    "fresh": (ExponentialSparse, PURE, {"fresh": True}),
    "laplace": (LaplaceSparse, PURE, {}),
}


@pytest.mark.parametrize("neighbours", [REPLACE_ONE, PLANTED, ADDED])
@pytest.mark.parametrize("kind", KINDS)
def test_calibrated_noise_pays_for_the_planned_hits_and_hardly_for_more(kind, neighbours):
    made, budget, settings = KINDS[kind]
    sparse = made.calibrated(of(budget, neighbours), **SHAPE, **settings)
    full = where(a=0, b="x").bind(DOMAIN)
    targets = [full, TABLE] if settings.get("partition") else [full]
    start = sparse.start_charge()
    hits = {"gumbel": 24, "gumbel tables": 24, "gumbel threshold": 24, "laplace": 20}.get(kind, 21)
    paid = hits * max(sparse.price(target).amount for target in targets) + (start.amount if start else 0)

    assert neighbours == sparse.neighbours == sparse.stretched(Fraction(2)).neighbours
    assert paid <= sparse.account().capacity
    assert paid >= 0.9 * sparse.account().capacity


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE])
def test_calibrated_numbers_pay_for_the_planned_answers_and_hardly_for_more(budget):
    one, sparse = (
        UnconditionalNumbers.calibrated(given, n=N, answers=20, grid_bits=BITS)
        for given in (budget, of(budget))
    )
    paid = 20 * sparse.price(where(a=0).bind(DOMAIN)).amount

    assert 0.98 * sparse.account().capacity <= paid <= sparse.account().capacity
    assert math.isclose(NUMBER, sparse.deviation / one.deviation, rel_tol=0.02)
    assert math.isclose(NUMBER, sparse.hard_radius(HALF, 0.05) / one.hard_radius(HALF, 0.05), rel_tol=0.02)


@pytest.mark.parametrize("kind", ["fresh", "laplace"])
def test_radii_grow_as_what_is_bounded_moves(kind):
    made, budget, settings = KINDS[kind]
    one, sparse = (
        made.calibrated(given, **SHAPE, **settings, threshold=0.3) for given in (budget, of(budget))
    )
    least = one.threshold / (N * UNIT)

    def times(radius, less=0.0):
        return (radius(sparse) - less) / (radius(one) - less)

    assert math.isclose(NUMBER, times(lambda it: it.hard_radius(HALF, 0.05)), rel_tol=0.01)
    assert math.isclose(L1 / 2, times(lambda it: it.hard_radius(TABLE, 0.05)), rel_tol=0.01)
    assert math.isclose(L1 / 2, times(lambda it: it.sum_radius(TABLE, np.ones(8), 0.05)), rel_tol=0.01)
    assert math.isclose(TEST, times(lambda it: it.easy_radius(0.05, 500), least), rel_tol=0.01)
    for place, moved in enumerate((TEST, TEST, NUMBER)):
        assert math.isclose(
            moved, times(lambda it, place=place: it.margins(500, 0.05, 20)[place]), rel_tol=0.02
        )


# Tables


def cost(tables):
    """What tables cost for `Planted`, by formula."""
    order = tables.charge.order
    if order is None:
        return sum(L1 / scale for scale in tables.scales)
    if tables.pure:  # alike ones are rounded up once
        alike = {scale: tables.scales.count(scale) for scale in tables.scales}
        return sum(math.ceil(times * L1 / scale / TICK) for scale, times in alike.items())
    return sum(
        gaussian_charge(order, Fraction(scale.numerator), SQUARED * scale.denominator**2)
        for scale in tables.scales
    )


WIDE = ic.Domain.of(a=30, b=20, c=12, d=5)
LONG = ic.Domain.of(a=3000)
OPENED = {
    "pairs": (WIDE, N, APPROXIMATE, {}),
    "pairs, pure": (WIDE, N, PURE, {}),
    "cells": (DOMAIN, N, APPROXIMATE, {"max_queries": 3000}),
    "cells, pure": (DOMAIN, N, PURE, {"max_queries": 3000}),
    "levels": (LONG, N, APPROXIMATE, {"max_queries": 3000}),
    "levels, pure": (LONG, N, PURE, {"max_queries": 3000}),
    "given order": (WIDE, N, ic.Budget(1.0, 1e-9, order=Fraction(20)), {}),
}


@pytest.mark.parametrize("label", OPENED)
def test_the_tables_of_a_plan_are_priced_by_what_they_move(label):
    domain, n, budget, settings = OPENED[label]
    settings = settings or {"purchases": settled(domain, n, of(budget))}
    plan = session_plan(domain, n, of(budget), **settings)
    found = [plan.first_tables]

    assert found
    for tables in found:
        paid = tables.charge.amount
        assert PLANTED == tables.neighbours == plan.sparse.neighbours
        assert cost(tables) == tables.cost
        assert 0.9 * paid <= tables.cost <= paid
        with pytest.raises(InvalidParameterError, match="charge must pay for"):
            attrs.evolve(tables, neighbours=Planted(l1=9, squared=15))


def test_the_errors_that_are_forecast_grow_with_what_tables_and_numbers_move():
    told = {}
    for neighbours in (REPLACE_ONE, PLANTED):
        rows = forecast(LONG, 10**6, of(PURE, neighbours), 3000).engines
        told[neighbours] = {row.engine: row.rms for row in rows}
    ratios = {engine: told[PLANTED][engine] / rms for engine, rms in told[REPLACE_ONE].items()}

    assert math.isclose(L1 / 2, ratios["one noisy histogram"], rel_tol=1e-9)
    assert math.isclose(L1 / 2, ratios["session from levels"], rel_tol=0.01)  # less what is known without
    assert math.isclose(NUMBER, ratios["noise on every answer"], rel_tol=0.01)


# Sessions


BROAD = ic.Domain.of(a=8, b=["x", "y"], c=400)  # too many cells for one table of all to be the best start
BROAD_COUNTS = np.zeros(BROAD.shape, np.int64)
BROAD_COUNTS[:, :, 7] = np.arange(16).reshape(8, 2) * 150 + 125


def asked():
    return [
        where(a=between(1, 3)),
        where(a=weights([0.25, 0.5, 0.5, 0.75] * 2), b="x"),
        ~where(a=weights([0.25, 0.5, 0.25, 0.5] * 2)),
        np.repeat(np.arange(16).reshape(8, 2, 1) / 32 + 0.25, 400, axis=2),
    ]


SESSIONS = {
    "gumbel": (APPROXIMATE, "gumbel"),
    "exponential": (PURE, "exponential"),
    "laplace": (PURE, "laplace"),
    "numbers": (APPROXIMATE, None),
}


def session(kind, neighbours, **more):
    budget, name = SESSIONS[kind]
    options = (
        {"questions": 4, "certify": 0.9}
        if name is None
        else {"sparse": name, "release": "answer", "update": Still()}
    )
    return ic.OnlineIC(
        ic.PrivateData(BROAD_COUNTS, BROAD),
        of(budget, neighbours),
        noise=Silent(2**64 - 1),
        **options,
        **more,
    )


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("neighbours", [PLANTED, ADDED])
@pytest.mark.parametrize("kind", SESSIONS)
def test_what_a_session_tests_moves_as_its_neighbours_say(monkeypatch, kind, neighbours, together):
    """Of weights, of all cells and of complements, one at a time and in a batch."""
    opened = session(kind, neighbours)
    mechanism, told = opened.plan.sparse, []
    one, many = type(mechanism).step, type(mechanism).step_many

    def step(self, state, gap, sensitivity, noise):
        told.append(int(sensitivity))
        return one(self, state, gap, sensitivity, noise)

    def step_many(self, state, gaps, sensitivities, noise):
        state, easy, hit = many(self, state, gaps, sensitivities, noise)
        told.extend(sensitivities[: easy + (hit is not None)].tolist())
        return state, easy, hit

    monkeypatch.setattr(type(mechanism), "step", step)
    monkeypatch.setattr(type(mechanism), "step_many", step_many)
    if together:
        opened.answer_many(asked())
    else:
        for question in asked():
            opened.answer(question)
    # least and largest weight, of so many
    ends = [(0, 1, 1), (0, 3, 4), (2, 3, 4), (8, 23, 32)]
    unit = 1 << mechanism.grid_bits
    expected = [
        -(-unit * (TEST * (high - low) if neighbours == PLANTED else high) // whole)
        for low, high, whole in ends
    ]

    assert neighbours == mechanism.neighbours
    assert expected == told


@pytest.mark.parametrize("neighbours", [PLANTED, ADDED])
@pytest.mark.parametrize("kind", ["gumbel", "numbers"])
def test_what_a_session_charges_is_what_its_answers_move(kind, neighbours):
    opened = session(kind, neighbours)
    for question in asked():
        opened.answer(question)
    hits = [record for record in opened.transcript if isinstance(record, Hard)]
    sparse = opened.plan.sparse

    assert hits
    assert (kind == "numbers") is isinstance(sparse, UnconditionalNumbers)
    for record in hits:
        target = record.measurement.target
        moved = NUMBER * (target.highest - target.lowest) if neighbours == PLANTED else target.highest
        over = moved / (1 << target.grid_bits) / (record.measurement.scale * N)  # deviations of the noise
        if record.charge.order is None:
            assert float(record.charge.amount) >= math.sqrt(2.0) * over * 0.999
        else:
            assert float(record.charge.amount * TICK) >= float(sparse.order) * over**2 / 2.0 * 0.999


def test_a_session_that_opens_with_tables_is_charged_for_its_neighbours():
    opened = ic.OnlineIC(data(), of(PURE), noise=Silent(), max_queries=3000)
    opened.answer(where(a=1))
    (record,) = [one for one in opened.transcript if isinstance(one, BoughtTables)]
    scale = record.measurements[0].scale * N / math.sqrt(2.0)

    assert math.isclose(L1 / scale, record.charge.amount, rel_tol=1e-3)


def test_nothing_is_mixed_of_two_relations(tmp_path):
    sparse = GumbelSparse.calibrated(APPROXIMATE, **SHAPE)
    with pytest.raises(InvalidParameterError, match="sparse must be made for the neighbours of the budget"):
        ic.OnlineIC(ic.PrivateData([1250] * 16, ic.Domain.of(x=16)), of(APPROXIMATE), sparse=sparse)
    total = ic.TableBudget(ic.Budget(2.0, 1e-6))
    table = ic.PrivateData([1250] * 16, ic.Domain.of(x=16))
    table.draw_on(total)
    with pytest.raises(InvalidParameterError, match="budget must be for the neighbours of the total"):
        ic.OnlineIC(table, of(PURE))
    with pytest.raises(InvalidParameterError, match="neighbours must be ReplaceOne"):
        ic.TableBudget(of(PURE))
    with pytest.raises(InvalidParameterError, match="neighbours must be ReplaceOne"):
        ic.OnlineIC(data(), of(PURE), ledger=str(tmp_path / "one.db"), table="a table")
    assert total.left == 1


def test_bought_tables_of_another_relation_are_refused():
    plan = session_plan(DOMAIN, N, PURE, max_queries=3000)

    class Rule:
        def planned(self, account):
            return Fraction(0)

        def next(self, facts):
            return attrs.evolve(plan.first_tables, neighbours=ADDED)

    ledger = MemoryLedger()
    ic.OnlineIC(data(), PURE, ledger=ledger)
    with pytest.raises(InvalidParameterError, match="purchases must be priced for the neighbours"):
        check_bought(Rule().next(None), ledger, plan.sparse, DOMAIN, False)


# Baselines and offline algorithms


def drawn(run):
    """The one scale that noise was drawn at, in counts: 20,000 records leave a grid of 20 bits."""
    noise = ScriptedNoise([0] * 30)
    run(noise)
    ((_, scale),) = {one[:2] for one in noise.scales}
    return scale / 2**20


def test_the_baselines_use_the_whole_budget_for_their_neighbours():
    sets = [["a"], ["b"], ["a", "b"]]
    settings = {"answers": 4, "noise_law": "laplace"}
    gaussian = drawn(lambda it: NoisyTables(data(), of(APPROXIMATE), sets, noise_law="gaussian", noise=it))
    numbers = drawn(lambda it: PerQueryNoise(data(), of(PURE), **settings, noise=it).answer(where(a=1)))

    assert 3 * L1 == drawn(lambda it: NoisyTables(data(), of(PURE), sets, noise=it))
    assert math.isclose(math.sqrt(3 * SQUARED) / gaussian_mu(1.0, 1e-9), gaussian, rel_tol=1e-4)
    assert 4 * NUMBER == numbers


def test_offline_rounds_are_paid_for_what_scores_numbers_and_tables_move():
    queries = [where(a=between(0, top)) for top in range(6)] + [where(a=weights([0.25, 0.5] * 4))]
    workload = Workload.of(queries, DOMAIN, N, PLANTED)
    tables = paid_rounds(of(PURE), 3, "basic", tables=True)
    gaussian = paid_rounds(of(APPROXIMATE), 3, "zcdp", tables=True)
    built = iterative_construction(data(), queries, of(PURE), rounds=2, noise=Silent())
    learned = mwem(data(), queries, of(PURE), rounds=2, noise=Silent())

    assert (4 * NUMBER, 4 * TEST) == (workload.sensitivity, workload.tested)
    assert [4 * TEST, 4 * TEST] == [one.plan.choice.sensitivity for one in (built, learned)]
    share = Fraction(1, 2) / 2
    assert all(math.isclose(4 * NUMBER / share, one.plan.scale, rel_tol=1e-3) for one in (built, learned))
    assert math.isclose(L1 / Fraction(1, 6), tables.scale, rel_tol=1e-3)
    spent = gaussian.price - Fraction(max(SQUARED, NUMBER**2)) / (2 * gaussian.scale**2)
    assert math.isclose(float(spent), float(gaussian.capacity / 6), rel_tol=1e-6)


def test_scores_of_databases_and_levels_of_counts_move_as_the_neighbours_say(monkeypatch):
    query = where(a=weights([0.25, 0.5] * 4)).bind(DOMAIN)
    noise = ScriptedNoise([0] * 30)
    monkeypatch.setattr(type(REPLACE_ONE), "table_l1", lambda self, unit=1: L1 * unit)
    private_cdf(data(), "a", 1.0, levels=2, noise=noise)

    assert 10 * TEST == Scoring.of([query], N, 10, PLANTED).sensitivity
    assert {("discrete_laplace", 2 * L1)} == {one[:2] for one in noise.scales if one[0] != "words"}


# Nobody else


def test_nobody_but_neighbours_says_how_far_a_query_moves():
    """`Query.sensitivity` is for readers: what is drawn, priced or bounded asks the relation it was given."""
    package = Path(ic.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        for line in path.read_text().splitlines():
            for held in re.findall(r"(\w+)\.sensitivit(?:y|ies)\b", line.split("#")[0]):
                found.add((path.relative_to(package).as_posix(), held))
    queries = {
        (name, held) for name, held in found if held in ("query", "question", "target", "bound", "queries")
    }

    assert {
        ("evaluate/factorisation.py", "query"),  # a theorem about replaced records
        ("offline/statistics.py", "bound"),  # a statistic is not told for whom it will be released
    } == queries
