"""Bounds of matrix mechanisms against streams whose best strategy is known, and against other strategies."""

import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import gaussian_mu
from onlineic.errors import InvalidParameterError, TooLargeError
from onlineic.evaluate import factorisation, factorisation_bound, random_stream

N, BUDGET = 1_000, ic.Budget(1.0, 1e-6)
UNIT = 1.0 / (gaussian_mu(1.0, 1e-6) * N)  # the error of one count
LINE = ic.Domain.of(x=range(16))
TABLE = ic.Domain.of(a=range(5), b=["u", "v", "w"], c=2)


def error_of(strategy, workload):
    """The rms error of W x = R (A x + noise) with the best R, by all pairs of cells; n is known."""
    cells = workload.shape[1]
    inner = strategy.T @ strategy
    norms = np.diag(inner)
    distance = (norms[:, None] + norms - 2.0 * inner).max()
    centred = workload - workload.mean(axis=1, keepdims=True)
    known = np.vstack([strategy - strategy.mean(axis=1, keepdims=True), np.full((1, cells), 1e6)])
    answers = (centred @ np.linalg.pinv(known))[:, :-1]
    assert np.allclose(answers @ strategy - (answers @ strategy).mean(axis=1, keepdims=True), centred)
    return math.sqrt(distance / len(workload)) * np.linalg.norm(answers) * UNIT


def weights(queries, domain):
    bound = [query.bind(domain) for query in queries]
    return np.array([query.weights().ravel() / (1 << query.grid_bits) for query in bound], float)


def test_single_cells_are_best_measured_one_by_one():
    cells = [ic.where(x=code) for code in range(16)]
    found = factorisation_bound(LINE, N, BUDGET, cells)
    exact = UNIT * math.sqrt(2.0 * 15 / 16)  # two cells change; the known sum takes a part of the noise

    assert exact == pytest.approx(error_of(np.eye(16), np.eye(16)))
    assert exact == pytest.approx(found.least)
    assert exact == pytest.approx(found.reached)
    assert (True, 16, 16) == (found.every_pair, found.queries, found.distinct)


@pytest.mark.parametrize("query", [ic.where(x=ic.between(0, 7)), ic.where(x=3), ~ic.where(x=3)])
def test_one_query_has_the_error_of_its_own_noise_however_often_it_is_asked(query):
    found = factorisation_bound(LINE, N, BUDGET, [query, ~query, query])

    assert UNIT == pytest.approx(found.least)
    assert UNIT == pytest.approx(found.reached)
    assert (3, 1) == (found.queries, found.distinct)


def test_prefix_sums_have_the_singular_values_of_a_bridge(monkeypatch):
    """W C W^T is (min(i, j) - i j / N) / N, with eigenvalues 1 / (4 N sin^2(pi k / 2N))."""
    prefixes = [ic.where(x=ic.between(0, last)) for last in range(15)]
    values = [0.5 / math.sin(math.pi * k / 32) for k in range(1, 16)]
    flat = UNIT * math.sqrt(2.0 * 16 / 15) * sum(values) / math.sqrt(15 * 16)
    moved = factorisation_bound(LINE, N, BUDGET, prefixes)
    monkeypatch.setattr(factorisation, "ROUNDS", 1)  # all cells alike
    equal = factorisation_bound(LINE, N, BUDGET, prefixes)
    best = min(error_of(one, weights(prefixes, LINE)) for one in (np.eye(16), np.tril(np.ones((16, 16)))))

    assert flat == pytest.approx(equal.least)
    assert flat <= moved.least <= min(moved.reached, equal.reached) < best


def test_constants_are_known_without_noise():
    cells = [ic.where(x=code) for code in range(16)]
    everything = [ic.where(x=ic.between(0, 15))] * 48
    found, alone = (factorisation_bound(LINE, N, BUDGET, one) for one in ([*cells, *everything], cells))

    assert alone.least / 2 == pytest.approx(found.least)
    assert alone.reached / 2 == pytest.approx(found.reached)


