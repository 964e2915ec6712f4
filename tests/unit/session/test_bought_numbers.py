"""Questions that are bought by themselves: what they cost, what is told of them, and when tables come."""

import itertools
import math
import warnings
from fractions import Fraction
from statistics import NormalDist

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic import marginal, where
from onlineic.accounting import ADD_REMOVE, TICK
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError, InvalidQueryError
from onlineic.ledger import BoughtTables, Easy, Forfeited, Paid, Single, read
from onlineic.noise import SimulatedNoise
from onlineic.plan import ALL_HARD, DemandPurchases, PurchaseRule
from onlineic.plan.numbers import least_number, number_price
from onlineic.plan.purchase import Purchase, single
from onlineic.plan.singles import Singles
from onlineic.queries.expressions import joint
from onlineic.session import Quota

SIZES = {"a": range(40), "b": 6, "c": range(30), "d": 5, "e": 4, "f": 3, "g": 4, "h": 2}
DOMAIN = ic.Domain.of(SIZES)  # of many cells, so that tables of all say nothing
N = 40_000
ROWS = np.random.default_rng(5)
COLUMNS = {name: (ROWS.beta(2, 4, N) * DOMAIN.attribute(name).size).astype(int) for name in DOMAIN.names}
COLUMNS["b"] = np.where(COLUMNS["a"] > 15, COLUMNS["b"], 0)
DATA = PrivateData.from_records(COLUMNS, DOMAIN)
BUDGET = ic.Budget(1.0, 1e-6)
RULE = DemandPurchases()
QUESTIONS = [where(a=ic.at_least(10 + one), b=one % 6, c=ic.below(26 - one)) for one in range(20)]
WEIGHTS = where(a=ic.weights(np.linspace(0.0, 0.3, 40)), b=2)  # finer than the grid of the noise


def opened(budget=BUDGET, seed=1, **settings):
    return ic.OnlineIC(DATA, budget, noise=SimulatedNoise(seed), **settings)


def bought(session, kind=Single):
    return [record for record in session.transcript if isinstance(record, kind)]


def truth(question):
    bound = question.bind(DOMAIN)
    return DATA.exact_counts(bound) / (N << bound.grid_bits)


def test_the_first_question_is_measured_for_a_part_of_what_may_be_bought():
    session = opened()
    answer = session.answer(QUESTIONS[0])
    (record,), account = bought(session), session.account
    sigma = record.measurement.scale * N

    assert (answer.status, answer.reason, answer.hard) == ("hard", "bought", True)
    assert account.spent == record.charge.amount <= RULE.single * RULE.planned(account)
    assert record.charge.amount > Fraction(99, 100) * RULE.single * RULE.planned(account)
    assert float(record.charge.amount * TICK) == pytest.approx(
        float(account.order) / (2 * sigma**2), rel=1e-3
    )
    assert not bought(session, BoughtTables)
    assert abs(answer.value - truth(QUESTIONS[0])) < 5 * record.measurement.scale
    assert session.statistics().hard == 1


def test_what_was_bought_is_told_again_for_nothing_with_its_bound():
    session = opened()
    first = session.answer(QUESTIONS[0])
    again, turned = session.answer(QUESTIONS[0]), session.answer(~QUESTIONS[0])

    assert (again.status, turned.status) == ("repeat", "repeat")
    assert again.value == first.value == pytest.approx(1.0 - turned.value)
    assert again.error_bound == first.error_bound
    assert again.expected_error == first.expected_error
    assert len(bought(session)) == 1


def test_numbers_cost_less_and_less_until_tables_come_for_all_that_was_asked():
    session = opened()
    kinds = []
    for question in QUESTIONS:
        before = len(session.transcript)
        session.answer(question)
        kinds.append({type(one) for one in session.transcript[before:]} & {Single, BoughtTables, Easy})
    amounts = [one.charge.amount for one in bought(session)]
    planned = RULE.planned(session.account)

    assert kinds[:16] == [{Single}] * 16
    assert BoughtTables in kinds[16]
    assert Single not in set().union(*kinds[16:])
    assert amounts == sorted(amounts, reverse=True)
    assert RULE.rent * planned * Fraction(95, 100) < sum(amounts) <= RULE.rent * planned * Fraction(105, 100)
    assert session.account.spent <= planned


