"""Records in memory: columns where they were easy, and the very records again when they are read."""

import contextlib
import random
from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge, Filter
from onlineic.ledger import Easy, EasyBatch, Hard, MemoryLedger, Reserved
from onlineic.ledger import kept as kept_module
from onlineic.ledger.kept import Kept
from onlineic.queries import Measurement
from onlineic.queries.batch import Queries
from support.failures import At

DOMAIN = ic.Domain.of(a=10, b=12, c=["x", "y", "z"])
OTHER = ic.Domain.of(a=7)
COST = Charge(Fraction(1, 4), "a hit")


def easy(number, domain=DOMAIN):
    low = number % 5
    interval = {"a": ic.between(low, low + 1 + number % 2)}
    shapes = (
        ic.where(interval),
        ~ic.where({**interval, "c": "y"}),
        ic.where({"a": ic.weights([0.25, 0.5] * 5)}),
        ic.where(b=ic.one_of(0, 3, 7)),
        ic.where({"a": ic.between(low, 9), "b": ic.between(0, number % 11)}),
    )
    expression = shapes[number % len(shapes)] if domain is DOMAIN else ic.where(a=low)
    return Easy(expression.bind(domain), number)


def mixed(count):
    """Return records of all kinds that ledgers hold, runs of easy ones long and short among them."""
    drawn, found = random.Random(1), []
    while len(found) < count:
        first = easy(drawn.randrange(100))
        found += [
            [easy(drawn.randrange(1_000)) for _ in range(drawn.choice([1, 5, 40]))],
            [Reserved(COST), Hard(first.query, 0, Measurement(first.query, np.array([0.5]), 0.1), COST)],
            [easy(number, OTHER) for number in range(20)],
            [Easy(first.query, 2**63), Easy(first.query, (1, 2))],
            [EasyBatch(Queries.bound(DOMAIN, [first.query]), np.array([3]))],
        ][drawn.randrange(5)]
    return found[:count]


def same(ours, theirs):
    return len(ours) == len(theirs) and all(
        one is other or (one == other and one.query.rounding == other.query.rounding)
        for one, other in zip(ours, theirs, strict=True)
    )


def test_what_is_read_is_what_was_written(monkeypatch):
    monkeypatch.setattr(kept_module, "RECENT", 60)
    written, drawn, kept, count = mixed(700), random.Random(2), Kept(), 0
    while count < len(written):
        step = drawn.choice([1, 1, 2, 90])
        kept = kept.followed_by(written[count : count + step])
        count = min(len(written), count + step)
        start = drawn.randrange(count)

        assert len(kept) == count
        assert same(kept.between(0, count), written[:count])
        assert same(kept.between(start, min(count, start + 2)), written[start : min(count, start + 2)])
        assert kept.between(count, count) == ()
        assert kept.between(start, max(0, start - 3)) == ()

    assert any(isinstance(part, EasyBatch) for part in kept.parts)


def test_a_ledger_reads_places_as_a_sequence_does(monkeypatch):
    monkeypatch.setattr(kept_module, "RECENT", 20)
    ledger = MemoryLedger()
    ledger.claim(object(), Filter(Fraction(1)))
    written = [easy(number) for number in range(50)]
    for record in written:
        ledger.commit([record])

    assert len(ledger) == 50
    for start, stop in ((0, None), (3, 17), (19, 21), (45, 90), (60, None), (50, 50), (-2, None)):
        assert ledger.records(start, stop) == tuple(written[start:stop])


@pytest.mark.parametrize("line", range(0, 200, 7))
def test_an_interrupted_step_leaves_what_was(monkeypatch, line):
    monkeypatch.setattr(kept_module, "RECENT", 20)
    ledger = MemoryLedger()
    ledger.claim(object(), Filter(Fraction(1)))
    written = [easy(number) for number in range(20)]
    for record in written:
        ledger.commit([record])
    with contextlib.suppress(KeyboardInterrupt), At({kept_module.__file__}, KeyboardInterrupt(), line):
        ledger.commit([easy(20)])
    count = len(ledger)

    assert count in (20, 21)
    assert ledger.records() == tuple([*written, easy(20)][:count])
    ledger.commit([easy(21)])
    assert ledger.records() == (*written, *[easy(20)][: count - 20], easy(21))


def test_one_record_is_the_one_of_its_place(monkeypatch):
    monkeypatch.setattr(kept_module, "RECENT", 50)
    kept = Kept()
    for record in mixed(180):
        kept = kept.followed_by([record])

    assert len(kept.parts) > 1
    assert same([kept.at(place) for place in range(len(kept))], kept.between(0, len(kept)))
