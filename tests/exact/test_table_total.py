"""One budget a table, by exact sums: what is interleaved in one filter, and a person with several rows."""

import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

import onlineic as ic
from onlineic.accounting import (
    Filter,
    alike,
    laplace_charge,
    per_person,
    per_row,
    renyi_capacity,
    renyi_epsilon,
    share_of,
    table_charge,
    zcdp_order,
    zcdp_rho,
)
from onlineic.errors import BudgetExceededError, InvalidParameterError

TICK = 2.0**-40
ORDER = Fraction(7)


def moment(joint, other, order, charges):
    """sum over o of e^(-(a-1) c(o)) P(o)^a P'(o)^(1-a)."""
    a = float(order)
    return math.fsum(
        math.exp(-(a - 1) * charges(o) + a * math.log(p) + (1 - a) * math.log(other[o]))
        for o, p in joint.items()
        if p > 0
    )


def laplace(scale, reach=400):
    q = math.exp(-1 / scale)
    return {z: q ** abs(z) * (1 - q) / (1 + q) for z in range(-reach, reach + 1)}


class Secret:
    """A pure mechanism with a state: a count with Laplace noise, drawn once; each step tells one bit of it.

    Which threshold is asked depends on all that was told before, also by the others: epsilon in all, however
    many steps.
    """

    def __init__(self, epsilon, count):
        self.law = {count + z: p for z, p in laplace(1 / epsilon).items()}

    def answer(self, state, threshold):
        """Return {bit: (probability, state)} of a state, which is the law of the noisy count so far."""
        mass = math.fsum(state.values())
        parts = ({v: p for v, p in state.items() if (v >= threshold) is bit} for bit in (False, True))
        return {
            bit: (math.fsum(part.values()) / mass, part)
            for bit, part in zip((0, 1), parts, strict=True)
            if part and math.fsum(part.values()) > 0
        }


def transcripts(count, epsilon, scales):
    """Return the exact law of pure steps and fresh Laplace answers in turn, each chosen by what was told."""
    secret = Secret(epsilon, count)
    paths = {(): (1.0, secret.law, 0.0)}
    for place in range(4):
        grown = {}
        for told, (p, state, spent) in paths.items():
            if place % 2:  # a fresh answer, censored to five values; a dearer one after a 1
                scale = scales[sum(bool(one) for one in told) % len(scales)]
                law = {}
                for z, one in laplace(scale).items():
                    value = max(-2, min(2, count + z))
                    law[value] = law.get(value, 0.0) + one
                cost = laplace_charge(ORDER, Fraction(scale), 1) * TICK
                for value, one in law.items():
                    grown[*told, value] = (p * one, state, spent + cost)
            else:
                threshold = 1 + (sum(told) % 3) - (place > 0)
                for bit, (one, rest) in secret.answer(state, threshold).items():
                    grown[*told, bit] = (p * one, rest, spent)
        paths = grown
    return paths


@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(3, 2)])
def test_a_pure_mechanism_between_the_steps_of_a_filter_costs_its_randomised_response(epsilon):
    """Theory 4.7: interleaved, each chosen by all that was told before; both orders of the neighbours."""
    pure = laplace_charge(ORDER, 1 / epsilon, 1) * TICK
    found = []
    for one, other in ((0, 1), (1, 0)):
        here = transcripts(one, float(epsilon), (4, 7))
        there = transcripts(other, float(epsilon), (4, 7))
        spent = {told: cost for told, (_, _, cost) in here.items()}
        law, against = ({told: p for told, (p, _, _) in paths.items()} for paths in (here, there))
        found.append(moment(law, against, ORDER, lambda told, spent=spent: spent[told] + pure))
        cheaper = moment(law, against, ORDER, lambda told, spent=spent: spent[told] + 0.6 * pure)
    assert max(found) <= 1 + 1e-9
    assert cheaper > 1  # so the price is not for nothing


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("order", [Fraction(65, 64), Fraction(7, 2), Fraction(35)])
def test_the_price_of_a_pure_mechanism_is_the_divergence_of_randomised_response(epsilon, order):
    p = 1 / (1 + math.exp(-float(epsilon)))
    a = float(order)
    exact = math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
    charged = table_charge(Filter(Fraction(10**30), "ticks", order), ic.Budget(epsilon), None, "x")

    assert exact <= charged.charge.amount * TICK * (1 + 1e-9)
    assert charged.charge.amount * TICK <= exact * (1 + 1e-6) + 2 * TICK
    assert charged.charge.amount * TICK <= min(float(epsilon), a * float(epsilon) ** 2 / 2) + 2 * TICK


