"""The private half of a session: reserved before it is read, recorded before anything else can happen."""

from fractions import Fraction

import attrs
import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.errors import InternalError, SessionSealedError
from onlineic.ledger import Easy, Forfeited, Hard, Reserved, Transcript
from onlineic.queries import Partition, PartitionRule, Queries, derived, marginal
from onlineic.sparse import ExponentialSparse
from support.cores import core_of, payable, put_to_test
from support.failures import SECRET, BrokenError, Stop, frames, plant, reached_by
from support.noise import Silent
from support.sessions import charged

DOMAIN = ic.Domain.of(a=4, b=3)
COUNTS = np.array([[0, 0, 0], [0, 5000, 100], [20_000, 7, 3], [0, 0, 4890]])
N = 30_000
BITS = 2
# epsilon 1: a quarter for the threshold noise of the run, and for each hit an eighth for its test and one for
# its fresh number, so that three are payable; a query of a quarter of the range costs less
SPARSE = ExponentialSparse(N, 1.0, 3000 << BITS, Fraction(16), Fraction(64), BITS, Fraction(8))
START, PRICE = Fraction(1, 4), Fraction(1, 4)
MANY, FEW = ic.where(a=2).bind(DOMAIN, BITS), ic.where(b=2).bind(DOMAIN, BITS)  # 20,010 and 4,993 records
CHEAP = ic.where(a=ic.weights([0.5, 0.75, 0.5, 0.5])).bind(DOMAIN, BITS)
LESS = SPARSE.price(CHEAP).amount


def grid(query, records):
    """A guess of so many records, on the grid of its query."""
    return records << query.grid_bits


def cored(partitions=None):
    data = PrivateData(COUNTS, DOMAIN)
    core, ledger = core_of(data, SPARSE, partitions, Silent())
    return core, data, ledger


# -- what is reserved ----------------------------------------------------------------------------------------


def test_the_first_hit_is_reserved_with_the_threshold_noise_of_the_run_and_nothing_is_read():
    core, data, ledger = cored()
    first = payable(core, [MANY, FEW])
    records = ledger.records()
    again = payable(core, [FEW])

    assert ([True, True], [True]) == (first, again)
    assert START + PRICE == ledger.reserved.amount == ledger.spent
    assert (1, 0) == (len(records), data.reads)
    assert records == ledger.records()  # one reservation serves every test until a hit


def test_a_batch_ends_before_what_is_dearer_than_its_first_payable_question_which_tops_up_later():
    core, data, ledger = cored()
    first = payable(core, [CHEAP, MANY, CHEAP])
    cheap = ledger.reserved.amount
    rest = payable(core, [MANY, CHEAP])

    assert PRICE == SPARSE.price(MANY).amount > 2 * LESS
    assert ([True], [True, True]) == (first, rest)
    assert (START + LESS, START + PRICE) == (cheap, ledger.reserved.amount)
    assert 0 == data.reads


def test_what_cannot_be_paid_is_said_and_what_is_cheap_enough_still_is():
    core, _, ledger = cored()
    put_to_test(core, [CHEAP], [0])  # a hit: more than half of all records
    for left in (2, 1):
        put_to_test(core, [MANY], [0])
        core.book.catch_up()
        assert left == core.prices.hard_left() + 1
    spent = ledger.spent

    assert START + 2 * PRICE + LESS == spent
    assert 0 == core.prices.hard_left()
    assert [False, True, False] == payable(core, [MANY, CHEAP, FEW])
    assert spent + LESS == ledger.spent


# -- tests ---------------------------------------------------------------------------------------------------


def test_a_test_without_a_reservation_reads_nothing_and_none_is_above_it():
    core, data, ledger = cored()
    nothing = attrs.evolve(core.cover([MANY]), charge=None)
    before = ledger.records()
    with pytest.raises(InternalError, match="reserved"):
        core.test(nothing, [0])
    both = core.cover([MANY, CHEAP])
    for questions in ([CHEAP, MANY], Queries.bound(DOMAIN, [CHEAP, MANY])):
        above = cored()[0].cover(questions)
        assert ([True], [CHEAP]) == ([*above.payable], [*above.questions])

    assert ([True, True], ledger.reserved) == (both.payable, both.charge)
    assert (0, before, False) == (data.reads, ledger.records(), core.read_guard.sealed)


