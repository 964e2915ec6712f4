"""`GumbelSparse`: calibration to the digit, one test, its answer, its price and its margins."""

import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy import stats

from onlineic.accounting import Budget, Filter, gaussian_charge, renyi_epsilon
from onlineic.bounds import least_error, mw_tight_bound
from onlineic.domain import Domain
from onlineic.errors import (
    BudgetExceededError,
    InfeasibleAccuracyError,
    InternalError,
    InvalidParameterError,
    InvalidQueryError,
)
from onlineic.noise import SimulatedNoise
from onlineic.queries import Partition, dense, where
from onlineic.sparse import GumbelSparse, exponential_resolution, gumbel_resolution
from onlineic.sparse.gumbel import gumbel_scale
from onlineic.testing import ScriptedNoise

DOMAIN = Domain.of(age=4, sex=2)
QUERY = where(age=1).bind(DOMAIN, 20)
HALF = dense(np.array([0, 0.5, 0, 0.5, 0, 0.5, 0, 0])).bind(DOMAIN, 20)  # weights 0 and 1 on a grid of 1/2
CONSTANT = dense(np.full(8, 1.0)).bind(DOMAIN, 20)
PARTITION = Partition(DOMAIN, (0,), (np.arange(4),))
BUDGET = Budget(1.0, 1e-6)

SCALES = {  # (epsilon, delta): c', b at r = 2, alpha, b without a fresh answer
    (1.0, 1e-6): [
        (10, 23.109362, 16.5695, 22.287060),
        (50, 42.244670, 19.0254, 39.596932),
        (200, 77.734462, 20.4054, 71.445443),
        (1000, 166.087639, 21.2595, 150.535594),
    ],
    (1.0, 1e-9): [
        (10, 32.127779, 24.90, 31.213086),
        (50, 56.190273, 29.09, 53.074255),
        (200, 101.250179, 31.70, 93.578580),
        (1000, 213.803272, 33.40, 194.378106),
    ],
    (0.1, 1e-6): [
        (10, 193.176483, 127.5, 185.5085),
        (50, 360.857921, 145.4, 336.8921),
        (200, 670.541020, 155.0, 614.6078),
        (1000, 1440.454876, 160.8, 1303.6765),
    ],
    (3.0, 1e-6): [
        (10, 8.619840, 6.698, 8.3347),
        (50, 15.531918, 7.685, 14.5961),
        (200, 28.389384, 8.258, 26.1403),
        (1000, 60.430416, 8.618, 54.8261),
    ],
}
GOLDEN_WORD = 0x5E2D58D8B3BCDF1A  # floor(2^64 exp(-1)): undecided at |gap| = T


def affordable(sparse, target):
    """How many such hard answers the whole capacity pays for."""
    return sparse.capacity // sparse.price(target).amount


def plan(**changes):
    options = {"n": 100_000, "hard_answers": 50, "max_queries": 50_000} | changes
    return GumbelSparse.calibrated(options.pop("budget", BUDGET), **options)


def golden():
    """alpha = 19, b = 169/4, sigma = 85."""
    return GumbelSparse(100_000, 1.0, 1e-6, Fraction(19), Fraction(169, 4), 360)


