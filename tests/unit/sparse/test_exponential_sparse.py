"""`ExponentialSparse`: pure epsilon from one kept threshold; scales, one test, its answer, its price."""

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

from onlineic.accounting import Budget, Filter
from onlineic.bounds import least_error, mw_tight_bound
from onlineic.domain import Domain
from onlineic.errors import InternalError, InvalidParameterError, InvalidQueryError
from onlineic.noise import SimulatedNoise
from onlineic.queries import Partition, dense, where
from onlineic.sparse import ExponentialSparse, Hit
from onlineic.sparse.exponential import exponential_scales
from onlineic.testing import ScriptedNoise

DOMAIN = Domain.of(age=4, sex=2)
QUERY = where(age=1).bind(DOMAIN, 20)
HALF = dense(np.array([0, 0.5, 0, 0.5, 0, 0.5, 0, 0])).bind(DOMAIN, 20)
CONSTANT = dense(np.full(8, 1.0)).bind(DOMAIN, 20)
PARTITION = Partition(DOMAIN, (0,), (np.arange(4),))


def affordable(sparse, target):
    """How many such hard answers one run pays for."""
    return (Fraction(sparse.epsilon) - sparse.start_charge().amount) // sparse.price(target).amount


def plan(**changes):
    options = {"n": 100_000, "hard_answers": 10, "max_queries": 10_000} | changes
    return ExponentialSparse.calibrated(options.pop("budget", Budget(1.0)), **options)


def small(**changes):
    """b1 = 5, b2 = 10, T = 102."""
    options = {
        "n": 1000,
        "epsilon": 1.0,
        "threshold": 102,
        "threshold_scale": Fraction(5),
        "query_scale": Fraction(10),
    }
    return ExponentialSparse(**(options | changes))


class TestCalibration:
    @pytest.mark.parametrize(
        ("hard_answers", "b1", "b2", "threshold"),
        [
            (1, 3.519842, 5.587401, 56.478),
            (3, 5.0, 10.0, 101.912),
            (10, 8.851424, 24.802039, 255.249),
            (50, 23.397725, 110.732623, 1152.166),
            (200, 57.083210, 427.488872, 4476.363),
        ],
    )
    def test_the_scales_are_the_published_ones(self, hard_answers, b1, b2, threshold):
        sparse = plan(hard_answers=hard_answers, max_queries=1000 * hard_answers)

        assert exponential_scales(math.ceil(1.05 * hard_answers), 1.0) == pytest.approx((b1, b2), abs=1e-6)
        assert float(sparse.threshold_scale) == pytest.approx(b1, abs=2e-5)
        assert float(sparse.query_scale) == pytest.approx(b2, abs=4e-5)
        assert sparse.threshold == math.ceil(threshold)

    @pytest.mark.parametrize("grid_bits", [0, 8, 20])
    @pytest.mark.parametrize("fresh", [False, True])
    @pytest.mark.parametrize("reserved", [Fraction(0), Fraction(1, 4)])
    def test_the_plan_uses_up_epsilon_and_never_more(self, grid_bits, fresh, reserved):
        sparse = plan(grid_bits=grid_bits, reserved=reserved, fresh=fresh)
        target = PARTITION if fresh else QUERY

        spent = sparse.start_charge().amount + 11 * sparse.price(target).amount
        assert (1 - reserved) * Fraction(99999, 100000) <= spent <= 1 - reserved
        assert sparse.price(QUERY).amount <= sparse.price(target).amount
        assert sparse.account() == Filter(Fraction(1), "epsilon")

    def test_alpha_asks_for_hits_with_a_real_gap(self):
        sparse = plan(hard_answers=229, alpha=0.123)
        hit, miss, number = sparse.margins(10_000, 0.05, 229)

        assert sparse.threshold / sparse.n - hit >= 0.123
        assert 0.123 + hit + miss == pytest.approx(0.1864, abs=1e-4)
        assert number < 0.123
        assert affordable(sparse, QUERY) == 229

    @pytest.mark.parametrize(
        ("size", "queries", "n", "error", "cutoff"),
        [
            (2**6, 10**4, 10**5, 0.1575, 193),
            (2**10, 10**4, 10**4, 0.4101, 48),
            (2**10, 10**4, 10**5, 0.1864, 229),
            (2**10, 10**4, 10**6, 0.0856, 1073),
            (2**20, 10**6, 10**5, 0.2587, 237),
            (2**20, 10**6, 10**6, 0.1191, 1108),
        ],
    )
    def test_the_certificate_of_multiplicative_weights(self, size, queries, n, error, cutoff):
        def margins(c):
            wish = {"grid_bits": 12, "threshold": 1 / n, "false_hits": 0.0}
            return plan(n=n, hard_answers=c, max_queries=queries, **wish).margins(queries, 0.05, c)

        certificate = least_error(lambda alpha: mw_tight_bound(size, alpha), margins)

        assert (round(certificate.error_bound, 4), certificate.cutoff) == (error, cutoff)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"grid_bits": 44}, "lower grid_bits"),
            ({"fresh": True, "answer_share": Fraction(1)}, "answer_share"),
        ],
        ids=str,
    )
    def test_bad_plans_are_refused(self, changes, message):
        with pytest.raises(InvalidParameterError, match=message):
            plan(**changes)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"epsilon": 0.0}, "epsilon"),
            ({"threshold": 0}, "threshold"),
            ({"threshold_scale": 5.0}, "threshold_scale must be a Fraction"),
            ({"query_scale": Fraction(0)}, "query_scale"),
            ({"query_scale": Fraction(2**48)}, "query_scale"),
            ({"number_scale": Fraction(2**47)}, "number_scale"),
            ({"n": 2**40, "grid_bits": 20}, "2\\^53"),
        ],
        ids=str,
    )
    def test_bad_settings_are_refused(self, changes, message):
        with pytest.raises(InvalidParameterError, match=message):
            small(**changes)


