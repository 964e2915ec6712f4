"""MWEM: its noise, its bounds, its defaults; and the rule that steps by the measured gap."""

import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlineic as ic
from onlineic import bounds
from onlineic.accounting import Budget, zcdp_rho
from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError, SessionSealedError
from onlineic.evaluate import exact_values
from onlineic.hypothesis import Histogram
from onlineic.noise import SimulatedNoise, public_generator
from onlineic.offline import mwem
from onlineic.offline.construction import Workload, _Held
from onlineic.offline.multiplicative_weights import default_rounds
from onlineic.offline.rounds import _root_down, paid_rounds
from onlineic.queries import Measurement, Partition, Query, dense
from onlineic.testing import ScriptedNoise, check_update_rule
from onlineic.updates import MaximumEntropy, MeasuredWeights, Median, MultiplicativeWeights, Perceptron

DOMAIN = Domain.of(a=6, b=["x", "y", "z"], c=2)
APPROXIMATE = Budget(1.0, 1e-9)


def table(n=50_000, seed=1):
    weights = public_generator(seed).dirichlet(np.full(36, 0.2))
    return PrivateData(public_generator(seed + 1).multinomial(n, weights), DOMAIN)


def workload():
    ranges = [ic.where(a=ic.span(low, high)) for low in range(6) for high in range(low + 1, 6)]
    cells = [ic.where(a=a, b=b) for a in range(6) for b in "xyz"] + [
        ic.where(b=b, c=c) for b in "xyz" for c in (0, 1)
    ]
    return [*ranges, *cells, *(cell | ic.where(c=1) for cell in cells[:4])]


def worst(built, data, queries):
    bound = [query.bind(data.domain) for query in queries]
    return float(np.abs(built.answers(bound) - exact_values(data, bound)).max())


# -- the rule ----------------------------------------------------------------------------------------

RULES = [MeasuredWeights(), MeasuredWeights(variant="book", replays=1)]


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_rule_keeps_the_promises_of_update_rules(rule):
    check_update_rule(rule)


@pytest.mark.parametrize(("change", "name"), [({"variant": "half"}, "variant"), ({"replays": 0}, "replays")])
def test_the_rule_refuses_other_settings(change, name):
    with pytest.raises(InvalidParameterError, match=f"{name} must be"):
        MeasuredWeights(**change)


def test_the_rule_refuses_a_start_that_is_no_histogram_of_the_domain():
    with pytest.raises(InvalidParameterError, match="prior must be a Histogram"):
        MeasuredWeights().init(DOMAIN, Histogram(Domain.of(x=3)))


@pytest.mark.parametrize(("variant", "rate"), [("tight", 4.0), ("book", 0.5)])
@pytest.mark.parametrize(
    "query",
    [
        ic.where(a=ic.below(2), b="x"),
        ic.where(a=ic.one_of(0, 3)),
        ~ic.where(b="x", c=1),
        ic.where(a=ic.weights([0.0, 0.2, 0.5, 1.0, 0.1, 0.7])),
    ],
    ids=repr,
)
def test_a_step_is_the_rate_times_the_gap_along_the_weights(query, variant, rate):
    prior = public_generator(3).dirichlet(np.ones(36))
    start, bound = Histogram(DOMAIN, prior), query.bind(DOMAIN)
    weights = bound.weights() / (1 << bound.grid_bits)
    expected = start.probabilities() * np.exp(rate * (0.6 - start.evaluate(bound)) * weights)
    rule = MeasuredWeights(variant=variant, replays=1)
    after = rule.update(start, (Measurement(bound, np.array([0.6]), 0.01),), 0.0)

    assert np.allclose(expected / expected.sum(), after.probabilities(), rtol=1e-12, atol=0)


def test_a_query_is_its_partition_in_two_blocks():
    query = ic.where(a=ic.below(2)).bind(DOMAIN)
    blocks = Partition(DOMAIN, (0,), (np.array([0, 0, 1, 1, 1, 1]),))
    rule, start = MeasuredWeights(), Histogram(DOMAIN)
    one = rule.update(start, (Measurement(query, np.array([0.7]), 0.01),), 0.0)
    two = rule.update(start, (Measurement(blocks, np.array([0.7, 0.3]), 0.01),), 0.0)

    assert np.allclose(one.probabilities(), two.probabilities(), rtol=1e-12, atol=0)


