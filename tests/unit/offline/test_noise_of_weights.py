"""The noise of every offline mechanism follows the weights: as wide for fine ones as for conditions.

Weights are integers on a grid of 2^-k: a mechanism that took 1 for the sensitivity of a query would draw the
noise of one grid unit, a millionth of a record.
"""

import numpy as np
import pytest

import onlineic as ic
from onlineic import offline
from onlineic.data import PrivateData
from onlineic.mechanisms import ExponentialMechanism, NoisyMax
from support.noise import Wrapped

DOMAIN = ic.Domain.of(a=4, b=2)
COUNTS = np.array([600, 100, 300, 200, 250, 250, 150, 150]) * 100
PURE, GAUSSIAN = ic.Budget(10.0), ic.Budget(10.0, 1e-6)
STEP = 2.0**-12
LEFT, EVEN = np.repeat([1.0, 1.0, 0.0, 0.0], 2), np.tile([1.0, 0.0], 4)


def fine(weights):
    """Return weights of the same range, one of them on a fine grid."""
    changed = weights.copy()
    changed[3] = STEP if weights[3] == 0.0 else 1.0 - STEP
    return changed


PLAIN = [LEFT, EVEN]
WORKLOADS = {
    "fine": [fine(LEFT), fine(EVEN)],
    "a narrow one before": [0.25 * EVEN, fine(LEFT)],
    "a narrow one behind": [fine(LEFT), 0.25 * EVEN],
    "a coarse one beside a narrow fine one": [LEFT, 0.25 * fine(EVEN)],
}

# Mechanisms that are asked queries, in every way in which they draw.
ASKED = {
    "iterative_construction": [
        lambda data, queries, noise, budget=budget, variant=variant, chooser=chooser: (
            offline.iterative_construction(
                data,
                queries,
                budget,
                rounds=3 if variant == "tight" else None,
                variant=variant,
                distinguisher=chooser,
                noise=noise,
            )
        )
        for budget in (PURE, GAUSSIAN)
        for variant in ("tight", "book")
        for chooser in ("noisy max", "exponential")
    ],
    "mwem": [
        lambda data, queries, noise, budget=budget, release=release: offline.mwem(
            data, queries, budget, rounds=2, release=release, noise=noise
        )
        for budget in (PURE, GAUSSIAN)
        for release in ("answer", "partition")
    ],
    "small_database": [
        lambda data, queries, noise, mechanism=mechanism: offline.small_database(
            data, queries, 1.0, size=3, mechanism=mechanism, noise=noise
        )
        for mechanism in ("exponential", "noisy max")
    ],
}

# The others, and what their noise rests on.
COUNTED = "counts of records, of which a replaced one moves one or two by one"
OWN = "a width or sensitivity of its own, in "
OTHERS = {
    "auto_avg": OWN + "test_means",
    "clipping_bound": OWN + "test_means",
    "column_mean": "makes a statistic",
    "distinct_count": "makes a statistic",
    "exceptions": "makes a statistic",
    "fraction": "makes a statistic",
    "linear_programs_above": OWN + "test_linear_programs",
    "count": OWN + "test_records",
    "mean": OWN + "test_means",
    "median": COUNTED,
    "most_popular": COUNTED,
    "numeric_sparse": OWN + "test_values_above",
    "on_grid": "makes a number",
    "private_cdf": COUNTED,
    "quantile": COUNTED,
    "range_queries": "0/1 queries alone: others are refused",
    "sensitivity": "reads nothing",
    "statistic": "makes a statistic",
    "threshold_database": COUNTED,
    "threshold_functions": "makes queries",
}


class Scales(Wrapped):
    """Simulated noise that notes each scale that it is asked for."""

    def __init__(self):
        super().__init__(5)
        self.scales = []

    def discrete_laplace(self, scale, size):
        self.scales.append(float(scale))
        return super().discrete_laplace(scale, size)

    def discrete_gaussian(self, sigma, size):
        self.scales.append(float(sigma))
        return super().discrete_gaussian(sigma, size)


def drawn(run, queries, monkeypatch):
    """Return the largest sensitivity of choices and the scales of numbers, in records."""
    noise, sensitivities = Scales(), []
    with monkeypatch.context() as patched:
        for kind in (NoisyMax, ExponentialMechanism):

            def select(chooser, scores, source, plain=kind.select):
                sensitivities.append(float(chooser.sensitivity))
                return plain(chooser, scores, source)

            patched.setattr(kind, "select", select)
        run(PrivateData(COUNTS, DOMAIN), queries, noise)
    bound = [ic.dense(weights.reshape(DOMAIN.shape)).bind(DOMAIN) for weights in queries]
    unit = float(1 << max(query.grid_bits for query in bound))
    return np.array(sensitivities) / unit, np.array(noise.scales) / unit


def test_every_public_name_is_asked_here_or_listed_with_what_its_noise_rests_on():
    functions = {name for name in offline.__all__ if name[0].islower()}

    assert functions == {*ASKED, *OTHERS}


RUNS = [(name, place) for name, runs in ASKED.items() for place in range(len(runs))]


@pytest.mark.parametrize("weights", WORKLOADS)
@pytest.mark.parametrize(("name", "place"), RUNS)
def test_choices_and_numbers_are_as_noisy_for_fine_weights_as_for_conditions(
    name, place, weights, monkeypatch
):
    run = ASKED[name][place]
    plain, plain_scales = drawn(run, PLAIN, monkeypatch)
    asked, scales = drawn(run, WORKLOADS[weights], monkeypatch)

    assert len(plain)
    assert np.allclose(asked[0], plain[0], rtol=1e-3)
    if name == "mwem" and place % 2:  # by table: noise in counts, whatever the grid of the queries
        return
    assert len(scales) == 0 or scales[0] >= plain_scales[0] * (1.0 - 1e-3)
