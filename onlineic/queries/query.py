"""Linear queries in canonical form, on the integer grid.

A `Query` is a product of weight vectors over disjoint sets of attributes, or one minus such a product,
with INTEGER weights on the dyadic grid 2^-grid_bits. The rounded query is the query: hypothesis, private
counts and error bounds all use it, and its sensitivity is an exact integer.

Proof: docs/theory/queries.md, 1.3, 1.4.
"""

import abc
import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats, Ints
from onlineic.accounting.neighbours import REPLACE_ONE
from onlineic.domain.attributes import Attribute, Binned, Categorical
from onlineic.domain.domain import Domain
from onlineic.errors import DomainMismatchError, InvalidParameterError, InvalidQueryError, shown
from onlineic.queries.cuts import Cut
from onlineic.queries.tables import Sums, immutable, spread

GRID_BITS = 20  # finest grid of fractional weights
SHOWN = 8  # labels of a list that a repr shows
MOST_WRITTEN = 2**12  # ranges whose texts are remembered, of all domains
OUTSIDE = (
    "query must have intervals of codes inside its attributes, got others; make conditions with between(..), "
    "span(..) or one_of(..)."
)


def session_grid_bits(n: int) -> int:
    """Return the finest grid on which n 2^k fits a float64 integer with a bit to spare, at most 20.

    Raises:
        InvalidParameterError: If fewer than 8 bits are left for weights between 0 and 1.
    """
    bits = min(GRID_BITS, 52 - math.ceil(math.log2(n)))
    if bits < 8:
        raise InvalidParameterError(f"n must be at most 2^44 for a grid of 8 bits, got n={n}; take a sample.")
    return bits


@final
@attrs.frozen(eq=False)
class Factor:
    """Integer weights over a few attributes: an interval of codes (0/1), or a table.

    Args:
        axes: Axes of the domain, increasing.
        low, high: The half-open interval of codes with weight 1; only where `table` is None.
        table: Int64 array over the axes. Weights in [0, 2^bits], over memory that nobody can write to.
        bits: Grid exponent of this factor.
    """

    axes: tuple[int, ...]
    low: int = 0
    high: int = 0
    table: Ints | None = None
    bits: int = 0

    @cached_property
    def floats(self) -> Floats:
        """The weights of a table as float64 integers, for exact products below 2^53."""
        return immutable(self.table.astype(np.float64))  # type: ignore[union-attr]

    def weights(self, domain: Domain) -> Ints:
        """Return the integer weights over the axes."""
        if self.table is not None:
            return self.table
        result = np.zeros(domain.shape[self.axes[0]], np.int64)
        result[self.low : self.high] = 1
        return result

    def at(self, *codes: Ints) -> Ints:
        """Return the integer weights at the product of some codes, those of each axis."""
        if self.table is not None:
            return self.table[np.ix_(*codes)]
        (own,) = codes
        return ((own >= self.low) & (own < self.high)).astype(np.int64)

    def changes(self, domain: Domain) -> list[Ints]:
        """Return, for each axis, the codes at which some slice of the weights differs from the one before."""
        if self.table is None:
            size = domain.shape[self.axes[0]]
            return [np.array([end for end in (self.low, self.high) if 0 < end < size], np.int64)]
        result = []
        for axis in range(self.table.ndim):
            steps = np.diff(self.table, axis=axis)
            others = tuple({*range(self.table.ndim)} - {axis})
            result.append(np.flatnonzero(steps.any(axis=others)) + 1)
        return result

    def share(self, domain: Domain, *, whole: bool = False) -> float:
        """Return the share of the codes with a weight above 0, or with the `whole` weight 1."""
        if self.table is None:
            return (self.high - self.low) / domain.shape[self.axes[0]]
        return float((self.table == 1 << self.bits if whole else self.table > 0).mean())

    def means(self, domain: Domain, cuts: Mapping[int, Cut]) -> Floats:
        """Return the weights over the axes, in [0, 1]; their means over the parts of those with a cut."""
        if self.table is None and self.axes[0] in cuts:
            return cuts[self.axes[0]].inside(self.low, self.high)
        table = np.ldexp(self.weights(domain).astype(np.float64), -self.bits)
        for place, axis in enumerate(self.axes):
            if axis in cuts:
                table = cuts[axis].means(table, place)
        return table

    @property
    def key(self) -> tuple[Any, ...]:
        if self.table is None:
            return (self.axes[0], self.low, self.high)
        return (*self.axes, self.bits, self.table.tobytes())


