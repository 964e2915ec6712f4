"""Summary of a record that the purchase rule reads: what was asked, and what was bought."""

import itertools
from collections.abc import Iterable
from fractions import Fraction
from typing import final

import attrs

from onlineic.interactions.demand import Asked, Axes, asked_of
from onlineic.interactions.predictor import Predictor
from onlineic.ledger.records import Bought, Easy, EasyBatch, Hard, Record, Single, measured
from onlineic.queries.marginals import Question


@final
@attrs.frozen(eq=False)
class RecordSummary:
    """Summary of a record that the purchase rule reads: what was asked, and what was bought.

    Attributes:
        asked: Of the first questions that were tested or bought, oldest first.
        sets: Sets of attributes among them.
        predictor: By what purchases have released.
        spent, rented: By all purchases, and by those of single questions, in the unit of the account.
        served: Questions of calls for which tables were bought: they are asked together, and count as one
            purchase.
    """

    asked: tuple[Asked, ...] = ()
    sets: frozenset[Axes] = frozenset()
    predictor: Predictor | None = None
    spent: Fraction = Fraction(0)
    rented: Fraction = Fraction(0)
    served: int = 0

    @property
    def alone(self) -> int:
        """How many questions came in calls of their own."""
        return max(0, len(self.asked) - self.served)

    def after(self, record: Record, most: int) -> "RecordSummary":
        """Return the summary with one more record; only the first `most` questions are kept."""
        found = self
        if isinstance(record, Bought):
            found = attrs.evolve(found, spent=found.spent + record.charge.amount)
            if isinstance(record, Single):
                found = attrs.evolve(found, rented=found.rented + record.charge.amount)
            elif len(record.heard) > 1:
                found = attrs.evolve(found, served=found.served + len(record.heard))
            if tables := measured(record):
                before = found.predictor or Predictor(tables[0].target.domain)
                found = attrs.evolve(found, predictor=before.after(tables))
        questions: Iterable[Question] = ()
        if isinstance(record, EasyBatch):
            questions = record.queries
        elif isinstance(record, Easy | Hard | Single):
            questions = (record.query,)
        more = tuple(map(asked_of, itertools.islice(questions, max(0, most - len(found.asked)))))
        if not more:
            return found
        sets = found.sets.union(one.axes for one in more)
        return attrs.evolve(found, asked=found.asked + more, sets=sets)
