"""The kernel decides U >= exp(-e^x) exactly: against stored words, 120 digits, and an integer oracle."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from onlineic.errors import InternalError
from onlineic.noise.gumbel import MARGIN, fires_exactly, fires_one, screen, silence_bounds


def fires(words, numerators, denominator, more, margin=MARGIN):
    """1 where U >= exp(-e^(numerator/denominator)), else 0: what `step_many` does lane by lane."""
    verdict = screen(words, numerators, denominator, margin)
    for lane in np.flatnonzero(verdict < 0):
        verdict[lane] = fires_exactly(int(words[lane]), int(numerators[lane]), denominator, more)
    return verdict


SCALES = (
    Fraction(10813, 256),
    Fraction(1494505, 32768),
    Fraction(1),
    Fraction(7, 65536),
    Fraction(2**40 + 1),
)
GOLDEN_WORDS = {  # floor(2^64 p(x))
    -10: 0xFFFD06553670A21C,
    -5: 0xFE47E7FEFF9C911F,
    -2: 0xDF98A6A40064DF33,
    -1: 0xB1340F719EF29532,
    0: 0x5E2D58D8B3BCDF1A,
    1: 0x10E49787E2054799,
}
HIT_PROBABILITIES = {  # by (T - d)/b
    -1: 0.9340119642,
    0: 0.6321205588,
    1: 0.3077993724,
    2: 0.1265769815,
    5: 0.006715297932,
    10: 4.53988992e-5,
}


class Bits:
    """A seeded source of refinement bits that counts what it gave."""

    def __init__(self, seed=0):
        self.generator = np.random.default_rng(seed)
        self.given = 0

    def __call__(self):
        self.given += 1
        return int(self.generator.integers(0, 2**64, dtype=np.uint64))


def no_more():
    raise AssertionError("64 bits decide this lane")


def lanes(scale, size, seed, low=-30.0, high=8.0):
    generator = np.random.default_rng(seed)
    words = generator.integers(0, 2**64, size, dtype=np.uint64)
    reach = float(scale)
    numerators = np.rint(generator.uniform(low * reach, high * reach, size)).astype(np.int64)
    return words, numerators


def silence(x, digits=120):
    """exp(-e^x) from `decimal`, whose exp is correctly rounded."""
    with localcontext() as context:
        context.prec = digits
        return (-(Decimal(x.numerator) / Decimal(x.denominator)).exp()).exp()


class TestInterval:
    @pytest.mark.parametrize(("x", "word"), GOLDEN_WORDS.items())
    def test_the_first_64_bits_of_p_are_the_stored_word(self, x, word):
        low, high = silence_bounds(Fraction(x), 192)

        assert (low >> 128, high >> 128) == (word, word)

    @pytest.mark.parametrize("bits", [64, 96, 160, 224])
    def test_120_digits_lie_inside_and_the_interval_is_narrow(self, bits):
        generator = np.random.default_rng(bits)
        widths = []
        for _ in range(250):
            numerator, less = generator.integers([-30 * 2**20, 0], [8 * 2**20, 999]).tolist()
            x = Fraction(numerator, 2**20 - less)
            low, high = silence_bounds(x, bits)
            widths.append(high - low)

            with localcontext() as context:
                context.prec = 130
                assert low <= silence(x) * 2**bits <= high

        assert max(widths) <= 64

    @pytest.mark.parametrize("x", [-(2**60), -97, -96, -95, 5, 63, 64, 2**60])
    def test_the_shortcuts_contain_the_truth(self, x):
        bits = 96
        low, high = silence_bounds(Fraction(x), bits)
        with localcontext() as context:
            context.prec = 130
            if abs(x) <= 10**3:
                assert low <= silence(Fraction(x)) * 2**bits <= high

        assert 0 <= high - low <= 64
        assert (low >= 2**bits - 64) if x < 0 else (x == 5 or (low, high) == (0, 1))


class TestDecision:
    @pytest.mark.parametrize(("x", "word"), GOLDEN_WORDS.items())
    @pytest.mark.parametrize("scale", [Fraction(1), Fraction(13), Fraction(2**20)])
    def test_a_larger_word_fires_a_smaller_is_easy_and_the_equal_one_needs_more_bits(self, x, word, scale):
        bits = Bits()
        numerator = x * int(scale)
        fires_exactly(word, numerator, scale, bits)

        assert bits.given == 1
        assert fires_exactly(word + 1, numerator, scale, no_more)
        assert not fires_exactly(word - 1, numerator, scale, no_more)
        assert screen(np.array([word], np.uint64), np.array([numerator]), scale).tolist() == [-1]

    @pytest.mark.parametrize("x", [-3, 0, 1])
    @pytest.mark.parametrize("agreeing", [128, 192, 1024])
    def test_a_uniform_that_agrees_with_p_in_many_bits_is_decided(self, x, agreeing):
        low, high = silence_bounds(Fraction(x), agreeing + 64)
        digits = low >> 64
        assert high >> 64 == digits
        words = [digits >> shift & (2**64 - 1) for shift in range(agreeing - 64, -1, -64)]

        for tail, expected in ((0, False), (2**64 - 1, True)):
            rest = iter([*words[1:], tail])
            assert fires_one(words[0], x, Fraction(1), lambda source=rest: next(source)) is expected

    @pytest.mark.parametrize("scale", SCALES, ids=str)
    def test_scalar_vector_and_exact_decisions_are_equal(self, scale):
        words, numerators = lanes(scale, 2500, seed=scale.numerator % 97)
        if scale < 1:
            numerators = np.random.default_rng(3).integers(-2, 2, 2500)

        vector = fires(words, numerators, scale, Bits()).tolist()
        scalar = [fires_one(int(w), int(e), scale, Bits()) for w, e in zip(words, numerators, strict=True)]
        exact = [fires_exactly(int(w), int(e), scale, Bits()) for w, e in zip(words, numerators, strict=True)]

        assert vector == scalar == exact
        assert 0 < sum(vector) < 2500

    @pytest.mark.parametrize("margin", [2.0**-8, 2.0**-4, 1.0])
    def test_a_wider_margin_changes_no_decision(self, margin):
        """Undecided lanes are settled by the same bits."""
        scale = SCALES[1]
        words, numerators = lanes(scale, 4000, seed=11, low=-6.0, high=2.5)
        undecided = int((screen(words, numerators, scale, margin) < 0).sum())

        forced = fires(words, numerators, scale, no_more, margin)
        one = [
            fires_one(int(w), int(e), scale, no_more, margin) for w, e in zip(words, numerators, strict=True)
        ]

        assert undecided > 20
        assert forced.tolist() == fires(words, numerators, scale, no_more, MARGIN).tolist() == one

    def test_a_fresh_coin_for_undecided_lanes_is_found_by_the_same_comparison(self):
        """Mutant: the fallback draws a new uniform."""
        scale = SCALES[1]
        words, numerators = lanes(scale, 20_000, seed=11, low=-2.0, high=1.0)
        verdict = screen(words, numerators, scale, 2.0**-8)
        mutant = verdict.copy()
        fresh = np.random.default_rng(4).integers(0, 2**64, 20_000, dtype=np.uint64)
        lost = verdict < 0
        mutant[lost] = fires(fresh[lost], numerators[lost], scale, Bits())

        assert (mutant != fires(words, numerators, scale, no_more)).sum() > 50

    def test_the_sharpest_words_agree_with_the_exact_path(self):
        """Words within a few units of the filter's thresholds, on both sides."""
        scale = SCALES[0]
        for numerator in range(-400, 100, 7):
            low, _ = silence_bounds(numerator / scale, 96)
            centre = low >> 32
            sizes = [0, 1, 2**11, 2**22, 2**22 + 2**12, 2**24]
            steps = [sign * size for size in sizes for sign in (1, -1)]
            near = [w for step in steps if 0 <= (w := centre + step) < 2**64]
            words = np.array(near, np.uint64)
            same = np.full(len(near), numerator)
            exact = [fires_exactly(w, numerator, scale, Bits(5)) for w in near]

            assert [fires_one(w, numerator, scale, Bits(5)) for w in near] == exact
            assert [int(fires(words[[i]], same[[i]], scale, Bits(5))[0]) for i in range(len(near))] == exact

    @pytest.mark.parametrize("scale", [Fraction(2**16 + 1, 2**16), Fraction(196609, 2**16), Fraction(1)])
    def test_gaps_of_2_to_the_53_keep_their_sign(self, scale):
        """n = 2^39 and s = 2^16: the product of the unclamped gap and s wraps."""
        for size in (2**39, 2**47, 2**48, 2**53, 2**61):
            numerators = np.array([size, -size])
            words = np.array([2**62, 2**64 - 2**12], np.uint64)

            assert fires(words, numerators, scale, no_more).tolist() == [1, 0]
            assert fires_one(2**62, size, scale, no_more)
            assert not fires_one(2**64 - 2**12, -size, scale, no_more)

    def test_without_the_clamp_a_certain_hit_turns_easy(self):
        scale = Fraction(2**16 + 1, 2**16)
        with np.errstate(over="ignore"):
            wrapped = np.array([2**47]) * np.int64(scale.denominator)
        x = wrapped / float(scale.numerator)

        assert x[0] < 0 < 2**47 / scale

    def test_the_exact_path_keeps_the_gap_beyond_the_clamp(self):
        """A silent test stays possible beyond x = 8 b and a firing one at x = -65 b (mutual continuity)."""
        assert not fires_one(0, 17, Fraction(2), lambda: 0)
        ones = 2**64 - 1
        assert fires_one(ones, -65, Fraction(1), lambda: ones)

    @pytest.mark.parametrize("scale", [Fraction(2**46), Fraction(1, 2**46)])
    def test_a_scale_outside_the_range_of_the_filter_is_refused(self, scale):
        with pytest.raises(InternalError, match="scale"):
            fires_one(0, 0, scale, no_more)
        with pytest.raises(InternalError, match="scale"):
            screen(np.zeros(1, np.uint64), np.zeros(1, np.int64), scale)


