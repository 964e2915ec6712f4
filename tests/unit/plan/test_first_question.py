"""Sessions whose first question tells what is bought: pairs, or all cells if it is a dense one; or, of one
long attribute, levels that suit codes or ranges."""

import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import attrs
import numpy as np
import pytest

import onlineic as ic
import onlineic.plan.planning as planning
from onlineic.accounting import Charge
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.errors import SessionSealedError, SessionStateError
from onlineic.ledger import MemoryLedger, Opened, Reserved, SqliteLedger, read
from onlineic.noise import SimulatedNoise
from onlineic.plan import PurchaseRule, session_plan
from onlineic.plan.announced import Announcement
from onlineic.plan.first_tables import FirstTables
from onlineic.queries import Queries, marginal
from onlineic.queries.partitions import one_way
from onlineic.session import replay
from support.cores import tables_of
from support.ledgers import quick_folder
from support.sessions import all_spent, hits

DOMAIN = ic.Domain.of(a=6, b=9, c=8, d=4)  # of fewer cells all would be bought, whatever is asked
GENERATOR = np.random.default_rng(4)
COUNTS = GENERATOR.multinomial(20_000, GENERATOR.dirichlet(np.full(DOMAIN.size, 0.3))).reshape(DOMAIN.shape)
DENSE = [ic.dense(GENERATOR.integers(0, 2, DOMAIN.shape).astype(float)) for _ in range(12)]
NARROW = [ic.where(a=1, b=ic.between(1, 3)), ~ic.where(c=2), ic.where(a=ic.weights([0, 0.2, 1, 1, 0, 0]))]
ALL = ic.where(a=ic.between(0, 5))  # a constant
BUDGETS = pytest.mark.parametrize("budget", [ic.Budget(1.0, 1e-6), ic.Budget(1.0)], ids=["gumbel", "pure"])


def opened(budget, seed=1, **settings):
    noise = {} if "ledger" in settings and not isinstance(settings["ledger"], MemoryLedger) else {
        "noise": SimulatedNoise(seed)
    }  # fmt: skip
    return ic.OnlineIC(PrivateData(COUNTS, DOMAIN), budget, **noise, **settings)


def later_charge(plan):
    return plan.purchases.first.later


def tables(session):
    return [record for record in session.transcript if isinstance(record, Opened)]


@BUDGETS
@pytest.mark.parametrize(
    ("first", "cells"),
    [
        (DENSE[0], True),
        (~DENSE[0], True),
        (NARROW[0], False),
        (NARROW[2], False),
        (marginal("a", "b", "c", "d"), False),
        (ic.dense(np.indices(DOMAIN.shape).sum(axis=0) % 2.0), True),
        (ic.where(a=ic.between(0, 2), b=1) | ic.where(a=ic.between(3, 5), c=2), False),
        (ic.where(a=1) | ic.where(b=2) | ic.where(c=1), False),
        (ic.where(a=1, b=2) | ic.where(b=3, c=1) | ic.where(c=2, d=1), False),
        (ic.where(a=ic.one_of(0, 2, 5), b=1, c=ic.one_of(0, 3)), False),  # a conjunction, of three attributes
    ],
)
def test_the_first_question_tells_what_is_bought_at_one_charge(first, cells, budget):
    session = opened(budget)
    plan = session.plan
    assert (0.0, 0) == (session.statistics().spent, len(session.transcript))
    assert session.answer(ALL).status == "easy"  # needs no test, and tells nothing
    assert 0 == len(session.transcript)
    session.answer(first)
    (record,) = tables(session)
    bought = plan.purchases.first.dense if cells else plan.first_tables

    assert tuple(one.target for one in record.measurements) == bought.targets
    assert tuple(one.scale for one in record.measurements) == bought.deviations(session.n)
    assert plan.purchases.first.dense.charge.amount == plan.spending.bought
    assert record.charge.amount == plan.spending.bought - (0 if cells else later_charge(plan))
    assert (Reserved(record.charge), record) == tuple(session.transcript)[:2]
    session.answer_many([*DENSE, *NARROW])
    assert [record] == tables(session)[:1]
    assert len(tables(session)) == (2 if later_charge(plan) and not cells else 1)
    assert (
        session.statistics().family.size
        == opened(budget, purchases=ic.FixedTables()).statistics().family.size
        or cells
    )


