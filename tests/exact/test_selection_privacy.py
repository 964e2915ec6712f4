"""Selection is epsilon-private: exact laws over enumerated neighbours, with mutants that the audit finds."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from onlineic.data import PrivateData
from onlineic.domain import Domain, optional
from onlineic.mechanisms import ExponentialMechanism, NoisyMax, quantile_scores
from onlineic.mechanisms import selection as _selection
from onlineic.noise import SimulatedNoise
from onlineic.offline import count, mean, most_popular, quantile
from onlineic.queries.counted import Counted
from onlineic.testing import ScriptedNoise
from support.laws import exponential_law, noisy_max_law
from support.neighbours import replaced, tables

EPSILON = 0.5
LEVELS = (0, 1, 3, 200)  # the farthest is out of reach: there the ratio is at its worst
SHARES = (0, Fraction(1, 3), Fraction(1, 2), 1)
HALF = Fraction(1, 2)


def score_pairs(size, move):
    """Scores of `size` candidates, and the same with each moved by at most `move`."""
    moves = [np.array(step) for step in itertools.product((-move, 0, move), repeat=size)]
    for scores in itertools.product(LEVELS, repeat=size):
        for step in moves:
            yield np.array(scores), np.array(scores) + step


def table_pairs(records, cells):
    """Every table, with every table that differs in one record."""
    for counts in tables(records, cells):
        for other in replaced(counts):
            yield counts, other


def worst(pairs, law):
    """The largest log-ratio of two neighbours' laws."""
    known = {}

    def logs(value):
        key = value.tobytes()
        if key not in known:
            known[key] = np.log(law(value))
        return known[key]

    return max(float(np.abs(logs(a) - logs(b)).max()) for a, b in pairs)


def released_law(release, size):
    """The law of what is released, read off the code: where its one word changes the index, by bisection."""

    def code(word):
        return release(ScriptedNoise([word, 0, 0])).code

    edges = [0]
    for index in range(size - 1):
        low, high = edges[-1], 2**64  # the first word of which more than `index` comes
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if code(middle) > index else (middle + 1, high)
        edges.append(low)
    return np.array([(high - low) / 2**64 for low, high in itertools.pairwise([*edges, 2**64])])


def survey(counts):
    cells = np.arange(len(counts))
    return PrivateData.from_counts({"x": cells}, counts, Domain.of(x=len(counts)))


class TestMechanism:
    @pytest.mark.parametrize("size", [2, 3])
    def test_exponential_mechanism_costs_epsilon_and_no_less(self, size):
        mechanism = ExponentialMechanism(EPSILON)

        loss = worst(score_pairs(size, 1), mechanism.probabilities)

        assert loss <= EPSILON * (1 + 1e-9)
        assert loss == pytest.approx(EPSILON, rel=1e-6)

    def test_half_the_scale_costs_twice_epsilon(self):
        scale = float(ExponentialMechanism(EPSILON).scale) / 2

        assert worst(score_pairs(2, 1), lambda u: exponential_law(u, scale)) == pytest.approx(2 * EPSILON)

    def test_half_the_scale_would_do_if_all_scores_moved_the_same_way(self):
        """They do where a record is added, not where one is replaced."""
        scale = float(ExponentialMechanism(EPSILON).scale) / 2
        same_way = [(u, v) for u, v in score_pairs(3, 1) if (v >= u).all() or (v <= u).all()]

        assert worst(same_way, lambda u: exponential_law(u, scale)) <= EPSILON * (1 + 1e-9)

    def test_sensitivity_stated_too_small_costs_twice_epsilon(self):
        stated = ExponentialMechanism(EPSILON, 1)
        right = ExponentialMechanism(EPSILON, 2)

        assert worst(score_pairs(2, 2), stated.probabilities) == pytest.approx(2 * EPSILON)
        assert worst(score_pairs(2, 2), right.probabilities) <= EPSILON * (1 + 1e-9)

    def test_scores_cut_at_a_distance_from_the_best_cost_no_more_and_candidates_left_out_cost_all(
        self, monkeypatch
    ):
        """The cut that keeps sums inside int64, brought near; a mutant that drops who is behind it."""
        scale, cut = float(NoisyMax(EPSILON).scale), 2
        monkeypatch.setattr(_selection, "OUT_OF_REACH", cut)
        chosen = [NoisyMax(EPSILON).select(np.array([9, 0]), ScriptedNoise([0, z])) for z in (2, 3)]
        pairs = list(score_pairs(3, 1))

        assert [0, 1] == chosen
        assert worst(pairs, lambda u: noisy_max_law(np.maximum(u, u.max() - cut), scale)) <= EPSILON * (
            1 + 1e-9
        )
        assert (
            worst(pairs, lambda u: noisy_max_law(np.where(u < u.max() - cut, u.max() - 1000, u), scale)) > 100
        )

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_price_under_zcdp_holds_for_exact_draws_and_not_for_the_noisy_maximum(self, epsilon):
        """Rényi divergence <= rho alpha with rho = epsilon^2/8; the noisy maximum costs more."""
        mechanism = ExponentialMechanism(epsilon)
        orders = [1.001, 1.5, 2.0, 4.0, 16.0, 100.0]

        def price(law, pairs):
            costs = []
            for u, v in pairs:
                p, q = np.log(law(u)), np.log(law(v))
                costs += [np.log(np.exp(a * p + (1 - a) * q).sum()) / (a - 1) / a for a in orders]
            return max(costs)

        near = [(u, v) for u, v in score_pairs(3, 1) if u.max() < 200]
        exact = price(mechanism.probabilities, near)
        noisy = price(lambda u: noisy_max_law(u, float(mechanism.scale)), near[::7])

        assert exact <= float(mechanism.zcdp) * (1 + 1e-9)
        assert epsilon > 1 or exact >= 0.95 * float(mechanism.zcdp)
        assert 1.2 * float(mechanism.zcdp) < noisy


