"""Predicted errors of answers, from what had been released when each was given.

Proof: docs/theory/session.md, 4.9b.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.interactions.predictor import Predictor
from onlineic.plan.demand import DemandPurchases
from onlineic.plan.plan import Plan
from onlineic.queries.batch import Queries
from onlineic.queries.counted import Counted
from onlineic.queries.marginals import BoundMarginal, Question
from onlineic.queries.memory import Remembered
from onlineic.queries.partitions import Measurement, Partition


@final
@attrs.frozen
class Measured:
    """How an answer was measured.

    Attributes:
        radius: Behind its bound.
        deviation: A number, of a table an array. Of its noise, fraction of records; of what was bought by
            itself what is left beside what was said.
        fitted: Whether the number of the hypothesis that was fitted to it is told in its place.
    """

    radius: float
    deviation: Any
    fitted: bool


@final
@attrs.frozen(eq=False)
class Expectations:
    """Predicted root-mean-square errors of answers, fractions of n; nothing guarantees them.

    Attributes:
        predictors: After each number of purchases, from none on; empty where the rule does not fit all that
            was released.
        numbers: What was measured. Entries are added for questions that nothing was told of, and never
            change: a measured answer is told from then on.
        of_n: Standard deviation of n, fraction of it: 0 where n is public.
        least: Purchases from which on an error is predicted: 0 where the rule itself goes by what is expected
            before any, and so may leave a question to the start of the hypothesis.
    """

    predictors: tuple[Predictor, ...]
    numbers: dict[Any, Measured]
    of_n: float
    least: int = 1

    @classmethod
    def begun(cls, plan: Plan, domain: Domain, counted: Counted | None) -> "Expectations":
        """Return the expectations of a session that has released nothing."""
        # of certified and textbook sessions nobody has shown what their hypothesis errs by
        fits = plan.update.fits_all and not (plan.certified or plan.textbook or plan.purchases.ended)
        least = int(type(plan.purchases) is not DemandPurchases or plan.first_tables is not None)
        of_n = 0.0 if counted is None else counted.deviation
        return cls((Predictor(domain),) if fits else (), {}, of_n, least)

    def after(self, before: int, released: Sequence[Measurement], followed: bool = True) -> "Expectations":
        """Return them after one more purchase; by `before`, those before it, none is taken in twice.

        Args:
            followed: Whether the hypothesis has learned of it; else it errs by what it did before.
        """
        if len(self.predictors) != before + 1:
            return self
        last = self.predictors[-1]
        return attrs.evolve(self, predictors=(*self.predictors, last.after(released) if followed else last))

    def frozen(self) -> "Expectations":
        """Return a copy that later measurements do not change."""
        return attrs.evolve(self, numbers=dict(self.numbers))

    @property
    def predictor(self) -> Predictor | None:
        """Predicts errors from all releases; None if the rule does not fit all of them."""
        return self.predictors[-1] if self.predictors else None

    def told(
        self, question: Question, value: Any, version: int | None = None, radius: float = math.inf
    ) -> Any:
        """Return the predicted error of a value of the hypothesis after so many purchases, None if unknown.

        Of a cross table, one for each cell.

        Args:
            radius: Of the test that found it easy; inf where it was not tested.
        """
        if question.constant is not None:
            return self.of_n * value
        error = self._predicted(question, len(self.predictors) - 1 if version is None else version)
        if error is None:
            return None
        error = tested(error, radius)
        # all counts of a hypothesis add up to n
        return _plain(np.hypot(error, self.of_n * value) if self.of_n else error)

    def measured(self, question: Question, number: Measured, version: int | None = None) -> Any:
        """Return the error of a measured answer: of its noise, and of the tables that it was fitted with."""
        latest = len(self.predictors) - 1 if version is None else version
        return self._beside(question, number, self._predicted(question, latest) if number.fitted else None)

    def _beside(self, question: Question, number: Measured, error: Any) -> Any:
        """Return the error of a measured answer beside a fit of this error; None: it is the number alone."""
        deviation: Any = number.deviation
        if isinstance(question, BoundMarginal):
            deviation = np.where(question.cells >= 0, number.deviation, 0.0)
        if error is not None:
            both = np.hypot(error, deviation)
            deviation = np.divide(error * deviation, both, out=np.zeros_like(both), where=both > 0.0)
        # one minus a count rests on n too
        return _plain(np.hypot(deviation, self.of_n if question.complement else 0.0))

    def again(self, question: Question, value: Any, known: Remembered) -> Any:
        """Return the predicted error of a repeat: that of its first answer."""
        number = self.numbers.get(question.key)
        if number is not None:
            return self.measured(question, number, known.version)
        return self.told(question, value, known.version, known.radius)

    def many(self, queries: Queries, values: Floats, versions: Any, radii: Floats) -> Floats:
        """Return the errors of numbers of the hypothesis, (m,): NaN where none is known.

        Args:
            versions: Integers, shape (m,). How many purchases there were when each was told.
            radii: Shape (m,). As in `told`.
        """
        result = np.full(len(queries), np.nan)
        for version in np.unique(versions).tolist():
            if self.least <= version < len(self.predictors):
                places = np.flatnonzero(versions == version)
                result[places] = self.predictors[version].errors(queries.chosen(places))
        result[result >= 1.0] = np.nan
        result = tested(result, radii)
        result[np.isfinite(queries.constants)] = 0.0
        return np.asarray(np.hypot(result, self.of_n * values))

    def in_the_mean(self, question: Question, version: int) -> Any:
        """Return the error whichever values are asked, of a table one a cell; None if unknown.

        By it a number that is bought is mixed with what the hypothesis said: `Predictor.error_in_the_mean`.
        """
        if version >= len(self.predictors):
            return None
        predictor = self.predictors[version]
        return _of_question(question, predictor.error_in_the_mean, predictor.cells_in_the_mean)

    def wished(self, question: Question, value: Any, known: Remembered | None = None) -> Any:
        """Return the error that an expected wish looks at: in the mean, as what is bought for it does.

        Args:
            known: What was told of the question; None: what the hypothesis says now is looked at.
        """
        version = len(self.predictors) - 1 if known is None else known.version
        number = None if known is None else self.numbers.get(question.key)
        error = self.in_the_mean(question, version) if version >= self.least else None
        if number is not None:
            return self._beside(question, number, error if number.fitted else None)
        return None if error is None else _plain(np.hypot(error, self.of_n * value))

    def _predicted(self, question: Question, version: int) -> Any:
        if not self.least <= version < len(self.predictors):
            return None
        predictor = self.predictors[version]
        return _of_question(question, predictor.error, predictor.cells)


def tested(error: Any, radius: Any) -> Any:
    """Return what is left of a predicted error where a test has found an answer off by at most a radius.

    Of all densities there that have one peak, in the middle, the flat one has the largest mean square.
    """
    return np.minimum(error, radius / math.sqrt(3.0))


def _of_question(
    question: Question, error: Callable[[Question], float], cells: Callable[[Partition], Floats | None]
) -> Any:
    """Return the predicted error of a question, or of each cell of a table; None if it is unknown."""
    if isinstance(question, BoundMarginal):
        found = cells(question.partition)
        return None if found is None else question.table(found.ravel())
    alone = error(question)
    return alone if alone < 1.0 else None


def _plain(error: Any) -> Any:
    return error if np.ndim(error) else float(error)
