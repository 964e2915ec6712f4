"""Wishes: what an answer must be exact to, what that costs, and what is told where it cannot be paid."""

import attrs
import numpy as np
import pytest
from scipy.stats import norm

import onlineic as ic
from onlineic import accounting, audit
from onlineic.errors import InvalidParameterError, SessionExhaustedError, SessionStateError
from onlineic.evaluate import exact_values, random_stream
from onlineic.ledger import BoughtTables, Certified, Hard, MemoryLedger, Single, read
from onlineic.noise import SimulatedNoise
from onlineic.queries import Within, expected
from onlineic.session import Quota, replay
from support.wishes import BUDGET, COUNTS, DATA, DOMAIN, STREAM, opened


def spent(session):
    return float(session.account.spent / session.account.capacity)


def kinds(session, kind):
    return [record for record in session.transcript if isinstance(record, kind)]


@pytest.mark.parametrize("radius", [0.02, 0.05])
@pytest.mark.parametrize("budget", [BUDGET, ic.Budget(1.0)])
def test_every_bound_of_a_certain_wish_is_at_most_the_wish(radius, budget):
    session = ic.OnlineIC(DATA, budget, within=radius, noise=SimulatedNoise(1))
    answers = [session.answer(query) for query in STREAM]

    assert all(one.error_bound <= radius or one.reason == "budget" for one in answers)
    assert all(one.error_bound <= radius for one in answers[:20])
    assert spent(session) <= 1.0


def test_an_expected_wish_is_met_by_the_expected_error_and_costs_less():
    session, certain = opened(within=expected(0.02)), opened(within=0.02)
    answers = [session.answer(query) for query in STREAM]
    for query in STREAM:
        certain.answer(query)

    assert all(one.expected_error <= 0.02 / 1.95 for one in answers)
    assert spent(session) < spent(certain)
    assert (
        np.mean(np.abs([one.value for one in answers] - exact_values(DATA, STREAM)) <= 0.02) > 0.8
    )  # no table of people has so little structure


def test_a_question_costs_about_what_plain_noise_of_its_wish_costs():
    narrow, wide = opened(), opened()
    first = narrow.answer(STREAM[0], within=0.01)
    wide.answer(STREAM[0], within=0.04)

    assert first.error_bound == pytest.approx(0.01, rel=0.01)
    assert 12.0 < spent(narrow) / spent(wide) < 20.0  # 16, but for the whole record of every bound


def test_who_asks_again_within_an_expected_wish_pays_once_wherever_the_number_lay():
    """A number that lies far off is expected to err more than was predicted."""
    data = ic.PrivateData(np.full((6, 4, 3), 833), ic.Domain.of(a=6, b=4, c=3))
    for seed in range(10):
        session = ic.OnlineIC(data, BUDGET, within=expected(0.25), noise=SimulatedNoise(seed))
        first = session.answer(ic.where(a=1))
        paid = spent(session)
        again = session.answer(ic.where(a=1))

        assert ("repeat", paid) == (again.status, spent(session))
        assert first.value == again.value
        assert session.answer(ic.where(a=1), within=expected(0.05)).cost > 0.0


def test_a_wider_wish_is_told_again_and_a_narrower_one_rests_on_a_number_of_its_own():
    session = opened()
    first = session.answer(STREAM[0], within=0.02)
    before = spent(session)

    assert session.answer(STREAM[0], within=0.05).value == first.value
    assert spent(session) == before
    second = session.answer(STREAM[0], within=0.01)
    assert (second.status, second.reason) == ("hard", "bought")
    assert spent(session) - before > 3.5 * before
    one, two = kinds(session, Single)
    assert second.value == two.measurement.values[0] != one.measurement.values[0]


def test_tests_are_made_where_they_are_likely_cheaper_each_at_its_own_price():
    session = opened(within=0.05, questions=[("a", "b"), ("c", "d")])
    for query in random_stream(DOMAIN, 400, 8):
        assert session.answer(query).error_bound <= 0.05
    easy, hard = kinds(session, Certified), [one for one in kinds(session, Hard) if one.within is not None]

    assert len(easy) > 100
    assert len(hard) < len(easy) / 4
    assert all(one.within.steepness for one in [*easy, *hard])
    assert len({one.charge.amount for one in hard}) == len(
        {(one.within, one.query.grid_bits) for one in hard}
    )


