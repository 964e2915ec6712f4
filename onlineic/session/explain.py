"""What a question is, what it may cost and what its answer will be worth, from public facts alone.

Nothing is read, drawn or recorded. Whether a test will be easy or hard depends on the data: so both bounds
are told, and the most that can be spent.

Proof: docs/theory/within.md, 14.7.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.accounting.budget import Filter
from onlineic.ask.bind import bind_question
from onlineic.ask.json import is_share, shared
from onlineic.ask.json_keys import Share
from onlineic.display.html import card, facts
from onlineic.display.plain import strict
from onlineic.display.text import percent, shortened, upward, usually
from onlineic.domain.domain import Domain
from onlineic.domain.unit import Unit, persons_of
from onlineic.errors import InvalidParameterError, OnlineICError, TooFewRecordsError, TooLargeError, shown
from onlineic.ledger.records import FrozenLedger, Ledger, Single
from onlineic.plan.plan import Plan, restarts_text
from onlineic.plan.purchase import Purchase, Way, WayKind, epsilon_of, is_single
from onlineic.plan.purchase_rule import Purchases
from onlineic.plan.within import MOST_HEARD
from onlineic.queries.answers import LONGEST_QUERY, Answer
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.partitions import Measurement
from onlineic.queries.query import Query
from onlineic.queries.reach import Reach
from onlineic.queries.within import USUAL, Within
from onlineic.questions.derived import Answering
from onlineic.questions.distributions import Cdf, Quantile
from onlineic.questions.groups import Groups
from onlineic.questions.linear import PublicFacts
from onlineic.questions.means import Derived
from onlineic.questions.statements import AnswerTable
from onlineic.session.answers import AnswerBook
from onlineic.session.askable import answers_tables, check_supported
from onlineic.session.loop import Loop
from onlineic.session.prices import Prices
from onlineic.session.quota import Quota
from onlineic.slips import public

FORMS = {  # in words
    "constant": "the same whatever the data",
    "product": "conditions",
    "complement": "all but those of some conditions",
    "joint": "conditions taken together",
    "table": "a cross table",
    "several": "several questions",
}
WAYS: Mapping[WayKind, tuple[str, str]] = {  # one, several
    "test": ("a test", "tests"),
    "number": ("a measured number", "measured numbers"),
    "tables": ("tables", "purchases of tables"),
}
LOOKS = 4  # numbers of a call before which tables for later ones are looked for: each takes a while
ADDED = ("answers", "constants", "repeats", "at_most", "bought")  # numbers of explanations of several calls
Form = Literal["constant", "product", "complement", "joint", "table", "several"]


@public
@final
@attrs.frozen
class Price:
    """What one way to answer a question within a wish costs, or several questions that go the same way.

    Attributes:
        way: A test at a height that certifies the wish: an easy answer is free, and a hit has a number; a
            number without a test; or tables.
        answers: How many questions go this way; of tables, 1.
        at_most, likely: Part of the budget, if all tests are hard, and as it is expected: of a test the price
            of its hit times the chance of one.
        epsilon: What `at_most` is worth by itself: the epsilon of a budget that pays it and no more.
        taken: Whether it is the way that will be taken.
    """

    way: WayKind
    answers: int
    at_most: float
    likely: float
    epsilon: float
    taken: bool

    def __str__(self) -> str:
        one, several = WAYS[self.way]
        many = f"{self.answers:,} {several}" if self.answers > 1 else one
        if self.way == "test":
            said = f"{many}: nothing if easy, {percent(self.at_most)} of the budget if hard, about "
            return f"{said}{percent(self.likely)} to be expected"
        return f"{many}: {percent(self.at_most)} of the budget (epsilon = {self.epsilon:.2g} by itself)"


def _as_prices(told: Iterable[Price | Mapping[str, Any]]) -> tuple[Price, ...]:
    try:
        return tuple(
            one if isinstance(one, Price) else Price(**one) for one in told
        )  # a server tells mappings
    except TypeError:
        raise InvalidParameterError(
            f"prices must be a list of Price or of mappings with its fields, got {shown(told)}; ask explain."
        ) from None


@public
@final
@attrs.frozen
class Explanation:
    """What would happen if a question were asked now.

    Attributes:
        asked: The question, shortened.
        form: Of conditions on one attribute each, or one minus that; with weights over attributes together; a
            cross table; or more than one question.
        attributes: That it is about.
        support: Share of the domain's cells that count in it; None of several questions.
        grid_bits: Weights are multiples of 2^-grid_bits; None of several questions, 0 of a table.
        answers: How many it becomes. Of a question whose steps depend on earlier answers as many as the
            hypothesis's answers would lead to.
        constants, repeats: Of those, how many are the same whatever the data, or known already: both are
            free, the first exact.
        bound_easy, bound_hard: Largest error bound of one answer if all tests turn out easy, or all are
            measured; fractions. Measured ones are mostly bounded more narrowly: the farther what was learned
            lies from what was measured, the wider; above 1 where noise, or a private n, is as large. What the
            first tables say enters once they are bought. inf where they cannot be paid.
        bound_derived: Of a derived question its own bound if all tests turn out easy, in its own unit
            (largest of all groups; half a band; of a rank), as far as the hypothesis knows their values now;
            inf if it would be over too few records. None of plain questions.
        price: Most that one hit costs with its test, share of the budget; 0 if all is free. A hit uses up
            what stands set aside, also by a dearer question that was easy.
        hits_left: Hits of the largest price that can at least be paid: as many as at the price of the next.
            Prices fall.
        at_most: Most that can be spent on it, share of the budget, besides first and later tables. Under a
            wish with its tables; what these say can show that a further number is needed.
        left: Share of the budget that neither a release has used up nor first tables will, which the first
            question buys.
        payable: Whether a hit of each can be paid now; if not, those are answered untested.
        restarts_left: How often the session can be closed and resumed until no hit can be paid, as
            `SessionStatistics.restarts_left`.
        expected: Root-mean-square error that is predicted of one answer if its test is easy, the largest of
            all, with the tables that would be bought before; fraction of records. Nothing promises it
            (`interactions.Predictor`). None where no tables are released, or the rule does not fit all of
            them.
        shared: Share of the budget for which it buys tables first that serve every question: whoever asks
            next does. Nobody's part pays for them.
        tables: Share of the budget for which it buys tables for itself first; whoever asks pays for them.
        bought: How many would be bought by themselves, and so measured without a test: prices and bounds are
            those of their numbers.
        prices: Under a wish what each way costs, those that will be taken first; of one question the others
            follow. None of what is known.
        of_part: `at_most` and `tables` as a share of what the asker may spend in all; None: of all.
    """

    asked: str
    form: Form
    attributes: tuple[str, ...]
    support: float | None
    grid_bits: int | None
    answers: int
    constants: int
    repeats: int
    bound_easy: float
    bound_hard: float
    bound_derived: float | None
    price: float
    hits_left: int
    at_most: float
    left: float
    payable: bool
    restarts_left: int | None = None
    expected: float | None = None
    shared: float = 0.0
    tables: float = 0.0
    bought: int = 0
    prices: tuple[Price, ...] = attrs.field(default=(), converter=_as_prices)
    of_part: float | None = None

    @property
    def likely(self) -> float:
        """Part of the budget that it is expected to cost under a wish; without one, `at_most`."""
        return math.fsum(one.likely for one in self.prices if one.taken) if self.prices else self.at_most

    @property
    def buys_tables(self) -> bool:
        """Whether tables are bought first, for everybody or for it alone."""
        return self.shared + self.tables > 0.0

    @property
    def free(self) -> bool:
        """Whether it costs nothing, being constant or known already."""
        return self.answers == self.constants + self.repeats

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, which `json.dumps` takes; None for an infinite bound.

        "few_records" tells a `bound_derived` that is infinite from none.
        """
        few = self.bound_derived is not None and not math.isfinite(self.bound_derived)
        said = {**attrs.asdict(self), "free": self.free, "few_records": few}
        if not self.prices:
            del said["prices"]
        found: dict[str, Any] = strict(said)
        return found

    def __repr__(self) -> str:
        count = f"{self.answers} answer{'s' * (self.answers != 1)}"
        about = f" over {', '.join(self.attributes)}" if self.attributes else ""
        said = f"Explanation({self.asked}: {FORMS[self.form]}{about}; {count}"
        derived = "" if self.bound_derived is None else f", the result ± {upward(self.bound_derived)}"
        if self.free:
            usual = "".join(f", {one}" for one in [usually(self.expected, self.bound_easy)] if one)
            return f"{said}, known and free, ± {upward(self.bound_easy)}{usual}{derived})"
        known = self.constants + self.repeats
        said += f", {known} known and free" if known else ""
        if not self.payable:
            return f"{said}; the budget does not pay for measuring each, those would be untested)"
        usual = usually(self.expected)
        said += f"; {usual}, " if usual else "; "
        if self.prices:
            bound = "" if math.isinf(self.bound_hard) else f"± {upward(self.bound_hard)}, "
            return f"{said}{bound}{self._priced}; {self.left:.2%} of it is left)"
        said += f"after tables for {self.shared + self.tables:.2%} of the budget, " * self.buys_tables
        one = "each " * (self.answers > 1)
        price = f"{self.price:.2%} each, " * (self.answers > 1) + f"at most {self.at_most:.2%}"
        if self.bought == self.answers - known:
            return (
                f"{said}{one}measured, ± {upward(self.bound_hard)}{derived}, for {price} of the budget; "
                f"{self.left:.2%} of it is left)"
            )
        return (
            f"{said}{one}± {upward(self.bound_easy)}{derived} if not measured, which is free, else "
            f"± {upward(self.bound_hard)}, for {price} of the budget; {self.left:.2%} of it is left)"
        )

    @property
    def _priced(self) -> str:
        """The ways that will be taken, and what others would cost, in words."""
        parts = [[str(one) for one in self.prices if one.taken is taken] for taken in (True, False)]
        return "; instead ".join(" and ".join(part) for part in parts if part)

    def _repr_html_(self) -> str:
        said = [
            ("form", FORMS[self.form]),
            ("about", ", ".join(map(shortened, self.attributes)) or "no attribute"),
        ]
        known = self.constants + self.repeats
        said.append(("answers", f"{self.answers:,}, of which {known:,} known and free"))
        if self.expected is not None:
            said.append(
                ("expected error", f"about {self.expected:.2g} of each that is not measured, no promise")
            )
        if self.bound_derived is not None:
            said.append(("bound", f"± {upward(self.bound_derived)} if none is measured"))
        said.append(("bound of each", f"± {upward(self.bound_easy)} if not measured"))
        if self.prices:  # the bound is that of the wish, whichever way is taken
            said[-1] = (said[-1][0], f"± {upward(self.bound_hard)}")
            said.append(("price", self._priced))
        elif not self.free:
            said[-1] = (said[-1][0], f"{said[-1][1]}, ± {upward(self.bound_hard)} if measured")
            price = f"{self.price:.2%} of the budget a measured answer, at most {self.at_most:.2%}"
            price += f", after tables for {self.shared + self.tables:.2%}" * self.buys_tables
            said.append(("price", price))
        if not self.payable and not self.free:
            said.append(("not payable", "the budget does not pay a measured answer of each"))
        said.append(("measured answers left", f"at least {self.hits_left:,} ({self.left:.2%} of the budget)"))
        if self.restarts_left is not None:
            said.append(("restarts left", restarts_text(self.restarts_left)))
        return card(f"If asked: {shortened(self.asked, LONGEST_QUERY)}", facts(said))


