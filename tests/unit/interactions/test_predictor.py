"""The predicted error of a question: noise exactly, the rest by the size of interactions."""

import math

import numpy as np
import pytest

import onlineic as ic
from onlineic import where
from onlineic.interactions import Demand, Predictor, asked_of, cheapest, levels_of
from onlineic.interactions.sizes import levelled, table_of
from onlineic.queries import Queries
from onlineic.queries.partitions import Measurement, Partition

DOMAIN = ic.Domain.of(a=range(20), b=["u", "v", "w"], c=range(6))
RNG = np.random.default_rng(1)


def released(key, scale):
    target = table_of(DOMAIN, key)
    values = RNG.dirichlet(np.ones(target.blocks)) + scale * RNG.normal(size=target.blocks)
    return Measurement(target, values, scale)


FIRST = [released(((0, 1),), 0.02), released(((0, 2), (1, 1)), 0.01)]
SECOND = [released(((0, 2), (1, 1)), 0.002), released(((1, 1), (2, 1)), 0.003)]
ASKED = [
    ic.where(a=ic.between(3, 9)),
    ic.where(a=ic.between(2, 11), b="u"),
    ~ic.where(b="v", c=ic.between(1, 4)),
    ic.where(a=ic.one_of(1, 5, 9), c=2),
    ic.where(),
]


def test_in_the_mean_it_is_the_error_that_the_rule_of_purchases_goes_by():
    predictor = Predictor(DOMAIN).after(FIRST).after(SECOND)
    for asked in ASKED[:4]:
        question = asked.bind(DOMAIN)
        demand, error = Demand.of_these(DOMAIN, [asked_of(question)]), predictor.error_in_the_mean(question)
        design = cheapest(predictor, demand, 1e-9)

        assert error == pytest.approx(design.before, rel=1e-3)  # a cut of the sum
        assert error == pytest.approx(predictor.expected(demand), rel=1e-12)


def test_a_complement_is_predicted_as_its_question_and_of_all_records_nothing_is_unknown():
    for predictor in (Predictor(DOMAIN), Predictor(DOMAIN).after(FIRST).after(SECOND)):
        turned, alone = ((one.bind(DOMAIN)) for one in (~ASKED[0], ASKED[0]))
        assert predictor.error(turned) == predictor.error(alone) > 0.0
        assert predictor.error(where().bind(DOMAIN)) == 0.0


def test_a_question_of_more_levels_than_a_programme_takes_in_is_predicted_by_all_of_them():
    """Of 5184 combinations of levels a design tells fewer apart; the predicted error sums over all."""
    domain = ic.Domain.of(dict(zip("abcdefghi", (16, 9, 30, 5, 40, 7, 12, 3, 60), strict=True)))
    question = where(dict.fromkeys(domain.names, ic.between(0, 1))).bind(domain)
    predictor = Predictor(domain)
    part = Demand.of_these(domain, [asked_of(question)])

    assert len(asked_of(question).told) < len(asked_of(question).axes)
    assert 0.0 < predictor.expected(part) < predictor.error(question) < 1.0
    assert predictor.with_planned([(((0, 1), (3, 1)), 1e6)]).error(question) < predictor.error(question)


def test_an_attribute_of_one_code_does_not_change_what_a_cross_table_errs_by():
    domain = ic.Domain.of(a=6, one=1, c=9)
    predictor = Predictor(domain).with_planned([(((0, 1),), 1e4)])
    with_it, without = (ic.marginal(*names).bind(domain) for names in (("a", "one", "c"), ("a", "c")))

    for predict in (predictor.error, predictor.error_in_the_mean):
        assert predict(with_it) == pytest.approx(predict(without), rel=1e-12)


def test_more_tables_never_predict_more():
    known = Predictor(DOMAIN).after(FIRST)
    more = known.expecting((one.target, one.scale) for one in SECOND)
    for asked in (one.bind(DOMAIN) for one in ASKED[:4]):
        assert known.error(asked) >= more.error(asked) > 0.0
        assert known.error_in_the_mean(asked) >= more.error_in_the_mean(asked) > 0.0


def test_many_at_once_and_the_cells_of_a_table_are_predicted_as_each_alone():
    predictor = Predictor(DOMAIN).after(FIRST).after(SECOND)
    asked = [*ASKED, *(where(a=ic.between(low, low + 3), c=low % 6) for low in range(12))]
    queries = Queries.bound(DOMAIN, [one.bind(DOMAIN) for one in asked])
    table = ic.marginal("a", "b").bind(DOMAIN)
    cells = table.table(predictor.cells(table.partition).ravel())

    assert predictor.errors(queries) == pytest.approx([predictor.error(query) for query in queries], rel=1e-9)
    for a, b in ((0, 0), (7, 2), (19, 1)):
        alone = predictor.error(where(a=a, b="uvw"[b]).bind(DOMAIN))
        assert cells[a, b] == pytest.approx(alone, rel=1e-9)
    assert predictor.error(table) == pytest.approx(math.sqrt((cells**2).mean()), rel=1e-9)


