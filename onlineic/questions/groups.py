"""One number for every combination of the labels of some attributes: counts, means and sums by group."""

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
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
from onlineic.domain.attributes import Categorical, Label
from onlineic.domain.domain import Domain
from onlineic.errors import (
    InvalidParameterError,
    InvalidQueryError,
    check_choice,
    checked_integer,
    shown,
)
from onlineic.queries.answers import LONGEST_QUERY, Answer, MadeOfAnswers, made_of
from onlineic.queries.combined import Combined
from onlineic.queries.expressions import Expression
from onlineic.queries.groupings import Grouping
from onlineic.queries.marginals import Key
from onlineic.questions.formulas import Leaf, Number
from onlineic.questions.keys import GroupKeys
from onlineic.questions.linear import (
    LONGEST_TITLE,
    AnsweringLinear,
    Found,
    Where,
    asked_together,
    check_answering,
    checked_condition,
    counted,
    event_of,
    known_error,
    narrowing,
)
from onlineic.questions.means import Aggregate, Asks, Derived, Made, Numbers, leaf_of, worked_out
from onlineic.questions.ranks import Top
from onlineic.slips import nearest, public

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGGREGATES = ("count", "mean", "sum", "variance")
SHOWN = 12  # groups that a repr shows
MANY_SMALL = 10  # groups that may be empty, from which their sum is worth a word
ROUNDED_UP = "{:,} may be empty, and none is below 0: add them up by unbiased=True"


@public
@final
@attrs.frozen(eq=False)
class Groups(MadeOfAnswers, Combined, Framed):
    """One number for every combination of labels, empty ones and those of missing values among them.

    Attributes:
        keys: The attributes, in the order of the axes.
        labels: Of each attribute; None is the missing value.
        values: Number of records, or mean or sum of an attribute. NaN of a mean of which nothing can be said.
        error_bounds: Half-widths around the values that hold all of them at once, with probability
            `confidence`; inf where there is none, as over `few_records`.
        bias: Largest of all groups, as of `Derived`.
        confidence: As of `Derived`.
        answers: Of counts one, a cross table, unless their condition or the session needs one each.
        ordered: Of every key, whether its labels have an order.
        expected_errors: Of every number, as of `Derived`; NaN where it is unknown.
        few_records: As of `Derived`.
        standard_errors: With `unbiased`: of every estimate, NaN where none is known and the answer stands in
            its place.
        counts, count_bounds: Of a share the records of each group, with their half-widths.
        parts, part_bounds: Of a share those of them that meet its condition.
        number: What arithmetic goes on with, one row a group.
        over_time: Whether it is a series, which is drawn as a line.
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
    counts: Floats | None = None
    count_bounds: Floats | None = None
    parts: Floats | None = None
    part_bounds: Floats | None = None
    number: Number | None = None
    over_time: bool = False

    def top(self, k: int = 10) -> Top:
        """Return the largest numbers in order, and from which rank on noise may have decided it.

        Args:
            k: How many.

        Raises:
            InvalidParameterError: If it is no whole number from 1.
        """
        k = checked_integer("k", k, at_least=1)
        return Top.of(
            self.name,
            self.keys,
            [*itertools.product(*self.labels)],
            *(one.ravel() for one in (self.values, self.error_bounds, self.expected_errors)),
            k=k,
            confidence=self.confidence,
            answers=self.answers,
        )

    def __getitem__(self, group: Any) -> Derived:
        """Return the number of one group: groups["F"], or of several keys groups["F", 2024].

        Raises:
            InvalidQueryError: If there is no such group.
        """
        labels = group if isinstance(group, tuple) and len(self.keys) > 1 else (group,)
        if len(labels) != len(self.keys):
            raise InvalidQueryError(
                f"a group must be named by a label of each of {', '.join(self.keys)}, got {shown(group)}; "
                "write them in that order."
            )
        at = tuple(
            _place(key, known, label)
            for key, known, label in zip(self.keys, self.labels, labels, strict=True)
        )
        place = int(np.ravel_multi_index(at, self.values.shape))
        said = ", ".join(f"{key}={label}" for key, label in zip(self.keys, labels, strict=True))
        name = f"{self.name.partition(' by ')[0]} of {said}"
        beside = {
            "part": self.parts,
            "part_bound": self.part_bounds,
            "count": self.counts,
            "count_bound": self.count_bounds,
        }
        found: dict[str, Any] = {
            one: float(held.flat[place]) for one, held in beside.items() if held is not None
        }
        return attrs.evolve(Derived.of_number(name, self.as_number().row(place)), **found)

    def as_number(self) -> Number:
        """Return what arithmetic goes on with."""
        if self.number is not None:
            return self.number
        values, bounds = self.values.ravel(), self.error_bounds.ravel()
        expected = self.expected_errors.ravel()
        return Number.of(
            Leaf.stated(
                values, bounds, self.confidence, expected, self.bias, self.few_records.ravel(), self.answers
            )
        )

    def with_number(self, name: str, number: Number) -> "Groups":
        """Return what arithmetic made of each group, as it is told."""
        told, shape = number.stated().over(self.values.size), self.values.shape
        return Groups(
            name=f"{name} by {', '.join(self.keys)}",
            keys=self.keys,
            labels=self.labels,
            values=told.values.reshape(shape),
            error_bounds=told.bounds.reshape(shape),
            bias=float(told.bias.max(initial=0.0)),
            confidence=told.confidence,
            answers=told.answers,
            ordered=self.ordered,
            expected_errors=told.expected.reshape(shape),
            few_records=told.few.reshape(shape),
            number=number,
        )

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
        beside = {"part": self.parts, "part_bound": self.part_bounds}
        beside |= {"count": self.counts, "count_bound": self.count_bounds}
        for name, held in beside.items():
            if held is not None and self.parts is not None:
                names.append(free_name(name, self.keys))
                columns.append(held.ravel().tolist())
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

        Args:
            ax: None: of a new figure, `ax.figure`.
            kind: None: a map of two keys; of one, bars, or a line where it is ordered with more than 40
                labels.

        Raises:
            InvalidParameterError: If there are more than two keys, or the kind does not suit them.
        """
        if len(self.keys) > 2:
            raise InvalidParameterError(
                f"groups must be by one or two keys to be drawn, got {len(self.keys)}; group by fewer."
            )
        sizes = [len(labels) for labels in self.labels]
        if kind is None and self.over_time and len(sizes) == 1:
            kind = "line"
        kind = suited(kind, list(zip(sizes, self.ordered, strict=True)))
        axes = axes_for(ax)
        what = self.name.partition(" by ")[0]
        unit = self.of_what if what == "count" else what
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