@pytest.mark.parametrize("asked", [8, 15])
def test_questions_whose_number_was_told_share_alike_and_leave_the_rest_to_those_after_them(asked):
    session = opened(questions=asked)
    kinds = []
    for question in QUESTIONS[: asked + 5]:
        before = len(session.transcript)
        session.answer(question)
        kinds.append({type(one) for one in session.transcript[before:]} & {Single, BoughtTables})
    costs = [float(one.charge.amount / session.account.capacity) for one in bought(session)]

    assert [{Single}] * asked == kinds[:asked]
    assert Single not in set().union(*kinds[asked:])
    assert max(costs) == pytest.approx(min(costs), rel=1e-3)
    assert sum(costs) == pytest.approx(0.95**2, rel=1e-3)
    assert 0.9 < session.statistics().spent < 1.0  # the rest is spent on tables of what was asked


def test_what_a_call_saves_goes_to_the_questions_that_are_left():
    """Twenty cells are one table, which costs as much as two numbers."""
    session = opened(questions=22)
    session.answer_many([where(d=d, e=e) for d in range(5) for e in range(4)])
    (table,) = bought(session, BoughtTables)
    told = [session.answer(one) for one in QUESTIONS[:2]]
    first, second = (float(one.charge.amount / session.account.capacity) for one in bought(session))

    assert {"hard"} == {one.status for one in told}
    assert 0.05 < float(table.charge.amount / session.account.capacity) < 0.15
    assert first == pytest.approx(second, rel=1e-3) == pytest.approx(2 * 0.95**2 / 22, rel=1e-2)


@pytest.mark.parametrize("odd", [where(d=1, h=1), where(a=ic.at_least(20), b=0)])
def test_a_question_that_the_tables_of_its_call_leave_open_has_its_number(odd):
    """Nineteen cells are one table: it says nothing of the twentieth question, which a mean hides."""
    session = opened(questions=20)
    *others, told = session.answer_many([*(where(a=one) for one in range(19)), odd])

    assert {"easy"} == {one.status for one in others}
    assert (told.status, told.reason) == ("hard", "bought")
    assert told.error_bound < 0.002


@pytest.mark.parametrize(
    ("budget", "asked", "call"),
    [
        (BUDGET, {"questions": 20}, [where(b=one) for one in range(3)]),
        (ic.Budget(10.0, 1e-6), {"questions": 40}, [where(a=one) for one in range(30)]),
        (ic.Budget(10.0, 1e-6), {}, [where(a=one) for one in range(16)]),
    ],
)
def test_tables_of_a_call_are_bought_once(budget, asked, call):
    session = opened(budget, **asked)
    if asked == {"questions": 20}:
        session.answer_many([where(a=one) for one in range(16)])
    before, told = len(bought(session, BoughtTables)), session.explain(call)
    session.answer_many(call)
    (tables,) = bought(session, BoughtTables)[before:]

    assert told.tables + told.shared == float(tables.charge.amount / session.account.capacity)


def test_who_cannot_pay_for_a_number_that_was_told_is_tested():
    session = opened(questions=20)
    part = session.account.capacity / 30
    told = [session.paid_by(Quota(f"asker {one}", part)).answer(QUESTIONS[one]) for one in range(20)]

    assert {"hard", "easy"} == {one.status for one in told}
    assert not bought(session)


@pytest.mark.parametrize("asked", [1, 2, 20])
def test_no_more_is_explained_than_is_left(asked):
    session = opened(questions=asked)
    told = session.explain(QUESTIONS)
    session.answer_many(QUESTIONS)

    assert told.payable
    assert 0.9 < told.at_most + told.tables <= 1.0
    assert session.statistics().spent <= 1.0


