"""Maximum-entropy fitting: the distribution nearest a prior that agrees with noisy tables.

Pure, deterministic functions of public facts: a prior and measurements, each a noisy table of the masses of
its blocks. The distribution fitted is ``h ~ prior * exp(sum_i theta_i[block_i(x)])``, with one potential per
block of each table. A measured 0/1 query has two blocks: the cells that it leaves out, and those it counts.

* **Coarse domain.** ``h / prior`` is constant on the common refinement of the tables, taken axis by axis: the
  prior is summed over those classes once, and axes that no table reads drop out.
* **Merge tree.** Tables over few axes are joined pairwise, smallest union first. Factors travel up the tree,
  masses travel down it: one evaluation costs a few passes over the root.
* **Accelerated mirror descent** on the potentials, one evaluation per iteration. Fitting on fits the noise:
  the default of 30 evaluations from the previous potentials is a regulariser.
"""

import math
from collections.abc import Mapping, Sequence
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from onlineic._typing import Floats, Ints
from onlineic.errors import InvalidParameterError, checked_integer, checked_real
from onlineic.hypothesis.descent import descend
from onlineic.queries.partitions import Measurement, Partition, block_weights
from onlineic.queries.query import Query
from onlineic.queries.tables import contract, spread

# Below this normaliser the product of factors may have lost cells that matter: evaluate in log space instead.
_SAFE_NORMALISER = 1e-150


@final
@attrs.frozen(eq=False)
class Fit:
    """A fitted distribution: `cells`, of total 1 and the shape of the prior.

    `potentials` and `masses` hold one array per measurement, a number per block; the potentials are the next
    fit's `start`. `loss` is ``sum_i |masses_i - values_i|^2 / (2 scale_i^2)``: twice this over
    the number of blocks is near 0.75 for a good fit, far above 1.2 when the fit is too short.
    """

    cells: Floats = attrs.field(repr=False)
    potentials: tuple[Floats, ...] = attrs.field(repr=False)
    masses: tuple[Floats, ...] = attrs.field(repr=False)
    loss: float
    evaluations: int


def fit(
    prior: Floats,
    measurements: Sequence[Measurement],
    start: Sequence[Floats] = (),
    *,
    evaluations: int = 30,
    kl_weight: float = 0.0,
    tolerance: float = 1e-4,
    enough: float = 0.0,
) -> Fit:
    """The distribution near the entropy maximiser, relative to `prior`, among those that fit `measurements`.

    Parameters
    ----------
    prior : float array
        Positive masses over the domain, one axis per attribute; the total need not be 1.
    measurements : sequence of Measurement, at least one
        Of partitions, and of queries with weights 0 and 1.
    start : sequence of float arrays, optional
        Potentials of an earlier fit to the first `len(start)` measurements; the others start at zero.
    evaluations : int, optional
        Limit on evaluations, >= 1. 30 is enough from earlier potentials; a cold start wants 75 to 100.
    kl_weight : float, optional
        Weight >= 0 of ``KL(h || prior)``; a positive one makes the optimum unique, whatever the path.
    tolerance : float, optional
        Share of `descend`; 0 goes on for as long as the loss falls.
    enough : float, optional
        Stop once twice the loss is this share of the number of blocks; 1 is what the truth expects.

    Raises
    ------
    InvalidParameterError
        A prior that is not positive everywhere: a zero cell could never be repaired. Shapes that disagree.
    """
    if not 0 < prior.min() <= prior.sum() < math.inf:
        raise InvalidParameterError("prior must be positive and finite in every cell; add a small floor.")
    if {one.target.domain.shape for one in measurements} != {prior.shape}:
        raise InvalidParameterError(f"measurements must be one or more over a domain of shape {prior.shape}.")
    values, scales = noisy_masses(measurements)
    sizes = list(map(len, values))
    if [part.shape for part in start] != [(size,) for size in sizes[: len(start)]]:
        raise InvalidParameterError("start must hold potentials of the first measurements, one a block.")
    evaluations = checked_integer("evaluations", evaluations, at_least=1)
    kl_weight, tolerance, enough = (
        checked_real(name, value, at_least=0.0)
        for name, value in (("kl_weight", kl_weight), ("tolerance", tolerance), ("enough", enough))
    )
    domain = CoarseDomain.of(prior, measurements)
    observed = np.concatenate(values)
    variance = np.repeat([scale**2 for scale in scales], sizes)
    theta, masses, used = descend(
        domain.evaluate,
        np.concatenate([*start, np.zeros(sum(sizes[len(start) :]))]),
        observed,
        variance,
        4 / math.fsum(scale**-2 for scale in scales),
        evaluations=evaluations,
        kl_weight=kl_weight,
        tolerance=tolerance,
        enough=enough,
    )
    return fitted(domain, prior, theta, masses, observed, variance, used)


