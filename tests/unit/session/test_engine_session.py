"""The default session: first tables, partition releases, prices before reads, exhaustion, faults."""

import copy
import logging
import math
import pickle
import traceback
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy.stats import norm

import onlineic as ic
from onlineic.accounting import gaussian_charge, laplace_charge
from onlineic.data import PrivateData
from onlineic.errors import (
    InvalidQueryError,
    SessionExhaustedError,
    SessionSealedError,
    SessionStateError,
    UpdateFailedWarning,
)
from onlineic.ledger import BoughtTables, Easy, Forfeited, Hard, MemoryLedger, Reserved, UpdateFailed
from onlineic.noise import SimulatedNoise
from onlineic.queries import BoundMarginal, Measurement, Partition, Query, marginal
from onlineic.session import replay
from onlineic.sparse import ExponentialSparse, GumbelSparse
from onlineic.updates import FittedTables, MaximumEntropy
from support.cores import with_loop
from support.failures import SECRET, Stop, plant, reached_by
from support.sessions import WIDE, WIDE_COUNTS, all_spent, begun, hits, settled, tests_alone

DOMAIN, COUNTS = WIDE, WIDE_COUNTS
N = 300_000


def table(counts=COUNTS):
    return PrivateData(counts, DOMAIN)


def opened(data=None, *, epsilon=1.0, delta=1e-6, seed=1, **settings):
    """A session that has bought its first tables."""
    settings = {"noise": SimulatedNoise(seed)} | settings
    return begun(ic.OnlineIC(data or table(), ic.Budget(epsilon, delta), **settings))


BOTH = pytest.mark.parametrize("delta", [1e-6, 0.0], ids=["gumbel", "pure"])


def probing(data=None, **settings):
    """A session in which nearly every query is hard."""
    return opened(data, **({"threshold": 1e-5, "hard_answers": 5} | settings))


def stream(size, seed, tables=True):
    """Boxes, fractional and joint weights, complements, repeats, constants and cross tables."""
    generator = np.random.default_rng(seed)
    queries = []
    for _ in range(size):
        kind = generator.integers(0, 9)
        low, high = sorted(generator.integers(0, 20, 2).tolist())
        if kind == 0 and queries:
            queries.append(queries[generator.integers(len(queries))])
        elif kind == 1 and queries and not isinstance(queries[-1], ic.queries.marginals.Marginal):
            queries.append(~queries[-1])
        elif kind == 2:
            queries.append(ic.dense(generator.integers(0, 5, DOMAIN.shape) / (4 << generator.integers(0, 4))))
        elif kind == 3 and tables:
            names = generator.permutation(["a", "b", "c"])[: generator.integers(1, 3)]
            where = ic.where(b=int(generator.integers(0, 3))) if generator.random() < 0.5 else None
            queries.append(marginal(*map(str, names), where=where))
        elif kind == 4:
            queries.append(ic.where(a=ic.between(0, 3)))
        else:
            queries.append(ic.where(c=ic.between(low, high), a=int(generator.integers(0, 4))))
    return queries


def measured(measurement):
    return (measurement.target, measurement.values.tobytes(), measurement.scale)


def plain(record):
    """A record as values that can be compared."""
    query = getattr(record, "query", None)
    query = query.key if isinstance(query, BoundMarginal) else query
    if isinstance(record, Hard):
        return ("hard", query, record.guess, measured(record.measurement), record.charge)
    if isinstance(record, Easy):
        return ("easy", query, record.guess)
    if isinstance(record, BoughtTables):
        return ("opened", tuple(map(measured, record.measurements)), record.charge)
    return record


def watched(method, events):
    def watching(*arguments, **more):
        events.append(method.__name__)
        return method(*arguments, **more)

    return watching


def first_hit(session):
    """Ask until one query is hard: (query, answer)."""
    for low in range(20):
        query = ic.where(c=ic.between(low, 19), a=low % 4)
        answer = session.answer(query)
        if answer.hard:
            return query, answer
    raise AssertionError("twenty tests of a threshold near zero cannot all be easy.")


# -- first tables ----------------------------------------------------------------------------------------