def test_a_session_that_a_total_of_its_table_pays_keeps_the_account_that_was_paid():
    data = PrivateData(COUNTS, DOMAIN)
    data.draw_on(ic.TableBudget(ic.Budget(2.0, 1e-6)))
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-7))
    plan, account = session.plan, session.account
    session.answer(DENSE[0])

    assert plan == session.plan
    assert account.capacity == session.account.capacity
    assert 1 == len(tables(session)[0].measurements)


@BUDGETS
def test_dense_plans_are_pure_tables_of_all_cells_at_the_price_of_pairs(budget):
    plan = session_plan(DOMAIN, 20_000, budget)
    (target,), (scale,) = plan.purchases.first.dense.targets, plan.purchases.first.dense.scales

    assert (DOMAIN.size, True) == (target.blocks, plan.purchases.first.dense.pure)
    assert plan.purchases.first_choices == (plan.first_tables, plan.purchases.first.dense)
    unit = plan.first_tables.charge.amount * (1 if budget.pure else 2.0**-40)
    assert 2 / scale <= (unit if budget.pure else 1.2 * unit + 0.1)


@pytest.mark.parametrize(
    "wish",
    [
        {"purchases": ic.FixedTables()},
        {"questions": Announcement(dense=True)},
        {"prior": ic.Histogram(DOMAIN)},
        {"questions": 3},
        {"certify": 0.2, "questions": 10},
        {"update": ic.MultiplicativeWeights()},
        {"release": "answer"},
    ],
)
def test_a_start_that_is_told_is_not_left_to_the_first_question(wish):
    assert tables_of(session_plan(DOMAIN, 20_000, ic.Budget(1.0, 1e-6), **wish), "dense") is None


@pytest.mark.parametrize(
    ("domain", "n"), [(ic.Domain.of(a=500), 20_000), (ic.Domain.of(a=2, b=2), 10**5), (DOMAIN, 100)]
)
def test_where_all_cells_are_the_start_anyway_or_say_nothing_there_is_no_choice(domain, n):
    assert tables_of(session_plan(domain, n, ic.Budget(1.0, 1e-6)), "dense") is None


@BUDGETS
@pytest.mark.parametrize("order", [1, -1])
def test_a_batch_is_begun_as_one_question_at_a_time(order, budget):
    asked = [ALL, *[*DENSE, *NARROW, marginal("a", "c")][::order]]
    whole, single = opened(budget), opened(budget)
    many = whole.answer_many(asked)
    one = [single.answer(question) for question in asked]

    first, alone = tables(whole)[0], tables(single)[0]
    assert [each.values.tolist() for each in first.measurements] == [
        each.values.tolist() for each in alone.measurements
    ]
    assert first.charge == alone.charge
    assert (DOMAIN.size,) == first.measurements[0].values.shape or order == -1
    if order == 1:  # what is bought later is bought by all of them
        assert [np.asarray(each.value).tolist() for each in many] == [
            np.asarray(each.value).tolist() for each in one
        ]
        assert [each.error_bound for each in many] == [each.error_bound for each in one]
        assert 1 == len(tables(whole)) == len(tables(single))


def test_columns_begin_with_their_first_question_that_is_no_constant():
    batch = Queries.where(DOMAIN, {"a": ([0, 1], [6, 3]), "b": ([0, 1], [5, 3])})
    session = opened(ic.Budget(1.0, 1e-6))
    assert 2 == len(session.answer_many(batch))

    assert len(tables(session)[0].measurements) == len(session.plan.first_tables.targets)


def test_what_is_left_for_hits_is_told_as_if_the_tables_were_bought():
    session, other = opened(ic.Budget(1.0, 1e-6)), opened(ic.Budget(1.0, 1e-6), purchases=ic.FixedTables())

    assert session.statistics().hard_left == other.statistics().hard_left > 0
    told, same = session.explain(NARROW[0]), other.explain(NARROW[0])
    assert (told.hits_left, told.left) == (same.hits_left, same.left)
    assert 0 == len(session.transcript)


