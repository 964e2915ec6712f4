"""Questions that are made of linear ones: means, sums, quantiles, distribution functions and tables by group.

All are functions of a session's public face: they ask it linear queries, on its budget, and work on what it
releases. Their bounds follow from those of the answers, and say with which probability.
"""

import abc
import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.display.frames import Framed, free_name
from onlineic.display.text import around, probability, upward
from onlineic.domain.attributes import Attribute, Binned, IntegerRange, Label
from onlineic.domain.dates import Dates
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidQueryError, TooFewRecordsError, TooLargeError, check_choice, checked_real
from onlineic.queries.algebra import JOINT_CELLS
from onlineic.queries.answers import Answer
from onlineic.queries.ask import as_condition
from onlineic.queries.expressions import Expression, below, weights, where
from onlineic.queries.marginals import marginal
from onlineic.queries.query import Query

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Aggregate = Literal["count", "mean", "sum"]
Where = Expression | str | dict[str, Any] | None  # a text in SQL, a dict as of JSON

MOST_GROUPS = 10_000  # answers of one GROUP BY
MOST_LABELS = 4096  # answers of one distribution function
SHARE = "write 0.9 for the value that nine in ten do not exceed"
SHOWN = 12  # groups that a repr shows
FLOATS = 2.0**-46  # relative error of the few dozen float operations behind a derived number


class Answering(abc.ABC):
    """What answers linear queries, and so questions that are made of them."""

    @property
    @abc.abstractmethod
    def domain(self) -> Domain:
        """The public domain."""

    @property
    @abc.abstractmethod
    def n(self) -> int:
        """The public number of records."""

    @property
    @abc.abstractmethod
    def beta(self) -> float:
        """Failure probability of every stated bound."""

    @property
    def answers_tables(self) -> bool:
        """Whether a cross table, `marginal(..)`, can be asked; if not, its cells one by one."""
        return True

    @abc.abstractmethod
    def answer(self, query: Any) -> Answer:
        """Answer one query."""

    @abc.abstractmethod
    def answer_many(self, queries: Any) -> Any:
        """Answer queries in order."""

    @abc.abstractmethod
    def joint_bounds(self, queries: Iterable[Any], answers: Iterable[Answer]) -> Floats:
        """Return bounds that hold for these answers all at once, with probability 1 - beta, or inf."""

    @final
    def mean(self, attribute: str, where: Where = None) -> "Derived":
        """Return the mean of an attribute among the records that meet a condition: `session.mean`."""
        return mean(self, attribute, where)

    @final
    def sum(self, attribute: str, where: Where = None) -> "Derived":
        """Return the sum of an attribute over the records that meet a condition: `session.total`."""
        return total(self, attribute, where)

    @final
    def quantile(self, attribute: str, q: float, where: Where = None) -> "Quantile":
        """Return where a share q of the records lies at or below: `session.quantile`."""
        return quantile(self, attribute, q, where)

    @final
    def median(self, attribute: str, where: Where = None) -> "Quantile":
        """Return the quantile of one half."""
        return quantile(self, attribute, 0.5, where)

    @final
    def cdf(self, attribute: str, where: Where = None) -> "Cdf":
        """Return the share of the records at or below every label of an ordered attribute: `session.cdf`."""
        return cdf(self, attribute, where)

    @final
    def histogram(self, attribute: str, where: Where = None) -> "Groups":
        """Return the count of records of every label: `group_by` of one attribute."""
        return group_by(self, attribute, where)

    @final
    def group_by(
        self,
        keys: str | Iterable[str],
        where: Where = None,
        aggregate: Aggregate = "count",
        of: str | None = None,
    ) -> "Groups":
        """Return a count, or a mean or sum of an attribute, by group: `session.group_by`."""
        return group_by(self, keys, where, aggregate, of)


