"""Certified sessions that open with tables, or measure all questions: what is paid, promised and refused."""

import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
import onlineic.session.session as session_module
from onlineic.errors import InfeasibleAccuracyError, InvalidParameterError, TooLargeError
from onlineic.ledger import Hard
from onlineic.noise import SimulatedNoise
from onlineic.plan import ALL_HARD, KNOWN, session_plan, textbook_plan
from onlineic.queries.query import canonical
from onlineic.sparse import ExponentialSparse, UnconditionalNumbers
from onlineic.updates import FittedStart
from support.cores import replanned
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


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("sparse", [None, "gumbel", "exponential"])
@pytest.mark.parametrize("variant", ["tight", "book"])
@pytest.mark.parametrize(
    ("domain", "n", "certify"),
    [(PAIRS, 50_000, 0.3), (PAIRS, 10**6, 0.15), (CELLS, 50_000, 0.3), (LEVELS, 50_000, 0.4)],
)
def test_the_account_keeps_all_the_hits_of_t_beside_the_opening(domain, n, certify, variant, sparse, budget):
    if sparse == "gumbel" and budget.pure:
        pytest.skip("Gumbel tests need delta > 0")
    rule = ic.MultiplicativeWeights(variant=variant)
    plan = planned(domain, n, budget, certify, update=rule, sparse=sparse, first_tables=True)
    account, start = plan.sparse.account(), plan.sparse.start_charge()
    kept = account.capacity - plan.first_tables.charge.amount - (start.amount if start is not None else 0)
    steps = (1 if variant == "tight" else 8) * math.log(domain.size / plan.update.uniform) / (2 * certify**2)

    assert plan.update == FittedStart(
        rule, len(plan.first_tables.targets), plan.update.misfit, plan.update.uniform
    )
    assert math.floor(steps) == plan.hard_answers
    assert plan.hard_answers * dearest(plan.sparse, domain) <= kept
    assert (True, None, certify) == (plan.certified, plan.next_share, plan.alpha)
    hit, miss, number = plan.sparse.margins(plan.max_queries, (1 - KNOWN) * plan.beta, plan.hard_answers)
    threshold = plan.sparse.threshold / (n << plan.sparse.grid_bits)
    assert number <= certify < certify + 0.5 / n + hit <= threshold + 2 / n
    assert plan.error_bound == pytest.approx(threshold + miss, rel=1e-12)


def test_tables_widen_the_certificate_by_six_tenths_at_most_and_never_make_it_trivial():
    for budget, certify in itertools.product(BUDGETS, (0.2, 0.3, 0.4)):
        plan, alone = (
            planned(budget=budget, certify=certify),
            planned(budget=budget, certify=certify, first_tables=False),
        )
        if plan.first_tables is None:
            assert alone == plan
        assert alone.error_bound <= plan.error_bound <= min(1.6 * alone.error_bound, 0.5)
        assert (None, alone.certified) == (alone.first_tables, True)


def test_a_certificate_that_tables_would_spoil_is_given_without_them_and_an_infeasible_one_refused():
    with pytest.raises(InfeasibleAccuracyError, match=r"certify must be >= 0\.\d+ at n=50000") as refused:
        planned(certify=0.001)
    least = float(str(refused.value).split(">= ")[1].split(" at")[0])
    tight = planned(certify=least)

    assert (None, True, least) == (tight.first_tables, tight.certified, tight.alpha)
    with pytest.raises(InfeasibleAccuracyError, match="certify must leave a budget for first tables"):
        planned(certify=least, first_tables=True)
    assert planned(certify=0.3, first_tables=True).first_tables is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"update": ic.Perceptron(), "domain": CELLS},
        {"update": ic.Median(variant="dimension"), "domain": ic.Domain.of(a=2), "n": 10**6},
        {"sparse": "laplace", "n": 10**6},
        {"prior": ic.Histogram(PAIRS)},
        {"first_tables": False},
    ],
)
def test_other_rules_mechanisms_and_starts_are_certified_as_they_were(settings):
    plan = planned(**settings)

    assert (None, True) == (plan.first_tables, plan.certified)
    assert not isinstance(plan.update, FittedStart)


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
        ({"update": ic.MultiplicativeWeights(rate=0.5), "first_tables": True}, "no proven T"),
        ({"update": ic.Perceptron(), "domain": CELLS, "first_tables": True}, "of which nothing is proven"),
        ({"prior": ic.Histogram(PAIRS), "first_tables": True}, "prior must be None with first_tables"),
        ({"sparse": "laplace", "first_tables": True}, "sparse must be None"),
    ],
)
def test_what_cannot_be_certified_is_refused_by_name(settings, named):
    with pytest.raises(InvalidParameterError, match=named):
        planned(**settings)