@final
@attrs.frozen
class Preview:
    """What is known of one question before it is asked.

    Attributes:
        answer: What it would be if its test turned out easy; of a repeat or a constant what it is.
        bound_hard, joint: Bound of the number if it is measured; bound of the easy answer together with all
            others.
        price: Share of the budget that a hit would cost.
        known: Whether it needs no test.
    """

    answer: Answer
    bound_hard: float
    joint: float
    price: Fraction
    known: bool


@final
@attrs.frozen
class Buying:
    """What would be bought before questions.

    Attributes:
        tables: If any are.
        shared: Whether they are bought for everybody: no quota pays for them.
        alone: What is bought of a question by itself, by its key.
    """

    tables: Purchase | None = None
    shared: bool = False
    alone: Mapping[Any, Purchase] = attrs.field(factory=dict)


@final
@attrs.frozen
class _Call:
    """Questions of one call, and how exact they are to be; None: as the session answers without a wish."""

    questions: Sequence[Question]
    within: Within | None


@final
@attrs.define
class _Bought:
    """What calls before would have bought under their wishes, while they are explained.

    Attributes:
        known: Keys of questions that it answers.
        ways: That will be taken; of one question alone with those that will not.
        unpaid: Questions that cannot be paid.
        numbers: Records of numbers, as if each told what the hypothesis says.
        looks: How often tables for later numbers are still looked for.
    """

    known: set[Any] = attrs.field(factory=set)
    ways: list[Way] = attrs.field(factory=list)
    unpaid: list[Question] = attrs.field(factory=list)
    numbers: list[Single] = attrs.field(factory=list)
    looks: int = LOOKS


