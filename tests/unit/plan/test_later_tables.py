"""The second instalment of tables: bought once the questions tell which, as the record shows."""

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
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.plan.announced import Announcement
from onlineic.plan.first_tables import FirstTables
from onlineic.plan.later_tables import Asked, LaterTables
from onlineic.queries import marginal
from onlineic.session import replay
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


def questions(records):
    """Queries that were tested, in order."""
    found = []
    for record in records:
        if isinstance(record, EasyBatch):
            found += list(record.queries)
        elif isinstance(record, Easy | Hard):
            found.append(record.query)
    return found


def test_five_questions_of_three_attributes_buy_all_triples_of_their_attributes():
    session = opened()
    session.answer_many([*PAIRS[:3], *JOINT[:4], ALL, JOINT[0], PAIRS[0]])
    assert 1 == len(tables(session))
    session.answer(JOINT[4])
    assert 1 == len(tables(session))
    session.answer(JOINT[4])  # known already: what the questions have told is bought before it
    first, later = tables(session)
    targets = [one.target for one in later.measurements]

    assert [target.axes for target in targets] == [(0, 1, 2)]  # nobody asked of d with two others
    assert targets[0].shape == (8, 5, 4)
    assert isinstance(session.transcript[-1], Opened)
    assert later.charge == session.plan.purchases.later.charge
    assert first.charge.amount + later.charge.amount == session.plan.spending.bought
    session.answer_many([ic.where(a=1, b=code, d="x") for code in range(5)] + JOINT)
    assert 2 == len(tables(session))


def test_all_triples_of_the_attributes_that_were_joined_are_bought():
    session = opened()
    session.answer_many([ic.where(a=3, b=1, d="x"), ic.where(a=3, c=1, d="x"), *JOINT[:3]])
    session.answer(JOINT[0])
    targets = [one.target for one in tables(session)[1].measurements]

    assert [target.axes for target in targets] == [*itertools.combinations(range(4), 3)]
    assert len({one.scale for one in tables(session)[1].measurements}) == 1


def test_cross_tables_count_as_one_question_each():
    session = opened()
    for names in ("abc", "abd", "acd", "bcd", "abcd"):
        assert 1 == len(tables(session)) or names == "abc"
        session.answer(marginal(*names))
    session.answer(marginal("a"))

    assert 2 == len(tables(session))


def test_fifty_questions_without_buy_the_pairs_once_more():
    session = opened()
    session.answer_many([*JOINT[:4], *PAIRS])
    first, later = tables(session)
    pairs = [one.target for one in first.measurements if len(one.target.axes) > 1]

    assert [one.target for one in later.measurements] == pairs
    records = list(session.transcript)
    assert len(questions(records[: records.index(later)])) == session.plan.purchases.later.patience == 50
    session.answer_many(JOINT)
    assert 2 == len(tables(session))


@pytest.mark.parametrize(
    "asked", [[*PAIRS[:3], *JOINT, *PAIRS], PAIRS, [JOINT[0]] * 9 + [ALL] + JOINT + JOINT]
)
def test_a_batch_buys_where_one_question_at_a_time_does(asked):
    together, alone = opened(), opened()
    batch, singles = together.answer_many(asked), [alone.answer(each) for each in asked]

    assert [one.value for one in batch] == [one.value for one in singles]
    assert [one.status for one in batch] == [one.status for one in singles]
    assert [one.error_bound for one in batch] == [one.error_bound for one in singles]
    assert together.statistics() == alone.statistics()
    assert questions(together.transcript) == questions(alone.transcript)
    assert 2 == len(tables(together))


def test_what_is_bought_is_worked_out_from_the_record_alone():
    session = opened()
    session.answer_many([*PAIRS[:7], *JOINT])
    plan, records = session.plan, list(session.transcript)
    asked = Asked()
    for record in records:
        if isinstance(record, Opened):
            made = plan.purchases.held_by(record, asked, session.n)
            assert made is not None
            assert made.charge == record.charge
            assert made.deviations(session.n) == tuple(one.scale for one in record.measurements)
        asked = plan.purchases.later.behind(asked, record)
    again = replay(records, DOMAIN, plan.update, plan.alpha)

    assert np.array_equal(again.probabilities(), session.hypothesis.probabilities())


def test_bounds_rest_on_the_first_tables_alone():
    session, loop = with_loop(opened)
    answers = session.answer_many([*PAIRS[:7], *JOINT[:4]])
    family, estimates = session.statistics().family, loop.book.estimates
    session.answer(JOINT[4])

    assert loop.book.estimates is estimates
    assert session.statistics().family == family
    assert [one.error_bound for one in answers] == [
        one.error_bound for one in session.answer_many([*PAIRS[:7], *JOINT[:4]])
    ]


def test_an_instalment_that_hits_have_used_up_is_never_bought():
    ledger = MemoryLedger()
    session = opened(ledger=ledger)
    session.answer_many(JOINT[:4])
    account, later = session.account, session.plan.purchases.later
    ledger.reserve(attrs.evolve(later.charge, amount=account.left - later.charge.amount + 1))
    ledger.burn()
    session.answer_many(JOINT)

    assert 1 == len(tables(session))


