"""The public universe: named attributes with finitely many values, and the codes of their values.

A domain is written down by a person who knows the table's meaning, never read off the private rows:
the list of labels that happen to occur is itself a release.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Literal, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.display.html import card, table
from onlineic.display.text import GAP, cut_rows, shortened
from onlineic.domain.attributes import Attribute, Binned, Categorical, IntegerRange, binned, categorical
from onlineic.domain.columns import Column, column_array, is_number, plain, source_of
from onlineic.domain.dates import Dates, dates
from onlineic.domain.edges import described
from onlineic.domain.misfits import Misfit, loader, misfits, reading, refuse
from onlineic.errors import (
    InvalidDataError,
    InvalidDomainError,
    InvalidParameterError,
    InvalidQueryError,
    PrivateLabelsWarning,
    callers_line,
    checked_list,
    printable,
    set_fields,
    shown,
)
from onlineic.slips import Spelled, nearest, public

SHOWN, LONGEST_SHOWN, LONGEST_ROW = 4, 24, 120  # labels of an attribute in a notebook, and characters
Kind = Attribute | range | int | Iterable[Any]
Records = Mapping[str, Any] | Sequence[Mapping[str, Any]] | np.ndarray[Any, Any]
KINDS = (Categorical, IntegerRange, Binned, Dates)

LABELS_SHOWN = 60  # characters of an attribute's line
FROM_ROWS = "NOT PRIVATE"  # key of a kind in a domain file that was read off the private rows

# of a kind in a domain file: the key that tells it, and what may stand beside
FORMS = {
    "range": {"clip", "round", "written", "clock"},
    "labels": {"other", "synonyms"},
    "edges": {"integer", "clip", "ends", "written", "clock"},
    "dates": {"by", "zone", "clip", "formats", "epoch"},
}


BESIDE = ("missing", "others", "column")  # what may stand beside any of them


@public
def optional(
    kind: Kind, missing: Iterable[str] = (), *, others: Literal["refused", "missing"] = "refused"
) -> Attribute:
    """Return `kind` with one more cell, the last, for missing values.

    Args:
        kind: Of one of the four kinds, or in a short form.
        missing: Texts that stand for a missing value too, such as ["?", "NA"]. None, NaN, NaT and NA always
            do, and an empty field of a CSV file does unless "" is a label.
        others: What becomes of a value that fits nowhere: the table is refused, or it counts as missing. That
            is a public rule; nothing tells how many there were.
    """
    try:
        given = [missing] if isinstance(missing, str) else checked_list("missing", missing)
    except InvalidParameterError:
        given = [None]
    if not all(type(marker) is str for marker in given):
        raise InvalidDomainError(f"missing must be a list of texts, got {shown(missing)}; write ['?', 'NA'].")
    if others not in ("refused", "missing") or type(others) is not str:
        raise InvalidDomainError(
            f"others must be 'refused' or 'missing', got {shown(others)}; write others='missing'."
        )
    markers = tuple(sorted(set(given)))
    return attrs.evolve(
        _attribute("optional", kind), missing=True, markers=markers, others=others == "missing"
    )


@public
def from_column(column: str, kind: Kind) -> Attribute:
    """Return `kind` as an attribute that another column of a table fills; several can be of one column.

    Args:
        column: Its name in the table.
        kind: A kind, or a short form of one.

    Examples:
        >>> day = dates("2024-01-01", "2024-12-31")
        >>> Domain.of(day=day, month=from_column("day", dates("2024-01", "2024-12", by="month"))).columns
        ('day', 'day')
    """
    if type(column) is not str or not column:
        raise InvalidDomainError(f"column must be the name of a column, got {shown(column)}; write a text.")
    return attrs.evolve(_attribute(column, kind), column=column)


@public
@final
@attrs.frozen(
    hash=True, cache_hash=True, repr=False
)  # hashed for whatever is kept by domain: of many attributes slow
class Domain(metaclass=Spelled):
    """A product of named finite attributes: the cells over which records and hypotheses are counted.

    Args:
        names: Attribute names, distinct.
        attributes: What values each attribute takes.

    Examples:
        >>> domain = Domain.of(age=range(17, 91), sex=["F", "M"], region=4)
        >>> domain.shape, domain.size
        ((74, 2, 4), 592)
    """

    names: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    shape: tuple[int, ...] = attrs.field(init=False, eq=False)
    size: int = attrs.field(init=False, eq=False)
    _axes: dict[str, int] = attrs.field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        given: tuple[object, object] = (self.names, self.attributes)  # whatever was given
        if not all(isinstance(each, tuple) for each in given):
            raise InvalidDomainError("names and attributes must be tuples, got others; write Domain.of(...).")
        if not self.names or len(self.names) != len(self.attributes):
            raise InvalidDomainError(
                f"a domain must have one or more attributes, each with a name, got {len(self.names)} names "
                f"for {len(self.attributes)} attributes; write Domain.of(age=range(17, 91))."
            )
        if not all(type(name) is str and name for name in self.names) or len(set(self.names)) < len(
            self.names
        ):
            raise InvalidDomainError(
                f"attribute names must be distinct non-empty strings, got {list(self.names)}; rename them."
            )
        set_fields(self, names=tuple(self.names), attributes=tuple(self.attributes))
        # a subclass could have a size of its own, and another the next time
        if not all(type(attribute) in KINDS for attribute in self.attributes):
            raise InvalidDomainError("attributes must be kinds, got other objects; use Domain.of.")
        if not all(type(attribute.missing) is bool for attribute in self.attributes):
            raise InvalidDomainError(
                "missing must be True or False, got another object; write optional(..) of the kind."
            )
        set_fields(self, attributes=tuple(map(_with_markers, self.attributes)))
        shape = tuple(int(attribute.size) for attribute in self.attributes)
        axes = {name: axis for axis, name in enumerate(self.names)}
        set_fields(self, shape=shape, size=math.prod(shape), _axes=axes)  # Python ints: never wraps

    @classmethod
    def of(cls, kinds: Mapping[str, Kind] | None = None, /, **more: Kind) -> "Domain":
        """Return the domain of the named attributes.

        Args:
            kinds, **more: Attribute name -> a `range` of integers, a size (for `range(size)`), a list of
                labels, what `integers`, `categorical`, `binned` and `dates` return, or `optional(...)` of any
                of them. Names that are no identifiers go into the mapping.

        Raises:
            InvalidDomainError: If a kind cannot be read, or names or labels are not distinct.
        """
        if kinds is not None and not isinstance(kinds, Mapping):
            raise InvalidDomainError(
                f"kinds must be a mapping of name to kind, got a {type(kinds).__name__}; write "
                "{'age': range(17, 91)}, or keywords."
            )
        given = {**(kinds or {}), **more}
        if len(given) < len(kinds or {}) + len(more):
            raise InvalidDomainError("attribute names must be distinct, got one twice; remove one.")
        return cls(tuple(given), tuple(_by_name(_attribute, name, kind) for name, kind in given.items()))

    @classmethod
    def from_json(cls, text: str) -> "Domain":
        """Return the domain written as JSON: an object of attribute -> kind.

        A kind is a size, a list of labels, `{"range": [first, last]}`, `{"labels": [..]}`,
        `{"edges": [..]}`, where "-inf" and "inf" may end the edges, or `{"dates": [first, last]}`. An object
        may add `"missing": true` or a list of texts that stand for it, and, by its kind, `"clip": true`,
        `"integer": true`, `"written": ["1,234.5"]`, `"clock": "hours"`, `"by": "month"`,
        `"zone": "Europe/Paris"`, `"formats": ["%b-%Y"]`, `"epoch": "s"`, `"other": true` or a name, and
        `"synonyms": {"male": "M"}` (or a list of pairs, where they are no texts).

        Raises:
            InvalidDomainError: If the text cannot be read.

        Warns:
            PrivateLabelsWarning: If the file says that labels in it were read from the private table.
        """
        import json  # few sessions need a file: imported with it

        try:
            if type(text) is not str:
                raise InvalidDomainError(
                    f"a domain file must be a text, got a {type(text).__name__}; read it."
                )
            written = json.loads(text, object_pairs_hook=_distinct)
        except InvalidDomainError:  # a ValueError, as what is caught below
            raise
        except json.JSONDecodeError as error:
            raise InvalidDomainError(
                f"a domain file must be valid JSON, got an error: {error}; write "
                '{"age": {"range": [17, 90]}, "sex": ["F", "M"]}.'
            ) from None
        except (ValueError, RecursionError):  # an integer of thousands of digits, brackets in brackets
            raise InvalidDomainError(
                "a domain file must be valid JSON of an object of kinds, got numbers or brackets beyond all "
                'bounds; write {"age": {"range": [17, 90]}, "sex": ["F", "M"]}.'
            ) from None
        if not isinstance(written, dict):
            raise InvalidDomainError(
                "a domain file must hold an object {attribute: kind}, got another value; write "
                '{"age": {"range": [17, 90]}, "sex": ["F", "M"]}.'
            )
        domain = cls.of({name: _by_name(_from_json, name, kind) for name, kind in written.items()})
        seen = [name for name, kind in written.items() if isinstance(kind, dict) and FROM_ROWS in kind]
        if seen:
            import warnings

            warnings.warn(
                f"a domain must be written from public knowledge, got labels of {', '.join(seen)} that were "
                f"read from the private table: NOT PRIVATE; check them, then remove {shown(FROM_ROWS)} "
                f"there.",
                PrivateLabelsWarning,
                stacklevel=callers_line(),
            )
        return domain

    def to_json(self) -> str:
        """Return the domain in the form that `from_json` reads."""
        import json

        return json.dumps({name: _to_json(kind) for name, kind in self}, ensure_ascii=False)

    def __repr__(self) -> str:
        wide = max(len(name) for name in self.names)
        most = max(len(f"{size:,}") for size in self.shape)
        lines = [f"Domain of {self.size:,} cells"]
        for (name, kind), size in zip(self, self.shape, strict=True):
            lines.append(f"  {name:{wide}}  {size:{most},}  {_described(kind)}")
        return "\n".join(lines)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that fill the attributes: each that of its name, but for `from_column`."""
        return tuple(map(source_of, self.names, self.attributes))

    def __iter__(self) -> Iterator[tuple[str, Attribute]]:
        return iter(zip(self.names, self.attributes, strict=True))

    def _repr_html_(self) -> str:
        rows = [[name, f"{kind.size:,}", _values(kind)] for name, kind in self]
        return card(
            f"Domain of {self.size:,} cells",
            table(["attribute", "values", ""], rows, left=3, longest=LONGEST_ROW),
        )

    def axis(self, name: str) -> int:
        """Return the position of an attribute, or raise `InvalidQueryError` with the nearest name."""
        try:
            return self._axes[name]
        except Exception:  # no name of it; whatever its hash raises
            near = nearest(name, self.names)
            hint = f"it has {shown(list(self.names))}." if near is None else f"did you mean {shown(near)}?"
            raise InvalidQueryError(
                f"attribute must be one of the domain's, got {shown(name)}; {hint}"
            ) from None

    def attribute(self, name: str) -> Attribute:
        """Return the kind of an attribute."""
        return self.attributes[self.axis(name)]

    def project(self, *names: str) -> "Domain":
        """Return the domain of these attributes, in domain order."""
        axes = self.project_axes(*names)
        return Domain(tuple(self.names[axis] for axis in axes), tuple(self.attributes[axis] for axis in axes))

    def project_axes(self, *names: str) -> tuple[int, ...]:
        """Return the axes of these attributes, increasing."""
        return tuple(sorted({self.axis(name) for name in names}))

    def digest(self) -> str:
        """Return a short public fingerprint of names, kinds and labels."""
        import hashlib

        return hashlib.sha256(self.to_json().encode(errors="surrogatepass")).hexdigest()[:16]

    @loader
    def encode(self, columns: Records) -> Ints:
        """Return the codes of records, shape (n, attributes), int64.

        Args:
            columns: Mapping of name to array or list, list of mappings, or structured array. At least the
                domain's attributes; other columns are ignored.

        Raises:
            InvalidDataError: If a column is absent, lengths differ, or a value lies outside the domain.
                Nothing is dropped.
        """
        return np.stack([*self.encoded(columns)], axis=1)

    def encoded(self, columns: Records) -> Iterator[Ints]:
        """Return the codes of one attribute after the other, each (n,): `encode` without holding all.

        Raises:
            InvalidDataError: As `encode`; of a value outside the domain when its attribute's turn comes.
        """
        return codes_of(self, self.columns_of(columns))

    def _by_column(self, rows: Sequence[Any], person: str | None) -> dict[str, list[Any]]:
        """Return the columns of a list of records; a row without a name is refused, not read as missing."""
        names = dict.fromkeys(self.columns if person is None else (*self.columns, person))
        for row in rows:
            if not isinstance(row, Mapping):
                raise InvalidDataError(
                    "records must be a mapping of columns or a list of mappings, got a list with a "
                    f"{type(row).__name__}; write {{name: column}}."
                )
            lacking = next((name for name in names if name not in row), None)
            if lacking is not None:
                what = persons_of_column(lacking) if lacking == person else lacking
                remedy = (
                    "leave out what is nobody's" if lacking == person else "write None where it is missing"
                )
                raise InvalidDataError(
                    f"every record must have a value for {what}, got one without; "
                    f"{nearest_column(lacking, [name for name in row if isinstance(name, str)])}; {remedy}."
                )
        return {name: [row[name] for row in rows] for name in names}

    def columns_of(self, columns: Records, person: str | None = None) -> dict[str, Column]:
        """Return the column of every attribute as an array, of equal lengths, values as they come.

        Where `person` is the name of the column of a `Unit`, that one is the last.

        Raises:
            InvalidDataError: If a column is absent, is none, or lengths differ.
        """
        if person is not None and type(person) is not str:
            raise InvalidParameterError(f"person must be the name of a column, got {shown(person)}.")
        if isinstance(columns, np.ndarray):
            if columns.dtype.names is None:
                raise InvalidDataError(
                    "records must be a mapping of columns or a structured array, got a plain array; write "
                    "{name: column}."
                )
            columns = {name: columns[name] for name in columns.dtype.names}
        named: Any = self._by_column(columns, person) if isinstance(columns, (list, tuple)) else columns
        if not (hasattr(named, "keys") and hasattr(type(named), "__getitem__")):  # as of frames of pandas
            raise InvalidDataError(
                "records must be a mapping of columns or a list of mappings, got a "
                f"{type(columns).__name__}; {_loader(columns)}."
            )
        names = self.names if person is None else (*self.names, person)
        sources = dict(zip(names, self.columns if person is None else (*self.columns, person), strict=True))
        lacking = [name for name in dict.fromkeys(sources.values()) if name not in named]
        if lacking:
            known: list[Any] = list(named.keys())
            hints = ", ".join(dict.fromkeys(nearest_column(name, known) for name in lacking))
            wanted = ["every attribute"] if lacking != [person] else []
            wanted += [persons_of_column(person)] if person in lacking else []
            raise InvalidDataError(
                f"records must have a column for {' and for '.join(wanted)}, got none for "
                f"{', '.join(lacking)}; {hints}."
            )
        arrays = {name: column_array(name, named[source]) for name, source in sources.items()}
        if len({*map(len, arrays.values())}) > 1:  # by how much is not told: a number of rows can be private
            raise InvalidDataError(
                f"columns must have equal lengths, got others of {', '.join(arrays)}; give every column one "
                "value a record."
            )
        return arrays