def test_of_a_quiet_table_nothing_but_its_noise_is_left():
    """A cell of a table errs by the noise of the cell, less what the known sum of all takes of it."""
    predictor = Predictor(DOMAIN).after([released(((1, 1),), 1e-6)])

    assert predictor.error(ic.where(b="u").bind(DOMAIN)) == pytest.approx(1e-6 * math.sqrt(2 / 3), rel=1e-6)
    assert predictor.error(ic.marginal("b").bind(DOMAIN)) == pytest.approx(1e-6 * math.sqrt(2 / 3), rel=1e-6)


def test_of_too_many_attributes_nothing_is_predicted():
    domain = ic.Domain.of({f"x{place}": 2 for place in range(20)})
    many = ic.where(dict.fromkeys(domain.names, 1)).bind(domain)

    assert Predictor(domain).error(many) == 1.0


@pytest.mark.parametrize(("parts", "read"), [(2, 1), (3, 5), (9, 5), (12, 20), (19, 20)])
def test_a_table_that_is_cut_elsewhere_says_about_what_one_at_the_nearest_levels_would(parts, read):
    """Twenty codes, whose levels have 1, 5 and 20 parts: each has its mass and about its share of noise."""
    labels = np.arange(20) * parts // 20
    cut = Partition(DOMAIN, (0, 1), (labels, np.zeros(3, np.int64)))
    found = levelled(DOMAIN, [Measurement(cut, np.bincount(labels) / 20.0, 0.01)])
    if read == 1:
        assert [] == found
        return
    (table,) = found
    (level,) = [level for _, level in table.key]

    assert ((0, level),) == table.key
    assert levels_of(DOMAIN)[0].parts[level] == read
    assert table.counts == pytest.approx(np.full(read, 1.0 / read))
    assert table.precision == pytest.approx(read / parts / 0.01**2)


def test_a_table_that_is_cut_at_levels_is_read_as_it_is():
    held = released(((0, 2), (1, 1)), 0.01)
    assert levelled(DOMAIN, [held])[0].counts.ravel() == pytest.approx(held.values)


def test_what_is_planned_is_known_by_its_noise_until_it_is_bought():
    predictor = Predictor(DOMAIN).after(FIRST)
    planned = predictor.expecting((one.target, one.scale) for one in SECOND)
    question = ASKED[1].bind(DOMAIN)

    assert planned.error(question) < predictor.error(question)
    assert planned.after(SECOND).planned == ()


def test_while_all_values_weigh_alike_their_masses_change_no_prediction():
    asked = [where(a=ic.between(3, 9), b="u"), where(b="v"), where(a=5, c=ic.at_least(2)), ~where(a=3)]
    for predictor in (Predictor(DOMAIN), Predictor(DOMAIN).with_planned([(((0, 2), (1, 1)), 1e4)])):
        for query in (one.bind(DOMAIN) for one in asked):
            assert predictor.error(query) == pytest.approx(predictor.error_in_the_mean(query))


def test_about_rare_values_less_is_unknown_than_about_heavy_ones():
    counts = np.array([0.9, 0.09, 0.01])
    table = Measurement(Partition(DOMAIN, (1,), (np.arange(3),)), counts, 1e-4)
    known = Predictor(DOMAIN).after([table])
    heavy, rare = (where(b=label, c=ic.at_least(3)).bind(DOMAIN) for label in ("v", "w"))

    assert known.error_in_the_mean(rare) == pytest.approx(known.error_in_the_mean(heavy))
    assert known.error(rare) < known.error(heavy) / 2
    assert known.error(rare) >= 1e-4 / 2  # half of its records, and their noise


def test_levels_share_the_variance_of_a_condition_by_mass():
    levels = levels_of(DOMAIN)[0]
    masses = np.random.default_rng(3).dirichlet(np.full(20, 0.3))
    weights = np.random.default_rng(4).uniform(size=20)
    found = levels.spread(weights, masses)

    assert levels.spread(np.stack([weights, weights**2]), masses)[0] == pytest.approx(found)
    assert found.sum() == pytest.approx(masses @ weights**2)
    assert found[0] == pytest.approx((masses @ weights) ** 2)
    assert (found >= 0.0).all()
