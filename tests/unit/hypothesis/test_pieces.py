"""A hypothesis over pieces of long attributes is the one over their codes, without writing these."""

import itertools

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import TooLargeError
from onlineic.hypothesis.by_sets import joint
from onlineic.hypothesis.local_fits import LocalFits
from onlineic.hypothesis.pieces import Pieces, PiecewiseHistogram
from onlineic.hypothesis.product import ProductHistogram
from onlineic.queries import Measurement, Partition, PartitionRule, Queries
from onlineic.queries.cuts import LONG, Cut
from onlineic.updates import MaximumEntropy, MixtureOfProducts
from onlineic.updates.fitted_tables import FittedTables

SIZE = LONG + 2  # so few that they can be written too
DOMAIN = ic.Domain.of(t=range(SIZE), k=3)
STARTS = [0, 7, 40_000, 40_001, 90_000]
CUT = Cut.at(SIZE, STARTS)
EACH = Cut.of(np.arange(3))


def measured(values, axes=(0, 1), cuts=(CUT, EACH)):
    partition = Partition(DOMAIN, axes, cuts)
    return Measurement(partition, np.asarray(values, float).ravel(), 0.001)


TABLE = np.array([[1, 2, 3], [5, 3, 1], [9, 1, 1], [2, 20, 2], [10, 20, 20]]) / 100
JOINT = measured(TABLE)
ALONE = measured([0.05, 0.35, 0.6], (0,), (Cut.at(SIZE, [0, 10, 100_000]),))
RANGE = Measurement(ic.where(t=ic.span(20, 50_000), k=1).bind(DOMAIN), np.array([0.25]), 0.01)
WEIGHED = Measurement(
    ic.where(t=ic.weights(np.linspace(0, 1, SIZE))).bind(DOMAIN), np.array([0.5]), 0.01
)  # weights between 0 and 1: no fit reads it
RULES = (MaximumEntropy(), MaximumEntropy(misfit=0.7), FittedTables())


def by_codes(rule, measurements):
    """Return what the rule makes of the same over the codes themselves."""
    return rule.update(MaximumEntropy().init(DOMAIN, ProductHistogram(DOMAIN)), measurements, 0.01)


QUERIES = [
    ic.where(t=ic.span(7, 40_000)),
    ic.where(t=ic.span(3, 60_001), k=1),
    ic.where(t=5),
    ic.where(t=SIZE - 1, k=ic.one_of(0, 2)),
    ~ic.where(t=ic.span(3, 60_001), k=1),
    ic.where(k=2),
    ic.where(t=ic.at_least(90_000)),
    ic.where(t=ic.one_of(6, 8, 100_000), k=1),
    ic.where(t=ic.weights(np.linspace(0, 1, SIZE))),
]


@pytest.mark.parametrize(
    ("rule", "released"),
    [
        *itertools.product(RULES, [(JOINT,), (JOINT, ALONE), (ALONE, JOINT, RANGE, WEIGHED)]),
        *((rule, (ALONE,)) for rule in RULES[:2]),  # by the other one it is a mixture
    ],
    ids=repr,
)
def test_it_is_the_one_over_codes(rule, released):
    held, dense = joint(rule.update(rule.init(DOMAIN), released, 0.01)), joint(by_codes(rule, released))

    assert isinstance(held, PiecewiseHistogram)
    assert held.pieces.cuts[0].parts <= 10
    for query in QUERIES:
        bound = query.bind(DOMAIN)
        assert dense.evaluate(bound) == pytest.approx(held.evaluate(bound), abs=1e-10)
    assert np.allclose(dense.marginal("k"), held.marginal("k"), atol=1e-12)
    assert np.allclose(dense.probabilities(), held.probabilities(), atol=1e-14)


@pytest.mark.parametrize("rule", [*RULES[1:], FittedTables(most_cells=2)], ids=repr)
def test_one_at_a_time_learns_as_when_made_again(rule):
    held = rule.init(DOMAIN)
    for released in ((ALONE,), (ALONE, JOINT), (ALONE, JOINT, RANGE)):
        held = rule.update(held, released, 0.01)
    bound = [query.bind(DOMAIN) for query in QUERIES[:-2]]
    again = (
        rule.restored(rule.init(DOMAIN), released, rule.parameters(held)) if rule.parameters(held) else held
    )

    assert held.evaluate_many(bound).tolist() == [held.evaluate(one) for one in bound]
    assert held.evaluate_many(Queries.bound(DOMAIN, bound)).tolist() == held.evaluate_many(bound).tolist()
    assert again.evaluate_many(bound).tolist() == held.evaluate_many(bound).tolist()


