"""How a column writes its numbers: separators, signs around them, times of day.

A form is declared by an example, the number 1234.5 as the column writes it. Nothing is guessed: a text that
no declared form reads fits nowhere.
"""

import datetime
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any, final

import attrs
import numpy as np

from onlineic.domain.columns import Column, decimal_read, keyed
from onlineic.errors import InvalidDomainError, InvalidParameterError, checked_list, shown

CLOCKS = {"hours": 3600, "minutes": 60, "seconds": 1}  # seconds of one
DAY = datetime.timedelta(days=1)
BLANK = " \u00a0\u2009\u202f"  # separators that look like a blank, one for the other
APART = ",.'\u2019" + BLANK
MINUS = "-\u2212"

EXAMPLE = re.compile(rf"(?P<before>\D*?)1(?P<thousands>[{APART}]?)234(?:(?P<decimal>[.,])5)?(?P<after>\D*)")
CLOCK = re.compile(
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])(?:[.,](?P<part>[0-9]{1,9}))?)?"
    r"(?:\s?(?P<half>[ap])\.?(?:m\.?)?)?",
    re.IGNORECASE,
)


@final
@attrs.frozen
class Numerals:
    """What texts of a column stand for as numbers.

    Attributes:
        written: Forms, each the number 1234.5 or 1234 as the column writes it.
        clock: Unit of a time of day, "hours", "minutes" or "seconds" since midnight.
        floor: Whether a time counts as the whole units that have passed.
    """

    written: tuple[str, ...] = ()
    clock: str | None = None
    floor: bool = False

    def __bool__(self) -> bool:
        """Whether any text stands for a number."""
        return bool(self.written) or self.clock is not None

    def column(self, column: Column) -> Column:
        """Return a column with numbers in the place of texts and times that stand for one; others stay."""
        if not self:
            return column
        if column.dtype.kind == "m" and self.clock is not None:
            column = column.astype("m8[us]").astype(object)
        if column.dtype.kind not in "OU":
            return column
        try:
            keys = keyed(column)
            known = {key: self.number(key[1]) for key in set(keys)}
            values = [known[key] for key in keys]
        except TypeError:  # lists and others, which are no keys
            values = [self.number(value) for value in column]
        result = np.empty(len(column), object)
        result[:] = values
        return result

    def number(self, value: Any) -> Any:
        """Return the number that a text or a time stands for; whatever stands for none as it is."""
        if isinstance(value, str):
            found = self._of_clock(value) if self.clock is not None else self._of_forms(value)
            return value if found is None else found
        if self.clock is None:
            return value
        if isinstance(value, datetime.timedelta) and datetime.timedelta() <= value < DAY:
            return self._in_units(value)
        if isinstance(value, datetime.time) and value.tzinfo is None:
            whole = datetime.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
            return self._in_units(whole + datetime.timedelta(microseconds=value.microsecond))
        return value

    def _of_forms(self, text: str) -> float | None:
        """Return the number that the forms read in a text: none if two of them read different ones."""
        found = {number for number in (_read(form, text) for form in self.written) if number is not None}
        return found.pop() if len(found) == 1 else None

    def _of_clock(self, text: str) -> float | None:
        match = CLOCK.fullmatch(text.strip())
        if match is None:
            return None
        hour, half = int(match["hour"]), (match["half"] or "").lower()
        if half:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + 12 * (half == "p")
        if hour > 23:
            return None
        part = int((match["part"] or "").ljust(6, "0")[:6])
        return self._in_units(
            datetime.timedelta(
                hours=hour, minutes=int(match["minute"]), seconds=int(match["second"] or 0), microseconds=part
            )
        )

    def _in_units(self, passed: datetime.timedelta) -> float:
        unit = datetime.timedelta(seconds=CLOCKS[str(self.clock)])
        return passed // unit if self.floor or passed % unit == datetime.timedelta() else passed / unit


def checked_written(written: Any) -> tuple[str, ...]:
    """Return the forms that were given, one text alone too.

    Raises:
        InvalidDomainError: If one is no text of the number 1234.5 or 1234.
    """
    if written is None:
        return ()
    try:
        given = [written] if isinstance(written, str) else checked_list("written", written)
    except InvalidParameterError:
        given = [None]
    for form in given:
        match = EXAMPLE.fullmatch(form) if type(form) is str else None
        if match is None or match["thousands"] == match["decimal"] != "":
            raise InvalidDomainError(
                f"written must be the number 1234.5, or 1234, as the column writes it, got {shown(form)}; "
                "write e.g. written='$1,234.5' or written='1.234,5 €'."
            )
    return tuple(given)


def check_clock(clock: Any, written: tuple[str, ...] = ()) -> None:
    """Raise `InvalidDomainError` unless this is a unit of a time of day, alone, or None."""
    if clock is None:
        return
    if type(clock) is not str or clock not in CLOCKS:
        raise InvalidDomainError(f"clock must be one of {', '.join(CLOCKS)}, got {shown(clock)}; choose one.")
    if written:
        raise InvalidDomainError(
            f"clock must stand without written, got written={shown(list(written))}; "
            "a time of day is read as it is."
        )


@lru_cache(maxsize=256)
def _pattern(form: str) -> tuple[re.Pattern[str], str, str, bool]:
    """Return how a form reads a text, its two separators, and whether what it reads is below 0."""
    match = EXAMPLE.fullmatch(form)
    if match is None:
        raise InvalidDomainError(f"written must be the number 1234.5, got {shown(form)}; write it so.")
    before, after, thousands = match["before"], match["after"], match["thousands"]
    below = before.lstrip().startswith("(") and after.rstrip().endswith(")")
    between = f"[{re.escape(BLANK)}]" if thousands and thousands in BLANK else re.escape(thousands)
    grouped = rf"|[0-9]{{1,3}}(?:{between}[0-9]{{3}})+" if thousands else ""
    fraction = rf"(?:{re.escape(match['decimal'])}(?P<part>[0-9]+))?" if match["decimal"] else ""
    sign = "" if below else rf"(?P<sign{{}}>[{MINUS}+])?\s*"
    text = (
        rf"\s*{sign.format(1)}{_around(before)}\s*{sign.format(2) if before.strip() else ''}"
        rf"(?P<whole>[0-9]*{grouped}){fraction}\s*{_around(after)}\s*"
    )
    return re.compile(text), thousands, between, below


def _around(text: str) -> str:
    return r"\s+".join(map(re.escape, text.split()))


def _read(form: str, text: str) -> float | None:
    """Return the number that one form reads in a text."""
    pattern, thousands, between, below = _pattern(form)
    match = pattern.fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    signs = [sign for sign in (found.get("sign1"), found.get("sign2")) if sign]
    if len(signs) > 1 or not (found["whole"] or found.get("part")):
        return None
    whole = re.sub(between, "", found["whole"]) if thousands else found["whole"]
    number = decimal_read(Decimal(f"{whole or '0'}.{found.get('part') or '0'}"))
    if number is None:
        return None
    return -number if below or (signs and signs[0] in MINUS) else number
