"""An index is drawn exactly: every boundary between two indices, to the last bit of the uniform number."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from scipy import stats

from onlineic.errors import InternalError
from onlineic.noise import SimulatedNoise
from onlineic.noise import categorical as _categorical
from onlineic.noise.categorical import draw
from onlineic.testing import ScriptedNoise

ALWAYS_EXACT = 2.0  # a margin that sends every draw to the interval arithmetic
SETTINGS = {
    "three": ([0, 1, 2], Fraction(2), None),
    "best in the middle": ([700, 3, 0, 3, 11], Fraction(100, 7), None),
    "fine scale": ([5, 0, 2**40, 2**41 + 1], Fraction(2**41 + 1, 1), None),
    "steep": ([1, 0, 1, 2], Fraction(7, 65536), None),
    "ties": ([4, 4, 4, 4, 4], Fraction(3), None),
    "shifted": ([2**62, 2**62 + 3, 2**62 + 1], Fraction(2), None),
    "counted": ([0, 1, 2, 3], Fraction(1), [1, 2, 5, 9]),
    "counts beyond floats": ([0, 900, 1800, 40], Fraction(1), [1, 10**390, 7 * 10**781, 10**17]),
    "one count beyond floats": ([3, 0], Fraction(1, 3), [10**500, 1]),
    "exponents beyond words": ([0, 10**30, 10**30 + 1], Fraction(10**12), [1, 1, 1]),
}


def boundaries(exponents, scale, counts):
    """C_0/W, ..., C_(m-2)/W, with 300 digits."""
    with localcontext() as context:
        context.prec = 300
        weights = [
            (1 if counts is None else counts[i])
            * (Decimal(-(power - min(exponents)) * scale.denominator) / Decimal(scale.numerator)).exp()
            for i, power in enumerate(exponents)
        ]
        total = sum(weights)
        return [sum(weights[: i + 1]) / total for i in range(len(weights) - 1)]


def digits(number, bits):
    """floor(2^bits number)."""
    with localcontext() as context:
        context.prec = 300
        return floor(number * 2**bits)


@pytest.mark.parametrize("margin", [_categorical.MARGIN, ALWAYS_EXACT], ids=["screened", "exact"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_index_changes_at_the_exact_boundary_and_at_no_other_word(setting, margin):
    exponents, scale, counts = SETTINGS[setting]
    limits = boundaries(exponents, scale, counts)
    for limit in limits:
        word = digits(limit, 64)
        if not 1 <= word < 2**64 - 1:
            continue
        before, after = (
            draw(exponents, scale, ScriptedNoise([near, 0, 0]), counts, margin=margin)
            for near in (word - 1, word + 1)
        )

        assert sum(other <= Decimal(word - 1) / 2**64 for other in limits) == before
        assert sum(other <= Decimal(word + 1) / 2**64 for other in limits) == after


@pytest.mark.parametrize("setting", ["three", "best in the middle", "counted", "counts beyond floats"])
def test_undecided_word_is_decided_by_more_bits_of_the_same_number(setting):
    exponents, scale, counts = SETTINGS[setting]
    for place, limit in enumerate(boundaries(exponents, scale, counts)):
        word, more = divmod(digits(limit, 128), 2**64)
        if word == 0:
            continue
        below = ScriptedNoise([word, more - 1])
        above = ScriptedNoise([word, more + 1])

        assert place == draw(exponents, scale, below, counts)
        assert place + 1 == draw(exponents, scale, above, counts)
        assert [("words", None, 1)] * 2 == below.scales == above.scales


def test_draw_asks_for_one_word():
    noise = ScriptedNoise([2**63])

    assert 1 == draw([2, 0, 2], Fraction(2), noise)
    assert [("words", None, 1)] == noise.scales


@pytest.mark.parametrize("counted", [False, True])
def test_exact_path_takes_the_same_decisions_as_the_screen(counted):
    generator = np.random.default_rng(1)
    for _ in range(40):
        size = int(generator.integers(1, 12))
        exponents = generator.integers(0, 30, size).tolist()
        counts = generator.integers(1, 10**6, size).tolist() if counted else None
        scale = Fraction(int(generator.integers(1, 400)), int(generator.integers(1, 60)))
        words = generator.integers(0, 2**64, 40, dtype=np.uint64).tolist()
        screened, exact = (
            [draw(exponents, scale, ScriptedNoise([word, 1, 1]), counts, margin=margin) for word in words]
            for margin in (_categorical.MARGIN, ALWAYS_EXACT)
        )

        assert screened == exact


def test_fresh_word_for_an_undecided_one_is_biased_and_found():
    """The mutant draws again when the screen is not sure: with a margin of 1/10 its law is off."""

    def redrawn(word, fresh):
        limit, margin = 0.2, 0.1
        u = word / 2**64
        return int((fresh / 2**64 if abs(u - limit) < margin else u) >= limit)

    words = np.random.default_rng(2).integers(0, 2**64, (4000, 2), dtype=np.uint64).tolist()
    counts = [1, 4]
    exact = [draw([0, 0], Fraction(1), ScriptedNoise([word, 0]), counts, margin=0.1) for word, _ in words]
    mutant = [redrawn(*pair) for pair in words]

    assert [int(word >= 2**64 / 5) for word, _ in words] == exact
    assert stats.binomtest(sum(exact), 4000, 0.8).pvalue > 1e-9
    assert sum(a != b for a, b in zip(exact, mutant, strict=True)) > 300
    assert stats.binomtest(sum(mutant), 4000, 0.8).pvalue < 1e-9


def test_counts_are_candidates_that_stand_side_by_side():
    exponents, counts, scale = [3, 0, 7], [2, 1, 4], Fraction(5, 2)
    apart = [power for power, count in zip(exponents, counts, strict=True) for _ in range(count)]
    owner = [index for index, count in enumerate(counts) for _ in range(count)]
    words = np.random.default_rng(3).integers(0, 2**64, 500, dtype=np.uint64).tolist()

    together = [draw(exponents, scale, ScriptedNoise([word]), counts) for word in words]

    assert [owner[draw(apart, scale, ScriptedNoise([word]))] for word in words] == together


def test_uniform_draw_at_a_dyadic_boundary_ends():
    """U is on the boundary to the last bit that is asked for: then it belongs to the next index."""
    noise = ScriptedNoise([2**63, 0, 0, 1])

    assert 1 == draw([5, 5], Fraction(1), noise)
    assert 0 == draw([5, 5], Fraction(1), ScriptedNoise([2**63 - 1, 2**64 - 1, 2**64 - 2]))


def test_single_candidate_still_draws_its_word():
    noise = ScriptedNoise([17])

    assert 0 == draw(np.array([3]), Fraction(1), noise)
    assert noise.exhausted


def test_differences_beyond_int64_are_not_wrapped():
    farthest = np.array([0, 2**64 - 1, 1], np.uint64)

    assert 2 == draw(farthest, Fraction(1), ScriptedNoise([2**64 - 2**40]))
    assert 2 == draw(farthest, Fraction(1), ScriptedNoise([2**64 - 1, 2**64 - 1]), margin=ALWAYS_EXACT)


def test_margin_is_more_than_the_float_error():
    generator = np.random.default_rng(4)
    worst = 0.0
    for counted in (False, True) * 25:
        exponents = generator.integers(0, 4000, 50).tolist()
        counts = generator.integers(1, 2**60, 50).tolist() if counted else None
        scale = Fraction(int(generator.integers(100, 10**6)), int(generator.integers(1, 300)))
        floats = (
            _categorical._weights(np.array(exponents), scale)
            if counts is None
            else _categorical._counted_weights(exponents, scale, counts)
        )
        exact = boundaries(exponents, scale, counts)
        computed = _categorical._inner_boundaries(floats)
        worst = max(worst, *(abs(Decimal(a) - b) for a, b in zip(computed.tolist(), exact, strict=True)))

    assert worst < 2**-50 < _categorical.MARGIN  # 2^-44 is proven


@pytest.mark.statistical
def test_law_is_that_of_the_weights_and_ten_percent_of_scale_show():
    exponents, scale = np.array([0, 2, 5, 9, 1, 14]), Fraction(4)
    noise = SimulatedNoise(20261121)
    drawn = [draw(exponents, scale, noise) for _ in range(20_000)]

    def p_value(factor):  # sum of the exponents: sufficient for the scale
        law = np.exp(-exponents / (factor * float(scale)))
        law /= law.sum()
        mean = float(law @ exponents)
        spread = float(np.sqrt(law @ (exponents - mean) ** 2 * len(drawn)))
        return 2 * stats.norm.sf(abs(exponents[drawn].sum() - mean * len(drawn)) / spread)

    assert p_value(1.0) > 1e-9
    assert max(p_value(0.9), p_value(1.1)) < 1e-9


@pytest.mark.parametrize(
    ("exponents", "scale", "counts"),
    [
        ([0, 1], Fraction(1), [1, 0]),
        ([0, 1], Fraction(1), [1]),
        ([], Fraction(1), None),
        ([0, 1], Fraction(2**48), None),
        ([0, 1], Fraction(1, 2**48), None),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(exponents, scale, counts):
    with pytest.raises(InternalError):
        draw(exponents, scale, ScriptedNoise([]), counts)
