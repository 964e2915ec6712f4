"""Numbers and tables as text, cut to a size that a screen holds.

A stated bound is rounded up, and by what its number was rounded besides; the ends of an interval are rounded
outwards, a probability that is promised down: what is printed promises no more than what is stated.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from onlineic.errors import printable

MOST_ROWS, MOST_COLUMNS = 24, 10  # of a table on a screen
LONGEST = 40  # characters of a label
TOO_FEW = "too few records"  # in the place of a mean
FEW = "few records"  # beside a mean whose error nothing bounds
USUAL = 1.96  # expected errors, within which are 95 of 100 errors
GAP = "..."  # as `printable` cuts
MOST_EXACT = 1e15  # floats below have decimals
PLAIN = 1e6  # below, a rounded number has no exponent


def shortened(label: Any, longest: int = LONGEST) -> str:
    """Return a label as text on one line, printable and cut to a length; of the missing cell "missing"."""
    return printable("missing" if label is None else " ".join(str(label).split()), longest)


def records(count: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number of records as text: whole ones, with a decimal where there are few.

    Args:
        rounding: As of `decimal`: `ROUND_FLOOR` and `ROUND_CEILING` for the ends of an interval.
    """
    if not abs(count) < MOST_EXACT:
        return f"{count:,.0f}"
    few = abs(count) < 10.0 and round(count, 1) != round(count)
    exact = Decimal(round(count, 6))  # float operations are farther off than that in no table
    text = f"{exact.quantize(Decimal('0.1' if few else '1'), rounding):,}"
    return "0" if text == "-0" else text


def records_between(low: float, high: float) -> str:
    """Return an interval of numbers of records as text."""
    return f"{records(low, ROUND_FLOOR)} to {records(high, ROUND_CEILING)}"


def records_bound(bound: float) -> str:
    """Return the bound of counts that are written as whole records: up to 1/2 more than of the counts."""
    whole = bound + 0.5 if bound else 0.0
    return records(math.ceil(round(whole, 6)) if math.isfinite(whole) else whole)


def percent(part: float) -> str:
    """Return a part as a percentage with two digits."""
    return f"{float(f'{100.0 * part:.2g}'):g}%"


def upward(bound: float, digits: int = 3) -> str:
    """Return a bound as text, rounded up."""
    return _cut(bound, digits, ROUND_CEILING)


def downward(low: float, digits: int = 3) -> str:
    """Return the lower end of an interval as text, rounded down."""
    return _cut(low, digits, ROUND_FLOOR)


def _cut(number: float, digits: int, rounding: str) -> str:
    if not math.isfinite(number):
        return f"{number}"
    cut = float(Context(digits, rounding).create_decimal(repr(float(number))))
    return f"{cut:.0f}" if 10.0**digits <= abs(cut) < PLAIN else f"{cut:.{digits}g}"


def to_its_bound(value: float, bound: float, separated: bool = False) -> str:
    """Return a number as text: in six digits, or as many more as its bound makes sense of.

    What is cut off is less than a hundredth of the bound; of a number that is exact, nothing is.
    """
    exact = bound == 0.0 or not math.isfinite(value)
    digits = 15 if exact else 6
    if not exact and math.isfinite(bound) and value:
        digits = min(15, max(6, math.ceil(math.log10(abs(value) / bound)) + 3))
    return f"{value:{',' if separated else ''}.{digits}g}"


def within(value: float, bound: float, separated: bool = False) -> tuple[str, str]:
    """Return a number and its bound as text: between them lies all that the bound allows."""
    text = to_its_bound(value, bound, separated)
    cut = abs(float(text.replace(",", "")) - value) if bound and math.isfinite(value) else 0.0
    return text, upward(bound + cut)


def around(value: float, bound: float, separated: bool = False, expected: float | None = None) -> str:
    """Return a number with its bound as text: "38.67 ± 0.364, usually within 0.1", or "no bound"."""
    text, reach = within(value, bound, separated)
    proven = f"± {reach}" if math.isfinite(bound) else "no bound"
    return ", ".join(filter(None, (f"{text} {proven}", usually(expected, bound))))


def usually(expected: float | None, bound: float = math.inf) -> str:
    """Return what an error usually is within: "usually within 30"; nothing of what is exact or unknown."""
    if not expected or not math.isfinite(expected):
        return ""
    return f"usually within {upward(min(USUAL * expected, bound))}"


def usually_and_provably(expected: float | None, bound: float, confidence: float | None = None) -> str:
    """Return what an error is usually within, and provably, as one sentence without its end.

    Args:
        expected: Root-mean-square error; None or NaN where it is unknown.
        bound: inf where nothing bounds it.
        confidence: With which probability the bound holds.
    """
    usual = usually(expected, bound)
    said = f"{usual} ({USUAL} expected errors), " if usual else ""
    if not math.isfinite(bound):
        return f"{said}no bound"
    said += f"provably within {upward(bound)}"
    if confidence is None:
        return said
    alike = usual and probability(confidence) == "0.95"
    return f"{said}, each with 95 %" if alike else f"{said} ({sure(confidence)})"


def of_bins(bias: float) -> tuple[str, str]:
    """Return what bins do to a number, and how far it may be off by that, beside its bound."""
    return "values in bins", f"may put it off by {upward(bias)} besides"


def probability(sure: float) -> str:
    """Return a promised probability, rounded down to four digits, or as many more as tell it from 1."""
    sure = min(1.0, sure * (1.0 + 2.0**-50))  # 1 - beta as it was meant
    for digits in range(4, 16):
        text = downward(sure, digits)
        if sure - float(text) <= 0.01 * (1.0 - sure):
            break
    return text


def sure(confidence: float) -> str:
    """Return how sure it is that all bounds hold together, in words."""
    return f"{probability(confidence)} sure" if confidence > 0.0 else "not sure together, each by itself"


def decimals(value: float, bound: float) -> tuple[str, str]:
    """Return a fraction and its bound with six decimals, or as many more as the bound needs."""
    places = 6
    if math.isfinite(bound) and bound > 0.0:
        places = min(15, max(6, 2 - math.floor(math.log10(bound))))
    text = f"{value:9.{places}f}"
    if bound == 0.0 or not math.isfinite(bound):
        return text, f"{bound:.{places}f}"
    reach = Decimal(repr(bound + abs(float(text) - value)))
    return text, f"{reach.quantize(Decimal(1).scaleb(-places), ROUND_CEILING):f}"


def cut_rows(count: int, most: int) -> tuple[list[int], int | None]:
    """Return the places to show of `count` (first and last ones), and where the gap is, if there is one.

    A gap takes a row of its own: one is left out of no fewer than two.
    """
    if count <= most + 1:
        return list(range(count)), None
    head = most - most // 4
    return [*range(head), *range(count - most // 4, count)], head


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return lines of aligned columns: the first `left` at the left, numbers at the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
