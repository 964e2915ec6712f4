"""The rules of the book in practical sessions: steps as long as was measured, a start from first tables."""

import itertools
import math

import numpy as np
import pytest

import onlineic as ic
from onlineic.errors import InvalidParameterError
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.queries import Measurement, Partition
from onlineic.session import replay
from onlineic.updates import FittedAt, FittedStart, MeasuredSteps, MeasuredWeights
from support.noise import Silent
from support.sessions import all_spent, settled

DOMAIN = ic.Domain.of(a=6, b=5)
RULES = [
    ic.MultiplicativeWeights(),
    ic.MultiplicativeWeights(variant="book"),
    ic.Perceptron(),
    ic.Perceptron(variant="book"),
]
WHOLE = Partition(DOMAIN, (0, 1), (np.arange(6), np.arange(5)))
APPROXIMATE = ic.Budget(1.0, 1e-6)


def measured(query, value, scale=0.0):
    return (Measurement(query.bind(DOMAIN), np.array([value]), scale),)


def table(seed, n=20_000):
    generator = np.random.default_rng(seed)
    return ic.PrivateData(generator.multinomial(n, generator.dirichlet(np.full(30, 0.3))), DOMAIN)


def coins(p, q):
    return sum(x * math.log(x / y) for x, y in ((p, q), (1 - p, 1 - q)) if x > 0)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("value", [0.02, 0.1, 0.5, 0.97])
@pytest.mark.parametrize(
    "query", [ic.where(a=1), ic.where(a=ic.between(1, 4)), ~ic.where(b=2), ic.dense(np.arange(30) / 29)]
)
def test_a_step_ends_where_was_measured(query, rule, value):
    steps, bound = MeasuredSteps(rule), query.bind(DOMAIN)
    before = steps.init(DOMAIN)
    after = steps.update(before, measured(query, value), 123.0)

    assert abs(value - after.evaluate(bound)) <= 0.02 * abs(value - before.evaluate(bound)) + 1e-12


def test_a_step_is_shorter_by_the_noise_that_is_left_out_and_none_where_nothing_remains():
    query = ic.where(a=0)
    steps = MeasuredSteps(ic.MultiplicativeWeights(), left_out=2.0)
    start = steps.init(DOMAIN)

    assert 1 / 6 == pytest.approx(start.evaluate(query.bind(DOMAIN)))
    assert start is steps.update(start, measured(query, 1 / 6 + 0.0999, scale=0.05), 0.0)
    after = steps.update(start, measured(query, 1 / 6 + 0.3, scale=0.05), 0.0)
    assert 1 / 6 + 0.2 == pytest.approx(after.evaluate(query.bind(DOMAIN)), abs=0.005)


