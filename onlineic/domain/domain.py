"""The public universe: named attributes with finitely many values, and the codes of their values.

A domain is written down by a person who knows the table's meaning, never read off the private rows:
the list of labels that happen to occur is itself a release.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Ints
from onlineic.display.html import card, table
from onlineic.display.text import GAP, cut_rows, shortened
from onlineic.domain.attributes import (
    Attribute,
    Binned,
    Categorical,
    IntegerRange,
    binned,
    column_array,
    shown,
)
from onlineic.domain.hints import nearest
from onlineic.errors import InvalidDataError, InvalidDomainError, InvalidQueryError, set_fields

SHOWN, LONGEST_SHOWN, LONGEST_ROW = 4, 24, 120  # labels of an attribute in a notebook, and characters
Kind = Attribute | range | int | Iterable[Any]


def optional(kind: Kind) -> Attribute:
    """Return `kind` with one more cell, the last, for missing values."""
    return attrs.evolve(_attribute("optional", kind), missing=True)


@final
@attrs.frozen(hash=True)
class Domain:
    """A product of named finite attributes: the cells over which records and hypotheses are counted.

    Parameters
    ----------
    names : tuple of str
        Attribute names, distinct.
    attributes : tuple of Categorical, IntegerRange or Binned
        What values each attribute takes.

    Examples
    --------
    >>> domain = Domain.of(age=range(17, 91), sex=["F", "M"], region=4)
    >>> domain.shape, domain.size
    ((74, 2, 4), 592)
    """

    names: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    shape: tuple[int, ...] = attrs.field(init=False, eq=False, repr=False)
    size: int = attrs.field(init=False, eq=False, repr=False)
    _axes: dict[str, int] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.attributes):
            raise InvalidDomainError(
                f"a domain must have one or more attributes, each with a name, got {len(self.names)} names "
                f"for {len(self.attributes)} attributes."
            )
        if not all(type(name) is str and name for name in self.names) or len(set(self.names)) < len(
            self.names
        ):
            raise InvalidDomainError(
                f"attribute names must be distinct non-empty strings, got {list(self.names)}."
            )
        set_fields(self, names=tuple(self.names), attributes=tuple(self.attributes))
        # a subclass could have a size of its own, and another the next time
        if not all(type(attribute) in (Categorical, IntegerRange, Binned) for attribute in self.attributes):
            raise InvalidDomainError("attributes must be kinds, got other objects; use Domain.of.")
        if not all(type(attribute.missing) is bool for attribute in self.attributes):
            raise InvalidDomainError(
                "missing must be True or False, got another object; write optional(..) of the kind."
            )
        shape = tuple(int(attribute.size) for attribute in self.attributes)
        axes = {name: axis for axis, name in enumerate(self.names)}
        set_fields(self, shape=shape, size=math.prod(shape), _axes=axes)  # Python ints: never wraps

    @classmethod
    def of(cls, kinds: Mapping[str, Kind] | None = None, /, **more: Kind) -> "Domain":
        """Return the domain of the named attributes.

        Parameters
        ----------
        kinds, **more
            Attribute name -> a `range` of integers, a size (for `range(size)`), a sequence of labels,
            `binned(edges)`, or `optional(...)` of any of them. Names that are no identifiers go into
            the mapping.

        Raises
        ------
        InvalidDomainError
            If a kind cannot be read, or names or labels are not distinct.
        """
        if kinds is not None and not isinstance(kinds, Mapping):
            raise InvalidDomainError(
                f"kinds must be a mapping of name to kind, got a {type(kinds).__name__}; use keywords."
            )
        given = {**(kinds or {}), **more}
        if len(given) < len(kinds or {}) + len(more):
            raise InvalidDomainError("attribute names must be distinct, got one twice; remove one.")
        return cls(tuple(given), tuple(_attribute(name, kind) for name, kind in given.items()))

    @classmethod
    def from_json(cls, text: str) -> "Domain":
        """Return the domain written as JSON: an object of attribute -> kind.

        A kind is a size, a list of labels, `{"range": [first, last]}`, `{"labels": [..]}` or
        `{"edges": [..]}`, where "-inf" and "inf" may end the edges; an object may add `"missing": true`,
        and `"integer": true` beside edges.
        """
        import json  # few sessions need a file: imported with it

        try:
            written = json.loads(text, object_pairs_hook=_distinct)
        except json.JSONDecodeError as error:
            raise InvalidDomainError(f"a domain file must be valid JSON, got an error: {error}.") from None
        if not isinstance(written, dict):
            raise InvalidDomainError(
                "a domain file must hold an object {attribute: kind}, got another value."
            )
        return cls.of({name: _from_json(name, kind) for name, kind in written.items()})

    def to_json(self) -> str:
        """Return the domain in the form that `from_json` reads."""
        import json

        return json.dumps({name: _to_json(kind) for name, kind in self}, ensure_ascii=False)

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
        except (KeyError, TypeError):
            near = nearest(name, self.names)
            hint = f"it has {shown(list(self.names))}." if near is None else f"did you mean {near!r}?"
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

    def encode(self, columns: Mapping[str, Any] | np.ndarray[Any, Any]) -> Ints:
        """Return the codes of records, shape (n, attributes), int64.

        Parameters
        ----------
        columns : mapping of name to array or list, or structured array
            At least the domain's attributes; other columns are ignored.

        Raises
        ------
        InvalidDataError
            If a column is absent, lengths differ, or a value lies outside the domain. Nothing is dropped.
        """
        return np.stack([*self.encoded(columns)], axis=1)

    def encoded(self, columns: Mapping[str, Any] | np.ndarray[Any, Any]) -> Iterator[Ints]:
        """Return the codes of one attribute after the other, each (n,): `encode` without holding all.

        Raises
        ------
        InvalidDataError
            As `encode`; of a value outside the domain when its attribute's turn comes.
        """
        if isinstance(columns, np.ndarray):
            if columns.dtype.names is None:
                raise InvalidDataError(
                    "records must be a mapping of columns or a structured array, got a plain array."
                )
            columns = {name: columns[name] for name in columns.dtype.names}
        if not hasattr(columns, "keys"):  # data frames have them too
            raise InvalidDataError(f"records must be a mapping of columns, got a {type(columns).__name__}.")
        absent = [name for name in self.names if name not in columns]
        if absent:
            raise InvalidDataError(
                f"records must have a column for every attribute, got none for {', '.join(absent)}."
            )
        arrays = {name: column_array(name, columns[name]) for name in self.names}
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidDataError(f"columns must have equal lengths, got {lengths}.")
        return (kind.encode(name, arrays.pop(name)) for name, kind in self)


def _values(kind: Attribute) -> str:
    """Return the first and last labels of a kind as text."""
    places, gap = cut_rows(kind.size, SHOWN)
    said = [shortened(kind.label(place), LONGEST_SHOWN) for place in places]
    if gap is not None:
        said.insert(gap, GAP)
    return ", ".join(said)


def _attribute(name: str, kind: Kind) -> Attribute:
    if isinstance(kind, (Categorical, IntegerRange, Binned)):
        return kind
    if isinstance(kind, range):
        if kind.step != 1:
            raise InvalidDomainError(
                f"{name} must be a range of step 1, got {kind}; list the labels instead."
            )
        return IntegerRange(kind.start, kind.stop)
    if isinstance(kind, (int, np.integer)) and not isinstance(kind, bool):
        if kind < 1:
            raise InvalidDomainError(f"{name} must have a size >= 1, got {kind}; give it a value.")
        return IntegerRange(0, int(kind))
    # a set has no order of its own: codes would change from run to run
    if isinstance(kind, (str, bytes, Mapping, Set)) or not isinstance(kind, Iterable):
        raise InvalidDomainError(
            f"{name} must be a size, a range, a list of labels or binned(...), got {shown(kind)}."
        )
    return Categorical(tuple(label.item() if isinstance(label, np.generic) else label for label in kind))


def _from_json(name: str, kind: Any) -> Attribute:
    if not isinstance(kind, dict):
        return _attribute(name, kind)
    known = {"range", "labels", "edges", "integer", "missing"}
    forms = [form for form in ("range", "labels", "edges") if form in kind]
    if len(forms) != 1 or not set(kind) <= known or ("integer" in kind and forms != ["edges"]):
        raise InvalidDomainError(
            f"{name} must have exactly one of 'range', 'labels' and 'edges', got {sorted(kind)}; "
            "'missing' may stand beside each, 'integer' beside 'edges'."
        )
    if not all(isinstance(kind.get(flag, False), bool) for flag in ("integer", "missing")):
        raise InvalidDomainError(
            f"{name} must give true or false for 'integer' and 'missing', got other values."
        )
    value = kind[forms[0]]
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidDomainError(f"{name} must give a list for {forms[0]!r}, got {value!r}.")
    attribute: Attribute
    if forms[0] == "range":
        if len(value) != 2 or not all(type(end) is int for end in value):
            raise InvalidDomainError(f"{name} must give 'range' as [first, last], got {value!r}.")
        attribute = IntegerRange(value[0], value[1] + 1)
    elif forms[0] == "edges":
        edges = [float(edge) if edge in ("inf", "-inf") else edge for edge in value]
        attribute = binned(edges, integer=kind.get("integer", False))
    else:
        attribute = Categorical(tuple(value))
    return attrs.evolve(attribute, missing=kind.get("missing", False))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object whose keys are distinct: `json` would keep the last of equal keys."""
    if len(dict(pairs)) < len(pairs):
        raise InvalidDomainError("the names in a domain file must be distinct, got one twice; remove one.")
    return dict(pairs)


def _to_json(kind: Attribute) -> dict[str, Any]:
    missing = {"missing": True} if kind.missing else {}
    if isinstance(kind, IntegerRange):
        return {"range": [kind.start, kind.stop - 1], **missing}
    if isinstance(kind, Binned):
        edges = [float(edge) if math.isfinite(edge) else str(edge) for edge in kind.edges]  # JSON has no inf
        return {"edges": edges, **({"integer": True} if kind.integer else {}), **missing}
    return {"labels": list(kind.labels), **missing}
