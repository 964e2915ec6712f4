"""Sets of a few attributes fitted by themselves: margins, what is left to the mixture, when that is done."""

import itertools

import numpy as np
import pytest

from onlineic import Budget, OnlineIC, PrivateData, replay
from onlineic.domain import Domain
from onlineic.hypothesis import LocalFits, Mixture
from onlineic.hypothesis.by_sets import nearest
from onlineic.hypothesis.mixture import uniform_mixture
from onlineic.hypothesis.mixture_fit import misfit_of
from onlineic.noise import SimulatedNoise
from onlineic.plan.fitting_rule import table_rule
from onlineic.queries import Measurement, Partition, one_of, weights, where
from onlineic.updates import MixtureOfProducts

SIZES = (3, 2, 4, 3)
DOMAIN = Domain.of({f"a{axis}": size for axis, size in enumerate(SIZES)})
CHAIN = Domain.of({f"a{axis}": 8 for axis in range(9)})


def joint(seed=0):
    """A Markov chain over the four attributes."""
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.ones(SIZES[0]))
    for before, after in itertools.pairwise(SIZES):
        cells = cells[..., np.newaxis] * rng.dirichlet(np.full(after, 0.4), before)
    return cells


def released(cells, sets, scale=1e-6):
    found = []
    for axes in sets:
        target = Partition(DOMAIN, axes, tuple(np.arange(SIZES[axis]) for axis in axes))
        others = tuple(axis for axis in range(len(SIZES)) if axis not in axes)
        found.append(Measurement(target, cells.sum(axis=others).ravel(), scale))
    return tuple(found)


def fits(measurements):
    return LocalFits(uniform_mixture(DOMAIN, 20, 0.3, 0), measurements)


PAIRS = tuple(itertools.combinations(range(4), 2))


def test_pairs_of_a_chain_give_its_sets_of_three_and_four():
    cells = joint()
    held = fits(released(cells, PAIRS))
    for axes in ((0, 1, 2), (0, 1, 3), (0, 2), (0, 1, 2, 3)):
        names = [f"a{axis}" for axis in axes]
        truth = cells.sum(axis=tuple(axis for axis in range(4) if axis not in axes))
        assert np.abs(held.marginal(*names) - truth).max() < 2e-3
    query = where(a0=1, a1=0, a2=one_of(0, 2, 3)).bind(DOMAIN)
    assert held.evaluate(query) == pytest.approx(cells[1, 0, [0, 2, 3]].sum(), abs=2e-3)


def test_a_coarse_table_is_met_and_even_inside_its_blocks():
    classes = (np.array([0, 1, 1]), np.array([0, 0, 1, 1]))
    values = np.array([0.1, 0.2, 0.3, 0.4])
    held = fits((Measurement(Partition(DOMAIN, (0, 2), classes), values, 1e-3),))

    assert held.marginal("a0", "a2").tolist() == pytest.approx(
        np.repeat(np.repeat([[0.1, 0.2], [0.3, 0.4]], [1, 2], 0) / [[1], [2], [2]], 2, 1) / 2
    )


def test_a_pair_that_was_released_with_other_noise_too_is_known_by_the_mean_of_both():
    """A noisy table of a pair, or of three attributes with it, does not undo what a precise one said."""
    cells, noisy = joint(), joint(1)
    precise, later = released(cells, PAIRS, 1e-3), released(noisy, [(0, 1), (0, 1, 2)], 3e-2)
    alone, both = fits(precise), fits((*precise, *later))

    one, other = alone.marginal("a0", "a1"), both.marginal("a0", "a1")
    moved = noisy.sum(axis=(2, 3)) - cells.sum(axis=(2, 3))
    parts = np.array([1e-3**-2, 3e-2**-2, 3e-2**-2 / SIZES[2]])  # three tables say it, the last one summed
    assert other - one == pytest.approx(moved * parts[1:].sum() / parts.sum(), abs=2e-5)
    assert np.abs(moved).max() > 0.1  # which a later table that was met by itself would have taken over


def test_one_query_or_many_give_the_same_bits_and_blocks_their_sums():
    held = fits(released(joint(), [(0,), *PAIRS[:4]]))
    rng = np.random.default_rng(1)
    asked = [
        where(a0=1), ~where(a0=one_of(0, 2), a1=1), where(a0=0, a2=weights(rng.random(4)), a1=0), where(),
        where(a2=1, a3=0), where(a0=2, a1=1, a2=one_of(1, 2)), where(a3=1),
    ]  # fmt: skip
    bound = [query.bind(DOMAIN) for query in asked]

    assert held.evaluate_many(bound).tolist() == [held.evaluate(query) for query in bound]
    halves = Partition(DOMAIN, (0, 1), (np.array([0, 1, 1]), np.arange(2)))
    assert held.blocks(halves).reshape(2, 2)[1] == pytest.approx(held.marginal("a0", "a1")[1:].sum(axis=0))


def test_what_was_not_released_is_left_to_the_mixture(monkeypatch):
    held = fits(released(joint(), [(0,), (0, 1), (0, 2)]))
    for query in (
        where(a1=0, a2=3),
        where(a3=1),
        where(a0=1, a1=1, a2=0),
    ):
        bound = query.bind(DOMAIN)
        assert held.evaluate(bound) == held.mixture.evaluate(bound)
    known = where(a0=1, a1=1).bind(DOMAIN)
    assert held.evaluate(known) != held.mixture.evaluate(known)
    assert held.sample(5, 1) == held.mixture.sample(5, 1)
    monkeypatch.setattr("onlineic.hypothesis.local_fits.LOCAL_CELLS", 5)
    assert fits(held.measurements).evaluate(known) == held.mixture.evaluate(known)


