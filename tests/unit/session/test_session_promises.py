"""What a session pays, promises and remembers to the digit, with Gumbel tests and with pure ones alike."""

import math
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import TICK
from onlineic.data import PrivateData
from onlineic.ledger import BoughtTables, MemoryLedger
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.queries import Partition, derived, marginal
from onlineic.sparse import ExponentialSparse
from support.sessions import WIDE, WIDE_COUNTS, all_spent, begun, hits, reserved, settled, tests_alone

DOMAIN, COUNTS = WIDE, WIDE_COUNTS
N = 300_000
QUERY = ic.where(a=0).bind(DOMAIN)
BOXES = [ic.where(c=ic.between(low, 19), a=low % 4) for low in range(20)]
BOTH = pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "gumbel"])


def opened(counts=COUNTS, *, data=None, delta=0.0, epsilon=1.0, seed=1, **settings):
    settings = {"noise": SimulatedNoise(seed)} | settings
    data = data or PrivateData(counts, DOMAIN)
    return begun(ic.OnlineIC(data, ic.Budget(epsilon, delta), **settings))


@pytest.fixture
def loud(monkeypatch):
    """Every test at the threshold or above fires, and nothing released carries noise."""
    monkeypatch.setattr(SimulatedNoise, "words", lambda self, size: np.full(size, 2**64 - 1, np.uint64))
    for name in ("discrete_gaussian", "discrete_laplace", "geometric"):
        monkeypatch.setattr(SimulatedNoise, name, lambda self, scale, size: np.zeros(size, np.int64))


# -- what a pure session pays ------------------------------------------------------------------------------


def test_a_hit_that_the_budget_cannot_pay_together_with_its_threshold_noise_is_not_tested():
    """.8 for a hit and .5 for the threshold are more than an epsilon of 1."""
    sparse = ExponentialSparse(N, 1.0, 1, Fraction(2), Fraction(5, 2))
    data = PrivateData(COUNTS, DOMAIN)
    session = opened(data=data, sparse=sparse, release="answer")
    answers = session.answer_many([ic.where(a=0), ic.where(a=1)])

    assert (Fraction(1, 2), Fraction(4, 5)) == (sparse.start_charge().amount, sparse.price(QUERY).amount)
    assert ["untested"] * 2 == [answer.status for answer in answers]
    assert (0, 0, ()) == (session.statistics().hard_left, data.reads, session.transcript)


def test_hits_left_are_counted_behind_the_threshold_noise_that_is_still_to_be_paid():
    """A quarter for the threshold leaves three hits at a quarter each, and three are given."""
    sparse = ExponentialSparse(N, 1.0, 1, Fraction(4), Fraction(8))
    session = opened(sparse=sparse, release="answer")
    before = session.statistics().hard_left
    answers = session.answer_many([ic.where(a=a, c=c) for a in range(4) for c in range(20)])

    assert 3 == before == sum(answer.hard for answer in answers)
    assert 1 == session.statistics().spent


def test_a_dearer_question_behind_an_easy_cheap_one_tops_the_reservation_up_to_its_price_and_the_threshold():
    session = opened(sparse="exponential", release="answer", threshold=0.9, hard_answers=3)
    sparse = session.plan.sparse
    cheap, dear = ic.dense(np.indices(DOMAIN.shape)[2] / 19 / 16).bind(DOMAIN), ic.where(a=0).bind(DOMAIN)
    answers = [session.answer(query) for query in (cheap, dear)]
    prices = [sparse.price(query).amount for query in (cheap, dear)]

    assert ["easy", "easy"] == [answer.status for answer in answers]
    assert prices[0] < prices[1] < prices[0] + sparse.start_charge().amount
    assert [price + sparse.start_charge().amount for price in prices] == reserved(session)


def test_the_threshold_noise_of_a_run_is_drawn_once_for_all_its_tests_of_tables(monkeypatch):
    scales, method = [], SimulatedNoise.geometric

    def watched(self, scale, size):
        scales.append(scale)
        return method(self, scale, size)

    monkeypatch.setattr(SimulatedNoise, "geometric", watched)
    session = opened(threshold=0.9)
    answers = session.answer_many([marginal("a"), marginal("b"), ic.where(a=0), marginal("c")])

    assert ["easy"] * 4 == [answer.status for answer in answers]
    assert 1 == scales.count(session.plan.sparse.threshold_scale)


