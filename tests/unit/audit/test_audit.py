"""The tools of the audit: laws of noise and transcripts, losses of them, and what samples say."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from onlineic import audit
from onlineic.audit import Law, ThresholdRule, hockey_stick, observe, transcript_law, worst_loss
from onlineic.errors import InternalError, SessionExhaustedError
from onlineic.noise import SimulatedNoise
from onlineic.sparse import SparseState
from support.laws import lap

NONE = Law("none")


# -- laws of noise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [lap(3), lap(Fraction(1, 2)), Law("geometric", Fraction(5)), Law("geometric", Fraction(5), -1), NONE],
)
def test_masses_of_a_law_sum_to_one_and_its_tails_are_their_sums(law):
    z = np.arange(-200, 201)
    mass = np.exp(law.log_mass(z))

    assert 1.0 == pytest.approx(mass.sum(), abs=1e-12)
    assert np.allclose(mass[::-1].cumsum()[::-1], np.exp(law.log_at_least(z)), atol=1e-12)
    assert np.allclose(mass.cumsum() - mass, np.exp(law.log_below(z)), atol=1e-12)


def test_the_law_of_the_shipped_sampler_fits_its_draws_and_one_of_other_scale_does_not():
    drawn, places = SimulatedNoise(1).discrete_laplace(Fraction(3), 20_000), np.arange(-30, 31)
    counts = {str(z): int((drawn == z).sum()) for z in places.tolist()}

    def fit(scale):
        masses = np.exp(lap(scale).log_mass(places))
        masses /= masses.sum()
        return audit.goodness_of_fit(counts, dict(zip(counts, masses.tolist(), strict=True)))

    assert fit(3) > 1e-9
    assert fit(Fraction(27, 10)) < 1e-9


# -- what is read off the code -------------------------------------------------------------------------------


def planted(scales, *, cutoff=2, redraw=True, keep=True, shared=False, count=True):
    """A step with the errors that `observe` has to notice."""

    def step(state, value, noise):
        if state.hits >= cutoff:
            raise SessionExhaustedError("asked after the last hit")
        rho = state.threshold_noise
        if rho is None:
            rho = int(noise.discrete_laplace(scales[0] if state.hits == 0 else scales[2], 1)[0])
        nu = rho if shared else int(noise.discrete_laplace(scales[1], 1)[0])
        if value + nu >= 7 + rho:
            return SparseState(state.hits + count, None if redraw else rho), True
        return SparseState(state.hits, rho if keep else None), False

    return observe(SparseState(), step)


def test_observation_sees_planted_differences():
    scales = [Fraction(3), Fraction(5), Fraction(11)]

    assert ThresholdRule(7, lap(3), lap(5), 2, redraw=lap(11)) == planted(scales)
    assert ThresholdRule(7, lap(3), lap(5), 2) == planted(scales, redraw=False)
    assert ThresholdRule(7, lap(3), lap(5), 4, redraw=lap(11)) == planted(scales, cutoff=4)
    assert ThresholdRule(7, NONE, NONE, 2) == planted(scales, shared=True)
    with pytest.raises(InternalError, match="kept between"):
        planted(scales, keep=False)
    with pytest.raises(InternalError, match="end after"):
        planted(scales, count=False)


# -- transcripts ---------------------------------------------------------------------------------------------


def test_the_law_of_one_test_is_that_of_two_noises_and_a_threshold():
    """P(value + nu >= T + rho), summed over both; of a pair either side may fire, under one rho."""
    z = np.arange(-80, 81)
    joint = np.exp(lap(2).log_mass(z))[:, None] * np.exp(lap(4).log_mass(z))
    fires = {value: float(joint[value + z[None, :] >= 3 + z[:, None]].sum()) for value in (0, 3, 9)}
    below = np.exp(lap(4).log_below(3 + z - 1)), np.exp(lap(4).log_below(3 + z + 1))
    silent = float(np.exp(lap(2).log_mass(z)) @ (below[0] * below[1]))

    for value, expected in fires.items():
        assert transcript_law(ThresholdRule(3, lap(2), lap(4)), [value])["1"] == pytest.approx(expected)
    assert transcript_law(ThresholdRule(3, lap(2), lap(4), pair=True), [1])["0"] == pytest.approx(silent)


def test_laws_of_transcripts_sum_to_one_and_are_as_many_as_they_should_be():
    stream = [0, 1, 0, 3, -2, 5, 0, 1]
    law = transcript_law(ThresholdRule(1, lap(6), lap(12), 3, redraw=lap(6)), stream)
    kept = transcript_law(ThresholdRule(1, lap(6), lap(12), 3), stream)

    assert 93 == len(law) == len(kept)  # safety 5.1
    assert math.fsum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(kept.values()) == pytest.approx(1.0, abs=1e-12)


def test_hockey_stick_of_randomised_response():
    p = math.e / (1 + math.e)
    law, other = {"a": p, "b": 1 - p}, {"a": 1 - p, "b": p}

    assert hockey_stick(law, other, 1.0) == pytest.approx(0.0, abs=1e-15)
    assert hockey_stick(law, other, 0.0) == pytest.approx(2 * p - 1, rel=1e-12)


def test_the_worst_loss_is_not_below_that_of_any_short_stream():
    """Of a rule that spends half of epsilon on the threshold and half on its one hit."""
    rule = ThresholdRule(3, lap(2), lap(4))
    seen = 0.0
    for stream in itertools.product((0, 3, 5), repeat=2):
        for moves in itertools.product((-1, 1), repeat=2):
            law, other = transcript_law(rule, stream), transcript_law(rule, np.add(stream, moves).tolist())
            seen = max(seen, *(abs(math.log(law[text] / other[text])) for text in law))

    assert 0.4 < seen <= worst_loss(rule) <= 1.0 + 1e-9


# -- what samples say ----------------------------------------------------------------------------------------


def test_goodness_of_fit_keeps_the_right_law_and_refuses_an_impossible_transcript():
    law = {"0": 0.5, "1": 0.25, "2": 0.25, "3": 0.0}

    assert 1.0 == audit.goodness_of_fit({"0": 500, "1": 250, "2": 250}, law)
    assert 0.0 == audit.goodness_of_fit({"0": 500, "1": 250, "2": 249, "3": 1}, law)
    # chi-square of 3 cells: exp(-x/2) for 2 degrees of freedom, x = 50^2/500 + 50^2/250
    assert audit.goodness_of_fit({"0": 550, "1": 200, "2": 250}, law) == pytest.approx(math.exp(-7.5))


def test_epsilon_lower_bound_is_clopper_pearson():
    # 0 of 100: high = 1 - (alpha/2)^(1/100); 100 of 100: low = (alpha/2)^(1/100)
    edge = 0.025 ** (1 / 100)

    assert audit.epsilon_lower_bound(100, 100, 0, 100) == pytest.approx(math.log(edge / (1 - edge)), rel=1e-9)
    assert audit.epsilon_lower_bound(100, 100, 0, 100, delta=0.5) == pytest.approx(
        math.log((edge - 0.5) / (1 - edge)), rel=1e-9
    )
    assert 0.0 == audit.epsilon_lower_bound(0, 100, 0, 100) == audit.epsilon_lower_bound(5, 100, 50, 100)


def test_the_black_box_bound_finds_what_is_there_and_no_more():
    p = math.e / (1 + math.e)  # randomised response of epsilon 1
    generator = np.random.default_rng(1)
    runs, other = generator.random(20_000) < p, generator.random(20_000) < 1 - p

    assert 0.85 < audit.black_box_epsilon(runs.tolist(), other.tolist(), alpha=1e-9) <= 1.0
    assert 0.0 == audit.black_box_epsilon(runs.tolist(), runs.tolist(), alpha=1e-9)