@BUDGETS
@pytest.mark.parametrize("question", [DENSE[0], [ALL, DENSE[0], NARROW[0]], lambda s: s.answer(DENSE[0])])
def test_a_dense_first_question_is_explained_by_the_plan_that_it_would_make(question, budget):
    session = opened(budget)
    plan, before = session.plan, (repr(session), session.statistics(), len(session.transcript))
    explained = session.explain(question)
    assert (repr(session), session.statistics(), len(session.transcript)) == before
    assert plan is session.plan
    answer, after = session.answer(DENSE[0]), session.statistics()
    bounds = explained.bound_easy if answer.status == "easy" else explained.bound_hard

    assert answer.error_bound <= bounds
    assert after.spent <= 1.0 - explained.left + explained.at_most + 1e-9
    bought = session.plan.purchases.first.dense.charge.amount / session.plan.sparse.account().capacity
    assert math.isclose(1.0 - bought, explained.left)


def test_the_hypothesis_is_that_of_pairs_if_nothing_was_asked():
    session = opened(ic.Budget(1.0, 1e-6))
    assert "0 asked" in repr(session)
    assert 0 == len(session.transcript)
    fitted = session.hypothesis

    assert not np.allclose(fitted.probabilities(), 1 / DOMAIN.size)
    assert len(session.plan.first_tables.targets) == len(tables(session)[0].measurements)
    session.answer(DENSE[0])
    assert 1 == len(tables(session))


def test_bounds_after_a_dense_start_rest_on_its_own_table():
    session = opened(ic.Budget(1.0, 1e-6))
    truths = [float((question.bind(DOMAIN).weights() * COUNTS).sum() / 20_000) for question in DENSE]
    answers = session.answer_many(DENSE)
    narrow = session.answer(NARROW[0])

    assert all(
        abs(each.value - truth) <= each.error_bound for each, truth in zip(answers, truths, strict=True)
    )
    assert narrow.standard_error is not None
    assert (
        session.statistics().family.size
        == opened(ic.Budget(1.0, 1e-6), questions=Announcement(dense=True)).statistics().family.size
    )
    assert not hits(session) or session.statistics().hard == len(hits(session))


def test_an_interrupt_before_the_record_seals_and_one_behind_it_loses_nothing(monkeypatch):
    commit = MemoryLedger.commit
    for after in (False, True):
        session = opened(ic.Budget(1.0, 1e-6))

        def failing(self, records, after=after):
            if after:
                commit(self, records)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(MemoryLedger, "commit", failing)
            with pytest.raises(KeyboardInterrupt):
                session.answer(DENSE[0])
        if after:
            session.answer(NARROW[0])  # what was bought stands, whatever is asked now
            assert [1] == [len(record.measurements) for record in tables(session)]
        else:
            with pytest.raises(SessionSealedError):
                session.answer(DENSE[0])
            assert all_spent(session) == session.plan.purchases.first.dense.charge.amount


