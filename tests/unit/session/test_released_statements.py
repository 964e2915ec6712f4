"""What a session states beside its values is true, whatever happened.

Bounds of false hits, of all answers at once and of a single record, certificates, what a batch has answered
before it was refused, and what a ledger has spent.
"""

import contextlib
import itertools
import logging
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    SessionExhaustedError,
    SessionSealedError,
)
from onlineic.ledger import Easy, Hard, MemoryLedger
from onlineic.ledger import memory as ledger_module
from onlineic.noise import SimulatedNoise, scale_at_least
from onlineic.plan import session_plan
from onlineic.queries import BoundMarginal, Query, derived
from onlineic.sparse import ExponentialSparse
from support.failures import At
from support.laws import too_many
from support.noise import Wrapped
from support.sessions import Still, begun, charged, hits, plan_once, tests_alone

LEVEL = 1e-9
PURE, GUMBEL = ic.Budget(1.0), ic.Budget(1.0, 1e-6)
CELLS = ic.Domain.of(a=8, b=8)


def dense(generator, domain=CELLS):
    """Half of the cells at random: a sum of so many blocks is noisier than the number alone."""
    return ic.dense(generator.permutation(np.arange(domain.size) % 2).reshape(domain.shape))


@pytest.fixture
def planned(monkeypatch):
    """Make one plan for all sessions of a test, whose hits keep their price."""

    def plan(data, budget, **settings):
        one = attrs.evolve(session_plan(data.domain, data.n, budget, **settings), next_share=None)
        plan_once(monkeypatch, one)
        return one

    return plan


class Firing(Wrapped):
    """The noise of pure tests given that they fire on a gap of 0: beyond the threshold it has no memory."""

    def __init__(self, sparse, seed):
        super().__init__(seed)
        self.sparse, self.level = sparse, 0

    def geometric(self, scale, size):
        drawn = super().geometric(scale, size)
        if scale == self.sparse.query_scale:
            return drawn + self.level
        self.level = self.sparse.threshold + int(drawn[0])
        return drawn


# -- false hits of pure sessions ---------------------------------------------------------------------------


def false_hits(data, noise, sessions, questions, **settings):
    """Return (error, bound) of every answer of sessions whose tests are all false hits, and the last one."""
    generator, found, session = np.random.default_rng(1), [], None
    for _ in range(sessions):
        session = ic.OnlineIC(data, PURE, noise=noise, **settings)
        for _ in range(questions):
            query = dense(generator)
            answer = session.answer(query)
            assert answer.hard
            found.append((abs(answer.value - 0.5), answer.error_bound))
    return np.array(found), session


def test_a_number_that_a_default_pure_session_releases_for_a_false_hit_is_within_its_bound(planned):
    """It is fresh, without the luck of the test, so that the bound is less than what a test resolves."""
    data = PrivateData(np.full(CELLS.shape, 2500), CELLS)
    settings = {"hard_answers": 4, "prior": ic.Histogram(CELLS)}
    plan = planned(data, PURE, **settings)
    noise = Firing(plan.sparse, seed=1)
    found, session = false_hits(data, noise, sessions=40, questions=4, **settings)
    numbers = [record for record in session.transcript if isinstance(record, Hard)]
    outside = int((found[:, 0] > found[:, 1]).sum())

    assert plan.partitions is not None
    assert all(isinstance(record.measurement.target, Query) for record in numbers)
    assert 160 == len(found)
    assert too_many(outside, 160, 0.05) > LEVEL
    assert found[:, 1].max() < session.statistics().threshold
    assert too_many(int((found[:, 0] > found[:, 1] / 4).sum()), 160, 0.05) < LEVEL  # not by far too much


