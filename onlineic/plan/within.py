"""What meets a wish at the least expected price: a number, or tables, from public facts alone.

A question that is not known well enough is bought by itself, with just the noise that its wish allows; a
call is bought as a whole, where tables that answer all of it cost less. Numbers are rents: each time that
they have cost an eighth more, tables are looked for that would have saved more of these rents than they cost.

Proof: docs/theory/within.md, 14.2, 14.3, 14.4.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import attrs
import numpy as np
from scipy.special import stdtrit

from onlineic.interactions.demand import Demand, asked_of
from onlineic.interactions.designs import Design, cheapest
from onlineic.interactions.predictor import Predictor
from onlineic.known_noise.instalments import Instalments
from onlineic.noise.gumbel import SCALE_LIMIT
from onlineic.noise.laws import normal_quantile
from onlineic.noise.sources import SIGMA_LIMIT
from onlineic.plan.calibration import rounded_down
from onlineic.plan.defaults import EASY_OR_HARD
from onlineic.plan.purchase import Purchase, Way, is_single, precision_of, single_at, tables_at
from onlineic.plan.purchase_rule import Facts
from onlineic.plan.record_summary import RecordSummary, Rent
from onlineic.queries.marginals import Question
from onlineic.queries.partitions import Measurement
from onlineic.queries.query import Query
from onlineic.queries.reach import Reach
from onlineic.queries.within import MOST_STEEP, Within
from onlineic.sparse.base import NumericSparse
from onlineic.sparse.gumbel import GumbelSparse

GROWN = 9 / 8  # of rents, between two looks for tables: each takes a fraction of a second
PARTS = (1.0, 0.5, 0.25, 0.125, 0.0625)  # of these rents, that tables are looked for at
HALVED = 10  # times that the price of numbers is halved, where tables for a call are looked for
MOST_HEARD = 4096  # questions of a call that tables are looked for
LATEST = 64  # rents that are looked at: the older ones are like them
UNBOUNDED = 1e9  # precision of tables, by n squared, beside which nothing is known beforehand
UNION = 5.0  # deviations of bounds that hold for all conjunctions of a table at once: 4.9 to 6
MARGIN = 1.02  # of the price of a call's tables: their noise is on a grid
# errors over what they are expected to be, and how often each is: by Student's law with the fewest degrees of
# freedom that have a variance, as some are very large
TAILS = np.linspace(0.0, 1.0, 65) ** 3
GAPS = -stdtrit(3.0, (TAILS[1:] + TAILS[:-1]) / 4.0) / math.sqrt(3.0)
OFTEN = np.diff(TAILS)
Later = Callable[[], Demand]  # questions to come, worked out where they are asked for: seldom
Costs = Mapping[Question, Fraction]  # of numbers, by their questions


def deviation_within(
    within: Within, question: Question, n: int, beta: float, pure: bool, taken: float = 0.0
) -> float:
    """Return the deviation of the noise, records, that a certain wish allows a number, or all cells at once.

    It is the inverse of `session.Bounds.of_noise`: noise and weights are rounded by less than one record.

    Args:
        beta: That the bound may fail with, of all that the wish speaks of.
        taken: Of the radius, by what a private n may be off.
    """
    left = n * (within.radius * (1.0 - 1e-9) - question.rounding - taken) - 1.0
    cells = 1 if isinstance(question, Query) else question.partition.blocks
    each = beta / (within.parts * cells)
    return left / (-math.log(each) / math.sqrt(2.0) if pure else normal_quantile(each / 2.0))


@final
@attrs.frozen(eq=False)
class _Alike:
    """A query, equal to those whose tests have the same noise and price."""

    query: Query

    @property
    def _kind(self) -> tuple[int, int, int, float]:
        query = self.query
        return query.lowest, query.highest, query.grid_bits, query.rounding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alike) and self._kind == other._kind

    def __hash__(self) -> int:
        return hash(self._kind)


def tester_within(
    sparse: NumericSparse | None, query: Query, within: Within, beta: float
) -> GumbelSparse | None:
    """Return the test of a query that certifies a wish if it is easy, and measures within it if not, or None.

    An easy answer is off by at most T + b ln ln(2/beta), T = steepness b; a hit's number carries half of beta
    too. Scales may differ from test to test in one filter: each hit is charged at its own (theory 3.2, 4.5).
    """
    return _tester(sparse, _Alike(query), within, beta)


@lru_cache(maxsize=4096)
def _tester(sparse: NumericSparse | None, alike: _Alike, within: Within, beta: float) -> GumbelSparse | None:
    query = alike.query
    if not isinstance(sparse, GumbelSparse) or not within.steepness:
        return None
    unit, part = sparse.n << sparse.grid_bits, EASY_OR_HARD * beta / within.parts
    steps = rounded_down(sparse)
    most = within.radius * (1.0 - 1e-9) - query.rounding - steps
    widest = most * unit / (within.steepness + math.log(-math.log(part)))
    if widest >= SCALE_LIMIT:
        return None
    parts = 2**10 if widest * 2**10 < SCALE_LIMIT else 1  # of a unit: what the sampler draws
    scale = Fraction(math.floor(widest * parts), parts)
    bits = sparse.bits_of(query)
    sigma = math.floor((most - 1.0 / sparse.n) * (sparse.n << bits) / normal_quantile(part / 2.0))
    sigma = min(sigma, SIGMA_LIMIT >> (sparse.grid_bits - bits))
    moved = sparse.widest
    if (
        sigma < 1
        or scale * within.steepness < 1
        or moved > scale * math.log1p(0.99 / float(sparse.order - 1))
    ):
        return None  # so small a height has no price at this order
    return attrs.evolve(
        sparse,
        scale=scale,
        threshold=math.floor(scale * within.steepness),
        ratio=Fraction(sigma << (sparse.grid_bits - bits)) / scale,
    )


@lru_cache(maxsize=4096)
def _tests(
    sparse: NumericSparse | None, alike: _Alike, within: Within, beta: float
) -> tuple[tuple[Within, float, float], ...]:
    """Return (wish, scale in records, price of a hit) of each test that can be made."""
    found, query = [], alike.query
    for steepness in range(2, MOST_STEEP + 1):
        wish = attrs.evolve(within, steepness=steepness)
        tester = tester_within(sparse, query, wish, beta)
        if tester is not None:
            found.append(
                (wish, float(tester.scale) / (1 << tester.grid_bits), float(tester.price(query).amount))
            )
    return tuple(found)


def ways_within(facts: Facts[RecordSummary], demand: Later | None, reach: Reach | None) -> list[Way]:
    """Return the ways to answer the question at hand, which is not known within its wish."""
    (question,) = facts.questions
    found, chosen, number = list[Way](), chosen_test(facts), number_within(facts, question)
    bought = None if chosen is not None else bought_within(facts, demand, reach)
    tables = bought if bought is not None and not is_single(bought, (question,)) else None
    if tables is not None:
        found.append(Way("tables", tables.charge.amount, float(tables.charge.amount), taken=True))
        later = after_tables(facts, tables)
        if not known_within(later, question):
            found += [way for way in ways_within(later, demand, reach) if way.taken]
    if isinstance(question, Query) and _wish(facts).certain:
        wish, expected = _cheapest_test(facts, question, _error(facts, _predictor(facts), question))
        tester = None if wish is None else tester_within(facts.sparse, question, wish, facts.beta)
        if tester is not None:
            found.append(Way("test", tester.price(question).amount, expected, chosen is not None))
    if number is not None and not any(way.kind == "number" for way in found):
        cost = number.charge.amount
        found.append(Way("number", cost, float(cost), bought is not None and tables is None))
    return found


def known_within(facts: Facts[RecordSummary], question: Question) -> bool:
    """Return whether a question is expected to be known within its wish by what was released."""
    return _known(facts, _predictor(facts), Rent(question, Fraction(0), _wish(facts)))


def after_tables(facts: Facts[RecordSummary], tables: Purchase) -> Facts[RecordSummary]:
    """Return the facts once tables were bought: their noise is known, and not what they will say."""
    heard = facts.heard
    known = _predictor(facts).expecting(zip(tables.partitions, tables.deviations(facts.n), strict=True))
    heard = attrs.evolve(
        heard, predictor=known, spent=heard.spent + tables.charge.amount, housed=len(heard.rents)
    )
    return attrs.evolve(facts, heard=heard, account=facts.account.charge(tables.charge))


def chosen_test(facts: Facts[RecordSummary]) -> Within | None:
    """Return the wish with the steepness of the test whose expected price is least, or None.

    None where a number costs less than that, before tables have told how large interactions are, or where no
    test can be made: of a cross table, at delta = 0, and for a wish that is not certain, which needs none.
    """
    (question,), within = facts.questions, _wish(facts)
    number = number_within(facts, question)
    if number is None or not within.certain or not isinstance(question, Query):
        return None
    if facts.heard.predictor is None:
        return None
    wish, price = _cheapest_test(facts, question, _error(facts, _predictor(facts), question))
    if wish is None or price >= number.charge.amount:
        return None
    tester = tester_within(facts.sparse, question, wish, facts.beta)
    payable = tester is not None and facts.account.affords(tester.price(question))
    return wish if payable else None


def _cheapest_test(facts: Facts[RecordSummary], query: Query, error: float) -> tuple[Within | None, float]:
    """Return the best test of a question, and what it is expected to cost: a hit with its chance.

    The answer is expected to be off by an error of the law of `GAPS`.
    """
    tests = _tests(facts.sparse, _Alike(query), _wish(facts), facts.beta)
    if not tests or error >= 1.0:
        return None, math.inf
    steep = np.array([wish.steepness for wish, _, _ in tests])[:, None]
    gaps = facts.n * error * GAPS / np.array([scale for _, scale, _ in tests])[:, None]
    # P(|gap| + b G >= T) of standard Gumbel noise G
    hits = -np.expm1(-np.exp(np.minimum(gaps - steep, 50.0))) @ OFTEN
    prices = hits * np.array([price for _, _, price in tests])
    best = int(np.argmin(prices))
    return tests[best][0], float(prices[best])


def expected_test(facts: Facts[RecordSummary], query: Query) -> tuple[Fraction, float]:
    """Return the price of the hit of the test that is likely cheapest, and the chance of one."""
    wish, expected = _cheapest_test(facts, query, _error(facts, _predictor(facts), query))
    tester = None if wish is None else tester_within(facts.sparse, query, wish, facts.beta)
    if tester is None:
        return Fraction(0), 0.0
    price = tester.price(query).amount
    return price, expected / float(price)


def number_within(facts: Facts[RecordSummary], question: Question) -> Purchase | None:
    """Return a number, or table, with the most noise that the wish allows, or None if none can be drawn."""
    within, pure = _wish(facts), facts.account.order is None
    if within.certain:
        deviation = deviation_within(within, question, facts.n, facts.beta, pure)
    else:
        known = _error(facts, _predictor(facts), question)
        # the answer lies between the number and what was said before, by the precision of both
        part = within.expected / known if 0.0 < known < 1.0 else 0.0
        deviation = facts.n * (within.expected / math.sqrt(1.0 - part**2) if part < 1.0 else 1.0)
    return single_at(question, deviation, facts.account, facts.neighbours)


def bought_within(facts: Facts[RecordSummary], demand: Later | None, reach: Reach | None) -> Purchase | None:
    """Return what to buy for questions that are not known within their wish, or None: what is left is less.

    Args:
        demand: Of the stream, as the rule expects it.
    """
    asked = [one for one in facts.questions if one.constant is None]
    numbers = [number_within(facts, one) for one in asked]
    if len(asked) > 1:
        return _of_call(facts, asked, numbers, reach)
    if not asked:
        return None
    (number,) = numbers
    tables = None
    if number is not None and demand is not None:
        tables = _for_rents(facts, asked[0], facts.alike * number.charge.amount, demand, reach)
    best = tables or number
    return best if best is not None and best.charge.amount <= facts.account.left else None


def _of_call(
    facts: Facts[RecordSummary],
    asked: Sequence[Question],
    numbers: Sequence[Purchase | None],
    reach: Reach | None,
) -> Purchase | None:
    """Return tables for a call, if they and numbers for what they leave open cost less than numbers alone."""
    costs: dict[Question, Fraction] = {
        one: facts.alike * number.charge.amount
        for one, number in zip(asked, numbers, strict=True)
        if number is not None and isinstance(one, Query)
    }
    whole = sum(costs.values(), Fraction(0))
    most = min(whole, facts.account.left)  # numbers of all may cost more than is left, and tables not
    if len(costs) < 2 or most <= 0:
        return None
    demand = Demand.of_these(facts.domain, [*map(asked_of, costs)])
    made = (_certain_tables if _wish(facts).certain else _expected_tables)(facts, costs, demand, most, reach)
    best, least = None, whole
    for tables in made:
        rest = (costs[one] for one in left_open(facts, tables, costs))
        total = tables.charge.amount + sum(rest, Fraction(0))
        if total < least:
            best, least = tables, total
    return best


def left_open(facts: Facts[RecordSummary], tables: Purchase, asked: Iterable[Question]) -> list[Question]:
    """Return the questions of a call that these tables do not answer within its wish."""
    if _wish(facts).certain:
        return [one for one, times in _times_too_wide(facts, tables, asked) if times > 1.0]
    deviations = tables.deviations(facts.n)
    known = _predictor(facts).expecting(zip(tables.partitions, deviations, strict=True))
    return [one for one in asked if _error(facts, known, one) > _wish(facts).expected]


def _certain_tables(
    facts: Facts[RecordSummary],
    costs: Costs,
    demand: Demand,
    most: Fraction,
    reach: Reach | None,
) -> list[Purchase]:
    """Return the tables that cost least with numbers for what they leave open, as the law of noise tells."""
    if facts.account.order is None:  # of sums of Laplace noises no such bound is proven
        return []
    design = cheapest(Predictor(facts.domain), demand, UNBOUNDED * facts.n**2, reach)
    tables = _made(facts, design, most)
    if tables is None:
        return []
    ranked = sorted(_times_too_wide(facts, tables, costs), key=lambda one: one[1])
    prices = [float(most) * MARGIN * times**2 for _, times in ranked]
    rest = np.cumsum([float(costs[one]) for one, _ in reversed(ranked)])[::-1]
    least = int(np.argmin(np.array(prices) + np.append(rest[1:], 0.0)))
    found = _made(facts, design, Fraction(prices[least])) if prices[least] < float(most) else None
    return [] if found is None else [found]


def _times_too_wide(
    facts: Facts[RecordSummary], tables: Purchase, asked: Iterable[Question]
) -> list[tuple[Question, float]]:
    """Return how many times the deviation that a wish allows that of each question has."""
    within, n = _wish(facts), facts.n
    # the law of the noise is known before it is drawn
    blank = [
        Measurement(table, np.zeros(table.blocks), deviation)
        for table, deviation in zip(tables.partitions, tables.deviations(n), strict=True)
    ]
    (known,) = Instalments(slack=facts.slack).then(blank, n, facts.beta, pure=False).estimates
    result = []
    for query in asked:
        times, found = math.inf, known.own_noise(query) if isinstance(query, Query) else None
        if found is not None:
            _, own, whole = found
            most = deviation_within(within, query, n, facts.beta, pure=False, taken=facts.slack * whole)
            times = n * own / most if most > 0.0 else math.inf
        result.append((query, times))
    return result


def _expected_tables(
    facts: Facts[RecordSummary],
    costs: Costs,
    demand: Demand,
    most: Fraction,
    reach: Reach | None,
) -> list[Purchase]:
    """Return the best tables at each of some prices."""
    prices, known = [most / 2**halved for halved in range(HALVED)], _predictor(facts)
    made = (_made(facts, _after(facts, known, demand, price, reach)[1], price) for price in prices)
    return [one for one in made if one is not None]


def _for_rents(
    facts: Facts[RecordSummary], question: Question, cost: Fraction, demand: Later, reach: Reach | None
) -> Purchase | None:
    """Return tables that would have saved more rents than they cost, once these have grown by an eighth."""
    heard = facts.heard
    rents = [*heard.rents, Rent(question, cost, _wish(facts), alike=facts.alike)]
    if heard.housed == len(rents) - 1:
        return None  # nothing was rented since
    total, before = float(heard.rented + cost), float(heard.rented)
    if before and math.floor(math.log(total, GROWN)) == math.floor(math.log(before, GROWN)):
        return None
    open_ones = [one for one in rents[-LATEST:] if not _known(facts, _predictor(facts), one)]
    over = len(rents) / min(LATEST, len(rents))
    own = Demand.of_these(facts.domain, [asked_of(one.question) for one in open_ones])
    # who rents and buys by turns pays at most twice what either would: tables cost no more than numbers have
    room = sum((one.cost for one in rents), Fraction(0)) - (heard.spent - heard.rented)
    room = min(room, facts.account.left)
    whole = sum((one.cost for one in open_ones), Fraction(0))
    best: tuple[float, Purchase] | None = None
    for wanted in (demand(), own):
        for part in PARTS:
            price = Fraction(part * over) * whole
            if price < cost or price > room:
                continue
            known, design = _after(facts, _predictor(facts), wanted, price, reach)
            least = float(price) + (0.0 if best is None else best[0])
            gain = _saved(facts, known, open_ones, over, least) - float(price)
            if gain >= 0.0 and (best is None or gain > best[0]):
                tables = _made(facts, design, price)
                best = best if tables is None else (gain, tables)
    return None if best is None else best[1]


def _saved(
    facts: Facts[RecordSummary], predictor: Predictor, rents: Sequence[Rent], over: float, least: float
) -> float:
    """Return how much less these questions would have cost, each counted `over` times; 0 if not so much."""
    saved, left = 0.0, sum(float(one.cost) for one in rents)
    for one in rents:
        if over * (saved + left) < least * (1.0 - 1e-9):  # whatever the others are worth
            return 0.0
        saved += float(one.cost) - _price_by(facts, predictor, one)
        left -= float(one.cost)
    return over * saved


def _price_by(facts: Facts[RecordSummary], predictor: Predictor, rent: Rent) -> float:
    """Return what a question would be expected to cost by what a predictor holds, at most what it did."""
    if _known(facts, predictor, rent):
        return 0.0
    if not rent.within.certain or not isinstance(rent.question, Query):
        return float(rent.cost)
    _, tested = _cheapest_test(facts, rent.question, _error(facts, predictor, rent.question))
    return min(float(rent.cost), rent.alike * tested)


def _known(facts: Facts[RecordSummary], predictor: Predictor, rent: Rent) -> bool:
    """Return whether a question is expected to be known within its wish by what a predictor holds."""
    if not rent.within.certain:
        return _error(facts, predictor, rent.question) <= rent.within.expected
    return UNION * predictor.noise(rent.question) <= rent.within.radius


def _after(
    facts: Facts[RecordSummary], predictor: Predictor, demand: Demand, price: Fraction, reach: Reach | None
) -> tuple[Predictor, Design]:
    """Return what is known with the best tables for a price, and these."""
    pure = facts.account.order is None
    budget = precision_of(facts.account, price, facts.neighbours) * facts.n**2
    design = cheapest(predictor, demand, budget, reach, laplace=pure)
    known = [(key, budget * (one**2 if pure else one)) for key, one in design.parts.items()]
    return predictor.with_planned(known), design


def _made(facts: Facts[RecordSummary], design: Design, most: Fraction) -> Purchase | None:
    if not design.parts or most > facts.account.left:
        return None
    return tables_at(facts.domain, facts.account, facts.neighbours, design.parts, most)


def _error(facts: Facts[RecordSummary], predictor: Predictor, question: Question) -> float:
    """Return the expected error of an answer, larger where what was said before proved to be farther off."""
    predict = predictor.error if _wish(facts).certain else predictor.error_in_the_mean
    return math.sqrt(max(1.0, facts.heard.over(facts.n))) * predict(question)


def _predictor(facts: Facts[RecordSummary]) -> Predictor:
    return facts.heard.predictor or Predictor(facts.domain)


def _wish(facts: Facts[Any]) -> Within:
    return facts.within if facts.within is not None else Within(1.0)