def test_a_filter_of_a_higher_order_keeps_its_charges_at_a_lower_one():
    """Jensen: the moment of order a - 1 of a loss less its charge is at most 1 where a higher one is."""
    law, other = ({v + shift: p for v, p in laplace(3).items()} for shift in (0, 1))
    joint = {v: law.get(v, 0.0) for v in set(law) & set(other)}
    for higher, lower in itertools.combinations_with_replacement((9, 5, 2), 2):
        cost = laplace_charge(Fraction(higher), Fraction(3), 1) * TICK
        assert moment(joint, other, lower, lambda _, cost=cost: cost) <= 1 + 1e-9
    cost = laplace_charge(Fraction(2), Fraction(3), 1) * TICK
    assert moment(joint, other, 9, lambda _: cost) > 1  # and not the other way


def test_draws_of_every_kind_together_keep_epsilon_and_delta_exactly():
    """A filter session, a pure one and one with a failure of its delta: the exact delta of the product."""
    whole = ic.Budget(1.0, 1e-3)
    order = zcdp_order(1.0, 5e-4)
    total = ic.TableBudget(whole, apart=Fraction(1, 2), order=order)
    capacity = renyi_capacity(order, 1.0, 5e-4)
    pure, other = ic.Budget(0.1), ic.Budget(0.05, 5e-4)
    for one in (pure, other):
        total.draw(one)
    rest = math.floor(total.left * capacity)
    scale = next(Fraction(s, 8) for s in range(8, 800) if laplace_charge(order, Fraction(s, 8), 1) <= rest)
    total.draw(ic.Budget(1.0, 5e-4), Filter(Fraction(laplace_charge(order, scale, 1)), "ticks", order))
    here, there = ({v + shift: p for v, p in laplace(float(scale)).items()} for shift in (0, 1))

    def bit(epsilon, fail, truth):
        p = (1 - fail) / (1 + math.exp(-float(epsilon)))
        return {truth: p, 1 - truth: 1 - fail - p, ("fails", truth): fail}

    def joint(law, truth):
        parts = (law.items(), bit(0.1, 0.0, truth).items(), bit(0.05, 5e-4, truth).items())
        return {
            tuple(value for value, _ in told): math.prod(p for _, p in told)
            for told in itertools.product(*parts)
        }

    one, two = joint(here, 0), joint(there, 1)
    for law, against in ((one, two), (two, one)):
        delta = math.fsum(max(0.0, p - math.e * against.get(told, 0.0)) for told, p in law.items())
        assert 5e-4 <= delta <= 1e-3  # the failure is there, and the rest fits beside it


# --- what adds, and becomes a filter ---------------------------------------------------------------------


def failing(epsilon, fail, truth):
    """A bit that tells the table with odds e^epsilon, and with probability `fail` for sure."""
    p = (1 - fail) / (1 + math.exp(-float(epsilon)))
    return {truth: p, 1 - truth: 1 - fail - p, ("fails", truth): fail}


def drawn_delta(draws, epsilon):
    """Return the exact delta of draws side by side at this epsilon."""
    law, other = ({(): 1.0}, {(): 1.0})
    for epsilon_of, fail in draws:
        law, other = (
            {(*told, bit): p * q for told, p in so_far.items() for bit, q in one.items()}
            for so_far, one in ((law, failing(epsilon_of, fail, 0)), (other, failing(epsilon_of, fail, 1)))
        )
    return exact_delta_of(law, other, epsilon)


def admitted(whole, draws):
    """Return those of the draws that a total takes, in their order."""
    total, taken = ic.TableBudget(whole), []
    for epsilon, fail in draws:
        try:
            total.draw(ic.Budget(epsilon, fail))
        except BudgetExceededError:
            continue
        taken.append((epsilon, fail))
    return taken


def test_what_adds_keeps_epsilon_and_delta_exactly_and_comes_close():
    whole, draws = ic.Budget(1.0, 1e-3), [(0.5, 4e-4), (0.5, 6e-4), (0.25, 0.0), (0.25, 1e-5), (0.75, 0.0)]
    taken = admitted(whole, draws)

    assert [(0.5, 4e-4), (0.5, 6e-4)] == taken
    assert 0.95e-3 <= drawn_delta(taken, 1.0) <= 1e-3
    assert drawn_delta([*taken, (0.25, 0.0)], 1.0) > 0.03
    assert drawn_delta([*taken, (1e-9, 1e-4)], 1.0) > 1e-3


