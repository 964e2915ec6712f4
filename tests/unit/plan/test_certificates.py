"""Certified sessions, by tests or by measuring all questions: what is paid, promised and refused."""

import itertools
import math

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InfeasibleAccuracyError, InvalidParameterError, TooLargeError
from onlineic.ledger import Hard
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases, TestsOnly, session_plan, textbook_plan
from onlineic.queries.query import canonical
from onlineic.sparse import ExponentialSparse, UnconditionalNumbers
from support.noise import Silent, Wrapped

PAIRS = ic.Domain.of(a=12, b=8, c=5)
CELLS = ic.Domain.of(a=2, b=2, c=2)
LEVELS = ic.Domain.of(x=range(200))
BUDGETS = [ic.Budget(1.0, 1e-9), ic.Budget(1.0)]


def planned(domain=PAIRS, n=50_000, budget=BUDGETS[0], certify=0.3, **settings):
    return session_plan(domain, n, budget, certify=certify, **({"max_queries": 1000} | settings))


def dearest(sparse, domain):
    """The price of a query of one attribute that moves by a whole record on the finest grid."""
    size = max(domain.shape)
    weights = np.zeros(size)
    weights[0], weights[1] = 1.0, 0.5**sparse.grid_bits
    axis = domain.shape.index(size)
    return sparse.price(canonical(domain, False, {(axis,): weights}, sparse.grid_bits)).amount


# -- what is planned -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sparse", "budget"),
    [
        (sparse, budget)
        for sparse in (None, "gumbel", "exponential")
        for budget in BUDGETS
        if not (sparse == "gumbel" and budget.pure)  # Gumbel tests need delta > 0
    ],
)
@pytest.mark.parametrize("variant", ["tight", "book"])
@pytest.mark.parametrize(
    ("domain", "n", "certify"),
    [(PAIRS, 50_000, 0.3), (PAIRS, 10**6, 0.15), (CELLS, 50_000, 0.3), (LEVELS, 50_000, 0.4)],
)
def test_the_account_keeps_all_the_hits_of_t(domain, n, certify, variant, sparse, budget):
    rule = ic.MultiplicativeWeights(variant=variant)
    plan = planned(domain, n, budget, certify, update=rule, sparse=sparse)
    account, start = plan.sparse.account(), plan.sparse.start_charge()
    kept = account.capacity - (start.amount if start is not None else 0)
    steps = (1 if variant == "tight" else 8) * math.log(domain.size) / (2 * certify**2)

    assert (rule, TestsOnly()) == (plan.update, plan.purchases)
    assert math.floor(steps) == plan.hard_answers
    assert plan.hard_answers * dearest(plan.sparse, domain) <= kept
    assert (True, None, certify) == (plan.certified, plan.next_share, plan.alpha)
    hit, miss, number = plan.sparse.margins(plan.max_queries, plan.beta, plan.hard_answers)
    threshold = plan.sparse.threshold / (n << plan.sparse.grid_bits)
    assert number <= certify < certify + 0.5 / n + hit <= threshold + 2 / n
    assert plan.error_bound == pytest.approx(threshold + miss, rel=1e-12)