def codes_of(kinds: Iterable[tuple[str, Any]], columns: dict[str, Column]) -> Iterator[Ints]:
    """Yield the codes of one column after the other, each (n,); columns are let go as they are read.

    Raises:
        InvalidDataError: Of a value outside its kind, when the column's turn comes; all that follow are
            looked at too.
    """
    found: list[Misfit] = []
    for name, kind in kinds:
        with reading(name):
            codes = kind.read(columns.pop(name))
        found += misfits(name, kind, codes)
        if not found:
            yield codes
    refuse(found)


def check_domain(domain: object) -> None:
    """Raise `InvalidParameterError` unless this is a domain."""
    if type(domain) is not Domain:  # a subclass could have another shape tomorrow
        kind = type(domain).__name__
        remedy = "data.domain" if kind == "PrivateData" else "Domain.of(...)"
        raise InvalidParameterError(f"domain must be a Domain, got a {kind}; write {remedy}.")


def _loader(table: Any) -> str:
    """Return a hint at what loads a table that is no mapping of columns."""
    if isinstance(table, str | os.PathLike):
        return "a CSV file is loaded by PrivateData.from_csv(path, domain), a Parquet file by from_frame"
    return "other tables are loaded by PrivateData.from_frame(table, domain)"


def persons_of_column(person: str | None) -> str:
    """Return what the column of a unit is for, in words: it is none of the domain."""
    return f"the persons of Unit(person={shown(person)})"