def test_the_table_of_all_cells_is_reserved_then_read_then_recorded_once_at_its_price(monkeypatch):
    events = []
    for owner, name in (
        (MemoryLedger, "reserve"),
        (MemoryLedger, "commit"),
        (PrivateData, "exact_counts"),
        (SimulatedNoise, "discrete_laplace"),
        (FittedTables, "update"),
    ):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name), events))
    session = opened()
    assert ["commit", "update"] == events[-2:]  # all is paid and recorded before the first fit
    assert 0 == session.statistics().update_failures
    bought = session.plan.first_tables
    reserved, record = session.transcript
    (one,), (scale,) = record.measurements, bought.scales

    assert ["reserve", "exact_counts", "discrete_laplace", "commit", "update"] == events
    assert (Reserved(bought.charge), bought.targets) == (reserved, (one.target,))
    assert (math.sqrt(2.0) * scale / N, (DOMAIN.size,)) == (one.scale, one.values.shape)
    assert bought.charge.amount == record.charge.amount == all_spent(session)
    assert laplace_charge(session.plan.sparse.order, scale, 2) == bought.charge.amount
    assert bought.charge.amount < session.plan.sparse.capacity


@pytest.mark.usefixtures("listening")
def test_first_tables_are_reserved_then_read_then_recorded_once_at_their_price(monkeypatch):
    events = []
    for owner, name in (
        (MemoryLedger, "reserve"),
        (MemoryLedger, "commit"),
        (PrivateData, "exact_counts"),
        (SimulatedNoise, "discrete_gaussian"),
        (FittedTables, "update"),
    ):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name), events))
    session = opened(purchases=settled(DOMAIN, N, ic.Budget(1.0, 1e-6)))
    assert 0 == session.statistics().update_failures
    bought = session.plan.first_tables
    count = len(bought.targets)
    reserved, record = session.transcript

    assert ["reserve", *["exact_counts", "discrete_gaussian"] * count, "commit", "update"] == events
    assert (Reserved(bought.charge), BoughtTables) == (reserved, type(record))
    assert bought.targets == tuple(one.target for one in record.measurements)
    assert bought.charge == record.charge
    assert bought.charge.amount == all_spent(session)
    order = session.plan.sparse.order
    for target, sigma, one in zip(bought.targets, bought.scales, record.measurements, strict=True):
        assert (float(sigma) / N, (target.blocks,)) == (one.scale, one.values.shape)
    assert bought.cost >= sum(gaussian_charge(order, Fraction(sigma), 2) for sigma in bought.scales)
    assert bought.charge.amount == bought.cost
    assert bought.charge.amount < session.plan.sparse.capacity


@pytest.mark.usefixtures("listening")
def test_the_exact_cost_of_the_opening_is_not_above_what_it_says():
    """order * 2 / (2 sigma^2) a table, in exact fractions."""
    session = opened(purchases=settled(DOMAIN, N, ic.Budget(1.0, 1e-6)))
    exact = sum(
        session.plan.sparse.order / Fraction(sigma) ** 2 for sigma in session.plan.first_tables.scales
    )

    assert exact * 2**40 <= session.plan.first_tables.cost < exact * 2**40 + 100


@pytest.mark.parametrize(
    "settings",
    [
        {"prior": ic.Histogram(DOMAIN)},
        {"delta": 0.0, "release": "answer"},
        {"release": "answer"},
        {"update": ic.MultiplicativeWeights()},
        {"sparse": GumbelSparse.calibrated(ic.Budget(1.0, 1e-6), n=N, hard_answers=5, max_queries=100)},
    ],
)
def test_no_other_session_opens_with_tables_or_touches_the_data(settings):
    data = table()
    session = opened(data, **settings)

    assert (None, (), 0) == (session.plan.first_tables, session.transcript, data.reads)


@pytest.mark.parametrize("shape", [{"a": 3}, {"a": 1}, {"a": 40}, {"a": 1, "b": 5}, {"a": 2, "b": 2}])
@pytest.mark.parametrize("n", [1, 7, 10**6])
def test_small_domains_and_few_records_open_too(shape, n):
    domain = ic.Domain.of(**shape)
    counts = np.zeros(domain.size, int)
    counts[0] = n
    session = ic.OnlineIC(PrivateData(counts, domain), ic.Budget(1.0, 1e-6), noise=SimulatedNoise(1))

    assert 0 <= session.statistics().spent < 1
    assert session.statistics().hard_left >= 1
    assert session.answer(ic.where(a=0)).status in ("easy", "hard")


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("owner", [PrivateData, SimulatedNoise, MemoryLedger])
@pytest.mark.parametrize("after", [False, True])
@BOTH
def test_a_failure_while_opening_burns_the_charge_and_tells_nothing(owner, after, delta, monkeypatch, caplog):
    names = {
        PrivateData: "exact_counts",
        SimulatedNoise: "discrete_gaussian" if delta else "discrete_laplace",
        MemoryLedger: "commit",
    }
    method, calls = getattr(owner, names[owner]), []

    def failing(*arguments, **more):
        calls.append(None)
        if len(calls) == (1 if owner is MemoryLedger else 2):
            if after:
                method(*arguments, **more)
            raise ValueError(f"index {SECRET} is out of bounds")
        return method(*arguments, **more)

    monkeypatch.setattr(owner, names[owner], failing)
    ledger = MemoryLedger()
    with caplog.at_level(logging.ERROR), pytest.raises(SessionSealedError) as sealed:
        opened(ledger=ledger, delta=delta, purchases=settled(DOMAIN, N, ic.Budget(1.0, delta)))
    text = "".join(traceback.format_exception(sealed.value)) + caplog.text + repr(ledger.records())

    assert (None, None) == (sealed.value.__cause__, sealed.value.__context__)
    assert str(SECRET) not in text
    assert ledger.spent == ledger.records()[0].charge.amount > 0
    assert type(ledger.records()[-1]) is (BoughtTables if owner is MemoryLedger and after else Forfeited)