def test_an_infeasible_certificate_is_refused_and_the_least_that_is_named_is_given():
    with pytest.raises(InfeasibleAccuracyError, match=r"certify must be >= 0\.\d+ at n=50000") as refused:
        planned(certify=0.001)
    least = float(str(refused.value).split(">= ")[1].split(" at")[0])
    tight = planned(certify=least)

    assert (True, least) == (tight.certified, tight.alpha)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"update": ic.Perceptron(), "domain": CELLS},
        {"update": ic.Median(variant="dimension"), "domain": ic.Domain.of(a=2), "n": 10**6},
        {"sparse": "laplace", "n": 10**6},
        {"prior": ic.Histogram(PAIRS)},
    ],
)
def test_a_certified_session_buys_nothing_without_a_test_whether_that_is_said_or_not(settings):
    plan = planned(**settings)

    assert (TestsOnly(), True) == (plan.purchases, plan.certified)
    assert plan == planned(**settings, purchases=ic.TestsOnly())


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"hard_answers": 3}, "certify must be None with hard_answers"),
        ({"threshold": 0.2}, "certify must be None with hard_answers or threshold"),
        ({"release": "partition"}, "release must be 'answer' with certify"),
        ({"certify": 0.0}, "certify must be"),
        ({"certify": 1.0}, "certify must be"),
        ({"certify": math.nan}, "certify must be"),
        ({"update": ic.MaximumEntropy()}, "no proven T"),
        ({"update": ic.MultiplicativeWeights(rate=0.5)}, "no proven T"),
        ({"purchases": DemandPurchases()}, "purchases must be None or TestsOnly with certify"),
    ],
)
def test_what_cannot_be_certified_is_refused_by_name(settings, named):
    with pytest.raises(InvalidParameterError, match=named):
        planned(**settings)


# -- what happens --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [ic.Budget(2.0, 1e-9), ic.Budget(2.0)], ids=repr)
def test_as_many_hits_as_are_promised_are_paid_with_the_dearest_questions(budget):
    """Every test fires: c different dense questions on the finest grid are measured, one after the other."""
    plan = planned(CELLS, 50_000, budget, 0.3, max_queries=200)
    fires = Silent(2**64 - 1) if not isinstance(plan.sparse, ExponentialSparse) else Firing(1)
    counts = np.full((2, 2, 2), 6_250)
    session = ic.OnlineIC(ic.PrivateData(counts, CELLS), budget, certify=0.3, max_queries=200, noise=fires)
    fine = 0.5**plan.sparse.grid_bits
    statuses = []
    for number in range(1, plan.hard_answers + 1):
        weights = np.array([1.0, fine * (2 * number + 1), 0, 0.5, 0.25, 0, 1, 0]).reshape(2, 2, 2)
        statuses.append(session.answer(ic.dense(weights)).status)

    assert ["hard"] * plan.hard_answers == statuses
    assert session.statistics().spent <= 1.0


class Firing(Wrapped):
    """Test noise so large that each test fires; all else as simulated."""

    def geometric(self, scale, size):
        return np.full(size, 2**40, np.int64) if self.kept else self.keep(size)

    kept = False

    def keep(self, size):
        self.kept = True
        return np.zeros(size, np.int64)


def parity(n=80_000):
    """Three binary attributes of which each pair is uniform, and all three have an even sum."""
    counts = np.zeros((2, 2, 2), np.int64)
    for cell in itertools.product((0, 1), repeat=3):
        counts[cell] = n // 4 if sum(cell) % 2 == 0 else 0
    return ic.PrivateData(counts, CELLS)


EVEN = ic.dense(np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]))


@pytest.mark.parametrize("budget", [ic.Budget(2.0, 1e-9), ic.Budget(4.0)], ids=repr)
def test_hard_answers_are_the_numbers_and_the_bound_of_all_answers_covers_them(budget):
    session = ic.OnlineIC(parity(), budget, certify=0.2, max_queries=50, noise=SimulatedNoise(1))
    session.answer(ic.where(a=0))
    answer = session.answer(EVEN)
    number = next(record.measurement for record in session.transcript if isinstance(record, Hard))

    assert "hard" == answer.status
    assert answer.value == number.values[0]
    assert abs(answer.value - 1.0) <= min(answer.error_bound, session.statistics().error_bound)
    assert session.statistics().certified


