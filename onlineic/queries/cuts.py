"""How one attribute is cut into parts: at some of its codes where it is long, else with a part for each code.

An attribute of seconds or of identifiers has more codes than anything should be written for. Its parts are
runs of neighbouring codes, known by where they begin; which part a code lies in is looked up among these.
What is planned for it goes by a public grid of equal parts, as if it had no more codes. The cell of missing
values, which is next to no value, is a part by itself.
"""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.attributes import Attribute, IntegerRange
from onlineic.domain.dates import Dates
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidQueryError, TooLargeError, set_fields
from onlineic.queries.tables import immutable, sum_classes

LONG = 2**17  # codes, above which an ordered attribute is known by cut points
GRID = 2**12  # equal parts of the values of a long one that are planned with
WRITTEN = 2**24  # codes of a long one for which a number each is written at most

GAPPED = (
    "classes must number the blocks 0, 1, .. without gaps, one number a code of each of `axes`, "
    "which increase, got other arrays; number them again."
)


def is_long(attribute: Attribute) -> bool:
    """Return whether an attribute is known by cut points: whole numbers or dates, of many values."""
    return isinstance(attribute, IntegerRange | Dates) and attribute.size - attribute.missing > LONG


@lru_cache(64)
def long_axes(domain: Domain) -> tuple[int, ...]:
    """Return the places of the long attributes of a domain."""
    return tuple(axis for axis, kind in enumerate(domain.attributes) if is_long(kind))


def check_written(size: int) -> None:
    """Raise `TooLargeError` where a number for each code of one attribute would be too many."""
    if size > WRITTEN:
        raise TooLargeError(
            f"an attribute of more than {WRITTEN:,} codes must be asked by one range at a time, got another "
            f"condition on one of {size:,}; write between(..) or span(..), or declare it with fewer codes."
        )