def test_a_rule_that_fails_on_the_opening_keeps_the_paid_tables(monkeypatch):
    calls = []
    method = FittedTables.update

    def update(*arguments):
        calls.append(None)
        if len(calls) == 1:
            raise ValueError
        return method(*arguments)

    monkeypatch.setattr(FittedTables, "update", update)
    with pytest.warns(UpdateFailedWarning):
        session = probing()
    assert 1 == session.statistics().update_failures
    assert [Reserved, BoughtTables, UpdateFailed] == [type(record) for record in session.transcript]
    assert session.plan.first_tables.charge.amount == all_spent(session)
    assert session.answer(ic.where(a=0, b=0)).hard
    assert len(session.plan.first_tables.targets) + 1 == len(
        session.hypothesis.fit.potentials
    )  # it caught up
    monkeypatch.setattr(FittedTables, "update", method)
    again = replay(session.transcript, DOMAIN, session.plan.update, session.plan.alpha)
    assert again.probabilities().tobytes() == session.hypothesis.probabilities().tobytes()


# -- prices ----------------------------------------------------------------------------------------------


@BOTH
def test_every_hit_is_reserved_before_its_read_at_the_price_of_a_partition(delta):
    data = table()
    session = probing(data, delta=delta)
    price = session.plan.sparse.price(Partition(DOMAIN, (0,), (np.arange(4),))).amount
    run = session.plan.sparse.start_charge()  # the threshold noise, with the first hit
    run = run.amount if run is not None else 0
    left = session.plan.sparse.account().capacity - all_spent(session) - run
    number = int(left // price)
    assert number == session.statistics().hard_left
    for query in stream(60, 5, tables=False):
        session.answer(query)
    charges = [record.charge.amount for record in hits(session)]
    reserved = None
    for record in session.transcript[2:]:
        if isinstance(record, Reserved):
            reserved = record.charge
        if isinstance(record, Easy | Hard):
            assert reserved is not None
        if isinstance(record, Hard):
            assert record.charge == reserved
            reserved = None

    assert [price + run] + [price] * (number - 1) == charges
    assert all_spent(session) <= session.plan.sparse.account().capacity
    assert left - number * price < price


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"release": "answer", "sparse": "gumbel"},
        {"release": "answer", "sparse": "gumbel", "update": MaximumEntropy()},
        {"delta": 0.0},
        {"delta": 0.0, "sparse": "laplace"},
    ],
)
def test_spent_never_exceeds_the_capacity_and_is_what_was_recorded(settings, seed):
    ledger = MemoryLedger()
    session = probing(seed=seed, epsilon=0.5, ledger=ledger, **settings)
    last = Fraction(0)
    for query in stream(80, seed, tables="delta" not in settings):
        session.answer(query)
        spent = all_spent(session)
        assert last <= spent <= session.plan.sparse.account().capacity
        last = spent
    capacity = session.plan.sparse.account().capacity
    paid = sum(
        (record.charge.amount for record in ledger.records() if isinstance(record, Hard | BoughtTables)),
        Fraction(0),
    )
    standing = ledger.reserved.amount if ledger.reserved is not None else 0

    assert paid + standing == ledger.spent <= capacity
    for record in hits(session):
        target = record.measurement.target
        tested = record.query.partition if isinstance(record.query, BoundMarginal) else record.query
        assert record.charge.amount >= session.plan.sparse.price(target).amount
        assert record.charge.amount >= (
            session.plan.sparse.price(tested).amount if isinstance(target, Query) else 0
        )


