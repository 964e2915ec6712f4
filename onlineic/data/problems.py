"""What in a table does not fit its domain: all of it at once, for the curator.

The report shows columns, rules and remedies, as the error at loading does. Values and lines are private; they
are in what `curator_report` returns and nowhere else.
"""

import csv
import itertools
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, final

import attrs
import numpy as np

from onlineic.data.persons import Persons
from onlineic.data.table_file import (
    RAGGED,
    Counts,
    CsvFormat,
    TextCodes,
    header_places,
    is_header,
    text_columns,
    unquoted,
    unreadable,
)
from onlineic.display.html import card, escaped, facts, note
from onlineic.domain.attributes import Attribute, Categorical
from onlineic.domain.columns import ABSENT, MARKS, OUTSIDE, Column, column_array, is_number, plain, source_of
from onlineic.domain.dates import Dates
from onlineic.domain.domain import nearest_column, persons_of_column
from onlineic.domain.misfits import Misfit, misfit, reading
from onlineic.domain.proposals import proposals
from onlineic.errors import InvalidDataError, InvalidParameterError, checked_integer, shown
from onlineic.slips import meant, nearest, public

LINES = 2**9  # of a file that are taken together
LONGEST = 200  # characters of a value that are shown
LEAST_WORD = 4  # letters; shorter ones are codes
Kinds = Sequence[tuple[str, Any]]  # columns by name, those of persons among them
BLANKS = {"", "?", "-", ".", "na", "n/a", "nan", "nil", "none", "null", "missing", "unknown"}


@final
@attrs.define
class _Found:
    """One broken rule, with every value that breaks it and the rows where it stands. PRIVATE."""

    misfit: Misfit
    kind: Attribute | None = None
    mark: int = 0
    rows: dict[Any, list[int]] = attrs.field(factory=dict, repr=False)  # by value


@final
class _Lines(str):
    """A text of lines that a notebook shows as lines."""

    def _repr_html_(self) -> str:
        return f"<pre>{escaped(self)}</pre>"


@public
@final
@attrs.frozen(repr=False, eq=False)
class TableReport:
    """Everything in a table that does not fit its domain.

    Shown by itself it names columns, rules and remedies, and tells no value and no number of rows but n.
    Copies and pickles are refused: they would hold private values.

    Attributes:
        n: Rows of the table.
        misfits: Every rule that some column breaks: column, rule, remedy.
    """

    n: int
    misfits: tuple[Misfit, ...]
    _found: tuple[_Found, ...]
    _place: str

    @property
    def fits(self) -> bool:
        """Whether the table can be loaded."""
        return not self.misfits and self.n > 0

    def curator_report(self, values: int | None = 20, lines: int | None = 10) -> str:
        """Return every value that does not fit, how often and where it stands, and remedies. PRIVATE.

        For the curator's eyes alone: this text holds values of the private table. A notebook shows its lines.

        Args:
            values: At least 1. Most values shown of one column and rule, the most frequent first; None: all.
            lines: At least 1. Most lines (of a file; the header is line 1) or rows (counted from 0) shown of
                one value; None: all.
        """
        most = [
            None if given is None else checked_integer(name, given, at_least=1, remedy="None shows all")
            for name, given in (("values", values), ("lines", lines))
        ]
        text = [f"PRIVATE: this report quotes the table. {self._rows}, {self._many}."]
        for found in self._found:
            text += ["", f"{found.misfit}."]
            text += _values_shown(found, self._place, *most)
        return _Lines("\n".join(text))

    def __repr__(self) -> str:
        if not self.misfits:
            said = "all fit the domain" if self.n else "one or more must be there to be loaded"
            return f"TableReport({self._rows}, {said})"
        lines = "".join(f"\n  {each}." for each in self.misfits)
        return f"TableReport({self._rows}, {self._many}; curator_report() shows values){lines}"

    def _repr_html_(self) -> str:
        if not self.misfits:
            return card(repr(self))
        listed = facts((one.column or "the table", f"{one}.") for one in self.misfits)
        return card(f"{self._rows}, {self._many}", listed, note("curator_report() shows values. PRIVATE."))

    @property
    def _rows(self) -> str:
        return f"{self.n:,} row{'s' * (self.n != 1)}"

    @property
    def _many(self) -> str:
        return f"{len(self.misfits)} misfit{'s' * (len(self.misfits) != 1)}"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "TableReport cannot be copied or pickled: a copy would hold private values; keep repr(report)."
        )


