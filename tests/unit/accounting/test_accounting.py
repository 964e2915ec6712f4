"""Budgets and charges are exact, and every rounding falls on the private side."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from onlineic import accounting
from onlineic.accounting import TICK, Budget, Charge, Filter
from onlineic.errors import BudgetExceededError, InvalidParameterError

# ------------------------------------ arithmetic that shares nothing with the package
BITS = 420
ONE = 1 << BITS


def fixed(value):
    """Fixed-point number with 420 binary digits."""
    return (value.numerator << BITS) // value.denominator


def series_exp(x):
    """e^x in fixed point by Taylor's series of x / 2^64, squared back 64 times with 128 spare digits."""
    spare, small = 192, Fraction(x, ONE << 64)
    one = 1 << (BITS + spare)
    step = (small.numerator << (BITS + spare)) // small.denominator
    term, total, j = one, one, 1
    while term:
        term = term * step // (one * j)
        total, j = total + term, j + 1
    for _ in range(64):
        total = total * total // one
    return total >> spare


def series_log(x):
    """ln x in fixed point: x = m 2^e, ln m and ln 2 by the series of atanh."""

    def atanh(y):
        power, total, j = y, y, 1
        while power:
            power = power * y // ONE * y // ONE
            j += 2
            total += power // j
        return total

    exponent = x.bit_length() - BITS
    mantissa = x << -exponent if exponent <= 0 else x >> exponent
    return 2 * atanh((mantissa - ONE) * ONE // (mantissa + ONE)) + exponent * 2 * atanh(ONE // 3)


def true_charge(order, sensitivity, scale, sigma=None, squared=0):
    """The price as a Fraction, about 100 correct digits."""
    eta = fixed(Fraction(sensitivity) / scale)
    free = ONE - fixed(order - 1) * (series_exp(eta) - ONE) // ONE
    test = Fraction(-eta, ONE) - Fraction(series_log(free), ONE) / (order - 1)
    return test + (order * squared / (2 * Fraction(sigma) ** 2) if sigma else 0)


def true_capacity(order, epsilon, delta):
    """The capacity as a Fraction, about 100 correct digits."""
    logs = Fraction(series_log(fixed(Fraction(delta))) + series_log(fixed(order)), ONE) / (order - 1)
    return Fraction(epsilon) - Fraction(series_log(fixed(1 - 1 / order)), ONE) + logs


def true_tail(x):
    """P(N > x) for x >= 0 by the Taylor series of the normal distribution at 100 digits."""
    with localcontext(Context(prec=100)):
        x = Decimal(x)
        term = total = x
        for j in range(1, 4000):
            term = term * x * x / (2 * j + 1)
            total += term
            if abs(term) < Decimal("1e-95"):
                break
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863")
        return Decimal("0.5") - total * (-x * x / 2).exp() / (2 * pi).sqrt()


# ------------------------------------ budgets, charges, filters
def test_budget_keeps_epsilon_as_given_and_exactly():
    budget = Budget(0.1, 1e-9)

    assert (0.1, 1e-9) == (budget.epsilon, budget.delta)
    assert Fraction(0.1) == budget.epsilon_exact
    assert Fraction(1e-9) == budget.delta_exact
    assert budget == Budget(np.float64(0.1), 1e-9)
    assert (False, True) == (budget.pure, Budget(1).pure)


@pytest.mark.parametrize("wish", [Fraction(1, 10), Fraction(1, 3), Fraction(19999999999999999, 10**15)])
def test_rational_epsilon_is_never_rounded_up(wish):
    assert Budget(wish).epsilon_exact <= wish
    assert wish < Fraction(math.nextafter(Budget(wish).epsilon, math.inf))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *((epsilon, 0) for epsilon in (0, -1, math.nan, math.inf, 20.000001, True, "1", None)),
        *((1, delta) for delta in (-1e-9, 1.0, math.nan, "0")),
        (Fraction(1, 10**400), 0),
    ],
)
def test_budget_outside_its_range_is_refused(epsilon, delta):
    with pytest.raises(
        InvalidParameterError, match=r"(epsilon|delta) must be a number in .* got (epsilon|delta)="
    ):
        Budget(epsilon, delta)


def test_large_epsilon_needs_to_be_asked_for():
    with pytest.raises(InvalidParameterError, match="allow_large_epsilon=True lifts the upper limit"):
        Budget(25.0)

    assert 25.0 == Budget(25.0, allow_large_epsilon=True).epsilon


