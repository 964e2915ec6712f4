"""Numbers that are bought by themselves: once each, by who asks, and each with its share of what may fail."""

from fractions import Fraction

import numpy as np
import pytest

import onlineic as ic
from onlineic.accounting import Charge
from onlineic.accounting.neighbours import ADD_REMOVE, REPLACE_ONE, ReplaceRows
from onlineic.accounting.renyi import gaussian_charge
from onlineic.errors import InvalidParameterError
from onlineic.ledger import BoughtTables, Single
from onlineic.plan import PurchaseRule
from onlineic.plan.purchase import Purchase, number_price, single
from onlineic.session import Quota

RENTS = ic.Domain.of(a=6, b=6, c=20, d=5, e=8)  # of so many cells no table of all is settled
COUNTS = np.zeros(RENTS.shape, np.int64)
COUNTS[0, 0, :5, 0, 0], COUNTS[1, 1, 5:, :, 1] = 2000, 200
BUDGET = ic.Budget(1.0, 1e-6)
FIRST, SECOND, TABLE = ic.where(a=0, b=0), ic.where(a=1, c=ic.below(9)), ic.marginal("a", "b")


def opened():
    return ic.OnlineIC(ic.PrivateData(COUNTS, RENTS), BUDGET)


def bought(session):
    return [record for record in session.transcript if isinstance(record, Single)]


@pytest.mark.parametrize(
    ("before", "asked", "statuses"),
    [
        ([], [FIRST, FIRST], ["hard", "repeat"]),
        ([], [FIRST, ~FIRST], ["hard", "repeat"]),
        ([], [ic.where(), FIRST], ["easy", "hard"]),
        ([SECOND], [SECOND, FIRST], ["repeat", "hard"]),
        ([SECOND], [FIRST, SECOND], ["hard", "repeat"]),
        ([], [TABLE, TABLE], ["hard", "repeat"]),
    ],
)
def test_the_one_new_question_of_a_call_is_bought_once(before, asked, statuses):
    session = opened()
    for question in before:
        session.answer(question)
    found = session.answer_many(asked)

    assert statuses == [one.status for one in found]
    assert len(before) + 1 == len(bought(session))


def test_who_asks_pays_for_what_one_question_asks():
    session = opened()
    price = Fraction(session.explain(FIRST).price) * session.account.capacity
    quota, last = Quota("ann", 31 * price / 10), ic.where(a=0, c=4)
    ann = session.paid_by(quota)
    lefts = [session.view().hits_left(quota)]
    for code in range(3):
        assert "hard" == ann.answer(ic.where(a=0, c=code)).status
        lefts.append(session.view().hits_left(quota))
    alone, told = session.account.spent, session.view().explain(last, quota=quota)
    after = ann.answer(last).status

    assert [3, 2, 1, 0] == lefts  # told before each question
    assert {"ann": alone} == session.view().paid  # of tables, which serve everybody, nobody pays
    assert alone <= 3 * price
    assert ("untested", BoughtTables, ()) == (
        after,
        type(session.transcript[-1]),
        session.transcript[-1].heard,
    )
    assert told.shared == pytest.approx(float((session.account.spent - alone) / session.account.capacity))
    assert (0, 0.0, False) == (told.bought, told.tables, told.payable)


def test_questions_of_one_call_are_heard_together_whoever_asks():
    session = opened()
    price = Fraction(session.explain(FIRST).price) * session.account.capacity
    session.answer(FIRST)
    quota, several = Quota("ann", 5 * price / 4), [ic.where(a=0, c=code) for code in range(2)]
    told, spent = session.view().explain(several, quota=quota), session.account.spent
    statuses = [one.status for one in session.paid_by(quota).answer_many(several)]

    assert ["easy", "easy"] == statuses
    assert [2] == [len(one.heard) for one in session.transcript if isinstance(one, BoughtTables)]
    assert told.shared == pytest.approx(float((session.account.spent - spent) / session.account.capacity))
    assert {} == session.view().paid


