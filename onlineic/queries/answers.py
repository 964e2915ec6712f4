"""One released answer: what was asked, the number or table, its bound, and how all of it is shown."""

import abc
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, final

import attrs
import numpy as np

from onlineic.display.figures import FigureKind, axes_for, draw_counts, draw_map, stamped, suited
from onlineic.display.frames import free_name, pandas_frame, polars_frame
from onlineic.display.html import bars, card, facts, note, span_bar, table
from onlineic.display.text import (
    GAP,
    MOST_COLUMNS,
    MOST_ROWS,
    aligned,
    around,
    cut_rows,
    percent,
    records,
    records_between,
    records_bound,
    shortened,
    upward,
    usually,
    usually_and_provably,
    within,
)
from onlineic.errors import (
    InvalidParameterError,
    checked_real,
    shown,
)
from onlineic.noise.laws import normal_quantile
from onlineic.queries.combined import Combined
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.query import Query
from onlineic.slips import public

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Status = Literal["easy", "hard", "repeat", "untested"]
Reason = Literal["covered", "test", "bought", "known", "within", "budget"]
Law = Literal["gaussian", "laplace"]
LONGEST_QUERY = 100  # letters of a query in a row or a title
MOST_CELLS = 2**12  # of a table that is drawn or written cell by cell
STATUS_SAID = {
    "easy": "from the hypothesis, tested",
    "hard": "measured",
    "repeat": "released before",
    "untested": "from the hypothesis, untested: the budget is used up",
}
REASON_SAID = {
    "covered": "what was released before covers it",
    "test": "its test found the hypothesis far from the truth",
    "bought": "tables were bought for it",
    "known": "it was told before, or is the same whatever the records are",
    "within": "what was released before is as exact as was wished",
    "budget": "what is left of the budget does not pay for the wish",
}
USUAL = {"easy": "covered", "hard": "test", "repeat": "known"}  # reasons that a status has mostly
ONE_NUMBER = "an Answer to a cross table must be read cell by cell, got it as one number; use answer.value."


class Stated(NamedTuple):
    """What is stated of an answer besides its value."""

    error_bound: float
    estimate: float | None = None
    standard_error: float | None = None
    law: Law | None = None


class AnswerContext(abc.ABC):
    """What answers rest on: public facts that were settled when they were given.

    An answer hands back what it was made with, `query` and `rest`.
    """

    __slots__ = ()

    @property
    @abc.abstractmethod
    def n(self) -> int | None:
        """Number of records."""

    @property
    def n_bound(self) -> int:
        """How far `n` may be from the number of records: 0 where that is public."""
        return 0

    @property
    def of_what(self) -> str:
        """What is counted."""
        return "records"

    @property
    def beta(self) -> float | None:
        """Failure probability of each bound; None where none is stated."""
        return None

    @property
    @abc.abstractmethod
    def private(self) -> bool:
        """False: simulated noise."""

    @property
    @abc.abstractmethod
    def left(self) -> int | None:
        """How many measured answers could still be paid then."""

    @abc.abstractmethod
    def asked(self, rest: Any) -> Query | BoundMarginal | None:
        """Return the question of an answer that does not hold its own."""

    @abc.abstractmethod
    def stated(self, query: Any, value: Any, rest: Any) -> Stated:
        """Return (error bound, estimate, standard error, law of its noise) of an answer."""

    @abc.abstractmethod
    def expected(self, query: Any, value: Any, rest: Any) -> Any:
        """Return the expected error of an answer, of a table one a cell; None where none is known."""


@final
@attrs.frozen(eq=False)
class _Known(AnswerContext):
    """Facts that were given: `rest` is what is stated."""

    n: int | None
    private: bool
    left: int | None
    n_bound: int = 0
    of_what: str = "records"
    error: Any = None
    beta: float | None = None

    def asked(self, rest: Stated) -> None:
        """Such answers hold their question."""

    def stated(self, query: Any, value: Any, rest: Stated) -> Stated:
        """Return what was given."""
        return rest

    def expected(self, query: Any, value: Any, rest: Stated) -> Any:
        """Return what was given."""
        return self.error


