"""A core without a session: what neither a rule nor a caller of its own can take from the table."""

import contextlib
import sys
from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge, Neighbours
from onlineic.errors import InvalidParameterError, SessionSealedError, SessionStateError
from onlineic.ledger import BoughtTables, Easy, Forfeited, Hard, Single, TableBudget
from onlineic.noise import SystemNoise
from onlineic.plan import DemandPurchases, PurchaseRule, session_plan
from onlineic.plan.purchase import Purchase
from onlineic.progress import reporting
from onlineic.queries.partitions import one_way
from onlineic.session import Quota
from onlineic.sparse import ExponentialSparse, LaplaceSparse
from support.cores import core_of, put_to_test
from support.noise import Silent

DOMAIN = ic.Domain.of(a=4, b=3)
COUNTS = np.full((4, 3), 2500)
SPARSE = ExponentialSparse(30_000, 1.0, 3000 << 2, Fraction(16), Fraction(64), 2, Fraction(8))
PURE = session_plan(DOMAIN, 30_000, ic.Budget(1.0)).first_tables
GUMBEL = session_plan(DOMAIN, 30_000, ic.Budget(1.0, 1e-6))
FALLING = session_plan(DOMAIN, 30_000, ic.Budget(1.0, 1e-6), release="answer", hard_answers=9)


@attrs.frozen
class Heard:
    """How many releases and easy tests there were."""

    releases: int = 0
    tested: int = 0


class Named(PurchaseRule):
    """Names the same after so many easy tests, and is trusted by nobody."""

    def __init__(self, tables, after=0, times=None):
        self.tables, self.after, self.times = tables, after, times

    def start(self):
        return Heard()

    def heard(self, so_far, record):
        released, tested = isinstance(record, BoughtTables), isinstance(record, Easy)
        return Heard(so_far.releases + released, so_far.tested + tested)

    def next(self, facts):
        enough = self.times is not None and facts.heard.releases >= self.times
        return self.tables if facts.heard.tested >= self.after and not enough else None


def ruled(rule, sparse=SPARSE, noise=None, data=None):
    """Return a core with this rule, its ledger and its table."""
    data = ic.PrivateData(COUNTS, DOMAIN) if data is None else data
    core, ledger = core_of(data, sparse, noise=Silent() if noise is None else noise, rule=rule)
    return core, ledger, data


def cheap(parts):
    """Return the tables of `PURE` for a part of their price."""
    price = PURE.charge.amount / parts
    return attrs.evolve(
        PURE,
        scales=tuple(scale * parts for scale in PURE.scales),
        charge=attrs.evolve(PURE.charge, amount=price),
    )


def refused(rule, error, match, **more):
    core, ledger, data = ruled(rule, **more)
    with pytest.raises(error, match=match):
        core.answer(ic.where(a=0))
    assert ledger.account.spent == 0
    return core, data


class Lying:
    """Looks like tables that cost nothing."""

    targets, scales, charge, pure = PURE.targets, PURE.scales, PURE.charge, True


def test_what_a_rule_names_must_be_tables_of_the_package_that_pay_for_themselves():
    _, data = refused(Named(Lying()), InvalidParameterError, "must name a Purchase")
    assert 0 == data.reads
    laplace = LaplaceSparse(n=30_000, epsilon=1.0, threshold=3000, cutoff=4)
    refused(Named(PURE), InvalidParameterError, "an account that prices tables", sparse=laplace)


class LyingCharge(Charge):
    """Pays for anything where tables are priced, and takes next to nothing."""

    def __getattribute__(self, name):
        if name != "amount":
            return super().__getattribute__(name)
        return Fraction(10**18 if "__attrs_post_init__" == sys._getframe(1).f_code.co_name else 1)


class LyingNeighbours(Neighbours):
    """Move next to nothing, and are like all others."""

    def test(self, lowest, highest):
        return highest - lowest

    number = test

    def table_l1(self, unit=1):
        return 1

    table_squared = table_l1

    def largest_gap(self, unit=1):
        return unit

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = None