class TestCalibration:
    @pytest.mark.parametrize(
        ("budget", "row"), [(budget, row) for budget, rows in SCALES.items() for row in rows], ids=str
    )
    def test_the_real_valued_optimum_is_the_published_one(self, budget, row):
        count, scale, order, bare = row
        best = gumbel_scale(count, *budget)

        assert best[0] == pytest.approx(scale, abs=1e-6)
        assert best[1] == pytest.approx(order, rel=2e-4)
        assert gumbel_scale(count, *budget, ratio=math.inf)[0] == pytest.approx(bare, abs=1e-4)

    def test_the_rounded_plan_of_50_hard_answers(self):
        sparse = plan()

        assert (sparse.order, sparse.scale) == (Fraction(77, 4), Fraction(1494505, 32768))
        assert (sparse.sigma(0), sparse.threshold) == (92, 389)
        assert (sparse.price(QUERY).amount, sparse.capacity) == (8378481791, 504001951029)
        assert affordable(sparse, QUERY) == 60

    def test_the_rounded_plan_of_200_hard_answers_at_a_smaller_delta(self):
        sparse = plan(budget=Budget(1.0, 1e-9), hard_answers=200, max_queries=200_000)

        assert (sparse.order, sparse.scale) == (Fraction(2045, 64), Fraction(7203197, 65536))
        assert (sparse.sigma(0), sparse.capacity) == (220, 521400615987)
        assert (sparse.price(QUERY).amount, affordable(sparse, QUERY)) == (2171921188, 240)

    @pytest.mark.parametrize("grid_bits", [0, 1, 8, 20])
    @pytest.mark.parametrize("partition", [False, True])
    @pytest.mark.parametrize("hard_answers", [1, 7, 300])
    def test_the_plan_is_payable_on_every_grid_and_little_more(self, grid_bits, partition, hard_answers):
        sparse = plan(grid_bits=grid_bits, partition=partition, hard_answers=hard_answers)
        count = math.ceil(1.2 * hard_answers)
        target = PARTITION if partition else QUERY

        assert affordable(sparse, target) >= count
        assert affordable(sparse, QUERY) >= count
        # sigma is rounded up to whole records: at most a few per cent of the price
        assert sparse.price(target).amount * count >= 0.9 * sparse.capacity

    @pytest.mark.parametrize("hard_answers", [10**7, 3 * 10**7, 10**8])
    def test_a_plan_of_so_many_tables_that_their_prices_are_few_ticks_is_payable(self, hard_answers):
        """Prices are rounded up to whole ticks: the scale has to make up for that."""
        sparse = plan(n=10**8, partition=True, hard_answers=hard_answers, max_queries=10**9)

        assert affordable(sparse, PARTITION) >= math.ceil(1.2 * hard_answers)

    def test_the_claim_of_the_filter_is_the_budget(self):
        sparse = plan()

        assert renyi_epsilon(sparse.order, sparse.capacity, 1e-6) <= 1.0
        assert renyi_epsilon(sparse.order, sparse.capacity + 10, 1e-6) > 1.0
        assert sparse.account() == Filter(Fraction(504001951029), "ticks", Fraction(77, 4))
        assert sparse.start_charge() is None

    def test_a_reserved_share_stays_for_a_prior_of_the_same_order(self):
        share = Fraction(1, 5)
        sparse = plan(reserved=share)
        account = sparse.account()
        for _ in range(60):
            account = account.charge(sparse.price(QUERY))

        assert account.left >= share * sparse.capacity
        sigma = 60
        assert gaussian_charge(sparse.order, sigma, 2) <= share * sparse.capacity

    def test_the_threshold_lets_k_equal_numbers_cause_a_fifth_of_the_hits(self):
        sparse = plan()
        false_hits = 50_000 * -math.expm1(-math.exp(-sparse.threshold / sparse.scale))

        assert false_hits == pytest.approx(0.2 * 50, rel=0.02)
        assert false_hits <= 10

    def test_alpha_asks_for_hits_with_a_real_gap(self):
        sparse = plan(hard_answers=2434, max_queries=10_000, alpha=0.0378)
        hit, _, number = sparse.margins(10_000, 0.05, 2434)

        assert sparse.threshold / sparse.n - hit >= 0.0378
        assert number < 0.0378
        assert affordable(sparse, QUERY) >= 2434

    @pytest.mark.parametrize("wish", [{"alpha": 0.1}, {"threshold": 0.3}])
    def test_a_steep_threshold_widens_the_test_and_gives_the_rest_to_the_answers(self, wish):
        sparse, usual = plan(grid_bits=20, **wish), plan(grid_bits=20)

        assert 25 * sparse.scale <= sparse.threshold <= 26 * sparse.scale
        unit, usual_unit = 1 << sparse.grid_bits, 1 << usual.grid_bits
        assert sparse.scale / unit > usual.scale / usual_unit
        assert sparse.sigma(sparse.grid_bits) / unit < usual.sigma(usual.grid_bits) / usual_unit
        count = 50 if "alpha" in wish else 60
        assert count <= affordable(sparse, QUERY) <= 1.1 * count

    def test_the_grid_is_coarsened_to_what_the_sampler_can_draw(self):
        sparse = plan(grid_bits=20)

        assert sparse.grid_bits == 19
        assert sparse.sigma(19) <= 2**26

    def test_noise_beyond_the_sampler_is_refused(self):
        with pytest.raises(InfeasibleAccuracyError, match="raise epsilon"):
            plan(budget=Budget(1e-3, 1e-6), hard_answers=10**6, grid_bits=20)

    def test_an_epsilon_without_capacity_is_refused(self):
        with pytest.raises(InfeasibleAccuracyError, match="no Renyi order"):
            plan(budget=Budget(1e-6, 1e-9))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"budget": Budget(1.0)}, "use ExponentialSparse"),
            ({"alpha": 0.1, "max_queries": 10**12}, "max_queries/beta"),
            ({"ratio": Fraction(0)}, "ratio"),
        ],
        ids=str,
    )
    def test_bad_plans_are_refused(self, changes, message):
        with pytest.raises(InvalidParameterError, match=message):
            plan(**changes)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"delta": 0.0}, "use ExponentialSparse"),
            ({"order": Fraction(1)}, "order"),
            ({"order": 19.0}, "order must be a Fraction"),
            ({"scale": Fraction(2**46)}, "2\\^46"),
            ({"scale": Fraction(-1)}, "scale"),
            ({"scale": Fraction(17)}, "order must be < 1 \\+|scale must be >"),
            ({"threshold": 0}, "threshold"),
            ({"threshold": 1099}, "raise the scale"),
            ({"grid_bits": 37}, "2\\^53"),
            ({"ratio": Fraction(2**25)}, "lower grid_bits"),
            ({"n": 0}, "n must"),
        ],
        ids=str,
    )
    def test_bad_settings_are_refused(self, changes, message):
        """scale 17 at order 19: x >= 1, no finite charge."""
        with pytest.raises(InvalidParameterError, match=message):
            attrs.evolve(golden(), **changes)


