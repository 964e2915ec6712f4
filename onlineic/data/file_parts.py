"""A CSV file in parts: bytes and the places of their fields, or rows where quotes and others forbid it.

Both say the same of a file, field for field. Bytes are read by whole columns, without an object a field; rows
come from the `csv` module, which knows every oddity.
"""

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, final

import numpy as np

from onlineic._typing import Bools, Ints, Words

Rows = list[list[str]]

BLOCK = 2**18  # bytes that are taken together: what is made on the way stays in the processor's cache
LINES = 2**9  # rows that are taken together
DELIMITERS = ",;\t|:"  # that a file may have in place of the one that was named
WORD, MOST_WORDS = 8, 4  # bytes, and words of a field that is compared as integers
SLOTS = 14  # bits
DIGITS, LONGEST = 15, 17  # of a number that a double holds exactly, and with its sign and point
MOMENT = ((0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2))  # where the parts of a moment stand, and digits
SEPARATORS = ((4, list(b"-")), (7, list(b"-")), (10, list(b"T ")), (13, list(b":")), (16, list(b":")))
# of an encoding in which a byte below 128 is always the character of that number
BYTEWISE = frozenset({"utf-8", "ascii", "iso8859-1", "iso8859-15", "cp1252"})
MARK = b"\xef\xbb\xbf"
ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
FACTORS = tuple(map(np.uint64, ODD))
KEPT = np.array([(1 << 8 * size) - 1 for size in range(WORD + 1)], np.uint64)  # the first bytes of a word


@final
class Fields:
    """Whole lines of as many plain fields each.

    Args:
        block: The lines, without quotes.
        ends: Shape (rows, fields). Where each field ends.
        blanks: Whether blanks at the start of a field are to be skipped.
    """

    def __init__(self, block: bytes, ends: Ints, encoding: str, blanks: bool) -> None:
        self._block, self._ends, self._encoding, self._blanks = block, ends, encoding, blanks
        self._bytes = np.frombuffer(block, np.uint8)

    def column(self, place: int) -> tuple[Ints, Ints]:
        """Return where the fields of a column start and end, (rows,) each."""
        ends = self._ends[:, place]
        starts = np.empty(len(ends), np.int64)
        if place:
            np.add(self._ends[:, place - 1], 1, out=starts)
        else:
            starts[0] = 0
            np.add(self._ends[:-1, -1], 1, out=starts[1:])
        if place == self._ends.shape[1] - 1 and self._block[ends[0] - 1] == 13:
            ends = ends - 1  # every line ends so
        while self._blanks:
            blank = (self._bytes[starts] == 32) & (starts < ends)
            if not blank.any():
                break
            starts += blank
        return starts, ends

    def texts(self, starts: Ints, ends: Ints) -> list[str]:
        """Return fields as texts."""
        block, encoding = self._block, self._encoding
        return [
            block[start:end].decode(encoding)
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]

    def words(self, starts: Ints, sizes: Ints, count: int) -> list[Words]:
        """Return fields of at most 8 `count` bytes as integers, zeros after their ends."""
        padded = np.frombuffer(self._block + bytes(WORD * (count + 1)), np.uint8)
        view = np.ndarray((len(padded) - WORD,), np.dtype("<u8"), padded, strides=(1,))
        found = []
        for word in range(count):
            kept = KEPT[np.clip(sizes - WORD * word, 0, WORD)]
            found.append(view[starts + WORD * word] & kept)
        return found

    def numbers(self, starts: Ints, ends: Ints, point: str) -> tuple[Ints, Ints, Bools]:
        """Return (whole numbers, decimals, known): fields that are known are whole / 10^decimals, exactly.

        Decimals are -1 without a point. Known are at most 15 digits with at most one point among them and a
        minus before.
        """
        sizes = ends - starts
        letters = self._letters(starts, max(1, min(LONGEST, int(sizes.max(initial=0)))))
        rows = len(starts)
        whole, points = np.zeros(rows, np.int64), np.zeros(rows, np.int8)
        digits, decimals = np.zeros(rows, np.int8), np.zeros(rows, np.int8)
        known = sizes <= LONGEST
        negative = letters[0] == ord("-")
        narrow = np.minimum(sizes, LONGEST).astype(np.int8)
        for place, letter in enumerate(letters):
            number = letter - 48  # of what is no digit at least 10: bytes wrap around
            digit = number < 10
            behind = narrow <= place
            digit &= ~behind
            marks = (letter == ord(point)) & ~behind
            points += marks
            known &= digit | marks | behind | (negative if place == 0 else False)
            whole = np.where(digit, whole * 10 + number, whole)
            digits += digit
            decimals += digit & (points > 0)
        known &= (digits > 0) & (digits <= DIGITS) & (points <= 1)
        decimals[points == 0] = -1
        return np.where(negative, -whole, whole), decimals.astype(np.int64), known

    def moments(self, starts: Ints, ends: Ints) -> tuple[Any, Ints, Bools]:
        """Return (datetime64[s], sizes, known) of fields such as 2024-03-05, 2024-03-05T14:30 or ..14:30:15.

        Known are days that there are, of the years 1000 to 9998.
        """
        sizes = ends - starts
        letters = self._letters(starts, 19)
        known = (sizes == 10) | (sizes == 16) | (sizes == 19)
        parts = []
        for place, count in MOMENT:
            number, within = np.zeros(len(starts), np.int32), place < sizes
            for letter in letters[place : place + count]:
                known &= (letter - 48 < 10) | ~within
                number = number * 10 + (letter - 48)
            parts.append(np.where(within, number, 0))
        for place, signs in SEPARATORS:
            seen = letters[place] == signs[0]
            for sign in signs[1:]:
                seen |= letters[place] == sign
            known &= seen | (place >= sizes)
        year, month, day, hour, minute, second = parts
        known &= (year >= 1000) & (year <= 9998) & (month >= 1) & (month <= 12) & (day >= 1)
        known &= (hour < 24) & (minute < 60) & (second < 60)
        months = np.where(known, (year - 1970) * 12 + month - 1, 0)
        least = int(months.min(initial=0))  # a table of the months in between: few
        first = (
            np.arange(least, int(months.max(initial=0)) + 2).astype("M8[M]").astype("M8[D]").astype(np.int64)
        )
        begun = first[months - least]
        known &= day <= first[months - least + 1] - begun
        seconds = ((begun + day - 1) * 24 + hour) * 3600 + minute * 60 + second
        return seconds.astype("M8[s]"), sizes, known

    def _letters(self, starts: Ints, count: int) -> Words:
        """Return the first bytes of fields, and what stands after them, (count, rows) uint8."""
        padded = np.frombuffer(self._block + bytes(count), np.uint8)
        windows = np.ndarray((len(self._block), count), np.uint8, padded, strides=(1, 1))
        return np.ascontiguousarray(windows[starts].T)


