"""Mixtures of products: against the dense distribution, their fit, and the rule that fits them."""

import pickle

import numpy as np
import pytest

from onlineic import Budget, OnlineIC, PrivateData, replay
from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError, TooLargeError
from onlineic.hypothesis import Histogram, Mixture
from onlineic.hypothesis.mixture import product, uniform_mixture
from onlineic.hypothesis.mixture_fit import _Loss, fit_mixture, usable
from onlineic.ledger import UpdateFailed
from onlineic.noise import SimulatedNoise
from onlineic.plan.fitting_rule import number_rule, table_rule
from onlineic.queries import Measurement, Partition, Queries, between, dense, marginal, one_of, weights, where
from onlineic.testing import check_update_rule
from onlineic.updates import MaximumEntropy, Median, MixtureOfProducts, MultiplicativeWeights, Perceptron
from support.sessions import settled

DOMAIN = Domain.of(a=5, b=4, c=["x", "y", "z"], d=6)
LARGE = Domain.of({f"a{i}": 8 if i % 2 else 30 for i in range(14)})
QUERIES = [
    where(a=between(1, 3), b=2),
    ~where(c="y", d=one_of(1, 4)),
    where(d=weights([0, 0.5, 1, 0.25, 0, 1]), a=4),
    where(a=1) | where(b=2) & where(b=2),
    where(),
    where(b=between(1, 2)),
]


def partition(*cuts):
    return Partition(DOMAIN, tuple(axis for axis, _ in cuts), tuple(np.array(classes) for _, classes in cuts))


PARTITIONS = [
    partition((0, [0, 1, 1, 0, 2])),
    partition((0, range(5))),
    partition((0, [0, 0, 1, 1, 1]), (1, range(4))),
    partition((1, [0, 0, 1, 1]), (3, [0, 1, 1, 2, 2, 2])),
    partition((0, [0, 1, 0, 1, 2]), (2, range(3)), (3, [0, 0, 0, 1, 1, 1])),
    partition((0, [0, 0, 0, 1, 1]), (1, [0, 1, 0, 1]), (2, [0, 1, 1]), (3, [0, 0, 1, 1, 2, 2])),
]


@pytest.fixture
def mixture():
    rng = np.random.default_rng(1)
    return Mixture(DOMAIN, rng.normal(size=(18, 7)), rng.normal(size=7))


def cells(mixture):
    """The distribution itself, from its definition."""
    return np.einsum("k,ak,bk,ck,dk->abcd", mixture.weights, *mixture.attributes)


def measurements(seed=0):
    rng = np.random.default_rng(seed)
    tables = [
        Measurement(one, rng.random(one.blocks) / one.blocks * 2, 0.1 + rng.random()) for one in PARTITIONS
    ]
    return tables + [Measurement(one.bind(DOMAIN), rng.random(1), 0.2) for one in QUERIES[:4]]