@final
@attrs.frozen(eq=False, repr=False)
class Cut:
    """The parts of one attribute, numbered 0, 1, .. without gaps.

    Made by `Cut.at` or `Cut.of`, one of which every attribute has: so equal cuts have equal keys.

    Attributes:
        size: Codes of the attribute.
        starts: Shape (parts,). The first code of every part, where parts are runs of neighbouring codes in
            order.
        labels: Shape (codes,). The part of every code, where they are not known by their starts.
    """

    size: int
    starts: Ints | None
    labels: Ints | None

    def __attrs_post_init__(self) -> None:
        if (self.starts is None) == (self.labels is None):
            raise InvalidQueryError(GAPPED)
        # copies first, plain ones: the caller may change his arrays, and a subclass could be two in one
        if self.starts is not None:
            held = np.array(self.starts)
            inside = held.ndim == 1 and held.size > 0 and held.dtype.kind in "iu" and held[0] == 0
            if not inside or held[-1] >= self.size or not (held[1:] > held[:-1]).all():
                raise InvalidQueryError(
                    "starts must be codes of the attribute that rise from 0, got others; sort them."
                )
            set_fields(self, size=int(self.size), starts=immutable(held.astype(np.int64, copy=False)))
            return
        held = np.array(self.labels)
        if held.shape != (self.size,) or not held.size or held.dtype.kind not in "iub" or not _gapless(held):
            raise InvalidQueryError(GAPPED)
        set_fields(self, size=int(self.size), labels=immutable(held.astype(np.int64, copy=False)))

    @classmethod
    def at(cls, size: int, starts: Any) -> "Cut":
        """Return the runs of codes that begin at these, rising from 0.

        Raises:
            InvalidQueryError: If they do not rise, or lie outside of the attribute.
        """
        return cls(size, np.asarray(starts), None)

    @classmethod
    def of(cls, labels: Any, long: bool = False) -> "Cut":
        """Return the parts that these numbers are, one a code; of a `long` attribute runs by their starts.

        Raises:
            InvalidQueryError: If they are not 0, 1, .. without gaps.
        """
        found = cls(len(np.atleast_1d(labels)), None, labels)
        if long and found.in_order:
            return cls.at(found.size, np.flatnonzero(np.diff(found.codes, prepend=-1)))
        return found

    @cached_property
    def parts(self) -> int:
        """How many parts there are."""
        return int(self.codes.max()) + 1 if self.starts is None else len(self.starts)

    @property
    def codes(self) -> Ints:
        """The part of every code, (codes,): of a long attribute written when it is asked for.

        Raises:
            TooLargeError: If these are too many.
        """
        if self.labels is not None:
            return self.labels
        check_written(self.size)
        return np.repeat(np.arange(self.parts), self.widths)

    @property
    def in_order(self) -> bool:
        """Whether every part is a run of neighbouring codes, and they are numbered in their order."""
        return self.labels is None or not (self.labels[1:] < self.labels[:-1]).any()

    @cached_property
    def firsts(self) -> Ints:
        """The first code of every part, (parts,)."""
        if self.starts is not None:
            return self.starts
        return immutable(np.asarray(np.unique(self.codes, return_index=True)[1], np.int64))

    @cached_property
    def widths(self) -> Ints:
        """How many codes every part has, (parts,)."""
        if self.starts is not None:
            return immutable(np.diff(self.starts, append=self.size))
        return immutable(np.bincount(self.codes))

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal cuts of one attribute."""
        return (self.codes.tobytes(),) if self.starts is None else ("at", self.starts.tobytes())

    def of_codes(self, codes: Any) -> Ints:
        """Return the part that each of these codes lies in."""
        if self.labels is not None:
            return np.asarray(self.labels[codes])
        return np.searchsorted(self.firsts, np.asarray(codes, np.int64), side="right") - 1

    def sums(self, table: Floats, axis: int) -> Floats:
        """Return the sums over the parts of what a table holds for every code along one axis."""
        if self.labels is not None:
            return sum_classes(table, self.labels, axis)
        if self.parts == self.size:
            return table
        return np.asarray(np.add.reduceat(table, self.firsts, axis=axis))

    def inside(self, low: int, high: int) -> Floats:
        """Return which share of every part lies in a half-open range of codes, (parts,); parts are runs."""
        ends = self.firsts + self.widths
        held = np.minimum(ends, high) - np.maximum(self.firsts, low)
        return np.asarray(np.maximum(held, 0) / self.widths)

    def means(self, table: Floats, axis: int) -> Floats:
        """Return the mean over every part of what a table holds for every code along one axis."""
        shape = [1] * table.ndim
        shape[axis] = self.parts
        return np.asarray(self.sums(table, axis) / self.widths.reshape(shape))

    def range_of(self, part: int) -> tuple[int, int]:
        """Return the half-open range of codes of a part of a long attribute."""
        return int(self.firsts[part]), int(self.firsts[part] + self.widths[part])


def uncut(attribute: Attribute) -> Ints:
    """Return the first code of the values, and that of the missing cell, if there is one."""
    return np.array([0, attribute.size - 1] if attribute.missing else [0], np.int64)


@lru_cache(64)
def grid_of(attribute: Attribute) -> Cut:
    """Return the equal parts of its values that a long attribute is planned with, and its missing cell."""
    values = attribute.size - attribute.missing
    starts = [-(-part * values // GRID) for part in range(GRID)]
    return Cut.at(attribute.size, np.append(starts, uncut(attribute)[1:]))


@lru_cache(64)
def planned(domain: Domain) -> Domain:
    """Return the domain that is planned with: the parts of its grid are the codes of a long attribute."""
    kinds = domain.attributes
    return shortened(domain, {axis: IntegerRange(0, GRID, kinds[axis].missing) for axis in long_axes(domain)})


def shortened(domain: Domain, kinds: Mapping[int, IntegerRange]) -> Domain:
    """Return the domain with other attributes at these places: their codes are parts of those of its own."""
    if not kinds:
        return domain
    held = [kinds.get(axis, kind) for axis, kind in enumerate(domain.attributes)]
    return Domain(domain.names, tuple(held))


def _gapless(labels: Ints) -> bool:
    """Return whether labels number blocks 0, 1, .. without gaps; looked up, which takes no sorting."""
    last = int(labels.max())
    if int(labels.min()) != 0 or last >= labels.size:
        return False
    seen = np.zeros(last + 1, np.bool_)
    seen[labels if labels.dtype.kind != "b" else labels.astype(np.uint8)] = True
    return bool(seen.all())
