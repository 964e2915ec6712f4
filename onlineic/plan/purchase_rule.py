"""What a session buys without a test: one rule, asked before each test, that sees public facts alone.

Proof: docs/theory/session.md, 4.9.
"""

import abc
import copy
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeVar, final

import attrs

from onlineic.accounting.budget import Filter
from onlineic.accounting.neighbours import Neighbours
from onlineic.domain.domain import Domain
from onlineic.errors import checked_ratio
from onlineic.ledger.records import Bought, BoughtTables, Ledger, Record
from onlineic.plan.purchase import Purchase, Way, checked_tables
from onlineic.queries.expressions import where
from onlineic.queries.marginals import Question
from onlineic.queries.within import Within
from onlineic.slips import public
from onlineic.sparse.base import NumericSparse

S = TypeVar("S")


@final
@attrs.frozen(eq=False)
class Facts(Generic[S]):
    """All that a purchase may rest on: public, and in the record before it.

    Attributes:
        account: What is spent, and what is left.
        neighbours: For which purchases are priced.
        heard: What the record has asked and bought, as the rule itself has summed it up.
        questions: What is about to be asked: the question at hand, and after it others of the same call, as
            many in all as the rule hears. None before one is asked.
        within: How exact their answers are to be, if that was said.
        beta: That the bound of a number may fail with.
        sparse: The mechanism of the plan, whose scale and height a test for a wish replaces.
        slack: How far n may be from the number of records, fraction of n: 0 where n is public.
        alike: How many questions the one at hand stands for: in a rehearsal, more than one.
    """

    domain: Domain
    n: int
    account: Filter
    neighbours: Neighbours
    heard: S
    questions: tuple[Question, ...] = ()
    within: Within | None = None
    beta: float = 0.05
    sparse: NumericSparse | None = None
    slack: float = 0.0
    alike: int = 1

    @property
    def question(self) -> Question | None:
        """The question at hand, if there is one."""
        return self.questions[0] if self.questions else None


class PurchaseRule(abc.ABC, Generic[S]):
    """What to buy next; pure and deterministic, so that whoever holds the record can work it out again."""

    meets_wishes: ClassVar[bool] = False  # whether `next` and `test` heed `Facts.within`
    ended: ClassVar[bool] = False  # whether nothing is bought any more, and what was told stands

    def planned(self, account: Filter) -> Fraction:
        """Return what all purchases may cost, in the unit of the account: prices of hits leave it aside."""
        return Fraction(0)

    @abc.abstractmethod
    def start(self) -> S:
        """Return the state of an empty record."""

    @abc.abstractmethod
    def heard(self, so_far: S, record: Record) -> S:
        """Return the state after one more record."""

    def lookahead(self, heard: S) -> int:
        """Return how many questions of one call it reads before it names a purchase; at least 1."""
        return 1

    @abc.abstractmethod
    def next(self, facts: Facts[S]) -> Purchase | None:
        """Return what to buy before the next test, or None. What the account cannot pay is not named."""

    def test(self, facts: Facts[S]) -> Within | None:
        """Return the wish with the steepness of a test of the question at hand, or None for no test."""
        return None

    def ways(self, facts: Facts[S], *, looks: bool = True) -> Sequence[Way]:
        """Return the ways to answer the question at hand within its wish, which it is not known within.

        Args:
            looks: Whether tables in the place of numbers are looked for.
        """
        return ()

    def left_open(self, facts: Facts[S], tables: Purchase) -> Sequence[Question]:
        """Return the questions of a call that these tables do not answer within its wish."""
        return facts.questions

    def number(self, facts: Facts[S]) -> Purchase | None:
        """Return the number of the question at hand that its wish needs, in the place of tables, or None."""
        return None

    def holds(self, record: BoughtTables, heard: S, n: int) -> bool:
        """Return whether the tables of a record are among those that this rule may have bought there."""
        return True

    def laplace(self, record: Bought, before: int, account: Filter) -> bool:
        """Return whether what it bought after so many purchases has Laplace noise: records do not tell."""
        return account.order is None

    def due_at(self, heard: S, questions: Iterable[Question], account: Filter) -> int | None:
        """Return after how many of these questions something is to be bought; None: not before the last."""
        return None

    def described(self, account: Filter) -> list[tuple[str, str]]:
        """Return what is bought, in words, each under its name."""
        part = float(self.planned(account) / account.capacity)
        return [("tables", f"bought as questions come, for up to {part:.0%} of the budget")]

    def owed(self, heard: S, account: Filter) -> Fraction:
        """Return the charge of what questions to come will buy, in the unit of the account."""
        return Fraction(0)

    def owed_alone(self, heard: S, account: Filter) -> Fraction:
        """Return the part of it that the asker pays: for what is bought for one question alone."""
        return Fraction(0)

    def price_alone(self, heard: S, account: Filter) -> Fraction:
        """Return the most that a number which is bought by itself costs now; 0: none is bought."""
        return Fraction(0)


def planned_by(rule: PurchaseRule[Any], account: Filter) -> Fraction:
    """Return what all purchases of a rule may cost by its own word, if an account can pay that, or raise."""
    return checked_ratio(
        f"{type(rule).__name__}.planned",
        rule.planned(account),
        at_least=0.0,
        at_most=float(account.capacity),
        remedy="return a part of account.capacity",
    )


@public
@final
@attrs.frozen
class TestsOnly(PurchaseRule[None]):
    """Nothing is bought without a test: the loop of the book."""

    __test__ = False  # its name is no test of pytest's

    def start(self) -> None:
        return None

    def heard(self, so_far: None, record: Record) -> None:
        return None

    def next(self, facts: Facts[None]) -> None:
        return None

    def described(self, account: Filter) -> list[tuple[str, str]]:
        return []


