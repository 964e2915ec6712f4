"""How the page says things to people who know nothing of privacy or of this package."""

import math
import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np

from onlineic.display.text import USUAL, probability, records, shortened, upward
from onlineic.domain.attributes import Binned, IntegerRange
from onlineic.domain.domain import Domain
from onlineic.queries.answers import Answer
from onlineic.queries.marginals import BoundMarginal
from onlineic.queries.query import Query

LONGEST_AXIS = 4096  # values of an attribute of which a condition is put into words
LISTED = 4  # values that are listed one by one
SAID = {
    "easy": "From what was learned so far, and checked against the records.",
    "hard": "Measured for this question.",
    "repeat": "Told before, and told again: free.",
    "untested": "From what was learned so far, without a check: nothing was spent on it.",
}
WISHED = {  # by reason
    "within": "Known as exactly as you ask from what was released so far: nothing was spent on it.",
    "budget": "Your share, or the budget, does not pay for an answer so exact: this is what was learned so "
    "far, without a check. Nothing was spent on it.",
}
SHORT = {"easy": "checked", "hard": "measured", "repeat": "told before", "untested": "not checked"}
PIECE = "a part of a mean, a sum or a statement"
CONSTANT = "The same whatever the records are."
BIN = re.compile(r"\[(-?(?:inf|[\d.]+(?:e[+-]?\d+)?)), (-?(?:inf|[\d.]+(?:e[+-]?\d+)?))\)\Z")
NOTHING = "Nothing says how far off this may be."


def status_of(answer: Answer) -> str:
    """Return how a number came about, in a sentence."""
    query: Any = answer.query
    if query is not None and not isinstance(query, BoundMarginal) and query.constant is not None:
        return CONSTANT
    return WISHED.get(answer.reason or "", SAID[answer.status])


def short_status(answer: Answer) -> str:
    """Return the same in a word or two."""
    return "exact" if status_of(answer) == CONSTANT else SHORT[answer.status]


def of_error(error: float | None, bound: float) -> float | None:
    """Return within what about 95 of 100 errors are, no more than the bound; None where it is unknown."""
    if error is None or not math.isfinite(error):
        return None
    return float(min(USUAL * error, bound))


def whole_records(number: float) -> str:
    """Return how far a number of records may be off, rounded up: by what it was rounded itself, too."""
    return records(number + 0.5 if number >= 10.0 else number + 0.05, ROUND_CEILING) if number else "0"


def reach(usual: str | None, bound: str | None, confidence: float, together: bool = False) -> str:
    """Return how far off a number may be, in one sentence.

    Args:
        usual, bound: As they are written; None where they are unknown.
        confidence: With which the bound holds.
        together: Whether it is of several numbers at once.
    """
    sure = percent(confidence) if confidence > 0.0 else None
    end = ", all together" if together else ""
    if bound is None:
        return NOTHING if usual is None else f"Usually within {usual}, with 95 %; nothing is proved."
    if usual is None:
        return f"Provably within {bound}{f', with {sure}' if sure else ', each by itself'}{end}."
    if sure == "95 %":
        return f"Usually within {usual}, provably within {bound}{end}, each with 95 %."
    proved = f"provably within {bound}{end}{f' (with {sure})' if sure else ''}"
    return f"Usually within {usual} (with 95 %), {proved}."


def percent(share: float) -> str:
    """Return a promised probability, rounded down."""
    return f"{Decimal(probability(share)) * 100:f}".rstrip("0").rstrip(".") + " %"


def part(share: float) -> str:
    """Return a part of the budget."""
    if 0.0 < share < 0.001:
        return "less than 0.1 %"
    return f"{100.0 * share:.1f} %".replace(".0 %", " %")


def two_digits(share: float) -> str:
    """Return a price as a part, rounded up."""
    return f"{upward(100.0 * min(1.0, share), 2)} %"