@final
@attrs.frozen(eq=False, repr=False)
class Query:
    """A canonical linear query: f(x) = product of factors, or one minus it, on the grid 2^-grid_bits.

    Attributes:
        factors: Over disjoint axes, ordered by first axis; none for a constant.
        complement: Whether the query is one minus the product.
        axes: All axes of the factors, increasing.
        grid_bits: k: integer weights lie in [0, 2^k].
        lowest, highest: The least and the largest integer weight over the domain, exactly:
            `accounting.Neighbours` tell from them how far a neighbour moves n 2^k f.
        rounding: Largest difference of the rounded query from the one written, in fractions.
    """

    domain: Domain
    _factors: tuple[Factor, ...] | None = attrs.field(alias="factors")  # None: those of the box, not yet made
    complement: bool
    grid_bits: int
    lowest: int
    highest: int
    rounding: float
    axes: tuple[int, ...]
    box: tuple[tuple[int, ...], tuple[int, ...]] | None  # (low, high) along `axes`, if all are intervals
    key: tuple[Any, ...]  # equal for a query and its complement
    constant: int | None  # integer value of a constant query
    # set by `canonical` alone and not copied by attrs.evolve: an altered query would lie about its price
    _canonical: bool = attrs.field(default=False, init=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Query):
            return NotImplemented
        return (self.key, self.complement, self.domain) == (other.key, other.complement, other.domain)

    def __hash__(self) -> int:
        return hash((self.key, self.complement))

    @property
    def sensitivity(self) -> int:
        """Return what n 2^k f changes by at most when one record is replaced. 0 for a constant query."""
        return REPLACE_ONE.number(self.lowest, self.highest)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors: made when they are first asked for, if they are intervals."""
        if self._factors is None:
            low, high = self.box or ((), ())
            ends = zip(self.axes, low, high, strict=True)
            made = tuple([Factor((axis,), first, last) for axis, first, last in ends])
            object.__setattr__(self, "_factors", made)
        return self._factors or ()

    @property
    def written(self) -> str:
        """The query as `where` takes it; long lists, weights and joint tables only by their size."""
        if self.constant is not None:
            return f"{self.constant / (1 << self.grid_bits):g} for all"
        if self.box is not None and not self.complement:
            ends = zip(self.axes, *self.box, strict=True)
            return f"where({', '.join([_range_written(self.domain, *one) for one in ends])})"
        factors, turned = self.factors, self.complement
        if turned and len(factors) == 1 and (other := _others(self.domain, factors[0])) is not None:
            factors, turned = (other,), False  # as it was written
        parts = ", ".join(_written(self.domain, factor) for factor in factors)
        return f"{'~' * turned}where({parts})"

    def __repr__(self) -> str:
        grid = "" if self.constant is not None else f", grid_bits={self.grid_bits}"
        return f"Query({self.written}{grid})"

    def bind(self, domain: Domain, grid_bits: int = GRID_BITS) -> "Query":
        """Return the query itself if it was bound to this domain, and is as it was bound."""
        if not self._canonical:
            raise InvalidQueryError(
                "query must be as bind made it, got one put together by hand; bind an expression."
            )
        # the shape is what the sensitivity rests on, however domains and their attributes compare
        if domain is not self.domain and (domain.shape != self.domain.shape or domain != self.domain):
            raise DomainMismatchError(
                f"query must be bound to domain {domain.digest()}, got one bound to {self.domain.digest()}; "
                "bind the expression again."
            )
        if self.grid_bits > grid_bits:
            raise InvalidQueryError(
                f"query must have grid_bits <= {grid_bits}, got {self.grid_bits}; bind it with {grid_bits}."
            )
        return self

    def total(self, tables: Sums, mass: float) -> float:
        """Return the sum over all cells of cell * integer weight; `mass` is the sum of the cells."""
        if self.constant is not None:
            return mass * self.constant
        if self.box is not None:
            result = tables.box(self.axes, *self.box)
        else:
            result = tables.weighted(
                self.axes,
                [
                    (factor.axes, (factor.low, factor.high) if factor.table is None else factor.floats)
                    for factor in self.factors
                ],
            )
        return mass * (1 << self.grid_bits) - result if self.complement else result

    def possible(self, axis: int) -> Bools:
        """Return which codes of an axis some cell with a weight above 0 has, shape (codes,).

        Of a complement of several factors every code may be one, and of weights that were rounded, perhaps
        to 0.
        """
        every = np.ones(self.domain.shape[axis], np.bool_)
        if self.rounding:
            return every
        if self.constant is not None:
            return every & (self.constant > 0)
        for factor in self.factors:
            if axis in factor.axes and (not self.complement or len(self.factors) == 1):
                weights = factor.weights(self.domain)
                held = weights < (1 << factor.bits) if self.complement else weights > 0
                others = tuple(place for place, one in enumerate(factor.axes) if one != axis)
                every &= held.any(axis=others)
        return every

    def ends(self, axis: int) -> tuple[int, int]:
        """Return the half-open range from the first code of `possible` to the last; empty if there is none.

        Of intervals no code is written.
        """
        size, own = self.domain.shape[axis], [factor for factor in self.factors if axis in factor.axes]
        every = not own or (self.complement and len(self.factors) > 1)
        if self.rounding or self.constant is not None or every:
            return (0, 0) if self.constant == 0 and not self.rounding else (0, size)
        (factor,) = own
        if factor.table is None and not self.complement:
            return factor.low, factor.high
        if factor.table is None:
            return factor.high if factor.low == 0 else 0, factor.low if factor.high == size else size
        codes = np.flatnonzero(self.possible(axis))
        return (int(codes[0]), int(codes[-1]) + 1) if len(codes) else (0, 0)

    def weights(self) -> Ints:
        """Return the integer weights of all cells, shape of the domain: for small domains and tests."""
        result: Ints = np.ones(self.domain.shape, np.int64) if not self.factors else np.ones((), np.int64)
        for factor in self.factors:
            result = result * spread(factor.weights(self.domain), factor.axes, len(self.domain.shape))
        if self.constant is not None:
            result = np.full(self.domain.shape, self.constant, np.int64)
        elif self.complement:
            result = (1 << self.grid_bits) - result
        return np.broadcast_to(result, self.domain.shape)


def _others(domain: Domain, factor: Factor) -> Factor | None:
    """Return a condition of one attribute that holds where this one does not, if it is shorter to write."""
    axis, size = factor.axes[0], domain.shape[factor.axes[0]]
    if factor.table is None:
        shorter = factor.high == size and factor.low < size - domain.attributes[axis].missing
        return Factor(factor.axes, 0, factor.low) if shorter else None
    if len(factor.axes) > 1 or factor.bits or 2 * int(factor.table.sum()) < size:
        return None
    return Factor(factor.axes, table=1 - factor.table)


def _written(domain: Domain, factor: Factor) -> str:
    """Return a factor as `where` takes it; long lists, weights and joint tables only by their size."""
    if factor.table is None:
        return _range_written(domain, factor.axes[0], factor.low, factor.high)
    name = " x ".join(domain.names[axis] for axis in factor.axes)
    if len(factor.axes) > 1:
        return f"{name}=<{factor.table.size} weights>"
    kind = domain.attributes[factor.axes[0]]
    if factor.bits:
        steps = np.diff(factor.table[: kind.size - kind.missing].astype(np.int64))
        for way, turned in (("rising", steps), ("falling", -steps)):  # as means and sums ask
            if len(turned) > 1 and (turned > 0).all():
                return f"{name}=weights(<{factor.table.size}, {way}>)"
        return f"{name}=weights(<{factor.table.size}>)"
    return f"{name}={_listed(kind, np.flatnonzero(factor.table).tolist())}"


@lru_cache(MOST_WRITTEN)
def _range_written(domain: Domain, axis: int, low: int, high: int) -> str:
    """Return a half-open range of codes as `where` takes it: questions of a stream share most of theirs."""
    return f"{domain.names[axis]}={_interval_written(domain.attributes[axis], low, high)}"


def _interval_written(kind: Attribute, low: int, high: int) -> str:
    """Return a half-open range of codes in the labels of its attribute."""
    last = kind.size - kind.missing  # after it: the missing cell
    if high > last:
        some = f"{_interval_written(kind, low, last)} | " if low < last else ""
        return f"({some}one_of(None))" if some else "None"
    if isinstance(kind, Binned):
        if low % kind.cells or high % kind.cells:  # one end of a bin
            return _listed(kind, list(range(low, high)))
        return f"span({shown(kind.edges[low // kind.cells])}, {shown(kind.edges[high // kind.cells])})"
    if high - low == 1:
        return repr(kind.label(low))
    if isinstance(kind, Categorical):
        return _listed(kind, list(range(low, high)))
    return f"between({shown(kind.label(low))}, {shown(kind.label(high - 1))})"


def _listed(kind: Attribute, codes: list[int]) -> str:
    """Return the labels of some codes, the first few of many."""
    if isinstance(kind, Binned):
        return f"<{len(codes)} of {kind.size} {'ends of bins' if kind.ends else 'bins'}>"
    labels = ", ".join(repr(kind.label(code)) for code in codes[:SHOWN])
    return f"one_of({labels}{', ...' * (len(codes) > SHOWN)})"


class Columnar(abc.ABC):
    """A sequence of queries that is held as columns: what is asked of all of them is not asked of each."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def grid_bits(self) -> Ints:
        """`Query.grid_bits` of each, (m,)."""

    @abc.abstractmethod
    def totals(self, tables: Sums, mass: float) -> Floats:
        """Return `Query.total` of each, (m,)."""


