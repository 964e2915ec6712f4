"""Queries with weights outside of [0, 1]: asked on [0, 1], read in their own units and with their bound."""

import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidQueryError
from onlineic.evaluate import exact_values
from onlineic.noise import SimulatedNoise
from onlineic.queries import Answer

DOMAIN = ic.Domain.of(a=4, b=3)
COUNTS = np.arange(1, 13).reshape(4, 3) * 100
DATA = ic.PrivateData(COUNTS, DOMAIN)


def exact(question):
    """The mean weight, from the exact value of what is asked."""
    (value,) = exact_values(DATA, [question.expression.bind(DOMAIN)])
    return question.restored(Answer(float(value), 0.0, "easy", 0.0))


@pytest.mark.parametrize(
    "array",
    [[-1, 1, -1, 1], [-3.5, 2.25, 0.125, 7], [0, 1e-3, 0, 5e-3], [1e9, 1e9 + 1, 1e9, 1e9], [2, 2, 2, 2]],
)
def test_the_mean_of_a_weight_by_attribute_is_that_of_the_records(array):
    value, slack = exact(question := ic.rescaled(a=np.array(array)))
    width = max(array) - min(array)
    rounding = question.expression.bind(DOMAIN).rounding * width

    assert abs(value - float((COUNTS.sum(axis=1) * array).sum() / COUNTS.sum())) <= slack + rounding
    assert slack <= 1e-14 * max(map(abs, array)) * 4
    assert (min(array), max(array)) == (question.low, question.high)


def test_a_parity_is_one_dense_query_with_twice_the_bound():
    parity = ic.rescaled(np.array([[(-1) ** (a + b) for b in range(3)] for a in range(4)]))
    value, bound = parity.restored(Answer(0.25, 0.0, "hard", 0.03))

    assert 1 == parity.expression.bind(DOMAIN).sensitivity
    assert value == pytest.approx(-0.5)
    assert bound == pytest.approx(0.06)
    assert math.isinf(parity.restored(Answer(0.25, 0.0, "untested", math.inf))[1])


def test_of_a_private_number_of_records_the_bound_is_of_the_mean_over_them():
    agree = ic.rescaled(a=np.array([-1.0, -1.0, -1.0, 1.0]))
    value, bound = agree.restored(
        Answer(0.95, 95.0, "hard", 0.0, n=100, n_bound=5)
    )  # 95 of 95: the mean is 1

    assert abs(value - 1.0) <= bound < 0.3


def test_a_session_answers_a_real_column_within_its_bound():
    grid = ic.Grid(0.0, 0.3, points=4)
    question = ic.rescaled(a=grid)
    session = ic.OnlineIC(DATA, ic.Budget(1.0, 1e-9), questions=5, noise=SimulatedNoise(1))
    value, bound = question.restored(session.answer(question.expression))

    assert abs(value - float((COUNTS.sum(axis=1) * grid.values).sum() / COUNTS.sum())) <= bound
    assert grid.rounding <= bound < 0.3
    assert question.rounding == grid.rounding


def test_a_session_is_asked_the_expression_and_says_so():
    session = ic.OnlineIC(DATA, ic.Budget(1.0, 1e-9), questions=5, noise=SimulatedNoise(1))
    with pytest.raises(InvalidQueryError, match="got a Rescaled; ask its expression"):
        session.answer(ic.rescaled(a=[-1, 1, -1, 1]))


@pytest.mark.parametrize(
    "make",
    [
        ic.rescaled,
        lambda: ic.rescaled([1, 2], a=[1, 2, 3, 4]),
        lambda: ic.rescaled(a=[1, 2, 3, 4], b=[1, 2, 3]),
        lambda: ic.rescaled(a=[1, np.nan, 0, 0]),
        lambda: ic.rescaled(a=[1, np.inf, 0, 0]),
        lambda: ic.rescaled(a="abcd"),
        lambda: ic.rescaled([]),
        lambda: ic.rescaled(np.ma.masked_array([1.0, 2.0], [True, False])),
        lambda: ic.rescaled(a=[1e308, -1e308, 0, 0]),
    ],
)
def test_other_weights_are_refused(make):
    with pytest.raises(InvalidQueryError, match="must"):
        make()