def test_a_filter_accepts_exactly_its_capacity_and_not_a_hair_more():
    hair = Fraction(1, 10**30)
    half = Filter(Fraction(1, 3), "epsilon").charge(Charge(Fraction(1, 9), "first"))

    assert Fraction(2, 9) == half.left
    assert half.affords(Charge(Fraction(2, 9), "rest"))
    assert not half.affords(Charge(Fraction(2, 9) + hair, "rest"))
    assert Filter(Fraction(1, 3), spent=Fraction(1, 3)) == half.charge(Charge(Fraction(2, 9), "rest"))


def test_a_refused_charge_leaves_the_filter_unchanged_and_says_what_is_left():
    account = Filter(10, spent=4)
    with pytest.raises(
        BudgetExceededError, match="charge must be <= left=6 epsilon, got charge=7 for hard answer"
    ):
        account.charge(Charge(7, "hard answer"))

    assert Filter(10, spent=4) == account
    assert account.charge(Charge(0, "free")) == account


def test_ten_tenths_fit_exactly_where_floats_would_not_add_up():
    account = Filter(Fraction(3, 10), "epsilon")
    for _ in range(3):
        account = account.charge(Charge(Fraction(1, 10), "tenth"))

    assert Fraction(0) == account.left
    assert 0.1 + 0.1 + 0.1 > 0.3


@pytest.mark.parametrize("amount", [0.1, -1, Fraction(-1, 3), True, "1", None, math.nan])
def test_amounts_that_hide_a_rounding_or_a_refund_are_refused(amount):
    with pytest.raises(InvalidParameterError, match="amount must be an int or Fraction >= 0"):
        Charge(amount, "x")
    with pytest.raises(InvalidParameterError, match="capacity must be an int or Fraction >= 0"):
        Filter(amount, "epsilon")


def test_numpy_integers_become_exact_fractions_without_overflow():
    charge = Charge(np.int64(2**62), "x")

    assert Fraction(2**63) == Filter(2**63).charge(charge).charge(charge).spent


@pytest.mark.parametrize(
    ("unit", "order"), [("epsilon", None), ("shares", None), ("ticks", Fraction(2)), ("ticks", Fraction(3))]
)
def test_a_filter_refuses_charges_that_count_something_else(unit, order):
    """A tick is 2^-40: ten thousand charges of .14 epsilon would be 4e-9 of an account of ticks."""
    account = Filter(10**12, unit, order)
    own = Charge(Fraction(14, 100), "hit", unit, order)
    others = [("epsilon", None), ("shares", None), ("ticks", Fraction(2)), ("ticks", Fraction(3))]

    assert account.charge(own).spent == Fraction(14, 100)
    for other in others:
        if other != (unit, order):
            with pytest.raises(InvalidParameterError, match="nothing was spent"):
                account.charge(Charge(Fraction(14, 100), "hit", *other))


@pytest.mark.parametrize("made", [Charge, Filter])
@pytest.mark.parametrize(
    ("unit", "order"), [("ticks", None), ("epsilon", Fraction(2)), ("nats", None), ("ticks", 1), (None, None)]
)
def test_a_unit_and_its_order_belong_together(made, unit, order):
    with pytest.raises(InvalidParameterError, match=r"unit|order"):
        made(1, *["x"] * (made is Charge), unit, order)


def test_a_filter_cannot_start_overspent():
    with pytest.raises(InvalidParameterError, match="spent must be <= capacity=1, got spent=2"):
        Filter(1, spent=2)


# ------------------------------------ Theorem 3.20, Corollary 3.21, exact composition
@pytest.mark.parametrize(
    ("epsilon", "small", "count"), [(0.1, 1e-6, 50), (2.0, 0.5, 1), (1e-4, 1e-12, 10**6)]
)
def test_advanced_composition_is_theorem_3_20_rounded_up(epsilon, small, count):
    exact = Fraction(epsilon)
    growth = Fraction(series_exp(fixed(exact)), ONE) - 1
    square = 2 * count * Fraction(-series_log(fixed(Fraction(small))), ONE) * exact**2
    rest = Fraction(accounting.advanced_composition(epsilon, small, count)) - count * exact * growth

    assert rest**2 >= square
    assert float(rest) == pytest.approx(math.sqrt(square), rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "small", "count", "cost"), [(1, 0.9, 1, 2.65), (10, 0.01, 1, 11.91), (20, 1e-6, 1, 20.85)]
)
def test_corollary_3_21_is_refused_where_it_is_false(epsilon, small, count, cost):
    share = epsilon / (2 * math.sqrt(2 * count * math.log(1 / small)))
    with pytest.raises(InvalidParameterError, match="use exact_share"):
        accounting.advanced_share(epsilon, small, count)

    assert cost == round(accounting.advanced_composition(share, small, count), 2)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("count", [1, 2, 10, 1000])