def checked_table(table: Any, kinds: Kinds, count: str | None, options: Mapping[str, Any]) -> TableReport:
    """Return the report of a CSV file, of columns, or of a data frame."""
    if isinstance(table, (str, os.PathLike)):
        known = [field.name for field in attrs.fields(CsvFormat)]
        unknown = sorted(set(options) - set(known))
        if unknown:
            hint = meant(unknown[0], known) or f"they are {', '.join(known)}."
            raise InvalidParameterError(f"options must be those of from_csv, got {shown(unknown[0])}; {hint}")
        return _checked_file(table, kinds, count, CsvFormat(**options))
    if options:
        raise InvalidParameterError(
            f"options must be given with the path of a file, got {', '.join(sorted(options))}; leave them "
            "out."
        )
    return _checked_columns(table, kinds, count)


def _checked_columns(table: Any, kinds: Kinds, count: str | None) -> TableReport:
    if isinstance(table, np.ndarray) and table.dtype.names is not None:
        table = {name: table[name] for name in table.dtype.names}
    found: list[_Found] = []
    persons = [name for name, kind in kinds if isinstance(kind, Persons)]
    sources = {name: source_of(name, kind) for name, kind in kinds}
    sources |= {} if count is None else {count: count}
    columns = dict.fromkeys(sources.values())
    if isinstance(table, (list, tuple)) and all(isinstance(row, Mapping) for row in table):
        for name in columns:
            without = [place for place, row in enumerate(table) if name not in row]
            if 0 < len(without) < len(table):
                what = persons_of_column(name) if name in persons else name
                rule = f"every record must have a value for {what}, got some without"
                remedy = "leave out what is nobody's" if name in persons else "write None where it is missing"
                entry = _Found(Misfit(name, rule, remedy))
                entry.rows[None] = without
                found.append(entry)
        held = dict.fromkeys(name for row in table for name in row) if table else columns
        table = {name: [row.get(name) for row in table] for name in held}
    if not hasattr(table, "keys"):
        raise InvalidParameterError(
            "table must be a mapping of columns, a list of records, a data frame, a structured array or the "
            f"path of a CSV file, got a {type(table).__name__}; give it so."
        )
    arrays: dict[str, Column] = {}
    known: list[Any] = list(table.keys())
    for name, source in sources.items():
        if source not in table:
            what = persons_of_column(name) if name in persons else source
            rule = f"records must have a column for {what}, got none"
            found.append(_Found(Misfit(name, rule, nearest_column(source, known))))
            continue
        try:
            arrays[name] = column_array(name, table[source])
        except InvalidDataError as error:
            rule, _, remedy = str(error).rstrip(".").partition("; ")
            found.append(_Found(Misfit(name, rule, remedy)))
    if len({*map(len, arrays.values())}) > 1:
        rule = "columns must have equal lengths, got others"
        found.append(_Found(Misfit("", rule, "give every row all of its values")))
    for name, kind in (*kinds, *(() if count is None else ((count, Counts()),))):
        if name in arrays:
            with reading(name):
                codes = kind.read(arrays[name])
            for mark in MARKS:
                _enter(found, misfit(name, kind, mark), kind, mark, arrays[name], codes == mark)
    rows = max(map(len, arrays.values()), default=0)
    return _reported(rows, found, "row")


def _enter(
    found: list[_Found], rule: Misfit, kind: Attribute | None, mark: int, column: Column, wrong: Any
) -> None:
    """Add what is wrong with a column, if there is anything."""
    rows = np.flatnonzero(wrong).tolist()
    if rows:
        entry = _Found(rule, kind, mark)
        for row in rows:
            value = plain(column[row])
            key = None if mark == ABSENT else _Shown.of(value)
            entry.rows.setdefault(key, []).append(row)
        found.append(entry)


@final
@attrs.frozen
class _Shown:
    """A value that may be no key, by its type and text."""

    text: str
    value: Any = attrs.field(eq=False)

    @classmethod
    def of(cls, value: Any) -> "_Shown":
        try:
            text = repr(value)
        except Exception:  # whatever the object raises: it is shown by its type
            text = f"a {type(value).__name__}"
        return cls(text if len(text) <= LONGEST else text[:LONGEST] + "...", value)


