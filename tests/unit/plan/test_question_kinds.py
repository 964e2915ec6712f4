"""Which questions tables of pairs say little of: by exact weights on a small domain."""

import numpy as np
import pytest

from onlineic.domain import Domain
from onlineic.plan.kinds import beyond_pairs, is_dense
from onlineic.queries import dense, marginal, where

THREE = Domain.of(a=2, b=2, c=2)
TWO = Domain.of(a=3, b=4)
A, B, C = np.indices((2, 2, 2)).astype(float)


def bound(expression, domain=THREE):
    return expression.bind(domain)


@pytest.mark.parametrize(
    ("weights", "left"),
    [
        ((A + B + C) % 2, 1 / 4),  # a parity: a product of three signs, and nothing else
        ((A + B + C + A * B * C) / 4, 1 / 1024),  # its three-way part has the coefficient 1/32
        ((A + B) % 2, 0.0),
        (A * B / 2 + B * C / 4, 0.0),
        ((A + B + C) / 4, 0.0),
    ],
)
def test_what_no_pairs_hold_is_the_mean_square_of_the_rest(weights, left):
    factor = max(bound(dense(weights)).factors, key=lambda factor: len(factor.axes))

    assert left == pytest.approx(beyond_pairs(factor), abs=1e-15)


@pytest.mark.parametrize(
    ("expression", "domain", "expected"),
    [
        (dense((A + B + C) % 2), THREE, True),
        (dense(A * B * C / 2), THREE, False),
        (where(a=1, b=0, c=1), THREE, False),
        (where(a=1) | where(b=0), THREE, False),
        (where(a=1), TWO, False),
        (where(a=1, b=2), TWO, False),
        (dense(np.eye(3, 4)), TWO, True),
        (marginal("a", "b"), TWO, False),
    ],
)
def test_dense_questions_are_those_that_tables_of_pairs_say_little_of(expression, domain, expected):
    assert expected == is_dense(bound(expression, domain))