def grids(queries: Sequence[Query]) -> Ints:
    """Return `grid_bits` of every query, shape (m,)."""
    if isinstance(queries, Columnar):
        return queries.grid_bits
    return np.array([query.grid_bits for query in queries], np.int64)


def totals(queries: Sequence[Query], tables: Sums, mass: float) -> Floats:
    """Return `total` of every query, shape (m,), to the same bits: boxes by attribute set in one gather."""
    if isinstance(queries, Columnar):
        return queries.totals(tables, mass)
    result = np.empty(len(queries))
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, query in enumerate(queries):
        if query.box is None:
            result[index] = query.total(tables, mass)
        else:
            groups.setdefault(query.axes, []).append(index)
    for axes, members in groups.items():
        ends = np.array([queries[index].box for index in members], np.int64)  # (m, 2, axes)
        turned = np.array([queries[index].complement for index in members])
        sums = tables.boxes(axes, ends[:, 0], ends[:, 1])
        result[members] = np.where(turned, mass - sums, sums)
    return result


def canonical(
    domain: Domain,
    complement: bool,
    joint: Mapping[tuple[int, ...], tuple[int, int] | Floats],
    grid_bits: int,
) -> Query:
    """Drop full factors, find intervals, round the rest to the grid, choose between q and 1 - q.

    What the sensitivity rests on is checked here, whoever made the factors: axes of the domain, each in one
    factor, intervals inside [0, size), tables of the shape of their axes with weights in [0, 1].

    Raises:
        InvalidQueryError: If a factor is not so.
    """
    factors: list[Factor] = []
    fractional: list[tuple[tuple[int, ...], Floats]] = []
    _check_axes(domain, joint)
    for axes, part in joint.items():
        if type(part) is tuple:
            if len(axes) != 1 or not _inside(part, domain.shape[axes[0]]):
                raise InvalidQueryError(OUTSIDE)
            if part[0] >= part[1]:
                return _constant(domain, complement, 0)
            if part[1] - part[0] < domain.shape[axes[0]]:
                factors.append(Factor(axes, *part))
            continue
        # a subclass of arrays, or an array of objects, could compare and round as it likes
        shape = tuple(domain.shape[axis] for axis in axes)
        if type(part) is not np.ndarray or part.dtype != np.float64 or part.shape != shape:
            raise InvalidQueryError(
                "query must have plain float64 weights, one for every code of its attributes, got others; "
                "make conditions with weights(..)."
            )
        if not ((part >= 0.0) & (part <= 1.0)).all():  # highest and lowest multiply where none is negative
            raise InvalidQueryError(
                "query must have weights in [0, 1], got others; make conditions with weights(..)."
            )
        if not part.any():
            return _constant(domain, complement, 0)
        if (part == 1.0).all():
            continue
        if ((part == 0.0) | (part == 1.0)).all():
            factors.append(_tabled(axes, part.astype(np.int64), 0))
        else:
            fractional.append((axes, part))
    rounding = 0.0
    if fractional:
        bits = grid_bits // len(fractional)
        if bits < 1:
            raise InvalidQueryError(
                f"query must have at most {grid_bits} attributes with fractional weights on a grid of "
                f"{grid_bits} bits, got {len(fractional)}; use 0/1 conditions."
            )
        for axes, part in fractional:
            table = np.rint(np.ldexp(part, bits)).astype(np.int64)
            error = float(np.abs(np.ldexp(table.astype(float), -bits) - part).max())
            if not table.any():
                return _constant(domain, complement, 0, 0, error)
            rounding += error
            common = int(np.bitwise_or.reduce(table, axis=None))
            spare = min(bits, (common & -common).bit_length() - 1)  # the coarsest grid that holds the table
            if spare < bits or (table < common).any():
                factors.append(_tabled(axes, table >> spare, bits - spare))
    if not factors:
        return _constant(domain, complement, 1, 0, rounding)
    if len(factors) == 1:
        complement ^= _turn(domain, factors)
    factors.sort(key=attrgetter("axes"))
    return _query(domain, tuple(factors), complement, rounding)