@pytest.mark.parametrize("value", [-0.4, 0.0, 1.0, 1.7])
def test_a_number_at_an_end_leaves_weights_that_come_back(value):
    query = ic.where(a=0)
    steps = MeasuredSteps(ic.MultiplicativeWeights())
    far = steps.update(steps.init(DOMAIN), measured(query, value, scale=0.01), 0.0)
    back = steps.update(far, measured(query, 0.3, scale=0.01), 0.0)

    assert min(abs(far.evaluate(query.bind(DOMAIN)) - end) for end in (0.01, 0.99)) < 0.02
    assert 0.3 == pytest.approx(back.evaluate(query.bind(DOMAIN)), abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_the_divergence_falls_by_what_the_coins_of_the_query_lose(seed):
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet(np.full(30, 0.5)).reshape(6, 5)
    query = ic.dense(np.round(generator.random(30)))
    bound = query.bind(DOMAIN)
    before = ic.Histogram(DOMAIN, generator.dirichlet(np.full(30, 2.0)))
    value = float(generator.random())
    after = MeasuredSteps(ic.MultiplicativeWeights()).update(before, measured(query, value), 0.0)
    exact = ic.Histogram(DOMAIN, truth).evaluate(bound)

    lost = (truth * np.log(after.probabilities() / before.probabilities())).sum()
    assert lost == pytest.approx(
        coins(exact, before.evaluate(bound)) - coins(exact, after.evaluate(bound)), abs=1e-9
    )


@pytest.mark.parametrize("variant", ["book", "centred"])
def test_the_distance_falls_by_what_the_squared_gap_loses(variant):
    truth = table(1).exact_counts(WHOLE) / 20_000
    query = ic.where(a=ic.between(0, 2))
    bound, rule = query.bind(DOMAIN), ic.Perceptron(variant=variant)
    before = rule.init(DOMAIN)
    after = MeasuredSteps(rule).update(before, measured(query, 0.7), 0.0)
    g = bound.weights().ravel() - (0.5 if variant == "centred" else 0.0)
    exact = float(bound.weights().ravel() @ truth)

    def squared(held):
        return float(((truth - held.cells().ravel()) ** 2).sum())

    gained = (exact - before.evaluate(bound)) ** 2 - (exact - after.evaluate(bound)) ** 2
    assert squared(before) - squared(after) == pytest.approx(gained / (g @ g), abs=1e-12)


def test_practical_plans_take_measured_steps_and_the_others_those_of_the_book():
    def rule_of(update, **settings):
        return session_plan(DOMAIN, 20_000, APPROXIMATE, update=update, **settings).update

    weights, given = ic.MultiplicativeWeights(), ic.MultiplicativeWeights(rate=0.3)

    assert MeasuredSteps(weights) == rule_of(weights)
    assert MeasuredSteps(ic.Perceptron()) == rule_of(ic.Perceptron(), hard_answers=7)
    assert MeasuredSteps(weights, 3.0) == rule_of(weights, prior=ic.Histogram(DOMAIN))
    assert (given, weights) == (rule_of(given), rule_of(weights, certify=0.4, purchases=ic.TestsOnly()))
    assert MeasuredWeights() == rule_of(MeasuredWeights())


@pytest.mark.parametrize(("cells", "c", "size"), [(2, 20, 2**20 - 1), (2, 8, 255), (4, 20, 182), (64, 30, 4)])
def test_the_median_takes_the_finest_net_that_can_be_listed_and_its_hard_answers_tell_apart(cells, c, size):
    plan = session_plan(
        ic.Domain.of(x=cells), 10**7, APPROXIMATE, update=ic.Median(), hard_answers=c, max_queries=100
    )

    assert size == plan.update.size
    assert math.log2(math.comb(cells + size - 1, size)) <= min(c, 20)


@pytest.mark.parametrize("rule", [*RULES, MeasuredWeights()], ids=repr)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_any_rule_starts_from_first_tables_that_its_session_pays_for(rule, delta):
    data = table(2)
    session = ic.OnlineIC(
        data,
        ic.Budget(1.0, delta),
        update=rule,
        purchases=settled(DOMAIN, data.n, ic.Budget(1.0, delta)),
        noise=SimulatedNoise(3),
        max_queries=50,
    )
    opening = session.plan.first_tables.charge.amount
    start = session.hypothesis
    questions = [ic.where(a=i, b=j) for i in range(6) for j in range(5)]
    session.answer_many(questions)

    assert 0 < opening <= all_spent(session) <= session.account.capacity
    assert session.plan.update.tables == len(session.plan.first_tables.targets)
    for query in questions:
        bound = query.bind(DOMAIN)
        assert abs(start.evaluate(bound) - data.exact_counts(bound) / data.n) < 0.03
    again = replay(session.transcript, DOMAIN, session.plan.update, session.plan.alpha)
    assert [again.evaluate(q.bind(DOMAIN)) for q in questions] == [
        session.hypothesis.evaluate(q.bind(DOMAIN)) for q in questions
    ]


def test_without_noise_a_rule_behind_exact_tables_of_all_pairs_keeps_them():
    data = table(4)
    rule = settled(DOMAIN, data.n, APPROXIMATE)
    session = ic.OnlineIC(
        data, APPROXIMATE, update=ic.MultiplicativeWeights(), purchases=rule, noise=Silent()
    )
    for query in (ic.where(a=1), ic.where(b=ic.between(1, 3))):
        answer = session.answer(query)
        assert answer.value == pytest.approx(data.exact_counts(query.bind(DOMAIN)) / data.n, abs=1e-3)
    assert 0 == session.statistics().hard


def test_the_hypothesis_of_a_default_session_is_a_start_for_every_rule():
    first = ic.OnlineIC(table(5), APPROXIMATE, noise=SimulatedNoise(1))
    first.answer(ic.where(a=1))
    query = ic.where(a=2, b=1)
    for rule in (*RULES, MeasuredWeights(), ic.MaximumEntropy()):
        session = ic.OnlineIC(
            table(5), APPROXIMATE, update=rule, prior=first.hypothesis, noise=SimulatedNoise(2)
        )
        bound = query.bind(DOMAIN)
        begun = first.hypothesis.fit  # the joint distribution, without what is corrected set by set
        assert begun.evaluate(bound) == pytest.approx(session.hypothesis.evaluate(bound), abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"prior": ic.Histogram(DOMAIN)}, "purchases must be None or TestsOnly with certify, prior"),
        ({"certify": 0.3}, "purchases must be None or TestsOnly with certify"),
        ({"sparse": "laplace"}, "purchases must be None or TestsOnly with certify, prior, update, sparse"),
        ({"update": ic.Median()}, "prior must be None for Median"),
    ],
)
def test_what_cannot_start_from_tables_is_refused_and_spends_nothing(settings, named):
    data = table(6)
    rule = settled(DOMAIN, data.n, APPROXIMATE)
    with pytest.raises(InvalidParameterError, match=named):
        ic.OnlineIC(
            data,
            APPROXIMATE,
            **({"update": ic.MultiplicativeWeights(), "purchases": rule} | settings),
        )
    assert ([], 0) == (list(data.budgets), data.reads)


