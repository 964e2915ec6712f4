"""Private quantiles and most frequent values: the scores, the noise that is asked, and how far they miss."""

import asyncio
import math
import traceback
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from onlineic.data import PrivateData
from onlineic.domain import Domain, binned, optional
from onlineic.errors import BudgetsAddWarning, InvalidParameterError, InvalidQueryError, SessionSealedError
from onlineic.mechanisms import ExponentialMechanism, NoisyMax, exponential_bound, quantile_scores
from onlineic.noise import SimulatedNoise, SystemNoise
from onlineic.offline import median, most_popular, quantile
from onlineic.testing import ScriptedNoise
from support.neighbours import replaced, tables

COUNTEREXAMPLE = np.array([0, 0, 40, 0, 0, 0, 60, 0, 0, 0])  # 40 records in cell 3, 60 in cell 7 of 10
SHARES = (0, Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), 1)


def naive_upto(counts):
    """-|#{<= y} - n/2|, as in a lecture."""
    return -np.abs(np.cumsum(counts) - counts.sum() / 2)


def naive_sides(counts):
    """-|A - B|."""
    upto = np.cumsum(counts)
    return -np.abs((upto - counts) - (counts.sum() - upto))


def is_quantile(counts, y, q):
    """#{< y} <= floor(q n) and #{> y} <= floor((1 - q) n)."""
    n = counts.sum()
    return counts[:y].sum() <= math.floor(q * n) and counts[y + 1 :].sum() <= math.floor((1 - q) * n)


def distance(counts, y, q):
    """The least number of replaced records that make y a q-quantile, by trying all tables."""
    return min(
        int(np.abs(counts - other).sum()) // 2
        for other in tables(int(counts.sum()), len(counts))
        if is_quantile(other, y, q)
    )


def grades(counts):
    codes = np.flatnonzero(counts)
    domain = Domain.of(grade=range(1, len(counts) + 1))
    return PrivateData.from_counts({"grade": codes + 1}, np.asarray(counts)[codes], domain)


class TestScores:
    def test_repaired_score_finds_the_median_that_the_scores_of_the_texts_rank_last(self):
        """40 records in cell 3 and 60 in cell 7: the naive scores rank empty cells before the median."""
        repaired = [-50, -50, -10, -10, -10, -10, 0, -50, -50, -50]

        assert repaired == quantile_scores(COUNTEREXAMPLE, Fraction(1, 2)).tolist()
        assert [-10] * 4 == naive_upto(COUNTEREXAMPLE)[2:6].tolist()
        assert naive_upto(COUNTEREXAMPLE)[6] == naive_upto(COUNTEREXAMPLE).min() == -50
        assert [-20] * 3 == naive_sides(COUNTEREXAMPLE)[3:6].tolist()
        assert -40 == naive_sides(COUNTEREXAMPLE)[6] < naive_sides(COUNTEREXAMPLE)[3]

    def test_score_upto_is_blind_where_all_records_share_a_cell(self):
        counts = np.array([100, 0, 0, 0])

        assert 1 == len(set(naive_upto(counts).tolist()))
        assert [0, -50, -50, -50] == quantile_scores(counts, 0.5).tolist()

    @pytest.mark.parametrize("q", SHARES)
    @pytest.mark.parametrize(("records", "cells"), [(1, 3), (4, 3), (5, 4), (6, 3)])
    def test_score_is_minus_the_number_of_records_to_replace(self, records, cells, q):
        for counts in tables(records, cells):
            assert [-distance(counts, y, q) for y in range(cells)] == quantile_scores(counts, q).tolist()

    @pytest.mark.parametrize("q", SHARES)
    def test_best_score_is_zero_and_is_reached_by_the_order_statistic(self, q):
        for counts in tables(5, 4):
            ordered = np.repeat(np.arange(4), counts)

            assert 0 == quantile_scores(counts, q).max()
            assert 0 == quantile_scores(counts, q)[ordered[max(math.ceil(q * 5), 1) - 1]]

    @pytest.mark.parametrize("q", SHARES)
    def test_replaced_record_moves_a_score_by_one(self, q):
        moved = max(
            np.abs(quantile_scores(counts, q) - quantile_scores(other, q)).max()
            for counts in tables(6, 4)
            for other in replaced(counts)
        )

        assert 1 == moved

    def test_replaced_record_moves_the_difference_of_sides_by_two(self):
        moved = max(
            np.abs(naive_sides(counts) - naive_sides(other)).max()
            for counts in tables(6, 4)
            for other in replaced(counts)
        )

        assert 2 == moved

    @pytest.mark.parametrize("q", SHARES)
    def test_lost_value_moves_a_score_by_one_at_most_though_it_moves_n(self, q):
        for counts in tables(5, 4):
            for cell in np.flatnonzero(counts):
                fewer = counts - np.eye(4, dtype=np.int64)[cell]

                assert np.abs(quantile_scores(counts, q) - quantile_scores(fewer, q)).max() <= 1

    def test_float_share_is_read_as_the_decimal_it_prints(self):
        """In floats .29 times 100 is 28.999999999999996."""
        counts = np.arange(1, 101)

        for hundredths in range(101):
            exact = Fraction(hundredths, 100)

            assert (
                quantile_scores(counts, exact).tolist() == quantile_scores(counts, hundredths / 100).tolist()
            )

    def test_narrow_and_unsigned_counts_do_not_wrap(self):
        exact = quantile_scores(COUNTEREXAMPLE, 0.5).tolist()

        for kind in (np.int8, np.uint8, np.uint32):
            assert exact == quantile_scores(COUNTEREXAMPLE.astype(kind), 0.5).tolist()
        with pytest.raises(InvalidParameterError, match="int64"):
            quantile_scores(COUNTEREXAMPLE.astype(np.uint64), 0.5)


