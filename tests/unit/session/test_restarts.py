"""What a restart costs a session that keeps a threshold, what it leaves as it was, what is said before."""

import math
import os
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.audit import verified
from onlineic.cli import main
from onlineic.datasets import adult5, adult5_domain
from onlineic.errors import InvalidParameterError
from onlineic.ledger import Forfeited, Hard, read
from onlineic.plan import DemandPurchases, Spending, Spent, session_plan
from support.ledgers import DOMAIN, quick_folder, table

MOVED = {"spent", "hard_left", "restarts_left", "error_bound", "asked", "easy"}
EASY = [ic.where(a=ic.between(0, low), b=one) for low in range(5) for one in range(4)]


@pytest.fixture
def path():
    with quick_folder() as folder:
        yield folder / "census.db"


@pytest.fixture(scope="module")
def adult():
    return ic.PrivateData.from_counts(*adult5(), adult5_domain())


def opened(path, data=None, **more):
    """A pure session that keeps one threshold, too high for its tests to fire."""
    settings = {"release": "answer", "hard_answers": 4, "threshold": 0.9, "max_queries": 500} | more
    return ic.OnlineIC(data or table(), ic.Budget(1.0), ledger=path, table="t", **settings)


def asked_and_closed(session, query):
    """Test one query, close, and return what the session said of itself before."""
    assert session.answer(query).status == "easy"
    said = session.statistics()
    session.close()
    return said


def test_a_restart_without_a_hit_keeps_threshold_price_and_bound_of_one_answer(path, adult):
    rule = DemandPurchases(rent=0)  # tests come with the first question
    session = ic.OnlineIC(adult, ic.Budget(1.0), ledger=path, table="t", max_queries=1000, purchases=rule)
    session.answer(ic.where(age=30))
    question = ic.where(age=31, sex="Male", race="White")
    first, told = session.statistics(), session.explain(question)
    for age in range(40, 43):
        session.close()
        session = ic.OnlineIC.resume(path, adult)
        session.answer(ic.where(age=age))
        now, again = session.statistics(), session.explain(question)

        assert 0 == now.hard
        assert (now.threshold, now.alpha) == (first.threshold, first.alpha)
        assert (again.bound_easy, again.bound_hard) == (told.bound_easy, told.bound_hard)
        assert math.isfinite(now.error_bound)
        assert now.spent < 1.0
    session.close()

    assert verified(read(path)).whole


def test_a_restart_costs_the_start_of_a_run_if_something_was_tested_and_else_nothing(path):
    session = opened(path)
    start = session.plan.sparse.start_charge().amount
    for place in range(3):
        before = asked_and_closed(session, EASY[place])
        session = ic.OnlineIC.resume(path, table())
        now = session.statistics()
        forfeited = [record for record in session.transcript if isinstance(record, Forfeited)]

        assert [start] * (place + 1) == [record.charge.amount for record in forfeited]
        assert before.restarts_left - 1 == now.restarts_left
        assert before.hard_left >= now.hard_left
        session.close()
        session = ic.OnlineIC.resume(path, table())

        assert now.restarts_left == session.statistics().restarts_left
    session.close()


def test_the_rest_pays_for_as_many_restarts_as_is_said_and_for_no_more(path):
    session = opened(path)
    said = session.statistics().restarts_left
    assert session.explain(EASY[0]).restarts_left == said
    assert f"{said:,}: each costs" in str(session.summary())
    assert f"{said:,}: each costs" in session.explain(EASY[0])._repr_html_()
    for place in range(said):
        asked_and_closed(session, EASY[place])
        session = ic.OnlineIC.resume(path, table())

    assert 0 == session.statistics().restarts_left
    assert session.statistics().hard_left >= 1
    asked_and_closed(session, EASY[said])
    session = ic.OnlineIC.resume(path, table())

    assert 0 == session.statistics().hard_left
    session.close()


