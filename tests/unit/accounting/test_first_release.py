"""What pays for Gaussian tables as the first release (theory 4.10), against exact privacy losses."""

import json
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import onlineic as ic
from onlineic.accounting import (
    TICK,
    FirstRelease,
    first_release,
    gaussian_charge,
    gumbel_charge,
    renyi_capacity,
)
from onlineic.accounting.renyi import _gumbel_part
from onlineic.ask.bind import bind_question
from onlineic.audit import verified
from onlineic.errors import (
    BudgetExceededError,
    InvalidParameterError,
    LedgerCorruptError,
)
from onlineic.ledger import Easy, MemoryLedger, Opened, read
from onlineic.plan import session_plan
from onlineic.plan.first_tables import check_bought
from onlineic.queries import one_way
from onlineic.session.durable import planned
from support.cores import with_loop
from support.sessions import all_spent

CASES = [  # epsilon, delta, order, part of the capacity that pays for the tables
    (1.0, 1e-9, Fraction(32), 0.8),
    (1.0, 1e-9, Fraction(31), 0.9),
    (0.1, 1e-9, Fraction(260), 0.9),
    (3.0, 1e-6, Fraction(9), 0.6),
    (0.01, 1e-12, Fraction(3000), 0.9),
    (1.0, 1e-5, Fraction(20), 0.8),
]


def hockey_stick(mu, epsilon):
    """delta of a Gaussian pair at any real epsilon, of arrays too."""
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


def of_filter(epsilon, delta, order, ratio=Fraction(1)):
    """A filter whose tests are as steep as three hits on what the tables leave to them would be."""
    eta = Fraction(1, math.ceil(15 * math.sqrt(math.log(1 / delta)) / epsilon))
    return FirstRelease(order, epsilon, delta, eta, ratio)


def least_noise(first, part, tables=12):
    """Return the least of equal scales that this part of the capacity pays for, and what is left in ticks."""
    capacity = renyi_capacity(first.order, first.epsilon, first.delta)
    ticks = math.floor(part * capacity)
    low, high = 0, 2**24
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if first.pays([Fraction(2 * middle + 1, 16)] * tables, ticks) else (middle, high)
        )
    return [Fraction(2 * high + 1, 16)] * tables, capacity - ticks


def gaussian_rest(first, scales, left):
    """Exact delta where all that is left buys one more Gaussian table."""
    squared = sum(2.0 / float(scale) ** 2 for scale in scales)
    return hockey_stick(math.sqrt(squared + 2.0 * float(left * TICK / first.order)), first.epsilon)


def hits_rest(first, scales, left):
    """Exact delta where it buys hits after endless silence: tables drawn as they are, on their own grid.

    A hit's time on the Poisson clock is exponential, so that the loss of c tests follows a gamma law.
    """
    eta, sigma = float(first.steepest), 2**0.5 * float(first.ratio / first.steepest)
    price = _gumbel_part(first.order, first.steepest.numerator, Fraction(first.steepest.denominator))
    price += first.order * (first.steepest / first.ratio) ** 2 / 2
    hits = int(left * TICK / price)
    assert hits > 0
    grid = stats.gamma.ppf((np.arange(4_000) + 0.5) / 4_000, hits)
    mu = math.sqrt(2.0 * hits) / sigma
    # all tables alike: their loss is linear in the sum of their moved blocks' noise
    units, unit, moved = float(scales[0] * scales[0].denominator), scales[0].denominator, 2 * len(scales)
    mean, step = moved * unit**2 / (2 * units**2), unit / units**2
    deviation = math.sqrt(moved) * units
    places = np.linspace(-9.0, 9.0, 1_500)
    weights = stats.norm.pdf(places) / stats.norm.pdf(places).sum()
    worst = 0.0
    for sign in (1.0, -1.0):
        tests = np.expm1(sign * eta) * grid - sign * eta * hits
        rest = [
            hockey_stick(mu, first.epsilon - mean - step * deviation * place - tests).mean()
            for place in places
        ]
        worst = max(worst, float(weights @ np.array(rest)))
    return worst


@pytest.mark.parametrize("case", CASES)
def test_what_pays_holds_for_the_exact_delta_of_gaussian_tables_and_a_gaussian_rest(case):
    *facts, part = case
    first = of_filter(*facts)
    scales, left = least_noise(first, part)
    assert gaussian_rest(first, scales, left) <= first.delta
    assert first.delta_bound(scales, left) <= first.delta
    # and it is worth it: by its divergence such a table costs more, at all but large epsilon
    saved = first.plain(scales) / (part * renyi_capacity(first.order, first.epsilon, first.delta))
    assert saved > (1.01 if first.epsilon <= 1 else 0.999)
    # a tenth less noise is found by the same exact delta: what pays is no more than it must be
    assert gaussian_rest(first, [Fraction(9, 10) * scale for scale in scales], left) > first.delta