def test_a_number_that_costs_more_than_a_partition_is_paid_as_a_number():
    """At little noise sigma is rounded up to whole records, but less on a finer grid."""
    domain = ic.Domain.of(a=130, b=130)
    data = PrivateData(np.random.default_rng(0).integers(0, 3, (130, 130)), domain)
    session = ic.OnlineIC(
        data,
        ic.Budget(20.0, 0.01),
        sparse=GumbelSparse(
            n=data.n,
            epsilon=20.0,
            delta=0.01,
            order=Fraction(3, 2),
            scale=Fraction(6, 5) * 2**20,
            threshold=1,
            grid_bits=20,
            ratio=Fraction(1),
        ),
        release="partition",
        prior=ic.Histogram(domain),
        noise=SimulatedNoise(1),
    )
    sparse = session.plan.sparse
    weights = np.random.default_rng(1).integers(0, 2**20 + 1, (130, 130)) / 2**20
    query = ic.dense(weights).bind(domain, 20)
    whole = sparse.price(Partition(domain, (0,), (np.arange(130),))).amount

    assert session.plan.partitions.partition(query) is None
    assert sparse.price(query).amount > whole
    while not session.answer(query).hard:
        weights = np.roll(weights, 1)
        query = ic.dense(weights).bind(domain, 20)
    assert hits(session)[0].charge.amount == sparse.price(query).amount


@BOTH
def test_exhaustion_is_decided_before_the_data_are_touched(delta, monkeypatch):
    session = probing(hard_answers=2, delta=delta)
    session.answer_many(stream(60, 1))
    assert 0 == session.statistics().hard_left
    for name in ("exact_counts", "exact_counts_many"):
        monkeypatch.setattr(PrivateData, name, lambda *_: 1 / 0)
    monkeypatch.setattr(SimulatedNoise, "next_word" if delta else "geometric", lambda *_: 1 / 0)
    records = session.transcript
    statuses = {answer.status for answer in session.answer_many(stream(200, 2))}

    assert {"untested", "repeat", "easy"} >= statuses >= {"untested"}
    assert records == session.transcript
    assert not session.statistics().sealed


@BOTH
def test_easy_answers_leave_what_is_spent_bit_for_bit(delta):
    session = opened(threshold=0.9, delta=delta)
    session.answer(ic.where(a=0))
    spent = all_spent(session)
    for query in stream(60, 4):
        assert not session.answer(query).hard
        assert spent == all_spent(session)


