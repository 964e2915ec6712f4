"""Tables that come with the first question, and what is bought after them by what is asked."""

import itertools
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.audit import verified
from onlineic.data import PrivateData
from onlineic.errors import InvalidParameterError, LedgerMismatchError, SessionSealedError
from onlineic.ledger import Easy, EasyBatch, Hard, MemoryLedger, Opened, read
from onlineic.ledger.settings import settings_to_json
from onlineic.noise import SimulatedNoise
from onlineic.plan import DemandPurchases, Facts, FirstChoices, demand, session_plan
from onlineic.plan.announced import Announcement
from onlineic.plan.first_tables import FirstTables
from onlineic.session import durable, replay
from onlineic.session.durable import KNOWN
from onlineic.session.loop import Loop
from support.cores import replanned, tables_of, with_loop
from support.ledgers import quick_folder

pytestmark = pytest.mark.usefixtures("pairs_first")
DOMAIN = ic.Domain.of(a=12, b=5, c=4, d=["x", "y", "z"])
GENERATOR = np.random.default_rng(8)
COUNTS = GENERATOR.multinomial(16_000, GENERATOR.dirichlet(np.full(DOMAIN.size, 0.3))).reshape(DOMAIN.shape)
BUDGET = ic.Budget(1.0, 1e-9)
JOINT = [
    ic.where(a=ic.between(low, low + 4), b=ic.between(0, high), c=code)
    for low, high, code in itertools.product((0, 2, 5), (1, 3), (0, 2))
]
PAIRS = [
    ic.where(a=ic.between(low, low + width), b=code)
    for low in range(5)
    for width in range(1, 5)
    for code in range(5)
]
ALL = ic.where(a=ic.between(0, 11))  # a constant


def opened(seed=1, counts=COUNTS, **settings):
    return ic.OnlineIC(PrivateData(counts, DOMAIN), BUDGET, noise=SimulatedNoise(seed), **settings)


def tables(session):
    return [record for record in session.transcript if isinstance(record, Opened)]


def questions_before(session, record):
    """How many questions were tested before a record."""
    records = list(session.transcript)
    tested = records[: records.index(record)]
    batches = sum(len(one.queries) for one in tested if isinstance(one, EasyBatch))
    return batches + sum(isinstance(one, Easy | Hard) for one in tested)


def test_after_the_first_tables_an_instalment_comes_each_time_that_four_times_as_many_were_asked():
    session = opened()
    for question in JOINT + PAIRS:
        session.answer(question)
    first, *later = tables(session)

    assert [questions_before(session, one) for one in later] == [4, 16, 64]
    assert first.charge == session.plan.first_tables.charge
    assert all(one.charge.amount > 0 for one in later)
    planned = session.plan.spending.bought
    assert first.charge.amount < sum(one.charge.amount for one in tables(session)) <= planned
    more = [ic.where(a=code, d=one, c=two) for code in range(12) for one in "xyz" for two in range(4)]
    session.answer_many(more)
    session.answer(ic.where(a=1, b=1, d="x"))
    spent = sum(one.charge.amount for one in tables(session))
    assert planned - session.plan.purchases.first.later / 50 <= spent <= planned


def test_later_tables_are_of_attributes_that_were_asked():
    asked = [ic.where(a=low, b=code) for low in range(12) for code in range(5)]
    session = opened()
    session.answer_many(asked)
    session.answer(PAIRS[3])
    later = tables(session)[1:]
    blocks = dict.fromkeys([(0, 1)], 0.0)
    for record in later:
        for one in record.measurements:
            held = set(one.target.axes)
            blocks[one.target.axes] = blocks.get(one.target.axes, 0.0) + one.scale**-2.0
            assert held & {0, 1}  # nobody asked of c or d
    assert blocks[(0, 1)] == max(blocks.values())


def test_a_batch_is_heard_before_its_first_question_is_answered():
    session = opened()
    session.answer_many(JOINT + PAIRS)
    first, later = tables(session)

    assert 0 == questions_before(session, later)
    assert len(later.heard) == len({one.bind(DOMAIN).key for one in JOINT + PAIRS})
    assert first.charge == session.plan.first_tables.charge


