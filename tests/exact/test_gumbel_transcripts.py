"""The privacy of `GumbelSparse` without sampling: lemmas, whole transcripts, the filter as a game."""

import itertools
import math
from fractions import Fraction
from functools import cache

import attrs
import numpy as np
import pytest
from scipy import stats

from onlineic.accounting import TICK, Budget, Charge, gumbel_charge, renyi_capacity
from onlineic.domain import Domain
from onlineic.queries import where
from onlineic.sparse import GumbelSparse
from onlineic.sparse.gumbel import gumbel_scale

QUERY = where(age=1).bind(Domain.of(age=4), 0)


def theta(alpha, s):
    return -(alpha - 1) * s - np.log(alpha - (alpha - 1) * np.exp(s))


def log_moment(alpha, p, q):
    """ln sum p^alpha q^(1 - alpha) from logarithms of probabilities."""
    terms = alpha * np.asarray(p) + (1 - alpha) * np.asarray(q)
    top = terms.max()
    return float(top + math.log(np.exp(terms - top).sum()))


def gumbel_hit(x):
    """P(hit) at x = (T - d)/b; and of the mutants below."""
    return -np.expm1(-np.exp(-x))


LAWS = {
    "gumbel": gumbel_hit,
    "minimum type": lambda x: np.exp(-np.exp(x)),
    "exponential": lambda x: np.exp(-np.maximum(x, 0.0)),
    "laplace": lambda x: np.where(x > 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2),
    "gaussian": stats.norm.sf,
    "logistic": lambda x: 1 / (1 + np.exp(x)),
}


class TestLemmas:
    def test_the_price_of_a_shift_grows_with_its_size_and_more_upwards(self):
        """Lemma 1: 0 <= theta(s) <= theta(eta) for |s| <= eta."""
        generator = np.random.default_rng(1)
        for _ in range(500):
            alpha = 1 + 10 ** generator.uniform(-2, 3)
            eta = math.log1p(generator.uniform(0.001, 0.999) / (alpha - 1))
            values = theta(alpha, np.linspace(-eta, eta, 101))

            assert values.min() >= -1e-13 * alpha
            assert values.max() <= values[-1] * (1 + 1e-12)

    def test_any_list_of_slots_costs_at_most_one_hit(self):
        """Lemma 2, 20,000 lists of 5 slots with hazards from 1e-26 to 1e4 and any signs."""
        generator = np.random.default_rng(2)
        size, slots = 20_000, 5
        alpha = 1 + 10 ** generator.uniform(-2, 3, (size, 1))
        eta = np.log1p(generator.uniform(0.001, 0.98, (size, 1)) / (alpha - 1))
        hazard = 10.0 ** generator.uniform(-26, 4, (size, slots))
        s = eta * np.where(generator.random((size, slots)) < 0.5, generator.uniform(-1, 1, (size, slots)), 1)
        logs = []
        for a in (hazard, hazard * np.exp(s)):
            before = np.cumsum(a, axis=1) - a
            logs.append((np.log(-np.expm1(-a)) - before, -a.sum(axis=1, keepdims=True)))
        (hit, easy), (hit_other, easy_other) = logs
        fired = np.exp(alpha * hit + (1 - alpha) * hit_other - theta(alpha, eta)).sum(axis=1)
        silent = np.exp(alpha * easy + (1 - alpha) * easy_other)[:, 0]

        assert (fired + silent).max() <= 1 + 1e-9
        assert (fired + silent).max() >= 0.99

    @pytest.mark.parametrize("alpha", [1.5, 4.0, 19.0])
    @pytest.mark.parametrize("signed", [False, True])
    def test_index_and_value_of_the_largest_noisy_gap_cost_no_more_than_the_bit(self, alpha, signed):
        """Full laws of (index, value) or (side, value) on the integers, from distribution functions alone."""
        generator = np.random.default_rng(3)
        closest = 0.0
        for _ in range(60):
            scale = float(generator.uniform(1.2, 3) / math.log1p(1 / (alpha - 1)))
            threshold = int(generator.integers(-10, 10))
            if signed:
                gap = int(generator.integers(-5, 5))
                d = np.array([gap, -gap])
                moved = d + generator.choice([-1, 1]) * np.array([1, -1])
            else:
                d = generator.integers(-8, 8, 3)
                moved = d + generator.integers(-1, 2, 3)
            law, other = (max_law(x, threshold, scale) for x in (d, moved))
            hit = log_moment(alpha, law[0], other[0]) - theta(alpha, 1 / scale)
            moment = np.exp(hit) + np.exp(alpha * law[1] + (1 - alpha) * other[1])
            closest = max(closest, float(moment))

            assert moment <= 1 + 1e-9
        assert closest >= 0.98

    @pytest.mark.parametrize("sigma", [1, 3, 20])
    def test_the_discrete_gaussian_meets_its_price_at_integer_shifts(self, sigma):
        """Lemma 3."""
        x = np.arange(-60 * sigma, 60 * sigma + 1)
        log = -(x.astype(float) ** 2) / (2 * sigma**2)
        log -= math.log(np.exp(log).sum())
        for shift, alpha in itertools.product((1, 2), (1.5, 2.0, 19.0)):
            moment = log_moment(alpha, log[:-shift], log[shift:]) / (alpha - 1)

            assert moment == pytest.approx(alpha * shift**2 / (2 * sigma**2), rel=1e-6)