def test_advanced_share_is_the_corollary_rounded_down_and_costs_at_most_epsilon(epsilon, count):
    share = accounting.advanced_share(epsilon, 5e-7, count)
    square = Fraction(share) ** 2 * 8 * count * Fraction(-series_log(fixed(Fraction(5e-7))), ONE)

    assert square <= Fraction(epsilon) ** 2
    assert float(square) == pytest.approx(epsilon**2, rel=1e-12)
    assert accounting.advanced_composition(share, 5e-7, count) <= epsilon


@pytest.mark.parametrize(("count", "factor"), [(1, 10.8), (10, 3.41), (100, 2.50), (1000, 2.47)])
def test_exact_composition_allows_more_than_the_corollary_by_the_known_factor(count, factor):
    ratio = accounting.exact_share(1.0, 5e-7, count) / accounting.advanced_share(1.0, 5e-7, count)

    assert factor == pytest.approx(ratio, abs=0.006 if factor < 10 else 0.06)


def responses(share, count, epsilon):
    """Delta of k randomised responses by enumerating both laws at 60 digits."""
    with localcontext(Context(prec=60)):
        growth, total = Decimal(share).exp(), Decimal(0)
        keep = growth / (1 + growth)
        for j in range(count + 1):
            mine = math.comb(count, j) * keep**j * (1 - keep) ** (count - j)
            other = math.comb(count, j) * keep ** (count - j) * (1 - keep) ** j
            total += max(Decimal(0), mine - Decimal(epsilon).exp() * other)
        return total


@pytest.mark.parametrize("count", [1, 2, 7, 60, 300])
@pytest.mark.parametrize(("share", "epsilon"), [(0.02, 0.01), (0.1, 1.0), (0.5, 1.0), (1.5, 0.0), (3.0, 2.0)])
def test_exact_delta_is_that_of_randomised_responses_rounded_up(share, epsilon, count):
    truth, delta = responses(share, count, epsilon), accounting.exact_delta(share, count, epsilon)

    assert truth <= delta
    assert float(truth) == pytest.approx(delta, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"), [(1, 1e-6, 1), (1, 1e-6, 40), (0.1, 1e-9, 200), (10, 0.1, 5)]
)
def test_exact_share_is_the_largest_that_stays_within_delta(epsilon, delta, count):
    share = accounting.exact_share(epsilon, delta, count)

    assert responses(share, count, epsilon) <= delta
    assert responses(share * (1 + 1e-8), count, epsilon) > delta


def test_exact_share_at_delta_zero_is_basic_composition_rounded_down():
    share = accounting.exact_share(0.7, 0.0, 10)

    assert 10 * Fraction(share) <= Fraction(0.7) < 10 * Fraction(math.nextafter(share, 1))


def test_exact_share_stays_monotone_and_finite_at_many_mechanisms():
    shares = [accounting.exact_share(1.0, 1e-6, count) for count in (1, 10, 100, 1000, 10_000)]

    assert sorted(shares, reverse=True) == shares
    assert shares[-1] > math.sqrt(1 / 10_000) / 10


# ------------------------------------ zCDP and Gaussian
GAUSSIAN = [
    (0.1, 1e-9, 0.00017714, 0.0199164),
    (1, 1e-9, 0.0149731, 0.1819748),
    (1, 1e-7, 0.0201871, 0.2137363),
    (1, 1e-6, 0.0243560, 0.2367044),
]


@pytest.mark.parametrize(("epsilon", "delta", "rho", "mu"), GAUSSIAN)
def test_golden_rho_and_mu(epsilon, delta, rho, mu):
    assert rho == pytest.approx(accounting.zcdp_rho(epsilon, delta), abs=6e-8)
    assert mu == pytest.approx(accounting.gaussian_mu(epsilon, delta), abs=6e-8)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.01, 1e-9), (20, 1e-12), (1e-4, 1e-6), (3, 0.3)])