def test_a_hypothesis_that_asks_the_session_itself_is_refused():
    """Else its questions use up a dear reservation and leave a cheap one, which pays for no dear hit."""
    session, loop = with_loop(probing, release="answer", sparse="gumbel", hard_answers=50)
    inner = session.hypothesis
    dear, refused = ic.where(a=0), []
    cheap = ic.dense(np.arange(240).reshape(DOMAIN.shape) // 120 / 2**15)

    class Nested:
        domain, supports, evaluate_many = inner.domain, inner.supports, inner.evaluate_many

        def evaluate(self, query):
            for question in (ic.where(b=0), cheap):
                with pytest.raises(SessionStateError, match="one call at a time") as error:
                    session.answer(question)
                refused.append(error)
            return inner.evaluate(query)

    book = loop.book
    book.state = attrs.evolve(book.state, belief=attrs.evolve(book.belief, hypothesis=Nested()))
    before = len(hits(session))
    session.answer(dear)
    for record in hits(session):
        assert record.charge.amount >= session.plan.sparse.price(record.query).amount

    assert refused
    assert before + 1 >= len(hits(session))


# -- answers ---------------------------------------------------------------------------------------------


def test_a_hard_answer_is_what_was_learned_and_its_bound_the_spread_of_the_blocks_and_the_distance(
    monkeypatch,
):
    tests_alone(monkeypatch)
    session = probing()
    query, answer = first_hit(session)
    record = hits(session)[0]
    value, weights = ic.queries.derived(record.query, record.measurement)
    deviation = record.measurement.scale * float(np.linalg.norm(weights))
    learned = session.hypothesis.evaluate(record.query)

    assert isinstance(record.measurement.target, Partition)
    assert 0 < abs(learned - value) < 3 * deviation
    assert (learned, "hard") == (answer.value, answer.status)
    radius = session.plan.sparse.sum_radius(record.measurement.target, weights, 0.025 * 0.7)
    assert radius < deviation * math.sqrt(2 * math.log(2 / (0.025 * 0.7)))
    assert answer.error_bound == pytest.approx(radius + abs(learned - value), rel=1e-12)
    assert session.statistics().error_bound > answer.error_bound
    again = session.answer(~query)
    assert ("repeat", 1 - learned, answer.error_bound) == (again.status, again.value, again.error_bound)


@pytest.mark.filterwarnings("ignore::onlineic.errors.UpdateFailedWarning")
@pytest.mark.parametrize("release", ["partition", "answer"])
@BOTH
def test_a_hard_answer_that_the_hypothesis_contradicts_is_as_measured(monkeypatch, delta, release):
    """Nothing was learned, since the rule failed: the hypothesis is uniform."""

    def failing(*_):
        raise RuntimeError

    monkeypatch.setattr(MaximumEntropy, "update", failing)
    session = probing(update=MaximumEntropy(), release=release, delta=delta, purchases=ic.TestsOnly())
    answer = session.answer(ic.where(a=0))
    record = hits(session)[0]
    value, weights = ic.queries.derived(record.query, record.measurement)
    gap = abs(value - session.hypothesis.evaluate(record.query))

    assert gap > 3 * record.measurement.scale * float(np.linalg.norm(weights))
    assert (value, "hard") == (answer.value, answer.status)


@pytest.mark.parametrize("failing", [lambda: math.nan, lambda: 1 / 0, lambda: None])
@BOTH
def test_a_paid_answer_is_not_lost_where_what_was_learned_cannot_be_evaluated(failing, delta):
    """Of a rule of one's own: finiteness was checked for one block of the table only."""

    class Broken:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def evaluate(self, query):
            return failing() if query.key in asked else self.inner.evaluate(query)

    class Rule(ic.UpdateRule):
        def init(self, domain, prior=None):
            return ic.Histogram(domain, COUNTS + 1e-9)  # so that the guess agrees with what is measured

        def update(self, hypothesis, measurements, alpha):
            return Broken(hypothesis)

        def update_bound(self, domain, alpha):
            return None

    queries = [ic.where(a=low % 4, c=ic.between(low, 19)) for low in range(20)]
    asked = {query.bind(DOMAIN).key for query in queries}
    session = probing(update=Rule(), release="partition", delta=delta)
    for query in queries:
        answer = session.answer(query)
        if answer.hard:
            break
    record = hits(session)[0]
    value, weights = ic.queries.derived(record.query, record.measurement)
    agreeing = 3 * record.measurement.scale * float(np.linalg.norm(weights))

    assert abs(record.guess / N - value) < agreeing
    assert (value, "hard") == (answer.value, answer.status)
    assert math.isfinite(answer.error_bound)
    assert math.isfinite(session.statistics().error_bound)
    assert (value, "repeat") == ((again := session.answer(query)).value, again.status)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_refusal_after_the_last_hit_speaks_of_what_the_first_tables_left(delta):
    session = probing(delta=delta, hard_answers=3, exhausted="raise")
    paid = session.statistics().hard_left
    with pytest.raises(SessionExhaustedError, match=f"is used up, by {paid} hard answers") as refused:
        session.answer_many(ic.where(a=low % 4, c=ic.between(low, 19)) for low in range(20))

    assert 3 <= paid < 20
    assert paid == session.statistics().hard
    assert ["hard"] * paid == [answer.status for answer in refused.value.answers if answer.hard]
    assert len(refused.value.answers) == session.statistics().asked


def test_a_measured_number_is_the_answer():
    session = probing(release="answer", update=MaximumEntropy())
    query, answer = first_hit(session)
    measurement = hits(session)[0].measurement

    assert isinstance(measurement.target, Query)
    assert abs(session.hypothesis.evaluate(query.bind(DOMAIN)) - answer.value) < 3 * measurement.scale
    assert float(measurement.values[0]) == answer.value


@BOTH
def test_the_measurement_owns_its_numbers(delta):
    """Nobody writes to a released array, which could change the data or what is released later."""
    data = table()
    session = probing(data, delta=delta)
    first_hit(session)
    exact = data.exact_counts(hits(session)[0].measurement.target).copy()
    for values in (hits(session)[0].measurement.values, session.transcript[1].measurements[0].values):
        with pytest.raises(ValueError, match="read-only"):
            values[:] = -1.0

    assert np.array_equal(exact, data.exact_counts(hits(session)[0].measurement.target))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"threshold": 0.02},
        {"threshold": 1e-5, "hard_answers": 6},
        {"release": "answer", "sparse": "gumbel", "threshold": 0.002, "hard_answers": 6},
        {"release": "answer", "sparse": "gumbel", "update": MaximumEntropy(), "threshold": 2e-3},
        {"delta": 0.0, "threshold": 0.001},
        {"delta": 0.0, "sparse": "exponential", "threshold": 1e-5, "hard_answers": 4},
        {"release": "partition", "update": ic.MultiplicativeWeights(), "threshold": 0.01},
        {"sparse": "laplace", "threshold": 0.01, "hard_answers": 9},
    ],
)
def test_many_at_once_are_the_answers_transcript_and_charges_of_one_at_a_time(settings, seed):
    queries = stream(100, seed, tables="delta" not in settings)
    noises = [SimulatedNoise(seed), SimulatedNoise(seed)]
    one, many = (opened(noise=noise, **settings) for noise in noises)
    expected, actual = [one.answer(query) for query in queries], many.answer_many(queries)

    assert expected == actual
    assert list(map(plain, one.transcript)) == list(map(plain, many.transcript))
    assert one.statistics() == many.statistics()
    assert one.hypothesis.probabilities().tobytes() == many.hypothesis.probabilities().tobytes()
    assert np.array_equal(*(noise.words(64) for noise in noises))


