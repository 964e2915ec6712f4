"""What the two warnings of docs/pitfalls.md lose, by enumeration, beside the right programs."""

import math
from fractions import Fraction

import numpy as np
import pytest

from onlineic.audit import Law, ThresholdRule, observe, worst_loss
from onlineic.sparse import AboveThreshold

EPSILON = Fraction(1, 100)


@pytest.mark.parametrize("k", [1, 10, 30, 100])
def test_naive_above_threshold_loses_epsilon_for_every_count_without_limit(k):
    naive = ThresholdRule(0, Law("none"), Law("discrete_laplace", 1 / EPSILON))
    right = AboveThreshold(float(EPSILON), threshold=0)

    assert pytest.approx(k * float(EPSILON)) == worst_loss(naive, copies=(k - 1,))
    assert worst_loss(observe(right.init(), right.step), copies=(k - 1,)) <= float(EPSILON) * (1 + 1e-9)


def stops(totals, bounds, share):
    """The law of the bound that `naive_select_b` returns: total after total, on all integers that matter."""
    reach = math.ceil(40 * bounds[-1] / share)
    places = np.arange(-reach, reach + totals[-1] + 1)
    decays = [math.exp(-float(share) / bound) for bound in bounds]
    laws = [
        (1 - q) / (1 + q) * q ** np.abs(places - total).astype(float)
        for q, total in zip(decays, totals, strict=True)
    ]
    found, best = [], np.where(places == 0, 1.0, 0.0)
    for law in laws:
        # goes on where total > best + 10; what was best matters no more
        below = np.concatenate([np.zeros(10), np.cumsum(best)])[: len(places)]
        below = np.concatenate([[0.0], below[:-1]])
        onward = law * below
        found.append(best.sum() - onward.sum())
        best = onward
    return np.array([*found[:-1], found[-1] + best.sum()])  # the last bound is returned by default too


@pytest.mark.parametrize(("each", "least", "most"), [(False, 0.3, 1.0), (True, 1.4, 3.0)])
def test_naive_select_b_loses_epsilon_for_every_sum_that_has_it(each, least, most):
    bounds, epsilon = (1, 20, 40), 1
    share = Fraction(epsilon) if each else Fraction(epsilon, len(bounds))
    losses = []
    for values in ([0], [0, 0, 40], [40, 40], [40] * 8):
        for changed in ([*values[:-1], 0], [*values[:-1], 40]):
            one, other = (
                stops([int(np.minimum(held, bound).sum()) for bound in bounds], bounds, share)
                for held in (values, changed)
            )
            assert one.sum() == pytest.approx(1.0, abs=1e-9)
            losses.append(float(np.abs(np.log(one / other)).max()))

    assert least * epsilon < max(losses) <= most * epsilon + 1e-9