def _place(key: str, known: tuple[Label, ...], label: Any) -> int:
    """Return the place of a label of a key."""
    for place, one in enumerate(known):
        if type(one) is type(label) and one == label:
            return place
    near = nearest(label, known)
    raise InvalidQueryError(
        f"{key} must have the group {shown(label)}, got none of that name; "
        f"{'see labels.' if near is None else f'did you mean {shown(near)}?'}"
    )


def _is_key(domain: Domain, name: str) -> bool:
    """Whether this names an attribute that is no condition by itself."""
    kind = domain.attribute(name) if name in domain.names else None
    return kind is not None and not (isinstance(kind, Categorical) and isinstance(kind.labels[0], bool))


def checked_where(domain: Domain, where: Where) -> Expression | None:
    """Return a condition; what stands in its place by mistake is refused by name."""
    if isinstance(where, str) and (where in AGGREGATES or _is_key(domain, where)):
        remedy = f"aggregate={shown(where)}" if where in AGGREGATES else f"group_by([.., {shown(where)}])"
        raise InvalidQueryError(f"where must be a condition, got {shown(where)}; write {remedy}.")
    return None if where is None else checked_condition(domain, where)


def group_by(
    session: AnsweringLinear,
    keys: Key | Iterable[Key],
    where: Where = None,
    aggregate: Aggregate = "count",
    of: str | None = None,
    *,
    unbiased: bool = False,
) -> Groups:
    """Return a number for every combination of the labels of some attributes.

    Counts are one question, the cross table of the attributes among the records that meet the condition,
    which costs what a single count does; where the condition is no conjunction, or the session answers no
    cross tables, they are one question each. Means and sums are two questions a group, variances three.
    Arguments and errors: `Answering.group_by`.

    Args:
        unbiased: Of counts: what the released tables say of each group by themselves, with its standard
            error. Such counts can be below 0. Those of the fit are never, so that small ones are too large in
            the mean, and their sum by that times their number. Errors of groups are not independent: for the
            standard error of a sum see `OnlineIC.unprojected`.
    """
    check_answering(session)
    check_choice("aggregate", aggregate, *AGGREGATES)
    where = checked_where(session.domain, where)
    groups = GroupKeys.of(session.domain, keys)
    by = f" by {', '.join(groups.names)}" + ("" if where is None else f", {shown(where, 100)}")
    if (of is None) != (aggregate == "count"):
        raise InvalidQueryError(
            "of must be the attribute of a mean, a sum or a variance, and nothing for counts, got "
            f"aggregate={shown(aggregate)} and of={shown(of)}; write aggregate='mean', of='age'."
        )
    if of is None:
        return _counts(session, groups, where, f"count{by}", unbiased)
    if unbiased:
        raise InvalidQueryError(
            "unbiased must be False of all but counts, got True; ask for counts, or leave it out."
        )
    Numbers.of(session.domain, of, where).check(where)
    known, unit = not session.n_bound, session.rounded_in
    each = [Numbers.of(session.domain, of, one, known, unit) for one in groups.conditions(where)]
    asks = [numbers.asks(aggregate) if numbers.held.any() else [] for numbers in each]
    return by_parts(session, groups, f"{aggregate}({of}){by}", aggregate, each, asks)


