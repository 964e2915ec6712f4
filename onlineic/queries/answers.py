"""One released answer."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic.errors import InvalidParameterError, checked_real
from onlineic.noise.laws import normal_quantile

Status = Literal["easy", "hard", "repeat", "untested"]
DEFERRED = ("error_bound", "estimate", "standard_error")


@final
@attrs.frozen(getstate_setstate=False)
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
    _later: Callable[[], tuple[float, float | None, float | None]] | None = attrs.field(
        default=None, init=False, eq=False, repr=False
    )

    @classmethod
    def deferred(
        cls,
        value: Any,
        count: Any,
        status: Status,
        private: bool,
        later: Callable[[], tuple[float, float | None, float | None]],
    ) -> "Answer":
        """Return an answer whose bound, estimate and its error are worked out when one of them is looked at.

        Parameters
        ----------
        later : () -> (error_bound, estimate, standard_error)
            A function of what was public, and settled, when the answer was given.
        """
        answer = object.__new__(cls)
        set_slot = object.__setattr__
        set_slot(answer, "value", value)
        set_slot(answer, "count", count)
        set_slot(answer, "status", status)
        set_slot(answer, "private", private)
        set_slot(answer, "_later", later)
        return answer

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Fill in what was deferred, the first time that it is missed."""
            if name not in DEFERRED:
                raise AttributeError(f"an Answer has no attribute {name!r}.")
            stated = self._later()
            for slot, found in zip(DEFERRED, stated, strict=True):
                object.__setattr__(self, slot, found)
            object.__setattr__(self, "_later", None)  # and what it rests on need not be held any more
            return stated[DEFERRED.index(name)]

    def __reduce__(self) -> tuple[Any, ...]:
        stated = (self.error_bound, self.private, self.estimate, self.standard_error)
        return Answer, (self.value, self.count, self.status, *stated)

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
