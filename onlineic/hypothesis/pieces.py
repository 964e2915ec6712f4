"""A hypothesis over long attributes: one over pieces of their codes, even within each piece.

What was released tells codes apart only where a table was cut. So an attribute of 10^8 codes is held by its
pieces, the runs of codes that no cut divides. Their number grows with what is bought, and never with the
codes. Relative to a start that is even over the codes, maximum entropy is even within pieces: nothing is
lost. A range that ends within a piece counts its share of it.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.attributes import IntegerRange
from onlineic.domain.domain import Domain
from onlineic.errors import TooLargeError
from onlineic.hypothesis.base import OverDomain, check_size
from onlineic.hypothesis.histogram import fractions
from onlineic.hypothesis.local_fits import LocalFits
from onlineic.hypothesis.mixture import Mixture
from onlineic.noise.sources import public_generator
from onlineic.queries.cuts import LONG, Cut, long_axes, shortened, uncut
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query, canonical
from onlineic.queries.tables import Sums, Tables, spread, sum_classes

MOST_ENDS = 64  # codes at which the weights of a measured query change, along one long attribute
WRITTEN_CELLS = 2**22  # of a marginal that is written code by code

_Part = tuple[tuple[int, ...], Floats | tuple[int, int]]
_Term = tuple[float, int, int]  # a factor, and the pieces from .. to that it stands before


@final
@attrs.frozen(eq=False)
class Pieces:
    """Groups of codes that stand for long attributes, and translation of targets from codes to groups.

    Args:
        cuts: Of every long attribute, by its place.
    """

    domain: Domain
    cuts: Mapping[int, Cut]

    @classmethod
    def whole(cls, domain: Domain) -> "Pieces":
        """Return each long attribute in one piece, and one of missing values."""
        kinds = domain.attributes
        return cls(domain, {axis: Cut.at(kinds[axis].size, uncut(kinds[axis])) for axis in long_axes(domain)})

    @classmethod
    def of(cls, domain: Domain, measurements: Iterable[Measurement]) -> "Pieces":
        """Return the pieces that these cut codes into, as far as a fit reads them."""
        starts = {axis: [uncut(domain.attributes[axis])] for axis in long_axes(domain)}
        for one in measurements:
            for axis, held in _cuts_of(one.target).items() if is_read(one) else ():
                if axis in starts:
                    starts[axis].append(held)
        cuts = {}
        for axis, several in starts.items():
            cuts[axis] = cut = Cut.at(domain.shape[axis], np.unique(np.concatenate(several)))
            if cut.parts > LONG:
                raise TooLargeError(
                    f"{domain.names[axis]} must be cut into at most {LONG:,} pieces, got {cut.parts:,}; open "
                    "a new session, or declare it with fewer codes."
                )
        return cls(domain, cuts)

    @cached_property
    def small(self) -> Domain:
        """The domain whose codes are the pieces."""
        return shortened(self.domain, {axis: IntegerRange(0, cut.parts) for axis, cut in self.cuts.items()})

    @cached_property
    def prior(self) -> tuple[Floats, ...]:
        """The distribution of each attribute that is even over its codes."""
        return tuple(
            self.cuts[axis].widths / size if axis in self.cuts else np.full(size, 1.0 / size)
            for axis, size in enumerate(self.domain.shape)
        )

    def partition(self, target: Partition) -> Partition:
        """Return a partition that cuts no piece as a partition of the pieces."""
        cuts = [
            Cut.of(cut.of_codes(self.cuts[axis].firsts)) if axis in self.cuts else cut
            for axis, cut in zip(target.axes, target.cuts, strict=True)
        ]
        return Partition(self.small, target.axes, cuts)

    def over_codes(self, target: Partition) -> Partition:
        """Return a partition into runs of pieces as one of the codes."""
        cuts = [
            Cut.at(self.cuts[axis].size, self.cuts[axis].firsts[cut.firsts]) if axis in self.cuts else cut
            for axis, cut in zip(target.axes, target.cuts, strict=True)
        ]
        return Partition(self.domain, target.axes, cuts)

    def query(self, target: Query) -> Query:
        """Return a 0/1 query that cuts no piece as a query of the pieces."""
        joint: dict[tuple[int, ...], tuple[int, int] | Floats] = {}
        for factor in target.factors:
            codes = [
                self.cuts[axis].firsts if axis in self.cuts else np.arange(self.domain.shape[axis])
                for axis in factor.axes
            ]
            joint[factor.axes] = factor.at(*codes).astype(np.float64)
        return canonical(self.small, target.complement, joint, 0)

    def measured(self, measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
        """Return those measurements that a fit reads, as measurements of the pieces, oldest first."""
        return tuple(
            attrs.evolve(
                one,
                target=self.partition(one.target)
                if isinstance(one.target, Partition)
                else self.query(one.target),
            )
            for one in measurements
            if is_read(one)
        )

    def divided(self, axis: int, into: "Pieces") -> tuple[Ints, Floats]:
        """Return for every piece of a finer division the piece that it is part of, and its share of that."""
        own, finer = self.cuts[axis], into.cuts[axis]
        place = own.of_codes(finer.firsts)
        return place, finer.widths / own.widths[place]

    def even(self, mixture: Mixture) -> Mixture:
        """Return a mixture over the pieces, each component weighted by the number of codes in a piece."""
        return self._spread_out(mixture, [np.log(part * len(part)) for part in self.prior])

    def _spread_out(self, mixture: Mixture, more: Sequence[Floats]) -> Mixture:
        return attrs.evolve(mixture, logits=mixture.logits + np.concatenate(more)[:, None])

    def finer(self, inner: Any, into: "Pieces", measurements: tuple[Measurement, ...]) -> Any:
        """Return a hypothesis over these pieces, over finer ones, with what it was fitted to."""
        if isinstance(inner, LocalFits):
            held = into.measured(measurements)[: inner.fitted]  # it counts those that pieces can read
            return LocalFits(self.finer(inner.mixture, into, measurements), held)
        if isinstance(inner, Mixture):
            ends = np.cumsum(self.small.shape)[:-1]
            rows, more = [], []
            for axis, logits in enumerate(np.split(inner.logits, ends)):
                if axis in self.cuts:
                    place, shares = self.divided(axis, into)
                    logits, shares = logits[place], np.log(shares)
                else:
                    shares = np.zeros(len(logits))
                rows.append(logits)
                more.append(shares)
            moved = attrs.evolve(inner, domain=into.small, logits=np.concatenate(rows))
            return self._spread_out(moved, more)
        return inner.moved(into.small, {axis: self.divided(axis, into) for axis in self.cuts}, into.prior)


@final
@attrs.frozen(eq=False)
class Raised:
    """A hypothesis over long attributes and what is added to it, over one set of attributes.

    Args:
        pieces: Those that `added` has of each long attribute of the set; even within each.
        added: One axis an attribute of the set; entries may be negative.
    """

    held: "PiecewiseHistogram"
    pieces: Pieces
    axes: tuple[int, ...]
    added: Floats

    @property
    def size(self) -> int:
        return self.added.size

    @cached_property
    def _sums(self) -> "_PieceSums":
        cells = spread(self.added, self.axes, len(self.held.domain.shape))
        return _PieceSums(self.pieces, Tables(cells, self.size))

    def box(self, axes: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> float:
        return self.held.sums.box(axes, low, high) + self._sums.box(axes, low, high)

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        return np.asarray(self.held.sums.boxes(axes, low, high) + self._sums.boxes(axes, low, high))

    def weighted(self, axes: tuple[int, ...], parts: Sequence[_Part]) -> float:
        return self.held.sums.weighted(axes, parts) + self._sums.weighted(axes, parts)

    def table(self, axes: tuple[int, ...]) -> Floats:
        """Return the table of the set, code by code."""
        written, table = self.held.marginal(*[self.held.domain.names[axis] for axis in axes]), self.added
        for place, axis in enumerate(axes):
            if (cut := self.pieces.cuts.get(axis)) is not None:
                means = table / spread(cut.widths.astype(np.float64), (place,), len(axes))
                table = np.repeat(means, cut.widths, axis=place)
        return written + table

    def blocks(self, partition: Partition) -> Floats:
        """Return the sum in every block of a partition of the set, shape (blocks,)."""
        table = self.added
        for place, (axis, cut) in enumerate(zip(self.axes, partition.cuts, strict=True)):
            pieces = self.pieces.cuts.get(axis)
            table = cut.sums(table, place) if pieces is None else _recut(table, place, pieces, cut)
        return self.held.blocks(partition) + table.ravel()


def _recut(table: Floats, place: int, pieces: Cut, cut: Cut) -> Floats:
    """Return the sums over the parts of a cut of a table that is even within pieces along one axis."""
    runs = cut.firsts if cut.labels is None else np.flatnonzero(np.diff(cut.labels, prepend=-1))
    table = np.moveaxis(table, place, 0)
    below = np.concatenate([np.zeros((1, *table.shape[1:])), np.cumsum(table, axis=0)])
    held = pieces.of_codes(runs)
    shares = spread((runs - pieces.firsts[held]) / pieces.widths[held], (0,), table.ndim)
    found = np.diff(np.concatenate([below[held] + shares * table[held], below[-1:]]), axis=0)
    return np.moveaxis(found if cut.labels is None else sum_classes(found, cut.labels[runs], 0), 0, place)


def is_read(one: Measurement) -> bool:
    """Return whether a fit over pieces reads a measurement: weights of many steps would cut too many."""
    target = one.target
    if target.grid_bits or not target.axes:
        return False
    if isinstance(target, Partition):
        return True
    long = long_axes(target.domain)
    return all(len(held) <= MOST_ENDS for axis, held in _cuts_of(target).items() if axis in long)


def _cuts_of(target: Query | Partition) -> dict[int, Ints]:
    """Return the codes at which a target is cut, by attribute."""
    if isinstance(target, Partition):
        return {
            axis: cut.firsts if cut.labels is None else np.flatnonzero(np.diff(cut.labels, prepend=-1))
            for axis, cut in zip(target.axes, target.cuts, strict=True)
        }
    return {
        axis: held
        for factor in target.factors
        for axis, held in zip(factor.axes, factor.changes(target.domain), strict=True)
    }


@final
@attrs.frozen(eq=False)
class _PieceSums:
    """Sums over boxes of codes, from those over boxes of pieces: an end within a piece has a share of it."""

    pieces: Pieces
    inner: Sums

    def box(self, axes: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> float:
        held = [self._terms(axis, first, last) for axis, first, last in zip(axes, low, high, strict=True)]
        result = 0.0
        for terms in itertools.product(*held):
            factor = math.prod(one for one, _, _ in terms)
            if factor:
                first, last = tuple(one for _, one, _ in terms), tuple(one for _, _, one in terms)
                result += factor * self.inner.box(axes, first, last)
        return result

    def _terms(self, axis: int, low: int, high: int) -> list[_Term]:
        """Return what a range is made of: whole pieces, and shares of those in which it ends."""
        cut = self.pieces.cuts.get(axis)
        if cut is None:
            return [(1.0, low, high)]
        first, upper = self._place(cut, low)
        last, lower = self._place(cut, high)
        terms = [(1.0, first, last)] if last > first else []
        if lower:
            terms.append((lower, last, last + 1))
        if upper:
            terms.append((-upper, first, first + 1))
        return terms

    def _place(self, cut: Cut, code: int) -> tuple[int, float]:
        """Return the piece that a code lies in, and which share of it lies below the code."""
        if code >= cut.size:
            return cut.parts, 0.0
        place = int(np.searchsorted(cut.firsts, code, side="right")) - 1
        return place, float((code - cut.firsts[place]) / cut.widths[place])

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        """Return the sums over many boxes: the same bits as one at a time."""
        if not any(axis in self.pieces.cuts for axis in axes):
            return self.inner.boxes(axes, low, high)
        ends = zip(low.tolist(), high.tolist(), strict=True)
        return np.array([self.box(axes, tuple(first), tuple(last)) for first, last in ends])

    def weighted(self, axes: tuple[int, ...], parts: Sequence[_Part]) -> float:
        held: list[_Part] = []
        for places, part in parts:
            if isinstance(part, tuple):
                cut = self.pieces.cuts.get(places[0])
                held.append((places, part if cut is None else cut.inside(*part)))
                continue
            means = part
            for position, axis in enumerate(places):
                if axis in self.pieces.cuts:
                    means = self.pieces.cuts[axis].means(means, position)
            held.append((places, means))
        return self.inner.weighted(axes, held)


@final
@attrs.frozen(eq=False)
class _Inner:
    """Sums over boxes of a hypothesis that is asked for masses of boxes and for marginals."""

    held: Mixture | LocalFits

    def box(self, axes: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> float:
        return float(self.held.boxes(axes, np.array([low]), np.array([high]))[0])

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        return self.held.boxes(axes, low, high)

    def weighted(self, axes: tuple[int, ...], parts: Sequence[_Part]) -> float:
        table = self.held.marginal(*[self.held.domain.names[axis] for axis in axes])
        for places, part in parts:
            if isinstance(part, tuple):
                codes = np.arange(table.shape[axes.index(places[0])])
                part = ((codes >= part[0]) & (codes < part[1])).astype(np.float64)
            table = table * spread(part, tuple(map(axes.index, places)), table.ndim)
        return float(table.sum())


@final
@attrs.frozen(eq=False, repr=False)
class PiecewiseHistogram(OverDomain):
    """A distribution over a domain with long attributes, even within pieces of their codes; never changes.

    Args:
        inner: Over `pieces.small`: what a rule has fitted.
    """

    pieces: Pieces
    inner: Any

    @property
    def domain(self) -> Domain:
        """The domain of the queries."""
        return self.pieces.domain

    @cached_property
    def sums(self) -> _PieceSums:
        """Sums of its masses over boxes and weighted boxes of codes."""
        held = self.inner if isinstance(self.inner, Mixture | LocalFits) else None
        return _PieceSums(self.pieces, self.inner.sums if held is None else _Inner(held))

    def evaluate(self, query: Query) -> float:
        value = query.total(self.sums, 1.0) / (1 << query.grid_bits)
        return value if 0.0 <= value <= 1.0 else min(max(value, 0.0), 1.0)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        return np.clip(fractions(queries, self.sums, 1.0), 0.0, 1.0)

    def blocks(self, partition: Partition) -> Floats:
        """Return the fraction of records in every block, shape (blocks,)."""
        finer = Pieces.of(self.domain, [Measurement(partition, np.zeros(0), 1.0)])
        finer = Pieces(
            self.domain,
            {
                axis: Cut.at(cut.size, np.union1d(cut.firsts, finer.cuts[axis].firsts))
                for axis, cut in self.pieces.cuts.items()
            },
        )
        inner = self.inner
        if any(finer.cuts[axis].parts > cut.parts for axis, cut in self.pieces.cuts.items()):
            if isinstance(inner, LocalFits):
                inner = inner.mixture
            inner = self.pieces.finer(inner, finer, ())
        return np.asarray(inner.blocks(finer.partition(partition)))

    def probabilities(self) -> Floats:
        """Return the cell probabilities, shape of the domain: of few cells only.

        Raises:
            TooLargeError: If the domain has more cells than are written.
        """
        check_size(self.domain)
        return self.marginal(*self.domain.names)

    def marginal(self, *names: str) -> Floats:
        """Return the marginal table over these attributes, in domain order. Public, no guarantee.

        Raises:
            TooLargeError: If it has more than 2^22 cells.
        """
        axes = self.domain.project_axes(*names)
        cells = math.prod(self.domain.shape[axis] for axis in axes)
        if cells > WRITTEN_CELLS:
            raise TooLargeError(
                f"a marginal must have at most {WRITTEN_CELLS:,} cells, got {cells:,}; name fewer "
                "attributes, ask ranges, or draw records with sample."
            )
        table: Floats = np.asarray(self.inner.marginal(*names))
        for place, axis in enumerate(axes):
            if axis in self.pieces.cuts:
                cut = self.pieces.cuts[axis]
                table = table / spread(cut.widths.astype(np.float64), (place,), len(axes))
                table = np.repeat(table, cut.widths, axis=place)
        return table

    def sample(self, size: int, seed: int) -> dict[str, list[Any]]:
        """Return synthetic records as columns of labels; the seed is public, the privacy noise has none."""
        columns = dict(self.inner.sample(size, seed))
        within = public_generator(seed + 1)
        for axis, cut in self.pieces.cuts.items():
            name, kind = self.domain.names[axis], self.domain.attributes[axis]
            places = np.array(columns[name], np.int64)
            codes = cut.firsts[places] + (within.random(size) * cut.widths[places]).astype(np.int64)
            columns[name] = [kind.label(code) for code in codes.tolist()]
        return columns

    def updated(
        self,
        measurements: tuple[Measurement, ...],
        update: Callable[[Any, tuple[Measurement, ...], Pieces], Any],
    ) -> "PiecewiseHistogram":
        """Return the same after an update over the pieces that these measurements cut."""
        pieces = Pieces.of(self.domain, measurements)
        inner = self.pieces.finer(self.inner, pieces, measurements)
        return PiecewiseHistogram(pieces, update(inner, pieces.measured(measurements), pieces))

    def __repr__(self) -> str:
        held = ", ".join(
            f"{self.domain.names[axis]}: {cut.parts:,}" for axis, cut in self.pieces.cuts.items()
        )
        return f"PiecewiseHistogram(pieces of {held}; {self.inner!r})"
