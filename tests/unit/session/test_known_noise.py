"""What the noise of the first tables bounds: which answers, at what share of beta, and from which tables."""

import itertools
import math
import pickle
import warnings
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError, WideBoundWarning
from onlineic.known_noise import Estimates, TableDesign
from onlineic.ledger import BoughtTables, MemoryLedger
from onlineic.noise import SimulatedNoise
from onlineic.noise.laws import DiscreteGaussian, DiscreteLaplace
from onlineic.plan import EASY_OR_HARD, KNOWN, TestsOnly
from onlineic.plan.demand import DemandPurchases
from onlineic.queries import Answer, Measurement, Queries, derived, marginal
from onlineic.session.answers import AnswerBook
from onlineic.session.belief import Belief
from onlineic.session.bounds import Bounds
from support.sessions import WIDE, WIDE_COUNTS, begun, hits, settled

N = int(WIDE_COUNTS.sum())
DATA = PrivateData(WIDE_COUNTS, WIDE)  # opens with a table of all cells, Laplace
FEW = PrivateData(WIDE_COUNTS // 100, WIDE)  # and this one is let start from pairs, Gaussian
BUDGET = ic.Budget(1.0, 1e-6)
SETTLED = {"purchases": settled(WIDE, FEW.n, BUDGET)}


def opened(data=DATA, seed=1, **settings):
    return begun(ic.OnlineIC(data, BUDGET, noise=SimulatedNoise(seed), **settings))


def first(session):
    return next(record for record in session.transcript if isinstance(record, BoughtTables))


def estimates(session, beta, n=N):
    """Return what the first tables of a session say, made anew from its public record: at half of this."""
    tables = session.plan.first_tables
    design = TableDesign(tables.targets, [float(scale) for scale in tables.scales], tables.pure)
    return Estimates(design, [one.values for one in first(session).measurements], n, beta / 2)


def around(answer, bracket):
    return max(0.0, float(np.max(answer.value - bracket[0])), float(np.max(bracket[1] - answer.value)))


QUERIES = [
    ic.where(a=1),
    ~ic.where(c=ic.between(3, 11)),
    ic.where(a=0, c=ic.between(2, 17)),
    ic.where(a=2, b=0, c=ic.between(0, 9)),
    ic.where(c=ic.one_of(1, 5, 6), b=1),
    marginal("a", "b"),
]


@pytest.mark.parametrize("beta", [0.05, 0.3])
@pytest.mark.parametrize("data", [DATA, FEW], ids=["cells", "pairs"])
def test_every_answer_states_the_least_of_its_own_test_and_of_the_noise_of_the_first_tables(beta, data):
    session = opened(data, beta=beta, **(SETTLED if data is FEW else {}))
    known = estimates(session, KNOWN * beta, data.n)
    easy = session.plan.sparse.easy_radius(EASY_OR_HARD * (1 - KNOWN) * beta)
    narrower = 0
    for query in QUERIES:
        answer = session.answer(query)
        bound = query.bind(WIDE)
        if isinstance(query, type(QUERIES[-1])):
            expected = around(answer, known.table_brackets(bound))
        else:
            expected = around(answer, known.bracket(bound))
        narrower += expected < easy

        assert "easy" == answer.status
        assert answer.error_bound == pytest.approx(min(expected, easy), rel=1e-12)

    assert narrower >= 4


def test_the_ways_in_which_one_answer_can_fail_and_all_of_them_share_beta_once():
    plan = opened(beta=0.2).plan

    assert plan.tested_beta + KNOWN * 0.2 == pytest.approx(0.2, rel=1e-15)
    assert 2 * EASY_OR_HARD == 1.0
    assert 0.2 == attrs.evolve(plan, purchases=TestsOnly()).tested_beta


def test_a_hard_answer_is_bounded_by_the_first_tables_where_that_is_less():
    """Of one attribute: its levels were bought with far less noise than the table of a hit has."""
    counts = np.random.default_rng(6).multinomial(
        3_000, np.random.default_rng(5).dirichlet(np.full(90, 0.02))
    )
    session = opened(PrivateData(counts, ic.Domain.of(x=range(90))), threshold=0.01)
    queries = [ic.where(x=ic.between(low, low + 9)) for low in range(0, 80, 3)]
    answers = [session.answer(query) for query in queries]
    record, answer = hits(session)[0], next(answer for answer in answers if answer.hard)
    known = estimates(session, KNOWN * 0.05, n=3_000).bracket(record.query)

    assert answer.error_bound == pytest.approx(around(answer, known), rel=1e-12)
    target, (_, weights) = record.measurement.target, derived(record.query, record.measurement)
    assert answer.error_bound < session.plan.sparse.sum_radius(target, weights, 0.05) / 2


DENSE = ic.dense(np.arange(240).reshape(WIDE.shape) % 2 * 1.0)
UNKNOWN = ic.where(a=ic.weights([0, 0.5, 1, 0.25]), c=ic.weights(np.arange(20) % 3 / 2))  # to tables of pairs


def outside_of_families():
    """A session of tables of pairs that tests nothing any more."""
    rule = settled(WIDE, FEW.n, BUDGET, threshold=1e-5, hard_answers=1)
    session = opened(FEW, threshold=1e-5, hard_answers=1, purchases=rule)
    for code in range(20):
        session.answer(ic.where(c=code))
    return session


def test_an_untested_answer_of_the_families_is_bounded_too_and_others_are_not():
    session = opened(threshold=1e-5, hard_answers=1)
    for code in range(20):
        session.answer(ic.where(c=code))
    known = estimates(session, KNOWN * 0.05)
    for query in (ic.where(a=1, b=2), DENSE):
        inside = session.answer(query)

        assert "untested" == inside.status
        assert inside.error_bound == pytest.approx(around(inside, known.bracket(query.bind(WIDE))), rel=1e-12)

    session = outside_of_families()
    outside = session.answer(UNKNOWN)

    assert ("untested", math.inf) == (outside.status, outside.error_bound)


def test_tables_bought_later_are_bounded_by_themselves_however_precise_they_are():
    """They are bought because of the noise of the first: a pooled estimate has no known law."""
    session = opened()
    plan, query, opening = session.plan, ic.where(a=1).bind(WIDE), first(session)
    later = tuple(
        Measurement(one.target, np.roll(one.values, 1), one.scale * 1e3) for one in opening.measurements
    )
    bounds = []
    for bought in ([opening.measurements], [opening.measurements, later]):
        ledger = MemoryLedger()
        ledger.claim("a test", plan.sparse.account(), private=False)
        for measurements in bought:
            part = 1 if measurements is opening.measurements else Fraction(1, 100)
            ledger.reserve(attrs.evolve(opening.charge, amount=opening.charge.amount * part))
            ledger.commit([BoughtTables(measurements, ledger.reserved)])
        book = AnswerBook(plan, WIDE, N, ledger, Belief(plan.update.init(WIDE)), private=False)
        while book.pending:
            book.take()
        answer = book.untested(query)
        bounds.append(around(answer, estimates(session, KNOWN * 0.05).bracket(query)) - answer.error_bound)

    assert [0.0, 0.0] == pytest.approx(bounds, abs=1e-15)


def test_hits_leave_the_bounds_of_the_first_tables_as_they_are():
    session = opened(threshold=1e-5, hard_answers=8)
    queries = [ic.where(c=code) for code in range(8)] + [ic.where(a=3, b=1)]
    answers = session.answer_many(queries)
    known = estimates(session, KNOWN * 0.05)
    most = [around(one, known.bracket(q.bind(WIDE))) for one, q in zip(answers, queries, strict=True)]

    assert len(hits(session)) >= 2
    assert all(one.error_bound <= bound * (1 + 1e-12) for one, bound in zip(answers, most, strict=True))


def test_statistics_print_the_family_and_sessions_without_first_tables_have_none():
    cells, pairs = opened().statistics().family, opened(FEW, **SETTLED).statistics().family
    a, b, c = 9, 5, 209  # intervals of 4, 3 and 20 codes but the whole

    assert "every query with weights in [0, 1] on the 240 cells" in str(cells)
    assert "products of any sets of labels, as cut there" in str(pairs)
    assert 0 == pairs.cells
    assert 12_599 == (1 + a) * (1 + b) * (1 + c) - 1 == cells.size  # of a table of all cells
    assert "12,599 conjunctions" in str(cells)
    assert {("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")} == set(pairs.sets)
    assert a + b + c < pairs.size <= a + b + c + a * b + a * c + b * c
    assert opened(release="answer").statistics().family is None


def test_the_bound_of_all_answers_is_the_largest_that_one_of_them_needs():
    session = opened()
    plan = session.plan
    known = estimates(session, KNOWN * 0.05)

    assert plan.error_bound == session.statistics().error_bound
    worst = 0.0
    for query in QUERIES[:4]:
        answer = session.answer(query)
        worst = max(worst, min(plan.error_bound, around(answer, known.bracket(query.bind(WIDE)))))

        assert session.statistics().error_bound == pytest.approx(worst, rel=1e-12)

    assert worst < plan.error_bound
    dense = around(session.answer(DENSE), known.bracket(DENSE.bind(WIDE)))
    assert session.statistics().error_bound == pytest.approx(max(worst, dense), rel=1e-12)


def test_the_bound_of_all_answers_is_the_tests_own_where_one_is_in_no_family():
    session = opened(FEW, **SETTLED)
    session.answer(UNKNOWN)

    assert session.statistics().error_bound >= session.plan.error_bound


# -- the standard error ------------------------------------------------------------------------------------


def test_answers_inside_the_families_carry_an_estimate_with_its_standard_error_and_others_none():
    session = opened(FEW, **SETTLED)
    query, turned = ic.where(a=1, b=2), ~ic.where(c=ic.between(3, 11))
    known = estimates(session, KNOWN * 0.05, FEW.n)
    sets = ic.where(a=ic.one_of(0, 2), b=1)
    for one in (query, turned, sets, query):  # the last is a repeat
        answer, (estimate, error) = session.answer(one), known.point(one.bind(WIDE))
        low, high = answer.interval(0.9)

        assert (estimate, error) == (answer.estimate, answer.standard_error)
        assert "gaussian" == answer.law
        assert (low, high) == pytest.approx((estimate - 1.6449 * error, estimate + 1.6449 * error), abs=1e-5)
        assert error < answer.error_bound
    for one in (ic.where(a=ic.weights([0, 0.5, 1, 0])), UNKNOWN, marginal("a")):
        answer = session.answer(one)

        assert (None, None) == (answer.estimate, answer.standard_error)
        assert np.array_equal(answer.interval(), answer.bracket)
        with pytest.raises(InvalidParameterError, match=r"confidence must be at most 0\.95"):
            answer.interval(0.99)


@pytest.mark.statistical
@pytest.mark.parametrize("data", [DATA, FEW], ids=["cells, Laplace", "pairs, Gaussian"])
def test_intervals_of_queries_that_were_fixed_before_hold_as_often_as_they_say(data):
    """A thousand starts, queries fixed before; a standard error a tenth too small or too large is found."""
    session = opened(data)
    tables, n = session.plan.first_tables, data.n
    design = TableDesign(tables.targets, [float(scale) for scale in tables.scales], tables.pure)
    counts = (WIDE_COUNTS if data is DATA else WIDE_COUNTS // 100).astype(float)
    axes = [tuple(axis for axis in range(3) if axis not in target.axes) for target in tables.targets]
    blocks = [t.measure(counts.sum(axis=rest)) for t, rest in zip(tables.targets, axes, strict=True)]
    queries = [
        ic.where(a=1).bind(WIDE),
        ic.where(c=ic.between(2, 9)).bind(WIDE),
        ic.where(a=ic.one_of(0, 2), b=1).bind(WIDE),
    ]
    truths = [float((query.weights() * counts).sum() / n) for query in queries]
    noise, scores = SimulatedNoise(7), []
    for _ in range(2000):
        values = []
        for exact, scale in zip(blocks, tables.scales, strict=True):
            law = DiscreteLaplace(scale) if tables.pure else DiscreteGaussian(int(scale))
            values.append((exact + law.draw(noise, len(exact))) / n)
        known = Estimates(design, values, n, 0.01)
        for query, truth in zip(queries, truths, strict=True):
            estimate, error = known.point(query)
            scores.append((estimate - truth) / error)
    variance = np.square(np.array(scores)).reshape(-1, 3).mean(axis=0)

    assert np.abs(variance - 1).max() < 0.17
    assert np.abs(np.mean(scores)) < 0.1


def outside(law, scale, weights, failing, size=40_000):
    """Return the shares of estimates, weighted sums of Laplace noise, whose intervals leave the truth out."""
    weights = np.array(weights) / N
    error = math.sqrt(2.0) * float(scale) * float(np.linalg.norm(weights))
    drawn = DiscreteLaplace(scale).draw(SimulatedNoise(3), size * len(weights)).reshape(size, -1) @ weights
    answer = Answer(0.5, 0.5 * N, "easy", 0.1, True, 0.5, error, n=N, law=law)
    ends = [answer.interval(1.0 - one) for one in failing]
    return [float(((drawn < low - 0.5) | (drawn > high - 0.5)).mean()) for low, high in ends]


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.9, 0.3, 0.3, -0.2], [0.5] * 12])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(30)])
def test_intervals_around_laplace_noise_fail_as_rarely_as_they_say(weights, scale):
    failing = np.array([0.3, 0.05, 0.01, 0.001])

    assert (outside("laplace", scale, weights, failing) < failing + 4.0 * np.sqrt(failing / 40_000)).all()


