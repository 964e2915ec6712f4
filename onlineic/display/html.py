"""Blocks of HTML for notebooks and pages: no script, font or image from elsewhere, every text escaped.

Colours of text and lines are those of the page around them, so that dark notebooks stay readable. A drawing
has at most 120 bars, a role and a label that says what it shows.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from onlineic._typing import Floats
from onlineic.display.text import LONGEST, MOST_COLUMNS, MOST_ROWS, cut_rows, downward, shortened, upward

MOST_BARS = 120
SIGN = 7  # width of a letter, at most on average
TITLED = 40  # bars that tell their own number to a mouse
INK, PALE = "#0072B2", "#9BC9E3"  # of Okabe and Ito: told apart by colour-blind readers
ALARM = "#D55E00"
FONT = "font-family:system-ui,sans-serif;font-size:14px;line-height:1.4"
CELL = "padding:2px 10px 2px 0;border:0;border-bottom:1px solid #88888844"


def escaped(text: Any) -> str:
    """Return a text that no browser takes for markup."""
    import html  # its table of entities is long: imported with the first text

    return html.escape(str(text), quote=True)


def card(title: str, *parts: str, private: bool = True) -> str:
    """Return a block with a title, made of other blocks; stamped where its noise is simulated."""
    stamp = "" if private else f' <strong style="color:{ALARM}">NOT PRIVATE: simulated noise</strong>'
    return (
        f'<div style="{FONT};max-width:60em;margin:4px 0"><div style="margin-bottom:4px">'
        f"<strong>{escaped(title)}</strong>{stamp}</div>{''.join(parts)}</div>"
    )


def heading(text: str) -> str:
    """Return a heading inside a card."""
    return f'<div style="margin:12px 0 4px;font-weight:600">{escaped(text)}</div>'


def note(text: str) -> str:
    """Return a remark below a block."""
    return f'<div style="opacity:.75;font-size:12px;margin:2px 0 6px">{escaped(text)}</div>'


def facts(pairs: Iterable[tuple[str, Any]]) -> str:
    """Return a table of names and what they are."""
    rows = "".join(
        f'<tr style="background:none"><th scope="row" style="{CELL};text-align:left;font-weight:400;'
        f'opacity:.75;white-space:nowrap">{escaped(name)}</th>'
        f'<td style="{CELL};text-align:left">{escaped(told)}</td></tr>'
        for name, told in pairs
    )
    return f'<table style="border-collapse:collapse;margin:0">{rows}</table>'


def table(
    head: Sequence[Any],
    rows: Sequence[Sequence[Any]],
    left: int = 1,
    names: int = 1,
    longest: int = LONGEST,
    gap: tuple[int, int] | None = None,
) -> str:
    """Return a table, its middle rows and columns left out where it is large.

    Args:
        head: Shape (m,).
        rows: Each of shape (m,).
        left: How many columns are text, at the left; the others are numbers, at the right.
        names: How many of them name the row.
        longest: Characters of a cell.
        gap: Where rows were left out of `rows` already, and how many.
    """
    across, _ = cut_rows(len(head), MOST_COLUMNS + left)
    down, cut = (list(range(len(rows))), None) if gap is not None else cut_rows(len(rows), MOST_ROWS)
    if cut is not None:
        gap = cut, len(rows) - len(down)
    hole = next((place for place, at in enumerate(across) if at != place), None)

    def shown(cell: Any) -> str:
        return escaped(shortened(cell, longest))

    def line(cells: Sequence[Any], tag: str) -> str:
        made = []
        for at in across:
            kind, side = "th" if at < names else tag, "left" if at < left else "right"
            made.append(f'<{kind} style="{CELL};text-align:{side}">{shown(cells[at])}</{kind}>')
        if hole is not None:
            made.insert(hole, f'<{tag} style="{CELL}">&hellip;</{tag}>')
        return f'<tr style="background:none">{"".join(made)}</tr>'

    body = [line(rows[at], "td") for at in down]
    if gap is not None:
        wide = len(across) + (hole is not None)
        body.insert(gap[0], f'<tr><td colspan="{wide}">&hellip; {gap[1]:,} more</td></tr>')
    return (
        '<table style="border-collapse:collapse;margin:0;font-variant-numeric:tabular-nums">'
        f"<thead>{line(head, 'th')}</thead><tbody>{''.join(body)}</tbody></table>"
    )


def bars(
    labels: Sequence[Any],
    values: Sequence[float] | Floats,
    lows: Sequence[float] | Floats | None = None,
    highs: Sequence[float] | Floats | None = None,
    *,
    title: str,
    width: int = 640,
    height: int = 170,
) -> str:
    """Return a drawing of at most 120 bars, with whiskers from `lows` to `highs` where they are given.

    Neighbours are added up where there are more, and have no whiskers then: of a sum they would be others.

    Args:
        labels, values, lows, highs: Shape (m,).
        title: What is shown, with its unit: the label for those who do not see it.
    """
    many = -(-len(values) // MOST_BARS)
    if many > 1:
        starts = range(0, len(values), many)
        ends = [min(start + many, len(values)) - 1 for start in starts]
        names = [
            f"{shortened(labels[first])} to {shortened(labels[last])}"
            for first, last in zip(starts, ends, strict=True)
        ]
        values = [float(sum(values[start : start + many])) for start in starts]
        lows = highs = None
    else:
        names = [shortened(label) for label in labels]
        values = list(map(float, values))
    tops = [*values, *(highs if highs is not None else ())]
    most = _round_up(max([*map(float, tops), 0.0]))
    floor = min([*values, 0.0])
    top, bottom, edge = 16, height - 22, 60
    step = (width - edge) / max(1, len(values))

    def at(value: float) -> float:
        return round(bottom - (min(max(value, floor), most) - floor) / (most - floor) * (bottom - top), 1)

    shapes = []
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        x, y, foot = round(edge + place * step, 1), at(max(value, 0.0)), at(min(value, 0.0))
        told = f"<title>{escaped(name)}: {value:.4g}</title>" if len(values) <= TITLED else ""
        shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{max(0.5, round(0.86 * step, 1)):g}" '
            f'height="{round(foot - y, 1):g}"' + (f">{told}</rect>" if told else "/>")
        )
    drawn = f'<g fill="{PALE if lows is not None else INK}">{"".join(shapes)}</g>'
    if lows is not None and highs is not None:
        path = "".join(
            f"M{round(edge + (place + 0.43) * step, 1):g} {at(float(low)):g}V{at(float(high)):g}"
            for place, (low, high) in enumerate(zip(lows, highs, strict=True))
        )
        drawn += f'<path d="{path}" stroke="{INK}" stroke-width="{2 if step > 6 else 1}" fill="none"/>'
    every = max(1, -(-len(names) // 8))
    longest = max(4, int(every * step / SIGN))
    ticks = "".join(
        _label(
            shortened(names[place].split(" to ")[0] if many > 1 else names[place], longest),
            edge + (place + 0.43) * step,
            height - 7,
            width,
        )
        for place in range(0, len(names), every)
    )
    scale = "".join(
        f'<text x="{edge - 6}" y="{at(value) + 4:g}" text-anchor="end">{_tick(value)}</text>'
        f'<path d="M{edge} {at(value):g}H{width}" stroke="currentColor" stroke-opacity=".2"/>'
        for value in (0.0, most / 2, most)
    )
    each = f"each bar is {many} neighbouring values, added up" if many > 1 else ""
    said = escaped(f"{title}; {len(names)} bars, largest {_tick(max(values, default=0.0))}")
    return (
        f'<svg role="img" aria-label="{said}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" style="max-width:100%;height:auto" font-size="11" fill="currentColor">'
        f"{scale}{drawn}{ticks}</svg>{note(each) if each else ''}"
    )


def _label(text: str, middle: float, y: int, width: int) -> str:
    """Return a label below the middle of its bar; one that would leave the drawing ends where it ends."""
    beyond = middle + SIGN * len(text) / 2 > width
    x, anchor = (width, "end") if beyond else (round(middle, 1), "middle")
    return f'<text x="{x:g}" y="{y}" text-anchor="{anchor}">{escaped(text)}</text>'


def share(part: float, title: str, width: int = 300) -> str:
    """Return a drawing of the part of a whole, in [0, 1]."""
    part = min(1.0, max(0.0, part))
    return (
        f'<svg role="img" aria-label="{escaped(f"{title}: {part:.1%}")}" viewBox="0 0 {width} 12" '
        f'width="{width}" height="12" style="max-width:100%"><rect width="{width}" height="12" rx="3" '
        f'fill="currentColor" fill-opacity=".15"/><rect width="{part * width:.1f}" height="12" rx="3" '
        f'fill="{INK}"/></svg>'
    )


def span_bar(low: float, value: float, high: float, title: str, width: int = 300) -> str:
    """Return a drawing of a number with its interval on [0, 1]."""
    left, right = (min(1.0, max(0.0, end)) * width for end in (low, high))
    at = min(1.0, max(0.0, value)) * width
    said = escaped(f"{title}: {value:.4g}, from {downward(low, 4)} to {upward(high, 4)}, of 0 to 1")
    return (
        f'<svg role="img" aria-label="{said}" viewBox="0 0 {width} 14" width="{width}" height="14" '
        f'style="max-width:100%"><path d="M0 7H{width}" stroke="currentColor" stroke-opacity=".3"/>'
        f'<rect x="{left:.1f}" y="3" width="{max(1.0, right - left):.1f}" height="8" fill="{PALE}"/>'
        f'<rect x="{max(0.0, at - 1):.1f}" y="1" width="2" height="12" fill="{INK}"/></svg>'
    )


def page(title: str, *parts: str) -> str:
    """Return a whole document of these blocks."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n</head>\n"
        '<body style="margin:24px auto;max-width:60em;padding:0 16px;color:#222;background:#fff">\n'
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _round_up(value: float) -> float:
    """Return the next number whose half is short to write; 1 for nothing."""
    if value <= 0.0:
        return 1.0
    unit: float = 10.0 ** math.floor(math.log10(value))
    return next(
        many * unit for many in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if many * unit >= value * (1 - 1e-9)
    )


def _tick(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
