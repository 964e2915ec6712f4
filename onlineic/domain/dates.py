"""Dates and times as an attribute: cells are the years, quarters, months, weeks, days, hours or minutes.

A text such as 2024, 2024-Q1, 2024-03, 2024-W09, 2024-03-05 or 2024-03-05T14:30 stands for all the time that
it names. A record's value must lie inside one cell; a condition must cut between cells.
"""

import datetime
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.domain.columns import (
    OUTSIDE,
    STRANGE,
    Column,
    absent,
    decimal_read,
    is_missing,
    is_number,
    read_distinct,
    settled,
)
from onlineic.domain.hints import in_place_of, no_missing_cell
from onlineic.errors import (
    InvalidDomainError,
    InvalidParameterError,
    InvalidQueryError,
    checked_list,
    shown,
)
from onlineic.slips import public

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
YEARS = (1000, 9998)  # four digits, and room for one more instant on either side
INSTANT = datetime.timedelta(microseconds=1)
MINUTES = {"hour": 60, "minute": 1}
DAYS = 146_097  # of 400 years, after which the calendar begins anew, on the same day of the week
CYCLE = {
    "year": 400, "quarter": 1600, "month": 4800, "week": DAYS // 7, "day": DAYS, "hour": DAYS * 24,
    "minute": DAYS * 1440,
}  # fmt: skip
FAR = 2**40  # days, months, minutes: beyond every domain
PER_DAY = {
    "D": 1, "h": 24, "m": 1440, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9,
}  # fmt: skip
FINER = {"ps": 10**3, "fs": 10**6, "as": 10**9}  # of a nanosecond
EPOCH = datetime.date(1970, 1, 1).toordinal()
# which periods a column of numpy's dates can tell; its own weeks begin on Thursday
TOLD = {"Y": UNITS[:1], "M": UNITS[:3], "W": (), "D": UNITS[:5], "h": UNITS[:6], "generic": ()}

TEXT = re.compile(
    r"(?P<year>\d{4})(?:-?Q(?P<quarter>[1-4])|-W(?P<week>\d\d)|-(?P<month>\d\d)"
    r"(?:-(?P<day>\d\d)"
    r"(?:[T ](?P<clock>\d\d(?::\d\d(?::\d\d(?:[.,]\d+)?)?)?)(?:Z|[+-]\d\d:?\d\d(?::\d\d)?)?)?)?)?",
    re.ASCII,
)

Moment = datetime.datetime
SAMPLE = Moment(2024, 3, 5)
EPOCHS = {"s": 10**6, "ms": 10**3, "us": 1}  # microseconds of one
MOST_TICKS = 2**62
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
SHORT = {name[:3]: at for at, name in enumerate(MONTHS, 1)} | {"sept": 9}
# what the directives of a format read, in English whatever the locale is
READS = {
    "Y": r"[0-9]{4}", "y": r"[0-9]{2}", "m": r"[0-9]{1,2}", "B": "|".join(MONTHS),
    "b": rf"(?:{'|'.join(sorted(SHORT, key=len, reverse=True))})\b", "d": r"[0-9]{1,2}",
    "H": r"[0-9]{1,2}", "I": r"[0-9]{1,2}", "p": r"[ap]\.?(?:m\.?)?", "M": r"[0-9]{1,2}", "S": r"[0-9]{1,2}",
    "f": r"[0-9]{1,9}", "z": r"Z|[+-][0-9]{2}:?[0-9]{2}",
}  # fmt: skip
TOLD_BY = {"y": "Y", "b": "m", "B": "m", "I": "H"}  # directives that tell the same
PIVOT = 69  # two digits from here on are of the 20th century, as in POSIX
EXPECTED = "a list of texts of %Y or %y, %m, %b or %B, %d, %H or %I with %p, %M, %S, %f and %z, each once"


