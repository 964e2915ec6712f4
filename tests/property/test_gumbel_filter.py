"""The Renyi filter is never exceeded, however scales, targets and gaps are chosen along the way."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onlineic.domain import Domain
from onlineic.noise import SimulatedNoise, scale_at_least
from onlineic.queries import Partition, dense, where
from onlineic.sparse import GumbelSparse

DOMAIN = Domain.of(age=4, sex=2)
TARGETS = (
    where(age=1).bind(DOMAIN, 4),
    dense(np.array([0, 0.5, 0, 0.5, 0, 0.5, 0, 0])).bind(DOMAIN, 4),
    dense(np.arange(8) / 16).bind(DOMAIN, 4),
    Partition(DOMAIN, (0,), (np.arange(4),)),
)
ORDER = Fraction(19)


@st.composite
def mechanisms(draw):
    """Settings of one order that may share a filter: own scale, ratio and threshold each."""
    pole = 18.6  # scales below it have no finite price at order 19
    scale = scale_at_least(Fraction(draw(st.floats(pole, 400.0))) * 16)
    ratio = Fraction(draw(st.integers(1, 64)), 16)
    threshold = draw(st.integers(1, int(26 * scale)))
    return GumbelSparse(10**5, 1.0, 1e-6, ORDER, scale, threshold, 4, ratio)


@given(
    st.lists(mechanisms(), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-(10**6), 10**6)), min_size=1, max_size=60
    ),
    st.integers(0, 2**32),
    st.integers(0, 40),
)
def test_charges_never_exceed_the_capacity_and_easy_answers_are_free(settings, asked, seed, used):
    """Tests are asked only while their price fits; then no order of hits passes R."""
    noise, account = SimulatedNoise(seed), settings[0].account()
    for _ in range(used):  # start anywhere in the budget
        price = settings[0].price(TARGETS[3])
        account = account.charge(price) if account.affords(price) else account
    states = [sparse.init() for sparse in settings]
    hits = 0
    for which, kind, gap in asked:
        place, target = which % len(settings), TARGETS[kind]
        sparse, price = settings[place], settings[place].price(target)
        if not account.affords(price):
            continue
        sensitivity = 16 if kind == 3 else target.sensitivity << 4 - target.grid_bits
        states[place], hit = sparse.step(states[place], gap, sensitivity, noise)
        if hit is not None:
            before, account = account.spent, account.charge(price)
            hits += 1
            assert account.spent == before + price.amount

        assert account.spent <= sparse.capacity
    assert sum(state.hits for state in states) == hits
    assert account.capacity == settings[0].capacity


@given(mechanisms(), st.integers(1, 2**30), st.floats(1e-9, 0.9))
def test_prices_fall_with_the_scale_and_radii_grow_with_the_confidence(sparse, more, beta):
    wider = scale_at_least(sparse.scale + Fraction(more, 2**16))
    other = GumbelSparse(10**5, 1.0, 1e-6, ORDER, wider, sparse.threshold, 4, sparse.ratio)

    for target in TARGETS:
        assert other.price(target).amount <= sparse.price(target).amount
    assert sparse.price(TARGETS[1]).amount < sparse.price(TARGETS[0]).amount
    assert sparse.price(TARGETS[0]).amount < sparse.price(TARGETS[3]).amount
    assert sparse.easy_radius(beta) <= sparse.easy_radius(beta / 2) <= sparse.easy_radius(beta, 3)
    assert sparse.hard_radius(TARGETS[0], beta) <= sparse.hard_radius(TARGETS[0], beta / 2)