def test_tables_that_many_numbers_are_worth_are_paid_by_no_quota():
    session = opened()
    session.answer(ic.marginal("d", "e"))
    askers = [Quota(f"ann {place}", session.account.capacity / 12) for place in range(18)]
    questions = [ic.where(a=a, b=b) for a in range(3) for b in range(6)]
    pairs = zip(askers, questions, strict=True)
    statuses = [session.paid_by(asker).answer(question).status for asker, question in pairs]

    assert statuses == ["hard"] * 15 + ["easy"] * 3
    assert BoughtTables in map(type, session.transcript)
    assert sum(session.view().paid.values()) == sum(one.charge.amount for one in bought(session)[1:])


@pytest.mark.parametrize("neighbours", [REPLACE_ONE, ADD_REMOVE, ReplaceRows(3)])
def test_a_number_costs_how_far_a_neighbour_moves_it_once_it_is_rounded_down(neighbours):
    """Its count is rounded to multiples of 2^-8 of a record: finer weights move it by one more."""
    weights = np.full(6, 0.25)
    weights[1] = 0.5 + 2.0**-20
    query, rows = ic.where(a=ic.weights(weights)).bind(RENTS), neighbours.rows
    low, high = (0.0, weights[1]) if neighbours is ADD_REMOVE else (0.25, weights[1])
    counts = np.arange(2**12) * 2.0**-20 + 7.0  # of the records that both tables have
    moved = np.floor(256 * (counts + rows * high)) - np.floor(256 * (counts + rows * low))

    assert number_price(None, query, Fraction(1), neighbours) * 256 >= moved.max()
    assert number_price(Fraction(8), query, Fraction(1), neighbours) >= gaussian_charge(
        Fraction(8), Fraction(256), int(moved.max()) ** 2
    )


class Another(PurchaseRule):
    """Buys a number that nobody asks, or the one that is asked with a table."""

    def __init__(self, more):
        self.more = more

    def start(self):
        return None

    def heard(self, so_far, record):
        return None

    def next(self, facts):
        if self.more is None:
            most = facts.account.capacity / 9
            return single(SECOND.bind(RENTS), most, facts.account, facts.neighbours)
        unpaid = Charge(facts.account.capacity / 2, "both", facts.account.unit, facts.account.order)
        targets = (facts.question, self.more)
        return Purchase(targets, (Fraction(500), Fraction(500)), unpaid, neighbours=facts.neighbours)


@pytest.mark.parametrize("more", [None, TABLE.bind(RENTS).partition])
def test_no_rule_buys_a_number_that_is_not_asked_or_beside_tables(more):
    session = ic.OnlineIC(ic.PrivateData(COUNTS, RENTS), BUDGET, purchases=Another(more))
    with pytest.raises(InvalidParameterError, match="a number by itself and for the question at hand"):
        session.answer(FIRST)

    assert ((), 0) == (session.transcript, session.account.spent)


class OneTable(PurchaseRule):
    """Buys one table for a third of the budget, before whatever is asked first."""

    def start(self):
        return 0

    def heard(self, so_far, record):
        return so_far + isinstance(record, BoughtTables | Single)

    def planned(self, account):
        return account.capacity / 3

    def next(self, facts):
        if facts.heard or facts.question is None:
            return None
        most = facts.account.capacity / 3
        return single(TABLE.bind(RENTS), most, facts.account, facts.neighbours)


def test_hits_leave_a_table_bought_alone_its_share_of_what_may_fail():
    bounds, spent = [], []
    for first in (TABLE, FIRST):  # the table is its answer, or is bought for everybody
        session = ic.OnlineIC(ic.PrivateData(COUNTS, RENTS), BUDGET, purchases=OneTable())
        session.answer(first)
        spent.append(session.account.spent)
        bounds.append(session.explain(SECOND).bound_hard)

    assert spent[0] == spent[1] > 0
    # of so many hits each may fail with the price that it has of the account, not of what the table left
    assert bounds[0] > bounds[1]


class Rash(OneTable):
    """Names a place in a call that may not be there, for what it would buy next."""

    def __init__(self, place):
        self.place = place

    def lookahead(self, heard):
        return 8

    def due_at(self, heard, questions, account):
        return self.place


@pytest.mark.parametrize("place", [-1, 0, 2, 3, 10**6])
def test_a_call_is_answered_wherever_a_rule_says_that_something_is_due(place):
    session = ic.OnlineIC(ic.PrivateData(COUNTS, RENTS), BUDGET, purchases=Rash(place))
    found = session.answer_many([ic.where(a=0, c=code) for code in range(3)])

    assert 3 == len(found) == session.statistics().asked