@pytest.mark.parametrize("sparse", ["exponential", "laplace"])
def test_planned_restarts_leave_the_hard_answers_as_they_were(sparse, path):
    settings = {"sparse": sparse, "restarts": 3}
    session = opened(path, **settings)
    planned = session.statistics().hard_left
    left = []
    for place in range(5):
        asked_and_closed(session, EASY[place])
        session = ic.OnlineIC.resume(path, table())
        left.append(session.statistics().hard_left)

    assert session.plan.hard_answers == 4
    assert [planned] * 3 == left[:3]
    assert planned >= 4
    assert planned > left[3] > left[4]
    session.close()


def test_planned_restarts_are_no_hits_that_are_paid_before(path):
    """What is set aside for them is not spent on more hits than were planned."""
    session = opened(path, restarts=20, threshold=0.0001, max_queries=60)
    answers = [session.answer(query) for query in EASY]
    aside = 20 * session.plan.sparse.restart_price()
    paid = sum(record.charge.amount for record in session.transcript if isinstance(record, Hard))

    assert "untested" in {answer.status for answer in answers}
    assert paid <= session.plan.sparse.account().capacity - aside
    session.close()


def test_a_certificate_survives_the_restarts_that_were_planned_and_no_other(path):
    settings = {
        "certify": 0.3,
        "hard_answers": None,
        "threshold": None,
        "release": None,
        "purchases": ic.TestsOnly(),
    }
    session = ic.OnlineIC(
        table(), ic.Budget(4.0), ledger=path, table="t", restarts=1, max_queries=100, **settings
    )
    certain = []
    for place in range(3):
        bound = session.plan.error_bound
        said = asked_and_closed(session, EASY[place])
        certain.append((said.certified, said.error_bound >= bound))
        session = ic.OnlineIC.resume(path, table())
    session.close()

    assert [(True, True), (True, True), (False, True)] == certain


@pytest.mark.parametrize(("threshold", "part"), [(0.9, 0.05), (None, 0.9)])
def test_the_thresholds_of_all_runs_share_beta_once(threshold, part, path, monkeypatch):
    """By the exact law: the noise of some run leaves its part of the bound with its share of beta at most."""
    # a planned threshold lets one test in five thousand fire: not these thirty
    monkeypatch.setattr(os, "urandom", np.random.default_rng(5).bytes)
    flat = table(np.full(DOMAIN.shape, 10**5))
    session = opened(path, flat, restarts=40, threshold=threshold)
    plan, n = session.plan, session.n
    scale, unit = float(plan.sparse.threshold_scale), n << plan.sparse.grid_bits
    excesses, weights = [], np.random.default_rng(0).integers(0, 2, (30, *DOMAIN.shape)).astype(float)
    for place in range(30):
        bound = asked_and_closed(session, ic.dense(weights[place]))
        excesses.append(bound.error_bound * unit - plan.sparse.threshold)
        session = ic.OnlineIC.resume(path, flat)
        coming = session.statistics().error_bound  # of the run that begins, before its first test
        assert coming > bound.error_bound
    session.close()
    failing = [math.exp(-excess / scale) for excess in excesses]

    assert excesses == sorted(excesses)
    assert 0.9 * part * plan.beta < sum(failing) <= part * plan.beta
    assert len(failing) * failing[0] > 10 * part * plan.beta  # planted: each run at the part of the first
    assert sum(failing) / failing[0] == pytest.approx(sum(2 / (k * (k + 1)) for k in range(1, 31)), rel=1e-6)


def test_the_hard_answers_of_each_run_have_its_part_of_beta(path):
    session = opened(path, restarts=3, threshold=0.0001)
    worst = []
    for place in range(3):
        query = ic.where(a=place)
        assert session.answer(query).status == "hard"
        worst.append(session.statistics().error_bound)
        session.close()
        session = ic.OnlineIC.resume(path, table())
    session.close()
    plan = session.plan
    payable = math.ceil(plan.sparse.account().capacity / plan.sparse.price(query.bind(DOMAIN)).amount)
    expected = [
        plan.sparse.hard_radius(query.bind(DOMAIN), 0.1 * plan.beta * share, payable, plan.max_queries)
        for share in (1 / 2, 1 / 6, 1 / 12)
    ]

    assert worst == pytest.approx(expected)