def records(domain, n, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    return {
        name: np.minimum(rng.integers(0, size, n) // (1 + kind * (axis % 3)), size - 1)
        for axis, (name, size) in enumerate(zip(domain.names, domain.shape, strict=True))
    }


def test_queries_tables_and_blocks_agree_with_the_dense_distribution(mixture):
    full = cells(mixture)
    histogram = Histogram(DOMAIN, full)
    joint = dense(np.random.default_rng(2).random(DOMAIN.shape)).bind(DOMAIN)
    bound = [*(query.bind(DOMAIN) for query in QUERIES), joint]

    assert abs(mixture.evaluate_many(bound) - histogram.evaluate_many(bound)).max() < 1e-12
    assert abs(mixture.probabilities() - full).max() < 1e-14
    assert abs(mixture.marginal("d", "a") - full.sum(axis=(1, 2))).max() < 1e-14
    for one in PARTITIONS:
        assert abs(mixture.blocks(one) - histogram.blocks(one)).max() < 1e-14
    assert mixture.supports(bound[0])
    assert mixture.supports_many(Queries.bound(DOMAIN, bound))
    assert not mixture.supports_many(Queries.bound(LARGE, [where(a0=1).bind(LARGE)]))
    assert 1.0 == mixture.marginal()


@pytest.mark.parametrize("together", [2**18, 0], ids=["from tables", "by components"])
def test_one_query_and_many_give_the_same_bits(mixture, together, monkeypatch):
    monkeypatch.setattr("onlineic.hypothesis.mixture.TOGETHER", together)
    rng = np.random.default_rng(3)
    bound = [
        where(a=between(*sorted(rng.integers(0, 5, 2).tolist())), d=between(0, int(rng.integers(0, 5)))).bind(
            DOMAIN
        )
        for _ in range(50)
    ] + [one.bind(DOMAIN) for query in QUERIES for one in (query, ~query)]
    expected = mixture.evaluate_many(bound).tolist()

    assert expected == [mixture.evaluate(query) for query in bound]
    monkeypatch.setattr("onlineic.hypothesis.mixture.CACHED", 20)
    assert expected == mixture.evaluate_many(bound).tolist()
    assert expected == mixture.evaluate_many(Queries.bound(DOMAIN, bound)).tolist()
    assert expected == pickle.loads(pickle.dumps(mixture)).evaluate_many(bound).tolist()


def test_boxes_of_small_tables_are_read_from_them_and_others_follow_from_the_components(monkeypatch):
    rng, eight = np.random.default_rng(8), LARGE.project(*LARGE.names[:8])
    logits, log_weights = rng.normal(size=(sum(LARGE.shape), 5)), rng.normal(size=5)
    mixture, other = (Mixture(eight, logits[: sum(eight.shape)], log_weights) for _ in range(2))
    low = rng.integers(0, 4, (60, 2))
    high = low + rng.integers(0, 5, (60, 2))
    read = mixture.boxes((1, 3), low, high)

    assert mixture._areas[1, 3] is not None
    assert mixture._area((0, 1, 2)) is None  # 338,705 cells with all other triples
    assert Mixture(LARGE, logits, log_weights)._area((1, 3)) is None  # 91 pairs
    assert mixture.boxes((), low[:, :0], high[:, :0]).tolist() == pytest.approx([1.0] * 60)
    monkeypatch.setattr("onlineic.hypothesis.mixture.TOGETHER", 0)
    assert abs(read - other.boxes((1, 3), low, high)).max() < 1e-15
    assert other._areas[1, 3] is None


def test_samples_follow_the_mixture(mixture):
    size = 40_000
    sample = mixture.sample(size, seed=5)
    counts = np.zeros((5, 3))
    np.add.at(counts, (sample["a"], ["xyz".index(label) for label in sample["c"]]), 1)
    expected = size * mixture.marginal("a", "c")

    assert ((counts - expected) ** 2 / expected).sum() < 60  # chi-square of 14 degrees: p = 1e-7
    assert sample == mixture.sample(size, seed=5)


def test_what_is_too_large_to_write_out_is_refused():
    large = uniform_mixture(LARGE, 20, 0.3, 0)

    for call in (large.probabilities, lambda: large.marginal(*LARGE.names[:6])):
        with pytest.raises(TooLargeError, match="cells"):
            call()


def test_products_by_few_rows_are_products(monkeypatch):
    rng = np.random.default_rng(0)
    left, right = rng.random((13, 5)), rng.random((5, 4))
    for limit in (1, 60, 10**6):
        monkeypatch.setattr("onlineic.hypothesis.mixture.UNTHREADED", limit)
        assert abs(product(left, right) - left @ right).max() < 1e-15


def test_the_loss_is_that_of_its_definition_and_falls_along_its_slopes(mixture):
    tables = measurements()
    loss = _Loss(mixture, tables)

    def twice(one):
        total = 0.0
        for table in tables:
            target = table.target
            masses = one.blocks(target) if isinstance(target, Partition) else np.array([one.evaluate(target)])
            total += float(((masses - table.values) ** 2).sum()) / table.scale**2
        return total

    found, slope, of_weights = loss.gradient(mixture.logits, mixture.log_weights)
    rng = np.random.default_rng(4)
    assert abs(found - twice(mixture)) < 1e-10
    for _ in range(5):
        way, of_way = 1e-5 * rng.normal(size=slope.shape), 1e-5 * rng.normal(size=of_weights.shape)
        ahead = Mixture(DOMAIN, mixture.logits + way, mixture.log_weights + of_way)
        behind = Mixture(DOMAIN, mixture.logits - way, mixture.log_weights - of_way)
        expected = float((slope * way).sum() + of_weights @ of_way)
        assert abs((twice(ahead) - twice(behind)) / 4.0 - expected) < 1e-6 * abs(expected) + 1e-11


def test_noiseless_tables_are_reproduced_and_the_fit_stops_at_its_misfit():
    truth = cells(Mixture(DOMAIN, np.random.default_rng(7).normal(size=(18, 3)), np.zeros(3)))
    histogram = Histogram(DOMAIN, truth)
    tables = [Measurement(one, histogram.blocks(one), 1e-3) for one in PARTITIONS]
    start = uniform_mixture(DOMAIN, 30, 0.3, 0)
    fitted = fit_mixture(start, tables, 400, 0.2)

    assert max(abs(fitted.blocks(one) - histogram.blocks(one)).max() for one in PARTITIONS) < 1e-3
    assert len(tables) == fitted.fitted
    early = fit_mixture(start, tables, 400, 0.2, misfit=50.0)
    assert 0.0 < abs(early.blocks(PARTITIONS[2]) - fitted.blocks(PARTITIONS[2])).max() < 0.05


def test_a_fit_begins_at_the_finest_margins_of_all_tables():
    """Of tables as fine, that of fewest attributes, then that of least noise: here all but the last pair."""
    rng = np.random.default_rng(3)
    alone, coarse = partition((0, range(5))), partition((1, [0, 0, 1, 1]))
    pair = partition((1, range(4)), (2, range(3)))
    values = {one: rng.dirichlet(np.full(one.blocks, 9.0)) for one in (alone, coarse, pair)}
    tables = [Measurement(one, values[one], 1e-6) for one in (coarse, pair, alone)]
    noisy = Measurement(pair, np.full(12, 1.0 / 12.0), 1e-3)
    begun = fit_mixture(uniform_mixture(DOMAIN, 1, 0.0, 0), [noisy, *tables, noisy], 0, 0.2)

    of_pair = values[pair].reshape(4, 3)
    expected = [values[alone], of_pair.sum(axis=1), of_pair.sum(axis=0), np.full(6, 1.0 / 6.0)]
    for masses, known in zip(begun.attributes, expected, strict=True):
        assert masses[:, 0] == pytest.approx(known)


def test_numbers_are_learned_unless_they_have_many_joint_weights(monkeypatch):
    rule = MixtureOfProducts(components=20)
    start = rule.init(DOMAIN)
    number = Measurement(where(a=2, d=between(0, 2)).bind(DOMAIN), np.array([0.4]), 0.001)
    joint = Measurement(
        dense(np.random.default_rng(2).random(DOMAIN.shape)).bind(DOMAIN), np.array([0.4]), 0.01
    )

    assert abs(rule.update(start, (number,), 0.01).evaluate(number.target) - 0.4) < 0.01
    assert abs(rule.update(start, (joint,), 0.01).evaluate(joint.target) - 0.4) < 0.02
    monkeypatch.setattr("onlineic.hypothesis.mixture_fit.MOST_JOINT", 100)
    assert usable(number)
    assert not usable(joint)
    assert start is rule.update(start, (joint,), 0.01)
    both = rule.update(start, (joint, number), 0.01)
    assert both is rule.update(both, (joint, number), 0.01)


def test_the_rule_keeps_the_contract_of_update_rules():
    check_update_rule(MixtureOfProducts(components=20, first_steps=8, steps=3))


def test_the_rule_refuses_what_it_cannot_hold():
    rule = MixtureOfProducts()
    with pytest.raises(TooLargeError, match="bin the longest"):
        rule.init(Domain.of(a=2**19, b=3))
    with pytest.raises(InvalidParameterError, match="prior must be a Mixture"):
        rule.init(DOMAIN, Histogram(DOMAIN))
    assert 2**22 // 2**16 == rule.init(Domain.of(a=2**16)).components
    assert rule.init(DOMAIN, start := rule.init(DOMAIN)) is start
    assert rule.update_bound(DOMAIN, 0.1) is None


def test_the_choice_depends_on_the_domain_and_a_given_start_alone():
    assert isinstance(number_rule(DOMAIN), MaximumEntropy)
    assert isinstance(number_rule(LARGE), MixtureOfProducts)
    assert isinstance(table_rule(uniform_mixture(DOMAIN, 20, 0.3, 0)), MixtureOfProducts)


def test_a_default_session_over_a_large_domain_answers_and_is_replayed_bit_for_bit():
    columns = records(LARGE, 20_000)
    data = PrivateData.from_records(columns, LARGE)
    noise = SimulatedNoise(3)
    session = OnlineIC(data, Budget(1.0, 1e-9), max_queries=2_000, noise=noise)
    rng = np.random.default_rng(0)
    queries = []
    for _ in range(60):
        first, second = sorted(rng.choice(14, 2, replace=False).tolist())
        low = int(rng.integers(0, 4))
        queries.append(where({f"a{first}": between(low, low + 3), f"a{second}": between(0, low)}))
    answers = session.answer_many([*queries, where(a0=one_of(1, 9, 20), a2=between(3, 9)), queries[0]])
    truths = data.exact_counts_many([query.bind(LARGE) for query in queries]) / data.n
    errors = np.array([answer.value for answer in answers[:60]]) - truths

    assert isinstance(session.hypothesis.fit, Mixture)
    assert "repeat" == answers[-1].status
    assert np.sqrt((errors**2).mean()) < 0.01
    assert sum(abs(error) > answer.error_bound for error, answer in zip(errors, answers, strict=False)) <= 6
    table = session.answer(marginal("a1", "a3"))
    assert (8, 8) == table.value.shape
    again = replay(session.transcript, LARGE, session.plan.update, session.plan.alpha)
    assert (again.fit.logits == session.hypothesis.fit.logits).all()
    assert not any(isinstance(record, UpdateFailed) for record in session.transcript)
    assert repr(session.hypothesis).endswith("measurements))")


@pytest.mark.parametrize(
    "options",
    [
        {"update": MaximumEntropy()},
        {"update": MultiplicativeWeights()},
        {"update": MultiplicativeWeights(), "purchases": settled(LARGE, 1_000, Budget(1.0, 1e-9))},
        {"update": Perceptron()},
        {"update": Median()},
        {"release": "answer"},
        {"certify": 0.1},
    ],
    ids=str,
)
def test_rules_that_hold_cells_are_refused_before_anything_is_charged(options):
    data = PrivateData.from_records(records(LARGE, 1_000_000 if "certify" in options else 1000), LARGE)
    with pytest.raises(TooLargeError, match=r"at most .* got .*; "):
        OnlineIC(data, Budget(1.0, 1e-9), **options)

    assert ([], 0) == (list(data.budgets), data.reads)


def test_textbook_sessions_and_dense_queries_are_refused_too():
    data = PrivateData.from_records(records(LARGE, 1_000_000), LARGE)
    with pytest.raises(TooLargeError, match="MixtureOfProducts"):
        OnlineIC.textbook(data, epsilon=20.0)
    session = OnlineIC(data, Budget(1.0, 1e-9), max_queries=2_000, noise=SimulatedNoise(0))
    reads = data.reads
    with pytest.raises((TooLargeError, ValueError), match=r"weights|cells"):
        session.answer(np.ones(100))
    assert reads == data.reads