def max_law(d, threshold, scale):
    """Log-probabilities of (value >= threshold, lowest index of the maximum), and of easy."""
    values = np.arange(threshold, threshold + 40 + int(60 * scale))[:, None]

    def below(m):  # ln P(Z <= m)
        return -np.exp(-(m + 1) / scale)

    rows = []
    for i in range(len(d)):
        here = below(values - d[i])
        under = below(values - 1 - d[i])
        others = sum(below(values - d[j] - (j < i)) for j in range(len(d)) if j != i)
        rows.append(here + np.log(-np.expm1(under - here)) + others)
    return np.concatenate(rows).ravel(), float(sum(below(threshold - 1 - d[i]) for i in range(len(d))))


def transcripts(law, gaps, threshold, scale, hits):
    """Log-probability of every 0/1 transcript that stops after `hits` ones."""
    results = {(): 0.0}
    for gap in gaps:
        p = float(law(np.float64((threshold - gap) / scale)))
        grown = {}
        for past, log in results.items():
            if sum(past) == hits:
                grown[past] = log
                continue
            grown[(*past, 0)] = log + (math.log1p(-p) if p < 1 else -math.inf)
            grown[(*past, 1)] = log + (math.log(p) if p > 0 else -math.inf)
        results = grown
    return results


STREAMS = [
    ((0,) * 8, (1,) * 8),
    ((4,) * 8, (5,) * 8),
    ((8,) * 8, (9,) * 8),
    ((12,) * 8, (13,) * 8),
    ((0, 1, 0, 3, -2, 5, 0, 1), (1, 0, 1, 2, -1, 6, -1, 2)),
    ((9, 1, 9, 3, 7, 5, 0, 12), (10, 0, 8, 4, 8, 4, 1, 13)),
    ((20, -4, 8, -4, 8, -4, 8, 8), (21, -5, 9, -5, 9, -5, 9, 9)),
]


def worst_share(law, alpha, scale, hits, real_scale=None):
    """Largest ln moment / ((alpha - 1) hits charge) over the streams, both orders, thresholds 6 and 9."""
    limit = hits * theta(alpha, 1 / scale)
    worst = -math.inf
    for (gaps, moved), threshold in itertools.product(STREAMS, (6, 9)):
        left, right = (
            transcripts(law, stream, threshold, real_scale or scale, hits) for stream in (gaps, moved)
        )
        for p, q in ((left, right), (right, left)):
            keys = [key for key in p if p[key] > -math.inf]
            if any(q[key] == -math.inf for key in keys):
                return math.inf
            worst = max(worst, log_moment(alpha, [p[k] for k in keys], [q[k] for k in keys]) / limit)
    return worst