def test_a_session_in_memory_has_all_of_beta_for_its_one_threshold(path):
    settings = {"release": "answer", "hard_answers": 4, "threshold": 0.9, "max_queries": 500}
    memory = ic.OnlineIC(table(), ic.Budget(1.0), **settings)
    memory.answer(EASY[0])
    with opened(path) as session:
        session.answer(EASY[0])

        assert memory.statistics().error_bound < session.statistics().error_bound
    assert memory.statistics().restarts_left is None


def test_pay_per_hit_tests_are_restarted_for_nothing(path):
    session = ic.OnlineIC(table(), ic.Budget(1.0, 1e-9), ledger=path, table="t", restarts=1000)

    assert session.statistics().restarts_left is None
    assert session.plan.sparse == session_plan(DOMAIN, session.n, ic.Budget(1.0, 1e-9)).sparse
    assert "restarts left" not in str(session.summary())
    session.close()


def test_prices_stay_until_the_first_hit_and_fall_with_what_is_left_of_them():
    plan = session_plan(DOMAIN, 60_000, ic.Budget(1.0))
    spending, capacity = plan.spending, plan.sparse.account().capacity
    start = plan.sparse.restart_price()
    restarted = Spent(capacity - plan.hit_price - start, restarts=5)
    poorer = attrs.evolve(restarted, amount=restarted.amount + plan.hit_price / 2)

    assert spending.at(restarted) is plan.sparse
    assert spending.at(attrs.evolve(restarted, hit=True)) is not plan.sparse
    hit = ic.marginal("a").bind(DOMAIN).partition
    price = spending.at(poorer).price(hit).amount
    assert 0.9 * (plan.hit_price / 2) < price <= plan.hit_price / 2  # all that is left, but for the start


def test_more_runs_leave_less_for_each_threshold_and_the_same_for_all_of_it():
    plan = session_plan(DOMAIN, 60_000, ic.Budget(1.0), release="answer", hard_answers=9, restarts=11)
    sparse = plan.sparse
    query = ic.where(a=1).bind(DOMAIN)
    hits = math.ceil(9 * 1.05)

    assert 12 * sparse.restart_price() + hits * sparse.price(query).amount <= Fraction(1)
    assert 12 * sparse.restart_price() + (hits + 1) * sparse.price(query).amount > Fraction(1)
    assert Spending(sparse, restarts=11).set_aside(Spent(restarts=4)) == 7 * sparse.restart_price()


@pytest.mark.parametrize("restarts", [-1, 1.5, "two", None, True])
def test_a_number_of_restarts_that_is_none_is_refused(restarts, path):
    with pytest.raises(InvalidParameterError, match="restarts must be"):
        opened(path, restarts=restarts)
    assert not path.exists()


def test_the_command_line_plans_restarts_and_tells_what_is_left(path, tmp_path, capsys):
    domain, rows = tmp_path / "d.json", tmp_path / "t.csv"
    domain.write_text('{"sex": {"labels": ["F", "M"]}}')
    question = tmp_path / "q.jsonl"
    question.write_text('{"sex": "F"}')
    rows.write_text("sex\n" + "F\nM\n" * 500)
    asked = ["ask", "--csv", str(rows), "--domain", str(domain), "--epsilon", "1", "--hard-answers", "2"]
    asked += ["--ledger", str(path), "--table", "t", "--restarts", "2", str(question)]
    for _ in range(2):
        assert 0 == main(asked)
        capsys.readouterr()

    assert 2 == read(path).beginning["settings"]["restarts"]
