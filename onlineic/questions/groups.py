"""One number for every combination of the labels of some attributes: counts, means and sums by group."""

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.display.figures import FigureKind, axes_for, draw_counts, draw_map, plain, stamped, suited
from onlineic.display.frames import Framed, free_name
from onlineic.display.html import card, facts, note, table
from onlineic.display.text import (
    FEW,
    MOST_ROWS,
    TOO_FEW,
    around,
    cut_rows,
    of_bins,
    probability,
    shortened,
    sure,
    upward,
    usually,
    within,
)
from onlineic.domain.attributes import Binned, Categorical, Label
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    TooLargeError,
    check_choice,
    checked_list,
    shown,
)
from onlineic.queries.answers import LONGEST_QUERY, Answer, made_of
from onlineic.queries.expressions import Expression, where
from onlineic.queries.marginals import marginal
from onlineic.questions.linear import (
    LONGEST_TITLE,
    AnsweringLinear,
    Found,
    Where,
    asked_together,
    check_answering,
    checked_condition,
    counted,
    known_error,
    narrowing,
    of_what,
)
from onlineic.questions.means import Aggregate, Numbers
from onlineic.slips import public

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGGREGATES = ("count", "mean", "sum", "variance")
MOST_GROUPS = 10_000  # answers of one GROUP BY
SHOWN = 12  # groups that a repr shows
MANY_SMALL = 10  # groups that may be empty, from which their sum is worth a word
ROUNDED_UP = "{:,} may be empty, and none is below 0: add them up by unbiased=True"


