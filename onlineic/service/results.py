"""What the page was told, kept for a while for who asked it: to be shown again, and handed out as a file."""

import csv
import io
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, final

import numpy as np

from onlineic.display.plain import csv_field, strict
from onlineic.queries.answers import Answer
from onlineic.questions.groups import Groups
from onlineic.questions.means import Derived
from onlineic.questions.statements import AnswerTable

MOST_KEPT, MOST_CELLS = 32, 2**17  # results of one user, and their numbers


@final
class Results:
    """Results by user and question, the latest of each user."""

    def __init__(self) -> None:
        self._held: dict[str, OrderedDict[str, Any]] = {}
        self._paid: dict[tuple[str, str], dict[str, float]] = {}

    def keep(self, name: str, query: str, found: Any, paid: dict[str, float] | None = None) -> None:
        """Keep what a question of a user was told, and what they have paid for it."""
        held = self._held.setdefault(name, OrderedDict())
        held.pop(query, None)
        held[query], self._paid[name, query] = found, paid or {}
        while len(held) > 1 and (len(held) > MOST_KEPT or sum(map(cells_of, held.values())) > MOST_CELLS):
            older, _ = held.popitem(last=False)
            del self._paid[name, older]

    def paid(self, name: str, query: str) -> dict[str, float]:
        """Return what a user has paid for the latest answer to a question, of the budget and their part."""
        return self._paid.get((name, query), {})

    def get(self, name: str, query: str) -> Any:
        """Return what a question of a user was told, or None."""
        return self._held[name].get(query) if name in self._held else None


def cells_of(found: Any) -> int:
    """Return how many numbers a result holds."""
    if isinstance(found, Answer):
        return int(np.size(found.value))
    return len(found) if hasattr(found, "__len__") else 1


def told(found: Answer | Derived | AnswerTable | Any) -> dict[str, Any]:
    """Return what was found as plain values."""
    said: dict[str, Any] = strict(found.to_dict())
    if isinstance(found, Groups):
        return {"columns": said, "confidence": found.confidence, "name": found.name, "private": found.private}
    if isinstance(found, AnswerTable):
        sure, off = (dict(zip(found.names, each, strict=True)) for each in (found.confidences, found.biases))
        more = {"chosen": found.chosen} if found.chosen else {}
        return {"columns": said, "confidences": sure, "biases": off, "private": found.private, **more}
    return said


def columns_of(found: Any) -> Mapping[str, list[Any]]:
    """Return a result as columns of one length."""
    if isinstance(found, Answer):
        return found.columns()
    said = found.to_dict()
    return {name: one if isinstance(one, list) else [one] for name, one in said.items()}


def sheet(columns: Mapping[str, Iterable[Any]]) -> str:
    """Return columns as CSV; no cell is taken for a formula."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(map(csv_field, columns))
    for row in zip(*columns.values(), strict=True):
        out.writerow("" if one is None else csv_field(one) for one in row)
    return text.getvalue()


SHEET_OF_ANSWERS = ("at", "question", "cell", "value", "count", "low", "high", "status", "expected_error")


def sheet_of_answers(found: Iterable[tuple[int, Answer]]) -> str:
    """Return answers as lines of a sheet, one a number; `SHEET_OF_ANSWERS` heads it."""
    rows = io.StringIO()
    out = csv.writer(rows, lineterminator="\n")
    for at, answer in found:
        held = answer.columns()
        many = len(held["status"])
        said = [answer.to_dict()["query"]] * many if answer.labels else held.pop("query", [""] * many)
        for place in range(many):
            cell = " x ".join(str(held[name][place]) for name in answer.labels) if answer.labels else ""
            numbers = [np.ravel(part)[place] for part in (answer.value, answer.count, *answer.bracket)]
            error = held["expected_error"][place]
            row = (at, said[place], cell, *map(float, numbers), answer.status, error)
            out.writerow(map(csv_field, row))
    return rows.getvalue()
