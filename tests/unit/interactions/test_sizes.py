"""What released tables tell beyond their noise, and where a fit to them stops."""

import itertools

import numpy as np
import pytest

import onlineic as ic
from onlineic.interactions import Sizes, Table, expected_misfit

DOMAIN = ic.Domain.of(a=["x", "y"], b=list("pqrst"))
BOTH = ((0, 1), (1, 1))


def table_of(margins, precision):
    """Return a table of independent attributes with these masses."""
    return Table(BOTH, np.multiply.outer(*margins), precision)


def means_of(sizes, keys, precision):
    levels = [[key_levels(key, 0), key_levels(key, 1)] for key in keys]
    return precision * sizes.squares(np.array(levels))


def key_levels(key, axis):
    return dict(key).get(axis, 0)


@pytest.mark.parametrize("precision", [1e2, 1e4, 1e6])
def test_of_blocks_of_one_mass_as_much_is_told_as_of_their_mean(precision):
    sizes = Sizes.learned(DOMAIN, [table_of((np.full(2, 0.5), np.full(5, 0.2)), 1e12)])
    keys = [((0, 1),), ((1, 1),), BOTH]
    signal = means_of(sizes, keys, precision)

    assert signal / (1.0 + signal) == pytest.approx(sizes.told(keys, np.full(3, precision)))


def test_of_uneven_blocks_each_is_told_by_its_own_mass():
    a, b = np.array([0.9, 0.1]), np.array([0.6, 0.1, 0.1, 0.1, 0.1])
    sizes = Sizes.learned(DOMAIN, [table_of((a, b), 1e12)])
    precision = float(1.0 / means_of(sizes, [BOTH], 1.0)[0])  # a block of the mean mass is told by half
    signal = 1.0

    (told,) = sizes.told([BOTH], np.array([precision]))

    own = [signal * (2 * one) * (5 * other) for one, other in itertools.product(a, b)]
    assert told == pytest.approx(np.mean([each / (1.0 + each) for each in own]), rel=1e-4)
    assert told < 0.8 / 2.0


def test_many_blocks_are_told_by_groups_of_about_one_mass():
    domain = ic.Domain.of(a=[f"a{place}" for place in range(60)], b=[f"b{place}" for place in range(40)])
    a, b = (np.arange(1.0, size + 1) ** -1.2 for size in domain.shape)
    a, b = a / a.sum(), b / b.sum()
    sizes = Sizes.learned(domain, [table_of((a, b), 1e15)])

    size = float(means_of(sizes, [BOTH], 1.0)[0])
    for signal in (0.1, 1.0, 10.0, 100.0):
        (told,) = sizes.told([BOTH], np.array([signal / size]))
        own = signal * np.multiply.outer(60 * a, 40 * b)
        assert told == pytest.approx(float((own / (1.0 + own)).mean()), abs=0.03)


def test_a_fit_stops_where_the_best_estimate_of_each_block_does():
    """Deviations of blocks go with their masses: each is drawn to nothing by its own signal and noise."""
    generator, domain = np.random.default_rng(3), ic.Domain.of(a=list("abcdefgh"), b=list("ijklmnop"))
    a, b = 0.5 ** np.arange(1.0, 9.0), 0.7 ** np.arange(1.0, 9.0)
    masses, noise, seen, expected = np.multiply.outer(a / a.sum(), b / b.sum()), 0.004, [], []
    signal = (0.05 / noise) ** 2 * masses
    for _ in range(200):
        deviations = 0.05 * np.sqrt(masses) * generator.normal(size=masses.shape)
        noisy = masses + deviations + noise * generator.normal(size=masses.shape)
        beyond = noisy - masses  # what no margins tell, which are fitted as they were measured
        beyond = beyond - beyond.mean(axis=0) - beyond.mean(axis=1, keepdims=True) + beyond.mean()
        seen.append(float(((beyond / (1.0 + signal) / noise) ** 2).mean()))
        expected.append(expected_misfit(domain, [Table(BOTH, noisy, noise**-2.0)]))

    assert np.mean(expected) == pytest.approx(np.mean(seen), abs=0.06)


def shares_of(sizes, domain):
    """Return the share of the largest size that interactions of one, two, .. attributes have."""
    rows = np.tril(np.ones((len(domain.shape), len(domain.shape)), np.int64))
    largest = np.cumprod([masses[1] for masses in sizes.masses])
    return sizes.squares(rows) / largest


def test_each_further_attribute_is_expected_to_leave_as_large_a_share_again():
    domain = ic.Domain.of(dict.fromkeys("abcde", 2))
    alone, of_two, *more = shares_of(Sizes.learned(domain, []), domain)

    assert alone == pytest.approx(1.0)
    assert of_two == pytest.approx(0.3**2)
    assert more == pytest.approx([of_two**2, of_two**3, of_two**4])


def test_of_pairs_that_hang_together_less_triples_are_expected_to_do_so_too():
    domain = ic.Domain.of(dict.fromkeys("abcde", 2))
    even = [Table(((place, 1), (place + 1, 1)), np.full((2, 2), 0.25), 1e12) for place in range(0, 4, 2)]
    _, _, of_three, *_ = shares_of(Sizes.learned(domain, even), domain)

    assert of_three < 0.3**4 / 100.0


@pytest.mark.parametrize("rounds", [19, 20])
def test_large_triples_among_even_pairs_are_believed_whatever_the_number_of_rounds(rounds, monkeypatch):
    """Planted once: a prior of triples that was held too strongly let the rounds go to and fro."""
    monkeypatch.setattr("onlineic.interactions.sizes.ROUNDS", rounds)
    domain = ic.Domain.of({f"x{place}": 4 for place in range(15)})
    cells = np.full((4, 4, 4), 0.6 / 64)
    for a, b in itertools.product(range(4), repeat=2):
        cells[a, b, (a + b) % 4] += 0.4 / 16
    generator = np.random.default_rng(0)
    tables = [
        Table(tuple((axis, 1) for axis in axes), cells + generator.normal(0.0, 3e-4, cells.shape), 3e-4**-2.0)
        for axes in np.arange(15).reshape(5, 3).tolist()
    ]
    sizes = Sizes.learned(domain, tables)
    own = [size for key, size in sizes.own.items() if len(key) == 3]

    assert min(own) > 1.0
    assert sizes.shares[2] < max(own)
