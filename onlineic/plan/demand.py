"""What to buy next, by what is asked: numbers for the first questions, tables for those that follow.

The rule looks at public facts alone: the questions asked, what was released, and what is left. A question
that comes alone is bought by itself, as a number, until numbers have cost what may be spent on them: so a few
questions cost little, and many have tables. What an instalment of tables may cost follows from how many
questions were asked. Which tables it buys is what `interactions.cheapest` finds for the questions expected,
by the same predictor that tells what an answer is worth. Where one table of all cells, or the levels of one
attribute, are expected to tell more, these are settled before anything is asked.

Proof: docs/theory/session.md, 4.6, 4.9, 4.9a; docs/theory/within.md, 14.2, 14.3, 14.4.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, final

import attrs
import numpy as np

from onlineic.accounting.budget import Filter
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    checked_integer,
    checked_list,
    checked_ratio,
    set_fields,
    shown,
)
from onlineic.interactions.demand import Asked, Axes, Demand, Expected, asked_of, checked_axes
from onlineic.interactions.designs import cheapest
from onlineic.interactions.predictor import Predictor
from onlineic.interactions.sizes import Key
from onlineic.ledger.records import Bought, BoughtTables, Record
from onlineic.plan.defaults import KNOWN_TESTS
from onlineic.plan.purchase import Purchase, Way, precision_of, single, tables_at
from onlineic.plan.purchase_rule import Facts, PurchaseRule
from onlineic.plan.record_summary import RecordSummary
from onlineic.plan.within import LATEST, bought_within, chosen_test, left_open, number_within, ways_within
from onlineic.queries.marginals import Question
from onlineic.queries.reach import Reach
from onlineic.queries.within import Within

# of all purchases, where sets were announced: it waits until it is known what is asked; without it nothing is
# bought of what three attributes hold beyond pairs
KEPT = Fraction(1, 10)
INSTALMENT = Fraction(1, 50)  # of all purchases: less is not worth a release and a fit of its own
UNBOUNDED = 1e9  # precision of tables, by n squared, beside which nothing is known beforehand


@final
@attrs.frozen
class DemandPurchases(PurchaseRule[RecordSummary]):
    """Numbers for the first questions, then instalments of tables for what is asked.

    A question that comes alone is bought by itself, for a fixed part of what is left, where its noise is
    below its expected error: until `rent` is spent, or as many were asked as would have spent it. A call is
    heard whole: tables that answer it as well as numbers are bought for it, if they cost less than these.
    Then instalments come, each time that four times as many questions were asked, of what numbers have left.

    Args:
        share: In (0, 1]. Of the account, for all purchases together.
        after: Questions after which an instalment is bought, rising; the first one comes before the first
            question.
        parts: Of that, less what numbers cost, which are spent by then; the last one is 1.
        single: In (0, 1). Of what is left, for a number, if no `count` was told.
        rent: In [0, 1). Of all purchases, for numbers. Of the points tried with more for them 2,000 questions
            err by a tenth to a fifth more, and those of an hour hardly less; with less, these by a tenth to a
            third more (experiments/frontier.py).
        announced: Sets of attributes that will be asked, as places in the domain, if they were told.
        reach: Which sets can be counted: tables of others are not bought.
        count: About how many questions will come, if that was told and is less than `after` was made for, or
            so small that each is bought by itself: with a `rent`, of which all have equal parts.
        first: All that is bought, where it is settled beforehand: all cells, the levels of one attribute, or
            what sessions of several update rules begin with.
        listed: What announced questions ask of each set, if the questions themselves were told.

    Raises:
        InvalidParameterError: If a share is outside its range, counts or parts do not rise, or a set of
            attributes is none.
    """

    meets_wishes: ClassVar[bool] = True

    share: Fraction = Fraction(9, 10)
    after: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
    parts: tuple[Fraction, ...] = tuple(Fraction(part, 20) for part in (8, 13, 16, 18, 19, 20))
    single: Fraction = Fraction(1, 32)
    rent: Fraction = Fraction(2, 5)
    announced: tuple[Axes, ...] = ()
    reach: Reach | None = attrs.field(default=None, metadata={"later": True})
    count: int | None = attrs.field(default=None, metadata={"later": True})
    first: Purchase | None = attrs.field(default=None, metadata={"later": True})
    listed: tuple[Expected, ...] = attrs.field(default=(), metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        set_fields(self, share=checked_ratio("share", self.share))  # a float would be no charge
        set_fields(self, single=checked_ratio("single", self.single, above=0.0, below=1.0))
        set_fields(self, rent=checked_ratio("rent", self.rent, at_least=0.0, below=1.0))
        set_fields(self, parts=tuple(checked_ratio("parts", part) for part in self.parts))
        set_fields(self, announced=tuple(map(checked_axes, checked_list("announced", self.announced))))
        if self.count is not None:
            set_fields(self, count=checked_integer("count", self.count, at_least=1))
        for name, held, kind in (("first", self.first, Purchase), ("reach", self.reach, Reach)):
            if held is not None and type(held) is not kind:  # totals, and counts, go by their word
                raise InvalidParameterError(
                    f"{name} must be a {kind.__name__} or None, got a {type(held).__name__}; leave it out."
                )
        counts, parts = self.after, (Fraction(0), *self.parts)
        rising = all(one < other for one, other in itertools.pairwise(parts))
        counted = counts[:1] == (1,) and all(one < other for one, other in itertools.pairwise(counts))
        paired = len(counts) == len(self.parts)
        if not (0 < self.share <= 1 and counted and rising and parts[-1] == 1 and paired):
            raise InvalidParameterError(
                "purchases must have a share in (0, 1], as many counts as parts, rising from 1 and to 1, got "
                f"share={shown(self.share)}, after={shown(self.after)}, parts={shown(self.parts)}; leave out "
                "what you do not need."
            )

    @classmethod
    def of(
        cls,
        announced: tuple[Axes, ...] = (),
        reach: Reach | None = None,
        count: int | None = None,
        listed: tuple[Expected, ...] = (),
        *,
        guessed: bool = False,
        numbers: bool = False,
    ) -> "DemandPurchases":
        """Return the rule for questions that were announced.

        Of sets of attributes nearly all is bought with the first question; of a number of questions all is by
        its end. What was told needs no numbers before its tables.

        Args:
            guessed: Whether nobody has told these sets: numbers come before their tables.
            numbers: Whether so few questions were told that each is bought by itself.
        """
        rule = cls(announced=announced, reach=reach, listed=listed)
        if numbers and count is not None:
            return attrs.evolve(rule, share=1 - KNOWN_TESTS, rent=1 - KNOWN_TESTS, count=count)
        if count is not None or (announced and not guessed):
            rule = attrs.evolve(rule, rent=Fraction(0))
        if announced:
            more = len(rule.after) - 1
            parts = tuple(1 - KEPT + KEPT * place / more for place in range(more + 1))
            rule = attrs.evolve(rule, parts=parts)
        if count is None or count > rule.after[-1]:
            return rule
        kept = max(1, sum(after < count for after in rule.after))
        parts = (*rule.parts[: kept - 1], Fraction(1))
        return attrs.evolve(rule, after=rule.after[:kept], parts=parts, count=count)

    def check(self, domain: Domain) -> None:
        """Raise `InvalidParameterError` if what was announced are no attributes of this domain."""
        most = max((axes[-1] for axes in self.announced), default=-1)
        if most >= len(domain.shape):
            raise InvalidParameterError(
                f"announced must hold places in a domain of {len(domain.shape)} attributes, got {most}; the "
                "first one is 0."
            )

    @property
    def _read(self) -> int:
        """How many questions are heard, as one call can bring all that were announced."""
        return max(self.after[-1], self.count or 0)

    def planned(self, account: Filter) -> Fraction:
        return self.share * account.capacity

    def start(self) -> RecordSummary:
        return RecordSummary()

    def heard(self, so_far: RecordSummary, record: Record) -> RecordSummary:
        return so_far.after(record, self._read)

    def _demand(self, domain: Domain, asked: Sequence[Asked]) -> Demand:
        return Demand.of(domain, asked, self.announced, self.listed)

    def lookahead(self, heard: RecordSummary) -> int:
        return max(1, self._read - len(heard.asked))

    def due_at(self, heard: RecordSummary, questions: Iterable[Question], account: Filter) -> int | None:
        told, rents = len(heard.asked), self._rents(heard, account)
        if told >= self.after[-1] and not rents:
            return None  # all is bought, or will be with the next question
        milestone = next((count for count in self.after if count > told), math.inf) - told
        for count, _ in enumerate(questions, 1):
            if rents or count == milestone:  # even after the last: a repeat behind it buys, too
                return count
        return None

    def expected(self, facts: Facts[RecordSummary], questions: int) -> float:
        """Return the root-mean-square error expected of so many questions, fraction of records.

        Of questions over all attributes alike, or over the sets announced, none of which was asked before:
        who asks of a few has less error.
        """
        demand = self._demand(facts.domain, ())
        (first, _), (last, _) = self._foreseen(facts, demand, (self.parts[0], Fraction(1)))
        known = [first.known(demand.subspaces), last.known(demand.subspaces)]
        spent = [
            float((part - self.parts[0]) / (1 - self.parts[0])) if part < 1 else 1.0 for part in self.parts
        ]
        if facts.account.order is None:  # precision goes with the square of what each instalment costs
            spent = np.cumsum(np.diff([0.0, *spent]) ** 2).tolist()
        errors = [float((demand.weights / (known[0] + part * (known[1] - known[0]))).sum()) for part in spent]
        # the first instalment is bought at the first question, each other one after so many
        answered = np.diff(np.minimum([0, *self.after[1:], questions], questions))
        return math.sqrt(float(errors @ answered) / questions)

    def settled(self, facts: Facts[RecordSummary]) -> "DemandPurchases":
        """Return the same rule with all that it buys settled beforehand, for the questions told."""
        parts: dict[Key, float] = {}
        for _, bought in self._foreseen(facts, self._demand(facts.domain, ()), self.parts):
            parts = {key: parts.get(key, 0.0) + bought.get(key, 0.0) for key in {**parts, **bought}}
        tables = tables_at(
            facts.domain, facts.account, facts.neighbours, parts, self.share * facts.account.capacity
        )
        return attrs.evolve(self, after=(1,), parts=(Fraction(1),), count=None, first=tables)

    def _foreseen(
        self, facts: Facts[RecordSummary], demand: Demand, parts: Iterable[Fraction]
    ) -> Iterator[tuple[Predictor, dict[Key, float]]]:
        """Yield what is known after each instalment for a demand, and which part of all each table gets."""
        pure, before, predictor = facts.account.order is None, Fraction(0), Predictor(facts.domain)
        for spent in parts:
            part, before = spent - before, spent
            if not part:
                yield predictor, {}
                continue
            due = part * self.planned(facts.account)
            budget = precision_of(facts.account, due, facts.neighbours) * facts.n**2
            design = cheapest(predictor, demand, budget, self.reach, laplace=pure)
            known = {key: budget * (one**2 if pure else one) for key, one in design.parts.items()}
            predictor = predictor.with_planned(known.items())
            yield predictor, {key: float(part) * one for key, one in design.parts.items()}

    def owed(self, heard: RecordSummary, account: Filter) -> Fraction:
        if self.first is not None:  # numbers within wishes leave it due, and what was forfeited is no more
            due = heard.predictor is None and account.affords(self.first.charge)
            return self.first.charge.amount if due else Fraction(0)
        more = len(heard.asked) < self.after[-1] or self._rents(heard, account)
        left = self.planned(account) - heard.spent if more else Fraction(0)
        return min(max(Fraction(0), left), account.left)

    def owed_alone(self, heard: RecordSummary, account: Filter) -> Fraction:
        rents = self.first is None and self._rents(heard, account)
        if rents and self.count is not None:
            return self._left(heard, account)
        return self.rent * self.planned(account) - heard.spent if rents else Fraction(0)

    def price_alone(self, heard: RecordSummary, account: Filter) -> Fraction:
        rents = self.first is None and self._rents(heard, account)
        return self._price(heard, account) if rents else Fraction(0)

    def next(self, facts: Facts[RecordSummary]) -> Purchase | None:
        heard, question = facts.heard, facts.question
        if facts.within is not None:
            return bought_within(facts, partial(self._demand_within, facts), self.reach)
        if self.first is not None:
            known = question is not None and question.constant is not None  # answered without the table
            wanted = heard.predictor is None and not known and facts.account.affords(self.first.charge)
            return self.first if wanted else None
        asked, planned = [one for one in facts.questions if one.constant is None], self.planned(facts.account)
        told, least = len(heard.asked) + max(0, len(asked) - 1), INSTALMENT * planned
        left = planned - heard.spent
        if left <= least or (question and not asked):
            return None
        told_few = self.count is not None  # whose tables wait for the last of them
        if self._rents(heard, facts.account) and (asked or told_few or heard.predictor is not None):
            if len(asked) < 2:
                return self._alone(facts, asked[0]) if asked else None
            units, tables = self._of_call(facts, asked)
            if told_few or heard.spent + left * (1 - (1 - self.single) ** units) <= self.rent * planned:
                # once for a call: rounding may leave their noise a hair above that of its numbers
                return None if all(one.key in heard.served for one in asked) else tables
        due = heard.rented + self._reached(told, heard) * (planned - heard.rented) - heard.spent
        if due < least:
            return None
        # of one question at a time later instalments go by the record alone: one asked again has none
        more = map(asked_of, asked) if len(asked) > 1 or not told else ()
        tables = self._bought(facts, self._demand(facts.domain, [*heard.asked, *more]), due)
        # of noise that is too wide to draw little may be left: so there are at most a hundred releases
        return tables if tables is not None and tables.charge.amount > least / 2 else None

    def _demand_within(self, facts: Facts[RecordSummary]) -> Demand:
        """Return what is expected after the latest questions and the one at hand."""
        latest = [*facts.heard.asked[-LATEST:], *map(asked_of, facts.questions[:1])]
        return self._demand(facts.domain, latest)

    def ways(self, facts: Facts[RecordSummary], *, looks: bool = True) -> list[Way]:
        return ways_within(facts, partial(self._demand_within, facts) if looks else None, self.reach)

    def left_open(self, facts: Facts[RecordSummary], tables: Purchase) -> Sequence[Question]:
        return left_open(facts, tables, facts.questions)

    def number(self, facts: Facts[RecordSummary]) -> Purchase | None:
        number = number_within(facts, facts.questions[0])
        affords = number is not None and facts.account.affords(number.charge)
        return number if affords else None

    def test(self, facts: Facts[RecordSummary]) -> Within | None:
        return chosen_test(facts)

    def _rents(self, heard: RecordSummary, account: Filter) -> bool:
        """Whether questions are bought by themselves."""
        if self.count is not None:
            return len(heard.asked) < self.count and self._left(heard, account) > 0
        if heard.spent >= self.rent * self.planned(account):
            return False
        return heard.alone < round(math.log(1 - self.rent) / math.log(1 - self.single))

    def _price(self, heard: RecordSummary, account: Filter, together: int = 1) -> Fraction:
        """Return what a number costs, in the unit of the account.

        Of questions whose number was told all that are left share alike, as many as come `together` if these
        are more: so tables that answer several leave the others more. Twice an equal share is enough: what is
        left then is for questions beyond that number.
        """
        if self.count is None:
            return self.single * (self.planned(account) - heard.spent)
        left = self._left(heard, account) / max(1, self.count - len(heard.asked), together)
        return min(left, 2 * self.rent * self.planned(account) / self.count)

    def _left(self, heard: RecordSummary, account: Filter) -> Fraction:
        """Return what numbers have left of what they may cost: less what was lost beside tests and hits."""
        planned = self.planned(account)
        lost = account.spent - heard.spent - (account.capacity - planned)
        return max(Fraction(0), self.rent * planned - heard.spent - max(Fraction(0), lost))

    def _noise(self, facts: Facts[RecordSummary], price: Fraction) -> tuple[float, float]:
        """Return the noise of a number of this price, fraction of records, and that of a table over it."""
        near, pure = facts.neighbours, facts.account.order is None
        table = 1.0 / math.sqrt(precision_of(facts.account, price, near)) / facts.n
        over = near.table_l1() if pure else math.sqrt(near.table_squared())
        return table * near.number(0, 1) / over, over / near.number(0, 1)

    def _alone(self, facts: Facts[RecordSummary], question: Question) -> Purchase | None:
        """Return what a question asks, by itself, if that is worth its price."""
        heard, account = facts.heard, facts.account
        most = None if self.count is None else self._left(heard, account)
        called = self.count is not None and question.key in heard.served
        price = self._price(heard, account, len(heard.served) if called else 1)
        bought = single(question, price, account, facts.neighbours, most)
        if bought is None or bought.charge.amount > account.left:
            return None
        expected = (heard.predictor or Predictor(facts.domain)).error_in_the_mean(question)
        deviation = bought.deviations(facts.n)[0]
        if called:  # its number must take away half of the squared error of the tables
            return bought if expected**2 > 2 * deviation**2 else None
        return bought if self.count is not None or deviation < expected else None

    def _of_call(self, facts: Facts[RecordSummary], asked: Sequence[Question]) -> tuple[int, Purchase | None]:
        """Return how many numbers a call needs, and tables that answer it as well, if they cost less.

        Of a demand of which nothing is known tables err by a fixed number over the root of what they cost.
        """
        demand, pure = Demand.of_these(facts.domain, [*map(asked_of, asked)]), facts.account.order is None
        price = self._price(facts.heard, facts.account, len(asked))
        noise, over = self._noise(facts, price)
        if (facts.heard.predictor or Predictor(facts.domain)).expected(demand) <= noise:
            return 0, None
        budget = UNBOUNDED * facts.n**2
        design = cheapest(Predictor(facts.domain), demand, budget, self.reach, laplace=pure)
        units = design.after * math.sqrt(budget) * over
        units = units if pure else units**2
        if units >= len(asked):
            return len(asked), None
        most = Fraction(units) * price
        return math.ceil(units), self._bought(facts, demand, most)

    def described(self, account: Filter) -> list[tuple[str, str]]:
        if self.first is None:
            return super().described(account)
        part, many = float(self.first.charge.amount / account.capacity), len(self.first.targets)
        said = f"released with the first question for {part:.0%} of the budget: {many} of counts"
        return [("first tables", said)]

    def holds(self, record: BoughtTables, heard: RecordSummary, n: int) -> bool:
        return self.first is None or self.first.released_by(record, n)

    def laplace(self, record: Bought, before: int, account: Filter) -> bool:
        settled = self.first is not None and record.within is None  # a wish buys others
        return self.first.pure if settled and self.first else super().laplace(record, before, account)

    def _reached(self, told: int, heard: RecordSummary) -> Fraction:
        """Return the part of what numbers have left that is spent after so many questions."""
        if heard.predictor is None:  # the first one tells how large interactions are, which the next goes by
            return self.parts[0]
        reached = [part for part, after in zip(self.parts, self.after, strict=True) if after <= told]
        return reached[-1] if reached else self.parts[0]

    def _bought(self, facts: Facts[RecordSummary], demand: Demand, due: Fraction) -> Purchase | None:
        """Return the best tables for so much, or None if they are expected to tell nothing."""
        pure, predictor = facts.account.order is None, facts.heard.predictor or Predictor(facts.domain)
        if due > facts.account.left:  # hits have used it up: what is left is theirs
            return None
        budget = precision_of(facts.account, due, facts.neighbours) * facts.n**2
        design = cheapest(predictor, demand, budget, self.reach, laplace=pure)
        if design.after > design.before:
            return None
        return tables_at(facts.domain, facts.account, facts.neighbours, design.parts, due)


def opens_with(rule: PurchaseRule[Any]) -> Purchase | None:
    """Return what a rule of the package is sure to buy first, or None; of other rules nothing is sure."""
    return rule.first if type(rule) is DemandPurchases else None
