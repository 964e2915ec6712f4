"""What a table of all cells bounds: products of sets, sets of cells of small marginals, and all weights."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.known_noise import Estimates, TableDesign
from onlineic.known_noise.cells import CellNoise, log_products, log_sets, small_marginals
from onlineic.noise.laws import DiscreteLaplace
from onlineic.queries import Partition, marginal
from onlineic.queries.query import canonical

DOMAIN = ic.Domain.of(a=["u", "v", "w"], b=range(4), c=["no", "yes"], d=range(3), e=range(2))
N, SCALE = 10_000, 3.0
WHOLE = Partition(DOMAIN, tuple(range(5)), tuple(np.arange(size) for size in DOMAIN.shape))


def exact(seed=1):
    return np.random.default_rng(seed).dirichlet(np.full(DOMAIN.size, 0.2)).reshape(DOMAIN.shape)


def noisy(cells, seed=2, n=N):
    return cells.ravel() + np.random.default_rng(seed).laplace(scale=SCALE, size=cells.size) / n


def opened(values, n=N, beta=0.05):
    return Estimates(TableDesign([WHOLE], [SCALE], pure=True), [values], n, beta)


def queries(count, seed):
    """Products of sets, with weights along some attributes or joint ones, and their complements."""
    generator = np.random.default_rng(seed)
    for number in range(count):
        held = {}
        for name in generator.choice(DOMAIN.names, int(generator.integers(1, 6)), replace=False):
            kind, size = dict(DOMAIN)[str(name)], dict(DOMAIN)[str(name)].size
            codes = generator.choice(size, int(generator.integers(1, size)), replace=False)
            held[str(name)] = ic.one_of(*[kind.label(int(code)) for code in codes])
            if number % 4 == 1:
                held[str(name)] = ic.weights(generator.integers(0, 9, size) / 8)
        query = ic.where(held)
        if number % 4 == 2:
            query = ic.dense(generator.uniform(0.1, 0.8, DOMAIN.shape))
        if number % 4 == 3:
            query = query | ic.where(b=ic.between(1, 2), c="no")
        query = (~query if number % 3 == 0 else query).bind(DOMAIN)
        if query.constant is None:
            yield query


def test_without_noise_every_query_is_bracketed_and_the_bracket_holds_the_truth():
    cells, n = exact(), 10**9
    estimates = opened(cells.ravel(), n)
    for query in queries(200, 3):
        truth = float((query.weights() * cells).sum()) / 2**query.grid_bits
        low, high = estimates.bracket(query)

        assert low - 1e-12 <= truth <= high + 1e-12
        assert high - low < 600 / n
        assert estimates.point(query)[0] == pytest.approx(truth, abs=1e-9)


def test_the_estimate_takes_the_known_sum_of_all_noise_from_the_cells_alike():
    """Least squares of one table; its standard error is that of centred weights."""
    cells = exact()
    values = noisy(cells)
    noise = CellNoise(DOMAIN, values, SCALE, N, 0.01, 0.01)
    for query in queries(60, 4):
        weights = query.weights().ravel() / 2**query.grid_bits
        centred = weights - weights.mean()
        value, error = noise.point(query)

        assert value == pytest.approx(weights.mean() + centred @ values, abs=1e-12)
        assert error == pytest.approx(math.sqrt(2) * SCALE * np.linalg.norm(centred) / N, rel=1e-9)


def test_the_worst_weights_behind_the_noise_are_inside_their_brackets_and_close_to_the_ends():
    """Whoever knows the noise takes the cells where it is largest, or least: as many as he likes."""
    cells, closest = exact(), math.inf
    for seed in range(12):
        values = noisy(cells, seed)
        estimates, z = opened(values), values - cells.ravel()
        for count, sign in itertools.product((1, 5, 20, 72, 130), (1, -1)):
            weights = np.zeros(DOMAIN.size)
            weights[np.argsort(-sign * z)[:count]] = 1.0
            query = ic.dense(weights.reshape(DOMAIN.shape)).bind(DOMAIN)
            low, high = estimates.bracket(query)
            truth = float(weights @ cells.ravel())

            assert low <= truth <= high
            if count == 72:
                closest = min(closest, truth - low if sign > 0 else high - truth)

    assert closest < 0.25 * DOMAIN.size * SCALE / N


def test_weights_between_two_values_are_scaled():
    """Half of what a query of full range may err by, for one between .25 and .75."""
    estimates = opened(noisy(exact()))
    rough = np.random.default_rng(5).integers(0, 2, DOMAIN.shape).astype(float)
    widths = []
    for weights in (rough, 0.25 + 0.5 * rough):
        low, high = estimates.bracket(ic.dense(weights).bind(DOMAIN))
        widths.append(high - low)

    assert widths[1] == pytest.approx(widths[0] / 2, rel=1e-6)


def test_few_cells_have_a_narrower_bound_than_half_of_them():
    estimates = opened(noisy(exact()))
    widths = []
    for count in (2, 8, 36, 72):
        weights = np.zeros(DOMAIN.size)
        weights[np.random.default_rng(count).choice(DOMAIN.size, count, replace=False)] = 1.0
        low, high = estimates._cells.bracket(ic.dense(weights.reshape(DOMAIN.shape)).bind(DOMAIN))
        widths.append(high - low)

    assert widths == sorted(widths)
    assert widths[0] < widths[-1] / 3


def test_products_of_sets_and_small_marginals_have_far_narrower_bounds_than_all_weights():
    estimates = opened(noisy(exact()))
    product = ic.where(a=ic.one_of("u", "w"), b=ic.one_of(0, 2, 3), d=ic.one_of(0, 2))
    parity = np.indices(DOMAIN.shape)[[1, 2]].sum(axis=0) % 2
    rough = np.random.default_rng(6).integers(0, 2, DOMAIN.shape)

    def width(query):
        low, high = estimates.bracket(query.bind(DOMAIN))
        return high - low

    assert width(product) < 0.55 * width(ic.dense(rough.astype(float)))
    assert width(ic.dense(parity.astype(float))) < 0.55 * width(ic.dense(rough.astype(float)))


def test_a_set_of_cells_of_a_small_marginal_has_the_radius_of_as_many_sets_as_there_are():
    """Of the 8 cells of b and c; no product is among its sets but as a set of cells."""
    noise = CellNoise(DOMAIN, noisy(exact()), SCALE, N, 0.01, 0.01)
    parity = np.indices(DOMAIN.shape)[[1, 2]].sum(axis=0) % 2
    nats = math.log(2 / 0.01) + math.log(2 * small_marginals(DOMAIN.shape).total()) + 8 * math.log(2)
    law, tilts = DiscreteLaplace(Fraction(SCALE)), np.linspace(0.02, 0.99, 300) / SCALE
    least = min((nats + DOMAIN.size * law.log_moments(tilt / 2)) / tilt for tilt in tilts)
    query = ic.dense(parity.astype(float)).bind(DOMAIN)

    assert noise._set_radius(query) * N == pytest.approx(least, rel=2e-3)


def test_sizes_are_the_numbers_of_queries():
    sizes = [3, 4, 2, 3, 2]
    products = math.prod(2**size - 1 for size in sizes)
    marginals = [
        math.prod(chosen)
        for order in range(1, 6)
        for chosen in itertools.combinations(sizes, order)
        if math.prod(chosen) <= 64
    ]

    assert log_products(DOMAIN.shape) == pytest.approx(math.log(products), rel=1e-12)
    assert len(marginals) == small_marginals(DOMAIN.shape).total()
    assert log_sets(DOMAIN.shape) == pytest.approx(
        math.log(products + sum(2**cells for cells in marginals)), rel=1e-12
    )
    family = TableDesign([WHOLE], [SCALE], pure=True).family
    assert DOMAIN.size == family.cells
    assert f"2^{log_sets(DOMAIN.shape) / math.log(2):.0f} products of any sets of labels" in str(family)
    assert "every query with weights in [0, 1] on the 144 cells" in str(family)
    assert log_products((5000,)) == pytest.approx(5000 * math.log(2))


def test_shares_of_beta_sum_to_it_and_every_event_has_its_own():
    design = TableDesign([WHOLE], [SCALE], pure=True)
    conjunctions, sets, every = design.shares
    noise = CellNoise(DOMAIN, noisy(exact()), SCALE, N, sets * 0.05, every * 0.05)
    marginals = small_marginals(DOMAIN.shape).total()
    union = 2 * math.exp(log_products(DOMAIN.shape) - noise._product_nats)
    union += marginals * 2 * math.exp(-noise._marginal_nats)

    assert 1.0 == pytest.approx(conjunctions + sets + every)
    assert 0.85 == pytest.approx(conjunctions)
    assert union == pytest.approx(sets * 0.05, rel=1e-9)


@pytest.mark.parametrize("shape", [(8, 8), (2, 32, 5), (6, 10, 3, 3), (64,), (65, 2), (3, 1, 4)])
def test_whatever_sets_are_asked_about_the_events_that_are_used_have_a_share(shape, monkeypatch):
    domain = ic.Domain.of(**{f"a{place}": range(size) for place, size in enumerate(shape)})
    noise, used = CellNoise(domain, np.full(domain.size, 1.0 / domain.size), SCALE, N, 0.01, 0.02), []
    monkeypatch.setattr(noise, "_mixed", lambda weights, share, nats: used.append(nats) or math.inf)
    spent, long = 2 * math.exp(log_products(shape) - noise._product_nats), np.flatnonzero(np.array(shape) > 1)
    for order in range(1, len(long) + 1):
        for axes in itertools.combinations(long.tolist(), order):
            half = (np.arange(math.prod(shape[axis] for axis in axes)) % 3 == 0).astype(float)
            used.clear()
            noise.bracket(canonical(domain, False, {axes: half.reshape([shape[axis] for axis in axes])}, 0))
            nats = [one for one in used if one != noise._product_nats]
            spent += sum(2 * math.exp(half.size * math.log(2.0) - one) for one in nats)

    assert 0.005 <= spent <= 0.01 * (1 + 1e-9)


def test_the_events_of_the_largest_noises_share_what_all_weights_have():
    """Half bounds the sum of all, each threshold has a part of the rest on each side."""
    noise, every = CellNoise(DOMAIN, noisy(exact()), SCALE, N, 0.01, 0.02), 0.02
    law, thresholds = DiscreteLaplace(Fraction(SCALE)), [threshold for threshold, _ in noise._excess]

    assert [2, 4, 6, 8, 10, 12] == thresholds
    assert noise._absolute == law.excess_radius(0, DOMAIN.size, every / 2, sides=2)
    one = every / 2 / (2 * len(thresholds))
    assert [law.excess_radius(threshold, DOMAIN.size, one) for threshold in thresholds] == [
        excess for _, excess in noise._excess
    ]


def test_gaussian_tables_of_all_cells_have_no_family_of_all_weights():
    design = TableDesign([WHOLE], [SCALE], pure=False)
    estimates = Estimates(design, [exact().ravel()], N, 0.05)
    rough = np.random.default_rng(6).integers(0, 2, DOMAIN.shape)

    assert 0 == design.family.cells
    assert estimates.bracket(ic.dense(rough.astype(float)).bind(DOMAIN)) is None


def test_a_cross_table_over_all_attributes_and_with_sets_is_bracketed_by_its_cells():
    cells = exact()
    estimates = opened(noisy(cells))
    for names, condition in ((DOMAIN.names, None), (("b", "d"), ic.where(a=ic.one_of("u", "w")))):
        table = marginal(*names, where=condition).bind(DOMAIN)
        lows, highs = estimates.table_brackets(table)
        chosen = cells if condition is None else cells[[0, 2]].sum(axis=(0, 2, 4))

        assert (lows <= chosen).all()
        assert (chosen <= highs).all()
        assert (highs - lows).max() < 0.05