EPSILON, DELTA, FIRST, APART = 1.0, 1e-3, 0.5, Fraction(1, 100)


def dearest(order, ticks, before):
    """Return E_Q of (L - e^epsilon)+ of the worst step of two outcomes that is paid, behind L = before.

    One outcome has the likelihood ratio at which the conversion to (epsilon, delta) is tight.
    """
    a, allowed = float(order), math.exp((float(order) - 1) * ticks * TICK)
    ratio = math.exp(EPSILON) * a / (a - 1) / before

    def cost(q):
        p = q * ratio
        here = p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)
        return max(here, q**a * p ** (1 - a) + (1 - q) ** a * (1 - p) ** (1 - a))

    low, high = 0.0, (1 - 1e-12) / ratio
    for _ in range(200):
        low, high = (middle, high) if cost(middle := (low + high) / 2) <= allowed else (low, middle)
    return low * (before * ratio - math.exp(EPSILON))


def chosen_by_what_was_told(share_of_rest=None):
    """Return the exact delta of an analyst who lets a pure bit decide what is drawn next.

    If the bit speaks for the table, a share, whose worst outcome is worth more behind it; if against it, what
    adds, all of whose delta is a failure.
    """
    likely = 1 / (1 + math.exp(-FIRST))  # of the bit that speaks for the table
    total = ic.TableBudget(ic.Budget(EPSILON, DELTA), apart=APART)
    total.draw(ic.Budget(FIRST))
    share = total.share(1.0)
    ticks = renyi_capacity(share.order, share.epsilon, share.delta)
    total.draw(share, Filter(Fraction(ticks), "ticks", share.order))
    ticks = ticks if share_of_rest is None else share_of_rest(share.order)
    spoken_for = (1 - likely) * dearest(share.order, ticks, math.exp(FIRST))
    total = ic.TableBudget(ic.Budget(EPSILON, DELTA), apart=APART)
    total.draw(ic.Budget(FIRST))
    total.draw(ic.Budget(EPSILON - FIRST, float(total.apart_left)))
    return spoken_for + (1 - likely) * DELTA  # the failure has ratio infinity


def test_the_account_cannot_be_chosen_by_what_was_told():
    """A filter that goes on while either account holds is broken; the one of what is left is not."""
    either = chosen_by_what_was_told(
        lambda order: (
            renyi_capacity(order, EPSILON, 0.99 * DELTA) - laplace_charge(order, 1 / Fraction(FIRST), 1)
        )
    )
    forgotten = chosen_by_what_was_told(lambda order: renyi_capacity(order, EPSILON, 0.99 * DELTA))

    assert 0.5 * DELTA <= chosen_by_what_was_told() <= DELTA
    assert either > 1.05 * DELTA
    assert forgotten > 1.05 * DELTA


def test_a_filter_behind_what_was_added_keeps_epsilon_and_delta_exactly():
    """Added before: a bit with a failure. In the filter: Laplace noise, a pure bit and one with a failure."""
    whole, before, inside = ic.Budget(1.0, 1e-3), ic.Budget(0.25, 4e-4), ic.Budget(0.05, 3e-4)
    total = ic.TableBudget(whole, apart=Fraction(1, 2))
    total.draw(before)
    share = total.share(0.5)
    capacity = renyi_capacity(share.order, share.epsilon, share.delta)
    scale = next(
        Fraction(s, 8) for s in range(8, 8000) if laplace_charge(share.order, Fraction(s, 8), 1) <= capacity
    )
    total.draw(share, Filter(Fraction(capacity), "ticks", share.order))
    total.draw(inside)
    here, there = ({v + shift: p for v, p in laplace(float(scale)).items()} for shift in (0, 1))
    law, other = (
        {
            (*told, value): p * q
            for told, p in (
                ((one, two), p * q)
                for one, p in failing(0.25, 4e-4, truth).items()
                for two, q in failing(0.05, 3e-4, truth).items()
            )
            for value, q in noise.items()
        }
        for truth, noise in ((0, here), (1, there))
    )
    delta = exact_delta_of(law, other, 1.0)

    assert 6e-4 <= delta <= 1e-3
    assert total.apart_left == Fraction(1, 2) * (whole.delta_exact - before.delta_exact) - inside.delta_exact
    with pytest.raises(BudgetExceededError):
        total.draw(ic.Budget(1e-6, 1e-6))


