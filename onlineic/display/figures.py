"""What all figures share, and numbers by label as bars, lines and maps.

They use `matplotlib.figure.Figure` alone: no window, no global state. A notebook shows what is returned.
Colours are those of Okabe and Ito, told apart by colour-blind readers, and line styles differ too.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onlineic.display.text import LONGEST, records, shortened
from onlineic.errors import (
    InvalidParameterError,
    MissingExtraError,
    checked_real,
    shown,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 3)), (0, (1, 2)))

FigureKind = Literal["bars", "line", "map"]
FEW = 40  # bars of an ordered attribute; above, a line
WRITTEN = 150  # cells of a map that carry their number


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure of this size in inches."""
    try:
        from onlineic.display.pictures import Picture
    except ImportError:
        raise MissingExtraError(
            "matplotlib must be installed for figures; run pip install 'onlineic[plot]'."
        ) from None
    width = checked_real("width", width, above=0.0, at_most=1000.0)
    height = checked_real("height", height, above=0.0, at_most=1000.0)
    return Picture(figsize=(width, height), layout="constrained", dpi=120)


def plain(label: Any, longest: int = LONGEST) -> str:
    """Return a label as text that matplotlib does not take for a formula."""
    return shortened(label, longest).replace("$", r"\$")


def bare(axes: "Axes") -> None:
    """Draw a grid behind the data, and no frame at the top and at the right."""
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def suited(kind: FigureKind | None, attributes: Sequence[tuple[int, bool]]) -> FigureKind:
    """Return the kind of figure for attributes of (size, ordered), None: that which suits them.

    Raises:
        InvalidParameterError: If the kind does not suit them.
    """
    allowed: tuple[FigureKind, ...] = ("map",) if len(attributes) == 2 else ("bars", "line")
    if kind is None:
        size, ordered = attributes[0]
        return allowed[0] if size <= FEW or not ordered else allowed[-1]
    if kind not in allowed:
        raise InvalidParameterError(
            f"kind must be {' or '.join(map(repr, allowed))} for {len(attributes)} attributes, got "
            f"{shown(kind)}; leave it out."
        )
    return kind


def axes_for(ax: "Axes | None") -> "Axes":
    """Return what to draw on: None is a new figure.

    Raises:
        InvalidParameterError: If it is something else than axes.
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


def stamped(title: str, private: bool) -> str:
    """Return a title that says where the numbers are not private."""
    return title if private else f"{title} (NOT PRIVATE)"