@public
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
        Number of records, or mean or sum of an attribute. NaN of a mean of which nothing can be said.
    error_bounds : float64 array
        Half-widths around the values that hold all of them at once, with probability `confidence`; inf where
        there is none, as over `few_records`.
    bias : float
        Largest of all groups, as of `Derived`.
    confidence : float
        As of `Derived`.
    answers : tuple of Answer
        Of counts one, a cross table, unless their condition or the session needs one each.
    ordered : tuple of bool
        Of every key, whether its labels have an order.
    expected_errors : float64 array
        Of every number, as of `Derived`; NaN where it is unknown.
    few_records : bool array
        As of `Derived`.
    standard_errors : float64 array or None
        With `unbiased`: of every estimate, NaN where none is known and the answer stands in its place.
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
    expected_errors: Floats
    few_records: Bools
    standard_errors: Floats | None = None

    @property
    def rounded_up(self) -> int:
        """How many counts may be of nobody, where what is released is never below 0: their sum is too large.

        0 of other aggregates, of estimates without bias, and where they are few.
        """
        if self.standard_errors is not None or not self.name.startswith("count"):
            return 0
        near = (self.values > 0.0) & (self.values < self.error_bounds) & np.isfinite(self.error_bounds)
        many = int(near.sum())
        return many if many >= MANY_SMALL else 0

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
        """Return columns: the labels of every attribute, value, error_bound, expected_error.

        Each has a free name. Where values in bins may put the numbers off, `bias` is one more: of all groups
        the largest; `few_records` another where there are any.
        """
        names, measures = [*self.keys], (self.values, self.error_bounds, self.expected_errors)
        columns: list[list[Any]] = [
            [*column] for column in zip(*itertools.product(*self.labels), strict=True)
        ]
        for name, numbers in zip(("value", "error_bound", "expected_error"), measures, strict=True):
            names.append(free_name(name, self.keys))
            columns.append(numbers.ravel().tolist())
        if self.bias:
            names.append(free_name("bias", self.keys))
            columns.append([self.bias] * len(self))
        if self.few_records.any():
            names.append(free_name("few_records", self.keys))
            columns.append(self.few_records.ravel().tolist())
        return dict(zip(names, columns, strict=True))

    def _told(self) -> Iterator[tuple[tuple[Label, ...], float, float, float, bool]]:
        """Go through (labels, value, error bound, expected error, few records)."""
        more = zip(self.expected_errors.ravel().tolist(), self.few_records.ravel().tolist(), strict=True)
        for one, other in zip(self, more, strict=True):
            yield *one, *other

    def __repr__(self) -> str:
        stamp = "" if self.private else ", NOT PRIVATE"
        lines = [f"{self.name} ({sure(self.confidence)}, {counted(self.answers)}{stamp})"]
        for labels, value, bound, expected, few in itertools.islice(self._told(), SHOWN):
            said = around(value, bound, expected=expected) if math.isfinite(value) else TOO_FEW
            lines.append(f"  {', '.join(map(str, labels))}: {said}{f' ({FEW})' * few}")
        if len(self) > SHOWN:
            lines.append(f"  ... {len(self) - SHOWN:,} more")
        if self.rounded_up:
            lines.append(f"  {ROUNDED_UP.format(self.rounded_up)}")
        if self.bias:
            lines.append(f"  {' '.join(of_bins(self.bias))}")
        return "\n".join(lines)

    def plot(self, ax: "Axes | None" = None, kind: FigureKind | None = None) -> "Axes":
        """Draw the numbers by one or two keys with intervals of `error_bounds`, with matplotlib.

        A mean without a bound is left out. By dates ``kind="line"`` is a time series with its band.

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
        if len(self.keys) > 2:
            raise InvalidParameterError(
                f"groups must be by one or two keys to be drawn, got {len(self.keys)}; group by fewer."
            )
        sizes = [len(labels) for labels in self.labels]
        kind = suited(kind, list(zip(sizes, self.ordered, strict=True)))
        axes = axes_for(ax)
        what = self.name.partition(" by ")[0]
        unit = of_what(self.answers) if what == "count" else what
        known = np.isfinite(self.error_bounds) & np.isfinite(self.values)
        if kind == "map":
            draw_map(axes, dict(zip(self.keys, self.labels, strict=True)), self.values, unit)
            widest = self.error_bounds[known].max(initial=0.0)
            said = f"each at most ± {upward(widest)} ({sure(self.confidence)})" if known.any() else "no bound"
        else:
            bounds = np.where(known, self.error_bounds, np.nan)
            ends = np.stack([self.values - bounds, self.values + bounds]) if known.any() else None
            draw_counts(axes, self.keys[0], self.labels[0], self.values, ends, line=kind == "line")
            axes.set_ylabel(plain(unit))
            said = f"intervals {sure(self.confidence)}" if known.any() else "no bound"
        title = f"{plain(self.name, LONGEST_TITLE)}\n{said}"
        axes.set_title(stamped(title, self.private), loc="left", fontsize=11)
        return axes

    def _repr_html_(self) -> str:
        kept, gap = cut_rows(len(self), MOST_ROWS)
        held, wanted = [], {*kept}
        for place, (labels, value, bound, expected, few) in enumerate(self._told()):
            if place in wanted:
                text, reach = within(value, bound, separated=True)
                known = math.isfinite(value)
                reach = f"± {reach}" if math.isfinite(bound) else FEW if few else "no bound"
                held.append(
                    [*labels, text, usually(expected, bound), reach] if known else [*labels, TOO_FEW, "", ""]
                )
        head, keys, left_out = [*self.keys, "value", "error", "bound"], len(self.keys), len(self) - len(kept)
        parts = [table(head, held, left=keys, names=keys, gap=None if gap is None else (gap, left_out))]
        if gap is not None:
            parts.append(note(f"{left_out:,} of {len(self):,} are not shown: see to_dict()"))
        if self.rounded_up:
            parts.append(note(ROUNDED_UP.format(self.rounded_up)))
        said = [("bounds", f"hold all at once, with probability {probability(self.confidence)}")]
        if self.bias:
            said.append(of_bins(self.bias))
        title = shortened(self.name, LONGEST_QUERY)
        return card(title, *parts, facts(said), made_of(self.answers), private=self.private)


def _is_key(domain: Domain, name: str) -> bool:
    """Whether this names an attribute that is no condition by itself."""
    kind = domain.attribute(name) if name in domain.names else None
    return kind is not None and not (isinstance(kind, Categorical) and isinstance(kind.labels[0], bool))


def group_by(
    session: AnsweringLinear,
    keys: str | Iterable[str],
    where: Where = None,
    aggregate: Aggregate = "count",
    of: str | None = None,
    *,
    unbiased: bool = False,
) -> Groups:
    """Return a number for every combination of the labels of some attributes.

    Counts are one question, the cross table of the attributes among the records that meet the condition,
    which costs what a single count does; where the condition is no conjunction, or the session answers no
    cross tables, they are one question each.
    Means and sums are two questions a group, variances three.

    Parameters
    ----------
    session : Answering
    keys : str or iterable of str
        Different attributes, with at most 10,000 groups.
    where : Expression or dict, optional
    aggregate : "count", "mean", "sum" or "variance"
    of : str
        The attribute of all but a count.
    unbiased : bool
        Of counts: what the released tables say of each group by themselves, where they say something, with
        its standard error. Such counts can be below 0. Those of the fit are never, so that small ones are too
        large in the mean, and their sum by that times their number. Errors of groups are not independent: for
        the standard error of a sum see `OnlineIC.unprojected`.

    Raises
    ------
    InvalidQueryError
        If an attribute is unknown or named twice, or has no mean, or nobody can meet the condition.
    TooLargeError
        If there are more groups.
    """
    check_answering(session)
    check_choice("aggregate", aggregate, *AGGREGATES)
    if isinstance(where, str) and (where in AGGREGATES or _is_key(session.domain, where)):
        remedy = f"aggregate={shown(where)}" if where in AGGREGATES else f"group_by([.., {shown(where)}])"
        raise InvalidQueryError(f"where must be a condition, got {shown(where)}; write {remedy}.")
    where = None if where is None else checked_condition(session.domain, where)
    names, labels = _grouped(session.domain, keys)
    shape = tuple(map(len, labels))
    ordered = tuple(session.domain.attribute(key).ordered for key in names)
    by = f" by {', '.join(names)}" + ("" if where is None else f", {shown(where, 100)}")
    if (of is None) != (aggregate == "count"):
        raise InvalidQueryError(
            "of must be the attribute of a mean, a sum or a variance, and nothing for counts, got "
            f"aggregate={shown(aggregate)} and of={shown(of)}; write aggregate='mean', of='age'."
        )
    if of is None:
        found, table = _counts(session, names, labels, where)
        shares, bounds, errors = np.array(table), np.array(found.bounds), None
        expected = np.broadcast_to(np.asarray(found.errors, np.float64), shares.shape) * session.n
        if unbiased:
            cells = _conditions(names, labels, where)
            shares, bounds, errors = _unprojected(session, cells, shares, bounds)
            errors = errors * session.n
            expected = np.where(np.isnan(errors), expected, errors)
            found = attrs.evolve(found, confidence=min(found.confidence, 1.0 - session.beta))
        return Groups(
            name=f"count{by}",
            keys=names,
            labels=labels,
            values=shares * session.n,
            error_bounds=bounds * session.n,
            bias=0.0,
            confidence=found.confidence,
            answers=found.answers,
            ordered=ordered,
            expected_errors=expected,
            few_records=np.zeros(shape, np.bool_),
            standard_errors=errors,
        )
    if unbiased:
        raise InvalidQueryError(
            "unbiased must be False of all but counts, got True; ask for counts, or leave it out."
        )
    for name in names:  # a group is a condition, and values lie between the ends of a bin
        kind = session.domain.attribute(name)
        if isinstance(kind, Binned) and kind.ends:
            raise InvalidQueryError(
                f"keys must be no number between two ends in a {aggregate} by group, got {name}; ask for "
                "each bin by a condition, or load the attribute as binned(..)."
            )
    Numbers.of(session.domain, of, where).check(where)
    known, unit = not session.n_bound, session.rounded_in
    groups = [Numbers.of(session.domain, of, each, known, unit) for each in _conditions(names, labels, where)]
    asks = [numbers.asks(aggregate) if numbers.held.any() else [] for numbers in groups]
    found = asked_together(session, list(itertools.chain.from_iterable(asks)))
    values, bounds, expected = (np.zeros(len(groups)) for _ in range(3))
    few, bias, start = np.zeros(len(groups), np.bool_), 0.0, 0
    for place, (numbers, asked) in enumerate(zip(groups, asks, strict=True)):
        part = slice(start, start := start + len(asked))
        if not asked:  # no record can be in it: a sum of 0, and no mean
            values[place] = 0.0 if aggregate == "sum" else math.nan
            continue
        made = numbers.worked_out(
            aggregate, session.n, found.values[part], found.bounds[part], found.errors[part]
        )
        values[place], bounds[place], expected[place] = made.value, made.bound, made.expected
        few[place], bias = made.few, max(bias, made.bias)
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
        expected_errors=expected.reshape(shape),
        few_records=few.reshape(shape),
    )


def _unprojected(
    session: AnsweringLinear, cells: Iterable[Expression], shares: Floats, bounds: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return estimates, bounds and standard errors of groups; what was answered, NaN, where none is."""
    shares, bounds, errors = shares.copy(), bounds.copy(), np.full(shares.shape, np.nan)
    for place, known in zip(np.ndindex(*shares.shape), session.unprojected([*cells]), strict=True):
        if known is not None:
            shares[place], errors[place], bounds[place] = known
    return shares, bounds, errors