def nearest_column(name: str, known: Sequence[Any]) -> str:
    """Return a hint at the column that was meant."""
    near = nearest(name, [other for other in known if isinstance(other, str)])
    if not known:
        return f"give it one, {{{shown(name)}: [...]}}"
    return f"it has {shown(list(known))}" if near is None else f"did you mean {shown(near)}"


def _with_markers(kind: Attribute) -> Attribute:
    """Return a kind whose texts of missing values are checked, and in the one order of their set."""
    markers = kind.markers
    if type(markers) is not tuple or not all(type(marker) is str for marker in markers):
        raise InvalidDomainError(
            f"missing must be texts, got {shown(markers)}; write optional(kind, ['NA'])."
        )
    if kind.others not in (False, True) or (kind.others and not kind.missing):
        raise InvalidDomainError(
            "others must have a cell of missing values, got none; write optional(kind, others='missing')."
        )
    if markers and not kind.missing:
        raise InvalidDomainError("missing texts must have a cell, got none; write optional(kind, texts).")
    return attrs.evolve(kind, markers=tuple(sorted(set(markers))))


def _described(kind: Attribute) -> str:
    """Return what values a kind takes, in one line."""
    if isinstance(kind, IntegerRange):
        text = f"integers {kind.start} to {kind.stop - 1}" + _written(kind)
    elif isinstance(kind, Dates):
        text = f"dates {kind.first} to {kind.last} by {kind.by}" + (f", {kind.zone}" if kind.zone else "")
        text += f", written {' or '.join(kind.formats)}" if kind.formats else ""
        text += f", or {kind.epoch} since 1970" if kind.epoch else ""
    elif isinstance(kind, Binned):
        text = _cut(f"{'whole ' * kind.integer}numbers {described(kind.edges)}")
        text += ", with both ends of each bin" * kind.ends + _written(kind)
    else:
        text = _cut(", ".join(map(str if isinstance(kind.labels[0], str) else repr, kind.labels)))
        text += f", other: {kind.other}" if kind.other is not None else ""
    if not isinstance(kind, Categorical) and kind.clip:
        text += ", clipped"
    text += ", or missing" * kind.missing + ", as all others" * kind.others
    return text if kind.column is None else f"{text}, of the column {_cut(kind.column)}"