@pytest.mark.parametrize("within", [None, 0.1])
def test_a_number_is_explained_with_what_tests_before_it_have_used_up(within):
    session = opened(ic.Budget(1.0), questions=30)
    session.answer_many([where(d=d, e=e) for d in range(5) for e in range(4)])
    length = len(session.transcript)
    told, before = session.explain(QUESTIONS[0], within=within), session.account.spent
    session.answer(QUESTIONS[0], within=within)
    spent = session.account.spent - before

    assert Forfeited in map(type, session.transcript[length:])
    assert told.at_most == pytest.approx(float(spent / session.account.capacity))


def test_tables_of_a_call_are_explained_in_words():
    told = opened(questions=20).explain([where(a=one) for one in range(16)])

    assert f"after tables for {told.tables:.2%} of the budget" in repr(told)
    assert f"after tables for {told.tables:.2%}" in told._repr_html_()


def test_an_asker_is_explained_what_the_quota_pays():
    session = opened()
    told = session.paid_by(Quota("ann", Fraction(0))).explain(QUESTIONS[0])

    assert (told.payable, told.of_part) == (False, 0.0)
    assert session.explain(QUESTIONS[0]).payable


@pytest.mark.parametrize("more", [{}, {"delta": 1e-3}])
def test_of_so_few_that_laplace_noise_errs_less_no_delta_is_spent(more):
    budget = ic.Budget(1.0, **{"delta": 1e-9} | more)
    few, many = (opened(budget, questions=asked).account for asked in (8, 60))

    assert many.unit == "ticks"
    assert few.unit == ("ticks" if more else "epsilon")


@pytest.mark.parametrize("before", [0, 4])
def test_a_table_as_the_last_question_that_was_told_is_bought_with_what_is_left(before):
    session = opened(questions=before + 1)
    told = [session.answer(one) for one in QUESTIONS[:before]]
    table = session.answer(marginal("d", "e"))

    assert {"hard"} == {one.status for one in [*told, table]}
    assert before + 1 == len(bought(session))
    assert session.account.spent <= 0.9025 * session.account.capacity  # tests and hits keep their part
    assert session.statistics().hard_left > 0


def test_what_is_explained_before_a_number_that_was_told_is_what_it_costs():
    session = opened(questions=3)
    told = session.explain(QUESTIONS[0])
    answer = session.answer(QUESTIONS[0])

    assert told.payable
    assert told.bought == 1
    assert float(told.price) == pytest.approx(float(session.account.spent / session.account.capacity))
    assert told.bound_hard == pytest.approx(answer.error_bound, rel=0.1)


def test_a_look_at_what_is_believed_before_the_first_question_buys_nothing():
    session = opened(questions=5)

    assert session.hypothesis is not None
    assert 0 == session.account.spent


@pytest.mark.parametrize("together", [False, True])
def test_of_more_questions_than_were_told_as_many_are_measured(together):
    session = opened(questions=4)
    asked = [joint(("a", "b"), weights) for weights in np.random.default_rng(1).integers(0, 2, (9, 40, 6))]
    told = session.answer_many(asked) if together else [session.answer(one) for one in asked]

    assert ["hard"] * 4 == [one.status for one in told][:4]
    assert max(one.error_bound for one in list(told)[:4]) < 0.02


def test_what_a_call_buys_is_told_as_bought_though_a_known_cross_table_comes_first():
    session = opened()
    known = session.answer(ic.marginal("b"))
    before = session.account.spent
    table, number, again = session.answer_many([ic.marginal("b"), QUESTIONS[0], QUESTIONS[0]])
    spent = float((session.account.spent - before) / session.account.capacity)

    assert ("bought", "known", 0.0) == (known.reason, table.reason, table.cost)
    assert ("hard", "bought", spent) == (number.status, number.reason, number.cost)
    assert ("repeat", 0.0) == (again.status, again.cost)
    assert spent > 0.0


def test_a_question_that_is_known_as_well_is_not_bought():
    """Tables of the whole budget leave less error than one more number has."""
    session = opened(purchases=DemandPurchases(rent=Fraction(0)))
    for question in QUESTIONS:
        session.answer(question)
    tables = [one for record in bought(session, BoughtTables) for one in record.measurements]
    rule, account = DemandPurchases(), session.account
    heard = rule.start()
    for record in session.transcript[:4]:
        heard = rule.heard(heard, record)
    told = session.explain(where(b=2)).expected

    assert tables
    assert told < math.sqrt(float(account.order / (2 * rule.single * rule.planned(account) * TICK))) / N