@pytest.mark.parametrize("case", CASES)
def test_what_pays_holds_for_discrete_tables_and_hits_by_summation(case):
    *facts, part = case
    first = of_filter(*facts)
    scales, left = least_noise(first, part)
    assert hits_rest(first, scales, left) <= first.delta
    assert hits_rest(first, [Fraction(8, 10) * scale for scale in scales], left) > first.delta


@pytest.mark.parametrize("case", CASES[:-1])
def test_planted_slips_are_found(case, monkeypatch):
    """Orders above the filter's own at no more than its charges; an answer's noise taken for nothing."""
    *facts, part = case
    first = of_filter(*facts)
    orders = first_release._orders

    def at_no_growth(*given):
        return tuple((order, min(1.0, growth)) for order, growth in orders(*given))

    monkeypatch.setattr(first_release, "_orders", at_no_growth)
    scales, left = least_noise(first, part)
    assert gaussian_rest(first, scales, left) > first.delta
    monkeypatch.setattr(first_release, "_orders", orders)
    twice = least_noise(first, part)[0]
    # the release comes a second time, at what pays for it as the first one
    capacity = renyi_capacity(*[getattr(first, name) for name in ("order", "epsilon", "delta")])
    squared = 2 * sum(2.0 / float(scale) ** 2 for scale in twice)
    squared += 2.0 * max(0.0, float((capacity - 2 * part * capacity) * TICK / first.order))
    assert hockey_stick(math.sqrt(squared), first.epsilon) > first.delta


def growths(first):
    return first_release._orders(first.order, first.steepest, first.ratio)


def test_tables_are_paid_by_their_divergence_and_by_no_tick_less_where_the_filter_has_less():
    first = of_filter(1.0, 1e-9, Fraction(32))
    scales = [Fraction(1)]
    plain = first.plain(scales)

    assert plain > renyi_capacity(first.order, first.epsilon, first.delta)
    assert first.pays(scales, plain)
    assert not first.pays(scales, plain - 1)


@pytest.mark.parametrize("ratio", [Fraction(10), Fraction(10**5)])
def test_growth_bounds_a_test_that_is_priced_a_thousandth_of_a_tick_too_low(ratio):
    """Of a test so flat that its price is no more than that."""
    first = FirstRelease(Fraction(32), 1.0, 1e-9, Fraction(1, 10**7), ratio)
    for order, growth in growths(first):
        tests = [_gumbel_part(one, 1, Fraction(10**7)) for one in (order, first.order)]
        answers = [one * (first.steepest / ratio) ** 2 / 2 for one in (order, first.order)]
        paid = max(0, tests[1] - TICK / 1000) + answers[1]

        assert tests[0] + answers[0] <= Fraction(growth) * paid * (1 + TICK) or order <= first.order


@pytest.mark.parametrize("case", CASES)
def test_growth_at_other_orders_bounds_every_hit(case):
    *facts, _ = case
    first = of_filter(*facts, Fraction(3, 2))
    orders = growths(first)
    for order, growth in orders:
        for eta in (first.steepest, first.steepest / 2, first.steepest / 50):
            for ratio in (first.ratio, Fraction(1), Fraction(1, 4)):
                sigma = ratio / eta  # of an answer of sensitivity 1
                prices = [
                    gumbel_charge(one, 10**6, 10**6 / eta, 10**6 * sigma, 10**12)
                    for one in (order, first.order)
                ]
                assert prices[0] <= growth * prices[1] * (1 + 1e-6) + 2
        assert (
            gaussian_charge(order, Fraction(10), 1)
            <= growth * gaussian_charge(first.order, Fraction(10), 1) + 2
        )
    # a test whose answer costs nothing would not be bounded
    order, growth = next(pair for pair in orders if pair[0] > first.order)
    prices = [gumbel_charge(one, 1, 1 / first.steepest) for one in (order, first.order)]
    assert prices[0] > growth * prices[1] * 1.001