class TestPrice:
    def test_prices_of_a_number_and_of_a_partition(self):
        sparse = golden()

        assert sparse.capacity == 494910854729
        assert sparse.sigma(0) == 85
        assert sparse.price(QUERY).amount == 9878100152
        assert sparse.price(PARTITION).amount == 11323824784
        assert (affordable(sparse, QUERY), affordable(sparse, PARTITION)) == (50, 43)

    def test_half_the_range_costs_a_fifth(self):
        sparse = plan(grid_bits=8)

        assert (HALF.sensitivity, HALF.grid_bits) == (1, 1)
        assert float(sparse.price(HALF).amount / sparse.price(QUERY).amount) == pytest.approx(0.21, abs=0.01)

    def test_a_count_costs_the_same_whatever_the_grid_of_the_session(self):
        prices = {k: float(plan(grid_bits=k).price(QUERY).amount) for k in (0, 8, 19)}

        assert max(prices.values()) <= min(prices.values()) * (1 + 1e-4)

    def test_exactly_floor_of_capacity_over_price_hard_answers_are_payable(self):
        sparse = golden()
        account, price = sparse.account(), sparse.price(QUERY)
        for _ in range(50):
            account = account.charge(price)

        with pytest.raises(BudgetExceededError):
            account.charge(price)

    def test_a_query_on_a_finer_grid_costs_what_it_moves_by_on_that_of_the_noise(self):
        """One half of a record is one step of a grid of whole records."""
        assert golden().price(HALF) == golden().price(QUERY)

    @pytest.mark.parametrize("query", [CONSTANT])
    def test_a_query_that_cannot_be_tested_has_no_price(self, query):
        sparse = golden()
        sparse.price(PARTITION)

        with pytest.raises(InvalidQueryError, match="sensitivity"):
            sparse.price(query)