@final
@attrs.frozen
class Derived:
    """One number that was worked out from a few released answers.

    Attributes
    ----------
    name : str
        What was asked, such as "mean(age)".
    value : float
        In the units of the attribute.
    error_bound : float
        Half-width around `value` that holds the exact number, at the attribute's values or midpoints, with
        probability `confidence`.
    confidence : float
        1 - beta: of one answer its own, of several that of all the session's answers at once. Where the
        session has none for these, 1 - m beta for m answers, each with a bound of its own.
    bias : float
        How far midpoints of bins may be from the values in them, in the units of `value`: beside
        `error_bound`, and with the same probability. 0 where the attribute's values are exact. Of a clipped
        attribute what lies beyond its ends counts as them: how far beyond is in neither bound.
    count, count_bound : float
        Records that it is about, those that meet the condition and have a value, with their own half-width.
    answers : tuple of Answer
        What it was made of.
    """

    name: str
    value: float
    error_bound: float
    confidence: float
    bias: float
    count: float
    count_bound: float
    answers: tuple[Answer, ...]

    @property
    def private(self) -> bool:
        """False: simulated noise was used, the number is NOT PRIVATE."""
        return all(answer.private for answer in self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Return all that it says as plain values, which `json.dumps` takes, but for its answers."""
        return attrs.asdict(self, filter=lambda field, _: field.name != "answers") | {"private": self.private}

    def __float__(self) -> float:
        return self.value

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else repr(self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a derived answer has no truth value: compare its value instead.")

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            "a derived answer must be combined as a plain number, got it in arithmetic or a comparison; "
            "compute with its value, and carry error_bound along."
        )

    __array_ufunc__ = None  # so that a numpy number leaves arithmetic to what refuses it
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        bias = f" and {upward(self.bias)} for midpoints" if self.bias else ""
        return (
            f"{self.name} = {around(self.value, self.error_bound)}{bias} "
            f"({probability(self.confidence)} sure), "
            f"{self.count:.1f} records, {_counted(self.answers)}{stamp}"
        )

    def _repr_html_(self) -> str:
        from onlineic.session.pictures import derived_html  # which stands above

        return derived_html(self)


def mean(session: Answering, attribute: str, where: Where = None) -> Derived:
    """Return the mean of an attribute among the records that meet a condition and have a value.

    Two linear queries are asked, or one for the mean of all records: with u = (v - lo)/(hi - lo) for the
    values lo .. hi that the condition allows, a = E[u] and b = E[1 - u], both over the records that count.
    The mean is lo + (hi - lo) a/(a + b).

    Parameters
    ----------
    session : Answering
    attribute : str
        A range of integers, or a number in bins, which stand for their midpoints.
    where : Expression or dict, optional

    Raises
    ------
    TooFewRecordsError
        If a + b is no more than twice its error: then the mean could be anything. The answers are paid, and
        stand in the exception.
    InvalidQueryError
        If the attribute has no numbers, or nobody can meet the condition.

    Notes
    -----
    With true a', b' and |a - a'|, |b - b'| <= e the ratio r' = a'/(a' + b') lies in [0, 1], and
    (a + b)(r - r') = (a - a')(1 - r') - (b - b') r', so that |r - r'| <= e/(a + b).
    """
    return _of_numbers(session, "mean", attribute, where)


def total(session: Answering, attribute: str, where: Where = None) -> Derived:
    """Return the sum of an attribute over the records that meet a condition and have a value.

    With u as in `mean` and f_1 the share of the records that count, it is n ((hi - lo) E[u] + lo f_1), off by
    at most n ((hi - lo) e_u + |lo| e_1). The second query is not needed for the sum over all records.

    Parameters
    ----------
    session : Answering
    attribute : str
    where : Expression or dict, optional

    Raises
    ------
    InvalidQueryError
        If the attribute has no numbers, or nobody can meet the condition.
    """
    return _of_numbers(session, "sum", attribute, where)


def _of_numbers(session: Answering, aggregate: Aggregate, attribute: str, where: Where) -> Derived:
    where = as_condition(where, session.domain)
    numbers = _Numbers.of(session.domain, attribute, where)
    numbers.check(where)
    found = _asked(session, numbers.asks(aggregate))
    name = aggregate + (f"({attribute})" if where is None else f"({attribute}, {where!r:.100})")
    value, bound, bias, share, share_bound = numbers.worked_out(
        aggregate, session.n, found.values, found.bounds
    )
    if math.isnan(value):
        raise _too_few(session.n, name, share, share_bound, found.answers)
    return Derived(
        name=name,
        value=value,
        error_bound=bound,
        confidence=found.confidence,
        bias=bias,
        count=session.n * share,
        count_bound=session.n * share_bound,
        answers=found.answers,
    )


@final
@attrs.frozen
class Quantile:
    """A quantile of an ordered attribute, by binary search.

    Attributes
    ----------
    name : str
    value : label
        Between neighbouring labels, the one where the released shares pass q.
    rank_error : float
        The exact share below `value` is at most q + rank_error, that up to and with it at least q -
        rank_error, in fractions of the records that count, with probability `confidence`.
    low, high : label
        The least and the largest label that the exact quantile can be, in the same event.
    confidence : float
        As of `Derived`.
    answers : tuple of Answer
        The share that counts, unless that is everybody, and the steps of the search.
    """

    name: str
    value: Label
    rank_error: float
    low: Label
    high: Label
    confidence: float
    answers: tuple[Answer, ...]

    @property
    def private(self) -> bool:
        """False: simulated noise was used, the label is NOT PRIVATE."""
        return all(answer.private for answer in self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Return what it says as plain numbers, labels and texts."""
        fields = attrs.asdict(self, recurse=False, filter=lambda field, _: field.name != "answers")
        return {**fields, "private": self.private}

    def __bool__(self) -> NoReturn:
        raise TypeError("a quantile has no truth value: compare its value instead.")

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        return (
            f"{self.name} = {self.value!r}, in {self.low!r} .. {self.high!r} "
            f"({probability(self.confidence)} sure), "
            f"rank ± {upward(self.rank_error)}, {_counted(self.answers)}{stamp}"
        )

    def _repr_html_(self) -> str:
        from onlineic.session.pictures import quantile_html  # which stands above

        return quantile_html(self)


def quantile(session: Answering, attribute: str, q: float, where: Where = None) -> Quantile:
    """Return where a share q of the records that meet a condition and have a value lies at or below.

    The exact quantile is the first label up to and with which there are at least q of them. It is searched
    among the cuts between labels: at most ceil(log2(labels)) answers, and one for the condition. The range
    of labels reaches from cut to cut of those that were asked, so it is wide where the last of them lie
    within their errors of q; all cuts, and so a narrower range, take `cdf(..).quantile(q)`.

    Parameters
    ----------
    session : Answering
    attribute : str
        Ordered.
    q : float, in (0, 1)
    where : Expression or dict, optional

    Raises
    ------
    TooFewRecordsError
        If the share that counts is no more than twice its error, or no more than that of a rank. Where
        everybody counts it is never raised: the range then is all that it can be.
    InvalidQueryError
        If the attribute has no order, or nobody can meet the condition.

    Notes
    -----
    The search ends between two cuts, of which the lower one was released below q f_1 and the upper one at or
    above it, or is an end: so the exact shares there miss q by no more than the errors of that cut and q
    times that of f_1. A label is excluded only by a cut whose release says so with both errors added.
    """
    q = checked_real("q", q, above=0.0, below=1.0, remedy=SHARE)
    where = as_condition(where, session.domain)
    cuts = _Cuts.of(session.domain, attribute, where)
    first, last = cuts.first, cuts.last  # codes between which the quantile lies, half-open
    queries = [] if cuts.everybody else [cuts.everyone()]
    answers = [session.answer(query) for query in queries]
    whole = float(answers[0]) if answers else 1.0
    at: list[int] = []
    while last - first > 1:
        at.append((first + last) // 2)
        queries.append(cuts.up_to(at[-1]))
        answers.append(session.answer(queries[-1]))
        if float(answers[-1]) < q * whole:
            first = at[-1]
        else:
            last = at[-1]
    found = _bounded(session, queries, answers)
    whole_bound = found.bounds[0] if not cuts.everybody else 0.0
    name = f"quantile({attribute}{'' if where is None else f', {where!r:.100}'}, {q:g})"
    if not whole > 2.0 * whole_bound:
        raise _too_few(session.n, name, whole, whole_bound, found.answers)
    slack = FLOATS
    errors = dict(zip(at, found.bounds[len(found.bounds) - len(at) :], strict=True))
    shares = dict(zip(at, found.values[len(found.values) - len(at) :], strict=True))
    missed = max(errors.get(first, 0.0), errors.get(last, 0.0)) + q * whole_bound + slack
    if missed >= whole - whole_bound and not cuts.everybody:
        raise _too_few(session.n, name, whole, missed, found.answers)
    above = [cut for cut in at if shares[cut] + errors[cut] + slack < q * (whole - whole_bound)]
    below = [cut for cut in at if shares[cut] - errors[cut] - slack >= q * (whole + whole_bound)]
    return Quantile(
        name=name,
        value=cuts.kind.label(first),
        rank_error=min(1.0, missed / (whole - whole_bound)),
        low=cuts.kind.label(max(above, default=cuts.first)),
        high=cuts.kind.label(min(below, default=cuts.last) - 1),
        confidence=found.confidence,
        answers=found.answers,
    )


@final
@attrs.frozen(eq=False)
class Cdf:
    """The distribution of an ordered attribute among the records that count.

    Attributes
    ----------
    name : str
    labels : tuple of labels
    values : (labels,) float64
        Share of those records at or below each label: rising, in [0, 1], 1 at the last.
    low, high : (labels,) float64
        Between them lie the exact shares, all at once with probability `confidence`; both rise.
    confidence : float
        As of `Derived`.
    count, count_bound : float
        Records that it is about.
    answers : tuple of Answer
    """

    name: str
    labels: tuple[Label, ...]
    values: Floats
    low: Floats
    high: Floats
    confidence: float
    count: float
    count_bound: float
    answers: tuple[Answer, ...]

    @property
    def private(self) -> bool:
        """False: simulated noise was used, the shares are NOT PRIVATE."""
        return all(answer.private for answer in self.answers)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns: label, value, and the ends of the band."""
        return {
            "label": list(self.labels),
            "value": self.values.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }

    def quantile(self, q: float) -> Quantile:
        """Return the first label at or below which there is a share q, and the labels that it can be.

        Parameters
        ----------
        q : float, in (0, 1)
        """
        q = checked_real("q", q, above=0.0, below=1.0, remedy=SHARE)
        first = int((self.values >= q).argmax())
        around = slice(max(0, first - 1), first + 1)
        off = np.maximum(self.values - self.low, self.high - self.values)[around]
        return Quantile(
            name=f"quantile({self.name[4:-1]}, {q:g})",
            value=self.labels[first],
            rank_error=float(off.max()),
            low=self.labels[int((self.high >= q).argmax())],
            high=self.labels[int((self.low >= q).argmax())],
            confidence=self.confidence,
            answers=self.answers,
        )

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        widest = float((self.high - self.low).max())
        return (
            f"{self.name}: {len(self.labels)} labels, band of at most {upward(widest)} "
            f"({probability(self.confidence)} sure), {_counted(self.answers)}{stamp}"
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the shares as steps, in the band that holds all of them, with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            None: of a new figure, `ax.figure`.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from onlineic.session.plots import plot_cdf  # which stands above

        return plot_cdf(self, ax)

    def _repr_html_(self) -> str:
        from onlineic.session.pictures import cdf_html  # which stands above

        return cdf_html(self)


def cdf(session: Answering, attribute: str, where: Where = None) -> Cdf:
    """Return the share of the records that count at or below every label: one answer a label, as one batch.

    Parameters
    ----------
    session : Answering
    attribute : str
        Ordered, of at most 4,096 labels.
    where : Expression or dict, optional

    Raises
    ------
    TooFewRecordsError, InvalidQueryError
        As `quantile`.
    TooLargeError
        If there are more labels.

    Notes
    -----
    The exact function rises: so the largest lower bound to the left is a lower bound, the least upper bound
    to the right an upper one. The released shares are made to rise by isotonic regression, and brought
    between the two.
    """
    where = as_condition(where, session.domain)
    cuts = _Cuts.of(session.domain, attribute, where)
    count = cuts.last - cuts.first
    if count > MOST_LABELS:
        raise TooLargeError(
            f"{attribute} must have at most {MOST_LABELS:,} labels for a distribution function, got "
            f"{count:,}; ask for a few quantiles, or a histogram of bins."
        )
    places = range(cuts.first + 1, cuts.last)
    queries = [cuts.up_to(cut) for cut in places]
    found = _asked(session, queries if cuts.everybody else [*queries, cuts.everyone()])
    values, bounds = np.array(found.values), np.array(found.bounds)
    whole, whole_bound = (1.0, 0.0) if cuts.everybody else (found.values[-1], found.bounds[-1])
    name = f"cdf({attribute}{'' if where is None else f', {where!r:.100}'})"
    if not whole > 2.0 * whole_bound:
        raise _too_few(session.n, name, whole, whole_bound, found.answers)
    shares, errors = values[: len(queries)], bounds[: len(queries)] + FLOATS
    low = np.append(np.maximum.accumulate(np.clip(shares - errors, 0.0, None)), 0.0) / (whole + whole_bound)
    high = np.append(np.minimum.accumulate((shares + errors)[::-1])[::-1], 0.0) / (whole - whole_bound)
    low[-1] = high[-1] = 1.0
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    rising = np.append(_rising(shares) / whole, 1.0)
    return Cdf(
        name=name,
        labels=tuple(cuts.kind.label(code) for code in range(cuts.first, cuts.last)),
        values=np.clip(rising, low, np.maximum(low, high)),
        low=low,
        high=high,
        confidence=found.confidence,
        count=session.n * whole,
        count_bound=session.n * whole_bound,
        answers=found.answers,
    )


@final
@attrs.frozen(eq=False)
class Groups(Framed):
    """One number for every combination of labels, empty ones and those of missing values among them.

    Attributes
    ----------
    name : str
    keys : tuple of str
        The attributes, in the order of the axes.
    labels : tuple of tuple of labels
        Of each attribute; None is the missing value.
    values : float64 array
        Number of records, or mean or sum of an attribute. NaN of a mean over too few records.
    error_bounds : float64 array
        Half-widths around the values that hold all of them at once, with probability `confidence`.
    bias : float
        Largest of all groups, as of `Derived`.
    confidence : float
        As of `Derived`.
    answers : tuple of Answer
        Of counts one, a cross table, unless their condition or the session needs one each.
    ordered : tuple of bool
        Of every key, whether its labels have an order.
    """

    name: str
    keys: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    values: Floats
    error_bounds: Floats
    bias: float
    confidence: float
    answers: tuple[Answer, ...]
    ordered: tuple[bool, ...]

    @property
    def private(self) -> bool:
        """False: simulated noise was used, the numbers are NOT PRIVATE."""
        return all(answer.private for answer in self.answers)

    def __len__(self) -> int:
        return self.values.size

    def __iter__(self) -> Iterator[tuple[tuple[Label, ...], float, float]]:
        """Go through (labels, value, error bound) of all groups, the last attribute fastest."""
        yield from zip(
            itertools.product(*self.labels),
            self.values.ravel().tolist(),
            self.error_bounds.ravel().tolist(),
            strict=True,
        )

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns: the labels of every attribute, value and error_bound, each under a free name."""
        rows = [(*labels, value, bound) for labels, value, bound in self]
        names = (*self.keys, free_name("value", self.keys), free_name("error_bound", self.keys))
        return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        lines = [f"{self.name} ({probability(self.confidence)} sure, {_counted(self.answers)}{stamp})"]
        for labels, value, bound in itertools.islice(self, SHOWN):
            lines.append(f"  {', '.join(map(str, labels))}: {around(value, bound)}")
        if len(self) > SHOWN:
            lines.append(f"  ... {len(self) - SHOWN:,} more")
        return "\n".join(lines)

    def plot(self, ax: "Axes | None" = None, kind: Literal["bars", "line", "map"] | None = None) -> "Axes":
        """Draw the numbers by one or two keys with intervals of `error_bounds`, with matplotlib.

        A mean over too few records is left out. By dates ``kind="line"`` is a time series with its band.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            None: of a new figure, `ax.figure`.
        kind : "bars", "line" or "map", optional
            None: a map of two keys; of one, bars, or a line where it is ordered with more than 40 labels.

        Raises
        ------
        InvalidParameterError
            If there are more than two keys, or the kind does not suit them.
        MissingExtraError
            If matplotlib is not installed.
        """
        from onlineic.session.plots import plot_groups  # which stands above

        return plot_groups(self, ax, kind)

    def _repr_html_(self) -> str:
        from onlineic.session.pictures import groups_html  # which stands above

        return groups_html(self)


def group_by(
    session: Answering,
    keys: str | Iterable[str],
    where: Where = None,
    aggregate: Aggregate = "count",
    of: str | None = None,
) -> Groups:
    """Return a number for every combination of the labels of some attributes.

    Counts are one question, the cross table of the attributes among the records that meet the condition,
    which costs what a single count does; where the condition is no conjunction, or the session answers no
    cross tables, they are one question each.
    Means and sums are two questions a group.

    Parameters
    ----------
    session : Answering
    keys : str or iterable of str
        Different attributes, with at most 10,000 groups.
    where : Expression or dict, optional
    aggregate : "count", "mean" or "sum"
    of : str
        The attribute of a mean or a sum.

    Raises
    ------
    InvalidQueryError
        If an attribute is unknown or named twice, or has no mean, or nobody can meet the condition.
    TooLargeError
        If there are more groups.
    """
    check_choice("aggregate", aggregate, "count", "mean", "sum")
    where = None if where is None else checked_condition(session.domain, where)
    names, labels = _grouped(session.domain, keys)
    shape = tuple(map(len, labels))
    ordered = tuple(session.domain.attribute(key).ordered for key in names)
    by = f" by {', '.join(names)}" + ("" if where is None else f", {where!r:.100}")
    if (of is None) != (aggregate == "count"):
        raise InvalidQueryError(
            "of must be the attribute of a mean or a sum, and nothing for counts, got "
            f"aggregate={aggregate!r} and of={of!r:.60}; write aggregate='mean', of='age'."
        )
    if of is None:
        found, table = _counts(session, names, labels, where)
        values, bounds = np.array(table) * session.n, np.array(found.bounds) * session.n
        return Groups(
            f"count{by}", names, labels, values, bounds, 0.0, found.confidence, found.answers, ordered
        )
    _Numbers.of(session.domain, of, where).check(where)
    groups = [_Numbers.of(session.domain, of, each) for each in _conditions(names, labels, where)]
    asks = [numbers.asks(aggregate) if numbers.held.any() else [] for numbers in groups]
    found = _asked(session, list(itertools.chain.from_iterable(asks)))
    values, bounds, bias, start = np.zeros(len(groups)), np.zeros(len(groups)), 0.0, 0
    for place, (numbers, asked) in enumerate(zip(groups, asks, strict=True)):
        part = slice(start, start := start + len(asked))
        if not asked:  # no record can be in it: a sum of 0, and no mean
            values[place] = 0.0 if aggregate == "sum" else math.nan
            continue
        values[place], bounds[place], off, *_ = numbers.worked_out(
            aggregate, session.n, found.values[part], found.bounds[part]
        )
        bias = max(bias, off)
    return Groups(
        name=f"{aggregate}({of}){by}",
        keys=names,
        labels=labels,
        values=values.reshape(shape),
        error_bounds=bounds.reshape(shape),
        bias=bias,
        confidence=found.confidence,
        answers=found.answers,
        ordered=ordered,
    )


def _grouped(
    domain: Domain, keys: str | Iterable[str]
) -> tuple[tuple[str, ...], tuple[tuple[Label, ...], ...]]:
    """Return the attributes of a GROUP BY, and their labels."""
    if not isinstance(keys, Iterable):
        raise InvalidQueryError(
            f"keys must be an attribute or a list of them, got a {type(keys).__name__}; write ['sex', 'age']."
        )
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    sizes = [domain.shape[domain.axis(name)] for name in names]
    if not names or len(set(names)) < len(names):
        raise InvalidQueryError(
            f"keys must be one or more different attributes, got {list(names)!r:.100}; write ['sex', 'age']."
        )
    if math.prod(sizes) > MOST_GROUPS:
        raise TooLargeError(
            f"keys must have at most {MOST_GROUPS:,} groups, got {math.prod(sizes):,}; use fewer attributes, "
            "or ask for the groups of interest by conditions."
        )
    labels = tuple(
        tuple(domain.attribute(name).label(code) for code in range(size))
        for name, size in zip(names, sizes, strict=True)
    )
    return names, labels


def _conditions(
    names: tuple[str, ...], labels: tuple[tuple[Label, ...], ...], condition: Expression | None
) -> Iterator[Expression]:
    """Go through the conditions of all groups."""
    for group in itertools.product(*labels):
        inside = where(dict(zip(names, group, strict=True)))
        yield inside if condition is None else inside & condition


def _counts(
    session: Answering,
    names: tuple[str, ...],
    labels: tuple[tuple[Label, ...], ...],
    condition: Expression | None,
) -> "tuple[_Found, Floats]":
    """Return the shares of all groups, as one cross table where that can be asked."""
    condition = _narrowing(session.domain, condition)
    question = marginal(*names, where=condition)
    bound = None
    if session.answers_tables:
        with contextlib.suppress(InvalidQueryError):  # the condition is no conjunction, or met by nobody
            bound = question.bind(session.domain)
    if bound is None:  # one by one
        found = _asked(session, list(_conditions(names, labels, condition)))
        shape = tuple(map(len, labels))
        table = np.array(found.values).reshape(shape)
        return attrs.evolve(found, bounds=np.array(found.bounds).reshape(shape)), table
    answer = session.answer(question)
    bounds = np.where(bound.cells >= 0, answer.error_bound, 0.0)
    confidence = 1.0 - (session.beta if answer.error_bound > 0.0 else 0.0)
    return _Found((answer,), (), bounds, confidence), answer.value


@final
@attrs.frozen(eq=False)
class _Numbers:
    """An attribute as numbers, under a condition: which codes count, and their places between two ends.

    Attributes
    ----------
    held : (size,) bool
        Codes that have a value and may meet the condition.
    low, high : float
        Least and largest of their values.
    shares : (size,) float64
        (value - low)/(high - low), 0 where no code is held.
    bias : float
        Largest distance of a held code's value from those that it stands for.
    everybody : bool
        Whether all records count.
    """

    attribute: str
    condition: Expression | None
    held: Bools
    low: float
    high: float
    shares: Floats
    bias: float
    everybody: bool

    @classmethod
    def of(cls, domain: Domain, attribute: str, where: Where) -> "_Numbers":
        axis = domain.axis(attribute)
        kind = domain.attributes[axis]
        values, reach = _valued(attribute, kind)
        condition = _narrowing(domain, where)
        held = np.arange(kind.size) < len(values)
        held &= _allowed(domain, axis, condition)
        kept = held[: len(values)]
        if not np.isfinite(values[kept]).all():
            raise InvalidQueryError(
                f"{attribute} must have finite bins to have midpoints, got one without an end; leave it out "
                "by a condition such as below(..), or ask for a quantile."
            )
        low, high = float(values[kept].min(initial=math.inf)), float(values[kept].max(initial=-math.inf))
        shares = np.zeros(kind.size)
        if high > low:
            shares[: len(values)][kept] = np.clip((values[kept] - low) / (high - low), 0.0, 1.0)
        everybody = condition is None and bool(held.all())
        bias = float(reach[kept].max(initial=0.0))
        return cls(attribute, condition, held, low, high, shares, bias, everybody)

    def check(self, condition: Where) -> None:
        """Raise `InvalidQueryError` if nobody can count."""
        if not self.held.any():
            raise _nobody(self.attribute, condition)

    def asks(self, aggregate: str) -> list[Expression]:
        """Return the queries of a mean or a sum; of all records, one query says it."""
        if self.everybody:
            return [self.weighted(self.shares)]
        others = np.where(self.held, 1.0 - self.shares if aggregate == "mean" else 1.0, 0.0)
        return [self.weighted(self.shares), self.weighted(others)]

    def worked_out(
        self, aggregate: str, n: int, values: Sequence[float], bounds: Sequence[float]
    ) -> tuple[float, float, float, float, float]:
        """Return (value, bound, bias, share that counts, its bound) from what was asked; NaN of too few."""
        width, size = self.high - self.low, max(abs(self.low), abs(self.high))
        if aggregate == "sum":
            (part, share, *_), (error, off, *_) = (*values, 1.0), (*bounds, 0.0)
            value = n * (width * part + self.low * share)
            bound = n * sum(factor * by for factor, by in ((width, error), (abs(self.low), off)) if factor)
            bound += n * FLOATS * size
            return value, bound, self.bias * n * min(1.0, share + off), share, off
        share, off = (1.0, 0.0) if self.everybody else (sum(values), sum(bounds))
        if not self.everybody and not share > 2.0 * max(bounds):
            return math.nan, math.inf, 0.0, share, off
        value = min(max(self.low + width * values[0] / share, self.low), self.high)
        bound = min(width * max(bounds) / share if width else 0.0, max(value - self.low, self.high - value))
        return value, bound + FLOATS * size, self.bias, share, off

    def weighted(self, codes: Floats) -> Expression:
        """Return the query that weighs every code, among the records that meet the condition."""
        whole = bool((codes == 1.0).all())
        if self.condition is None:
            return where() if whole else where({self.attribute: weights(codes)})
        return self.condition if whole else where({self.attribute: weights(codes)}) & self.condition


def _valued(name: str, kind: Attribute) -> tuple[Floats, Floats]:
    """Return the number of every code but the missing one, and how far it may be from what it stands for."""
    if kind.size > JOINT_CELLS:
        raise TooLargeError(
            f"{name} must have at most {JOINT_CELLS:,} values for a mean or a sum, got {kind.size:,}; "
            "cut it into bins."
        )
    if isinstance(kind, IntegerRange):
        values = np.arange(kind.start, kind.stop).astype(np.float64)
        return values, np.zeros(len(values))
    if isinstance(kind, Binned):
        edges = np.asarray(kind.edges, np.float64)
        first, last = edges[:-1], edges[1:] - 1.0 if kind.integer else edges[1:]
        with np.errstate(invalid="ignore"):  # of two infinite ends
            return 0.5 * (first + last), 0.5 * (last - first)
    if isinstance(kind, Dates):
        raise InvalidQueryError(
            f"{name} must be a number for a mean or a sum, got dates; ask for a median, a quantile or "
            f"counts, or load a number such as the days since {kind.first} besides."
        )
    raise InvalidQueryError(
        f"{name} must be a number for a mean or a sum, got labels; ask for counts, or build the domain with "
        f"{name}=range(..) or binned(..)."
    )


@final
@attrs.frozen(eq=False)
class _Cuts:
    """An ordered attribute under a condition: the cuts between its labels.

    Attributes
    ----------
    first, last : int
        Half-open range of the codes that may count: behind the last are no records.
    everybody : bool
        Whether all records count.
    """

    attribute: str
    kind: Attribute
    condition: Expression | None
    first: int
    last: int
    everybody: bool

    @classmethod
    def of(cls, domain: Domain, attribute: str, where: Where) -> "_Cuts":
        axis = domain.axis(attribute)
        kind = domain.attributes[axis]
        if not kind.ordered:
            raise InvalidQueryError(
                f"{attribute} must be ordered for a quantile, got labels without order; ask for counts by "
                "group_by."
            )
        condition = _narrowing(domain, where)
        known = kind.size - kind.missing
        codes = np.flatnonzero(_allowed(domain, axis, condition)[:known])
        if not len(codes):
            raise _nobody(attribute, where)
        everybody = condition is None and not kind.missing
        return cls(attribute, kind, condition, int(codes[0]), int(codes[-1]) + 1, everybody)

    def up_to(self, cut: int) -> Expression:
        """Return the query that counts the codes below a cut."""
        below_it = _below(self.attribute, self.kind, cut)
        return below_it if self.condition is None else below_it & self.condition

    def everyone(self) -> Expression:
        """Return the query that counts all that have a value."""
        if not self.kind.missing:
            return where() if self.condition is None else self.condition
        return self.up_to(self.kind.size - 1)


def _below(attribute: str, kind: Attribute, cut: int) -> Expression:
    """Return the condition that a code lies below a cut."""
    if isinstance(kind, IntegerRange):
        return where({attribute: below(kind.start + cut)})
    if isinstance(kind, Binned):
        return where({attribute: below(kind.edges[cut])})
    return where({attribute: weights((np.arange(kind.size) < cut).astype(np.float64))})


def _rising(values: Floats) -> Floats:
    """Return the closest rising sequence: neighbours that fall are pooled."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size]
            sizes[-2:] = [size]
    return np.repeat(means, sizes).astype(np.float64)


def _narrowing(domain: Domain, condition: object) -> Expression | None:
    """Return a condition, None where everybody meets it: weights that were rounded to 1 may say less."""
    if condition is None:
        return None
    expression = checked_condition(domain, condition)
    query = expression.bind(domain)
    return None if query.constant == 1 << query.grid_bits and not query.rounding else expression


def _allowed(domain: Domain, axis: int, condition: Expression | None) -> Bools:
    """Return which codes of an axis may meet a condition."""
    return (where() if condition is None else condition).bind(domain).possible(axis)


def _nobody(attribute: str, condition: object) -> InvalidQueryError:
    return InvalidQueryError(
        f"{attribute} must have a value that the condition allows, got {condition!r:.100}, "
        "which nobody with a value can meet; widen it."
    )


def checked_condition(domain: Domain, condition: object) -> Expression:
    """Return a condition if it is one that may be combined with others; texts and dicts are read."""
    condition = as_condition(condition, domain)
    if type(condition) is Expression:
        return condition
    remedy = "hand over the expression that it was bound from" if isinstance(condition, Query) else ""
    raise InvalidQueryError(
        f"where must be a condition made by where(..), got a {type(condition).__name__}; "
        f"{remedy or 'write where(attribute=condition)'}."
    )


@final
@attrs.frozen(eq=False)
class _Found:
    """Answers to a few queries, as numbers with bounds that hold together."""

    answers: tuple[Answer, ...]
    values: Sequence[float]
    bounds: Any
    confidence: float


def _asked(session: Answering, queries: Sequence[Expression]) -> _Found:
    """Ask a few queries at once."""
    return _bounded(session, queries, session.answer_many(list(queries)))


def _bounded(session: Answering, queries: Sequence[Expression], answers: Sequence[Answer]) -> _Found:
    """Return answers with bounds of one stated probability.

    One bound holds with probability 1 - beta. Of several the ones of the session's own event are taken, in
    which all its answers hold at once: m of the others fail together with up to m beta. Which of the two is
    taken does not depend on how large they are: the smaller of two bounds fails more often than each.
    """
    if len(answers) > 1:
        jointly = session.joint_bounds(queries, answers)
        if (jointly > 0.0).sum() > 1 and np.isfinite(jointly).all():  # constants are exact
            return _found(answers, jointly, 1.0 - session.beta)
    bounds = np.array([answer.error_bound for answer in answers])
    return _found(answers, bounds, max(0.0, 1.0 - session.beta * int((bounds > 0.0).sum())))


def _found(answers: Sequence[Answer], bounds: Floats, confidence: float) -> _Found:
    return _Found(tuple(answers), [float(answer) for answer in answers], bounds.tolist(), confidence)


def _too_few(
    n: int, name: str, share: float, bound: float, answers: tuple[Answer, ...]
) -> TooFewRecordsError:
    if math.isfinite(bound):
        said = f"{around(n * share, n * bound)} of {n}: too few for this accuracy; widen the condition."
    else:
        said = "untested answers without a bound: the budget is used up; open a session with a larger one."
    error = TooFewRecordsError(f"{name} must be over more records than twice their error, got {said}")
    error.answers = answers
    return error


def _counted(answers: Sequence[Answer]) -> str:
    return f"{len(answers)} answer{'s' * (len(answers) != 1)}"
