"""What a session hands out: answers, a memory of them, and a snapshot of its public facts."""

import math
from typing import Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic.accounting import Budget
from onlineic.queries import Query

__all__ = ["Answer", "AnswerMemory", "SessionStatistics", "Status"]

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
        1 - beta, for this one answer (textbook mode: 3 alpha, for all answers at once); inf for an
        untested answer.
    private : bool
        False: simulated noise was used, the answer is NOT PRIVATE.
    """

    value: Any = attrs.field(eq=attrs.cmp_using(eq=np.array_equal))
    count: Any = attrs.field(eq=attrs.cmp_using(eq=np.array_equal))
    status: Status
    error_bound: float
    private: bool = True

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
class SessionStatistics:
    """A snapshot of a session: public facts only.

    Attributes
    ----------
    asked, easy, hard, repeat, untested : int
        Answers by status.
    hard_left : int
        Hard answers of the largest price that can still be paid; cheaper ones leave more.
    spent : float
        Share of the budget that is used up or reserved, in [0, 1].
    budget : Budget
    threshold : float
        Gap at which a query is hard, before noise; fraction of records.
    alpha : float
        Gap that an update relies on; in textbook mode the theorem's alpha.
    error_bound : float
        Bound on all tested answers at once with probability 1 - beta; inf once more than max_queries
        were asked.
    certified : bool
        Whether the hard answers cannot run out in that event.
    update_failures : int
    sealed : bool
    private : bool
        False: simulated noise, NOT PRIVATE.
    """

    asked: int
    easy: int
    hard: int
    repeat: int
    untested: int
    hard_left: int
    spent: float
    budget: Budget
    threshold: float
    alpha: float
    beta: float
    error_bound: float
    certified: bool
    update_failures: int
    sealed: bool
    private: bool


@final
@attrs.frozen
class _Remembered:
    value: float
    complement: bool
    error_bound: float
    rounding: float
    version: int


@final
class AnswerMemory:
    """Released answers by query; a query and its complement share one.

    Handing out again what was released is post-processing: free, and never less accurate than before.

    Parameters
    ----------
    lasting : bool
        Whether an answer is remembered under every later hypothesis (the book asks again).
    """

    __slots__ = ("_answers", "_lasting", "_tables")

    def __init__(self, *, lasting: bool) -> None:
        self._answers: dict[tuple[Any, ...], _Remembered] = {}
        self._tables: dict[tuple[Any, ...], tuple[Answer, int]] = {}
        self._lasting = lasting

    def remember(self, query: Query, answer: Answer, version: int) -> None:
        """Keep an answer given by the hypothesis of this version, or measured against it."""
        self._answers[query.key] = _Remembered(
            answer.value, query.complement, answer.error_bound, query.rounding, version
        )

    def remember_table(self, key: tuple[Any, ...], answer: Answer, version: int) -> None:
        """Keep the answer of a cross table: a copy, for the caller may write to his array."""
        self._tables[key] = attrs.evolve(answer, value=answer.value.copy()), version

    def recall_table(self, key: tuple[Any, ...], version: int) -> Answer | None:
        """Return the earlier answer of a cross table that still stands, or None."""
        answer, known = self._tables.get(key, (None, version))
        return answer if self._lasting or known == version else None

    def recall(self, query: Query, version: int) -> tuple[float, float] | None:
        """Return (value, error bound) of an earlier answer that still stands, or None."""
        known = self._answers.get(query.key)
        if known is None or not (self._lasting or known.version == version):
            return None
        # another query may have been rounded to the same one, from farther away
        bound = known.error_bound + max(0.0, query.rounding - known.rounding)
        return known.value if known.complement == query.complement else 1.0 - known.value, bound