@final
@attrs.frozen
class Previewer:
    """What a session knows of questions not asked yet.

    Attributes:
        persons: Whom answers count.
        plan, book, prices, account: Of the session, or as they stood at one moment.
        owed: The charge of tables that questions will buy, by this plan.
        owed_alone, price_alone: The part of that which whoever asks pays, and what a number costs now.
        unfinished: What tests have used up, which is paid with the next purchase.
        sealed: Whether nothing can be tested.
        beta: Failure probability of one answer's bound.
        n_bound: How far n may be from the number of records; 0 where that is public.
        purchases: What would be bought before questions, by the record as it stands.
        seen: What was looked up of questions, for one explanation.
        quota: Of who asks; None: they may spend all of the budget.
        paid: What that quota has paid.
        past: The ledger that grows no more, of one that another thread may ask.
    """

    domain: Domain
    persons: int
    plan: Plan
    book: AnswerBook
    prices: Prices
    account: Filter
    owed: Fraction
    owed_alone: Fraction
    price_alone: Fraction
    unfinished: Fraction
    sealed: bool
    beta: float
    n_bound: int
    purchases: Purchases
    reach: Reach | None = None
    seen: dict[Any, Preview] = attrs.field(factory=dict)
    quota: Quota | None = None
    paid: Fraction = Fraction(0)
    past: Ledger | None = None

    @classmethod
    def of(cls, loop: Loop) -> "Previewer":
        """Return the previewer of a session as it stands; what it says changes with the session."""
        loop.book.catch_up()
        persons, sealed = persons_of(loop.n, loop.unit), loop.core.read_guard.sealed
        account, used = loop.ledger.account, loop.core.unfinished
        n_bound = 0 if loop.counted is None else loop.counted.bound
        return cls(
            loop.domain,
            persons,
            loop.plan,
            loop.book,
            loop.core.prices,
            account,
            loop.owed,
            loop.owed_alone,
            loop.price_alone,
            Fraction(0) if used is None else used.amount,
            sealed,
            loop.beta,
            n_bound,
            loop.core.purchases.frozen(FrozenLedger(loop.ledger), loop.book),
            loop.core.fetching.reach,
        )

    def frozen(self, ledger: Ledger) -> "Previewer":
        """Return a copy of now, over a ledger that does not grow: another thread may ask it."""
        book = self.book.frozen(ledger)
        prices, purchases = self.prices.frozen(book), self.purchases.frozen(ledger, book)
        return attrs.evolve(self, book=book, prices=prices, purchases=purchases, seen={}, past=ledger)

    def apart(self) -> "Previewer":
        """Return a copy for another thread: it shares nothing that is written to."""
        return attrs.evolve(self, seen={}) if self.past is None else self.frozen(self.past)

    def of_asker(self, quota: Quota | None, paid: Fraction) -> "Previewer":
        """Return a copy for an asker with this quota, who has paid so much."""
        return attrs.evolve(self, quota=quota, paid=paid, seen={})

    @property
    def own(self) -> Fraction:
        """What the asker's quota still allows."""
        return self.account.left if self.quota is None else max(Fraction(0), self.quota.limit - self.paid)

    @property
    def left(self) -> Fraction:
        """What the asker can spend on hits: neither spent nor owed for tables."""
        left = self.account.left - self.owed
        return left if self.quota is None else max(Fraction(0), min(left, self.own))

    @property
    def hits_left(self) -> int:
        """How many hits of the largest price the asker can still pay."""
        return 0 if self.sealed else self.prices.hard_left(self.account.left - self.left, self.account)

    @property
    def measured_left(self) -> int:
        """The same, or how many single purchases, where these are more."""
        if self.sealed or not self.price_alone:
            return self.hits_left
        room = self.owed_alone if self.plan.within is None else self.account.left
        return max(self.hits_left, int(min(self.own, room) / self.price_alone))

    @property
    def restarts_left(self) -> int | None:
        """How often the session can be resumed until no hit can be paid."""
        return self.prices.restarts_left(self.owed)

    @property
    def facts(self) -> PublicFacts:
        """What is public of the session."""
        facts = PublicFacts(
            self.domain,
            self.persons,
            self.beta,
            self.n_bound,
            self.answers_tables,
            within=self.plan.within,
        )
        return facts if self.quota is None else facts.of_asker(self.quota.finest)

    @property
    def answers_tables(self) -> bool:
        """Whether cross tables can be asked."""
        return answers_tables(self.plan.sparse, self.book.belief.hypothesis)

    def explained(self, question: Any, most: int | None = None, within: Within | None = None) -> Explanation:
        """Return what is known of a question before it is asked, as `OnlineIC.explain` says.

        Args:
            within: How exact each number is to be that it asks for; None: as the session wishes.

        Raises:
            TooFineWishError: If the asker may have no such wish.
            TooLargeError: If it becomes more than `most` questions.
        """
        previewer = attrs.evolve(self, seen={})
        asked, derived, calls = previewer.dry_run(question, most, within)
        if all(one.within is None for one in calls):
            questions = [one for call in calls for one in call.questions]
            return _explanation(asked, questions, previewer, derived)
        if self.quota is not None:
            for one in calls:
                self.quota.check(one.within)
        return _explained_within(asked, calls, previewer, derived)

    def part_of(self, amount: Fraction) -> float | None:
        """Return an amount as a share of what the asker's quota holds in all; None without one."""
        if self.quota is None:
            return None
        return float(amount / self.quota.limit) if self.quota.limit else 0.0

    def buy_call(self, call: "_Call", so_far: "_Bought") -> None:
        """Add what `Core.answer_within` would buy for a call, were it asked now."""
        within, book, rule = call.within, self.book, self.purchases
        if within is None:
            return
        asked = (one for one in call.questions if one.key not in so_far.known)
        new = {one.key: one for one in asked if not book.meets(one, within)}
        so_far.known.update(new)
        open_ones: Sequence[Question] = [*new.values()]
        left = Fraction(0) if self.sealed else min(self.own, self.account.left) - self.unfinished
        if len(open_ones) > 1 and rule.meets_wishes:
            tables = rule.within(open_ones[:MOST_HEARD], within)
            if tables is not None and tables.charge.amount <= left:
                price = tables.charge.amount
                so_far.ways.append(Way("tables", price, float(price), taken=True))
                open_ones = rule.left_open(tables, open_ones, within)
        for one in open_ones:
            found = rule.ways(one, within, so_far.numbers, looks=bool(so_far.looks))
            number = rule.number(one, within)
            if not found or any(way.taken and way.price > left for way in found):
                price = left + 1 if number is None else number.charge.amount  # who cannot pay has the number
                found = [Way("number", price, float(price), taken=True)] if price <= left else []
            so_far.looks = 0 if any(way.kind == "tables" for way in found) else max(0, so_far.looks - 1)
            so_far.ways += found
            if not any(way.taken for way in found):
                so_far.unpaid.append(one)
            if number is not None and isinstance(one, Query):
                so_far.numbers.append(self._as_if_told(one, number, within))

    def _as_if_told(self, query: Query, number: Purchase, within: Within) -> Single:
        """Return the record of a number, as if it told what the hypothesis says."""
        (deviation,), said = number.deviations(self.plan.sparse.n), self.book.said(query)
        told = Measurement(query, np.array([said]), deviation)
        return Single(query, self.book.guesses((query,))[0], told, number.charge, within)

    def bound_alone(self, calls: Sequence["_Call"]) -> float:
        """Return the bound of the number that one question is bought by for a wish; inf of several."""
        pairs = [(one, call.within) for call in calls for one in call.questions]
        if len(pairs) != 1:
            return math.inf
        ((question, within),) = pairs
        if within is None or self.book.meets(question, within):
            return math.inf
        number = self.purchases.number(question, within)
        return math.inf if number is None else self.book.radius_alone(number) + question.rounding

    def expected(self, questions: Sequence[Question]) -> float | None:
        """Return the largest error predicted of the answers to questions, if anything is."""
        predictor, buying = self.book.predictor, self.buys(questions)
        tables, alone = buying.tables, buying.alone
        known = any(self.preview(question).known for question in questions)
        if predictor is None or not (tables or alone or predictor.releases or known):
            return None
        if tables is not None:
            deviations = tables.deviations(self.plan.sparse.n)
            predictor = predictor.expecting(zip(tables.partitions, deviations, strict=True))
        largest = 0.0
        for question in questions:
            coming = self.preview(question)
            payable = coming.answer.status == "easy" and coming.price * self.account.capacity <= self.left
            error = self.book.expected(question, predictor, payable)
            if question.key in alone:
                (noise,) = alone[question.key].deviations(self.plan.sparse.n)
                error = error * noise / math.hypot(error, noise)
            largest = max(largest, error)
        return largest

    def buys(self, questions: Sequence[Question]) -> "Buying":
        """Return what would be bought before these questions, and for each alone, if the asker can pay."""
        new = self._new(questions)
        if self.sealed or not new or not self.own:
            return Buying()
        due, own, alone = self.purchases.next(()), self.own - self.unfinished, dict[Any, Purchase]()
        together = self.purchases.next([*new.values()])
        several = together is not None and not is_single(together, [*new.values()])
        if together and several and (not self.quota or due or together.charge.amount <= own):
            return Buying(together, due is not None)
        for key, question in new.items():
            if (named := self.purchases.next((question,))) is None:
                continue
            payable = self.quota is None or named.charge.amount <= own
            if is_single(named, (question,)) and payable:
                alone[key], own = named, own - named.charge.amount
            elif not is_single(named, (question,)) and (payable or due is not None):
                return Buying(named, due is not None, alone) if self.quota else Buying(alone=alone)
            else:
                return Buying(due, due is not None, alone)
        return Buying(alone=alone)

    def _new(self, questions: Sequence[Question]) -> dict[Any, Question]:
        """Return the questions that no answer is known of, by their keys."""
        return {question.key: question for question in questions if not self.preview(question).known}

    def dry_run(
        self, question: Any, most: int | None = None, within: Within | None = None
    ) -> tuple[str, float | None, list["_Call"]]:
        """Return how a question is called, its bound if it is a derived one, and what it asks."""
        run = DryRun(self, most, within)
        if is_share(question, self.domain):
            question = shared(question, self.domain)
        if isinstance(question, Share):
            question = question.asked
        if callable(question) and not isinstance(question, np.ndarray):
            return *run.of(question), run.calls
        asked, derived = shown(question, 80), None
        if isinstance(question, str) and question.lstrip()[:6].upper() == "SELECT":
            _, derived = run.of(lambda session: session.sql(question, within=within))
            return asked, derived, run.calls
        several = isinstance(question, Queries | list | tuple)
        bound = [self.bound(each) for each in (question if several else [question])]
        return asked, derived, [_Call(bound, run.facts.within)]

    def bound(self, question: Any) -> Question:
        """Return a question bound to the domain, or raise `InvalidQueryError`."""
        bound = bind_question(question, self.domain, self.plan.weight_bits)
        check_supported(bound, self.plan.sparse, self.book.belief.hypothesis, self.reach)
        return bound

    def preview(self, question: Question) -> Preview:
        """Return what is known of a question before it is asked."""
        key = (question.key, question.complement)
        if key not in self.seen:
            answer, hard, joint, known = self.book.preview(question, self.prices.target(question))
            price = Fraction(0) if known else self.prices.cost(question)
            if not known and price > self.left and self.quota is not None:
                answer = self.book.unpaid(question)
                hard = joint = answer.error_bound
            self.seen[key] = Preview(answer, hard, joint, price / self.account.capacity, known)
        return self.seen[key]


