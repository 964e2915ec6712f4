"""What the next hit costs and what is set aside for it: public, from the plan and the record alone.

Nothing here reads the table. Whoever holds the record works out the same prices.

Proof: docs/theory/session.md, 4.1, 4.5.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from onlineic.accounting.budget import Charge, Filter
from onlineic.domain.domain import Domain
from onlineic.plan.spending import Spent, dearest_hit, restarts_left
from onlineic.queries.batch import Queries
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.partitions import Partition, whole
from onlineic.queries.query import Query
from onlineic.session.answers import AnswerBook
from onlineic.sparse.base import NumericSparse


@final
@attrs.frozen(eq=False)
class Cover:
    """What pays for some tests: they are priced once, before anything is read.

    Attributes:
        payable: Which of the leading questions that were asked about may be tested.
        questions: Those of them.
        sparse: The mechanism that tests them.
        charge: Set aside for a hit of each, at least its price; None where none can be paid.
    """

    payable: Sequence[bool]
    questions: Sequence[Question]
    sparse: NumericSparse
    charge: Charge | None

    def first(self, count: int) -> "Cover":
        """Return the cover of the first so many questions."""
        return self if count == len(self.questions) else attrs.evolve(self, questions=self.questions[:count])


@final
@attrs.frozen(eq=False)
class _Standing:
    """What the next test rests on, after the record so far.

    Attributes:
        spent, reserved: What it was made for. Of the ledger: after a Ctrl-C only it knows.
        charge: What stands reserved by these prices: what a wish has left serves no other test.
        sparse: The mechanism of the next test.
        covered: The dearest hit that the charge pays.
        serving: The same of single queries, 0 if it is reserved for a cross table. A hit uses up all that was
            set aside: hits of single queries would become as dear as those of the table, so less is set aside
            anew.
        pays: Dict of (least weight, largest weight, grid bits) to bool. Whether it serves single queries of
            each kind, as far as it was asked.
    """

    spent: Spent
    reserved: Charge | None
    charge: Charge | None
    sparse: NumericSparse
    covered: Fraction
    serving: Fraction
    pays: dict[tuple[int, int, int], bool] = attrs.field(factory=dict)


@final
class Prices:
    """Prices of hits, and the reservations that cover them.

    Args:
        book: Of a ledger that is claimed for the account of the plan's mechanism. Prices are those of the
            records that it has taken in.
    """

    __slots__ = (
        "_book", "_dearest_of", "_domain", "_ledger", "_partitions", "_priced", "_set_aside", "_spending",
        "_standing",
    )  # fmt: skip

    def __init__(self, book: AnswerBook, domain: Domain) -> None:
        self._book, self._ledger, self._domain = book, book.ledger, domain
        self._spending, self._partitions = book.plan.spending, book.plan.partitions
        # a mechanism and its prices, replaced together: another thread may ask for a repr at any time
        self._priced: tuple[NumericSparse, dict[tuple[int, int, int], Fraction]] = (self._spending.sparse, {})
        self._standing: _Standing | None = None
        self._set_aside: Charge | None = None
        self._dearest_of: tuple[NumericSparse | None, Fraction] = (None, Fraction(0))

    def frozen(self, book: AnswerBook) -> "Prices":
        """Return the prices of now, by a book that takes in no more; what is reserved stands as it is."""
        other = copy.copy(self)
        other._book, other._ledger = book, book.ledger
        return other

    @property
    def sparse(self) -> NumericSparse:
        """The mechanism of the next test."""
        return self._now().sparse

    def target(self, question: Question) -> Query | Partition:
        """Return what a hit releases: settled before its test by the question and the record alone."""
        if isinstance(question, BoundMarginal):
            return question.partition
        if self._partitions is None or question.constant is not None:
            return question
        chosen = self._partitions.partition(question, self._book.state.held)
        return question if chosen is None else chosen

    def cover(self, questions: Sequence[Question]) -> Cover:
        """Set aside what pays a hit, and return which of the leading questions may be tested by it.

        A standing reservation serves every test until a hit uses it up, and is topped up for the first
        payable question, if that is dearer. The list ends before the next one that is dearer still: so a
        batch pays what its questions pay one at a time.
        """
        standing, first = self._now(), questions[0]
        if len(questions) == 1 and self._pays(standing, first):
            return Cover((True,), questions, standing.sparse, standing.charge)
        charge, due = standing.charge, standing.spent.due
        level = covered = standing.covered if isinstance(first, BoundMarginal) else standing.serving
        if charge is not None and all(price <= level for price in self._kinds(standing.sparse, questions)):
            return Cover([True] * len(questions), questions, standing.sparse, charge)
        left = self._free(standing)
        payable: list[bool] = []
        for price in self._prices(standing.sparse, questions):
            if level < price <= left:
                if any(payable):
                    break
                level = price
            payable.append(price <= left)
        places = [place for place, pays in enumerate(payable) if pays]
        tested: Sequence[Question] = questions[: len(payable)]
        if len(places) < len(payable):
            if isinstance(questions, Queries):
                tested = questions.chosen(np.array(places, np.int64))
            else:
                tested = [questions[place] for place in places]
        if places and (charge is None or level > covered):
            account, event = self._ledger.account, "one hard answer with its tests"
            charge = self._set_aside = Charge(level + due, event, account.unit, account.order)
            self._ledger.reserve(charge)
            self._stand(standing.spent, charge, standing.sparse)
        return Cover(payable, tested, standing.sparse, charge if places else None)

    def affords(self, question: Question) -> bool:
        """Return whether a hit of this question can be paid, from what stands reserved or what is left."""
        standing = self._now()
        return self._pays(standing, question) or self._price(standing.sparse, question) <= self._free(
            standing
        )

    def cost(self, question: Question) -> Fraction:
        """Return what a hit would cost now, with what it owes besides its price, in the unit of the account.

        A hit uses up all that stands reserved, also what a dearer question before it has left standing.
        """
        standing = self._now()
        if standing.charge is not None and self._pays(standing, question):
            return standing.charge.amount
        return self._price(standing.sparse, question) + standing.spent.due

    def threshold(self) -> float:
        """Return the threshold of the next test, fraction of records."""
        sparse = self._now().sparse
        return sparse.threshold / (sparse.n << sparse.grid_bits)

    def hard_left(self, owed: Fraction = Fraction(0), account: Filter | None = None) -> int:
        """Return how many hits of the largest price can still be paid, at the price of the next one.

        Args:
            owed: For tables that are not bought yet.
            account: That of the ledger, unless it is not claimed for this mechanism yet.
        """
        standing = self._now()
        left = (self._ledger.account if account is None else account).left - standing.spent.due - owed
        left -= self._spending.set_aside(standing.spent)
        return max(0, int(left // self._dearest(standing.sparse)))

    def restarts_left(self, owed: Fraction = Fraction(0)) -> int | None:
        """Return how often the session can be closed and resumed; None: any number, or it cannot be."""
        if not self._ledger.lasting:
            return None
        spent = self._book.state.spent
        return restarts_left(self._spending, self._domain, self._partitions is not None, spent, owed)

    def unfinished(self, drawn: bool) -> Charge | None:
        """Return what easy tests of a kept threshold have used up of the standing reservation, or None.

        It is paid when their process ends in order, and when something else is reserved in its place.

        Args:
            drawn: Whether the noise of a kept threshold was drawn.
        """
        standing = self._ledger.reserved
        if standing is None or not drawn:
            return None
        amount = self.sparse.unfinished(standing.amount, self._book.state.spent.due)
        event = "easy tests of a run that was closed"
        return attrs.evolve(standing, amount=amount, event=event) if amount else None

    def _now(self) -> _Standing:
        """Return what the next test rests on."""
        spent, reserved, held = self._book.state.spent, self._ledger.reserved, self._standing
        if held is None or held.spent is not spent or held.reserved is not reserved:
            return self._stand(spent, reserved, self._spending.at(spent))
        return held

    def _stand(self, spent: Spent, reserved: Charge | None, sparse: NumericSparse) -> _Standing:
        """Keep, and return, what tests by a mechanism rest on while this stands reserved."""
        charge = reserved if reserved is self._set_aside else None
        level = serving = Fraction(0)
        if charge is not None:
            level = charge.amount - spent.due
            serving = level if level <= self._dearest(sparse) else Fraction(0)
        self._standing = standing = _Standing(spent, reserved, charge, sparse, level, serving)
        return standing

    def _free(self, standing: _Standing) -> Fraction:
        """Return what is left of the account for hits, in its unit."""
        spent = standing.spent
        return self._ledger.account.left - spent.due - self._spending.set_aside(spent)

    def _kinds(self, sparse: NumericSparse, questions: Sequence[Question]) -> Iterator[Fraction]:
        """Yield the price of each kind of question among these: most of a batch have one."""
        alike: Iterable[Question] = questions
        if isinstance(questions, Queries):
            if questions.boxes:
                yield self._price(sparse, questions[int(questions.boxes[0].places[0])])
            alike = (query for _, query in questions.others)
        for question in alike:
            yield self._price(sparse, question)

    def _prices(self, sparse: NumericSparse, questions: Sequence[Question]) -> list[Fraction]:
        """Return the price of each."""
        if not isinstance(questions, Queries):
            return [self._price(sparse, question) for question in questions]
        prices = [next(self._kinds(sparse, questions))] * len(questions)
        for place, query in questions.others:
            prices[place] = self._price(sparse, query)
        return prices

    def _pays(self, standing: _Standing, question: Question) -> bool:
        """Return whether the standing reservation serves this question and pays its hit."""
        if standing.charge is None:
            return False
        if isinstance(question, BoundMarginal):
            return self._price(standing.sparse, question) <= standing.covered
        kind = (question.lowest, question.highest, question.grid_bits)
        known = standing.pays.get(kind)
        if known is None:
            known = standing.pays[kind] = self._price(standing.sparse, question) <= standing.serving
        return known

    def _dearest(self, sparse: NumericSparse) -> Fraction:
        held = self._dearest_of
        if held[0] is not sparse:
            price = dearest_hit(sparse, self._domain, self._partitions is not None)
            self._dearest_of = held = (sparse, price)
        return held[1]

    def _price(self, sparse: NumericSparse, question: Question) -> Fraction:
        if isinstance(question, BoundMarginal):
            return sparse.price(question.partition).amount
        held, prices = self._priced
        if held is not sparse:
            prices = {}
            self._priced = (sparse, prices)
        key = (question.lowest, question.highest, question.grid_bits)
        if key not in prices:
            number = sparse.price(question).amount
            # a hit of a partition session costs what a partition does, or the number that is released
            # instead: which of the two, no test can change
            prices[key] = number if self._partitions is None else max(number, self._table_price(sparse))
        return prices[key]

    def _table_price(self, sparse: NumericSparse) -> Fraction:
        return sparse.price(whole(self._domain)).amount
