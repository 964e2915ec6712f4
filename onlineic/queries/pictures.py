"""Answers as HTML, for notebooks and pages."""

import math
from typing import Any

import numpy as np

from onlineic.display.html import bars, card, facts, note, span_bar, table
from onlineic.display.text import records, records_between, records_bound, shortened, upward, within
from onlineic.queries.answers import Answer

MOST_CELLS = 2**12  # of a table that is drawn or written cell by cell
STATED = {
    "easy": "from the hypothesis, tested",
    "hard": "measured",
    "repeat": "released before",
    "untested": "from the hypothesis, untested: the budget is used up",
}


def answer_html(answer: Answer) -> str:
    """Return an answer as a block of HTML."""
    if isinstance(answer.value, np.ndarray):
        return _table_html(answer)
    low, high = answer.bracket
    value, reach = within(answer.value, answer.error_bound)
    bound = "none" if math.isinf(answer.error_bound) else f"± {reach}"
    if answer.n is not None and math.isfinite(answer.error_bound):
        bound += f" (± {records_bound(answer.n * answer.error_bound)} records)"
    pairs = [("fraction", value), ("bound", bound), *_common(answer)]
    if answer.n is not None:
        between = f"{records_between(answer.n * low, answer.n * high)} of {answer.n:,} records"
        pairs.insert(2, ("interval", between))
    return card(
        f"{records(float(answer.count))} records",
        span_bar(low, float(answer.value), high, "fraction of records"),
        facts(pairs),
        private=answer.private,
    )


def _table_html(answer: Answer) -> str:
    labels = answer.labels
    bound = "no bound"
    if math.isfinite(answer.error_bound):
        bound = f"each cell ± {upward(answer.error_bound)}"
        if answer.n is not None:
            bound = f"each cell ± {records_bound(answer.n * answer.error_bound)} records"
    title = f"Records by {' and '.join(map(shortened, labels))}" if labels else "A table of records"
    parts = []
    if answer.count.size > MOST_CELLS or not labels:
        parts.append(note(f"{answer.count.size:,} cells: see answer.value"))
    elif len(labels) == 1:
        (name, axis), (low, high) = *labels.items(), answer.bracket
        n = answer.n or 1
        whiskers = (n * low, n * high) if math.isfinite(answer.error_bound) else (None, None)
        parts.append(bars(axis, answer.count, *whiskers, title=f"records by {name}"))
        if len(axis) <= 2 * len(STATED):
            head = [name, *axis]
            parts.append(table(head, [["records", *(records(float(one)) for one in answer.count)]]))
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
        parts.append(table([*labels, "records"], rows, left=len(labels), names=len(labels)))
    return card(title, *parts, facts([("bound", bound), *_common(answer)]), private=answer.private)


def _cell(count: Any) -> str:
    return records(float(count))


def _common(answer: Answer) -> list[tuple[str, str]]:
    pairs = [("status", f"{answer.status}: {STATED[answer.status]}")]
    if answer.query is not None:
        pairs.insert(0, ("query", shortened(answer.query.written, 300)))
    if answer.left is not None:
        pairs.append(("measured answers left then", f"{answer.left:,}"))
    return pairs