@final
class DryRun(Answering):
    """Answers as if every test turned out easy, and remembers what it was asked: for questions that are made
    of others. What it says rests on the hypothesis, without any guarantee."""

    def __init__(self, previewer: Previewer, most: int | None = None, within: Within | None = None) -> None:
        self._previewer, self._most, self._within = previewer, most, within
        self.calls: list[_Call] = []
        self._count = 0

    @property
    def facts(self) -> PublicFacts:
        facts = self._previewer.facts
        return facts if self._within is None else attrs.evolve(facts, within=self._within)

    def answer(self, query: Any) -> Answer:
        return self.answer_many([query])[0]

    def answer_many(self, queries: Any) -> list[Answer]:
        return self._answered(queries, self.facts.within)

    def answer_within(self, queries: Iterable[Any], within: Within) -> list[Answer]:
        return self._answered(queries, within)

    def _answered(self, queries: Iterable[Any], within: Within | None) -> list[Answer]:
        bound = []
        for query in queries:
            self._count += 1
            if self._most is not None and self._count > self._most:
                raise TooLargeError(
                    f"a question must become at most {self._most:,} questions, got more; ask fewer."
                )
            bound.append(self._previewer.bound(query))
        self.calls.append(_Call(bound, within))
        found = [self._previewer.preview(question).answer for question in bound]
        return found if within is None else [meeting(one, within) for one in found]

    def believed(self, queries: Iterable[Any]) -> list[float]:
        return [self._previewer.book.said(self._previewer.bound(query)) for query in queries]

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        bound = map(self._previewer.bound, queries)
        return np.array([self._previewer.preview(question).joint for question in bound])

    def of(self, ask: Callable[["DryRun"], Any]) -> tuple[str, float | None]:
        """Return the name and the bound of what a function of a session works out, None if it states none."""
        try:
            result = ask(self)
        except TooFewRecordsError:
            return "a question over too few records", math.inf
        return getattr(result, "name", "a function of a session"), bound_of(result)