class TestQuantile:
    def test_noisy_max_draws_one_fine_geometric_a_candidate(self):
        noise = ScriptedNoise([0] * 10)

        choice = median(grades(COUNTEREXAMPLE), "grade", 0.5, noise=noise)

        assert (7, 6) == (choice.value, choice.code)
        assert [("geometric", Fraction(4 * 2**16), 10)] == noise.scales

    def test_noise_of_more_than_the_loss_changes_the_choice(self):
        """Cell 4 is 10 records away; ties go to the lowest index."""
        data = grades(COUNTEREXAMPLE)
        chosen = [
            median(data, "grade", 0.5, noise=ScriptedNoise([0, 0, 0, z, 0, 0, 0, 0, 0, 0])).value
            for z in (10 * 2**16 - 1, 10 * 2**16)
        ]

        assert [7, 4] == chosen

    def test_exponential_draws_one_word_at_the_scale_of_a_record(self):
        noise = ScriptedNoise([0, 2**64 - 1])
        data = grades(np.array([5, 5, 5]))

        first, last = (median(data, "grade", 0.5, mechanism="exponential", noise=noise) for _ in range(2))

        assert (1, 3) == (first.value, last.value)
        assert [("words", None, 1)] * 2 == noise.scales

    @pytest.mark.parametrize("q", SHARES)
    def test_quantiles_of_bins_and_of_a_column_among_others(self, q):
        values = np.random.default_rng(5).integers(0, 40, 500)
        domain = Domain.of(sex=["F", "M"], x=binned([0, 10, 20, 30, 40]), other=3)
        columns = {"sex": ["F"] * 500, "x": values, "other": values % 3}
        choice = quantile(PrivateData.from_records(columns, domain), "x", q, 20.0, noise=SimulatedNoise(1))
        counts = np.bincount(values // 10, minlength=4)

        assert is_quantile(counts, choice.code, q)
        assert f"[{10 * choice.code}, {10 * choice.code + 10})" == choice.value

    def test_records_without_a_value_are_left_out(self):
        domain = Domain.of(x=optional(range(5)))
        data = PrivateData.from_counts({"x": [1, 4, None]}, [300, 100, 5000], domain)
        noise = ScriptedNoise([0] * 10)

        assert 1 == median(data, "x", 1.0, noise=noise).value
        assert 1 == most_popular(data, "x", 1.0, noise=noise).value
        assert [5, 5] == [size for _, _, size in noise.scales]

    def test_error_bound_is_the_engine_radius_over_n(self):
        data = grades(100 * COUNTEREXAMPLE)
        fine = NoisyMax(0.5, 2**16).radius(10, 0.01)
        noise = SimulatedNoise(0)

        assert (fine >> 16) / 10_000 == median(data, "grade", 0.5, beta=0.01, noise=noise).error_bound
        assert (
            ExponentialMechanism(0.5).radius(10, 0.01) / 10_000
            == median(data, "grade", 0.5, beta=0.01, mechanism="exponential", noise=noise).error_bound
        )
        assert fine >> 16 == math.floor(4 * math.log(9 / (2 * 0.01)))

    @pytest.mark.parametrize(("q", "most"), [(0, 1.0), (0.5, 0.5), (0.9, 0.9), (1, 1.0)])
    def test_error_bound_never_exceeds_what_a_choice_can_miss(self, q, most):
        tiny = quantile(grades([5, 5]), "grade", q, 1e-3, noise=SimulatedNoise(0))

        assert most == tiny.error_bound

    def test_scale_stays_in_range_at_the_least_epsilon_and_the_largest_n(self):
        data = PrivateData.from_counts({"x": [0, 1]}, [2**52, 2**52], Domain.of(x=3))
        noise = ScriptedNoise([0] * 6)

        quantile(data, "x", 0.5, 1.0, noise=noise)
        quantile(grades([1, 1, 1]), "grade", 0.5, 2.0**-40, noise=noise)

        assert [Fraction(2 * 2**7), Fraction(2**47)] == [scale for _, scale, _ in noise.scales]


class TestMostPopular:
    def test_largest_count_wins_without_noise_and_scores_are_counts(self):
        domain = Domain.of(film=["Metropolis", "Nosferatu", "Vampyr"])
        data = PrivateData.from_counts({"film": list(domain.attributes[0].labels)}, [30, 70, 69], domain)
        names = [
            most_popular(data, "film", 1.0, noise=ScriptedNoise([0, 0, z])).value for z in (2**16, 2**16 + 1)
        ]

        assert ["Nosferatu", "Vampyr"] == names

    def test_error_bound_is_a_share_of_all_records(self):
        data = grades(COUNTEREXAMPLE)

        assert most_popular(data, "grade", 1e-3, noise=SimulatedNoise(0)).error_bound == 1.0
        assert NoisyMax(1.0, 2**16).radius(10, 0.05) // 2**16 == round(
            100 * most_popular(data, "grade", 1.0, noise=SimulatedNoise(0)).error_bound
        )