def test_replays_are_passes_over_all_measurements_oldest_first():
    queries = [ic.where(a=0).bind(DOMAIN), ic.where(b="y").bind(DOMAIN)]
    past = tuple(
        Measurement(query, np.array([value]), 0.01) for query, value in zip(queries, (0.4, 0.9), strict=True)
    )
    once, twice = MeasuredWeights(replays=1), MeasuredWeights(replays=2)

    by_hand = once.update(once.update(Histogram(DOMAIN), past, 0.0), past, 0.0)
    assert np.allclose(
        by_hand.probabilities(), twice.update(Histogram(DOMAIN), past, 0.0).probabilities(), rtol=1e-9
    )


def test_noise_far_outside_of_the_unit_interval_counts_as_its_end():
    query = ic.where(a=0).bind(DOMAIN)
    far, end = (
        MeasuredWeights().update(Histogram(DOMAIN), (Measurement(query, np.array([value]), 9.0),), 0.0)
        for value in (1e9, 1.0)
    )

    assert np.array_equal(far.probabilities(), end.probabilities())


def test_contradicting_measurements_for_ever_leave_a_sound_histogram():
    queries = [ic.where(a=0).bind(DOMAIN), ic.where(a=1).bind(DOMAIN), ic.where(b="x").bind(DOMAIN)]
    past = tuple(Measurement(query, np.array([1.0]), 0.01) for query in queries * 100)
    result = MeasuredWeights(replays=20).update(Histogram(DOMAIN), past, 0.0)

    cells = result.probabilities()
    assert math.isclose(1.0, cells.sum())
    assert (cells > 0).all()
    assert np.isfinite(cells).all()


@st.composite
def steps(draw):
    """A truth, a hypothesis, a query and an answer, noisy or not."""
    generator = public_generator(draw(st.integers(0, 2**32)))
    truth, belief = generator.dirichlet(np.full(5, 0.3)), generator.dirichlet(np.full(5, 2.0)) * 0.99 + 0.002
    weights = generator.integers(0, 2, 5).astype(float) if draw(st.booleans()) else generator.random(5)
    return truth, belief, weights, draw(st.floats(-0.5, 0.5))


@given(problem=steps())
@pytest.mark.parametrize(("variant", "factor"), [("tight", 2.0), ("book", 0.25)])
def test_a_step_lowers_the_divergence_by_what_the_theorem_counts_with(variant, factor, problem):
    """KL(x || p) falls by at least 2 (g^2 - e^2), or (g^2 - e^2)/4: the lemma behind `mwem_error`."""
    truth, belief, weights, noise = problem
    domain = Domain.of(x=5)
    query = dense(weights).bind(domain)
    if query.constant is not None:
        return
    exact = query.weights() / (1 << query.grid_bits)
    start = Histogram(domain, belief)
    value = min(max(float(exact @ truth) + noise, 0.0), 1.0)
    error, gap = value - float(exact @ truth), float(exact @ truth) - start.evaluate(query)
    measurement = Measurement(query, np.array([value]), 0.01)
    after = MeasuredWeights(variant=variant, replays=1).update(start, (measurement,), 0.0)

    positive = truth > 0
    drop = float(
        (truth[positive] * np.log(after.probabilities()[positive] / start.probabilities()[positive])).sum()
    )
    assert drop >= factor * (gap**2 - error**2) - 1e-12


# -- noise and refusals ------------------------------------------------------------------------------


def test_pure_scales_are_4r_over_epsilon_and_2r_over_epsilon():
    data, queries, rounds = table(), workload(), 5
    noise = ScriptedNoise([0] * 1000)
    built = mwem(data, queries, Budget(0.5), rounds=rounds, noise=noise)

    distinct = len({query.bind(DOMAIN) for query in queries})
    scales = [(name, float(scale), size) for name, scale, size in noise.scales]
    assert [("geometric", 40.0, distinct), ("discrete_laplace", 20.0, 1)] * rounds == [
        (name, round(scale, 3), size) for name, scale, size in scales
    ]
    assert rounds * built.plan.price <= Fraction(0.5)