class TestPrice:
    def test_a_run_costs_its_threshold_and_a_hit_both_sensitivities(self):
        sparse = small()

        assert sparse.start_charge().amount == Fraction(1, 5)
        assert sparse.price(QUERY).amount == Fraction(2, 10)
        assert affordable(sparse, QUERY) == 4

    def test_a_narrow_query_is_cheaper_by_its_own_share_only(self):
        sparse = small(grid_bits=1)  # one count is 2 units

        assert sparse.price(QUERY).amount == Fraction(4, 10)
        assert sparse.price(HALF).amount == Fraction(3, 10)

    def test_fresh_answers_add_their_own_charge(self):
        sparse = small(number_scale=Fraction(8), grid_bits=1)

        assert sparse.price(QUERY).amount == Fraction(4, 10) + Fraction(1, 8)
        assert sparse.price(HALF).amount == Fraction(3, 10) + Fraction(1, 16)
        assert sparse.price(PARTITION).amount == Fraction(4, 10) + Fraction(2, 16)

    def test_tables_are_refused_where_no_share_was_planned(self):
        with pytest.raises(InvalidQueryError, match="fresh=True"):
            small().price(PARTITION)

    def test_a_query_on_a_finer_grid_costs_what_it_moves_by_on_that_of_the_noise(self):
        """One half of a record is one step of a grid of whole records."""
        assert small().price(HALF) == small().price(QUERY)

    @pytest.mark.parametrize("query", [CONSTANT])
    def test_a_query_that_cannot_be_tested_has_no_price(self, query):
        with pytest.raises(InvalidQueryError, match="sensitivity"):
            small().price(query)


