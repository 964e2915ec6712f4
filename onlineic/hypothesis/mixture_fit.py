"""Fitting a mixture of products to noisy tables: gradient steps on all parameters, for a set number of them.

Pure, deterministic functions of public facts. All tables of two attributes are blocks of one matrix product:
its rows are the blocks of every cut of every attribute. Tables of more attributes are stacked, those of one
shape together. One thread does it all, in a fixed order: a second fit gives the same bits.
"""

import math
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.hypothesis.mixture import UNTHREADED, Mixture, class_sums
from onlineic.queries.partitions import Measurement, Partition, pooled
from onlineic.queries.query import Query
from onlineic.queries.tables import multiply

MOMENTUM, SQUARES = 0.9, 0.99  # what Adam keeps of its averages from step to step
LAST = 0.02  # of the rate, at the end
STACKED = 2**19  # numbers, a block and a component each, of the tables that are fitted at once: 4 MB
MOST_JOINT = 2**12  # weights over several attributes that a measured number may have
FLOOR = 0.3  # deviations of its noise: the least that a cell of a measured attribute begins with

Factors = list[tuple[tuple[int, ...], Floats]]


def usable(measurement: Measurement) -> bool:
    """Whether the fit reads a measurement: of a partition, or of a query without large joint weights."""
    target = measurement.target
    if isinstance(target, Partition):
        return True
    return all(len(one.axes) == 1 or one.weights(target.domain).size <= MOST_JOINT for one in target.factors)


def fit_mixture(
    start: Mixture, measurements: Sequence[Measurement], steps: int, rate: float, misfit: float = 0.0
) -> Mixture:
    """Return the mixture after so many steps towards the measurements, from `start`.

    Minimises F = sum_i |M_i h - y_i|^2 / (2 s_i^2) by Adam over logits. Few steps are the regulariser:
    fitting on fits the noise.

    Aydore et al. (2021), "Differentially private query release through adaptive projection", for products
    relaxed by softmax; Kingma & Ba (2015) for Adam.

    Args:
        start: One that was fitted to nothing begins at the measured distribution of every attribute.
        measurements: All so far; those that are not `usable` are left out.
        rate: Of logits a step; falls to 2 % in the second half of the steps.
        misfit: Ends it once 2 F / values measured is this small; the truth expects 1.
    """
    tables = pooled(filter(usable, measurements))
    logits = start.logits if start.fitted else _informed(start, tables)
    weights = start.log_weights
    loss = _Loss(start, tables)
    first = [np.zeros_like(logits), np.zeros_like(weights)]
    second = [np.zeros_like(logits), np.zeros_like(weights)]
    for step in range(1, steps + 1):
        now = rate * min(1.0, 2.0 * (1.0 - (step - 1) / steps) + LAST)
        now *= np.sqrt(1.0 - SQUARES**step) / (1.0 - MOMENTUM**step)
        moved = []
        twice, *slopes = loss.gradient(logits, weights)
        if twice <= misfit * loss.values:
            break
        for place, (value, slope) in enumerate(zip((logits, weights), slopes, strict=True)):
            first[place] *= MOMENTUM
            first[place] += (1.0 - MOMENTUM) * slope
            second[place] *= SQUARES
            slope *= slope
            second[place] += (1.0 - SQUARES) * slope
            np.sqrt(second[place], out=slope)
            slope += 1e-12
            np.divide(first[place], slope, out=slope)
            slope *= now
            moved.append(value - slope)
        logits, weights = moved
    return Mixture(start.domain, logits, weights, len(measurements))


def misfit_of(mixture: Mixture, measurements: Sequence[Measurement]) -> float:
    """Return 2 F / values measured of `usable` measurements: 1 is what the truth expects."""
    loss = _Loss(mixture, pooled(filter(usable, measurements)))
    twice, *_ = loss.gradient(mixture.logits, mixture.log_weights)
    return twice / loss.values