@pytest.mark.parametrize("seed", range(5))
def test_no_strategy_is_below_the_bound_and_the_decomposition_reaches_what_is_said(seed):
    generator = np.random.default_rng(seed)
    queries = random_stream(TABLE, 25, seed)
    workload = weights(queries, TABLE)
    workload = workload[np.ptp(workload, axis=1) > 0]
    found = factorisation_bound(TABLE, N, BUDGET, queries)
    share = math.sqrt(len(workload) / len(queries))  # constants err by nothing
    tried = [np.eye(30), np.vstack([np.eye(30), 3.0 * workload])]
    tried += [np.vstack([0.1 * np.eye(30), generator.normal(size=(40, 30))]) for _ in range(5)]
    errors = [share * error_of(one, workload) for one in tried]

    assert found.every_pair
    assert found.least <= found.reached
    assert found.least <= min(errors)
    # the strategy itself, made here from its definition at equal weights of the cells
    centred = workload - workload.mean(axis=1, keepdims=True)
    _, values, right = np.linalg.svd(centred / math.sqrt(30), full_matrices=False)
    held = values > 1e-9
    own = share * error_of(np.sqrt(values[held])[:, None] * right[held], workload)
    assert own == pytest.approx(found.reached, rel=0.25)


def test_at_equal_weights_the_strategy_has_its_own_error(monkeypatch):
    monkeypatch.setattr(factorisation, "ROUNDS", 1)
    workload = np.unique(weights([ic.where(a=code, b="v") for code in range(5)], TABLE), axis=0)
    centred = workload - workload.mean(axis=1, keepdims=True)
    _, values, right = np.linalg.svd(centred / math.sqrt(30), full_matrices=False)
    own = error_of(np.sqrt(values)[:, None] * right, workload)

    found = factorisation_bound(TABLE, N, BUDGET, [ic.dense(row.reshape(TABLE.shape)) for row in workload])

    assert own == pytest.approx(found.reached, rel=1e-4)


def test_products_of_weights_and_weights_of_cells_are_one_stream():
    """Fewer queries than cells are decomposed by queries, more by cells."""
    queries = [query.bind(TABLE) for query in random_stream(TABLE, 200, 1)]
    few, law = queries[:20], [np.full(size, 1.0 / size) for size in TABLE.shape]
    products, cells = factorisation._weights(TABLE, few), [weights(few, TABLE)]
    one, other = (
        factorisation._Strategy.of(parts, np.ones(20), held)
        for parts, held in ((products, law), (cells, [np.full(30, 1 / 30)]))
    )
    by_cells = factorisation._weights(TABLE, queries)
    many = factorisation_bound(TABLE, N, BUDGET, queries)

    assert (3, 1) == (len(products), len(by_cells))
    assert one.singular == pytest.approx(other.singular, abs=1e-6)
    assert np.allclose(one.squares(), other.squares(), rtol=1e-3, atol=1e-4 * one.squares().max())
    assert many.distinct > TABLE.size
    assert many.least <= many.reached


def test_a_search_over_cells_finds_the_largest_distance_of_a_small_domain(monkeypatch):
    queries = random_stream(TABLE, 25, 3)
    exact = factorisation_bound(TABLE, N, BUDGET, queries)
    monkeypatch.setattr(factorisation, "ALL_PAIRS", 0)
    monkeypatch.setattr(factorisation, "SAMPLED", 4)
    searched = factorisation_bound(TABLE, N, BUDGET, queries)

    assert (True, False) == (exact.every_pair, searched.every_pair)
    assert exact.least == searched.least
    assert 0.97 * exact.reached <= searched.reached <= exact.reached * (1 + 1e-9)


def test_weights_that_suit_one_sample_are_judged_by_another(monkeypatch):
    queries = random_stream(TABLE, 60, 4)
    monkeypatch.setattr(factorisation, "FITTED_TO", 10)
    fitted = factorisation_bound(TABLE, N, BUDGET, queries)
    monkeypatch.setattr(factorisation, "ROUNDS", 1)
    equal = factorisation_bound(TABLE, N, BUDGET, queries)

    assert 0.97 * equal.least <= fitted.least


def test_what_cannot_be_bounded_is_refused(monkeypatch):
    query = ic.where(x=3)
    with pytest.raises(InvalidParameterError, match="delta > 0"):
        factorisation_bound(LINE, N, ic.Budget(1.0), [query])
    with pytest.raises(InvalidParameterError, match="no constant"):
        factorisation_bound(LINE, N, BUDGET, [ic.where(x=ic.between(0, 15))])
    monkeypatch.setattr(factorisation, "MOST_QUERIES", 1)
    with pytest.raises(TooLargeError, match="distinct queries"):
        factorisation_bound(LINE, N, BUDGET, [query, ic.where(x=4)])
    monkeypatch.setattr(factorisation, "MOST_QUERIES", 10)
    monkeypatch.setattr(factorisation, "MOST_WEIGHTS", 10)
    with pytest.raises(TooLargeError, match="weights in all"):
        factorisation_bound(TABLE, N, BUDGET, [ic.dense(np.linspace(0, 1, 30).reshape(5, 3, 2))])