def test_what_is_bought_is_worked_out_from_the_record_alone():
    session = opened()
    session.answer_many([*PAIRS[:7], *JOINT])
    plan, records, rule = session.plan, list(session.transcript), session.plan.purchases
    asked = rule.start()
    for record in records:
        if isinstance(record, Opened):
            assert rule.holds(record, asked, session.n)
            settled = rule.held_by(record, asked, session.n)
            assert (settled is plan.first_tables) is (asked.predictor is None)
        asked = rule.heard(asked, record)
    assert asked.spent == sum(record.charge.amount for record in tables(session))
    again = replay(records, DOMAIN, plan.update, plan.alpha)

    assert np.array_equal(again.probabilities(), session.hypothesis.probabilities())


def test_bounds_rest_on_the_first_tables_alone():
    session, loop = with_loop(opened)
    answers = [session.answer(one) for one in JOINT[:4]]
    estimates = loop.book.estimates
    session.answer(JOINT[4])

    assert 2 == len(tables(session))
    assert loop.book.estimates is estimates
    told = [session.told(one).error_bound for one in JOINT[:4]]
    assert [one.error_bound for one in answers] == told


def test_an_instalment_that_cannot_be_paid_whole_is_not_bought_and_what_is_left_is_for_hits():
    ledger = MemoryLedger()
    session = opened(ledger=ledger)
    for question in JOINT[:4]:
        session.answer(question)
    account, due = session.account, session.plan.purchases.first.later / 4
    ledger.reserve(attrs.evolve(session.plan.first_tables.charge, amount=account.left - due * 3 / 4))
    ledger.burn()
    for question in JOINT:
        session.answer(question)

    assert session.account.spent <= session.account.capacity
    assert 1 == len(tables(session))


