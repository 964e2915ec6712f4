"""In what order tables over sets of axes are joined into one over all: a merge tree.

Factors travel up the tree, masses travel down it. The root is never a node of its own: it is the product of a
few tables that lack an axis. Where these can be three that share each axis between two, its margins are
products of matrices, and nothing of its size is ever written.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import final

import attrs
import numpy as np

from onlineic._typing import Bools, Floats, Ints

MATRICES = 2**17  # cells of the root, from which on products of matrices beat a table of all
BATCH = 100  # entries of a table that are written in the time that a small product of matrices takes
FEW_AXES = 6  # of which every choice of groups is looked at
ROUNDS = 100  # most moves of an axis, or of two, from one group to another


@final
@attrs.frozen(eq=False)
class Link:
    """Edge from a parent to a child: the parent's axes that the child has, and its shape for broadcasting."""

    child: int
    keep: tuple[int, ...]
    broadcast: tuple[int, ...]


@final
@attrs.frozen(eq=False)
class MergeTree:
    """The tables that are joined, first those given, in their order, then the inner nodes.

    Attributes:
        nodes: Tuple of pairs of Link. Inner nodes that lack an axis; children before parents.
        root: The tables whose product is the one over all axes.
        order: The axes, in the order in which all tables have them.
    """

    nodes: tuple[tuple[Link, Link], ...]
    root: tuple[Link, ...]
    order: tuple[int, ...] = ()

    @classmethod
    def of(cls, sets: Sequence[tuple[int, ...]], sizes: Mapping[int, int]) -> "MergeTree":
        """Plan the joins of one or more tables over these sets of axes.

        The two live nodes with the smallest union are joined until one is left, or three of which each axis
        is in two, if fewer entries are written so; ties go to the oldest pair.

        Args:
            sets: Which together have all axes.
            sizes: Of every axis, in the order in which tables have them where they are small.
        """
        widths = np.array(list(sizes.values()), float)
        held = np.array([[axis in own for axis in sizes] for own in sets], bool).reshape(len(sets), -1)
        trees = [_joined(held, widths, np.zeros(len(sets), int))]
        if len(sizes) > 3 and widths.prod() > MATRICES:
            trees.append(_joined(held, widths, _three_parts(held, widths)))
        tree = min(trees, key=lambda tree: tree.cost)
        return attrs.evolve(tree, order=tuple([*sizes][place] for place in tree.order))

    @cached_property  # every evaluation of a fit asks for it
    def written(self) -> int:
        """How many entries the inner nodes have together, but for those that take the place of a child."""
        sizes = ([math.prod(link.broadcast) for link in pair] for pair in self.nodes)
        whole = (math.prod(np.broadcast_shapes(*(link.broadcast for link in pair))) for pair in self.nodes)
        return sum(entries for entries, held in zip(whole, sizes, strict=True) if max(held) < entries)

    @property
    def by_matrices(self) -> bool:
        """Whether the root is a product of three tables, with each axis in two of them."""
        having = Counter(place for link in self.root for place in link.keep)
        return len(self.root) == 3 and min(having.values()) > 1

    @property
    def cost(self) -> float:
        """How many entries are written, or could be in the time that products of matrices take."""
        shape = np.broadcast_shapes(*(link.broadcast for link in self.root))
        if not self.by_matrices:
            return self.written + len(self.root) * math.prod(shape)  # each is read, and its margin summed
        batch = set.intersection(*(set(link.keep) for link in self.root))
        factors = sum(math.prod(link.broadcast) for link in self.root)
        return self.written + factors + BATCH * math.prod(int(shape[place]) for place in batch)


def _joined(held: Bools, widths: Floats, labels: Ints) -> MergeTree:
    """The tree of tables that have these axes, (tables, axes): nodes of one label alone are joined."""
    count, parts = len(held), len(np.unique(labels))
    members = np.zeros((2 * count - parts, held.shape[1]), bool)  # node -> its axes
    members[:count] = held
    labels = np.append(labels, np.zeros(count - parts, int))
    cost = np.full((len(members), len(members)), np.inf)
    live = np.zeros(len(members), bool)
    pairs: dict[int, list[int]] = {}
    for new in range(len(members)):
        if new >= count:
            pairs[new] = [int(node) for node in np.unravel_index(np.argmin(cost), cost.shape)]
            live[pairs[new]] = False
            cost[pairs[new], :] = cost[:, pairs[new]] = np.inf
            members[new] = members[pairs[new]].any(axis=0)
            labels[new] = labels[pairs[new][0]]
        older = np.flatnonzero(live[:new] & (labels[:new] == labels[new]))
        cost[older, new] = np.where(members[older] | members[new], widths, 1.0).prod(axis=1)
        live[new] = True
    root = [int(node) for node in np.flatnonzero(live)]
    whole = {node for node in pairs if members[node].all()} | ({*root} if parts == 1 else set())
    # in the place of each its children, those with all axes first: multiplied in the order of the joins
    while whole.intersection(root, pairs):
        node = max(whole.intersection(root, pairs))
        root.remove(node)
        root = sorted(pairs[node], key=lambda child: child not in whole) + root
    kept = [*range(count), *(node for node in pairs if node not in whole)]
    place = {node: index for index, node in enumerate(kept)}
    order = np.arange(len(widths))
    if widths.prod() > MATRICES:
        order = _order(members[root], members[kept[: count - 1 : -1]], widths)
    members, widths = members[:, order], widths[order]

    def link(parent: Bools, child: int) -> Link:
        has = members[child][parent]
        shape = np.where(has, widths[parent], 1).astype(int)
        return Link(place[child], tuple(np.flatnonzero(has).tolist()), tuple(shape.tolist()))

    nodes = [
        (link(members[node], pairs[node][0]), link(members[node], pairs[node][1])) for node in kept[count:]
    ]
    tables = tuple(link(np.ones(len(widths), bool), child) for child in root)
    return MergeTree(tuple(nodes), tables, tuple(order.tolist()))