def test_a_cross_table_is_bought_for_two_numbers_and_told_cell_by_cell():
    session = opened()
    answer = session.answer(ic.marginal("b", "d"))
    (record,) = bought(session)
    planned = RULE.planned(session.account)

    assert (answer.status, answer.reason) == ("hard", "bought")
    assert record.charge.amount == pytest.approx(float(2 * RULE.single * planned), rel=1e-2)
    counts = DATA.exact_counts(record.measurement.target)
    assert np.abs(answer.value.ravel() * N - counts).max() <= answer.error_bound * N
    assert answer.expected_error.shape == (6, 5)
    assert session.answer(ic.marginal("b", "d")).status == "repeat"


def test_means_are_made_of_numbers_and_none_is_refused():
    session = opened()
    mean = session.mean("a", where(b=5, d=1))
    inside = (COLUMNS["b"] == 5) & (COLUMNS["d"] == 1)

    assert len(bought(session)) == 2
    assert abs(mean.value - COLUMNS["a"][inside].mean()) <= mean.error_bound


@pytest.mark.parametrize("names", ["a", "bd"])
def test_a_call_of_many_groups_is_one_table_for_two_numbers(names):
    """After it more is left than after as many questions one by one, and numbers go on to be bought."""
    labels = [range(DOMAIN.attribute(name).size) for name in names]
    groups = [where(dict(zip(names, codes, strict=True))) for codes in itertools.product(*labels)]
    session, one_by_one = opened(), opened()
    answers = session.answer_many(groups)
    for group in groups:
        one_by_one.answer(group)
    records, planned = bought(session, BoughtTables), RULE.planned(session.account)
    after = session.account.spent
    session.answer(QUESTIONS[0])

    assert [len(one.heard) for one in records] == [len(groups)]
    assert records[0].charge.amount <= Fraction(9, 4) * RULE.single * planned
    assert {one.status for one in answers} == {"easy"}
    assert after < one_by_one.account.spent / 2
    assert [one.query.key for one in bought(session)] == [QUESTIONS[0].bind(DOMAIN).key]


def test_groups_of_a_table_are_one_table():
    session = opened()
    groups = session.group_by("a")

    assert len(groups) == 40
    assert len(bought(session)) == 1
    assert session.account.spent <= Fraction(9, 4) * RULE.single * RULE.planned(session.account)


def test_a_long_call_is_heard_whole_and_answered_from_tables():
    session = opened()
    session.answer_many(QUESTIONS * 2 + [where(d=one, e=other) for one in range(5) for other in range(4)])

    assert len(bought(session, BoughtTables)[0].heard) == 40
    assert len(bought(session)) < 5


@pytest.mark.parametrize(("rows", "part"), [(2, 0.7), (16, 0.8)])
def test_a_call_as_long_as_a_stream_has_all_instalments_up_to_there(rows, part):
    """The first one spends a hair less than numbers may: those after it must come all the same."""
    session = opened()
    session.answer_many(
        [where(a=ic.at_least(8 + a), c=ic.below(4 + c)) for a in range(rows) for c in range(16)]
    )

    assert len(bought(session, BoughtTables)) > 1
    assert session.statistics().bought > part


def test_a_call_of_many_more_than_were_told_has_tables_and_its_first_questions_no_numbers():
    session = opened(questions=10)
    session.answer_many([where(a=ic.at_least(a), c=ic.below(c)) for a in range(16) for c in range(16)])
    tables = sum(one.charge.amount for one in bought(session, BoughtTables))

    assert not bought(session)
    assert tables > 0.8 * session.account.capacity


def test_a_short_call_is_bought_one_by_one():
    alone, together = opened(), opened()
    one_by_one = [alone.answer(question) for question in (*QUESTIONS[:3], where(), QUESTIONS[0])]
    at_once = together.answer_many([*QUESTIONS[:3], where(), QUESTIONS[0]])

    assert [one.status for one in at_once] == ["hard", "hard", "hard", "easy", "repeat"]
    assert [*at_once] == one_by_one
    assert [one.reason for one in at_once] == [one.reason for one in one_by_one]
    assert [one.charge for one in bought(alone)] == [one.charge for one in bought(together)]


