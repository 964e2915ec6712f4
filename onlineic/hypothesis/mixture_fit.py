"""Fitting a mixture of products to noisy tables: gradient steps on all parameters, for a set number of them.

Pure, deterministic functions of public facts. All tables of two attributes are blocks of one matrix product:
its rows are the blocks of every cut of every attribute. Tables of more attributes are taken one by one.
"""

from collections.abc import Sequence
from typing import final

import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.hypothesis.mixture import Mixture, class_sums
from onlineic.queries.partitions import Measurement, Partition
from onlineic.queries.query import Query

MOMENTUM, SQUARES = 0.9, 0.99  # what Adam keeps of its averages from step to step
LAST = 0.02  # of the rate, at the end
FLOOR = 0.3  # deviations of its noise: the least that a cell of a measured attribute begins with


def usable(measurement: Measurement) -> bool:
    """Whether the fit reads a measurement: of a partition, or of a query whose factors hold one axis each."""
    target = measurement.target
    return isinstance(target, Partition) or all(len(factor.axes) == 1 for factor in target.factors)


def fit_mixture(start: Mixture, measurements: Sequence[Measurement], steps: int, rate: float) -> Mixture:
    """Return the mixture after so many steps towards the measurements, from `start`.

    Minimises sum_i |M_i h - y_i|^2 / (2 s_i^2) by Adam over logits. Few steps are the regulariser: fitting on
    fits the noise.

    Parameters
    ----------
    start : Mixture
        One that was fitted to nothing begins at the measured distribution of every attribute.
    measurements : sequence of Measurement
        All so far; those that are not `usable` are left out.
    steps : int
    rate : float
        Of logits a step; falls to 2 % in the second half of the steps.

    References
    ----------
    Aydore et al. (2021), "Differentially private query release through adaptive projection", for products
    relaxed by softmax; Kingma & Ba (2015) for Adam.
    """
    tables = [one for one in measurements if usable(one)]
    logits = start.logits if start.fitted else _informed(start, tables)
    weights = start.log_weights
    loss = _Loss(start, tables)
    first = [np.zeros_like(logits), np.zeros_like(weights)]
    second = [np.zeros_like(logits), np.zeros_like(weights)]
    for step in range(1, steps + 1):
        now = rate * min(1.0, 2.0 * (1.0 - (step - 1) / steps) + LAST)
        now *= np.sqrt(1.0 - SQUARES**step) / (1.0 - MOMENTUM**step)
        moved = []
        for place, (value, slope) in enumerate(
            zip((logits, weights), loss.gradient(logits, weights), strict=True)
        ):
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


def _informed(start: Mixture, tables: Sequence[Measurement]) -> Floats:
    """Return the logits of a start, moved to the finest measured distribution of every attribute."""
    logits = start.logits.copy()
    offsets = np.concatenate([[0], np.cumsum(start.domain.shape)])
    finest: dict[int, Measurement] = {}
    for one in tables:
        if isinstance(one.target, Partition) and len(one.target.axes) == 1:
            held = finest.get(one.target.axes[0])
            if held is None or one.values.size > held.values.size:
                finest[one.target.axes[0]] = one
    for axis, one in finest.items():
        classes = one.target.classes[0]  # type: ignore[union-attr]
        cells = (np.maximum(one.values, FLOOR * one.scale) / np.bincount(classes))[classes]
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
    """What the measurements ask of a mixture, and where it falls steepest."""

    def __init__(self, start: Mixture, tables: Sequence[Measurement]) -> None:
        self._offsets = np.concatenate([[0], np.cumsum(start.domain.shape)[:-1]])
        self._ends = np.cumsum(start.domain.shape)
        self._shape = start.domain.shape
        self._ones, self._pairs = _Rows(), _Rows()
        self._wider: list[tuple[list[tuple[int, Ints]], Floats, float]] = []
        self._numbers: list[tuple[list[tuple[int, Floats]], float, float]] = []
        ones, pairs = [], []
        for one in tables:
            precision = one.scale**-2.0
            if isinstance(one.target, Query):
                self._numbers.append(_number(one.target, float(one.values[0]), precision))
                continue
            cuts = list(zip(one.target.axes, one.target.classes, strict=True))
            if len(cuts) == 1:
                ones.append((self._ones.add(*cuts[0]), one.values, precision))
            elif len(cuts) == 2:
                rows, columns = self._pairs.add(*cuts[0]), self._pairs.add(*cuts[1])
                pairs.append((rows, columns, one.values.reshape(one.target.shape), precision))
            else:
                self._wider.append((cuts, one.values.reshape(one.target.shape), precision))
        # tables of equal cuts are added up: together they are their mean, with the sum of their precisions
        self._one_precision, self._one_values = np.zeros(self._ones.size), np.zeros(self._ones.size)
        for rows, values, precision in ones:
            self._one_precision[rows] += precision
            self._one_values[rows] += precision * values
        size = (self._pairs.size, self._pairs.size)
        self._pair_precision, self._pair_values = np.zeros(size), np.zeros(size)
        for rows, columns, values, precision in pairs:
            self._pair_precision[rows, columns] += precision
            self._pair_values[rows, columns] += precision * values

    def gradient(self, logits: Floats, log_weights: Floats) -> tuple[Floats, Floats]:
        """Return the slopes of the loss in logits and log-weights."""
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
        if self._ones.size:
            masses = self._ones.masses(attributes)
            residual = self._one_precision * (masses @ weights) - self._one_values
            of_weights += residual @ masses
            self._ones.back(residual[:, np.newaxis] * weights, of_attributes)
        if self._pairs.size:
            masses = self._pairs.masses(attributes)
            table = (masses * weights) @ masses.T
            table *= self._pair_precision
            table -= self._pair_values
            forward = table @ masses
            of_weights += np.einsum("rk,rk->k", forward, masses)
            forward += table.T @ masses
            forward *= weights
            self._pairs.back(forward, of_attributes)
        for cuts, values, precision in self._wider:
            _wide(cuts, values, precision, attributes, weights, of_attributes, of_weights)
        for factors, value, precision in self._numbers:
            _one(factors, value, precision, attributes, weights, of_attributes, of_weights)
        for part, slope in zip(attributes, of_attributes, strict=True):
            slope -= np.einsum("ck,ck->k", part, slope)
            slope *= part
        return slopes, weights * (of_weights - weights @ of_weights)