class TestTranscripts:
    def test_there_are_93_transcripts_of_8_tests_with_3_hits(self):
        assert len(transcripts(gumbel_hit, (0,) * 8, 3, 2.0, 3)) == 93

    @pytest.mark.parametrize("hits", [1, 2, 3])
    @pytest.mark.parametrize(("alpha", "scale"), [(2.0, 2.0), (4.0, 5.0), (12.0, 15.0)])
    def test_the_moment_of_whole_transcripts_stays_below_the_price(self, hits, alpha, scale):
        assert worst_share(gumbel_hit, alpha, scale, hits) <= 1 + 1e-9

    @pytest.mark.parametrize("mutant", ["minimum type", "exponential", "laplace", "gaussian"])
    def test_other_noises_exceed_the_price(self, mutant):
        assert worst_share(LAWS[mutant], 4.0, 5.0, 1) > 1.3

    def test_logistic_noise_has_the_same_price(self):
        """Private, though not the stated law: conformance alone finds it."""
        assert worst_share(LAWS["logistic"], 4.0, 5.0, 2) <= 1 + 1e-9

    def test_half_the_scale_exceeds_the_price(self):
        assert worst_share(gumbel_hit, 2.0, 5.0, 2, real_scale=2.5) > 1.5

    @pytest.mark.parametrize("hits", [1, 2, 3])
    def test_the_hockey_stick_stays_below_the_certified_delta(self, hits):
        """b = 5, order 4, epsilon chosen so that the certificate is 1e-3."""
        alpha, scale, delta = 4.0, 5.0, 1e-3
        spent = hits * theta(alpha, 1 / scale) / (alpha - 1)
        epsilon = spent + math.log(1 - 1 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1)
        for (gaps, moved), threshold in itertools.product(STREAMS, (6, 9)):
            left, right = (
                transcripts(gumbel_hit, stream, threshold, scale, hits) for stream in (gaps, moved)
            )
            for p, q in ((left, right), (right, left)):
                stick = sum(max(0.0, math.exp(p[k]) - math.exp(epsilon + q[k])) for k in p)

                assert stick <= delta


