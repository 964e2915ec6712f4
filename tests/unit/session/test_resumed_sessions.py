"""Sessions with a ledger file: what is restored, what a restart costs, and what is refused by name."""

import math
import os
import shutil
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import (
    InvalidParameterError,
    LedgerLockedError,
    LedgerMismatchError,
    LedgerRollbackError,
    LedgerWriteError,
    SessionSealedError,
    SessionStateError,
    UpdateFailedWarning,
)
from onlineic.ledger import BoughtTables, Closed, Forfeited, Hard, Reserved, Resumed, SqliteLedger
from onlineic.noise import SimulatedNoise
from onlineic.session.session import OnlineIC
from onlineic.updates import FittedTables
from support.ledgers import (
    COUNTS,
    DOMAIN,
    LABEL,
    MECHANISMS,
    in_a_process,
    opened,
    queries,
    quick_folder,
    resumed,
    table,
    with_ledger,
)
from support.sessions import all_spent, begun, settled

ASKED = queries()
KINDS = pytest.mark.parametrize("kind", MECHANISMS)


@pytest.fixture
def path():
    with quick_folder() as folder:
        yield folder / "census.db"


def facts(session, asked=ASKED):
    """All that can be told from outside: statistics, hypothesis, and every answer again."""
    stats = attrs.asdict(session.statistics(), filter=lambda field, _: field.name != "family")
    cells = session.hypothesis.probabilities()
    again = [session.answer(query) for query in asked]
    told = [(np.asarray(one.value).tolist(), one.error_bound, one.status) for one in again]
    return stats, cells, told


def abandon(ledger):
    """Let the file go as a killed process does."""
    ledger.release()


def recorded(session, kind):
    return [record for record in session.transcript if isinstance(record, kind)]


@KINDS
def test_a_session_that_was_closed_is_resumed_in_another_process_as_it_was(kind, path):
    session = opened(path, kind)
    session.answer_many(ASKED)
    session.answer(ic.where(a=ic.between(0, 5)))  # a constant
    session.answer(ASKED[0])
    expected = facts(session)
    counted = session.statistics()
    session.close()

    def act(tell):
        again = resumed(path)
        assert again.statistics().asked == counted.asked
        tell(facts(again), len(recorded(again, Hard)))

    (((stats, cells, told), hits),), _ = in_a_process(act)

    assert hits > 2
    assert told == expected[2]
    assert np.array_equal(cells, expected[1])
    # reserved for the next hit, which is given back, and counted again for the run that begins
    differing = {name for name in stats if stats[name] != expected[0][name]}
    assert differing <= {"spent", "asked", "repeat", "untested", "hard_left", "restarts_left", "error_bound"}
    # the noise of a second kept threshold can fail too, in its own part of beta
    kept = session.plan.sparse.start_charge() is not None
    assert expected[0]["error_bound"] <= stats["error_bound"] < math.inf
    assert kept or stats["error_bound"] == expected[0]["error_bound"]
    assert stats["asked"] == expected[0]["asked"] + len(ASKED)


@KINDS
def test_what_was_killed_is_resumed_with_all_that_was_durable(kind, path):
    session, ledger = with_ledger(opened, path, kind, durability="all")
    statuses = [answer.status for answer in session.answer_many(ASKED)]
    before, spent, cells = session.transcript, all_spent(session), session.hypothesis.probabilities()
    standing = session.reserved
    abandon(ledger)
    again = resumed(path)
    forfeited = recorded(again, Forfeited)

    assert len(again.transcript) == len(before) + (standing is not None) + 1
    assert isinstance(again.transcript[-1], Resumed)
    assert [standing] * (standing is not None) == [record.charge for record in forfeited]
    assert {"restarted"} >= {record.reason for record in forfeited}
    assert spent == all_spent(again) == again.account.spent
    assert np.array_equal(cells, again.hypothesis.probabilities())
    assert ["untested" if one == "untested" else "repeat" for one in statuses] == [
        again.answer(query).status for query in ASKED
    ]
    again.close()