class TestStep:
    def test_the_threshold_is_drawn_by_the_first_test_and_kept(self):
        sparse = small()
        noise = ScriptedNoise([3, 0, 0, 0, 0, 5, 0, 0])
        state = sparse.init()
        hits = []
        for gap in (104, -104, 100, 0):  # T + rho = 105: easy, easy, hit on +, easy
            state, hit = sparse.step(state, gap, 1, noise)
            hits.append(hit)

        assert hits == [None, None, Hit(side=1, excess=0), None]
        assert (state.hits, state.threshold_noise) == (1, 3)
        assert noise.scales[0] == ("geometric", Fraction(5), 1)
        assert noise.scales[1:] == [("geometric", Fraction(10), 1)] * 7

    def test_the_second_side_is_tested_only_if_the_first_is_easy(self):
        sparse = small()
        noise = ScriptedNoise([0, 1, 2])

        state, hit = sparse.step(sparse.init(), -101, 1, noise)

        assert (hit, noise.exhausted) == (Hit(side=-1, excess=1), True)
        assert sparse.step(state, 101, 1, ScriptedNoise([1]))[1] == Hit(side=1, excess=0)

    @pytest.mark.parametrize("chunk", [1, 2, 3, 50, 300])
    def test_batches_and_single_tests_use_the_same_noise(self, chunk):
        sparse = small()
        gaps = np.random.default_rng(2).integers(-120, 120, 300)
        noise, singles = SimulatedNoise(8), SimulatedNoise(8)
        expected, state = [], sparse.init()
        for gap in gaps:
            state, hit = sparse.step(state, int(gap), 1, singles)
            expected.append(hit)

        actual, batch = [], sparse.init()
        while len(actual) < len(gaps):
            rest = gaps[len(actual) :][:chunk]
            batch, easy, hit = sparse.step_many(batch, rest, np.ones(len(rest), np.int64), noise)
            actual += [None] * easy + [hit] * (hit is not None)

        assert actual == expected
        assert batch == state
        assert state.hits > 20
        assert {hit.side for hit in expected if hit} == {1, -1}
        assert noise.geometric(Fraction(10), 3).tolist() == singles.geometric(Fraction(10), 3).tolist()

    def test_a_marginal_is_tested_on_one_side(self):
        sparse = small(number_scale=Fraction(8))
        noise = ScriptedNoise([2, 3, 4])
        state, hit = sparse.step_table(sparse.init(), 100, noise)

        assert hit is None
        assert sparse.step_table(state, 100, noise)[1] == Hit(side=0, excess=0)

    def test_no_query_no_noise(self):
        sparse, none = small(), np.array([], np.int64)

        assert sparse.step_many(sparse.init(), none, none, ScriptedNoise([])) == (sparse.init(), 0, None)

    @pytest.mark.parametrize("sensitivity", [2, -1])
    def test_a_sensitivity_beyond_one_record_is_our_bug(self, sensitivity):
        with pytest.raises(InternalError, match="sensitivity"):
            small().step(small().init(), 0, sensitivity, ScriptedNoise([0, 0, 0]))

    def test_the_secret_is_not_shown(self):
        state, _ = small().step(small().init(), 0, 1, ScriptedNoise([77_777, 0, 0]))

        assert "77777" not in f"{state!r}{state}"


class TestMeasure:
    @pytest.mark.parametrize("side", [1, -1])
    def test_a_free_gap_answers_without_the_data(self, side):
        sparse = small(grid_bits=1)
        measured = sparse.measure(Hit(side=side, excess=6), QUERY, 400, -(10**9), ScriptedNoise([]))
        centre = 1 / math.expm1(1 / 10) - 1 / math.expm1(1 / 5)

        assert measured.values == pytest.approx([0.4 + side * (108 - centre) / 2000], rel=1e-12)
        variance = sum(math.exp(-1 / b) / math.expm1(-1 / b) ** 2 for b in (5, 10))
        assert measured.scale == pytest.approx(math.sqrt(variance) / 2000)

    def test_with_a_scale_of_their_own_a_number_and_a_table_are_fresh(self):
        sparse = small(number_scale=Fraction(8), grid_bits=1)
        hit = Hit(side=1, excess=40)
        noise = ScriptedNoise([-3, 1, 0, -1, 2])
        number = sparse.measure(hit, HALF, 0, 500, noise)
        table = sparse.measure(hit, PARTITION, 0, np.array([1, 2, 3, 4]), noise)

        assert noise.scales == [("discrete_laplace", Fraction(16), 1), ("discrete_laplace", Fraction(16), 4)]
        assert number.values.tolist() == [497 / 2000]
        assert table.values.tolist() == [2 / 1000, 2 / 1000, 2 / 1000, 6 / 1000]
        assert table.scale == pytest.approx(math.sqrt(2) * 16 / 1000)

    def test_a_number_needs_its_free_gap(self):
        with pytest.raises(InternalError, match="free gap"):
            small().measure(Hit(), QUERY, 0, 0, ScriptedNoise([]))


def pairs(b1, b2, size=4000):
    """Probabilities of all (rho, nu), as an array, and rho - nu."""
    q1, q2 = math.exp(-1 / b1), math.exp(-1 / b2)
    j = np.arange(size)
    return np.outer((1 - q1) * q1**j, (1 - q2) * q2**j), j[:, None] - j[None, :]