class TestStep:
    @pytest.mark.parametrize("sign", [1, -1])
    def test_the_word_decides_at_the_threshold(self, sign):
        sparse = golden()
        easy = sparse.step(sparse.init(), sign * 360, 1, ScriptedNoise([GOLDEN_WORD - 1]))
        hard = sparse.step(sparse.init(), sign * 360, 1, ScriptedNoise([GOLDEN_WORD + 1]))

        assert (easy[0].hits, easy[1]) == (0, None)
        assert (hard[0].hits, hard[1].side, hard[1].excess) == (1, 0, None)

    def test_an_undecided_word_is_refined_by_the_next(self):
        sparse = golden()
        for tail, hits in ((0, 0), (2**64 - 1, 1)):
            noise = ScriptedNoise([GOLDEN_WORD, tail])

            assert sparse.step(sparse.init(), 360, 1, noise)[0].hits == hits
            assert noise.exhausted

    def test_many_tests_stop_at_the_first_hit_and_give_the_rest_back(self):
        sparse = golden()
        noise = ScriptedNoise([0, 1, GOLDEN_WORD, 0, 2, 2**64 - 1, 7, 8])
        gaps = np.array([0, 5, 360, -3, 0, 9, 9])

        state, easy, hit = sparse.step_many(sparse.init(), gaps, np.ones(7, np.int64), noise)

        assert (state.hits, easy, hit.side) == (1, 4, 0)
        assert noise.words(2).tolist() == [7, 8]

    def test_an_undecided_word_that_fires_ends_the_batch(self):
        sparse = golden()
        noise = ScriptedNoise([0, GOLDEN_WORD, 2**64 - 1, 5])

        state, easy, hit = sparse.step_many(sparse.init(), np.array([0, 360, 0]), np.ones(3, np.int64), noise)

        assert (state.hits, easy, hit is not None) == (1, 1, True)
        assert noise.words(1).tolist() == [5]

    def test_an_undecided_word_behind_another_one_is_decided_by_its_own_gap(self):
        """Lane 0 decides; lanes 1 and 2 are undecided, the second one after a new draw for the rest."""
        sparse, gaps = golden(), [0, 360, 360]
        one, other = (ScriptedNoise(words) for words in ([0, GOLDEN_WORD, 0, GOLDEN_WORD, 2**64 - 1],) * 2)
        hits = [sparse.step(sparse.init(), gap, 1, one)[1] is not None for gap in gaps]
        _, easy, hit = sparse.step_many(sparse.init(), np.array(gaps), np.ones(3, np.int64), other)

        assert [False, False, True] == hits
        assert (2, True) == (easy, hit is not None)
        assert one.exhausted
        assert other.exhausted

    @pytest.mark.parametrize("chunk", [1, 7, 400])
    def test_batches_and_single_tests_use_the_same_noise(self, chunk):
        sparse = golden()
        gaps = np.random.default_rng(5).integers(-400, 400, 400)
        noise, singles = SimulatedNoise(3), SimulatedNoise(3)
        expected = [sparse.step(sparse.init(), int(gap), 1, singles)[1] is not None for gap in gaps]

        actual, state = [], sparse.init()
        while len(actual) < len(gaps):
            rest = gaps[len(actual) :][:chunk]
            state, easy, hit = sparse.step_many(state, rest, np.ones(len(rest), np.int64), noise)
            actual += [False] * easy + [True] * (hit is not None)

        assert actual == expected
        assert state.hits == sum(expected) > 10
        assert noise.words(3).tolist() == singles.words(3).tolist()

    def test_no_query_no_noise(self):
        sparse = golden()
        none = np.array([], np.int64)

        assert sparse.step_many(sparse.init(), none, none, ScriptedNoise([])) == (sparse.init(), 0, None)

    def test_a_sensitivity_beyond_one_record_is_our_bug(self):
        sparse = golden()
        with pytest.raises(InternalError, match="sensitivity"):
            sparse.step(sparse.init(), 0, 2, ScriptedNoise([0]))
        with pytest.raises(InternalError, match="sensitivity"):
            sparse.step_many(sparse.init(), np.zeros(2, np.int64), np.array([1, 2]), ScriptedNoise([0, 0]))

    def test_the_state_holds_no_secret(self):
        sparse = golden()
        state, _ = sparse.step(sparse.init(), 17, 1, ScriptedNoise([0]))

        assert attrs.asdict(state) == {"hits": 0, "threshold_noise": None}


class TestMeasure:
    def test_a_number_has_fresh_gaussian_noise_of_its_grid(self):
        sparse = plan(grid_bits=8)
        for query, bits in ((QUERY, 0), (HALF, 1)):
            noise = ScriptedNoise([-7])
            _, hit = sparse.step(sparse.init(), 10**8, 1, ScriptedNoise([2**64 - 1]))
            measured = sparse.measure(hit, query, 5, 1000, noise)

            sigma = math.ceil(2 * sparse.scale * 2**bits / 2**8)
            assert noise.scales == [("discrete_gaussian", sigma, 1)]
            assert measured.values.tolist() == [993 / (100_000 << bits)]
            assert measured.scale == sigma / (100_000 << bits)

    def test_a_partition_has_independent_noise_in_each_block(self):
        sparse = golden()
        _, hit = sparse.step(sparse.init(), 10**5, 1, ScriptedNoise([2**64 - 1]))
        counts = np.array([10, 20, 30, 40])
        noise = ScriptedNoise([1, -2, 3, -4])
        measured = sparse.measure(hit, PARTITION, 0, counts, noise)

        assert noise.scales == [("discrete_gaussian", 85, 4)]
        assert measured.values.tolist() == [11 / 1e5, 18 / 1e5, 33 / 1e5, 36 / 1e5]
        assert not np.shares_memory(measured.values, counts)