def rounded(value: float, error: float | None, bound: float) -> str:
    """Return a number with as many digits as its error makes sense of: two of the error."""
    if not math.isfinite(value):
        return "unknown"
    off = error if error else bound
    if not off or not math.isfinite(off):
        return f"{value:,.6g}"
    places = max(0, 1 - math.floor(math.log10(off)))
    return f"{value:,.{min(places, 12)}f}"


def off_by(value: float, said: str, bound: float, digits: int = 3) -> str:
    """Return how far off a number as it is written may be: by as much more as it was rounded."""
    cut = abs(float(said.replace(",", "")) - value) if said[-1:].isdigit() else 0.0
    return upward(bound + cut, digits)


def label(value: Any) -> str:
    """Return a label as text; of a bin its ends."""
    if isinstance(value, str) and (ends := BIN.match(value)):
        low, high = (f"{float(end):,.12g}" for end in ends.groups())
        if high == "inf":
            return "all" if low == "-inf" else f"{low} and more"
        return f"below {high}" if low == "-inf" else f"{low} to {high}"
    return shortened(value)


def in_words(question: Any) -> str:
    """Return a question that was asked in words, as far as it has some."""
    if isinstance(question, BoundMarginal):
        told = " and ".join(map(shortened, question.names))
        where = "" if question.condition is None else f" among some: {shortened(question.condition, 80)}"
        return f"records by {told}{where}"
    if not isinstance(question, Query):
        return shortened(question, 100)
    if question.constant is not None:
        return "nobody" if question.constant == 0 else "all records"
    turned = question.complement and len(question.factors) == 1
    parts = [_factor(question.domain, factor, turned) for factor in question.factors]
    if any(one is None for one in parts):
        about = " and ".join(shortened(question.domain.names[axis]) for axis in question.axes)
        return f"{PIECE} about {about}"
    said = " and ".join(one for one in parts if one)
    if question.complement and not turned:
        return f"all records but those where {said}"
    return f"records where {said}"


def _factor(domain: Domain, factor: Any, turned: bool) -> str | None:
    """Return a condition on one attribute in words, or its opposite, None where it weighs records."""
    if len(factor.axes) != 1 or domain.shape[factor.axes[0]] > LONGEST_AXIS:
        return None
    axis = factor.axes[0]
    held = np.asarray(factor.weights(domain), np.float64)
    if not np.isin(held, (0.0, 1.0)).all():
        return None
    return condition(domain, axis, np.flatnonzero(held != turned))


def condition(domain: Domain, axis: int, codes: Sequence[int] | Any) -> str:
    """Return which values of an attribute are meant, in words."""
    name, kind = shortened(domain.names[axis]), domain.attributes[axis]
    others = np.setdiff1d(np.arange(kind.size), codes)
    if len(codes) == 1:
        return f"{name} is {label(kind.label(int(codes[0])))}"
    if len(others) == 1:
        return f"{name} is not {label(kind.label(int(others[0])))}"
    if kind.ordered and len(codes) and int(codes[-1]) - int(codes[0]) + 1 == len(codes):
        return f"{name} is from {label(kind.label(int(codes[0])))} to {label(kind.label(int(codes[-1])))}"
    listed = ", ".join(label(kind.label(int(code))) for code in codes[:LISTED])
    more = f" and {len(codes) - LISTED:,} more" if len(codes) > LISTED else ""
    return f"{name} is one of {listed}{more}"


def values_of(kind: Any) -> str:
    """Return which values an attribute takes, in words."""
    if isinstance(kind, IntegerRange):
        return f"{kind.label(0)} to {kind.label(kind.size - 1 - bool(kind.missing))}"
    if isinstance(kind, Binned):
        edges = ", ".join(f"{edge:,g}" for edge in kind.edges[:8])
        return f"a number, held in steps: {edges}{', ...' if len(kind.edges) > 8 else ''}"
    labels = [label(kind.label(code)) for code in range(min(kind.size, 8))]
    if kind.size <= 8:
        return ", ".join(labels)
    if kind.ordered:
        return f"{labels[0]} to {label(kind.label(kind.size - 1))}: {kind.size:,} values"
    return f"{', '.join(labels)} and {kind.size - 8:,} more"