@final
@attrs.define(eq=False)  # filled in when it is looked at
class Bound:
    """The bound of one answer, worked out once from facts that were settled when the answer was given.

    Attributes:
        rest: What the context needs to know of this answer: `AnswerContext.stated` is handed it.
        question: None: the context may know it.
        said: None until it was looked at.
        error: The same, of (expected error,).
    """

    context: AnswerContext
    rest: Any
    question: Query | BoundMarginal | None = None
    said: Stated | None = None
    error: tuple[Any] | None = None

    def asked(self) -> Query | BoundMarginal | None:
        """Return the question."""
        if self.question is None:
            self.question = self.context.asked(self.rest)
        return self.question

    def of(self, value: Any) -> Stated:
        """Return what is stated of the answer of this value."""
        if self.said is None:
            self.said = self.context.stated(self.asked(), value, self.rest)
        return self.said

    def expected(self, value: Any) -> Any:
        """Return the expected error of the answer of this value."""
        if self.error is None:
            self.error = (self.context.expected(self.asked(), value, self.rest),)
        return self.error[0]


@public
@final
@attrs.frozen(init=False, eq=False, getstate_setstate=False)
class Answer(Combined):
    """One released answer.

    Read as one number, an answer is its fraction: `float(answer)`, `f"{answer:.3f}"` and `round(answer, 3)`,
    of a table cell by cell. Whatever would make a whole number of that fraction is refused, since a reader
    would take it for a count: `int`, `"%d"`, `f"{answer:.0f}"` and `round` without digits. Sums, differences
    and multiples of answers are numbers of records, quotients are ratios; all have bounds. Order is refused
    since the bound may leave it open.

    Attributes:
        value: Fraction of records; an array for a cross table. A hard answer is the measured number, not
            clipped. If a table was released instead, it is the number of the hypothesis that was fitted to
            that table, as long as the two agree.
        count: n times value.
        status: Easy: from the hypothesis, after a test. Hard: measured. Repeat: released before. Untested:
            from the hypothesis without a test, because the budget is used up.
        error_bound: Half-width around `value` that holds the exact fraction (of a table: all of them) with
            probability 1 - beta, for this one answer, whether it turns out easy or hard (textbook mode: 3
            alpha, for all answers at once). An untested answer is bounded by the noise of the first tables,
            or has inf. No bound is wider than the distance to 0 or 1.
        expected_error: A number, of a table an array of its shape; or None. Root-mean-square error that is
            expected of `value`, fraction of records, by what had been released when it was told: of a
            measured number by its noise, of others as `interactions.Predictor` has it. Within 1.96 of it are
            about 95 of 100 errors. Nothing promises it. None where nothing is known: of the hypothesis of a
            certified or textbook session, before tables are bought, over so many attributes that their levels
            are not told apart, and of other engines than a session.
        reason: Why it is this number. "covered": earlier releases answer the question, and the test agreed.
            "bought": tables were bought for this question first. "test": the test fired, so it was measured.
            "known": a repeat tells the same number, or the question is constant. None: an untested answer, or
            one of an engine that measures every question.
        private: False: simulated noise was used, the answer is NOT PRIVATE.
        estimate, standard_error: Best linear unbiased estimate from the first tables and its standard error,
            fractions; None outside of `statistics().family`. Only for a query that was chosen before these
            tables were released: who has seen them can pick queries on which the estimate errs far more.
            `error_bound` holds even then.
        query: The question as it was bound to the domain. Equality of answers does not look at it.
        n: Number of records.
        left: How many measured answers could at least be paid after this one: `SessionStatistics.hard_left`
            at that time. None for an engine that measures every question.
        law: Of the noise of the first tables that `estimate` is a sum of.
        n_bound: How far `n` may be from the number of records, with the same probability: 0 where that is
            public. Where it is private, `value` is the count divided by the released n, and `error_bound`
            bounds the count, divided by n too; `fraction_bound` bounds the fraction of all records.
        of_what: What is counted: "records", or "persons", weighed.
        beta: Failure probability of `error_bound`; None of an engine that states none.
        cost: Part of the budget that this answer took: of its number, or the hit of its test, and of the
            tables that were bought for the wish of its call, which the new questions of that call share
            evenly. 0 of what is easy, known or told again. Tables without a wish serve all questions, and are
            no answer's. None where nobody tells.
    """

    value: Any
    status: Status
    _bound: Bound
    _count: Any  # where the number of records is unknown
    reason: Reason | None = None
    cost: float | None = None

    def __init__(
        self,
        value: Any,
        count: Any,
        status: Status,
        error_bound: float,
        private: bool = True,
        estimate: float | None = None,
        standard_error: float | None = None,
        query: Query | BoundMarginal | None = None,
        n: int | None = None,
        left: int | None = None,
        law: Law | None = None,
        n_bound: int = 0,
        of_what: str = "records",
        reason: Reason | None = None,
        expected_error: Any = None,
        beta: float | None = None,
        cost: float | None = None,
    ) -> None:
        said = Stated(error_bound, estimate, standard_error, law)
        context = _Known(n, private, left, n_bound, of_what, expected_error, beta)
        self.__attrs_init__(value, status, Bound(context, said, query), count, reason, cost)

    @classmethod
    def deferred(
        cls,
        value: Any,
        status: Status,
        context: AnswerContext,
        rest: Any,
        query: Query | BoundMarginal | None = None,
        reason: Reason | None = None,
        cost: float = 0.0,
    ) -> "Answer":
        """Return an answer of which all that its context knows is worked out when it is looked at.

        Args:
            context, rest: As in `Bound`.
            query: None: the context knows it.
        """
        answer = cls.__new__(cls)
        answer.__attrs_init__(value, status, Bound(context, rest, query), None, reason, cost)
        return answer

    def costing(self, more: float | None) -> "Answer":
        """Return the same answer, where so much more of the budget was spent on it."""
        if more is None or self.cost is None:
            return self
        cost = self.cost + checked_real("more", more, at_least=0.0)
        answer = type(self).__new__(type(self))
        answer.__attrs_init__(self.value, self.status, self._bound, self._count, self.reason, cost)
        return answer

    @property
    def stated(self) -> Stated:
        """Error bound, estimate, standard error and law: worked out now, from facts of when it was given."""
        return self._bound.of(self.value)

    @property
    def count(self) -> Any:
        """n times `value`."""
        n = self._bound.context.n
        return self._count if n is None else n * self.value

    @property
    def error_bound(self) -> float:
        """Half-width around `value` that holds the exact fraction."""
        return self.stated.error_bound

    @property
    def expected_error(self) -> Any:
        """Expected error of `value`, fraction of records: worked out now, from facts of when it was given."""
        return self._bound.expected(self.value)

    @property
    def count_expected_error(self) -> Any:
        """`expected_error` as a number of records; None where that or n is unknown."""
        error = self.expected_error
        return None if self.n is None or error is None else self.n * error

    @property
    def private(self) -> bool:
        """False: simulated noise was used."""
        return self._bound.context.private

    @property
    def estimate(self) -> float | None:
        """Best linear unbiased estimate from the first tables."""
        return self.stated.estimate

    @property
    def standard_error(self) -> float | None:
        """That of `estimate`."""
        return self.stated.standard_error

    @property
    def law(self) -> Law | None:
        """Of the noise that `estimate` is a sum of."""
        return self.stated.law

    @property
    def query(self) -> Query | BoundMarginal | None:
        """What was asked."""
        return self._bound.asked()

    @property
    def n(self) -> int | None:
        """Number of records."""
        return self._bound.context.n

    @property
    def left(self) -> int | None:
        """How many measured answers could at least be paid after this one."""
        return self._bound.context.left

    @property
    def n_bound(self) -> int:
        """How far `n` may be from the number of records: 0 where that is public."""
        return self._bound.context.n_bound

    @property
    def of_what(self) -> str:
        """What is counted: "records", or "persons", weighed."""
        return self._bound.context.of_what

    @property
    def beta(self) -> float | None:
        """Failure probability of `error_bound`."""
        return self._bound.context.beta

    @property
    def fraction_bound(self) -> float:
        """Half-width around `value` that holds the fraction of all records: with the error of n, if any.

        Of a count in n (v ± b) among n (1 ± s) records it is (b + v s)/(1 - s).
        """
        if not self.n or not self.n_bound:
            return self.error_bound
        share = self.n_bound / self.n
        if share >= 1.0:
            return math.inf
        return (self.error_bound + max(0.0, float(np.max(self.value))) * share) / (1.0 - share)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Answer):
            return NotImplemented
        facts = [(one.status, one.private, *one.stated[:3]) for one in (self, other)]
        return facts[0] == facts[1] and bool(
            np.array_equal(self.value, other.value) and np.array_equal(self.count, other.count)
        )

    def __hash__(self) -> int:
        return hash((self.status, self.private, self.stated[:3]))

    def __reduce__(self) -> tuple[Any, ...]:
        stated = (self.error_bound, self.private, self.estimate, self.standard_error)
        known = (self.query, self.n, self.left, self.law, self.n_bound, self.of_what, self.reason)
        rest = (self.expected_error, self.beta, self.cost)
        return Answer, (self.value, self.count, self.status, *stated, *known, *rest)

    @property
    def hard(self) -> bool:
        """Whether the answer was measured now."""
        return self.status == "hard"

    @property
    def labels(self) -> dict[str, tuple[Any, ...]]:
        """Of a cross table the labels along its axes, by attribute, None for the missing cell; else empty."""
        return self.query.labels if isinstance(self.query, BoundMarginal) else {}

    @property
    def count_bound(self) -> float | None:
        """`error_bound` as a number of records; None where n is unknown."""
        return None if self.n is None else self.n * self.error_bound

    @property
    def bracket(self) -> tuple[Any, Any]:
        """(low, high): fractions of n that `error_bound` leaves; arrays of a cross table.

        Inside [0, 1], but where more records may be there than n.
        """
        most = 1.0 + self.n_bound / self.n if self.n else 1.0
        low, high = self.value - self.error_bound, self.value + self.error_bound
        if isinstance(self.value, np.ndarray):
            return np.clip(low, 0, most), np.clip(high, 0, most)
        return float(min(max(low, 0.0), most)), float(min(max(high, 0.0), most))

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Return the interval around `estimate`, in fractions, cut at 0 and at the largest number of records.

        Without an estimate, as of a question that was bought by itself, it is `bracket`, as long as the bound
        holds with that confidence; of a cross table arrays, whose cells all lie inside at once.

        The confidence of one around an estimate is that of a query that was fixed before the first tables
        were released: of a query picked after a look at them, or of the worst of many, it says nothing.

        Gaussian noise is summed to a normal quantile. A sum of Laplace noises of the same variance is nearer
        to normal the more of them there are, so its quantile is at most the larger of the normal one and that
        of a single Laplace noise, z and ln(1/(1 - confidence))/sqrt(2) standard errors (between the two it
        exceeds both by less than one part in ten thousand, by numerical integration). Noise on whole records
        reaches at most half a record beyond.

        Raises:
            InvalidParameterError: If the confidence is not in (0, 1), or the answer has no estimate, and
                its bound does not hold with that confidence.
        """
        confidence = checked_real("confidence", confidence, above=0.0, below=1.0, remedy="write 0.95")
        if self.estimate is None or self.standard_error is None:
            sure = 0.0 if self.beta is None or not math.isfinite(self.error_bound) else 1.0 - self.beta
            if confidence <= sure:
                return self.bracket
            remedy = f"write {sure:g}" if sure else "use bracket"
            raise InvalidParameterError(
                f"confidence must be at most {sure:g}, with which the bound of an answer without an estimate "
                f"holds, got confidence={confidence:g}; {remedy}."
            )
        reach = self.standard_error * normal_quantile((1.0 - confidence) / 2.0)
        if self.law != "gaussian":
            single = self.standard_error * -math.log1p(-confidence) / math.sqrt(2.0)
            reach = max(reach, single) * (1.0 + 1e-4) + (0.5 / self.n if self.n else 0.0)
        most = 1.0 + self.n_bound / self.n if self.n else 1.0  # of a private number there may be more records
        estimate = min(most, max(0.0, self.estimate))
        return max(0.0, estimate - reach), min(most, estimate + reach)

    def to_dict(self) -> dict[str, Any]:
        """Return all that the answer says as plain values, which `json.dumps` takes.

        What is unknown is None: so is a bound that is infinite, for which JSON has no number. Of a cross
        table values, counts and brackets are nested lists along `labels`.
        """
        low, high = self.bracket
        query, n, said = self.query, self.n, self.stated
        bounded, error = math.isfinite(said.error_bound), self.expected_error
        errors = None if n is None or error is None else n * error
        return {
            "query": None if query is None else _said(query),
            "labels": {name: list(labels) for name, labels in self.labels.items()},
            "n": n,
            "value": _plain(self.value),
            "count": _plain(self.count),
            "status": self.status,
            "reason": self.reason,
            "error_bound": said.error_bound if bounded else None,
            "count_bound": None if n is None or not bounded else n * said.error_bound,
            "expected_error": None if error is None else _plain(error),
            "count_expected_error": None if errors is None else _plain(errors),
            "bracket": [_plain(low), _plain(high)],
            "estimate": said.estimate,
            "standard_error": said.standard_error,
            "left": self.left,
            "cost": self.cost,
            "private": self.private,
            **({"n_bound": self.n_bound, "fraction_bound": self.fraction_bound} if self.n_bound else {}),
            **({"of_what": self.of_what} if self.of_what != "records" else {}),
        }

    def columns(self) -> dict[str, list[Any]]:
        """Return one row a cell: labels, value, count, low, high, error_bound, expected_error, and more.

        These are status, reason and private.
        A number is one row, with its query for a label. A column that is called like an attribute gets an
        underscore after its name.
        """
        table = isinstance(self.value, np.ndarray)
        if table and self.labels:
            held: dict[str, list[Any]] = {name: [] for name in self.labels}
            shape = [len(labels) for labels in self.labels.values()]
            for cell in np.ndindex(*shape):
                for (name, labels), code in zip(self.labels.items(), cell, strict=True):
                    held[name].append(labels[code])
        else:
            held = {} if table else {"query": [None if self.query is None else _said(self.query)]}
        low, high = self.bracket
        measures = {"value": self.value, "count": self.count, "low": low, "high": high}
        rows = int(np.size(self.value))
        taken = set(held)
        for name, numbers in measures.items():
            held[free_name(name, taken)] = np.ravel(numbers).tolist()
        error = self.expected_error
        errors = np.ravel(error).tolist() if np.ndim(error) else [error] * rows
        held[free_name("error_bound", taken)] = [self.error_bound] * rows
        held[free_name("expected_error", taken)] = errors
        for name, one in (("status", self.status), ("reason", self.reason), ("private", self.private)):
            held[free_name(name, taken)] = [one] * rows
        return held

    def to_pandas(self) -> Any:
        """Return `columns` as a pandas DataFrame."""
        return pandas_frame(self.columns())

    def to_polars(self) -> Any:
        """Return `columns` as a polars DataFrame."""
        return polars_frame(self.columns())

    def plot(self, ax: "Axes | None" = None, kind: FigureKind | None = None) -> "Axes":
        """Draw a cross table over one or two attributes, in records or persons.

        Whiskers and bands are `error_bound`: all cells lie inside together, with probability 1 - beta.

        Args:
            ax: None: of a new figure, `ax.figure`.
            kind: None: a map of two attributes; of one, bars, or a line where it is ordered with more than
                40.

        Raises:
            InvalidParameterError: If the answer is no such table, or the kind does not suit it.
        """
        question = self.query
        if not isinstance(question, BoundMarginal) or len(question.names) > 2:
            raise InvalidParameterError(
                "answer must be a cross table over one or two attributes to be drawn, got another; ask "
                'marginal("a") or marginal("a", "b").'
            )
        sizes = [*map(len, self.labels.values())]
        kind = suited(kind, list(zip(sizes, question.ordered, strict=True)))
        axes = axes_for(ax)
        if kind == "map":
            draw_map(axes, self.labels, self.count)
        else:
            name, labels = next(iter(self.labels.items()))
            low, high = self.bracket
            bounds = (self.n or 1) * np.array([low, high]) if math.isfinite(self.error_bound) else None
            draw_counts(axes, name, labels, self.count, bounds, line=kind == "line")
            axes.set_ylabel(self.of_what if self.n is not None else "count")
        bounded = self.n is not None and math.isfinite(self.error_bound)
        said = f"each ± {records_bound(self.count_bound or 0.0)} {self.of_what}" if bounded else "no bound"
        title = stamped(f"Released answer ({self.status}), {said}", self.private)
        axes.set_title(title, loc="left", fontsize=11)
        return axes

    def __float__(self) -> float:
        if isinstance(self.value, np.ndarray):
            raise TypeError(ONE_NUMBER)
        return float(self.value)

    def _refuse_whole(self) -> NoReturn:
        # no TypeError: for "%d" Python would put a sentence of its own in its place
        raise InvalidParameterError(
            "an Answer is a fraction, and must keep digits after the point, got it as a whole number; write "
            "round(answer.count) for records, or round(answer, 3) for the fraction."
        )

    __int__ = __trunc__ = __floor__ = __ceil__ = _refuse_whole

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None:
            self._refuse_whole()
        return (
            np.round(self.value, digits) if isinstance(self.value, np.ndarray) else round(float(self), digits)
        )

    def __bool__(self) -> NoReturn:
        raise TypeError("an Answer has no truth value: compare answer.value instead.")

    def __format__(self, form: str) -> str:
        if not form:
            return str(self)
        try:
            if isinstance(self.value, np.ndarray):
                text = self._table(lambda at: format(float(self.value[at]), form))
            else:
                text = format(float(self), form)
        except ValueError:
            text = ""
        if not text or re.search(r"\.0[fF]$", form):
            raise InvalidParameterError(
                f"format must be one of a float, and keep digits after the point, got {shown(form)}; write "
                "f'{answer:.3f}' for the fraction, or f'{answer.count:.0f}' for records."
            )
        return text

    def __str__(self) -> str:
        if not isinstance(self.value, np.ndarray):
            return repr(self)
        if not self.labels:
            return f"{self!r}\n{self.value}"
        unit = self.of_what
        if self.n is not None:
            bounded = math.isfinite(self.error_bound)
            bound = f"each ± {records_bound(self.n * self.error_bound)}" if bounded else "no bound"
            unit = f"{self.of_what} of {_all(self)}, {bound}{self._usual}"
        stamp = "" if self.private else ", NOT PRIVATE"
        said = f"{' x '.join(map(shortened, self.labels))}: {unit}, {self._told}{stamp}"
        return f"{said}\n{self._table(lambda at: records(float(self.count[at])))}"

    def _table(self, cell: Any) -> str:
        """Return the cells as aligned text, the middle left out where there are many."""
        names = [*self.labels]
        axes = [[shortened(label) for label in labels] for labels in self.labels.values()]
        if len(names) == 2:
            down, gap = cut_rows(len(axes[0]), MOST_ROWS)
            across, hole = cut_rows(len(axes[1]), MOST_COLUMNS)
            head = [f"{shortened(names[0])} \\ {shortened(names[1])}", *(axes[1][at] for at in across)]
            rows = [[axes[0][row], *(cell((row, at)) for at in across)] for row in down]
            if hole is not None:
                for line in (head, *rows):
                    line.insert(1 + hole, GAP)
        else:
            places = [*np.ndindex(*self.value.shape)] if names else []
            down, gap = cut_rows(len(places), MOST_ROWS)
            head = [*map(shortened, names), ""]
            rows = [
                [*(axes[axis][code] for axis, code in enumerate(places[at])), cell(places[at])] for at in down
            ]
        if gap is not None:
            rows.insert(gap, [GAP] * len(head))
        return aligned(head, rows, left=1 if len(names) == 2 else len(names))

    @property
    def _told(self) -> str:
        """The status, and the reason where it is not the usual one."""
        usual = self.reason is None or self.reason == USUAL.get(self.status)
        return self.status if usual else f"{self.status}, {self.reason}"

    @property
    def usually(self) -> str:
        """What its error usually is within, of a table that of the worst cell, as text; "" where unknown.

        In records, or where n is unknown as a fraction.
        """
        return usually(*self._reaches)

    @property
    def usually_and_provably(self) -> str:
        """What its error usually is within, and provably, as a sentence; units as of `usually`."""
        return usually_and_provably(*self._reaches)

    @property
    def _reaches(self) -> tuple[float | None, float]:
        """Largest expected error and bound, in records, or fractions."""
        expected, unit = self.expected_error, self.n or 1
        return None if expected is None else unit * float(np.max(expected)), unit * self.error_bound

    @property
    def _usual(self) -> str:
        return f", {self.usually}" if self.usually else ""

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        if isinstance(self.value, np.ndarray):
            bound = f"± {upward(self.fraction_bound)}" if math.isfinite(self.error_bound) else "no bound"
            shape = " x ".join(map(str, self.value.shape))
            return f"Answer(table of {shape} cells {bound}{self._usual}, {self._told}{stamp})"
        value = around(self.value, self.fraction_bound)
        of_n = f" ± {records_bound(self.count_bound or 0.0)}" if self.n_bound else ""
        return f"Answer({value}, {self.count:.1f}{of_n} {self.of_what}{self._usual}, {self._told}{stamp})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show a table by its numbers where IPython has no HTML."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return _html(self)


def answer_head(of_what: str) -> list[str]:
    """Return the names of the columns of `answer_rows`."""
    return ["query", of_what, "bound", "status"]


def answer_rows(answers: Sequence[Answer]) -> list[list[str]]:
    """Return query, records, bound with the usual error, and status of answers, as text."""
    rows = []
    for answer in answers:
        written = "" if answer.query is None else shortened(answer.query.written, LONGEST_QUERY)
        bounded = answer.n is not None and math.isfinite(answer.error_bound)
        bound = f"± {records_bound(answer.n * answer.error_bound)}" if bounded else "no bound"  # type: ignore[operator]
        size = getattr(answer.value, "size", None)
        count = records(float(answer.count)) if size is None else f"table of {size:,} cells"
        bound += f", {answer.usually}" if answer.usually else ""
        rows.append([written, count, bound, answer.status])
    return rows


def cost_of(answers: Sequence[Answer]) -> float | None:
    """Return the part of the budget that these answers took together; None where it is unknown of one."""
    costs = [answer.cost for answer in answers]
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if len(known) == len(costs) else None


def cost_said(cost: float) -> str:
    """Return a part of the budget in words."""
    return f"{percent(cost)} of the budget" if cost else "nothing"


class MadeOfAnswers:
    """A result that was worked out from released answers."""

    __slots__ = ()
    answers: tuple[Answer, ...]

    @property
    def private(self) -> bool:
        """False: simulated noise was used, the result is NOT PRIVATE."""
        return all(answer.private for answer in self.answers)

    @property
    def cost(self) -> float | None:
        """Part of the budget that its answers took, as of `Answer`."""
        return cost_of(self.answers)

    @property
    def of_what(self) -> str:
        """What is counted: "records", or "persons", weighed."""
        return self.answers[0].of_what if self.answers else "records"


def made_of(answers: Sequence[Answer]) -> str:
    """Return how many answers something rests on, by status, and what they cost, as a note in HTML."""
    found = Counter(answer.status for answer in answers)
    many = f"{len(answers):,} answer{'s' * (len(answers) != 1)}"
    cost = cost_of(answers)
    said = f"; cost: {cost_said(cost)}" if cost else ""
    return note(
        f"made of {many}: {', '.join(f'{count:,} {status}' for status, count in found.items())}{said}"
    )


def _html(answer: Answer) -> str:
    """Return an answer as a block of HTML."""
    if isinstance(answer.value, np.ndarray):
        return _table_html(answer)
    low, high = answer.bracket
    fraction, reach = within(answer.value, answer.fraction_bound)
    bound = "none" if math.isinf(answer.error_bound) else f"± {reach}"
    if answer.n is not None and math.isfinite(answer.error_bound):
        bound += f" (± {records_bound(answer.n * answer.error_bound)} {answer.of_what})"
    pairs = [
        ("fraction", fraction),
        ("bound", bound),
        ("error", answer.usually_and_provably),
        *_html_facts(answer),
    ]
    if answer.n is not None:
        between = f"{records_between(answer.n * low, answer.n * high)} of {_all(answer)} {answer.of_what}"
        pairs.insert(3, ("interval", between))
    return card(
        f"{records(float(answer.count))} {answer.of_what}",
        span_bar(low, float(answer.value), high, f"fraction of {answer.of_what}"),
        facts(pairs),
        private=answer.private,
    )


def _table_html(answer: Answer) -> str:
    labels = answer.labels
    bound = "no bound"
    if math.isfinite(answer.error_bound):
        bound = f"each cell ± {upward(answer.fraction_bound)}"
        if answer.n is not None:
            bound = f"each cell ± {records_bound(answer.n * answer.error_bound)} {answer.of_what}"
    what = answer.of_what
    title = f"{what.title()} by {' and '.join(map(shortened, labels))}" if labels else f"A table of {what}"
    parts = []
    if answer.count.size > MOST_CELLS or not labels:
        parts.append(note(f"{answer.count.size:,} cells: see answer.value"))
    elif len(labels) == 1:
        (name, axis), (low, high) = *labels.items(), answer.bracket
        n = answer.n or 1
        whiskers = (n * low, n * high) if math.isfinite(answer.error_bound) else (None, None)
        parts.append(bars(axis, answer.count, *whiskers, title=f"{what} by {name}"))
        if len(axis) <= 2 * len(STATUS_SAID):
            head = [name, *axis]
            parts.append(table(head, [[what, *(records(float(one)) for one in answer.count)]]))
    elif len(labels) == 2:
        (first, down), (second, across) = labels.items()
        rows = [[label, *map(_cell, row)] for label, row in zip(down, answer.count, strict=True)]
        parts.append(table([f"{first} \\ {second}", *map(shortened, across)], rows))
    else:
        places = [*np.ndindex(*answer.count.shape)]
        axes = [*labels.values()]
        rows = [
            [*(axis[code] for axis, code in zip(axes, place, strict=True)), _cell(answer.count[place])]
            for place in places
        ]
        parts.append(table([*labels, what], rows, left=len(labels), names=len(labels)))
    said = [("bound", bound), ("error", f"each {answer.usually_and_provably}"), *_html_facts(answer)]
    return card(title, *parts, facts(said), private=answer.private)


def _all(answer: Answer) -> str:
    """Return n as text, with how far it may be off."""
    return f"{answer.n:,} ± {answer.n_bound:,}" if answer.n_bound else f"{answer.n:,}"


def _cell(count: Any) -> str:
    return records(float(count))


def _html_facts(answer: Answer) -> list[tuple[str, str]]:
    pairs = [("status", f"{answer.status}: {STATUS_SAID[answer.status]}")]
    if answer.reason is not None:
        pairs.append(("reason", f"{answer.reason}: {REASON_SAID[answer.reason]}"))
    if answer.query is not None:
        pairs.insert(0, ("query", shortened(answer.query.written, 300)))
    if answer.cost is not None:
        pairs.append(("cost", cost_said(answer.cost)))
    if answer.left is not None:
        pairs.append(("measured answers left then", f"at least {answer.left:,}"))
    return pairs


def _said(query: Query | BoundMarginal) -> str:
    """Return a question as it is written, cut to a length: weights can be many."""
    return shortened(query.written, 300)


def _plain(number: Any) -> Any:
    return number.tolist() if isinstance(number, np.ndarray) else float(number)
