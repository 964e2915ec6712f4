"""Maximum-entropy fitting: the distribution nearest a prior that agrees with noisy tables.

Pure, deterministic functions of public facts: a prior and measurements, each a noisy table of the masses of
its blocks. The distribution fitted is ``h ~ prior * exp(sum_i theta_i[block_i(x)])``, with one potential per
block of each table. A measured 0/1 query has two blocks: the cells that it leaves out, and those it counts.

* **Product form.** Where the prior is a product of one distribution for each attribute, tables of one
  attribute leave it a product: only joint tables tie attributes together. So
  ``h(x) = R(c(x)) * prod_a w_a(x_a)``, R over the classes of codes that no joint table tells apart, and w_a
  the distribution of a code within its class. Nothing is ever as large as the domain.
* **Coarse domain.** R lives on the common refinement of the joint tables, taken axis by axis. A prior that
  is no product ties all attributes: then all tables refine, and the prior is summed over the classes once.
* **Merge tree** (`merge_tree`). Tables over few axes are joined pairwise, smallest union first, or in three
  parts. Factors travel up the tree, masses travel down it: one evaluation costs a few passes over the root.
  Where the root is the product of three tables, as of pairs, it is never written: its margins are products of
  matrices. Other large products are written slab by slab. All in single precision where class cells are many.
* **Accelerated mirror descent** on the potentials, one evaluation per iteration. Fitting on fits the noise:
  the default of 30 evaluations from the previous potentials is a regulariser.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, product
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.errors import InvalidParameterError, checked_integer, checked_real
from onlineic.hypothesis.base import MAX_CELLS, check_cells
from onlineic.hypothesis.classes import common_refinement, few_cells, kept_classes, merged, product_of_cuts
from onlineic.hypothesis.descent import descend
from onlineic.hypothesis.histogram import SMALLEST, Histogram
from onlineic.hypothesis.merge_tree import MATRICES, Link, MergeTree
from onlineic.hypothesis.product import ProductHistogram
from onlineic.queries.partitions import Measurement, Partition, block_weights
from onlineic.queries.query import Query
from onlineic.queries.tables import accumulate, contract, dot, multiply, spread, sum_classes

Prior = (
    Floats | tuple[Floats, ...]
)  # a mass for every cell, or for every code of each attribute: their product

# Below this normaliser the product of factors may have lost cells that matter: evaluate in log space instead.
_SAFE_NORMALISER = 1e-150
# Masses of many class cells are evaluated in single precision, in half the time, as long as no cells that
# matter are lost: they err by some 1e-7 of themselves, far below any noise.
_KINDS: tuple[tuple[Any, float], ...] = ((np.float32, 1e-25), (np.float64, _SAFE_NORMALISER))
MANY_CELLS = 2**19  # class cells, from which on evaluations that write them are dear
MANY_JOINED = 2**20  # .. or entries of tables that are joined on the way
# Class cells, from which on refits by matrices make no more evaluations than this, in half a second: 150 of a
# million records take longer, and err by .5 to 2 % less.
VERY_MANY_CELLS, MOST_OF_VERY_MANY = 2**22, 120
_MANY, _LARGE = 3, 2**15  # tables of one set of attributes, and their class cells together: running sums pay
_SLAB = 2**17  # class cells that are written at once: 1 MB
LARGEST_FALL = -0.8  # of a block's mass in the first step towards a new table
_FEW = 4  # class cells for each corner of a table, from which on they do


@final
@attrs.frozen(eq=False)
class Fit:
    """A fitted distribution: a `ProductHistogram` if the prior is a product, else a `Histogram`.

    `potentials` and `masses` hold one array per measurement, a number per block, or per merged block in the
    case of `masses`; the potentials are the next fit's `start`. `exponents` are the potentials before blocks
    were told apart again and a largest one became 0: `remade` makes the same of them, to the bit. `loss` is
    ``sum_i |masses_i - values_i|^2 / (2 scale_i^2)``: twice this over the number of blocks is near 0.75 for
    a good fit, far above 1.2 when the fit is too short.
    """

    histogram: Histogram | ProductHistogram
    potentials: tuple[Floats, ...] = attrs.field(repr=False)
    masses: tuple[Floats, ...] = attrs.field(repr=False)
    loss: float
    evaluations: int
    exponents: tuple[Floats, ...] = attrs.field(default=(), repr=False)

    @property
    def cells(self) -> Floats:
        """The mass of every cell, of total 1, shape of the domain; written when they are asked for."""
        return self.histogram.probabilities()


def fit(
    prior: Prior,
    measurements: Sequence[Measurement],
    start: Sequence[Floats] = (),
    *,
    histogram: Histogram | ProductHistogram | None = None,
    evaluations: int = 30,
    dear_evaluations: int | None = None,
    kl_weight: float = 0.0,
    tolerance: float = 1e-4,
    enough: float = 0.0,
    most_cells: int = MAX_CELLS,
) -> Fit:
    """The distribution near the entropy maximiser, relative to `prior`, among those that fit `measurements`.

    Args:
        prior: Positive masses over the domain, one axis per attribute; or over the codes of each attribute,
            and their product is meant. The total need not be 1.
        measurements: At least one. Of partitions, and of queries with weights 0 and 1.
        start: Potentials of an earlier fit to the first `len(start)` measurements. The others start where
            their own gaps say, at the price of one evaluation; at zero if several are over the same
            attributes, or if no table joins attributes.
        histogram: The distribution of these potentials: it saves an evaluation where they are dear and one
            table is new.
        evaluations: Limit on evaluations, >= 1. 30 is enough from earlier potentials; a cold start wants 75
            to 100. From earlier ones it is 120 at most where there are more than 2^22 class cells.
        dear_evaluations: The limit where each writes more than 2^19 class cells, or joins tables of more than
            2^20 entries on the way to so many; steps are then as long as is stable.
        kl_weight: Weight >= 0 of ``KL(h || prior)``; a positive one makes the optimum unique, whatever the
            path.
        tolerance: Share of `descend`; 0 goes on for as long as the loss falls.
        enough: Stop once twice the loss is this share of the number of blocks; 1 is what the truth expects.
        most_cells: Most class cells from a prior that is a product: cuts of the last measurements beyond are
            not told apart, and blocks between which they lie are fitted by their sum.

    Raises:
        InvalidParameterError: A prior that is not positive everywhere: a zero cell could never be repaired.
            Shapes that disagree.
        TooLargeError: Classes of too many cells.
    """
    for masses in prior if isinstance(prior, tuple) else (prior,):
        if not 0 < masses.min() <= masses.sum() < math.inf:
            raise InvalidParameterError("prior must be positive and finite in every cell; add a small floor.")
    shape = tuple(map(len, prior)) if isinstance(prior, tuple) else prior.shape
    if {one.target.domain.shape for one in measurements} != {shape}:
        raise InvalidParameterError(f"measurements must be one or more over a domain of shape {shape}.")
    values, scales = noisy_masses(measurements)
    sizes = list(map(len, values))
    if [part.shape for part in start] != [(size,) for size in sizes[: len(start)]]:
        raise InvalidParameterError("start must hold potentials of the first measurements, one a block.")
    evaluations = checked_integer("evaluations", evaluations, at_least=1)
    kl_weight, tolerance, enough = (
        checked_real(name, value, at_least=0.0)
        for name, value in (("kl_weight", kl_weight), ("tolerance", tolerance), ("enough", enough))
    )
    variances = [np.full(size, scale**2) for size, scale in zip(sizes, scales, strict=True)]
    potentials = [*start, *map(np.zeros, sizes[len(start) :])]
    fitting = list(measurements)
    merging = _merged(fitting, most_cells) if isinstance(prior, tuple) else {}
    for place, (target, blocks) in merging.items():
        fitting[place] = attrs.evolve(fitting[place], target=target)
        values[place], variances[place] = (
            _summed(blocks, values[place]),
            _summed(blocks, variances[place]),
        )
        potentials[place] = _summed(blocks, potentials[place]) / np.bincount(blocks)
    domain = CoarseDomain.of(prior, fitting)
    dear = dear_evaluations is not None and domain.is_dear
    if dear:
        evaluations = checked_integer("dear_evaluations", dear_evaluations, at_least=1)
    elif len(start) and domain.cells > VERY_MANY_CELLS:
        evaluations = min(evaluations, MOST_OF_VERY_MANY)
    observed, variance = np.concatenate(values), np.concatenate(variances)
    new = range(len(start), len(measurements))
    # those over the same attributes tell much the same: all at once they would go too far; and levels of one
    # attribute have told what a new table of it tells
    apart = len({measurements[place].target.axes for place in new}) == len(new)
    looks = 0 < len(start) < len(measurements) and apart and len(domain.axes) > 0 and evaluations > 1
    made = 0  # evaluations, to see what the new tables' blocks weigh so far
    if looks and dear and histogram is not None and len(new) == 1:
        last = fitting[-1].target
        masses = histogram.blocks(last) if isinstance(last, Partition) else _sides(histogram.evaluate(last))
        potentials[-1] = _first_potentials(masses, values[-1], variances[-1])
    elif looks:
        made, before = 1, domain.split(domain.evaluate(np.concatenate(potentials))[0])
        for place in new:
            potentials[place] = _first_potentials(before[place], values[place], variances[place])
    theta, masses, used = descend(
        domain.evaluate,
        np.concatenate(potentials),
        observed,
        variance,
        4 / math.fsum(scale**-2 for scale in scales),
        evaluations=evaluations - made,
        kl_weight=kl_weight,
        tolerance=tolerance,
        enough=enough,
        dear=dear,
    )
    found = fitted(domain, theta, masses, observed, variance, used + made)
    potentials = list(found.potentials)
    for place, (_, blocks) in merging.items():
        potentials[place] = potentials[place][blocks]
    return attrs.evolve(found, potentials=tuple(potentials))


def _sides(value: float) -> Floats:
    """The masses of the two blocks of a 0/1 query: the cells that it leaves out, and those it counts."""
    return np.array([1.0 - value, value])


def _first_potentials(masses: Floats, values: Floats, variances: Floats) -> Floats:
    """Potentials of one more table, from what its blocks weigh without it: empirical Bayes, block by block.

    The variance of a true mass around that weight is estimated by what the table's gaps exceed their noise,
    in proportion to the mass. Gradients alone leave small blocks unfitted, and full gaps fit their noise.
    """
    gaps = values - masses
    spread_of_truth = max(0.0, dot(gaps, gaps) - float(variances.sum())) / float(masses.sum())
    rises = spread_of_truth * gaps / (spread_of_truth * masses + variances)
    return np.log1p(np.maximum(rises, LARGEST_FALL))


def _summed(blocks: Ints, values: Floats) -> Floats:
    return np.bincount(blocks, values).astype(np.float64)


def _merged(measurements: Sequence[Measurement], most: int) -> dict[int, tuple[Partition, Ints]]:
    """The coarser tables of those measurements that more than `most` class cells would take.

    A query that is not told from others any more becomes a table of one block, which says nothing.
    """
    tables = [product_of_cuts(one.target) for one in measurements]
    if few_cells(tables, most):
        return {}
    kept, result = kept_classes(tables, most), {}
    for place, (one, table) in enumerate(zip(measurements, tables, strict=True)):
        if len(table.axes) > 1:
            coarser, blocks = merged(table, kept)
            if coarser.blocks < table.blocks:
                if isinstance(one.target, Query):
                    coarser, blocks = merged(table, {})[0], np.zeros(2, np.int64)
                result[place] = coarser, blocks
    return result


def fitted(
    domain: "CoarseDomain",
    theta: Floats,
    masses: Floats,
    observed: Floats,
    variance: Floats,
    evaluations: int,
) -> Fit:
    """The fit of potentials `theta`, whose blocks have these masses."""
    return Fit(
        histogram=domain.distribution(theta),
        potentials=shifted(domain.split(theta)),
        masses=domain.split(masses),
        loss=dot(masses - observed, (masses - observed) / variance) / 2,
        evaluations=evaluations,
        exponents=domain.split(theta),
    )


def shifted(exponents: Sequence[Floats]) -> tuple[Floats, ...]:
    """The potentials of these exponents, the largest of each measurement 0."""
    return tuple(part - part.max() for part in exponents)


def remade(
    prior: Prior, measurements: Sequence[Measurement], exponents: Sequence[Floats], most_cells: int
) -> tuple[Histogram | ProductHistogram, tuple[Floats, ...]]:
    """The histogram and the potentials of a fit to these measurements, from its `exponents`, to the bit.

    Raises:
        InvalidParameterError: If they are not one a block of each measurement.
    """
    fitting = list(measurements)
    merging = _merged(fitting, most_cells) if isinstance(prior, tuple) else {}
    for place, (target, _) in merging.items():
        fitting[place] = attrs.evolve(fitting[place], target=target)
    domain = CoarseDomain.of(prior, fitting)
    if [part.shape for part in exponents] != [(size,) for size in domain.sizes]:
        raise InvalidParameterError("exponents must be those of a fit to these measurements, one a block.")
    potentials = list(shifted(exponents))
    for place, (_, blocks) in merging.items():
        potentials[place] = potentials[place][blocks]
    return domain.distribution(np.concatenate(exponents)), tuple(potentials)


def noisy_masses(measurements: Sequence[Measurement]) -> tuple[list[Floats], list[float]]:
    """The noisy mass of every block of each measurement, and the standard deviation of each measurement's.

    The number of a query is told by both of its blocks: each has half its weight.

    Raises:
        InvalidParameterError: If a partition has not one finite value a block, a query is constant, or noise
            is not positive.
    """
    values, scales = [], []
    for one in measurements:
        scale = checked_real("scale", one.scale, above=0.0)
        count = one.target.blocks if isinstance(one.target, Partition) else 1
        if not one.target.axes or one.values.shape != (count,) or not np.isfinite(one.values).all():
            raise InvalidParameterError(
                f"values must be finite, one for each block of some attributes, got shape {one.values.shape}."
            )
        single = isinstance(one.target, Query)
        values.append(_sides(one.values[0]) if single else one.values)
        scales.append(scale * 2.0**0.5 if single else scale)
    return values, scales


@attrs.frozen(eq=False)
class _Axis:
    """One attribute: its codes in atoms that no table tells apart, its atoms in classes.

    Atoms are classes, and have no masses, where the prior is dense.
    """

    # atoms: the atom of every code. classes: the class of every atom, with how they are sorted by it.
    # masses: the prior's, of every code and of every atom. parts: (slice of potentials, block of every atom)
    # of the tables of this attribute alone.
    atoms: Ints
    classes: Ints
    order: Ints
    starts: Ints
    masses: tuple[Floats, Floats] | None
    parts: list[tuple[slice, NDArray[np.intp]]]

    @classmethod
    def of(
        cls,
        atoms: Ints,
        classes: Ints,
        prior: Floats | None,
        parts: list[tuple[slice, NDArray[np.intp]]],
    ) -> "_Axis":
        order = np.argsort(classes, kind="stable")
        starts = np.searchsorted(classes[order], np.arange(int(classes.max()) + 1))
        codes = None if prior is None else prior / prior.sum()
        masses = None if codes is None else (codes, _summed(atoms, codes))
        return cls(atoms, classes, order, starts, masses, parts)

    def weigh(self, potentials: Floats) -> tuple[Floats, Floats]:
        """The log of the weight of every class, and the share of its class that each atom has."""
        logs = np.zeros(len(self.classes))
        for part, code in self.parts:
            logs += potentials[part][code]
        if self.masses is None:
            return logs, np.ones(len(logs))
        peaks = np.maximum.reduceat(logs[self.order], self.starts)
        shares = np.exp(logs - peaks[self.classes]) * self.masses[1]
        sums = np.bincount(self.classes, shares)
        shares /= sums[self.classes]
        return np.log(sums) + peaks, shares

    def within(self, shares: Floats) -> tuple[Ints, Floats]:
        """The class of every code, and the share of its class that it has."""
        if self.masses is None:
            raise InvalidParameterError("prior must be a product to have shares of classes.")
        codes, atoms = self.masses
        return self.classes[self.atoms], codes * (shares / atoms)[self.atoms]


@attrs.frozen(eq=False)
class _Corners:
    """Where the boxes of a table lie among the class cells: runs of classes, by axis."""

    # shape: runs by axis. first, last: the places of their first and last classes, of all axes but the last.
    # starts, lengths: of the runs of the last axis.
    shape: tuple[int, ...]
    first: tuple[Ints, ...]
    last: tuple[Ints, ...]
    starts: Ints
    lengths: Ints

    @classmethod
    def of(cls, starts: Sequence[Ints], shape: Sequence[int]) -> "_Corners":
        ends = [np.append(at[1:], size) - 1 for at, size in zip(starts, shape, strict=True)]
        return cls(
            shape=tuple(map(len, starts)),
            first=np.ix_(*starts[:-1]),
            last=np.ix_(*ends[:-1]),
            starts=starts[-1],
            lengths=np.diff(starts[-1], append=shape[-1]),
        )


_Part = tuple[slice, _Corners | None, NDArray[np.intp]]


@attrs.frozen(eq=False)
class _Leaf:
    """The tables over one set of axes; forward their potentials are added up, backward masses are summed.

    Each block of a table is a box of classes, or a few. Few tables or small ones have the block of every
    class cell listed. Many large ones are added by their corners: the running sums, along all axes but the
    last and longest, of what changes at the start of each box; boxes of a density are differences of those.
    """

    # parts: slice of potentials; the corners of its boxes, or None where every class is a run of its own;
    # block of every run cell, flattened.
    shape: tuple[int, ...]
    parts: tuple[_Part, ...]

    @classmethod
    def of(
        cls,
        own: tuple[int, ...],
        first: Mapping[int, Ints],
        tables: Sequence[tuple[slice, Query | Partition, Partition]],
    ) -> "_Leaf":
        shape = tuple(len(first[axis]) for axis in own)
        listed = len(tables) < _MANY or len(tables) * math.prod(shape) < _LARGE
        parts: list[_Part] = []
        for part, target, table in tables:
            blocks = [table.classes[table.axes.index(axis)][first[axis]] for axis in own]
            starts = [np.flatnonzero(np.diff(labels, prepend=-1)) for labels in blocks]
            # corners pay where they are few: of a dense query every class cell is one
            whole = listed or _FEW * math.prod(map(len, starts)) > math.prod(shape)
            runs = first if whole else {a: first[a][at] for a, at in zip(own, starts, strict=True)}
            corners = None if whole else _Corners.of(starts, shape)
            parts.append((part, corners, _block_codes(target, table, own, runs)))
        return cls(shape, tuple(parts))

    def add(self, potentials: Floats) -> Floats:
        """The sum of the potentials of all tables, for every class cell."""
        logs = np.zeros(self.shape)
        for part, corners, code in self.parts:
            if corners is not None:
                values = potentials[part][code].reshape(corners.shape)
                _difference(values)
                logs[corners.first] += np.repeat(values, corners.lengths, axis=-1)
        if any(corners is not None for _, corners, _ in self.parts):
            for axis in range(logs.ndim - 1):
                accumulate(logs, axis)
        for part, corners, code in self.parts:  # after the running sums, which are of corners alone
            if corners is None:
                logs.reshape(-1)[...] += potentials[part][code]
        return logs

    def sum(self, density: Floats, masses: Floats) -> None:
        """Write the mass of every block of each table."""
        area: Floats | None = None
        for part, corners, code in self.parts:
            boxes = density
            if corners is not None:
                if area is None:
                    area = density.copy()
                    for axis in range(area.ndim - 1):
                        accumulate(area, axis)
                boxes = np.add.reduceat(area[corners.last], corners.starts, axis=-1)
                _difference(boxes)
            masses[part] = np.bincount(code, boxes.ravel(), part.stop - part.start)


def _difference(values: Floats) -> None:
    """Subtract from every entry the one before, along each axis but the last: the inverse of running sums."""
    for axis in range(values.ndim - 1):
        before = (slice(None),) * axis
        values[(*before, slice(1, None))] -= values[(*before, slice(-1))]


@attrs.frozen(eq=False)
class _Dense:
    """A prior that is no product: its mass of every cell, and of every class cell."""

    cells: Floats
    classes: Floats


@final
@attrs.frozen(eq=False)
class CoarseDomain:
    """The common refinement of some tables, the prior on it, and the merge tree that joins them."""

    # domain, sizes: of the measurements, the number of blocks of each.
    # prior: the factors of a product, or the masses of all cells and of the class cells over `axes`.
    # held: per axis that some table reads.
    # axes: those that the class cells have, fewest classes first (long inner loops): of a product those that
    # a joint table reads, else all that some table reads.
    # leaves: of the measured sets of two axes or more. ends: one axis each, after the leaves.
    # tree: of the leaves and the ends; the density is the product of its root.
    domain: Domain
    sizes: tuple[int, ...]
    prior: tuple[Floats, ...] | _Dense
    held: dict[int, _Axis]
    axes: tuple[int, ...]
    leaves: tuple[_Leaf, ...]
    ends: tuple[int, ...]
    tree: MergeTree

    @classmethod
    def of(cls, prior: Prior, measurements: Sequence[Measurement]) -> "CoarseDomain":
        """Refine the axes of the domain by `measurements` and plan the merge tree."""
        product = isinstance(prior, tuple)
        targets = [one.target for one in measurements]
        tables = [product_of_cuts(target) for target in targets]
        sizes = tuple(target.blocks if isinstance(target, Partition) else 2 for target in targets)
        stops = np.cumsum(sizes).tolist()
        slices = [slice(stop - size, stop) for size, stop in zip(sizes, stops, strict=True)]
        held: dict[int, _Axis] = {}
        first: dict[int, Ints] = {}  # axis -> first code of each of its classes
        for axis in {axis: None for table in tables for axis in table.axes}:
            reading = [table for table in tables if axis in table.axes]
            atoms, codes = common_refinement([table.classes[table.axes.index(axis)] for table in reading])
            classes, heads = np.arange(len(codes)), np.arange(len(codes))
            if product:
                joint = [table.classes[table.axes.index(axis)] for table in reading if len(table.axes) > 1]
                classes, heads = common_refinement([cut[codes] for cut in joint] or [0 * classes])
            first[axis] = codes[heads]
            parts = [
                (part, _block_codes(target, table, (axis,), {axis: codes}))
                for part, target, table in zip(slices, targets, tables, strict=True)
                if table.axes == (axis,)
            ]
            held[axis] = _Axis.of(atoms, classes, prior[axis] if isinstance(prior, tuple) else None, parts)
        together = {axis for table in tables if len(table.axes) > 1 or not product for axis in table.axes}
        axes = tuple(sorted(together, key=lambda axis: (len(first[axis]), axis)))
        check_cells(math.prod(len(first[axis]) for axis in axes))
        grouped: dict[frozenset[int], list[tuple[slice, Query | Partition, Partition]]] = {}
        for part, target, table in zip(slices, targets, tables, strict=True):
            if len(table.axes) > 1:
                grouped.setdefault(frozenset(table.axes), []).append((part, target, table))
        ends = tuple(axis for axis in axes if product or held[axis].parts)
        sets = [*map(tuple, grouped), *((axis,) for axis in ends)]
        tree = MergeTree.of(sets, {axis: len(first[axis]) for axis in axes}) if sets else MergeTree((), ())
        axes = tree.order
        leaves = (
            _Leaf.of(tuple(axis for axis in axes if axis in own), first, several)
            for own, several in grouped.items()
        )
        return cls(
            domain=targets[0].domain,
            sizes=sizes,
            prior=prior if isinstance(prior, tuple) else _Dense(prior, _sum_classes(prior, axes, held)),
            held=held,
            axes=axes,
            leaves=tuple(leaves),
            ends=ends,
            tree=tree,
        )

    def evaluate(self, potentials: Floats) -> tuple[Floats, float]:
        """Block masses of ``h ~ prior * exp(potentials)``, table after table, and the log-normaliser."""
        if self._by_matrices or self._by_slabs:
            ends, shares, alone = self._ends(potentials)
            tables, shift = self._factors(potentials, ends)
            margins_of = _margins_by_matrices if self._by_matrices else _margins_by_slabs
            for kind, least in _KINDS if self.cells > MANY_CELLS else _KINDS[1:]:
                held = [table.astype(kind) for table in tables]
                margins = margins_of(self._join(held, np.multiply), self.tree.root)
                normaliser = float(margins[0].sum(dtype=np.float64))
                if normaliser > least:
                    for margin in margins:
                        margin *= 1.0 / normaliser
                    return self._masses(margins, shares), alone + shift + math.log(normaliser)
        density, shares, log_normaliser = self.weigh(potentials)
        return self.measure(density, shares), log_normaliser

    @property
    def _by_matrices(self) -> bool:
        """Whether the root is large, and a product of three smaller tables with each axis in two of them."""
        return self._is_product and self.cells > MATRICES and self.tree.by_matrices

    @property
    def _by_slabs(self) -> bool:
        """Whether the root is larger than a cache, and a product of any smaller tables."""
        return self._is_product and self.cells > MANY_CELLS

    @property
    def _is_product(self) -> bool:
        """Whether the root is a product of smaller tables."""
        return isinstance(self.prior, tuple) and all(
            len(link.keep) < len(self.axes) for link in self.tree.root
        )

    @property
    def cells(self) -> int:
        """How many class cells there are."""
        return math.prod(len(self.held[axis].starts) for axis in self.axes)

    @property
    def is_dear(self) -> bool:
        """Whether an evaluation writes many class cells, or entries of tables that are joined on the way."""
        return self.cells > MANY_CELLS and (not self._by_matrices or self.tree.written > MANY_JOINED)

    def weigh(self, potentials: Floats) -> tuple[Floats, dict[int, Floats], float]:
        """Masses of the class cells, shares of the atoms in their class by axis, and the log-normaliser."""
        ends, shares, alone = self._ends(potentials)
        if not self.axes:
            return np.ones(()), shares, alone
        tables, shift = self._factors(potentials, ends)
        factors = self._join(tables, np.multiply)
        if self._by_slabs:
            density, normaliser = _written(factors)
        else:
            density = _joined(factors, np.multiply)
            normaliser = self._total(density)
        if not normaliser > _SAFE_NORMALISER:
            density = _joined(self._join(self._logs(potentials, ends), np.add), np.add)
            shift = float(density.max())
            density = np.exp(density - shift)
            normaliser = self._total(density)
        density *= 1.0 / normaliser
        if isinstance(self.prior, _Dense):
            density *= self.prior.classes
        return density, shares, alone + shift + math.log(normaliser)

    def _total(self, density: Floats) -> float:
        return dot(density, self.prior.classes) if isinstance(self.prior, _Dense) else float(density.sum())

    def _ends(self, potentials: Floats) -> tuple[dict[int, tuple[Floats, Floats]], dict[int, Floats], float]:
        """Log weights of classes and shares of atoms by axis, those shares, and the logs of what is alone."""
        ends = {axis: one.weigh(potentials) for axis, one in self.held.items()}
        shares = {axis: atoms for axis, (_, atoms) in ends.items()}
        return ends, shares, math.fsum(own[0] for axis, (own, _) in ends.items() if axis not in self.axes)

    def _factors(
        self, potentials: Floats, ends: Mapping[int, tuple[Floats, Floats]]
    ) -> tuple[list[Floats], float]:
        """Fresh tables of leaves and ends, the largest entry of each 1, and the log of the peaks' product."""
        tables = self._logs(potentials, ends)
        peaks = [float(log.max()) for log in tables]
        # Every factor is <= 1, so a cell that underflows is below 1e-308: harmless while the sum is not tiny.
        for log, peak in zip(tables, peaks, strict=True):
            log -= peak
            np.exp(log, out=log)
        return tables, math.fsum(peaks)

    def _logs(self, potentials: Floats, ends: Mapping[int, tuple[Floats, Floats]]) -> list[Floats]:
        """Fresh tables of leaves and ends, in log space."""
        return [leaf.add(potentials) for leaf in self.leaves] + [ends[axis][0].copy() for axis in self.ends]

    def _join(self, tables: list[Floats], join: np.ufunc) -> list[Floats]:
        """Join the tables of leaves and ends, up the tree: those whose product the root is, to broadcast."""
        # at once: memory that is asked for piece by piece takes as long to be had as to be filled
        room = np.empty(self.tree.written, tables[0].dtype)
        for pair in self.tree.nodes:
            factors = [tables[link.child].reshape(link.broadcast) for link in pair]
            tables.append(_joined(factors, join, room))
            if max(factor.size for factor in factors) < tables[-1].size:
                room = room[tables[-1].size :]
        return [tables[link.child].reshape(link.broadcast) for link in self.tree.root]

    def measure(self, density: Floats, shares: Mapping[int, Floats]) -> Floats:
        """Block masses of a density over the class cells, table after table: down the tree."""
        return self._masses([_margin(density, link) for link in self.tree.root], shares)

    def _masses(self, margins: Sequence[Floats], shares: Mapping[int, Floats]) -> Floats:
        """Block masses, from the density's margins over the tables that the root is the product of."""
        count = len(self.leaves) + len(self.ends)
        tables = {link.child: margin for link, margin in zip(self.tree.root, margins, strict=True)}
        for offset in range(len(self.tree.nodes) - 1, -1, -1):
            parent = tables.pop(count + offset)
            for link in self.tree.nodes[offset]:
                tables[link.child] = _margin(parent, link)
        masses = np.empty(sum(self.sizes))
        for index, leaf in enumerate(self.leaves):
            leaf.sum(tables[index].astype(np.float64, copy=False), masses)
        for axis, one in self.held.items():
            if one.parts:
                place = len(self.leaves) + self.ends.index(axis) if axis in self.ends else None
                classes = np.ones(1) if place is None else tables[place]
                atoms = shares[axis] * classes[one.classes]
                for part, code in one.parts:
                    masses[part] = np.bincount(code, atoms, part.stop - part.start)
        return masses

    def distribution(self, potentials: Floats) -> Histogram | ProductHistogram:
        """The distribution over the cells ``h ~ prior * exp(potentials)``, of total 1."""
        density, shares, _ = self.weigh(potentials)
        if isinstance(self.prior, _Dense):
            return Histogram(self.domain, np.maximum(self._expand(density, self.prior), SMALLEST))
        classes = [np.zeros(len(part), np.int64) for part in self.prior]
        within = [part / part.sum() for part in self.prior]
        for axis, one in self.held.items():
            classes[axis], within[axis] = one.within(shares[axis])
        axes = self.axes
        if self.cells <= MANY_CELLS:
            axes = tuple(sorted(axes))
            density = np.asarray(density.transpose([self.axes.index(axis) for axis in axes]), order="C")
        return ProductHistogram._tied(self.domain, axes, density, tuple(classes), tuple(within))

    def _expand(self, density: Floats, prior: _Dense) -> Floats:
        """The cells of a density over the classes: its ratio to the prior is that of each cell of a class."""
        ratio = (density / prior.classes).transpose(np.argsort(self.axes))
        for axis in range(len(self.domain.shape)):
            if axis not in self.axes:
                ratio = np.expand_dims(ratio, axis)
            elif ratio.shape[axis] < self.domain.shape[axis]:
                ratio = ratio.take(self.held[axis].atoms, axis=axis)
        cells: Floats = prior.cells * ratio
        cells /= cells.sum()
        return cells

    def split(self, values: Floats) -> tuple[Floats, ...]:
        """Cut one long vector into those of the tables."""
        return tuple(np.split(values, np.cumsum(self.sizes)[:-1]))