def test_a_hit_of_a_wish_tells_the_number_itself():
    """Its bound was settled before it was drawn: what was learned is not told in its place."""
    session, told = opened(within=0.05, questions=[("a", "b"), ("c", "d")]), []
    for query in random_stream(DOMAIN, 400, 8):
        before, answer = len(session.transcript), session.answer(query)
        told += [
            (answer.value, one.measurement.values[0])
            for one in session.transcript[before:]
            if isinstance(one, Hard) and one.within is not None and len(one.measurement.values) == 1
        ]

    assert len(told) > 3
    assert all(value == pytest.approx(number, abs=1e-12) for value, number in told)


def test_a_hit_without_a_wish_costs_its_own_price_whatever_a_finer_wish_left_set_aside():
    told = {"questions": [("a", "b"), ("c", "d")], "hard_answers": 200, "threshold": 1e-6}
    plain, session = opened(**told), opened(**told)
    assert "hard" == plain.answer(ic.marginal("b", "d")).status
    price, asked = kinds(plain, Hard)[0].charge.amount, iter(random_stream(DOMAIN, 400, 8))
    session.answer(next(asked))
    while not (isinstance(session.transcript[-1], Certified) and session.reserved.amount > price):
        session.answer(next(asked), within=0.03)
    assert "hard" == session.answer(ic.marginal("b", "d")).status

    assert price == kinds(session, Hard)[-1].charge.amount


def test_a_call_is_bought_as_a_whole_where_tables_cost_less():
    one_by_one, at_once = opened(), opened()
    questions = [ic.where(a=a, b=b) for a in range(12) for b in "uvw"]
    answers = at_once.answer_many(questions, within=0.02)
    for question in questions:
        one_by_one.answer(question, within=0.02)
    (tables,) = kinds(at_once, BoughtTables)

    assert [one.error_bound <= 0.02 for one in answers] == [True] * 36
    assert {(one.status, one.reason) for one in answers} == {("repeat", "known")}
    assert len(tables.heard) == 36
    assert spent(at_once) < spent(one_by_one) / 8


def test_what_cannot_be_paid_is_answered_from_what_was_released_and_costs_nothing():
    session = opened()
    answer = session.answer(STREAM[0], within=1e-4)
    assert (answer.status, answer.reason) == ("untested", "budget")
    assert spent(session) == 0.0
    with pytest.raises(SessionExhaustedError):
        opened(exhausted="raise").answer(STREAM[0], within=1e-4)


def test_what_was_measured_is_told_again_where_a_narrower_wish_cannot_be_paid():
    session = opened()
    first = session.answer(STREAM[0], within=0.02)
    paid = spent(session)
    again = session.answer(STREAM[0], within=1e-4)

    assert (again.status, again.reason) == ("repeat", "budget")
    assert (again.value, again.error_bound) == (first.value, first.error_bound)
    assert spent(session) == paid


def test_a_mean_over_few_records_whose_wish_cannot_be_paid_is_that_of_the_numbers_that_were():
    domain = ic.Domain.of(age=range(100), sick=[False, True])
    counts = np.zeros(domain.shape, int)
    counts[20, 1], counts[70, 0] = 1_000, 49_000
    session = ic.OnlineIC(
        ic.PrivateData(counts, domain), ic.Budget(0.2, 1e-9), within=0.01, noise=SimulatedNoise(1)
    )
    mean = session.mean("age", ic.where(sick=True))

    assert 10 < mean.value < 35
    assert spent(session) < 1


def test_looking_buys_nothing():
    session = opened(within=0.02)
    session.hypothesis.evaluate_many([one.bind(DOMAIN) for one in STREAM[:3]])
    session.answer(STREAM[0])
    before = spent(session)
    assert session.hypothesis is not None
    assert spent(session) == before < 0.01


