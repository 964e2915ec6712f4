"""Which declared forms would read some texts: for a curator who looks at a table, and chooses.

A form is proposed if it reads every text. Where several read them differently, all are proposed: which was
meant is for a person to say.
"""

import datetime
import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Literal, final

import attrs

from onlineic.domain.attributes import number
from onlineic.domain.dates import TEXT, beginning, by_format
from onlineic.domain.written import APART, CLOCK, MINUS, Numerals
from onlineic.errors import shown

MOST_AROUND = 4  # different signs around the numbers of one column
LONGEST = 6  # letters of one, such as US$ or EUR
SEPARATORS = (
    ("", "."), ("", ","), (",", "."), (".", ","), (" ", "."), (" ", ","), ("'", "."), ("'", ","),
    ("\u2019", "."),
)  # fmt: skip
DIGITS = "%Y%m%d"  # of the formats the one whose texts are numbers too
FORMATS = (
    "%b-%Y", "%b %Y", "%B %Y", "%b-%y", "%m/%Y", "%m-%Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y",
    "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%d-%m-%y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y",
    "%m-%d-%Y", "%Y/%m/%d", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", DIGITS, "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M%p",
    "%m/%d/%Y %I:%M:%S %p", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%d/%b/%Y:%H:%M:%S %z",
)  # fmt: skip
OTHER = re.compile(r"[<>=~/:+]|^[kKmMbB]n?$")  # around a number: it is another one, or a range
BODY = re.compile(rf"(?P<before>[^0-9]*?)(?P<body>[0-9.][0-9{APART}]*(?<=[0-9])|[0-9])(?P<after>[^0-9]*)")
SINCE, UNTIL = 631_152_000, 2_208_988_800  # seconds of 1990 and 2040 since 1970
UNITS = ("hour", "day", "month", "year")
PERIODS = {"hour": 3600.0, "day": 86400.0, "month": 2_629_800.0, "year": 31_557_600.0}  # seconds, about
MOST_PERIODS = 400


@final
@attrs.frozen
class Proposal:
    """One way to read some texts.

    Attributes:
        what: "number", "time" of day, "date", or "epoch".
        options: What to declare, as in a domain file.
        values: What each text is then: numbers, or dates as texts of ISO 8601.
    """

    what: Literal["number", "time", "date", "epoch"]
    options: dict[str, Any]
    values: tuple[Any, ...]

    @property
    def plain(self) -> bool:
        """Whether nothing need be declared."""
        return not self.options

    @property
    def said(self) -> str:
        """What to declare, as keywords of Python."""
        return ", ".join(f"{key}={shown(_plain(value), 60)}" for key, value in self.options.items())


def proposals(texts: Iterable[str]) -> list[Proposal]:
    """Return the ways to read all of some texts, those with other values apart; none for no texts."""
    listed = list(texts)
    if not listed:
        return []
    found = [*_times(listed), *_dates(listed)]
    if all(one.what == "epoch" or one.options.get("formats") == [DIGITS] for one in found):
        found += _numbers(listed)
    return [one for at, one in enumerate(found) if not any(_same(one, other) for other in found[:at])]


def _same(one: Proposal, other: Proposal) -> bool:
    return one.what == other.what and one.values == other.values