def test_who_tells_what_comes_needs_no_numbers():
    for told in (2_000, [("a", "b")]):
        session = opened(questions=told)
        session.answer(QUESTIONS[0])

        assert not bought(session)
        assert bought(session, BoughtTables)


def test_who_looks_at_the_hypothesis_after_a_number_buys_nothing_and_synthetic_records_have_tables():
    session = opened()
    session.answer(QUESTIONS[0])
    before = len(session.transcript)

    assert session.hypothesis is not None
    assert len(session.transcript) == before
    assert session.synthetic(10) is not None
    assert bought(session, BoughtTables)
    masses = session.hypothesis.marginal("b")
    assert np.abs(masses - np.bincount(COLUMNS["b"], minlength=6) / N).max() < 0.05


def test_who_looks_at_the_hypothesis_first_has_tables():
    session = opened()

    assert session.hypothesis is not None
    assert bought(session, BoughtTables)


def test_bought_counts_are_whole_records_inside_of_their_bounds():
    session = opened()
    answer, table = session.answer(QUESTIONS[0]), session.group_by("b")
    mean = session.mean("a", where(b=3))

    assert answer.count == pytest.approx(round(answer.count), abs=1e-9)
    assert table.values == pytest.approx(table.values.round(), abs=1e-9)
    assert mean.value != round(mean.value, 2)  # weighted numbers keep the grid of their weights
    assert abs(answer.value - truth(QUESTIONS[0])) <= answer.error_bound
    assert abs(answer.value - bought(session)[0].measurement.values[0]) <= answer.error_bound


def test_the_interval_of_what_was_bought_is_that_of_its_bound():
    session = opened()
    answer, table = session.answer(QUESTIONS[0]), session.answer(ic.marginal("b"))

    assert answer.estimate is None
    assert answer.interval() == answer.interval(0.5) == answer.bracket
    assert np.array_equal(table.interval()[1], table.bracket[1])
    with pytest.raises(InvalidParameterError, match=r"confidence must be at most 0\.95, .* write 0\.95\."):
        answer.interval(0.99)
    assert answer.interval(0.95) == answer.bracket


def test_a_question_of_a_call_that_is_left_to_the_start_has_an_expected_error():
    """Of one cell in many it is known beforehand that next to nothing is in it."""
    session = opened(purchases=attrs.evolve(RULE, single=Fraction(1, 4096)))
    session.answer(where(a=ic.below(20)))
    one, other = session.answer_many([where(a=at, c=at, e=1) for at in (20, 25)])

    assert one.status == other.status == "easy"
    assert not bought(session, BoughtTables)
    assert 0.0 < one.expected_error < 1e-3
    assert other.expected_error == pytest.approx(one.expected_error)


def test_it_is_explained_before_it_is_asked():
    session = opened()
    told = session.explain(QUESTIONS[0])
    answer = session.answer(QUESTIONS[0])
    (record,) = bought(session)

    assert (told.bought, told.payable) == (1, True)
    assert told.price == told.at_most == float(record.charge.amount / session.account.capacity)
    assert told.expected == pytest.approx(answer.expected_error, rel=0.2)
    assert told.bound_hard == pytest.approx(answer.error_bound, rel=0.2)
    assert "measured" in repr(told)
    assert session.explain(QUESTIONS[0]).bought == 0


def test_what_is_told_lies_between_the_number_and_what_was_said_by_what_both_err_by():
    singles = Singles().after(0.03, 0.01, 0.02)

    assert Singles().over == 1.0
    assert Singles().taken(0.01, 0.02) == pytest.approx(0.8)
    assert Singles().taken(0.01, 0.0) == 0.0
    assert singles.over > 1.0
    many = Singles(tuple((0.0005, 0.0001, 0.0004) for _ in range(500)))
    assert many.over == pytest.approx(1.0, abs=0.1)  # 5 of the square of the noise: one is the noise
    wrong = Singles(tuple((0.0401, 0.0001, 0.0004) for _ in range(500)))
    assert wrong.over == pytest.approx(100.0, rel=0.05)
    assert wrong.taken(0.01, 0.02) > 0.99