def _checked_file(
    path: str | os.PathLike[str], kinds: Kinds, count: str | None, form: CsvFormat
) -> TableReport:
    columns = text_columns(kinds, count, form)
    broken, unclosed, ragged = _Found(unreadable(form)), _Found(unquoted()), _Found(RAGGED)  # lines
    entries: dict[tuple[str, int], _Found] = {}
    rows, missing, header = 0, list[Misfit](), list[str]()
    reader = None
    with form.open(path, errors="surrogateescape") as file:
        try:
            header, reader = form.headed(file)
            form.check_delimiter(header, [column.source for column in columns])
            places, missing = header_places(header, columns)
            lines = _numbered(reader)
            while chunk := list(itertools.islice(lines, LINES)):
                rows += len(chunk)
                for line, row in chunk:
                    text = "".join(row)
                    if not text.isascii() and any("\udc80" <= letter <= "\udcff" for letter in text):
                        broken.rows.setdefault(_Shown.of("bytes of another encoding"), []).append(line)
                    if len(row) != len(header):
                        ragged.rows.setdefault(_Shown(f"{len(row)} fields", None), []).append(line)
                whole = [(line, row) for line, row in chunk if len(row) == len(header)]
                for column, place in places:
                    _enter_texts(
                        entries, column, [row[place] for _, row in whole], [line for line, _ in whole]
                    )
        except (csv.Error, UnicodeError) as error:
            entry = unclosed if isinstance(error, csv.Error) else broken
            line = 1 if reader is None else reader.line_num
            entry.rows.setdefault(_Shown(f"{error}", None), []).append(line)
    absent = [*map(_Found, missing)]
    if missing and header and not is_header(header, columns):
        absent[0].rows[_Shown.of(header)] = [1]
    found = [*(entry for entry in (broken, unclosed, ragged) if entry.rows), *absent]
    order = {column.name: place for place, column in enumerate(columns)}
    keys = sorted(entries, key=lambda key: (order[key[0]], key[1]))
    return _reported(rows, [*found, *(entries[key] for key in keys)], "line")


def _numbered(reader: Any) -> Iterable[tuple[int, list[str]]]:
    """Yield every record with the line of the file where it begins; a quoted field may hold line ends."""
    before = reader.line_num
    for row in reader:
        if row:
            yield before + 1, row
        before = reader.line_num


def _enter_texts(
    entries: dict[tuple[str, int], _Found],
    column: TextCodes,
    texts: Sequence[str],
    lines: Sequence[int],
) -> None:
    codes = column.codes(texts)
    if not codes.size or codes.min() >= 0:
        return
    for row in np.flatnonzero(codes < 0).tolist():
        mark = int(codes[row])
        if (column.name, mark) not in entries:
            rule = misfit(column.name, column.kind, mark)
            entries[column.name, mark] = _Found(rule, column.kind, mark)
        entries[column.name, mark].rows.setdefault(_Shown.of(texts[row]), []).append(lines[row])


def _reported(rows: int, found: Sequence[_Found], place: str) -> TableReport:
    return TableReport(rows, tuple(entry.misfit for entry in found), tuple(found), place)


# ---------------------------------------------------------------- what the curator reads


def _values_shown(found: _Found, place: str, values: int | None, lines: int | None) -> list[str]:
    text = []
    ranked = sorted(found.rows.items(), key=lambda item: -len(item[1]))
    for value, rows in ranked[:values]:
        some = ", ".join(f"{row:,}" for row in rows[:lines])
        more = f", and {len(rows) - lines:,} more" if lines is not None and len(rows) > lines else ""
        what = "missing" if value is None else value.text
        text.append(f"  {what} in {len(rows):,} {place if len(rows) == 1 else place + 's'}: {some}{more}")
    if values is not None and len(ranked) > values:
        left_out = len(ranked) - values
        more = f"{left_out:,} more value{'s' * (left_out != 1)}"
        text.append(f"  and {more}; curator_report(values=None) shows all")
    hint = _hint(found.kind, found.mark, [value.value for value, _ in ranked if value is not None])
    return [*text, f"  -> {hint}"] if hint else text


def _hint(kind: Attribute | None, mark: int, values: Sequence[Any]) -> str:
    """Return the code that would accept the values, as a remedy."""
    if kind is None or mark == ABSENT or not values or isinstance(kind, Persons | Counts):
        return ""
    texts = [value for value in values if isinstance(value, str)]
    blank = [text for text in texts if text.strip().lower() in BLANKS]
    hints = [f"optional(..., missing={sorted(blank)!r})"] if blank else []
    rest = [value for value in values if value not in blank]
    if isinstance(kind, Categorical):
        near = {text: label for text in rest if (label := _nearest(kind, text)) is not None}
        if near:
            hints.append(f"categorical(..., synonyms={near!r})")
        if len(near) < len(rest) and mark == OUTSIDE:
            hints.append("list the others, or categorical(..., other=True)")
        elif len(near) < len(rest):
            hints.append(f"categorical(..., synonyms={{{rest[0]!r}: {kind.labels[0]!r}}}) if it means that")
    elif rest and mark == OUTSIDE:
        hints.append(_ends(kind, rest))
    elif rest and isinstance(kind, Dates):
        hints.append(_of_dates(kind, rest))
    elif rest and len(texts) == len(values) and (ways := _of_texts(map(str, rest))):
        hints.append(ways)
    elif any("," in text for text in texts):
        hints.append("decimal=',' if it stands before the fraction")
    elif any(_fraction(value) for value in rest):
        hints.append("binned([...]) takes numbers with a fraction")
    elif rest and all(isinstance(value, str) for value in rest):
        hints.append(f"optional(..., missing={sorted(map(str, rest))[:3]!r}) if they mean that there is none")
    return "; ".join(hints)


