"""Blocks with one capacity each, by enumeration: adaptive nodes over one block and over several."""

import itertools
import math
from fractions import Fraction

import attrs
import pytest

from onlineic.accounting import TICK, BlockAccount, Charge, Filter, laplace_charge
from onlineic.errors import BudgetExceededError, InvalidParameterError

ORDER = Fraction(4)
FULL = 1.0  # epsilon of a node of each of two levels
EPSILONS = (1.0, 0.75, 0.5, 0.25)


def price(epsilon, rows=1):
    """The charge of a randomised response of this epsilon, of which a person has so many rows."""
    ticks = laplace_charge(ORDER, Fraction(1) / Fraction(epsilon * rows), 1)
    return Charge(Fraction(ticks), "a bit", "ticks", ORDER)


def capacity(levels=2):
    return Filter(levels * price(FULL).amount, "ticks", ORDER)


def bit_told(epsilon, total):
    """The law of a bit about a sum of records: epsilon for each record that moves it by one.

    From 0 to 1 it is randomised response, and so costs all of its price.
    """
    zero = 1.0 / (1.0 + math.exp(epsilon))
    zero *= math.exp(epsilon if total == 0 else -(total - 1) * epsilon)
    return {0: zero, 1: 1.0 - zero}


def laws(records, draw, union=("a", "b"), charged=price):
    """The law of everything told by months a and b and years over both, each chosen from what was told.

    `draw` is the account's rule: it returns the account after a node. The month of the second block is
    planned by what the first one told. Years are opened until no block can pay for another.
    """
    found = {}

    def told(account, transcript, probability):
        step = len(transcript)
        if step >= 5:
            found[transcript] = found.get(transcript, 0.0) + probability
            return
        labels = ("a",) if step == 0 else ("b",) if step == 1 else union
        if step == 1:
            account = account.begun("b")
        epsilon = affordable(draw, account, labels, charged)
        if epsilon is None:
            found[transcript] = found.get(transcript, 0.0) + probability
            return
        if step == 1 and transcript[0][1] == 1:
            epsilon = EPSILONS[1]  # the second block's month is planned by what the first one told
        held = [records[label] for label in labels]
        after = draw(account, labels, charged(epsilon))
        for bit, p in bit_told(epsilon, sum(held)).items():
            told(after, (*transcript, (epsilon, bit)), probability * p)

    told(BlockAccount(capacity()).begun("a"), (), 1.0)
    return found


def affordable(draw, account, labels, charged):
    for epsilon in EPSILONS:
        try:
            draw(account, labels, charged(epsilon))
        except BudgetExceededError:
            continue
        return epsilon
    return None


def divergence(one, other):
    """Renyi divergence of the order, in ticks, of two laws of transcripts."""
    a = float(ORDER)
    assert one.keys() == other.keys()
    return math.log(math.fsum(p**a * other[told] ** (1 - a) for told, p in one.items())) / (a - 1) / TICK


def worst(draw, moved, **options):
    """The largest divergence between tables that differ as `moved` says: in one block, or in both."""
    tables = [dict(zip("ab", bits, strict=True)) for bits in itertools.product((0, 1), repeat=2)]
    found = [
        divergence(laws(one, draw, **options), laws(other, draw, **options))
        for one, other in itertools.permutations(tables, 2)
        if sum(one[label] != other[label] for label in "ab") in moved
    ]
    return max(found)


def honest(account, labels, charge):
    return account.drawn(labels, charge)


def test_months_and_years_chosen_adaptively_keep_the_capacity_of_a_block_and_come_close():
    most = float(capacity().capacity)

    assert 0.9 * most < worst(honest, {1}) <= most


def test_an_account_that_adds_only_the_last_node_is_found():
    def last_alone(account, labels, charge):
        fresh = {**account.blocks, **dict.fromkeys(labels, account.whole)}
        return attrs.evolve(account, blocks=fresh).drawn(labels, charge)

    assert worst(last_alone, {1}) > 1.2 * float(capacity().capacity)


def test_an_account_of_which_a_node_charges_one_block_alone_is_found():
    def last_alone(account, labels, charge):
        return account.drawn(labels[-1:], charge)

    assert worst(last_alone, {1}) > 1.02 * float(capacity().capacity)


def test_a_union_that_holds_a_block_twice_is_found_and_refused():
    def once(account, labels, charge):
        return account.drawn(tuple(dict.fromkeys(labels)), charge)

    assert worst(once, {1}, union=("a", "b", "b")) > 1.2 * float(capacity().capacity)
    with pytest.raises(InvalidParameterError, match="every block of a union once"):
        BlockAccount(capacity()).begun("a").drawn(("a", "a"), price(0.5))


def test_a_person_with_a_row_in_each_block_costs_both_months_and_the_year_at_two_rows():
    def of_person(account, labels, charge):
        """One account of the person, from which every node that holds her draws."""
        person = account.drawn(("a",), charge)
        return attrs.evolve(account, blocks={**account.blocks, "a": person.blocks["a"]})

    tables = [{"a": 0, "b": 0}, {"a": 1, "b": 1}]

    def loss(rows):
        def laws_of(records):
            return laws_of_person(records, of_person, rows)

        return max(
            divergence(laws_of(one), laws_of(other)) for one, other in itertools.permutations(tables, 2)
        )

    most = float(capacity(4).capacity)

    assert loss(rows=2) <= most
    assert loss(rows=1) > 1.05 * most  # planted: the node over both is priced at one row


def laws_of_person(records, draw, rows):
    """As `laws`, with one account for all nodes that hold a person, and as many years as it pays for."""
    found = {}

    def told(account, transcript, probability):
        step = len(transcript)
        labels = ("a",) if step == 0 else ("b",) if step == 1 else ("a", "b")
        charge = price(FULL, rows if step > 1 else 1)
        try:
            after = draw(account, labels, charge)
        except BudgetExceededError:
            found[transcript] = found.get(transcript, 0.0) + probability
            return
        held = [records[label] for label in labels]
        for bit, p in bit_told(FULL, sum(held)).items():
            told(after, (*transcript, bit), probability * p)

    told(BlockAccount(capacity(4)).begun("a").begun("b"), (), 1.0)
    return found


def test_accounts_are_exact_and_a_refusal_leaves_them_as_they_were():
    whole = Filter(Fraction(1))
    account = BlockAccount(whole).begun("a").begun("b").drawn(["a"], Charge(Fraction(2, 3), "month"))

    with pytest.raises(BudgetExceededError, match="with 1/3 left of 'a'; nothing was spent"):
        account.drawn(["b", "a"], Charge(Fraction(1, 2), "year"))

    assert (Fraction(1, 3), Fraction(1)) == (account.left("a"), account.left("b"))
    assert Fraction(0) == account.drawn(["a", "b"], Charge(Fraction(1, 3), "year")).left("a")


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda account: account.begun("a"), "label must be of a new block"),
        (lambda account: account.drawn(["c"], Charge(Fraction(0), "node")), "labels must be those of blocks"),
        (lambda account: account.drawn([], Charge(Fraction(0), "node")), "every block of a union once"),
        (lambda account: account.drawn(["a"], price(0.5)), "charge must count"),
        (lambda account: account.left("c"), "label must be that of a block"),
        (lambda _: BlockAccount(Filter(Fraction(1), spent=Fraction(1))), "whole must be unspent"),
        (lambda _: BlockAccount(1.0), "whole must be"),
    ],
)
def test_what_is_no_block_is_refused_by_name(act, match):
    with pytest.raises(InvalidParameterError, match=match):
        act(BlockAccount(Filter(Fraction(1))).begun("a"))
