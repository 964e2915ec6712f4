"""Summary of a record that the purchase rule reads: what was asked, and what was bought."""

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, final

import attrs

from onlineic.interactions.demand import Asked, Axes, asked_of
from onlineic.interactions.predictor import Predictor
from onlineic.ledger.records import Bought, Certified, Easy, EasyBatch, Hard, Record, Single, measured
from onlineic.plan.singles import Singles
from onlineic.queries.marginals import Question
from onlineic.queries.query import Query
from onlineic.queries.within import Within


@final
@attrs.frozen(eq=False)
class Rent:
    """What the number of a question cost that a wish needed.

    Attributes:
        said: What the hypothesis said before, in records.
        told: The number, fraction of records.
        deviation, predicted: Of its noise, and of what was said before as it was expected; fractions.
        alike: How many questions it stands for, whose cost is told together: in a rehearsal, more than one.
    """

    question: Question
    cost: Fraction
    within: Within
    said: float = 0.0
    told: float = 0.0
    deviation: float = 0.0
    predicted: float = 0.0
    alike: int = 1


@final
@attrs.frozen(eq=False)
class RecordSummary:
    """Summary of a record that the purchase rule reads: what was asked, and what was bought.

    Attributes:
        asked: Of the first questions that were tested or bought, oldest first.
        sets: Sets of attributes among them.
        predictor: By what purchases have released.
        spent, rented: By all purchases, and by those of single questions, in the unit of the account.
        served: Keys of questions of calls for which tables were bought: they are asked together, and count as
            one purchase.
        rents: Of numbers that wishes needed, oldest first.
        housed: How many of these there were when tables were bought for a wish the last time.
    """

    asked: tuple[Asked, ...] = ()
    sets: frozenset[Axes] = frozenset()
    predictor: Predictor | None = None
    spent: Fraction = Fraction(0)
    rented: Fraction = Fraction(0)
    served: frozenset[Any] = frozenset()
    rents: tuple[Rent, ...] = ()
    housed: int = -1
    _over: dict[int, float] = attrs.field(factory=dict, init=False, repr=False)

    @property
    def alone(self) -> int:
        """How many questions came in calls of their own."""
        return max(0, len(self.asked) - len(self.served))

    def _rent(self, record: Single | Hard, within: Within) -> Rent:
        """Return what a record cost, and by how much its number was off what was said before."""
        query, measured_one = record.query, record.measurement
        if not isinstance(query, Query) or not isinstance(record.guess, int):
            return Rent(query, record.charge.amount, within)
        predictor = self.predictor or Predictor(query.domain)
        said, told = math.ldexp(record.guess, -query.grid_bits), float(measured_one.values[0])
        predict = predictor.error if within.certain else predictor.error_in_the_mean
        predicted = predict(query) if self.predictor is not None else 0.0
        return Rent(query, record.charge.amount, within, said, told, measured_one.scale, predicted)

    def over(self, n: int) -> float:
        """Return how many times its predicted square the square of an error is, by all that was measured."""
        if n not in self._over:
            seen = tuple(
                ((one.told - one.said / n) ** 2, one.deviation**2, one.predicted**2)
                for one in self.rents
                if one.predicted
            )
            self._over[n] = Singles(seen).over
        return self._over[n]

    def after(self, record: Record, most: int) -> "RecordSummary":
        """Return the summary with one more record; only the first `most` questions are kept."""
        found = self
        if isinstance(record, Bought):
            found = attrs.evolve(found, spent=found.spent + record.charge.amount)
            if isinstance(record, Single):
                found = attrs.evolve(found, rented=found.rented + record.charge.amount)
            elif record.within is not None:
                found = attrs.evolve(found, housed=len(found.rents))
            elif len(record.heard) > 1:
                found = attrs.evolve(found, served=found.served.union(one.key for one in record.heard))
            if tables := measured(record):
                before = found.predictor or Predictor(tables[0].target.domain)
                found = attrs.evolve(found, predictor=before.after(tables))
        if isinstance(record, Single | Hard) and record.within is not None:
            found = attrs.evolve(found, rents=(*found.rents, self._rent(record, record.within)))
        questions: Iterable[Question] = ()
        if isinstance(record, EasyBatch):
            questions = record.queries
        elif isinstance(record, Easy | Certified | Hard | Single):
            questions = (record.query,)
        more = tuple(map(asked_of, itertools.islice(questions, max(0, most - len(found.asked)))))
        if not more:
            return found
        sets = found.sets.union(one.axes for one in more)
        return attrs.evolve(found, asked=found.asked + more, sets=sets)