def test_zcdp_conversions_invert_each_other_on_the_private_side(epsilon, delta):
    rho = accounting.zcdp_rho(epsilon, delta)

    assert accounting.zcdp_delta(rho, epsilon) <= delta * (1 + 1e-12)
    assert accounting.zcdp_delta(rho, epsilon) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize(("rho", "epsilon"), [(0.0243560, 1.0), (0.5, 4.0), (1e-6, 0.01)])
def test_zcdp_delta_is_the_minimum_over_orders(rho, epsilon):
    def at(order):
        return math.exp((order - 1) * (order * rho - epsilon)) * (1 - 1 / order) ** order / (order - 1)

    orders = [1 + math.exp(i / 2000) for i in range(-8000, 28000)]
    grid = min(at(order) for order in orders if (order - 1) * (order * rho - epsilon) < 300)

    assert accounting.zcdp_delta(rho, epsilon) == pytest.approx(grid, rel=1e-5)
    assert accounting.zcdp_delta(rho, epsilon) <= grid * (1 + 1e-12)


def true_gaussian_delta(mu, epsilon):
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) at 100 digits, for eps >= mu^2/2."""
    with localcontext(Context(prec=100)):
        mu, epsilon = Decimal(mu), Decimal(epsilon)
        upper, lower = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        return true_tail(upper) - epsilon.exp() * true_tail(lower)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (0.01, 1e-5), (8, 1e-12), (1, 1e-3)])
def test_gaussian_mu_is_the_largest_that_stays_within_delta(epsilon, delta):
    mu = accounting.gaussian_mu(epsilon, delta)

    assert true_gaussian_delta(mu, epsilon) <= delta
    assert true_gaussian_delta(mu * (1 + 1e-9), epsilon) > delta
    assert float(true_gaussian_delta(mu, epsilon)) == pytest.approx(
        accounting.gaussian_delta(mu, epsilon), rel=1e-9
    )


# ------------------------------------ Renyi ticks
@pytest.mark.parametrize(
    ("order", "scale", "sigma", "squared", "ticks"),
    [
        (Fraction(19), Fraction(169, 4), 85, 1, 9878100152),
        (Fraction(19), Fraction(169, 4), 85, 2, 11323824784),
        (Fraction(19), Fraction(169, 2), 170, 1, 2080401740),
        (Fraction(77, 4), Fraction(1494505, 32768), 92, 1, 8378481791),
        (Fraction(2045, 64), Fraction(7203197, 65536), 220, 1, 2171921188),
    ],
)
def test_golden_prices(order, scale, sigma, squared, ticks):
    assert ticks == accounting.gumbel_charge(order, 1, scale, sigma, squared)


@pytest.mark.parametrize(
    ("order", "delta", "ticks", "price", "answers"),
    [
        (Fraction(19), 1e-6, 494910854729, 9878100152, 50),
        (Fraction(19), 1e-6, 494910854729, 11323824784, 43),
        (Fraction(19), 1e-6, 494910854729, 2080401740, 237),
        (Fraction(77, 4), 1e-6, 504001951029, 8378481791, 60),
        (Fraction(2045, 64), 1e-9, 521400615987, 2171921188, 240),
    ],
)
def test_golden_capacities_and_affordable_answers(order, delta, ticks, price, answers):
    assert ticks == accounting.renyi_capacity(order, 1.0, delta)
    assert answers == ticks // price


def test_golden_parts_of_a_price():
    order, scale = Fraction(19), Fraction(169, 4)
    test, number = (
        accounting.gumbel_charge(order, 1, scale),
        accounting.gaussian_charge(order, Fraction(85), 1),
    )

    assert 0.007669200858914 == pytest.approx(float(test * TICK), abs=2e-12)
    assert 0.001314878892734 == pytest.approx(float(number * TICK), abs=2e-12)
    assert 0.002629757785467 == pytest.approx(
        float(accounting.gaussian_charge(order, 85, 2) * TICK), abs=2e-12
    )
    assert test + number - 1 <= accounting.gumbel_charge(order, 1, scale, 85, 1) <= test + number


def test_prices_are_rounded_up_by_about_one_tick_against_a_hundred_digits():
    rng = np.random.default_rng(7)
    for _ in range(60):
        order = 1 + Fraction(int(rng.integers(1, 20000)), 64)
        pole = 1 / math.log1p(1 / float(order - 1))
        scale = Fraction(math.ceil(pole * (1 + 10 ** rng.uniform(-6, 6)) * 2**16) + 1, 2**16)
        sensitivity = int(rng.integers(1, 9))
        sigma, squared = math.ceil(sensitivity * 2 * scale), sensitivity**2
        price = accounting.gumbel_charge(order, sensitivity, sensitivity * scale, sigma, squared)
        truth = true_charge(order, sensitivity, sensitivity * scale, sigma, squared) / TICK

        assert truth <= price < truth + Fraction(1002, 1000)


def test_prices_next_to_the_pole_are_rounded_up_against_a_hundred_digits():
    """Where 1 - x is small the logarithm loses digits: the slack must cover them."""
    rng = np.random.default_rng(9)
    for _ in range(60):
        order = 1 + Fraction(1, 2 ** int(rng.integers(0, 21))) * int(rng.integers(1, 1000))
        pole = 1 / math.log1p(1 / float(order - 1))
        scale = Fraction(pole) * (1 + Fraction(1, 10 ** int(rng.integers(3, 14))))
        price = accounting.gumbel_charge(order, 1, scale)
        truth = true_charge(order, 1, scale, None, 0) / TICK

        assert truth <= price < truth + Fraction(1002, 1000)


def test_capacities_are_rounded_down_by_about_one_tick_against_a_hundred_digits():
    rng = np.random.default_rng(8)
    for _ in range(40):
        order = 1 + Fraction(int(rng.integers(64, 20000)), 64)
        epsilon, delta = float(rng.uniform(0.1, 10)), float(10 ** rng.uniform(-12, -3))
        truth = true_capacity(order, epsilon, delta) / TICK
        capacity = accounting.renyi_capacity(order, epsilon, delta)

        assert max(truth, Fraction(0)) >= capacity > truth - Fraction(1001, 1000)


@pytest.mark.parametrize("scale", [Fraction(2**39), Fraction(10**18), Fraction(10**60)])
def test_a_test_is_never_free_however_large_its_scale(scale):
    assert accounting.gumbel_charge(Fraction(19), 1, scale) >= 1


def test_price_falls_with_the_scale_and_rises_with_sensitivity_and_order():
    def price(order, sensitivity, scale):
        return accounting.gumbel_charge(
            Fraction(order), sensitivity, Fraction(scale), 2 * scale, sensitivity**2
        )

    assert price(19, 1, 40) > price(19, 1, 41)
    assert price(19, 1, 40) < price(19, 2, 40)
    assert price(19, 1, 40) < price(20, 1, 40)
    assert 0.21 == pytest.approx(price(19, 1, 84) / price(19, 2, 84), abs=0.005)


def test_small_eta_costs_about_one_gaussian_measurement_of_the_same_scale():
    price = accounting.gumbel_charge(Fraction(20), 1, Fraction(10**4))

    assert price == pytest.approx(accounting.gaussian_charge(Fraction(20), 10**4, 1), rel=3e-3)


@pytest.mark.parametrize("scale", ["0.9999", "1", "1.0000000000000000001"])
def test_prices_at_and_beyond_the_pole_are_refused(scale):
    pole = Fraction(1) / Fraction(math.log1p(1 / 18)) * (1 - Fraction(1, 10**14))
    with pytest.raises(InvalidParameterError, match="raise the scale or lower the order"):
        accounting.gumbel_charge(Fraction(19), 1, Fraction(scale) * pole)


@pytest.mark.parametrize(
    "arguments",
    [
        (Fraction(1), 1, Fraction(40)),
        (19.5, 1, Fraction(40)),
        (Fraction(19), -1, Fraction(40)),
        (Fraction(19), 1, Fraction(0)),
        (Fraction(19), 1, 40.5),
        (Fraction(19), 1, Fraction(40), 80),
        (Fraction(19), 1, Fraction(40), None, 1),
        (Fraction(19), 1, Fraction(40), 0, 1),
        (Fraction(19), 1, Fraction(40), 80, -1),
    ],
)
def test_underpriced_or_inexact_arguments_are_refused(arguments):
    with pytest.raises(InvalidParameterError, match="must be"):
        accounting.gumbel_charge(*arguments)


def test_a_constant_query_costs_only_its_answer():
    assert 0 == accounting.gumbel_charge(Fraction(19), 0, Fraction(40))
    assert accounting.gaussian_charge(Fraction(19), 80, 1) == accounting.gumbel_charge(
        Fraction(19), 0, Fraction(40), 80, 1
    )


def test_renyi_epsilon_inverts_the_capacity_on_the_private_side():
    ticks = accounting.renyi_capacity(Fraction(19), 1.0, 1e-6)

    assert 1.0 - 1e-11 < accounting.renyi_epsilon(Fraction(19), ticks, 1e-6) <= 1.0
    assert accounting.renyi_epsilon(Fraction(19), ticks + 1, 1e-6) > 1.0


def test_a_hopeless_order_has_capacity_zero_and_refuses_every_price():
    order = Fraction(3, 2)
    account = Filter(accounting.renyi_capacity(order, 0.1, 1e-9), "ticks", order)

    assert Fraction(0) == account.capacity
    assert not account.affords(
        Charge(accounting.gumbel_charge(order, 1, Fraction(1000)), "hard", "ticks", order)
    )


def test_loss_bound_is_spent_plus_the_ville_term():
    bound = accounting.loss_bound(Fraction(19), 2**40, 1e-6)

    assert 1 + math.log(1e6) / 18 == pytest.approx(bound, rel=1e-12)
    assert Fraction(bound) >= 1 - Fraction(series_log(fixed(Fraction(1e-6))), ONE) / 18


def test_extreme_arguments_stay_on_the_private_side():
    assert 1.0 == accounting.zcdp_delta(1e300, 1.0) == accounting.gaussian_delta(1e300, 1.0)
    assert 0.0 < accounting.zcdp_delta(1e-300, 1.0) < 1e-300
    assert 0.0 < accounting.gaussian_delta(1e-300, 1.0) < 1e-300
    assert math.inf == accounting.advanced_composition(700, 1e-300, 10**9)
    assert 1.0 == accounting.exact_delta(300.0, 10**5, 1.0)
    assert 0.0 == accounting.exact_delta(0.0, 5, 0.0)
    assert 0.0 < accounting.exact_delta(0.001, 10**5, 99.9) < 1e-300
    assert 1 - math.exp(-1) <= accounting.exact_delta(300.0, 5, 1499.0) < 0.6322  # all five at once
    assert 0.0 < accounting.gaussian_mu(1e-300, 1e-300) < 1e-299
    assert 13.0 < accounting.gaussian_mu(600, 1e-300) < math.sqrt(2 * 600)
    assert 0.0 < accounting.gaussian_mu(1.0, 2.0**-1070) < 0.03


def test_a_delta_that_no_gaussian_noise_keeps_is_refused_by_its_name():
    with pytest.raises(InvalidParameterError) as refused:
        accounting.gaussian_mu(1.0, 5e-324)

    assert "delta must be a number in [7.90505e-323, 1), got delta=5e-324; raise it, or write 0." == str(
        refused.value
    )


@pytest.mark.parametrize("order", [Fraction(65, 64), Fraction(3), Fraction(40), Fraction(3000)])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5, 2), Fraction(40)])
@pytest.mark.parametrize("shift", [1, -1])
def test_laplace_charges_are_the_divergence_by_summation_and_smaller_ones_are_found(order, scale, shift):
    """Theory 4.2: exact to rounding, so that a charge a thousandth smaller breaks the step condition."""
    z = np.arange(-6000, 6001)
    law = np.log(np.tanh(0.5 / float(scale))) - np.abs(z) / float(scale)
    moved = np.log(np.tanh(0.5 / float(scale))) - np.abs(z - shift) / float(scale)
    less = float(order) - 1.0
    exponents = float(order) * law - less * moved
    largest = exponents.max()
    moment = largest + math.log(np.exp(exponents - largest).sum())
    charge = accounting.laplace_charge(order, scale, 1) * float(TICK)

    def kept(paid):
        return moment - less * paid <= 1e-9 * max(1.0, moment)

    assert kept(charge)
    assert not kept(charge - 1e-3 * charge)
    assert charge < 1 / scale
    assert 3 * charge == pytest.approx(accounting.laplace_charge(order, scale, 3) * float(TICK), abs=4e-12)


@pytest.mark.parametrize("arguments", [(1, 1, 1), (2, 0, 1), (2, 1, 0), (2, -1, 1)])
def test_laplace_charges_outside_their_range_are_refused(arguments):
    order, scale, moved = arguments
    with pytest.raises(InvalidParameterError):
        accounting.laplace_charge(Fraction(order), Fraction(scale), moved)