def fitted(
    domain: "CoarseDomain",
    prior: Floats,
    theta: Floats,
    masses: Floats,
    observed: Floats,
    variance: Floats,
    evaluations: int,
) -> Fit:
    """The fit of potentials `theta`, whose blocks have these masses."""
    ratio, _ = domain.weigh(theta)
    return Fit(
        cells=domain.expand(ratio, prior),
        potentials=tuple(part - part.max() for part in domain.split(theta)),
        masses=domain.split(masses),
        loss=float((masses - observed) @ ((masses - observed) / variance)) / 2,
        evaluations=evaluations,
    )


def noisy_masses(measurements: Sequence[Measurement]) -> tuple[list[Floats], list[float]]:
    """The noisy mass of every block of each measurement, and the standard deviation of each measurement's.

    The number of a query is told by both of its blocks: each has half its weight.

    Raises
    ------
    InvalidParameterError
        If a partition has not one finite value a block, a query is constant, or noise is not positive.
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
        values.append(np.array([1.0 - one.values[0], one.values[0]]) if single else one.values)
        scales.append(scale * 2.0**0.5 if single else scale)
    return values, scales


@attrs.frozen(eq=False)
class _Link:
    """Edge from a parent to a child: the parent's axes that the child has, and its shape for broadcasting."""

    child: int
    keep: tuple[int, ...]
    broadcast: tuple[int, ...]


@final
@attrs.frozen(eq=False)
class CoarseDomain:
    """The common refinement of some tables, the prior summed over it, and the merge tree that joins them."""

    # refined: per axis of the domain the class of each value, None where no table reads it.
    # axes: those that some table reads, fewest classes first (long inner loops); base: their class masses.
    # sizes: number of blocks per table.
    # leaves: per measured set of axes, shape of its classes and (slice of potentials, block codes) per table.
    # nodes: inner nodes of the tree, behind the leaves; children before parents, the root last.
    refined: tuple[Ints | None, ...]
    axes: tuple[int, ...]
    base: Floats
    sizes: tuple[int, ...]
    leaves: tuple[tuple[tuple[int, ...], list[tuple[slice, NDArray[np.intp]]]], ...]
    nodes: tuple[tuple[_Link, _Link], ...]

    @classmethod
    def of(cls, prior: Floats, measurements: Sequence[Measurement]) -> "CoarseDomain":
        """Refine the axes of `prior` by all `measurements` and plan the merge tree."""
        tables = [_cuts(one.target) for one in measurements]
        refined: dict[int, Ints] = {}
        first: dict[int, Ints] = {}  # axis -> first value of each class
        for axis in {axis: None for table in tables for axis in table.axes}:
            held = [table.classes[table.axes.index(axis)] for table in tables if axis in table.axes]
            cuts = {cut.tobytes(): cut for cut in held}
            refined[axis], first[axis] = _common_refinement(list(cuts.values()))
        axes = tuple(sorted(first, key=lambda axis: (len(first[axis]), axis)))
        grouped: dict[tuple[int, ...], list[tuple[slice, NDArray[np.intp]]]] = {}
        sizes = tuple(one.target.blocks if isinstance(one.target, Partition) else 2 for one in measurements)
        ends = np.cumsum(sizes).tolist()
        for one, table, start, stop in zip(measurements, tables, [0, *ends], ends, strict=False):
            own = tuple(axis for axis in axes if axis in table.axes)
            grouped.setdefault(own, []).append(
                (slice(start, stop), _block_codes(one.target, table, own, first))
            )
        return cls(
            refined=tuple(refined.get(axis) for axis in range(prior.ndim)),
            axes=axes,
            base=_sum_classes(prior, axes, refined),
            sizes=sizes,
            leaves=tuple((tuple(len(first[a]) for a in own), parts) for own, parts in grouped.items()),
            nodes=_merge_tree(list(grouped), {axis: len(first[axis]) for axis in axes}),
        )

    def evaluate(self, potentials: Floats) -> tuple[Floats, float]:
        """Block masses of ``h ~ base * exp(potentials)``, table after table, and the log-normaliser."""
        density, log_normaliser = self.weigh(potentials)
        density *= self.base
        return self.measure(density), log_normaliser

    def weigh(self, potentials: Floats) -> tuple[Floats, float]:
        """Normalised ratio h / prior over the class cells, and the log-normaliser."""
        logs = []
        for shape, parts in self.leaves:
            logs.append(np.zeros(math.prod(shape)))
            for part, code in parts:
                logs[-1] += potentials[part][code]
            logs[-1].shape = shape
        peaks = [float(log.max()) for log in logs]
        # Every factor is <= 1, so a cell that underflows is below 1e-308: harmless while the sum is not tiny.
        ratio = self._join([np.exp(log - peak) for log, peak in zip(logs, peaks, strict=True)], np.multiply)
        shift = math.fsum(peaks)
        normaliser = float(np.vdot(ratio, self.base))
        if not normaliser > _SAFE_NORMALISER:
            ratio = self._join(logs, np.add)
            shift = float(ratio.max())
            ratio = np.exp(ratio - shift)
            normaliser = float(np.vdot(ratio, self.base))
        ratio *= 1.0 / normaliser
        return ratio, shift + math.log(normaliser)

    def _join(self, tables: list[Floats], join: np.ufunc) -> Floats:
        """Join the tables of the leaves, up the tree: the table of the root."""
        for pair in self.nodes:
            left, right = (tables[link.child].reshape(link.broadcast) for link in pair)
            tables.append(join(left, right))
        return tables[-1]

    def measure(self, density: Floats) -> Floats:
        """Block masses of a density over the class cells, table after table: down the tree."""
        tables = {len(self.leaves) + len(self.nodes) - 1: density}
        for offset in range(len(self.nodes) - 1, -1, -1):
            parent = tables.pop(len(self.leaves) + offset)
            for link in self.nodes[offset]:
                tables[link.child] = contract(parent, link.keep)
        masses = np.empty(sum(self.sizes))
        for index, (_, parts) in enumerate(self.leaves):
            for part, code in parts:
                masses[part] = np.bincount(code, tables[index].ravel(), part.stop - part.start)
        return masses

    def expand(self, ratio: Floats, prior: Floats) -> Floats:
        """The cells ``prior * ratio``: a value over the classes is repeated over the cells of each class."""
        ratio = ratio.transpose(np.argsort(self.axes))
        for axis, index in enumerate(self.refined):
            if index is None:
                ratio = np.expand_dims(ratio, axis)
            elif ratio.shape[axis] < index.size:
                ratio = ratio.take(index, axis=axis)
        cells: Floats = prior * ratio
        cells /= cells.sum()
        return cells

    def split(self, values: Floats) -> tuple[Floats, ...]:
        """Cut one long vector into those of the tables."""
        return tuple(np.split(values, np.cumsum(self.sizes)[:-1]))


