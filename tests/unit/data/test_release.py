"""One stamp and one charge: sessions, offline mechanisms and baselines judge the same noise the same way."""

import numpy as np
import pytest

import onlineic as ic
from onlineic import offline
from onlineic.baselines import NoisyTables, PerQueryNoise, noisy_histogram
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError
from onlineic.noise import SimulatedNoise, SystemNoise
from support.noise import Wrapped

DOMAIN = ic.Domain.of(a=4, b=range(3))
BUDGET = ic.Budget(1.0)
QUERIES = [ic.where(a=0), ic.where(b=1), ic.where(a=1, b=2)]


class ForeignNoise(Wrapped):
    """Somebody's own source, which says that it cannot be predicted."""

    simulated = False


def table():
    return PrivateData(np.arange(12) * 100, DOMAIN)


def stamps(engine):
    """What the statistics, an answer and the text of an open engine say."""
    return {
        engine.statistics().private,
        engine.answer(QUERIES[0]).private,
        "NOT PRIVATE" not in repr(engine),
    }


def stamp(result):
    return {result.private, "NOT PRIVATE" not in repr(result)}


DOORS = {
    "session": lambda data, noise: stamps(ic.OnlineIC(data, BUDGET, noise=noise)),
    "per-query noise": lambda data, noise: stamps(
        PerQueryNoise(data, BUDGET, answers=2, noise_law="laplace", noise=noise)
    ),
    "noisy tables": lambda data, noise: stamps(NoisyTables(data, BUDGET, [["a"], ["b"]], noise=noise)),
    "noisy histogram": lambda data, noise: stamps(noisy_histogram(data, BUDGET, noise=noise)),
    "mean": lambda data, noise: stamp(offline.mean(data, "b", 1.0, noise=noise)),
    "auto_avg": lambda data, noise: stamp(offline.auto_avg(data, "b", 1.0, noise=noise)),
    "clipping_bound": lambda data, noise: stamp(offline.clipping_bound(data, "b", 1.0, noise=noise)),
    "private_cdf": lambda data, noise: stamp(offline.private_cdf(data, "b", 1.0, noise=noise)),
    "median": lambda data, noise: stamp(offline.median(data, "b", 1.0, noise=noise)),
    "most_popular": lambda data, noise: stamp(offline.most_popular(data, "a", 1.0, noise=noise)),
    "small_database": lambda data, noise: stamp(
        offline.small_database(data, QUERIES, 1.0, size=2, noise=noise)
    ),
    "threshold_database": lambda data, noise: stamp(offline.threshold_database(data, "b", 1.0, noise=noise)),
    "range_queries": lambda data, noise: stamp(
        offline.range_queries(data, QUERIES, 1.0, threshold=500, cutoff=1, noise=noise)
    ),
    "mwem": lambda data, noise: stamp(offline.mwem(data, QUERIES, BUDGET, noise=noise)),
    "iterative_construction": lambda data, noise: stamp(
        offline.iterative_construction(data, QUERIES, BUDGET, rounds=2, noise=noise)
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_the_system_s_noise_alone_is_stamped_private_and_charged(door):
    outcomes = {}
    for make in (SystemNoise, lambda: SimulatedNoise(0), lambda: ForeignNoise(0)):
        data, noise = table(), make()
        outcomes[type(noise).__name__] = (DOORS[door](data, noise), list(data.budgets))

    assert {
        "SystemNoise": ({True}, [BUDGET]),
        "SimulatedNoise": ({False}, []),
        "ForeignNoise": ({False}, []),
    } == outcomes


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_noise_is_refused_by_name_before_any_charge(door):
    data = table()
    with pytest.raises(InvalidParameterError, match="noise must be a Noise, got a Generator"):
        DOORS[door](data, np.random.default_rng(0))

    assert ([], 0) == (list(data.budgets), data.reads)