def test_an_interrupt_before_anything_is_reserved_leaves_the_choice_open(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    session = opened(ic.Budget(1.0, 1e-6))
    with monkeypatch.context() as patched:
        patched.setattr(MemoryLedger, "reserve", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.answer(DENSE[0])
    session.answer(NARROW[0])

    assert len(session.plan.first_tables.targets) == len(tables(session)[0].measurements)


def test_a_signal_s_handler_that_asks_while_tables_are_bought_is_refused_and_buys_none(monkeypatch):
    session, refused = opened(ic.Budget(1.0, 1e-6)), []
    reserve = MemoryLedger.reserve

    def interrupted(self, charge):
        if not refused:
            with pytest.raises(SessionStateError, match="nothing was spent") as error:
                session.answer(NARROW[1])
            refused.append(error)
        reserve(self, charge)

    with monkeypatch.context() as patched:
        patched.setattr(MemoryLedger, "reserve", interrupted)
        session.answer(NARROW[0])
    session.answer(NARROW[1])

    assert 1 == len(refused) == len(tables(session))


def test_progress_tells_of_the_opening_when_it_happens():
    told = []
    session = opened(ic.Budget(1.0, 1e-6), progress=lambda *at: told.append(at))
    before = [at for at in told if at[0] == "tables" and at[1]]
    session.answer(DENSE[0])

    assert [] == before
    assert any(at[0] == "tables" and at[1] == at[2] for at in told)


@pytest.mark.parametrize("first", [DENSE[0], NARROW[0]], ids=["dense", "narrow"])
def test_a_ledger_file_keeps_the_choice_and_one_that_was_not_made_stays_open(first):
    with quick_folder() as folder:
        path, data = folder / "ledger.db", PrivateData(COUNTS, DOMAIN)
        opened(ic.Budget(1.0, 1e-6), ledger=path, table="made up").close()
        with ic.OnlineIC.resume(path, data) as session:
            assert 0.0 == session.statistics().spent
            value = session.answer(first).value
        with ic.OnlineIC.resume(path, data) as session:
            assert value == session.answer(first).value
            session.answer_many([*NARROW, *DENSE])
            cells = session.hypothesis.probabilities()
            record, *later = tables(session)
            again = replay(session.transcript, DOMAIN, session.plan.update, session.plan.alpha)
            assert (cells == again.probabilities()).all()
        report = verified(read(path))

    assert () == report.problems
    assert (len(record.measurements) == 1) == (first is DENSE[0]) == (not later)


def test_the_same_stream_in_a_plan_of_either_start_is_charged_alike():
    session, other = opened(ic.Budget(1.0, 1e-6)), opened(ic.Budget(1.0, 1e-6))
    session.answer(DENSE[0])
    other.answer(NARROW[0])
    rows = [
        [record.charge.amount for record in each.transcript if isinstance(record, Reserved)]
        for each in (session, other)
    ]

    assert rows[0][0] == rows[1][0] + later_charge(other.plan) > rows[1][0]
    assert rows[0][1] == rows[1][1]
    assert math.isclose(session.statistics().spent, other.statistics().spent, rel_tol=0.1)
    assert session.plan == other.plan
    assert all(left <= right for left, right in pairwise(sorted(rows[0])))


def test_tables_that_were_burned_in_a_file_are_not_bought_again_if_they_cannot_be_paid(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with quick_folder() as folder:
        path, data = folder / "ledger.db", PrivateData(COUNTS, DOMAIN)
        session = opened(ic.Budget(1.0, 1e-6), ledger=path, table="made up")
        with monkeypatch.context() as patched:
            patched.setattr(SqliteLedger, "commit", interrupt)
            with pytest.raises(KeyboardInterrupt):
                session.answer(DENSE[0])
        session.close()
        with ic.OnlineIC.resume(path, data) as session:
            answers = session.answer_many([DENSE[0], *NARROW])
            assert [] == tables(session)
            assert all_spent(session) >= session.plan.first_tables.charge.amount
        report = verified(read(path))

    assert {one.status for one in answers} <= {"easy", "hard"}
    assert () == report.problems


@BUDGETS
def test_an_answer_before_the_first_tables_does_not_count_what_they_will_cost(budget):
    session = opened(budget)
    constant = session.answer(ALL)

    assert 0 == len(session.transcript)
    assert constant.left == session.statistics().hard_left


@BUDGETS
def test_the_page_of_a_plan_says_what_may_be_bought_in_the_place_of_the_first_tables(budget):
    session = opened(budget)
    session.answer(DENSE[0])
    (bought,) = tables(session)
    (told,) = (line for line in str(session.summary()).splitlines() if line.startswith("first tables"))

    assert 1 == len(bought.measurements) < len(session.plan.first_tables.targets)
    assert "with the first question" in told
    assert "or 1 of all cells where that is a dense question" in told


# -- one long attribute ------------------------------------------------------------------------------------

LONG = ic.Domain.of(x=range(600), of_one=1)
LONG_COUNTS = GENERATOR.multinomial(20_000, GENERATOR.dirichlet(np.full(600, 0.1))).reshape(600, 1)
RANGES = [ic.where(x=ic.between(low, low + 90)) for low in range(0, 500, 60)]
CODES = [ic.where(x=code) for code in (3, 88, 590)]
EVERY = ic.where(x=ic.between(0, 599))  # a constant


def long_session(budget, ledger=None, **settings):
    noise = {} if isinstance(ledger, Path) else {"noise": SimulatedNoise(2)}
    return ic.OnlineIC(PrivateData(LONG_COUNTS, LONG), budget, ledger=ledger, **noise, **settings)


@BUDGETS
@pytest.mark.parametrize(
    ("first", "of_ranges"),
    [
        (RANGES[1], True),
        (~RANGES[1], True),
        (ic.where(x=ic.between(7, 8)), True),
        (ic.where(x=ic.between(0, 1)), True),
        (ic.where(x=ic.one_of(4, 5, 6)), True),
        (ic.where(x=ic.weights([code / 599 for code in range(600)])), True),  # a mean
        (ic.where(x=ic.weights([abs(code - 300) / 300 for code in range(600)])), True),
        (CODES[0], False),
        (~CODES[0], False),
        (ic.where(x=ic.between(1, 599)), False),  # all but a code
        (ic.where(x=ic.one_of(3, 70, 71, 300)), False),
        (ic.where(x=ic.weights([code % 4 / 4 for code in range(600)])), False),
        (ic.dense(np.arange(600).reshape(600, 1) % 2.0), False),
        (marginal("x"), False),
    ],
)
def test_a_first_range_buys_the_levels_that_suit_ranges_at_one_charge(first, of_ranges, budget):
    session = long_session(budget)
    plan = session.plan
    assert (0.0, 0) == (session.statistics().spent, len(session.transcript))
    assert session.answer(EVERY).status == "easy"  # needs no test, and tells nothing
    assert 0 == len(session.transcript)
    session.answer(first)
    (record,) = tables(session)
    bought = plan.purchases.first.ranges if of_ranges else plan.first_tables

    assert tuple(one.target for one in record.measurements) == bought.targets
    assert tuple(one.scale for one in record.measurements) == bought.deviations(20_000)
    assert record.charge == bought.charge
    assert record.charge.amount == plan.spending.bought
    session.answer_many([*RANGES, *CODES])
    assert [record] == tables(session)
    assert plan == session.plan


def test_the_hypothesis_of_one_attribute_is_that_of_levels_for_codes_if_nothing_was_asked():
    session = long_session(ic.Budget(1.0, 1e-9))
    assert not np.allclose(session.hypothesis.probabilities(), 1 / 600)
    session.answer(RANGES[0])
    (record,) = tables(session)

    assert record.charge == session.plan.first_tables.charge


@BUDGETS
@pytest.mark.parametrize("order", [1, -1])
def test_a_batch_of_ranges_and_codes_is_begun_as_one_question_at_a_time(order, budget):
    asked = [EVERY, *[*RANGES, marginal("x"), *CODES][::order]]
    whole, single = long_session(budget), long_session(budget)
    many = whole.answer_many(asked)
    one = [single.answer(question) for question in asked]

    assert [np.asarray(each.value).tolist() for each in many] == [
        np.asarray(each.value).tolist() for each in one
    ]
    assert [each.error_bound for each in many] == [each.error_bound for each in one]
    assert [each.charge for each in tables(whole)] == [each.charge for each in tables(single)]
    wanted = whole.plan.purchases.first.ranges if order == 1 else whole.plan.first_tables
    assert [wanted.charge] == [each.charge for each in tables(whole)]


@BUDGETS
@pytest.mark.parametrize("first", [RANGES[0], CODES[0]], ids=["range", "code"])
def test_a_question_of_one_attribute_is_explained_within_what_it_gets(first, budget):
    session = long_session(budget)
    explained = session.explain(first)
    assert 0 == len(session.transcript)
    answer = session.answer(first)
    bought = session.plan.first_tables.charge.amount / session.plan.sparse.account().capacity

    assert math.isclose(1.0 - bought, explained.left)
    assert answer.error_bound <= (explained.bound_easy if answer.status == "easy" else explained.bound_hard)


@pytest.mark.parametrize("first", [RANGES[0], CODES[0]], ids=["range", "code"])
def test_a_ledger_file_of_one_attribute_keeps_the_choice_and_one_that_was_not_made_stays_open(first):
    with quick_folder() as folder:
        path, data = folder / "ledger.db", PrivateData(LONG_COUNTS, LONG)
        long_session(ic.Budget(1.0, 1e-9), path, table="made up").close()
        with ic.OnlineIC.resume(path, data) as session:
            assert 0.0 == session.statistics().spent
            value = session.answer(first).value
        with ic.OnlineIC.resume(path, data) as session:
            session.answer_many([*CODES, *RANGES])  # what was bought stands, whatever is asked now
            assert value == session.answer(first).value
            (record,) = tables(session)
            plan = session.plan
        report = verified(read(path))

    assert () == report.problems
    assert record.charge == (plan.purchases.first.ranges if first is RANGES[0] else plan.first_tables).charge


def test_a_file_of_a_version_without_the_choice_goes_on_without_it(monkeypatch):
    with quick_folder() as folder:
        path, data = folder / "ledger.db", PrivateData(LONG_COUNTS, LONG)
        with monkeypatch.context() as patched:
            patched.setattr(planning, "ranges_instead", lambda *_: None)
            long_session(ic.Budget(1.0, 1e-9), path, table="made up").close()
        rule = read(path).beginning["plan"]["fields"]["purchases"]["fields"]
        assert rule["first"]["fields"]["ranges"] is None
        with ic.OnlineIC.resume(path, data) as session:
            assert session.plan.purchases.first.ranges is None
            session.answer(RANGES[0])
            (record,) = tables(session)

    assert record.charge == session.plan.first_tables.charge


def test_an_audit_knows_levels_whose_noise_is_not_that_of_their_charge(monkeypatch):
    measure = FirstTables.measure

    def of_codes(ranges, counts, noise, n):
        stated = zip(measure(ranges, counts, noise, n), codes.deviations(n), strict=True)
        return tuple(attrs.evolve(one, scale=scale) for one, scale in stated)

    with quick_folder() as folder:
        path = folder / "ledger.db"
        with long_session(ic.Budget(1.0, 1e-9), path, table="made up") as session:
            codes = session.plan.first_tables
            monkeypatch.setattr(FirstTables, "measure", of_codes)
            session.answer(RANGES[0])
        problems = verified(read(path)).problems

    assert ("record 1: first tables whose noise has another scale than the plan's",) == problems


def test_the_page_of_a_plan_of_one_attribute_says_that_a_range_tells():
    session = long_session(ic.Budget(1.0, 1e-9))
    session.answer(RANGES[0])
    (told,) = (line for line in str(session.summary()).splitlines() if line.startswith("first tables"))

    assert "with the first question" in told
    assert "coarse ones with less noise where that is a range" in told


@attrs.frozen
class SaidAndBought(PurchaseRule):
    """Says that one release of tables is settled, and names another."""

    said: FirstTables
    bought: FirstTables

    @property
    def first_choices(self):
        return (self.said,)

    def planned(self, account):
        return self.said.charge.amount

    def start(self):
        return 0

    def heard(self, so_far, record):
        return so_far + isinstance(record, Opened)

    def next(self, facts):
        return None if facts.heard else self.bought


def test_tables_other_than_those_that_a_rule_said_bound_no_answer():
    domain, budget = ic.Domain.of(a=range(8)), ic.Budget(1.0)
    account = session_plan(domain, 40_000, budget, purchases=ic.TestsOnly()).sparse.account()

    def tables(part):
        charge = Charge(account.capacity * part, "tables", account.unit, account.order)
        return FirstTables((one_way(domain, 0),), (2 / charge.amount,), charge, True)

    said, less = tables(Fraction(1, 2)), tables(Fraction(1, 100))
    found = []
    for rule in (SaidAndBought(said, said), SaidAndBought(said, less)):
        data = ic.PrivateData(np.full(8, 5_000), domain)
        session = ic.OnlineIC(data, budget, purchases=rule, noise=SimulatedNoise(3))
        found.append(session.answer(ic.where(a=1)))
    assert found[0].error_bound < 0.01
    assert found[0].estimate is not None
    assert found[1].estimate is None
    assert found[1].error_bound > 2 * found[0].error_bound