def test_answers_that_are_left_are_what_purchases_leave():
    session = opened()
    price = session.plan.sparse.price(QUESTIONS[0].bind(DOMAIN)).amount
    kept = session.account.capacity - RULE.planned(session.account)

    assert 1 <= session.statistics().hard_left <= kept / price


def test_bounds_of_numbers_count_how_far_what_is_told_lies_from_what_was_measured():
    """Of one answer at beta, and of all at once at the part of it that a number has by its price."""
    session, together = opened(), 0.0
    beta = session.plan.tested_beta
    for question in QUESTIONS[:5]:
        answer, record = session.answer(question), bought(session)[-1]
        part = float(record.charge.amount / session.account.capacity)
        apart = abs(answer.value - record.measurement.values[0]) + 1 / N  # a record for what is rounded
        one, among_all = (
            apart + record.measurement.scale * NormalDist().inv_cdf(1 - probability / 2)
            for probability in (beta, ALL_HARD * beta * part)
        )
        together = max(together, among_all)
        assert answer.error_bound == pytest.approx(one, rel=1e-9)

    assert apart > 1.1 / N
    assert session.statistics().error_bound == pytest.approx(together, rel=1e-9)


def test_bounds_of_numbers_hold():
    held = []
    for seed in range(60):
        session = opened(seed=seed)
        answers = [session.answer(question) for question in (*QUESTIONS[:5], WEIGHTS)]
        held += [
            abs(answer.value - truth(question)) <= answer.error_bound
            for answer, question in zip(answers, (*QUESTIONS[:5], WEIGHTS), strict=True)
        ]
        together = session.statistics().error_bound
        worst = max(
            abs(one.value - truth(q)) for one, q in zip(answers, (*QUESTIONS[:5], WEIGHTS), strict=True)
        )
        assert worst <= together or seed  # fails in one of twenty sessions at most

    assert np.mean(held) >= 0.95


@pytest.mark.parametrize(
    "budget", [ic.Budget(1.0), ic.Budget(1.0, 1e-6, neighbours=ADD_REMOVE)], ids=["pure", "add-remove"]
)
def test_other_accounts_buy_numbers_too(budget):
    data = PrivateData.from_records(COLUMNS, DOMAIN, **({} if budget.pure else {"neighbours": "add-remove"}))
    session = ic.OnlineIC(data, budget, noise=SimulatedNoise(3))
    answer = session.answer(QUESTIONS[0])

    assert bought(session)
    assert abs(answer.count - truth(QUESTIONS[0]) * N) <= answer.error_bound * session.n + session.n_bound


@pytest.mark.parametrize("order", [None, Fraction(20)])
@pytest.mark.parametrize("question", [QUESTIONS[0], ~QUESTIONS[0], WEIGHTS])
def test_a_number_is_priced_by_its_own_sensitivity(order, question):
    bound, near = question.bind(DOMAIN), BUDGET.neighbours
    most = Fraction(1, 10) if order is None else Fraction(10**9)
    scale = least_number(order, most, bound, near)
    whole = least_number(order, most, QUESTIONS[0].bind(DOMAIN), near)

    assert number_price(order, bound, scale, near) <= most
    assert number_price(order, bound, scale * Fraction(99, 100), near) > most
    if question is WEIGHTS:  # moved by .3 of a record, rounded up to the grid of the noise
        assert 0.3 <= scale / whole < 0.31
    else:
        assert scale == whole


def test_tables_with_numbers_are_charged_for_both():
    bound, near, order = QUESTIONS[0].bind(DOMAIN), BUDGET.neighbours, Fraction(20)
    filter_ = opened().account
    named = single(
        bound, Fraction(10**9), attrs.evolve(filter_, order=order, capacity=Fraction(10**12)), near
    )

    with pytest.raises(InvalidParameterError, match="cost"):
        attrs.evolve(named, charge=attrs.evolve(named.charge, amount=named.charge.amount - 1))


