"""Public beliefs about the private database, on which queries are evaluated.

A hypothesis is a function of public facts and released numbers only, so nothing here can cost privacy,
and nothing here may see data. Accuracy of easy answers does not depend on it either: the very number that
`evaluate` returns is rounded, tested and released.
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onlineic._arrays import Tables
from onlineic._totals import totals
from onlineic._typing import Floats, Ints
from onlineic.domain import Domain
from onlineic.errors import InvalidParameterError, InvalidQueryError, TooLargeError
from onlineic.noise import public_generator
from onlineic.queries import Partition, Query, spread

__all__ = [
    "MAX_CELLS",
    "NO_BLOCKS",
    "Believed",
    "Histogram",
    "Hypothesis",
    "SignedHistogram",
    "VersionSpace",
    "block_guesses",
    "grid_guesses",
]

MAX_CELLS = 2**26
NO_BLOCKS = (
    "a marginal must be asked of a hypothesis with blocks, got one without; use a shipped update rule."
)
NOT_FINITE = "hypothesis must evaluate to finite numbers, one a query, got others; mend the update rule."
PREFIX_CELLS = 2**16  # above, a summed-area table costs more than the slices it saves between two updates
COUNTED = 2**16
MAX_NATS = 500.0  # linear weights underflow for ever after 745 nats
MIN_PRIOR = 1e-90  # leaves room for 500 nats above the smallest double that keeps all its bits


@runtime_checkable
class Hypothesis(Protocol):
    """Anything that linear queries can be evaluated on. A rule with more state brings its own class."""

    @property
    def domain(self) -> Domain:
        """The domain of the queries."""

    def supports(self, query: Query) -> bool:
        """Whether `evaluate` takes this query."""

    def evaluate(self, query: Query) -> float:
        """Return f(hypothesis), a fraction of records in [0, 1]."""

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        """Return f(hypothesis) of every query, shape (m,): the same bits as one at a time."""


@runtime_checkable
class Believed(Protocol):
    """A hypothesis that also knows partitions: what cross tables and partition releases ask of one."""

    def blocks(self, partition: Partition) -> Floats:
        """Return the guess of every block, shape (blocks,)."""


def grid_guesses(hypothesis: Hypothesis, queries: Sequence[Query], n: int) -> list[int]:
    """Return n 2^k f(hypothesis) of each query, evaluated and rounded once, in [0, n 2^k]. Public.

    This very integer is tested and, if easy, released, so an easy answer's error bound needs nothing
    from the hypothesis. It is Python's own: a number of a class of the hypothesis's would meet the counts.

    Raises
    ------
    InvalidParameterError
        If the hypothesis does not give one finite number a query.
    """
    if len(queries) == 1:
        values = [float(hypothesis.evaluate(queries[0]))]
    else:
        values = _finite(hypothesis.evaluate_many(queries), len(queries)).tolist()
    guesses = []
    for query, value in zip(queries, values, strict=True):
        if not math.isfinite(value):
            raise InvalidParameterError(NOT_FINITE)
        most = n << query.grid_bits
        guesses.append(min(max(round(most * value), 0), most))
    return guesses


def block_guesses(hypothesis: Hypothesis, partition: Partition, n: int) -> tuple[int, ...]:
    """Return n f(hypothesis) of every block, rounded once, in [0, n]. Public.

    Raises
    ------
    InvalidQueryError
        If the hypothesis has no blocks.
    InvalidParameterError
        If it does not give one finite number a block.
    """
    if not isinstance(hypothesis, Believed):
        raise InvalidQueryError(NO_BLOCKS)
    blocks = np.clip(_finite(hypothesis.blocks(partition), partition.blocks), 0.0, 1.0)
    return tuple(np.rint(n * blocks).astype(np.int64).tolist())


def _finite(values: object, count: int) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise InvalidParameterError(NOT_FINITE)
    return array


@final
class Histogram:
    """A probability distribution over the cells: prior(x) * exp(sum_i step_i f_i(x)), normalised.

    A query is evaluated by slices of marginal tables, and an update touches its support only. `tilted`
    returns a new histogram that takes over the array of the old one; the old one stays valid and, should
    it ever be used again, repeats its own updates on the prior, which gives the same bits.

    Parameters
    ----------
    domain : Domain
        At most 2^26 cells.
    prior : array, one entry a cell, > 0, or None
        Where to start, normalised here; None is the uniform distribution. A zero cell could never be
        repaired, and reacting to one while answering would leak: hence refused.
    """

    __slots__ = ("_cells", "_gathered", "_length", "_log", "_logs", "_nats", "_prior", "_tables", "domain")

    def __init__(self, domain: Domain, prior: Any = None) -> None:
        check_size(domain)
        self.domain = domain
        self._prior: Floats | None = None if prior is None else _checked_prior(domain, prior)
        self._log: list[tuple[Query, float]] = []
        self._length = 0
        self._begin()

    def _begin(self) -> None:
        """Start from the prior."""
        cells = (
            np.full(self.domain.shape, 1.0 / self.domain.size) if self._prior is None else self._prior.copy()
        )
        self._cells: Floats = cells
        self._tables: Tables | None = Tables(cells, PREFIX_CELLS)
        self._nats = 0.0  # total |step| since the last rebase
        self._logs: Floats | None = None  # log-weights at the last rebase, if there was one
        self._gathered: Floats | None = None  # factors since the last rebase

    def supports(self, query: Query) -> bool:
        return query.domain == self.domain

    def evaluate(self, query: Query) -> float:
        tables = self._held()
        mass = tables.total()
        value = query.total(tables, mass) / (1 << query.grid_bits) / mass
        return min(max(value, 0.0), 1.0)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        tables = self._held()
        mass = tables.total()
        return np.clip(_fractions(queries, tables, mass) / mass, 0.0, 1.0)

    def tilted(self, query: Query, step: float) -> "Histogram":
        """Return the histogram with every weight multiplied by exp(step * f(x)), normalised."""
        self._held()
        step = float(step)  # of a narrow unsigned number, -step would be a large step
        result = object.__new__(Histogram)
        result.domain, result._prior, result._nats = self.domain, self._prior, self._nats
        result._cells, result._logs, result._gathered = self._cells, self._logs, self._gathered
        self._tables = None  # handed on
        # one list serves a whole chain of updates; a second branch from the same parent copies it
        result._log = self._log if len(self._log) == self._length else self._log[: self._length]
        result._log.append((query, step))
        result._length = self._length + 1
        result._tilt(query, step)
        result._tables = Tables(result._cells, PREFIX_CELLS)
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
        codes = np.unravel_index(cells, self.domain.shape)
        return {
            name: [kind.label(code) for code in column.tolist()]
            for (name, kind), column in zip(self.domain, codes, strict=True)
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
            self._tables = Tables(self._cells, PREFIX_CELLS)
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


@final
class SignedHistogram:
    """Signed cell weights, only ever added to; `evaluate` clips to [0, 1], the state is never clipped.

    Parameters
    ----------
    domain : Domain
        At most 2^26 cells.
    cells : float64 array, shape of the domain
        Initial weights; owned by the histogram.
    """

    __slots__ = ("_cells", "_tables", "domain")

    def __init__(self, domain: Domain, cells: Floats) -> None:
        check_size(domain)
        self.domain = domain
        self._cells = np.ascontiguousarray(cells, dtype=np.float64).reshape(domain.shape)
        self._tables = Tables(self._cells, PREFIX_CELLS)

    def supports(self, query: Query) -> bool:
        return query.domain == self.domain

    def evaluate(self, query: Query) -> float:
        value = query.total(self._tables, self._tables.total()) / (1 << query.grid_bits)
        return min(max(value, 0.0), 1.0)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        return np.clip(_fractions(queries, self._tables, self._tables.total()), 0.0, 1.0)

    def shifted(self, query: Query, step: float, *, centre: bool) -> "SignedHistogram":
        """Return the cells plus step * f, or step * (f - mean of f) with `centre`."""
        step = float(step)
        if query.constant is not None:
            shift = 0.0 if centre else step * query.constant / (1 << query.grid_bits)
            return SignedHistogram(self.domain, self._cells + shift)
        cells = self._cells.copy()
        scaled = -step if query.complement else step
        offset = step if query.complement else 0.0  # step (1 - product)
        if query.box is not None:
            support = box_slices(query, cells.ndim)
            cells[support] += scaled
            mean = cells[support].size / self.domain.size
        else:
            weight = relative_weights(query)
            cells += scaled * weight
            mean = float(weight.mean())
        offset -= step * (1.0 - mean if query.complement else mean) if centre else 0.0
        if offset:
            cells += offset
        return SignedHistogram(self.domain, cells)

    def cells(self) -> Floats:
        """Return the signed cell weights, shape of the domain; a copy."""
        return self._cells.copy()

    def marginal(self, *names: str) -> Floats:
        """Return the signed marginal table over these attributes, in domain order."""
        return self._tables.table(self.domain.project_axes(*names)).copy()

    def blocks(self, partition: Partition) -> Floats:
        """Return the signed weight of every block, shape (blocks,)."""
        return partition.measure(self._tables.table(partition.axes))

    def __repr__(self) -> str:
        return f"SignedHistogram({' x '.join(map(str, self.domain.shape))} cells)"


@final
class VersionSpace:
    """All small databases that agree with the answers so far: the median rule's hypothesis.

    Parameters
    ----------
    domain : Domain
    databases : unsigned integer array, (|X|, K)
        Column z holds the cell counts of one candidate database; all of the same size.
    size, stalled : int
        Records of each candidate; updates skipped because they would have left no candidate.
    """

    __slots__ = ("_databases", "domain", "size", "stalled")

    def __init__(self, domain: Domain, databases: NDArray[Any], size: int, stalled: int = 0) -> None:
        self.domain = domain
        self.size = size
        self.stalled = stalled
        self._databases = databases

    @property
    def candidates(self) -> int:
        """How many databases are left."""
        return int(self._databases.shape[1])

    def supports(self, query: Query) -> bool:
        return query.domain == self.domain

    def evaluate(self, query: Query) -> float:
        return _lower_median(self._values(query)) / (self.size << query.grid_bits)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        return np.array([self.evaluate(query) for query in queries])

    def blocks(self, partition: Partition) -> Floats:
        """Return the median of every block, shape (blocks,)."""
        return np.array([self.evaluate(partition.block(index)) for index in range(partition.blocks)])

    def halved(self, query: Query, above: bool) -> "VersionSpace":
        """Return the candidates strictly above (or below) the median, or the same ones if none is.

        At least half go; the candidate nearest the truth stays, since the gap of an update is strict
        (algorithms.md 6.4: the printed "gap >= alpha" can leave no candidate at all).
        """
        values = self._values(query)
        median = _lower_median(values)
        kept = values > median if above else values < median
        if not kept.any():
            return VersionSpace(self.domain, self._databases, self.size, self.stalled + 1)
        return VersionSpace(self.domain, self._databases[:, kept], self.size, self.stalled)

    def _values(self, query: Query) -> Ints:
        """Integer values size * 2^k * f of every candidate, cell by cell: no wide copy of the databases."""
        weights = query.weights().ravel()
        result = np.zeros(self.candidates, np.int64)
        for cell in np.flatnonzero(weights):
            row = self._databases[cell]
            result += row if weights[cell] == 1 else row * weights[cell]
        return result

    def __repr__(self) -> str:
        return f"VersionSpace({self.candidates} databases of {self.size} records, {self.domain.size} cells)"


def _lower_median(values: Ints) -> int:
    """Return the median, the lower of the two middle values of an even count."""
    middle = (len(values) + 1) // 2 - 1
    if values.max() <= COUNTED:  # few distinct values: counting beats selecting
        return int(np.searchsorted(np.cumsum(np.bincount(values)), middle + 1))
    return int(np.partition(values, middle)[middle])


def _fractions(queries: Sequence[Query], tables: Tables, mass: float) -> Floats:
    """Return total(query) / 2^k of every query."""
    grids = np.array([query.grid_bits for query in queries], np.int64)
    return np.ldexp(totals(queries, tables, mass), -grids)


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


def check_size(domain: Domain) -> None:
    if domain.size > MAX_CELLS:
        raise TooLargeError(
            f"domain must have at most {MAX_CELLS:,} cells for a histogram, got {domain.size:,}; "
            "project it to fewer attributes."
        )


def _checked_prior(domain: Domain, prior: Any) -> Floats:
    try:
        array = np.array(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameterError("prior must be an array of numbers, one a cell.") from None
    if array.size != domain.size:
        raise InvalidParameterError(f"prior must have {domain.size} entries, got shape {array.shape}.")
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