def conjunction(domain: Domain, intervals: Sequence[tuple[int, int, int]]) -> Query | None:
    """Return what `canonical` makes of intervals (axis, low, high) alone; None where two are of one axis.

    Raises:
        InvalidQueryError: As `canonical`.
    """
    _check_domain(domain)
    shape = domain.shape
    held: list[tuple[int, int, int]] = []
    last, ordered = -1, True
    for interval in intervals:
        axis, low, high = interval
        size = shape[axis]
        if type(low) is not int or type(high) is not int or not (0 <= low <= size and 0 <= high <= size):
            raise InvalidQueryError(OUTSIDE)
        if low >= high:
            return _constant(domain, False, 0)
        if high - low < size:
            held.append(interval)
            last, ordered = axis, ordered and axis > last
    if not ordered:
        held.sort()
        if len({axis for axis, _, _ in held}) < len(held):
            return None
    if not held:
        return _constant(domain, False, 1)
    turned = len(held) == 1 and held[0][1] == 0  # q and 1 - q share a key: the one that begins later
    if turned:
        axis, _, high = held[0]
        held = [(axis, high, shape[axis])]
    axes, low_ends, high_ends = zip(*held, strict=True)
    return _marked(Query(domain, None, turned, 0, 0, 1, 0.0, axes, (low_ends, high_ends), tuple(held), None))