class Others(PurchaseRule):
    """Names what a test tells it to."""

    def __init__(self, made):
        self.made = made

    def start(self):
        return 0

    def heard(self, so_far, record):
        return so_far + isinstance(record, Single | BoughtTables)

    def next(self, facts):
        return None if facts.heard or facts.question is None else self.made(facts)


def other_number(facts):
    return single(where(b=1).bind(DOMAIN), facts.account.capacity / 50, facts.account, facts.neighbours)


def two_numbers(facts):
    one = single(facts.question, facts.account.capacity / 50, facts.account, facts.neighbours)
    charge = attrs.evolve(one.charge, amount=2 * one.charge.amount)
    return Purchase(one.targets * 2, one.scales * 2, charge, one.pure, neighbours=facts.neighbours)


def by_hand(facts):
    small = attrs.evolve(facts.question, highest=facts.question.lowest + 1)
    one = single(facts.question, facts.account.capacity / 50, facts.account, facts.neighbours)
    return attrs.evolve(one, targets=(small,))


@pytest.mark.parametrize("made", [other_number, two_numbers, by_hand])
def test_no_rule_buys_a_number_of_something_else_or_of_another_price(made):
    session = opened(purchases=Others(made))

    with pytest.raises((InvalidParameterError, InvalidQueryError)):
        session.answer(WEIGHTS)
    assert session.account.spent == 0
    assert session.transcript == ()


def test_who_asks_pays_for_the_number_and_who_cannot_buys_none(tmp_path):
    session = opened()
    price = Fraction(session.explain(QUESTIONS[0]).price) * session.account.capacity
    ann, bob = Quota("ann", 6 * price / 5), Quota("bob", price / 2)
    first, second = session.paid_by(ann).outcomes(QUESTIONS[:2])
    (third,) = session.paid_by(bob).outcomes(QUESTIONS[2:3])

    assert [one.answer.status for one in (first, second, third)] == ["hard", "untested", "untested"]
    assert session.view().paid == {"ann": bought(session)[0].charge.amount}
    assert len(bought(session)) == 1
    assert [record.heard for record in bought(session, BoughtTables)] == [()]  # for everybody, in its place


def test_an_audit_works_out_by_itself_what_the_noise_of_a_number_costs(tmp_path, monkeypatch):
    """Though the plan asks half of it, in the session and in the audit."""
    for place in ("numbers", "purchase"):
        monkeypatch.setattr(f"onlineic.plan.{place}.number_price", lambda *of: number_price(*of) / 2)
    data, path = PrivateData.from_records(COLUMNS, DOMAIN), tmp_path / "session.db"
    with ic.OnlineIC(data, BUDGET, ledger=path, table="made up") as session:
        session.answer(QUESTIONS[0])

    assert any("for less than its noise costs" in text for text in verified(read(path)).problems)


def test_a_file_goes_on_with_what_was_bought_and_can_be_verified(tmp_path):
    path = tmp_path / "session.db"
    with ic.OnlineIC(DATA, BUDGET, ledger=path, table="t") as session:
        told = [session.answer(question) for question in (*QUESTIONS[:3], ic.marginal("d"), WEIGHTS)]
        receipt = session.receipt
    with ic.OnlineIC(DATA, BUDGET, ledger=path, table="t") as session:
        again = [session.answer(question) for question in (*QUESTIONS[:3], ic.marginal("d"), WEIGHTS)]
        more = session.answer(QUESTIONS[3])
        amounts = [one.charge.amount for one in bought(session)]

    for one, other in zip(told, again, strict=True):
        assert other.status == "repeat"
        assert np.array_equal(one.value, other.value)
        assert one.error_bound == other.error_bound
    assert more.reason == "bought"
    assert amounts[:3] == sorted(amounts[:3], reverse=True)
    report = verified(read(path), receipt=receipt)
    assert report.whole, report.problems
    assert report.hard == 6
    assert report.replayed
    assert not any(isinstance(one, Paid) for one in read(path).records(DOMAIN)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "hard" in repr(report)