def test_who_cannot_pay_for_tables_that_are_due_has_the_number():
    session = opened(within=0.02)
    part = session.account.capacity / 200
    found = []
    for place, query in enumerate(STREAM):
        found.append(session.paid_by(Quota(f"user {place}", part)).answer(query))
    assert {one.reason for one in found} <= {"bought", "known", "within", "covered", "test"}


def test_each_part_of_a_statement_may_fail_with_its_part_of_what_one_may():
    session = opened()
    (answer,) = session.answer_within([STREAM[0]], Within(0.02, parts=10))
    (number,) = kinds(session, Single)
    chance = 2.0 * norm.sf(answer.error_bound / number.measurement.scale)
    assert 0.7 * 0.05 / 10 * 0.9 < chance <= 0.7 * 0.05 / 10


def test_a_summary_says_the_wish_and_no_promise_of_tests():
    session = opened(within=0.02)
    session.answer(STREAM[0])
    said = str(session.summary())
    assert "each answer within 0.02 of all records, for certain" in said
    assert "promise" not in said


@pytest.mark.parametrize("within", [0.02, expected(0.02)])
@pytest.mark.parametrize("budget", [BUDGET, ic.Budget(1.0)])
def test_answers_cost_together_what_was_spent_on_them(within, budget):
    session = ic.OnlineIC(DATA, budget, within=within, noise=SimulatedNoise(1))
    asked = [*STREAM[:9], STREAM[0], ic.where(), ic.marginal("b", "d")]
    answers = [session.answer(query) for query in asked]
    call = session.answer_many([ic.where(a=a, b=b) for a in range(12) for b in "uvw"], within=within)
    rows = session.group_by("a", within=1_000)
    mean = session.mean("c", {"b": "u"}, within=0.2)

    assert answers[9].cost == answers[10].cost == 0.0
    assert sum(one.cost for one in [*answers, *call, rows, mean]) == pytest.approx(spent(session), rel=1e-12)
    assert session.answer(STREAM[0]).cost == 0.0
    number = next(one for one in kinds(session, Single) if one.query.key == STREAM[0].bind(DOMAIN).key)
    assert answers[0].cost == float(number.charge.amount / session.account.capacity)
    assert answers[0].to_dict()["cost"] == answers[0].cost
    assert "of the budget" in answers[0]._repr_html_()


def test_a_summary_says_what_was_spent_for_what():
    session = opened(within=expected(0.02))
    assert session.summary().wishes == session.summary().spending == ()
    answers = [session.answer(query) for query in STREAM[:14]]
    call = session.answer_many([ic.where(a=a, b=b) for a in range(12) for b in "uvw"], within=0.02)
    summary = session.summary()
    told = {one.within: one for one in summary.wishes}
    certain, usual = told[Within(0.02)], told[expected(0.02)]

    assert sum(one.spent for one in summary.wishes) == pytest.approx(spent(session))
    assert usual.spent == pytest.approx(sum(one.cost for one in answers))
    assert usual.answers == sum(one.status != "repeat" and one.reason != "within" for one in answers)
    assert certain.spent == pytest.approx(sum(one.cost for one in call))
    assert certain.answers == 36 or any(one.cost == 0.0 for one in call)
    left = 1.0 - spent(session)
    assert certain.more == pytest.approx(left * certain.answers / certain.spent, rel=0.06)
    assert summary.spending[-1][1] == pytest.approx(spent(session))
    assert [*summary.spending] == sorted(summary.spending)
    for said in (str(summary), summary.to_html(), summary.to_markdown()):
        assert "for 36 answers; about" in said
        assert f"after {summary.spending[-1][0]}" in said


def test_spending_is_drawn_of_sessions_that_were_asked_with_a_wish():
    pytest.importorskip("matplotlib")
    session = opened()
    with pytest.raises(InvalidParameterError, match="asked with a wish"):
        session.summary().plot_spending()
    session.answer(STREAM[0], within=0.02)
    axes = session.summary().plot_spending()
    assert axes.get_lines()[0].get_ydata()[-1] == pytest.approx(100.0 * spent(session))
    assert session.summary().wishes[0].more is None  # of one answer a price says little of the next


