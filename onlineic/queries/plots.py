"""Figures of released cross tables, with their bounds: histogram, series, heat map. No truth is needed."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlineic.display.figures import COLOURS, bare, new_figure, plain
from onlineic.display.text import records, records_bound
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
    kind = suited(kind, [(one.size, one.ordered) for one in kinds])
    axes = axes_for(ax)
    if kind == "map":
        draw_map(axes, answer.labels, answer.count)
    else:
        name, labels = next(iter(answer.labels.items()))
        low, high = answer.bracket
        bounds = (answer.n or 1) * np.array([low, high]) if math.isfinite(answer.error_bound) else None
        draw_counts(axes, name, labels, answer.count, bounds, line=kind == "line")
        axes.set_ylabel("records" if answer.n is not None else "count")
    said = f"each ± {records_bound(answer.count_bound or 0.0)} records" if _bounded(answer) else "no bound"
    title = stamped(f"Released answer ({answer.status}), {said}", answer.private)
    axes.set_title(title, loc="left", fontsize=11)
    return axes


def suited(kind: Kind | None, attributes: Sequence[tuple[int, bool]]) -> Kind:
    """Return the kind of figure for attributes of (size, ordered), None: that which suits them.

    Raises
    ------
    InvalidParameterError
        If the kind does not suit them.
    """
    allowed: tuple[Kind, ...] = ("map",) if len(attributes) == 2 else ("bars", "line")
    if kind is None:
        size, ordered = attributes[0]
        return allowed[0] if size <= FEW or not ordered else allowed[-1]
    if kind not in allowed:
        raise InvalidParameterError(
            f"kind must be {' or '.join(map(repr, allowed))} for {len(attributes)} attributes, got "
            f"{kind!r:.60}; leave it out."
        )
    return kind


def axes_for(ax: "Axes | None") -> "Axes":
    """Return what to draw on: None is a new figure.

    Raises
    ------
    InvalidParameterError
        If it is something else than axes.
    MissingExtraError
        If matplotlib is not installed.
    """
    if ax is None:
        return new_figure(7.0, 4.2).add_subplot()
    if not hasattr(ax, "imshow"):
        raise InvalidParameterError(
            f"ax must be axes of matplotlib or None, got a {type(ax).__name__}; write fig.add_subplot()."
        )
    return ax


def draw_counts(
    axes: "Axes",
    name: str,
    labels: tuple[Any, ...],
    counts: Any,
    bounds: Any = None,
    *,
    line: bool = False,
) -> None:
    """Draw counts by label, with whiskers or a band between `bounds`, (2, m), where they are known.

    The missing value, which is last and has no place in the order, stands beside a line.
    """
    place = np.arange(len(counts))
    if line:
        along = slice(0, len(counts) - (len(labels) > 0 and labels[-1] is None))
        axes.plot(place[along], counts[along], color=COLOURS[0], linewidth=1.8)
        axes.plot(place[along.stop :], counts[along.stop :], "o", color=COLOURS[0], markersize=4)
        if bounds is not None:
            low, high = bounds[0], bounds[1]
            axes.fill_between(place[along], low[along], high[along], color=COLOURS[5], alpha=0.4, linewidth=0)
            axes.vlines(place[along.stop :], low[along.stop :], high[along.stop :], color=COLOURS[0])
    else:
        axes.bar(place, counts, width=0.86, color=COLOURS[5] if bounds is not None else COLOURS[0])
        if bounds is not None:
            axes.vlines(place, bounds[0], bounds[1], color=COLOURS[0], linewidth=1.6)
    draw_labels(axes, labels)
    axes.set_xlim(-0.6, len(counts) - 0.4)
    axes.set_xlabel(plain(name))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}")
    bare(axes)


def draw_labels(axes: "Axes", labels: Sequence[Any]) -> None:
    """Write labels below their places, as many as stand beside each other."""
    said = [plain(label, 14) for label in labels]
    step = max(1, -(-len(said) // (8 if max(map(len, said), default=0) < 10 else 5)))
    axes.set_xticks(range(0, len(said), step), said[::step])


def draw_map(
    axes: "Axes", labels_of: Mapping[str, tuple[Any, ...]], values: Any, unit: str = "records"
) -> None:
    """Draw numbers by two attributes, (rows, columns), as colours with their numbers; NaN stays white."""
    (first, down), (second, across) = labels_of.items()
    known = values[np.isfinite(values)]
    # counts are seen against 0, other numbers against each other
    least = float(known.min(initial=0.0 if unit == "records" else math.inf))
    most = float(known.max(initial=least))
    image = axes.imshow(values, cmap="Blues", aspect="auto", vmin=least if math.isfinite(least) else None)
    for name, labels, set_ticks, set_label in (
        (first, down, axes.set_yticks, axes.set_ylabel),
        (second, across, axes.set_xticks, axes.set_xlabel),
    ):
        step = max(1, -(-len(labels) // 12))
        places = range(0, len(labels), step)
        set_ticks([*places], [plain(labels[place], 14) for place in places])
        set_label(plain(name))
    if values.size <= WRITTEN:
        for row, column in np.ndindex(*values.shape):
            value = float(values[row, column])
            said = (
                "too few" if math.isnan(value) else records(value) if unit == "records" else f"{value:,.4g}"
            )
            ink = "white" if value > least + 0.6 * (most - least) else "black"
            axes.text(column, row, said, ha="center", va="center", fontsize=8, color=ink)
    axes.figure.colorbar(image, ax=axes, label=plain(unit), format=lambda value, _: f"{value:,.6g}")


def _bounded(answer: Answer) -> bool:
    return answer.n is not None and math.isfinite(answer.error_bound)


def stamped(title: str, private: bool) -> str:
    """Return a title that says where the numbers are not private."""
    return title if private else f"{title} (NOT PRIVATE)"