def _of_texts(texts: Iterable[str]) -> str:
    """Return how numbers that stand in texts are declared, or times of day."""
    ways = [one for one in proposals(texts) if one.what in ("number", "time")]
    said = [one.said or "written='1234.5'" for one in ways]
    comma = any("4,5" in one for one in said)
    return (
        " or ".join(said)
        + " says how they are written" * bool(said)
        + "; decimal=',' for all columns" * comma
    )


def _of_dates(kind: Dates, values: Sequence[Any]) -> str:
    """Return the code that would accept texts that are no dates as they stand."""
    if all(isinstance(value, str) or is_number(value) for value in values):
        ways = [one for one in proposals(map(str, values)) if {"formats", "epoch"} & one.options.keys()]
        if ways:
            return " or ".join(f"dates(..., {one.said})" for one in ways) + " takes them"
    zoned = attrs.evolve(kind, zone="UTC")
    if kind.zone is None and (zoned.read(column_array("dates", list(values))) >= 0).any():
        return "dates(..., zone='Europe/Paris') takes times with an offset, in that zone"
    return (
        f"write dates as 2024-03-05, of at least the precision of one {kind.by}, or name how they are "
        "written: dates(..., formats=['%d/%m/%Y'])"
    )


def _nearest(kind: Categorical, value: Any) -> Any:
    """Return the label that a text certainly means, or None: a synonym changes the table without a word.

    Two that differ in case, blanks and accents alone are one; so are a word and its beginning. Another
    spelling is the same word where words are longer than codes, and nearer to its label than other labels.
    """
    if not isinstance(value, str) or not isinstance(kind.labels[0], str):
        return None
    labels = [str(label) for label in kind.labels]
    same = [label for label in labels if _folded(label) == _folded(value)]
    if same or _is_code(value):
        return same[0] if len(same) == 1 else None
    near = nearest(value, labels)
    if near is None or _folded(value).startswith(_folded(near)):
        return near
    if sorted(_folded(near)) == sorted(_folded(value)):  # letters changed places
        return near
    others = (_likeness(near, label) for label in labels if label != near)
    return None if _is_code(near) or _likeness(near, value) <= max(others, default=0.0) else near


def _folded(text: Any) -> str:
    """Return a text without case, blanks and accents."""
    apart = unicodedata.normalize("NFKD", str(text))
    return "".join(
        sign for sign in apart if not unicodedata.combining(sign) and not sign.isspace()
    ).casefold()


def _is_code(text: Any) -> bool:
    """Whether one letter more or less makes another value of a text, as of C32 and F32."""
    return len(str(text).strip()) < LEAST_WORD or any(sign.isdigit() for sign in str(text))


def _likeness(one: Any, other: Any) -> float:
    """Return a share of signs in common, 1 for the same text."""
    import difflib  # of a report alone: imported with it

    return difflib.SequenceMatcher(None, _folded(one), _folded(other)).ratio()


def _fraction(value: Any) -> bool:
    """Whether a value, or the number that a text is, is no whole number."""
    try:
        return not float(value).is_integer()
    except (TypeError, ValueError, OverflowError):
        return False


def _ends(kind: Attribute, values: Sequence[Any]) -> str:
    """Return between which ends the values lie that are outside."""
    if isinstance(kind, Dates):
        first, last = min(map(str, values)), max(map(str, values))
        return f"they lie between {first} and {last}; widen the dates, or clip=True"
    if not isinstance(kind, Categorical):
        values = [kind.numerals.number(value) for value in values]
    numbers = [float(value) for value in values if is_number(value)]
    for text in (value for value in values if isinstance(value, str)):
        try:
            numbers.append(float(text.replace(",", ".")))
        except ValueError:
            continue
    if not numbers:
        return ""
    return f"they lie between {min(numbers):g} and {max(numbers):g}; widen the domain, or clip=True"