def test_without_a_wish_numbers_and_hits_cost_and_tables_are_no_answers():
    session = opened()
    answers = [session.answer(query) for query in random_stream(DOMAIN, 30, 5)]
    batch = session.answer_many(ic.queries.Queries.where(DOMAIN, {"a": [*range(12)]}))
    tables = sum(one.charge.amount for one in kinds(session, BoughtTables)) / session.account.capacity
    cost = sum(one.cost for one in answers) + batch.costs.sum()

    assert tables > 0
    assert cost + float(tables) == pytest.approx(spent(session), rel=1e-12)


def test_a_finer_wish_never_costs_less():
    costs = [np.mean([_cost(radius, seed) for seed in range(2)]) for radius in (0.01, 0.02, 0.04)]
    assert costs == sorted(costs, reverse=True)


def _cost(radius, seed):
    session = opened(seed, within=radius)
    for query in STREAM[:40]:
        session.answer(query)
    return spent(session)


@pytest.mark.parametrize("within", [0.02, expected(0.02)])
def test_a_session_with_a_wish_goes_on_from_its_file_and_is_verified(within, tmp_path):
    path, data = tmp_path / "a.db", ic.PrivateData(COUNTS, DOMAIN)
    with ic.OnlineIC(data, BUDGET, within=within, ledger=path, table="t") as session:
        told = [session.answer(query).value for query in STREAM[:40]]
        told += [one.value for one in session.answer_many(STREAM[40:60])]
        cost = session.account.spent
    assert not audit.verified(read(path)).problems
    with ic.OnlineIC.resume(path, data) as session:
        again = [session.answer(query) for query in STREAM[:60]]
        cost_then = session.account.spent
        assert session.plan.within == (within if isinstance(within, Within) else Within(within))
    if not isinstance(within, Within):  # answers that are only expected may follow what is bought later
        assert [one.value for one in again] == told
        assert cost_then == cost


@pytest.mark.parametrize("within", [Within(0.02), expected(0.02)])
def test_at_delta_0_each_kind_of_question_is_answered_within_its_wish_verified_and_gone_on_with(
    within, tmp_path
):
    path, data = tmp_path / "a.db", ic.PrivateData(COUNTS, DOMAIN)
    asked = [*STREAM[:2], ic.marginal("b"), STREAM[0]]
    call = [ic.where(a=a, d="yes") for a in range(3)]

    def told(session):
        answers = [session.answer(one) for one in asked] + session.answer_many(call)
        rows = session.group_by("b", within=Within(800, certain=within.certain))
        mean = session.mean("c", {"b": "u"}, within=Within(0.2, certain=within.certain))
        assert all(within.meets(one.error_bound, one.expected_error) for one in answers)
        assert not within.certain or rows.error_bounds.max() <= 800
        assert not within.certain or mean.error_bound <= 0.2
        return [np.ravel(one.value).tolist() for one in answers], rows.values.tolist(), mean.value

    with ic.OnlineIC(data, ic.Budget(1.0), within=within, ledger=path, table="t") as session:
        first, cost = told(session), session.account.spent
        model, transcript = session.hypothesis, session.transcript
        assert not kinds(session, Certified)
        again = replay(transcript, DOMAIN, session.plan.update, session.plan.alpha)
        cells = [ic.where(a=a, c=c).bind(DOMAIN) for a in range(12) for c in range(8)]
        assert np.array_equal(again.evaluate_many(cells), model.evaluate_many(cells))
    assert not audit.verified(read(path)).problems
    with ic.OnlineIC.resume(path, data) as session:
        assert told(session) == first or not within.certain  # tables bought later may move what is expected
        assert session.account.spent == cost or not within.certain


@pytest.mark.parametrize(
    "options",
    [
        {"certify": 0.1},
        {"threshold": 0.1},
        {"hard_answers": 5},
        {"update": ic.MultiplicativeWeights()},
        {"purchases": ic.plan.TestsOnly()},
        {"sparse": "laplace"},
    ],
)
def test_a_wish_beside_what_settles_the_same_is_refused_by_name(options):
    with pytest.raises(InvalidParameterError, match="within must be None with"):
        opened(within=0.01, **options)