def _common_refinement(cuts: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Class of every value, when values of one class differ in no cut, and the first value of each class."""
    joint = np.zeros_like(cuts[0])
    for cut in cuts:
        joint = np.unique(joint * (cut.max() + 1) + cut, return_inverse=True)[1]
    _, first, joint = np.unique(joint, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # number the classes by their first value: ordered cuts stay ordered
    return rank[joint], np.sort(first)


def _cuts(target: Query | Partition) -> Partition:
    """The partition itself, or the coarsest product of classes that a 0/1 query can be told from."""
    if isinstance(target, Partition):
        return target
    classes = {
        axis: factor.weights(target.domain)
        if factor.axes == (axis,)
        else np.arange(target.domain.shape[axis])
        for factor in target.factors
        for axis in factor.axes
    }
    return Partition(target.domain, target.axes, tuple(classes[axis] for axis in target.axes))


def _block_codes(
    target: Query | Partition, table: Partition, own: Sequence[int], first: Mapping[int, Ints]
) -> NDArray[np.intp]:
    """Block of the target for every class cell of the axes `own`, flattened; `table` is what it cuts."""
    code = np.zeros((1,) * len(own), np.intp)
    for axis, index in zip(table.axes, table.classes, strict=True):
        code = code * (index.max() + 1) + spread(index[first[axis]], (own.index(axis),), len(own))
    flat = code.ravel()
    return flat if isinstance(target, Partition) else block_weights(target, table).astype(np.intp)[flat]


def _sum_classes(prior: Floats, axes: tuple[int, ...], refined: Mapping[int, Ints]) -> Floats:
    """Prior mass of every class cell, total 1, in the order of `axes`."""
    base = contract(prior, tuple(sorted(axes)))
    for position, axis in enumerate(sorted(axes)):
        index = refined[axis]
        count = int(index.max()) + 1
        if count < index.size:
            order = np.argsort(index, kind="stable")
            starts = np.searchsorted(index[order], np.arange(count))
            base = np.add.reduceat(base.take(order, axis=position), starts, axis=position)
    return np.ascontiguousarray((base / base.sum()).transpose([sorted(axes).index(axis) for axis in axes]))


def _merge_tree(sets: Sequence[tuple[int, ...]], sizes: Mapping[int, int]) -> tuple[tuple[_Link, _Link], ...]:
    """Join the two live nodes with the smallest union table until one is left; ties go to the oldest pair."""
    axes, widths = list(sizes), np.array(list(sizes.values()), float)
    members = np.zeros((2 * len(sets) - 1, len(axes)), bool)  # node -> its axes
    members[: len(sets)] = [[axis in own for axis in axes] for own in sets]
    cost = np.full((len(members), len(members)), np.inf)
    live = np.zeros(len(members), bool)
    nodes = []
    for new in range(len(members)):
        if new >= len(sets):
            pair = [int(node) for node in np.unravel_index(np.argmin(cost), cost.shape)]
            live[pair] = False
            cost[pair, :] = cost[:, pair] = np.inf
            members[new] = members[pair].any(axis=0)
            links = []
            for child in pair:
                has = members[child][members[new]]
                shape = np.where(has, widths[members[new]], 1).astype(int)
                links.append(_Link(child, tuple(np.flatnonzero(has).tolist()), tuple(shape.tolist())))
            nodes.append((links[0], links[1]))
        older = np.flatnonzero(live[:new])
        cost[older, new] = np.where(members[older] | members[new], widths, 1.0).prod(axis=1)
        live[new] = True
    return tuple(nodes)
