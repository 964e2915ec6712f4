"""Orders of calls that an adversary would try: ledgers taken over, sessions opened twice, foreign calls."""

import threading
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge, Filter
from onlineic.data import PrivateData
from onlineic.errors import (
    BudgetsAddWarning,
    InternalError,
    InvalidParameterError,
    LedgerLockedError,
    LedgerMismatchError,
    SessionStateError,
)
from onlineic.ledger import Easy, Forfeited, Hard, MemoryLedger, Reserved
from onlineic.noise import SimulatedNoise
from onlineic.plan import session_plan
from onlineic.session import AnswerBook
from onlineic.sparse import ExponentialSparse, GumbelSparse, SparseState
from support.ledgers import quick_folder

DOMAIN = ic.Domain.of(a=6, b=4)
COUNTS = np.random.default_rng(1).multinomial(50_000, np.random.default_rng(2).dirichlet(np.ones(24)))


def table():
    return PrivateData(COUNTS, DOMAIN)


def test_a_ledger_in_memory_that_holds_records_is_refused():
    """It would call certified what the spent part can no longer pay."""
    data, budget, kept = table(), ic.Budget(8.0), MemoryLedger()
    kept.claim("me", session_plan(data.domain, data.n, budget).sparse.account())
    kept.reserve(Charge(Fraction(1, 7), "a hit", "epsilon"))
    kept.forfeit()
    kept.give_back("me")
    for settings in ({}, {"certify": 0.2, "max_queries": 100}):
        with pytest.raises(LedgerMismatchError, match=r"ledger must be new, got one with \d+ records; write"):
            ic.OnlineIC(data, budget, ledger=kept, **settings)

    assert [] == list(data.budgets)
    ic.OnlineIC(data, budget)
    with pytest.warns(BudgetsAddWarning, match="both together cost epsilon=16,"):
        ic.OnlineIC(data, budget)
    assert [budget, budget] == list(data.budgets)


def test_of_two_threads_that_claim_a_ledger_one_is_refused(monkeypatch):
    """Both would test under one reservation, one of them against a threshold that nobody paid."""
    kept, records, outcome = MemoryLedger(), MemoryLedger.records, []
    other = threading.Thread(target=lambda: claim("b"))

    def meanwhile(self, *places):
        """While one thread looks at what stands there, another claims it."""
        monkeypatch.setattr(MemoryLedger, "records", records)
        other.start()
        other.join()
        return records(self, *places)

    monkeypatch.setattr(MemoryLedger, "records", meanwhile)

    def claim(owner):
        try:
            kept.claim(owner, Filter(Fraction(1)))
            outcome.append("claimed")
        except LedgerLockedError:
            outcome.append("refused")

    claim("a")

    assert ["refused", "claimed"] == outcome


def test_a_session_is_opened_once_and_keeps_its_ledger():
    kept = MemoryLedger()
    session = ic.OnlineIC(table(), ic.Budget(1.0), ledger=kept, noise=SimulatedNoise(1))
    with pytest.raises(SessionStateError, match="opened once"):
        session.__init__(table(), ic.Budget(1.0), ledger=kept)
    with pytest.raises(LedgerLockedError):
        ic.OnlineIC(table(), ic.Budget(1.0), ledger=kept, noise=SimulatedNoise(1))


def test_one_that_a_rule_opens_while_it_opens_is_the_one_that_stands(monkeypatch):
    session, inner = ic.OnlineIC.__new__(ic.OnlineIC), PrivateData(COUNTS[:12], ic.Domain.of(a=3, b=4))
    init, told = ic.MaximumEntropy.init, []

    def again(*given):
        told.append("once")
        if len(told) == 1:
            session.__init__(inner, ic.Budget(1.0))
        return init(*given)

    monkeypatch.setattr(ic.MaximumEntropy, "init", again)
    with pytest.raises(SessionStateError, match="opened once"):
        session.__init__(table(), ic.Budget(1.0), noise=SimulatedNoise(1))

    assert (inner.n, True) == (session.n, session.statistics().private)
    assert session.n == inner.n
    assert session.answer(ic.where(a=1)).error_bound > 0.0


