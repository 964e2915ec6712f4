"""One released answer, and a memory of answers that hands them out again."""

import math
from typing import Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic.errors import InvalidParameterError, checked_real
from onlineic.noise.laws import normal_quantile
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.query import Query

__all__ = ["Answer", "AnswerMemory", "Status"]

Status = Literal["easy", "hard", "repeat", "untested"]


@final
@attrs.frozen
class Answer:
    """One released answer.

    Attributes
    ----------
    value : float
        Fraction of records; an array for a cross table. A hard answer is as measured, not clipped, or
        what the hypothesis says that was fitted to the released table, where it agrees with the table.
    count : float
        n times value.
    status : "easy", "hard", "repeat" or "untested"
        From the hypothesis after a test, measured, released before, or from the hypothesis without a
        test because the budget is used up.
    error_bound : float
        Half-width around `value` that holds the exact fraction (of a table: all of them) with probability
        1 - beta, for this one answer, whether it turns out easy or hard (textbook mode: 3 alpha, for all
        answers at once). Of an untested answer what the noise of the first tables leaves, or inf. A fraction
        lies in [0, 1]: no bound reaches beyond.
    private : bool
        False: simulated noise was used, the answer is NOT PRIVATE.
    estimate, standard_error : float or None
        Best linear unbiased estimate from the first tables and its standard error, fractions; None outside
        of `statistics().family`. Only for a query that was chosen before these tables were released: who has
        seen them can pick queries on which the estimate errs far more. `error_bound` holds even then.
    """

    value: Any = attrs.field(eq=attrs.cmp_using(eq=np.array_equal))
    count: Any = attrs.field(eq=attrs.cmp_using(eq=np.array_equal))
    status: Status
    error_bound: float
    private: bool = True
    estimate: float | None = None
    standard_error: float | None = None

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the normal interval around `estimate`, in fractions, cut at 0 and 1.

        Its confidence is that of a query that was fixed before the first tables were released, and is
        approximate: of a query picked after a look at them, or of the worst of many, it says nothing.

        Raises
        ------
        InvalidParameterError
            If the answer has no estimate, or the confidence is not in (0, 1).
        """
        confidence = checked_real("confidence", confidence, above=0.0, below=1.0)
        if self.estimate is None or self.standard_error is None:
            raise InvalidParameterError(
                "an interval must be asked of an answer with an estimate, got one without: its query is not "
                "in statistics().family; use error_bound."
            )
        reach = self.standard_error * normal_quantile((1.0 - confidence) / 2.0)
        return max(0.0, self.estimate - reach), min(1.0, self.estimate + reach)

    @property
    def hard(self) -> bool:
        """Whether the answer was measured now."""
        return self.status == "hard"

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> NoReturn:
        raise TypeError("an Answer has no truth value: compare answer.value instead.")

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        bound = f"± {self.error_bound:.3g}" if math.isfinite(self.error_bound) else "no bound"
        if isinstance(self.value, np.ndarray):
            shape = " x ".join(map(str, self.value.shape))
            return f"Answer(table of {shape} cells {bound}, {self.status}{stamp})"
        return f"Answer({self.value:.6g} {bound}, {self.count:.1f} records, {self.status}{stamp})"


@final
@attrs.frozen
class _Remembered:
    value: Any
    complement: bool
    error_bound: float
    rounding: float
    version: int


@final
class AnswerMemory:
    """Released answers by question; a query and its complement share one.

    Handing out again what was released is post-processing: free, and never less accurate than before.

    Parameters
    ----------
    lasting : bool
        Whether an answer is remembered under every later hypothesis (Dwork & Roth's OnlineIC asks again).
    """

    __slots__ = ("_answers", "_lasting")

    def __init__(self, *, lasting: bool) -> None:
        self._answers: dict[tuple[Any, ...], _Remembered] = {}
        self._lasting = lasting

    def remember(self, question: Query | BoundMarginal, answer: Answer, version: int) -> None:
        """Keep an answer given by the hypothesis of this version, or measured against it."""
        self._answers[question.key] = _Remembered(
            _copied(answer.value), question.complement, answer.error_bound, question.rounding, version
        )

    def recall(self, question: Query | BoundMarginal, version: int) -> tuple[Any, float] | None:
        """Return (value, error bound) of an earlier answer that still stands, or None."""
        known = self._answers.get(question.key)
        if known is None or not (self._lasting or known.version == version):
            return None
        # another query may have been rounded to the same one, from farther away
        bound = known.error_bound + max(0.0, question.rounding - known.rounding)
        return _copied(known.value) if known.complement == question.complement else 1.0 - known.value, bound


def _copied(value: Any) -> Any:
    """Return a number, or a copy of a table: a caller may write to his array."""
    return value.copy() if isinstance(value, np.ndarray) else value