@pytest.mark.parametrize("sigma", [Fraction(3), Fraction(21, 16), Fraction(48, 16)])
def test_discrete_noise_is_bounded_by_rounded_normal_noise(sigma):
    """Theory 4.10 (d), of one block, for steps, of which every mean of a falling function is made."""
    units, unit = float(sigma * sigma.denominator), sigma.denominator
    grid = np.arange(-400 * unit, 400 * unit + 1)
    mass = np.exp(-(grid**2) / (2 * units**2))
    mass /= mass.sum()
    losses = unit**2 / (2 * units**2) + unit * grid / units**2
    lost, factor = unit / (2 * units**2), math.exp(1 / (8 * units**2))
    above = np.cumsum(mass[::-1])[::-1]  # P(loss >= each)
    bound = stats.norm.sf(losses - lost, unit**2 / (2 * units**2), unit / units)
    held = mass > 1e-200
    assert np.all(above[held] <= factor * bound[held] * (1 + 1e-12))
    without = stats.norm.sf(losses, unit**2 / (2 * units**2), unit / units)
    assert np.any(above[held] > factor * without[held] * (1 + 1e-6))


def test_bounds_are_those_of_the_integral():
    first = of_filter(*CASES[0][:3])
    scales, left = least_noise(first, 0.8)
    squared, lost, factor = first_release._moments(scales, first.neighbours)
    inverse = sum(1.0 / float(scale) ** 2 for scale in scales)
    assert squared == pytest.approx(2.0 * inverse, rel=1e-8)
    assert lost == pytest.approx(inverse / 16, rel=1e-8)  # drawn in sixteenths
    assert math.log(factor) == pytest.approx(inverse / 4 / 16**2, rel=1e-4)
    slopes, offsets = first._lines(left)
    losses = np.linspace(-12, 12, 200_001) * math.sqrt(squared) + squared / 2
    least = np.exp(np.min(offsets - slopes * (first.epsilon - lost - losses[:, None]), axis=1))
    density = stats.norm.pdf(losses, squared / 2, math.sqrt(squared))
    exact = factor * np.trapezoid(least * density, losses)
    assert exact == pytest.approx(first.delta_bound(scales, left), rel=1e-5)
    assert first.delta_bound(scales, left) >= exact * (1 - 1e-7)


def test_what_pays_is_monotone_and_never_more_than_the_divergence():
    first = of_filter(*CASES[0][:3])
    capacity = renyi_capacity(first.order, first.epsilon, first.delta)
    scales = least_noise(first, 0.8)[0]
    assert first.pays(scales, math.floor(0.8 * capacity))
    assert not first.pays(scales, math.floor(0.79 * capacity))
    assert first.pays(scales, first.plain(scales))
    for ticks in range(0, capacity, capacity // 7):
        assert not first.pays([Fraction(5)] * 3, ticks)
    huge = [Fraction(10**7 + 1, 16)]
    assert first.pays(huge, first.plain(huge))
    assert not first.pays(huge, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steepest", Fraction(0)),
        ("ratio", Fraction(0)),
        ("order", Fraction(1)),
        ("epsilon", 0.0),
        ("delta", 0.0),
        ("ratio", 1.5),
    ],
)
def test_facts_outside_of_their_range_are_refused(name, value):
    facts = {
        "order": Fraction(32),
        "epsilon": 1.0,
        "delta": 1e-9,
        "steepest": Fraction(1, 70),
        "ratio": Fraction(1),
    }
    with pytest.raises(InvalidParameterError, match=name):
        FirstRelease(**facts | {name: value})


DOMAIN = ic.Domain.of(a=30, b=40, c=50)


def table():
    records = {name: np.zeros(20_000, np.int64) for name in DOMAIN.names}
    return ic.PrivateData.from_records(records, DOMAIN)


def session(data=None, **given):
    return ic.OnlineIC(data or table(), ic.Budget(1.0, 1e-9), **given)


def test_default_tables_are_paid_as_the_first_release_by_what_their_mechanism_says():
    plan = session_plan(DOMAIN, 20_000, ic.Budget(1.0, 1e-9))
    bought, sparse = plan.first_tables, plan.sparse
    assert bought.first == sparse.first_release()
    assert bought.charge.amount < bought.cost
    assert bought.first.delta_bound(bought.scales, sparse.capacity - int(bought.charge.amount)) <= 1e-9
    # every price of the session is one that the bound at other orders knows
    for target in (one_way(DOMAIN, 0), one_way(DOMAIN, 0).block(0)):
        for mechanism in (sparse, sparse.stretched(Fraction(7, 3))):
            for order, growth in first_release._orders(
                bought.first.order, bought.first.steepest, bought.first.ratio
            ):
                if order < sparse.order * 2:
                    same = ic.sparse.GumbelSparse(
                        sparse.n, 1.0, 1e-9, order, mechanism.scale, mechanism.threshold, sparse.grid_bits,
                        sparse.ratio,
                    )  # fmt: skip
                    paid = float(mechanism.price(target).amount)
                    assert float(same.price(target).amount) <= growth * paid * (1 + 1e-9) + 2