def test_the_bound_of_a_free_gap_reaches_as_far_as_a_false_hit_does(planned):
    """Its noise is above the threshold: all errors are, so a bound without it would hold for none of them."""
    data = PrivateData(np.full(CELLS.shape, 2500), CELLS)
    settings = {"release": "answer", "hard_answers": 8}
    plan = planned(data, PURE, update=Still(), **settings)
    found, session = false_hits(
        data, Firing(plan.sparse, seed=2), sessions=60, questions=8, update=Still(), **settings
    )
    outside = int((found[:, 0] > found[:, 1]).sum())
    threshold = session.statistics().threshold

    assert plan.sparse.number_scale is None
    assert too_many(outside, 480, 0.05) > LEVEL
    assert found[:, 0].min() > 0.5 * threshold
    assert (found[:, 0] > found[:, 1] - threshold).mean() > 0.9


def test_the_bounds_of_free_gaps_hold_where_every_gap_is_zero(planned):
    """Sessions of a hundred false alarms, some of which get through; each bound alone and all at once."""
    data = PrivateData(np.full(CELLS.shape, 2500), CELLS)
    settings = {"release": "answer", "hard_answers": 8, "max_queries": 100, "beta": 0.2, "update": Still()}
    settings["threshold"] = 0.6 * session_plan(CELLS, data.n, PURE, **settings).alpha * 2
    plan = planned(data, PURE, **settings)
    generator, noise = np.random.default_rng(3), SimulatedNoise(3)
    queries = [dense(generator).bind(CELLS) for _ in range(100)]
    hits = outside = broken = 0
    for _ in range(40):
        session = ic.OnlineIC(data, PURE, noise=noise, **settings)
        hard = [one for one in session.answer_many(queries) if one.hard]
        hits += len(hard)
        outside += sum(abs(one.value - 0.5) > one.error_bound for one in hard)
        broken += any(abs(one.value - 0.5) > session.statistics().error_bound for one in hard)

    assert plan.sparse.number_scale is None
    assert hits >= 60
    assert too_many(outside, hits, 0.2) > LEVEL
    assert too_many(broken, 40, 0.2) > LEVEL


# -- all answers of a pure session at once -----------------------------------------------------------------


def laplace_radius(scale, beta):
    """Least r with P(|Z| > r) <= beta, Z discrete Laplace."""
    q = math.exp(-1.0 / float(scale))
    tails = 2.0 * q ** np.arange(1, 100_000) / (1.0 + q)
    return int(np.argmax(tails <= beta))


def sum_radius(scale, weights, beta):
    """Least Chernoff bound on |sum of weights times discrete Laplace noises|."""
    q = math.exp(-1.0 / float(scale))

    def bound(tilt):
        u = tilt * weights
        moments = 2.0 * np.log1p(-q) - np.log1p(-q * np.exp(u)) - np.log1p(-q * np.exp(-u))
        return (math.log(2.0 / beta) + moments.sum()) / tilt

    most = 1.0 / float(scale) / np.abs(weights).max()
    return minimize_scalar(bound, bounds=(most * 1e-3, most * (1 - 1e-6)), method="bounded").fun


