"""Statements in SQL, asked of a session: what they list is answered one by one, on its budget."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats
from onlineic.ask.sql import Aggregate, Statement
from onlineic.display.frames import Framed, free_name
from onlineic.display.html import card, facts, note, table
from onlineic.display.text import FEW, MOST_ROWS, TOO_FEW, around, of_bins, probability, shortened
from onlineic.domain.attributes import Attribute, Categorical, Label
from onlineic.errors import TooFewRecordsError
from onlineic.queries.answers import Answer, made_of
from onlineic.queries.expressions import where
from onlineic.questions.groups import group_by
from onlineic.questions.linear import AnsweringLinear, known_error
from onlineic.questions.means import Aggregate as Named
from onlineic.questions.means import Derived, mean, total, variance
from onlineic.slips import public

SHOWN = 20  # rows that a repr shows
NAMED: Mapping[str, Named] = {"sum": "sum", "average": "mean", "variance": "variance"}


@public
@final
@attrs.frozen(eq=False)
class AnswerTable(Framed):
    """What a statement with GROUP BY, or with several aggregates, was answered: one row a group.

    Attributes
    ----------
    keys : tuple of str
        Columns of GROUP BY.
    labels : tuple of tuple of labels
        Of every row, one for each key; None is the missing value. All groups of the domain are there, empty
        ones too, but for those that HAVING, LIMIT or OFFSET left out.
    names : tuple of str
        Of the aggregates: their alias, or their text.
    values : (rows, aggregates) float64
        Numbers of records, sums and averages. NaN of an average of which nothing can be said.
    error_bounds : (rows, aggregates) float64
        Half-widths around the values, in their units; of one aggregate they hold for all rows at once with
        its confidence. inf where there is none, as over few records.
    expected_errors : (rows, aggregates) float64
        As of `Derived`; NaN where it is unknown.
    few_records : (rows, aggregates) bool
        As of `Derived`.
    confidences : tuple of float
        Of every aggregate.
    biases : tuple of float
        Of every aggregate, how far values in bins may put it off: beside `error_bounds`, as of `Derived`.
    answers : tuple of Answer
        What it was made of.
    columns : tuple of (str, int)
        In the order of SELECT: a name, and a place among the keys, or after them among the aggregates.
    groups : int
        How many groups were asked: with HAVING or LIMIT more than there are rows.
    clauses : tuple of str
        Those of HAVING, ORDER BY, LIMIT and OFFSET that went by noisy values: by the true ones, rows may
        stand in another order, or on the other side of a limit.
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

    @property
    def chosen(self) -> str:
        """How rows were chosen, in words; nothing where all groups are there as in the domain."""
        count = f"{len(self):,} of {self.groups:,} groups" if len(self) < self.groups else ""
        by = f"{', '.join(self.clauses)} by noisy numbers" if self.clauses else ""
        return ": ".join(part for part in (count, by) if part)

    @property
    def private(self) -> bool:
        """False: simulated noise was used, the numbers are NOT PRIVATE."""
        return all(answer.private for answer in self.answers)

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
            TOO_FEW
            if math.isnan(value)
            else f"{around(value, bound, separated=True, expected=expected)}{f' ({FEW})' * few}"
            for value, bound, expected, few in zip(*found, strict=True)
        ]


def answered(session: AnsweringLinear, understood: Statement) -> Answer | Derived | AnswerTable:
    """Return what a session answers to a SELECT statement.

    All of the statement was read, and fits the domain, before the first question is asked.

    Returns
    -------
    Answer, Derived or AnswerTable
        Of one COUNT, of one SUM or AVG, and of several of them or GROUP BY.

    Raises
    ------
    TooFewRecordsError
        If nothing can be said of the average of a statement of one AVG, as of `mean`.
    """
    if understood.keys:
        parts = [_by_group(session, aggregate, understood.keys) for aggregate in understood.aggregates]
    elif len(understood.aggregates) == 1:
        return _alone(session, understood.aggregates[0])
    else:
        parts = [_column(session, aggregate) for aggregate in understood.aggregates]
    kinds = [session.domain.attribute(key) for key in understood.keys]
    labels = [*itertools.product(*(map(kind.label, range(kind.size)) for kind in kinds))]
    values, bounds, errors, few = (
        np.stack(column, axis=1)
        for column in zip(*((part.values, part.bounds, part.errors, part.few) for part in parts), strict=True)
    )
    shown = understood.rows.chosen(_ranked(kinds), values)
    return AnswerTable(
        keys=understood.keys,
        labels=tuple(labels[place] for place in shown.tolist()),
        names=tuple(aggregate.name for aggregate in understood.aggregates),
        values=values[shown],
        error_bounds=bounds[shown],
        expected_errors=errors[shown],
        few_records=few[shown],
        confidences=tuple(part.confidence for part in parts),
        biases=tuple(part.bias for part in parts),
        answers=tuple(answer for part in parts for answer in part.answers),
        columns=understood.columns,
        groups=len(labels),
        clauses=understood.rows.by_numbers(len(understood.keys)),
    )