class TestExtremes:
    @pytest.mark.parametrize("scores", [[2**63 - 1, 0], [2**63 - 1, -(2**63)], [2**62, 2**62 - 6]])
    def test_score_plus_noise_does_not_wrap(self, scores):
        chosen = [NoisyMax(1.0).select(np.array(scores), ScriptedNoise([z, 5])) for z in (0, 5, 2**62)]

        assert [0, 0, 0] == chosen

    def test_last_bits_of_scores_far_from_zero_still_decide(self):
        chosen = [
            NoisyMax(1.0).select(np.array([-(2**63) + 9, -(2**63)]), ScriptedNoise([0, z])) for z in (9, 10)
        ]

        assert [0, 1] == chosen

    @pytest.mark.parametrize("engine", [NoisyMax, ExponentialMechanism])
    @pytest.mark.parametrize("epsilon", [0.001, 1.0, 20.0])
    @pytest.mark.parametrize("beta", [5e-324, 1e-310, 1e-300, 1e-9, 0.4])
    def test_radius_is_right_down_to_the_least_beta(self, engine, epsilon, beta):
        """By Decimal: 1/beta overflows, and exp(-745) is no longer a number with any digits."""
        mechanism, others = engine(epsilon), 10**6
        step = 1 / (Decimal(mechanism.scale.numerator) / mechanism.scale.denominator)
        share = 1 + (-step).exp() if engine is NoisyMax else 1
        limit = Decimal(beta) if engine is NoisyMax else Decimal(beta) / (1 - Decimal(beta))

        radius = mechanism.radius(others + 1, beta)

        assert others * (-(radius + 1) * step).exp() / share <= limit * (1 + Decimal("1e-11"))
        assert others * (-radius * step).exp() / share > limit * (1 - Decimal("1e-11"))

    @pytest.mark.parametrize("engine", [NoisyMax, ExponentialMechanism])
    def test_radius_of_more_candidates_than_floats_have(self, engine):
        assert engine(1.0).radius(10**400, 0.5) == pytest.approx(800 * math.log(10), abs=2)
        assert 800 * math.log(10) + 2 * math.log(20) == pytest.approx(exponential_bound(1.0, 10**400, 0.05))

    def test_bound_of_the_book_at_the_least_beta(self):
        assert 2 * math.log(3) - 2 * math.log(5e-324) == pytest.approx(exponential_bound(1.0, 3, 5e-324))


