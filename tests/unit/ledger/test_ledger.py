"""A ledger: what it pays, records and refuses; each step of it whole or not at all."""

from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge, Filter
from onlineic.errors import BudgetExceededError, InternalError
from onlineic.ledger import Easy, Forfeited, Hard, MemoryLedger, Reserved, UpdateFailed
from onlineic.ledger import book as book_module
from onlineic.ledger import memory as ledger_module
from onlineic.queries import Measurement
from support.failures import At
from support.sessions import charged

LEDGER = {ledger_module.__file__}
HIT = ic.where(a=0).bind(ic.Domain.of(a=4))
COST = Charge(Fraction(2, 5), "a hit")


def measured_hit(amount):
    return Hard(HIT, 0, Measurement(HIT, np.array([0.5]), 0.1), Charge(Fraction(amount), "a hit"))


def claimed(capacity=1):
    kept = MemoryLedger()
    kept.claim(object(), Filter(Fraction(capacity)))
    return kept


def test_an_unclaimed_ledger_is_empty_and_pays_for_nothing():
    kept = MemoryLedger()

    assert (0, 0, None, ()) == (len(kept), kept.spent, kept.reserved, kept.records())
    with pytest.raises(BudgetExceededError):
        kept.reserve(COST)
    assert () == kept.records()


def test_a_reservation_is_recorded_counts_as_spent_and_is_replaced_by_a_dearer_one():
    kept = claimed()
    dearer = Charge(Fraction(3, 5), "a dearer hit")
    kept.reserve(COST)
    before = kept.spent
    kept.reserve(dearer)

    assert Fraction(2, 5) == before
    assert (Fraction(3, 5), dearer, 0) == (kept.spent, kept.reserved, kept.account.spent)
    assert (Reserved(COST), Reserved(dearer)) == kept.records()


def test_a_reservation_that_the_account_cannot_pay_is_refused_and_changes_nothing():
    kept = claimed(Fraction(1, 2))
    kept.reserve(COST)
    kept.commit([measured_hit(Fraction(2, 5))])
    before = kept.records()
    with pytest.raises(BudgetExceededError):
        kept.reserve(Charge(Fraction(1, 9), "a hit"))

    assert (before, None, Fraction(2, 5)) == (kept.records(), kept.reserved, kept.spent)


def test_what_costs_nothing_leaves_the_reservation_as_it_is():
    kept = claimed()
    kept.reserve(COST)
    kept.commit([Easy(HIT, 0), Easy(HIT, 1)])
    kept.commit([UpdateFailed("MemoryError")])

    assert (COST, Fraction(2, 5), 4) == (kept.reserved, kept.spent, len(kept))
    assert (Easy(HIT, 0), Easy(HIT, 1)) == kept.records(1, 3)
    assert (UpdateFailed("MemoryError"),) == kept.records(3) == kept.records(3, 9)


def test_a_burn_uses_up_the_reservation_and_without_one_does_nothing():
    kept = claimed()
    kept.forfeit()
    nothing = kept.records()
    kept.reserve(COST)
    kept.forfeit()

    assert () == nothing
    assert (Reserved(COST), Forfeited(COST, "interrupted")) == kept.records()
    assert (None, Fraction(2, 5), Fraction(2, 5)) == (kept.reserved, kept.spent, kept.account.spent)


def test_a_hit_uses_up_the_whole_reservation_whatever_it_states():
    ledger = claimed()
    ledger.reserve(Charge(Fraction(1, 2), "one hard answer"))
    ledger.commit([measured_hit(Fraction(1, 4))])

    assert (Fraction(1, 2), None) == (ledger.spent, ledger.reserved)


def test_a_hit_above_the_reservation_or_without_one_is_refused_and_changes_nothing():
    ledger = claimed()
    with pytest.raises(InternalError):
        ledger.commit([measured_hit(Fraction(1, 4))])
    ledger.reserve(Charge(Fraction(1, 4), "one hard answer"))
    before = ledger.records()
    with pytest.raises(InternalError):
        ledger.commit([measured_hit(Fraction(1, 2))])

    assert (Fraction(1, 4), before) == (ledger.spent, ledger.records())