def test_intervals_around_laplace_noise_that_are_normal_ones_fail_more_often():
    found = np.array(outside("gaussian", Fraction(30), [1.0], [0.05, 0.001]))

    assert (found > [0.055, 0.006]).all()


def test_sums_of_laplace_noise_have_no_larger_quantiles_than_one_of_them_or_normal_noise():
    """By the characteristic function, of variances in all kinds of proportions."""
    times = np.pi / 60.0 * np.arange(1, 20_000)
    shares = [[1] * count for count in (1, 2, 3, 6, 30)] + [[1] + [part / 20] * 20 for part in (0.1, 0.5, 2)]
    for parts, confidence in itertools.product(shares, (0.5, 0.88, 0.908, 0.915, 0.95, 0.999)):
        squares = np.outer(np.array(parts) / np.sum(parts) / 2.0, times**2)
        _, reach = Answer(0.0, 0.0, "easy", 1.0, True, 0.0, 1e-3, law="laplace").interval(confidence)
        sums = np.exp(-np.log1p(squares).sum(axis=0)) * np.sin(times * reach * 1e3) / times
        inside = (reach * 1e3 + 2.0 * sums.sum()) / 60.0

        assert inside >= confidence - 1e-6


def test_an_estimate_outside_of_the_unit_interval_is_clipped_first():
    for estimate, expected in ((-0.01, 0.0), (1.01, 1.0)):
        low, high = Answer(0.0, 0.0, "easy", 0.1, True, estimate, 1e-4, n=N, law="laplace").interval()

        assert low <= expected <= high
        assert high > low