def test_easy_tests_are_recorded_with_what_was_tested_and_cost_nothing():
    core, _, ledger = cored()
    cover = core.cover(Queries.bound(DOMAIN, [MANY, FEW]))
    standing = ledger.reserved
    core.test(cover, np.array([grid(MANY, 20_000), grid(FEW, 5000)]))

    assert (Easy(MANY, grid(MANY, 20_000)), Easy(FEW, grid(FEW, 5000))) == Transcript(ledger.records(1))
    assert (standing, 3) == (ledger.reserved, core.prices.hard_left())


def test_hits_are_tested_as_long_as_they_can_be_paid():
    core, data, ledger = cored()
    while payable(core, [MANY]) == [True]:
        put_to_test(core, [MANY], [0])  # each is a hit
        assert isinstance(ledger.records()[-1], Hard)
    before, reads = ledger.records(), data.reads

    assert [False] == payable(core, [MANY])
    assert (before, reads, False) == (ledger.records(), data.reads, core.read_guard.sealed)
    assert 3 == sum(isinstance(record, Hard) for record in before)


@pytest.mark.parametrize("distance", [2999, 3000])
def test_a_test_is_hard_from_the_threshold_on(distance):
    core, _, ledger = cored()
    put_to_test(core, [MANY], [grid(MANY, 20_010 - distance)])

    assert (distance < 3000) == isinstance(ledger.records()[-1], Easy)


def test_a_batch_stops_at_its_first_hit_which_uses_up_the_reservation_and_is_measured():
    core, _, ledger = cored()
    cover = core.cover(Queries.bound(DOMAIN, [MANY, FEW, MANY]))
    standing = ledger.reserved
    guesses = np.array([grid(MANY, 20_000), grid(FEW, 10_000), grid(MANY, 0)])
    core.test(cover, guesses)
    core.book.catch_up()
    easy, hard = Transcript(ledger.records(1))

    assert Easy(MANY, grid(MANY, 20_000)) == easy
    assert (FEW, grid(FEW, 10_000), standing) == (hard.query, hard.guess, hard.charge)
    assert (FEW, [4993 / N]) == (hard.measurement.target, hard.measurement.values.tolist())
    assert (None, START + PRICE, 2) == (ledger.reserved, ledger.spent, core.prices.hard_left())
    core.cover([FEW])  # the run has paid its threshold noise
    assert PRICE == ledger.reserved.amount


def test_with_partitions_a_hit_releases_all_blocks_of_what_the_rule_chooses():
    core, _, ledger = cored(PartitionRule())
    put_to_test(core, [MANY], [0])
    released = ledger.records()[-1].measurement

    assert isinstance(released.target, Partition)
    assert {0} <= {*released.target.axes}
    assert 1.0 == pytest.approx(released.values.sum())
    assert 20_010 / N == pytest.approx(derived(MANY, released)[0])


def test_a_cross_table_is_tested_by_its_largest_gap_and_releases_its_cells():
    core, _, ledger = cored()
    table = marginal("b").bind(DOMAIN)
    put_to_test(core, [table], [(20_000, 5000, 4993)])
    put_to_test(core, [table], [(20_000, 8007, 4993)])
    easy, hard = ledger.records(1)

    assert Easy(table, (20_000, 5000, 4993)) == easy
    assert [20_000 / N, 5007 / N, 4993 / N] == hard.measurement.values.tolist()


# -- failures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [BrokenError, Stop, SystemExit])
@pytest.mark.parametrize(
    ("owner", "name"), [(PrivateData, "exact_counts"), (Silent, "geometric"), (ExponentialSparse, "measure")]
)
def test_a_failure_from_the_read_to_the_record_burns_the_reservation_seals_and_tells_nothing(
    owner, name, failure, monkeypatch, caplog
):
    core, data, ledger = cored()
    cover = core.cover([MANY])
    with monkeypatch.context() as patched:
        plant(patched, owner, name, 1, failure, after=True)
        error = reached_by(core.test, cover, [0])
    reads, spent = data.reads, ledger.spent

    assert type(error) is (failure if failure is SystemExit else SessionSealedError)
    assert (None, None) == (error.__cause__, error.__context__)
    assert frames(error) <= {"test", "run", "guarded"}
    assert str(SECRET) not in caplog.text
    assert core.read_guard.sealed
    assert [Reserved, Forfeited] == [type(record) for record in ledger.records()]
    assert START + PRICE == spent == charged(ledger)
    for refused in (lambda: core.cover([MANY]), lambda: core.test(cover, [0])):
        with pytest.raises(SessionSealedError):
            refused()
    assert (reads, spent) == (data.reads, ledger.spent)