class TestQuantile:
    @pytest.mark.parametrize("bits", [0, 3])
    @pytest.mark.parametrize("q", SHARES)
    def test_repaired_score_costs_at_most_epsilon_by_both_engines(self, q, bits):
        """The noisy maximum on a grid of a record, and of an eighth of one."""
        exponential = worst(
            table_pairs(6, 4), lambda c: ExponentialMechanism(EPSILON).probabilities(quantile_scores(c, q))
        )
        fine = NoisyMax(EPSILON, 1 << bits)
        noisy = worst(
            table_pairs(5, 3), lambda c: noisy_max_law(quantile_scores(c, q) << bits, float(fine.scale))
        )

        assert exponential <= EPSILON * (1 + 1e-9)
        assert (0.96 if 0 < q < 1 else 0.5) * EPSILON * (1 - 1e-9) <= noisy <= EPSILON * (1 + 1e-9)

    def test_difference_of_sides_with_sensitivity_1_costs_twice_as_much_as_it_says(self):
        """The score -|A - B| of the texts moves by 2 when a record is replaced: the same audit finds it."""

        def naive(counts):
            upto = np.cumsum(counts)
            return -np.abs((upto - counts) - (counts.sum() - upto))

        pairs = [*table_pairs(9, 3), (np.array([1, 0, 60, 0, 58]), np.array([0, 0, 60, 0, 59]))]
        repaired = ExponentialMechanism(EPSILON)
        stated = worst(pairs, lambda c: repaired.probabilities(naive(c)))
        right = worst(pairs, lambda c: ExponentialMechanism(EPSILON, 2).probabilities(naive(c)))

        assert stated == pytest.approx(2 * EPSILON, rel=1e-4)
        assert right <= EPSILON * (1 + 1e-9)
        assert worst(pairs, lambda c: repaired.probabilities(quantile_scores(c, HALF))) <= EPSILON

    @pytest.mark.parametrize("q", [0, 1])
    def test_extreme_quantiles_cost_half_of_epsilon(self, q):
        """Their scores all move the same way: least and largest value could be had with half the noise."""
        loss = worst(
            table_pairs(12, 3), lambda c: ExponentialMechanism(EPSILON).probabilities(quantile_scores(c, q))
        )

        assert loss == pytest.approx(EPSILON / 2, rel=0.03)
        assert loss <= EPSILON / 2 * (1 + 1e-9)

    @pytest.mark.parametrize("q", [0, HALF])
    def test_law_of_the_released_cell_is_private_and_as_computed(self, q):
        def law(counts):
            return released_law(
                lambda noise: quantile(survey(counts), "x", q, EPSILON, mechanism="exponential", noise=noise),
                len(counts),
            )

        counts = np.array([3, 0, 1])

        assert worst(table_pairs(3, 3), law) <= EPSILON * (1 + 1e-9)
        assert law(counts).tolist() == pytest.approx(
            ExponentialMechanism(EPSILON).probabilities(quantile_scores(counts, q)).tolist(), rel=1e-12
        )

    def test_private_number_of_missing_values_costs_no_more(self):
        """A record may gain or lose its value, which moves n of the quantile."""
        domain = Domain.of(x=optional(range(3)))

        def law(counts):
            data = PrivateData.from_counts({"x": [0, 1, 2, None]}, counts, domain)
            return released_law(
                lambda noise: quantile(data, "x", HALF, EPSILON, mechanism="exponential", noise=noise), 3
            )

        assert worst(table_pairs(2, 4), law) <= EPSILON * (1 + 1e-9)