# --- shares ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 7, 50])
def test_shares_cost_their_part_and_say_what_they_are(parts):
    order = zcdp_order(1.0, 1e-9)
    capacity = renyi_capacity(order, 1.0, 1e-9)
    share = share_of(Fraction(capacity, parts), order, 1e-9)
    charged = renyi_capacity(share.order, share.epsilon, share.delta)

    assert 0 <= capacity / parts - charged < 3
    assert share.epsilon <= renyi_epsilon(order, charged + 3, 1e-9)
    like = alike(share)
    assert zcdp_rho(like.epsilon, like.delta) == pytest.approx(zcdp_rho(1.0, 1e-9) / parts, rel=5e-3)
    with pytest.raises(InvalidParameterError):
        share_of(Fraction(1, 2), order, 1e-9)


# --- rows of a person ------------------------------------------------------------------------------------


def truncated(count, epsilon, reach):
    """A count of records with noise on -reach .. reach: (epsilon, delta) for one row, with delta > 0."""
    law = {z: math.exp(-epsilon * abs(z)) for z in range(-reach, reach + 1)}
    total = math.fsum(law.values())
    return {count + z: p / total for z, p in law.items()}


def exact_delta_of(law, other, epsilon):
    return math.fsum(max(0.0, p - math.exp(epsilon) * other.get(o, 0.0)) for o, p in law.items())


@pytest.mark.parametrize("rows", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_a_person_with_several_rows_keeps_the_budget_that_was_divided(rows, epsilon):
    """Every outcome summed, for a person whose rows are all counted, against one whose rows are none."""
    reach = 12
    small = exact_delta_of(truncated(0, epsilon, reach), truncated(1, epsilon, reach), epsilon)
    grown = rows * math.exp((rows - 1) * epsilon) * small
    person = ic.Budget(math.nextafter(rows * epsilon, 99), grown * (1 + 1e-12), allow_large_epsilon=True)
    row = per_row(person, rows)
    assert (row.epsilon, row.delta) == (pytest.approx(epsilon), pytest.approx(small, rel=1e-9))

    exact = exact_delta_of(truncated(0, epsilon, reach), truncated(rows, epsilon, reach), person.epsilon)
    assert exact <= person.delta
    assert exact > rows * small * (1 - 1e-9)  # k times delta alone would not do


def test_a_budget_of_a_person_is_never_less_than_its_rows_cost():
    for rows, epsilon, delta in itertools.product((1, 2, 3, 7, 100), (0.1, 1.0, 3.0), (0.0, 1e-9)):
        row = per_row(ic.Budget(epsilon, delta), rows)
        assert row.epsilon_exact * rows <= Fraction(epsilon)
        grown = rows * math.exp((rows - 1) * row.epsilon) * row.delta
        assert grown <= delta * (1 + 1e-14)
        assert grown >= delta * (1 - 1e-9)
    with pytest.raises(InvalidParameterError):
        per_row(ic.Budget(20.0, 5e-324), 3)


def test_what_a_row_s_mechanism_costs_a_person_is_never_told_too_small():
    for rows, epsilon, delta in itertools.product((1, 2, 3, 7, 100), (0.1, 1.0, 3.0), (0.0, 1e-9, 0.5)):
        row = ic.Budget(epsilon, delta)
        person = per_person(row, rows)
        with localcontext(Context(prec=50)):
            grown = rows * (Decimal(epsilon) * (rows - 1)).exp() * Decimal(delta) * (1 - Decimal(10) ** -40)
        assert person.epsilon_exact >= rows * row.epsilon_exact
        assert Decimal(person.delta) >= min(grown, Decimal(math.nextafter(1.0, 0.0)))
        assert person.epsilon == pytest.approx(rows * epsilon)
        assert person.delta == pytest.approx(min(float(min(grown, Decimal(1))), 1.0))


def test_a_budget_that_was_divided_among_rows_is_the_person_s_again():
    for rows, epsilon, delta in itertools.product((1, 2, 3, 7, 100), (0.1, 1.0, 3.0), (0.0, 1e-9)):
        budget = ic.Budget(epsilon, delta)
        again = per_person(per_row(budget, rows), rows)
        assert budget.epsilon_exact * (1 - Fraction(1, 2**50)) <= again.epsilon_exact <= budget.epsilon_exact
        assert again.delta == pytest.approx(delta, rel=1e-12)
        assert again.delta_exact <= budget.delta_exact