@pytest.mark.parametrize(
    "options", [{"purchases": ic.plan.TestsOnly()}, {"update": ic.MultiplicativeWeights()}]
)
def test_a_session_that_does_not_buy_by_what_is_asked_refuses_a_wish_by_name(options):
    session = opened(**options)
    with pytest.raises(InvalidParameterError, match="in a session that does not buy"):
        session.answer(STREAM[0], within=0.02)
    assert len(session.transcript) == 0


@pytest.mark.parametrize("within", [0.02, expected(0.02)])
def test_the_price_told_before_is_what_a_number_costs(within):
    session = opened()
    told = session.explain(STREAM[0], within=within)
    assert session.explain([], within=within).at_most == 0.0
    session.answer(STREAM[0], within=within)
    assert told.at_most == pytest.approx(spent(session))
    assert told.payable
    assert "measured" in str(told)
    assert session.explain(STREAM[0], within=within).free
    assert not session.explain(STREAM[1], within=1e-5).payable


def test_each_price_that_was_told_is_what_is_paid():
    session = opened(within=0.05, questions=[("a", "b"), ("c", "d")])
    seen = set()
    for query in random_stream(DOMAIN, 24, 8):
        told = session.explain(query)
        answer = session.answer(query)
        ways = {one.way for one in told.prices if one.taken}
        seen |= {(*sorted(ways), answer.status)}
        assert told.free == (not ways)
        if ways == {"test"}:
            assert answer.cost == pytest.approx(told.at_most if answer.status == "hard" else 0.0)
            assert 0.0 < told.likely < told.at_most
        elif "tables" not in ways:  # what these say can show that a number is needed after all, or not
            assert answer.cost == pytest.approx(told.at_most) == pytest.approx(told.likely)
    assert {("test", "easy"), ("number", "hard")} <= seen


def test_a_price_is_told_as_the_epsilon_of_a_budget_that_pays_no_more():
    for budget in (BUDGET, ic.Budget(1.0)):
        session = ic.OnlineIC(DATA, budget, noise=SimulatedNoise(0))
        (price,) = [one for one in session.explain(STREAM[0], within=0.02).prices if one.way == "number"]
        if budget.delta:
            rho = accounting.zcdp_rho(price.epsilon, budget.delta)
            account = session.account
            spent_on_it = price.at_most * float(account.capacity * accounting.TICK / account.order)
            assert rho == pytest.approx(spent_on_it, rel=1e-9)
        else:
            assert price.epsilon == pytest.approx(price.at_most * budget.epsilon)
    said = repr(session.explain([*STREAM[:9]], within=0.02))
    assert "measured numbers" in said
    one = opened(within=0.02).explain(STREAM[0])
    assert "instead a test" in repr(one)
    assert "by itself" in one._repr_html_()
    assert one.to_dict()["prices"][0]["taken"]


@pytest.mark.parametrize("within", [0.0, -1.0, True, "a", None.__class__, float("nan"), 1j])
def test_a_wish_that_is_none_is_refused_by_name(within):
    session = opened()
    with pytest.raises(InvalidParameterError, match="within must be"):
        session.answer(STREAM[0], within=within)
    assert len(session.transcript) == 0


