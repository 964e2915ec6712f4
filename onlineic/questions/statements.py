"""Statements in SQL, asked of a session: what they list is answered one by one, on its budget."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.ask.formulas import Choice, Formula, IsNull, Joined, Known, OfKey, Part, Test
from onlineic.ask.sql import Aggregate, Statement
from onlineic.ask.sql_rows import Rows
from onlineic.ask.sql_values import DENIED
from onlineic.display.frames import Framed, free_name
from onlineic.display.html import card, facts, note, table
from onlineic.display.text import FEW, MOST_ROWS, TOO_FEW, around, of_bins, probability, shortened
from onlineic.domain.attributes import Categorical, Label
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidQueryError, TooFewRecordsError
from onlineic.queries.answers import Answer, MadeOfAnswers, made_of
from onlineic.queries.expressions import Expression, where
from onlineic.questions.covariances import covariance, covariances
from onlineic.questions.distributions import quantile_number, quantiles_by_group
from onlineic.questions.formulas import SIGNS, Held, Leaf, Number, compares, joined
from onlineic.questions.groups import count_leaf, group_by
from onlineic.questions.keys import GroupKeys
from onlineic.questions.linear import AnsweringLinear, Found, event_of, known_error, narrowing
from onlineic.questions.means import Aggregate as Named
from onlineic.questions.means import Derived, mean, total, variance
from onlineic.questions.ranks import ranks_decided, ranks_said, ranks_usual
from onlineic.questions.shares import rate_of, rates_by_group
from onlineic.slips import public

SHOWN = 20  # rows that a repr shows
NAMED: Mapping[str, Named] = {"sum": "sum", "average": "mean", "variance": "variance"}


@public
@final
@attrs.frozen(eq=False)
class AnswerTable(MadeOfAnswers, Framed):
    """What a statement with GROUP BY, or with several aggregates, was answered: one row a group.

    Attributes:
        keys: Columns of GROUP BY.
        labels: Of every row, one for each key; None is the missing value. All groups of the domain are there,
            empty ones too, but for those that HAVING, LIMIT or OFFSET left out.
        names: Of the aggregates: their alias, or their text.
        values: Shape (rows, aggregates). Numbers of records, sums and averages. NaN of an average of which
            nothing can be said.
        error_bounds: Shape (rows, aggregates). Half-widths around the values, in their units; of one
            aggregate they hold for all rows at once with its confidence. inf where there is none, as over few
            records.
        expected_errors: Shape (rows, aggregates). As of `Derived`; NaN where it is unknown.
        few_records: Shape (rows, aggregates). As of `Derived`.
        confidences: Of every aggregate.
        decided: Of the largest or smallest numbers in order, how many ranks are sure; None of another order.
        usually_decided: How many are, by 1.96 expected errors.
        biases: Of every aggregate, how far values in bins may put it off: beside `error_bounds`, as of
            `Derived`.
        answers: What it was made of.
        columns: In the order of SELECT: a name, and a place among the keys, or after them among the
            aggregates.
        groups: How many groups were asked: with HAVING or LIMIT more than there are rows.
        clauses: Those of HAVING, ORDER BY, LIMIT and OFFSET that went by noisy values: by the true ones, rows
            may stand in another order, or on the other side of a limit.
    """

    keys: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    names: tuple[str, ...]
    values: Floats
    error_bounds: Floats
    expected_errors: Floats
    few_records: Bools
    confidences: tuple[float, ...]
    biases: tuple[float, ...]
    answers: tuple[Answer, ...]
    columns: tuple[tuple[str, int], ...]
    groups: int
    clauses: tuple[str, ...] = ()
    decided: int | None = None
    usually_decided: int | None = None

    @property
    def ranked(self) -> str:
        """From which rank on noise decides, in words; nothing where the rows are in another order."""
        if self.decided is None or self.usually_decided is None or not len(self):
            return ""
        return ranks_said(self.decided, self.usually_decided, len(self))

    @property
    def chosen(self) -> str:
        """How rows were chosen, in words; nothing where all groups are there as in the domain."""
        count = f"{len(self):,} of {self.groups:,} groups" if len(self) < self.groups else ""
        by = f"{', '.join(self.clauses)} by noisy numbers" if self.clauses else ""
        said = ": ".join(part for part in (count, by) if part)
        return "; ".join(part for part in (said, self.ranked) if part)

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Go through the rows, each as a mapping of column to label or value."""
        for row in range(len(self)):
            yield {name: self._column(place)[row] for name, place in self.columns}

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of SELECT; after each aggregate "NAME error_bound" and "NAME expected_error".

        Where values in bins may put it off, "NAME bias" comes next; where it is over few records in some row,
        "NAME few_records". Where a column of SELECT is called so itself, the name gets underscores after it.
        """
        taken = {name for name, _ in self.columns}
        result: dict[str, list[Any]] = {}
        for name, place in self.columns:
            result[name] = self._column(place)
            if place >= len(self.keys):
                at = place - len(self.keys)
                told: dict[str, list[Any]] = {
                    "error_bound": self.error_bounds[:, at].tolist(),
                    "expected_error": self.expected_errors[:, at].tolist(),
                }
                if off := self.biases[at]:
                    told["bias"] = [off] * len(self)
                if self.few_records[:, at].any():
                    told["few_records"] = self.few_records[:, at].tolist()
                for what, column in told.items():
                    taken.add(free := free_name(f"{name} {what}", taken))
                    result[free] = column
        return result

    def _column(self, place: int) -> list[Any]:
        if place < len(self.keys):
            return [row[place] for row in self.labels]
        found: list[Any] = self.values[:, place - len(self.keys)].tolist()
        return found

    def __repr__(self) -> str:
        shown = self._shown(SHOWN)
        columns = [[name, *self._written(place, shown)] for name, place in self.columns]
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in zip(*columns, strict=True)
        ]
        if left_out := self._left_out(shown):
            lines.append(f"... {left_out}")
        told = [f"{name}: {' '.join(of_bins(bias))}" for name, bias in self._biased()]
        stamp = "".join(f"; {words}" for words in (*told, self.chosen) if words)
        stamp += "" if self.private else ", NOT PRIVATE"
        lines.append(f"({len(self.answers)} answer{'s' * (len(self.answers) != 1)}{stamp})")
        return "\n".join(lines)

    def _shown(self, most: int) -> list[int]:
        """Return the first rows; of many those that are not known to be empty."""
        places = [*range(len(self))]
        if len(self) > most:
            nothing = (self.error_bounds == 0.0) & ((self.values == 0.0) | np.isnan(self.values))
            places = np.flatnonzero(~nothing.all(axis=1)).tolist()
        return places[:most]

    def _biased(self) -> list[tuple[str, float]]:
        """Return the aggregates that bins put off, and how far."""
        return [(name, bias) for name, bias in zip(self.names, self.biases, strict=True) if bias]

    def _left_out(self, shown: Sequence[int]) -> str:
        """Return how many rows are not shown, in words."""
        return "" if len(shown) == len(self) else f"{len(self) - len(shown):,} more rows, see to_dict()"

    def _repr_html_(self) -> str:
        left = sum(place < len(self.keys) for _, place in self.columns)
        names = [name for name, _ in self.columns]
        shown = self._shown(MOST_ROWS)
        columns = [self._written(place, shown) for _, place in self.columns]
        parts = [table(names, [*zip(*columns, strict=True)], left=left, names=left)]
        parts += [note(words) for words in (self._left_out(shown), self.chosen) if words]
        said = [
            (shortened(name), f"bounds hold for all rows at once, with probability {probability(sure)}")
            for name, sure in zip(self.names, self.confidences, strict=True)
        ]
        said += [(shortened(name), " ".join(of_bins(bias))) for name, bias in self._biased()]
        title = f"{len(self):,} row{'s' * (len(self) != 1)}"
        return card(title, *parts, facts(said), made_of(self.answers), private=self.private)

    def _written(self, place: int, rows: Sequence[int]) -> list[str]:
        if place < len(self.keys):
            labels = [self.labels[row][place] for row in rows]
            return ["NULL" if label is None else str(label) for label in labels]
        parts = (self.values, self.error_bounds, self.expected_errors, self.few_records)
        found = (part[[*rows], place - len(self.keys)].tolist() for part in parts)
        return [
            ("NULL" if bound == 0.0 else TOO_FEW)
            if math.isnan(value)
            else f"{around(value, bound, separated=True, expected=expected)}{f' ({FEW})' * few}"
            for value, bound, expected, few in zip(*found, strict=True)
        ]


def answered(session: AnsweringLinear, understood: Statement) -> Answer | Derived | AnswerTable:
    """Return what a session answers to a SELECT statement.

    All of the statement was read, and fits the domain, before the first question is asked.

    Returns:
        Of one COUNT, of one other number, and of several of them or GROUP BY.

    Raises:
        TooFewRecordsError: If nothing can be said of the average of a statement of one AVG, as of `mean`.
    """
    if not understood.keys and len(understood.formulas) == 1:
        ((name, formula),) = understood.formulas
        if isinstance(formula, Part):
            return _alone(session, attrs.evolve(understood.aggregates[formula.place], name=name))
        return _made_alone(session, name, formula, understood.aggregates)
    groups = GroupKeys.of(session.domain, understood.keys) if understood.keys else None
    asked = [_asked(session, aggregate, groups) for aggregate in understood.aggregates]
    parts = [_column(formula, asked, groups) for _, formula in understood.formulas]
    labels = [()] if groups is None else [*itertools.product(*groups.labels)]
    values, bounds, errors, few = (
        np.stack(column, axis=1)
        for column in zip(*((part.values, part.bounds, part.errors, part.few) for part in parts), strict=True)
    )
    ranks = np.zeros((1, 0)) if groups is None else _ranked(session.domain, groups)
    shown = understood.rows.chosen(ranks, values)
    decided = _decided(understood.rows, len(understood.keys), parts)
    return AnswerTable(
        keys=() if groups is None else groups.names,
        labels=tuple(labels[place] for place in shown.tolist()),
        names=tuple(name for name, _ in understood.formulas),
        values=values[shown],
        error_bounds=bounds[shown],
        expected_errors=errors[shown],
        few_records=few[shown],
        confidences=tuple(part.confidence for part in parts),
        biases=tuple(part.bias for part in parts),
        answers=tuple(answer for one in asked for answer in one.answers),
        columns=understood.columns,
        groups=len(labels),
        clauses=understood.rows.by_numbers(len(understood.keys)),
        decided=decided[0],
        usually_decided=decided[1],
    )


def _decided(rows: Rows, keys: int, parts: "Sequence[_Part]") -> tuple[int | None, int | None]:
    """Return of how many leading rows the order is sure, by bounds and usually; None of other orders."""
    if not rows.order or rows.order[0].place < keys or rows.having is not None or rows.offset:
        return None, None
    first = rows.order[0]
    part, sign = parts[first.place - keys], 1.0 if first.descending else -1.0
    known = np.flatnonzero(~np.isnan(part.values))
    order = known[np.argsort(-sign * part.values[known], kind="stable")]
    most = len(order) if rows.limit is None else rows.limit
    values, bounds, errors = sign * part.values[order], part.bounds[order], part.errors[order]
    return ranks_decided(values, bounds, most), ranks_usual(values, errors, most)


def _ranked(domain: Domain, groups: GroupKeys) -> Floats:
    """Return the rank of each label of each group, (groups, keys): as labels go, NaN of missing ones."""
    ranks = []
    for key in groups.keys:
        rank = np.arange(len(key.labels), dtype=np.float64)
        kind = domain.attribute(key.key) if isinstance(key.key, str) else None
        if isinstance(kind, Categorical):  # the cell for others, which is no label, stands last
            rank[np.argsort(np.array(kind.labels))] = np.arange(len(kind.labels))
        elif kind is None and all(type(label) is str for label in key.labels if label is not None):
            known = [place for place, label in enumerate(key.labels) if label is not None]
            if not key.ordered:
                texts = np.array([str(key.labels[place]) for place in known])
                rank[np.array(known)[np.argsort(texts)]] = np.arange(len(known))
        rank[[place for place, label in enumerate(key.labels) if label is None]] = math.nan
        ranks.append(rank)
    return np.array([*itertools.product(*ranks)]).reshape(math.prod(groups.shape), len(groups.keys))


@final
@attrs.frozen(eq=False)
class _Part:
    """One column of a table: (rows,) numbers, bounds and expected errors, whether records are few."""

    values: Floats
    bounds: Floats
    errors: Floats
    few: Bools
    confidence: float
    bias: float


@final
@attrs.frozen(eq=False)
class _Asked:
    """An aggregate that was asked, in every group: as it is told, and as arithmetic goes on with it."""

    part: _Part
    number: Number
    answers: tuple[Answer, ...]


def _alone(session: AnsweringLinear, aggregate: Aggregate) -> Answer | Derived:
    """Return the answer of one aggregate over all records that it counts."""
    if aggregate.form == "count":
        return session.answer(where() if aggregate.condition is None else aggregate.condition)
    if aggregate.nobody:  # the sum of nothing
        return Derived(aggregate.name, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, (), 0.0)
    if aggregate.form == "rate":
        return rate_of(session, aggregate.name, *_sides(session, aggregate))
    column = aggregate.column or ""
    if aggregate.form == "quantile":
        return quantile_number(session, aggregate.name, column, aggregate.q, aggregate.condition)
    if aggregate.form == "covariance":
        return covariance(session, column, aggregate.other or "", aggregate.condition)
    ask = {"sum": total, "average": mean, "variance": variance}[aggregate.form]
    return ask(session, column, aggregate.condition)


def _sides(
    session: AnsweringLinear, aggregate: Aggregate
) -> tuple[Expression, Expression, Expression | None]:
    """Return both sides of a rate, and among whom it is."""
    met, rest = (where() if one is None else one for one in (aggregate.met, aggregate.rest))
    return met, rest, narrowing(session.domain, aggregate.condition)


def _made_alone(
    session: AnsweringLinear, name: str, formula: Formula, aggregates: Sequence[Aggregate]
) -> Derived:
    """Return what is made of aggregates over all records."""
    asked = [_asked(session, aggregate, None) for aggregate in aggregates]
    made = Derived.of_number(name, evaluated(formula, [one.number for one in asked]))
    if math.isnan(made.value):
        error = TooFewRecordsError(
            f"{shortened(name)} must be of numbers of which something can be said, got NULL: over too few "
            "records, or divided by 0; widen the condition, or ask its parts."
        )
        error.answers = tuple(answer for one in asked for answer in one.answers)
        raise error
    return made


def _asked(session: AnsweringLinear, aggregate: Aggregate, groups: GroupKeys | None) -> _Asked:
    """Return one aggregate of every group, or of one row."""
    if groups is None or aggregate.keys == ():
        return _one_row(session, aggregate)
    if aggregate.keys is None:
        return _by_group(session, aggregate, groups)
    kept = GroupKeys(tuple(groups.keys[place] for place in aggregate.keys))
    found = _by_group(session, aggregate, kept)
    shape, small = groups.shape, kept.shape
    at = [np.indices(shape)[place].ravel() for place in aggregate.keys]
    number = found.number.rows(np.ravel_multi_index(at, small))
    return _Asked(_told(number, math.prod(shape)), number, found.answers)


def _one_row(session: AnsweringLinear, aggregate: Aggregate) -> _Asked:
    """Return one aggregate as a column of one row."""
    try:
        found = _alone(session, aggregate)
    except TooFewRecordsError as error:  # what the others say is not thrown away
        leaf = Leaf.stated(
            np.array([math.nan]),
            np.array([math.inf]),
            1.0,
            np.array([math.nan]),
            0.0,
            np.zeros(1, np.bool_),
            error.answers,
        )
        return _Asked(_row((math.nan, math.inf, math.nan), False, 1.0, 0.0), Number.of(leaf), error.answers)
    if isinstance(found, Derived):
        expected = math.nan if found.expected_error is None else found.expected_error
        told = (found.value, found.error_bound, expected)
        part = _row(told, found.few_records, found.confidence, found.bias)
        return _Asked(part, found.as_number(), found.answers)
    confidence = 1.0 - (session.beta if found.error_bound > 0.0 else 0.0)
    told = (float(found.count), session.n * found.error_bound, session.n * known_error(found))
    query = where() if aggregate.condition is None else aggregate.condition
    joint = session.joint_bounds([query], [found])
    alone = Found(
        (found,),
        (),
        np.array([found.error_bound]),
        confidence,
        known_error(found),
        np.array([found.error_bound]),
        joint,
        event_of(session),
    )
    leaf = count_leaf(session.n, alone, np.array([float(found)]))
    return _Asked(_row(told, False, confidence, 0.0), Number.of(leaf), (found,))


def _row(told: tuple[float, float, float], few: bool, confidence: float, bias: float) -> _Part:
    """Return a column of one row: value, bound and expected error."""
    value, bound, error = (np.array([one]) for one in told)
    return _Part(value, bound, error, np.array([few]), confidence, bias)


def _by_group(session: AnsweringLinear, aggregate: Aggregate, groups: GroupKeys) -> _Asked:
    """Return one aggregate of every group."""
    if aggregate.nobody:
        nothing = np.zeros(math.prod(groups.shape))
        part = _Part(nothing, nothing, nothing, nothing.astype(np.bool_), 1.0, 0.0)
        return _Asked(part, Number.constant(0.0), ())
    keys = [key.key for key in groups.keys]
    if aggregate.form == "count":
        found = group_by(session, keys, aggregate.condition)
    elif aggregate.form == "rate":
        found = rates_by_group(session, aggregate.name, *_sides(session, aggregate), groups)
    elif aggregate.form == "covariance":
        pair = (aggregate.column or "", aggregate.other or "")
        among = narrowing(session.domain, aggregate.condition)
        found = covariances(session, aggregate.name, *pair, among, groups)
    elif aggregate.form == "quantile":
        found = quantiles_by_group(
            session, aggregate.name, aggregate.column or "", aggregate.q, aggregate.condition, groups
        )
    else:
        found = group_by(session, keys, aggregate.condition, NAMED[aggregate.form], aggregate.column)
    part = _Part(
        found.values.ravel(),
        found.error_bounds.ravel(),
        found.expected_errors.ravel(),
        found.few_records.ravel(),
        found.confidence,
        found.bias,
    )
    return _Asked(part, found.as_number(), found.answers)


def _column(formula: Formula, asked: Sequence[_Asked], groups: GroupKeys | None) -> _Part:
    """Return one column of a table: an aggregate as it was asked, or what is made of some."""
    rows = 1 if groups is None else math.prod(groups.shape)
    if isinstance(formula, Part) and len(asked[formula.place].part.values) == rows:
        return asked[formula.place].part
    number = evaluated(formula, [one.number for one in asked], groups)
    return _told(number, rows)


def _told(number: Number, rows: int) -> _Part:
    """Return numbers as a column of so many rows."""
    told = number.stated().over(rows)
    bias = float(np.max(told.bias, initial=0.0))
    return _Part(told.values, told.bounds, told.expected, told.few, told.confidence, bias)


# -- formulas --


def evaluated(formula: Formula, numbers: Sequence[Number], groups: GroupKeys | None = None) -> Number:
    """Return what a formula makes of numbers, by group."""
    if isinstance(formula, Part):
        return numbers[formula.place]
    if isinstance(formula, Known):
        return Number.constant(formula.value)
    if isinstance(formula, Choice):
        one, other = (evaluated(part, numbers, groups) for part in (formula.one, formula.other))
        return one.chosen(other, _held(formula.test, numbers, groups))
    parts = [evaluated(part, numbers, groups) for part in formula.parts]
    if formula.sign == "abs":
        return parts[0].absolute()
    if formula.sign == "root":
        return parts[0].root()
    if formula.sign == "correlation":
        return parts[0].inside(-1.0, 1.0)
    if formula.sign == "round":
        return parts[0].rounded(formula.digits)
    found = parts[0]
    for part in parts[1:]:
        if formula.sign == "nullif":
            found = found.unless(part)
        elif formula.sign == "coalesce":
            found = found.filled(part)
        elif formula.sign in ("greatest", "least"):
            found = found.chosen(part, compares(found, ">=" if formula.sign == "greatest" else "<=", part))
        else:
            found = SIGNS[formula.sign](found, part)
    return found


def _held(test: Test, numbers: Sequence[Number], groups: GroupKeys | None) -> Held:
    """Return of which groups a test holds."""
    if isinstance(test, Joined):
        return joined(test.every, [_held(part, numbers, groups) for part in test.parts])
    if isinstance(test, OfKey):
        if groups is None:
            raise InvalidQueryError("CASE must be of a column of GROUP BY, got no GROUP BY; add it.")
        held = np.isin(np.arange(groups.shape[test.key]), [*test.places])
        return Held.known(held[np.indices(groups.shape)[test.key].ravel()])
    one = evaluated(test.one, numbers, groups)
    if isinstance(test, IsNull):
        return Held.known(np.isnan(one.values) != test.negated)
    operator = DENIED[test.operator] if test.negated else test.operator
    return compares(one, operator, evaluated(test.other, numbers, groups))
