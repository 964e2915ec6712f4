"""Records from a CSV file, by column: every distinct text is read once, and rows become small integers."""

import csv
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np

from onlineic._typing import Ints
from onlineic.data.rows import Column, narrowest
from onlineic.domain.attributes import Attribute, Binned, Categorical, outside_error
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidDataError

LINES = 2**9  # that are taken together: their texts stay in the processor's cache
DISTINCT = 2**18  # texts of one column that are remembered
ABSENT, OUTSIDE, NO_NUMBER = -1, -2, -3  # in the place of a code


def read_csv(
    path: str | os.PathLike[str], domain: Domain, count: str | None
) -> tuple[list[Column], Ints | None]:
    """Return the column of codes of every attribute, and that of the counts, if there is one.

    Raises
    ------
    InvalidDataError
        If this is no CSV table with these columns, or a value lies outside the domain.
    """
    columns = [_Codes(name, kind) for name, kind in domain]
    counts: _Numbers | None = None if count is None else _Numbers()
    ragged: int | None = None  # the first row of another length
    header: list[str] = []
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, skipinitialspace=True)
            header = next(reader, [])
            wanted = [*domain.names, *([] if count is None else [count])]
            places = [header.index(name) if header.count(name) == 1 else -1 for name in wanted]
            start = 0
            for rows in _chunks(reader):
                if ragged is None and {*map(len, rows)} - {len(header)}:
                    ragged = start + next(at for at, row in enumerate(rows) if len(row) != len(header))
                if ragged is None and -1 not in places:
                    fields = [*zip(*rows, strict=True)] or [()] * len(header)
                    for column, place in zip(columns, places, strict=False):
                        column.take(fields[place])
                    if counts is not None:
                        counts.take(fields[places[-1]])
                start += len(rows)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidDataError(f"the file must be a CSV table in UTF-8, got {error}; convert it.") from None
    for name in wanted:
        if header.count(name) != 1:
            raise InvalidDataError(
                f"the file must have one column for {name}, got {header.count(name)}; see its header."
            )
    if ragged is not None:
        raise InvalidDataError(
            f"every line must have {len(header)} fields, got another number in row {ragged}."
        )
    if counts is not None and counts.bad:
        raise InvalidDataError(f"{count} must hold whole numbers, got another value; correct the column.")
    weights = None if counts is None else counts.array()
    return [column.array() for column in columns], weights


def _chunks(reader: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    """Yield the rows of a table, but for empty lines, many at a time."""
    while lines := list(itertools.islice(reader, LINES)):
        yield [row for row in lines if row]


class _Remembered(dict[str, int]):
    """What number stands for a text; one that was not met before is read now."""

    def __init__(self, read: Any) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: str) -> int:
        number = self[text] = self._read(text)
        return int(number)

    def numbers(self, texts: Sequence[str]) -> Ints:
        """Return the number of every text."""
        found = np.fromiter(map(self.__getitem__, texts), np.int64, len(texts))
        if len(self) > DISTINCT:
            self.clear()
        return found


@final
class _Codes:
    """One attribute's column, as it is read."""

    def __init__(self, name: str, kind: Attribute) -> None:
        self._name, self._kind, self._type = name, kind, narrowest(kind.size)
        self._known = _Remembered(self._code)
        self._parts: list[Column] = []
        self._rows = 0
        self._bad: dict[int, tuple[int, int, Any]] = {}  # how many rows, the first of them, its value

    def take(self, texts: Sequence[str]) -> None:
        codes = self._known.numbers(texts)
        if codes.size and codes.min() < 0:
            for wrong in (ABSENT, OUTSIDE, NO_NUMBER):
                rows = np.flatnonzero(codes == wrong)
                if len(rows):
                    first = (self._rows + int(rows[0]), _parse(self._kind, texts[rows[0]]))
                    known, *first_known = self._bad.get(wrong, (0, *first))
                    self._bad[wrong] = (known + len(rows), *first_known)
        self._parts.append(codes.astype(self._type))
        self._rows += len(texts)

    def array(self) -> Column:
        """Return the codes of all rows, or raise what `encode` would of the column."""
        if NO_NUMBER in self._bad:
            raise InvalidDataError(f"{self._name} must be a column of numbers, got other values.")
        if ABSENT in self._bad:
            raise outside_error(self._name, *self._bad[ABSENT], "declare it optional(...)")
        if OUTSIDE in self._bad:
            raise outside_error(self._name, *self._bad[OUTSIDE])
        parts, self._parts = self._parts, []
        return np.concatenate(parts) if parts else np.zeros(0, self._type)

    def _code(self, text: str) -> int:
        """Return the code of a text, or what is wrong with it."""
        value = _parse(self._kind, text)
        try:
            return int(self._kind.encode(self._name, np.array([value], object))[0])
        except InvalidDataError:
            if value is None or value != value:
                return ABSENT
            return NO_NUMBER if isinstance(self._kind, Binned) and isinstance(value, str) else OUTSIDE


@final
class _Numbers:
    """The column of counts, as it is read."""

    def __init__(self) -> None:
        self._known = _Remembered(self._number)
        self._parts: list[Ints] = []
        self.bad = False

    def take(self, texts: Sequence[str]) -> None:
        self._parts.append(self._known.numbers(texts))

    def array(self) -> Ints:
        return np.concatenate(self._parts) if self._parts else np.zeros(0, np.int64)

    def _number(self, text: str) -> int:
        try:
            return int(np.int64(_integer(text)))
        except (ValueError, OverflowError):
            self.bad = True
            return 0


def _integer(text: str) -> int:
    """Return an integer written in plain digits: int() would take 1_000 too."""
    if "_" in text:
        raise ValueError
    return int(text)


def _parse(kind: Attribute, text: str) -> Any:
    """Read one CSV field as the attribute's type; unreadable text is left for `encode` to refuse."""
    if text == "" and (kind.missing or not isinstance(kind, Categorical) or "" not in kind.labels):
        return None
    if isinstance(kind, Categorical):
        if isinstance(kind.labels[0], bool):
            return {"true": True, "false": False, "1": True, "0": False}.get(text.lower(), text)
        if isinstance(kind.labels[0], str):
            return text
    try:
        if isinstance(kind, Binned) or "." in text:  # 17.0: an integer column with gaps, exported
            return text if "_" in text else float(text)
        return _integer(text)
    except ValueError:
        return text