def _ranked(kinds: Sequence[Attribute]) -> Floats:
    """Return the rank of each label of each group, (groups, keys): as labels go, NaN of missing ones."""
    ranks = []
    for kind in kinds:
        rank = np.full(kind.size, math.nan)
        rank[: kind.size - kind.missing] = np.arange(kind.size - kind.missing)
        if isinstance(kind, Categorical):  # the cell for others, which is no label, stands last
            rank[np.argsort(np.array(kind.labels))] = np.arange(len(kind.labels))
        ranks.append(rank)
    groups = math.prod(kind.size for kind in kinds)
    return np.array([*itertools.product(*ranks)]).reshape(groups, len(kinds))


@final
@attrs.frozen(eq=False)
class _Part:
    """One aggregate of a table: (rows,) numbers, bounds and expected errors, whether records are few."""

    values: Floats
    bounds: Floats
    errors: Floats
    few: Bools
    confidence: float
    bias: float
    answers: tuple[Answer, ...]


def _alone(session: AnsweringLinear, aggregate: Aggregate) -> Answer | Derived:
    """Return the answer of one aggregate over all records that it counts."""
    if aggregate.column is None:
        return session.answer(where() if aggregate.condition is None else aggregate.condition)
    if aggregate.nobody:  # the sum of nothing
        return Derived(aggregate.name, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, (), 0.0)
    ask = {"sum": total, "average": mean, "variance": variance}[aggregate.form]
    return ask(session, aggregate.column, aggregate.condition)


def _column(session: AnsweringLinear, aggregate: Aggregate) -> _Part:
    """Return one aggregate as a column of one row."""
    try:
        found = _alone(session, aggregate)
    except TooFewRecordsError as error:  # what the others say is not thrown away
        return _row((math.nan, math.inf, math.nan), False, 1.0, 0.0, error.answers)
    if isinstance(found, Derived):
        expected = math.nan if found.expected_error is None else found.expected_error
        told = (found.value, found.error_bound, expected)
        return _row(told, found.few_records, found.confidence, found.bias, found.answers)
    confidence = 1.0 - (session.beta if found.error_bound > 0.0 else 0.0)
    told = (float(found.count), session.n * found.error_bound, session.n * known_error(found))
    return _row(told, False, confidence, 0.0, (found,))


def _row(
    told: tuple[float, float, float], few: bool, confidence: float, bias: float, answers: tuple[Answer, ...]
) -> _Part:
    """Return a column of one row: value, bound and expected error."""
    value, bound, error = (np.array([one]) for one in told)
    return _Part(value, bound, error, np.array([few]), confidence, bias, answers)


def _by_group(session: AnsweringLinear, aggregate: Aggregate, keys: tuple[str, ...]) -> _Part:
    """Return one aggregate of every group."""
    if aggregate.nobody:
        nothing = np.zeros(math.prod(session.domain.attribute(key).size for key in keys))
        return _Part(nothing, nothing, nothing, nothing.astype(np.bool_), 1.0, 0.0, ())
    if aggregate.column is None:
        found = group_by(session, keys, aggregate.condition)
    else:
        found = group_by(
            session,
            keys,
            aggregate.condition,
            NAMED[aggregate.form],
            aggregate.column,
        )
    return _Part(
        found.values.ravel(),
        found.error_bounds.ravel(),
        found.expected_errors.ravel(),
        found.few_records.ravel(),
        found.confidence,
        found.bias,
        found.answers,
    )