def _informed(start: Mixture, tables: Sequence[Measurement]) -> Floats:
    """Return the logits of a start, moved to the finest measured distribution of every attribute.

    Of several tables as fine it is the one of fewest attributes, then the one whose margin has least noise.
    """
    logits = start.logits.copy()
    offsets = np.concatenate([[0], np.cumsum(start.domain.shape)])
    finest: dict[int, tuple[tuple[int, int, float], Ints, Floats]] = {}
    for one in tables:
        if not isinstance(one.target, Partition):
            continue
        counts, axes = one.values.reshape(one.target.shape), range(len(one.target.axes))
        for place, (axis, classes) in enumerate(zip(one.target.axes, one.target.classes, strict=True)):
            noise = one.scale * math.sqrt(counts.size / counts.shape[place])
            rank = (-counts.shape[place], counts.ndim, noise)
            if axis not in finest or rank < finest[axis][0]:
                margin = counts.sum(axis=tuple(other for other in axes if other != place))
                finest[axis] = rank, classes, margin
    for axis, ((_, _, noise), classes, margin) in finest.items():
        cells = (np.maximum(margin, FLOOR * noise) / np.bincount(classes))[classes]
        logits[offsets[axis] : offsets[axis + 1]] += np.log(cells / cells.sum())[:, np.newaxis]
    return logits


class _Rows:
    """The cuts of some tables, stacked: one row a block of every cut of every attribute."""

    def __init__(self) -> None:
        self.cuts: list[tuple[int, Ints]] = []
        self.slices: list[slice] = []
        self.size = 0
        self._known: dict[tuple[int, bytes], int] = {}

    def add(self, axis: int, classes: Ints) -> slice:
        """Return the rows of a cut, which are new if it was not met."""
        key = (axis, classes.tobytes())
        if key not in self._known:
            self._known[key] = len(self.cuts)
            self.cuts.append((axis, classes))
            self.slices.append(slice(self.size, self.size + int(classes.max()) + 1))
            self.size = self.slices[-1].stop
        return self.slices[self._known[key]]

    def masses(self, attributes: Sequence[Floats]) -> Floats:
        """Return the masses of all rows in every component."""
        return np.concatenate([class_sums(attributes[axis], classes) for axis, classes in self.cuts])

    def back(self, slopes: Floats, total: Sequence[Floats]) -> None:
        """Add the slopes of the rows to those of the codes."""
        for (axis, classes), rows in zip(self.cuts, self.slices, strict=True):
            total[axis][...] += slopes[rows][classes]