def test_answers_say_the_law_of_the_noise_that_their_estimate_is_made_of():
    answer = opened(DATA).answer(ic.where(a=1))

    assert "laplace" == answer.law == pickle.loads(pickle.dumps(answer)).law


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_answers_whose_bounds_were_looked_at_are_pickled_as_they_were(delta):
    domain = ic.Domain.of(a=range(8), b=["x", "y", "z"])
    data = PrivateData.from_counts({"a": range(8), "b": ["x", "y", "z", "x"] * 2}, [700] * 8, domain)
    session = ic.OnlineIC(data, ic.Budget(1.0, delta), noise=SimulatedNoise(1))
    answers = session.answer_many(
        Queries.bound(domain, [ic.where(a=code, b="x").bind(domain) for code in range(8)])
    )
    bounds = answers.bounds.tolist()
    again = pickle.loads(pickle.dumps(answers))

    assert (answers.values.tolist(), bounds) == (again.values.tolist(), again.bounds.tolist())
    assert bounds == [answer.error_bound for answer in again]


# -- the warning --------------------------------------------------------------------------------------------


def small(**settings):
    counts = np.array([[3, 1], [0, 6]])
    return ic.OnlineIC(
        PrivateData(counts, ic.Domain.of(a=2, b=2)), BUDGET, noise=SimulatedNoise(1), **settings
    )