def test_a_charge_that_does_not_pay_is_refused_and_so_is_a_file_of_another_filter(tmp_path):
    bought = session_plan(DOMAIN, 20_000, ic.Budget(1.0, 1e-9)).first_tables
    less = attrs.evolve(bought.charge, amount=bought.charge.amount * Fraction(98, 100))
    with pytest.raises(InvalidParameterError, match="charge must pay"):
        attrs.evolve(bought, charge=less)
    with pytest.raises(InvalidParameterError, match="charge must pay"):
        attrs.evolve(bought, first=None)

    session(ledger=tmp_path / "census.db", table="census").close()
    beginning = read(tmp_path / "census.db").beginning
    assert planned(beginning, DOMAIN).first_tables == bought
    for name, value in (("ratio", "1/2"), ("steepest", "1/1000"), ("epsilon", 1.5)):
        forged = json.loads(json.dumps(beginning))
        held = forged["plan"]["fields"]["purchases"]["fields"]["first"]["fields"]["first"]["fields"]
        held[name] = value if isinstance(value, float) else {"fraction": value}
        with pytest.raises(LedgerCorruptError):
            planned(forged, DOMAIN)


def test_tables_that_come_second_are_refused(tmp_path, monkeypatch):
    ledger = MemoryLedger()
    opened = session(ledger=ledger)
    assert opened.hypothesis.domain == DOMAIN  # which buys them
    bought = opened.plan.first_tables
    spent = all_spent(opened)
    assert spent > 0
    with pytest.raises(BudgetExceededError, match="first release"):
        check_bought(bought, ledger, opened.plan.sparse, DOMAIN, True)
    assert (spent, False) == (all_spent(opened), opened.statistics().sealed)

    fresh, loop = with_loop(session)  # which waits for its first question
    core, ledger = loop.core, loop.ledger
    asked = bind_question(ic.where(b=3), DOMAIN, fresh.plan.sparse.grid_bits)
    assert core.cover((asked,)) == [True]
    core.test((asked,), (0,))
    assert (0, 1) == (ledger.account.spent, sum(isinstance(one, Easy) for one in ledger.records()))
    with pytest.raises(BudgetExceededError, match="has tested"):
        check_bought(bought, ledger, fresh.plan.sparse, DOMAIN, True)
    # a session that does not look buys them, and an audit sees it
    monkeypatch.setattr("onlineic.session.core.check_bought", lambda tables, *_: tables)
    late, loop = with_loop(session, ledger=tmp_path / "census.db", table="census")
    with late:
        core = loop.core
        assert core.cover((asked,)) == [True]
        core.test((asked,), (0,))
        assert late.hypothesis.domain == DOMAIN
    assert any(isinstance(one, Opened) for one in late.transcript)
    problems = verified(read(tmp_path / "census.db")).problems
    assert any("as the first release" in problem for problem in problems)


@pytest.mark.parametrize("scales", [[], [Fraction(1, 16)] * 3000, [Fraction(10**160)], [Fraction(10**200)]])
def test_of_noise_that_nobody_can_draw_nothing_is_said(scales):
    first = of_filter(*CASES[0][:3])
    assert first.delta_bound(scales, 0) > first.delta or scales[:1] == [Fraction(10**160)]


def test_where_the_order_was_given_tables_cost_their_divergence():
    total = ic.TableBudget(ic.Budget(2.0, 1e-8))
    plan = session_plan(DOMAIN, 20_000, total.share(Fraction(1, 2)))
    assert plan.first_tables.first is None
    assert plan.first_tables.cost == plan.first_tables.charge.amount
    assert plan.drawn == plan.sparse.account()


def test_a_total_pays_for_tables_what_they_cost_wherever_they_come():
    plan = session_plan(DOMAIN, 20_000, ic.Budget(1.0, 1e-9))
    saved = plan.first_tables.cost - plan.first_tables.charge.amount
    assert plan.drawn.capacity == plan.sparse.account().capacity + saved
    assert saved > 0
