"""Records from a CSV file, by column: every distinct text is read once, and rows become small integers."""

import codecs
import csv
import io
import itertools
import math
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, TextIO, cast, final

import attrs
import numpy as np

from onlineic._typing import Bools, Ints
from onlineic.data.coding import Codes
from onlineic.data.file_parts import (
    BYTEWISE,
    DELIMITERS,
    LINES,
    Fields,
    Rows,
    Slots,
    byte_parts,
    headed,
    names_between,
)
from onlineic.data.files import opened
from onlineic.data.persons import Parted, Persons
from onlineic.data.rows import Column
from onlineic.domain.attributes import EXACT, Binned, Categorical, FineBins, IntegerRange
from onlineic.domain.columns import STRANGE, column_array, decimal_read, plain, source_of
from onlineic.domain.dates import Dates
from onlineic.domain.domain import Domain, nearest_column, persons_of_column
from onlineic.domain.misfits import Misfit, refuse
from onlineic.errors import (
    InvalidParameterError,
    shown,
)

DISTINCT = 2**18  # texts of one column that are remembered
TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def _texts(given: Any) -> tuple[Any, ...]:
    """Return texts as a tuple, a single one too; anything else comes back in a tuple, and is refused."""
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


@final
@attrs.frozen
class CsvFormat:
    """How a CSV file is written.

    Args:
        delimiter: One character.
        encoding: Name of the encoding; a byte order mark is skipped in UTF-8.
        decimal: "." or ",". What stands before the fraction of a number.
        skipinitialspace: Whether blanks after a delimiter are no part of the field.
        missing: Texts that are missing values in every column, but where they are labels. An empty field
            always is.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    skipinitialspace: bool = True
    missing: tuple[str, ...] = attrs.field(default=(), converter=_texts)

    def __attrs_post_init__(self) -> None:
        if not all(type(text) is str for text in self.missing):
            raise InvalidParameterError(
                f"missing must be a list of texts, got {shown(self.missing)}; write missing=['NA', '?']."
            )
        if type(self.delimiter) is not str or len(self.delimiter) != 1 or self.delimiter in '\r\n"':
            raise InvalidParameterError(
                f"delimiter must be one character, got {shown(self.delimiter)}; write delimiter=';' or '\\t'."
            )
        if self.decimal not in (".", ",") or type(self.decimal) is not str:
            raise InvalidParameterError(f"decimal must be '.' or ',', got {shown(self.decimal)}; choose one.")
        if type(self.skipinitialspace) is not bool:
            raise InvalidParameterError(
                f"skipinitialspace must be True or False, got {shown(self.skipinitialspace)}; choose one."
            )
        try:
            text = codecs.lookup(self.encoding)
            codecs.decode(b"", text.name)  # base64 and others are no texts
            "".encode(text.name)
        except (LookupError, TypeError, ValueError, UnicodeError):
            raise InvalidParameterError(
                f"encoding must be the name of a text encoding, got {shown(self.encoding)}; write 'utf-8' or "
                "'latin-1'."
            ) from None

    def open(self, path: str | os.PathLike[str], errors: str = "strict") -> TextIO:
        """Open a file of this format."""
        marked = codecs.lookup(self.encoding).name == "utf-8"
        encoding = "utf-8-sig" if marked else self.encoding
        return io.TextIOWrapper(io.BufferedReader(opened(path)), encoding, errors, newline="")

    def parts(self, path: str | os.PathLike[str]) -> "Iterator[list[str] | Rows | Fields]":
        """Yield the header of a file, then its lines: as bytes where that can be, else as rows."""
        name = codecs.lookup(self.encoding).name.removesuffix("-sig")
        if name in BYTEWISE and self.delimiter.isascii() and self.delimiter != " ":
            with opened(path) as file:
                yield from byte_parts(file, self.delimiter, name, self.skipinitialspace)
            return
        with self.open(path) as text:
            header, reader = self.headed(text)
            yield header
            while lines := list(itertools.islice(reader, LINES)):
                yield [row for row in lines if row]

    def headed(self, file: TextIO) -> tuple[list[str], Any]:
        """Return the header of a file, and a reader of its records, which knows its line number."""
        return headed(file, self.delimiter, self.skipinitialspace)

    def check_delimiter(self, header: list[str], names: Collection[str] = ()) -> None:
        """Raise `InvalidParameterError` if another delimiter finds several names in a header, or these."""
        if len(header) != 1 or header[0] in names:
            return
        for mark in DELIMITERS:
            held = names_between(mark, header[0])
            if len(held) > 1 and (not names or {*names} & {*held}):
                raise InvalidParameterError(
                    f"delimiter must be that of the file, got {shown(self.delimiter)}, where its header has "
                    f"another; write delimiter={shown(mark)}."
                )


def read_csv(
    path: str | os.PathLike[str], domain: Domain | Parted, count: str | None, form: CsvFormat
) -> tuple[list[Column], Ints | None]:
    """Return the column of codes of every attribute, and that of the counts, if there is one.

    Raises:
        InvalidParameterError: If its header has the columns between other delimiters.
        InvalidDataError: If this is no CSV table with these columns, or values lie outside the domain: all
            columns are named.
    """
    columns = text_columns(domain, count, form)
    found: list[Misfit] = []
    try:
        parts = form.parts(path)
        header = cast("list[str]", next(parts))
        form.check_delimiter(header, [column.source for column in columns])
        places, found = header_places(header, columns)
        ragged = False
        for part in parts:
            if isinstance(part, Fields):
                for column, place in places:
                    column.take_fields(part, place)
                continue
            rows = cast(Rows, part)
            if {*map(len, rows)} - {len(header)}:
                ragged, rows = True, [row for row in rows if len(row) == len(header)]
            fields = [*zip(*rows, strict=True)]
            if fields:
                for column, place in places:
                    column.take(fields[place])
        found += [RAGGED] * ragged
    except UnicodeError:
        refuse([unreadable(form)])
    except csv.Error:
        refuse([unquoted()])
    for column in columns:
        found += column.misfits()
    refuse(found)
    codes = [column.array() for column in columns]
    return codes[: len(domain.names)], None if count is None else codes[-1]


def text_columns(domain: Iterable[tuple[str, Any]], count: str | None, form: CsvFormat) -> "list[TextCodes]":
    """Return the columns that are to be read, each with what it has read; that of counts is the last."""
    kinds = [*domain, *([] if count is None else [(count, Counts())])]
    return [TextCodes(name, kind, form) for name, kind in kinds]


def header_places(
    header: list[str], columns: "Sequence[TextCodes]"
) -> "tuple[list[tuple[TextCodes, int]], list[Misfit]]":
    """Return the place of each column in the header, and what is wrong with those that have none.

    A first line without any of the names may be a record: nothing of it is told.
    """
    places, found = [], []
    is_named = is_header(header, columns)
    for column in columns:
        times = header.count(column.source)
        if times == 1:
            places.append((column, header.index(column.source)))
        else:
            what = persons_of_column(column.name) if isinstance(column.kind, Persons) else column.source
            rule = f"the file must have one column for {what}, got {times}"
            if times:
                remedy = "rename one of them"
            elif is_named:
                remedy = nearest_column(column.source, header)
            else:
                remedy = "give it a header line"
            found.append(Misfit(column.name, rule, remedy))
    return places, found


def is_header(line: list[str], columns: "Sequence[TextCodes]") -> bool:
    """Return whether a line names any of the columns."""
    return any(column.source in line for column in columns)


RAGGED = Misfit(
    "", "every line must have as many fields as the header, got others", "quote what holds a delimiter"
)


def unreadable(form: CsvFormat) -> Misfit:
    """Return the misfit of a file in another encoding."""
    rule = f"the file must be a CSV table in {form.encoding.upper()}, got other bytes"
    return Misfit("", rule, "name its encoding=, or convert it")


def unquoted() -> Misfit:
    """Return the misfit of a file with a quote that is not closed, or with a field that is too long."""
    rule = (
        f"the file must be a CSV table of fields of at most {csv.field_size_limit():,} characters, in quotes "
        "that end before a delimiter or a line does, got others"
    )
    return Misfit("", rule, "close the quotes, and double those inside a field")


@final
class Counts:
    """The column of how many records a row stands for, read as an attribute is."""

    size, missing, ordered, markers = 2**63, False, False, ()
    rule = wider = ""  # nothing is of the right type and outside
    form, readable = "whole numbers >= 0", "correct the column"

    def read(self, column: Column) -> Ints:
        """Return the number of every row, marks where there is none."""
        numbers = map(plain, column)
        good = (value if type(value) is int and 0 <= value < self.size else STRANGE for value in numbers)
        return np.fromiter(good, np.int64, len(column))


@final
class TextCodes:
    """One column of a file, as it is read."""

    def __init__(self, name: str, kind: Any, form: CsvFormat) -> None:
        self.name, self.kind, self._form, self._codes = name, kind, form, Codes(name, kind)
        self.source = source_of(name, kind)
        self._known: dict[str, int] = {}
        self._slots = Slots()
        # a marker that may read as a number is looked for as text
        marked = any(character.isdigit() for text in (*kind.markers, *form.missing) for character in text)
        # texts that the kind reads in a way of its own may look like plain ones
        if isinstance(kind, Dates):
            plain = kind.zone is None and kind.epoch is None
        else:
            plain = isinstance(kind, Binned | IntegerRange) and not kind.numerals
        self._read_plain = self._plain if plain and not marked else None

    def take(self, texts: Sequence[str]) -> None:
        """Read some fields more."""
        self._codes.keep(self.codes(texts))

    def take_fields(self, fields: Fields, place: int) -> None:
        """Read one column of some lines more."""
        self._codes.keep(self._slots.numbers(fields, place, self.codes, self._read_plain))

    def _plain(self, fields: Fields, starts: Ints, ends: Ints) -> tuple[Ints, Bools]:
        """Return the codes of plain numbers or moments, as `codes` has them, and which fields are such."""
        column: Column
        if isinstance(self.kind, Dates):
            column, sizes, known = fields.moments(starts, ends)
            if self.kind.by in ("hour", "minute"):
                known &= sizes > 10  # a day is in no hour
        else:
            whole, decimals, known = fields.numbers(starts, ends, self._form.decimal)
            if isinstance(self.kind, Binned):
                column = whole / 10.0 ** np.maximum(decimals, 0)
            else:
                column, known = whole, known & (decimals < 0)
        codes = np.zeros(len(starts), np.int64)
        codes[known] = self.kind.read(column[known])
        return codes, known

    def codes(self, texts: Sequence[str]) -> Ints:
        """Return the code of every text, or the mark of what is wrong with it."""
        new = [text for text in set(texts) if text not in self._known]
        if new:
            if len(self._known) > DISTINCT:
                self._known.clear()
                new = list(set(texts))
            values = column_array(self.name, [parsed(self.kind, text, self._form) for text in new])
            self._known.update(zip(new, self.kind.read(values).tolist(), strict=True))
        return np.fromiter(map(self._known.__getitem__, texts), np.int64, len(texts))

    def misfits(self) -> list[Misfit]:
        """Return which rules the column broke so far."""
        return self._codes.misfits()

    def array(self) -> Column:
        """Return the codes of all rows."""
        return self._codes.array()


def _integer(text: str) -> int:
    """Return an integer written in plain digits: int() would take 1_000 too."""
    if "_" in text:
        raise ValueError
    return int(text)


def parsed(kind: Any, text: str, form: CsvFormat) -> Any:
    """Read one field as its kind's type; text that is not of the type is left for the kind to refuse."""
    if isinstance(kind, Counts):
        try:
            return _integer(text)
        except ValueError:
            return text
    if text in kind.markers:
        return None
    if isinstance(kind, Categorical):
        if text == kind.other or any(text == word for word, _ in kind.synonyms):
            return text
        first = kind.labels[0]
        if isinstance(first, str):
            absent = (text == "" or text in form.missing) and text not in kind.labels
            return None if absent else text
    if isinstance(kind, Persons):
        text = text.strip()
    if text == "" or text in form.missing:
        return None
    if isinstance(kind, Categorical) and isinstance(kind.labels[0], bool):
        return TRUTHS.get(text.lower(), text)
    if isinstance(kind, (Dates, Persons)) or (not isinstance(kind, Categorical) and kind.numerals):
        return text  # read by the kind itself
    if form.decimal != ".":
        if "." in text:  # of thousands, perhaps
            return text
        text = text.replace(form.decimal, ".")
    try:
        if isinstance(kind, (Binned, FineBins)) or "." in text:  # 17.0: an integer column with gaps, exported
            if "_" in text:
                return text
            number = float(text)
            return decimal_read(Decimal(text)) if EXACT <= abs(number) < math.inf else number
        return _integer(text)
    except ValueError:
        return text