def lying_tables(what):
    """Return tables that lie in this way, at a tenth of the budget."""
    order, target, quiet = GUMBEL.sparse.order, one_way(DOMAIN, 0), Fraction(1, 16)
    charge = Charge(GUMBEL.sparse.account().capacity / 10, "tables", "ticks", order)
    if what == "charge":
        return Purchase((target,), (quiet,), LyingCharge(Fraction(10**18), "tables", "ticks", order))
    if what == "neighbours":
        return Purchase((target,), (Fraction(4097, 65536),), charge, neighbours=LyingNeighbours())
    if what == "domain":
        return Purchase((one_way(ic.Domain.of(a=4, c=3), 0),), (Fraction(10_000),), charge)
    if what == "Laplace":
        return Purchase((target,), (Fraction(2**50),), charge, True)
    assert what == "Gaussian"
    return Purchase((target,), (Fraction(2**27 + 1, 2),), charge)


@pytest.mark.parametrize("what", ["charge", "neighbours", "domain", "Laplace", "Gaussian"])
@pytest.mark.parametrize("planned", [False, True])
def test_no_object_of_a_rule_buys_for_less_or_what_cannot_be_drawn(what, planned):
    """All is refused before anything is reserved, and the session goes on."""
    rule = Named(lying_tables(what), times=1)
    core, ledger, data = ruled(rule, sparse=GUMBEL.sparse)
    core._planned = planned
    with pytest.raises(InvalidParameterError):
        core.answer(ic.where(a=0))
    assert (0, 0, None) == (ledger.account.spent, data.reads, ledger.reserved)
    rule.tables = None
    assert "untested" != core.answer(ic.where(a=0)).status


def test_a_rule_of_one_s_own_buys_noise_of_the_law_that_bounds_go_by():
    """Bounds of a Gaussian with the deviation of Laplace noise, which the record tells, miss it too often."""
    account = GUMBEL.sparse.account()
    charge = Charge(account.capacity / 10, "tables", "ticks", account.order)
    laplace = Purchase((one_way(DOMAIN, 0),), (Fraction(1000),), charge, True)
    core, ledger, data = ruled(Named(laplace, times=1), sparse=GUMBEL.sparse)
    with pytest.raises(InvalidParameterError, match="must have the noise of their account, Laplace where"):
        core.answer(ic.where(a=0))
    assert (0, 0, None) == (ledger.account.spent, data.reads, ledger.reserved)


class Turning(PurchaseRule):
    """Says once that purchases may cost all but a tenth, and then nothing."""

    def __init__(self):
        self.said = []

    def planned(self, account):
        self.said.append("planned")
        return account.capacity * Fraction(9, 10) if len(self.said) < 3 else Fraction(0)

    def start(self):
        return None

    def heard(self, so_far, record):
        return so_far

    def next(self, facts):
        return None


def test_bounds_and_prices_go_by_what_a_rule_has_said_once():
    """Tests with more noise than their bounds are made by would err by more than these say."""
    plan = session_plan(DOMAIN, 30_000, ic.Budget(1.0, 1e-6), purchases=Turning())
    assert plan.spending is plan.spending
    assert plan.first_tables is None
    assert ["planned", "planned"] == plan.purchases.said


def test_tables_are_priced_by_plain_numbers_that_stay():
    """A Fraction keeps numpy's integers, whose products wrap around; a list may change behind its price."""
    target, account = one_way(DOMAIN, 0), GUMBEL.sparse.account()
    charge = Charge(account.capacity / 10, "tables", "ticks", account.order)
    with pytest.raises(InvalidParameterError, match="charge must pay"):
        Purchase((target,), (Fraction(np.int64(2**26), np.int64(2**32 + 1)),), charge)
    with pytest.raises(InvalidParameterError, match="scales must be a number"):
        Purchase((target,), ("40",), charge)
    scales = [Fraction(100_000)]
    made = Purchase([target], scales, charge)
    scales[0] = Fraction(1, 16)
    assert ((target,), (Fraction(100_000),)) == (made.targets, made.scales)