def _grouped(
    domain: Domain, keys: str | Iterable[str]
) -> tuple[tuple[str, ...], tuple[tuple[Label, ...], ...]]:
    """Return the attributes of a GROUP BY, and their labels."""
    if not isinstance(keys, Iterable):
        raise InvalidQueryError(
            f"keys must be an attribute or a list of them, got a {type(keys).__name__}; write ['sex', 'age']."
        )
    names = (keys,) if isinstance(keys, str) else tuple(checked_list("keys", keys))
    sizes = [domain.shape[domain.axis(name)] for name in names]
    if not names or len(set(names)) < len(names):
        raise InvalidQueryError(
            f"keys must be one or more different attributes, got {shown(list(names), 100)}; write "
            f"['sex', 'age']."
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
    session: AnsweringLinear,
    names: tuple[str, ...],
    labels: tuple[tuple[Label, ...], ...],
    condition: Expression | None,
) -> "tuple[Found, Floats]":
    """Return the shares of all groups, as one cross table where that can be asked."""
    condition = narrowing(session.domain, condition)
    question = marginal(*names, where=condition)
    bound = None
    if session.answers_tables:
        with contextlib.suppress(InvalidQueryError):  # the condition is no conjunction, or met by nobody
            bound = question.bind(session.domain)
    if bound is None:  # one by one
        found = asked_together(session, list(_conditions(names, labels, condition)))
        shape = tuple(map(len, labels))
        table, bounds, errors = (
            np.array(one).reshape(shape) for one in (found.values, found.bounds, found.errors)
        )
        return attrs.evolve(found, bounds=bounds, errors=errors), table
    answer = session.answer(question)
    bounds = np.where(bound.cells >= 0, answer.error_bound, 0.0)
    confidence = 1.0 - (session.beta if answer.error_bound > 0.0 else 0.0)
    return Found((answer,), (), bounds, confidence, known_error(answer)), answer.value