def test_a_lost_threshold_is_paid_again_by_the_first_hit_of_the_next_run(path):
    session = opened(path, "exponential")
    session.answer_many(ASKED[:30])
    start = session.plan.sparse.start_charge().amount
    prices = [record.charge.amount for record in recorded(session, Hard)]
    assert prices[0] - start == pytest.approx(float(prices[1]), rel=0.3)
    session.close()
    again = resumed(path)
    again.answer_many(queries(40, seed=9))
    first, second = recorded(again, Hard)[len(prices) :][:2]
    sparse = again.plan.sparse  # whose prices do not fall: the threshold was given

    assert first.charge.amount >= start + sparse.price(first.query).amount
    assert second.charge.amount < start + sparse.price(second.query).amount
    again.close()


@pytest.mark.parametrize(
    ("kind", "kept"), [("exponential", "start"), ("laplace", "all"), ("numbers", "none")]
)
def test_a_close_keeps_what_easy_tests_have_used_up_of_a_threshold(kind, kept, path):
    session = opened(path, kind)
    easy = next(query for query in ASKED if session.answer(query).status == "easy" or None)
    assert easy is not None
    first = not recorded(session, Hard)
    standing = session.reserved
    due = session.plan.sparse.start_charge()
    before = session.account.spent
    session.close()
    expected = {
        "start": due.amount if due is not None and first else Fraction(0),
        "all": standing.amount,
        "none": Fraction(0),
    }[kept]

    assert isinstance(session.transcript[-1], Closed)
    assert expected == all_spent(session) - before
    assert expected == sum(record.charge.amount for record in recorded(session, Forfeited))


@KINDS
def test_a_close_without_a_test_gives_everything_back(kind, path):
    session = opened(path, kind)
    before = session.account.spent
    session.close()
    session.close()

    assert before == all_spent(session)
    assert [] == recorded(session, Forfeited)
    with pytest.raises(SessionStateError, match="got a closed one"):
        session.answer(ASKED[0])


def test_a_session_in_memory_is_closed_too():
    with ic.OnlineIC(table(), ic.Budget(2.0), release="answer", hard_answers=8, threshold=0.01) as session:
        session.answer_many(ASKED)
    assert isinstance(session.transcript[-1], Closed)
    assert session.reserved is None
    with pytest.raises(SessionStateError, match="must have a ledger file"):
        session.receipt  # noqa: B018


def test_a_sealed_session_gives_nothing_back(path, monkeypatch):
    session = opened(path)
    session.answer(ASKED[0])

    def broken(*_):
        raise ValueError("a private count")

    monkeypatch.setattr(PrivateData, "exact_counts", broken)
    with pytest.raises(SessionSealedError):
        session.answer(next(query for query in reversed(ASKED)))
    spent = all_spent(session)
    session.close()
    monkeypatch.undo()
    again = resumed(path)

    assert not recorded(session, Closed)
    assert spent == all_spent(again)
    assert again.answer(ASKED[0]).status == "repeat"
    again.close()


def test_nothing_is_tested_before_its_charge_is_in_the_file(path, monkeypatch):
    """Planted: a reservation that waits with the easy answers for the next commit."""
    read = PrivateData.exact_counts

    def checked(data, target):
        copy = path.with_name(f"copy{data.reads}.db")
        copy.write_bytes(path.read_bytes())
        ledger = SqliteLedger.open(copy)
        assert ledger.reserved is not None
        ledger.release()
        return read(data, target)

    monkeypatch.setattr(PrivateData, "exact_counts", checked)
    session = opened(path)
    for query in ASKED[:25]:
        session.answer(query)
    assert len(recorded(session, Hard)) > 1
    session.close()