def test_tables_behind_tests_of_a_kept_threshold_pay_it_once_and_it_serves_on():
    """What stood reserved would have paid the threshold with the first hit; the tables' takes its place."""
    tables, start = cheap(8), SPARSE.start_charge().amount
    core, ledger, _ = ruled(Named(tables, after=2, times=2))
    for place in range(4):
        core.answer(ic.where(a=place))
    paid = [record for record in ledger.records() if isinstance(record, Forfeited | BoughtTables)]

    assert [Forfeited, BoughtTables, BoughtTables] == [*map(type, paid)]
    assert ("bought", start) == (paid[0].reason, paid[0].charge.amount)
    assert start + 2 * tables.charge.amount == ledger.account.spent
    assert SPARSE.price(ic.where(a=3).bind(DOMAIN, 2)).amount == ledger.reserved.amount
    core.close()
    assert start + 2 * tables.charge.amount == ledger.account.spent  # nothing is left to pay


def test_tables_before_the_first_test_leave_the_threshold_to_the_first_hit():
    core, ledger, _ = ruled(Named(cheap(8), times=1))
    core.answer(ic.where(a=0))
    price, start = SPARSE.price(ic.where(a=3).bind(DOMAIN, 2)).amount, SPARSE.start_charge().amount

    assert cheap(8).charge.amount == ledger.account.spent
    assert price + start == ledger.reserved.amount


class NamedForOne(Named):
    """Names nothing whatever is asked: who asks pays."""

    def next(self, facts):
        return super().next(facts) if facts.questions else None


@pytest.mark.parametrize("enough", [False, True])
def test_who_buys_behind_tests_of_a_kept_threshold_pays_it_and_no_quota_is_overdrawn(enough):
    tables, start = cheap(8), SPARSE.start_charge().amount
    less = Fraction(0) if enough else Fraction(1, 10**9)
    core, ledger, _ = ruled(NamedForOne(tables, after=1, times=1))
    core.answer(ic.where(a=0))
    core.payments.quota = Quota("ann", tables.charge.amount + start - less)
    answer = core.answer(ic.where(a=1))

    assert "untested" == answer.status  # nothing is left for a hit
    both = tables.charge.amount + start if enough else 0
    assert both == core.payments.by("ann") == ledger.account.spent


class NamedWherePaid(Named):
    """Names nothing that the account cannot pay, as every rule promises."""

    def next(self, facts):
        named = super().next(facts)
        return named if named is not None and facts.account.affords(named.charge) else None


def test_tables_that_a_threshold_leaves_nothing_for_are_not_bought_and_tests_go_on():
    """Before the threshold is paid the account still has what the rule names; behind it, it has less."""
    capacity, start = SPARSE.account().capacity, SPARSE.start_charge().amount
    assert capacity - start < PURE.charge.amount <= capacity
    core, ledger, _ = ruled(NamedWherePaid(PURE, after=1, times=1))
    core.answer(ic.where(a=0))
    answer = core.answer(ic.where(a=1))

    assert "easy" == answer.status
    assert start == ledger.account.spent
    assert not any(isinstance(record, BoughtTables) for record in ledger.records())


def test_an_interrupt_behind_what_a_threshold_has_used_up_leaves_it_paid():
    class Stopped(Silent):
        def discrete_laplace(self, scale, size):
            raise KeyboardInterrupt

    core, ledger, _ = ruled(Named(cheap(8), after=2), noise=Stopped())
    for place in range(2):
        core.answer(ic.where(a=place))
    with pytest.raises((KeyboardInterrupt, SessionSealedError)):
        core.answer(ic.where(a=2))
    assert SPARSE.start_charge().amount + cheap(8).charge.amount == ledger.account.spent


def test_the_system_s_noise_is_drawn_for_a_ledger_alone_that_the_table_knows():
    data = ic.PrivateData(COUNTS, DOMAIN)
    data.draw_on(TableBudget(ic.Budget(1.0)))
    _, data = refused(Named(None), SessionStateError, "must be a session's", noise=SystemNoise(), data=data)

    assert 0 == data.reads
    assert () == data.budgets