@final
class Recalling(Answering):
    """Repeats earlier answers, and asks nothing: for results that are made of several.

    Raises:
        NotToldError: By every method, where one of the questions was not told.
    """

    def __init__(self, previewer: Previewer, rounded_in: Unit | None) -> None:
        self._previewer, self._rounded_in = previewer, rounded_in

    @property
    def facts(self) -> PublicFacts:
        return attrs.evolve(self._previewer.facts, rounded_in=self._rounded_in)

    def answer(self, query: Any) -> Answer:
        return self._told(query, None)

    def answer_within(self, queries: Iterable[Any], within: Within) -> list[Answer]:
        return [self._told(query, within) for query in queries]

    def _told(self, query: Any, within: Within | None) -> Answer:
        found = self._previewer.book.recalled(self._previewer.bound(query), within)
        if found is None:
            raise NotToldError("a question must have been told to be told again, got a new one; ask it.")
        return found

    def believed(self, queries: Iterable[Any]) -> list[float]:
        return [self._previewer.book.said(self._previewer.bound(query)) for query in queries]

    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        bound = [self._previewer.bound(query) for query in queries]
        return self._previewer.book.joint_bounds(bound, list(answers))

    def snapshot(self, queries: Iterable[Any], answers: Iterable[Answer]) -> list[Answer]:
        bound = [self._previewer.bound(query) for query in queries]
        return self._previewer.book.snapshot(bound, list(answers))


