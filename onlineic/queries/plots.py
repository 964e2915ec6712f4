"""Figures of released cross tables, with their bounds: histogram, series, heat map. No truth is needed."""

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlineic.display.figures import COLOURS, bare, new_figure, plain
from onlineic.display.text import records
from onlineic.errors import InvalidParameterError
from onlineic.queries.answers import Answer
from onlineic.queries.marginals import BoundMarginal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["bars", "line", "map"]
FEW = 40  # bars of an ordered attribute; above, a line
WRITTEN = 150  # cells of a map that carry their number


def plot(answer: Answer, ax: "Axes | None" = None, kind: Kind | None = None) -> "Axes":
    """Draw a cross table over one or two attributes, in records.

    Whiskers and bands are `answer.error_bound`: all cells lie inside together, with probability 1 - beta.

    Parameters
    ----------
    answer : Answer
        To `marginal(...)`.
    ax : matplotlib Axes, optional
        None: of a new figure, `ax.figure`.
    kind : "bars", "line" or "map", optional
        None: a map of two attributes; of one, bars, or a line where it is ordered with more than 40 values.

    Raises
    ------
    InvalidParameterError
        If the answer is no such table, or the kind does not suit it.
    MissingExtraError
        If matplotlib is not installed.
    """
    question = answer.query
    if not isinstance(question, BoundMarginal) or len(question.names) > 2:
        raise InvalidParameterError(
            "answer must be a cross table over one or two attributes to be drawn, got another; ask "
            'marginal("a") or marginal("a", "b").'
        )
    kinds = [question.partition.domain.attribute(name) for name in question.names]
    allowed: tuple[Kind, ...] = ("map",) if len(kinds) == 2 else ("bars", "line")
    if kind is None:
        kind = allowed[0] if kinds[0].size <= FEW or not kinds[0].ordered else allowed[-1]
    if kind not in allowed:
        raise InvalidParameterError(
            f"kind must be {' or '.join(map(repr, allowed))} for {len(kinds)} attributes, got {kind!r:.60}; "
            "leave it out."
        )
    if ax is not None and not hasattr(ax, "imshow"):
        raise InvalidParameterError(
            f"ax must be axes of matplotlib or None, got a {type(ax).__name__}; write fig.add_subplot()."
        )
    axes = new_figure(7.0, 4.2).add_subplot() if ax is None else ax
    if kind == "map":
        _draw_map(axes, answer)
    else:
        name, labels = next(iter(answer.labels.items()))
        low, high = answer.bracket
        bounds = (answer.n or 1) * np.array([low, high]) if math.isfinite(answer.error_bound) else None
        draw_counts(axes, name, labels, answer.count, bounds, line=kind == "line")
        axes.set_ylabel("records" if answer.n is not None else "count")
    said = f"each ± {records(answer.count_bound or 0.0)} records" if _bounded(answer) else "no bound"
    title = _stamped(f"Released answer ({answer.status}), {said}", answer.private)
    axes.set_title(title, loc="left", fontsize=11)
    return axes


def draw_counts(
    axes: "Axes",
    name: str,
    labels: tuple[Any, ...],
    counts: Any,
    bounds: Any = None,
    *,
    line: bool = False,
) -> None:
    """Draw counts by label, with whiskers or a band between `bounds`, (2, m), where they are known."""
    place = np.arange(len(counts))
    if line:
        axes.plot(place, counts, color=COLOURS[0], linewidth=1.8)
        if bounds is not None:
            axes.fill_between(place, bounds[0], bounds[1], color=COLOURS[5], alpha=0.4, linewidth=0)
    else:
        axes.bar(place, counts, width=0.86, color=COLOURS[5] if bounds is not None else COLOURS[0])
        if bounds is not None:
            axes.vlines(place, bounds[0], bounds[1], color=COLOURS[0], linewidth=1.6)
    step = max(1, -(-len(counts) // 8))
    axes.set_xticks(place[::step], [plain(label, 14) for label in labels[::step]])
    axes.set_xlim(-0.6, len(counts) - 0.4)
    axes.set_xlabel(plain(name))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}")
    bare(axes)


def _draw_map(axes: "Axes", answer: Answer) -> None:
    (first, down), (second, across) = answer.labels.items()
    image = axes.imshow(answer.count, cmap="Blues", aspect="auto", vmin=min(0.0, float(answer.count.min())))
    for name, labels, set_ticks, set_label in (
        (first, down, axes.set_yticks, axes.set_ylabel),
        (second, across, axes.set_xticks, axes.set_xlabel),
    ):
        step = max(1, -(-len(labels) // 12))
        places = range(0, len(labels), step)
        set_ticks([*places], [plain(labels[place], 14) for place in places])
        set_label(plain(name))
    if answer.count.size <= WRITTEN:
        dark = 0.6 * float(answer.count.max())
        for row, column in np.ndindex(*answer.count.shape):
            count = float(answer.count[row, column])
            ink = "white" if count > dark else "black"
            axes.text(column, row, records(count), ha="center", va="center", fontsize=8, color=ink)
    axes.figure.colorbar(image, ax=axes, label="records", format=lambda value, _: f"{value:,.0f}")


def _bounded(answer: Answer) -> bool:
    return answer.n is not None and math.isfinite(answer.error_bound)


def _stamped(title: str, private: bool) -> str:
    return title if private else f"{title} (NOT PRIVATE)"