def test_derived_questions_are_as_exact_as_was_wished():
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    domain = ic.Domain.of(age=range(20, 60), sex=["F", "M"], ill=ic.boolean())
    generator = np.random.default_rng(20261129)
    counts = generator.multinomial(60_000, generator.dirichlet(np.full(domain.size, 2.0)))
    session = ic.OnlineIC(ic.PrivateData(counts, domain), BUDGET, noise=SimulatedNoise(4))
    exact = counts.reshape(domain.shape)
    for found, within in (
        (session.mean("age", within=0.5), 0.5),
        (session.mean("age", {"sex": "F", "ill": True}, within=0.5), 0.5),
        (session.sum("age", within=20_000), 20_000),
        (session.sum("age", {"sex": "F"}, within=20_000), 20_000),
    ):
        assert found.error_bound <= within
        assert found.confidence >= 0.95 - 1e-9
    groups = session.group_by(["sex", "ill"], within=300)
    assert groups.error_bounds.max() <= 300
    assert groups.confidence >= 0.95 - 1e-9
    assert np.abs(groups.values - exact.sum(axis=0)).max() <= 3 * 300
    assert session.histogram("age", within=400).error_bounds.max() <= 400
    rows = session.sql("SELECT sex, COUNT(*) FROM t GROUP BY sex", within=0.01)
    assert rows.error_bounds.max() <= 600
    assert session.quantile("age", 0.5, within=0.02).rank_error <= 0.05
    with pytest.raises(InvalidParameterError, match="within must be None with aggregate"):
        session.group_by("sex", aggregate="mean", of="age", within=1.0)


def test_a_mean_whose_share_was_foreseen_is_bought_once_at_the_price_that_was_told():
    domain = ic.Domain.of(age=range(20, 60), sex=["F", "M"], region=range(12))
    generator = np.random.default_rng(20261129)
    counts = generator.multinomial(60_000, generator.dirichlet(np.full(domain.size, 9.0)))
    session = ic.OnlineIC(ic.PrivateData(counts, domain), BUDGET, noise=SimulatedNoise(4))

    def asked(to):
        return to.mean("age", {"sex": "F"}, within=1.0)

    told, found = session.explain(asked), asked(session)
    assert found.error_bound <= 1.0
    assert len(kinds(session, Single)) == 2
    assert told.at_most == pytest.approx(spent(session))
    assert told.bound_derived <= 1.0


@pytest.mark.parametrize("where", [None, {"b": "u"}, {"a": ic.at_least(6)}])
@pytest.mark.parametrize("wish", [Within(0.05), expected(0.02)])
def test_a_rate_is_within_its_wish_of_those_whom_it_is_about(wish, where):
    session, of = opened(4), opened(5, within=wish)
    rates = [session.share({"d": "yes"}, where, within=wish), of.share({"d": "yes"}, where)]

    for rate in rates:
        assert (rate.error_bound if wish.certain else 1.95 * rate.expected_error) <= wish.radius
    assert 0.0 < spent(session) < 0.3
    with pytest.raises(InvalidParameterError, match="within must be None for rates by group"):
        session.share({"d": "yes"}, by="b", within=wish)


@pytest.mark.parametrize(("within", "where"), [(1.0, "b = 'u' AND d = 'yes'"), (0.5, "b = 'u'")])
def test_a_mean_is_told_by_the_numbers_that_were_paid_where_finer_ones_cannot_be(within, where):
    pytest.importorskip("sqlglot", reason="needs the extra sql")
    counts = COUNTS.copy()
    counts[:, 0] //= 200
    session = ic.OnlineIC(ic.PrivateData(counts, DOMAIN), BUDGET, noise=SimulatedNoise(1))
    found = session.mean("a", where, within=within)

    assert [one.reason for one in found.answers] == ["bought", "bought"]
    assert 0.0 < found.cost == pytest.approx(spent(session))
    assert found.error_bound > within
    assert found.confidence >= 0.95 - 1e-9


def test_a_session_with_a_wish_owes_nothing_and_counts_the_numbers_that_can_be_paid():
    session = opened(within=0.01)
    view, first = session.view(), session.answer(STREAM[0])
    assert view.pool == view.account.capacity
    assert view.hits_left(None) == int(1 / first.cost)


def test_a_wish_of_a_session_is_of_the_range_for_a_mean():
    domain = ic.Domain.of(age=range(20, 60), sex=["F", "M"])
    generator = np.random.default_rng(20261129)
    counts = generator.multinomial(60_000, generator.dirichlet(np.full(domain.size, 2.0)))
    session = ic.OnlineIC(ic.PrivateData(counts, domain), BUDGET, within=0.02, noise=SimulatedNoise(4))
    assert session.mean("age", {"sex": "F"}).error_bound <= 0.02 * 39
    assert session.sum("age").error_bound <= 0.02 * 39 * 60_000