class NotToldError(OnlineICError):
    """A question was not answered before."""


def meeting(answer: Answer, within: Within) -> Answer:
    """Return an answer as it would be if it met a wish, by its bound or by its expected error."""
    return Answer(
        answer.value,
        answer.count,
        answer.status,
        min(answer.error_bound, within.radius) if within.certain else answer.error_bound,
        answer.private,
        query=answer.query,
        n=answer.n,
        left=answer.left,
        n_bound=answer.n_bound,
        of_what=answer.of_what,
        expected_error=answer.expected_error if within.certain else within.expected,
        beta=answer.beta,
    )


def explained(
    loop: Loop, question: Any, within: Within | None = None, quota: Quota | None = None
) -> Explanation:
    """Return what is known of a question before it is asked, as `OnlineIC.explain` says."""
    loop.core.read_guard.check_open()
    previewer = Previewer.of(loop)
    if quota is not None:
        previewer = previewer.of_asker(quota, loop.core.payments.by(quota.name))
    return previewer.explained(question, within=within)


def _explained_within(
    asked: str, calls: Sequence[_Call], previewer: "Previewer", derived: float | None
) -> Explanation:
    """Return what calls would cost under their wishes, and be worth."""
    whole, left = previewer.account.capacity, min(previewer.own, previewer.account.left)
    wished, so_far = [one for one in calls if one.within is not None], _Bought()
    for call in wished:
        previewer.buy_call(call, so_far)
    taken, wide = [way for way in so_far.ways if way.taken], so_far.unpaid
    prices, questions = [way.price for way in taken], [one for call in wished for one in call.questions]
    radius = max((one.within.radius for one in wished if one.within is not None), default=0.0)
    certain = all(one.within is None or one.within.certain for one in wished)
    new, constants = len(so_far.known), sum(one.constant is not None for one in questions)
    bound = radius if certain else previewer.bound_alone(wished)
    if wide:
        bound = max(previewer.book.unpaid(one).error_bound for one in wide)
    one, payable = questions[0] if len(questions) == 1 else None, not wide
    total = min(sum(prices, previewer.unfinished if taken else Fraction(0)), left)
    said = Explanation(
        asked=asked,
        form="several" if one is None else _form(one),
        attributes=tuple(dict.fromkeys(name for each in questions for name in _attributes(each))),
        support=None if one is None else _support(one),
        grid_bits=None if one is None else getattr(one, "grid_bits", 0),
        answers=len(questions),
        constants=constants,
        repeats=len(questions) - constants - new,
        bound_easy=bound,
        bound_hard=bound,
        bound_derived=derived,
        price=float(max(prices, default=Fraction(0)) / whole),
        hits_left=previewer.hits_left if previewer.quota is None else previewer.measured_left,
        at_most=float(total / whole),
        left=float(left / whole),
        payable=payable,
        restarts_left=previewer.restarts_left,
        expected=None if certain else radius / USUAL,
        bought=sum(way.kind == "number" for way in taken),
        prices=_prices(
            so_far.ways if one is not None else taken,
            previewer.account,
            getattr(previewer.plan.sparse, "delta", 0.0),
        ),
        of_part=previewer.part_of(total),
    )
    plain = [one for call in calls if call.within is None for one in call.questions]
    if not plain:
        return said
    other = _explanation(asked, plain, previewer, derived)
    return attrs.evolve(
        other,
        form="several",
        attributes=tuple(dict.fromkeys((*other.attributes, *said.attributes))),
        **{name: getattr(said, name) + getattr(other, name) for name in ADDED},
        **{name: max(getattr(said, name), getattr(other, name)) for name in ("bound_easy", "bound_hard")},
        price=max(said.price, other.price),
        payable=said.payable and other.payable,
        of_part=None if other.of_part is None else other.of_part + (said.of_part or 0.0),
    )