def test_a_question_between_the_cover_and_the_read_leaves_nothing_unpaid(monkeypatch):
    core, ledger, data = ruled(Named(None))
    cover = core.cover((ic.where(a=1).bind(DOMAIN, 2),))
    test, asked = core.read_guard.run, []

    def handled(*given):
        if not asked:
            asked.append(True)
            put_to_test(
                core, (ic.where(a=2).bind(DOMAIN, 2),), (0,)
            )  # a hit: it uses up what stands reserved
            assert isinstance(ledger.records()[-1], Hard)
        return test(*given)

    monkeypatch.setattr(type(core.read_guard), "run", lambda self, *given: handled(*given))
    reads = data.reads
    with pytest.raises(SessionStateError, match="one call at a time"):
        core.test(cover, (10_000,))
    assert not core.read_guard.sealed
    assert reads < data.reads  # of the question in between


def test_a_share_is_spent_at_its_own_order_or_refused_before_the_total_is_written(tmp_path):
    for sparse in (SPARSE, attrs.evolve(GUMBEL.sparse, n=30_000)):
        data = ic.PrivateData(COUNTS, DOMAIN)
        total = TableBudget(ic.Budget(1.0, 1e-6), ledger=tmp_path / "total.db", table="t")
        data.draw_on(total)
        with pytest.raises(InvalidParameterError, match=r"order|must be 'gumbel'|epsilon"):
            ic.OnlineIC(data, total.share(0.2), sparse=sparse, prior=ic.Histogram(DOMAIN))
        assert () == total.drawn
        total.close()
    TableBudget(ic.Budget(1.0, 1e-6), ledger=tmp_path / "total.db", table="t").close()  # opens again


def test_a_mechanism_of_another_order_than_its_share_is_refused():
    """Although its epsilon and delta are those of the share."""
    data, total = ic.PrivateData(COUNTS, DOMAIN), TableBudget(ic.Budget(1.0, 1e-6))
    data.draw_on(total)
    share = total.share(0.2)
    sparse = session_plan(DOMAIN, 30_000, ic.Budget(share.epsilon, share.delta)).sparse
    with pytest.raises(InvalidParameterError, match="sparse must spend all of the share at its Renyi order"):
        ic.OnlineIC(data, share, sparse=sparse, prior=ic.Histogram(DOMAIN))

    assert () == total.drawn


@pytest.mark.parametrize(
    ("rule", "kinds"),
    [(DemandPurchases(rent=0), [BoughtTables, Easy, Easy]), (DemandPurchases(), [Single, Single])],
)
def test_a_callback_that_asks_a_core_before_its_tables_are_bought_buys_them_once(rule, kinds):
    """A bare core has no door: what the callback bought and tested is known to the check after it."""
    domain, n = ic.Domain.of(a=30, b=40, c=50), 60_000
    plan = session_plan(domain, n, ic.Budget(1.0, 1e-9), purchases=rule)
    data = ic.PrivateData(np.ones(domain.size, np.int64), domain)
    core, ledger, _ = ruled(plan.purchases, sparse=plan.sparse, data=data)
    told = []

    def asking(stage, done, total):
        told.append(stage)
        if len(told) == 1:
            core.answer(ic.where(a=1))

    with reporting(asking):
        core.answer(ic.where(a=0))
    records = [record for record in ledger.records() if isinstance(record, BoughtTables | Easy | Single)]
    asked = [record.query.written for record in records if not isinstance(record, BoughtTables)]

    assert kinds == [*map(type, records)]
    assert ["where(a=1)", "where(a=0)"] == asked


class NamedForEach(Named):
    """Names tables before each question."""

    def next(self, facts):
        return self.tables if facts.heard.releases <= facts.heard.tested else None


def test_what_a_callback_tests_before_tables_are_bought_pays_its_threshold():
    """They take the place of what stands reserved for the tests of the callback."""
    tables, start = cheap(8), SPARSE.start_charge().amount
    core, ledger, _ = ruled(NamedForEach(tables))
    told = []

    def asking(stage, done, total):
        told.append(stage)
        if len(told) == 1:
            core.answer(ic.where(a=1))

    with reporting(asking):
        core.answer(ic.where(a=0))
    paid = [record for record in ledger.records() if isinstance(record, Forfeited | BoughtTables)]

    assert start + 2 * tables.charge.amount == ledger.account.spent
    assert [BoughtTables, Forfeited, BoughtTables] == [*map(type, paid)]