def test_blocks_that_cut_pieces_have_their_share_of_them():
    held = MaximumEntropy().update(MaximumEntropy().init(DOMAIN), (JOINT,), 0.01)
    partition = PartitionRule().partition(ic.where(t=ic.span(5, 41_000), k=1).bind(DOMAIN))

    expected = [held.evaluate(partition.block(index)) for index in range(partition.blocks)]
    assert np.allclose(expected, held.blocks(partition), atol=1e-12)


def test_a_mixture_over_pieces_stays_what_it_was_when_pieces_are_cut_finer():
    pieces = Pieces.of(DOMAIN, [JOINT])
    mixture = pieces.even(MixtureOfProducts(components=20).init(pieces.small))
    finer = Pieces.of(DOMAIN, [JOINT, ALONE, RANGE])
    held, moved = (
        PiecewiseHistogram(pieces, mixture),
        PiecewiseHistogram(finer, pieces.finer(mixture, finer, ())),
    )

    for query in QUERIES:
        bound = query.bind(DOMAIN)
        assert held.evaluate(bound) == pytest.approx(moved.evaluate(bound), abs=1e-12)
    assert 7 / SIZE == pytest.approx(held.evaluate(ic.where(t=ic.below(7)).bind(DOMAIN)), rel=0.5)


def test_pieces_are_cut_by_what_a_fit_reads_alone():
    many = Measurement(ic.where(t=ic.one_of(*range(0, 1_000, 2))).bind(DOMAIN), np.array([0.5]), 0.01)

    assert [0] == Pieces.of(DOMAIN, [WEIGHED, many]).cuts[0].firsts.tolist()
    assert (STARTS, 1) == (
        Pieces.of(DOMAIN, [JOINT, many]).cuts[0].firsts.tolist(),
        len(Pieces.of(DOMAIN, [JOINT, many]).measured([JOINT, many])),
    )


def test_records_are_drawn_evenly_within_pieces_from_a_public_seed():
    held = MaximumEntropy().update(MaximumEntropy().init(DOMAIN), (JOINT,), 0.01)
    drawn = held.sample(20_000, 7)
    codes = np.array(drawn["t"])

    assert drawn == held.sample(20_000, 7)
    for low, high in ((0, 7), (7, 40_000), (40_000, 40_001), (50_000, 60_000), (90_000, 95_000)):
        wanted = held.evaluate(ic.where(t=ic.span(low, high)).bind(DOMAIN))
        assert abs(((codes >= low) & (codes < high)).mean() - wanted) < 5 * (wanted / 20_000) ** 0.5


def test_a_marginal_of_too_many_codes_is_refused_by_name():
    wide = ic.Domain.of(t=range(10**8), k=3)

    with pytest.raises(TooLargeError, match="a marginal must have at most 4,194,304 cells"):
        MaximumEntropy().init(wide).marginal("t")


def test_a_table_of_pieces_is_known_as_one_of_codes_however_fine_the_pieces_are():
    finer = Pieces.of(DOMAIN, [JOINT, ALONE, RANGE])
    for one in (JOINT, ALONE):
        assert one.target == finer.over_codes(finer.partition(one.target))


def test_sets_that_are_fitted_by_themselves_keep_their_tables_when_a_number_comes_that_no_fit_reads(
    monkeypatch,
):
    """Pieces read fewer than were released: a place among what they read is none among all."""
    monkeypatch.setattr("onlineic.updates.mixture.UNFIT", 0.0)  # so that sets are fitted by themselves
    rule, told = FittedTables(most_cells=1), [WEIGHED, JOINT]
    hypothesis, found = rule.update(rule.init(DOMAIN), tuple(told), 0.01), []
    for more in (ALONE, WEIGHED, WEIGHED):
        told.append(more)
        hypothesis = rule.update(hypothesis, tuple(told), 0.01)
        found.append(hypothesis.evaluate(ic.where(t=ic.span(0, 10)).bind(DOMAIN)))

    inner = hypothesis.fit.inner
    assert isinstance(inner, LocalFits)
    assert 2 == inner.fitted == len(inner.measurements)
    assert found[0] == pytest.approx(0.05, abs=1e-3)
    assert [found[0]] * 2 == found[1:]
