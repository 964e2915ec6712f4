"""A mixture of product distributions: a belief about domains whose cells cannot be held."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.errors import TooLargeError
from onlineic.hypothesis.base import Hypothesis, OverDomain, cells_of_all
from onlineic.noise.sources import public_generator
from onlineic.queries.batch import Queries
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Factor, Query
from onlineic.queries.tables import CORNER_AXES, SummedArea

TOGETHER, SETS = 2**18, 64  # cells and sets of so many attributes, up to which boxes are read from tables
MOST_CELLS = 2**22  # of a table that is written out
WORK = 2**22  # numbers that are made on the way to a table, at most
CACHED = 2**17  # numbers that are made on the way to the boxes of a batch: they stay in the processor's cache
UNTHREADED = 2**18  # rows x columns x inner length up to which OpenBLAS multiplies matrices in one thread


@final
@attrs.frozen(eq=False, repr=False)
class Mixture(OverDomain):
    """h(x) = sum_k w_k prod_a p_ka(x_a): attributes are independent in each component, and not in their sum.

    Boxes, weights and tables of few attributes follow from K vectors for each attribute, so the cost of an
    evaluation does not grow with the domain.

    Args:
        logits: Shape (sum of the sizes of all attributes, K). p_ka is the softmax of column k over the codes
            of attribute a; attributes in domain order.
        log_weights: Shape (K,). w is the softmax of these.
        fitted: Measurements that it was fitted to.
    """

    domain: Domain
    logits: Floats
    log_weights: Floats
    fitted: int = 0

    @property
    def components(self) -> int:
        """K."""
        return len(self.log_weights)

    @cached_property
    def weights(self) -> Floats:
        """Share of every component, (K,)."""
        shares = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(shares / shares.sum())

    @cached_property
    def attributes(self) -> tuple[Floats, ...]:
        """Distribution of every attribute in every component, (size, K) each."""
        ends = np.cumsum(self.domain.shape)[:-1]
        found = []
        for logits in np.split(self.logits, ends):
            odds = np.exp(logits - logits.max(axis=0))
            found.append(odds / odds.sum(axis=0))
        return tuple(found)

    @cached_property
    def _sums(self) -> tuple[Floats, ...]:
        """Sum over the codes below each, (size + 1, K)."""
        return tuple(
            np.concatenate([np.zeros((1, self.components)), one.cumsum(axis=0)]) for one in self.attributes
        )

    @cached_property
    def _areas(self) -> dict[tuple[int, ...], SummedArea | None]:
        """What `_area` has returned."""
        return {}

    def evaluate(self, query: Query) -> float:
        if query.constant is not None:
            return query.constant / (1 << query.grid_bits)
        mass = self._factored(query.factors) if query.box is None else self._box(query.axes, *query.box)
        value = 1.0 - mass if query.complement else mass
        return value if 0.0 <= value <= 1.0 else min(max(value, 0.0), 1.0)

    def evaluate_many(self, queries: Sequence[Query]) -> Floats:
        return by_columns(self, queries, self.boxes)

    def _box(self, axes: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]) -> float:
        """Return the mass of one box: the same bits as a row of `boxes`."""
        area = self._areas.get(axes) or self._area(axes)
        if area is not None:
            return area.box(low, high)
        masses, sums = self.weights, self._sums
        for axis, first, last in zip(axes, low, high, strict=True):
            masses = masses * (sums[axis][last] - sums[axis][first])
        return float(masses.sum())

    def boxes(self, axes: tuple[int, ...], low: Ints, high: Ints) -> Floats:
        """Return the masses of many boxes low <= code < high along `axes`; low, high: (m, axes)."""
        area = self._area(axes)
        if area is not None:
            return area.boxes(low, high)
        result = np.empty(len(low))
        step = max(1, CACHED // self.components)
        for start in range(0, len(low), step):
            rows = slice(start, start + step)
            masses = np.broadcast_to(self.weights, (len(low[rows]), self.components))
            for place, axis in enumerate(axes):
                sums = self._sums[axis]
                masses = masses * (sums[high[rows, place]] - sums[low[rows, place]])
            result[rows] = masses.sum(axis=1)  # row by row: the same bits for one as for many
        return result

    def _area(self, axes: tuple[int, ...]) -> SummedArea | None:
        """Return the prefix sums of the table over `axes`; None where it is not worth to be written out."""
        if axes not in self._areas:
            shape = self.domain.shape
            small = 0 < len(axes) <= CORNER_AXES and math.comb(len(shape), len(axes)) <= SETS
            small = small and cells_of_all(shape, len(axes)) <= TOGETHER
            self._areas[axes] = SummedArea.of(self._table(axes)) if small else None
        return self._areas[axes]

    def _factored(self, factors: Sequence[Factor]) -> float:
        """Return the sum of a product of weights."""
        masses = self.weights
        for factor in factors:
            masses = masses * self._factor(factor)
        return float(masses.sum())

    def _factor(self, factor: Factor) -> Floats:
        """Return the mean of a factor's weights in every component, (K,)."""
        if factor.table is None:
            sums = self._sums[factor.axes[0]]
            return np.asarray(sums[factor.high] - sums[factor.low])
        table = np.ldexp(factor.floats, -factor.bits)
        if table.ndim == 1:
            return np.asarray(np.einsum("c,ck->k", table, self.attributes[factor.axes[0]]))
        found = np.empty(self.components)
        for component in range(self.components):  # one after the other: the table may be large
            rest = table
            for axis in reversed(factor.axes):
                rest = rest @ self.attributes[axis][:, component]
            found[component] = rest
        return found

    def blocks(self, partition: Partition) -> Floats:
        """Return the fraction of records in every block, shape (blocks,)."""
        if partition.blocks > MOST_CELLS:
            raise TooLargeError(
                f"a table must have at most {MOST_CELLS:,} cells, got {partition.blocks:,}; "
                "use fewer attributes."
            )
        sums = [
            class_sums(self.attributes[axis], classes)
            for axis, classes in zip(partition.axes, partition.classes, strict=True)
        ]
        return self._joint(sums).ravel()

    def _joint(self, distributions: Sequence[Floats]) -> Floats:
        """Return the sum over the components of the products of these, (codes or classes, K) each."""
        *others, last = distributions
        rows = math.prod(len(one) for one in others)
        step = max(1, WORK // rows)
        result = np.zeros((rows, len(last)))
        for start in range(0, self.components, step):
            held = slice(start, start + step)
            left = self.weights[np.newaxis, held]
            for one in others:
                left = (left[:, np.newaxis, :] * one[np.newaxis, :, held]).reshape(-1, left.shape[-1])
            result += product(left, last[:, held].T)
        return result.reshape([len(one) for one in distributions])

    def marginal(self, *names: str) -> Floats:
        """Return the marginal table over these attributes, in domain order. Public, no guarantee.

        Raises:
            TooLargeError: If it has more than 2^22 cells.
        """
        axes = self.domain.project_axes(*names)
        shape = tuple(self.domain.shape[axis] for axis in axes)
        if not axes:
            return np.ones(())
        if math.prod(shape) > MOST_CELLS:
            raise TooLargeError(
                f"a marginal must have at most {MOST_CELLS:,} cells, got {math.prod(shape):,}; name fewer "
                "attributes, or draw records with sample."
            )
        return self._table(axes)

    def _table(self, axes: tuple[int, ...]) -> Floats:
        """Return the marginal table over one or more axes."""
        return self._joint([self.attributes[axis] for axis in axes])

    def probabilities(self) -> Floats:
        """Return the cell probabilities, shape of the domain: of small domains only.

        Raises:
            TooLargeError: If the domain has more than 2^22 cells.
        """
        return self.marginal(*self.domain.names)

    def sample(self, size: int, seed: int) -> dict[str, list[Any]]:
        """Return synthetic records as columns of labels; the seed is public, the privacy noise has none."""
        generator = public_generator(seed)
        chosen = generator.choice(self.components, size, p=self.weights)
        columns = {}
        for (name, kind), sums in zip(self.domain, self._sums, strict=True):
            uniform, codes = generator.random(size), np.zeros(size, np.int64)
            for component in range(self.components):
                rows = np.flatnonzero(chosen == component)
                found = np.searchsorted(sums[1:, component], uniform[rows], side="right")
                codes[rows] = np.minimum(found, kind.size - 1)
            columns[name] = [kind.label(code) for code in codes.tolist()]
        return columns

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.domain.shape))
        return f"Mixture({shape} cells, {self.components} components, fitted to {self.fitted} measurements)"