def test_a_number_that_agrees_with_the_hypothesis_is_handed_out_as_it_was_measured():
    """A session without a certificate hands out the fit there: the certificate does not hold its distance."""

    class Fires(Wrapped):
        def words(self, size):
            return np.full(size, 2**64 - 1, np.uint64)

    session = ic.OnlineIC(
        ic.PrivateData(np.full((2, 2, 2), 11_000), CELLS),
        ic.Budget(2.0, 1e-9),
        certify=0.2,
        max_queries=50,
        sparse="gumbel",
        noise=Fires(3),
    )
    tested = session.hypothesis.evaluate(ic.where(a=1, b=1, c=1).bind(CELLS))
    answer = session.answer(ic.where(a=1, b=1, c=1))
    number = next(record.measurement for record in session.transcript if isinstance(record, Hard))

    assert "hard" == answer.status
    assert abs(tested - number.values[0]) <= 3.0 * number.scale
    assert answer.value == number.values[0]


def test_a_certificate_ends_where_a_cross_table_is_measured():
    data, settings = parity(), {"certify": 0.2, "max_queries": 50, "sparse": "gumbel"}
    session = ic.OnlineIC(data, ic.Budget(2.0, 1e-9), **settings, noise=Silent(2**64 - 1))
    before = session.statistics()
    session.answer(ic.marginal("a", "b"))
    after = session.statistics()

    assert (True, False) == (before.certified, after.certified)
    assert math.inf == after.error_bound


@pytest.mark.filterwarnings("ignore::onlineic.errors.VacuousPromiseWarning")
def test_an_easy_cross_table_does_not_make_the_next_hit_dearer():
    """Its reservation stands, and a hit uses up all of it: less is set aside for single queries."""
    noise = Silent(0)  # no test fires
    data = ic.PrivateData(np.full(PAIRS.shape, 1000), PAIRS)
    session = ic.OnlineIC(
        data,
        BUDGETS[0],
        certify=0.3,
        max_queries=1000,
        sparse="gumbel",
        purchases=ic.TestsOnly(),
        noise=noise,
    )
    left = session.statistics().hard_left

    assert session.answer(ic.marginal("a", "b")).status == "easy"
    noise.word = 2**64 - 1  # every test fires
    assert session.answer(ic.where(a=0)).hard
    (hit,) = (record for record in session.transcript if isinstance(record, Hard))
    assert hit.charge.amount <= dearest(session.plan.sparse, PAIRS)
    assert session.statistics().hard_left == left - 1
    # a cross table still pays its own price, and batches pay what one at a time do
    noise.word = 0
    session.answer(ic.marginal("a", "c"))
    noise.word = 2**64 - 1
    assert [answer.hard for answer in session.answer_many([ic.where(a=1), ic.where(a=2)])] == [True] * 2
    assert session.statistics().hard_left == left - 3


# -- few questions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("questions", [1, 2, 3, 10])
def test_of_few_questions_each_is_measured_and_paid_and_the_bound_covers_all(questions, budget):
    domain = ic.Domain.of(a=74, b=16, c=5, d=2, e=2)
    data = ic.PrivateData(np.full(domain.shape, 2), domain)
    session = ic.OnlineIC(data, budget, certify=0.3, questions=questions, noise=SimulatedNoise(1))
    plan = session.plan
    asked = [
        ic.where(a=ic.between(0, 30 + place)) & ic.where(b=ic.between(1, place + 1))
        for place in range(questions + 1)
    ]
    answers = session.answer_many(asked)
    truths = [(31 + place) / 74 * (place + 1) / 16 for place in range(questions)]

    assert isinstance(plan.sparse, UnconditionalNumbers)
    assert (True, None, questions) == (plan.certified, plan.next_share, plan.hard_answers)
    assert questions * plan.hit_price <= plan.sparse.account().capacity
    assert plan.error_bound <= 0.3
    assert ["hard"] * questions + ["untested"] == [answer.status for answer in answers]
    for answer, truth in zip(answers, truths, strict=False):
        assert abs(answer.value - truth) <= plan.error_bound