def _written(kind: IntegerRange | Binned) -> str:
    """Return how a kind of numbers reads texts, in words."""
    if kind.clock is not None:
        return f", {kind.clock} of a time of day"
    return f", written {' or '.join(kind.written)}" if kind.written else ""


def _cut(text: str) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= LABELS_SHOWN else text[: LABELS_SHOWN - 4].rstrip(" ,") + " ..."


def _values(kind: Attribute) -> str:
    """Return the first and last labels of a kind as text."""
    ends = isinstance(kind, Binned) and kind.ends  # of which each bin is one value to a reader
    labels = [kind.bin_label(code) for code in range(0, kind.size, 2)] if ends else None  # type: ignore[union-attr]
    places, gap = cut_rows(kind.size if labels is None else len(labels), SHOWN)
    said = [shortened(labels[place] if labels else kind.label(place), LONGEST_SHOWN) for place in places]
    if gap is not None:
        said.insert(gap, GAP)
    return ", ".join(said)


def _by_name(made: Callable[[str, Any], Attribute], name: str, kind: Any) -> Attribute:
    """Return a kind, or refuse it by the name of its attribute: a kind does not know whose it is."""
    try:
        return made(name, kind)
    except InvalidDomainError as error:
        said = str(error)
        if said.startswith(f"{name} "):
            raise
        raise InvalidDomainError(f"{name}: {said}") from None