def by_parts(
    session: AnsweringLinear,
    groups: GroupKeys,
    name: str,
    aggregate: str,
    each: Sequence[Asks | None],
    asks: Sequence[Sequence[Expression]],
) -> Groups:
    """Return what is worked out of a few questions a group; of a group without questions, nothing."""
    found = asked_together(session, list(itertools.chain.from_iterable(asks)))
    ends = np.cumsum([0, *map(len, asks)]).tolist()
    parts = [slice(start, stop) for start, stop in pairwise(ends)]
    nothing = Made(0.0 if aggregate == "sum" else math.nan, 0.0, 0.0, 0.0, 0.0, 0.0, own=0.0, joint=0.0)
    made = [
        nothing
        if one is None or part.start == part.stop
        else worked_out(one, aggregate, session.n, found, part)
        for one, part in zip(each, parts, strict=True)
    ]
    return of_made(session.n, groups, name, found, made, parts)


def of_made(
    n: int, groups: GroupKeys, name: str, found: Found, made: Sequence[Made], parts: Sequence[slice]
) -> Groups:
    """Return numbers that were worked out for every group."""
    columns = {name: np.array([getattr(one, name) for one in made]) for name in Made._fields}
    shape = groups.shape
    return Groups(
        name=name,
        keys=groups.names,
        labels=groups.labels,
        values=columns["value"].reshape(shape),
        error_bounds=columns["bound"].reshape(shape),
        bias=float(columns["bias"].max(initial=0.0)),
        confidence=found.confidence,
        answers=found.answers,
        ordered=groups.ordered,
        expected_errors=columns["expected"].reshape(shape),
        few_records=columns["few"].reshape(shape),
        counts=n * columns["share"].reshape(shape),
        count_bounds=n * columns["share_bound"].reshape(shape),
        number=Number.of(leaf_of(name.partition("(")[0], made, found, parts)),
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


def _counts(
    session: AnsweringLinear, groups: GroupKeys, where: Expression | None, name: str, unbiased: bool
) -> Groups:
    """Return the number of records of every group."""
    found, table = tabled(session, groups, where)
    n, shares, bounds, errors = session.n, np.array(table), np.array(found.bounds), None
    expected = np.broadcast_to(np.asarray(found.errors, np.float64), shares.shape) * n
    number: Number | None = Number.of(count_leaf(n, found, shares))
    if unbiased:
        shares, bounds, errors = _unprojected(session, groups.conditions(where), shares, bounds)
        errors = errors * n
        expected, number = np.where(np.isnan(errors), expected, errors), None
        found = attrs.evolve(found, confidence=min(found.confidence, 1.0 - session.beta))
    return Groups(
        name=name,
        keys=groups.names,
        labels=groups.labels,
        values=shares * n,
        error_bounds=bounds * n,
        bias=0.0,
        confidence=found.confidence,
        answers=found.answers,
        ordered=groups.ordered,
        expected_errors=expected,
        few_records=np.zeros(shares.shape, np.bool_),
        standard_errors=errors,
        number=number,
    )


def count_leaf(n: int, found: Found, shares: Floats) -> Leaf:
    """Return numbers of records by group, as arithmetic goes on with them."""
    size, one = shares.size, len(found.answers) == 1
    expected = np.broadcast_to(np.asarray(found.errors, np.float64), shares.shape).ravel()
    return Leaf.of(
        ("count", n),
        found,
        n * shares.ravel(),
        {"own": n * np.ravel(found.own), "joint": n * np.ravel(found.joint)},
        n * expected,
        np.zeros(1),
        np.zeros(size, np.bool_),
        (slice(None),) if one else tuple(slice(place, place + 1) for place in range(size)),
    )


def tabled(
    session: AnsweringLinear, groups: GroupKeys, condition: Expression | None, *more: Grouping
) -> "tuple[Found, Floats]":
    """Return the shares of all groups, as one cross table where that can be asked; `more` are further keys.

    Raises:
        InvalidQueryError: If further keys are asked, and no cross table can have them.
    """
    condition = narrowing(session.domain, condition)
    question = groups.table(condition, *more) if groups.tabular else None
    bound = None
    if session.answers_tables and question is not None:
        with contextlib.suppress(InvalidQueryError):  # the condition is no conjunction, or met by nobody
            bound = question.bind(session.domain)
    if bound is None or question is None:  # one by one
        if more:
            raise InvalidQueryError("a cross table must be one that the session can answer, got another.")
        queries = list(groups.conditions(condition))
        found = asked_together(session, queries)
        table, bounds, errors = (
            np.array(one).reshape(groups.shape) for one in (found.values, found.bounds, found.errors)
        )
        return attrs.evolve(found, bounds=bounds, errors=errors), table
    answer = session.answer(question)
    counts = bound.cells >= 0
    bounds = np.where(counts, answer.error_bound, 0.0)
    joint = np.where(counts, session.joint_bounds([question], [answer]), 0.0)
    confidence = 1.0 - (session.beta if answer.error_bound > 0.0 else 0.0)
    told = Found((answer,), (), bounds, confidence, known_error(answer), bounds, joint, event_of(session))
    return told, answer.value