def test_prices_are_those_of_the_whole_record_wherever_a_test_is_paid():
    """Whoever asks a core alone may have left records that nobody took in."""
    core, ledger, _ = ruled(Named(None), sparse=FALLING.sparse)
    price = FALLING.sparse.price(ic.where(a=0).bind(DOMAIN, 2))
    ledger.reserve(price)
    ledger.forfeit()
    before = core.book.state.spent
    core.cover((ic.where(a=1).bind(DOMAIN, 2),))

    assert (0, price.amount) == (before.amount, core.book.state.spent.amount)


class Failing(Named):
    """Cannot tell what it heard, while it fails."""

    fails = False

    def heard(self, so_far, record):
        if self.fails:
            raise MemoryError
        return super().heard(so_far, record)


def test_a_rule_that_fails_on_a_record_is_asked_again_and_the_answer_stands():
    rule = Failing(cheap(8), after=2, times=1)
    core, ledger, _ = ruled(rule)
    rule.fails = True
    first = core.answer(ic.where(a=0))
    with pytest.raises(MemoryError):
        core.answer(ic.where(a=1))
    rule.fails = False
    later = [core.answer(ic.where(a=place)) for place in (1, 2)]
    rule.fails = True
    core.close()

    assert ["easy", "easy", "easy"] == [one.status for one in (first, *later)]
    assert 1 == sum(isinstance(record, BoughtTables) for record in ledger.records())
    assert ledger.reserved is None


def test_a_second_interrupt_while_the_first_is_handled_finds_the_session_sealed(monkeypatch):
    core, ledger, data = ruled(Named(None))
    records, read = type(ledger).records, ic.PrivateData.exact_counts

    def interrupted(self, *places):
        if data.reads:
            raise KeyboardInterrupt
        return records(self, *places)

    def reading(self, *given):
        read(self, *given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ic.PrivateData, "exact_counts", reading)
        patched.setattr(type(ledger), "records", interrupted)
        with pytest.raises(KeyboardInterrupt):
            core.answer(ic.where(a=0))
    reads = data.reads
    with pytest.raises(SessionSealedError):
        core.answer(ic.where(a=1))

    assert reads == data.reads == 1


def test_a_question_while_the_session_is_being_sealed_does_not_open_it_after_an_interrupt(monkeypatch):
    """What the record holds behind the seal is of this test alone: by it an interrupt is known to be late."""
    core, ledger, _ = ruled(Named(None))
    length, read, asked = type(ledger).__len__, ic.PrivateData.exact_counts, []
    cover = core.cover((ic.where(a=1).bind(DOMAIN, 2),))

    def handled(self):
        found = length(self)
        if sys._getframe(1).f_code.co_name == "run" and not asked:
            asked.append("begun")
            with contextlib.suppress(SessionSealedError):
                put_to_test(core, (ic.where(a=2).bind(DOMAIN, 2),), (COUNTS[2].sum(),))  # easy
            asked.append("done")
        return found

    def reading(self, *given):
        found = read(self, *given)
        if "done" in asked:
            raise KeyboardInterrupt
        return found

    with monkeypatch.context() as patched:
        patched.setattr(type(ledger), "__len__", handled)
        patched.setattr(ic.PrivateData, "exact_counts", reading)
        with pytest.raises(KeyboardInterrupt):
            core.test(cover, (0,))

    assert asked
    assert core.read_guard.sealed
    assert isinstance(ledger.records()[-1], Forfeited)


def test_counts_of_laplace_tests_stay_inside_exact_integers():
    with pytest.raises(InvalidParameterError, match=r"2\^53"):
        LaplaceSparse(n=2**20, epsilon=1.0, threshold=10, cutoff=2, grid_bits=47)
    made = LaplaceSparse.calibrated(
        ic.Budget(20.0), n=2**20, hard_answers=2, max_queries=10, grid_bits=50, threshold=0.1
    )

    assert made.n << made.grid_bits <= 2**53