def test_few_rounds_take_laplace_noise_though_delta_is_given():
    data = table()
    kinds = {
        rounds: mwem(data, workload(), APPROXIMATE, rounds=rounds, noise=SimulatedNoise(1)).plan
        for rounds in (1, 4, 40)
    }

    assert ["basic", "basic", "zcdp"] == [plan.composition for plan in kinds.values()]
    for rounds, plan in kinds.items():
        gaussian = math.sqrt(rounds / zcdp_rho(1.0, 1e-9))
        assert plan.deviation <= min(gaussian + 1, math.sqrt(8) * rounds + 0.01)


def test_tables_are_drawn_in_counts_with_a_fifth_for_the_choice():
    data = table()
    noise = SimulatedNoise(2)
    built = mwem(data, workload(), APPROXIMATE, rounds=10, release="partition", noise=noise)
    assert built.hypothesis.most_cells == 2**22  # an attribute whose table comes last has room for its cuts

    share = zcdp_rho(1.0, 1e-9) / 10
    assert math.ceil(math.sqrt(2 / (2 * 0.8 * share))) == built.plan.scale
    assert math.isclose(math.sqrt(8 * share / 5), built.plan.choice.epsilon)
    assert all(isinstance(one.target, Partition) for one in built.measurements)
    assert () == built.gaps
    assert math.inf == built.error_bound


def test_a_query_too_fine_for_a_table_gets_its_number_at_the_same_noise():
    """A weight at each of 6 x 6 x .. cells would need more blocks than a table has."""
    domain = Domain.of(x=20_000)
    weights = np.arange(20_000) / 20_000
    data = PrivateData(np.r_[np.full(9_999, 1), np.zeros(10_001, np.int64)], domain)
    plain = mwem(
        data, [dense(weights)], Budget(1.0), rounds=1, release="partition", noise=ScriptedNoise([0, 7])
    )

    measurement = plain.measurements[0]
    query = measurement.target
    assert not isinstance(query, Partition)
    scale = plain.plan.scale * (1 << query.grid_bits)
    assert math.isclose(math.sqrt(2) * float(scale) / (9_999 << query.grid_bits), measurement.scale)
    exact = int(query.weights().ravel()[:9_999].sum())
    assert (exact + 7) / (9_999 << query.grid_bits) == float(measurement.values[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds must be"),
        ({"replays": 0}, "replays must be"),
        ({"average": 1.5}, "average must be"),
        ({"beta": 1.0}, "beta must be"),
        ({"release": "marginal"}, "release must be"),
        ({"update": "mwem"}, "update must be"),
        ({"start": 7}, "start must be"),
        ({"noise": "none"}, "noise must be"),
        ({"update": Perceptron(), "average": 0.5}, "average must be 0"),
        ({"update": Median(), "rounds": 10}, "enumerate at most"),
    ],
)
def test_refusals_come_before_the_budget_is_touched(change, message):
    data = table()
    with pytest.raises(ValueError, match=message):
        mwem(data, workload(), APPROXIMATE, **change)

    assert ([], 0) == (list(data.budgets), data.reads)


def test_a_failure_after_the_read_spends_the_budget_and_shows_nothing():
    data = table()

    with pytest.raises(SessionSealedError) as failed:
        mwem(data, workload(), APPROXIMATE, rounds=40, noise=ScriptedNoise([1]))

    assert (None, None) == (failed.value.__cause__, failed.value.__context__)


def test_real_noise_spends_the_budget_once():
    data = table()
    built = mwem(data, workload(), APPROXIMATE, rounds=3)

    assert built.private
    assert [APPROXIMATE] == list(data.budgets)
    assert len({query.bind(DOMAIN) for query in workload()}) == data.reads


# -- defaults, averages, bounds ------------------------------------------------------------------------


