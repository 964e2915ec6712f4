"""Which questions are expected: those over the sets that were asked, and new sets by Good and Turing."""

import itertools

import numpy as np
import pytest

import onlineic as ic
from onlineic.interactions import Demand, asked_of

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