def test_an_interrupt_before_the_record_seals_and_one_before_the_read_is_made_up_for(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    session = opened()
    session.answer_many(JOINT[:4])
    with monkeypatch.context() as patched:
        patched.setattr(MemoryLedger, "reserve", interrupted)
        session.answer(JOINT[4])
        with pytest.raises(KeyboardInterrupt):
            session.answer(PAIRS[0])
    assert 1 == len(tables(session))
    assert session.answer(PAIRS[0]).status == "easy"
    assert 2 == len(tables(session))
    assert isinstance(session.transcript[-1], Easy)  # bought before the next question is tested

    session = opened()
    session.answer_many(JOINT[:4])
    with monkeypatch.context() as patched:
        patched.setattr(FirstTables, "measure", interrupted)
        session.answer(JOINT[4])
        with pytest.raises(KeyboardInterrupt):
            session.answer(PAIRS[0])
    spent = session.account.spent
    assert session.statistics().sealed
    assert spent == session.plan.spending.bought  # burned
    assert session.answer(JOINT[4]).status == "repeat"
    with pytest.raises(SessionSealedError):
        session.answer(PAIRS[0])


def recorded(folder, asked, name="later.db"):
    """(file, answers) of a session that asked so."""
    path = folder / name
    with ic.OnlineIC(PrivateData(COUNTS, DOMAIN), BUDGET, ledger=path, table="made up") as session:
        return path, [answer.value for answer in session.answer_many(asked)]


@pytest.mark.parametrize("asked", [4, 5, 6])
def test_a_ledger_file_is_gone_on_with_on_either_side_of_the_instalment(asked):
    with quick_folder() as folder:
        path, values = recorded(folder, JOINT[:asked])
        with ic.OnlineIC.resume(path, PrivateData(COUNTS, DOMAIN)) as session:
            values += [answer.value for answer in session.answer_many(JOINT[asked:])]
            assert 2 == len(tables(session))
            assert values == [answer.value for answer in session.answer_many(JOINT)]
        report = verified(read(path))

    assert report.whole, report.problems
    assert (0, 0.0) == (report.differing, report.largest)


def test_tables_that_other_questions_would_have_bought_are_found_in_the_record(monkeypatch):
    """Planted: the instalment is chosen by a private count, and a reader of the record sees that it is."""
    truly = LaterTables.tables

    def peeking(self, asked, first):
        return truly(
            self, attrs.evolve(asked, axes=asked.axes | {3}) if COUNTS[0, 0, 0, 0] < 40 else asked, first
        )

    with quick_folder() as folder:
        with monkeypatch.context() as patched:
            patched.setattr(LaterTables, "tables", peeking)
            path, _ = recorded(folder, JOINT)
        report = verified(read(path))
        assert any("later tables that the plan does not buy" in problem for problem in report.problems)
        with pytest.raises(LedgerMismatchError):
            ic.OnlineIC.resume(path, PrivateData(COUNTS, DOMAIN))


def test_an_instalment_that_comes_early_or_twice_is_found():
    session = opened()
    session.answer_many(JOINT)
    plan, records = session.plan, list(session.transcript)
    later = plan.purchases.later
    first, second = tables(session)
    behind_first = later.behind(Asked(), first)

    assert plan.purchases.held_by(first, Asked(), session.n) == plan.first_tables
    assert plan.purchases.held_by(second, Asked(), session.n) is None
    assert plan.purchases.held_by(second, behind_first, session.n) is None
    assert plan.purchases.held_by(first, behind_first, session.n) is None
    for record in records[records.index(first) + 1 : records.index(second)]:
        behind_first = later.behind(behind_first, record)
    assert plan.purchases.held_by(second, behind_first, session.n) is not None
    assert plan.purchases.held_by(second, later.behind(behind_first, second), session.n) is None


def test_a_session_that_begins_with_all_cells_has_no_later_tables():
    weights = GENERATOR.integers(0, 2, DOMAIN.shape).astype(float)
    session = opened()
    session.answer_many([ic.dense(weights), *JOINT, *PAIRS])
    (record,) = tables(session)

    assert record.measurements[0].target == session.plan.purchases.dense.targets[0]
    assert record.charge.amount == session.plan.spending.bought


def planned(domain=DOMAIN, n=16_000, budget=BUDGET, **settings):
    return tables_of(session_plan(domain, n, budget, **settings), "later")


@pytest.mark.parametrize(
    "settings",
    [
        {"budget": ic.Budget(1.0)},
        {"questions": 99},
        {"n": 4_000},
        {"domain": ic.Domain.of(a=12, b=50)},
        {"domain": ic.Domain.of(dict.fromkeys("abcdefg", 4))},
        {"threshold": 0.01},
        {"purchases": ic.TestsOnly()},
        {"release": "answer"},
        {"questions": Announcement(dense=True)},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_nothing_is_kept_back_where_nothing_is_gained(settings):
    assert planned(**settings) is None


def test_what_is_kept_back_is_a_tenth_of_what_pairs_would_cost():
    plan = session_plan(DOMAIN, 16_000, BUDGET)
    capacity = plan.sparse.account().capacity
    share = plan.purchases.later.charge.amount / capacity

    assert Fraction(7, 100) < share < Fraction(9, 100)
    assert plan.first_tables.charge.amount + plan.purchases.later.charge.amount < Fraction(19, 20) * capacity
    assert plan.purchases.later.first == plan.first_tables.charge.amount


def test_the_charge_must_be_one_of_gaussian_noise():
    charge = planned().charge
    with pytest.raises(InvalidParameterError, match="ticks"):
        LaterTables(attrs.evolve(charge, unit="epsilon", order=None), Fraction(0))


def test_a_memory_ledger_of_another_plan_is_refused():
    ledger = MemoryLedger()
    session = opened(ledger=ledger)
    session.answer_many(JOINT)
    coarser = attrs.evolve(session.plan.purchases.later, parts=4)
    other = replanned(session.plan, later=coarser)
    assert Loop(DOMAIN, session.n, session.plan, ledger, private=False).bought()
    with pytest.raises(LedgerMismatchError):
        Loop(DOMAIN, session.n, other, ledger, private=False).bought()