@final
@attrs.frozen
class Dates:
    """The periods of one length from `first` to `last`, both included, in order.

    Args:
        first, last: The first and the last cell, written as their labels.
        by: From year to minute, week and quarter too. Weeks begin on Monday, as in ISO 8601.
        missing: Whether a last cell holds missing values.
        clip: Whether earlier values count in the first cell and later ones in the last.
        markers: Texts that stand for a missing value.
        zone: Time zone, such as "Europe/Paris": values with an offset are taken to local time there, those
            without are local time. Without it values with an offset are refused.
        formats: How texts are written besides ISO 8601, such as "%d.%m.%Y" or "%b-%Y".
        epoch: {"s", "ms", "us"}. Unit of numbers, and of texts of digits, that count from the beginning of
            1970 in UTC.
        others: Whether every value that fits nowhere counts as missing.
    """

    first: str
    last: str
    by: str
    missing: bool = False
    clip: bool = False
    markers: tuple[str, ...] = ()
    zone: str | None = None
    formats: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    others: bool = attrs.field(default=False, kw_only=True)
    column: str | None = attrs.field(default=None, kw_only=True)
    epoch: str | None = attrs.field(default=None, kw_only=True)
    ordered = True

    def __attrs_post_init__(self) -> None:
        if type(self.by) is not str or self.by not in UNITS:
            raise InvalidDomainError(
                f"by must be one of {', '.join(UNITS)}, got {shown(self.by)}; choose one."
            )
        for end in (self.first, self.last):
            if (
                type(end) is not str
                or _stretch(end, self.by) is None
                or _label(self._end(end), self.by) != end
            ):
                sample = _label(_index(SAMPLE, self.by), self.by)
                raise InvalidDomainError(
                    f"dates must begin and end with a {self.by} such as {shown(sample)}, "
                    f"got {shown(end)}; write dates(first, last, by={shown(self.by)})."
                )
        if self._end(self.last) < self._end(self.first):
            raise InvalidDomainError(
                f"dates must run forwards, got {self.first} to {self.last}; swap the ends."
            )
        self._local  # noqa: B018  # an unknown time zone is refused now
        _check_formats(self.formats)
        if self.epoch is not None and (type(self.epoch) is not str or self.epoch not in EPOCHS):
            raise InvalidDomainError(
                f"epoch must be one of {', '.join(EPOCHS)}, got {shown(self.epoch)}; write "
                "epoch='s' for seconds since 1970."
            )

    @cached_property
    def _start(self) -> int:
        return self._end(self.first)

    @cached_property
    def _periods(self) -> int:
        return self._end(self.last) - self._start + 1

    @cached_property
    def _local(self) -> datetime.tzinfo | None:
        if self.zone is None:
            return None
        import zoneinfo  # few attributes have a zone: imported with it

        try:
            return zoneinfo.ZoneInfo(self.zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise InvalidDomainError(
                "zone must be a name of the time zone database such as 'Europe/Paris', got "
                f"{shown(self.zone)}; see zoneinfo.available_timezones()."
            ) from None

    @property
    def size(self) -> int:
        return self._periods + self.missing

    @property
    def rule(self) -> str:
        """What a value must be, in words."""
        return f"a date from {self.first} to {self.last}"

    @property
    def wider(self) -> str:
        """How the domain takes more values."""
        return "widen the dates, declare clip=True, or clean the table"

    @property
    def readable(self) -> str:
        """How the domain takes a column of other texts."""
        zoned = "dates(.., zone='Europe/Paris') for times with an offset such as Z, " * (self.zone is None)
        counted = ", dates(.., epoch='s') for seconds since 1970" * (self.epoch is None)
        return (
            f"declare {zoned}dates(.., formats=['%d/%m/%Y']) for other texts{counted}, "
            "optional(.., missing=['NA']) for gaps, or convert the column"
        )

    @property
    def form(self) -> str:
        """What a column must hold, in words."""
        offsets = (
            "without offset, unless zone= is declared" if self.zone is None else "with or without offset"
        )
        forms = f" or as {', '.join(self.formats)}" if self.formats else ""
        forms += f" or {self.epoch} since 1970" if self.epoch else ""
        return f"dates or ISO texts such as 2024-03-05{forms}, {offsets}, each inside one {self.by}"

    def label(self, code: int) -> str | None:
        """Return the period of a code as text, None for the missing cell."""
        return _label(self._start + int(code), self.by) if code < self._periods else None

    def code(self, name: str, label: Any) -> int:
        """Return the code of the one period that a date, or its text, lies in and fills."""
        if label is None and self.missing:
            return self._periods
        if label is None:
            raise no_missing_cell(name)
        text = moment_text(label)
        stretch = None if text is None else self._stretched(text)
        if stretch is None:
            ends = f"{shown(self.first)}, {shown(self.last)}"
            raise InvalidQueryError(
                f"{name} must be asked by a {self.by} such as {shown(self.first)}, got "
                f"{name}={shown(label)}; "
                f"{in_place_of(name, label) or f'write a date, or between({ends})'}."
            )
        low, high = self._cut(name, stretch[0]), self._cut(name, stretch[1] + INSTANT)
        if high - low != 1:
            raise InvalidQueryError(
                f"{name} must be asked by one {self.by}, got {name}={shown(label)}, which holds "
                f"{high - low}; write between({shown(label)}, {shown(label)})."
            )
        return low

    def interval(self, name: str, low: Any, high: Any, closed: bool) -> tuple[int, int]:
        """Return the half-open code range of [low, high] (closed: all of high) or [low, high)."""
        first, last = 0, self._periods
        if low != -math.inf:
            first = self._cut(name, self._bound(name, low)[0])
        if high != math.inf:
            stretch = self._bound(name, high)
            last = self._cut(name, stretch[1] + INSTANT if closed else stretch[0])
        return first, max(first, last)

    def read(self, column: Column) -> Ints:
        """Return the codes of a column of dates, marks where a value does not fit."""
        missing = absent(column, self.markers)
        cell = self._periods if self.missing else None
        if column.dtype.kind in "iuf" and self.epoch is not None:
            return settled(self._of_ticks(column), missing, cell, self.others)
        if column.dtype.kind == "M":
            return settled(self._of_stamps(column), missing, cell, self.others)
        if column.dtype.kind not in "OU":
            return settled(np.full(len(column), STRANGE, np.int64), missing, cell, self.others)
        return settled(read_distinct(column, self._lookup), missing, cell, self.others)

    def compared(self, text: str) -> tuple[int, int] | None:
        """Return what a comparison with a text is about; None if it names no time.

        It is a half-open stretch of microseconds since the year 1, twice the same for one instant. A time of
        day is an instant; so is a day where cells are hours or minutes: its midnight, as in a database. Else
        a text stands for all the time that it names.
        """
        nearer, calendars = _shift(text) or (text, 0)
        found = TEXT.fullmatch(nearer)
        stretch = self._stretched(nearer)
        if found is None or stretch is None or re.search(r"[.,]\d{6}\d*[1-9]", text):
            return None  # instants are told to the microsecond
        start, after = (
            _microseconds(moment) + calendars * DAYS * 86_400_000_000
            for moment in (stretch[0], stretch[1] + INSTANT)
        )
        clock = found["clock"]
        if clock and len(clock) == 2:  # an hour
            return start, start + 3_600_000_000
        return (start, start) if clock or (found["day"] and self.by in MINUTES) else (start, after)

    def begins(self, code: int) -> int:
        """Return the microsecond, since the year 1, in which a period begins; after the last, its end."""
        if code < self._periods:
            stretch = _stretch(_label(self._start + code, self.by), self.by)
            return _microseconds((stretch or (SAMPLE,))[0])
        stretch = _stretch(self.last, self.by)
        return _microseconds((stretch or (SAMPLE, SAMPLE))[1] + INSTANT)

    def instants(self) -> Column:
        """Return the minutes in which the periods begin, (periods,) datetime64."""
        index = np.arange(self._start, self._start + self._periods)
        if self.by == "year":
            return (index - 1970).astype("M8[Y]").astype("M8[m]")
        if self.by in ("quarter", "month"):
            months = index * (3 if self.by == "quarter" else 1) - 1970 * 12
            return months.astype("M8[M]").astype("M8[m]")
        if self.by in MINUTES:
            return (index * MINUTES[self.by] - EPOCH * 1440).astype("M8[m]")
        days = index if self.by == "day" else index * 7 + 1
        return (days - EPOCH).astype("M8[D]").astype("M8[m]")

    def within(self, unit: str) -> tuple[Ints, list[str]]:
        """Return of every period the number of the longer one that it lies in, from 0, and their labels."""
        index = _indices(self.instants(), unit)
        return index - index[0], [_label(one, unit) for one in range(int(index[0]), int(index[-1]) + 1)]

    def holding(self, microsecond: int) -> int:
        """Return the code of the period in which a microsecond lies, if the domain has it."""
        return _index(_moment(microsecond), self.by) - self._start

    def _of_ticks(self, column: Column) -> Ints:
        """Return the codes of numbers since the beginning of 1970."""
        if self._local is not None:
            return read_distinct(column, self._lookup)
        if column.dtype.kind == "f":
            column = np.floor(np.where(np.isnan(column), 0.0, column))
        ticks = np.clip(column, -MOST_TICKS, MOST_TICKS).astype(np.int64)
        return self._of_stamps(ticks.astype(f"M8[{self.epoch}]"))

    def _of_epoch(self, value: Any) -> int | None:
        """Return the code of a number since the beginning of 1970, or of its text; None of anything else."""
        if isinstance(value, str):
            if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", value.strip()) is None:
                return None
            value = decimal_read(Decimal(value.strip()))
        if not is_number(value) or value != value:
            return None
        unit = EPOCHS[str(self.epoch)]
        ticks = math.floor(min(max(value, -MOST_TICKS), MOST_TICKS))
        past, future = value < -MOST_TICKS, value > MOST_TICKS
        finer = (
            0 if isinstance(value, int | np.integer) or past or future else int((float(value) - ticks) * unit)
        )
        moment = ticks * unit + finer + SINCE
        try:
            local = _moment(moment)
            if self._local is not None:
                local = local.replace(tzinfo=datetime.UTC).astimezone(self._local).replace(tzinfo=None)
            index = _index(local, self.by)
        except OverflowError:
            index = self._start - 1 if moment < 0 else self._start + self._periods
        return self._placed(index)

    def _placed(self, index: int) -> int:
        """Return the code of a period by its number."""
        if self.clip:
            index = min(max(index, self._start), self._start + self._periods - 1)
        return index - self._start if 0 <= index - self._start < self._periods else OUTSIDE

    def _lookup(self, value: Any) -> int:
        found = None if self.epoch is None else self._of_epoch(value)
        if found is not None:
            return found
        text = moment_text(value) or ""
        if self.formats and isinstance(value, str):
            text = _in_iso(text, self.formats)
        shift = _shift(text)
        stretch = self._stretched(text if shift is None else shift[0])
        if stretch is None:
            return STRANGE
        index = _index(stretch[0], self.by)
        if _index(stretch[1], self.by) != index:
            return STRANGE
        if shift is not None:
            index += shift[1] * CYCLE[self.by]
        return self._placed(index)

    def _of_stamps(self, column: Column) -> Ints:
        """Return the codes of numpy's dates; a column of months says nothing of days."""
        unit = np.datetime_data(column.dtype)[0]
        if self.by not in TOLD.get(unit, UNITS):
            return np.full(len(column), STRANGE, np.int64)
        index = _indices(column, self.by)
        codes = index - self._start
        if self.clip:
            return np.clip(codes, 0, self._periods - 1)
        return np.where((codes >= 0) & (codes < self._periods), codes, OUTSIDE)

    def _bound(self, name: str, end: Any) -> tuple[Moment, Moment]:
        text = moment_text(end)
        stretch = None if text is None else self._stretched(text)
        if stretch is None:
            raise InvalidQueryError(
                f"{name} must be cut at dates, got {shown(end)}; write e.g. between({shown(self.first)}, "
                f"{shown(self.last)})."
            )
        return stretch

    def _cut(self, name: str, moment: Moment) -> int:
        """Return how many periods lie before a moment, which must be where one begins."""
        index = _index(moment, self.by)
        code = index - self._start
        if not 0 <= code <= self._periods:
            raise InvalidQueryError(
                f"{name} must be cut inside {self.first} to {self.last}, got {_written(moment)}; for a "
                "one-sided condition write at_least or below with an end inside."
            )
        if _index(moment - INSTANT, self.by) == index:
            inside = _label(index, self.by)
            raise InvalidQueryError(
                f"{name} must be cut where one {self.by} begins, got {_written(moment)}, which is inside "
                f"{inside}; write between or span with {self.by}s such as {shown(inside)}."
            )
        return code

    def _stretched(self, text: str) -> tuple[Moment, Moment] | None:
        return _stretch(text, self.by, self._local)

    def _end(self, text: str) -> int:
        stretch = _stretch(text, self.by)
        return _index((stretch or (SAMPLE,))[0], self.by)


@public
def dates(
    first: Any,
    last: Any,
    by: str = "day",
    *,
    clip: bool = False,
    zone: str | None = None,
    formats: Iterable[str] = (),
    epoch: Literal["s", "ms", "us"] | None = None,
) -> Dates:
    """Return the kind of a date or a time: the periods from `first` to `last`, both included.

    Args:
        first, last: Text, date, datetime, datetime64, or a Timestamp or Period of pandas. Public ends, such
            as "2020-01" and "2024-12".
        by: From year to minute, week and quarter too. Length of one cell; weeks begin on Monday.
        clip: Whether earlier values count in the first cell and later ones in the last; else they are
            refused.
        zone: Time zone such as "Europe/Paris". A value with an offset is taken to local time there, one
            without an offset is local time already. Without `zone` a value with an offset is refused.
        formats: How texts of the table are written besides ISO 8601, such as ["%d.%m.%Y", "%b-%Y"]: by %Y or
            %y, %m, %b (Jan) or %B (January), %d, %H or %I with %p, %M, %S, %f and %z. Names are English. A
            text that two of them read as different times is refused.
        epoch: Numbers, and texts of digits, are seconds (thousandths, millionths) since the beginning of 1970
            in UTC, taken to `zone` if there is one.

    Raises:
        InvalidDomainError: If an end is no date, the ends are swapped, or the unit or the zone is unknown.

    Examples:
        >>> kind = dates("2023-11", "2024-02", by="month")
        >>> kind.size, kind.label(1)
        (4, '2023-12')
    """
    if type(by) is not str or by not in UNITS:
        raise InvalidDomainError(f"by must be one of {', '.join(UNITS)}, got {shown(by)}; choose one.")
    named = []
    for name, end, place in (("first", first, 0), ("last", last, 1)):
        text = moment_text(end)
        stretch = None if text is None else _stretch(text, by)
        if stretch is None:
            raise InvalidDomainError(
                f"{name} must be a date such as '2024-03-05' or '2024-03' without time zone, got "
                f"{shown(end)}; write it so."
            )
        named.append(_label(_index(stretch[place], by), by))
    try:
        listed: list[Any] = [None] if isinstance(formats, str) else checked_list("formats", formats)
    except InvalidParameterError:
        listed = [None]
    _check_formats(listed)
    return Dates(named[0], named[1], by, clip=clip, zone=zone, formats=tuple(listed), epoch=epoch)


def _check_formats(formats: Any) -> None:
    """Refuse what is no list of formats, tells less than a year, or could be read as ISO 8601 too."""
    given: list[Any] = [*formats] if isinstance(formats, (tuple, list)) else [None]
    for form in given:
        told = re.findall("%(.?)", form) if type(form) is str else [""]
        same = [TOLD_BY.get(letter, letter) for letter in told]
        halves = "I" in told, "p" in told
        if not told or not set(told) <= set(READS) or len(set(same)) < len(same) or halves[0] != halves[1]:
            raise InvalidDomainError(
                f"formats must be {EXPECTED}, got {shown(form)}; write formats=['%d.%m.%Y']."
            )
        order = [letter for letter in "YmdHMSf" if letter in same]
        if order != list("YmdHMSf"[: len(order)]) or ("z" in told and "H" not in order):
            raise InvalidDomainError(
                f"formats must tell all from the year down, got {shown(form)}; add what is missing."
            )
        if set(told) <= set("YmdHMS") and TEXT.fullmatch(SAMPLE.strftime(form)):
            raise InvalidDomainError(
                f"formats must differ from ISO 8601, which is read anyway, got {shown(form)}; leave it out."
            )


@lru_cache(maxsize=256)
def _reader(form: str) -> re.Pattern[str]:
    """Return the pattern of a format; blanks stand for any blanks."""
    text = ""
    for part in re.split(r"(%.|\s+)", form):
        if part.startswith("%"):
            text += f"(?P<{part[1]}>{READS[part[1]]})"
        else:
            text += r"\s+" if part.isspace() else re.escape(part)
    return re.compile(text, re.IGNORECASE | re.ASCII)


def _in_iso(text: str, formats: tuple[str, ...]) -> str:
    """Return a text that is written in one of the formats as ISO 8601 writes it; others as they are."""
    found = {iso for form in formats if (iso := by_format(text, form)) is not None}
    if len(found) > 1:
        return ""  # no time: nobody knows which was meant
    return found.pop() if found else text


def by_format(text: str, form: str) -> str | None:
    """Return what a format reads in a text, as ISO 8601 writes it; None if it reads nothing."""
    match = _reader(form).fullmatch(text)
    if match is None:
        return None
    held = {letter: part.lower() for letter, part in match.groupdict().items()}
    numbers = {TOLD_BY.get(one, one): int(part) for one, part in held.items() if part.isdigit()}
    if "y" in held:
        numbers["Y"] += 1900 if numbers["Y"] >= PIVOT else 2000
    if "b" in held or "B" in held:
        numbers["m"] = SHORT.get(held.get("b", "")) or MONTHS.index(held["B"]) + 1
    if "p" in held:
        if not 1 <= numbers["H"] <= 12:
            return None
        numbers["H"] = numbers["H"] % 12 + 12 * held["p"].startswith("p")
    try:
        year, month, day, hour, minute, second = (int(numbers.get(one, one in "md")) for one in "YmdHMS")
        Moment(year, month, day, hour, minute, second)
    except ValueError:  # a 30th of February
        return None
    signs = zip(("", "-", "-", "T", ":", ":"), "YmdHMS", strict=True)
    iso = "".join(f"{sign}{numbers[letter]:02}" for sign, letter in signs if letter in numbers)
    iso += f".{held['f'][:6]}" if "f" in held else ""
    offset = held.get("z", "").upper()
    return iso + (offset if offset in ("", "Z") else f"{offset[:3]}:{offset[-2:]}")


def moment_text(value: Any) -> str | None:
    """Return what a date is written as, None for what is neither a date nor a text."""
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return None
    if isinstance(value, np.datetime64):  # numpy's weeks begin on Thursday
        return None if np.datetime_data(value.dtype)[0] in ("W", "generic") else str(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if type(value).__name__ != "Period":
        return None
    try:  # its own text does not say how long it is, nor when a fiscal year begins
        return f"{value.start_time.isoformat()}/{value.end_time.isoformat()}"
    except (AttributeError, ValueError):  # of another library, or beyond the times of pandas
        return None


def _shift(text: str) -> tuple[str, int] | None:
    """Return a text of a year beyond `YEARS` some whole calendars nearer, and how many; None of others.

    Years 1 and 9999 stand for "always" and "for ever" in many tables: they are outside every domain.
    """
    year = text[:4]
    if not (year.isascii() and year.isdigit()) or year == "0000" or YEARS[0] <= int(year) <= YEARS[1]:
        return None
    calendars = 1 if int(year) > YEARS[1] else -4
    return f"{int(year) - 400 * calendars:04}{text[4:]}", calendars


def names_time(text: str) -> bool:
    """Whether a text has the form of a date or a time."""
    return all(TEXT.fullmatch(part) for part in text.split("/", 1))


def beginning(text: str) -> Moment | None:
    """Return the first moment of what a text of ISO 8601 names, in UTC; None if it names no time."""
    stretch = _stretch(text, "day", datetime.UTC)
    return None if stretch is None else stretch[0]


def _stretch(text: str, by: str, zone: datetime.tzinfo | None = None) -> tuple[Moment, Moment] | None:
    """Return the first and the last instant of what a text names, in local time; None if it names no time."""
    if "/" in text:  # pandas writes a week by its days
        first, _, last = text.partition("/")
        ends = _stretch(first, by, zone), _stretch(last, by, zone)
        return None if ends[0] is None or ends[1] is None else (ends[0][0], ends[1][1])
    found = TEXT.fullmatch(text)
    if found is None or not YEARS[0] <= int(found["year"]) <= YEARS[1]:
        return None
    try:
        start, after = _named(found, by, zone)
    except (ValueError, OverflowError):  # a 30th of February
        return None
    return start, after - INSTANT


def _named(found: re.Match[str], by: str, zone: datetime.tzinfo | None) -> tuple[Moment, Moment]:
    """Return the beginning and the end of what was found, the end excluded."""
    year = int(found["year"])
    if found["quarter"]:
        start = Moment(year, 3 * int(found["quarter"]) - 2, 1)
        return start, _months_on(start, 3)
    if found["week"]:
        start = Moment.fromisocalendar(year, int(found["week"]), 1)
        return start, start + datetime.timedelta(days=7)
    if found["clock"]:
        return _clocked(found, by, zone)
    start = Moment(year, int(found["month"] or 1), int(found["day"] or 1))
    if found["day"]:
        return start, start + datetime.timedelta(days=1)
    return start, _months_on(start, 1 if found["month"] else 12)


def _clocked(found: re.Match[str], by: str, zone: datetime.tzinfo | None) -> tuple[Moment, Moment]:
    """Return the hour, the minute or the instant of a time of day.

    Where a domain counts days, midnight names the day: dates often come with a time of 0. Where it counts
    hours, a full hour names the hour, and so for minutes.
    """
    moment = Moment.fromisoformat(found[0])
    if moment.tzinfo is not None:
        if zone is None:
            raise ValueError
        moment = moment.astimezone(zone).replace(tzinfo=None)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if by not in MINUTES and moment == day:
        return moment, moment + datetime.timedelta(days=1)
    written = {2: 60, 5: 1}.get(len(found["clock"]), 0)
    counted = MINUTES.get(by, 0)
    if counted and (moment - day) % datetime.timedelta(minutes=counted) == datetime.timedelta():
        written = max(written, counted)
    return moment, moment + (datetime.timedelta(minutes=written) if written else INSTANT)


def _months_on(start: Moment, months: int) -> Moment:
    index = start.year * 12 + start.month - 1 + months
    return Moment(index // 12, index % 12 + 1, 1)


def _index(moment: Moment, by: str) -> int:
    """Return the number of the period that a moment lies in, counted from the year 0 or the first day."""
    if by == "year":
        return moment.year
    if by in ("quarter", "month"):
        months = moment.year * 12 + moment.month - 1
        return months // 3 if by == "quarter" else months
    days = moment.toordinal()  # the first was a Monday
    if by in ("week", "day"):
        return (days - 1) // 7 if by == "week" else days
    return (days * 1440 + moment.hour * 60 + moment.minute) // MINUTES[by]


def _indices(column: Column, by: str) -> Ints:
    """Return `_index` of a column of numpy's dates.

    Numpy's own way to a coarser unit wraps around near the least stamp. Stamps far beyond every domain are
    brought nearer, those that are missing are any number.
    """
    unit, count = np.datetime_data(column.dtype)
    if unit == "generic":  # nothing but missing values
        return np.zeros(len(column), np.int64)
    stamps = np.where(np.isnat(column), np.zeros(1, column.dtype), column)
    most = (2**63 - 1) // count
    ticks: Ints = np.clip(stamps.astype(np.int64), -most, most) * count
    if unit in FINER:
        ticks, unit = ticks // FINER[unit], "ns"
    if unit in ("Y", "M"):
        months = np.clip(ticks, -FAR, FAR) * (12 if unit == "Y" else 1) + 1970 * 12
    elif by in MINUTES:
        held = 60 if unit == "h" else 1  # minutes in what ticks are cut to
        minutes = np.clip(ticks // max(PER_DAY[unit] // 1440, 1), -FAR, FAR) * held
        return (minutes + EPOCH * 1440) // MINUTES[by]
    else:
        days = np.clip(ticks // PER_DAY[unit], -FAR, FAR)
        if by in ("week", "day"):
            days = days + EPOCH
            return (days - 1) // 7 if by == "week" else days
        months = days.astype("M8[D]").astype("M8[M]").astype(np.int64) + 1970 * 12
    return months // {"year": 12, "quarter": 3}.get(by, 1)


def _label(index: int, by: str) -> str:
    if by == "year":
        return f"{index:04}"
    if by == "quarter":
        return f"{index // 4:04}-Q{index % 4 + 1}"
    if by == "month":
        return f"{index // 12:04}-{index % 12 + 1:02}"
    if by == "week":
        iso = datetime.date.fromordinal(index * 7 + 1).isocalendar()
        return f"{iso.year:04}-W{iso.week:02}"
    if by == "day":
        return datetime.date.fromordinal(index).isoformat()
    days, minutes = divmod(index * MINUTES[by], 1440)
    clock = f"{minutes // 60:02}" if by == "hour" else f"{minutes // 60:02}:{minutes % 60:02}"
    return f"{datetime.date.fromordinal(days).isoformat()}T{clock}"


def moment_written(microsecond: int) -> str:
    """Return a microsecond since the year 1 as a text: midnight as its day."""
    try:
        return _written(_moment(microsecond))
    except OverflowError:
        return "a time after 9999"


SINCE = (Moment(1970, 1, 1) - Moment.min) // INSTANT


def _microseconds(moment: Moment) -> int:
    return (moment - Moment.min) // INSTANT


def _moment(microsecond: int) -> Moment:
    return Moment.min + microsecond * INSTANT


def _written(moment: Moment) -> str:
    return moment.isoformat() if moment.time() != datetime.time() else moment.date().isoformat()
