"""Figures of questions that are made of several answers, with their bounds. No truth is needed."""

from typing import TYPE_CHECKING

import numpy as np

from onlineic.display.figures import COLOURS, bare, plain
from onlineic.display.text import probability, upward
from onlineic.errors import InvalidParameterError
from onlineic.queries.plots import Kind, axes_for, draw_counts, draw_labels, draw_map, stamped, suited
from onlineic.session.derived import Cdf, Groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 60  # signs of a name in a title


def plot_groups(groups: Groups, ax: "Axes | None" = None, kind: Kind | None = None) -> "Axes":
    """Draw numbers by one or two keys: `Groups.plot`."""
    if len(groups.keys) > 2:
        raise InvalidParameterError(
            f"groups must be by one or two keys to be drawn, got {len(groups.keys)}; group by fewer."
        )
    sizes = [len(labels) for labels in groups.labels]
    kind = suited(kind, list(zip(sizes, groups.ordered, strict=True)))
    axes = axes_for(ax)
    what = groups.name.partition(" by ")[0]
    unit = "records" if what == "count" else what
    sure = probability(groups.confidence)
    known = np.isfinite(groups.error_bounds) & np.isfinite(groups.values)
    if kind == "map":
        draw_map(axes, dict(zip(groups.keys, groups.labels, strict=True)), groups.values, unit)
        widest = groups.error_bounds[known].max(initial=0.0)
        said = f"each at most ± {upward(widest)} ({sure} sure)" if known.any() else "no bound"
    else:
        bounds = np.where(known, groups.error_bounds, np.nan)
        ends = np.stack([groups.values - bounds, groups.values + bounds]) if known.any() else None
        draw_counts(axes, groups.keys[0], groups.labels[0], groups.values, ends, line=kind == "line")
        axes.set_ylabel(plain(unit))
        said = f"intervals {sure} sure" if known.any() else "no bound"
    title = f"{plain(groups.name, LONGEST)}\n{said}"
    axes.set_title(stamped(title, groups.private), loc="left", fontsize=11)
    return axes


def plot_cdf(cdf: Cdf, ax: "Axes | None" = None) -> "Axes":
    """Draw a distribution function: `Cdf.plot`."""
    axes = axes_for(ax)
    place = np.arange(len(cdf.labels) + 1)  # a share holds from its label to the next
    low, high, values = (np.append(part, part[-1]) for part in (cdf.low, cdf.high, cdf.values))
    axes.fill_between(place, low, high, step="post", color=COLOURS[5], alpha=0.4, linewidth=0)
    axes.step(place, values, where="post", color=COLOURS[0], linewidth=1.8)
    draw_labels(axes, cdf.labels)
    axes.set_xlim(0, len(cdf.labels))
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(plain(cdf.name[4:-1], LONGEST))
    axes.set_ylabel("share at or below")
    bare(axes)
    title = f"{plain(cdf.name, LONGEST)}\nband {probability(cdf.confidence)} sure"
    axes.set_title(stamped(title, cdf.private), loc="left", fontsize=11)
    return axes