def test_another_table_label_domain_n_or_setting_is_refused_by_name(path):
    opened(path).close()
    other = ic.Domain.of(a=6, b=4, c=["x", "y", "w"])
    more = COUNTS + (np.arange(72) == 3)
    for change, name in [
        ({"table": "census 2027"}, "table must be 'census 2026, release 3'"),
        ({"data": PrivateData(COUNTS, other)}, "data must have the domain"),
        ({"data": PrivateData(more, DOMAIN)}, "data must have n=60000"),
        ({"budget": ic.Budget(2.0, 1e-6)}, "budget must be"),
        ({"hard_answers": 13}, "hard_answers must be 12"),
        ({"exhausted": "raise"}, "exhausted must be 'untested'"),
    ]:
        with pytest.raises(LedgerMismatchError, match=name):
            opened(path, **change)
    for change, name in [
        ({"table": "census 2027"}, "table must be"),
        ({"data": PrivateData(more, DOMAIN)}, "data must have n="),
    ]:
        with pytest.raises(LedgerMismatchError, match=name):
            resumed(path, **change)
    with opened(path) as again:
        assert isinstance(again.transcript[-1], Resumed)


def test_the_order_of_attributes_is_kept_and_another_order_is_refused(path):
    domain = ic.Domain.of(zone=["x", "y", "z"], b=4, age=6)  # not by the alphabet
    data = PrivateData(COUNTS, domain)
    with opened(path, data=data) as session:
        told = session.answer(ic.where(zone="y", age=ic.between(1, 3)))
        cells = session.hypothesis.probabilities()
    with resumed(path, data=data) as session:
        again = session.answer(ic.where(zone="y", age=ic.between(1, 3)))

        assert domain == session.hypothesis.domain
        assert np.array_equal(cells, session.hypothesis.probabilities())
        assert (told.value, "repeat") == (again.value, again.status)
    turned = PrivateData(COUNTS, ic.Domain.of(age=6, b=4, zone=["x", "y", "z"]))
    with pytest.raises(LedgerMismatchError, match="data must have the domain"):
        resumed(path, data=turned)


def test_the_same_cell_run_again_goes_on_with_the_same_budget(path):
    data = table()
    first = opened(path, data=data)
    first.answer_many(ASKED[:20])
    with pytest.raises(LedgerLockedError, match="one session at a time"):
        opened(path, data=data)
    spent = first.account.spent
    first.close()
    second = opened(path, data=data)

    assert spent == second.account.spent
    assert 1 == len(list(data.budgets))
    assert 1 == len(recorded(second, BoughtTables))
    second.close()


def test_a_file_wants_a_label_and_a_label_a_file(path):
    with pytest.raises(InvalidParameterError, match="table must name"):
        opened(path, table=None)
    with pytest.raises(InvalidParameterError, match="table must be None"):
        ic.OnlineIC(table(), ic.Budget(1.0), table="census")
    with pytest.raises(InvalidParameterError, match="durability must be"):
        opened(path, durability="some")
    with pytest.raises(InvalidParameterError, match="simulated noise"):
        opened(path, noise=SimulatedNoise(1))
    assert not path.exists()


def test_an_older_copy_is_noticed_by_whoever_holds_a_receipt(path):
    session = opened(path)
    session.answer_many(ASKED[:10])
    session.close()
    old = path.read_bytes()
    again = resumed(path, receipt=str(session.receipt))
    again.answer_many(ASKED[10:40])
    again.close()
    receipt = again.receipt
    resumed(path, receipt=receipt).close()
    path.write_bytes(old)
    with pytest.raises(LedgerRollbackError, match="older copy"):
        resumed(path, receipt=receipt)
    went_on = resumed(path)  # without its receipt an old copy is a ledger
    for query in queries(80, seed=11):
        went_on.answer(query)
    went_on.close()
    with pytest.raises(LedgerRollbackError):
        resumed(path, receipt=receipt)


def test_tables_that_were_burned_are_not_bought_for_nothing(path, monkeypatch):
    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("onlineic.session.core.Core._measure_tables", broken)
    with opened(path, hard_answers=5, threshold=None) as session, pytest.raises(KeyboardInterrupt):
        begun(session)
    monkeypatch.undo()
    again = resumed(path)

    assert isinstance(again.transcript[0], Reserved)
    assert again.plan.first_tables.charge.amount <= all_spent(again)
    assert [] == recorded(again, BoughtTables)
    assert {"easy", "hard", "untested"} >= {one.status for one in again.answer_many(ASKED[:9])}
    again.close()