def test_a_batch_with_a_dear_query_far_behind_pays_the_cheap_hit_cheaply():
    cheap = ic.dense(np.indices(DOMAIN.shape)[2] / 19 / 16)
    session = probing(release="answer", sparse="gumbel", hard_answers=4)
    answers = session.answer_many([cheap, ic.where(a=0)])
    first = hits(session)[0]

    assert answers[0].hard
    assert first.charge.amount == session.plan.sparse.price(first.query).amount
    assert first.charge.amount < session.plan.sparse.price(ic.where(a=0).bind(DOMAIN)).amount


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"threshold": 1e-5, "hard_answers": 5},
        {"release": "answer", "sparse": "gumbel", "threshold": 1e-4, "update": MaximumEntropy()},
        {"release": "partition", "update": ic.MultiplicativeWeights(), "threshold": 1e-4},
        {"delta": 0.0, "threshold": 1e-4},
        {"prior": ic.Histogram(DOMAIN, np.arange(1.0, 241.0)), "threshold": 1e-4},
    ],
)
def test_the_hypothesis_is_rebuilt_bit_for_bit_from_the_transcript(settings):
    session = opened(**settings)
    session.answer_many(stream(60, 3, tables="delta" not in settings))
    again = replay(session.transcript, DOMAIN, session.plan.update, session.plan.alpha, settings.get("prior"))

    assert again.probabilities().tobytes() == session.hypothesis.probabilities().tobytes()