def by_columns(
    hypothesis: Hypothesis, queries: Sequence[Query], boxes: Callable[[tuple[int, ...], Ints, Ints], Floats]
) -> Floats:
    """Return the values of a batch, (m,): of conjunctions of intervals by the masses of their boxes."""
    batch = queries if isinstance(queries, Queries) else Queries.bound(hypothesis.domain, queries)
    values = batch.constants.copy()  # of those that are none, below
    for group in batch.boxes:
        if group.axes:
            masses = boxes(group.axes, group.low, group.high)
            values[group.places] = np.clip(np.where(group.turned, 1.0 - masses, masses), 0.0, 1.0)
    for place, query in batch.others:
        values[place] = hypothesis.evaluate(query)
    return values


def product(left: Floats, right: Floats) -> Floats:
    """Return the matrix product, by so few rows at a time that one thread makes it; others would wait."""
    rows = max(1, UNTHREADED // right.size)
    whole = len(left) // rows * rows
    stacked = left[:whole].reshape(-1, rows, left.shape[1])
    head = np.matmul(stacked, right).reshape(whole, right.shape[1])
    return head if whole == len(left) else np.concatenate([head, left[whole:] @ right])


def class_sums(rows: Floats, classes: Ints) -> Floats:
    """Return the sums of the rows of each class, (classes, K)."""
    order = np.argsort(classes, kind="stable")
    if len(order) == int(classes.max()) + 1:
        return rows[order]
    return np.add.reduceat(
        rows[order], np.searchsorted(classes[order], np.arange(int(classes.max()) + 1)), axis=0
    )


def uniform_mixture(domain: Domain, components: int, spread_of_logits: float, seed: int) -> Mixture:
    """Return components around the uniform distribution, apart by chance: equal ones would stay equal."""
    shape = (sum(domain.shape), components)
    logits = spread_of_logits * public_generator(seed).standard_normal(shape)
    return Mixture(domain, logits, np.zeros(components))