def _prices(ways: Sequence[Way], account: Filter, delta: float) -> tuple[Price, ...]:
    """Return what each kind of way costs together."""
    held: dict[tuple[bool, WayKind], list[Way]] = {}
    for way in ways:
        held.setdefault((not way.taken, way.kind), []).append(way)
    found = []
    for (_, kind), alike in sorted(held.items()):
        most = sum((way.price for way in alike), Fraction(0))
        likely = math.fsum(way.expected for way in alike) / float(account.capacity)
        found.append(
            Price(
                kind, len(alike), float(most / account.capacity), likely,
                epsilon_of(most, account, delta), alike[0].taken,
            )
        )  # fmt: skip
    return tuple(found)


def _explanation(
    asked: str, questions: Sequence[Question], previewer: Previewer, bound_derived: float | None
) -> Explanation:
    """Return what is known of questions that would be asked one after the other."""
    left, own = (some / previewer.account.capacity for some in (previewer.left, previewer.own))
    seen: set[Any] = set()
    constants, repeats, largest, total = 0, 0, Fraction(0), Fraction(0)
    easy, hard, payable, numbers = 0.0, 0.0, True, Fraction(0)
    buying = previewer.buys(questions)
    alone = buying.alone
    names: dict[str, None] = {}
    for question in questions:
        names |= dict.fromkeys(_attributes(question))
        preview = previewer.preview(question)
        again = question.key in seen
        seen.add(question.key)
        if question.key in alone:
            measured = previewer.book.radius_alone(alone[question.key]) + question.rounding
            easy, hard = max(easy, measured), max(hard, measured)
        else:
            easy, hard = max(easy, preview.answer.error_bound), max(hard, preview.bound_hard)
        if question.constant is not None:
            constants += 1
        elif preview.known or again:
            repeats += 1
        elif question.key in alone:
            price = alone[question.key].charge.amount / previewer.account.capacity
            payable = payable and price <= own  # out of what stands owed for purchases
            largest, numbers = max(largest, price), numbers + price
        else:
            payable = payable and preview.price <= left
            largest = max(largest, preview.price)
            total += preview.price
    one = questions[0] if len(questions) == 1 else None
    capacity, part = previewer.account.capacity, Fraction(0)
    if buying.tables is not None:
        part = buying.tables.charge.amount / capacity
    mine = Fraction(0) if buying.shared else part
    if alone or mine:
        numbers += previewer.unfinished / capacity
    total = min(min(total, left) + numbers, max(Fraction(0), own - mine))  # numbers of a call share alike
    return Explanation(
        asked=asked,
        form="several" if one is None else _form(one),
        attributes=tuple(names),
        support=None if one is None else _support(one),
        grid_bits=None if one is None else getattr(one, "grid_bits", 0),
        answers=len(questions),
        constants=constants,
        repeats=repeats,
        bound_easy=easy,
        bound_hard=hard,
        bound_derived=bound_derived,
        price=float(largest),
        hits_left=previewer.hits_left if previewer.quota is None else previewer.measured_left,
        # prices only fall, but more hits than `hits_left` can follow
        at_most=float(total),
        left=float(left),
        payable=payable,
        restarts_left=previewer.restarts_left,
        expected=previewer.expected(questions),
        shared=float(part - mine),
        tables=float(mine),
        bought=len(alone),
        of_part=previewer.part_of(capacity * (total + mine)),
    )