def test_default_rounds_balance_noise_against_rounds():
    for n, budget in ((1_000, Budget(0.5)), (50_000, APPROXIMATE), (20_000, Budget(3.0, 1e-6))):
        rounds = default_rounds(n, budget, queries=10**6)

        def deviation(number, budget=budget):
            laplace = math.sqrt(8) * number / budget.epsilon
            if budget.pure:
                return laplace
            return min(laplace, math.sqrt(number / zcdp_rho(budget.epsilon, budget.delta)))

        assert rounds**1.5 * deviation(rounds) <= 9 * n * (1 + 1e-9)
        assert (rounds + 1) ** 1.5 * deviation(rounds + 1) > 9 * n


def test_default_rounds_stay_in_their_limits():
    assert 7 == default_rounds(50_000, APPROXIMATE, queries=7)
    assert 1000 == default_rounds(10**12, APPROXIMATE, queries=10**6)
    assert 1 == default_rounds(1, Budget(0.01), queries=7)
    assert 29 == default_rounds(50_000, APPROXIMATE, queries=5000, release="partition")


def test_the_average_is_of_the_hypotheses_that_the_last_rounds_chose_against():
    data, queries, noise = table(), workload(), [SimulatedNoise(5) for _ in range(6)]
    shorter = [
        mwem(data, queries, Budget(8.0, 1e-9), rounds=4, average=average, noise=one).hypothesis
        for average, one in zip((0.0, 0.25, 0.5, 1.0), noise, strict=False)
    ]
    rule, states = MeasuredWeights(), [Histogram(DOMAIN)]
    built = mwem(data, queries, Budget(8.0, 1e-9), rounds=4, average=0.0, noise=noise[4])
    for count in range(1, 5):
        states.append(rule.update(states[-1], built.measurements[:count], 0.0))
    cells = [state.probabilities() for state in states]

    for expected, found in zip(
        (cells[4], cells[3], (cells[2] + cells[3]) / 2, sum(cells[:4]) / 4), shorter, strict=True
    ):
        assert np.allclose(expected, found.probabilities(), rtol=1e-9, atol=0)


def test_only_averages_have_a_bound_and_rules_without_probabilities_have_no_average():
    data, queries = table(), workload()
    last = mwem(data, queries, APPROXIMATE, rounds=20, average=0.0, noise=SimulatedNoise(1))
    signed = mwem(data, queries, APPROXIMATE, rounds=20, update=Perceptron(), noise=SimulatedNoise(1))
    fitted = mwem(data, queries, APPROXIMATE, rounds=20, update=MaximumEntropy(), noise=SimulatedNoise(1))

    assert [math.inf] * 3 == [one.error_bound for one in (last, signed, fitted)]
    assert 20 == len(signed.measurements) == len(fitted.measurements)


@pytest.mark.parametrize(
    "rule",
    [MultiplicativeWeights(), MultiplicativeWeights(rate=0.3), MaximumEntropy(), MeasuredWeights("book", 5)],
)
def test_any_rule_learns(rule):
    data, queries = table(), workload()
    uniform = worst(
        mwem(data, queries, Budget(20.0), rounds=1, average=1.0, noise=SimulatedNoise(1)), data, queries
    )
    learned = worst(
        mwem(data, queries, APPROXIMATE, rounds=40, update=rule, noise=SimulatedNoise(1)), data, queries
    )

    assert learned < uniform / 2


def test_a_public_start_near_the_truth_saves_the_learning():
    data, queries = table(), workload()
    near = Histogram(DOMAIN, np.ravel(data.exact_counts(_cells())) + 200.0)
    with_start, without = (
        worst(mwem(data, queries, APPROXIMATE, rounds=4, start=start, noise=SimulatedNoise(1)), data, queries)
        for start in (near, None)
    )

    assert with_start < without / 2


def _cells():
    return Partition(DOMAIN, (0, 1, 2), (np.arange(6), np.arange(3), np.arange(2)))


def test_tables_beat_numbers_at_the_same_budget():
    data, queries = table(), workload()
    by_number, by_table = (
        worst(mwem(data, queries, APPROXIMATE, release=kind, noise=SimulatedNoise(1)), data, queries)
        for kind in ("answer", "partition")
    )

    assert by_table < by_number


FINE = Domain.of(a=200, b=200)