def _attribute(name: str, kind: Kind) -> Attribute:
    if isinstance(kind, KINDS):
        return kind
    if isinstance(kind, range):
        if kind.step != 1:
            raise InvalidDomainError(
                f"{name} must be a range of step 1, got {kind}; list the labels instead."
            )
        return IntegerRange(kind.start, kind.stop)
    if isinstance(kind, (int, np.integer)) and is_number(kind):
        if kind < 1:
            raise InvalidDomainError(f"{name} must have a size >= 1, got {kind}; give it a value.")
        return IntegerRange(0, int(kind))
    if isinstance(kind, tuple) and len(kind) == 2 and all(type(plain(end)) is int for end in kind):
        raise InvalidDomainError(
            f"{name} must be a range or a list of labels, got {kind}, which may mean either; write "
            f"range({kind[0]}, {kind[1] + 1}) for all integers between, or {list(kind)} for two labels."
        )
    # a set has no order of its own: codes would change from run to run
    if isinstance(kind, (str, bytes, Mapping, Set)) or not isinstance(kind, Iterable):
        raise InvalidDomainError(
            f"{name} must be a size, a range, a list of labels, binned(...) or dates(...), got "
            f"{shown(kind)}; write a list such as ['F', 'M'], in an order of its own, or range(17, 91)."
        )
    return Categorical(tuple(map(plain, _listed(name, kind))))


