"""A distribution over all cells: the belief of multiplicative weights and of maximum entropy."""

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from onlineic._typing import Floats
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError
from onlineic.hypothesis.base import OverDomain, check_size
from onlineic.noise.sources import public_generator
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query, grids, totals
from onlineic.queries.tables import Sums, Tables, spread
from onlineic.slips import public

# above, a summed-area table costs more than the slices it saves between two updates: over three attributes it
# pays after 150 queries of theirs, over two after 20
PREFIX_CELLS, PLANE_CELLS = 2**16, 2**22
MAX_NATS = 500.0  # linear weights underflow for ever after 745 nats
SMALLEST = 1e-88  # mass of a cell of a fitted histogram: above MIN_PRIOR, and every logarithm is finite
MIN_PRIOR = 1e-90  # leaves room for 500 nats above the smallest double that keeps all its bits


@public
@final
class Histogram(OverDomain):
    """A probability distribution over the cells: prior(x) * exp(sum_i step_i f_i(x)), normalised.

    A query is evaluated by slices of marginal tables, and an update touches its support only. `tilted`
    returns a new histogram that takes over the array of the old one; the old one stays valid and, should
    it ever be used again, repeats its own updates on the prior, which gives the same bits.

    Args:
        domain: At most 2^26 cells.
        prior: One entry a cell, above 0, or None. Where to start, normalised here; None is the uniform
            distribution. A zero cell could never be repaired, and reacting to one while answering would leak:
            hence refused.
    """

    __slots__ = ("_cells", "_gathered", "_length", "_log", "_logs", "_nats", "_prior", "_tables", "domain")

    def __init__(self, domain: Domain, prior: Any = None) -> None:
        check_size(domain)
        self.domain = domain
        self._prior: Floats | None = None if prior is None else checked_prior(domain, prior)
        self._log: list[tuple[Query, float]] = []
        self._length = 0
        self._begin()

    def _begin(self) -> None:
        """Start from the prior."""
        self._cells: Floats = (
            np.full(self.domain.shape, 1.0 / self.domain.size) if self._prior is None else self._prior.copy()
        )
        self._tables: Tables | None = Tables(self._cells, PREFIX_CELLS, PLANE_CELLS)
        self._nats = 0.0  # total |step| since the last rebase
        self._logs: Floats | None = None  # log-weights at the last rebase, if there was one
        self._gathered: Floats | None = None  # factors since the last rebase

    def evaluate(self, query: Query) -> float:
        tables = self._held()
        mass = tables.total()
        value = query.total(tables, mass) / (1 << query.grid_bits) / mass
        return min(max(value, 0.0), 1.0)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        tables = self._held()
        mass = tables.total()
        return np.clip(fractions(queries, tables, mass) / mass, 0.0, 1.0)

    def tilted(self, query: Query, step: float) -> "Histogram":
        """Return the histogram with every weight multiplied by exp(step * f(x)), normalised."""
        self._held()
        step = float(step)  # of a narrow unsigned number, -step would be a large step
        result = object.__new__(Histogram)
        result.domain, result._prior, result._nats = self.domain, self._prior, self._nats
        result._cells, result._logs, result._gathered = self._cells, self._logs, self._gathered
        self._tables = None  # of the array that the new histogram takes over: rebuilt if asked for again
        # one list serves a whole chain of updates; a second branch from the same parent copies it
        result._log = self._log if len(self._log) == self._length else self._log[: self._length]
        result._log.append((query, step))
        result._length = self._length + 1
        result._tilt(query, step)
        result._tables = Tables(result._cells, PREFIX_CELLS, PLANE_CELLS)
        return result

    def probabilities(self) -> Floats:
        """Return the cell probabilities, shape of the domain; a copy."""
        tables = self._held()
        return np.asarray(self._cells / tables.total())

    def marginal(self, *names: str) -> Floats:
        """Return the marginal table over these attributes, in domain order. Public, no guarantee."""
        tables = self._held()
        return np.asarray(tables.table(self.domain.project_axes(*names)) / tables.total())

    def blocks(self, partition: Partition) -> Floats:
        """Return the fraction of records in every block, shape (blocks,)."""
        tables = self._held()
        return partition.measure(tables.table(partition.axes)) / tables.total()

    def sample(self, size: int, seed: int) -> dict[str, list[Any]]:
        """Return synthetic records as columns of labels; the seed is public, the privacy noise has none."""
        cells = public_generator(seed).choice(self.domain.size, size, p=self.probabilities().ravel())
        return {
            name: [kind.label(code) for code in codes.tolist()]
            for (name, kind), codes in zip(
                self.domain, np.unravel_index(cells, self.domain.shape), strict=True
            )
        }

    def __repr__(self) -> str:
        return f"Histogram({' x '.join(map(str, self.domain.shape))} cells, {self._length} updates)"

    def __getstate__(self) -> tuple[Domain, Floats | None, list[tuple[Query, float]]]:
        return self.domain, self._prior, self._log[: self._length]

    def __setstate__(self, state: tuple[Domain, Floats | None, list[tuple[Query, float]]]) -> None:
        self.domain, self._prior, self._log = state
        self._length = len(self._log)
        self._tables = None

    def _held(self) -> Tables:
        """Return the tables of the cells, repeating the updates if the array was handed on."""
        if self._tables is None:
            self._begin()
            for query, step in self._log[: self._length]:
                self._tilt(query, step)
            self._tables = Tables(self._cells, PREFIX_CELLS, PLANE_CELLS)
        return self._tables

    def _tilt(self, query: Query, step: float) -> None:
        """Multiply the cells in the support of the product by exp(+-step * weight), in place."""
        if query.constant is not None:
            return
        if not math.isfinite(step):
            raise InvalidParameterError(f"step must be finite, got step={step}.")
        scaled = -step if query.complement else step  # the offset of 1 - product cancels in the mass
        if self._nats + abs(step) > MAX_NATS:
            self._rebase()
        if self._logs is not None and abs(step) > MAX_NATS:  # exp(step) itself would overflow
            self._logs += scaled * relative_weights(query)
            self._logs -= self._logs.max()
            np.exp(self._logs, out=self._cells)
            return
        self._nats += abs(step)
        for array in (self._cells, self._gathered):
            if array is None:
                continue
            if query.box is not None:
                array[box_slices(query, array.ndim)] *= math.exp(scaled)
            else:
                array *= np.exp(scaled * relative_weights(query))

    def _rebase(self) -> None:
        """Keep log-weights beside the cells, before linear weights underflow for ever.

        Between two rebases a cell moves by at most e^+-500, so what was gathered since the last one has
        an exact logarithm even where the cell itself has underflowed.
        """
        if self._logs is None or self._gathered is None:
            self._logs = np.log(self._cells)
            self._gathered = np.ones_like(self._logs)
        else:
            self._logs += np.log(self._gathered)
            self._gathered[...] = 1.0
        self._logs -= self._logs.max()
        np.exp(self._logs, out=self._cells)
        self._nats = 0.0


