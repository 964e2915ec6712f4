"""Blocks with one capacity each, by enumeration: adaptive nodes over one block and over several."""

import itertools
import math
from fractions import Fraction

import attrs
import pytest

import onlineic as ic
from onlineic import weights, where
from onlineic.accounting import (
    TICK,
    BlockAccount,
    Charge,
    Filter,
    ReplaceRows,
    gaussian_charge,
    gumbel_charge,
    laplace_charge,
)
from onlineic.errors import BudgetExceededError, InvalidParameterError
from onlineic.sparse import ExponentialSparse, GumbelSparse, UnconditionalNumbers

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


def most_of_a_person(draw, rows=2, blocks="ab", priced=None, other=0):
    """The largest divergence between tables that differ in rows of one person, in at most `rows` blocks.

    Months of all blocks are opened, then years over all of them for as long as the account pays, at what it
    pays for. `priced` is the number of rows that a node over so many blocks is priced at, and `other` what
    another person has in every block.
    """
    whole = Filter(2 * rows * price(FULL).amount, "ticks", ORDER)
    priced = priced or (lambda many: min(rows, many))

    def laws_of(records):
        found = {}

        def told(account, transcript, probability):
            step = len(transcript)
            labels = (blocks[step],) if step < len(blocks) else tuple(blocks)

            def charged(epsilon):
                return price(epsilon, priced(len(labels)))

            epsilon = affordable(draw, account, labels, charged) if step < len(blocks) + 2 else None
            if epsilon is None:
                found[transcript] = found.get(transcript, 0.0) + probability
                return
            if step == 1 and transcript[0][1] == 1:
                epsilon = EPSILONS[1]
            after = draw(account, labels, charged(epsilon))
            for bit, p in bit_told(epsilon, sum(other + records[label] for label in labels)).items():
                told(after, (*transcript, (epsilon, bit)), probability * p)

        begun = BlockAccount(whole, rows=rows)
        for label in blocks:
            begun = begun.begun(label)
        told(begun, (), 1.0)
        return found

    tables = [dict(zip(blocks, bits, strict=True)) for bits in itertools.product((0, 1), repeat=len(blocks))]
    laws_held = [laws_of(table) for table in tables]
    found = [
        divergence(laws_held[one], laws_held[other])
        for one, other in itertools.permutations(range(len(tables)), 2)
        if sum(tables[one][label] != tables[other][label] for label in blocks) <= rows
    ]
    return max(found) / float(whole.capacity)


@pytest.mark.parametrize("blocks", ["ab", "abc"])
def test_a_person_with_rows_in_two_blocks_loses_no_more_than_one_capacity(blocks):
    assert 0.6 < most_of_a_person(honest, blocks=blocks) <= 1.0
    assert most_of_a_person(honest, blocks=blocks, other=1) <= 1.0


@pytest.mark.parametrize("blocks", ["ab", "abc"])
def test_a_year_that_is_priced_at_one_row_of_a_person_is_found(blocks):
    assert most_of_a_person(honest, blocks=blocks, priced=lambda _: 1) > 1.02


def test_an_account_that_draws_of_a_person_as_of_one_row_is_found():
    def of_one_row(account, labels, charge):
        alone = attrs.evolve(account, rows=1).drawn(labels, charge)
        return attrs.evolve(account, blocks=alone.blocks)

    assert most_of_a_person(of_one_row) > 1.1


def test_a_block_pays_for_all_rows_of_a_person_and_a_year_once_for_those_that_it_holds():
    account = BlockAccount(Filter(Fraction(6)), rows=3)
    for label in "abcd":
        account = account.begun(label)

    months = account.drawn("a", Charge(Fraction(1), "month"))
    halves = account.drawn("ab", Charge(Fraction(1), "half"))
    years = account.drawn("abcd", Charge(Fraction(1), "year"))

    assert (Fraction(1, 2), Fraction(1)) == (months.left("a"), months.left("b"))
    assert Fraction(3, 4) == halves.left("a") == halves.left("b")
    assert Fraction(5, 6) == years.left("d")
    with pytest.raises(InvalidParameterError, match="rows must be"):
        BlockAccount(Filter(Fraction(1)), rows=0)


@pytest.mark.parametrize("held", [2, 3, 12])
@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(35), Fraction(400)])
def test_fewer_rows_than_a_node_is_priced_at_cost_at_most_their_part(order, held):
    """The lemma of 13.3: every charge is convex in the number of rows, and nothing at none."""
    near, tested = ReplaceRows(held), Fraction(40_000 * held)
    for rows in range(1, held + 1):
        some = ReplaceRows(rows)
        for charge in (
            lambda near: gumbel_charge(order, near.any_gap(), tested, tested, near.table_squared()),
            lambda near: gaussian_charge(order, tested, near.table_squared()),
            lambda near: math.ceil(near.table_l1() / tested / TICK),
        ):
            assert charge(some) <= Fraction(rows, held) * charge(near) + 1  # rounded up to a tick


def test_what_is_rounded_to_a_grid_is_rounded_for_each_row_of_a_person():
    """Otherwise two rows that move a count by half a step each would cost what one of them does."""
    domain = ic.Domain.of(a=3)
    query = where(a=weights([0.0, 0.25, 0.125])).bind(domain)
    for kind, budget in ((GumbelSparse, ic.Budget(1.0, 1e-9)), (ExponentialSparse, ic.Budget(1.0))):
        for rows in (1, 2, 3):
            near = attrs.evolve(budget, neighbours=ReplaceRows(rows))
            sparse = kind.calibrated(near, n=1_000, hard_answers=5, max_queries=100, grid_bits=1)
            assert rows == sparse.tested_by(query) == sparse.moved_by(query)  # half a step, rounded up
    numbers = UnconditionalNumbers.calibrated(
        ic.Budget(1.0, neighbours=ReplaceRows(2)), n=1_000, answers=5, grid_bits=1
    )
    alone = UnconditionalNumbers.calibrated(ic.Budget(1.0), n=1_000, answers=5, grid_bits=1)
    assert numbers.price(query).amount == pytest.approx(float(alone.price(query).amount), rel=1e-6)


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