def test_a_wide_bound_warns_once_a_session():
    session = small()
    answers = session.answer_many([ic.where(a=0), ic.where(b=0), ic.where(a=0, b=1)])
    with pytest.warns(WideBoundWarning, match="Said once a session") as caught:
        bounds = [answer.error_bound for answer in answers]

    assert 1 == len(caught)
    assert max(bounds) > 0.1


def test_a_narrow_bound_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", WideBoundWarning)
        assert opened().answer(ic.where(a=0)).error_bound < 0.1


@pytest.mark.parametrize("one_by_one", [True, False])
def test_no_bound_is_worked_out_to_see_whether_it_is_wide(one_by_one, monkeypatch):
    counts = np.random.default_rng(0).integers(0, 30, 1024)
    session = ic.OnlineIC(
        PrivateData(counts, ic.Domain.of(a=1024)), BUDGET, max_queries=1000, noise=SimulatedNoise(2)
    )
    stream = [ic.where(a=ic.between(code, code + 300)) for code in range(100)]
    session.answer(stream[0])
    assert session.statistics().threshold > 0.1
    monkeypatch.setattr(Estimates, "bracket", lambda *_: pytest.fail("a bound was worked out"))
    if one_by_one:
        answers = [session.answer(query) for query in stream[1:]]
    else:
        answers = session.answer_many(
            Queries.bound(session.domain, [one.bind(session.domain) for one in stream])
        )

    assert {"easy"} == {answer.status for answer in answers[1:]} - {"hard", "repeat"}