def weighted():
    """A query whose table would have 40,000 blocks, on the finest grid, and one on none."""
    weights = [public_generator(seed).random(200) for seed in (1, 2)]
    return [ic.where(a=ic.weights(weights[0]), b=ic.weights(weights[1])), ic.where(a=ic.below(100))]


def test_a_number_in_the_place_of_a_table_is_drawn_however_fine_its_grid():
    """Noise in counts times 2^20 leaves the samplers' range: it was found out when the budget was spent."""
    counts = np.zeros(FINE.size, np.int64)
    counts[0] = 100_000
    built = mwem(
        PrivateData(counts, FINE),
        weighted()[:1],
        Budget(0.2, 1e-9),
        rounds=60,
        release="partition",
        average=0.0,
        noise=SimulatedNoise(1),
    )
    shift = built.plan.finest(20)

    assert (60, 60) == (len(built.measurements), len(built.gaps))
    assert 0 <= shift < 20
    for one in built.measurements:
        assert isinstance(one.target, Query)
        units = float(one.values[0]) * (100_000 << shift)

        assert units == pytest.approx(round(units), abs=1e-4)
        assert built.plan.deviation / 100_000 == pytest.approx(one.scale)


def test_a_number_in_the_place_of_a_table_is_rounded_and_one_record_moves_it_by_one_count_at_most():
    n, bits = 50, 20
    queries = weighted()
    workload = Workload.of(queries, FINE, n)
    plan = attrs.evolve(paid_rounds(Budget(0.2, 1e-9), 2, "zcdp", tables=True), scale=Fraction(2**10))
    fine = workload.queries[0].weights().ravel()
    cells = [int(fine.argmin()), int(fine.argmax()), 7, 20_011]
    moved = set()
    for start, end in itertools.product(cells, repeat=2):
        noisy = []
        for cell in (start, end):
            counts = np.full(FINE.size, 0)
            counts[11], counts[cell] = n - 1, 1 + (n - 1) * (cell == 11)
            noise = ScriptedNoise([0, 0])
            held = _Held(PrivateData(counts, FINE), workload, plan, noise)
            noisy.append([held.number_for_table(place) for place in (0, 1)])
            exact = workload.exact(PrivateData(counts, FINE))

            assert np.abs(exact - noisy[-1]).max() <= 1 << (bits - 16 - 1)
            assert [
                ("discrete_gaussian", 2**26, 1)
            ] * 2 == noise.scales  # sigma = 2^10 counts, 2^16 units each
        moved.update(abs(one - two) for one, two in zip(*noisy, strict=True))

    assert (16, bits) == (plan.finest(bits), workload.grid_bits)
    assert 0.9 * (1 << bits) < max(moved) <= 1 << bits


def test_a_budget_without_capacity_under_zcdp_is_composed_by_its_epsilon_alone():
    budget = Budget(1e-12, 1e-300)

    assert 1 <= default_rounds(1000, budget, queries=5)
    assert mwem(table(), [ic.where(c=1)], Budget(1e-7, 1e-300), rounds=1).plan.price <= Fraction(1e-7)
    if zcdp_rho(1e-30, 1e-300) <= 0:
        with pytest.raises(InvalidParameterError, match="no order has any capacity"):
            paid_rounds(Budget(1e-30, 1e-300), 1, "zcdp")
        with pytest.raises(InvalidParameterError, match="scale must be"):
            mwem(table(), [ic.where(c=1)], Budget(1e-30, 1e-300), rounds=1)


def test_rounds_of_a_narrow_type_are_the_same_rounds():
    options = {"average": 0.0, "update": Perceptron()}
    one, other = (
        mwem(table(), workload(), Budget(1.0), rounds=kind(100), noise=SimulatedNoise(0), **options)
        for kind in (int, np.int8)
    )

    assert one.gaps == other.gaps


@pytest.mark.statistical
@pytest.mark.parametrize("budget", [Budget(1.0), APPROXIMATE], ids=["pure", "zcdp"])
def test_the_stated_bound_of_an_average_held_in_every_run(budget):
    ratios = []
    for seed in range(30):
        data, queries = table(seed=10 * seed), workload()
        built = mwem(data, queries, budget, rounds=20, average=0.5, noise=SimulatedNoise(seed))
        ratios.append(worst(built, data, queries) / built.error_bound)

    assert 0.1 < max(ratios) <= 1.0