@pytest.mark.parametrize("within", [1e300, expected(1e300), 1e-300, expected(1e-200)])
@pytest.mark.parametrize("budget", [BUDGET, ic.Budget(1.0)])
def test_a_wish_of_any_size_is_answered_or_told_that_it_cannot_be_paid(within, budget):
    session = ic.OnlineIC(DATA, budget, noise=SimulatedNoise(0))
    answers = [session.answer(STREAM[0], within=within), *session.answer_many(STREAM[1:4], within=within)]
    small = not within >= 1.0 if isinstance(within, float) else within.radius < 1.0
    assert all((one.reason == "budget") == small for one in answers)


def test_a_repeat_stands_for_no_more_of_a_statement_than_its_bound_may_fail_with():
    """Of twelve answers, each wrong with beta, a statement that all hold at once may not be made."""
    session = opened()
    questions = [ic.where(a=a) for a in range(12)]
    for question in questions:
        session.answer(question, within=0.02)
    count = len(kinds(session, Single))
    answers = session.answer_many(questions, within=Within(0.02, parts=12))
    assert all(one.error_bound <= 0.02 for one in answers)
    assert len(kinds(session, Single)) > count or kinds(session, BoughtTables)
    before = session.account.spent
    session.answer_many(questions, within=0.02)
    session.answer_many(questions, within=Within(0.02, parts=12))
    assert session.account.spent == before


def test_a_call_whose_numbers_cost_more_than_is_left_is_bought_as_tables():
    session = opened()
    answers = session.answer_many(random_stream(DOMAIN, 600, 5), within=0.01)
    assert sum(one.error_bound <= 0.01 for one in answers) > 550
    assert kinds(session, BoughtTables)


def test_the_bound_of_a_call_has_what_a_private_n_may_be_off_by():
    """It was drawn before, and is no part of the noise that is fresh."""
    data = ic.PrivateData(COUNTS, DOMAIN, neighbours="add-remove", n_at_most=100_000)
    session = ic.OnlineIC(data, BUDGET, noise=SimulatedNoise(0))
    answers = session.answer_many([~ic.where(a=a, b=b) for a in range(12) for b in "uvw"], within=0.01)
    slack = session.n_bound / session.n
    assert kinds(session, BoughtTables)
    assert all(one.status == "repeat" for one in answers)  # what n takes of the wish was planned
    assert all(0.01 >= one.error_bound >= 1.9 * one.standard_error + 0.8 * slack for one in answers)


def test_a_test_is_paid_by_what_was_reserved_for_it_and_not_by_what_came_in_between(monkeypatch):
    ledger = MemoryLedger()
    session = opened(within=0.05, questions=[("a", "b"), ("c", "d")], ledger=ledger)
    guard = type(session._loop.core.read_guard)
    run, tested = guard.run, []

    def handled(self, private, *standing):
        if not tested and private.func.__name__ == "_measure_within":
            tested.append(len(ledger))
            ledger.reserve(attrs.evolve(ledger.reserved, amount=ledger.reserved.amount / 1000))
        return run(self, private, *standing)

    monkeypatch.setattr(guard, "run", handled)
    with pytest.raises(SessionStateError, match="one call at a time"):
        [session.answer(query) for query in random_stream(DOMAIN, 400, 8)]
    assert tested
    assert not any(isinstance(one, Certified | Hard) for one in ledger.records(tested[0]))


def test_a_session_whose_tables_are_settled_goes_on_after_a_call_has_bought_others(tmp_path):
    path, data = tmp_path / "a.db", ic.PrivateData(COUNTS, DOMAIN, neighbours="add-remove", n_at_most=100_000)
    questions = [ic.where(a=a, b=b) for a in range(12) for b in "uvw"]
    with ic.OnlineIC(data, BUDGET, ledger=path, table="t") as session:
        told = [one.value for one in session.answer_many(questions, within=0.02)]
        assert kinds(session, BoughtTables)
    with ic.OnlineIC.resume(path, data) as session:
        assert [session.answer(one, within=0.02).value for one in questions] == told