# -- what happens --------------------------------------------------------------------------------------------


class Hostile(Silent):
    """Noise that puts the opening as far from one cell as it can, and is silent afterwards."""

    def __init__(self, cell, word=0):
        super().__init__(word)
        self.cell, self.tables = cell, 1

    def discrete_laplace(self, scale, size):
        if not self.tables:
            return np.zeros(size, np.int64)
        self.tables -= 1
        drawn = np.full(size, 50_000, np.int64)
        drawn[self.cell] = -500_000
        return drawn


def attacked(plan, noise, counts, domain):
    """Hard and untested answers that an analyst brings about who asks for what the hypothesis knows least."""
    data = ic.PrivateData(counts, domain)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(session_module, "session_plan", lambda *_, **__: plan)
        session = ic.OnlineIC(data, ic.Budget(8.0), noise=noise)
    truth = counts / counts.sum()
    untested = 0
    for number in range(400):  # a little less of it every time: else it is a repeat
        answer = session.answer(ic.dense(np.where(truth > 0, 1.0 - number / 4096, 0.0)))
        untested += answer.status == "untested"
        if not answer.hard:
            break
    return session, untested


def test_a_hostile_analyst_behind_a_hostile_opening_does_not_use_up_the_hard_answers():
    """All records are in the one cell that noise has emptied: the worst truth. Planted: no mixture."""
    counts = np.zeros((2, 2, 2), np.int64)
    counts[0, 0, 0] = 50_000
    plan = session_plan(CELLS, 50_000, ic.Budget(8.0), certify=0.2, max_queries=500)
    session, untested = attacked(plan, Hostile(0), counts, CELLS)
    stats = session.statistics()

    assert plan.first_tables.pure
    assert 1 == len(plan.first_tables.targets)
    assert 5 < stats.hard <= plan.hard_answers
    assert (0, True) == (untested, stats.certified)
    # without the mixture the same analyst needs more than is paid for
    bare = attrs.evolve(plan, update=attrs.evolve(plan.update, uniform=0.0))
    broken, _ = attacked(bare, Hostile(0), counts, CELLS)
    assert broken.statistics().hard > 2 * stats.hard


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
    """Tables of pairs say nothing of a parity: it is hard, and its number errs by more than the tables do."""
    data = parity()
    pairs = ic.Domain.of(a=2, b=2, c=2)
    plan = session_plan(pairs, data.n, budget, certify=0.2, max_queries=50)
    tables = plan.first_tables
    if len(tables.targets) == 1:  # all cells were bought, and nothing is hard: one axis of them instead
        one = attrs.evolve(tables, targets=(tables.targets[0].__class__(CELLS, (0,), (np.arange(2),)),))
        plan = replanned(plan, first=one)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(session_module, "session_plan", lambda *_, **__: plan)
        session = ic.OnlineIC(data, budget, noise=SimulatedNoise(1))
    session.answer(ic.where(a=0))
    easy = session.statistics().error_bound
    answer = session.answer(EVEN)
    number = next(record.measurement for record in session.transcript if isinstance(record, Hard))
    all_at_once = plan.sparse.hard_radius(
        number.target, ALL_HARD * plan.tested_beta, plan.hard_answers, tests=50
    )

    assert "hard" == answer.status
    assert answer.value == number.values[0]
    assert abs(answer.value - 1.0) <= min(answer.error_bound, session.statistics().error_bound)
    assert session.statistics().error_bound >= min(all_at_once, 0.5)
    assert session.statistics().error_bound >= easy
    assert session.statistics().certified


def test_a_number_that_agrees_with_the_hypothesis_is_handed_out_as_it_was_measured():
    """A session without a certificate hands out the fit there: the certificate does not hold its distance."""

    class Fires(Wrapped):
        def words(self, size):
            return np.full(size, 2**64 - 1, np.uint64)

    counts = np.full((2, 2, 2), 11_000)
    counts[1, 1, 1] = 3
    session = ic.OnlineIC(
        ic.PrivateData(counts, CELLS),
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


def test_the_certificate_of_a_session_that_opens_with_tables_ends_where_a_cross_table_is_measured():
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
        data, BUDGETS[0], certify=0.3, max_queries=1000, sparse="gumbel", first_tables=False, noise=noise
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
    assert Fraction(0) < by_tests.first_tables.charge.amount


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
