"""Text tables of traces, and figures where matplotlib is installed. NOT PRIVATE: traces know the truth."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from onlineic._typing import Floats
from onlineic.display.figures import COLOURS, DASHES, bare
from onlineic.errors import (
    InvalidParameterError,
    checked_list,
)
from onlineic.evaluate.traces import Trace, checked_traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@attrs.frozen
class Row:
    """One line of the table: the traces of one engine, on one table and stream, over all seeds.

    Attributes:
        label: `Trace.name`: with the table and the stream, where there were several.
        group: The table and the stream alone: rows of one group can be compared.
        traces: How many were joined.
        rate: Answers per second.
        easy, hard, repeat, untested, spent: Means over the traces.
        mean, rms, largest: Mean, root-mean-square and largest absolute error over all answers of all traces,
            fractions.
        given: As of a trace; of seeds that differ in it, of all of them.
    """

    label: str
    group: str
    traces: int
    rate: float
    easy: float
    hard: float
    repeat: float
    untested: float
    spent: float
    mean: float
    rms: float
    largest: float
    given: str = ""


def rows(traces: Iterable[Trace]) -> list[Row]:
    """Return one row for every engine, table and stream, in order of first appearance."""
    return [_row(label, group) for label, group in _groups(traces).items()]


def _groups(traces: Iterable[Trace]) -> dict[str, list[Trace]]:
    groups: dict[str, list[Trace]] = {}
    for trace in checked_traces(traces):
        groups.setdefault(trace.name, []).append(trace)
    if not groups:
        raise InvalidParameterError("traces must be one or more, got none; run compare(...) first.")
    return groups


def _row(label: str, group: Sequence[Trace]) -> Row:
    errors = np.abs(np.concatenate([trace.errors for trace in group]))
    return Row(
        label=label,
        group=group[0].group,
        traces=len(group),
        rate=errors.size / max(sum(trace.seconds for trace in group), 1e-9),
        easy=float(np.mean([trace.easy for trace in group])),
        hard=float(np.mean([trace.hard for trace in group])),
        repeat=float(np.mean([trace.repeat for trace in group])),
        untested=float(np.mean([trace.untested for trace in group])),
        spent=float(np.mean([trace.spent for trace in group])),
        mean=float(errors.mean()),
        rms=float(np.sqrt(np.square(errors).mean())),
        largest=float(errors.max()),
        given=" or ".join(dict.fromkeys(trace.given for trace in group)),
    )


def text_table(traces: Iterable[Trace]) -> str:
    """Return an aligned table, one line an engine; a star marks the smallest error of each kind in its group.

    A group is one table and stream. Errors are fractions of records. Below stands what sessions were given.
    """
    lines = rows(traces)
    head = ["engine", "answers/s", "hard", "easy", "repeat", "untested", "spent", "mean", "rms", "max"]
    cells = [head]
    for line in lines:
        group = [one for one in lines if one.group == line.group]
        errors = []
        for kind in ("mean", "rms", "largest"):
            value, least = getattr(line, kind), min(getattr(one, kind) for one in group)
            errors.append(f"{value:.5f}{'*' if len(group) > 1 and value == least else ' '}")
        counts = [f"{count:,.0f}" for count in (line.rate, line.hard, line.easy, line.repeat, line.untested)]
        cells.append([line.label, *counts, f"{line.spent:.0%}", *errors])
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    text = [
        "  ".join([row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)])
        for row in [[*head[:7], *(f"{name} " for name in head[7:])], *cells[1:]]
    ]
    rule = "-" * max(len(line.rstrip()) for line in text)
    plans: dict[str, list[str]] = {}
    for line in lines:
        if line.given:
            plans.setdefault(line.given, []).append(line.label)
    told = [f"{'; '.join(labels)}: {given}" for given, labels in plans.items()]
    return "\n".join([text[0].rstrip(), rule, *(line.rstrip() for line in text[1:]), *told])


def plot_errors(axes: "Axes", traces: Iterable[Trace], *, title: str = "") -> "Axes":
    """Draw the share of answers within each error, one curve a label. NOT PRIVATE.

    Args:
        traces: Those of one label are joined. The first label is drawn thickest.
    """
    groups = _groups(traces)
    floor = min(trace.rms_error for group in groups.values() for trace in group) / 100 or 1e-9
    widest = 0.0
    for place, (label, group) in enumerate(groups.items()):
        errors = np.sort(np.abs(np.concatenate([trace.errors for trace in group])))
        share = np.arange(1, errors.size + 1) / errors.size
        widest = max(widest, float(errors[-1]))
        axes.plot(
            np.maximum(errors, floor),
            share,
            label=label,
            color=COLOURS[place % len(COLOURS)],
            linestyle=DASHES[place % len(DASHES)],
            linewidth=2.6 if place == 0 else 1.5,
            zorder=3 if place == 0 else 2,
        )
    axes.set(xscale="log", xlim=(floor, 1.2 * max(widest, 2 * floor)), ylim=(0.0, 1.0))
    axes.set_xlabel("absolute error, fraction of records")
    axes.set_ylabel("share of answers within it")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title(
        title or "Errors against the truth (NOT PRIVATE): further left is better", loc="left", fontsize=11
    )
    axes.legend(loc="upper left", fontsize=8, framealpha=0.9)
    bare(axes)
    return axes


def plot_marginal(
    axes: "Axes",
    values: Sequence[Any],
    truth: Floats,
    hypothesis: Floats,
    *,
    name: str = "",
    n: int = 1,
    title: str = "",
) -> "Axes":
    """Draw what the hypothesis believes of one attribute against the truth. NOT PRIVATE, and stamped so.

    Args:
        values: Shape (m,). The attribute's values, as labels of the axis.
        truth, hypothesis: Shape (m,). Fractions of records.
        name: Of the attribute.
        n: Number of records; 1 leaves fractions.
    """
    try:
        truth, hypothesis = np.asarray(truth, np.float64), np.asarray(hypothesis, np.float64)
    except Exception:  # whatever the objects raise
        raise InvalidParameterError("truth and hypothesis must be arrays of numbers, got others.") from None
    values = checked_list("values", values)
    if not len(values) == truth.size == hypothesis.size:
        raise InvalidParameterError(
            "values, truth and hypothesis must have equal lengths, got "
            f"{len(values)}, {truth.size} and {hypothesis.size}."
        )
    if not truth.size:
        raise InvalidParameterError("values must be one or more, got none; give those of an attribute.")
    place = np.arange(truth.size)
    axes.bar(place, n * truth, width=1.0, color="#BBBBBB", label="truth")
    edges = np.append(place - 0.5, truth.size - 0.5)
    axes.stairs(n * hypothesis, edges, color=COLOURS[0], linewidth=1.8, label="hypothesis of the session")
    step = max(1, -(-truth.size // 8))
    axes.set_xticks(place[::step], [str(value) for value in values[::step]])
    axes.set_xlim(-0.5, truth.size - 0.5)
    axes.set_ylim(bottom=min(0.0, 1.05 * n * float(hypothesis.min())))
    axes.set_xlabel(name)
    axes.set_ylabel("records" if n > 1 else "fraction of records")
    if n > 1:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_title(
        title or f"What is believed about {name}, and the truth (NOT PRIVATE)", loc="left", fontsize=11
    )
    axes.legend(loc="upper right", fontsize=8, framealpha=0.9)
    bare(axes)
    return axes