class TestAccuracy:
    @pytest.mark.parametrize("beta", [0.9, 0.3, 0.05, 1e-3])
    def test_easy_answers_stay_within_their_radius_by_exact_summation(self, beta):
        sparse = small()
        probability, difference = pairs(5, 10, 600)
        radius = sparse.easy_radius(beta) * 1000
        beyond = math.floor(radius) + 1

        assert probability[difference > beyond - 102].sum() <= beta
        assert sparse.easy_radius(beta, 10**9) * 1000 == pytest.approx(102 + 5 * math.log(1 / beta))

    @pytest.mark.parametrize("beta", [0.3, 0.05, 1e-3])
    @pytest.mark.parametrize("gap", [-300, -60, -5, 0, 5, 60, 101, 102, 150, 400])
    def test_free_gaps_stay_within_their_radius_given_that_they_are_hard_by_exact_summation(self, beta, gap):
        """Also where every hit is a false one: sides are tested in order, both against one rho."""
        sparse = small()
        q1, q2 = math.exp(-1 / 5), math.exp(-1 / 10)
        rho, nu = np.arange(300), np.arange(3000)
        radius = sparse.hard_radius(QUERY, beta) * 1000
        centre = 1 / math.expm1(1 / 10) - 1 / math.expm1(1 / 5)
        law = (1 - q2) * q2**nu
        hard = outside = 0.0
        for level, weight in zip(rho, (1 - q1) * q1**rho, strict=True):
            unfired = 1.0
            for side in (1, -1):
                fired = side * gap + nu >= 102 + level
                # value = guess + side (T + y - centre), y = side gap + nu - T - rho
                wrong = fired & (np.abs(nu - level - centre) > radius)
                outside += weight * unfired * law[wrong].sum()
                hard += weight * unfired * law[fired].sum()
                unfired *= 1.0 - law[fired].sum()

        assert outside <= beta * hard

    def test_a_false_hit_is_outside_a_radius_short_of_the_threshold(self):
        centre = 1 / math.expm1(1 / 10) - 1 / math.expm1(1 / 5)

        assert small().hard_radius(QUERY, 0.05) * 1000 == pytest.approx(102 + 10 * math.log(80) - centre)

    def test_several_numbers_are_bounded_given_that_they_are_hard_or_by_one_union_over_all_tests(self):
        b2, tests = 10.0, 30
        q1, q2 = math.exp(-1 / 5), math.exp(-1 / 10)
        sparse, centre = small(), 1 / math.expm1(1 / 10) - 1 / math.expm1(1 / 5)
        union = b2 * math.log(2 * tests * (1 - q1) / (1 - q1 * q2) / 0.025)

        assert sparse.hard_radius(QUERY, 0.05, 4, tests) * 1000 == pytest.approx(union - centre)
        assert sparse.hard_radius(QUERY, 0.05, 4) * 1000 == pytest.approx(102 + b2 * math.log(320) - centre)
        assert sparse.hard_radius(QUERY, 0.05, 9, tests) == sparse.hard_radius(QUERY, 0.05, 4, tests)

    def test_fresh_answers_have_the_discrete_laplace_radius(self):
        sparse = small(number_scale=Fraction(8))
        q, r = math.exp(-1 / 8), round(sparse.hard_radius(QUERY, 0.05) * 1000)

        assert 2 * q ** (r + 1) / (1 + q) <= 0.05 < 2 * q**r / (1 + q)
        assert sparse.hard_radius(PARTITION, 0.05) > 2 * sparse.hard_radius(QUERY, 0.05)

    @pytest.mark.parametrize("fresh", [False, True])
    def test_margins_hold_by_exact_summation(self, fresh):
        sparse = small(number_scale=Fraction(8) if fresh else None)
        hit, miss, number = (value * 1000 for value in sparse.margins(500, 0.05, 4))
        probability, difference = pairs(5, 10, 1500)
        rho = probability.sum(axis=1)

        failing = 2 * 500 * probability[-difference > hit].sum() + rho[np.arange(1500) > miss].sum()
        if fresh:
            q = math.exp(-1 / 8)
            failing += 4 * 2 * q ** (math.floor(number) + 1) / (1 + q)
        assert failing <= 0.05
        if not fresh:
            centre = 1 / math.expm1(1 / 10) - 1 / math.expm1(1 / 5)
            assert number >= max(hit - centre, miss + centre)

    def test_settings_are_compared_and_evolved_by_value(self):
        assert attrs.evolve(small(), threshold=103) != small() == small()
