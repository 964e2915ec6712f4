"""What a study costs under a wish: the session's own rule, rehearsed on the questions that are expected.

Nothing is drawn from data. Each question is answered as the rule would answer it if what was released so far
told just what is expected of it: known, tested, measured, or after tables. So prices, predictor and order of
purchases are those of a session, and only what tables and tests will say is missing.

Proof: docs/theory/session.md, 4.6; docs/theory/within.md, 14.7.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Real
from typing import Any, final, overload

import attrs

from onlineic.accounting.budget import Budget
from onlineic.accounting.composition import zcdp_epsilon, zcdp_rho
from onlineic.ask.bind import bind_question
from onlineic.display.html import card, note, table
from onlineic.display.text import aligned, percent
from onlineic.domain.domain import Domain, check_domain
from onlineic.errors import InvalidParameterError, checked_integer, checked_list, shown
from onlineic.interactions.demand import asked_of
from onlineic.noise.sources import public_generator
from onlineic.plan.announced import REMEDY, Announcement, Questions, announcement
from onlineic.plan.forecasts import Forecast, counted_out, of_engines
from onlineic.plan.plan import MOST_EPSILON, Plan
from onlineic.plan.planning import session_plan
from onlineic.plan.purchase import is_single
from onlineic.plan.purchase_rule import Facts
from onlineic.plan.record_summary import RecordSummary, Rent
from onlineic.plan.settings import Settings, settings_of
from onlineic.plan.within import after_tables, expected_test, known_within
from onlineic.queries.expressions import Expression, between, where
from onlineic.queries.marginals import Question
from onlineic.queries.query import Query
from onlineic.queries.within import Within, checked_within
from onlineic.slips import public

ENOUGH = 10**9  # times a budget: a rehearsal is never cut short
REHEARSED = 1024  # questions: of more each stands for several, as a rehearsal takes seconds
LOOKS = 3  # at how much epsilon is needed: the order of a session's account follows from it
NEAR = 1.1  # times the right epsilon: its order is near enough
ORDERS = 3  # attributes of a question that is expected, at most


@final
@attrs.frozen
class StudyCost:
    """What a study is expected to cost with one wish, its questions asked one at a time.

    Attributes:
        epsilon: That a session needs at this delta; inf above 1000, or where so little noise cannot be drawn.
        at_once: That one call with all questions needs.
        alone: That plain noise needs, which measures each question at the wish.
        part: Of the budget that was given, if one was.
        numbers, tests: How many would be measured without a test, and tested.
        tables: How often tables would be bought.
    """

    within: Within
    epsilon: float
    at_once: float
    alone: float
    part: float | None
    numbers: int
    tests: int
    tables: int


@public
@final
@attrs.frozen(repr=False)
class StudyForecast:
    """What studies are expected to cost: public, and no promise.

    Attributes:
        costs: One a wish.
        n, questions: Records, and the questions that were told or are expected.
        delta: At which epsilons are told.
    """

    costs: tuple[StudyCost, ...]
    n: int
    questions: int
    delta: float

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        head = ["each within", "epsilon", "in one call", "each measured", "numbers", "tests", "tables"]
        budgeted = any(one.part is not None for one in self.costs)
        rows = []
        for one in self.costs:
            kind = "certain" if one.within.certain else "expected"
            epsilons = [_epsilon(value) for value in (one.epsilon, one.at_once, one.alone)]
            counts = [f"{value:,}" for value in (one.numbers, one.tests, one.tables)]
            rows.append([f"{one.within.radius:g}, {kind}", *epsilons, *counts])
            if budgeted:
                rows[-1].append("" if one.part is None else percent(one.part))
        return head + ["of the budget"] * budgeted, rows

    @property
    def _said(self) -> str:
        return (
            f"{self.questions:,} questions of {self.n:,} records at delta = {self.delta:g}, one at a time: "
            "expected, and no promise."
        )

    def __repr__(self) -> str:
        return f"{aligned(*self._rows())}\n{self._said}"

    def _repr_html_(self) -> str:
        head, rows = self._rows()
        return card("What a study costs", table(head, rows), note(self._said))


def _epsilon(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else f"above {MOST_EPSILON:g}"


@overload
def forecast(
    domain: Domain,
    n: int,
    budget: Budget | Settings,
    max_queries: int = ...,
    questions: Questions | None = ...,
) -> Forecast: ...
@overload
def forecast(
    domain: Domain,
    n: int,
    budget: Budget | Settings | None = ...,
    max_queries: int = ...,
    questions: Questions | None = ...,
    *,
    within: float | Within | Iterable[float | Within],
    delta: float = ...,
) -> StudyForecast: ...
@public
def forecast(
    domain: Domain,
    n: int,
    budget: Budget | Settings | None = None,
    max_queries: int = 10_000,
    questions: Questions | None = None,
    *,
    within: float | Within | Iterable[float | Within] | None = None,
    delta: float = 1e-9,
) -> Forecast | StudyForecast:
    """Return what every engine is expected to err by, or what a study with a wish costs; all public.

    Args:
        n: Number of records, or about that where it is private: errors of counts are over it.
        budget: Settings of a session tell of its questions too. With `accounting.ADD_REMOVE` for its
            neighbours the number of records is paid from it first. Needed but for a wish.
        max_queries: For how many answers noise on every answer is priced, unless `questions` tells how many
            there will be. It chooses no start.
        questions: A number; or an iterable of names, of sets of names, or of questions. As
            `Settings.questions`. If it tells how many different questions will come, a session may measure
            each of them, where that is expected to err least. Of dense ones nothing is known where a session
            buys by what is asked (their error is then put at 1/2): with those among them it starts from all
            cells, or measures each question where that says more. Of a session that listens what is expected
            is the error of questions over all attributes alike, or over the sets told.
        within: How exact each answer is to be, a fraction of the records: `expected(number)`, or a number, of
            which both kinds are told; or several. Then the epsilon is told that a session needs which is told
            of the same questions. Its own rule is rehearsed, on the questions of a list, or on ranges of the
            sets told, or of one to three attributes, as if tables told what is expected of them.
        delta: Of the session with a wish, unless a budget tells.

    Raises:
        InvalidParameterError: If there is neither a budget nor a wish, or a setting is outside its range.
    """
    check_domain(domain)
    remedy = "write how many records there are, or about that"
    n = checked_integer("n", n, at_least=1, at_most=2**53, remedy=remedy)  # a table holds no more
    if within is None:
        if budget is None:
            raise InvalidParameterError(
                "budget must be given without a wish, got none; write Budget(1.0, 1e-9)."
            )
        return of_engines(domain, n, settings_of(budget, max_queries=max_queries, questions=questions))
    given, questions = budget is not None, _not_constant(domain, questions)
    settings = settings_of(
        Budget(1.0, delta) if budget is None else budget, max_queries=max_queries, questions=questions
    )
    told = announcement(settings.questions) if settings.questions is not None else None
    asked = [bind_question(one, domain) for one in told.asked] if told is not None else []
    count = len(asked) or (told.count if told is not None else None) or max_queries
    if not asked:
        sets = [tuple(domain.axis(name) for name in one) for one in (told.sets if told is not None else ())]
        asked = [one.bind(domain) for one in _alike(domain, sets, min(count, REHEARSED))]
    elif len(asked) > REHEARSED:
        asked = [asked[place * len(asked) // REHEARSED] for place in range(REHEARSED)]
    settings = settings.of_domain(domain)
    costs = [_cost(domain, n, settings, wish, asked, count, given) for wish in _wishes(within)]
    return StudyForecast(tuple(costs), n, count, settings.budget.delta)


def _not_constant(domain: Domain, questions: Questions | None) -> Questions | None:
    """Return what was told, of a list those whose answer the records decide: others are free."""
    if questions is None or isinstance(questions, Real | Announcement):
        return questions
    told = checked_list("questions", questions, remedy=REMEDY)
    return [
        one
        for one in told
        if not isinstance(one, Expression | Query) or bind_question(one, domain).constant is None
    ]


def _wishes(within: Any) -> list[Within]:
    """Return the wishes of an argument: of a number both kinds."""
    several = isinstance(within, Iterable) and not isinstance(within, str)
    found: list[Within] = []
    for one in within if several else (within,):
        wish = checked_within(one)
        found += [wish] if type(one) is Within else [wish, attrs.evolve(wish, certain=False)]
    if not found:
        raise InvalidParameterError(f"within must hold a wish, got {shown(within)}; write .01.")
    return found


def _alike(domain: Domain, sets: Sequence[tuple[int, ...]], count: int) -> list[Expression]:
    """Return so many ranges, of these sets of attributes by turns, or of one to three attributes."""
    generator, found = public_generator(0), list[Expression]()
    live = [axis for axis, size in enumerate(domain.shape) if size > 1]
    for place in range(count):
        order = 1 + place % max(1, min(ORDERS, len(live)))
        axes = sets[place % len(sets)] if sets else generator.permutation(live)[:order].tolist()
        conditions: dict[str, Any] = {}
        for axis in axes:
            kind = domain.attributes[axis]
            first, last = sorted(generator.integers(0, kind.size - kind.missing, 2).tolist())
            one = between(kind.label(first), kind.label(last)) if kind.ordered else kind.label(first)
            conditions[domain.names[axis]] = one
        found.append(where(conditions))
    return found


def _cost(
    domain: Domain,
    n: int,
    settings: Settings,
    wish: Within,
    asked: Sequence[Question],
    count: int,
    given: bool,
) -> StudyCost:
    """Return what questions cost with a wish, which stand for so many."""
    times, own, first = _times(count, len(asked)), settings, None
    for _ in range(LOOKS):
        study = Study.of(domain, n, attrs.evolve(own, within=wish))
        found = study.rehearsed(asked, times)
        first, needed = found.part if first is None else first, study.epsilon_of(found.part)
        near = own.budget.epsilon / NEAR <= needed <= own.budget.epsilon * NEAR
        # without tests an order changes nothing: noise costs as much of each account
        if near or not found.tests or not needed <= MOST_EPSILON:
            break
        own = attrs.evolve(own, budget=attrs.evolve(own.budget, epsilon=needed))
    at_once = study.at_once(asked, times)
    return StudyCost(
        within=wish,
        epsilon=needed,
        at_once=needed if at_once is None else study.epsilon_of(at_once),
        alone=study.epsilon_of(study.alone(asked, times)),
        part=first if given else None,
        numbers=found.numbers,
        tests=found.tests,
        tables=found.tables,
    )


def _times(count: int, steps: int) -> list[int]:
    """Return how many questions each of some stands for: the first ones for few, each later one for more."""
    if count <= steps:
        return [1] * steps
    low, high = 0.0, math.log(count)  # logarithm of how many times its predecessor's number each has
    while high - low > 1e-12:
        rise = (low + high) / 2.0
        few = math.expm1(min(600.0, steps * rise)) / math.expm1(rise) < count
        low, high = (rise, high) if few else (low, rise)
    ends = [0, *(round(math.expm1(place * high) / math.expm1(high)) for place in range(1, steps)), count]
    return [max(1, last - first) for first, last in itertools.pairwise(ends)]


@final
@attrs.frozen
class Rehearsal:
    """What a session is expected to spend on questions, one at a time, and for what.

    Attributes:
        part: Of its budget, more than 1 if that does not suffice; inf if noise is too small to be drawn.
        numbers, tests: Questions that are measured without a test, and tested.
        tables: Purchases of these.
    """

    part: float
    numbers: int
    tests: int
    tables: int


@final
@attrs.frozen
class Study:
    """A session with a wish that has released nothing, whose budget never ends.

    Attributes:
        epsilon: Of the budget that it was planned for.
        facts: What its rule knows.
    """

    plan: Plan
    epsilon: float
    facts: Facts[RecordSummary]

    @classmethod
    def of(cls, domain: Domain, n: int, settings: Settings) -> "Study":
        """Return the study of a session with these settings."""
        plan = session_plan(domain, n, counted_out(settings))
        account = plan.sparse.account()
        endless = attrs.evolve(account, capacity=account.capacity * ENOUGH)
        facts = Facts(
            domain, n, endless, plan.sparse.neighbours, plan.purchases.start(), (), plan.within,
            plan.tested_beta, plan.sparse,
        )  # fmt: skip
        return cls(plan, settings.budget.epsilon, facts)

    def _part(self, spent: Fraction) -> float:
        return float(spent / self.plan.sparse.account().capacity)

    def epsilon_of(self, part: float) -> float:
        """Return the epsilon of which so much as this part of the budget would be all."""
        if not 0.0 < part < math.inf:
            return part
        sparse: Any = self.plan.sparse
        own, delta = sparse.epsilon, getattr(sparse, "delta", 0.0)
        if delta:
            part = zcdp_epsilon(part * zcdp_rho(own, delta), delta) / own
        found = self.epsilon * part
        return found if found <= MOST_EPSILON else math.inf

    def alone(self, questions: Sequence[Question], times: Sequence[int]) -> float:
        """Return the part of the budget that a number for each question costs."""
        spent, told = Fraction(0), set[Any]()
        for question, alike in zip(questions, times, strict=True):
            if question.constant is not None or question.key in told:
                continue
            told.add(question.key)
            number = self.plan.purchases.number(attrs.evolve(self.facts, questions=(question,)))
            if number is None:
                return math.inf
            spent += number.charge.amount * alike
        return self._part(spent)

    def at_once(self, questions: Sequence[Question], times: Sequence[int]) -> float | None:
        """Return the part of the budget that one call with these questions costs; None: as one at a time."""
        new = {one.key: one for one in questions if one.constant is None}
        alike = round(sum(times) / len(times)) if times else 1
        facts = attrs.evolve(self.facts, questions=(*new.values(),), alike=alike)
        tables = self.plan.purchases.next(facts) if len(new) > 1 else None
        if tables is None:
            return None
        rest = self.plan.purchases.left_open(facts, tables)
        later = attrs.evolve(self, facts=after_tables(facts, tables))
        return self._part(tables.charge.amount) + later.rehearsed(rest, [alike] * len(rest)).part

    def rehearsed(self, questions: Sequence[Question], times: Sequence[int]) -> Rehearsal:
        """Return what is spent on questions, each of which stands for so many."""
        rule, facts, told, spent, due = self.plan.purchases, self.facts, set[Any](), Fraction(0), 0.0
        numbers = tests = tables = 0
        for question, alike in zip(questions, times, strict=True):
            if question.constant is not None or question.key in told:
                continue
            told.add(question.key)
            facts = attrs.evolve(facts, questions=(question,), alike=alike)
            while not known_within(facts, question):
                if rule.test(facts) is not None and isinstance(question, Query):
                    price, chance = expected_test(facts, question)
                    tests, due = tests + alike, due + alike * chance
                    hits = math.floor(due)  # as many as are expected by now
                    due -= hits
                    facts, spent = _rented(facts, price, hits), spent + price * hits
                    break
                bought = rule.next(facts)
                if bought is None:
                    return Rehearsal(math.inf, numbers, tests, tables)
                cost = bought.charge.amount
                if is_single(bought, (question,)):
                    facts, spent, numbers = _rented(facts, cost, alike), spent + cost * alike, numbers + alike
                    break
                facts, spent, tables = after_tables(facts, bought), spent + cost, tables + 1
        return Rehearsal(self._part(spent), numbers, tests, tables)


def _rented(facts: Facts[RecordSummary], cost: Fraction, times: int) -> Facts[RecordSummary]:
    """Return the facts once the question at hand, and others like it, were measured for so much each."""
    heard, (question,), paid = facts.heard, facts.questions, cost * times
    asked = (*heard.asked, asked_of(question))
    rents = (*heard.rents, Rent(question, paid, facts.within or Within(1.0), alike=times))
    heard = attrs.evolve(
        heard,
        asked=asked,
        sets=heard.sets | {asked[-1].axes},
        rents=rents if paid else heard.rents,
        rented=heard.rented + paid,
        spent=heard.spent + paid,
    )
    account = attrs.evolve(facts.account, spent=facts.account.spent + paid)
    return attrs.evolve(facts, heard=heard, account=account)