@pytest.mark.parametrize("looked", [lambda answers: answers[1].error_bound, lambda answers: answers.bounds])
def test_a_wide_bound_of_a_batch_warns_when_it_is_looked_at(looked):
    session = small()
    domain = session.domain
    answers = session.answer_many(
        Queries.bound(domain, [ic.where(a=0).bind(domain), ic.where(b=0).bind(domain)])
    )

    with pytest.warns(WideBoundWarning):
        looked(answers)


def test_an_infinite_bound_is_none_that_is_wide():
    outside = outside_of_families().answer(UNKNOWN)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WideBoundWarning)

        assert math.inf == outside.error_bound


def test_the_warning_as_an_error_stops_no_answer():
    with warnings.catch_warnings():
        warnings.simplefilter("error", WideBoundWarning)
        session = small()
        first_answer = session.answer(ic.where(a=0))

    assert first_answer.error_bound > 0.1
    assert ("repeat", first_answer.value) == (
        session.answer(ic.where(a=0)).status, session.answer(ic.where(a=0)).value,
    )  # fmt: skip


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_table_of_one_cell_is_bounded_by_what_is_public_alone(neighbours):
    """All records are in it: nothing is uncertain but their number, where that is private."""
    rows = {"ward": ["ER"] * 4_000, "age": [3] * 4_000}
    data = PrivateData.from_records(rows, ic.Domain.of(ward=["ER"], age=20), neighbours=neighbours)
    session = ic.OnlineIC(data, BUDGET, noise=SimulatedNoise(1))

    assert session.n_bound == pytest.approx(session.group_by("ward").error_bounds[0], abs=1e-9)
    assert (0 == session.n_bound) is (neighbours == "replace-one")


def test_every_instalment_takes_the_share_of_beta_of_its_number(monkeypatch):
    """The k-th has beta/(k (k + 1)): with the first one's share each, they would sum to more than beta."""
    taken, buy = [], Bounds.buy_instalment
    monkeypatch.setattr(
        Bounds,
        "buy_instalment",
        lambda self, before, *released: (taken.append(before), buy(self, before, *released)),
    )
    rule = DemandPurchases(rent=0, after=(1, 2, 3), parts=(Fraction(1, 4), Fraction(1, 2), Fraction(1)))
    rng = np.random.default_rng(1)
    rows = {name: rng.integers(0, 4, 2_000) for name in "abc"}
    data = PrivateData.from_records(rows, ic.Domain.of(a=4, b=4, c=4))
    session = ic.OnlineIC(data, BUDGET, purchases=rule, noise=SimulatedNoise(1))
    for code in range(4):
        for name in "abc":
            _ = session.answer(ic.where({name: code})).error_bound

    assert [0, 1, 2] == taken