def _listed(name: str, labels: Iterable[Any]) -> list[Any]:
    """Return labels that can be gone through and end."""
    try:
        return checked_list(name, labels, remedy="write a list of labels")
    except InvalidParameterError as error:
        raise InvalidDomainError(str(error)) from None


def _from_json(name: str, kind: Any) -> Attribute:
    if isinstance(kind, list) and len(kind) == 2 and all(type(end) is int for end in kind):
        low, high = kind
        if high - low > 1:  # else both readings have the same cells
            raise InvalidDomainError(
                f"{name} must be a range or labels, got {kind}, which may mean either; write "
                f'{{"range": {kind}}} or {{"labels": {kind}}}.'
            )
    if not isinstance(kind, (dict, list)) and type(kind) is not int:
        import json  # of a message alone

        raise InvalidDomainError(
            f"{name} must be a number of values, a list of labels or an object, got "
            f"{printable(json.dumps(kind), 60)}; "
            'write ["F", "M"], {"range": [17, 90]}, {"edges": [0, 20, 35]} or {"dates": [first, last]}.'
        )
    if not isinstance(kind, dict):
        return _attribute(name, kind)
    forms = [form for form in FORMS if form in kind]
    if len(forms) != 1 or not set(kind) <= {forms[0], *FORMS[forms[0]], *BESIDE, FROM_ROWS}:
        if len(forms) == 1:
            strange = sorted(set(kind) - {forms[0], *FORMS[forms[0]], *BESIDE, FROM_ROWS})[0]
            known = (*sorted(FORMS[forms[0]]), *BESIDE)
            raise InvalidDomainError(
                f"{name} must have beside {shown(forms[0])} one of {', '.join(map(repr, known))}, got "
                f"{shown(strange)}; {_meant(strange, known)}."
            )
        beside = "; ".join(
            f"beside {shown(form)} {', '.join(map(repr, sorted(FORMS[form])))}" for form in FORMS
        )
        raise InvalidDomainError(
            f"{name} must have exactly one of 'range', 'labels', 'edges' and 'dates', got {sorted(kind)}; "
            f"'missing' may stand beside each, {beside}."
        )
    for flag in sorted({"integer", "clip", "ends", "round"} & set(kind)):
        if not isinstance(kind[flag], bool):
            raise InvalidDomainError(
                f"{name} must give true or false for {shown(flag)}, got {shown(kind[flag])}; write true."
            )
    value, missing = kind[forms[0]], kind.get("missing", False)
    if not isinstance(missing, bool) and not _is_list(missing, str):
        raise InvalidDomainError(
            f"{name} must give true, false or a list of texts for 'missing', got {shown(missing)}; write "
            '["?", "NA"].'
        )
    if not isinstance(value, list):
        raise InvalidDomainError(
            f"{name} must give a list for {shown(forms[0])}, got {shown(value)}; write it in brackets."
        )
    attribute = _READERS[forms[0]](name, value, kind)
    if "column" in kind:
        attribute = from_column(kind["column"], attribute)
    if missing is False and "others" not in kind:
        return attribute
    return optional(
        attribute, () if isinstance(missing, bool) else missing, others=kind.get("others", "refused")
    )


def _meant(word: str, known: Sequence[str]) -> str:
    near = nearest(word, known)
    return "remove it" if near is None else f"did you mean {shown(near)}"


def _range_from_json(name: str, value: list[Any], kind: dict[str, Any]) -> Attribute:
    if not _is_list(value, int) or len(value) != 2:
        raise InvalidDomainError(
            f"{name} must give 'range' as [first, last], got {shown(value)}; write [17, 90], both included."
        )
    return IntegerRange(
        value[0], value[1] + 1, clip=kind.get("clip", False), round=kind.get("round", False), **_texts(kind)
    )


