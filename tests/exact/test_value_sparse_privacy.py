"""NumericSparse over values costs its budget, exactly; runs with half a scale, or a free number, cost more.

The rule of the tests and the scale of the numbers are read off the running code by scripted noise, in grid
units, where one replaced record moves a score by 2^K.
"""

import math
from fractions import Fraction

import attrs
import pytest

import onlineic as ic
from onlineic.accounting import gumbel_charge
from onlineic.audit import goodness_of_fit, observe, transcript_law, worst_loss
from onlineic.noise import SimulatedNoise
from onlineic.noise.scripted import ScriptedNoise
from onlineic.offline import statistic
from onlineic.offline.values_above import numeric_sparse
from onlineic.sparse import GumbelSparse, LaplaceSparse, ValueSparse

TIGHT = 1 + 1e-9
FAR = 2**34  # beyond all noise, on the scale of tests


def made(mechanism, epsilon=1.0, cutoff=2):
    """As calibrated, but on the grid of one sensitivity: laws of 256 times fewer points, the same losses."""
    if mechanism == "laplace":
        return ValueSparse(LaplaceSparse(1, epsilon, 2**30, cutoff), cutoff)
    sparse = ValueSparse.calibrated(ic.Budget(epsilon), cutoff=cutoff, max_values=20, mechanism=mechanism)
    own = sparse.mechanism
    coarse = {name: getattr(own, name) / 256 for name in ("threshold_scale", "query_scale")}
    return ValueSparse(attrs.evolve(own, grid_bits=0, threshold=2**30, **coarse), cutoff)


def stepped(sparse):
    """Its steps as `observe` reads them: whether a score was a hit."""

    def step(state, score, noise):
        state, number = sparse.step(state, score, noise)
        return state, number is not None

    return step


def loss(sparse):
    """THE audit: the largest loss of transcripts with what a hit shows, a fresh number or the gap itself."""
    rule = observe(sparse.init(), stepped(sparse))
    asked = ScriptedNoise([0] * 9)
    sparse.select([FAR], asked)
    numbers = [scale for _, scale, _ in asked.scales[2:]]  # behind threshold and test
    return worst_loss(
        rule,
        1 << sparse.grid_bits,
        released="bit" if numbers else "gap",
        number_scale=numbers[0] if numbers else None,
    )


@pytest.mark.parametrize("cutoff", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("mechanism", ["laplace", "exponential"])
def test_a_run_with_its_numbers_costs_epsilon_exactly(mechanism, epsilon, cutoff):
    spent = loss(made(mechanism, epsilon, cutoff))

    assert spent == pytest.approx(epsilon, rel=1e-2)
    assert spent <= epsilon * TIGHT


def planted(change):
    """Let a run draw something other than what its price says."""
    sparse = made("exponential" if "exponential" in change else "laplace")
    own = sparse.mechanism
    scales = {
        "half the test scale": {"query_scale": own.query_scale / 2},
        "half the threshold scale": {"threshold_scale": own.threshold_scale / 2},
        "half the scale of exponential tests": {"query_scale": own.query_scale / 2},
        # the whole budget to the tests, and the number besides
        "the number is not charged": {
            name: getattr(own, name) * 8 / 9 for name in ("threshold_scale", "query_scale")
        },
    }[change]
    for name, scale in scales.items():
        object.__setattr__(own, name, scale)
    return sparse


@pytest.mark.parametrize(
    "change",
    [
        "half the test scale",
        "half the threshold scale",
        "the number is not charged",
        "half the scale of exponential tests",
    ],
)
def test_the_audit_finds_every_planted_breach(change):
    assert loss(planted(change)) > 1.1


def test_a_mechanism_that_cannot_pay_its_own_scales_is_refused_before_it_draws():
    own = made("exponential").mechanism
    with pytest.raises(ic.errors.InvalidParameterError, match="can pay"):
        ValueSparse(attrs.evolve(own, query_scale=own.query_scale / 2), 2)


@pytest.mark.parametrize("cutoff", [1, 5])
def test_what_gumbel_tests_and_numbers_draw_is_what_their_charges_say(cutoff):
    sparse = ValueSparse.calibrated(ic.Budget(1.0, 1e-6), cutoff=cutoff, max_values=100, mechanism="gumbel")
    own, noise = sparse.mechanism, ScriptedNoise([2**63, 0] * cutoff)
    sparse.select([FAR] * cutoff, noise)
    sigmas = {scale for method, scale, _ in noise.scales if method == "discrete_gaussian"}
    unit = 1 << own.grid_bits
    (sigma,) = sigmas
    drawn = gumbel_charge(own.order, unit, own.scale, Fraction(sigma), unit**2)

    assert isinstance(own, GumbelSparse)
    assert cutoff * drawn <= own.capacity
    assert cutoff * gumbel_charge(own.order, unit, own.scale, Fraction(sigma, 2), unit**2) > own.capacity
    assert (
        cutoff * gumbel_charge(own.order, unit, own.scale * Fraction(97, 100), Fraction(sigma), unit**2)
        > own.capacity
    )


@pytest.mark.parametrize("shift", [-7, 0, 7])
def test_gumbel_tests_fire_with_the_chance_that_the_theorem_prices(shift):
    """P(hit) = 1 - exp(-e^((score - shift)/b)): neighbours' hazards differ by the factor that is charged."""
    made = ValueSparse.calibrated(ic.Budget(1.0, 1e-6), cutoff=1, max_values=100, mechanism="gumbel")
    sparse, noise = attrs.evolve(made, shift=shift), SimulatedNoise(5)
    scale = float(made.mechanism.scale)
    score = round(-scale) + shift
    counts = {"0": 0, "1": 0}
    for _ in range(3000):
        counts["01"[sparse.step(sparse.init(), score, noise)[1] is not None]] += 1

    def law(score):
        easy = math.exp(-math.exp((score - shift) / scale))
        return {"0": easy, "1": 1 - easy}

    assert goodness_of_fit(counts, law(score)) > 1e-9
    assert goodness_of_fit(counts, law(score + scale)) < 1e-9


@pytest.mark.statistical
def test_the_released_indices_follow_the_audited_law_of_the_values():
    data = ic.PrivateData([7, 0, 13], ic.Domain.of(a=3))
    asked = [statistic(data.domain, ["a"], lambda counts, i=i: counts[i], 1) for i in range(3)]
    noise, counts = SimulatedNoise(11), {}
    for _ in range(1500):
        found = numeric_sparse(data, asked, 9, ic.Budget(0.5), cutoff=2, mechanism="laplace", noise=noise)
        text = "".join("01"[place in found.above] for place in range(found.tested))
        counts[text] = counts.get(text, 0) + 1

    def law(level):
        sparse = ValueSparse.calibrated(ic.Budget(0.5), cutoff=2, max_values=3, mechanism="laplace")
        rule = observe(sparse.init(), stepped(sparse))
        return transcript_law(rule, [sparse.score(value, level) for value in (7, 0, 13)])

    assert goodness_of_fit(counts, law(9)) > 1e-9
    assert goodness_of_fit(counts, law(0)) < 1e-9