def test_an_interrupt_before_the_record_seals_and_one_before_the_read_is_made_up_for(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    session = opened()
    for question in JOINT[:4]:
        session.answer(question)
    with monkeypatch.context() as patched:
        patched.setattr(MemoryLedger, "reserve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.answer(PAIRS[0])
    assert 1 == len(tables(session))
    assert session.answer(PAIRS[0]).status == "easy"
    assert 2 == len(tables(session))
    assert isinstance(session.transcript[-1], Easy)  # bought before the next question is tested

    session = opened()
    for question in JOINT[:4]:
        session.answer(question)
    before = session.account.spent
    with monkeypatch.context() as patched:
        patched.setattr(FirstTables, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.answer(PAIRS[0])
    assert session.statistics().sealed
    assert before < session.account.spent <= session.plan.spending.bought  # burned
    assert session.answer(JOINT[3]).status == "repeat"
    with pytest.raises(SessionSealedError):
        session.answer(PAIRS[0])


def recorded(folder, asked, name="later.db"):
    """(file, answers) of a session that asked so, one at a time."""
    path = folder / name
    with ic.OnlineIC(PrivateData(COUNTS, DOMAIN), BUDGET, ledger=path, table="made up") as session:
        return path, [session.answer(one).value for one in asked]


@pytest.mark.parametrize("asked", [3, 4, 5])
def test_a_ledger_file_is_gone_on_with_on_either_side_of_an_instalment(asked):
    with quick_folder() as folder:
        path, values = recorded(folder, JOINT[:asked])
        with ic.OnlineIC.resume(path, PrivateData(COUNTS, DOMAIN)) as session:
            values += [session.answer(one).value for one in JOINT[asked:]]
            assert 2 == len(tables(session))
            assert values[4:] == [session.answer(one).value for one in JOINT[4:]]
        report = verified(read(path))

    assert report.whole, report.problems
    assert (0, 0.0) == (report.differing, report.largest)


def test_tables_that_other_questions_would_have_bought_are_found_in_the_record(monkeypatch):
    """Planted: the instalment is chosen by a private count, and a reader of the record sees that it is."""
    truly = DemandPurchases.next

    def peeking(self, facts):
        if COUNTS[0, 0, 0, 0] < 40 and facts.heard.predictor is not None:
            facts = attrs.evolve(facts, heard=attrs.evolve(facts.heard, asked=facts.heard.asked[:1] * 4))
        return truly(self, facts)

    with quick_folder() as folder:
        with monkeypatch.context() as patched:
            patched.setattr(DemandPurchases, "next", peeking)
            path, _ = recorded(folder, [*JOINT[:3], *PAIRS[:3]])
        report = verified(read(path))
        assert any("later tables that the plan does not buy" in problem for problem in report.problems)


def test_first_tables_of_another_plan_are_found():
    session = opened()
    session.answer_many(JOINT)
    plan, (first, second) = session.plan, tables(session)
    rule, start = plan.purchases, plan.purchases.start()

    assert rule.held_by(first, start, session.n) == plan.first_tables
    assert rule.held_by(second, start, session.n) is None
    assert not rule.holds(second, start, session.n)
    after = rule.heard(start, first)
    assert rule.held_by(first, after, session.n) is None
    assert rule.holds(second, after, session.n)


def test_a_session_that_begins_with_all_cells_has_no_later_tables():
    weights = GENERATOR.integers(0, 2, DOMAIN.shape).astype(float)
    session = opened()
    session.answer_many([ic.dense(weights), *JOINT, *PAIRS])
    (record,) = tables(session)

    assert record.measurements[0].target == session.plan.purchases.first.dense.targets[0]
    assert record.charge.amount == session.plan.spending.bought


def planned(domain=DOMAIN, n=16_000, budget=BUDGET, **settings):
    first = tables_of(session_plan(domain, n, budget, **settings), "first")
    return 0 if first is None else first.later


@pytest.mark.parametrize(
    "settings",
    [
        {"budget": ic.Budget(1.0)},
        {"questions": 1},
        {"domain": ic.Domain.of(a=12, b=50)},
        {"threshold": 0.01},
        {"purchases": ic.TestsOnly()},
        {"release": "answer"},
        {"questions": Announcement(dense=True)},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_nothing_is_kept_back_where_nothing_is_gained(settings):
    assert 0 == planned(**settings)


@pytest.mark.parametrize("questions", [None, 99, 10_000])
def test_a_tenth_of_all_purchases_is_kept_back(questions):
    plan = session_plan(DOMAIN, 16_000, BUDGET, questions=questions)
    capacity, first = plan.sparse.account().capacity, plan.purchases.first
    whole = first.first.charge.amount + first.later

    assert plan.spending.bought == first.planned == whole <= Fraction(9, 10) * capacity
    assert Fraction(99, 1000) < first.later / whole < Fraction(101, 1000)


def test_what_is_kept_is_a_number_of_the_account():
    first = session_plan(DOMAIN, 16_000, BUDGET).first_tables
    with pytest.raises(InvalidParameterError, match="later must be"):
        FirstChoices(first, later=-1)
    with pytest.raises(InvalidParameterError, match="later must be"):
        FirstChoices(first, later="much")


def test_a_memory_ledger_of_another_plan_is_refused():
    ledger = MemoryLedger()
    session = opened(ledger=ledger)
    session.answer_many(JOINT)
    assert Loop(DOMAIN, session.n, session.plan, ledger, private=False).bought()
    other = session_plan(DOMAIN, session.n, ic.Budget(0.9, 1e-9)).purchases.first
    with pytest.raises(LedgerMismatchError):
        Loop(DOMAIN, session.n, replanned(session.plan, first=other), ledger, private=False).bought()


class Sly(FirstChoices):
    """Says one thing to a total, and buys another."""


class SlyTables(FirstTables):
    """Looks like tables."""


def test_no_subclass_stands_for_what_is_released_first():
    """A total draws by what the choices say that they save."""
    tables = session_plan(DOMAIN, 16_000, BUDGET).first_tables
    parts = (tables.targets, tables.scales, tables.charge, tables.pure, tables.first)
    with pytest.raises(InvalidParameterError, match="must be FirstTables, got a SlyTables"):
        FirstChoices(SlyTables(*parts))
    with pytest.raises(InvalidParameterError, match="first must be a FirstChoices or None, got a Sly"):
        DemandPurchases(first=Sly(tables))


def test_ranges_of_another_law_are_refused():
    plan = session_plan(ic.Domain.of(x=500), 20_000, BUDGET)
    tables = plan.first_tables
    scales = tuple(1_000 * scale for scale in tables.scales)
    other = attrs.evolve(tables, pure=not tables.pure, first=None, scales=scales)
    with pytest.raises(InvalidParameterError, match="ranges must have noise of the law of first"):
        FirstChoices(tables, ranges=other)


def test_first_tables_of_another_account_are_refused_before_anything_is_paid():
    first = session_plan(DOMAIN, 16_000, ic.Budget(1.0)).purchases.first
    with pytest.raises(InvalidParameterError, match="priced for the account of this session"):
        opened(purchases=DemandPurchases.of(first=first))


def test_a_rule_that_listens_is_written_as_by_versions_without_first_tables():
    held = settings_to_json(DemandPurchases(), KNOWN)["fields"]

    assert "first" not in held


def test_after_first_tables_that_were_burned_no_others_take_their_place(monkeypatch):
    """They may be paid as the first release, after which nothing but Gaussian tables and tests may come."""

    def interrupted(*_):
        raise KeyboardInterrupt

    session = opened(hard_answers=100)  # the price of whose hits would pay tables once more
    with monkeypatch.context() as patched:
        patched.setattr(FirstTables, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.answer(PAIRS[0])
    rule, account = session.plan.purchases, session.account
    assert rule.first.tables[0].first is not None
    facts = Facts(DOMAIN, session.n, account, session.plan.sparse.neighbours, rule.start(), ())
    asked = [ic.dense(GENERATOR.integers(0, 2, DOMAIN.shape).astype(float)), JOINT[0]]

    assert rule.next(facts) is None
    for question in asked:
        assert rule.next(attrs.evolve(facts, questions=(question.bind(DOMAIN),))) is None


def test_a_batch_of_other_rules_is_no_forgery(monkeypatch):
    with quick_folder() as folder:
        with monkeypatch.context() as patched:
            patched.setattr(durable, "RULES", "others")
            path = folder / "batch.db"
            with ic.OnlineIC(PrivateData(COUNTS, DOMAIN), BUDGET, ledger=path, table="made up") as session:
                session.answer_many(JOINT)
                assert len(tables(session)[0].heard) == len(JOINT)
        assert () == verified(read(path)).problems


def test_tests_before_the_first_tables_are_found(monkeypatch):
    """Planted: the session never asks what to buy, and bounds count on what it would have bought."""
    with quick_folder() as folder:
        with monkeypatch.context() as patched:
            patched.setattr(DemandPurchases, "next", lambda *_: None)
            path, _ = recorded(folder, PAIRS[:3])
        report = verified(read(path))

    assert any("a test before first tables that were due" in problem for problem in report.problems)


def test_a_repeat_before_a_question_keeps_no_purchase_from_it():
    """Planted once: what stood first in a call was asked for, though it was a repeat."""
    generator, repeated, hard = np.random.default_rng(8), ic.where(a=ic.between(0, 3)), 0
    counts = generator.multinomial(400_000, generator.dirichlet(np.full(DOMAIN.size, 0.3)))
    # most is left for a question that is publicly hard
    rule = DemandPurchases(after=(1, 200), parts=(Fraction(1, 20), Fraction(1)))
    asked = [ic.where(d="x"), ic.where(c=2), ic.where(b=2, c=3), ic.where(b=2, d="x")]
    with quick_folder() as folder:
        path, data = folder / "repeats.db", PrivateData(counts.reshape(DOMAIN.shape), DOMAIN)
        settings = {"ledger": path, "table": "t", "purchases": rule}
        session, loop = with_loop(ic.OnlineIC, data, BUDGET, **settings)
        with session:
            session.answer(repeated)
            for place, one in enumerate(asked):
                hard += loop.core.purchases.next((session.bind(one),)) is not None
                session.answer_many([ic.where(a=ic.between(1, 4 + place)), repeated, one])
        assert hard > 0
        assert () == verified(read(path)).problems


def test_tables_that_cost_next_to_nothing_are_not_bought_again_and_again(monkeypatch):
    """Planted: noise so wide that most of what is due is never spent, and stays due."""
    least = demand.least_gaussian
    monkeypatch.setattr(demand, "least_gaussian", lambda order, most, near: least(order, most / 10**4, near))
    session = opened()
    for question in [*JOINT, *PAIRS[:10]]:
        session.answer(question)

    assert 1 == len(tables(session))