def _check_domain(domain: Domain) -> None:
    if type(domain) is not Domain:  # a subclass could be equal to a domain of another shape
        raise InvalidQueryError(
            f"domain must be a Domain itself, got a {type(domain).__name__}; write Domain.of(..)."
        )


def _check_axes(domain: Domain, joint: Mapping[tuple[int, ...], Any]) -> None:
    """Raise unless a plain domain has all these axes, and each is in one factor."""
    _check_domain(domain)
    held, dimensions = set[int](), len(domain.shape)
    for axis in chain.from_iterable(joint):
        if type(axis) is not int or not 0 <= axis < dimensions or axis in held:
            raise InvalidQueryError(
                f"query must hold each of the axes 0 .. {dimensions - 1} at most once, got {shown(axis)}; "
                "join the conditions on one attribute by &."
            )
        held.add(axis)


def _inside(part: tuple[Any, ...], size: int) -> bool:
    """Whether this is a half-open interval of codes below the size; no other class of numbers is asked."""
    if len(part) == 2 and type(part[0]) is int and type(part[1]) is int:
        return 0 <= part[0] <= size and 0 <= part[1] <= size
    return False


def _query(domain: Domain, factors: tuple[Factor, ...], complement: bool, rounding: float) -> Query:
    grid_bits, highest, lowest = 0, 1, 1
    low: list[int] = []
    high: list[int] = []
    held: list[int] = []
    keys: list[tuple[Any, ...]] = []
    for factor in factors:  # one plain loop: this runs for every query of a stream
        held += factor.axes
        keys.append(factor.key)
        if factor.table is None:
            lowest = 0
            low.append(factor.low)
            high.append(factor.high)
        else:
            grid_bits += factor.bits
            highest *= int(factor.table.max())
            lowest *= int(factor.table.min())
    if highest == lowest:
        return _constant(domain, complement, highest, grid_bits, rounding)
    box = (tuple(low), tuple(high)) if len(low) == len(factors) else None
    axes, key = tuple(sorted(held)), tuple(keys)
    if complement:
        whole = 1 << grid_bits
        lowest, highest = whole - highest, whole - lowest
    return _marked(
        Query(domain, factors, complement, grid_bits, lowest, highest, rounding, axes, box, key, None)
    )