class TestLaw:
    """Equally spaced uniforms make frequencies exact to one word: no p-value."""

    SIZE = 2**16

    def frequency(self, numerator, scale, kernel=fires):
        words = np.arange(self.SIZE, dtype=np.uint64) * np.uint64(2**64 // self.SIZE) + np.uint64(2**47)
        return int(kernel(words, np.full(self.SIZE, numerator), scale, Bits()).sum())

    @pytest.mark.parametrize(("level", "probability"), HIT_PROBABILITIES.items())
    def test_the_share_of_words_that_fire_is_the_hit_probability(self, level, probability):
        expected = probability * self.SIZE

        assert abs(self.frequency(-level * 40, Fraction(40)) - expected) <= 1

    @pytest.mark.parametrize(
        "mutant",
        [
            lambda w, e, b, more: fires(w, e, b * Fraction(95, 100), more),
            lambda w, e, b, more: fires(w, e + 4, b, more),
            lambda w, e, b, more: 1 - fires(w, -e, b, more),
            lambda w, e, b, more: 1 - fires(~w, e, b, more),
        ],
        ids=["0.95 b", "T off by b/10", "minimum type", "complement"],
    )
    def test_mutants_are_found_by_the_share(self, mutant):
        errors = [
            abs(self.frequency(-level * 40, Fraction(40), mutant) - probability * self.SIZE)
            for level, probability in HIT_PROBABILITIES.items()
        ]

        assert max(errors) > 100


def bernoulli_exp_minus(r, below):
    """True with probability e^-r, r >= 0 rational: integers only (Canonne, Kamath, Steinke 2020)."""
    whole, fraction = divmod(r, 1)
    for part in [Fraction(1)] * int(whole) + [fraction]:
        j = 1
        while below(part.denominator * j) < part.numerator:
            j += 1
        if j % 2 == 0:
            return False
    return True


def factory_fires(r, below):
    """True with probability 1 - exp(-e^-r): the alternating series of e^-q with coins of bias q/j."""
    j = 1
    while below(j) == 0 and bernoulli_exp_minus(r, below):
        j += 1
    return j % 2 == 0


@pytest.mark.statistical
@pytest.mark.parametrize("numerator", [0, -20, -60, -130])
def test_the_kernel_and_an_integer_only_factory_have_the_same_law(numerator):
    """Both against the closed form and each other; a law 10 % off in its hits fails."""
    scale, size = Fraction(10813, 256), 40_000
    probability = 1 - float(silence(numerator / scale, 30))
    generator = np.random.default_rng(numerator + 1000)
    stream = iter(generator.random(size * 12).tolist())
    factory = sum(factory_fires(-numerator / scale, lambda m: int(next(stream) * m)) for _ in range(size))
    words = np.random.default_rng(-numerator + 1).integers(0, 2**64, 20 * size, dtype=np.uint64)
    kernel = int(fires(words, np.full(20 * size, numerator), scale, Bits()).sum())

    two_sample = stats.chi2_contingency([[factory, size - factory], [kernel, 20 * size - kernel]]).pvalue
    assert min(stats.binomtest(factory, size, probability).pvalue, two_sample) > 1e-9
    assert stats.binomtest(kernel, 20 * size, probability).pvalue > 1e-9
    assert stats.binomtest(kernel, 20 * size, 0.9 * probability).pvalue < 1e-9
    assert stats.binomtest(factory, size, 0.8 * probability).pvalue < 1e-9