def fractions(queries: Sequence[Query], tables: Sums, mass: float) -> Floats:
    """Return total(query) / 2^k of every query."""
    return np.ldexp(totals(queries, tables, mass), -grids(queries))


def box_slices(query: Query, dimensions: int) -> tuple[slice, ...]:
    """Return the support of a box query as slices over all axes."""
    support = [slice(None)] * dimensions
    if query.box is not None:
        for axis, low, high in zip(query.axes, *query.box, strict=True):
            support[axis] = slice(low, high)
    return tuple(support)


def relative_weights(query: Query) -> Floats:
    """Return the product of the factors in [0, 1], broadcastable over the cells."""
    dimensions = len(query.domain.shape)
    result: Floats = np.ones([1] * dimensions)
    for factor in query.factors:
        result = result * spread(
            np.ldexp(factor.weights(query.domain), -factor.bits), factor.axes, dimensions
        )
    return result


def checked_prior(domain: Domain, prior: Any) -> Floats:
    """Return a prior as a distribution over the cells, if it is positive in each."""
    try:
        array = np.array(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameterError(
            "prior must be an array of numbers, got another object; give one weight a cell."
        ) from None
    if array.size != domain.size:
        raise InvalidParameterError(
            f"prior must have {domain.size} entries, got shape {array.shape}; give one weight a cell."
        )
    total = array.sum()
    with np.errstate(invalid="ignore"):
        bad = ~(array >= MIN_PRIOR * total) | ~np.isfinite(array) | (array <= 0.0)
    if bad.any():
        cell = int(np.argmax(bad))
        raise InvalidParameterError(
            f"prior must be positive in every cell (at least {MIN_PRIOR:g} of its sum), got "
            f"prior[{cell}]={array.ravel()[cell]:g}; add a floor."
        )
    return np.ascontiguousarray(array.reshape(domain.shape) / total)