def bound_of(result: object) -> float | None:
    """Return the bound that a result states, the largest of several, None where it states none."""
    if isinstance(result, Derived):
        return result.error_bound
    if isinstance(result, Quantile):
        return result.rank_error
    if isinstance(result, Cdf):
        return float((result.high - result.low).max() / 2.0)
    if isinstance(result, Groups):
        return float(result.error_bounds.max())
    if isinstance(result, AnswerTable) and len(result.names) == 1 and len(result):  # others have a unit each
        return float(result.error_bounds.max())
    return None


def _attributes(question: Question) -> tuple[str, ...]:
    if isinstance(question, BoundMarginal):
        axes = question.partition.axes
        return tuple(question.partition.domain.names[axis] for axis in axes)
    return tuple(question.domain.names[axis] for axis in question.axes)


def _form(question: Question) -> Form:
    if isinstance(question, BoundMarginal):
        return "table"
    if question.constant is not None:
        return "constant"
    if any(len(factor.axes) > 1 for factor in question.factors):
        return "joint"
    return "complement" if question.complement and len(question.factors) > 1 else "product"


def _support(question: Question) -> float:
    """Return the share of the cells whose weight is not 0."""
    if isinstance(question, BoundMarginal):
        partition = question.partition
        sizes = np.ones(1)
        for cut in partition.cuts:
            sizes = np.multiply.outer(sizes, cut.widths / cut.size)
        return float(sizes.ravel()[np.unique(question.cells[question.cells >= 0])].sum())
    if question.constant is not None:
        return float(question.constant > 0)
    share = 1.0
    for factor in question.factors:
        share *= factor.share(question.domain, whole=question.complement)
    return 1.0 - share if question.complement else share