class TestMostPopular:
    def test_counts_cost_at_most_epsilon(self):
        mechanism = ExponentialMechanism(EPSILON)

        exponential = worst(table_pairs(30, 3), mechanism.probabilities)
        noisy = worst(table_pairs(30, 3), lambda c: noisy_max_law(c << 3, float(mechanism.scale) * 8))

        assert exponential <= EPSILON * (1 + 1e-9)
        assert exponential >= 0.99 * EPSILON
        assert 0.99 * EPSILON <= noisy <= EPSILON * (1 + 1e-9)

    def test_law_of_the_released_value_is_private(self):
        def law(counts):
            return released_law(
                lambda noise: most_popular(
                    survey(counts), "x", EPSILON, mechanism="exponential", noise=noise
                ),
                len(counts),
            )

        assert worst(table_pairs(3, 3), law) <= EPSILON * (1 + 1e-9)

    def test_voters_with_many_votes_cost_no_more(self):
        """Two voters and three films, any subset each: all scores may move, each by one."""
        ballots = [np.array(ballot) for ballot in itertools.product((0, 1), repeat=3)]
        pairs = [(rest + one, rest + other) for rest in ballots for one in ballots for other in ballots]

        loss = worst(pairs, ExponentialMechanism(EPSILON).probabilities)

        assert 0.4 * EPSILON < loss <= EPSILON * (1 + 1e-9)


def added_pairs(records, cells):
    """Every table of at most so many records, with every table that has one more."""
    for many in range(records + 1):
        for counts in tables(many, cells) if many else [np.zeros(cells, np.int64)]:
            for cell in np.eye(cells, dtype=np.int64):
                yield counts, counts + cell


def private_survey(counts):
    cells = np.arange(len(counts))
    return PrivateData.from_counts(
        {"x": cells}, counts, Domain.of(x=len(counts)), neighbours="add-remove", n_at_most=100
    )


COUNTED = Counted(4, Fraction(1), 0.01)  # whatever the table


class TestRecordsThatComeOrGo:
    def test_the_most_popular_needs_half_the_noise(self):
        def law(counts):
            return released_law(
                lambda noise: most_popular(
                    private_survey(counts),
                    "x",
                    EPSILON,
                    mechanism="exponential",
                    counted=COUNTED,
                    noise=noise,
                ),
                len(counts),
            )

        scale = float(NoisyMax(EPSILON, 8).scale)
        noisy = worst(added_pairs(20, 3), lambda c: noisy_max_law(c << 4, scale))

        assert worst(added_pairs(2, 3), law) <= EPSILON * (1 + 1e-9)
        assert 0.95 * EPSILON < noisy <= EPSILON * (1 + 1e-9)
        # the slip of half the noise where a record is replaced
        assert worst(table_pairs(20, 3), lambda c: noisy_max_law(c << 4, scale)) > 1.8 * EPSILON

    @pytest.mark.parametrize("q", SHARES)
    def test_quantiles_cost_epsilon_and_half_the_noise_twice_that(self, q):
        def law(counts):
            return released_law(
                lambda noise: quantile(
                    private_survey(counts),
                    "x",
                    q,
                    EPSILON,
                    mechanism="exponential",
                    counted=COUNTED,
                    noise=noise,
                ),
                len(counts),
            )

        mechanism = ExponentialMechanism(EPSILON)

        assert worst(added_pairs(2, 3), law) <= EPSILON * (1 + 1e-9)
        assert worst(
            added_pairs(8, 4), lambda c: mechanism.probabilities(quantile_scores(c, q))
        ) <= EPSILON * (1 + 1e-9)
        if q == Fraction(1, 3):  # some scores rise where others fall: they are not of those that need half
            twice = worst(added_pairs(12, 4), lambda c: mechanism.probabilities(2 * quantile_scores(c, q)))
            assert twice > 1.2 * EPSILON

    def test_a_record_moves_the_count_by_one_and_a_mean_by_its_width(self):
        domain = Domain.of(x=range(5, 9))

        class Nothing(SimulatedNoise):
            def discrete_laplace(self, scale, size):
                scales.append(scale)
                return np.zeros(size, np.int64)

        def of(counts, ask):
            data = PrivateData.from_counts({"x": range(5, 9)}, counts, domain, neighbours="add-remove")
            return ask(data, Nothing(1))

        for ask, width in (
            (lambda data, noise: count(data, EPSILON, noise=noise).n, 1),
            (lambda data, noise: mean(data, "x", EPSILON, counted=COUNTED, noise=noise).total, 3),
        ):
            scales: list[Fraction] = []
            moved = [
                abs(of(counts, ask) - of(more, ask)) for counts, more in added_pairs(3, 4) if counts.sum()
            ]
            assert width == max(moved)
            assert {Fraction(width) / Fraction(EPSILON)} == {*scales}