def hockey_stick(hits, scale, law=gumbel_hit, epsilon=1.0, shift=1.0):
    """Largest exact delta of constant streams that run until the last paid hit, both orders (test only)."""
    worst = 0.0
    for x in np.linspace(-3.0, 6.5, 77):
        for sign in (1, -1):
            p, q = float(law(np.float64(x))), float(law(np.float64(x - sign * shift / scale)))
            if not 1e-3 < p < 1:
                continue
            most = int(hits / p + 14 * math.sqrt(hits) / p + 40 / p)
            m = np.arange(most)
            weight = stats.nbinom.pmf(m, hits, p)
            with np.errstate(divide="ignore", invalid="ignore"):
                loss = hits * (math.log(p) - math.log(q) if q > 0 else math.inf)
                silent = math.log1p(-p) - math.log1p(-q) if q < 1 else math.inf
                loss = loss + np.where(m > 0, m * silent, 0.0)
            worst = max(worst, float((weight * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum()))
    return worst


class TestExactDelta:
    """The worst constant stream at the calibrated scale without a fresh answer, claim (1, 1e-6)."""

    scale = staticmethod(lambda count: gumbel_scale(count, 1.0, 1e-6, ratio=math.inf)[0])

    @pytest.mark.parametrize(("count", "expected"), [(10, 1.4e-7), (50, 1.7e-7)])
    def test_the_right_variant_is_well_inside_its_claim(self, count, expected):
        assert hockey_stick(count, self.scale(count)) == pytest.approx(expected, rel=0.05)

    @pytest.mark.parametrize(
        ("count", "twice_the_hits", "half_the_scale", "laplace"),
        [(10, 6.2e-6, 5.9e-4, 1.6e-5), (50, 2.4e-5, 1.3e-3, 3.6e-5)],
    )
    def test_mutants_exceed_the_claim_by_the_published_amount(
        self, count, twice_the_hits, half_the_scale, laplace
    ):
        scale = self.scale(count)

        assert hockey_stick(2 * count, scale) == pytest.approx(twice_the_hits, rel=0.03)
        assert hockey_stick(count, scale / 2) == pytest.approx(half_the_scale, rel=0.03)
        assert hockey_stick(count, scale, LAWS["laplace"]) == pytest.approx(laplace, rel=0.03)

    @pytest.mark.parametrize("mutant", ["minimum type", "gaussian", "exponential"])
    @pytest.mark.parametrize("count", [10, 50])
    def test_light_tails_exceed_the_claim_a_thousandfold(self, mutant, count):
        """Their largest delta is 1 far out in the tail; hits of probability 1e-3 show enough."""
        assert hockey_stick(count, self.scale(count), LAWS[mutant]) > 1e-3

    def test_one_hit_too_many_hides_in_the_slack(self):
        """Only counting finds c + 1."""
        assert hockey_stick(11, self.scale(10)) < 1e-6


class Game:
    """Largest Renyi moment an adaptive adversary reaches against a filter, by backward induction."""

    HAZARDS = (1e-3, 0.05, 0.3, 1.0, 3.0)

    def __init__(self, order, capacity, scales, affords=None, charge=None):
        self.order, self.capacity, self.scales = order, capacity, scales
        self.affords = affords or (lambda spent, price: spent + price <= capacity)
        self.charges = {b: charge(b) if charge else gumbel_charge(order, 1, b) for b in scales}

    def offers(self, spent):
        """Scales that may test next, and what a hit is charged."""
        return list(self.charges.items())

    def behind(self, spent, price):
        return spent + price

    def instead(self, tests, spent):
        """ln of the largest moment if something else comes before the next test."""
        return 0.0

    @cache  # noqa: B019  (a game lives as long as its test)
    def best(self, tests, spent):
        """ln of the largest moment of what can still follow."""
        worst = self.instead(tests, spent)
        alpha = float(self.order)
        if tests:
            for b, price in self.offers(spent):
                if not self.affords(spent, price):
                    continue
                quiet, hit = self.best(tests - 1, spent), self.best(tests - 1, self.behind(spent, price))
                for a, s in itertools.product(self.HAZARDS, (1 / float(b), -1 / float(b))):
                    log_easy = -alpha * a + (alpha - 1) * a * math.exp(s)
                    log_hit = alpha * math.log(-math.expm1(-a)) + (1 - alpha) * math.log(
                        -math.expm1(-a * math.exp(s))
                    )
                    top = max(log_easy + quiet, log_hit + hit)
                    total = math.exp(log_easy + quiet - top) + math.exp(log_hit + hit - top)
                    worst = max(worst, top + math.log(total))
        return worst

    def excess(self, tests=24):
        """ln moment / ((order - 1) R): above 1 the claim is broken."""
        return self.best(tests, 0) / (float(self.order - 1) * self.capacity * float(TICK))


class TestFilterAsAGame:
    ORDER = Fraction(4)
    SCALES = (Fraction(5), Fraction(10), Fraction(17))

    def capacity(self, hits=Fraction(5, 2)):
        return int(hits * gumbel_charge(self.ORDER, 1, Fraction(5)))

    @pytest.mark.parametrize("hits", [Fraction(1), Fraction(5, 2), Fraction(29, 10)])
    def test_no_adaptive_strategy_beats_the_filter(self, hits):
        game = Game(self.ORDER, self.capacity(hits), self.SCALES)

        assert 0.5 < game.excess() <= 1.0

    def test_asking_while_something_is_left_is_found(self):
        """Mutant: the charge may carry the sum past R."""
        capacity = self.capacity(Fraction(21, 10))
        game = Game(self.ORDER, capacity, self.SCALES, affords=lambda spent, price: spent < capacity)

        assert game.excess() > 1.2

    def test_a_charge_rounded_down_is_found(self):
        """Mutant: a coarse unit makes the hits of the widest test free."""
        unit = gumbel_charge(self.ORDER, 1, Fraction(5)) // 3
        game = Game(
            self.ORDER,
            self.capacity(),
            self.SCALES,
            charge=lambda b: gumbel_charge(self.ORDER, 1, b) // unit * unit,
        )

        assert game.excess() > 1.2

    def test_half_the_price_is_found(self):
        game = Game(
            self.ORDER, self.capacity(), self.SCALES, charge=lambda b: gumbel_charge(self.ORDER, 1, b) // 2
        )

        assert game.excess() > 1.1


class Falling(Game):
    """The filter where each hit costs a third of what is left, and no more than the first: theory 4.5."""

    SHARE, FIRST = Fraction(1, 3), Fraction(6)

    def scale(self, spent):
        first = gumbel_charge(self.order, 1, self.FIRST)
        most = max(1, min(first, (self.capacity - spent) * self.SHARE))
        return Fraction(math.ceil(self.FIRST * 64 * Fraction(math.sqrt(first / most))), 64)

    def offers(self, spent):
        return [(self.scale(spent), self.price(spent))]

    def price(self, spent):
        return gumbel_charge(self.order, 1, self.scale(spent))


class ReadAfterwards(Falling):
    """Mutant: the price is read when the hit has been recorded, and is that of the next one."""

    def price(self, spent):
        return super().price(spent + super().price(spent))


class TestFallingPrices:
    ORDER = Fraction(4)

    def excess(self, game):
        capacity = 4 * gumbel_charge(self.ORDER, 1, Falling.FIRST)
        return game(self.ORDER, capacity, ()).excess(tests=30)

    def test_a_share_of_what_is_left_never_carries_the_moment_past_the_capacity(self):
        assert 0.5 < self.excess(Falling) <= 1.0

    def test_a_price_that_is_read_after_its_test_is_found(self):
        assert self.excess(ReadAfterwards) > 1.1


class Instalments(Game):
    """Falling prices, and one release of a fixed charge between any two tests that the transcript settles.

    What is spent is held with whether the release still waits; its moment is (order - 1) times its charge,
    as of Gaussian tables. The adversary, who reads the transcript, says when it comes.
    """

    def __init__(self, order, capacity, charge):
        super().__init__(order, capacity, ())
        self.prices, self.charge = Falling(order, capacity, ()), charge
        self.affords = lambda held, price: held[0] + price <= capacity

    def offers(self, held):
        return self.prices.offers(held[0])

    def behind(self, held, price):
        return held[0] + price, held[1]

    def pays(self, spent):
        return spent + self.charge <= self.capacity

    def instead(self, tests, held):
        spent, waits = held
        if not waits or not self.pays(spent):
            return 0.0
        own = float(self.order - 1) * self.charge * float(TICK)
        return own + self.best(tests, (spent + self.charge, False))

    def excess(self, tests=24):
        return self.best(tests, (0, True)) / (float(self.order - 1) * self.capacity * float(TICK))


class Unchecked(Instalments):
    """Mutant: it is bought though hits have used up what was kept for it."""

    def pays(self, spent):
        return True


class TestInstalments:
    """Theory 4.9: one more step of the same filter, whenever the transcript wants it."""

    ORDER = Fraction(4)

    def excess(self, game):
        first = gumbel_charge(self.ORDER, 1, Falling.FIRST)
        return game(self.ORDER, 4 * first, 3 * first // 2).excess(tests=20)

    def test_whenever_it_comes_the_moment_stays_below_the_capacity(self):
        assert 0.5 < self.excess(Instalments) <= 1.0

    def test_one_that_is_bought_without_a_look_at_what_is_left_is_found(self):
        assert self.excess(Unchecked) > 1.05


class TestFixedBeforehand:
    def test_the_order_cannot_be_chosen_afterwards(self):
        sparse = GumbelSparse.calibrated(Budget(1.0, 1e-6), n=1000, hard_answers=5, max_queries=100)

        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            sparse.order = Fraction(30)
        assert sparse.account().capacity == renyi_capacity(sparse.order, 1.0, 1e-6)

    def test_choosing_the_order_afterwards_would_promise_too_much(self):
        """Mutant: epsilon from the best order for what was spent is below what is certified."""
        sparse = GumbelSparse.calibrated(Budget(1.0, 1e-6), n=1000, hard_answers=50, max_queries=100)
        few = 3
        at = {
            order: few * gumbel_charge(order, 1, sparse.scale, Fraction(sparse.sigma(0)), 1) * float(TICK)
            + math.log(1 - 1 / order)
            - (math.log(1e-6) + math.log(order)) / (order - 1)
            for order in (sparse.order, Fraction(40), Fraction(44))
        }

        assert min(at.values()) < 0.7 * at[sparse.order]

    def test_a_partition_is_priced_with_twice_the_squared_sensitivity(self):
        """Mutant L = g^2: the two cells of a moved record cost alpha/sigma^2, not half of it."""
        sparse = GumbelSparse(1000, 1.0, 1e-6, Fraction(19), Fraction(169, 4), 360)
        number = gumbel_charge(sparse.order, 1, sparse.scale, Fraction(85), 1)
        table = gumbel_charge(sparse.order, 1, sparse.scale, Fraction(85), 2)
        exact = float(sparse.order) / 85**2  # two coordinates move by one count each

        assert (table - gumbel_charge(sparse.order, 1, sparse.scale)) * float(TICK) == pytest.approx(exact)
        assert (number - gumbel_charge(sparse.order, 1, sparse.scale)) * float(TICK) < 0.51 * exact

    def test_exactly_the_paid_hits_and_easy_answers_leave_the_account_unchanged(self):
        sparse = GumbelSparse.calibrated(Budget(1.0, 1e-6), n=1000, hard_answers=3, max_queries=100)
        account, price = sparse.account(), sparse.price(QUERY)
        assert price == Charge(price.amount, "Gumbel test and Gaussian number", "ticks", sparse.order)
        hits = 0
        while account.affords(price):
            account = account.charge(price)
            hits += 1

        assert hits == sparse.capacity // price.amount == 4