class TestPromises:
    def test_choice_is_private_with_the_system_noise_and_stamped_without(self):
        data = grades(1000 * COUNTEREXAMPLE)
        private, simulated = median(data, "grade", 1.0), median(data, "grade", 1.0, noise=SimulatedNoise(1))

        assert private.private
        assert not simulated.private
        assert "Choice(grade = 7, within 8e-05 of the records at 0.95)" == repr(private)
        assert "NOT PRIVATE" in repr(simulated)
        with pytest.warns(BudgetsAddWarning):
            assert median(data, "grade", 1.0, noise=SystemNoise()).private

    def test_each_choice_reads_once_and_charges_the_table(self):
        data = grades(COUNTEREXAMPLE)

        median(data, "grade", 0.25)
        with pytest.warns(BudgetsAddWarning, match="cost epsilon=0.75"):
            most_popular(data, "grade", 0.5, mechanism="exponential")

        assert 2 == data.reads
        assert [0.25, 0.5] == [budget.epsilon for budget in data.budgets]

    @pytest.mark.parametrize(
        ("failure", "reached"),
        [
            (ValueError(40), SessionSealedError),
            (ExceptionGroup("40", [ValueError(40)]), SessionSealedError),
            (BaseExceptionGroup("40", [KeyboardInterrupt(40)]), SessionSealedError),
            (KeyboardInterrupt(), KeyboardInterrupt),
            (asyncio.CancelledError(), asyncio.CancelledError),
            (type("PanicException", (BaseException,), {})(40), SessionSealedError),
        ],
    )
    @pytest.mark.parametrize("second", [None, KeyboardInterrupt, RecursionError])
    def test_failure_leaves_no_private_frame_by_any_way(self, failure, reached, second, monkeypatch):
        """Neither chained, nor in a group, nor through a second interrupt while the first is handled."""

        class Failing(SystemNoise):
            def geometric(self, scale, size):
                raise failure

        def again(*_):
            raise second

        data = grades(COUNTEREXAMPLE)
        if second is not None:
            monkeypatch.setattr("onlineic.data.release._place_of", again)
            reached = KeyboardInterrupt if second is KeyboardInterrupt else SessionSealedError

        with pytest.raises(reached) as caught:
            median(data, "grade", 1.0, noise=Failing())
        assert reached is caught.type
        assert (None, None) == (caught.value.__cause__, caught.value.__context__)
        left = [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
        assert ["median", "quantile", "_chosen", "read", "released", "guarded"] == left[1:]
        assert "40" not in str(caught.value)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"q": 1.5},
            {"q": Fraction(-1, 3)},
            {"q": math.nan},
            {"q": True},
            {"q": "0.5"},
            {"epsilon": 0.0},
            {"beta": 0.0},
            {"beta": 1.0},
            {"mechanism": "gumbel"},
            {"mechanism": ["noisy max"]},
            {"noise": 7},
            {"data": np.zeros(3)},
        ],
    )
    def test_wrong_parameter_is_refused_before_anything_is_read_or_spent(self, wrong):
        data = grades(COUNTEREXAMPLE)
        given = {"data": data, "attribute": "grade", "q": 0.5, "epsilon": 1.0} | wrong

        with pytest.raises(InvalidParameterError):
            quantile(**given)
        assert ([], 0) == (list(data.budgets), data.reads)

    @pytest.mark.parametrize("attribute", ["sex", "agee"])
    def test_attribute_without_order_or_unknown_is_refused(self, attribute):
        data = PrivateData.from_records({"sex": ["F"], "age": [3]}, Domain.of(sex=["F", "M"], age=range(9)))

        with pytest.raises(InvalidQueryError, match=r"ordered|did you mean"):
            median(data, attribute, 1.0)
        assert ([], 0) == (list(data.budgets), data.reads)