def test_a_threshold_beyond_the_integers_is_refused():
    """In a batch gap + noise - threshold would wrap around, and the test run the wrong way."""
    settings = {"n": 100, "epsilon": 1.0, "threshold_scale": Fraction(4), "query_scale": Fraction(40)}
    with pytest.raises(InvalidParameterError, match="threshold"):
        ExponentialSparse(threshold=2**63 - 201, **settings)

    far = ExponentialSparse(threshold=2**62, **settings)
    gaps = np.array([1000, -1000, 50, 7, 0, -5, 9, 2**52])
    assert (8, None) == far.step_many(SparseState(), gaps, np.ones(8, np.int64), SimulatedNoise(1))[1:]


def test_hard_left_counts_hits_of_the_largest_price_on_whichever_grid():
    """Sigma is rounded up to whole units of a query's grid: a 0/1 query can cost less than a weighted one."""
    data = PrivateData([600_000, 400_000], ic.Domain.of(a=2))
    session = ic.OnlineIC(
        data, ic.Budget(20.0, 1e-6), sparse="gumbel", release="answer", hard_answers=40, threshold=0.002,
        noise=SimulatedNoise(1),
    )  # fmt: skip
    sparse = session.plan.sparse
    fine = ic.where(a=ic.weights([1.0, 0.5**sparse.grid_bits])).bind(data.domain, sparse.grid_bits)
    coarse = ic.where(a=0).bind(data.domain)
    dearest = max(sparse.price(query).amount for query in (fine, coarse))

    assert sparse.price(fine).amount > sparse.price(coarse).amount
    assert sparse.account().capacity // dearest == session.statistics().hard_left


def test_a_mechanism_that_pays_for_nothing_is_refused():
    sparse = GumbelSparse(
        n=100, epsilon=1e-3, delta=1e-9, order=Fraction(3, 2), scale=Fraction(1000), threshold=5000
    )
    assert 0 == sparse.capacity
    with pytest.raises(InvalidParameterError, match="pays for nothing"):
        ic.OnlineIC(PrivateData([60, 40], ic.Domain.of(a=2)), ic.Budget(1e-3, 1e-9), sparse=sparse)


def test_a_budget_of_another_class_is_refused():
    class Wide(ic.Budget):
        @property
        def epsilon_exact(self):
            return Fraction(1000)

    with pytest.raises(InvalidParameterError, match="budget must be a Budget"):
        ic.OnlineIC(table(), Wide(1.0))


def test_a_session_whose_opening_failed_cannot_test_beside_the_next_owner_of_its_ledger():
    data, ledger = ic.PrivateData(np.full(4, 100), ic.Domain.of(a=4)), MemoryLedger()
    ic.OnlineIC(data, ic.Budget(1.0))
    half = ic.OnlineIC.__new__(ic.OnlineIC)
    with pytest.raises(BudgetsAddWarning):  # as an error
        half.__init__(data, ic.Budget(1.0), ledger=ledger)
    other = ic.PrivateData(np.full(4, 100), ic.Domain.of(a=4))
    ic.OnlineIC(other, ic.Budget(1.0), ledger=ledger).answer(ic.where(a=0))

    for use in (lambda: half.answer(ic.where(a=1)), half.statistics, lambda: half.hypothesis):
        with pytest.raises(SessionStateError, match="opening failed"):
            use()
    assert "not open" in repr(half)