def test_sets_that_are_dropped_come_back_to_the_bit(monkeypatch):
    held = fits(released(joint(), PAIRS))
    asked = [where(a0=1, a1=1).bind(DOMAIN), where(a1=0, a2=1, a3=2).bind(DOMAIN)]
    before = [held.evaluate(query) for query in asked]
    monkeypatch.setattr("onlineic.hypothesis.by_sets.ALL_CELLS", 8)
    small = fits(held.measurements)

    assert [small.evaluate(query) for query in asked * 2] == before * 2
    assert len(small._held) == 1


def test_the_nearest_distribution_moves_all_cells_alike():
    assert nearest(np.array([0.5, 0.7, -0.3]), 1.0).tolist() == pytest.approx([0.4, 0.6, 0.0])
    assert nearest(np.array([0.25, 0.35, 0.1]), 1.0).tolist() == pytest.approx([0.35, 0.45, 0.2])


def chain_records(n):
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, 8, n)]
    for _ in range(8):
        follows = rng.permutation(8)[codes[-1]]
        codes.append(np.where(rng.random(n) < 0.2, rng.integers(0, 8, n), follows))
    return PrivateData.from_records(dict(zip(CHAIN.names, codes, strict=True)), CHAIN), codes


def test_a_session_fits_sets_by_themselves_where_the_mixture_does_not_hold_the_tables():
    data, codes = chain_records(300_000)
    session = OnlineIC(data, Budget(1.0, 1e-9), max_queries=12_000, noise=SimulatedNoise(1))
    queries = [
        where({f"a{at}": 1, f"a{at + 1}": code, f"a{at + 2}": 3}) for at in range(0, 7, 3) for code in (2, 5)
    ]
    answers = [session.answer(query) for query in queries]  # each buys by itself
    truths = [
        np.mean((codes[at] == 1) & (codes[at + 1] == code) & (codes[at + 2] == 3))
        for at in range(0, 7, 3)
        for code in (2, 5)
    ]
    session.synthetic(1)  # buys tables, which looking at the hypothesis does not
    hypothesis = session.hypothesis
    local = hypothesis.fit

    assert isinstance(local, LocalFits)
    assert misfit_of(local.mixture, local.measurements) > 2.0
    assert max(abs(one.value - truth) for one, truth in zip(answers, truths, strict=True)) < 1.5e-3
    again = replay(session.transcript, CHAIN, update=session.plan.update, alpha=session.plan.alpha)
    bound = [query.bind(CHAIN) for query in queries]
    assert again.evaluate_many(bound).tolist() == hypothesis.evaluate_many(bound).tolist()
    assert isinstance(table_rule(hypothesis), MixtureOfProducts)
    assert MixtureOfProducts().init(CHAIN, hypothesis) is local.mixture


def test_a_later_release_is_taken_in():
    rule = MixtureOfProducts(components=20, first_steps=1, steps=1)
    first, more = released(joint(), PAIRS[:3]), released(joint(1), [(0, 1)], 1e-10)
    held = rule.update(rule.init(DOMAIN), first, 0.1)
    assert isinstance(held, LocalFits)
    later = rule.update(held, (*first, *more), 0.1)

    assert later.fitted == 4
    assert later.marginal("a0", "a1").ravel() == pytest.approx(more[0].values, abs=1e-7)
    assert rule.update(later, (*first, *more), 0.1) is later
    assert isinstance(rule.update(rule.init(DOMAIN), released(joint(), PAIRS[:3], 10.0), 0.1), Mixture)


def test_few_releases_leave_the_mixture_alone_where_their_sets_are_fitted_by_themselves(monkeypatch):
    """Of a tenth more, and of a set of too many cells, the mixture is fitted again: nobody else reads it."""
    rule = MixtureOfProducts(components=20, first_steps=1, steps=1)
    first, more = released(joint(), PAIRS * 2), released(joint(1), [(0, 1), (1, 2)], 1e-10)
    held = rule.update(rule.init(DOMAIN), first, 0.1)
    one, two = (rule.update(held, (*first, *more[:count]), 0.1) for count in (1, 2))
    monkeypatch.setattr("onlineic.hypothesis.local_fits.LOCAL_CELLS", 5)
    wide = rule.update(held, (*first, more[0]), 0.1)

    assert one.mixture is held.mixture
    assert (13, 13, 12) == (one.fitted, len(one.measurements), one.mixture.fitted)
    assert one.marginal("a0", "a1").ravel() == pytest.approx(more[0].values, abs=1e-7)
    assert 14 == two.fitted == two.mixture.fitted
    assert 13 == wide.fitted == wide.mixture.fitted
    assert rule.update(one, (*first, more[0]), 0.1) is one


def test_one_attribute_is_read_from_every_table_that_holds_it():
    """A hit on it is often released beside another attribute, and a mixture left alone has not learned it."""
    told = released(joint(), [(0, 1), (0, 2)], 1e-3)
    alone = fits(told).marginal("a0")
    each = [one.values.reshape(one.target.shape).sum(axis=1) for one in told]

    assert alone == pytest.approx(np.average(each, axis=0, weights=[1 / 2, 1 / 4]), abs=1e-9)
    assert fits(told).holds(Partition(DOMAIN, (1,), (np.arange(2),)))
    assert not fits(told).holds(Partition(DOMAIN, (3,), (np.arange(3),)))
    assert not fits(told).holds(where(a0=1).bind(DOMAIN))