@pytest.mark.parametrize("beta", [0.3, 0.05])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_tail_bound_of_a_median_holds_in_the_exact_law(epsilon, beta):
    """Theorem 3.11 with exact probabilities: never above beta, and met by a table made for it.

    All records are in one cell, and as many that every other cell loses just too much; what is missing to
    beta is the step of one record.
    """
    mechanism = ExponentialMechanism(epsilon)
    generator = np.random.default_rng(7)
    radius = mechanism.radius(12, beta)
    worst = 0.0
    for _ in range(300):
        counts = generator.multinomial(generator.integers(1, 400), generator.dirichlet(np.full(12, 0.3)))
        scores = quantile_scores(counts, 0.5)
        worst = max(worst, mechanism.probabilities(scores)[-scores > radius].sum())
    adverse = np.zeros(12, np.int64)
    adverse[0] = 2 * (radius + 1)  # all other cells lose radius + 1 records: just too much
    met = mechanism.probabilities(quantile_scores(adverse, 0.5))[1:].sum()

    assert worst <= beta
    assert beta * math.exp(-epsilon / 2) <= met <= beta


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["noisy max", "exponential"])
def test_choice_misses_more_than_its_bound_as_often_as_the_exact_law_says(mechanism):
    """Two-sided, against the law of the worst table; a scale 10 % off is found.

    Of 200 candidates all but one lose r + 1 records. With a continuous one-sided exponential noise the best
    wins with probability the integral of (1 - u w)^199 over u in (0, 1), w = e^(-(r + 1)/scale).
    """
    runs, size, epsilon, beta = 4000, 200, 0.5, 0.3
    engine = NoisyMax(epsilon, 2**16) if mechanism == "noisy max" else ExponentialMechanism(epsilon)
    radius = engine.radius(size, beta) >> (16 if mechanism == "noisy max" else 0)
    data = grades(np.eye(1, size, dtype=np.int64)[0] * 2 * (radius + 1))
    noise = SimulatedNoise(29)
    choices = [
        quantile(data, "grade", 0.5, epsilon, beta=beta, mechanism=mechanism, noise=noise)
        for _ in range(runs)
    ]
    failed = sum(choice.code > 0 for choice in choices)

    def failing(scale):
        weight = math.exp(-(radius + 1) / scale)
        if mechanism == "exponential":
            return (size - 1) * weight / (1 + (size - 1) * weight)
        return 1 - (1 - (1 - weight) ** size) / (size * weight)

    assert radius / data.n == choices[0].error_bound
    assert failing(4.0) <= beta
    assert stats.binomtest(failed, runs, failing(4.0)).pvalue > 1e-9
    assert stats.binomtest(failed, runs, failing(3.6)).pvalue < 1e-9
    assert stats.binomtest(failed, runs, failing(4.4)).pvalue < 1e-9