@pytest.mark.parametrize("order", range(3))
def test_all_hits_of_a_pure_session_share_one_tenth_of_beta_numbers_and_tables_alike(order, monkeypatch):
    """Each has the part that its price is of what all can cost: the parts are at most a whole."""
    tests_alone(monkeypatch)
    beta, generator = 0.1, np.random.default_rng(order)
    counts = generator.multinomial(160_000, generator.dirichlet(np.full(64, 0.5))).reshape(8, 8)
    data = PrivateData(counts, CELLS)
    session = ic.OnlineIC(
        data, PURE, beta=beta, threshold=1e-6, hard_answers=9, noise=SimulatedNoise(order), max_queries=50
    )
    sparse, plan = session.plan.sparse, session.plan
    beta = plan.tested_beta
    payable = Fraction(sparse.epsilon) - plan.first_tables.charge.amount
    test = Fraction(2 << sparse.grid_bits) / sparse.query_scale
    cell = scale_at_least(2 * sparse.number_scale)
    prices = {"number": test + 1 / scale_at_least(sparse.number_scale), "table": test + 2 / cell}
    spent, shares, worst, kinds = Fraction(0), Fraction(0), 0.0, set()
    questions = [lambda i: dense(generator), lambda i: ic.where(a=i), lambda i: ic.marginal(*"ab"[i % 2])]
    for i in range(24):
        answer = session.answer(questions[(i + order) % 3](i // 3))
        if not answer.hard:
            worst = max(worst, plan.error_bound)
            continue
        (record,) = [one for one in session.transcript if isinstance(one, Hard)][-1:]
        target = record.measurement.target
        price = prices["number" if isinstance(target, Query) else "table"]
        share = Fraction(1, max(2, math.ceil(payable / price)))
        spent, shares = spent + price, shares + share
        if isinstance(target, Query):
            kinds.add("number")
            moved = abs(answer.value - float(record.measurement.values[0]))
            radii = [laplace_radius(sparse.number_scale, b) for b in (0.5 * beta, 0.1 * beta * share)]
        elif isinstance(record.query, Query):
            kinds.add("sum")
            value, weights = derived(record.query, record.measurement)
            moved = abs(answer.value - value)
            radii = [sum_radius(cell, weights, b) for b in (0.5 * beta, float(0.1 * beta * share))]
        else:
            kinds.add("table")
            released = record.query.table(record.measurement.values)
            moved, parts = float(np.abs(answer.value - released).max()), target.blocks
            radii = [laplace_radius(cell, b / parts) for b in (0.5 * beta, 0.1 * beta * share)]
        one, all_of_them = (moved + radius / data.n for radius in radii)
        worst = max(worst, all_of_them)
        assert one <= answer.error_bound * (1 + 1e-12) <= 1.002 * one
        assert worst <= session.statistics().error_bound * (1 + 1e-12) <= 1.002 * worst

    assert {"number", "sum", "table"} == kinds
    assert 0.8 < spent / payable <= 1
    assert 0.8 < shares <= 1
    assert plan.error_bound == sparse.easy_radius(0.9 * beta, 50)


def test_what_a_brought_pure_mechanism_was_planned_for_is_not_part_of_it():
    """At a threshold of its own a number of queries changes nothing, so no bound can rest on it."""
    made = [
        ExponentialSparse.calibrated(
            PURE, n=10**5, hard_answers=9, max_queries=k, threshold=0.01, fresh=fresh
        )
        for k in (1, 10**6)
        for fresh in (False, True)
    ]

    assert (made[0], made[1]) == (made[2], made[3])
    assert not any("max_queries" in field.name for field in attrs.fields(ExponentialSparse))


@pytest.mark.parametrize("threshold", [1e-6, 0.05])
def test_the_bound_of_all_free_gaps_is_for_all_tests_of_the_session_whoever_planned_the_mechanism(threshold):
    """Errors of hits leave it with a tenth of beta: one event over all tests, however the hits share it."""
    data = PrivateData(np.array([[160_000, 0], [0, 0]]), ic.Domain.of(a=2, b=2))
    sparse = ExponentialSparse.calibrated(PURE, n=data.n, hard_answers=9, max_queries=1, threshold=threshold)
    session = ic.OnlineIC(
        data, PURE, sparse=sparse, release="answer", update=Still(), max_queries=2000, noise=SimulatedNoise(1)
    )
    answer = session.answer(ic.where(a=0))
    b1, b2, beta = float(sparse.threshold_scale), float(sparse.query_scale), 0.1 * 0.05
    q1, q2 = math.exp(-1 / b1), math.exp(-1 / b2)
    centre = q2 / (1 - q2) - q1 / (1 - q1)
    as_tests = b2 * math.log(2 * 2000 * (1 - q1) / (1 - q1 * q2) / (beta / 2))
    radius = max(as_tests - centre, b1 * math.log(2 / beta) + centre) / data.n

    assert answer.hard
    radius += session.plan.steps
    assert session.statistics().error_bound == pytest.approx(max(session.plan.error_bound, radius), rel=1e-9)
    easy, number = (
        sparse.easy_radius(0.9 * 0.05, 2000),
        sparse.margins(2000, 0.05, session.plan.hard_answers)[2],
    )
    assert session.plan.error_bound == max(easy, number) + session.plan.steps


@pytest.mark.audit
@pytest.mark.parametrize("release", ["partition", "answer"])
def test_the_bound_of_all_answers_holds_with_a_brought_pure_mechanism_planned_for_one_query(release, planned):
    """Every gap is 0 and nearly every test a false hit: one bound for two hundred of them."""
    data = PrivateData(np.full(CELLS.shape, 2500), CELLS)
    sparse = ExponentialSparse.calibrated(
        PURE, n=data.n, hard_answers=200, max_queries=1, threshold=1e-6, fresh=release == "partition"
    )
    settings = {"sparse": sparse, "release": release, "update": Still(), "max_queries": 2000}
    planned(data, PURE, **settings)
    generator, noise, broken, hits = np.random.default_rng(5), SimulatedNoise(5), 0, 0
    queries = [dense(generator).bind(CELLS) for _ in range(200)]
    for _ in range(100):
        session = ic.OnlineIC(data, PURE, noise=noise, **settings)
        answers = [session.answer(query) for query in queries]
        hits += sum(answer.hard for answer in answers)
        broken += max(abs(answer.value - 0.5) for answer in answers) > session.statistics().error_bound

    assert hits > 100 * 190
    assert too_many(broken, 100, 0.05) > LEVEL
    assert too_many(25, 100, 0.05) < LEVEL  # where one query was counted for all


def test_a_brought_pure_mechanism_without_fresh_answers_releases_no_partitions():
    data = PrivateData(np.full(CELLS.shape, 2500), CELLS)
    sparse = ExponentialSparse.calibrated(PURE, n=data.n, hard_answers=9, max_queries=1, threshold=1e-6)

    with pytest.raises(InvalidQueryError, match="no share was planned for fresh answers"):
        ic.OnlineIC(data, PURE, sparse=sparse, release="partition", noise=SimulatedNoise(1))


# -- rounding ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("repeated", [False, True])
def test_how_far_a_constant_was_rounded_is_in_the_bound_of_all_answers(repeated):
    """A product of two constants, each just beside the grid, at many records: farther off than by noise."""
    domain = ic.Domain.of(a=4, b=4)
    data = PrivateData(np.full((4, 4), 10**7 // 16), domain)
    session = begun(ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1)))
    before = session.statistics().error_bound
    grid = 2**session.plan.weight_bits
    x, y = (int(0.3 * grid) + 0.5) / grid - 1e-12, (int(0.7 * grid) + 0.5) / grid - 1e-12
    query = ic.where(a=ic.weights([x] * 4), b=ic.weights([y] * 4))
    answer = session.answer(query)
    error = abs(answer.value - x * y)
    after = session.statistics().error_bound

    assert ("easy", 0) == (answer.status, data.reads - len(session.plan.first_tables.targets))
    assert 0.1 / grid < error <= answer.error_bound
    assert error <= after
    assert after == pytest.approx(before + answer.error_bound, rel=1e-12)
    if repeated:
        assert (answer, after) == (session.answer(query), session.statistics().error_bound)


# -- certificates ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::onlineic.errors.UpdateFailedWarning")
@pytest.mark.parametrize("failing", [True, False])
def test_a_certificate_ends_with_the_first_update_that_fails_and_the_bound_stays_true(failing, monkeypatch):
    """Without what the rule would have learned the hard answers run out; what was tested keeps a bound."""
    domain, n = ic.Domain.of(a=8), 10**6
    counts = np.array([n // 2, n // 4, n // 8] + [n // 40] * 5)
    session = ic.OnlineIC(
        PrivateData(counts, domain),
        ic.Budget(4.0, 1e-6),
        certify=0.1,
        max_queries=500,
        purchases=ic.TestsOnly(),
        noise=SimulatedNoise(1),
    )
    before = session.statistics()
    if failing:

        def failed(*_):
            raise MemoryError

        monkeypatch.setattr(type(session.plan.update), "update", failed)
    generator, worst, states = np.random.default_rng(0), 0.0, []
    for _ in range(400):
        weights = np.concatenate([[1.0, 1.0], generator.integers(0, 257, 6) / 256])
        answer = session.answer(ic.dense(weights))
        if answer.status != "untested":
            worst = max(worst, abs(answer.value - float(weights @ counts) / n))
        states.append((session.statistics().update_failures > 0, session.statistics().certified))
    after = session.statistics()

    assert before.certified
    assert all(certified != failures for failures, certified in states)
    assert failing == (not after.certified) == (after.untested > 0)
    assert worst <= after.error_bound < 1
    assert before.error_bound <= after.error_bound
    if not failing:
        assert before.error_bound == after.error_bound


# -- batches and exhaustion --------------------------------------------------------------------------------


CHEAP = ic.where(a=ic.weights([0.5, 0.515625, 0.5, 0.5]))


def exhausted_but_for_a_cheap_one():
    """A session whose budget pays no whole query any more, but one of small sensitivity."""
    data = PrivateData(np.array([900, 50, 30, 20]), ic.Domain.of(a=4))
    session = ic.OnlineIC(
        data, GUMBEL, sparse="gumbel", release="answer", hard_answers=1, threshold=1e-4, exhausted="raise",
        noise=SimulatedNoise(5),
    )  # fmt: skip
    for kept in itertools.chain.from_iterable(itertools.combinations(range(4), size) for size in (1, 2, 3)):
        if session.statistics().hard_left == 0:
            return session
        session.answer(ic.where(a=ic.one_of(*kept)))
    raise AssertionError


@pytest.mark.parametrize("behind", [[], [CHEAP & CHEAP], [ic.marginal("a")]], ids=["last", "cheap", "table"])
def test_a_batch_answers_what_is_payable_before_it_raises_for_what_is_not(behind):
    """The answer is with the error and in the transcript, and asked again it is a repeat."""
    session, single = exhausted_but_for_a_cheap_one(), exhausted_but_for_a_cheap_one()
    length, dear = len(session.transcript), ic.where(a=ic.one_of(1, 3))
    with pytest.raises(SessionExhaustedError) as caught:
        session.answer_many([CHEAP, dear, *behind])
    (answer,) = caught.value.answers
    records = [one for one in session.transcript[length:] if isinstance(one, Easy | Hard)]
    again = session.answer(CHEAP)

    assert answer == single.answer(CHEAP)
    assert [CHEAP.bind(ic.Domain.of(a=4))] == [record.query for record in records]
    assert ("repeat", answer.value, answer.error_bound) == (again.status, again.value, again.error_bound)
    assert (1, 0) == (session.statistics().repeat, session.statistics().untested)
    with pytest.raises(SessionExhaustedError) as alone:
        single.answer(dear)
    assert () == alone.value.answers


def test_the_refusal_says_what_share_is_used_up_and_never_more_than_all():
    session = exhausted_but_for_a_cheap_one()
    stats_before = session.statistics()
    with pytest.raises(SessionExhaustedError, match=r"used up, by \d+ hard") as caught:
        session.answer(ic.where(a=ic.one_of(1, 3)))
    text = str(caught.value)

    assert f"{stats_before.spent:.1%} is used up, by {stats_before.hard} hard answers" in text
    assert stats_before.spent <= 1


# -- a ledger in memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_a_session_whose_ledger_fails_at_any_line_never_shows_more_spent_than_paid(failure, planned):
    data = PrivateData(np.array([900, 50, 30, 20]), ic.Domain.of(a=4))
    settings = {"release": "answer", "hard_answers": 2, "threshold": 1e-4, "sparse": "gumbel"}
    logging.getLogger("onlineic").setLevel(logging.CRITICAL)
    plan = planned(data, GUMBEL, **settings)
    for place in itertools.count():
        kept = MemoryLedger()
        session = ic.OnlineIC(data, GUMBEL, ledger=kept, noise=SimulatedNoise(1), **settings)
        with At({ledger_module.__file__}, failure(), place) as watch:
            for i in range(4):
                with contextlib.suppress(failure, SessionSealedError):
                    session.answer(ic.where(a=i))
        statistics = session.statistics()

        assert 0 <= statistics.spent <= 1
        assert charged(kept) == kept.spent <= plan.sparse.account().capacity
        if watch.seen < place:
            break
    logging.getLogger("onlineic").setLevel(logging.NOTSET)

    assert place > 50


# -- the ends of [0, 1] ------------------------------------------------------------------------------------


SESSIONS = {
    "pure": (PURE, {}),
    "gumbel": (GUMBEL, {}),
    "laplace": (PURE, {"sparse": "laplace"}),
    "free gaps": (PURE, {"release": "answer"}),
    "gumbel numbers": (GUMBEL, {"release": "answer", "sparse": "gumbel"}),
    "book": (ic.Budget(5.0), None),
}


def measured_tables(session):
    return any(isinstance(one.query, BoundMarginal) for one in hits(session))


ENDS = [
    ic.where(a=0),
    ic.where(b=0),
    ~ic.where(a=0),
    ic.where(a=ic.weights([0.3] * 3)),
    ic.where(),
    ic.where(a=ic.weights([0.3, 0.1, 0.6]), b=ic.weights([0.25, 0.7])),
    ic.where(a=1, b=0),
]
END_TABLES = [
    ic.marginal("a"),
    ic.marginal("b"),
    ic.marginal("a", "b"),
    ic.marginal("b", where=ic.where(a=0)),
]


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
def test_no_bound_reaches_beyond_the_ends_of_the_unit_interval(name, n):
    """One record, and noise of hundreds: the exact answer is a fraction all the same."""
    domain = ic.Domain.of(a=3, b=2)
    data = PrivateData(np.array([[n, 0], [0, 0], [0, 0]]), domain)
    budget, settings = SESSIONS[name]
    trivial, reached, hard = 1.0, 0, 0
    for seed in range(4):
        noise = SimulatedNoise(seed)
        if settings is None:
            session = ic.OnlineIC.textbook(data, epsilon=budget.epsilon, noise=noise, max_queries=50)
        else:
            session = ic.OnlineIC(
                data, budget, noise=noise, threshold=0.5, hard_answers=3, max_queries=50, **settings
            )
        most = 1.0
        for question in ENDS + END_TABLES * (name != "free gaps"):
            answer = session.answer(question)
            if answer.status == "untested":
                continue
            far = max(np.max(answer.value), 1.0 - np.min(answer.value))
            most, reached, hard = max(most, far), reached + (answer.error_bound == far), hard + answer.hard
            assert answer.error_bound <= far
        statistics = session.statistics()
        trivial = max(trivial, most)
        assert statistics.error_bound <= most or statistics.error_bound == math.inf
        assert (statistics.error_bound == math.inf) == (name == "book" and measured_tables(session))

    assert reached >= 4
    assert hard >= 4 or name == "book"


def test_a_repeat_that_was_rounded_from_farther_away_is_cut_too():
    session = ic.OnlineIC(
        ic.PrivateData([1, 0], ic.Domain.of(a=2)),
        ic.Budget(1.0, 1e-6),
        sparse="gumbel",
        release="answer",
        noise=SimulatedNoise(2),
    )
    session.answer(ic.dense(np.array([0.5, 0.0])))
    again = session.answer(ic.dense(np.array([0.5 * (1 + 0.6 * 2**-20), 0.0])))

    assert "repeat" == again.status
    assert max(again.value, 1.0 - again.value) == again.error_bound


@pytest.mark.parametrize("ask", ["joint_bounds", "snapshot"])
def test_answers_of_another_shape_than_their_questions_are_refused(ask):
    session = ic.OnlineIC(PrivateData([[100, 200], [300, 400]], ic.Domain.of(a=2, b=2)), PURE)
    asked = [ic.where(a=1), ic.marginal("a"), ic.marginal("a", "b")]
    number, line, table = session.answer_many(asked)

    assert 3 == len(getattr(session, ask)(asked, [number, line, table]))
    for given, place, said in (
        ([line, line, table], 0, r"shape \(\), .* got \(2,\)"),
        ([number, number, table], 1, r"shape \(2,\), .* got \(\)"),
        ([number, line, line], 2, r"shape \(2, 2\), .* got \(2,\)"),
    ):
        with pytest.raises(InvalidParameterError, match=rf"answers\[{place}\] must have {said}; give one"):
            getattr(session, ask)(asked, given)