def _plain(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 and "%" not in value[0][:1] else value


def _times(texts: Sequence[str]) -> list[Proposal]:
    if not all(CLOCK.fullmatch(text.strip()) for text in texts):
        return []
    values = tuple(Numerals(clock="hours").number(text) for text in texts)
    return [Proposal("time", {"clock": "hours"}, values)] if not any(map(_is_text, values)) else []


def _dates(texts: Sequence[str]) -> list[Proposal]:
    matches = [TEXT.fullmatch(text) for text in texts]
    if all(match is not None and match["month"] and beginning(match[0]) for match in matches):
        zoned = any(re.search(r"(Z|[+-]\d\d:?\d\d)$", text) for text in texts if "T" in text or " " in text)
        return [Proposal("date", {"zone": "UTC"} if zoned else {}, tuple(texts))]
    found = []
    for form in FORMATS:
        values = tuple(by_format(text, form) for text in texts)
        if None not in values:
            zone = {"zone": "UTC"} if "%z" in form else {}
            found.append(Proposal("date", {"formats": [form], **zone}, values))
    numbers = [float(text) for text in texts if re.fullmatch(r"[0-9]{9,13}(\.[0-9]+)?", text)]
    for unit, per in (("s", 1), ("ms", 1000)):
        if len(numbers) == len(texts) and all(SINCE <= number / per <= UNTIL for number in numbers):
            moments = (datetime.datetime.fromtimestamp(number / per, datetime.UTC) for number in numbers)
            values = tuple(moment.replace(tzinfo=None).isoformat(timespec="seconds") for moment in moments)
            found.append(Proposal("epoch", {"epoch": unit}, values))
    return found


def _numbers(texts: Sequence[str]) -> list[Proposal]:
    matches = [BODY.fullmatch(text.strip()) for text in texts]
    if None in matches:
        return []
    around = sorted({_around(match["before"], match["after"]) for match in matches if match is not None})
    if (
        len(around) > MOST_AROUND
        or any(_is_code(before) for before, _ in around)
        or any(len(part) > LONGEST or OTHER.search(part.strip()) for part in itertools.chain(*around))
    ):
        return []
    found = []
    for thousands, decimal in SEPARATORS:
        for fraction in ("", decimal + "5"):
            forms = [f"{before}1{thousands}234{fraction}{after}" for before, after in around]
            values = tuple(Numerals(tuple(forms)).number(text) for text in texts)
            if not any(map(_is_text, values)):
                plain = around == [("", "")] and not thousands and decimal == "."
                found.append(Proposal("number", {} if plain else {"written": forms}, values))
                break
    return found


def _is_code(before: str) -> bool:
    """Return whether letters before digits make a code of them: x17 is no number, US$17 and EUR 17 are."""
    if not any(map(str.isalpha, before)) or any(unicodedata.category(letter) == "Sc" for letter in before):
        return False
    return re.fullmatch(r"[A-Z][A-Za-z]{1,2}\.?\s", before) is None


def _around(before: str, after: str) -> tuple[str, str]:
    """Return the signs around a number, without its own."""
    if before.startswith("(") and after.endswith(")"):
        return before, after
    return re.sub(f"^[{MINUS}+]|[{MINUS}+]$", "", before.strip()).lstrip(), after


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def kind_of(proposal: Proposal) -> dict[str, Any]:
    """Return a kind of a domain file that holds all values of a proposal: its ends are made of them."""
    values = proposal.values
    if proposal.what == "time":
        return {"edges": [float(hour) for hour in range(25)], **proposal.options}
    if proposal.what == "number":
        low, high = min(values), max(values)
        if all(float(value).is_integer() for value in values) and high - low <= 1000:
            return {"range": [int(low), int(high)], **proposal.options}
        first, last = (0.0 if low >= 0 else -_round_above(-low)), (0.0 if high <= 0 else _round_above(high))
        return {"edges": list(number(first, last).edges), "ends": True, "clip": True, **proposal.options}
    days = sorted(moment for moment in map(beginning, values) if moment is not None)
    length = len(min(values, key=len))
    told = UNITS[{4: 3, 7: 2}.get(length, 1 if length <= 10 else 0) :] or UNITS[-1:]
    span = (days[-1] - days[0]).total_seconds()
    by = next((unit for unit in told if span / PERIODS[unit] <= MOST_PERIODS), told[-1])
    ends = [_label(day, by) for day in (days[0], days[-1])]
    return {"dates": ends, "by": by, **proposal.options}


def _label(moment: datetime.datetime, by: str) -> str:
    return moment.isoformat()[: {"hour": 13, "day": 10, "month": 7, "year": 4}[by]]


def _round_above(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, .. that is no less."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in itertools.chain((1.0, 2.0, 5.0), (10.0,)) if step * power >= value)