@pytest.mark.parametrize("questions", [[marginal("a"), marginal("b")], [ic.where(a=0), marginal("a", "b")]])
def test_the_threshold_noise_of_a_run_is_charged_once_with_its_first_hit(questions):
    session = opened(threshold=1e-6, hard_answers=4, prior=ic.Histogram(DOMAIN))
    session.answer_many(questions)
    sparse = session.plan.sparse
    price = sparse.price(Partition(DOMAIN, (0,), (np.arange(4),))).amount

    assert [price + sparse.start_charge().amount, price] == [record.charge.amount for record in hits(session)]


@BOTH
@pytest.mark.usefixtures("listening")
def test_first_tables_cost_at_least_what_their_noise_does(delta):
    """A record moves between two blocks of each: 2/scale of epsilon, or order/sigma^2 at the Renyi order."""
    session = opened(delta=delta, purchases=settled(DOMAIN, N, ic.Budget(1.0, delta)))
    bought, sparse = session.plan.first_tables, session.plan.sparse
    if delta:
        exact, unit = sum(sparse.order / scale**2 for scale in bought.scales), TICK
    else:
        exact, unit = sum(2 / scale for scale in bought.scales), 1

    assert (len(bought.targets) > 3, delta == 0.0) == (True, bought.pure)
    assert exact <= bought.cost * unit <= exact + 100 * TICK
    assert bought.cost == bought.charge.amount == all_spent(session) == session.transcript[1].charge.amount


@BOTH
@pytest.mark.usefixtures("listening")
def test_first_tables_are_reserved_read_drawn_and_recorded_in_this_order(delta, monkeypatch):
    events, drawn = [], "discrete_gaussian" if delta else "discrete_laplace"

    def watched(method):
        def watching(*arguments):
            events.append(method.__name__)
            return method(*arguments)

        return watching

    for owner, name in (
        (MemoryLedger, "reserve"),
        (PrivateData, "exact_counts"),
        (SimulatedNoise, drawn),
        (MemoryLedger, "commit"),
    ):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    session = opened(delta=delta, purchases=settled(DOMAIN, N, ic.Budget(1.0, delta)))
    (record,) = [record for record in session.transcript if isinstance(record, BoughtTables)]

    assert ["reserve", *["exact_counts", drawn] * len(record.measurements), "commit"] == events
    for one, scale in zip(record.measurements, session.plan.first_tables.scales, strict=True):
        deviation = float(scale) * (1.0 if delta else math.sqrt(2.0))
        assert deviation / N == pytest.approx(one.scale, rel=1e-12)


# -- what is hard ------------------------------------------------------------------------------------------


@BOTH
def test_a_table_with_one_cell_far_over_estimated_is_hard(delta):
    """Its other gaps are small and have the other sign."""
    truth = np.full(DOMAIN.shape, 1250)
    believed = np.full(DOMAIN.shape, 1.0)
    believed[0, 0, 0] = 100.0
    session = opened(truth, delta=delta, prior=ic.Histogram(DOMAIN, believed), threshold=0.1)
    gaps = truth.sum(axis=(0, 1)) / N - believed.sum(axis=(0, 1)) / believed.sum()

    assert gaps.max() < 0.02 < 0.25 < -gaps.min()
    assert "hard" == session.answer(marginal("c")).status


@BOTH
def test_a_table_is_tested_by_its_own_cells_and_not_by_what_its_condition_leaves_out(delta):
    truth, believed = np.full(DOMAIN.shape, 1250), np.full(DOMAIN.shape, 1.0)
    believed[:, 1:] = [[[0.1]], [[0.1]], [[0.1]], [[3.7]]]
    session = opened(truth, delta=delta, prior=ic.Histogram(DOMAIN, believed), threshold=0.1)

    assert ["easy", "hard"] == [
        session.answer(marginal("a", where=ic.where(b=b))).status for b in (0, ic.one_of(1, 2))
    ]


# -- bounds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "release"), [(0.0, "partition"), (1e-6, "partition"), (1e-6, "answer")], ids=str
)
def test_the_bound_of_all_hard_answers_takes_a_tenth_of_beta_for_all_that_are_payable(
    delta, release, monkeypatch
):
    """m = ceil(what is left for hits / price) of them share it, so that none is without its share."""
    tests_alone(monkeypatch)
    sparse = "gumbel" if delta else "exponential"
    session = opened(delta=delta, sparse=sparse, release=release, threshold=1e-5, hard_answers=3, beta=0.2)
    beta = session.plan.tested_beta
    query = next(query for query in BOXES if session.answer(query).hard)
    (record,) = hits(session)
    mechanism, target = session.plan.sparse, record.measurement.target
    left = Fraction(mechanism.account().capacity)
    left -= session.plan.first_tables.charge.amount if session.plan.first_tables is not None else 0
    answers = math.ceil(left / mechanism.price(target).amount)
    value, weights = derived(record.query, record.measurement)
    if release == "partition":
        moved = abs(session.hypothesis.evaluate(query.bind(DOMAIN)) - value)
        expected = moved + mechanism.sum_radius(target, weights, 0.1 * beta / answers)
    else:
        expected = mechanism.hard_radius(target, 0.1 * beta, answers)

    assert expected > session.plan.error_bound
    assert session.statistics().error_bound == pytest.approx(expected, rel=1e-12)