@lru_cache(2**12)  # of small tables it takes as long as their product
def _whole(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """The shape of tables of these shapes that broadcast."""
    return np.broadcast_shapes(*shapes)


def _joined(factors: Sequence[Floats], join: np.ufunc, room: Floats | None = None) -> Floats:
    """Join fresh tables that broadcast, in the place of one that has the shape of all, or in `room`."""
    shape = _whole(tuple([factor.shape for factor in factors]))
    result = factors[0]
    for factor in factors[1:]:
        place = next((table for table in (result, factor) if table.shape == shape), None)
        if place is None and room is not None:
            place = room[: math.prod(shape)].reshape(shape)
        result = join(result, factor, out=place)
    return result


def _margin(density: Floats, link: Link) -> Floats:
    """The sums of a density over the axes that a child lacks."""
    return density if len(link.keep) == density.ndim else contract(density, link.keep)


def _margins_by_matrices(factors: Sequence[Floats], links: Sequence[Link]) -> list[Floats]:
    """The margins, over the axes of each of three factors, of their product, which is never written.

    With A over axes (b, x, y), B over (b, x, z) and C over (b, y, z), the margin over (b, x, y) is A times
    the sum over z of B C, a product of matrices for each b; and so are the others.
    """
    sets = [frozenset(link.keep) for link in links]
    batch = frozenset.intersection(*sets)
    x, y, z = (tuple(sorted((sets[i] & sets[j]) - batch)) for i, j in ((0, 1), (0, 2), (1, 2)))
    layouts = [(tuple(sorted(batch)), *pair) for pair in ((x, y), (x, z), (y, z))]
    held, shapes = [], []
    for factor, layout in zip(factors, layouts, strict=True):
        order = sum(layout, ())
        shapes.append([factor.shape[axis] for axis in order])
        rest = tuple(axis for axis in range(factor.ndim) if axis not in order)
        sizes = [math.prod(factor.shape[axis] for axis in part) for part in layout]
        held.append(np.ascontiguousarray(factor.transpose(order + rest)).reshape(sizes))
    first, second, third = held
    margins = (
        multiply(second, third.swapaxes(1, 2)),
        multiply(first, third),
        multiply(first.swapaxes(1, 2), second),
    )
    for margin, factor in zip(margins, held, strict=True):
        margin *= factor
    return [
        margin.reshape(shape).transpose(np.argsort(sum(layout, ())))
        for margin, shape, layout in zip(margins, shapes, layouts, strict=True)
    ]


def _margins_by_slabs(factors: Sequence[Floats], links: Sequence[Link]) -> list[Floats]:
    """The same of any factors: the product is written slab by slab, each of which stays in the cache."""
    parts = _by_runs(factors)
    margins = [np.zeros(part.shape, part.dtype) for part in parts]
    held = np.empty(_SLAB, parts[0].dtype)
    for place, slab in _products(parts, held):
        for margin in margins:
            part = margin[_within(place, margin)]
            keep = tuple(axis for axis, size in enumerate(part.shape) if size == slab.shape[axis])
            part += slab if len(keep) == slab.ndim else contract(slab, keep).reshape(part.shape)
    return [
        margin.reshape([factor.shape[axis] for axis in link.keep])
        for margin, factor, link in zip(margins, factors, links, strict=True)
    ]


def _written(factors: Sequence[Floats]) -> tuple[Floats, float]:
    """The product of factors that broadcast, written slab by slab, and its sum."""
    parts, totals = _by_runs(factors), []
    result = np.empty(np.broadcast_shapes(*(part.shape for part in parts)))
    for place, _ in _products(parts, result):
        totals.append(float(result[place].sum()))
    return result.reshape(np.broadcast_shapes(*(factor.shape for factor in factors))), math.fsum(totals)


def _by_runs(factors: Sequence[Floats]) -> list[Floats]:
    """The factors over fewer and longer axes: those side by side that the same factors have are one."""
    having = [
        tuple(size > 1 for size in sizes) for sizes in zip(*(factor.shape for factor in factors), strict=True)
    ]
    runs = [[*run] for _, run in groupby(range(len(having)), key=having.__getitem__)]
    return [
        factor.reshape([math.prod(factor.shape[axis] for axis in run) for run in runs]) for factor in factors
    ]


def _products(factors: Sequence[Floats], out: Floats) -> Iterator[tuple[tuple[slice, ...], Floats]]:
    """Every slab of the product of factors, and where it lies; written into `out`, if that is all of it."""
    first, *others = sorted(factors, key=np.size, reverse=True)
    shape = np.broadcast_shapes(*(factor.shape for factor in factors))
    for place in _slabs(shape):
        sizes = [run.stop - run.start for run in place]
        slab = out[place] if out.shape == shape else out[: math.prod(sizes)].reshape(sizes)
        np.multiply(first[_within(place, first)], others[0][_within(place, others[0])], out=slab)
        for other in others[1:]:
            slab *= other[_within(place, other)]
        yield place, slab


def _within(place: tuple[slice, ...], table: Floats) -> tuple[slice, ...]:
    """Where a slab lies in a table that lacks axes."""
    return tuple(run if size > 1 else slice(None) for run, size in zip(place, table.shape, strict=True))


def _slabs(shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Where the slabs of a table lie: as many codes of the last axes as one may hold."""
    left, runs = _SLAB, []
    for size in reversed(shape):
        step = min(size, left)
        runs.append([slice(start, min(start + step, size)) for start in range(0, size, step)])
        left //= step
    return product(*reversed(runs))


def block_codes(targets: Sequence[Query | Partition]) -> list[NDArray[np.intp]]:
    """Block of each target, all over the same axes, for every cell of their common refinement."""
    tables, first = [product_of_cuts(target) for target in targets], {}
    for place, axis in enumerate(tables[0].axes):
        first[axis] = common_refinement([table.classes[place] for table in tables])[1]
    own = tables[0].axes
    return [_block_codes(target, table, own, first) for target, table in zip(targets, tables, strict=True)]


def _block_codes(
    target: Query | Partition, table: Partition, own: Sequence[int], first: Mapping[int, Ints]
) -> NDArray[np.intp]:
    """Block of the target for every class cell of the axes `own`, flattened; `table` is what it cuts."""
    code = np.zeros((1,) * len(own), np.intp)
    for axis, index in zip(table.axes, table.classes, strict=True):
        code = code * (index.max() + 1) + spread(index[first[axis]], (own.index(axis),), len(own))
    flat = code.ravel()
    return flat if isinstance(target, Partition) else block_weights(target, table).astype(np.intp)[flat]


def _sum_classes(prior: Floats, axes: tuple[int, ...], held: Mapping[int, _Axis]) -> Floats:
    """Prior mass of every class cell, total 1, in the order of `axes`."""
    rising = sorted(axes)
    base = contract(prior, tuple(rising))
    for position, axis in enumerate(rising):
        base = sum_classes(base, held[axis].atoms, position)
    return np.ascontiguousarray((base / base.sum()).transpose([rising.index(axis) for axis in axes]))