@pytest.mark.statistical
@pytest.mark.parametrize("variant", ["tight", "book"])
def test_the_theorem_of_mwem_held_in_every_run(variant):
    size, rounds, n = 16, 20, 300_000
    domain, ratios = Domain.of(x=size), []
    rows = public_generator(0).integers(0, 2, (600, size)).astype(float)
    queries = [dense(row).bind(domain) for row in rows]
    for seed in range(10):
        generator = public_generator(seed)
        data = PrivateData(generator.multinomial(n, generator.dirichlet(np.full(size, 0.1))), domain)
        built = mwem(
            data,
            queries,
            Budget(1.0),
            rounds=rounds,
            update=MeasuredWeights(variant=variant, replays=1),
            average=1.0,
            noise=SimulatedNoise(seed),
        )
        promised = bounds.mwem_error(size, 600, n, 1.0, rounds, variant)
        ratios.append(worst(built, data, queries) / promised)

    assert 0.05 < max(ratios) <= 1.0


def test_the_theorem_of_mwem_is_the_printed_one_and_refuses_an_empty_statement():
    assert math.isclose(
        2 * math.sqrt(math.log(1024) / 10) + 10 * 10 * math.log(500) / 1e6,
        bounds.mwem_error(1024, 500, 10**6, 1.0, 10),
    )
    assert bounds.mwem_error(1024, 500, 10**6, 1.0, 10, "tight") < bounds.mwem_error(
        1024, 500, 10**6, 1.0, 10
    )
    with pytest.raises(InvalidParameterError, match="queries must be"):
        bounds.mwem_error(1024, 20, 10**6, 1.0, 10)
    with pytest.raises(InvalidParameterError, match="variant must be"):
        bounds.mwem_error(1024, 500, 10**6, 1.0, 10, "loose")


@pytest.mark.parametrize("square", [Fraction(2), Fraction(1, 3), Fraction(7, 10**9), Fraction(12345, 678)])
def test_the_epsilon_of_a_choice_is_a_root_rounded_down(square):
    root = _root_down(square)

    assert Fraction(root) ** 2 <= square < Fraction(math.nextafter(root, math.inf)) ** 2


@pytest.mark.parametrize("budget", [Budget(1.0), APPROXIMATE], ids=["pure", "zcdp"])
def test_the_stated_bound_is_the_mean_gap_and_what_choice_and_answer_can_be_off(budget):
    """Averaged rounds share beta, choice and answer each their share; scores are rounded by half a unit."""
    data, queries = table(), [*workload(), dense(np.indices((6, 3, 2))[0] / 15)]  # no multiples of 2^-20
    built = mwem(data, queries, budget, rounds=20, average=0.4, beta=0.1, noise=SimulatedNoise(3))
    bound = {query.bind(DOMAIN, built.grid_bits) for query in queries}
    distinct, units, rounding = len(bound), data.n << 20, max(query.rounding for query in bound)
    share = 0.1 / (2 * 8)
    off = built.plan.answer_radius(share) + built.plan.choice_radius(distinct, share)

    expected = (sum(built.gaps[-8:]) / 8) + (off + 0.5) / units + rounding
    assert rounding > 2.0**-24
    assert built.error_bound == pytest.approx(expected, rel=1e-12)


def test_noise_of_weighted_queries_grows_with_their_grid():
    """One record moves a score by the widest weights: epsilon/(2R) each for choices and for answers."""
    queries = [dense(public_generator(seed).uniform(size=(6, 3, 2))) for seed in (4, 5)]
    noise = ScriptedNoise([0] * 100)
    built = mwem(table(), queries, Budget(0.5), rounds=2, noise=noise)
    widest = max(query.bind(DOMAIN, built.grid_bits).sensitivity for query in queries)

    assert widest == built.plan.choice.sensitivity > 2**19
    assert [("geometric", 16 * widest), ("discrete_laplace", 8 * widest)] * 2 == [
        (kind, scale) for kind, scale, _ in noise.scales
    ]