def gaussian_tail(sigma, most):
    """P(|N_Z(0, sigma^2)| > most), summed."""
    x = np.arange(0, 40 * sigma + 10)
    weights = np.exp(-(x.astype(float) ** 2) / (2 * sigma**2))
    total = 2 * weights.sum() - 1
    return 2 * weights[most + 1 :].sum() / total


class TestAccuracy:
    @pytest.mark.parametrize(("beta", "factor"), [(0.05, 1.097), (0.01, 1.527), (1e-3, 1.933), (1e-9, 3.031)])
    def test_easy_answers_err_by_threshold_and_a_double_logarithm(self, beta, factor):
        sparse = golden()
        radius = sparse.easy_radius(beta) * sparse.n

        assert radius == pytest.approx(360 + 42.25 * factor, abs=0.05)
        # P(easy) at the first gap beyond the radius
        assert math.exp(-math.exp((math.floor(radius) + 1 - 360) / 42.25)) <= beta

    def test_all_answers_share_beta(self):
        sparse = plan()

        assert sparse.easy_radius(1e-3) * 1e5 == pytest.approx(476.6, abs=1)
        assert sparse.easy_radius(1e-3, 50_000) * 1e5 == pytest.approx(519.6, abs=1)
        assert sparse.easy_radius(1e-3, 50_000) == sparse.easy_radius(1e-3 / 50_000)

    @pytest.mark.parametrize("beta", [0.4, 0.05, 1e-3, 1e-6])
    @pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(46)])
    def test_numbers_stay_within_their_radius_by_exact_summation(self, scale, beta):
        sparse = GumbelSparse(1000, 8.0, 1e-6, Fraction(11, 10), scale, 3)
        radius = round(sparse.hard_radius(QUERY, beta) * 1000)
        sigma = sparse.sigma(0)

        assert gaussian_tail(sigma, radius) <= beta
        assert radius <= max(1, sigma * math.sqrt(2 * math.log(2 / beta)) + 1)

    def test_answers_and_blocks_share_beta(self):
        sparse = golden()

        assert sparse.hard_radius(QUERY, 0.01, 4) == sparse.hard_radius(QUERY, 0.0025)
        assert sparse.hard_radius(PARTITION, 0.01, 3) == sparse.hard_radius(QUERY, 0.01 / 12)

    def test_margins_are_the_tails_of_a_union_of_tests(self):
        sparse = golden()
        hit, miss, number = (value * sparse.n for value in sparse.margins(10_000, 0.05, 50))

        assert 10_000 * -math.expm1(-math.exp(-(hit - 1) / 42.25)) <= 0.8 * 0.05
        assert 10_000 * math.exp(-math.exp((miss - 1) / 42.25)) == pytest.approx(0.1 * 0.05)
        assert 50 * 2 * stats.norm.sf((number - 1) / 85) == pytest.approx(0.1 * 0.05)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("size", "queries", "n", "error", "cutoff"),
        [
            (2**6, 10**4, 10**5, 0.0673, 1886),
            (2**10, 10**4, 10**5, 0.0764, 2434),
            (2**20, 10**6, 10**6, 0.0328, 26010),
        ],
    )
    def test_the_certificate_of_multiplicative_weights(self, size, queries, n, error, cutoff):
        def margins(c):
            wish = {"grid_bits": 18, "threshold": 1 / n, "false_hits": 0.0}
            return plan(n=n, hard_answers=c, max_queries=queries, **wish).margins(queries, 0.05, c)

        certificate = least_error(lambda alpha: mw_tight_bound(size, alpha), margins)

        assert certificate.error_bound == pytest.approx(error, abs=5e-5)
        assert certificate.cutoff == pytest.approx(cutoff, rel=1e-3)

    @pytest.mark.parametrize(
        ("epsilon", "first"), [(0.1, (4, 5, 12, 19)), (1.0, (6, 8, 15, 21)), (3.0, (8, 10, 17, 23))]
    )
    def test_gumbel_wins_from_a_few_hard_answers_on(self, epsilon, first):
        def wins(c, delta):
            gumbel = gumbel_resolution(c, 1000 * c, epsilon, delta)
            return gumbel < exponential_resolution(c, 1000 * c, epsilon)

        deltas = (1e-5, 1e-6, 1e-9, 1e-12)
        assert [wins(c, delta) for c, delta in zip(first, deltas, strict=True)] == [True] * 4
        assert [wins(c - 1, delta) for c, delta in zip(first, deltas, strict=True)] == [False] * 4