def test_a_release_comes_last_and_alone():
    kept = claimed()
    kept.reserve(COST)
    before = kept.records()
    for records in ([measured_hit(COST.amount), Easy(HIT, 0)], [measured_hit(Fraction(1, 5))] * 2):
        with pytest.raises(InternalError, match="come last"):
            kept.commit(records)

    assert (before, COST) == (kept.records(), kept.reserved)


# -- who pays -----------------------------------------------------------------------------------------------


def test_who_pays_is_named_with_what_is_charged_and_with_nothing_else():
    kept = claimed(2)
    kept.reserve(COST)
    kept.commit([Easy(HIT, 0)], "ann")
    kept.commit([Easy(HIT, 0), measured_hit(COST.amount)], "bob")
    kept.reserve(COST)
    kept.forfeit("ann")
    kept.reserve(COST)
    kept.pay(COST, "bob")
    kept.reserve(COST)
    kept.commit([measured_hit(COST.amount)])

    assert {3: "bob", 5: "ann", 7: "bob"} == kept.paid


@pytest.mark.parametrize("step", ["commit", "forfeit", "pay"])
def test_who_is_named_by_a_step_that_was_interrupted_pays_for_nothing_else(step):
    def act(kept):
        given = {"commit": ([Easy(HIT, 0), measured_hit(COST.amount)],), "forfeit": (), "pay": (COST,)}[step]
        getattr(kept, step)(*given, "ann")

    files, named, whole = {*LEDGER, book_module.__file__}, 0, reserved()
    with At(files) as watch:
        act(whole)
    for place in range(watch.seen):
        kept = reserved()
        before = len(kept)
        with pytest.raises(KeyboardInterrupt), At(files, KeyboardInterrupt(), place):
            act(kept)
        done = len(kept) > before
        named += not done and len(kept.paid)
        if not done:
            kept.commit([measured_hit(COST.amount)])
            kept.reserve(Charge(Fraction(1, 10), "another"))
            kept.commit([measured_hit(Fraction(1, 10))])
            assert {} == kept.paid

    assert named  # there is such a line


# -- failures ------------------------------------------------------------------------------------------------


RELEASES = {
    "hit": [Easy(HIT, 0), measured_hit(COST.amount)],
    "easy": [Easy(HIT, 0), Easy(HIT, 0)],
    "failed update": [UpdateFailed("MemoryError")],
}


def reserved():
    """A ledger behind a hit, with a reservation for another."""
    kept = claimed()
    kept.reserve(COST)
    kept.commit(RELEASES["hit"])
    kept.reserve(COST)
    return kept


@pytest.mark.parametrize("event", ["line", "opcode"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("step", [*RELEASES, "forfeit"])
def test_a_failure_anywhere_in_a_ledger_s_step_counts_no_charge_twice_and_records_all_or_nothing(
    step, failure, event
):
    def act(kept):
        if step == "forfeit":
            kept.forfeit()
        else:
            kept.commit(RELEASES[step])

    whole = reserved()
    with At(LEDGER, event=event) as watch:
        act(whole)
    outcomes = set()
    for place in range(watch.seen):
        kept = reserved()
        before = kept.records()
        with pytest.raises(failure), At(LEDGER, failure(), place, event):
            act(kept)
        done = len(kept) > len(before)
        outcomes.add(done)

        assert kept.records() == (whole.records() if done else before)
        assert charged(kept) == kept.spent == Fraction(4, 5) <= kept.account.capacity
        kept.forfeit()  # as a session does that failed
        assert charged(kept) == kept.spent == Fraction(4, 5)
        assert kept.reserved is None

    assert watch.seen >= 5
    assert False in outcomes
    if event == "opcode":  # behind the one assignment it has happened
        assert {False, True} == outcomes