def _constant(
    domain: Domain, complement: bool, value: int, grid_bits: int = 0, rounding: float = 0.0
) -> Query:
    value = (1 << grid_bits) - value if complement else value
    key = ("constant", grid_bits, value)
    return _marked(Query(domain, (), False, grid_bits, value, value, rounding, (), None, key, value))


def constant_query(domain: Domain, value: bool) -> Query:
    """Return the query that counts everybody, or nobody."""
    return _constant(domain, False, int(value))


def boxed(
    domain: Domain,
    axes: tuple[int, ...],
    low: Sequence[int],
    high: Sequence[int],
    complement: bool,
    rounding: float = 0.0,
) -> Query:
    """Return the query of intervals that are canonical already: checked, and neither empty nor whole."""
    factors = tuple(Factor((axis,), first, last) for axis, first, last in zip(axes, low, high, strict=True))
    return _query(domain, factors, complement, rounding)


def _marked(query: Query) -> Query:
    """Mark a query whose sensitivity, box and key were computed from its factors."""
    object.__setattr__(query, "_canonical", True)
    return query


def _tabled(axes: tuple[int, ...], table: Ints, bits: int) -> Factor:
    """Return a factor; 0/1 weights of consecutive codes become an interval."""
    if table.ndim == 1 and bits == 0:
        codes = np.flatnonzero(table)
        if codes[-1] - codes[0] + 1 == len(codes):
            return Factor(axes, int(codes[0]), int(codes[-1]) + 1)
    return Factor(axes, 0, 0, immutable(table), bits)


def _turn(domain: Domain, factors: list[Factor]) -> bool:
    """Replace the only factor w by 1 - w if that comes first in order, so that q and ~q share a key."""
    factor = factors[0]
    if factor.table is None:
        if factor.low > 0:
            return False
        factors[0] = Factor(factor.axes, factor.high, domain.shape[factor.axes[0]])
        return True
    turned = (1 << factor.bits) - factor.table
    differs = np.flatnonzero(turned != factor.table)
    if len(differs) == 0 or turned.flat[differs[0]] > factor.table.flat[differs[0]] or not turned.any():
        return False
    factors[0] = _tabled(factor.axes, turned, factor.bits)
    return True
