"""Who may take a ledger."""

from fractions import Fraction

import pytest

from onlineic.accounting import Charge, Filter
from onlineic.errors import LedgerLockedError, LedgerMismatchError
from onlineic.ledger import MemoryLedger, memory
from support.failures import At


def given_back(private):
    """A ledger whose session was interrupted while it opened, behind its first reservation."""
    kept = MemoryLedger()
    kept.claim("interrupted", Filter(Fraction(1)), private)
    kept.reserve(Charge(Fraction(1, 2), "first tables"))
    kept.give_back("interrupted")
    return kept


@pytest.mark.parametrize("first", [True, False])
def test_what_was_drawn_from_a_seed_never_becomes_part_of_a_private_session(first):
    """Its values less the known noise are the exact counts."""
    kept = given_back(first)
    with pytest.raises(LedgerMismatchError, match="same kind of noise"):
        kept.claim("another", Filter(Fraction(1)), not first)

    kept.claim("another", Filter(Fraction(1)), first)
    assert Fraction(1, 2) == kept.spent


def test_a_ledger_is_of_one_account_and_one_session_at_a_time():
    kept = given_back(True)
    with pytest.raises(LedgerMismatchError, match="account of 1 epsilon"):
        kept.claim("another", Filter(Fraction(2)))
    kept.claim("another", Filter(Fraction(1)))
    kept.give_back("a third")  # has it not

    with pytest.raises(LedgerLockedError):
        kept.claim("a third", Filter(Fraction(1)))


def test_a_claim_that_is_interrupted_at_any_line_is_no_lock_that_stays_shut():
    """At every visit: before, a lock that an interrupt behind its block left shut for the next claim."""
    with At({memory.__file__}) as watch:
        given_back(True).claim("another", Filter(Fraction(1)))
    interrupts = 0
    for place in range(watch.seen):
        kept = MemoryLedger()
        try:
            with At({memory.__file__}, KeyboardInterrupt(), place):
                kept.claim("interrupted", Filter(Fraction(1)))
        except KeyboardInterrupt:
            interrupts += 1
        kept.give_back("interrupted")
        kept.claim("another", Filter(Fraction(1)))
        assert Fraction(1) == kept.account.capacity
        with pytest.raises(LedgerLockedError):
            kept.claim("a third", Filter(Fraction(1)))
    assert interrupts >= 8