class Own(ic.UpdateRule):
    """A rule of nobody's but mine."""

    def init(self, domain, prior=None):
        return ic.Histogram(domain)

    def update(self, hypothesis, measurements, alpha):
        query, value, guess = measurements[-1].against(hypothesis)
        return hypothesis.tilted(query, value - guess)

    def update_bound(self, domain, alpha):
        return None


def test_a_rule_or_a_start_of_ones_own_is_brought_again(path):
    data, prior = table(), ic.Histogram(DOMAIN, np.arange(1.0, 73.0))
    made = {"release": "answer", "hard_answers": 8, "threshold": 0.02, "ledger": path, "table": LABEL}
    session = OnlineIC(data, ic.Budget(4.0), update=Own(), prior=prior, **made)
    session.answer_many(ASKED)
    cells = session.hypothesis.probabilities()
    session.close()
    for brought in ({"prior": prior}, {"update": ic.Perceptron(), "prior": prior}):
        with pytest.raises(LedgerMismatchError, match="update must be the"):
            resumed(path, **brought)
    with pytest.raises(LedgerMismatchError, match="prior must be the one"):
        resumed(path, update=Own())
    again = resumed(path, update=Own(), prior=prior)

    assert len(recorded(again, Hard)) > 2
    assert np.array_equal(cells, again.hypothesis.probabilities())
    again.close()
    with OnlineIC(data, ic.Budget(4.0), update=Own(), prior=prior, **made) as again:
        assert again.statistics().hard > 2


@pytest.mark.parametrize(
    "rule", [ic.MultiplicativeWeights(), ic.Perceptron(), ic.MaximumEntropy(), ic.MeasuredWeights()], ids=repr
)
def test_every_rule_of_the_package_is_resumed_to_the_bit(rule, path):
    opening = settled(DOMAIN, table().n, ic.Budget(4.0, 1e-6), hard_answers=9)
    session, ledger = with_ledger(
        OnlineIC, table(), ic.Budget(4.0, 1e-6), update=rule, release="answer", hard_answers=9,
        purchases=opening, ledger=path, table=LABEL,
    )  # fmt: skip
    session.answer_many(ASKED)
    queried = [query.bind(DOMAIN) for query in queries(20, seed=3)]
    expected = session.hypothesis.evaluate_many(queried)
    abandon(ledger)
    again = resumed(path)

    assert np.array_equal(expected, again.hypothesis.evaluate_many(queried))
    assert session.hypothesis.evaluate_many(queried).tolist() == expected.tolist()
    again.close()


def test_the_textbook_s_session_is_resumed(path):
    domain = ic.Domain.of(a=3)
    data = PrivateData([4_000_000, 1_000_000, 0], domain)
    asked = [ic.where(a=0), ic.where(a=1), ic.where(a=2)]
    session = OnlineIC.textbook(data, epsilon=8.0, max_queries=10, ledger=path, table=LABEL)
    told = [session.answer(query).value for query in asked]
    session.close()
    again = OnlineIC.textbook(data, epsilon=8.0, max_queries=10, ledger=path, table=LABEL)

    assert again.plan == session.plan
    assert again.statistics().hard == session.statistics().hard
    assert told == [again.answer(query).value for query in asked] or again.statistics().hard > 0
    again.close()


def test_failed_updates_are_restored(path, monkeypatch):
    session, ledger = with_ledger(opened, path)

    def broken(*_):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(FittedTables, "update", broken)
        with pytest.warns(UpdateFailedWarning):
            session.answer_many(ASKED)
    failures, cells = session.statistics().update_failures, session.hypothesis.probabilities()
    abandon(ledger)
    again = resumed(path)

    assert failures == again.statistics().update_failures > 1
    assert np.array_equal(cells, again.hypothesis.probabilities())
    again.close()