class Heard(Protocol):
    """Whoever takes in the record, and so knows the state of the rule after it."""

    @property
    def heard(self) -> Any:
        """That state; raises what the rule has raised."""


@final
class Purchases:
    """A purchase rule with its state, which whoever takes in the record keeps."""

    def __init__(
        self,
        rule: PurchaseRule[Any],
        ledger: Ledger,
        domain: Domain,
        n: int,
        sparse: NumericSparse,
        beta: float,
        fold: Heard,
        slack: float = 0.0,
    ) -> None:
        self._rule, self._ledger, self._domain, self._n = rule, ledger, domain, n
        self._fold = fold
        self._neighbours, self._sparse, self._beta, self._slack = sparse.neighbours, sparse, beta, slack
        # what is named whatever is asked, at a length of the record and a state of the account
        self._due: tuple[tuple[int, Filter] | None, Purchase | None] = (None, None)
        self._prices: dict[Within, Fraction] = {}  # of numbers within wishes

    @property
    def heard(self) -> Any:
        """The state of the rule after the record so far."""
        return self._fold.heard

    @property
    def lookahead(self) -> int:
        """How many questions of one call the rule reads."""
        return self._rule.lookahead(self.heard)

    def frozen(self, ledger: Ledger, fold: Heard) -> "Purchases":
        """Return what names the same, by a ledger that grows no more, when the record has grown."""
        other = copy.copy(self)
        other._ledger, other._fold = ledger, fold
        return other

    def next(self, questions: Sequence[Question]) -> Purchase | None:
        """Return what the rule names before the first of these questions is tested, or None."""
        heard, account = self._fold.heard, self._ledger.account
        read = tuple(questions[: self._rule.lookahead(heard)])
        named = self._rule.next(Facts(self._domain, self._n, account, self._neighbours, heard, read))
        return None if named is None else checked_tables(named)

    @property
    def meets_wishes(self) -> bool:
        """Whether the rule buys what a wish needs."""
        return self._rule.meets_wishes

    @property
    def due(self) -> Purchase | None:
        """What the rule names whatever is asked: worked out once while nothing is recorded or spent."""
        at = (len(self._ledger), self._ledger.account)
        if self._due[0] != at:
            self._due = (at, self.next(()))
        return self._due[1]

    def within(self, questions: Sequence[Question], within: Within) -> Purchase | None:
        """Return what the rule names for questions that are not known within a wish, or None."""
        named = self._rule.next(self._facts(questions, within))
        return None if named is None else checked_tables(named)

    def left_open(
        self, tables: Purchase, questions: Sequence[Question], within: Within
    ) -> Sequence[Question]:
        """Return the questions of a call that tables which are named for it leave open."""
        return self._rule.left_open(self._facts(questions, within), tables)

    def number(self, question: Question, within: Within) -> Purchase | None:
        """Return the number that a wish needs: of who cannot pay for the tables that the rule names."""
        named = self._rule.number(self._facts((question,), within))
        return None if named is None else checked_tables(named)

    def test(self, question: Question, within: Within) -> Within | None:
        """Return the wish with the steepness of the test that is likely cheaper than a number, or None."""
        return self._rule.test(self._facts((question,), within))

    def ways(
        self, question: Question, within: Within, then: Iterable[Record] = (), *, looks: bool = True
    ) -> Sequence[Way]:
        """Return the ways to answer a question that is not known within a wish.

        Args:
            then: Records that would come before.
            looks: Whether tables in the place of numbers are looked for.
        """
        facts = self._facts((question,), within)
        for record in then if looks else ():
            facts = attrs.evolve(facts, heard=self._rule.heard(facts.heard, record))
        return self._rule.ways(facts, looks=looks)

    def _facts(self, questions: Sequence[Question], within: Within) -> Facts[Any]:
        account, near, asked = self._ledger.account, self._neighbours, tuple(questions)
        return Facts(
            self._domain, self._n, account, near, self.heard, asked, within, self._beta, self._sparse,
            self._slack,
        )  # fmt: skip

    def due_at(self, questions: Iterable[Question]) -> int | None:
        """Return after how many of these questions the rule buys something; None: not before the last."""
        return self._rule.due_at(self.heard, questions, self._ledger.account)

    @property
    def owed(self) -> Fraction:
        """The charge of what questions to come will buy."""
        return self._rule.owed(self.heard, self._ledger.account)

    @property
    def owed_alone(self) -> Fraction:
        """The part of it that the asker pays."""
        return min(self.owed, self._rule.owed_alone(self.heard, self._ledger.account))

    @property
    def price_alone(self) -> Fraction:
        """The most that a number which is bought by itself costs now; 0: none is bought."""
        return self._rule.price_alone(self.heard, self._ledger.account)

    def price_within(self, within: Within) -> Fraction:
        """Return the most that the number of a plain condition costs within a wish; 0: it has no price."""
        if (known := self._prices.get(within)) is not None:
            return known if known <= self._ledger.account.left else Fraction(0)
        domain = self._domain
        name = next((name for name, kind in domain if kind.size > 1), domain.names[0])
        question = where({name: domain.attribute(name).label(0)}).bind(domain)
        facts = attrs.evolve(self._facts((question,), within), heard=self._rule.start())
        number = None if question.constant is not None else self._rule.number(facts)
        if number is None:
            return Fraction(0)
        self._prices[within] = number.charge.amount
        return number.charge.amount
