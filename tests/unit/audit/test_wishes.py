"""Records of wishes: a wish that did not buy what it says, and reservations from test to test, are found."""

import attrs
import pytest

import onlineic as ic
from onlineic.audit.ledgers import _unpaid
from onlineic.evaluate import random_stream
from onlineic.ledger import MemoryLedger, Single
from onlineic.noise import SimulatedNoise
from onlineic.queries import Within
from support.wishes import BUDGET, DATA, DOMAIN, STREAM, opened


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        (
            lambda one: attrs.evolve(one, charge=attrs.evolve(one.charge, amount=one.charge.amount / 2)),
            "bought",
        ),
        (lambda one: attrs.evolve(one, within=Within(0.04)), "bought"),
        (lambda one: attrs.evolve(one, within=None), "bought"),
    ],
)
def test_a_record_whose_wish_did_not_buy_it_is_found(slip, said):
    """A hit charged at another scale, or a wish that was read from a count, leaves such a record."""
    session = opened(within=0.02)
    for query in STREAM[:3]:
        session.answer(query)
    records = [slip(one) if isinstance(one, Single) else one for one in session.transcript]
    problems = _unpaid(records, session.plan, DOMAIN)
    assert problems
    assert any(said in one for one in problems)
    assert not _unpaid([*session.transcript], session.plan, DOMAIN)


def test_reserved_for_a_wish_is_what_its_hit_costs_and_replaces_what_stands():
    """A coarse test must not rest on what a fine one left, nor a fine one on what a coarse one left."""
    session = ic.OnlineIC(DATA, BUDGET, noise=SimulatedNoise(3), ledger=MemoryLedger())
    for query in STREAM[:80]:  # buys tables, and leaves the price of a hit standing
        session.answer(query)
    for query in random_stream(DOMAIN, 60, 9):
        session.answer(query, within=0.04)
    for query in random_stream(DOMAIN, 60, 10):
        session.answer(query)
    assert not _unpaid([*session.transcript], session.plan, DOMAIN)