def test_a_default_session_without_first_tables_reads_nothing_at_its_start():
    data = table(7)
    session = ic.OnlineIC(data, APPROXIMATE, purchases=ic.TestsOnly(), noise=SimulatedNoise(1))

    assert (None, 0) == (session.plan.first_tables, data.reads)


@pytest.mark.parametrize("wrong", [{"rule": 3}, {"left_out": -1.0}, {"left_out": math.nan}])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(InvalidParameterError):
        MeasuredSteps(**({"rule": ic.Perceptron()} | wrong))


def test_a_fitted_start_needs_tables():
    with pytest.raises(InvalidParameterError, match="tables must be an integer >= 1"):
        FittedStart(ic.Perceptron(), 0)


@pytest.mark.parametrize("rule", [ic.MaximumEntropy(), ic.MixtureOfProducts(components=20, first_steps=9)])
def test_a_rule_that_fits_now_and_then_fits_all_there_is_and_rests_in_between(rule):
    queries = [ic.where(a=place % 6, b=place % 5) for place in range(7)]
    released = tuple(one for query in queries for one in measured(query, 0.05, 0.01))
    seldom = FittedAt(rule, (1, 4))
    seen = [seldom.init(DOMAIN)]
    for count in range(1, 8):
        seen.append(seldom.update(seen[-1], released[:count], 0.0))

    assert [True, False, False, True, False, False, False] == [
        one is not other for one, other in itertools.pairwise(seen)
    ]
    alone = rule.update(rule.update(rule.init(DOMAIN), released[:1], 0.0), released[:4], 0.0)
    every = ic.where(a=ic.between(0, 2)).bind(DOMAIN)
    assert alone.evaluate(every) == seen[-1].evaluate(every)
    assert seldom.update_bound(DOMAIN, 0.1) is None


@pytest.mark.parametrize("counts", [(), (0, 1), (1, 1), (4, 2), (1, 2.5), 3, None, "12"])
def test_counts_of_measurements_rise(counts):
    with pytest.raises(InvalidParameterError, match="counts must be"):
        FittedAt(ic.MaximumEntropy(), counts)


def test_a_session_that_measures_every_question_does_not_fit_behind_each(monkeypatch):
    """What a fit costs grows with what it fits: 200 questions took a minute of fits that no answer read."""
    fits = []
    monkeypatch.setattr(
        ic.MaximumEntropy, "update", lambda rule, held, released, alpha: fits.append(len(released)) or held
    )
    domain = ic.Domain.of(a=60, b=50)
    data = ic.PrivateData(np.full(3000, 300), domain)
    settings = {"questions": 20, "certify": 0.1}
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1), **settings)
    for place in range(20):
        session.answer(ic.where(a=ic.between(place, 59), b=ic.between(0, 30)))

    assert isinstance(session.plan.update, FittedAt)
    assert [1, 2, 4, 8, 16] == fits