@BOTH
@pytest.mark.parametrize("release", ["partition", "answer"])
def test_the_bound_of_easy_answers_is_the_radius_of_nine_tenths_of_beta_over_all_queries(delta, release):
    plan = session_plan(DOMAIN, N, ic.Budget(1.0, delta), release=release, beta=0.2, max_queries=300)
    share = 1.0 if plan.first_tables is None else 0.7  # beside the bounds of the tables' noise
    easy = plan.sparse.easy_radius(0.9 * share * 0.2, 300)
    number = 0.0 if release == "partition" else plan.sparse.margins(300, 0.2, plan.hard_answers)[2]

    assert max(easy, number) + plan.steps == plan.error_bound


@BOTH
def test_the_bound_of_all_answers_ends_behind_max_queries(delta):
    session = opened(delta=delta, threshold=0.9, max_queries=3)
    bounds = []
    for a in range(4):
        session.answer(ic.where(a=a))
        bounds.append(session.statistics().error_bound)

    assert [True, True, True, False] == [math.isfinite(bound) for bound in bounds]


def test_the_theorem_s_bound_is_stamped_on_the_first_max_queries_answers_alone():
    session = ic.OnlineIC.textbook(
        PrivateData(COUNTS * 0 + 10**6, DOMAIN),
        epsilon=10.0,
        max_queries=3,
        noise=SimulatedNoise(1),
    )
    queries = [ic.where(a=ic.one_of(*pair)) for pair in ((0, 1), (0, 2), (0, 3))]
    answers = [session.answer(query) for query in (*queries, ic.where(a=0, b=0), ~queries[0])]
    theorem, own = session.plan.error_bound, session.plan.sparse.easy_radius(0.5 * 0.05)

    assert ["easy", "easy", "easy", "easy", "repeat"] == [answer.status for answer in answers]
    assert own < theorem < 0.5
    assert [theorem] * 3 + [own, theorem] == [answer.error_bound for answer in answers]


@BOTH
def test_a_repeat_that_was_rounded_from_farther_away_widens_the_bound_of_all_answers(delta):
    """On the grid of 2^-11 that so many records leave, both are a half."""
    session = opened(COUNTS << 22, delta=delta, threshold=0.3)
    bits = session.plan.sparse.grid_bits
    half = (np.indices(DOMAIN.shape)[0] > 1) * 0.5
    near, far = ic.dense(half), ic.dense(half * (1.0 + 0.6 * 2.0**-bits))
    first = session.answer(near)
    before = session.statistics().error_bound
    answer = session.answer(far)
    rounding = far.bind(DOMAIN, bits).rounding

    assert (0.0, "repeat") == (near.bind(DOMAIN, bits).rounding, answer.status)
    assert 2.0 ** -(bits + 3) < rounding
    assert answer.error_bound == pytest.approx(first.error_bound + rounding, rel=1e-12)
    assert session.statistics().error_bound == pytest.approx(before + rounding, rel=1e-12)


# -- memory ------------------------------------------------------------------------------------------------


def test_a_textbook_session_tests_again_what_it_answered_under_an_earlier_hypothesis():
    """The book asks again: numbers and tables, measured ones too."""
    session = ic.OnlineIC.textbook(
        PrivateData(COUNTS * 1000, DOMAIN), epsilon=10.0, max_queries=50, noise=SimulatedNoise(1), alpha=0.04
    )
    questions = [marginal("b"), ic.where(b=0, c=0), marginal("a", "c")]
    first = [session.answer(question).status for question in questions]
    again = [session.answer(question).status for question in questions]

    assert "hard" == first[-1]
    assert "repeat" not in first + again[:1]
    session.answer(ic.where(a=0))
    number = next(query for query in BOXES if session.answer(query).hard)
    assert "repeat" != session.answer(number).status


@BOTH
def test_a_default_session_repeats_what_it_answered_under_any_hypothesis(delta):
    session = opened(delta=delta, threshold=1e-5, hard_answers=3)
    questions = [marginal("b"), ic.where(b=0, c=0), marginal("a", "c")]
    first = [session.answer(question) for question in questions]
    again = [session.answer(question) for question in questions]

    assert ["repeat"] * 3 == [answer.status for answer in again]
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.value, other.value)