def test_a_sealed_session_that_goes_on_from_its_file_certifies_no_more(path, monkeypatch):
    """Its forfeited test has used up a hard answer that was certified."""
    data = ic.PrivateData(np.full((12, 8), 2_000), ic.Domain.of(a=12, b=8))
    settings = {"certify": 0.3, "sparse": "gumbel", "purchases": ic.TestsOnly(), "max_queries": 100}
    settings |= {"ledger": path, "table": "t"}
    session, ledger = with_ledger(ic.OnlineIC, data, ic.Budget(2.0, 1e-9), **settings)
    assert session.statistics().certified

    def fails(*arguments):
        raise RuntimeError("in the middle of a test")

    with monkeypatch.context() as patched:
        patched.setattr("onlineic.session.core.Core._test", fails)
        with pytest.raises(SessionSealedError):
            session.answer(ic.where(a=1))
    abandon(ledger)
    again = ic.OnlineIC.resume(path, data)

    assert not again.statistics().certified
    assert again.statistics().hard_left == session.plan.hard_answers - 1
    again.close()


@pytest.mark.parametrize(
    "open_session", [OnlineIC, lambda data, budget, **more: OnlineIC.textbook(data, epsilon=4.0, **more)]
)
def test_a_ledger_file_is_given_by_its_path_alone(open_session, path):
    """Planted: an open file taken as it is, whose answers are repeated with the bounds of another plan."""
    opened(path).close()
    ledger = SqliteLedger.open(path)
    length = len(ledger)

    with pytest.raises(InvalidParameterError, match="ledger must be the path of a ledger file"):
        open_session(table(), ic.Budget(4.0), ledger=ledger)

    assert len(ledger) == length
    ledger.release()


@KINDS
@pytest.mark.parametrize("replaced", [True, False])
def test_nothing_is_answered_behind_a_charge_that_went_into_a_file_without_a_name(kind, replaced, path):
    """Planted: writes into a file that was replaced by a copy, whose budget is then spent again."""
    session, ledger = with_ledger(opened, path, kind)
    session.answer(ASKED[0])
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    held = path.with_name("held.db")
    os.link(path, held)
    if replaced:
        os.replace(copy, path)
    else:
        path.unlink()
    durable, before = ledger.durable, len(session.transcript)

    def go_on():
        for query in ASKED:
            session.answer(query)
        session.close()

    with pytest.raises((LedgerWriteError, SessionSealedError)):
        go_on()

    assert ledger.durable == durable
    assert all(not isinstance(record, Hard | Reserved) for record in session.transcript[before:])
    abandon(ledger)
    os.replace(held, path)  # put back: it goes on
    resumed(path).close()


@pytest.mark.parametrize(
    ("levels", "lost"), [(["hits"] * 4, 768), (["all"] * 4, 0), (["all", "hits", "all"], 256)]
)
def test_answers_that_killed_processes_may_have_lost_count_towards_the_stream(levels, lost, path):
    """Planted: easy answers that left, and are not in the record, of which any number could be told."""
    for place, level in enumerate(levels):
        if place:
            session, ledger = with_ledger(resumed, path, durability=level)
        else:
            settings = {"threshold": 0.2, "max_queries": 700, "durability": level}
            session, ledger = with_ledger(opened, path, **settings)
        assert session.answer(ASKED[place]).status == "easy"
        bound = session.statistics().error_bound
        abandon(ledger)
    assert ledger.lost(len(ledger)) == lost
    assert np.isinf(bound) == (lost > 700)


def test_a_file_that_was_opened_to_lose_nothing_tells_that_it_now_may(path):
    _, ledger = with_ledger(opened, path, durability="all", purchases=ic.TestsOnly())
    assert ledger.fresh
    ledger.release()
    with opened(path, purchases=ic.TestsOnly()) as session:
        assert recorded(session, Resumed)[0].durability == "hits"


def test_two_copies_of_a_ledger_are_not_open_on_one_table(path):
    """Planted: one budget that is listed once, and spent by both."""
    data, copy = table(), path.with_name("copy.db")
    opened(path, data=data).close()
    shutil.copy(path, copy)
    session = resumed(path, data)
    before = copy.read_bytes()

    with pytest.raises(LedgerLockedError, match="a copy of one that is open on this table"):
        resumed(copy, data)
    assert copy.read_bytes() == before

    session.close()
    with pytest.raises(LedgerRollbackError, match="what the table knows"):
        resumed(copy, data)  # it lacks what that run has spent
    with resumed(path, data) as again:
        assert again.answer(ASKED[0]).status != "untested"