def test_a_bound_that_numbers_cannot_keep_is_certified_by_tests():
    numbers = planned(ic.Domain.of(a=74, b=16, c=20), 48_842, certify=0.3, questions=10)
    by_tests = planned(ic.Domain.of(a=74, b=16, c=20), 48_842, certify=0.3, questions=10, release="answer")

    assert isinstance(numbers.sparse, UnconditionalNumbers)
    assert not isinstance(by_tests.sparse, UnconditionalNumbers)
    assert by_tests.certified
    with pytest.raises(InfeasibleAccuracyError, match="certify must be >="):
        planned(ic.Domain.of(a=74, b=16, c=20), 48_842, certify=1e-4, questions=10)
    assert by_tests == planned(
        ic.Domain.of(a=74, b=16, c=20), 48_842, certify=0.3, questions=10, purchases=ic.TestsOnly()
    )


# -- the textbook's own parameters ---------------------------------------------------------


@pytest.mark.parametrize(("cells", "epsilon"), [(4, 10.0), (8, 1.0)])
def test_the_median_takes_more_records_wherever_it_takes_fewer(cells, epsilon):
    """Its net grows as alpha falls: more records than it can use leave alpha where the net can be held."""
    domain = ic.Domain.of(x=cells)
    plans = [
        textbook_plan(domain, n, ic.Budget(epsilon), ic.Median(), max_queries=100)
        for n in (10_000, 100_000, 1_000_000, 10**8)
    ]

    alphas = [plan.alpha for plan in plans]
    assert alphas[0] > alphas[-1]
    assert all(after <= 1.01 * before for before, after in itertools.pairwise(alphas))
    for plan in plans:
        assert plan.hard_answers >= math.floor(plan.update.exact_update_bound(domain, plan.alpha))
        assert plan.error_bound >= plan.alpha


def test_an_alpha_that_the_median_cannot_be_held_at_is_refused_if_it_was_wished_for():
    with pytest.raises(TooLargeError, match="take a larger alpha"):
        textbook_plan(ic.Domain.of(x=8), 10**8, ic.Budget(1.0), ic.Median(), max_queries=100, alpha=0.001)
    with pytest.raises(TooLargeError, match="fewer cells"):
        textbook_plan(ic.Domain.of(x=64), 10**8, ic.Budget(1.0), ic.Median(), max_queries=10**6)


# -- a rule of one's own -------------------------------------------------------------------


@attrs.frozen
class Promising(ic.UpdateRule):
    """Tells this T(alpha), of every alpha below `until`."""

    told: object
    until: float = math.inf

    def init(self, domain, prior=None):
        return ic.Histogram(domain)

    def update(self, hypothesis, measurements, alpha):
        return hypothesis

    def update_bound(self, domain, alpha):
        return self.told if alpha < self.until else 3


@pytest.mark.parametrize("told", [-3, math.nan, -math.inf, np.int64(-1), "3", True, [3]], ids=repr)
def test_what_is_no_bound_on_updates_is_refused_by_name(told):
    domain, said = ic.Domain.of(x=20), r"update_bound must return a number >= 0, got .* at alpha="
    for rule in (Promising(told), Promising(told, 0.4)):
        with pytest.raises(InvalidParameterError, match=said):
            textbook_plan(domain, 10**6, ic.Budget(1.0), rule)
        with pytest.raises(InvalidParameterError, match=said):
            session_plan(domain, 10**6, ic.Budget(1.0, 1e-9), update=rule, certify=0.3)

    assert not session_plan(domain, 10**6, ic.Budget(1.0, 1e-9), update=Promising(told)).certified


@pytest.mark.parametrize("told", [math.inf, 10**400, None])
def test_a_bound_that_no_budget_pays_is_none(told):
    domain, rule = ic.Domain.of(x=20), Promising(told, 0.4)

    assert 0.4 <= textbook_plan(domain, 10**6, ic.Budget(1.0), rule).alpha < 0.41
    with pytest.raises(InfeasibleAccuracyError, match=r"certify must be >= 0\.4"):
        session_plan(domain, 10**6, ic.Budget(1.0, 1e-9), update=rule, certify=0.3)
