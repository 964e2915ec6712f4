"""A start that noise has made as wrong as it can be: how far from any truth, and how many steps it costs."""

import math

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineic.domain import Domain
from onlineic.hypothesis import Histogram
from onlineic.noise import public_generator
from onlineic.queries import Measurement, Partition, dense
from onlineic.updates import FittedStart, MultiplicativeWeights, Perceptron

RULES = [MultiplicativeWeights(), MultiplicativeWeights(variant="book")]


def kl(truth, cells):
    held = truth > 0
    return float((truth[held] * np.log(truth[held] / cells.ravel()[held])).sum())


@st.composite
def openings(draw):
    """A domain, gamma, and tables of which noise may have made anything."""
    shape = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    domain = Domain.of({f"a{place}": size for place, size in enumerate(shape)})
    uniform = 10.0 ** draw(st.floats(-9.0, math.log10(0.5)))
    tables = []
    for axis, size in enumerate(shape):
        values = draw(st.lists(st.floats(-3.0, 3.0), min_size=size, max_size=size))
        scale = draw(st.sampled_from([1e-4, 0.1]))
        tables.append(Measurement(Partition(domain, (axis,), (np.arange(size),)), np.array(values), scale))
    return domain, uniform, tuple(tables), draw(st.integers(0, 2**32))


def started(rule, opening, misfit=0.0):
    domain, uniform, tables, _ = opening
    start = FittedStart(rule, len(tables), misfit, uniform)
    return start, start.update(start.init(domain), tables, 0.1)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@settings(max_examples=40)
@given(opening=openings(), misfit=st.sampled_from([0.0, 0.6]))
def test_no_truth_is_further_from_the_start_than_its_least_cell_allows(rule, opening, misfit):
    """KL(x || start) <= ln(|X|/gamma), with equality at most for all records in one cell: the worst truth."""
    domain, uniform, _, seed = opening
    start, hypothesis = started(rule, opening, misfit)
    cells = hypothesis.probabilities()
    most = math.log(domain.size / uniform)
    truths = [
        np.eye(domain.size)[int(np.argmin(cells))],
        public_generator(seed).dirichlet(np.full(domain.size, 0.3)),
    ]

    assert cells.sum() == pytest.approx(1.0, abs=1e-12)
    assert max(kl(truth, cells) for truth in truths) <= most + 1e-12
    steps = start.exact_update_bound(domain, 0.2)
    assert steps == pytest.approx((1.0 if rule.variant == "tight" else 8.0) * most / (2 * 0.2**2), rel=1e-12)
    assert math.floor(steps) == start.update_bound(domain, 0.2)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@settings(max_examples=12)
@given(opening=openings(), alpha=st.floats(0.15, 0.6), inside=st.sampled_from([0.0, 0.5, 1.0 - 1e-9]))
def test_every_legal_step_from_the_start_lowers_the_potential_and_there_are_at_most_t(
    rule, opening, alpha, inside
):
    """Numbers anywhere within alpha of the truth, also outside of [0, 1]: the side is all that is used."""
    domain, _, tables, seed = opening
    start, hypothesis = started(rule, opening)
    generator, released, updates = public_generator(seed), tables, 0
    truth = np.eye(domain.size)[int(np.argmin(hypothesis.probabilities()))]
    while True:
        rows = [truth, 1.0 - truth, *np.round(generator.random((6, domain.size)))]
        queries = [
            dense(row.reshape(domain.shape)).bind(domain) for row in rows if 0 < row.sum() < domain.size
        ]
        gaps = [
            float(query.weights().ravel() @ truth) / (1 << query.grid_bits) - hypothesis.evaluate(query)
            for query in queries
        ]
        legal = [(query, gap) for query, gap in zip(queries, gaps, strict=True) if abs(gap) > alpha]
        if not legal:
            break
        query, gap = min(legal, key=lambda one: abs(one[1]))
        value = (
            hypothesis.evaluate(query) + gap - math.copysign(inside * alpha, gap) * (1 if updates % 2 else -1)
        )
        before = kl(truth, hypothesis.probabilities())
        released = (*released, Measurement(query, np.array([value]), 0.01))
        hypothesis = start.update(hypothesis, released, alpha)
        updates += 1
        proven = 2.0 * alpha**2 if rule.variant == "tight" else alpha**2 / 4.0
        assert before - kl(truth, hypothesis.probabilities()) >= proven - 1e-9
    assert updates <= start.update_bound(domain, alpha)


def steps_to(truth, start, tables, alpha):
    """How many legal steps a hostile analyst makes who asks for the cell of the truth."""
    domain = start_domain = tables[0].target.domain
    query = dense(truth.reshape(start_domain.shape)).bind(domain)
    hypothesis, released, updates = start.update(start.init(domain), tables, alpha), tables, 0
    while 1.0 - hypothesis.evaluate(query) > alpha:
        released = (*released, Measurement(query, np.array([1.0]), 0.01))
        hypothesis, updates = start.update(hypothesis, released, alpha), updates + 1
    return updates


def test_without_the_mixture_or_its_price_more_steps_are_needed_than_are_counted():
    """Planted: T from ln|X| alone, and a start that is the fit itself, under the T of the mixture."""
    domain, alpha = Domain.of(a=4), 0.3
    tables = (Measurement(Partition(domain, (0,), (np.arange(4),)), np.array([-3.0, 2.0, 1.0, 1.0]), 1e-4),)
    truth, rule = np.eye(4)[0], MultiplicativeWeights()
    mixed = FittedStart(rule, 1, 0.0, 1e-6)
    counted = mixed.update_bound(domain, alpha)

    assert rule.update_bound(domain, alpha) < steps_to(truth, mixed, tables, alpha) <= counted
    assert steps_to(truth, attrs.evolve(mixed, uniform=0.0), tables, alpha) > counted


@pytest.mark.parametrize(
    ("rule", "uniform"),
    [(MultiplicativeWeights(), 0.0), (MultiplicativeWeights(rate=0.5), 0.1), (Perceptron(), 0.1)],
)
def test_nothing_is_proven_of_a_fit_alone_of_a_free_rate_and_of_the_perceptron(rule, uniform):
    assert FittedStart(rule, 2, 0.0, uniform).update_bound(Domain.of(a=4), 0.3) is None


def test_tables_without_noise_keep_their_values_behind_the_mixture():
    """The fit is of what the uniform part leaves, so that the mixture has the values of the tables."""
    domain = Domain.of(a=3, b=2)
    values = np.array([0.5, 0.3, 0.2])
    tables = (Measurement(Partition(domain, (0,), (np.arange(3),)), values, 1e-3),)
    start = FittedStart(MultiplicativeWeights(), 1, 0.0, 0.1)
    hypothesis = start.update(start.init(domain), tables, 0.1)

    assert isinstance(hypothesis, Histogram)
    assert values == pytest.approx(hypothesis.marginal("a"), abs=1e-3)