def _edges_from_json(name: str, value: list[Any], kind: dict[str, Any]) -> Attribute:
    edges = [float(edge) if edge in ("inf", "-inf") else edge for edge in value]
    clip, ends = kind.get("clip", False), kind.get("ends", False)
    found = binned(edges, integer=kind.get("integer", False), clip=clip, **_texts(kind))
    return attrs.evolve(
        found, edges=tuple(edges), ends=ends
    )  # a file keeps the bins that it was written with


def _texts(kind: dict[str, Any]) -> dict[str, Any]:
    """Return how a kind of numbers reads texts."""
    return {"written": kind.get("written", ()), "clock": kind.get("clock")}


def _dates_from_json(name: str, value: list[Any], kind: dict[str, Any]) -> Attribute:
    if not _is_list(value, str) or len(value) != 2:
        raise InvalidDomainError(
            f"{name} must give 'dates' as [first, last] in ISO form, got {shown(value)}; write "
            '["2024-01", "2024-12"].'
        )
    return dates(
        value[0],
        value[1],
        by=kind.get("by", "day"),
        clip=kind.get("clip", False),
        zone=kind.get("zone"),
        formats=kind.get("formats", ()),
        epoch=kind.get("epoch"),
    )


def _labels_from_json(name: str, value: list[Any], kind: dict[str, Any]) -> Attribute:
    written, other = kind.get("synonyms", {}), kind.get("other", False)
    if not isinstance(other, (bool, str)):
        raise InvalidDomainError(
            f"{name} must give true, false or a name for 'other', got {shown(other)}; write true."
        )
    pairs = list(written.items()) if isinstance(written, dict) else written
    if not isinstance(pairs, list) or not all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs
    ):
        raise InvalidDomainError(
            f"{name} must give 'synonyms' as {{value: label}} or a list of pairs, got {shown(written)}; "
            'write {"male": "M"}.'
        )
    found = categorical(value, other=other)
    return attrs.evolve(found, synonyms=tuple((_word(word), label) for word, label in pairs))


def _word(written: Any) -> Any:
    """Return a synonym: an infinite number is an object of its text, since JSON has none."""
    infinite = isinstance(written, dict) and written.keys() == {"float"}
    return float(written["float"]) if infinite and written["float"] in ("inf", "-inf") else written


_READERS = {
    "range": _range_from_json,
    "labels": _labels_from_json,
    "edges": _edges_from_json,
    "dates": _dates_from_json,
}


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(type(item) is kind for item in value)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object whose keys are distinct: `json` would keep the last of equal keys."""
    if len(dict(pairs)) < len(pairs):
        raise InvalidDomainError("the names in a domain file must be distinct, got one twice; remove one.")
    return dict(pairs)


def _to_json(kind: Attribute) -> dict[str, Any]:
    missing: dict[str, Any] = {"missing": list(kind.markers) or True} if kind.missing else {}
    missing |= {"others": "missing"} if kind.others else {}
    missing |= {} if kind.column is None else {"column": kind.column}
    if isinstance(kind, Categorical):
        words = dict(kind.synonyms) if all(type(word) is str for word, _ in kind.synonyms) else None
        pairs = [[_word_to_json(word), label] for word, label in kind.synonyms] if words is None else words
        synonyms = {"synonyms": pairs} if pairs else {}
        other = {} if kind.other is None else {"other": kind.other}
        return {"labels": list(kind.labels), **other, **synonyms, **missing}
    clip: dict[str, Any] = {"clip": True} if kind.clip else {}
    if isinstance(kind, Dates):
        zone = {} if kind.zone is None else {"zone": kind.zone}
        zone |= {} if kind.epoch is None else {"epoch": kind.epoch}
        formats = {"formats": list(kind.formats)} if kind.formats else {}
        return {"dates": [kind.first, kind.last], "by": kind.by, **zone, **formats, **clip, **missing}
    clip |= {"written": list(kind.written)} if kind.written else {}
    clip |= {} if kind.clock is None else {"clock": kind.clock}
    if isinstance(kind, IntegerRange):
        rounded = {"round": True} if kind.round else {}
        return {"range": [kind.start, kind.stop - 1], **rounded, **clip, **missing}
    edges = [float(edge) if math.isfinite(edge) else str(edge) for edge in kind.edges]  # JSON has no inf
    integer, ends = {"integer": True} if kind.integer else {}, {"ends": True} if kind.ends else {}
    return {"edges": edges, **integer, **ends, **clip, **missing}


def _word_to_json(word: Any) -> Any:
    return {"float": str(word)} if isinstance(word, float) and math.isinf(word) else word