def _number(query: Query, value: float, precision: float) -> tuple[list[tuple[int, Floats]], float, float]:
    """Return the weights of a product over each of its axes, and the value measured of the product itself."""
    factors = [
        (factor.axes[0], np.ldexp(factor.weights(query.domain), -factor.bits)) for factor in query.factors
    ]
    return factors, 1.0 - value if query.complement else value, precision


def _wide(
    cuts: Sequence[tuple[int, Ints]],
    values: Floats,
    precision: float,
    attributes: Sequence[Floats],
    weights: Floats,
    of_attributes: Sequence[Floats],
    of_weights: Floats,
) -> None:
    """Add the slopes of a table over three attributes or more."""
    masses = [class_sums(attributes[axis], classes) for axis, classes in cuts]
    components = len(weights)
    left = masses[0]
    for one in masses[1:-1]:
        left = (left[:, np.newaxis, :] * one[np.newaxis, :, :]).reshape(-1, components)
    flat = values.reshape(len(left), -1)
    residual = precision * ((left * weights) @ masses[-1].T - flat)
    of_last = residual.T @ left  # (last, K): all but the last attribute summed over
    of_weights += np.einsum("rk,rk->k", of_last, masses[-1])
    axis, classes = cuts[-1]
    of_attributes[axis][...] += (weights * of_last)[classes]
    rest = (residual @ masses[-1]) * weights  # (left, K)
    for place in range(len(cuts) - 2, -1, -1):
        before = masses[0] if place else None
        for one in masses[1:place]:
            before = (before[:, np.newaxis, :] * one[np.newaxis, :, :]).reshape(-1, components)  # type: ignore[index]
        shaped = rest.reshape(-1, len(masses[place]), components)  # (before, own, K)
        own = shaped.sum(axis=0) if before is None else np.einsum("bok,bk->ok", shaped, before)
        axis, classes = cuts[place]
        of_attributes[axis][...] += own[classes]
        if before is not None:
            rest = np.einsum("bok,ok->bk", shaped, masses[place])


def _one(
    factors: Sequence[tuple[int, Floats]],
    value: float,
    precision: float,
    attributes: Sequence[Floats],
    weights: Floats,
    of_attributes: Sequence[Floats],
    of_weights: Floats,
) -> None:
    """Add the slopes of one number."""
    means = [table @ attributes[axis] for axis, table in factors]
    product = np.prod(means, axis=0)
    residual = precision * (float(weights @ product) - value)
    of_weights += residual * product
    for place, (axis, table) in enumerate(factors):
        others = np.prod([weights, *means[:place], *means[place + 1 :]], axis=0)
        of_attributes[axis][...] += residual * np.outer(table, others)