def _order(root: Bools, nodes: Bools, widths: Floats) -> Ints:
    """In what order tables had best have their axes; root, nodes: (tables, axes), largest nodes first.

    Axes that the same tables of the root have stand side by side, so that it has a few long axes; among
    these, those of the same nodes. For matrix products the batch comes first, then the axes that the last of
    the three tables lacks, so that nothing is transposed; for slabs the longest axis comes last, for long
    inner loops.
    """
    tables = list(map(tuple, root.T.tolist()))
    lengths = {own: widths[[one == own for one in tables]].prod() for own in tables}
    matrices = len(root) == 3 and min(map(sum, tables)) > 1
    inside = (~nodes.T).tolist()

    def key(axis: int) -> tuple[float, list[bool], list[bool]]:
        own = tables[axis]
        return 0.0 if matrices else lengths[own], [not one for one in own], inside[axis]

    return np.array(sorted(range(len(widths)), key=key), int)


def _three_parts(held: Bools, widths: Floats) -> Ints:
    """Which of three parts each table goes into.

    Axes are in the batch, which all three parts have, or in one of three groups, each of which one part
    lacks. A table goes into the smallest part that has its axes, or, if there is none, into one that has them
    from there.
    """
    groups, several = np.full(len(widths), 3), widths > 1.0  # what has one class may be anywhere
    groups[several] = _best_groups(held[:, several], widths[several])
    having = np.array([held[:, groups == group].any(axis=1) for group in range(3)])  # (groups, tables)
    sizes = np.array([widths[groups == group].prod() for group in range(3)])
    lacked: Ints = np.where(having, 0.0, sizes[:, np.newaxis]).argmax(axis=0)
    return lacked


def _best_groups(held: Bools, widths: Floats) -> Ints:
    """The group of every axis: 0, 1, 2, or 3 for the batch.

    Of a few axes all choices are tried. Of more a local search moves single axes, or swaps two, from groups
    of about equal size, for as long as fewer cells are written.
    """
    axes = len(widths)
    if axes <= FEW_AXES:
        choices = np.indices((4,) * axes).reshape(axes, -1).T
        return np.asarray(choices[np.argmin(_costs(choices, held, widths))])
    groups, sizes = np.zeros(axes, int), np.ones(3)
    for axis in np.argsort(-widths, kind="stable").tolist():
        groups[axis] = np.argmin(sizes)
        sizes[groups[axis]] *= widths[axis]
    cost = _costs(groups[np.newaxis], held, widths)[0]
    first, second = np.triu_indices(axes, 1)
    for _ in range(ROUNDS):
        moved = np.repeat(groups[np.newaxis], 4 * axes + len(first), axis=0)
        moved[np.arange(4 * axes), np.repeat(np.arange(axes), 4)] = np.tile(np.arange(4), axes)
        swaps = np.arange(4 * axes, len(moved))
        moved[swaps, first], moved[swaps, second] = groups[second], groups[first]
        costs = _costs(moved, held, widths)
        best = int(np.argmin(costs))
        if not costs[best] < cost:
            break
        groups, cost = moved[best], costs[best]
    return groups


def _costs(groups: Ints, held: Bools, widths: Floats) -> Floats:
    """Cells written by each choice of groups, (choices, axes); group 3 is the batch; inf if impossible."""
    inside = groups[:, np.newaxis] == np.arange(4)[:, np.newaxis]  # (choices, groups, axes)
    sizes = np.where(inside, widths, 1.0).prod(axis=2)
    whole = sizes.prod(axis=1)
    crossing = (inside[:, :3].astype(float) @ held.T.astype(float) > 0.0).all(axis=1).sum(axis=1)
    empty = (sizes[:, :3] == 1.0).sum(axis=1)
    costs = (whole[:, np.newaxis] / sizes[:, :3]).sum(axis=1) + BATCH * sizes[:, 3]
    return np.asarray(costs + whole * (crossing + 3.0 * empty))
