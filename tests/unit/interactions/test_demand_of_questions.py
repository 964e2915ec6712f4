"""Which questions are expected: those over the sets that were asked, and new sets by Good and Turing."""

import itertools

import numpy as np
import pytest

import onlineic as ic
from onlineic.interactions import Demand, asked_of
from onlineic.interactions.demand import expected_of

DOMAIN = ic.Domain.of(a=4, b=4, c=4, d=4, e=4)


def asked(*questions):
    return [asked_of(ic.where(dict.fromkeys(names, 1)).bind(DOMAIN)) for names in questions]


def shares(questions):
    """The weight of subspaces over each set of attributes, over all of those of the same number."""
    demand = Demand.of(DOMAIN, asked(*questions))
    found = {}
    for row, weight in zip(demand.subspaces, demand.weights, strict=True):
        axes = tuple(np.flatnonzero(row).tolist())
        found[axes] = found.get(axes, 0.0) + weight
    whole = [sum(one for axes, one in found.items() if len(axes) == order) for order in range(6)]
    return {axes: one / whole[len(axes)] for axes, one in found.items()}


def test_before_any_question_all_sets_are_expected_alike():
    found = shares([])
    for order in (1, 2, 3):
        held = [found[axes] for axes in itertools.combinations(range(5), order)]
        assert held == pytest.approx([1.0 / len(held)] * len(held))


def test_after_one_question_others_are_expected_as_much_as_its_own():
    found = shares(["ab"])

    assert found[(0, 1)] == max(one for axes, one in found.items() if len(axes) == 2)
    assert found[(0, 1)] < 0.3  # of ten pairs
    assert found[(2, 3)] > 0.02


def test_sets_that_come_again_and_again_are_expected_and_few_others():
    found = shares(["ab", "cd"] * 20)

    assert found[(0, 1)] == pytest.approx(found[(2, 3)])
    assert found[(0, 1)] + found[(2, 3)] > 0.95


def test_where_each_set_is_new_all_sets_of_the_attributes_asked_are_expected():
    pairs = ["".join(pair) for pair in itertools.combinations("abcd", 2)]
    found = shares(pairs)
    held = [found[axes] for axes in itertools.combinations(range(4), 2)]

    assert held == pytest.approx([held[0]] * 6)
    assert 0.001 < found[(0, 4)] < held[0] / 3  # of an attribute that nobody asked of


def test_an_attribute_that_nobody_asked_of_is_expected_less_with_each_question():
    pairs = ["".join(pair) for pair in itertools.combinations("abcd", 2)]
    unasked = [shares(pairs * times)[(4,)] for times in (1, 2, 5)]

    assert unasked == sorted(unasked, reverse=True)
    assert unasked[-1] < unasked[0] / 3


def test_of_announced_sets_none_but_these_and_the_asked_are_expected():
    demand = Demand.of(DOMAIN, asked("ab"), [(2, 3)])
    sets = {tuple(np.flatnonzero(row).tolist()) for row in demand.subspaces}

    assert sets == {(2,), (3,), (2, 3)}  # one question alone does not say that its set comes again

    demand = Demand.of(DOMAIN, asked("ab", "ab"), [(2, 3)])
    sets = {tuple(np.flatnonzero(row).tolist()) for row in demand.subspaces}
    assert sets == {(0,), (1,), (2,), (3,), (0, 1), (2, 3)}


def test_announced_sets_keep_their_share_until_they_are_asked():
    """With the chance of a new set instead, a call about one would leave next to nothing for others."""

    def weight(demand, axes):
        inside = [tuple(np.flatnonzero(row).tolist()) == axes for row in demand.subspaces]
        return demand.weights[inside].sum()

    told = [(0, 1), (2, 3), (1, 2)]
    before, after = Demand.of(DOMAIN, (), told), Demand.of(DOMAIN, asked(*["ab"] * 200), told)
    beside = Demand.of(DOMAIN, asked(*["ad"] * 200), told)

    assert weight(after, (2, 3)) == pytest.approx(weight(before, (2, 3)))
    assert weight(beside, (0, 1)) > 0.0
    assert 0.7 * weight(before, (2, 3)) < weight(beside, (2, 3)) < weight(before, (2, 3))


def test_a_list_of_questions_is_what_is_expected_until_something_was_asked():
    questions = [ic.where(one).bind(DOMAIN) for one in ({"a": 1}, {"a": 2}, {"b": 1, "c": 2})]
    expected = expected_of(DOMAIN, questions, 2**8)
    listed = Demand.of(DOMAIN, (), [one.axes for one in expected], expected)
    sums = {}
    for one in map(asked_of, questions):
        for key, weight in zip(*parts(one), strict=True):
            sums[tuple(key)] = sums.get(tuple(key), 0.0) + weight / len(questions)

    assert [2 / 3, 1 / 3] == pytest.approx([one.share for one in expected])
    assert sums == pytest.approx(
        {tuple(key): weight for key, weight in zip(listed.subspaces.tolist(), listed.weights, strict=True)}
    )


def parts(one):
    demand = Demand.of_these(DOMAIN, [one])
    return demand.subspaces.tolist(), demand.weights.tolist()