Read = Callable[[Sequence[str]], Ints]
ReadPlain = Callable[[Fields, Ints, Ints], tuple[Ints, Bools]]


def _read(fields: Fields, starts: Ints, ends: Ints, read: Read, read_plain: ReadPlain | None) -> Ints:
    """Return the number of every field, of plain ones without making a text of each."""
    if read_plain is None:
        return read(fields.texts(starts, ends))
    numbers, known = read_plain(fields, starts, ends)
    rows = np.flatnonzero(~known)
    if len(rows):
        numbers[rows] = read(fields.texts(starts[rows], ends[rows]))
    return numbers


@final
class Slots:
    """The numbers of texts that were met before, found by the bytes of whole columns."""

    def __init__(self) -> None:
        self._words: list[Words] = []
        self._numbers = np.zeros(1 << SLOTS, np.int64)
        self._taken = np.zeros(1 << SLOTS, bool)
        self._idle = False  # a column of ever new texts

    def numbers(
        self,
        fields: Fields,
        place: int,
        read: Read,
        read_plain: ReadPlain | None = None,
    ) -> Ints:
        """Return the number of every field of a column; what was not met before is read as text.

        Args:
            read: (texts) -> int64 array.
            read_plain: (fields, starts, ends) -> (int64 array, mask). The same of the plain ones among ever
                new texts, and which they are.
        """
        starts, ends = fields.column(place)
        sizes = ends - starts
        count = max(1, -(-int(sizes.max()) // WORD))
        if count > MOST_WORDS or self._idle:
            return _read(fields, starts, ends, read, read_plain)
        while len(self._words) < count:
            self._words.append(np.zeros(1 << SLOTS, np.uint64))
        words = fields.words(starts, sizes, count)
        slots = self._slots(words)
        new = self._unknown(words, slots)
        numbers = self._numbers[slots]
        if new.any():
            rows = np.flatnonzero(new)
            self._idle = min(len(rows) / len(new), np.count_nonzero(self._taken) / len(self._taken)) > 0.5
            found = _read(fields, starts[rows], ends[rows], read, read_plain)
            numbers[rows] = found
            self._keep([word[rows] for word in words], slots[rows], found)
        return numbers

    def _slots(self, words: list[Words]) -> Ints:
        mixed = words[0] * FACTORS[0]
        for word, factor in zip(words[1:], FACTORS[1:], strict=False):
            mixed ^= word * factor
        return (mixed >> np.uint64(64 - SLOTS)).view(np.int64)

    def _unknown(self, words: list[Words], slots: Ints) -> Bools:
        new = ~self._taken[slots]
        for place, known in enumerate(self._words):
            new |= known[slots] != (words[place] if place < len(words) else 0)
        return new

    def _keep(self, words: list[Words], slots: Ints, numbers: Ints) -> None:
        """Remember one text in each slot that is free."""
        free = np.flatnonzero(~self._taken[slots])
        slots, first = np.unique(slots[free], return_index=True)
        rows = free[first]
        self._taken[slots] = True
        self._numbers[slots] = numbers[rows]
        for place, known in enumerate(self._words):
            known[slots] = words[place][rows] if place < len(words) else 0


def records(lines: Iterable[str], delimiter: str, blanks: bool) -> Any:
    """Return a reader of records: one quote that is not closed would make all that follows one field."""
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=blanks, strict=True)


def headed(lines: Iterator[str], delimiter: str, blanks: bool) -> tuple[list[str], Any]:
    """Return the header, and the reader of the records below it.

    A first line whose quotes are those of another delimiter is a header of one name, the line itself.
    """
    first = next(lines, "")
    reader = records(itertools.chain([first], lines), delimiter, blanks)
    try:
        return next(reader, []), reader
    except csv.Error:
        if not any(names_between(mark, first) for mark in DELIMITERS):
            raise
        return [first.rstrip("\r\n")], reader


def names_between(mark: str, line: str) -> list[str]:
    """Return the names of a header with this delimiter; none where its quotes are not those of one."""
    try:
        return next(records([line], mark, True), [])
    except csv.Error:
        return []


def byte_parts(
    file: BinaryIO, delimiter: str, encoding: str, blanks: bool
) -> Iterator[list[str] | Rows | Fields]:
    """Yield the header, then the lines of a file in an encoding of `BYTEWISE`, in order.

    Raises:
        UnicodeError, csv.Error: As reading it as text does.
    """
    lines = _Lines(file, encoding)
    header, reader = headed(lines, delimiter, blanks)
    yield header
    while True:
        rows: Rows = []
        while lines.inside:  # of the block where the header or a quoted field ended, and others that need it
            row = next(reader, None)
            if row is None:
                break
            if row:
                rows.append(row)
            if len(rows) == LINES:
                yield rows
                rows = []
        if rows:
            yield rows
        block = lines.block()
        if not block:
            return
        ends = _ends(block, delimiter.encode("ascii"), len(header))
        if ends is None:
            lines.enter(block)
            reader = records(lines, delimiter, blanks)
        else:
            yield Fields(block, ends, encoding, blanks and b" " in block)


def _ends(block: bytes, delimiter: bytes, width: int) -> Ints | None:
    """Return where fields end, (rows, width), or None where lines are not plain."""
    if not width or b'"' in block or b"\0" in block:
        return None
    array = np.frombuffer(block, np.uint8)
    line = array == 10
    ends = np.flatnonzero(line | (array == delimiter[0]))
    rows = np.count_nonzero(line)
    if not rows or len(ends) != rows * width:
        return None
    places: Ints = ends.reshape(rows, width)
    last = places[:, -1]
    if not line[last].all():
        return None
    lengths = np.diff(last, prepend=-1)
    if lengths.max() > csv.field_size_limit() or (width == 1 and lengths.min() < 2):
        return None  # a long field is an error, and an empty line no record
    if b"\r" in block:
        carriage = array == 13
        if (
            np.count_nonzero(carriage) != rows
            or not carriage[last - 1].all()
            or (width == 1 and lengths.min() < 3)
        ):
            return None
    return places


@final
class _Lines:
    """The lines of a file, as text, of which blocks can be taken away as bytes between two records."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._file, self._encoding = file, encoding
        self._rest = b""
        self._text = io.StringIO("")
        self._size = 0
        first = self.block(LINES)
        self.enter(first.removeprefix(MARK) if encoding == "utf-8" else first)

    @property
    def inside(self) -> bool:
        """Whether a line of the block that was entered is left."""
        return self._text.tell() < self._size

    def enter(self, block: bytes) -> None:
        """Give the lines of a block as text."""
        text = block.decode(self._encoding)
        self._text = io.StringIO(text, newline="")
        self._text.seek(0, io.SEEK_END)
        self._size = self._text.tell()
        self._text.seek(0)

    def block(self, size: int | None = None) -> bytes:
        """Return whole lines, about `size` bytes, none at the end; refused if not of the encoding."""
        parts = [self._rest]
        while True:
            more = self._file.read(size or BLOCK)
            cut = more.rfind(b"\n") + 1
            if cut or not more:
                break
            parts.append(more)
        parts.append(more[:cut])
        self._rest = more[cut:]
        block = b"".join(parts)
        if not block.isascii():
            block.decode(self._encoding)
        return block

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if not self.inside:
            block = self.block()  # a quoted field goes on
            if not block:
                raise StopIteration
            self.enter(block)
        return next(self._text)