@final
class _Loss:
    """The loss of a mixture against the measurements, and its gradient."""

    def __init__(self, start: Mixture, tables: Sequence[Measurement]) -> None:
        self._offsets = np.concatenate([[0], np.cumsum(start.domain.shape)[:-1]])
        self._ends = np.cumsum(start.domain.shape)
        self._shape = start.domain.shape
        self._ones, self._pairs, self._wider = _Rows(), _Rows(), _Rows()
        wider: dict[tuple[int, ...], list[tuple[list[slice], Floats, float]]] = {}
        self._numbers: list[tuple[Factors, float, float]] = []
        ones, pairs = [], []
        self.values = sum(one.values.size for one in tables)
        self._constant = sum(float(one.values @ one.values) / one.scale**2 for one in tables)
        for one in tables:
            precision = one.scale**-2.0
            if isinstance(one.target, Query):
                factors, value = _number(one.target, float(one.values[0]))
                self._constant += precision * (value**2 - float(one.values[0]) ** 2)
                self._numbers.append((factors, value, precision))
                continue
            cuts = list(zip(one.target.axes, one.target.classes, strict=True))
            if len(cuts) == 1:
                ones.append((self._ones.add(*cuts[0]), one.values, precision))
            elif len(cuts) == 2:
                rows, columns = self._pairs.add(*cuts[0]), self._pairs.add(*cuts[1])
                pairs.append((rows, columns, one.values.reshape(one.target.shape), precision))
            else:
                held = [self._wider.add(*cut) for cut in cuts]
                wider.setdefault(one.target.shape, []).append(
                    (held, one.values.reshape(one.target.shape), precision)
                )
        self._stacks = []
        for shape, alike in wider.items():
            step = max(1, STACKED // (math.prod(shape) * start.components))
            for at in range(0, len(alike), step):
                self._stacks.append(_Stack.of(alike[at : at + step], self._wider.size))
        # tables of equal cuts are added up: together they are their mean, with the sum of their precisions
        self._one_precision, self._one_values = np.zeros(self._ones.size), np.zeros(self._ones.size)
        for rows, values, precision in ones:
            self._one_precision[rows] += precision
            self._one_values[rows] += precision * values
        # every table of a pair stands on both sides of the diagonal, at half its precision each: the matrix
        # is its own transpose, and is held as square tiles
        self._tile = max(4, int((UNTHREADED / start.components) ** 0.5))
        self._tiles = -(-self._pairs.size // self._tile)
        precisions = np.zeros((self._tiles * self._tile,) * 2)
        known = np.zeros_like(precisions)
        for rows, columns, values, precision in pairs:
            for left, right, table in ((rows, columns, values), (columns, rows, values.T)):
                precisions[left, right] += precision / 2.0
                known[left, right] += precision / 2.0 * table
        self._pair_precision, self._pair_values = self._tiled(precisions), self._tiled(known)

    def _tiled(self, matrix: Floats) -> Floats:
        """Return a matrix as tiles, (tiles, tiles, rows, columns)."""
        tiled = matrix.reshape(self._tiles, self._tile, self._tiles, self._tile)
        return np.ascontiguousarray(tiled.transpose(0, 2, 1, 3))

    def gradient(self, logits: Floats, log_weights: Floats) -> tuple[float, Floats, Floats]:
        """Return twice the loss, and its slopes in logits and log-weights."""
        odds = np.empty_like(logits)
        for start, end in zip(self._offsets, self._ends, strict=True):
            part = odds[start:end]
            np.exp(logits[start:end] - logits[start:end].max(axis=0), out=part)
            part /= part.sum(axis=0)
        attributes = np.split(odds, self._ends[:-1])
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        slopes = np.zeros_like(odds)
        of_attributes = np.split(slopes, self._ends[:-1])
        of_weights = np.zeros_like(weights)
        twice = self._constant  # and of every table t with values y: sum t (p t - 2 p y)
        if self._ones.size:
            masses = self._ones.masses(attributes)
            fitted = np.einsum("rk,k->r", masses, weights)
            residual = self._one_precision * fitted - self._one_values
            twice += float((fitted * (residual - self._one_values)).sum())
            of_weights += np.einsum("r,rk->k", residual, masses)
            self._ones.back(residual[:, np.newaxis] * weights, of_attributes)
        if self._pairs.size:
            masses = np.zeros((self._tiles * self._tile, len(weights)))
            masses[: self._pairs.size] = self._pairs.masses(attributes)
            tiles = masses.reshape(self._tiles, self._tile, -1)
            fitted = np.matmul((tiles * weights)[:, np.newaxis], tiles.transpose(0, 2, 1)[np.newaxis])
            table = self._pair_precision * fitted
            table -= self._pair_values
            slope = 2.0 * np.matmul(table, tiles[np.newaxis]).sum(axis=1).reshape(masses.shape)
            of_weights += 0.5 * np.einsum("rk,rk->k", slope, masses)
            table -= self._pair_values
            table *= fitted
            twice += float(table.sum())
            slope *= weights
            self._pairs.back(slope, of_attributes)
        if self._stacks:
            masses = self._wider.masses(attributes)
            slope = np.zeros_like(masses)
            for stack in self._stacks:
                twice += stack.add(masses, weights, slope, of_weights)
            self._wider.back(slope, of_attributes)
        for factors, value, precision in self._numbers:
            twice += _one(factors, value, precision, attributes, weights, of_attributes, of_weights)
        for part, slope in zip(attributes, of_attributes, strict=True):
            slope -= np.einsum("ck,ck->k", part, slope)
            slope *= part
        return twice, slopes, weights * (of_weights - weights @ of_weights)


def _number(query: Query, value: float) -> tuple[Factors, float]:
    """Return the weights of a product over the axes of each factor, and the value measured of the product."""
    factors = [
        (factor.axes, np.ldexp(factor.weights(query.domain), -factor.bits)) for factor in query.factors
    ]
    return factors, 1.0 - value if query.complement else value


@final
@attrs.frozen(eq=False)
class _Stack:
    """Tables of one shape over three attributes or more, which are fitted at once."""

    # rows: (tables, blocks) of each attribute, into the masses of all cuts.
    # sums: sparse, adds up what is told of the same row of the masses by several tables.
    # values, precision: (tables, blocks of all attributes but the last, blocks of the last); (tables, 1, 1).
    rows: tuple[Ints, ...]
    sums: Any
    values: Floats
    precision: Floats

    @classmethod
    def of(cls, tables: Sequence[tuple[Sequence[slice], Floats, float]], size: int) -> "_Stack":
        """Stack tables, each by the rows of its cuts, its values and its precision."""
        from scipy.sparse import csr_array  # of wide domains alone: imported with them

        shape = tables[0][1].shape
        rows = tuple(
            np.array([np.arange(held[place].start, held[place].stop) for held, _, _ in tables])
            for place in range(len(shape))
        )
        told = np.concatenate([one.ravel() for one in rows])
        sums = csr_array((np.ones(len(told)), (told, np.arange(len(told)))), shape=(size, len(told)))
        values = np.array([values for _, values, _ in tables]).reshape(len(tables), -1, shape[-1])
        precision = np.array([precision for _, _, precision in tables])[:, np.newaxis, np.newaxis]
        return cls(rows, sums, values, precision)

    def add(self, masses: Floats, weights: Floats, of_masses: Floats, of_weights: Floats) -> float:
        """Add the slopes of these tables; return twice their loss, less its constant."""
        held = [masses[rows] for rows in self.rows]  # (tables, blocks, K) each
        count, components = len(self.values), len(weights)
        before = [held[0]]  # the products of the first attributes' masses
        for one in held[1:-1]:
            joined = before[-1][:, :, np.newaxis] * one[:, np.newaxis]
            before.append(joined.reshape(count, -1, components))
        fitted = multiply(before[-1] * weights, held[-1].swapaxes(1, 2))
        residual = self.precision * (fitted - self.values)
        twice = float((fitted * (residual - self.precision * self.values)).sum())
        of_last = multiply(residual.swapaxes(1, 2), before[-1])  # all but the last attribute summed over
        of_weights += np.einsum("trk,trk->k", of_last, held[-1])
        told = [weights * of_last]
        rest = multiply(residual, held[-1]) * weights
        for place in range(len(held) - 2, 0, -1):
            shaped = rest.reshape(count, -1, held[place].shape[1], components)  # (tables, before, own, K)
            told.append(np.einsum("tbok,tbk->tok", shaped, before[place - 1]))
            rest = np.einsum("tbok,tok->tbk", shaped, held[place])
        told.append(rest)
        of_masses += self.sums @ np.concatenate([one.reshape(-1, components) for one in reversed(told)])
        return twice


def _one(
    factors: Factors,
    value: float,
    precision: float,
    attributes: Sequence[Floats],
    weights: Floats,
    of_attributes: Sequence[Floats],
    of_weights: Floats,
) -> float:
    """Add the slopes of one number; return twice its loss, less its constant."""
    means = [_contracted(table, [attributes[axis] for axis in axes]) for axes, table in factors]
    mass = np.prod(means, axis=0)
    fitted = float(weights @ mass)
    residual = precision * (fitted - value)
    of_weights += residual * mass
    for place, (axes, table) in enumerate(factors):
        others = residual * np.prod([weights, *means[:place], *means[place + 1 :]], axis=0)
        for own, axis in enumerate(axes):
            rest = [attributes[other] for other in axes if other != axis]
            of_attributes[axis][...] += _contracted(np.moveaxis(table, own, 0), rest) * others
    return fitted * (residual - precision * value)


def _contracted(table: Floats, masses: Sequence[Floats]) -> Floats:
    """Return the means of a table over its last axes in every component, (.., K); of no axis as they are."""
    found = table[..., np.newaxis]
    for one in reversed(masses):
        found = np.einsum("...ck,ck->...k", np.broadcast_to(found, (*found.shape[:-1], one.shape[1])), one)
    return found