def test_a_session_that_was_interrupted_while_it_was_resumed_cannot_test_beside_the_next_one(monkeypatch):
    half, caught_up = ic.OnlineIC.__new__(ic.OnlineIC), AnswerBook.catch_up

    def interrupted(self):
        if half._is_open:
            raise KeyboardInterrupt
        caught_up(self)

    with quick_folder() as folder:
        settings = {"ledger": folder / "one.db", "table": "t"}
        with ic.OnlineIC(table(), ic.Budget(1.0), **settings) as session:
            session.answer(ic.where(a=0))
        with monkeypatch.context() as patched:
            patched.setattr(AnswerBook, "catch_up", interrupted)
            with pytest.raises(KeyboardInterrupt):
                half.__init__(table(), ic.Budget(1.0), **settings)
        with ic.OnlineIC(table(), ic.Budget(1.0), **settings) as session:
            with pytest.raises(SessionStateError, match="opening failed"):
                half.answer(ic.where(a=1))
            assert "repeat" == session.answer(ic.where(a=0)).status


@pytest.mark.parametrize("shape", [{"a": 1}, {"a": 1, "b": 1}])
@pytest.mark.parametrize("update", [None, ic.MultiplicativeWeights(), ic.Perceptron()])
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_a_table_of_one_cell_is_known_to_every_rule(shape, update, delta):
    data = ic.PrivateData(np.array([50]), ic.Domain.of(**shape))
    answer = ic.OnlineIC(data, ic.Budget(1.0, delta), update=update).answer(ic.where(a=0))

    assert (answer.value, answer.error_bound) == (1.0, 0.0)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_what_stands_reserved_in_a_sealed_session_is_not_given_to_the_next(monkeypatch, delta):
    """An interrupted test whose burning was interrupted too: `close` burns what may have paid for a draw."""
    data, ledger = table(), MemoryLedger()
    settings = {"hard_answers": 2, "update": ic.MultiplicativeWeights(), "purchases": ic.TestsOnly()}
    session = ic.OnlineIC(data, ic.Budget(1.0, delta), ledger=ledger, **settings)

    def stopped(self, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(MemoryLedger, "commit", stopped)
        patched.setattr(MemoryLedger, "forfeit", stopped)
        with pytest.raises(KeyboardInterrupt):
            session.answer(ic.where(a=0))
    standing = ledger.reserved
    session.close()

    assert ledger.reserved is None
    assert ledger.account.spent == standing.amount
    assert isinstance(ledger.records()[-1], Forfeited)


def test_what_a_handler_writes_in_the_middle_of_a_write_is_not_erased(monkeypatch):
    """The write that it interrupted is refused."""
    ledger, charge, inner = MemoryLedger(), Filter.charge, []
    ledger.claim(ledger, Filter(Fraction(1), "epsilon"), True)
    ledger.reserve(Charge(Fraction(1, 4), "", "epsilon"))

    def interrupted(self, amount):
        paid = charge(self, amount)
        if not inner:
            inner.append(None)
            ledger.forfeit()
        return paid

    monkeypatch.setattr(Filter, "charge", interrupted)
    with pytest.raises(InternalError, match="one step at a time"):
        ledger.forfeit()

    assert [Reserved, Forfeited] == [type(record) for record in ledger.records()]
    assert Fraction(1, 4) == ledger.account.spent


def test_a_handler_that_asks_in_the_middle_of_a_write_is_refused_and_the_write_goes_on(monkeypatch):
    session = ic.OnlineIC(
        table(), ic.Budget(1.0, 1e-9), hard_answers=10, release="answer", purchases=ic.TestsOnly()
    )
    charge, refused = Filter.charge, []

    def interrupted(self, amount):
        with pytest.raises(SessionStateError, match="one call at a time") as error:
            session.answer(ic.where(a=1))
        refused.append(error)
        return charge(self, amount)

    with monkeypatch.context() as patched:
        patched.setattr(Filter, "charge", interrupted)
        session.answer(ic.where(a=0))

    assert refused
    asked = [record.query for record in session.transcript if isinstance(record, Easy | Hard)]
    assert asked == [ic.where(a=0).bind(DOMAIN)]
