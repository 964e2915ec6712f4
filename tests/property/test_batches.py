"""A batch is answered as its questions are one at a time: values, labels, bounds, records and noise."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlineic as ic
from onlineic.errors import DomainMismatchError, InvalidQueryError, SessionExhaustedError
from onlineic.ledger import BoughtTables, Easy, EasyBatch, Hard, MemoryLedger
from onlineic.noise import SimulatedNoise
from onlineic.queries import Queries, canonical

DOMAIN = ic.Domain.of(a=5, b=range(3, 10), c=["x", "y", "z"])
COUNTS = np.random.default_rng(1).multinomial(20_000, np.random.default_rng(2).dirichlet(np.full(105, 0.2)))
SESSIONS = {
    "gumbel": {"delta": 1e-6},
    "gumbel, many hits": {"delta": 1e-6, "threshold": 0.01, "hard_answers": 30},
    "numbers": {"delta": 1e-6, "release": "answer", "threshold": 0.02, "prior": ic.Histogram(DOMAIN)},
    "exponential": {"threshold": 0.03, "hard_answers": 6},
    "exponential, numbers": {"sparse": "exponential", "release": "answer", "threshold": 0.02},
    "laplace": {"sparse": "laplace", "threshold": 0.02, "hard_answers": 8},
    "laplace, used up": {"sparse": "laplace", "threshold": 1e-6, "hard_answers": 2},
    "perceptron": {"sparse": "laplace", "update": ic.Perceptron(), "hard_answers": 5, "threshold": 0.05},
}


def table():
    return ic.PrivateData(COUNTS, DOMAIN)


def opened(name, seed, data=None, **more):
    chosen = {"max_queries": 300, "noise": SimulatedNoise(seed), **SESSIONS[name], **more}
    budget = ic.Budget(chosen.pop("epsilon", 2.0), chosen.pop("delta", 0.0))
    return ic.OnlineIC(data or table(), budget, **chosen)


def textbook(seed, **more):
    data = ic.PrivateData(COUNTS * 1000, DOMAIN)
    settings = {"max_queries": 20, "noise": SimulatedNoise(seed)} | more
    return ic.OnlineIC.textbook(data, epsilon=10.0, **settings)


def plain(record):
    if isinstance(record, Hard):
        measured = record.measurement
        return ("hard", record.query, record.guess, measured.values.tolist(), measured.scale, record.charge)
    if isinstance(record, BoughtTables):
        return ("opened", [bought.values.tolist() for bought in record.measurements], record.charge)
    return record


def facts(answer):
    return (
        answer.value,
        answer.count,
        answer.status,
        answer.error_bound,
        answer.estimate,
        answer.standard_error,
    )


def conditions(generator):
    """Conditions of all kinds, few of each: repeats and complements come often."""
    made = {
        "a": lambda: ic.between(*generator.integers(0, 5, 2).tolist()),
        "b": lambda: ic.between(*generator.integers(3, 10, 2).tolist()),
        "c": lambda: ic.one_of(*generator.choice(["x", "y", "z"], generator.integers(1, 4)).tolist()),
    }
    query = ic.where({name: make() for name, make in made.items() if generator.random() < 0.6})
    kind = generator.random()
    if kind < 0.1:  # two near one another, rounded to the same interval or nearly so
        weights = np.where(np.arange(5) < 2, 1.0 - generator.integers(0, 3) * 1e-10, 0.0)
        return ic.where(a=ic.weights(weights))
    if kind < 0.2:
        return ic.where(a=ic.weights([0.25, 0.5, 0.75, 1.0, 0.0]), c="x")
    return ~query if kind < 0.4 else query


def stream(seed, count):
    generator = np.random.default_rng(seed)
    return [conditions(generator) for _ in range(count)]


def check_alike(one, many, alone, together, bounds_first):
    if bounds_first:
        assert list(map(facts, alone)) == list(map(facts, together))
    assert [plain(record) for record in one.transcript] == [plain(record) for record in many.transcript]
    assert len(one.transcript) == len(many.transcript)
    assert one.statistics() == many.statistics()
    assert list(map(facts, alone)) == list(map(facts, together))


@pytest.mark.parametrize("name", [*SESSIONS, "textbook"])
@pytest.mark.parametrize("seed", range(4))
def test_lists_and_columns_are_answered_as_one_at_a_time(name, seed):
    generator = np.random.default_rng([seed, len(name)])
    queries = stream(generator, int(generator.integers(1, 90)))
    cut = int(generator.integers(0, len(queries) + 1))
    noises = [SimulatedNoise(seed) for _ in range(3)]
    make = partial(textbook, seed) if name == "textbook" else partial(opened, name, seed)
    one, many, columns = (make(noise=noise) for noise in noises)
    bits = one.plan.sparse.grid_bits
    alone = [one.answer(query) for query in queries]
    if generator.random() < 0.5:  # a look at a bound changes none
        alone = [(facts(answer), answer)[1] for answer in alone]
    together = many.answer_many(queries[:cut]) + many.answer_many(queries[cut:])
    parts = [
        Queries.bound(DOMAIN, [q.bind(DOMAIN, bits) for q in half]) for half in (queries[:cut], queries[cut:])
    ]
    first, second = map(columns.answer_many, parts)

    words = [noise.words(5).tolist() for noise in noises]
    assert words[0] == words[1] == words[2]
    check_alike(one, many, alone, together, generator.random() < 0.5)
    check_alike(one, columns, alone, [*first, *second], generator.random() < 0.5)
    for answers, part in ((first, alone[:cut]), (second, alone[cut:])):
        table = answers.to_dict()
        assert [answer.value for answer in part] == table["value"].tolist() == answers.values.tolist()
        assert [answer.status for answer in part] == table["status"].tolist() == answers.statuses.tolist()
        assert [answer.error_bound for answer in part] == table["error_bound"].tolist()
        assert [answer.count for answer in part] == table["count"].tolist()
        assert [facts(answer) for answer in part] == [facts(answers[at]) for at in range(len(answers))]


@pytest.mark.parametrize("name", ["laplace", "exponential", "numbers"])
def test_used_up_sessions_that_raise_keep_the_answers_before(name):
    """A batch goes as far as one at a time, and says what it answered."""
    queries = stream(5, 80)
    one, many = (opened(name, 3, exhausted="raise", threshold=1e-6, hard_answers=3) for _ in range(2))
    alone = []
    with pytest.raises(SessionExhaustedError):
        alone.extend(one.answer(query) for query in queries)
    with pytest.raises(SessionExhaustedError) as raised:
        many.answer_many(queries)

    assert 3 <= len(alone) < 80
    assert list(map(facts, alone)) == list(map(facts, raised.value.answers))
    assert [plain(record) for record in one.transcript] == [plain(record) for record in many.transcript]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_columns_of_conditions_are_the_canonical_queries_of_their_rows(seed):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(0, 12))
    low, high = generator.integers(0, 6, (2, count))
    sets = generator.random((count, 7)) < 0.5
    weights = np.where(generator.random((count, 3)) < 0.6, 1.0, np.round(generator.random((count, 3)), 2))
    turned = generator.random(count) < 0.4
    batch = Queries.where(
        DOMAIN, {"c": weights, "a": (low, high), "b": sets}, complement=turned, grid_bits=12
    )
    expected = [
        canonical(
            DOMAIN,
            bool(turned[row]),
            {(0,): (int(low[row]), int(high[row])), (1,): sets[row].astype(float), (2,): weights[row]},
            12,
        )
        for row in range(count)
    ]

    def parts(query):
        return (
            query.key, query.complement, query.constant, query.box, query.rounding, query.axes,
            query.sensitivity, query.grid_bits,
        )  # fmt: skip

    assert [parts(query) for query in expected] == [parts(query) for query in batch]
    assert [query.sensitivity for query in expected] == batch.sensitivities.tolist()
    assert [parts(query) for query in expected[3:7]] == [parts(query) for query in batch[3:7]]


def test_keys_of_many_long_attributes_take_several_words_and_are_exact():
    domain = ic.Domain.of({f"x{axis}": 1000 for axis in range(5)})
    generator = np.random.default_rng(1)
    ends = {f"x{axis}": np.sort(generator.integers(0, 1001, (2, 40)), axis=0) for axis in range(5)}
    ends["x4"][:, 20:] = ends["x4"][:, :20]
    batch = Queries.where(domain, {name: (low, high) for name, (low, high) in ends.items()})
    (group,) = [group for group in batch.boxes if len(group.axes) == 5]
    twice = np.concatenate([group.keys(domain), group.keys(domain)])

    assert group.keys(domain).dtype.names == ("word0", "word1")
    assert len(group) == len(np.unique(twice)) == len({query.key for query in batch if len(query.axes) == 5})


# -- a batch that repeats itself, and hits in its middle ---------------------------------------------------


def test_a_repeat_is_not_tested_again_and_a_hit_ends_what_was_tested_with_the_old_hypothesis():
    """Reads are of tested queries alone; behind a hit they are made again, under what was learned."""
    data, ledger = table(), MemoryLedger()
    session = opened("numbers", 1, data, ledger=ledger)
    queries = stream(2, 60)
    session.answer_many(queries)
    hits, reads = session.statistics().hard, data.reads
    again = session.answer_many(queries)

    assert hits >= 2
    assert data.reads == reads
    assert {"repeat"} == {answer.status for answer in again if answer.error_bound > 0} - {"easy"}
    batches = [record for record in ledger.records() if isinstance(record, EasyBatch)]
    assert len(batches) <= hits + 2
    assert sum(map(len, batches)) == sum(isinstance(record, Easy) for record in session.transcript)


@pytest.mark.parametrize("batch", [False, True])
def test_a_repeat_that_was_rounded_from_farther_away_says_so(batch):
    exact = np.full(105, 0.5)
    exact[:40] = 0.0
    near = exact + np.where(exact > 0, 2.0**-22, 0.0)
    session = opened("laplace", 1)
    asked = [ic.dense(weights) for weights in (exact, near)]
    first, again = session.answer_many(asked) if batch else [session.answer(query) for query in asked]

    assert "repeat" == again.status
    assert again.value == first.value
    assert again.error_bound == pytest.approx(first.error_bound + 2.0**-22, rel=1e-12)
    alone = opened("laplace", 1)
    alone.answer(asked[0])
    slack = session.statistics().error_bound - alone.statistics().error_bound
    assert slack == pytest.approx(2.0**-22, rel=1e-6)


def test_batches_put_together_by_hand_or_of_another_domain_are_refused_before_anything_is_read():
    data = table()
    session = opened("gumbel", 1, data)
    reads = data.reads
    batch = Queries.where(DOMAIN, {"a": [0, 1]})
    forged = Queries(DOMAIN, batch.boxes, (), 2)
    other = Queries.where(ic.Domain.of(a=5, b=7), {"a": [0, 1]})
    for bad, error in ((forged, InvalidQueryError), (other, DomainMismatchError)):
        with pytest.raises(error):
            session.answer_many(bad)
    assert (reads, 0) == (data.reads, session.statistics().asked)
    assert 0 == len(session.answer_many(Queries.where(DOMAIN, {"a": np.zeros(0, int)})))


def test_a_million_queries_are_few_objects():
    """Columns in the ledger and in the memory: no object for each query that a collector would visit."""
    domain = ic.Domain.of(a=200, b=200)
    data = ic.PrivateData(np.full(40_000, 25), domain)
    ledger = MemoryLedger()
    session = ic.OnlineIC(
        data,
        ic.Budget(1.0, 1e-6),
        prior=ic.Histogram(domain),
        threshold=0.5,
        max_queries=10**6,
        ledger=ledger,
    )
    pairs = np.stack(np.triu_indices(200), axis=1)
    low, high = pairs[:5000].T
    batch = Queries.where(domain, {"a": (low, high + 1), "b": (low, np.full(5000, 200))})
    answers = session.answer_many(batch)

    assert 5000 == len(answers)
    assert len(ledger) <= 8
    assert len(session.transcript) > 4900
    assert all(isinstance(record, Easy) for record in session.transcript[-50:])
