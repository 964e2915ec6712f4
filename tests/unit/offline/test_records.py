"""A private number of records: counted once, and told to mechanisms of one call and to baselines."""

import numpy as np
import pytest

import onlineic as ic
from onlineic import baselines, offline
from onlineic.accounting import ADD_REMOVE
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError, TooFewRecordsError
from onlineic.noise import SimulatedNoise
from onlineic.queries.counted import Counted

DOMAIN = ic.Domain.of(age=range(20, 60), sex=["F", "M"])
DRAW = np.random.default_rng(5)
ROWS = {"age": 20 + DRAW.integers(0, 30, 3000), "sex": DRAW.choice(["F", "M"], 3000).tolist()}
WOMEN = np.array(ROWS["sex"]) == "F"
BUDGET = ic.Budget(1.0, 1e-6)


def table():
    return PrivateData.from_records(ROWS, DOMAIN, neighbours="add-remove")


def test_a_count_is_paid_and_says_how_sure_it_is():
    data = table()
    counted = offline.count(data, 0.5, beta=1e-6)

    assert abs(counted.n - 3000) <= counted.bound == 28
    ((spent),) = data.budgets
    assert (0.5, 0.0, ADD_REMOVE) == (spent.epsilon, spent.delta, spent.neighbours)
    assert counted.private
    simulated = offline.count(data, 0.5, noise=SimulatedNoise(1))
    assert not simulated.private
    assert ("NOT PRIVATE" in repr(counted), "NOT PRIVATE" in repr(simulated)) == (False, True)
    public = PrivateData.from_records(ROWS, DOMAIN)
    with pytest.raises(InvalidParameterError, match="private number of records"):
        offline.count(public, 0.5)
    with pytest.raises(InvalidParameterError, match="beta"):
        offline.count(data, 0.5, beta=0.0)
    persons = {**ROWS, "id": np.arange(3000)}
    parted = PrivateData.from_records(persons, DOMAIN, unit=ic.Unit("id"), neighbours="add-remove")
    with pytest.raises(InvalidParameterError, match="must be asked by a session"):
        offline.count(parted, 0.5)
    assert 1 == len(data.budgets)
    assert () == parted.budgets == public.budgets
    nobody = PrivateData.from_counts({"age": [], "sex": []}, [], DOMAIN, neighbours="add-remove")
    with pytest.raises(TooFewRecordsError, match="too few for this epsilon"):
        offline.count(nobody, 1.0, noise=Below(1))


class Below(SimulatedNoise):
    def discrete_laplace(self, scale, size):
        return np.full(size, -2)


def test_counts_that_reach_a_threshold_need_no_number():
    data, asked = table(), [ic.where(age=ic.between(20 + low, 24 + low)) for low in range(0, 30, 5)]
    found = offline.range_queries(data, [*asked, ic.where()], 5.0, threshold=400, cutoff=7, beta=1e-6)
    truth = [np.isin(ROWS["age"], range(20 + low, 25 + low)).sum() for low in range(0, 30, 5)]

    assert all(
        abs(one - other) <= found.radius for one, other in zip(found.counts, [*truth, 3000], strict=True)
    )
    assert ADD_REMOVE == data.budgets[0].neighbours


def test_a_count_is_told_where_the_number_is_private_and_only_there():
    data, counted = table(), Counted(3000, offline.count(table(), 1.0).scale, 0.05)
    public = PrivateData.from_records(ROWS, DOMAIN)
    asks = [
        lambda data, counted: offline.mean(data, "age", 1.0, counted=counted),
        lambda data, counted: offline.median(data, "age", 1.0, counted=counted),
        lambda data, counted: offline.quantile(data, "age", 0.1, 1.0, counted=counted),
        lambda data, counted: offline.most_popular(data, "age", 1.0, counted=counted),
        lambda data, counted: baselines.PerQueryNoise(data, BUDGET, answers=2, counted=counted),
        lambda data, counted: baselines.NoisyTables(data, BUDGET, [["age"]], counted=counted),
        lambda data, counted: baselines.noisy_histogram(data, BUDGET, counted=counted),
    ]
    for ask in asks:
        with pytest.raises(InvalidParameterError, match="n must be released"):
            ask(data, None)
        with pytest.raises(InvalidParameterError, match="counted must be a Counted"):
            ask(data, 3000)
        with pytest.raises(InvalidParameterError, match="counted must be None"):
            ask(public, counted)
        assert () == data.budgets == public.budgets
        ask(data, counted)
        assert ADD_REMOVE == data.budgets[0].neighbours
        data = table()


def misses(seed):
    """Return by how much answers are off, over what they say, at most."""
    data, noise, ages = table(), SimulatedNoise(seed), np.array(ROWS["age"])
    counted = offline.count(data, 0.05, beta=0.025, noise=noise)
    told = {"beta": 0.025, "counted": counted, "noise": noise}
    mean = offline.mean(data, "age", 0.5, **told)
    assert 0.05 == mean.beta
    median = offline.median(data, "age", 0.5, **told)
    below, above = np.mean(ages < median.value), np.mean(ages > median.value)
    counts = np.bincount(ages, minlength=60)
    most = offline.most_popular(data, "age", 0.5, **told)
    found = [
        (counted.n, 3000, counted.bound),
        (mean.value, ages.mean(), mean.error_bound),
        (max(0.0, below - 0.5, above - 0.5), 0.0, median.error_bound),
        (counts[most.value], counts.max(), 3000 * most.error_bound),
    ]
    young = ic.where(age=ic.between(20, 30), sex="F")
    inside = (ages <= 30) & WOMEN
    for engine in (
        baselines.PerQueryNoise(data, BUDGET, answers=3, cache=True, **told),
        baselines.noisy_histogram(data, BUDGET, **told),
    ):
        asked = [(young, inside), (~young, ~inside), (ic.where(), inside | True)]
        for question, truth in [*asked, (~ic.where(sex="F"), ~WOMEN)]:
            answer = engine.answer(question)
            assert counted.bound == answer.n_bound
            found.append((answer.count, truth.sum(), answer.count_bound))
            found.append((answer.value, truth.mean(), answer.fraction_bound))
        assert not answer.private
        assert f"n={counted.n} ± {counted.bound}" in repr(engine)
    return [abs(one - truth) / bound if bound else 9.0 * (one != truth) for one, truth, bound in found]


def test_bounds_carry_the_error_of_the_count():
    worst = np.array([misses(seed) for seed in range(40)])
    over = (worst > 1.0).sum(axis=0)

    assert over.max() <= 8  # each with probability .05 at most
    assert worst.mean() > 0.05


def test_a_vote_that_comes_or_goes_needs_half_the_noise():
    private = offline.most_popular(
        table(), "age", 0.1, counted=Counted(3000, offline.count(table(), 1.0).scale, 0.01)
    )
    public = offline.most_popular(PrivateData.from_records(ROWS, DOMAIN), "age", 0.1)

    assert private.error_bound < 0.6 * public.error_bound