@BOTH
def test_a_beginning_of_the_transcript_gives_every_easy_answer(delta):
    session = opened(threshold=0.003, delta=delta)
    session.answer_many(stream(80, 3))
    records = session.transcript
    easy = [(place, r) for place, r in enumerate(records) if isinstance(r, Easy)]
    for place, record in easy[:: max(1, len(easy) // 6)]:
        past = replay(records[:place], DOMAIN, session.plan.update, session.plan.alpha)
        if isinstance(record.query, BoundMarginal):
            guess = np.rint(N * np.clip(past.blocks(record.query.partition), 0, 1)).astype(int).tolist()
            assert list(record.guess) == guess
        else:
            assert record.guess == round((N << record.query.grid_bits) * past.evaluate(record.query))


def test_all_answers_together_have_one_bound_however_many_cheap_hits_there_are():
    """Queries of small range cost less, so more of them are paid for: each takes a smaller share of beta."""
    session = probing(release="answer", sparse="gumbel", hard_answers=3)
    dear = session.statistics().hard_left
    generator = np.random.default_rng(1)
    session.answer_many([ic.dense(generator.integers(0, 2, DOMAIN.shape) / 4) for _ in range(200)])
    stats = session.statistics()
    scale = session.plan.sparse.sigma(2) / 4 / N

    assert stats.hard > 3 * dear
    assert stats.hard * 2 * norm.sf(stats.error_bound / scale) <= 0.1 * 0.05


def test_the_bound_of_all_answers_covers_how_far_a_query_was_rounded(monkeypatch):
    tests_alone(monkeypatch)
    session = opened(epsilon=1e-6, delta=1e-2)
    bits = session.plan.weight_bits
    # no mixture of intervals, which the first tables would bound
    query = ic.dense((0.5 + 0.3 * 2.0**-bits) * (np.indices(DOMAIN.shape)[0] % 2))
    before = session.statistics().error_bound
    session.answer(query)
    rounding = query.bind(DOMAIN, bits).rounding

    assert rounding > 0
    assert session.statistics().error_bound >= before + rounding * (1 - 1e-9)


def test_a_textbook_session_answers_tables_within_bounds_of_their_own():
    """3 alpha is the theorem's, about numbers: a table has its own bound over all its cells."""
    errors = []
    for seed in range(40):
        session = ic.OnlineIC.textbook(
            table(COUNTS * 1000), epsilon=10.0, max_queries=50, noise=SimulatedNoise(seed)
        )
        answer = session.answer(marginal("a", "c"))
        if answer.hard:
            worst = np.abs(answer.value - COUNTS.sum(axis=1) / N).max()
            errors.append(worst <= answer.error_bound)

    assert len(errors) >= 30
    assert errors.count(False) <= 12  # at most 1 in 20 each: 12 of 40 has probability below 1e-6


def test_a_certificate_ends_where_a_table_is_measured():
    """The theorem counts numbers and gaps of single queries; an easy table changes nothing."""
    hard = ic.OnlineIC.textbook(
        table(COUNTS * 1000), epsilon=10.0, max_queries=50, noise=SimulatedNoise(1), alpha=0.04
    )
    easy = ic.OnlineIC.textbook(
        table(np.full_like(COUNTS, 10**6)), epsilon=10.0, max_queries=50, noise=SimulatedNoise(1)
    )
    before = easy.statistics().error_bound

    assert ["hard", "easy"] == [session.answer(marginal("a", "c")).status for session in (hard, easy)]
    assert (math.inf, False) == (hard.statistics().error_bound, hard.statistics().certified)
    assert (before, True) == (easy.statistics().error_bound, easy.statistics().certified)


# -- faults ----------------------------------------------------------------------------------------------


PRIVATE = [
    (delta, owner, name)
    for delta, mechanism, *drawn in (
        (1e-6, GumbelSparse, "next_word", "discrete_gaussian"),
        (0.0, ExponentialSparse, "geometric", "discrete_laplace"),
    )
    for owner, *names in (
        (PrivateData, "exact_counts", "exact_counts_many"),
        (mechanism, "step", "step_many", "step_table", "measure"),
        (SimulatedNoise, *drawn),
        (ic.queries.PartitionRule, "partition"),
        (MemoryLedger, "commit"),
    )
    for name in names
]
ASKED = [ic.where(a=0), marginal("a", "b"), ic.where(c=ic.between(2, 9)), marginal("c"), ic.where(b=1)]


def one_at_a_time(session):
    return [session.answer(query) for query in ASKED]


def all_at_once(session):
    return session.answer_many(ASKED)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("failure", [ValueError, Stop, SystemExit])
@pytest.mark.parametrize(("delta", "owner", "name"), PRIVATE)
def test_a_failure_between_read_and_record_of_the_new_paths_burns_seals_and_tells_nothing(
    delta, owner, name, failure, batch, monkeypatch, caplog
):
    injected = 0
    for occurrence in (1, 2):
        for after in (False, True):
            data = table()
            session = probing(data, hard_answers=6, delta=delta)
            spent = all_spent(session)
            with monkeypatch.context() as patched:
                calls = plant(patched, owner, name, occurrence, failure, after=after)
                reached = reached_by(all_at_once if batch else one_at_a_time, session)
            if len(calls) < occurrence:
                assert reached is None
                continue
            injected += 1
            price = session.plan.sparse.price(Partition(DOMAIN, (0,), (np.arange(4),))).amount
            forfeited = sum(isinstance(record, Forfeited) for record in session.transcript)
            text = caplog.text + repr(session) + repr(session.transcript)
            text += "".join(traceback.format_exception(reached)) if isinstance(reached, Exception) else ""

            assert type(reached) is (failure if failure is SystemExit else SessionSealedError)
            assert (None, None) == (reached.__cause__, reached.__context__)
            recorded = (
                name == "commit" and after and failure is SystemExit
            )  # the record stands: nothing is lost
            assert session.statistics().sealed is not recorded
            standing = session.reserved.amount if recorded and session.reserved else 0
            run = (
                session.plan.sparse.start_charge()
            )  # the threshold noise, with the first hit or forfeited one
            first = run.amount if run is not None and len(hits(session)) + forfeited else 0
            assert all_spent(session) == spent + first + (len(hits(session)) + forfeited) * price + standing
            assert str(SECRET) not in text
            reads = data.reads
            if not recorded:
                with pytest.raises(SessionSealedError):
                    session.answer(marginal("b"))
                assert reads == data.reads
    assert injected >= (0 if name in ("step_many", "exact_counts_many", "step") else 1)


@pytest.mark.filterwarnings("ignore::onlineic.errors.UpdateFailedWarning")
@pytest.mark.usefixtures("listening")
@BOTH
def test_a_failed_update_keeps_the_charge_and_the_answer_of_a_table_too(delta, monkeypatch):
    rule = settled(DOMAIN, N, ic.Budget(1.0, delta), threshold=1e-5, hard_answers=5)
    session = probing(delta=delta, purchases=rule)
    spent = all_spent(session)
    assert 0 == session.statistics().update_failures  # of the opening
    with monkeypatch.context() as patched:
        patched.setattr(FittedTables, "update", lambda *_: 1 / 0)
        answers = session.answer_many([marginal("a", "c"), ic.where(b=0, c=3)])
    prices = [record.charge.amount for record in hits(session)]

    standing = session.reserved.amount if session.reserved is not None else 0

    assert spent + sum(prices) + standing == all_spent(session)
    assert len(prices) == session.statistics().update_failures == sum(answer.hard for answer in answers)
    assert len(prices) >= 1
    assert "repeat" == session.answer(marginal("a", "c")).status


@BOTH
def test_nothing_shown_holds_a_private_number(delta, caplog):
    """Counts of a planted table appear in no text, record or attribute that a session hands out."""
    counts = np.zeros(DOMAIN.shape, int)
    counts[1, 2, 7], counts[3, 0, 11] = SECRET, 2 * SECRET
    session, loop = with_loop(opened, table(counts), threshold=1e-8, delta=delta, seed=4)
    answers = session.answer_many(ASKED)
    shown = repr(session) + repr(session.statistics()) + repr(session.transcript) + caplog.text
    shown += repr(answers) + repr(session.plan) + repr(loop.ledger) + repr(loop.core)
    shown += " ".join(str(answer.count) for answer in answers)
    summary = session.summary()
    shown += str(summary) + summary.to_html() + summary.to_markdown() + session._repr_html_()
    shown += " ".join(f"{answer} {answer.to_dict()} {answer._repr_html_()}" for answer in answers)
    shown += repr([pickle.dumps(answer) for answer in answers]) + repr(session.synthetic(50).columns)
    shown = shown.replace(",", "") + shown

    assert session.statistics().hard >= 1
    for number in (SECRET, 2 * SECRET):
        assert str(number) not in shown
    with pytest.raises(TypeError):
        copy.copy(session)


def test_a_partition_or_a_subclass_is_not_taken_for_a_question():
    class Sub(ic.queries.marginals.Marginal):
        pass

    class Bound(ic.queries.marginals.BoundMarginal):
        pass

    session = opened()
    held = marginal("a").bind(DOMAIN)
    for question in (
        Bound(held.names, held.partition, held.cells),
        Sub(("a",)),
        Partition(DOMAIN, (0,), (np.arange(4),)),
        b"a",
    ):
        with pytest.raises(InvalidQueryError, match=r"^query must be data"):
            session.answer(question)
    assert 2 == len(session.transcript)


# -- mechanisms brought by the user ------------------------------------------------------------------------


def test_a_pure_mechanism_with_fresh_answers_answers_tables_and_numbers_within_epsilon():
    sparse = ExponentialSparse.calibrated(
        ic.Budget(1.0), n=N, hard_answers=4, max_queries=100, grid_bits=8, threshold=1e-5, fresh=True
    )
    session = opened(delta=0.0, sparse=sparse)
    answers = session.answer_many([marginal("a"), ic.where(a=0), marginal("b", "c"), *stream(30, 3)])
    charges = [record.charge.amount for record in hits(session)]
    run = Fraction(1 << 8) / sparse.threshold_scale

    assert "hard" == answers[0].status
    assert all_spent(session) <= 1
    assert charges[0] == run + sparse.price(marginal("a").bind(DOMAIN).partition).amount
    for record in hits(session)[1:]:
        assert record.charge.amount >= sparse.price(record.measurement.target).amount
    assert isinstance(hits(session)[0].measurement, Measurement)


@pytest.mark.parametrize("claim", [{"epsilon": 10.0}, {"delta": 1e-2}, {"n": 5}])
def test_a_mechanism_of_another_budget_or_table_is_refused(claim):
    """The session would state the smaller budget and spend the larger."""
    wanted = {"n": N, "epsilon": 1.0, "delta": 1e-6} | claim
    sparse = GumbelSparse.calibrated(
        ic.Budget(wanted["epsilon"], wanted["delta"]), n=wanted["n"], hard_answers=5, max_queries=100
    )
    with pytest.raises(ic.errors.InvalidParameterError):
        opened(sparse=sparse)


def test_a_mechanism_that_is_not_exactly_a_shipped_one_is_refused_or_stamped():
    class Plugin(GumbelSparse):
        """Adds no noise at all to its answers."""

        def measure(self, hit, target, guess, counts, noise):
            return Measurement(target, np.atleast_1d(counts) / self.n, 1e-9)

    known = GumbelSparse.calibrated(ic.Budget(1.0, 1e-6), n=N, hard_answers=5, max_queries=100)
    names = ("n", "epsilon", "delta", "order", "scale", "threshold", "grid_bits", "ratio")
    plugin = Plugin(**{name: getattr(known, name) for name in names})
    try:
        private = opened(sparse=plugin, noise=None).statistics().private
    except ic.errors.InvalidParameterError:
        private = False

    assert not private
